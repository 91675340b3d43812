//! Regions of jobs that no other task preempts: whole jobs, regions at fixed places, floating regions.
//!
//! Two things change. A job may find a less urgent one in a region, which began at the latest 1 ns before: it waits for up to
//! that region less 1 ns (textbooks round this up to the whole region, since they let time be continuous). And whoever has
//! begun its last region goes on to its end, so what counts is when that begins, at s: everything more urgent that is released
//! up to s, s included, comes first, and what comes later waits. That may keep the next job of the task waiting, so all jobs of the
//! busy period are looked at.
//!
//! ```text
//! s(q) = least s with  supply(s) ≥ B + (q + 1)·C − F + Σ (⌊(s + Jⱼ)/Tⱼ⌋ + 1)·Cⱼ      over those above
//! R    = max over q of  (when the supply has done F more) − q·T + J
//! ```
//!
//! Example: 4 in 10, 4 in 12 and 4 in 25 without preemption: responses 7, 11, 12. The first waits for 3 of another one. The
//! second waits for 3 and 4; the third is never blocked, and what comes after it has begun does not preempt it.
//!
//! Sources: Davis, Burns, Bril & Lukkien, "Controller Area Network (CAN) schedulability analysis: refuted, revisited and
//! revised", Real-Time Systems 35, 2007 (whole jobs, all jobs of the busy period); Bril, Lukkien & Verhaegh, "Worst-case response time analysis
//! of real-time tasks under fixed-priority scheduling with deferred preemption", Real-Time Systems 42, 2009, and Yao, Buttazzo
//! & Bertogna, "Feasibility analysis under fixed priority scheduling with limited preemptions", Real-Time Systems 47, 2011 (a last
//! region); George, Rivierre & Spuri, "Preemptive and non-preemptive real-time uniprocessor scheduling", INRIA report 2966, 1996
//! (earliest deadline first); Baruah, "The limited-preemption uniprocessor scheduling of sporadic task systems", ECRTS 2005.
//!
//! A supply may end within a region; it goes on when there is supply again. `blocking` of a task is added: it may wait for
//! both. Jobs of a task become ready in their order.

use crate::edf::{
    blocking_within, completion, longest_response, releases_until, signed, Demand, Edf, STEPS_MAX,
};
use crate::fixed_priority::FixedPriority;
use crate::priorities::lowest_first;
use crate::supply::{with_supply, Supply, TimeFor};
use crate::task::{compare_utilisation, LastRegion, Response, Sections, Task};
use crate::watch::Watch;
use std::cmp::Ordering;

/// Longest responses by fixed priorities. `levels` has one number per task, the smaller the more urgent; equal ones wait for each
/// other.
///
/// # Panics
/// When there is not one of each per task.
pub fn fixed_priority(
    tasks: &[Task],
    sections: &[Sections],
    levels: &[u32],
    supply: &Supply,
) -> Vec<Response> {
    assert!(tasks.len() == sections.len() && tasks.len() == levels.len(), "one of each per task");
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let sorted: Vec<_> = order.iter().map(|index| levels[*index]).collect();
    let last = |index: &usize| LastRegion { length_ns: sections[*index].last_ns, level: 0 };
    let last: Vec<_> = order.iter().map(last).collect();
    let mut blocked: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    // From the least urgent up: the longest region below a level, and down to the one before it.
    let (mut below_ns, mut upto_ns) = (0, 0);
    for at in (0..order.len()).rev() {
        if at + 1 < order.len() && sorted[at] != sorted[at + 1] {
            below_ns = upto_ns;
        }
        blocked[at].blocking_ns = blocked[at].blocking_ns.saturating_add(below_ns);
        upto_ns = upto_ns.max(sections[order[at]].longest_ns.saturating_sub(1));
    }
    let mut analysis = FixedPriority::new();
    let found = analysis.responses_to_last_regions(&blocked, &sorted, &last, supply);
    let mut responses = vec![Response::Unbounded; tasks.len()];
    order.iter().zip(found).for_each(|(index, response)| responses[*index] = *response);
    responses
}

/// An order of fixed priorities that meets all deadlines, if there is one, the most urgent first (Audsley 1991): how long one
/// is blocked depends on which tasks are less urgent, not on their order.
///
/// # Panics
/// When there are not as many sections as tasks.
pub fn audsley(tasks: &[Task], sections: &[Sections], supply: &Supply) -> Option<Vec<usize>> {
    assert_eq!(tasks.len(), sections.len(), "one of each per task");
    let mut analysis = FixedPriority::new();
    lowest_first(tasks, |index, above, below| {
        let region_ns = rest_of_longest(below.iter().map(|at| &sections[*at]));
        let blocking_ns = tasks[index].blocking_ns.saturating_add(region_ns);
        let mut set: Vec<_> = above.iter().map(|at| tasks[*at]).collect();
        set.push(Task { blocking_ns, ..tasks[index] });
        let response = analysis.last_response_to_last_region(&set, (sections[index].last_ns, 0), supply);
        Some(response.meets(tasks[index].deadline_ns))
    })
}

