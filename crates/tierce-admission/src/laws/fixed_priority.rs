//! `fixed-priority` passes what it gets to the one child of highest priority; others get what those above them leave, where that is
//! bounded (`leftover_supply.rs`), or NULL. Response times of jobs directly below are exact, down to the first child whose
//! work is not bounded.
//!
//! Tasks with other parents count here with all their work; they may be done sooner. One that comes only while others are spent may
//! come at any time, with work of many jobs: it is not bounded.

use crate::bounds::leftover_supply::Taken;
use crate::bounds::response::Bound;
use crate::demand::jobs::{densest, has_other_parents, parts, requesting, vary};
use crate::demand::overheads::Overheads;
use crate::demand::regions::{Keeps, Kept};
use crate::demand::uncounted_threads::{crowd as crowd_of, of_crowd};
use crate::laws::chain_offsets::{lesser, Ordered};
use crate::laws::known_phases;
use crate::laws::node::{known, less_timers, supplies, Node, COSTS_TAKE_ALL, LESS_COSTS};
use crate::laws::policy::{Laws, Rated};
use crate::share::{self, percent, Share};
use crate::verdict::{Given, NodeVerdict, Origin, Promise};
use std::cmp::Ordering;
use tierce_analysis::offsets::Order;
use tierce_analysis::thresholds::to_last_regions;
use tierce_analysis::{requests, suspension, LastRegion, Response, Supply, Task};
use tierce_guarantee::Kind;
use tierce_plan::policies::{self};
use tierce_plan::{Child, Load, Plan, Shape};

/// Sets that are larger are tested, but responses are not computed one by one.
const RESPONSES_MAX: usize = 1024;

/// A test.
const BY_PRIORITY: &str = "response times under fixed priorities (Lehoczky 1990)";

/// The same where some suspend themselves.
const WITH_SUSPENSION: &str =
    "response times under fixed priorities with self-suspension (Chen, Nelissen & Huang 2016)";

/// The same where some do not always give way.
const WITH_REGIONS: &str =
    "response times under fixed priorities with regions without preemption (Bril, Lukkien & Verhaegh 2009)";

/// The same where some have thresholds.
const WITH_THRESHOLDS: &str = "response times under fixed priorities with preemption thresholds (Wang & Saksena 1999; Keskin, Bril & Lukkien 2010)";

/// The same where works are taken in turn, or jobs come in bursts.
const WITH_REQUESTS: &str =
    "response times under fixed priorities by what so many jobs request (Mok & Chen 1997; Richter 2005)";

/// The same where phases are known.
const WITH_PHASES: &str =
    "the schedule of the longest works at the known phases (Leung & Merrill 1980; Goossens & Devillers 1997)";

/// The same where some spin for locks of other CPUs.
const WITH_SPINNING: &str =
    "response times under fixed priorities with spinning (Gai, Lipari & Di Natale 2001; Burns & Wellings 2013)";

/// The same where some are suspended until they get locks of other CPUs.
const WITH_LOCKS: &str =
    "response times under fixed priorities with waiters that suspend themselves (Lakshmanan, de Niz & Rajkumar 2009; Brandenburg 2014; Chen et al. 2019)";

/// The rule of what those of higher priority leave.
pub const BOUNDED_ABOVE: &str = "bounded higher priorities";

/// The highest first.
pub struct FixedPriority;

impl Laws for FixedPriority {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        Ok(node.edge_param("priority").map_or_else(Vec::new, |at| supplied(node, at)))
    }

    fn gives_anyway(&self) -> bool {
        true
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        let at = policies::position(&node.policy.edge_params, "priority");
        by_priority(node, |index| at.map_or(0, |at| node.plan.edges[index].params[at]), rates);
    }

    /// Equals without a quantum wait for each other, so all are late if together they ask for too much.
    fn is_limited_to_its_rate(&self, node: &Rated, edge: usize) -> bool {
        let at = |name| policies::position(&node.policy.edge_params, name);
        let (Some(priority), quantum) = (at("priority"), at("quantum")) else { return false };
        let params = |edge: usize| &node.plan.edges[edge].params;
        let waits = |other: usize| {
            let is_task = matches!(node.plan.edges[other].child, Child::Task(_));
            is_task && quantum.is_none_or(|quantum| params(other)[quantum] == 0)
        };
        let own = params(edge)[priority];
        node.edges.iter().filter(|other| **other != edge).all(|other| {
            match params(*other)[priority].cmp(&own) {
                Ordering::Less => true,
                Ordering::Equal => (node.asks)(*other) && waits(*other) && waits(edge),
                Ordering::Greater => (node.asks)(*other),
            }
        })
    }

    fn conserves_work(&self) -> bool {
        true
    }

    fn responses(
        &self,
        node: &Node,
        crowd: &dyn Fn(usize) -> Option<u64>,
        verdict: &mut NodeVerdict,
    ) -> Vec<(usize, Bound)> {
        node.edge_param("priority").map_or_else(Vec::new, |at| responses(node, at, crowd(at), verdict))
    }
}

