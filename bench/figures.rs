//! What the figures of this folder have in common: what a guest said, and charts of it. Each `figures.rs` is an example of
//! `tierce-figure`, and called with two folders: of the run, and of the pictures.

#![allow(dead_code, reason = "each uses some of it")]

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tierce_figure::{Axis, Look, Panel, Place, Point, Shape};

/// The folders of the run and of the pictures.
pub fn folders() -> Result<(PathBuf, PathBuf)> {
    let mut args = std::env::args().skip(1).map(PathBuf::from);
    match (args.next(), args.next(), args.next()) {
        (Some(run), Some(pictures), None) => Ok((run, pictures)),
        _ => anyhow::bail!("two arguments: FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES"),
    }
}

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

/// NaN where there is none: it shows in tables, and figures leave it out.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// A name, how it looks, the points.
pub type Line = (String, Look, Vec<Point>);

/// An axis: its name, least, most, distance of marks.
pub fn axis((label, least, most, step): (&str, f64, f64, f64)) -> Axis {
    Axis::every(label, least, most, step)
}

/// Lines over one another, with markers or without.
pub fn chart(height: f64, x: Axis, y: Axis, lines: Vec<Line>, markers: bool) -> Panel {
    lines.into_iter().fold(Panel::new(height, x, y), |panel, (name, look, mut points)| {
        points.retain(|point| point.iter().all(|number| number.is_finite()));
        let shape = if markers { Shape::Line(points) } else { Shape::Plain(points) };
        panel.with(name, look, shape)
    })
}

/// A row for each name, a marker in it for each value; a row without values is a heading. Of the markers: name and look, in the order of
/// the values.
pub fn rows(x: Axis, markers: &[(String, Look)], rows: &[(String, Vec<f64>)]) -> Panel {
    let names = rows.iter().map(|(name, values)| if values.is_empty() { "" } else { name });
    let from = x.from;
    let y = Axis { grid: true, ..Axis::rows(names) };
    let mut panel = Panel::new(18.0 * rows.len() as f64, x, y);
    for (n, (name, look)) in markers.iter().enumerate() {
        let of =
            |((_, values), row): (&(String, Vec<f64>), u32)| Some([*values.get(n)?, f64::from(row) + 0.5]);
        let points = rows.iter().zip(0..).filter_map(of).filter(|point| point[0].is_finite());
        panel = panel.with(name, *look, Shape::Points(points.collect()));
    }
    let headings = rows.iter().zip(0..).filter(|((_, values), _)| values.is_empty());
    headings.fold(panel, |panel, ((name, _), row): (_, u32)| {
        panel.note([from, f64::from(row) + 0.5], name, Place::Right)
    })
}
