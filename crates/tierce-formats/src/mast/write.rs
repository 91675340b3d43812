//! From a plan to a model of MAST.

use super::notation;
use super::tree::{Group, Section};
use super::xml;
use crate::decimal::show;
use crate::flat::{no_such_thing, work, Flat, Member, Order};
use crate::text::{LeftOut, Word};
use std::collections::{BTreeMap, HashMap, HashSet};
use tierce_plan::{Faults, Latency, Load, Plan, Preemption, Protocol, Spot, Work};

/// `plan` as a text; one unit of its times is `unit_ns`.
pub fn write_text(plan: &Plan, unit_ns: u64) -> Result<(String, Vec<LeftOut>), Faults> {
    let (sections, left_out) = sections(plan, unit_ns)?;
    Ok((notation::show(&sections).trim_start().into(), left_out))
}

/// `plan` as a file of XML.
pub fn write_xml(plan: &Plan, unit_ns: u64) -> Result<(String, Vec<LeftOut>), Faults> {
    let (sections, left_out) = sections(plan, unit_ns)?;
    Ok((xml::show(&sections), left_out))
}

/// Names that MAST can have: letters, digits and `_`, and no two alike but for their case.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
}

impl Names {
    fn give(&mut self, wanted: &str) -> String {
        let name: String =
            wanted.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut all = std::iter::once(name.clone()).chain(numbered);
        all.find(|name| self.taken.insert(name.to_ascii_lowercase())).unwrap_or(name)
    }
}

struct Writer<'a> {
    flat: Flat<'a>,
    unit_ns: u64,
    sections: Vec<Section>,
    names: Names,
    /// Of tasks, by index.
    tasks: HashMap<usize, String>,
    locks: Vec<String>,
    schedulers: Vec<String>,
}

fn sections(plan: &Plan, unit_ns: u64) -> Result<(Vec<Section>, Vec<LeftOut>), Faults> {
    let mut flat = Flat::new(plan)?;
    let members = std::mem::take(&mut flat.members);
    if let Some(several) = flat.schedulers.iter().find(|scheduler| scheduler.cpus.len() > 1) {
        let message = "MAST has a scheduler for each CPU, and none for several";
        return Err(no_such_thing(plan, several.node.spot, message));
    }
    let mut names = Names::default();
    let tasks = members.iter().map(|member| (member.index, names.give(&member.task.name))).collect();
    let locks = plan.locks.iter().map(|lock| names.give(&lock.name)).collect();
    let mut writer =
        Writer { flat, unit_ns, sections: Vec::new(), names, tasks, locks, schedulers: Vec::new() };
    writer.platform();
    for member in &members {
        let can_say = writer.flat.schedulers[member.scheduler].order == Order::Priority
            && *member.load.preemption() == Preemption::None;
        if !can_say {
            writer.flat.leave_regions(member);
        }
        writer.server(member);
        writer.operation(member);
    }
    writer.transactions(&members);
    Ok((writer.sections, writer.flat.left_out))
}

