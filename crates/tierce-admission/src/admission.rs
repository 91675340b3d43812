//! Admission: do the budgets fit, do the deadlines hold? Exact rationals decide.
//!
//! The laws of policies are in `laws.rs`, the deadlines of tasks in `deadlines.rs`.
//! What is promised of every edge, and whether that includes what is asked for with `needs`, is in `promises.rs`.

use crate::deadlines::{self, Deadlines, Found};
use crate::exact::{fraction, ratio, Share};
use crate::kept;
use crate::laws::{self, job, BudgetParams};
use crate::overheads::Overheads;
use crate::promises::{Promise, Promises, Proof};
use crate::rates::{Rates, Trust};
use crate::remedies::Remedy;
use crate::responses::Bound;
use crate::servers;
use crate::slower;
use tierce_analysis::{Response, Task};
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::Shape;
use tierce_plan::{Edge, Load, Need, Plan};
use tierce_plan::{Fault, Faults};

/// Version of the JSON that [`Admission::json`] writes.
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

impl NodeVerdict {
    /// Nothing is tested yet; its long-run rate is `supply`.
    pub(crate) fn new(supply: Option<Share>) -> Self {
        Self {
            law: None,
            asked: None,
            supply,
            failures: Vec::new(),
            open: Vec::new(),
            promises: Vec::new(),
            needs: Vec::new(),
        }
    }
}

/// What was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Sum of budget/period.
    Budgets,
    /// Sum of budget/period, and what is due in every window.
    BudgetsWithDeadlines,
    /// Sum of budget/period, and when each arrives.
    BudgetsByPriority,
    /// Sum of shares.
    Shares,
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
            Self::BudgetsByPriority => "utilisation and response times",
            Self::Shares => "sum of shares",
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

impl Admission {
    /// Test every node's law.
    pub fn of(plan: &Plan) -> Admission {
        let shape = Shape::new(plan);
        let rates = Rates::new(plan, &shape, Trust::Loads);
        let overheads = Overheads::new(plan, &shape);
        let mut nodes: Vec<_> =
            (0..plan.nodes.len()).map(|node| NodeVerdict::new(rates.node(plan, &shape, node))).collect();
        for (index, verdict) in nodes.iter_mut().enumerate() {
            let Some(policy) = policies::by_number(plan.nodes[index].policy) else { continue };
            let children: Vec<_> =
                shape.children[index].iter().map(|edge| (*edge, &plan.edges[*edge])).collect();
            if children.is_empty() {
                continue;
            }
            law(plan, policy, &children, (index, &shape, &overheads), verdict);
        }
        let promises = Promises::new(plan, &shape, &nodes, &overheads);
        for (index, (node, verdict)) in plan.nodes.iter().zip(&mut nodes).enumerate() {
            let (found, above) = (&promises.nodes[index], &shape.parents[index]);
            verdict.needs = node.needs.iter().map(|need| promises.prove(found, above, &need.text)).collect();
            verdict.promises = found.clone();
        }
        for (index, why) in &promises.unfit {
            unfit(plan, *index, why, &shape, &mut nodes[*index]);
        }
        let (bounds, refused) = crate::responses::test(plan, &shape, &promises, &mut nodes, &overheads);
        let found = Found {
            plan,
            shape: &shape,
            promises: &promises,
            overheads: &overheads,
            nodes: &nodes,
            refused: &refused,
        };
        let tasks = task_verdicts(plan, &found, &rates, bounds);
        let edges = rates.edge.iter().zip(promises.edges);
        let edges =
            edges.map(|(supply, promises)| EdgeVerdict { supply: supply.clone(), promises }).collect();
        let proved =
            |failures: &[Failure], needs: &[Proof]| failures.is_empty() && needs.iter().all(Result::is_ok);
        let holds = nodes.iter().all(|node| proved(&node.failures, &node.needs))
            && tasks.iter().all(|task| proved(&task.failures, &task.needs));
        Admission { holds, nodes, edges, tasks }
    }
}

/// Test the law of a node if these edges are below it.
pub fn law(
    plan: &Plan,
    policy: &PolicyRecord,
    children: &[(usize, &Edge)],
    (node, shape, overheads): (usize, &Shape, &Overheads),
    verdict: &mut NodeVerdict,
) {
    if let Some(at) = BudgetParams::of(policy) {
        let by_priority = ServerRules::of(plan, node).priority.is_some();
        let law = (by_priority, servers::cap(plan, node));
        laws::budgets(&at, children, overheads.switch_ns(node), law, verdict);
        if !by_priority {
            budgets_kept(plan, &at, children, shape, overheads, verdict);
        }
    } else if policies::share(policy).is_some() {
        slower::law(plan, children, verdict);
    } else if policy.heeds_deadlines {
        laws::deadlines(plan, policy, children, (node, overheads), verdict);
    }
}

/// Deadlines below periods, and budgets that may be kept over a sleep.
fn budgets_kept(
    plan: &Plan,
    at: &BudgetParams,
    children: &[(usize, &Edge)],
    shape: &Shape,
    overheads: &Overheads,
    verdict: &mut NodeVerdict,
) {
    let servers: Vec<_> = children.iter().map(|(index, edge)| (*index, at.demand(edge))).collect();
    let early = servers.iter().any(|(_, server)| server.deadline_ns < server.period_ns);
    if early && verdict.failures.is_empty() {
        let keeps = |(index, server): &(usize, Task)| kept::keeps(plan, shape, overheads, *index, server);
        let keeps: Vec<_> = servers.iter().map(keeps).collect();
        if keeps.contains(&true) {
            verdict.failures.extend(kept::failure(&servers, &keeps, at.least_ns));
        }
    }
}

/// Budgets that fit in the long run, but are not shown to arrive in what the node is promised, or in what this machine
/// leaves of its CPU.
fn unfit(plan: &Plan, index: usize, why: &str, shape: &Shape, verdict: &mut NodeVerdict) {
    let left = plan.nodes[index].roots.first().and_then(|cpu| plan.machine.left.get(*cpu as usize));
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

fn task_verdicts(plan: &Plan, found: &Found, rates: &Rates, bounds: Vec<Option<Bound>>) -> Vec<TaskVerdict> {
    let Found { shape, promises, overheads, .. } = *found;
    let mut verdicts: Vec<_> = bounds
        .into_iter()
        .zip(&plan.tasks)
        .enumerate()
        .map(|(index, (bound, task))| {
            let above = &shape.task_parents[index];
            let supply = rates.total(plan, shape, above, 1);
            let above_it = above.first().map_or(0, |edge| plan.edges[*edge].parent);
            let job = task.load.as_ref().and_then(|load| job(load, 0));
            let asked =
                job.map(|job| overheads.job(above_it, job)).map(|job| ratio(job.work_ns, job.period_ns));
            let bound = found.bound(index, bound);
            let rates = (asked.as_ref(), supply.as_ref());
            let deadlines = found.judge(index, bound, rates);
            let failures = found.failure(index, deadlines, bound, rates).into_iter().collect();
            let promised = &promises.tasks[index];
            let needs = task.needs.iter().map(|need| promises.prove(promised, above, &need.text)).collect();
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
    deadlines::once_for_each_set(plan, &mut verdicts);
    verdicts
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
