//! How an owner has divided a scheduler, as he sees it: the parts below it by the names that he gave them, with what each has received.

use super::{Manager, Threads};
use crate::ask::{Part, Shown};
use crate::books::{Request, Target, PREFIX};
use crate::in_force::InForce;
use crate::wrong::Wrong;
use std::collections::BTreeMap;
use tierce_plan::policies::{self, Param, ParamKind};
use tierce_plan::{show_time, Child, Plan, Shape};

impl<P: InForce, T: Threads> Manager<P, T> {
    /// These requests, with the parts of those that are schedulers.
    pub(super) fn with_parts(&mut self, ids: &[u64]) -> Result<Vec<Shown>, Wrong> {
        let all: Vec<&Request> = ids.iter().filter_map(|id| self.books.get(id)).collect();
        let mut shown: Vec<Shown> = all.iter().map(|request| request.shown()).collect();
        let is_divided = |request: &&Request| {
            request.target == Target::Scheduler && request.held.is_some() && !request.divided.is_empty()
        };
        if !all.iter().any(is_divided) {
            return Ok(shown);
        }
        let plan = self.in_force.plan()?;
        let received = self.in_force.received(PREFIX)?;
        for (request, shown) in all.iter().zip(&mut shown).filter(|(request, _)| is_divided(request)) {
            shown.divided = parts(&plan, &request.name());
            for part in &mut shown.divided {
                let name = inner(&request.name(), &part.name);
                part.received = received.get(&(name, inner(&request.name(), &part.under))).copied();
            }
        }
        Ok(shown)
    }
}

/// The name in the plan of a part of this scheduler; the scheduler itself has none.
fn inner(scheduler: &str, part: &str) -> String {
    match part {
        "" => scheduler.to_string(),
        part => format!("{scheduler}-{part}"),
    }
}

/// Nodes, then tasks, then sets: one for each pair of a part and what is above it, however many CPUs have a replica of it.
fn parts(plan: &Plan, scheduler: &str) -> Vec<Part> {
    let begin = format!("{scheduler}-");
    let (shape, are_several) = (Shape::new(plan), plan.machine.cpus > 1);
    let sets = plan.sets.iter().flat_map(|set| set.ways().flatten());
    let members = |child: Child| matches!(child, Child::Task(task) if plan.tasks[task].set.is_some());
    let mut found: BTreeMap<(u8, &str, &str), Part> = BTreeMap::new();
    for edge in plan.edges.iter().filter(|edge| !members(edge.child)).chain(sets) {
        let (item, above) = (plan.item_name(edge.child), &plan.nodes[edge.parent].base[..]);
        let Some(name) = item.strip_prefix(&begin) else { continue };
        let under = if above == scheduler { Some("") } else { above.strip_prefix(&begin) };
        let Some(under) = under else { continue };
        let (kind, node) = match edge.child {
            Child::Node(node) => (0, Some(&plan.nodes[node])),
            Child::Task(_) => (1, None),
            Child::Set(_) => (2, None),
        };
        let part = found.entry((kind, item, above)).or_insert_with(|| {
            let policy = node.and_then(|node| policies::by_number(node.policy));
            let mut params = BTreeMap::new();
            if let Some(above) = policies::by_number(plan.nodes[edge.parent].policy) {
                params.extend(given(&above.edge_params, &edge.params));
            }
            if let (Some(node), Some(policy)) = (node, policy) {
                params.extend(given(&policy.node_params, &node.params));
            }
            Part {
                name: name.to_string(),
                under: under.to_string(),
                policy: policy.map(|policy| policy.name.to_string()),
                params,
                cpus: Vec::new(),
                received: None,
            }
        });
        if are_several {
            part.cpus.extend(shape.reach[edge.parent].iter());
            part.cpus.sort_unstable();
            part.cpus.dedup();
        }
    }
    found.into_values().collect()
}

/// Parameters that are not what they are by themselves.
fn given<'a>(params: &'a [Param], values: &'a [u64]) -> impl Iterator<Item = (String, String)> + 'a {
    params.iter().zip(values).filter_map(|(param, value)| {
        let preset = match param.kind {
            ParamKind::DurationOf(other) => values.get(other).copied(),
            _ => param.preset,
        };
        (preset != Some(*value)).then(|| (param.name.to_string(), param.show(*value, show_time)))
    })
}
