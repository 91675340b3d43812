//! The shape of the graph: what is above and below each part, which CPUs reach it, and in which order it is built.

use crate::model::{Attach, Child, Plan};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use tierce_policy::Cpus;

/// What can be asked about the graph, computed once. Nothing here assumes that the plan is right.
pub struct Shape {
    /// Edges above each node, indices into `plan.edges`.
    pub parents: Vec<Vec<usize>>,
    /// Edges above each task.
    pub task_parents: Vec<Vec<usize>>,
    /// Edges below each node; those of tasks that move, below each replica where they may be.
    pub children: Vec<Vec<usize>>,
    /// Nodes, every parent before its children; those on or below a cycle are missing.
    pub order: Vec<usize>,
    /// CPUs that can reach each node.
    pub reach: Vec<Cpus>,
    /// Of replicas of spread nodes: CPUs that reach any of them.
    pub spread: Vec<Cpus>,
    /// Nodes on the longest path from a CPU down to this node, itself included; 0: not reached.
    pub depth: Vec<usize>,
}

impl Shape {
    /// Look at the plan's edges once.
    pub fn new(plan: &Plan) -> Self {
        let nodes = plan.nodes.len();
        let mut below = vec![0; nodes];
        plan.edges.iter().for_each(|edge| below[edge.parent] += 1);
        let mut shape = Self {
            parents: vec![Vec::new(); nodes],
            task_parents: plan.tasks.iter().map(|_| Vec::with_capacity(1)).collect(),
            children: below.into_iter().map(Vec::with_capacity).collect(),
            order: Vec::with_capacity(nodes),
            reach: vec![Cpus::NONE; nodes],
            spread: vec![Cpus::NONE; nodes],
            depth: vec![0; nodes],
        };
        let families = families(plan);
        for (index, edge) in plan.edges.iter().enumerate() {
            match families.get(&plan.nodes[edge.parent].family).filter(|_| edge.spread) {
                Some(replicas) => {
                    let may = |node: &&usize| match (edge.child, plan.nodes[**node].replica) {
                        (Child::Task(task), Some(cpu)) => {
                            plan.tasks[task].affinity.is_none_or(|affinity| affinity.has(cpu))
                        }
                        _ => true,
                    };
                    replicas.iter().filter(may).for_each(|node| shape.children[*node].push(index));
                }
                None => shape.children[edge.parent].push(index),
            }
            match edge.child {
                Child::Node(node) => shape.parents[node].push(index),
                Child::Task(task) => shape.task_parents[task].push(index),
                Child::Set(_) => {}
            }
        }
        let mut waiting: Vec<_> = shape.parents.iter().map(Vec::len).collect();
        let mut ready: Vec<_> = (0..nodes).filter(|node| waiting[*node] == 0).collect();
        ready.reverse();
        while let Some(node) = ready.pop() {
            shape.order.push(node);
            for cpu in &plan.nodes[node].roots {
                shape.reach[node].add(*cpu);
                shape.depth[node] = shape.depth[node].max(1);
            }
            for edge in shape.children[node].iter().rev() {
                if let Child::Node(child) = plan.edges[*edge].child {
                    let reach = shape.reach[node];
                    shape.reach[child] |= reach;
                    if shape.depth[node] > 0 {
                        shape.depth[child] = shape.depth[child].max(shape.depth[node] + 1);
                    }
                    waiting[child] -= 1;
                    if waiting[child] == 0 {
                        ready.push(child);
                    }
                }
            }
        }
        for replicas in families.values() {
            let reach = replicas.iter().fold(Cpus::NONE, |reach, node| reach | shape.reach[*node]);
            replicas.iter().for_each(|node| shape.spread[*node] = reach);
        }
        shape
    }

    /// Whether the node lies in a shared domain: several CPUs reach it.
    pub fn shared(&self, node: usize) -> bool {
        self.reach[node].are_several()
    }

    /// CPUs that can reach the parents of a task. Of one that moves: those where it may run.
    pub fn task_reach(&self, plan: &Plan, task: usize) -> Cpus {
        let reach = |edge: &usize| match &plan.edges[*edge] {
            edge if edge.spread => self.spread[edge.parent] & plan.tasks[task].affinity.unwrap_or(Cpus::ALL),
            edge => self.reach[edge.parent],
        };
        self.task_parents[task].iter().fold(Cpus::NONE, |sum, edge| sum | reach(edge))
    }

