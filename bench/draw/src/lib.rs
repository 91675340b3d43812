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
const RIGHT: f32 = 24.0;
const BELOW: f32 = 44.0;

impl Chart<'_> {
    /// Write it as a picture of that height.
    pub fn draw(&self, high: f32, path: &Path) -> Result<()> {
        stack(&[(self, high)], path)
    }

    /// What it is made of, the place for its title from there downwards.
    fn parts(&self, from: f32, high: f32) -> Vec<Part> {
        let bottom = from + TOP + high;
        let x = |value: f64| LEFT + ((value - self.x.1) / (self.x.2 - self.x.1)) as f32 * WIDE;
        let y = |value: f64| bottom - ((value - self.y.1) / (self.y.2 - self.y.1)) as f32 * high;
        let marks = |axis: &(&str, f64, f64, f64)| {
            let (least, step) = (axis.1, axis.3);
            let n = ((axis.2 - least) / step + 1e-9) as usize;
            (0..=n).map(move |at| least + at as f64 * step)
        };
        let mut parts = vec![word((LEFT, from + 18.0), Anchor::Start, self.title.into())];
        for at in marks(&self.y) {
            parts.push(line(vec![(LEFT, y(at)), (LEFT + WIDE, y(at))], 1.0, GRID));
            parts.push(word((LEFT - 6.0, y(at) + 4.0), Anchor::End, format!("{at}")));
        }
        for at in marks(&self.x) {
            parts.push(line(vec![(x(at), bottom), (x(at), bottom + 4.0)], 1.0, INK));
            parts.push(word((x(at), bottom + 17.0), Anchor::Middle, format!("{at}")));
        }
        parts.push(word((LEFT + WIDE, bottom + 34.0), Anchor::End, self.x.0.into()));
        let mut names = LEFT;
        for (name, colour, points) in &self.lines {
            let at: Vec<_> = points.iter().map(|point| (x(point.0), y(point.1))).collect();
            if self.dots && points.len() > 2 {
                parts.extend(at.iter().map(|&at| Part::Dot { at, radius: 3.0, colour: *colour }));
            }
            parts.push(line(at, 1.6, *colour));
            parts.push(line(vec![(names, from + 34.0), (names + 18.0, from + 34.0)], 2.0, *colour));
            parts.push(word((names + 24.0, from + 38.0), Anchor::Start, name.clone()));
            names += 132.0;
        }
        parts
    }
}

/// Write charts as one picture, each of its height, one below the other.
pub fn stack(charts: &[(&Chart, f32)], path: &Path) -> Result<()> {
    let (mut parts, mut height) = (Vec::new(), 0.0);
    for (chart, high) in charts {
        parts.extend(chart.parts(height, *high));
        height += TOP + high + BELOW;
    }
    Picture { width: LEFT + WIDE + RIGHT, height, parts }.write(path)
}

/// A row for each name, a dot in it for each value.
pub struct Rows<'a> {
    /// Above it.
    pub title: &'a str,
    /// To the right: its name and its marks, the first and the last at the ends.
    pub x: (&'a str, &'a [f64]),
    /// Equal ratios are as far from each other, not equal differences.
    pub log: bool,
    /// Name and colour of the dots, in the order of the values.
    pub dots: Vec<(String, Colour)>,
    /// A row without values is a heading.
    pub rows: Vec<(String, Vec<f64>)>,
}

impl Rows<'_> {
    /// Write it as a picture.
    pub fn draw(&self, path: &Path) -> Result<()> {
        const NAMES: f32 = 150.0;
        const ROW: f32 = 15.0;
        let bottom = TOP + ROW * self.rows.len() as f32;
        let scale = |value: f64| if self.log { value.ln() } else { value };
        let (least, most) = (scale(self.x.1[0]), scale(self.x.1[self.x.1.len() - 1]));
        let x = |value: f64| NAMES + ((scale(value) - least) / (most - least)) as f32 * (LEFT + WIDE - NAMES);
        let mut parts = vec![word((NAMES, 18.0), Anchor::Start, self.title.into())];
        for &at in self.x.1 {
            parts.push(line(vec![(x(at), TOP), (x(at), bottom)], 1.0, GRID));
            parts.push(word((x(at), bottom + 17.0), Anchor::Middle, format!("{at}")));
        }
        parts.push(word((LEFT + WIDE, bottom + 34.0), Anchor::End, self.x.0.into()));
        for ((name, values), at) in self.rows.iter().zip(0..) {
            let y = TOP + ROW * (at as f32 + 0.5);
            let (from, anchor) =
                if values.is_empty() { (8.0, Anchor::Start) } else { (NAMES - 8.0, Anchor::End) };
            parts.push(word((from, y + 4.0), anchor, name.clone()));
            for (n, (value, (_, colour))) in values.iter().zip(&self.dots).enumerate() {
                if !value.is_finite() {
                    continue; // not measured
                }
                // What comes later is smaller: both are seen where they are one.
                parts.push(Part::Dot { at: (x(*value), y), radius: self.radius(n), colour: *colour });
            }
        }
        let mut names = NAMES;
        for (n, (name, colour)) in self.dots.iter().enumerate() {
            parts.push(Part::Dot { at: (names + 8.0, 34.0), radius: self.radius(n), colour: *colour });
            parts.push(word((names + 20.0, 38.0), Anchor::Start, name.clone()));
            names += 132.0;
        }
        Picture { width: LEFT + WIDE + RIGHT, height: bottom + BELOW, parts }.write(path)
    }

    /// Of the n-th dot of a row.
    fn radius(&self, n: usize) -> f32 {
        5.0 - 4.0 * n as f32 / self.dots.len() as f32
    }
}

fn word(at: (f32, f32), anchor: Anchor, words: String) -> Part {
    Part::Text(Text { at, size: 11.0, anchor, colour: INK, turned: false, words })
}

fn line(points: Vec<(f32, f32)>, width: f32, colour: Colour) -> Part {
    Part::Line { points, width, colour, dashed: false }
}
