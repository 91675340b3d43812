//! From text to [`Plan`]: read the documents, declare every name, then resolve everything that refers to names.

use crate::faults::{Fault, Faults};
use crate::model::*;
use crate::policies::{self, Param, ParamKind, PolicyRecord};
use crate::source::{Source, Sources, Spot};
use crate::tree::{closest, listed, parse, Collector, Fields, Key, Kind, Table, Value};
use crate::units::show_time;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files a plan may include, itself not counted.
const INCLUDES_MAX: usize = 64;
/// Bytes of one file.
const FILE_MAX: u64 = 64 << 20;

/// Faults of one table of tasks after which no more are looked for: they tend to be the same.
pub const CSV_FAULTS_MAX: usize = 20;

/// What a plan does not say itself.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// CPUs of the machine when the plan has no `[machine] cpus`.
    pub cpus: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { cpus: 1 }
    }
}

/// Read and resolve the plan at `path`.
pub fn load(path: &Path, options: Options) -> Result<Plan, Faults> {
    let mut reader = Reader::default();
    let name = path.display().to_string();
    let nowhere = Spot::default();
    match read_text(path) {
        Ok(text) => reader.document(name, text),
        Err(error) => {
            reader.sources.0.push(Arc::new(Source { name, text: String::new() }));
            reader.collector.add(Fault::new("file_must_be_readable", nowhere, error));
            reader.incomplete = true;
        }
    }
    reader.resolve(options)
}

/// Resolve `text`; `name` is its path for messages and for files it names.
pub fn from_text(text: &str, name: &str, options: Options) -> Result<Plan, Faults> {
    let mut reader = Reader::default();
    reader.document(name.to_string(), text.to_string());
    reader.resolve(options)
}

fn read_text(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    if !about.is_file() {
        return Err(format!("cannot read {}: not a regular file", path.display()));
    }
    let mut text = String::new();
    file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > FILE_MAX {
        return Err(format!("cannot read {}: larger than {} MiB", path.display(), FILE_MAX >> 20));
    }
    Ok(text)
}

/// The documents, in the order in which they count: what a file includes comes before it.
#[derive(Default)]
struct Reader {
    sources: Sources,
    collector: Collector,
    documents: Vec<Table>,
    included: Vec<PathBuf>,
    /// A text is missing: what the others say about it would be faults that are none.
    incomplete: bool,
}

impl Reader {
    fn document(&mut self, name: String, text: String) {
        let source = self.sources.0.len() as u32;
        self.included.push(std::fs::canonicalize(&name).unwrap_or_else(|_| PathBuf::from(&name)));
        let table = parse(&text, source);
        self.sources.0.push(Arc::new(Source { name, text }));
        match table {
            Ok(table) => {
                if let Some((_, include)) = table.entries.iter().find(|(key, _)| key.text == "include") {
                    self.include(include, source);
                }
                self.documents.push(table);
            }
            Err(faults) => {
                self.collector.faults.extend(faults);
                self.incomplete = true;
            }
        }
    }

    fn include(&mut self, value: &Value, from: u32) {
        for value in self.collector.one_or_more(value) {
            let Some(name) = self.collector.text("`include`", value) else { continue };
            let path = relative(&self.sources, from, name);
            if self.included.len() > INCLUDES_MAX {
                let fault = Fault::new("includes_must_be_few", value.spot, "too many files are included");
                self.incomplete = true;
                return self.collector.add(fault.bound(INCLUDES_MAX));
            }
            let canonical = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if self.included.contains(&canonical) {
                let fault =
                    Fault::new("file_is_included_once", value.spot, "this file is part of the plan already");
                self.collector.add(fault.value(name));
                continue;
            }
            match read_text(&path) {
                Ok(text) => self.document(path.display().to_string(), text),
                Err(error) => {
                    let hint = "paths are relative to the file that names them";
                    self.collector.add(Fault::new("file_must_be_readable", value.spot, error).hint(hint));
                    self.incomplete = true;
                }
            }
        }
    }

    fn resolve(self, options: Options) -> Result<Plan, Faults> {
        let Self { sources, collector, documents, incomplete, .. } = self;
        if incomplete {
            return Err(Faults::new(collector.faults, sources));
        }
        let mut resolver = Resolver::new(sources, collector, options);
        resolver.everything(&documents);
        let Resolver { mut plan, collector, broken, .. } = resolver;
        plan.sources.0.shrink_to_fit();
        let mut faults = collector.faults;
        faults.extend(crate::structure::faults(&plan, &broken));
        if faults.is_empty() {
            Ok(plan)
        } else {
            Err(Faults::new(faults, plan.sources))
        }
    }
}

