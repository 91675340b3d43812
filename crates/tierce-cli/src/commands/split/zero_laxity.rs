//! `tierce split --algorithm c=d`: tasks to CPUs by EDF, some in parts that run one after the other.

use super::super::analyse::read_set;
use anyhow::{bail, Result};
use serde_json::{json, Value};
use std::path::Path;
use std::process::ExitCode;
use tierce_analysis::zero_laxity::{assign, Assigned};
use tierce_analysis::{short_fraction, utilisation, Entry, Task};
use tierce_guarantee::{whole, Exact};
use tierce_plan::show_time;

/// Version of the JSON that is written for parts.
const VERSION: u32 = 1;

pub fn run(table: &Path, cpus: u32, json: bool) -> Result<ExitCode> {
    let (entries, _) = read_set(table)?;
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    let found = match assign(&tasks, cpus) {
        Ok(found) => found,
        Err(fault) => bail!(
            "{}: {}; C=D needs deadlines of at most the period, and no blocking",
            fault.rule,
            entries[fault.task].name
        ),
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&in_json(cpus, &entries, &tasks, &found))?);
    } else {
        print(cpus, &entries, &tasks, &found);
    }
    Ok(ExitCode::from(u8::from(found.is_err())))
}

fn used(cpus: u32, tasks: &[Task]) -> Exact {
    utilisation(tasks) / whole(cpus.into())
}

fn in_json(cpus: u32, entries: &[Entry], tasks: &[Task], found: &Assigned) -> Value {
    let mut value = json!({
        "version": VERSION, "algorithm": "c=d", "cpus": cpus, "utilisation_per_cpu": short_fraction(&used(cpus, tasks)),
        "assigned": found.is_ok()
    });
    match found {
        Ok(parts) => {
            let part = |part: &tierce_analysis::zero_laxity::Part| {
                json!({
                    "task": entries[part.task].name, "cpu": part.cpu, "after_ns": part.after_ns, "work_ns": part.as_task.work_ns,
                    "deadline_ns": part.as_task.deadline_ns
                })
            };
            value["parts"] = parts.iter().map(part).collect();
        }
        Err(task) => {
            value["refusal"] = json!({ "rule": "tasks_fit_on_the_cpus", "task": entries[*task].name, "message": reason(&entries[*task].name) });
        }
    }
    value
}

fn reason(name: &str) -> String {
    format!("{name} fits on no CPU, neither as a whole nor in parts, after the tasks of higher utilisation")
}

fn print(cpus: u32, entries: &[Entry], tasks: &[Task], found: &Assigned) {
    let parts = match found {
        Ok(parts) => parts,
        Err(task) => {
            return println!("Cannot be assigned: tasks_fit_on_the_cpus: {}.", reason(&entries[*task].name))
        }
    };
    println!("cpu  {:<15}  {:>14}  {:>14}  {:>14}", "task", "released after", "work", "due within");
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_by_key(|part| part.cpu);
    for part in sorted {
        let [after, work, due] =
            [part.after_ns, part.as_task.work_ns, part.as_task.deadline_ns].map(show_time);
        println!("{:>3}  {:<15}  {after:>14}  {work:>14}  {due:>14}", part.cpu, entries[part.task].name);
    }
    let split = parts.chunk_by(|a, b| a.task == b.task).filter(|parts| parts.len() > 1).count();
    let s = if split == 1 { "" } else { "s" };
    println!(
        "\nAssigned: utilisation {} of each CPU, {split} task{s} in parts.",
        tierce_admission::percent(&used(cpus, tasks))
    );
}
