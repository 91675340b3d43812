//! Nodes and tasks with a budget on each of several CPUs (hyper containers): what they are promised, and the jobs directly
//! below such a node.
//!
//! A constant bandwidth server that its child did not want for a moment may begin a new period then (rule 5 of
//! policy/reservation.c), so the budgets are no periodic supply; what is sure of them is in
//! `tierce_analysis::several_budgets`. It needs for each budget what may come before it on its CPU, at most:
//!
//! - by priority, servers of larger priority or, of equal, earlier in the text: U·t + Q·(1 − U) of any window of t
//!   (`leftover_supply.rs`; it holds of any window, since all that they had to do before is done before anything else);
//! - by deadlines, all other servers of the node: U·t + 2·Q·(1 − U), if all of them have their budgets in time;
//! - what is above the `reservation`: nothing, if that has a whole CPU, or what those of higher priority take.

use crate::bounds::leftover_supply::readable;
use crate::demand::overheads::Overheads;
use crate::demand::uncounted_threads::{crowd, of_crowd};
use crate::laws::fixed_priority::BOUNDED_ABOVE;
use crate::share::{percent, ratio};
use crate::verdict::{Given, Origin, Promise};
use tierce_analysis::several_budgets::{Budget, Budgets, Share as Sure, Taken};
use tierce_guarantee::{whole, Guarantee, Kind};
use tierce_plan::policies::reservation::{Replenishment, ServerRules};
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::Cpus;
use tierce_plan::{show_time, Child, Plan, Shape};

const RULE: &str = "budgets on several CPUs that may be idle";
const ALL_OF_THEM: &str = "PSBE Σa·(1 − o)/(1 + Σa) Σa·(B + T − Q)/(1 + Σa), a = Q/(T − Q)";
const ONE_OF_THEM: &str = "PSBE U·(1 − o) U·(B + T − Q)";

/// What is promised to nodes and through edges.
#[derive(Clone, Copy)]
pub struct Promised<'a> {
    pub nodes: &'a [Given],
    pub edges: &'a [Given],
}

/// The budgets above a child, one on each CPU that leads to it; or why nothing is known of them.
pub fn of(
    promises: Promised,
    plan: &Plan,
    shape: &Shape,
    above: &[usize],
    (at_once, overheads): (u32, &Overheads),
) -> Result<Budgets, String> {
    if !overheads.is_none() {
        return Err("what it costs to move between budgets is not known".into());
    }
    let mut cpus = Cpus::NONE;
    let mut each = Vec::new();
    for edge in above {
        let about = &plan.edges[*edge];
        let reach = shape.reach[about.parent];
        if reach.count() != 1 || reach.meet(cpus) || about.when_spent || about.spread {
            return Err("it has more than one way to a CPU".into());
        }
        if about.rank != plan.edges[above[0]].rank {
            return Err("its edges have different ranks".into());
        }
        cpus |= reach;
        each.push(budget(promises, plan, shape, *edge)?);
    }
    Budgets::new(each, at_once).ok_or_else(|| "it has no parent".into())
}

/// The budget of an edge, and what may come before it.
fn budget(promises: Promised, plan: &Plan, shape: &Shape, edge: usize) -> Result<Budget, String> {
    let about = &plan.edges[edge];
    let (node, rules) = (about.parent, ServerRules::of(plan, about.parent));
    let name = &plan.nodes[node].name;
    let policy = policies::by_number(plan.nodes[node].policy).ok_or("its policy is not known")?;
    let Some((budget, period)) = policies::budget_and_period(policy) else {
        return Err(format!("`{name}` gives no budgets"));
    };
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    if about.params[deadline] < about.params[period] {
        return Err(format!("its budget in `{name}` has a deadline below its period"));
    }
    if !matches!(rules.replenishment, Replenishment::Hard | Replenishment::Periodic) {
        return Err(format!("budgets of `{name}` are neither hard nor periodic"));
    }
    if !rules.undisturbed(plan, shape, node) {
        return Err(format!("interrupts come off the budgets of `{name}`"));
    }
    let promised = &promises.edges[edge][0];
    if promised.guarantee.kind() == Kind::Null {
        return Err(promised.because.to_string());
    }
    if let Some(crowd) = crowd(plan, node) {
        return Err(crowd);
    }
    let own = promises.nodes[node].iter();
    let through = shape.parents[node].iter().filter(|_| shape.parents[node].len() == 1);
    let taken = own.chain(through.flat_map(|above| promises.edges[*above].iter())).find_map(taken_above);
    let mut taken = taken.ok_or_else(|| {
        format!("`{name}` has neither a whole CPU nor what bounded higher priorities leave of one")
    })?;
    for other in shape.children[node].iter().filter(|other| **other != edge) {
        let params = &plan.edges[*other].params;
        let before = match rules.priority {
            Some(at) => (params[at], std::cmp::Reverse(*other)) > (about.params[at], std::cmp::Reverse(edge)),
            None => true,
        };
        if !before {
            continue;
        }
        let (budget_ns, period_ns) = (params[budget], params[period]);
        let of_other = match (rules.priority, rules.replenishment) {
            (Some(_), Replenishment::Hard) => {
                let share = ratio(budget_ns, period_ns.max(1));
                let burst = whole(budget_ns) * (whole(1) - &share);
                Taken::new(share, burst)
            }
            _ => Taken::by_server(budget_ns, period_ns),
        };
        taken = of_other
            .and_then(|other| taken.and(&other))
            .ok_or_else(|| format!("others may take too much in `{name}`"))?;
    }
    Budget::new(about.params[budget], about.params[period], taken)
        .ok_or_else(|| "its budget is not one".into())
}

