//! Preemption thresholds: once a job has begun, only tasks with a priority above the threshold of its task preempt it.
//!
//! A threshold is at least the priority. At the priority of its own task it is full preemption, at the highest priority none. What lies
//! between needs fewer preemptions than the one, and blocks fewer tasks than the other.
//!
//! A job of task i waits for one less urgent job that has begun and whose threshold is not below i's priority: for all of it
//! less the 1 ns in which it began (textbooks have continuous time and count that, too). Two of these cannot have begun: the
//! second one would have had to preempt the first. When the job has begun, at s, everything more urgent that was released up to s is
//! done, s included. Of what comes later only tasks above the threshold come before its end:
//!
//! ```text
//! s(q) = least s with  supply(s) ≥ B + q·C + Σ (⌊(s + Jⱼ)/Tⱼ⌋ + 1)·Cⱼ                       over those above the priority
//! f(q) = least f with  supply(f) ≥ the same + C + Σ (⌈(f + Jⱼ)/Tⱼ⌉ − ⌊(s + Jⱼ)/Tⱼ⌋ − 1)·Cⱼ  over those above the threshold
//! R    = max over q of  f(q) − q·T + J
//! ```
//!
//! The largest need not be that of the first job: what waits for its end may come before the second one. So q goes over all jobs in the
//! longest time in which there always is work of the priority or above (the level-i active period).
//!
//! Example: 20 in 70 due within 50, 20 in 80, 35 in 200 due within 100, from the highest priority down. With full preemption the last one
//! takes 115; with none the first one 54. With thresholds of the first, first and second priority they take 39, 74 and 95.
//!
//! Which thresholds are best follows from the least urgent task up: each gets the lowest one with which its own deadlines are met. A higher one
//! would only block more. So if any thresholds meet all deadlines, these do (Wang & Saksena, section 5).
//!
//! Sources: Wang & Saksena, "Scheduling fixed-priority tasks with preemption threshold", RTCSA 1999; Regehr, "Scheduling tasks with mixed preemption
//! relations for robustness to timing faults", RTSS 2002; Keskin, Bril & Lukkien, "Exact response-time analysis for fixed-priority
//! preemption-threshold scheduling", ETFA 2010.
//!
//! Tasks of equal priority count for each other with all jobs that come before the job is done or has its last region, which is a bound. A supply may end
//! within a job, which keeps its threshold meanwhile.

use crate::fixed_priority::FixedPriority;
use crate::supply::Supply;
use crate::task::{LastRegion, Response, Task};

/// Longest responses. `levels` has one number per task, the smaller the more urgent; equal ones wait for each other. `thresholds` has
/// another one, not above that: only tasks of smaller levels preempt a job that has begun.
///
/// # Panics
/// When there is not one of each per task, or a threshold is larger than the level.
pub fn fixed_priority(tasks: &[Task], levels: &[u32], thresholds: &[u32], supply: &Supply) -> Vec<Response> {
    assert!(tasks.len() == levels.len() && tasks.len() == thresholds.len(), "one of each per task");
    assert!(
        levels.iter().zip(thresholds).all(|(level, most)| most <= level),
        "thresholds are of more urgent levels"
    );
    let blocked: Vec<_> = (0..tasks.len()).map(|index| blocked(tasks, levels, thresholds, index)).collect();
    let last = |(task, level): (&Task, &u32)| LastRegion { length_ns: task.work_ns, level: *level };
    let last: Vec<_> = tasks.iter().zip(thresholds).map(last).collect();
    to_last_regions(&blocked, levels, &last, supply)
}

/// The task, blocked by the longest less urgent one that has begun and that it does not preempt.
fn blocked(tasks: &[Task], levels: &[u32], thresholds: &[u32], index: usize) -> Task {
    let by = |other: &usize| levels[*other] > levels[index] && thresholds[*other] <= levels[index];
    let others = (0..tasks.len()).filter(by).map(|other| tasks[other].work_ns.saturating_sub(1));
    let blocking_ns = tasks[index].blocking_ns.saturating_add(others.max().unwrap_or(0));
    Task { blocking_ns, ..tasks[index] }
}

/// Thresholds with which all deadlines are met, if there are some for these levels: the lowest ones.
///
/// # Panics
/// When there is not one level per task.
pub fn choose(tasks: &[Task], levels: &[u32], supply: &Supply) -> Option<Vec<u32>> {
    assert_eq!(tasks.len(), levels.len(), "one of each per task");
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let mut ranks: Vec<_> = order.iter().map(|index| levels[*index]).collect();
    ranks.dedup();
    let mut thresholds = levels.to_vec();
    let mut analysis = FixedPriority::new();
    for &index in order.iter().rev() {
        let task = blocked(tasks, levels, &thresholds, index);
        let others = order.iter().filter(|at| **at != index && levels[**at] <= levels[index]);
        let others: Vec<_> = others.copied().collect();
        let set: Vec<_> = others.iter().map(|at| tasks[*at]).chain([task]).collect();
        let mut meets = |threshold: u32| {
            let within = others.partition_point(|at| levels[*at] < threshold);
            let found = analysis.last_response_to_last_region(&set, (task.work_ns, within), supply);
            found.meets(task.deadline_ns)
        };
        // The higher the threshold, the sooner its jobs are done.
        let own = ranks.partition_point(|level| *level <= levels[index]);
        let enough = ranks[..own].partition_point(|level| meets(*level));
        thresholds[index] = *ranks[..enough].last()?;
    }
    Some(thresholds)
}

/// Longest responses of jobs that end with such regions. Whom a job waits for is part of its blocking already.
///
/// # Panics
/// When there is not one of each per task.
pub fn to_last_regions(
    tasks: &[Task],
    levels: &[u32],
    last: &[LastRegion],
    supply: &Supply,
) -> Vec<Response> {
    assert!(tasks.len() == levels.len() && tasks.len() == last.len(), "one of each per task");
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let sorted: Vec<_> = order.iter().map(|index| levels[*index]).collect();
    let in_order: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    let last: Vec<_> = order.iter().map(|index| last[*index]).collect();
    let mut analysis = FixedPriority::new();
    let found = analysis.responses_to_last_regions(&in_order, &sorted, &last, supply);
    let mut responses = vec![Response::Unbounded; tasks.len()];
    order.iter().zip(found).for_each(|(index, response)| responses[*index] = *response);
    responses
}
