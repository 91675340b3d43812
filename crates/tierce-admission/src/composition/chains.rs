//! Chains: when triggered tasks are released, and how long a chain takes (`tierce_analysis::chains`).
//!
//! The plan is admitted again and again: each time the jitter of a triggered task is what the bounds on the tasks before it make it,
//! until these bounds do not change. So everything that bounds responses does so for chains, too.

use crate::verdict::{Admission, ChainVerdict, Excess, Failure, LinkVerdict, TaskVerdict};
use tierce_analysis::chains::{bounds, is_beyond, propagate, Offset, Release, Segment, Span, Times};
use tierce_analysis::Response;
use tierce_guarantee::TIME_MAX_NS;
use tierce_plan::{policies, show_time, Chain, Latency, Load, Plan, Shape, Within};

/// A rule.
const NOT_PROVED: &str = "latency_is_not_proved";

/// The test.
const BOUNDS: &str = "response intervals passed on as jitter (Tindell & Clark 1994), and what is read (Davare et al. 2007; Dürr et al. 2019)";

/// The verdict on a plan with chains; `admit`: on one in which the jitter of triggered tasks is known, with the offsets of all tasks.
pub fn admit(plan: &Plan, admit: impl Fn(&Plan, &[Offset]) -> Admission) -> Admission {
    let releases: Vec<_> = (0..plan.tasks.len()).map(|task| release(plan, task)).collect();
    let heads: Vec<_> = (0..plan.tasks.len()).map(|task| transaction(&releases, task)).collect();
    let least = |load: &Option<Load>| load.as_ref().map_or(0, least_work_ns);
    let least_work_ns: Vec<_> = plan.tasks.iter().map(|task| least(&task.load)).collect();
    let (mut jittered, mut found) = (plan.clone(), None);
    let times = propagate(&releases, &least_work_ns, |ready| {
        for (task, ready) in jittered.tasks.iter_mut().zip(ready) {
            if let Some(Load::Triggered(load)) = &mut task.load {
                let known = |ns: &u64| *ns <= TIME_MAX_NS && !is_beyond(*ns, load.period_ns);
                load.jitter_ns = Some(ready.jitter_ns()).filter(known);
            }
        }
        let offset = |(transaction, ready): (&usize, &Span)| Offset {
            transaction: *transaction,
            earliest_ns: ready.least_ns,
        };
        let offsets: Vec<_> = heads.iter().zip(ready).map(offset).collect();
        let admission = admit(&jittered, &offsets);
        let response = |response: Option<Response>| response.and_then(Response::ns).unwrap_or(u64::MAX);
        let responses = admission.tasks.iter().map(|task| response(task.response)).collect();
        found = Some(admission);
        responses
    });
    let mut admission = found.unwrap_or_else(|| admit(plan, &[]));
    let shape = Shape::new(plan);
    let found = (&times[..], &admission.tasks[..]);
    admission.chains = plan.chains.iter().map(|chain| judge(plan, &shape, chain, found)).collect();
    admission.holds &= admission.chains.iter().all(|chain| chain.failures.iter().all(Option::is_none));
    admission
}

/// The task whose periodic jobs release those of this one in the end; itself where these may come later than after a period.
fn transaction(releases: &[Release], task: usize) -> usize {
    let mut head = task;
    // All that a join waits for have one head, and nothing waits for itself.
    while let Release::After(before) = &releases[head] {
        let Some((before, _)) = before.first() else { return task };
        head = *before;
    }
    match releases[head] {
        Release::Own { sporadic: true, .. } => task,
        _ => head,
    }
}

fn release(plan: &Plan, task: usize) -> Release {
    match &plan.tasks[task].load {
        Some(Load::Triggered(_)) => Release::After(plan.triggers(task)),
        Some(Load::Periodic(load)) => Release::Own { jitter_ns: load.jitter_ns, sporadic: false },
        _ => Release::Own { jitter_ns: 0, sporadic: true },
    }
}

fn least_work_ns(load: &Load) -> u64 {
    match load {
        Load::Periodic(load) => load.work.min_ns(),
        Load::Sporadic(load) => load.work.min_ns(),
        Load::Triggered(load) => load.work.min_ns(),
        Load::Busy | Load::Phases(_) | Load::Stages(_) => 0,
    }
}

/// The longest distance of two releases of a task that has a period.
fn longest_period_ns(load: Option<&Load>) -> Option<u64> {
    match load? {
        Load::Periodic(load) => Some(load.period_ns),
        Load::Sporadic(load) => Some(load.separation_ns.saturating_add(load.extra_ns)),
        _ => None,
    }
}

