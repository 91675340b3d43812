//! What tasks with budgets of their own pay for others, where a budget may end within a section (bandwidth inheritance, BWI: Lipari, Lamastra
//! & Abeni, "Task synchronization in reservation-based real-time systems", IEEE Transactions on Computers 53, 2004). As there, all that
//! others do on the budget of a task is added to its own work; how much that is at most, follows from steps of our own.
//!
//! The budgets are hard, their deadlines order them, and all of them arrive in time. Let a job of i be the first of its task that is not
//! done, from `a` on. A *block* of another task k is a section of it that is within no other one, with all that is nested in it. On the
//! budget of i runs, besides the job, only who holds what it waits for: parts of blocks. Each block counts once, with what i may wait for.
//!
//! 1. **When a block begins** nobody waits for k, so k runs on its own budget. If i has a budget then, that of k has an earlier deadline. As long
//!    as neither is used up, i does not run before k, and pays nothing. So of the blocks that i pays for, k had begun each before `a`; or before one of
//!    the times at which i got a new budget; or its own budget ended within it, and while i had not.
//! 2. **Whose budgets do not end.** If each job of k begins a period of its own, and the budget covers its work and all it pays, no budget ends
//!    within a block, and its deadline is that of k's job. k is after i only with a later deadline: where i has begun a period after k has, if
//!    that of k is no shorter. Up to the first time at which that would not hold, nothing here speaks of later times.
//! 3. **How many budgets.** If each job of i begins a period of its own, and work and payments take n = ⌈(C + W)/Q⌉ budgets, these last for
//!    n·T, and i gets n − 1 of them while it waits. Otherwise it may find one that is nearly used up: n = 1 + ⌈(C + W)/Q⌉.
//! 4. **How often budgets of k end** within that: their deadlines are after `a`, at most at a + n·T, and Tₖ apart: ⌈n·T/Tₖ⌉ times.
//! 5. **How much k does between.** From one block to the next it works without a lock, on its own budget. If i has a budget all the time, that is of
//!    periods that end by a + T: at most Qₖ, and (T/Tₖ)·Qₖ more if T ≥ Tₖ; otherwise at most 2·Qₖ + (n·T/Tₖ)·Qₖ. That limits the blocks after the first.
//! 6. No two tasks have one lock at a time, so of the blocks that had begun at one time there is one for each lock.
//!
//! W, the sum, grows from 0 until nothing changes. There is no bound if C + W is more than comes back in a period of the load.

use crate::demand::jobs::{budgets_of_its_own, job_and_suspension};
use std::collections::BTreeMap;
use tierce_analysis::locks::{reaching, Blocking, Held};
use tierce_analysis::Task;
use tierce_plan::{Load, Plan};

/// A user of locks with a budget of its own.
struct User {
    task: usize,
    /// Its jobs, without their waits; `None`: it is not known how often they come.
    job: Option<Task>,
    budget: Task,
    /// The lock of each block.
    locks: Vec<usize>,
    /// What it works without a lock after each block, before its next one, at least.
    apart_ns: Vec<u64>,
}

impl User {
    fn of(plan: &Plan, task: usize, budget: Task) -> Self {
        let load = plan.tasks[task].load.as_ref();
        let job = load.and_then(|load| job_and_suspension(load, 0)).map(|(job, _)| job);
        let sections = load.map_or(&[][..], Load::sections);
        let least_ns = load.and_then(|load| Some(load.work()?.min_ns())).unwrap_or(0);
        let first_ns = sections.first().map_or(0, |section| section.at_ns);
        let next = sections.iter().skip(1).map(|section| section.at_ns);
        let ends = sections.iter().map(|section| section.at_ns + section.length_ns);
        let apart = ends.zip(next.chain([least_ns.saturating_add(first_ns)]));
        let apart_ns = apart.map(|(end_ns, next_ns)| next_ns.saturating_sub(end_ns)).collect();
        let locks = sections.iter().map(|section| section.lock).collect();
        Self { task, job, budget, locks, apart_ns }
    }

    /// Its jobs with what they pay, if they have budgets with which that can be said.
    fn paying(&self, paid_ns: u64) -> Option<Task> {
        let job = self.job.filter(|_| self.budget.deadline_ns == self.budget.period_ns)?;
        Some(Task { work_ns: job.work_ns.saturating_add(paid_ns), ..job })
    }

