//! The machine's threads: what /proc says of them, and how to make one pass through the scheduler.
//!
//! Threads come and go while they are looked at. One that is gone is left out; one whose id was taken by another in the
//! meantime is noticed by its start time and left out too.

use std::fs;
use std::io::{Error, Read, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tierce_plan::{Class as RealTimeClass, Cpus, RealTime, Thread};

/// Which of the kernel's scheduling classes a thread is in, by its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// SCHED_OTHER.
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_EXT.
    Ext,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    RoundRobin,
    /// SCHED_DEADLINE.
    Deadline,
}

impl Class {
    /// Its name in the kernel's manual pages.
    pub fn name(self) -> &'static str {
        match self {
            Class::Other => "SCHED_OTHER",
            Class::Batch => "SCHED_BATCH",
            Class::Idle => "SCHED_IDLE",
            Class::Ext => "SCHED_EXT",
            Class::Fifo => "SCHED_FIFO",
            Class::RoundRobin => "SCHED_RR",
            Class::Deadline => "SCHED_DEADLINE",
        }
    }

    /// Whether its threads run before all of sched_ext.
    pub fn above(self) -> bool {
        matches!(self, Class::Fifo | Class::RoundRobin | Class::Deadline)
    }

    /// As a plan sees it, if its threads have a priority there.
    pub fn realtime(self, priority: u32) -> Option<RealTime> {
        let class = match self {
            Class::Fifo => RealTimeClass::Fifo,
            Class::RoundRobin => RealTimeClass::RoundRobin,
            _ => return None,
        };
        Some(RealTime { class, priority })
    }

    pub(crate) fn from_number(number: u64) -> Class {
        match number {
            1 => Class::Fifo,
            2 => Class::RoundRobin,
            3 => Class::Batch,
            5 => Class::Idle,
            6 => Class::Deadline,
            7 => Class::Ext,
            _ => Class::Other,
        }
    }
}

/// A live thread: what a plan can match, and what decides whether a plan can rule it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// What a plan can match.
    pub thread: Thread,
    /// Its scheduling class.
    pub class: Class,
    /// CPUs it may run on; those beyond a plan's limit are left out.
    pub allowed: Cpus,
    /// How many CPUs it may run on.
    pub allowed_count: u32,
    /// The kernel itself has chosen these, and nobody may change them.
    pub is_bound: bool,
}

impl Live {
    /// A kernel thread of one CPU: Tierce does not schedule it. On a machine of one CPU that is not every kernel thread.
    pub fn is_pinned(&self) -> bool {
        self.thread.is_kthread && self.is_bound && self.allowed_count == 1
    }

    /// Tierce does not schedule it: a higher scheduling class, or a kernel thread of one CPU.
    pub fn is_outside(&self) -> bool {
        self.class.above() || self.is_pinned()
    }
}

/// A view of /proc, or of a folder that looks like it.
#[derive(Clone, Debug)]
pub struct Proc(PathBuf);

impl Default for Proc {
    fn default() -> Self {
        Proc::at("/proc")
    }
}

