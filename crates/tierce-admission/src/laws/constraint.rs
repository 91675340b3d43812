//! `constraint` promises nothing for long; it needs what it counts on itself.

use crate::laws::node::Node;
use crate::laws::policy::{Laws, Rated};
use crate::share::{ratio, Share};
use crate::verdict::{Given, NodeVerdict};

/// Time constraints.
pub struct Constraint;

impl Laws for Constraint {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        let name = node.name();
        Ok(node
            .gives_nothing(format!("`{name}` guarantees only the time constraints that its tasks request")))
    }

    /// Who has none takes turns.
    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        let turns = ratio(1, node.edges.len().max(1) as u64);
        node.edges.iter().for_each(|edge| rates[*edge] = Some(node.supply * &turns));
    }
}
