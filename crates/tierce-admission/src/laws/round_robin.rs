//! `round-robin` on a whole CPU gives a quantum in every turn of all children.

use crate::bounds::max_min_shares;
use crate::demand::uncounted_threads::crowd;
use crate::laws::node::{known, Node, COSTS_TAKE_ALL};
use crate::laws::policy::{Laws, Rated};
use crate::share::{self, Share};
use crate::verdict::{Given, NodeVerdict, Origin, Promise};
use tierce_guarantee::{whole, Guarantee, Kind};
use tierce_plan::{show_time, Edge, Plan};

/// Turns of a quantum each.
pub struct RoundRobin;

impl Laws for RoundRobin {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        Ok(in_turns(node))
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        by_weight(node, |_| 1, rates); // the policy knows no difference between its children
    }

    fn is_limited_to_its_rate(&self, node: &Rated, edge: usize) -> bool {
        is_limited_by_weight(node, edge)
    }

    fn conserves_work(&self) -> bool {
        true
    }

    fn weight(&self, _: &Plan, _: &Edge) -> Option<u64> {
        Some(1)
    }
}

/// With more children, what some do not ask for is not counted as others'.
const FILLED_MAX: usize = 64;

/// What each child gets by its weight: who asks for less leaves the rest to the others.
pub fn by_weight(node: &Rated, weight: impl Fn(usize) -> u64, rates: &mut [Option<Share>]) {
    let edges = node.edges;
    let weights: Vec<_> = edges.iter().map(|edge| weight(*edge)).collect();
    // An edge is one virtual processor.
    let asks = || edges.iter().map(|edge| (node.ask)(*edge).min(share::one()));
    let asks: Option<Vec<_>> = (edges.len() <= FILLED_MAX).then(|| asks().collect());
    let shares = max_min_shares::of_one(node.supply, &weights, asks.as_deref());
    for (edge, share) in edges.iter().zip(shares) {
        rates[*edge] = Some(share);
    }
}

/// That is all a child gets while the others do ask for what they may.
pub fn is_limited_by_weight(node: &Rated, edge: usize) -> bool {
    let mut others = node.edges.iter().filter(|other| **other != edge);
    node.edges.len() <= FILLED_MAX && others.all(|other| (node.asks)(*other))
}

fn in_turns(node: &Node) -> Vec<Given> {
    let Node { plan, index, edges, received, overheads, quantum_ns, .. } = *node;
    let name = node.name();
    if let Some(crowd) = crowd(plan, index) {
        return node.gives_nothing(crowd);
    }
    let children = edges.len() as u64;
    let whole_cpu = received.iter().position(|promise| promise.guarantee.is_whole_cpu());
    let Some(place) = whole_cpu else {
        return node.gives_nothing(format!("`{name}` has no whole CPU: its turns may be of any length"));
    };
    let switch_ns = overheads.switch_ns(index);
    let turn_ns = quantum_ns.saturating_add(switch_ns).saturating_mul(children);
    let because = format!("`{name}` gives each of {children} a quantum in turn");
    let each = edges.iter().map(|edge| {
        let (because, lost_ns) = match known(overheads.is_none(), || overheads.outside(*edge)) {
            Ok(None) => (because.clone(), 0),
            // A window may hold the begins of two turns.
            Ok(Some(toll)) => {
                let lost_ns = switch_ns.saturating_mul(2).saturating_add(toll.within(turn_ns));
                (format!("{because}; switches and timers may take {}", show_time(lost_ns)), lost_ns)
            }
            Err(unknown) => return Promise::nothing(unknown),
        };
        let left = whole(quantum_ns.saturating_sub(lost_ns));
        Guarantee::reservation(Kind::Rescs, left, whole(turn_ns)).map_or_else(
            || Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}")),
            |guarantee| {
                let (from, formula) = ([&received[place].guarantee], "RESCS quantum n·quantum");
                let promise = Promise::new(guarantee, because);
                [promise.by(Origin::Promise(place), &from, "round robin", formula)].into()
            },
        )
    });
    each.collect()
}
