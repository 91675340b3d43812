//! A TOML file of tasks, locks and chains, with the means of the plan language.

use super::chains::{self, Chain};
use super::draft::Draft;
use super::locks;
use std::sync::Arc;
use tierce_analysis::question::{Policy, CPUS_MAX};
use tierce_analysis::requests::Requests;
use tierce_analysis::{Criticality, Entry, Sections, Task};
use tierce_plan::reading::{parse, sections, wrong_kind, Collector, Fields, Kind, Table, Value};
use tierce_plan::{Fault, Faults, Lock, Section, Source, Sources, Spot};

/// All of it.
pub struct Set {
    pub tasks: Vec<Draft>,
    pub locks: Vec<Lock>,
    pub chains: Vec<Chain>,
}

impl Set {
    /// The tasks, as those of a table.
    pub fn entries(self) -> Vec<Entry> {
        self.tasks.into_iter().map(|task| task.entry).collect()
    }

    /// It has nothing that a table has no columns for.
    pub fn is_plain(&self) -> bool {
        let cpus = self.tasks.iter().any(|task| task.cpu.is_some());
        !cpus && self.chains.is_empty() && self.tasks.iter().all(|task| task.sections.is_empty())
    }
}

/// The set of a text, or all of its faults; `name` is its path.
pub fn read(text: &str, name: &str, policy: Option<Policy>) -> Result<Set, Faults> {
    let sources = Sources(vec![Arc::new(Source::new(name, text))]);
    let table = parse(text, 0).map_err(|faults| Faults::new(faults, sources.clone()))?;
    let mut collector = Collector::default();
    let set = set(&table, policy, &mut collector);
    match collector.faults.is_empty() {
        true => Ok(set),
        false => Err(Faults::new(collector.faults, sources)),
    }
}

fn set(table: &Table, policy: Option<Policy>, collector: &mut Collector) -> Set {
    let empty = Table::default();
    let mut fields = Fields::new("the file", table);
    let mut part = |name, collector: &mut Collector| {
        let value = fields.take(name)?;
        collector.table(&format!("`{name}`"), value)
    };
    let (tasks, locks, chains) = (part("task", collector), part("lock", collector), part("chain", collector));
    let tasks_are_misspelt = fields.is_misspelt("task");
    fields.finish_with(collector, |key| match key {
        "node" | "machine" | "tasks" | "run" => {
            Some("that is of plans, which `tierce check` analyses".into())
        }
        _ => None,
    });
    let locks = locks::read(locks.unwrap_or(&empty), collector);
    let mut drafts = Vec::new();
    for (key, value) in &tasks.unwrap_or(&empty).entries {
        let what = format!("task `{}`", key.text);
        let Some(table) = collector.table(&what, value) else { continue };
        let task =
            Reading { fields: Fields::new(what, table), table, spot: key.spot, locks: &locks, collector };
        drafts.extend(task.read(&key.text));
    }
    if drafts.is_empty() && collector.faults.is_empty() && !tasks_are_misspelt {
        let fault = Fault::new("table_needs_tasks", Spot::default(), "there is no task");
        collector.add(fault.hint("[task.NAME] with period, work"));
    }
    if collector.faults.is_empty() {
        check_cpus(&drafts, collector);
        locks::check(&drafts, &locks, policy, collector);
    }
    let chains = chains::read(chains.unwrap_or(&empty), &mut drafts, collector);
    Set { tasks: drafts, locks, chains }
}

fn check_cpus(drafts: &[Draft], collector: &mut Collector) {
    let Some(first) = drafts.iter().find(|draft| draft.cpu.is_some()) else { return };
    for draft in drafts.iter().filter(|draft| draft.cpu.is_none()) {
        let message = format!("task `{}` has no `cpu`, and others have one", draft.entry.name);
        let fault = Fault::new("cpus_are_complete", draft.spot, message);
        collector.add(fault.hint("cpu = 0").other(first.spot, "this one has a CPU"));
    }
}

/// A task's table.
struct Reading<'r, 'v> {
    fields: Fields<'v>,
    table: &'v Table,
    spot: Spot,
    locks: &'r [Lock],
    collector: &'r mut Collector,
}

/// Keys that say when jobs of a period come or are due.
const OF_PERIODS: [&str; 4] = ["extra", "deadline", "jitter", "offset"];

