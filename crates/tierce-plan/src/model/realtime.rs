//! Threads of the kernel's real-time classes.

use std::fmt;

/// Of a member that the plan counts, which is no thread: the least that a real-time thread can have.
pub const PRIORITY_MIN: u64 = 1;

/// A class that runs before all others but SCHED_DEADLINE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// SCHED_FIFO: a thread runs until it blocks.
    Fifo,
    /// SCHED_RR: threads of the same priority take turns.
    RoundRobin,
}

/// As its thread, or somebody else, has asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// Which class.
    pub class: Class,
    /// 1 to 99.
    pub priority: u32,
}

impl fmt::Display for RealTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::Fifo => "SCHED_FIFO",
            Class::RoundRobin => "SCHED_RR",
        };
        write!(f, "{class} {}", self.priority)
    }
}

/// `class` of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchClass {
    /// `"fifo"`
    Fifo,
    /// `"rr"`
    RoundRobin,
    /// `"realtime"`: either.
    RealTime,
}

impl MatchClass {
    /// All there are.
    pub const ALL: [MatchClass; 3] = [MatchClass::Fifo, MatchClass::RoundRobin, MatchClass::RealTime];

    /// As in a plan.
    pub fn name(self) -> &'static str {
        match self {
            MatchClass::Fifo => "fifo",
            MatchClass::RoundRobin => "rr",
            MatchClass::RealTime => "realtime",
        }
    }

    /// Whether it fits a thread of this class.
    pub fn fits(self, class: Class) -> bool {
        match self {
            MatchClass::Fifo => class == Class::Fifo,
            MatchClass::RoundRobin => class == Class::RoundRobin,
            MatchClass::RealTime => true,
        }
    }

    /// Whether it fits all that the other fits.
    pub fn covers(self, other: MatchClass) -> bool {
        self == MatchClass::RealTime || self == other
    }
}
