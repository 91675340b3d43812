//! Admission: do the budgets fit, do the deadlines hold? Exact rationals decide.
//!
//! The laws of policies are in `laws/`, the deadlines of tasks in `deadlines.rs`.
//! What is promised of every edge, and whether that includes what is asked for with `needs`, is in `promises.rs`.

use crate::bounds::response::Bound;
use crate::composition::asked::Asked;
use crate::composition::chains;
use crate::composition::deadlines::{self, Found};
use crate::composition::long_run_rates::{Rates, Trust};
use crate::composition::promises::Promises;
use crate::composition::response_times;
use crate::demand::jobs::{asks_whatever_it_gets, densest, requesting, vary};
use crate::demand::overheads::Overheads;
use crate::laws;
use crate::laws::policy::Tested;
use crate::rules::what_helps;
use crate::share::{fraction, ratio};
use crate::verdict::{Admission, EdgeVerdict, Excess, Failure, NodeVerdict, Promise, Proof, TaskVerdict};
use tierce_analysis::chains::Offset;
use tierce_analysis::Task;
use tierce_guarantee::Kind;
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::Shape;
use tierce_plan::{Edge, Load, Need, Plan};
use tierce_plan::{Fault, Faults};

impl Admission {
    /// Test every node's law, and what the tasks of chains make of each other.
    pub fn of(plan: &Plan) -> Admission {
        if plan.chains.is_empty() {
            return Self::of_tasks(plan, &[]);
        }
        chains::admit(plan, Self::of_tasks)
    }

    /// The same without what nobody asks, if that is possible: parts on which it does not depend whether the plan holds may have no
    /// promises, and tasks that ask for nothing have no rates.
    pub(super) fn brief(plan: &Plan) -> Admission {
        if !plan.chains.is_empty() {
            return Self::of(plan);
        }
        let shape = Shape::new(plan);
        Self::of_asked(plan, &shape, &Asked::what_can_fail(plan, &shape), &[])
    }

    /// Each task by itself; of a triggered one the jitter is given, and of all the offsets.
    fn of_tasks(plan: &Plan, offsets: &[Offset]) -> Admission {
        Self::of_asked(plan, &Shape::new(plan), &Asked::everything(plan), offsets)
    }

    fn of_asked(plan: &Plan, shape: &Shape, asked: &Asked, offsets: &[Offset]) -> Admission {
        let rates = Rates::new(plan, shape, Trust::Loads);
        let overheads = Overheads::new(plan, shape);
        let mut nodes: Vec<_> =
            (0..plan.nodes.len()).map(|node| NodeVerdict::new(rates.of_node(plan, shape, node))).collect();
        for (index, verdict) in nodes.iter_mut().enumerate() {
            let Some(policy) = policies::by_number(plan.nodes[index].policy) else { continue };
            let children: Vec<_> =
                shape.children[index].iter().map(|edge| (*edge, &plan.edges[*edge])).collect();
            if children.is_empty() {
                continue;
            }
            law(plan, policy, &children, (index, shape, &overheads), verdict);
        }
        let promises = Promises::new(plan, shape, &nodes, &overheads, asked);
        for (index, (node, verdict)) in plan.nodes.iter().zip(&mut nodes).enumerate() {
            let (found, above) = (&promises.nodes[index], &shape.parents[index]);
            verdict.needs = node.needs.iter().map(|need| promises.prove(found, above, &need.text)).collect();
            verdict.promises = found.clone();
        }
        for (index, why) in &promises.unfit {
            unfit(plan, *index, why, shape, &mut nodes[*index]);
        }
        let (bounds, refused) =
            response_times::test(plan, shape, &promises, &mut nodes, (&overheads, offsets));
        let found = Found {
            plan,
            shape,
            promises: &promises,
            overheads: &overheads,
            nodes: &nodes,
            refused: &refused,
        };
        let tasks = task_verdicts(plan, &found, (&rates, asked), bounds);
        let edges = rates.edge.into_iter().zip(promises.edges);
        let edges = edges.map(|(available, promises)| EdgeVerdict { available, promises }).collect();
        let proved =
            |failures: &[Failure], needs: &[Proof]| failures.is_empty() && needs.iter().all(Result::is_ok);
        let holds = nodes.iter().all(|node| proved(&node.failures, &node.needs))
            && tasks.iter().all(|task| proved(&task.failures, &task.needs));
        Admission { holds, nodes, edges, tasks, chains: Vec::new() }
    }
}

