//! Threads that have left their real-time class for a place of the plan, and how they get it back.
//!
//! The kernel has no scheduler of ours decide for a thread of SCHED_FIFO or SCHED_RR. Such a thread becomes one of SCHED_EXT, and what it
//! was is written down first, in memory that the loader shares with a process of its own, the guardian. That one waits for the loader
//! to end, however that happens (its end of a pipe closes), and gives all threads their class back. Whoever has changed the class of a
//! thread meanwhile had a newer wish: only a thread that is still of SCHED_EXT gets back what it had.
//!
//! A thread that has just got a real-time class keeps the loader from the CPU, which is what would contain it. The guardian sees that the
//! loader's turns do not go on, and has it run before all others for one.

use crate::threads::{self, Class, EXT};
use std::collections::HashMap;
use std::ffi::c_int;
use std::io::Error;
use std::ptr::NonNull;
use tierce_plan::RealTime;
use tierce_policy::KERNEL;

/// As many as there can be leaves.
const SLOTS: usize = KERNEL.nodes as usize;

/// Higher than any thread that it gives a class, or these would keep the CPU from it.
const GUARDIAN_PRIORITY: c_int = 99;

/// How often the guardian looks whether the loader's turns go on; it helps when they have not twice.
const LOOK_MS: c_int = 50;

/// What a thread was.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// 0: nobody's.
    tid: u32,
    policy: u32,
    priority: u32,
    /// Its children begin in the default class.
    resets_on_fork: u32,
    /// When it began; 0: not known yet.
    started: u64,
}

impl Slot {
    fn realtime(&self) -> Option<RealTime> {
        Class::from_number(self.policy.into()).realtime(self.priority)
    }

    /// The thread is again what it was, unless somebody has made it something else.
    fn give_back(&self) {
        let Ok(mut attributes) = threads::attributes(self.tid) else { return };
        let same = self.started == 0 || threads::started(self.tid) == Some(self.started);
        if same && attributes.policy == EXT {
            (attributes.policy, attributes.priority, attributes.nice) = (self.policy, self.priority, 0);
            let _ = threads::set_attributes(self.tid, &attributes); // it may be gone
        }
    }
}

/// What becomes of a thread that a contained one has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inherits {
    /// What that was.
    Class,
    /// The default class.
    Nothing,
}

/// The threads that are contained.
#[derive(Default)]
pub(crate) struct Classes {
    slots: HashMap<u32, usize>,
    /// Below `used`.
    free: Vec<usize>,
    used: usize,
    guarded: Option<Guarded>,
}

impl Classes {
    /// Threads will be contained: the guardian is there from now on.
    pub fn guard(&mut self) -> Result<(), Error> {
        if self.guarded.is_none() {
            self.guarded = Some(Guarded::begin()?);
        }
        Ok(())
    }

    /// Whether that process is the guardian.
    pub fn is_guardian(&self, pid: u32) -> bool {
        self.guarded.as_ref().is_some_and(|guarded| guarded.guardian as u32 == pid)
    }

    /// Another turn of the loader.
    pub fn turn(&mut self) {
        if let Some(guarded) = &mut self.guarded {
            guarded.turn();
        }
    }

    /// What a thread was before it was contained; `None`: it is not.
    pub fn of(&self, tid: u32) -> Option<RealTime> {
        self.slot(tid)?.realtime()
    }

