//! The sched_ext backend: loader, matching, control, statistics.

pub mod kernel;
pub mod live;
pub mod object;
pub mod threads;
