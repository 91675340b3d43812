//! `[chain.NAME]`: which tasks follow each other, and how long all of it may take.

use super::draft::Draft;
use tierce_plan::reading::{Collector, Fields, Table, Value};
use tierce_plan::{closest, parse_time, show_time, Fault, Latency, Spot};

/// A chain.
pub struct Chain {
    pub name: String,
    /// Tasks and the delays before them.
    pub links: Vec<(usize, u64)>,
    /// At most so long, as it was written.
    pub needs: Vec<(Latency, u64, String)>,
    spot: Spot,
}

/// All of them; triggered tasks get what releases them, and the period of their head.
pub fn read(table: &Table, tasks: &mut [Draft], collector: &mut Collector) -> Vec<Chain> {
    // A task with a fault is not there, and would be missed in a chain.
    if !collector.faults.is_empty() {
        return Vec::new();
    }
    let mut chains = Vec::new();
    for (key, value) in &table.entries {
        let owner = format!("chain `{}`", key.text);
        let Some(table) = collector.table(&owner, value) else { continue };
        let mut fields = Fields::new(&owner, table);
        let (listed, delay) = (fields.take("tasks"), fields.take("delay"));
        let needs = fields.take("needs").map_or_else(Vec::new, |value| {
            let items = collector.one_or_more(value);
            items.iter().filter_map(|item| within(&owner, item, collector)).collect()
        });
        let misspelt = fields.is_misspelt("tasks");
        fields.finish(collector);
        match listed {
            Some(listed) => {
                let links = links(&owner, (listed, delay), tasks, collector);
                chains.push(Chain { name: key.text.clone(), links, needs, spot: key.spot });
            }
            None if !misspelt => {
                let fault = Fault::new("chain_needs_two_tasks", key.spot, format!("{owner} has no tasks"));
                collector.add(fault.hint("tasks = [\"first\", \"next\"]"));
            }
            None => {}
        }
    }
    if collector.faults.is_empty() {
        trigger(&chains, tasks, collector);
    }
    chains
}

fn links(
    owner: &str,
    (listed, delay): (&Value, Option<&Value>),
    tasks: &[Draft],
    collector: &mut Collector,
) -> Vec<(usize, u64)> {
    let what = format!("`tasks` of {owner}");
    let Some(list) = collector.list(&what, listed) else { return Vec::new() };
    if list.len() < 2 {
        let message = format!("{owner} has fewer than two tasks");
        collector.add(Fault::new("chain_needs_two_tasks", listed.spot, message));
    }
    let mut links: Vec<(usize, u64)> = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let Some(name) = collector.text(&what, value) else { continue };
        let Some(task) = tasks.iter().position(|task| task.entry.name == name) else {
            let message = format!("task `{name}` of {owner} does not exist");
            let fault = Fault::new("chain_consists_of_tasks", value.spot, message);
            let close = closest(name, tasks.iter().map(|task| task.entry.name.as_str()));
            collector.add(did_you_mean(fault, close));
            continue;
        };
        if links.iter().any(|link| link.0 == task) {
            let message = format!("{owner} goes round in a circle");
            collector.add(Fault::new("chain_names_a_task_once", value.spot, message).value(name));
        }
        if at == 0 && tasks[task].triggered {
            let message = format!("nothing releases `{name}`, the first task of {owner}");
            let fault = Fault::new("chain_begins_with_a_period", value.spot, message);
            collector.add(fault.hint("give it a period, or begin with what comes before it"));
        }
        if tasks[task].bursts {
            let message = format!("the jobs of `{name}` come in bursts");
            let fault = Fault::new("chain_needs_jobs", value.spot, message);
            collector.add(fault.hint("a period, or one separation"));
        }
        links.push((task, 0));
    }
    let what = format!("`delay` of {owner}");
    let delays = delay.and_then(|value| collector.table(&what, value));
    for (key, value) in delays.into_iter().flat_map(|table| &table.entries) {
        let ns = collector.time(&format!("{what} to `{}`", key.text), value);
        let follower = links.iter_mut().skip(1).find(|link| tasks[link.0].entry.name == key.text);
        match follower {
            Some(link) => link.1 = ns.unwrap_or(0),
            None => {
                let message = format!("{what} is before a task that follows another one");
                let fault = Fault::new("delay_must_name_a_follower", key.spot, message).value(&key.text);
                let names = links.iter().skip(1).map(|link| tasks[link.0].entry.name.as_str());
                collector.add(did_you_mean(fault, closest(&key.text, names)));
            }
        }
    }
    links
}