fn relative(sources: &Sources, from: u32, name: &str) -> PathBuf {
    let base = sources.0.get(from as usize).map(|source| Path::new(&source.name));
    base.and_then(Path::parent).unwrap_or(Path::new("")).join(name)
}

/// `[node.N]`, `[task.N]` or `[tasks.N]`.
struct Item<'d> {
    kind: ItemKind,
    key: &'d Key,
    table: &'d Table,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Node,
    Task,
    Set,
}

/// A name: what it is and where it was given.
#[derive(Clone)]
struct Declared {
    kind: ItemKind,
    spot: Spot,
    policy: Option<&'static PolicyRecord>,
    /// Nodes: index of the first replica, and their CPUs when it is `per_cpu`.
    first: usize,
    replicas: Option<Vec<u32>>,
}

struct Resolver {
    plan: Plan,
    collector: Collector,
    names: HashMap<String, Declared>,
    /// `[defaults.POLICY]`: values that stand in for presets.
    defaults: HashMap<(&'static str, &'static str), u64>,
    /// Nodes and tasks with a fault in their edges: that they lead nowhere is not worth a second message.
    broken: Vec<Child>,
}

impl Resolver {
    fn new(sources: Sources, collector: Collector, options: Options) -> Self {
        let plan = Plan {
            name: sources.0.first().map(|source| source.name.clone()).unwrap_or_default(),
            sources,
            machine: Machine { cpus: options.cpus.clamp(1, policies::limits().cpus), ..Machine::default() },
            run: RunOptions::default(),
            nodes: Vec::new(),
            tasks: Vec::new(),
            sets: Vec::new(),
            edges: Vec::new(),
            entries: Vec::new(),
            default_node: None,
            each: None,
        };
        Self { plan, collector, names: HashMap::new(), defaults: HashMap::new(), broken: Vec::new() }
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
            for (name, kind) in [("node", ItemKind::Node), ("task", ItemKind::Task), ("tasks", ItemKind::Set)]
            {
                let Some(value) = fields.take(name) else { continue };
                let Some(table) = self.collector.table(&format!("`{name}`"), value) else { continue };
                for (key, value) in &table.entries {
                    if let Some(table) = self.collector.table(&format!("{name} `{}`", key.text), value) {
                        found.push(Item { kind, key, table });
                    }
                }
            }
            found.sort_by_key(|item| item.key.spot);
            items.extend(found);
            fields.finish(&mut self.collector);
        }
        machines.into_iter().for_each(|table| self.machine(table));
        runs.into_iter().for_each(|table| self.run_options(table));
        defaults.into_iter().for_each(|table| self.preset(table));
        items.retain(|item| self.declare(item));
        for item in &items {
            match item.kind {
                ItemKind::Node => self.node(item),
                ItemKind::Task => self.task(item),
                ItemKind::Set => self.set(item),
            }
        }
    }

    // ---- [machine], [run], [defaults] -------------------------------------------------------------------------

    fn machine(&mut self, table: &Table) {
        let mut fields = Fields::new("`[machine]`", table);
        let collector = &mut self.collector;
        let machine = &mut self.plan.machine;
        if let Some(cpus) = fields.whole("cpus", 1, i64::from(policies::limits().cpus), collector) {
            machine.cpus = cpus as u32;
            machine.cpus_given = true;
        }
        machine.epoch_ns = fields.time("epoch", collector).unwrap_or(0);
        if let Some(table) = fields.take("costs").and_then(|value| collector.table("`costs`", value)) {
            let mut fields = Fields::new("`costs`", table);
            let mut cost = |name| fields.time(name, collector).unwrap_or(0);
            machine.costs = Costs {
                switch_ns: cost("switch"),
                timer_ns: cost("timer"),
                migration_ns: cost("migration"),
                level_ns: cost("level"),
            };
            fields.finish(collector);
        }
        let cpus = machine.cpus;
        if let Some(value) = fields.take("interrupts") {
            let items = collector.one_or_more(value);
            machine.interrupts = items.iter().filter_map(|item| interrupt(item, cpus, collector)).collect();
        }
        fields.finish(collector);
    }

    fn run_options(&mut self, table: &Table) {
        let collector = &mut self.collector;
        let mut fields = Fields::new("`[run]`", table);
        let limit = RunOptions::default().watchdog_ns;
        if let Some(value) = fields.take("watchdog") {
            if let Some(ns) = collector.duration("`watchdog`", value) {
                if ns > limit {
                    let message = "the kernel's watchdog waits no longer";
                    let fault = Fault::new("watchdog_must_not_exceed_30s", value.spot, message);
                    collector.add(fault.value(show_time(ns)).bound(show_time(limit)));
                }
                self.plan.run.watchdog_ns = ns;
            }
        }
        if let Some(value) = fields.take("throttle") {
            match collector.text("`throttle`", value) {
                Some("anywhere") => self.plan.run.throttle = ThrottleAt::Anywhere,
                Some("user") => self.plan.run.throttle = ThrottleAt::User,
                Some(other) => collector.add(
                    Fault::new("throttle_must_be_known", value.spot, "there is no such place to throttle")
                        .value(other)
                        .hint("\"anywhere\": precise; \"user\": never while holding kernel locks"),
                ),
                None => {}
            }
        }
        fields.finish(collector);
    }

    fn preset(&mut self, table: &Table) {
        for (key, value) in &table.entries {
            let Some(policy) = find_policy(&key.text, key.spot, &mut self.collector) else { continue };
            let what = format!("`[defaults.{}]`", policy.name);
            let Some(table) = self.collector.table(&what, value) else { continue };
            let mut fields = Fields::new(&what, table);
            for param in policy.node_params.iter().chain(&policy.edge_params) {
                if let Some(value) = fields.take(param.name) {
                    if let Some(number) =
                        param_value(&fields.what(param.name), param, value, &mut self.collector)
                    {
                        self.defaults.insert((policy.name, param.name), number);
                    }
                }
            }
            fields.finish(&mut self.collector);
        }
    }

    // ---- names ------------------------------------------------------------------------------------------------

    /// Enter the name; nodes also get their place in the plan. False when the name cannot be used.
    fn declare(&mut self, item: &Item) -> bool {
        let (name, spot) = (&item.key.text, item.key.spot);
        let mut bytes = name.bytes();
        let good = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
            && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !good {
            self.collector.add(
                Fault::new("name_must_be_plain", spot, "this is not a name")
                    .value(format!("\"{name}\""))
                    .bound("[A-Za-z][A-Za-z0-9_-]*"),
            );
            return false;
        }
        if let Some(first) = self.names.get(name) {
            let message = format!("the name `{name}` is taken: nodes, tasks and sets share their names");
            self.collector.add(Fault::new("name_is_unique", spot, message).other(first.spot, "first here"));
            return false;
        }
        let mut declared =
            Declared { kind: item.kind, spot, policy: None, first: self.plan.nodes.len(), replicas: None };
        if item.kind == ItemKind::Node {
            let find = |name: &str| {
                item.table.entries.iter().find(|(key, _)| key.text == name).map(|entry| &entry.1)
            };
            declared.policy = self.policy(item, find("policy"));
            declared.replicas = find("per_cpu").and_then(|value| self.replicas(value));
            let replicas = declared.replicas.clone();
            let places: Vec<_> = replicas.map_or(vec![None], |cpus| cpus.into_iter().map(Some).collect());
            for replica in places {
                self.plan.nodes.push(Node {
                    name: replica.map_or(name.clone(), |cpu| format!("{name}@{cpu}")),
                    base: name.clone(),
                    replica,
                    policy: declared.policy.map_or(0, |policy| policy.number),
                    params: [0; PARAMS],
                    concurrency: 0,
                    roots: Vec::new(),
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
            self.collector.add(Fault::new("policy_must_be_given", item.key.spot, message).hint(hint));
            return None;
        };
        let name = self.collector.text(&format!("`policy` of node `{}`", item.key.text), value)?;
        find_policy(name, value.spot, &mut self.collector)
    }

    /// `per_cpu = true` or a list; `None` for false.
    fn replicas(&mut self, value: &Value) -> Option<Vec<u32>> {
        match value.kind {
            Kind::Bool(false) => None,
            Kind::Bool(true) => Some((0..self.plan.machine.cpus).collect()),
            _ => Some(cpu_list("`per_cpu`", value, self.plan.machine.cpus, &mut self.collector)),
        }
    }

    // ---- nodes ------------------------------------------------------------------------------------------------

    fn node(&mut self, item: &Item) {
        let name = &item.key.text;
        let Some(declared) = self.names.get(name).cloned() else { return };
        let range = declared.first..declared.first + declared.replicas.as_ref().map_or(1, Vec::len);
        let mut fields = Fields::new(format!("node `{name}`"), item.table);
        for taken in ["policy", "per_cpu"] {
            fields.key(taken);
        }
        let cpu = fields.key("cpu");
        let cpus = fields.key("cpus");
        let concurrency =
            fields.whole("concurrency", 1, i64::from(policies::limits().cpus), &mut self.collector);
        let default = fields.bool("default", &mut self.collector).unwrap_or(false);
        let needs = self.needs(&mut fields);
        let under = fields.key("under");
        let each = fields.key("each");
        let params = match declared.policy {
            Some(policy) => {
                let owner = Owner { policy, params: &policy.node_params, spot: item.key.spot };
                self.params(&owner, &mut fields, None)
            }
            None => None,
        };
        let faults = self.collector.faults.len();
        let roots = self.roots(name, cpu, cpus, under.is_some(), &declared);
        if self.collector.faults.len() > faults {
            self.broken.extend(range.clone().map(Child::Node));
        }
        let unknown = declared.policy.is_none(); // then no key can be called wrong
        if !unknown {
            fields.finish(&mut self.collector);
        }
        for index in range.clone() {
            let node = &mut self.plan.nodes[index];
            node.params = params.unwrap_or_default();
            node.concurrency = concurrency.unwrap_or(0) as u32;
            node.default = default;
            node.needs.clone_from(&needs);
            node.roots = match (&roots, node.replica) {
                (Some(roots), _) => roots.clone(),
                (None, Some(cpu)) if under.is_none() => vec![cpu], // a replica without a parent is its CPU's root
                _ => Vec::new(),
            };
        }
        if default {
            match self.plan.default_node.map(|first| self.plan.nodes[first].spot) {
                Some(first) => {
                    let message = format!("`{name}` is a second default node");
                    let fault = Fault::new("one_default_node", item.key.spot, message);
                    self.collector.add(fault.other(first, "the first"));
                }
                None => self.plan.default_node = Some(range.start).filter(|_| !range.is_empty()),
            }
        }
        if let Some((key, value)) = each {
            if default {
                self.each(value, &declared);
            } else {
                let message =
                    "`each` gives unmatched threads their parameters: it belongs to the default node";
                self.collector
                    .add(Fault::new("each_needs_default", key.spot, message).hint("default = true"));
            }
        }
        if let Some((_, value)) = under {
            let children: Vec<_> =
                range.map(|index| (Child::Node(index), self.plan.nodes[index].replica)).collect();
            self.under(&format!("node `{name}`"), value, &children);
        }
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
        if declared.replicas.is_some() {
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
        let all = self.plan.machine.cpus;
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
        let params = self.params(&owner, &mut fields, Some(&mut nice));
        fields.finish(&mut self.collector);
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
                crate::needs::check(text, item.spot, &mut self.collector);
                Some(Need { text: text.to_string(), spot: item.spot })
            })
            .collect()
    }

    // ---- tasks ------------------------------------------------------------------------------------------------

    fn task(&mut self, item: &Item) {
        let owner = format!("task `{}`", item.key.text);
        let mut fields = Fields::new(&owner, item.table);
        let (load, needs, affinity, under, matches) = self.leaf(&owner, &mut fields);
        fields.finish(&mut self.collector);
        let child = Child::Task(self.plan.tasks.len());
        let load = load.and_then(|value| self.load(&owner, value));
        let (name, spot) = (item.key.text.clone(), item.key.spot);
        self.plan.tasks.push(Task { name, set: None, load, affinity, needs, spot });
        if let Some(value) = under {
            self.under(&owner, value, &[(child, None)]);
        }
        self.entry(&owner, child, matches);
    }

    /// What tasks and sets have in common, not yet looked into.
    #[allow(clippy::type_complexity)]
    fn leaf<'v>(
        &mut self,
        owner: &str,
        fields: &mut Fields<'v>,
    ) -> (Option<&'v Value>, Vec<Need>, Option<u64>, Option<&'v Value>, Option<&'v Value>) {
        let load = fields.take("load");
        let needs = self.needs(fields);
        let what = format!("`affinity` of {owner}");
        let affinity = fields.take("affinity").and_then(|value| {
            let cpus = cpu_list(&what, value, self.plan.machine.cpus, &mut self.collector);
            (!cpus.is_empty()).then(|| cpus.into_iter().fold(0, |mask, cpu| mask | 1 << cpu))
        });
        (load, needs, affinity, fields.take("under"), fields.take("match"))
    }

    fn load(&mut self, owner: &str, value: &Value) -> Option<Load> {
        let Self { collector, plan, .. } = self;
        let sources = &plan.sources;
        let from = value.spot.source;
        let mut read = |collector: &mut Collector, at: &Value, name: &str| match read_text(&relative(
            sources, from, name,
        )) {
            Ok(text) => Some(text),
            Err(error) => {
                let hint = "paths are relative to the file that names them";
                collector.add(Fault::new("file_must_be_readable", at.spot, error).hint(hint));
                None
            }
        };
        crate::load::read(owner, value, collector, &mut read)
    }

    fn entry(&mut self, owner: &str, target: Child, matches: Option<&Value>) {
        let Some(value) = matches else { return };
        let any = crate::matching::read(owner, value, &mut self.collector);
        self.plan.entries.push(MatchEntry { target, any, spot: value.spot });
    }

    fn set(&mut self, item: &Item) {
        let name = &item.key.text;
        let owner = format!("set `{name}`");
        let mut fields = Fields::new(&owner, item.table);
        let count = fields.key("count");
        let csv = fields.key("csv");
        let (load, needs, affinity, under, matches) = self.leaf(&owner, &mut fields);
        fields.finish(&mut self.collector);
        if let (Some((first, _)), Some((second, _))) = (count, csv) {
            let message = format!("{owner} has `count` and `csv`");
            self.collector
                .add(Fault::new("count_or_csv", second.spot, message).other(first.spot, "this or that"));
        }
        let most = policies::limits().nodes;
        let members = match (count, csv) {
            (Some((_, value)), _) => {
                let count = self.collector.whole(&format!("`count` of {owner}"), value, 0, i64::from(most));
                Members::Alike(count.unwrap_or(0) as usize)
            }
            (None, Some((_, value))) => {
                self.csv(&owner, value, load, under).map_or(Members::Alike(0), Members::Rows)
            }
            (None, None) => Members::Alike(usize::from(load.is_some())),
        };
        let set_index = self.plan.sets.len();
        let first_task = self.plan.tasks.len();
        // The set itself: what a member looks like that no row describes.
        let common_load = load.and_then(|value| self.load(&owner, value));
        let edges_before = self.plan.edges.len();
        let child = Child::Set(set_index);
        let by_rows = matches!(members, Members::Rows(_));
        if let (Some(value), false) = (under, by_rows && matches.is_none()) {
            self.under(&owner, value, &[(child, None)]);
        }
        let template = self.plan.edges.split_off(edges_before);
        let spot = item.key.spot;
        let member = |plan: &mut Plan, index: usize, load: Option<Load>| {
            let (name, needs) = (format!("{name}[{index}]"), needs.clone());
            plan.tasks.push(Task { name, set: Some(set_index), load, affinity, needs, spot });
        };
        match members {
            Members::Alike(count) => {
                let room = (policies::limits().edges as usize).saturating_sub(self.plan.edges.len());
                if count.saturating_mul(template.len()) > room {
                    let fault = Fault::new(
                        "too_many_edges",
                        spot,
                        format!("{owner} has more edges than there can be"),
                    );
                    self.collector.add(fault.value(count.saturating_mul(template.len())).bound(room));
                } else {
                    for index in 0..count {
                        let child = Child::Task(self.plan.tasks.len());
                        member(&mut self.plan, index, common_load.clone());
                        self.plan.edges.extend(template.iter().map(|edge| Edge { child, ..edge.clone() }));
                    }
                    if self.broken.contains(&child) {
                        self.broken.extend((first_task..self.plan.tasks.len()).map(Child::Task));
                    }
                }
            }
            Members::Rows(rows) => {
                let faults = self.collector.faults.len();
                for (index, row) in rows.iter().enumerate() {
                    if self.collector.faults.len() > faults + CSV_FAULTS_MAX {
                        break;
                    }
                    let owner = format!("row {} of {owner}", index + 1);
                    let child = Child::Task(self.plan.tasks.len());
                    let load = row.load.as_ref().and_then(|value| self.load(&owner, value));
                    member(&mut self.plan, index, load);
                    if let Some(under) = &row.under {
                        self.under(&owner, under, &[(child, None)]);
                    }
                }
            }
        }
        self.plan.sets.push(TaskSet {
            name: name.clone(),
            members: first_task..self.plan.tasks.len(),
            under: template,
            load: common_load,
            affinity,
            needs,
            spot,
        });
        self.entry(&owner, child, matches);
    }

    /// The rows of a table of tasks: each is the set's `load` and `under` with some keys replaced.
    fn csv(
        &mut self,
        owner: &str,
        value: &Value,
        load: Option<&Value>,
        under: Option<&Value>,
    ) -> Option<Vec<Row>> {
        let name = self.collector.text(&format!("`csv` of {owner}"), value)?;
        let path = relative(&self.plan.sources, value.spot.source, name);
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(error) => {
                let hint = "paths are relative to the file that names them";
                self.collector.add(Fault::new("file_must_be_readable", value.spot, error).hint(hint));
                return None;
            }
        };
        let source = self.plan.sources.0.len() as u32;
        self.plan.sources.0.push(Arc::new(Source { name: path.display().to_string(), text: text.clone() }));
        let base = Row { load: load.cloned(), under: under.cloned() };
        crate::csv::rows(&text, source, value, &base, &mut self.collector)
    }

    // ---- edges ------------------------------------------------------------------------------------------------

    /// `under.PARENT = …` of `children`: one leaf, one node, or the replicas of a node with their CPUs.
    fn under(&mut self, owner: &str, value: &Value, children: &[(Child, Option<u32>)]) {
        let faults = self.collector.faults.len();
        if let Some(table) = self.collector.table(&format!("`under` of {owner}"), value) {
            for (key, value) in &table.entries {
                self.edges(owner, key, value, children);
            }
        }
        if self.collector.faults.len() > faults {
            self.broken.extend(children.iter().map(|(child, _)| *child));
        }
    }

    fn edges(&mut self, owner: &str, key: &Key, value: &Value, children: &[(Child, Option<u32>)]) {
        let Some(parent) = self.names.get(&key.text).cloned() else {
            let nodes = || self.names.iter().filter(|(_, declared)| declared.kind == ItemKind::Node);
            let mut names: Vec<_> = nodes().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            let hint = match closest(&key.text, names.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("there are {}", listed(&names)),
            };
            let message = format!("{owner} is under `{}`, which does not exist", key.text);
            return self.collector.add(Fault::new("parent_must_exist", key.spot, message).hint(hint));
        };
        if parent.kind != ItemKind::Node {
            let kind = if parent.kind == ItemKind::Set { "set of tasks" } else { "task" };
            let message = format!("{owner} is under `{}`, which is a {kind}", key.text);
            let fault = Fault::new("task_cannot_be_parent", key.spot, message);
            return self.collector.add(fault.other(parent.spot, "defined here"));
        }
        let what = format!("`under.{}` of {owner}", key.text);
        for value in self.collector.one_or_more(value) {
            let Some(table) = self.collector.table(&what, value) else { continue };
            let mut fields = Fields::new(&what, table);
            let rank = fields
                .whole("rank", i64::from(i32::MIN), i64::from(i32::MAX), &mut self.collector)
                .unwrap_or(0);
            let when = fields.take("when");
            let condition = when.and_then(|value| self.collector.text("`when`", value));
            let when_spent = condition == Some("spent");
            if let (Some(value), Some(other), false) = (when, condition, when_spent) {
                let fault = Fault::new("when_must_be_spent", value.spot, "there is no such condition");
                self.collector.add(fault.value(other).hint("when = \"spent\""));
            }
            let cpu = fields.key("cpu");
            let Some(policy) = parent.policy else {
                self.broken.extend(children.iter().map(|(child, _)| *child)); // its parent's fault
                continue;
            };
            // The place of an edge is its table; of one that is a header of its own, the header.
            let spot = if value.spot.len == 0 { key.spot } else { value.spot };
            let edge_owner = Owner { policy, params: &policy.edge_params, spot };
            let params = self.params(&edge_owner, &mut fields, None);
            fields.finish(&mut self.collector);
            let pairs = self.pairs(owner, key, cpu, &parent, children);
            for (parent, child) in pairs {
                let params = params.unwrap_or_default();
                self.plan.edges.push(Edge { parent, child, params, rank: rank as i32, when_spent, spot });
            }
        }
    }

    /// Which replica of the parent leads to which child.
    fn pairs(
        &mut self,
        owner: &str,
        key: &Key,
        cpu: Option<&(Key, Value)>,
        parent: &Declared,
        children: &[(Child, Option<u32>)],
    ) -> Vec<(usize, Child)> {
        let Some(replicas) = &parent.replicas else {
            if let Some((cpu, _)) = cpu {
                let message = format!("`cpu` selects a replica, but `{}` has none", key.text);
                let fault = Fault::new("cpu_needs_replicas", cpu.spot, message);
                self.collector.add(fault.hint("per_cpu = true there").other(parent.spot, "defined here"));
            } else if children.len() > 1 || children.iter().any(|(_, replica)| replica.is_some()) {
                let message = format!("{owner} is `per_cpu`, its parent `{}` is not", key.text);
                let fault = Fault::new("replicas_need_replicas", key.spot, message);
                self.collector.add(fault.hint("per_cpu = true there").other(parent.spot, "defined here"));
                return Vec::new();
            }
            return children.iter().map(|(child, _)| (parent.first, *child)).collect();
        };
        let mut wanted = replicas.clone();
        if let Some((_, value)) = cpu {
            let cpus = self.plan.machine.cpus;
            let Some(cpu) = cpu_number("`cpu`", value, cpus, &mut self.collector) else { return Vec::new() };
            if !replicas.contains(&cpu) {
                let message = format!("`{}` has no replica on that CPU", key.text);
                let fault = Fault::new("replica_must_exist", value.spot, message).value(cpu);
                self.collector.add(fault.bound(format!("{replicas:?}")));
                return Vec::new();
            }
            wanted = vec![cpu];
        }
        let index =
            |cpu: u32| replicas.iter().position(|replica| *replica == cpu).map(|at| parent.first + at);
        let mut pairs = Vec::new();
        for (child, replica) in children {
            match replica {
                // Replicas join equal CPUs.
                Some(replica) if wanted.contains(replica) => {
                    pairs.extend(index(*replica).map(|at| (at, *child)))
                }
                Some(replica) if cpu.is_none() => {
                    let message =
                        format!("{owner} has a replica on CPU {replica}, its parent `{}` has not", key.text);
                    let fault = Fault::new("replica_must_exist", key.spot, message);
                    self.collector.add(fault.value(replica).bound(format!("{replicas:?}")));
                }
                Some(_) => {}
                // One child below all replicas, or the one selected.
                None => pairs.extend(wanted.iter().filter_map(|cpu| index(*cpu)).map(|at| (at, *child))),
            }
        }
        pairs
    }

    // ---- parameters -------------------------------------------------------------------------------------------

    /// The parameters of a node or edge: given, default or preset. `nice`: where to note `weight = "nice"`; `None`
    /// where that is not possible. Returns `None` when one is missing or wrong.
    fn params(
        &mut self,
        owner: &Owner,
        fields: &mut Fields,
        mut nice: Option<&mut Option<usize>>,
    ) -> Option<[u64; PARAMS]> {
        let mut values = [None; PARAMS];
        let mut given: [Option<Spot>; PARAMS] = [None; PARAMS];
        let mut wrong = false;
        for (at, param) in owner.params.iter().enumerate().take(PARAMS) {
            let written = fields.take(param.name);
            given[at] = written.map(|value| value.spot);
            let preset = match param.kind {
                ParamKind::DurationOf(other) => values.get(other).copied().flatten(),
                _ => param.preset,
            };
            values[at] = match written {
                Some(Value { kind: Kind::Text(text), spot })
                    if text == "nice" && param.kind == ParamKind::Count =>
                {
                    match nice.as_deref_mut() {
                        Some(nice) if param.name == "weight" => *nice = Some(at),
                        _ => {
                            let message = "only the weight of unmatched threads can follow their nice value";
                            self.collector.add(Fault::new("nice_is_for_each_weight", *spot, message));
                        }
                    }
                    preset.or(Some(param.least))
                }
                Some(value) => param_value(&fields.what(param.name), param, value, &mut self.collector),
                None => self.defaults.get(&(owner.policy.name, param.name)).copied().or(preset),
            };
            if written.is_none() && values[at].is_none() && !matches!(param.kind, ParamKind::DurationOf(_)) {
                let message = format!("`{}` is missing: {}", param.name, param.meaning);
                let message = message.trim_end_matches([':', ' ']);
                let fault = Fault::new("parameter_must_be_given", owner.spot, message);
                self.collector.add(fault.hint(format!("{} = …, {}", param.name, range(param))));
            }
            wrong |= values[at].is_none();
        }
        if wrong {
            return None;
        }
        for (small, large, rule) in [
            ("deadline", "period", "deadline_must_not_exceed_period"),
            ("budget", "deadline", "budget_must_not_exceed_deadline"),
            ("budget", "period", "budget_must_not_exceed_period"),
        ] {
            let find = |name| policies::position(owner.params, name);
            let (Some(small_at), Some(large_at)) = (find(small), find(large)) else { continue };
            let (Some(low), Some(high)) = (values[small_at], values[large_at]) else { continue };
            // A deadline that merely stands for the period is not what the budget exceeds.
            if low > high && !(large == "deadline" && given[large_at].is_none()) {
                let spot = given[small_at].unwrap_or(owner.spot);
                let fault = Fault::new(rule, spot, format!("the {small} is larger than the {large}"));
                let fault = fault.value(show_time(low)).bound(show_time(high));
                let other = given[large_at].filter(|other| *other != spot);
                self.collector.add(match other {
                    Some(other) => fault.other(other, format!("the {large}")),
                    None => fault,
                });
                return None;
            }
        }
        Some(values.map(Option::unwrap_or_default))
    }
}

