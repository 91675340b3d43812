//! Which order a node that shares by weight has, and what that order cannot do.

use crate::model::shape::Shape;
use crate::model::Plan;
use crate::policies;
use crate::text::faults::Fault;
use crate::text::units::show_time;

/// The word for the order of a node whose policy has several; an empty one else.
pub fn order(plan: &Plan, node: usize) -> &'static str {
    let chosen = || {
        let policy = policies::by_number(plan.nodes[node].policy)?;
        let at = policies::position(&policy.node_params, "order")?;
        policy.node_params[at].choices.get(plan.nodes[node].params[at] as usize).copied()
    };
    chosen().unwrap_or_default()
}

/// By how much a child that slept may be behind the others when it wakes, in ns; 0 where its policy knows of no credit.
pub fn credit(plan: &Plan, node: usize) -> u64 {
    let policy = policies::by_number(plan.nodes[node].policy);
    let at = policy.and_then(|policy| policies::position(&policy.node_params, "credit"));
    at.map_or(0, |at| plan.nodes[node].params[at])
}

/// Parameters that do not go with the order.
pub fn faults(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    for (index, node) in plan.nodes.iter().enumerate() {
        let order = order(plan, index);
        if matches!(order, "eevdf" | "stride" | "lottery") && shape.shared(index) {
            let message = format!("several CPUs reach `{}`, whose order is for one", node.name);
            let (cpus, hint) = (shape.reach[index].count(), "order = \"start-tag\"");
            faults
                .push(Fault::new("order_needs_one_cpu", node.spot, message).value(cpus).bound(1).hint(hint));
        }
    }
    for (index, node) in plan.nodes.iter().enumerate() {
        let (credit, order) = (credit(plan, index), order(plan, index));
        if credit > 0
            && order != "start-tag"
            && node.replica.is_none_or(|_| plan.nodes[..index].iter().all(|other| other.base != node.base))
        {
            let message =
                format!("`{}` does not order by start tags: a child that slept has no credit", node.base);
            let fault = Fault::new("credit_needs_start_tags", node.spot, message).value(show_time(credit));
            faults.push(fault.hint("order = \"start-tag\""));
        }
    }
    for edge in &plan.edges {
        let Some(policy) = policies::by_number(plan.nodes[edge.parent].policy) else { continue };
        let given = |param| policies::position(&policy.edge_params, param).map(|at| edge.params[at]);
        let (Some(warp), Some(limit), Some(unwarp)) = (given("warp"), given("warp_limit"), given("unwarp"))
        else {
            continue;
        };
        let name = &plan.nodes[edge.parent].name;
        let mut fault = |rule, message, value| {
            faults.push(Fault::new(rule, edge.spot, message).value(show_time(value)));
        };
        if warp > 0 && order(plan, edge.parent) != "start-tag" {
            let message = format!("`{name}` does not order by start tags: nothing is warped");
            fault("warp_needs_start_tags", message, warp);
        }
        if limit > 0 && warp == 0 {
            fault("limit_needs_warp", "a warp limit where nothing is warped".to_owned(), limit);
        }
        if unwarp > 0 && limit == 0 {
            fault("unwarp_needs_limit", "a time without warp where the warp has no limit".to_owned(), unwarp);
        }
    }
}
