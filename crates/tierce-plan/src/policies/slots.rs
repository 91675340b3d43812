//! Timeslots: the places of reserves within a slot, which do not overlap (policy/slots.c).

use crate::model::shape::Shape;
use crate::model::{Child, Edge, Plan};
use crate::policies;
use crate::text::faults::Fault;
use crate::text::units::show_time;

/// The reserve of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Length of the slot.
    pub slot_ns: u64,
    /// From the begin of the slot.
    pub offset_ns: u64,
    /// Of the reserve.
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

    /// Where it ends within the slot.
    pub fn end_ns(&self) -> u64 {
        self.offset_ns.saturating_add(self.length_ns)
    }
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
