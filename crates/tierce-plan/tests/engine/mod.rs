//! Plans in the engine, which has rules of its own: what the parser takes, it must take.

use tierce_plan::{Attach, Child, Plan};

/// The plan as a graph of the engine, which has rules of its own; ids by index.
pub fn build(plan: &Plan) -> Result<(), String> {
    let mut graph = tierce_policy::Graph::new(plan.machine.cpus, 0).map_err(|error| error.to_string())?;
    let mut node = |kind, concurrency, allowed, params, name: &str| {
        graph.node_new(kind, concurrency, allowed, params).ok_or_else(|| format!("{name} is refused"))
    };
    let nodes: Result<Vec<_>, _> = plan
        .nodes
        .iter()
        .map(|about| node(about.policy, about.concurrency, u64::MAX, about.params, &about.name))
        .collect();
    let tasks: Result<Vec<_>, _> = plan
        .tasks
        .iter()
        .map(|task| node(tierce_policy::TASK, 0, task.affinity.unwrap_or(u64::MAX), [0; 4], &task.name))
        .collect();
    let (nodes, tasks) = (nodes?, tasks?);
    for step in plan.attach_order() {
        match step {
            Attach::Root { cpu, node } => {
                graph.root(cpu, nodes[node], 0).map_err(|error| error.to_string())?
            }
            Attach::Edge(index) => {
                let edge = &plan.edges[index];
                let child = match edge.child {
                    Child::Node(node) => nodes[node],
                    Child::Task(task) => tasks[task],
                    Child::Set(_) => return Err("a set in the edges".into()),
                };
                let words = |error| format!("{}: {error}", plan.child_name(edge.child));
                graph
                    .attach(nodes[edge.parent], child, edge.params, edge.rank, edge.when_spent, 0)
                    .map_err(words)?;
            }
        }
    }
    graph.check(true).map_err(|broken| format!("{broken:?}"))
}
