//! `edf` knows only what its children say they want, and promises them nothing. Its law: the sum of work/period of its tasks is at
//! most what the node is supplied with; on a whole CPU with deadlines below periods, the demand test as well. Jobs directly
//! below it meet their deadlines when the demand of all in every window is at most what is sure to be supplied; response times
//! after Spuri.
//!
//! Tasks with other parents count here with all their work; they may be done sooner. One that comes only while others are spent may
//! come at any time, with work of many jobs: it is not bounded.

use crate::bounds::response::Bound;
use crate::bounds::smallest_reduction::mend_by_bisection;
use crate::demand::jobs::{comes_last, has_other_parents, parts, requesting, vary};
use crate::demand::overheads::Overheads;
use crate::laws::known_phases;
use crate::laws::node::{less_timers, supplies, until_deadlines, Node};
use crate::laws::policy::{Laws, Rated, Tested};
use crate::laws::utilisation_and_demand::{Terms, ONLY_UTILISATION};
use crate::share::{self, fraction, percent, Share};
use crate::verdict::{Excess, Failure, Given, Law, NodeVerdict, Promise};
use tierce_analysis::offsets::Order;
use tierce_analysis::requests::{self, Requesting};
use tierce_analysis::{sections, suspension, Demand, Response, Sections, Supply, Task};
use tierce_guarantee::{whole, TIME_MAX_NS};
use tierce_plan::policies::{self};
use tierce_plan::{show_time, Child, Edge, Load, Plan};

/// Sets that are larger are tested, but responses are not computed one by one.
const RESPONSES_MAX: usize = 64;

/// A test.
const BY_DEADLINE: &str =
    "the demand of every window, and response times of earliest deadline first (Spuri 1996)";

/// The same where some do not always give way.
const WITH_REGIONS: &str = "the demand of every window, and response times of earliest deadline first with regions without preemption \
                            (George, Rivierre & Spuri 1996; Baruah 2005)";

/// The same where works are taken in turn, or jobs come in bursts.
const WITH_REQUESTS: &str =
    "the demand of every window, by what so many jobs request (Baruah, Chen, Gorinsky & Mok 1999)";

/// The same where some suspend themselves.
const WITH_SUSPENSION: &str =
    "response times of earliest deadline first with self-suspension, as work or by what is due \
                               (Bertogna, Cirinei & Lipari 2005)";

/// The same where phases are known.
const WITH_PHASES: &str = "the schedule of the longest works at the known phases (Leung & Merrill 1980)";

/// The earliest deadline first.
pub struct Edf;

impl Laws for Edf {
    fn test(&self, node: &Tested, children: &[(usize, &Edge)], verdict: &mut NodeVerdict) {
        deadlines(node, children, verdict);
    }

    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        let name = node.name();
        Ok(node.gives_nothing(format!(
            "`{name}` orders by deadlines: each child may have to wait for the others"
        )))
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        let sum = |sum, edge: &usize| share::add(&sum, &(node.ask)(*edge));
        let all = node.edges.iter().fold(share::zero(), sum);
        let first = node.edges.iter().filter(|edge| !comes_after_deadlines(node, **edge));
        let first = first.fold(share::zero(), sum);
        for edge in node.edges {
            // A node has deadlines at some times, and at others perhaps none.
            let is_task = matches!(node.plan.edges[*edge].child, Child::Task(_));
            let before = if is_task && !comes_after_deadlines(node, *edge) { &first } else { &all };
            let left = node.supply - before + (node.ask)(*edge);
            rates[*edge] = Some(left.clamp(share::zero(), node.supply.clone()));
        }
    }

    /// Tasks that announce deadlines are all late if together they ask for too much.
    fn is_limited_to_its_rate(&self, node: &Rated, edge: usize) -> bool {
        let plan = node.plan;
        let announces = |edge: usize| match plan.edges[edge].child {
            Child::Task(task) => announced_ns(plan, task) != u64::MAX,
            Child::Node(_) | Child::Set(_) => false,
        };
        let comes_after =
            |other: usize| comes_after_deadlines(node, other) || (node.ask)(other) == share::zero();
        let mut others = node.edges.iter().filter(|other| **other != edge);
        announces(edge) && others.all(|other| comes_after(*other) || announces(*other) && (node.asks)(*other))
    }

    fn conserves_work(&self) -> bool {
        true
    }

    fn responses(
        &self,
        node: &Node,
        crowd: &dyn Fn(usize) -> Option<u64>,
        verdict: &mut NodeVerdict,
    ) -> Vec<(usize, Bound)> {
        let at = node.edge_param("deadline");
        if at.and_then(crowd).is_some_and(|deadline| deadline > 0) {
            return Vec::new(); // any number of threads with deadlines
        }
        responses(node, at, verdict)
    }
}