/// The longest of these regions, less the ns in which it began.
fn rest_of_longest<'s>(sections: impl Iterator<Item = &'s Sections>) -> u64 {
    sections.map(|section| section.longest_ns.saturating_sub(1)).max().unwrap_or(0)
}

/// Whether what [`earliest_deadline`] finds is more than a bound: no job has jitter or a blocking time, and the longest region of a
/// job may be at its begin. Of a later one the deadline may be too soon to block.
///
/// # Panics
/// When there are not as many sections as tasks.
pub fn earliest_deadline_is_exact(tasks: &[Task], sections: &[Sections]) -> bool {
    assert_eq!(tasks.len(), sections.len(), "one of each per task");
    let at_begin = |task: &Task, section: &Sections| {
        section.longest_ns <= 1 || section.longest_ns > section.last_ns || section.last_ns == task.work_ns
    };
    let plain = |task: &Task| task.jitter_ns == 0 && task.blocking_ns == 0;
    tasks.iter().zip(sections).all(|(task, section)| plain(task) && at_begin(task, section))
}

/// By earliest deadline: the verdict, and longest responses.
///
/// # Panics
/// When there are not as many sections as tasks.
pub fn earliest_deadline(tasks: &[Task], sections: &[Sections], supply: &Supply) -> (Demand, Vec<Response>) {
    earliest_deadline_while(tasks, sections, supply, &Watch::default())
}

/// The same. Responses that are not known when it is ended are [`Response::TooLong`].
///
/// # Panics
/// When there are not as many sections as tasks.
pub fn earliest_deadline_while(
    tasks: &[Task],
    sections: &[Sections],
    supply: &Supply,
    watch: &Watch,
) -> (Demand, Vec<Response>) {
    let blocked = blocked(tasks, sections);
    let demand = Edf::new().demand(&blocked, supply);
    (demand, with_supply!(supply, supply => all_responses(tasks, sections, supply, watch)))
}

/// The tasks, each blocked by whoever can be in a region and is due later. One due no later than the window ends is counted
/// within it, so those with a longer deadline are left; a job that becomes ready late is due sooner after that.
///
/// # Panics
/// When there are not as many sections as tasks.
pub fn blocked(tasks: &[Task], sections: &[Sections]) -> Vec<Task> {
    assert_eq!(tasks.len(), sections.len(), "one of each per task");
    let blocked = |(index, task): (usize, &Task)| {
        let later = |(at, other): &(usize, &Task)| {
            *at != index && other.deadline_ns.saturating_add(task.jitter_ns) > task.deadline_ns
        };
        let regions = tasks.iter().enumerate().filter(later).map(|(at, _)| &sections[at]);
        Task { blocking_ns: task.blocking_ns.saturating_add(rest_of_longest(regions)), ..*task }
    };
    tasks.iter().enumerate().map(blocked).collect()
}

fn all_responses<S: TimeFor>(
    tasks: &[Task],
    sections: &[Sections],
    supply: &S,
    watch: &Watch,
) -> Vec<Response> {
    let valid = tasks.iter().all(Task::is_valid);
    if !valid || compare_utilisation(tasks, supply.rate()) == Ordering::Greater {
        return vec![Response::Unbounded; tasks.len()];
    }
    let given_ns = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    // Who blocks is no part of what is due, but of what is released; with jitter perhaps of both.
    let late = tasks.iter().any(|task| task.jitter_ns > 0);
    let region_ns = if late { rest_of_longest(sections.iter()) } else { 0 };
    let Some(busy) = releases_until(tasks, supply, given_ns.saturating_add(region_ns), &mut { STEPS_MAX })
    else {
        return vec![Response::TooLong; tasks.len()];
    };
    let one = |(index, task): (usize, &Task)| {
        if watch.is_ended() {
            return Response::TooLong;
        }
        let (mut steps, mut begun) = (STEPS_MAX, 0);
        // When its last region has begun, by 1 ns, nothing goes before the rest of it.
        let rest = sections[index].last_ns.min(task.work_ns).saturating_sub(1);
        let found = longest_response(tasks, index, busy, |release| {
            if watch.is_ended() {
                return None;
            }
            let deadline = release + signed(task.deadline_ns);
            let later = |(at, other): &(usize, &Task)| *at != index && signed(other.deadline_ns) > deadline;
            let regions = tasks.iter().enumerate().filter(later).map(|(at, _)| &sections[at]);
            let given_ns = if given_ns > 0 { blocking_within(tasks, deadline.max(0) as u64) } else { 0 };
            let blocking_ns = given_ns.saturating_add(rest_of_longest(regions));
            // The later it comes, the later its last region begins.
            let (first_done, work) =
                completion(tasks, task, supply, release, blocking_ns, rest, begun, &mut steps)?;
            begun = first_done;
            Some(if rest > 0 { supply.time_for(work.saturating_add(rest)) } else { first_done })
        });
        if found.is_some() || !watch.is_ended() {
            watch.one_is_done();
        }
        found.map_or(Response::TooLong, Response::Within)
    };
    tasks.iter().enumerate().map(one).collect()
}
