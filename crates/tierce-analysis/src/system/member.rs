//! Tasks and chains as they are given.

use crate::locks::CriticalSection;
use crate::Entry;

/// A task.
#[derive(Clone, Debug)]
pub struct Member {
    /// As a line of a table. A triggered one has the period of its head, also as deadline.
    pub entry: Entry,
    /// Its sections with locks, in their order.
    pub sections: Vec<CriticalSection>,
    /// The least work of a job.
    pub least_work_ns: u64,
    /// By how much the next nominal release may be later than a period.
    pub extra_ns: u64,
    /// The end of a job of each of these, so much later, releases one of it; none: it has a period of its own.
    pub after: Vec<(usize, u64)>,
}

/// A chain: from its first task to its last, each with the delay before it (0 of the first).
#[derive(Clone, Debug)]
pub struct Path {
    /// Task and delay.
    pub links: Vec<(usize, u64)>,
}