    /// Whether what is below the edge, a task, moves between CPUs.
    pub fn moves(&self, plan: &Plan, edge: usize) -> bool {
        match (&plan.edges[edge], plan.edges[edge].child) {
            (edge, Child::Task(task)) => edge.spread && self.task_reach(plan, task).are_several(),
            (edge, _) => edge.spread,
        }
    }
}

impl Plan {
    /// The order in which the graph can be built: CPU roots first, every parent edge of a node before its first child
    /// edge, all replicas of a spread node before what is below them. Edges below one parent keep the order of the text, so ids given in this order decide ties as the text does.
    pub fn attach_order(&self) -> Vec<Attach> {
        let shape = Shape::new(self);
        let mut order = Vec::with_capacity(self.nodes.len() + self.edges.len());
        let mut waiting: Vec<_> = shape.parents.iter().map(Vec::len).collect();
        let families = families(self);
        let mut missing: HashMap<_, _> = families.iter().map(|(first, all)| (*first, all.len())).collect();
        let mut ready = BinaryHeap::new();
        // Tasks that move come when all replicas are there, and so do their siblings.
        let mut comes = |node: usize, ready: &mut BinaryHeap<Reverse<usize>>| {
            let family = &self.nodes[node].family;
            let nodes = match missing.get_mut(family) {
                Some(missing) => {
                    *missing -= 1;
                    if *missing == 0 {
                        families[family].as_slice()
                    } else {
                        &[]
                    }
                }
                None => std::slice::from_ref(&node),
            };
            for node in nodes {
                let begins = |edge: &&usize| self.edges[**edge].parent == *node;
                ready.extend(shape.children[*node].iter().filter(begins).copied().map(Reverse));
            }
        };
        for (node, about) in self.nodes.iter().enumerate() {
            order.extend(about.roots.iter().map(|cpu| Attach::Root { cpu: *cpu, node }));
            if !about.roots.is_empty() {
                comes(node, &mut ready);
            }
        }
        while let Some(Reverse(edge)) = ready.pop() {
            order.push(Attach::Edge(edge));
            if let Child::Node(node) = self.edges[edge].child {
                waiting[node] -= 1;
                if waiting[node] == 0 {
                    comes(node, &mut ready);
                }
            }
        }
        order
    }

    /// Nodes above each node, at most.
    pub fn levels(&self) -> Vec<u32> {
        Shape::new(self).depth.iter().map(|depth| depth.saturating_sub(1) as u32).collect()
    }

    /// Name of what is below an edge.
    pub fn child_name(&self, child: Child) -> &str {
        match child {
            Child::Node(node) => &self.nodes[node].name,
            Child::Task(task) => &self.tasks[task].name,
            Child::Set(set) => &self.sets[set].name,
        }
    }

    /// The same as the text has it: without the CPU of a replica, and of a member the set.
    pub fn item_name(&self, child: Child) -> &str {
        match child {
            Child::Node(node) => &self.nodes[node].base,
            Child::Task(task) => match self.tasks[task].set {
                Some(set) => &self.sets[set].name,
                None => &self.tasks[task].name,
            },
            Child::Set(set) => &self.sets[set].name,
        }
    }
}

/// Whether something with these parents gets its CPUs from several places.
pub fn several(reach: Cpus, parents: usize) -> bool {
    reach.are_several() && parents != 1
}

/// Replicas of each spread node, by the index of the first.
fn families(plan: &Plan) -> HashMap<Option<usize>, Vec<usize>> {
    let mut families: HashMap<_, Vec<usize>> = HashMap::new();
    for (index, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.family.is_some()) {
        families.entry(node.family).or_default().push(index);
    }
    families
}

/// "0, 2".
pub fn cpus(cpus: Cpus) -> String {
    let list: Vec<_> = cpus.iter().map(|cpu| cpu.to_string()).collect();
    format!("CPU {}", list.join(", "))
}
