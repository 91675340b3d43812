//! Preemptive earliest deadline first.
//!
//! **Demand test.** All deadlines are met if and only if in every window the work that is released and due within it is
//! not more than the supply (Baruah, Rosier & Howell 1990). QPA (Zhang & Burns 2009) looks at few windows, from the longest
//! one down: where h(t), the work due in a window of t, is done by t' < t, no window from t' to t can fail, since what is
//! due in it is at most h(t).
//!
//! ```text
//! h(t) = Σ over Dⱼ − Jⱼ ≤ t of (⌊(t − (Dⱼ − Jⱼ))/Tⱼ⌋ + 1)·Cⱼ
//! ```
//!
//! Example: 2 ms due within 3 of 6 ms, 3 ms within 7 of 8 ms: h(3) = 2, h(7) = 5, h(9) = 7, h(15) = 12: they meet.
//!
//! No window longer than the longest busy period L can fail: h(t) ≤ r(L) + h(t − L), where the work r(L) released within L is
//! supplied within L, and what two windows are sure to hold together is sure in one as long as both (Ripoll, Crespo
//! & Mok 1996, for whole CPUs). Where utilisation and supply are nearly equal that is often far less than what the slack between
//! them says.
//!
//! Blocking: within windows from one task's deadline to the next longer one the blocking of the former counts, as with
//! the stack resource policy (Baker 1991; Zhang & Burns 2013): who blocks is due after the window, so has a longer deadline than
//! that task, and keeps it waiting if he does so to one of a shorter deadline. That of a task counts, too, in windows
//! shorter than its deadline where jitter lets it be due in them.
//!
//! **Response times** (Spuri 1996): the longest response of a task is found in a busy period that begins with all others
//! released together, for one of the places of its own releases at which its deadline coincides with another one. Blocking is
//! that of the window from there to its deadline: who waits for a job that is blocked waits, too.

use crate::quotient::{quick_upto, quotient, reciprocal};
use crate::supply::{cycle_of, with_supply, Supply, TimeFor};
use crate::task::{compare_utilisation, utilisation, Response, Task, WINDOW_MAX_NS};
use crate::watch::Watch;
use num_bigint::BigInt;
use std::cmp::Ordering;
use tierce_guarantee::{ratio, Exact};

/// Windows that one demand test looks at.
const WINDOWS_MAX: u32 = 4_000_000;

/// Windows after which the busy period is looked at: most sets need fewer.
const FEW_WINDOWS: u32 = 2_000;

/// Steps in which a busy period is looked for to bound the windows.
const BUSY_STEPS_MAX: u32 = 20_000;

/// Steps of the search for one task's response, each a pass over all tasks.
pub(crate) const STEPS_MAX: u32 = 2_000_000;

/// What the demand test found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// All deadlines are met.
    Met,
    /// More is due within a window than is supplied.
    Exceeds {
        /// Length of a window, not always the shortest.
        window_ns: u64,
        /// Work due within it, with blocking.
        due_ns: u64,
    },
    /// More is asked for than supplied in the long run.
    Overload,
    /// Utilisation and supply are equal or nearly, and the windows to look at are too many or too long. Nothing is
    /// promised.
    TooLong,
}

/// The tests, with their memory: use one for many sets.
#[derive(Debug, Default)]
pub struct Edf {
    due: Vec<Due>,
    responses: Vec<Response>,
}

/// A task as the demand test sees it.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Deadline less jitter: the shortest window in which a job is released and due.
    first_ns: u64,
    period_ns: u64,
    work_ns: u64,
    reciprocal: u64,
}

impl Edf {
    /// Nothing is allocated before it is used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether all of `tasks` meet their deadlines. A task that is not valid (work or period 0, a time above
    /// [`crate::TIME_MAX_NS`]) counts as overload.
    pub fn demand(&mut self, tasks: &[Task], supply: &Supply) -> Demand {
        with_supply!(supply, supply => self.demand_in(tasks, supply, WINDOWS_MAX))
    }

    /// Whether all of `tasks` meet their deadlines; `false` as well where that could not be decided.
    pub fn schedulable(&mut self, tasks: &[Task], supply: &Supply) -> bool {
        self.demand(tasks, supply) == Demand::Met
    }

    /// The same for one question of many: short windows, in which most sets fail, come first, and it gives up soon where
    /// utilisation and supply are nearly equal.
    pub fn schedulable_quickly(&mut self, tasks: &[Task], supply: &Supply) -> bool {
        const SHORT: u32 = 200;
        const WINDOWS: u32 = 50_000;
        excess_within(tasks, supply, SHORT).is_none()
            && with_supply!(supply, supply => self.demand_in(tasks, supply, WINDOWS)) == Demand::Met
    }

