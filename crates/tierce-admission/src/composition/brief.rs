//! Whether a plan holds, without all that only explains it.

use crate::verdict::{Admission, Failure, Promise, Proof};
use tierce_plan::Plan;

/// What [`Admission`] says of failures and `needs`, and what is promised to those parts that somebody has asked about. From what a
/// promise follows may not be said.
#[derive(Clone, Debug)]
pub struct Brief(Admission);

impl Brief {
    pub(crate) fn of(plan: &Plan) -> Self {
        Self(Admission::brief(plan))
    }

    /// Every node's law holds, and every guarantee asked for is shown.
    pub fn holds(&self) -> bool {
        self.0.holds
    }

    /// Of each node why its law does not hold, and what has become of its `needs`.
    pub fn nodes(&self) -> impl Iterator<Item = (&[Failure], &[Proof])> {
        self.0.nodes.iter().map(|node| (&node.failures[..], &node.needs[..]))
    }

    /// The same of each task.
    pub fn tasks(&self) -> impl Iterator<Item = (&[Failure], &[Proof])> {
        self.0.tasks.iter().map(|task| (&task.failures[..], &task.needs[..]))
    }

    /// What a node is promised, by its index; `None`: nobody has asked.
    pub fn to_node(&self, node: usize) -> Option<&[Promise]> {
        Some(&self.0.nodes[node].promises[..]).filter(|promises| !promises.is_empty())
    }

    /// What a task is promised, by its index; `None`: nobody has asked.
    pub fn to_task(&self, task: usize) -> Option<&[Promise]> {
        Some(&self.0.tasks[task].promises[..]).filter(|promises| !promises.is_empty())
    }
}
