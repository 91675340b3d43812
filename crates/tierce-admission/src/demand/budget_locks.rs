//! Locks that the budgets above their users know of (HSRP: Davis & Burns, RTSS 2006; SIRAP: Behnam, Shin, Nolte & Nolin, EMSOFT 2007), in a
//! `reservation` node in the order of priorities: rule 15 of policy/reservation.c.
//!
//! While a job has such a lock no other task of its own node runs, and its budget has the lock's ceiling, the largest priority of a budget with
//! users. So nobody finds the lock taken, and the costs are these. X is the longest section of HSRP below a budget Q with period T, S the longest
//! of SIRAP; of sections within each other the outer one counts.
//!
//! 1. **Who is overtaken.** A budget waits for one section of budgets of lower priority whose ceiling is not below its own priority: that began before
//!    the first budget of larger or equal priority was wanted, and a second one begins only when none is.
//! 2. **What others take.** The sum of what a budget takes in successive periods is that of its budgets, and what the last one overruns: what is
//!    overrun in one is paid back in the next. So it takes up to X more of any window than one without locks.
//! 3. **What it brings.** In each period there is Q − X − S at least: X was paid back, S given up for a section that did not fit. In any window at most
//!    X was had before it, and a budget gives up S at most once: so with Q' = Q − S there is U'·(t − 2·(T − Q')) − X at least, U' = Q'/T.
//! 4. **Tasks of one node** wait once for a section of a less urgent one.
//!
//! A budget whose only task needs no more for each job ends within no section, if it comes in time; which rests on 2 with X.

use crate::demand::jobs::{budgets_of_its_own, job_and_suspension, BudgetParams};
use crate::demand::spin_locks::live_user;
use std::collections::{BTreeMap, BTreeSet};
use tierce_analysis::locks::{Blocking, Held};
use tierce_guarantee::{ratio, whole, Guarantee, Kind};
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::{policies, show_time, Child, Load, Phase, Plan, Protocol, Section, Shape};

/// What locks are to a budget.
#[derive(Clone, Debug, Default)]
pub struct BudgetLocks {
    /// It may be overrun by so much.
    pub overrun_ns: u64,
    /// So much of it may be given up.
    pub skipped_ns: u64,
    /// The section that it may have to wait for.
    pub waits_for: Option<Held>,
    /// How much more others of larger or equal priority may take, once.
    pub others_overrun_ns: u64,
}

impl BudgetLocks {
    /// Beyond the budgets of others: what comes before a budget.
    pub fn blocking_ns(&self) -> u64 {
        self.waits_for.map_or(0, |held| held.length_ns).saturating_add(self.others_overrun_ns)
    }

    /// What is sure of a budget, where some of it may be missing: of each period, and of any window.
    pub fn sure(&self, budget_ns: u64, period_ns: u64) -> Option<[Option<Guarantee>; 2]> {
        let lost_ns = self.overrun_ns.saturating_add(self.skipped_ns);
        if lost_ns == 0 {
            return None;
        }
        let kept_ns = budget_ns.saturating_sub(self.skipped_ns);
        let each = budget_ns.saturating_sub(lost_ns);
        let each = Guarantee::reservation(Kind::Resbs, whole(each), whole(period_ns)).filter(|_| each > 0);
        let share = ratio(kept_ns, period_ns.max(1));
        let error = &share * whole(2 * period_ns.saturating_sub(kept_ns)) + whole(self.overrun_ns);
        Some([each, Guarantee::psbe(share, error.ceil()).filter(|_| kept_ns > 0)])
    }

    /// " (for 1ms `low` has lock `bus`, and others may overrun by 2ms)".
    pub fn words(&self, plan: &Plan) -> String {
        let held = self.waits_for.map(|held| {
            let (task, lock) = (&plan.tasks[held.task].name, &plan.locks[held.lock].name);
            format!("for {} `{task}` may have lock `{lock}`", show_time(held.length_ns))
        });
        let more = (self.others_overrun_ns > 0)
            .then(|| format!("others may overrun by {}", show_time(self.others_overrun_ns)));
        let words: Vec<_> = held.into_iter().chain(more).collect();
        if words.is_empty() {
            return String::new();
        }
        format!(" ({})", words.join(", and "))
    }
}

