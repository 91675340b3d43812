//! Names of a text, what they were given to, and CPUs that are named.

use crate::model::Copied;
use crate::policies::{self, PolicyRecord};
use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::tree::{closest, listed, wrong_kind, Collector, Key, Kind, Table, Value};

/// `[node.N]`, `[task.N]`, `[tasks.N]` or `[chain.N]`.
pub struct Item<'d> {
    pub kind: ItemKind,
    pub key: &'d Key,
    pub table: &'d Table,
    /// Which copy of what the text has (`for_each`).
    pub copy: Option<Copied>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    Node,
    Task,
    Set,
    Chain,
}

/// A name: what it is and where it was given.
#[derive(Clone)]
pub struct Declared {
    pub kind: ItemKind,
    pub spot: Spot,
    pub policy: Option<&'static PolicyRecord>,
    /// Nodes: index of the first replica, and their CPUs when it is `per_cpu` or spread.
    pub first: usize,
    pub replicas: Option<Vec<u32>>,
    pub spread: bool,
}

impl Declared {
    /// Index of the replica on that CPU.
    pub fn on(&self, cpu: u32) -> Option<usize> {
        let place = self.replicas.as_ref()?.iter().position(|replica| *replica == cpu)?;
        Some(self.first + place)
    }
}

/// Whether a name can be used; the fault is reported.
pub fn is_plain(key: &Key, collector: &mut Collector) -> bool {
    let mut bytes = key.text.bytes();
    let good = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !good {
        let fault = Fault::new("name_must_be_plain", key.spot, "this is not a name");
        collector.add(fault.value(format!("\"{}\"", key.text)).bound("[A-Za-z][A-Za-z0-9_-]*"));
    }
    good
}

const ITS_PRESETS: &str = "its presets";

/// The policy by which one of another name can be had, and with what.
fn synonym(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name.to_lowercase().as_str() {
        "cbs" | "constant-bandwidth" | "deadline" => ("reservation", ITS_PRESETS),
        "tbs" => ("reservation", "replenishment = \"total-bandwidth\""),
        "deferrable" => ("reservation", "replenishment = \"periodic\""),
        "sporadic" => ("reservation", "replenishment = \"sporadic\""),
        "polling" => ("reservation", "replenishment = \"polling\""),
        "eevdf" => ("fair", "order = \"eevdf\""),
        "cfs" | "wfq" | "sfq" => ("fair", ITS_PRESETS),
        "stride" => ("fair", "order = \"stride\""),
        "lottery" => ("fair", "order = \"lottery\""),
        "rr" => ("round-robin", ITS_PRESETS),
        "fifo" | "fp" => ("fixed-priority", "priorities of its children"),
        "rm" | "dm" => ("fixed-priority", "larger priorities for shorter periods or deadlines"),
        _ => return None,
    })
}

pub fn find_policy(name: &str, spot: Spot, collector: &mut Collector) -> Option<&'static PolicyRecord> {
    let policy = policies::by_name(name);
    if policy.is_none() {
        let names: Vec<_> = policies::policies().iter().map(|policy| policy.name).collect();
        let same =
            synonym(name).filter(|(_, with)| *with == ITS_PRESETS).map(|(policy, _)| format!("\"{policy}\""));
        let hint = match synonym(name).or(closest(name, names.iter().copied()).map(|close| (close, ""))) {
            Some((policy, order)) if !order.is_empty() => {
                format!("policy = \"{policy}\" with {order}; there are {}", listed(&names))
            }
            Some((close, _)) => format!("did you mean \"{close}\"? there are {}", listed(&names)),
            None => format!("there are {}", listed(&names)),
        };
        let fault = Fault::new("policy_must_exist", spot, format!("there is no policy `{name}`"));
        collector.add(fault.hint(hint).fix(same));
    }
    policy
}

/// `cpu = "any"`.
pub fn is_any(value: &Value) -> bool {
    matches!(&value.kind, Kind::Text(text) if text == "any")
}

/// `cpu = "all"`.
pub fn is_all(value: &Value) -> bool {
    matches!(&value.kind, Kind::Text(text) if text == "all")
}

pub fn cpu_number(what: &str, value: &Value, cpus: u32, collector: &mut Collector) -> Option<u32> {
    match value.kind {
        Kind::Whole(Some(cpu)) if cpu >= i64::from(cpus) => {
            let fault = Fault::new("cpu_must_exist", value.spot, format!("{what}: there is no such CPU"));
            let hint = "how many there are is said by `[machine] cpus`; without it, by `--cpus` in check and sim, where there is one by default";
            collector.add(fault.value(cpu).bound(format!("0 to {}", cpus - 1)).hint(hint));
            None
        }
        _ => collector.whole(what, value, 0, i64::from(cpus) - 1).map(|cpu| cpu as u32),
    }
}

/// CPUs, ascending; each at most once.
pub fn cpu_list(what: &str, value: &Value, cpus: u32, collector: &mut Collector) -> Vec<u32> {
    if let Kind::Whole(_) = value.kind {
        let hint = "list the CPUs, such as [0, 1]; how many the machine has is `[machine] cpus`";
        collector.add(wrong_kind(what, value, "a list: [ … ]").hint(hint));
        return Vec::new();
    }
    let Some(items) = collector.list(what, value) else { return Vec::new() };
    if items.is_empty() {
        collector.add(Fault::new("list_must_not_be_empty", value.spot, format!("{what} is an empty list")));
    }
    let mut list: Vec<u32> = Vec::new();
    for item in items {
        let Some(cpu) = cpu_number(what, item, cpus, collector) else { continue };
        if list.contains(&cpu) {
            let fault = Fault::new("cpu_is_named_once", item.spot, format!("{what} names a CPU twice"));
            collector.add(fault.value(cpu));
        } else {
            list.push(cpu);
        }
    }
    list.sort_unstable();
    list
}
