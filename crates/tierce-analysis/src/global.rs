//! Several identical CPUs, any of which may run any task: sufficient tests of global scheduling.
//!
//! What is shown holds for every phase, for periodic and sporadic releases, for jobs that work less than they may and become
//! ready less late than they may. What is not shown may hold all the same: no exact test of this kind is known.
//!
//! A job that is ready and does not run is held up: all m CPUs are busy with other tasks, each of which runs on one at a
//! time. So if others have works w₁ … wₙ to do in a window, a job is held up in it for at most the largest x with
//!
//! ```text
//! Σ min(wᵢ, x) ≥ m·x      (Bertogna, Cirinei & Lipari 2005, 2009: "interference" is at least x if and only if …)
//! ```
//!
//! and a job of work C is done within L if C + x ≤ L. Most tests are this, with different bounds for wᵢ:
//!
//! | test | scheduling | wᵢ |
//! |---|---|---|
//! | [`Test::Bcl`] | EDF | due in a window of D: Nᵢ·Cᵢ + min(Cᵢ, (D − Nᵢ·Tᵢ)₀), Nᵢ = ⌊(D − Dᵢ)/Tᵢ⌋ + 1 |
//! | [`Test::Rta`] | EDF | the smaller of that, less the slack sᵢ of the first job, and of what fits in L |
//! | [`Test::Rta`] | fixed priorities | what fits in L: N·Cᵢ + min(Cᵢ, L + Rᵢ − Cᵢ − N·Tᵢ), N = ⌊(L + Rᵢ − Cᵢ)/Tᵢ⌋, if i is above |
//! | [`Test::RtaLc`] | fixed priorities | that for m − 1 of them; for others N·Cᵢ + min(Cᵢ, L + Jᵢ − N·Tᵢ), N = ⌊(L + Jᵢ)/Tᵢ⌋ |
//!
//! Times are whole ns, so "less than" in the papers is "at most one ns less" here (as in Bertogna, Cirinei & Lipari 2009).
//!
//! **Jitter.** Rᵢ and Dᵢ count from the nominal release, so a job that comes late still runs within Rᵢ of it, the next one
//! not before Tᵢ: what fits in L remains as it is. The job that is looked at has D − J from when it is ready. Where a task
//! brings nothing into a window (limited carry-in), its first job may be J late and the others not: hence L + Jᵢ.
//!
//! Example, two CPUs, EDF: 9 in 10 and three times 1 in 10. GFB refuses: 1.2 > 2 − 0.9. But the 9 is held up for at most 1
//! (1 + 1 + 1 ≥ 2·1, not ≥ 2·2), and each 1 for at most 2 (2 + 1 + 1 ≥ 2·2): responses 10, 3, 3, 3.

use crate::forced_forward;
use crate::mpr::{self, Mpr};
use crate::task::{utilisation, utilisation_is_at_most, Task};
use crate::watch::Watch;
use tierce_guarantee::{whole, Exact};

/// Passes over all tasks in which slacks may grow; each is sound, later ones are only better.
const ROUNDS_MAX: u32 = 32;

/// Windows that one search for a response looks at.
const STEPS_MAX: u32 = 2_000;