fn did_you_mean(fault: Fault, close: Option<&str>) -> Fault {
    match close {
        Some(close) => fault.hint(format!("did you mean `{close}`?")),
        None => fault,
    }
}

/// What releases tasks without a period.
fn trigger(chains: &[Chain], tasks: &mut [Draft], collector: &mut Collector) {
    for chain in chains {
        for pair in chain.links.windows(2) {
            let ((from, _), (to, delay_ns)) = (pair[0], pair[1]);
            if !tasks[to].triggered {
                continue;
            }
            match tasks[to].after.iter().find(|(before, _)| *before == from) {
                None => tasks[to].after.push((from, delay_ns)),
                Some((_, other_ns)) if *other_ns != delay_ns => {
                    let [from, to] = [from, to].map(|task| &tasks[task].entry.name);
                    let message =
                        format!("`{from}` would release `{to}` after one delay and after another one");
                    let fault = Fault::new("delays_must_agree", chain.spot, message);
                    collector.add(fault.value(show_time(delay_ns)).bound(show_time(*other_ns)));
                }
                Some(_) => {}
            }
        }
    }
    let heads: Vec<_> = (0..tasks.len()).map(|task| head(tasks, task)).collect();
    for (task, head) in heads.into_iter().enumerate() {
        let (name, spot) = (tasks[task].entry.name.clone(), tasks[task].spot);
        match head {
            Ok(head) if tasks[task].triggered => {
                let period_ns = tasks[head].entry.task.period_ns;
                let own = &mut tasks[task].entry.task;
                (own.period_ns, own.deadline_ns) = (period_ns, period_ns);
            }
            Ok(_) => {}
            Err(Headless::Nothing) => {
                let message = format!("no chain says what releases `{name}`, which has no period");
                let fault = Fault::new("triggered_task_needs_a_chain", spot, message);
                collector.add(fault.hint(format!("period = …, or [chain.NAME] tasks = [\"…\", \"{name}\"]")));
            }
            Err(Headless::Circle) => {
                let fault = Fault::new("triggers_have_no_circle", spot, format!("`{name}` waits for itself"));
                collector.add(fault.hint("give one of the tasks in the circle a period of its own"));
            }
            Err(Headless::Several(first, second)) => {
                let [first, second] = [first, second].map(|task| &tasks[task].entry.name);
                let message =
                    format!("`{name}` waits for jobs that `{first}` begins and for those of `{second}`");
                let fault = Fault::new("join_needs_one_beginning", spot, message);
                collector.add(
                    fault.hint(format!(
                        "give `{name}` a period of its own, or begin both chains with one task"
                    )),
                );
            }
        }
    }
}

/// Why there is no single task with a period that releases a triggered one in the end.
enum Headless {
    Nothing,
    Circle,
    Several(usize, usize),
}

fn head(tasks: &[Draft], task: usize) -> Result<usize, Headless> {
    let (mut open, mut seen, mut found) = (vec![task], vec![task], None);
    while let Some(at) = open.pop() {
        if !tasks[at].triggered {
            match found {
                Some(first) if first != at => return Err(Headless::Several(first, at)),
                _ => found = Some(at),
            }
            continue;
        }
        if tasks[at].after.is_empty() && at == task {
            return Err(Headless::Nothing);
        }
        for (before, _) in &tasks[at].after {
            if *before == task {
                return Err(Headless::Circle);
            }
            if !seen.contains(before) {
                seen.push(*before);
                open.push(*before);
            }
        }
    }
    Ok(found.unwrap_or(task))
}

/// `"within 30ms"`, `"reaction within 80ms"`.
fn within(owner: &str, value: &Value, collector: &mut Collector) -> Option<(Latency, u64, String)> {
    let text = collector.text(&format!("`needs` of {owner}"), value)?;
    let (name, time) = match text.split_once("within ") {
        Some((name, time)) => (name.trim(), time),
        None => (text, ""),
    };
    let latency = match name {
        "" => Some(Latency::Response),
        name => Latency::ALL.into_iter().find(|latency| latency.name() == name),
    };
    if let (Some(latency), Ok(most_ns @ 1..)) = (latency, parse_time(time)) {
        return Some((latency, most_ns, text.to_string()));
    }
    let message = format!("`needs` of {owner} is no time that a chain takes");
    let fault = Fault::new("latency_must_be_known", value.spot, message).value(text);
    let fault = fault.bound("within TIME, reaction within TIME, age within TIME");
    collector.add(fault.hint("\"within 30ms\": from the release of the first task to the end of the last"));
    None
}
