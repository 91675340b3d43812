//! `[lock.NAME]`, and `sections` of loads: what they are, and which do not go together.

use super::names::is_plain;
use super::state::Resolver;
use crate::model::shape::Shape;
use crate::model::{Child, Load, Lock, Plan, Protocol, Section};
use crate::policies;
use crate::policies::reservation::{Replenishment, ServerRules};
use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::tree::{closest, listed, Collector, Fields, Table, Value};
use crate::text::units::show_time;
use std::collections::BTreeSet;
use tierce_analysis::locks::{deadlock, CriticalSection, Request};

impl Resolver {
    pub(super) fn locks(&mut self, table: &Table) {
        for (key, value) in &table.entries {
            let name = &key.text;
            if !is_plain(key, &mut self.collector) {
                continue;
            }
            if let Some(first) = self.plan.locks.iter().find(|lock| lock.name == *name) {
                let fault = Fault::new("redefined", key.spot, format!("lock `{name}` is given twice"));
                self.collector.add(fault.other(first.spot, "first here"));
                continue;
            }
            let what = format!("lock `{name}`");
            let Some(table) = self.collector.table(&what, value) else { continue };
            let mut fields = Fields::new(&what, table);
            let protocol = protocol(&what, key.spot, &mut fields, &mut self.collector);
            fields.finish(&mut self.collector);
            self.plan.locks.push(Lock { name: name.clone(), protocol, spot: key.spot });
        }
    }
}

fn protocol(what: &str, spot: Spot, fields: &mut Fields, collector: &mut Collector) -> Protocol {
    let names = Protocol::NAMES.map(|(name, _)| name);
    let preset = Protocol::Inheritance; // only after a fault
    let Some(value) = fields.take("protocol") else {
        if !fields.is_misspelt("protocol") {
            let fault = Fault::new("protocol_must_be_given", spot, format!("{what} has no protocol"));
            collector.add(fault.hint(format!("protocol = …, one of {}", listed(&names))));
        }
        return preset;
    };
    let Some(text) = collector.text(&format!("`protocol` of {what}"), value) else { return preset };
    let found = Protocol::NAMES.iter().find(|(name, _)| *name == text);
    found.map_or_else(
        || {
            let message = format!("`protocol` of {what} is not one there is");
            let hint = format!("one of {}", listed(&names));
            collector.add(Fault::new("protocol_must_be_known", value.spot, message).value(text).hint(hint));
            preset
        },
        |(_, protocol)| *protocol,
    )
}

/// `sections = [ { lock = "bus", at = "1ms", length = "2ms", sections = [ … ] }, … ]` that end within so much work, which has a name; none after a fault.
pub fn sections(
    fields: &mut Fields,
    within: (u64, &str),
    locks: &[Lock],
    collector: &mut Collector,
) -> Option<Vec<Section>> {
    let Some(value) = fields.take("sections") else { return Some(Vec::new()) };
    list(value, within, &mut Vec::new(), locks, collector)
}

/// Sections one after the other; `held`: locks of those around them.
fn list(
    value: &Value,
    within: (u64, &str),
    held: &mut Vec<usize>,
    locks: &[Lock],
    collector: &mut Collector,
) -> Option<Vec<Section>> {
    let items = collector.list("`sections`", value)?;
    let mut from_ns = 0;
    let read: Vec<_> =
        items.iter().map(|item| section(item, &mut from_ns, within, held, locks, collector)).collect();
    read.into_iter().collect()
}

