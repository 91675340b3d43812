//! Tasks of two criticalities on one CPU: what is sure while all keep to their usual work, and what if a critical one does not.
//!
//! A task is `lo` or `hi`. Every job usually works for at most C; a job of a `hi` task may at the worst work for C′ ≥ C. As long as no
//! job works longer than C all deadlines are met. If one does, those of `hi` tasks still are. Deadlines are at most periods.
//!
//! | [`Scheme`] | what is done about it | response of i, by fixed priorities |
//! |---|---|---|
//! | [`Scheme::Vestal`] | nothing; at the worst `lo` jobs, too, work for their C′ | C″ᵢ + Σ ⌈R/Tⱼ⌉·C″ⱼ, where C″ = C if i is `lo`, C′ if it is `hi` |
//! | [`Scheme::Smc`] | a `lo` job is stopped after C | the same, but of `lo` tasks j always C |
//! | [`Scheme::Amc`] | from the first job that works longer than C on, until the CPU is idle, no `lo` job is released | with C: R; for `hi` also R′ = C′ᵢ + Σ over `hi` ⌈R′/Tⱼ⌉·C′ⱼ + Σ over `lo` ⌈R/Tₖ⌉·Cₖ |
//!
//! Sources: Vestal, "Preemptive scheduling of multi-criticality systems with varying degrees of execution time assurance", RTSS 2007;
//! Baruah, Burns & Davis, "Response-time analysis for mixed criticality systems", RTSS 2011 (SMC; AMC by the bound AMC-rtb). Each j is of
//! higher or equal priority. Whoever can be last, is (Audsley): each of these responses depends only on who is above.
//!
//! **EDF-VD** (Baruah et al., "The preemptive uniprocessor scheduling of mixed-criticality implicit-deadline sporadic task systems",
//! ECRTS 2012): earliest deadline first, `hi` jobs being due after x·T at first. From the first job that works longer than C on `lo` jobs
//! are dropped and `hi` ones are due after T. With U of `lo`, u of `hi` by C and v of `hi` by C′ it works with x = 1 if U + v ≤ 1, else
//! with x = u/(1 − U) if x·U + v ≤ 1.
//!
//! Example: `l`, lo, 2 in 5; `h`, hi, 2 or 5 in 10. U + v = 9/10: EDF. With `l` 3 in 5 it is 11/10, but x = (1/5)/(2/5) = 1/2, and
//! 1/2·3/5 + 1/2 = 4/5 ≤ 1: h is due after 5 at first.

use crate::supply::Supply;
use crate::task::{utilisation, Task};
use tierce_guarantee::{whole, Exact};

/// A task and its worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixed {
    /// Its work is what it usually needs at most.
    pub task: Task,
    /// It must meet its deadlines even if some job works longer.
    pub hi: bool,
    /// What it may need at the worst; at least its work. Of a `lo` task only [`Scheme::Vestal`] takes it.
    pub work_hi_ns: u64,
}

impl Mixed {
    fn at_worst(&self) -> Task {
        Task { work_ns: self.work_hi_ns, ..self.task }
    }
}

/// What is done when a job works longer than it usually does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Nothing.
    Vestal,
    /// `lo` jobs are stopped after their work.
    Smc,
    /// `lo` jobs are released no more.
    Amc,
}

/// Longest responses of a task that are within its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    /// While no job works longer than it usually does.
    pub usual_ns: Option<u64>,
    /// At the worst; of `hi` tasks only.
    pub worst_ns: Option<u64>,
}

