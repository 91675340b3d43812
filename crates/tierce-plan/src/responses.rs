//! Jobs directly below a node: do they meet their deadlines in what the node is promised, and how long can each take?
//!
//! - `edf`: the demand of all jobs in every window is at most what is sure to be supplied; response times after Spuri.
//! - `fixed-priority`: exact response times, down to the first child whose work is not bounded.
//!
//! Tasks with other parents count here with all their work, and no response is given for them: they may be done sooner.

use crate::admission::{job, Excess, Failure, Mend, NodeVerdict};
use crate::exact::{fraction, percent};
use crate::model::{Child, Plan};
use crate::overheads::Overheads;
use crate::policies;
use crate::promises::{of_crowd, Promise, Promises};
use crate::structure::Shape;
use crate::units::show_time;
use tierce_analysis::{Demand, Edf, FixedPriority, Response, Supply, Task};

/// Sets that are larger are tested, but responses are not computed one by one.
const RESPONSES_MAX: usize = 64;

/// Nodes with more jobs or budgets are not looked through for the one whose reduction mends them.
pub const MENDED_MAX: usize = 32;

/// What the second look at deadlines rests on, once it could be taken.
pub const ONLY_UTILISATION: &str = "deadlines below periods were only tested by utilisation";

/// For each task of the plan its longest response, where that is known.
pub fn test(
    plan: &Plan,
    shape: &Shape,
    promises: &Promises,
    verdicts: &mut [NodeVerdict],
    overheads: &Overheads,
) -> Vec<Option<Response>> {
    let mut responses = vec![None; plan.tasks.len()];
    for (index, verdict) in verdicts.iter_mut().enumerate() {
        let received = &promises.nodes[index];
        let Some(policy) = policies::by_number(plan.nodes[index].policy) else { continue };
        if shape.shared(index) || supplies(received).next().is_none() {
            continue;
        }
        let crowd = |at: usize| of_crowd(plan, index, &shape.children[index], at);
        let found = if policy.heeds_deadlines {
            let at = policies::position(&policy.edge_params, "deadline");
            if at.and_then(crowd).is_some_and(|deadline| deadline > 0) {
                continue; // any number of threads with deadlines
            }
            by_deadline(plan, shape, index, at, received, verdict, overheads)
        } else if let Some(at) = policies::position(&policy.edge_params, "priority") {
            by_priority(plan, shape, index, at, crowd(at), received, overheads)
        } else {
            Vec::new()
        };
        for (task, response) in found {
            if shape.task_parents[task].len() == 1 && response != Response::TooLong {
                responses[task] = Some(response);
            }
        }
    }
    responses
}

