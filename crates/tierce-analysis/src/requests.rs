//! Jobs that differ, and jobs that come in bursts: analysed by what a task may request in a window, not by its longest job and its
//! shortest distance alone.
//!
//! A task that takes its works in turn (a multiframe task: Mok & Chen, "A multiframe model for real-time tasks", RTSS 1996; IEEE
//! Transactions on Software Engineering 23, 1997) requests no more in k jobs than W(k), the most of any k of them in a row. A task whose
//! arrival curve is given by the least distances of its jobs (Richter 2005; Henia et al., "System level performance analysis – the
//! SymTA/S approach", 2005) has no more than η(t) = min { k : δ(k) ≥ t } jobs in a window of t, δ(k) being the least time from a job to
//! the k-th after it, δ(0) = 0. Both together: W(η(t)).
//!
//! - **Fixed priorities**: as in [`crate::FixedPriority`], with these in place of multiples of work and period:
//!
//! ```text
//! w(q) = least t with  supply(t) = B + W(q + 1) + Σ Wⱼ(ηⱼ(t + Jⱼ))      over those above, and equals
//! R    = max over q of  w(q) − δ(q) + J,  until no further job of the task comes before w(q)
//! ```
//!
//! - **Earliest deadline**: until t after the begin of a busy period W(k) is due, of the k jobs with δ(k − 1) + D − J ≤ t (Baruah, Chen,
//!   Gorinsky & Mok, "Generalized multiframe tasks", Real-Time Systems 17, 1999). All deadlines are met if that and the blocking are
//!   supplied within each t of the longest busy period. Responses are those of Spuri 1996, with these numbers of jobs.
//!
//! Exact are these where the k jobs that request most come first in a row whatever k is, and where those of all tasks can meet; else they
//! are bounds. The tests play both.
//!
//! Example: works 4, 1, 1 in turn, every 5, above 4 in 15: the second task is done after 9, since two jobs of the first come in that
//! time, and request 5. By the longest job they would request 4 each, and 15 would not be enough.

use crate::edf::{blocking_within, signed, Demand};
use crate::supply::{cycle_of, with_supply, Supply, TimeFor};
use crate::task::{gcd, Response, Task, WINDOW_MAX_NS};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use tierce_guarantee::{ratio, whole, Exact, TIME_MAX_NS};

/// Windows that one analysis looks at.
const WINDOWS_MAX: u32 = 1_000_000;

/// No list has more entries.
const ENTRIES_MAX: usize = 4096;

/// What jobs of a task that come one after the other request, and how far they are apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// The most that so many jobs in a row request, from none on to all in turn.
    works_ns: Vec<u64>,
    /// The least time from a job to the one so many after it, from none on.
    distances_ns: Vec<u64>,
}

impl Requests {
    /// `works_ns`: of the jobs in turn, over and over. `distances_ns`: the least time from a job to the first, second, … after it.
    /// What the shorter distances imply for the longer ones need not be in these. `None`: a list is empty or too long, a time is 0 or
    /// above [`TIME_MAX_NS`], a distance is below the one before it, or the works are more than 64 bits hold.
    pub fn new(works_ns: &[u64], distances_ns: &[u64]) -> Option<Self> {
        let fits = |list: &[u64]| {
            (1..=ENTRIES_MAX).contains(&list.len()) && list.iter().all(|ns| (1..=TIME_MAX_NS).contains(ns))
        };
        let ascending = distances_ns.windows(2).all(|pair| pair[0] <= pair[1]);
        let adds_up = works_ns.iter().try_fold(0u64, |sum, ns| sum.checked_add(*ns)).is_some();
        (fits(works_ns) && fits(distances_ns) && ascending && adds_up)
            .then(|| Self { works_ns: most_in_a_row(works_ns), distances_ns: with_implied(distances_ns) })
    }

    /// Jobs that are all alike.
    pub fn of(task: &Task) -> Option<Self> {
        Self::new(&[task.work_ns], &[task.period_ns])
    }

    /// The most that so many jobs in a row request, W; saturates.
    pub fn work_ns(&self, jobs: u64) -> u64 {
        at(&self.works_ns, jobs)
    }

    /// The least time from a job to the one so many after it, δ; saturates.
    pub fn distance_ns(&self, jobs: u64) -> u64 {
        at(&self.distances_ns, jobs)
    }

    /// Jobs that may come in a window of that length, its end not included: η.
    pub fn jobs_within(&self, window_ns: u64) -> u64 {
        let (_, cycle) = cycle(&self.distances_ns);
        let (turns, rest) = (window_ns / cycle, window_ns % cycle);
        let jobs = self.distances_ns.partition_point(|distance| *distance < rest) as u64;
        turns.saturating_mul(self.distances_ns.len() as u64 - 1).saturating_add(jobs)
    }

