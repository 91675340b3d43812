//! From one plan to another while it is in force: what differs, by name, and the control operations that lead there.
//!
//! What is the same in both plans keeps its ids, and with them its state: budgets, tags, the place in an order. A node is
//! the same if its name, policy, concurrency and CPUs are, and everything above it; else it is a new one, with all that is
//! below it. Of a spread node all replicas stay, or none does. Edges to what stays may have new parameters.
//!
//! The order makes sure that every thread has a place all the time and that what a node admits is never exceeded:
//!
//! 1. new nodes, tasks and edges are made, not attached;
//! 2. budgets that shrink, shrink;
//! 3. a new default node is attached, with what is above it: it has to fit beside the old one;
//! 4. threads of what goes move to the default node;
//! 5. what goes is taken out, bottom up;
//! 6. what comes is attached, top down; budgets that grow, grow.
//!
//! If a step is refused, the same is done in the other direction: what is there stays, what is missing is made again.

use crate::model::shape::Shape;
use crate::model::topology::Topology;
use crate::model::{Child, Edge, Load, MatchEntry, Node, Plan, Task, TaskSet};
use crate::policies::{self, Param, ParamKind};
use crate::text::units::show_time;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use tierce_policy::Cpus;

/// Something that cannot be another while a plan is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The rule, in snake_case.
    pub rule: &'static str,
    /// What it is in both plans.
    pub message: String,
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// What happens to a part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It comes.
    Added,
    /// It goes.
    Removed,
    /// It goes, and comes again: its place or its kind is another.
    Replaced,
    /// It stays, with other parameters.
    Changed,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What happens.
    pub verb: Verb,
    /// To what: `node rt`, `edge from rt to audio`, `default node`.
    pub part: String,
    /// The details; may be empty.
    pub detail: String,
}

impl Verb {
    /// `added`, …
    pub fn name(self) -> &'static str {
        match self {
            Verb::Added => "added",
            Verb::Removed => "removed",
            Verb::Replaced => "replaced",
            Verb::Changed => "changed",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.verb {
            Verb::Added => '+',
            Verb::Removed => '-',
            Verb::Replaced => '>',
            Verb::Changed => '~',
        };
        write!(f, "{sign} {}", self.part)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// The difference between two plans.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// By index into the old plan's nodes, tasks, sets and edges: the index in the new plan, if it stays.
    pub(super) nodes: Vec<Option<usize>>,
    pub(super) tasks: Vec<Option<usize>>,
    pub(super) sets: Vec<Option<usize>>,
    pub(super) edges: Vec<Option<usize>>,
    /// Threads that match nothing get another node, or other parameters there.
    pub(super) default: bool,
    /// In words.
    pub(super) differences: Vec<Difference>,
}

impl Change {
    /// What leads from `old` to `new`; or all that cannot be done while `old` is in force.
    pub fn between(old: &Plan, new: &Plan) -> Result<Change, Vec<Fixed>> {
        let (above, over) = (Shape::new(old), Shape::new(new));
        let mut change = Change::default();
        change.keep((old, &above), (new, &over));
        let fixed = change.fixed(old, new);
        if !fixed.is_empty() {
            return Err(fixed);
        }
        change.describe((old, &above), (new, &over));
        Ok(change)
    }

    /// In words, in the order of the plans.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Whether something may be refused when the graph is neither as before nor as it would be again after the way back. What
    /// goes is never refused, what comes has no threads until the end, and one step is taken or not.
    pub fn needs_a_trial(&self, old: &Plan, new: &Plan) -> bool {
        let goes = parts(old).into_iter().any(|part| !self.is_kept(part));
        let kept = parts(old).into_iter().filter(|part| self.is_kept(*part)).count();
        let comes = parts(new).len() > kept;
        let nodes = pairs(&self.nodes).filter(|(at, is)| old.nodes[*at].params != new.nodes[*is].params);
        let edges = pairs(&self.edges).filter(|(at, is)| old.edges[*at].params != new.edges[*is].params);
        let members = pairs(&self.sets).any(|(at, is)| {
            let under = old.sets[at].under.iter().zip(&new.sets[is].under);
            under.into_iter().any(|(was, is)| was.params != is.params)
        });
        let kinds = nodes.count() + edges.count() + usize::from(goes) + usize::from(comes);
        members || self.default || kinds > 1
    }

