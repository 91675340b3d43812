//! Jobs that suspend themselves, on several CPUs, any of which may run any task: at any places, any number of times, a job for S at
//! most in all. Preemptive, deadlines up to the period. All tests are sufficient only.
//!
//! **All suspensions as work.** Compare the schedule with another one, in which each job works for as long as here it works and is
//! suspended together, so that it always wants a CPU; the same jobs come at the same times, and ties are broken the same way. Nothing
//! is done later here. Else some job is first to get further there than here: it runs there, while here it neither runs nor is
//! suspended. Jobs before it of its task are done there, so here, too, and it waits here: jobs of m tasks run that come before it. None of
//! these is done here, so none is done there, where none is further. There each of them, or a job before it of its task, which is as
//! urgent at least, wants a CPU, and the first job does not run. So each bound for works C + S holds, by EDF and by fixed priorities,
//! for any deadlines and jitter; so does one of how late jobs are.
//!
//! **Only the job's own suspension is added.** Let a job of task k be ready at a and due at d, and all jobs due before d be in time: then
//! the job of its task before it is done. Until it is done itself, it runs (C at most), is suspended (S at most) or waits, and while it
//! waits, all m CPUs are busy with other tasks. What these do in a window depends on when their jobs come and by when they are done, not on
//! when they run between: the bounds on their works in [`crate::global`] use no more than that, so they hold with suspensions. Hence
//! [`Test::Rta`] with C + S for the C of k alone, for both policies. (On one CPU it is the EDF test of [`crate::suspension`].)
//!
//! **Who brings work into a window.** Call those jobs urgent that may come before the job of k: by EDF all that are due by d, by fixed
//! priorities all of tasks above. Let the window begin at the last t₀ ≤ a before which fewer than m urgent jobs were ready, so that from t₀
//! to a all CPUs are busy with them. A task brings work in if an urgent job of it came before t₀ and was not done. Either this job was
//! ready just before t₀, and ran: of such tasks there are m − 1 at most. Or it was suspended: any number of the tasks that suspend
//! themselves, by EDF k among them. This is the step in which suspension differs (Liu & Anderson, "Suspension-aware analysis for hard
//! real-time multiprocessor scheduling", ECRTS 2013):
//!
//! - [`Test::RtaLc`], fixed priorities: all tasks that suspend themselves bring work in, and m − 1 of the others.
//! - [`Test::La`], EDF: the same in [`Test::Baruah`]. Let t = d − t₀. If the job is late, it has run and been suspended for C + S − 1 at most,
//!   so all CPUs were busy with other urgent jobs for x = t − (C + S) + 1 at least, however short its suspension was. Then the works of
//!   other tasks, each cut at x, and that of k itself, which comes before the nominal release and so within t − D, are m·x at least. The
//!   condition at the head of `mpr.rs` says that for each t they are less.
//!
//! **Some suspensions as work.** Let X be any tasks, and a job of theirs that is suspended count as one that runs. Let t₀ be the last time
//! before which fewer than m urgent jobs were ready or of X and suspended. From t₀ to a jobs of m tasks run, or are of X and suspended, at
//! each time: if fewer than m are ready, each of them runs. While k waits, m run. So [`Test::La`] holds with work C + S for tasks of X, which
//! bring work in only as those do that are never suspended. It is asked with several X, for each task by itself: all, none, and between
//! them those with the smallest S/C.
//!
//! Under EDF what is shown of a task takes for granted that others meet their deadlines, in that schedule. So either all tasks are shown
//! as work by [`crate::global`], or all by the tests here.
//!
//! Of the paper the program of SchedCAT was at hand, not the text: it has no jitter, tries each length of the suspension (the longest is
//! enough, see above), and no X.
//!
//! Example, two CPUs: 2 in 10 that suspends itself for 6, twice, and 4 in 10. As work 8, 8 and 4 in 10 are 20 in 10, too much for any
//! test. But the last one is held up for 2 at most, while both others run, and each of them for 2 by the other two: 10, 10 and 6.

use crate::global::{
    self, carried, done_within, fresh, others, room, shorten, Shown, Test, Unsupported, Verdict, Work,
};
use crate::mpr::{self, Mpr};
use crate::suspension::as_work;
use crate::task::Task;
use crate::watch::Watch;

