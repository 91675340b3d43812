//! `under.PARENT`: which replica leads to which child, and with what.

use super::names::{cpu_number, is_all, is_any, Declared, ItemKind};
use super::params::{self, OfThread, Owner};
use super::places::elsewhere_of;
use super::state::{Below, Resolver};
use crate::model::any_cpu::Unit;
use crate::model::realtime::PRIORITY_MIN;
use crate::model::shape::cpus;
use crate::model::{Child, Edge};
use crate::policies::{self, PolicyRecord};
use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::tree::{closest, listed, Fields, Key, Kind, Table, Value};
use tierce_policy::Cpus;

/// The edges that an `under` stands for: once, or with `cpu = "any"` for each CPU on which they can be.
#[derive(Default)]
pub(super) struct Ways {
    once: Vec<Edge>,
    /// Ascending.
    on: Vec<(u32, Vec<Edge>)>,
}

impl Ways {
    /// Those on the lowest CPU.
    pub(super) fn first(&self) -> Vec<Edge> {
        self.on.first().map_or(&self.once, |(_, edges)| edges).clone()
    }

    /// Those on each other CPU.
    pub(super) fn others(self) -> Vec<Vec<Edge>> {
        self.on.into_iter().skip(1).map(|(_, edges)| edges).collect()
    }
}

/// One `under.PARENT = …`.
#[derive(Clone, Copy)]
struct Under<'a> {
    /// Whose, in words.
    owner: &'a str,
    key: &'a Key,
    parent: &'a Declared,
    below: &'a Below<'a>,
    /// It comes from `firm`.
    firm: bool,
}

impl Resolver {
    /// `under.PARENT = …` of what is below, by the name of that.
    pub(super) fn under(&mut self, owner: &str, name: &str, value: &Value, below: &Below) {
        let ways = self.ways(owner, value, below);
        let edges = match below.children {
            [(child, _)] => self.choose(name, *child, &ways),
            _ => ways.once,
        };
        self.plan.edges.extend(edges);
    }

    /// On the CPU that was chosen for it; as long as none is, the lowest stands for it.
    pub(super) fn choose(&mut self, name: &str, child: Child, ways: &Ways) -> Vec<Edge> {
        if ways.on.is_empty() {
            return ways.once.clone();
        }
        let cpus = ways.on.iter().map(|(cpu, _)| *cpu).collect();
        self.units.push(Unit { name: name.to_string(), child, cpus });
        let placed = self.placed.get(name);
        let chosen = ways.on.iter().find(|(cpu, _)| Some(cpu) == placed);
        chosen.map_or_else(|| ways.first(), |(_, edges)| edges.clone())
    }

    /// The edges that it stands for.
    pub(super) fn ways(&mut self, owner: &str, value: &Value, below: &Below) -> Ways {
        let (edges, faults) = (self.plan.edges.len(), self.collector.faults.len());
        let broken = self.broken.len();
        let (mut ways, mut wrong) = (Ways::default(), Vec::new());
        for cpu in self.any_of(value, below) {
            self.under_on(owner, value, &Below { any: Some(cpu), ..*below });
            let found = self.plan.edges.split_off(edges);
            let why = self.collector.faults.split_off(faults);
            match why.is_empty() {
                true => ways.on.push((cpu, found)),
                false if wrong.is_empty() => wrong = why,
                false => {}
            }
        }
        if ways.on.is_empty() {
            self.collector.faults.extend(wrong);
        } else {
            self.broken.truncate(broken);
        }
        if ways.on.is_empty() && self.collector.faults.len() == faults {
            self.under_on(owner, value, below);
            ways.once = self.plan.edges.split_off(edges);
        }
        ways
    }

    /// CPUs that `cpu = "any"` may stand for: where all parents that it is said of have replicas, and the leaf may run. None if the
    /// text does not say it, or wrongly.
    fn any_of(&self, value: &Value, below: &Below) -> Vec<u32> {
        let Kind::Table(table) = &value.kind else { return Vec::new() };
        let says_it = |edge: &Value| match &edge.kind {
            Kind::Table(edge) => edge.entries.iter().any(|(key, value)| key.text == "cpu" && is_any(value)),
            _ => false,
        };
        let says_it = |value: &Value| match &value.kind {
            Kind::List(list) => list.iter().any(says_it),
            _ => says_it(value),
        };
        let mut cpus: Option<Cpus> = None;
        for (key, _) in table.entries.iter().filter(|(_, value)| says_it(value)) {
            let replicas = self.names.get(&key.text).and_then(|parent| parent.replicas.as_ref());
            let there: Cpus = replicas.into_iter().flatten().collect();
            cpus = Some(cpus.unwrap_or(below.affinity.unwrap_or(Cpus::ALL)) & there);
        }
        cpus.unwrap_or_default().iter().collect()
    }

