//! Control operations: nodes, edges, affinities and CPUs come, change and go. Each is done whole, or refused by name.

use super::Graph;
use crate::codes::{Error, Way};
use crate::cpus::Cpus;
use crate::raw;

impl Graph {
    /// A new node (`kind`: a policy's number) or task ([`crate::TASK`]); `concurrency` 0: its CPUs, for a task 1.
    /// `allowed`: CPUs a task may run on. `None`: the pool is used up or a parameter is out of range.
    pub fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: impl AsRef<[u64]>,
    ) -> Option<u32> {
        self.stage(params.as_ref());
        let allowed = if kind == crate::TASK { self.stage_cpus(allowed) } else { allowed.first_word() };
        // SAFETY: see `call`.
        let id = self.call(|| unsafe { raw::graph_node_new(kind, concurrency, allowed) });
        (id != 0).then_some(id)
    }

    /// Make `node` what `cpu` runs. Roots first, then parents before children.
    pub fn root(&mut self, cpu: u32, node: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_root(cpu, node, now) })
    }

    /// A new edge, attached: its id.
    pub fn attach(
        &mut self,
        parent: u32,
        child: u32,
        params: impl AsRef<[u64]>,
        rank: i32,
        way: impl Into<Way>,
        now: u64,
    ) -> Result<u32, Error> {
        let edge = self.edge_new(parent, child, rank, way).ok_or_else(|| self.edge_refusal(parent, child))?;
        match self.edge_attach(edge, params, now) {
            Ok(()) => Ok(edge),
            Err(error) => {
                let _ = self.detach(edge, now);
                Err(error)
            }
        }
    }

    /// A new edge that is not attached yet: its id, which decides ties. `None`: no such node, or the pool is used up.
    pub fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: impl Into<Way>) -> Option<u32> {
        let flags = way.into().flags();
        // SAFETY: see `call`.
        let edge = self.call(|| unsafe { raw::graph_edge_new(parent, child, rank, flags) });
        (edge != 0).then_some(edge)
    }

    /// A node without children becomes a replica of the spread node whose first replica is `first`.
    pub fn replica(&mut self, node: u32, first: u32) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_replica(node, first) })
    }

    /// Why [`Self::edge_new`] made no edge, by name.
    fn edge_refusal(&self, parent: u32, child: u32) -> Error {
        let kind = |id: u32| if id <= crate::limits().nodes { self.node(id).kind } else { 0 };
        Error(match (kind(parent), kind(child)) {
            (0, _) | (_, 0) => 1,       // no_such_node
            (crate::TASK, _) => 14,     // task_cannot_be_parent
            _ if parent == child => 21, // cycle
            _ => 5,                     // out_of_edges
        })
    }

    /// Attach an edge of [`Self::edge_new`].
    pub fn edge_attach(&mut self, edge: u32, params: impl AsRef<[u64]>, now: u64) -> Result<(), Error> {
        self.stage(params.as_ref());
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_attach(edge, now) })
    }

    /// New parameters of an attached edge: all or nothing.
    pub fn set(&mut self, edge: u32, params: impl AsRef<[u64]>, now: u64) -> Result<(), Error> {
        self.stage(params.as_ref());
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_set(edge, now) })
    }

    /// Take the edge out and free it; `still_running` asks to try again after the next decision.
    pub fn detach(&mut self, edge: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_detach(edge, now) })
    }

    /// New parameters of a node.
    pub fn node_set(&mut self, node: u32, params: impl AsRef<[u64]>, now: u64) -> Result<(), Error> {
        self.stage(params.as_ref());
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_node_set(node, now) })
    }

    /// Free a node or task without parents and children.
    pub fn node_free(&mut self, node: u32) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_node_free(node) })
    }

    /// Change a task's affinity.
    pub fn allow(&mut self, task: u32, cpus: Cpus, now: u64) -> Result<(), Error> {
        let cpus = self.stage_cpus(cpus);
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_allow(task, cpus, now) })
    }

    /// A CPU comes or goes.
    pub fn online(&mut self, cpu: u32, online: bool, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_online(cpu, online as u32, now) })
    }

    /// Which CPUs share a core, a last-level cache and a NUMA node with `cpu`. Preset: no core, all the rest.
    pub fn near(&mut self, cpu: u32, core: Cpus, cache: Cpus, memory: Cpus) -> Result<(), Error> {
        for word in 0..self.cpus.div_ceil(64) {
            let [core, cache, memory] = [core, cache, memory].map(|set| set.words()[word as usize]);
            // SAFETY: see `call`.
            self.control(|| unsafe { raw::graph_near(cpu, word, core, cache, memory) })?;
        }
        Ok(())
    }
}
