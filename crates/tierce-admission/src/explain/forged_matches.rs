//! Matches that any user can forge, of parts that get more than the default node.
//!
//! Example: `match = { comm = "audio*" }` of a task with a budget. A thread of any user may call itself `audio-1` and then has this
//! budget. With `uid = 1000` beside it only threads of that user can.

use tierce_plan::policies::{self, position};
use tierce_plan::{Child, Edge, Fault, Plan, Shape};

/// Parameters by which a child gets more than its siblings, where no budget or share is given to it.
const PRECEDENCE: [&str; 3] = ["priority", "weight", "importance"];

/// A warning for each.
pub fn warnings(plan: &Plan, shape: &Shape) -> Vec<Fault> {
    if plan.run.trusts_names || plan.default_node.is_none() {
        return Vec::new();
    }
    let favoured = Favoured::new(plan, shape);
    let forged = plan.entries.iter().filter(|entry| !entry.trusts_names).filter_map(|entry| {
        let matcher = entry.any.iter().find(|matcher| matcher.is_names_only())?;
        let gets_more = match entry.target {
            Child::Task(task) => shape.task_parents[task].iter().any(|edge| favoured.by(&plan.edges[*edge])),
            Child::Set(set) => plan.sets[set].ways().flatten().any(|edge| favoured.by(edge)),
            Child::Node(_) => false,
        };
        let name = plan.child_name(entry.target);
        let message = format!("any user can start a thread that matches `{name}` and takes its CPU time");
        let hint = match matcher.fits_programs_of_users() {
            true => "it fits services that run programs of users, such as cron.service: add `uid`, or name another \
                     service; or `trust = \"names\"` if the plan trusts all users",
            false => "add what the owner of a thread cannot choose: `uid`, `system_unit`, or a `cgroup` below \
                      system.slice; or `trust = \"names\"` if the plan trusts all users",
        };
        gets_more.then(|| {
            Fault::new("match_can_be_forged", entry.spot, message).value(matcher.to_string()).hint(hint)
        })
    });
    forged.collect()
}

/// Which parts get more than threads of the default node.
struct Favoured<'a> {
    plan: &'a Plan,
    /// Edges from each node to the default node or to what is above it; of other nodes there are none.
    to_default: Vec<Vec<usize>>,
    /// Nodes below which all get more.
    nodes: Vec<bool>,
}

impl<'a> Favoured<'a> {
    fn new(plan: &'a Plan, shape: &Shape) -> Self {
        let mut to_default = vec![Vec::new(); plan.nodes.len()];
        let mut is_above: Vec<bool> = (0..plan.nodes.len()).map(|node| is_default(plan, node)).collect();
        for node in shape.order.iter().rev().filter(|node| !is_default(plan, **node)) {
            let leads =
                |edge: &usize| matches!(plan.edges[*edge].child, Child::Node(child) if is_above[child]);
            to_default[*node] = shape.children[*node].iter().copied().filter(leads).collect();
            is_above[*node] = !to_default[*node].is_empty();
        }
        let mut favoured = Self { plan, to_default, nodes: vec![false; plan.nodes.len()] };
        for node in shape.order.iter().filter(|node| !is_above[**node]) {
            let above = shape.parents[*node].iter().any(|edge| favoured.by(&plan.edges[*edge]));
            favoured.nodes[*node] = above || !plan.nodes[*node].roots.is_empty();
        }
        favoured
    }

    /// Whether who comes through the edge gets more. Where it parts from the way to the default node decides.
    fn by(&self, edge: &Edge) -> bool {
        let plan = self.plan;
        let Some(policy) = policies::by_number(plan.nodes[edge.parent].policy) else { return true };
        let beside = &self.to_default[edge.parent];
        let is_inside = is_default(plan, edge.parent);
        if !is_inside && beside.is_empty() {
            return self.nodes[edge.parent];
        }
        if policy.added || policy.heeds_deadlines || policy.edge_params.iter().any(|param| param.required()) {
            return true;
        }
        let by = PRECEDENCE.iter().find_map(|name| Some((*name, position(&policy.edge_params, name)?)));
        match by {
            Some((_, at)) if is_inside => edge.params[at] > plan.default_params().0[at],
            Some((name, at)) => {
                let default = beside.iter().map(|edge| plan.edges[*edge].params[at]).min().unwrap_or(0);
                edge.params[at] > default || name != "priority" && edge.params[at] == default
            }
            None => !is_inside, // a turn of its own
        }
    }
}

fn is_default(plan: &Plan, node: usize) -> bool {
    let family = plan.default_node.and_then(|default| plan.nodes[default].family);
    plan.default_node == Some(node) || family.is_some() && plan.nodes[node].family == family
}
