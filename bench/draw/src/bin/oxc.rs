//! Experiment A of Sun's thesis (OXC 2012), of what the guest of ./run said.
//!
//! usage: oxc FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES

use anyhow::{Context, Result};
use bench_draw::{number, said, Rows, COLOURS};
use std::collections::BTreeMap;
use std::path::Path;

/// Budgets that begin, and end, in the second that is measured.
const TURNS: f64 = 1e9 / 200e3;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(run), Some(folder)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: oxc FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES")
    };
    let said = said(&Path::new(&run).join("said.json"))?;
    let mut units: BTreeMap<u32, f64> =
        said.iter().filter_map(|(name, got)| Some((name.parse().ok()?, number(&got["units"])))).collect();
    let alone = units.remove(&0).context("without containers")?;
    println!("containers  of the CPU   per budget");
    let mut rows = Vec::new();
    for (n, done) in units {
        // Half of the CPU is reserved.
        let lost = 0.5 - done / alone;
        let us = lost * 1e6 / TURNS;
        println!("{n:10} {:9.2} % {us:9.2} us", 100.0 * lost);
        rows.push((n.to_string(), vec![us]));
    }
    Rows {
        title: "What a budget costs, begin and end together (µs), by how many containers there are",
        x: ("µs", &[0.0, 10.0, 20.0, 30.0, 40.0, 50.0]),
        log: false,
        dots: vec![("per budget".into(), COLOURS[1])],
        rows,
    }
    .draw(&Path::new(&folder).join("oxc-containers.png"))
}
