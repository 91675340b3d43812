//! How an object is loaded.

use tierce_plan::Topology;
use tierce_trace::Kind;

/// The shortest timer worth arming in the kernel.
pub const FLOOR_NS: u64 = 2_000;

/// Kinds of events for statistics if the kernel side counts decisions and switches.
pub const COUNTS: u64 = kinds(&[Kind::Name, Kind::Attach, Kind::Detach, Kind::Mode]);

/// Kinds of events for all statistics.
pub const STATS: u64 = COUNTS
    | kinds(&[
        Kind::Decision,
        Kind::Grant,
        Kind::Revoke,
        Kind::Throttle,
        Kind::Replenish,
        Kind::Forgive,
        Kind::Stolen,
        Kind::JobRelease,
        Kind::JobComplete,
        Kind::Miss,
        Kind::Migrate,
        Kind::Unkept,
    ]);

/// Kinds of events by which demand is measured, besides.
pub const MEASURED: u64 = kinds(&[Kind::Request, Kind::Release, Kind::Outside]);

/// Those of waits for locks.
pub const LOCK_WAITS: u64 = kinds(&[Kind::LockWait, Kind::LockEnd]);

/// Those of marks.
pub const MARKS: u64 = kinds(&[Kind::Mark]);

/// Every kind of event.
pub const EVERYTHING: u64 = u64::MAX;

const fn kinds(list: &[Kind]) -> u64 {
    let (mut bits, mut index) = (0, 0);
    while index < list.len() {
        bits |= 1 << list[index] as u16;
        index += 1;
    }
    bits
}

/// What to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// CPUs, ids from 0.
    pub cpus: u32,
    /// Which CPUs are near each other; `None`: what the machine says.
    pub topology: Option<Topology>,
    /// Policies that nodes may have, a bit each by number. The others are left out of the kernel object: it is verified and runs faster
    /// without.
    pub policies: u64,
    /// Parts of the engine that the graph may need, a bit each ([`tierce_policy::Part`]); the others are left out, too.
    pub parts: u64,
    /// Shortest timer worth arming.
    pub floor_ns: u64,
    /// Kinds of events wanted, a bit each.
    pub trace_kinds: u64,
    /// Record every entry.
    pub record: bool,
    /// Interrupts and the scheduler's own time are nobody's; else whoever runs pays for them.
    pub overheads_stolen: bool,
    /// A thread without a budget goes on to user mode first.
    pub throttle_at_user: bool,
    /// Locks are given in the order of asking. On a virtual machine that gives them to CPUs that do not run.
    pub locks_fair: bool,
    /// Count acquisitions of locks and kicks ([`Kernel::lock_side`], [`CpuSide::kicks`]); takes time at every lock.
    pub count_contention: bool,
    /// Who waits for whose lock: [`Kind::LockWait`] and [`Kind::LockEnd`].
    pub watch_locks: bool,
    /// Who has a lock runs in the place of who waits for it.
    pub inherits: bool,
    /// Files whose programs write marks: libraries by name, or absolute paths.
    pub marks: Vec<String>,
    /// Bytes of the ring that records come through, a power of two.
    pub ring_bytes: u32,
    /// A runnable thread that waits longer ends the scheduler.
    pub watchdog_ms: u32,
    /// [`Kernel::exercise`] will be called. Loading takes less time without.
    pub exercise: bool,
}

/// Does the processor say that a hypervisor runs it? What cannot be read counts as a real machine.
fn on_virtual_machine() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| says_hypervisor(&text))
}

/// Can this machine never have another CPU? What cannot be read counts as one that can.
pub(super) fn has_one_cpu() -> bool {
    std::fs::read_to_string("/sys/devices/system/cpu/possible").is_ok_and(|possible| possible.trim() == "0")
}

pub(super) fn says_hypervisor(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.next().is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

impl Options {
    /// Who waits for whose lock has to be known.
    pub(super) fn hears_of_locks(&self) -> bool {
        self.watch_locks || self.inherits
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cpus: 1,
            topology: None,
            policies: u64::MAX,
            parts: u64::MAX,
            floor_ns: FLOOR_NS,
            trace_kinds: 0,
            record: false,
            overheads_stolen: true,
            throttle_at_user: false,
            locks_fair: !on_virtual_machine(),
            count_contention: false,
            watch_locks: false,
            inherits: false,
            marks: Vec::new(),
            ring_bytes: 1 << 22,
            watchdog_ms: 30_000,
            exercise: false,
        }
    }
}

impl Options {
    /// Are sets of CPUs longer than a word (`PORT_MANY`)?
    pub(super) fn has_many_cpus(&self) -> bool {
        self.cpus > 64
    }
}
