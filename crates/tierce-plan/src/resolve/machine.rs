//! `[machine]`, `[run]` and `[defaults]`.

use super::matching;
use super::names::{cpu_list, cpu_number, find_policy};
use super::params::param_value;
use super::state::Resolver;
use crate::model::topology::{groups_of, Topology, LEVELS};
use crate::model::*;
use crate::policies;
use crate::text::faults::Fault;
use crate::text::tree::{Collector, Fields, Kind, Table, Value};
use crate::text::units::show_time;
use tierce_policy::Cpus;

impl Resolver {
    pub(super) fn machine(&mut self, table: &Table) {
        let mut fields = Fields::new("`[machine]`", table);
        let collector = &mut self.collector;
        let machine = &mut self.plan.machine;
        if let Some(cpus) = fields.whole("cpus", 1, i64::from(policies::limits().cpus), collector) {
            machine.named = cpus as u32;
            machine.cpus = machine.cpus.max(machine.named);
        }
        machine.epoch_ns = fields.time("epoch", collector).unwrap_or(0);
        if let Some(value) = fields.take("phases") {
            match collector.text("`phases`", value) {
                Some("any") => {}
                Some("known") => machine.phases_known = true,
                Some(other) => collector.add(
                    Fault::new("phases_must_be_known_or_any", value.spot, "`phases` of `[machine]` cannot be that")
                        .value(other)
                        .bound("\"any\" or \"known\"")
                        .hint("\"any\": bounds hold whenever jobs come; \"known\": only if first jobs come at the `phase` of their loads"),
                ),
                None => {}
            }
        }
        if let Some(table) = fields.take("costs").and_then(|value| collector.table("`costs`", value)) {
            let mut fields = Fields::new("`costs`", table);
            let migration = fields.take("migration").map(|value| migration_costs(value, collector));
            let mut cost = |name| fields.time(name, collector).unwrap_or(0);
            machine.costs = Costs {
                switch_ns: cost("switch"),
                timer_ns: cost("timer"),
                migration: migration.unwrap_or_default(),
                level_ns: cost("level"),
            };
            fields.finish(collector);
        }
        if let Some(value) = fields.take("topology") {
            machine.topology = topology(value, machine.cpus, collector);
        }
        if let Some(most) = fields.whole("switches_max", 1, i64::MAX, collector) {
            machine.switches_max = most as u64;
        }
        let cpus = machine.named;
        if let Some(value) = fields.take("interrupts") {
            let items = collector.one_or_more(value);
            machine.interrupts = items.iter().filter_map(|item| interrupt(item, cpus, collector)).collect();
        }
        fields.finish(collector);
    }

    pub(super) fn run_options(&mut self, table: &Table) {
        let collector = &mut self.collector;
        let mut fields = Fields::new("`[run]`", table);
        let limit = RunOptions::default().watchdog_ns;
        if let Some(value) = fields.take("watchdog") {
            if let Some(ns) = collector.duration("`watchdog`", value) {
                if ns > limit {
                    let message = "`watchdog` of `[run]` is longer than the kernel's limit";
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
                    Fault::new("throttle_must_be_known", value.spot, "`throttle` of `[run]` cannot be that")
                        .value(other)
                        .bound("\"anywhere\" or \"user\"")
                        .hint("\"anywhere\" is precise; \"user\" never stops a thread that holds a lock of the kernel"),
                ),
                None => {}
            }
        }
        self.plan.run.inherits = inherits(&mut fields, self.plan.run.throttle, collector);
        self.plan.run.marks = marks(&mut fields, collector);
        self.plan.run.trusts_names = matching::trust("`[run]`", &mut fields, collector);
        if let Some(value) = fields.take("other_cpus") {
            match collector.text("`other_cpus`", value) {
                Some("default") => self.plan.run.other_cpus = OtherCpus::Default,
                Some("refuse") => self.plan.run.other_cpus = OtherCpus::Refuse,
                Some(other) => collector.add(
                    Fault::new("other_cpus_must_be_known", value.spot, "other CPUs cannot run that")
                        .value(other)
                        .hint("\"default\": a replica of the default node each; \"refuse\": the plan names a root for each"),
                ),
                None => {}
            }
        }
        if let Some(value) = fields.take("policies") {
            self.plan.run.policies = match &value.kind {
                Kind::Text(text) if text == "all" => policies::all(),
                _ => collector
                    .one_or_more(value)
                    .iter()
                    .filter_map(|item| {
                        let name = collector.text("`policies`", item)?;
                        Some(1 << find_policy(name, item.spot, collector)?.number)
                    })
                    .fold(0, |mask, bit: u64| mask | bit),
            };
        }
        fields.finish(collector);
    }

    pub(super) fn preset(&mut self, table: &Table) {
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
                        self.plan.defaults.insert((policy.name, param.name), number);
                    }
                }
            }
            fields.finish(&mut self.collector);
        }
    }
}

/// `costs.migration`: a time, or one for each distance. What is left out costs as much as the next nearer distance.
fn migration_costs(value: &Value, collector: &mut Collector) -> MigrationCosts {
    if !matches!(value.kind, Kind::Table(_)) {
        return collector.time("`migration` of `costs`", value).unwrap_or(0).into();
    }
    let Some(table) = collector.table("`migration` of `costs`", value) else {
        return MigrationCosts::default();
    };
    let mut fields = Fields::new("`migration` of `costs`", table);
    let mut nearer = ("", 0);
    let costs = ["smt", "cache", "node", "other"].map(|name| {
        let Some(given) = fields.take(name) else { return nearer.1 };
        let Some(ns) = collector.time(&format!("`{name}` of `migration`"), given) else { return nearer.1 };
        if ns < nearer.1 {
            let message = format!("a migration by `{name}` costs less than by `{}`", nearer.0);
            let fault = Fault::new("migration_costs_must_not_fall", given.spot, message);
            let hint = "the distances, in this order, are smt, cache, node, other";
            collector.add(fault.value(show_time(ns)).bound(show_time(nearer.1)).hint(hint));
        }
        nearer = (name, ns.max(nearer.1));
        nearer.1
    });
    fields.finish(collector);
    let [smt_ns, cache_ns, node_ns, other_ns] = costs;
    MigrationCosts { smt_ns, cache_ns, node_ns, other_ns }
}

