//! Jobs directly below a node: do they meet their deadlines in what the node is promised, and how long can each take?
//!
//! - `edf`: the demand of all jobs in every window is at most what is sure to be supplied; response times after Spuri.
//! - `fixed-priority`: exact response times, down to the first child whose work is not bounded.
//!
//! Tasks with other parents count here with all their work; they may be done sooner. One that comes only while others are spent may
//! come at any time, with work of many jobs: it is not bounded.

use crate::admission::{Excess, Failure, Mend, NodeVerdict};
use crate::exact::{fraction, percent};
use crate::laws::{comes_last, job};
use crate::model::{Child, Load, Plan};
use crate::overheads::Overheads;
use crate::policies;
use crate::promises::{of_crowd, Promise, Promises};
use crate::several::{self, Refusal, Several};
use crate::slower;
use crate::structure::Shape;
use crate::units::show_time;
use std::collections::BTreeMap;
use tierce_analysis::{Demand, Edf, FixedPriority, Response, Supply, Task};

/// Sets that are larger are tested, but responses are not computed one by one.
const RESPONSES_MAX: usize = 64;

/// Nodes with more jobs or budgets are not looked through for the one whose reduction mends them.
pub const MENDED_MAX: usize = 32;

/// What the second look at deadlines rests on, once it could be taken.
pub const ONLY_UTILISATION: &str = "deadlines below periods were only tested by utilisation";

/// What is known of the longest response of a task, from its nominal release.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// No job takes longer.
    pub response: Response,
    /// What says so.
    pub test: &'static str,
    /// With some phases, jitter and works of the tasks some job takes as long.
    pub exact: bool,
}

/// Tests that give bounds.
pub const BY_PRIORITY: &str = "response times under fixed priorities (Lehoczky 1990)";
const BY_DEADLINE: &str =
    "the demand of every window, and response times of earliest deadline first (Spuri 1996)";

/// For each task of the plan what the node above it says of its longest response, where that is known; for nodes that several CPUs
/// run why they say no more.
pub fn test(
    plan: &Plan,
    shape: &Shape,
    promises: &Promises,
    verdicts: &mut [NodeVerdict],
    overheads: &Overheads,
) -> (Vec<Option<Bound>>, BTreeMap<usize, Refusal>) {
    let mut bounds: Vec<Option<Bound>> = vec![None; plan.tasks.len()];
    let mut refused = BTreeMap::new();
    for (index, verdict) in verdicts.iter_mut().enumerate() {
        let received = &promises.nodes[index];
        let Some(policy) = policies::by_number(plan.nodes[index].policy) else { continue };
        let crowd = |at: usize| of_crowd(plan, index, &shape.children[index], at);
        if shape.at_once(plan, index) {
            let (found, refusal) = Several { plan, shape, overheads, promises, index }.test(crowd);
            refused.extend(refusal.map(|refusal| (index, refusal)));
            found.into_iter().for_each(|(task, bound)| bounds[task] = Some(bound));
        }
        if shape.at_once(plan, index) || supplies(received).next().is_none() {
            continue;
        }
        let found = if policies::by_deadline(policy) {
            let at = policies::position(&policy.edge_params, "deadline");
            if at.and_then(crowd).is_some_and(|deadline| deadline > 0) {
                continue; // any number of threads with deadlines
            }
            by_deadline(plan, shape, index, at, received, verdict, overheads)
        } else if let Some(at) = policies::priority(policy) {
            by_priority(plan, shape, index, at, crowd(at), received, overheads)
        } else {
            Vec::new()
        };
        for (task, bound) in found.into_iter().filter(|(_, bound)| bound.response != Response::TooLong) {
            let single = shape.task_parents[task].len() == 1;
            bounds[task] = shorter(bounds[task], Bound { exact: bound.exact && single, ..bound });
        }
    }
    for (task, bound) in bounds.iter_mut().enumerate() {
        let alone = || several::alone(plan, shape, promises, overheads, task);
        *bound = bound.or_else(alone);
    }
    (bounds, refused)
}

