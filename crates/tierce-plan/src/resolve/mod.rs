//! From trees to [`Plan`]: declare every name, then resolve everything that refers to names.

mod chains;
mod csv;
pub mod documents;
mod edges;
mod first_replica;
mod for_each;
mod job_deadlines;
mod load;
pub mod locks;
mod machine;
pub mod matching;
mod misfit;
mod names;
pub mod params;
mod places;
mod realtime;
mod regions;
mod rt_app;
mod state;
pub mod structure;
mod tasks;

use crate::model::any_cpu::{Placed, Placer, Standing};
use crate::model::*;
use crate::policies::{self, promised, PolicyRecord};
use crate::text::faults::Fault;
use crate::text::files::Files;
use crate::text::source::{Sources, Spot};
use crate::text::tree::{closest, listed, Collector, Fields, Key, Kind, Table, Value};
use crate::text::units::show_time;
use first_replica::Begun;
use names::{cpu_list, cpu_number, find_policy, is_plain, Declared, Item, ItemKind};
use params::{OfThread, Owner};
use places::Places;
use state::{Below, Resolver};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use tierce_guarantee::{Guarantee, Kind as GuaranteeKind};
use tierce_policy::Cpus;

impl Resolver {
    /// The plan of these documents, and all of its faults; a plan with faults is not to be used. Where the text has `cpu = "any"`
    /// it is resolved twice: to see what is to be placed, and with the CPUs that were chosen, as if the text named them.
    /// `standing`: what is in force; `placer`: who chooses them.
    pub fn run(
        files: Files,
        sources: Sources,
        collector: Collector,
        options: Options,
        documents: &[Table],
        (standing, placer): (&Standing, Placer),
    ) -> (Plan, Vec<Fault>) {
        let resolve = |placed: Placed| {
            let mut resolver = Self::new(files.clone(), sources.clone(), collector.clone(), options, placed);
            resolver.everything(documents);
            let Self { plan, collector, broken, units, .. } = resolver;
            let mut faults = collector.faults;
            faults.extend(crate::resolve::structure::faults(&plan, &broken));
            for_each::once(&plan, &mut faults);
            (plan, faults, units)
        };
        let (plan, faults, units) = resolve(Placed::new());
        if units.is_empty() || !faults.is_empty() {
            return (plan, faults);
        }
        match placer(plan.clone(), &units, standing) {
            Ok(placed) => {
                let (plan, faults, _) = resolve(placed);
                (plan, faults)
            }
            Err(faults) => (plan, faults),
        }
    }

    fn new(files: Files, sources: Sources, collector: Collector, options: Options, placed: Placed) -> Self {
        let cpus = options.cpus.clamp(1, policies::limits().cpus);
        let plan = Plan {
            name: sources.0.first().map(|source| source.name.clone()).unwrap_or_default(),
            sources,
            machine: Machine { cpus, named: cpus, ..Machine::default() },
            run: RunOptions::default(),
            nodes: Vec::new(),
            tasks: Vec::new(),
            sets: Vec::new(),
            locks: Vec::new(),
            chains: Vec::new(),
            edges: Vec::new(),
            entries: Vec::new(),
            for_each: Vec::new(),
            default_node: None,
            each: None,
            defaults: Defaults::new(),
        };
        Self {
            files,
            plan,
            collector,
            names: HashMap::new(),
            places: Places::new(),
            begun: Begun::default(),
            broken: Vec::new(),
            unread: Vec::new(),
            units: Vec::new(),
            placed,
            copied: HashMap::new(),
        }
    }

