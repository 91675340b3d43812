//! `tierce analyse` for parallel tasks.

use anyhow::Result;
use serde_json::{json, Value};
use tierce_analysis::federated::{Assigned, Place};
use tierce_analysis::question::Question;
use tierce_analysis::{short_fraction, utilisation};
use tierce_plan::show_time;

/// Version of the JSON that is written for parallel tasks.
const VERSION: u32 = 1;

pub fn run(asked: &Question, found: &Assigned, in_json: bool) -> Result<()> {
    if in_json {
        println!("{}", serde_json::to_string_pretty(&to_json(asked, found))?);
    } else {
        print(asked, found);
    }
    Ok(())
}

fn remark(asked: &Question, found: &Assigned) -> Option<String> {
    let missing = found.as_ref().err().map(|index| &asked.entries[*index].name)?;
    Some(format!(
        "There is no room for {missing} on the {} CPUs, after the tasks that were placed before it.",
        asked.cpus
    ))
}

fn cpus(place: &Place) -> Vec<usize> {
    (place.cpu..place.cpu + place.own.max(1)).collect()
}

fn to_json(asked: &Question, found: &Assigned) -> Value {
    let task = |(index, place): (usize, &Place)| {
        let entry = &asked.entries[index];
        let deadline = entry.task.deadline_ns;
        json!({
            "name": entry.name, "wcrt_ns": place.response_ns, "deadline_ns": deadline, "slack_ns": deadline - place.response_ns,
            "cpus": cpus(place), "own": place.own > 0
        })
    };
    json!({
        "version": VERSION, "policy": "federated", "scheduling": "federated", "cpus": asked.cpus, "exact": false,
        "utilisation": short_fraction(&utilisation(&asked.tasks)), "schedulable": found.is_ok(),
        "remarks": remark(asked, found).into_iter().collect::<Vec<_>>(),
        "tasks": found.as_ref().map_or(Vec::new(), |places| places.iter().enumerate().map(task).collect())
    })
}

fn print(asked: &Question, found: &Assigned) {
    let width = asked.entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    if let Ok(places) = found {
        println!("{:width$}  {:>12}  {:>14}  {:>14}", "task", "cpus", "response up to", "deadline");
        for (entry, place) in asked.entries.iter().zip(places) {
            let last = place.cpu + place.own.max(1) - 1;
            let cpus = match place.own {
                0 => format!("{last} (shared)"),
                1 => last.to_string(),
                _ => format!("{} to {last}", place.cpu),
            };
            let (response, deadline) = (show_time(place.response_ns), show_time(entry.task.deadline_ns));
            println!("{:width$}  {cpus:>12}  {response:>14}  {deadline:>14}", entry.name);
        }
    }
    if let Some(remark) = remark(asked, found) {
        println!("{remark}");
    }
    let verdict = if found.is_ok() { "Schedulable" } else { "Not schedulable" };
    let load = tierce_admission::percent(&utilisation(&asked.tasks));
    println!("\n{verdict}: federated, utilisation {load}, on {} CPUs.", asked.cpus);
}
