//! Tasks that stay on their CPUs, with locks and chains: what a table has no columns for.
//!
//! Locks first: what each protocol makes a task wait becomes blocking, work, or a response time. Then the tasks of each CPU are a
//! [question](crate::question) of their own. Where tasks trigger each other the propagation of [`crate::chains`] gives the response times: by
//! jitter alone, and with offsets. Chains are bounded by these.
//!
//! With ceilings, inheritance and spinning a wait does not depend on when jobs come, so triggered tasks may have such locks. The bound on suspended
//! waiters rests on response times, so there nothing is triggered.

mod asked;
mod chained;
mod member;
mod waits;

pub use asked::{Found, System};
pub use chained::Latencies;
pub use member::{Member, Path};
pub use waits::{Protocol, Waits};
