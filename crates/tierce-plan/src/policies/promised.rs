//! What is promised to the child of a node that shares by weight, as numbers that the engine can count: so much CPU time in each window of
//! some length. A weight does not say it: the parameters `promised` and `promise_period` do, or what the part `needs`.

use crate::model::{Child, Edge, Need, Plan};
use crate::policies::{self, PolicyRecord};
use tierce_guarantee::{whole, Exact, Guarantee, Kind, Parameter};

/// Positions of `promised` and `promise_period`, if edges below this policy have them.
pub fn places(policy: &PolicyRecord) -> Option<(usize, usize)> {
    let place = |name| policies::position(&policy.edge_params, name).filter(|_| !policy.added);
    Some((place("promised")?, place("promise_period")?))
}

/// CPU time, and the length of each window in which a child that always wants the CPU receives it, in ns, if it has this guarantee below a
/// node without budgets. `None`: it says nothing of any window, or of none as short as can be counted.
///
/// What is shared by weight has no periods of its own, so a reservation of x in y holds there only if x is received in every window of y.
/// PSBE s δ promises s·t − δ in every window of t; here t = 2δ/s (rounded up), of which it promises half of the share.
pub fn window(guarantee: &Guarantee) -> Option<(u64, u64)> {
    let (amount, window) = match (guarantee.kind(), guarantee.amount_and_period()) {
        (Kind::Rescs | Kind::Resbs, Some((amount, period))) => (amount.clone(), period.clone()),
        (Kind::Psbe, _) => {
            let (share, error) = (guarantee.share(), guarantee.get(Parameter::Error)?);
            let window: Exact = (whole(2) * error / &share).ceil();
            (share * &window - error, window)
        }
        _ => return None,
    };
    let (amount, window) = (amount.floor().to_word()?, window.ceil().to_word()?);
    let most = policies::policies().iter().find_map(|policy| {
        let (_, window) = places(policy)?;
        Some(policy.edge_params[window].most)
    })?;
    (amount > 0 && amount <= window && window <= most).then_some((amount, window))
}

/// Edges of parts that need a guarantee and have no other parent promise it, unless they say themselves what is promised.
pub(crate) fn fill(plan: &mut Plan) {
    let mut parents = vec![(0, 0); plan.nodes.len().max(plan.tasks.len())];
    for edge in &plan.edges {
        match edge.child {
            Child::Node(node) => parents[node].0 += 1,
            Child::Task(task) => parents[task].1 += 1,
            Child::Set(_) => {}
        }
    }
    let Plan { nodes, tasks, sets, edges, .. } = plan;
    for edge in edges {
        let policy = policies::by_number(nodes[edge.parent].policy);
        let needs = match edge.child {
            Child::Node(node) if parents[node].0 == 1 && nodes[node].roots.is_empty() => &nodes[node].needs,
            Child::Task(task) if parents[task].1 == 1 => &tasks[task].needs,
            _ => continue,
        };
        promise(edge, policy, needs);
    }
    for set in sets {
        for way in std::iter::once(&mut set.under).chain(&mut set.elsewhere) {
            if let [edge] = &mut way[..] {
                promise(edge, policies::by_number(nodes[edge.parent].policy), &set.needs);
            }
        }
    }
}

fn promise(edge: &mut Edge, policy: Option<&PolicyRecord>, needs: &[Need]) {
    let Some((amount, length)) = policy.and_then(places) else { return };
    if needs.is_empty() || edge.given >> amount & 1 == 1 || edge.given >> length & 1 == 1 {
        return;
    }
    let first = needs.iter().find_map(|need| window(&Guarantee::parse(&need.text).ok()?));
    if let Some(first) = first {
        (edge.params[amount], edge.params[length]) = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarantees_as_windows() {
        let of = |text: &str| window(&Guarantee::parse(text).unwrap());
        assert_eq!(of("RESCS 2ms 10ms"), Some((2_000_000, 10_000_000)));
        assert_eq!(of("RESBS 2ms 10ms"), Some((2_000_000, 10_000_000)));
        assert_eq!(of("PSBE 1/4 5ms"), Some((5_000_000, 40_000_000)));
        // 2 · 10 / (1/3) = 60; a third of it less 10
        assert_eq!(of("PSBE 1/3 10ms"), Some((10_000_000, 60_000_000)));
        assert_eq!(of("PSBE 2/7 1ns"), Some((1, 7)));
        for nothing in ["PS 1/4", "NULL", "ALL", "RESU 1/2", "PSBE 1/1000 5ms"] {
            assert_eq!(of(nothing), None, "{nothing}");
        }
        assert_eq!(of("PSBE 1/2 0ms"), None);
    }
}