/// Whose parameters are read.
struct Owner {
    policy: &'static PolicyRecord,
    params: &'static [Param],
    /// Where one that is missing is missed.
    spot: Spot,
}

/// How many members a set has, and whether each has values of its own.
enum Members {
    Alike(usize),
    Rows(Vec<Row>),
}

/// One row of a `csv`.
#[derive(Clone)]
pub struct Row {
    pub load: Option<Value>,
    pub under: Option<Value>,
}

fn find_policy(name: &str, spot: Spot, collector: &mut Collector) -> Option<&'static PolicyRecord> {
    let policy = policies::by_name(name);
    if policy.is_none() {
        let names: Vec<_> = policies::policies().iter().map(|policy| policy.name).collect();
        let hint = match closest(name, names.iter().copied()) {
            Some(close) => format!("did you mean \"{close}\"? there are {}", listed(&names)),
            None => format!("there are {}", listed(&names)),
        };
        let fault = Fault::new("policy_must_exist", spot, format!("there is no policy `{name}`"));
        collector.add(fault.hint(hint));
    }
    policy
}

/// Value of one parameter, within its range.
fn param_value(what: &str, param: &Param, value: &Value, collector: &mut Collector) -> Option<u64> {
    let number = match param.kind {
        ParamKind::Time | ParamKind::DurationOf(_) => collector.time(what, value)?,
        ParamKind::Count => match &value.kind {
            Kind::Whole(Some(number)) if *number < 0 => {
                out_of_range(what, param, number.to_string(), value.spot, collector);
                return None;
            }
            _ => collector.whole(what, value, 0, i64::MAX)? as u64,
        },
    };
    if !(param.least..=param.most).contains(&number) {
        out_of_range(what, param, show(param, number), value.spot, collector);
        return None;
    }
    Some(number)
}

