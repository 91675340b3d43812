//! Admission: do the budgets fit, do the deadlines hold? Exact rationals decide.
//!
//! For each node, by what its policy offers:
//! - budgets (`reservation`): the sum of budget/period is at most one CPU, and at most what the node is supplied with
//!   itself; with deadlines below periods every window has room for what is due in it;
//! - deadlines (`edf`): the sum of work/period of its tasks is at most what the node is supplied with; on a whole CPU
//!   with deadlines below periods, the demand test as well;
//! - others promise nothing but their order or shares.
//!
//! What is promised of every edge, and whether that includes what is asked for with `needs`, is in `promises.rs`.
//!
//! The supply of a node is its long-run rate: what it gets when all others ask for as much as they may. It is a
//! necessary condition below the root, and the whole truth at a root.

use crate::deadlines::{self, Deadlines, Found};
use crate::exact::{self, fraction, percent, percent_given, ratio, Share};
use crate::faults::{Fault, Faults};
use crate::kept;
use crate::model::{Child, Edge, Load, Need, Phase, Phases, Plan};
use crate::overheads::Overheads;
use crate::policies::{self, PolicyRecord};
use crate::promises::{Promise, Promises, Proof};
use crate::remedies::Remedy;
use crate::responses::{mend_by_bisection, Bound};
use crate::structure::Shape;
use crate::units::show_time;
use tierce_analysis::{Demand, Edf, Response, Supply, Task, TIME_MAX_NS};

/// Version of the JSON that [`Admission::to_json`] writes.
pub const CHECK_VERSION: u32 = 2;

/// The verdict on a plan.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Every node's law holds, and every guarantee asked for is shown.
    pub holds: bool,
    /// One per node, in the order of [`Plan::nodes`].
    pub nodes: Vec<NodeVerdict>,
    /// One per edge, in the order of [`Plan::edges`].
    pub edges: Vec<EdgeVerdict>,
    /// One per task, in the order of [`Plan::tasks`].
    pub tasks: Vec<TaskVerdict>,
}

/// The verdict on a node.
#[derive(Clone, Debug)]
pub struct NodeVerdict {
    /// What it rests on; `None`: the policy promises nothing that could fail.
    pub law: Option<Law>,
    /// Sum of what its children may ask for, where that is bounded.
    pub asked: Option<Share>,
    /// Its own long-run rate, where that is known.
    pub supply: Option<Share>,
    /// Why the law does not hold; empty: it does.
    pub failures: Vec<Failure>,
    /// What could not be looked at, in words.
    pub open: Vec<String>,
    /// What it is promised, the strongest first; at least NULL.
    pub promises: Vec<Promise>,
    /// For each of its `needs`.
    pub needs: Vec<Proof>,
}

/// What was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Sum of budget/period.
    Budgets,
    /// Sum of budget/period, and what is due in every window.
    BudgetsWithDeadlines,
    /// Sum of work/period.
    Deadlines,
    /// Sum of work/period, and what is due in every window.
    DeadlinesBelowPeriods,
}

impl Law {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Budgets => "utilisation",
            Self::BudgetsWithDeadlines => "utilisation and demand",
            Self::Deadlines => "utilisation of deadlines",
            Self::DeadlinesBelowPeriods => "utilisation and demand of deadlines",
        }
    }
}

/// A law that does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Name of the rule, snake_case.
    pub rule: &'static str,
    /// In plain words.
    pub message: String,
    /// Value and bound.
    pub value: String,
    /// Value and bound.
    pub bound: String,
    /// The smallest change of one number that mends it.
    pub mend: Option<Mend>,
    /// Where and by how much.
    pub excess: Excess,
}

/// Where something breaks, what says so, and by how much.
#[derive(Clone, Debug)]
pub struct Excess {
    /// The first edge, in the order of the text, with which it does not fit; index into [`Plan::edges`].
    pub edge: Option<usize>,
    /// The test or theorem.
    pub test: String,
    /// Too much by so many ns: of a window, or of a period of that edge.
    pub ns: Option<u64>,
    /// And by so much of that window, or of a CPU.
    pub share: Option<Share>,
}

/// Reduce one number.
#[derive(Clone, Debug)]
pub struct Mend {
    /// Index into [`Plan::edges`].
    pub edge: usize,
    /// `budget` of the edge or `work` of the task below it.
    pub parameter: &'static str,
    /// What it is.
    pub from_ns: u64,
    /// The largest value at which the law holds.
    pub to_ns: u64,
}

