//! What a plan must look like whatever its numbers are.

use crate::model::shape::{cpus, Shape};
use crate::model::{Child, Edge, Node, Plan, Task};
use crate::policies::{self, criticality, fair, reservation, slots};
use crate::text::faults::Fault;
use crate::text::source::Spot;
use std::collections::{HashMap, HashSet};
use tierce_policy::Cpus;

/// Everything wrong with the shape. `broken`: what had faults of its own and is not to be reported as unreachable.
pub fn faults(plan: &Plan, broken: &[Child]) -> Vec<Fault> {
    let shape = Shape::new(plan);
    let broken: HashSet<_> = broken.iter().copied().collect();
    let mut faults = Vec::new();
    limits(plan, &mut faults);
    spread(plan, &mut faults);
    roots(plan, &mut faults);
    cycles(plan, &shape, &mut faults);
    parents(plan, &shape, &broken, &mut faults);
    depth(plan, &shape, &mut faults);
    sharing(plan, &shape, &mut faults);
    conditions(plan, &shape, &mut faults);
    ranks(plan, &shape, &mut faults);
    criticality::faults(plan, &shape, &mut faults);
    fair::faults(plan, &shape, &mut faults);
    slots::faults(plan, &shape, &mut faults);
    reservation::faults(plan, &mut faults);
    firm(plan, &mut faults);
    super::locks::faults(plan, &shape, &mut faults);
    super::regions::faults(plan, &shape, &mut faults);
    super::job_deadlines::faults(plan, &mut faults);
    faults
}

/// The pools of the engine.
fn limits(plan: &Plan, faults: &mut Vec<Fault>) {
    let limits = policies::limits();
    let roots: usize = plan.nodes.iter().map(|node| node.roots.len()).sum();
    for (rule, what, count, most) in [
        ("too_many_nodes", "nodes and tasks", plan.nodes.len() + plan.tasks.len(), limits.nodes as usize),
        ("too_many_edges", "edges", plan.edges.len() + roots, limits.edges as usize),
    ] {
        if count > most {
            let largest = plan.sets.iter().max_by_key(|set| set.members.len());
            let spot = largest.map_or(Spot::default(), |set| set.spot);
            let fault = Fault::new(rule, spot, format!("the plan has more {what} than there can be"));
            let fault = fault.value(count).bound(most);
            faults.push(match largest {
                Some(set) => fault.hint(format!("`{}` alone counts {}", set.name, set.members.len())),
                None => fault,
            });
        }
    }
}

/// Spread nodes of the engine, of which the kernel build has as many.
fn spread(plan: &Plan, faults: &mut Vec<Fault>) {
    let most = policies::limits().families as usize;
    let first = |(index, node): &(usize, &crate::model::Node)| node.family == Some(*index);
    let mut firsts = plan.nodes.iter().enumerate().filter(first);
    if let Some((_, node)) = firsts.by_ref().nth(most) {
        let message = format!("`{}` is one spread node more than there can be", node.base);
        let fault = Fault::new("too_many_spread_nodes", node.spot, message).value(most + 1 + firsts.count());
        let hint = "`spread = false` in some of them: one node each, which several CPUs share";
        faults.push(fault.bound(most).hint(hint));
    }
}

