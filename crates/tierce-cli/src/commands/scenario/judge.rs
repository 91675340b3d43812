//! The judging side: what the kernel decided, out of its recording, against what the simulator predicts.

use super::play::{Played, AGAIN_NS, PLAYER_CPU};
use super::script::{Machine, Names, Script, Step};
use anyhow::{bail, ensure, Context, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_plan::Costs;
use tierce_policy::{policies, raw, recording, Control, Cpus, Graph, Refusal};
use tierce_scx::kernel::FLOOR_NS;
use tierce_sim::{Options, Simulation};

/// How far a decision of the kernel may be from the predicted time, on one CPU. A timer of the machine fires 5 to 10 us
/// after its time, a switch takes 10 us, a control operation up to 60 us of the CPU whose tasks it concerns, an interrupt with the
/// kernel's work after it up to 140 us, and a scenario has some of each in a row. Events that do not depend on each other are 200 us apart, so the order is certain.
const TOLERANCE_NS: u64 = 190_000;
const APART_NS: u64 = 200_000;
/// Virtual CPUs take turns of 50 us: a task that goes from one to the other, which takes a kick or two, comes later.
const TURNS_NS: u64 = 150_000;

/// What the simulator has to know of the machine: how late its timers are, what a switch costs (from the decision until
/// the task goes on), and what more when the task comes from another CPU, what a control operation takes from its CPU; as measured in the deterministic machine.
#[derive(Clone, Copy)]
struct Port {
    floor_ns: u64,
    late_ns: u64,
    switch_ns: u64,
    migration_ns: u64,
    step_ns: u64,
}
const PORT: Port =
    Port { floor_ns: FLOOR_NS, late_ns: 7_500, switch_ns: 2_500, migration_ns: 40_000, step_ns: 30_000 };

/// While a task goes from one CPU to another, nobody has it for a moment, and which CPU comes first may differ. What lasts
/// no longer than this is left out, when there is more than one CPU; else nothing but decisions of the same instant.
fn blink_ns(script: &Script) -> u64 {
    match script.plan.machine.cpus {
        1 => 0,
        _ => TURNS_NS,
    }
}

const OP_DECIDE: u32 = 5;
const OP_ONLINE: u32 = 19;

/// From then on a CPU runs that task, or none of the plan's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decision {
    at_ns: u64,
    task: u32,
}

/// What one side did.
struct Story {
    /// By CPU.
    decisions: Vec<Vec<Decision>>,
    /// By task.
    cpu_ns: Vec<u64>,
    stolen_ns: u64,
    steps: Vec<String>,
    names: Names,
}

/// Compare all scenarios; 1 when one differs.
pub fn judge(out: &Path, files: &[PathBuf]) -> Result<ExitCode> {
    let mut differ = 0;
    for file in files {
        let script = Script::read(file)?;
        match judge_one(&script, out).with_context(|| script.name.clone())? {
            Ok(said) => println!("{:24} {said}", script.name),
            Err(why) => {
                println!("{:24} DIFFERS: {why}", script.name);
                differ += 1;
            }
        }
    }
    println!("{} scenarios, {differ} differ", files.len());
    Ok(ExitCode::from(u8::from(differ > 0)))
}

fn judge_one(script: &Script, out: &Path) -> Result<Result<String, String>> {
    let path = out.join(format!("{}.json", script.name));
    let played: Played =
        serde_json::from_reader(File::open(&path).with_context(|| path.display().to_string())?)?;
    let path = out.join(format!("{}.rec", script.name));
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    let (floor_ns, entries) = recording::read(BufReader::new(file))?;
    let mut kernel = Kernel::new(script, played, floor_ns, &entries)?;
    if let Err(differs) = kernel.run(u64::MAX) {
        return Ok(Err(format!("the engine itself, replayed: {differs}")));
    }
    let told = kernel.story();
    let expected = Predicted::all(script, &kernel.hotplugs(), Port { floor_ns, ..PORT })?;
    let tolerance_ns = TOLERANCE_NS + if script.plan.machine.cpus > 1 { TURNS_NS } else { 0 };
    let sides = Sides { script, told, expected, tolerance_ns };
    if let Some(why) = sides.differing_step() {
        return Ok(Err(why));
    }
    let (count, worst_ns) = match sides.decisions() {
        Ok(alike) => alike,
        Err((cpu, number)) => {
            let sides = [&sides.told, &sides.expected];
            return differs(script, &mut kernel, floor_ns, cpu, number, sides).map(Err);
        }
    };
    let worst_cpu_ns = match sides.cpu_times() {
        Ok(worst_cpu_ns) => worst_cpu_ns,
        Err(why) => return Ok(Err(why)),
    };
    ensure!(count > 0, "nothing was decided");
    Ok(Ok(format!(
        "{count:4} decisions, {:2} steps: alike, at most {:5.1} us apart; CPU time within {:5.1} us, {:6.1} us stolen",
        script.steps.len(),
        worst_ns as f64 / 1e3,
        worst_cpu_ns as f64 / 1e3,
        sides.stolen_ns() as f64 / 1e3
    )))
}

