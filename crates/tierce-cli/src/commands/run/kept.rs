//! The files that a run writes: its events, its entries.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tierce_policy::recording;
use tierce_trace::{Event, TraceHeader, Writer};

/// A trace, a recording, or neither.
pub struct Kept {
    trace: Option<Writer<BufWriter<File>>>,
    recording: Option<recording::Writer<BufWriter<File>>>,
}

impl Kept {
    /// Create what there is a path for.
    pub fn create(
        trace: Option<&Path>,
        header: &TraceHeader,
        recording: Option<&Path>,
        floor_ns: u64,
    ) -> Result<Kept> {
        let file = |path: &Path| {
            Ok::<_, anyhow::Error>(BufWriter::new(
                File::create(path).with_context(|| path.display().to_string())?,
            ))
        };
        Ok(Kept {
            trace: trace.map(|path| anyhow::Ok(Writer::new(file(path)?, header)?)).transpose()?,
            recording: recording
                .map(|path| anyhow::Ok(recording::Writer::new(file(path)?, floor_ns)?))
                .transpose()?,
        })
    }

    /// Records of 32 bytes, entries of 48.
    pub fn write(&mut self, events: &[u8], entries: &[u8]) -> Result<()> {
        if let Some(trace) = &mut self.trace {
            for chunk in events.chunks_exact(32) {
                trace.write(&Event::from_bytes(chunk.try_into().context("an event")?))?;
            }
        }
        if let Some(recording) = &mut self.recording {
            for chunk in entries.chunks_exact(48) {
                recording.write(&recording::from_bytes(chunk.try_into().context("an entry")?))?;
            }
        }
        Ok(())
    }

    /// All of it is there.
    pub fn finish(self) -> Result<()> {
        if let Some(recording) = self.recording {
            recording.finish()?.flush()?;
        }
        if let Some(trace) = self.trace {
            trace.finish()?.flush()?;
        }
        Ok(())
    }
}
