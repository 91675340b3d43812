//! The sched_ext backend: loader, matching, control, statistics.

mod added;
pub mod apply;
pub mod btf;
mod chains;
pub mod checksums;
mod classes;
mod copies;
pub mod doctor;
pub mod dry_run;
pub mod graph;
pub mod host;
pub mod kernel;
pub mod listener;
pub mod live;
mod moment;
pub mod notify;
pub mod object;
pub mod prune;
pub mod reload;
pub mod routines;
mod snapshot;
pub mod socket;
pub mod threads;
pub mod topology;
pub mod trial;
pub mod watch;

pub use chains::chains_of;
