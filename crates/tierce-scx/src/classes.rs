//! Threads that have left their real-time class for a place of the plan, and how they get it back.
//!
//! The kernel has no scheduler of ours decide for a thread of SCHED_FIFO or SCHED_RR. Such a thread becomes one of SCHED_EXT, and what it
//! was is written down first, in memory that the loader shares with a process of its own, the guardian. That one waits for the loader
//! to end, however that happens (its end of a pipe closes), and gives all threads their class back. Whoever has changed the class of a
//! thread meanwhile had a newer wish: only a thread that is still of SCHED_EXT gets back what it had.
//!
//! A thread that has just got a real-time class keeps the loader from the CPU, which is what would contain it. The guardian sees that the
//! loader's turns do not go on, and has it run before all others for one.
//!
//! A guardian that ends before the loader, because somebody kills it, has a successor from the loader's next turn on.

mod guardian;

use crate::threads::{self, Class, EXT};
pub use guardian::Guardian;
use guardian::{Guarded, Slot, SLOTS};
use std::collections::HashMap;
use std::io::Error;
use tierce_plan::RealTime;

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
        self.guarded.as_ref().and_then(Guarded::guardian) == Some(pid)
    }

    /// Another turn of the loader, at that time.
    pub fn turn(&mut self, now_ns: u64) {
        if let Some(guarded) = &mut self.guarded {
            guarded.turn(now_ns);
        }
    }

    /// What became of the guardian since last asked.
    pub fn take_news(&mut self) -> Vec<Guardian> {
        self.guarded.as_mut().map(Guarded::take_news).unwrap_or_default()
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
    fn a_guardian_that_is_killed_has_a_successor_that_knows_the_same() {
        let mut classes = Classes::default();
        classes.guard().unwrap();
        let slot = Slot { tid: 1 << 30, policy: 1, priority: 50, resets_on_fork: 0, started: 5 };
        classes.write(slot).unwrap();
        classes.turn(0);
        assert_eq!(classes.take_news(), []);
        let mut before = 0;
        // The first one is long there. Who comes after it is killed at once, and again.
        for (at_ms, pause_ms) in [(0, 0), (1, 100), (101, 200), (301, 400)] {
            let guardian = classes.guarded.as_ref().and_then(Guarded::guardian).unwrap();
            assert!(guardian != before && classes.is_guardian(guardian));
            before = guardian;
            kill(guardian);
            let ended = Guardian::Ended { why: "it was killed by signal 9".into(), pause_ns: pause_ms * MS };
            classes.turn(at_ms * MS);
            let first = if pause_ms == 0 { vec![ended.clone(), Guardian::Again] } else { vec![ended] };
            assert_eq!(classes.take_news(), first);
            if pause_ms > 0 {
                classes.turn((at_ms + pause_ms) * MS - 1);
                assert_eq!((classes.take_news(), classes.is_guardian(guardian)), (vec![], false));
                classes.turn((at_ms + pause_ms) * MS);
                assert_eq!(classes.take_news(), [Guardian::Again]);
            }
        }
        assert_eq!(classes.of(1 << 30), Some(RealTime { class: RealTimeClass::Fifo, priority: 50 }));
        // One that is there long enough.
        let now_ns = 701 * MS + 10_000 * MS;
        kill(classes.guarded.as_ref().and_then(Guarded::guardian).unwrap());
        classes.turn(now_ns);
        let why = "it was killed by signal 9".into();
        assert_eq!(classes.take_news(), [Guardian::Ended { why, pause_ns: 0 }, Guardian::Again]);
        // The end finds none.
        kill(classes.guarded.as_ref().and_then(Guarded::guardian).unwrap());
        classes.turn(now_ns + 1);
        assert!(matches!(classes.take_news()[..], [Guardian::Ended { pause_ns: 100_000_000, .. }]));
        classes.give_all_back();
        assert!(classes.guarded.is_none());
    }

    const MS: u64 = 1_000_000;

    /// Kill it, and wait until it is dead: it stays a zombie.
    fn kill(pid: u32) {
        // SAFETY: a child of ours; the structure is filled by the call.
        unsafe {
            assert_eq!(libc::kill(pid as libc::pid_t, libc::SIGKILL), 0);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            assert_eq!(libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT), 0);
        }
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
