//! What the experiments of this folder have in common: what a guest said, and charts.

#[allow(dead_code)]
#[path = "../../../crates/tierce-cli/src/picture.rs"]
mod picture;

use anyhow::{Context, Result};
use picture::{Anchor, Colour, Part, Picture, Text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const INK: Colour = [40, 40, 40];
const GRID: Colour = [215, 215, 215];
/// Of lines.
pub const COLOURS: [Colour; 5] =
    [[120, 120, 120], [55, 114, 176], [221, 150, 60], [183, 58, 72], [106, 153, 78]];

/// What a guest said, by scenario.
pub type Said = BTreeMap<String, Value>;

/// Read a file of `{"scenario": …, "got": …}`, a line each.
pub fn said(path: &Path) -> Result<Said> {
    let mut said = Said::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let line: Value = serde_json::from_str(line).with_context(|| format!("`{line}`"))?;
        said.insert(line["scenario"].as_str().context("a scenario")?.into(), line["got"].clone());
    }
    Ok(said)
}

/// NaN where there is none: it shows.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Name, colour, points.
pub type Line = (String, Colour, Vec<(f64, f64)>);

/// Lines over one another. An axis: its name, least, most, distance of marks.
pub struct Chart<'a> {
    /// Above it.
    pub title: &'a str,
    /// To the right.
    pub x: (&'a str, f64, f64, f64),
    /// Upwards.
    pub y: (&'a str, f64, f64, f64),
    /// What is drawn.
    pub lines: Vec<Line>,
    /// A dot at each point, unless there are only two.
    pub dots: bool,
}

const LEFT: f32 = 56.0;
const TOP: f32 = 52.0;
const WIDE: f32 = 680.0;

impl Chart<'_> {
    /// Write it as a picture of that height.
    pub fn draw(&self, high: f32, path: &Path) -> Result<()> {
        let bottom = TOP + high;
        let x = |value: f64| LEFT + ((value - self.x.1) / (self.x.2 - self.x.1)) as f32 * WIDE;
        let y = |value: f64| bottom - ((value - self.y.1) / (self.y.2 - self.y.1)) as f32 * high;
        let word = |at, anchor, words: String| {
            Part::Text(Text { at, size: 11.0, anchor, colour: INK, turned: false, words })
        };
        let line = |points, width, colour| Part::Line { points, width, colour, dashed: false };
        let marks = |axis: &(&str, f64, f64, f64)| {
            let (least, step) = (axis.1, axis.3);
            let n = ((axis.2 - least) / step + 1e-9) as usize;
            (0..=n).map(move |at| least + at as f64 * step)
        };
        let mut parts = vec![word((LEFT, 18.0), Anchor::Start, self.title.into())];
        for at in marks(&self.y) {
            parts.push(line(vec![(LEFT, y(at)), (LEFT + WIDE, y(at))], 1.0, GRID));
            parts.push(word((LEFT - 6.0, y(at) + 4.0), Anchor::End, format!("{at}")));
        }
        for at in marks(&self.x) {
            parts.push(line(vec![(x(at), bottom), (x(at), bottom + 4.0)], 1.0, INK));
            parts.push(word((x(at), bottom + 17.0), Anchor::Middle, format!("{at}")));
        }
        parts.push(word((LEFT + WIDE, bottom + 34.0), Anchor::End, self.x.0.into()));
        let mut key = LEFT;
        for (name, colour, points) in &self.lines {
            let at: Vec<_> = points.iter().map(|point| (x(point.0), y(point.1))).collect();
            if self.dots && points.len() > 2 {
                parts.extend(at.iter().map(|&at| Part::Dot { at, radius: 3.0, colour: *colour }));
            }
            parts.push(line(at, 1.6, *colour));
            parts.push(line(vec![(key, 34.0), (key + 18.0, 34.0)], 2.0, *colour));
            parts.push(word((key + 24.0, 38.0), Anchor::Start, name.clone()));
            key += 132.0;
        }
        Picture { width: LEFT + WIDE + 24.0, height: bottom + 44.0, parts }.write(path)
    }
}