/// What these analyses do not know, in a task: its index and the name of a rule.
pub type Unsupported = (usize, &'static str);

/// Deadlines are at most periods, the worst is at least the usual work, there is neither jitter nor blocking.
pub fn check(tasks: &[Mixed]) -> Result<(), Unsupported> {
    for (index, Mixed { task, work_hi_ns, .. }) in tasks.iter().enumerate() {
        let rule = match task {
            _ if !task.is_valid() || *work_hi_ns > crate::TIME_MAX_NS => "times_are_in_range",
            _ if task.deadline_ns > task.period_ns => "deadlines_are_at_most_periods",
            _ if task.blocking_ns > 0 => "tasks_are_not_blocked",
            _ if task.jitter_ns > 0 => "tasks_have_no_jitter",
            _ if *work_hi_ns < task.work_ns => "work_hi_is_at_least_work",
            _ => continue,
        };
        return Err((index, rule));
    }
    Ok(())
}

/// All deadlines are met that are promised.
pub fn schedulable(tasks: &[Mixed], found: &[Responses]) -> bool {
    let met = |(task, found): (&Mixed, &Responses)| {
        found.usual_ns.is_some() && (!task.hi || found.worst_ns.is_some())
    };
    tasks.iter().zip(found).all(met)
}

/// Of each task; `levels` has a number for each, smaller is higher, equal ones wait for each other.
///
/// # Panics
/// When there is not one level per task.
pub fn responses(tasks: &[Mixed], levels: &[u32], scheme: Scheme) -> Result<Vec<Responses>, Unsupported> {
    assert_eq!(tasks.len(), levels.len(), "one level per task");
    check(tasks)?;
    let of = |index: usize| {
        let above = (0..tasks.len()).filter(|other| *other != index && levels[*other] <= levels[index]);
        let above: Vec<_> = above.map(|other| tasks[other]).collect();
        response(&tasks[index], &above, scheme)
    };
    Ok((0..tasks.len()).map(of).collect())
}

/// An order of priorities, the highest first, in which all deadlines are met that are promised, if there is one.
pub fn audsley(tasks: &[Mixed], scheme: Scheme) -> Result<Option<Vec<usize>>, Unsupported> {
    check(tasks)?;
    let mut left: Vec<_> = (0..tasks.len()).collect();
    left.sort_by_key(|index| tasks[*index].task.deadline_ns);
    let mut order = Vec::with_capacity(tasks.len());
    while !left.is_empty() {
        let can_be_last = |at: &usize| {
            let above: Vec<_> =
                left.iter().filter(|index| **index != left[*at]).map(|index| tasks[*index]).collect();
            let task = tasks[left[*at]];
            schedulable(&[task], &[response(&task, &above, scheme)])
        };
        let Some(last) = (0..left.len()).rev().find(can_be_last) else { return Ok(None) };
        order.push(left.remove(last));
    }
    order.reverse();
    Ok(Some(order))
}

fn response(task: &Mixed, above: &[Mixed], scheme: Scheme) -> Responses {
    let deadline = task.task.deadline_ns;
    let within = |work: u64, delay: &dyn Fn(u64) -> u128| {
        within(work, deadline, |window| u128::from(work) + delay(window))
    };
    let usual_ns = within(task.task.work_ns, &|window| demand(above.iter().map(|other| other.task), window));
    let worst = |usual: u64| match scheme {
        Scheme::Vestal => {
            within(task.work_hi_ns, &|window| demand(above.iter().map(Mixed::at_worst), window))
        }
        Scheme::Smc => within(task.work_hi_ns, &|window| {
            demand(above.iter().map(|other| if other.hi { other.at_worst() } else { other.task }), window)
        }),
        Scheme::Amc => {
            let before = demand(above.iter().filter(|other| !other.hi).map(|other| other.task), usual);
            within(task.work_hi_ns, &|window| {
                before + demand(above.iter().filter(|other| other.hi).map(Mixed::at_worst), window)
            })
        }
    };
    let worst_ns = if task.hi { usual_ns.and_then(worst) } else { None };
    Responses { usual_ns, worst_ns }
}

/// What is released within a window that begins with a job of each.
fn demand(tasks: impl Iterator<Item = Task>, window: u64) -> u128 {
    tasks.map(|task| u128::from(window.div_ceil(task.period_ns)) * u128::from(task.work_ns)).sum()
}

/// The least window from `first` on that is as long as what comes in it takes, if it is at most `deadline`.
fn within(first: u64, deadline: u64, takes: impl Fn(u64) -> u128) -> Option<u64> {
    let mut window = first;
    while window <= deadline {
        let longer = u64::try_from(takes(window)).ok()?;
        if longer <= window {
            return Some(window);
        }
        window = longer;
    }
    None
}

/// What the policy `mixed-criticality` lets a child run before others: in each of its periods `work_ns`, of a critical one in critical mode
/// `work_hi_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Usually.
    pub work_ns: u64,
    /// Of a critical child, in critical mode.
    pub work_hi_ns: Option<u64>,
    /// The least time between the begins of its periods.
    pub period_ns: u64,
    /// It may block within a period and use what is left at its end, as with a deferrable server; else a period begins with all of its
    /// work.
    pub carries: bool,
}

