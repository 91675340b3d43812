//! Axes and the marks on them.

use serde::{Deserialize, Serialize};

/// An axis. `from` may be above `to`: then it goes the other way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it shows, with its unit; may be empty.
    #[serde(default)]
    pub label: String,
    /// Where on it a number is.
    #[serde(default)]
    pub scale: Scale,
    /// The left or lower end.
    pub from: f64,
    /// The right or upper end.
    pub to: f64,
    /// Marks, with what stands there.
    pub ticks: Vec<Tick>,
    /// A pale line through the panel at each mark.
    #[serde(default)]
    pub grid: bool,
}

/// Where on an axis a number is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences are equally far from each other.
    #[default]
    Linear,
    /// Equal ratios are.
    Log,
}

/// A mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tick {
    /// Where.
    pub at: f64,
    /// What stands there.
    pub words: String,
}

impl Tick {
    /// A number, as short as it can be said.
    pub fn number(at: f64) -> Self {
        Self { at, words: number(at) }
    }
}

impl Axis {
    /// With marks at about six round numbers.
    pub fn new(label: impl Into<String>, from: f64, to: f64) -> Self {
        Self::every(label, from, to, round_step((to - from).abs() / 6.0))
    }

    /// With a mark at each multiple of `step`.
    pub fn every(label: impl Into<String>, from: f64, to: f64, step: f64) -> Self {
        let (least, most) = ((from.min(to) / step - 1e-6).ceil(), (from.max(to) / step + 1e-6).floor());
        // A step that is too small for its axis has no marks rather than very many.
        let count = (most - least) as usize;
        let ticks = (0..=count).take_while(|_| count < 1_000);
        let ticks = ticks.map(|at| Tick::number((least + at as f64) * step)).collect();
        Self { label: label.into(), scale: Scale::Linear, from, to, ticks, grid: true }
    }

    /// Logarithmic, from the first of these marks to the last.
    pub fn log(label: impl Into<String>, marks: &[f64]) -> Self {
        let [from, to] = [marks.first(), marks.last()].map(|end| end.copied().unwrap_or(1.0));
        let ticks = marks.iter().copied().map(Tick::number).collect();
        Self { label: label.into(), scale: Scale::Log, from, to, ticks, grid: true }
    }

    /// The n-th name, from 0, is from n to n + 1, from left to right.
    pub fn columns<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        let ticks = names.into_iter().zip(0..);
        let ticks: Vec<_> =
            ticks.map(|(name, at)| Tick { at: f64::from(at) + 0.5, words: name.into() }).collect();
        let to = ticks.len().max(1) as f64;
        Self { label: String::new(), scale: Scale::Linear, from: 0.0, to, ticks, grid: false }
    }

    /// The same, from above to below.
    pub fn rows<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        let columns = Self::columns(names);
        Self { from: columns.to, to: 0.0, ..columns }
    }

    /// With that beside it.
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// Where a number is, from 0 to 1. What is beyond an end is at the end.
    pub fn part(&self, value: f64) -> f64 {
        let on = |value: f64| if self.scale == Scale::Log { value.ln() } else { value };
        let part = (on(value) - on(self.from)) / (on(self.to) - on(self.from));
        if part.is_nan() {
            0.0
        } else {
            part.clamp(0.0, 1.0)
        }
    }
}

/// The least of 1, 2, 5, 10, … and their tenths that is not below `rough`.
pub fn round_step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough * 0.999_999);
    step.unwrap_or(10.0 * power)
}

/// Without trailing zeros, and with a minus sign that is as long as a plus sign.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.strip_prefix('-') {
        Some("0") => "0".into(),
        Some(digits) => format!("−{digits}"),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| &tick.words[..]).collect()
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(words(&Axis::new("", 0.0, 0.31)), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(words(&Axis::new("", -3.0, 2.0)), ["−3", "−2", "−1", "0", "1", "2"]);
        assert_eq!(words(&Axis::new("", 0.0, 6_000.0)).len(), 7);
        assert_eq!(words(&Axis::every("", 3.4, 4.8, 0.2))[7], "4.8");
        assert!(words(&Axis::every("", 0.0, 1.0, 1e-9)).is_empty());
        assert_eq!(words(&Axis::log("", &[0.125, 1.0, 200.0])), ["0.125", "1", "200"]);
        assert_eq!(words(&Axis::new("", 5.0, 5.0)), ["5"]);
    }

    #[test]
    fn numbers_are_where_they_belong() {
        let log = Axis::log("", &[0.01, 1.0, 100.0]);
        assert!((log.part(1.0) - 0.5).abs() < 1e-9);
        assert_eq!((log.part(1e9), log.part(0.0), log.part(-1.0)), (1.0, 0.0, 0.0));
        let rows = Axis::rows(["a", "b"]);
        assert_eq!((rows.part(0.5), rows.part(1.5)), (0.75, 0.25));
        assert_eq!(Axis::new("", 0.0, 0.0).part(0.0), 0.0);
    }
}