fn out_of_range(what: &str, param: &Param, value: String, spot: Spot, collector: &mut Collector) {
    let fault = Fault::new("parameter_within_range", spot, format!("{what} is out of range"));
    collector.add(fault.value(value).bound(range(param)));
}

/// The value of a parameter in its unit.
fn show(param: &Param, value: u64) -> String {
    match param.kind {
        ParamKind::Count => value.to_string(),
        _ => show_time(value),
    }
}

/// "1us to 3600s".
fn range(param: &Param) -> String {
    format!("{} to {}", show(param, param.least), show(param, param.most))
}

fn cpu_number(what: &str, value: &Value, cpus: u32, collector: &mut Collector) -> Option<u32> {
    match value.kind {
        Kind::Whole(Some(cpu)) if cpu >= i64::from(cpus) => {
            let fault =
                Fault::new("cpu_must_exist", value.spot, format!("{what} names a CPU the machine has not"));
            let hint =
                "[machine] cpus = … says how many there are; a plan without it has one in check and sim";
            collector.add(fault.value(cpu).bound(format!("0 to {}", cpus - 1)).hint(hint));
            None
        }
        _ => collector.whole(what, value, 0, i64::from(cpus) - 1).map(|cpu| cpu as u32),
    }
}

/// CPUs, ascending; each at most once.
fn cpu_list(what: &str, value: &Value, cpus: u32, collector: &mut Collector) -> Vec<u32> {
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

/// One of `[machine] interrupts`.
fn interrupt(value: &Value, cpus: u32, collector: &mut Collector) -> Option<Interrupt> {
    let table = collector.table("an interrupt", value)?;
    let mut fields = Fields::new("an interrupt", table);
    let cpu = fields.take("cpu").map(|value| cpu_number("`cpu` of an interrupt", value, cpus, collector));
    let every_ns = fields.duration("every", collector);
    let takes = fields.take("takes").map(|value| crate::load::work("`takes`", value, collector));
    let phase_ns = fields.time("phase", collector).unwrap_or(0);
    let arrival = match fields.take("arrival") {
        None => Some(Arrival::Periodic),
        Some(value) => match collector.text("`arrival`", value) {
            Some("periodic") => Some(Arrival::Periodic),
            Some("poisson") => Some(Arrival::Poisson),
            Some(other) => {
                let fault =
                    Fault::new("arrival_must_be_known", value.spot, "interrupts cannot arrive like that");
                collector.add(fault.value(other).hint("\"periodic\" or \"poisson\""));
                None
            }
            None => None,
        },
    };
    fields.finish(collector);
    for (name, missing) in [("every", every_ns.is_none()), ("takes", takes.is_none())] {
        if missing && !table.entries.iter().any(|(key, _)| key.text == name) {
            let fault =
                Fault::new("interrupt_needs_every_and_takes", value.spot, format!("`{name}` is missing"));
            collector.add(fault.hint("{ every = \"1ms\", takes = \"10us\" }"));
        }
    }
    let (every_ns, takes, cpu) = (every_ns?, takes??, cpu.map_or(Some(None), |cpu| cpu.map(Some))?);
    if takes.max_ns() >= every_ns {
        let fault =
            Fault::new("interrupts_must_leave_time", value.spot, "interrupts would take the whole CPU");
        collector.add(fault.value(show_time(takes.max_ns())).bound(show_time(every_ns)));
    }
    Some(Interrupt { cpu, every_ns, takes, phase_ns, arrival: arrival?, spot: value.spot })
}
