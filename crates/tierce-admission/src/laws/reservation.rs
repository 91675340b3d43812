//! `reservation` gives RESBH budget period to each: on a whole CPU when its law holds, below anything else when the demand of its
//! budgets fits what that is sure to supply. Other kinds of servers give other guarantees (`reservation/servers.rs`).
//!
//! Its law: the sum of budget/period is at most one CPU, at most the node's cap, and at most what the node is supplied with itself;
//! with deadlines below periods every window has room for what is due in it, and for budgets that are kept over a sleep
//! (`reservation/retained_budgets.rs`).

use crate::bounds::leftover_supply::Taken;
use crate::demand::budget_locks::{longest_ns, BudgetLocks};
use crate::demand::jobs::{awake, BudgetParams};
use crate::demand::overheads::{Overheads, Toll};
use crate::laws::node::{known, Node, COSTS_TAKE_ALL};
use crate::laws::policy::{Laws, Rated, Takes, Tested};
use crate::laws::utilisation_and_demand::Terms;
use crate::share::{self, ratio, Share};
use crate::verdict::{Excess, Failure, Given, Law, Mend, NodeVerdict, Origin, Promise};
use std::sync::Arc;
use tierce_analysis::{Demand, Edf, Supply, Task};
use tierce_guarantee::{whole, Guarantee, Kind};
use tierce_plan::policies::reservation::{Replenishment, ServerRules};
use tierce_plan::policies::{self};
use tierce_plan::{show_time, Edge, Plan, Protocol, Shape};

pub mod retained_budgets;
pub mod servers;

/// Budgets in periods.
pub struct Reservation;

impl Laws for Reservation {
    fn test(&self, node: &Tested, children: &[(usize, &Edge)], verdict: &mut NodeVerdict) {
        let Tested { plan, shape, overheads, policy, node } = *node;
        let Some(at) = BudgetParams::of(policy) else { return };
        let by_priority = ServerRules::of(plan, node).priority.is_some();
        let one = match shape.reach[node].are_several() {
            true => "one CPU, the bound below a node on several",
            false => "one CPU",
        };
        let law = (by_priority, one, servers::cap(plan, node));
        budgets(&at, children, overheads.switch_ns(node), law, verdict);
        if !by_priority {
            budgets_kept(plan, &at, children, shape, overheads, verdict);
        }
    }

    fn supply(&self, node: &Node, verdict: &NodeVerdict) -> Result<Vec<Given>, String> {
        let budgets = policies::budget_and_period(node.policy);
        budgets.map_or_else(|| Ok(Vec::new()), |budgets| reserved(node, budgets, verdict))
    }

    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        let Some(at) = BudgetParams::of(node.policy) else { return };
        for index in node.edges {
            let edge = &node.plan.edges[*index];
            rates[*index] = Some(ratio(at.budget(edge), at.period(edge)));
        }
    }

    fn is_limited_to_its_rate(&self, node: &Rated, _: usize) -> bool {
        let rules = ServerRules::of(node.plan, node.node);
        !rules.is_endless() && !rules.grows
    }

    fn takes(&self, plan: &Plan, shape: &Shape, edge: usize) -> Takes {
        let about = &plan.edges[edge];
        let policy = policies::by_number(plan.nodes[about.parent].policy);
        let Some((budget, period)) = policy.and_then(policies::budget_and_period) else {
            return Takes::AsChild;
        };
        let (rules, server) =
            (ServerRules::of(plan, about.parent), Task::new(about.params[budget], about.params[period]));
        let jitter_ns = match rules.replenishment {
            Replenishment::Periodic => servers::jitter_ns(rules, &server, awake(plan, shape, edge)),
            _ => 0,
        };
        // What comes back at once has no bound, nor has what grows.
        let bounded = !rules.is_endless() && (!rules.grows || rules.undisturbed(plan, shape, about.parent));
        let taken = bounded.then(|| Taken::bounded(server.work_ns, server.period_ns, jitter_ns));
        let overrun_ns = longest_ns(plan, shape, edge, Protocol::Hsrp);
        let overrun = Taken { burst: whole(overrun_ns), ..Taken::nothing() };
        Takes::Limited(taken.map(|taken| taken.and(&overrun)))
    }
}

