//! What a plan in force costs ordinary threads, of what ../cpus/table has found.
//!
//! usage: cpus FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES

use anyhow::{Context, Result};
use bench_draw::{number, Rows, COLOURS};
use serde_json::Value;
use std::path::Path;

const CPUS: [u64; 3] = [1, 2, 4];
const MARKS: [f64; 7] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(run), Some(folder)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: cpus FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES")
    };
    let results: Value =
        serde_json::from_str(&std::fs::read_to_string(Path::new(&run).join("results.json"))?)?;
    let rows = results["rows"].as_array().context("rows")?;
    for part in ["emulated", "counted", "here"] {
        let mine: Vec<&Value> = rows
            .iter()
            .filter(|row| row["part"] == part && !row["ratio"].is_null() && !row["better"].is_null())
            .collect();
        if !mine.is_empty() {
            draw(part, &mine, &Path::new(&folder).join(format!("cpus-{part}.png")))?;
        }
    }
    Ok(())
}

/// A heading for each bound, below it a row for each measurement.
fn draw(part: &str, mine: &[&Value], picture: &Path) -> Result<()> {
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    for (bound, heading) in [
        ("at least 0.63", "At least 0.63 of EEVDF's"),
        ("at least 0.85", "At least 0.85 of EEVDF's, on several CPUs"),
        ("at most 1.3", "EEVDF's time / Tierce's: at least 0.77"),
        ("at most 2", "EEVDF's time / Tierce's: at least 0.5"),
    ] {
        rows.push((heading.into(), Vec::new()));
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
            rows.push((name.into(), CPUS.iter().map(|&cpus| on(cpus)).collect()));
        }
    }
    Rows {
        title: &format!("Ordinary threads below a plan, EEVDF = 1, right is better ({part})"),
        x: ("of EEVDF's", &MARKS),
        log: true,
        dots: CPUS
            .iter()
            .zip(&COLOURS[1..])
            .map(|(cpus, colour)| (format!("{cpus} CPU{}", if *cpus > 1 { "s" } else { "" }), *colour))
            .collect(),
        rows,
    }
    .draw(picture)
}
