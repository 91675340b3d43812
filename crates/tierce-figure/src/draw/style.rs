//! The style of all figures: letters, colours, dashes, markers, hatchings, distances.
//!
//! The colours are those of Okabe & Ito (Color Universal Design, 2008), which colour-blind people tell apart; without the yellow, which is
//! hardly seen on white. Each line has a dash and a marker of its own as well, each bar a hatching, so that they are known in grey, too.

use crate::Look;
use plotters::style::{Color, RGBColor, ShapeStyle};

/// Plotters knows whole numbers only: a pixel is that many of its units.
pub const UNIT: f64 = 10.0;
/// Pixels of a PNG per pixel.
pub const PNG_SCALE: f32 = 2.0;

/// The font, and what stands in for it in a program that does not take it from the file.
pub const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";
pub const TITLE: f64 = 15.0;
pub const PANEL_TITLE: f64 = 13.0;
pub const TEXT: f64 = 12.0;
pub const SMALL: f64 = 10.0;
/// From one line of words to the next, as a part of their size.
pub const LINE: f64 = 1.4;

pub const INK: RGBColor = RGBColor(45, 45, 45);
pub const GRID: RGBColor = RGBColor(222, 222, 222);
pub const REFERENCE: RGBColor = RGBColor(120, 120, 120);
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 0, 0),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Around everything, and between parts, in pixels.
pub const MARGIN: f64 = 12.0;
pub const TICK: f64 = 4.0;
/// A key of the legend, and from it to its name.
pub const KEY: f64 = 34.0;
pub const KEY_GAP: f64 = 7.0;
/// From a name to the next key.
pub const NAME_GAP: f64 = 22.0;
/// From one line of a legend to the next.
pub const LEGEND_LINE: f64 = 20.0;
/// Markers on a line are at least as far from each other.
pub const MARKER_GAP: f64 = 22.0;

/// Lengths of dash and gap; the first is solid.
const DASHES: [(f64, f64); 5] = [(0.0, 0.0), (9.0, 4.0), (4.0, 3.0), (14.0, 3.0), (2.0, 2.5)];
pub const DOTS: (f64, f64) = (2.0, 3.0);
const REFERENCE_DASH: (f64, f64) = (1.5, 1.5);

/// Corners from the middle.
const MARKERS: [&[(f64, f64)]; 5] = [
    &[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
    &[(0.0, -4.8), (4.4, 3.2), (-4.4, 3.2)],
    &[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)],
    &[(0.0, 4.8), (4.4, -3.2), (-4.4, -3.2)],
    &[
        (-1.5, -4.6),
        (1.5, -4.6),
        (1.5, -1.5),
        (4.6, -1.5),
        (4.6, 1.5),
        (1.5, 1.5),
        (1.5, 4.6),
        (-1.5, 4.6),
        (-1.5, 1.5),
        (-4.6, 1.5),
        (-4.6, -1.5),
        (-1.5, -1.5),
    ],
];

/// Nearly a circle.
const REFERENCE_MARKER: &[(f64, f64)] =
    &[(-1.5, -3.6), (1.5, -3.6), (3.6, -1.5), (3.6, 1.5), (1.5, 3.6), (-1.5, 3.6), (-3.6, 1.5), (-3.6, -1.5)];

/// Lines across a bar: their direction, to the right and downwards. The first bar has none.
const HATCHINGS: [&[(f64, f64)]; 5] =
    [&[], &[(1.0, -1.0)], &[(1.0, 1.0)], &[(1.0, 0.0)], &[(1.0, -1.0), (1.0, 1.0)]];
/// From one of these lines to the next.
pub const HATCHING_GAP: f64 = 7.0;

impl Look {
    fn number(self) -> Option<usize> {
        match self {
            Self::Number(number) | Self::Pale(number) => Some(number),
            Self::Reference => None,
        }
    }

    pub(super) fn colour(self) -> RGBColor {
        match self {
            Self::Number(number) => COLOURS[number % COLOURS.len()],
            Self::Pale(number) => tint(COLOURS[number % COLOURS.len()], 0.22),
            Self::Reference => REFERENCE,
        }
    }

    pub(super) fn dash(self) -> (f64, f64) {
        self.number().map_or(REFERENCE_DASH, |number| DASHES[number % DASHES.len()])
    }

    pub(super) fn marker(self) -> &'static [(f64, f64)] {
        self.number().map_or(REFERENCE_MARKER, |number| MARKERS[number % MARKERS.len()])
    }

    pub(super) fn hatching(self) -> &'static [(f64, f64)] {
        match self {
            Self::Number(number) => HATCHINGS[number % HATCHINGS.len()],
            Self::Pale(_) | Self::Reference => &[],
        }
    }

    /// Of a box without words: a reference is paler than all others.
    pub(super) fn filled(self) -> RGBColor {
        if self == Self::Reference {
            tint(REFERENCE, 0.5)
        } else {
            self.colour()
        }
    }

    /// Of a box with words in it: they have to be read.
    pub(super) fn behind_words(self) -> RGBColor {
        match self {
            Self::Number(_) => tint(self.colour(), 0.55),
            Self::Pale(_) => self.colour(),
            Self::Reference => tint(REFERENCE, 0.7),
        }
    }
}

/// So much of a colour, on white.
pub fn tint(RGBColor(red, green, blue): RGBColor, part: f64) -> RGBColor {
    let mixed = |of: u8| (255.0 - (255.0 - f64::from(of)) * part).round() as u8;
    RGBColor(mixed(red), mixed(green), mixed(blue))
}

/// A line of that width.
pub fn stroke(colour: RGBColor, width: f64) -> ShapeStyle {
    colour.stroke_width((width * UNIT).round() as u32)
}