fn supplies(received: &[Promise]) -> impl Iterator<Item = (&Promise, Supply)> {
    received.iter().filter_map(|promise| Some((promise, Supply::of(&promise.guarantee)?)))
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
) -> Vec<(usize, Response)> {
    let edges = &shape.children[index];
    if !overheads.is_none() && edges.iter().any(|edge| moves(plan, shape, *edge)) {
        verdict.open.push(MOVES.into());
        return Vec::new();
    }
    let mut jobs: Vec<(usize, usize, Task)> = Vec::new(); // edge, task
    for edge in edges {
        let own_ns = at.map_or(0, |at| plan.edges[*edge].params[at]);
        match plan.edges[*edge].child {
            Child::Task(task) => {
                let Some(load) = &plan.tasks[task].load else { continue };
                match job(load, own_ns) {
                    Some(found) => jobs.push((*edge, task, overheads.job(index, found))),
                    // Who has no deadline runs after all who have.
                    None if own_ns == 0 && load.deadline_ns().is_none() => {}
                    None => return Vec::new(),
                }
            }
            _ => return Vec::new(), // how much it asks for is not known
        }
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
    let supply = match (met, first) {
        (Some((_, supply)), _) => supply,
        (None, Some((promise, supply, found))) => {
            if verdict.failures.is_empty() && promise.guarantee.share() < tierce_guarantee::whole(1) {
                let extra_ns = overheads.switch_ns(index).saturating_mul(2);
                verdict.failures.extend(failure(&jobs, &promise, &supply, found, extra_ns));
            }
            supply
        }
        (None, None) => return Vec::new(),
    };
    verdict.open.retain(|open| open != ONLY_UTILISATION);
    if set.len() > RESPONSES_MAX {
        return Vec::new();
    }
    let found = edf.responses(&set, &supply);
    jobs.iter().zip(found).map(|((_, task, _), response)| (*task, *response)).collect()
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
                bound: fraction(&share),
                mend: mend(),
                excess: Excess { ns: None, share: Some(asked - share), ..excess },
            });
        }
        Demand::Met | Demand::TooLong => return None,
    };
    let (window_ns, due_ns) = Edf::new().shortest_excess(&set, supply).unwrap_or((window_ns, due_ns));
    let (window, due) = (show_time(window_ns), show_time(due_ns));
    let whole = tierce_guarantee::whole;
    let missing = whole(due_ns) - tierce_guarantee::Supply::of(&promise.guarantee).at(&whole(window_ns));
    let sure = tierce_guarantee::Supply::of(&promise.guarantee).at(&tierce_guarantee::whole(window_ns));
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
            share: Some(missing / whole(window_ns)),
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

fn by_priority(
    plan: &Plan,
    shape: &Shape,
    index: usize,
    at: usize,
    crowd: Option<u64>,
    received: &[Promise],
    overheads: &Overheads,
) -> Vec<(usize, Response)> {
    let edges = &shape.children[index];
    let priority = |edge: &usize| plan.edges[*edge].params[at];
    let mut order = edges.to_vec();
    order.sort_by_key(|edge| std::cmp::Reverse(priority(edge)));
    let (mut members, mut set, mut levels) = (Vec::new(), Vec::new(), Vec::new());
    let moving = |edge: &usize| !overheads.is_none() && moves(plan, shape, *edge);
    for (level, equals) in order.chunk_by(|a, b| priority(a) == priority(b)).enumerate() {
        for edge in equals {
            let Child::Task(task) = plan.edges[*edge].child else { break };
            let Some(load) = &plan.tasks[task].load else { continue };
            let Some(found) = job(load, 0) else { break };
            members.push(task);
            set.push(overheads.job(index, found));
            levels.push(level as u32);
        }
        let bounded = |edge: &usize| match plan.edges[*edge].child {
            Child::Task(task) => plan.tasks[task].load.as_ref().is_none_or(|load| job(load, 0).is_some()),
            _ => false,
        };
        let crowded = crowd.is_some_and(|crowd| crowd >= priority(&equals[0]));
        if crowded || !equals.iter().all(bounded) || equals.iter().any(moving) {
            // Whoever is of this level or below may wait for ever.
            while levels.last() == Some(&(level as u32)) {
                levels.pop();
            }
            members.truncate(levels.len());
            set.truncate(levels.len());
            break;
        }
    }
    if set.is_empty() || set.len() > RESPONSES_MAX {
        return Vec::new();
    }
    // Timers go off in the middle of everybody.
    let timers = overheads.timers_as_jobs(edges);
    let jobs: Vec<_> = timers.iter().chain(&set).copied().collect();
    let levels: Vec<_> = timers.iter().map(|_| 0).chain(levels.iter().map(|level| level + 1)).collect();
    let mut analysis = FixedPriority::new();
    let best = supplies(received)
        .map(|(_, supply)| analysis.responses_by_level(&jobs, &levels, &supply)[timers.len()..].to_vec())
        .max_by_key(|found| {
            found.iter().zip(&set).filter(|(response, task)| response.meets(task.deadline_ns)).count()
        });
    members.into_iter().zip(best.unwrap_or_default()).collect()
}