/// Test the law of a node if these edges are below it.
pub fn law(
    plan: &Plan,
    policy: &'static PolicyRecord,
    children: &[(usize, &Edge)],
    (node, shape, overheads): (usize, &Shape, &Overheads),
    verdict: &mut NodeVerdict,
) {
    laws::of(policy).test(&Tested { plan, shape, overheads, policy, node }, children, verdict);
}

/// Budgets that fit in the long run, but are not shown to arrive in what the node is promised, or in what this machine
/// leaves of its CPU.
fn unfit(plan: &Plan, index: usize, why: &str, shape: &Shape, verdict: &mut NodeVerdict) {
    let left = plan.nodes[index].roots.first().and_then(|cpu| plan.machine.left.get(*cpu as usize));
    let guaranteed = verdict.promises.first().is_some_and(|promise| promise.guarantee.kind() != Kind::Null);
    // What is missing comes from above, where it has no guarantee itself.
    let edges = if guaranteed { &shape.children[index] } else { &shape.parents[index] };
    let edge = edges.first().copied();
    let (rule, message, bound, test) = match left {
        Some(left) => (
            "budgets_must_fit_what_is_left",
            format!("What stands above sched_ext leaves too little: {why}."),
            left.guarantee.to_string(),
            left.because.clone(),
        ),
        None => (
            "budgets_are_not_proved",
            format!("Its budgets are not proved to arrive in each period: {why}."),
            received(&verdict.promises),
            match guaranteed {
                true => "the demand of its budgets in every window, against the least supply of its guarantee (Shin & Lee 2003)",
                false => "it has no guarantee",
            }
            .into(),
        ),
    };
    let value = verdict.asked.as_ref().map_or_else(|| "?".into(), fraction);
    let excess = Excess { edge, test, ns: None, share: None };
    verdict.failures.push(Failure { rule, message, value, bound, mend: None, excess });
}

/// The strongest guarantee of a part, in words.
fn received(promises: &[Promise]) -> String {
    let guarantee = promises.first().map(|promise| &promise.guarantee);
    let some = guarantee.filter(|guarantee| guarantee.kind() != Kind::Null);
    some.map_or_else(|| "no guarantee".into(), ToString::to_string)
}

