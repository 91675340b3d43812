//! The verdict on a question: on one CPU or several, parted or global, and how far numbers can change.

use super::asked::{Question, Thresholds};
use super::names::Policy;
use super::one_cpu::{holds, levels_of, ranks, verdict};
use super::refused::Refused;
use super::supplied::Supplied;
use crate::global::{self, Shown};
use crate::global_suspension as suspending;
use crate::partition::{partition, Fit, Partition};
use crate::sensitivity::{limits, work_scale, Limits};
use crate::server::smallest_budget;
use crate::suspension::as_work;
use crate::{
    fifo, pfair, priorities, tardiness, Edf, Entry, FixedPriority, Response, Sections, Supply, Task, Watch,
};

/// The verdict on all.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// All deadlines are shown to be met.
    pub schedulable: bool,
    /// That it is not schedulable, too, is shown.
    pub exact: bool,
    /// In plain words.
    pub remarks: Vec<String>,
    /// Of each task, or of none where one fits on no CPU.
    pub responses: Vec<Response>,
    /// Of each task, if it has one.
    pub cpus: Vec<usize>,
    /// Of each task: what shows that it meets its deadlines where any CPU may run it.
    pub shown: Vec<Shown>,
    /// Of each task, under global EDF: by how much it can miss its deadlines, where that is bounded.
    pub tardiness: Option<Vec<Option<u64>>>,
    /// Of each task, if there are thresholds: the task whose priority is its threshold.
    pub thresholds: Option<Vec<usize>>,
    /// If it was asked for.
    pub sensitivity: Option<Sensitivity>,
}

/// How far numbers can change, tasks staying on their CPUs and priorities as they are.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// Of each task.
    pub limits: Vec<Limits>,
    /// The factor common to all works, in billionths.
    pub work_scale: Option<u64>,
    /// The smallest budget of a periodic resource, if the supply is one.
    pub budget_min_ns: Option<u64>,
}

/// The CPU of each task, or the first task that fits on none; and whether all that was tried is exact.
fn placed(asked: &Question, supply: &Supply, watch: &Watch) -> (Partition, bool) {
    if let Some(homes) = &asked.homes {
        return (Partition::Fits(homes.clone()), true);
    }
    if asked.cpus == 1 {
        return (Partition::Fits(vec![0; asked.tasks.len()]), true);
    }
    let mut exact = true;
    let fit = asked.partition.unwrap_or(Fit::First);
    let places = partition(&asked.tasks, asked.cpus as usize, fit, |members| {
        let (schedulable, is_exact) = holds(asked, &some(asked, members), supply);
        exact &= is_exact;
        schedulable && !watch.is_ended()
    });
    (places, exact)
}

fn some(asked: &Question, members: &[usize]) -> Vec<Entry> {
    members.iter().map(|index| asked.entries[*index].clone()).collect()
}

/// Each task on one CPU: all deadlines are met; and that they are not is shown, too.
pub fn holds_in_parts(asked: &Question) -> (bool, bool) {
    let Supplied::Each(supply) = asked.given.supply else { return (false, false) };
    match placed(asked, &supply, &Watch::default()) {
        (Partition::Fits(_), _) if asked.cpus == 1 => holds(asked, &asked.entries, &supply),
        (Partition::Fits(cpus), _) if asked.homes.is_some() => {
            let members = |cpu| (0..cpus.len()).filter(|index| cpus[*index] == cpu).collect::<Vec<_>>();
            let each = (0..asked.cpus as usize).map(|cpu| holds(asked, &some(asked, &members(cpu)), &supply));
            each.fold((true, true), |all, one| (all.0 && one.0, all.1 && one.1))
        }
        (Partition::Fits(_), exact) => (true, exact),
        (Partition::Fails(_), exact) => (false, exact),
    }
}