/// What an edge gets.
#[derive(Clone, Debug)]
pub struct EdgeVerdict {
    /// Long-run rate through this edge, where that is known.
    pub supply: Option<Share>,
    /// What is promised through it, the strongest first; at least NULL.
    pub promises: Vec<Promise>,
}

/// What a task asks for and gets.
#[derive(Clone, Debug)]
pub struct TaskVerdict {
    /// work/period of its load, where that is bounded.
    pub asked: Option<Share>,
    /// Its long-run rate, where that is known.
    pub supply: Option<Share>,
    /// What is known of its deadlines.
    pub deadlines: Deadlines,
    /// Misses are by design.
    pub soft: bool,
    /// A bound on the response of its jobs, where there is one.
    pub response: Option<Response>,
    /// Why deadlines that have to be met are not shown to be.
    pub failures: Vec<Failure>,
    /// What it is promised, the strongest first; at least NULL.
    pub promises: Vec<Promise>,
    /// For each of its `needs`.
    pub needs: Vec<Proof>,
}

impl Plan {
    /// Test every node's law.
    pub fn admit(&self) -> Admission {
        let shape = Shape::new(self);
        let rates = Rates::new(self, &shape, Trust::Loads);
        let overheads = Overheads::new(self, &shape);
        let mut nodes: Vec<_> = (0..self.nodes.len())
            .map(|node| NodeVerdict {
                law: None,
                asked: None,
                supply: rates.node(self, &shape, node),
                failures: Vec::new(),
                open: Vec::new(),
                promises: Vec::new(),
                needs: Vec::new(),
            })
            .collect();
        for (index, verdict) in nodes.iter_mut().enumerate() {
            let Some(policy) = policies::by_number(self.nodes[index].policy) else { continue };
            let children: Vec<_> =
                shape.children[index].iter().map(|edge| (*edge, &self.edges[*edge])).collect();
            if children.is_empty() {
                continue;
            }
            if let Some(at) = BudgetParams::of(policy) {
                budgets(&at, &children, overheads.switch_ns(index), verdict);
                self.kept(&at, &children, &shape, &overheads, verdict);
            } else if policy.heeds_deadlines {
                deadlines(self, policy, &children, (index, &overheads), verdict);
            }
        }
        let promises = Promises::new(self, &shape, &nodes, &overheads);
        for (index, (node, verdict)) in self.nodes.iter().zip(&mut nodes).enumerate() {
            let (found, above) = (&promises.nodes[index], &shape.parents[index]);
            verdict.needs = node.needs.iter().map(|need| promises.prove(found, above, &need.text)).collect();
            verdict.promises = found.clone();
        }
        for (index, why) in &promises.unfit {
            self.unfit(*index, why, &shape, &mut nodes[*index]);
        }
        let (bounds, refused) = crate::responses::test(self, &shape, &promises, &mut nodes, &overheads);
        let found = Found {
            plan: self,
            shape: &shape,
            promises: &promises,
            overheads: &overheads,
            nodes: &nodes,
            refused: &refused,
        };
        let tasks = self.task_verdicts(&found, &rates, bounds);
        let edges = rates.edge.iter().zip(promises.edges);
        let edges =
            edges.map(|(supply, promises)| EdgeVerdict { supply: supply.clone(), promises }).collect();
        let proved =
            |failures: &[Failure], needs: &[Proof]| failures.is_empty() && needs.iter().all(Result::is_ok);
        let holds = nodes.iter().all(|node| proved(&node.failures, &node.needs))
            && tasks.iter().all(|task| proved(&task.failures, &task.needs));
        Admission { holds, nodes, edges, tasks }
    }

    /// Deadlines below periods, and budgets that may be kept over a sleep.
    fn kept(
        &self,
        at: &BudgetParams,
        children: &[(usize, &Edge)],
        shape: &Shape,
        overheads: &Overheads,
        verdict: &mut NodeVerdict,
    ) {
        let servers: Vec<_> = children.iter().map(|(index, edge)| (*index, at.demand(edge))).collect();
        let early = servers.iter().any(|(_, server)| server.deadline_ns < server.period_ns);
        if early && verdict.failures.is_empty() {
            let keeps = |(index, server): &(usize, Task)| kept::keeps(self, shape, overheads, *index, server);
            let keeps: Vec<_> = servers.iter().map(keeps).collect();
            if keeps.contains(&true) {
                verdict.failures.extend(kept::failure(&servers, &keeps, at.least_ns));
            }
        }
    }

