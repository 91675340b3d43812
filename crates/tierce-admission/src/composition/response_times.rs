//! Jobs directly below a node: do they meet their deadlines in what the node is promised, and how long can each take?

use crate::bounds::adjacent_reserves::at_once;
use crate::bounds::response::{shorter, Bound, Refusal};
use crate::composition::multiprocessor::{alone, Several};
use crate::composition::promises::Promises;
use crate::demand::overheads::Overheads;
use crate::demand::uncounted_threads::of_crowd;
use crate::laws;
use crate::laws::node::{supplies, Node};
use crate::verdict::NodeVerdict;
use std::collections::BTreeMap;
use tierce_analysis::chains::Offset;
use tierce_analysis::Response;
use tierce_plan::{policies, Plan, Shape};

/// For each task of the plan what the node above it says of its longest response, where that is known; for nodes that several CPUs
/// run why they say no more. `offsets`: see [`Node`].
pub fn test(
    plan: &Plan,
    shape: &Shape,
    promises: &Promises,
    verdicts: &mut [NodeVerdict],
    (overheads, offsets): (&Overheads, &[Offset]),
) -> (Vec<Option<Bound>>, BTreeMap<usize, Refusal>) {
    let mut bounds: Vec<Option<Bound>> = vec![None; plan.tasks.len()];
    let mut refused = BTreeMap::new();
    for (index, verdict) in verdicts.iter_mut().enumerate() {
        let received = &promises.nodes[index];
        let Some(policy) = policies::by_number(plan.nodes[index].policy) else { continue };
        let crowd = |at: usize| of_crowd(plan, index, &shape.children[index], at);
        if at_once(plan, shape, index) {
            let (found, refusal) =
                Several { plan, shape, overheads, promises: promises.known(), index }.test(crowd);
            refused.extend(refusal.map(|refusal| (index, refusal)));
            found.into_iter().for_each(|(task, bound)| bounds[task] = Some(bound));
        }
        if at_once(plan, shape, index) || supplies(received).next().is_none() {
            continue;
        }
        let edges = &shape.children[index][..];
        let node = Node {
            plan,
            shape,
            policy,
            index,
            edges,
            received,
            overheads,
            quantum_ns: 1,
            asked: &|_| true,
            taken: &|_| None,
            offsets,
        };
        let found = laws::of(policy).responses(&node, &crowd, verdict);
        for (task, bound) in found.into_iter().filter(|(_, bound)| bound.response != Response::TooLong) {
            let single = shape.task_parents[task].len() == 1;
            bounds[task] = shorter(bounds[task], Bound { exact: bound.exact && single, ..bound });
        }
    }
    for (task, bound) in bounds.iter_mut().enumerate() {
        *bound = bound.or_else(|| alone(plan, shape, promises.known(), overheads, task));
    }
    (bounds, refused)
}
