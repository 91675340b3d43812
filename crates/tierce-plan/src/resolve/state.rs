//! A plan on its way, and what an edge leads to.

use super::first_replica::Begun;
use super::names::Declared;
use super::places::Places;
use crate::model::any_cpu::{Placed, Unit};
use crate::model::{Child, Plan};
use crate::text::files::Files;
use crate::text::source::Spot;
use crate::text::tree::Collector;
use std::collections::HashMap;
use tierce_policy::Cpus;

/// What `under` leads to.
pub struct Below<'a> {
    /// One leaf, one node, or the replicas of a node with their CPUs.
    pub children: &'a [(Child, Option<u32>)],
    /// They are the replicas of a spread node.
    pub spread: bool,
    /// Of a leaf: CPUs on which it may run.
    pub affinity: Option<Cpus>,
    /// The CPU that `cpu = "any"` stands for.
    pub any: Option<u32>,
    /// CPUs that reach it by parents that are not spread; `None`: all are.
    pub elsewhere: Option<Cpus>,
}

impl<'a> Below<'a> {
    pub fn leaf(child: &'a [(Child, Option<u32>)], affinity: Option<Cpus>) -> Self {
        Self { children: child, spread: false, affinity, any: None, elsewhere: None }
    }
}

impl Below<'_> {
    /// The leaf, if it moves between the replicas of that parent.
    pub fn moves(&self, parent: &Declared) -> Option<Child> {
        let several = parent.spread && parent.replicas.as_ref().is_some_and(|cpus| cpus.len() > 1);
        match self.children {
            [(child @ (Child::Task(_) | Child::Set(_)), _)] if several && self.elsewhere.is_none() => {
                Some(*child)
            }
            _ => None,
        }
    }
}

/// A plan on its way.
pub struct Resolver {
    pub files: Files,
    pub plan: Plan,
    pub collector: Collector,
    pub names: HashMap<String, Declared>,
    pub places: Places,
    pub begun: Begun,
    /// Nodes and tasks with a fault in their edges: that they lead nowhere is not worth a second message.
    pub broken: Vec<Child>,
    /// Tasks whose loads have faults.
    pub unread: Vec<usize>,
    /// What has `cpu = "any"`.
    pub units: Vec<Unit>,
    /// Their CPUs; empty as long as none are chosen.
    pub placed: Placed,
    /// What there are copies of, by the name that the text has, and where it is.
    pub copied: HashMap<String, Spot>,
}
