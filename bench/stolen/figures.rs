//! Figures 11.3 and 11.4 of Regehr's thesis (HLS, 2001), of what ../stolen/run has simulated.

#[path = "../figures.rs"]
mod figures;

use anyhow::{Context, Result};
use figures::{axis, chart, folders, Line};
use std::path::Path;
use tierce_figure::{Figure, Look};

const WAYS: [(&str, &str); 3] = [("rez", "Rez"), ("rez-c", "Rez-C"), ("rez-fb", "Rez-FB")];

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    let misses = rows(&run.join("misses.csv"))?;
    for (model, what, file) in [
        ("steady", "interrupts come one after the other, deferred calls are measured", "stolen-misses.png"),
        ("drawn", "interrupts are drawn (Poisson), deferred calls are measured", "stolen-misses-drawn.png"),
    ] {
        let of = |model: &str, way: &str, name: &str, look: Look| -> Line {
            let mine = misses.iter().filter(|row| row[..3] == [model, way, "part"].map(String::from));
            (name.to_string(), look, mine.map(|row| [number(&row[3]), number(&row[4])]).collect())
        };
        let mut lines = vec![of("idle", "rez", "Rez, idle", Look::Reference)];
        lines
            .extend(WAYS.iter().zip(0..).map(|((way, name), look)| of(model, way, name, Look::Number(look))));
        let (x, y) = (axis(("reserved beyond 4 ms (%)", -10.0, 40.0, 5.0)), axis(("", 0.0, 100.0, 20.0)));
        let title = format!("Deadlines missed (%): {what}");
        Figure::new(title, chart(280.0, x, y, lines, true)).write(&folder.join(file))?;
    }
    let burst = rows(&run.join("burst.csv"))?;
    let of = |column: usize, unit: f64, (way, name): (&str, &str), look: Look| -> Line {
        let mine = burst.iter().filter(|row| row[0] == way);
        (name.to_string(), look, mine.map(|row| [number(&row[1]), number(&row[column]) / unit]).collect())
    };
    for (column, unit, title, high, range, file) in [
        (2, 4e4, "Stolen in each period (% of 4 ms)", 140.0, (0.0, 20.0, 5.0), "stolen-burst-stolen.png"),
        (3, 1e6, "C: the budget of each period (ms)", 160.0, (3.4, 4.8, 0.2), "stolen-burst-budget.png"),
        (4, 1e6, "P: what the task receives of it (ms)", 160.0, (3.4, 4.8, 0.2), "stolen-burst-received.png"),
    ] {
        let x = axis(("ms; interrupts from 1000 to 2000", 0.0, 3000.0, 500.0));
        let y = axis(("", range.0, range.1, range.2));
        let lines =
            WAYS.iter().zip(0..).map(|(way, look)| of(column, unit, *way, Look::Number(look))).collect();
        Figure::new(title, chart(high, x, y, lines, false)).write(&folder.join(file))?;
    }
    Ok(())
}

/// Fields of the lines of a table, its head left out.
fn rows(path: &Path) -> Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}
