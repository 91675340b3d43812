//! Ctrl-C and SIGTERM.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
/// When, in ms.
static ASKED_MS: AtomicU64 = AtomicU64::new(0);

const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// `timeout` and some shells send the same signal to the process and to its group: that is one.
const ONE_MS: u64 = 200;

/// The second signal ends the process at once.
extern "C" fn stop(signal: libc::c_int) {
    let now = now_ms();
    if !ASKED.swap(true, Ordering::Relaxed) {
        ASKED_MS.store(now, Ordering::Relaxed);
    } else if now > ASKED_MS.load(Ordering::Relaxed) + ONE_MS {
        set(signal, libc::SIG_DFL);
        // SAFETY: handlers may raise signals; this one comes as soon as this handler has returned.
        unsafe { libc::raise(signal) };
    }
}

/// May be called by a handler.
fn now_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` lives until the call has ended.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

fn set(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: all-zero is a valid sigaction: no flags, so a read that waits is interrupted, and an empty mask.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = action;
    // SAFETY: `new` lives until the call has ended; the call may be made by a handler.
    unsafe { libc::sigaction(signal, &new, std::ptr::null_mut()) };
}

/// Whether work was asked to end, while a [`Stop`] was there.
pub fn asked() -> &'static AtomicBool {
    &ASKED
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
