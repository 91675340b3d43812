//! How many random sets are accepted, against utilisation: S-EKG and NPS-F for δ = 1, 2, 4, 8, first-fit decreasing partitioned EDF, and
//! the sufficient tests of global EDF.
//!
//! Sets: four CPUs, 5 to 20 tasks, each number alike, utilisations by Randfixedsum (each at most 1, their sum exactly the point's),
//! periods log-uniform from 5 to 50 ms. Works are rounded down, so that a set at a bound is not above it. Each point has its own seed
//! and gives the same numbers on every machine. What is refused at or below its bound, or
//! by NPS-F where a partition fits, ends the run.
//!
//! usage: bench-retas SETS FOLDER

use anyhow::{bail, ensure, Context, Result};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tierce_analysis::generate::{tasks, Draw, Periods, Shares};
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::split::{assign, bound, Algorithm, Costs, Question, Refusal};
use tierce_analysis::{global, utilisation, Task};
use tierce_figure::{Axis, Figure, Legend, Look, Panel, Shape};
use tierce_guarantee::whole;

const SEED: u64 = 2001;
const CPUS: u32 = 4;
const TASKS: (usize, usize) = (5, 20);
const DELTAS: [u32; 4] = [1, 2, 4, 8];
/// Utilisation of each CPU, in hundredths.
const POINTS: std::ops::RangeInclusive<u32> = 50..=100;
/// The points of the page's table.
const SHOWN: [u32; 8] = [60, 65, 70, 75, 80, 85, 90, 95];

/// Global EDF's tests take most of the time, so they see every eighth round through the numbers of tasks only.
fn is_global(round: usize) -> bool {
    round / (TASKS.1 - TASKS.0 + 1) % 8 == 0
}

/// S-EKG for each δ, NPS-F for each δ, partitioned, global.
const COLUMNS: usize = 2 * DELTAS.len() + 2;

fn question(column: usize) -> Question {
    let algorithm = if column < DELTAS.len() { Algorithm::SEkg } else { Algorithm::NpsF };
    let delta = DELTAS[column % DELTAS.len()];
    Question { algorithm, cpus: CPUS, delta, costs: Costs::default(), piece_min_ns: 0, rest_ns: 0 }
}

fn name(column: usize) -> String {
    match column {
        0..4 => format!("S-EKG {}", DELTAS[column]),
        4..8 => format!("NPS-F {}", DELTAS[column - 4]),
        8 => "partitioned EDF".into(),
        _ => "global EDF".into(),
    }
}

fn set(hundredths: u32, draw: &mut Draw, count: usize) -> Result<Vec<Task>> {
    let sum = f64::from(hundredths * CPUS) / 100.0;
    let kind = Shares::RandFixedSum { tasks: count, sum, each: (0.0, 1.0) };
    let drawn = tasks(&kind, &Periods::LogUniform(5_000_000, 50_000_000), draw);
    let drawn = drawn.map_err(|refusal| anyhow::anyhow!("{}: {}", refusal.rule, refusal.message))?;
    let less = |task: &Task| Task::new(task.work_ns.saturating_sub(1).max(1), task.period_ns);
    Ok(drawn.iter().map(less).collect())
}

