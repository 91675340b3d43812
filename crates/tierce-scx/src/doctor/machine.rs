//! The machine that is looked at, as files below a root folder.

use std::io::Read;
use std::path::PathBuf;

/// The machine: files below a root folder, and what cannot be read from files.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
    pub(super) bpf_error: Option<i32>,
}

impl Host {
    /// This machine.
    pub fn here() -> Host {
        Host { root: "/".into(), bpf_error: bpf_error() }
    }

    /// A machine whose files lie below `root`; `bpf_error`: what the system call `bpf` fails with there.
    pub fn at(root: impl Into<PathBuf>, bpf_error: Option<i32>) -> Host {
        Host { root: root.into(), bpf_error }
    }

    /// How many CPUs are online, if they are 0 to n - 1.
    pub fn cpus(&self) -> Option<u32> {
        let online = cpu_list(&self.text("/sys/devices/system/cpu/online")?)?;
        let count = online.len() as u32;
        (count > 0 && online.iter().copied().eq(0..count)).then_some(count)
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end().to_string())
    }

    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    pub(super) fn release(&self) -> String {
        self.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into())
    }

    /// 7.0.13-… is (7, 0).
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        let release = self.release();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    /// Where the kernel's build configuration is, and what it says.
    pub(super) fn config(&self) -> Option<(String, String)> {
        if let Ok(packed) = std::fs::File::open(self.path("/proc/config.gz")) {
            let mut text = String::new();
            if flate2::read::GzDecoder::new(packed).read_to_string(&mut text).is_ok() {
                return Some(("/proc/config.gz".into(), text));
            }
        }
        let release = self.release();
        [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
            .into_iter()
            .find_map(|path| Some((path.clone(), self.text(&path)?)))
    }

    /// Whether an option is built in; `None`: not known.
    pub(super) fn option(&self, name: &str) -> Option<bool> {
        let (_, text) = self.config()?;
        Some(text.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest == "=y")))
    }

    /// A line of this process's status.
    pub(super) fn status(&self, key: &str) -> Option<String> {
        let text = self.text("/proc/self/status")?;
        Some(text.lines().find_map(|line| line.strip_prefix(key))?.trim().to_string())
    }
}

/// Make a BPF map of one number, to see whether this process may.
fn bpf_error() -> Option<i32> {
    const ARRAY: u32 = 2;
    // SAFETY: no name and no options are allowed; the descriptor is closed once.
    unsafe {
        let descriptor = libbpf_sys::bpf_map_create(ARRAY, std::ptr::null(), 4, 4, 1, std::ptr::null());
        match descriptor {
            0.. => {
                libc::close(descriptor);
                None
            }
            error => Some(-error),
        }
    }
}

/// `0-3,8` as numbers, ascending.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if to > 1 << 16 {
            return None;
        }
        list.extend(from..=to);
    }
    list.sort_unstable();
    Some(list)
}
