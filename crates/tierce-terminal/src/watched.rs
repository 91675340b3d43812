//! Work that does not look at the terminal itself.

use crate::{Progress, Stop, Unit};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks at the work.
const SLICE: Duration = Duration::from_millis(50);

/// CPU time that work which is asked to end may take to do so: on a busy machine it comes slowly.
const GRACE: Duration = Duration::from_secs(2);

/// How long that may last.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Watched<T> {
    /// All.
    Done(T),
    /// What was there at Ctrl-C.
    Early(T),
    /// Nothing was there at Ctrl-C.
    Nothing,
}

/// Do `work` on a thread of its own. `progress` says how much is done and how much there is, as soon as that is known; `end` asks the work to
/// end with what it has. Work that goes on in spite of that is left alone: the process is expected to end.
///
/// # Panics
/// When `work` does, or no thread can be had.
pub fn watched<T: Send + 'static>(
    words: &'static str,
    things: &'static str,
    progress: impl Fn() -> Option<(u64, u64)>,
    end: impl Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> Watched<T> {
    let stop = Stop::watch();
    let (sender, receiver) = sync_channel(1);
    let number = Arc::new(AtomicI32::new(0));
    let own = number.clone();
    let thread = std::thread::Builder::new().name("work".into()).spawn(move || {
        // SAFETY: no arguments, cannot fail.
        own.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        let _ = sender.send(work());
    });
    let thread = thread.expect("there are threads left");
    let unknown = Progress::unknown(words);
    let had = || cpu_time(number.load(Ordering::Relaxed));
    let (mut known, mut ended) = (None, None::<(Instant, Duration)>);
    loop {
        match receiver.recv_timeout(SLICE) {
            Ok(found) if ended.is_some() => return Watched::Early(found),
            Ok(found) => return Watched::Done(found),
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("the result is sent before"),
            },
            Err(RecvTimeoutError::Timeout) => {}
        }
        match progress() {
            Some((done, all)) => {
                known.get_or_insert_with(|| Progress::new(all, Unit::Things(things))).at(done)
            }
            None => unknown.at(0),
        }
        match ended {
            None if stop.asked() => {
                end();
                ended = Some((Instant::now(), had()));
            }
            Some((since, before)) if had().saturating_sub(before) > GRACE || since.elapsed() > PATIENCE => {
                return Watched::Nothing;
            }
            _ => {}
        }
    }
}

/// CPU time of a thread of this process; 0 if it has ended.
fn cpu_time(thread: i32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}