    /// Which parts stay.
    fn keep(&mut self, (old, above): (&Plan, &Shape), (new, over): (&Plan, &Shape)) {
        let names: HashMap<_, _> = new.nodes.iter().enumerate().map(|(at, node)| (&node.name, at)).collect();
        let mut apart = HashSet::new();
        loop {
            self.keep_nodes((old, above), (new, over), &names, &apart);
            let before = apart.len();
            apart.extend(self.torn_apart(old, new));
            if apart.len() == before {
                break;
            }
        }
        let single = |plan: &Plan, task: usize| plan.tasks[task].set.is_none();
        let names: HashMap<_, _> = new
            .tasks
            .iter()
            .enumerate()
            .filter(|(at, _)| single(new, *at))
            .map(|(at, task)| (&task.name, at))
            .collect();
        self.tasks = vec![None; old.tasks.len()];
        for (task, before) in old.tasks.iter().enumerate().filter(|(task, _)| single(old, *task)) {
            let Some(&at) = names.get(&before.name) else { continue };
            let alike = before.affinity == new.tasks[at].affinity;
            let pairs = || self.pairs(old, &above.task_parents[task], new, &over.task_parents[at]);
            if let Some(pairs) = alike.then(pairs).flatten() {
                self.tasks[task] = Some(at);
                pairs.into_iter().for_each(|(old, new)| self.edges[old] = Some(new));
            }
        }
        let stays = |set: &crate::model::TaskSet| {
            let at = new.sets.iter().position(|other| other.name == set.name)?;
            let other = &new.sets[at];
            let same = |(a, b): (&Edge, &Edge)| self.same_place(a, new, b);
            let same_way = |(a, b): (&[Edge], &[Edge])| a.len() == b.len() && a.iter().zip(b).all(same);
            let alike = set.affinity == other.affinity && set.elsewhere.len() == other.elsewhere.len();
            (alike && set.ways().zip(other.ways()).all(same_way)).then_some(at)
        };
        self.sets = old.sets.iter().map(stays).collect();
        let (before, after) = (old.default_params(), new.default_params());
        let node = old.default_node.and_then(|node| self.nodes[node]);
        self.default = node != new.default_node || before != after;
    }

    /// Which nodes stay; none of those spread nodes, by the index of their first replica.
    fn keep_nodes(
        &mut self,
        (old, above): (&Plan, &Shape),
        (new, over): (&Plan, &Shape),
        names: &HashMap<&String, usize>,
        apart: &HashSet<usize>,
    ) {
        self.nodes = vec![None; old.nodes.len()];
        self.edges = vec![None; old.edges.len()];
        for &node in &above.order {
            let before = &old.nodes[node];
            if before.family.is_some_and(|first| apart.contains(&first)) {
                continue;
            }
            let Some(&at) = names.get(&before.name) else { continue };
            let after = &new.nodes[at];
            let about = |node: &Node| (node.policy, node.concurrency, node.family.is_some());
            let alike = about(before) == about(after) && before.roots == after.roots;
            if let Some(pairs) =
                alike.then(|| self.pairs(old, &above.parents[node], new, &over.parents[at])).flatten()
            {
                self.nodes[node] = Some(at);
                pairs.into_iter().for_each(|(old, new)| self.edges[old] = Some(new));
            }
        }
    }

    /// Spread nodes, by the index of their first replica, of which only a part would stay, or would be a part of the new one.
    fn torn_apart(&self, old: &Plan, new: &Plan) -> HashSet<usize> {
        let mut ways: BTreeMap<usize, BTreeSet<Option<usize>>> = BTreeMap::new();
        for (node, kept) in old.nodes.iter().zip(&self.nodes) {
            let is = kept.and_then(|at| new.nodes[at].family);
            if let Some(first) = node.family {
                ways.entry(first).or_default().insert(is);
            }
        }
        let size =
            |plan: &Plan, first: usize| plan.nodes.iter().filter(|node| node.family == Some(first)).count();
        let whole = |first: usize, is: &BTreeSet<Option<usize>>| {
            is.len() == 1 && is.iter().flatten().all(|is| size(new, *is) == size(old, first))
        };
        ways.into_iter().filter(|(first, is)| !whole(*first, is)).map(|(first, _)| first).collect()
    }

