//! What rules get to see: all that the manager knows, as data.

use super::{Manager, Threads};
use crate::books::{Books, Request};
use crate::in_force::InForce;
use crate::mode::Mode;
use crate::rules::{list, map, number, text, to_rule, Data, Known, Record};
use crate::trial::Trial;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tierce_plan::policies;
use tierce_plan::{Child, Plan};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// As it is when something happens: requests that change later are others.
struct Now {
    now_ns: u64,
    plan: Rc<Plan>,
    books: Rc<Books>,
    users: BTreeSet<u32>,
    made: Vec<String>,
    request: Option<Record>,
    requests: Vec<Record>,
    data: Value,
}

impl<P: InForce, T: Threads> Manager<P, T> {
    /// What is known. `request`: the one that the event is about; `data`: what came with it; `books`: its requests.
    pub(super) fn view(
        &self,
        trial: &Trial,
        books: &Rc<Books>,
        request: Option<&Rc<Request>>,
        data: &Value,
        now_ns: u64,
    ) -> Known {
        self.seen.forget(&self.books.requests);
        let now = Now {
            now_ns,
            plan: trial.plan().clone(),
            books: books.clone(),
            users: self.books.users.clone(),
            made: self.books.parts.keys().cloned().collect(),
            request: request.map(|request| self.shown(request)),
            requests: self.books.requests.values().map(|request| self.shown(request)).collect(),
            data: data.clone(),
        };
        Known::new(move |name| now.value(name))
    }

    fn shown(&self, request: &Rc<Request>) -> Record {
        self.seen.shown(request, self.person_of(request))
    }
}

impl Now {
    fn value(&self, name: &str) -> Data {
        let cpus = self.plan.machine.cpus;
        match name {
            "now_ms" => number(self.now_ns / MS),
            "cpus" => number(cpus),
            "capacity_ppm" => number(u64::from(cpus) * 1_000_000),
            "granted_ppm" => {
                let modes = self.books.granted().filter_map(|(request, _)| request.mode());
                number(modes.map(Mode::ppm).sum::<u64>())
            }
            "cpu" => given_by_cpu(&self.plan),
            "users" => list(self.users.iter().map(|user| number(*user))),
            "request" => self.request.clone().map_or(Data::UNIT, Data::from),
            "requests" => list(self.requests.iter().map(|request| request.clone().into())),
            "theirs" => number(self.theirs().count() as u64),
            "theirs_ppm" => {
                let ppm = self.theirs().map(|request| request.number("ppm").unwrap_or(0));
                number(ppm.fold(0, i64::saturating_add))
            }
            "nodes" => self.nodes(),
            "made" => list(self.made.iter().map(text)),
            "data" => to_rule(&self.data),
            _ => Data::UNIT,
        }
    }

    /// What else the person of the request has.
    fn theirs(&self) -> impl Iterator<Item = &Record> {
        let number = |request: &Record, name| request.number(name);
        let of = self.request.as_ref().map(|request| (number(request, "user"), number(request, "id")));
        let is_theirs = move |request: &&Record| {
            of.is_some_and(|(user, id)| user == number(request, "user") && id != number(request, "id"))
        };
        let is_granted = move |request: &&Record| number(request, "mode").is_some();
        self.requests.iter().filter(is_theirs).filter(is_granted)
    }

    fn nodes(&self) -> Data {
        let mut seen = Vec::new();
        let mut nodes = Vec::new();
        for node in &self.plan.nodes {
            if seen.contains(&node.base.as_str()) {
                continue;
            }
            seen.push(node.base.as_str());
            let policy = policies::by_number(node.policy).map_or("?", |policy| policy.name);
            nodes.push(map([
                ("name", text(&node.base)),
                ("policy", text(policy)),
                ("owner", text(self.books.owner_of(&node.base))),
            ]));
        }
        list(nodes)
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