    fn under_on(&mut self, owner: &str, value: &Value, below: &Below) {
        let faults = self.collector.faults.len();
        let what = format!("`under` of {owner}");
        let table = self.collector.table_or(&what, value, |name| Some(format!("write under.{name} = {{}}")));
        if let Some(table) = table {
            let (elsewhere, spread) = elsewhere_of(value, &self.places, below.any);
            let below = Below { elsewhere, ..*below };
            let leaf = below.children.iter().all(|(child, _)| !matches!(child, Child::Node(_)));
            if let (true, None, true, Some((key, _))) = (leaf, elsewhere, spread > 1, table.entries.last()) {
                let message = format!(
                    "{owner} has {spread} edges from spread nodes, between whose replicas it would move"
                );
                let fault = Fault::new("spread_task_has_one_parent", key.spot, message);
                let hint = "one edge; `cpu = …` in each keeps it below these replicas";
                self.collector.add(fault.value(spread).bound(1).hint(hint));
            }
            for (key, value) in &table.entries {
                self.edges(owner, key, value, &below, false);
            }
        }
        if self.collector.faults.len() > faults {
            self.broken.extend(below.children.iter().map(|(child, _)| *child));
        }
    }

    fn edges(&mut self, owner: &str, key: &Key, value: &Value, below: &Below, firm: bool) {
        let Some(parent) = self.parent(owner, key) else { return };
        let edges = self.collector.one_or_more(value);
        if edges.is_empty() {
            let message = format!("`under.{}` of {owner} is an empty list", key.text);
            self.collector.add(Fault::new("list_must_not_be_empty", value.spot, message));
        }
        for value in edges {
            self.edge(Under { owner, key, parent: &parent, below, firm }, value);
        }
    }

    fn parent(&mut self, owner: &str, key: &Key) -> Option<Declared> {
        if let Some(first) = self.copied.get(&key.text).filter(|_| !self.names.contains_key(&key.text)) {
            let message = format!("{owner} would be below one of several copies of `{}`", key.text);
            let fault = Fault::new("for_each_is_several", key.spot, message).other(*first, "defined here");
            self.collector.add(fault.hint("a node that is there once"));
            return None;
        }
        let Some(parent) = self.names.get(&key.text) else {
            let nodes = || self.names.iter().filter(|(_, declared)| declared.kind == ItemKind::Node);
            let mut names: Vec<_> = nodes().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            let hint = match closest(&key.text, names.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("there are {}", listed(&names)),
            };
            let message = format!("{owner} is under `{}`, which does not exist", key.text);
            self.collector.add(Fault::new("parent_must_exist", key.spot, message).hint(hint));
            return None;
        };
        if parent.kind != ItemKind::Node {
            let kind = match parent.kind {
                ItemKind::Set => "set of tasks",
                ItemKind::Chain => "chain",
                ItemKind::Task | ItemKind::Node => "task",
            };
            let message = format!("{owner} is under `{}`, which is a {kind}", key.text);
            let fault = Fault::new("task_cannot_be_parent", key.spot, message);
            self.collector.add(fault.other(parent.spot, "defined here"));
            return None;
        }
        Some(parent.clone())
    }

