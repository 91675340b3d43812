//! Locks between CPUs whose waiters suspend themselves, with fixed priorities and tasks that stay on their CPUs.
//!
//! Who requests a lock that another job has leaves its CPU to others until it gets it. Who has a lock is *boosted*: it gives way only to others
//! of its CPU that have locks. Sections are not nested, so a task has or awaits one lock at a time.
//!
//! - *MPCP* (Rajkumar, "Real-time synchronization protocols for shared memory multiprocessors", ICDCS 1990; analysis: Lakshmanan, de
//!   Niz & Rajkumar, "Coordinated task scheduling, allocation and synchronization on multiprocessors", RTSS 2009): the most urgent waiter
//!   is next. Of the boosted ones of a CPU that runs whose lock has the highest ceiling there: the priority of the most urgent user on other
//!   CPUs.
//! - *FMLP+* (Brandenburg, "Scheduling and locking in multiprocessor real-time operating systems", 2011, chapter 6; "The FMLP+: an
//!   asymptotically optimal real-time locking protocol for suspension-aware analysis", ECRTS 2014; here partitioned): waiters are served in
//!   the order of their requests, and so are the boosted ones of a CPU.
//!
//! A lock whose users are all on one CPU is one like the others; no request for it waits, since nobody requests while others are boosted.
//!
//! What the oldest analyses say of tasks that suspend themselves is wrong (Chen et al., "Many suspensions, many problems", Real-Time
//! Systems 55, 2019, sections 5 and 6: suspension as jitter of its own length; blocking once per job). Here all rests on these steps:
//!
//! 1. **Jobs near a window.** If no job of h takes longer than Xₕ ≤ Tₕ from its nominal release, jobs of h that are not done at some time
//!    of a window of t are at most nₕ(t) = ⌈(t + Xₕ)/Tₕ⌉, and they work for at most ⌈(t + Xₕ − Cₕ)/Tₕ⌉·Cₕ within it (the safe jitter
//!    there): the first one has no more than its Cₕ left, nor more than the time up to its Xₕ.
//! 2. **Local blocking.** A less urgent task l of the CPU keeps a job of i from running only with a section. While i wants the CPU, l
//!    requests nothing. So of each time that i comes, first or after a wait, l can have one section left: with mᵢ requests of i that may
//!    wait, k = mᵢ + 1 sections of l, and no more than nₗ(t) jobs have. bₗ(t): the sum of the longest of these.
//! 3. **FMLP+.** While a request waits, some section runs whose request is older: that of the holder, or one before it
//!    on the holder's CPU. Each other task has at most one such request. So all waits of a job are at most the sum over other tasks j of
//!    the longest mᵢ sections that nⱼ(t) jobs have. Only tasks count that are connected with i by locks and CPUs.
//! 4. **MPCP.** While a section of k is boosted, no other task of its CPU requests anything, and each has at most one section with a ceiling as
//!    high: a section of L is left H = L + Σ of the longest of these after k got the lock. A request of i waits for one section of a less urgent
//!    user, and for those of users h at least as urgent: W = max H + Σ nₕ(W)·ΣHₕ. All requests of a job for the lock wait
//!    together for no more than nₕ(t) jobs of h either.
//! 5. **Response.** While a job is not done, it works, or is suspended, or at least as urgent tasks of its CPU work, or less urgent
//!    ones with their sections: R = J + t with the least
//!
//! ```text
//! t = C + S(t) + Σ over less urgent l of bₗ(t) + Σ over others h at least as urgent of ⌈(t + Xₕ − Cₕ)/Tₕ⌉·Cₕ
//! ```
//!
//! Each R is needed for others, so all grow together from Xᵢ = Cᵢ until nothing changes; one that would exceed its period has no bound, and
//! neither have those that need it. That is sound: let a job be the first that is not done at its bound. Up to then all others have kept
//! theirs, and steps 1 to 5 speak of no later time.
//!
//! Example: on each of two CPUs one task of work 3 in 10 with a section of 2. Each waits for up to 2 of the other one, so it is done within 5.

use crate::locks::Held;
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};

/// Who gets a lock next, and who of a CPU goes first of those that have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// MPCP: the most urgent waiter; the highest ceiling.
    Priority,
    /// FMLP+: the earlier request.
    Fifo,
}

/// A task with its sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Its work includes all sections, its deadline and blocking do not count. `None`: how often its jobs come is not bounded.
    pub task: Option<Task>,
    /// Where it is.
    pub cpu: usize,
    /// The smaller the more urgent, among those of all CPUs.
    pub urgency: u64,
    /// Number of the lock and length, one after the other.
    pub sections: Vec<(usize, u64)>,
}

