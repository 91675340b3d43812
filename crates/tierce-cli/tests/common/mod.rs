//! Ctrl-C for a program that is to hear of it.

use std::process::Child;
use std::time::{Duration, Instant};

/// The process ends no more when it is sent a SIGINT, but hears of it; or it has ended.
fn hears_of_ctrl_c(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let of = |word| status.lines().find_map(|line| line.strip_prefix(word)).map_or("", str::trim);
    let caught = u64::from_str_radix(of("SigCgt:"), 16).unwrap_or(0);
    caught >> (libc::SIGINT - 1) & 1 == 1 || of("State:").starts_with('Z')
}

/// What another process does is waited for, but not for ever.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what} did not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Now, or as soon as it hears of one.
pub fn ctrl_c(child: &Child) {
    wait_until("a program that hears of Ctrl-C", || hears_of_ctrl_c(child.id()));
    // SAFETY: the process is ours, and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
}
