//! On which CPUs nodes are, and in how many pieces: as one node, as a replica per CPU, or spread over its replicas. Found from the
//! text before the nodes are made, since children may stand before their parents.

use super::names::{cpu_list, cpu_number, is_any, Item, ItemKind};
use crate::model::any_cpu::Placed;
use crate::model::shape::cpus;
use crate::model::OtherCpus;
use crate::policies::{self, PolicyRecord};
use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::tree::{listed, Collector, Kind, Value};
use std::collections::HashMap;
use tierce_policy::Cpus;

/// Where a node is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// CPUs that reach it.
    pub reach: Cpus,
    /// CPUs of its replicas, ascending.
    pub replicas: Option<Vec<u32>>,
    /// A task below it belongs to one replica at a time and moves between them. With one replica it is a plain node.
    pub spread: bool,
    /// CPUs for which the plan names no root: the replicas there are what they run.
    pub others: Cpus,
}

impl Place {
    /// Tasks below it move.
    fn is_in_pieces(&self) -> bool {
        self.spread && self.reach.are_several()
    }

    /// Several CPUs reach one node.
    fn is_shared(&self) -> bool {
        self.replicas.is_none() && self.reach.are_several()
    }
}

/// Places of all nodes, by name.
pub type Places = HashMap<String, Place>;

/// One edge of a text, as far as places are concerned.
struct Above<'d> {
    parent: &'d str,
    spot: Spot,
    cpu: Cpu,
    ranked: Option<Spot>,
}

/// `cpu = …` of an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cpu {
    /// Nothing is said.
    Every,
    Number(u32),
    /// One that is not chosen yet.
    Any,
}

/// `spread = …`.
enum Wish {
    Never,
    Everywhere,
    On(Vec<u32>),
}

/// What the text says about a node.
struct About<'d> {
    policy: Option<&'static PolicyRecord>,
    per_cpu: Option<Vec<u32>>,
    spread: Option<Wish>,
    /// Of `cpu` or `cpus`.
    roots: Option<Cpus>,
    concurrency: bool,
    default: bool,
    above: Vec<Above<'d>>,
}

/// Of all nodes. `named`: CPUs that the plan speaks of; `all`: CPUs of the machine; `placed`: CPUs that were chosen for nodes.
pub fn find(items: &[Item], (named, all): (u32, u32), other_cpus: OtherCpus, placed: &Placed) -> Places {
    let nodes = || items.iter().filter(|item| item.kind == ItemKind::Node);
    let rooted =
        nodes().fold(Cpus::NONE, |rooted, item| rooted | About::new(item, named, None).rooted(named));
    let others = Cpus::upto(all) & !rooted;
    let places = |others: Cpus| {
        let about = |item| About::new(item, named, placed.get(&item.key.text).copied());
        let texts = nodes().map(|item| (item.key.text.as_str(), about(item))).collect();
        let mut finder = Finder { texts, named, others, places: Places::new() };
        nodes().for_each(|item| drop(finder.find(&item.key.text)));
        finder.places
    };
    let found = places(Cpus::NONE);
    let default =
        nodes().find(|item| About::new(item, named, None).default).and_then(|item| found.get(&item.key.text));
    match other_cpus {
        OtherCpus::Default if !others.is_empty() && default.is_some_and(|place| place.spread) => {
            places(others)
        }
        _ => found,
    }
}

struct Finder<'d> {
    /// Those that are under way or found are gone.
    texts: HashMap<&'d str, About<'d>>,
    named: u32,
    others: Cpus,
    places: Places,
}

impl Finder<'_> {
    /// Nowhere if there is no such node, or it is below itself.
    fn find(&mut self, name: &str) -> Place {
        if let Some(place) = self.places.get(name) {
            return place.clone();
        }
        let Some(about) = self.texts.remove(name) else { return Place::default() };
        let above: Vec<_> = about.above.iter().map(|edge| (edge, self.find(edge.parent))).collect();
        let place = about.place(&above, self.named, self.others);
        self.places.insert(name.to_string(), place.clone());
        place
    }
}