    /// Budgets that fit in the long run, but are not shown to arrive in what the node is promised, or in what this machine
    /// leaves of its CPU.
    fn unfit(&self, index: usize, why: &str, shape: &Shape, verdict: &mut NodeVerdict) {
        let left = self.nodes[index].roots.first().and_then(|cpu| self.machine.left.get(*cpu as usize));
        let edge = shape.children[index].first().copied();
        let (rule, message, bound, test) = match left {
            Some(left) => (
                "budgets_must_fit_what_is_left",
                format!("What stands above sched_ext leaves too little: {why}."),
                left.guarantee.to_string(),
                left.because.clone(),
            ),
            None => (
                "budgets_are_not_shown",
                format!("Its budgets are not shown to arrive in each period: {why}."),
                verdict.promises.first().map_or_else(|| "NULL".into(), |promise| promise.guarantee.to_string()),
                "the demand of its budgets in every window, against the least supply of what it is promised (Shin & Lee 2003)".into(),
            ),
        };
        let value = verdict.asked.as_ref().map_or_else(|| "?".into(), fraction);
        let excess = Excess { edge, test, ns: None, share: None };
        verdict.failures.push(Failure { rule, message, value, bound, mend: None, excess });
    }

    fn task_verdicts(&self, found: &Found, rates: &Rates, bounds: Vec<Option<Bound>>) -> Vec<TaskVerdict> {
        let Found { shape, promises, overheads, .. } = *found;
        let mut verdicts: Vec<_> = bounds
            .into_iter()
            .zip(&self.tasks)
            .enumerate()
            .map(|(index, (bound, task))| {
                let above = &shape.task_parents[index];
                let supply = rates.total(self, shape, above, 1);
                let above_it = above.first().map_or(0, |edge| self.edges[*edge].parent);
                let job = task.load.as_ref().and_then(|load| job(load, 0));
                let asked =
                    job.map(|job| overheads.job(above_it, job)).map(|job| ratio(job.work_ns, job.period_ns));
                let bound = found.bound(index, bound);
                let rates = (asked.as_ref(), supply.as_ref());
                let deadlines = found.judge(index, bound, rates);
                let failures = found.failure(index, deadlines, bound, rates).into_iter().collect();
                let promised = &promises.tasks[index];
                let needs =
                    task.needs.iter().map(|need| promises.prove(promised, above, &need.text)).collect();
                let response = bound.map(|bound| bound.response);
                let soft = task.load.as_ref().is_some_and(Load::is_soft);
                TaskVerdict {
                    asked,
                    supply,
                    deadlines,
                    soft,
                    response,
                    failures,
                    promises: promised.clone(),
                    needs,
                }
            })
            .collect();
        deadlines::once_for_each_set(self, &mut verdicts);
        verdicts
    }
}

/// Where the parameters of a budget are among an edge's.
struct BudgetParams {
    budget: usize,
    period: usize,
    deadline: usize,
    least_ns: u64,
}

impl BudgetParams {
    fn of(policy: &PolicyRecord) -> Option<Self> {
        let (budget, period) = policies::budget_and_period(policy)?;
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
        Some(Self { budget, period, deadline, least_ns: policy.edge_params[budget].least })
    }
    fn budget(&self, edge: &Edge) -> u64 {
        edge.params[self.budget]
    }
    fn period(&self, edge: &Edge) -> u64 {
        edge.params[self.period].max(1)
    }
    fn demand(&self, edge: &Edge) -> Task {
        let deadline_ns = edge.params[self.deadline].max(1);
        Task { deadline_ns, ..Task::new(self.budget(edge), self.period(edge)) }
    }
}