    fn edge(&mut self, under: Under, value: &Value) {
        let Under { owner, key, parent, below, .. } = under;
        let what = format!("`under.{}` of {owner}", key.text);
        let Some(table) = self.collector.table(&what, value) else { return };
        let mut fields = Fields::new(&what, table);
        let rank = fields.whole("rank", i64::from(i32::MIN), i64::from(i32::MAX), &mut self.collector);
        let rank = rank.unwrap_or(0) as i32;
        let when_spent = self.when_spent(&mut fields);
        let cpu = fields.key("cpu");
        let any = cpu.filter(|(_, value)| is_any(value));
        if let Some(fault) = any.and_then(|(_, value)| self.not_any(under, value)) {
            return self.collector.add(fault);
        }
        if let Some(fault) = cpu.and_then(|(_, value)| not_all(under, value)) {
            return self.collector.add(fault);
        }
        let Some(policy) = parent.policy else {
            self.broken.extend(below.children.iter().map(|(child, _)| *child)); // its parent's fault
            return;
        };
        let budgets = policies::budget_and_period(policy).is_some();
        let beside = ["soft", "firm"].map(|word| (word, if budgets { fields.take(word) } else { None }));
        // The place of an edge is its table; of one that is a header of its own, the header.
        let spot = if value.spot.len == 0 { key.spot } else { value.spot };
        let edge_owner = Owner { policy, params: &policy.edge_params, spot };
        let mut priority_of_thread = None;
        let is_set = below.children.iter().all(|(child, _)| matches!(child, Child::Set(_)));
        let own = is_set.then_some(OfThread {
            name: "priority",
            word: "rt_priority",
            otherwise: Some(PRIORITY_MIN),
            at: &mut priority_of_thread,
        });
        let params = self.params(&edge_owner, &mut fields, own).unwrap_or_default();
        let given = params::given(&policy.edge_params, table);
        fields.finish_with(&mut self.collector, |name| of_another_policy(&key.text, policy, name));
        let (placed, on_each) = (any.is_some(), cpu.is_some_and(|(_, value)| is_all(value)));
        let cpu = cpu.filter(|_| !on_each || parent.replicas.is_none());
        let edge = |parent, child| Edge {
            parent,
            child,
            params,
            rank,
            when_spent,
            spread: false,
            placed,
            on_each,
            priority_of_thread,
            firm: under.firm,
            given,
            spot,
        };
        if let Some(child) = below.moves(parent).filter(|_| cpu.is_none()) {
            let edge = Edge { spread: true, ..edge(parent.first, child) };
            let begin = self.begun.at(&self.plan, &edge, below.affinity);
            self.plan.edges.push(Edge { parent: begin, ..edge });
        } else {
            let pairs = self.pairs(under, cpu);
            self.plan.edges.extend(pairs.into_iter().map(|(parent, child)| edge(parent, child)));
        }
        self.soft_or_firm(under, beside, spot);
    }

    fn when_spent(&mut self, fields: &mut Fields) -> bool {
        let when = fields.take("when");
        let condition = when.and_then(|value| self.collector.text("`when`", value));
        let when_spent = condition == Some("spent");
        if let (Some(value), Some(other), false) = (when, condition, when_spent) {
            let fault = Fault::new("when_must_be_spent", value.spot, "there is no such condition");
            self.collector.add(fault.value(other).hint("when = \"spent\""));
        }
        when_spent
    }

    /// Why `cpu = "any"` cannot choose a replica of this parent.
    fn not_any(&self, under: Under, value: &Value) -> Option<Fault> {
        let Under { owner, key, parent, below, .. } = under;
        let name = &key.text;
        let fault = |rule, message: String| Fault::new(rule, value.spot, message);
        let replicas = parent.replicas.as_ref()?; // else no CPU can be chosen at all
        if parent.spread {
            let message = format!("`{name}` is spread: what is below it moves between CPUs by itself");
            let fault = fault("any_needs_a_per_cpu_node", message).other(parent.spot, "defined here");
            return Some(fault.hint("leave out `cpu`, or name one: there it stays"));
        }
        if below.spread || below.children.iter().any(|(_, replica)| replica.is_some()) {
            let message = format!("{owner} has a replica on each CPU, so there is no CPU to choose");
            return Some(
                fault("any_needs_a_single_child", message).hint("leave out `cpu`: replicas join equal CPUs"),
            );
        }
        if parent.policy.is_some_and(|policy| policies::position(&policy.edge_params, "offset").is_some()) {
            let message = format!(
                "reserves of `{name}` have their place in each slot: no CPU has more room than another"
            );
            return Some(fault("reserves_need_a_named_cpu", message).hint("name the CPU: cpu = 0"));
        }
        if below.any.is_none() {
            let message = format!("{owner} has no CPU to choose from");
            let fault = fault("any_needs_a_common_cpu", message);
            let bound = format!("CPUs of `{name}`: {replicas:?}");
            return Some(
                fault
                    .bound(bound)
                    .hint("its affinity and all parents with `cpu = \"any\"` need a CPU in common"),
            );
        }
        None
    }

