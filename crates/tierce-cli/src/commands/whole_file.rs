//! Large files: with progress, and as a whole or not at all.

use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tierce_terminal::{Progress, Stop};

/// A file that shows how much of it is written, and ends at Ctrl-C.
pub struct Written<'s> {
    file: File,
    stop: Option<&'s Stop>,
    progress: Progress,
    bytes: u64,
}

impl Write for Written<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.stop.is_some_and(Stop::asked) {
            return Err(io::Error::other("ended early"));
        }
        let written = self.file.write(part)?;
        self.bytes += written as u64;
        self.progress.at(self.bytes);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file as a whole or, after Ctrl-C, not at all: then it is `false`.
pub fn write(
    path: &Path,
    stop: Option<&Stop>,
    write: impl FnOnce(&mut BufWriter<Written>) -> io::Result<()>,
) -> anyhow::Result<bool> {
    let file = File::create(path).with_context(|| path.display().to_string())?;
    let progress = Progress::unknown("writing");
    let mut out = BufWriter::new(Written { file, stop, progress, bytes: 0 });
    let done = write(&mut out).and_then(|()| out.flush());
    if done.is_err() && stop.is_some_and(Stop::asked) {
        if fs::symlink_metadata(path).is_ok_and(|file| file.is_file()) {
            fs::remove_file(path).with_context(|| path.display().to_string())?;
        }
        return Ok(false);
    }
    done.with_context(|| path.display().to_string())?;
    Ok(true)
}
