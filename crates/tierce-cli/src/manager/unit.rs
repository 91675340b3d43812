//! Of which service or container of the system's a process is: it speaks for these.

use anyhow::{ensure, Result};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tierce_manager::Principal;
use tierce_plan::{runs_programs_of_users, system_unit};

/// Not in the C library's headers of all distributions.
const SO_PEERPIDFD: libc::c_int = 77;

/// Prefixes of scopes that container engines make, before what they call the container.
const ENGINES: [&str; 6] = ["docker-", "libpod-", "cri-containerd-", "crio-", "nerdctl-", "machine-"];

/// How services and containers are told.
#[derive(Clone, Default)]
pub struct Units {
    /// Of each container that is configured the name, and its cgroup without slashes around it.
    containers: Arc<BTreeMap<String, String>>,
}

/// For what a process speaks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Of {
    pub unit: Option<String>,
    pub container: Option<String>,
}

impl Units {
    /// Of `[containers]`: name and cgroup of each.
    pub fn new(containers: BTreeMap<String, String>) -> Result<Self> {
        let mut known = BTreeMap::new();
        for (name, cgroup) in containers {
            let is_name = format!("container:{name}").parse::<Principal>().is_ok();
            ensure!(is_name, "container_needs_a_name: {name:?} is no name of a container");
            let path = cgroup.trim_matches('/');
            ensure!(
                !path.is_empty(),
                "container_needs_a_cgroup: container {name:?} is no cgroup below the root"
            );
            known.insert(name, path.to_string());
        }
        Ok(Self { containers: Arc::new(known) })
    }

    /// Of the process at the other end, as it was when that connected.
    pub fn of_peer(&self, stream: &UnixStream, pid: i32) -> Of {
        let mut pidfd: libc::c_int = -1;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the number has the length that is passed; a descriptor that comes is ours alone.
        let pidfd = unsafe {
            let (fd, at) = (stream.as_raw_fd(), (&raw mut pidfd).cast());
            let done = libc::getsockopt(fd, libc::SOL_SOCKET, SO_PEERPIDFD, at, &mut length);
            (done == 0 && pidfd >= 0).then(|| OwnedFd::from_raw_fd(pidfd))
        };
        let process = u32::try_from(pid).ok().zip(pidfd);
        process.map_or_else(Of::default, |(pid, pidfd)| self.of_process(pid, pidfd.as_raw_fd()))
    }

