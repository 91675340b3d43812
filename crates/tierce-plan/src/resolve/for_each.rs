//! `for_each`: from one node of the text, and what is below it, to as many copies as there may be.

use super::names::{is_plain, Item, ItemKind};
use super::state::Resolver;
use crate::model::for_each::{text_name, COPIES_MAX, COPIES_PRESET};
use crate::model::{By, Copied, ForEach, Plan};
use crate::text::faults::Fault;
use crate::text::tree::{Key, Kind, Table, Value};
use std::collections::{HashMap, HashSet};

/// An item of the text, as one of its copies has it.
pub struct Copy {
    key: Key,
    table: Table,
    copy: Copied,
}

/// By their place among the items of the text; no copies of what has a fault.
pub type Copies = HashMap<usize, Vec<Copy>>;

/// The items, copies in the place of what they are copies of.
pub fn with_copies<'c>(items: Vec<Item<'c>>, copies: &'c Copies) -> Vec<Item<'c>> {
    let mut all = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let Some(copies) = copies.get(&at) else {
            all.push(item);
            continue;
        };
        let one =
            |Copy { key, table, copy }: &'c Copy| Item { kind: item.kind, key, table, copy: Some(*copy) };
        all.extend(copies.iter().map(one));
    }
    all
}

/// A fault that all copies have is said of the first.
pub fn once(plan: &Plan, faults: &mut Vec<Fault>) {
    if !plan.for_each.is_empty() {
        let mut said = HashSet::new();
        faults.retain(|fault| said.insert((fault.rule, fault.spot)));
    }
}

impl Resolver {
    /// Copies of the nodes with `for_each`, and of what is below them.
    pub(super) fn copies(&mut self, items: &[Item]) -> Copies {
        let mut copies = Copies::new();
        let mut of: HashMap<&str, usize> = HashMap::new();
        for (at, item) in items.iter().enumerate().filter(|(_, item)| item.kind == ItemKind::Node) {
            let Some(value) = entry(item.table, "for_each") else { continue };
            match self.for_each(item, value) {
                Some(for_each) => {
                    of.insert(&item.key.text, self.plan.for_each.len());
                    self.plan.for_each.push(for_each);
                }
                None => _ = copies.insert(at, Vec::new()),
            }
        }
        if of.is_empty() {
            return copies;
        }
        // From these nodes down: what has a parent with copies has copies.
        let above = |item: &Item, of: &HashMap<&str, usize>| {
            parents(item.table).find_map(|(key, _)| of.get(key.text.as_str()).copied())
        };
        loop {
            let before = of.len();
            for item in items.iter().filter(|item| item.kind == ItemKind::Node) {
                if let Some(above) = above(item, &of) {
                    of.entry(&item.key.text).or_insert(above);
                }
            }
            if of.len() == before {
                break;
            }
        }
        for (at, item) in items.iter().enumerate() {
            let its = match item.kind {
                ItemKind::Node => of.get(item.key.text.as_str()).copied(),
                _ => above(item, &of),
            };
            let Some(its) = its else { continue };
            let is_good = self.may_have_copies(item, its, &of);
            let list = if is_good { self.copies_of(item, its, &of) } else { Vec::new() };
            copies.insert(at, list);
        }
        copies
    }

    /// What the text says of copies of a node.
    fn for_each(&mut self, item: &Item, value: &Value) -> Option<ForEach> {
        let name = &item.key.text;
        let text = self.collector.text(&format!("`for_each` of node `{name}`"), value)?;
        let Some(by) = By::ALL.into_iter().find(|by| by.name() == text) else {
            let message = format!("node `{name}` cannot be there for each of these");
            let fault = Fault::new("for_each_must_be_known", value.spot, message).value(text);
            self.collector.add(fault.bound("\"uid\" or \"cgroup\"").hint("each user, or each cgroup"));
            return None;
        };
        let most = match entry(item.table, "most") {
            Some(value) => {
                let what = format!("`most` of node `{name}`");
                self.collector.whole(&what, value, 1, i64::from(COPIES_MAX))? as u32
            }
            None => COPIES_PRESET,
        };
        Some(ForEach { name: name.clone(), by, most, spot: value.spot })
    }

