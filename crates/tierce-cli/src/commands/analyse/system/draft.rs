//! Tasks while a file is read.

use tierce_analysis::locks::CriticalSection;
use tierce_analysis::Entry;
use tierce_plan::Spot;

/// A task as it was read.
pub struct Draft {
    /// A triggered one has the period of its head once chains are known.
    pub entry: Entry,
    pub spot: Spot,
    pub cpu: Option<usize>,
    pub sections: Vec<CriticalSection>,
    pub least_work_ns: u64,
    pub extra_ns: u64,
    pub triggered: bool,
    /// What releases it, and how much later.
    pub after: Vec<(usize, u64)>,
    /// Its jobs come in bursts.
    pub bursts: bool,
}
