//! Ctrl-C and SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// The second signal ends the process at once.
extern "C" fn stop(signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
    set(signal, libc::SIG_DFL);
}

fn set(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: all-zero is a valid sigaction: no flags, so a read that waits is interrupted, and an empty mask.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = action;
    // SAFETY: `new` lives until the call has ended; the call may be made by a handler.
    unsafe { libc::sigaction(signal, &new, std::ptr::null_mut()) };
}

/// While this is there, the first Ctrl-C or SIGTERM asks the work to end, and does not end the process.
#[derive(Debug)]
pub struct Stop(());

impl Stop {
    /// From now on.
    pub fn watch() -> Self {
        for signal in SIGNALS {
            set(signal, stop as *const () as libc::sighandler_t);
        }
        Self(())
    }

    /// The work is to end.
    pub fn asked(&self) -> bool {
        ASKED.load(Ordering::Relaxed)
    }

    /// The same, for threads.
    pub fn flag(&self) -> &'static AtomicBool {
        &ASKED
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for signal in SIGNALS {
            set(signal, libc::SIG_DFL);
        }
    }
}
