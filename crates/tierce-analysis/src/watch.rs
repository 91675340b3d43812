//! Long work that another thread watches.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How far an analysis has come, and whether it goes on: one thread works, others look.
#[derive(Debug, Default)]
pub struct Watch {
    done: AtomicUsize,
    all: AtomicUsize,
    ended: AtomicBool,
}

impl Watch {
    /// The analysis ends soon, with what it has found by then.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// It is to end.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// How many tasks or jobs are done, and of how many; `None` where the analysis does not say.
    pub fn progress(&self) -> Option<(usize, usize)> {
        let all = self.all.load(Ordering::Relaxed);
        (all > 0).then(|| (self.done.load(Ordering::Relaxed), all))
    }

    /// There are so many.
    pub(crate) fn begins(&self, all: usize) {
        self.all.store(all, Ordering::Relaxed);
    }

    /// Of those that are done, so many are not yet done with what follows.
    pub(crate) fn begins_again(&self, tasks: usize) {
        self.done.fetch_sub(tasks, Ordering::Relaxed);
    }

    /// One more is done.
    pub(crate) fn one_is_done(&self) {
        self.are_done(1);
    }

    /// So many more are.
    pub(crate) fn are_done(&self, more: usize) {
        self.done.fetch_add(more, Ordering::Relaxed);
    }
}