fn judge(
    plan: &Plan,
    shape: &Shape,
    chain: &Chain,
    (times, tasks): (&[Times], &[TaskVerdict]),
) -> ChainVerdict {
    let mut segments: Vec<Segment> = Vec::new();
    let mut links: Vec<LinkVerdict> = Vec::new();
    let known = |ns: u64| Some(ns).filter(|ns| *ns < u64::MAX);
    for (at, link) in chain.links.iter().enumerate() {
        let (task, done) = (link.task, times[link.task].done);
        let (delay_ns, test) = (link.delay_ns, tasks[task].test);
        let before = at.checked_sub(1).map(|at| chain.links[at].task);
        let Some(period_ns) = longest_period_ns(plan.tasks[task].load.as_ref()) else {
            let earlier = before.map_or(0, |before| times[before].done.most_ns);
            let takes_ns = known(done.most_ns)
                .zip(known(earlier))
                .map(|(done, earlier)| done.saturating_sub(earlier).saturating_sub(link.delay_ns));
            segments.last_mut().into_iter().for_each(|segment| segment.done = done);
            let wait_ns = Some(0);
            links.push(LinkVerdict { task, triggered: true, delay_ns, wait_ns, takes_ns, test });
            continue;
        };
        let mut wait_ns = Some(0);
        if let (Some(segment), Some(before)) = (segments.last_mut(), before) {
            segment.delay_ns = link.delay_ns;
            segment.goes_before_next = !links[at - 1].triggered && goes_before(plan, shape, before, task);
            // What it writes is read together with the release of the next, or until its next one.
            let together = segment.goes_before_next && link.delay_ns == 0;
            wait_ns = match (together, known(segment.done.most_ns)) {
                (true, Some(done_ns)) => Some(period_ns.saturating_sub(done_ns)),
                (true, None) => None,
                (false, _) => Some(period_ns),
            };
        }
        segments.push(Segment { period_ns, done, delay_ns: 0, goes_before_next: false });
        let takes_ns = known(done.most_ns);
        links.push(LinkVerdict { task, triggered: false, delay_ns, wait_ns, takes_ns, test });
    }
    let bounds = bounds(&segments);
    let mut verdict = ChainVerdict { bounds, links, failures: Vec::new() };
    verdict.failures = chain.needs.iter().map(|need| failure(plan, shape, chain, &verdict, need)).collect();
    verdict
}

/// Whether the second task never begins while a job of the first is ready: below one `fixed-priority` on one whole CPU, punctual,
/// and without costs.
fn goes_before(plan: &Plan, shape: &Shape, first: usize, second: usize) -> bool {
    let ([one], [other]) = (&shape.task_parents[first][..], &shape.task_parents[second][..]) else {
        return false;
    };
    let (one, other) = (&plan.edges[*one], &plan.edges[*other]);
    let node = &plan.nodes[one.parent];
    let punctual = matches!(&plan.tasks[first].load, Some(Load::Periodic(load)) if load.jitter_ns == 0)
        || matches!(&plan.tasks[first].load, Some(Load::Sporadic(_)));
    let priority = policies::by_number(node.policy)
        .filter(|policy| policy.name == "fixed-priority")
        .and_then(policies::priority);
    let free = plan.machine.costs == tierce_plan::Costs::default() && plan.machine.interrupts.is_empty();
    let alone = one.parent == other.parent && node.roots.len() == 1 && !one.spread && !other.spread;
    // Who waits for a lock, or for a region to end, may be overtaken.
    punctual
        && free
        && alone
        && plan.locks.is_empty()
        && !plan.tasks.iter().any(|task| task.has_regions())
        && priority.is_some_and(|at| one.params[at] > other.params[at])
}

/// Why a chain is not shown to be as fast as it has to be.
fn failure(
    plan: &Plan,
    shape: &Shape,
    chain: &Chain,
    verdict: &ChainVerdict,
    need: &Within,
) -> Option<Failure> {
    let (bound, most) = (verdict.bound_ns(need.latency), show_time(need.most_ns));
    if bound.is_some_and(|bound| bound <= need.most_ns) {
        return None;
    }
    let name = &chain.name;
    let longest = verdict.longest();
    let link = &plan.tasks[verdict.links[longest].task].name;
    let (message, value) = match bound {
        Some(ns) => {
            let message = format!(
                "The bound on the {} of `{name}` is {}, longer than {most}; most of it is for `{link}`.",
                need.latency,
                show_time(ns)
            );
            (message, show_time(ns))
        }
        None => (
            format!("Nothing bounds the {} of `{name}`: there is no bound on `{link}`.", need.latency),
            "no bound".into(),
        ),
    };
    let excess = Excess {
        edge: shape.task_parents[verdict.links[longest].task].first().copied(),
        test: BOUNDS.into(),
        ns: bound.map(|bound| bound - need.most_ns),
        share: None,
    };
    Some(Failure { rule: NOT_PROVED, message, value, bound: most, mend: None, excess })
}

impl ChainVerdict {
    /// The bound on one of its times; `None`: there is none.
    pub fn bound_ns(&self, latency: Latency) -> Option<u64> {
        match latency {
            Latency::Response => self.bounds.response_ns,
            Latency::Reaction => self.bounds.reaction_ns,
            Latency::Age => self.bounds.age_ns,
        }
    }

    /// The link that takes longest, or the first without a bound.
    pub fn longest(&self) -> usize {
        let unbounded = self.links.iter().position(|link| link.takes_ns.is_none() || link.wait_ns.is_none());
        let takes = |link: &LinkVerdict| {
            link.delay_ns.saturating_add(link.wait_ns.unwrap_or(0)).saturating_add(link.takes_ns.unwrap_or(0))
        };
        let longest = (0..self.links.len()).rev().max_by_key(|at| takes(&self.links[*at]));
        unbounded.or(longest).unwrap_or(0)
    }
}
