//! One thing that was looked at, and how it came out.

use std::fmt;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Found,
    /// Worth knowing: how this machine behaves while a plan is in force.
    Note,
    /// A plan can be enforced, but not all of it will work, or nobody has tried.
    Warning,
    /// No plan can be enforced.
    Missing,
}

impl State {
    pub(super) fn sign(self) -> char {
        match self {
            State::Found => '✓',
            State::Note => '·',
            State::Warning => '!',
            State::Missing => '✗',
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            State::Found => "found",
            State::Note => "note",
            State::Warning => "warning",
            State::Missing => "missing",
        }
    }
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub what: &'static str,
    /// How it came out.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What would help.
    pub help: Option<String>,
}

impl Check {
    pub(super) fn new(what: &'static str, state: State, found: impl Into<String>) -> Check {
        Check { what, state, found: found.into(), help: None }
    }

    pub(super) fn found(what: &'static str, found: impl Into<String>) -> Check {
        Check::new(what, State::Found, found)
    }

    pub(super) fn missing(what: &'static str, found: impl Into<String>, help: impl Into<String>) -> Check {
        Check { help: Some(help.into()), ..Check::new(what, State::Missing, found) }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Check {
        Check { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:<17} {}", self.state.sign(), self.what, self.found)?;
        match &self.help {
            Some(help) => write!(f, "\n  {:<17} → {help}", ""),
            None => Ok(()),
        }
    }
}
