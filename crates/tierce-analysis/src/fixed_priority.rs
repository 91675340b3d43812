//! Preemptive fixed priorities: exact longest response times.
//!
//! The longest response of a task is found in its busy period: everything of its priority or above is released together,
//! as late after its nominal release as jitter allows, and again as soon as possible. The q-th job is done when the supply
//! has done the blocking, q + 1 jobs of the task, and whatever of higher priority came until then (Lehoczky 1990; Tindell,
//! Burns & Wellings 1994; HLS equations 6.1 and 6.2):
//!
//! ```text
//! w(q) = least t with  supply(t) = B + (q + 1)·C + Σ ⌈(t + Jⱼ)/Tⱼ⌉·Cⱼ      over those above
//! R    = max over q of  w(q) − q·T + J,  until no further job of the task comes before w(q)
//! ```
//!
//! Example: 1 ms per 4 ms above 2 ms per 6 ms above 3 ms per 12 ms: responses 1, 3 and 10 ms (two preemptions by the
//! first task, two by the second, the third of the first exactly at 8 ms).
//!
//! What it costs is the number of windows t that are looked at. A search may begin at any t that is not above the result, so
//! it begins at the larger of two: the busy period of what is above (which the task cannot be done within), and the solution
//! of the equation without rounding up, (B + (q + 1)·C + Σ Uⱼ·Jⱼ)/(rate − Σ Uⱼ). One pass over the tasks above is one
//! multiplication by a reciprocal and one by the work each.

use crate::quotient::{quick_upto, quotient, reciprocal};
use crate::supply::{cycle_of, with_supply, Supply, TimeFor};
use crate::task::{compare_utilisation, LastRegion, Response, Task, WINDOW_MAX_NS};
use crate::watch::Watch;
use std::cmp::Ordering;

/// Windows that one analysis of up to [`TASKS_USUAL`] tasks looks at.
const WINDOWS_MAX: u32 = 4_000_000;
const TASKS_USUAL: usize = 64;

/// At least so many for each task: where the supply is not nearly used up one or two are enough.
const WINDOWS_OF_A_TASK: u32 = 8;

/// The fewer the more tasks there are, since each window takes longer.
fn windows_of(tasks: &[Task]) -> u32 {
    let few = WINDOWS_MAX / u32::try_from(tasks.len() / TASKS_USUAL).unwrap_or(WINDOWS_MAX).max(1);
    let tasks = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    few.max(tasks.saturating_mul(WINDOWS_OF_A_TASK))
}

/// The analysis, with its memory: use one for many sets.
#[derive(Debug, Default)]
pub struct FixedPriority {
    all: Vec<Counted>,
    /// One more than there are tasks: of those before each, and of all.
    sums: Vec<Sums>,
    responses: Vec<Response>,
}

/// A task whose releases are counted.
#[derive(Clone, Copy, Debug)]
struct Counted {
    reciprocal: u64,
    jitter_ns: u64,
    work_ns: u64,
    period_ns: u64,
}

/// How long a sweep goes on.
#[derive(Clone, Copy)]
enum Until<'w> {
    /// Until all responses are known, or it is ended.
    All(&'w Watch),
    /// Until a deadline is missed.
    OneMisses,
}

impl Until<'_> {
    fn is_ended(self) -> bool {
        matches!(self, Self::All(watch) if watch.is_ended())
    }

    fn are_done(self, tasks: usize) {
        if let Self::All(watch) = self {
            watch.are_done(tasks);
        }
    }
}

/// What a search needs to know of all tasks above.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// Σ U, rounded somehow.
    used: f64,
    /// Σ U·J.
    early: f64,
    latest_ns: u64,
    shortest_ns: u64,
    longest_ns: u64,
}

impl Sums {
    const NONE: Self = Self { used: 0.0, early: 0.0, latest_ns: 0, shortest_ns: u64::MAX, longest_ns: 2 };

    #[inline]
    fn with(&self, task: &Counted) -> Self {
        let share = task.work_ns as f64 / task.period_ns as f64;
        Self {
            used: self.used + share,
            early: self.early + share * task.jitter_ns as f64,
            latest_ns: self.latest_ns.max(task.jitter_ns),
            shortest_ns: self.shortest_ns.min(task.period_ns),
            longest_ns: self.longest_ns.max(task.period_ns),
        }
    }
}

/// A search that went too far.
struct TooFar;

