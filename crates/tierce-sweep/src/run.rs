//! What is missing in a folder, done by some threads.

use crate::folder::{Folder, Refused};
use crate::job::rows_of;
use crate::rows::{encode, Row};
use crate::seeds::identity;
use crate::study::Study;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;

/// Which of so many parts of a study: every so many chunks are of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

impl Part {
    /// Its chunks.
    pub fn chunks(self, study: &Study) -> impl Iterator<Item = u64> {
        (0..study.chunks()).filter(move |chunk| chunk % self.of == self.number - 1)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All chunks of the part are there.
    Done,
    /// It was told to stop.
    Stopped,
}

/// Do what is missing. `watch` is told five times a second how many sets of how many are done; `stop` ends the run after the chunks that
/// are being written.
pub fn run(
    study: &Study,
    folder: &Folder,
    threads: usize,
    part: Part,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Ended, Refused> {
    let length = |chunk: u64| study.jobs_of(chunk).count() as u64;
    let (there, missing): (Vec<_>, Vec<_>) = part.chunks(study).partition(|chunk| folder.has(study, *chunk));
    let before: u64 = there.iter().copied().map(length).sum();
    let total = before + missing.iter().copied().map(length).sum::<u64>();
    watch(before, total);
    missing.iter().for_each(|chunk| folder.tidy(*chunk));
    let (next, done, ends) = (AtomicUsize::new(0), AtomicU64::new(before), AtomicBool::new(false));
    let fault = Mutex::new(None);
    let threads = threads.clamp(1, missing.len().max(1));
    let left = AtomicUsize::new(threads);
    let stops = || stop.load(Ordering::Relaxed) || ends.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let starter = std::thread::current();
        for _ in 0..threads {
            let starter = starter.clone();
            let (missing, next, done, left, stops) = (&missing, &next, &done, &left, &stops);
            let (ends, fault) = (&ends, &fault);
            scope.spawn(move || {
                while let Some(chunk) = missing.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !stops())
                {
                    if let Err(refused) = one(study, folder, *chunk, done, stops) {
                        ends.store(true, Ordering::Relaxed);
                        fault.lock().unwrap_or_else(|error| error.into_inner()).get_or_insert(refused);
                    }
                }
                left.fetch_sub(1, Ordering::Release);
                starter.unpark();
            });
        }
        while left.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(Duration::from_millis(200));
            watch(done.load(Ordering::Relaxed), total);
        }
    });
    match fault.into_inner().unwrap_or_else(|error| error.into_inner()) {
        Some(refused) => Err(refused),
        None if done.into_inner() == total => Ok(Ended::Done),
        None => Ok(Ended::Stopped),
    }
}

/// One chunk; nothing is kept of one that is stopped.
fn one(
    study: &Study,
    folder: &Folder,
    chunk: u64,
    done: &AtomicU64,
    stops: &dyn Fn() -> bool,
) -> Result<(), Refused> {
    let mut rows = Vec::new();
    for (job, before) in study.jobs_of(chunk).zip(0..) {
        if stops() {
            done.fetch_sub(before, Ordering::Relaxed);
            return Ok(());
        }
        add(study, job, &mut rows)?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    folder.keep(study, chunk, &rows)
}

fn add(study: &Study, job: u64, rows: &mut Vec<Row>) -> Result<(), Refused> {
    rows_of(study, job, rows).map_err(|message| Refused { rule: "set_must_be_testable", message })
}

/// A chunk done here, for a folder elsewhere: the bytes of its file.
pub fn file_of(study: &Study, chunk: u64) -> Result<Vec<u8>, Refused> {
    let mut rows = Vec::new();
    study.jobs_of(chunk).try_for_each(|job| add(study, job, &mut rows))?;
    let unwritten = |error: parquet::errors::ParquetError| Refused {
        rule: "rows_must_be_written",
        message: error.to_string(),
    };
    encode(study, &identity(study), &rows).map_err(unwritten)
}
