//! A node as the laws of policies see it.

use crate::overheads::Overheads;
use crate::verdict::Promise;
use tierce_plan::Plan;

/// A node that one CPU reaches, and what it is promised.
pub struct Node<'a> {
    pub plan: &'a Plan,
    pub index: usize,
    /// To its children.
    pub edges: &'a [usize],
    pub received: &'a [Promise],
    pub overheads: &'a Overheads<'a>,
    /// 1 where its policy has none.
    pub quantum_ns: u64,
}

impl Node<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.plan.nodes[self.index].name
    }

    /// To none of its children.
    pub fn gives_nothing(&self, because: String) -> Vec<Vec<Promise>> {
        vec![Promise::nothing(because); self.edges.len()]
    }
}