    /// Where the child of a spread edge begins does not matter: it has moved since.
    fn same_place(&self, old: &Edge, plan: &Plan, new: &Edge) -> bool {
        let same_parent = match self.nodes[old.parent] {
            Some(is) if old.spread => plan.nodes[is].family == plan.nodes[new.parent].family,
            is => is == Some(new.parent),
        };
        // What threads have there is their own: they are placed anew if anything of it changes.
        let own = |edge: &Edge| edge.priority_of_thread.map(|at| (at, edge.params));
        let about = |edge: &Edge| (edge.rank, edge.when_spent, edge.spread, own(edge));
        same_parent && about(old) == about(new)
    }

    /// The edges above something, old and new, if all of them are in the same places.
    fn pairs(
        &self,
        old: &Plan,
        before: &[usize],
        new: &Plan,
        after: &[usize],
    ) -> Option<Vec<(usize, usize)>> {
        let mut left = after.to_vec();
        let mut pairs = Vec::new();
        for &edge in before {
            let at =
                left.iter().position(|other| self.same_place(&old.edges[edge], new, &new.edges[*other]))?;
            pairs.push((edge, left.remove(at)));
        }
        left.is_empty().then_some(pairs)
    }

    fn fixed(&self, old: &Plan, new: &Plan) -> Vec<Fixed> {
        let mut fixed = Vec::new();
        let mut refuse = |rule, message| fixed.push(Fixed { rule, message });
        if old.machine.cpus != new.machine.cpus {
            let message = format!("the machine has {} CPUs, not {}", old.machine.cpus, new.machine.cpus);
            refuse("cpus_cannot_change", message);
        }
        if old.machine.topology != new.machine.topology {
            let written =
                |plan: &Plan| plan.machine.topology.as_ref().map_or("not given".into(), Topology::to_toml);
            let message = format!("[machine] topology is {}, not {}", written(old), written(new));
            refuse("topology_cannot_change", message);
        }
        let (before, after) = (old.run.watchdog_ns, new.run.watchdog_ns);
        if before != after {
            let message = format!("[run] watchdog is {}, not {}", show_time(before), show_time(after));
            refuse("watchdog_cannot_change", message);
        }
        if old.run.throttle != new.run.throttle {
            let message = format!("[run] throttle is {:?}, not {:?}", old.run.throttle, new.run.throttle);
            refuse("throttle_cannot_change", message.to_lowercase());
        }
        if old.run.inherits != new.run.inherits {
            let name = |plan: &Plan| if plan.run.inherits { "\"inheritance\"" } else { "\"none\"" };
            refuse("inheritance_cannot_change", format!("[run] locks is {}, not {}", name(old), name(new)));
        }
        if old.run.marks != new.run.marks {
            refuse(
                "marks_cannot_change",
                format!("[run] marks is {:?}, not {:?}", old.run.marks, new.run.marks),
            );
        }
        for (node, _) in
            old.nodes.iter().zip(&self.nodes).filter(|(node, kept)| !node.roots.is_empty() && kept.is_none())
        {
            let cpus = crate::model::shape::cpus(node.roots.iter().collect());
            let policy = policies::by_number(node.policy).map_or("", |policy| policy.name);
            refuse(
                "root_cannot_change",
                format!("`{}` ({policy}) is what {cpus} runs, and stays that", node.name),
            );
        }
        for node in new.nodes.iter().filter(|node| !node.roots.is_empty()) {
            if old.nodes.iter().all(|other| other.name != node.name || other.roots.is_empty()) {
                refuse("root_cannot_change", format!("`{}` cannot become the root of a CPU", node.name));
            }
        }
        fixed
    }

    // ---- in words ----------------------------------------------------------------------------------------------

    fn describe(&mut self, (old, above): (&Plan, &Shape), (new, over): (&Plan, &Shape)) {
        let mut list = Vec::new();
        let is: BTreeMap<_, _> = parts(new).into_iter().map(|part| (key(new, part), part)).collect();
        let was: BTreeSet<_> = parts(old).into_iter().map(|part| key(old, part)).collect();
        let text = |(kind, name): (&str, &str)| format!("{kind} {name}");
        for part in parts(old).into_iter().filter(|part| !self.is_kept(*part)) {
            let key = key(old, part);
            let (verb, detail) = match is.get(&key) {
                None => (Verb::Removed, String::new()),
                Some(&other) => match (detail(old, above, part), detail(new, over, other)) {
                    (was, is) if was == is => (Verb::Replaced, "with what is above it".to_string()),
                    (was, is) => (Verb::Replaced, format!("{was} -> {is}")),
                },
            };
            list.push(Difference { verb, part: text(key), detail });
        }
        for part in parts(new).into_iter().filter(|part| !was.contains(&key(new, *part))) {
            let detail = detail(new, over, part);
            list.push(Difference { verb: Verb::Added, part: text(key(new, part)), detail });
        }
        self.parameters(old, new, &mut list);
        self.matches(old, new, &mut list);
        self.differences = list;
    }

