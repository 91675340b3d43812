//! Verdicts of the analysis against the simulator: random sets with random phases, by fixed priorities or earliest deadline,
//! alone or in a reservation beside others that take all they get. A set that the exact test accepts never misses a deadline.
//!
//! usage: verdicts [SETS, default 100000] [SEED, default 2001]; prints what was tried, fails at the first contradiction.

use std::fmt::Write;
use tierce_analysis::{priorities, Edf, FixedPriority, Supply, Task};
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation, Stream};

const US: u64 = 1_000;

#[derive(Default)]
struct Count {
    sets: u64,
    accepted: u64,
    jobs: u64,
    missed: u64,
}

/// Times in whole us: periods from 2 to 40 ms, deadlines from half the period on, jitter in one of four.
fn tasks(draws: &mut Stream, load_percent: u64) -> Vec<Task> {
    let count = draws.between(2, 6);
    let task = |_| {
        let period = draws.between(2_000, 40_000);
        let work = (period * load_percent / 100 / count * draws.between(20, 180) / 100).max(1);
        let deadline = draws.between((period / 2).max(work), period).max(work);
        let jitter = if draws.between(0, 3) == 0 { draws.between(0, period / 4) } else { 0 };
        let (deadline_ns, jitter_ns) = (deadline * US, jitter * US);
        Task { deadline_ns, jitter_ns, ..Task::new(work * US, period * US) }
    };
    (0..count).map(task).collect()
}

fn plan(tasks: &[Task], edf: bool, reservation: Option<(u64, u64)>, draws: &mut Stream) -> String {
    let policy = if edf { "edf" } else { "fixed-priority" };
    let mut text = match reservation {
        None => format!("[node.app]\npolicy = \"{policy}\"\ncpu = 0\n"),
        Some((budget, period)) => {
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

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (sets, seed) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(2001));
    let mut counts: [[Count; 2]; 2] = Default::default(); // by policy, by reservation
    let (mut fixed, mut edf) = (FixedPriority::new(), Edf::new());
    for index in 0..sets {
        let mut draws = Stream::new(seed, "verdicts", index);
        let (by_deadline, reserved) = (index % 2 == 0, index % 4 >= 2);
        let load = draws.between(40, 100);
        let reservation = reserved.then(|| {
            let period = draws.between(1_000, 10_000);
            (period * draws.between(50, 95) / 100, period)
        });
        let load = reservation.map_or(load, |(budget, period)| load * budget / period);
        let mut set = tasks(&mut draws, load);
        let order = priorities::deadline_monotonic(&set);
        set = order.into_iter().map(|index| set[index]).collect();
        let supply = reservation.and_then(|(budget, period)| Supply::periodic(budget * US, period * US));
        let supply = supply.unwrap_or(Supply::WHOLE);
        let accepted =
            if by_deadline { edf.schedulable(&set, &supply) } else { fixed.schedulable(&set, &supply) };
        let text = plan(&set, by_deadline, reservation, &mut draws);
        let plan = Plan::parse(&text, "verdicts")
            .unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()));
        let mut simulation =
            Simulation::new(&plan, Options { seed: index, ..Options::default() }).expect("it fits");
        simulation.run_until(400_000 * US).expect("no invariant is broken");
        let report = simulation.report();
        let misses: u64 = report.tasks.iter().map(|task| task.misses).sum();
        let count = &mut counts[usize::from(by_deadline)][usize::from(reserved)];
        count.sets += 1;
        if accepted {
            count.accepted += 1;
            count.jobs += report.tasks.iter().map(|task| task.jobs).sum::<u64>();
            assert!(
                misses == 0,
                "set {index} of seed {seed} was accepted and missed {misses} deadlines:\n{text}"
            );
        } else {
            count.missed += u64::from(misses > 0);
        }
    }
    println!("seed {seed}: {sets} sets, none that was accepted missed a deadline in 400 ms");
    println!("                              sets  accepted  their jobs   refused  of these missed");
    for (policy, counts) in ["fixed priorities", "earliest deadline"].iter().zip(&counts) {
        for (place, count) in ["alone", "reserved"].iter().zip(counts) {
            let refused = count.sets - count.accepted;
            println!(
                "{policy:<18}{place:<9}{:>7} {:>9} {:>11} {refused:>9} {:>16}",
                count.sets, count.accepted, count.jobs, count.missed
            );
        }
    }
}
