//! Jobs that come exactly at the phases of their loads (`[machine] phases = "known"`): the schedule of the longest works on a whole CPU is
//! all that ever happens ([`tierce_analysis::offsets`]).

use crate::demand::jobs::{has_other_parents, vary};
use crate::demand::overheads::Overheads;
use crate::laws::node::{supplies, Node};
use tierce_analysis::offsets::{responses_of_few, Order};
use tierce_analysis::{Response, Supply, Task};
use tierce_plan::Load;

/// Jobs that are played of one node, each time that a plan is checked.
const JOBS_MAX: u64 = 200_000;

/// The longest responses of jobs directly below a node, `members` with their jobs in `set`, and whether some of them takes as long;
/// `None`: their phases are not known, or too many jobs would have to be played.
pub fn responses(
    node: &Node,
    members: &[usize],
    set: &[Task],
    order: Order,
) -> Option<Vec<(Response, bool)>> {
    let Node { plan, edges, received, overheads, .. } = *node;
    let whole = supplies(received).any(|(_, supply)| supply == Supply::WHOLE);
    let alone = overheads.is_none() && edges.iter().all(|edge| !has_other_parents(plan, node.shape, *edge));
    if !plan.machine.phases_known || !whole || !alone {
        return None;
    }
    let phases = members.iter().zip(set).map(|(task, job)| phase_ns(node, overheads, *task, job));
    let phases = phases.collect::<Option<Vec<_>>>()?;
    let found = responses_of_few(set, &phases, order, JOBS_MAX);
    if found.contains(&Response::TooLong) {
        return None;
    }
    // Works in turn are not always the longest.
    let varies = members.iter().any(|task| plan.tasks[*task].load.as_ref().is_some_and(vary));
    Some(found.into_iter().map(|response| (response, !varies)).collect())
}

/// When the first job of a strictly periodic task comes that waits for nobody.
fn phase_ns(node: &Node, overheads: &Overheads, task: usize, job: &Task) -> Option<u64> {
    let Some(Load::Periodic(load)) = &node.plan.tasks[task].load else { return None };
    let plain = job.jitter_ns == 0 && job.blocking_ns == 0 && overheads.locks.kept(task).is_none();
    plain.then_some(load.phase_ns)
}