/// A section that is in no other one.
struct Outer {
    /// The budget below which it is.
    edge: usize,
    held: Held,
    /// The priority that the budget has meanwhile.
    ceiling: u64,
}

/// Of each budget that locks concern what they are to it; or why nothing is known.
pub type Found = BTreeMap<usize, Result<BudgetLocks, String>>;

/// Of all budgets of a plan.
pub fn found(plan: &Plan, shape: &Shape) -> Found {
    let mut found = Found::new();
    if !plan.locks.iter().any(|lock| lock.protocol.is_between_budgets()) {
        return found;
    }
    let outer = outer_sections(plan, shape);
    let nodes: BTreeSet<_> = outer.iter().map(|section| plan.edges[section.edge].parent).collect();
    for node in nodes {
        let why = trouble(plan);
        let Some(at) = ServerRules::of(plan, node).priority else { continue };
        let priority = |edge: usize| plan.edges[edge].params[at];
        let longest = |edge: usize, protocol| longest_ns(plan, shape, edge, protocol);
        let overruns: Vec<_> = shape.children[node]
            .iter()
            .map(|edge| (*edge, priority(*edge), longest(*edge, Protocol::Hsrp)))
            .filter(|(.., ns)| *ns > 0)
            .collect();
        for edge in shape.children[node].iter().copied() {
            let own = priority(edge);
            let behind = outer.iter().filter(|one| {
                plan.edges[one.edge].parent == node && priority(one.edge) < own && one.ceiling >= own
            });
            let others = overruns.iter().filter(|(other, priority, _)| *other != edge && *priority >= own);
            let known = |protocol| if covers(plan, edge) { 0 } else { longest(edge, protocol) };
            let locks = BudgetLocks {
                overrun_ns: known(Protocol::Hsrp),
                skipped_ns: known(Protocol::Sirap),
                waits_for: behind.map(|one| one.held).max_by_key(|held| held.length_ns),
                others_overrun_ns: others.fold(0, |sum: u64, (.., ns)| sum.saturating_add(*ns)),
            };
            found.insert(edge, why.clone().map_or(Ok(locks), Err));
        }
    }
    found
}

/// The longest section of a protocol below a budget: HSRP's may overrun it, whether it comes in time or not.
pub fn longest_ns(plan: &Plan, shape: &Shape, edge: usize, protocol: Protocol) -> u64 {
    if !plan.locks.iter().any(|lock| lock.protocol == protocol) {
        return 0;
    }
    let longest = |task: usize| {
        let sections = plan.tasks[task].load.as_ref().map_or(&[][..], |load| load.sections());
        let own = sections.iter().filter(|section| plan.locks[section.lock].protocol == protocol);
        own.map(|section| section.length_ns).max().unwrap_or(0)
    };
    match plan.edges[edge].child {
        Child::Task(task) => longest(task),
        // Users are directly below a budget, or below such a node.
        Child::Node(node) if is_fixed_priority(plan, node) => {
            below(plan, shape, node).map(longest).max().unwrap_or(0)
        }
        Child::Node(_) | Child::Set(_) => 0,
    }
}

fn is_fixed_priority(plan: &Plan, node: usize) -> bool {
    policies::by_number(plan.nodes[node].policy).is_some_and(|policy| policy.name == "fixed-priority")
}

/// Tasks directly below a node.
fn below<'a>(plan: &'a Plan, shape: &'a Shape, node: usize) -> impl Iterator<Item = usize> + 'a {
    shape.children[node].iter().filter_map(|edge| match plan.edges[*edge].child {
        Child::Task(task) => Some(task),
        _ => None,
    })
}

