//! `fair` is start-time fair queuing: PSBE by the tight form of equation 5.2, as long as the number of its children is known; with
//! warp only PS. With `order = "eevdf"` it is PSBE by a bound that knows nothing of that number; other orders give PS, as in
//! Table 5.1. Where children move between the replicas of a spread node it gives PS.

use crate::demand::uncounted_threads::{crowd, some_move};
use crate::laws::node::{known, Node, COSTS_TAKE_ALL, LESS_COSTS};
use crate::laws::policy::{Laws, Rated};
use crate::laws::round_robin::{by_weight, is_limited_by_weight};
use crate::share::Share;
use crate::verdict::{Given, NodeVerdict, Origin, Promise, Step};
use tierce_guarantee::schedulers::{self, Children, SfqBound};
use tierce_guarantee::{whole, Exact, Guarantee, Kind, Parameter};
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::{Edge, Plan};

/// Shares by weight.
pub struct Fair;

impl Laws for Fair {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        Ok(node.edge_param("weight").map_or_else(Vec::new, |weight| shared_by_weight(node, weight)))
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        let weight = |index: usize| self.weight(node.plan, &node.plan.edges[index]).unwrap_or(0);
        by_weight(node, weight, rates);
    }

    /// Who is favoured may get more than its weight says.
    fn is_limited_to_its_rate(&self, node: &Rated, edge: usize) -> bool {
        let favours =
            warped(node.plan, node.policy, node.edges) || policies::fair::credit(node.plan, node.node) > 0;
        !favours && is_limited_by_weight(node, edge)
    }

    fn conserves_work(&self) -> bool {
        true
    }

    fn gives_anyway(&self) -> bool {
        true
    }

    fn weight(&self, plan: &Plan, edge: &Edge) -> Option<u64> {
        let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
        policies::position(&policy.edge_params, "weight").map(|at| edge.params[at])
    }
}

/// Some children come before others whatever they got.
fn warped(plan: &Plan, policy: &PolicyRecord, edges: &[usize]) -> bool {
    let warp = policies::position(&policy.edge_params, "warp");
    warp.is_some_and(|warp| edges.iter().any(|edge| plan.edges[*edge].params[warp] > 0))
}

fn shared_by_weight(node: &Node, weight: usize) -> Vec<Given> {
    if let Some(crowd) = crowd(node.plan, node.index) {
        return node.gives_nothing(crowd);
    }
    let sharing = Sharing::of(node, weight);
    match sharing.children() {
        Ok(children) => sharing.promises(&children),
        Err(why) => node.gives_nothing(why),
    }
}

/// How a node shares.
struct Sharing<'a> {
    node: &'a Node<'a>,
    weights: Vec<Exact>,
    eligible: bool,
    /// Some children come before others whatever they got: what switches cost is not bounded.
    favours: bool,
    /// By which rule and why the error is not bounded: what is left there is the share.
    unbounded: Option<(&'static str, &'static str)>,
}

/// What the scheduler makes of one of the node's promises.
struct Shared {
    place: usize,
    supply: Guarantee,
    children: Children,
}

impl<'a> Sharing<'a> {
    fn of(node: &'a Node<'a>, weight: usize) -> Self {
        let Node { plan, index, edges, .. } = *node;
        let order = policies::fair::order(plan, index);
        let warped = warped(plan, node.policy, edges);
        let credited = policies::fair::credit(plan, index) > 0;
        let unbounded = match order {
            "lottery" => Some(("lottery", "drawings have no bounded error")),
            "stride" => Some(("stride", "with strides the error is not bounded")),
            _ if warped => Some(("warp", "with warp the error is not bounded")),
            _ if credited => {
                Some(("credit", "with a credit for children that slept the error is not bounded"))
            }
            // Who comes brings along what it is owed.
            _ => some_move(plan, node.shape, index)
                .then_some(("spread", "with children that move between CPUs the error is not bounded")),
        };
        let weights = edges.iter().map(|edge| whole(plan.edges[*edge].params[weight])).collect();
        Self { node, weights, eligible: order == "eevdf", favours: warped || credited, unbounded }
    }

