//! The process that gives threads their class back when the loader has ended, and the memory by which the two know of each other.

use crate::threads::{self, Attributes, Class, EXT};
use std::ffi::c_int;
use std::io::Error;
use std::ptr::NonNull;
use tierce_plan::RealTime;
use tierce_policy::KERNEL;

/// As many as there can be leaves.
pub const SLOTS: usize = KERNEL.nodes as usize;

/// Higher than any thread that it gives a class, or these would keep the CPU from it.
const GUARDIAN_PRIORITY: c_int = 99;

/// How often the guardian looks whether the loader's turns go on; it helps when they have not twice.
const LOOK_MS: c_int = 50;

/// A guardian that has lived so long has another one at once when it ends.
const LONG_NS: u64 = 10_000_000_000;
/// One that has not: after a pause, which begins with this, doubles each time,
const PAUSE_NS: u64 = 100_000_000;
/// and is at most this.
const PAUSE_MAX_NS: u64 = 10_000_000_000;

/// What a thread was.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// 0: nobody's.
    pub tid: u32,
    pub policy: u32,
    pub priority: u32,
    /// Its children begin in the default class.
    pub resets_on_fork: u32,
    /// When it began; 0: not known yet.
    pub started: u64,
}

impl Slot {
    pub fn realtime(&self) -> Option<RealTime> {
        Class::from_number(self.policy.into()).realtime(self.priority)
    }

    /// The thread is again what it was, unless somebody has made it something else.
    pub fn give_back(&self) {
        let Ok(mut attributes) = threads::attributes(self.tid) else { return };
        let same = self.started == 0 || threads::started(self.tid) == Some(self.started);
        if same && attributes.policy == EXT {
            (attributes.policy, attributes.priority, attributes.nice) = (self.policy, self.priority, 0);
            let _ = threads::set_attributes(self.tid, &attributes); // it may be gone
        }
    }
}

/// What the guardian sees.
#[repr(C)]
struct Shared {
    /// Of the loader.
    turns: u64,
    /// What the loader was before a guardian had it run before all others. Written: `helped`, before that, and by the loader when the
    /// guardian that did it has ended. 0: it is what it was.
    is_helped: u32,
    helped: Attributes,
    slots: [Slot; SLOTS],
}

/// What became of the guardian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guardian {
    /// It has ended, or cannot be started; another one begins after that time.
    Ended {
        /// How.
        why: String,
        /// 0: at once.
        pause_ns: u64,
    },
    /// Another one is there.
    Again,
}

/// When there is a guardian, and when there is to be another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// That process, since then. The first one: it counts as one that has lived for long.
    There { pid: libc::pid_t, since_ns: Option<u64> },
    /// None until then.
    Pause { until_ns: u64 },
}

/// How long there is none after one has ended: nothing if it has lived for long, else twice as long as the time before.
fn pause_after(lived_ns: u64, before_ns: u64) -> u64 {
    match lived_ns >= LONG_NS {
        true => 0,
        false => (before_ns * 2).clamp(PAUSE_NS, PAUSE_MAX_NS),
    }
}

/// The loader's side of that.
pub struct Guarded {
    shared: NonNull<Shared>,
    /// The guardian's end of it says that the loader has ended.
    pipe: c_int,
    watch: Watch,
    /// The last pause.
    pause_ns: u64,
    /// What the loader has not taken yet.
    news: Vec<Guardian>,
}

// SAFETY: nobody else of this process knows it, and the guardian only reads: the slots when this process has ended, the turns as one word.
// What it writes the loader reads when it has ended.
unsafe impl Send for Guarded {}

