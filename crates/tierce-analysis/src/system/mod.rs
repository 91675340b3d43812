//! Tasks that stay on their CPUs, with locks and chains: what a table has no columns for.
//!
//! Locks first: what each protocol makes a task wait becomes blocking, work, or a response time. Then the
//! tasks of each CPU are a [`Question`] of their own. Where tasks trigger each other it is the propagation of [`crate::chains`] that gives the
//! response times: by jitter alone, and with offsets. Chains are bounded by these.
//!
//! Each step keeps what the next one needs: a wait does not depend on when jobs come, with ceilings, inheritance and spinning, so that triggered tasks
//! may have such locks; suspended waiters need response times themselves, so there nothing is triggered.

mod asked;
mod chained;
mod member;
mod waits;

pub use asked::{Found, System};
pub use chained::Latencies;
pub use member::{Member, Path};
pub use waits::{Protocol, Waits};
