//! Experiment A of Sun's thesis (OXC 2012), of what the guest of ./run said.

#[path = "../figures.rs"]
mod figures;

use anyhow::{Context, Result};
use figures::{axis, folders, number, rows, said};
use std::collections::BTreeMap;
use tierce_figure::{Figure, Look};

/// Budgets that begin, and end, in the second that is measured.
const TURNS: f64 = 1e9 / 200e3;

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    let said = said(&run.join("said.json"))?;
    let mut units: BTreeMap<u32, f64> =
        said.iter().filter_map(|(name, got)| Some((name.parse().ok()?, number(&got["units"])))).collect();
    let alone = units.remove(&0).context("without containers")?;
    println!("containers  of the CPU   per budget");
    let mut lines = Vec::new();
    for (n, done) in units {
        // Half of the CPU is reserved.
        let lost = 0.5 - done / alone;
        let us = lost * 1e6 / TURNS;
        println!("{n:10} {:9.2} % {us:9.2} us", 100.0 * lost);
        lines.push((n.to_string(), vec![us]));
    }
    let title = "What a budget costs, begin and end together (µs), by how many containers there are";
    let markers = [("per budget".into(), Look::Number(0))];
    Figure::new(title, rows(axis(("µs", 0.0, 50.0, 10.0)), &markers, &lines))
        .write(&folder.join("oxc-containers.png"))
}