/// A child by `firm` has the lowest priority, 0, and no other child may have it: equals run first come, first served.
fn firm(plan: &Plan, faults: &mut Vec<Fault>) {
    let edges = || plan.edges.iter().chain(plan.sets.iter().flat_map(|set| set.ways().flatten()));
    let mut lowest: HashMap<usize, (Option<&str>, Spot)> = HashMap::new(); // None: threads that match nothing
    let priority = |node: usize| policies::by_number(plan.nodes[node].policy).and_then(policies::priority);
    // Replicas of a spread node are one node here: what is below one may come to be below another.
    let place = |node: usize| plan.nodes[node].family.unwrap_or(node);
    for edge in edges().filter(|edge| !edge.firm) {
        if priority(edge.parent).is_some_and(|at| edge.params[at] == 0) {
            lowest.entry(place(edge.parent)).or_insert((Some(plan.item_name(edge.child)), edge.spot));
        }
    }
    if let (Some(node), (params, _)) = (plan.default_node, plan.default_params()) {
        if priority(node).is_some_and(|at| params[at] == 0) {
            let each = plan.each.as_ref().map_or(plan.nodes[node].spot, |each| each.spot);
            lowest.entry(place(node)).or_insert((None, each));
        }
    }
    for edge in edges().filter(|edge| edge.firm) {
        let Some((other, spot)) = lowest.get(&place(edge.parent)) else { continue };
        let (child, parent) = (plan.item_name(edge.child), &plan.nodes[edge.parent].base);
        let (so_does, hint) = match other {
            Some(name) => (format!("so does `{name}`"), format!("give `{name}` a priority of at least 1")),
            None => ("so do threads that match nothing".into(), "each = { priority = 1 } there".into()),
        };
        let message = format!(
            "`{child}` would run at priority 0 of `{parent}`, and {so_does}: equals run first come, first served"
        );
        let fault = Fault::new("firm_needs_the_lowest_priority", edge.spot, message).value("priority 0");
        let fault = fault.bound("below all others").hint(hint);
        faults.push(fault.other(*spot, "priority 0"));
    }
}

/// Each CPU runs at most one root.
fn roots(plan: &Plan, faults: &mut Vec<Fault>) {
    let mut root = HashMap::new();
    for node in &plan.nodes {
        for cpu in &node.roots {
            if let Some(first) = root.get(cpu).copied() {
                let message = format!("`{}` is a second root of CPU {cpu}", node.name);
                let hint = "one node is the root; put others below it";
                faults.push(
                    Fault::new("cpu_has_one_root", node.spot, message).hint(hint).other(first, "the first"),
                );
            }
            root.entry(*cpu).or_insert(node.spot);
        }
    }
}

/// No node is below itself. One fault per group of nodes on a common cycle.
fn cycles(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    let ordered: HashSet<_> = shape.order.iter().copied().collect();
    let mut left: HashSet<_> = (0..plan.nodes.len()).filter(|node| !ordered.contains(node)).collect();
    while let Some(first) = left.iter().copied().min() {
        // Every node left has a parent that is left, so going up must come back to a node of the way.
        let (mut way, mut at) = (Vec::new(), first);
        let stuck = |node: usize| {
            let ups = shape.parents[node].iter().map(|edge| plan.edges[*edge].parent);
            ups.filter(|parent| !ordered.contains(parent)).min()
        };
        while !way.contains(&at) {
            way.push(at);
            let Some(up) = stuck(at) else { break };
            at = up;
        }
        let start = way.iter().position(|node| *node == at).unwrap_or(0);
        if left.contains(&at) {
            let mut names: Vec<_> = way[start..].iter().map(|node| plan.nodes[*node].name.as_str()).collect();
            names.push(&plan.nodes[at].name);
            let message = format!("`{}` is below itself", plan.nodes[at].name);
            // From the edge that closes the cycle to the one above it: one of these is too many.
            let up = |node: usize, parent: usize| {
                let mut edges = shape.parents[node].iter().map(|edge| &plan.edges[*edge]);
                edges.find(|edge| edge.parent == parent).map(|edge| edge.spot)
            };
            let cycle: Vec<_> = way[start..].iter().copied().chain([at]).collect();
            let spots: Vec<_> = cycle.windows(2).filter_map(|pair| up(pair[0], pair[1])).collect();
            let spot = spots.first().copied().unwrap_or(plan.nodes[at].spot);
            let fault = Fault::new("no_cycles", spot, message).value(names.join(" under "));
            let fault = fault.hint("remove one of these edges");
            faults.push(match spots.get(1) {
                Some(other) => fault.other(*other, format!("`{}` under `{}`", names[1], names[2])),
                None => fault,
            });
        }
        left.retain(|node| !way.contains(node));
    }
}

