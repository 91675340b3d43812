//! `mixed-criticality` bounds the responses of jobs whose tasks keep to their periods: those of critical children at the worst, those of
//! others as long as no critical job works longer than it usually does. All that it counts with are the parameters of its edges, which it
//! enforces: what a child does with its budget is its own affair. It promises no supply.

use crate::bounds::leftover_supply::Taken;
use crate::bounds::response::Bound;
use crate::demand::jobs::{has_other_parents, job_and_suspension};
use crate::demand::uncounted_threads::{crowd as crowd_of, of_crowd};
use crate::laws::node::{supplies, Node};
use crate::laws::policy::{Laws, Takes};
use crate::verdict::{Given, NodeVerdict, Promise};
use std::cmp::Reverse;
use tierce_analysis::criticality::{in_budgets, Budget};
use tierce_analysis::{Response, Task};
use tierce_plan::policies::criticality::Criticality;
use tierce_plan::{show_time, Child, Plan, Shape};

/// A test.
const AMC: &str = "response times under adaptive mixed criticality (AMC-rtb: Baruah, Burns & Davis 2011)";

/// Nodes with more children are not analysed.
const CHILDREN_MAX: usize = 1024;

/// Critical ones first, once one of them needs more than it usually does.
pub struct MixedCriticality;

impl Laws for MixedCriticality {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        let why = |found: Result<u64, String>| {
            let why = found.err().unwrap_or_else(|| {
                format!("`{}` bounds response times of jobs, and guarantees no CPU time", node.name())
            });
            Promise::nothing(why)
        };
        Ok(bounds(node).into_iter().map(why).collect())
    }

    /// What a child runs behind the others has no bound.
    fn takes(&self, _: &Plan, _: &Shape, _: usize) -> Takes {
        Takes::Limited(None::<Taken>)
    }

    fn responses(
        &self,
        node: &Node,
        _: &dyn Fn(usize) -> Option<u64>,
        _: &mut NodeVerdict,
    ) -> Vec<(usize, Bound)> {
        let task = |edge: &usize| match node.plan.edges[*edge].child {
            Child::Task(task) if node.plan.tasks[task].load.is_some() => Some(task),
            _ => None,
        };
        let found = node.edges.iter().zip(bounds(node)).filter_map(|(edge, found)| {
            let response = Response::Within(found.ok()?);
            Some((task(edge)?, Bound { response, test: AMC, exact: false }))
        });
        found.collect()
    }
}

/// Of a job of the task below each edge, those of larger priority first; or why there is none.
fn bounds(node: &Node) -> Vec<Result<u64, String>> {
    let priority = |place: &usize| Criticality::of(node.plan, node.edges[*place]).map(|own| own.priority);
    let mut order: Vec<_> = (0..node.edges.len()).collect();
    order.sort_by_key(|place| Reverse(priority(place)));
    let critical = may_be_critical(node.plan, node.shape, node.index);
    let mut found = vec![Err(String::new()); node.edges.len()];
    for equals in order.chunk_by(|a, b| priority(a) == priority(b)) {
        let of_equals: Vec<_> =
            equals.iter().map(|place| bound(node, node.edges[*place], critical, &found)).collect();
        for (place, bound) in equals.iter().zip(of_equals) {
            found[*place] = bound;
        }
    }
    found
}

