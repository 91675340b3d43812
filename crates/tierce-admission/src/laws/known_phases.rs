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
    let equal = |at: usize| match order {
        Order::FixedPriority(levels) => levels.iter().filter(|level| **level == levels[at]).count() > 1,
        _ => false,
    };
    // Equals are played in the order in which their jobs come. With a quantum they take turns; and a job that comes while the one
    // before it is not done goes on in the place of that one.
    let quantum = node.edge_param("quantum");
    let takes_turns = |edge: &usize| quantum.is_some_and(|at| plan.edges[*edge].params[at] > 0);
    if (0..set.len()).any(equal) && edges.iter().any(takes_turns) {
        return None;
    }
    let found = responses_of_few(set, &phases, order, JOBS_MAX);
    let in_place =
        |(at, (response, job)): (usize, (&Response, &Task))| equal(at) && !response.meets(job.period_ns);
    if found.contains(&Response::TooLong) || found.iter().zip(set).enumerate().any(in_place) {
        return None;
    }
    // Works in turn are not always the longest, and who of two goes first that are due at once is not looked at.
    let varies = members.iter().any(|task| plan.tasks[*task].load.as_ref().is_some_and(vary));
    let by_deadline = matches!(order, Order::EarliestDeadline);
    let is_bound = varies || (by_deadline && are_due_at_once(set, &phases));
    Some(found.into_iter().map(|response| (response, !is_bound)).collect())
}

/// May jobs of two tasks have the same deadline?
fn are_due_at_once(set: &[Task], phases: &[u64]) -> bool {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a.max(1)
    };
    let due: Vec<_> = set.iter().zip(phases).map(|(job, phase)| phase + job.deadline_ns).collect();
    let meet = |a: usize, b: usize| due[a].abs_diff(due[b]) % gcd(set[a].period_ns, set[b].period_ns) == 0;
    (0..set.len()).any(|a| (0..a).any(|b| meet(a, b)))
}

/// When the first job of a strictly periodic task comes that waits for nobody.
fn phase_ns(node: &Node, overheads: &Overheads, task: usize, job: &Task) -> Option<u64> {
    let Some(Load::Periodic(load)) = &node.plan.tasks[task].load else { return None };
    let plain = job.jitter_ns == 0
        && job.blocking_ns == 0
        && overheads.locks.kept(task).is_none()
        && overheads.locks.spin_ns(task) == 0;
    plain.then_some(load.phase_ns)
}