/// The law of a node whose edges have budgets. Each of them may be overrun by a switch, and one more be under way for
/// somebody whose deadline is later.
fn budgets(at: &BudgetParams, children: &[(usize, &Edge)], switch_ns: u64, verdict: &mut NodeVerdict) {
    let blocking_ns = switch_ns.saturating_mul(children.len() as u64 + 1);
    let demand = |(_, edge): &(usize, &Edge)| Task { blocking_ns, ..at.demand(edge) };
    let demands: Vec<_> = children.iter().map(demand).collect();
    let asked = exact::sum(demands.iter().map(|demand| (demand.work_ns, demand.period_ns)));
    let early = switch_ns > 0 || demands.iter().any(|demand| demand.deadline_ns < demand.period_ns);
    verdict.law = Some(if early { Law::BudgetsWithDeadlines } else { Law::Budgets });
    let short = demands.iter().filter(|demand| demand.work_ns < switch_ns).map(|demand| demand.work_ns).min();
    let terms =
        Terms { children, demands, parameter: "budget", least_ns: at.least_ns, switch_ns, extra_ns: 0 };
    terms.utilisation("budgets_must_fit_the_cpu", "one CPU", &asked, &exact::one(), verdict);
    if verdict.failures.is_empty() {
        if let Some(supply) = verdict.supply.clone() {
            terms.utilisation(
                "budgets_must_fit_the_supply",
                "what the node gets itself",
                &asked,
                &supply,
                verdict,
            );
        } else {
            verdict.open.push("what the node gets itself is not known".into());
        }
    }
    if let Some(short) = short.filter(|_| verdict.failures.is_empty()) {
        let message = "A budget is shorter than one switch: what it overruns could not be paid back.".into();
        let (value, bound) = (show_time(short), format!("at least {}", show_time(switch_ns)));
        let edge = children.iter().find(|(_, edge)| at.budget(edge) < switch_ns).map(|(edge, _)| *edge);
        let test = "what a budget overruns is paid back by the next".into();
        let excess = Excess { edge, test, ns: Some(switch_ns - short), share: None };
        let rule = "budget_must_pay_for_a_switch";
        verdict.failures.push(Failure { rule, message, value, bound, mend: None, excess });
    }
    if verdict.failures.is_empty() && early {
        terms.demand("budgets_must_fit_every_window", &asked, verdict);
    }
    verdict.asked = Some(asked);
}

/// The law of a node that orders by deadlines.
fn deadlines(
    plan: &Plan,
    policy: &PolicyRecord,
    children: &[(usize, &Edge)],
    (node, overheads): (usize, &Overheads),
    verdict: &mut NodeVerdict,
) {
    let at = policies::position(&policy.edge_params, "deadline");
    let (mut bounded, mut demands) = (Vec::new(), Vec::new());
    for (index, edge) in children {
        let name = plan.child_name(edge.child);
        let own_ns = at.map_or(0, |at| edge.params[at]);
        let demand = match edge.child {
            Child::Task(task) => plan.tasks[task].load.as_ref().and_then(|load| demand(load, own_ns)),
            _ => None,
        };
        match (demand, edge.child) {
            (Some(demand), _) => {
                bounded.push((*index, *edge));
                demands.push(overheads.job(node, demand));
            }
            (None, _) if comes_last(plan, edge, own_ns) => {}
            (None, _) => {
                verdict.open.push(format!("how much `{name}` asks for by its deadlines is not known"))
            }
        }
    }
    if demands.is_empty() {
        return;
    }
    let asked = exact::sum(demands.iter().map(|demand| (demand.work_ns, demand.period_ns)));
    let switch_ns = overheads.switch_ns(node);
    let early = switch_ns > 0 || demands.iter().any(|demand| demand.deadline_ns < demand.period_ns);
    verdict.law = Some(if early { Law::DeadlinesBelowPeriods } else { Law::Deadlines });
    let extra_ns = switch_ns.saturating_mul(2);
    let terms = Terms { children: &bounded, demands, parameter: "work", least_ns: 1, switch_ns, extra_ns };
    let whole = verdict.supply.as_ref().is_some_and(|supply| *supply >= exact::one());
    match verdict.supply.clone() {
        Some(supply) => {
            terms.utilisation("deadlines_must_fit_the_supply", "what the node gets", &asked, &supply, verdict)
        }
        None => verdict.open.push("what the node gets itself is not known".into()),
    }
    if verdict.failures.is_empty() && early {
        if whole {
            terms.demand("deadlines_must_fit_every_window", &asked, verdict);
        } else {
            verdict.open.push(crate::responses::ONLY_UTILISATION.into());
        }
    }
    verdict.asked = Some(asked);
}

/// What a load with deadlines asks for; `deadline_ns`: of the edge, 0 when it gives none.
fn demand(load: &Load, deadline_ns: u64) -> Option<Task> {
    let job = job(load, deadline_ns).filter(|job| job.deadline_ns < TIME_MAX_NS)?;
    // A late release leaves less time until the same deadline.
    let deadline_ns = job.deadline_ns.saturating_sub(job.jitter_ns).max(1);
    Some(Task { deadline_ns, jitter_ns: 0, ..job })
}

