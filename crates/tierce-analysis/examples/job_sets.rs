//! How many starts of jobs a second `job_sets::explore` looks at: jobs of periodic tasks with jitter in a hyperperiod of a second, by
//! deadline.
//!
//! usage: job_sets [CPUS, default 1] [SEED, default 2001]

use std::time::Instant;
use tierce_analysis::generate::Draw;
use tierce_analysis::job_sets::{explore, Job};

/// Of the tasks, in us.
const PERIODS: [u64; 9] = [5_000, 10_000, 10_000, 20_000, 20_000, 50_000, 100_000, 200_000, 1_000_000];

/// Half of each CPU is used; a job needs from half of its most work on, and is ready up to `jitter` us late.
fn jobs(draw: &mut Draw, cpus: u64, tasks: u64, jitter: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for task in 0..tasks {
        let period = PERIODS[task as usize % PERIODS.len()];
        let work = (period * cpus * draw.between(20, 80) / 100 / tasks).clamp(2, 4_000);
        for id in 0..1_000_000 / period {
            let ready = id * period;
            let deadline_ns = ready + period;
            let (ready_ns, work_ns) = ((ready, ready + jitter), (work / 2, work));
            jobs.push(Job { task, id, ready_ns, work_ns, deadline_ns, priority: deadline_ns });
        }
    }
    jobs
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (cpus, seed) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(2001));
    println!(
        "{cpus} CPUs, seed {seed}\n{:>6} {:>6} {:>6} {:>10} {:>10} {:>9} {:>12}",
        "tasks", "jobs", "jitter", "states", "starts", "ms", "starts/s"
    );
    let mut draw = Draw::new(seed);
    for (tasks, jitter) in [(9, 0), (9, 100), (9, 1_000), (18, 0), (18, 100), (18, 1_000), (27, 0), (27, 100)]
    {
        let jobs = jobs(&mut draw, cpus, tasks, jitter);
        let begin = Instant::now();
        let found = explore(&jobs, cpus as usize, 20_000_000);
        let seconds = begin.elapsed().as_secs_f64();
        let (states, starts) = found.map_or((0, 0), |found| (found.states, found.starts));
        println!(
            "{tasks:6} {:6} {jitter:6} {states:10} {starts:10} {:9.1} {:12.0}",
            jobs.len(),
            seconds * 1e3,
            starts as f64 / seconds
        );
    }
}
