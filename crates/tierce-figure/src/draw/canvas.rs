//! Lines, areas and words in pixels, for the parts of a figure that are not an axis.

use super::letters::{self, width};
use super::style::{self, stroke, INK, UNIT};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// In pixels from the left and upper edge.
pub type Spot = (f64, f64);
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Outcome = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// From left to right, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl Rect {
    /// They have a place in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// All of `other` is inside.
    pub fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }

    /// So much larger on each side.
    pub fn grown(&self, by: f64) -> Self {
        Self { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }
}

/// One line of words.
#[derive(Clone)]
pub struct Words {
    /// The middle of its height, and of its width what `side` says.
    pub at: Spot,
    pub size: f64,
    pub side: HPos,
    pub colour: RGBColor,
    pub words: String,
}

impl Words {
    pub fn new(at: Spot, size: f64, side: HPos, words: impl Into<String>) -> Self {
        Self { at, size, side, colour: INK, words: words.into() }
    }

    pub fn place(&self) -> Rect {
        let width = width(&self.words, self.size);
        let left = match self.side {
            HPos::Left => self.at.0,
            HPos::Center => self.at.0 - width / 2.0,
            HPos::Right => self.at.0 - width,
        };
        let half = 0.55 * self.size;
        Rect { left, top: self.at.1 - half, right: left + width, bottom: self.at.1 + half }
    }
}

fn units((x, y): Spot) -> (i32, i32) {
    ((x * UNIT).round() as i32, (y * UNIT).round() as i32)
}

pub fn text_style(size: f64, colour: RGBColor, side: HPos) -> TextStyle<'static> {
    // Plotters takes letters for smaller than they are called.
    let font = FontDesc::new(FontFamily::Name(style::FAMILY), size * UNIT * 1.24, FontStyle::Normal);
    TextStyle { color: colour.to_backend_color(), pos: Pos::new(side, VPos::Center), ..font.into() }
}

pub struct Canvas<'a> {
    pub area: Area<'a>,
}

impl Canvas<'_> {
    pub fn line(&self, points: &[Spot], colour: RGBColor, width: f64, (dash, gap): (f64, f64)) -> Outcome {
        let (points, style): (Vec<_>, _) =
            (points.iter().copied().map(units).collect(), stroke(colour, width));
        if points.len() < 2 {
            return Ok(());
        }
        if dash == 0.0 {
            return self.area.draw(&PathElement::new(points, style));
        }
        let [dash, gap] = [dash, gap].map(|length| (length * UNIT).round() as u32);
        self.area.draw(&DashedPathElement::new(points, dash, gap, style))
    }

    pub fn polygon(&self, points: &[Spot], colour: RGBColor, opacity: f64) -> Outcome {
        let points: Vec<_> = points.iter().copied().map(units).collect();
        self.area.draw(&Polygon::new(points, colour.mix(opacity)))
    }

    pub fn rect(&self, Rect { left, top, right, bottom }: Rect, colour: RGBColor) -> Outcome {
        self.area.draw(&Rectangle::new([units((left, top)), units((right, bottom))], colour.filled()))
    }

    pub fn border(&self, Rect { left, top, right, bottom }: Rect, colour: RGBColor, width: f64) -> Outcome {
        self.line(
            &[(left, top), (right, top), (right, bottom), (left, bottom), (left, top)],
            colour,
            width,
            (0.0, 0.0),
        )
    }

    pub fn marker(&self, (x, y): Spot, corners: &[Spot], colour: RGBColor) -> Outcome {
        let corners: Vec<_> = corners.iter().map(|corner| (x + corner.0, y + corner.1)).collect();
        self.polygon(&corners, colour, 1.0)
    }

    pub fn words(&self, words: &Words) -> Outcome {
        let style = text_style(words.size, words.colour, words.side);
        self.area.draw(&Text::new(words.words.clone(), units(words.at), style))
    }

    /// Below each other, from that height on; where they end.
    pub fn lines(
        &self,
        at: Spot,
        size: f64,
        words: &str,
        most: f64,
    ) -> Result<f64, DrawingAreaErrorKind<std::io::Error>> {
        let mut down = at.1;
        for line in letters::wrapped(words, size, most) {
            self.words(&Words::new((at.0, down + size * style::LINE / 2.0), size, HPos::Left, line))?;
            down += size * style::LINE;
        }
        Ok(down)
    }
}
