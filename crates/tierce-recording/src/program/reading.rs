//! A recording from a file, whole.

use crate::{Recording, Threads};
use anyhow::{bail, Context, Result};
use std::path::Path;

/// A recording, and what its threads did.
pub fn read(path: &Path) -> Result<(Recording, Threads)> {
    let shown = || path.display().to_string();
    let mut recording = Recording::open(path).with_context(shown)?;
    let threads = Threads::of(recording.by_ref()).with_context(shown)?;
    if threads.all.is_empty() {
        bail!("{}: threads_must_be_recorded: no switch and no wake-up of a thread is in it", shown());
    }
    let length_ns = threads.to_ns - threads.from_ns;
    if length_ns > LENGTH_MAX_NS {
        let length = tierce_trace::units::time(length_ns);
        bail!("{}: recording_must_be_short: it is {length} long, bound one day", shown());
    }
    Ok((recording, threads))
}

/// One day: what is longer has times that are no times.
const LENGTH_MAX_NS: u64 = 86_400_000_000_000;