/// One of the list, which begins at `from_ns` at the earliest and sets that to its end.
fn section(
    value: &Value,
    from_ns: &mut u64,
    within: (u64, &str),
    held: &mut Vec<usize>,
    locks: &[Lock],
    collector: &mut Collector,
) -> Option<Section> {
    let table = collector.table("a section", value)?;
    let has = |name: &str| table.entries.iter().any(|(key, _)| key.text == name);
    let mut fields = Fields::new("a section", table);
    if !has("lock") || !has("length") {
        let message = "a section says which lock it holds, and for how much CPU time";
        let fault = Fault::new("section_needs_lock_and_length", value.spot, message);
        collector.add(fault.hint("{ lock = \"bus\", at = \"1ms\", length = \"2ms\" }"));
    }
    let named = fields.take("lock");
    let lock = named.and_then(|value| find(value, locks, collector));
    if let (Some(named), Some(lock)) = (named, lock.filter(|lock| held.contains(lock))) {
        let message = "a job that requests a lock that it has waits for itself";
        collector.add(Fault::new("lock_is_held_already", named.spot, message).value(&locks[lock].name));
    }
    let at = fields.take("at");
    let at_ns = at.map_or(Some(*from_ns), |value| collector.time("`at`", value));
    let length_ns = fields.duration("length", collector);
    if let (Some(at), Some(at_ns)) = (at, at_ns.filter(|at_ns| at_ns < from_ns)) {
        let message = "a section begins before the one before it has ended";
        let fault = Fault::new("sections_follow_each_other", at.spot, message);
        collector.add(fault.value(show_time(at_ns)).bound(format!("at least {}", show_time(*from_ns))));
    }
    let end_ns = at_ns.unwrap_or(*from_ns).saturating_add(length_ns.unwrap_or(0));
    if end_ns > within.0 {
        let message = format!("the section ends after {}", within.1);
        let fault = Fault::new("section_must_fit_the_work", value.spot, message);
        collector.add(fault.value(show_time(end_ns)).bound(show_time(within.0)));
    }
    *from_ns = end_ns.max(*from_ns);
    let inner = fields.take("sections");
    held.extend(lock);
    let within = (length_ns.unwrap_or(u64::MAX), "the one around it");
    let sections = inner.map_or(Some(Vec::new()), |value| list(value, within, held, locks, collector));
    held.truncate(held.len() - usize::from(lock.is_some()));
    fields.finish(collector);
    Some(Section { lock: lock?, at_ns: at_ns?, length_ns: length_ns?, sections: sections? })
}

fn find(value: &Value, locks: &[Lock], collector: &mut Collector) -> Option<usize> {
    let name = collector.text("`lock`", value)?;
    let found = locks.iter().position(|lock| lock.name == name);
    if found.is_none() {
        let names: Vec<_> = locks.iter().map(|lock| lock.name.as_str()).collect();
        let hint = match closest(name, names.iter().copied()) {
            Some(close) => format!("did you mean \"{close}\"?"),
            None if names.is_empty() => "[lock.NAME] with `protocol = …`".into(),
            None => format!("there are {}", listed(&names)),
        };
        let fault = Fault::new("lock_must_exist", value.spot, format!("there is no lock `{name}`"));
        collector.add(fault.hint(hint));
    }
    found
}

impl Section {
    /// For the analysis, which does not ask where it is.
    pub fn critical(&self) -> CriticalSection {
        let inner = self.sections.iter().map(Self::critical).collect();
        CriticalSection { lock: self.lock, length_ns: self.length_ns, inner }
    }

    /// Its lock and those of the sections within.
    fn locks(&self, all: &mut BTreeSet<usize>) {
        all.insert(self.lock);
        self.sections.iter().for_each(|section| section.locks(all));
    }
}

impl Plan {
    /// How urgent a task is among those directly below the same node, less is more: its priority from the top, or its
    /// relative deadline. `None`: its node orders by neither, or it has several parents.
    pub fn urgency(&self, shape: &Shape, task: usize) -> Option<u64> {
        let [edge] = shape.task_parents[task][..] else { return None };
        let edge = &self.edges[edge];
        let policy = policies::by_number(self.nodes[edge.parent].policy)?;
        let param = |name| policies::position(&policy.edge_params, name).map(|at| edge.params[at]);
        match policy.name {
            "fixed-priority" => param("priority").map(|priority| u64::MAX - priority),
            "edf" => {
                let own = self.tasks[task].load.as_ref().and_then(|load| load.deadline_ns());
                param("deadline").filter(|ns| *ns > 0).into_iter().chain(own).min()
            }
            _ => None,
        }
    }

    /// It is in no set, or its first member.
    pub fn is_first_of_set(&self, task: usize) -> bool {
        self.tasks[task].set.is_none_or(|set| self.sets[set].members.start == task)
    }

    /// The node of a task whose only parent is a `fixed-priority` node with one CPU and no parent.
    pub fn has_whole_cpu(&self, shape: &Shape, task: usize) -> Option<usize> {
        let [edge] = shape.task_parents[task][..] else { return None };
        let node = self.edges[edge].parent;
        let policy = policies::by_number(self.nodes[node].policy)?;
        let alone = shape.parents[node].is_empty()
            && !shape.moves(self, edge)
            && !shape.task_reach(self, task).are_several();
        (policy.name == "fixed-priority" && alone).then_some(node)
    }

