//! `under.PARENT`: which replica leads to which child, and with what.

use super::params::Owner;
use super::{cpu_number, Declared, ItemKind, Resolver};
use crate::faults::Fault;
use crate::model::{Child, Edge};
use crate::policies;
use crate::tree::{closest, listed, Fields, Key, Kind, Table, Value};

impl Resolver {
    /// `under.PARENT = …` of `children`: one leaf, one node, or the replicas of a node with their CPUs.
    pub(super) fn under(&mut self, owner: &str, value: &Value, children: &[(Child, Option<u32>)]) {
        let faults = self.collector.faults.len();
        if let Some(table) = self.collector.table(&format!("`under` of {owner}"), value) {
            for (key, value) in &table.entries {
                self.edges(owner, key, value, children);
            }
        }
        if self.collector.faults.len() > faults {
            self.broken.extend(children.iter().map(|(child, _)| *child));
        }
    }

    fn edges(&mut self, owner: &str, key: &Key, value: &Value, children: &[(Child, Option<u32>)]) {
        let Some(parent) = self.names.get(&key.text).cloned() else {
            let nodes = || self.names.iter().filter(|(_, declared)| declared.kind == ItemKind::Node);
            let mut names: Vec<_> = nodes().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            let hint = match closest(&key.text, names.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("there are {}", listed(&names)),
            };
            let message = format!("{owner} is under `{}`, which does not exist", key.text);
            return self.collector.add(Fault::new("parent_must_exist", key.spot, message).hint(hint));
        };
        if parent.kind != ItemKind::Node {
            let kind = if parent.kind == ItemKind::Set { "set of tasks" } else { "task" };
            let message = format!("{owner} is under `{}`, which is a {kind}", key.text);
            let fault = Fault::new("task_cannot_be_parent", key.spot, message);
            return self.collector.add(fault.other(parent.spot, "defined here"));
        }
        let what = format!("`under.{}` of {owner}", key.text);
        let edges = self.collector.one_or_more(value);
        if edges.is_empty() {
            let message = format!("{what} is an empty list");
            self.collector.add(Fault::new("list_must_not_be_empty", value.spot, message));
        }
        for value in edges {
            let Some(table) = self.collector.table(&what, value) else { continue };
            let mut fields = Fields::new(&what, table);
            let rank = fields
                .whole("rank", i64::from(i32::MIN), i64::from(i32::MAX), &mut self.collector)
                .unwrap_or(0);
            let when = fields.take("when");
            let condition = when.and_then(|value| self.collector.text("`when`", value));
            let when_spent = condition == Some("spent");
            if let (Some(value), Some(other), false) = (when, condition, when_spent) {
                let fault = Fault::new("when_must_be_spent", value.spot, "there is no such condition");
                self.collector.add(fault.value(other).hint("when = \"spent\""));
            }
            let cpu = fields.key("cpu");
            let Some(policy) = parent.policy else {
                self.broken.extend(children.iter().map(|(child, _)| *child)); // its parent's fault
                continue;
            };
            let budgets = policies::budget_and_period(policy).is_some();
            let beside = ["soft", "firm"].map(|word| (word, if budgets { fields.take(word) } else { None }));
            // The place of an edge is its table; of one that is a header of its own, the header.
            let spot = if value.spot.len == 0 { key.spot } else { value.spot };
            let edge_owner = Owner { policy, params: &policy.edge_params, spot };
            let params = self.params(&edge_owner, &mut fields, None);
            fields.finish(&mut self.collector);
            let pairs = self.pairs(owner, key, cpu, &parent, children);
            let mut begun: Vec<Child> = Vec::new();
            for (parent, child) in pairs {
                let spread = self.plan.nodes[parent].family.is_some() && cpu.is_none() && !matches!(child, Child::Node(_));
                if spread && begun.contains(&child) { continue; }
                begun.push(child);
                let parent = match child { Child::Task(t) if spread => parent + t % self.plan.machine.cpus as usize, _ => parent };
                let params = params.unwrap_or_default();
                self.plan.edges.push(Edge { parent, child, params, rank: rank as i32, when_spent, spread, spot });
            }
            if let [(_, Some(_)), (_, Some(firm))] = beside {
                let message = format!("{what} is soft and firm");
                self.collector.add(Fault::new("soft_or_firm", firm.spot, message));
                continue;
            }
            for (word, value) in beside {
                if let Some(name) = value.and_then(|value| self.collector.text(&format!("`{word}`"), value)) {
                    let at = Key { text: name.to_string(), spot: value.map_or(spot, |value| value.spot) };
                    self.second(owner, word, &at, children);
                }
            }
        }
    }