/// How long the jobs of a task wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// No job takes longer from its nominal release; `None`: no bound is known, and what follows says nothing.
    pub response_ns: Option<u64>,
    /// How many requests of a job may wait.
    pub requests: u64,
    /// For how long a job is suspended, in all.
    pub suspended_ns: u64,
    /// The sections that its requests may wait for, each with what may run before it on its CPU.
    pub awaited: Vec<Held>,
    /// For how long sections of less urgent tasks of its CPU run while a job wants the CPU, in all.
    pub blocking_ns: u64,
    /// The longest section of each of these, which may run once more than so many requests wait.
    pub behind: Vec<Held>,
}

/// Rounds in which bounds grow; those that then still do have none.
const ROUNDS_MAX: u32 = 200;

/// Steps of one fixed point.
const STEPS_MAX: u32 = 10_000;

/// Of each task.
pub fn waits(waiters: &[Waiter], queue: Queue) -> Vec<Wait> {
    let mut known = Known::of(waiters, queue);
    let mut rounds = 0;
    loop {
        let mut changed = false;
        for at in 0..waiters.len() {
            let Some(before) = known.bounds[at] else { continue };
            let found = known.response_ns(at, before);
            if found != Some(before) {
                known.bounds[at] = found.filter(|_| rounds < ROUNDS_MAX);
                changed = true;
            }
        }
        rounds += 1;
        if !changed {
            break;
        }
    }
    (0..waiters.len()).map(|at| known.wait(at)).collect()
}

/// What does not change while bounds grow.
struct Known<'a> {
    waiters: &'a [Waiter],
    queue: Queue,
    /// Of each CPU, and of each lock, its tasks.
    here: BTreeMap<usize, Vec<usize>>,
    users: BTreeMap<usize, BTreeSet<usize>>,
    /// Of each task a number that those have in common that are connected by locks and CPUs.
    group: Vec<usize>,
    /// Of each task: lengths of its sections, the longest first.
    lengths: Vec<Vec<u64>>,
    /// Of each task: how many of its requests may wait.
    requests: Vec<u64>,
    /// Of each task and lock, the time from getting the lock to leaving it, of its longest section and of all its sections; MPCP's.
    held: BTreeMap<(usize, usize), (u64, u64)>,
    bounds: Vec<Option<u64>>,
}

impl<'a> Known<'a> {
    fn of(waiters: &'a [Waiter], queue: Queue) -> Self {
        let (mut here, mut users) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for (at, one) in waiters.iter().enumerate() {
            here.entry(one.cpu).or_default().push(at);
            one.sections.iter().for_each(|(lock, _)| {
                users.entry(*lock).or_default().insert(at);
            });
        }
        let elsewhere = |lock: &usize, cpu: usize| users[lock].iter().any(|user| waiters[*user].cpu != cpu);
        let requests =
            |one: &Waiter| one.sections.iter().filter(|(lock, _)| elsewhere(lock, one.cpu)).count() as u64;
        let lengths = |one: &Waiter| {
            let mut lengths: Vec<_> = one.sections.iter().map(|(_, length_ns)| *length_ns).collect();
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths
        };
        let (requests, lengths) =
            (waiters.iter().map(requests).collect(), waiters.iter().map(lengths).collect());
        let group = groups(waiters, &here, &users);
        let bounds = waiters.iter().map(|one| one.task.map(|task| task.work_ns)).collect();
        let held = BTreeMap::new();
        let mut known = Self { waiters, queue, here, users, group, lengths, requests, held, bounds };
        if queue == Queue::Priority {
            known.held = known.holding();
        }
        known
    }

    /// Step 4: how long each task has each of its locks.
    fn holding(&self) -> BTreeMap<(usize, usize), (u64, u64)> {
        let ceiling = |lock: usize, cpu: usize| {
            let others = self.users[&lock].iter().map(|user| &self.waiters[*user]);
            others.filter(|user| user.cpu != cpu).map(|user| user.urgency).min().unwrap_or(u64::MAX)
        };
        let mut held = BTreeMap::new();
        for (cpu, here) in &self.here {
            let ceilings: BTreeMap<_, _> = here
                .iter()
                .flat_map(|at| &self.waiters[*at].sections)
                .map(|(lock, _)| (*lock, ceiling(*lock, *cpu)))
                .collect();
            for (lock, own) in &ceilings {
                // Of each task of the CPU its longest section that may go before one with this lock.
                let before = |at: &usize| {
                    let sections = self.waiters[*at].sections.iter();
                    sections.filter(|(lock, _)| ceilings[lock] <= *own).map(|(_, ns)| *ns).max().unwrap_or(0)
                };
                let sum = here.iter().map(before).fold(0, u64::saturating_add);
                for at in here {
                    let others = if sum == u64::MAX { sum } else { sum - before(at) };
                    let sections = self.waiters[*at].sections.iter().filter(|section| section.0 == *lock);
                    let each = sections.map(|(_, length_ns)| length_ns.saturating_add(others));
                    let (longest, all) = each
                        .fold((0u64, 0u64), |(longest, all), ns| (longest.max(ns), all.saturating_add(ns)));
                    if longest > 0 {
                        held.insert((*at, *lock), (longest, all));
                    }
                }
            }
        }
        held
    }