    /// No budget ends before its job.
    fn is_covered(&self, paid_ns: Option<u64>) -> bool {
        let job = paid_ns.and_then(|paid_ns| self.paying(paid_ns));
        job.is_some_and(|job| budgets_of_its_own(&job, &self.budget) == Some(1))
    }
}

/// Of one task that waits, and one that has locks.
struct Blocks {
    /// Of those with something that is waited for: how long that is, and the lock.
    each: Vec<(u64, usize)>,
    /// Work without a lock between them.
    apart_ns: Vec<u64>,
}

impl Blocks {
    fn of(user: &User, reaching: &[u64]) -> Self {
        let (mut each, mut apart_ns): (Vec<_>, Vec<u64>) = Default::default();
        let mut before_ns = 0u64;
        for ((length_ns, lock), then_ns) in reaching.iter().zip(&user.locks).zip(&user.apart_ns) {
            if *length_ns > 0 {
                each.push((*length_ns, *lock));
                apart_ns.push(*then_ns);
            } else {
                let after = apart_ns.last_mut().unwrap_or(&mut before_ns);
                *after = after.saturating_add(*then_ns);
            }
        }
        if let Some(last) = apart_ns.last_mut() {
            *last = last.saturating_add(before_ns);
        }
        Self { each, apart_ns }
    }

    fn longest(&self) -> (u64, usize) {
        self.each.iter().copied().max().unwrap_or_default()
    }

    /// How many can begin after the first, with so much work without a lock.
    fn after_the_first(&self, work_ns: u64) -> u64 {
        let all_ns: u128 = self.apart_ns.iter().map(|ns| u128::from(*ns)).sum();
        if all_ns == 0 {
            return u64::MAX;
        }
        let (rounds, rest_ns) = (u128::from(work_ns) / all_ns, u128::from(work_ns) % all_ns);
        let count = self.apart_ns.len();
        let twice: Vec<_> = self.apart_ns.iter().chain(&self.apart_ns).map(|ns| u128::from(*ns)).collect();
        let fits = |some: &usize| {
            *some == 0 || twice.windows(*some).any(|apart| apart.iter().sum::<u128>() <= rest_ns)
        };
        let more = (0..count).rev().find(fits).unwrap_or(0);
        u64::try_from(rounds).unwrap_or(u64::MAX).saturating_mul(count as u64).saturating_add(more as u64)
    }
}

/// Rounds of the search for budgets that cover everything, and for what a task pays: after that the former are none, and the latter has no bound.
const ROUNDS_MAX: u32 = 100;

/// What the jobs of each of these tasks pay at most, `None` without a bound; `budgets`: of each task.
pub fn payments(plan: &Plan, tasks: &[usize], budgets: impl Fn(usize) -> Task) -> Vec<Blocking> {
    let users: Vec<_> = tasks.iter().map(|task| User::of(plan, *task, budgets(*task))).collect();
    let sections = |task: &usize| {
        let sections = plan.tasks[*task].load.as_ref().map_or(&[][..], Load::sections);
        sections.iter().map(|section| section.critical()).collect::<Vec<_>>()
    };
    let sections: Vec<_> = tasks.iter().map(sections).collect();
    let blocks = |at: usize| {
        let found = reaching(&sections, at, plan.locks.len());
        let of = |other: usize| (other, Blocks::of(&users[other], &found[other]));
        let others = (0..users.len()).filter(|other| *other != at && found[*other].iter().any(|ns| *ns > 0));
        others.map(of).collect::<Vec<_>>()
    };
    let blocks: Vec<_> = (0..users.len()).map(blocks).collect();
    let mut covered: Vec<_> = users.iter().map(|user| user.is_covered(Some(0))).collect();
    let mut rounds = 0..ROUNDS_MAX;
    loop {
        let found: Vec<_> = (0..users.len())
            .map(|at| Payer { at, users: &users, blocks: &blocks[at], covered: &covered }.least())
            .collect();
        let still: Vec<_> = (users.iter().zip(&found).zip(&covered))
            .map(|((user, found), covered)| *covered && user.is_covered(found.most_ns))
            .collect();
        if still == covered {
            return found;
        }
        covered = rounds.next().map_or_else(|| vec![false; users.len()], |_| still);
    }
}

