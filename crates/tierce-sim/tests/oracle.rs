//! Random task sets against a simulator of a few lines that goes millisecond by millisecond.
//!
//! Deadlines at a time, not at a CPU: with several CPUs the m most urgent jobs run, wherever. It knows neither engine nor
//! events, and shares nothing with the simulator but the generator of random numbers.

mod common;

use common::{parse, run, MS};
use tierce_sim::Stream;
use tierce_trace::Kind;

#[derive(Debug)]
struct Task {
    period: u64,
    work: u64,
    deadline: u64,
    phase: u64,
    priority: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Deadlines,
    Priorities,
}

/// When each job is done: task, number, ms.
fn oracle(tasks: &[Task], order: Order, cpus: usize, for_ms: u64) -> Vec<(usize, u32, u64)> {
    let mut jobs: Vec<Vec<(u64, u64)>> = vec![Vec::new(); tasks.len()]; // deadline, work left
    let mut done = Vec::new();
    let mut numbers = vec![0; tasks.len()];
    for now in 0..for_ms {
        for (jobs, task) in jobs.iter_mut().zip(tasks) {
            if now >= task.phase && (now - task.phase) % task.period == 0 {
                jobs.push((now + task.deadline, task.work));
            }
        }
        let mut ready: Vec<usize> = (0..tasks.len()).filter(|&task| !jobs[task].is_empty()).collect();
        ready.sort_by_key(|&task| match order {
            Order::Deadlines => (jobs[task][0].0, task),
            Order::Priorities => (u64::MAX - tasks[task].priority, task),
        });
        for &task in ready.iter().take(cpus) {
            jobs[task][0].1 -= 1;
            if jobs[task][0].1 == 0 {
                jobs[task].remove(0);
                numbers[task] += 1;
                done.push((task, numbers[task], now + 1));
            }
        }
    }
    done.sort_unstable();
    done
}

fn random_set(draws: &mut Stream, most_work: u64) -> Vec<Task> {
    let (n, beyond) = (draws.between(1, 6), draws.between(0, 1) == 1);
    let task = |index| {
        let period = draws.between(2, 14);
        let work = draws.between(1, period.min(most_work));
        // Of every other set jobs may be due after later ones have come.
        let deadline = draws.between(work, if beyond { 4 * period } else { period });
        Task { period, work, deadline, phase: draws.between(0, 6), priority: index + 1 }
    };
    (0..n).map(task).collect()
}

fn text(tasks: &[Task], order: Order, cpus: usize) -> String {
    let policy = if order == Order::Deadlines { "edf" } else { "fixed-priority" };
    let mut text = format!("machine.cpus = {cpus}\nnode.top = {{ policy = \"{policy}\", cpus = \"all\" }}\n");
    for (index, Task { period, work, deadline, phase, priority }) in tasks.iter().enumerate() {
        let edge = if order == Order::Priorities { format!("priority = {priority}") } else { String::new() };
        text += &format!(
            "task.t{index} = {{ under.top = {{ {edge} }}, load = {{ period = \"{period}ms\", work = \"{work}ms\", \
             deadline = \"{deadline}ms\", phase = \"{phase}ms\" }} }}\n"
        );
    }
    text
}

fn compare(seed: u64, order: Order, cpus: usize, most_work: u64) {
    const FOR_MS: u64 = 70;
    let mut draws = Stream::new(seed, "oracle", cpus as u64);
    let tasks = random_set(&mut draws, most_work);
    let text = text(&tasks, order, cpus);
    // one more ms, so that what ends at the end is told
    let run = run(&parse(&text), (FOR_MS + 1) * MS, seed);
    let first = run.report.tasks[0].id;
    let ended = run.events.iter().filter(|event| event.kind() == Some(Kind::JobComplete));
    let mut got: Vec<_> =
        ended.map(|event| ((event.a - first) as usize, event.b, event.now_ns / MS)).collect();
    got.retain(|job| job.2 <= FOR_MS);
    got.sort_unstable();
    let want = oracle(&tasks, order, cpus, FOR_MS);
    assert_eq!(got, want, "seed {seed}, {order:?}, {cpus} CPUs\n{text}");
    for (index, task) in tasks.iter().enumerate() {
        let due = |number: u64| task.phase + (number - 1) * task.period + task.deadline;
        let in_time = |number: u64| {
            want.iter().any(|&(t, n, at)| t == index && u64::from(n) == number && at <= due(number))
        };
        let late =
            (1..).take_while(|&number| due(number) <= FOR_MS).filter(|&number| !in_time(number)).count();
        assert_eq!(run.report.tasks[index].misses, late as u64, "misses of t{index}, seed {seed}\n{text}");
    }
}

#[test]
fn one_cpu() {
    for seed in 0..150 {
        compare(seed, Order::Deadlines, 1, 4);
        compare(seed, Order::Priorities, 1, 4);
    }
}

#[test]
fn several_cpus() {
    for seed in 0..100 {
        for cpus in [2, 3] {
            compare(seed, Order::Deadlines, cpus, 10);
            compare(seed, Order::Priorities, cpus, 10);
        }
    }
}

/// Liu and Layland: EDF misses nothing up to a utilisation of 1.
#[test]
fn edf_is_optimal() {
    for seed in 0..50 {
        let mut draws = Stream::new(seed, "optimal", 0);
        let mut tasks = random_set(&mut draws, 6);
        for task in &mut tasks {
            task.deadline = task.period;
        }
        let fits = |tasks: &[Task]| tasks.iter().map(|t| t.work * 360_360 / t.period).sum::<u64>() <= 360_360;
        while !fits(&tasks) {
            tasks.pop();
        }
        let text = text(&tasks, Order::Deadlines, 1);
        if !tasks.is_empty() {
            assert_eq!(run(&parse(&text), 200 * MS, 1).misses(), 0, "seed {seed}\n{text}");
        }
    }
}

/// Hard reservations of any periods that fit give each busy child its budget in each of its periods, to the nanosecond.
#[test]
fn supply_is_exact() {
    for seed in 0..40 {
        let mut draws = Stream::new(seed, "supply", 0);
        let mut text = "node.top = { policy = \"reservation\", cpu = 0 }\n".to_string();
        let (mut left, n) = (1_000_000, draws.between(1, 5)); // millionths of the CPU
        for index in 0..n {
            let share = draws.between(1_000, left / 2);
            left -= share;
            let period = draws.between(1_000, 20_000); // us
            let budget = (period * share / 1_000_000).max(1);
            text += &format!(
                "task.t{index} = {{ under.top = {{ budget = \"{budget}us\", period = \"{period}us\" }}, load = \"busy\" }}\n"
            );
        }
        let run = run(&parse(&text), 300 * MS, seed);
        for task in &run.report.tasks {
            let edge = &task.under[0];
            let supply = edge.supply_ns.unwrap_or_else(|| panic!("seed {seed}: no period is over\n{text}"));
            let budget = edge.budget_ns.unwrap();
            assert_eq!((supply.min, supply.max), (budget, budget), "{}, seed {seed}\n{text}", task.name);
            assert!(supply.periods >= 13);
        }
    }
}
