//! Verdicts of the analysis against the simulator: random sets with random phases, by fixed priorities or earliest deadline,
//! alone on a CPU, in a reservation beside others that take all they get, or on two to four CPUs any of which may run any task.
//! A set that a test accepts never misses a deadline, and no job takes longer than its task's response time.
//!
//! usage: verdicts [SETS, default 100000] [SEED, default 2001]; prints what was tried, fails at the first contradiction.

#[path = "../../../tests/seen.rs"]
mod seen;

use seen::Seen;
use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_analysis::{global, priorities, Edf, FixedPriority, Supply, Task};
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation, Stream};
use tierce_trace::report::Report;

const US: u64 = 1_000;
const POLICIES: [&str; 2] = ["fixed priorities", "earliest deadline"];
const PLACES: [&str; 3] = ["alone", "reserved", "global"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Alone,
    /// Budget and period.
    Reserved(u64, u64),
    /// On so many CPUs.
    Global(u32),
}

#[derive(Default)]
struct Count {
    sets: u64,
    accepted: u64,
    jobs: u64,
    missed: u64,
    seen: Seen,
}

/// Times in whole us: periods from 2 to 40 ms, deadlines from half the period on, jitter in one of four.
fn tasks(draws: &mut Stream, cpus: u32, load_percent: u64) -> Vec<Task> {
    let count = draws.between(2, 6) + u64::from(cpus) - 1;
    let task = |_| {
        let period = draws.between(2_000, 40_000);
        let work = (period * load_percent / 100 / count * draws.between(20, 180) / 100).clamp(1, period);
        let deadline = draws.between((period / 2).max(work), period).max(work);
        let jitter = if draws.between(0, 3) == 0 { draws.between(0, period / 4) } else { 0 };
        let (deadline_ns, jitter_ns) = (deadline * US, jitter * US);
        Task { deadline_ns, jitter_ns, ..Task::new(work * US, period * US) }
    };
    (0..count).map(task).collect()
}

fn plan(tasks: &[Task], edf: bool, place: Place, draws: &mut Stream) -> String {
    let policy = if edf { "edf" } else { "fixed-priority" };
    let mut text = match place {
        Place::Alone => format!("[node.app]\npolicy = \"{policy}\"\ncpu = 0\n"),
        Place::Global(cpus) => {
            format!("machine.cpus = {cpus}\n[node.app]\npolicy = \"{policy}\"\ncpus = \"all\"\n")
        }
        Place::Reserved(budget, period) => {
            // Two others take the rest of the CPU, in periods of their own.
            let rest = |own: u64| own * (period - budget) / period / 2;
            let (a, b) = (draws.between(1_000, 30_000), draws.between(1_000, 30_000));
            let mut text = format!(
                "[node.res]\npolicy = \"reservation\"\ncpu = 0\n[node.app]\npolicy = \"{policy}\"\n\
                 under.res = {{ budget = \"{budget}us\", period = \"{period}us\" }}\n"
            );
            for (name, own) in [("a", a), ("b", b)].into_iter().filter(|(_, own)| rest(*own) > 0) {
                let budget = rest(own);
                let _ = writeln!(
                    text,
                    "[task.{name}]\nunder.res = {{ budget = \"{budget}us\", period = \"{own}us\" }}\nload = \"busy\""
                );
            }
            text
        }
    };
    for (index, task) in tasks.iter().enumerate() {
        let edge = if edf { String::new() } else { format!("priority = {}", tasks.len() - index) };
        let phase = draws.between(0, task.period_ns / US);
        let _ = writeln!(
            text,
            "[task.t{index}]\nunder.app = {{ {edge} }}\nload = {{ period = \"{}us\", work = \"{}us\", deadline = \"{}us\", \
             jitter = \"{}us\", phase = \"{phase}us\" }}",
            task.period_ns / US,
            task.work_ns / US,
            task.deadline_ns / US,
            task.jitter_ns / US
        );
    }
    text
}

/// The tests' responses; `None`: a task of the set may be late.
fn accept(set: &[Task], by_deadline: bool, place: Place) -> Option<Vec<u64>> {
    let supply = match place {
        Place::Alone => Supply::WHOLE,
        Place::Reserved(budget, period) => Supply::periodic(budget * US, period * US)?,
        Place::Global(cpus) => {
            let levels: Vec<_> = (0..).take(set.len()).collect();
            let found = match by_deadline {
                true => global::earliest_deadline(set, cpus),
                false => global::fixed_priority(set, &levels, cpus),
            };
            return found.expect("it is supported").tasks.iter().map(|shown| shown.response_ns).collect();
        }
    };
    if by_deadline {
        let mut edf = Edf::new();
        edf.schedulable(set, &supply).then(|| edf.responses(set, &supply).to_vec())
    } else {
        let found = FixedPriority::new().responses(set, &supply).to_vec();
        set.iter().zip(&found).all(|(task, response)| response.meets(task.deadline_ns)).then_some(found)
    }
    .map(|found| found.iter().map(|response| response.ns().unwrap_or(u64::MAX)).collect())
}