    /// `soft = "NODE"`, `firm = "NODE"`: a second parent for what is more than the budget, there with presets.
    fn soft_or_firm(&mut self, under: Under, beside: [(&str, Option<&Value>); 2], spot: Spot) {
        let Under { owner, key, below, .. } = under;
        if let [(_, Some(_)), (_, Some(firm))] = beside {
            let message = format!("`under.{}` of {owner} is soft and firm", key.text);
            self.collector.add(Fault::new("soft_or_firm", firm.spot, message));
            return;
        }
        for (word, value) in beside {
            if let Some(Value { kind: Kind::Bool(_), spot }) = value {
                let message = format!("`{word}` of `under.{}` of {owner} must name a node", key.text);
                let fault = Fault::new("value_must_be_of_its_kind", *spot, message).value("true or false");
                let hint = format!(
                    "the node whose spare time it may use: {word} = \"NODE\"; `soft = true` belongs to a `load`, whose jobs \
                     may then miss deadlines"
                );
                self.collector.add(fault.hint(hint));
                continue;
            }
            if let Some(name) = value.and_then(|value| self.collector.text(&format!("`{word}`"), value)) {
                let at = Key { text: name.to_string(), spot: value.map_or(spot, |value| value.spot) };
                self.second(owner, word, &at, below);
            }
        }
    }

    fn second(&mut self, owner: &str, word: &str, at: &Key, below: &Below) {
        let there = self.names.get(&at.text).and_then(|declared| declared.policy);
        if let (Some(there), "firm") = (there, word) {
            if policies::priority(there).is_none() {
                let message = format!("`{}` has no priorities: `firm` needs one below all others", at.text);
                let fault = Fault::new("firm_needs_priorities", at.spot, message);
                return self.collector.add(fault.hint(format!("soft = \"{}\"", at.text)));
            }
        }
        let required: Vec<_> = there.map_or_else(Vec::new, |there| {
            there.edge_params.iter().filter(|param| param.required()).map(|param| param.name).collect()
        });
        if let (Some(there), false) = (there, required.is_empty()) {
            let message = format!(
                "`{word}` of {owner}: `{}` is a `{}`, whose children need {}",
                at.text,
                there.name,
                listed(&required)
            );
            let fault = Fault::new("soft_needs_no_parameters", at.spot, message);
            return self.collector.add(fault.hint("name a node that shares its time, such as a `fair` one"));
        }
        let presets = Value { spot: at.spot, kind: Kind::Table(Table::default()) };
        self.edges(owner, at, &presets, below, word == "firm");
    }

    /// Which replica of the parent leads to which child.
    fn pairs(&mut self, under: Under, cpu: Option<&(Key, Value)>) -> Vec<(usize, Child)> {
        let Under { owner, key, parent, below, .. } = under;
        let Some(replicas) = &parent.replicas else { return self.below_a_single_node(under, cpu) };
        let wanted = match cpu {
            Some((_, value)) => self.on_named_cpu(under, replicas, value).map(|cpu| vec![cpu]),
            None => self.beside_other_parents(under, replicas),
        };
        let Some(wanted) = wanted else { return Vec::new() };
        let mut pairs = Vec::new();
        for (child, replica) in below.children {
            match replica {
                // Replicas join equal CPUs.
                Some(replica) if wanted.contains(replica) => {
                    pairs.extend(parent.on(*replica).map(|at| (at, *child)))
                }
                Some(replica) if cpu.is_none() && !below.spread => {
                    let message =
                        format!("{owner} has a replica on CPU {replica}, its parent `{}` has not", key.text);
                    let fault = Fault::new("replica_must_exist", key.spot, message);
                    self.collector.add(fault.value(replica).bound(format!("{replicas:?}")));
                }
                Some(_) => {}
                // One child below all replicas, or the one selected.
                None => pairs.extend(wanted.iter().filter_map(|cpu| parent.on(*cpu)).map(|at| (at, *child))),
            }
        }
        pairs
    }

    /// The same for a parent without replicas.
    fn below_a_single_node(&mut self, under: Under, cpu: Option<&(Key, Value)>) -> Vec<(usize, Child)> {
        let Under { owner, key, parent, below, .. } = under;
        let children = below.children;
        if let Some((cpu, _)) = cpu {
            let message = format!("`cpu` selects a replica, but `{}` has none", key.text);
            let fault = Fault::new("cpu_needs_replicas", cpu.spot, message);
            self.collector.add(fault.hint("per_cpu = true there").other(parent.spot, "defined here"));
        } else if below.spread {
            return self.join_one_replica(under);
        } else if children.len() > 1 || children.iter().any(|(_, replica)| replica.is_some()) {
            let message = format!("{owner} is `per_cpu`, its parent `{}` is not", key.text);
            let fault = Fault::new("replicas_need_replicas", key.spot, message);
            self.collector.add(fault.hint("per_cpu = true there").other(parent.spot, "defined here"));
            return Vec::new();
        }
        children.iter().map(|(child, _)| (parent.first, *child)).collect()
    }