/// The better of two bounds.
pub fn shorter(known: Option<Bound>, other: Bound) -> Option<Bound> {
    let ns = |bound: &Bound| bound.response.ns().unwrap_or(u64::MAX);
    known.into_iter().chain([other]).min_by_key(ns)
}

fn supplies(received: &[Promise]) -> impl Iterator<Item = (&Promise, Supply)> {
    let sure = |guarantee| Supply::of(guarantee).or_else(|| Supply::of(&slower::until_deadlines(guarantee)?));
    received.iter().filter_map(move |promise| Some((promise, sure(&promise.guarantee)?)))
}

/// Responses by the task's index; what fails goes to the verdict.
fn by_deadline(
    plan: &Plan,
    shape: &Shape,
    index: usize,
    at: Option<usize>,
    received: &[Promise],
    verdict: &mut NodeVerdict,
    overheads: &Overheads,
) -> Vec<(usize, Bound)> {
    let edges = &shape.children[index];
    if !overheads.is_none() && edges.iter().any(|edge| moves(plan, shape, *edge)) {
        verdict.open.push(MOVES.into());
        return Vec::new();
    }
    let mut jobs: Vec<(usize, usize, Task)> = Vec::new(); // edge, task
    for edge in edges {
        let own_ns = at.map_or(0, |at| plan.edges[*edge].params[at]);
        if comes_last(plan, &plan.edges[*edge], own_ns) {
            continue;
        }
        let about = &plan.edges[*edge];
        let Child::Task(task) = about.child else { return Vec::new() }; // nobody knows how much it asks for
        if about.when_spent {
            return Vec::new();
        }
        let load = plan.tasks[task].load.as_ref();
        let Some(found) = load.and_then(|load| job(load, own_ns)) else { return Vec::new() };
        jobs.push((*edge, task, overheads.job(index, found)));
    }
    let set: Vec<_> = jobs.iter().map(|(_, _, task)| *task).collect();
    if set.is_empty() {
        return Vec::new();
    }
    let mut edf = Edf::new();
    let mut first = None;
    let met = supplies(received).find(|(promise, supply)| {
        let found = edf.demand(&set, supply);
        first.get_or_insert(((*promise).clone(), *supply, found));
        found == Demand::Met
    });
    if let (None, Some((.., Demand::TooLong))) = (&met, &first) {
        verdict.open.push("too many windows would have to be looked at to test the deadlines".into());
    }
    let (supply, anywhere) = match (met, first) {
        (Some((promise, supply)), _) => (supply, Supply::of(&promise.guarantee).is_some()),
        (None, Some((promise, supply, found))) => {
            if verdict.failures.is_empty() && promise.guarantee.share() < tierce_guarantee::whole(1) {
                let extra_ns = overheads.switch_ns(index).saturating_mul(2);
                verdict.failures.extend(failure(&jobs, &promise, &supply, found, extra_ns));
            }
            (supply, Supply::of(&promise.guarantee).is_some())
        }
        (None, None) => return Vec::new(),
    };
    verdict.open.retain(|open| open != ONLY_UTILISATION);
    // Tasks announce the deadlines of their loads: then the shorter ones of their edges are of use to nobody.
    let announced =
        |task: usize| plan.tasks[task].load.as_ref().and_then(Load::deadline_ns).unwrap_or(u64::MAX);
    let as_tested = jobs.iter().all(|(_, task, job)| [u64::MAX, job.deadline_ns].contains(&announced(*task)));
    let mut found = vec![Response::TooLong; set.len()];
    if set.len() <= RESPONSES_MAX && as_tested && anywhere {
        found.copy_from_slice(edf.responses(&set, &supply));
    }
    let all_met = verdict.failures.is_empty() && edf.schedulable(&set, &supply);
    let bound = |(job, response): (&(usize, usize, Task), Response)| {
        let deadline_ns = if as_tested { job.2.deadline_ns } else { announced(job.1).max(job.2.deadline_ns) };
        let within = |ns: u64| Response::Within(ns.min(deadline_ns));
        let response = if all_met { within(response.ns().unwrap_or(u64::MAX)) } else { response };
        (job.1, Bound { response, test: BY_DEADLINE, exact: false })
    };
    jobs.iter().zip(found).map(bound).collect()
}