    /// The edge with the budget that a task runs on, where that knows of its locks: the task's own, or that of the `fixed-priority` node of tasks alone that it is
    /// directly below; in the order of priorities, and replenished at the end of periods.
    pub fn budget_above(&self, shape: &Shape, task: usize) -> Option<usize> {
        let [own] = shape.task_parents[task][..] else { return None };
        let above = self.edges[own].parent;
        let edge = match policies::by_number(self.nodes[above].policy)?.name {
            "fixed-priority" => {
                let alone = |edge: &usize| match self.edges[*edge].child {
                    Child::Task(task) => shape.task_parents[task].len() == 1 && !shape.moves(self, *edge),
                    _ => false,
                };
                let [edge] = shape.parents[above][..] else { return None };
                shape.children[above].iter().all(alone).then_some(edge)?
            }
            _ => own,
        };
        let node = self.edges[edge].parent;
        let policy = policies::by_number(self.nodes[node].policy)?;
        let rules = ServerRules::of(self, node);
        let known = matches!(rules.replenishment, Replenishment::Hard | Replenishment::Periodic);
        let fits = policy.name == "reservation" && rules.priority.is_some() && known && !rules.grows;
        (fits && who_moves(self, shape, node).is_none()).then_some(edge)
    }

    /// The priority of that budget.
    pub fn budget_priority(&self, shape: &Shape, task: usize) -> Option<u64> {
        let edge = &self.edges[self.budget_above(shape, task)?];
        Some(edge.params[ServerRules::of(self, edge.parent).priority?])
    }

    /// The locks that jobs of a task hold at some time.
    pub fn locks_of(&self, task: usize) -> BTreeSet<usize> {
        self.tasks[task].load.as_ref().map_or_else(BTreeSet::new, Load::locks)
    }
}

impl Load {
    /// The locks that jobs hold at some time.
    pub fn locks(&self) -> BTreeSet<usize> {
        let mut locks = BTreeSet::new();
        self.sections().iter().for_each(|section| section.locks(&mut locks));
        locks
    }
}

/// Locks that do not go with each other, with the CPUs or with the policy of who uses them.
pub fn faults(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    if plan.locks.is_empty() {
        return;
    }
    let locks: Vec<_> = (0..plan.tasks.len()).map(|task| plan.locks_of(task)).collect();
    for (index, (task, locks)) in plan.tasks.iter().zip(&locks).enumerate() {
        let mut protocols = locks.iter().map(|lock| &plan.locks[*lock]);
        let Some(first) = protocols.next() else { continue };
        let first_of_set = plan.is_first_of_set(index);
        if let Some(other) = protocols.find(|lock| lock.protocol != first.protocol).filter(|_| first_of_set) {
            let message =
                format!("`{}` uses locks of two protocols, `{}` and `{}`", task.name, first.name, other.name);
            let fault = Fault::new("locks_of_a_task_have_one_protocol", task.spot, message);
            faults.push(fault.value(other.protocol.name()).bound(first.protocol.name()));
        }
    }
    for (index, lock) in plan.locks.iter().enumerate() {
        let users: Vec<_> = (0..plan.tasks.len()).filter(|task| locks[*task].contains(&index)).collect();
        if lock.protocol.is_between_cpus() {
            on_whole_cpus(plan, shape, lock, &users, faults);
            continue;
        }
        one_cpu(plan, shape, lock, &users, faults);
        if lock.protocol.is_between_budgets() {
            below_budgets(plan, shape, lock, &users, faults);
        }
        if lock.protocol.has_ceilings() {
            one_node(plan, shape, lock, &users, faults);
        }
    }
    circles(plan, faults);
}

/// Nobody waits for another CPU.
fn one_cpu(plan: &Plan, shape: &Shape, lock: &Lock, users: &[usize], faults: &mut Vec<Fault>) {
    let Some(first) = users.first() else { return };
    let reach = |task: usize| shape.task_reach(plan, task);
    let elsewhere = |task: &&usize| reach(**task).are_several() || reach(**task) != reach(*first);
    if let Some(other) = users.iter().find(elsewhere) {
        let (name, task) = (&plan.tasks[*first].name, &plan.tasks[*other]);
        let message = if reach(*other).are_several() {
            format!("`{}`, which uses lock `{}`, may run on several CPUs", task.name, lock.name)
        } else {
            format!("`{name}` and `{}`, which use lock `{}`, are on different CPUs", task.name, lock.name)
        };
        let fault = Fault::new("lock_is_for_one_cpu", task.spot, message);
        let hint =
            "protocol = \"msrp\", \"mrsp\", \"mpcp\" and \"fmlp+\" are for tasks of several CPUs, each of which stays on one";
        faults.push(fault.hint(hint).other(lock.spot, "the lock"));
    }
}

