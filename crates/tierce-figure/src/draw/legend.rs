//! The names of the series, each beside a key that looks like it.

use super::canvas::{Canvas, Outcome, Rect, Spot, Words};
use super::letters::{width, wrapped};
use super::panel::{bar, has_words};
use super::style::*;
use crate::{Figure, Legend, Look, Shape};
use plotters::style::text_anchor::HPos;

pub struct Entry<'a> {
    name: &'a str,
    look: Look,
    shape: &'a Shape,
}

/// A legend, with the place of each entry from its own left and upper edge.
pub struct Keys<'a> {
    title: &'a str,
    entries: Vec<(Spot, Entry<'a>)>,
    /// Of the names.
    most: f64,
    pub width: f64,
    pub height: f64,
}

impl<'a> Keys<'a> {
    /// Of names that fit into that width.
    pub fn of(figure: &'a Figure, room: f64) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for series in figure.rows.iter().flatten().flat_map(|panel| &panel.series) {
            let name = &series.name[..];
            if !name.is_empty() && !entries.iter().any(|entry| entry.name == name) {
                entries.push(Entry { name, look: series.look, shape: &series.shape });
            }
        }
        let longest = entries.iter().map(|entry| width(entry.name, TEXT)).fold(0.0, f64::max);
        let mut keys = Self {
            title: &figure.legend_title,
            entries: Vec::new(),
            most: room - KEY - KEY_GAP,
            width: room,
            height: 0.0,
        };
        match figure.legend {
            Legend::Above | Legend::Below => keys.flow(entries),
            Legend::List => keys.list(entries),
            Legend::Right => {
                keys.most = longest.min(room / 2.0 - KEY - KEY_GAP);
                keys.width = KEY + KEY_GAP + keys.most.max(width(keys.title, TEXT).min(room / 2.0));
                keys.list(entries);
            }
        }
        keys
    }

    /// As many on a line as there is room for.
    fn flow(&mut self, entries: Vec<Entry<'a>>) {
        let begin = if self.title.is_empty() { 0.0 } else { width(self.title, TEXT) + NAME_GAP };
        let (mut right, mut down) = (begin, 0.0);
        for entry in entries {
            let wide = KEY + KEY_GAP + width(entry.name, TEXT);
            if right > begin && right + wide > self.width {
                (right, down) = (begin, down + LEGEND_LINE);
            }
            self.entries.push(((right, down), entry));
            right += wide + NAME_GAP;
            self.height = down + LEGEND_LINE;
        }
    }

    fn list(&mut self, entries: Vec<Entry<'a>>) {
        let mut down = if self.title.is_empty() { 0.0 } else { LEGEND_LINE };
        for entry in entries {
            let lines = wrapped(entry.name, TEXT, self.most).len().max(1);
            self.entries.push(((0.0, down), entry));
            down += LEGEND_LINE + (lines - 1) as f64 * TEXT * LINE;
        }
        self.height = down;
    }

    /// From that place.
    pub fn draw(&self, canvas: &Canvas, (left, top): Spot) -> Outcome {
        let middle = LEGEND_LINE / 2.0;
        if !self.title.is_empty() && !self.entries.is_empty() {
            canvas.words(&Words::new((left, top + middle), TEXT, HPos::Left, self.title))?;
        }
        for ((right, down), entry) in &self.entries {
            let (x, y) = (left + right, top + down + middle);
            key(canvas, entry, (x, y))?;
            canvas.lines((x + KEY + KEY_GAP, y - TEXT * LINE / 2.0), TEXT, entry.name, self.most)?;
        }
        Ok(())
    }
}

/// The left end of it, in the middle of its height.
fn key(canvas: &Canvas, Entry { look, shape, .. }: &Entry, (x, y): Spot) -> Outcome {
    let (ends, middle) = ([(x, y), (x + KEY, y)], (x + KEY / 2.0, y));
    let area = Rect { left: x + 8.0, top: y - 6.0, right: x + KEY, bottom: y + 6.0 };
    match shape {
        Shape::Line(_) => {
            canvas.line(&ends, look.colour(), 2.0, look.dash())?;
            canvas.marker(middle, look.marker(), look.colour())
        }
        Shape::Plain(_) => canvas.line(&ends, look.colour(), 2.0, look.dash()),
        Shape::Points(_) => canvas.marker(middle, look.marker(), look.colour()),
        Shape::Rules(_) => canvas.line(&[(middle.0, y - 8.0), (middle.0, y + 8.0)], look.colour(), 1.2, DOTS),
        Shape::Area(_) => canvas.rect(area, tint(look.colour(), 0.15)),
        Shape::Boxes(blocks) => bar(canvas, area, *look, has_words(blocks)),
    }
}
