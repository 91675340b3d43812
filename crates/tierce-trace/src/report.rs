//! What statistics say: as JSON, as tables for people.

mod tables;

use crate::header::Source;
use crate::histogram::{Histogram, Summary};
use crate::modes::CriticalModes;
use crate::promise::Promise;
use crate::stats::{name_of, EdgeStats, Stats, TaskStats};
use crate::waits::Waited;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Statistics of one schedule. The JSON of `tierce sim --json`, `tierce run --json` and `tierce trace stats --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Simulated or measured.
    pub source: Source,
    /// Name of the plan.
    pub plan: String,
    /// Seed, if it was simulated with one.
    pub seed: Option<u64>,
    /// Length of the recording.
    pub elapsed_ns: u64,
    /// Records lost; what they would have said is missing below.
    pub lost: u64,
    /// Per CPU; elapsed = used + idle + stolen.
    pub cpus: Vec<CpuReport>,
    /// Per task, in the order of ids; then threads that are gone, by name.
    pub tasks: Vec<TaskReport>,
    /// Per node, in the order of the plan.
    pub nodes: Vec<NodeReport>,
    /// Per chain of the plan, in its order; missing without chains (see [`crate::Chains`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainReport>,
    /// Migrations of all tasks below spread nodes; missing without spread nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Moves>,
    /// Time that CPUs idled while a task that may run there waited elsewhere; missing without spread nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_while_waiting: Option<IdleWhileWaiting>,
    /// Who waited for whose locks, the longest waits first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lock_waits: Vec<Waited>,
    /// Critical modes of `mixed-criticality` nodes, in the order of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_modes: Vec<CriticalModes>,
    /// How CPUs got into each other's way, if that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
}

/// How CPUs got into each other's way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contention {
    /// Per domain: that of each CPU, then the shared one of each group of CPUs that have one.
    pub locks: Vec<LockUse>,
    /// Per CPU.
    pub kicks: Vec<KickUse>,
}

/// How the lock of one domain was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LockUse {
    /// The CPU whose domain it is; missing: a shared domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// The lowest CPU of the group whose shared domain it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// How often it was acquired.
    pub taken: u64,
    /// What only a machine shows, where CPUs run at once; missing from a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none", flatten)]
    pub contended: Option<Contended>,
}

/// What CPUs that run at once do to each other at a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contended {
    /// Acquisitions after which another CPU had it than before.
    pub taken_over: u64,
    /// Acquisitions that found it taken.
    pub waited: u64,
    /// Time waited for it, added up.
    pub wait_ns: u64,
    /// Time it was held, added up; of a shared domain only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ns: Option<u64>,
}

/// How often a CPU was kicked: asked to decide, because of a wake-up or a change of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KickUse {
    /// The CPU.
    pub cpu: u32,
    /// Decisions that it was kicked for; kicks that come before the decision count as one.
    pub decisions: u64,
    /// Of these, it went on with what it did before.
    pub vain: u64,
}

/// How often tasks went to another replica of a spread node, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moves {
    /// Woken up and placed on another CPU.
    pub wake_up: u64,
    /// Taken by a CPU that was idle.
    pub pull: u64,
    /// Given away by the CPU where they waited.
    pub balance: u64,
    /// Found on another CPU: affinity, a CPU that goes offline.
    pub affinity: u64,
}

impl Moves {
    fn of(counts: &[u64; 4]) -> Moves {
        let [wake_up, pull, balance, affinity] = *counts;
        Moves { wake_up, pull, balance, affinity }
    }

    /// For whatever reason.
    pub fn total(&self) -> u64 {
        self.wake_up + self.pull + self.balance + self.affinity
    }
}

/// What [`crate::WorkConservation`] has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleWhileWaiting {
    /// The sum of all such intervals; each idle CPU is set against another waiting task.
    pub total_ns: u64,
    /// How many there are.
    pub intervals: u64,
    /// The longest.
    pub longest: Option<LongestGap>,
}

/// The longest interval in which a CPU idled while a task that may run there waited elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongestGap {
    /// Its length.
    pub length_ns: u64,
    /// When it began, after the begin of the recording.
    pub at_ns: u64,
    /// The CPU that idled.
    pub cpu: u32,
    /// Where the task waited: a replica of a spread node, else the task itself.
    pub waited: String,
}

/// One CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReport {
    /// Its number.
    pub cpu: u32,
    /// Time given to tasks.
    pub used_ns: u64,
    /// Time without a task.
    pub idle_ns: u64,
    /// Time spent outside the graph.
    pub stolen_ns: u64,
    /// Times it turned to a task.
    pub switches: u64,
    /// Part of `idle_ns` in which a task that may run here waited elsewhere; missing without spread nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_while_waiting_ns: Option<u64>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Its id; 0: threads of this name that are gone.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// A change of the plan took it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// CPU time received.
    pub cpu_ns: u64,
    /// Jobs that arrived.
    pub released: u64,
    /// Jobs that were completed.
    pub jobs: u64,
    /// Jobs that were not done at their deadline, completed later or never.
    pub misses: u64,
    /// Response times of completed jobs; null without any.
    pub response_ns: Option<Spread>,
    /// How late completed jobs were; one in time counts as 0.
    pub tardiness_ns: Tardiness,
    /// Times it got a CPU.
    pub switches: u64,
    /// Times it got another CPU than the one before.
    pub migrations: u64,
    /// Times it went to another replica of a spread node; missing if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Moves>,
    /// Time constraints; missing if it asked for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Constraints>,
    /// Waits for locks; missing if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_waits: Option<LockWaits>,
    /// Its edges, one per parent.
    pub under: Vec<EdgeReport>,
}

/// Time constraints of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraints {
    /// How many it asked for.
    pub asked: u64,
    /// Of them, those that were accepted.
    pub accepted: u64,
    /// Of those, the ones whose work was done by the deadline.
    pub met: u64,
}

/// Waits of a task for locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWaits {
    /// How often it waited.
    pub count: u64,
    /// The longest of these waits.
    pub max_ns: u64,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its policy.
    pub policy: String,
    /// Nodes above it, at most.
    pub level: u32,
    /// A change of the plan took it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// CPU time that went through it.
    pub cpu_ns: u64,
    /// Its edges, one per parent.
    pub under: Vec<EdgeReport>,
}

/// One edge to a parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeReport {
    /// Its id.
    pub edge: u32,
    /// The parent's name, `cpu0` for a root.
    pub parent: String,
    /// CPU time that went through it.
    pub cpu_ns: u64,
    /// Times it was granted a CPU.
    pub grants: u64,
    /// Times its budget was used up.
    pub throttles: u64,
    /// Times it got budget back.
    pub replenishments: u64,
    /// Debt and budget written off.
    pub forgiven_ns: u64,
    /// Its budget, if it has one.
    pub budget_ns: Option<u64>,
    /// CPU time per period, from one replenishment to the next; null before the second one.
    pub supply_ns: Option<Supply>,
    /// What it is promised, and whether that was kept; missing if nothing was owed yet, and from a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
}

/// Smallest, mean, 99th percentile (relative error at most 1/128) and largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Smallest.
    pub min: u64,
    /// Mean, rounded down.
    pub avg: u64,
    /// Not exceeded by 99 %.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

impl Spread {
    /// Of these values; `None` without any.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let Summary { min, max, .. } = *histogram.summary();
        Some(Self { min, avg: histogram.summary().avg()?, p99: histogram.percentile(99)?, max })
    }
}

/// How long a chain took; each null where nothing came through it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainReport {
    /// Its name.
    pub name: String,
    /// A change of the plan took it out, or made another one of it: until then.
    #[serde(default, skip_serializing_if = "crate::header::is_false")]
    pub ended: bool,
    /// From the nominal release of a job of the first task to the end of a job of the last that knew of it, or of a later one.
    pub response_ns: Option<Spread>,
    /// From when the job before had looked to the same end: for an event that came just after.
    pub reaction_ns: Option<Spread>,
    /// From the nominal release of the job of the first task that a job of the last knew of to the end of that.
    pub age_ns: Option<Spread>,
}

/// How late jobs were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tardiness {
    /// Mean over all completed jobs, rounded down.
    pub avg: u64,
    /// Of the latest job.
    pub max: u64,
}

/// CPU time per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supply {
    /// How many whole periods.
    pub periods: u64,
    /// Smallest.
    pub min: u64,
    /// Mean, rounded down.
    pub avg: u64,
    /// Largest.
    pub max: u64,
    /// |supply - budget| that 99 % of the periods do not exceed; null without a known budget.
    pub deviation_p99: Option<u64>,
    /// Largest |supply - budget|.
    pub deviation_max: Option<u64>,
}

impl Stats {
    /// The report at the time of the latest event, or of [`Stats::finish`].
    pub fn report(&self) -> Report {
        let spread = self.conservation.applies();
        let moves = self.header.nodes.iter().any(|node| node.family.is_some()).then(|| self.moves());
        let mut under = self.edges_by_child();
        let nodes = self.node_reports(&mut under);
        Report {
            source: self.header.source,
            plan: self.header.plan.clone(),
            seed: self.header.seed,
            elapsed_ns: self.now_ns.saturating_sub(self.start_ns),
            lost: self.lost,
            cpus: self.cpu_reports(spread),
            tasks: self.task_reports(&mut under),
            nodes,
            chains: Vec::new(),
            moves,
            idle_while_waiting: spread.then(|| self.idle_while_waiting()),
            lock_waits: self.lock_waits(self.now_ns),
            critical_modes: self.critical_modes(self.now_ns),
            contention: None,
        }
    }

    fn cpu_reports(&self, spread: bool) -> Vec<CpuReport> {
        let cpus = self.cpus.iter().enumerate().map(|(cpu, stats)| CpuReport {
            cpu: cpu as u32,
            used_ns: stats.used_ns,
            idle_ns: stats.idle_ns,
            stolen_ns: stats.stolen_ns,
            switches: stats.switches,
            idle_while_waiting_ns: spread.then(|| self.conservation.cpu_ns(cpu as u32)),
        });
        cpus.collect()
    }

    /// Those that are still there or had CPU time.
    fn node_reports(&self, under: &mut [Vec<EdgeReport>]) -> Vec<NodeReport> {
        let nodes = self.header.nodes.iter().map(|node| {
            let under = take(under, node.id);
            let former = self.former_edges_ns.get(&node.id).copied().unwrap_or(0);
            NodeReport {
                id: node.id,
                name: node.name.clone(),
                policy: node.policy.clone(),
                level: node.level,
                gone: node.gone,
                cpu_ns: under.iter().map(|edge| edge.cpu_ns).sum::<u64>() + former,
                under,
            }
        });
        nodes.filter(|node: &NodeReport| !node.gone || node.cpu_ns > 0).collect()
    }

    /// Those that are still there or did something; then former threads.
    fn task_reports(&self, under: &mut [Vec<EdgeReport>]) -> Vec<TaskReport> {
        let mut known = vec![None; self.tasks.len()];
        for task in &self.header.tasks {
            known.get_mut(task.id as usize).into_iter().for_each(|known| *known = Some(task.gone));
        }
        let live = self.tasks.iter().enumerate().skip(1).filter(|&(id, stats)| {
            known[id] == Some(false)
                || stats.released > 0
                || stats.switches > 0
                || stats.cpu_ns > 0
                || stats.misses > 0
        });
        let live = live.map(|(id, stats)| {
            let id = id as u32;
            let report = task_report(id, self.name(id), stats, take(under, id));
            TaskReport { gone: known[id as usize] == Some(true), ..report }
        });
        let former = self.former.iter().map(|(name, stats)| task_report(0, name.clone(), stats, Vec::new()));
        live.chain(former).collect()
    }

    fn idle_while_waiting(&self) -> IdleWhileWaiting {
        let conservation = &self.conservation;
        IdleWhileWaiting {
            total_ns: conservation.total_ns(),
            intervals: conservation.intervals(),
            longest: conservation.longest().map(|gap| LongestGap {
                length_ns: gap.length_ns,
                at_ns: gap.begin_ns.saturating_sub(self.start_ns),
                cpu: gap.cpu,
                waited: self.name(gap.waited),
            }),
        }
    }

    /// Of all tasks.
    fn moves(&self) -> Moves {
        let mut sum = [0; 4];
        for task in self.tasks.iter().chain(self.former.values()) {
            sum.iter_mut().zip(task.moves).for_each(|(sum, one)| *sum += one);
        }
        Moves::of(&sum)
    }

    /// The name of a node or task, `#17` when nobody told.
    pub fn name(&self, id: u32) -> String {
        name_of(&self.names, id)
    }

    fn edges_by_child(&self) -> Vec<Vec<EdgeReport>> {
        let mut under: Vec<Vec<EdgeReport>> = Vec::new();
        let roots: Vec<(u32, u32)> =
            self.header.edges.iter().filter_map(|edge| Some((edge.id, edge.cpu?))).collect();
        let spread: HashSet<u32> =
            self.header.edges.iter().filter(|edge| edge.spread).map(|edge| edge.id).collect();
        for (id, stats) in self.edges.iter().enumerate().filter(|(_, stats)| stats.child != 0) {
            let id = id as u32;
            let root = roots.iter().find(|&&(edge, _)| edge == id).map(|&(_, cpu)| format!("cpu{cpu}"));
            let parent = match (stats.parent, root) {
                (0, Some(root)) => root,
                (0, None) => "cpu".into(),
                (parent, _) if spread.contains(&id) => {
                    let name = self.name(parent); // of the replica where it began
                    name.rsplit_once('@').map_or(name.clone(), |(base, _)| base.to_string())
                }
                (parent, _) => self.name(parent),
            };
            let child = stats.child as usize;
            if child >= under.len() {
                under.resize_with(child + 1, Vec::new);
            }
            under[child].push(edge_report(id, parent, stats));
        }
        under
    }
}