    /// Whether any is.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn slot(&self, tid: u32) -> Option<Slot> {
        let (at, guarded) = (*self.slots.get(&tid)?, self.guarded.as_ref()?);
        Some(guarded.read(at))
    }

    /// Make a thread one of SCHED_EXT. The error says why it is none.
    pub fn contain(&mut self, tid: u32, nice: i32, started: u64) -> Result<(), String> {
        let text = |error: Error| format!("its class cannot be changed: {error}");
        let mut attributes = threads::attributes(tid).map_err(text)?;
        let (policy, priority) = (attributes.policy, attributes.priority);
        if Class::from_number(policy.into()).realtime(priority).is_none() {
            return Err("its class has just changed".into());
        }
        let resets_on_fork = u32::from(attributes.flags & threads::RESET_ON_FORK != 0);
        self.write(Slot { tid, policy, priority, resets_on_fork, started }).map_err(text)?;
        (attributes.policy, attributes.priority, attributes.nice) = (EXT, 0, nice);
        threads::set_attributes(tid, &attributes).map_err(|error| {
            self.forget(tid);
            text(error)
        })
    }

    /// A thread has started another one.
    pub fn inherit(&mut self, from: u32, tid: u32) -> Option<Inherits> {
        let slot = self.slot(from)?;
        if slot.resets_on_fork != 0 {
            return Some(Inherits::Nothing);
        }
        self.write(Slot { tid, started: 0, ..slot }).ok()?;
        Some(Inherits::Class)
    }

    /// The thread is this one: another that had its number is gone.
    pub fn is_still(&mut self, tid: u32, started: u64) -> bool {
        let Some(slot) = self.slot(tid) else { return false };
        if slot.started == 0 {
            return self.write(Slot { started, ..slot }).is_ok();
        }
        slot.started == started
    }

    /// It is what it was again.
    pub fn give_back(&mut self, tid: u32) {
        if let Some(slot) = self.slot(tid) {
            slot.give_back();
            self.forget(tid);
        }
    }

    /// It has another class, or is gone.
    pub fn forget(&mut self, tid: u32) {
        if let (Some(at), Some(guarded)) = (self.slots.remove(&tid), &mut self.guarded) {
            guarded.write(at, Slot::default());
            self.free.push(at);
        }
    }

    /// All are what they were.
    pub fn give_all_back(&mut self) {
        let Some(guarded) = self.guarded.take() else { return };
        guarded.end(self.used);
        *self = Classes::default();
    }

    fn write(&mut self, slot: Slot) -> Result<(), Error> {
        self.guard()?;
        let at = match self.slots.get(&slot.tid) {
            Some(at) => *at,
            None => self.room()?,
        };
        self.slots.insert(slot.tid, at);
        if let Some(guarded) = &mut self.guarded {
            guarded.write(at, slot);
        }
        Ok(())
    }

    /// A free slot.
    fn room(&mut self) -> Result<usize, Error> {
        if self.free.is_empty() && self.used == SLOTS {
            let gone: Vec<u32> = self.slots.keys().copied().filter(|tid| !threads::exists(*tid)).collect();
            gone.into_iter().for_each(|tid| self.forget(tid));
        }
        if let Some(at) = self.free.pop() {
            return Ok(at);
        }
        if self.used == SLOTS {
            return Err(Error::from_raw_os_error(libc::ENOSPC));
        }
        self.used += 1;
        Ok(self.used - 1)
    }
}

impl Drop for Classes {
    fn drop(&mut self) {
        self.give_all_back();
    }
}

/// What the guardian sees.
#[repr(C)]
struct Shared {
    /// Of the loader.
    turns: u64,
    slots: [Slot; SLOTS],
}

/// The loader's side of that.
struct Guarded {
    shared: NonNull<Shared>,
    /// When this closes the loader has ended.
    pipe: c_int,
    guardian: libc::pid_t,
}

// SAFETY: nobody else of this process knows it, and the guardian only reads: the slots when this process has ended, the turns as one word.
unsafe impl Send for Guarded {}

