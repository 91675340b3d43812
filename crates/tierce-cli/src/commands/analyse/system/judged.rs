//! Chains with their bounds, and whether these are what is needed.

use super::chains::Chain;
use tierce_analysis::system::Latencies;
use tierce_plan::Latency;

/// A chain and what was found.
pub struct Judged<'c> {
    pub chain: &'c Chain,
    pub latencies: Latencies,
}

impl Judged<'_> {
    pub fn bound_ns(&self, latency: Latency) -> Option<u64> {
        let bounds = &self.latencies.bounds;
        match latency {
            Latency::Response => bounds.response_ns,
            Latency::Reaction => bounds.reaction_ns,
            Latency::Age => bounds.age_ns,
        }
    }

    pub fn meets(&self, (latency, most_ns, _): &(Latency, u64, String)) -> bool {
        self.bound_ns(*latency).is_some_and(|ns| ns <= *most_ns)
    }

    /// Which analysis the bounds are of.
    pub fn analysis(&self) -> &'static str {
        match self.latencies.by_offsets() {
            true => "with offsets",
            false => "by jitter",
        }
    }
}
