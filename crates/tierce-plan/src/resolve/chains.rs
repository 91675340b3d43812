//! `[chain.N]`: which tasks follow each other, and how long all of it may take.

use super::names::{Item, ItemKind};
use super::state::Resolver;
use crate::model::chain::{Chain, Latency, Link, Within, MARK_BYTES};
use crate::model::{Load, Plan};
use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::tree::{closest, Collector, Fields, Value};
use crate::text::units::{parse_time, show_time};
use std::collections::HashMap;

impl Resolver {
    pub(super) fn chain(&mut self, item: &Item) {
        let owner = format!("chain `{}`", item.key.text);
        let mut fields = Fields::new(&owner, item.table);
        let (tasks, delay) = (fields.take("tasks"), fields.take("delay"));
        let needs = fields.take("needs").map_or_else(Vec::new, |value| {
            let items = self.collector.one_or_more(value);
            items.iter().filter_map(|item| within(&owner, item, &mut self.collector)).collect()
        });
        let mark = fields.take("mark").and_then(|value| self.mark(&owner, value));
        let misspelt = fields.is_misspelt("tasks");
        fields.finish(&mut self.collector);
        let Some(tasks) = tasks else {
            if !misspelt {
                let message = format!("{owner} has no tasks");
                let fault = Fault::new("chain_needs_two_tasks", item.key.spot, message);
                self.collector.add(fault.hint("tasks = [\"first\", \"next\"]"));
            }
            return;
        };
        let Some(links) = self.links(&owner, tasks, delay) else { return };
        let (name, spot) = (item.key.text.clone(), item.key.spot);
        self.plan.chains.push(Chain { name, links, needs, mark, spot });
    }