/// Plays that many sets for so long each, and tells of progress.
///
/// # Panics
/// At the first contradiction.
pub fn play(sets: u64, seed: u64, for_ms: u64, mut progress: impl FnMut(u64)) -> String {
    let mut counts: [[Count; 3]; 2] = Default::default(); // by policy, by place
    for index in 0..sets {
        let mut draws = Stream::new(seed, "verdicts", index);
        let by_deadline = index % 2 == 0;
        let (kind, place, load) = place(index / 2 % 3, &mut draws);
        let cpus = if let Place::Global(cpus) = place { cpus } else { 1 };
        let mut set = tasks(&mut draws, cpus, load);
        let order = priorities::deadline_monotonic(&set);
        set = order.into_iter().map(|index| set[index]).collect();
        let accepted = accept(&set, by_deadline, place);
        let text = plan(&set, by_deadline, place, &mut draws);
        let plan = Plan::parse(&text, "verdicts")
            .unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()));
        let mut simulation =
            Simulation::new(&plan, Options { seed: index, ..Options::default() }).expect("it fits");
        simulation.run_until(for_ms * 1_000 * US).expect("no invariant is broken");
        let report = simulation.report();
        let count = &mut counts[usize::from(by_deadline)][kind];
        count.sets += 1;
        match accepted {
            None => count.missed += u64::from(report.tasks.iter().any(|task| task.misses > 0)),
            Some(responses) => {
                count.accepted += 1;
                count.jobs += report.tasks.iter().map(|task| task.jobs).sum::<u64>();
                let which = || format!("set {index} of seed {seed}:\n{text}");
                compare(&report, &responses, &mut count.seen, which);
            }
        }
        progress(index + 1);
    }
    for (policy, counts) in POLICIES.iter().zip(&counts) {
        for (place, count) in PLACES.iter().zip(counts) {
            count.seen.print(&format!("{policy}, {place}"));
        }
    }
    format!(
        "seed {seed}: {sets} sets, none that was accepted missed a deadline in {for_ms} ms\n{}",
        table(&counts)
    )
}

/// One of three kinds, and for how much load, in percent.
fn place(kind: u64, draws: &mut Stream) -> (usize, Place, u64) {
    match kind {
        0 => (0, Place::Alone, draws.between(40, 100)),
        1 => {
            let period = draws.between(1_000, 10_000);
            let budget = period * draws.between(50, 95) / 100;
            (1, Place::Reserved(budget, period), draws.between(40, 100) * budget / period)
        }
        _ => {
            let cpus = draws.between(2, 4);
            (2, Place::Global(cpus as u32), draws.between(30, 80) * cpus)
        }
    }
}

/// No deadline is missed, and no job takes longer than its task's response time.
fn compare(report: &Report, responses: &[u64], seen: &mut Seen, which: impl Fn() -> String) {
    let misses: u64 = report.tasks.iter().map(|task| task.misses).sum();
    assert!(misses == 0, "accepted, with {misses} misses: {}", which());
    for task in &report.tasks {
        let Some(at) = task.name.strip_prefix('t').and_then(|at| at.parse::<usize>().ok()) else {
            continue; // a neighbour
        };
        if let Some(spread) = &task.response_ns {
            seen.add(spread.max, responses[at], || format!("t{at} of {}", which()));
        }
    }
}

fn table(counts: &[[Count; 3]; 2]) -> String {
    let mut table =
        "                              sets  accepted  their jobs   refused  of these missed\n".to_string();
    for (policy, counts) in POLICIES.iter().zip(counts) {
        for (place, count) in PLACES.iter().zip(counts) {
            let refused = count.sets - count.accepted;
            let _ = writeln!(
                table,
                "{policy:<18}{place:<9}{:>7} {:>9} {:>11} {refused:>9} {:>16}",
                count.sets, count.accepted, count.jobs, count.missed
            );
        }
    }
    table
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (sets, seed) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(2001));
    let table = play(sets, seed, 400, |done| {
        if done % 10_000 == 0 {
            eprintln!("{done} of {sets} sets");
        }
    });
    print!("{table}");
}
