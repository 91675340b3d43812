//! One operation on the model of a plan in force, without its text.
//!
//! Most operations are small: another budget, a node or a thread's task more or less, a task that moves. A [`Step`] is such an
//! operation on the model; it looks at the part that changes and the nodes above it. The text is written later, by all operations at
//! once ([`Plan::written`]), when somebody wants it.
//!
//! What comes out means what [`Plan::edited_by`] would make of the text, part for part by name; or there is no step, and the text is
//! edited. So all that is unusual, or refused, or reached by several CPUs is left to that: there are no messages here. Parts that a step
//! made have no place in the text yet.
//!
//! Below a `per_cpu` node something new is placed on a CPU as it would be by way of the text: the placer is asked, of all that the plan
//! has with `cpu = "any"`. Where something else would have to move for it, there is no step.
//!
//! Example: below `rt`, a reservation on CPU 0, `set audio budget=3ms` is the step "edge 2 has the parameters 3ms, 10ms, 10ms".

use super::edit::{Edit, Keys};
use super::editor::{own_key, JOB_DEADLINE, NO_DEADLINE};
use crate::build::Ids;
use crate::change::difference::{below as below_in_words, deadlines, edge_name, on, steps, Difference, Verb};
use crate::model::any_cpu::{Placer, Standing, Unit};
use crate::model::for_each::text_name;
use crate::model::{Child, Edge, MatchEntry, Matcher, Node, Plan, Task, NODE_PARAMS};
use crate::policies::{self, PolicyRecord, KERNEL};
use crate::resolve::params::with_keys;
use crate::text::source::Spot;
use crate::text::units::parse_time;
use tierce_policy::Cpus;

/// What changes.
#[derive(Clone, Debug)]
pub enum Step {
    /// An edge has other parameters.
    Numbers {
        /// Index into [`Plan::edges`].
        edge: usize,
        /// As it is from now on.
        to: Edge,
        /// Relative deadline of its jobs from now on, if its child is a task that says one itself.
        job_deadline_ns: Option<u64>,
    },
    /// A node comes; its index will be the last one.
    Node {
        /// The node.
        node: Node,
        /// The edge above it.
        edge: Edge,
    },
    /// A task comes, for one thread, which is no longer what else it matches; its index will be the last one.
    Task {
        /// The task.
        task: Task,
        /// The edge above it.
        edge: Edge,
        /// Whose task it is: before all other entries.
        entry: MatchEntry,
        /// The thread.
        tid: u32,
    },
    /// A task goes below another node.
    Move {
        /// Index into [`Plan::edges`].
        edge: usize,
        /// As it is from now on.
        to: Edge,
    },
    /// A task, or a node with nothing below it, goes.
    Gone {
        /// What goes.
        child: Child,
        /// The edge above it.
        edge: usize,
    },
}

/// Where something new comes.
struct Below {
    parent: usize,
    /// Its CPU is to be chosen; `parent` is on the lowest that it may have.
    placed: bool,
    /// CPUs where it may be.
    affinity: Option<Cpus>,
    /// Parameters, without its CPU.
    keys: Keys,
}

/// Nothing is known of the place of what has no text yet, but the file that it will be in.
fn unwritten(source: u32) -> Spot {
    Spot { source, ..Spot::default() }
}

impl Plan {
    /// The operation as a step, if it is one. `standing`: what is in force; `placer`: who places what has `cpu = "any"`.
    pub fn step(&self, edit: &Edit, standing: &dyn Fn() -> Standing, placer: Placer) -> Option<Step> {
        // Tasks of chains are known by their places.
        if !self.chains.is_empty() {
            return None;
        }
        let step = match edit {
            Edit::Set { name, under, keys, who } if who.is_empty() => {
                self.numbers(name, under.as_deref(), keys)
            }
            Edit::Create { name, policy: Some(policy), under, keys, who, cpus } if who.is_empty() => {
                self.new_node(name, policy, (under, cpus.as_deref()), keys)
            }
            Edit::Create { name, policy: None, under, keys, who, cpus } => {
                self.new_task(name, (under, cpus.as_deref()), keys, who)
            }
            Edit::Move { name, tasks: false, from, under, keys } => {
                self.another_place(name, from.as_deref(), under, keys)
            }
            Edit::Destroy { name, below: _ } => self.gone(name),
            _ => None,
        };
        self.in_place(step?, standing, placer)
    }