    /// Of a process of which there is a descriptor: its number belongs to no other one as long as it lives.
    pub fn of_process(&self, pid: u32, pidfd: RawFd) -> Of {
        let Ok(cgroups) = fs::read_to_string(format!("/proc/{pid}/cgroup")) else { return Of::default() };
        let mut ended = libc::pollfd { fd: pidfd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, as is passed.
        let lives = unsafe { libc::poll(&raw mut ended, 1, 0) } == 0;
        if lives {
            self.of_cgroups(&cgroups)
        } else {
            Of::default()
        }
    }

    fn of_cgroups(&self, cgroups: &str) -> Of {
        let path = cgroups.lines().find_map(|line| line.strip_prefix("0::/"));
        path.map_or_else(Of::default, |path| self.of_path(path))
    }

    /// For what a process in that cgroup speaks.
    pub fn of_path(&self, path: &str) -> Of {
        let of = |found: Option<&str>| found.map(str::to_string);
        Of { unit: of(service(path)), container: of(self.configured(path)).or_else(|| container(path)) }
    }

    /// The innermost container that is configured, if it is in one.
    fn configured(&self, path: &str) -> Option<&str> {
        let holds = |cgroup: &str| {
            path.strip_prefix(cgroup).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = self.containers.iter().filter(|(_, cgroup)| holds(cgroup));
        all.max_by_key(|(_, cgroup)| cgroup.len()).map(|(name, _)| name.as_str())
    }
}

/// The service below `system.slice`: nobody but root puts processes there. One that runs programs of users is none: such a program would
/// speak for the service.
fn service(path: &str) -> Option<&str> {
    let below = path.split('/').next() == Some("system.slice");
    let is_service = |unit: &&str| unit.ends_with(".service") && !runs_programs_of_users(unit);
    system_unit(path).filter(|unit| below && is_service(unit))
}

/// The container of the system's that a cgroup is in, as its engine calls it: where root's engines, systemd and LXC put containers, and
/// nobody but root. What is inside of it, further containers too, speaks for it.
fn container(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    let first = parts.next()?;
    let of_lxc = || first.strip_prefix("lxc.payload.");
    let of_docker = || parts.clone().next().filter(|_| first == "docker"); // without systemd
    if let Some(name) = of_lxc().or_else(of_docker) {
        return Some(name).filter(|name| !name.is_empty()).map(str::to_string);
    }
    let unit = system_unit(path)?;
    if let Some(nspawn) = unit.strip_prefix("systemd-nspawn@").and_then(|rest| rest.strip_suffix(".service"))
    {
        return unescaped(nspawn);
    }
    let scope = unit.strip_suffix(".scope").filter(|scope| !scope.starts_with("libpod-conmon-"))?; // beside it
    let of_engine = ENGINES.iter().find_map(|prefix| scope.strip_prefix(prefix));
    unescaped(of_engine.or_else(|| (first == "machine.slice").then_some(scope))?)
}

/// A name that systemd has written with `\x2d` for `-`. Nothing: it is none.
fn unescaped(name: &str) -> Option<String> {
    let mut parts = name.split("\\x");
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty() && !name.contains(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(containers: &[(&str, &str)]) -> Result<Units> {
        Units::new(containers.iter().map(|(name, cgroup)| (name.to_string(), cgroup.to_string())).collect())
    }

    fn of(units: &Units, path: &str) -> Of {
        units.of_cgroups(&format!("1:name=x:/y\n0::{path}\n"))
    }

    #[test]
    fn services_of_the_system_are_units() {
        let units = Units::default();
        for (path, unit) in [
            ("/system.slice/web.service", Some("web.service")),
            ("/system.slice/web.service/worker", Some("web.service")),
            ("/system.slice/system-web.slice/web@1.service", Some("web@1.service")),
            ("/system.slice/system-getty.slice/getty@tty1.service", None),
            ("/system.slice/cron.service", None),
            ("/system.slice/ssh.service", None),
            ("/system.slice/system-sshd.slice/sshd@7-10.0.0.1:22.service", None),
            ("/system.slice/user@1000.service/app.slice/web.service", None),
            ("/system.slice/docker-1.scope", None),
            ("/system.slice", None),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", None),
            ("/user.slice/system.slice/web.service", None),
            ("/web.service", None),
            ("/", None),
        ] {
            assert_eq!(of(&units, path).unit.as_deref(), unit, "{path}");
        }
        assert_eq!(units.of_cgroups("1:cpu:/system.slice/web.service\n"), Of::default(), "of an older kind");
    }

    #[test]
    fn containers_are_called_as_their_engine_calls_them() {
        let units = Units::default();
        for (path, container) in [
            ("/system.slice/docker-0a1b.scope", Some("0a1b")),
            ("/system.slice/docker-0a1b.scope/system.slice/web.service", Some("0a1b")),
            ("/system.slice/docker-0a1b.scope/docker/inner", Some("0a1b")),
            ("/docker/0a1b/init", Some("0a1b")),
            ("/docker", None),
            ("/docker/", None),
            ("/machine.slice/libpod-0a1b.scope/container", Some("0a1b")),
            ("/machine.slice/libpod-conmon-0a1b.scope", None),
            ("/machine.slice/machine-my\\x2dshop.scope", Some("my-shop")),
            ("/machine.slice/systemd-nspawn@my\\x2dshop.service/payload", Some("my-shop")),
            ("/machine.slice/shop.scope", Some("shop")),
            ("/machine.slice/machine-.scope", None),
            ("/machine.slice/machine-a\\x2.scope", None),
            ("/machine.slice/machine-a\\x0a.scope", None),
            ("/machine.slice/machine-a\\xé.scope", None),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-pod7.slice/cri-containerd-0a1b.scope",
                Some("0a1b"),
            ),
            ("/lxc.payload.shop/system.slice/web.service", Some("shop")),
            ("/lxc.payload.", None),
            ("/system.slice/web.service", None),
            ("/system.slice/run-r7.scope", None),
            ("/system.slice/web.service/docker-0a1b.scope", None),
            ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0a1b.scope", None),
            ("/user.slice/machine.slice/shop.scope", None),
            ("/", None),
        ] {
            assert_eq!(of(&units, path).container.as_deref(), container, "{path}");
        }
    }

    #[test]
    fn a_container_is_what_is_configured_as_one() {
        let units =
            units(&[("shop", "/vs1/shop/"), ("all", "vs1"), ("web", "system.slice/docker-0a1b.scope")])
                .unwrap();
        for (path, container) in [
            ("/vs1/shop", Some("shop")),
            ("/vs1/shop/a/b", Some("shop")),
            ("/vs1/shopping", Some("all")),
            ("/vs1", Some("all")),
            ("/vs12", None),
            ("/a/vs1", None),
            ("/system.slice/docker-0a1b.scope/init", Some("web")),
            ("/system.slice/docker-ffff.scope", Some("ffff")),
        ] {
            assert_eq!(of(&units, path).container.as_deref(), container, "{path}");
        }
    }

    #[test]
    fn what_is_configured_badly_is_refused() {
        for (container, rule) in [
            (("", "vs1"), "container_needs_a_name"),
            ((&*"x".repeat(256), "vs1"), "container_needs_a_name"),
            (("shop", ""), "container_needs_a_cgroup"),
            (("shop", "//"), "container_needs_a_cgroup"),
        ] {
            let error = units(&[container]).err().unwrap().to_string();
            assert!(error.starts_with(rule), "{error}");
        }
    }

    #[test]
    fn a_process_that_has_ended_speaks_for_none() {
        let (one, other) = UnixStream::pair().unwrap();
        let (own, units) = (std::process::id() as i32, Units::default());
        // What this process is of, the kernel says; that it can be asked is what counts.
        let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert_eq!(units.of_peer(&one, own), units.of_cgroups(&cgroups));
        assert_eq!(units.of_peer(&other, -1), Of::default());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // SAFETY: a number, and no flags; the descriptor is closed below.
        let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) } as RawFd;
        assert!(pidfd >= 0);
        child.wait().unwrap();
        assert_eq!(units.of_process(std::process::id(), pidfd), Of::default());
        // SAFETY: ours.
        unsafe { libc::close(pidfd) };
    }
}