/// `[machine] topology`.
fn topology(value: &Value, cpus: u32, collector: &mut Collector) -> Option<Topology> {
    let table = collector.table("`topology`", value)?;
    let mut fields = Fields::new("`topology`", table);
    let mut found = Topology::flat(cpus);
    let faults = collector.faults.len();
    // Of the level before: its key and its group of each CPU.
    let mut inner: Option<(&str, Vec<Cpus>)> = None;
    for (name, _) in LEVELS {
        let Some(given) = fields.take(name) else { continue };
        let what = format!("`{name}` of `topology`");
        let Some(groups) = groups(&what, given, cpus, collector) else { continue };
        if let Some((before, smaller)) = inner.as_ref().filter(|_| collector.faults.len() == faults) {
            if let Some(cpu) = (0..cpus as usize).find(|&cpu| !smaller[cpu].are_within(groups[cpu])) {
                let message = format!(
                    "`{before}` and `{name}` do not nest: CPUs that share the former share the latter"
                );
                let fault =
                    Fault::new("topology_must_nest", given.spot, message).value(show_cpus(groups[cpu]));
                collector.add(fault.bound(format!("all of {}", show_cpus(smaller[cpu]))));
            }
        }
        for (near, group) in found.near.iter_mut().zip(&groups) {
            match name {
                "smt" => near.core = *group,
                "cache" => near.cache = *group,
                _ => near.memory = *group,
            }
        }
        inner = Some((name, groups));
    }
    fields.finish(collector);
    found.near.iter_mut().for_each(|near| near.cache &= near.memory);
    Some(found)
}

/// The group of each CPU: so many consecutive ones, or lists. A CPU that no list names is alone.
fn groups(what: &str, value: &Value, cpus: u32, collector: &mut Collector) -> Option<Vec<Cpus>> {
    if !matches!(value.kind, Kind::List(_)) {
        let size = collector.whole(what, value, 1, i64::from(policies::limits().cpus))?;
        return Some(groups_of(size as u32, cpus));
    }
    let mut groups: Vec<Cpus> = (0..cpus).map(Cpus::only).collect();
    let mut named = Cpus::NONE;
    for list in collector.list(what, value)? {
        let members = cpu_list(what, list, cpus, collector);
        let group: Cpus = members.iter().collect();
        if let Some(cpu) = (named & group).lowest() {
            let message = format!("{what} has a CPU in two groups");
            let fault = Fault::new("cpu_is_in_one_group", list.spot, message);
            collector.add(fault.value(cpu));
        }
        named |= group;
        members.iter().for_each(|&cpu| groups[cpu as usize] = group);
    }
    Some(groups)
}

fn show_cpus(set: Cpus) -> String {
    format!("{:?}", set.iter().collect::<Vec<u32>>())
}

/// `locks = "inheritance"`.
fn inherits(fields: &mut Fields, throttle: ThrottleAt, collector: &mut Collector) -> bool {
    let Some(value) = fields.take("locks") else { return false };
    let inherits = match collector.text("`locks`", value) {
        Some("inheritance") => true,
        None | Some("none") => false,
        Some(other) => {
            let fault =
                Fault::new("run_locks_must_be_known", value.spot, "`locks` of `[run]` cannot be that");
            collector.add(
                fault
                    .value(other)
                    .bound("\"none\" or \"inheritance\"")
                    .hint("\"inheritance\": who has a lock runs in the place of who waits for it"),
            );
            false
        }
    };
    if inherits && throttle == ThrottleAt::User {
        let message = "`throttle = \"user\"` and `locks = \"inheritance\"` do not go together";
        let hint = "with inheritance a thread that is throttled within a lock goes on for those who wait for it: leave `throttle` out";
        collector.add(Fault::new("inheritance_needs_throttle_anywhere", value.spot, message).hint(hint));
    }
    inherits
}

/// `marks = ["libtierce.so.0", "/opt/robot/camera"]`.
fn marks(fields: &mut Fields, collector: &mut Collector) -> Vec<String> {
    let Some(value) = fields.take("marks") else { return Vec::new() };
    let mut files = Vec::new();
    for item in collector.one_or_more(value) {
        let Some(file) = collector.text("`marks`", item) else { continue };
        if file.is_empty() || file.contains('\0') || (file.contains('/') && !file.starts_with('/')) {
            let message = "`marks` of `[run]` names files whose programs write marks";
            let fault = Fault::new("marks_must_name_files", item.spot, message).value(file);
            collector.add(fault.bound("the name of a library, or an absolute path"));
        } else if !files.iter().any(|known| known == file) {
            files.push(file.to_string());
        }
    }
    files
}

/// One of `[machine] interrupts`.
fn interrupt(value: &Value, cpus: u32, collector: &mut Collector) -> Option<Interrupt> {
    let table = collector.table("an interrupt", value)?;
    let mut fields = Fields::new("an interrupt", table);
    let cpu = fields.take("cpu").map(|value| cpu_number("`cpu` of an interrupt", value, cpus, collector));
    let every_ns = fields.duration("every", collector);
    let takes = fields.take("takes").map(|value| crate::resolve::load::work("`takes`", value, collector));
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