    fn numbers(&self, name: &str, under: Option<&str>, keys: &Keys) -> Option<Step> {
        let child = self.single(name)?;
        let edge = self.only_edge(child)?;
        let is = &self.edges[edge];
        let parent = &self.nodes[is.parent];
        let policy = policies::by_number(parent.policy)?;
        let own = match (child, under) {
            (Child::Node(node), None) => policies::by_number(self.nodes[node].policy),
            _ => None,
        };
        let is_of_edge = |key: &str| own.is_none_or(|own| !own_key(Some(own), key));
        let is_meant = under.is_none_or(|under| under == parent.base) && self.is_a_table(is.spot);
        // A priority may not come above a preemption threshold.
        let has_threshold = matches!(child, Child::Task(task) if self.tasks[task].threshold().is_some());
        let own_ns = match child {
            Child::Task(task) => self.tasks[task].job_deadline_ns,
            // That is for its threads.
            _ if keys.iter().any(|(key, _)| key == JOB_DEADLINE) => return None,
            _ => None,
        };
        let (keys, job_deadline_ns) = with_deadline(keys, own_ns)?;
        let says_deadline = job_deadline_ns != own_ns;
        let may_say = !says_deadline || self.may_say_deadline(child, is);
        if keys.is_empty() && !says_deadline
            || has_threshold
            || !is_meant
            || !may_say
            || !keys.iter().all(|(key, text)| is_of_edge(key) && is_plain(text))
        {
            return None;
        }
        let old = Some((&is.params, is.given));
        let (params, given) = with_keys(&self.defaults, policy, &policy.edge_params, old, &keys)?;
        let to = Edge { params, given, ..is.clone() };
        self.is_usual(&to).then_some(Step::Numbers { edge, to, job_deadline_ns })
    }

    fn new_node(
        &self,
        name: &str,
        policy: &str,
        (under, cpus): (&str, Option<&[u32]>),
        keys: &Keys,
    ) -> Option<Step> {
        let policy = policies::by_name(policy)?;
        let Below { parent, placed, keys, .. } = self.below(under, cpus, keys)?;
        let above = policies::by_number(self.nodes[parent].policy)?;
        let is_own = |key: &str| own_key(Some(policy), key);
        let gives = |key: &str| policies::position(&above.edge_params, key).is_some();
        let own: Keys = keys.iter().filter(|(key, _)| is_own(key)).cloned().collect();
        let of_edge: Keys = keys.iter().filter(|(key, _)| !is_own(key) || gives(key)).cloned().collect();
        let can_be = self.is_free(name)
            && self.has_header(0, "node")
            && keys.iter().all(|(_, text)| is_plain(text))
            && self.has_room()
            && self.depth(parent)? < policies::limits().depth as usize;
        let (params, _) = with_keys(&self.defaults, policy, &policy.node_params, None, &own)?;
        if !can_be || !is_usual_node(policy, &params) {
            return None;
        }
        let node = Node {
            name: name.into(),
            base: name.into(),
            replica: None,
            family: None,
            policy: policy.number,
            params,
            concurrency: 0,
            roots: Vec::new(),
            default: false,
            needs: Vec::new(),
            spot: unwritten(0),
        };
        let edge = self.new_edge(parent, Child::Node(self.nodes.len()), &of_edge, 0)?;
        Some(Step::Node { node, edge: Edge { placed, ..edge } })
    }

    fn new_task(
        &self,
        name: &str,
        (under, cpus): (&str, Option<&[u32]>),
        keys: &Keys,
        who: &[Keys],
    ) -> Option<Step> {
        let [who] = who else { return None };
        let [(key, tid)] = &who[..] else { return None };
        let tid = (key == "tid" && tid.bytes().all(|byte| byte.is_ascii_digit())).then_some(tid)?;
        let tid: u32 = tid.parse().ok()?;
        let (keys, job_deadline_ns) = with_deadline(keys, None)?;
        let Below { parent, placed, affinity, keys } = self.below(under, cpus, &keys)?;
        let source = self.entries.first().map_or(0, |entry| entry.spot.source);
        let can_be = self.is_free(name)
            && self.can_be_first(source)
            && keys.iter().all(|(_, text)| is_plain(text))
            && self.has_room();
        let edge = self.new_edge(parent, Child::Task(self.tasks.len()), &keys, source).filter(|_| can_be)?;
        let edge = Edge { placed, ..edge };
        if job_deadline_ns.is_some() && !self.may_say_deadline(edge.child, &edge) {
            return None;
        }
        let spot = unwritten(source);
        let (name, needs) = (name.into(), Vec::new());
        let task = Task { name, set: None, load: None, affinity, job_deadline_ns, needs, spot };
        let any = [Matcher { tid: Some(tid), ..Matcher::default() }].into();
        let entry =
            MatchEntry { target: Child::Task(self.tasks.len()), any, trusts_names: false, copy: None, spot };
        Some(Step::Task { task, edge, entry, tid })
    }

