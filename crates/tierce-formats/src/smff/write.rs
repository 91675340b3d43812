//! From a plan to a system of SMFF.

use crate::decimal::Round;
use crate::flat::{no_such_thing, work, Flat, Member, Order, Scheduler};
use crate::text::LeftOut;
use crate::xml::escaped;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use tierce_plan::{show_time, Faults, Latency, Load, Plan, Preemption, Spot};

struct Writer<'a> {
    flat: Flat<'a>,
    unit_ns: u64,
    text: String,
    /// The largest priority there is: SMFF's smallest number.
    most: u64,
}

/// `plan` as a file; one unit of its times is `unit_ns`.
pub fn write(plan: &Plan, unit_ns: u64) -> Result<(String, Vec<LeftOut>), Faults> {
    let mut flat = Flat::new(plan)?;
    let unknown = |one: &Scheduler| one.order == Order::Deadline || one.cpus.len() > 1;
    if flat.schedulers.iter().any(unknown) {
        flat.keep_those_in_use();
    }
    let members = std::mem::take(&mut flat.members);
    if let Some(other) = flat.schedulers.iter().find(|one| unknown(one)) {
        let message = "SMFF has schedulers by priority, one for each CPU";
        return Err(no_such_thing(plan, other.node.spot, message));
    }
    // Either all tasks of a resource can be preempted, or none.
    let is_whole = |id: usize| {
        let mut of = members.iter().filter(|member| member.scheduler == id).peekable();
        of.peek().is_some() && of.all(|member| *member.load.preemption() == Preemption::None)
    };
    let whole: Vec<bool> = (0..flat.schedulers.len()).map(is_whole).collect();
    members.iter().for_each(|member| flat.leave_bursts(member));
    members.iter().filter(|member| !whole[member.scheduler]).for_each(|member| flat.leave_regions(member));
    let most = members.iter().map(|member| member.priority).max().unwrap_or(0);
    let mut writer = Writer { flat, unit_ns, text: String::new(), most };
    writer.text += "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<SystemModel>\n  <Platform>\n";
    for (id, scheduler) in writer.flat.schedulers.iter().enumerate() {
        let (name, kind) = (escaped(&scheduler.node.name), if whole[id] { "SPNP" } else { "SPP" });
        let _ = writeln!(
            writer.text,
            "    <Resource resID=\"{id}\" shortName=\"{name}\"><Scheduler name=\"{kind}Scheduler\"/></Resource>"
        );
    }
    writer.text += "  </Platform>\n  <Applications>\n";
    writer.applications(&members);
    writer.text += "  </Applications>\n</SystemModel>\n";
    writer.machine();
    Ok((writer.text, writer.flat.left_out))
}