/// The same of one; `critical`: critical mode may begin; `found`: of those of larger priority.
fn bound(node: &Node, edge: usize, critical: bool, found: &[Result<u64, String>]) -> Result<u64, String> {
    let Node { plan, index, edges, received, overheads, .. } = *node;
    let (name, child) = (node.name(), plan.item_name(plan.edges[edge].child));
    if !overheads.is_none() {
        return Err(format!("with `[machine] costs` `{name}` bounds no response times"));
    }
    if edges.len() > CHILDREN_MAX {
        return Err(format!("`{name}` has more than {CHILDREN_MAX} children"));
    }
    let own = Criticality::of(plan, edge).ok_or_else(String::new)?;
    let job = job_in_own_period(node, edge, &own)?;
    let crowd = node.edge_param("priority").and_then(|at| of_crowd(plan, index, edges, at));
    if let Some(who) = crowd.filter(|theirs| *theirs >= own.priority).and_then(|_| crowd_of(plan, index)) {
        return Err(format!("{who}, and come before it"));
    }
    let mut above = Vec::new();
    for (other, found) in edges.iter().zip(found).filter(|(other, _)| **other != edge) {
        let Some(theirs) = Criticality::of(plan, *other).filter(|theirs| theirs.priority >= own.priority)
        else {
            continue;
        };
        // Whose jobs are all done when their periods end begins each period with a job. After critical mode others may not.
        let carries = found.is_err() || (critical && theirs.work_hi_ns.is_none());
        above.push(Budget {
            work_ns: theirs.work_ns,
            work_hi_ns: theirs.work_hi_ns,
            period_ns: theirs.period_ns,
            carries,
        });
    }
    let work_hi_ns = own.work_hi_ns.filter(|_| critical).map(|_| job.work_ns);
    let usual_ns = job.work_ns.min(own.work_ns + 1); // with 1 ns more than its work it begins critical mode itself
    let found = supplies(received).filter_map(|(_, supply)| {
        let found = in_budgets(usual_ns, work_hi_ns, own.period_ns, &above, &supply);
        if work_hi_ns.is_some() {
            found.worst_ns
        } else {
            found.usual_ns
        }
    });
    let response = found.min().map(|ns| ns + job.jitter_ns);
    response.ok_or_else(|| {
        format!("a job of `{child}` may not be done in `{name}` when the period of its budget ends")
    })
}

/// The jobs of the task below an edge, if each begins a period of its own and is done within its budget.
fn job_in_own_period(node: &Node, edge: usize, own: &Criticality) -> Result<Task, String> {
    let Node { plan, shape, .. } = *node;
    let Child::Task(task) = plan.edges[edge].child else { return Err("it is no task".into()) };
    let name = &plan.tasks[task].name;
    let load = plan.tasks[task].load.as_ref().ok_or_else(|| format!("`{name}` has no load"))?;
    if load.is_bursty() {
        return Err("its jobs come in bursts, for which this policy has no bound".into());
    }
    let (job, suspension_ns) =
        job_and_suspension(load, 0).ok_or("how often its jobs come is not bounded by its load")?;
    if suspension_ns > 0 || node.overheads.locks.most_ns(task) != Some(0) {
        return Err("its jobs wait within their work".into());
    }
    if plan.edges[edge].when_spent || has_other_parents(plan, shape, edge) {
        return Err(format!("`{name}` has other parents, too"));
    }
    if job.period_ns.saturating_sub(job.jitter_ns) < own.period_ns {
        let (jobs, period) =
            (show_time(job.period_ns - job.jitter_ns.min(job.period_ns)), show_time(own.period_ns));
        return Err(format!("its jobs come up to every {jobs}, and a period of its budget is {period}"));
    }
    let most_ns = own.work_hi_ns.unwrap_or(own.work_ns);
    if job.work_ns > most_ns {
        let (work, most) = (show_time(job.work_ns), show_time(most_ns));
        return Err(format!(
            "a job works for up to {work}, of which only {most} come before the work of others"
        ));
    }
    Ok(job)
}

/// May one of the node's critical children need more than it usually does?
pub fn may_be_critical(plan: &Plan, shape: &Shape, node: usize) -> bool {
    beyond_usual(plan, shape, node).is_some()
}

/// The critical child of largest priority that may do so, and how much it may need then.
pub fn beyond_usual(plan: &Plan, shape: &Shape, node: usize) -> Option<(usize, u64)> {
    let mut edges = shape.children[node].clone();
    edges.sort_by_key(|edge| Reverse(Criticality::of(plan, *edge).map(|own| own.priority)));
    edges.into_iter().find_map(|edge| {
        let own = Criticality::of(plan, edge)?;
        let work_hi_ns = own.work_hi_ns.filter(|work_hi_ns| *work_hi_ns > own.work_ns)?;
        let jobs = match plan.edges[edge].child {
            Child::Task(task) => plan.tasks[task].load.as_ref().and_then(|load| job_and_suspension(load, 0)),
            _ => None,
        };
        // Several jobs in a period may need all of it.
        let alone = jobs.filter(|(job, _)| job.period_ns.saturating_sub(job.jitter_ns) >= own.period_ns);
        let most_ns = alone.map_or(work_hi_ns, |(job, _)| job.work_ns.min(work_hi_ns));
        (most_ns > own.work_ns).then_some((edge, most_ns))
    })
}
