//! What other tools can say of a plan: schedulers that are what CPUs run, with tasks directly below them.

use crate::draft::one_line;
use crate::text::LeftOut;
use std::collections::HashMap;
use tierce_plan::{show_time, Chain, Child, Edge, Fault, Faults, Load, Node, Plan, Spot, Task, Work};

/// What a scheduler goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Priority,
    Deadline,
}

/// A root of one CPU, or of all.
pub struct Scheduler<'a> {
    pub node: &'a Node,
    pub order: Order,
    pub cpus: &'a [u32],
}

/// A task directly below a scheduler.
pub struct Member<'a> {
    /// Index into the plan's tasks.
    pub index: usize,
    pub task: &'a Task,
    /// Index into [`Flat::schedulers`].
    pub scheduler: usize,
    /// Larger is more urgent; 0 where deadlines decide.
    pub priority: u64,
    /// Relative deadline by which it is scheduled; 0: that of its load.
    pub deadline_ns: u64,
    /// What it does: jobs.
    pub load: &'a Load,
}

/// A plan as other tools know it.
pub struct Flat<'a> {
    pub plan: &'a Plan,
    pub schedulers: Vec<Scheduler<'a>>,
    pub members: Vec<Member<'a>>,
    /// Of each task of the plan: those that release it, each with the delay after it ([`Plan::triggers`]).
    pub triggers: Vec<Vec<(usize, u64)>>,
    /// Chains by their first task.
    pub chains: HashMap<usize, Vec<&'a Chain>>,
    pub left_out: Vec<LeftOut>,
}

impl<'a> Flat<'a> {
    /// The part of `plan` that other tools have, and a list of the rest.
    pub fn new(plan: &'a Plan) -> Result<Self, Faults> {
        let triggers = triggers(plan);
        let (schedulers, members, left_out) = (Vec::new(), Vec::new(), Vec::new());
        let mut chains: HashMap<usize, Vec<&Chain>> = HashMap::new();
        for chain in &plan.chains {
            chains.entry(chain.links[0].task).or_default().push(chain);
        }
        let mut flat = Self { plan, schedulers, members, triggers, chains, left_out };
        let place: Vec<_> = plan.nodes.iter().map(|node| flat.scheduler(node)).collect();
        let mut edges: Vec<Vec<&Edge>> = vec![Vec::new(); plan.tasks.len()];
        for edge in &plan.edges {
            if let Child::Task(task) = edge.child {
                edges[task].push(edge);
            }
        }
        for (index, task) in plan.tasks.iter().enumerate() {
            flat.member(index, task, &edges[index], &place);
        }
        flat.without_the_unreleased();
        flat.machine();
        if flat.members.is_empty() {
            let message = "no task of the plan can be said in this format";
            let spot = plan.tasks.first().map(|task| task.spot).unwrap_or_default();
            return Err(no_such_thing(plan, spot, message));
        }
        Ok(flat)
    }

    /// Leaves out what is released by a task that is left out.
    fn without_the_unreleased(&mut self) {
        let mut there = vec![false; self.plan.tasks.len()];
        self.members.iter().for_each(|member| there[member.index] = true);
        let mut nexts = vec![Vec::new(); there.len()];
        for (task, triggers) in self.triggers.iter().enumerate() {
            triggers.iter().for_each(|(from, _)| nexts[*from].push(task));
        }
        let mut open: Vec<usize> = (0..there.len()).filter(|task| !there[*task]).collect();
        while let Some(gone) = open.pop() {
            for next in std::mem::take(&mut nexts[gone]) {
                if std::mem::take(&mut there[next]) {
                    let task = &self.plan.tasks[next];
                    self.leave(task.spot, format!("task `{}`", task.name), "what releases it is left out");
                    open.push(next);
                }
            }
        }
        self.members.retain(|member| there[member.index]);
    }

    /// Forgets schedulers that have no tasks, for formats that have not all of them.
    pub fn keep_those_in_use(&mut self) {
        let mut place = vec![None; self.schedulers.len()];
        for member in &self.members {
            place[member.scheduler] = Some(0);
        }
        place.iter_mut().flatten().enumerate().for_each(|(index, new)| *new = index);
        let mut old = 0..;
        self.schedulers.retain(|_| old.next().is_some_and(|old: usize| place[old].is_some()));
        for member in &mut self.members {
            member.scheduler = place[member.scheduler].unwrap_or(0);
        }
    }

    /// Chains that begin with a task.
    pub fn chains_from(&self, task: usize) -> &[&'a Chain] {
        self.chains.get(&task).map_or(&[], |chains| chains)
    }

    /// One more thing that is left out.
    pub fn leave(&mut self, spot: Spot, what: impl Into<String>, why: impl Into<String>) {
        let line = self.plan.sources.place(spot).line;
        self.left_out.push(LeftOut { line, what: one_line(&what.into()), why: why.into() });
    }

