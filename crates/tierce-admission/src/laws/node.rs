//! A node as the laws of policies see it, and what they have in common.

use crate::bounds::leftover_supply::Taken;
use crate::demand::overheads::{Overheads, Timers};
use crate::verdict::{Given, Promise};
use tierce_analysis::chains::Offset;
use tierce_analysis::Supply;
use tierce_guarantee::{whole, Guarantee, Kind, Parameter};
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::{Plan, Shape};

/// A node that one CPU reaches, and what it is promised.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    pub plan: &'a Plan,
    pub shape: &'a Shape,
    pub policy: &'static PolicyRecord,
    pub index: usize,
    /// To its children.
    pub edges: &'a [usize],
    pub received: &'a [Promise],
    pub overheads: &'a Overheads<'a>,
    /// 1 where its policy has none.
    pub quantum_ns: u64,
    /// Whether anybody asks what is promised through an edge; if not, nothing has to be, or only the guarantee without what it follows
    /// from.
    pub asked: &'a dyn Fn(usize) -> bool,
    /// What comes through an edge of the plan takes at most; `None`: that is not bounded.
    pub taken: &'a dyn Fn(usize) -> Option<Taken>,
    /// Of each task of a plan with chains, where its jobs are among those that one head releases; none of other plans.
    pub offsets: &'a [Offset],
}

impl Node<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.plan.nodes[self.index].name
    }

    /// To none of its children.
    pub fn gives_nothing(&self, because: String) -> Vec<Given> {
        vec![Promise::nothing(because); self.edges.len()]
    }

    /// Position of a parameter of its edges.
    pub fn edge_param(&self, name: &str) -> Option<usize> {
        policies::position(&self.policy.edge_params, name)
    }
}

/// The promises that are sure to supply something in windows, with that supply.
pub fn supplies(received: &[Promise]) -> impl Iterator<Item = (&Promise, Supply)> {
    let sure = |guarantee| Supply::of(guarantee).or_else(|| Supply::of(&until_deadlines(guarantee)?));
    received.iter().filter_map(move |promise| Some((promise, sure(&promise.guarantee)?)))
}

/// What timers leave of promises; those of which nothing is left are gone.
pub fn less_timers(received: &[Promise], timers: &Timers) -> Vec<Promise> {
    let left = |promise: &Promise| {
        let guarantee = timers.leave(&promise.guarantee)?;
        Some(Promise { guarantee, ..promise.clone() })
    };
    received.iter().filter_map(left).collect()
}

/// What RESU is until deadlines that are announced, where other guarantees are what they are; it says nothing of other windows.
pub fn until_deadlines(guarantee: &Guarantee) -> Option<Guarantee> {
    let share = guarantee.get(Parameter::Share).filter(|_| guarantee.kind() == Kind::Resu)?;
    Guarantee::new(Kind::Psbe, vec![share.clone(), whole(0)])
}

/// A formula.
pub const LESS_COSTS: &str = "less switches and timers";

/// Why nothing is left.
pub const COSTS_TAKE_ALL: &str = "switches and timers may take all of it";

/// The costs to be taken off, where there are any; or why they are not known.
pub fn known<T>(none: bool, costs: impl FnOnce() -> Result<T, String>) -> Result<Option<T>, String> {
    if none {
        return Ok(None);
    }
    costs().map(Some).map_err(|unknown| format!("how often others come between is not known: {unknown}"))
}