/// `edf` runs what is below the edge after all who have deadlines: it has none itself, and none on the edge (`own_ns`). Of nodes
/// only those of `edf` announce any.
pub fn comes_last(plan: &Plan, edge: &Edge, own_ns: u64) -> bool {
    let announces = match edge.child {
        Child::Task(task) => plan.tasks[task].load.as_ref().is_some_and(|load| load.deadline_ns().is_some()),
        Child::Node(node) => {
            policies::by_number(plan.nodes[node].policy).is_some_and(|policy| policy.heeds_deadlines)
        }
        Child::Set(_) => true,
    };
    let idle = matches!(edge.child, Child::Task(task) if plan.tasks[task].load.is_none());
    idle || own_ns == 0 && !announces
}

/// The jobs of a load, where they are bounded. Deadlines are the shorter of those of the load and of the edge (`deadline_ns`, 0
/// when it gives none), far away where neither has any.
pub fn job(load: &Load, deadline_ns: u64) -> Option<Task> {
    let (work_ns, period_ns, jitter_ns) = match load {
        Load::Periodic(load) => (load.work.max_ns(), load.period_ns, load.jitter_ns),
        Load::Sporadic(load) => (load.work.max_ns(), load.separation_ns, 0),
        Load::Phases(load) => (steps(load)?.0, steps(load)?.1, 0),
        Load::Busy => return None,
    };
    let edge = Some(deadline_ns).filter(|ns| *ns > 0);
    let deadline_ns = edge.into_iter().chain(load.deadline_ns()).min().unwrap_or(TIME_MAX_NS);
    Some(Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 })
}

/// Work and least distance of the jobs of a list that works once and then waits: for a timer, which after a late job expires at
/// once or later than it would have, or for some time, which begins when the job is done.
fn steps(load: &Phases) -> Option<(u64, u64)> {
    let (last, runs) = load.phases.split_last()?;
    let (mut least_ns, mut most_ns) = (0u64, 0u64);
    for run in runs {
        let Phase::Run(work) = run else { return None };
        least_ns = least_ns.saturating_add(work.min_ns());
        most_ns = most_ns.saturating_add(work.max_ns());
    }
    let period_ns = match last {
        Phase::Timer { period_ns, .. } => *period_ns,
        Phase::Sleep(time) => least_ns.saturating_add(time.min_ns()),
        _ => return None,
    };
    // The deadline of a job that the timer released late would count from there.
    let in_time = load.deadline_ns.is_none_or(|deadline| deadline <= period_ns);
    (most_ns > 0 && period_ns > 0 && in_time).then_some((most_ns, period_ns))
}

/// work/period of a load, where it has one.
fn utilisation(load: &Load) -> Option<Share> {
    job(load, 0).map(|job| ratio(job.work_ns, job.period_ns))
}

/// A test.
pub const DEMAND: &str = "the processor demand of every window (Baruah, Rosier & Howell 1990)";

/// The numbers of one law and what they belong to.
struct Terms<'a> {
    children: &'a [(usize, &'a Edge)],
    demands: Vec<Task>,
    /// What a person would reduce.
    parameter: &'static str,
    least_ns: u64,
    /// The most that a switch costs.
    switch_ns: u64,
    /// Of the work of each, what is not his to reduce: the switches of his jobs.
    extra_ns: u64,
}

