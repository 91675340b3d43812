//! The plan of servers that were placed, each on one CPU (`tierce place`): as text.

use std::fmt::Write as _;
use tierce_analysis::placement::{Order, Placement, Question};
use tierce_analysis::question::Refused;
use tierce_analysis::Entry;
use tierce_plan::show_time;

/// A scheduler of servers on each CPU, and below each server a task of its name; with `rest` also a default node of that name, for
/// the time that is left. Refused: servers whose names cannot be those of tasks.
pub fn plan_of_servers(asked: &Question, found: &Placement, rest: Option<&str>) -> Result<String, Refused> {
    check_server_names(asked, rest)?;
    let mut text = format!(
        "# {} servers on {} CPUs, about {} switches per second. Written by tierce place.\n\n[machine]\ncpus = {}\n",
        asked.entries.len(),
        asked.cpus,
        per_second(asked.switches(&found.cpu_of)),
        asked.cpus
    );
    if rest.is_some() {
        text += "\n[node.cpu]\npolicy = \"fixed-priority\"\nper_cpu = true\n";
    }
    text += "\n[node.servers]\npolicy = \"reservation\"\nper_cpu = true\n";
    if asked.order == Order::FixedPriority {
        text += "order = \"fixed-priority\"\n";
        // Only hard budgets, the preset, can be due before the period ends.
        if asked.tasks.iter().all(|task| task.deadline_ns == task.period_ns) {
            text += "replenishment = \"periodic\"\n";
        }
    }
    if rest.is_some() {
        text += "under.cpu = { priority = 1 }\n";
    }
    let lowest = asked.levels.iter().max().copied().unwrap_or(0);
    for (index, Entry { name, task, .. }) in asked.entries.iter().enumerate() {
        let mut edge = format!("cpu = {}, {}", found.cpu_of[index], given("budget", task.work_ns));
        let _ = write!(edge, ", {}", given("period", task.period_ns));
        if task.deadline_ns != task.period_ns {
            let _ = write!(edge, ", {}", given("deadline", task.deadline_ns));
        }
        if asked.order == Order::FixedPriority {
            let _ = write!(edge, ", priority = {}", lowest - asked.levels[index]);
        }
        let _ = write!(text, "\n[task.{name}]\nunder.servers = {{ {edge} }}\n");
        let _ = write!(text, "load = \"busy\"\nmatch = {{ comm = \"{name}\" }}\n");
    }
    if let Some(name) = rest {
        let each = |cpu| format!("{{ cpu = {cpu}, priority = 0 }}");
        let under = (0..asked.cpus).map(each).collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "\n# All other threads: the time that the servers leave.\n[node.{name}]\npolicy = \"fair\"\n"
        );
        let _ = write!(text, "default = true\nunder.cpu = [{under}]\n");
    }
    Ok(text)
}

/// Servers are tasks of the plan, with names that need no quotes.
pub fn check_server_names(asked: &Question, rest: Option<&str>) -> Result<(), Refused> {
    let is_plain = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
    };
    let names = asked.entries.iter().map(|entry| &*entry.name);
    if let Some(name) = names.clone().chain(rest).find(|name| !is_plain(name)) {
        let message = format!("{name:?} would be a name in the plan, bound [A-Za-z][A-Za-z0-9_-]*");
        return Err(Refused { rule: "name_must_be_plain", message });
    }
    let taken = ["cpu", "servers"];
    let twice = |name: &&str| rest == Some(*name) || taken.contains(name);
    if let Some(name) = names.clone().find(twice).or(rest.filter(|name| taken.contains(name))) {
        let message = format!("{name} is the name of another part of the plan");
        return Err(Refused { rule: "name_is_unique", message });
    }
    Ok(())
}

fn given(key: &str, ns: u64) -> String {
    format!("{key} = \"{}\"", show_time(ns))
}

/// With one digit after the point.
pub fn per_second(millionths: u128) -> String {
    format!("{}.{}", millionths / 1_000_000, millionths / 100_000 % 10)
}
