//! From a plan to a file of rt-app: its tasks as threads that do what their loads say. Who gets the CPU is no part of it: run it under
//! the plan, or under another scheduler.
//!
//! Times of rt-app are whole µs: work is rounded up, all other times are rounded down, and both are listed.

use crate::draft::one_line;
use crate::text::LeftOut;
use tierce_plan::{Fault, Faults, Load, Phase, Phases, Plan, Spot, Task, Work};

/// One µs in ns.
const US: u64 = 1_000;
/// One job of a list of works in turn is a phase: more are left out.
const WORKS_MAX: usize = 1_000;
/// A thread that always wants a CPU runs in pieces of so many µs.
const PIECE_US: u64 = 100_000;

const GLOBAL: &str = r#"{
	"global": {
		"duration": 10, "calibration": "CPU0", "default_policy": "SCHED_OTHER", "pi_enabled": false, "lock_pages": false,
		"logdir": "./", "log_basename": "rt-app", "ftrace": false, "gnuplot": false
	},
	"tasks": {
"#;

/// `plan` as a file of rt-app.
pub fn write(plan: &Plan) -> Result<(String, Vec<LeftOut>), Faults> {
    let mut writer = Writer { plan, left_out: Vec::new() };
    let mut threads = Vec::new();
    for task in &plan.tasks {
        if let Some(body) = task.load.as_ref().and_then(|load| writer.load(task, load)) {
            let name = task.name.replace('[', "-").replace(']', "");
            threads.push(format!("\t\t\"{name}\": {{ {}{body} }}", cpus(task)));
        }
    }
    if threads.is_empty() {
        let message = "no task has a load that rt-app can play";
        let fault = Fault::new("format_must_have_it", Spot::default(), message);
        let hint = "it plays busy, periodic and sporadic loads, and phases";
        return Err(Faults::new(vec![fault.hint(hint)], plan.sources.clone()));
    }
    writer.machine();
    let text = format!("{GLOBAL}{}\n\t}}\n}}\n", threads.join(",\n"));
    Ok((text, writer.left_out))
}

/// The CPUs to which a task is bound.
fn cpus(task: &Task) -> String {
    let Some(affinity) = &task.affinity else { return String::new() };
    let list: Vec<String> = affinity.iter().map(|cpu| cpu.to_string()).collect();
    format!("\"cpus\": [{}], ", list.join(", "))
}

struct Writer<'a> {
    plan: &'a Plan,
    left_out: Vec<LeftOut>,
}