    fn another_place(&self, name: &str, from: Option<&str>, to: &str, keys: &Keys) -> Option<Step> {
        let child = self.single(name).filter(|child| matches!(child, Child::Task(_)))?;
        let Child::Task(task) = child else { return None };
        // Where regions and locks have a meaning depends on the place.
        if self.tasks[task].has_regions() || !self.locks_of(task).is_empty() {
            return None;
        }
        let edge = self.only_edge(child)?;
        let (is, parent) = (&self.edges[edge], self.simple_node(to)?);
        let old = &self.nodes[is.parent];
        self.simple_node(&old.base)?;
        let is_meant = from.is_none_or(|from| from == old.base) && is.parent != parent;
        let plain = self.is_a_table(is.spot) && keys.iter().all(|(_, text)| is_plain(text));
        if !is_meant || !plain || self.tasks[task].affinity.is_some() {
            return None;
        }
        let to = if keys.is_empty() && old.policy == self.nodes[parent].policy {
            Edge { parent, spot: unwritten(is.spot.source), ..is.clone() }
        } else {
            self.new_edge(parent, child, keys, is.spot.source)?
        };
        if self.tasks[task].job_deadline_ns.is_some() && !self.may_say_deadline(child, &to) {
            return None;
        }
        self.is_usual(&to).then_some(Step::Move { edge, to })
    }

    fn gone(&self, name: &str) -> Option<Step> {
        let child = self.single(name)?;
        let edge = self.only_edge(child).filter(|edge| self.is_simple(self.edges[*edge].parent))?;
        if let Child::Node(node) = child {
            let about = &self.nodes[node];
            let mut below = self.edges.iter().chain(self.sets.iter().flat_map(|set| set.ways().flatten()));
            if about.default || about.family.is_some() || below.any(|edge| edge.parent == node) {
                return None;
            }
        }
        Some(Step::Gone { child, edge })
    }

    /// Take the step: it was made for the plan as it is.
    pub fn take(&mut self, step: Step) {
        match step {
            Step::Numbers { edge, to, job_deadline_ns } => {
                if let Child::Task(task) = to.child {
                    self.tasks[task].job_deadline_ns = job_deadline_ns;
                }
                self.edges[edge] = to;
            }
            Step::Move { edge, to } => self.edges[edge] = to,
            Step::Node { node, edge } => {
                self.nodes.push(node);
                self.edges.push(edge);
            }
            Step::Task { task, edge, entry, .. } => {
                self.tasks.push(task);
                self.edges.push(edge);
                self.entries.insert(0, entry);
            }
            Step::Gone { child, edge } => {
                self.edges.remove(edge);
                self.remove(child);
            }
        }
    }

    /// Out of the lists; indices behind it are one less.
    fn remove(&mut self, gone: Child) {
        let before = |at: usize, index: &mut usize| *index -= usize::from(*index > at);
        let in_sets = self
            .sets
            .iter_mut()
            .flat_map(|set| set.under.iter_mut().chain(set.elsewhere.iter_mut().flatten()));
        let edges = self.edges.iter_mut().chain(in_sets);
        match gone {
            Child::Node(node) => {
                self.nodes.remove(node);
                for edge in edges {
                    before(node, &mut edge.parent);
                    if let Child::Node(child) = &mut edge.child {
                        before(node, child);
                    }
                }
                self.nodes
                    .iter_mut()
                    .filter_map(|other| other.family.as_mut())
                    .for_each(|first| before(node, first));
                self.default_node.iter_mut().for_each(|default| before(node, default));
            }
            Child::Task(task) => {
                self.tasks.remove(task);
                self.entries.retain(|entry| entry.target != gone);
                let targets = self.entries.iter_mut().map(|entry| &mut entry.target);
                for child in edges.map(|edge| &mut edge.child).chain(targets) {
                    if let Child::Task(child) = child {
                        before(task, child);
                    }
                }
                for set in &mut self.sets {
                    before(task, &mut set.members.start);
                    before(task, &mut set.members.end);
                }
            }
            Child::Set(_) => {}
        }
    }

