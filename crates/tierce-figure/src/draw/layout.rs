//! Where the title, the legend and the panels are.

use super::canvas::{Canvas, Outcome, Rect};
use super::legend::Keys;
use super::letters::{width, wrapped};
use super::panel::{self, Frame};
use super::style::*;
use crate::{Axis, Figure, Legend, Panel};
use plotters::prelude::*;

/// A figure with the heights and widths of all that is in it.
pub struct Layout<'a> {
    figure: &'a Figure,
    keys: Keys<'a>,
    /// Where each panel is, row by row.
    frames: Vec<Vec<Frame>>,
    /// Where the legend is.
    legend: (f64, f64),
    pub height: f64,
}

impl<'a> Layout<'a> {
    pub fn of(figure: &'a Figure) -> Self {
        let room = figure.width - 2.0 * MARGIN;
        let keys = Keys::of(figure, room);
        let title = wrapped(&figure.title, TITLE, room).len() as f64 * TITLE * LINE;
        let mut down = MARGIN + title;
        let mut legend = (MARGIN, down + 4.0);
        if figure.legend == Legend::Above && keys.height > 0.0 {
            down += keys.height + 6.0;
        }
        let mut room = room;
        if figure.legend == Legend::Right && keys.height > 0.0 {
            room -= keys.width + NAME_GAP;
            legend = (figure.width - MARGIN - keys.width, down + 14.0);
        }
        let mut layout = Self { figure, keys, frames: Vec::new(), legend, height: 0.0 };
        let lefts = layout.lefts();
        for row in &figure.rows {
            down = layout.row(row, &lefts, room, down);
        }
        match figure.legend {
            Legend::Below | Legend::List if layout.keys.height > 0.0 => {
                layout.legend = (MARGIN, down + 10.0);
                down += layout.keys.height + 10.0;
            }
            Legend::Right => down = down.max(layout.legend.1 + layout.keys.height),
            _ => {}
        }
        layout.height = (down + MARGIN).ceil();
        layout
    }

    /// Of each column: the room that the widest of its y axes needs, so that panels below each other begin at the same place.
    fn lefts(&self) -> Vec<f64> {
        let columns = self.figure.rows.iter().map(Vec::len).max().unwrap_or(0);
        let of = |column: usize| {
            let panels = self.figure.rows.iter().filter_map(|row| row.get(column));
            panels.map(|panel| Frame::left_of(&panel.y)).fold(0.0, f64::max)
        };
        (0..columns).map(of).collect()
    }

    /// Place a row from that height on; where it ends.
    fn row(&mut self, row: &[Panel], lefts: &[f64], room: f64, top: f64) -> f64 {
        let most = |of: fn(&Panel) -> f64| row.iter().map(of).fold(0.0, f64::max);
        let titled = row.iter().any(|panel| !panel.title.is_empty());
        // The highest mark's words, or a bar's, need some room.
        let top = top + if titled { 8.0 + PANEL_TITLE * LINE + 4.0 } else { 10.0 };
        let (height, below) = (most(|panel| panel.height), most(|panel| Frame::below_of(&panel.x)));
        let gaps: f64 = row.iter().map(|panel| overhang(&panel.x)).sum();
        let lefts = &lefts[..row.len()];
        let wide = ((room - lefts.iter().sum::<f64>() - gaps) / row.len() as f64).max(10.0);
        let mut right = MARGIN;
        let mut frames = Vec::new();
        for (panel, left) in row.iter().zip(lefts) {
            let begin = right + left;
            let inside = Rect { left: begin, top, right: begin + wide, bottom: top + height };
            frames.push(Frame { inside, left: *left, below });
            right = begin + wide + overhang(&panel.x);
        }
        self.frames.push(frames);
        top + height + below
    }

    pub fn draw(&self, canvas: &Canvas) -> Outcome {
        canvas.area.fill(&WHITE)?;
        canvas.lines((MARGIN, MARGIN), TITLE, &self.figure.title, self.figure.width - 2.0 * MARGIN)?;
        self.keys.draw(canvas, self.legend)?;
        for (panel, frame) in self.figure.rows.iter().flatten().zip(self.frames.iter().flatten()) {
            let at = (frame.inside.left, frame.inside.top - PANEL_TITLE * LINE - 5.0);
            canvas.lines(at, PANEL_TITLE, &panel.title, f64::MAX)?;
            panel::draw(canvas, panel, frame)?;
        }
        Ok(())
    }
}

/// How far the words of the last mark go beyond the axis, and some room.
fn overhang(axis: &Axis) -> f64 {
    let last = axis.ticks.iter().filter(|tick| axis.part(tick.at) > 0.9);
    14.0 + last.map(|tick| width(&tick.words, TEXT) / 2.0).fold(0.0, f64::max)
}