impl Terms<'_> {
    fn utilisation(
        &self,
        rule: &'static str,
        what: &str,
        asked: &Share,
        bound: &Share,
        verdict: &mut NodeVerdict,
    ) {
        if asked <= bound {
            return;
        }
        let excess = asked - bound;
        // Taking x from a term of period T takes x/T from the sum: the least x is with the shortest period.
        let reduce = |demand: &Task| {
            let cut = (&excess * exact::Share::from_integer(demand.period_ns.into())).ceil().to_integer();
            u64::try_from(cut)
                .ok()
                .and_then(|cut| demand.work_ns.checked_sub(cut))
                .filter(|to| *to >= self.least_ns.saturating_add(self.extra_ns))
        };
        let (parts, test) = match self.parameter {
            "budget" => (
                "The budgets",
                "the sum of budget/period (constant bandwidth servers, Abeni & Buttazzo 1998)",
            ),
            _ => ("The jobs", "the sum of work/period (earliest deadline first, Liu & Layland 1973)"),
        };
        let first = self.first(|tasks| tierce_analysis::utilisation(tasks) > *bound);
        let period_ns = first.map_or(1, |at| self.demands[at].period_ns);
        let ns = (&excess * exact::Share::from_integer(period_ns.into())).ceil().to_integer();
        let edge = first.map(|at| self.children[at].0);
        let excess =
            Excess { edge, test: test.into(), ns: u64::try_from(ns).ok(), share: Some(excess.clone()) };
        verdict.failures.push(Failure {
            rule,
            message: format!(
                "{parts} add up to {} of a CPU, more than {what}: {}.",
                percent(asked),
                percent_given(bound)
            ),
            value: fraction(asked),
            bound: exact::fraction_given(bound),
            mend: self.mend(reduce),
            excess,
        });
    }

    /// The first of the children with which those before it do not fit.
    fn first(&self, fails: impl Fn(&[Task]) -> bool) -> Option<usize> {
        let all = self.demands.len();
        if all > 256 {
            return all.checked_sub(1);
        }
        (0..all).find(|at| fails(&self.demands[..=*at]))
    }

    fn demand(&self, rule: &'static str, asked: &Share, verdict: &mut NodeVerdict) {
        let (window_ns, due_ns) = match Edf::new().demand(&self.demands, &Supply::WHOLE) {
            Demand::Met => return,
            Demand::Exceeds { window_ns, due_ns } => (window_ns, due_ns),
            Demand::Overload | Demand::TooLong => {
                return verdict.failures.push(Failure {
                    rule: "windows_must_be_few",
                    message: "Utilisation is so close to 1 that too many windows would have to be looked at. Slightly \
                              smaller or rounder numbers help."
                        .into(),
                    value: fraction(asked),
                    bound: "1".into(),
                    mend: None,
                    excess: Excess { edge: None, test: DEMAND.into(), ns: None, share: None },
                });
            }
        };
        let shortest = Edf::new().shortest_excess(&self.demands, &Supply::WHOLE);
        let (window_ns, due_ns) = shortest.unwrap_or((window_ns, due_ns));
        let (window, due) = (show_time(window_ns), show_time(due_ns));
        let with = match self.switch_ns {
            0 => String::new(),
            each => format!(", with switches of up to {} each", show_time(each)),
        };
        let edges: Vec<_> = self.children.iter().map(|(edge, _)| *edge).collect();
        let mut edf = Edf::new();
        let first = (1..=edges.len()).find(|most| {
            edges.len() <= 64 && edf.shortest_excess(&self.demands[..*most], &Supply::WHOLE).is_some()
        });
        let excess = Excess {
            edge: first.map(|most| edges[most - 1]).or(edges.last().copied()),
            test: DEMAND.into(),
            ns: Some(due_ns.saturating_sub(window_ns)),
            share: Some(ratio(due_ns.saturating_sub(window_ns), window_ns.max(1))),
        };
        verdict.failures.push(Failure {
            excess,
            rule,
            message: format!("Within {window} after all begin at once {due} are due{with}."),
            value: due,
            bound: window,
            mend: mend_by_bisection(
                &edges,
                &self.demands,
                &Supply::WHOLE,
                self.parameter,
                self.least_ns,
                self.extra_ns,
            ),
        });
    }

    /// The reduction that takes least; `reduce` says to what a term must shrink.
    fn mend(&self, reduce: impl Fn(&Task) -> Option<u64>) -> Option<Mend> {
        let options = self.children.iter().zip(&self.demands).filter_map(|((edge, _), demand)| {
            let to_ns = reduce(demand)?;
            let from_ns = demand.work_ns - self.extra_ns;
            Some(Mend { edge: *edge, parameter: self.parameter, from_ns, to_ns: to_ns - self.extra_ns })
        });
        options.min_by_key(|mend| (mend.from_ns - mend.to_ns, mend.edge))
    }
}

impl Mend {
    /// The same as a change of the plan.
    pub fn remedy(&self, plan: &Plan) -> Remedy {
        let Self { edge, from_ns: from, to_ns: to, .. } = *self;
        let policy = policies::by_number(plan.nodes[plan.edges[edge].parent].policy);
        match policy.and_then(|policy| policies::position(&policy.edge_params, self.parameter)) {
            Some(at) => Remedy::Parameter { edge, at, from, to },
            None => Remedy::Work { edge, from, to },
        }
    }

    /// "reduce the budget of `video` in `rt` from 10ms to 9ms (by 1ms)".
    pub fn words(&self, plan: &Plan) -> String {
        self.remedy(plan).words(plan)
    }
}