/// It has no deadline; nobody knows that of a task without a load.
fn comes_after_deadlines(node: &Rated, edge: usize) -> bool {
    let at = policies::position(&node.policy.edge_params, "deadline");
    let about = &node.plan.edges[edge];
    let known = !matches!(about.child, Child::Task(task) if node.plan.tasks[task].load.is_none());
    known && comes_last(node.plan, about, at.map_or(0, |at| about.params[at]))
}

/// The law of a node that orders by deadlines.
fn deadlines(at: &Tested, children: &[(usize, &Edge)], verdict: &mut NodeVerdict) {
    let Tested { plan, shape, overheads, policy, node } = *at;
    let at = policies::position(&policy.edge_params, "deadline");
    let (mut bounded, mut demands, mut requests) = (Vec::new(), Vec::new(), Vec::new());
    let mut varies = false;
    for (index, edge) in children {
        let name = plan.child_name(edge.child);
        let own_ns = at.map_or(0, |at| edge.params[at]);
        let demand = match edge.child {
            Child::Task(task) => demand(plan, overheads, task, own_ns),
            _ => None,
        };
        match (demand, edge.child) {
            (Some(demand), _) => {
                bounded.push((*index, *edge));
                let (demand, load) = (overheads.job(node, demand), load(plan, edge.child));
                varies |= load.is_some_and(vary);
                requests.extend(requesting(load, demand));
                demands.push(demand);
            }
            (None, _) if comes_last(plan, edge, own_ns) => {}
            (None, _) => verdict.open.push(format!("the demand of `{name}` by its deadlines is not known")),
        }
    }
    if demands.is_empty() {
        return;
    }
    let requests = Some(requests).filter(|requests| varies && requests.len() == demands.len());
    let asked = match &requests {
        Some(requests) => requests::rate(requests),
        None => share::sum(demands.iter().map(|demand| (demand.work_ns, demand.period_ns))),
    };
    let switch_ns = overheads.switch_ns(node);
    let early = |demand: &Task| demand.deadline_ns < demand.period_ns || demand.blocking_ns > 0;
    // Where several CPUs run children, the demand of one CPU's windows says nothing: global tests judge each deadline.
    let early = !shape.shared(node) && (switch_ns > 0 || varies || demands.iter().any(early));
    verdict.law = Some(if early { Law::DeadlinesBelowPeriods } else { Law::Deadlines });
    let extra_ns = switch_ns.saturating_mul(2);
    let terms =
        Terms { children: &bounded, demands, requests, parameter: "work", least_ns: 1, switch_ns, extra_ns };
    let whole = verdict.available.as_ref().is_some_and(|supply| *supply >= share::one());
    match verdict.available.clone() {
        Some(supply) => {
            terms.utilisation("deadlines_must_fit_the_supply", "what the node gets", &asked, &supply, verdict)
        }
        None => verdict.open.push("what the node gets itself is not known".into()),
    }
    if verdict.failures.is_empty() && early {
        if whole {
            terms.demand(EVERY_WINDOW, &asked, verdict);
        } else {
            verdict.open.push(ONLY_UTILISATION.into());
        }
    }
    verdict.asked = Some(asked);
}

/// Of a child that is a task.
fn load(plan: &Plan, child: Child) -> Option<&Load> {
    match child {
        Child::Task(task) => plan.tasks[task].load.as_ref(),
        _ => None,
    }
}

/// What a task with deadlines asks for, if it does not suspend itself, which can only make it later; `deadline_ns`: of the edge, 0 when
/// it gives none.
fn demand(plan: &Plan, overheads: &Overheads, task: usize, deadline_ns: u64) -> Option<Task> {
    let (job, _) = overheads.locks.suspending(plan, task, deadline_ns)?;
    if job.deadline_ns == TIME_MAX_NS {
        return None;
    }
    // A late release leaves less time until the same deadline.
    let deadline_ns = job.deadline_ns.saturating_sub(job.jitter_ns).max(1);
    Some(Task { deadline_ns, jitter_ns: 0, ..job })
}

