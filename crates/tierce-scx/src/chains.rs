//! Chains of a plan, with the bounds that check finds.

use tierce_admission::{Admission, PlanExt};
use tierce_plan::{Latency, Plan};
use tierce_trace::ChainInfo;

/// As a trace says it, of a plan whose admission is not known.
pub fn bounded(plan: &Plan) -> Vec<ChainInfo> {
    if plan.chains.is_empty() {
        return Vec::new(); // an admission takes time
    }
    chains_of(plan, &plan.admit())
}

/// As a trace says it.
pub fn chains_of(plan: &Plan, admission: &Admission) -> Vec<ChainInfo> {
    let chains = plan.chains.iter().zip(&admission.chains);
    let bounded = chains.map(|(chain, verdict)| {
        let mut info = ChainInfo::of(plan, chain);
        for latency in Latency::ALL {
            *info.bounds.of(latency) = verdict.bound_ns(latency);
        }
        info
    });
    bounded.collect()
}
