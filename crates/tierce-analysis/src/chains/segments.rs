//! From segments to the whole chain.
//!
//! Jobs of one segment are done in order, and each reads what was written last, at any time between its nominal release and its
//! end. With T the longest distance of releases, R the longest time from the nominal release at the head of a segment to its
//! end, and d the delay until what it wrote can be read:
//!
//! - **Response**, from the nominal release of a job of the first task to the end of a job of the last that knows of it: what a segment
//!   wrote is read at the latest by the first job of the next that is released after it could be read, R + d + T' after the
//!   segment's own release (T' of the next). So Σ over all but the last (R + d + T'), and R of the last.
//! - **Reaction**, from an event on: it may come just after a job of the first task has looked, which was not before its nominal release. The
//!   next one is released within T: one T of the first segment more. Altogether Σ(T + R) + Σd (Davare et al. 2007).
//! - **Age**, of what the last task tells, from the nominal release of the job that sampled it: a job reads what was written last, so that the
//!   job after the one it knows of had not ended; that one was released no more than T + R + d before. So Σ over all but the last
//!   (T + R + d), and R of the last. Reaction and what an output shows until the next one replaces it are the same bound (Günzel et al. 2023).
//!
//! Where a segment is one punctual task that always goes before the next one when both are ready (fixed priorities, one CPU, no delay), a job of
//! the next that is released together with it or later reads what it wrote: T' and T in place of R + T' and T + R. That is no more than
//! what Dürr et al. 2019 have for this case, max(R, T').

use super::Span;

/// A task with a period, and those that are triggered one after the other from it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The longest distance of two nominal releases of its head.
    pub period_ns: u64,
    /// From the nominal release of its head to the end of its last task.
    pub done: Span,
    /// From then until the next segment can read it.
    pub delay_ns: u64,
    /// It is one task without jitter, and the head of the next segment never begins while it is ready.
    pub goes_before_next: bool,
}

impl Segment {
    /// What reading adds to the periods alone.
    fn reading_ns(&self) -> u64 {
        if self.goes_before_next && self.delay_ns == 0 {
            0
        } else {
            self.done.most_ns.saturating_add(self.delay_ns)
        }
    }
}

/// Of a whole chain; `None` where there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No job of the last task that knows of one of the first is done earlier after that one's nominal release.
    pub least_ns: u64,
    /// From the nominal release of a job of the first task to the end of a job of the last that knows of it or of a later one.
    pub response_ns: Option<u64>,
    /// From an event that the first task looks at to the end of a job of the last that knows of it.
    pub reaction_ns: Option<u64>,
    /// From the nominal release of the first task's job to the end of the last task's job that tells of it.
    pub age_ns: Option<u64>,
}

/// Of the chain that these make.
pub fn bounds(segments: &[Segment]) -> Bounds {
    let last = segments.last().map_or(0, |segment| segment.done.most_ns);
    let pairs = || segments.windows(2);
    let sum = |first: u64, add: &dyn Fn(&[Segment]) -> u64| {
        pairs().fold(first, |sum, pair| sum.saturating_add(add(pair)))
    };
    let response_ns = sum(last, &|pair| pair[0].reading_ns().saturating_add(pair[1].period_ns));
    let age_ns = sum(last, &|pair| pair[0].reading_ns().saturating_add(pair[0].period_ns));
    let first_ns = segments.first().map_or(0, |segment| segment.period_ns);
    let least = |segment: &Segment| segment.done.least_ns.saturating_add(segment.delay_ns);
    // Where the work of one is counted within the response of the next, no segment is bounded less than the others.
    let bounded = segments.iter().all(|segment| segment.done.most_ns < u64::MAX);
    let bound = |ns: u64| Some(ns).filter(|ns| bounded && *ns < u64::MAX);
    Bounds {
        least_ns: segments.iter().map(least).fold(0, u64::saturating_add),
        response_ns: bound(response_ns),
        reaction_ns: bound(response_ns.saturating_add(first_ns)),
        age_ns: bound(age_ns),
    }
}