impl Reading<'_, '_> {
    fn read(mut self, name: &str) -> Option<Draft> {
        let before = self.collector.faults.len();
        let (works, least_work_ns) = self.works();
        let misspelt = self.fields.is_misspelt("period") || self.fields.is_misspelt("separation");
        let distances = self.distances();
        let triggered = distances.is_empty();
        let requests = self.requests(&works, &distances);
        let first = |times: &[u64]| times.first().copied().unwrap_or(0);
        let work_ns = works.iter().copied().max().unwrap_or(0);
        let mut task = Task::new(work_ns.max(1), first(&distances).max(1));
        task.deadline_ns = distances.last().copied().unwrap_or(1).max(1);
        let extra_ns = self.time("extra");
        task.deadline_ns = self.duration("deadline").unwrap_or(task.deadline_ns);
        (task.jitter_ns, task.blocking_ns) = (self.time("jitter"), self.time("blocking"));
        let entry = self.entry(name, task, requests);
        let cpu = self.fields.whole("cpu", 0, i64::from(CPUS_MAX) - 1, self.collector);
        let within = (work_ns, "the work of a job");
        let sections = sections(&mut self.fields, within, self.locks, self.collector).unwrap_or_default();
        let sections = sections.iter().map(Section::critical).collect();
        if triggered && !misspelt {
            self.only_with_a_period(name);
        }
        let Self { fields, collector, .. } = self;
        fields
            .finish_with(collector, |key| (key == "phase").then(|| "here it is called `offset`".to_string()));
        // A task whose period is misspelt is no triggered one.
        let known = collector.faults.len() == before;
        known.then_some(())?;
        let cpu = cpu.and_then(|cpu| usize::try_from(cpu).ok());
        let (spot, bursts, after) = (self.spot, distances.len() > 1, Vec::new());
        Some(Draft { entry, spot, cpu, sections, least_work_ns, extra_ns, triggered, after, bursts })
    }

    /// What else a line of a table has.
    fn entry(&mut self, name: &str, task: Task, requests: Option<Requests>) -> Entry {
        let mut entry = Entry { requests, ..Entry::new(name.to_string(), task) };
        (entry.offset_ns, entry.suspension_ns) = (self.time("offset"), self.time("suspension"));
        let last_ns = self.time("last_section");
        let longest_ns = self.fields.time("section", self.collector).unwrap_or(last_ns);
        entry.sections = Sections { longest_ns, last_ns };
        entry.priority = self.fields.whole("priority", i64::MIN, i64::MAX, self.collector);
        entry.threshold = self.fields.whole("threshold", i64::MIN, i64::MAX, self.collector);
        entry.span_ns = self.duration("span");
        let criticality = self.fields.take("criticality");
        let work_hi_ns = self.duration("work_hi");
        let hi = criticality.and_then(|value| {
            let text = self.collector.text(&self.fields.what("criticality"), value)?;
            if !["lo", "hi"].contains(&text) {
                let fault = Fault::new("criticality_must_be_known", value.spot, "a criticality is lo or hi");
                self.collector.add(fault.value(text).bound("\"lo\", \"hi\""));
            }
            Some(text == "hi")
        });
        if criticality.is_some() || work_hi_ns.is_some() {
            let work_hi_ns = work_hi_ns.unwrap_or(task.work_ns);
            entry.criticality = Some(Criticality { hi: hi.unwrap_or(false), work_hi_ns });
        }
        if let Some((column, rule, message)) = entry.fault() {
            let at = self.table.entries.iter().find(|(key, _)| key.text == column);
            let spot = at.map_or(self.spot, |(_, value)| value.spot);
            self.collector.add(Fault::new(rule, spot, format!("{}: {message}", self.fields.what(column))));
        }
        entry
    }

    fn time(&mut self, name: &'static str) -> u64 {
        self.fields.time(name, self.collector).unwrap_or(0)
    }

    fn duration(&mut self, name: &'static str) -> Option<u64> {
        self.fields.duration(name, self.collector)
    }