/// What the kernel did and what was predicted.
struct Sides<'a> {
    script: &'a Script,
    told: Story,
    expected: Story,
    tolerance_ns: u64,
}

impl Sides<'_> {
    /// A control operation that returns something else.
    fn differing_step(&self) -> Option<String> {
        let steps = self.script.steps.iter().filter(|step| step.hotplug().is_none());
        steps.enumerate().find_map(|(number, step)| {
            let [told, expected, scripted] =
                [&self.told.steps[number], &self.expected.steps[number], &step.refused];
            let differs = told != expected || expected != scripted;
            differs.then(|| {
                let step = step.describe();
                format!("step {step} returns {told:?} in the kernel, {expected:?} simulated, {scripted:?} expected")
            })
        })
    }

    /// How many there are, and how far apart they are at most; or CPU and number of the first that differs.
    fn decisions(&self) -> Result<(u64, u64), (u32, usize)> {
        let (mut count, mut worst_ns) = (0, 0);
        for cpu in 0..self.told.decisions.len() {
            let sides = [&self.told.decisions[cpu], &self.expected.decisions[cpu]];
            for number in 0..sides[0].len().max(sides[1].len()) {
                let off_ns = match sides.map(|side| side.get(number).copied()) {
                    [Some(one), Some(other)] if one.task == other.task => one.at_ns.abs_diff(other.at_ns),
                    // What one side has just not come to yet.
                    [Some(one), None] | [None, Some(one)] => self.script.length_ns - one.at_ns,
                    _ => u64::MAX,
                };
                if off_ns > self.tolerance_ns {
                    return Err((cpu as u32, number));
                }
                count += 1;
                worst_ns = worst_ns.max(off_ns);
            }
        }
        Ok((count, worst_ns))
    }

    /// What the machine itself has taken: its threads, and the control operations.
    fn stolen_ns(&self) -> u64 {
        self.told.stolen_ns.saturating_sub(self.expected.stolen_ns)
    }

    /// By how much those of a task differ at most; or the first that differs by too much.
    fn cpu_times(&self) -> Result<u64, String> {
        let stolen_ns = self.stolen_ns();
        let mut worst_ns = 0;
        for (task, (one, other)) in self.told.cpu_ns.iter().zip(&self.expected.cpu_ns).enumerate() {
            worst_ns = worst_ns.max(one.abs_diff(*other));
            if one.abs_diff(*other) > self.tolerance_ns + stolen_ns {
                let name = &self.script.plan.tasks[task].name;
                return Err(format!("{name} had {one} ns of CPU time in the kernel, {other} ns simulated; {stolen_ns} ns were stolen"));
            }
        }
        Ok(worst_ns)
    }
}

