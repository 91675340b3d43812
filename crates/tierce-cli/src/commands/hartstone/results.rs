//! What a run of the benchmark counted, by experiment and scheduler.

use super::pools::{pool, Task};
use serde_json::{json, Value};
use tierce_sim::Simulation;

/// A scheduler, by the name of Hartstone's reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    RoundRobin,
    Priority,
    Edf,
    IPlusPi,
    Multiburst,
}

impl Scheduler {
    pub const ALL: [Self; 5] = [Self::RoundRobin, Self::Priority, Self::Edf, Self::IPlusPi, Self::Multiburst];

    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::Priority => "priority",
            Self::Edf => "edf",
            Self::IPlusPi => "i-plus-pi",
            Self::Multiburst => "multiburst",
        }
    }

    /// In a picture.
    pub fn shown(self) -> &'static str {
        match self {
            Self::RoundRobin => "Round robin",
            Self::Priority => "Priority",
            Self::Edf => "EDF",
            Self::IPlusPi => "I+PI",
            Self::Multiburst => "Multiburst",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let name = if name == "fixed-priority" { "priority" } else { name };
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// What was counted in a step, or in a stage of the extended version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub ns: u64,
    pub jobs: u64,
    pub misses: u64,
    pub switches: u64,
    /// Misses of each task.
    pub tasks: Vec<(String, u64)>,
}

impl Counts {
    pub fn of(simulation: &Simulation) -> Self {
        let report = simulation.report();
        Self {
            ns: report.elapsed_ns,
            jobs: report.tasks.iter().map(|task| task.released).sum(),
            misses: report.tasks.iter().map(|task| task.misses).sum(),
            switches: report.cpus.iter().map(|cpu| cpu.switches).sum(),
            tasks: report.tasks.iter().map(|task| (task.name.clone(), task.misses)).collect(),
        }
    }

    pub fn since(&self, before: &Self) -> Self {
        let earlier = |name: &str| before.tasks.iter().find(|task| task.0 == name).map_or(0, |task| task.1);
        Self {
            ns: self.ns - before.ns,
            jobs: self.jobs - before.jobs,
            misses: self.misses - before.misses,
            switches: self.switches - before.switches,
            tasks: self.tasks.iter().map(|task| (task.0.clone(), task.1 - earlier(&task.0))).collect(),
        }
    }
}

/// One experiment under one scheduler: its steps, or the stages of the extended version.
#[derive(Clone, Debug)]
pub struct Run {
    pub experiment: u32,
    pub scheduler: Scheduler,
    pub extended: bool,
    pub steps: Vec<(u32, Counts)>,
}

impl Run {
    /// Steps after the baseline without a miss; without meaning in the extended version.
    pub fn iterations(&self) -> Option<u32> {
        let passed = self.steps.iter().take_while(|step| step.1.misses == 0).map(|step| step.0);
        (!self.extended).then(|| passed.last().unwrap_or(0))
    }

    pub fn missed_in_the_baseline(&self) -> bool {
        !self.extended && self.steps.first().is_some_and(|step| step.1.misses > 0)
    }

    /// In the step that ended it, or in all of the extended version.
    pub fn misses(&self) -> u64 {
        self.steps.iter().map(|step| step.1.misses).sum()
    }

    /// Over all steps.
    pub fn switches_per_second(&self) -> f64 {
        let switches: u64 = self.steps.iter().map(|step| step.1.switches).sum();
        let ns: u64 = self.steps.iter().map(|step| step.1.ns).sum();
        switches as f64 * 1e9 / ns.max(1) as f64
    }

    pub fn in_json(&self) -> Value {
        let step = |(step, counts): &(u32, Counts)| {
            let mut value = json!({
                "step": step, "load": (exact_load(self.experiment, *step)), "ns": counts.ns, "misses": counts.misses,
                "switches": counts.switches, "jobs": counts.jobs,
            });
            if !counts.tasks.is_empty() {
                let tasks = counts.tasks.iter().map(|(name, misses)| (name.clone(), json!(misses)));
                value["misses_of_tasks"] = Value::Object(tasks.collect());
            }
            value
        };
        json!({
            "experiment": self.experiment, "scheduler": self.scheduler.name(), "extended": self.extended,
            "iterations_to_first_miss": self.iterations(), "missed_in_the_baseline": self.missed_in_the_baseline(),
            "misses": self.misses(), "switches_per_second": self.switches_per_second(),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }
}

/// `0.48`.
pub fn exact_load(experiment: u32, step: u32) -> f64 {
    let of = |task: Task| task.centihertz * task.kilo_whets;
    // In hundredths of a kilo-whet per second, of which a second has 80,000.
    pool(experiment, step).into_iter().map(of).sum::<u64>() as f64 / 80_000.0
}
