//! Figures: what they show ([`Figure`]), and how they are drawn ([`Figure::write`], [page](../../../docs/figures.md)).
//!
//! ```text
//! numbers ──> Figure (plain data, as JSON too) ──plotters──> SVG ──resvg───> PNG
//!                                                             └────svg2pdf──> PDF
//! ```
//!
//! A figure says nothing about colours, fonts or sizes of letters: all of that is in `draw/style.rs`. A series has a number, and the
//! style knows which colour, dash, marker and hatching the series of that number has.

mod axis;
mod check;
pub mod draw;
mod format;

pub use axis::{Axis, Scale, Tick};
pub use check::Refusal;
pub use format::Format;

use serde::{Deserialize, Serialize};

/// A place in the units of the axes: to the right, upwards.
pub type Point = [f64; 2];

/// Panels in rows, below a title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Above all; may be empty.
    #[serde(default)]
    pub title: String,
    /// In pixels; a PNG has twice as many. The height follows from the panels.
    pub width: f64,
    /// From above to below, each from left to right.
    pub rows: Vec<Vec<Panel>>,
    /// Where the names of the series are.
    #[serde(default)]
    pub legend: Legend,
    /// What the names are, where that is not plain.
    #[serde(default)]
    pub legend_title: String,
}

/// Where the names of the series are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Legend {
    /// Between the title and the panels.
    #[default]
    Above,
    /// Below the panels.
    Below,
    /// Below the panels, each on a line of its own.
    List,
    /// Beside the panels.
    Right,
}

/// Two axes, and what is drawn between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Above it; may be empty.
    #[serde(default)]
    pub title: String,
    /// Of the part between the axes, in pixels.
    pub height: f64,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What comes later is above.
    pub series: Vec<Series>,
    /// Words.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// Something that is drawn in one look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// In the legend. Empty: it is not there. Series of the same name are there once.
    #[serde(default)]
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// What is drawn.
    pub shape: Shape,
}

/// How a series looks. The style has 35 of them and begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// The colour, dash, marker and hatching of that number, from 0.
    Number(usize),
    /// A pale tint of the colour of that number.
    Pale(usize),
    /// Grey: what the others are compared with.
    Reference,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// From point to point, with markers on points that are far enough from each other.
    Line(Vec<Point>),
    /// From point to point, without markers.
    Plain(Vec<Point>),
    /// A marker on each.
    Points(Vec<Point>),
    /// All that is within these corners, pale.
    Area(Vec<Point>),
    /// Filled rectangles.
    Boxes(Vec<Block>),
    /// From the lower to the upper edge of the panel, at each of these places; dotted.
    Rules(Vec<f64>),
}

/// A filled rectangle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// From, to.
    pub x: [f64; 2],
    /// From, to.
    pub y: [f64; 2],
    /// Inside: the first of these for which there is room.
    #[serde(default)]
    pub inside: Vec<String>,
    /// Above it.
    #[serde(default)]
    pub above: String,
}

impl Block {
    /// Without words.
    pub fn new(x: [f64; 2], y: [f64; 2]) -> Self {
        Self { x, y, inside: Vec::new(), above: String::new() }
    }
}

/// Words in a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// What they are about.
    pub at: Point,
    /// The words.
    pub words: String,
    /// Where they stand.
    pub place: Place,
}

/// Where words stand. Those that are placed are never on a line, a marker or other words, as long as there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Near it, better above than below; a thin line leads to it where they are not beside it.
    Near,
    /// The same, better below than above, without a line.
    Below,
    /// To the left of it and above it; left out if something is there.
    Corner,
    /// To the right of it, whatever is there.
    Right,
}

impl Figure {
    /// With one panel, and as wide as pages take it.
    pub fn new(title: impl Into<String>, panel: Panel) -> Self {
        Self::stack(title, vec![panel])
    }

    /// Panels one below the other.
    pub fn stack(title: impl Into<String>, panels: Vec<Panel>) -> Self {
        let rows = panels.into_iter().map(|panel| vec![panel]).collect();
        Self { title: title.into(), width: 760.0, rows, legend: Legend::Above, legend_title: String::new() }
    }

    /// As wide as that.
    pub fn wide(self, width: f64) -> Self {
        Self { width, ..self }
    }

    /// With the names there.
    pub fn legend(self, legend: Legend) -> Self {
        Self { legend, ..self }
    }
}

impl Panel {
    /// Without series.
    pub fn new(height: f64, x: Axis, y: Axis) -> Self {
        Self { title: String::new(), height, x, y, series: Vec::new(), notes: Vec::new() }
    }

    /// With that above it.
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// With one more series.
    pub fn with(mut self, name: impl Into<String>, look: Look, shape: Shape) -> Self {
        self.series.push(Series { name: name.into(), look, shape });
        self
    }

    /// With words.
    pub fn note(mut self, at: Point, words: impl Into<String>, place: Place) -> Self {
        self.notes.push(Note { at, words: words.into(), place });
        self
    }
}