    fn is_kept(&self, part: Child) -> bool {
        match part {
            Child::Node(node) => self.nodes[node].is_some(),
            Child::Task(task) => self.tasks[task].is_some(),
            Child::Set(set) => self.sets[set].is_some(),
        }
    }

    /// Parameters of what stays.
    fn parameters(&self, old: &Plan, new: &Plan, list: &mut Vec<Difference>) {
        let mut seen = HashSet::new(); // replicas change alike
        let mut changed = |part: &dyn Fn() -> String, detail: String| {
            if !detail.is_empty() && seen.insert((part(), detail.clone())) {
                list.push(Difference { verb: Verb::Changed, part: part(), detail });
            }
        };
        for (before, after) in self
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(at, kept)| Some((&old.nodes[at], &new.nodes[(*kept)?])))
        {
            let params = policies::by_number(before.policy).map(|policy| &policy.node_params[..]);
            let name = if before.family.is_some() { &before.base } else { &before.name };
            changed(&|| format!("node {name}"), steps(params, before.params, after.params));
        }
        for (before, after) in pairs(&self.edges).map(|(at, is)| (&old.edges[at], &new.edges[is])) {
            let steps = steps(edge_params(old, before), before.params, after.params);
            changed(&|| edge_name(old, before), steps);
        }
        for (before, after) in pairs(&self.sets).map(|(at, is)| (&old.sets[at], &new.sets[is])) {
            for (edge, other) in before.under.iter().zip(&after.under) {
                let steps = steps(edge_params(old, edge), edge.params, other.params);
                changed(&|| edge_name(old, edge), steps);
            }
            let jobs = [before, after].map(|set| own_deadline_ns(set.load.as_ref(), set.job_deadline_ns));
            changed(&|| format!("set {}", before.name), deadlines(jobs));
        }
        for (before, after) in pairs(&self.tasks).map(|(at, is)| (&old.tasks[at], &new.tasks[is])) {
            let jobs = [before, after].map(|task| own_deadline_ns(task.load.as_ref(), task.job_deadline_ns));
            changed(&|| format!("task {}", before.name), deadlines(jobs));
        }
        let name =
            |plan: &Plan| plan.default_node.map_or("", |node| name_of(plan, Child::Node(node))).to_string();
        let stays = old.default_node.is_some_and(|node| self.nodes[node].is_some());
        if name(old) != name(new) {
            changed(&|| "default node".into(), format!("{} -> {}", name(old), name(new)));
        } else if self.default && stays {
            let policy = old.default_node.and_then(|node| policies::by_number(old.nodes[node].policy));
            let ((before, was), (after, is)) = (old.default_params(), new.default_params());
            let mut detail = steps(policy.map(|policy| &policy.edge_params[..]), before, after);
            if was != is {
                detail = if is.is_some() {
                    "the weight follows nice"
                } else {
                    "the weight no longer follows nice"
                }
                .into();
            }
            changed(&|| "each thread of the default node".into(), detail);
        }
    }

