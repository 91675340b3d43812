//! `multiburst` shares out rounds of no bounded length, and promises nothing.

use crate::laws::node::Node;
use crate::laws::policy::Laws;
use crate::verdict::{Given, NodeVerdict};

/// Rounds.
pub struct Multiburst;

impl Laws for Multiburst {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        let name = node.name();
        Ok(node.gives_nothing(format!(
            "`{name}` regulates its rounds: they may be of any length while children wake"
        )))
    }
}
