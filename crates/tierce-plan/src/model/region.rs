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

    /// No region is longer than that; of whole jobs floating regions become, which with 0 are gone.
    pub fn limit(&mut self, most_ns: u64) {
        match self {
            Self::Regions(regions) => {
                regions.iter_mut().for_each(|region| region.length_ns = most_ns.min(region.length_ns));
            }
            Self::None | Self::Floating(_) if most_ns == 0 => *self = Self::Full,
            Self::None => *self = Self::Floating(most_ns),
            Self::Floating(length_ns) => *length_ns = most_ns.min(*length_ns),
            Self::Full | Self::Threshold(_) => {}
        }
    }

    /// Jobs give way at any time.
    pub fn is_full(&self) -> bool {
        *self == Self::Full
    }
}