    /// Which of the node's promises is shared, and as what.
    fn supply(&self) -> Option<(usize, Guarantee)> {
        self.node.received.iter().enumerate().find_map(|(place, promise)| {
            let supply = match self.unbounded {
                Some(_) => Guarantee::ps(promise.guarantee.share()),
                None => Some(promise.guarantee.clone()).filter(|guarantee| guarantee.kind() != Kind::Null),
            };
            Some((place, supply?))
        })
    }

    fn children(&self) -> Result<Shared, String> {
        let Node { index, received, overheads, quantum_ns, .. } = *self.node;
        let name = self.node.name();
        let (place, supply) =
            self.supply().ok_or_else(|| format!("`{name}` has no guarantee: {}", received[0].because))?;
        let switch_ns = overheads.switch_ns(index);
        if !overheads.is_none() && (self.favours || switch_ns >= quantum_ns) {
            return Err(format!(
                "`{name}`: what switches cost is not bounded with warp or credit, nor with a quantum as short as a switch"
            ));
        }
        // A quantum that ends within a switch lasts as much longer; with deadlines all of those before it may.
        let late_ns = switch_ns.saturating_mul(if self.eligible { self.weights.len() as u64 } else { 1 });
        let longest = whole(quantum_ns.saturating_add(late_ns));
        let children = match self.eligible {
            true => schedulers::eevdf_by_weight(&supply, &longest, &self.weights),
            false => schedulers::sfq(&supply, &longest, &self.weights, SfqBound::Tight),
        };
        let children = children.map_err(|refusal| format!("`{name}`: {refusal}"))?;
        Ok(Shared { place, supply, children })
    }

    /// What each child is promised.
    fn promises(&self, shared: &Shared) -> Vec<Given> {
        let edges = self.node.edges.iter().enumerate();
        edges.map(|(child, edge)| self.promise(shared, child, *edge)).collect()
    }

    fn promise(&self, shared: &Shared, child: usize, edge: usize) -> Given {
        let (overheads, name) = (self.node.overheads, self.node.name());
        let guarantee = shared.children.guarantees[child].clone();
        let with = self.unbounded.map(|(_, why)| format!(" ({why})")).unwrap_or_default();
        let because = format!("`{name}` shares {} by {}{with}", shared.supply, shared.children.rule);
        let (origin, steps) = (Origin::Promise(shared.place), self.steps(shared, child));
        let toll = match known(overheads.is_none(), || overheads.outside(edge)) {
            Ok(None) => {
                let promise = Promise::new(guarantee, because);
                return [Promise { origin, steps, ..promise }].into();
            }
            Ok(Some(toll)) => toll,
            Err(unknown) => return Promise::nothing(unknown),
        };
        let left = self.less_own_switches(&guarantee).and_then(|left| toll.of(&left));
        let Some(left) = left else {
            return Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}"));
        };
        let because = format!("{because}, less switches and timers");
        let mut promise = Promise::new(left, because).by(origin, &[&guarantee], "costs", LESS_COSTS);
        promise.steps.splice(0..0, steps);
        [promise].into()
    }

    /// From what the node is promised to what the child gets.
    fn steps(&self, shared: &Shared, child: usize) -> Vec<Step> {
        let (given, supply) = (&self.node.received[shared.place].guarantee, &shared.supply);
        let to_share = self.unbounded.filter(|_| supply != given).map(|(rule, why)| {
            let (from, to) = (vec![given.clone()], supply.clone());
            Step { from, to, rule, formula: "PS s".into(), because: why.into() }
        });
        let steps = shared.children.derivation(child).steps.into_iter().map(Step::from);
        to_share.into_iter().chain(steps).collect()
    }

    /// One switch per quantum, whole or not.
    fn less_own_switches(&self, guarantee: &Guarantee) -> Option<Guarantee> {
        let switch_ns = self.node.overheads.switch_ns(self.node.index);
        let kept = whole(1) - tierce_guarantee::ratio(switch_ns, self.node.quantum_ns);
        match guarantee.get(Parameter::Error) {
            Some(error) => {
                let error = error * &kept + whole(switch_ns) * whole(2);
                Guarantee::psbe(guarantee.share() * kept, error)
            }
            None => Guarantee::ps(guarantee.share() * kept),
        }
    }
}
