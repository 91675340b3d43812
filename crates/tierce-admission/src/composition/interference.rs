//! What comes through each edge takes of the CPU at most, where that is bounded: from the tasks up.

use crate::bounds::leftover_supply::Taken;
use crate::demand::jobs::{requesting, vary};
use crate::demand::locks::Locks;
use crate::laws;
use crate::laws::policy::Takes;
use std::cell::OnceCell;
use tierce_analysis::Task;
use tierce_plan::{policies, Child, Plan, Shape};

/// Found of an edge when somebody asks.
pub struct Interference<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    locks: Locks,
    /// Nodes of which all children are known, and that are on no cycle.
    known: Vec<bool>,
    /// What the children of each node take together, once it is found.
    nodes: Vec<OnceCell<Option<Taken>>>,
}

impl<'a> Interference<'a> {
    /// Of this plan.
    pub fn of(plan: &'a Plan, shape: &'a Shape) -> Self {
        let mut known = vec![false; plan.nodes.len()];
        shape.order.iter().for_each(|node| known[*node] = !plan.nodes[*node].default);
        for entry in &plan.entries {
            let Child::Set(set) = entry.target else { continue };
            for edge in plan.sets[set].ways().flatten() {
                known[edge.parent] = false;
                let family = plan.nodes[edge.parent].family.filter(|_| edge.spread);
                let replicas = plan.nodes.iter().zip(&mut known);
                replicas
                    .filter(|(node, _)| family.is_some() && node.family == family)
                    .for_each(|(_, known)| *known = false);
            }
        }
        let nodes = vec![OnceCell::new(); plan.nodes.len()];
        Self { plan, shape, locks: Locks::of(plan, shape), known, nodes }
    }

    /// What comes through an edge takes; `None`: that is not bounded. Those beside it notice whoever runs in its place.
    pub fn through(&self, edge: usize) -> Option<Taken> {
        self.taken(Locks::most_ns, edge)
    }

    fn below(&self, node: usize) -> Option<Taken> {
        let sum = || {
            let edges = self.shape.children[node].iter().filter(|_| self.known[node]);
            let none = self.known[node].then(Taken::nothing);
            edges.fold(none, |sum, edge| Some(sum?.and(&self.taken(Locks::elsewhere_ns, *edge)?)))
        };
        self.nodes[node].get_or_init(sum).clone()
    }

    /// `others_ns`: how long others run in place of a job of a task.
    fn taken(&self, others_ns: fn(&Locks, usize) -> Option<u64>, edge: usize) -> Option<Taken> {
        let Self { plan, shape, locks, .. } = self;
        let about = &plan.edges[edge];
        let policy = policies::by_number(plan.nodes[about.parent].policy)?;
        if let Takes::Limited(taken) = laws::of(policy).takes(plan, shape, edge) {
            return taken;
        }
        match about.child {
            _ if about.when_spent => None,        // with all that could not be done before
            _ if shape.moves(plan, edge) => None, // with all that could not be done elsewhere
            Child::Task(task) => {
                let job = locks.densest(plan, task, 0)?;
                // Who has the lock, or is in a region, runs in its place.
                let work_ns = job.work_ns.saturating_add(others_ns(locks, task)?);
                let load = plan.tasks[task].load.as_ref().filter(|load| vary(load));
                load.and_then(|load| requesting(Some(load), Task { work_ns, ..job }))
                    .and_then(|task| Taken::requested(&task.requests, job.jitter_ns))
                    .or_else(|| Some(Taken::bounded(work_ns, job.period_ns, job.jitter_ns)))
            }
            Child::Node(node) if !shape.shared(node) => self.below(node),
            Child::Node(_) | Child::Set(_) => None,
        }
    }
}