    fn mark(&mut self, owner: &str, value: &Value) -> Option<String> {
        let label = self.collector.text(&format!("`mark` of {owner}"), value)?;
        if !(1..=MARK_BYTES).contains(&label.len()) || !label.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!("`mark` of {owner} cannot be that");
            let fault = Fault::new("mark_must_be_short", value.spot, message).value(label);
            self.collector.add(fault.bound(format!("1 to {MARK_BYTES} letters, digits or signs of ASCII")));
            return None;
        }
        if self.plan.run.marks.is_empty() {
            let message =
                format!("{owner} is measured by marks, and no file is named whose programs write them");
            let fault = Fault::new("mark_needs_files", value.spot, message);
            self.collector.add(fault.hint("[run] marks = [\"libtierce.so.0\"], or the programs themselves"));
        }
        Some(label.into())
    }

    fn links(&mut self, owner: &str, tasks: &Value, delay: Option<&Value>) -> Option<Vec<Link>> {
        let what = format!("`tasks` of {owner}");
        let list = self.collector.list(&what, tasks)?;
        let faults = self.collector.faults.len();
        if list.len() < 2 {
            let message = format!("{owner} has fewer than two tasks");
            self.collector.add(Fault::new("chain_needs_two_tasks", tasks.spot, message));
        }
        let mut links: Vec<Link> = Vec::new();
        let mut names = Vec::new();
        for (at, value) in list.iter().enumerate() {
            let Some(name) = self.collector.text(&what, value) else { continue };
            let Some(task) = self.link(owner, name, value, at == 0) else { continue };
            if links.iter().any(|link| link.task == task) {
                let fault = Fault::new(
                    "chain_names_a_task_once",
                    value.spot,
                    format!("{owner} goes round in a circle"),
                );
                self.collector.add(fault.value(name));
            }
            links.push(Link { task, delay_ns: 0 });
            names.push(name);
        }
        if let Some(table) =
            delay.and_then(|value| self.collector.table(&format!("`delay` of {owner}"), value))
        {
            for (key, value) in &table.entries {
                let time = self.collector.time(&format!("`delay` of {owner} to `{}`", key.text), value);
                match names.iter().skip(1).position(|name| *name == key.text) {
                    Some(at) => links[at + 1].delay_ns = time.unwrap_or(0),
                    None => {
                        let message = format!("`delay` of {owner} is before a task that follows another one");
                        let fault = Fault::new("delay_must_name_a_follower", key.spot, message);
                        let close = closest(&key.text, names.iter().copied().skip(1));
                        let fault = fault.value(&key.text);
                        self.collector.add(match close {
                            Some(close) => fault.hint(format!("did you mean `{close}`?")),
                            None => fault,
                        });
                    }
                }
            }
        }
        (self.collector.faults.len() == faults).then_some(links)
    }

    /// The task of that name, which has jobs; the first one by itself.
    fn link(&mut self, owner: &str, name: &str, value: &Value, first: bool) -> Option<usize> {
        let fault = match self.names.get(name).map(|declared| declared.kind) {
            Some(ItemKind::Task) => {
                let task = self.plan.tasks.iter().position(|task| task.name == name)?;
                let message = match &self.plan.tasks[task].load {
                    Some(Load::Triggered(_)) if first => {
                        let message = format!("nothing releases `{name}`, the first task of {owner}");
                        let fault = Fault::new("chain_begins_with_a_period", value.spot, message);
                        let hint = "load = { period = …, work = … }, or begin with what comes before it";
                        self.collector.add(fault.hint(hint));
                        return None;
                    }
                    Some(load) if load.is_bursty() => format!("the jobs of `{name}` come in bursts"),
                    Some(Load::Periodic(_) | Load::Sporadic(_) | Load::Triggered(_)) => return Some(task),
                    // What is wrong with it is said.
                    None if self.unread.contains(&task) => return None,
                    _ => format!("`{name}` has no single jobs that could pass something on"),
                };
                let hint = "load = { period = …, work = … } or { separation = …, work = … }; \
                            { work = … } if the task before it releases it";
                Fault::new("chain_needs_jobs", value.spot, message).hint(hint)
            }
            Some(kind) => {
                let what = match kind {
                    ItemKind::Node => "a node",
                    ItemKind::Set => "a set of tasks",
                    ItemKind::Task | ItemKind::Chain => "a chain",
                };
                Fault::new("chain_consists_of_tasks", value.spot, format!("`{name}` in {owner} is {what}"))
            }
            None => {
                let message = format!("task `{name}` of {owner} does not exist");
                let fault = Fault::new("chain_consists_of_tasks", value.spot, message);
                let tasks = self.names.iter().filter(|(_, declared)| declared.kind == ItemKind::Task);
                match closest(name, tasks.map(|(name, _)| name.as_str())) {
                    Some(close) => fault.hint(format!("did you mean `{close}`?")),
                    None => fault,
                }
            }
        };
        self.collector.add(fault);
        None
    }

    /// Once all chains are known: what releases triggered tasks has to be one thing, whose period they get.
    pub(super) fn triggered(&mut self) {
        let Self { plan, collector, .. } = self;
        let mut delays: HashMap<(usize, usize), (u64, Spot)> = HashMap::new();
        for chain in &plan.chains {
            for pair in chain.links.windows(2) {
                let (delay_ns, spot) =
                    *delays.entry((pair[0].task, pair[1].task)).or_insert((pair[1].delay_ns, chain.spot));
                let triggers = matches!(plan.tasks[pair[1].task].load, Some(Load::Triggered(_)));
                if triggers && delay_ns != pair[1].delay_ns {
                    let [from, to] = [pair[0].task, pair[1].task].map(|task| &plan.tasks[task].name);
                    let message =
                        format!("`{from}` would release `{to}` after one delay and after another one");
                    let fault = Fault::new("delays_must_agree", chain.spot, message);
                    let fault = fault.value(show_time(pair[1].delay_ns)).bound(show_time(delay_ns));
                    collector.add(fault.other(spot, "the other chain"));
                }
            }
        }
        // A table with another fault may be what says what releases a task.
        if !collector.faults.is_empty() {
            return;
        }
        let heads: Vec<_> = (0..plan.tasks.len()).map(|task| head(plan, task)).collect();
        for (task, head) in heads.into_iter().enumerate() {
            let spot = plan.tasks[task].spot;
            match head {
                Ok(head) => {
                    let head = plan.tasks[head].load.clone();
                    if let Some(Load::Triggered(load)) = &mut plan.tasks[task].load {
                        (load.period_ns, load.sporadic) = match head {
                            Some(Load::Periodic(head)) => (head.period_ns, false),
                            Some(Load::Sporadic(head)) => (head.separation_ns, head.extra_ns > 0),
                            _ => continue,
                        };
                    }
                }
                Err(Headless::Nothing(task)) => {
                    let name = &plan.tasks[task].name;
                    let message = format!("no chain says what releases `{name}`, which has no period");
                    let fault = Fault::new("triggered_task_needs_a_chain", spot, message);
                    let hint = format!(
                        "[chain.NAME] tasks = [\"…\", \"{name}\"], or load = {{ period = …, work = … }}"
                    );
                    collector.add(fault.hint(hint));
                }
                Err(Headless::Circle) => {
                    let message = format!("`{}` waits for itself", plan.tasks[task].name);
                    let hint = "give one of the tasks in the circle a period of its own";
                    collector.add(Fault::new("triggers_have_no_circle", spot, message).hint(hint));
                }
                Err(Headless::Several(first, second)) => {
                    let [this, first, second] = [task, first, second].map(|task| &plan.tasks[task].name);
                    let message =
                        format!("`{this}` waits for jobs that `{first}` begins and for those of `{second}`");
                    let hint =
                        format!("give `{this}` a period of its own, or begin both chains with one task");
                    collector.add(Fault::new("join_needs_one_beginning", spot, message).hint(hint));
                }
            }
        }
    }
}

