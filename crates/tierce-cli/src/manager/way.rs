//! From other threads to the manager's loop, and back.

use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use tierce_manager::{Answer, Ask, Asker, Wrong};

/// A request that another thread has.
pub struct Asked {
    pub asker: Asker,
    pub ask: Ask,
    answer: SyncSender<Result<Answer, Wrong>>,
}

impl Asked {
    /// Nobody is waited for: who has asked waits for this alone.
    pub fn answer(self, answer: Result<Answer, Wrong>) {
        let _ = self.answer.try_send(answer);
    }
}

/// The way to the manager's loop.
#[derive(Clone)]
pub struct Way {
    asks: SyncSender<Asked>,
    wakes: Arc<UnixStream>,
}

/// What comes over it.
pub struct Asks {
    asked: Receiver<Asked>,
    woken: UnixStream,
}

/// Both ends.
pub fn way() -> std::io::Result<(Way, Asks)> {
    // One at a time: so a byte that wakes never belongs to a request beyond the one that `next` takes.
    let (asks, asked) = sync_channel(1);
    let (wakes, woken) = UnixStream::pair()?;
    wakes.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    Ok((Way { asks, wakes: Arc::new(wakes) }, Asks { asked, woken }))
}

impl Way {
    /// Waits for the answer.
    pub fn ask(&self, asker: &Asker, ask: Ask) -> Result<Answer, Wrong> {
        let gone = || Wrong::new("manager_must_run", "the manager is about to end");
        let (answer, answered) = sync_channel(1);
        self.asks.send(Asked { asker: asker.clone(), ask, answer }).map_err(|_| gone())?;
        self.wake();
        answered.recv().map_err(|_| gone())?
    }

    /// The loop looks around.
    pub fn wake(&self) {
        let _ = (&*self.wakes).write(&[0]); // if it is full, it wakes anyway
    }
}

impl Asks {
    /// The next request, if there is one.
    pub fn next(&self) -> Option<Asked> {
        let mut block = [0; 64];
        while matches!(std::io::Read::read(&mut &self.woken, &mut block), Ok(1..)) {}
        self.asked.try_recv().ok()
    }
}

impl AsRawFd for Asks {
    fn as_raw_fd(&self) -> RawFd {
        self.woken.as_raw_fd()
    }
}
