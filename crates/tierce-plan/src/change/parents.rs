//! More than one parent: further edges, and a budget that a node shares with containers inside of it.

#![allow(clippy::result_large_err)] // one per operation

use super::editor::{lost, Editor, Kind};
use super::toml::{copied, dotted, implicit, inline, Keys};
use crate::model::for_each::text_name;
use crate::policies;
use crate::text::faults::Fault;
use crate::text::tree::listed;
use toml_edit::{Array, Item, Table, Value};

impl Editor<'_> {
    /// One more edge. Several from one parent are a list, in which each says from which replica it comes.
    pub(super) fn link(&mut self, name: &str, under: &str, keys: &Keys) -> Result<(), Fault> {
        let part = self.part(name)?;
        self.node(under)?;
        let new = Value::from(inline(keys));
        let above = self.under(&part)?;
        match above.get_mut(under) {
            None => _ = above.insert(under, Item::Value(new)),
            Some(Item::Value(Value::Array(list))) => list.push(new),
            Some(old) => {
                let first = copied(old.as_table_like().ok_or_else(|| lost(&part))?);
                *old = Item::Value([Value::from(first), new].into_iter().collect::<Array>().into());
            }
        }
        Ok(())
    }

    /// `NAME-budget` has the budgets of the node, on each CPU where the node has one, and the node is below it.
    pub(super) fn enclose(&mut self, name: &str) -> Result<(), Fault> {
        let part = self.node(name)?;
        let (budget, inner) = (format!("{name}-budget"), format!("{name}-inner"));
        if self.parts().iter().any(|part| part.kind == Kind::Node && part.name == inner) {
            return Ok(());
        }
        let parents = self.parents(&part)?;
        let gives_budgets = |parent: &&String| {
            let node = self.plan.nodes.iter().find(|node| text_name(&node.base) == **parent);
            let policy = node.and_then(|node| policies::by_number(node.policy));
            policy.is_some_and(|policy| policies::budget_and_period(policy).is_some())
        };
        let parent = match &parents.iter().filter(gives_budgets).collect::<Vec<_>>()[..] {
            [parent] => parent.to_string(),
            _ => {
                let message = format!("`{name}` has no budget that it could share with what is inside of it");
                let fault = Fault::new("outer_node_needs_one_budget", part.spot, message);
                let hint = "a node has one below a `reservation`: tierce ctl create … --under rt --budget …";
                return Err(fault.value(listed(&parents)).bound("one parent that gives budgets").hint(hint));
            }
        };
        let cpus = self.cpus_of(&part, &parent);
        let several = (cpus.len() > 1).then(|| cpus.iter().map(|cpu| i64::from(*cpu)).collect::<Array>());
        let per_cpu = self.table(&part)?.get("per_cpu").cloned();
        let per_cpu = per_cpu.or(several.map(|list| Item::Value(list.into())));
        let above = self.under(&part)?;
        let edge = match above.remove(&parent) {
            Some(Item::Value(edge)) => edge,
            Some(table) => copied(table.as_table_like().ok_or_else(|| lost(&part))?).into(),
            None => return Err(lost(&part)),
        };
        let priority = |number: i64| Value::from(inline(&vec![("priority".into(), number.to_string())]));
        above.insert(&budget, Item::Value(priority(0)));
        self.document(0)?.entry(Kind::Node.key()).or_insert(implicit());
        let nodes = self.tables(0, Kind::Node)?;
        let mut add = |name: &str, policy: &str, parent: &str, edge: Value| {
            let mut table = Table::new();
            table.insert("policy", policy.into());
            per_cpu.iter().for_each(|cpus| _ = table.insert("per_cpu", cpus.clone()));
            table.insert("under", Item::Table(dotted(parent, edge)));
            nodes.insert(name, Item::Table(table));
        };
        add(&budget, "fixed-priority", &parent, edge);
        add(&inner, "reservation", &budget, priority(1));
        Ok(())
    }
}