    fn everything(&mut self, documents: &[Table]) {
        let mut items = Vec::new();
        let mut once: BTreeMap<&str, Spot> = BTreeMap::new();
        let (mut machines, mut runs, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
        for document in documents {
            let mut fields = Fields::new("the plan", document);
            fields.key("include");
            for (name, parts) in [("machine", &mut machines), ("run", &mut runs), ("defaults", &mut defaults)]
            {
                if let Some((key, value)) = fields.key(name) {
                    if let Some(table) = self.collector.table(&format!("`{name}`"), value) {
                        if let Some(first) = once.insert(name, key.spot) {
                            let fault =
                                Fault::new("redefined", key.spot, format!("`[{name}]` is given twice"));
                            self.collector.add(fault.other(first, "first here"));
                        } else {
                            parts.push(table);
                        }
                    }
                }
            }
            let mut found = Vec::new();
            for (name, kind) in [
                ("node", ItemKind::Node),
                ("task", ItemKind::Task),
                ("tasks", ItemKind::Set),
                ("chain", ItemKind::Chain),
            ] {
                let Some(value) = fields.take(name) else { continue };
                let Some(table) = self.collector.table(&format!("`{name}`"), value) else { continue };
                for (key, value) in &table.entries {
                    if let Some(table) = self.collector.table(&format!("{name} `{}`", key.text), value) {
                        found.push(Item { kind, key, table, copy: None });
                    }
                }
            }
            let locks = fields.take("lock").and_then(|value| self.collector.table("`lock`", value));
            locks.into_iter().for_each(|table| self.locks(table));
            found.sort_by_key(|item| item.key.spot);
            items.extend(found);
            fields.finish(&mut self.collector);
        }
        machines.into_iter().for_each(|table| self.machine(table));
        runs.into_iter().for_each(|table| self.run_options(table));
        defaults.into_iter().for_each(|table| self.preset(table));
        let copies = self.copies(&items);
        let mut items = for_each::with_copies(items, &copies);
        let cpus = (self.plan.machine.named, self.plan.machine.cpus);
        self.places = places::find(&items, cpus, self.plan.run.other_cpus, &self.placed);
        items.retain(|item| self.declare(item));
        for item in &items {
            match item.kind {
                ItemKind::Node => self.node(item),
                ItemKind::Task => self.task(item),
                ItemKind::Set => self.set(item),
                ItemKind::Chain => {}
            }
        }
        items.iter().filter(|item| item.kind == ItemKind::Chain).for_each(|item| self.chain(item));
        self.triggered();
        promised::fill(&mut self.plan);
    }

    // ---- names ------------------------------------------------------------------------------------------------

    /// Enter the name; nodes also get their place in the plan. False when the name cannot be used.
    fn declare(&mut self, item: &Item) -> bool {
        let (name, spot) = (&item.key.text, item.key.spot);
        if item.copy.is_none() && !is_plain(item.key, &mut self.collector) {
            return false;
        }
        let first = self.names.get(name).map(|first| first.spot);
        let first = first.or_else(|| self.copied.get(name).copied().filter(|_| item.copy.is_none()));
        if let Some(first) = first {
            let message =
                format!("the name `{name}` is taken: nodes, tasks, sets and chains share their names");
            self.collector.add(Fault::new("name_is_unique", spot, message).other(first, "first here"));
            return false;
        }
        let mut declared = Declared {
            kind: item.kind,
            spot,
            policy: None,
            first: self.plan.nodes.len(),
            replicas: None,
            spread: false,
        };
        if item.kind == ItemKind::Node {
            let find = |name: &str| {
                item.table.entries.iter().find(|(key, _)| key.text == name).map(|entry| &entry.1)
            };
            declared.policy = self.policy(item, find("policy"));
            declared.replicas = find("per_cpu").and_then(|value| self.replicas(value));
            places::faults(item, self.plan.machine.named, &self.places, &mut self.collector);
            if let Some(place) = self.places.get(name).filter(|place| place.spread) {
                (declared.replicas, declared.spread) = (place.replicas.clone(), true);
            }
            // With one replica a spread node is a plain one.
            let replicas = declared.replicas.clone().filter(|cpus| !declared.spread || cpus.len() > 1);
            let family = (declared.spread && replicas.is_some()).then_some(declared.first);
            let places: Vec<_> = replicas.map_or(vec![None], |cpus| cpus.into_iter().map(Some).collect());
            for replica in places {
                self.plan.nodes.push(Node {
                    name: replica.map_or(name.clone(), |cpu| format!("{name}@{cpu}")),
                    base: name.clone(),
                    replica,
                    policy: declared.policy.map_or(0, |policy| policy.number),
                    params: [0; NODE_PARAMS],
                    concurrency: 0,
                    roots: Vec::new(),
                    family,
                    default: false,
                    needs: Vec::new(),
                    spot,
                });
            }
        }
        self.names.insert(name.clone(), declared);
        true
    }

    fn policy(&mut self, item: &Item, value: Option<&Value>) -> Option<&'static PolicyRecord> {
        let names: Vec<_> = policies::policies().iter().map(|policy| policy.name).collect();
        let Some(value) = value else {
            let message = format!("node `{}` has no policy", item.key.text);
            let hint = format!("policy = …, one of {}", listed(&names));
            let mut keys = item.table.entries.iter().map(|(key, _)| key);
            let misspelt = keys.find(|key| closest(&key.text, ["policy"].into_iter()).is_some());
            let (spot, hint) = match misspelt {
                Some(key) => (key.spot, format!("did you mean `policy` by `{}`? {hint}", key.text)),
                None => (item.key.spot, hint),
            };
            self.collector.add(Fault::new("policy_must_be_given", spot, message).hint(hint));
            return None;
        };
        let name = self.collector.text(&format!("`policy` of node `{}`", item.key.text), value)?;
        find_policy(name, value.spot, &mut self.collector)
    }

