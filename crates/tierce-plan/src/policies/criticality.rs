//! What the parameters of `mixed-criticality` mean together.

use crate::{policies, show_time, Fault, Plan, Shape};

/// Of an edge below such a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Criticality {
    /// Larger runs first.
    pub priority: u64,
    /// What it usually needs in a period, at most.
    pub work_ns: u64,
    /// The least time between the begins of its periods.
    pub period_ns: u64,
    /// What it needs at the worst, if it is critical.
    pub work_hi_ns: Option<u64>,
}

impl Criticality {
    /// Of that edge, if the node above it has the policy.
    pub fn of(plan: &Plan, edge: usize) -> Option<Self> {
        let edge = plan.edges.get(edge)?;
        let policy = policies::by_number(plan.nodes[edge.parent].policy).filter(|policy| !policy.added)?;
        let param = |name| policies::position(&policy.edge_params, name).map(|at| edge.params[at]);
        let work_hi_ns = param("work_hi")?;
        Some(Self {
            priority: param("priority")?,
            work_ns: param("work")?,
            period_ns: param("period")?,
            work_hi_ns: (work_hi_ns > 0).then_some(work_hi_ns),
        })
    }
}

/// Numbers that do not go together, and nodes of several CPUs.
pub fn faults(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    for (index, node) in plan.nodes.iter().enumerate() {
        let policy = policies::by_number(node.policy).map_or("", |policy| policy.name);
        if policy == "mixed-criticality" && shape.shared(index) {
            let message = format!("several CPUs reach `{}`, whose order is for one", node.name);
            let fault = Fault::new("order_needs_one_cpu", node.spot, message);
            faults.push(fault.value(shape.reach[index].count()).bound(1).hint("one such node on each CPU"));
        }
    }
    for (index, edge) in plan.edges.iter().enumerate() {
        let Some(Criticality { work_ns, period_ns, work_hi_ns, .. }) = Criticality::of(plan, index) else {
            continue;
        };
        let (name, child) = (&plan.nodes[edge.parent].name, plan.child_name(edge.child));
        let mut refuse = |rule, message: String, value, bound| {
            faults.push(Fault::new(rule, edge.spot, message).value(show_time(value)).bound(show_time(bound)));
        };
        match work_hi_ns {
            Some(work_hi_ns) if work_hi_ns < work_ns => {
                let message = format!("`work_hi` of `{child}` below `{name}` is less than its `work`");
                refuse("work_hi_is_at_least_work", message, work_hi_ns, work_ns);
            }
            Some(work_hi_ns) if work_hi_ns > period_ns => {
                let message = format!("`work_hi` of `{child}` below `{name}` is more than its `period`");
                refuse("work_within_period", message, work_hi_ns, period_ns);
            }
            _ if work_ns > period_ns => {
                let message = format!("`work` of `{child}` below `{name}` is more than its `period`");
                refuse("work_within_period", message, work_ns, period_ns);
            }
            _ => {}
        }
    }
}
