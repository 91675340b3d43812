//! At which replica of a spread node a task begins.

use crate::model::{Child, Edge, Plan};
use crate::policies;
use std::collections::HashMap;
use tierce_policy::Cpus;

/// How much begins where: a task that moves begins below the replica, of those where it may run, with the smallest sum of weights
/// so far; of several below that of the CPU with the fewest such tasks; then of the lowest CPU.
#[derive(Default)]
pub(super) struct Begun {
    weight: HashMap<usize, u64>,
    tasks: HashMap<u32, u64>,
}

impl Begun {
    /// Where the child of this edge begins.
    pub(super) fn at(&mut self, plan: &Plan, edge: &Edge, affinity: Option<Cpus>) -> usize {
        if !edge.spread {
            return edge.parent;
        }
        let family = plan.nodes[edge.parent].family;
        let replicas = plan.nodes.iter().enumerate().skip(family.unwrap_or(edge.parent));
        let replicas =
            replicas.take_while(|(_, node)| node.family == family).map(|(at, node)| (at, node.replica));
        let on: Vec<_> = replicas.filter_map(|(at, cpu)| Some((at, cpu?))).collect();
        let allowed = on.iter().filter(|(_, cpu)| affinity.is_none_or(|affinity| affinity.has(*cpu)));
        let least = allowed.min_by_key(|(at, cpu)| (self.weight.get(at), self.tasks.get(cpu), *cpu));
        let Some(&(at, cpu)) = least else { return edge.parent }; // its affinity is a fault
        if matches!(edge.child, Child::Task(_)) {
            let policy = policies::by_number(plan.nodes[at].policy);
            let weight = policy.and_then(|policy| policies::position(&policy.edge_params, "weight"));
            *self.weight.entry(at).or_default() += weight.map_or(1, |weight| edge.params[weight]);
            *self.tasks.entry(cpu).or_default() += 1;
        }
        at
    }
}
