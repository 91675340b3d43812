//! What an edge is promised, and whether it was kept.

use serde::{Deserialize, Serialize};
use tierce_policy::{policies, raw, NEVER};

/// What an edge is promised by its policy (a budget in every period, the work of a time constraint, a share until a deadline), or by its
/// parameters (a share in every window of some length), as the engine counts it: no lost record changes this. Only windows (periods) in which the child wanted the CPU all the time count: who sleeps is owed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// Windows that counted.
    pub windows: u64,
    /// Promised in these.
    pub promised_ns: u64,
    /// Received in these.
    pub received_ns: u64,
    /// The least that was received in one; null before the first.
    pub least_ns: Option<u64>,
    /// Windows in which less was received than promised.
    pub not_kept: u64,
    /// What was missing in these.
    pub missing_ns: u64,
    /// Why the last one was not kept; null also while its child still waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Unkept>,
}

/// Why a promise was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unkept {
    /// Other threads of the plan had the CPU.
    Others,
    /// At least as much as is missing was stolen.
    Stolen,
    /// The CPU was offline, or a higher scheduling class had it for long.
    CpuAway,
}

impl Unkept {
    /// `enum tierce_unkept`.
    pub fn of(number: u32) -> Option<Unkept> {
        [Unkept::Others, Unkept::Stolen, Unkept::CpuAway].get((number as usize).wrapping_sub(1)).copied()
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Unkept::Others => "others had the CPU",
            Unkept::Stolen => "stolen",
            Unkept::CpuAway => "the CPU was away",
        }
    }
}

impl Promise {
    /// What the engine has counted for an edge, and windows that have passed since while its child waited. `None`: nothing is promised
    /// to it, or nothing was owed yet.
    pub fn of(edge: &raw::Edge, now_ns: u64) -> Option<Promise> {
        const READY: u32 = 1;
        let counted = &edge.promise;
        let mut promise = Promise {
            windows: counted.windows.into(),
            promised_ns: counted.promised_ns,
            received_ns: counted.received_ns,
            least_ns: Some(counted.least_ns).filter(|&ns| ns != NEVER),
            not_kept: counted.broken.into(),
            missing_ns: counted.missing_ns,
            why: Unkept::of(counted.why),
        };
        let owed_ns = counted.owed_ns.max(0) as u64;
        if edge.state == READY && counted.end_ns < now_ns && owed_ns > 0 {
            let record = policies().iter().find(|policy| policy.number == edge.kind);
            let period = record
                .and_then(|record| record.edge_params.iter().position(|param| param.name == "period"))
                .and_then(|index| edge.param.get(index));
            let length = match counted.window_ns {
                0 => *period.unwrap_or(&0),
                of_share => of_share.into(),
            };
            let more = (now_ns - counted.end_ns).checked_div(length).unwrap_or(0);
            // A window of a share is counted by the next charge, even if it has received enough.
            let received_ns = edge.supply_ns.saturating_sub(counted.base_ns);
            let received_ns = if counted.window_ns == 0 { received_ns.min(owed_ns) } else { received_ns };
            let missing_ns = owed_ns.saturating_sub(received_ns);
            promise.windows += more + 1;
            promise.not_kept += more + u64::from(missing_ns > 0);
            promise.promised_ns = promise.promised_ns.saturating_add(owed_ns.saturating_mul(more + 1));
            promise.received_ns = promise.received_ns.saturating_add(received_ns);
            let missing_ns = missing_ns.saturating_add(owed_ns.saturating_mul(more));
            promise.missing_ns = promise.missing_ns.saturating_add(missing_ns);
            if missing_ns > 0 {
                promise.why = None; // the next charge finds out
            }
            let least_ns = if more > 0 { 0 } else { received_ns };
            promise.least_ns = Some(promise.least_ns.map_or(least_ns, |least| least.min(least_ns)));
        }
        (promise.windows > 0).then_some(promise)
    }
}
