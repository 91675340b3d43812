//! How long tasks spin for locks that jobs of other CPUs have, and wait for less urgent ones of their own that spin or hold
//! ([`tierce_analysis::spin_locks`]).
//!
//! Each wait rests on the holders of all other CPUs: one that others preempt makes everybody spin for longer. So nothing is said of any task beside
//! a user of such a lock unless every user has its CPU as the analysis has it: nothing outside the plan takes time there, and of all that is not below its node
//! as a task of one parent, nothing is as urgent.

use crate::demand::uncounted_threads::of_crowd;
use std::collections::BTreeSet;
use tierce_analysis::locks::{Blocking, Held};
use tierce_analysis::spin_locks::{waits, Spin, Spinner, Wait};
use tierce_analysis::Task;
use tierce_plan::{policies, Child, Load, Phase, Plan, Protocol, Shape, TaskSet};

/// What is known of a task: how long a job spins, for which sections of other CPUs, and its blocking.
pub type Found = Result<(Spinning, Blocking), String>;

/// How long a job spins.
#[derive(Clone, Debug, Default)]
pub struct Spinning {
    /// In all.
    pub most_ns: u64,
    /// The sections that each of its requests may wait for.
    pub held: Vec<Held>,
}

/// Of each task directly below a node with users of locks whose waiters spin: how long it spins and how long less urgent ones block it, or why
/// nothing is known.
pub fn found(plan: &Plan, shape: &Shape) -> Vec<(usize, Found)> {
    let mut found = Vec::new();
    for (protocol, spin) in [(Protocol::Msrp, Spin::NonPreemptive), (Protocol::Mrsp, Spin::Ceiling)] {
        let (tasks, why) = beside_users(plan, shape, protocol);
        if let Some(why) = why {
            found.extend(tasks.into_iter().map(|Member { task, .. }| (task, Err(why.clone()))));
            continue;
        }
        let spinner = |member: &Member| Spinner {
            task: Task::new(0, 1),
            cpu: member.node,
            level: member.level,
            sections: sections(plan, member.task),
        };
        let spinners: Vec<_> = tasks.iter().map(spinner).collect();
        let named = |held: Held| Held { task: tasks[held.task].task, ..held };
        let known = waits(&spinners, spin).into_iter().map(|Wait { spin_ns, spun, behind }| {
            let held: Vec<_> = behind.into_iter().map(named).collect();
            let most_ns = Some(held.iter().map(|held| held.length_ns).sum());
            let spun = spun.into_iter().map(named).collect();
            (Spinning { most_ns: spin_ns, held: spun }, Blocking { most_ns, held })
        });
        found.extend(tasks.iter().map(|member| member.task).zip(known.map(Ok)));
    }
    found
}

/// All tasks directly below nodes with users of locks of a protocol, and why nothing is known of them.
pub fn beside_users(plan: &Plan, shape: &Shape, protocol: Protocol) -> (Vec<Member>, Option<String>) {
    let uses = |task: usize| plan.locks_of(task).iter().any(|lock| plan.locks[*lock].protocol == protocol);
    let users: Vec<_> = (0..plan.tasks.len()).filter(|task| uses(*task)).collect();
    let nodes: BTreeSet<_> = users.iter().filter_map(|user| plan.has_whole_cpu(shape, *user)).collect();
    let nodes: Vec<_> = nodes.into_iter().collect();
    let tasks = nodes.iter().flat_map(|node| below(plan, shape, *node)).collect();
    let why = nodes.iter().find_map(|node| trouble(plan, shape, *node, protocol));
    (tasks, why.or_else(|| live_user(plan, protocol)))
}

/// Members of a set of which there may be any number may use such a lock, wherever they are.
pub fn live_user(plan: &Plan, protocol: Protocol) -> Option<String> {
    let is_live = |set: usize| plan.entries.iter().any(|entry| entry.target == Child::Set(set));
    let lock_of = |set: &TaskSet| {
        let members = plan.tasks[set.members.clone()].iter().map(|member| &member.load);
        let mut used = members.chain([&set.load]).flatten().flat_map(Load::locks);
        used.find(|lock| plan.locks[*lock].protocol == protocol)
    };
    let live = plan.sets.iter().enumerate().filter(|(at, _)| is_live(*at));
    let mut users = live.filter_map(|(_, set)| Some((&set.name, &plan.locks[lock_of(set)?].name)));
    users.next().map(|(set, lock)| {
        format!("any number of threads may match the set `{set}`, which uses lock `{lock}`")
    })
}