/// What shows that deadlines are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// EDF, all tasks at once: Σ δ ≤ m − (m − 1)·max δ with δ = C/(D − J). Goossens, Funk & Baruah, "Priority-driven
    /// scheduling of periodic task systems on multiprocessors", Real-Time Systems 25(2-3), 2003, Theorem 5, for D = T; with
    /// densities Bertogna, Cirinei & Lipari 2005, Theorem 4. With jitter: a job may run at the rate δ from when it is ready,
    /// and a task's jobs do not overlap, which is all that the proof needs.
    Gfb,
    /// EDF, task by task, any window that ends with a deadline: limited carry-in (see [`Mpr`]). Baruah, "Techniques for
    /// multiprocessor global schedulability analysis", RTSS 2007: Theorem 2, that is equation 8 with the works of equations 3
    /// to 5; equation 9 says which windows are too long to fail.
    Baruah,
    /// The same inside a supply of several CPUs. Shin, Easwaran & Lee, "Hierarchical scheduling framework for virtual
    /// clustering of multiprocessors", ECRTS 2008, Theorem 1 (windows: Theorem 2); Easwaran, Shin & Lee, Real-Time Systems 43,
    /// 2009.
    Mpr,
    /// EDF, task by task, the window being the deadline. Bertogna, Cirinei & Lipari, "Improved schedulability analysis of EDF
    /// on multiprocessor platforms", ECRTS 2005, Theorem 7; in whole time units "Schedulability analysis of global scheduling
    /// algorithms on multiprocessor platforms", IEEE TPDS 20(4), 2009, Theorem 7 with equations 8 and 9.
    Bcl,
    /// Response times, for EDF repeated with the slacks found. Bertogna & Cirinei, "Response-time analysis for globally
    /// scheduled symmetric multiprocessor platforms", RTSS 2007.
    Rta,
    /// Response times under fixed priorities with limited carry-in: before the window some CPU had no work of higher
    /// priority, so at most m − 1 tasks bring some. Guan, Stigge, Yi & Yu, "New response time bounds for fixed priority
    /// multiprocessor scheduling", RTSS 2009, equation 12 with the works of equations 5 to 9, for D ≤ T; Davis & Burns, "Improved
    /// priority assignment for global fixed priority pre-emptive scheduling in multiprocessor real-time systems", Real-Time
    /// Systems 47(1), 2011. Not among equal priorities, where an earlier job of the task itself may occupy that CPU.
    RtaLc,
    /// EDF, all tasks at once, any window that ends with a deadline: demand that is forced forward (see `forced_forward.rs`).
    /// Asked only where the tests above do not show all deadlines. Baruah, Bonifaci, Marchetti-Spaccamela & Stiller, "Improved
    /// multiprocessor global schedulability analysis", Real-Time Systems 46(1), 2010, Theorem 1.
    FfDbf,
    /// EDF, task by task, with suspension (see [`crate::global_suspension`]). Liu & Anderson, "Suspension-aware analysis for hard
    /// real-time multiprocessor scheduling", ECRTS 2013.
    La,
    /// Pfair scheduling by PD², all tasks at once (see `pfair.rs`).
    Pd2,
}

impl Test {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gfb => "gfb",
            Self::Baruah => "baruah",
            Self::Mpr => "mpr",
            Self::Bcl => "bcl",
            Self::Rta => "rta",
            Self::RtaLc => "rta-lc",
            Self::FfDbf => "ff-dbf",
            Self::La => "la",
            Self::Pd2 => "pd2",
        }
    }
}

/// What is shown of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// No job takes longer, from its nominal release; `None`: nothing is shown. Where a test has no response times, the
    /// deadline.
    pub response_ns: Option<u64>,
    /// Every test that shows it to meet its deadline. Under EDF on condition that the others do: where they are not
    /// shown to, there is no response.
    pub by: Vec<Test>,
}

/// What is shown of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// All deadlines are met. `false`: that is not shown.
    pub schedulable: bool,
    /// In the order of the tasks.
    pub tasks: Vec<Shown>,
}

/// What these tests do not know, in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Its index; 0 where it is not about a task.
    pub task: usize,
    /// Name of the rule, snake_case.
    pub rule: &'static str,
}

/// There is a CPU, deadlines are at most periods, nobody is blocked, all times are in their range.
pub(crate) fn check(tasks: &[Task], cpus: u32) -> Result<(), Unsupported> {
    if cpus == 0 {
        return Err(Unsupported { task: 0, rule: "cpus_are_at_least_one" });
    }
    for (index, task) in tasks.iter().enumerate() {
        let rule = match task {
            _ if !task.is_valid() => "times_are_in_range",
            _ if task.deadline_ns > task.period_ns => "deadlines_are_at_most_periods",
            _ if task.blocking_ns > 0 => "tasks_are_not_blocked",
            _ => continue,
        };
        return Err(Unsupported { task: index, rule });
    }
    Ok(())
}

/// How long a job has from when it is ready; `None`: not even its work.
pub(crate) fn room(task: &Task) -> Option<u64> {
    task.deadline_ns.checked_sub(task.jitter_ns).filter(|room| *room >= task.work_ns)
}

