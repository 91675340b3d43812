//! What children ask for: the jobs of their loads, the budgets of their edges, and whether they ever stop asking.

use tierce_analysis::requests::{Requesting, Requests};
use tierce_analysis::Task;
use tierce_guarantee::TIME_MAX_NS;
use tierce_plan::policies::reservation::Replenishment;
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::{Child, Edge, Load, Phase, Phases, Plan, Shape, Work};

/// Where the parameters of a budget are among an edge's.
pub struct BudgetParams {
    budget: usize,
    period: usize,
    deadline: usize,
    /// The smallest that a budget may be.
    pub least_ns: u64,
}

impl BudgetParams {
    pub fn of(policy: &PolicyRecord) -> Option<Self> {
        let (budget, period) = policies::budget_and_period(policy)?;
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
        Some(Self { budget, period, deadline, least_ns: policy.edge_params[budget].least })
    }
    /// Of the edges below a node, if they have budgets.
    pub fn of_node(plan: &Plan, node: usize) -> Option<Self> {
        policies::by_number(plan.nodes[node].policy).and_then(Self::of)
    }
    pub fn budget(&self, edge: &Edge) -> u64 {
        edge.params[self.budget]
    }
    pub fn set_budget(&self, edge: &mut Edge, budget_ns: u64) {
        edge.params[self.budget] = budget_ns;
    }
    pub fn period(&self, edge: &Edge) -> u64 {
        edge.params[self.period].max(1)
    }
    pub fn demand(&self, edge: &Edge) -> Task {
        let deadline_ns = edge.params[self.deadline].max(1);
        Task { deadline_ns, ..Task::new(self.budget(edge), self.period(edge)) }
    }
}

/// `edf` runs what is below the edge after all who have deadlines: it has none itself, and none on the edge (`own_ns`).
pub fn comes_last(plan: &Plan, edge: &Edge, own_ns: u64) -> bool {
    let idle = matches!(edge.child, Child::Task(task) if plan.tasks[task].load.is_none());
    idle || own_ns == 0 && !announces(plan, edge.child)
}

/// May it tell deadlines to the node above? Of nodes only those of `edf` do, and perhaps those of the user's policies.
pub fn announces(plan: &Plan, child: Child) -> bool {
    match child {
        Child::Task(task) => plan.tasks[task].load.as_ref().is_some_and(|load| load.deadline_ns().is_some()),
        Child::Node(node) => {
            let policy = policies::by_number(plan.nodes[node].policy);
            policy.is_some_and(|policy| policy.heeds_deadlines || policy.added)
        }
        Child::Set(_) => true,
    }
}

/// The jobs of a load, where they are bounded, do not suspend themselves and have neither sections with locks nor regions without preemption. Deadlines are the shorter of those of the load and of
/// the edge (`deadline_ns`, 0 when it gives none), far away where neither has any.
pub fn job(load: &Load, deadline_ns: u64) -> Option<Task> {
    let alone = load.sections().is_empty() && load.preemption().is_full();
    job_and_suspension(load, deadline_ns)
        .filter(|(_, suspension_ns)| alone && *suspension_ns == 0)
        .map(|(job, _)| job)
}

/// The same also where they suspend themselves, and for how long each does in all; without their waits for locks.
pub fn job_and_suspension(load: &Load, deadline_ns: u64) -> Option<(Task, u64)> {
    densest(load, deadline_ns).filter(|_| !load.is_bursty())
}

/// The same also where they come in bursts, as if they always came as in these.
pub fn densest(load: &Load, deadline_ns: u64) -> Option<(Task, u64)> {
    let (work_ns, period_ns, jitter_ns, suspension_ns) = match load {
        Load::Periodic(load) => (load.work.max_ns(), load.period_ns, load.jitter_ns, 0),
        Load::Sporadic(load) => (load.work.max_ns(), load.separation_ns, 0, 0),
        // As if what releases it came with this jitter; only admission knows how much that is.
        Load::Triggered(load) => (load.work.max_ns(), load.period_ns, load.jitter_ns?, 0),
        Load::Phases(load) => {
            let (work_ns, suspension_ns, period_ns) = steps(load)?;
            (work_ns, period_ns, 0, suspension_ns)
        }
        Load::Busy | Load::Stages(_) => return None,
    };
    let edge = Some(deadline_ns).filter(|ns| *ns > 0);
    // A deadline that only the edge gives counts from each wake-up: it is that of the job only if each wakes up once, when it comes.
    let wakes_up = suspension_ns == 0 && edge.is_none_or(|ns| ns <= period_ns.saturating_sub(jitter_ns));
    if edge.is_some() && load.deadline_ns().is_none() && !wakes_up {
        return None;
    }
    let deadline_ns = edge.into_iter().chain(load.deadline_ns()).min().unwrap_or(TIME_MAX_NS);
    Some((Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 }, suspension_ns))
}

