//! What comes through each edge takes of the CPU at most, where that is bounded: from the tasks up.

use crate::bounds::leftover_supply::Taken;
use crate::demand::jobs::{requesting, vary};
use crate::demand::locks::Locks;
use crate::laws;
use crate::laws::policy::Takes;
use tierce_analysis::Task;
use tierce_plan::{policies, Child, Plan, Shape};

/// Of each edge; `None`: that is not bounded.
pub fn taken(plan: &Plan, shape: &Shape) -> Vec<Option<Taken>> {
    let locks = Locks::of(plan, shape);
    let mut nodes: Vec<Option<Taken>> = vec![None; plan.nodes.len()];
    let mut crowded: Vec<_> = plan.nodes.iter().map(|node| node.default).collect();
    for entry in &plan.entries {
        let Child::Set(set) = entry.target else { continue };
        for edge in plan.sets[set].ways().flatten() {
            crowded[edge.parent] = true;
            let family = plan.nodes[edge.parent].family.filter(|_| edge.spread);
            let replicas = plan.nodes.iter().zip(&mut crowded);
            replicas
                .filter(|(node, _)| family.is_some() && node.family == family)
                .for_each(|(_, node)| *node = true);
        }
    }
    for node in shape.order.iter().rev().filter(|node| !crowded[**node]) {
        let mut sum = Some(Taken::nothing());
        for edge in &shape.children[*node] {
            let taken = || through(plan, shape, &nodes, (&locks, Locks::elsewhere_ns), *edge);
            sum = sum.and_then(|sum| Some(sum.and(&taken()?)));
        }
        nodes[*node] = sum;
    }
    // Those beside it notice whoever runs in its place.
    let of = |edge| through(plan, shape, &nodes, (&locks, Locks::most_ns), edge);
    (0..plan.edges.len()).map(of).collect()
}

/// What comes through an edge takes; `nodes`: what the children of each node take together; `others_ns`: how long others run in place
/// of a job of a task.
fn through(
    plan: &Plan,
    shape: &Shape,
    nodes: &[Option<Taken>],
    (locks, others_ns): (&Locks, fn(&Locks, usize) -> Option<u64>),
    edge: usize,
) -> Option<Taken> {
    let about = &plan.edges[edge];
    let policy = policies::by_number(plan.nodes[about.parent].policy)?;
    if let Takes::Limited(taken) = laws::of(policy).takes(plan, shape, edge) {
        return taken;
    }
    match about.child {
        _ if about.when_spent => None,        // with all that could not be done before
        _ if shape.moves(plan, edge) => None, // with all that could not be done elsewhere
        Child::Task(task) => {
            let job = locks.densest(plan, task, 0)?;
            // Who has the lock, or is in a region, runs in its place.
            let work_ns = job.work_ns.saturating_add(others_ns(locks, task)?);
            let load = plan.tasks[task].load.as_ref().filter(|load| vary(load));
            load.and_then(|load| requesting(Some(load), Task { work_ns, ..job }))
                .and_then(|task| Taken::requested(&task.requests, job.jitter_ns))
                .or_else(|| Some(Taken::bounded(work_ns, job.period_ns, job.jitter_ns)))
        }
        Child::Node(node) if !shape.shared(node) => nodes[node].clone(),
        Child::Node(_) | Child::Set(_) => None,
    }
}
