//! The machine's threads and users.

use crate::manager::people::People;
use std::collections::BTreeSet;
use std::fs;
use tierce_manager::{Principal, ThreadInfo, Threads};

/// Threads as /proc has them, and users.
pub struct Machine {
    pub people: People,
    /// Nothing is left of these.
    pub gone: BTreeSet<Principal>,
}

impl Threads for Machine {
    fn look(&self, tid: u32) -> Option<ThreadInfo> {
        look(tid)
    }

    fn began(&self, tid: u32) -> Option<u64> {
        began(&fs::read_to_string(format!("/proc/{tid}/stat")).ok()?)
    }

    fn has(&self, owner: &Principal) -> bool {
        !self.gone.contains(owner)
    }

    fn person(&self, uid: u32) -> u32 {
        self.people.person(uid)
    }
}

/// A thread; `None`: there is none.
pub fn look(tid: u32) -> Option<ThreadInfo> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{tid}/{file}")).ok();
    let began = began(&read("stat")?)?;
    let status = read("status")?;
    // Another thread may have got the number in between.
    (began == self::began(&read("stat")?)?).then_some(ThreadInfo { uid: uid(&status), began })
}

/// The user of a thread, if all its identities (real, effective, saved, file system) are that one.
pub fn uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let mut all = line.split_whitespace().map(|uid| uid.parse().ok());
    let first: u32 = all.next()??;
    all.all(|uid| uid == Some(first)).then_some(first)
}

/// When a thread began, in ticks since boot: the 22nd field, counted after the name, which may have anything in it.
fn began(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The boot of the machine.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "?".into(), |id| id.trim().to_string())
}

/// Since boot.
pub fn now_ns() -> u64 {
    // SAFETY: an all-zero timespec is valid, and the call fills it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_by_its_user_and_its_beginning() {
        let me = std::process::id();
        let info = look(me).unwrap();
        // SAFETY: no arguments.
        assert_eq!(info.uid, Some(unsafe { libc::geteuid() }));
        assert!(info.began > 0 && look(me) == Some(info));
        assert_eq!(look(u32::MAX), None);
        assert_eq!(uid("Name:\tx\nUid:\t1000\t0\t0\t0\n"), None);
        assert_eq!(uid("Uid:\t1000\t1000\t1000\t1000\n"), Some(1000));
        assert_eq!(began("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 999 20"), Some(999));
    }
}