/// Is what is predicted certain? With other costs of a switch the order of decisions has to be the same: nothing then
/// depends on which of two events comes first by a hair.
pub fn certain(files: &[PathBuf]) -> Result<ExitCode> {
    let mut differ = 0;
    for file in files {
        let script = Script::read(file)?;
        let hotplugs = script.steps.iter().filter_map(|step| {
            let (cpu, online) = step.hotplug()?;
            Some(Hotplug { at_ns: step.at_ns, cpu, online })
        });
        let hotplugs: Vec<Hotplug> = hotplugs.collect();
        let with = |script: &Script, switch_us: u64, late_us: u64| {
            let (switch_ns, late_ns) = (switch_us * 1_000, late_us * 1_000);
            Predicted::all(script, &hotplugs, Port { switch_ns, late_ns, ..PORT })
        };
        let base = with(&script, 0, 0)?;
        // Control operations come as late as their program does.
        let mut later = Script::read(file)?;
        later.steps.iter_mut().for_each(|step| step.at_ns += 45_000);
        let mut said = format!("{:4} decisions", base.decisions.iter().map(Vec::len).sum::<usize>());
        let costs = [(4, 0), (10, 0), (0, 12), (7, 5), (3, 12), (6, 10)].map(|costs| (&script, costs));
        for (script, (switch_us, late_us)) in costs.into_iter().chain([(&later, (2, 7))]) {
            let other = with(script, switch_us, late_us)?;
            let scripted = script.steps.iter().filter(|step| step.hotplug().is_none());
            let steps = base.steps.iter().zip(scripted).find(|(said, step)| **said != step.refused);
            let sides = (0..base.decisions.len()).find_map(|cpu| {
                let (one, other) = (&base.decisions[cpu], &other.decisions[cpu]);
                let end = script.length_ns - TOLERANCE_NS;
                let at = (0..one.len().max(other.len())).find(|&at| match (one.get(at), other.get(at)) {
                    (Some(one), Some(other)) => one.task != other.task,
                    (one, other) => one.or(other).is_some_and(|late| late.at_ns < end),
                })?;
                Some(format!("CPU {cpu}, decision {at}: {:?} or {:?}", one.get(at), other.get(at)))
            });
            let steps = steps.map(|(said, step)| format!("{} returns {said:?}", step.describe()));
            let near = base.decisions.iter().find_map(|list| {
                let at =
                    list.windows(2).skip(1).find(|pair| pair[1].at_ns - pair[0].at_ns < APART_NS)?[0].at_ns;
                Some(format!("two decisions at {at} ns, less than {APART_NS} ns apart"))
            });
            if let Some(why) = steps.or(near).or(sides) {
                said = format!("NOT CERTAIN, {switch_us} us a switch, timers {late_us} us late: {why}");
                differ += 1;
                break;
            }
        }
        println!("{:24} {said}", script.name);
    }
    Ok(ExitCode::from(u8::from(differ > 0)))
}

/// The first difference, with the state of both sides at that time.
fn differs(
    script: &Script,
    kernel: &mut Kernel,
    floor_ns: u64,
    cpu: u32,
    number: usize,
    sides: [&Story; 2],
) -> Result<String> {
    let pair = sides.map(|side| side.decisions[cpu as usize].get(number).copied());
    let at_ns = pair.iter().flatten().map(|decision| decision.at_ns).min().unwrap_or(0);
    let mut text = format!("decision {number} of CPU {cpu}\n");
    for (who, side, decision) in [("kernel   ", sides[0], pair[0]), ("simulator", sides[1], pair[1])] {
        text += &match decision {
            Some(Decision { at_ns, task }) => {
                format!("  {who} at {:10.3} us: {}\n", at_ns as f64 / 1e3, side.names.name(task))
            }
            None => format!("  {who} none any more\n"),
        };
        let all = &side.decisions[cpu as usize];
        let near = all[number.saturating_sub(3)..].iter().take(7);
        let near = near.map(|d| format!("{:.3} {}", d.at_ns as f64 / 1e3, side.names.name(d.task)));
        text += &format!("            around it: {}\n", near.collect::<Vec<_>>().join(", "));
    }
    // Both just before and just after the first of the two.
    for (when, until_ns) in [("before", at_ns), ("after", at_ns + 1)] {
        kernel.rewind()?;
        let _ = kernel.run(until_ns);
        let start_ns = kernel.played.start_ns;
        text += &format!("kernel {when}, its clock at {start_ns} ns:\n");
        text += &state(script, &kernel.graph, cpu, start_ns);
        let mut predicted = Predicted::new(script, &kernel.hotplugs(), Port { floor_ns, ..PORT })?;
        predicted.run(until_ns)?;
        text += &format!("simulator {when}:\n{}", state(script, predicted.simulation.graph(), cpu, 0));
    }
    Ok(text)
}

