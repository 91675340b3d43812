//! The event stream: files, statistics, Perfetto traces, HTML timelines.
//!
//! Every target (simulator, kernel) tells what it did as [`Event`]s, 32 bytes each, the layout of
//! `policy/events.h`. What draws, counts or judges reads only them:
//!
//! ```text
//! simulator ──┐                        ┌─> Stats ──> Report (JSON, tables)
//!             ├─> Event ──> Writer/Reader ─> perfetto, html
//! kernel   ───┘
//! ```
//!
//! The simulator and the live run may also feed [`Stats`] directly and keep no trace.

mod affinity;
pub mod arrivals;
pub mod browser;
pub mod chains;
pub mod change;
pub mod event;
pub mod file;
pub mod grasp;
pub mod header;
pub mod histogram;
pub mod html;
pub mod measure;
pub mod modes;
pub mod passage;
pub mod perfetto;
mod plan;
pub mod promise;
pub mod report;
pub mod snapshot;
mod snapshot_of_stats;
pub mod stats;
pub mod tally;
pub mod units;
pub mod violations;
pub mod waits;
pub mod work_conservation;

pub use arrivals::Arrivals;
pub use chains::Chains;
pub use chains::Follows;
pub use change::{PlanChange, Renumber, Seen};
pub use event::{Event, Kind, NO_DEADLINE, SCHEDULER};
pub use file::{Reader, Trace, TraceError, Writer};
pub use header::{ChainInfo, EdgeInfo, Latencies, LinkInfo, NodeInfo, Source, TaskInfo, TraceHeader};
pub use histogram::{Histogram, Summary};
pub use measure::Measure;
pub use passage::Passage;
pub use promise::{Promise, Unkept};
pub use report::{ChainReport, Report, Spread};
pub use snapshot::Snapshot;
pub use stats::Stats;
pub use tally::Tally;
pub use violations::{Missed, Violated, Violation, Violations};
pub use work_conservation::WorkConservation;