/// Responses by the task's index; what fails goes to the verdict.
fn responses(node: &Node, at: Option<usize>, verdict: &mut NodeVerdict) -> Vec<(usize, Bound)> {
    let Node { plan, shape, edges, received, overheads, .. } = *node;
    if !overheads.is_none() && edges.iter().any(|edge| has_other_parents(plan, shape, *edge)) {
        verdict.open.push(MOVES.into());
        return Vec::new();
    }
    let Some(jobs) = Jobs::of(node, at).filter(|jobs| !jobs.set.is_empty()) else { return Vec::new() };
    let timers = match overheads.timers(edges) {
        Ok(timers) => timers,
        Err(unknown) => {
            verdict.open.push(unknown);
            return Vec::new();
        }
    };
    let left = less_timers(received, &timers);
    let (node, received) = (&Node { received: &left, ..*node }, &left);
    if let Some(bounds) = jobs.at_known_phases(node) {
        verdict.open.retain(|open| open != ONLY_UTILISATION);
        let early = verdict.failures.iter().position(|failure| failure.rule == EVERY_WINDOW);
        let meets = |(bound, job): (&(usize, Bound), &Task)| bound.1.response.meets(job.deadline_ns);
        if let Some(at) = early.filter(|_| bounds.iter().zip(&jobs.set).all(meets)) {
            verdict.failures.remove(at); // all do not begin at once
        }
        return bounds;
    }
    if jobs.suspend() {
        return jobs.with_suspensions(node);
    }
    let mut first = None;
    let met = supplies(received).find(|(promise, supply)| {
        let found = jobs.demand(supply);
        first.get_or_insert((*promise, *supply, found));
        found == Demand::Met
    });
    if let (None, Some((.., Demand::TooLong))) = (&met, &first) {
        verdict.open.push("too many windows would have to be looked at to test the deadlines".into());
    }
    if let (None, Some((promise, supply, found))) = (&met, &first) {
        if verdict.failures.is_empty() && promise.guarantee.share() < whole(1) {
            let extra_ns = overheads.switch_ns(node.index).saturating_mul(2);
            verdict.failures.extend(jobs.failure(promise, supply, *found, extra_ns));
        }
    }
    let tested = met.or(first.map(|(promise, supply, _)| (promise, supply)));
    let Some((promise, supply)) = tested else { return Vec::new() };
    verdict.open.retain(|open| open != ONLY_UTILISATION);
    let all_met = verdict.failures.is_empty() && jobs.demand(&supply) == Demand::Met;
    let anywhere = Supply::of(&promise.guarantee).is_some();
    jobs.bounds(node, anywhere.then_some(&supply), all_met)
}

/// What the children of a node ask for until their deadlines.
struct Jobs {
    edges: Vec<usize>,
    tasks: Vec<usize>,
    set: Vec<Task>,
    /// For how long each suspends itself.
    suspensions: Vec<u64>,
    /// Where some differ or come in bursts.
    requests: Option<Vec<Requesting>>,
    /// Regions without preemption of those directly below the node: of each of the set, and the longest of any other.
    own: Vec<Sections>,
    others_ns: u64,
}

impl Jobs {
    /// `None`: nobody knows how much some child asks for.
    fn of(node: &Node, at: Option<usize>) -> Option<Self> {
        let Node { plan, index, edges, overheads, .. } = *node;
        let (tasks, set, own) = (Vec::new(), Vec::new(), Vec::new());
        let (requests, suspensions) = (None, Vec::new());
        let mut jobs = Self { edges: Vec::new(), tasks, set, suspensions, requests, own, others_ns: 0 };
        let mut varies = false;
        for edge in edges {
            let about = &plan.edges[*edge];
            let own_ns = at.map_or(0, |at| about.params[at]);
            if comes_last(plan, about, own_ns) {
                if let Child::Task(task) = about.child {
                    jobs.others_ns = jobs.others_ns.max(overheads.locks.own_regions(task).longest_ns);
                }
                continue;
            }
            let Child::Task(task) = about.child else { return None };
            if about.when_spent {
                return None;
            }
            let (found, suspension_ns) = overheads.locks.suspending(plan, task, own_ns)?;
            varies |= load(plan, about.child).is_some_and(vary);
            jobs.edges.push(*edge);
            jobs.tasks.push(task);
            let parts = plan.tasks[task].load.as_ref().map_or(1, parts);
            jobs.set.push(overheads.job_in_parts(index, found, parts));
            jobs.suspensions.push(suspension_ns);
            jobs.own.push(overheads.locks.own_regions(task));
        }
        if varies && !jobs.has_regions() && !jobs.suspend() {
            let each = jobs.tasks.iter().zip(&jobs.set);
            let each = each.map(|(task, job)| requesting(plan.tasks[*task].load.as_ref(), *job));
            jobs.requests = each.collect();
        }
        Some(jobs)
    }