impl Writer<'_> {
    /// A time of a task, in whole units: SMFF has no others.
    fn time(&mut self, member: &Member, key: &str, ns: u64, round: Round) -> u64 {
        let units = match round {
            Round::Up => ns.div_ceil(self.unit_ns),
            // A period is not 0.
            Round::Down => (ns / self.unit_ns).max(u64::from(key == "period")),
        };
        if ns % self.unit_ns != 0 {
            let what = format!("`{key}` {} of `{}`", show_time(ns), member.task.name);
            self.flat.leave(
                member.task.spot,
                what,
                "it is rounded to whole units of time (`--unit` says which)",
            );
        }
        units
    }

    /// One for each task that has releases of its own, with all that it leads to.
    fn applications(&mut self, members: &[Member]) {
        let plan = self.flat.plan;
        let mut before: BTreeMap<usize, Vec<(usize, u64)>> = BTreeMap::new();
        let mut nexts: HashMap<usize, Vec<usize>> = HashMap::new();
        for member in members {
            let triggers = self.flat.triggers[member.index].clone();
            if let Some((first, _)) = triggers.first() {
                nexts.entry(*first).or_default().push(member.index);
            }
            if triggers.len() > 1 {
                let what = format!("all but the first that release `{}`", member.task.name);
                self.flat.leave(member.task.spot, what, "a task follows one other task only");
            }
            if triggers.iter().any(|(_, delay_ns)| *delay_ns > 0) {
                self.flat.leave(
                    member.task.spot,
                    format!("`delay` of `{}`", member.task.name),
                    "links take no time",
                );
            }
            before.insert(member.index, triggers);
        }
        let by_index: HashMap<usize, &Member> = members.iter().map(|member| (member.index, member)).collect();
        let mut taken = HashSet::new();
        for head in members.iter().filter(|member| before[&member.index].is_empty()) {
            let (mut tasks, mut at) = (vec![head.index], 0);
            while at < tasks.len() {
                tasks.extend(nexts.get(&tasks[at]).into_iter().flatten());
                at += 1;
            }
            let id = self.application_id(head, &mut taken);
            let tasks: Vec<&Member> = tasks.iter().map(|index| by_index[index]).collect();
            self.application(id, &tasks, &before);
        }
        for chain in &plan.chains {
            let triggered = |task: usize| matches!(plan.tasks[task].load, Some(Load::Triggered(_)));
            if !chain.links[1..].iter().all(|link| triggered(link.task)) {
                let why = "tasks that read what others wrote last are not known";
                self.flat.leave(chain.spot, format!("chain `{}`", chain.name), why);
            }
            for need in chain.needs.iter().filter(|need| need.latency != Latency::Response) {
                let what = format!("`{}` of chain `{}`", need.text, chain.name);
                self.flat.leave(need.spot, what, "only responses are asked of chains");
            }
        }
    }

    /// That of its chain, if it was made from an application.
    fn application_id(&self, head: &Member, taken: &mut HashSet<u64>) -> u64 {
        let chain = self.flat.chains_from(head.index).first();
        let number = chain.and_then(|chain| chain.name.strip_prefix("app_"));
        let number = number.and_then(|number| number.split('_').next()?.parse().ok());
        let id = number.filter(|id| !taken.contains(id)).or_else(|| (0..).find(|id| !taken.contains(id)));
        let id = id.unwrap_or(0);
        taken.insert(id);
        id
    }

    fn application(&mut self, id: u64, tasks: &[&Member], before: &BTreeMap<usize, Vec<(usize, u64)>>) {
        let ids: HashMap<usize, usize> =
            tasks.iter().enumerate().map(|(id, task)| (task.index, id)).collect();
        let _ = writeln!(self.text, "    <Application appID=\"{id}\" appV=\"0\">");
        for (id, task) in tasks.iter().enumerate() {
            self.task(id, task);
        }
        let mut links = 0;
        let mut maps = String::new();
        for task in tasks {
            let (own, scheduler) = (ids[&task.index], task.scheduler);
            let _ = writeln!(maps, "        <mapTask tid=\"{own}\" rid=\"{scheduler}\"/>");
            let Some(source) = before[&task.index].first().and_then(|(from, _)| ids.get(from)) else {
                continue;
            };
            let _ = writeln!(
                self.text,
                "      <TaskLink ID=\"{links}\" src=\"{source}\" trgt=\"{own}\" shortName=\"A{id}TL{source}-{own}\"/>"
            );
            let _ = writeln!(maps, "        <mapLink lid=\"{links}\" rid=\"{scheduler}\"/>");
            links += 1;
        }
        let _ = write!(self.text, "      <Mapping>\n{maps}      </Mapping>\n      <Constraints>\n");
        for chain in self.flat.chains_from(tasks[0].index) {
            let last = chain.links[chain.links.len() - 1].task;
            let Some(end) = ids.get(&last) else { continue };
            for need in chain.needs.iter().filter(|need| need.latency == Latency::Response) {
                let within = crate::decimal::show(need.most_ns, self.unit_ns);
                let _ = writeln!(
                    self.text,
                    "        <Constraint StartTaskId=\"0\" EndTaskId=\"{end}\" Constraint=\"{within}\"/>"
                );
            }
        }
        self.text += "      </Constraints>\n    </Application>\n";
    }

    fn task(&mut self, id: usize, member: &Member) {
        let (spot, name) = (member.task.spot, &member.task.name);
        let what = |key: &str| format!("`{key}` of `{name}`");
        let activation = match member.load {
            Load::Periodic(load) => {
                if load.phase_ns > 0 {
                    self.flat.leave(spot, what("phase"), "phases are not known");
                }
                let (period, jitter) = (
                    self.time(member, "period", load.period_ns, Round::Down),
                    self.time(member, "jitter", load.jitter_ns, Round::Up),
                );
                format!("name=\"PJActivation\" activationPeriod=\"{period}\" activationJitter=\"{jitter}\"")
            }
            Load::Sporadic(load) => {
                if load.extra_ns > 0 {
                    self.flat.leave(spot, what("extra"), "jobs come as often as they may");
                }
                let period = self.time(member, "period", load.separation_ns, Round::Down);
                format!("name=\"PJActivation\" activationPeriod=\"{period}\" activationJitter=\"0\"")
            }
            _ => "name=\"EventActivation\"".to_string(),
        };
        if member.load.deadline_ns().is_some() && !member.load.is_soft() {
            self.flat.leave(spot, what("deadline"), "single tasks have no deadlines");
        }
        if !member.load.sections().is_empty() {
            self.flat.leave(spot, what("sections"), "there are no locks");
        }
        let (least_ns, most_ns) = work(member.load).map_or((0, 0), |work| (work.min_ns(), work.max_ns()));
        let wcet = self.time(member, "work", most_ns, Round::Up);
        let bcet = match least_ns {
            constant if constant == most_ns => wcet,
            // No work at all is 1 ns in a plan.
            1 => 0,
            _ => self.time(member, "least work", least_ns, Round::Down),
        };
        let priority = self.most - member.priority;
        let _ = writeln!(
            self.text,
            "      <Task ID=\"{id}\" shortName=\"{}\">\n        \
             <SchedulingParameter name=\"SchedulingPriority\" priority=\"{priority}\"/>\n        \
             <Profile bcet=\"{bcet}\" wcet=\"{wcet}\" active=\"true\"><ActivationPattern {activation}/></Profile>\n      \
             </Task>",
            escaped(name)
        );
    }

    fn machine(&mut self) {
        let plan = self.flat.plan;
        let costs = &plan.machine.costs;
        if costs.switch_ns + costs.timer_ns + plan.machine.worst_migration_ns() > 0 {
            self.flat.leave(Spot::default(), "costs of scheduling", "there are none");
        }
        for interrupt in &plan.machine.interrupts {
            self.flat.leave(interrupt.spot, "interrupts", "there are none");
        }
        for lock in &plan.locks {
            self.flat.leave(lock.spot, format!("lock `{}`", lock.name), "there are no locks");
        }
    }
}