impl Guarded {
    pub fn begin() -> Result<Guarded, Error> {
        // SAFETY: anonymous memory of that size, for which all zeros are valid.
        let shared = unsafe {
            let (length, rights) = (size_of::<Shared>(), libc::PROT_READ | libc::PROT_WRITE);
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0);
            if at == libc::MAP_FAILED {
                return Err(Error::last_os_error());
            }
            NonNull::new_unchecked(at.cast::<Shared>())
        };
        let (pid, pipe) = start(shared)?;
        let watch = Watch::There { pid, since_ns: None };
        Ok(Guarded { shared, pipe, watch, pause_ns: 0, news: Vec::new() })
    }

    /// The guardian, while there is one.
    pub fn guardian(&self) -> Option<u32> {
        match self.watch {
            Watch::There { pid, .. } => Some(pid as u32),
            Watch::Pause { .. } => None,
        }
    }

    pub fn take_news(&mut self) -> Vec<Guardian> {
        std::mem::take(&mut self.news)
    }

    pub fn read(&self, at: usize) -> Slot {
        // SAFETY: below SLOTS.
        unsafe { (&raw const (*self.shared.as_ptr()).slots[at]).read_volatile() }
    }

    pub fn write(&mut self, at: usize, slot: Slot) {
        // SAFETY: below SLOTS.
        unsafe { (&raw mut (*self.shared.as_ptr()).slots[at]).write_volatile(slot) }
    }

    /// Another turn of the loader. A guardian that has ended has a successor, which knows what it knew.
    pub fn turn(&mut self, now_ns: u64) {
        // SAFETY: ours to write.
        unsafe {
            let turns = &raw mut (*self.shared.as_ptr()).turns;
            turns.write_volatile(turns.read_volatile() + 1);
        }
        if let Watch::There { pid, since_ns } = self.watch {
            let Some(why) = ended(pid) else { return };
            let lived_ns = since_ns.map_or(u64::MAX, |since_ns| now_ns.saturating_sub(since_ns));
            self.close();
            self.pause(why, now_ns, lived_ns);
        }
        match self.watch {
            Watch::Pause { until_ns } if until_ns <= now_ns => self.again(now_ns),
            _ => {}
        }
    }

    fn again(&mut self, now_ns: u64) {
        match start(self.shared) {
            Ok((pid, pipe)) => {
                (self.pipe, self.watch) = (pipe, Watch::There { pid, since_ns: Some(now_ns) });
                self.news.push(Guardian::Again);
            }
            Err(error) => self.pause(format!("another cannot be started: {error}"), now_ns, 0),
        }
    }

    fn pause(&mut self, why: String, now_ns: u64, lived_ns: u64) {
        self.pause_ns = pause_after(lived_ns, self.pause_ns);
        self.watch = Watch::Pause { until_ns: now_ns + self.pause_ns };
        self.news.push(Guardian::Ended { why, pause_ns: self.pause_ns });
    }

    /// There is no guardian any more. If the last one has helped the loader, nobody else ends that.
    fn close(&mut self) {
        // SAFETY: our descriptor; nobody else writes there any more.
        unsafe {
            libc::close(self.pipe);
            let shared = self.shared.as_ptr();
            if (&raw const (*shared).is_helped).read_volatile() != 0 {
                let _ = threads::set_attributes(
                    libc::gettid() as u32,
                    &(&raw const (*shared).helped).read_volatile(),
                );
                (&raw mut (*shared).is_helped).write_volatile(0);
            }
        }
    }

    /// Everybody has his class back.
    pub fn end(mut self, used: usize) {
        if let Watch::There { pid, .. } = self.watch {
            // SAFETY: our descriptor, our child.
            unsafe {
                libc::close(self.pipe);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
                self.pipe = -1;
            }
            self.close();
        }
        // Should the guardian have been killed.
        (0..used).map(|at| self.read(at)).filter(|slot| slot.tid != 0).for_each(|slot| slot.give_back());
        // SAFETY: nobody uses them any more.
        unsafe { libc::munmap(self.shared.as_ptr().cast(), size_of::<Shared>()) };
    }
}

/// Another guardian: its number, and the end of a pipe that tells it that the loader has ended.
fn start(shared: NonNull<Shared>) -> Result<(libc::pid_t, c_int), Error> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors for the pipe.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a number.
    let loader = unsafe { libc::gettid() } as u32;
    // SAFETY: the child calls what a child of a process with one thread that runs may, and never returns.
    match unsafe { libc::fork() } {
        0 => guard(loader, ends[0], shared),
        -1 => {
            let error = Error::last_os_error();
            // SAFETY: both are ours.
            ends.into_iter().for_each(|end| _ = unsafe { libc::close(end) });
            Err(error)
        }
        guardian => {
            // SAFETY: that end is the guardian's.
            unsafe { libc::close(ends[0]) };
            Ok((guardian, ends[1]))
        }
    }
}

/// How a child has ended, if it has.
fn ended(pid: libc::pid_t) -> Option<String> {
    let mut status = 0;
    // SAFETY: our child, which nobody else waits for.
    match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
        0 => None,
        found if found == pid && libc::WIFSIGNALED(status) => {
            Some(format!("it was killed by signal {}", libc::WTERMSIG(status)))
        }
        _ => Some("it is gone".to_string()),
    }
}

