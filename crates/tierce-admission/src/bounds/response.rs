//! Bounds on response times, and why there is none.

use crate::share::Share;
use tierce_analysis::Response;

/// What is known of the longest response of a task, from its nominal release.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// No job takes longer.
    pub response: Response,
    /// What says so.
    pub test: &'static str,
    /// With some phases, jitter and works of the tasks some job takes as long.
    pub exact: bool,
}

/// The better of two bounds.
pub fn shorter(known: Option<Bound>, other: Bound) -> Option<Bound> {
    let ns = |bound: &Bound| bound.response.ns().unwrap_or(u64::MAX);
    known.into_iter().chain([other]).min_by_key(ns)
}

/// Why no bound was found.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// In words.
    pub why: String,
    /// The tests.
    pub test: &'static str,
    /// What is too much, of a CPU.
    pub share: Option<Share>,
}
