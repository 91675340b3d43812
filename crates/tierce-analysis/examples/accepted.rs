//! The tests of global EDF beside each other: of random sets on two, four and eight CPUs, how many each accepts, and how many no other
//! one does. FF-DBF is asked only where the others together do not accept. Then the same where half of the tasks suspend themselves: all
//! tests with suspensions as work, and the two that know better.
//!
//! usage: accepted [SETS, default 20000] [SEED, default 2001]

use tierce_analysis::generate::Draw;
use tierce_analysis::global::{earliest_deadline, Test};
use tierce_analysis::{global_suspension, suspension, Task};

const TESTS: [Test; 5] = [Test::Gfb, Test::Baruah, Test::Bcl, Test::Rta, Test::FfDbf];

/// Times in ns: periods from 1 to 100 us, deadlines from half the period on, tasks from twice to five times as many as CPUs.
fn set(draw: &mut Draw, cpus: u64) -> Vec<Task> {
    let count = draw.between(2 * cpus, 5 * cpus);
    let load = draw.between(20, 90);
    let task = |draw: &mut Draw| {
        let period = draw.between(1_000, 100_000);
        let work = (period * cpus * load / 100 / count * draw.between(20, 180) / 100).clamp(1, period);
        Task { deadline_ns: draw.between((period / 2).max(work), period), ..Task::new(work, period) }
    };
    (0..count).map(|_| task(draw)).collect()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (sets, seed) = (arguments.next().unwrap_or(20_000), arguments.next().unwrap_or(2001));
    let mut draw = Draw::new(seed);
    let (mut accepted, mut by, mut alone, mut together) = (0, [0; TESTS.len()], [0; TESTS.len()], 0);
    for index in 0..sets {
        let cpus = [2, 4, 8][(index % 3) as usize];
        let verdict = earliest_deadline(&set(&mut draw, cpus), cpus as u32).expect("it is supported");
        let accepts = TESTS.map(|test| verdict.tasks.iter().all(|task| task.by.contains(&test)));
        accepted += u64::from(verdict.schedulable);
        for (at, accepts_it) in accepts.iter().enumerate() {
            let others = (0..TESTS.len()).any(|other| other != at && accepts[other]);
            by[at] += u64::from(*accepts_it);
            alone[at] += u64::from(*accepts_it && !others);
        }
        together += u64::from(verdict.schedulable && !accepts.contains(&true));
    }
    println!("seed {seed}: {accepted} of {sets} sets accepted, {together} of them by several tests together");
    for (at, test) in TESTS.iter().enumerate() {
        println!("{:8} accepts {:6}, {:5} of them alone", test.name(), by[at], alone[at]);
    }
    with_suspension(sets, seed);
}

/// Half of the tasks, for up to a fifth, two fifths … of what their deadline leaves.
fn with_suspension(sets: u64, seed: u64) {
    let (mut draw, mut accepted, mut by, mut alone) = (Draw::new(seed), 0, [0; 3], [0; 3]);
    for index in 0..sets {
        let cpus = [2, 4, 8][(index % 3) as usize];
        let tasks = set(&mut draw, cpus);
        let share = draw.between(1, 5);
        let suspensions: Vec<_> = tasks
            .iter()
            .map(|task| draw.between(0, (task.deadline_ns - task.work_ns) * share / 5) * draw.between(0, 1))
            .collect();
        let cpus = cpus as u32;
        let found =
            global_suspension::earliest_deadline(&tasks, &suspensions, cpus).expect("it is supported");
        let worked = earliest_deadline(&suspension::as_work(&tasks, &suspensions), cpus);
        let all = |test| found.tasks.iter().all(|task| task.by.contains(&test));
        let accepts = [worked.expect("it is supported").schedulable, all(Test::Rta), all(Test::La)];
        accepted += u64::from(found.schedulable);
        for (at, accepts_it) in accepts.iter().enumerate() {
            let others = (0..accepts.len()).any(|other| other != at && accepts[other]);
            by[at] += u64::from(*accepts_it);
            alone[at] += u64::from(*accepts_it && !others);
        }
    }
    println!("with suspension: {accepted} of {sets} sets accepted");
    for (at, name) in ["as work", "rta", "la"].iter().enumerate() {
        println!("{name:8} accepts {:6}, {:5} of them alone", by[at], alone[at]);
    }
}
