//! What rules get to see: all that the manager knows, as data.

use super::{Manager, Threads};
use crate::books::Request;
use crate::in_force::InForce;
use crate::mode::Mode;
use crate::rules::{list, map, number, text, to_rule, Data, Record};
use crate::trial::Trial;
use serde_json::Value;
use std::collections::BTreeMap;
use tierce_plan::policies;
use tierce_plan::{Child, Plan};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

impl<P: InForce, T: Threads> Manager<P, T> {
    /// `it`: what a rule's function is given. `request`: the one that the event is about; `data`: what came with it.
    pub(super) fn view(&self, trial: &Trial, request: Option<&Request>, data: &Value, now_ns: u64) -> Data {
        let books = &self.books;
        self.seen.forget(&books.requests);
        let plan = trial.plan();
        let mut seen = Vec::new();
        let mut nodes = Vec::new();
        for node in &plan.nodes {
            if seen.contains(&node.base.as_str()) {
                continue;
            }
            seen.push(node.base.as_str());
            let policy = policies::by_number(node.policy).map_or("?", |policy| policy.name);
            nodes.push(map([
                ("name", text(&node.base)),
                ("policy", text(policy)),
                ("owner", text(books.owner_of(&node.base))),
            ]));
        }
        let granted: u64 = books.granted().filter_map(|(request, _)| request.mode()).map(Mode::ppm).sum();
        let cpus = plan.machine.cpus;
        map([
            ("now_ms", number(now_ns / MS)),
            ("cpus", number(cpus)),
            ("capacity_ppm", number(u64::from(cpus) * 1_000_000)),
            ("granted_ppm", number(granted)),
            ("cpu", given_by_cpu(plan)),
            ("users", list(books.users.iter().map(|user| number(*user)))),
            ("request", request.map_or(Data::UNIT, |request| self.shown(request).into())),
            ("requests", list(books.requests.values().map(|request| self.shown(request).into()))),
            ("nodes", list(nodes)),
            ("made", list(books.parts.keys().map(text))),
            ("data", to_rule(data)),
        ])
    }

    fn shown(&self, request: &Request) -> Record {
        self.seen.shown(request, self.person_of(request))
    }
}

/// What reservations give on each CPU, and their periods: only those that are in the tree of one CPU.
fn given_by_cpu(plan: &Plan) -> Data {
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
            let share = (u128::from(budget) * 1_000_000).div_ceil(period.into());
            *given = given.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
            let period = period / US;
            if period > 0 && !periods.contains(&period) && !is_default(edge.child) {
                periods.push(period);
            }
        }
    }
    list(by_cpu.into_iter().map(|(cpu, (given, periods))| {
        let periods = list(periods.into_iter().map(number));
        map([("cpu", number(cpu)), ("ppm", number(given)), ("periods_us", periods)])
    }))
}