/// The CPU, and every node above a task of the plan with its edges. Times from `start_ns` on.
fn state(script: &Script, graph: &Graph, cpu: u32, start_ns: u64) -> String {
    let names = Names::of(&script.plan);
    let mut text = graph.describe(cpu);
    let first = script.plan.nodes.len() as u32 + 1;
    let mut above: BTreeSet<u32> = (first..first + script.plan.tasks.len() as u32).collect();
    let mut list: Vec<u32> = above.iter().copied().collect();
    while let Some(id) = list.pop() {
        let mut edge = graph.node(id).first_parent;
        while edge != 0 {
            let parent = graph.edge(edge).parent;
            if parent != 0 && above.insert(parent) {
                list.push(parent);
            }
            edge = graph.edge(edge).next_parent;
        }
    }
    let relative = |ns: u64| match ns.checked_sub(start_ns) {
        Some(ns) if ns < 1 << 60 => ns.to_string(),
        _ => "-".to_string(),
    };
    for id in above {
        let node = graph.node(id);
        let policy = policies().iter().find(|policy| policy.number == node.kind);
        text += &format!(
            "  {} {}: servable {}, clock {}, tail {}, deadline {}, ran {}, on CPU {}\n",
            policy.map_or("task", |policy| policy.name),
            names.name(id),
            node.servable,
            node.clock,
            node.tail,
            relative(node.deadline_ns),
            node.ran_ns,
            node.on_cpu as i32
        );
        let mut edge = node.first_parent;
        while edge != 0 {
            let e = graph.edge(edge);
            let spent = if e.flags & raw::EDGE_SPENT != 0 { ", spent" } else { "" };
            let what = ["waiting", "ready", "granted"].get(e.state as usize).unwrap_or(&"?");
            text +=
                &format!(
                "    edge {edge} from {}: {what}{spent}, parameters {:?}, supply {}, policy's words {:?}\n",
                names.name(e.parent), e.param, e.supply_ns, e.policy.map(|word| word as i64)
            );
            edge = e.next_parent;
        }
    }
    text
}

/// Time that went to what is not in the graph.
fn stolen_ns(graph: &Graph) -> u64 {
    (0..graph.cpus()).map(|cpu| graph.cpu(cpu).stolen_ns).sum()
}

/// CPU time of each task up to `now_ns`: what runs is charged at the next entry only.
fn cpu_times(script: &Script, graph: &Graph, now_ns: u64) -> Vec<u64> {
    let first = script.plan.nodes.len() as u32 + 1;
    let cpus = (0..graph.cpus()).map(|cpu| graph.cpu(cpu));
    let running: Vec<(u32, u64)> = cpus
        .filter(|cpu| cpu.task != 0 && cpu.outside == 0)
        .map(|cpu| (cpu.task, now_ns.saturating_sub(cpu.charged_ns)))
        .collect();
    let of = |id: u32| {
        let pending: u64 = running.iter().filter(|(task, _)| *task == id).map(|(_, ns)| ns).sum();
        graph.node(id).ran_ns + pending
    };
    (first..first + script.plan.tasks.len() as u32).map(of).collect()
}

// ---- the kernel, replayed ----------------------------------------------------------------------------------------------

struct Kernel<'a> {
    script: &'a Script,
    played: Played,
    floor_ns: u64,
    entries: &'a [raw::Entry],
    graph: Graph,
    at: usize,
    decisions: Vec<Vec<Decision>>,
    before_ns: Vec<u64>,
    cpu_ns: Vec<u64>,
    stolen_ns: [u64; 2],
}