/// Each task on one CPU; no responses if one fits on none.
pub fn in_parts(asked: &Question, watch: &Watch) -> Outcome {
    let Question { entries, tasks, .. } = asked;
    let Supplied::Each(supply) = asked.given.supply else { return Outcome::default() };
    let cpus = match placed(asked, &supply, watch) {
        (Partition::Fits(cpus), _) => cpus,
        (Partition::Fails(_), _) if watch.is_ended() => {
            let remarks = vec!["Ended early: not every task had been placed on a CPU.".to_string()];
            return Outcome { remarks, ..Outcome::default() };
        }
        (Partition::Fails(index), exact) => {
            let (name, cpus) = (&entries[index].name, asked.cpus);
            let remark = format!(
                "{name} fits on none of the {cpus} CPUs, after the tasks that were placed before it."
            );
            return Outcome { exact, remarks: vec![remark], ..Outcome::default() };
        }
    };
    if tells_how_far(asked) {
        watch.begins(tasks.len());
    }
    let mut responses = vec![Response::Unbounded; tasks.len()];
    let (mut schedulable, mut remarks) = (true, Vec::<String>::new());
    let mut exact = true; // of where the tasks are
    let mut thresholds = None;
    for cpu in 0..asked.cpus as usize {
        let members: Vec<_> = (0..tasks.len()).filter(|index| cpus[*index] == cpu).collect();
        let found = verdict(asked, &some(asked, &members), &supply, watch);
        schedulable &= found.schedulable;
        exact &= found.exact;
        for remark in found.remarks {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        for (index, response) in members.iter().zip(found.responses) {
            responses[*index] = response;
        }
        for (index, of) in members.iter().zip(found.thresholds.into_iter().flatten()) {
            thresholds.get_or_insert_with(|| (0..tasks.len()).collect::<Vec<_>>())[*index] = members[of];
        }
    }
    let unknown = responses.iter().filter(|response| **response == Response::TooLong).count();
    if watch.is_ended() && unknown > 0 {
        remarks.push(format!("Ended early: the response times of {unknown} tasks are not known."));
    }
    let sensitivity = asked.sensitivity.then(|| sensitivity(asked, &cpus, &supply));
    Outcome { schedulable, exact, remarks, responses, cpus, thresholds, sensitivity, ..Outcome::default() }
}

/// The analysis counts the tasks that are done.
fn tells_how_far(asked: &Question) -> bool {
    let plain = |entry: &Entry| entry.suspension_ns == 0 && entry.sections == Sections::default();
    match asked.policy {
        Policy::Edf => true,
        Policy::Fifo => false,
        _ => asked.thresholds == Thresholds::None && !asked.offsets_known && asked.entries.iter().all(plain),
    }
}

fn sensitivity(asked: &Question, cpus: &[usize], supply: &Supply) -> Sensitivity {
    let none = Limits { work_max_ns: None, period_min_ns: None, deadline_min_ns: None };
    let mut found = Sensitivity { limits: vec![none; cpus.len()], work_scale: None, budget_min_ns: None };
    let (mut scales, mut budgets) = (Vec::new(), Vec::new());
    for cpu in 0..asked.cpus as usize {
        let members: Vec<_> = (0..cpus.len()).filter(|index| cpus[*index] == cpu).collect();
        if members.is_empty() {
            continue;
        }
        let entries: Vec<_> = members.iter().map(|index| asked.entries[*index].clone()).collect();
        let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
        let levels = match asked.policy {
            Policy::Audsley => priorities::audsley(&tasks, supply).map(|order| ranks(&order)),
            _ => None,
        };
        let levels = levels.unwrap_or_else(|| levels_of(asked.policy, &entries, 1));
        let mut order: Vec<_> = (0..tasks.len()).collect();
        order.sort_by_key(|index| levels[*index]);
        let sorted: Vec<_> = order.iter().map(|index| levels[*index]).collect();
        let (mut fixed, mut edf) = (FixedPriority::new(), Edf::new());
        let mut holds = |changed: &[Task], supply: &Supply| {
            match asked.policy {
                Policy::Edf => return edf.schedulable_quickly(changed, supply),
                Policy::Fifo => return fifo::schedulable(changed, supply),
                _ => {}
            }
            let ordered: Vec<_> = order.iter().map(|index| changed[*index]).collect();
            fixed.schedulable_by_level(&ordered, &sorted, supply)
        };
        for (at, index) in members.iter().enumerate() {
            found.limits[*index] = limits(&tasks, at, |changed| holds(changed, supply));
        }
        scales.push(work_scale(&tasks, |changed| holds(changed, supply)));
        if let Some(period_ns) = supply.period_of_resource() {
            budgets.push(smallest_budget(period_ns, |supply| holds(&tasks, supply)));
        }
    }
    found.work_scale = scales.into_iter().min().flatten();
    found.budget_min_ns = if budgets.contains(&None) { None } else { budgets.into_iter().flatten().max() };
    found
}

/// Any CPU may run any task.
pub fn anywhere(asked: &Question, watch: &Watch) -> Result<Outcome, Refused> {
    let Question { policy, tasks, cpus, .. } = asked;
    let whole_cpus = matches!(asked.given.supply, Supplied::Each(_));
    if is_late(asked) {
        return Ok(with_tardiness_alone(asked));
    }
    let (found, has_order) = shown(asked, watch)?;
    let mut remarks = Vec::new();
    if watch.is_ended() && !found.schedulable {
        let unknown = found.tasks.iter().filter(|shown| shown.by.is_empty()).count();
        remarks.push(format!("Ended early: {unknown} tasks had not been shown to meet their deadlines."));
        let shown = found.tasks;
        let responses = shown.iter().map(response).collect();
        return Ok(Outcome { remarks, responses, shown, ..Outcome::default() });
    }
    if !has_order {
        remarks.push(
            "No order of priorities was found in which all deadlines are met; the results are for the order by deadline - k work.".to_string(),
        );
    }
    if !found.schedulable {
        remarks.push(why_not_shown(asked, &found));
    }
    let responses = found.tasks.iter().map(response).collect();
    let (schedulable, shown) = (found.schedulable, found.tasks);
    let tardiness = (*policy == Policy::Edf && whole_cpus).then(|| match schedulable {
        true => vec![Some(0); tasks.len()],
        false => tardiness(&as_work(tasks, &suspensions(asked)), *cpus),
    });
    Ok(Outcome { schedulable, remarks, responses, shown, tardiness, ..Outcome::default() })
}

fn response(shown: &Shown) -> Response {
    shown.response_ns.map_or(Response::TooLong, Response::Within)
}

/// The same, without what only explains it: all deadlines are shown to be met.
pub fn holds_anywhere(asked: &Question) -> Result<bool, Refused> {
    Ok(!is_late(asked) && shown(asked, &Watch::default())?.0.schedulable)
}

/// Deadlines beyond periods, which no test of global EDF covers.
fn is_late(asked: &Question) -> bool {
    let beyond = asked.tasks.iter().any(|task| task.deadline_ns > task.period_ns);
    let blocked = asked.tasks.iter().any(|task| task.blocking_ns > 0);
    asked.policy == Policy::Edf && matches!(asked.given.supply, Supplied::Each(_)) && beyond && !blocked
}

/// By the test for it, and whether there is an order of priorities in which all deadlines are met, if one was looked for.
fn shown(asked: &Question, watch: &Watch) -> Result<(global::Verdict, bool), Refused> {
    let Question { policy, entries, tasks, cpus, .. } = asked;
    let unsupported = |fault: global::Unsupported| {
        let why = match fault.rule {
            "deadlines_are_at_most_periods" => "has a deadline beyond its period",
            "tasks_are_not_blocked" => "may be blocked",
            _ => "has a time out of range",
        };
        let name = &entries[fault.task].name;
        let message = format!(
            "{name} {why}; the global tests for several CPUs do not cover that, but those with --partition do"
        );
        Refused::new(fault.rule, message)
    };
    let mut has_order = true;
    let suspended = suspensions(asked);
    let suspends = suspended.iter().any(|longest| *longest > 0);
    let found = match (policy, asked.given.supply) {
        (Policy::Edf, Supplied::Together(supply)) => global::earliest_deadline_in(tasks, &supply),
        (Policy::Edf, _) if suspends => suspending::earliest_deadline_while(tasks, &suspended, *cpus, watch),
        (Policy::Edf, _) => global::earliest_deadline_while(tasks, *cpus, watch),
        (Policy::Pd2, _) => pfair::pd2(tasks, *cpus, asked.quantum.unwrap_or(1)),
        _ => {
            let mut order = None;
            if *policy == Policy::Audsley {
                order = audsley(tasks, &suspended, *cpus, watch).map_err(unsupported)?;
                has_order = order.is_some();
            }
            let levels = match order {
                Some(order) => ranks(&order),
                None => levels_of(*policy, entries, *cpus),
            };
            if suspends {
                suspending::fixed_priority_while(tasks, &suspended, &levels, *cpus, watch)
            } else {
                global::fixed_priority_while(tasks, &levels, *cpus, watch)
            }
        }
    };
    let found = found.map_err(unsupported)?;
    has_order |= found.schedulable;
    Ok((found, has_order))
}

fn suspensions(asked: &Question) -> Vec<u64> {
    asked.entries.iter().map(|entry| entry.suspension_ns).collect()
}

/// An order that holds with suspensions as work, if there is one that does.
fn audsley(
    tasks: &[Task],
    suspensions: &[u64],
    cpus: u32,
    watch: &Watch,
) -> Result<Option<Vec<usize>>, global::Unsupported> {
    global::check(tasks, cpus)?;
    match global::audsley_while(&as_work(tasks, suspensions), cpus, watch) {
        Err(fault) if fault.rule == "times_are_in_range" => Ok(None),
        found => found,
    }
}

/// The demand is too large, or which tasks no test accepts.
fn why_not_shown(asked: &Question, found: &global::Verdict) -> String {
    let rate = match asked.given.supply {
        Supplied::Together(supply) => supply.rate(),
        Supplied::Each(_) => tierce_guarantee::whole(asked.cpus.into()),
    };
    if global::overloaded(&asked.tasks, &rate) {
        return "The demand is larger than the supply: in the long run, or of one task until its deadline."
            .to_string();
    }
    if asked.policy == Policy::Pd2 {
        return "In whole quanta the tasks need more than the CPUs have, or one does not fit into its deadline.".to_string();
    }
    let missing = found.tasks.iter().zip(&asked.entries).filter(|(shown, _)| shown.by.is_empty());
    let missing: Vec<_> = missing.map(|(_, entry)| entry.name.as_str()).collect();
    let missing = missing.join(", ");
    format!("No test proves the deadlines of these tasks: {missing}. The tests are sufficient only: they may be met all the same.")
}

/// How late jobs can be is bounded, if anything is.
fn with_tardiness_alone(asked: &Question) -> Outcome {
    let tasks = &asked.tasks;
    let tardiness = tardiness(&as_work(tasks, &suspensions(asked)), asked.cpus);
    let bounded = if tardiness.contains(&None) {
        "and there is no bound on how late jobs can be"
    } else {
        "but how late jobs can be is bounded"
    };
    Outcome {
        remarks: vec![format!("No test of global EDF covers deadlines beyond periods, {bounded}.")],
        responses: vec![Response::TooLong; tasks.len()],
        shown: vec![Shown::default(); tasks.len()],
        tardiness: Some(tardiness),
        ..Outcome::default()
    }
}
