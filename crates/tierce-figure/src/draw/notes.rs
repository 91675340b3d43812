//! Words in a panel, where nothing else is.

use super::canvas::{Canvas, Outcome, Rect, Spot, Words};
use super::style::*;
use crate::{Note, Place};
use plotters::style::text_anchor::HPos;

/// Where there is room for words.
pub struct Free {
    pub inside: Rect,
    /// And how bad it would be to stand there.
    taken: Vec<(Rect, u32)>,
}

/// A piece of a line; words cannot be read on words.
const ON_LINE: u32 = 1;
const ON_WORDS: u32 = 1_000;

impl Free {
    pub fn new(inside: Rect) -> Self {
        Self { inside, taken: Vec::new() }
    }

    pub fn take(&mut self, place: Rect) {
        self.taken.push((place, ON_WORDS));
    }

    /// Nothing may stand on a line: small pieces of it are taken.
    pub fn take_line(&mut self, points: &[Spot]) {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let pieces = ((x2 - x1).hypot(y2 - y1) / 4.0).ceil().clamp(1.0, 2_000.0) as u32;
            for piece in 0..=pieces {
                let part = f64::from(piece) / f64::from(pieces);
                let (x, y) = (x1 + (x2 - x1) * part, y1 + (y2 - y1) * part);
                self.taken.push((Rect { left: x, top: y, right: x, bottom: y }.grown(2.0), ON_LINE));
            }
        }
    }

    fn is_taken(&self, words: &Words) -> bool {
        self.taken.iter().any(|(taken, _)| taken.meets(&words.place()))
    }

    /// The words around their place, on that side (above and left, or below and right) and as near as there is room; where there is
    /// none, on as little as possible.
    fn place(&mut self, words: Words, above: bool) -> Words {
        const TURNS: u32 = 24;
        // From above to the left and on; or from below to the right and on.
        let begin = if above { 0.25 } else { 0.75 };
        let ring = |turns: std::ops::Range<u32>| {
            (1..=12).flat_map(move |ring| turns.clone().map(move |turn| (ring, turn)))
        };
        let moved = ring(0..TURNS / 2).chain(ring(TURNS / 2..TURNS)).map(|(ring, turn)| {
            let angle = (f64::from(turn) / f64::from(TURNS) + begin) * std::f64::consts::TAU;
            let reach = 6.0 + f64::from(ring) * 12.0;
            let (right, up) = (angle.cos() * reach, angle.sin() * reach);
            let side = match right {
                right if right > 4.0 => HPos::Left,
                right if right < -4.0 => HPos::Right,
                _ => HPos::Center,
            };
            Words { at: (words.at.0 + right, words.at.1 - up), side, ..words.clone() }
        });
        let inside: Vec<_> = moved.filter(|words| self.inside.holds(&words.place())).collect();
        let covered = |words: &Words| -> u32 {
            let place = words.place();
            self.taken.iter().filter(|(taken, _)| taken.meets(&place)).map(|(_, cost)| cost).sum()
        };
        let found = inside.iter().min_by_key(|words| covered(words)).cloned().unwrap_or(words);
        self.take(found.place().grown(4.0));
        found
    }

    /// A note about that spot.
    pub fn note(&mut self, canvas: &Canvas, note: &Note, spot: Spot) -> Outcome {
        let words = |at, side| Words::new(at, TEXT, side, note.words.clone());
        match note.place {
            Place::Right => {
                let words = words((spot.0 + 4.0, spot.1), HPos::Left);
                self.take(words.place());
                canvas.words(&words)
            }
            Place::Corner => {
                let words = words((spot.0 - 10.0, spot.1 - 14.0), HPos::Right);
                if self.is_taken(&words) {
                    return Ok(());
                }
                self.take(words.place());
                canvas.words(&words)
            }
            Place::Below => canvas.words(&self.place(words(spot, HPos::Left), false)),
            Place::Near => {
                let words = self.place(words(spot, HPos::Left), true);
                let place = words.place();
                let near = (spot.0.clamp(place.left, place.right), spot.1.clamp(place.top, place.bottom));
                // Not beside it.
                if (near.0 - spot.0).hypot(near.1 - spot.1) > 14.0 {
                    canvas.line(&[near, spot], REFERENCE, 0.8, (0.0, 0.0))?;
                }
                canvas.words(&words)
            }
        }
    }
}
