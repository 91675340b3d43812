//! Processors, schedulers and scheduling servers: the nodes of a plan, and the edges below them.

use super::notation::quoted;
use super::tree::{of_kind, Group, Section};
use crate::decimal::{Decimal, Round};
use crate::draft::{Draft, Node};
use crate::flat::Order;
use crate::text::{Refusal, Text, Word};
use std::collections::{BTreeSet, HashMap};
use tierce_plan::show_time;

/// Schedulers within schedulers: a plan has eight levels.
const LEVELS_MAX: usize = 4;

/// A processor.
#[derive(Clone, Copy)]
struct Cpu {
    number: usize,
    /// One unit of its execution times in ns.
    unit: Decimal,
    /// Of a network: one bit in ns.
    bit: Option<Decimal>,
}

/// A node of the plan.
#[derive(Clone)]
struct Scheduler {
    node: String,
    order: Order,
    cpu: Cpu,
    level: usize,
}

/// Where a task is that belongs to a server.
#[derive(Clone)]
pub struct Server {
    /// As the file has it.
    pub name: String,
    /// Its node, and the parameters of an edge below that.
    pub node: String,
    pub edge: Vec<(&'static str, String)>,
    /// What it does is not preempted.
    pub whole: bool,
    pub order: Order,
    pub cpu: usize,
    /// One unit of execution times in ns.
    pub unit: Decimal,
    /// Of a network: one bit in ns.
    pub bit: Option<Decimal>,
    level: usize,
}

pub struct Platform<'a> {
    text: &'a Text,
    unit: Decimal,
    cpus: HashMap<String, Cpu>,
    schedulers: HashMap<String, Scheduler>,
    /// By name in lower case.
    pub servers: HashMap<String, Server>,
    /// Of priorities that plans do not have: all of them, in order.
    ranks: Option<Vec<i64>>,
}

impl<'a> Platform<'a> {
    /// The nodes of `sections`, in `draft`.
    pub fn new(
        text: &'a Text,
        unit: Decimal,
        sections: &[Section],
        draft: &mut Draft,
    ) -> Result<Self, Refusal> {
        let (cpus, schedulers, servers) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut platform = Self { text, unit, cpus, schedulers, servers, ranks: None };
        let of = |kind| of_kind(sections, kind);
        platform.ranks(of("scheduling_server"))?;
        for resource in of("processing_resource") {
            platform.processor(resource, draft)?;
        }
        if draft.cpus == 0 {
            return Err(text.fault("processor_must_be_given", 0..0, "there is no `Processing_Resource`"));
        }
        for scheduler in of("scheduler").filter(|group| group.kind() != "secondary_scheduler") {
            platform.primary(scheduler, draft)?;
        }
        let mut waiting: Vec<(&Group, bool)> = of("scheduling_server").map(|group| (group, false)).collect();
        waiting.extend(
            of("scheduler").filter(|group| group.kind() == "secondary_scheduler").map(|group| (group, true)),
        );
        // A server may be of a scheduler that another server runs.
        for _ in 0..=2 * LEVELS_MAX {
            let mut later = Vec::new();
            for (group, secondary) in std::mem::take(&mut waiting) {
                let done = match secondary {
                    true => platform.secondary(group, draft)?,
                    false => platform.server(group, draft)?,
                };
                if !done {
                    later.push((group, secondary));
                }
            }
            waiting = later;
        }
        match waiting.first() {
            None => Ok(platform),
            Some((group, _)) => {
                let message = "its scheduler is not there, or too far below a processor";
                let fault = text.fault("scheduler_must_exist", group.at.at.clone(), message);
                Err(fault.bound(format!("{LEVELS_MAX} levels")))
            }
        }
    }

