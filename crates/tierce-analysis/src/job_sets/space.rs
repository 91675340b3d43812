//! All schedules of a job set, job by job.

use super::Job;
use crate::Watch;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Of each job, as they were given: earliest and latest time at which it is done.
    pub done_ns: Vec<(u64, u64)>,
    /// States, after those that became one.
    pub states: u64,
    /// Jobs that were started from them.
    pub starts: u64,
}

/// There are more starts than asked for, or times that are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Jobs that have been started in every state, when it was given up.
    pub started: usize,
}

/// When a CPU may be free at the earliest, and is sure to be free.
type Free = (u64, u64);

/// Which jobs have been started: all before a multiple of 64, and some of those from there on.
#[derive(Clone, Default, PartialEq, Eq)]
struct Started {
    /// In words of 64 jobs.
    full: usize,
    more: Vec<u64>,
}

impl Started {
    fn contains(&self, job: usize) -> bool {
        let word = job / 64;
        word < self.full || self.more.get(word - self.full).is_some_and(|bits| bits >> (job % 64) & 1 == 1)
    }

    fn with(&self, job: usize) -> Self {
        let word = job / 64 - self.full;
        let mut more = Vec::with_capacity(self.more.len().max(word + 1));
        more.extend_from_slice(&self.more);
        more.resize(self.more.len().max(word + 1), 0);
        more[word] |= 1 << (job % 64);
        let whole = more.iter().take_while(|bits| **bits == u64::MAX).count();
        more.drain(..whole);
        Self { full: self.full + whole, more }
    }
}

impl std::hash::Hash for Started {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.full);
        self.more.iter().for_each(|bits| state.write_u64(*bits));
    }
}

/// A multiplication per word. Keys come from the table, so nobody gains by choosing bad ones.
#[derive(Default)]
struct Words(u64);

impl Hasher for Words {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// States that have started as many jobs: for each set of these, the CPUs of each state one after the other.
type Level = HashMap<Started, Vec<Free>, BuildHasherDefault<Words>>;

/// All schedules of `jobs` on `cpus`; given up beyond `starts_max` starts of jobs in different states.
///
/// # Panics
/// Without a CPU.
pub fn explore(jobs: &[Job], cpus: usize, starts_max: u64) -> Result<Explored, TooLarge> {
    explore_while(jobs, cpus, starts_max, &Watch::default())
}

/// The same; given up, too, when it is ended.
///
/// # Panics
/// Without a CPU.
pub fn explore_while(
    jobs: &[Job],
    cpus: usize,
    starts_max: u64,
    watch: &Watch,
) -> Result<Explored, TooLarge> {
    assert!(cpus > 0, "there is a CPU");
    let latest = jobs.iter().map(|job| u128::from(job.ready_ns.1)).max().unwrap_or(0);
    let work: u128 = jobs.iter().map(|job| u128::from(job.work_ns.1)).sum();
    if latest + work > u64::MAX.into() {
        return Err(TooLarge { started: 0 });
    }
    let mut by_ready: Vec<_> = (0..jobs.len()).collect();
    by_ready.sort_by_key(|index| (jobs[*index].ready_ns.0, jobs[*index].rank()));
    let sorted: Vec<_> = by_ready.iter().map(|index| jobs[*index]).collect();
    let mut space =
        Space { jobs: &sorted, cpus, done: vec![(u64::MAX, 0); jobs.len()], near: Vec::new(), starts: 0 };
    let mut level = Level::from_iter([(Started::default(), vec![(0, 0); cpus])]);
    let mut states = 1;
    watch.begins(jobs.len());
    for started in 0..jobs.len() {
        let mut next = Level::with_capacity_and_hasher(level.len(), BuildHasherDefault::default());
        for (before, free) in &level {
            for free in free.chunks_exact(cpus) {
                states += space.start_each(before, free, &mut next);
                if space.starts > starts_max || watch.is_ended() {
                    return Err(TooLarge { started });
                }
            }
        }
        level = next;
        watch.one_is_done();
    }
    let mut done_ns = vec![(0, 0); jobs.len()];
    by_ready.iter().zip(&space.done).for_each(|(index, done)| done_ns[*index] = *done);
    Ok(Explored { done_ns, states, starts: space.starts })
}

struct Space<'j> {
    /// By the earliest time at which they are ready.
    jobs: &'j [Job],
    cpus: usize,
    /// What is known by now of each.
    done: Vec<(u64, u64)>,
    /// Those that may be the next one to start.
    near: Vec<usize>,
    starts: u64,
}

impl Space<'_> {
    /// Each job that may be next is started, in states of `next`; how many of these are new.
    fn start_each(&mut self, before: &Started, free: &[Free], next: &mut Level) -> u64 {
        let sure = self.find_near(before, free[0].1);
        let jobs = self.jobs;
        let mut near = std::mem::take(&mut self.near);
        near.sort_unstable_by_key(|job| jobs[*job].rank());
        let (mut higher, mut new) = (u64::MAX, 0);
        for job in &near {
            let Job { ready_ns, work_ns, .. } = jobs[*job];
            let first = free[0].0.max(ready_ns.0);
            // Where one of higher priority is sure to be ready at 0 there is no time before.
            let last = if higher == 0 { None } else { Some(sure.min(higher - 1)) };
            higher = higher.min(ready_ns.1);
            let Some(last) = last.filter(|last| first <= *last) else { continue };
            let done = (first + work_ns.0, last + work_ns.1);
            let known = &mut self.done[*job];
            *known = (known.0.min(done.0), known.1.max(done.1));
            self.starts += 1;
            new += u64::from(enter(next, before.with(*job), &self.cpus_after(free, first, done)));
        }
        self.near = near;
        new
    }

    /// Fill `near`; until when the next job has started for sure.
    fn find_near(&mut self, before: &Started, free: u64) -> u64 {
        self.near.clear();
        let mut ready = u64::MAX;
        for (job, Job { ready_ns, .. }) in self.jobs.iter().enumerate().skip(before.full * 64) {
            if ready_ns.0 > ready.max(free) {
                break;
            }
            if !before.contains(job) {
                ready = ready.min(ready_ns.1);
                self.near.push(job);
            }
        }
        let sure = ready.max(free);
        let jobs = self.jobs;
        self.near.retain(|job| jobs[*job].ready_ns.0 <= sure);
        sure
    }

    /// A job runs on the first CPU from `first` on, until `done`.
    fn cpus_after(&self, free: &[Free], first: u64, done: Free) -> Vec<Free> {
        if self.cpus == 1 {
            return vec![done];
        }
        let others = || free[1..].iter().map(|(may, sure)| (first.max(*may), first.max(*sure)));
        let mut may: Vec<_> = others().map(|(may, _)| may).chain([done.0]).collect();
        let mut sure: Vec<_> = others().map(|(_, sure)| sure).chain([done.1]).collect();
        may.sort_unstable();
        sure.sort_unstable();
        may.into_iter().zip(sure).collect()
    }
}

/// A state, which becomes one with another one that has started the same jobs if all ranges overlap or touch; whether it is new.
fn enter(level: &mut Level, started: Started, free: &[Free]) -> bool {
    let states = level.entry(started).or_default();
    let meet = |(a, b): (&Free, &Free)| a.0 <= b.1.saturating_add(1) && b.0 <= a.1.saturating_add(1);
    for state in states.chunks_exact_mut(free.len()) {
        if state.iter().zip(free).all(meet) {
            for (range, more) in state.iter_mut().zip(free) {
                *range = (range.0.min(more.0), range.1.max(more.1));
            }
            return false;
        }
    }
    states.extend_from_slice(free);
    true
}
