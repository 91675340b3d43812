//! Axes, and what is between them.

use super::canvas::{text_style, Canvas, Outcome, Rect, Spot, Words};
use super::letters::width;
use super::notes::Free;
use super::style::*;
use crate::{Axis, Block, Look, Panel, Place, Point, Series, Shape};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::ops::Range;

/// An axis as plotters asks for it.
struct Coordinate(Axis);

impl Ranged for Coordinate {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (self.0.part(*value) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.0.ticks.iter().map(|tick| tick.at).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.from..self.0.to
    }
}

impl ValueFormatter<f64> for Coordinate {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.0.ticks.iter().find(|tick| tick.at == *value);
        tick.map_or(String::new(), |tick| tick.words.clone())
    }
}

/// What a panel has beside it, and where the part between its axes is.
pub struct Frame {
    pub inside: Rect,
    /// For the marks and the label of the y axis.
    pub left: f64,
    /// The same of the x axis.
    pub below: f64,
}

impl Frame {
    /// How much room a y axis needs.
    pub fn left_of(axis: &Axis) -> f64 {
        let widest = axis.ticks.iter().map(|tick| width(&tick.words, TEXT)).fold(0.0, f64::max);
        let label = if axis.label.is_empty() { 0.0 } else { TEXT * LINE + 4.0 };
        label + widest + 2.0 * TICK + 2.0
    }

    /// How much room an x axis needs.
    pub fn below_of(axis: &Axis) -> f64 {
        let label = if axis.label.is_empty() { 0.0 } else { TEXT * LINE + 4.0 };
        2.0 * TICK + TEXT * LINE + label
    }

    fn spot(&self, panel: &Panel, [x, y]: Point) -> Spot {
        let Rect { left, top, right, bottom } = self.inside;
        (left + panel.x.part(x) * (right - left), bottom - panel.y.part(y) * (bottom - top))
    }

    fn spots(&self, panel: &Panel, points: &[Point]) -> Vec<Spot> {
        points.iter().map(|point| self.spot(panel, *point)).collect()
    }

    fn rect(&self, panel: &Panel, block: &Block) -> Rect {
        let [a, b] = [0, 1].map(|end| self.spot(panel, [block.x[end], block.y[end]]));
        let (left, right) = (a.0.min(b.0), a.0.max(b.0));
        // What is there is seen.
        Rect { left, top: a.1.min(b.1), right: right.max(left + 1.0), bottom: a.1.max(b.1) }
    }
}

/// Draw a panel.
pub fn draw(canvas: &Canvas, panel: &Panel, frame: &Frame) -> Outcome {
    axes(canvas, panel, frame)?;
    let mut free = Free::new(frame.inside);
    for series in &panel.series {
        draw_series(canvas, panel, frame, series, &mut free)?;
    }
    // Words that have a place of their own first.
    let (fixed, placed): (Vec<_>, Vec<_>) = panel.notes.iter().partition(|note| note.place == Place::Right);
    for note in fixed.into_iter().chain(placed) {
        free.note(canvas, note, frame.spot(panel, note.at))?;
    }
    Ok(())
}

fn axes(canvas: &Canvas, panel: &Panel, Frame { inside, left, below }: &Frame) -> Outcome {
    let units = |pixels: f64| (pixels * UNIT).round() as i32;
    let begin = (units(inside.left - left), units(inside.top));
    let size =
        (units(inside.right - inside.left + left) as u32, units(inside.bottom - inside.top + below) as u32);
    let area = canvas.area.clone().shrink(begin, size);
    let mut chart = ChartBuilder::on(&area)
        .set_label_area_size(LabelAreaPosition::Left, units(*left))
        .set_label_area_size(LabelAreaPosition::Bottom, units(*below))
        .build_cartesian_2d(Coordinate(panel.x.clone()), Coordinate(panel.y.clone()))?;
    let words = text_style(TEXT, INK, HPos::Center);
    let mut mesh = chart.configure_mesh();
    mesh.axis_style(stroke(INK, 1.0))
        .bold_line_style(stroke(GRID, 1.0))
        .light_line_style(TRANSPARENT)
        .label_style(words.clone())
        .axis_desc_style(words)
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label)
        .set_all_tick_mark_size(units(TICK));
    if !panel.x.grid {
        mesh.disable_x_mesh();
    }
    if !panel.y.grid {
        mesh.disable_y_mesh();
    }
    mesh.draw()
}