/// How many parts a job has, between which it suspends itself.
pub fn parts(load: &Load) -> u64 {
    let Load::Phases(load) = load else { return 1 };
    1 + load.phases.iter().filter(|phase| matches!(phase, Phase::Suspend(_))).count() as u64
}

/// The jobs of a load differ, or come in bursts: how long and how close they can be says more than is true of many of them.
pub fn vary(load: &Load) -> bool {
    let differ = matches!(load.work(), Some(Work::List(works)) if works.iter().any(|work| *work != works[0]));
    differ || load.is_bursty()
}

/// What the jobs of a load request, where [`densest`] knows them and they do not suspend themselves.
pub fn requests(load: &Load) -> Option<Requests> {
    let (job, suspension_ns) = densest(load, 0)?;
    let works = match load.work() {
        Some(Work::List(works)) => &works[..],
        _ => &[job.work_ns],
    };
    let mut distances = vec![job.period_ns];
    if let Load::Sporadic(load) = load {
        distances.extend(&load.further_ns);
    }
    let requests = || Requests::new(works, &distances).or_else(|| Requests::new(&[job.work_ns], &distances));
    (suspension_ns == 0).then(requests)?
}

/// A task whose longest job is that, `job` with whatever is added to its work, as the load says.
pub fn requesting(load: Option<&Load>, job: Task) -> Option<Requesting> {
    let requests = match load.and_then(|load| Some((load.work()?.max_ns(), requests(load)?))) {
        Some((longest_ns, requests)) => requests.longer(job.work_ns.saturating_sub(longest_ns)),
        None => Requests::of(&job)?,
    };
    Some(Requesting { task: job, requests })
}

/// Work, suspension and least distance of the jobs of a list that works, perhaps with suspensions between, and then waits: for a
/// timer, which after a late job expires at once or later than it would have, or for some time, which begins when the job is done.
fn steps(load: &Phases) -> Option<(u64, u64, u64)> {
    let (last, steps) = load.phases.split_last()?;
    // A job begins and ends with work.
    let ends = [steps.first()?, steps.last()?];
    if !ends.iter().all(|step| matches!(step, Phase::Run { .. })) {
        return None;
    }
    let (mut least_ns, mut most_ns, mut suspension_ns) = (0u64, 0u64, 0u64);
    for step in steps {
        let (time, sum_ns) = match step {
            Phase::Run { work, .. } => (work, &mut most_ns),
            Phase::Suspend(time) => (time, &mut suspension_ns),
            _ => return None,
        };
        least_ns = least_ns.saturating_add(time.min_ns());
        *sum_ns = sum_ns.saturating_add(time.max_ns());
    }
    let period_ns = match last {
        Phase::Timer { period_ns, .. } => *period_ns,
        Phase::Sleep(time) => least_ns.saturating_add(time.min_ns()),
        _ => return None,
    };
    // The deadline of a job that the timer released late would count from there.
    let in_time = load.deadline_ns.is_none_or(|deadline| deadline <= period_ns);
    (most_ns > 0 && period_ns > 0 && in_time).then_some((most_ns, suspension_ns, period_ns))
}