impl FixedPriority {
    /// Nothing is allocated before it is used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Longest responses of `tasks`, of which the first has the highest priority. A task that is not valid (work or period
    /// 0, a time above [`crate::TIME_MAX_NS`]) makes those from it on unbounded.
    pub fn responses(&mut self, tasks: &[Task], supply: &Supply) -> &[Response] {
        self.sweep(tasks, None, &[], supply, Until::All(&Watch::default()));
        &self.responses
    }

    /// The same where tasks may have equal priorities: `levels` has one number per task, ascending from the highest
    /// priority; equal numbers are equal priorities. Each of a level may have to wait for all others of it.
    ///
    /// # Panics
    /// When there is not one level per task.
    pub fn responses_by_level(&mut self, tasks: &[Task], levels: &[u32], supply: &Supply) -> &[Response] {
        self.responses_by_level_while(tasks, levels, supply, &Watch::default())
    }

    /// The same. Those that are not known when it is ended are [`Response::TooLong`].
    ///
    /// # Panics
    /// When there is not one level per task.
    pub fn responses_by_level_while(
        &mut self,
        tasks: &[Task],
        levels: &[u32],
        supply: &Supply,
        watch: &Watch,
    ) -> &[Response] {
        assert_eq!(tasks.len(), levels.len(), "one level per task");
        self.sweep(tasks, Some(levels), &[], supply, Until::All(watch));
        &self.responses
    }

    /// The same where jobs end with such regions; that others do so is part of each blocking.
    pub(crate) fn responses_to_last_regions(
        &mut self,
        tasks: &[Task],
        levels: &[u32],
        last: &[LastRegion],
        supply: &Supply,
    ) -> &[Response] {
        self.sweep(tasks, Some(levels), last, supply, Until::All(&Watch::default()));
        &self.responses
    }

    /// Whether all of `tasks`, the highest priority first, meet their deadlines. Stops at the first that does not.
    pub fn schedulable(&mut self, tasks: &[Task], supply: &Supply) -> bool {
        self.sweep(tasks, None, &[], supply, Until::OneMisses)
    }

    /// The same with levels as in [`Self::responses_by_level`].
    ///
    /// # Panics
    /// When there is not one level per task.
    pub fn schedulable_by_level(&mut self, tasks: &[Task], levels: &[u32], supply: &Supply) -> bool {
        assert_eq!(tasks.len(), levels.len(), "one level per task");
        self.sweep(tasks, Some(levels), &[], supply, Until::OneMisses)
    }

    /// The longest response of the last of `tasks` below all others, in whatever order those are.
    pub fn last_response(&mut self, tasks: &[Task], supply: &Supply) -> Response {
        self.last_response_to_last_region(tasks, (0, 0), supply)
    }

    /// The same where its jobs end with a region of that length that only the first of the others, so many, preempt.
    pub(crate) fn last_response_to_last_region(
        &mut self,
        tasks: &[Task],
        region: (u64, usize),
        supply: &Supply,
    ) -> Response {
        with_supply!(supply, supply => self.last_response_in(tasks, region, supply))
    }

    fn last_response_in<S: TimeFor>(&mut self, tasks: &[Task], region: (u64, usize), supply: &S) -> Response {
        let Some((task, others)) = tasks.split_last() else { return Response::Unbounded };
        let Some(repeats_ns) = repeats_after(tasks, supply) else { return Response::Unbounded };
        self.count(tasks);
        let windows = windows_of(tasks);
        let mut search =
            Search { all: &self.all, sums: &self.sums, supply, windows, repeats_ns, stop: false };
        let found = search.response(task, task.blocking_ns, region, others.len(), 0..0, 0);
        found.map_or(Response::TooLong, |(response, _)| Response::Within(response))
    }

    fn count(&mut self, tasks: &[Task]) {
        self.all.clear();
        self.all.extend(tasks.iter().filter(|task| task.is_valid()).map(|task| Counted {
            reciprocal: reciprocal(task.period_ns),
            jitter_ns: task.jitter_ns,
            work_ns: task.work_ns,
            period_ns: task.period_ns,
        }));
        self.sums.clear();
        self.sums.push(Sums::NONE);
        let mut sums = Sums::NONE;
        for task in &self.all {
            sums = sums.with(task);
            self.sums.push(sums);
        }
    }