/// Everything leads to a CPU, and there is something.
fn parents(plan: &Plan, shape: &Shape, broken: &HashSet<Child>, faults: &mut Vec<Fault>) {
    if plan.nodes.is_empty() && plan.tasks.is_empty() && plan.sets.is_empty() {
        let fault = Fault::new("plan_must_have_a_node", Spot::default(), "the plan says nothing");
        faults.push(fault.hint("[node.top] with `policy = …` and `cpu = 0` is what CPU 0 runs"));
    }
    // Without a root no CPU leads to anything.
    if plan.nodes.iter().all(|node| node.roots.is_empty()) {
        let declared = |(index, node): &(usize, &Node)| {
            shape.parents[*index].is_empty()
                && !broken.contains(&Child::Node(*index))
                && node.replica.is_none()
        };
        let top = plan.nodes.iter().enumerate().find(declared);
        if let Some((_, top)) = top {
            let fault = Fault::new("plan_must_have_a_root", top.spot, "no node says that a CPU runs it");
            let hint = format!("for example `cpu = 0` in `{}`: what CPU 0 runs", top.name);
            faults.push(fault.hint(hint));
            return;
        }
    }
    for (index, node) in plan.nodes.iter().enumerate() {
        if node.roots.is_empty() && shape.parents[index].is_empty() && !broken.contains(&Child::Node(index)) {
            let message = format!("no CPU leads to node `{}`", node.name);
            let hint = "`under.PARENT = { … }`, or `cpu = 0` for what a CPU runs directly";
            faults.push(Fault::new("node_must_have_a_parent", node.spot, message).hint(hint));
        }
    }
    for (index, task) in plan.tasks.iter().enumerate() {
        let first = task.set.is_none_or(|set| plan.sets[set].members.start == index);
        if first && shape.task_parents[index].is_empty() && !broken.contains(&Child::Task(index)) {
            let message = format!("no node leads to task `{}`", task.name);
            let hint = "`under.PARENT = { … }`";
            faults.push(Fault::new("task_must_have_a_parent", task.spot, message).hint(hint));
        }
    }
    for (index, set) in plan.sets.iter().enumerate() {
        let memberless =
            set.members.is_empty() && set.under.is_empty() && !broken.contains(&Child::Set(index));
        if memberless {
            let message = format!("no node leads to the members of `{}`", set.name);
            faults.push(
                Fault::new("task_must_have_a_parent", set.spot, message).hint("`under.PARENT = { … }`"),
            );
        }
    }
}

fn depth(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    let most = policies::limits().depth as usize;
    for node in &shape.order {
        // Only the first that is too deep: what is below it is no news.
        if shape.depth[*node] == most + 1 {
            let about = &plan.nodes[*node];
            let message = format!("node `{}` is too far from the CPU", about.name);
            let fault = Fault::new("too_deep", about.spot, message);
            faults.push(fault.value(format!("{} nodes", shape.depth[*node])).bound(format!("{most} nodes")));
        }
    }
}

/// What several CPUs reach.
fn sharing(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    let mut heads = Heads { plan, shape, heads: 0, crossings: HashMap::new() };
    for (index, node) in plan.nodes.iter().enumerate() {
        let (above, cpus) = (&shape.parents[index], shape.reach[index].count());
        let is_head = cpus > 1 && above.len() != 1;
        if is_head {
            heads.add(above, node.spot, faults);
        }
        faults.extend(concurrency(node, cpus, is_head));
    }
    for (index, task) in plan.tasks.iter().enumerate() {
        let above = &shape.task_parents[index];
        if shape.task_reach(plan, index).are_several() && above.len() != 1 {
            heads.add(above, task.spot, faults);
        }
        affinity(plan, shape, task, above, faults);
    }
}