/// Response times under EDF that take those of the others for granted: `ends` begin with the deadlines, and are shortened until a round
/// finds none shorter, `rounds` times at most. `window` finds the response time of a task without its jitter: of its index, the time that
/// it has (ns), and the ends so far. Which tasks have one.
pub(crate) fn shorten(
    tasks: &[Task],
    ends: &mut [u64],
    rounds: u32,
    mut window: impl FnMut(usize, u64, &[u64]) -> Option<u64>,
) -> Vec<bool> {
    let mut shown = vec![false; tasks.len()];
    for _ in 0..rounds {
        let mut better = false;
        for (index, task) in tasks.iter().enumerate() {
            let Some(found) = room(task).and_then(|room| window(index, room, ends)) else { continue };
            let end = found + task.jitter_ns;
            better |= !shown[index] || end < ends[index];
            shown[index] = true;
            ends[index] = ends[index].min(end);
        }
        if !better {
            break;
        }
    }
    shown
}

/// Whether more is asked for than there is, which is `rate` in the long run, or than one CPU has until a deadline. Then
/// deadlines are missed for sure.
pub fn overloaded(tasks: &[Task], rate: &Exact) -> bool {
    tasks.iter().any(|task| room(task).is_none()) || !utilisation_is_at_most(tasks, rate)
}

/// What another task may do in a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// If it brings nothing into it.
    pub(crate) fresh: u64,
    /// If it does; not less.
    pub(crate) carried: u64,
}

