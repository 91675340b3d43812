//! From a system of SMFF to a plan.

use crate::decimal::{Decimal, Round};
use crate::draft::{Chain, Draft, Node, Release, Task};
use crate::text::{short, Refusal, Text, Word};
use crate::xml::Element;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Tasks and links of one application.
const TASKS_MAX: usize = 300;

struct Reader<'a> {
    text: &'a Text,
    draft: Draft,
    unit: Decimal,
    /// Names of nodes by the id of a resource: those for tasks, those for links.
    resources: [HashMap<u64, String>; 2],
    /// All priorities of the file; a smaller one is more urgent.
    priorities: Vec<i64>,
    /// Nodes whose tasks are not preempted.
    whole: HashSet<String>,
}

/// An application that is read.
#[derive(Default)]
struct Application {
    /// Index of its first task in the draft.
    first: usize,
    /// Of each of its tasks: the one that releases it, and those that it releases, counted from the first.
    before: Vec<Option<usize>>,
    nexts: Vec<Vec<usize>>,
    /// Tasks, without links, by their id.
    by_id: HashMap<u64, usize>,
}

/// A plan that is `root`; one unit of its times is `unit_ns`.
pub fn read(root: Element, text: &Text, unit_ns: u64) -> Result<Draft, Refusal> {
    let unit = Decimal::new(unit_ns.into(), 1);
    let mut reader = Reader {
        text,
        draft: Draft::default(),
        unit,
        resources: Default::default(),
        priorities: Vec::new(),
        whole: HashSet::new(),
    };
    reader.draft.head.push(format!("Imported from {} (SMFF, pyCPA).", text.name()));
    reader.platform(root.child("Platform")?)?;
    let applications: Vec<_> = root.child("Applications")?.named("Application").collect();
    let mut priorities = BTreeSet::new();
    for part in applications.iter().flat_map(|application| application.children()) {
        for parameter in part.named("SchedulingParameter") {
            priorities.insert(reader.priority(parameter)?);
        }
    }
    reader.priorities = priorities.into_iter().collect();
    for application in applications {
        reader.application(application)?;
    }
    Ok(reader.draft)
}

