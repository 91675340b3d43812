//! Children of which a plan does not say how many there will be: threads that match a set, or nothing at all; and children that
//! move between the CPUs of a spread node.

use tierce_plan::policies;
use tierce_plan::{Child, Edge, Load, Plan, Shape, Spot, Task, TaskSet};

/// Whether one of those below a node moves between CPUs.
pub fn some_move(plan: &Plan, shape: &Shape, node: usize) -> bool {
    shape.children[node].iter().any(|edge| shape.moves(plan, *edge))
}

/// Why nobody knows how many children there will be.
pub fn crowd(plan: &Plan, node: usize) -> Option<String> {
    let name = &plan.nodes[node].name;
    if plan.nodes[node].default {
        return Some(format!("any number of threads may come to the default node `{name}`"));
    }
    let set = live_sets(plan, node).next();
    set.map(|(set, _)| format!("any number of threads may match the set `{}` below `{name}`", set.name))
}

/// Sets below a node that any number of threads may match, each with an edge of a new member; they may have no members yet.
pub fn live_sets(plan: &Plan, node: usize) -> impl Iterator<Item = (&TaskSet, &Edge)> {
    let matches = |set: usize| plan.entries.iter().any(|entry| entry.target == Child::Set(set));
    let sets = plan.sets.iter().enumerate();
    let below = sets.flat_map(|(at, set)| set.ways().flatten().map(move |edge| (at, set, edge)));
    let leads_here = move |edge: &Edge| {
        let family = plan.nodes[node].family.filter(|_| edge.spread);
        edge.parent == node || (family.is_some() && plan.nodes[edge.parent].family == family)
    };
    below.filter(move |(at, _, edge)| leads_here(edge) && matches(*at)).map(|(_, set, edge)| (set, edge))
}

/// The plan with as many busy threads as it has CPUs in each set that any number of threads may match, and in the default node:
/// what this leaves to a part is less than without them only if such threads can take from it. `None`: there are none.
pub fn with_busy_threads(plan: &Plan) -> Option<Plan> {
    let live = |set: &usize| plan.entries.iter().any(|entry| entry.target == Child::Set(*set));
    let mut crowds: Vec<_> = (0..plan.sets.len())
        .filter(live)
        .map(|set| (plan.sets[set].under.clone(), plan.sets[set].affinity))
        .collect();
    if let Some(node) = plan.default_node {
        let policy = policies::by_number(plan.nodes[node].policy);
        let needs_each = policy.is_some_and(|policy| policy.edge_params.iter().any(|param| param.required()));
        if plan.each.is_some() || !needs_each {
            let spread = plan.nodes[node].family.is_some();
            let (params, _) = plan.default_params();
            crowds.push((vec![Edge::plain(node, Child::Set(0), params, spread)], None));
        }
    }
    let mut crowded = plan.clone();
    for (under, affinity) in &crowds {
        for _ in 0..plan.machine.cpus {
            let child = Child::Task(crowded.tasks.len());
            crowded.tasks.push(Task {
                name: String::new(),
                set: None,
                load: Some(Load::Busy),
                affinity: *affinity,
                job_deadline_ns: None,
                needs: Vec::new(),
                spot: Spot::default(),
            });
            crowded.edges.extend(under.iter().map(|edge| Edge { child, ..edge.clone() }));
        }
    }
    (!crowds.is_empty()).then_some(crowded)
}

/// It leads to a member of a set that any number of threads may match.
pub fn is_live(plan: &Plan, edge: usize) -> bool {
    let Child::Task(task) = plan.edges[edge].child else { return false };
    let Some(set) = plan.tasks[task].set else { return false };
    plan.entries.iter().any(|entry| entry.target == Child::Set(set))
}

/// The largest value of an edge parameter of those of whom there may be any number; `None`: there are none.
pub fn of_crowd(plan: &Plan, node: usize, edges: &[usize], at: usize) -> Option<u64> {
    let unmatched = plan.nodes[node].default.then(|| plan.each.as_ref().map_or(0, |each| each.params[at]));
    let live = edges.iter().filter(|edge| is_live(plan, **edge)).map(|edge| plan.edges[*edge].params[at]);
    let new = live_sets(plan, node).map(|(_, edge)| edge.params[at]);
    live.chain(unmatched).chain(new).max()
}
