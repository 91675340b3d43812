//! Who can give what is asked for: nodes whose policy provides such a guarantee, or one from which it follows, and the parameters
//! of the edge that would give it.
//!
//! A `reservation` provides RESBH (hard budgets) or RESBS. A basic reservation is asked of it as it is. Of every other guarantee
//! the weakest reservation is computed from which it follows, for several periods, and the cheapest is taken: PSBE 1/4 with an
//! error of 15 ms is 5 ms in every 20 ms. A `fair` node provides shares, PS and PSBE, by weight. A `uniform` node provides RESU by share;
//! who announces no deadlines has a soft reservation there, in the period of the node. Whether what it provides is enough, with
//! all that is above and beside it, is for admission to say.
//!
//! A `slots` node provides RESNH and what follows from it, by a reserve in the first gap of its slot that is long enough. A `round-robin` or
//! `time-sharing` node provides what follows from its quanta, with no parameter; how much that is beside all others, admission derives.
//!
//! An `edf` or `fixed-priority` node without budgets is no candidate: what its tasks receive rests on the work that each of them
//! declares, and nothing keeps a program to what it declares.

use crate::mode::{number, LEAST_BUDGET_NS, LEAST_PERIOD_NS};
use crate::principal::Principal;
use crate::trial::Trial;
use tierce_guarantee::{
    convert, follows, show, show_ns, weakest, whole, Exact, Free, Guarantee, Kind, Parameter, Wanted,
};
use tierce_plan::policies::{self, promised, slots::Reserve, PolicyRecord};
use tierce_plan::{Child, Keys, Node, Plan};

/// A node that could give a guarantee, by an edge with these parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The node.
    pub under: String,
    /// One replica of several has to be chosen.
    pub per_cpu: bool,
    /// Parameters of the edge.
    pub keys: Keys,
}

/// Periods that are tried, as parts of the one that the guarantee names.
const PARTS: [u64; 6] = [1, 2, 3, 4, 6, 8];

/// Where a guarantee names no time.
const PERIOD_NS: u64 = 20_000_000;

/// Nodes that could give `goal` to `owner`: the system's, and the owner's own first. `under`: only this one. If there is none: why.
pub fn candidates(
    trial: &Trial,
    goal: &Guarantee,
    owner: &Principal,
    under: Option<&str>,
    owner_of: impl Fn(&str) -> Principal,
) -> Result<Vec<Candidate>, String> {
    let (mut found, mut why) = (Vec::new(), Vec::new());
    let mut seen: Vec<&str> = Vec::new();
    let plan = trial.plan();
    // A copy is for the threads of one user or cgroup, whoever that is by now.
    let keeps_copies = *owner != Principal::System && !plan.for_each.is_empty();
    for (at, node) in plan.nodes.iter().enumerate() {
        let base = node.base.as_str();
        if seen.contains(&base) || under.is_some_and(|under| under != base) {
            continue;
        }
        seen.push(base);
        let theirs = owner_of(base);
        if theirs != Principal::System && theirs != *owner {
            continue;
        }
        let is_kept = keeps_copies && (is_copy(base) || goal.kind() == Kind::Null && has_copies(plan, base));
        let possible = match is_kept {
            true => Err("it has copies, one for each user or cgroup".to_string()),
            false => keys(trial, at, goal, None),
        };
        match possible {
            Ok(keys) => {
                let per_cpu = node.replica.is_some() && node.family.is_none();
                found.push((
                    theirs == Principal::System,
                    Candidate { under: base.to_string(), per_cpu, keys },
                ));
            }
            Err(reason) => why.push((base, reason)),
        }
    }
    if let (Some(under), true) = (under, seen.is_empty()) {
        return Err(format!("the plan in force has no node `{under}`"));
    }
    if found.is_empty() && why.is_empty() {
        return Err(format!("the schedulers that are asked belong neither to the system nor to {owner}"));
    }
    if found.is_empty() {
        let why: Vec<_> = why.into_iter().map(|(base, reason)| format!("{base}: {reason}")).collect();
        return Err(format!("no scheduler can provide {goal}: {}", why.join("; ")));
    }
    found.sort_by_key(|(system, _)| *system);
    Ok(found.into_iter().map(|(_, candidate)| candidate).collect())
}