    /// Jobs of a task that are not done at some time of a window; `None`: that is not bounded.
    fn jobs(&self, task: usize, window_ns: u64) -> Option<u64> {
        Some(window_ns.saturating_add(self.bounds[task]?).div_ceil(self.waiters[task].task?.period_ns.max(1)))
    }

    /// The sum of the longest sections that jobs near a window have, one for each of so many.
    fn longest(&self, task: usize, most: u64, window_ns: u64) -> u64 {
        let jobs = self.jobs(task, window_ns).unwrap_or(u64::MAX);
        let (mut left, mut sum) = (most, 0u64);
        for length_ns in &self.lengths[task] {
            let taken = jobs.min(left);
            sum = sum.saturating_add(taken.saturating_mul(*length_ns));
            left -= taken;
        }
        sum
    }

    /// Less urgent tasks of its CPU that have sections.
    fn below(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let Waiter { cpu, urgency, .. } = self.waiters[at];
        let others = self.here[&cpu].iter().copied();
        others.filter(move |other| self.waiters[*other].urgency > urgency && !self.lengths[*other].is_empty())
    }

    fn blocking_ns(&self, at: usize, window_ns: u64) -> u64 {
        let most = self.requests[at] + 1;
        self.below(at).map(|other| self.longest(other, most, window_ns)).fold(0, u64::saturating_add)
    }

    /// For how long a job is suspended that is done within a window; `None`: that is not bounded.
    fn suspended_ns(&self, at: usize, window_ns: u64) -> Option<u64> {
        if self.requests[at] == 0 {
            return Some(0);
        }
        if self.queue == Queue::Fifo {
            let others = (0..self.waiters.len())
                .filter(|other| *other != at && self.group[*other] == self.group[at])
                .map(|other| self.longest(other, self.requests[at], window_ns));
            return Some(others.fold(0, u64::saturating_add));
        }
        let mut counts = BTreeMap::<usize, u64>::new();
        self.waiters[at].sections.iter().for_each(|(lock, _)| *counts.entry(*lock).or_default() += 1);
        let mut sum = 0u64;
        for (lock, count) in counts {
            sum = sum.saturating_add(self.awaited_ns(at, lock, count, window_ns)?);
        }
        Some(sum)
    }

    /// Step 4: for how long so many requests of a job for a lock wait together.
    fn awaited_ns(&self, at: usize, lock: usize, count: u64, window_ns: u64) -> Option<u64> {
        let cpu = self.waiters[at].cpu;
        if self.users[&lock].iter().all(|user| self.waiters[*user].cpu == cpu) {
            return Some(0);
        }
        let own = self.waiters[at].urgency;
        let others = || self.users[&lock].iter().filter(|user| **user != at);
        let (urgent, less): (Vec<&usize>, Vec<_>) =
            others().partition(|user| self.waiters[**user].urgency <= own);
        let held = |user: usize| self.held[&(user, lock)];
        let behind_ns = less.into_iter().map(|user| held(*user).0).max().unwrap_or(0);
        let limit_ns = self.waiters[at].task?.period_ns;
        let one = |wait_ns: u64| {
            let before = |sum: u64, user: &&usize| {
                Some(sum.saturating_add(self.jobs(**user, wait_ns)?.saturating_mul(held(**user).1)))
            };
            urgent.iter().try_fold(behind_ns, before)
        };
        let wait_ns = least(behind_ns, limit_ns, one)?;
        let of = |user: &&usize| {
            let jobs = self.jobs(**user, wait_ns)?.saturating_mul(count).min(self.jobs(**user, window_ns)?);
            Some(jobs.saturating_mul(held(**user).1))
        };
        let first = count.saturating_mul(behind_ns);
        urgent.iter().try_fold(first, |sum, user| Some(sum.saturating_add(of(user)?)))
    }

