//! `cpu = "any"`: what is to be placed, and where it was. Who places it comes from outside ([`Placer`]), since that takes the laws
//! of policies, of which the language knows nothing.

use crate::model::{Child, Edge, Plan};
use crate::text::faults::Fault;
use std::collections::HashMap;

/// The CPU of each task, member of a set or node that was placed, by its name.
pub type Placed = HashMap<String, u32>;

/// What is in force while another plan is resolved.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Where everything with `cpu = "any"` is.
    pub placed: Placed,
    /// The set of each thread that is a member, and the CPU where it was placed.
    members: Vec<(String, Option<u32>)>,
}

impl Standing {
    /// What the plan says, without threads of sets.
    pub fn of(plan: &Plan) -> Self {
        let placed = plan.placed().into_iter().map(|(name, cpu)| (name.to_string(), cpu));
        Self { placed: placed.collect(), members: Vec::new() }
    }

    /// A thread has these edges of a set of the plan.
    pub fn member(&mut self, plan: &Plan, set: usize, way: &[Edge]) {
        self.members.push((plan.sets[set].name.clone(), plan.placed_on(way)));
    }

    /// Where everything is that the plan has; members that stand for threads, which do not move; and edges of threads that the plan
    /// does not count.
    pub fn in_plan(&self, plan: &Plan) -> (Placed, Placed, Vec<Edge>) {
        let (mut staying, mut edges) = (Placed::new(), Vec::new());
        let mut threads: HashMap<&str, usize> = HashMap::new();
        for (name, cpu) in &self.members {
            let Some(set) = plan.sets.iter().find(|set| set.name == *name) else { continue };
            let number = threads.entry(name).or_default();
            if let Some(member) = set.members.clone().nth(*number) {
                staying.extend(cpu.map(|cpu| (plan.tasks[member].name.clone(), cpu)));
            } else {
                let way = set.ways().find(|way| plan.placed_on(way) == *cpu).unwrap_or(&set.under);
                edges.extend(way.iter().map(|edge| Edge { placed: false, ..edge.clone() }));
            }
            *number += 1;
        }
        let mut placed = self.placed.clone();
        placed.extend(staying.clone());
        (placed, staying, edges)
    }
}

/// What is to be placed as one.
#[derive(Clone)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// A node or a task.
    pub child: Child,
    /// CPUs where it may be, ascending; at least one.
    pub cpus: Vec<u32>,
}

/// A CPU for each of the units of a plan, whose edges are in it as if each were on its lowest CPU; or why there is none for some.
pub type Placer = fn(Plan, &[Unit], &Standing) -> Result<Placed, Vec<Fault>>;

/// Places nothing: for who reads plans without knowing the laws of their policies.
pub fn unplaced(plan: Plan, units: &[Unit], _: &Standing) -> Result<Placed, Vec<Fault>> {
    let of = |unit: &Unit| plan.edges.iter().find(|edge| edge.placed && edge.child == unit.child);
    let refused = |unit: &Unit| {
        let spot = of(unit).map(|edge| edge.spot).unwrap_or_default();
        let message = format!("nothing here can choose a CPU for `{}`", unit.name);
        Fault::new("cpu_must_be_chosen", spot, message).hint("name the CPU instead of \"any\"")
    };
    Err(units.iter().map(refused).collect())
}

impl Plan {
    /// The name and the CPU of each task, member of a set or node with `cpu = "any"`, in the order of the text.
    pub fn placed(&self) -> Vec<(&str, u32)> {
        let edges = self.edges.iter().filter(|edge| edge.placed);
        let part = |edge: &Edge| Some((self.child_name(edge.child), self.nodes[edge.parent].replica?));
        let mut parts: Vec<_> = edges.filter_map(part).collect();
        parts.dedup();
        parts
    }

    /// The CPU that was chosen for the child of these edges.
    pub fn placed_on(&self, edges: &[Edge]) -> Option<u32> {
        edges.iter().find(|edge| edge.placed).and_then(|edge| self.nodes[edge.parent].replica)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_placer_any_cpu_is_refused_and_the_rest_is_read() {
        let read = |cpu: &str| {
            let text = format!(
                "machine.cpus = 2\n[node.rt]\npolicy = \"fair\"\nper_cpu = true\n[task.a]\nunder.rt = {{ cpu = {cpu} }}\n"
            );
            Plan::of_text(&text, "any.toml", Default::default(), unplaced)
        };
        assert_eq!(read("1").unwrap().edges.len(), 1);
        let faults = read("\"any\"").unwrap_err();
        assert_eq!(faults.faults.len(), 1);
        assert_eq!(faults.faults[0].rule, "cpu_must_be_chosen");
        assert!(faults.to_string().contains("any.toml:6:12"), "{faults}");
    }
}
