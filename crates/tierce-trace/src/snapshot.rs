//! What each part of a plan has received up to one moment: what `tierce top` shows and metrics say, of a live run, a simulation or a trace.
//!
//! All numbers are counted from the begin of the run and only grow, as long as a part is there. Threads that have no name in the plan
//! are pooled: those of a set are one part, those of the default node another ([`Tally`]).

use crate::promise::Promise;
use crate::report::{EdgeReport, NodeReport, Report, TaskReport};
use crate::stats::Stats;
use crate::tally::{Tally, Thread};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

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

/// The set of a task that a simulation calls `set[3]`.
fn set_of(name: &str) -> Option<&str> {
    let (set, rest) = name.split_once('[')?;
    rest.ends_with(']').then_some(set)
}

/// Names and numbers of a report, as parts have them.
struct Parts<'a> {
    stats: &'a Stats,
    periods: HashMap<u32, u64>,
    /// Edges whose child moves between replicas.
    spread: HashSet<u32>,
    /// Tasks that the plan names.
    planned: HashSet<u32>,
}

/// The name that all replicas of a node have.
fn base(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

impl<'a> Parts<'a> {
    fn of(stats: &'a Stats) -> Parts<'a> {
        let header = stats.header();
        let edges = header.edges.iter();
        Parts {
            stats,
            periods: edges.clone().filter_map(|edge| Some((edge.id, edge.period_ns?))).collect(),
            spread: edges.filter(|edge| edge.spread).map(|edge| edge.id).collect(),
            planned: header.tasks.iter().map(|task| task.id).collect(),
        }
    }

    fn parent(&self, edge: &EdgeReport) -> String {
        let spread = self.spread.contains(&edge.edge);
        if spread { base(&edge.parent) } else { &edge.parent }.to_string()
    }

    fn counts(&self, edge: &EdgeReport) -> EdgeCounts {
        EdgeCounts {
            budget_ns: edge.budget_ns,
            period_ns: self.periods.get(&edge.edge).copied(),
            supply_ns: edge.cpu_ns,
            throttles: edge.throttles,
            replenishments: edge.replenishments,
            promise: edge.promise,
        }
    }

    fn under(&self, list: &[EdgeReport]) -> Vec<Edge> {
        list.iter().map(|edge| Edge { parent: self.parent(edge), counts: self.counts(edge) }).collect()
    }

    fn nodes(&self, report: &Report) -> Vec<Part> {
        let nodes = &self.stats.header().nodes;
        let spread: HashSet<u32> =
            nodes.iter().filter(|node| node.family.is_some()).map(|node| node.id).collect();
        let there = report.nodes.iter().filter(|node| !node.gone);
        let part = |node: &NodeReport| Part {
            name: node.name.clone(),
            policy: Some(node.policy.clone()),
            family: spread.contains(&node.id).then(|| base(&node.name).to_string()),
            under: self.under(&node.under),
            ..Part::default()
        };
        there.map(part).collect()
    }

    /// A task of the plan; any other is told to the tally.
    fn task(&self, task: &TaskReport, tally: &mut Tally) -> Option<Part> {
        let counts = Counts {
            switches: task.switches,
            migrations: task.migrations,
            jobs: task.released,
            misses: task.misses,
        };
        let planned = self.planned.contains(&task.id);
        let set = set_of(&task.name).filter(|_| planned);
        if planned && set.is_none() {
            let (name, under) = (task.name.clone(), self.under(&task.under));
            return Some(Part { name, kind: Kind::Task, counts, under, ..Part::default() });
        }
        tally.thread(&Thread { leaf: task.id, who: 0, set, counts });
        for edge in &task.under {
            tally.edge(task.id, edge.edge, &self.parent(edge), self.counts(edge));
        }
        None
    }

    fn runs(&self, task: u32) -> Option<Running> {
        let name = (task != 0).then(|| self.stats.name(task))?;
        let (kind, part) = match (self.planned.contains(&task), set_of(&name)) {
            (true, None) => (Kind::Task, name.clone()),
            (true, Some(set)) => (Kind::Set, set.to_string()),
            (false, _) => (Kind::Others, OTHERS.to_string()),
        };
        let comm = (kind != Kind::Task).then_some(name);
        Some(Running { part, kind, tid: None, comm })
    }
}

impl Snapshot {
    /// Of statistics as of now. `running`: the task that each CPU runs, 0: none. `tally` is that of the snapshots before.
    pub fn of(stats: &Stats, running: &[u32], tally: &mut Tally) -> Snapshot {
        let (report, about) = (stats.report(), Parts::of(stats));
        let mut parts = about.nodes(&report);
        tally.begin();
        let tasks = report.tasks.iter().filter(|task| task.id != 0 && !task.gone);
        parts.extend(tasks.filter_map(|task| about.task(task, tally)));
        tally.end(&mut parts);
        let cpus = report.cpus.iter().map(|cpu| Cpu {
            cpu: cpu.cpu,
            used_ns: cpu.used_ns,
            idle_ns: cpu.idle_ns,
            stolen_ns: cpu.stolen_ns,
            runs: running.get(cpu.cpu as usize).and_then(|&task| about.runs(task)),
        });
        Snapshot {
            version: VERSION,
            plan: report.plan.clone(),
            elapsed_ns: report.elapsed_ns,
            lost: report.lost,
            cpus: cpus.collect(),
            parts,
        }
    }
}
