//! What the engine and its callers tell each other by number, as Rust types: reasons, kinds of edges, messages, refused
//! operations, broken invariants.

use crate::raw;
use std::ffi::CStr;
use std::fmt;

/// "No such time": later than everything.
pub const NEVER: u64 = u64::MAX;

/// Why an edge is requested, released or revoked (`enum tierce_why`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Why {
    /// The child was blocked or had nothing; waking rules apply.
    Woke,
    /// It never stopped wanting; keys stay as they were.
    Restored,
    /// A control operation moved or changed it.
    Moved,
    /// The child can use no CPU now.
    Blocked,
    /// The budget is used up until it is replenished.
    Spent,
    /// The shared child runs elsewhere.
    NoRoom,
    /// Slot or round over, or the condition of the edge ended.
    Closed,
    /// Another edge was picked.
    Outranked,
    /// The edge is being removed.
    Gone,
}

/// What kind of way an edge is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// It stays, and is always open.
    #[default]
    Plain,
    /// Enabled only while every other edge of the child is spent (`when = "spent"`).
    WhenSpent,
    /// The child, a task, moves between the replicas of the spread node that it is below.
    Spread,
}

impl Way {
    /// Flags of `graph_edge_new`.
    pub fn flags(self) -> u32 {
        match self {
            Way::Plain => 0,
            Way::WhenSpent => raw::EDGE_WHEN_SPENT,
            Way::Spread => raw::EDGE_SPREAD,
        }
    }
}

impl From<bool> for Way {
    fn from(when_spent: bool) -> Way {
        if when_spent {
            Way::WhenSpent
        } else {
            Way::Plain
        }
    }
}

/// Why a task migrates to another replica of a spread node (`enum tierce_migration`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Migration {
    /// It wakes up, and is placed on another CPU.
    WakeUp,
    /// A CPU that was idle takes it.
    Pull,
    /// The CPU where it waited gives it away.
    Balance,
    /// The port found it on another CPU: its affinity was changed, or a CPU goes offline.
    Affinity,
}

impl Migration {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Migration; 4] =
        [Migration::WakeUp, Migration::Pull, Migration::Balance, Migration::Affinity];

    /// The reason with this number.
    pub fn from_number(number: u64) -> Option<Migration> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// What reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Migration::WakeUp => "wake-up",
            Migration::Pull => "pull",
            Migration::Balance => "balance",
            Migration::Affinity => "affinity",
        }
    }
}

/// What a task may tell its parents (`enum tierce_message`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Message {
    /// It asks for so much work until an absolute deadline.
    ConstraintBegin = 1,
    /// It needs no more of that.
    ConstraintEnd,
    /// It is to have a lock, with a ceiling, for so much CPU time.
    SectionBegin,
    /// It has left that lock.
    SectionEnd,
    /// It gives up the rest of a budget, and is to have the lock with the next one.
    SectionSkip,
}

/// A refused control operation, by name. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(pub u32);

impl Error {
    /// `no_such_node`, `budget_beyond_deadline`, …
    pub fn name(self) -> &'static str {
        self.text_of(1)
    }
    fn text_of(self, want_name: u32) -> &'static str {
        // SAFETY: returns a string literal or null.
        let p = unsafe { raw::tierce_error_text(self.0, want_name) };
        if p.is_null() {
            return "unknown_error";
        }
        // SAFETY: not null, so a literal of the C side.
        unsafe { CStr::from_ptr(p) }.to_str().unwrap_or("unknown_error")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.text_of(0))
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl std::error::Error for Error {}

/// A broken invariant found by the checker, by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Broken(pub u32);

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (want, end) in [(1, ": "), (0, "")] {
            // SAFETY: returns a string literal or null.
            let p = unsafe { raw::tierce_invariant_text(self.0, want) };
            if !p.is_null() {
                // SAFETY: not null, so a literal of the C side.
                write!(f, "{}{end}", unsafe { CStr::from_ptr(p) }.to_string_lossy())?;
            }
        }
        Ok(())
    }
}
