//! How long tasks wait for locks that less urgent ones hold: from the sections of all tasks directly below one node
//! ([`tierce_analysis::locks`]). Below one node there are locks or regions without preemption (`regions.rs`), which are waited for in the same way.
//!
//! Where a lock has users elsewhere, its holder may run in place of a task here, for work that this node does not know: nothing is
//! said then of any task below it. Nor where jobs suspend themselves, since less urgent ones may get new locks meanwhile; nor of
//! earliest deadline with jitter, where a job of a longer deadline may be the more urgent one.
//!
//! **Budgets** (bandwidth inheritance: Lamastra, Lipari & Abeni, RTSS 2001). Directly below a reservation the holder runs on the
//! budget of who waits. Where a budget may end within a section, see `bandwidth_inheritance.rs`. Let each budget of a user of locks cover its
//! work and its waits, with a deadline equal to its period, and let each job begin a period of its own. Then
//!
//! 1. no budget ends before its job: while a job has not ended, who has a later deadline runs only in place of others whose
//!    deadlines are no later, for a lock that it has already;
//! 2. so a job waits for locks that others had when it came, and for each of these others once;
//! 3. these others came earlier and have later deadlines, so longer periods.
//!
//! That is inheritance with periods for priorities, and whoever uses no lock does not notice. Without a protocol who waits sleeps, and
//! no step holds: the holder may have a shorter period, and no budget left.

use crate::demand::bandwidth_inheritance;
use crate::demand::budget_locks::{self, BudgetLocks};
use crate::demand::jobs::{budgets_of_its_own, densest, job_and_suspension, requests, vary, BudgetParams};
use crate::demand::regions::{self, Kept};
use crate::demand::spin_locks::{self, Spinning};
use crate::demand::suspending_locks::{self, Suspended};
use crate::share::{ratio, Share};
use tierce_analysis::locks::{blocking, Blocking, Held, Protocol as Known};
use tierce_analysis::{Sections, Task};
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::{policies, show_time, Child, Load, Phase, Plan, Protocol, Shape};

/// What is known of a task.
#[derive(Clone, Debug)]
pub enum Waiting {
    /// No lock concerns it.
    Never,
    /// At most that, perhaps without a bound.
    For(Blocking),
    /// At most that, on its own budget.
    Paid(Blocking),
    /// Spinning, and for less urgent ones of its CPU that spin or hold.
    Spins(Spinning, Blocking),
    /// For a section of a less urgent one of its node, which is below the same budget.
    Within(Blocking),
    /// Suspended, and for less urgent ones of its CPU that are boosted.
    Suspends(Suspended),
    /// For regions without preemption, or it has some itself.
    Kept(Kept),
    /// Why nothing is known.
    Unknown(String),
}

/// Of all tasks of a plan; nothing where it has neither locks nor regions.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    waiting: Vec<Waiting>,
    /// By edge.
    budgets: budget_locks::Found,
}

