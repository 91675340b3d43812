//! What two plans have to have in common to be the same.

use tierce_plan::{Child, Plan};

/// What the simulator and check see of a plan, by names: without places, and without names of chains, which files do not have.
pub fn essence(plan: &Plan) -> String {
    let parent = |edge: &tierce_plan::Edge| &plan.nodes[edge.parent].name;
    let child = |edge: &tierce_plan::Edge| match edge.child {
        Child::Node(node) => &plan.nodes[node].name,
        Child::Task(task) => &plan.tasks[task].name,
        Child::Set(set) => &plan.sets[set].name,
    };
    let nodes = plan
        .nodes
        .iter()
        .map(|node| format!("{} {} {:?} {:?}", node.name, node.policy, node.params, node.roots));
    let tasks = plan.tasks.iter().map(|task| format!("{} {:?}", task.name, task.load));
    let edges =
        plan.edges.iter().map(|edge| format!("{} to {} {:?}", parent(edge), child(edge), edge.params));
    let locks = plan.locks.iter().map(|lock| format!("{} {}", lock.name, lock.protocol.name()));
    let chains = plan.chains.iter().map(|chain| {
        let links =
            chain.links.iter().map(|link| format!("{} after {}", plan.tasks[link.task].name, link.delay_ns));
        let needs = chain.needs.iter().map(|need| (need.latency, need.most_ns));
        format!("{:?} {:?}", links.collect::<Vec<_>>(), needs.collect::<Vec<_>>())
    });
    let mut lines: Vec<_> = nodes.chain(tasks).chain(edges).chain(locks).chain(chains).collect();
    lines.sort();
    format!("{} CPUs, {:?}\n{}", plan.machine.cpus, plan.machine.costs, lines.join("\n"))
}
