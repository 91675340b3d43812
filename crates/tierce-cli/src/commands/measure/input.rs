//! A trace that is read from a file or from standard input.

use crate::commands::trace::ENDED_EARLY;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use tierce_terminal::{Reading, Stop};
use tierce_trace::TraceError;

/// Its bytes, as long as nobody asks to stop.
pub fn open<'a>(path: &Path, stop: &'a Stop) -> Result<Box<dyn Read + 'a>> {
    Ok(match path == Path::new("-") {
        true => Box::new(Reading::stream(io::stdin().lock(), stop)),
        false => Box::new(Reading::file(File::open(path).with_context(|| path.display().to_string())?, stop)),
    })
}

/// Why not all of it was read, if so.
pub fn tell(path: &Path, fault: Option<TraceError>, stop: &Stop) {
    let shown = path.display();
    if stop.asked() {
        eprintln!("tierce: {shown}: {ENDED_EARLY}");
    } else if let Some(fault) = fault {
        eprintln!("tierce: {shown}: {fault}; only the records before it are used");
    }
}