fn failure(
    jobs: &[(usize, usize, Task)],
    promise: &Promise,
    supply: &Supply,
    found: Demand,
    extra_ns: u64,
) -> Option<Failure> {
    let set: Vec<_> = jobs.iter().map(|(_, _, task)| *task).collect();
    let edges: Vec<_> = jobs.iter().map(|(edge, ..)| *edge).collect();
    let rule = "deadlines_must_fit_what_is_promised";
    let mut edf = Edf::new();
    let first =
        (1..=set.len()).find(|most| set.len() <= 64 && edf.demand(&set[..*most], supply) != Demand::Met);
    let excess = Excess {
        edge: first.map(|most| edges[most - 1]).or(edges.last().copied()),
        test: format!(
            "the demand of every window, against the least supply of {} (Shin & Lee 2003)",
            promise.guarantee
        ),
        ns: None,
        share: None,
    };
    let mend = || mend_by_bisection(&edges, &set, supply, "work", 1, extra_ns);
    let (window_ns, due_ns) = match found {
        Demand::Exceeds { window_ns, due_ns } => (window_ns, due_ns),
        Demand::Overload => {
            let (asked, share) = (tierce_analysis::utilisation(&set), promise.guarantee.share());
            return Some(Failure {
                rule,
                message: format!(
                    "The jobs add up to {} of a CPU, more than {} is sure to give.",
                    percent(&asked),
                    promise.guarantee
                ),
                value: fraction(&asked),
                bound: crate::exact::fraction_given(&share),
                mend: mend(),
                excess: Excess { ns: None, share: Some(asked - share), ..excess },
            });
        }
        Demand::Met | Demand::TooLong => return None,
    };
    let (window_ns, due_ns) = Edf::new().shortest_excess(&set, supply).unwrap_or((window_ns, due_ns));
    let (window, due) = (show_time(window_ns), show_time(due_ns));
    let whole = tierce_guarantee::whole;
    let until_deadlines = slower::until_deadlines(&promise.guarantee);
    let sure = tierce_guarantee::Supply::of(until_deadlines.as_ref().unwrap_or(&promise.guarantee));
    let sure = sure.at(&whole(window_ns));
    let missing = whole(due_ns) - &sure;
    let sure = tierce_guarantee::noted_time(&sure, false);
    Some(Failure {
        rule,
        message: format!(
            "Within {window} {due} can be due, more than the {sure} that {} is sure to give.",
            promise.guarantee
        ),
        value: due,
        bound: sure,
        mend: mend(),
        excess: Excess {
            ns: u64::try_from(missing.ceil().to_integer()).ok(),
            share: Some(missing / whole(window_ns.max(1))),
            ..excess
        },
    })
}

/// The reduction of one task's work that takes least, by bisection; only for nodes of a readable size, in which a short
/// window fails. The tasks are what the edges ask for, `parameter` is what a person would reduce, to `least_ns` at least; of
/// their work `extra_ns` each is not his to reduce.
pub fn mend_by_bisection(
    edges: &[usize],
    tasks: &[Task],
    supply: &Supply,
    parameter: &'static str,
    least_ns: u64,
    extra_ns: u64,
) -> Option<Mend> {
    let mut edf = Edf::new();
    if tasks.len() > MENDED_MAX || edf.shortest_excess(tasks, supply).is_none() {
        return None;
    }
    let mut fits = |at: usize, work_ns: u64| {
        let mut tasks = tasks.to_vec();
        tasks[at].work_ns = work_ns;
        edf.schedulable(&tasks, supply)
    };
    let options = edges.iter().zip(tasks).enumerate().filter_map(|(at, (edge, task))| {
        let (mut good, mut bad) = (least_ns.saturating_add(extra_ns), task.work_ns);
        if good >= bad || !fits(at, good) {
            return None;
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            *(if fits(at, middle) { &mut good } else { &mut bad }) = middle;
        }
        Some(Mend { edge: *edge, parameter, from_ns: task.work_ns - extra_ns, to_ns: good - extra_ns })
    });
    options.min_by_key(|mend| (mend.from_ns - mend.to_ns, mend.edge))
}