impl<'d> About<'d> {
    /// `any`: the CPU that was chosen for it.
    fn new(item: &Item<'d>, named: u32, any: Option<u32>) -> Self {
        let find =
            |name: &str| item.table.entries.iter().find(|(key, _)| key.text == name).map(|entry| &entry.1);
        let text = |name| match find(name).map(|value| &value.kind) {
            Some(Kind::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let list = |value: &Value| Some(numbers(value, named)).filter(|list| !list.is_empty());
        let per_cpu = find("per_cpu").and_then(|value| match value.kind {
            Kind::Bool(false) => None,
            Kind::Bool(true) => Some((0..named).collect()),
            _ => list(value),
        });
        let spread = find("spread").and_then(|value| match value.kind {
            Kind::Bool(false) => Some(Wish::Never),
            Kind::Bool(true) => Some(Wish::Everywhere),
            _ => list(value).map(Wish::On),
        });
        let mut roots = find("cpu")
            .and_then(|value| cpu_number("", value, named, &mut Collector::default()))
            .map(Cpus::only);
        if let (None, Some(value)) = (roots, find("cpus")) {
            roots = Some(if text("cpus") == Some("all") {
                Cpus::upto(named)
            } else {
                numbers(value, named).iter().collect()
            });
        }
        Self {
            policy: text("policy").and_then(policies::by_name),
            per_cpu,
            spread,
            roots,
            concurrency: find("concurrency").is_some(),
            default: matches!(find("default").map(|value| &value.kind), Some(Kind::Bool(true))),
            above: find("under").map(|under| above(under, any)).unwrap_or_default(),
        }
    }

    /// CPUs for which the text names it as the root.
    fn rooted(&self, named: u32) -> Cpus {
        let replicas = match (&self.per_cpu, &self.spread) {
            _ if !self.above.is_empty() => Cpus::NONE,
            (Some(list), _) | (None, Some(Wish::On(list))) => list.iter().collect(),
            (None, Some(Wish::Everywhere)) if self.roots.is_none() => Cpus::upto(named),
            _ => Cpus::NONE,
        };
        replicas | self.roots.unwrap_or_default()
    }

    /// Nothing that the text says forbids it.
    fn may_spread(&self) -> bool {
        let one_root = self.roots.is_none_or(|roots| self.default && !roots.are_several());
        self.policy.is_some_and(|policy| policy.spreads)
            && one_root
            && self.per_cpu.is_none()
            && !self.concurrency
    }

    fn place(&self, above: &[(&Above, Place)], named: u32, others: Cpus) -> Place {
        if let Some(list) = &self.per_cpu {
            return Place { reach: list.iter().collect(), replicas: Some(list.clone()), ..Place::default() };
        }
        let sum =
            above.iter().fold(self.roots.unwrap_or_default(), |sum, (edge, place)| sum | reach(edge, place));
        let unshared = !above.iter().any(|(edge, place)| edge.cpu == Cpu::Every && place.is_shared());
        let on = match &self.spread {
            _ if !self.may_spread() || !unshared => None,
            Some(Wish::Never) => None,
            Some(Wish::On(list)) => Some(list.iter().collect()),
            Some(Wish::Everywhere) if above.is_empty() && self.roots.is_none() => Some(Cpus::upto(named)),
            Some(Wish::Everywhere) => Some(sum),
            None if above.iter().any(|(edge, _)| edge.ranked.is_some()) => None,
            None if self.default => Some(sum),
            None => Some(sum).filter(|_| self.roots.is_none() && inherits(above)),
        };
        let Some(on) = on.filter(|on| !on.is_empty()) else {
            let reach = if self.roots.is_some() { sum } else { elsewhere(above).0.unwrap_or(sum) };
            return Place { reach, ..Place::default() };
        };
        let others = if self.default { others } else { Cpus::NONE };
        let replicas = (on | others).iter().collect();
        Place { reach: on | others, replicas: Some(replicas), spread: true, others }
    }
}

/// Everything above it is spread.
fn inherits(above: &[(&Above, Place)]) -> bool {
    !above.is_empty() && above.iter().all(|(edge, place)| place.spread && edge.cpu == Cpu::Every)
}

fn reach(edge: &Above, place: &Place) -> Cpus {
    match edge.cpu {
        Cpu::Every => place.reach,
        Cpu::Number(cpu) => Cpus::only(cpu),
        Cpu::Any => place.reach.lowest().map(Cpus::only).unwrap_or_default(), // the lowest stands for it
    }
}

/// CPUs that reach the child of these edges by what is not spread, or by one chosen replica of what is; `None`: it has spread parents
/// only. And how many edges come from all of a spread node.
fn elsewhere(above: &[(&Above, Place)]) -> (Option<Cpus>, usize) {
    let (spread, others): (Vec<_>, Vec<_>) =
        above.iter().partition(|(edge, place)| place.is_in_pieces() && edge.cpu == Cpu::Every);
    let cpus = others.iter().map(|(edge, place)| reach(edge, place)).reduce(|sum, reach| sum | reach);
    (cpus, spread.len())
}

/// The same of an `under`; `any`: the CPU that was chosen for it.
pub fn elsewhere_of(under: &Value, places: &Places, any: Option<u32>) -> (Option<Cpus>, usize) {
    let edges = above(under, any);
    let place = |edge: &Above| places.get(edge.parent).cloned().unwrap_or_default();
    elsewhere(&edges.iter().map(|edge| (edge, place(edge))).collect::<Vec<_>>())
}

/// The edges of an `under`, those of `soft` and `firm` among them.
fn above(under: &Value, any: Option<u32>) -> Vec<Above<'_>> {
    let Kind::Table(table) = &under.kind else { return Vec::new() };
    let mut edges = Vec::new();
    for (parent, value) in &table.entries {
        let list = match &value.kind {
            Kind::List(list) => &list[..],
            _ => std::slice::from_ref(value),
        };
        for value in list {
            let Kind::Table(table) = &value.kind else { continue };
            let find =
                |name: &str| table.entries.iter().find(|(key, _)| key.text == name).map(|entry| &entry.1);
            let cpu = find("cpu").map_or(Cpu::Every, |value| match is_any(value) {
                true => any.map_or(Cpu::Any, Cpu::Number),
                false => cpu_number("", value, policies::limits().cpus, &mut Collector::default())
                    .map_or(Cpu::Every, Cpu::Number),
            });
            let rank = find("rank").filter(|value| !matches!(value.kind, Kind::Whole(Some(0))));
            let ranked = rank.map(|value| value.spot);
            edges.push(Above { parent: &parent.text, spot: parent.spot, cpu, ranked });
            for second in [find("soft"), find("firm")].into_iter().flatten() {
                let Kind::Text(name) = &second.kind else { continue };
                edges.push(Above { parent: name, spot: second.spot, cpu: Cpu::Every, ranked: None });
            }
        }
    }
    edges
}

/// What the text of a node says against its being spread.
pub fn faults(item: &Item, named: u32, places: &Places, collector: &mut Collector) {
    let find = |name: &str| item.table.entries.iter().find(|(key, _)| key.text == name);
    let Some((key, value)) = find("spread") else { return };
    let name = &item.key.text;
    match value.kind {
        Kind::Bool(false) => return,
        Kind::Bool(true) => {}
        _ => drop(cpu_list("`spread`", value, named, collector)),
    }
    let about = About::new(item, named, None);
    if let Some((other, _)) = find("per_cpu") {
        let message = format!("node `{name}` is `spread` and `per_cpu`");
        let fault = Fault::new("spread_or_per_cpu", key.spot, message).other(other.spot, "this or that");
        return collector.add(fault.hint("tasks below a spread node move between its replicas"));
    }
    if let Some(policy) = about.policy.filter(|policy| !policy.spreads) {
        let all = policies::policies().iter().filter(|policy| policy.spreads).map(|policy| policy.name);
        let message = format!("tasks cannot move between replicas of `{name}`");
        let fault = Fault::new("policy_must_be_able_to_spread", key.spot, message).value(policy.name);
        return collector.add(fault.bound(listed(&all.collect::<Vec<_>>())));
    }
    if let Some((other, _)) = find("concurrency") {
        let message = format!("node `{name}` is `spread`: each replica runs on one CPU");
        let fault =
            Fault::new("spread_without_concurrency", key.spot, message).other(other.spot, "the limit");
        return collector.add(fault.hint("`spread = false` for one node that several CPUs share"));
    }
    let one = about.default && matches!(value.kind, Kind::Bool(true));
    if let Some((other, _)) = find("cpus").or(find("cpu").filter(|_| !one)) {
        let message = format!("node `{name}` is `spread`: each replica has its CPU already");
        let fault = Fault::new("spread_without_cpu", key.spot, message).other(other.spot, "a CPU");
        return collector.add(fault.hint("`spread = [0, 2]` for replicas on these CPUs only"));
    }
    for edge in &about.above {
        let place = places.get(edge.parent).cloned().unwrap_or_default();
        if edge.cpu == Cpu::Every && place.is_shared() {
            let message =
                format!("`{name}` is spread, and its parent `{}` is one node on several CPUs", edge.parent);
            let fault = Fault::new("spread_needs_one_cpu_above", edge.spot, message).value(cpus(place.reach));
            collector.add(fault.hint("`per_cpu = true` or `spread = true` there, or `spread = false` here"));
        }
        if let Some(spot) = edge.ranked {
            let message = format!("`{name}` is spread: no CPU competes for what another one runs");
            let fault = Fault::new("rank_needs_a_shared_child", spot, message);
            collector.add(fault.hint("drop `rank`, or `spread = false` for one node that CPUs compete for"));
        }
    }
}

/// CPUs of a list, without the wrong ones.
fn numbers(value: &Value, named: u32) -> Vec<u32> {
    cpu_list("", value, named, &mut Collector::default())
}