    /// CPU time per time in the long run, at most.
    pub fn rate(&self) -> Exact {
        let ((works, work), (jobs, distance)) = (cycle(&self.works_ns), cycle(&self.distances_ns));
        ratio(work, works) * ratio(jobs, distance)
    }

    /// The same, rounded.
    fn rough_rate(&self) -> f64 {
        let ((works, work), (jobs, distance)) = (cycle(&self.works_ns), cycle(&self.distances_ns));
        work as f64 / works as f64 * (jobs as f64 / distance as f64)
    }

    /// After that long both lists repeat themselves; `None`: that is beyond what fits.
    fn period_ns(&self) -> Option<u64> {
        let ((works, _), (jobs, distance)) = (cycle(&self.works_ns), cycle(&self.distances_ns));
        distance.checked_mul(works / gcd(works, jobs))
    }

    /// By how much what jobs take of a CPU can exceed rate·t, at most, in a window of t that begins without one. `None`: it would take too
    /// long to look. In a window that the k-th job after the first comes into, that one takes no more than what is left of the window.
    pub fn ahead_of_rate(&self) -> Option<Exact> {
        let ((works, _), (jobs, _)) = (cycle(&self.works_ns), cycle(&self.distances_ns));
        let steps = works / gcd(works, jobs) * jobs;
        let rate = self.rate();
        let ahead = |job: u64| {
            let (before, from) = (self.work_ns(job), self.distance_ns(job));
            let takes = (self.work_ns(job + 1) - before).min(self.distance_ns(job + 1) - from);
            let ahead = |more: u64| whole(before + more) - &rate * whole(from + more);
            ahead(0).max(ahead(takes))
        };
        let fits = steps <= ENTRIES_MAX as u64 && self.distance_ns(steps) < u64::MAX;
        (fits && self.work_ns(steps) < u64::MAX).then(|| (0..steps).map(ahead).max())?
    }

    /// Each job works for so much longer; saturates.
    #[must_use]
    pub fn longer(&self, more_ns: u64) -> Self {
        let more = |(jobs, work): (usize, &u64)| work.saturating_add(more_ns.saturating_mul(jobs as u64));
        Self { works_ns: self.works_ns.iter().enumerate().map(more).collect(), ..self.clone() }
    }
}

/// Steps of a list that repeats itself, and how much all of them are.
fn cycle(list: &[u64]) -> (u64, u64) {
    (list.len() as u64 - 1, list[list.len() - 1])
}

/// The value after so many steps.
fn at(list: &[u64], steps: u64) -> u64 {
    let (count, all) = cycle(list);
    (steps / count).saturating_mul(all).saturating_add(list[(steps % count) as usize])
}

/// Of each number of works the most that so many in a row are.
fn most_in_a_row(works: &[u64]) -> Vec<u64> {
    let sum = |from: usize, count: usize| (from..from + count).map(|at| works[at % works.len()]).sum();
    let mut most = vec![0; works.len() + 1];
    let mut sums = vec![0u64; works.len()];
    for count in 1..works.len() {
        for (from, sum) in sums.iter_mut().enumerate() {
            *sum += works[(from + count - 1) % works.len()];
            most[count] = *sum.max(&mut most[count]);
        }
    }
    most[works.len()] = sum(0, works.len());
    most
}

/// Two distances follow each other, so the one of both is at least their sum.
fn with_implied(distances: &[u64]) -> Vec<u64> {
    let mut all = vec![0u64];
    for distance in distances {
        let jobs = all.len();
        let implied = (1..=jobs / 2).map(|first| all[first].saturating_add(all[jobs - first])).max();
        all.push(implied.map_or(*distance, |implied| implied.max(*distance)));
    }
    all
}

/// A task, and what its jobs request. Of the task `work_ns` and `period_ns` count nowhere.
#[derive(Clone, Debug)]
pub struct Requesting {
    /// Deadline, jitter, blocking.
    pub task: Task,
    /// Its jobs.
    pub requests: Requests,
}

impl Requesting {
    /// Requested until then by jobs that come from the begin on, as late as jitter allows, and then as early as possible.
    fn until(&self, window_ns: u64) -> u64 {
        let jobs = self.requests.jobs_within(window_ns.saturating_add(self.task.jitter_ns));
        self.requests.work_ns(if window_ns == 0 { 0 } else { jobs })
    }