/// What those of larger priority leave; equals wait for each other.
pub fn by_priority(node: &Rated, priority: impl Fn(usize) -> u64, rates: &mut [Option<Share>]) {
    let mut order = node.edges.to_vec();
    order.sort_by_key(|index| std::cmp::Reverse(priority(*index)));
    let mut above = share::zero();
    for equals in order.chunk_by(|a, b| priority(*a) == priority(*b)) {
        above = equals.iter().fold(above, |sum, index| share::add(&sum, &(node.ask)(*index)));
        for index in equals {
            let left = node.supply - &above + (node.ask)(*index);
            rates[*index] = Some(left.clamp(share::zero(), node.supply.clone()));
        }
    }
}

fn supplied(node: &Node, at: usize) -> Vec<Given> {
    let Node { plan, index, edges, received, overheads, asked, taken, .. } = *node;
    let name = node.name();
    let priority = |edge: &usize| plan.edges[*edge].params[at];
    let crowd = of_crowd(plan, index, edges, at);
    let mut order: Vec<_> = (0..edges.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(priority(&edges[*place])));
    let mut given = vec![Given::default(); edges.len()];
    let mut above = Some(Taken::nothing()); // what those of higher priority take, where that is bounded
    let mut first = true;
    for equals in order.chunk_by(|a, b| priority(&edges[*a]) == priority(&edges[*b])) {
        above = above.filter(|_| crowd.is_none_or(|crowd| crowd < priority(&edges[equals[0]])));
        for place in equals {
            let edge = edges[*place];
            if !asked(edge) {
                continue;
            }
            given[*place] = match &above {
                Some(_) if first && equals.len() == 1 => highest(name, edge, received, overheads),
                Some(above) if !first && equals.len() == 1 && overheads.is_none() => {
                    left_over(name, above, received)
                }
                Some(_) if equals.len() == 1 => Promise::nothing(format!(
                    "with `[machine] costs` `{name}` guarantees nothing to lower priorities"
                )),
                _ => {
                    let others = order.iter().map(|place| edges[*place]).filter(|other| *other != edge);
                    Promise::nothing(unlimited(node, at, edge, others, crowd))
                }
            };
        }
        let own = priority(&edges[equals[0]]);
        let others_ask = edges.iter().any(|edge| priority(edge) < own && asked(*edge));
        for place in equals.iter().filter(|_| others_ask) {
            above = above.and_then(|above| Some(above.and(&taken(edges[*place])?)));
        }
        first = false;
    }
    given
}

/// Who may take everything from the child below an edge; `others`: from the highest priority down.
fn unlimited(
    node: &Node,
    at: usize,
    edge: usize,
    mut others: impl Iterator<Item = usize>,
    crowd: Option<u64>,
) -> String {
    let Node { plan, index, taken, .. } = *node;
    let (name, priority) = (node.name(), |edge: usize| plan.edges[edge].params[at]);
    let (own, this) = (priority(edge), plan.item_name(plan.edges[edge].child));
    if let (Some(theirs), Some(who)) = (crowd.filter(|theirs| *theirs >= own), crowd_of(plan, index)) {
        return format!("{who}, with priority {theirs}, and `{this}` has {own}");
    }
    let unlimited = others.find(|other| {
        let theirs = priority(*other);
        theirs == own || (theirs > own && taken(*other).is_none())
    });
    let Some(other) = unlimited else {
        return format!("in `{name}` those of higher priority may take everything");
    };
    let (child, theirs) = (plan.item_name(plan.edges[other].child), priority(other));
    match theirs == own {
        true => {
            format!("in `{name}`, `{child}` has the same priority as `{this}`, {own}: equals run first come, first served")
        }
        false => {
            let bounded = match plan.edges[other].child {
                Child::Task(task) => {
                    plan.tasks[task].load.as_ref().is_some_and(|load| densest(load, 0).is_some())
                }
                _ => false,
            };
            let takes = if bounded { "no bound on what it takes" } else { "no limit" };
            format!("in `{name}`, `{child}` has priority {theirs} and {takes}, and `{this}` has {own}")
        }
    }
}

