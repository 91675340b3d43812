//! What a plan would do with the threads there are now, without touching the kernel: who would be bound to what, who not
//! and why. The plan's graph is built in the native engine and threads are attached to it, so what it refuses is what the
//! kernel side would refuse, in the same words.
//!
//! Example: `[task.audio]` matches the threads 811 and 812. 811 is bound; 812 is refused, since a task is one thread, and
//! stays in the default node.

use crate::threads::Live;
use anyhow::{Context, Result};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use tierce_plan::{nice_weight, Child, Edge, Ids, Members, Plan};
use tierce_policy::{Graph, KERNEL, TASK};

/// A thread, as far as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// Name of the thread.
    pub comm: String,
}

impl Shown {
    fn of(live: &Live) -> Shown {
        Shown { tid: live.thread.tid, pid: live.thread.pid, comm: live.thread.comm.clone() }
    }
}

/// A thread that does not get what it matches, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The thread.
    pub thread: Shown,
    /// In words.
    pub why: String,
}

/// What a task or set of the plan would get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the task or set.
    pub name: String,
    /// Whether it is a set.
    pub set: bool,
    /// Where its match is written: FILE:LINE:COLUMN.
    pub place: String,
    /// Threads that would be bound to it.
    pub bound: Vec<Shown>,
    /// Threads that match and would not be.
    pub refused: Vec<Refused>,
}

/// What would happen to every thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// Tasks and sets with a match, in the order of the text.
    pub entries: Vec<Entry>,
    /// Name of the default node.
    pub default_node: String,
    /// Threads that would be there.
    pub default: Vec<Shown>,
    /// Threads that would be outside the graph, in one queue beside it: the default node cannot take them.
    pub overflow: Vec<Refused>,
    /// Threads of real-time and deadline classes that match nothing: they run before the plan.
    pub above: Vec<Shown>,
    /// Kernel threads of one CPU: they run beside every plan.
    pub pinned: Vec<Shown>,
}

/// Sizes of the kernel build's pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pools {
    /// Nodes and tasks.
    pub nodes: usize,
    /// Edges.
    pub edges: usize,
}

impl Default for Pools {
    fn default() -> Self {
        Pools { nodes: KERNEL.nodes as usize, edges: KERNEL.edges as usize }
    }
}

/// What `plan` would do with `threads`. The plan must be one that can be run: [`Plan::check_runnable`].
pub fn dry_run(plan: &Plan, threads: &[Live], pools: Pools) -> Result<DryRun> {
    let mut trial = Trial::new(plan, pools)?;
    let mut result = DryRun {
        entries: plan
            .entries
            .iter()
            .map(|entry| Entry {
                name: plan.child_name(entry.target).to_string(),
                set: matches!(entry.target, Child::Set(_)),
                place: plan.sources.place(entry.spot).to_string(),
                bound: Vec::new(),
                refused: Vec::new(),
            })
            .collect(),
        default_node: plan.nodes[trial.default].base.clone(),
        ..Default::default()
    };
    for live in threads {
        let shown = Shown::of(live);
        let entry = plan.entry_of(&live.thread);
        match (entry, outside(live)) {
            (Some(entry), Some(why)) => {
                result.entries[entry].refused.push(Refused { thread: shown, why });
                continue;
            }
            (None, Some(_)) => {
                let list = if live.class.above() { &mut result.above } else { &mut result.pinned };
                list.push(shown);
                continue;
            }
            (Some(entry), None) => match trial.place(entry, live) {
                Ok(()) => {
                    result.entries[entry].bound.push(shown);
                    continue;
                }
                Err(why) => result.entries[entry].refused.push(Refused { thread: shown.clone(), why }),
            },
            (None, None) => {}
        }
        match trial.place_by_default(live) {
            Ok(()) => result.default.push(shown),
            Err(why) => result.overflow.push(Refused { thread: shown, why }),
        }
    }
    Ok(result)
}

/// Why a thread is none of any plan's.
pub(crate) fn outside(live: &Live) -> Option<String> {
    if live.class.above() {
        let class = live.class.name();
        return Some(format!(
            "{class} runs before every plan, as stolen time (chrt --other --pid 0 {} ends that)",
            live.thread.tid
        ));
    }
    live.is_pinned().then(|| "a kernel thread of one CPU runs beside every plan".to_string())
}

/// The plan's graph in the native engine, to try things on.
struct Trial<'a> {
    plan: &'a Plan,
    graph: Graph,
    ids: Ids,
    /// By index into [`Plan::tasks`]: the thread that has it.
    holders: Vec<Option<u32>>,
    default: usize,
    /// What is left.
    pools: Pools,
}

const NOW: u64 = 0;