    fn matches(&self, old: &Plan, new: &Plan, list: &mut Vec<Difference>) {
        let name = |plan: &Plan, entry: &MatchEntry| plan.child_name(entry.target).to_string();
        let alike =
            |(was, is): (&MatchEntry, &MatchEntry)| was.any == is.any && name(old, was) == name(new, is);
        if old.entries.len() == new.entries.len() && old.entries.iter().zip(&new.entries).all(alike) {
            return;
        }
        let named = |plan: &Plan| -> Vec<(String, usize)> {
            let all = plan.entries.iter().enumerate();
            all.map(|(at, entry)| (plan.child_name(entry.target).to_string(), at)).collect()
        };
        let (before, after) = (named(old), named(new));
        let same_target = |name: &String| {
            let target = |plan: &Plan, list: &[(String, usize)]| {
                list.iter().find(|(other, _)| other == name).map(|(_, at)| plan.entries[*at].any.clone())
            };
            (target(old, &before), target(new, &after))
        };
        let mut say = |part: String, detail: &str| {
            list.push(Difference { verb: Verb::Changed, part, detail: detail.into() });
        };
        let all_new = new.tasks.iter().map(|task| &task.name).chain(new.sets.iter().map(|set| &set.name));
        let stay: HashSet<&String> = all_new.collect();
        for (name, _) in before.iter().filter(|(name, _)| stay.contains(name)) {
            match same_target(name) {
                (Some(was), Some(is)) if was != is => say(format!("match of {name}"), ""),
                (Some(_), None) => say(format!("match of {name}"), "gone"),
                _ => {}
            }
        }
        let were: HashSet<&String> =
            old.tasks.iter().map(|task| &task.name).chain(old.sets.iter().map(|set| &set.name)).collect();
        for (name, _) in after.iter().filter(|(name, _)| were.contains(name)) {
            if same_target(name).0.is_none() {
                say(format!("match of {name}"), "new");
            }
        }
        let order = |list: &[(String, usize)], other: &[(String, usize)]| -> Vec<String> {
            let both = list.iter().filter(|(name, _)| other.iter().any(|(with, _)| with == name));
            both.map(|(name, _)| name.clone()).collect()
        };
        if order(&before, &after) != order(&after, &before) {
            say("order of the matches".into(), "the first that fits wins");
        }
    }
}

/// Nodes, tasks and sets; members of sets are none of the plan's own, and of a spread node the first replica stands for all.
fn parts(plan: &Plan) -> Vec<Child> {
    let tasks = (0..plan.tasks.len()).filter(|task| plan.tasks[*task].set.is_none()).map(Child::Task);
    let own = |node: &usize| plan.nodes[*node].family.is_none_or(|first| first == *node);
    (0..plan.nodes.len())
        .filter(own)
        .map(Child::Node)
        .chain(tasks)
        .chain((0..plan.sets.len()).map(Child::Set))
        .collect()
}

/// What it is, and its name.
fn key(plan: &Plan, part: Child) -> (&'static str, &str) {
    let kind = match part {
        Child::Node(_) => "node",
        Child::Task(_) => "task",
        Child::Set(_) => "set",
    };
    (kind, name_of(plan, part))
}

/// Of a spread node that of the text.
fn name_of(plan: &Plan, part: Child) -> &str {
    match part {
        Child::Node(node) if plan.nodes[node].family.is_some() => &plan.nodes[node].base,
        _ => plan.child_name(part),
    }
}

/// Its policy and its place.
fn detail(plan: &Plan, shape: &Shape, part: Child) -> String {
    let edges = |list: &[usize], all| below(plan, list.iter().map(|edge| &plan.edges[*edge]), all);
    let text = match part {
        Child::Node(node) => {
            let policy = policies::by_number(plan.nodes[node].policy).map_or("", |policy| policy.name);
            let family = plan.nodes[node].family;
            let replicas = |other: &usize| family.is_some() && plan.nodes[*other].family == family;
            let mut above = shape.parents[node].clone();
            above.extend(
                (node + 1..plan.nodes.len()).filter(replicas).flat_map(|other| &shape.parents[other]),
            );
            let mut seen = HashSet::new();
            above.retain(|edge| family.is_none() || seen.insert(plan.edges[*edge].spot));
            policy.to_string() + &edges(&above, family.is_some())
        }
        Child::Task(task) => edges(&shape.task_parents[task], false) + &on(plan.tasks[task].affinity),
        Child::Set(set) => {
            let set = &plan.sets[set];
            let any = if set.under.iter().any(|edge| edge.placed) { ", cpu any" } else { "" };
            below(plan, set.under.iter(), false) + any + &on(set.affinity)
        }
    };
    text.trim_start_matches(", ").to_string()
}

pub fn pairs(kept: &[Option<usize>]) -> impl Iterator<Item = (usize, usize)> + '_ {
    kept.iter().enumerate().filter_map(|(old, new)| Some((old, (*new)?)))
}

fn edge_params<'p>(plan: &Plan, edge: &Edge) -> Option<&'p [Param]> {
    policies::by_number(plan.nodes[edge.parent].policy).map(|policy| &policy.edge_params[..])
}

