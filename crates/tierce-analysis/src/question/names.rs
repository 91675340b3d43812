//! Policies and options by the names that people write.

use crate::criticality::Scheme;
use crate::partition::Fit;

/// One of a few things, each with a name and a line about it.
pub trait Named: Copy + PartialEq + 'static {
    /// All of them, in the order in which help lists them.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// Its name.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(one, ..)| *one == self).map_or("", |(_, name, _)| name)
    }

    /// The one of that name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, other, _)| *other == name).map(|(one, ..)| *one)
    }
}

/// By which policy tasks are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the list below says what each is")]
pub enum Policy {
    Fp,
    Rm,
    Dm,
    Dkc,
    Audsley,
    Edf,
    Fifo,
    Amc,
    Smc,
    Vestal,
    EdfVd,
    Pd2,
    Federated,
}

impl Named for Policy {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Fp, "fp", "Fixed priorities as in the table, or deadline monotonic; equal priorities wait for each other"),
        (Self::Rm, "rm", "Rate monotonic: the shorter the period, the higher the priority"),
        (Self::Dm, "dm", "Deadline monotonic"),
        (Self::Dkc, "dkc", "The smaller deadline - k work, the higher; k depends on the number of CPUs, and is 0 for one"),
        (
            Self::Audsley,
            "audsley",
            "Fixed priorities in an order that meets all deadlines, if there is one (on several CPUs: if one is found)",
        ),
        (Self::Edf, "edf", "Earliest deadline first"),
        (Self::Fifo, "fifo", "First in, first out: in the order in which jobs become ready, each to its end"),
        (
            Self::Amc,
            "amc",
            "Two criticalities, fixed priorities: as soon as a job works longer than its work, only `hi` tasks are released (AMC-rtb)",
        ),
        (Self::Smc, "smc", "The same, but all tasks are released for ever, and only `lo` ones are held to their work"),
        (
            Self::Vestal,
            "vestal",
            "The same, but nothing is held to its work: at the worst all tasks need their work_hi (Vestal)",
        ),
        (
            Self::EdfVd,
            "edf-vd",
            "Two criticalities, earliest deadline first: `hi` tasks are due earlier until a job works longer than its work",
        ),
        (
            Self::Pd2,
            "pd2",
            "Pfair on several CPUs (PD²): in each --quantum the subtasks that are due first, a fair share for each task at any time",
        ),
        (
            Self::Federated,
            "federated",
            "Parallel tasks (column span) on several CPUs: each that needs more than one has some of its own, the others share one by EDF",
        ),
    ];
}

impl Policy {
    /// How tasks of two criticalities are scheduled by it.
    pub fn mixed(self) -> Option<MixedPolicy> {
        match self {
            Self::Amc => Some(MixedPolicy::Fixed(Scheme::Amc)),
            Self::Smc => Some(MixedPolicy::Fixed(Scheme::Smc)),
            Self::Vestal => Some(MixedPolicy::Fixed(Scheme::Vestal)),
            Self::EdfVd => Some(MixedPolicy::VirtualDeadlines),
            _ => None,
        }
    }
}

/// How tasks of two criticalities are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixedPolicy {
    /// By priorities.
    Fixed(Scheme),
    /// By deadlines, at first earlier ones.
    VirtualDeadlines,
}

/// Where jobs may be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the list below says what each is")]
pub enum Preemption {
    Full,
    None,
    Limited,
    Floating,
    Thresholds,
}

impl Named for Preemption {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Full, "full", "At any time; section, last_section and threshold have no effect"),
        (Self::None, "none", "Not at all: a job that has begun goes on to its end"),
        (Self::Limited, "limited", "Not in regions of up to section, nor in the last one of last_section"),
        (Self::Floating, "floating", "Not in regions of up to section, at any place or at none"),
        (
            Self::Thresholds,
            "thresholds",
            "After a job has begun, by tasks above its threshold: of the column, else the lowest ones that meet all deadlines",
        ),
    ];
}

/// What is known of the first jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the list below says what each is")]
pub enum Offsets {
    #[default]
    Unknown,
    Known,
}

impl Named for Offsets {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Unknown, "unknown", "All phases are considered"),
        (
            Self::Known,
            "known",
            "The first job of each task comes at its offset, the others exactly a period apart",
        ),
    ];
}

impl Named for Fit {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::First, "first", "The lowest CPU first, tasks by decreasing utilisation"),
        (Self::Best, "best", "The fullest CPU first, tasks by decreasing utilisation"),
        (Self::Worst, "worst", "The emptiest CPU first, tasks by decreasing utilisation"),
        (Self::Next, "next", "The CPU of the task before, then the next one, by decreasing utilisation"),
        (
            Self::Period,
            "period",
            "By period, so that the periods on one CPU are as similar as possible: fewer switches",
        ),
        (Self::Mixed, "mixed", "By period, dealt out: each CPU gets periods of all lengths"),
    ];
}
