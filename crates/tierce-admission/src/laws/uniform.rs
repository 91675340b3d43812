//! Uniformly slower processors: a node whose edges have a `share` gives each child RESU share.
//!
//! - On a whole CPU, or on a processor that is slower itself (RESU), when the shares add up to no more than that has (Lipari &
//!   Buttazzo 1999; HLS, table 5.1). Shares are of a whole CPU at any depth.
//! - RESU says something of the deadlines that a child announces, and only as many are kept as the policy has places for: a
//!   child of which more may matter at a time is promised nothing. Nor is one below which somebody announces none: that would use
//!   what is left until a far deadline before a nearer one is announced.
//! - Who announces none is served from period to period: RESBS share·period period.

use crate::demand::jobs::{announces, comes_last, job};
use crate::demand::uncounted_threads::crowd;
use crate::laws::node::Node;
use crate::laws::policy::{Laws, Rated, Tested};
use crate::share::{self, fraction, percent, percent_given, ratio, Share};
use crate::verdict::{Excess, Failure, Given, Law, NodeVerdict, Origin, Promise};
use tierce_guarantee::{whole, Guarantee, Kind};
use tierce_plan::policies::{self};
use tierce_plan::{Child, Edge, Plan, Shape};

/// Deadlines of a child that count at a time: the one of the moment and those that are kept (policy/uniform.c).
const DEADLINES_MAX: u64 = 5;

/// The farthest deadline that counts, as there.
const AHEAD_NS: u64 = 1 << 32;

/// The share of an edge, if its policy gives shares of a CPU.
pub fn share(plan: &Plan, edge: &Edge) -> Option<Share> {
    millionths(plan, edge).map(|millionths| ratio(millionths, 1_000_000))
}

/// The same in millionths.
pub fn millionths(plan: &Plan, edge: &Edge) -> Option<u64> {
    let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
    let units = edge.params[policies::share(policy)?];
    Some((units * 1_000_000 + (1 << 19)) >> 20)
}

/// Slower processors.
pub struct Uniform;

impl Laws for Uniform {
    fn test(&self, node: &Tested, children: &[(usize, &Edge)], verdict: &mut NodeVerdict) {
        shares_fit(node.plan, children, verdict);
    }

    fn supply(&self, node: &Node, verdict: &NodeVerdict) -> Result<Vec<Given>, String> {
        Ok(slower(node, verdict))
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        for index in node.edges {
            rates[*index] = share(node.plan, &node.plan.edges[*index]);
        }
    }

    fn is_limited_to_its_rate(&self, _: &Rated, _: usize) -> bool {
        true
    }
}

/// The sum of shares.
fn shares_fit(plan: &Plan, children: &[(usize, &Edge)], verdict: &mut NodeVerdict) {
    let shares: Vec<_> = children.iter().filter_map(|(_, edge)| share(plan, edge)).collect();
    let asked = shares.iter().fold(share::zero(), |sum, share| sum + share);
    verdict.law = Some(Law::Shares);
    let supply = verdict.available.clone().unwrap_or_else(share::one);
    let (rule, what, bound) = match asked > share::one() {
        true => ("shares_must_fit_the_cpu", "one CPU", share::one()),
        false => ("shares_must_fit_the_supply", "what the node gets itself", supply),
    };
    verdict.limited_by(&bound);
    if asked > bound {
        let mut sum = share::zero();
        let first = shares.iter().position(|share| {
            sum += share;
            sum > bound
        });
        let excess = Excess {
            edge: first.map(|at| children[at].0),
            test: "the sum of shares (Lipari & Buttazzo 1999)".into(),
            ns: None,
            share: Some(&asked - &bound),
        };
        verdict.failures.push(Failure {
            rule,
            message: format!(
                "The shares add up to {} of a CPU, more than {what}: {}.",
                percent(&asked),
                percent_given(&bound)
            ),
            value: fraction(&asked),
            bound: share::fraction_given(&bound),
            mend: None,
            excess,
        });
    }
    verdict.asked = Some(asked);
}

