//! Tierce's scheduling core (policy/*.c) behind a safe interface: the list of policies, and [`Graph`], one instance of
//! the graph engine. Times are integer nanoseconds, ids are those of the C side, 0 is "none".

pub mod added;
mod codes;
mod control;
mod cpus;
mod graph;
pub mod raw;
pub mod recording;
mod records;

pub use codes::{Broken, Error, Message, Migration, Way, Why, NEVER};
pub use control::{At, Control, Refusal};
pub use cpus::Cpus;
pub use graph::{Difference, Event, Graph};
/// CPUs of a plan at most, in the kernel ([`KERNEL`]) as elsewhere.
pub const CPUS_MAX: u32 = raw::CPUS as u32;
/// Parameters of an edge, in the order of its policy's record.
pub type Params = [u64; raw::EDGE_PARAMS];
/// Parameters of a node.
pub type NodeParams = [u64; raw::NODE_PARAMS];

pub use records::{limits, policies, Limits, Param, ParamKind, Part, PolicyRecord, KERNEL, RATIO_ONE};

/// Kind number of a task (policies have theirs from [`policies`]).
pub const TASK: u32 = 1;