    /// The shortest window in which more is due than supplied, and what is due in it: the one to show to people. Looks at
    /// some thousand windows only, and not where tasks are blocked by different times.
    pub fn shortest_excess(&mut self, tasks: &[Task], supply: &Supply) -> Option<(u64, u64)> {
        excess_within(tasks, supply, 20_000)
    }

    fn demand_in<S: TimeFor>(&mut self, tasks: &[Task], supply: &S, mut windows: u32) -> Demand {
        if !tasks.iter().all(Task::is_valid) {
            return Demand::Overload;
        }
        let load = compare_utilisation(tasks, supply.rate());
        if load == Ordering::Greater {
            return Demand::Overload;
        }
        self.due.clear();
        for task in tasks {
            let Some(first_ns) = task.deadline_ns.checked_sub(task.jitter_ns).filter(|first| *first > 0)
            else {
                return Demand::Exceeds { window_ns: 0, due_ns: task.work_ns };
            };
            self.due.push(Due {
                first_ns,
                period_ns: task.period_ns,
                work_ns: task.work_ns,
                reciprocal: reciprocal(task.period_ns),
            });
        }
        if tasks.is_empty() {
            return Demand::Met;
        }
        let blocked = tasks.iter().any(|task| task.blocking_ns > 0);
        let implicit = || self.due.iter().all(|due| due.first_ns >= due.period_ns);
        if supply.first_wait_ns() == 0 && !blocked && implicit() {
            return Demand::Met; // Liu & Layland: nothing but the utilisation counts
        }
        self.due.sort_unstable_by_key(|due| due.first_ns);
        let longest = self.longest_window(tasks, supply, load);
        if let Some(longest) = longest {
            let mut few = windows.min(FEW_WINDOWS);
            windows -= few;
            let found = self.windows_upto(tasks, supply, longest, blocked, &mut few);
            if found != Demand::TooLong || windows == 0 {
                return found;
            }
        }
        // The slack is small, or there is none.
        let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
        let busy = busy_window(tasks, supply, blocking, &mut windows.min(BUSY_STEPS_MAX));
        match longest.into_iter().chain(busy).min() {
            Some(longest) => self.windows_upto(tasks, supply, longest, blocked, &mut windows),
            None => Demand::TooLong,
        }
    }

    /// All windows up to the longest, from there down.
    fn windows_upto<S: TimeFor>(
        &self,
        tasks: &[Task],
        supply: &S,
        longest: u64,
        blocked: bool,
        windows: &mut u32,
    ) -> Demand {
        let periods = || tasks.iter().map(|task| task.period_ns);
        let quick = longest <= quick_upto(periods().min().unwrap_or(1), periods().max().unwrap_or(1));
        let mut upper = longest;
        let mut bands = self.due.len();
        while bands > 0 {
            // Windows from this deadline on, below the next longer one, have the same blocking.
            let first = self.due[bands - 1].first_ns;
            let same = self.due[..bands].iter().rev().take_while(|due| !blocked || due.first_ns == first);
            let count = same.count();
            // Not more in the windows above.
            let blocking = if blocked { blocking_within(tasks, first) } else { 0 };
            let lower = if blocked { first } else { self.due[0].first_ns };
            let found = if quick {
                descend::<S, true>(&self.due, supply, blocking, lower, upper, windows)
            } else {
                descend::<S, false>(&self.due, supply, blocking, lower, upper, windows)
            };
            if found != Demand::Met {
                return found;
            }
            upper = upper.min(lower - 1);
            bands -= count;
        }
        Demand::Met
    }