/// A task that pays for the blocks of others.
struct Payer<'a> {
    at: usize,
    users: &'a [User],
    /// Of others that it may pay for.
    blocks: &'a [(usize, Blocks)],
    covered: &'a [bool],
}

impl Payer<'_> {
    /// The least W (step 3).
    fn least(&self) -> Blocking {
        let user = &self.users[self.at];
        let mut paid = Blocking { most_ns: Some(0), held: Vec::new() };
        for _ in 0..ROUNDS_MAX {
            let Some(job) = paid.most_ns.and_then(|ns| user.paying(ns)) else { break };
            let (asked, brought) = (
                u128::from(job.work_ns) * u128::from(user.budget.period_ns),
                u128::from(user.budget.work_ns) * u128::from(job.period_ns),
            );
            if asked > brought && paid.most_ns > Some(0) {
                break;
            }
            let own = budgets_of_its_own(&job, &user.budget);
            let budgets = own.unwrap_or_else(|| 1 + job.work_ns.div_ceil(user.budget.work_ns.max(1)));
            let more = self.within(budgets, own.is_some());
            if more.most_ns == paid.most_ns {
                return more;
            }
            paid = more;
        }
        Blocking { most_ns: None, ..paid }
    }

    /// What it pays within so many budgets; `own`: of which a job begins the first.
    fn within(&self, budgets: u64, own: bool) -> Blocking {
        let period_ns = self.users[self.at].budget.period_ns;
        let (mut each, mut ended) = (Vec::new(), Vec::new());
        let mut by_lock = BTreeMap::<usize, [Held; 2]>::new();
        for (other, blocks) in self.blocks {
            let (user, covered) = (&self.users[*other], self.covered[*other]);
            let (length_ns, lock) = blocks.longest();
            let theirs = &user.budget;
            let never_after = covered && theirs.period_ns < period_ns;
            let found = [u64::from(!never_after || !own), if never_after { 0 } else { budgets - 1 }];
            let lasts_ns = u128::from(budgets) * u128::from(period_ns);
            let ends =
                lasts_ns.div_ceil(u128::from(theirs.period_ns.max(1))).min(u128::from(u64::MAX)) as u64;
            let ends = if covered { 0 } else { ends };
            let all = blocks.after_the_first(self.between(theirs, budgets, own)).saturating_add(1);
            let held = |length_ns, lock, times| Held { task: user.task, lock, length_ns, times };
            let some = found[0].saturating_add(found[1]).saturating_add(ends);
            each.push(held(length_ns, lock, some.min(all)));
            ended.push(held(length_ns, lock, ends.min(all)));
            for (length_ns, lock) in &blocks.each {
                let longest = by_lock.entry(*lock).or_insert([held(0, *lock, 0); 2]);
                for (longest, times) in longest.iter_mut().zip(found) {
                    if times > 0 && *length_ns > longest.length_ns {
                        *longest = held(*length_ns, *lock, times);
                    }
                }
            }
        }
        let by_lock = by_lock.into_values().flatten().chain(ended);
        [sum(each.into_iter()), sum(by_lock)]
            .into_iter()
            .min_by_key(|paid| paid.most_ns.unwrap_or(u64::MAX))
            .unwrap_or_default()
    }

    /// How much another task works on its own budgets meanwhile (step 5).
    fn between(&self, theirs: &Task, budgets: u64, own: bool) -> u64 {
        let period_ns = self.users[self.at].budget.period_ns;
        let lasts_ns = u128::from(budgets) * u128::from(period_ns);
        let share = (lasts_ns * u128::from(theirs.work_ns)).div_ceil(u128::from(theirs.period_ns.max(1)));
        let share_ns = u64::try_from(share).unwrap_or(u64::MAX);
        match own && budgets == 1 {
            true if theirs.period_ns > period_ns => theirs.work_ns,
            true => theirs.work_ns.saturating_add(share_ns),
            false => theirs.work_ns.saturating_mul(2).saturating_add(share_ns),
        }
    }
}

fn sum(held: impl Iterator<Item = Held>) -> Blocking {
    let held: Vec<_> = held.filter(|held| held.times > 0).collect();
    let all = |sum: Option<u64>, held: &Held| sum?.checked_add(held.length_ns.checked_mul(held.times)?);
    Blocking { most_ns: held.iter().fold(Some(0), all), held }
}