    /// `per_cpu = true` or a list; `None` for false.
    fn replicas(&mut self, value: &Value) -> Option<Vec<u32>> {
        match value.kind {
            Kind::Bool(false) => None,
            Kind::Bool(true) => Some((0..self.plan.machine.named).collect()),
            _ => Some(cpu_list("`per_cpu`", value, self.plan.machine.named, &mut self.collector)),
        }
    }

    // ---- nodes ------------------------------------------------------------------------------------------------

    fn node(&mut self, item: &Item) {
        let name = &item.key.text;
        let Some(declared) = self.names.get(name).cloned() else { return };
        let range = declared.first..declared.first + declared.replicas.as_ref().map_or(1, Vec::len);
        let mut fields = Fields::new(format!("node `{name}`"), item.table);
        for taken in ["policy", "per_cpu", "spread"] {
            fields.key(taken);
        }
        let cpu = fields.key("cpu");
        let cpus = fields.key("cpus");
        let concurrency =
            fields.whole("concurrency", 1, i64::from(policies::limits().cpus), &mut self.collector);
        let default = fields.bool("default", &mut self.collector).unwrap_or(false);
        let mut needs = self.needs(&mut fields);
        let under = fields.key("under");
        let each = fields.key("each");
        let params = declared.policy.and_then(|policy| {
            let owner = Owner { policy, params: &policy.node_params, spot: item.key.spot };
            self.params(&owner, &mut fields, None)
        });
        if let Some(need) = declared.policy.zip(params).and_then(|(policy, params)| own_need(policy, &params))
        {
            needs.push(self.need(&need, item.key.spot));
        }
        if under.is_none() && fields.is_misspelt("under") {
            self.broken.extend(range.clone().map(Child::Node));
        }
        let faults = self.collector.faults.len();
        let roots = self.roots(name, cpu, cpus, under.is_some(), &declared);
        if self.collector.faults.len() > faults {
            self.broken.extend(range.clone().map(Child::Node));
        }
        let others = self.places.get(name).map_or(Cpus::NONE, |place| place.others);
        if declared.policy.is_some() {
            fields.finish(&mut self.collector); // else no key can be called wrong
        }
        for index in range.clone() {
            let at = declared.replicas.as_ref().and_then(|cpus| cpus.get(index - declared.first).copied());
            let node = &mut self.plan.nodes[index];
            node.params = params.unwrap_or_default();
            node.concurrency = concurrency.unwrap_or(0) as u32;
            node.default = default;
            node.needs.clone_from(&needs);
            node.roots = roots_at(roots.as_deref(), at, others, under.is_some());
        }
        if default {
            self.default_node(item, range.clone());
        }
        match each {
            Some((_, value)) if default => self.each(value, &declared),
            Some((key, _)) => {
                let message =
                    "`each` gives unmatched threads their parameters: it belongs to the default node";
                self.collector
                    .add(Fault::new("each_needs_default", key.spot, message).hint("default = true"));
            }
            None => {}
        }
        if let Some((_, value)) = under {
            self.under_node(name, &declared, range, value);
        }
    }

    fn default_node(&mut self, item: &Item, range: Range<usize>) {
        match self.plan.default_node.map(|first| self.plan.nodes[first].spot) {
            Some(first) => {
                let message = format!("`{}` is a second default node", item.key.text);
                let fault = Fault::new("one_default_node", item.key.spot, message);
                self.collector.add(fault.other(first, "the first"));
            }
            None => self.plan.default_node = Some(range.start).filter(|_| !range.is_empty()),
        }
    }

    fn under_node(&mut self, name: &str, declared: &Declared, range: Range<usize>, value: &Value) {
        let at = |index: usize| declared.replicas.as_ref().map(|cpus| cpus[index - declared.first]);
        let children: Vec<_> = range.map(|index| (Child::Node(index), at(index))).collect();
        let below = Below {
            children: &children,
            spread: declared.spread,
            affinity: None,
            any: None,
            elsewhere: None,
        };
        self.under(&format!("node `{name}`"), name, value, &below);
    }

