//! Chains in words, as rows of the tree and as JSON.

use crate::verdict::{Admission, ChainVerdict, LinkVerdict};
use serde_json::{json, Value};
use tierce_plan::{show_time, Chain, Latency, Plan};

/// A row of the tree: name, what it is, what was found.
type Row = [String; 3];

/// A chain, and what each of its tasks takes.
pub fn rows(plan: &Plan, chain: &Chain, verdict: &ChainVerdict) -> Vec<Row> {
    let needs: Vec<_> = chain.needs.iter().map(|need| need.text.as_str()).collect();
    let found = Latency::ALL.into_iter().map(|latency| match verdict.bound_ns(latency) {
        Some(ns) => format!("{latency} ≤ {}", show_time(ns)),
        None => format!("no bound on {latency}"),
    });
    let mark = match (chain.needs.is_empty(), verdict.failures.iter().all(Option::is_none)) {
        (true, _) => " ",
        (false, true) => "✓",
        (false, false) => "✗",
    };
    let found = format!("{mark} {}", found.collect::<Vec<_>>().join(", "));
    let mut rows = vec![[format!("chain {}", chain.name), needs.join(", "), found]];
    for (at, link) in verdict.links.iter().enumerate() {
        let branch = if at + 1 == verdict.links.len() { "└─ " } else { "├─ " };
        rows.push([
            format!("{branch}{}", plan.tasks[link.task].name),
            how(link, at == 0).into(),
            format!("  {}", parts(link).join(" + ")),
        ]);
    }
    rows
}

fn how(link: &LinkVerdict, first: bool) -> &'static str {
    match (first, link.triggered) {
        (true, _) => "begins",
        (false, true) => "released by the one before",
        (false, false) => "reads what the one before wrote",
    }
}

/// "1ms delay + 10ms until it looks + 3ms".
fn parts(link: &LinkVerdict) -> Vec<String> {
    let time = |ns: Option<u64>| ns.map_or("no bound".into(), show_time);
    let mut parts = Vec::new();
    if link.delay_ns > 0 {
        parts.push(format!("{} delay", show_time(link.delay_ns)));
    }
    if link.wait_ns != Some(0) {
        parts.push(format!("{} until it looks", time(link.wait_ns)));
    }
    parts.push(time(link.takes_ns));
    parts
}

/// In plain words how a chain comes to take too long, and what may help.
pub fn paragraph(plan: &Plan, admission: &Admission, chain: usize, need: usize) -> String {
    let (about, verdict) = (&plan.chains[chain], &admission.chains[chain]);
    let each = verdict
        .links
        .iter()
        .map(|link| format!("{} for `{}`", parts(link).join(" and "), plan.tasks[link.task].name));
    let each = each.collect::<Vec<_>>().join(", ");
    let begin = match about.needs[need].latency {
        Latency::Response => "from the release of its first task to the end of its last it may take",
        Latency::Reaction => {
            "an event that comes just after its first task has looked waits for the next time; then it may take"
        }
        Latency::Age => "a task that reads may find what is about to be replaced; on the whole way it may take",
    };
    let link = &verdict.links[verdict.longest()];
    let name = &plan.tasks[link.task].name;
    let wait = link.wait_ns.is_none_or(|wait| wait > link.takes_ns.unwrap_or(u64::MAX));
    let help = if link.takes_ns.is_none() {
        format!("Nothing bounds when `{name}` is done: it needs a load that fits, or a budget that is large enough")
    } else if wait && !link.triggered {
        format!("`{name}` looks once in its period: a shorter one would help, or to be released by the one before it (a load without a period)")
    } else {
        format!("`{name}` takes longest: less work, a higher priority or a larger budget for it would help, or another CPU")
    };
    format!("`{}` passes something on from task to task: {begin} {each}. {help}.", about.name)
}

pub fn to_json(plan: &Plan, chain: &Chain, verdict: &ChainVerdict) -> Value {
    let links = verdict.links.iter().enumerate().map(|(at, link)| {
        json!({
            "task": plan.tasks[link.task].name,
            "by": match (at, link.triggered) { (0, _) => "period", (_, true) => "trigger", _ => "sample" },
            "delay_ns": link.delay_ns, "wait_ns": link.wait_ns, "takes_ns": link.takes_ns,
        })
    });
    let needs = chain.needs.iter().zip(&verdict.failures).map(|(need, failure)| {
        json!({
            "text": need.text, "of": need.latency.name(), "within_ns": need.most_ns,
            "bound_ns": verdict.bound_ns(need.latency), "holds": failure.is_none(),
            "reason": failure.as_ref().map(|failure| &failure.message),
        })
    });
    json!({
        "name": chain.name, "holds": verdict.failures.iter().all(Option::is_none),
        "least_ns": verdict.bounds.least_ns, "response_ns": verdict.bounds.response_ns,
        "reaction_ns": verdict.bounds.reaction_ns, "age_ns": verdict.bounds.age_ns,
        "links": links.collect::<Vec<_>>(), "needs": needs.collect::<Vec<_>>(),
    })
}