    /// Step 5.
    fn window_ns(&self, at: usize, from_ns: u64) -> Option<u64> {
        let own = &self.waiters[at];
        let task = own.task?;
        let limit_ns = task.period_ns.checked_sub(task.jitter_ns)?;
        let urgent = |other: &&usize| **other != at && self.waiters[**other].urgency <= own.urgency;
        let sum = |window_ns: u64| {
            let sum = task.work_ns.saturating_add(self.suspended_ns(at, window_ns)?);
            let sum = sum.saturating_add(self.blocking_ns(at, window_ns));
            self.here[&own.cpu].iter().filter(urgent).try_fold(sum, |sum, other| {
                let task = self.waiters[*other].task?;
                let late_ns = self.bounds[*other]?.saturating_sub(task.work_ns);
                let jobs = window_ns.saturating_add(late_ns).div_ceil(task.period_ns.max(1));
                Some(sum.saturating_add(jobs.saturating_mul(task.work_ns)))
            })
        };
        least(from_ns.max(task.work_ns), limit_ns, sum)
    }

    /// The response of a task, which is no less than `before`.
    fn response_ns(&self, at: usize, before: u64) -> Option<u64> {
        let jitter_ns = self.waiters[at].task?.jitter_ns;
        Some(self.window_ns(at, before.saturating_sub(jitter_ns))?.saturating_add(jitter_ns))
    }

    fn wait(&self, at: usize) -> Wait {
        let Some(response_ns) = self.bounds[at] else { return Wait::default() };
        let jitter_ns = self.waiters[at].task.map_or(0, |task| task.jitter_ns);
        let window_ns = response_ns - jitter_ns;
        let longest = |other: usize| {
            let sections = self.waiters[other].sections.iter().rev();
            let longest = sections.max_by_key(|(_, length_ns)| *length_ns);
            longest.map(|(lock, length_ns)| Held {
                task: other,
                lock: *lock,
                length_ns: *length_ns,
                times: 1,
            })
        };
        let locks: BTreeSet<_> = self.waiters[at].sections.iter().map(|(lock, _)| *lock).collect();
        let awaited = match self.queue {
            _ if self.requests[at] == 0 => Vec::new(),
            Queue::Fifo => (0..self.waiters.len())
                .filter(|other| *other != at && self.group[*other] == self.group[at])
                .filter_map(longest)
                .collect(),
            Queue::Priority => locks.iter().flat_map(|lock| self.holders(at, *lock)).collect(),
        };
        Wait {
            response_ns: Some(response_ns),
            requests: self.requests[at],
            suspended_ns: self.suspended_ns(at, window_ns).unwrap_or(u64::MAX),
            awaited,
            blocking_ns: self.blocking_ns(at, window_ns),
            behind: self.below(at).filter_map(longest).collect(),
        }
    }

    /// Whose sections a request of a task waits for: those of more urgent users, and the longest of a less urgent one.
    fn holders(&self, at: usize, lock: usize) -> Vec<Held> {
        let Waiter { cpu, urgency, .. } = self.waiters[at];
        if self.users[&lock].iter().all(|user| self.waiters[*user].cpu == cpu) {
            return Vec::new();
        }
        let others = self.users[&lock].iter().filter(|user| **user != at);
        let held =
            others.map(|user| Held { task: *user, lock, length_ns: self.held[&(*user, lock)].0, times: 1 });
        let (mut urgent, less): (Vec<Held>, Vec<_>) =
            held.partition(|held| self.waiters[held.task].urgency <= urgency);
        urgent.extend(less.into_iter().rev().max_by_key(|held| held.length_ns));
        urgent
    }
}

/// The least fixed point of a sum that grows with its argument, if it is not above a limit.
fn least(from_ns: u64, limit_ns: u64, sum: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let mut at_ns = from_ns;
    for _ in 0..STEPS_MAX {
        if at_ns > limit_ns {
            return None;
        }
        let next_ns = sum(at_ns)?;
        if next_ns <= at_ns {
            return Some(at_ns);
        }
        at_ns = next_ns;
    }
    None
}

/// Of each task the least number of one that it is connected with: by a lock that both use, or a CPU on which both use locks.
fn groups(
    waiters: &[Waiter],
    here: &BTreeMap<usize, Vec<usize>>,
    users: &BTreeMap<usize, BTreeSet<usize>>,
) -> Vec<usize> {
    let mut group: Vec<_> = (0..waiters.len()).collect();
    let mut open = vec![true; waiters.len()];
    for first in 0..waiters.len() {
        let mut found = vec![first];
        while let Some(at) = found.pop() {
            if !std::mem::replace(&mut open[at], false) {
                continue;
            }
            group[at] = first;
            let one = &waiters[at];
            if one.sections.is_empty() {
                continue;
            }
            let uses = |other: &&usize| open[**other] && !waiters[**other].sections.is_empty();
            found.extend(here[&one.cpu].iter().filter(uses));
            one.sections.iter().for_each(|(lock, _)| found.extend(users[lock].iter().filter(uses)));
        }
    }
    group
}
