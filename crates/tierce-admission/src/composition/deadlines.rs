//! Deadlines of tasks: each is shown to be met, or may be missed, or nothing shows it; what is not shown does not hold.
//!
//! A deadline is shown by a bound on the response: what the node above says (`response_times.rs`), or the task's jobs alone within
//! what is promised to it:
//!
//! - in the least supply of any of its guarantees: response times of one task (Shin & Lee, RTSS 2003);
//! - below a reservation, by its periods: see [`budgets_when`].
//!
//! It may be missed where an exact test finds a longer response, or where its task asks for more in the long run than it is
//! sure to get. Everything else is not shown.

use crate::bounds::adjacent_reserves;
use crate::bounds::response::{shorter, Bound, Refusal};
use crate::composition::promises::Promises;
use crate::demand::jobs::{budgets_when, densest, job, job_and_suspension, requesting, requests, vary};
use crate::demand::locks::{awaited_words, held_words, spun_words, Waiting};
use crate::demand::overheads::Overheads;
use crate::laws::node::until_deadlines;
use crate::share::{fraction, percent, percent_given, Share};
use crate::verdict::{Deadlines, Excess, Failure, NodeVerdict, Promise, TaskVerdict};
use std::collections::BTreeMap;
use tierce_analysis::requests::{earliest_deadline, fixed_priority};
use tierce_analysis::{Demand, Edf, Response, Supply, Task};
use tierce_guarantee::Kind;
use tierce_plan::policies;
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::show_time;
use tierce_plan::Shape;
use tierce_plan::{Load, Plan};

/// The one test of a task alone.
const ALONE: &str =
    "response times of its jobs alone, in the least supply of its guarantee (Shin & Lee 2003)";
const SLOWER: &str = "its jobs alone, on a slower processor that they announce their deadlines to";
const PERIODS: &str =
    "response times of its jobs alone, in a server whose period begins with each job (hard constant bandwidth server)";
const RATES: &str = "the sum of work/period against the long-run rate";

/// What the tests of all nodes found.
pub struct Found<'a> {
    pub plan: &'a Plan,
    pub shape: &'a Shape,
    pub promises: &'a Promises,
    pub overheads: &'a Overheads<'a>,
    pub nodes: &'a [NodeVerdict],
    /// Why nodes that several CPUs run say no more.
    pub refused: &'a BTreeMap<usize, Refusal>,
}

