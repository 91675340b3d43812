//! How many random sets are accepted, against utilisation: S-EKG and NPS-F for δ = 1, 2, 4, 8, first-fit decreasing partitioned EDF, and
//! the sufficient tests of global EDF.
//!
//! Sets: four CPUs, 5 to 20 tasks, each number alike, utilisations by Randfixedsum (each at most 1, their sum exactly the point's),
//! periods log-uniform from 5 to 50 ms. Works are rounded down, so that a set at a bound is not above it. Each point has its own seed
//! and gives the same numbers on every machine. What is refused at or below its bound, or
//! by NPS-F where a partition fits, ends the run.
//!
//! usage: bench-retas SETS FOLDER

#[allow(dead_code)]
#[path = "../../../crates/tierce-cli/src/picture.rs"]
mod picture;

use anyhow::{bail, ensure, Context, Result};
use picture::{Anchor, Colour, Part, Picture, Text};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tierce_analysis::generate::{tasks, Draw, Periods, Shares};
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::split::{assign, bound, Algorithm, Costs, Question, Refusal};
use tierce_analysis::{global, utilisation, Task};
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

const INK: Colour = [0x33, 0x33, 0x33];
const GRID: Colour = [0xe4, 0xe4, 0xe4];
const COLOURS: [Colour; 4] = [[0x1f, 0x4e, 0x9c], [0x2e, 0x8b, 0x57], [0xb3, 0x54, 0x1e], [0x8e, 0x3a, 0x9e]];
const PARTITIONED: Colour = [0x55, 0x55, 0x55];
const GLOBAL: Colour = [0xa8, 0xa8, 0xa8];
const WIDTH: f32 = 1120.0;
const HEIGHT: f32 = 470.0;
const TOP: f32 = 74.0;
const FLOOR: f32 = HEIGHT - 100.0;
const PANEL: f32 = 480.0;

/// A point of the curves: utilisation of each CPU in hundredths, and how many sets each test accepts.
type Found = (u32, [usize; COLUMNS]);
type Percent<'a> = &'a dyn Fn((usize, usize)) -> f64;

/// Two panels: the one algorithm and the other, both beside partitioned and global EDF. Dashed: the bounds.
fn drawn(found: &[Found], percent: Percent) -> Picture {
    let title = format!(
        "Share of random task sets that are accepted: {CPUS} CPUs, {} to {} tasks, periods 5 to 50 ms",
        TASKS.0, TASKS.1
    );
    let mut parts = vec![text((64.0, 26.0), 15.0, Anchor::Start, title)];
    for (index, algorithm) in ["S-EKG", "NPS-F"].into_iter().enumerate() {
        let mut panel = Panel { left: 64.0 + index as f32 * (PANEL + 56.0), parts: Vec::new() };
        panel.grid(algorithm);
        let mut keys = vec![
            ("partitioned, first fit".to_string(), PARTITIONED, 8),
            ("global EDF".to_string(), GLOBAL, 9),
        ];
        keys.extend(
            (0..4).map(|delta| (format!("delta {}", DELTAS[delta]), COLOURS[delta], index * 4 + delta)),
        );
        for (_, colour, column) in keys.iter().filter(|(.., column)| *column < 8) {
            panel.bound(*column, *colour);
        }
        for (_, colour, column) in &keys {
            panel.curve(*column, *colour, found, percent);
        }
        // The four first, then what they stand beside.
        keys.rotate_left(2);
        panel.keys(keys.into_iter().map(|(words, colour, _)| (words, colour)));
        parts.append(&mut panel.parts);
    }
    let share = Text {
        at: (20.0, (TOP + FLOOR) / 2.0),
        size: 12.0,
        anchor: Anchor::Middle,
        colour: INK,
        turned: true,
        words: "accepted (%)".into(),
    };
    parts.push(Part::Text(share));
    Picture { width: WIDTH, height: HEIGHT, parts }
}

fn text(at: (f32, f32), size: f32, anchor: Anchor, words: String) -> Part {
    Part::Text(Text { at, size, anchor, colour: INK, turned: false, words })
}

fn line(points: Vec<(f32, f32)>, width: f32, colour: Colour, dashed: bool) -> Part {
    Part::Line { points, width, colour, dashed }
}

struct Panel {
    left: f32,
    parts: Vec<Part>,
}

impl Panel {
    fn x(&self, hundredths: f32) -> f32 {
        let (first, last) = (*POINTS.start() as f32, *POINTS.end() as f32);
        self.left + (hundredths - first) / (last - first) * PANEL
    }

    fn grid(&mut self, title: &str) {
        let left = self.left;
        self.parts.push(text((left + PANEL / 2.0, 56.0), 13.0, Anchor::Middle, title.into()));
        for tick in (50..=100).step_by(10) {
            let at = self.x(tick as f32);
            self.parts.push(line(vec![(at, TOP), (at, FLOOR)], 1.0, GRID, false));
            self.parts.push(text((at, FLOOR + 18.0), 12.0, Anchor::Middle, tick.to_string()));
        }
        for share in (0..=100).step_by(20) {
            let at = y(f64::from(share));
            self.parts.push(line(vec![(left, at), (left + PANEL, at)], 1.0, GRID, false));
            self.parts.push(text((left - 8.0, at + 4.0), 12.0, Anchor::End, share.to_string()));
        }
        let (middle, words) =
            ((left + PANEL / 2.0, FLOOR + 38.0), "utilisation of each CPU (%); dashed: what always fits");
        self.parts.push(text(middle, 12.0, Anchor::Middle, words.into()));
    }

    /// Up to where every set is accepted.
    fn bound(&mut self, column: usize, colour: Colour) {
        let long = Task::new(1, 1 << 50);
        let bound = bound(&[long], &question(column)).unwrap_or_else(|_| whole(0));
        let bound: f32 = (bound * whole(100_000)).round().to_integer().to_string().parse().unwrap_or(0.0);
        let at = self.x(bound / 1000.0);
        self.parts.push(line(vec![(at, TOP), (at, FLOOR)], 1.2, colour, true));
    }

    fn curve(&mut self, column: usize, colour: Colour, found: &[Found], percent: Percent) {
        let at = |(hundredths, accepted): &Found| {
            (self.x(*hundredths as f32), y(percent((column, accepted[column]))))
        };
        let curve = found.iter().map(at).collect();
        self.parts.push(line(curve, 2.2, colour, false));
    }

    fn keys(&mut self, keys: impl Iterator<Item = (String, Colour)>) {
        for (at, (words, colour)) in keys.enumerate() {
            let (right, down) =
                ([0.0, 90.0, 180.0, 270.0, 0.0, 180.0][at], FLOOR + if at < 4 { 62.0 } else { 84.0 });
            let begin = self.left + right;
            self.parts.push(line(vec![(begin, down - 4.0), (begin + 20.0, down - 4.0)], 2.6, colour, false));
            self.parts.push(text((begin + 26.0, down), 12.0, Anchor::Start, words));
        }
    }
}

fn y(share: f64) -> f32 {
    FLOOR - (share / 100.0) as f32 * (FLOOR - TOP)
}