    /// All deadlines are met, or why not.
    fn demand(&self, supply: &Supply) -> Demand {
        match &self.requests {
            Some(requests) => requests::earliest_deadline(requests, supply),
            None => tierce_analysis::Edf::new().demand(&self.set, supply),
        }
    }

    /// Responses where phases are known, and no deadlines but those that are announced count.
    fn at_known_phases(&self, node: &Node) -> Option<Vec<(usize, Bound)>> {
        if self.has_regions() || self.suspend() || !self.as_announced(node) {
            return None;
        }
        let found = known_phases::responses(node, &self.tasks, &self.set, Order::EarliestDeadline)?;
        let bound = |(response, exact)| Bound { response, test: WITH_PHASES, exact };
        Some(self.tasks.iter().copied().zip(found.into_iter().map(bound)).collect())
    }

    fn suspend(&self) -> bool {
        self.suspensions.iter().any(|suspension_ns| *suspension_ns > 0)
    }

    /// Responses where some suspend themselves: a supply is sure only while it is asked for, so on a whole CPU.
    fn with_suspensions(&self, node: &Node) -> Vec<(usize, Bound)> {
        let Node { plan, edges, received, .. } = *node;
        let whole = supplies(received).any(|(_, supply)| supply == Supply::WHOLE);
        let alone = edges.iter().all(|edge| !has_other_parents(plan, node.shape, *edge));
        if !whole || !alone || self.has_regions() || !self.as_announced(node) {
            return Vec::new();
        }
        let (_, found) = suspension::earliest_deadline(&self.set, &self.suspensions);
        let late = found.iter().zip(&self.set).any(|(response, job)| !response.meets(job.deadline_ns));
        if late && self.counts_from_wake_ups(node) {
            return Vec::new();
        }
        let bound = |response| Bound { response, test: WITH_SUSPENSION, exact: false };
        self.tasks.iter().copied().zip(found.into_iter().map(bound)).collect()
    }

    /// Some task announces no deadlines: that of its edge counts from when it wakes up, which after a late job it does not.
    fn counts_from_wake_ups(&self, node: &Node) -> bool {
        self.tasks.iter().any(|task| announced_ns(node.plan, *task) == u64::MAX)
    }

    /// Tasks announce the deadlines of their loads: these are the ones that were tested.
    fn as_announced(&self, node: &Node) -> bool {
        let announced = |task: usize| announced_ns(node.plan, task);
        let mut jobs = self.tasks.iter().zip(&self.set);
        jobs.all(|(task, job)| [u64::MAX, job.deadline_ns].contains(&announced(*task)))
    }

    /// Some jobs do not always give way.
    fn has_regions(&self) -> bool {
        self.others_ns > 0 || self.own.iter().any(|own| *own != Sections::default())
    }

    /// With regions the analysis itself finds who blocks whom, and until when; others may come at any time.
    fn responses(&self, supply: &Supply) -> Vec<Response> {
        if let Some(requests) = &self.requests {
            return requests::earliest_deadline_responses(requests, supply);
        }
        if !self.has_regions() {
            return tierce_analysis::Edf::new().responses(&self.set, supply).to_vec();
        }
        let blocking_ns = self.others_ns.saturating_sub(1);
        let set: Vec<_> = self.set.iter().map(|job| Task { blocking_ns, ..*job }).collect();
        sections::earliest_deadline(&set, &self.own, supply).1
    }

    /// `supply`: where it is sure in any window, not only in those until announced deadlines.
    fn bounds(&self, node: &Node, supply: Option<&Supply>, all_met: bool) -> Vec<(usize, Bound)> {
        // Tasks announce the deadlines of their loads: then the shorter ones of their edges are of use to nobody.
        let announced = |task: usize| announced_ns(node.plan, task);
        let jobs = || self.tasks.iter().copied().zip(&self.set);
        let as_tested = self.as_announced(node);
        let mut found = vec![Response::TooLong; self.set.len()];
        let alike = self.requests.is_none();
        let known = as_tested && (all_met || !self.counts_from_wake_ups(node));
        if let Some(supply) = supply.filter(|_| self.set.len() <= RESPONSES_MAX && known) {
            found = self.responses(supply);
        }
        let bound = |((task, job), response): ((usize, &Task), Response)| {
            let deadline_ns = if as_tested { job.deadline_ns } else { announced(task).max(job.deadline_ns) };
            let within = |ns: u64| Response::Within(ns.min(deadline_ns));
            let response = if all_met { within(response.ns().unwrap_or(u64::MAX)) } else { response };
            let test = match self.has_regions() {
                true => WITH_REGIONS,
                false if alike => BY_DEADLINE,
                false => WITH_REQUESTS,
            };
            (task, Bound { response, test, exact: false })
        };
        // Deadlines of triggered jobs count from when they come, which is not what the bounds count from.
        let triggered = |task: usize| matches!(node.plan.tasks[task].load, Some(Load::Triggered(_)));
        jobs().zip(found).map(bound).filter(|(task, _)| !triggered(*task)).collect()
    }

