//! What a trace says about itself before its records: the graph, its names and parameters.

use serde::{Deserialize, Serialize};
use std::fmt;
use tierce_plan::Latency;
use tierce_policy::Cpus;

/// Version of the header and of the meaning of records.
pub const VERSION: u32 = 1;

/// Where a trace comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The simulator.
    #[default]
    Sim,
    /// A live run.
    Run,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Sim => "simulated",
            Source::Run => "measured",
        })
    }
}

/// The JSON header. Ids are those of the records; nodes and tasks share one id space, edges have their own; 0 is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct TraceHeader {
    /// [`VERSION`].
    pub version: u32,
    /// Simulated or measured.
    pub source: Source,
    /// Name of the plan.
    pub plan: String,
    /// Seed of the simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many CPUs; records come from CPUs below this.
    pub cpus: u32,
    /// When the recording begins.
    pub start_ns: u64,
    /// When it ends, if known when the header was written; else the last record's time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Which clock the times are of, e.g. `simulated` or `CLOCK_MONOTONIC`.
    #[serde(default)]
    pub clock: String,
    /// Scheduler nodes, in the order of the plan.
    pub nodes: Vec<NodeInfo>,
    /// Tasks, in the order of the plan; live runs add more by [`crate::Kind::Name`].
    pub tasks: Vec<TaskInfo>,
    /// Edges, roots included.
    pub edges: Vec<EdgeInfo>,
    /// Chains of tasks, in the order of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainInfo>,
    /// Names of its locks, in the order of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
}

/// A scheduler node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct NodeInfo {
    /// Its id.
    pub id: u32,
    /// Its name in the plan.
    pub name: String,
    /// Its policy's name in plans.
    pub policy: String,
    /// Nodes above it, at most.
    pub level: u32,
    /// Replica of a spread node: id of the first replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<u32>,
    /// CPUs that may run it at once, where that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// A change of the plan took it out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gone: bool,
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct TaskInfo {
    /// Its id.
    pub id: u32,
    /// Its name in the plan.
    pub name: String,
    /// Relative deadline of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Period of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// When its first job is released, after the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_ns: Option<u64>,
    /// CPUs on which the plan lets it run, where they are limited: a bit each; with some beyond 63, a list of 64 each.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::affinity")]
    pub affinity: Option<Cpus>,
    /// A change of the plan took it out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gone: bool,
}

/// An edge (virtual processor) from a parent to a child, with those parameters its parent's policy knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct EdgeInfo {
    /// Its id.
    pub id: u32,
    /// Parent node; 0: a CPU.
    pub parent: u32,
    /// Child node or task.
    pub child: u32,
    /// Name of the parent, e.g. `rt` or `cpu0`.
    pub parent_name: String,
    /// Name of the child.
    pub child_name: String,
    /// Root edges: which CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Enabled only while every other edge of the child is spent (`when = "spent"`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub when_spent: bool,
    /// The child moves between the replicas of the spread node that `parent` is one of; it begins here.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spread: bool,
    /// Reservation: CPU time per period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Reservation: period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// Slots: length of the reserve in each slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_ns: Option<u64>,
    /// Reservation, EDF: relative deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Fair: weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
    /// Fixed priority: priority, larger first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u64>,
}

/// Tasks that follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ChainInfo {
    /// Its name.
    pub name: String,
    /// From the first task to the last.
    pub links: Vec<LinkInfo>,
    /// How long it may take at most, as the plan says.
    #[serde(default)]
    pub needs: Latencies,
    /// How long it takes at most, as check has found.
    #[serde(default)]
    pub bounds: Latencies,
    /// Label of the marks by which live programs say what they pass on; `None`: their wake-ups tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// A task of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct LinkInfo {
    /// Its name.
    pub task: String,
    /// The one before it releases its jobs; otherwise they read what that wrote last.
    #[serde(default, skip_serializing_if = "is_false")]
    pub triggered: bool,
    /// What comes from the one before it comes so much later.
    #[serde(default)]
    pub delay_ns: u64,
}

/// Times that a chain takes; `None`: nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Latencies {
    /// From the nominal release of a job of the first task to the end of a job of the last that knows of it, or of a later one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<u64>,
    /// From an event that the first task looks at to the same end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reaction_ns: Option<u64>,
    /// From the nominal release of a job of the first task to the end of each job of the last that knows of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ns: Option<u64>,
}

impl Latencies {
    /// In the order of [`Latency::ALL`].
    pub fn all(&self) -> [Option<u64>; 3] {
        [self.response_ns, self.reaction_ns, self.age_ns]
    }

    /// One of them.
    pub fn of(&mut self, latency: Latency) -> &mut Option<u64> {
        match latency {
            Latency::Response => &mut self.response_ns,
            Latency::Reaction => &mut self.reaction_ns,
            Latency::Age => &mut self.age_ns,
        }
    }
}

impl TraceHeader {
    /// The name of a node or task, if the header has it.
    pub fn name(&self, id: u32) -> Option<&str> {
        let node = self.nodes.iter().find(|node| node.id == id).map(|node| node.name.as_str());
        node.or_else(|| self.tasks.iter().find(|task| task.id == id).map(|task| task.name.as_str()))
    }
}
