//! `tierce analyse` for tasks of two criticalities.

use anyhow::Result;
use serde_json::{json, Value};
use tierce_analysis::criticality::Mixed;
use tierce_analysis::question::{Criticalities, Named as _, Question};
use tierce_analysis::short_fraction;
use tierce_plan::show_time;

/// Version of the JSON that is written for two criticalities.
const VERSION: u32 = 1;

pub fn run(asked: &Question, found: &Criticalities, in_json: bool) -> Result<()> {
    if in_json {
        println!("{}", serde_json::to_string_pretty(&to_json(asked, found))?);
    } else {
        print(asked, found);
    }
    Ok(())
}

fn criticality(task: &Mixed) -> &'static str {
    if task.hi {
        "hi"
    } else {
        "lo"
    }
}

fn to_json(asked: &Question, found: &Criticalities) -> Value {
    let task = |(index, task): (usize, &Mixed)| {
        let response = found.response(index);
        let deadline = task.task.deadline_ns;
        let mut value = json!({
            "name": asked.entries[index].name, "criticality": criticality(task), "wcrt_ns": response,
            "wcrt_usual_ns": found.responses[index].usual_ns, "deadline_ns": deadline,
            "slack_ns": response.map(|response| deadline - response)
        });
        if let Some(level) = found.levels.get(index) {
            value["rank"] = json!(level);
        }
        if found.part.is_some() {
            value["virtual_deadline_ns"] = json!(found.first_due(index));
        }
        value
    };
    json!({
        "version": VERSION, "policy": asked.policy.name(), "scheduling": "two criticalities", "cpus": 1, "exact": false,
        "schedulable": found.schedulable, "remarks": found.remarks, "virtual_part": found.part.as_ref().map(short_fraction),
        "tasks": found.tasks.iter().enumerate().map(task).collect::<Vec<_>>()
    })
}

fn print(asked: &Question, found: &Criticalities) {
    let width = asked.entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    let line = |name: &str, level: &str, cells: [&str; 4]| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>14}")).collect();
        println!("{name:<width$}  {level:>4}{cells}");
    };
    let virtual_ones = found.part.is_some();
    let third = if virtual_ones { "due at first" } else { "rank" };
    line("task", "", ["usual", "at the worst", third, "deadline"]);
    for (index, task) in found.tasks.iter().enumerate() {
        let shown = |ns: Option<u64>| ns.map_or("not shown".to_string(), show_time);
        let responses = &found.responses[index];
        let worst = if task.hi { shown(responses.worst_ns) } else { String::new() };
        let third = match (&found.part, found.levels.get(index)) {
            (Some(_), _) => shown(found.first_due(index)),
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
    println!("\n{verdict}: {}, two criticalities on a whole CPU.", asked.policy.name());
}