impl Found<'_> {
    /// The best bound on the response of a task; `known`: what the node above it says.
    pub fn bound(&self, task: usize, known: Option<Bound>) -> Option<Bound> {
        let (plan, above) = (self.plan, &self.shape.task_parents[task]);
        let Some(job) = self.overheads.locks.alone(plan, task) else { return known };
        let load = plan.tasks[task].load.as_ref();
        let (varies, bursty) = (load.is_some_and(vary), load.is_some_and(Load::is_bursty));
        let shared = adjacent_reserves::task_at_once(plan, self.shape, task);
        if shared || (!self.overheads.is_none() && above.len() > 1) {
            return known;
        }
        let plain = above.iter().copied().filter(|edge| !plan.edges[*edge].when_spent);
        let mut best = known;
        for edge in plain {
            let job = self.overheads.job(plan.edges[edge].parent, job);
            for promise in self.promises.edges[edge].iter().chain(self.promises.tasks[task].iter()) {
                if let Some(supply) = until_deadlines(&promise.guarantee).as_ref().and_then(Supply::of) {
                    let requests = requesting(load, job).filter(|_| varies);
                    let met = match requests {
                        Some(requests) => earliest_deadline(&[requests], &supply) == Demand::Met,
                        None => Edf::new().schedulable(&[job], &supply),
                    };
                    if met {
                        let response = Response::Within(job.deadline_ns);
                        best = shorter(best, Bound { response, test: SLOWER, exact: false });
                    }
                } else if let Some(supply) = Supply::of(&promise.guarantee) {
                    let requests = requesting(load, job).filter(|_| varies);
                    let response = match requests {
                        Some(requests) => fixed_priority(&[requests], &[0], &supply)[0],
                        None => supply.response_alone(&job),
                    };
                    best = shorter(best, Bound { response, test: ALONE, exact: false });
                }
            }
            let own = in_own_periods(plan, edge, &job, &self.promises.edges[edge]).filter(|_| !bursty);
            if let Some(ns) = own {
                best = shorter(best, Bound { response: Response::Within(ns), test: PERIODS, exact: false });
            }
        }
        best.filter(|bound| bound.response != Response::TooLong)
    }

    /// What a task asks for in the long run and what is available to it, where the latter is less. With locks nobody knows: how much
    /// others take while they hold them or spin is a bound.
    pub fn lacking<'a>(
        &self,
        asked: Option<&'a Share>,
        available: Option<&'a Share>,
    ) -> Option<(&'a Share, &'a Share)> {
        asked
            .zip(available)
            .filter(|(asked, available)| asked > available && self.overheads.locks.take_nothing())
    }

    /// What that bound says of the task's deadlines; `overload`: it gets less in the long run than it asks for.
    pub fn judge(&self, task: usize, bound: Option<Bound>, overload: bool) -> Deadlines {
        let Some(deadline_ns) = self.plan.tasks[task].load.as_ref().and_then(Load::deadline_ns) else {
            return Deadlines::None;
        };
        match bound {
            Some(bound) if bound.response.meets(deadline_ns) => Deadlines::Met,
            Some(bound) if bound.exact || overload => Deadlines::MayMiss,
            _ if overload => Deadlines::MayMiss,
            _ => Deadlines::NotShown,
        }
    }

    /// Why the deadlines of a task are not shown; `None` where that of a node above it says it already.
    pub fn failure(
        &self,
        task: usize,
        deadlines: Deadlines,
        bound: Option<Bound>,
        lacking: Option<(&Share, &Share)>,
    ) -> Option<Failure> {
        let above = &self.shape.task_parents[task];
        let load = self.plan.tasks[task].load.as_ref()?;
        let deadline_ns = load.deadline_ns().filter(|_| deadlines.is_open() && !load.is_soft())?;
        let can = deadlines == Deadlines::MayMiss;
        let mut parents = above.iter().map(|edge| self.plan.edges[*edge].parent);
        if parents.any(|node| if can { self.orders(node) && self.fails(node) } else { self.fails(node) }) {
            return None;
        }
        let name = &self.plan.tasks[task].name;
        let rule = if can { "deadline_can_be_missed" } else { "deadline_is_not_proved" };
        let excess = |test: String, ns, share| Excess { edge: above.first().copied(), test, ns, share };
        let failure =
            |message, value, bound, excess| Failure { rule, message, value, bound, mend: None, excess };
        let deadline = show_time(deadline_ns);
        if let Some((ns, test)) = bound.and_then(|bound| Some((bound.response.ns()?, bound.test))) {
            let response = show_time(ns);
            let waits = self.waits(task);
            let message = if bound.is_some_and(|bound| bound.exact) {
                format!("Its response time can be {response}, longer than its deadline, {deadline}.")
            } else {
                format!("The bound on its response time is {response}, longer than its deadline, {deadline}.{waits}")
            };
            let excess = excess(test.into(), Some(ns.saturating_sub(deadline_ns)), None);
            return Some(failure(message, show_time(ns), deadline, excess));
        }
        let refusal = above.iter().find_map(|edge| self.refused.get(&self.plan.edges[*edge].parent));
        if let Some((asked, supply)) = lacking.filter(|_| refusal.is_none()) {
            let message = format!(
                "It needs up to {} of a CPU{}; in the long run {}{} is {}available to it.",
                percent(asked),
                self.in_each_period(task, load),
                if can { "" } else { "only " },
                percent_given(supply),
                if can { "" } else { "sure to be " },
            );
            let excess = excess(RATES.into(), None, Some(asked - supply));
            return Some(failure(message, fraction(asked), fraction(supply), excess));
        }
        let why = refusal.map_or_else(|| self.why(task, load), |refusal| refusal.why.clone());
        let message = format!("Nothing bounds its response time, deadline {deadline}: {why}.");
        let none = || format!("no test bounds the response of `{name}`");
        let test = refusal.map_or_else(none, |refusal| refusal.test.into());
        let excess = excess(test, None, refusal.and_then(|refusal| refusal.share.clone()));
        Some(failure(message, "no bound".into(), deadline, excess))
    }

    /// " Of it up to 2ms are waits for locks: `bus`, which `low` has for 2ms."
    fn waits(&self, task: usize) -> String {
        if let Some((kept, by)) = self.overheads.locks.kept(task).and_then(|kept| Some((kept, kept.by?))) {
            let (most, who) = (show_time(kept.most_ns()), by.words(self.plan));
            return format!(" Of it up to {most} is the wait for {who}; if that were shorter, it would be.");
        }
        let locks = &self.overheads.locks;
        let blocking = match locks.waiting(task) {
            Waiting::For(blocking)
            | Waiting::Paid(blocking)
            | Waiting::Within(blocking)
            | Waiting::Spins(_, blocking) => blocking,
            Waiting::Suspends(found) => &found.blocking,
            Waiting::Never | Waiting::Kept(_) | Waiting::Unknown(_) => return String::new(),
        };
        let spins = locks.spinning(task).map_or_else(String::new, |spinning| {
            let (most, held) = (show_time(spinning.most_ns), spun_words(self.plan, &spinning));
            format!(" Of it up to {most} is spinning: {held}; shorter sections there make it shorter.")
        });
        let suspended = locks.suspended(task).filter(|found| found.most_ns > 0).map(|found| {
            let (most, held) = (show_time(found.most_ns), awaited_words(self.plan, found));
            format!(" Of it up to {most} it is suspended: {held}; shorter sections there make it shorter.")
        });
        let spins = suspended.unwrap_or(spins);
        let Some(most_ns) = blocking.most_ns.filter(|ns| *ns > 0) else { return spins };
        let held = held_words(self.plan, blocking);
        let times = locks.suspended(task).map_or_else(String::new, |found| found.times());
        format!(
            "{spins} Of it up to {} are waits for locks: {held}{times}; shorter sections there make it shorter.",
            show_time(most_ns)
        )
    }

    /// " (1.01ms in every 10ms: 1ms of work and 10us of `[machine] costs`)".
    fn in_each_period(&self, task: usize, load: &Load) -> String {
        let above = self.shape.task_parents[task].first();
        let (Some(work), Some(edge)) = (job(load, 0), above) else { return String::new() };
        let all = self.overheads.job(self.plan.edges[*edge].parent, work);
        let costs = match all.work_ns - work.work_ns {
            0 => String::new(),
            costs_ns => {
                let (work, costs) = (show_time(work.work_ns), show_time(costs_ns));
                format!(": {work} of work and {costs} of `[machine] costs`")
            }
        };
        format!(" ({} in every {}{costs})", show_time(all.work_ns), show_time(all.period_ns))
    }

    /// What a task with locks or regions needs.
    fn not_there(&self, task: usize) -> String {
        let why = self.promises.tasks[task].first().map(|promise| promise.because.to_string());
        why.unwrap_or_else(|| "nothing is guaranteed to it".into())
    }

    /// Its law is about deadlines.
    fn orders(&self, node: usize) -> bool {
        policies::by_number(self.plan.nodes[node].policy).is_some_and(|policy| policy.heeds_deadlines)
    }

    /// A law fails at the node or above it.
    fn fails(&self, node: usize) -> bool {
        let above = &self.shape.parents[node];
        !self.nodes[node].failures.is_empty()
            || above.iter().any(|edge| self.fails(self.plan.edges[*edge].parent))
    }

    /// Why there is no bound.
    fn why(&self, task: usize, load: &Load) -> String {
        if let Some(why) = self.overheads.locks.why(self.plan, task) {
            return why;
        }
        let densest = densest(load, 0).map(|(job, _)| job).filter(|_| load.is_bursty());
        let Some(job) = job(load, 0).or(densest) else {
            return match job_and_suspension(load, 0) {
                Some(_) if !load.sections().is_empty() || !load.preemption().is_full() => self.not_there(task),
                Some(_) => "it suspends itself within its jobs. That is bounded only directly below `fixed-priority` or `edf` with a \
                            whole CPU, where no task comes in bursts, for less than a period, and with deadlines of loads"
                    .into(),
                None if matches!(load, Load::Phases(_)) => "how often its jobs come is not bounded by its load: that has to begin and \
                            end with `run`, before one `sleep` or one `timer`, and no deadline is longer than the timer"
                    .into(),
                None => "how often its jobs come is not bounded by its load".into(),
            };
        };
        if let Some(spinning) = self.overheads.locks.spinning(task) {
            let (work, period) = (show_time(job.work_ns), show_time(job.period_ns));
            let (most, held) = (show_time(spinning.most_ns), spun_words(self.plan, &spinning));
            return format!("of every {period} its work takes up to {work} and spinning up to {most}: {held}; others come before it");
        }
        let promises = &self.promises.tasks[task];
        if let Some(promise) = promises.iter().find(|promise| promise.guarantee.kind() != Kind::Null) {
            let own = requests(load).filter(|_| vary(load)).map(|requests| requests.rate());
            let rate = own.unwrap_or_else(|| tierce_guarantee::ratio(job.work_ns, job.period_ns));
            if rate > promise.guarantee.share() {
                return format!("{} is less than its demand, {}", promise.guarantee, percent(&rate));
            }
            return format!("{} says nothing of any window", promise.guarantee);
        }
        promises[0].because.to_string()
    }
}