fn take(under: &mut [Vec<EdgeReport>], child: u32) -> Vec<EdgeReport> {
    under.get_mut(child as usize).map(std::mem::take).unwrap_or_default()
}

fn task_report(id: u32, name: String, stats: &TaskStats, under: Vec<EdgeReport>) -> TaskReport {
    let TaskStats { asked, accepted, met, .. } = *stats;
    let avg = stats.tardiness_sum_ns.checked_div(u128::from(stats.jobs())).unwrap_or(0) as u64;
    TaskReport {
        id,
        name,
        gone: false,
        cpu_ns: stats.cpu_ns,
        released: stats.released,
        jobs: stats.jobs(),
        misses: stats.misses,
        response_ns: Spread::of(&stats.response_ns),
        tardiness_ns: Tardiness { avg, max: stats.tardiness_max_ns },
        switches: stats.switches,
        migrations: stats.migrations,
        moves: Some(Moves::of(&stats.moves)).filter(|moves| moves.total() > 0),
        constraints: (asked > 0).then_some(Constraints { asked, accepted, met }),
        lock_waits: (stats.lock_waits > 0)
            .then_some(LockWaits { count: stats.lock_waits, max_ns: stats.lock_wait_max_ns }),
        under,
    }
}

fn edge_report(edge: u32, parent: String, stats: &EdgeStats) -> EdgeReport {
    EdgeReport {
        edge,
        parent,
        cpu_ns: stats.cpu_ns,
        grants: stats.grants,
        throttles: stats.throttles,
        replenishments: stats.replenishments,
        forgiven_ns: stats.forgiven_ns,
        budget_ns: stats.budget_ns,
        supply_ns: supply(&stats.supply_ns, &stats.deviation_ns),
        promise: stats.promise,
    }
}

fn supply(supply: &Summary, deviation: &Histogram) -> Option<Supply> {
    Some(Supply {
        periods: supply.count,
        min: supply.min,
        avg: supply.avg()?,
        max: supply.max,
        deviation_p99: deviation.percentile(99),
        deviation_max: deviation.percentile(100).map(|_| deviation.summary().max),
    })
}
