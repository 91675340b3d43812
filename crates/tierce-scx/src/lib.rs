//! The sched_ext backend: loader, matching, control, statistics.

pub mod kernel;
pub mod object;