/// Passes over all tasks in which slacks may grow.
const ROUNDS_MAX: u32 = 32;

/// About so many X are tried, the tasks whose suspensions count as work.
const CHOICES_MAX: usize = 8;

/// Global EDF, ties broken in any way.
///
/// # Panics
/// When there is not one suspension per task.
pub fn earliest_deadline(tasks: &[Task], suspensions: &[u64], cpus: u32) -> Result<Verdict, Unsupported> {
    earliest_deadline_while(tasks, suspensions, cpus, &Watch::default())
}

/// The same; where it is ended early, with the tests of some tasks.
pub(crate) fn earliest_deadline_while(
    tasks: &[Task],
    suspensions: &[u64],
    cpus: u32,
    watch: &Watch,
) -> Result<Verdict, Unsupported> {
    global::check(tasks, cpus)?;
    let working = as_work(tasks, suspensions);
    let worked = global::earliest_deadline_while(&working, cpus, watch).ok();
    let worked = worked.filter(|found| found.schedulable);
    let Some(found) = apart(tasks, suspensions, cpus, watch) else {
        return Ok(Verdict { schedulable: false, tasks: vec![Shown::default(); tasks.len()] });
    };
    Ok(match worked {
        Some(worked) if found.schedulable => Verdict { schedulable: true, tasks: best(worked, found) },
        Some(worked) => worked,
        None => found,
    })
}

/// In the schedule as it is; `None`: a job has no room for its work and suspension, so that nothing shows it, as work either.
fn apart(tasks: &[Task], suspensions: &[u64], cpus: u32, watch: &Watch) -> Option<Verdict> {
    let owns = tasks.iter().zip(suspensions).map(|(task, suspension)| own(task, *suspension));
    let owns: Vec<_> = owns.collect::<Option<_>>()?;
    let in_windows = in_windows(tasks, suspensions, cpus, watch);
    let mut ends: Vec<_> = tasks.iter().map(|task| task.deadline_ns).collect();
    let by_response = shorten(tasks, &mut ends, ROUNDS_MAX, |index, room, ends| {
        if watch.is_ended() {
            return None;
        }
        let due_at = tasks[index].deadline_ns;
        done_within(owns[index], room, cpus, tasks.len(), |window, works| {
            works.extend(others(tasks, index).map(|(at, other)| {
                let carried = carried(other, ends[at], window).min(global::due(other, ends[at], due_at));
                Work { fresh: carried, carried }
            }));
        })
    });
    let tests = in_windows.into_iter().zip(by_response).map(|(in_windows, by_response)| {
        let tests = [(in_windows, Test::La), (by_response, Test::Rta)];
        let mut tests: Vec<_> = tests.into_iter().filter(|(shown, _)| *shown).map(|(_, test)| test).collect();
        tests.sort_unstable();
        tests
    });
    Some(global::verdict(tests.collect(), &ends))
}

/// For how long a job runs and is suspended; `None`: longer than it has.
fn own(task: &Task, suspension: u64) -> Option<u64> {
    let own = task.work_ns.checked_add(suspension)?;
    room(task).filter(|room| own <= *room).map(|_| own)
}

/// Which tasks [`Test::La`] shows, with some choice of suspensions as work.
fn in_windows(tasks: &[Task], suspensions: &[u64], cpus: u32, watch: &Watch) -> Vec<bool> {
    let mut shown = vec![false; tasks.len()];
    let Some(supply) = Mpr::whole(cpus) else { return shown };
    let mut suspending: Vec<_> = (0..tasks.len()).filter(|index| suspensions[*index] > 0).collect();
    let product = |a: usize, b: usize| u128::from(suspensions[a]) * u128::from(tasks[b].work_ns);
    suspending.sort_by(|a, b| product(*b, *a).cmp(&product(*a, *b)));
    let step = suspending.len().div_ceil(CHOICES_MAX).max(1);
    for apart in (0..suspending.len()).step_by(step).chain([suspending.len()]) {
        if watch.is_ended() || shown.iter().all(|shown| *shown) {
            break;
        }
        let (mut working, mut left) = (suspensions.to_vec(), vec![0; tasks.len()]);
        suspending[..apart].iter().for_each(|index| std::mem::swap(&mut working[*index], &mut left[*index]));
        let found = mpr::shown(&as_work(tasks, &working), &left, &supply, watch);
        shown.iter_mut().zip(found).for_each(|(shown, found)| *shown |= found);
    }
    shown
}