impl Budget {
    fn within(&self, budget_ns: u64, window: u64) -> u128 {
        let jitter_ns = if self.carries { self.period_ns.saturating_sub(budget_ns) } else { 0 };
        u128::from(window.saturating_add(jitter_ns).div_ceil(self.period_ns.max(1))) * u128::from(budget_ns)
    }
}

/// Longest responses of a job that begins a period of its own, behind the budgets of `above`, in a supply: as long as no critical child
/// needs more than its work, where the job works for `usual_ns`; and of one that works for `work_hi_ns`, if one does. No longer than
/// `latest_ns`. AMC-rtb, as at the head; a budget that carries over counts with release jitter, as a deferrable server does.
pub fn in_budgets(
    usual_ns: u64,
    work_hi_ns: Option<u64>,
    latest_ns: u64,
    above: &[Budget],
    supply: &Supply,
) -> Responses {
    let sum = |budgets: &mut dyn Iterator<Item = u128>| budgets.sum::<u128>();
    let fits = |work: u64, delay: &dyn Fn(u64) -> u128| {
        let time_for = |work: u128| u64::try_from(work).map_or(u64::MAX, |work| supply.time_for(work));
        within(time_for(work.into()), latest_ns, |window| {
            u128::from(time_for(u128::from(work) + delay(window)))
        })
    };
    let usually = |window: u64| sum(&mut above.iter().map(|budget| budget.within(budget.work_ns, window)));
    let usual = fits(usual_ns, &usually);
    let worst = usual.zip(work_hi_ns).and_then(|(usual, work_hi_ns)| {
        let lo = above.iter().filter(|budget| budget.work_hi_ns.is_none());
        let before = sum(&mut lo.map(|budget| budget.within(budget.work_ns, usual)));
        let hi = |window: u64| {
            above.iter().filter_map(move |budget| Some(budget.within(budget.work_hi_ns?, window)))
        };
        fits(work_hi_ns, &|window| before + sum(&mut hi(window)))
    });
    Responses { usual_ns: usual, worst_ns: worst }
}

/// EDF-VD: the part of its period after which a `hi` job is due at first, if all deadlines are met that are promised. Deadlines are
/// periods.
pub fn virtual_deadlines(tasks: &[Mixed]) -> Result<Option<Exact>, Unsupported> {
    check(tasks)?;
    if let Some(index) = tasks.iter().position(|task| task.task.deadline_ns != task.task.period_ns) {
        return Err((index, "deadlines_are_periods"));
    }
    let of = |hi: bool, worst: bool| {
        let tasks = tasks.iter().filter(|task| task.hi == hi);
        utilisation(&tasks.map(|task| if worst { task.at_worst() } else { task.task }).collect::<Vec<_>>())
    };
    let (lo, hi, worst) = (of(false, false), of(true, false), of(true, true));
    if &lo + &worst <= whole(1) {
        return Ok(Some(whole(1)));
    }
    let left = whole(1) - &lo;
    if left <= whole(0) {
        return Ok(None);
    }
    let part = hi / left;
    Ok((&part * lo + worst <= whole(1)).then_some(part))
}
