//! How fast the simulator is: jobs per second of CPU time.
//!
//! Workload: n tasks, periods of whole milliseconds, log-uniform from 1 to 100 ms, utilisation 0.9 in all, one CPU.
//! Utilisations are uniform over all that add up to 0.9: what Randfixedsum gives for sums up to 1, drawn as exponentials
//! divided by their sum. Statistics on, trace and checker off; CPU time of this process, best of 5.
//!
//! A budget has at least 1 µs, so 10,000 servers of 0.9 in all do not fit into such periods: those rows have theirs 100
//! times as long.
//!
//! `throughput` prints the table; `throughput --tasks FILE` writes the first set (name, period_ms, work_ns) for other
//! simulators; `throughput --against PROGRAM JOBS_PER_SECOND` adds a ratio, and fails when it is below 400.

use std::process::ExitCode;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation, Stream};

const RUNS: usize = 5;
const RATIO: f64 = 400.0;

struct Task {
    period_ms: u64,
    work_ns: u64,
}

/// The workload; see above. Floats only draw.
fn tasks(n: usize, scale: u64, seed: u64) -> Vec<Task> {
    let mut draws = Stream::new(seed, "throughput", n as u64);
    let drawn: Vec<(u64, u64)> = (0..n)
        .map(|_| {
            let log = draws.between(0, 1 << 40) as f64 / (1u64 << 40) as f64;
            let period_ms = (100f64.powf(log).round() as u64).clamp(1, 100) * scale;
            (period_ms, draws.exponential(1 << 30))
        })
        .collect();
    let sum: u128 = drawn.iter().map(|&(_, part)| u128::from(part)).sum();
    let work = |period_ms: u64, part: u64| (u128::from(period_ms) * 900_000 * u128::from(part) / sum) as u64;
    drawn.iter().map(|&(period_ms, part)| Task { period_ms, work_ns: work(period_ms, part).max(1) }).collect()
}

fn plan(tasks: &[Task], servers: bool) -> Plan {
    let mut text =
        format!("[node.top]\npolicy = \"{}\"\ncpu = 0\n", if servers { "reservation" } else { "edf" });
    for (index, Task { period_ms, work_ns }) in tasks.iter().enumerate() {
        let edge = match servers {
            true => format!("{{ budget = \"{}ns\", period = \"{period_ms}ms\" }}", (*work_ns).max(1000)),
            false => "{}".into(),
        };
        let load = format!("{{ period = \"{period_ms}ms\", work = \"{work_ns}ns\" }}");
        text += &format!("[task.t{index}]\nunder.top = {edge}\nload = {load}\n");
    }
    Plan::parse(&text, "throughput").unwrap_or_else(|faults| panic!("{}", faults.report_plain()))
}

/// CPU time of this thread so far.
fn cpu_time_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux /proc");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("ns on the CPU come first")
}

/// Jobs and misses of one run, and the least CPU time of all runs.
fn measure(plan: &Plan, for_ms: u64) -> (u64, u64, u64) {
    let run = |_| {
        let mut simulation = Simulation::new(plan, Options::default()).expect("the plan fits");
        let before = cpu_time_ns();
        simulation.run_until(for_ms * 1_000_000).expect("nothing is checked");
        let took_ns = cpu_time_ns() - before;
        let report = simulation.report();
        let sum = |of: fn(&tierce_trace::report::TaskReport) -> u64| report.tasks.iter().map(of).sum::<u64>();
        (took_ns, sum(|task| task.jobs), sum(|task| task.misses))
    };
    (0..RUNS).map(run).min().map(|(took_ns, jobs, misses)| (jobs, misses, took_ns)).expect("there are runs")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut peer = None;
    match arguments[..] {
        [] => {}
        ["--tasks", file] => {
            let lines = tasks(100, 1, 1)
                .iter()
                .enumerate()
                .map(|(index, task)| format!("t{index} {} {}\n", task.period_ms, task.work_ns))
                .collect::<String>();
            std::fs::write(file, lines).expect("the file can be written");
            return ExitCode::SUCCESS;
        }
        ["--against", program, speed] => {
            peer = Some((program, speed.parse::<f64>().expect("jobs per second")));
        }
        _ => {
            eprintln!("usage: throughput [--tasks FILE | --against PROGRAM JOBS_PER_SECOND]");
            return ExitCode::from(2);
        }
    }
    println!(
        "{:<44} {:>9} {:>7} {:>10} {:>12} {:>10}",
        "workload", "jobs", "misses", "ns per job", "jobs/s", "to 100"
    );
    let rows = [
        ("edf, 100 tasks", 100, 1, 100_000, false),
        ("edf, 1,000 tasks", 1_000, 1, 10_000, false),
        ("edf, 10,000 tasks", 10_000, 1, 1_000, false),
        ("reservation (hard CBS per task), 100 tasks", 100, 1, 100_000, true),
        ("reservation, 1,000 tasks, periods x 100", 1_000, 100, 1_000_000, true),
        ("reservation, 10,000 tasks, periods x 100", 10_000, 100, 100_000, true),
    ];
    let (mut first, mut base) = (0.0, 0.0);
    for (name, n, scale, for_ms, servers) in rows {
        let (jobs, misses, took_ns) = measure(&plan(&tasks(n, scale, 1), servers), for_ms);
        let speed = jobs as f64 / took_ns as f64 * 1e9;
        if n == 100 {
            base = speed;
        }
        if first == 0.0 {
            first = speed;
        }
        let per_job = took_ns as f64 / jobs as f64;
        println!("{name:<44} {jobs:>9} {misses:>7} {per_job:>10.0} {speed:>12.0} {:>9.2}x", base / speed);
    }
    let Some((program, speed)) = peer else { return ExitCode::SUCCESS };
    let ratio = first / speed;
    println!("\n{program}: {speed:.0} jobs/s on the 100 edf tasks; tierce is {ratio:.0} times as fast (bar: {RATIO:.0})");
    ExitCode::from(u8::from(ratio < RATIO))
}
