//! From a plan to a graph, by the control operations of whoever has one.

use crate::model::shape::{several, Shape};
use crate::model::{Attach, Child, Edge, Node, Plan, PARAMS};
use crate::policies::{self, fair::order};
use crate::text::source::{Place, Spot};
use tierce_policy::{Control, Cpus, Part, Refusal, TASK};

/// Which ids of a graph stand for which parts of a plan. In a graph made afresh: nodes and tasks in the order of the text,
/// from 1; edges likewise; root edges after them, in the order of nodes and CPUs. 0: not in the graph.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// By index into [`Plan::nodes`].
    pub nodes: Vec<u32>,
    /// By index into [`Plan::tasks`].
    pub tasks: Vec<u32>,
    /// By index into [`Plan::edges`].
    pub edges: Vec<u32>,
    /// CPU, index into [`Plan::nodes`], edge.
    pub roots: Vec<(u32, usize, u32)>,
    /// By index into [`Plan::edges`].
    pub(crate) attached: Vec<bool>,
}

impl Ids {
    /// Nothing is in the graph.
    pub(crate) fn none(plan: &Plan) -> Ids {
        Ids {
            nodes: vec![0; plan.nodes.len()],
            tasks: vec![0; plan.tasks.len()],
            edges: vec![0; plan.edges.len()],
            roots: Vec::new(),
            attached: vec![false; plan.edges.len()],
        }
    }

    /// The id of what is below an edge.
    pub fn of(&self, child: Child) -> u32 {
        match child {
            Child::Node(node) => self.nodes[node],
            Child::Task(task) => self.tasks[task],
            Child::Set(_) => 0,
        }
    }
}

/// A part of the plan cannot be in the graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}: {why}", .place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
pub struct Refused {
    /// Where it stands in the plan.
    pub place: Option<Place>,
    /// Which part: `node rt`, `edge from rt to audio`.
    pub what: String,
    /// Why.
    pub why: Refusal,
}

/// Which tasks of sets are in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// All that the plan counts: they are played.
    Played,
    /// None: they come with their threads.
    Live,
}

impl Plan {
    /// The policies of its nodes and those of `[run] policies`, a bit each by number.
    pub fn policies(&self) -> u64 {
        self.nodes.iter().fold(self.run.policies, |mask, node| mask | 1 << node.policy)
    }

    /// The parts of the engine that it needs, a bit each ([`tierce_policy::Part`]). What `[run] policies` names has all of them.
    pub fn parts(&self) -> u64 {
        let shape = Shape::new(self);
        let shared = (0..self.nodes.len()).any(|node| several(shape.reach[node], shape.parents[node].len()))
            || (0..self.tasks.len())
                .any(|task| several(shape.task_reach(self, task), shape.task_parents[task].len()))
            || self.sets.iter().any(|set| set.under.len() > 1);
        let chosen = |node: &Node, name: &str| {
            let policy = policies::by_number(node.policy);
            let at = policy.and_then(|policy| policies::position(&policy.node_params, name));
            at.map_or(0, |at| node.params[at])
        };
        let is = |node: &Node, name: &str| policies::by_name(name).is_some_and(|it| it.number == node.policy);
        let by_clock = |node: usize| matches!(order(self, node), "eevdf" | "stride" | "lottery");
        let rare = |node: &Node| {
            is(node, "reservation")
                && ["order", "replenishment", "charge", "gain"].iter().any(|name| chosen(node, name) > 0)
        };
        let needed = [
            (Part::Shared, shared),
            (Part::Spread, self.nodes.iter().any(|node| node.family.is_some())),
            (Part::ByClock, (0..self.nodes.len()).any(by_clock)),
            (Part::Servers, self.nodes.iter().any(rare)),
        ];
        let room = self.run.policies != 0;
        needed.into_iter().filter(|(_, is)| room || *is).fold(0, |mask, (part, _)| mask | part.bit())
    }