impl Locks {
    pub fn of(plan: &Plan, shape: &Shape) -> Self {
        if plan.locks.is_empty() && !plan.tasks.iter().any(|task| task.has_regions()) {
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
            if tasks.iter().any(|task| plan.tasks[*task].has_regions()) {
                below_regions(plan, shape, below, &tasks, &mut waiting);
                continue;
            }
            let between = |lock: &usize| {
                let protocol = plan.locks[*lock].protocol;
                protocol.is_between_cpus() || protocol.is_between_budgets()
            };
            if tasks.iter().all(|task| used[*task].is_empty() || used[*task].iter().any(between)) {
                continue;
            }
            let mut theirs = tasks.iter().flat_map(|task| &used[*task]);
            let found = match theirs.find(|lock| users[**lock].iter().any(|user| node(*user) != Some(below)))
            {
                Some(lock) => Err(format!(
                    "lock `{}` has users that are not directly below `{}`",
                    plan.locks[*lock].name, plan.nodes[below].name
                )),
                None if policy_of(plan, below) == "reservation" => {
                    let users: Vec<_> = tasks.into_iter().filter(|task| !used[*task].is_empty()).collect();
                    below_reservation(plan, shape, below, &users, &mut waiting);
                    continue;
                }
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
        between(plan, shape, &mut waiting);
        Self { waiting, budgets: budget_locks::found(plan, shape) }
    }

    /// What locks are to a budget whose users' locks it knows of, or the budgets beside it.
    pub fn of_budget(&self, edge: usize) -> Result<Option<&BudgetLocks>, String> {
        self.budgets.get(&edge).map(|found| found.as_ref().map_err(Clone::clone)).transpose()
    }

    pub fn waiting(&self, task: usize) -> &Waiting {
        self.waiting.get(task).unwrap_or(&Waiting::Never)
    }

    pub fn of_task(&self, task: usize) -> Option<Blocking> {
        match self.waiting(task) {
            Waiting::For(blocking)
            | Waiting::Paid(blocking)
            | Waiting::Within(blocking)
            | Waiting::Spins(_, blocking) => Some(blocking.clone()),
            Waiting::Suspends(found) => Some(found.blocking.clone()),
            Waiting::Never | Waiting::Kept(_) | Waiting::Unknown(_) => None,
        }
    }

    /// What regions without preemption are to a task, where they concern it and that is known.
    pub fn kept(&self, task: usize) -> Option<Kept> {
        match self.waiting(task) {
            Waiting::Kept(kept) => Some(*kept),
            _ => None,
        }
    }

    /// The regions of its own jobs.
    pub fn own_regions(&self, task: usize) -> Sections {
        self.kept(task).map_or(Sections::default(), |kept| kept.own)
    }

    /// The longest that a job waits; `None`: there is no bound.
    pub fn most_ns(&self, task: usize) -> Option<u64> {
        match self.waiting(task) {
            Waiting::Never => Some(0),
            Waiting::For(blocking)
            | Waiting::Paid(blocking)
            | Waiting::Within(blocking)
            | Waiting::Spins(_, blocking) => blocking.most_ns,
            Waiting::Suspends(found) => found.blocking.most_ns,
            Waiting::Kept(kept) => Some(kept.most_ns()),
            Waiting::Unknown(_) => None,
        }
    }

    /// Nobody runs in place of jobs for others that do not count with their node, and nobody spins or is suspended.
    pub fn take_nothing(&self) -> bool {
        (0..self.waiting.len()).all(|task| {
            self.elsewhere_ns(task) == Some(0) && self.spin_ns(task) == 0 && self.suspended(task).is_none()
        })
    }

    /// How a job waits beside users of locks whose waiters are suspended, and how long it takes.
    pub fn suspended(&self, task: usize) -> Option<&Suspended> {
        match self.waiting(task) {
            Waiting::Suspends(found) => Some(found),
            _ => None,
        }
    }

    /// For how long a job spins: CPU time beyond its work.
    pub fn spin_ns(&self, task: usize) -> u64 {
        match self.waiting(task) {
            Waiting::Spins(spinning, _) => spinning.most_ns,
            _ => 0,
        }
    }

    /// How a job spins, where it does.
    pub fn spinning(&self, task: usize) -> Option<Spinning> {
        match self.waiting(task) {
            Waiting::Spins(spinning, _) if spinning.most_ns > 0 => Some(spinning.clone()),
            _ => None,
        }
    }

    /// For how long others that do not count with its node run in place of a job, at most; `None`: there is no bound. Who is in a region is of
    /// the same node.
    pub fn elsewhere_ns(&self, task: usize) -> Option<u64> {
        match self.waiting(task) {
            Waiting::Kept(_) | Waiting::Within(_) | Waiting::Spins(..) | Waiting::Suspends(_) => Some(0),
            _ => self.most_ns(task),
        }
    }

    /// The jobs of a task with their waits as blocking and their spinning as work, where all of that is bounded and they do not suspend themselves; in bursts as close
    /// as they can be. `deadline_ns` as for [`densest`].
    pub fn densest(&self, plan: &Plan, task: usize, deadline_ns: u64) -> Option<Task> {
        let (job, suspension_ns) = self.suspending(plan, task, deadline_ns)?;
        (suspension_ns == 0).then_some(job)
    }

    /// The same also where they suspend themselves, and for how long each does in all. Where a job may be suspended for a lock its work comes
    /// later: that is part of its jitter (step 1 of [`tierce_analysis::suspending_locks`]).
    pub fn suspending(&self, plan: &Plan, task: usize, deadline_ns: u64) -> Option<(Task, u64)> {
        let (job, suspension_ns) = densest(plan.tasks[task].load.as_ref()?, deadline_ns)?;
        let blocking_ns = self.most_ns(task)?;
        let found = self.suspended(task).filter(|found| found.requests > 0);
        let late_ns = found.map_or(0, |found| found.response_ns.saturating_sub(job.work_ns));
        let (work_ns, jitter_ns) =
            (job.work_ns.saturating_add(self.spin_ns(task)), job.jitter_ns.max(late_ns));
        Some((Task { work_ns, blocking_ns, jitter_ns, ..job }, suspension_ns))
    }

    /// work/period of a task, where it has that; holders of locks may run in its place.
    pub fn utilisation(&self, plan: &Plan, task: usize) -> Option<Share> {
        let load = plan.tasks[task].load.as_ref()?;
        let others_ns = self.elsewhere_ns(task)?.saturating_add(self.spin_ns(task));
        let (work_ns, period_ns) = match load {
            // Whatever its jitter is.
            Load::Triggered(load) => (load.work.max_ns(), load.period_ns),
            load if vary(load) => return Some(requests(load)?.longer(others_ns).rate()),
            _ => job_and_suspension(load, 0).map(|(job, _)| (job.work_ns, job.period_ns))?,
        };
        Some(ratio(work_ns.saturating_add(others_ns), period_ns))
    }

    /// What a job of the task works with what it pays for others, in bursts as close as they can be; `None`: it waits for locks, and that is no part of its work.
    pub fn alone(&self, plan: &Plan, task: usize) -> Option<Task> {
        let (job, suspension_ns) = densest(plan.tasks[task].load.as_ref()?, 0)?;
        let paid_ns = match self.waiting(task) {
            Waiting::Never => 0,
            Waiting::Paid(blocking) => blocking.most_ns?,
            Waiting::For(_) | Waiting::Within(_) | Waiting::Kept(_) if self.most_ns(task) == Some(0) => 0,
            Waiting::For(_)
            | Waiting::Within(_)
            | Waiting::Spins(..)
            | Waiting::Suspends(_)
            | Waiting::Kept(_)
            | Waiting::Unknown(_) => return None,
        };
        let work_ns = job.work_ns.saturating_add(paid_ns);
        (suspension_ns == 0).then_some(Task { work_ns, ..job })
    }

    /// Why there is no bound.
    pub fn why(&self, plan: &Plan, task: usize) -> Option<String> {
        match self.waiting(task) {
            Waiting::Never
            | Waiting::Kept(_)
            | Waiting::Within(_)
            | Waiting::Spins(..)
            | Waiting::Suspends(_) => None,
            Waiting::Unknown(why) => Some(why.clone()),
            Waiting::For(blocking) | Waiting::Paid(blocking) if blocking.most_ns.is_some() => None,
            Waiting::For(blocking) | Waiting::Paid(blocking) => {
                let held = blocking.held.first()?;
                Some(format!(
                    "it can wait for lock `{}` while `{}` has it and does not run, which protocol \"none\" does not bound; with \
                     \"inheritance\" it would",
                    plan.locks[held.lock].name, plan.tasks[held.task].name
                ))
            }
        }
    }
}

/// Of users of locks between CPUs or budgets, and tasks beside them.
fn between(plan: &Plan, shape: &Shape, waiting: &mut [Waiting]) {
    for (task, found) in spin_locks::found(plan, shape) {
        waiting[task] =
            found.map_or_else(Waiting::Unknown, |(spinning, blocking)| Waiting::Spins(spinning, blocking));
    }
    for (task, found) in suspending_locks::found(plan, shape) {
        waiting[task] = found.map_or_else(Waiting::Unknown, Waiting::Suspends);
    }
    for (task, found) in budget_locks::beside_users(plan, shape) {
        waiting[task] = found.map_or_else(Waiting::Unknown, Waiting::Within);
    }
}

/// All tasks directly below a node of which some have regions without preemption.
fn below_regions(plan: &Plan, shape: &Shape, node: usize, tasks: &[usize], waiting: &mut [Waiting]) {
    let found = regions::below(plan, shape, node, tasks);
    for (at, task) in tasks.iter().enumerate() {
        waiting[*task] = match &found {
            Ok(found) if found[at].concerns_nothing() => Waiting::Never,
            Ok(found) => Waiting::Kept(found[at]),
            Err(why) => Waiting::Unknown(why.clone()),
        };
    }
}

/// The users of locks directly below a reservation, of which each has a budget.
fn below_reservation(plan: &Plan, shape: &Shape, node: usize, users: &[usize], waiting: &mut [Waiting]) {
    let found = paid(plan, shape, node, users);
    for (at, task) in users.iter().enumerate() {
        waiting[*task] = match &found {
            Ok(found) => found[at].clone(),
            Err(why) => Waiting::Unknown(why.clone()),
        };
    }
}

fn paid(plan: &Plan, shape: &Shape, node: usize, users: &[usize]) -> Result<Vec<Waiting>, String> {
    let (name, rules) = (&plan.nodes[node].name, ServerRules::of(plan, node));
    if !rules.is_usual() || rules.grows || rules.wall_time {
        return Err(format!("`{name}` has other budgets than hard ones in the order of their deadlines"));
    }
    if plan.machine.costs != Default::default() {
        return Err(COSTS.into());
    }
    let Some(params) = BudgetParams::of_node(plan, node) else { return Err(String::new()) };
    let server = |task: usize| params.demand(&plan.edges[shape.task_parents[task][0]]);
    let levels = |task: &usize| server(*task).period_ns;
    let mut found = blocking_by(plan, users, &users.iter().map(levels).collect::<Vec<_>>());
    let unprotected = |task: &usize| unprotected_from(plan, *task, users);
    let covers = |(task, blocking): (&usize, &Blocking)| {
        let server = server(*task);
        let job = plan.tasks[*task].load.as_ref().and_then(|load| job_and_suspension(load, 0));
        let job = job
            .zip(blocking.most_ns)
            .map(|((job, _), ns)| Task { work_ns: job.work_ns.saturating_add(ns), ..job });
        let own = |job: Task| budgets_of_its_own(&job, &server) == Some(1);
        unprotected(task).is_some() || (server.deadline_ns == server.period_ns && job.is_some_and(own))
    };
    if !users.iter().zip(&found).all(covers) {
        found = bandwidth_inheritance::payments(plan, users, server);
    }
    let told = |(task, blocking): (&usize, Blocking)| match unprotected(task) {
        Some(other) => Waiting::Paid(blocking_by(plan, &[*task, other], &[0, 1]).swap_remove(0)),
        None if blocking.most_ns.is_none() => {
            Waiting::Unknown(unpaid(plan, *task, &server(*task), &blocking))
        }
        None => Waiting::Paid(blocking),
    };
    Ok(users.iter().zip(found).map(told).collect())
}

/// Why it is not known how much a task pays for others.
fn unpaid(plan: &Plan, task: usize, server: &Task, blocking: &Blocking) -> String {
    let (name, budget) = (&plan.tasks[task].name, show_time(server.work_ns));
    let period = show_time(server.period_ns);
    let Some((job, _)) = plan.tasks[task].load.as_ref().and_then(|load| job_and_suspension(load, 0)) else {
        return format!("how often jobs of `{name}` come is not known");
    };
    if server.deadline_ns != server.period_ns {
        return format!(
            "the budget of `{name}`, {budget} in {period}, has a deadline of {}, and may end within a section",
            show_time(server.deadline_ns)
        );
    }
    let (work, each) = (show_time(job.work_ns), show_time(job.period_ns));
    format!(
        "the budget of `{name}`, {budget} in {period}, may end within a section, and does not bring its {work} in {each} and what it \
         may pay for others meanwhile: {}",
        held_words(plan, blocking)
    )
}

/// One of the users that has a lock with the protocol `none` in common with a task.
fn unprotected_from(plan: &Plan, task: usize, users: &[usize]) -> Option<usize> {
    let mut locks = plan.locks_of(task);
    locks.retain(|lock| plan.locks[*lock].protocol == Protocol::None);
    let shares = |other: &usize| *other != task && !locks.is_disjoint(&plan.locks_of(*other));
    users.iter().copied().filter(|_| !locks.is_empty()).find(shares)
}

/// Why nothing is known with `[machine] costs`.
const COSTS: &str = "how often tasks that wait for locks are switched with `[machine] costs` is not known";

/// "`bus`, which `low` has for 2ms; `log`, which `other` has for 1ms".
pub fn spun_words(plan: &Plan, spinning: &Spinning) -> String {
    listed(plan, &spinning.held, |_| false)
}

/// The same of one that is suspended.
pub fn awaited_words(plan: &Plan, found: &Suspended) -> String {
    listed(plan, &found.held, |_| false)
}

/// "`bus`, which `low` has for 2ms".
pub fn held_words(plan: &Plan, blocking: &Blocking) -> String {
    listed(plan, &blocking.held, |lock| plan.locks[lock].protocol.spins())
}

/// `with_spinning`: whether the length is with the spinning before the section.
fn listed(plan: &Plan, list: &[Held], with_spinning: impl Fn(usize) -> bool) -> String {
    let words = |held: &Held| {
        let (lock, task) = (&plan.locks[held.lock].name, &plan.tasks[held.task].name);
        let time = show_time(held.length_ns);
        let times = if held.times > 1 { format!(", {} times", held.times) } else { String::new() };
        match with_spinning(held.lock) {
            true => format!("`{lock}`, which `{task}` spins for and has, for {time} in all"),
            false => format!("`{lock}`, which `{task}` has for {time}{times}"),
        }
    };
    list.iter().map(words).collect::<Vec<_>>().join("; ")
}

fn policy_of(plan: &Plan, node: usize) -> &'static str {
    policies::by_number(plan.nodes[node].policy).map_or("", |policy| policy.name)
}

fn below_node(plan: &Plan, shape: &Shape, node: usize, tasks: &[usize]) -> Result<Vec<Blocking>, String> {
    let name = &plan.nodes[node].name;
    let policy = policy_of(plan, node);
    let load = |task: &usize| plan.tasks[*task].load.as_ref();
    if !["fixed-priority", "edf"].contains(&policy) {
        return Err(format!("`{name}` orders neither by priority nor by deadline"));
    }
    if plan.machine.costs != Default::default() {
        return Err(COSTS.into());
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
    Ok(blocking_by(plan, tasks, &urgencies))
}

/// Of tasks that preempt each other by how urgent they are, less is more.
fn blocking_by(plan: &Plan, tasks: &[usize], urgencies: &[u64]) -> Vec<Blocking> {
    let mut ranks = urgencies.to_vec();
    ranks.sort_unstable();
    ranks.dedup();
    let levels: Vec<_> =
        urgencies.iter().map(|one| ranks.partition_point(|rank| rank < one) as u32).collect();
    let sections = |task: &usize| {
        let sections = plan.tasks[*task].load.as_ref().map_or(&[][..], |load| load.sections());
        sections.iter().map(|section| section.critical()).collect::<Vec<_>>()
    };
    let sections: Vec<_> = tasks.iter().map(sections).collect();
    let protocols = plan.locks.iter().map(|lock| match lock.protocol {
        Protocol::None => Known::None,
        Protocol::Inheritance => Known::Inheritance,
        Protocol::Ceiling | Protocol::ImmediateCeiling | Protocol::Srp => Known::Ceiling,
        // Of tasks whose waits are found elsewhere (`spin_locks.rs`, `suspending_locks.rs`, `budget_locks.rs`).
        Protocol::Msrp
        | Protocol::Mrsp
        | Protocol::Mpcp
        | Protocol::Fmlp
        | Protocol::Hsrp
        | Protocol::Sirap => Known::None,
    });
    let mut found = blocking(&sections, &levels, &protocols.collect::<Vec<_>>());
    found.iter_mut().flat_map(|blocking| &mut blocking.held).for_each(|held| held.task = tasks[held.task]);
    found
}
