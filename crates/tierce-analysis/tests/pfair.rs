//! Pfair scheduling: worked sets, and PD² played quantum by quantum.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::pfair::{in_quanta, pd2};
use tierce_analysis::Task;

/// The example at the head of the file, and what rounding costs.
#[test]
fn worked_sets() {
    let tasks = [Task::new(20, 40); 3];
    for (quantum, quanta) in [(10, Task::new(2, 3)), (1, Task::new(20, 40)), (3, Task::new(7, 12))] {
        assert_eq!(in_quanta(&tasks[0], quantum), Some(quanta));
        assert!(pd2(&tasks, 2, quantum).unwrap().schedulable, "{quantum}");
    }
    assert_eq!(pd2(&tasks, 2, 10).unwrap().tasks[0].response_ns, Some(39));
    assert_eq!((in_quanta(&tasks[0], 20), in_quanta(&tasks[0], 21)), (Some(Task::new(1, 1)), None));
    assert!(!pd2(&tasks, 2, 20).unwrap().schedulable);
    assert!(!pd2(&[Task::new(30, 40); 3], 2, 10).unwrap().schedulable);
    assert!(pd2(&[Task::new(3, 4); 4], 3, 1).unwrap().schedulable); // to the last
    assert!(pd2(&[], 2, 5).unwrap().schedulable);
    let late = Task { jitter_ns: 5, deadline_ns: 38, ..Task::new(20, 40) };
    assert_eq!(in_quanta(&late, 4), Some(Task::new(5, 7)));
    for (task, quantum, rule) in [
        (Task { deadline_ns: 41, ..Task::new(1, 40) }, 1, "deadlines_are_at_most_periods"),
        (Task { blocking_ns: 1, ..Task::new(1, 40) }, 1, "tasks_are_not_blocked"),
        (Task::new(1, 40), 0, "quantum_is_above_zero"),
    ] {
        assert_eq!(pd2(&[task], 2, quantum).unwrap_err().rule, rule);
    }
    let most = tierce_analysis::TIME_MAX_NS;
    assert!(pd2(&[Task::new(most, most); 4], 4, 1).unwrap().schedulable);
    assert!(!pd2(&[Task::new(most, most); 4], 4, most).unwrap().schedulable);
    assert!(!pd2(&[Task::new(most, most); 4], 4, u64::MAX).unwrap().schedulable);
}

fn set(draw: &mut Draw, quantum: u64) -> Vec<Task> {
    let light = 1 + draw.below(4) as u64;
    (0..3 + draw.below(6))
        .map(|_| {
            let period_ns = quantum * (3 + draw.below(12) as u64) + draw.below(quantum as usize) as u64;
            let work_ns = 1 + draw.below((period_ns / light).max(1) as usize) as u64;
            let short = work_ns + draw.below((period_ns - work_ns + 1) as usize) as u64;
            let deadline_ns = if draw.below(3) == 0 { short } else { period_ns };
            let most = (deadline_ns - work_ns).min(2 * quantum) as usize;
            let jitter_ns = if draw.below(4) == 0 { draw.below(most + 1) as u64 } else { 0 };
            Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 }
        })
        .collect()
}

struct Job {
    release: u64,
    /// In quanta.
    from: u64,
    task: usize,
    /// Subtasks that have had their quanta.
    had: u64,
    left: u64,
}

/// Until when the i-th subtask of a job is to have its quantum.
fn due(task: &Task, i: u64) -> u64 {
    (i * task.period_ns).div_ceil(task.work_ns)
}

fn overlaps(task: &Task, i: u64) -> bool {
    i * task.period_ns % task.work_ns != 0
}

/// The end of a chain of subtasks, each of which is forced into its last quantum if the one before is; 0 for tasks below one half.
fn group_deadline(task: &Task, i: u64) -> u64 {
    if task.work_ns * 2 < task.period_ns {
        return 0;
    }
    let length = |k: u64| due(task, k) - (k - 1) * task.period_ns / task.work_ns;
    let mut ends = (i..=task.work_ns + 1).filter_map(|k| match () {
        () if k <= task.work_ns && !overlaps(task, k) => Some(due(task, k)),
        () if k > i && k <= task.work_ns && length(k) == 3 => Some(due(task, k) - 1),
        () => None,
    });
    ends.next().expect("the last subtask ends with the period")
}