/// The child of highest priority gets what its node gets.
fn highest(name: &str, edge: usize, received: &[Promise], overheads: &Overheads) -> Given {
    let toll = match known(overheads.is_none(), || overheads.beside(edge)) {
        Ok(toll) => toll,
        Err(unknown) => return Promise::nothing(unknown),
    };
    let pass = |(place, promise): (usize, &Promise)| {
        let because = format!("{}; highest priority below `{name}`", promise.because);
        let guarantee = match &toll {
            Some(toll) => toll.of(&promise.guarantee)?,
            None => promise.guarantee.clone(),
        };
        let (origin, formula) = (Origin::Promise(place), toll.as_ref().map_or("", |_| LESS_COSTS));
        let from = [&promise.guarantee];
        Some(Promise::new(guarantee, because).by(origin, &from, "highest priority", formula))
    };
    let passed: Vec<_> = received.iter().enumerate().filter_map(pass).collect();
    if passed.is_empty() {
        return Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}"));
    }
    passed.into()
}

/// What those of higher priority leave of what their node gets.
fn left_over(name: &str, above: &Taken, received: &[Promise]) -> Given {
    let of = |(place, promise): (usize, &Promise)| {
        let guarantee = above.leaves(&promise.guarantee)?;
        let because = format!(
            "{}; those of higher priority below `{name}` take {} of a CPU at most, by their budgets and loads",
            promise.because,
            percent(&above.rate)
        );
        let formula = if guarantee.kind() == Kind::Ps {
            "PS (s − ΣU)"
        } else {
            "PSBE (s − ΣU) (δ + Σ C·(1 − U))"
        };
        let from = [&promise.guarantee];
        Some(Promise::new(guarantee, because).by(Origin::Promise(place), &from, BOUNDED_ABOVE, formula))
    };
    let left: Vec<_> = received.iter().enumerate().filter_map(of).collect();
    if left.is_empty() && received[0].guarantee.kind() == Kind::Null {
        return Promise::nothing(format!("`{name}` has no guarantee: {}", received[0].because));
    }
    if left.is_empty() {
        return Promise::nothing(format!(
            "those of higher priority below `{name}` may take all that it gets"
        ));
    }
    left.into()
}

/// The tasks directly below a node down to the first level whose work is not bounded, the highest priority first.
#[derive(Default)]
struct Known {
    members: Vec<usize>,
    set: Vec<Task>,
    /// The number of its level, and for how long it suspends itself.
    levels: Vec<u32>,
    suspensions: Vec<u64>,
    /// Of each level.
    priorities: Vec<u64>,
}

fn known_below(node: &Node, at: usize, crowd: Option<u64>) -> Known {
    let Node { plan, shape, index, edges, received, overheads, .. } = *node;
    let priority = |edge: &usize| plan.edges[*edge].params[at];
    let mut order = edges.to_vec();
    order.sort_by_key(|edge| std::cmp::Reverse(priority(edge)));
    // Where jobs suspend themselves: a supply is sure only while it is asked for.
    let may_suspend = supplies(received).any(|(_, supply)| supply == Supply::WHOLE);
    let mut known = Known::default();
    for (level, equals) in order.chunk_by(|a, b| priority(a) == priority(b)).enumerate() {
        let crowded = crowd.is_some_and(|crowd| crowd >= priority(&equals[0]));
        // How often equals with a quantum switch is not counted.
        let takes_turns =
            |edge: &usize| node.edge_param("quantum").is_some_and(|at| plan.edges[*edge].params[at] > 0);
        let crowded = crowded || (!overheads.is_none() && equals.len() > 1 && equals.iter().any(takes_turns));
        let jobs = equals.iter().map(|edge| bounded(plan, shape, *edge, overheads));
        let Some(jobs) = jobs.collect::<Option<Vec<_>>>().filter(|_| !crowded) else {
            break; // whoever is of this level or below may wait for ever
        };
        if !may_suspend && jobs.iter().flatten().any(|(.., suspension_ns)| *suspension_ns > 0) {
            break;
        }
        known.priorities.push(priority(&equals[0]));
        for (task, job, suspension_ns) in jobs.into_iter().flatten() {
            known.members.push(task);
            let parts = plan.tasks[task].load.as_ref().map_or(1, parts);
            known.set.push(overheads.job_in_parts(index, job, parts));
            known.levels.push(level as u32);
            known.suspensions.push(suspension_ns);
        }
    }
    known
}