impl<'a> Trial<'a> {
    fn new(plan: &'a Plan, pools: Pools) -> Result<Trial<'a>> {
        let mut graph = Graph::new(plan.machine.cpus, NOW)?;
        let ids = plan.build(&mut graph.at(NOW), Members::Live)?;
        let used = |ids: &[u32]| ids.iter().filter(|id| **id != 0).count();
        Ok(Trial {
            plan,
            graph,
            pools: Pools {
                nodes: pools.nodes.saturating_sub(used(&ids.nodes) + used(&ids.tasks)),
                edges: pools.edges.saturating_sub(used(&ids.edges) + ids.roots.len()),
            },
            holders: vec![None; plan.tasks.len()],
            ids,
            default: plan.default_node.context("the plan has no default node")?,
        })
    }

    fn place(&mut self, entry: usize, live: &Live) -> Result<(), String> {
        match self.plan.entries[entry].target {
            Child::Task(task) => {
                if let Some(other) = self.holders[task] {
                    return Err(format!("thread {other} has it: a task is one thread, a set takes all"));
                }
                let allowed = self.plan.tasks[task].affinity.unwrap_or(u64::MAX) & live.allowed;
                self.graph.allow(self.ids.tasks[task], allowed, NOW).map_err(|error| may_run(live, error))?;
                self.holders[task] = Some(live.thread.tid);
                Ok(())
            }
            Child::Set(set) => {
                let set = &self.plan.sets[set];
                self.attach(live, set.affinity.unwrap_or(u64::MAX), &set.under)
            }
            Child::Node(_) => Err("a node takes no threads".into()),
        }
    }

    fn place_by_default(&mut self, live: &Live) -> Result<(), String> {
        let node = &self.plan.nodes[self.default];
        let (mut params, nice) = self.plan.default_params();
        if let Some(at) = nice {
            params[at] = nice_weight(live.thread.nice);
        }
        let edge = Edge {
            parent: self.default,
            child: Child::Set(0),
            params,
            rank: 0,
            when_spent: false,
            spread: node.family.is_some(),
            placed: false,
            spot: node.spot,
        };
        self.attach(live, u64::MAX, &[edge])
    }

    /// A new leaf with these edges; all or nothing.
    fn attach(&mut self, live: &Live, affinity: u64, under: &[Edge]) -> Result<(), String> {
        if self.pools.nodes == 0 {
            return Err("the pool of nodes is used up".into());
        }
        if self.pools.edges < under.len() {
            return Err("the pool of edges is used up".into());
        }
        let leaf = self.graph.node_new(TASK, 1, affinity & live.allowed, [0; 4]);
        let leaf = leaf.ok_or("the pool of nodes is used up")?;
        let mut attached = Vec::new();
        for edge in under {
            let result =
                self.graph.attach(self.ids.nodes[edge.parent], leaf, edge.params, edge.rank, edge.way(), NOW);
            match result {
                Ok(id) => attached.push(id),
                Err(error) => {
                    for id in attached {
                        let _ = self.graph.detach(id, NOW);
                    }
                    let _ = self.graph.node_free(leaf);
                    let about_cpus = ["cpu_not_allowed", "affinity_below_inner_node"].contains(&error.name());
                    return Err(match about_cpus {
                        true => may_run(live, error),
                        false => format!("below {}: {error}", self.plan.nodes[edge.parent].name),
                    });
                }
            }
        }
        self.pools = Pools { nodes: self.pools.nodes - 1, edges: self.pools.edges - under.len() };
        Ok(())
    }
}

pub(crate) fn may_run(live: &Live, error: tierce_policy::Error) -> String {
    format!("it may run on {} only: {error}", cpus(live.allowed))
}

/// "CPU 0, 2", or how many they are.
pub(crate) fn cpus(mask: u64) -> String {
    let cpus: Vec<_> = (0..64).filter(|cpu| mask >> cpu & 1 != 0).map(|cpu| cpu.to_string()).collect();
    if cpus.len() > 8 {
        return format!("{} CPUs", cpus.len());
    }
    format!("CPU {}", cpus.join(", "))
}

impl DryRun {
    /// How many threads match and would not get it.
    pub fn refused(&self) -> usize {
        self.entries.iter().map(|entry| entry.refused.len()).sum()
    }