/// The law of a node whose edges have budgets. Each of them may be overrun by a switch, and one more be under way for
/// somebody whose deadline is later.
/// By priority only the sum is tested here; when each arrives follows from what the node is promised (`reservation/servers.rs`).
fn budgets(
    at: &BudgetParams,
    children: &[(usize, &Edge)],
    switch_ns: u64,
    (by_priority, one, cap): (bool, &str, Option<Share>),
    verdict: &mut NodeVerdict,
) {
    let blocking_ns = switch_ns.saturating_mul(children.len() as u64 + 1);
    let demand = |(_, edge): &(usize, &Edge)| Task { blocking_ns, ..at.demand(edge) };
    let demands: Vec<_> = children.iter().map(demand).collect();
    let asked = share::sum(demands.iter().map(|demand| (demand.work_ns, demand.period_ns)));
    let early = switch_ns > 0 || demands.iter().any(|demand| demand.deadline_ns < demand.period_ns);
    let early = early && !by_priority;
    verdict.law = Some(match by_priority {
        true => Law::BudgetsByPriority,
        false if early => Law::BudgetsWithDeadlines,
        false => Law::Budgets,
    });
    let short = demands.iter().filter(|demand| demand.work_ns < switch_ns).map(|demand| demand.work_ns).min();
    let terms = Terms {
        children,
        demands,
        requests: None,
        parameter: "budget",
        least_ns: at.least_ns,
        switch_ns,
        extra_ns: 0,
    };
    // Of several bounds the smallest is tested, and named.
    let mut bounds = vec![("budgets_must_fit_the_cpu", one, share::one())];
    bounds.extend(cap.map(|cap| ("budgets_must_fit_the_cap", "the node's cap", cap)));
    match verdict.available.clone() {
        Some(available) => {
            bounds.push(("budgets_must_fit_the_supply", "what the node gets itself", available))
        }
        None => verdict.open.push("what the node gets itself is not known".into()),
    }
    if let Some((rule, what, bound)) = bounds.into_iter().min_by(|a, b| a.2.cmp(&b.2)) {
        terms.utilisation(rule, what, &asked, &bound, verdict);
        if let (true, Some(failure)) = (by_priority, verdict.failures.last_mut()) {
            failure.excess.test = "the sum of budget/period (necessary, not sufficient)".into();
        }
    }
    if let Some(short) = short.filter(|_| verdict.failures.is_empty()) {
        let message = format!(
            "A budget of {} is shorter than one switch, {}: its overruns could not be paid back.",
            show_time(short),
            show_time(switch_ns)
        );
        let (value, bound) = (show_time(short), format!("at least {}", show_time(switch_ns)));
        let mut shorter = children.iter().filter(|(_, edge)| at.budget(edge) < switch_ns);
        let (edge, others) = (shorter.next().map(|(edge, _)| *edge), shorter.count());
        let mend = edge.filter(|_| others == 0).map(|edge| Mend {
            edge,
            parameter: "budget",
            from_ns: short,
            to_ns: switch_ns,
        });
        let test = "what a budget overruns is paid back by the next".into();
        let excess = Excess { edge, test, ns: Some(switch_ns - short), share: None };
        let rule = "budget_must_pay_for_a_switch";
        verdict.failures.push(Failure { rule, message, value, bound, mend, excess });
    }
    if verdict.failures.is_empty() && early {
        terms.demand("budgets_must_fit_every_window", &asked, verdict);
    }
    verdict.asked = Some(asked);
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
        let keeps =
            |(index, server): &(usize, Task)| retained_budgets::keeps(plan, shape, overheads, *index, server);
        let keeps: Vec<_> = servers.iter().map(keeps).collect();
        if keeps.contains(&true) {
            verdict.failures.extend(retained_budgets::failure(&servers, &keeps, at.least_ns));
        }
    }
}

fn reserved(
    node: &Node,
    (budget, period): (usize, usize),
    verdict: &NodeVerdict,
) -> Result<Vec<Given>, String> {
    let name = node.name();
    if !verdict.failures.is_empty() {
        return Ok(node.gives_nothing(format!("the budgets of `{name}` do not fit")));
    }
    let rules = ServerRules::of(node.plan, node.index);
    if !rules.undisturbed(node.plan, node.shape, node.index) {
        return Ok(
            node.gives_nothing(format!("`{name}` charges by wall time, and interrupts come off its budgets"))
        );
    }
    let servers = Servers { node, rules, budget, period };
    let admitted = servers.admitted()?;
    let edges = node.edges.iter().enumerate();
    Ok(edges.map(|(at, edge)| servers.promise(&admitted, at, *edge)).collect())
}

/// The budgets of a node whose law holds.
struct Servers<'a> {
    node: &'a Node<'a>,
    rules: ServerRules,
    /// Which parameter of its edges.
    budget: usize,
    /// Which parameter of its edges.
    period: usize,
}

