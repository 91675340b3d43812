//! What a node gives to tasks that may run on any of the several whole CPUs of which it is the root.

use crate::demand::overheads::Overheads;
use crate::demand::uncounted_threads::of_crowd;
use crate::verdict::{Given, NodeVerdict, Origin, Promise};
use tierce_guarantee::{whole, Guarantee, Kind};
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::{Child, Plan, Shape};

/// Below the root of several whole CPUs, to tasks that may run on all of them: budgets, or by priority a CPU each to as many
/// of the highest as there are CPUs.
pub fn on_several(
    plan: &Plan,
    shape: &Shape,
    index: usize,
    policy: &PolicyRecord,
    verdict: &NodeVerdict,
    overheads: &Overheads,
) -> Vec<Given> {
    let (node, edges) = (&plan.nodes[index], &shape.children[index]);
    let mut given = vec![Promise::nothing(format!("several CPUs reach `{}`", node.name)); edges.len()];
    let whole_cpus = node.roots.len() > 1 && shape.parents[index].is_empty() && plan.machine.left.is_empty();
    if !whole_cpus || node.concurrency == 1 || !overheads.is_none() {
        return given;
    }
    let reach = shape.reach[index];
    let free = |edge: &usize| match plan.edges[*edge].child {
        Child::Task(task) => {
            let anywhere = plan.tasks[task].affinity.is_none_or(|affinity| reach.are_within(affinity));
            anywhere && shape.task_parents[task].len() == 1
        }
        _ => false,
    };
    if let Some(budget) = policies::budget_and_period(policy) {
        let way = ServerRules::of(plan, index);
        let sure = way.is_usual() && way.undisturbed(plan, shape, index);
        if verdict.failures.is_empty() && edges.iter().all(free) && sure {
            budgets_on_several(plan, index, edges, policy, budget, &mut given);
        }
    } else if let Some(at) = policies::priority(policy) {
        highest_on_several(plan, index, edges, at, free, &mut given);
    }
    given
}

/// Servers that need no more than one CPU together meet their deadlines on two or more (Goossens, Funk & Baruah 2003; Baruah,
/// Goossens & Lipari 2002), where these are the ends of their periods.
fn budgets_on_several(
    plan: &Plan,
    index: usize,
    edges: &[usize],
    policy: &PolicyRecord,
    (budget, period): (usize, usize),
    given: &mut [Given],
) {
    let node = &plan.nodes[index];
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    let early = |edge: &usize| plan.edges[*edge].params[deadline] < plan.edges[*edge].params[period];
    if edges.iter().any(early) {
        return;
    }
    for (edge, given) in edges.iter().zip(given) {
        let params = &plan.edges[*edge].params;
        let numbers = vec![whole(params[budget]), whole(params[period])];
        let Some(guarantee) = Guarantee::new(Kind::Resbh, numbers) else { continue };
        let because = format!("admitted by `{}`, which has several whole CPUs", node.name);
        let rule = "constant bandwidth servers on several CPUs (Baruah, Goossens & Lipari 2002)";
        *given = [Promise::new(guarantee, because).by(Origin::Cpu(node.roots[0]), &[], rule, "")].into();
    }
}

fn highest_on_several(
    plan: &Plan,
    index: usize,
    edges: &[usize],
    at: usize,
    free: impl Fn(&usize) -> bool,
    given: &mut [Given],
) {
    let node = &plan.nodes[index];
    let most = if node.concurrency > 0 { node.concurrency as usize } else { usize::MAX };
    let cpus = node.roots.len().min(most);
    let priority = |place: &usize| plan.edges[edges[*place]].params[at];
    let crowd = of_crowd(plan, index, edges, at);
    let mut order: Vec<_> = (0..edges.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(priority(place)));
    let mut taken = 0;
    for equals in order.chunk_by(|a, b| priority(a) == priority(b)) {
        taken += equals.len();
        let crowded = crowd.is_some_and(|crowd| crowd >= priority(&equals[0]));
        if crowded || taken > cpus || !equals.iter().all(|place| free(&edges[*place])) {
            return;
        }
        for place in equals {
            let because = format!(
                "no more than {cpus} have its priority or a higher one in `{}`, which has {cpus} CPUs",
                node.name
            );
            let promise = Promise::new(Guarantee::all(), because);
            let rule = "highest priorities on several CPUs";
            given[*place] = [promise.by(Origin::Cpu(node.roots[0]), &[], rule, "")].into();
        }
    }
}
