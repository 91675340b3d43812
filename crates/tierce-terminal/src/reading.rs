//! Long files.

use crate::{Progress, Stop, Unit};
use std::fs::File;
use std::io::{self, Read};

/// Bytes between two looks.
const SLICE: u64 = 1 << 20;

/// Input that is read with progress, and that ends early at Ctrl-C: it then looks as if it were cut off.
#[derive(Debug)]
pub struct Reading<'s, R> {
    input: R,
    stop: &'s Stop,
    progress: Progress,
    done: u64,
    shown: u64,
}

impl<'s> Reading<'s, File> {
    /// From its beginning.
    pub fn file(file: File, stop: &'s Stop) -> Self {
        match file.metadata().map_or(0, |data| data.len()) {
            0 => Self::stream(file, stop), // a pipe has no length
            all => Self { progress: Progress::new(all, Unit::Bytes), ..Self::stream(file, stop) },
        }
    }
}

impl<'s, R: Read> Reading<'s, R> {
    /// Of unknown length.
    pub fn stream(input: R, stop: &'s Stop) -> Self {
        Self { input, stop, progress: Progress::unknown("reading"), done: 0, shown: 0 }
    }
}

impl<R: Read> Read for Reading<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.asked() {
            return Ok(0);
        }
        let read = self.input.read(into)?;
        self.done += read as u64;
        if self.done - self.shown >= SLICE {
            self.shown = self.done;
            self.progress.at(self.done);
        }
        Ok(read)
    }
}
