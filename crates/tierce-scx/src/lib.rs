//! The sched_ext backend: loader, matching, control, statistics.

pub mod object;