/// The guardian. What ends the loader does not end it: a signal for the loader's group, a terminal that closes.
fn guard(loader: u32, pipe: c_int, shared: NonNull<Shared>) -> ! {
    // SAFETY: calls with numbers and valid pointers.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"tierce-classes".as_ptr());
        for (first, last) in [(0, pipe as u32 - 1), (pipe as u32 + 1, u32::MAX)] {
            libc::syscall(libc::SYS_close_range, first, last, 0);
        }
        let priority = libc::sched_param { sched_priority: GUARDIAN_PRIORITY };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority);
    }
    help(loader, pipe, shared);
    for at in 0..SLOTS {
        // SAFETY: the loader, which wrote them, has ended, or waits for us.
        let slot = unsafe { (&raw const (*shared.as_ptr()).slots[at]).read_volatile() };
        if slot.tid != 0 {
            slot.give_back();
        }
    }
    // SAFETY: a number.
    unsafe { libc::_exit(0) }
}

/// Until the loader has ended: where it gets no time it runs in a real-time class until its next turn.
fn help(loader: u32, pipe: c_int, shared: NonNull<Shared>) {
    let shared = shared.as_ptr();
    let (mut before, mut looks, mut is_helped) = (0, 0, false);
    loop {
        let mut ends = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        let ended = unsafe { libc::poll(&mut ends, 1, LOOK_MS) } > 0;
        // SAFETY: one word, written by the loader alone.
        let turns = unsafe { (&raw const (*shared).turns).read_volatile() };
        looks = if turns == before { looks + 1 } else { 0 };
        before = turns;
        if is_helped && (ended || looks == 0) {
            is_helped = false;
            // SAFETY: written here alone, while there is a guardian.
            unsafe {
                let _ = threads::set_attributes(loader, &(&raw const (*shared).helped).read_volatile());
                (&raw mut (*shared).is_helped).write_volatile(0);
            }
        }
        if ended {
            return;
        }
        if looks == 2 && !is_helped {
            let Ok(attributes) = threads::attributes(loader) else { continue };
            if !Class::from_number(attributes.policy.into()).above() {
                let mut first = attributes;
                (first.policy, first.priority) = (libc::SCHED_FIFO as u32, GUARDIAN_PRIORITY as u32 - 1);
                // SAFETY: as above. It is written first: should this process be killed, the loader finds it.
                unsafe {
                    (&raw mut (*shared).helped).write_volatile(attributes);
                    (&raw mut (*shared).is_helped).write_volatile(1);
                }
                is_helped = threads::set_attributes(loader, &first).is_ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let mut pauses = vec![pause_after(LONG_NS, PAUSE_MAX_NS)];
        (0..9).for_each(|at| pauses.push(pause_after(LONG_NS - 1, pauses[at])));
        let ms: Vec<u64> = pauses.iter().map(|ns| ns / 1_000_000).collect();
        assert_eq!(ms, [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn what_a_killed_guardian_has_made_of_the_loader_the_loader_ends() {
        let mut guarded = Guarded::begin().unwrap();
        // SAFETY: a number.
        let me = unsafe { libc::gettid() } as u32;
        let was = threads::attributes(me).unwrap();
        // As if it had been killed while it helped: what it wrote down is told from what the thread is by the nice value.
        let mut helped = was;
        helped.nice += 1;
        let shared = guarded.shared.as_ptr();
        let guardian = guarded.guardian().unwrap();
        // SAFETY: our memory, which the guardian leaves alone while the pipe is open and turns go on; a child of ours.
        unsafe {
            (&raw mut (*shared).helped).write_volatile(helped);
            (&raw mut (*shared).is_helped).write_volatile(1);
            assert_eq!(libc::kill(guardian as libc::pid_t, libc::SIGKILL), 0);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            assert_eq!(libc::waitid(libc::P_PID, guardian, &mut info, libc::WEXITED | libc::WNOWAIT), 0);
        }
        guarded.turn(0);
        assert_eq!(threads::attributes(me).unwrap().nice, was.nice + 1);
        // SAFETY: as above.
        assert_eq!(unsafe { (&raw const (*shared).is_helped).read_volatile() }, 0);
        guarded.end(0);
    }
}