impl<'a> Kernel<'a> {
    fn new(
        script: &'a Script,
        played: Played,
        floor_ns: u64,
        entries: &'a [raw::Entry],
    ) -> Result<Kernel<'a>> {
        let first = entries.first().context("an empty recording")?;
        let graph = Graph::new(first.a, first.now_ns)?;
        let steps = script.steps.iter().filter(|step| step.hotplug().is_none());
        ensure!(played.steps.len() == steps.count(), "played with other steps");
        let mut kernel = Kernel {
            script,
            played,
            floor_ns,
            entries,
            graph,
            at: 0,
            decisions: Vec::new(),
            before_ns: Vec::new(),
            cpu_ns: Vec::new(),
            stolen_ns: [0; 2],
        };
        kernel.rewind()?;
        Ok(kernel)
    }

    fn rewind(&mut self) -> Result<()> {
        let first = &self.entries[0];
        self.graph = Graph::new(first.a, first.now_ns)?;
        self.graph.set_floor_ns(self.floor_ns);
        self.at = 1;
        self.decisions = vec![vec![Decision { at_ns: 0, task: 0 }]; first.a as usize];
        self.before_ns.clear();
        self.cpu_ns.clear();
        Ok(())
    }

    /// Replay what lies before `until_ns` of the scenario.
    fn run(&mut self, until_ns: u64) -> Result<(), String> {
        let (start_ns, length_ns) = (self.played.start_ns, self.script.length_ns);
        let names = Names::of(&self.script.plan);
        while let Some(entry) = self.entries.get(self.at) {
            let at_ns = entry.now_ns.saturating_sub(start_ns); // staging has no time
            if entry.now_ns >= start_ns && self.before_ns.is_empty() {
                self.before_ns = cpu_times(self.script, &self.graph, start_ns);
                self.stolen_ns[0] = stolen_ns(&self.graph);
            }
            if at_ns >= length_ns && self.cpu_ns.is_empty() {
                self.cpu_ns = cpu_times(self.script, &self.graph, start_ns + length_ns);
                self.stolen_ns[1] = stolen_ns(&self.graph);
            }
            if at_ns >= until_ns {
                break;
            }
            self.graph.replay(entry).map_err(|differs| format!("entry {}: {differs:?}", self.at))?;
            self.at += 1;
            if entry.op == OP_DECIDE && entry.now_ns >= start_ns && at_ns < length_ns {
                let task = if names.is_task(&self.script.plan, entry.b) { entry.b } else { 0 };
                push(&mut self.decisions[entry.a as usize], Decision { at_ns, task });
            }
        }
        Ok(())
    }

    fn story(&self) -> Story {
        let lasting = |list: &Vec<Decision>| lasting(list, blink_ns(self.script), self.script.length_ns);
        Story {
            decisions: self.decisions.iter().map(lasting).collect(),
            cpu_ns: self.cpu_ns.iter().zip(&self.before_ns).map(|(after, before)| after - before).collect(),
            stolen_ns: self.stolen_ns[1] - self.stolen_ns[0],
            steps: self.played.steps.clone(),
            names: Names::of(&self.script.plan),
        }
    }

    /// When CPUs came and went. They do so too when something above the scheduler keeps them for long.
    fn hotplugs(&self) -> Vec<Hotplug> {
        let start_ns = self.played.start_ns;
        let during = self.entries.iter().filter(|entry| entry.op == OP_ONLINE && entry.now_ns >= start_ns);
        during
            .map(|entry| Hotplug { at_ns: entry.now_ns - start_ns, cpu: entry.a, online: entry.b != 0 })
            .collect()
    }
}

/// A CPU that comes or goes.
#[derive(Clone, Copy, Debug)]
struct Hotplug {
    at_ns: u64,
    cpu: u32,
    online: bool,
}

/// Another decision, unless it changes nothing.
fn push(list: &mut Vec<Decision>, decision: Decision) {
    if list.last().is_none_or(|last| last.task != decision.task) {
        list.push(decision);
    }
}

/// Without what lasts no longer than `blink_ns`.
fn lasting(list: &[Decision], blink_ns: u64, end_ns: u64) -> Vec<Decision> {
    let mut kept = Vec::new();
    for (number, decision) in list.iter().enumerate() {
        let until_ns = list.get(number + 1).map_or(end_ns, |next| next.at_ns);
        if number == 0 || until_ns - decision.at_ns > blink_ns {
            push(&mut kept, *decision);
        }
    }
    kept
}

// ---- the simulator ---------------------------------------------------------------------------------------------------------

struct Predicted<'a> {
    script: &'a Script,
    simulation: Simulation,
    names: Names,
    decisions: Vec<Vec<Decision>>,
    steps: Vec<String>,
    hotplugs: Vec<Hotplug>,
    step_ns: u64,
}

struct Simulated<'a> {
    graph: &'a mut Graph,
    now: u64,
}