impl Proc {
    /// The threads below this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Proc {
        Proc(folder.into())
    }

    /// All processes there are now.
    pub fn processes(&self) -> Vec<u32> {
        numbers(&self.0)
    }

    /// All thread ids there are now, ascending.
    pub fn ids(&self) -> Vec<u32> {
        let task = |pid: u32| numbers(&self.0.join(pid.to_string()).join("task"));
        let mut list: Vec<u32> = self.processes().into_iter().flat_map(task).collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    /// All threads there are now, by thread id.
    pub fn all(&self) -> Vec<Live> {
        self.ids().into_iter().filter_map(|tid| self.look(tid)).collect()
    }

    /// The path of a thread's cgroup; `None`: it is gone.
    pub fn cgroup(&self, tid: u32) -> Option<String> {
        contents(&self.0.join(tid.to_string()).join("cgroup")).map(|text| cgroup(&text)).ok()
    }

    /// What is known of a thread; `None`: it is gone.
    pub fn look(&self, tid: u32) -> Option<Live> {
        // /proc/TID/stat would add up all threads of the process, of which there may be thousands.
        let folder = self.0.join(format!("{tid}/task/{tid}"));
        let read = |name: &str| contents(&folder.join(name)).ok();
        let stat = Stat::parse(&read("stat")?)?;
        let status = read("status")?;
        let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let number = |key: &str, index: usize| -> Option<u32> {
            field(key)?.split_whitespace().nth(index)?.parse().ok()
        };
        let pid = number("Tgid:", 0)?;
        let pcomm = match pid == tid {
            true => stat.comm.clone(),
            false => contents(&self.0.join(pid.to_string()).join("comm"))
                .map(|name| name.trim_end_matches('\n').to_string())
                .unwrap_or_default(),
        };
        let exe = fs::read_link(folder.join("exe"))
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default();
        let exe = exe.strip_suffix(" (deleted)").unwrap_or(&exe).to_string(); // an update replaced the file
        let exe_owner = owner(&folder.join("exe"), &exe);
        let (allowed, allowed_count) = field("Cpus_allowed:").map_or((Cpus::ALL, u32::MAX), mask);
        let live = Live {
            thread: Thread {
                comm: stat.comm.clone(),
                pcomm,
                exe,
                exe_owner,
                checksum: None,
                cgroup: self.cgroup(tid).unwrap_or_default(),
                uid: number("Uid:", 1)?,
                gid: number("Gid:", 1)?,
                real_uid: number("Uid:", 0)?,
                real_gid: number("Gid:", 0)?,
                pid,
                tid,
                ppid: number("PPid:", 0)?,
                nice: stat.nice,
                realtime: stat.class.realtime(stat.priority),
                is_kthread: stat.flags & PF_KTHREAD != 0,
                started: stat.started,
            },
            class: stat.class,
            allowed,
            allowed_count,
            is_bound: stat.flags & PF_NO_SETAFFINITY != 0,
        };
        // Still the same thread?
        let again = Stat::parse(&read("stat")?)?;
        (again.started == stat.started).then_some(live)
    }
}

const PF_KTHREAD: u64 = 0x0020_0000;
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// A file of /proc, most of which fit a page; their sizes, for which `fs::read` asks, are 0 there.
fn contents(path: &Path) -> Result<String> {
    let mut bytes = Vec::with_capacity(4096);
    fs::File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Who owns the executable that a thread runs, if the file at its path is that one: in a mount namespace of its own a thread can
/// have any path.
fn owner(runs: &Path, path: &str) -> Option<u32> {
    let (runs, there) = (fs::metadata(runs).ok()?, fs::metadata(path).ok()?);
    (runs.dev() == there.dev() && runs.ino() == there.ino()).then_some(runs.uid())
}

/// The numbers that name the entries of a folder.
fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What is taken from /proc/TID/stat: fields by number, of which the second is a name in parentheses that may contain
/// anything.
struct Stat {
    comm: String,
    flags: u64,
    nice: i32,
    started: u64,
    /// Of a real-time class.
    priority: u32,
    class: Class,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        let (front, rest) = text.rsplit_once(')')?;
        let comm = front.split_once('(')?.1.to_string();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
        Some(Stat {
            comm,
            flags: number(9)? as u64,
            nice: number(19)? as i32,
            started: number(22)? as u64,
            priority: number(40).unwrap_or(0) as u32,
            class: Class::from_number(number(41).unwrap_or(0) as u64),
        })
    }
}

/// The path of version 2's hierarchy, else of systemd's own; without the leading `/`.
fn cgroup(text: &str) -> String {
    let path = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let named = || text.lines().find_map(|line| Some(line.split_once(":name=systemd:")?.1));
    path("0::")
        .filter(|path| *path != "/")
        .or_else(named)
        .unwrap_or_default()
        .trim_start_matches('/')
        .to_string()
}

/// A mask as the kernel prints it (`ff,ffffffff`): its lowest 64 bits, and how many are set in all.
fn mask(text: &str) -> (Cpus, u32) {
    let halves: Vec<u64> =
        text.rsplit(',').map(|word| u32::from_str_radix(word.trim(), 16).unwrap_or(0).into()).collect();
    let words = halves.chunks(2).map(|halves| halves[0] | halves.get(1).unwrap_or(&0) << 32);
    (Cpus::from_words(words), halves.iter().map(|half| half.count_ones()).sum())
}

