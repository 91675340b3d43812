//! Servers: the smallest reservation in which a set meets its deadlines.
//!
//! For each period there is a smallest budget; all of them are the frontier between reservations that are enough and those
//! that are not (HLS 6.1.3, Figure 6.2). Short periods need hardly more than the set's utilisation but switch often; beyond
//! some period the longest gap, 2(period − budget), eats the slack of the shortest deadline, and the budget rises by half of
//! what the period does. The bandwidth along the frontier is not monotone: some periods divide those of the tasks better.

use crate::priorities::{deadline_monotonic, rate_monotonic};
use crate::supply::Supply;
use crate::task::{utilisation, Task};
use crate::{Edf, FixedPriority};
use tierce_guarantee::{ratio, whole, Exact};

/// A point of the frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Length of its period.
    pub period_ns: u64,
    /// The smallest budget in whole ns with which all deadlines are met, wherever in the period it comes.
    pub budget_ns: u64,
}

/// The frontier and what stands out on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontier {
    /// In the order of the periods that were asked for; those with which not even the whole CPU is enough are left out.
    pub servers: Vec<Server>,
    /// Index of the server of least bandwidth when every period costs a switch; of equals the longest period.
    pub best: usize,
    /// Index of the longest period at which the bandwidth is at most 5 % above the set's utilisation, if there is one: beyond
    /// it bandwidth is paid for fewer switches.
    pub knee: Option<usize>,
}

impl Server {
    /// budget/period.
    pub fn bandwidth(&self) -> Exact {
        ratio(self.budget_ns, self.period_ns)
    }

    /// (budget + cost)/period.
    pub fn bandwidth_with(&self, switch_cost_ns: u64) -> Exact {
        (whole(self.budget_ns) + whole(switch_cost_ns)) / whole(self.period_ns)
    }
}

/// The smallest budget per `period_ns` for which `holds`; `None`: not even the whole period. `holds` for a budget if it does
/// for a smaller one.
pub fn smallest_budget(period_ns: u64, mut holds: impl FnMut(&Supply) -> bool) -> Option<u64> {
    let mut fits = |budget| Supply::periodic(budget, period_ns).is_some_and(|supply| holds(&supply));
    if !fits(period_ns) {
        return None;
    }
    let (mut low, mut high) = (1, period_ns);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// The frontier of `tasks` at those periods, which are above 0. `None`: the tasks do not meet their deadlines on a whole CPU
/// either.
pub fn frontier(
    tasks: &[Task],
    periods_ns: &[u64],
    switch_cost_ns: u64,
    mut holds: impl FnMut(&Supply) -> bool,
) -> Option<Frontier> {
    let servers: Vec<_> = periods_ns
        .iter()
        .filter_map(|period| {
            Some(Server { period_ns: *period, budget_ns: smallest_budget(*period, &mut holds)? })
        })
        .collect();
    let cost = |server: &Server| (server.bandwidth_with(switch_cost_ns), std::cmp::Reverse(server.period_ns));
    let best = (0..servers.len()).min_by_key(|index| cost(&servers[*index]))?;
    let allowed = utilisation(tasks) * ratio(21, 20);
    let near = (0..servers.len()).filter(|index| servers[*index].bandwidth() <= allowed);
    let knee = near.max_by_key(|index| servers[*index].period_ns);
    Some(Frontier { servers, best, knee })
}

/// How the tasks are ordered inside a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The shorter the period, the higher the priority.
    RateMonotonic,
    /// The shorter the deadline, the higher the priority.
    DeadlineMonotonic,
    /// The earliest deadline first.
    EarliestDeadline,
}

/// The frontier of tasks in that order, by the exact test.
pub fn frontier_of(
    order: Order,
    tasks: &[Task],
    periods_ns: &[u64],
    switch_cost_ns: u64,
) -> Option<Frontier> {
    let ranked = match order {
        Order::RateMonotonic => rate_monotonic(tasks),
        _ => deadline_monotonic(tasks),
    };
    let ranked: Vec<_> = ranked.iter().map(|index| tasks[*index]).collect();
    let (mut fixed, mut edf) = (FixedPriority::new(), Edf::new());
    let holds = |supply: &Supply| match order {
        Order::EarliestDeadline => edf.schedulable(&ranked, supply),
        _ => fixed.schedulable(&ranked, supply),
    };
    frontier(tasks, periods_ns, switch_cost_ns, holds)
}

/// Periods to look at where nobody says which: a hundred, up to the shortest deadline.
pub fn usual_periods(tasks: &[Task]) -> Vec<u64> {
    const POINTS: u64 = 100;
    let shortest = tasks.iter().map(|task| task.deadline_ns.min(task.period_ns)).min().unwrap_or(1);
    let mut periods: Vec<_> = (1..=POINTS).map(|point| (shortest / POINTS).max(1) * point).collect();
    periods.dedup();
    periods
}