/// Of each task directly below a node with users, in which others have such locks: for how long it waits, once; or why nothing is known.
pub fn beside_users(plan: &Plan, shape: &Shape) -> Vec<(usize, Result<Blocking, String>)> {
    let mut waits = Vec::new();
    if !plan.locks.iter().any(|lock| lock.protocol.is_between_budgets()) {
        return waits;
    }
    let outer = outer_sections(plan, shape);
    let node = |task: usize| plan.edges[shape.task_parents[task][0]].parent;
    let nodes: BTreeSet<_> = outer
        .iter()
        .map(|one| node(one.held.task))
        .filter(|node| outer.iter().all(|one| plan.edges[one.edge].parent != *node))
        .collect();
    for above in nodes {
        let tasks: Vec<_> = below(plan, shape, above).collect();
        let why = trouble(plan).or_else(|| suspending(plan, &tasks)).or_else(|| other_protocol(plan, &tasks));
        for task in tasks {
            let urgency = plan.urgency(shape, task);
            let less = outer
                .iter()
                .filter(|one| node(one.held.task) == above && plan.urgency(shape, one.held.task) > urgency);
            let held = less.map(|one| one.held).max_by_key(|held| held.length_ns);
            let blocking = Blocking {
                most_ns: Some(held.map_or(0, |held| held.length_ns)),
                held: held.into_iter().collect(),
            };
            waits.push((task, why.clone().map_or(Ok(blocking), Err)));
        }
    }
    waits
}

fn outer_sections(plan: &Plan, shape: &Shape) -> Vec<Outer> {
    let mut ceilings = vec![0; plan.locks.len()];
    for task in 0..plan.tasks.len() {
        let locks = plan.locks_of(task);
        let priority = locks.first().and_then(|_| plan.budget_priority(shape, task)).unwrap_or(0);
        locks.into_iter().for_each(|lock| ceilings[lock] = priority.max(ceilings[lock]));
    }
    let mut outer = Vec::new();
    for (task, about) in plan.tasks.iter().enumerate() {
        let sections = about.load.as_ref().map_or(&[][..], |load| load.sections());
        let known = sections.iter().filter(|section| plan.locks[section.lock].protocol.is_between_budgets());
        let mut known = known.peekable();
        let Some(edge) = known.peek().and_then(|_| plan.budget_above(shape, task)) else { continue };
        outer.extend(known.map(|section| {
            let held = Held { task, lock: section.lock, length_ns: section.length_ns, times: 1 };
            Outer { edge, held, ceiling: highest(section, &ceilings) }
        }));
    }
    outer
}

/// Of the locks of a section and of those within it.
fn highest(section: &Section, ceilings: &[u64]) -> u64 {
    let inner = section.sections.iter().map(|inner| highest(inner, ceilings));
    inner.fold(ceilings[section.lock], u64::max)
}

/// The only task of a budget needs no more for each job.
fn covers(plan: &Plan, edge: usize) -> bool {
    let about = &plan.edges[edge];
    let Child::Task(task) = about.child else { return false };
    let rules = ServerRules::of(plan, about.parent);
    let Some(params) = BudgetParams::of_node(plan, about.parent).filter(|_| rules.begins_with_a_wake_up())
    else {
        return false;
    };
    let job = plan.tasks[task].load.as_ref().and_then(|load| job_and_suspension(load, 0));
    job.is_some_and(|(job, suspension_ns)| {
        suspension_ns == 0 && budgets_of_its_own(&job, &params.demand(about)) == Some(1)
    })
}

/// Why nothing is known of any of them.
fn trouble(plan: &Plan) -> Option<String> {
    if plan.machine.costs != Default::default() {
        return Some("how `[machine] costs` add to what a budget is overrun by is not known".into());
    }
    [Protocol::Hsrp, Protocol::Sirap].into_iter().find_map(|protocol| live_user(plan, protocol))
}

fn suspending(plan: &Plan, tasks: &[usize]) -> Option<String> {
    let suspends = |load: &Load| matches!(load, Load::Phases(load) if load.phases.iter().any(|phase| matches!(phase, Phase::Suspend(_))));
    let task = tasks.iter().find(|task| plan.tasks[**task].load.as_ref().is_some_and(suspends))?;
    Some(format!("`{}` suspends itself: others may get locks meanwhile", plan.tasks[*task].name))
}

/// Who has a lock of another protocol may run in place of others.
fn other_protocol(plan: &Plan, tasks: &[usize]) -> Option<String> {
    let used = |task: &usize| plan.locks_of(*task);
    let lock = tasks.iter().flat_map(used).find(|lock| !plan.locks[*lock].protocol.is_between_budgets())?;
    let (name, protocol) = (&plan.locks[lock].name, plan.locks[lock].protocol.name());
    Some(format!("beside users of locks that their budget knows of there is lock `{name}` with protocol \"{protocol}\""))
}
