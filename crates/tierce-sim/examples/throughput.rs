//! How fast the simulator is: jobs per second of CPU time.
//!
//! Workload: n tasks, periods of whole milliseconds, log-uniform from 1 to 100 ms, utilisation 0.9 in all, one CPU.
//! Utilisations are uniform over all that add up to 0.9: what Randfixedsum gives for sums up to 1, drawn as exponentials
//! divided by their sum. Statistics on, trace and checker off; CPU time of this process, best of 5.
//!
//! On several CPUs: ten tasks for each, a utilisation of 0.9 for each. `spread`: below a fair node that is spread, migrations
//! and idle-while-waiting counted; `global`: below one node of all CPUs; `partitioned`: an edf node on each CPU.
//!
//! A budget has at least 1 µs, so 10,000 servers of 0.9 in all do not fit into such periods: those rows have theirs 100
//! times as long.
//!
//! `throughput` prints the table; `throughput --tasks FILE` writes the first set (name, period_ms, work_ns) for other
//! simulators; `throughput --only BEGIN` prints the rows whose name begins so; `throughput --against PROGRAM JOBS_PER_SECOND` adds a ratio, and fails when it is below 400.

use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation, Stream};

const RUNS: usize = 5;
const RATIO: f64 = 400.0;

struct Task {
    period_ms: u64,
    work_ns: u64,
}

/// What runs the tasks.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Edf,
    Servers,
    Spread(u32),
    Global(u32),
    GlobalFair(u32),
    Partitioned(u32),
}

impl Shape {
    fn cpus(self) -> u32 {
        match self {
            Shape::Edf | Shape::Servers => 1,
            Shape::Spread(cpus)
            | Shape::Global(cpus)
            | Shape::GlobalFair(cpus)
            | Shape::Partitioned(cpus) => cpus,
        }
    }
}

/// The workload; see above. Floats only draw.
fn tasks(n: usize, cpus: u32, scale: u64, seed: u64) -> Vec<Task> {
    let mut draws = Stream::new(seed, "throughput", n as u64);
    let drawn: Vec<(u64, u64)> = (0..n)
        .map(|_| {
            let log = draws.between(0, 1 << 40) as f64 / (1u64 << 40) as f64;
            let period_ms = (100f64.powf(log).round() as u64).clamp(1, 100) * scale;
            (period_ms, draws.exponential(1 << 30))
        })
        .collect();
    let sum: u128 = drawn.iter().map(|&(_, part)| u128::from(part)).sum();
    let all_ns = u128::from(cpus) * 900_000;
    let work = |period_ms: u64, part: u64| {
        let work_ns = (u128::from(period_ms) * all_ns * u128::from(part) / sum) as u64;
        work_ns.min(period_ms * 900_000) // a task has one CPU at a time
    };
    drawn.iter().map(|&(period_ms, part)| Task { period_ms, work_ns: work(period_ms, part).max(1) }).collect()
}