    /// No longer window can fail. What is due in t is at most U·t + Σ U·(T − first), the supply at least rate·(t − wait).
    fn longest_window<S: TimeFor>(&self, tasks: &[Task], supply: &S, load: Ordering) -> Option<u64> {
        let last = self.due.last().map_or(0, |due| due.first_ns);
        if load == Ordering::Equal {
            return self.one_cycle(last, supply);
        }
        let rate = supply.rate().0 as f64 / supply.rate().1 as f64;
        let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0) as f64;
        let (mut used, mut early) = (0.0, rate * supply.first_wait_ns() as f64 + blocking);
        for due in &self.due {
            let share = due.work_ns as f64 / due.period_ns as f64;
            used += share;
            early += share * (due.period_ns as f64 - due.first_ns as f64).max(0.0);
        }
        let slack = rate - used;
        // Far more than all rounding errors; where the slack is not far above them, exactly.
        let bound =
            if slack > 1e-9 { early / slack * (1.0 + 1e-5) + 2.0 } else { exact_bound(tasks, supply, early) };
        let bound = bound.max(last as f64 * (1.0 + 1e-12));
        (bound < WINDOW_MAX_NS as f64).then_some((bound as u64).max(last))
    }

    /// With utilisation equal to the rate, demand and supply repeat themselves after one cycle.
    fn one_cycle<S: TimeFor>(&self, last: u64, supply: &S) -> Option<u64> {
        let cycle = cycle_of(self.due.iter().map(|due| due.period_ns), supply)?;
        let window = cycle.checked_add(last)?.checked_add(supply.first_wait_ns())?;
        (window <= WINDOW_MAX_NS).then_some(window)
    }

    /// Longest responses of `tasks`, from the nominal release.
    pub fn responses(&mut self, tasks: &[Task], supply: &Supply) -> &[Response] {
        self.responses_while(tasks, supply, &Watch::default())
    }

    /// The same. Those that are not done when it is ended are [`Response::TooLong`].
    pub fn responses_while(&mut self, tasks: &[Task], supply: &Supply, watch: &Watch) -> &[Response] {
        self.responses.clear();
        let responses = &mut self.responses;
        with_supply!(supply, supply => all_responses(tasks, supply, watch, responses));
        &self.responses
    }
}

/// The shortest window in which more is due than supplied, among the first ones.
fn excess_within(tasks: &[Task], supply: &Supply, windows: u32) -> Option<(u64, u64)> {
    let blocking = tasks.first()?.blocking_ns;
    let plain =
        |task: &Task| task.is_valid() && task.blocking_ns == blocking && task.deadline_ns > task.jitter_ns;
    if !tasks.iter().all(plain) {
        return None;
    }
    let first = |task: &Task| task.deadline_ns - task.jitter_ns;
    let mut window = tasks.iter().map(first).min()?;
    for _ in 0..windows {
        let jobs = |task: &Task| window.checked_sub(first(task)).map_or(0, |rest| rest / task.period_ns + 1);
        let due = tasks
            .iter()
            .map(|task| jobs(task).saturating_mul(task.work_ns))
            .fold(blocking, u64::saturating_add);
        if supply.time_for(due) > window {
            return Some((window, due));
        }
        window = tasks.iter().map(|task| first(task) + jobs(task) * task.period_ns).min()?;
        if window > WINDOW_MAX_NS {
            return None;
        }
    }
    None
}

/// The same bound with an exact slack.
fn exact_bound<S: TimeFor>(tasks: &[Task], supply: &S, early: f64) -> f64 {
    let slack = ratio(supply.rate().0, supply.rate().1) - utilisation(tasks);
    let bound = Exact::from_integer(BigInt::from(early.ceil() as u128)) / slack;
    let bound = u64::try_from(bound.ceil().to_integer()).unwrap_or(u64::MAX);
    bound as f64 * (1.0 + 1e-5) + 2.0
}

/// QPA over windows from `upper` down to `lower`.
fn descend<S: TimeFor, const QUICK: bool>(
    due: &[Due],
    supply: &S,
    blocking_ns: u64,
    lower: u64,
    upper: u64,
    windows: &mut u32,
) -> Demand {
    let mut window = upper;
    while window >= lower {
        if *windows == 0 {
            return Demand::TooLong;
        }
        *windows -= 1;
        let due_ns = due_within::<QUICK>(due, window).saturating_add(blocking_ns);
        let done = supply.time_for(due_ns);
        if done > window {
            return Demand::Exceeds { window_ns: window, due_ns };
        }
        window = if done < window { done } else { last_deadline_before(due, window) };
    }
    Demand::Met
}

/// How long work that is due after a window may delay what is due within it.
pub(crate) fn blocking_within(tasks: &[Task], window: u64) -> u64 {
    let longest = tasks.iter().map(|task| task.deadline_ns).filter(|deadline| *deadline <= window).max();
    let due = |task: &&Task| task.deadline_ns.saturating_sub(task.jitter_ns) <= window;
    let blocked = tasks.iter().filter(due).filter(|task| Some(task.deadline_ns) >= longest);
    blocked.map(|task| task.blocking_ns).max().unwrap_or(0)
}

/// Work released and due within a window.
#[inline]
fn due_within<const QUICK: bool>(due: &[Due], window: u64) -> u64 {
    let mut sum = 0u64;
    for task in due {
        if task.first_ns > window {
            break;
        }
        let jobs = quotient::<QUICK>(window - task.first_ns, task.period_ns, task.reciprocal) + 1;
        sum = sum.saturating_add(jobs.saturating_mul(task.work_ns));
    }
    sum
}