/// Who waits or holds is on a CPU where no node above it runs others, and has one lock at a time.
fn on_whole_cpus(plan: &Plan, shape: &Shape, lock: &Lock, users: &[usize], faults: &mut Vec<Fault>) {
    let (whole, nested, wait) = match lock.protocol.spins() {
        true => ("spinning_needs_a_whole_cpu", "spinning_sections_are_not_nested", "spin"),
        false => ("suspending_needs_a_whole_cpu", "suspending_sections_are_not_nested", "suspend themselves"),
    };
    for task in users.iter().filter(|task| plan.is_first_of_set(**task)) {
        let message = match plan.has_whole_cpu(shape, *task) {
            None => "directly below a `fixed-priority` node that has one CPU and no parent".to_string(),
            Some(node) => match who_moves(plan, shape, node) {
                Some(child) => format!(
                    "on a CPU to which nobody moves, as `{child}` may below `{}`",
                    plan.nodes[node].base
                ),
                None => continue,
            },
        };
        let (name, about) = (&plan.tasks[*task].name, &lock.name);
        let message = format!("`{name}` uses lock `{about}`, whose waiters {wait}: such tasks are {message}");
        let fault = Fault::new(whole, plan.tasks[*task].spot, message);
        let hint = "one `fixed-priority` node for each CPU, with `cpu = N`, or `per_cpu = true`";
        faults.push(fault.value(lock.protocol.name()).hint(hint).other(lock.spot, "the lock"));
    }
    let nests = |task: &&usize| {
        let load = plan.tasks[**task].load.as_ref();
        load.is_some_and(|load| load.sections().iter().any(|section| !section.sections.is_empty()))
    };
    for task in users.iter().filter(|task| plan.is_first_of_set(**task)).filter(nests) {
        let message = format!(
            "`{}` uses lock `{}`, whose waiters {wait}, and has a section within another one",
            plan.tasks[*task].name, lock.name
        );
        let fault = Fault::new(nested, plan.tasks[*task].spot, message);
        let hint = "one lock for both, or one section after the other";
        faults.push(fault.value(lock.protocol.name()).hint(hint).other(lock.spot, "the lock"));
    }
}

/// Somebody that comes to and goes from this node, a replica of a spread one.
pub fn who_moves<'a>(plan: &'a Plan, shape: &Shape, node: usize) -> Option<&'a str> {
    let moving = shape.children[node].iter().find(|edge| shape.moves(plan, **edge))?;
    Some(plan.item_name(plan.edges[*moving].child))
}

/// Each user is below a budget in the order of priorities, all of them below one node, and its sections fit in a budget.
fn below_budgets(plan: &Plan, shape: &Shape, lock: &Lock, users: &[usize], faults: &mut Vec<Fault>) {
    let node = |task: usize| plan.budget_above(shape, task).map(|edge| plan.edges[edge].parent);
    let first = users.iter().find_map(|task| node(*task));
    for task in users.iter().filter(|task| plan.is_first_of_set(**task)) {
        let (name, spot) = (&plan.tasks[*task].name, plan.tasks[*task].spot);
        let fault = |rule, message| {
            Fault::new(rule, spot, format!("`{name}` uses lock `{}`: {message}", lock.name))
                .other(lock.spot, "the lock")
        };
        let budget = plan.budget_above(shape, *task);
        let Some(edge) = budget.filter(|edge| Some(plan.edges[*edge].parent) == first) else {
            let message = match budget.and(first) {
                Some(node) => format!("all its users are below `{}`", plan.nodes[node].name),
                None => "its users have a budget, or are directly below a `fixed-priority` node that has one, and has only tasks, which have no other parent; and its `reservation` \
                         node has `order = \"fixed-priority\"` and `replenishment = \"hard\"` or \"periodic\", and no `gain`"
                    .into(),
            };
            let fault = fault("lock_needs_budgets_by_priority", message).value(lock.protocol.name());
            faults.push(fault.hint("protocol = \"inheritance\" is for tasks anywhere on one CPU"));
            continue;
        };
        let budget_ns = policies::by_number(plan.nodes[plan.edges[edge].parent].policy)
            .and_then(policies::budget_and_period)
            .map_or(u64::MAX, |(budget, _)| plan.edges[edge].params[budget]);
        let sections = plan.tasks[*task].load.as_ref().map_or(&[][..], |load| load.sections());
        if let Some(length_ns) =
            sections.iter().map(|section| section.length_ns).max().filter(|ns| *ns > budget_ns)
        {
            let message = "a section is longer than the budget".to_string();
            let fault = fault("section_must_fit_the_budget", message).value(show_time(length_ns));
            faults.push(fault.bound(show_time(budget_ns)));
        }
    }
}

