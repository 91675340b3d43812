//! `tierce analyse` for tasks of two criticalities.

use super::one_cpu::{levels_of, ranks};
use super::output::{policy_name, short};
use super::question::{MixedPolicy, Question};
use anyhow::{anyhow, Result};
use serde_json::{json, Value};
use std::process::ExitCode;
use tierce_analysis::criticality::{
    audsley, responses, schedulable, virtual_deadlines, Mixed, Responses, Scheme, Unsupported,
};
use tierce_guarantee::{whole, Exact};
use tierce_plan::show_time;

/// Version of the JSON that is written for two criticalities.
const VERSION: u32 = 1;

/// The verdict, and what it is made of.
struct Found {
    schedulable: bool,
    remarks: Vec<String>,
    /// Of each task, with fixed priorities.
    levels: Vec<u32>,
    responses: Vec<Responses>,
    /// The part of their periods after which `hi` jobs are due at first, with virtual deadlines.
    part: Option<Exact>,
}

pub fn run(asked: &Question, policy: &MixedPolicy, in_json: bool) -> Result<ExitCode> {
    let mixed = |(index, task): (usize, &tierce_analysis::Task)| {
        let criticality = asked.entries[index].criticality;
        let (hi, work_hi_ns) =
            criticality.map_or((false, task.work_ns), |given| (given.hi, given.work_hi_ns));
        Mixed { task: *task, hi, work_hi_ns }
    };
    let tasks: Vec<_> = asked.tasks.iter().enumerate().map(mixed).collect();
    let found = match policy {
        MixedPolicy::Fixed(scheme) => by_priority(asked, &tasks, *scheme),
        MixedPolicy::VirtualDeadlines => by_deadline(&tasks),
    };
    let found = found.map_err(|(index, rule)| unsupported(&asked.entries[index].name, rule))?;
    if in_json {
        println!("{}", serde_json::to_string_pretty(&to_json(asked, &tasks, &found))?);
    } else {
        print(asked, &tasks, &found);
    }
    Ok(ExitCode::from(u8::from(!found.schedulable)))
}

fn unsupported(name: &str, rule: &str) -> anyhow::Error {
    let why = match rule {
        "deadlines_are_at_most_periods" => "has a deadline beyond its period",
        "deadlines_are_periods" => "has a deadline that is not its period",
        "tasks_are_not_blocked" => "may be blocked",
        "tasks_have_no_jitter" => "has a jitter",
        "work_hi_is_at_least_work" => "has a work_hi below its work",
        _ => "has a time out of range",
    };
    anyhow!("{rule}: {name} {why}; the analyses of two criticalities do not cover that")
}

/// In the order of the table's priorities, or in one that works.
fn by_priority(asked: &Question, tasks: &[Mixed], scheme: Scheme) -> Result<Found, Unsupported> {
    let mut remarks = Vec::new();
    let levels = if asked.entries.iter().all(|entry| entry.priority.is_some()) {
        levels_of(super::question::Policy::Fp, &asked.entries, 1)
    } else if let Some(order) = audsley(tasks, scheme)? {
        ranks(&order)
    } else {
        remarks.push(
            "No order of priorities meets all deadlines; the results are for deadline-monotonic priorities."
                .to_string(),
        );
        levels_of(super::question::Policy::Dm, &asked.entries, 1)
    };
    let responses = responses(tasks, &levels, scheme)?;
    Ok(Found { schedulable: schedulable(tasks, &responses), remarks, levels, responses, part: None })
}

fn by_deadline(tasks: &[Mixed]) -> Result<Found, Unsupported> {
    let part = virtual_deadlines(tasks)?;
    let remark = match &part {
        None => "No virtual deadlines are shown to be enough; the test is sufficient only.".to_string(),
        Some(part) if *part == whole(1) => "All deadlines are met without virtual ones.".to_string(),
        Some(part) => format!(
            "Until a job works longer than its work, hi jobs are due after {} of their periods.",
            short(part)
        ),
    };
    let responses = vec![Responses::default(); tasks.len()];
    Ok(Found { schedulable: part.is_some(), remarks: vec![remark], levels: Vec::new(), responses, part })
}

/// Rounded up to whole ns.
fn first_due(task: &Mixed, part: &Exact) -> Option<u64> {
    let part = if task.hi { part.clone() } else { whole(1) };
    u64::try_from((part * whole(task.task.period_ns)).ceil().to_integer()).ok()
}

/// The response that counts.
fn response(task: &Mixed, found: &Responses) -> Option<u64> {
    if task.hi {
        found.worst_ns
    } else {
        found.usual_ns
    }
}

fn criticality(task: &Mixed) -> &'static str {
    if task.hi {
        "hi"
    } else {
        "lo"
    }
}

fn to_json(asked: &Question, tasks: &[Mixed], found: &Found) -> Value {
    let task = |(index, task): (usize, &Mixed)| {
        let response = response(task, &found.responses[index]);
        let deadline = task.task.deadline_ns;
        let mut value = json!({
            "name": asked.entries[index].name, "criticality": criticality(task), "wcrt_ns": response,
            "wcrt_usual_ns": found.responses[index].usual_ns, "deadline_ns": deadline,
            "slack_ns": response.map(|response| deadline - response)
        });
        if let Some(level) = found.levels.get(index) {
            value["rank"] = json!(level);
        }
        if let Some(part) = &found.part {
            value["virtual_deadline_ns"] = json!(first_due(task, part));
        }
        value
    };
    json!({
        "version": VERSION, "policy": policy_name(asked.policy), "scheduling": "two criticalities", "cpus": 1, "exact": false,
        "schedulable": found.schedulable, "remarks": found.remarks, "virtual_part": found.part.as_ref().map(short),
        "tasks": tasks.iter().enumerate().map(task).collect::<Vec<_>>()
    })
}

fn print(asked: &Question, tasks: &[Mixed], found: &Found) {
    let width = asked.entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    let line = |name: &str, level: &str, cells: [&str; 4]| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>14}")).collect();
        println!("{name:<width$}  {level:>4}{cells}");
    };
    let virtual_ones = found.part.is_some();
    let third = if virtual_ones { "due at first" } else { "rank" };
    line("task", "", ["usual", "at the worst", third, "deadline"]);
    for (index, task) in tasks.iter().enumerate() {
        let shown = |ns: Option<u64>| ns.map_or("not shown".to_string(), show_time);
        let responses = &found.responses[index];
        let worst = if task.hi { shown(responses.worst_ns) } else { String::new() };
        let third = match (&found.part, found.levels.get(index)) {
            (Some(part), _) => shown(first_due(task, part)),
            (None, level) => level.map_or(String::new(), u32::to_string),
        };
        let usual = if found.levels.is_empty() { String::new() } else { shown(responses.usual_ns) };
        let worst = if found.levels.is_empty() { String::new() } else { worst };
        let name = &asked.entries[index].name;
        line(name, criticality(task), [&usual, &worst, &third, &show_time(task.task.deadline_ns)]);
    }
    for remark in &found.remarks {
        println!("{remark}");
    }
    let verdict = if found.schedulable { "Schedulable" } else { "Not schedulable" };
    println!("\n{verdict}: {}, two criticalities on a whole CPU.", policy_name(asked.policy));
}