/// What others above a node take of its CPU in any window, if its promise says that.
fn taken_above(promise: &Promise) -> Option<Taken> {
    if promise.guarantee.is_whole_cpu() {
        return Some(Taken::nothing());
    }
    let [step] = promise.steps.as_slice() else { return None };
    let of_whole = step.from.len() == 1 && step.from[0].is_whole_cpu();
    if step.rule != BOUNDED_ABOVE || !of_whole || promise.guarantee.kind() != Kind::Psbe {
        return None;
    }
    let error = promise.guarantee.get(tierce_guarantee::Parameter::Error)?;
    Taken::new(whole(1) - promise.guarantee.share(), error.clone())
}

fn sure(found: &Sure) -> Option<Guarantee> {
    Guarantee::psbe(readable(found.share.clone()), found.error.ceil())
}

/// "100ms in every 1s on CPU 0, 20ms in every 500ms on CPU 1".
pub fn listed(plan: &Plan, shape: &Shape, above: &[usize]) -> String {
    let each = above.iter().filter_map(|edge| {
        let about = &plan.edges[*edge];
        let (budget, period) =
            policies::budget_and_period(policies::by_number(plan.nodes[about.parent].policy)?)?;
        let cpu = shape.reach[about.parent].lowest()?;
        let (budget, period) = (show_time(about.params[budget]), show_time(about.params[period]));
        Some(format!("{budget} in every {period} on CPU {cpu}"))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// To a node that several CPUs run at once: for as long as one of its children wants a CPU, at least.
pub fn to_node(promises: Promised, plan: &Plan, shape: &Shape, index: usize, overheads: &Overheads) -> Given {
    let (node, above) = (&plan.nodes[index], &shape.parents[index]);
    let nothing = format!("several CPUs reach `{}`", node.name);
    match above.as_slice() {
        [] => return Promise::nothing(nothing),
        [only] => return promises.edges[*only].clone(),
        _ => {}
    }
    let found = of(promises, plan, shape, above, (node.concurrency, overheads));
    let found = found.and_then(|budgets| {
        let bound = shape.children[index].iter().find(|edge| !goes_anywhere(plan, shape, index, **edge));
        match bound {
            Some(edge) => Err(format!(
                "`{}` may not run on all of them, or runs elsewhere, too",
                plan.child_name(plan.edges[*edge].child)
            )),
            None => together(promises, plan, shape, above, &budgets),
        }
    });
    found.unwrap_or_else(|why| Promise::nothing(format!("{nothing}: {why}")))
}

/// To a task with budgets on several CPUs.
pub fn to_task(promises: Promised, plan: &Plan, shape: &Shape, task: usize, overheads: &Overheads) -> Given {
    let above = &shape.task_parents[task];
    let nothing = format!("several CPUs reach `{}`", plan.tasks[task].name);
    let found = alone(promises, plan, shape, task, overheads);
    let found = found.and_then(|budgets| together(promises, plan, shape, above, &budgets));
    found.unwrap_or_else(|why| Promise::nothing(format!("{nothing}: {why}")))
}

/// The budgets of a task, which may run on all of their CPUs: no plan says otherwise (`affinity_must_meet_a_cpu`).
pub fn alone(
    promises: Promised,
    plan: &Plan,
    shape: &Shape,
    task: usize,
    overheads: &Overheads,
) -> Result<Budgets, String> {
    of(promises, plan, shape, &shape.task_parents[task], (0, overheads))
}

/// In the long run the most, and what each budget alone would give, which may come sooner.
fn together(
    promises: Promised,
    plan: &Plan,
    shape: &Shape,
    above: &[usize],
    budgets: &Budgets,
) -> Result<Given, String> {
    let because = format!(
        "budgets of {}; together {} of a CPU, as long as it has a ready task for each of its CPUs",
        listed(plan, shape, above),
        percent(&budgets.rate())
    );
    let origin = || Origin::Edges(above.iter().map(|edge| (*edge, 0)).collect());
    let from: Vec<_> = above.iter().map(|edge| &promises.edges[*edge][0].guarantee).collect();
    let promise = |found: &Sure, formula| {
        Some(Promise::new(sure(found)?, because.clone()).by(origin(), &from, RULE, formula))
    };
    let all = budgets.together().and_then(|found| promise(&found, ALL_OF_THEM));
    let single = budgets.first();
    let single = single.iter().filter_map(|found| promise(found, ONE_OF_THEM));
    let mut found: Vec<_> = all.into_iter().chain(single).collect();
    found.dedup_by(|a, b| a.guarantee == b.guarantee);
    if found.is_empty() {
        return Err("others may take all of the CPUs".into());
    }
    Ok(found.into())
}

/// To the children of a node with budgets on several CPUs; `None`: it is no such node.
pub fn to_children(
    promises: Promised,
    plan: &Plan,
    shape: &Shape,
    index: usize,
    overheads: &Overheads,
) -> Option<Vec<Given>> {
    let (node, above, edges) = (&plan.nodes[index], &shape.parents[index], &shape.children[index]);
    let policy = policies::by_number(node.policy)?;
    if above.len() < 2 || !node.roots.is_empty() || edges.is_empty() || !passes_on(policy) {
        return None;
    }
    let budgets = match of(promises, plan, shape, above, (node.concurrency, overheads)) {
        Ok(budgets) => budgets,
        Err(why) => {
            let because = format!("several CPUs reach `{}`: {why}", node.name);
            return Some(vec![Promise::nothing(because); edges.len()]);
        }
    };
    let others = format!("others below `{}`, which several CPUs reach, may be served first", node.name);
    let mut given = vec![Promise::nothing(others); edges.len()];
    let priority = policies::priority(policy);
    let rank = |edge: usize| priority.map_or(0, |at| plan.edges[edge].params[at]);
    let first = edges.iter().enumerate().max_by_key(|(_, edge)| rank(**edge)).map(|(place, _)| place)?;
    let equals = edges.iter().filter(|edge| rank(**edge) == rank(edges[first])).count();
    let crowded = match priority {
        Some(at) => of_crowd(plan, index, edges, at).is_some_and(|crowd| crowd >= rank(edges[first])),
        None => crowd(plan, index).is_some(),
    };
    if equals > 1 || crowded || !goes_anywhere(plan, shape, index, edges[first]) {
        return Some(given);
    }
    let because = |of: &Promise| format!("{}; it comes first below `{}`", of.because, node.name);
    let found: Vec<_> = if edges.len() == 1 && crowd(plan, index).is_none() {
        let received = promises.nodes[index].iter().enumerate();
        let pass = |(place, of): (usize, &Promise)| {
            let promise = Promise::new(of.guarantee.clone(), because(of));
            promise.by(Origin::Promise(place), &[&of.guarantee], "highest priority", "")
        };
        received.map(pass).filter(|promise| promise.guarantee.kind() != Kind::Null).collect()
    } else {
        let received = &promises.nodes[index][0];
        let pass = |found: &Sure| {
            let promise = Promise::new(sure(found)?, because(received));
            Some(promise.by(Origin::Promise(0), &[&received.guarantee], RULE, ONE_OF_THEM))
        };
        budgets.first().iter().filter_map(pass).collect()
    };
    if !found.is_empty() {
        given[first] = found.into();
    }
    Some(given)
}

/// A policy that runs whoever is ready, and holds nobody back.
fn passes_on(policy: &PolicyRecord) -> bool {
    if policy.added {
        return false;
    }
    let weight = policies::position(&policy.edge_params, "weight");
    let by_deadline = policies::by_deadline(policy) && policies::own_budget(policy).is_none();
    policies::priority(policy).or(weight).is_some() || by_deadline || policy.edge_params.is_empty()
}

/// It follows from budgets on several CPUs: of single windows no more is known than what it says.
pub fn is_of_several(promise: &Promise) -> bool {
    promise.steps.first().is_some_and(|step| step.rule == RULE)
}

/// Nothing keeps what is below the edge from a CPU of the node, and it has no other parent.
fn goes_anywhere(plan: &Plan, shape: &Shape, index: usize, edge: usize) -> bool {
    let reach = shape.reach[index];
    match plan.edges[edge].child {
        Child::Task(task) => {
            let anywhere = plan.tasks[task].affinity.is_none_or(|affinity| reach.are_within(affinity));
            anywhere && shape.task_parents[task].len() == 1 && !plan.edges[edge].spread
        }
        Child::Node(node) => {
            let below = shape.children[node].iter();
            shape.parents[node].len() == 1
                && below.into_iter().all(|edge| goes_anywhere(plan, shape, index, *edge))
        }
        Child::Set(_) => false,
    }
}