/// Ceilings compare priorities or deadlines of one node.
fn one_node(plan: &Plan, shape: &Shape, lock: &Lock, users: &[usize], faults: &mut Vec<Fault>) {
    let wanted = if lock.protocol == Protocol::Srp { "edf" } else { "fixed-priority" };
    let above = |task: usize| match shape.task_parents[task][..] {
        [edge] if plan.edges[edge].child == Child::Task(task) => Some(plan.edges[edge].parent),
        _ => None,
    };
    let Some(first) = users.first() else { return };
    let fits = |task: usize| {
        let node = above(task).filter(|node| Some(*node) == above(*first));
        let policy = node.and_then(|node| policies::by_number(plan.nodes[node].policy));
        policy.is_some_and(|policy| policy.name == wanted)
    };
    let node = above(*first).and_then(|node| Some((node, who_moves(plan, shape, node)?)));
    if let Some((node, child)) = node.filter(|_| users.iter().all(|task| fits(*task))) {
        let message = format!(
            "`{}` uses lock `{}`, whose protocol is for CPUs to which nobody moves, as `{child}` may below `{}`",
            plan.tasks[*first].name, lock.name, plan.nodes[node].base
        );
        let fault = Fault::new("protocol_must_fit_the_policy", plan.tasks[*first].spot, message);
        let hint = "protocol = \"inheritance\" is for tasks anywhere on one CPU";
        faults.push(fault.value(lock.protocol.name()).hint(hint).other(lock.spot, "the lock"));
    }
    if let Some(task) = users.iter().find(|task| !fits(**task)) {
        let message = format!(
            "`{}` uses lock `{}`, whose protocol is for tasks directly below one `{wanted}` node",
            plan.tasks[*task].name, lock.name
        );
        let fault = Fault::new("protocol_must_fit_the_policy", plan.tasks[*task].spot, message);
        let hint = "protocol = \"inheritance\" is for tasks anywhere on one CPU";
        faults.push(fault.value(lock.protocol.name()).hint(hint).other(lock.spot, "the lock"));
    }
}

/// Tasks that may wait for each other for ever.
fn circles(plan: &Plan, faults: &mut Vec<Fault>) {
    let sections = |task: &crate::model::Task| {
        let sections = task.load.as_ref().map_or(&[][..], |load| load.sections());
        let waits = sections.iter().filter(|section| {
            let protocol = plan.locks[section.lock].protocol;
            !protocol.has_ceilings() && !protocol.is_between_cpus() && !protocol.is_between_budgets()
        });
        waits.map(Section::critical).collect()
    };
    let sections: Vec<Vec<_>> = plan.tasks.iter().map(sections).collect();
    let Some(circle) = deadlock(&sections).filter(|circle| circle.len() > 1) else { return };
    let lock = |lock: usize| &plan.locks[lock].name;
    let words = |(at, request): (usize, &Request)| {
        let before = &circle[(at + circle.len() - 1) % circle.len()];
        format!(
            "`{}` has `{}` and waits for `{}`",
            plan.tasks[request.task].name,
            lock(before.wants),
            lock(request.wants)
        )
    };
    let message: Vec<_> = circle.iter().enumerate().map(words).collect();
    let locks: Vec<_> = circle.iter().map(|request| lock(request.wants).as_str()).collect();
    let last = locks.last().copied().unwrap_or_default();
    let message = format!("tasks can wait for each other for ever: {}", message.join(", "));
    let fault = Fault::new("locks_must_not_close_a_circle", plan.tasks[circle[0].task].spot, message);
    let hint = "nest them in the same order everywhere, or use a protocol with ceilings";
    faults.push(fault.value(format!("{last}, {}", locks.join(", "))).hint(hint));
}