    /// The plan's graph, in one that is empty.
    pub fn build(&self, control: &mut dyn Control, members: Members) -> Result<Ids, Refused> {
        let mut ids = Ids::none(self);
        self.make(control, &mut ids, members)?;
        self.attach(control, &mut ids, &|_| true)?;
        Ok(ids)
    }

    /// Attach what is not attached yet: roots, and those edges that are `wanted`.
    pub(crate) fn attach(
        &self,
        control: &mut dyn Control,
        ids: &mut Ids,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<(), Refused> {
        for step in self.attach_order() {
            match step {
                Attach::Root { cpu, node } if ids.roots.iter().all(|root| root.0 != cpu) => {
                    let root = control.root(cpu, ids.nodes[node]);
                    let (root_node, what) =
                        (&self.nodes[node], |name: &str| format!("cpu {cpu}, root {name}"));
                    let root =
                        root.map_err(|why| self.refused_at(root_node.spot, what(&root_node.name), why))?;
                    ids.roots.push((cpu, node, root));
                }
                Attach::Edge(edge) if ids.edges[edge] != 0 && !ids.attached[edge] && wanted(edge) => {
                    let about = &self.edges[edge];
                    control.attach(ids.edges[edge], about.params).map_err(|why| self.refused(about, why))?;
                    ids.attached[edge] = true;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Nodes, tasks and edges that are not there yet, none attached. Ids go up in the order of the text.
    pub(crate) fn make(
        &self,
        control: &mut dyn Control,
        ids: &mut Ids,
        members: Members,
    ) -> Result<(), Refused> {
        let mut fresh = Vec::new();
        for (index, (node, id)) in self.nodes.iter().zip(&mut ids.nodes).enumerate() {
            if *id != 0 {
                continue;
            }
            let made = control.node_new(node.policy, node.concurrency, Cpus::ALL, node.params);
            *id = made.map_err(|why| self.refused_at(node.spot, format!("node {}", node.name), why))?;
            fresh.push(index);
        }
        for index in fresh {
            let node = &self.nodes[index];
            let Some(first) = node.family else { continue };
            let joined = control.replica(ids.nodes[index], ids.nodes[first]);
            joined.map_err(|why| self.refused_at(node.spot, format!("node {}", node.name), why))?;
        }
        for (task, id) in self.tasks.iter().zip(&mut ids.tasks).filter(|(_, id)| **id == 0) {
            if members == Members::Played || task.set.is_none() {
                let made = control.node_new(TASK, 1, task.affinity.unwrap_or(Cpus::ALL), Default::default());
                *id = made.map_err(|why| self.refused_at(task.spot, format!("task {}", task.name), why))?;
            }
        }
        for (index, edge) in self.edges.iter().enumerate() {
            let child = ids.of(edge.child);
            if child != 0 && ids.edges[index] == 0 {
                let made = control.edge_new(ids.nodes[edge.parent], child, edge.rank, edge.way());
                ids.edges[index] = made.map_err(|why| self.refused(edge, why))?;
            }
        }
        Ok(())
    }

    /// Parameters of the edge of a thread in the default node, and which of them, if any, follows its nice value.
    pub fn default_params(&self) -> ([u64; PARAMS], Option<usize>) {
        if let Some(each) = &self.each {
            return (each.params, each.nice);
        }
        let policy = self.default_node.and_then(|node| policies::by_number(self.nodes[node].policy));
        let mut params = [0; PARAMS];
        for (at, param) in params.iter_mut().zip(policy.into_iter().flat_map(|policy| &policy.edge_params)) {
            *at = param.preset.unwrap_or(0);
        }
        (params, None)
    }

    pub(crate) fn refused(&self, edge: &Edge, why: Refusal) -> Refused {
        let (parent, child) = (&self.nodes[edge.parent].name, self.child_name(edge.child));
        self.refused_at(edge.spot, format!("edge from {parent} to {child}"), why)
    }

    fn refused_at(&self, spot: Spot, what: String, why: Refusal) -> Refused {
        Refused { place: Some(self.sources.place(spot)), what, why }
    }
}