    fn name<'g>(&self, group: &'g Group) -> Result<(&'g Word, String), Refusal> {
        let name = group.need("name", self.text)?;
        Ok((name, name.text.to_ascii_lowercase()))
    }

    /// Whether all priorities can be those of a plan.
    fn ranks<'g>(&mut self, servers: impl Iterator<Item = &'g Group>) -> Result<(), Refusal> {
        let mut all = BTreeSet::new();
        for parameters in servers.flat_map(|server| server.parts("server_sched_parameters")) {
            for key in ["the_priority", "normal_priority"] {
                if let Some(word) = parameters.get(key) {
                    all.insert(self.priority_in_file(word)?);
                }
            }
        }
        if all.iter().any(|priority| !(0..=65_535).contains(priority)) {
            self.ranks = Some(all.into_iter().collect());
        }
        Ok(())
    }

    fn priority_in_file(&self, word: &Word) -> Result<i64, Refusal> {
        word.text.parse().map_err(|_| {
            let fault =
                self.text.fault("number_must_be_whole", word.at.clone(), "a priority is a whole number");
            fault.value(crate::text::short(&word.text))
        })
    }

    /// As plans have it.
    fn priority(&self, group: &Group, key: &str, draft: &mut Draft) -> Result<String, Refusal> {
        let Some(word) = group.get(key) else {
            let why = "MAST's tools would choose one: it has the lowest";
            draft.left_out.push(self.text.left_out(&group.at.at, "a priority that is not given", why));
            return Ok("0".into());
        };
        let priority = self.priority_in_file(word)?;
        match &self.ranks {
            None => Ok(priority.to_string()),
            Some(ranks) => Ok(ranks.partition_point(|other| *other < priority).min(65_535).to_string()),
        }
    }

    fn processor(&mut self, group: &Group, draft: &mut Draft) -> Result<(), Refusal> {
        let (name, key) = self.name(group)?;
        let speed = group.get("speed_factor").map(|word| self.text.number(word)).transpose()?;
        let unit = self.unit.by(speed.unwrap_or(Decimal::new(1, 1)));
        let unit = unit.ok_or_else(|| {
            self.text.fault(
                "speed_must_not_be_zero",
                name.at.clone(),
                "a processor of this speed never does anything",
            )
        })?;
        let throughput = group.get("throughput").map(|word| self.text.number(word)).transpose()?;
        let bit = throughput.and_then(|throughput| unit.by(throughput));
        let cpu = Cpu { number: draft.cpus, unit, bit };
        if draft.cpus >= tierce_policy::CPUS_MAX as usize {
            let fault =
                self.text.fault("too_many_processors", name.at.clone(), "there are too many processors");
            return Err(fault.bound(tierce_policy::CPUS_MAX));
        }
        if self.cpus.insert(key.clone(), cpu).is_some() {
            return Err(self.text.fault(
                "name_must_be_unique",
                name.at.clone(),
                "there is one more of this name",
            ));
        }
        draft.cpus += 1;
        match &group.kind()[..] {
            "regular_processor" => {}
            "fixed_priority_processor" => {
                // Of older files: the processor is its scheduler.
                self.root(group, name, key, Order::Priority, cpu, draft)?;
            }
            "fixed_priority_network" | "packet_based_network" => {
                let why = "it is a CPU here whose packets can be preempted: bounds lack the blocking by one of them";
                draft.left_out.push(self.text.left_out(&name.at, format!("network {}", quoted(name)), why));
                if group.kind() == "fixed_priority_network" {
                    self.root(group, name, key, Order::Priority, cpu, draft)?;
                }
            }
            other => {
                let fault = self.text.fault(
                    "processor_must_be_known",
                    name.at.clone(),
                    "there is no such kind of processor",
                );
                return Err(fault.value(other));
            }
        }
        self.switch(group, unit, draft)?;
        let isr = group
            .get("worst_isr_switch")
            .map(|word| self.text.amount(word, self.unit, Round::Up))
            .transpose()?;
        if isr.is_some_and(|ns| ns > 0) {
            let why = "interrupts have no costs but the time that they take";
            draft.left_out.push(self.text.left_out(&name.at, "`Worst_ISR_Switch`", why));
        }
        for timer in group.parts("system_timer") {
            self.timer(timer, cpu, draft)?;
        }
        Ok(())
    }

    fn timer(&self, timer: &Group, cpu: Cpu, draft: &mut Draft) -> Result<(), Refusal> {
        let time = |key: &str, unit, round| match timer.get(key) {
            Some(word) => self.text.amount(word, unit, round),
            None => Ok(0),
        };
        let takes_ns = time("worst_overhead", cpu.unit, Round::Up)?;
        if timer.kind() != "ticker" {
            draft.timer_ns = draft.timer_ns.max(takes_ns);
            return Ok(());
        }
        let every_ns = time("period", self.unit, Round::Down)?;
        if takes_ns > 0 && takes_ns < every_ns {
            draft.interrupts.push((cpu.number, every_ns, takes_ns));
        }
        let why = "tasks that wait for the tick are released late there, here at once";
        draft.left_out.push(self.text.left_out(
            &timer.at.at,
            format!("tick of {}", show_time(every_ns)),
            why,
        ));
        Ok(())
    }

    /// An execution time, as that of operations: of a processor of speed 1.
    fn switch(&self, group: &Group, unit: Decimal, draft: &mut Draft) -> Result<(), Refusal> {
        let Some(word) = group.get("worst_context_switch") else { return Ok(()) };
        let ns = self.text.amount(word, unit, Round::Up)?;
        if draft.switch_ns > 0 && draft.switch_ns != ns {
            let what = "costs of switches that differ by CPU";
            draft.left_out.push(self.text.left_out(&word.at, what, "all have the largest"));
        }
        draft.switch_ns = draft.switch_ns.max(ns);
        Ok(())
    }

    fn primary(&mut self, group: &Group, draft: &mut Draft) -> Result<(), Refusal> {
        let (name, key) = self.name(group)?;
        let host = group.need("host", self.text)?;
        let cpu = self.cpus.get(&host.text.to_ascii_lowercase()).copied().ok_or_else(|| {
            let fault = self.text.fault(
                "processor_must_exist",
                host.at.clone(),
                "there is no processor of this name",
            );
            fault.value(&host.text)
        })?;
        if self.schedulers.values().any(|other| other.level == 0 && other.cpu.number == cpu.number) {
            let message = "this processor has a scheduler already";
            return Err(self
                .text
                .fault("processor_must_be_free", host.at.clone(), message)
                .value(&host.text));
        }
        let order = self.order(group, cpu.unit, draft)?;
        self.root(group, name, key, order, cpu, draft)
    }

    /// By its policy.
    fn order(&self, group: &Group, unit: Decimal, draft: &mut Draft) -> Result<Order, Refusal> {
        let policy = group.parts("policy").first();
        if let Some(policy) = policy {
            self.switch(policy, unit, draft)?;
        }
        match policy.map(Group::kind).as_deref() {
            Some("edf") => Ok(Order::Deadline),
            Some("fixed_priority" | "fp_packet_based") | None => Ok(Order::Priority),
            Some(other) => {
                let fault =
                    self.text.fault("policy_must_be_known", group.at.at.clone(), "there is no such policy");
                Err(fault.value(other).bound("Fixed_Priority or EDF"))
            }
        }
    }

    /// The root of a CPU.
    fn root(
        &mut self,
        group: &Group,
        name: &Word,
        key: String,
        order: Order,
        cpu: Cpu,
        draft: &mut Draft,
    ) -> Result<(), Refusal> {
        let lines = vec![("cpu".to_string(), cpu.number.to_string())];
        self.node(group, name, key, Scheduler { node: String::new(), order, cpu, level: 0 }, lines, draft)
    }

    fn node(
        &mut self,
        group: &Group,
        name: &Word,
        key: String,
        mut scheduler: Scheduler,
        lines: Vec<(String, String)>,
        draft: &mut Draft,
    ) -> Result<(), Refusal> {
        let (node, comment) = draft.name(&name.text);
        let policy = match scheduler.order {
            Order::Priority => "fixed-priority",
            Order::Deadline => "edf",
        };
        draft.nodes.push(Node { name: node.clone(), comment, policy, lines });
        scheduler.node = node;
        match self.schedulers.insert(key, scheduler) {
            None => Ok(()),
            Some(_) => Err(self.text.fault(
                "name_must_be_unique",
                group.at.at.clone(),
                "there is one more of this name",
            )),
        }
    }

    /// A scheduler that a server runs; `false`: that one is not there yet.
    fn secondary(&mut self, group: &Group, draft: &mut Draft) -> Result<bool, Refusal> {
        let (name, key) = self.name(group)?;
        let server = group.need("server", self.text)?;
        let Some(server) = self.servers.get(&server.text.to_ascii_lowercase()).cloned() else {
            return Ok(false);
        };
        let order = self.order(group, server.unit, draft)?;
        let cpu = Cpu { number: server.cpu, unit: server.unit, bit: server.bit };
        let scheduler = Scheduler { node: String::new(), order, cpu, level: server.level + 1 };
        if scheduler.level > LEVELS_MAX {
            return Ok(false);
        }
        let lines = vec![under(&server.node, &server.edge)];
        self.node(group, name, key, scheduler, lines, draft)?;
        Ok(true)
    }

    /// `false`: its scheduler is not there yet.
    fn server(&mut self, group: &Group, draft: &mut Draft) -> Result<bool, Refusal> {
        let (name, key) = self.name(group)?;
        let scheduler = match group.get("scheduler") {
            Some(scheduler) => scheduler,
            None => group.need("server_processing_resource", self.text)?,
        };
        let Some(scheduler) = self.schedulers.get(&scheduler.text.to_ascii_lowercase()).cloned() else {
            return Ok(false);
        };
        let Scheduler { node, order, cpu, level } = scheduler;
        let (name, at) = (name.text.clone(), name.at.clone());
        let mut server = Server {
            whole: false,
            name,
            node,
            edge: Vec::new(),
            order,
            cpu: cpu.number,
            unit: cpu.unit,
            bit: cpu.bit,
            level,
        };
        let none = Group { at: group.at.clone(), fields: Vec::new() };
        let parameters = group.parts("server_sched_parameters").first().unwrap_or(&none);
        self.parameters(&mut server, parameters, draft)?;
        match self.servers.insert(key, server) {
            None => Ok(true),
            Some(_) => Err(self.text.fault("name_must_be_unique", at, "there is one more of this name")),
        }
    }

    fn parameters(&self, server: &mut Server, parameters: &Group, draft: &mut Draft) -> Result<(), Refusal> {
        let kind = parameters.kind();
        let mut leave = |why: &str| {
            let what = format!("policy `{}` of `{}`", super::notation::title(&kind), server.name);
            draft.left_out.push(self.text.left_out(&parameters.at.at, what, why));
        };
        match (&kind[..], server.order) {
            ("edf_policy", Order::Deadline) => {
                let deadline =
                    parameters.get("deadline").map(|word| self.text.amount(word, self.unit, Round::Down));
                let deadline_ns = deadline.transpose()?.unwrap_or(0);
                if deadline_ns > 0 {
                    server.edge.push(("deadline", format!("\"{}\"", show_time(deadline_ns))));
                }
                return Ok(());
            }
            (_, Order::Deadline) => {
                leave("its scheduler goes by deadlines: it has that of its transaction");
                return Ok(());
            }
            ("sporadic_server_policy", _) => return self.sporadic(server, parameters, draft),
            ("fixed_priority_policy", _) => {}
            ("non_preemptible_fp_policy" | "nonpreemptible_fp_policy", _) => server.whole = true,
            ("interrupt_fp_policy", _) => leave("it is a task of its priority"),
            ("polling_policy", _) => {
                leave("it looks for events at once, not at the next poll: bounds lack that wait")
            }
            _ => leave("it has a priority instead"),
        }
        let priority = self.priority(parameters, "the_priority", draft)?;
        server.edge.push(("priority", priority));
        Ok(())
    }

    /// A budget of its own, in which its tasks are.
    fn sporadic(&self, server: &mut Server, parameters: &Group, draft: &mut Draft) -> Result<(), Refusal> {
        let limit = |word: &Word, round| {
            let ns = self.text.amount(word, self.unit, round)?;
            if (1_000..=3_600_000_000_000).contains(&ns) {
                return Ok(ns);
            }
            let fault =
                self.text.fault("budget_must_fit", word.at.clone(), "plans have no such budgets or periods");
            Err(fault.value(show_time(ns)).bound("1us to 3600s"))
        };
        let word = parameters.need("initial_capacity", self.text)?;
        let budget_ns = limit(word, Round::Down)?;
        let period_ns = limit(parameters.need("replenishment_period", self.text)?, Round::Down)?;
        if budget_ns > period_ns {
            let fault =
                self.text.fault("budget_must_fit", word.at.clone(), "the budget is larger than its period");
            return Err(fault.value(show_time(budget_ns)).bound(show_time(period_ns)));
        }
        if let Some(word) = parameters.get("background_priority") {
            let why = "without budget its tasks wait";
            let what = format!("background priority of `{}`", server.name);
            draft.left_out.push(self.text.left_out(&word.at, what, why));
        }
        let priority = self.priority(parameters, "normal_priority", draft)?;
        let budget = draft.name(&format!("{}_budget", server.name)).0;
        let settings = [("order", "\"fixed-priority\""), ("replenishment", "\"sporadic\"")];
        let mut lines: Vec<_> = settings.map(|(key, value)| (key.to_string(), value.to_string())).into();
        lines.push(under(&server.node, &[("priority", priority)]));
        draft.nodes.push(Node { name: budget.clone(), comment: None, policy: "reservation", lines });
        let tasks = draft.name(&format!("{}_tasks", server.name)).0;
        let given = |ns| format!("\"{}\"", show_time(ns));
        let lines = vec![under(&budget, &[("budget", given(budget_ns)), ("period", given(period_ns))])];
        draft.nodes.push(Node { name: tasks.clone(), comment: None, policy: "fixed-priority", lines });
        server.node = tasks;
        server.edge = vec![("priority", "0".into())];
        server.level += 2;
        Ok(())
    }
}

/// The line that says what a node is below.
fn under(node: &str, edge: &[(&'static str, String)]) -> (String, String) {
    let edge: Vec<_> = edge.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let edge = if edge.is_empty() { "{}".into() } else { format!("{{ {} }}", edge.join(", ")) };
    (format!("under.{node}"), edge)
}
