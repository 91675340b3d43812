//! The laws that a node's policy has: budgets that fit, deadlines that are met.
//!
//! For each node, by what its policy offers:
//! - budgets (`reservation`): the sum of budget/period is at most one CPU, at most the node's cap, and at most what the node is
//!   supplied with itself; with deadlines below periods every window has room for what is due in it;
//! - deadlines (`edf`): the sum of work/period of its tasks is at most what the node is supplied with; on a whole CPU
//!   with deadlines below periods, the demand test as well;
//! - others promise nothing but their order or shares.

use crate::jobs::{comes_last, job, BudgetParams};
use crate::mend::mend_by_bisection;
use crate::overheads::Overheads;
use crate::share::{self, fraction, percent, percent_given, ratio, Share};
use crate::verdict::{Excess, Failure, Law, Mend, NodeVerdict};
use tierce_analysis::{Demand, Edf, Supply, Task, TIME_MAX_NS};
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::show_time;
use tierce_plan::{Child, Edge, Load, Plan};

/// The law of a node whose edges have budgets. Each of them may be overrun by a switch, and one more be under way for
/// somebody whose deadline is later.
/// By priority only the sum is tested here; when each arrives follows from what the node is promised (`servers.rs`).
pub fn budgets(
    at: &BudgetParams,
    children: &[(usize, &Edge)],
    switch_ns: u64,
    (by_priority, cap): (bool, Option<Share>),
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
    let terms =
        Terms { children, demands, parameter: "budget", least_ns: at.least_ns, switch_ns, extra_ns: 0 };
    terms.utilisation("budgets_must_fit_the_cpu", "one CPU", &asked, &share::one(), verdict);
    if let Some(cap) = cap.filter(|_| verdict.failures.is_empty()) {
        terms.utilisation("budgets_must_fit_the_cap", "the node's cap", &asked, &cap, verdict);
    }
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
pub fn deadlines(
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
    let asked = share::sum(demands.iter().map(|demand| (demand.work_ns, demand.period_ns)));
    let switch_ns = overheads.switch_ns(node);
    let early = switch_ns > 0 || demands.iter().any(|demand| demand.deadline_ns < demand.period_ns);
    verdict.law = Some(if early { Law::DeadlinesBelowPeriods } else { Law::Deadlines });
    let extra_ns = switch_ns.saturating_mul(2);
    let terms = Terms { children: &bounded, demands, parameter: "work", least_ns: 1, switch_ns, extra_ns };
    let whole = verdict.supply.as_ref().is_some_and(|supply| *supply >= share::one());
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
            verdict.open.push(crate::laws::ONLY_UTILISATION.into());
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

/// What the second look at deadlines rests on, once it could be taken.
pub const ONLY_UTILISATION: &str = "deadlines below periods were only tested by utilisation";

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
            let cut = (&excess * share::Share::from_integer(demand.period_ns.into())).ceil().to_integer();
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
        let ns = (&excess * share::Share::from_integer(period_ns.into())).ceil().to_integer();
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
            bound: share::fraction_given(bound),
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