// ---- supply ---------------------------------------------------------------------------------------------------------

/// Whose word is taken for how much a task asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The loads of the plan.
    Loads,
    /// Nobody's: a live thread may ask for everything.
    Nobody,
}

/// Long-run rates.
pub struct Rates {
    /// Through each edge; on the one CPU of its parent, or on all together when the parent is shared.
    pub edge: Vec<Option<Share>>,
    /// Of nodes, from all their CPUs together.
    node: Vec<Option<Share>>,
}

impl Rates {
    /// From the CPUs down.
    pub fn new(plan: &Plan, shape: &Shape, trust: Trust) -> Self {
        let asks = Asks::new(plan, shape, trust);
        let mut rates = Self { edge: vec![None; plan.edges.len()], node: vec![None; plan.nodes.len()] };
        for node in &shape.order {
            rates.node[*node] = rates.node(plan, shape, *node);
            let Some(supply) = rates.node[*node].clone() else { continue };
            asks.pass_on(plan, *node, &shape.children[*node], &supply, &mut rates.edge);
            // An edge is one virtual processor, however many CPUs its parent has.
            for edge in &shape.children[*node] {
                let rate = rates.edge[*edge].take();
                rates.edge[*edge] = rate.map(|rate| rate.min(exact::one()));
            }
        }
        rates
    }

    /// Of a node: what its CPUs or parents give it together.
    pub fn node(&self, plan: &Plan, shape: &Shape, node: usize) -> Option<Share> {
        let about = &plan.nodes[node];
        let most = if about.concurrency > 0 { about.concurrency } else { shape.reach[node].count_ones() };
        if !about.roots.is_empty() {
            let left = |cpu: &u32| match plan.machine.left.get(*cpu as usize) {
                Some(left) => left.guarantee.share(),
                None => exact::one(),
            };
            let sum = about.roots.iter().map(left).fold(exact::zero(), |sum, share| sum + share);
            return Some(sum.min(ratio(u64::from(most.max(1)), 1)));
        }
        self.total(plan, shape, &shape.parents[node], most)
    }

    /// The sum over several edges, of which at most `most` CPUs can serve at once; not known when none is. Edges from
    /// the same CPU add up: they are never served at the same time. Those from several CPUs add up only if they may
    /// be served at the same time.
    pub fn total(&self, plan: &Plan, shape: &Shape, above: &[usize], most: u32) -> Option<Share> {
        let mut by_cpus: Vec<(u64, Share)> = Vec::new();
        for edge in above.iter().filter(|edge| !plan.edges[**edge].when_spent) {
            let Some(rate) = &self.edge[*edge] else { continue };
            let cpus = shape.reach[plan.edges[*edge].parent];
            match by_cpus.iter_mut().find(|(other, _)| *other == cpus) {
                Some((_, sum)) => *sum += rate,
                None => by_cpus.push((cpus, rate.clone())),
            }
        }
        by_cpus.sort_by(|a, b| b.1.cmp(&a.1));
        let most = most.max(1);
        by_cpus
            .into_iter()
            .map(|(_, rate)| rate)
            .take(most as usize)
            .reduce(|sum, rate| sum + rate)
            .map(|sum| sum.min(ratio(u64::from(most), 1)))
    }
}

/// The most that each node and task may ask for in the long run; `None`: everything.
struct Asks {
    node: Vec<Share>,
    task: Vec<Share>,
}

impl Asks {
    fn new(plan: &Plan, shape: &Shape, trust: Trust) -> Self {
        let task = |index: usize| match (&plan.tasks[index].load, trust) {
            (Some(load), Trust::Loads) => utilisation(load).unwrap_or_else(exact::one),
            (None, Trust::Loads) => exact::zero(),
            (_, Trust::Nobody) => exact::one(),
        };
        let mut asks = Self {
            node: vec![exact::zero(); plan.nodes.len()],
            task: (0..plan.tasks.len()).map(task).collect(),
        };
        for node in shape.order.iter().rev() {
            let most = ratio(u64::from(shape.reach[*node].count_ones()), 1);
            let budget = policies::by_number(plan.nodes[*node].policy).and_then(BudgetParams::of);
            let edges = shape.children[*node].iter().map(|edge| &plan.edges[*edge]);
            let sum = match budget {
                Some(at) => exact::sum(edges.map(|edge| (at.budget(edge), at.period(edge)))),
                // Who takes in threads that match nothing may have any number of them.
                None if plan.nodes[*node].default && trust == Trust::Nobody => most.clone(),
                None => edges.fold(exact::zero(), |sum, edge| exact::add(&sum, &asks.child(edge.child))),
            };
            asks.node[*node] = sum.min(most);
        }
        asks
    }

