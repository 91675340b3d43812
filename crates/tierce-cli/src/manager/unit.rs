//! Of which service of the system's a process is: it speaks for that unit.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Not in the C library's headers of all distributions.
const SO_PEERPIDFD: libc::c_int = 77;

/// The unit of the process at the other end, as it was when that connected.
pub fn of_peer(stream: &UnixStream, pid: i32) -> Option<String> {
    let mut pidfd: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the number has the length that is passed; a descriptor that comes is ours alone.
    let pidfd = unsafe {
        let (fd, at) = (stream.as_raw_fd(), (&raw mut pidfd).cast());
        let done = libc::getsockopt(fd, libc::SOL_SOCKET, SO_PEERPIDFD, at, &mut length);
        (done == 0 && pidfd >= 0).then(|| OwnedFd::from_raw_fd(pidfd))?
    };
    of_process(u32::try_from(pid).ok()?, pidfd.as_raw_fd())
}

/// The unit of a process of which there is a descriptor: its number belongs to no other one as long as it lives.
pub fn of_process(pid: u32, pidfd: RawFd) -> Option<String> {
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let mut ended = libc::pollfd { fd: pidfd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, as is passed.
    let lives = unsafe { libc::poll(&raw mut ended, 1, 0) } == 0;
    lives.then(|| service(&cgroups)).flatten()
}

/// The service below `system.slice`: nobody but root puts processes there.
fn service(cgroups: &str) -> Option<String> {
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mut parts = path.split('/');
    let below = parts.next() == Some("system.slice");
    let unit = parts.find(|part| !part.ends_with(".slice"))?;
    (below && unit.ends_with(".service")).then(|| unit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_the_system_are_units() {
        for (path, unit) in [
            ("/system.slice/web.service", Some("web.service")),
            ("/system.slice/web.service/worker", Some("web.service")),
            ("/system.slice/system-getty.slice/getty@tty1.service", Some("getty@tty1.service")),
            ("/system.slice/docker-1.scope", None),
            ("/system.slice", None),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", None),
            ("/user.slice/system.slice/web.service", None),
            ("/web.service", None),
            ("/", None),
        ] {
            assert_eq!(service(&format!("1:name=x:/y\n0::{path}\n")).as_deref(), unit, "{path}");
        }
        assert_eq!(service("1:cpu:/system.slice/web.service\n"), None, "of an older kind");
    }

    #[test]
    fn a_process_that_has_ended_speaks_for_none() {
        let (one, other) = UnixStream::pair().unwrap();
        let own = std::process::id() as i32;
        // What this process is of, the kernel says; that it can be asked is what counts.
        let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert_eq!(of_peer(&one, own), service(&cgroups));
        assert_eq!(of_peer(&other, -1), None);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // SAFETY: a number, and no flags; the descriptor is closed below.
        let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) } as RawFd;
        assert!(pidfd >= 0);
        child.wait().unwrap();
        assert_eq!(of_process(std::process::id(), pidfd), None);
        // SAFETY: ours.
        unsafe { libc::close(pidfd) };
    }
}
