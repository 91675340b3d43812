//! The text of a plan, edited by operations ([`Edit`]).
//!
//! The text is edited as the tree that it is, so that comments, order and the places of messages stay, and what comes out
//! is a plan like any other: it can be printed, checked, and compared with the one before ([`crate::Change`]). Whatever is
//! wrong with the result is reported as the fault of a text; here is only refused what the text could not tell.

#![allow(clippy::result_large_err)] // one per operation

use super::edit::{Below, Edit};
use super::toml::{copied, dotted, implicit, inline, matchers, put, value, Keys};
use crate::model::any_cpu::{Placer, Standing};
use crate::model::for_each::text_name;
use crate::model::{Child, Edge, Options, Plan};
use crate::policies;
use crate::resolve::documents;
use crate::text::faults::{Fault, Faults};
use crate::text::source::{Source, Spot};
use crate::text::tree::{closest, listed};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

impl Plan {
    /// This plan after an operation. `standing`: what is in force; `placer`: who places what has `cpu = "any"`.
    pub fn edited_by(
        &self,
        edit: &Edit,
        standing: impl FnOnce() -> Standing,
        placer: Placer,
    ) -> Result<Plan, Faults> {
        match self.adjusted(edit) {
            Some(plan) => Ok(plan),
            None => self.written_anew(edit, &standing(), placer),
        }
    }

    /// The same by way of the text.
    pub(crate) fn written_anew(
        &self,
        edit: &Edit,
        standing: &Standing,
        placer: Placer,
    ) -> Result<Plan, Faults> {
        let mut editor = Editor { plan: self, documents: BTreeMap::new() };
        let wrong = |fault| Faults::new(vec![fault], self.sources.clone());
        editor.edit(edit).map_err(wrong)?;
        let mut sources = self.sources.clone();
        for (at, document) in editor.documents {
            let name = sources.0[at].name.clone();
            sources.0[at] = Arc::new(Source::new(name, document.to_string()));
        }
        let plan = documents::from_sources(&sources, Options { cpus: self.machine.cpus }, standing, placer)?;
        if let Edit::Create { name, who, .. } = edit {
            let first = plan.entries.first().map_or("", |entry| text_name(plan.child_name(entry.target)));
            if !who.is_empty() && first != name && first != threads_of(name) {
                let message = format!("`{first}` is written so that nothing can come before its match");
                let fault = Fault::new("match_must_come_first", plan.entries[0].spot, message);
                return Err(wrong(fault.hint("a header of its own: [task.NAME]")));
            }
        }
        Ok(plan)
    }
}

/// The set of the threads of a node that was created with them.
fn threads_of(node: &str) -> String {
    format!("{node}-threads")
}

/// Which table something is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Node,
    Task,
    Set,
}

impl Kind {
    pub(super) fn key(self) -> &'static str {
        match self {
            Kind::Node => "node",
            Kind::Task => "task",
            Kind::Set => "tasks",
        }
    }
}

pub(super) struct Part {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) spot: Spot,
}

/// The texts of a plan on their way.
pub(super) struct Editor<'p> {
    pub(super) plan: &'p Plan,
    /// Those that were looked into, by their place among the sources.
    pub(super) documents: BTreeMap<usize, DocumentMut>,
}

