//! What a task does: jobs, stages of jobs, or a list of steps.

use super::lock::Section;
use super::region::Preemption;

/// What a task does in the simulator.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Always wants a CPU.
    Busy,
    /// A job every period.
    Periodic(Periodic),
    /// Jobs at least some time apart.
    Sporadic(Sporadic),
    /// A job whenever the tasks before it in its chains have ended theirs.
    Triggered(Triggered),
    /// A list of things to do, over and over.
    Phases(Phases),
    /// Periodic jobs whose numbers change at given times.
    Stages(Stages),
}

impl Load {
    /// Relative deadline of its jobs, if they have one.
    pub fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Busy => None,
            Self::Periodic(load) => Some(load.deadline_ns),
            Self::Sporadic(load) => Some(load.deadline_ns),
            Self::Triggered(_) => None,
            Self::Phases(load) => load.deadline_ns,
            Self::Stages(load) => load.jobs().map(|jobs| jobs.deadline_ns).min(),
        }
    }

    /// From release to release, at least; of stages the shortest one.
    pub fn shortest_period_ns(&self) -> Option<u64> {
        match self {
            Self::Busy | Self::Phases(_) => None,
            Self::Periodic(load) => Some(load.period_ns),
            Self::Sporadic(load) => Some(load.separation_ns),
            Self::Triggered(load) => Some(load.period_ns),
            Self::Stages(load) => load.jobs().map(|jobs| jobs.period_ns).min(),
        }
    }

    /// Parts of each of its jobs that hold locks, in their order.
    pub fn sections(&self) -> &[Section] {
        match self {
            Self::Periodic(load) => &load.sections,
            Self::Sporadic(load) => &load.sections,
            Self::Triggered(load) => &load.sections,
            Self::Busy | Self::Phases(_) | Self::Stages(_) => &[],
        }
    }

    /// When each of its jobs gives way to other tasks of its node.
    pub fn preemption(&self) -> &Preemption {
        match self {
            Self::Periodic(load) => &load.preemption,
            Self::Sporadic(load) => &load.preemption,
            Self::Triggered(load) => &load.preemption,
            Self::Busy | Self::Phases(_) | Self::Stages(_) => &Preemption::Full,
        }
    }

    /// The same, to be changed.
    pub fn sections_mut(&mut self) -> &mut [Section] {
        match self {
            Self::Periodic(load) => &mut load.sections,
            Self::Sporadic(load) => &mut load.sections,
            Self::Triggered(load) => &mut load.sections,
            Self::Busy | Self::Phases(_) | Self::Stages(_) => &mut [],
        }
    }

    /// The same of [`Self::preemption`], where jobs may have regions.
    pub fn preemption_mut(&mut self) -> Option<&mut Preemption> {
        match self {
            Self::Periodic(load) => Some(&mut load.preemption),
            Self::Sporadic(load) => Some(&mut load.preemption),
            Self::Triggered(load) => Some(&mut load.preemption),
            Self::Busy | Self::Phases(_) | Self::Stages(_) => None,
        }
    }

    /// Its jobs come in bursts: closer to each other for a while than in the long run.
    pub fn is_bursty(&self) -> bool {
        matches!(self, Self::Sporadic(load) if !load.further_ns.is_empty())
    }

    /// What each of its jobs works, where that is one number.
    pub fn work(&self) -> Option<&Work> {
        match self {
            Self::Periodic(load) => Some(&load.work),
            Self::Sporadic(load) => Some(&load.work),
            Self::Triggered(load) => Some(&load.work),
            Self::Busy | Self::Phases(_) | Self::Stages(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn work_mut(&mut self) -> Option<&mut Work> {
        match self {
            Self::Periodic(load) => Some(&mut load.work),
            Self::Sporadic(load) => Some(&mut load.work),
            Self::Triggered(load) => Some(&mut load.work),
            Self::Busy | Self::Phases(_) | Self::Stages(_) => None,
        }
    }

    /// Misses are counted, but nothing needs to be shown.
    pub fn is_soft(&self) -> bool {
        match self {
            Self::Busy | Self::Triggered(_) => false,
            Self::Periodic(load) => load.soft,
            Self::Sporadic(load) => load.soft,
            Self::Phases(load) => load.soft,
            Self::Stages(load) => load.soft,
        }
    }
}

/// Jobs are released at epoch + phase + k · period + jitter; a late job delays the next, none is dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Periodic {
    /// From release to release.
    pub period_ns: u64,
    /// CPU time of each job.
    pub work: Work,
    /// Relative to the release without jitter; at most the period.
    pub deadline_ns: u64,
    /// First release after the epoch.
    pub phase_ns: u64,
    /// Each release is late by a draw from 0 to this; less than the period.
    pub jitter_ns: u64,
    /// Misses are by design: check need not show that there are none.
    pub soft: bool,
    /// Parts of each job that hold locks, in their order.
    pub sections: Vec<Section>,
    /// When each job gives way to other tasks of its node.
    pub preemption: Preemption,
}

/// Of a list of separations.
pub const SEPARATIONS_MAX: usize = 256;

/// The next job is released `separation` plus a draw from 0 to `extra` after the last release; later where the distances to the jobs
/// before that one say so.
#[derive(Clone, Debug, PartialEq)]
pub struct Sporadic {
    /// At least this from release to release.
    pub separation_ns: u64,
    /// At least these from a release to the second, third, … after it, ascending; empty: what `separation_ns` implies.
    pub further_ns: Vec<u64>,
    /// At most this is added, drawn uniformly.
    pub extra_ns: u64,
    /// CPU time of each job.
    pub work: Work,
    /// Relative to the release; at most the last separation that is given.
    pub deadline_ns: u64,
    /// First release after the epoch.
    pub phase_ns: u64,
    /// Misses are by design: check need not show that there are none.
    pub soft: bool,
    /// Parts of each job that hold locks, in their order.
    pub sections: Vec<Section>,
    /// When each job gives way to other tasks of its node.
    pub preemption: Preemption,
}

/// Each job is released by the end of one job of every task before it in the chains of the plan ([`crate::Plan::triggers`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Triggered {
    /// CPU time of each job.
    pub work: Work,
    /// Least distance of the jobs that release it in the end: of the first task of its chains.
    pub period_ns: u64,
    /// That task may come later than its period.
    pub sporadic: bool,
    /// How much later than at the earliest a job may be released, where check has found that.
    pub jitter_ns: Option<u64>,
    /// Parts of each job that hold locks, in their order.
    pub sections: Vec<Section>,
    /// When each job gives way to other tasks of its node.
    pub preemption: Preemption,
}

