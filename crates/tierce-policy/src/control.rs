//! The control operations that build and change a graph, whoever carries them out: the engine here ([`Graph::at`]) or
//! the one in the kernel.

use crate::{Cpus, Error, Graph, NodeParams, Params, Way};
use std::fmt;

/// Why a control operation was not carried out. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The engine refused.
    Engine(Error),
    /// There is no room for more, or a parameter is out of its range.
    Pool,
    /// It did not reach the engine.
    Call(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Engine(error) => error.fmt(f),
            Refusal::Pool => f.write_str("the pool is used up, or a parameter is out of range"),
            Refusal::Call(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for Refusal {}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Engine(error)
    }
}

impl Refusal {
    /// What to detach was running: a decision has been asked for, try again after it.
    pub fn is_still_running(&self) -> bool {
        matches!(self, Refusal::Engine(error) if error.name() == "still_running")
    }
}

/// What builds and changes a graph.
pub trait Control {
    /// A node with this policy, or a task ([`crate::TASK`]): its id.
    fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: NodeParams,
    ) -> Result<u32, Refusal>;
    /// New parameters of a node.
    fn node_set(&mut self, node: u32, params: NodeParams) -> Result<(), Refusal>;
    /// Give a node or task back that has no edges.
    fn node_free(&mut self, node: u32) -> Result<(), Refusal>;
    /// `node` becomes what `cpu` runs: the edge between them.
    fn root(&mut self, cpu: u32, node: u32) -> Result<u32, Refusal>;
    /// A node that has no children yet becomes a replica of the spread node whose first replica is `first`, itself
    /// perhaps.
    fn replica(&mut self, node: u32, first: u32) -> Result<(), Refusal>;
    /// An edge, not attached yet: its id.
    fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: Way) -> Result<u32, Refusal>;
    /// Attach an edge: every parent of a node before its first child.
    fn attach(&mut self, edge: u32, params: Params) -> Result<(), Refusal>;
    /// New parameters of an attached edge.
    fn set(&mut self, edge: u32, params: Params) -> Result<(), Refusal>;
    /// Take an edge out and free it.
    fn detach(&mut self, edge: u32) -> Result<(), Refusal>;
}

/// A graph at an instant.
pub struct At<'g> {
    graph: &'g mut Graph,
    now_ns: u64,
}

impl Graph {
    /// Control operations on this graph, all at `now_ns`.
    pub fn at(&mut self, now_ns: u64) -> At<'_> {
        At { graph: self, now_ns }
    }
}

impl Control for At<'_> {
    fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: NodeParams,
    ) -> Result<u32, Refusal> {
        self.graph.node_new(kind, concurrency, allowed, params).ok_or(Refusal::Pool)
    }

    fn node_set(&mut self, node: u32, params: NodeParams) -> Result<(), Refusal> {
        Ok(self.graph.node_set(node, params, self.now_ns)?)
    }

    fn node_free(&mut self, node: u32) -> Result<(), Refusal> {
        Ok(self.graph.node_free(node)?)
    }

    fn root(&mut self, cpu: u32, node: u32) -> Result<u32, Refusal> {
        self.graph.root(cpu, node, self.now_ns)?;
        Ok(self.graph.cpu(cpu).root_edge)
    }

    fn replica(&mut self, node: u32, first: u32) -> Result<(), Refusal> {
        Ok(self.graph.replica(node, first)?)
    }

    fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: Way) -> Result<u32, Refusal> {
        self.graph.edge_new(parent, child, rank, way).ok_or(Refusal::Pool)
    }

    fn attach(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        Ok(self.graph.edge_attach(edge, params, self.now_ns)?)
    }

    fn set(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        Ok(self.graph.set(edge, params, self.now_ns)?)
    }

    fn detach(&mut self, edge: u32) -> Result<(), Refusal> {
        Ok(self.graph.detach(edge, self.now_ns)?)
    }
}
