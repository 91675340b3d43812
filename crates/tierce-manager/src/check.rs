//! Whether books, plan in force and admission's verdict agree: nothing is lost, and nothing is promised twice.

use crate::books::{Books, Held, Request, Target, PREFIX};
use crate::principal::Principal;
use crate::trial::Trial;
use std::collections::{BTreeMap, BTreeSet};
use tierce_plan::policies::{self, position, ParamKind};
use tierce_plan::{parse_time, show_time, Child, Edge, Keys, Plan};

/// What does not agree, in words; empty: all is well. Not looked at: whether the threads are where the plan wants them, which the
/// kernel side knows.
pub fn check(books: &Books, trial: &Trial) -> Vec<String> {
    let mut wrong = Vec::new();
    let plan = trial.plan();
    for (request, held) in books.granted() {
        if let Some(why) = disagrees(plan, request, held) {
            wrong.push(format!("request {}: {why}", request.id));
        }
        if let Some(why) = trial.broken(&request.name(), &request.modes[held.mode].guarantee) {
            wrong.push(format!("request {}: {why}", request.id));
        }
        let above = books.owner_of(&held.under);
        if above != Principal::System && above != request.owner {
            wrong.push(format!(
                "request {} of {} is below what belongs to {above}",
                request.id, request.owner
            ));
        }
    }
    for name in strays(books, plan) {
        wrong.push(format!("`{name}` is in the plan, and nobody has it"));
    }
    for name in books.parts.keys().filter(|name| !has_node(plan, name)) {
        wrong.push(format!("`{name}` of a rule is not in the plan"));
    }
    let mut threads: BTreeMap<u32, u64> = BTreeMap::new();
    for request in books.all() {
        if let Target::Thread { tid, .. } = request.target {
            if let Some(other) = threads.insert(tid, request.id) {
                wrong.push(format!("thread {tid} has the requests {other} and {}", request.id));
            }
        }
        if request.id >= books.next_id {
            wrong.push(format!("request {} has a number that will be given again", request.id));
        }
        if request.held.is_some() && request.reason.is_some() {
            wrong.push(format!("request {} is granted, and has a reason why it is not", request.id));
        }
        if request.held.is_none() && request.ending.is_some() {
            wrong.push(format!("request {} has nothing that could end", request.id));
        }
    }
    for node in trial.plan().nodes.iter().zip(&trial.admission().nodes) {
        if let Some(failure) = node.1.failures.first() {
            wrong.push(format!("{}: {}: {}", node.0.name, failure.rule, failure.message));
        }
    }
    wrong
}

/// Parts of the plan with the manager's names that belong to nobody.
pub fn strays<'p>(books: &Books, plan: &'p Plan) -> BTreeSet<&'p str> {
    let nodes = plan.nodes.iter().map(|node| node.base.as_str());
    let tasks = plan.tasks.iter().filter(|task| task.set.is_none()).map(|task| task.name.as_str());
    let sets = plan.sets.iter().map(|set| set.name.as_str());
    let ours = nodes.chain(tasks).chain(sets).filter(|name| name.starts_with(PREFIX));
    ours.filter(|name| books.request_of(name).is_none_or(|request| request.held.is_none())).collect()
}

fn has_node(plan: &Plan, name: &str) -> bool {
    plan.nodes.iter().any(|node| node.base == name)
}

/// How what a request has differs from the plan.
pub fn disagrees(plan: &Plan, request: &Request, held: &Held) -> Option<String> {
    let name = request.name();
    let child = |edge: &&Edge| match edge.child {
        Child::Node(node) => request.is_node() && plan.nodes[node].base == name,
        Child::Task(task) => !request.is_node() && plan.tasks[task].name == name,
        Child::Set(_) => false,
    };
    let edges: Vec<&Edge> = plan.edges.iter().filter(child).filter(|edge| !edge.when_spent).collect();
    let below: Vec<&&Edge> = edges.iter().filter(|edge| plan.nodes[edge.parent].base == held.under).collect();
    if below.is_empty() {
        return Some(format!("`{name}` is not below `{}` in the plan", held.under));
    }
    if held.cpu.is_some() && below.iter().any(|edge| plan.nodes[edge.parent].replica != held.cpu) {
        return Some(format!("`{name}` is not on CPU {}", held.cpu.unwrap_or(0)));
    }
    if below.iter().any(|edge| !has_keys(plan, edge, &held.keys)) {
        return Some(format!("`{name}` has other parameters than {:?}", held.keys));
    }
    if let Some(why) = other_deadline(plan, &name, held.deadline_ns) {
        return Some(why);
    }
    match &request.target {
        Target::Thread { tid, .. } => {
            let mut its = plan.entries.iter().filter(|entry| plan.child_name(entry.target) == name);
            let is_its = its.any(|entry| entry.any.iter().any(|matcher| matcher.tid == Some(*tid)));
            (!is_its).then(|| format!("`{name}` does not match thread {tid}"))
        }
        Target::Match(_) => {
            let set = format!("{name}-threads");
            let is_there = plan.sets.iter().any(|it| it.name == set);
            (!is_there).then(|| format!("`{name}` has no threads"))
        }
        Target::Scheduler => None,
    }
}

/// How the deadline of its jobs, or of its threads', differs.
fn other_deadline(plan: &Plan, name: &str, deadline_ns: Option<u64>) -> Option<String> {
    let threads = format!("{name}-threads");
    let task = plan.tasks.iter().find(|task| task.name == name).map(|task| task.job_deadline_ns);
    let set = || plan.sets.iter().find(|set| set.name == threads).map(|set| set.job_deadline_ns);
    let is_ns = task.or_else(set).flatten();
    let shown = |ns: Option<u64>| ns.map_or("none".into(), show_time);
    (is_ns != deadline_ns)
        .then(|| format!("the deadline of jobs of `{name}` is {}, not {}", shown(is_ns), shown(deadline_ns)))
}

fn has_keys(plan: &Plan, edge: &Edge, keys: &Keys) -> bool {
    let Some(policy) = policies::by_number(plan.nodes[edge.parent].policy) else { return false };
    keys.iter().all(|(key, text)| {
        position(&policy.edge_params, key).is_some_and(|at| {
            let param = &policy.edge_params[at];
            let value = match param.kind {
                ParamKind::Ratio | ParamKind::Choice => param.read(text),
                _ => text.parse().ok().or_else(|| parse_time(text).ok()),
            };
            Some(edge.params[at]) == value
        })
    })
}