/// A head is what gets its CPUs from several places: several parents of which not all are in the tree of one CPU, or a root of
/// several CPUs.
struct Heads<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    heads: u32,
    /// For each CPU how many edges lead from its tree to heads.
    crossings: HashMap<u32, u32>,
}

impl Heads<'_> {
    fn add(&mut self, above: &[usize], spot: Spot, faults: &mut Vec<Fault>) {
        let (plan, shape, limits) = (self.plan, self.shape, policies::limits());
        self.heads += 1;
        if self.heads == limits.heads + 1 {
            let message = "more nodes and tasks have parents on several CPUs than there can be";
            let hint = "put them below one shared node";
            faults.push(Fault::new("too_many_shared", spot, message).bound(limits.heads).hint(hint));
        }
        for edge in above.iter().map(|edge| &plan.edges[*edge]).filter(|edge| !shape.shared(edge.parent)) {
            let Some(cpu) = shape.reach[edge.parent].lowest() else { continue };
            let crossings = self.crossings.entry(cpu).or_default();
            *crossings += 1;
            if *crossings == limits.crossings + 1 {
                let message = format!("too many edges lead from CPU {cpu} into what several CPUs share");
                let fault = Fault::new("too_many_crossings", edge.spot, message).bound(limits.crossings);
                faults.push(fault.hint("put what they lead to below one shared node"));
            }
        }
    }
}

/// On how many CPUs at once a node may run that so many reach.
fn concurrency(node: &Node, cpus: u32, is_head: bool) -> Option<Fault> {
    if node.concurrency > cpus && cpus > 0 {
        let message = format!("node `{}` cannot run on that many CPUs at once", node.name);
        let hint = "without `concurrency` it is the number of CPUs that reach the node";
        let fault = Fault::new("concurrency_within_cpus", node.spot, message);
        Some(fault.value(node.concurrency).bound(cpus).hint(hint))
    } else if node.concurrency > 0 && node.concurrency < cpus && !is_head {
        let message =
            format!("node `{}` is inside a shared node: its concurrency cannot be limited", node.name);
        let hint = "limit the node above whose parents are on several CPUs";
        Some(
            Fault::new("concurrency_needs_parents_on_several_cpus", node.spot, message)
                .value(node.concurrency)
                .hint(hint),
        )
    } else {
        None
    }
}

/// Every parent must be able to place the task; one inside a shared node has one order for all its CPUs.
fn affinity(plan: &Plan, shape: &Shape, task: &Task, above: &[usize], faults: &mut Vec<Fault>) {
    let leads = |edge: &usize| !edge_reach(shape, &plan.edges[*edge]).is_empty();
    let Some(affinity) = task.affinity.filter(|_| above.iter().any(leads)) else { return };
    for edge in above.iter().map(|edge| &plan.edges[*edge]) {
        let reach = edge_reach(shape, edge);
        let parent = &plan.nodes[edge.parent];
        let name = if edge.spread { &parent.base } else { &parent.name };
        let fault = if !affinity.meet(reach) {
            let message = format!("no CPU that `{}` may run on leads to it through `{name}`", task.name);
            Fault::new("affinity_must_meet_a_cpu", edge.spot, message)
        } else if !reach.are_within(affinity)
            && shape.parents[edge.parent].iter().any(|above| shape.shared(plan.edges[*above].parent))
        {
            let message =
                format!("`{}` may not run on all CPUs of the inner node `{}`", task.name, parent.name);
            Fault::new("affinity_not_below_inner_node", edge.spot, message)
        } else {
            continue;
        };
        faults.push(fault.value(cpus(affinity)).bound(cpus(reach)));
    }
}

/// CPUs from which a task may be reached through the edge.
fn edge_reach(shape: &Shape, edge: &Edge) -> Cpus {
    if edge.spread {
        shape.spread[edge.parent]
    } else {
        shape.reach[edge.parent]
    }
}

