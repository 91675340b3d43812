//! Deadlines that hold only as long as no critical job of a `mixed-criticality` node works longer than it usually does.

use crate::laws::mixed_criticality::beyond_usual;
use crate::verdict::{Admission, Deadlines};
use tierce_plan::policies::criticality::Criticality;
use tierce_plan::{show_time, Child, Fault, Plan, Shape};

/// So many names are listed.
const NAMES_MAX: usize = 4;

/// One for each such node.
pub fn warnings(admission: &Admission, plan: &Plan, shape: &Shape) -> Vec<Fault> {
    let about = |node: usize| {
        let (edge, most_ns) = beyond_usual(plan, shape, node)?;
        let usually_ns = Criticality::of(plan, edge)?.work_ns;
        let others = shape.children[node].iter().filter_map(|edge| match plan.edges[*edge].child {
            Child::Task(task) if Criticality::of(plan, *edge)?.work_hi_ns.is_none() => Some(task),
            _ => None,
        });
        let met: Vec<_> = others.filter(|task| admission.tasks[*task].deadlines == Deadlines::Met).collect();
        let names = met.iter().take(NAMES_MAX).map(|task| format!("`{}`", plan.tasks[*task].name));
        let mut names = names.collect::<Vec<_>>().join(", ");
        match met.len() {
            0 => return None,
            n if n > NAMES_MAX => names += &format!(" and {} more", n - NAMES_MAX),
            _ => {}
        }
        let message = format!(
            "the deadlines of {names} in `{}` hold while no critical child works longer than its `work`, and `{}` may",
            plan.nodes[node].name,
            plan.child_name(plan.edges[edge].child)
        );
        let fault = Fault::new("deadlines_of_usual_mode", plan.nodes[node].spot, message);
        let hint = "a child with `work_hi` keeps its deadline in critical mode, too";
        Some(fault.value(show_time(most_ns)).bound(show_time(usually_ns)).hint(hint))
    };
    (0..plan.nodes.len()).filter_map(about).collect()
}
