//! A snapshot of statistics: of a simulation, or of a trace up to some time.

use crate::report::{EdgeReport, NodeReport, Report, TaskReport};
use crate::snapshot::{Counts, Cpu, Edge, EdgeCounts, Kind, Part, Running, Snapshot, OTHERS, VERSION};
use crate::stats::Stats;
use crate::tally::{Tally, Thread};
use std::collections::{HashMap, HashSet};

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
        let edges = task.under.iter().map(|edge| (edge.edge, self.parent(edge).into(), self.counts(edge)));
        tally.thread(&Thread { leaf: task.id, who: 0, set, counts }, edges);
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
