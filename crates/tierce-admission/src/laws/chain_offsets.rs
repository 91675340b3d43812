//! Offsets directly below `fixed-priority` with a whole CPU, where nothing but priorities decides who runs (no locks, regions, costs or other
//! parents): tasks that one periodic task releases come one after the other, never all at once ([`responses_with_offsets`]).

use crate::bounds::response::Bound;
use crate::demand::jobs::has_other_parents;
use crate::demand::locks::Waiting;
use crate::laws::node::Node;
use tierce_analysis::chains::responses_with_offsets;
use tierce_analysis::{Response, Supply, Task};

/// A test.
const WITH_OFFSETS: &str =
    "response times under fixed priorities with offsets (Palencia & González Harbour 1998)";

/// The tasks directly below a node from the highest priority down, their jobs, and the numbers of their levels.
pub struct Ordered<'a> {
    pub members: &'a [usize],
    pub set: &'a [Task],
    pub levels: &'a [u32],
}

/// The lesser of the bounds of all members and those with offsets.
pub fn lesser(node: &Node, ordered: &Ordered, mut bounds: Vec<(usize, Bound)>) -> Vec<(usize, Bound)> {
    let Node { plan, shape, edges, overheads, .. } = *node;
    let never_waits = |task: &usize| matches!(overheads.locks.waiting(*task), Waiting::Never);
    let mut received = node.received.iter().map(|promise| Supply::of(&promise.guarantee));
    let plain = overheads.is_none()
        && received.any(|supply| supply == Some(Supply::WHOLE))
        && edges.iter().all(|edge| !has_other_parents(plan, shape, *edge))
        && ordered.members.iter().all(never_waits);
    if !plain || node.offsets.is_empty() || bounds.len() != ordered.members.len() {
        return bounds;
    }
    let offsets: Vec<_> = ordered.members.iter().map(|task| node.offsets[*task]).collect();
    let found = responses_with_offsets(ordered.set, ordered.levels, &offsets);
    for ((_, bound), ns) in bounds.iter_mut().zip(found) {
        if let Some(ns) = ns.filter(|ns| bound.response.ns().is_none_or(|known| *ns < known)) {
            *bound = Bound { response: Response::Within(ns), test: WITH_OFFSETS, exact: false };
        }
    }
    bounds
}
