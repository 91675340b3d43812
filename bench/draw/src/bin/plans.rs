//! The papers' plans, simulated and enforced, of what ../plans/table has found.
//!
//! usage: plans FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES

use anyhow::{Context, Result};
use bench_draw::{Rows, COLOURS};
use std::path::Path;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(run), Some(folder)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: plans FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES")
    };
    let mut rows = Vec::new();
    let mut last = String::new();
    for line in std::fs::read_to_string(Path::new(&run).join("shares.csv"))?.lines().skip(1) {
        let [plan, part, simulated, enforced] = line.split(',').collect::<Vec<_>>()[..] else {
            anyhow::bail!("`{line}`")
        };
        if plan != last {
            rows.push((plan.to_string(), Vec::new()));
            last = plan.into();
        }
        let share = |text: &str| text.parse::<f64>().with_context(|| format!("`{line}`"));
        rows.push((part.to_string(), vec![share(simulated)?, share(enforced)?]));
    }
    Rows {
        title: "What each part of a plan gets (% of a CPU)",
        x: ("%", &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]),
        log: true,
        dots: vec![("simulated".into(), COLOURS[2]), ("enforced".into(), COLOURS[1])],
        rows,
    }
    .draw(&Path::new(&folder).join("plans.png"))
}