/// The response of a task alone below a reservation whose promise holds, if each job begins a period of its own
/// ([`budgets_when`]): when the last budget that it takes is there, at its deadline at the latest. A job comes up to J after its nominal release.
fn in_own_periods(plan: &Plan, edge: usize, job: &Task, promises: &[Promise]) -> Option<u64> {
    let policy = policies::by_number(plan.nodes[plan.edges[edge].parent].policy)?;
    let (_, period) = policies::budget_and_period(policy)?;
    let rules = ServerRules::of(plan, plan.edges[edge].parent);
    if !rules.begins_with_a_wake_up() {
        return None;
    }
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    let (amount, within_ns) = promises
        .iter()
        .find_map(|promise| Some((promise.guarantee.amount_and_period()?.0, promise.within_ns)))?;
    let params = &plan.edges[edge].params;
    let amount_ns = u64::try_from(amount.to_integer()).ok()?;
    let server = Task { deadline_ns: params[deadline], ..Task::new(amount_ns, params[period]) };
    let budgets = budgets_when(rules.replenishment, job, &server)?;
    let last_ns = within_ns.map_or(server.deadline_ns, |ns| ns.min(server.deadline_ns));
    Some((budgets - 1) * server.period_ns + last_ns + job.jitter_ns)
}

/// Members of a set fail alike: one of each is enough.
pub fn once_for_each_set(plan: &Plan, tasks: &mut [TaskVerdict]) {
    for set in &plan.sets {
        let failing: Vec<_> = set.members.clone().filter(|task| !tasks[*task].failures.is_empty()).collect();
        let [first, others @ ..] = failing.as_slice() else { continue };
        others.iter().for_each(|task| tasks[*task].failures.clear());
        if let (Some(failure), 1..) = (tasks[*first].failures.first_mut(), others.len()) {
            failure.message += &format!(" So for {} more of `{}`.", others.len(), set.name);
        }
    }
}
