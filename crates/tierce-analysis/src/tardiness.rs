//! Global EDF where deadlines may be missed: by how much at most?
//!
//! If no task needs more than a CPU, and all together no more than there are, no job is ever late by more than a bound that
//! depends on the tasks alone. Two are known, and the smaller counts:
//!
//! - Devi & Anderson, "Tardiness bounds under global EDF scheduling on a multiprocessor", RTSS 2005 (Real-Time Systems 38, 2008),
//!   for deadlines equal to periods, without jitter: Cₖ + (the Λ largest C − the least C)/(m − the Λ − 1 largest U), where
//!   Λ = ⌈ΣU⌉ − 1 tasks at most wait or run while a CPU is idle that the set needs.
//! - The compliant vector: Erickson, Devi & Baruah, "Improved tardiness bounds for global EDF", ECRTS 2010; Erickson, Guan &
//!   Baruah, "Tardiness bounds for global EDF with deadlines different from periods", OPODIS 2010; Erickson & Anderson, "Fair
//!   lateness scheduling", ECRTS 2012. Below is the form that is computed.
//!
//! **The compliant vector.** EDF decides the same if all deadlines D are earlier by one constant; let Yᵢ ≥ Jᵢ be what remains of
//! them. Numbers xᵢ ≥ max(0, Cᵢ − Yᵢ) are compliant if for every task
//!
//! ```text
//! m·xᵢ + Cᵢ ≥ S + G,   S = Σ (max(0, Cᵢ − Uᵢ·Yᵢ) + Uᵢ·Jᵢ),   G = the Λ largest of Uᵢ·(xᵢ + Yᵢ − Jᵢ)
//! ```
//!
//! Then every job is done within Yᵢ + xᵢ + Cᵢ. *Why*: take a job that is due (in terms of Y) at d, all jobs due before it being done as
//! promised, and beside all jobs due by d a fluid schedule in which each task gets the rate Uᵢ from its nominal releases on. At d
//! that schedule has at most Cᵢ − Uᵢ·Yᵢ left of a task. What the real one is behind grows only while at most Λ of its jobs are ready. At
//! the end of the last such time before d a task that has no ready job is behind by at most Uᵢ·Jᵢ. Another one runs; with δ of its c
//! done it has C − c + δ less time left than promised, so its release is at most Yᵢ + xᵢ + C − c + δ ago, and it is behind by
//! at most Uᵢ·(xᵢ + Yᵢ), which is largest at c = C. So at d at most S + G ≤ m·xᵢ + Cᵢ is left. Either all CPUs are busy with it until
//! d + xᵢ, then Cᵢ is left; or fewer than m tasks have some, and the job, whose predecessor was due a period before it, runs from d + xᵢ
//! on without a break.
//!
//! Example, two CPUs, three tasks of 2 in 3: U = 2, Λ = 1. Without jitter Y = D = 3: S = 0, x = 2/3·(x + 3)/2 − 1, that is 0: done within
//! 3 + 0 + 2. Released together,
//! the last one is done at 4.
//!
//! Everything is rounded up to whole ns, so a bound may be larger by a few of them.

use crate::task::{compare_utilisation, Task};
use std::cmp::Ordering;

/// How late the jobs of each task can be at most under global EDF on so many CPUs; `None`: no bound is known. Deadlines may be of any
/// length. There is no bound for a set that needs more than there is, or has a task that may be blocked or whose jitter is longer than its
/// period or deadline.
pub fn tardiness(tasks: &[Task], cpus: u32) -> Vec<Option<u64>> {
    let known = |task: &Task| {
        let steady = task.jitter_ns <= task.deadline_ns.min(task.period_ns) && task.blocking_ns == 0;
        task.is_valid() && task.work_ns <= task.period_ns && steady
    };
    if !tasks.iter().all(known) || compare_utilisation(tasks, (cpus.into(), 1)) == Ordering::Greater {
        return vec![None; tasks.len()];
    }
    let carriers = carriers(tasks, cpus);
    let simple = |task: &Task| task.deadline_ns == task.period_ns && task.jitter_ns == 0;
    let mut late = vec![u128::MAX; tasks.len()];
    if tasks.iter().all(simple) {
        late = devi_and_anderson(tasks, cpus, carriers);
    }
    // Which part of the deadlines is best taken off depends on the set; any is sound.
    let least = |room: fn(&Task) -> u64| tasks.iter().map(room).min().unwrap_or(0);
    let most = least(|task| task.deadline_ns - task.jitter_ns);
    for earlier in [0, most, most.min(least(|task| task.deadline_ns.saturating_sub(task.work_ns)))] {
        for (late, found) in late.iter_mut().zip(compliant(tasks, cpus, carriers, earlier)) {
            *late = found.min(*late);
        }
    }
    late.into_iter().map(|late| u64::try_from(late).ok()).collect()
}