/// Responses by the task's index, as far as those before each are known.
fn responses(node: &Node, at: usize, crowd: Option<u64>, verdict: &mut NodeVerdict) -> Vec<(usize, Bound)> {
    let Node { plan, edges, received, overheads, .. } = *node;
    let Known { members, set, levels, suspensions, priorities } = known_below(node, at, crowd);
    if set.is_empty() || set.len() > RESPONSES_MAX {
        return Vec::new();
    }
    if members.iter().any(|task| overheads.locks.suspended(*task).is_some()) {
        return with_locks(node, &members);
    }
    // Timers go off in the middle of everybody.
    let timers = match overheads.timers(edges) {
        Ok(timers) => timers,
        Err(unknown) => {
            verdict.open.push(unknown);
            return Vec::new();
        }
    };
    let timer_jobs = timers.as_jobs();
    if suspensions.iter().any(|suspension_ns| *suspension_ns > 0) {
        return with_suspensions(&timer_jobs, &members, &set, &levels, &suspensions);
    }
    if members.iter().any(|task| overheads.locks.kept(*task).is_some()) {
        let left = less_timers(received, &timers);
        return with_regions(&Node { received: &left, ..*node }, &members, &set, &levels, &priorities);
    }
    if let Some(found) = known_phases::responses(node, &members, &set, Order::FixedPriority(&levels)) {
        let bound = |(at, (response, exact))| Bound {
            response,
            test: WITH_PHASES,
            exact: exact && is_alone(&levels, at),
        };
        return members.into_iter().zip(found.into_iter().enumerate().map(bound)).collect();
    }
    let ordered = Ordered { members: &members, set: &set, levels: &levels };
    let found = match members.iter().any(|task| plan.tasks[*task].load.as_ref().is_some_and(vary)) {
        true => with_requests(node, &timer_jobs, &members, &set, &levels),
        false => by_levels(node, &timer_jobs, &ordered),
    };
    lesser(node, &ordered, found)
}

/// By the longest works and least distances of jobs.
fn by_levels(node: &Node, timers: &[Task], ordered: &Ordered) -> Vec<(usize, Bound)> {
    let Node { plan, edges, received, overheads, .. } = *node;
    let Ordered { members, set, levels } = *ordered;
    let jobs: Vec<_> = timers.iter().chain(set).copied().collect();
    let all_levels: Vec<_> = timers.iter().map(|_| 0).chain(levels.iter().map(|level| level + 1)).collect();
    let mut analysis = tierce_analysis::FixedPriority::new();
    let best = best_of(set, received, |supply| {
        analysis.responses_by_level(&jobs, &all_levels, supply)[timers.len()..].to_vec()
    });
    let Some((supply, best)) = best else { return Vec::new() };
    let punctual = |task: usize| !matches!(plan.tasks[task].load, Some(Load::Phases(_) | Load::Triggered(_)));
    // Phases that are known may keep jobs apart.
    let precise = supply == Supply::WHOLE
        && overheads.is_none()
        && !plan.machine.phases_known
        && edges.iter().all(|edge| !has_other_parents(plan, node.shape, *edge))
        && members.iter().all(|task| punctual(*task));
    let never_waits = |task: usize| overheads.locks.most_ns(task) == Some(0);
    let spins = members.iter().any(|task| overheads.locks.spin_ns(*task) > 0);
    let alone = |at: usize| is_alone(levels, at) && never_waits(members[at]) && !spins;
    let test = if spins { WITH_SPINNING } else { BY_PRIORITY };
    let bound = |(at, response)| Bound { response, test, exact: precise && alone(at) };
    members.iter().copied().zip(best.into_iter().enumerate().map(bound)).collect()
}

/// No other task has its priority.
fn is_alone(levels: &[u32], at: usize) -> bool {
    levels.iter().filter(|level| **level == levels[at]).count() == 1
}

/// In which of the supplies most deadlines are met, and the responses there.
fn best_of(
    set: &[Task],
    received: &[Promise],
    mut responses: impl FnMut(&Supply) -> Vec<Response>,
) -> Option<(Supply, Vec<Response>)> {
    let found = supplies(received).map(|(_, supply)| (supply, responses(&supply)));
    found.max_by_key(|(_, found)| {
        found.iter().zip(set).filter(|(response, task)| response.meets(task.deadline_ns)).count()
    })
}

