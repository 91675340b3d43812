//! What rules get to see: all that the manager knows, as data.

use super::{Manager, Threads};
use crate::books::Request;
use crate::in_force::InForce;
use crate::mode::{ppm, Mode};
use crate::trial::Trial;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use tierce_guarantee::ratio;
use tierce_plan::policies;
use tierce_plan::{Child, Plan};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

impl<P: InForce, T: Threads> Manager<P, T> {
    /// `it`: what a rule's function is given. `request`: the one that the event is about; `data`: what came with it.
    pub(super) fn view(&self, trial: &Trial, request: Option<&Request>, data: &Value, now_ns: u64) -> Value {
        let books = &self.books;
        let plan = trial.plan();
        let mut seen = Vec::new();
        let mut nodes = Vec::new();
        for node in plan.nodes.iter().filter(|node| !seen.contains(&node.base.as_str())).collect::<Vec<_>>() {
            if seen.contains(&node.base.as_str()) {
                continue;
            }
            seen.push(node.base.as_str());
            let policy = policies::by_number(node.policy).map_or("?", |policy| policy.name);
            nodes.push(json!({ "name": node.base, "policy": policy, "owner": books.owner_of(&node.base) }));
        }
        let requests: Vec<Value> = books.requests.values().map(shown).collect();
        let granted: u64 = books.granted().filter_map(|(request, _)| request.mode()).map(Mode::ppm).sum();
        let cpus = plan.machine.cpus;
        json!({
            "now_ms": now_ns / MS,
            "cpus": cpus,
            "capacity_ppm": u64::from(cpus) * 1_000_000,
            "granted_ppm": granted,
            "cpu": given_by_cpu(plan),
            "users": books.users,
            "request": request.map(shown),
            "requests": requests,
            "nodes": nodes,
            "made": books.parts.keys().collect::<Vec<_>>(),
            "data": data,
        })
    }
}

/// A request, as rules see it.
pub fn shown(request: &Request) -> Value {
    let best = request.mode().or(request.modes.first());
    let period_us = best.and_then(Mode::budget_and_period_ns).map_or(0, |(_, period)| period / US);
    let held = request.held.as_ref();
    json!({
        "id": request.id,
        "owner": request.owner,
        "user": request.owner.user().map_or(-1, i64::from),
        "state": if held.is_some() { "granted" } else { "pending" },
        "value": request.value(),
        "ppm": best.map_or(0, Mode::ppm),
        "period_us": period_us,
        "modes": request.modes.iter().map(mode).collect::<Vec<_>>(),
        "mode": held.map(|held| held.mode),
        "under": held.map(|held| &held.under),
        "cpu": held.and_then(|held| held.cpu),
        "scheduler": request.target == crate::books::Target::Scheduler,
        "ending": request.ending.is_some(),
        "label": request.label,
        "about": request.about,
    })
}

fn mode(mode: &Mode) -> Value {
    let (budget, period) = mode.budget_and_period_ns().unwrap_or_default();
    json!({
        "guarantee": mode.guarantee.to_string(),
        "value": mode.value,
        "ppm": mode.ppm(),
        "budget_us": budget / US,
        "period_us": period / US,
    })
}

/// What reservations give on each CPU, and their periods: only those that are in the tree of one CPU.
fn given_by_cpu(plan: &Plan) -> Vec<Value> {
    let mut by_cpu: BTreeMap<u32, (u64, Vec<u64>)> =
        (0..plan.machine.cpus).map(|cpu| (cpu, (0, Vec::new()))).collect();
    // What all others share says nothing of any program.
    let default = plan.default_node.map(|node| plan.nodes[node].base.as_str());
    let is_default = |child: Child| match child {
        Child::Node(node) => Some(plan.nodes[node].base.as_str()) == default,
        _ => false,
    };
    for edge in &plan.edges {
        let node = &plan.nodes[edge.parent];
        let cpu = node.replica.or(if plan.machine.cpus == 1 { Some(0) } else { node.roots.first().copied() });
        let at = policies::by_number(node.policy).and_then(policies::budget_and_period);
        let (Some((budget, period)), Some(cpu)) = (at, cpu) else { continue };
        if matches!(edge.child, Child::Set(_)) {
            continue;
        }
        if let Some((given, periods)) = by_cpu.get_mut(&cpu) {
            let (budget, period) = (edge.params[budget], edge.params[period].max(1));
            *given += ppm(&ratio(budget, period));
            let period = period / US;
            if period > 0 && !periods.contains(&period) && !is_default(edge.child) {
                periods.push(period);
            }
        }
    }
    let one = |(cpu, (given, periods)): (u32, (u64, Vec<u64>))| json!({ "cpu": cpu, "ppm": given, "periods_us": periods });
    by_cpu.into_iter().map(one).collect()
}