    /// Whether an item can be there several times; the fault is reported.
    fn may_have_copies(&mut self, item: &Item, its: usize, of: &HashMap<&str, usize>) -> bool {
        let (name, spot) = (&item.key.text, item.key.spot);
        let node = self.plan.for_each[its].name.clone();
        let other =
            parents(item.table).find(|(key, _)| of.get(key.text.as_str()).is_some_and(|of| *of != its));
        let is_template = *name == node;
        let is = |key: &str| matches!(entry(item.table, key), Some(Value { kind: Kind::Bool(true), .. }));
        let fault = if let Some((key, _)) = other {
            let message = format!("`{name}` is below copies of `{}` and of `{node}`", text_name(&key.text));
            Fault::new("for_each_is_not_nested", key.spot, message)
                .hint("one node with `for_each` on every way to a CPU")
        } else if is_template && parents(item.table).next().is_none() {
            let message = format!("`{name}` is there several times, and a CPU has one root");
            Fault::new("for_each_needs_a_parent", spot, message).hint("under.PARENT = { … }")
        } else if item.kind == ItemKind::Task {
            let message =
                format!("`{name}` is below `{node}`, of which there are several: a task is one thread");
            Fault::new("for_each_takes_sets", spot, message).hint(format!("a set: [tasks.{name}]"))
        } else if is("default") {
            let message =
                format!("`{name}` is there several times, and threads that match nothing have one node");
            Fault::new("for_each_is_not_default", spot, message).hint("another node with `default = true`")
        } else {
            return is_plain(item.key, &mut self.collector);
        };
        self.collector.add(fault.value(format!("{} copies", self.plan.for_each[its].most)));
        false
    }

    fn copies_of(&mut self, item: &Item, its: usize, of: &HashMap<&str, usize>) -> Vec<Copy> {
        let (name, spot) = (&item.key.text, item.key.spot);
        self.copied.insert(name.clone(), spot);
        let one = |index: u32| {
            let copy = Copied { of: its, index };
            let key = Key { text: copy.name(name), spot };
            let is_own = |(key, _): &&(Key, Value)| key.text != "for_each" && key.text != "most";
            let mut entries: Vec<_> = item.table.entries.iter().filter(is_own).cloned().collect();
            for (key, value) in &mut entries {
                if let (Kind::Table(under), "under") = (&mut value.kind, key.text.as_str()) {
                    under.entries.iter_mut().for_each(|(key, value)| rename(key, value, copy, of));
                }
            }
            Copy { key, table: Table { entries }, copy }
        };
        (0..self.plan.for_each[its].most).map(one).collect()
    }
}

/// An edge of a copy leads to copies, where there are some.
fn rename(key: &mut Key, value: &mut Value, copy: Copied, of: &HashMap<&str, usize>) {
    if of.contains_key(key.text.as_str()) {
        key.text = copy.name(&key.text);
    }
    let tables = match &mut value.kind {
        Kind::List(list) => list.iter_mut().collect(),
        _ => vec![value],
    };
    for table in tables {
        let Kind::Table(edge) = &mut table.kind else { continue };
        for (key, value) in &mut edge.entries {
            match &mut value.kind {
                Kind::Text(name) if is_beside(key) && of.contains_key(name.as_str()) => {
                    *name = copy.name(name)
                }
                _ => {}
            }
        }
    }
}

fn is_beside(key: &Key) -> bool {
    ["soft", "firm"].contains(&key.text.as_str())
}

fn entry<'t>(table: &'t Table, name: &str) -> Option<&'t Value> {
    table.entries.iter().find(|(key, _)| key.text == name).map(|(_, value)| value)
}

/// `under.PARENT = …` of an item.
fn parents(table: &Table) -> impl Iterator<Item = &(Key, Value)> {
    let under = entry(table, "under").and_then(|value| match &value.kind {
        Kind::Table(under) => Some(&under.entries),
        _ => None,
    });
    under.into_iter().flatten()
}