/// Some children of the node are copies. Beside them each thread that asks for nothing would have as much as all that a user has.
fn has_copies(plan: &Plan, base: &str) -> bool {
    plan.edges.iter().any(|edge| {
        let is_copied = matches!(edge.child, Child::Node(child) if is_copy(&plan.nodes[child].base));
        is_copied && plan.nodes[edge.parent].base == base
    })
}

/// One of the copies of a node (`for_each`), or below one.
fn is_copy(base: &str) -> bool {
    base.contains('#')
}

/// Parameters of an edge below that node, an index into the plan's nodes, by which its child would have the guarantee. `own`: the child, if
/// it is there already.
pub fn keys(trial: &Trial, node: usize, goal: &Guarantee, own: Option<&str>) -> Result<Keys, String> {
    let about = &trial.plan().nodes[node];
    let policy = policies::by_number(about.policy).ok_or("its policy is not known")?;
    if goal.kind() == Kind::Null {
        return nothing(policy);
    }
    if policies::budget_and_period(policy).is_some() {
        return budget(policy, about, goal);
    }
    let has_weights = policies::position(&policy.edge_params, "weight").is_some();
    if has_weights && matches!(goal.kind(), Kind::Ps | Kind::Psbe) {
        return weight(trial, node, (policy, own), goal);
    }
    if policies::share(policy).is_some() {
        return share(policy, about, goal);
    }
    if let Some(at) = policies::position(&policy.node_params, "slot").filter(|_| !policy.added) {
        return reserve(trial.plan(), node, (about.params[at], own), goal);
    }
    let bounds_nobody = policies::by_deadline(policy) || policies::priority(policy).is_some();
    if policies::quantum(policy).is_some() && !has_weights && !bounds_nobody {
        return Ok(Keys::new());
    }
    let why = match bounds_nobody {
        true => " bounds no task, so who runs for longer than was said takes from others",
        false => " gives no guarantee that could be asked for",
    };
    Err([policy.name, why].concat())
}

fn nothing(policy: &PolicyRecord) -> Result<Keys, String> {
    // Whose children take turns; of others one could keep all time to itself.
    match policies::quantum(policy) {
        Some(_) => Ok(Keys::new()),
        None => Err(format!("{} is for who has a guarantee", policy.name)),
    }
}

/// What a reservation's edge gives: hard if its budgets are.
fn provided(policy: &PolicyRecord, node: &Node) -> Kind {
    let at = policies::position(&policy.node_params, "replenishment");
    match at.map(|at| node.params[at]) {
        Some(0) | None => Kind::Resbh,
        Some(_) => Kind::Resbs,
    }
}

fn budget(policy: &PolicyRecord, node: &Node, goal: &Guarantee) -> Result<Keys, String> {
    let kind = provided(policy, node);
    let (budget, period) = match goal.amount_and_period() {
        Some((budget, period)) if goal.kind().is_basic() => {
            let given = Guarantee::reservation(kind, budget.clone(), period.clone());
            let given = given.ok_or("no such reservation")?;
            if !follows(&given, goal) {
                show(&given, goal, &Free::default()).map_err(|why| why.to_string())?;
            }
            (budget.clone(), period.clone())
        }
        _ => cheapest(kind, goal)?,
    };
    let whole_ns = |time: &Exact| number(time).ok_or_else(|| format!("{goal} is not in whole ns"));
    let text = |time: &Exact| whole_ns(time).map(show_ns);
    Ok(vec![("budget".into(), text(&budget)?), ("period".into(), text(&period)?)])
}

/// The reservation of the smallest share from which the guarantee follows; of several the one with the longest period.
fn cheapest(kind: Kind, goal: &Guarantee) -> Result<(Exact, Exact), String> {
    let named = [Parameter::Period, Parameter::Error].into_iter().find_map(|of| goal.get(of));
    let named = named.and_then(|time| number(&time.floor())).filter(|ns| *ns > 0).unwrap_or(PERIOD_NS);
    let mut best: Option<(Exact, Exact)> = None;
    let mut why = String::new();
    for part in PARTS {
        if part > 1 && named / part < LEAST_PERIOD_NS {
            continue;
        }
        let period = whole((named / part).max(1));
        let open = Wanted { kind, values: vec![None, Some(period.clone())] };
        match weakest(&open, goal, &Free::default()) {
            Ok(derivation) => {
                let Some((budget, period)) = derivation.source.amount_and_period() else { continue };
                // None that is computed is shorter than what may be asked for.
                let budget = budget.ceil().max(whole(LEAST_BUDGET_NS).min(period.clone()));
                let is_better = best.as_ref().is_none_or(|(b, p)| &budget / period < b / p);
                if budget <= *period && is_better {
                    best = Some((budget, period.clone()));
                }
            }
            Err(refusal) => why = refusal.to_string(),
        }
    }
    best.ok_or(why)
}

