//! A recording of one of the tools that are known, by its first bytes.

use crate::bytes::Source;
use crate::metadata::MAGIC;
use crate::perf::{self, PerfData};
use crate::refusal::{refused, Result};
use crate::sched::Sched;
use crate::trace_dat::TraceDat;
use std::path::Path;

/// A recording: what it is, and what happened, in the order of time.
pub struct Recording {
    /// What wrote it: `trace-cmd 6`, `trace-cmd 7`, `perf`.
    pub tool: String,
    /// How many CPUs the machine had.
    pub cpus: u32,
    /// The clock by which it was recorded, if the file says it.
    pub clock: String,
    events: Box<dyn Iterator<Item = Result<Sched>>>,
}

impl Recording {
    /// Open a file.
    pub fn open(path: &Path) -> Result<Recording> {
        Recording::of(Source::open(path)?)
    }

    /// Of these bytes.
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Recording> {
        Recording::of(Source::Bytes(bytes))
    }

    fn of(source: Source) -> Result<Recording> {
        let first = source.up_to(0, 10)?;
        if first == MAGIC {
            let file = TraceDat::open(source)?;
            let (tool, cpus) = (format!("trace-cmd {}", file.version), file.cpus);
            return Ok(Recording { tool, cpus, clock: file.clock.clone(), events: Box::new(file) });
        }
        if first.starts_with(perf::MAGIC) {
            let file = PerfData::open(source)?;
            return Ok(Recording {
                tool: "perf".into(),
                cpus: file.cpus,
                clock: String::new(),
                events: Box::new(file),
            });
        }
        if first.starts_with(b"2ELIFREP") {
            return refused("byte_order_must_be_little", 0, "numbers are big endian, bound little endian");
        }
        let found = String::from_utf8_lossy(&first).escape_default().to_string();
        let message =
            format!("the file begins with `{found}`, bound `trace.dat` of trace-cmd or `perf.data` of perf");
        refused("tool_must_be_known", 0, message)
    }
}

impl Iterator for Recording {
    type Item = Result<Sched>;

    fn next(&mut self) -> Option<Self::Item> {
        self.events.next()
    }
}
