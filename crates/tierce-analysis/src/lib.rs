//! Schedulability inside a node: do all jobs meet their deadlines, whatever their phases?
//!
//! - [`FixedPriority`]: exact response times under preemptive fixed priorities, with release jitter, blocking, any
//!   deadlines; orders of priorities in [`priorities`].
//! - [`Edf`]: the processor-demand test of earliest deadline first (QPA), and its response times.
//! - [`sections`]: both where jobs have regions without preemption; [`suspension`]: where they suspend themselves; [`locks`]: where
//!   they hold locks, and [`spin_locks`] and [`suspending_locks`] between CPUs; [`fifo`]: in order of arrival; [`offsets`]: exact where phases are known.
//! - [`Supply`]: all on a whole CPU or inside whatever a guarantee is sure to give.
//! - [`global`]: sufficient tests of both on several CPUs, any of which may run any task; [`Mpr`]: what such give together;
//!   [`global_suspension`]: the same tests where jobs suspend themselves.
//! - [`thresholds`]: fixed priorities with preemption thresholds.
//! - [`requests`]: both where works are taken in turn, and where jobs come in bursts.
//! - [`tardiness()`]: by how much deadlines can be missed under global EDF.
//! - [`several_budgets`]: the same inside budgets on several CPUs, which may not be wanted all the time.
//! - [`placement`]: servers to CPUs, each on one, with few switches.
//! - [`split`]: tasks to CPUs where some are split over two (S-EKG, NPS-F).
//! - [`criticality`]: tasks of two criticalities, whose critical ones may work longer than usual.
//! - [`job_sets`]: given jobs without preemption, all schedules at once.
//! - [`zero_laxity`]: tasks to CPUs by EDF, some in parts one after the other (C=D).
//! - [`chains`]: tasks that trigger each other on several CPUs, or read what others wrote.
//! - [`pfair`]: several CPUs, quantum by quantum (PD²).
//! - [`federated`]: parallel tasks with CPUs of their own.
//! - [`generate`]: random task sets; [`retas`]: a form in which such are written.
//! - [`question`]: which of them answers a question about a set of tasks.
//! - [`system`]: tasks on given CPUs with locks and chains, by these together.
//! - [`sensitivity`]: how far a number may change until one of the exact tests fails.
//!
//! Times are whole nanoseconds. Floating point is used for bounds that may be too large, never for a verdict. Nothing
//! here does any I/O.

pub mod chains;
pub mod criticality;
mod edf;
pub mod federated;
pub mod fifo;
mod fixed_priority;
mod forced_forward;
pub mod generate;
pub mod global;
pub mod global_suspension;
pub mod job_sets;
pub mod locks;
mod mpr;
pub mod offsets;
pub mod partition;
pub mod pfair;
pub mod placement;
pub mod priorities;
pub mod question;
mod quotient;
pub mod requests;
pub mod retas;
pub mod sections;
pub mod sensitivity;
pub mod server;
pub mod several_budgets;
pub mod spin_locks;
pub mod split;
mod supply;
pub mod suspending_locks;
pub mod suspension;
pub mod system;
mod table;
mod tardiness;
mod task;
pub mod thresholds;
mod watch;
pub mod zero_laxity;

pub use edf::{Demand, Edf};
pub use fixed_priority::FixedPriority;
pub use mpr::Mpr;
pub use supply::{Chunks, Linear, Supply, TimeFor, Whole};
pub use table::{parse, parse_time, Criticality, Entry, Fault};
pub use tardiness::tardiness;
pub use task::{short_fraction, utilisation, LastRegion, Response, Sections, Task};
pub use tierce_guarantee::TIME_MAX_NS;
pub use watch::Watch;