impl Writer<'_> {
    fn leave(&mut self, spot: Spot, what: String, why: &str) {
        let line = self.plan.sources.place(spot).line;
        let left = LeftOut { line, what: one_line(&what), why: why.into() };
        // Members of a set are alike.
        if !self.left_out.contains(&left) {
            self.left_out.push(left);
        }
    }

    fn machine(&mut self) {
        for interrupt in &self.plan.machine.interrupts {
            self.leave(interrupt.spot, "interrupts".into(), "the machine has its own");
        }
        for chain in &self.plan.chains {
            self.leave(
                chain.spot,
                format!("chain `{}`", chain.name),
                "each thread is released by its own timer",
            );
        }
    }

    /// The events of a thread; `None`: it cannot be said, which is listed.
    fn load(&mut self, task: &Task, load: &Load) -> Option<String> {
        let name = task.set.map_or(&task.name, |set| &self.plan.sets[set].name).clone();
        if !load.sections().is_empty() {
            self.leave(task.spot, format!("`sections` of `{name}`"), "its jobs hold no locks");
        }
        if !load.preemption().is_full() {
            self.leave(
                task.spot,
                format!("regions without preemption of `{name}`"),
                "its jobs are preempted at any time",
            );
        }
        match load {
            Load::Busy => Some(format!("\"loop\": -1, \"run\": {PIECE_US}")),
            Load::Periodic(load) => {
                if load.jitter_ns > 0 {
                    self.leave(task.spot, format!("`jitter` of `{name}`"), "releases have no jitter");
                }
                Some(self.jobs(task, &name, &load.work, load.period_ns, load.phase_ns))
            }
            Load::Sporadic(load) => {
                if load.extra_ns > 0 {
                    self.leave(
                        task.spot,
                        format!("`extra` of `{name}`"),
                        "its jobs come as early as they may",
                    );
                }
                if !load.further_ns.is_empty() {
                    let what = format!("all but the first `separation` of `{name}`");
                    self.leave(task.spot, what, "its jobs are as far apart as two may be");
                }
                Some(self.jobs(task, &name, &load.work, load.separation_ns, load.phase_ns))
            }
            Load::Phases(load) => Some(self.phases(task, &name, load)),
            Load::Triggered(_) => {
                self.leave(task.spot, format!("task `{name}`"), "it is released by others");
                None
            }
            Load::Stages(_) => {
                self.leave(task.spot, format!("task `{name}`"), "its numbers change at given times");
                None
            }
        }
    }

    /// A job every period: work, then the timer.
    fn jobs(&mut self, task: &Task, name: &str, work: &Work, period_ns: u64, phase_ns: u64) -> String {
        let period = self.down(task, name, "period", period_ns).max(1);
        let delay = self.delay(task, name, phase_ns);
        let timer =
            format!("\"timer\": {{ \"ref\": \"unique\", \"period\": {period}, \"mode\": \"absolute\" }}");
        let works = self.works(task, name, work);
        if let [one] = works[..] {
            return format!("{delay}\"loop\": -1, \"run\": {one}, {timer}");
        }
        let phase = |(at, work)| format!("\"job{at}\": {{ \"loop\": 1, \"run\": {work}, {timer} }}");
        let phases: Vec<String> = works.into_iter().enumerate().map(phase).collect();
        format!("{delay}\"loop\": -1, \"phases\": {{ {} }}", phases.join(", "))
    }

    /// One after the other; a phase of its own for each, since rt-app wants different names.
    fn phases(&mut self, task: &Task, name: &str, load: &Phases) -> String {
        let delay = self.delay(task, name, load.phase_ns);
        let passes = if load.repeat == 0 { "-1".to_string() } else { load.repeat.to_string() };
        let mut phases = Vec::new();
        for (at, phase) in load.phases.iter().enumerate() {
            let event = match phase {
                Phase::Run { work, within_ns } => {
                    if within_ns.is_some() {
                        self.leave(
                            task.spot,
                            format!("`within` of `{name}`"),
                            "it asks for no time constraint",
                        );
                    }
                    format!("\"run\": {}", self.longest(task, name, work))
                }
                Phase::Sleep(work) | Phase::Suspend(work) => {
                    format!("\"sleep\": {}", self.longest(task, name, work))
                }
                Phase::Timer { timer, period_ns, absolute } => {
                    let period = self.down(task, name, "timer", *period_ns).max(1);
                    let mode = if *absolute { "absolute" } else { "relative" };
                    // `unique` is a timer of this thread alone; others are, too, if no other thread has the name.
                    format!(
                        "\"timer\": {{ \"ref\": \"unique{timer}-{name}\", \"period\": {period}, \"mode\": \"{mode}\" }}"
                    )
                }
            };
            phases.push(format!("\"step{at}\": {{ \"loop\": 1, {event} }}"));
        }
        format!("{delay}\"loop\": {passes}, \"phases\": {{ {} }}", phases.join(", "))
    }

    fn delay(&mut self, task: &Task, name: &str, phase_ns: u64) -> String {
        match self.down(task, name, "phase", phase_ns) {
            0 => String::new(),
            us => format!("\"delay\": {us}, "),
        }
    }

    /// The works of the jobs, in turn.
    fn works(&mut self, task: &Task, name: &str, work: &Work) -> Vec<u64> {
        match work {
            Work::List(list) if list.len() <= WORKS_MAX => {
                list.clone().into_iter().map(|ns| self.up(task, name, ns)).collect()
            }
            other => vec![self.longest(task, name, other)],
        }
    }

    /// The longest that it can be.
    fn longest(&mut self, task: &Task, name: &str, work: &Work) -> u64 {
        if work.min_ns() < work.max_ns() {
            self.leave(task.spot, format!("`work` of `{name}`"), "each job works the most that it may");
        }
        self.up(task, name, work.max_ns())
    }

    fn up(&mut self, task: &Task, name: &str, ns: u64) -> u64 {
        if ns % US != 0 {
            self.leave(task.spot, format!("parts of a µs in the work of `{name}`"), "rounded up");
        }
        ns.div_ceil(US).max(1)
    }

    fn down(&mut self, task: &Task, name: &str, what: &str, ns: u64) -> u64 {
        if ns % US != 0 {
            self.leave(task.spot, format!("parts of a µs in `{what}` of `{name}`"), "rounded down");
        }
        ns / US
    }
}
