//! Chains over CPUs with fixed priorities.
//!
//! Tasks that one head releases are a *transaction*. With T its period, φ the earliest and φ + J the latest time at which a task of it
//! is ready, the longest response of a task is found in a busy period that begins when one task k of its transaction that goes
//! before it, or itself, is ready as late as it can be. Of task j, measured from there, the first job that is not late comes at
//! φⱼₖ, those before it all at once at 0, and later ones as soon as they can (Palencia & González Harbour 1998):
//!
//! ```text
//! φⱼₖ   = T − (φₖ + Jₖ − φⱼ) mod T
//! Wₖ(t) = Σ over j that go before  (⌊(Jⱼ + φⱼₖ)/T⌋ + ⌈(t − φⱼₖ)/T⌉)·Cⱼ
//! w(p)  = least t with  t = B + (p − p₀ + 1)·C + Wₖ(t) + Σ over other transactions  max over k Wₖ(t),   p₀ = 1 − ⌊(J + φ)/T⌋
//! R     = max over k and p of  w(p) − φ − (p − 1)·T
//! ```
//!
//! Heads are strictly periodic here: where the next release may come later than T after the last, it may meet a task of the last one that
//! it would not meet otherwise. Each task below a sporadic head is a transaction of its own, of which only the jitter counts.

use super::{is_beyond, propagate, Release, Span, Times};
use crate::fixed_priority::FixedPriority;
use crate::supply::Supply;
use crate::task::{compare_utilisation, Task};
use std::cmp::Ordering;
use tierce_guarantee::TIME_MAX_NS;

/// Steps of all fixed points of one task.
const STEPS_MAX: u32 = 100_000;

/// A task, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Period: of a triggered one that of its head. Jitter is that of `release`; the deadline does not count.
    pub task: Task,
    /// The least work of a job.
    pub least_work_ns: u64,
    /// Which CPU.
    pub cpu: usize,
    /// The less, the sooner it runs; those with equal numbers may go before each other.
    pub level: u32,
    /// What releases it.
    pub release: Release,
}

/// Times of tasks in whole CPUs.
///
/// # Panics
/// When tasks trigger each other in a circle.
pub fn by_fixed_priority(tasks: &[Placed]) -> Vec<Times> {
    times(tasks, true)
}

/// The same by jitter alone: what [`by_fixed_priority`] finds without the offsets of tasks that have one head.
///
/// # Panics
/// As [`by_fixed_priority`].
pub fn by_jitter_alone(tasks: &[Placed]) -> Vec<Times> {
    times(tasks, false)
}

