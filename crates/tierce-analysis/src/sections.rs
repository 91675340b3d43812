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

use crate::edf::{blocking_within, busy_window, longest_response, signed, Demand, Edf, STEPS_MAX};
use crate::fixed_priority::is_bounded;
use crate::priorities::lowest_first;
use crate::supply::{with_supply, Supply, TimeFor};
use crate::task::{compare_utilisation, Response, Sections, Task, WINDOW_MAX_NS};
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
    let all = 0..tasks.len();
    let one = |index: usize| {
        let other = |other: &usize| *other != index;
        let before: Vec<_> = all.clone().filter(other).filter(|at| levels[*at] <= levels[index]).collect();
        let below: Vec<_> = all.clone().filter(|at| levels[*at] > levels[index]).collect();
        // Who waits for an equal that is blocked waits, too.
        let equals = all.clone().filter(|at| levels[*at] == levels[index]);
        let given_ns = equals.map(|at| tasks[at].blocking_ns).max().unwrap_or(0);
        response_below(tasks, sections, index, &before, &below, given_ns, supply)
    };
    all.clone().map(one).collect()
}

/// An order of fixed priorities that meets all deadlines, if there is one, the most urgent first (Audsley 1991): how long one
/// is blocked depends on which tasks are less urgent, not on their order.
///
/// # Panics
/// When there are not as many sections as tasks.
pub fn audsley(tasks: &[Task], sections: &[Sections], supply: &Supply) -> Option<Vec<usize>> {
    assert_eq!(tasks.len(), sections.len(), "one of each per task");
    lowest_first(tasks, |index, before, below| {
        let given_ns = tasks[index].blocking_ns;
        let response = response_below(tasks, sections, index, before, below, given_ns, supply);
        response.meets(tasks[index].deadline_ns)
    })
}

/// The longest of these regions, less the ns in which it began.
fn rest_of_longest<'s>(sections: impl Iterator<Item = &'s Sections>) -> u64 {
    sections.map(|section| section.longest_ns.saturating_sub(1)).max().unwrap_or(0)
}

fn response_below(
    tasks: &[Task],
    sections: &[Sections],
    index: usize,
    before: &[usize],
    below: &[usize],
    given_ns: u64,
    supply: &Supply,
) -> Response {
    let region_ns = rest_of_longest(below.iter().map(|at| &sections[*at]));
    let blocking_ns = given_ns.saturating_add(region_ns);
    // The task itself comes last.
    let set: Vec<_> =
        before.iter().map(|at| tasks[*at]).chain([Task { blocking_ns, ..tasks[index] }]).collect();
    let last_ns = sections[index].last_ns;
    with_supply!(supply, supply => last_response(&set, last_ns, supply))
}

/// The longest response of the last of `tasks`, which is blocked as it says and ends with a region of `last_ns`.
fn last_response<S: TimeFor>(tasks: &[Task], last_ns: u64, supply: &S) -> Response {
    let Some((task, before)) = tasks.split_last() else { return Response::Unbounded };
    if !is_bounded(tasks, supply) {
        return Response::Unbounded;
    }
    let mut steps = STEPS_MAX;
    let last_ns = last_ns.clamp(1, task.work_ns);
    let find = || {
        let busy = busy_window(tasks, supply, task.blocking_ns, &mut steps)?;
        let jobs = (busy + task.jitter_ns).div_ceil(task.period_ns);
        let (mut begin, mut worst) = (0, 0);
        for job in 0..jobs {
            let own = (job + 1).saturating_mul(task.work_ns).saturating_add(task.blocking_ns) - last_ns;
            let come = |begin: u64| {
                let jobs = |other: &Task| (begin + other.jitter_ns) / other.period_ns + 1;
                let work = |other: &Task| jobs(other).saturating_mul(other.work_ns);
                before.iter().map(work).fold(own, u64::saturating_add)
            };
            let (last_begin, done) = last_region(supply, begin, last_ns, &mut steps, come)?;
            begin = last_begin;
            worst = worst.max(done + task.jitter_ns - job * task.period_ns);
        }
        Some(worst)
    };
    let mut find = find;
    find().map_or(Response::TooLong, Response::Within)
}