    fn child(&self, child: Child) -> Share {
        match child {
            Child::Node(node) => self.node[node].clone(),
            Child::Task(task) => self.task[task].clone(),
            Child::Set(_) => exact::one(),
        }
    }

    /// What a node, itself supplied with `supply`, is sure to pass on through each of its edges.
    fn pass_on(
        &self,
        plan: &Plan,
        node: usize,
        edges: &[usize],
        supply: &Share,
        rates: &mut [Option<Share>],
    ) {
        let Some(policy) = policies::by_number(plan.nodes[node].policy) else { return };
        let edge = |index: usize| &plan.edges[index];
        let ask = |index: usize| self.child(edge(index).child);
        if let Some(at) = BudgetParams::of(policy) {
            for index in edges {
                rates[*index] = Some(ratio(at.budget(edge(*index)), at.period(edge(*index))));
            }
        } else if let Some(at) = policies::position(&policy.edge_params, "weight") {
            let weights: u64 = edges.iter().map(|index| edge(*index).params[at]).sum();
            for index in edges {
                rates[*index] = Some(supply * ratio(edge(*index).params[at], weights.max(1)));
            }
        } else if let Some(at) = policies::position(&policy.edge_params, "priority") {
            let mut order = edges.to_vec();
            order.sort_by_key(|index| std::cmp::Reverse(edge(*index).params[at]));
            let mut above = exact::zero();
            // Equals wait for each other.
            for equals in order.chunk_by(|a, b| edge(*a).params[at] == edge(*b).params[at]) {
                above = equals.iter().fold(above, |sum, index| exact::add(&sum, &ask(*index)));
                for index in equals {
                    rates[*index] =
                        Some((supply - &above + ask(*index)).clamp(exact::zero(), supply.clone()));
                }
            }
        } else if policy.heeds_deadlines {
            let all = edges.iter().fold(exact::zero(), |sum, index| exact::add(&sum, &ask(*index)));
            for index in edges {
                rates[*index] = Some((supply - &all + ask(*index)).clamp(exact::zero(), supply.clone()));
            }
        } else if policy.edge_params.is_empty() {
            // Turns of equal length: the policy knows no difference between its children.
            let turns = ratio(1, edges.len().max(1) as u64);
            for index in edges {
                rates[*index] = Some(supply * &turns);
            }
        }
    }
}

// ---- faults ---------------------------------------------------------------------------------------------------------

impl Admission {
    /// What does not hold, with its place in the text: the node, or the guarantee asked for.
    pub fn faults(&self, plan: &Plan) -> Faults {
        let mut faults = Vec::new();
        let mut unshown = |needs: &[Need], proofs: &[Proof]| {
            for (need, reason) in
                needs.iter().zip(proofs).filter_map(|(need, proof)| Some((need, proof.as_ref().err()?)))
            {
                faults.push(
                    Fault::new("needs_must_follow", need.spot, format!("not shown: {reason}"))
                        .value(&need.text),
                );
            }
        };
        plan.nodes.iter().zip(&self.nodes).for_each(|(node, verdict)| unshown(&node.needs, &verdict.needs));
        plan.tasks.iter().zip(&self.tasks).for_each(|(task, verdict)| unshown(&task.needs, &verdict.needs));
        let nodes = plan.nodes.iter().zip(&self.nodes);
        let nodes = nodes.map(|(node, verdict)| (&node.name, node.spot, &verdict.failures));
        let tasks = plan.tasks.iter().zip(&self.tasks);
        let tasks = tasks.map(|(task, verdict)| (&task.name, task.spot, &verdict.failures));
        for (name, spot, failures) in nodes.chain(tasks) {
            for failure in failures {
                let message = format!("`{name}`: {}", failure.message.trim_end_matches('.'));
                let fault = Fault::new(failure.rule, spot, message);
                let fault = fault.value(&failure.value).bound(&failure.bound);
                faults.push(match &failure.mend {
                    Some(mend) => {
                        fault.hint(mend.words(plan)).other(plan.edges[mend.edge].spot, "for example here")
                    }
                    None => fault,
                });
            }
        }
        Faults::new(faults, plan.sources.clone())
    }
}