fn times(tasks: &[Placed], with_offsets: bool) -> Vec<Times> {
    let releases: Vec<_> = tasks.iter().map(|task| task.release.clone()).collect();
    let least: Vec<_> = tasks.iter().map(|task| task.least_work_ns).collect();
    let heads: Vec<_> = (0..tasks.len()).map(|task| head(tasks, task)).collect();
    let mut cpus: Vec<_> = tasks.iter().map(|task| task.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let by_cpu: Vec<Vec<usize>> = cpus
        .iter()
        .map(|cpu| {
            let mut on_it: Vec<_> = (0..tasks.len()).filter(|task| tasks[*task].cpu == *cpu).collect();
            on_it.sort_by_key(|task| tasks[*task].level);
            on_it
        })
        .collect();
    propagate(&releases, &least, |ready| {
        let mut responses = vec![u64::MAX; tasks.len()];
        for on_it in &by_cpu {
            responses_on(tasks, &heads, ready, (on_it, with_offsets), &mut responses);
        }
        responses
    })
}

/// The task that makes its transaction: its head, of which all that a join waits for have the same.
fn head(tasks: &[Placed], task: usize) -> usize {
    let mut head = task;
    // Circles are refused later on.
    for _ in 0..tasks.len() {
        match &tasks[head].release {
            Release::After(before) if !before.is_empty() => head = before[0].0,
            Release::Own { sporadic: true, .. } => return task,
            _ => break,
        }
    }
    head
}

/// Of those on one CPU, by decreasing priority.
fn responses_on(
    tasks: &[Placed],
    heads: &[usize],
    ready: &[Span],
    (on_it, with_offsets): (&[usize], bool),
    responses: &mut [u64],
) {
    // A jitter beyond all bounds makes this and all below unbounded.
    let late = |at: &usize| {
        let (jitter_ns, task) = (ready[*at].jitter_ns(), tasks[*at].task);
        let beyond = matches!(tasks[*at].release, Release::After(_)) && is_beyond(jitter_ns, task.period_ns);
        Task { jitter_ns: if beyond { u64::MAX } else { jitter_ns }, ..task }
    };
    let set: Vec<_> = on_it.iter().map(late).collect();
    let levels: Vec<_> = on_it.iter().map(|at| tasks[*at].level).collect();
    let mut by_jitter = FixedPriority::new();
    let by_jitter = by_jitter.responses_by_level(&set, &levels, &Supply::WHOLE);
    for (place, at) in on_it.iter().enumerate() {
        let upto = levels.iter().rposition(|level| *level == levels[place]).map_or(place, |last| last);
        let head = |other: usize| (heads[on_it[other]], ready[on_it[other]].least_ns);
        let found = with_offsets.then(|| response_with_offsets(&set[..=upto], place, head)).flatten();
        let by_jitter = by_jitter[place].ns().unwrap_or(u64::MAX);
        responses[*at] = by_jitter.min(found.unwrap_or(u64::MAX));
    }
}

/// A task that goes before the one that is looked at, in a transaction.
struct Member {
    offset_ns: u64,
    task: Task,
}

impl Member {
    /// φⱼₖ.
    fn first_ns(&self, latest: &Member) -> u64 {
        let period_ns = self.task.period_ns;
        let behind = latest.offset_ns + latest.task.jitter_ns + period_ns - self.offset_ns;
        period_ns - behind % period_ns
    }

    /// Jobs that come at once when `latest` is as late as it can be, and from then on within a window.
    fn jobs(&self, latest: &Member, window: u64) -> u64 {
        let first_ns = self.first_ns(latest);
        let at_once = (self.task.jitter_ns + first_ns) / self.task.period_ns;
        at_once + window.saturating_sub(first_ns).div_ceil(self.task.period_ns)
    }
}

/// Their work in a window.
fn work(members: &[Member], latest: &Member, window: u64) -> u64 {
    members.iter().fold(0, |sum, member| {
        sum.saturating_add(member.jobs(latest, window).saturating_mul(member.task.work_ns))
    })
}

/// The longest response of one of `tasks`, before which the others may go, from the earliest time at which it is ready.
/// `None`: no bound is found.
fn response_with_offsets(tasks: &[Task], index: usize, head: impl Fn(usize) -> (usize, u64)) -> Option<u64> {
    let fit = tasks.iter().all(Task::is_valid) && compare_utilisation(tasks, (1, 1)) == Ordering::Less;
    if !fit {
        return None;
    }
    let member = |at: usize| Member { offset_ns: head(at).1 % tasks[at].period_ns, task: tasks[at] };
    let own = member(index);
    let mut transactions: Vec<(usize, Vec<Member>)> = vec![(head(index).0, Vec::new())];
    for at in (0..tasks.len()).filter(|at| *at != index) {
        match transactions.iter_mut().find(|(of, _)| *of == head(at).0) {
            Some((_, members)) => members.push(member(at)),
            None => transactions.push((head(at).0, vec![member(at)])),
        }
    }
    let ((_, beside), others) = transactions.split_first()?;
    let blocking_ns = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    let others_work = |window: u64| {
        others.iter().fold(blocking_ns, |sum, (_, members)| {
            let most = members.iter().map(|latest| work(members, latest, window)).max();
            sum.saturating_add(most.unwrap_or(0))
        })
    };
    let mut steps = STEPS_MAX;
    let mut done_with = |own_work: u64, latest: &Member, mut end: u64| loop {
        let done = own_work.saturating_add(work(beside, latest, end)).saturating_add(others_work(end));
        if done <= end {
            return Some(end);
        }
        end = done;
        steps = steps.checked_sub(1)?;
        if end > TIME_MAX_NS {
            return None;
        }
    };
    let mut worst = 0;
    for latest in beside.iter().chain([&own]) {
        let first_ns = own.first_ns(latest);
        let at_once = (own.task.jitter_ns + first_ns) / own.task.period_ns;
        // Until no further job of it comes before what came so far is done.
        let (mut jobs, mut end) = (0, done_with(0, latest, 1)?);
        while jobs < own.jobs(latest, end) {
            // Jobs are counted from the first of those that come at once.
            let release_ns = first_ns + jobs * own.task.period_ns;
            jobs += 1;
            end = done_with(own.task.work_ns.checked_mul(jobs)?, latest, end)?;
            worst = worst.max((end + at_once * own.task.period_ns).checked_sub(release_ns)?);
        }
    }
    Some(worst)
}