    fn sweep(
        &mut self,
        tasks: &[Task],
        levels: Option<&[u32]>,
        last: &[LastRegion],
        supply: &Supply,
        until: Until,
    ) -> bool {
        with_supply!(supply, supply => self.sweep_in(tasks, levels, last, supply, until))
    }

    fn sweep_in<S: TimeFor>(
        &mut self,
        tasks: &[Task],
        levels: Option<&[u32]>,
        regions: &[LastRegion],
        supply: &S,
        until: Until,
    ) -> bool {
        self.responses.clear();
        let stop = matches!(until, Until::OneMisses);
        self.count(tasks);
        // Clearly below the rate, whatever was rounded.
        let rate = supply.rate().0 as f64 / supply.rate().1 as f64;
        let light = self.all.len() == tasks.len() && self.sums[tasks.len()].used < rate * (1.0 - 1e-9);
        let bounded = if light { tasks.len() } else { bounded_prefix(tasks, supply) };
        // How many come before everybody of a level.
        let above = |level: u32| levels.map_or(0, |levels| levels.partition_point(|other| *other < level));
        let same = |a: usize, b: usize| levels.is_some_and(|levels| levels[a] == levels[b]);
        let (windows, repeats_ns) = (windows_of(tasks), u64::MAX);
        let mut search = Search { all: &self.all, sums: &self.sums, supply, windows, repeats_ns, stop };
        let mut busy = 0; // work in the longest time in which those so far always have some
        let mut all_meet = true;
        let mut first = 0;
        while first < tasks.len() {
            if until.is_ended() {
                self.responses.resize(tasks.len(), Response::TooLong);
                return false;
            }
            let last = (first + 1..tasks.len()).find(|at| !same(first, *at)).unwrap_or(tasks.len());
            let alone = last - first == 1;
            if last == bounded && !light {
                search.repeats_ns = repeats_after(&tasks[..last], supply).unwrap_or(u64::MAX);
            }
            // Who waits for an equal that is blocked waits, too.
            let blocked = tasks[first..last].iter().map(|task| task.blocking_ns);
            let blocking_ns = if alone { tasks[first].blocking_ns } else { blocked.max().unwrap_or(0) };
            for (index, task) in tasks.iter().enumerate().take(last).skip(first) {
                let response = if last > bounded {
                    Response::Unbounded
                } else {
                    let region =
                        regions.get(index).map_or((0, 0), |last| (last.length_ns, above(last.level)));
                    match search.response(task, blocking_ns, region, index, index + 1..last, busy) {
                        Ok((response, work)) => {
                            if alone && blocking_ns == 0 {
                                busy = work;
                            }
                            Response::Within(response)
                        }
                        Err(TooFar) => Response::TooLong,
                    }
                };
                all_meet &= response.meets(task.deadline_ns);
                self.responses.push(response);
            }
            if stop && !all_meet {
                return false;
            }
            until.are_done(last - first);
            first = last;
        }
        all_meet
    }
}

/// How many of the first tasks have bounded responses: the supply has room for them in the long run.
fn bounded_prefix<S: TimeFor>(tasks: &[Task], supply: &S) -> usize {
    if is_bounded(tasks, supply) {
        return tasks.len(); // one sum instead of one for each task
    }
    (0..tasks.len()).find(|last| !is_bounded(&tasks[..=*last], supply)).unwrap_or(tasks.len())
}

fn is_bounded<S: TimeFor>(tasks: &[Task], supply: &S) -> bool {
    repeats_after(tasks, supply).is_some()
}

/// After that long all repeats itself in a busy period of `tasks`, which may never end where they need all of the supply; else, and where
/// that is very long, [`u64::MAX`]. `None`: they need more than there is.
fn repeats_after<S: TimeFor>(tasks: &[Task], supply: &S) -> Option<u64> {
    if !tasks.iter().all(Task::is_valid) {
        return None;
    }
    match compare_utilisation(tasks, supply.rate()) {
        Ordering::Less => Some(u64::MAX),
        Ordering::Equal => {
            Some(cycle_of(tasks.iter().map(|task| task.period_ns), supply).unwrap_or(u64::MAX))
        }
        Ordering::Greater => None,
    }
}

/// Fixed points of the equation, for one set and supply.
struct Search<'t, S> {
    all: &'t [Counted],
    sums: &'t [Sums],
    supply: &'t S,
    windows: u32,
    /// Later jobs of a busy period take as long as those before.
    repeats_ns: u64,
    /// A response above the deadline is as long as it needs to be known.
    stop: bool,
}

