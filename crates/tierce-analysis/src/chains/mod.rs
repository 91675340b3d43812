//! Chains of tasks: how long it takes until what comes in at the first is done by the last.
//!
//! A task of a chain is *triggered*: its job is released by the end of one job of each of its predecessors, on whatever
//! CPU, perhaps after a fixed delay (a network). Or it is *sampled*: it has a period of its own, and reads what was written
//! last. So a chain consists of [`Segment`]s: the head of each has a period, all others are triggered. A task that several
//! follow is a fork, one with several predecessors a join, which waits for all of them.
//!
//! - [`propagate`]: when the jobs of triggered tasks are ready and done at the earliest and latest. The response interval of a
//!   predecessor is the release jitter of its successor, and the responses on all CPUs are computed again until nothing changes
//!   (holistic analysis: Tindell & Clark 1994; compositional: Henia et al. 2005, as in pyCPA). All times count from the nominal release
//!   at the head, so what makes one task late is not counted again for the next.
//! - [`by_fixed_priority`]: the same where each CPU has fixed priorities; by jitter alone, or with the offsets of tasks that have
//!   one head (Palencia & González Harbour 1998). The lesser of both bounds counts, for each task.
//! - [`bounds`]: from segments to the whole chain: response, reaction, age (Davare et al. 2007; Dürr et al. 2019; Günzel et al. 2021, 2023).
//!
//! Example: `a`, 2 in 10, triggers `b`, 3, on another CPU, below a task of 1 in 4. `a` takes 1 to 2, so `b` has a jitter of 1, and is done
//! within 2 + 3 + 1 = 6 after `a` was released.

mod fixed_priority;
mod segments;

pub use fixed_priority::{by_fixed_priority, by_jitter_alone, responses_with_offsets, Offset, Placed};
pub use segments::{bounds, Bounds, Segment};

/// Rounds after which what still grows counts as unbounded.
const ROUNDS_MAX: u32 = 256;

/// Jitter of so many periods, which still grows, counts as unbounded: nobody waits that long, and each round would take longer.
const JITTER_MAX: u64 = 100;

/// The jitter of a triggered task counts as unbounded.
pub fn is_beyond(jitter_ns: u64, period_ns: u64) -> bool {
    jitter_ns > period_ns.saturating_mul(JITTER_MAX)
}

/// What releases the jobs of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// Its own period; each job is ready up to that late.
    Own {
        /// At most that.
        jitter_ns: u64,
        /// The next nominal release may come later than a period after the last.
        sporadic: bool,
    },
    /// The end of a job of each of these tasks, so much later.
    After(Vec<(usize, u64)>),
}

/// A time that is at least and at most so long; without a bound it is [`u64::MAX`] at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// No less.
    pub least_ns: u64,
    /// No more.
    pub most_ns: u64,
}

impl Span {
    /// The longer one of both, whichever that is.
    fn max(self, other: Self) -> Self {
        Self { least_ns: self.least_ns.max(other.least_ns), most_ns: self.most_ns.max(other.most_ns) }
    }

    fn plus(self, ns: u64) -> Self {
        Self { least_ns: self.least_ns.saturating_add(ns), most_ns: self.most_ns.saturating_add(ns) }
    }

    /// How much it varies; [`u64::MAX`] where that has no bound.
    pub fn jitter_ns(self) -> u64 {
        if self.most_ns == u64::MAX {
            u64::MAX
        } else {
            self.most_ns - self.least_ns
        }
    }
}

/// When the jobs of a task are ready and done, from the nominal release at the head of its segment on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// It may run.
    pub ready: Span,
    /// It has run.
    pub done: Span,
}

/// Times of all tasks. `least_work_ns`: of a job of each. `responses` is given when jobs are ready, and returns for each task the longest
/// time from the earliest such time to its end (so jitter counts), [`u64::MAX`] where there is no bound.
///
/// # Panics
/// When there is not one of each per task, or tasks trigger each other in a circle.
pub fn propagate(
    releases: &[Release],
    least_work_ns: &[u64],
    mut responses: impl FnMut(&[Span]) -> Vec<u64>,
) -> Vec<Times> {
    assert_eq!(releases.len(), least_work_ns.len(), "one least work per task");
    let order = order(releases).expect("no task triggers itself");
    let mut times = vec![Times::default(); releases.len()];
    let mut ready = vec![Span::default(); releases.len()];
    let mut responses_ns = least_work_ns.to_vec();
    for round in 0.. {
        for &task in &order {
            ready[task] = match &releases[task] {
                Release::Own { jitter_ns, .. } => Span { least_ns: 0, most_ns: *jitter_ns },
                Release::After(before) => before.iter().fold(Span::default(), |span, (before, delay_ns)| {
                    span.max(times[*before].done.plus(*delay_ns))
                }),
            };
            // Never less than before: so this ends even where more jitter somewhere makes a response shorter.
            ready[task].most_ns = ready[task].most_ns.max(times[task].ready.most_ns);
            let least_ns = ready[task].least_ns;
            times[task].done = Span {
                least_ns: least_ns.saturating_add(least_work_ns[task]),
                most_ns: least_ns.saturating_add(responses_ns[task]).max(ready[task].most_ns),
            };
        }
        let changed: Vec<_> =
            order.iter().copied().filter(|task| times[*task].ready != ready[*task]).collect();
        if round > 0 && changed.is_empty() {
            break;
        }
        if round >= ROUNDS_MAX {
            changed.iter().for_each(|task| ready[*task].most_ns = u64::MAX);
        }
        times.iter_mut().zip(&ready).for_each(|(times, ready)| times.ready = *ready);
        responses_ns = responses(&ready);
        assert_eq!(responses_ns.len(), releases.len(), "one response per task");
    }
    times
}

/// All tasks, each after its predecessors. `None`: there is a circle.
fn order(releases: &[Release]) -> Option<Vec<usize>> {
    let mut waits = vec![0; releases.len()];
    let mut followers = vec![Vec::new(); releases.len()];
    for (task, release) in releases.iter().enumerate() {
        let Release::After(before) = release else { continue };
        waits[task] = before.len();
        before.iter().for_each(|(before, _)| followers[*before].push(task));
    }
    let mut order: Vec<_> = (0..releases.len()).filter(|task| waits[*task] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for follower in &followers[order[at]] {
            waits[*follower] -= 1;
            if waits[*follower] == 0 {
                order.push(*follower);
            }
        }
        at += 1;
    }
    (order.len() == releases.len()).then_some(order)
}