    /// Until when the job after so many is to be done, from the begin of a window in which they request most.
    fn due_ns(&self, jobs: u64) -> u64 {
        let due_ns = self.requests.distance_ns(jobs).saturating_add(self.task.deadline_ns);
        due_ns.saturating_sub(self.task.jitter_ns)
    }
}

/// The sum of all rates.
pub fn rate(tasks: &[Requesting]) -> Exact {
    tasks.iter().fold(whole(0), |sum, task| sum + task.requests.rate())
}

fn is_valid(task: &Task) -> bool {
    [task.deadline_ns, task.jitter_ns, task.blocking_ns].into_iter().all(|ns| ns <= TIME_MAX_NS)
}

/// How the sum of the rates compares with what is supplied in the long run.
fn compare<S: TimeFor>(tasks: &[Requesting], supply: &S) -> Ordering {
    let bound = supply.rate().0 as f64 / supply.rate().1 as f64;
    let sum = tasks.iter().map(|task| task.requests.rough_rate()).sum::<f64>();
    // Each quotient and each sum is wrong by 2^-53 of it at most; only what is closer is added up exactly.
    let error = (tasks.len() as f64 + 8.0) * 1e-15 * (sum + bound);
    if (sum - bound).abs() > error {
        return sum.total_cmp(&bound);
    }
    rate(tasks).cmp(&ratio(supply.rate().0, supply.rate().1))
}

/// After that long all repeats itself in a busy period, which may never end, since all of the supply is asked for. `None`: it is not, or
/// that is very long.
fn cycle_of_all<S: TimeFor>(tasks: &[Requesting], supply: &S) -> Option<u64> {
    if compare(tasks, supply) != Ordering::Equal {
        return None;
    }
    let periods = tasks.iter().map(|task| task.requests.period_ns()).collect::<Option<Vec<_>>>()?;
    cycle_of(periods.into_iter(), supply)
}

/// Bounds on the response of each task, by fixed priorities; `levels` as in [`crate::FixedPriority::responses_by_level`].
///
/// # Panics
/// When there is not one level per task.
pub fn fixed_priority(tasks: &[Requesting], levels: &[u32], supply: &Supply) -> Vec<Response> {
    assert_eq!(tasks.len(), levels.len(), "one level per task");
    with_supply!(supply, supply => {
        let mut windows = WINDOWS_MAX;
        (0..tasks.len())
            .map(|index| {
                let upto = levels.partition_point(|level| *level <= levels[index]);
                response(&tasks[..upto], index, supply, &mut windows)
            })
            .collect()
    })
}

/// Of one task beside all others.
fn response<S: TimeFor>(tasks: &[Requesting], index: usize, supply: &S, windows: &mut u32) -> Response {
    if compare(tasks, supply) == Ordering::Greater || !tasks.iter().all(|task| is_valid(&task.task)) {
        return Response::Unbounded;
    }
    let repeats_ns = cycle_of_all(tasks, supply).unwrap_or(u64::MAX);
    let Requesting { task, requests } = &tasks[index];
    let (mut window, mut longest) = (1, 0);
    for job in 0.. {
        let own = requests.work_ns(job + 1).saturating_add(task.blocking_ns);
        loop {
            let others = tasks.iter().enumerate().filter(|(other, _)| *other != index);
            let asked = others.map(|(_, other)| other.until(window)).fold(own, u64::saturating_add);
            let done = supply.time_for(asked);
            if done > WINDOW_MAX_NS || *windows == 0 {
                return Response::TooLong;
            }
            *windows -= 1;
            if done <= window {
                break;
            }
            window = done;
        }
        let from_release = (window + task.jitter_ns).saturating_sub(requests.distance_ns(job));
        longest = longest.max(from_release);
        let next_ns = requests.distance_ns(job + 1);
        if window + task.jitter_ns <= next_ns || next_ns >= repeats_ns {
            break;
        }
    }
    Response::Within(longest)
}

/// Whether all deadlines are met by the earliest deadline first.
pub fn earliest_deadline(tasks: &[Requesting], supply: &Supply) -> Demand {
    with_supply!(supply, supply => demand(tasks, supply))
}