    /// The scheduler that a node is.
    fn scheduler(&mut self, node: &'a Node) -> Option<usize> {
        let order = match policy(node) {
            "fixed-priority" => Order::Priority,
            "edf" => Order::Deadline,
            other => {
                self.leave(
                    node.spot,
                    format!("node `{}`", node.name),
                    format!("there is no policy `{other}`"),
                );
                return None;
            }
        };
        if node.roots.is_empty() {
            let why = "it is no root of a CPU, and budgets and groups of tasks are not known";
            self.leave(node.spot, format!("node `{}`", node.name), why);
            return None;
        }
        self.schedulers.push(Scheduler { node, order, cpus: &node.roots });
        Some(self.schedulers.len() - 1)
    }

    fn member(&mut self, index: usize, task: &'a Task, edges: &[&Edge], place: &[Option<usize>]) {
        let what = format!("task `{}`", task.name);
        let load = match &task.load {
            Some(load @ (Load::Periodic(_) | Load::Sporadic(_) | Load::Triggered(_))) => load,
            Some(_) => return self.leave(task.spot, what, "its load is no series of jobs"),
            None => return self.leave(task.spot, what, "it has no load"),
        };
        let edge = match edges {
            [edge] => edge,
            _ => return self.leave(task.spot, what, "it has several parents"),
        };
        let Some(scheduler) = place[edge.parent] else {
            let parent = &self.plan.nodes[edge.parent].name;
            return self.leave(task.spot, what, format!("its node `{parent}` is left out"));
        };
        let of = |name| parameter(&self.plan.nodes[edge.parent], edge, name);
        let (priority, deadline_ns) = match self.schedulers[scheduler].order {
            Order::Priority => (of("priority"), 0),
            Order::Deadline => (0, of("deadline")),
        };
        if of("quantum") > 0 {
            self.leave(
                task.spot,
                format!("`quantum` of `{}`", task.name),
                "equals are served in order of arrival",
            );
        }
        if !task.needs.is_empty() {
            self.leave(
                task.spot,
                format!("`needs` of `{}`", task.name),
                "guarantees of CPU time are not known",
            );
        }
        if task.affinity.is_some() {
            self.leave(
                task.spot,
                format!("`affinity` of `{}`", task.name),
                "a task may run on each CPU of its scheduler",
            );
        }
        self.members.push(Member { index, task, scheduler, priority, deadline_ns, load });
    }

    /// A task whose jobs cannot come in bursts in the file.
    pub fn leave_bursts(&mut self, member: &Member) {
        if member.load.is_bursty() {
            let what = format!("all but the first `separation` of `{}`", member.task.name);
            self.leave(member.task.spot, what, "its jobs are as far apart as two may be");
        }
    }

    /// A task whose jobs cannot be without preemption in the file, or not in parts.
    pub fn leave_regions(&mut self, member: &Member) {
        if !member.load.preemption().is_full() {
            let what = format!("regions without preemption of `{}`", member.task.name);
            self.leave(member.task.spot, what, "its jobs are preempted at any time");
        }
    }

    /// What of `[machine]` no file has.
    fn machine(&mut self) {
        if self.plan.machine.costs.level_ns > 0 {
            let what = format!("cost per level {}", show_time(self.plan.machine.costs.level_ns));
            self.left_out.push(LeftOut { line: 1, what, why: "there are no levels".into() });
        }
        let others = self.plan.nodes.iter().filter(|node| node.default);
        let others: Vec<_> =
            others.map(|node| (node.spot, format!("default node `{}`", node.name))).collect();
        for (spot, what) in others {
            self.leave(spot, what, "there are no tasks but those that are listed");
        }
    }
}

/// What releases each task.
fn triggers(plan: &Plan) -> Vec<Vec<(usize, u64)>> {
    let mut all = vec![Vec::new(); plan.tasks.len()];
    for pair in plan.chains.iter().flat_map(|chain| chain.links.windows(2)) {
        let (task, trigger) = (pair[1].task, (pair[0].task, pair[1].delay_ns));
        let triggered = matches!(plan.tasks[task].load, Some(Load::Triggered(_)));
        if triggered && !all[task].contains(&trigger) {
            all[task].push(trigger);
        }
    }
    all
}

/// A plan of which a format can say nothing useful.
pub fn no_such_thing(plan: &Plan, spot: Spot, message: &str) -> Faults {
    let hint = "formats of other tools have schedulers of whole CPUs, by priority or deadline, with tasks directly below";
    let fault = Fault::new("format_must_have_it", spot, message).hint(hint);
    Faults::new(vec![fault], plan.sources.clone())
}

/// Name of a node's policy.
pub fn policy(node: &Node) -> &'static str {
    let known = tierce_policy::policies().iter().find(|record| record.number == node.policy);
    known.map_or("", |record| record.name)
}

/// A parameter of an edge by its name; 0 where the policy has none of that name.
fn parameter(parent: &Node, edge: &Edge, name: &str) -> u64 {
    let record = tierce_policy::policies().iter().find(|record| record.number == parent.policy);
    let index = record.and_then(|record| record.edge_params.iter().position(|param| param.name == name));
    index.map_or(0, |index| edge.params[index])
}

/// Work of each job.
pub fn work(load: &Load) -> Option<&Work> {
    load.work()
}