    // ---- what can be changed by a step -------------------------------------------------------------------------

    /// A node or task of that name, which is one thing in the text and in the model.
    fn single(&self, name: &str) -> Option<Child> {
        let node = self
            .nodes
            .iter()
            .position(|node| node.name == name && node.base == name && text_name(name) == name);
        let task = || self.tasks.iter().position(|task| task.name == name && task.set.is_none());
        node.map(Child::Node).or_else(|| task().map(Child::Task))
    }

    /// The edge above it, if it is one that nothing is special about.
    fn only_edge(&self, child: Child) -> Option<usize> {
        let mut edges = self.edges.iter().enumerate().filter(|(_, edge)| edge.child == child);
        let (at, edge) = edges.next()?;
        let plain = edge.rank == 0 && !edge.when_spent && !edge.spread;
        (plain && edges.next().is_none()).then_some(at)
    }

    /// A node of that name, of which there is one, that one CPU reaches, by one way.
    fn simple_node(&self, name: &str) -> Option<usize> {
        let at = self.nodes.iter().position(|node| node.base == name && text_name(name) == name)?;
        (self.nodes[at].replica.is_none() && self.is_simple(at)).then_some(at)
    }

    /// One CPU reaches the node, by one way.
    fn is_simple(&self, node: usize) -> bool {
        let mut above = node;
        for _ in 0..=policies::limits().depth {
            let about = &self.nodes[above];
            match (&about.roots[..], self.only_edge(Child::Node(above))) {
                _ if about.family.is_some() || about.concurrency > 0 => return false,
                ([_], _) => return true,
                ([], Some(edge)) => above = self.edges[edge].parent,
                _ => return false,
            }
        }
        false
    }

    /// Where something new comes that is to be below a node of that name. `cpus`: see [`Edit::Create`].
    fn below(&self, under: &str, cpus: Option<&[u32]>, keys: &Keys) -> Option<Below> {
        if let Some(parent) = self.simple_node(under) {
            return Some(Below { parent, placed: false, affinity: None, keys: keys.clone() });
        }
        let replicas = self.replicas(under);
        if replicas.is_empty()
            || text_name(under) != under
            || !replicas.iter().all(|(_, at)| self.is_simple(*at))
        {
            return None;
        }
        let (named, keys): (Keys, Keys) = keys.iter().cloned().partition(|(key, _)| key == "cpu");
        let affinity = match (&named[..], cpus) {
            ([(_, cpu)], _) => {
                let on = |(replica, _): &&(u32, usize)| replica.to_string() == *cpu;
                let (_, parent) = *replicas.iter().find(on)?;
                return Some(Below { parent, placed: false, affinity: None, keys });
            }
            ([], Some([])) => None,
            ([], Some(cpus)) if cpus.is_sorted_by(|a, b| a < b) && cpus.last() < Some(&self.machine.cpus) => {
                Some(cpus.iter().copied().collect::<Cpus>())
            }
            _ => return None,
        };
        let may = |(cpu, _): &&(u32, usize)| affinity.is_none_or(|may| may.has(*cpu));
        let (_, parent) = *replicas.iter().filter(may).min()?;
        Some(Below { parent, placed: true, affinity, keys })
    }

    /// The replicas of a `per_cpu` node, each with its CPU.
    fn replicas(&self, base: &str) -> Vec<(u32, usize)> {
        let its =
            self.nodes.iter().enumerate().filter(|(_, node)| node.base == base && node.family.is_none());
        its.filter_map(|(at, node)| Some((node.replica?, at))).collect()
    }

