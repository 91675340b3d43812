//! The engine's state at one moment.

use crate::kernel::Kernel;
use tierce_policy::raw;

/// Edges above one node that are looked at, should the list be changed meanwhile.
const PARENTS_MAX: usize = 64;

/// The engine's state, copied in one go: what is said of it belongs together, however long the rest takes.
#[derive(Default)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    nodes: Vec<raw::Node>,
    edges: Vec<raw::Edge>,
    pub(crate) cpus: Vec<raw::Cpu>,
}

impl Moment {
    pub(crate) fn of(kernel: &Kernel, now_ns: u64) -> Moment {
        Moment::default().renewed(kernel, now_ns)
    }

    /// As it is now, in the memory of one that is not needed any more: fresh pages would take as long as the copy.
    pub(crate) fn renewed(mut self, kernel: &Kernel, now_ns: u64) -> Moment {
        self.nodes.clear();
        self.edges.clear();
        self.cpus.clear();
        self.nodes.extend((0..kernel.nodes_used()).map(|id| kernel.node(id)));
        self.edges.extend((0..kernel.edges_used()).map(|id| kernel.edge(id)));
        self.cpus.extend((0..kernel.options().cpus).map(|cpu| kernel.cpu(cpu)));
        self.now_ns = now_ns;
        self
    }

    /// Of one that was made later, the first, which is nobody's.
    pub(crate) fn node(&self, id: u32) -> &raw::Node {
        self.nodes.get(id as usize).unwrap_or(&self.nodes[0])
    }

    fn edge(&self, id: u32) -> &raw::Edge {
        self.edges.get(id as usize).unwrap_or(&self.edges[0])
    }

    /// One more than the largest id of a node or task.
    pub(crate) fn nodes_len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Edges above a node or task, each with its number.
    pub(crate) fn edges_above(&self, id: u32) -> impl Iterator<Item = (u32, &raw::Edge)> {
        let next = |edge: u32| (edge != 0).then(|| (edge, self.edge(edge)));
        let first = next(self.node(id).first_parent);
        std::iter::successors(first, move |(_, edge)| next(edge.next_parent)).take(PARENTS_MAX)
    }
}