fn draw_series(canvas: &Canvas, panel: &Panel, frame: &Frame, series: &Series, free: &mut Free) -> Outcome {
    let look = series.look;
    match &series.shape {
        Shape::Line(points) => {
            let spots = frame.spots(panel, points);
            canvas.line(&spots, look.colour(), 2.0, look.dash())?;
            free.take_line(&spots);
            for spot in spaced(&spots) {
                canvas.marker(spot, look.marker(), look.colour())?;
            }
        }
        Shape::Plain(points) => {
            let spots = frame.spots(panel, points);
            canvas.line(&spots, look.colour(), 2.0, look.dash())?;
            free.take_line(&spots);
        }
        Shape::Points(points) => {
            for spot in frame.spots(panel, points) {
                canvas.marker(spot, look.marker(), look.colour())?;
                free.take(Rect { left: spot.0, top: spot.1, right: spot.0, bottom: spot.1 }.grown(6.0));
            }
        }
        Shape::Area(points) => canvas.polygon(&frame.spots(panel, points), look.colour(), 0.15)?,
        Shape::Boxes(blocks) => boxes(canvas, panel, frame, look, blocks)?,
        Shape::Rules(places) => {
            for place in places {
                let (x, _) = frame.spot(panel, [*place, panel.y.from]);
                let ends = [(x, frame.inside.top), (x, frame.inside.bottom)];
                canvas.line(&ends, look.colour(), 1.2, DOTS)?;
                free.take_line(&ends);
            }
        }
    }
    Ok(())
}

/// Those of them that are far enough from the one before.
fn spaced(spots: &[Spot]) -> Vec<Spot> {
    let mut shown: Vec<Spot> = Vec::new();
    for spot in spots {
        let far = |last: &Spot| (spot.0 - last.0).hypot(spot.1 - last.1) >= MARKER_GAP;
        if spots.len() <= 30 || shown.last().is_none_or(far) {
            shown.push(*spot);
        }
    }
    shown
}

pub fn has_words(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| !block.inside.is_empty())
}

fn boxes(canvas: &Canvas, panel: &Panel, frame: &Frame, look: Look, blocks: &[Block]) -> Outcome {
    let with_words = has_words(blocks);
    for block in blocks {
        let place = frame.rect(panel, block);
        bar(canvas, place, look, with_words)?;
        let middle = ((place.left + place.right) / 2.0, (place.top + place.bottom) / 2.0);
        let room = place.right - place.left - 6.0;
        if let Some(words) = block.inside.iter().find(|words| width(words, TEXT) <= room) {
            canvas.words(&Words::new(middle, TEXT, HPos::Center, words))?;
        }
        if !block.above.is_empty() {
            let at = (middle.0, place.top - SMALL * 0.8);
            canvas.words(&Words::new(at, SMALL, HPos::Center, &block.above))?;
        }
    }
    Ok(())
}

/// A filled rectangle, hatched if it has no words.
pub fn bar(canvas: &Canvas, place: Rect, look: Look, with_words: bool) -> Outcome {
    if with_words {
        canvas.rect(place, look.behind_words())?;
        return canvas.border(place, INK, 0.6);
    }
    canvas.rect(place, look.filled())?;
    if place.right - place.left < HATCHING_GAP || place.bottom - place.top < HATCHING_GAP {
        return Ok(());
    }
    for direction in look.hatching() {
        for ends in hatched(place, *direction) {
            canvas.line(&ends, WHITE, 1.0, (0.0, 0.0))?;
        }
    }
    Ok(())
}

/// Lines in that direction across a rectangle, from its middle outwards as far as they meet it.
fn hatched(Rect { left, top, right, bottom }: Rect, (dx, dy): (f64, f64)) -> Vec<[Spot; 2]> {
    let (wide, high) = (right - left, bottom - top);
    let mut lines = Vec::new();
    let mut down = HATCHING_GAP / 2.0 - wide;
    while down < high + wide {
        // y = down + (dy/dx)·x, cut where it leaves the rectangle.
        let slope = dy / dx;
        let (mut from, mut to) = (0.0, wide);
        if slope == 0.0 {
            if !(0.0..=high).contains(&down) {
                to = from;
            }
        } else {
            let [a, b] = [-down / slope, (high - down) / slope];
            from = a.min(b).max(from);
            to = a.max(b).min(to);
        }
        if to - from > 0.5 {
            lines.push([from, to].map(|x| (left + x, top + down + slope * x)));
        }
        down += HATCHING_GAP;
    }
    lines
}