/// What it gives to its children.
fn slower(node: &Node, verdict: &NodeVerdict) -> Vec<Given> {
    let Node { plan, shape, index, edges, received, overheads, .. } = *node;
    let name = &plan.nodes[index].name;
    let nothing = |because: String| vec![Promise::nothing(because); edges.len()];
    if !verdict.failures.is_empty() {
        return nothing(format!("the shares of `{name}` do not fit"));
    }
    if !overheads.is_none() {
        return nothing(format!("how often the deadlines below `{name}` make it switch is not known"));
    }
    let asked = verdict.asked.clone().unwrap_or_else(share::zero);
    let uniform =
        |promise: &Promise| promise.guarantee.is_whole_cpu() || promise.guarantee.kind() == Kind::Resu;
    let Some(place) =
        received.iter().position(|promise| uniform(promise) && promise.guarantee.share() >= asked)
    else {
        let because =
            format!("`{name}` needs a whole CPU, or a uniformly slower one: {}", received[0].because);
        return nothing(because);
    };
    let period_ns = policies::by_number(plan.nodes[index].policy)
        .and_then(|policy| policies::position(&policy.node_params, "period"))
        .map_or(1, |at| plan.nodes[index].params[at]);
    let each = edges.iter().map(|edge| {
        let edge = &plan.edges[*edge];
        let (share, child) = (share(plan, edge)?, plan.child_name(edge.child));
        let from = [&received[place].guarantee];
        if !announces(plan, edge.child) {
            // Differences of work done are rounded down, twice.
            let amount = (&share * whole(period_ns)).floor() - whole(1);
            let guarantee = Guarantee::reservation(Kind::Resbs, amount, whole(period_ns))?;
            let because =
                format!("`{name}` serves `{child}` from period to period: it announces no deadlines");
            let rule = "uniformly slower processor without deadlines";
            let promise = Promise::new(guarantee, because);
            return Some([promise.by(Origin::Promise(place), &from, rule, "RESBS s·y y")].into());
        }
        if let Err(because) = all_count(plan, shape, edge) {
            return Some(Promise::nothing(because));
        }
        let because = format!("admitted by `{name}`, to the deadlines that `{child}` announces");
        let promise = Promise::new(Guarantee::new(Kind::Resu, vec![share])?, because);
        let rule = "uniformly slower processor (BSS)";
        Some([promise.by(Origin::Promise(place), &from, rule, "RESU s")].into())
    });
    each.map(|given| given.unwrap_or_else(|| Promise::nothing(format!("`{name}`: its share is too small"))))
        .collect()
}

/// All deadlines that a child announces count, and nobody below it announces none; or why not.
fn all_count(plan: &Plan, shape: &Shape, edge: &Edge) -> Result<(), String> {
    let (name, parent) = (plan.child_name(edge.child), &plan.nodes[edge.parent].name);
    let too_many = || {
        Err(format!(
            "more than {DEADLINES_MAX} deadlines of `{name}` may count at a time in `{parent}`, or one be too far away"
        ))
    };
    let mut open = vec![(edge, 0)];
    let mut count = 0u64;
    while let Some((edge, own_ns)) = open.pop() {
        if comes_last(plan, edge, own_ns) {
            let who = plan.child_name(edge.child);
            return Err(format!(
                "`{who}` announces no deadlines, and may use what `{parent}` gives `{name}` until those of others"
            ));
        }
        match edge.child {
            Child::Task(task) => {
                let load = plan.tasks[task].load.as_ref();
                let Some(job) =
                    load.and_then(|load| job(load, own_ns)).filter(|job| job.deadline_ns <= AHEAD_NS)
                else {
                    return too_many();
                };
                count += job.deadline_ns.saturating_add(job.jitter_ns).div_ceil(job.period_ns.max(1));
            }
            Child::Node(node) => {
                let policy = policies::by_number(plan.nodes[node].policy).filter(|policy| !policy.added);
                let Some(policy) = policy.filter(|_| crowd(plan, node).is_none()) else { return too_many() };
                let at = policies::position(&policy.edge_params, "deadline");
                let below = shape.children[node].iter().map(|below| &plan.edges[*below]);
                open.extend(below.map(|below| (below, at.map_or(0, |at| below.params[at]))));
            }
            Child::Set(_) => return too_many(),
        }
    }
    match count {
        ..=DEADLINES_MAX => Ok(()),
        _ => too_many(),
    }
}