impl Writer<'_> {
    fn add(&mut self, kind: &str, of: &str, name: &str) -> &mut Group {
        let mut group = if of.is_empty() { Group::default() } else { Group::new(Word::default(), of) };
        if !name.is_empty() {
            group.put("name", name);
        }
        self.sections.push(Section { kind: kind.into(), group });
        let last = self.sections.len() - 1;
        &mut self.sections[last].group
    }

    fn time(&self, ns: u64) -> String {
        show(ns, self.unit_ns)
    }

    fn platform(&mut self) {
        let plan = self.flat.plan;
        let stem =
            std::path::Path::new(&plan.name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let model = Names::default().give(&stem.unwrap_or_default());
        self.add("model", "", "").put("model_name", model);
        let costs = &plan.machine.costs;
        let (timer, switch) = (self.time(costs.timer_ns), self.time(costs.switch_ns));
        for cpu in 0..plan.machine.cpus {
            let processor = self.add("processing_resource", "regular_processor", &format!("CPU_{cpu}"));
            if costs.timer_ns > 0 {
                let mut clock = Group::new(Word::default(), "alarm_clock");
                clock.put("worst_overhead", timer.clone());
                processor.groups("system_timer", vec![clock]);
            }
        }
        let schedulers: Vec<_> =
            self.flat.schedulers.iter().map(|one| (one.node, one.order, one.cpus[0])).collect();
        for (node, order, cpu) in schedulers {
            let name = self.names.give(&node.name);
            self.schedulers.push(name.clone());
            let mut policy =
                Group::new(Word::default(), if order == Order::Priority { "fixed_priority" } else { "edf" });
            if costs.switch_ns > 0 {
                policy.put("worst_context_switch", switch.clone());
            }
            if order == Order::Priority {
                policy.put("max_priority", "65535");
                policy.put("min_priority", "0");
            }
            let scheduler = self.add("scheduler", "primary_scheduler", &name);
            scheduler.put("host", format!("CPU_{cpu}"));
            scheduler.groups("policy", vec![policy]);
        }
        for (index, lock) in plan.locks.iter().enumerate() {
            let kind = match lock.protocol {
                Protocol::ImmediateCeiling => "immediate_ceiling_resource",
                Protocol::Srp => "srp_resource",
                Protocol::Inheritance => "priority_inheritance_resource",
                _ => {
                    let what = format!("protocol `{}` of `{}`", lock.protocol.name(), lock.name);
                    self.flat.leave(lock.spot, what, "its priority is inherited");
                    "priority_inheritance_resource"
                }
            };
            let name = self.locks[index].clone();
            self.add("shared_resource", kind, &name);
        }
        if plan.machine.worst_migration_ns() > 0 {
            self.flat.leave(Spot::default(), "cost of migrations", "tasks stay on their CPU");
        }
        for interrupt in &plan.machine.interrupts {
            self.flat.leave(
                interrupt.spot,
                "interrupts",
                "MAST has them as activities of a processor's own priority",
            );
        }
    }

    fn server(&mut self, member: &Member) {
        let scheduler = &self.flat.schedulers[member.scheduler];
        let deadline_ns = match member.deadline_ns {
            0 => member.load.deadline_ns(),
            ns => Some(ns),
        };
        let parameters = match (scheduler.order, deadline_ns) {
            (Order::Priority, _) => {
                let whole = *member.load.preemption() == Preemption::None;
                let kind = if whole { "non_preemptible_fp_policy" } else { "fixed_priority_policy" };
                let mut parameters = Group::new(Word::default(), kind);
                parameters.put("the_priority", member.priority.to_string());
                parameters
            }
            (Order::Deadline, deadline_ns) => {
                let mut parameters = Group::new(Word::default(), "edf_policy");
                if let Some(ns) = deadline_ns {
                    parameters.put("deadline", self.time(ns));
                }
                parameters
            }
        };
        let mut parameters = parameters;
        parameters.put("preassigned", "YES");
        let scheduler = self.schedulers[member.scheduler].clone();
        let name = self.tasks[&member.index].clone();
        let server = self.add("scheduling_server", "regular", &name);
        server.groups("server_sched_parameters", vec![parameters]);
        server.put("scheduler", scheduler);
    }

    /// What its jobs do: one simple operation, or pieces with and without locks.
    fn operation(&mut self, member: &Member) {
        let name = self.tasks[&member.index].clone();
        let Some(work) = work(member.load) else { return };
        let (least_ns, most_ns) = (work.min_ns(), work.max_ns());
        let ranged = least_ns < most_ns;
        if matches!(work, Work::List(_)) && ranged {
            let what = format!("list of works of `{}`", member.task.name);
            self.flat.leave(member.task.spot, what, "its least and its most are in its place");
        }
        let mut steps = Vec::new();
        marks(member.load.sections(), 0, &mut steps);
        if steps.is_empty() {
            let (most, least) = (self.time(most_ns), self.time(least_ns));
            let operation = self.add("operation", "simple", &name);
            operation.put("worst_case_execution_time", most);
            // 0 is the preset, and 1 ns in plans.
            if least_ns > 1 {
                operation.put("best_case_execution_time", least);
            }
            return;
        }
        if ranged {
            let what = format!("least work of `{}`", member.task.name);
            self.flat.leave(member.task.spot, what, "jobs that hold locks work the most that they may");
        }
        let mut bounds: Vec<u64> = steps.iter().map(|(at_ns, ..)| *at_ns).chain([0, most_ns]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut pieces = Vec::new();
        for pair in bounds.windows(2) {
            let of = |at_ns: u64, begins: bool| -> Vec<String> {
                let of = |step: &&(u64, bool, usize)| step.0 == at_ns && step.1 == begins;
                steps.iter().filter(of).map(|(_, _, lock)| self.locks[*lock].clone()).collect()
            };
            let (locked, unlocked) = (of(pair[0], true), of(pair[1], false));
            let length = self.time(pair[1] - pair[0]);
            let piece = self.names.give(&format!("{name}_{}", pieces.len() + 1));
            let operation = self.add("operation", "simple", &piece);
            operation.put("worst_case_execution_time", length);
            if !locked.is_empty() && locked.iter().eq(unlocked.iter().rev()) {
                operation.list("shared_resources_list", locked);
            } else {
                if !locked.is_empty() {
                    operation.list("shared_resources_to_lock", locked);
                }
                if !unlocked.is_empty() {
                    operation.list("shared_resources_to_unlock", unlocked);
                }
            }
            pieces.push(piece);
        }
        self.add("operation", "composite", &name).list("composite_operation_list", pieces);
    }

    /// A transaction for each task that has releases of its own, with all that it leads to.
    fn transactions(&mut self, members: &[Member]) {
        let plan = self.flat.plan;
        let mut before: BTreeMap<usize, Vec<(usize, u64)>> = BTreeMap::new();
        let mut nexts: HashMap<usize, Vec<usize>> = HashMap::new();
        for member in members {
            let triggers = self.flat.triggers[member.index].clone();
            for (from, _) in &triggers {
                nexts.entry(*from).or_default().push(member.index);
            }
            before.insert(member.index, triggers);
        }
        let mut needs: HashMap<usize, u64> = HashMap::new();
        for chain in &plan.chains {
            let what = format!("chain `{}`", chain.name);
            let triggered = |task: usize| matches!(plan.tasks[task].load, Some(Load::Triggered(_)));
            if !chain.links[1..].iter().all(|link| triggered(link.task)) {
                self.flat.leave(chain.spot, what, "tasks that read what others wrote last are not known");
                continue;
            }
            let last = chain.links[chain.links.len() - 1].task;
            for need in &chain.needs {
                if need.latency == Latency::Response {
                    let least = needs.entry(last).or_insert(need.most_ns);
                    *least = need.most_ns.min(*least);
                } else {
                    self.flat.leave(
                        need.spot,
                        format!("`{}` of {what}", need.text),
                        "only responses are asked of events",
                    );
                }
            }
        }
        let heads = members.iter().filter(|member| before[&member.index].is_empty());
        for head in heads {
            self.transaction(head, &before, &nexts, &needs);
        }
    }

    /// Name of the transaction that begins with a task: that of its chain.
    fn transaction_name(&mut self, head: &Member) -> String {
        let chain = self.flat.chains_from(head.index).first();
        let wanted = match chain {
            // Several ways through one transaction are numbered.
            Some(chain) => match chain.name.rsplit_once('_') {
                Some((base, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => base.to_string(),
                _ => chain.name.clone(),
            },
            None => format!("{}_flow", head.task.name),
        };
        self.names.give(&wanted)
    }

    fn transaction(
        &mut self,
        head: &Member,
        before: &BTreeMap<usize, Vec<(usize, u64)>>,
        nexts: &HashMap<usize, Vec<usize>>,
        needs: &HashMap<usize, u64>,
    ) {
        let begin = format!("{}_in", self.tasks[&head.index]);
        let (mut internal, mut handlers) = (Vec::new(), Vec::new());
        // In the order in which all that releases a task is there.
        let (mut order, mut at, mut there) = (vec![head.index], 0, HashSet::from([head.index]));
        while at < order.len() {
            for next in nexts.get(&order[at]).into_iter().flatten() {
                let ready = before[next].iter().all(|(from, _)| there.contains(from));
                if ready && there.insert(*next) {
                    order.push(*next);
                }
            }
            at += 1;
        }
        for task in order {
            let name = self.tasks[&task].clone();
            let input = match &before[&task][..] {
                [] => begin.clone(),
                triggers => self.input(task, triggers, nexts, &mut internal, &mut handlers),
            };
            let output = format!("{name}_out");
            let mut activity = Group::new(Word::default(), "activity");
            activity.put("input_event", input);
            activity.put("output_event", output.clone());
            activity.put("activity_operation", name.clone());
            activity.put("activity_server", name.clone());
            handlers.push(activity);
            let requirement = self.requirement(task, head, needs.get(&task).copied());
            let mut event = Group::new(Word::default(), "regular");
            event.put("name", output.clone());
            if let Some((kind, ns)) = requirement {
                let mut requirement = Group::new(Word::default(), kind);
                requirement.put("deadline", self.time(ns));
                requirement.put("referenced_event", begin.clone());
                event.groups("timing_requirements", vec![requirement]);
            }
            internal.push(event);
            let followers = nexts.get(&task).map_or(&[][..], |nexts| nexts);
            if followers.len() > 1 {
                let events: Vec<_> =
                    followers.iter().map(|next| format!("{name}_to_{}", self.tasks[next])).collect();
                internal.extend(events.iter().map(|name| plain_event(name)));
                let mut fork = Group::new(Word::default(), "multicast");
                fork.put("input_event", output);
                fork.list("output_events_list", events);
                handlers.push(fork);
            }
        }
        let external = self.external(head, &begin);
        let name = self.transaction_name(head);
        let transaction = self.add("transaction", "regular", &name);
        transaction.groups("external_events", vec![external]);
        transaction.groups("internal_events", internal);
        transaction.groups("event_handlers", handlers);
    }

    /// The event that releases a task: that of the one before it, later by its delay, or of all of them.
    fn input(
        &self,
        task: usize,
        triggers: &[(usize, u64)],
        nexts: &HashMap<usize, Vec<usize>>,
        internal: &mut Vec<Group>,
        handlers: &mut Vec<Group>,
    ) -> String {
        let name = &self.tasks[&task];
        let mut inputs = Vec::new();
        for (from, delay_ns) in triggers {
            let from_name = &self.tasks[from];
            let forks = nexts[from].len() > 1;
            let mut event = if forks { format!("{from_name}_to_{name}") } else { format!("{from_name}_out") };
            if *delay_ns > 0 {
                let late = format!("{from_name}_late_{name}");
                let mut delay = Group::new(Word::default(), "delay");
                delay.put("input_event", event);
                delay.put("output_event", late.clone());
                delay.put("delay_max_interval", self.time(*delay_ns));
                delay.put("delay_min_interval", self.time(*delay_ns));
                handlers.push(delay);
                internal.push(plain_event(&late));
                event = late;
            }
            inputs.push(event);
        }
        match inputs.pop() {
            Some(one) if inputs.is_empty() => one,
            last => {
                inputs.extend(last);
                let all = format!("{name}_ready");
                let mut join = Group::new(Word::default(), "barrier");
                join.list("input_events_list", inputs);
                join.put("output_event", all.clone());
                handlers.push(join);
                internal.push(plain_event(&all));
                all
            }
        }
    }

    /// What is asked of the end of a task.
    fn requirement(&self, task: usize, head: &Member, within_ns: Option<u64>) -> Option<(&'static str, u64)> {
        if task != head.index {
            return within_ns.map(|ns| ("hard_global_deadline", ns));
        }
        let deadline_ns = head.load.deadline_ns()?;
        let of_bursts = match head.load {
            Load::Sporadic(load) => load.further_ns.last().copied(),
            _ => None,
        };
        match (head.load.is_soft(), of_bursts.or(head.load.shortest_period_ns())) {
            (false, _) => Some(("hard_global_deadline", deadline_ns)),
            // Not even that is asked.
            (true, Some(period_ns)) if period_ns == deadline_ns => None,
            (true, _) => Some(("soft_global_deadline", deadline_ns)),
        }
    }

    fn external(&mut self, head: &Member, name: &str) -> Group {
        let kind = match head.load {
            load if load.is_bursty() => "bursty",
            Load::Sporadic(_) => "sporadic",
            _ => "periodic",
        };
        let mut external = Group::new(Word::default(), kind);
        external.put("name", name);
        match head.load {
            Load::Periodic(load) => {
                external.put("period", self.time(load.period_ns));
                if load.jitter_ns > 0 {
                    external.put("max_jitter", self.time(load.jitter_ns));
                }
                if load.phase_ns > 0 {
                    external.put("phase", self.time(load.phase_ns));
                }
            }
            Load::Sporadic(load) => {
                match load.further_ns.last() {
                    // No more jobs come in a window as long as the last separation than there are separations.
                    Some(last_ns) => {
                        external.put("bound_interval", self.time(*last_ns));
                        external.put("max_arrivals", (load.further_ns.len() + 1).to_string());
                        if load.separation_ns > 1 || load.further_ns.iter().rev().skip(1).any(|ns| *ns > 1) {
                            let what = format!("all but the last `separation` of `{}`", head.task.name);
                            self.flat.leave(head.task.spot, what, "as many events may come at once");
                        }
                    }
                    None => external.put("min_interarrival", self.time(load.separation_ns)),
                }
                if load.extra_ns > 0 || load.phase_ns > 0 {
                    let what = format!("`extra` and `phase` of `{}`", head.task.name);
                    self.flat.leave(head.task.spot, what, "events come as often as they may");
                }
            }
            Load::Busy | Load::Triggered(_) | Load::Phases(_) | Load::Stages(_) => {}
        }
        external
    }
}

/// An internal event of which nothing is asked.
fn plain_event(name: &str) -> Group {
    let mut event = Group::new(Word::default(), "regular");
    event.put("name", name);
    event
}

/// Where sections begin and end, outer ones around inner ones: time, whether it begins, lock.
fn marks(sections: &[tierce_plan::Section], from_ns: u64, steps: &mut Vec<(u64, bool, usize)>) {
    for section in sections {
        let at_ns = from_ns + section.at_ns;
        steps.push((at_ns, true, section.lock));
        marks(&section.sections, at_ns, steps);
        steps.push((at_ns + section.length_ns, false, section.lock));
    }
}