impl<'a> Predicted<'a> {
    /// `hotplugs`: when CPUs really came and went, in the order of the script.
    fn new(script: &'a Script, hotplugs: &[Hotplug], port: Port) -> Result<Predicted<'a>> {
        let Port { floor_ns, late_ns, switch_ns, migration_ns, step_ns } = port;
        let costs = Some(Costs { switch_ns, migration: migration_ns.into(), ..Default::default() });
        let options = Options { floor_ns, late_ns, costs, trace: true, check: true, seed: 1 };
        let simulation = Simulation::new(&script.plan, options)?;
        let decisions = vec![vec![Decision { at_ns: 0, task: 0 }]; script.plan.machine.cpus as usize];
        let names = Names::of(&script.plan);
        let hotplugs = hotplugs.to_vec();
        Ok(Predicted { script, simulation, names, decisions, steps: Vec::new(), hotplugs, step_ns })
    }

    /// The whole scenario.
    fn all(script: &'a Script, hotplugs: &[Hotplug], port: Port) -> Result<Story> {
        let mut predicted = Predicted::new(script, hotplugs, port)?;
        predicted.run(script.length_ns)?;
        Ok(predicted.story())
    }

    fn run(&mut self, until_ns: u64) -> Result<()> {
        let mut hotplugs = std::mem::take(&mut self.hotplugs).into_iter().peekable();
        for step in self.script.steps.iter().filter(|step| step.hotplug().is_none()) {
            while let Some(plug) = hotplugs.next_if(|plug| plug.at_ns <= step.at_ns.min(until_ns)) {
                self.plug(plug)?;
            }
            if step.at_ns >= until_ns {
                break;
            }
            self.go(step.at_ns)?;
            self.step(step)?;
        }
        while let Some(plug) = hotplugs.next_if(|plug| plug.at_ns < until_ns) {
            self.plug(plug)?;
        }
        self.go(until_ns)
    }

    fn plug(&mut self, plug: Hotplug) -> Result<()> {
        self.go(plug.at_ns)?;
        self.simulation.control(|graph, now| graph.online(plug.cpu, plug.online, now))??;
        Ok(())
    }

    fn go(&mut self, until_ns: u64) -> Result<()> {
        self.simulation.run_until(until_ns)?;
        let first = self.script.plan.nodes.len() as u32 + 1;
        for event in self.simulation.take_events() {
            if event.kind() == Some(tierce_trace::Kind::Decision) {
                let task = if event.a >= first { event.a } else { 0 };
                push(&mut self.decisions[event.cpu as usize], Decision { at_ns: event.now_ns, task });
            }
        }
        Ok(())
    }

    /// The player takes its CPU for that time, and tries again what needs a decision first.
    fn step(&mut self, step: &Step) -> Result<()> {
        for _ in 0..100 {
            self.simulation.steal(PLAYER_CPU, self.step_ns);
            let names = &mut self.names;
            let said =
                self.simulation.control(|graph, now| names.apply(step, &mut Simulated { graph, now }))??;
            if said != "still_running" {
                self.steps.push(said.to_string());
                return Ok(());
            }
            self.go(self.simulation.now_ns() + self.step_ns + AGAIN_NS)?;
        }
        bail!("{}: still running", step.describe())
    }

    fn story(self) -> Story {
        let now_ns = self.simulation.now_ns();
        let cpu_ns = cpu_times(self.script, self.simulation.graph(), now_ns);
        let lasting = |list: &Vec<Decision>| lasting(list, blink_ns(self.script), self.script.length_ns);
        let decisions = self.decisions.iter().map(lasting).collect();
        let stolen_ns = stolen_ns(self.simulation.graph());
        Story { decisions, cpu_ns, stolen_ns, steps: self.steps, names: self.names }
    }
}

impl Machine for Simulated<'_> {
    fn control(&mut self) -> Box<dyn Control + '_> {
        Box::new(self.graph.at(self.now))
    }
    fn root_edge(&self, cpu: u32) -> u32 {
        self.graph.cpu(cpu).root_edge
    }
    /// The kernel takes a thread that wants the CPU out of its queue to change its affinity, and puts it in again.
    fn allow(&mut self, task: u32, cpus: Cpus) -> Result<(), Refusal> {
        let wants = self.graph.node(task).servable != 0;
        if wants {
            self.graph.release(task, self.now);
        }
        let done = self.graph.allow(task, cpus, self.now);
        if wants {
            self.graph.request(task, self.now);
        }
        Ok(done?)
    }
    fn constrain(&mut self, task: u32, work_ns: u64, within_ns: u64) -> Result<(), Refusal> {
        Ok(self.graph.constrain(task, work_ns, self.now + within_ns, self.now)?)
    }
    fn unconstrain(&mut self, task: u32) -> Result<(), Refusal> {
        Ok(self.graph.unconstrain(task, self.now)?)
    }
}
