//! Chains of tasks: what comes in at the first is passed on from one to the next.

use crate::text::source::Spot;
use std::fmt;

/// Bytes of a mark's label, at most.
pub const MARK_BYTES: usize = 8;

/// `[chain.NAME]`.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Unique over nodes, tasks, sets and chains.
    pub name: String,
    /// From the first task to the last; at least two, no task twice.
    pub links: Vec<Link>,
    /// How long it may take.
    pub needs: Vec<Within>,
    /// Label of the marks by which live programs say what they pass on, 1 to [`MARK_BYTES`] bytes; otherwise their wake-ups tell.
    pub mark: Option<String>,
    /// Where it is defined.
    pub spot: Spot,
}

/// A task of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Index into [`crate::Plan::tasks`]. With [`crate::Load::Triggered`] the one before it releases its jobs, else it reads what that wrote last.
    pub task: usize,
    /// What comes from the one before it comes so much later; 0 of the first.
    pub delay_ns: u64,
}

/// A time that a chain takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// From the nominal release of a job of the first task to the end of a job of the last that knows of it, or of a later one.
    Response,
    /// From an event that the first task looks at to the end of a job of the last that knows of it.
    Reaction,
    /// From the nominal release of a job of the first task to the end of any job of the last that knows of no later one.
    Age,
}

impl Latency {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Response, Self::Reaction, Self::Age];

    /// As plans name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Reaction => "reaction",
            Self::Age => "age",
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `needs = "reaction within 30ms"`.
#[derive(Clone, Debug)]
pub struct Within {
    /// What.
    pub latency: Latency,
    /// At most that.
    pub most_ns: u64,
    /// As written.
    pub text: String,
    /// Where.
    pub spot: Spot,
}