    /// The step, with what is new on the CPU that the placer chooses for it. `None`: what is there would not all stay on its CPU.
    fn in_place(&self, step: Step, standing: &dyn Fn() -> Standing, placer: Placer) -> Option<Step> {
        let is_new = |edge: &&Edge| edge.placed && matches!(step, Step::Node { .. } | Step::Task { .. });
        let new = step.edge().filter(is_new).map(|edge| edge.child);
        if new.is_none() && !self.edges.iter().any(|edge| edge.placed) {
            return Some(step);
        }
        let mut after = self.clone();
        after.take(step.clone());
        let before: Vec<_> = after.edges.iter().map(|edge| after.nodes[edge.parent].replica).collect();
        let units = after.units_on_their_lowest()?;
        let names: Vec<_> = units.iter().map(|unit| (unit.child, unit.name.clone())).collect();
        let placed = placer(after.clone(), &units, &standing()).ok()?;
        let mut chosen = None;
        for (child, name) in names {
            let (at, cpu) = (after.only_edge(child)?, *placed.get(&name)?);
            if Some(child) == new {
                let base = &after.nodes[after.edges[at].parent].base;
                chosen = after.replicas(base).into_iter().find(|(replica, _)| *replica == cpu);
            } else if before[at] != Some(cpu) {
                return None;
            }
        }
        let mut step = step;
        if let (Some((_, parent)), Step::Node { edge, .. } | Step::Task { edge, .. }) = (chosen, &mut step) {
            edge.parent = parent;
        }
        Some(step)
    }

    /// What has `cpu = "any"`, each now on its lowest CPU, as a placer wants it. `None`: not all of it is that simple.
    fn units_on_their_lowest(&mut self) -> Option<Vec<Unit>> {
        let mut units = Vec::new();
        for at in (0..self.edges.len()).filter(|at| self.edges[*at].placed).collect::<Vec<_>>() {
            let child = self.edges[at].child;
            let affinity = match child {
                Child::Task(task) if self.tasks[task].set.is_none() => self.tasks[task].affinity,
                Child::Node(_) => None,
                _ => return None,
            };
            self.only_edge(child)?;
            let mut replicas = self.replicas(&self.nodes[self.edges[at].parent].base);
            replicas.retain(|(cpu, _)| affinity.is_none_or(|may| may.has(*cpu)));
            replicas.sort_unstable();
            self.edges[at].parent = replicas.first()?.1;
            let cpus = replicas.iter().map(|(cpu, _)| *cpu).collect();
            units.push(Unit { name: self.child_name(child).to_string(), child, cpus });
        }
        Some(units)
    }

    /// Nodes from a CPU to this one.
    pub fn depth(&self, node: usize) -> Option<usize> {
        let (mut at, mut depth) = (node, 1);
        while self.nodes[at].roots.is_empty() && depth <= policies::limits().depth as usize {
            (at, depth) = (self.edges[self.only_edge(Child::Node(at))?].parent, depth + 1);
        }
        Some(depth)
    }

    fn new_edge(&self, parent: usize, child: Child, keys: &Keys, source: u32) -> Option<Edge> {
        let policy = policies::by_number(self.nodes[parent].policy)?;
        let (params, given) = with_keys(&self.defaults, policy, &policy.edge_params, None, keys)?;
        let spot = unwritten(source);
        let edge = Edge { given, spot, ..Edge::plain(parent, child, params, false) };
        self.is_usual(&edge).then_some(edge)
    }

    /// No law of the parent's policy is about this edge and others, or the node; and no thread of a set would have to be placed anew.
    fn is_usual(&self, edge: &Edge) -> bool {
        let Some(policy) = policies::by_number(self.nodes[edge.parent].policy) else { return false };
        let parent = &self.nodes[edge.parent].params;
        let is_preset = |name| policies::position(&policy.node_params, name).is_none_or(|at| parent[at] == 0);
        let zero = |name| policies::position(&policy.edge_params, name).is_none_or(|at| edge.params[at] == 0);
        let placed = |edge: &Edge| edge.placed;
        let firm = |other: &Edge| other.firm && other.parent == edge.parent;
        ["order", "replenishment", "gain"].into_iter().all(is_preset)
            && ["offset", "work_hi"]
                .iter()
                .all(|name| policies::position(&policy.edge_params, name).is_none())
            && ["warp", "warp_limit", "unwarp"].into_iter().all(zero)
            && !(self.has_needs(edge.child) && policies::promised::places(policy).is_some())
            && !self.sets.iter().flat_map(|set| &set.under).any(placed)
            && !self.edges.iter().chain(self.sets.iter().flat_map(|set| set.ways().flatten())).any(firm)
    }

