//! The verdict on a question: on one CPU or several, parted or global, and how far numbers can change.

use super::question::{FitName, Policy, Question, Supplied};
use anyhow::{anyhow, Result};
use tierce_analysis::global::{self, Shown};
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::sensitivity::{limits, work_scale, Limits};
use tierce_analysis::server::smallest_budget;
use tierce_analysis::{
    pfair, priorities, tardiness, Demand, Edf, Entry, FixedPriority, Response, Supply, Task,
};
use tierce_plan::show_time;

/// The verdict on some tasks, on one CPU or several.
struct Verdict {
    schedulable: bool,
    /// Where it could not be decided, or why it fails beyond single tasks.
    remark: Option<String>,
    /// As the tasks were given.
    responses: Vec<Response>,
}

/// The verdict on all.
#[derive(Default)]
pub struct Outcome {
    pub schedulable: bool,
    pub remarks: Vec<String>,
    /// Of each task, or of none where one fits on no CPU.
    pub responses: Vec<Response>,
    /// Of each task, if it has one.
    pub cpus: Vec<usize>,
    /// Of each task: what shows that it meets its deadlines where any CPU may run it.
    pub shown: Vec<Shown>,
    /// Of each task, under global EDF: by how much it can miss its deadlines, where that is bounded.
    pub tardiness: Option<Vec<Option<u64>>>,
    pub sensitivity: Option<Sensitivity>,
}

/// How far numbers can change, tasks staying on their CPUs and priorities as they are.
pub struct Sensitivity {
    /// Of each task.
    pub limits: Vec<Limits>,
    /// The factor common to all works, in billionths.
    pub work_scale: Option<u64>,
    /// The smallest budget of a periodic resource, if the supply is one.
    pub budget_min_ns: Option<u64>,
}