/// That all budgets arrive in time.
struct Admitted {
    /// From which of the node's promises it follows.
    place: usize,
    because: Arc<str>,
    /// Within what time each arrives, where that is known.
    within_ns: Vec<Option<u64>>,
}

impl Servers<'_> {
    fn admitted(&self) -> Result<Admitted, String> {
        let Node { plan, shape, edges, received, .. } = *self.node;
        let name = self.node.name();
        if let Some(sleeper) = self.sleeper() {
            return Err(format!(
                "`{}` keeps its budget while it sleeps, and may use it just before its deadline",
                plan.child_name(plan.edges[sleeper].child)
            ));
        }
        let mut within_ns = vec![None; edges.len()];
        let (place, because) = if let Some(at) = self.rules.priority {
            let locks = &self.node.overheads.locks;
            let known = edges.iter().map(|edge| Ok(locks.of_budget(*edge)?.cloned().unwrap_or_default()));
            let known: Vec<_> = known.collect::<Result<_, String>>()?;
            let mut tasks = self.tasks();
            tasks.iter_mut().zip(&known).for_each(|(task, locks)| task.blocking_ns += locks.blocking_ns());
            let (place, found) = in_time(plan, shape, (edges, at, self.rules), (&tasks, &known), received)?;
            within_ns = found.into_iter().map(Some).collect();
            (place, format!("admitted by `{name}` by response times"))
        } else if let Some(place) = received.iter().position(|promise| promise.guarantee.is_whole_cpu()) {
            (place, format!("admitted by `{name}`, which has a whole CPU"))
        } else {
            let place = fits(&self.tasks(), received)?;
            (place, format!("admitted by `{name}` inside its {}", received[place].guarantee))
        };
        Ok(Admitted { place, because: because.into(), within_ns })
    }

    /// A child that may spoil the deadlines of others when it wakes.
    fn sleeper(&self) -> Option<usize> {
        let Node { plan, shape, edges, .. } = *self.node;
        let keeps = self.rules.priority.is_none()
            && self.rules.replenishment == Replenishment::Periodic
            && edges.len() > 1;
        edges.iter().copied().find(|edge| keeps && !awake(plan, shape, *edge))
    }

    fn tasks(&self) -> Vec<Task> {
        let Node { plan, policy, index, edges, overheads, .. } = *self.node;
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(self.period);
        // Each budget may be overrun by a switch, and one of somebody with a later deadline be under way.
        let blocking_ns = overheads.switch_ns(index).saturating_mul(edges.len() as u64 + 1);
        let blocking_ns = if overheads.is_none() { 0 } else { blocking_ns };
        let task = |edge: &usize| Task {
            blocking_ns,
            ..server(&plan.edges[*edge], self.budget, self.period, deadline)
        };
        edges.iter().map(task).collect()
    }

    /// What the child below an edge, the node's `at`th, is promised.
    fn promise(&self, admitted: &Admitted, at: usize, edge: usize) -> Given {
        let Node { plan, shape, received, overheads, .. } = *self.node;
        let (name, params) = (self.node.name(), &plan.edges[edge].params);
        let because = match admitted.within_ns[at] {
            Some(ns) => format!("{}: its budget arrives within {}", admitted.because, show_time(ns)).into(),
            None => admitted.because.clone(),
        };
        let about = (plan, shape, overheads);
        let server = Task::new(params[self.budget], params[self.period]);
        let (guarantee, rule, formula) = servers::guarantee(self.rules, about, edge, &server);
        let from = [&received[admitted.place].guarantee];
        let within_ns = admitted.within_ns[at].filter(|_| overheads.is_none());
        let within = |promise| Promise { within_ns, ..promise };
        let by = |promise: Promise, rule: &'static str, formula: &'static str| match (self.node.asked)(edge) {
            true => [within(promise).by(Origin::Promise(admitted.place), &from, rule, formula)].into(),
            false => [within(promise)].into(),
        };
        let toll = match known(overheads.is_none(), || overheads.outside(edge)) {
            Ok(toll) => toll,
            Err(unknown) => return Promise::nothing(unknown),
        };
        if let Ok(Some(sure)) =
            overheads.locks.of_budget(edge).map(|locks| locks?.sure(server.work_ns, server.period_ns))
        {
            return self.sure(sure, &because, by);
        }
        let Some(toll) = toll else {
            return match guarantee {
                Some(guarantee) => by(Promise::new(guarantee, because), rule, formula),
                None => Promise::nothing(format!("`{name}` gives a budget above its period")),
            };
        };
        if guarantee.is_none_or(|guarantee| guarantee.amount_and_period().is_none()) {
            return Promise::nothing(format!("`{name}`: what switches take of it is not known"));
        }
        match self.less_costs(&server, &toll) {
            (lost, Some(guarantee)) => {
                let because = format!("{because}; switches and timers may take {lost}");
                by(Promise::new(guarantee, because), rule, "RESBS (budget − costs) period")
            }
            (lost, None) => Promise::nothing(format!(
                "`{name}`: {COSTS_TAKE_ALL}: {lost} of {}",
                show_time(server.work_ns)
            )),
        }
    }

    /// Of a budget that may be overrun within a section, or given up before one.
    fn sure(
        &self,
        sure: [Option<Guarantee>; 2],
        because: &str,
        by: impl Fn(Promise, &'static str, &'static str) -> Given,
    ) -> Given {
        let because: Arc<str> = format!("{because}; less what is paid back or given up for locks").into();
        let rule = "overrun and payback, or skipping, of a server (HSRP, SIRAP)";
        let formulas = [
            "RESBS (budget − sections) period",
            "PSBE U 2·U·(period − budget) + section, of what is not given up",
        ];
        let promise = |(sure, formula): (Option<Guarantee>, _)| {
            Some(by(Promise::new(sure?, because.clone()), rule, formula))
        };
        let found: Vec<_> = sure.into_iter().zip(formulas).filter_map(promise).collect();
        let found: Vec<_> = found.iter().flat_map(|given| given.iter().cloned()).collect();
        match found.is_empty() {
            true => Promise::nothing(format!("`{}`: sections may take all of the budget", self.node.name())),
            false => found.into(),
        }
    }

    /// What is lost in each period, in words: what was overrun before, the first switch, and what others take; and what is left.
    fn less_costs(&self, server: &Task, toll: &Toll) -> (String, Option<Guarantee>) {
        let own_ns = self.node.overheads.switch_ns(self.node.index).saturating_mul(2);
        let lost_ns = own_ns.saturating_add(toll.within(server.period_ns));
        let left_ns = server.work_ns.saturating_sub(lost_ns);
        let left = Guarantee::reservation(Kind::Resbs, whole(left_ns), whole(server.period_ns));
        (show_time(lost_ns), left)
    }
}