/// Plays random jobs, and keeps the longest response of each task.
fn play(draw: &mut Draw, [tasks, quanta]: [&[Task]; 2], cpus: usize, quantum: u64, longest: &mut [u64]) {
    let slots = 120;
    let mut jobs = Vec::new();
    let (together, gaps, less) = (draw.below(2) == 0, draw.below(3) == 0, draw.below(4) == 0);
    for (index, task) in tasks.iter().enumerate() {
        let mut release = if together { 1 } else { draw.below(task.period_ns as usize) as u64 };
        while release < slots * quantum {
            let jitter = [0, task.jitter_ns, draw.below(task.jitter_ns as usize + 1) as u64][draw.below(3)];
            let work = if less { 1 + draw.below(task.work_ns as usize) as u64 } else { task.work_ns };
            let (from, left) = ((release + jitter).div_ceil(quantum), work.div_ceil(quantum));
            jobs.push(Job { release, from, task: index, had: 0, left });
            release += task.period_ns + if gaps { draw.below(2 * quantum as usize) as u64 } else { 0 };
        }
    }
    let mut slot = 0;
    while !jobs.is_empty() {
        let may_run = |job: &&mut Job| {
            let task = &quanta[job.task];
            job.from + job.had * task.period_ns / task.work_ns <= slot
        };
        let mut ready: Vec<_> = jobs.iter_mut().filter(may_run).collect();
        ready.sort_by_key(|job| {
            let (task, i) = (&quanta[job.task], job.had + 1);
            let overlaps = overlaps(task, i);
            let group = if overlaps { job.from + group_deadline(task, i) } else { 0 };
            (job.from + due(task, i), !overlaps, std::cmp::Reverse(group), job.task)
        });
        for job in ready.into_iter().take(cpus) {
            job.had += 1;
            job.left -= 1;
            if job.left == 0 {
                longest[job.task] = longest[job.task].max((slot + 1) * quantum - job.release);
            }
        }
        jobs.retain(|job| job.left > 0);
        slot += 1;
    }
}

/// No job of an accepted set is late, also where the CPUs are full.
#[test]
fn no_job_is_late() {
    let rounds = rounds(3_000);
    let mut draw = Draw::new(81);
    let (mut accepted, mut full, mut refused, mut seen) = (0, 0, 0, Seen::default());
    for _ in 0..rounds {
        let quantum = [1, 1, 4, 7][draw.below(4)];
        let tasks = set(&mut draw, quantum);
        let quanta: Option<Vec<_>> = tasks.iter().map(|task| in_quanta(task, quantum)).collect();
        // The fewest CPUs on which it is accepted.
        let shown = (1..5).map(|cpus| (cpus, pd2(&tasks, cpus, quantum).unwrap()));
        let fewest = shown.into_iter().find(|(_, shown)| shown.schedulable);
        let (Some(quanta), Some((cpus, shown))) = (quanta, fewest) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        full += u64::from(
            tierce_analysis::utilisation(&quanta) * tierce_guarantee::whole(20)
                > tierce_guarantee::whole(u64::from(cpus) * 19),
        );
        let mut longest = vec![0; tasks.len()];
        for _ in 0..4 {
            play(&mut draw, [&tasks, &quanta], cpus as usize, quantum, &mut longest);
        }
        for ((longest, shown), task) in longest.iter().zip(&shown.tasks).zip(&tasks) {
            let bound = shown.response_ns.expect("it is accepted");
            assert!(bound <= task.deadline_ns);
            seen.add(*longest, bound, || format!("{tasks:?} on {cpus}, {quantum}"));
        }
    }
    println!("{accepted} accepted, {full} of them with at least 95 % of the CPUs, {refused} refused");
    assert!(seen.print("PD²").equal() > 100 && accepted * 3 > rounds && full * 30 > rounds);
}
