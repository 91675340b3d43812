//! What a trace says about a plan's graph.

use crate::header::{
    ChainInfo, EdgeInfo, Latencies, LinkInfo, NodeInfo, Source, TaskInfo, TraceHeader, VERSION,
};
use tierce_plan::{Chain, Edge, Ids, Load, Node, Plan, Task};
use tierce_policy::{policies, PolicyRecord};

fn policy(number: u32) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.number == number)
}

impl TraceHeader {
    /// The header of a trace of this plan: of its parts that are in the graph, by their ids there.
    pub fn of(plan: &Plan, ids: &Ids, source: Source) -> TraceHeader {
        TraceHeader {
            version: VERSION,
            source,
            plan: plan.name.clone(),
            cpus: plan.machine.cpus,
            clock: match source {
                Source::Sim => "simulated",
                Source::Run => "CLOCK_MONOTONIC",
            }
            .into(),
            nodes: nodes(plan, ids),
            tasks: tasks(plan, ids),
            edges: edges(plan, ids),
            chains: plan.chains.iter().map(|chain| ChainInfo::of(plan, chain)).collect(),
            locks: plan.locks.iter().map(|lock| lock.name.clone()).collect(),
            ..Default::default()
        }
    }
}

impl NodeInfo {
    /// Of a node with this id, so many nodes below its CPU.
    pub fn of(node: &Node, id: u32, level: u32, family: Option<u32>) -> NodeInfo {
        NodeInfo {
            id,
            name: node.name.clone(),
            policy: policy(node.policy).map(|policy| policy.name.to_string()).unwrap_or_default(),
            level,
            family,
            concurrency: Some(node.concurrency).filter(|&most| most > 0),
            gone: false,
        }
    }
}

impl TaskInfo {
    /// Of a task with this id.
    pub fn of(task: &Task, id: u32) -> TaskInfo {
        TaskInfo {
            id,
            name: task.name.clone(),
            deadline_ns: task.load.as_ref().and_then(|load| load.deadline_ns()),
            period_ns: match &task.load {
                Some(Load::Periodic(load)) => Some(load.period_ns),
                Some(Load::Sporadic(load)) => Some(load.separation_ns),
                _ => None,
            },
            phase_ns: match &task.load {
                Some(Load::Periodic(load)) => Some(load.phase_ns),
                _ => None,
            },
            affinity: task.affinity,
            gone: false,
        }
    }
}

impl EdgeInfo {
    /// Of an edge with this id, whose ends have these ids.
    pub fn of(
        edge: &Edge,
        id: u32,
        (parent, above): (&Node, u32),
        (child_name, child): (&str, u32),
    ) -> EdgeInfo {
        let params = policy(parent.policy).map(|policy| &policy.edge_params[..]).unwrap_or_default();
        let param = |name: &str| Some(edge.params[params.iter().position(|param| param.name == name)?]);
        EdgeInfo {
            id,
            parent: above,
            child,
            parent_name: if edge.spread { parent.base.clone() } else { parent.name.clone() },
            child_name: child_name.to_string(),
            cpu: None,
            when_spent: edge.when_spent,
            spread: edge.spread,
            budget_ns: param("budget"),
            period_ns: param("period"),
            length_ns: param("length"),
            deadline_ns: param("deadline").filter(|&ns| ns > 0),
            weight: param("weight"),
            priority: param("priority"),
        }
    }
}

impl ChainInfo {
    /// Of a chain of this plan; bounds are not known here.
    pub fn of(plan: &Plan, chain: &Chain) -> ChainInfo {
        let link = |link: &tierce_plan::Link| LinkInfo {
            task: plan.tasks[link.task].name.clone(),
            triggered: matches!(plan.tasks[link.task].load, Some(Load::Triggered(_))),
            delay_ns: link.delay_ns,
        };
        let mut needs = Latencies::default();
        for need in &chain.needs {
            let most_ns = needs.of(need.latency);
            *most_ns = Some(most_ns.map_or(need.most_ns, |ns| ns.min(need.most_ns)));
        }
        ChainInfo {
            name: chain.name.clone(),
            links: chain.links.iter().map(link).collect(),
            needs,
            bounds: Latencies::default(),
            mark: chain.mark.clone(),
        }
    }
}

fn nodes(plan: &Plan, ids: &Ids) -> Vec<NodeInfo> {
    let all = plan.nodes.iter().zip(&ids.nodes).zip(plan.levels()).filter(|((_, id), _)| **id != 0);
    let family = |node: &Node| node.family.map(|first| ids.nodes[first]);
    all.map(|((node, &id), level)| NodeInfo::of(node, id, level, family(node))).collect()
}

fn tasks(plan: &Plan, ids: &Ids) -> Vec<TaskInfo> {
    let all = plan.tasks.iter().zip(&ids.tasks).filter(|(_, id)| **id != 0);
    all.map(|(task, &id)| TaskInfo::of(task, id)).collect()
}

/// Roots first, each with its CPU.
fn edges(plan: &Plan, ids: &Ids) -> Vec<EdgeInfo> {
    let roots = ids.roots.iter().map(|&(cpu, node, id)| EdgeInfo {
        id,
        child: ids.nodes[node],
        parent_name: format!("cpu{cpu}"),
        child_name: plan.nodes[node].name.clone(),
        cpu: Some(cpu),
        ..Default::default()
    });
    let edges = plan.edges.iter().zip(&ids.edges).filter(|(_, id)| **id != 0).map(|(edge, &id)| {
        let above = (&plan.nodes[edge.parent], ids.nodes[edge.parent]);
        EdgeInfo::of(edge, id, above, (plan.child_name(edge.child), ids.of(edge.child)))
    });
    roots.chain(edges).collect()
}