fn demand<S: TimeFor>(tasks: &[Requesting], supply: &S) -> Demand {
    if compare(tasks, supply) == Ordering::Greater || !tasks.iter().all(|task| is_valid(&task.task)) {
        return Demand::Overload;
    }
    let plain: Vec<_> = tasks.iter().map(|task| task.task).collect();
    let mut windows = WINDOWS_MAX;
    let Some(busy) = busy_period(tasks, supply, &mut windows) else { return Demand::TooLong };
    // The next deadline of each, the earliest first, and how many were before it.
    let first = |(index, task): (usize, &Requesting)| Reverse((task.due_ns(0), index, 0));
    let mut next: BinaryHeap<_> = tasks.iter().enumerate().map(first).collect();
    let mut due = 0u64;
    while let Some(Reverse((window, index, jobs))) = next.pop() {
        if window > busy {
            break;
        }
        if windows == 0 {
            return Demand::TooLong;
        }
        windows -= 1;
        let Requesting { requests, .. } = &tasks[index];
        due = due.saturating_add(requests.work_ns(jobs + 1) - requests.work_ns(jobs));
        next.push(Reverse((tasks[index].due_ns(jobs + 1), index, jobs + 1)));
        if next.peek().is_some_and(|Reverse((other, ..))| *other == window) {
            continue; // more is due then
        }
        let due_ns = due.saturating_add(blocking_within(&plain, window));
        if supply.time_for(due_ns) > window {
            return Demand::Exceeds { window_ns: window, due_ns };
        }
    }
    Demand::Met
}

/// Bounds on the response of each task by the earliest deadline first, also of those that come too late.
pub fn earliest_deadline_responses(tasks: &[Requesting], supply: &Supply) -> Vec<Response> {
    with_supply!(supply, supply => {
        if compare(tasks, supply) == Ordering::Greater || !tasks.iter().all(|task| is_valid(&task.task)) {
            return vec![Response::Unbounded; tasks.len()];
        }
        let mut windows = WINDOWS_MAX;
        let busy = busy_period(tasks, supply, &mut windows);
        let of = |index| {
            let found = busy.and_then(|busy| longest_response(tasks, index, busy, supply, &mut windows));
            found.map_or(Response::TooLong, Response::Within)
        };
        (0..tasks.len()).map(of).collect()
    })
}

/// As [`crate::Edf::responses`] (Spuri 1996): of the jobs whose deadline is one of another task, or of a job of the same one. `None`: it
/// would take too long to look.
fn longest_response<S: TimeFor>(
    tasks: &[Requesting],
    index: usize,
    busy: u64,
    supply: &S,
    windows: &mut u32,
) -> Option<u64> {
    let plain: Vec<_> = tasks.iter().map(|task| task.task).collect();
    let Requesting { task, requests } = &tasks[index];
    let (deadline, jitter) = (signed(task.deadline_ns), signed(task.jitter_ns));
    // The nominal release of the job that is due with the job after so many of another task.
    let release = |other: &Requesting, jobs: u64| {
        let due = signed(other.requests.distance_ns(jobs)) + signed(other.task.deadline_ns);
        due - signed(other.task.jitter_ns) - deadline
    };
    let mut next: BinaryHeap<_> =
        tasks.iter().enumerate().map(|(at, other)| Reverse((release(other, 0), at, 0))).collect();
    let (mut longest, mut done, mut last) = (0, 1, i64::MIN);
    while let Some(Reverse((at, other, jobs))) = next.pop() {
        if at + jitter >= signed(busy) {
            break;
        }
        next.push(Reverse((release(&tasks[other], jobs + 1), other, jobs + 1)));
        *windows = windows.checked_sub(1)?;
        if at < -jitter || at == last {
            continue;
        }
        last = at;
        let due = at + deadline;
        let own = requests.jobs_within((at + jitter) as u64 + 1);
        let own = requests.work_ns(own).saturating_add(blocking_within(&plain, due.max(0) as u64));
        // The later it comes, the later it is done.
        loop {
            let others = tasks.iter().enumerate().filter(|(other, _)| *other != index);
            let asked = others.map(|(_, other)| {
                let room = due - signed(other.task.deadline_ns) + signed(other.task.jitter_ns);
                let due = if room < 0 { 0 } else { other.requests.jobs_within(room as u64 + 1) };
                let released = other.requests.jobs_within(done + other.task.jitter_ns);
                other.requests.work_ns(due.min(released))
            });
            let next = supply.time_for(asked.fold(own, u64::saturating_add));
            *windows = windows.checked_sub(1).filter(|_| next <= WINDOW_MAX_NS)?;
            if next <= done {
                break;
            }
            done = next;
        }
        longest = longest.max(signed(done) - at);
    }
    u64::try_from(longest).ok()
}

