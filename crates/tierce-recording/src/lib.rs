//! Recordings of other tools: `trace.dat` of trace-cmd and `perf.data` of perf, with the tracepoints of the kernel's scheduler.
//!
//! ```text
//! trace.dat ──┐               ┌─> threads: CPU time, latencies ──> periods and work ──> a plan ──> simulated with the recorded jobs
//! perf.data ──┴─> Recording ──┴─> Tierce's event stream ──> timeline, statistics, Perfetto
//!                                 Tierce's event stream ──> trace.dat, for trace-cmd and KernelShark
//! ```
//!
//! Where fields are is read from the descriptions in the file. A damaged file is refused with the byte at which something is wrong.

mod bytes;
mod layout;
mod metadata;
mod perf;
pub mod program;
mod proposal;
mod recording;
mod refusal;
mod replay;
mod ring;
mod sched;
mod stream;
mod threads;
mod trace_dat;
mod write;

pub use proposal::{propose, Proposal, Wishes};
pub use recording::Recording;
pub use refusal::RecordingError;
pub use replay::{replay, Compared, Replayed};
pub use sched::{Comm, Leaves, Sched, What, Who};
pub use stream::{header, names, write as write_stream};
pub use threads::{Thread, Threads};
pub use write::write as write_trace_dat;
