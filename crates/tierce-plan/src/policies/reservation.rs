//! Reservations: how budgets are ordered, replenished and charged, and which of these do not go together
//! (policy/reservation.c, rules 7 to 14).

use crate::model::shape::Shape;
use crate::model::Plan;
use crate::policies::{self, PolicyRecord};
use crate::text::faults::Fault;
use crate::text::units::show_time;

/// The engine keeps the time of a replenishment in 32 bits.
const SPORADIC_PERIOD_MAX_NS: u64 = 4_000_000_000;

/// When a budget that was used is replenished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replenishment {
    /// At the end of its period (a constant bandwidth server that does not run ahead).
    Hard,
    /// At once, with a later deadline (the constant bandwidth server).
    Soft,
    /// At once, with the deadline by which the share is kept.
    TotalBandwidth,
    /// At the begin of each period, whatever was used (a deferrable server).
    Periodic,
    /// A period after it was used.
    Sporadic,
    /// At the begin of each period, and lost when nobody wants it then.
    Polling,
}

/// How a node orders, replenishes and charges the budgets of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRules {
    /// When a used budget is replenished.
    pub replenishment: Replenishment,
    /// Where the priority is among the parameters of an edge, if that is the order.
    pub priority: Option<usize>,
    /// Interference (interrupts, higher scheduling classes) is charged to the child that it hits.
    pub wall_time: bool,
    /// A budget grows by the interference that it was charged (`gain`).
    pub grows: bool,
}

impl ServerRules {
    /// Of a node; those of a plain constant bandwidth server where its policy has no such parameters.
    pub fn of(plan: &Plan, node: usize) -> Self {
        let usual =
            Self { replenishment: Replenishment::Hard, priority: None, wall_time: false, grows: false };
        let Some(policy) = policies::by_number(plan.nodes[node].policy) else { return usual };
        let chosen = |name| choice(plan, policy, node, name);
        let replenishment = match chosen("replenishment") {
            Some("soft") => Replenishment::Soft,
            Some("total-bandwidth") => Replenishment::TotalBandwidth,
            Some("periodic") => Replenishment::Periodic,
            Some("sporadic") => Replenishment::Sporadic,
            Some("polling") => Replenishment::Polling,
            _ => Replenishment::Hard,
        };
        let by_priority = chosen("order") == Some("fixed-priority");
        let priority = policies::position(&policy.edge_params, "priority").filter(|_| by_priority);
        let wall_time = chosen("charge") == Some("wall");
        let grows =
            policies::position(&policy.node_params, "gain").is_some_and(|at| plan.nodes[node].params[at] > 0);
        Self { replenishment, priority, wall_time, grows }
    }

    /// No interrupt of the plan is charged to these budgets: those of other CPUs are not.
    pub fn undisturbed(self, plan: &Plan, shape: &Shape, node: usize) -> bool {
        let hits = |cpu: Option<u32>| cpu.is_none_or(|cpu| shape.reach[node].has(cpu));
        !self.wall_time || !plan.machine.interrupts.iter().any(|one| hits(one.cpu))
    }

    /// A hard budget in the order of deadlines: the preset.
    pub fn is_usual(self) -> bool {
        self.replenishment == Replenishment::Hard && self.priority.is_none()
    }

    /// It is replenished at once: nothing bounds what is taken.
    pub fn is_endless(self) -> bool {
        matches!(self.replenishment, Replenishment::Soft | Replenishment::TotalBandwidth)
    }

    /// Who wakes up after its last period has ended begins a period of its own.
    pub fn begins_with_a_wake_up(self) -> bool {
        matches!(
            self.replenishment,
            Replenishment::Hard | Replenishment::Soft | Replenishment::TotalBandwidth
        )
    }
}

/// A parameter of a node as plans have it.
pub fn chosen(plan: &Plan, policy: &PolicyRecord, node: usize, name: &str) -> Option<String> {
    let at = policies::position(&policy.node_params, name)?;
    Some(policy.node_params[at].show(plan.nodes[node].params[at], show_time))
}

/// The same where it is one of several names.
fn choice(plan: &Plan, policy: &PolicyRecord, node: usize, name: &str) -> Option<&'static str> {
    let at = policies::position(&policy.node_params, name)?;
    policy.node_params[at].choices.get(plan.nodes[node].params[at] as usize).copied()
}

/// Parameters that do not go together.
pub fn faults(plan: &Plan, faults: &mut Vec<Fault>) {
    let sets = plan.sets.iter().flat_map(|set| &set.under);
    for edge in plan.edges.iter().chain(sets) {
        let rules = ServerRules::of(plan, edge.parent);
        let special = |_: &&PolicyRecord| !rules.is_usual() || rules.grows;
        let Some(policy) = policies::by_number(plan.nodes[edge.parent].policy).filter(special) else {
            continue;
        };
        let Some((_, period)) = policies::budget_and_period(policy) else { continue };
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
        let (deadline_ns, period_ns) = (edge.params[deadline], edge.params[period]);
        let (name, child) = (&plan.nodes[edge.parent].name, plan.child_name(edge.child));
        let fault = |rule, message| Fault::new(rule, edge.spot, message);
        if rules.replenishment != Replenishment::Hard && deadline_ns < period_ns {
            let message = format!("`{child}` has a deadline below its period, and `{name}` no hard budgets");
            let fault = fault("deadline_needs_hard_budget", message).value(show_time(deadline_ns));
            faults.push(
                fault.bound(show_time(period_ns)).hint("replenishment = \"hard\" there, or no deadline"),
            );
        }
        if rules.grows
            && (rules.replenishment != Replenishment::Hard || !rules.wall_time || deadline_ns < period_ns)
        {
            let message = format!("`{name}` has a gain, which needs hard budgets by wall time");
            let (value, bound) = match (rules.replenishment, rules.wall_time) {
                (Replenishment::Hard, true) => (show_time(deadline_ns), show_time(period_ns)),
                (Replenishment::Hard, false) => ("own".into(), "wall".into()),
                _ => (chosen(plan, policy, edge.parent, "replenishment").unwrap_or_default(), "hard".into()),
            };
            let hint =
                "charge = \"wall\", replenishment = \"hard\" and no deadlines below periods, or no gain";
            let fault = fault("feedback_needs_hard_wall_time", message).value(value).bound(bound);
            faults.push(fault.hint(hint));
        }
        if rules.is_endless() && rules.priority.is_some() {
            let message =
                format!("children of `{name}` would never be throttled: its budgets are refilled at once, with a later deadline, \
                         and its order ignores deadlines");
            let hint = "order = \"edf\" there, or another replenishment such as \"hard\"";
            faults.push(
                fault("recharge_needs_deadlines", message).value("fixed-priority").bound("edf").hint(hint),
            );
        }
        if rules.replenishment == Replenishment::Sporadic && period_ns > SPORADIC_PERIOD_MAX_NS {
            let message = format!("the period of `{child}` is longer than a sporadic budget's can be");
            let fault = fault("sporadic_period_within_limit", message).value(show_time(period_ns));
            faults.push(fault.bound(show_time(SPORADIC_PERIOD_MAX_NS)));
        }
    }
}