    /// CPUs whose root the node is by `cpu` or `cpus`.
    fn roots(
        &mut self,
        name: &str,
        cpu: Option<&(Key, Value)>,
        cpus: Option<&(Key, Value)>,
        has_under: bool,
        declared: &Declared,
    ) -> Option<Vec<u32>> {
        let (key, value) = cpu.or(cpus)?;
        if let (Some(_), Some((second, _))) = (cpu, cpus) {
            let message = format!("node `{name}` has `cpu` and `cpus`");
            self.collector
                .add(Fault::new("cpu_or_cpus", second.spot, message).other(key.spot, "this or that"));
        }
        if declared.replicas.is_some() && !declared.spread {
            let message = format!("node `{name}` is `per_cpu`: each replica has its CPU already");
            self.collector
                .add(Fault::new("per_cpu_without_cpu", key.spot, message).other(declared.spot, "per_cpu"));
            return None;
        }
        if has_under {
            let message = format!("node `{name}` is the root of a CPU and has a parent");
            let hint = "what a CPU runs directly has no `under`";
            self.collector.add(Fault::new("root_must_not_have_parents", key.spot, message).hint(hint));
        }
        let all = self.plan.machine.named;
        match (&value.kind, cpu) {
            (Kind::Text(text), None) if text == "all" => Some((0..all).collect()),
            (_, None) => Some(cpu_list("`cpus`", value, all, &mut self.collector)),
            (_, Some(_)) => Some(cpu_number("`cpu`", value, all, &mut self.collector).into_iter().collect()),
        }
    }

    fn each(&mut self, value: &Value, declared: &Declared) {
        let Some(policy) = declared.policy else { return };
        let Some(table) = self.collector.table("`each`", value) else { return };
        let mut fields = Fields::new("`each`", table);
        let owner = Owner { policy, params: &policy.edge_params, spot: value.spot };
        let mut nice = None;
        let own = OfThread { name: "weight", word: "nice", otherwise: None, at: &mut nice };
        let params = self.params(&owner, &mut fields, Some(own));
        fields.finish(&mut self.collector);
        let promised = promised::places(policy).zip(params).map_or(0, |((at, _), params)| params[at]);
        if promised > 0 {
            let message = "nothing can be promised to each of any number of threads";
            let fault = Fault::new("promise_is_for_parts", value.spot, message).value(show_time(promised));
            self.collector.add(fault.hint("leave out `promised`"));
        }
        if let Some(params) = params {
            self.plan.each = Some(Each { params, nice, spot: value.spot });
        }
    }

    fn needs(&mut self, fields: &mut Fields) -> Vec<Need> {
        let Some(value) = fields.take("needs") else { return Vec::new() };
        let items = self.collector.one_or_more(value);
        items
            .iter()
            .filter_map(|item| {
                let text = self.collector.text("`needs`", item)?;
                Some(self.need(text, item.spot))
            })
            .collect()
    }

    fn need(&mut self, text: &str, spot: Spot) -> Need {
        let wrong = Guarantee::parse(text).err().map_or(Vec::new(), |faults| faults.0);
        self.collector.faults.extend(wrong.into_iter().map(|wrong| not_a_guarantee(wrong, spot)));
        Need { text: text.to_string(), spot }
    }
}

/// The CPUs whose root a node is, or its replica on the CPU `at`. `named`: by `cpu` or `cpus`; `others`: for which the plan names no
/// root.
fn roots_at(named: Option<&[u32]>, at: Option<u32>, others: Cpus, has_under: bool) -> Vec<u32> {
    match (named, at) {
        (_, Some(cpu)) if others.has(cpu) => vec![cpu],
        (Some(roots), Some(cpu)) => roots.iter().copied().filter(|root| *root == cpu).collect(),
        (Some(roots), None) => roots.to_vec(),
        (None, Some(cpu)) if !has_under => vec![cpu], // a replica without a parent is its CPU's root
        _ => Vec::new(),
    }
}

/// A node that counts on a budget of its own needs to be promised as much.
fn own_need(policy: &PolicyRecord, params: &[u64; NODE_PARAMS]) -> Option<String> {
    let (budget, period) = policies::own_budget(policy)?;
    Some(format!("RESBS {} {}", show_time(params[budget]), show_time(params[period])))
}

fn not_a_guarantee(wrong: tierce_guarantee::Fault, spot: Spot) -> Fault {
    let close = match wrong.rule {
        "guarantee_must_be_known" => {
            closest(&wrong.value, GuaranteeKind::ALL.into_iter().map(GuaranteeKind::name))
        }
        _ => None,
    };
    let digits = wrong.value.starts_with(|first: char| first.is_ascii_digit());
    let type_first = || "the type comes first: \"RESBS 2ms 10ms\" is 2ms in every 10ms".to_string();
    let type_first = (wrong.rule == "guarantee_must_be_known" && digits).then(type_first);
    let hint = wrong.hint.or(close.map(|close| format!("did you mean {close}?"))).or(type_first);
    let value = Some(wrong.value).filter(|value| !value.is_empty());
    Fault { value, bound: wrong.bound, hint, ..Fault::new(wrong.rule, spot, wrong.message) }
}
