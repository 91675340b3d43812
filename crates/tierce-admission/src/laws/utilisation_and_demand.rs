//! Two tests of what the children of a node ask for together: the sum of their utilisations, and the demand of every window.

use crate::bounds::smallest_reduction::mend_by_bisection;
use crate::share::{self, fraction, percent, percent_given, ratio, Share};
use crate::verdict::{Excess, Failure, Mend, NodeVerdict};
use tierce_analysis::requests::{self, Requesting};
use tierce_analysis::{Demand, Edf, Supply, Task};
use tierce_plan::{show_time, Edge};

/// What the second look at deadlines rests on, once it could be taken.
pub const ONLY_UTILISATION: &str = "deadlines below periods were only tested by utilisation";

/// A test.
pub const DEMAND: &str = "the processor demand of every window (Baruah, Rosier & Howell 1990)";

/// The numbers of one law and what they belong to.
pub struct Terms<'a> {
    pub children: &'a [(usize, &'a Edge)],
    pub demands: Vec<Task>,
    /// The same where jobs differ or come in bursts.
    pub requests: Option<Vec<Requesting>>,
    /// What a person would reduce.
    pub parameter: &'static str,
    pub least_ns: u64,
    /// The most that a switch costs.
    pub switch_ns: u64,
    /// Of the work of each, what is not his to reduce: the switches of his jobs.
    pub extra_ns: u64,
}

impl Terms<'_> {
    /// Their sum is at most the bound; else a failure.
    pub fn utilisation(
        &self,
        rule: &'static str,
        what: &str,
        asked: &Share,
        bound: &Share,
        verdict: &mut NodeVerdict,
    ) {
        verdict.limited_by(bound);
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
        let first = match &self.requests {
            Some(requests) => (0..requests.len()).find(|at| requests::rate(&requests[..=*at]) > *bound),
            None => self.first(|tasks| tierce_analysis::utilisation(tasks) > *bound),
        };
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

    /// What is due in every window fits a whole CPU; else a failure.
    pub fn demand(&self, rule: &'static str, asked: &Share, verdict: &mut NodeVerdict) {
        let found = match &self.requests {
            Some(requests) => requests::earliest_deadline(requests, &Supply::WHOLE),
            None => Edf::new().demand(&self.demands, &Supply::WHOLE),
        };
        let (window_ns, due_ns) = match found {
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
        let alike = self.requests.is_none();
        let shortest = || Edf::new().shortest_excess(&self.demands, &Supply::WHOLE).filter(|_| alike);
        let (window_ns, due_ns) = shortest().unwrap_or((window_ns, due_ns));
        let (window, due) = (show_time(window_ns), show_time(due_ns));
        let with = match self.switch_ns {
            0 => String::new(),
            each => format!(", with switches of up to {} each", show_time(each)),
        };
        let edges: Vec<_> = self.children.iter().map(|(edge, _)| *edge).collect();
        let mut edf = Edf::new();
        let mut fails = |most: usize| match &self.requests {
            Some(requests) => requests::earliest_deadline(&requests[..most], &Supply::WHOLE) != Demand::Met,
            None => edf.shortest_excess(&self.demands[..most], &Supply::WHOLE).is_some(),
        };
        let first = (1..=edges.len()).find(|most| edges.len() <= 64 && fails(*most));
        let excess = Excess {
            edge: first.map(|most| edges[most - 1]).or(edges.last().copied()),
            test: DEMAND.into(),
            ns: Some(due_ns.saturating_sub(window_ns)),
            share: Some(ratio(due_ns.saturating_sub(window_ns), window_ns.max(1))),
        };
        let mend = || {
            let (parameter, least_ns) = (self.parameter, self.least_ns);
            mend_by_bisection(&edges, &self.demands, &Supply::WHOLE, parameter, least_ns, self.extra_ns)
        };
        verdict.failures.push(Failure {
            excess,
            rule,
            message: format!("In the window of {window} after all begin at once the demand is {due}{with}."),
            value: due,
            bound: window,
            mend: alike.then(mend).flatten(),
        });
    }

    /// The reduction that takes least; `reduce` says to what a term must shrink.
    fn mend(&self, reduce: impl Fn(&Task) -> Option<u64>) -> Option<Mend> {
        if self.requests.is_some() {
            return None; // of which job is not known
        }
        let options = self.children.iter().zip(&self.demands).filter_map(|((edge, _), demand)| {
            let to_ns = reduce(demand)?;
            let from_ns = demand.work_ns - self.extra_ns;
            Some(Mend { edge: *edge, parameter: self.parameter, from_ns, to_ns: to_ns - self.extra_ns })
        });
        options.min_by_key(|mend| (mend.from_ns - mend.to_ns, mend.edge))
    }
}
