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
use std::collections::{HashMap, HashSet};
use tierce_guarantee::TIME_MAX_NS;

/// Steps of all fixed points on one CPU, each of them one task counted in one window.
const STEPS_MAX: u64 = 4_000_000;

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
    let offset = |at: &usize| Offset { transaction: heads[*at], earliest_ns: ready[*at].least_ns };
    let offsets: Vec<_> = on_it.iter().map(offset).collect();
    let mut by_jitter = FixedPriority::new();
    let by_jitter = by_jitter.responses_by_level(&set, &levels, &Supply::WHOLE);
    let with_offsets = match with_offsets {
        true => responses_with_offsets(&set, &levels, &offsets),
        false => vec![None; set.len()],
    };
    for ((at, by_jitter), with_offsets) in on_it.iter().zip(by_jitter).zip(with_offsets) {
        responses[*at] = by_jitter.ns().unwrap_or(u64::MAX).min(with_offsets.unwrap_or(u64::MAX));
    }
}

/// Where the jobs of a task are in their transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Tasks with one number are of one transaction: they have one period, and a strictly periodic head, on whatever CPU.
    pub transaction: usize,
    /// From the nominal release of the head to the earliest time at which the task is ready; by its jitter later at most.
    pub earliest_ns: u64,
}

/// Longest responses on a whole CPU, each from the earliest time at which the task is ready. `tasks` and `levels`: as of
/// [`FixedPriority::responses_by_level`]. `None`: offsets say no more than jitter does, or no bound is found.
///
/// # Panics
/// When there is not one level and one offset per task.
pub fn responses_with_offsets(tasks: &[Task], levels: &[u32], offsets: &[Offset]) -> Vec<Option<u64>> {
    assert_eq!((tasks.len(), tasks.len()), (levels.len(), offsets.len()), "one of each per task");
    let mut found = vec![None; tasks.len()];
    let mut seen = HashSet::new();
    let Some(second) = offsets.iter().position(|offset| !seen.insert(offset.transaction)) else {
        return found;
    };
    let fit = |tasks: &[Task]| compare_utilisation(tasks, (1, 1)) == Ordering::Less;
    let (all_fit, mut steps) = (fit(tasks), STEPS_MAX);
    for place in 0..tasks.len() {
        let before = &tasks[..levels.partition_point(|level| *level <= levels[place])];
        // Fewer than two of any transaction: jitter alone is the same.
        if before.len() > second && before.iter().all(Task::is_valid) && (all_fit || fit(before)) {
            found[place] = Transactions::new(before, offsets, place).response(&mut steps);
        }
    }
    found
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

/// A task, and those that may go before it, by transactions.
struct Transactions {
    own: Member,
    /// Of its own transaction.
    beside: Vec<Member>,
    others: Vec<Vec<Member>>,
    blocking_ns: u64,
}

impl Transactions {
    fn new(tasks: &[Task], offsets: &[Offset], own: usize) -> Self {
        let member =
            |at: usize| Member { offset_ns: offsets[at].earliest_ns % tasks[at].period_ns, task: tasks[at] };
        // The first is its own.
        let mut all = vec![Vec::new()];
        let mut places = HashMap::from([(offsets[own].transaction, 0)]);
        for at in (0..tasks.len()).filter(|at| *at != own) {
            let place = *places.entry(offsets[at].transaction).or_insert(all.len());
            if place == all.len() {
                all.push(Vec::new());
            }
            all[place].push(member(at));
        }
        let blocking_ns = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
        Self { own: member(own), beside: all.swap_remove(0), others: all, blocking_ns }
    }

    /// Work of the other transactions in a window, and blocking.
    fn others_work(&self, window: u64) -> u64 {
        self.others.iter().fold(self.blocking_ns, |sum, members| {
            let most = members.iter().map(|latest| work(members, latest, window)).max();
            sum.saturating_add(most.unwrap_or(0))
        })
    }

    /// How many tasks are counted in one window.
    fn counted(&self) -> u64 {
        let square = |members: &Vec<Member>| (members.len() as u64).pow(2);
        1 + self.beside.len() as u64 + self.others.iter().map(square).sum::<u64>()
    }

    /// From the earliest time at which it is ready. `None`: no bound is found.
    fn response(&self, steps: &mut u64) -> Option<u64> {
        let Self { own, beside, .. } = self;
        let counted = self.counted();
        let mut done_with = |own_work: u64, latest: &Member, mut end: u64| loop {
            *steps = steps.checked_sub(counted)?;
            let beside_work = work(beside, latest, end);
            let done = own_work.saturating_add(beside_work).saturating_add(self.others_work(end));
            if done <= end {
                return Some(end);
            }
            end = done;
            if end > TIME_MAX_NS {
                return None;
            }
        };
        let mut worst = 0;
        for latest in beside.iter().chain([own]) {
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
}
