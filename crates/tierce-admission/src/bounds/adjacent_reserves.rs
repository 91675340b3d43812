//! Reserves in timeslots: places in a slot that do not overlap, and what several of them give to one child together.
//!
//! Slots of all CPUs count from one time. So reserves of a child that lie apart within a slot are never open at once, and a child
//! that one CPU at a time may run has in every slot, from whatever time on, the sum of them: RESCS Σlength slot. Its least supply in
//! a window of n slots and r is that of one block of this length: n·Θ + max(0, r − slot + Θ), wherever its parts lie, since the
//! rest of a slot holds all but what r misses of it. (Andersson & Bletsas 2008 for two adjacent parts.)

use tierce_plan::policies::slots::Reserve;
use tierce_plan::Plan;
use tierce_plan::Shape;

/// Slot and sum of the reserves of a child with parents on several CPUs, of which one at a time may run it; `None`: they may be
/// open at once, or other edges lead to it, too.
pub fn together(plan: &Plan, shape: &Shape, above: &[usize], concurrency: u32) -> Option<(u64, u64)> {
    let edges = || above.iter().map(|edge| &plan.edges[*edge]);
    if above.len() < 2 || concurrency != 1 || edges().any(|edge| shape.shared(edge.parent)) {
        return None;
    }
    let mut reserves = edges().map(|edge| Reserve::of(plan, edge)).collect::<Option<Vec<_>>>()?;
    reserves.sort_by_key(|reserve| reserve.offset_ns);
    let slot_ns = reserves[0].slot_ns;
    let apart = reserves.windows(2).all(|pair| pair[0].end_ns() <= pair[1].offset_ns);
    let alike = reserves.iter().all(|reserve| reserve.slot_ns == slot_ns && !reserve.fills);
    (apart && alike).then(|| (slot_ns, reserves.iter().map(|reserve| reserve.length_ns).sum()))
}

/// The same for a task.
pub fn of_task(plan: &Plan, shape: &Shape, task: usize) -> Option<(u64, u64)> {
    together(plan, shape, &shape.task_parents[task], 1)
}

/// Whether several CPUs may run it at once, or take turns in ways of which nothing is known: all but what one CPU reaches, or
/// several in reserves that lie apart.
pub fn at_once(plan: &Plan, shape: &Shape, node: usize) -> bool {
    let parents = &shape.parents[node];
    match parents.as_slice() {
        _ if !shape.shared(node) => false,
        [only] => at_once(plan, shape, plan.edges[*only].parent),
        _ => together(plan, shape, parents, plan.nodes[node].concurrency).is_none(),
    }
}

/// The same of a task.
pub fn task_at_once(plan: &Plan, shape: &Shape, task: usize) -> bool {
    match shape.task_parents[task].as_slice() {
        [only] if plan.edges[*only].spread => shape.task_reach(plan, task).are_several(),
        [only] => at_once(plan, shape, plan.edges[*only].parent),
        _ => shape.task_reach(plan, task).are_several() && of_task(plan, shape, task).is_none(),
    }
}