/// What both show.
fn best(one: Verdict, other: Verdict) -> Vec<Shown> {
    let merge = |(one, other): (Shown, Shown)| {
        let mut by = [one.by, other.by].concat();
        by.sort_unstable();
        by.dedup();
        let response_ns = [one.response_ns, other.response_ns].into_iter().flatten().min();
        Shown { response_ns, by }
    };
    one.tasks.into_iter().zip(other.tasks).map(merge).collect()
}

/// Global fixed priorities; `levels` as in [`global::fixed_priority`].
///
/// # Panics
/// When there is not one of each per task.
pub fn fixed_priority(
    tasks: &[Task],
    suspensions: &[u64],
    levels: &[u32],
    cpus: u32,
) -> Result<Verdict, Unsupported> {
    fixed_priority_while(tasks, suspensions, levels, cpus, &Watch::default())
}

/// The same; where it is ended early, with the responses of the highest levels.
pub(crate) fn fixed_priority_while(
    tasks: &[Task],
    suspensions: &[u64],
    levels: &[u32],
    cpus: u32,
    watch: &Watch,
) -> Result<Verdict, Unsupported> {
    assert_eq!(tasks.len(), levels.len(), "one level per task");
    global::check(tasks, cpus)?;
    let working = as_work(tasks, suspensions);
    let mut shown = match global::fixed_priority_while(&working, levels, cpus, watch) {
        Ok(found) => found.tasks,
        Err(_) => vec![Shown::default(); tasks.len()],
    };
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let set = Set { tasks, suspensions, levels, cpus };
    for level in order.chunk_by(|a, b| levels[*a] == levels[*b]) {
        if watch.is_ended() {
            break;
        }
        for test in [Test::Rta, Test::RtaLc] {
            let limited = test == Test::RtaLc && level.len() == 1;
            let carriers = if limited { cpus as usize - 1 } else { tasks.len() };
            let found = level.iter().map(|index| set.response(*index, carriers, &shown));
            let Some(found) = found.collect::<Option<Vec<_>>>() else { continue };
            for (index, end) in level.iter().zip(found) {
                let known = &mut shown[*index];
                known.response_ns = Some(known.response_ns.map_or(end, |known| known.min(end)));
                known.by.push(test);
                known.by.sort_unstable();
                known.by.dedup();
            }
        }
        if level.iter().any(|index| shown[*index].response_ns.is_none()) {
            break;
        }
    }
    Ok(Verdict { schedulable: shown.iter().all(|shown| shown.response_ns.is_some()), tasks: shown })
}

struct Set<'a> {
    tasks: &'a [Task],
    suspensions: &'a [u64],
    levels: &'a [u32],
    cpus: u32,
}

impl Set<'_> {
    /// From its nominal release, if it is within its deadline; up to `carriers` tasks that do not suspend themselves bring work in.
    fn response(&self, index: usize, carriers: usize, shown: &[Shown]) -> Option<u64> {
        let task = &self.tasks[index];
        let own = own(task, self.suspensions[index])?;
        let found = done_within(own, room(task)?, self.cpus, carriers, |window, works| {
            let above = others(self.tasks, index).filter(|(at, _)| self.levels[*at] <= self.levels[index]);
            works.extend(above.map(|(at, other)| {
                // Beside each other all are taken to meet their deadlines: the first miss would be of one of them.
                let is_beside = self.levels[at] == self.levels[index];
                let end = shown[at].response_ns.filter(|_| !is_beside).unwrap_or(other.deadline_ns);
                let carried = carried(other, end, window);
                let fresh = fresh(other, window).min(carried);
                Work { fresh: if self.suspensions[at] > 0 { carried } else { fresh }, carried }
            }));
        })?;
        Some(found + task.jitter_ns)
    }
}