/// The least share that is enough. Who announces no deadlines has that share of each of the node's periods, less one nanosecond.
fn share(policy: &PolicyRecord, node: &Node, goal: &Guarantee) -> Result<Keys, String> {
    let least = match goal.kind() {
        Kind::Resu => goal.share(),
        _ => {
            let at = policies::position(&policy.node_params, "period").ok_or("it has no period")?;
            let period = whole(node.params[at].max(1));
            let open = Wanted { kind: Kind::Resbs, values: vec![None, Some(period.clone())] };
            let needed = weakest(&open, goal, &Free::default()).map_err(|refusal| refusal.to_string())?;
            let (budget, _) = needed.source.amount_and_period().ok_or("no such reservation")?;
            (budget.ceil() + whole(1)) / period
        }
    };
    let millionths = number(&(least * whole(1_000_000)).ceil()).filter(|share| *share <= 1_000_000);
    let share = millionths.ok_or_else(|| format!("{goal} is more than a whole CPU there"))?;
    let text = format!("{}.{:06}", share / 1_000_000, share % 1_000_000);
    Ok(vec![("share".into(), text.trim_end_matches('0').trim_end_matches('.').into())])
}

/// The first gap between the reserves of a slot that is long enough.
fn reserve(
    plan: &Plan,
    node: usize,
    (slot_ns, own): (u64, Option<&str>),
    goal: &Guarantee,
) -> Result<Keys, String> {
    let kind = if goal.kind() == Kind::Resnh { Kind::Resnh } else { Kind::Rescs };
    let open = Wanted { kind, values: vec![None, Some(whole(slot_ns.max(1)))] };
    let needed = weakest(&open, goal, &Free::default()).map_err(|refusal| refusal.to_string())?;
    let (length, _) = needed.source.amount_and_period().ok_or("no such reservation")?;
    let length_ns = number(&length.ceil()).ok_or_else(|| format!("{goal} is not in whole ns"))?;
    let length_ns = length_ns.max(LEAST_BUDGET_NS.min(slot_ns));
    let others = plan.edges.iter().filter(|edge| edge.parent == node);
    let others = others.filter(|edge| own.is_none_or(|own| plan.child_name(edge.child) != own));
    let mut taken: Vec<Reserve> = others.filter_map(|edge| Reserve::of(plan, edge)).collect();
    taken.sort_by_key(|reserve| reserve.offset_ns);
    let mut offset_ns: u64 = 0;
    for reserve in &taken {
        if offset_ns.saturating_add(length_ns) <= reserve.offset_ns {
            break;
        }
        offset_ns = offset_ns.max(reserve.end_ns());
    }
    if offset_ns.saturating_add(length_ns) > slot_ns {
        return Err(format!("no {} of its slot are free at one place", show_ns(length_ns)));
    }
    Ok(vec![("offset".into(), show_ns(offset_ns)), ("length".into(), show_ns(length_ns))])
}

/// What the kernel is to count as promised, if the guarantee says it of windows. `has`: it may have another promise by now.
fn promise(goal: &Guarantee, has: bool) -> Keys {
    let window = promised::window(goal).or(has.then_some((0, 0)));
    let key = |name: &str, ns| (name.to_string(), show_ns(ns));
    window.map_or_else(Keys::new, |(amount, length)| {
        vec![key("promised", amount), key("promise_period", length)]
    })
}

