//! Jobs that suspend themselves: at any places, any number of times, together no longer than given. Preemptive, on a whole CPU.
//!
//! While every job that counts is suspended the CPU is left to others, so a job that suspends itself may come back in a bunch with the
//! next one. All results here are bounds; which of them is better differs from set to set, so the best one is taken.
//!
//! - **Suspension as work** (the oldest): a job that suspends itself for S is one that works for S longer. In the time in which
//!   some job that counts is not done, either one of them runs, or all are suspended, and then one of these uses up S. Holds for both
//!   policies, any deadlines and jitter.
//! - **Fixed priorities** (Chen, Nelissen & Huang, "A unifying response time analysis framework for dynamic self-suspending
//!   tasks", ECRTS 2016, Theorem 1): for each more urgent task i one may choose whether its suspension counts as jitter of all tasks
//!   down to it (xᵢ = 1), or what it may be late as its own jitter (xᵢ = 0). Every choice is a bound; the least counts:
//!
//! ```text
//! R = least t with  t = C + S + Σ ⌈(t + Qᵢ + (1 − xᵢ)·(Rᵢ − Cᵢ))/Tᵢ⌉·Cᵢ,   Qᵢ = Σ over j from i down to the last of  xⱼ·Sⱼ
//! ```
//!
//!   if t ≤ T and all Rᵢ ≤ Tᵢ. To count the suspension of a more urgent task as jitter S, or only as blocking once, as older analyses
//!   did, is wrong (Chen et al., "Many suspensions, many problems", Real-Time Systems 55, 2019).
//! - **Earliest deadline**: if all deadlines were met until a job becomes ready, then a task i executes in the D − J until it is due no more
//!   than ⌊(D − J)/Tᵢ⌋·Cᵢ and one job's part, up to when that is due at the latest, less its slack (as on several CPUs: Bertogna,
//!   Cirinei & Lipari 2005; Bertogna & Cirinei 2007, where what runs beside does not count either). The job is done after that, C
//!   and S. Only what the job itself waits for is added, so S counts once; for deadlines up to the period.
//!
//! Example: 1 in 4 that suspends itself for 2, above 2 in 8: the second one is done within 4, since two jobs of the first may
//! come in 3; with the suspension as work within 8; if nothing were suspended within 3.

use crate::edf::{Demand, Edf};
use crate::fixed_priority::FixedPriority;
use crate::supply::Supply;
use crate::task::{Response, Task};

/// More tasks than that which suspend themselves have not all their choices tried.
const CHOICES_OF_MAX: usize = 8;

/// Rounds in which slacks are made larger.
const ROUNDS_MAX: u32 = 100;

/// Steps of one fixed point.
const STEPS_MAX: u32 = 100_000;

/// Each works for as long as it suspends itself, too.
///
/// # Panics
/// When there is not one suspension per task.
pub fn as_work(tasks: &[Task], suspensions: &[u64]) -> Vec<Task> {
    assert_eq!(tasks.len(), suspensions.len(), "one suspension per task");
    let with = |(task, suspension): (&Task, &u64)| Task {
        work_ns: task.work_ns.saturating_add(*suspension),
        ..*task
    };
    tasks.iter().zip(suspensions).map(with).collect()
}

/// Bounds by fixed priorities, the most urgent first; `levels` as in [`FixedPriority::responses_by_level`].
///
/// # Panics
/// When there is not one of each per task.
pub fn fixed_priority(tasks: &[Task], suspensions: &[u64], levels: &[u32]) -> Vec<Response> {
    let working = as_work(tasks, suspensions);
    let mut bounds = FixedPriority::new().responses_by_level(&working, levels, &Supply::WHOLE).to_vec();
    for index in 0..tasks.len() {
        // What the theorem takes for granted: one order, no jitter, and nobody above is late.
        let upto = tasks.len().min(index + 2);
        let one_order = levels[..upto].windows(2).all(|pair| pair[0] < pair[1]);
        let plain =
            tasks[..=index].iter().all(|task| task.is_valid() && task.jitter_ns + task.blocking_ns == 0);
        let mut lateness = Vec::with_capacity(index);
        for (task, bound) in tasks[..index].iter().zip(&bounds) {
            lateness.extend(bound.ns().filter(|ns| *ns <= task.period_ns).map(|ns| ns - task.work_ns));
        }
        if !one_order || !plain || lateness.len() < index {
            break;
        }
        let chosen = best_choice(&tasks[..=index], &suspensions[..=index], &lateness);
        if let Some(ns) = chosen.filter(|ns| bounds[index].ns().is_none_or(|known| *ns < known)) {
            bounds[index] = Response::Within(ns);
        }
    }
    bounds
}