/// Each task on one CPU; no responses if one fits on none.
pub fn in_parts(asked: &Question) -> Outcome {
    let Question { policy, entries, tasks, .. } = asked;
    let Supplied::Each(supply) = asked.given.supply else { return Outcome::default() };
    let some = |members: &[usize]| members.iter().map(|index| entries[*index].clone()).collect::<Vec<_>>();
    let fit = match asked.partition {
        Some(FitName::First) | None => Fit::First,
        Some(FitName::Best) => Fit::Best,
        Some(FitName::Worst) => Fit::Worst,
        Some(FitName::Next) => Fit::Next,
        Some(FitName::Period) => Fit::Period,
        Some(FitName::Mixed) => Fit::Mixed,
    };
    let cpus = if asked.cpus == 1 {
        vec![0; tasks.len()]
    } else {
        let holds = |members: &[usize]| verdict(*policy, &some(members), &supply).schedulable;
        match partition(tasks, asked.cpus as usize, fit, holds) {
            Partition::Fits(cpus) => cpus,
            Partition::Fails(index) => {
                let (name, cpus) = (&entries[index].name, asked.cpus);
                let remark = format!(
                    "{name} fits on none of the {cpus} CPUs, after the tasks that were placed before it."
                );
                return Outcome { remarks: vec![remark], ..Outcome::default() };
            }
        }
    };
    let mut responses = vec![Response::Unbounded; tasks.len()];
    let (mut schedulable, mut remarks) = (true, Vec::new());
    for cpu in 0..asked.cpus as usize {
        let members: Vec<_> = (0..tasks.len()).filter(|index| cpus[*index] == cpu).collect();
        let found = verdict(*policy, &some(&members), &supply);
        schedulable &= found.schedulable;
        remarks.extend(found.remark);
        for (index, response) in members.iter().zip(found.responses) {
            responses[*index] = response;
        }
    }
    let sensitivity = asked.sensitivity.then(|| sensitivity(asked, &cpus, &supply));
    Outcome { schedulable, remarks, responses, cpus, sensitivity, ..Outcome::default() }
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
            if asked.policy == Policy::Edf {
                return edf.schedulable_quickly(changed, supply);
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
pub fn anywhere(asked: &Question) -> Result<Outcome> {
    let Question { policy, entries, tasks, cpus, .. } = asked;
    let whole_cpus = matches!(asked.given.supply, Supplied::Each(_));
    let beyond = tasks.iter().any(|task| task.deadline_ns > task.period_ns);
    let blocked = tasks.iter().any(|task| task.blocking_ns > 0);
    if *policy == Policy::Edf && whole_cpus && beyond && !blocked {
        return Ok(with_tardiness_alone(asked));
    }
    let unsupported = |fault: global::Unsupported| {
        let why = match fault.rule {
            "deadlines_are_at_most_periods" => "has a deadline beyond its period",
            "tasks_are_not_blocked" => "may be blocked",
            _ => "has a time out of range",
        };
        let name = &entries[fault.task].name;
        anyhow!(
            "{}: {name} {why}; the global tests for several CPUs do not cover that, but those with --partition do",
            fault.rule
        )
    };
    let mut remarks = Vec::new();
    let found = match (policy, asked.given.supply) {
        (Policy::Edf, Supplied::Together(supply)) => global::earliest_deadline_in(tasks, &supply),
        (Policy::Edf, _) => global::earliest_deadline(tasks, *cpus),
        (Policy::Pd2, _) => pfair::pd2(tasks, *cpus, asked.quantum.unwrap_or(1)),
        _ => {
            let mut order = None;
            if *policy == Policy::Audsley {
                order = global::audsley(tasks, *cpus).map_err(unsupported)?;
                if order.is_none() {
                    remarks.push(
                        "No order of priorities was found in which all deadlines are met; the results are for the order by deadline - k work.".to_string(),
                    );
                }
            }
            let levels = match order {
                Some(order) => ranks(&order),
                None => levels_of(*policy, entries, *cpus),
            };
            global::fixed_priority(tasks, &levels, *cpus)
        }
    };
    let found = found.map_err(unsupported)?;
    if !found.schedulable {
        remarks.push(why_not_shown(asked, &found));
    }
    let response = |shown: &Shown| shown.response_ns.map_or(Response::TooLong, Response::Within);
    let responses = found.tasks.iter().map(response).collect();
    let (schedulable, shown) = (found.schedulable, found.tasks);
    let tardiness = (*policy == Policy::Edf && whole_cpus).then(|| match schedulable {
        true => vec![Some(0); tasks.len()],
        false => tardiness(tasks, *cpus),
    });
    Ok(Outcome { schedulable, remarks, responses, shown, tardiness, ..Outcome::default() })
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

/// Deadlines beyond periods, which no test of global EDF covers.
fn with_tardiness_alone(asked: &Question) -> Outcome {
    let tasks = &asked.tasks;
    let tardiness = tardiness(tasks, asked.cpus);
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

/// The rank of each task, the smallest first.
pub fn ranks(order: &[usize]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    (0..).zip(order).for_each(|(rank, index)| ranks[*index] = rank);
    ranks
}

/// The level of each task: the smaller, the higher its priority.
pub fn levels_of(policy: Policy, entries: &[Entry], cpus: u32) -> Vec<u32> {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    match policy {
        Policy::Rm => ranks(&priorities::rate_monotonic(&tasks)),
        Policy::Dkc | Policy::Audsley => ranks(&global::d_minus_kc(&tasks, cpus)),
        Policy::Fp if entries.iter().any(|entry| entry.priority.is_some()) => {
            let mut all: Vec<_> = entries.iter().map(|entry| std::cmp::Reverse(entry.priority)).collect();
            all.sort();
            all.dedup();
            let level = |entry: &Entry| all.partition_point(|other| other.0 > entry.priority);
            entries.iter().map(|entry| u32::try_from(level(entry)).unwrap_or(u32::MAX)).collect()
        }
        _ => ranks(&priorities::deadline_monotonic(&tasks)),
    }
}

fn verdict(policy: Policy, entries: &[Entry], supply: &Supply) -> Verdict {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    if policy == Policy::Edf {
        return earliest_deadline(&tasks, supply);
    }
    let levels = match policy {
        Policy::Audsley => match priorities::audsley(&tasks, supply) {
            Some(order) => ranks(&order),
            None => {
                let mut found = by_priority(&tasks, &levels_of(Policy::Dm, entries, 1), supply);
                let remark =
                    "No order of fixed priorities meets all deadlines; the results are for deadline-monotonic priorities.";
                found.remark = Some(remark.to_string());
                return found;
            }
        },
        _ => levels_of(policy, entries, 1),
    };
    by_priority(&tasks, &levels, supply)
}

fn by_priority(tasks: &[Task], levels: &[u32], supply: &Supply) -> Verdict {
    let mut analysis = FixedPriority::new();
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    let sorted: Vec<_> = order.iter().map(|index| levels[*index]).collect();
    let found = analysis.responses_by_level(&ordered, &sorted, supply);
    let mut responses = vec![Response::Unbounded; tasks.len()];
    for (index, response) in order.iter().zip(found) {
        responses[*index] = *response;
    }
    let schedulable = tasks.iter().zip(&responses).all(|(task, response)| response.meets(task.deadline_ns));
    let undecided = responses.contains(&Response::TooLong);
    Verdict { schedulable, remark: undecided.then(|| too_long("a busy period")), responses }
}

fn too_long(what: &str) -> String {
    format!("Not decided: {what} is too long to examine, because utilisation and supply are nearly equal.")
}

fn earliest_deadline(tasks: &[Task], supply: &Supply) -> Verdict {
    let mut edf = Edf::new();
    let demand = edf.demand(tasks, supply);
    let responses = edf.responses(tasks, supply).to_vec();
    let remark = match demand {
        Demand::Met => None,
        Demand::Exceeds { window_ns, due_ns } => {
            let (window_ns, due_ns) = edf.shortest_excess(tasks, supply).unwrap_or((window_ns, due_ns));
            let (due, window) = (show_time(due_ns), show_time(window_ns));
            Some(format!("In a window of {window} the demand can be {due}, more than the guaranteed supply."))
        }
        Demand::Overload => Some("The demand is larger than the supply in the long run.".to_string()),
        Demand::TooLong => Some(too_long("a window")),
    };
    Verdict { schedulable: demand == Demand::Met, remark, responses }
}