    /// `soft = "NODE"`, `firm = "NODE"`: a second parent for what is more than the budget, there with presets.
    fn second(&mut self, owner: &str, word: &str, at: &Key, children: &[(Child, Option<u32>)]) {
        let there = self.names.get(&at.text).and_then(|declared| declared.policy);
        if let (Some(there), "firm") = (there, word) {
            if policies::priority(there).is_none() {
                let message = format!("`{}` has no priorities: who is firm comes after all others", at.text);
                let fault = Fault::new("firm_needs_priorities", at.spot, message);
                return self.collector.add(fault.hint(format!("soft = \"{}\"", at.text)));
            }
        }
        let presets = Value { spot: at.spot, kind: Kind::Table(Table::default()) };
        self.edges(owner, at, &presets, children);
    }

    /// Which replica of the parent leads to which child.
    fn pairs(
        &mut self,
        owner: &str,
        key: &Key,
        cpu: Option<&(Key, Value)>,
        parent: &Declared,
        children: &[(Child, Option<u32>)],
    ) -> Vec<(usize, Child)> {
        let Some(replicas) = &parent.replicas else {
            if let Some((cpu, _)) = cpu {
                let message = format!("`cpu` selects a replica, but `{}` has none", key.text);
                let fault = Fault::new("cpu_needs_replicas", cpu.spot, message);
                self.collector.add(fault.hint("per_cpu = true there").other(parent.spot, "defined here"));
            } else if children.len() > 1 || children.iter().any(|(_, replica)| replica.is_some()) {
                let message = format!("{owner} is `per_cpu`, its parent `{}` is not", key.text);
                let fault = Fault::new("replicas_need_replicas", key.spot, message);
                self.collector.add(fault.hint("per_cpu = true there").other(parent.spot, "defined here"));
                return Vec::new();
            }
            return children.iter().map(|(child, _)| (parent.first, *child)).collect();
        };
        let mut wanted = replicas.clone();
        if let Some((_, value)) = cpu {
            let cpus = self.plan.machine.cpus;
            let Some(cpu) = cpu_number("`cpu`", value, cpus, &mut self.collector) else { return Vec::new() };
            if !replicas.contains(&cpu) {
                let message = format!("`{}` has no replica on that CPU", key.text);
                let fault = Fault::new("replica_must_exist", value.spot, message).value(cpu);
                self.collector.add(fault.bound(format!("{replicas:?}")));
                return Vec::new();
            }
            wanted = vec![cpu];
        }
        let index =
            |cpu: u32| replicas.iter().position(|replica| *replica == cpu).map(|at| parent.first + at);
        let mut pairs = Vec::new();
        for (child, replica) in children {
            match replica {
                // Replicas join equal CPUs.
                Some(replica) if wanted.contains(replica) => {
                    pairs.extend(index(*replica).map(|at| (at, *child)))
                }
                Some(replica) if cpu.is_none() => {
                    let message =
                        format!("{owner} has a replica on CPU {replica}, its parent `{}` has not", key.text);
                    let fault = Fault::new("replica_must_exist", key.spot, message);
                    self.collector.add(fault.value(replica).bound(format!("{replicas:?}")));
                }
                Some(_) => {}
                // One child below all replicas, or the one selected.
                None => pairs.extend(wanted.iter().filter_map(|cpu| index(*cpu)).map(|at| (at, *child))),
            }
        }
        pairs
    }
}