/// All thread ids there are now.
pub fn all() -> Vec<u32> {
    Proc::default().ids()
}

/// Those of a process.
pub fn of(pid: u32) -> Vec<u32> {
    numbers(&Path::new("/proc").join(pid.to_string()).join("task"))
}

/// CPUs on which a thread may run, if it is surely one that a plan can rule; without a look at /proc.
pub fn allowed_if_ruled(tid: u32) -> Option<Cpus> {
    const RESET_ON_FORK: i32 = 0x4000_0000;
    let mut mask = [0u64; 128];
    // SAFETY: the mask has the size that is passed; the other calls have numbers only.
    let (class, size, group) = unsafe {
        let at = mask.as_mut_ptr();
        (
            libc::sched_getscheduler(tid as i32),
            libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&mask), at),
            libc::getpgid(tid as i32),
        )
    };
    // A kernel thread is in no process group.
    let is_known = class >= 0 && size > 0 && group > 0;
    let above = Class::from_number((class & !RESET_ON_FORK) as u64).above();
    (is_known && !above).then(|| Cpus::from_words(mask))
}

/// What a plan can match of a thread; `None`: it is gone.
pub fn look(tid: u32) -> Option<Thread> {
    Proc::default().look(tid).map(|live| live.thread)
}

/// Whose it is, as /proc says: of a program that has set its user, root's.
pub(crate) fn user_of(tid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{tid}")).ok().map(|folder| folder.uid())
}

/// Whether it is there.
pub fn exists(tid: u32) -> bool {
    // SAFETY: takes a number. Anybody may ask, and /proc would take much longer.
    tid != 0 && unsafe { libc::sched_getscheduler(tid as libc::pid_t) } >= 0
}

/// Its name.
pub fn name(tid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_string())
}

/// When it began, since the boot of the machine, in ticks.
pub(crate) fn started(tid: u32) -> Option<u64> {
    let text = contents(&Path::new("/proc").join(format!("{tid}/task/{tid}/stat"))).ok()?;
    Some(Stat::parse(&text)?.started)
}

/// CPU time that it has had since it began.
pub fn ran_ns(tid: u32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?.split_whitespace().next()?.parse().ok()
}

