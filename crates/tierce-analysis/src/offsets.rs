//! Known phases: strictly periodic tasks, the first job of each at its offset, preemptive or in order of arrival, on a whole CPU.
//!
//! The schedule of the longest works is played from 0 on. It repeats itself as soon as the same jobs are left over at two places that
//! are a common multiple of all periods apart, both after the last offset; so what was played by then is all that ever
//! happens. That is soon so if the works fit the CPU (Leung & Merrill 1980; Goossens & Devillers 1997), and each response is exact.
//!
//! A job with less work never makes another one later here: priorities of jobs are fixed, so a job is done when the CPU had time for all
//! that goes before it (Ha & Liu 1994). Without preemption that is wrong: a job that is done early may let a less urgent one begin just
//! before an urgent one comes. There the schedule of the longest works shows nothing, nor does it with suspension or
//! jitter; the analyses for all phases hold.
//!
//! Of jobs that are equal each may go first: each task is played once as the one that lets all equals go before it.
//!
//! Example: 2 in 4 from 0 on and 2 in 4 from 2 on, both due within 2: they meet, and no phase but this one is known to.

use crate::priorities::lowest_first;
use crate::task::{compare_utilisation, gcd, Response, Task};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use tierce_guarantee::TIME_MAX_NS;

/// Jobs that are played of one set.
const JOBS_MAX: u64 = 4_000_000;

/// Which job goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order<'l> {
    /// That of the task with the smaller level; the earlier one of equals.
    FixedPriority(&'l [u32]),
    /// The one with the earlier deadline.
    EarliestDeadline,
    /// The one that was released earlier.
    FirstComeFirst,
}

impl Order<'_> {
    /// The less, the sooner it runs.
    fn key(self, task: &Task, index: usize, release_ns: u64) -> (u64, u64) {
        match self {
            Self::FixedPriority(levels) => (u64::from(levels[index]), release_ns),
            Self::EarliestDeadline => (release_ns + task.deadline_ns, 0),
            Self::FirstComeFirst => (release_ns, 0),
        }
    }
}

/// Longest responses of tasks without jitter and blocking, whose first jobs come at these offsets. `TooLong` for all where too
/// many jobs would have to be played.
///
/// # Panics
/// When there is not one offset (and level) per task.
pub fn responses(tasks: &[Task], offsets: &[u64], order: Order) -> Vec<Response> {
    responses_of_few(tasks, offsets, order, JOBS_MAX)
}

/// The same where no more jobs than that are played.
///
/// # Panics
/// As [`responses`].
pub fn responses_of_few(tasks: &[Task], offsets: &[u64], order: Order, jobs_max: u64) -> Vec<Response> {
    assert_eq!(tasks.len(), offsets.len(), "one offset per task");
    let mut jobs_left = jobs_max;
    let mut play_one = |index| Play::new(tasks, offsets, order, index)?.longest(&mut jobs_left);
    if let Order::FixedPriority(levels) = order {
        assert_eq!(tasks.len(), levels.len(), "one level per task");
        // Only those that may go before it count, so it may be bounded where others are not.
        let one = |index: usize| {
            let before: Vec<_> = (0..tasks.len()).filter(|at| levels[*at] <= levels[index]).collect();
            response_among(tasks, offsets, levels, index, &before, &mut jobs_left)
        };
        return (0..tasks.len()).map(one).collect();
    }
    if let Some(response) = out_of_reach(tasks) {
        return vec![response; tasks.len()];
    }
    (0..tasks.len()).map(|index| play_one(index).map_or(Response::TooLong, Response::Within)).collect()
}

/// An order of fixed priorities that meets all deadlines at these offsets, if there is one, the most urgent first (Audsley 1991).
///
/// # Panics
/// When there is not one offset per task.
pub fn audsley(tasks: &[Task], offsets: &[u64]) -> Option<Vec<usize>> {
    assert_eq!(tasks.len(), offsets.len(), "one offset per task");
    let mut jobs_left = JOBS_MAX;
    lowest_first(tasks, |index, above, _| {
        let mut levels = vec![0; tasks.len()];
        levels[index] = 1;
        let set: Vec<_> = above.iter().copied().chain([index]).collect();
        let response = response_among(tasks, offsets, &levels, index, &set, &mut jobs_left);
        Some(response.meets(tasks[index].deadline_ns))
    })
}