/// The least weight that is enough beside the weights that there are.
fn weight(
    trial: &Trial,
    node: usize,
    (policy, own): (&PolicyRecord, Option<&str>),
    goal: &Guarantee,
) -> Result<Keys, String> {
    let at = policies::position(&policy.edge_params, "weight").ok_or("it has no weights")?;
    let plan = trial.plan();
    let share = |guarantee: &Guarantee| {
        convert(guarantee, Kind::Ps, &Free::default()).ok().map(|derivation| derivation.result().share())
    };
    let shares =
        trial.admission().nodes[node].promises.iter().filter_map(|promise| share(&promise.guarantee));
    let has = shares.max().ok_or("it is guaranteed no share itself")?;
    let wanted = goal.share();
    if wanted >= has {
        return Err("its own share is not larger than that".into());
    }
    let below = plan.edges.iter().filter(|edge| edge.parent == node && !matches!(edge.child, Child::Set(_)));
    let below = below.filter(|edge| own.is_none_or(|own| plan.child_name(edge.child) != own));
    let sum: u64 = below.map(|edge| edge.params[at]).sum();
    let least = whole(sum.max(1)) * &wanted / (has - &wanted);
    let weight = number(&least.ceil()).unwrap_or(u64::MAX).max(1);
    let mut keys = vec![("weight".into(), weight.to_string())];
    if promised::places(policy).is_some() {
        keys.extend(promise(goal, own.is_some()));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use tierce_admission::PlanExt;

    const PLAN: &str = r#"
        [node.top]
        policy = "fixed-priority"
        cpu = 0
        [node.rt]
        policy = "reservation"
        under.top = { priority = 1 }
        [node.group]
        policy = "fair"
        under.rt = { budget = "10ms", period = "20ms" }
        [task.other]
        under.group = { weight = 100 }
        [node.rest]
        policy = "fair"
        default = true
        under.rt = { budget = "1ms", period = "20ms" }
        under.top = { priority = 0 }
    "#;

    fn found(goal: &str) -> Result<Vec<(String, String)>, String> {
        let trial = Trial::new(Rc::new(Plan::parse(PLAN, "test.toml").unwrap()));
        let goal = Guarantee::parse(goal).unwrap();
        let found = candidates(&trial, &goal, &Principal::User(1), None, |_| Principal::System)?;
        let shown =
            |keys: &Keys| keys.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>();
        Ok(found.into_iter().map(|it| (it.under, shown(&it.keys).join(" "))).collect())
    }

    /// A basic reservation is asked as it is, and others by what they follow from.
    #[test]
    fn a_guarantee_is_asked_of_who_can_give_it() {
        let first = |goal: &str| found(goal).unwrap().remove(0);
        assert_eq!(first("RESBS 2ms 10ms"), ("rt".into(), "budget 2ms period 10ms".into()));
        assert_eq!(first("RESBH 2ms 10ms"), ("rt".into(), "budget 2ms period 10ms".into()));
        for goal in ["RESCS 5ms 33ms", "PSBE 1/4 15ms", "PS 1/4"] {
            let (under, keys) = first(goal);
            let times: Vec<_> = keys.split(' ').collect();
            let given = Guarantee::parse(&format!("RESBH {} {}", times[1], times[3])).unwrap();
            show(&given, &Guarantee::parse(goal).unwrap(), &Free::default()).unwrap();
            assert_eq!(under, "rt");
        }
        let all = found("PS 1/4").unwrap();
        assert!(all.contains(&("group".into(), "weight 100".into())), "{all:?}");
        let all = found("PSBE 1/8 20ms").unwrap();
        let keys = "weight 34 promised 20ms promise_period 320ms";
        assert!(all.contains(&("group".into(), keys.into())), "{all:?}");
        assert_eq!(first("NULL").0, "group");
        assert!(found("ALL").unwrap_err().contains("no scheduler can provide ALL"));
    }

    #[test]
    fn nobody_is_asked_for_what_is_anothers() {
        let trial = Trial::new(Rc::new(Plan::parse(PLAN, "test.toml").unwrap()));
        let goal = Guarantee::parse("RESBS 2ms 10ms").unwrap();
        let of = |owner: Principal, under| {
            candidates(&trial, &goal, &owner, under, |node| match node {
                "rt" => Principal::User(1),
                _ => Principal::System,
            })
        };
        assert_eq!(of(Principal::User(1), None).unwrap().len(), 1);
        assert!(of(Principal::User(2), None).is_err());
        assert!(of(Principal::User(1), Some("nowhere")).unwrap_err().contains("no node `nowhere`"));
        assert!(of(Principal::User(1), Some("rest")).is_err());
    }
}
