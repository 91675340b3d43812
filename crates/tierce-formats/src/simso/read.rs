//! From a file of SimSo to a plan.

use crate::decimal::{Decimal, Round};
use crate::draft::{Chain, Draft, Node, Release, Task};
use crate::text::{short, Refusal, Text, Word};
use crate::xml::Element;
use std::collections::{HashMap, HashSet};

const MS: u64 = 1_000_000;
const IN_MS: Decimal = Decimal::new(MS as u128, 1);

/// Which CPU a task is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Any, at any time.
    Everywhere,
    /// One, which Tierce finds.
    Somewhere,
    /// One, which the field `cpu` of the task names.
    Named,
}

/// Who runs first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    ShortestPeriod,
    LargestPriority,
    EarliestDeadline,
}

/// SimSo's schedulers that plans have: names of the classes, what decides, and where tasks are.
const CLASSES: [(&[&str], First, Where); 6] = [
    (&["EDF", "EDF2", "EDF_mono"], First::EarliestDeadline, Where::Everywhere),
    (&["RM", "RM_mono"], First::ShortestPeriod, Where::Everywhere),
    (&["FP"], First::LargestPriority, Where::Everywhere),
    (&["P_EDF", "P_EDF2", "P_EDF_WF", "LB_P_EDF"], First::EarliestDeadline, Where::Somewhere),
    (&["P_RM"], First::ShortestPeriod, Where::Somewhere),
    (&["Fixed_PEDF"], First::EarliestDeadline, Where::Named),
];

struct Reader<'a> {
    text: &'a Text,
    draft: Draft,
    /// Of tasks.
    first: First,
    place: Where,
    /// Index of each processor by its id.
    cpus: HashMap<u64, usize>,
    /// Work takes that much longer than on a processor of speed 1.
    slower: Decimal,
    /// One cycle in ns.
    cycle: Decimal,
}

/// A plan that is `root`.
pub fn read(root: Element, text: &Text) -> Result<Draft, Refusal> {
    let cycles = match root.get("cycles_per_ms") {
        Some(word) => match text.number(&word)? {
            none if none.is_zero() => {
                return Err(text.fault("cycles_must_not_be_zero", word.at, "a millisecond has no cycles"));
            }
            cycles => cycles,
        },
        None => Decimal::new(MS.into(), 1),
    };
    let cycle = IN_MS.by(cycles).unwrap_or(Decimal::new(1, 1));
    let mut reader = Reader {
        text,
        draft: Draft::default(),
        first: First::EarliestDeadline,
        place: Where::Everywhere,
        cpus: HashMap::new(),
        slower: Decimal::new(1, 1),
        cycle,
    };
    reader.head(root)?;
    reader.scheduler(root.child("sched")?)?;
    reader.processors(root.child("processors")?)?;
    let node = reader.node();
    reader.tasks(root.child("tasks")?, &node)?;
    Ok(reader.draft)
}

