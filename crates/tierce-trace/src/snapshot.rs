//! What each part of a plan has received up to one moment: what `tierce top` shows and metrics say, of a live run, a simulation or a trace.
//!
//! All numbers are counted from the begin of the run and only grow, as long as a part is there. Threads that have no name in the plan
//! are pooled: those of a set are one part, those of the default node another ([`crate::Tally`]).

use crate::promise::Promise;
use serde::{Deserialize, Serialize};

/// Version of [`Snapshot`].
pub const VERSION: u32 = 1;

/// All parts at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`VERSION`].
    pub version: u32,
    /// The plan.
    pub plan: String,
    /// Since the begin.
    pub elapsed_ns: u64,
    /// Records lost.
    pub lost: u64,
    /// Per CPU.
    pub cpus: Vec<Cpu>,
    /// Nodes in the order of the plan, then tasks, then sets and other threads.
    pub parts: Vec<Part>,
}

/// A CPU; elapsed = used + idle + stolen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// Time given to tasks.
    pub used_ns: u64,
    /// Time without a task.
    pub idle_ns: u64,
    /// Interference: interrupts, and threads outside of the plan.
    pub stolen_ns: u64,
    /// What it runs.
    pub runs: Option<Running>,
}

/// The task that a CPU runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The part that it belongs to.
    pub part: String,
    /// What kind that is.
    pub kind: Kind,
    /// Its thread, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// The thread's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
}

/// What a part is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A scheduler.
    #[default]
    Node,
    /// A task of the plan.
    Task,
    /// All threads of a set.
    Set,
    /// All threads that match nothing.
    Others,
    /// One thread of a set, or one that matches nothing.
    Thread,
}

impl Kind {
    /// As JSON and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Node => "node",
            Kind::Task => "task",
            Kind::Set => "set",
            Kind::Others => "others",
            Kind::Thread => "thread",
        }
    }
}

/// Name of the part that threads which match nothing are.
pub const OTHERS: &str = "others";

/// A part of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Of a replica of a spread node: the name of all of them, which tasks below have as their parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Of a thread: the set that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Threads of a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// What its threads have counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// Its edges, one per parent.
    pub under: Vec<Edge>,
}

/// What threads count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Times that one got a CPU.
    pub switches: u64,
    /// Times that one got another CPU than the one before.
    pub migrations: u64,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that missed their deadline.
    pub misses: u64,
}

/// An edge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The node above, `cpu0` above a root.
    pub parent: String,
    /// Its numbers.
    #[serde(flatten)]
    pub counts: EdgeCounts,
}

/// What an edge has, and what went through it; of a pool, the budget of each thread and the sums of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeCounts {
    /// Its budget.
    pub budget_ns: Option<u64>,
    /// In this period.
    pub period_ns: Option<u64>,
    /// CPU time that went through it.
    pub supply_ns: u64,
    /// Times that the budget was used up.
    pub throttles: u64,
    /// Times that there was a new one.
    pub replenishments: u64,
    /// What was promised, and whether that was kept.
    pub promise: Option<Promise>,
}

impl Part {
    /// Received through all edges.
    pub fn supply_ns(&self) -> u64 {
        self.under.iter().map(|edge| edge.counts.supply_ns).sum()
    }
}