/// Whom a job finds in a region is part of its blocking, since that may be one who is not in the set. `priorities`: of each level.
fn with_regions(
    node: &Node,
    members: &[usize],
    set: &[Task],
    levels: &[u32],
    priorities: &[u64],
) -> Vec<(usize, Bound)> {
    let kept = |task: &usize| node.overheads.locks.kept(*task).unwrap_or_default();
    let last = |(task, own): (&usize, &u32)| match kept(task) {
        Kept { threshold: Some((threshold, work_ns)), .. } => {
            let level = priorities.partition_point(|priority| *priority > threshold) as u32;
            LastRegion { length_ns: work_ns, level: level.min(*own) }
        }
        Kept { own, .. } => LastRegion { length_ns: own.last_ns, level: 0 },
    };
    let last: Vec<_> = members.iter().zip(levels).map(last).collect();
    let found = best_of(set, node.received, |supply| to_last_regions(set, levels, &last, supply));
    let thresholds = |task: &usize| {
        let Kept { by, threshold, .. } = kept(task);
        threshold.is_some() || by.is_some_and(|by| matches!(by.keeps, Keeps::Threshold { .. }))
    };
    let test = if members.iter().any(thresholds) { WITH_THRESHOLDS } else { WITH_REGIONS };
    let bound = |response| Bound { response, test, exact: false };
    let found = found.into_iter().flat_map(|(_, found)| found);
    members.iter().copied().zip(found.map(bound)).collect()
}

/// Some are suspended until they get locks of other CPUs: all of that is known of their CPUs together, if each is theirs.
fn with_locks(node: &Node, members: &[usize]) -> Vec<(usize, Bound)> {
    let whole = supplies(node.received).any(|(_, supply)| supply == Supply::WHOLE);
    let found = members.iter().filter(|_| whole).filter_map(|task| {
        let response = node.overheads.locks.suspended(*task)?.response();
        Some((*task, Bound { response, test: WITH_LOCKS, exact: false }))
    });
    found.collect()
}

/// Some suspend themselves; on a whole CPU.
fn with_suspensions(
    timers: &[Task],
    members: &[usize],
    set: &[Task],
    levels: &[u32],
    suspensions: &[u64],
) -> Vec<(usize, Bound)> {
    let all: Vec<_> = timers.iter().chain(set).copied().collect();
    let all_levels: Vec<_> = timers.iter().map(|_| 0).chain(levels.iter().map(|level| level + 1)).collect();
    let all_suspensions: Vec<_> = timers.iter().map(|_| 0).chain(suspensions.iter().copied()).collect();
    let found = suspension::fixed_priority(&all, &all_suspensions, &all_levels);
    let bound = |response: &Response| Bound { response: *response, test: WITH_SUSPENSION, exact: false };
    members.iter().copied().zip(found[timers.len()..].iter().map(bound)).collect()
}

/// By what jobs request that come one after the other.
fn with_requests(
    node: &Node,
    timers: &[Task],
    members: &[usize],
    set: &[Task],
    levels: &[u32],
) -> Vec<(usize, Bound)> {
    let load = |task: &usize| node.plan.tasks[*task].load.as_ref();
    let jobs = members.iter().zip(set).map(|(task, job)| requesting(load(task), *job));
    let all = timers.iter().map(|timer| requesting(None, *timer)).chain(jobs);
    let Some(all) = all.collect::<Option<Vec<_>>>() else { return Vec::new() };
    let levels: Vec<_> = timers.iter().map(|_| 0).chain(levels.iter().map(|level| level + 1)).collect();
    let found = best_of(set, node.received, |supply| {
        requests::fixed_priority(&all, &levels, supply)[timers.len()..].to_vec()
    });
    let bound = |response| Bound { response, test: WITH_REQUESTS, exact: false };
    let found = found.into_iter().flat_map(|(_, found)| found);
    members.iter().copied().zip(found.map(bound)).collect()
}

/// The task below an edge, its jobs and how long each suspends itself, `Some(None)` without a load; `None`: how much comes through the
/// edge is not bounded.
fn bounded(
    plan: &Plan,
    shape: &Shape,
    edge: usize,
    overheads: &Overheads,
) -> Option<Option<(usize, Task, u64)>> {
    let Child::Task(task) = plan.edges[edge].child else { return None };
    if plan.tasks[task].load.is_none() {
        return Some(None);
    }
    let conditional = plan.edges[edge].when_spent;
    let stays = !conditional && !shape.moves(plan, edge); // else it may come with work that has waited elsewhere
    let counted = stays && (overheads.is_none() || !has_other_parents(plan, shape, edge));
    let (job, suspension_ns) = overheads.locks.suspending(plan, task, 0).filter(|_| counted)?;
    Some(Some((task, job, suspension_ns)))
}