/// The time that a job can be held up: all CPUs busy with `works`, each on one at a time, up to `carriers` of them carried
/// in. At most `upto`: longer is not told apart.
fn held_up(works: &[Work], cpus: u32, carriers: usize, upto: u64, more: &mut Vec<u64>) -> u64 {
    if carriers >= works.len() {
        // Σ min(wᵢ, x) is the least of j·x + all but the j largest; for j ≥ m that is m·x or more.
        more.clear();
        more.extend(works.iter().map(|work| work.carried));
        let mut rest: u128 = more.iter().map(|work| u128::from(*work)).sum();
        if more.len() > cpus as usize {
            more.select_nth_unstable_by(cpus as usize, |a, b| b.cmp(a));
            more.truncate(cpus as usize);
        }
        more.sort_unstable_by(|a, b| b.cmp(a));
        let mut most = u128::from(upto);
        for (others, largest) in (1..=cpus).rev().zip(more.iter().chain(std::iter::repeat(&0))) {
            most = most.min(rest / u128::from(others));
            rest -= u128::from(*largest);
        }
        return u64::try_from(most).unwrap_or(upto);
    }
    let mut possible = |time: u64| {
        let cut = |work: u64| work.min(time);
        more.clear();
        more.extend(works.iter().map(|work| cut(work.carried) - cut(work.fresh)).filter(|more| *more > 0));
        if carriers < more.len() {
            more.select_nth_unstable_by(carriers, |a, b| b.cmp(a));
            more.truncate(carriers);
        }
        let fresh = works.iter().map(|work| u128::from(cut(work.fresh)));
        let sum: u128 = fresh.chain(more.iter().map(|more| u128::from(*more))).sum();
        sum >= u128::from(cpus) * u128::from(time)
    };
    // Possible up to some time, impossible beyond: for each choice of carriers the sum is concave and 0 at 0.
    let (mut low, mut high) = (0, upto);
    while low < high {
        let middle = high - (high - low) / 2;
        if possible(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Work of a task whose jobs end within `end` of their nominal releases (at least their work), in any window of `window`:
/// the first job as late, the others as early as possible.
pub(crate) fn carried(task: &Task, end: u64, window: u64) -> u64 {
    repeated(task, window + end.saturating_sub(task.work_ns))
}

/// The same where no job was ready before the window.
pub(crate) fn fresh(task: &Task, window: u64) -> u64 {
    repeated(task, window + task.jitter_ns)
}

/// A job at the begin of each period, at once.
fn repeated(task: &Task, span: u64) -> u64 {
    (span / task.period_ns)
        .saturating_mul(task.work_ns)
        .saturating_add(task.work_ns.min(span % task.period_ns))
}

/// Work of jobs due in a window of `window`, the last one at its end, the first one done within `end`.
pub(crate) fn due(task: &Task, end: u64, window: u64) -> u64 {
    let jobs = (window + task.period_ns - task.deadline_ns) / task.period_ns;
    let first = (window + end).saturating_sub(jobs * task.period_ns + task.deadline_ns);
    jobs.saturating_mul(task.work_ns).saturating_add(task.work_ns.min(first))
}

/// The least window in which a job is sure to be done once it is ready, if it is at most its room, which is at least `own`, for how long
/// nobody holds it up. `works` gives what others may do in a window.
pub(crate) fn done_within(
    own: u64,
    room: u64,
    cpus: u32,
    carriers: usize,
    mut works: impl FnMut(u64, &mut Vec<Work>),
) -> Option<u64> {
    let (mut all, mut more) = (Vec::new(), Vec::new());
    let mut next = |window: u64| {
        all.clear();
        works(window, &mut all);
        own + held_up(&all, cpus, carriers, room - own + 1, &mut more)
    };
    let mut window = own;
    for _ in 0..STEPS_MAX {
        let longer = next(window);
        if longer <= window {
            return Some(window);
        }
        if longer > room {
            return None;
        }
        window = longer;
    }
    (next(room) <= room).then_some(room) // any window that is long enough will do
}

/// Global EDF: the m jobs that are due first run, ties broken in any way.
pub fn earliest_deadline(tasks: &[Task], cpus: u32) -> Result<Verdict, Unsupported> {
    earliest_deadline_while(tasks, cpus, &Watch::default())
}

/// The same; where it is ended early, with the tests of some tasks.
pub(crate) fn earliest_deadline_while(
    tasks: &[Task],
    cpus: u32,
    watch: &Watch,
) -> Result<Verdict, Unsupported> {
    check(tasks, cpus)?;
    let mut by = vec![Vec::new(); tasks.len()];
    let mut ends: Vec<_> = tasks.iter().map(|task| task.deadline_ns).collect();
    let density = gfb(tasks, cpus);
    let windows = Mpr::whole(cpus).map(|supply| windows(tasks, &supply, watch));
    for (index, task) in tasks.iter().enumerate() {
        if watch.is_ended() {
            break;
        }
        if density {
            by[index].push(Test::Gfb);
        }
        if windows.as_ref().is_some_and(|shown| shown[index]) {
            by[index].push(Test::Baruah);
        }
        let all_due = |_, works: &mut Vec<Work>| {
            works.extend(others(tasks, index).map(|(_, other)| {
                let work = due(other, other.deadline_ns, task.deadline_ns);
                Work { fresh: work, carried: work }
            }));
        };
        if room(task).is_some_and(|room| fits(task, room, cpus, tasks.len(), all_due)) {
            by[index].push(Test::Bcl);
        }
    }
    let mut most = Vec::new();
    let shown = shorten(tasks, &mut ends, ROUNDS_MAX, |index, room, ends| {
        if watch.is_ended() {
            return None;
        }
        let task = &tasks[index];
        // What is due does not depend on the window.
        most.clear();
        most.extend(tasks.iter().zip(ends).map(|(other, end)| due(other, *end, task.deadline_ns)));
        done_within(task.work_ns, room, cpus, tasks.len(), |window, works| {
            works.extend(others(tasks, index).map(|(at, other)| {
                let work = most[at].min(carried(other, ends[at], window));
                Work { fresh: work, carried: work }
            }));
        })
    });
    for (by, _) in by.iter_mut().zip(&shown).filter(|(_, shown)| **shown) {
        by.push(Test::Rta);
    }
    let with_room = tasks.iter().all(|task| room(task).is_some());
    if by.iter().any(Vec::is_empty) && with_room && !watch.is_ended() && forced_forward::shown(tasks, cpus) {
        by.iter_mut().for_each(|by| by.push(Test::FfDbf));
    }
    Ok(verdict(by, &ends))
}

/// Global EDF inside a supply of several CPUs.
pub fn earliest_deadline_in(tasks: &[Task], supply: &Mpr) -> Result<Verdict, Unsupported> {
    check(tasks, supply.cpus())?;
    let by = |shown| if shown { vec![Test::Mpr] } else { Vec::new() };
    let by = windows(tasks, supply, &Watch::default()).into_iter().map(by).collect();
    let ends: Vec<_> = tasks.iter().map(|task| task.deadline_ns).collect();
    Ok(verdict(by, &ends))
}

/// The demand test, if it can be asked.
fn windows(tasks: &[Task], supply: &Mpr, watch: &Watch) -> Vec<bool> {
    if tasks.iter().any(|task| room(task).is_none()) {
        return vec![false; tasks.len()];
    }
    mpr::shown(tasks, &vec![0; tasks.len()], supply, watch)
}

/// All or nothing: what is shown of each task takes the others for granted.
pub(crate) fn verdict(by: Vec<Vec<Test>>, ends: &[u64]) -> Verdict {
    let schedulable = by.iter().all(|by| !by.is_empty());
    let response = |end: &u64| schedulable.then_some(*end);
    let tasks = by.into_iter().zip(ends).map(|(by, end)| Shown { response_ns: response(end), by });
    Verdict { schedulable, tasks: tasks.collect() }
}

pub(crate) fn others(tasks: &[Task], index: usize) -> impl Iterator<Item = (usize, &Task)> {
    tasks.iter().enumerate().filter(move |(at, _)| *at != index)
}

/// Whether a job is done within `room`.
fn fits(
    task: &Task,
    room: u64,
    cpus: u32,
    carriers: usize,
    mut works: impl FnMut(u64, &mut Vec<Work>),
) -> bool {
    let mut all = Vec::new();
    works(room, &mut all);
    let least = room - task.work_ns + 1;
    held_up(&all, cpus, carriers, least, &mut Vec::new()) < least
}

fn gfb(tasks: &[Task], cpus: u32) -> bool {
    let dense = |task: &Task| room(task).map(|room| Task::new(task.work_ns, room));
    let Some(dense) = tasks.iter().map(dense).collect::<Option<Vec<_>>>() else { return false };
    let each = dense.iter().map(|task| utilisation(&[*task]));
    let Some(most) = each.max() else { return true };
    utilisation_is_at_most(&dense, &(whole(cpus.into()) - whole(u64::from(cpus) - 1) * most))
}

/// Global fixed priorities: the m ready tasks of highest priority run. `levels` has a number per task, smaller is higher,
/// equal numbers are equal priorities, among which any may go first.
///
/// # Panics
/// When there is not one level per task.
pub fn fixed_priority(tasks: &[Task], levels: &[u32], cpus: u32) -> Result<Verdict, Unsupported> {
    fixed_priority_while(tasks, levels, cpus, &Watch::default())
}

/// The same; where it is ended early, with the responses of the highest levels.
pub(crate) fn fixed_priority_while(
    tasks: &[Task],
    levels: &[u32],
    cpus: u32,
    watch: &Watch,
) -> Result<Verdict, Unsupported> {
    assert_eq!(tasks.len(), levels.len(), "one level per task");
    check(tasks, cpus)?;
    let all = responses(tasks, levels, cpus, false, watch);
    let limited = responses(tasks, levels, cpus, true, watch);
    let shown: Vec<_> = all
        .into_iter()
        .zip(limited)
        .map(|(all, limited)| {
            let by = [(all, Test::Rta), (limited, Test::RtaLc)];
            let by = by.into_iter().filter(|(end, _)| end.is_some()).map(|(_, test)| test).collect();
            Shown { response_ns: limited.or(all), by }
        })
        .collect();
    Ok(Verdict { schedulable: shown.iter().all(|shown| shown.response_ns.is_some()), tasks: shown })
}

/// Responses from the highest level down; below a level of which one is not found there are none.
fn responses(tasks: &[Task], levels: &[u32], cpus: u32, limited: bool, watch: &Watch) -> Vec<Option<u64>> {
    let mut ends = vec![None; tasks.len()];
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    for level in order.chunk_by(|a, b| levels[*a] == levels[*b]) {
        let carriers = if limited && level.len() == 1 { cpus as usize - 1 } else { tasks.len() };
        let response = |index: &usize| {
            if watch.is_ended() {
                return None;
            }
            let task = &tasks[*index];
            let above = || others(tasks, *index).filter(|(at, _)| levels[*at] <= levels[*index]);
            let found = done_within(task.work_ns, room(task)?, cpus, carriers, |window, works| {
                works.extend(above().map(|(at, other)| {
                    // Beside each other all are taken to meet their deadlines: the first miss would be of one of them.
                    let carried = carried(other, ends[at].unwrap_or(other.deadline_ns), window);
                    Work { fresh: fresh(other, window).min(carried), carried }
                }));
            });
            found.map(|window| window + task.jitter_ns)
        };
        let found: Option<Vec<u64>> = level.iter().map(response).collect();
        let Some(found) = found else { break };
        level.iter().zip(found).for_each(|(index, end)| ends[*index] = Some(end));
    }
    ends
}

/// An order of priorities, the highest first, in which all deadlines are shown to be met by [`Test::RtaLc`], if this finds one:
/// whoever can be last below all others, is (Audsley 1991), which is asked of a test that does not depend on the order of those
/// above, the deadline analysis with limited carry-in (Davis & Burns 2011). Some order may be shown to hold that it
/// does not find.
pub fn audsley(tasks: &[Task], cpus: u32) -> Result<Option<Vec<usize>>, Unsupported> {
    audsley_while(tasks, cpus, &Watch::default())
}

/// The same; none, too, where it is ended early.
pub(crate) fn audsley_while(
    tasks: &[Task],
    cpus: u32,
    watch: &Watch,
) -> Result<Option<Vec<usize>>, Unsupported> {
    check(tasks, cpus)?;
    // The longest deadline first has the best chance to be last.
    let mut left = d_minus_kc(tasks, cpus);
    let mut order = Vec::with_capacity(tasks.len());
    while !left.is_empty() {
        let can_be_last = |at: &usize| {
            if watch.is_ended() {
                return false;
            }
            let task = &tasks[left[*at]];
            let above = || left.iter().filter(|index| **index != left[*at]).map(|index| &tasks[*index]);
            let works = |window, works: &mut Vec<Work>| {
                works.extend(above().map(|other| {
                    let carried = carried(other, other.deadline_ns, window);
                    Work { fresh: fresh(other, window).min(carried), carried }
                }));
            };
            room(task).is_some_and(|room| fits(task, room, cpus, cpus as usize - 1, works))
        };
        let Some(last) = (0..left.len()).rev().find(can_be_last) else { return Ok(None) };
        order.push(left.remove(last));
    }
    order.reverse();
    Ok(Some(order))
}

/// The smaller D − k·C, the higher the priority, with k = (m − 1 + √(5m² − 6m + 1))/2m: tasks that leave others little room
/// come earlier (DkC; Davis & Burns 2011, after Andersson & Jonsson 2000). On one CPU deadline monotonic. Any order is as sound as
/// another, so k is rounded.
pub fn d_minus_kc(tasks: &[Task], cpus: u32) -> Vec<usize> {
    let m = f64::from(cpus);
    let k = (m - 1.0 + (5.0 * m * m - 6.0 * m + 1.0).sqrt()) / (2.0 * m);
    let key = |index: &usize| tasks[*index].deadline_ns as f64 - k * tasks[*index].work_ns as f64;
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by(|a, b| key(a).total_cmp(&key(b)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_up_for_as_long_as_all_can_be_busy() {
        let works = |list: &[(u64, u64)]| -> Vec<_> {
            list.iter().map(|(fresh, carried)| Work { fresh: *fresh, carried: *carried }).collect()
        };
        let held =
            |list: &[(u64, u64)], cpus, carriers| held_up(&works(list), cpus, carriers, 100, &mut Vec::new());
        assert_eq!(held(&[(5, 5), (9, 9)], 2, 2), 5);
        assert_eq!(held(&[(1, 1), (1, 1), (1, 1)], 2, 3), 1);
        assert_eq!(held(&[(9, 9), (1, 1), (1, 1)], 2, 3), 2);
        assert_eq!(held(&[(9, 9)], 2, 1), 0);
        assert_eq!(held(&[(60, 90), (60, 90)], 1, 2), 100);
        assert_eq!(held(&[(0, 4), (0, 6)], 1, 1), 6);
        assert_eq!(held(&[(0, 4), (0, 6), (2, 2)], 2, 1), 2);
        // Each subset of carriers by itself, each time from the definition.
        let mut state = 7u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..3_000 {
            let list: Vec<_> = (0..4).map(|_| (draw(8), draw(8))).map(|(a, b)| (a, a + b)).collect();
            let (cpus, carriers) = (1 + draw(6) as u32, draw(5) as usize);
            let longest = |carry: u32| {
                let sum = |time: u64| -> u64 {
                    let work = |index: usize| match carry >> index & 1 {
                        1 => list[index].1,
                        _ => list[index].0,
                    };
                    (0..4).map(|index| work(index).min(time)).sum()
                };
                (0..=60).rev().find(|time| sum(*time) >= u64::from(cpus) * time).unwrap()
            };
            let choices = (0..16u32).filter(|carry| carry.count_ones() as usize <= carriers);
            let expected = choices.map(longest).max().unwrap();
            assert_eq!(held(&list, cpus, carriers), expected, "{list:?} {cpus} {carriers}");
        }
    }
}