/// How many budgets each job of a task takes, if each job begins a period of its own.
///
/// A job that comes when the last period has ended begins a new one (rule 5 of policy/reservation.c). If it takes n = ⌈C/Q⌉
/// budgets it is done by the deadline of the n-th, (n − 1)·T + D after it came, since periods follow each other while it wants the
/// CPU. So its last period ends n·T after it came, before the next job does, if those are n·T apart: T' − J ≥ n·T. The
/// first job begins the first period.
///
/// A budget that the job has used up is replenished without it. With D = T the next job still begins a new period, since a whole
/// budget does not fit in the rest of that one. With D < T that is cut instead: so there no budget may be used up.
pub fn budgets_of_its_own(job: &Task, server: &Task) -> Option<u64> {
    let budgets = job.work_ns.div_ceil(server.work_ns.max(1));
    let apart = budgets.checked_mul(server.period_ns)? <= job.period_ns.saturating_sub(job.jitter_ns);
    let begins = server.deadline_ns == server.period_ns || job.work_ns < server.work_ns;
    (apart && begins).then_some(budgets)
}

/// The same by when budgets are replenished. With `total-bandwidth` (rule 8 of policy/reservation.c) whoever wakes gets a whole budget and the deadline
/// max(now, old one) + T, and so does who uses one up. A job that uses up n budgets leaves the deadline n + 1 periods after it came: that far
/// the next one has to be, or deadlines move away.
pub fn budgets_when(replenishment: Replenishment, job: &Task, server: &Task) -> Option<u64> {
    let budgets = budgets_of_its_own(job, server)?;
    let begun = match replenishment {
        Replenishment::TotalBandwidth => (job.work_ns / server.work_ns.max(1)).checked_add(1)?,
        _ => budgets,
    };
    let apart = begun.checked_mul(server.period_ns)? <= job.period_ns.saturating_sub(job.jitter_ns);
    apart.then_some(budgets)
}

/// It always (or never) wants the CPU.
pub fn wants(plan: &Plan, shape: &Shape, edge: usize, always: bool) -> bool {
    let about = &plan.edges[edge];
    let budgets = policies::by_number(plan.nodes[about.parent].policy).and_then(policies::budget_and_period);
    match about.child {
        _ if always && (about.when_spent || budgets.is_some()) => false,
        Child::Task(task) => match &plan.tasks[task].load {
            Some(load) => always && shape.task_parents[task].len() == 1 && endless(load),
            None => !always,
        },
        Child::Node(node) => {
            let mut below = shape.children[node].iter().map(|edge| wants(plan, shape, *edge, always));
            if always {
                below.any(|wants| wants)
            } else {
                below.all(|wants| wants)
            }
        }
        Child::Set(_) => !always,
    }
}

/// It never waits for anything.
pub fn endless(load: &Load) -> bool {
    match load {
        Load::Busy => true,
        Load::Phases(load) => {
            load.repeat == 0
                && load.phases.iter().all(|phase| matches!(phase, tierce_plan::Phase::Run { .. }))
        }
        Load::Periodic(_) | Load::Sporadic(_) | Load::Triggered(_) | Load::Stages(_) => false,
    }
}

/// Its jobs come when they do, however late those before them are, so it may ask for as much as they work. Who sleeps or sets a timer after
/// each job asks for less when it is served late.
pub fn asks_whatever_it_gets(load: &Load) -> bool {
    match load {
        Load::Busy | Load::Periodic(_) | Load::Sporadic(_) | Load::Triggered(_) => true,
        Load::Phases(_) | Load::Stages(_) => false,
    }
}

/// What is below the edge wants the CPU from its first wake-up on, as far as loads say.
pub fn awake(plan: &Plan, shape: &Shape, edge: usize) -> bool {
    let about = &plan.edges[edge];
    match about.child {
        _ if about.when_spent => false,
        Child::Task(task) => {
            let load = plan.tasks[task].load.as_ref().filter(|_| shape.task_parents[task].len() == 1);
            load.is_some_and(endless)
        }
        Child::Node(node) if !shape.shared(node) => {
            shape.children[node].iter().any(|below| wants(plan, shape, *below, true))
        }
        Child::Node(_) | Child::Set(_) => false,
    }
}

/// It leads to a task that has other parents, too.
pub fn has_other_parents(plan: &Plan, shape: &Shape, edge: usize) -> bool {
    matches!(plan.edges[edge].child, Child::Task(task) if shape.task_parents[task].len() > 1)
}