/// It leads to a task that has other parents, too.
fn moves(plan: &Plan, shape: &Shape, edge: usize) -> bool {
    matches!(plan.edges[edge].child, Child::Task(task) if shape.task_parents[task].len() > 1)
}

/// Where costs count, too.
const MOVES: &str =
    "how often tasks with several parents are switched is not known: their deadlines were tested without";

/// Responses by the task's index, down to the first level whose work is not bounded.
fn by_priority(
    plan: &Plan,
    shape: &Shape,
    index: usize,
    at: usize,
    crowd: Option<u64>,
    received: &[Promise],
    overheads: &Overheads,
) -> Vec<(usize, Bound)> {
    let edges = &shape.children[index];
    let priority = |edge: &usize| plan.edges[*edge].params[at];
    let mut order = edges.to_vec();
    order.sort_by_key(|edge| std::cmp::Reverse(priority(edge)));
    let (mut members, mut set, mut levels) = (Vec::new(), Vec::new(), Vec::new());
    for (level, equals) in order.chunk_by(|a, b| priority(a) == priority(b)).enumerate() {
        let crowded = crowd.is_some_and(|crowd| crowd >= priority(&equals[0]));
        let jobs = equals.iter().map(|edge| bounded(plan, shape, *edge, overheads));
        let Some(jobs) = jobs.collect::<Option<Vec<_>>>().filter(|_| !crowded) else {
            break; // whoever is of this level or below may wait for ever
        };
        for (task, job) in jobs.into_iter().flatten() {
            members.push(task);
            set.push(overheads.job(index, job));
            levels.push(level as u32);
        }
    }
    if set.is_empty() || set.len() > RESPONSES_MAX {
        return Vec::new();
    }
    // Timers go off in the middle of everybody.
    let timers = overheads.timers_as_jobs(edges);
    let jobs: Vec<_> = timers.iter().chain(&set).copied().collect();
    let all_levels: Vec<_> = timers.iter().map(|_| 0).chain(levels.iter().map(|level| level + 1)).collect();
    let mut analysis = FixedPriority::new();
    let best = supplies(received)
        .map(|(_, supply)| {
            let found = analysis.responses_by_level(&jobs, &all_levels, &supply)[timers.len()..].to_vec();
            (supply, found)
        })
        .max_by_key(|(_, found)| {
            found.iter().zip(&set).filter(|(response, task)| response.meets(task.deadline_ns)).count()
        });
    let Some((supply, best)) = best else { return Vec::new() };
    let punctual = |task: usize| !matches!(plan.tasks[task].load, Some(Load::Phases(_)));
    let precise =
        supply == Supply::WHOLE && overheads.is_none() && members.iter().all(|task| punctual(*task));
    let alone = |at: usize| levels.iter().filter(|level| **level == levels[at]).count() == 1;
    let bound = |(at, response)| Bound { response, test: BY_PRIORITY, exact: precise && alone(at) };
    let bounds: Vec<_> = best.into_iter().enumerate().map(bound).collect();
    members.into_iter().zip(bounds).collect()
}

/// The task below an edge and its jobs, `Some(None)` without a load; `None`: how much comes through the edge is not bounded.
fn bounded(plan: &Plan, shape: &Shape, edge: usize, overheads: &Overheads) -> Option<Option<(usize, Task)>> {
    let Child::Task(task) = plan.edges[edge].child else { return None };
    let Some(load) = &plan.tasks[task].load else { return Some(None) };
    let conditional = plan.edges[edge].when_spent;
    let stays = !conditional && !shape.moves(plan, edge); // else it may come with work that has waited elsewhere
    let job = job(load, 0).filter(|_| stays && (overheads.is_none() || !moves(plan, shape, edge)))?;
    Some(Some((task, job)))
}
