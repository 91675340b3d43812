//! Chains of a plan, with the bounds that check finds.

use tierce_admission::Admission;
use tierce_plan::{Latency, Plan};
use tierce_trace::ChainInfo;

/// As a trace says it.
pub fn of(plan: &Plan, admission: &Admission) -> Vec<ChainInfo> {
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