    /// What it needs may be what is promised to it.
    fn has_needs(&self, child: Child) -> bool {
        match child {
            Child::Node(node) => self.nodes.get(node).is_some_and(|node| !node.needs.is_empty()),
            Child::Task(task) => self.tasks.get(task).is_some_and(|task| !task.needs.is_empty()),
            Child::Set(set) => self.sets.get(set).is_some_and(|set| !set.needs.is_empty()),
        }
    }

    /// The child of that edge may have a `job_deadline`: it is a task without a load, and its parent has no order by deadlines.
    fn may_say_deadline(&self, child: Child, edge: &Edge) -> bool {
        let has_load = match child {
            Child::Task(task) => self.tasks.get(task).is_some_and(|task| task.load.is_some()),
            _ => return false,
        };
        let parent = policies::by_number(self.nodes[edge.parent].policy);
        !has_load && parent.is_some_and(|policy| !policy.heeds_deadlines)
    }

    /// Nothing has this name, and something may have it.
    fn is_free(&self, name: &str) -> bool {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            && self.nodes.iter().all(|node| text_name(&node.base) != name)
            && self.tasks.iter().all(|task| task.name != name || task.set.is_some())
            && self.sets.iter().all(|set| text_name(&set.name) != name)
    }

    /// For one part more, whatever the others need.
    fn has_room(&self) -> bool {
        let least = |limit: fn(&tierce_policy::Limits) -> u32| {
            limit(&policies::limits()).min(limit(&KERNEL)) as usize
        };
        let roots: usize = self.nodes.iter().map(|node| node.roots.len()).sum();
        self.nodes.len() + self.tasks.len() < least(|limits| limits.nodes)
            && self.edges.len() + roots < least(|limits| limits.edges)
    }

    // ---- what the text will be able to say ---------------------------------------------------------------------

    /// In the text the edge is a table, `{ … }`, and no list of them; or there is no text yet.
    fn is_a_table(&self, spot: Spot) -> bool {
        let Some(source) = self.sources.0.get(spot.source as usize) else { return false };
        let (before, after) = source.text.split_at_checked(spot.start as usize).unwrap_or_default();
        spot.len == 0 || after.starts_with('{') && before.trim_end().ends_with('=')
    }

    /// A part of that kind in this file is written `[kind.NAME]`: so another one can be.
    fn has_header(&self, source: u32, kind: &str) -> bool {
        let nodes = self.nodes.iter().map(|node| node.spot);
        nodes.filter(|spot| spot.source == source).any(|spot| self.is_header(spot, kind))
    }

    /// The name there is in a header of its own.
    fn is_header(&self, spot: Spot, kind: &str) -> bool {
        let Some(source) = self.sources.0.get(spot.source as usize) else { return false };
        let (before, after) = source.text.split_at_checked(spot.start as usize).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_alone = line.strip_prefix('[').and_then(|line| line.strip_suffix('.')) == Some(kind);
        is_alone && after.get(spot.len as usize..).is_some_and(|rest| rest.starts_with(']'))
    }

    /// A match that is written now can be the first in the text.
    fn can_be_first(&self, source: u32) -> bool {
        let Some(first) = self.entries.first() else {
            return source == 0 && self.tasks.is_empty() && self.sets.is_empty();
        };
        let (spot, kind) = match first.target {
            Child::Task(task) => (self.tasks[task].spot, "task"),
            Child::Set(set) => (self.sets[set].spot, "tasks"),
            Child::Node(_) => return false,
        };
        // Tasks are written `[task.NAME]` there, or no way at all.
        let in_file = |spot: Spot| spot.source == source && spot.len > 0;
        let mut tasks = self
            .tasks
            .iter()
            .filter(|task| task.set.is_none())
            .map(|task| task.spot)
            .filter(|spot| in_file(*spot));
        spot.source == source
            && (spot.len == 0 || self.is_header(spot, kind))
            && tasks.all(|spot| self.is_header(spot, "task"))
    }
}