pub(super) fn edge_name(plan: &Plan, edge: &Edge) -> String {
    format!("edge from {} to {}", name_of(plan, Child::Node(edge.parent)), name_of(plan, edge.child))
}

fn value(param: &Param, value: u64) -> String {
    param.show(value, show_time)
}

/// `budget 2ms -> 3ms, period …`.
pub(super) fn steps<const N: usize>(params: Option<&[Param]>, before: [u64; N], after: [u64; N]) -> String {
    if before == after {
        return String::new();
    }
    let all = params.unwrap_or_default().iter().zip(before.into_iter().zip(after));
    let steps = all.filter(|(_, (was, is))| was != is);
    let text = steps
        .map(|(param, (was, is))| format!("{} {} -> {}", param.name, value(param, was), value(param, is)));
    text.collect::<Vec<_>>().join(", ")
}

/// Of jobs, as the part itself says it.
fn own_deadline_ns(load: Option<&Load>, job_deadline_ns: Option<u64>) -> Option<u64> {
    load.map_or(job_deadline_ns, Load::deadline_ns)
}

pub(super) fn deadlines([was, is]: [Option<u64>; 2]) -> String {
    let show = |ns: Option<u64>| ns.map_or("none".to_string(), show_time);
    if was == is {
        String::new()
    } else {
        format!("deadline of its jobs {} -> {}", show(was), show(is))
    }
}

/// `, below rt (budget 2ms, period 10ms)`, parameters that are not the preset. `all`: from all replicas of the parent.
pub(super) fn below<'p>(plan: &Plan, edges: impl Iterator<Item = &'p Edge>, all: bool) -> String {
    let mut text = String::new();
    for edge in edges {
        let params = edge_params(plan, edge).unwrap_or_default().iter().zip(edge.params);
        let given = params.filter(|(param, is)| match param.kind {
            ParamKind::DurationOf(other) => *is != edge.params[other],
            _ => param.preset != Some(*is),
        });
        let mut words: Vec<_> =
            given.map(|(param, is)| format!("{} {}", param.name, value(param, is))).collect();
        words.extend((edge.rank != 0).then(|| format!("rank {}", edge.rank)));
        words.extend(edge.when_spent.then(|| "when spent".to_string()));
        let parent = &plan.nodes[edge.parent];
        text += ", below ";
        text += if all || parent.family.is_some() { &parent.base } else { &parent.name };
        if !words.is_empty() {
            text += &format!(" ({})", words.join(", "));
        }
    }
    text
}

pub(super) fn on(affinity: Option<Cpus>) -> String {
    affinity.map_or(String::new(), |cpus| format!(", on {}", crate::model::shape::cpus(cpus)))
}

impl Plan {
    /// Edges on all ways from a CPU to this node.
    pub(super) fn edges_above(&self, node: usize) -> HashSet<usize> {
        let shape = Shape::new(self);
        let (mut edges, mut nodes) = (HashSet::new(), vec![node]);
        while let Some(node) = nodes.pop() {
            for &edge in &shape.parents[node] {
                if edges.insert(edge) {
                    nodes.push(self.edges[edge].parent);
                }
            }
        }
        edges
    }

    /// Relative deadline of the jobs of a task or of each member of a set: of its load, or without one its `job_deadline`, or the
    /// shortest that it has below nodes that go by deadlines.
    pub fn job_deadline_ns(&self, child: Child) -> Option<u64> {
        let (load, own_ns, under): (_, _, Vec<&Edge>) = match child {
            Child::Task(task) => {
                let Task { load, job_deadline_ns, .. } = &self.tasks[task];
                (load, job_deadline_ns, self.edges.iter().filter(|edge| edge.child == child).collect())
            }
            Child::Set(set) => {
                let TaskSet { load, job_deadline_ns, under, .. } = &self.sets[set];
                (load, job_deadline_ns, under.iter().collect())
            }
            Child::Node(_) => return None,
        };
        let deadline = |edge: &Edge| {
            let policy = policies::by_number(self.nodes[edge.parent].policy)
                .filter(|policy| policy.heeds_deadlines)?;
            let place = policies::position(&policy.edge_params, "deadline")?;
            Some(edge.params[place]).filter(|&ns| ns > 0)
        };
        match load {
            Some(load) => load.deadline_ns(),
            None => own_ns.or_else(|| under.into_iter().filter_map(deadline).min()),
        }
    }
}
