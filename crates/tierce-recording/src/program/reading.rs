//! A recording from a file: whole, or until Ctrl-C.

use crate::{Recording, Threads};
use anyhow::{bail, Context, Result};
use std::path::Path;
use tierce_terminal::{Progress, Stop};

/// Events between two looks at the terminal.
const SLICE: u64 = 1 << 16;

/// What was read.
pub struct Read {
    /// The recording.
    pub recording: Recording,
    /// What its threads did.
    pub threads: Threads,
    /// Ctrl-C ended it before all was read. The user is told.
    pub early: bool,
}

/// Read a recording.
pub fn read(path: &Path) -> Result<Read> {
    let shown = || path.display().to_string();
    let mut recording = Recording::open(path).with_context(shown)?;
    let (stop, progress) = (Stop::watch(), Progress::unknown("reading"));
    let (mut count, mut early) = (0, false);
    let events = recording.by_ref().take_while(|_| {
        count += 1;
        if count % SLICE == 0 {
            progress.at(count);
        }
        early = stop.asked();
        !early
    });
    let threads = Threads::of(events).with_context(shown)?;
    drop((stop, progress));
    if early && threads.all.is_empty() {
        bail!("{}: reading_was_ended: ended before a switch or a wake-up was read", shown());
    }
    if early {
        eprintln!(
            "tierce recording: ended early: only the {} events that were read by then are used",
            threads.records
        );
    }
    if threads.all.is_empty() {
        bail!("{}: threads_must_be_recorded: no switch and no wake-up of a thread is in it", shown());
    }
    let length_ns = threads.to_ns - threads.from_ns;
    if length_ns > LENGTH_MAX_NS {
        let length = tierce_trace::units::time(length_ns);
        bail!("{}: recording_must_be_short: it is {length} long, bound one day", shown());
    }
    Ok(Read { recording, threads, early })
}

/// One day: what is longer has times that are no times.
const LENGTH_MAX_NS: u64 = 86_400_000_000_000;