fn plan(tasks: &[Task], shape: Shape) -> Plan {
    let top = match shape {
        Shape::Edf => "policy = \"edf\"\ncpu = 0\n",
        Shape::Servers => "policy = \"reservation\"\ncpu = 0\n",
        Shape::Spread(_) => "policy = \"fair\"\nspread = true\n",
        Shape::Global(_) => "policy = \"edf\"\ncpus = \"all\"\n",
        Shape::GlobalFair(_) => "policy = \"fair\"\ncpus = \"all\"\n",
        Shape::Partitioned(_) => "policy = \"edf\"\nper_cpu = true\n",
    };
    let mut text = format!("machine.cpus = {}\n[node.top]\n{top}", shape.cpus());
    for (index, Task { period_ms, work_ns }) in tasks.iter().enumerate() {
        let edge = match shape {
            Shape::Servers => {
                format!("{{ budget = \"{}ns\", period = \"{period_ms}ms\" }}", (*work_ns).max(1000))
            }
            Shape::Partitioned(cpus) => format!("{{ cpu = {} }}", index as u32 % cpus),
            _ => "{}".into(),
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

/// Name, tasks, a factor for their periods, milliseconds to be simulated, and where they are.
const WORKLOADS: [(&str, usize, u64, u64, Shape); 18] = [
    ("edf, 100 tasks", 100, 1, 100_000, Shape::Edf),
    ("edf, 1,000 tasks", 1_000, 1, 10_000, Shape::Edf),
    ("edf, 10,000 tasks", 10_000, 1, 1_000, Shape::Edf),
    ("reservation (hard CBS per task), 100 tasks", 100, 1, 100_000, Shape::Servers),
    ("reservation, 1,000 tasks, periods x 100", 1_000, 100, 1_000_000, Shape::Servers),
    ("reservation, 10,000 tasks, periods x 100", 10_000, 100, 100_000, Shape::Servers),
    ("spread fair, 4 CPUs, 40 tasks", 40, 1, 100_000, Shape::Spread(4)),
    ("spread fair, 16 CPUs, 160 tasks", 160, 1, 50_000, Shape::Spread(16)),
    ("spread fair, 64 CPUs, 640 tasks", 640, 1, 15_000, Shape::Spread(64)),
    ("global edf, 4 CPUs, 40 tasks", 40, 1, 100_000, Shape::Global(4)),
    ("global edf, 16 CPUs, 160 tasks", 160, 1, 50_000, Shape::Global(16)),
    ("global edf, 64 CPUs, 640 tasks", 640, 1, 15_000, Shape::Global(64)),
    ("global fair, 4 CPUs, 40 tasks", 40, 1, 100_000, Shape::GlobalFair(4)),
    ("global fair, 16 CPUs, 160 tasks", 160, 1, 50_000, Shape::GlobalFair(16)),
    ("global fair, 64 CPUs, 640 tasks", 640, 1, 15_000, Shape::GlobalFair(64)),
    ("partitioned edf, 4 CPUs, 40 tasks", 40, 1, 100_000, Shape::Partitioned(4)),
    ("partitioned edf, 16 CPUs, 160 tasks", 160, 1, 50_000, Shape::Partitioned(16)),
    ("partitioned edf, 64 CPUs, 640 tasks", 640, 1, 15_000, Shape::Partitioned(64)),
];

/// The workloads whose name begins like that: what each took; the speed of the first one.
fn measure_all(only: Option<&str>) -> f64 {
    println!(
        "{:<44} {:>9} {:>7} {:>10} {:>12} {:>10}",
        "workload", "jobs", "misses", "ns per job", "jobs/s", "to first"
    );
    let (mut first, mut base) = (0.0, 0.0);
    let wanted = |name: &str| only.is_none_or(|only| name.starts_with(only));
    for (name, n, scale, for_ms, shape) in WORKLOADS.into_iter().filter(|row| wanted(row.0)) {
        let (jobs, misses, took_ns) = measure(&plan(&tasks(n, shape.cpus(), scale, 1), shape), for_ms);
        let speed = jobs as f64 / took_ns as f64 * 1e9;
        if n == 100 || base == 0.0 || shape.cpus() == 4 {
            base = speed;
        }
        if first == 0.0 {
            first = speed;
        }
        let per_job = took_ns as f64 / jobs as f64;
        println!("{name:<44} {jobs:>9} {misses:>7} {per_job:>10.0} {speed:>12.0} {:>9.2}x", base / speed);
    }
    first
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut peer, mut only) = (None, None);
    match arguments[..] {
        [] => {}
        ["--tasks", file] => {
            let lines = tasks(100, 1, 1, 1)
                .iter()
                .enumerate()
                .map(|(index, task)| format!("t{index} {} {}\n", task.period_ms, task.work_ns))
                .collect::<String>();
            std::fs::write(file, lines).expect("the file can be written");
            return ExitCode::SUCCESS;
        }
        ["--only", begin] => only = Some(begin),
        ["--against", program, speed] => {
            peer = Some((program, speed.parse::<f64>().expect("jobs per second")));
        }
        _ => {
            eprintln!("usage: throughput [--only BEGIN | --tasks FILE | --against PROGRAM JOBS_PER_SECOND]");
            return ExitCode::from(2);
        }
    }
    let first = measure_all(only);
    let Some((program, speed)) = peer else { return ExitCode::SUCCESS };
    let ratio = first / speed;
    println!("\n{program}: {speed:.0} jobs/s on the 100 edf tasks; tierce is {ratio:.0} times as fast (bar: {RATIO:.0})");
    ExitCode::from(u8::from(ratio < RATIO))
}
