//! Parts of jobs that no other task directly below the same node preempts.

use super::load::{Load, Work};
use super::{Plan, Task};

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

impl Load {
    /// The regions of its jobs, in their order; where they are not preempted at all, the longest job.
    pub fn regions(&self) -> Vec<Region> {
        match self.preemption() {
            Preemption::Full => Vec::new(),
            Preemption::None => {
                let length_ns = self.work().map_or(0, Work::max_ns);
                vec![Region { at_ns: 0, length_ns }]
            }
            Preemption::Regions(regions) => regions.clone(),
        }
    }

    /// How long the region is with which each job ends; 0: not each ends with one.
    pub fn last_region_ns(&self) -> u64 {
        let Some(work) = self.work() else { return 0 };
        let ends = |region: &Region| {
            let end_ns = region.at_ns + region.length_ns;
            *self.preemption() == Preemption::None || (work.min_ns() == end_ns && work.max_ns() == end_ns)
        };
        self.regions().last().filter(|region| ends(region)).map_or(0, |region| region.length_ns)
    }
}

impl Task {
    /// Its jobs do not always give way.
    pub fn has_regions(&self) -> bool {
        self.load.as_ref().is_some_and(|load| !load.preemption().is_full())
    }
}

impl Plan {
    /// What is to be said where threads run, not loads: which jobs give way although the plan says that they do not.
    pub fn gives_way_in_the_kernel(&self) -> Option<String> {
        let mut tasks = self.tasks.iter().filter(|task| task.has_regions());
        let (first, others) = (tasks.next()?, tasks.count());
        let others = if others > 0 { format!(" and {others} others") } else { String::new() };
        Some(format!(
            "jobs of `{}`{others} give way at any time here: only `tierce sim` plays `preemption` and `regions` of loads, and bounds of \
             `tierce check` that rest on them do not hold",
            first.name
        ))
    }
}