impl Reader<'_> {
    fn leave(&mut self, word: &Word, what: impl Into<String>, why: impl Into<String>) {
        self.draft.left_out.push(self.text.left_out(&word.at, what, why));
    }

    fn platform(&mut self, platform: Element) -> Result<(), Refusal> {
        for resource in platform.children() {
            let kind = match resource.name() {
                "Resource" => 0,
                "CommResource" => 1,
                _ => continue,
            };
            let id = resource.need("resID")?;
            let name = resource.get("shortName").unwrap_or_else(|| id.clone());
            let scheduler = resource.child("Scheduler")?.need("name")?;
            match &scheduler.text[..] {
                "SPPScheduler" | "SPNPScheduler" => {}
                other => {
                    let fault =
                        self.text.fault("policy_must_be_known", scheduler.at, "there is no such scheduler");
                    return Err(fault.value(short(other)).bound("SPPScheduler or SPNPScheduler"));
                }
            }
            if self.draft.cpus >= tierce_policy::CPUS_MAX as usize {
                let fault = self.text.fault("too_many_processors", id.at, "there are too many resources");
                return Err(fault.bound(tierce_policy::CPUS_MAX));
            }
            let (node, comment) = self.draft.name(&name.text);
            if scheduler.text == "SPNPScheduler" {
                self.whole.insert(node.clone());
            }
            let lines = vec![("cpu".to_string(), self.draft.cpus.to_string())];
            self.draft.nodes.push(Node { name: node.clone(), comment, policy: "fixed-priority", lines });
            self.draft.cpus += 1;
            if self.resources[kind].insert(self.text.whole(&id)?, node).is_some() {
                return Err(self.text.fault("id_must_be_unique", id.at, "another resource has this id"));
            }
        }
        match self.draft.cpus {
            0 => {
                Err(self.text.fault("processor_must_be_given", platform.word().at, "there is no `Resource`"))
            }
            _ => Ok(()),
        }
    }

    fn priority(&self, parameter: Element) -> Result<i64, Refusal> {
        let word = parameter.need("priority")?;
        word.text.trim().parse().map_err(|_| {
            let fault =
                self.text.fault("number_must_be_whole", word.at.clone(), "a priority is a whole number");
            fault.value(short(&word.text))
        })
    }

    fn application(&mut self, element: Element) -> Result<(), Refusal> {
        let id = element.need("appID")?;
        let parts = element.children().filter(|part| ["Task", "TaskLink"].contains(&part.name())).count();
        if parts > TASKS_MAX {
            let fault =
                self.text.fault("tasks_must_be_few", id.at, "this application has too many tasks and links");
            return Err(fault.value(parts).bound(TASKS_MAX));
        }
        let mut maps: [HashMap<u64, Word>; 2] = Default::default();
        for map in element.child("Mapping")?.children() {
            // A link that a computing resource has is no task: the tasks are on one CPU.
            let (kind, of, to) = match map.name() {
                "mapTask" => (0, "tid", "rid"),
                "mapLink" if map.get("crid").is_some() => (1, "lid", "crid"),
                _ => continue,
            };
            maps[kind].insert(self.text.whole(&map.need(of)?)?, map.need(to)?);
        }
        let mut all = Application { first: self.draft.tasks.len(), ..Application::default() };
        for task in element.named("Task") {
            let id = task.need("ID")?;
            let number = self.text.whole(&id)?;
            let Some(resource) = maps[0].get(&number) else {
                return Err(self.text.fault(
                    "task_must_be_mapped",
                    id.at,
                    "no `mapTask` says on which resource it is",
                ));
            };
            if all.by_id.insert(number, all.before.len()).is_some() {
                return Err(self.text.fault("id_must_be_unique", id.at, "another task has this id"));
            }
            self.task(task, 0, resource, &mut all)?;
        }
        for link in element.named("TaskLink") {
            let id = self.text.whole(&link.need("ID")?)?;
            let [source, target] = [self.end(link, "src", &all)?, self.end(link, "trgt", &all)?];
            let mut from = source;
            if let Some(resource) = maps[1].get(&id) {
                let through = self.task(link, 1, resource, &mut all)?;
                self.follow(link, source, through, &mut all);
                from = through;
            }
            self.follow(link, from, target, &mut all);
        }
        self.releases(element, &all);
        self.chains(element, &format!("app_{}", id.text), &all)
    }

    /// The task at one end of a link.
    fn end(&self, link: Element, key: &str, all: &Application) -> Result<usize, Refusal> {
        let word = link.need(key)?;
        all.by_id.get(&self.text.whole(&word)?).copied().ok_or_else(|| {
            let message = "no task of the application has this id";
            self.text.fault("task_must_exist", word.at.clone(), message).value(short(&word.text))
        })
    }

    /// `target` is released by `source`, unless something else releases it already.
    fn follow(&mut self, link: Element, source: usize, target: usize, all: &mut Application) {
        let task = &self.draft.tasks[all.first + target];
        let name = task.name.clone();
        let why = if task.release != Release::Triggered {
            format!("`{name}` has releases of its own")
        } else if all.before[target].is_some() {
            format!("`{name}` follows another task already, and would wait for both")
        } else {
            all.before[target] = Some(source);
            all.nexts[source].push(target);
            return;
        };
        self.leave(&link.word(), format!("link to `{name}`"), why);
    }

    fn task(
        &mut self,
        element: Element,
        kind: usize,
        resource: &Word,
        all: &mut Application,
    ) -> Result<usize, Refusal> {
        let name = element.need("shortName")?;
        let profile = element.child("Profile")?;
        let release = self.release(profile.child("ActivationPattern")?, &name)?;
        let priority = self.priority(element.child("SchedulingParameter")?)?;
        let rank = self.priorities.len() - 1 - self.priorities.partition_point(|other| *other < priority);
        let mut work_ns = self.text.amount(&profile.need("wcet")?, self.unit, Round::Up)?;
        let least = profile.get("bcet").map(|word| self.text.amount(&word, self.unit, Round::Down));
        let least_work_ns = least.transpose()?.map(|ns| ns.max(1));
        if work_ns == 0 {
            self.leave(&name, format!("task `{}` without work", short(&name.text)), "it works 1 ns");
            work_ns = 1;
        }
        let under = self.resources[kind].get(&self.text.whole(resource)?).cloned().ok_or_else(|| {
            let message = "no resource has this id";
            self.text.fault("processor_must_exist", resource.at.clone(), message).value(short(&resource.text))
        })?;
        let line = self.text.line(&name.at);
        let (name, comment) = self.draft.name(&name.text);
        self.draft.tasks.push(Task {
            name,
            line,
            comment,
            whole: self.whole.contains(&under),
            under,
            edge: vec![("priority", rank.min(65_535).to_string())],
            // Nothing is asked of single tasks.
            soft: release.least_ns().is_some(),
            release,
            least_work_ns: least_work_ns.unwrap_or(work_ns).min(work_ns),
            work_ns,
            deadline_ns: None,
            sections: Vec::new(),
        });
        all.before.push(None);
        all.nexts.push(Vec::new());
        Ok(all.before.len() - 1)
    }

    fn release(&mut self, pattern: Element, task: &Word) -> Result<Release, Refusal> {
        let kind = pattern.need("name")?;
        match &kind.text[..] {
            "EventActivation" => Ok(Release::Triggered),
            "PJActivation" => {
                let period_ns = self.text.some(&pattern.need("activationPeriod")?, self.unit, Round::Down)?;
                let jitter = pattern.get("activationJitter");
                let jitter_ns = jitter.as_ref().map(|word| self.text.amount(word, self.unit, Round::Up));
                let mut jitter_ns = jitter_ns.transpose()?.unwrap_or(0);
                if jitter_ns >= period_ns {
                    let what = format!("jitter of `{}`", short(&task.text));
                    self.leave(
                        &kind,
                        what,
                        "it is below the period in plans: jobs of a task come in their order",
                    );
                    // Of whole units, as in the file.
                    jitter_ns =
                        period_ns - self.unit.whole(Round::Up).filter(|unit| *unit < period_ns).unwrap_or(1);
                }
                Ok(Release::Periodic { period_ns, phase_ns: 0, jitter_ns })
            }
            other => {
                let fault = self.text.fault(
                    "activation_must_be_known",
                    kind.at.clone(),
                    "there is no such activation",
                );
                Err(fault.value(short(other)).bound("PJActivation or EventActivation"))
            }
        }
    }

    /// What no task with releases of its own leads to has no jobs.
    fn releases(&mut self, element: Element, all: &Application) {
        let has_own = |index: &usize| self.draft.tasks[all.first + index].release.least_ns().is_some();
        let mut open: Vec<usize> = (0..all.before.len()).filter(has_own).collect();
        let mut reached = vec![false; all.before.len()];
        while let Some(index) = open.pop() {
            reached[index] = true;
            open.extend(&all.nexts[index]);
        }
        for index in (0..reached.len()).filter(|index| !reached[*index]) {
            let task = &mut self.draft.tasks[all.first + index];
            task.release = Release::Never;
            let what = format!("jobs of `{}`", task.name);
            self.leave(&element.word(), what, "no task that has releases of its own leads to it");
        }
    }

    /// From each task with releases of its own to each that releases none, and what is asked of them.
    fn chains(&mut self, element: Element, wanted: &str, all: &Application) -> Result<(), Refusal> {
        let leaves = |index: &usize| {
            let release = &self.draft.tasks[all.first + index].release;
            all.nexts[*index].is_empty() && *release == Release::Triggered
        };
        let mut ways: Vec<(Vec<usize>, Option<u64>)> =
            (0..all.before.len()).filter(leaves).map(|end| (way(&all.before, end), None)).collect();
        for constraint in element.named("Constraints").flat_map(|all| all.named("Constraint")) {
            let [start, end] =
                [self.end(constraint, "StartTaskId", all)?, self.end(constraint, "EndTaskId", all)?];
            let word = constraint.need("Constraint")?;
            let within_ns = self.text.some(&word, self.unit, Round::Down)?;
            let triggered = self.draft.tasks[all.first + end].release == Release::Triggered;
            // Circles have no jobs, and so are not triggered any more.
            let found = triggered.then(|| way(&all.before, end)).filter(|way| way[0] == start);
            let Some(found) = found else {
                self.leave(
                    &word,
                    "a constraint",
                    "it does not lead from a task with releases of its own to another one",
                );
                continue;
            };
            match ways.iter_mut().find(|(way, _)| *way == found) {
                Some((_, need)) => *need = Some(need.map_or(within_ns, |old| within_ns.min(old))),
                None => ways.push((found, Some(within_ns))),
            }
        }
        let several = ways.len() > 1;
        for (number, (way, within_ns)) in ways.into_iter().enumerate() {
            let wanted = if several { format!("{wanted}_{}", number + 1) } else { wanted.to_string() };
            let (name, comment) = self.draft.name(&wanted);
            let tasks = way.iter().map(|index| self.draft.tasks[all.first + index].name.clone()).collect();
            self.draft.chains.push(Chain { name, comment, tasks, delays: Vec::new(), within_ns });
        }
        Ok(())
    }
}

/// The tasks that lead to `end`, from the one that nothing releases.
fn way(before: &[Option<usize>], end: usize) -> Vec<usize> {
    let mut way = vec![end];
    while let Some(before) = before[way[way.len() - 1]] {
        way.push(before);
    }
    way.reverse();
    way
}
