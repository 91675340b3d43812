//! Where `job_deadline` of a task or set cannot be: what its jobs are, and when each is late, would be said twice.

use crate::model::{Child, Edge, Load, Plan};
use crate::policies;
use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::units::show_time;

/// Everything wrong with deadlines of jobs that are no loads.
pub fn faults(plan: &Plan, faults: &mut Vec<Fault>) {
    for (index, task) in plan.tasks.iter().enumerate() {
        let above = || plan.edges.iter().filter(|edge| edge.child == Child::Task(index)).collect();
        faults.extend(fault(
            plan,
            (&task.name, task.spot),
            (task.job_deadline_ns, task.load.as_ref()),
            above,
        ));
    }
    for set in &plan.sets {
        let members = plan.tasks[set.members.clone()].iter().filter_map(|member| member.load.as_ref());
        let load = set.load.as_ref().or(members.into_iter().next());
        let above = || set.ways().flatten().collect();
        faults.extend(fault(plan, (&set.name, set.spot), (set.job_deadline_ns, load), above));
    }
}

fn fault<'p>(
    plan: &'p Plan,
    (name, spot): (&str, Spot),
    (job_deadline_ns, load): (Option<u64>, Option<&Load>),
    above: impl Fn() -> Vec<&'p Edge>,
) -> Option<Fault> {
    let deadline_ns = job_deadline_ns?;
    if load.is_some() {
        let message = format!(
            "`{name}` has a `load` and a `job_deadline`: the deadline of its jobs is that of the load"
        );
        let fault = Fault::new("job_deadline_or_load", spot, message).value(show_time(deadline_ns));
        return Some(fault.hint("`deadline` of the load"));
    }
    let (parent, policy) = above().into_iter().find_map(|edge| {
        let parent = &plan.nodes[edge.parent];
        Some((parent, policies::by_number(parent.policy).filter(|policy| policy.heeds_deadlines)?))
    })?;
    let message = format!(
        "`{name}` has a `job_deadline`, and `{}` ({}) orders by deadlines: it would be one of its order",
        parent.base, policy.name
    );
    let fault = Fault::new("job_deadline_must_only_be_watched", spot, message).value(show_time(deadline_ns));
    Some(fault.hint("`deadline` of the edge or of a load"))
}
