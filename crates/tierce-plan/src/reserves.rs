//! Reserves in timeslots: places in a slot that do not overlap, and what several of them give to one child together.
//!
//! Slots of all CPUs count from one time. So reserves of a child that lie apart within a slot are never open at once, and a child
//! that one CPU at a time may run has in every slot, from whatever time on, the sum of them: RESCS Σlength slot. Its least supply in
//! a window of n slots and r is that of one block of this length: n·Θ + max(0, r − slot + Θ), wherever its parts lie, since the
//! rest of a slot holds all but what r misses of it. (Andersson & Bletsas 2008 for two adjacent parts.)

use crate::faults::Fault;
use crate::model::{Child, Edge, Plan};
use crate::policies;
use crate::structure::Shape;
use crate::units::show_time;

/// The reserve of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    pub slot_ns: u64,
    pub offset_ns: u64,
    pub length_ns: u64,
    /// Runs outside of it, too, when the owner of the current one wants no CPU.
    pub fills: bool,
}

impl Reserve {
    /// If the parent's policy gives reserves.
    pub fn of(plan: &Plan, edge: &Edge) -> Option<Self> {
        let parent = &plan.nodes[edge.parent];
        let policy = policies::by_number(parent.policy)?;
        let own = |name| Some(edge.params[policies::position(&policy.edge_params, name)?]);
        Some(Self {
            slot_ns: parent.params[policies::position(&policy.node_params, "slot")?],
            offset_ns: own("offset")?,
            length_ns: own("length")?,
            fills: own("fill")? > 0,
        })
    }

    fn end_ns(&self) -> u64 {
        self.offset_ns.saturating_add(self.length_ns)
    }
}

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

/// Reserves that do not lie within the slot, or overlap.
pub fn faults(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    for children in &shape.children {
        let reserve = |index: &usize| Some((*index, Reserve::of(plan, &plan.edges[*index])?));
        let Some(mut reserves) = children.iter().map(reserve).collect::<Option<Vec<_>>>() else { continue };
        for (index, reserve) in reserves.iter().filter(|(_, reserve)| reserve.end_ns() > reserve.slot_ns) {
            let edge = &plan.edges[*index];
            let message = format!("the reserve of `{}` ends after the slot", plan.child_name(edge.child));
            let fault = Fault::new("reserve_within_the_slot", edge.spot, message);
            faults.push(fault.value(show_time(reserve.end_ns())).bound(show_time(reserve.slot_ns)));
        }
        reserves.sort_by_key(|(_, reserve)| reserve.offset_ns);
        for pair in reserves.windows(2) {
            let ((first, early), (second, late)) = (pair[0], pair[1]);
            if early.end_ns() <= late.offset_ns {
                continue;
            }
            let (first, second) = (&plan.edges[first], &plan.edges[second]);
            let name = |child: Child| plan.child_name(child);
            let message = format!(
                "the reserve of `{}` begins within that of `{}`",
                name(second.child),
                name(first.child)
            );
            let fault = Fault::new("reserves_must_not_overlap", second.spot, message);
            let fault = fault.value(show_time(late.offset_ns)).bound(show_time(early.end_ns()));
            faults.push(if first.spot == second.spot {
                fault
            } else {
                fault.other(first.spot, "the other one")
            });
        }
    }
}
