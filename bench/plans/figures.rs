//! The papers' plans, simulated and enforced, of what ../plans/table has found.

#[path = "../figures.rs"]
mod figures;

use anyhow::{Context, Result};
use figures::{folders, rows};
use tierce_figure::{Axis, Figure, Look};

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    let mut lines = Vec::new();
    let mut last = String::new();
    for line in std::fs::read_to_string(run.join("shares.csv"))?.lines().skip(1) {
        let [plan, part, simulated, enforced] = line.split(',').collect::<Vec<_>>()[..] else {
            anyhow::bail!("`{line}`")
        };
        if plan != last {
            lines.push((plan.to_string(), Vec::new()));
            last = plan.into();
        }
        let share = |text: &str| text.parse::<f64>().with_context(|| format!("`{line}`"));
        lines.push((part.to_string(), vec![share(simulated)?, share(enforced)?]));
    }
    let markers = [("simulated".into(), Look::Number(1)), ("enforced".into(), Look::Number(0))];
    let x = Axis::log("%", &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]);
    Figure::new("What each part of a plan gets (% of a CPU)", rows(x, &markers, &lines))
        .write(&folder.join("plans.png"))
}