impl Editor<'_> {
    pub(super) fn edit(&mut self, edit: &Edit) -> Result<(), Fault> {
        match edit {
            Edit::Create { name, policy, under, keys, who, cpus } => {
                let mut keys = keys.clone();
                let mut affinity = None;
                if let Some(cpus) = cpus.as_ref().filter(|_| self.is_per_cpu(under)) {
                    if keys.iter().all(|(key, _)| key != "cpu") {
                        keys.push(("cpu".into(), "any".into()));
                        affinity = Some(&cpus[..]).filter(|cpus| !cpus.is_empty());
                    }
                }
                self.create(name, policy.as_deref(), under, &keys, who)?;
                if let (Some(cpus), None) = (affinity, policy) {
                    self.limit(name, cpus)?;
                }
                Ok(())
            }
            Edit::Destroy { name, below } => self.destroy(name, *below),
            Edit::Set { name, under, keys, who } => self.set(name, under.as_deref(), keys, who),
            Edit::Move { name, tasks: true, from: _, under, keys } => {
                let node = self.node(name)?;
                let leaves = self.children(&node).into_iter().filter(|part| part.kind != Kind::Node);
                let leaves: Vec<Part> = leaves.collect();
                if leaves.is_empty() {
                    let fault = Fault::new("tasks_must_exist", node.spot, format!("`{name}` has no tasks"));
                    return Err(fault.hint("threads that match nothing move with the default node"));
                }
                leaves.iter().try_for_each(|part| self.place(part, Some(name), under, keys))
            }
            Edit::Move { name, tasks: false, from, under, keys } => {
                let part = self.part(name)?;
                self.place(&part, from.as_deref(), under, keys)
            }
            Edit::Link { name, under, keys } => self.link(name, under, keys),
            Edit::Enclose { name } => self.enclose(name),
            Edit::Default { name, keys } => self.default(name, keys),
        }
    }

    // ---- the operations ----------------------------------------------------------------------------------------

    fn create(
        &mut self,
        name: &str,
        policy: Option<&str>,
        under: &str,
        keys: &Keys,
        who: &[Keys],
    ) -> Result<(), Fault> {
        if let Some(taken) = self.parts().into_iter().find(|part| part.name == name) {
            let message =
                format!("the name `{name}` is taken: nodes, tasks, sets and chains share their names");
            return Err(Fault::new("name_is_unique", taken.spot, message));
        }
        let Some(policy) = policy else {
            let one = matches!(who, [keys] if keys.iter().any(|(key, _)| key == "tid"));
            let kind = if one { Kind::Task } else { Kind::Set };
            return self.threads(kind, name, under, keys, who);
        };
        let owns = |key: &str| own_key(policies::by_name(policy), key);
        let is_of_threads = |key: &str| key == JOB_DEADLINE && !who.is_empty();
        let (jobs, keys): (Keys, Keys) = keys.iter().cloned().partition(|(key, _)| is_of_threads(key));
        // What both have, both get: a node that counts on a budget, below one that gives it.
        let above = self.plan.nodes.iter().find(|node| text_name(&node.base) == under);
        let above = above.and_then(|node| policies::by_number(node.policy));
        let gives =
            |key: &str| above.is_some_and(|above| policies::position(&above.edge_params, key).is_some());
        let own: Keys = keys.iter().filter(|(key, _)| owns(key)).cloned().collect();
        let edge: Keys = keys.iter().filter(|(key, _)| !owns(key) || gives(key)).cloned().collect();
        let mut table = Table::new();
        table.insert("policy", policy.into());
        own.iter().for_each(|(key, text)| put(&mut table, key, value(text)));
        table.insert("under", Item::Table(dotted(under, inline(&edge))));
        self.document(0)?.entry(Kind::Node.key()).or_insert(implicit());
        self.tables(0, Kind::Node)?.insert(name, Item::Table(table));
        match who.is_empty() {
            true => Ok(()),
            false => self.threads(Kind::Set, &threads_of(name), name, &jobs, who),
        }
    }

    /// It has a replica on each CPU, and tasks below it stay on theirs.
    pub(super) fn is_per_cpu(&self, name: &str) -> bool {
        let nodes = &self.plan.nodes;
        nodes
            .iter()
            .any(|node| text_name(&node.base) == name && node.replica.is_some() && node.family.is_none())
    }

    /// A new task or set may run on these CPUs only.
    fn limit(&mut self, name: &str, cpus: &[u32]) -> Result<(), Fault> {
        let sources: Vec<_> = self.documents.keys().copied().collect();
        for (source, kind) in sources.into_iter().flat_map(|at| [(at, Kind::Task), (at, Kind::Set)]) {
            let Ok(tables) = self.tables(source, kind) else { continue };
            if let Some(table) = tables.get_mut(name).and_then(Item::as_table_like_mut) {
                let list: Array = cpus.iter().map(|cpu| i64::from(*cpu)).collect();
                table.insert("affinity", Item::Value(list.into()));
            }
        }
        Ok(())
    }

    /// A task or set of threads that comes before every other match.
    fn threads(
        &mut self,
        kind: Kind,
        name: &str,
        under: &str,
        keys: &Keys,
        who: &[Keys],
    ) -> Result<(), Fault> {
        let (jobs, keys): (Keys, Keys) = keys.iter().cloned().partition(|(key, _)| key == JOB_DEADLINE);
        let mut table = Table::new();
        table.insert("under", Item::Table(dotted(under, inline(&keys))));
        table.insert("match", matchers(who));
        set_deadline(&mut table, &jobs);
        let mut source = 0;
        if let Some(entry) = self.plan.entries.first() {
            let first = self.part(text_name(self.plan.child_name(entry.target)))?;
            source = entry.spot.source as usize;
            let tables = self.tables(source, first.kind)?;
            let place = tables.get(&first.name).and_then(Item::as_table).and_then(Table::position);
            place.into_iter().for_each(|place| table.set_position(place - 1));
        }
        self.document(source)?.entry(kind.key()).or_insert(implicit());
        self.tables(source, kind)?.insert(name, Item::Table(table));
        Ok(())
    }

    fn destroy(&mut self, name: &str, below: Below) -> Result<(), Fault> {
        let part = self.part(name)?;
        let children = self.children(&part);
        let wanted =
            |child: &&Part| below < if child.kind == Kind::Node { Below::All } else { Below::Threads };
        let stay: Vec<&str> = children.iter().filter(wanted).map(|child| &child.name[..]).collect();
        if !stay.is_empty() {
            let fault = Fault::new("node_must_be_empty", part.spot, format!("there is more below `{name}`"));
            let hint = "tierce ctl destroy --all takes that out, too; tierce ctl move puts it elsewhere";
            return Err(fault.value(listed(&stay)).bound("nothing").hint(hint));
        }
        for child in &children {
            if self.parents(child)?.iter().all(|parent| parent == name) {
                self.destroy(&child.name, below)?;
            } else {
                self.under(child)?.remove(name);
            }
        }
        self.tables(part.spot.source as usize, part.kind)?.remove(name);
        Ok(())
    }

    fn set(&mut self, name: &str, under: Option<&str>, keys: &Keys, who: &[Keys]) -> Result<(), Fault> {
        let part = self.part(name)?;
        let policy =
            self.plan.nodes.iter().find(|node| part.kind == Kind::Node && text_name(&node.base) == name);
        let policy = policy.and_then(|node| policies::by_number(node.policy));
        let owns = |key: &str| under.is_none() && part.kind == Kind::Node && own_key(policy, key);
        let (own, above): (Keys, Keys) = keys.iter().cloned().partition(|(key, _)| owns(key));
        let (jobs, mut above): (Keys, Keys) = above.into_iter().partition(|(key, _)| key == JOB_DEADLINE);
        let table = self.table(&part)?;
        own.iter().for_each(|(key, text)| put(table, key, value(text)));
        if !who.is_empty() || !jobs.is_empty() {
            let leaf = if part.kind == Kind::Node { self.part(&threads_of(name))? } else { self.part(name)? };
            let table = self.table(&leaf)?;
            if !who.is_empty() {
                put(table, "match", matchers(who));
            }
            set_deadline(table, &jobs);
        }
        if above.is_empty() {
            return Ok(());
        }
        let parent = self.parent(&part, under)?;
        let every = self.cpus_of(&part, &parent);
        let edge = self.under(&part)?.get_mut(&parent);
        let edge = edge.ok_or_else(|| lost(&part))?;
        // Of one edge that stands for one from each CPU, `cpu` says which gets other numbers: the others keep theirs.
        let says_which = above.iter().any(|(key, text)| key == "cpu" && text != "any");
        if every.len() > 1 && says_which && (part.kind == Kind::Node || above.len() > 1) {
            let one = edge.as_table_like().filter(|table| !table.contains_key("cpu")).map(on_cpu);
            if let Some(on) = one {
                *edge = Item::Value(every.iter().map(|cpu| on(*cpu)).collect::<Array>().into());
            }
        }
        // Of a list of edges, to replicas, `cpu` says which.
        if let Some(list) = edge.as_array_mut() {
            let cpu = above.iter().position(|(key, _)| key == "cpu").map(|at| above.remove(at).1);
            let of =
                |edge: &Value| edge.as_inline_table()?.get("cpu")?.as_integer().map(|cpu| cpu.to_string());
            let mut chosen = list.iter_mut().filter(|edge| cpu.is_some() && of(edge) == cpu);
            let table = chosen.next().and_then(Value::as_inline_table_mut);
            let table = table.ok_or_else(|| {
                let message = format!("`{name}` has several edges from `{parent}`");
                Fault::new("edge_must_be_clear", part.spot, message).hint("--cpu says which")
            })?;
            above.iter().for_each(|(key, text)| put(table, key, value(text)));
            return Ok(());
        }
        let table = edge.as_table_like_mut().ok_or_else(|| lost(&part))?;
        above.iter().for_each(|(key, text)| put(table, key, value(text)));
        edge.as_inline_table_mut().into_iter().for_each(InlineTable::fmt);
        Ok(())
    }

    /// The CPUs from which edges lead to a part, where its parent is `per_cpu` and it is not.
    pub(super) fn cpus_of(&self, part: &Part, parent: &str) -> Vec<u32> {
        let plan = self.plan;
        if !self.is_per_cpu(parent) || self.is_per_cpu(&part.name) {
            return Vec::new();
        }
        let edges = plan.edges.iter().chain(plan.sets.iter().flat_map(|set| &set.under));
        let to_part = |edge: &&Edge| {
            let name = match edge.child {
                Child::Node(node) => &plan.nodes[node].base,
                Child::Task(task) => &plan.tasks[task].name,
                Child::Set(set) => &plan.sets[set].name,
            };
            text_name(&plan.nodes[edge.parent].base) == parent && text_name(name) == part.name
        };
        edges.filter(to_part).filter_map(|edge| plan.nodes[edge.parent].replica).collect()
    }

    /// Another node above a part, instead of `from` or of all that are.
    fn place(&mut self, part: &Part, from: Option<&str>, to: &str, keys: &Keys) -> Result<(), Fault> {
        let parents = self.parents(part)?;
        let from = match from {
            Some(from) => vec![self.parent(part, Some(from))?],
            None => parents.clone(),
        };
        if parents.iter().any(|parent| parent == to) {
            let message = format!("`{}` is below `{to}` already", part.name);
            let fault = Fault::new("place_must_be_another", part.spot, message);
            return Err(fault.hint("tierce ctl set changes the edge"));
        }
        let policy =
            |name: &str| Some(self.plan.nodes.iter().find(|node| text_name(&node.base) == name)?.policy);
        let alike = from.len() == 1 && policy(&from[0]) == policy(to);
        let under = self.under(part)?;
        let mut old = None;
        for parent in &from {
            old = under.remove(parent);
        }
        let edge = match old.filter(|_| alike && keys.is_empty()) {
            Some(edge) => edge,
            None => Item::Value(inline(keys).into()),
        };
        under.insert(to, edge);
        Ok(())
    }

    fn default(&mut self, name: &str, keys: &Keys) -> Result<(), Fault> {
        let new = self.node(name)?;
        let plan = self.plan;
        let mut each = None;
        if let Some(old) = plan.default_node.map(|node| &plan.nodes[node]) {
            let part = self.part(text_name(&old.base))?;
            let table = self.table(&part)?;
            table.remove("default");
            each = table.remove("each");
            let alike =
                |node: &&crate::model::Node| text_name(&node.base) == name && node.policy == old.policy;
            each = each.filter(|_| plan.nodes.iter().any(|node| alike(&node)));
        }
        if !keys.is_empty() {
            each = Some(Item::Value(inline(keys).into()));
        }
        let table = self.table(&new)?;
        put(table, "default", true.into());
        each.into_iter().for_each(|each| _ = table.insert("each", each));
        Ok(())
    }

    // ---- what is there -----------------------------------------------------------------------------------------

    pub(super) fn parts(&self) -> Vec<Part> {
        let plan = self.plan;
        let part = |kind, name: &str, spot| Part { kind, name: name.to_string(), spot };
        let nodes = plan.nodes.iter().map(|node| part(Kind::Node, text_name(&node.base), node.spot));
        let tasks = plan.tasks.iter().filter(|task| task.set.is_none());
        let tasks = tasks.map(|task| part(Kind::Task, &task.name, task.spot));
        let sets = plan.sets.iter().map(|set| part(Kind::Set, text_name(&set.name), set.spot));
        nodes.chain(tasks).chain(sets).collect()
    }

    pub(super) fn part(&self, name: &str) -> Result<Part, Fault> {
        let mut parts = self.parts();
        if let Some(at) = parts.iter().position(|part| part.name == name) {
            return Ok(parts.swap_remove(at));
        }
        let fault = Fault::new("name_must_exist", Spot::default(), "no node, task or set has this name");
        let fault = fault.value(name);
        Err(match closest(name, parts.iter().map(|part| &part.name[..])) {
            Some(close) => fault.hint(format!("did you mean `{close}`?")),
            None => fault.hint("tierce ctl list shows what there is"),
        })
    }

    pub(super) fn node(&self, name: &str) -> Result<Part, Fault> {
        let part = self.part(name)?;
        match part.kind {
            Kind::Node => Ok(part),
            _ => Err(Fault::new("part_must_be_a_node", part.spot, format!("`{name}` is no node"))),
        }
    }

    /// What is directly below a part, each once.
    fn children(&self, part: &Part) -> Vec<Part> {
        let plan = self.plan;
        let is_below =
            |edge: &&Edge| part.kind == Kind::Node && text_name(&plan.nodes[edge.parent].base) == part.name;
        let edges = plan.edges.iter().chain(plan.sets.iter().flat_map(|set| &set.under)).filter(is_below);
        let name = |child| match child {
            Child::Node(node) => &plan.nodes[node].base,
            Child::Task(task) => {
                plan.tasks[task].set.map_or(&plan.tasks[task].name, |set| &plan.sets[set].name)
            }
            Child::Set(set) => &plan.sets[set].name,
        };
        let names: Vec<&str> = edges.map(|edge| text_name(name(edge.child))).collect();
        self.parts().into_iter().filter(|part| names.contains(&part.name.as_str())).fold(
            Vec::new(),
            |mut list, part| {
                if list.iter().all(|other: &Part| other.name != part.name) {
                    list.push(part);
                }
                list
            },
        )
    }

    /// Names of the nodes above it.
    pub(super) fn parents(&mut self, part: &Part) -> Result<Vec<String>, Fault> {
        Ok(self.under(part)?.iter().map(|(name, _)| name.to_string()).collect())
    }

    /// The parent that is meant.
    pub(super) fn parent(&mut self, part: &Part, wanted: Option<&str>) -> Result<String, Fault> {
        let parents = self.parents(part)?;
        match (wanted, &parents[..]) {
            (Some(wanted), _) if parents.iter().any(|parent| parent == wanted) => Ok(wanted.to_string()),
            (Some(wanted), _) => {
                let message = format!("`{}` is not below that", part.name);
                Err(Fault::new("edge_must_exist", part.spot, message).value(wanted).bound(listed(&parents)))
            }
            (None, [one]) => Ok(one.clone()),
            (None, _) => {
                let fault = Fault::new(
                    "edge_must_be_clear",
                    part.spot,
                    format!("`{}` has several parents", part.name),
                );
                Err(fault
                    .value(parents.len())
                    .bound("1")
                    .hint(format!("--under, one of {}", listed(&parents))))
            }
        }
    }

    // ---- the text ----------------------------------------------------------------------------------------------

    pub(super) fn document(&mut self, source: usize) -> Result<&mut DocumentMut, Fault> {
        if !self.documents.contains_key(&source) {
            let text = self.plan.sources.0.get(source).map_or("", |source| &source.text);
            let spot = Spot { source: source as u32, ..Spot::default() };
            let fault = |error: toml_edit::TomlError| {
                Fault::new("toml_syntax", spot, error.message().replace('\n', ", "))
            };
            self.documents.insert(source, text.parse().map_err(fault)?);
        }
        self.documents.get_mut(&source).ok_or_else(|| Fault::new("toml_syntax", Spot::default(), "no text"))
    }

    /// All of one kind in a text.
    pub(super) fn tables(&mut self, source: usize, kind: Kind) -> Result<&mut dyn TableLike, Fault> {
        let spot = Spot { source: source as u32, ..Spot::default() };
        let tables = self.document(source)?.get_mut(kind.key()).and_then(Item::as_table_like_mut);
        tables.ok_or_else(|| {
            Fault::new("part_must_be_in_the_text", spot, format!("there is no [{}]", kind.key()))
        })
    }

    pub(super) fn table(&mut self, part: &Part) -> Result<&mut dyn TableLike, Fault> {
        let tables = self.tables(part.spot.source as usize, part.kind)?;
        tables.get_mut(&part.name).and_then(Item::as_table_like_mut).ok_or_else(|| lost(part))
    }

    pub(super) fn under(&mut self, part: &Part) -> Result<&mut dyn TableLike, Fault> {
        let under = self.table(part)?.get_mut("under").and_then(Item::as_table_like_mut);
        under.ok_or_else(|| {
            let message = format!("`{}` is what a CPU runs: nothing is above it", part.name);
            Fault::new("edge_must_exist", part.spot, message)
        })
    }
}

