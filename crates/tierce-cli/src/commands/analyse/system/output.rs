//! What is found of tasks with locks and chains, for people and for tools.

use super::judged::Judged;
use crate::commands::analyse::output;
use serde_json::{json, Value};
use tierce_analysis::chains::Bounds;
use tierce_analysis::question::{Named as _, Outcome};
use tierce_analysis::system::System;
use tierce_analysis::{short_fraction, utilisation, Response, Task};
use tierce_plan::{show_time, Latency};

/// Of the tasks without their waits.
fn tasks(system: &System) -> Vec<Task> {
    system.members().iter().map(|member| member.entry.task).collect()
}

/// As of a table, with what locks and chains add.
pub fn in_json(system: &System, outcome: &Outcome, chains: &[Judged], holds: bool) -> Value {
    let mut value = output::in_json(system.asked(), outcome);
    value["schedulable"] = json!(holds);
    value["utilisation"] = json!(short_fraction(&utilisation(&tasks(system))));
    for (index, member) in system.members().iter().enumerate().take(outcome.responses.len()) {
        let task = &mut value["tasks"][index];
        if !member.after.is_empty() {
            (task["deadline_ns"], task["slack_ns"]) = (Value::Null, Value::Null);
        }
        if let Some(waits) = system.waits().map(|waits| waits[index]) {
            task["blocking_ns"] = json!(waits.blocking_ns);
            task["spin_ns"] = json!(waits.spin_ns);
            task["suspended_ns"] = json!(waits.suspended_ns);
        }
    }
    let bounds = |bounds: &Bounds| json!({ "response_ns": bounds.response_ns, "reaction_ns": bounds.reaction_ns, "age_ns": bounds.age_ns });
    let chain = |judged: &Judged| {
        let name = |link: &(usize, u64)| system.members()[link.0].entry.name.clone();
        let need = |need: &(Latency, u64, String)| json!({ "text": need.2, "bound_ns": judged.bound_ns(need.0), "met": judged.meets(need) });
        let latencies = &judged.latencies;
        let mut value = bounds(&latencies.bounds);
        value["name"] = json!(judged.chain.name);
        value["tasks"] = judged.chain.links.iter().map(name).collect();
        value["least_ns"] = json!(latencies.bounds.least_ns);
        value["analysis"] = json!(judged.analysis());
        value["by_jitter"] = bounds(&latencies.by_jitter);
        value["needs"] = judged.chain.needs.iter().map(need).collect();
        value
    };
    value["chains"] = chains.iter().map(chain).collect();
    value
}

/// Columns, as wide as what is in them.
fn print_columns(rows: &[Vec<String>]) {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    for row in rows {
        let cells =
            row.iter().enumerate().skip(1).map(|(at, cell)| format!("  {cell:>width$}", width = width(at)));
        println!(
            "{}",
            format!("{:<width$}{}", row[0], cells.collect::<String>(), width = width(0)).trim_end()
        );
    }
}

pub fn print(system: &System, outcome: &Outcome, chains: &[Judged], holds: bool) {
    print_columns(&task_rows(system, outcome));
    let asked = system.asked();
    if let Some(thresholds) = &outcome.thresholds {
        let of = |index: &usize| asked.entries[*index].name.as_str();
        println!("Threshold of each: {}", thresholds.iter().map(of).collect::<Vec<_>>().join(", "));
    }
    for remark in &outcome.remarks {
        println!("{remark}");
    }
    if let Some(found) = &outcome.sensitivity {
        output::print_sensitivity(asked, found);
    }
    if !chains.is_empty() {
        println!();
        print_columns(&chain_rows(chains));
    }
    for (judged, need) in
        chains.iter().flat_map(|judged| judged.chain.needs.iter().map(move |need| (judged, need)))
    {
        if !judged.meets(need) {
            let bound = judged
                .bound_ns(need.0)
                .map_or("there is no bound".into(), |ns| format!("the bound is {}", show_time(ns)));
            println!("{} needs {}: {bound}.", judged.chain.name, need.2);
        }
    }
    let verdict = if holds { "Schedulable" } else { "Not schedulable" };
    let places = match asked.cpus {
        1 => asked.given.text.clone(),
        cpus => format!("{cpus} CPUs, each {}", asked.given.text),
    };
    let load = tierce_admission::percent(&utilisation(&tasks(system)));
    println!("\n{verdict}: {}, utilisation {load}, supplied with {places}.", asked.policy.name());
}

fn task_rows(system: &System, outcome: &Outcome) -> Vec<Vec<String>> {
    let mut titles = vec!["task", "cpu", "response", "deadline", "slack"];
    let waits = system.waits();
    let any =
        |of: &dyn Fn(usize) -> u64| waits.is_some() && (0..system.members().len()).any(|task| of(task) > 0);
    let waits_of = |task: usize| waits.map_or_else(Default::default, |waits| waits[task]);
    let (spins, suspends) = (any(&|task| waits_of(task).spin_ns), any(&|task| waits_of(task).suspended_ns));
    titles.extend(waits.map(|_| "blocked"));
    titles.extend(spins.then_some("spins"));
    titles.extend(suspends.then_some("suspended"));
    let mut rows = vec![titles.into_iter().map(String::from).collect::<Vec<_>>()];
    for (index, response) in outcome.responses.iter().enumerate() {
        let member = &system.members()[index];
        let (deadline, triggered) = (member.entry.task.deadline_ns, !member.after.is_empty());
        let (took, slack) = match response {
            Response::Within(ns) if triggered => (show_time(*ns), String::new()),
            Response::Within(ns) if *ns <= deadline => (show_time(*ns), show_time(deadline - ns)),
            Response::Within(ns) => (show_time(*ns), format!("-{}", show_time(ns - deadline))),
            Response::Unbounded => ("unbounded".into(), String::new()),
            Response::TooLong => ("not decided".into(), String::new()),
        };
        let due = if triggered { "triggered".into() } else { show_time(deadline) };
        let mut row = vec![member.entry.name.clone(), system.cpu(index).to_string(), took, due, slack];
        let waits = waits.map(|_| waits_of(index));
        row.extend(waits.map(|waits| waits.blocking_ns.map_or("unbounded".into(), show_time)));
        row.extend(spins.then(|| show_time(waits_of(index).spin_ns)));
        row.extend(suspends.then(|| show_time(waits_of(index).suspended_ns)));
        rows.push(row);
    }
    rows
}

fn chain_rows(chains: &[Judged]) -> Vec<Vec<String>> {
    let titles = ["chain", "response", "reaction", "age", "bounds"];
    let row = |judged: &Judged| {
        let bound = |latency| judged.bound_ns(latency).map_or("no bound".to_string(), show_time);
        let [response, reaction, age] = Latency::ALL.map(bound);
        vec![judged.chain.name.clone(), response, reaction, age, judged.analysis().to_string()]
    };
    [titles.map(String::from).to_vec()].into_iter().chain(chains.iter().map(row)).collect()
}