    /// For programs: `version` 1, `entries[]` (`name`, `kind`, `place`, `bound[]`, `refused[]`), `default_node`, `default[]`,
    /// `overflow[]`, `above[]`, `pinned[]`. Threads have `tid`, `pid`, `comm`, and `why` where they are refused.
    pub fn to_json(&self) -> serde_json::Value {
        let shown = |thread: &Shown| json!({ "tid": thread.tid, "pid": thread.pid, "comm": thread.comm });
        let threads = |list: &[Shown]| list.iter().map(shown).collect::<Vec<_>>();
        let refused = |list: &[Refused]| {
            let one = |refused: &Refused| {
                let mut thread = shown(&refused.thread);
                thread["why"] = refused.why.clone().into();
                thread
            };
            list.iter().map(one).collect::<Vec<_>>()
        };
        let entries: Vec<_> = self
            .entries
            .iter()
            .map(|entry| {
                json!({
                    "name": entry.name, "kind": if entry.set { "set" } else { "task" }, "place": entry.place,
                    "bound": threads(&entry.bound), "refused": refused(&entry.refused),
                })
            })
            .collect();
        json!({
            "version": 1, "entries": entries, "default_node": self.default_node, "default": threads(&self.default),
            "overflow": refused(&self.overflow), "above": threads(&self.above), "pinned": threads(&self.pinned),
        })
    }
}

/// A table: threads of one name on one line.
impl fmt::Display for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(f, "{} {}  ({})", if entry.set { "set" } else { "task" }, entry.name, entry.place)?;
            if entry.bound.is_empty() && entry.refused.is_empty() {
                writeln!(f, "  – no thread matches now")?;
            }
            for (comm, threads) in by_name(&entry.bound) {
                writeln!(f, "  ✓ {comm}  {threads}")?;
            }
            let mut reasons: BTreeMap<&str, Vec<Shown>> = BTreeMap::new();
            for refused in &entry.refused {
                reasons.entry(&refused.why).or_default().push(refused.thread.clone());
            }
            for (why, threads) in reasons {
                for (comm, threads) in by_name(&threads) {
                    writeln!(f, "  ✗ {comm}  {threads}: {why}")?;
                }
            }
        }
        writeln!(f, "default node {}: {}", self.default_node, count(self.default.len()))?;
        if !self.overflow.is_empty() {
            let why = &self.overflow[0].why;
            writeln!(f, "! {} in one queue outside the graph: {why}", count(self.overflow.len()))?;
        }
        if !self.above.is_empty() {
            let names: Vec<_> =
                by_name(&self.above).into_iter().map(|(comm, threads)| format!("{comm} {threads}")).collect();
            writeln!(f, "above every plan (real-time and deadline classes): {}", names.join(", "))?;
        }
        if !self.pinned.is_empty() {
            writeln!(
                f,
                "beside every plan: {} of one CPU",
                count(self.pinned.len()).replace("thread", "kernel thread")
            )?;
        }
        Ok(())
    }
}