/// An edge as it is, from the replica on one CPU.
fn on_cpu(edge: &dyn TableLike) -> impl Fn(u32) -> InlineTable + use<> {
    let keys = copied(edge);
    move |cpu| {
        let mut table = InlineTable::new();
        table.insert("cpu", i64::from(cpu).into());
        keys.iter().for_each(|(key, value)| _ = table.insert(key, value.clone()));
        table.fmt();
        table
    }
}

pub(super) fn lost(part: &Part) -> Fault {
    Fault::new("part_must_be_in_the_text", part.spot, format!("`{}` is not where it was", part.name))
}

/// What an operation says of the jobs of a task, or of the threads of a set or node; as a key, beside those of edges.
pub const JOB_DEADLINE: &str = "job_deadline";
/// It has none any more.
pub const NO_DEADLINE: &str = "none";

fn set_deadline(table: &mut dyn TableLike, jobs: &Keys) {
    match jobs.last() {
        Some((key, text)) if text == NO_DEADLINE => _ = table.remove(key),
        Some((key, text)) => put(table, key, value(text)),
        None => {}
    }
}

/// Is it the node's own, not of the edge above it?
pub(crate) fn own_key(policy: Option<&policies::PolicyRecord>, key: &str) -> bool {
    ["concurrency", "spread"].contains(&key)
        || policy.is_some_and(|policy| policies::position(&policy.node_params, key).is_some())
}