/// The least bound of the last of `tasks` among all choices, or among a few where there are many. `None`: all are above its period.
fn best_choice(tasks: &[Task], suspensions: &[u64], lateness: &[u64]) -> Option<u64> {
    // Without suspension there is nothing to choose: as jitter of 0.
    let suspending: Vec<_> = (0..lateness.len()).filter(|at| suspensions[*at] > 0).collect();
    let mut choices = vec![true; lateness.len()];
    let mut best = None;
    let mut choose = |choice: &dyn Fn(usize) -> bool| {
        suspending.iter().enumerate().for_each(|(bit, at)| choices[*at] = choice(bit));
        let limit_ns = best.map_or(tasks[lateness.len()].period_ns, |best: u64| best - 1);
        best = bound(tasks, suspensions, lateness, &choices, limit_ns).or(best);
    };
    if suspending.len() <= CHOICES_OF_MAX {
        (0..1u32 << suspending.len()).for_each(|bits| choose(&|bit| bits >> bit & 1 == 1));
        return best;
    }
    // None, all, or those whose suspension is not above that of some.
    let mut lengths: Vec<_> = suspending.iter().map(|at| suspensions[*at]).collect();
    lengths.sort_unstable();
    choose(&|_| false);
    for longest in lengths.iter().rev().step_by(lengths.len().div_ceil(CHOICES_OF_MAX)) {
        choose(&|bit| suspensions[suspending[bit]] <= *longest);
    }
    best
}

/// The bound of the last of `tasks` for one choice, if it is not above `limit_ns`.
fn bound(
    tasks: &[Task],
    suspensions: &[u64],
    lateness: &[u64],
    choices: &[bool],
    limit_ns: u64,
) -> Option<u64> {
    let (task, above) = tasks.split_last()?;
    let own = task.work_ns.checked_add(*suspensions.last()?)?;
    let mut early = vec![0u64; above.len()];
    let mut sum = 0u64;
    for at in (0..above.len()).rev() {
        sum = sum.checked_add(if choices[at] { suspensions[at] } else { 0 })?;
        early[at] = sum.checked_add(if choices[at] { 0 } else { lateness[at] })?;
    }
    let mut window = own;
    for _ in 0..STEPS_MAX {
        if window > limit_ns {
            return None;
        }
        let work = above.iter().zip(&early).fold(own, |sum, (other, early)| {
            let jobs = window.saturating_add(*early).div_ceil(other.period_ns);
            sum.saturating_add(jobs.saturating_mul(other.work_ns))
        });
        if work <= window {
            return Some(window);
        }
        window = work;
    }
    None
}

/// Whether all deadlines are met by earliest deadline, and bounds of responses; `None`: not shown.
///
/// # Panics
/// When there is not one suspension per task.
pub fn earliest_deadline(tasks: &[Task], suspensions: &[u64]) -> (bool, Vec<Response>) {
    let working = as_work(tasks, suspensions);
    let mut edf = Edf::new();
    let demand = edf.demand(&working, &Supply::WHOLE);
    let mut bounds = edf.responses(&working, &Supply::WHOLE).to_vec();
    let met = demand == Demand::Met;
    // As long as it is not known that all deadlines are met, no job has slack.
    let slack = |(task, bound): (&Task, &Response)| {
        bound.ns().filter(|_| met).map_or(0, |ns| task.deadline_ns.saturating_sub(ns))
    };
    let mut slacks: Vec<_> = tasks.iter().zip(&bounds).map(slack).collect();
    let mut shown = vec![None; tasks.len()];
    for _ in 0..ROUNDS_MAX {
        let mut better = false;
        for index in 0..tasks.len() {
            let found = bound_until_due(tasks, suspensions, index, &slacks);
            let slack = found.map_or(0, |ns| tasks[index].deadline_ns - ns);
            better |= slack > slacks[index];
            slacks[index] = slacks[index].max(slack);
            shown[index] = found.or(shown[index]);
        }
        if !better {
            break;
        }
    }
    let all_shown = shown.iter().all(Option::is_some);
    for (bound, shown) in bounds.iter_mut().zip(&shown) {
        let better = shown.filter(|ns| bound.ns().is_none_or(|known| *ns < known));
        if let Some(ns) = better.filter(|_| met || all_shown) {
            *bound = Response::Within(ns);
        }
    }
    (met || all_shown, bounds)
}

/// The response of a task whose jobs find all deadlines met, if it is within the deadline.
fn bound_until_due(tasks: &[Task], suspensions: &[u64], index: usize, slacks: &[u64]) -> Option<u64> {
    let task = &tasks[index];
    let window = task.deadline_ns.checked_sub(task.jitter_ns)?;
    if task.deadline_ns > task.period_ns || !tasks.iter().all(|task| task.is_valid() && task.blocking_ns == 0)
    {
        return None;
    }
    let others = tasks.iter().zip(slacks).enumerate().filter(|(at, _)| *at != index);
    let work = others.fold(task.work_ns.checked_add(suspensions[index])?, |sum, (_, (other, slack))| {
        let (jobs, rest) = (window / other.period_ns, window % other.period_ns);
        let part = rest.saturating_sub(*slack).min(other.work_ns);
        sum.saturating_add(jobs.saturating_mul(other.work_ns)).saturating_add(part)
    });
    (work <= window).then_some(work + task.jitter_ns)
}