impl<S: TimeFor> Search<'_, S> {
    /// The longest response of `task`, which ends with a region of `last_ns` that only the first `within` tasks preempt, below the first `above` tasks,
    /// whose busy period has the work `busy` at least, and those `beside`; and the work in its own busy period.
    #[inline]
    fn response(
        &mut self,
        task: &Task,
        blocking_ns: u64,
        (last_ns, within): (u64, usize),
        above: usize,
        beside: std::ops::Range<usize>,
        busy: u64,
    ) -> Result<(u64, u64), TooFar> {
        let others = Others::new(&self.all[..above], &self.all[beside], &self.sums[above], self.supply);
        // When its last region has begun, by 1 ns, nothing goes before the rest of it.
        let rest = last_ns.min(task.work_ns).saturating_sub(1);
        let mut own = blocking_ns;
        let mut end = self.supply.time_for(busy.saturating_add(task.work_ns - rest));
        let mut work;
        let (mut worst, mut next_ns) = (0, 0u64);
        if !self.stop && others.jobs_at_least(task) > f64::from(self.windows) {
            self.windows = 0; // as many as the search would need at least
            return Err(TooFar);
        }
        loop {
            own = own.saturating_add(task.work_ns);
            let late = if self.stop { next_ns.saturating_add(task.deadline_ns) } else { u64::MAX };
            (end, work) = self.done(&others, own - rest, end, late)?;
            if end > late {
                return Ok((u64::MAX, work));
            }
            let mut until = end;
            if rest > 0 {
                until = self.supply.time_for(work.saturating_add(rest));
            }
            if rest > 0 && within > 0 {
                let those = Others::new(&self.all[..within], &[], &self.sums[within], self.supply);
                let all_else = work.saturating_sub(those.released(end, 0)).saturating_add(rest);
                (until, _) = self.done(&those, all_else, until, u64::MAX)?;
            }
            worst = worst.max(until + task.jitter_ns - next_ns);
            next_ns += task.period_ns;
            if rest > 0 && until + task.jitter_ns <= next_ns {
                // What came during the region may keep the CPU busy until the next job comes.
                (until, work) = self.done(&others, own, until, next_ns - task.jitter_ns)?;
            }
            let is_over = until + task.jitter_ns <= next_ns || next_ns >= self.repeats_ns;
            if is_over || self.stop && worst > task.deadline_ns {
                return Ok((worst, work));
            }
        }
    }

    /// When `own` and all that others release until then is done, from `end` on, and that work; or a time above `late`.
    #[inline]
    fn done(&mut self, others: &Others, own: u64, mut end: u64, late: u64) -> Result<(u64, u64), TooFar> {
        // Below the solution, whatever was rounded: slack is wrong by less than 1e-12.
        let slack = others.slack;
        let smooth = if slack > 1e-3 { (own as f64 + others.early) / slack * (1.0 - 1e-6) } else { 0.0 };
        end = end.max(smooth as u64);
        loop {
            if self.windows == 0 || end > WINDOW_MAX_NS {
                return Err(TooFar);
            }
            self.windows -= 1;
            let work = others.released(end, own);
            let done = self.supply.time_for(work);
            if done <= end {
                return Ok((end, work));
            }
            end = done;
            if end > late {
                return Ok((end, work));
            }
        }
    }
}

/// What goes before a task.
struct Others<'t> {
    above: &'t [Counted],
    beside: &'t [Counted],
    /// Windows up to that may be divided quickly.
    quick_upto: u64,
    /// What they leave of the supply, in the long run.
    slack: f64,
    /// What comes at once, and what the supply stays behind its rate.
    early: f64,
}

impl<'t> Others<'t> {
    #[inline]
    fn new<S: TimeFor>(above: &'t [Counted], beside: &'t [Counted], sums: &Sums, supply: &S) -> Self {
        let sums = beside.iter().fold(*sums, |sums, task| sums.with(task));
        let quick_upto = quick_upto(sums.shortest_ns, sums.longest_ns).saturating_sub(sums.latest_ns);
        let slack = supply.rate().0 as f64 / supply.rate().1 as f64 - sums.used;
        Self { above, beside, quick_upto, slack, early: sums.early + supply.behind_ns() }
    }

