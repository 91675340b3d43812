//! How late jobs can be under global EDF: worked sets, and bounds against schedules played slot by slot.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::{tardiness, utilisation, Task};
use tierce_guarantee::whole;

fn due_in(work_ns: u64, period_ns: u64, deadline_ns: u64) -> Task {
    Task { deadline_ns, ..Task::new(work_ns, period_ns) }
}

/// The example at the head of the file, and what the formula of Devi & Anderson gives by hand.
#[test]
fn worked_sets() {
    // One of three waits for the two others.
    assert_eq!(tardiness(&[Task::new(2, 3); 3], 2), [Some(2); 3]);
    // Devi & Anderson, Λ = 1: (900 − 100)/2 = 400 later than the work, that is 1300, 500, 1100. The vector with Y = 0: S = 1700, x = 900
    // for the first, so 2x + C is at least 1700 + 0.9·900 = 2510: x = 1205, 905 for the others. With Y = 100 it is 800 for the first.
    let tasks = [Task::new(900, 1_000), Task::new(100, 1_000), Task::new(700, 1_000)];
    assert_eq!(tardiness(&tasks, 2), [Some(800), Some(305), Some(605)]);
    assert_eq!(tardiness(&[], 4), []);
    // Neither with more than there is, nor with a task that needs more than a CPU, nor where blocking is unknown.
    assert_eq!(tardiness(&[Task::new(3, 3), Task::new(3, 3), Task::new(1, 1 << 60)], 2), [None; 3]);
    assert_eq!(tardiness(&[Task::new(4, 3)], 2), [None]);
    assert_eq!(tardiness(&[Task { blocking_ns: 1, ..Task::new(1, 3) }], 2), [None]);
    assert_eq!(tardiness(&[Task { jitter_ns: 4, ..Task::new(1, 3) }], 2), [None]);
    assert_eq!(tardiness(&[Task { jitter_ns: 4, ..due_in(1, 9, 3) }], 2), [None]);
    assert_eq!(tardiness(&[Task::new(0, 3)], 2), [None]);
}

/// The largest numbers: nothing overflows, and what is there is used to the last.
#[test]
fn large_times() {
    let most = tierce_analysis::TIME_MAX_NS;
    for cpus in [2, 64, 1024] {
        let full = vec![Task::new(most, most); cpus as usize];
        // A bound may be too large to be written.
        assert_eq!(tardiness(&full, cpus).iter().all(Option::is_some), cpus == 2);
        let odd = vec![Task { jitter_ns: 1, ..due_in(most / 2 - 1, most / 2, most) }; cpus as usize];
        assert_eq!(tardiness(&odd, cpus).iter().all(Option::is_some), cpus == 2);
        let none = vec![Task { jitter_ns: 1, ..due_in(most, most, 1) }; cpus as usize];
        assert_eq!(tardiness(&none, cpus).len(), cpus as usize);
    }
}

struct Job {
    ready: u64,
    release: u64,
    task: usize,
    left: u64,
}

/// Nearly all that there is, so that jobs are late.
fn set(draw: &mut Draw, cpus: u32) -> Vec<Task> {
    const PERIODS: [u64; 8] = [3, 4, 5, 6, 8, 10, 12, 15];
    let mut tasks = Vec::<Task>::new();
    let (plain, heavy) = (draw.below(2) == 0, draw.below(2) == 0);
    for _ in 0..12 {
        let period_ns = PERIODS[draw.below(8)];
        let most = if heavy { period_ns } else { period_ns.div_ceil(2) };
        let work_ns = 1 + draw.below(most as usize) as u64;
        let (mut deadline_ns, mut jitter_ns) = (period_ns, 0);
        if !plain {
            deadline_ns =
                [period_ns, 1 + draw.below(period_ns as usize) as u64, period_ns + draw.below(12) as u64]
                    [draw.below(3)];
            if draw.below(3) == 0 {
                jitter_ns = draw.below(deadline_ns.min(period_ns) as usize + 1) as u64;
            }
        }
        let task = Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 };
        if utilisation(&[&tasks[..], &[task]].concat()) <= whole(cpus.into()) {
            tasks.push(task);
        }
    }
    tasks
}

/// Random or common phases, jitter, works, gaps longer than the period.
fn jobs(draw: &mut Draw, tasks: &[Task], slots: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    let (gaps, less, together) = (draw.below(4) == 0, draw.below(4) == 0, draw.below(2) == 0);
    let lateness = draw.below(3);
    for (index, task) in tasks.iter().enumerate() {
        let mut release = if together { 0 } else { draw.below(task.period_ns as usize) as u64 };
        let mut before = 0;
        while release < slots {
            let late = [0, task.jitter_ns, draw.below(task.jitter_ns as usize + 1) as u64][lateness];
            let ready = (release + late).max(before); // in order
            before = ready;
            let left = if less { 1 + draw.below(task.work_ns as usize) as u64 } else { task.work_ns };
            jobs.push(Job { ready, release, task: index, left });
            release += task.period_ns + if gaps { draw.below(3) as u64 } else { 0 };
        }
    }
    jobs.sort_by_key(|job| job.ready);
    jobs
}

/// How late each task is at most.
fn play(draw: &mut Draw, tasks: &[Task], jobs: Vec<Job>, slots: u64, cpus: usize) -> Vec<u64> {
    let mut latest = vec![0; tasks.len()];
    let (mut coming, mut ready) = (jobs.into_iter().peekable(), Vec::<Job>::new());
    let mut slot = 0;
    let ties = draw.below(tasks.len());
    while slot < slots || !ready.is_empty() {
        while let Some(job) = coming.next_if(|job| job.ready <= slot) {
            ready.push(job);
        }
        ready.sort_by_key(|job| {
            (job.release + tasks[job.task].deadline_ns, (job.task + ties) % tasks.len(), job.release)
        });
        let mut running = Vec::new();
        for job in &mut ready {
            if running.len() < cpus && !running.contains(&job.task) {
                running.push(job.task);
                job.left -= 1;
                if job.left == 0 {
                    let due = job.release + tasks[job.task].deadline_ns;
                    latest[job.task] = latest[job.task].max((slot + 1).saturating_sub(due));
                }
            }
        }
        ready.retain(|job| job.left > 0);
        slot += 1;
    }
    latest
}

/// No job is later than its bound, and some come near.
#[test]
fn no_job_is_later() {
    const SLOTS: u64 = 300;
    let rounds = rounds(3_000);
    let mut draw = Draw::new(41);
    let (mut late, mut seen) = (0, Seen::default());
    for _ in 0..rounds {
        let cpus = 2 + draw.below(3) as u32;
        let tasks = set(&mut draw, cpus);
        let bounds = tardiness(&tasks, cpus);
        let mut latest = vec![0; tasks.len()];
        for _ in 0..3 {
            let jobs = jobs(&mut draw, &tasks, SLOTS);
            for (latest, played) in latest.iter_mut().zip(play(&mut draw, &tasks, jobs, SLOTS, cpus as usize))
            {
                *latest = played.max(*latest);
            }
        }
        late += u64::from(latest.iter().any(|late| *late > 0));
        for (latest, bound) in latest.iter().zip(bounds) {
            let bound = bound.expect("the set needs no more than there is");
            if *latest > 0 {
                seen.add(*latest, bound, || format!("{tasks:?} on {cpus}"));
            }
        }
    }
    println!("{late} of {rounds} sets late");
    seen.print("tardiness of tasks with late jobs");
    assert!(late * 4 > rounds, "{late}");
}
