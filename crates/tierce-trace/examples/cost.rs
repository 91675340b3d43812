//! What statistics cost a simulator: `cost` prints ns per job and bytes per task for 100 and 10,000 tasks.

use std::time::Instant;
use tierce_trace::{Stats, TaskInfo, TraceHeader};

fn main() {
    for tasks in [100u32, 10_000] {
        let infos =
            (1..=tasks).map(|id| TaskInfo { id, name: format!("t{id}"), ..Default::default() }).collect();
        let mut stats = Stats::new(&TraceHeader { cpus: 1, tasks: infos, ..Default::default() });
        let (mut random, jobs) = (1u64, 20_000_000u64);
        let began = Instant::now();
        for _ in 0..jobs {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let task = 1 + (random % u64::from(tasks)) as u32;
            stats.job_release(task);
            stats.job_complete(task, 100_000 + (random >> 40), 0);
        }
        let ns = began.elapsed().as_nanos() as u64 / jobs;
        let heap: usize = (1..=tasks).map(|task| stats.task(task).unwrap().response_ns.heap_bytes()).sum();
        let inline = size_of::<tierce_trace::stats::TaskStats>();
        println!("{tasks} tasks: {ns} ns per job, {} bytes per task", inline + heap / tasks as usize);
    }
}
