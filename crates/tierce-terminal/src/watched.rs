//! Work that does not look at the terminal itself.

use crate::{Progress, Stop, Unit};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between two looks at the work.
const SLICE: Duration = Duration::from_millis(50);

/// How long work that is asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(2);

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
    let thread = std::thread::Builder::new().name("work".into()).spawn(move || {
        let _ = sender.send(work());
    });
    let thread = thread.expect("there are threads left");
    let unknown = Progress::unknown(words);
    let (mut known, mut ended) = (None, None::<Instant>);
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
                ended = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => return Watched::Nothing,
            _ => {}
        }
    }
}
