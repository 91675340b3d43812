//! How long tasks wait for locks that less urgent ones hold: from the sections of all tasks directly below one node
//! ([`tierce_analysis::locks`]).
//!
//! Where a lock has users elsewhere, its holder may run in place of a task here, for work that this node does not know: nothing is
//! said then of any task below it. Nor where jobs suspend themselves, since less urgent ones may get new locks meanwhile; nor of
//! earliest deadline with jitter, where a job of a longer deadline may be the more urgent one.

use tierce_analysis::locks::{blocking, Blocking, Held, Protocol as Known};
use tierce_plan::{policies, show_time, Child, Load, Phase, Plan, Protocol, Shape};

/// What is known of a task.
#[derive(Clone, Debug)]
pub enum Waiting {
    /// No lock concerns it.
    Never,
    /// At most that, perhaps without a bound.
    For(Blocking),
    /// Why nothing is known.
    Unknown(String),
}

/// Of all tasks of a plan; nothing where it has no locks.
#[derive(Clone, Debug, Default)]
pub struct Locks(Vec<Waiting>);

impl Locks {
    pub fn of(plan: &Plan, shape: &Shape) -> Self {
        if plan.locks.is_empty() {
            return Self::default();
        }
        let mut waiting = vec![Waiting::Never; plan.tasks.len()];
        let used: Vec<_> = (0..plan.tasks.len()).map(|task| plan.locks_of(task)).collect();
        let node = |task: usize| match shape.task_parents[task][..] {
            [edge] if !shape.moves(plan, edge) => Some(plan.edges[edge].parent),
            _ => None,
        };
        let mut users = vec![Vec::new(); plan.locks.len()];
        used.iter()
            .enumerate()
            .for_each(|(task, locks)| locks.iter().for_each(|lock| users[*lock].push(task)));
        for below in 0..plan.nodes.len() {
            let children = shape.children[below].iter().filter_map(|edge| match plan.edges[*edge].child {
                Child::Task(task) => Some(task),
                _ => None,
            });
            let tasks: Vec<_> = children.collect();
            if tasks.iter().all(|task| used[*task].is_empty()) {
                continue;
            }
            let mut theirs = tasks.iter().flat_map(|task| &used[*task]);
            let found = match theirs.find(|lock| users[**lock].iter().any(|user| node(*user) != Some(below)))
            {
                Some(lock) => Err(format!(
                    "lock `{}` has users that are not directly below `{}`",
                    plan.locks[*lock].name, plan.nodes[below].name
                )),
                None => below_node(plan, shape, below, &tasks),
            };
            for (at, task) in tasks.iter().enumerate() {
                waiting[*task] = match &found {
                    Ok(found) if found[at].held.is_empty() && used[*task].is_empty() => Waiting::Never,
                    Ok(found) => Waiting::For(found[at].clone()),
                    Err(why) => Waiting::Unknown(why.clone()),
                };
            }
        }
        Self(waiting)
    }

    pub fn waiting(&self, task: usize) -> &Waiting {
        self.0.get(task).unwrap_or(&Waiting::Never)
    }

    pub fn of_task(&self, task: usize) -> Option<Blocking> {
        match self.waiting(task) {
            Waiting::For(blocking) => Some(blocking.clone()),
            Waiting::Never | Waiting::Unknown(_) => None,
        }
    }

    /// The longest that a job waits; `None`: there is no bound.
    pub fn most_ns(&self, task: usize) -> Option<u64> {
        match self.waiting(task) {
            Waiting::Never => Some(0),
            Waiting::For(blocking) => blocking.most_ns,
            Waiting::Unknown(_) => None,
        }
    }

    /// Why there is no bound.
    pub fn why(&self, plan: &Plan, task: usize) -> Option<String> {
        match self.waiting(task) {
            Waiting::Never => None,
            Waiting::Unknown(why) => Some(why.clone()),
            Waiting::For(blocking) if blocking.most_ns.is_some() => None,
            Waiting::For(blocking) => {
                let held = blocking.held.first()?;
                Some(format!(
                    "it can wait for lock `{}` while `{}` has it and others keep that from running, which protocol \"none\" does not \
                     bound; with \"inheritance\" it would",
                    plan.locks[held.lock].name, plan.tasks[held.task].name
                ))
            }
        }
    }
}

/// "`bus`, which `low` has for 2ms".
pub fn held_words(plan: &Plan, blocking: &Blocking) -> String {
    let words = |held: &Held| {
        let (lock, task) = (&plan.locks[held.lock].name, &plan.tasks[held.task].name);
        format!("`{lock}`, which `{task}` has for {}", show_time(held.length_ns))
    };
    blocking.held.iter().map(words).collect::<Vec<_>>().join("; ")
}

fn below_node(plan: &Plan, shape: &Shape, node: usize, tasks: &[usize]) -> Result<Vec<Blocking>, String> {
    let name = &plan.nodes[node].name;
    let policy = policies::by_number(plan.nodes[node].policy).map_or("", |policy| policy.name);
    let load = |task: &usize| plan.tasks[*task].load.as_ref();
    if !["fixed-priority", "edf"].contains(&policy) {
        return Err(format!("`{name}` orders neither by priority nor by deadline"));
    }
    if plan.machine.costs != Default::default() {
        return Err(
            "how often tasks that wait for locks are switched with `[machine] costs` is not known".into()
        );
    }
    let suspends = |task: &&usize| matches!(load(task), Some(Load::Phases(load)) if load.phases.iter().any(|phase| matches!(phase, Phase::Suspend(_))));
    if let Some(task) = tasks.iter().find(suspends) {
        return Err(format!("`{}` suspends itself: others may get locks meanwhile", plan.tasks[*task].name));
    }
    let late = |task: &&usize| match load(task) {
        Some(Load::Periodic(load)) => load.jitter_ns > 0,
        load => matches!(load, Some(Load::Triggered(_))),
    };
    if let Some(task) = tasks.iter().find(late).filter(|_| policy == "edf") {
        let name = &plan.tasks[*task].name;
        return Err(format!(
            "jobs of `{name}` are released late, and then are more urgent than their deadlines say"
        ));
    }
    // Without a deadline it comes last.
    let urgencies: Vec<_> = tasks.iter().map(|task| plan.urgency(shape, *task).unwrap_or(u64::MAX)).collect();
    let mut ranks = urgencies.clone();
    ranks.sort_unstable();
    ranks.dedup();
    let levels: Vec<_> =
        urgencies.iter().map(|one| ranks.partition_point(|rank| rank < one) as u32).collect();
    let sections = |task: &usize| {
        let sections = load(task).map_or(&[][..], |load| load.sections());
        sections.iter().map(|section| section.critical()).collect::<Vec<_>>()
    };
    let sections: Vec<_> = tasks.iter().map(sections).collect();
    let protocols = plan.locks.iter().map(|lock| match lock.protocol {
        Protocol::None => Known::None,
        Protocol::Inheritance => Known::Inheritance,
        Protocol::Ceiling | Protocol::ImmediateCeiling | Protocol::Srp => Known::Ceiling,
    });
    let mut found = blocking(&sections, &levels, &protocols.collect::<Vec<_>>());
    found.iter_mut().flat_map(|blocking| &mut blocking.held).for_each(|held| held.task = tasks[held.task]);
    Ok(found)
}