/// `when = "spent"` waits for budgets, so there must be some, and nothing beside them that never ends.
fn conditions(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    let has_budget = |edge: &Edge| {
        let policy = policies::by_number(plan.nodes[edge.parent].policy);
        policy.is_some_and(|policy| policies::budget_and_period(policy).is_some())
            && !reservation::ServerRules::of(plan, edge.parent).is_endless()
    };
    for above in shape.parents.iter().chain(&shape.task_parents) {
        let edges = || above.iter().map(|edge| &plan.edges[*edge]);
        let Some(conditional) = edges().find(|edge| edge.when_spent) else { continue };
        let name = plan.child_name(conditional.child);
        let reach = edges().fold(Cpus::NONE, |reach, edge| reach | shape.reach[edge.parent]);
        if reach.are_several() {
            let message = format!("`{name}` has parents on several CPUs: none of them can be conditional");
            let fault = Fault::new("condition_needs_one_cpu", conditional.spot, message);
            faults.push(fault.value(cpus(reach)).hint("use `rank` to prefer one CPU's edge"));
        } else if edges().all(|edge| edge.when_spent) {
            let message = format!("`{name}` has no edge without condition whose budget could be spent");
            let hint = "add an edge with a budget and without `when`";
            faults.push(Fault::new("when_spent_needs_a_budget", conditional.spot, message).hint(hint));
        } else if let Some(endless) = edges().find(|edge| !edge.when_spent && !has_budget(edge)) {
            let message = format!("`{name}` has an edge without condition that is never spent");
            let fault = Fault::new("when_spent_needs_a_budget", conditional.spot, message);
            let hint =
                "then the condition never holds: make that edge conditional too, or drop the condition";
            faults.push(fault.hint(hint).other(endless.spot, "never spent"));
        }
    }
}

/// A CPU that claims a place by rank must find a child for it. That is certain only where the shared child is reached from
/// CPUs' own trees and nothing below it can be had another way.
fn ranks(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    let several = |child: Child| match child {
        Child::Node(node) => shape.parents[node].len() > 1,
        Child::Task(task) => shape.task_parents[task].len() > 1,
        Child::Set(_) => false,
    };
    for edge in plan.edges.iter().filter(|edge| edge.rank != 0) {
        if edge.spread {
            let message =
                format!("`{}` moves between replicas: no CPU competes for it", plan.child_name(edge.child));
            let hint = "drop `rank`, or `spread = false` in the node above for one that CPUs share";
            faults.push(
                Fault::new("rank_needs_a_shared_child", edge.spot, message).value(edge.rank).hint(hint),
            );
            continue;
        }
        let (above, mut below) = match edge.child {
            Child::Node(node) => (&shape.parents[node], vec![node]),
            Child::Task(task) => (&shape.task_parents[task], vec![]),
            Child::Set(_) => continue,
        };
        let over = above.iter().map(|edge| plan.edges[*edge].parent).find(|parent| shape.shared(*parent));
        let mut under = None;
        let mut seen = HashSet::new(); // the graph may have cycles, which are reported elsewhere
        while let Some(node) = below.pop() {
            if !seen.insert(node) {
                continue;
            }
            for child in shape.children[node].iter().map(|edge| plan.edges[*edge].child) {
                if several(child) {
                    under = Some(plan.child_name(child));
                }
                below.extend(if let Child::Node(node) = child { Some(node) } else { None });
            }
        }
        let name = plan.child_name(edge.child);
        let message = match (over, under) {
            (Some(parent), _) => {
                format!(
                    "`{name}` has a `rank`, and another parent that several CPUs run: `{}`",
                    plan.nodes[parent].name
                )
            }
            (None, Some(child)) => {
                format!("`{name}` has a `rank`, and `{child}` below it has a second parent: CPUs would compete in two places")
            }
            (None, None) => continue,
        };
        let hint = "drop `rank`: the CPU that runs it keeps it; or drop the second parent";
        faults.push(Fault::new("rank_needs_a_plain_share", edge.spot, message).value(edge.rank).hint(hint));
    }
}