impl Reader<'_> {
    fn leave(&mut self, word: &Word, what: impl Into<String>, why: impl Into<String>) {
        self.draft.left_out.push(self.text.left_out(&word.at, what, why));
    }

    fn head(&mut self, root: Element) -> Result<(), Refusal> {
        self.draft.head.push(format!("Imported from {} (SimSo).", self.text.name()));
        if let Some(duration) = root.get("duration") {
            // Of a plan the user says how long it is simulated.
            let ns = self.text.amount(&duration, self.cycle, Round::Up)?;
            self.draft.head.push(format!("SimSo simulates {}.", tierce_plan::show_time(ns)));
        }
        let model = root.get("etm");
        if let Some(model) = model.filter(|model| model.text != "wcet") {
            let what = format!("execution time model `{}`", short(&model.text));
            self.leave(&model, what, "each job works its WCET");
        }
        Ok(())
    }

    fn scheduler(&mut self, element: Element) -> Result<(), Refusal> {
        let class = element.get("class").filter(|word| !word.text.is_empty());
        let class = class.or_else(|| element.get("className")).unwrap_or_else(|| element.word());
        let name = class.text.rsplit(['.', '/']).find(|part| *part != "py").unwrap_or("");
        match CLASSES.iter().find(|(names, _, _)| names.contains(&name)) {
            Some((_, first, place)) => (self.first, self.place) = (*first, *place),
            None => {
                let what = format!("scheduler `{}`", short(&class.text));
                self.leave(&class, what, "plans have no such policy; `edf` over all CPUs is in its place");
            }
        }
        for key in ["overhead", "overhead_activate", "overhead_terminate"] {
            if let Some(word) = element.get(key) {
                if !self.text.number(&word)?.is_zero() {
                    let what = format!("`{key}` of {} cycles", short(&word.text));
                    self.leave(&word, what, "costs are of switches and timers, not of decisions");
                }
            }
        }
        for field in element.named("field") {
            let name = field.need("name")?;
            let what = format!("field `{}` of the scheduler", short(&name.text));
            self.leave(&name, what, "it has no counterpart");
        }
        Ok(())
    }

    fn processors(&mut self, element: Element) -> Result<(), Refusal> {
        let migration = element.get("migration_overhead");
        let migration = migration.map(|word| self.text.amount(&word, self.cycle, Round::Up)).transpose()?;
        self.draft.migration_ns = migration.unwrap_or(0);
        let mut speeds = Vec::new();
        for cpu in element.named("processor") {
            let id = cpu.need("id")?;
            if self.cpus.insert(self.text.whole(&id)?, self.cpus.len()).is_some() {
                return Err(self.text.fault("id_must_be_unique", id.at, "another processor has this id"));
            }
            let mut switch_ns = 0;
            for key in ["cs_overhead", "cl_overhead"] {
                if let Some(word) = cpu.get(key) {
                    switch_ns += self.text.amount(&word, self.cycle, Round::Up)?;
                }
            }
            if self.cpus.len() > 1 && switch_ns != self.draft.switch_ns {
                self.leave(&cpu.word(), "costs of switches that differ by CPU", "all have the largest");
            }
            self.draft.switch_ns = self.draft.switch_ns.max(switch_ns);
            let one = Word { text: "1".into(), at: cpu.word().at };
            speeds.push(cpu.get("speed").unwrap_or(one));
        }
        self.draft.cpus = self.cpus.len();
        let Some(first) = speeds.first() else {
            return Err(self.text.fault(
                "processor_must_be_given",
                element.word().at,
                "there is no `processor`",
            ));
        };
        let most = tierce_policy::CPUS_MAX as usize;
        if self.cpus.len() > most {
            let fault =
                self.text.fault("too_many_processors", element.word().at, "there are too many processors");
            return Err(fault.value(self.cpus.len()).bound(most));
        }
        let speed = self.text.number(first)?;
        for word in &speeds {
            if self.text.number(word)? != speed {
                self.leave(word, "speeds that differ by CPU", "all CPUs are as fast as the first");
            }
        }
        self.slower = Decimal::new(1, 1).by(speed).ok_or_else(|| {
            self.text.fault(
                "speed_must_not_be_zero",
                first.at.clone(),
                "a processor of this speed never does anything",
            )
        })?;
        Ok(())
    }

    /// The scheduler of the plan; its name.
    fn node(&mut self) -> String {
        let policy = match self.first {
            First::EarliestDeadline => "edf",
            First::ShortestPeriod | First::LargestPriority => "fixed-priority",
        };
        let place = match self.place {
            _ if self.draft.cpus == 1 => ("cpu", "0"),
            Where::Everywhere => ("cpus", "\"all\""),
            Where::Somewhere | Where::Named => ("per_cpu", "true"),
        };
        let (name, _) = self.draft.name("sched");
        let lines = vec![(place.0.into(), place.1.into())];
        self.draft.nodes.push(Node { name: name.clone(), comment: None, policy, lines });
        name
    }

    fn tasks(&mut self, element: Element, node: &str) -> Result<(), Refusal> {
        let elements: Vec<_> = element.named("task").collect();
        let ids: Result<Vec<_>, _> =
            elements.iter().map(|task| task.need("id").and_then(|id| self.text.whole(&id))).collect();
        let ids = ids?;
        let place: HashMap<u64, usize> = ids.iter().enumerate().map(|(index, id)| (*id, index)).collect();
        if place.len() < ids.len() {
            let at = element.word().at;
            return Err(self.text.fault("id_must_be_unique", at, "two tasks have the same id"));
        }
        let mut follows = vec![None; elements.len()];
        for (index, task) in elements.iter().enumerate() {
            if let Some(word) = task.get("followed_by").filter(|word| !word.text.is_empty()) {
                let next = place.get(&self.text.whole(&word)?);
                let unknown = || {
                    let message = "no task has this id";
                    self.text.fault("task_must_exist", word.at.clone(), message).value(short(&word.text))
                };
                follows[index] = Some((*next.ok_or_else(unknown)?, word));
            }
        }
        self.aborted(&elements);
        let ranks = self.ranks(&elements)?;
        for (index, task) in elements.iter().enumerate() {
            self.task(*task, node, ranks[index])?;
        }
        self.chains(&follows);
        self.nobody_waits(&elements);
        Ok(())
    }

    /// Late jobs that SimSo aborts, which is its preset.
    fn aborted(&mut self, elements: &[Element]) {
        let preset = |task: &Element| task.get("abort_on_miss").is_none_or(|word| word.text == "yes");
        let aborted: Vec<_> = elements.iter().filter(|task| preset(task)).collect();
        if let Some(first) = aborted.first() {
            let what = format!("`abort_on_miss` of {} tasks", aborted.len());
            self.leave(&first.word(), what, "late jobs run to their end");
        }
    }

    /// Of each task: the larger, the more urgent; 0 where deadlines decide.
    fn ranks(&mut self, elements: &[Element]) -> Result<Vec<u64>, Refusal> {
        let mut ranks = vec![0; elements.len()];
        match self.first {
            First::EarliestDeadline => {}
            First::LargestPriority => {
                for (rank, task) in ranks.iter_mut().zip(elements) {
                    *rank = self.text.whole(&task.need("priority")?)?;
                }
            }
            First::ShortestPeriod => {
                let mut order = Vec::new();
                for (index, task) in elements.iter().enumerate() {
                    order.push((self.text.amount(&task.need("period")?, IN_MS, Round::Down)?, index));
                }
                order.sort_unstable();
                for (place, (_, index)) in order.iter().enumerate() {
                    ranks[*index] = (elements.len() - 1 - place) as u64;
                }
            }
        }
        if let Some(index) = ranks.iter().position(|rank| *rank > 65_535) {
            let at = elements[index].word().at;
            let fault = self.text.fault("priority_must_fit", at, "the priority of this task is too large");
            return Err(fault.value(ranks[index]).bound("65535"));
        }
        Ok(ranks)
    }

    fn task(&mut self, element: Element, node: &str, rank: u64) -> Result<(), Refusal> {
        let id = element.need("name")?;
        let (name, comment) = self.draft.name(&id.text);
        let release = self.release(element, &id)?;
        let wcet = element.need("WCET")?;
        let unit = IN_MS.times(self.slower).unwrap_or(IN_MS);
        let work_ns = self.text.some(&wcet, unit, Round::Up)?;
        let deadline = element.need("deadline")?;
        let deadline_ns = self.text.some(&deadline, IN_MS, Round::Down)?;
        let line = self.text.line(&deadline.at);
        if release == Release::Triggered {
            let what = format!("deadline of `{}`", short(&id.text));
            self.leave(&deadline, what, "it counts from the end of another task: give the chain `needs`");
        }
        if let Some(cost) = element.get("preemption_cost") {
            if !self.text.number(&cost)?.is_zero() {
                self.leave(&cost, "`preemption_cost`", "costs are of switches, and the same for all tasks");
            }
        }
        let mut edge = Vec::new();
        if self.place == Where::Named {
            let word = element.need("cpu")?;
            let cpu = self.cpus.get(&self.text.whole(&word)?).copied();
            let unknown =
                || self.text.fault("processor_must_exist", word.at.clone(), "no processor has this id");
            let cpu = cpu.ok_or_else(unknown)?;
            edge.extend((self.draft.cpus > 1).then(|| ("cpu", cpu.to_string())));
        } else if self.place == Where::Somewhere && self.draft.cpus > 1 {
            edge.push(("cpu", "\"any\"".to_string()));
        }
        if self.first != First::EarliestDeadline {
            edge.push(("priority", rank.to_string()));
        }
        self.draft.tasks.push(Task {
            name,
            line,
            whole: false,
            comment,
            under: node.to_string(),
            edge,
            release,
            least_work_ns: work_ns,
            work_ns,
            deadline_ns: Some(deadline_ns),
            soft: false,
            sections: Vec::new(),
        });
        Ok(())
    }

    fn release(&mut self, element: Element, id: &Word) -> Result<Release, Refusal> {
        let kind = element.get("task_type");
        let old = element.get("periodic").is_some_and(|word| word.text == "no");
        match kind.as_ref().map(|word| &word.text[..]) {
            Some("Sporadic") => self.dates(element, id),
            Some("APeriodic") => Ok(Release::Triggered),
            None if old => Ok(Release::Triggered),
            Some("Periodic") | None => {
                let period_ns = self.text.some(&element.need("period")?, IN_MS, Round::Down)?;
                let begin = element.get("activationDate");
                let begin = begin.map(|word| self.text.amount(&word, IN_MS, Round::Down)).transpose()?;
                Ok(Release::Periodic { period_ns, phase_ns: begin.unwrap_or(0), jitter_ns: 0 })
            }
            Some(other) => {
                let kind = kind.as_ref().unwrap_or(id);
                let fault =
                    self.text.fault("task_type_must_be_known", kind.at.clone(), "there is no such type");
                Err(fault.value(short(other)).bound("Periodic, Sporadic or APeriodic"))
            }
        }
    }

    /// Jobs at given times: as far apart as the nearest two of them, at least.
    fn dates(&mut self, element: Element, id: &Word) -> Result<Release, Refusal> {
        let word = element.need("list_activation_dates")?;
        let mut dates = Vec::new();
        for date in word.text.split(',').map(str::trim).filter(|date| !date.is_empty()) {
            let date = Word { text: date.to_string(), at: word.at.clone() };
            dates.push(self.text.amount(&date, IN_MS, Round::Down)?);
        }
        dates.sort_unstable();
        let gaps = || dates.windows(2).map(|pair| pair[1] - pair[0]);
        let Some(least_ns) = gaps().min() else {
            return Ok(match dates.first() {
                Some(at_ns) => Release::Once { at_ns: *at_ns },
                None => {
                    self.leave(&word, format!("task `{}`", short(&id.text)), "it has no activation date");
                    Release::Never
                }
            });
        };
        if least_ns == 0 {
            return Err(self.text.fault(
                "dates_must_differ",
                word.at,
                "a task has two activations at one time",
            ));
        }
        let extra_ns = gaps().max().unwrap_or(least_ns) - least_ns;
        if extra_ns > 0 {
            let what = format!("the {} activation dates of `{}`", dates.len(), short(&id.text));
            self.leave(&word, what, "distances are drawn between the shortest and the longest of them");
        }
        Ok(Release::Sporadic { separation_ns: least_ns, extra_ns, phase_ns: dates[0] })
    }

    /// What `followed_by` says, by task: from each that has releases of its own to the end.
    fn chains(&mut self, follows: &[Option<(usize, Word)>]) {
        let mut before = vec![Vec::new(); follows.len()];
        for (index, next) in follows.iter().enumerate() {
            let Some((next, word)) = next else { continue };
            let name = self.draft.tasks[*next].name.clone();
            if self.draft.tasks[*next].release != Release::Triggered {
                let why = format!("`{name}` has releases of its own");
                self.leave(word, "`followed_by`", why);
            } else if before[*next].is_empty() {
                before[*next].push(index);
            } else {
                let why = format!("`{name}` follows another task already, and would wait for both");
                self.leave(word, "`followed_by`", why);
            }
        }
        for first in 0..follows.len() {
            if matches!(self.draft.tasks[first].release, Release::Triggered | Release::Never) {
                continue;
            }
            let (mut path, mut at) = (vec![first], first);
            while let Some((next, _)) = follows[at].as_ref().filter(|(next, _)| before[*next] == [at]) {
                path.push(*next);
                at = *next;
            }
            if path.len() > 1 {
                let (name, _) = self.draft.name(&format!("from_{}", self.draft.tasks[first].name));
                let tasks = path.iter().map(|task| self.draft.tasks[*task].name.clone()).collect();
                let (delays, within_ns) = (Vec::new(), None);
                self.draft.chains.push(Chain { name, comment: None, tasks, delays, within_ns });
            }
        }
    }

    /// Triggered tasks that nothing releases have no jobs.
    fn nobody_waits(&mut self, elements: &[Element]) {
        let in_chains: HashSet<_> =
            self.draft.chains.iter().flat_map(|chain| chain.tasks.iter().cloned()).collect();
        for (index, element) in elements.iter().enumerate() {
            let task = &mut self.draft.tasks[index];
            if task.release == Release::Triggered && !in_chains.contains(&task.name) {
                task.release = Release::Never;
                let what = format!("jobs of `{}`", task.name);
                self.leave(&element.word(), what, "no task that has releases of its own leads to it");
            }
        }
    }
}
