//! Sensitivity: how far can one number of a set change until deadlines are missed?
//!
//! Each by bisection on the test itself, to the ns: the value that is found holds, the next one does not. A test that gives up
//! counts as not holding. Where the set does not hold as it is, the value to which this one number has to change so that
//! it does. Example: 2 in 8 above 3 in 12: the 2 may grow to 5 or the 3 to 8, the 8 shrink to 2.75 or the 12 to 5, and all works
//! grow by 12/7 (2·2 + 3 within 12).
//!
//! Source: Lehoczky, Sha & Ding, "The rate monotonic scheduling algorithm", RTSS 1989 (the factor common to all works); Bini, Di
//! Natale & Buttazzo, "Sensitivity analysis for fixed-priority real-time systems", Real-Time Systems 39, 2008. Their sums are
//! for one test each; bisection takes any test that does not get better when work grows or periods and deadlines shrink.

use crate::task::Task;
use tierce_guarantee::TIME_MAX_NS;

/// How far the numbers of a task can change, each by itself. `None`: no value of it makes the set hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest work.
    pub work_max_ns: Option<u64>,
    /// The smallest period. A deadline that equals the period goes with it.
    pub period_min_ns: Option<u64>,
    /// The smallest deadline.
    pub deadline_min_ns: Option<u64>,
}

/// The limits of `tasks[index]`, the others being as they are. `holds` is told the whole set.
pub fn limits(tasks: &[Task], index: usize, mut holds: impl FnMut(&[Task]) -> bool) -> Limits {
    let task = tasks[index];
    let mut set = tasks.to_vec();
    let mut with = |changed: Task| {
        set[index] = changed;
        holds(&set)
    };
    // Nothing beyond that can be done from when it is ready until it is due.
    let room = task.deadline_ns.saturating_sub(task.jitter_ns).min(TIME_MAX_NS);
    let work = largest(room, |work_ns| with(Task { work_ns, ..task }));
    let implicit = task.deadline_ns == task.period_ns;
    let period = smallest(task.period_ns, |period_ns| {
        let deadline_ns = if implicit { period_ns } else { task.deadline_ns };
        with(Task { period_ns, deadline_ns, ..task })
    });
    let deadline = smallest(task.deadline_ns, |deadline_ns| with(Task { deadline_ns, ..task }));
    Limits { work_max_ns: work, period_min_ns: period, deadline_min_ns: deadline }
}

/// A billion: the unit of [`work_scale`].
pub const SCALE_ONE: u64 = 1_000_000_000;

/// All works `scale` billionths of what they are, rounded up.
pub fn scaled(tasks: &[Task], scale: u64) -> Vec<Task> {
    let work = |work: u64| {
        let work = (u128::from(work) * u128::from(scale)).div_ceil(u128::from(SCALE_ONE));
        u64::try_from(work).unwrap_or(u64::MAX)
    };
    tasks.iter().map(|task| Task { work_ns: work(task.work_ns), ..*task }).collect()
}

/// The largest factor common to all works, in billionths, with which the set holds. `None`: none, or there is no task.
pub fn work_scale(tasks: &[Task], mut holds: impl FnMut(&[Task]) -> bool) -> Option<u64> {
    let room = |task: &Task| u128::from(task.deadline_ns.saturating_sub(task.jitter_ns));
    let most = |task: &Task| room(task) * u128::from(SCALE_ONE) / u128::from(task.work_ns.max(1));
    let most = tasks.iter().map(most).min()?;
    largest(u64::try_from(most).unwrap_or(u64::MAX), |scale| holds(&scaled(tasks, scale)))
}

/// The largest value from 1 to `most` that holds, if smaller ones do.
fn largest(most: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    if most == 0 || !holds(1) {
        return None;
    }
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

/// The smallest value that holds, if larger ones do; looked for around `now`.
fn smallest(now: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (1, now.clamp(1, TIME_MAX_NS));
    while !holds(high) {
        if high == TIME_MAX_NS {
            return None;
        }
        low = high + 1;
        high = high.saturating_mul(2).min(TIME_MAX_NS);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}