/// A list of phases, repeated. A job begins with the first `run` after a `sleep`, a `timer` or the start of the list,
/// and ends at the next `sleep`, `timer` or the end of the list: the same rule as for live threads, with the end of
/// the list in place of what cannot be seen from outside. A list that only runs is a CPU-bound task whose jobs follow
/// each other at once (a frame renderer). `suspend` is a pause inside a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Phases {
    /// What to do; at least one, and a pass takes time.
    pub phases: Vec<Phase>,
    /// Passes through the list; 0: for ever.
    pub repeat: u64,
    /// Start after the epoch.
    pub phase_ns: u64,
    /// Of each job, relative to its begin.
    pub deadline_ns: Option<u64>,
    /// Misses are by design: check need not show that there are none.
    pub soft: bool,
}

/// One step of [`Phases`].
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Use that much CPU time.
    Run {
        /// How much.
        work: Work,
        /// At its begin the task asks for a time constraint: all of it within that long.
        within_ns: Option<u64>,
    },
    /// Wait that long from now on; ends the job.
    Sleep(Work),
    /// Wait that long from now on; the job goes on.
    Suspend(Work),
    /// Wait until `period` after the last expiry of this timer (at first: after the start of the load); ends the job.
    Timer {
        /// Which of the task's timers, from 0.
        timer: u32,
        /// From expiry to expiry.
        period_ns: u64,
        /// What to do when that time is already past: `false`: the timer starts afresh now; `true`: go on at once and
        /// keep the original times.
        absolute: bool,
    },
}

/// Periodic jobs whose numbers change. Each stage lasts until the next one begins; jobs released in it are late or not by its
/// numbers, also when they run on in the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// At least one; the first begins at the epoch, and each before the next.
    pub stages: Vec<Stage>,
    /// Misses are by design: check need not show that there are none.
    pub soft: bool,
}

/// One of [`Stages`].
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// When it begins, after the epoch.
    pub from_ns: u64,
    /// Its jobs, the first of them released when it begins; `None`: it has none.
    pub jobs: Option<StageJobs>,
}

/// Jobs of a [`Stage`].
#[derive(Clone, Debug, PartialEq)]
pub struct StageJobs {
    /// From release to release.
    pub period_ns: u64,
    /// CPU time of each job.
    pub work: Work,
    /// Relative to the release; at most the period.
    pub deadline_ns: u64,
}

impl Stages {
    /// Of the stages that have some.
    pub fn jobs(&self) -> impl Iterator<Item = &StageJobs> {
        self.stages.iter().filter_map(|stage| stage.jobs.as_ref())
    }
}

/// An amount of time, constant or drawn anew for each job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Always the same.
    Constant(u64),
    /// Uniform from min to max, both included.
    Uniform {
        /// Least, ns.
        min_ns: u64,
        /// Most, ns.
        max_ns: u64,
    },
    /// These in turn, over and over.
    List(Vec<u64>),
}

impl Work {
    /// The largest amount it can be, ns.
    pub fn max_ns(&self) -> u64 {
        match self {
            Self::Constant(work) => *work,
            Self::Uniform { max_ns, .. } => *max_ns,
            Self::List(list) => list.iter().copied().max().unwrap_or(0),
        }
    }

    /// Nothing above `most_ns`.
    pub fn limit(&mut self, most_ns: u64) {
        match self {
            Self::Constant(work) => *work = most_ns.min(*work),
            Self::Uniform { min_ns, max_ns } => {
                (*min_ns, *max_ns) = (most_ns.min(*min_ns), most_ns.min(*max_ns));
            }
            Self::List(list) => list.iter_mut().for_each(|work| *work = most_ns.min(*work)),
        }
    }

    /// The smallest amount it can be, ns.
    pub fn min_ns(&self) -> u64 {
        match self {
            Self::Constant(work) => *work,
            Self::Uniform { min_ns, .. } => *min_ns,
            Self::List(list) => list.iter().copied().min().unwrap_or(0),
        }
    }
}