    /// The most works of jobs in turn, and the least work of one.
    fn works(&mut self) -> (Vec<u64>, u64) {
        let misspelt = self.fields.is_misspelt("work");
        let what = self.fields.what("work");
        let Some(value) = self.fields.take("work") else {
            if !misspelt {
                let fault = Fault::new("work_must_be_given", self.spot, format!("{what} is not given"));
                self.collector.add(fault.hint("work = \"2ms\", or { min = \"1ms\", max = \"2ms\" }"));
            }
            return (Vec::new(), 0);
        };
        if let Kind::Table(table) = &value.kind {
            let mut fields = Fields::new(&what, table);
            let (least, most) = (fields.key("min"), fields.key("max"));
            let time = |key: Option<&(_, Value)>, collector: &mut Collector| {
                key.and_then(|(_, value)| collector.duration(&what, value))
            };
            let (least_ns, most_ns) = (time(least, self.collector), time(most, self.collector));
            fields.finish(self.collector);
            if least.is_none() || most.is_none() {
                let fault = wrong_kind(&what, value, "a time, a list of times, or { min, max }");
                self.collector.add(fault.hint("{ min = \"1ms\", max = \"2ms\" }"));
            }
            let (Some(least_ns), Some(most_ns)) = (least_ns, most_ns) else { return (Vec::new(), 0) };
            if least_ns > most_ns {
                let message = format!("{what} is at least more than at most");
                let fault = Fault::new("min_must_not_exceed_max", value.spot, message);
                self.collector.add(
                    fault.value(tierce_plan::show_time(least_ns)).bound(tierce_plan::show_time(most_ns)),
                );
            }
            return (vec![most_ns], least_ns);
        }
        (self.times(&what, value), 0)
    }

    /// The least times from a job to the next one, to the second after it, …; none: there is no period.
    fn distances(&mut self) -> Vec<u64> {
        let (period, separation) = (self.fields.key("period"), self.fields.key("separation"));
        if let (Some(period), Some(separation)) = (period, separation) {
            let message = "jobs come with a period, or at least a separation apart";
            let fault = Fault::new("period_or_separation", separation.0.spot, message);
            self.collector.add(fault.other(period.0.spot, "the period"));
        }
        if let Some((_, value)) = period {
            return self
                .collector
                .duration(&self.fields.what("period"), value)
                .map_or(vec![1], |ns| vec![ns]);
        }
        let what = self.fields.what("separation");
        // With a fault it is no triggered task either.
        let times = |times: Vec<u64>| if times.is_empty() { vec![1] } else { times };
        separation.map_or(Vec::new(), |(_, value)| times(self.times(&what, value)))
    }

    fn times(&mut self, what: &str, value: &Value) -> Vec<u64> {
        let list = self.collector.one_or_more(value);
        if list.is_empty() {
            self.collector.add(wrong_kind(what, value, "a time, or a list of times"));
        }
        list.iter().filter_map(|value| self.collector.duration(what, value)).collect()
    }

    /// Of lists.
    fn requests(&mut self, works: &[u64], distances: &[u64]) -> Option<Requests> {
        if works.is_empty() || distances.is_empty() || works.len().max(distances.len()) == 1 {
            return None;
        }
        let requests = Requests::new(works, distances);
        let falls = distances.windows(2).any(|pair| pair[0] > pair[1]);
        if requests.is_none() {
            let (rule, message) = match falls {
                true => (
                    "separations_must_ascend",
                    "each counts from the same job: to the next one, to the second after it",
                ),
                false => (
                    "lists_must_be_short",
                    "at most 4096 times in a list, which add up to less than 584 years",
                ),
            };
            let key = if falls || distances.len() > works.len() { "separation" } else { "work" };
            let at = self.table.entries.iter().find(|(other, _)| other.text == key);
            let spot = at.map_or(self.spot, |(_, value)| value.spot);
            self.collector.add(Fault::new(rule, spot, format!("{}: {message}", self.fields.what(key))));
        }
        requests
    }

    /// A task without a period is released by the one before it in its chains.
    fn only_with_a_period(&mut self, name: &str) {
        for (key, _) in self.table.entries.iter().filter(|(key, _)| OF_PERIODS.contains(&key.text.as_str())) {
            let message = format!(
                "task `{name}` has no period, so that the end of another job releases it: it has no `{}`",
                key.text
            );
            let fault = Fault::new("triggered_task_has_no_times", key.spot, message);
            self.collector.add(fault.hint(
                "give it a period, or leave this out; how long a chain may take is said by its `needs`",
            ));
        }
    }
}
