//! Parts of jobs that no other task directly below the same node preempts.

/// When a job gives way to the other tasks of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Preemption {
    /// At any time.
    #[default]
    Full,
    /// Not before its end, once it has begun.
    None,
    /// Not within these, which are in their order.
    Regions(Vec<Region>),
    /// Not for up to that much CPU time (ns) from any place on: a floating region.
    Floating(u64),
    /// Only to tasks with a larger priority than that: a preemption threshold.
    Threshold(u64),
}

/// A part of each job that is not preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it begins: CPU time since the begin of the job.
    pub at_ns: u64,
    /// CPU time.
    pub length_ns: u64,
}

impl Preemption {
    /// As in plans, where a load has no regions.
    pub const NAMES: [(&'static str, Self); 2] = [("full", Self::Full), ("none", Self::None)];

    /// Jobs give way at any time.
    pub fn is_full(&self) -> bool {
        *self == Self::Full
    }
}
