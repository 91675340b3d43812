//! The laws of policies: what each tests, and what it makes of what its node is guaranteed. One file a policy, as in `policy/`.
//!
//! What stands below a node of several CPUs: `several_cpus.rs`.

mod briefly_blocked;
mod chain_offsets;
mod constraint;
mod edf;
mod fair;
pub mod fixed_priority;
mod i_plus_pi;
mod known_phases;
pub mod mixed_criticality;
mod multiburst;
pub mod node;
pub mod policy;
pub mod reservation;
mod round_robin;
pub mod several_cpus;
mod slots;
mod time_sharing;
pub mod uniform;
mod utilisation_and_demand;

pub use policy::Laws;

use crate::verdict::{Given, NodeVerdict};
use node::Node;
use tierce_plan::policies::PolicyRecord;

/// The laws of a policy.
pub fn of(policy: &PolicyRecord) -> &'static dyn Laws {
    named(policy.name).unwrap_or(&Unknown)
}

fn named(name: &str) -> Option<&'static dyn Laws> {
    Some(match name {
        "fixed-priority" => &fixed_priority::FixedPriority,
        "edf" => &edf::Edf,
        "reservation" => &reservation::Reservation,
        "fair" => &fair::Fair,
        "round-robin" => &round_robin::RoundRobin,
        "slots" => &slots::Slots,
        "i-plus-pi" => &i_plus_pi::IPlusPi,
        "multiburst" => &multiburst::Multiburst,
        "time-sharing" => &time_sharing::TimeSharing,
        "uniform" => &uniform::Uniform,
        "constraint" => &constraint::Constraint,
        "briefly-blocked" => &briefly_blocked::BrieflyBlocked,
        "mixed-criticality" => &mixed_criticality::MixedCriticality,
        _ => return None,
    })
}

/// A policy of the user's: what it guarantees is in its author's head, so nothing is.
struct Unknown;

impl Laws for Unknown {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        let (name, policy) = (node.name(), node.policy.name);
        Ok(node.gives_nothing(format!(
            "nothing is known of what `{name}` guarantees: `{policy}` is no policy of Tierce's"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_plan::policies::policies;

    #[test]
    fn each_policy_has_its_laws() {
        for policy in policies() {
            assert!(named(policy.name).is_some(), "no line for `{}`", policy.name);
        }
        assert!(named("lottery-of-the-day").is_none());
    }
}
