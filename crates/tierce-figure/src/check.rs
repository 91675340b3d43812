//! What can be drawn. A description comes from another program, so each number of it is looked at.

use crate::{Axis, Figure, Panel, Point, Scale, Shape};

/// A figure, or a file's name, that is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{rule}: {message}")]
pub struct Refusal {
    /// The rule that is broken.
    pub rule: &'static str,
    /// Place, value and bound.
    pub message: String,
}

const SIZES: std::ops::RangeInclusive<f64> = 100.0..=4_000.0;
const HEIGHTS: std::ops::RangeInclusive<f64> = 10.0..=4_000.0;
/// All panels of a figure together, in pixels.
const HEIGHT_MOST: f64 = 12_000.0;
/// A row of more would have no width left for them.
const PANELS_MOST: usize = 4;

fn refused<T>(rule: &'static str, message: String) -> Result<T, Refusal> {
    Err(Refusal { rule, message })
}

impl Figure {
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), Refusal> {
        if !SIZES.contains(&self.width) {
            return refused("width_within_range", format!("{}, bound 100 to 4000 pixels", self.width));
        }
        if self.rows.is_empty() || self.rows.iter().any(|row| row.is_empty() || row.len() > PANELS_MOST) {
            return refused(
                "rows_have_panels",
                format!("{} rows, bound at least one, each with 1 to {PANELS_MOST} panels", self.rows.len()),
            );
        }
        for (row, panels) in self.rows.iter().enumerate() {
            for (at, panel) in panels.iter().enumerate() {
                panel.check().map_err(|refusal| Refusal {
                    message: format!("panel {} of row {}: {}", at + 1, row + 1, refusal.message),
                    ..refusal
                })?;
            }
        }
        let height: f64 =
            self.rows.iter().map(|row| row.iter().map(|panel| panel.height).fold(0.0, f64::max)).sum();
        if height > HEIGHT_MOST {
            return refused("height_within_range", format!("{height} in all, bound {HEIGHT_MOST} pixels"));
        }
        Ok(())
    }
}

impl Panel {
    fn check(&self) -> Result<(), Refusal> {
        if !HEIGHTS.contains(&self.height) {
            return refused("height_within_range", format!("{}, bound 10 to 4000 pixels", self.height));
        }
        self.x.check("x")?;
        self.y.check("y")?;
        let is_finite = |points: &[Point]| points.iter().flatten().all(|number| number.is_finite());
        for series in &self.series {
            let finite = match &series.shape {
                Shape::Line(points) | Shape::Plain(points) | Shape::Points(points) | Shape::Area(points) => {
                    is_finite(points)
                }
                Shape::Boxes(blocks) => blocks.iter().all(|block| is_finite(&[block.x, block.y])),
                Shape::Rules(places) => places.iter().all(|place| place.is_finite()),
            };
            if !finite {
                return refused("numbers_are_finite", format!("series \"{}\"", series.name));
            }
        }
        match self.notes.iter().find(|note| !is_finite(&[note.at])) {
            Some(note) => refused("numbers_are_finite", format!("note \"{}\"", note.words)),
            None => Ok(()),
        }
    }
}

impl Axis {
    fn check(&self, name: &str) -> Result<(), Refusal> {
        let Self { from, to, .. } = *self;
        let ends = format!("{name} from {from} to {to}");
        if !(from.is_finite() && to.is_finite() && (to - from).is_finite() && from != to) {
            return refused("axis_has_two_ends", format!("{ends}, bound two different finite numbers"));
        }
        if self.scale == Scale::Log && (from <= 0.0 || to <= 0.0) {
            return refused("logarithm_is_of_positive_numbers", format!("{ends}, bound above 0"));
        }
        let (least, most) = (from.min(to), from.max(to));
        match self.ticks.iter().find(|tick| !(least..=most).contains(&tick.at)) {
            // Sums of steps are not exact.
            Some(tick)
                if (tick.at - tick.at.clamp(least, most)).abs() > (most - least) * 1e-6
                    || tick.at.is_nan() =>
            {
                refused("ticks_are_on_the_axis", format!("{ends}: {}", tick.at))
            }
            _ => Ok(()),
        }
    }
}
