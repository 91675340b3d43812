//! `time-sharing` on a whole CPU gives a quantum to who has used none for `starvation`, after the others in that state.

use crate::demand::uncounted_threads::{crowd, some_move};
use crate::laws::fixed_priority::by_priority;
use crate::laws::node::Node;
use crate::laws::policy::{Laws, Rated};
use crate::share::Share;
use crate::verdict::{Given, NodeVerdict, Origin, Promise};
use tierce_guarantee::{whole, Guarantee, Kind};
use tierce_plan::policies::{self};
use tierce_plan::show_time;

/// Levels that move.
pub struct TimeSharing;

impl Laws for TimeSharing {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        Ok(by_levels(node))
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        let starvation = policies::position(&node.policy.node_params, "starvation");
        if starvation.is_some_and(|at| node.plan.nodes[node.node].params[at] > 0) {
            return; // everybody gets something, nobody knows how much
        }
        by_priority(node, |_| 0, rates); // of any level at some time
    }

    fn conserves_work(&self) -> bool {
        true
    }
}

/// Levels that move: what is sure is a quantum from time to time, to who always wants it.
fn by_levels(node: &Node) -> Vec<Given> {
    let Node { plan, shape, index, edges, received, overheads, quantum_ns, .. } = *node;
    let name = node.name();
    if some_move(plan, shape, index) {
        return node.gives_nothing(format!(
            "how often others come to `{name}` that have waited for long is not known"
        ));
    }
    let starvation = policies::position(&node.policy.node_params, "starvation");
    let starvation_ns = starvation.map_or(0, |at| plan.nodes[index].params[at]);
    if starvation_ns == 0 {
        return node.gives_nothing(format!("`{name}` lets the highest level run, however long it does"));
    }
    if let Some(crowd) = crowd(plan, index) {
        return node.gives_nothing(crowd);
    }
    let whole_cpu = received.iter().position(|promise| promise.guarantee.is_whole_cpu());
    let Some(place) = whole_cpu.filter(|_| overheads.is_none()) else {
        return node.gives_nothing(format!(
            "`{name}` has no whole CPU without costs: how long it lets others starve is not known"
        ));
    };
    // Between the ends of two quanta; a window may begin when all but a moment of the first has been used.
    let between_ns = starvation_ns.saturating_add(quantum_ns.saturating_mul(edges.len() as u64));
    let window_ns = between_ns.saturating_mul(2).saturating_sub(quantum_ns);
    let each = Guarantee::reservation(Kind::Rescs, whole(quantum_ns), whole(window_ns)).map_or_else(
        || Promise::nothing(format!("`{name}`: its windows are too long")),
        |guarantee| {
            let because = format!(
                "`{name}` puts a child that has used no quantum for {} before all others; {} children",
                show_time(starvation_ns),
                edges.len()
            );
            let formula = "RESCS quantum (2·starvation + (2n − 1)·quantum)";
            let from = [&received[place].guarantee];
            let promise = Promise::new(guarantee, because);
            [promise.by(Origin::Promise(place), &from, "starvation", formula)].into()
        },
    );
    vec![each; edges.len()]
}