fn server(edge: &Edge, budget: usize, period: usize, deadline: usize) -> Task {
    let deadline_ns = edge.params[deadline];
    Task { deadline_ns, ..Task::new(edge.params[budget], edge.params[period]) }
}

/// The same by priority, and when each budget arrives.
fn in_time(
    plan: &Plan,
    shape: &Shape,
    (edges, at, way): (&[usize], usize, ServerRules),
    servers: (&[Task], &[BudgetLocks]),
    received: &[Promise],
) -> Result<(usize, Vec<u64>), String> {
    let mut first = None;
    for (place, promise) in received.iter().enumerate() {
        let Some(supply) = Supply::of(&promise.guarantee) else { continue };
        match servers::by_priority(plan, shape, (edges, at, way), servers, &supply) {
            Ok(found) => return Ok((place, found)),
            Err(why) => first.get_or_insert(why),
        };
    }
    Err(first.unwrap_or_else(|| format!("it has no guarantee: {}", received[0].because)))
}

/// The least supply of a window, in words.
fn sure_within(guarantee: &Guarantee, window_ns: u64) -> String {
    tierce_guarantee::noted_time(&tierce_guarantee::Supply::of(guarantee).at(&whole(window_ns)), false)
}

/// Which of the promises has the supply in which all budgets arrive by their deadlines.
fn fits(servers: &[Task], received: &[Promise]) -> Result<usize, String> {
    let mut edf = Edf::new();
    let mut first = None;
    for (place, promise) in received.iter().enumerate() {
        let Some(supply) = Supply::of(&promise.guarantee) else { continue };
        let why = match edf.demand(servers, &supply) {
            Demand::Met => return Ok(place),
            Demand::Exceeds { window_ns, due_ns } => format!(
                "within {} the demand of the budgets is {}, and {} guarantees {}",
                show_time(window_ns),
                show_time(due_ns),
                promise.guarantee,
                sure_within(&promise.guarantee, window_ns)
            ),
            Demand::Overload => format!("its budgets are more than {} in the long run", promise.guarantee),
            Demand::TooLong => format!("its budgets are too close to {} to be tested", promise.guarantee),
        };
        first.get_or_insert(why);
    }
    Err(first.unwrap_or_else(|| format!("it has no guarantee: {}", received[0].because)))
}
