//! What a trace says about a plan's graph.

use crate::header::{EdgeInfo, NodeInfo, Source, TaskInfo, TraceHeader, VERSION};
use tierce_plan::{Ids, Load, Plan};
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
            ..Default::default()
        }
    }
}

fn nodes(plan: &Plan, ids: &Ids) -> Vec<NodeInfo> {
    let all = plan.nodes.iter().zip(&ids.nodes).zip(plan.levels()).filter(|((_, id), _)| **id != 0);
    all.map(|((node, &id), level)| NodeInfo {
        id,
        name: node.name.clone(),
        policy: policy(node.policy).map(|policy| policy.name.to_string()).unwrap_or_default(),
        level,
        family: node.family.map(|first| ids.nodes[first]),
        concurrency: Some(node.concurrency).filter(|&most| most > 0),
        gone: false,
    })
    .collect()
}

fn tasks(plan: &Plan, ids: &Ids) -> Vec<TaskInfo> {
    let all = plan.tasks.iter().zip(&ids.tasks).filter(|(_, id)| **id != 0);
    all.map(|(task, &id)| TaskInfo {
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
    })
    .collect()
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
        let parent = &plan.nodes[edge.parent];
        let params = policy(parent.policy).map(|policy| &policy.edge_params[..]).unwrap_or_default();
        let param = |name: &str| Some(edge.params[params.iter().position(|param| param.name == name)?]);
        EdgeInfo {
            id,
            parent: ids.nodes[edge.parent],
            child: ids.of(edge.child),
            parent_name: if edge.spread { parent.base.clone() } else { parent.name.clone() },
            child_name: plan.child_name(edge.child).to_string(),
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
    });
    roots.chain(edges).collect()
}
