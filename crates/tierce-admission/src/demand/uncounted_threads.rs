//! Children of which a plan does not say how many there will be: threads that match a set, or nothing at all; and children that
//! move between the CPUs of a spread node.

use tierce_plan::{Child, Edge, Plan, Shape, TaskSet};

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