/// Why there is no single task with a period of its own that releases a triggered one.
enum Headless {
    Nothing(usize),
    Circle,
    Several(usize, usize),
}

/// The task with a period of its own that releases this one in the end.
fn head(plan: &Plan, task: usize) -> Result<usize, Headless> {
    let (mut open, mut seen, mut found) = (vec![task], vec![task], None);
    while let Some(at) = open.pop() {
        if !matches!(plan.tasks[at].load, Some(Load::Triggered(_))) {
            match found {
                Some(first) if first != at => return Err(Headless::Several(first, at)),
                _ => found = Some(at),
            }
            continue;
        }
        let before = plan.triggers(at);
        // Who follows a task that nothing releases needs no message of its own.
        if before.is_empty() && at == task {
            return Err(Headless::Nothing(at));
        }
        for (before, _) in before {
            if before == task {
                return Err(Headless::Circle);
            }
            if !seen.contains(&before) {
                seen.push(before);
                open.push(before);
            }
        }
    }
    Ok(found.unwrap_or(task))
}

/// `"within 30ms"`, `"reaction within 80ms"`.
fn within(owner: &str, value: &Value, collector: &mut Collector) -> Option<Within> {
    let text = collector.text(&format!("`needs` of {owner}"), value)?;
    let words: Vec<_> = text.split_whitespace().collect();
    let (latency, rest) = match words.as_slice() {
        ["within", rest @ ..] => (Some(Latency::Response), rest),
        [name, "within", rest @ ..] => {
            (Latency::ALL.into_iter().find(|latency| latency.name() == *name), rest)
        }
        _ => (None, [].as_slice()),
    };
    let time = parse_time(&rest.join(" "));
    if let (Some(latency), Ok(most_ns @ 1..)) = (latency, time) {
        return Some(Within { latency, most_ns, text: text.to_string(), spot: value.spot });
    }
    let fault = Fault::new(
        "latency_must_be_known",
        value.spot,
        format!("`needs` of {owner} is no time that a chain takes"),
    );
    let bound = "within TIME, reaction within TIME, age within TIME";
    collector.add(
        fault
            .value(text)
            .bound(bound)
            .hint("\"within 30ms\": from the release of the first task to the end of the last"),
    );
    None
}