/// No window that is longer says more: the longest time in which there is always something to do, or a cycle after the first deadlines.
fn busy_period<S: TimeFor>(tasks: &[Requesting], supply: &S, windows: &mut u32) -> Option<u64> {
    if let Some(cycle_ns) = cycle_of_all(tasks, supply) {
        let last_ns = tasks.iter().map(|task| task.task.deadline_ns).max()?;
        let window_ns = cycle_ns.saturating_add(last_ns).saturating_add(supply.first_wait_ns());
        return Some(window_ns).filter(|window_ns| *window_ns <= WINDOW_MAX_NS);
    }
    let blocking = tasks.iter().map(|task| task.task.blocking_ns).max().unwrap_or(0);
    let mut window = 1;
    loop {
        let asked = tasks.iter().map(|task| task.until(window)).fold(blocking, u64::saturating_add);
        let done = supply.time_for(asked);
        if done > WINDOW_MAX_NS || *windows == 0 {
            return None;
        }
        *windows -= 1;
        if done <= window {
            return Some(window);
        }
        window = done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_implies() {
        let requests = Requests::new(&[4, 1, 2], &[1, 2, 30]).unwrap();
        assert_eq!(
            (0..8).map(|jobs| requests.work_ns(jobs)).collect::<Vec<_>>(),
            [0, 4, 6, 7, 11, 13, 14, 18]
        );
        assert_eq!(
            (0..7).map(|jobs| requests.distance_ns(jobs)).collect::<Vec<_>>(),
            [0, 1, 2, 30, 31, 32, 60]
        );
        assert_eq!(
            [0, 1, 2, 3, 30, 31, 32, 60, 61].map(|t| requests.jobs_within(t)),
            [0, 1, 2, 3, 3, 4, 5, 6, 7]
        );
        assert_eq!(requests.rate(), ratio(7, 30));
        assert_eq!(requests.longer(2).work_ns(4), 19);
        // 3 and then 3 again are 6, whatever the list says.
        assert_eq!(Requests::new(&[1], &[3, 4, 9]).unwrap().distances_ns, [0, 3, 6, 9]);
        for (works, distances) in
            [(&[][..], &[1][..]), (&[1], &[]), (&[0], &[1]), (&[1], &[0]), (&[1], &[2, 1])]
        {
            assert_eq!(Requests::new(works, distances), None);
        }
        assert_eq!(Requests::new(&[TIME_MAX_NS + 1], &[1]), None);
        assert_eq!(Requests::new(&[TIME_MAX_NS; 17], &[1]), None);
        assert_eq!(requests.work_ns(u64::MAX), u64::MAX);
        assert_eq!(requests.jobs_within(u64::MAX), u64::MAX / 30 * 3 + 3);
    }

    /// Against all windows of a random play by the lists.
    #[test]
    fn what_is_taken_of_a_window() {
        let mut state = 5u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let mut reached = 0;
        for _ in 0..400 {
            let works: Vec<_> = (0..=draw(3)).map(|_| 1 + draw(4)).collect();
            let mut distances = vec![1 + draw(9)];
            (0..draw(3)).for_each(|_| distances.push(distances[distances.len() - 1] + draw(12)));
            let requests = Requests::new(&works, &distances).unwrap();
            let (rate, ahead) = (requests.rate(), requests.ahead_of_rate().unwrap());
            let mut best = whole(0);
            // From the heaviest one on, as early as may be; nobody else wants the CPU.
            for turn in 0..works.len() {
                let (mut releases, mut left, mut taken) = (vec![0], works[turn], 0);
                for now in 0..120u64 {
                    let next = (1..=releases.len().min(distances.len()))
                        .map(|back| releases[releases.len() - back] + distances[back - 1])
                        .max();
                    if next == Some(now) {
                        left += works[(turn + releases.len()) % works.len()];
                        releases.push(now);
                    }
                    taken += u64::from(left > 0);
                    left = left.saturating_sub(1);
                    best = best.max(whole(taken) - &rate * whole(now + 1));
                }
            }
            assert!(best <= ahead, "{works:?} {distances:?}: {best}, not {ahead}");
            reached += u32::from(best == ahead);
        }
        assert!(reached > 150, "{reached}");
        let plain = Requests::new(&[4], &[10]).unwrap();
        assert_eq!(plain.ahead_of_rate(), Some(whole(4) * ratio(6, 10)));
    }

    /// The example at the head of the file.
    #[test]
    fn works_in_turn_below_others() {
        let video = Requests::new(&[4, 1, 1], &[5]).unwrap();
        let tasks = [(Task::new(4, 5), video), (Task::new(4, 15), Requests::of(&Task::new(4, 15)).unwrap())]
            .map(|(task, requests)| Requesting { task, requests });
        let found = fixed_priority(&tasks, &[0, 1], &Supply::WHOLE);
        assert_eq!(found, [Response::Within(4), Response::Within(9)]);
        assert_eq!(earliest_deadline(&tasks, &Supply::WHOLE), Demand::Met);
    }
}
