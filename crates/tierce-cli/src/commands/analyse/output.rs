//! A verdict for people and for tools.

use serde_json::{json, Value};
use tierce_analysis::global::Shown;
use tierce_analysis::question::{is_together, Named as _, Outcome, Question, Sensitivity};
use tierce_analysis::sensitivity::SCALE_ONE;
use tierce_analysis::{short_fraction, Response};
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

pub fn in_json(asked: &Question, outcome: &Outcome) -> Value {
    let is_global = asked.is_global();
    let task = |index: usize| {
        let (entry, response) = (&asked.entries[index], outcome.responses[index]);
        let deadline = entry.task.deadline_ns;
        let slack = response.ns().map(|ns| i128::from(deadline) - i128::from(ns));
        let slack = slack.and_then(|slack| i64::try_from(slack).ok());
        let mut value = json!({
            "name": entry.name, "wcrt_ns": response.ns(), "deadline_ns": deadline, "slack_ns": slack
        });
        if let Some(tardiness) = &outcome.tardiness {
            value["tardiness_ns"] = json!(tardiness[index]);
        }
        if let Some(thresholds) = &outcome.thresholds {
            value["threshold_of"] = json!(asked.entries[thresholds[index]].name);
        }
        if is_global {
            value["shown_by"] = json!(names(&outcome.shown[index]));
        } else {
            value["cpu"] = json!(outcome.cpus[index]);
        }
        if let Some(found) = &outcome.sensitivity {
            let limits = found.limits[index];
            value["work_max_ns"] = json!(limits.work_max_ns);
            value["period_min_ns"] = json!(limits.period_min_ns);
            value["deadline_min_ns"] = json!(limits.deadline_min_ns);
        }
        value
    };
    let mut value = json!({
        "version": VERSION, "policy": asked.policy.name(), "supply": asked.given.text, "cpus": asked.cpus,
        "scheduling": if is_global { "global" } else { "partitioned" }, "exact": outcome.exact,
        "utilisation": short_fraction(&asked.utilisation()), "schedulable": outcome.schedulable,
        "remarks": outcome.remarks, "tasks": (0..outcome.responses.len()).map(task).collect::<Vec<_>>(),
    });
    if let Some(found) = &outcome.sensitivity {
        value["work_scale_ppb"] = json!(found.work_scale);
        value["budget_min_ns"] = json!(found.budget_min_ns);
    }
    value
}

fn names(shown: &Shown) -> Vec<&'static str> {
    shown.by.iter().map(|test| test.name()).collect()
}

pub fn print(asked: &Question, outcome: &Outcome) {
    if !outcome.responses.is_empty() {
        print_table(asked, outcome);
    }
    for remark in &outcome.remarks {
        println!("{remark}");
    }
    if let Some(found) = &outcome.sensitivity {
        print_sensitivity(asked, found);
    }
    let verdict = if outcome.schedulable { "Schedulable" } else { "Not schedulable" };
    let places = match asked.cpus {
        cpus if is_together(&asked.given) => format!("{} of {cpus} CPUs", asked.given.text),
        1 => asked.given.text.clone(),
        cpus if asked.is_global() => format!("{cpus} CPUs (global scheduling)"),
        cpus => format!("{cpus} CPUs, each {}", asked.given.text),
    };
    let load = tierce_admission::percent(&asked.utilisation());
    println!("\n{verdict}: {}, utilisation {load}, supplied with {places}.", asked.policy.name());
}

fn print_table(asked: &Question, outcome: &Outcome) {
    let name_width =
        asked.entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    let is_global = asked.is_global();
    let several = asked.cpus > 1 && !is_global;
    let cpu = |text: String| if several { format!("  {text:>3}") } else { String::new() };
    let tardiness = outcome.tardiness.as_ref().filter(|_| !outcome.schedulable);
    let late = |text: &str| tardiness.map_or(String::new(), |_| format!("  {text:>14}"));
    let line = |name: &str, on: String, cells: [String; 3], late: String, by: String| {
        let [response, deadline, slack] = cells;
        let text = format!(
            "{name:<name_width$}{}  {response:>14}  {deadline:>14}  {slack:>14}{late}  {by}",
            cpu(on)
        );
        println!("{}", text.trim_end());
    };
    let (response, by) = match is_global {
        true => ("response up to", "shown by"),
        false => ("response", outcome.thresholds.as_ref().map_or("", |_| "threshold of")),
    };
    let titles = [response.into(), "deadline".into(), "slack".into()];
    line("task", "cpu".into(), titles, late("late up to"), by.into());
    for (index, entry) in asked.entries.iter().enumerate() {
        let deadline = entry.task.deadline_ns;
        let (took, slack) = match outcome.responses[index] {
            Response::Within(ns) if ns <= deadline => (show_time(ns), show_time(deadline - ns)),
            Response::Within(ns) => (show_time(ns), format!("-{}", show_time(ns - deadline))),
            Response::Unbounded => ("unbounded".to_string(), String::new()),
            Response::TooLong if is_global => ("not shown".to_string(), String::new()),
            Response::TooLong => ("not decided".to_string(), String::new()),
        };
        let on = outcome.cpus.get(index).map_or(String::new(), usize::to_string);
        let limit =
            outcome.thresholds.as_ref().map(|thresholds| asked.entries[thresholds[index]].name.clone());
        let shown = outcome.shown.get(index).map(|shown| names(shown).join(", "));
        let by = limit.or(shown).unwrap_or_default();
        let bound = tardiness.and_then(|tardiness| tardiness[index]);
        let late = late(&bound.map_or("no bound".to_string(), show_time));
        line(&entry.name, on, [took, show_time(deadline), slack], late, by);
    }
}

pub fn print_sensitivity(asked: &Question, found: &Sensitivity) {
    let name_width =
        asked.entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    let line = |name: &str, cells: [String; 6]| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>13}")).collect();
        println!("{name:<name_width$}{cells}");
    };
    println!("\nHow far each number can change alone before a deadline is missed:");
    line("task", ["work", "up to", "period", "down to", "deadline", "down to"].map(String::from));
    let limit = |limit: Option<u64>| limit.map_or("-".to_string(), show_time);
    for (entry, limits) in asked.entries.iter().zip(&found.limits) {
        let task = &entry.task;
        let now = [task.work_ns, task.period_ns, task.deadline_ns].map(show_time);
        let [work, period, deadline] = now;
        let at = [limits.work_max_ns, limits.period_min_ns, limits.deadline_min_ns].map(limit);
        let [work_max, period_min, deadline_min] = at;
        line(&entry.name, [work, work_max, period, period_min, deadline, deadline_min]);
    }
    match found.work_scale {
        Some(scale) => {
            println!(
                "All works together can grow by a factor of {}.{:09}.",
                scale / SCALE_ONE,
                scale % SCALE_ONE
            );
        }
        None => println!("No common factor of all works makes the set schedulable."),
    }
    if let Some(budget) = found.budget_min_ns {
        println!("The budget can shrink to {}.", show_time(budget));
    }
}