impl Ids {
    /// The plan has taken a step, whose new part has the id `child`, and its new edge `edge`.
    pub fn take(&mut self, step: &Step, child: u32, edge: u32) {
        match step {
            Step::Numbers { .. } => {}
            Step::Node { .. } | Step::Task { .. } => {
                let list = if matches!(step, Step::Node { .. }) { &mut self.nodes } else { &mut self.tasks };
                list.push(child);
                self.edges.push(edge);
                self.attached.push(true);
            }
            Step::Move { edge: at, to } => {
                if let Child::Task(task) = to.child {
                    self.tasks[task] = child;
                }
                self.edges[*at] = edge;
            }
            Step::Gone { child, edge } => {
                self.edges.remove(*edge);
                self.attached.remove(*edge);
                match *child {
                    Child::Node(node) => {
                        self.nodes.remove(node);
                        self.roots.iter_mut().for_each(|root| root.1 -= usize::from(root.1 > node));
                    }
                    Child::Task(task) => _ = self.tasks.remove(task),
                    Child::Set(_) => {}
                }
            }
        }
    }
}

/// The keys without `job_deadline`, and what it is with them. `None`: it is no time.
fn with_deadline(keys: &Keys, is_ns: Option<u64>) -> Option<(Keys, Option<u64>)> {
    let (own, keys): (Keys, Keys) = keys.iter().cloned().partition(|(key, _)| key == JOB_DEADLINE);
    let deadline_ns = match own.last() {
        None => is_ns,
        Some((_, text)) if text == NO_DEADLINE => None,
        Some((_, text)) => Some(parse_time(text).ok().filter(|ns| *ns > 0 && is_plain(text))?),
    };
    Some((keys, deadline_ns))
}

/// A value that a plan's text has without escapes.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+ ".contains(&byte);
    text.bytes().all(is_plain)
}

/// Nothing about the node is checked but its parameters one by one, and the kernel side needs nothing rare for it.
fn is_usual_node(policy: &PolicyRecord, params: &[u64; NODE_PARAMS]) -> bool {
    let rare = ["order", "replenishment", "charge", "gain", "inner_gain", "slot"];
    let is_rare = |name: &str| {
        let at = policies::position(&policy.node_params, name);
        at.is_some_and(|at| params[at] > 0)
    };
    policies::own_budget(policy).is_none() && !rare.iter().any(|name| is_rare(name))
}

impl Step {
    /// Which kind, from 0.
    #[cfg(test)]
    fn kind(&self) -> usize {
        match self {
            Step::Numbers { .. } => 0,
            Step::Node { .. } => 1,
            Step::Task { .. } => 2,
            Step::Move { .. } => 3,
            Step::Gone { .. } => 4,
        }
    }

    /// What it changes, in words; `plan`: as it is before.
    pub fn differences(&self, plan: &Plan) -> Vec<Difference> {
        let one = |verb, part, detail| vec![Difference { verb, part, detail }];
        match self {
            Step::Numbers { edge, to, job_deadline_ns } => {
                let (from, policy) = (&plan.edges[*edge], policies::by_number(plan.nodes[to.parent].policy));
                let detail = steps(policy.map(|policy| &policy.edge_params[..]), from.params, to.params);
                let mut list = one(Verb::Changed, edge_name(plan, from), detail);
                if let Child::Task(task) = to.child {
                    let task = &plan.tasks[task];
                    let jobs = deadlines([task.job_deadline_ns, *job_deadline_ns]);
                    list.extend(one(Verb::Changed, format!("task {}", task.name), jobs));
                }
                list.retain(|difference| !difference.detail.is_empty());
                list
            }
            Step::Node { node, edge } => {
                one(Verb::Added, format!("node {}", node.name), node_detail(plan, node, &[edge]))
            }
            Step::Task { task, edge, .. } => {
                one(Verb::Added, format!("task {}", task.name), child_detail(plan, &[edge], task.affinity))
            }
            Step::Move { edge, to } => {
                let (from, name) = (&plan.edges[*edge], plan.child_name(to.child));
                let [was, is] = [from, to].map(|edge| child_detail(plan, &[edge], None));
                let detail =
                    if was == is { "with what is above it".to_string() } else { format!("{was} -> {is}") };
                one(Verb::Replaced, format!("task {name}"), detail)
            }
            Step::Gone { child, .. } => {
                let kind = if matches!(child, Child::Node(_)) { "node" } else { "task" };
                one(Verb::Removed, format!("{kind} {}", plan.child_name(*child)), String::new())
            }
        }
    }

