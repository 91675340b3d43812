//! Figures 11.3 and 11.4 of Regehr's thesis (HLS, 2001), of what ../stolen/run has simulated.
//!
//! usage: stolen FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES

use anyhow::{Context, Result};
use bench_draw::{Chart, Line, COLOURS};
use std::path::Path;

const WAYS: [(&str, &str); 3] = [("rez", "Rez"), ("rez-c", "Rez-C"), ("rez-fb", "Rez-FB")];

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(run), Some(folder)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: stolen FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES")
    };
    let (run, folder) = (Path::new(&run), Path::new(&folder));
    let misses = rows(&run.join("misses.csv"))?;
    for (model, what, file) in [
        ("steady", "interrupts come one after the other, deferred calls are measured", "stolen-misses.png"),
        ("drawn", "interrupts are drawn (Poisson), deferred calls are measured", "stolen-misses-drawn.png"),
    ] {
        let of = |model: &str, way: &str, name: &str, colour: usize| -> Line {
            let mine = misses.iter().filter(|row| row[..3] == [model, way, "part"].map(String::from));
            (name.to_string(), COLOURS[colour], mine.map(|row| (number(&row[3]), number(&row[4]))).collect())
        };
        let mut lines = vec![of("idle", "rez", "Rez, idle", 0)];
        lines.extend(WAYS.iter().zip(1..).map(|((way, name), colour)| of(model, way, name, colour)));
        Chart {
            title: &format!("Deadlines missed (%): {what}"),
            x: ("reserved beyond 4 ms (%)", -10.0, 40.0, 5.0),
            y: ("", 0.0, 100.0, 20.0),
            lines,
            dots: false,
        }
        .draw(280.0, &folder.join(file))?;
    }
    let burst = rows(&run.join("burst.csv"))?;
    let of = |column: usize, unit: f64, (way, name): (&str, &str), colour: usize| -> Line {
        let mine = burst.iter().filter(|row| row[0] == way);
        (
            name.to_string(),
            COLOURS[colour],
            mine.map(|row| (number(&row[1]), number(&row[column]) / unit)).collect(),
        )
    };
    for (column, unit, title, high, range, file) in [
        (2, 4e4, "Stolen in each period (% of 4 ms)", 140.0, (0.0, 20.0, 5.0), "stolen-burst-stolen.png"),
        (3, 1e6, "C: the budget of each period (ms)", 160.0, (3.4, 4.8, 0.2), "stolen-burst-budget.png"),
        (4, 1e6, "P: what the task receives of it (ms)", 160.0, (3.4, 4.8, 0.2), "stolen-burst-received.png"),
    ] {
        Chart {
            title,
            x: ("ms; interrupts from 1000 to 2000", 0.0, 3000.0, 500.0),
            y: ("", range.0, range.1, range.2),
            lines: WAYS.iter().zip(1..).map(|(way, colour)| of(column, unit, *way, colour)).collect(),
            dots: false,
        }
        .draw(high, &folder.join(file))?;
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
