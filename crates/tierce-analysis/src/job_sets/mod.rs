//! Given jobs that cannot be preempted: when may each be done, at the earliest and at the latest?
//!
//! A job becomes ready within one range of times, and works for a time within another. Whenever a CPU is idle and jobs are ready, the one
//! of the highest priority (the smallest number, then the smallest numbers of task and job) starts and runs to its end. All choices
//! within the ranges are looked at together, as schedules that have started the same jobs (Nasri & Brandenburg, "An exact and sustainable
//! analysis of non-preemptive scheduling", RTSS 2017; several CPUs: Nasri, Nelissen & Brandenburg, "A response-time analysis for
//! non-preemptive job sets under global scheduling", ECRTS 2018). A state is which jobs have been started, and for each CPU from when on it
//! may be, and from when on it is sure to be free; with m CPUs free from Aᵢ to Bᵢ on, in order, j may be the next one to start at any
//! time from s to l if s ≤ l, where
//!
//! ```text
//! s = max(A₁, the earliest that j is ready)
//! l = min(max(B₁, the first time at which any job is sure to be ready), the first time at which one of higher priority is − 1)
//! ```
//!
//! It is done between s + its least and l + its most work; other CPUs cannot be used before s from then on. States with the same jobs
//! whose ranges overlap become one, so their number stays small for most sets, but not for all: it is bounded.
//!
//! On one CPU what is found is exact, to the ns: a schedule has each of the times between, and what was not ready yet at s is ready
//! later in some schedule. (A job whose least work is 0 may be an exception.) On several CPUs a state forgets which times of two
//! CPUs go together, so times are bounds.
//!
//! Example, one CPU: `a` of priority 1 is ready from 0 to 1 on and works 1 to 2, `b` of priority 2 is ready at 0 and works 3. Who is first?
//! `a` at 0, or `b` at 0, as a is sure to be ready only at 1. So b is done within 3 to 5, a within 1 to 5.

mod space;
mod text;

pub use space::{explore, explore_while, Explored, TooLarge};
pub use text::{is_job_set, parse};

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whose it is. Jobs of one task may run at the same time: they are jobs as any others.
    pub task: u64,
    /// Which one.
    pub id: u64,
    /// Earliest and latest time at which it becomes ready.
    pub ready_ns: (u64, u64),
    /// Least and most work.
    pub work_ns: (u64, u64),
    /// When it is due.
    pub deadline_ns: u64,
    /// Smaller is higher.
    pub priority: u64,
}

impl Job {
    /// By which the one to start is chosen, the smallest first.
    fn rank(&self) -> (u64, u64, u64) {
        (self.priority, self.task, self.id)
    }
}