    /// Edges below a node, when the step is taken.
    pub fn below<'s>(&'s self, plan: &'s Plan, node: usize) -> impl Iterator<Item = &'s Edge> {
        let (new, old) = match self {
            Step::Numbers { edge, to, .. } | Step::Move { edge, to } => (Some(to), Some(*edge)),
            Step::Node { edge, .. } | Step::Task { edge, .. } => (Some(edge), None),
            Step::Gone { edge, .. } => (None, Some(*edge)),
        };
        let stay =
            plan.edges.iter().enumerate().filter(move |(at, _)| Some(*at) != old).map(|(_, edge)| edge);
        stay.chain(new).filter(move |edge| edge.parent == node)
    }

    /// The nodes below which it changes something.
    pub fn parents(&self, plan: &Plan) -> [Option<usize>; 2] {
        match self {
            Step::Numbers { to, .. } => [Some(to.parent), None],
            Step::Move { edge, to } => [Some(plan.edges[*edge].parent), Some(to.parent)],
            Step::Node { edge, .. } | Step::Task { edge, .. } => [Some(edge.parent), None],
            Step::Gone { edge, .. } => [Some(plan.edges[*edge].parent), None],
        }
    }

    /// The edge that is new, or not as before.
    pub fn edge(&self) -> Option<&Edge> {
        match self {
            Step::Numbers { to, .. } | Step::Move { to, .. } => Some(to),
            Step::Node { edge, .. } | Step::Task { edge, .. } => Some(edge),
            Step::Gone { .. } => None,
        }
    }
}

/// In words, of a node that has these edges above it, and no replicas.
fn node_detail(plan: &Plan, node: &Node, above: &[&Edge]) -> String {
    let policy = policies::by_number(node.policy).map_or("", |policy| policy.name);
    policy.to_string() + &below_in_words(plan, above.iter().copied(), false)
}

/// In words, of a task that has these.
fn child_detail(plan: &Plan, above: &[&Edge], affinity: Option<Cpus>) -> String {
    let text = below_in_words(plan, above.iter().copied(), false) + &on(affinity);
    text.trim_start_matches(", ").to_string()
}

#[cfg(test)]
mod tests {
    use crate::change::draw::Draw;
    use crate::change::edit::Edit;
    use crate::change::edits::{edit, lowest, meaning, plans};
    use crate::model::any_cpu::Standing;
    use crate::Change;

    /// After every step the model means what the text means that was edited step by step; the text that is written later means
    /// the same; and the words for what changes are the same.
    #[test]
    fn steps_mean_what_the_text_means() {
        let mut draw = Draw::new(24);
        let (mut steps, mut others, mut written) = ([0; 5], 0, 0);
        for plan in plans() {
            // Texts that are edited step by step; the model and what of it is not written yet.
            let (mut text, mut settled, mut model) = (plan.clone(), plan.clone(), plan);
            let mut unwritten: Vec<Edit> = Vec::new();
            for _ in 0..60 {
                let edit = edit(&model, &mut draw);
                let anew = text.written_anew(&edit, &Standing::of(&text), lowest);
                match (model.step(&edit, &|| Standing::of(&model), lowest), anew) {
                    (Some(step), Ok(anew)) => {
                        steps[step.kind()] += 1;
                        let change = Change::between(&text, &anew).unwrap();
                        assert_eq!(change.differences(), step.differences(&model), "{edit:?}");
                        model.take(step);
                        text = anew;
                        edit.add_to(&mut unwritten);
                    }
                    (Some(_), Err(faults)) => {
                        panic!("{edit:?} is refused: {faults}\n{}", text.sources.0[0].text)
                    }
                    (None, Ok(anew)) => {
                        others += 1;
                        (settled, model, text) = (anew.clone(), anew.clone(), anew);
                        unwritten.clear();
                    }
                    (None, Err(_)) => {}
                }
                assert_eq!(meaning(&model), meaning(&text), "{unwritten:?}\n{}", text.sources.0[0].text);
                if draw.below(7) == 0 {
                    let anew = settled.written(&unwritten, &Standing::of(&model), lowest);
                    let anew = anew.unwrap_or_else(|faults| panic!("{unwritten:?}: {faults}"));
                    assert_eq!(meaning(&anew), meaning(&model), "{unwritten:?}");
                    written += 1;
                    if draw.below(2) == 0 {
                        (settled, model) = (anew.clone(), anew);
                        unwritten.clear();
                    }
                }
            }
        }
        println!("{steps:?} steps, {others} by the text; written {written} times");
        assert!(steps.iter().all(|count| *count > 20) && others > 100 && written > 100, "{steps:?} {others}");
    }
}