/// When a region of `last_ns` begins, at `least` or later, and when it ends: it begins when the supply has done all that has
/// come by then.
fn last_region<S: TimeFor>(
    supply: &S,
    least: u64,
    last_ns: u64,
    steps: &mut u32,
    come: impl Fn(u64) -> u64,
) -> Option<(u64, u64)> {
    let mut begin = least;
    loop {
        if *steps == 0 || begin > WINDOW_MAX_NS {
            return None;
        }
        *steps -= 1;
        let work = come(begin);
        // At the begin of the ns of supply that comes after this work.
        let next = supply.time_for(work.saturating_add(1)) - 1;
        if next <= begin {
            return Some((begin, supply.time_for(work.saturating_add(last_ns))));
        }
        begin = next;
    }
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
    let blocked = blocked(tasks, sections);
    let demand = Edf::new().demand(&blocked, supply);
    (demand, with_supply!(supply, supply => all_responses(tasks, sections, supply)))
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

fn all_responses<S: TimeFor>(tasks: &[Task], sections: &[Sections], supply: &S) -> Vec<Response> {
    let overload = compare_utilisation_of_valid(tasks, supply) == Ordering::Greater;
    if overload {
        return vec![Response::Unbounded; tasks.len()];
    }
    let given_ns = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    let longest_ns = rest_of_longest(sections.iter()).saturating_add(given_ns);
    let Some(busy) = busy_window(tasks, supply, longest_ns, &mut { STEPS_MAX }) else {
        return vec![Response::TooLong; tasks.len()];
    };
    let one = |index: usize| {
        let (mut steps, mut begin) = (STEPS_MAX, 0);
        let found = longest_response(tasks, index, busy, |release| {
            // The later it comes, the later its last region begins.
            let (last_begin, done) = completion(tasks, sections, index, supply, release, begin, &mut steps)?;
            begin = last_begin;
            Some(done)
        });
        found.map_or(Response::TooLong, Response::Within)
    };
    (0..tasks.len()).map(one).collect()
}

/// A task that is not valid is overload.
fn compare_utilisation_of_valid<S: TimeFor>(tasks: &[Task], supply: &S) -> Ordering {
    if tasks.iter().all(Task::is_valid) {
        compare_utilisation(tasks, supply.rate())
    } else {
        Ordering::Greater
    }
}

/// When the last region of the job with that nominal release begins, not before `least`, and when it ends. The busy period
/// begins at 0 with all others, just after one that is due later has begun a region.
fn completion<S: TimeFor>(
    tasks: &[Task],
    sections: &[Sections],
    index: usize,
    supply: &S,
    release: i64,
    least: u64,
    steps: &mut u32,
) -> Option<(u64, u64)> {
    let task = &tasks[index];
    let deadline = release + signed(task.deadline_ns);
    let others =
        || tasks.iter().zip(sections).enumerate().filter(|(at, _)| *at != index).map(|(_, other)| other);
    let later = others().filter(|(other, _)| signed(other.deadline_ns) > deadline);
    let region_ns = rest_of_longest(later.map(|(_, section)| section));
    let blocking_ns = blocking_within(tasks, deadline.max(0) as u64).saturating_add(region_ns);
    let own = (release + signed(task.jitter_ns)) / signed(task.period_ns) + 1;
    let last_ns = sections[index].last_ns.clamp(1, task.work_ns);
    let own = (own as u64).saturating_mul(task.work_ns).saturating_add(blocking_ns) - last_ns;
    let come = |begin: u64| {
        let work = |other: &Task| {
            let room = deadline - signed(other.deadline_ns) + signed(other.jitter_ns);
            let due = if room < 0 { 0 } else { room as u64 / other.period_ns + 1 };
            let released = (begin + other.jitter_ns) / other.period_ns + 1;
            due.min(released).saturating_mul(other.work_ns)
        };
        others().map(|(other, _)| work(other)).fold(own, u64::saturating_add)
    };
    last_region(supply, least, last_ns, steps, come)
}