/// The longest window below, at the end of which something is due; 0 if there is none.
fn last_deadline_before(due: &[Due], window: u64) -> u64 {
    let before = due.iter().take_while(|task| task.first_ns < window);
    before.map(|task| window - 1 - (window - 1 - task.first_ns) % task.period_ns).max().unwrap_or(0)
}

fn all_responses<S: TimeFor>(tasks: &[Task], supply: &S, watch: &Watch, responses: &mut Vec<Response>) {
    let valid = tasks.iter().all(Task::is_valid);
    if !valid || compare_utilisation(tasks, supply.rate()) == Ordering::Greater {
        return responses.resize(tasks.len(), Response::Unbounded);
    }
    let mut steps = STEPS_MAX;
    let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    let Some(busy) = releases_until(tasks, supply, blocking, &mut steps) else {
        return responses.resize(tasks.len(), Response::TooLong);
    };
    for (index, task) in tasks.iter().enumerate() {
        if watch.is_ended() {
            return responses.resize(tasks.len(), Response::TooLong);
        }
        let (mut steps, mut done) = (STEPS_MAX, 0);
        let found = longest_response(tasks, index, busy, |release| {
            if watch.is_ended() {
                return None;
            }
            let deadline = release + signed(task.deadline_ns);
            let blocking = if blocking > 0 { blocking_within(tasks, deadline.max(0) as u64) } else { 0 };
            // The later it comes, the later it is done.
            done = completion(tasks, task, supply, release, blocking, 0, done, &mut steps)?.0;
            Some(done)
        });
        responses.push(found.map_or(Response::TooLong, Response::Within));
        if found.is_some() || !watch.is_ended() {
            watch.one_is_done();
        }
    }
}

/// The longest time in which the node always has work.
pub(crate) fn busy_window<S: TimeFor>(
    tasks: &[Task],
    supply: &S,
    blocking: u64,
    steps: &mut u32,
) -> Option<u64> {
    let mut window = 1;
    loop {
        let released =
            |task: &Task| (window + task.jitter_ns).div_ceil(task.period_ns).saturating_mul(task.work_ns);
        let demand = tasks.iter().map(released).fold(blocking, u64::saturating_add);
        let next = supply.time_for(demand);
        if next > WINDOW_MAX_NS || *steps == 0 {
            return None;
        }
        *steps -= 1;
        if next == window {
            return Some(window);
        }
        window = next;
    }
}

/// No job that comes later takes longer than one that comes until then in a busy period: that is over or repeats itself. The deadlines
/// of the first jobs are over, too, so that nobody is blocked otherwise.
pub(crate) fn releases_until<S: TimeFor>(
    tasks: &[Task],
    supply: &S,
    blocking: u64,
    steps: &mut u32,
) -> Option<u64> {
    if compare_utilisation(tasks, supply.rate()) != Ordering::Equal {
        return busy_window(tasks, supply, blocking, steps);
    }
    let cycle = cycle_of(tasks.iter().map(|task| task.period_ns), supply)?;
    let last = tasks.iter().map(|task| task.deadline_ns).max()?;
    cycle.checked_add(last).filter(|window| *window <= WINDOW_MAX_NS)
}

/// Windows and times are far below 2^63.
pub(crate) fn signed(ns: u64) -> i64 {
    ns as i64
}

/// The longest response of a task, from when each job in question is done. Times are counted from the begin of the busy period;
/// the nominal release of the job is what `completion` is told, which may be up to the jitter before it.
pub(crate) fn longest_response(
    tasks: &[Task],
    index: usize,
    busy: u64,
    mut completion: impl FnMut(i64) -> Option<u64>,
) -> Option<u64> {
    let task = &tasks[index];
    // The job's deadline coincides with one of another task: release + D = k·T' − J' + D', for every k for which the job is
    // ready within the busy period.
    let mut releases: Vec<_> = tasks
        .iter()
        .map(|other| {
            let offset = signed(other.deadline_ns) - signed(other.jitter_ns) - signed(task.deadline_ns);
            let period = signed(other.period_ns);
            let from = (-signed(task.jitter_ns) - offset).max(0);
            offset + (from + period - 1) / period * period
        })
        .collect();
    let mut worst = 0;
    while let Some(release) = releases.iter().min().copied() {
        if release + signed(task.jitter_ns) >= signed(busy) {
            break;
        }
        worst = worst.max(signed(completion(release)?) - release);
        for (next, other) in releases.iter_mut().zip(tasks).filter(|(next, _)| **next == release) {
            *next += signed(other.period_ns);
        }
    }
    u64::try_from(worst).ok()
}