    /// In the long run.
    fn asked(&self) -> Share {
        match &self.requests {
            Some(requests) => requests::rate(requests),
            None => tierce_analysis::utilisation(&self.set),
        }
    }

    /// Why not all deadlines are met, and the smallest reduction that would help.
    fn failure(&self, promise: &Promise, supply: &Supply, found: Demand, extra_ns: u64) -> Option<Failure> {
        let failure = match found {
            Demand::Exceeds { window_ns, due_ns } => {
                let alike = self.requests.is_none();
                let shortest =
                    || tierce_analysis::Edf::new().shortest_excess(&self.set, supply).filter(|_| alike);
                let (window_ns, due_ns) = shortest().unwrap_or((window_ns, due_ns));
                too_much_due(promise, window_ns, due_ns)
            }
            Demand::Overload => overload(promise, self.asked()),
            Demand::Met | Demand::TooLong => return None,
        };
        let mut edf = tierce_analysis::Edf::new();
        let mut fails = |most: usize| match &self.requests {
            Some(requests) => requests::earliest_deadline(&requests[..most], supply) != Demand::Met,
            None => edf.demand(&self.set[..most], supply) != Demand::Met,
        };
        let first = (1..=self.set.len()).find(|most| self.set.len() <= 64 && fails(*most));
        let edge = first.map(|most| self.edges[most - 1]).or(self.edges.last().copied());
        let test = format!(
            "the demand of every window, against the least supply of {} (Shin & Lee 2003)",
            promise.guarantee
        );
        let excess = Excess { edge, test, ..failure.excess };
        let mend = || mend_by_bisection(&self.edges, &self.set, supply, "work", 1, extra_ns);
        let mend = self.requests.is_none().then(mend).flatten();
        Some(Failure { mend, excess, ..failure })
    }
}

/// The deadline of a task's load.
fn announced_ns(plan: &Plan, task: usize) -> u64 {
    plan.tasks[task].load.as_ref().and_then(Load::deadline_ns).unwrap_or(u64::MAX)
}

/// More work in the long run than time.
fn overload(promise: &Promise, asked: Share) -> Failure {
    let share = promise.guarantee.share();
    Failure {
        rule: NOT_PROMISED,
        message: format!(
            "The jobs add up to {} of a CPU, more than {} guarantees.",
            percent(&asked),
            promise.guarantee
        ),
        value: fraction(&asked),
        bound: share::fraction_given(&share),
        mend: None,
        excess: Excess { edge: None, test: String::new(), ns: None, share: Some(asked - share) },
    }
}

/// More work due in a window than is sure to be supplied in it.
fn too_much_due(promise: &Promise, window_ns: u64, due_ns: u64) -> Failure {
    let (window, due) = (show_time(window_ns), show_time(due_ns));
    let until_deadlines = until_deadlines(&promise.guarantee);
    let sure = tierce_guarantee::Supply::of(until_deadlines.as_ref().unwrap_or(&promise.guarantee));
    let sure = sure.at(&whole(window_ns));
    let missing = whole(due_ns) - &sure;
    let sure = tierce_guarantee::noted_time(&sure, false);
    Failure {
        rule: NOT_PROMISED,
        message: format!(
            "Within {window} the demand can be {due}, and {} guarantees {sure}.",
            promise.guarantee
        ),
        value: due,
        bound: sure,
        mend: None,
        excess: Excess {
            edge: None,
            test: String::new(),
            ns: u64::try_from(missing.ceil().to_integer()).ok(),
            share: Some(missing / whole(window_ns.max(1))),
        },
    }
}

/// A rule.
const EVERY_WINDOW: &str = "deadlines_must_fit_every_window";

/// A rule.
const NOT_PROMISED: &str = "deadlines_must_fit_what_is_promised";

/// Where costs count, too.
const MOVES: &str =
    "how often tasks with several parents are switched is not known: their deadlines were tested without";
