//! What a plan would do with the threads there are now, without touching the kernel: who would be bound to what, who not
//! and why. The plan's graph is built in the native engine and threads are attached to it, so what it refuses is what the
//! kernel side would refuse, in the same words.
//!
//! Example: `[task.audio]` matches the threads 811 and 812. 811 is bound; 812 is refused, since a task is one thread, and
//! stays in the default node.

mod shown;

use crate::copies::Copies;
use crate::threads::Live;
use anyhow::{Context, Result};
use std::collections::HashSet;
use tierce_admission::PlanExt;
use tierce_plan::{nice_weight, Child, Cpus, Edge, Fit, Ids, Members, Plan, RealTime};
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
    /// The CPU that was chosen for it (`cpu = "any"`).
    pub cpu: Option<u32>,
    /// The class that it would leave for its place.
    pub class: Option<RealTime>,
    /// By which keys and values of the plan it matches; empty if it does not.
    pub by: String,
}

impl Shown {
    fn of(live: &Live) -> Shown {
        Shown {
            tid: live.thread.tid,
            pid: live.thread.pid,
            comm: live.thread.comm.clone(),
            cpu: None,
            class: live.thread.realtime,
            by: String::new(),
        }
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
    /// The CPU that was chosen for tasks and nodes with `cpu = "any"`, by name.
    pub placed: Vec<(String, u32)>,
    /// Name of the default node.
    pub default_node: String,
    /// Threads that would be there.
    pub default: Vec<Shown>,
    /// Threads that would be outside the graph, in one queue beside it: the default node cannot take them.
    pub overflow: Vec<Refused>,
    /// Threads of real-time and deadline classes that match nothing: they run before the plan.
    pub above: Vec<Shown>,
    /// Kernel threads of one CPU: Tierce does not schedule them.
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
    // Members that the plan counts are no threads.
    let placed = plan.placed().into_iter().filter(|(name, _)| !name.contains('['));
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
        placed: placed.map(|(name, cpu)| (name.to_string(), cpu)).collect(),
        default_node: plan.nodes[trial.default].base.clone(),
        ..Default::default()
    };
    let (mut copies, mut used) = (Copies::default(), HashSet::new());
    for (entry, fit, live) in in_order(plan, threads) {
        let by = fit.zip(entry).map(|(fit, entry)| plan.entries[entry].any[fit.at].to_string());
        let shown = Shown { by: by.unwrap_or_default(), ..Shown::of(live) };
        let why = outside(live).filter(|_| !entry.is_some_and(|entry| plan.contains(entry, &live.thread)));
        let mut copy = |entry| copies.entry(plan, entry, &live.thread, |copy| used.contains(&copy));
        let (entry, why) = match (entry.map(|entry| (entry, copy(entry))), why) {
            (Some((_, Ok(entry))), why) => (Some(entry), why),
            (Some((entry, Err(why))), _) => (Some(entry), Some(why)),
            (None, why) => (None, why),
        };
        match (entry, why) {
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
                Ok(cpu) => {
                    used.extend(plan.entries[entry].copy);
                    result.entries[entry].bound.push(Shown { cpu, ..shown });
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
    result.default.sort_by_key(|thread| thread.tid);
    Ok(result)
}

/// The threads in the order in which the plan prefers them for the place of one task: who fits best, then the oldest.
fn in_order<'t>(plan: &Plan, threads: &'t [Live]) -> Vec<(Option<usize>, Option<Fit>, &'t Live)> {
    let fit = |live: &'t Live| {
        let entry = plan.entry_of(&live.thread);
        (entry, entry.and_then(|entry| plan.fit(entry, &live.thread)), live)
    };
    let mut list: Vec<_> = threads.iter().map(fit).collect();
    list.sort_by_key(|(entry, fit, live)| {
        let is_task = entry.is_some_and(|entry| matches!(plan.entries[entry].target, Child::Task(_)));
        (fit.filter(|_| is_task), live.thread.started, live.thread.tid)
    });
    list
}

/// Why a thread is none of any plan's.
pub(crate) fn outside(live: &Live) -> Option<String> {
    if live.class.above() {
        let class = live.class.name();
        return Some(format!(
            "{class} runs before all threads of a plan, as stolen time (chrt --other --pid 0 {} ends that)",
            live.thread.tid
        ));
    }
    live.is_pinned().then(|| "a kernel thread of one CPU is not scheduled by Tierce".to_string())
}

/// The plan's graph in the native engine, to try things on.
struct Trial<'a> {
    plan: &'a Plan,
    graph: Graph,
    ids: Ids,
    /// By index into [`Plan::tasks`]: the thread that has it.
    holders: Vec<Option<u32>>,
    default: usize,
    /// Edges of the plan, and of the threads so far.
    attached: Vec<u32>,
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
            attached: ids.edges.iter().copied().filter(|edge| *edge != 0).collect(),
            ids,
            default: plan.default_node.context("the plan has no default node")?,
        })
    }

    /// The CPU that was chosen, if one was.
    fn place(&mut self, entry: usize, live: &Live) -> Result<Option<u32>, String> {
        match self.plan.entries[entry].target {
            Child::Task(task) => {
                if let Some(other) = self.holders[task] {
                    return Err(format!("thread {other} has it: a task is one thread, a set takes all"));
                }
                let allowed = self.plan.tasks[task].affinity.unwrap_or(Cpus::ALL) & live.allowed;
                self.graph.allow(self.ids.tasks[task], allowed, NOW).map_err(|error| may_run(live, error))?;
                self.holders[task] = Some(live.thread.tid);
                let mut above = self.plan.edges.iter().filter(|edge| edge.child == Child::Task(task));
                Ok(above.find_map(|edge| self.plan.placed_on(std::slice::from_ref(edge))))
            }
            Child::Set(set) => {
                let plan = self.plan;
                let affinity = plan.sets[set].affinity.unwrap_or(Cpus::ALL);
                let below = |node: usize| {
                    let parent = self.ids.nodes[node];
                    let edges = self.attached.iter().map(|edge| self.graph.edge(*edge));
                    edges.filter(move |edge| edge.parent == parent).map(|edge| edge.params())
                };
                let mut refused = None;
                for way in where_it_may_run(plan, plan.ways(set, below), live.allowed) {
                    match self.attach(live, affinity, way) {
                        Ok(()) => return Ok(plan.placed_on(way)),
                        Err(why) => drop(refused.get_or_insert(why)),
                    }
                }
                Err(refused.unwrap_or_default())
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
        let edge = Edge::plain(self.default, Child::Set(0), params, node.family.is_some());
        self.attach(live, Cpus::ALL, &[edge])
    }

    /// A new leaf with these edges; all or nothing.
    fn attach(&mut self, live: &Live, affinity: Cpus, under: &[Edge]) -> Result<(), String> {
        if self.pools.nodes == 0 {
            return Err("the pool of nodes is used up".into());
        }
        if self.pools.edges < under.len() {
            return Err("the pool of edges is used up".into());
        }
        let leaf = self.graph.node_new(TASK, 1, affinity & live.allowed, [0; 4]);
        let leaf = leaf.ok_or("the pool of nodes is used up")?;
        let mut attached = Vec::with_capacity(under.len());
        for edge in under {
            let params = self.plan.params_for(edge, &live.thread);
            let result =
                self.graph.attach(self.ids.nodes[edge.parent], leaf, params, edge.rank, edge.way(), NOW);
            match result {
                Ok(id) => attached.push(id),
                Err(error) => {
                    for id in attached.drain(..) {
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
        self.attached.extend(attached);
        self.pools = Pools { nodes: self.pools.nodes - 1, edges: self.pools.edges - under.len() };
        Ok(())
    }
}

/// Of these ways those on CPUs where the thread may run; all, if none is.
pub(crate) fn where_it_may_run<'p>(plan: &Plan, mut ways: Vec<&'p [Edge]>, allowed: Cpus) -> Vec<&'p [Edge]> {
    let may = |way: &&[Edge]| plan.placed_on(way).is_none_or(|cpu| allowed.has(cpu));
    if ways.iter().any(may) {
        ways.retain(may);
    }
    ways
}

pub(crate) fn may_run(live: &Live, error: tierce_policy::Error) -> String {
    format!("it may run on {} only: {error}", cpus(live.allowed))
}

/// "CPU 0, 2", or how many they are.
pub(crate) fn cpus(cpus: Cpus) -> String {
    let cpus: Vec<_> = cpus.iter().map(|cpu| cpu.to_string()).collect();
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Class;
    use serde_json::json;
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
        Live { thread, class: Class::Other, allowed: Cpus::upto(2), allowed_count: 2, is_bound: false }
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
        threads[6].allowed = Cpus::only(1); // rt is on CPU 0
        threads[7].class = Class::Fifo;
        threads[8].class = Class::RoundRobin;
        threads[9].thread.is_kthread = true;
        threads[9].allowed_count = 1;
        threads[9].is_bound = true;
        threads[10].allowed = Cpus::only(0);
        let result = dry_run(&plan(), &threads, Pools::default()).unwrap();
        let [audio, worker, nobody] = &result.entries[..] else { panic!("{result}") };
        assert_eq!((ids(&audio.bound), audio.set), (vec![11], false));
        assert_eq!(audio.refused[0].why, "thread 11 has it: a task is one thread, a set takes all");
        assert_eq!((ids(&worker.bound), worker.set), (vec![21, 22], true));
        let why: Vec<&str> = worker.refused.iter().map(|refused| refused.why.as_str()).collect();
        assert!(why[0].starts_with("below rt: "), "{why:?}"); // 2/10 + 3 * 4/10 > 1
        assert!(why[1].starts_with("it may run on CPU 1 only: cpu_not_allowed"), "{why:?}");
        assert!(why[2].starts_with("SCHED_FIFO runs before all threads of a plan"), "{why:?}");
        assert!(nobody.bound.is_empty() && nobody.refused.is_empty());
        assert_eq!(ids(&result.default), [1, 12, 23, 24, 51]);
        assert_eq!((ids(&result.above), ids(&result.pinned)), (vec![31], vec![41]));
        assert_eq!(result.refused(), 4);

        let text = result.to_string();
        for expected in [
            "task audio  (plan.toml:15:17)\n",
            "  ✓ audio-1  (11)  comm = \"audio*\"\n",
            "  ✗ audio-2  (12)  comm = \"audio*\": thread 11 has it",
            "  ✓ worker  ×2 (21, 22)  comm = \"worker\"\n",
            "  – no thread matches now\n",
            "default node rest: 5 threads\n",
            "in higher scheduling classes: irq/7 (31)\n",
            "not scheduled by Tierce: 1 kernel thread of one CPU\n",
        ] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
        let json = result.to_json();
        assert_eq!(json["entries"][1]["bound"][1]["tid"], 22);
        assert_eq!(json["entries"][1]["bound"][1]["by"], "comm = \"worker\"");
        assert_eq!(json["entries"][0]["refused"][0]["why"], audio.refused[0].why.as_str());
        assert_eq!(json["entries"][0]["kind"], "task");
    }

    #[test]
    fn threads_of_real_time_classes_need_a_match_by_class() {
        let text = r#"
            node.top = { policy = "fixed-priority", cpu = 0 }
            node.rest = { policy = "fair", default = true, under.top = {} }
            [tasks.first]
            under.rest = {}
            match = [{ comm = "first" }, { comm = "second", class = "rr" }]
            [tasks.realtime]
            under.top = { priority = "rt_priority" }
            match = { class = "realtime" }
        "#;
        let plan = Plan::parse_with(text, "plan.toml", Options { cpus: 1 });
        let plan = plan.unwrap_or_else(|faults| panic!("{faults}"));
        let thread = |tid: u32, comm: &str, class: Class| {
            let mut live = Live { class, allowed: Cpus::only(0), ..live(tid, comm) };
            live.thread.realtime = class.realtime(9);
            live
        };
        let mut kernels = thread(6, "migration/0", Class::Fifo);
        kernels.thread.is_kthread = true;
        let threads = [
            thread(1, "first", Class::Fifo),
            thread(2, "second", Class::RoundRobin),
            thread(3, "other", Class::Fifo),
            thread(4, "other", Class::Deadline),
            thread(5, "other", Class::Other),
            kernels,
        ];
        let result = dry_run(&plan, &threads, Pools::default()).unwrap();
        assert_eq!(ids(&result.entries[0].bound), [2]);
        assert!(result.entries[0].refused[0].why.starts_with("SCHED_FIFO runs before"), "{result}");
        assert_eq!(ids(&result.entries[1].bound), [3]);
        assert_eq!((ids(&result.above), ids(&result.default)), (vec![4, 6], vec![5]));
        assert_eq!(result.to_json()["entries"][1]["bound"][0]["class"], "SCHED_FIFO 9");
        assert!(result.to_string().contains("other  (3)  class = \"realtime\" (SCHED_FIFO 9)"), "{result}");
    }

    /// Who fits by what nobody can choose, then by what comes first, then who is older.
    #[test]
    fn who_gets_the_place_of_a_task() {
        let text = PLAN.replace(
            "{ comm = \"audio*\" }",
            "[{ comm = \"audio-a\" }, { comm = \"audio*\" }, { comm = \"*\", uid = 7 }, { pid = 40 }]",
        );
        let plan = Plan::parse_with(&text, "plan.toml", Options { cpus: 2 })
            .unwrap_or_else(|faults| panic!("{faults}"));
        let thread = |tid: u32, comm: &str, (uid, real_uid): (u32, u32), started: u64| {
            let mut live = live(tid, comm);
            live.thread = Thread { uid, real_uid, started, ..live.thread };
            live
        };
        let mut threads = vec![
            thread(10, "audio-z", (9, 9), 1),
            thread(11, "audio-a", (9, 9), 5),
            thread(12, "audio-a", (9, 9), 4),
            thread(13, "audio-b", (7, 9), 0), // with another user's rights
            thread(40, "x", (9, 9), 8),
            thread(41, "x", (7, 7), 9),
        ];
        for best in [41, 40, 12, 11, 13, 10] {
            let result = dry_run(&plan, &threads, Pools::default()).unwrap();
            assert_eq!(ids(&result.entries[0].bound), [best]);
            assert_eq!(result.entries[0].refused.len(), threads.len() - 1);
            threads.retain(|live| live.thread.tid != best);
        }
    }

    #[test]
    fn threads_of_a_set_go_where_there_is_room() {
        let text = r#"
            node.top = { policy = "fixed-priority", per_cpu = true }
            node.rt = { policy = "reservation", per_cpu = true, under.top = { priority = 1 } }
            node.rest = { policy = "fair", default = true, under.top = { priority = 0 } }
            [task.fixed]
            under.rt = { cpu = 0, budget = "3ms", period = "10ms" }
            [task.audio]
            under.rt = { cpu = "any", budget = "1ms", period = "10ms" }
            match = { comm = "audio" }
            [tasks.worker]
            count = 1
            under.rt = { cpu = "any", budget = "4ms", period = "10ms", soft = "rest" }
            match = { comm = "worker" }
            [node.player]
            policy = "fair"
            under.rt = { cpu = "any", budget = "1ms", period = "10ms" }
        "#;
        let plan = Plan::parse_with(text, "plan.toml", Options { cpus: 2 });
        let plan = plan.unwrap_or_else(|faults| panic!("{faults}"));
        let mut threads: Vec<_> = (11..=14).map(|tid| live(tid, "worker")).collect();
        threads.push(live(20, "audio"));
        let result = dry_run(&plan, &threads, Pools::default()).unwrap();
        let cpus = |entry: &Entry| entry.bound.iter().map(|it| (it.tid, it.cpu)).collect::<Vec<_>>();
        // The one worker that the plan counts is on CPU 1, the others on CPU 0: 50 % of that and nothing of CPU 1. Then 50 and 40 %,
        // 50 and 80 %, 90 and 80 %.
        assert_eq!(cpus(&result.entries[1]), [(11, Some(1)), (12, Some(1)), (13, Some(0))]);
        assert!(result.entries[1].refused[0].why.starts_with("below rt@1: "), "{result}");
        assert_eq!(cpus(&result.entries[0]), [(20, Some(0))]);
        let text = result.to_string();
        for line in [
            "task audio  (plan.toml:9:21), placed on CPU 0\n",
            "✓ worker  (13) on CPU 0  comm",
            "✓ worker  ×2 (11, 12) on CPU 1  comm",
            "player, placed on CPU 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        let json = result.to_json();
        assert_eq!(json["entries"][1]["bound"][1]["cpu"], 1);
        assert_eq!(json["placed"], json!([{ "name": "audio", "cpu": 0 }, { "name": "player", "cpu": 0 }]));
        // A thread that may not run there goes elsewhere.
        threads.truncate(1);
        threads[0].allowed = Cpus::only(0);
        let result = dry_run(&plan, &threads, Pools::default()).unwrap();
        assert_eq!(cpus(&result.entries[1]), [(11, Some(0))]);
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
        assert_eq!(result.entries[1].refused[0].why, "a kernel thread of one CPU is not scheduled by Tierce");
    }

    #[test]
    fn a_task_whose_cpus_its_thread_may_not_use() {
        let mut thread = live(9, "audio");
        thread.allowed = Cpus::only(1);
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

    /// Plans that cannot be run on a machine of that size say so; all others place its threads. (Which are which:
    /// crates/tierce-admission/tests/examples.rs.)
    #[test]
    fn every_example_on_machines_of_any_size() {
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let paths = std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path());
        let mut tried = 0;
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
            for cpus in [1, 2, 4, 8] {
                let plan =
                    Plan::load_with(&path, Options { cpus }).unwrap_or_else(|faults| panic!("{faults}"));
                if plan.check_runnable(cpus).is_err() {
                    continue;
                }
                let threads: Vec<_> = ["audio", "video", "cc1", "shell"]
                    .iter()
                    .zip(1..)
                    .map(|(comm, tid)| Live { allowed: Cpus::ALL, ..live(tid, comm) })
                    .collect();
                let result = dry_run(&plan, &threads, Pools::default());
                let result =
                    result.unwrap_or_else(|error| panic!("{} on {cpus} CPUs: {error}", path.display()));
                let bound: usize = result.entries.iter().map(|entry| entry.bound.len()).sum();
                assert_eq!(bound + result.default.len() + result.overflow.len(), threads.len(), "{result}");
                tried += 1;
            }
        }
        assert!(tried > 100, "{tried}");
    }

    #[test]
    fn this_machines_threads() {
        let threads = crate::threads::Proc::default().all();
        let result = dry_run(&plan(), &threads, Pools::default()).unwrap();
        assert!(result.default.iter().any(|thread| thread.pid == std::process::id()), "{result}");
    }
}