impl Guarded {
    fn begin() -> Result<Guarded, Error> {
        let mut ends = [0; 2];
        // SAFETY: anonymous memory of that size, for which all zeros are valid; two descriptors for the pipe.
        let shared = unsafe {
            let (length, rights) = (size_of::<Shared>(), libc::PROT_READ | libc::PROT_WRITE);
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0);
            if at == libc::MAP_FAILED || libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return Err(Error::last_os_error());
            }
            NonNull::new_unchecked(at.cast::<Shared>())
        };
        // SAFETY: the child calls what a child of a process with one thread that runs may, and never returns.
        let loader = unsafe { libc::gettid() } as u32;
        // SAFETY: as above.
        match unsafe { libc::fork() } {
            0 => guard(loader, ends[0], shared),
            -1 => Err(Error::last_os_error()),
            guardian => {
                // SAFETY: that end is the guardian's.
                unsafe { libc::close(ends[0]) };
                Ok(Guarded { shared, pipe: ends[1], guardian })
            }
        }
    }

    fn read(&self, at: usize) -> Slot {
        // SAFETY: below SLOTS.
        unsafe { (&raw const (*self.shared.as_ptr()).slots[at]).read_volatile() }
    }

    fn write(&mut self, at: usize, slot: Slot) {
        // SAFETY: below SLOTS.
        unsafe { (&raw mut (*self.shared.as_ptr()).slots[at]).write_volatile(slot) }
    }

    fn turn(&mut self) {
        // SAFETY: ours to write.
        unsafe {
            let turns = &raw mut (*self.shared.as_ptr()).turns;
            turns.write_volatile(turns.read_volatile() + 1);
        }
    }

    /// Everybody has his class back.
    fn end(self, used: usize) {
        // SAFETY: our descriptor, our child, our memory.
        unsafe {
            libc::close(self.pipe);
            libc::waitpid(self.guardian, std::ptr::null_mut(), 0);
        }
        // Should the guardian have been killed.
        (0..used).map(|at| self.read(at)).filter(|slot| slot.tid != 0).for_each(|slot| slot.give_back());
        // SAFETY: nobody uses them any more.
        unsafe { libc::munmap(self.shared.as_ptr().cast(), size_of::<Shared>()) };
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
    let (mut before, mut looks, mut helped) = (0, 0, None);
    loop {
        let mut ends = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        let ended = unsafe { libc::poll(&mut ends, 1, LOOK_MS) } > 0;
        // SAFETY: one word, written by the loader alone.
        let turns = unsafe { (&raw const (*shared.as_ptr()).turns).read_volatile() };
        looks = if turns == before { looks + 1 } else { 0 };
        before = turns;
        if ended || looks == 0 {
            if let Some(attributes) = helped.take() {
                let _ = threads::set_attributes(loader, &attributes);
            }
        }
        if ended {
            return;
        }
        if looks == 2 && helped.is_none() {
            let Ok(attributes) = threads::attributes(loader) else { continue };
            if !Class::from_number(attributes.policy.into()).above() {
                let mut first = attributes;
                (first.policy, first.priority) = (libc::SCHED_FIFO as u32, GUARDIAN_PRIORITY as u32 - 1);
                helped = threads::set_attributes(loader, &first).ok().map(|()| attributes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_plan::Class as RealTimeClass;

    #[test]
    fn slots_are_written_read_and_used_again() {
        let mut classes = Classes::default();
        assert!(classes.is_empty() && classes.of(7).is_none());
        let slot = |tid, started| Slot {
            tid,
            policy: 1,
            priority: 50,
            resets_on_fork: u32::from(tid == 8),
            started,
        };
        // Numbers that no thread can have.
        let [a, b, c] = [1 << 30, (1 << 30) + 1, 8];
        classes.write(slot(a, 5)).unwrap();
        assert_eq!(classes.of(a), Some(RealTime { class: RealTimeClass::Fifo, priority: 50 }));
        assert!(classes.is_still(a, 5) && !classes.is_still(a, 6));
        assert_eq!(classes.inherit(a, b), Some(Inherits::Class));
        assert!(classes.of(b) == classes.of(a) && classes.is_still(b, 9) && !classes.is_still(b, 10));
        classes.forget(a);
        assert!(classes.of(a).is_none());
        classes.write(slot(c, 5)).unwrap();
        assert_eq!(classes.used, 2, "the slot of the first");
        assert_eq!(classes.inherit(c, a), Some(Inherits::Nothing));
        assert_eq!(classes.inherit(a, b), None);
        classes.forget(c);
        classes.give_all_back();
        assert!(classes.is_empty() && classes.guarded.is_none());
    }

    #[test]
    fn a_thread_of_another_class_is_not_contained() {
        let me = std::process::id();
        let refused = Classes::default().contain(me, 0, 0).unwrap_err();
        assert_eq!(refused, "its class has just changed");
        let gone = Classes::default().contain(1 << 30, 0, 0).unwrap_err();
        assert!(gone.starts_with("its class cannot be changed: "), "{gone}");
    }
}
