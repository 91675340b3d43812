//! `fair` is start-time fair queuing: PSBE by the tight form of equation 5.2, as long as the number of its children is known; with
//! warp only PS. With `order = "eevdf"` it is PSBE by a bound that knows nothing of that number; other orders give PS, as in
//! Table 5.1. Where children move between the replicas of a spread node it gives PS.

use crate::demand::uncounted_threads::{crowd, some_move};
use crate::laws::node::{known, Node, COSTS_TAKE_ALL, LESS_COSTS};
use crate::laws::policy::{Laws, Rated};
use crate::share::{ratio, Share};
use crate::verdict::{NodeVerdict, Origin, Promise, Step};
use tierce_guarantee::schedulers::{self, SfqBound};
use tierce_guarantee::{whole, Guarantee, Kind, Parameter};
use tierce_plan::policies::{self};
use tierce_plan::{Edge, Plan};

/// Shares by weight.
pub struct Fair;

impl Laws for Fair {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Vec<Promise>>, String> {
        Ok(node.edge_param("weight").map_or_else(Vec::new, |weight| shared_by_weight(node, weight)))
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        let weight = |index: usize| self.weight(node.plan, &node.plan.edges[index]).unwrap_or(0);
        let weights: u64 = node.edges.iter().map(|index| weight(*index)).sum();
        for index in node.edges {
            rates[*index] = Some(node.supply * ratio(weight(*index), weights.max(1)));
        }
    }

    fn weight(&self, plan: &Plan, edge: &Edge) -> Option<u64> {
        let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
        policies::position(&policy.edge_params, "weight").map(|at| edge.params[at])
    }
}

fn shared_by_weight(node: &Node, weight: usize) -> Vec<Vec<Promise>> {
    let Node { plan, index, edges, received, overheads, quantum_ns, .. } = *node;
    let name = node.name();
    let (warp, order) = (node.edge_param("warp"), policies::fair::order(plan, index));
    let some_move = some_move(plan, node.shape, index);
    if let Some(crowd) = crowd(plan, index) {
        return node.gives_nothing(crowd);
    }
    let weights: Vec<_> = edges.iter().map(|edge| whole(plan.edges[*edge].params[weight])).collect();
    let warped = warp.is_some_and(|warp| edges.iter().any(|edge| plan.edges[*edge].params[warp] > 0));
    let credited = policies::fair::credit(plan, index) > 0;
    // What is left where the error is not bounded is the share.
    let unbounded = match order {
        "lottery" => Some(("lottery", "drawings have no bounded error")),
        "stride" => Some(("stride", "with strides the error is not bounded")),
        _ if warped => Some(("warp", "with warp the error is not bounded")),
        _ if credited => Some(("credit", "with a credit for who slept the error is not bounded")),
        // Who comes brings along what it is owed.
        _ => some_move.then_some(("spread", "with children that move between CPUs the error is not bounded")),
    };
    let supply = received.iter().enumerate().find_map(|(place, promise)| {
        let supply = if unbounded.is_some() {
            Guarantee::ps(promise.guarantee.share())
        } else {
            Some(promise.guarantee.clone()).filter(|guarantee| guarantee.kind() != Kind::Null)
        };
        Some((place, supply?))
    });
    let Some((place, supply)) = supply else {
        return node.gives_nothing(format!("nothing is promised to `{name}`: {}", received[0].because));
    };
    let switch_ns = overheads.switch_ns(index);
    if !overheads.is_none() && (warped || credited || switch_ns >= quantum_ns) {
        return node.gives_nothing(format!(
            "`{name}`: what switches cost is not bounded with warp or credit, nor with a quantum as short as a switch"
        ));
    }
    // A quantum that ends within a switch lasts as much longer; with deadlines all of those before it may.
    let eligible = order == "eevdf";
    let late_ns = switch_ns.saturating_mul(if eligible { edges.len() as u64 } else { 1 });
    let longest = whole(quantum_ns.saturating_add(late_ns));
    let children = match eligible {
        true => schedulers::eevdf_by_weight(&supply, &longest, &weights),
        false => schedulers::sfq(&supply, &longest, &weights, SfqBound::Tight),
    };
    match children {
        Ok(children) => {
            let with = unbounded.map(|(_, why)| format!(" ({why})")).unwrap_or_default();
            let because = format!("`{name}` shares {supply} by {}{with}", children.rule);
            let from_supply: Vec<_> = match unbounded {
                Some((rule, why)) if supply != received[place].guarantee => {
                    let (from, to) = (vec![received[place].guarantee.clone()], supply.clone());
                    vec![Step { from, to, rule, formula: "PS s".into(), because: why.into() }]
                }
                _ => Vec::new(),
            };
            let each = children.guarantees.iter().enumerate().zip(edges).map(|((child, guarantee), edge)| {
                let guarantee = guarantee.clone();
                let steps = children.derivation(child).steps.into_iter().map(Step::from);
                let steps: Vec<_> = from_supply.iter().cloned().chain(steps).collect();
                let origin = Origin::Promise(place);
                let toll = match known(overheads.is_none(), || overheads.outside(*edge)) {
                    Ok(None) => {
                        let promise = Promise::new(guarantee, because.clone());
                        return vec![Promise { origin, steps, ..promise }];
                    }
                    Ok(Some(toll)) => toll,
                    Err(unknown) => return Promise::nothing(unknown),
                };
                // One switch per quantum, whole or not.
                let kept = whole(1) - tierce_guarantee::ratio(switch_ns, quantum_ns);
                let left = match guarantee.get(Parameter::Error) {
                    Some(error) => {
                        let error = error * &kept + whole(switch_ns) * whole(2);
                        Guarantee::psbe(guarantee.share() * kept, error)
                    }
                    None => Guarantee::ps(guarantee.share() * kept),
                };
                let because = format!("{because}, less switches and timers");
                let left = left.and_then(|left| toll.of(&left));
                let Some(left) = left else {
                    return Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}"));
                };
                let mut promise = Promise::new(left, because).by(origin, &[&guarantee], "costs", LESS_COSTS);
                promise.steps.splice(0..0, steps);
                vec![promise]
            });
            each.collect()
        }
        Err(refusal) => node.gives_nothing(format!("`{name}`: {refusal}")),
    }
}