/// The response of one among some, by fixed priorities.
fn response_among(
    tasks: &[Task],
    offsets: &[u64],
    levels: &[u32],
    index: usize,
    members: &[usize],
    jobs_left: &mut u64,
) -> Response {
    let some: Vec<_> = members.iter().map(|at| tasks[*at]).collect();
    if let Some(response) = out_of_reach(&some) {
        return response;
    }
    let offsets: Vec<_> = members.iter().map(|at| offsets[*at]).collect();
    let levels: Vec<_> = members.iter().map(|at| levels[*at]).collect();
    let place = members.iter().position(|at| *at == index).unwrap_or(0);
    let play = Play::new(&some, &offsets, Order::FixedPriority(&levels), place);
    play.and_then(|play| play.longest(jobs_left)).map_or(Response::TooLong, Response::Within)
}

/// What can be said without a schedule.
fn out_of_reach(tasks: &[Task]) -> Option<Response> {
    let unbounded =
        !tasks.iter().all(Task::is_valid) || compare_utilisation(tasks, (1, 1)) == Ordering::Greater;
    unbounded.then_some(Response::Unbounded)
}

/// A job that is not done: its key, whether it lets equals go before it, its task, release and rest of work.
type Job = Reverse<((u64, u64), bool, usize, u64, u64)>;

struct Play<'t> {
    tasks: &'t [Task],
    order: Order<'t>,
    /// The task that lets equals go before it, whose responses count.
    last: usize,
    now_ns: u64,
    /// Releases to come.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    ready: BinaryHeap<Job>,
    longest_ns: u64,
    cycle_ns: u64,
    /// Where one cycle begins.
    begin_ns: u64,
}

impl<'t> Play<'t> {
    /// `None`: the cycle is too long.
    fn new(tasks: &'t [Task], offsets: &[u64], order: Order<'t>, last: usize) -> Option<Self> {
        let cycle_ns = tasks.iter().try_fold(1u64, |cycle, task| {
            cycle
                .checked_mul(task.period_ns / gcd(cycle, task.period_ns))
                .filter(|cycle| *cycle <= TIME_MAX_NS / 4)
        })?;
        let begin_ns = offsets.iter().max().copied().filter(|begin| *begin <= TIME_MAX_NS)?;
        let next = offsets.iter().enumerate().map(|(index, offset)| Reverse((*offset, index))).collect();
        let ready = BinaryHeap::new();
        Some(Self { tasks, order, last, now_ns: 0, next, ready, longest_ns: 0, cycle_ns, begin_ns })
    }

    /// The longest response until the schedule repeats itself. `None`: too many jobs come until then.
    fn longest(mut self, jobs_left: &mut u64) -> Option<u64> {
        let per_cycle = |task: &Task| self.cycle_ns / task.period_ns;
        if self.tasks.iter().map(per_cycle).fold(0, u64::saturating_add) > *jobs_left / 2 {
            return None;
        }
        let mut left_over = None;
        let mut end_ns = self.begin_ns;
        loop {
            self.run_until(end_ns, jobs_left)?;
            let mut left: Vec<_> = self
                .ready
                .iter()
                .map(|Reverse((_, _, index, release_ns, rest_ns))| (*index, end_ns - release_ns, *rest_ns))
                .collect();
            left.sort_unstable();
            if left_over.as_ref() == Some(&left) {
                return Some(self.longest_ns);
            }
            left_over = Some(left);
            end_ns = end_ns.checked_add(self.cycle_ns).filter(|end| *end <= TIME_MAX_NS * 4)?;
        }
    }

    /// Up to that time, without what is released then.
    fn run_until(&mut self, end_ns: u64, jobs_left: &mut u64) -> Option<()> {
        while self.now_ns < end_ns {
            while let Some(Reverse((release_ns, index))) = self.next.peek().copied() {
                if release_ns > self.now_ns {
                    break;
                }
                *jobs_left = jobs_left.checked_sub(1)?;
                let task = &self.tasks[index];
                self.next.pop();
                self.next.push(Reverse((release_ns + task.period_ns, index)));
                let key = self.order.key(task, index, release_ns);
                self.ready.push(Reverse((key, index == self.last, index, release_ns, task.work_ns)));
            }
            let come_ns =
                self.next.peek().map_or(end_ns, |Reverse((release_ns, _))| (*release_ns).min(end_ns));
            let Some(Reverse((key, last, index, release_ns, rest_ns))) = self.ready.pop() else {
                self.now_ns = come_ns;
                continue;
            };
            let done_ns = self.now_ns + rest_ns;
            if done_ns > come_ns {
                let rest_ns = done_ns - come_ns;
                self.ready.push(Reverse((key, last, index, release_ns, rest_ns)));
                self.now_ns = come_ns;
                continue;
            }
            self.now_ns = done_ns;
            if index == self.last {
                self.longest_ns = self.longest_ns.max(done_ns - release_ns);
            }
        }
        Some(())
    }
}