/// How many of the point's sets each test accepts.
fn point(hundredths: u32, sets: usize) -> Result<[usize; COLUMNS]> {
    let mut accepted = [0; COLUMNS];
    let mut draw = Draw::new(SEED + u64::from(hundredths) * 1_000_003);
    for round in 0..sets {
        let count = TASKS.0 + round % (TASKS.1 - TASKS.0 + 1);
        let set = set(hundredths, &mut draw, count)?;
        let mut without = 0; // of NPS-F's
        for (column, accepted) in accepted.iter_mut().enumerate().take(2 * DELTAS.len()) {
            match assign(&set, &question(column)) {
                Ok(_) => *accepted += 1,
                Err(Refusal::NoRoom { asked, bound }) => {
                    without += usize::from(column >= DELTAS.len());
                    ensure!(asked > bound, "{} refuses {asked}, bound {bound}: {set:?}", name(column));
                }
                Err(other) => bail!("{}: {set:?}", other.rule()),
            }
        }
        let fits = |members: &[usize]| {
            let on: Vec<_> = members.iter().map(|index| set[*index]).collect();
            utilisation(&on) <= whole(1)
        };
        let placed = partition(&set, CPUS as usize, Fit::First, fits);
        let placed = matches!(placed, Partition::Fits(_));
        ensure!(!placed || without == 0, "NPS-F refuses what a partition fits: {set:?}");
        accepted[8] += usize::from(placed);
        if is_global(round) {
            let shown = global::earliest_deadline(&set, CPUS);
            accepted[9] += usize::from(shown.is_ok_and(|shown| shown.schedulable));
        }
    }
    Ok(accepted)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let sets: usize = arguments.next().context("SETS")?.parse().context("SETS is a number")?;
    let folder = arguments.next().context("FOLDER")?;
    let (folder, points) = (Path::new(&folder), POINTS.collect::<Vec<_>>());
    eprintln!("seed {SEED}, {sets} sets at each of {} points", points.len());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<Vec<_>> {
        let mut found = Vec::new();
        while let Some(hundredths) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.push((*hundredths, point(*hundredths, sets)?));
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done % 10 == 0 || done == points.len() {
                eprintln!("{done} of {} points", points.len());
            }
        }
        Ok(found)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join =
            |thread: std::thread::ScopedJoinHandle<Result<Vec<_>>>| thread.join().expect("a thread ends");
        threads.into_iter().map(join).collect::<Result<Vec<_>>>().map(|parts| parts.concat())
    })?;
    found.sort_unstable();
    let globally = (0..sets).filter(|round| is_global(*round)).count();
    let percent = |(column, accepted): (usize, usize)| {
        accepted as f64 * 100.0 / if column == 9 { globally } else { sets } as f64
    };
    let mut csv = String::from("utilisation_per_cpu,sets,sets_of_global_edf");
    (0..COLUMNS).for_each(|column| csv += &format!(",{}", name(column).to_lowercase().replace(' ', "_")));
    for (hundredths, accepted) in &found {
        let _ = write!(csv, "\n{:.2},{sets},{globally}", f64::from(*hundredths) / 100.0);
        accepted.iter().for_each(|accepted| csv += &format!(",{accepted}"));
    }
    csv.push('\n');
    std::fs::write(folder.join("retas-acceptance.csv"), csv)?;
    drawn(&found, &percent).write(&folder.join("retas-acceptance.png"))?;
    let header: Vec<_> = SHOWN.iter().map(|hundredths| format!("{hundredths} %")).collect();
    println!("| accepted, % of {sets} sets | {} |\n|---|{}", header.join(" | "), "---|".repeat(SHOWN.len()));
    for column in 0..COLUMNS {
        let shown = found.iter().filter(|(hundredths, _)| SHOWN.contains(hundredths));
        let cells: Vec<_> =
            shown.map(|(_, accepted)| format!("{:.1}", percent((column, accepted[column])))).collect();
        println!(
            "| {} | {} |",
            name(column).replace("G ", "G, δ = ").replace("F ", "F, δ = "),
            cells.join(" | ")
        );
    }
    Ok(())
}

/// A point of the curves: utilisation of each CPU in hundredths, and how many sets each test accepts.
type Found = (u32, [usize; COLUMNS]);
type Percent<'a> = &'a dyn Fn((usize, usize)) -> f64;

/// Two panels: the one algorithm and the other, both beside partitioned and global EDF. Dotted: the bounds.
fn drawn(found: &[Found], percent: Percent) -> Figure {
    let title = format!(
        "Share of random task sets that are accepted: {CPUS} CPUs, {} to {} tasks, periods 5 to 50 ms",
        TASKS.0, TASKS.1
    );
    let panels = [("S-EKG", 0), ("NPS-F", 4)].map(|(name, first)| panel(name, first, found, percent));
    let mut figure = Figure::stack(title, Vec::new()).wide(1120.0).legend(Legend::Below);
    figure.rows.push(panels.into());
    figure
}

/// The curves of these columns, and of the two that they are compared with.
fn panel(name: &str, first: usize, found: &[Found], percent: Percent) -> Panel {
    let [from, to] = [*POINTS.start(), *POINTS.end()].map(f64::from);
    let x = Axis::every("utilisation of each CPU (%); dotted: what always fits", from, to, 10.0);
    let y = Axis::every("accepted (%)", 0.0, 100.0, 20.0);
    let deltas = (0..4).map(|at| (format!("δ = {}", DELTAS[at]), Look::Number(at), first + at));
    let others = [
        ("partitioned, first fit".to_string(), Look::Number(4), 8),
        ("global EDF".to_string(), Look::Reference, 9),
    ];
    let lines: Vec<_> = deltas.chain(others).collect();
    let mut panel = Panel::new(300.0, x, y).titled(name);
    for (_, look, column) in lines.iter().filter(|(.., column)| *column < 8) {
        panel = panel.with("", *look, Shape::Rules(vec![always(*column)]));
    }
    for (name, look, column) in lines {
        let at =
            |(hundredths, accepted): &Found| [f64::from(*hundredths), percent((column, accepted[column]))];
        panel = panel.with(name, look, Shape::Line(found.iter().map(at).collect()));
    }
    panel
}

/// Up to where every set is accepted, in hundredths.
fn always(column: usize) -> f64 {
    let long = Task::new(1, 1 << 50);
    let bound = bound(&[long], &question(column)).unwrap_or_else(|_| whole(0));
    let bound: f64 = (bound * whole(100_000)).round().to_integer().to_string().parse().unwrap_or(0.0);
    bound / 1000.0
}