    /// Jobs of a task in its busy period, no more than there are: the q-th ends at ((q − 1)·C + early)/slack or later, and the
    /// period ends with the first that ends by q·T − J. 0 where too little is left of the supply to compute that with floats.
    #[inline]
    fn jobs_at_least(&self, task: &Task) -> f64 {
        let (work_ns, period_ns) = (task.work_ns as f64, task.period_ns as f64);
        let spare_ns = period_ns - work_ns / self.slack;
        if self.slack < 1e-3 || spare_ns < 1e-3 * period_ns {
            return 0.0;
        }
        ((self.early - work_ns) / self.slack + task.jitter_ns as f64) / spare_ns * (1.0 - 1e-4)
    }

    /// `own`, and the work of all jobs that become ready in a window.
    #[inline]
    fn released(&self, window: u64, own: u64) -> u64 {
        if window <= self.quick_upto {
            released::<true>(self.above, window, released::<true>(self.beside, window, own))
        } else {
            released::<false>(self.above, window, released::<false>(self.beside, window, own))
        }
    }
}

/// `own`, and the work of all jobs that become ready in a window.
#[inline(always)]
fn released<const QUICK: bool>(tasks: &[Counted], window: u64, own: u64) -> u64 {
    let mut sum = own;
    for task in tasks {
        // Rounded up, the window being above 0.
        let jobs = quotient::<QUICK>(window - 1 + task.jitter_ns, task.period_ns, task.reciprocal) + 1;
        sum = sum.saturating_add(jobs.saturating_mul(task.work_ns));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::Edf;
    use tierce_guarantee::{ratio, whole, Guarantee};

    /// The longest response of the last of the jobs that come in so many cycles, each of which is done at the least fixed point.
    fn played(tasks: &[Task], supply: &Supply, cycles: u64) -> Option<u64> {
        let (task, others) = tasks.split_last()?;
        let cycle =
            with_supply!(supply, supply => cycle_of(tasks.iter().map(|task| task.period_ns), supply))?;
        let done = |own: u64| {
            let mut end = 1;
            loop {
                let released = |task: &Task| (end + task.jitter_ns).div_ceil(task.period_ns) * task.work_ns;
                let next = supply.time_for(own + others.iter().map(released).sum::<u64>());
                if next == end {
                    return end;
                }
                end = next;
            }
        };
        let jobs = 0..cycles * cycle / task.period_ns;
        let response = |job: u64| {
            let end = done(task.blocking_ns + (job + 1) * task.work_ns);
            (end + task.jitter_ns).saturating_sub(job * task.period_ns)
        };
        jobs.map(response).max()
    }

    /// What repeats itself for ever is known after one cycle.
    #[test]
    fn all_of_the_supply_may_be_asked_for() {
        let mut state = 1u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        let line = Supply::of(&Guarantee::psbe(ratio(1, 2), whole(3)).unwrap()).unwrap();
        let periodic = |budget, period, deadline| Supply::edp(budget, period, deadline).unwrap();
        let supplies = [Supply::WHOLE, periodic(2, 4, 4), periodic(3, 6, 4), line];
        let (mut seen, mut late) = (0, 0);
        for round in 0..60_000 {
            let supply = &supplies[round % supplies.len()];
            let tasks: Vec<_> = (0..=draw(3))
                .map(|_| {
                    let period_ns = [3, 4, 6, 8, 12][draw(5) as usize];
                    let (jitter_ns, blocking_ns) = (draw(3) * draw(6), draw(4) * draw(2));
                    Task { jitter_ns, blocking_ns, ..Task::new(1 + draw(period_ns), period_ns) }
                })
                .collect();
            let load = with_supply!(supply, supply => compare_utilisation(&tasks, supply.rate()));
            if load != Ordering::Equal {
                continue;
            }
            let found = FixedPriority::new().responses(&tasks, supply).last().copied();
            let most = played(&tasks, supply, 3);
            assert_eq!(found, most.map(Response::Within), "{supply:?} {tasks:?}");
            seen += 1;
            late += u32::from(most > played(&tasks[tasks.len() - 1..], supply, 1));
            let edf = Edf::new().responses(&tasks, supply).to_vec();
            assert!(edf.iter().all(|response| response.ns().is_some()), "{supply:?} {tasks:?}: {edf:?}");
        }
        assert!(seen > 1_000 && late > 500, "{seen} {late}");
    }
}
