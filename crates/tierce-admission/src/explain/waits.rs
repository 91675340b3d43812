//! What a task waits for that could be shorter: sections with locks and regions without preemption of others, and thresholds.

use super::remedies::Remedy;
use crate::demand::regions::Keeps;
use crate::verdict::TaskVerdict;
use std::collections::BTreeSet;
use tierce_plan::{policies, Child, Load, Plan, Preemption, Region, Shape};

/// A number of a load that another value may mend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shorter {
    what: What,
    /// The edge above the task.
    edge: usize,
    /// What it is.
    pub from: u64,
    /// What it may be at most, or at least.
    pub toward: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Sections with that lock.
    Sections(usize),
    Regions,
    Threshold,
}

impl Shorter {
    /// With another value.
    pub(super) fn with(self, to: u64) -> Remedy {
        let Self { edge, from, .. } = self;
        match self.what {
            What::Sections(lock) => Remedy::Section { edge, lock: Some(lock), from, to },
            What::Regions => Remedy::Section { edge, lock: None, from, to },
            What::Threshold => Remedy::Threshold { edge, from, to },
        }
    }
}

/// Of those that a task waits for, and its own threshold.
pub(super) fn shorter(plan: &Plan, shape: &Shape, verdict: &TaskVerdict, task: usize) -> Vec<Shorter> {
    let spun = verdict.spinning.iter().flat_map(|found| &found.held);
    let suspended = verdict.suspended.iter().flat_map(|found| &found.held);
    let held = verdict.blocking.iter().flat_map(|found| &found.held).chain(spun).chain(suspended);
    let mut users: BTreeSet<_> = held.map(|held| (held.task, held.lock)).collect();
    // Of whom nothing is known, because its budget does not cover its waits, any other user of its locks may be the one.
    if verdict.blocking.is_none() {
        let others = |lock| (0..plan.tasks.len()).map(move |other| (other, lock));
        let others = plan.locks_of(task).into_iter().flat_map(others);
        users.extend(others.filter(|(other, lock)| *other != task && plan.locks_of(*other).contains(lock)));
    }
    let sections = users.into_iter().filter_map(|(user, lock)| sections(plan, shape, user, lock));
    let own = plan.tasks[task].threshold().and_then(|from| {
        let edge = *shape.task_parents[task].first()?;
        let beside = shape.children[plan.edges[edge].parent].iter();
        let tasks = beside.filter(|edge| matches!(plan.edges[**edge].child, Child::Task(_)));
        let toward = tasks.filter_map(|edge| priority(plan, *edge)).max()?;
        Some(Shorter { what: What::Threshold, edge, from, toward })
    });
    let all = sections.chain(own).chain(region(plan, shape, verdict));
    all.filter(|one| one.from != one.toward).collect()
}

/// The longest section of a task with a lock; no shorter than what is nested in it.
fn sections(plan: &Plan, shape: &Shape, user: usize, lock: usize) -> Option<Shorter> {
    let edge = *shape.task_parents[user].first()?;
    let sections = plan.tasks[user].load.as_ref()?.sections();
    let from = sections.iter().filter_map(|section| section.longest_ns(lock)).max()?;
    let toward = sections.iter().filter_map(|section| section.least_ns(lock)).max()?;
    Some(Shorter { what: What::Sections(lock), edge, from, toward })
}

/// The region that a task waits for.
fn region(plan: &Plan, shape: &Shape, verdict: &TaskVerdict) -> Option<Shorter> {
    let by = verdict.kept?.by?;
    let edge = *shape.task_parents[by.task].first()?;
    let whole = plan.tasks[by.task].load.as_ref().map(Load::preemption) == Some(&Preemption::None);
    Some(match by.keeps {
        Keeps::Threshold { priority: from, .. } => {
            Shorter { what: What::Threshold, edge, from, toward: priority(plan, edge)? }
        }
        Keeps::Floating(from) => Shorter { what: What::Regions, edge, from, toward: 0 },
        Keeps::Region(Region { length_ns: from, .. }) => {
            Shorter { what: What::Regions, edge, from, toward: u64::from(!whole) }
        }
    })
}

/// Where there are priorities.
fn priority(plan: &Plan, edge: usize) -> Option<u64> {
    let edge = &plan.edges[edge];
    let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
    policies::position(&policy.edge_params, "priority").map(|at| edge.params[at])
}