/// When all of the job with that nominal release is done but `rest`, and the work until then; all others are released at the begin
/// of the busy period, which begins with the blocking. Not before `least`.
#[expect(clippy::too_many_arguments, reason = "each is a number of the equation")]
pub(crate) fn completion<S: TimeFor>(
    tasks: &[Task],
    task: &Task,
    supply: &S,
    release: i64,
    blocking: u64,
    rest: u64,
    least: u64,
    steps: &mut u32,
) -> Option<(u64, u64)> {
    let deadline = release + signed(task.deadline_ns);
    let own = (release + signed(task.jitter_ns)) / signed(task.period_ns) + 1;
    let own = (own as u64).saturating_mul(task.work_ns).saturating_add(blocking) - rest;
    let mut window = supply.time_for(own).max(least);
    loop {
        if *steps == 0 || window > WINDOW_MAX_NS {
            return None;
        }
        *steps -= 1;
        let mut demand = own;
        for other in tasks.iter().filter(|other| !std::ptr::eq(*other, task)) {
            let room = deadline - signed(other.deadline_ns) + signed(other.jitter_ns);
            if room >= 0 {
                let due = room as u64 / other.period_ns + 1;
                let released = (window + other.jitter_ns).div_ceil(other.period_ns);
                let jobs = due.min(released);
                demand = demand.saturating_add(jobs.saturating_mul(other.work_ns));
            }
        }
        let next = supply.time_for(demand);
        if next <= window {
            return Some((window, demand));
        }
        window = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_guarantee::Guarantee;

    /// Windows beyond the busy period say nothing that shorter ones do not, whatever the supply, jitter and blocking.
    #[test]
    fn the_busy_period_bounds_the_windows() {
        let mut state = 11u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let continuous = Supply::of(&Guarantee::parse("PSBE 4/5 3ns").unwrap()).unwrap();
        let supplies =
            [Supply::WHOLE, Supply::periodic(5, 7).unwrap(), Supply::edp(3, 5, 4).unwrap(), continuous];
        let (mut shorter, mut failed) = (0, 0);
        for round in 0..60_000 {
            let supply = &supplies[round % supplies.len()];
            let tasks: Vec<_> = (0..=draw(3))
                .map(|_| {
                    let (work_ns, period_ns) = (1 + draw(5), 4 + draw(20));
                    let deadline_ns = work_ns + draw(period_ns + 4);
                    let (jitter_ns, blocking_ns) = (draw(3) * draw(2), draw(4) * draw(2));
                    Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns }
                })
                .collect();
            let blocked = tasks.iter().any(|task| task.blocking_ns > 0);
            let found = with_supply!(supply, supply => {
                let mut edf = Edf::new();
                let first = edf.demand_in(&tasks, supply, WINDOWS_MAX); // fills the list
                let load = compare_utilisation(&tasks, supply.rate());
                let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
                let longest = edf.longest_window(&tasks, supply, load).filter(|_| edf.due.len() == tasks.len());
                let busy = busy_window(&tasks, supply, blocking, &mut 10_000);
                longest.zip(busy).filter(|_| load != Ordering::Greater).map(|(longest, busy)| {
                    let upto = |most| edf.windows_upto(&tasks, supply, most, blocked, &mut 1_000_000) == Demand::Met;
                    (first == Demand::Met, upto(longest), upto(longest.min(busy)), busy < longest)
                })
            });
            let Some((said, all, few, less)) = found else { continue };
            assert_eq!(all, few, "{supply:?} {tasks:?}");
            assert!(said == all, "{supply:?} {tasks:?}");
            shorter += u32::from(less);
            failed += u32::from(!all);
        }
        assert!(shorter > 1_000 && failed > 1_000, "{shorter} {failed}");
    }

    /// Nearly all of a CPU is asked for, so that its slack says nothing for hours; the busy period is 20 ms.
    #[test]
    fn full_loads_are_decided() {
        let ms = 1_000_000;
        let early = Task { deadline_ns: 9 * ms, ..Task::new(5 * ms - 1, 10 * ms) };
        let mut edf = Edf::new();
        assert!(edf.schedulable_quickly(&[early, Task::new(10 * ms, 20 * ms)], &Supply::WHOLE));
        let tight = Task { deadline_ns: 14 * ms, ..Task::new(10 * ms, 20 * ms) };
        let found = edf.demand(&[early, tight], &Supply::WHOLE);
        assert!(matches!(found, Demand::Exceeds { .. }), "{found:?}");
    }
}
