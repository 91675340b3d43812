//! What a plan in force costs ordinary threads, of what ../cpus/table has found.

#[path = "../figures.rs"]
mod figures;

use anyhow::{Context, Result};
use figures::{folders, number, rows};
use serde_json::Value;
use std::path::Path;
use tierce_figure::{Axis, Figure, Look};

const CPUS: [u64; 3] = [1, 2, 4];
const MARKS: [f64; 7] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    let results: Value = serde_json::from_str(&std::fs::read_to_string(run.join("results.json"))?)?;
    let found = results["rows"].as_array().context("rows")?;
    for part in ["emulated", "counted", "here"] {
        let mine: Vec<&Value> = found
            .iter()
            .filter(|row| row["part"] == part && !row["ratio"].is_null() && !row["better"].is_null())
            .collect();
        if !mine.is_empty() {
            draw(part, &mine, &folder.join(format!("cpus-{part}.png")))?;
        }
    }
    Ok(())
}

/// A heading for each bound, below it a row for each measurement.
fn draw(part: &str, mine: &[&Value], picture: &Path) -> Result<()> {
    let mut lines: Vec<(String, Vec<f64>)> = Vec::new();
    for (bound, heading) in [
        ("at least 0.63", "At least 0.63 of EEVDF's"),
        ("at least 0.85", "At least 0.85 of EEVDF's, on several CPUs"),
        ("at most 1.3", "EEVDF's time / Tierce's: at least 0.77"),
        ("at most 2", "EEVDF's time / Tierce's: at least 0.5"),
    ] {
        lines.push((heading.into(), Vec::new()));
        let mut names: Vec<&str> = Vec::new();
        for row in mine.iter().filter(|row| row["bound"] == bound) {
            let name = row["what"].as_str().context("what")?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let on = |cpus| {
                let found = mine.iter().find(|row| row["what"] == name && row["cpus"] == cpus);
                found.map_or(f64::NAN, |row| number(&row["better"]).clamp(MARKS[0], MARKS[MARKS.len() - 1]))
            };
            lines.push((name.into(), CPUS.iter().map(|&cpus| on(cpus)).collect()));
        }
    }
    let title = format!("Ordinary threads below a plan, EEVDF = 1, right is better ({part})");
    let name = |cpus: u64| format!("{cpus} CPU{}", if cpus > 1 { "s" } else { "" });
    let markers: Vec<_> =
        CPUS.iter().zip(0..).map(|(cpus, look)| (name(*cpus), Look::Number(look))).collect();
    Figure::new(title, rows(Axis::log("of EEVDF's", &MARKS), &markers, &lines)).write(picture)
}
