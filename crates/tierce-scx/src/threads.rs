//! The machine's threads: what /proc says of them, and how to make one pass through the scheduler.

use std::fs;
use std::io::{Error, Result};
use tierce_plan::Thread;

/// All thread ids there are now.
pub fn all() -> Vec<u32> {
    let numbers = |path: &str| -> Vec<u32> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let mut list: Vec<u32> = numbers("/proc").into_iter().flat_map(|pid| numbers(&format!("/proc/{pid}/task"))).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// What is known of a thread; `None`: it is gone.
pub fn look(tid: u32) -> Option<Thread> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{tid}/{name}")).ok();
    let status = read("status")?;
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let number = |key: &str, index: usize| -> u32 {
        field(key).and_then(|text| text.split_whitespace().nth(index)?.parse().ok()).unwrap_or(0)
    };
    let pid = number("Tgid:", 0);
    let stat = read("stat")?;
    let after_name: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let flags: u64 = after_name.get(6).and_then(|text| text.parse().ok()).unwrap_or(0);
    let nice = after_name.get(16).and_then(|text| text.parse().ok()).unwrap_or(0);
    let link = fs::read_link(format!("/proc/{tid}/exe"));
    let cgroup = read("cgroup").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(line.trim_start_matches('/').to_string())
    });
    Some(Thread {
        comm: field("Name:").unwrap_or_default().to_string(),
        pcomm: fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_string(),
        exe: link.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        cgroup: cgroup.unwrap_or_default(),
        uid: number("Uid:", 1),
        gid: number("Gid:", 1),
        pid,
        tid,
        ppid: number("PPid:", 0),
        nice,
        is_kthread: flags & 0x0020_0000 != 0,
    })
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Take the thread off its queue and put it back: the kernel does that when its scheduling attributes are set. Only its
/// EEVDF slice is touched, and set back to what it was.
pub fn requeue(tid: u32) -> Result<()> {
    let size = size_of::<Attributes>() as u32;
    let mut attributes = Attributes { size, ..Default::default() };
    let check = |code: libc::c_long| if code < 0 { Err(Error::last_os_error()) } else { Ok(()) };
    // SAFETY: the structure has the size that is passed, in the kernel's layout (struct sched_attr, version 0).
    let get = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &mut attributes, size, 0) };
    check(get)?;
    let slice_ns = attributes.runtime_ns;
    attributes.flags = 0;
    for runtime_ns in [slice_ns + 1, slice_ns] {
        attributes.runtime_ns = runtime_ns;
        // SAFETY: as above.
        check(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &attributes, 0) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_itself() {
        let pid = std::process::id();
        let me = look(pid).expect("this process is there");
        assert_eq!((me.pid, me.tid), (pid, pid));
        assert!(!me.comm.is_empty() && !me.is_kthread && me.exe.starts_with('/'));
        assert!(all().contains(&pid));
        assert!(look(u32::MAX >> 1).is_none());
    }

    #[test]
    fn requeues_itself() {
        // SAFETY: no arguments.
        let tid = unsafe { libc::gettid() };
        requeue(tid as u32).unwrap();
    }
}