/// A task directly below a node.
pub struct Member {
    pub task: usize,
    pub node: usize,
    /// 0 is the most urgent.
    level: u32,
    /// The smaller the more urgent, below all nodes; also of one with other parents.
    pub urgency: u64,
}

/// The tasks directly below a node.
pub fn below(plan: &Plan, shape: &Shape, node: usize) -> Vec<Member> {
    let at = policies::by_number(plan.nodes[node].policy)
        .and_then(|policy| policies::position(&policy.edge_params, "priority"));
    let task = |edge: &usize| match plan.edges[*edge].child {
        Child::Task(task) => Some((task, u64::MAX - at.map_or(0, |at| plan.edges[*edge].params[at]))),
        _ => None,
    };
    let tasks: Vec<_> = shape.children[node].iter().filter_map(task).collect();
    let levels: BTreeSet<_> = tasks.iter().map(|(_, urgency)| *urgency).collect();
    let levels: Vec<_> = levels.into_iter().collect();
    let member = |(task, urgency): (usize, u64)| {
        let level = levels.partition_point(|other| *other < urgency) as u32;
        Member { task, node, level, urgency }
    };
    tasks.into_iter().map(member).collect()
}

/// Lock and length of each section.
pub fn sections(plan: &Plan, task: usize) -> Vec<(usize, u64)> {
    let sections = plan.tasks[task].load.as_ref().map_or(&[][..], |load| load.sections());
    sections.iter().map(|section| (section.lock, section.length_ns)).collect()
}

/// What may keep a user of such a lock from running below this node, or make one wait more than once.
fn trouble(plan: &Plan, shape: &Shape, node: usize, protocol: Protocol) -> Option<String> {
    let name = &plan.nodes[node].name;
    if plan.machine.costs != Default::default() {
        let what = if protocol.spins() { "spinning" } else { "waits for locks" };
        return Some(format!("how `[machine] costs` add to {what} is not known"));
    }
    if !plan.machine.interrupts.is_empty() || !plan.machine.left.is_empty() {
        return Some("interrupts may keep others from leaving their locks for as long as they take".into());
    }
    let load = |task: usize| plan.tasks[task].load.as_ref();
    let suspends = |task: usize| matches!(load(task), Some(Load::Phases(load)) if load.phases.iter().any(|phase| matches!(phase, Phase::Suspend(_))));
    let tasks: Vec<_> = below(plan, shape, node).into_iter().map(|member| member.task).collect();
    if let Some(task) = tasks.iter().find(|task| suspends(**task)) {
        let name = &plan.tasks[*task].name;
        return Some(format!("`{name}` suspends itself: less urgent ones may get locks meanwhile"));
    }
    let mut used = tasks.iter().flat_map(|task| plan.locks_of(*task)).map(|lock| &plan.locks[lock]);
    if let Some(lock) = used.find(|lock| lock.protocol != protocol) {
        let (lock, other) = (&lock.name, lock.protocol.name());
        return Some(format!(
            "below `{name}` there is also lock `{lock}` with protocol \"{other}\", beside \"{}\"",
            protocol.name()
        ));
    }
    let users = tasks.iter().filter(|task| !plan.locks_of(**task).is_empty());
    let least = users.filter_map(|task| plan.urgency(shape, *task)).max()?;
    let priority = policies::by_number(plan.nodes[node].policy)
        .and_then(|policy| policies::position(&policy.edge_params, "priority"))?;
    let apart = |edge: &&usize| match plan.edges[**edge].child {
        Child::Task(task) => shape.task_parents[task].len() > 1,
        _ => true,
    };
    let keep = if protocol.spins() { "spin or have locks" } else { "have locks" };
    let urgent = |edge: &&usize| u64::MAX - plan.edges[**edge].params[priority] <= least;
    if let Some(edge) = shape.children[node].iter().filter(apart).find(urgent) {
        let child = plan.item_name(plan.edges[*edge].child);
        return Some(format!("`{child}` may run below `{name}` while others there {keep}"));
    }
    let crowd = of_crowd(plan, node, &shape.children[node], priority);
    crowd
        .filter(|crowd| u64::MAX - crowd <= least)
        .map(|_| format!("threads that match nothing may run below `{name}` while others there {keep}"))
}
