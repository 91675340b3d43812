//! Tasks in parts on several CPUs (C=D): worked sets, and assignments played slot by slot.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::zero_laxity::{assign, Part};
use tierce_analysis::{utilisation, Edf, Supply, Task};
use tierce_guarantee::whole;

fn assigned(tasks: &[Task], cpus: u32) -> Vec<Part> {
    assign(tasks, cpus).unwrap().unwrap()
}

/// The example at the head of the file.
#[test]
fn worked_sets() {
    let tasks = [Task::new(2, 3); 3];
    let parts = assigned(&tasks, 2);
    let shown: Vec<_> = parts
        .iter()
        .map(|part| (part.task, part.cpu, part.after_ns, part.as_task.work_ns, part.as_task.deadline_ns))
        .collect();
    assert_eq!(shown, [(0, 0, 0, 2, 3), (1, 1, 0, 2, 3), (2, 0, 0, 1, 1), (2, 1, 1, 1, 2)]);
    // Over three CPUs, and one too much.
    let tasks = [Task::new(3, 4), Task::new(3, 4), Task::new(3, 4), Task::new(3, 4)];
    assert_eq!(assigned(&tasks, 3).iter().filter(|part| part.task == 3).count(), 3);
    assert_eq!(assign(&tasks, 2).unwrap(), Err(2));
    assert_eq!(assign(&tasks[..2], 1).unwrap(), Err(1));
    assert_eq!(assigned(&[], 1), []);
    let long = Task { deadline_ns: 11, ..Task::new(1, 10) };
    for (task, rule) in [
        (long, "deadlines_are_at_most_periods"),
        (Task { blocking_ns: 1, ..Task::new(1, 10) }, "tasks_are_not_blocked"),
    ] {
        assert_eq!(assign(&[task], 2).unwrap_err().rule, rule);
    }
}

fn set(draw: &mut Draw, cpus: u32) -> Vec<Task> {
    const PERIODS: [u64; 8] = [16, 20, 24, 30, 40, 48, 60, 80];
    let (mut tasks, most) = (Vec::new(), 70 + draw.below(31) as u64);
    for _ in 0..8 * cpus {
        let period_ns = PERIODS[draw.below(8)];
        let work_ns = 1 + draw.below((period_ns * 3 / 4) as usize) as u64;
        let deadline_ns = if draw.below(2) == 0 {
            period_ns
        } else {
            work_ns + draw.below((period_ns - work_ns + 1) as usize) as u64
        };
        let jitter_ns =
            if draw.below(4) == 0 { draw.below((deadline_ns - work_ns + 1) as usize) as u64 } else { 0 };
        let task = Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 };
        tasks.push(task);
        if utilisation(&tasks) * whole(100) > whole(u64::from(cpus) * most) {
            tasks.pop();
        }
    }
    tasks
}

struct Job {
    ready: u64,
    release: u64,
    task: usize,
    /// Of its parts.
    part: usize,
    left: u64,
    /// Of this part.
    here: u64,
}

/// Plays random jobs, each CPU by EDF, a part after the other, and keeps the longest response of each task.
fn play(draw: &mut Draw, tasks: &[Task], parts: &[Part], slots: u64, longest: &mut [u64]) {
    let of: Vec<Vec<_>> =
        (0..tasks.len()).map(|task| parts.iter().filter(|part| part.task == task).collect()).collect();
    let mut jobs = Vec::new();
    let (together, gaps, less) = (draw.below(2) == 0, draw.below(4) == 0, draw.below(4) == 0);
    for (index, task) in tasks.iter().enumerate() {
        let mut release = if together { 0 } else { draw.below(task.period_ns as usize) as u64 };
        while release < slots {
            let jitter = [0, task.jitter_ns, draw.below(task.jitter_ns as usize + 1) as u64][draw.below(3)];
            let left = if less { 1 + draw.below(task.work_ns as usize) as u64 } else { task.work_ns };
            jobs.push(Job {
                ready: release + jitter,
                release,
                task: index,
                part: 0,
                left,
                here: of[index][0].as_task.work_ns,
            });
            release += task.period_ns + if gaps { draw.below(3) as u64 } else { 0 };
        }
    }
    let cpus = parts.iter().map(|part| part.cpu + 1).max().unwrap_or(0);
    let mut slot = 0;
    while !jobs.is_empty() {
        for cpu in 0..cpus {
            let here = jobs.iter_mut().filter(|job| job.ready <= slot && of[job.task][job.part].cpu == cpu);
            let due = |job: &&mut Job| {
                let part = of[job.task][job.part];
                (job.release + part.after_ns + part.as_task.deadline_ns, job.task)
            };
            if let Some(job) = here.min_by_key(due) {
                job.left -= 1;
                job.here -= 1;
                if job.left == 0 {
                    longest[job.task] = longest[job.task].max(slot + 1 - job.release);
                }
                if job.left > 0 && job.here == 0 {
                    // The next part begins with the next slot.
                    job.part += 1;
                    job.here = of[job.task][job.part].as_task.work_ns;
                    job.ready = slot + 1;
                }
            }
        }
        jobs.retain(|job| job.left > 0);
        slot += 1;
    }
}

/// Work is kept, parts follow each other, and no job is late; what a partition places is assigned, too.
#[test]
fn no_job_is_late() {
    let rounds = rounds(2_000);
    let mut draw = Draw::new(71);
    let (mut whole_ones, mut split, mut refused, mut seen) = (0, 0, 0, [Seen::default(); 2]);
    for _ in 0..rounds {
        let cpus = 2 + draw.below(3) as u32;
        let tasks = set(&mut draw, cpus);
        let mut edf = Edf::new();
        let fits = |members: &[usize]| {
            let members: Vec<_> = members.iter().map(|index| tasks[*index]).collect();
            edf.schedulable(&members, &Supply::WHOLE)
        };
        let partitioned = matches!(partition(&tasks, cpus as usize, Fit::First, fits), Partition::Fits(_));
        let Ok(parts) = assign(&tasks, cpus).unwrap() else {
            assert!(!partitioned, "{tasks:?}");
            refused += 1;
            continue;
        };
        for (index, task) in tasks.iter().enumerate() {
            let own: Vec<_> = parts.iter().filter(|part| part.task == index).collect();
            assert_eq!(own.iter().map(|part| part.as_task.work_ns).sum::<u64>(), task.work_ns);
            let last = own.last().unwrap();
            assert_eq!(last.after_ns + last.as_task.deadline_ns, task.deadline_ns);
            assert!(own
                .windows(2)
                .all(|two| two[0].after_ns + two[0].as_task.work_ns == two[1].after_ns
                    && two[0].cpu != two[1].cpu));
        }
        if partitioned {
            whole_ones += 1;
        } else {
            split += 1;
        }
        let mut longest = vec![0; tasks.len()];
        for _ in 0..4 {
            play(&mut draw, &tasks, &parts, 600, &mut longest);
        }
        for (index, (longest, task)) in longest.iter().zip(&tasks).enumerate() {
            let in_parts = parts.iter().filter(|part| part.task == index).count() > 1;
            let about = || format!("{tasks:?} {parts:?}");
            seen[usize::from(in_parts)].add(*longest, task.deadline_ns, about);
        }
    }
    println!("{whole_ones} sets in a partition, {split} more with parts, {refused} refused");
    seen[0].print("C=D, tasks on one CPU, of the deadline");
    assert!(seen[1].print("C=D, tasks in parts, of the deadline").near() > 50);
    assert!(split * 20 > rounds && refused > 0);
}
