//! From a plan to a graph: ids, edges, and the header of its trace.

use std::fmt;
use tierce_plan::{Attach, Child, Plan};
use tierce_policy::{policies, Graph, PolicyRecord, TASK};
use tierce_trace::{EdgeInfo, NodeInfo, Source, TaskInfo, TraceHeader};

/// The engine refused a part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {error}")]
pub struct Refused {
    /// Which part: `node rt`, `edge from rt to audio`.
    pub what: String,
    /// Why.
    pub error: RefusedBy,
}

/// Why the engine refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedBy {
    /// An error of the engine.
    Engine(tierce_policy::Error),
    /// A pool is used up or a parameter out of range.
    Pool,
}

impl fmt::Display for RefusedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedBy::Engine(error) => error.fmt(f),
            RefusedBy::Pool => f.write_str("the pool is used up, or a parameter is out of range"),
        }
    }
}

/// Which ids of the graph stand for which parts of the plan: nodes and tasks in the order of the text, from 1; edges in
/// the order of the text, from 1; root edges after them, in the order of nodes and CPUs.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// By index into [`Plan::nodes`].
    pub nodes: Vec<u32>,
    /// By index into [`Plan::tasks`].
    pub tasks: Vec<u32>,
    /// By index into [`Plan::edges`].
    pub edges: Vec<u32>,
    /// CPU, index into [`Plan::nodes`], edge.
    pub roots: Vec<(u32, usize, u32)>,
}

/// The graph of a plan, attached as a whole at `now_ns`.
pub fn build(plan: &Plan, now_ns: u64) -> Result<(Graph, Ids), Refused> {
    let refused = |what: String| move |error| Refused { what, error: RefusedBy::Engine(error) };
    let pool = |what: String| move || Refused { what, error: RefusedBy::Pool };
    let mut graph = Graph::new(plan.machine.cpus, now_ns).map_err(refused("machine".into()))?;
    let mut ids = Ids::default();
    for node in &plan.nodes {
        let id = graph.node_new(node.policy, node.concurrency, u64::MAX, node.params);
        ids.nodes.push(id.ok_or_else(pool(format!("node {}", node.name)))?);
    }
    for task in &plan.tasks {
        let id = graph.node_new(TASK, 0, task.affinity.unwrap_or(u64::MAX), [0; 4]);
        ids.tasks.push(id.ok_or_else(pool(format!("task {}", task.name)))?);
    }
    let name = |edge: &tierce_plan::Edge| {
        format!("edge from {} to {}", plan.nodes[edge.parent].name, plan.child_name(edge.child))
    };
    for edge in &plan.edges {
        let child = match edge.child {
            Child::Node(node) => ids.nodes[node],
            Child::Task(task) => ids.tasks[task],
            Child::Set(_) => return Err(pool(name(edge))()),
        };
        let id = graph.edge_new(ids.nodes[edge.parent], child, edge.rank, edge.when_spent);
        ids.edges.push(id.ok_or_else(pool(name(edge)))?);
    }
    for step in plan.attach_order() {
        match step {
            Attach::Root { cpu, node } => {
                let what = refused(format!("cpu {cpu}, root {}", plan.nodes[node].name));
                graph.root(cpu, ids.nodes[node], now_ns).map_err(what)?;
                ids.roots.push((cpu, node, graph.cpu(cpu).root_edge));
            }
            Attach::Edge(edge) => {
                let (id, about) = (ids.edges[edge], &plan.edges[edge]);
                graph.edge_attach(id, about.params, now_ns).map_err(refused(name(about)))?;
            }
        }
    }
    Ok((graph, ids))
}

fn policy(number: u32) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.number == number)
}

/// Do tasks below this node have to announce their deadlines?
pub fn heeds_deadlines(plan: &Plan, node: usize) -> bool {
    policy(plan.nodes[node].policy).is_some_and(|policy| policy.heeds_deadlines)
}

/// What a trace of this graph says about it.
pub fn header(plan: &Plan, graph: &Graph, ids: &Ids) -> TraceHeader {
    let nodes = plan.nodes.iter().zip(&ids.nodes).map(|(node, &id)| NodeInfo {
        id,
        name: node.name.clone(),
        policy: policy(node.policy).map(|policy| policy.name.to_string()).unwrap_or_default(),
        level: graph.node(id).level.saturating_sub(1),
    });
    let tasks = plan.tasks.iter().zip(&ids.tasks).map(|(task, &id)| TaskInfo {
        id,
        name: task.name.clone(),
        deadline_ns: task.load.as_ref().and_then(|load| load.deadline_ns()),
        period_ns: match &task.load {
            Some(tierce_plan::Load::Periodic(load)) => Some(load.period_ns),
            Some(tierce_plan::Load::Sporadic(load)) => Some(load.separation_ns),
            _ => None,
        },
    });
    let roots = ids.roots.iter().map(|&(cpu, node, id)| EdgeInfo {
        id,
        parent: 0,
        child: ids.nodes[node],
        parent_name: format!("cpu{cpu}"),
        child_name: plan.nodes[node].name.clone(),
        cpu: Some(cpu),
        ..Default::default()
    });
    let edges = plan.edges.iter().zip(&ids.edges).map(|(edge, &id)| {
        let parent = &plan.nodes[edge.parent];
        let params = policy(parent.policy).map(|policy| &policy.edge_params[..]).unwrap_or_default();
        let param = |name: &str| Some(edge.params[params.iter().position(|param| param.name == name)?]);
        EdgeInfo {
            id,
            parent: ids.nodes[edge.parent],
            child: graph.edge(id).child,
            parent_name: parent.name.clone(),
            child_name: plan.child_name(edge.child).to_string(),
            cpu: None,
            budget_ns: param("budget"),
            period_ns: param("period"),
            deadline_ns: param("deadline").filter(|&ns| ns > 0),
            weight: param("weight"),
            priority: param("priority"),
        }
    });
    TraceHeader {
        version: tierce_trace::header::VERSION,
        source: Source::Sim,
        plan: plan.name.clone(),
        seed: None,
        cpus: plan.machine.cpus,
        start_ns: 0,
        end_ns: None,
        clock: "simulated".into(),
        nodes: nodes.collect(),
        tasks: tasks.collect(),
        edges: roots.chain(edges).collect(),
    }
}
