//! From the bus to the manager's loop, and back.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use tierce_manager::{Answer, Ask, Asker, Wrong};

/// A request that came over the bus.
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

/// The way from the bus to the manager's loop.
#[derive(Clone)]
pub struct Way {
    asks: SyncSender<Asked>,
    wakes: Arc<UnixStream>,
}

impl Way {
    pub fn new(asks: SyncSender<Asked>, wakes: UnixStream) -> Self {
        Self { asks, wakes: Arc::new(wakes) }
    }

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