    /// The CPU of the replica that `cpu = …` selects; `None`: a fault.
    fn on_named_cpu(&mut self, under: Under, replicas: &[u32], value: &Value) -> Option<u32> {
        let cpu = match &value.kind {
            _ if is_any(value) => under.below.any,
            Kind::Text(text) => {
                let message = "`cpu` must be a whole number, \"any\" or \"all\"";
                let fault = Fault::new("value_must_be_of_its_kind", value.spot, message);
                self.collector.add(fault.value(format!("\"{text}\"")));
                None
            }
            _ => cpu_number("`cpu`", value, self.plan.machine.cpus, &mut self.collector),
        }?;
        if !replicas.contains(&cpu) {
            let message = format!("`{}` has no replica on that CPU", under.key.text);
            let fault = Fault::new("replica_must_exist", value.spot, message).value(cpu);
            self.collector.add(fault.bound(format!("{replicas:?}")));
            return None;
        }
        Some(cpu)
    }

    /// CPUs of all replicas; below a spread node only where its other parents are, if it does not move. `None`: a fault.
    fn beside_other_parents(&mut self, under: Under, replicas: &[u32]) -> Option<Vec<u32>> {
        let Under { owner, key, parent, below, .. } = under;
        let (true, false, Some(elsewhere)) = (parent.spread, below.spread, below.elsewhere) else {
            return Some(replicas.to_vec());
        };
        let common: Vec<_> = replicas.iter().copied().filter(|cpu| elsewhere.has(*cpu)).collect();
        if common.is_empty() && !elsewhere.is_empty() {
            let message = format!("{owner} has no CPU in common with the spread node `{}`", key.text);
            let fault = Fault::new("replica_must_exist", key.spot, message).value(cpus(elsewhere));
            self.collector.add(fault.bound(format!("{replicas:?}")));
            return None;
        }
        Some(common)
    }

    /// From a node in the tree of one CPU to the replica there.
    fn join_one_replica(&mut self, under: Under) -> Vec<(usize, Child)> {
        let Under { owner, key, parent, below, .. } = under;
        let children = below.children;
        let reach = self.places.get(&key.text).map_or(Cpus::NONE, |place| place.reach);
        let there = children.iter().find(|(_, replica)| replica.is_some_and(|cpu| reach.has(cpu)));
        let there = there.or(children.first().filter(|_| reach.is_empty())); // no CPU leads there: for that to be said
        if let (None, Some(cpu)) = (there, reach.lowest()) {
            let cpus: Vec<_> = children.iter().filter_map(|(_, replica)| *replica).collect();
            let message = format!("{owner} has no replica where its parent `{}` is", key.text);
            let fault = Fault::new("replica_must_exist", key.spot, message).value(cpu);
            self.collector.add(fault.bound(format!("{cpus:?}")));
        }
        there.map(|(child, _)| (parent.first, *child)).into_iter().collect()
    }
}

/// What is said of a key that children of another policy have.
fn of_another_policy(parent: &str, policy: &PolicyRecord, key: &str) -> Option<String> {
    let has = |policy: &&PolicyRecord| policies::position(&policy.edge_params, key).is_some();
    let others: Vec<_> = policies::policies().iter().filter(has).map(|policy| policy.name).collect();
    let own: Vec<_> = policy.edge_params.iter().map(|param| param.name).collect();
    let own = match own.is_empty() {
        true => "its children have no parameters".into(),
        false => format!("its children have {}", listed(&own)),
    };
    let of = format!("`{parent}` is `{}`: {own}; `{key}` is of children of {}", policy.name, listed(&others));
    (!others.is_empty()).then_some(of)
}

/// Why the child cannot have an edge from each replica of this parent: `cpu = "all"`.
fn not_all(under: Under, value: &Value) -> Option<Fault> {
    let Under { key, parent, .. } = under;
    let message = format!("`{}` is spread: what is below it moves between CPUs by itself", key.text);
    let fault = Fault::new("all_needs_a_per_cpu_node", value.spot, message);
    let fault = fault.other(parent.spot, "defined here").hint("leave out `cpu`, or name one: there it stays");
    (is_all(value) && parent.spread).then_some(fault)
}