/// SCHED_EXT.
pub(crate) const EXT: u32 = 7;
/// SCHED_OTHER.
pub(crate) const OTHER: u32 = 0;
/// Of [`Attributes::flags`]: children begin in the default class.
pub(crate) const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr`, version 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    size: u32,
    pub(crate) policy: u32,
    pub(crate) flags: u64,
    pub(crate) nice: i32,
    pub(crate) priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Take the thread off its queue and put it back: the kernel does that when its scheduling attributes are set. Only its
/// EEVDF slice is touched, and set back to what it was.
pub fn requeue(tid: u32) -> Result<()> {
    let mut attributes = attributes(tid)?;
    let slice_ns = attributes.runtime_ns;
    for runtime_ns in [slice_ns + 1, slice_ns] {
        attributes.runtime_ns = runtime_ns;
        set_attributes(tid, &attributes)?;
    }
    Ok(())
}

/// What sched_getattr(2) says of a thread.
pub(crate) fn attributes(tid: u32) -> Result<Attributes> {
    let size = size_of::<Attributes>() as u32;
    let mut attributes = Attributes { size, ..Default::default() };
    // SAFETY: the structure has the size that is passed, in the kernel's layout.
    let code = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &mut attributes, size, 0) };
    attributes.flags &= RESET_ON_FORK; // others cannot be given back
    if code < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(attributes)
    }
}

/// Set them.
pub(crate) fn set_attributes(tid: u32, attributes: &Attributes) -> Result<()> {
    // SAFETY: as above.
    let code = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, attributes, 0) };
    if code < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(())
    }
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
    fn what_is_ruled_is_known_without_proc() {
        let pid = std::process::id();
        assert_eq!(allowed_if_ruled(pid), Some(Proc::default().look(pid).unwrap().allowed));
        assert_eq!(allowed_if_ruled(2), None, "a kernel thread, or nobody");
        assert_eq!(allowed_if_ruled(u32::MAX >> 1), None);
    }

    #[test]
    fn the_class_of_itself() {
        let pid = std::process::id();
        let me = Proc::default().look(pid).unwrap();
        assert_eq!(me.class, Class::Other);
        assert_eq!(me.allowed.count(), me.allowed_count);
        assert!(!me.allowed.is_empty() && !me.is_pinned());
    }

    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tierce-threads-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    const STATUS: &str =
        "Name:\tx\nTgid:\t70\nPPid:\t1\nUid:\t1000\t1001\t1002\t1003\nGid:\t100\t101\t102\t103\n\
                          Cpus_allowed:\t3,00000005\n";

    fn stat(comm: &str, flags: u64, class: u32) -> String {
        let unused = "9 ".repeat(18);
        format!("71 ({comm}) S 1 70 70 0 -1 {flags} 0 0 0 0 1 2 3 4 20 -5 2 0 1234 {unused}{class} 0\n")
    }

    #[test]
    fn everything_that_can_be_matched() {
        let stat = stat("a) R (b", 0, 1);
        let files = [
            ("70/task/70/x", ""),
            ("70/task/71/x", ""),
            ("70/comm", "rt-app\n"),
            ("71/task/71/stat", &stat),
            ("71/task/71/status", STATUS),
            ("71/cgroup", "0::/user.slice/session-3.scope\n"),
            ("self/comm", "x"),
        ];
        let root = folder("all", &files);
        std::os::unix::fs::symlink("/usr/bin/rt-app (deleted)", root.join("71/task/71/exe")).unwrap();
        let proc = Proc::at(&root);
        assert_eq!(proc.ids(), [70, 71]);
        let all = proc.all();
        assert_eq!(all.len(), 1, "70 is gone already");
        let expected = Thread {
            comm: "a) R (b".into(),
            pcomm: "rt-app".into(),
            exe: "/usr/bin/rt-app".into(),
            cgroup: "user.slice/session-3.scope".into(),
            exe_owner: None,
            checksum: None,
            uid: 1001,
            gid: 101,
            real_uid: 1000,
            real_gid: 100,
            pid: 70,
            tid: 71,
            ppid: 1,
            nice: -5,
            realtime: Some(RealTime { class: RealTimeClass::Fifo, priority: 9 }),
            is_kthread: false,
            started: 1234,
        };
        assert_eq!(
            all[0],
            Live {
                thread: expected,
                class: Class::Fifo,
                allowed: Cpus::from(0x3_0000_0005),
                allowed_count: 4,
                is_bound: false
            }
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_thread_that_goes_meanwhile_is_left_out() {
        let stat = stat("x", PF_KTHREAD, 0);
        for gone in ["stat", "status"] {
            let files = [("71/task/71/stat", stat.as_str()), ("71/task/71/status", STATUS)];
            let root = folder(gone, &files);
            assert!(Proc::at(&root).look(71).is_some_and(|live| live.thread.is_kthread && !live.is_pinned()));
            fs::remove_file(root.join("71/task/71").join(gone)).unwrap();
            assert_eq!(Proc::at(&root).look(71), None);
            fs::write(root.join("71/task/71").join(gone), "").unwrap(); // half gone
            assert_eq!(Proc::at(&root).look(71), None);
            fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn classes_masks_and_groups() {
        for (number, name, above) in [
            (0, "SCHED_OTHER", false),
            (1, "SCHED_FIFO", true),
            (2, "SCHED_RR", true),
            (3, "SCHED_BATCH", false),
            (5, "SCHED_IDLE", false),
            (6, "SCHED_DEADLINE", true),
            (7, "SCHED_EXT", false),
        ] {
            let class = Class::from_number(number);
            assert_eq!((class.name(), class.above()), (name, above));
        }
        assert_eq!(mask("f"), (Cpus::upto(4), 4));
        assert_eq!(mask("1,00000000,80000001"), (Cpus::from(0x8000_0001).with(64), 3));
        for (text, path) in [
            ("0::/a/b\n", "a/b"),
            ("12:cpu:/x\n1:name=systemd:/c.slice\n0::/\n", "c.slice"),
            ("0::/\n", ""),
            ("", ""),
        ] {
            assert_eq!(cgroup(text), path);
        }
    }

    #[test]
    fn requeues_itself() {
        // SAFETY: no arguments.
        let tid = unsafe { libc::gettid() };
        requeue(tid as u32).unwrap();
    }
}