/// Λ: while more tasks than that have a job that is ready, and up to that many more CPUs are busy, nothing more is left behind.
fn carriers(tasks: &[Task], cpus: u32) -> usize {
    let fits = |whole: &u32| compare_utilisation(tasks, ((*whole).into(), 1)) != Ordering::Greater;
    (0..cpus).find(|below| fits(&(below + 1))).unwrap_or(cpus.saturating_sub(1)) as usize
}

/// The sum of the `count` largest.
fn largest(mut values: Vec<u128>, count: usize) -> u128 {
    if count < values.len() {
        values.select_nth_unstable_by(count, |a, b| b.cmp(a));
        values.truncate(count);
    }
    values.iter().sum()
}

/// U·time, rounded up.
fn share(task: &Task, time: u128) -> u128 {
    (u128::from(task.work_ns) * time).div_ceil(task.period_ns.into())
}

/// More is not looked at: times a work it still fits.
const LEFT_MAX: u128 = 1 << 67;

/// Rates in parts of that, rounded up.
const RATE_ONE: u128 = 1 << 62;

fn devi_and_anderson(tasks: &[Task], cpus: u32, carriers: usize) -> Vec<u128> {
    let works = || tasks.iter().map(|task| u128::from(task.work_ns));
    let rates = tasks.iter().map(|task| share(task, RATE_ONE)).collect();
    // Rounding up can make this 0 or less by a little: then there is nothing to say.
    let left = (u128::from(cpus) * RATE_ONE).saturating_sub(largest(rates, carriers.saturating_sub(1)));
    let behind = largest(works().collect(), carriers).saturating_sub(works().min().unwrap_or(0));
    let delay = match left {
        0 => None,
        // `behind` times 2^62 may be too large: in two parts.
        _ => Some(divided(behind, left)),
    };
    works().map(|work| delay.map_or(u128::MAX, |delay| work.saturating_add(delay))).collect()
}

/// ⌈time·[`RATE_ONE`]/rate⌉, rounded up twice.
fn divided(time: u128, rate: u128) -> u128 {
    match time.checked_mul(RATE_ONE) {
        Some(scaled) => scaled.div_ceil(rate),
        None => time.saturating_mul(RATE_ONE.div_ceil(rate)),
    }
}

/// Beyond the deadlines, if these count as due `earlier`. `earlier` is at most each deadline less its jitter.
fn compliant(tasks: &[Task], cpus: u32, carriers: usize, earlier: u64) -> Vec<u128> {
    let due = |task: &Task| u128::from(task.deadline_ns - earlier);
    let begun = |task: &Task| {
        let done = u128::from(task.work_ns) * due(task) / u128::from(task.period_ns);
        u128::from(task.work_ns).saturating_sub(done) + share(task, task.jitter_ns.into())
    };
    let begun: u128 = tasks.iter().map(begun).sum();
    let delay = |task: &Task, left: u128| {
        let work = u128::from(task.work_ns);
        left.saturating_sub(work).div_ceil(cpus.into()).max(work.saturating_sub(due(task)))
    };
    let holds = |left: u128| {
        let behind =
            tasks.iter().map(|task| share(task, delay(task, left) + due(task) - u128::from(task.jitter_ns)));
        begun + largest(behind.collect(), carriers) <= left
    };
    // What is left grows slower than its cause, so some number holds, and all that are larger do, but for the rounding.
    let mut high = begun.max(1);
    while !holds(high) {
        let Some(more) = high.checked_mul(2).filter(|more| *more < LEFT_MAX) else {
            return vec![u128::MAX; tasks.len()];
        };
        high = more;
    }
    let mut low = 0;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let late = |task: &Task| {
        (due(task) + delay(task, high) + u128::from(task.work_ns)).saturating_sub(task.deadline_ns.into())
    };
    tasks.iter().map(late).collect()
}