fn count(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// `(811)`, or `×12 (900, 901, 902, …)`.
fn by_name(threads: &[Shown]) -> Vec<(&str, String)> {
    let mut names: Vec<(&str, Vec<u32>)> = Vec::new();
    for thread in threads {
        match names.iter_mut().find(|(comm, _)| *comm == thread.comm) {
            Some((_, tids)) => tids.push(thread.tid),
            None => names.push((&thread.comm, vec![thread.tid])),
        }
    }
    names
        .into_iter()
        .map(|(comm, tids)| {
            let first: Vec<_> = tids.iter().take(3).map(u32::to_string).collect();
            let text = match tids.len() {
                1 => format!("({})", first[0]),
                2 | 3 => format!("×{} ({})", tids.len(), first.join(", ")),
                count => format!("×{count} ({}, …)", first.join(", ")),
            };
            (comm, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Class;
    use tierce_plan::{Options, Thread};

    const PLAN: &str = r#"
        [node.top]
        policy = "fixed-priority"
        per_cpu = true
        [node.rt]
        policy = "reservation"
        under.top = { cpu = 0, priority = 1 }
        [node.rest]
        policy = "fair"
        default = true
        under.top = { priority = 0 }
        each = { weight = "nice" }
        [task.audio]
        under.rt = { budget = "2ms", period = "10ms" }
        match = { comm = "audio*" }
        [tasks.worker]
        under.rt = { budget = "4ms", period = "10ms" }
        match = { comm = "worker" }
        [task.nobody]
        under.rest = {}
        match = { comm = "nobody" }
    "#;

    fn plan() -> Plan {
        Plan::parse_with(PLAN, "plan.toml", Options { cpus: 2 }).unwrap_or_else(|faults| panic!("{faults}"))
    }

    fn live(tid: u32, comm: &str) -> Live {
        let thread = Thread { comm: comm.into(), pcomm: comm.into(), pid: tid, tid, ..Default::default() };
        Live { thread, class: Class::Other, allowed: 3, allowed_count: 2, is_bound: false }
    }

    fn ids(list: &[Shown]) -> Vec<u32> {
        list.iter().map(|thread| thread.tid).collect()
    }

    #[test]
    fn who_goes_where_and_why_not() {
        let mut threads = vec![
            live(1, "init"),
            live(11, "audio-1"),
            live(12, "audio-2"),
            live(21, "worker"),
            live(22, "worker"),
            live(23, "worker"),
            live(24, "worker"),
            live(25, "worker"),
            live(31, "irq/7"),
            live(41, "kworker/0"),
            live(51, "shell"),
        ];
        threads[6].allowed = 2; // rt is on CPU 0
        threads[7].class = Class::Fifo;
        threads[8].class = Class::RoundRobin;
        threads[9].thread.is_kthread = true;
        threads[9].allowed_count = 1;
        threads[9].is_bound = true;
        threads[10].allowed = 1;
        let result = dry_run(&plan(), &threads, Pools::default()).unwrap();
        let [audio, worker, nobody] = &result.entries[..] else { panic!("{result}") };
        assert_eq!((ids(&audio.bound), audio.set), (vec![11], false));
        assert_eq!(audio.refused[0].why, "thread 11 has it: a task is one thread, a set takes all");
        assert_eq!((ids(&worker.bound), worker.set), (vec![21, 22], true));
        let why: Vec<&str> = worker.refused.iter().map(|refused| refused.why.as_str()).collect();
        assert!(why[0].starts_with("below rt: "), "{why:?}"); // 2/10 + 3 * 4/10 > 1
        assert!(why[1].starts_with("it may run on CPU 1 only: cpu_not_allowed"), "{why:?}");
        assert!(why[2].starts_with("SCHED_FIFO runs before every plan"), "{why:?}");
        assert!(nobody.bound.is_empty() && nobody.refused.is_empty());
        assert_eq!(ids(&result.default), [1, 12, 23, 24, 51]);
        assert_eq!((ids(&result.above), ids(&result.pinned)), (vec![31], vec![41]));
        assert_eq!(result.refused(), 4);

        let text = result.to_string();
        for expected in [
            "task audio  (plan.toml:15:17)\n",
            "  ✓ audio-1  (11)\n",
            "  ✗ audio-2  (12): thread 11 has it",
            "  ✓ worker  ×2 (21, 22)\n",
            "  – no thread matches now\n",
            "default node rest: 5 threads\n",
            "above every plan (real-time and deadline classes): irq/7 (31)\n",
            "beside every plan: 1 kernel thread of one CPU\n",
        ] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
        let json = result.to_json();
        assert_eq!(json["entries"][1]["bound"][1]["tid"], 22);
        assert_eq!(json["entries"][0]["refused"][0]["why"], audio.refused[0].why.as_str());
        assert_eq!(json["entries"][0]["kind"], "task");
    }

    #[test]
    fn a_pinned_thread_of_the_kernel_that_matches() {
        let mut thread = live(9, "worker");
        thread.thread.is_kthread = true;
        thread.allowed_count = 1;
        let free = dry_run(&plan(), &[thread.clone()], Pools::default()).unwrap();
        assert_eq!(ids(&free.entries[1].bound), [9], "a thread like others, where there is one CPU");
        thread.is_bound = true;
        let result = dry_run(&plan(), &[thread], Pools::default()).unwrap();
        assert_eq!(result.entries[1].refused[0].why, "a kernel thread of one CPU runs beside every plan");
    }

    #[test]
    fn a_task_whose_cpus_its_thread_may_not_use() {
        let mut thread = live(9, "audio");
        thread.allowed = 2;
        let result = dry_run(&plan(), &[thread.clone(), live(10, "audio")], Pools::default()).unwrap();
        assert!(
            result.entries[0].refused[0].why.starts_with("it may run on CPU 1 only: cpu_not_allowed"),
            "{result}"
        );
        assert_eq!(ids(&result.entries[0].bound), [10], "the next one that can");
        assert_eq!(ids(&result.default), [9]);
    }

    #[test]
    fn more_threads_than_the_pools_hold() {
        // 5 nodes and tasks of the plan, two of them on both CPUs (top@0, rest@1, …): 7.
        let threads: Vec<Live> =
            (1..=4).map(|tid| live(tid, "worker")).chain((5..=8).map(|tid| live(tid, "x"))).collect();
        let result = dry_run(&plan(), &threads, Pools { nodes: 7 + 3, edges: 1000 }).unwrap();
        assert_eq!(ids(&result.entries[1].bound), [1, 2]);
        assert_eq!(ids(&result.default), [3]);
        assert_eq!(result.overflow.len(), 5);
        assert!(result
            .to_string()
            .contains("! 5 threads in one queue outside the graph: the pool of nodes is used up"));
        let result = dry_run(&plan(), &threads, Pools { nodes: 1000, edges: 0 }).unwrap();
        assert_eq!(result.overflow[0].why, "the pool of edges is used up");
    }

    #[test]
    fn this_machines_threads() {
        let threads = crate::threads::Proc::default().all();
        let result = dry_run(&plan(), &threads, Pools::default()).unwrap();
        assert!(result.default.iter().any(|thread| thread.pid == std::process::id()), "{result}");
    }
}