fn task_verdicts(
    plan: &Plan,
    found: &Found,
    (rates, asked): (&Rates, &Asked),
    bounds: Vec<Option<Bound>>,
) -> Vec<TaskVerdict> {
    let Found { shape, promises, overheads, .. } = *found;
    let mut verdicts: Vec<_> = bounds
        .into_iter()
        .zip(&plan.tasks)
        .enumerate()
        .map(|(index, (bound, task))| {
            if !asked.task(index) {
                return TaskVerdict::of_no_load(promises.tasks[index].clone());
            }
            let above = &shape.task_parents[index];
            let supply = rates.total(plan, shape, above, 1);
            let above_it = above.first().map_or(0, |edge| plan.edges[*edge].parent);
            let load = task.load.as_ref();
            let job = load.and_then(|load| densest(load, 0));
            let job = job.filter(|(_, suspension_ns)| *suspension_ns == 0).map(|(job, _)| job);
            let rate = |job: Option<Task>| {
                let varied = load.filter(|load| vary(load)).and_then(|load| requesting(Some(load), job?));
                let alike = || job.map(|job| ratio(job.work_ns, job.period_ns));
                varied.map(|task| task.requests.rate()).or_else(alike)
            };
            let asked = rate(job.map(|job| overheads.job(above_it, job)));
            let bound = found.bound(index, bound);
            let lacking = found.lacking(asked.as_ref(), supply.as_ref());
            // What scheduling costs is a bound: it may be less.
            let overload = found.lacking(rate(job).as_ref(), supply.as_ref()).is_some()
                && load.is_some_and(asks_whatever_it_gets)
                && rates.are_limits(plan, shape, above);
            let deadlines = found.judge(index, bound, overload);
            let failures = found.failure(index, deadlines, bound, lacking).into_iter().collect();
            let promised = &promises.tasks[index];
            let needs = task.needs.iter().map(|need| promises.prove(promised, above, &need.text)).collect();
            let response = bound.map(|bound| bound.response);
            let soft = task.load.as_ref().is_some_and(Load::is_soft);
            TaskVerdict {
                asked,
                available: supply,
                deadlines,
                soft,
                response,
                test: bound.map(|bound| bound.test),
                blocking: overheads.locks.of_task(index),
                spinning: overheads.locks.spinning(index),
                suspended: overheads.locks.suspended(index).cloned(),
                kept: overheads.locks.kept(index),
                failures,
                promises: promised.clone(),
                needs,
            }
        })
        .collect();
    deadlines::once_for_each_set(plan, &mut verdicts);
    verdicts
}

// ---- faults ---------------------------------------------------------------------------------------------------------

impl Admission {
    /// What does not hold, with its place in the text: the node, or the guarantee asked for.
    pub fn faults(&self, plan: &Plan) -> Faults {
        let mut faults = Vec::new();
        let mut unshown = |needs: &[Need], proofs: &[Proof], promises: &[Promise]| {
            for (need, reason) in
                needs.iter().zip(proofs).filter_map(|(need, proof)| Some((need, proof.as_ref().err()?)))
            {
                let fault = Fault::new("needs_must_follow", need.spot, format!("not proved: {reason}"));
                let helps = what_helps(fault.rule).unwrap_or_default();
                faults.push(fault.value(&need.text).bound(received(promises)).hint(helps));
            }
        };
        let nodes = plan.nodes.iter().zip(&self.nodes);
        nodes.for_each(|(node, verdict)| unshown(&node.needs, &verdict.needs, &verdict.promises));
        let tasks = plan.tasks.iter().zip(&self.tasks);
        tasks.for_each(|(task, verdict)| unshown(&task.needs, &verdict.needs, &verdict.promises));
        let nodes = plan.nodes.iter().zip(&self.nodes);
        let nodes = nodes.map(|(node, verdict)| (&node.name, node.spot, &verdict.failures));
        let tasks = plan.tasks.iter().zip(&self.tasks);
        let tasks = tasks.map(|(task, verdict)| (&task.name, task.spot, &verdict.failures));
        let chains = plan.chains.iter().zip(&self.chains);
        let chains = chains.flat_map(|(chain, verdict)| {
            chain.needs.iter().zip(&verdict.failures).map(|(need, failure)| (&chain.name, need.spot, failure))
        });
        let nodes = nodes.chain(tasks).map(|(name, spot, failures)| (name, spot, failures.as_slice()));
        for (name, spot, failures) in
            nodes.chain(chains.map(|(name, spot, failure)| (name, spot, failure.as_slice())))
        {
            for failure in failures {
                let message = format!("`{name}`: {}", failure.message.trim_end_matches('.'));
                let fault = Fault::new(failure.rule, spot, message);
                let fault = fault.value(&failure.value).bound(&failure.bound);
                faults.push(match &failure.mend {
                    Some(mend) => {
                        fault.hint(mend.words(plan)).other(plan.edges[mend.edge].spot, "the edge to change")
                    }
                    None => match what_helps(failure.rule) {
                        Some(helps) => fault.hint(helps),
                        None => fault,
                    },
                });
            }
        }
        Faults::new(faults, plan.sources.clone())
    }
}
