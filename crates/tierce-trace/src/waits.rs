//! Who waits for whose lock, and who runs meanwhile.
//!
//! A wait goes from [`Kind::LockWait`] to [`Kind::LockEnd`] of the same task. In it the holder runs, or it does not: while it does not, the
//! wait is a priority inversion if a task that is less urgent than the waiter has the holder's CPU. Which tasks had it is known from the
//! decisions. A simulated holder may run in the place of its waiter, by its priority or on its budget: that counts as the holder's time.

use crate::event::{Event, Kind, ID_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Tasks that are named of those who run while a holder does not.
const OTHERS_MAX: usize = 3;

/// So many pairs of tasks are told apart; waits of others count for their tasks only.
const PAIRS_MAX: usize = 4096;

/// What kind of lock it is: `enum tierce_lock`, and the lowest two bits of a [`Kind::LockWait`] record's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lock {
    /// A lock of a program, such as a `pthread_mutex_t`.
    Futex,
    /// One whose holder inherits the priority of real-time threads that wait (`PTHREAD_PRIO_INHERIT`).
    PiFutex,
    /// A lock of the kernel that its waiters sleep for.
    Kernel,
    /// A lock of the plan, simulated.
    Plan,
}

impl Lock {
    const ALL: [Lock; 4] = [Lock::Futex, Lock::PiFutex, Lock::Kernel, Lock::Plan];

    /// The lock of a record, and its address or number.
    pub fn of(value: u64) -> (Lock, u64) {
        let lock = Self::ALL[(value & 3) as usize];
        (lock, if lock == Lock::Plan { value >> 2 } else { value & !3 })
    }

    /// The value of a record about the plan's lock of this number, in the order of the plan.
    pub fn of_plan(number: usize) -> u64 {
        (number as u64) << 2 | 3
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Lock::Futex => "futex",
            Lock::PiFutex => "PI futex",
            Lock::Kernel => "kernel lock",
            Lock::Plan => "lock",
        }
    }
}

/// All waits of one task for locks of one kind that another task held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// Who waited.
    pub task: String,
    /// Who had the lock when the wait began; `None`: a thread that the plan does not schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// What kind of lock.
    pub kind: Lock,
    /// Which lock, in the longest of these waits: its name in the plan, or its address.
    pub lock: String,
    /// How often.
    pub count: u64,
    /// How long, added up (ns).
    pub total_ns: u64,
    /// The longest of these waits (ns).
    pub longest_ns: u64,
    /// In the longest: how long the holder ran (ns).
    pub holder_ran_ns: u64,
    /// In the longest: who else had the holder's CPU, and for how long (ns), the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_ran: Vec<(String, u64)>,
    /// It waits now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// A wait that has not ended.
#[derive(Debug, Clone)]
struct Open {
    task: u32,
    holder: u32,
    lock: u64,
    begin_ns: u64,
    /// Up to when it is known who ran.
    seen_ns: u64,
    holder_ran_ns: u64,
    others: Vec<(u32, u64)>,
    /// Where the waiter was.
    cpu: u16,
}

/// Waits for locks, from events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waits {
    open: Vec<Open>,
    ended: BTreeMap<(String, Option<String>, Lock), Waited>,
    /// The task that each CPU runs.
    running: Vec<u32>,
    /// The CPU that each task ran on last.
    last_cpu: Vec<Option<u16>>,
}

impl Waits {
    /// Kinds of events that say something here.
    pub const KINDS: u64 =
        1 << Kind::Decision as u16 | 1 << Kind::LockWait as u16 | 1 << Kind::LockEnd as u16;

    /// Take in an event; the length of a wait that ends with it.
    #[inline]
    pub fn event(
        &mut self,
        event: &Event,
        name: impl Fn(u32) -> String,
        lock: impl Fn(u64) -> String,
    ) -> Option<u64> {
        match event.kind() {
            Some(Kind::Decision) => self.decision(event),
            Some(Kind::LockWait) => self.begin(event),
            Some(Kind::LockEnd) => return self.end(event, name, lock),
            Some(Kind::Name) => self.are_gone(&[event.a]),
            _ => {}
        }
        None
    }

    /// These tasks are other threads, or none any more: whether they have got their locks is not known.
    pub fn are_gone(&mut self, tasks: &[u32]) {
        self.open.retain(|open| !tasks.contains(&open.task));
    }

    /// How the waits end that are under way is not known.
    pub fn are_forgotten(&mut self) {
        self.open.clear();
    }

    fn decision(&mut self, event: &Event) {
        self.advance(event.now_ns);
        let (cpu, task) = (usize::from(event.cpu), event.a as usize);
        if cpu >= self.running.len() {
            self.running.resize(cpu + 1, 0);
        }
        self.running[cpu] = event.a;
        if task > 0 && event.a <= ID_MAX {
            if task >= self.last_cpu.len() {
                self.last_cpu.resize(task + 1, None);
            }
            self.last_cpu[task] = Some(event.cpu);
        }
    }

    fn begin(&mut self, event: &Event) {
        let Event { now_ns, cpu, a, b, value, .. } = *event;
        self.advance(now_ns);
        self.open.retain(|open| open.task != a); // its end was lost
        self.open.push(Open {
            task: a,
            holder: b,
            lock: value,
            begin_ns: now_ns,
            seen_ns: now_ns,
            holder_ran_ns: 0,
            others: Vec::new(),
            cpu,
        });
    }

    fn end(
        &mut self,
        event: &Event,
        name: impl Fn(u32) -> String,
        lock: impl Fn(u64) -> String,
    ) -> Option<u64> {
        self.advance(event.now_ns);
        let at = self.open.iter().position(|open| open.task == event.a)?;
        let open = self.open.swap_remove(at);
        add(&mut self.ended, &open, false, name, lock);
        Some(open.seen_ns - open.begin_ns)
    }

    /// Who has run since, up to now.
    fn advance(&mut self, now_ns: u64) {
        let waits: Vec<(u32, u32)> = self.open.iter().map(|open| (open.task, open.holder)).collect();
        for open in &mut self.open {
            let ns = now_ns.saturating_sub(open.seen_ns);
            open.seen_ns = open.seen_ns.max(now_ns);
            if ns == 0 {
                continue;
            }
            let in_its_place = |task: u32| task == open.holder || waits.contains(&(task, open.holder));
            if self.running.iter().any(|task| *task != 0 && in_its_place(*task)) {
                open.holder_ran_ns += ns;
                continue;
            }
            let cpu = self.last_cpu.get(open.holder as usize).copied().flatten().unwrap_or(open.cpu);
            let runs = self.running.get(usize::from(cpu)).copied().unwrap_or(0);
            match open.others.iter_mut().find(|(task, _)| *task == runs) {
                _ if runs == 0 => {}
                Some((_, ran_ns)) => *ran_ns += ns,
                None => open.others.push((runs, ns)),
            }
        }
    }

    /// What is known at this time, the longest waits first.
    pub fn found(
        &self,
        now_ns: u64,
        name: impl Fn(u32) -> String,
        lock: impl Fn(u64) -> String,
    ) -> Vec<Waited> {
        if self.open.is_empty() && self.ended.is_empty() {
            return Vec::new();
        }
        let mut all = self.clone();
        all.advance(now_ns);
        for open in &all.open {
            add(&mut all.ended, open, true, &name, &lock);
        }
        let mut found: Vec<_> = all.ended.into_values().collect();
        found.sort_by_key(|waited| std::cmp::Reverse(waited.longest_ns));
        found
    }
}

fn add(
    ended: &mut BTreeMap<(String, Option<String>, Lock), Waited>,
    open: &Open,
    waits: bool,
    name: impl Fn(u32) -> String,
    lock: impl Fn(u64) -> String,
) {
    let (task, holder) = (name(open.task), (open.holder != 0).then(|| name(open.holder)));
    let kind = Lock::of(open.lock).0;
    let key = (task.clone(), holder.clone(), kind);
    if ended.len() >= PAIRS_MAX && !ended.contains_key(&key) {
        return;
    }
    let waited = ended.entry(key).or_insert_with(|| Waited {
        task,
        holder,
        kind,
        lock: String::new(),
        count: 0,
        total_ns: 0,
        longest_ns: 0,
        holder_ran_ns: 0,
        others_ran: Vec::new(),
        waits: false,
    });
    let ns = open.seen_ns - open.begin_ns;
    waited.count += 1;
    waited.total_ns = waited.total_ns.saturating_add(ns);
    waited.waits |= waits;
    if waited.count > 1 && ns <= waited.longest_ns {
        return;
    }
    let mut others = open.others.clone();
    others.sort_by_key(|(task, ran_ns)| (std::cmp::Reverse(*ran_ns), *task));
    others.truncate(OTHERS_MAX);
    waited.lock = lock(open.lock);
    waited.longest_ns = ns;
    waited.holder_ran_ns = open.holder_ran_ns;
    waited.others_ran = others.into_iter().map(|(task, ran_ns)| (name(task), ran_ns)).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn name(id: u32) -> String {
        ["?", "high", "middle", "low", "other"][id as usize].into()
    }

    fn lock(value: u64) -> String {
        let (lock, which) = Lock::of(value);
        format!("{} {which:#x}", lock.name())
    }

    /// Records of (ms, kind, CPU, a, b); all waits are for the lock at 0x100.
    fn seen(records: &[(u64, Kind, u16, u32, u32)]) -> (Waits, Vec<u64>) {
        let mut waits = Waits::default();
        let mut lengths = Vec::new();
        for &(ms, kind, cpu, a, b) in records {
            let value = if kind == Kind::LockWait { 0x100 } else { 0 };
            lengths.extend(waits.event(&Event::new(ms * MS, kind, cpu, a, b, value), name, lock));
        }
        (waits, lengths)
    }

    #[test]
    fn who_runs_while_a_holder_does_not() {
        let (waits, lengths) = seen(&[
            (0, Kind::Decision, 0, 3, 0),
            (1, Kind::Decision, 0, 1, 0),
            (2, Kind::LockWait, 0, 1, 3),
            (2, Kind::Decision, 0, 2, 0),
            (7, Kind::Decision, 0, 3, 0),
            (8, Kind::LockEnd, 0, 1, 0),
            (8, Kind::Decision, 0, 1, 0),
        ]);
        assert_eq!(lengths, [6 * MS]);
        let found = waits.found(20 * MS, name, lock);
        assert_eq!(found.len(), 1);
        let high = &found[0];
        assert_eq!((&*high.task, high.holder.as_deref(), high.kind), ("high", Some("low"), Lock::Futex));
        assert_eq!((&*high.lock, high.count, high.longest_ns), ("futex 0x100", 1, 6 * MS));
        assert_eq!((high.holder_ran_ns, &high.others_ran[..]), (MS, &[("middle".to_string(), 5 * MS)][..]));
        assert!(!high.waits);
    }

    #[test]
    fn on_the_holders_cpu_and_not_on_another() {
        // `low` was last on CPU 1, where `other` runs now; `middle` on CPU 0 is not in its way.
        let (waits, _) = seen(&[
            (0, Kind::Decision, 1, 3, 0),
            (1, Kind::Decision, 1, 4, 0),
            (2, Kind::LockWait, 0, 1, 3),
            (2, Kind::Decision, 0, 2, 0),
            (6, Kind::Decision, 1, 3, 0),
        ]);
        let found = waits.found(7 * MS, name, lock);
        assert_eq!((found[0].longest_ns, found[0].holder_ran_ns, found[0].waits), (5 * MS, MS, true));
        assert_eq!(found[0].others_ran, [("other".to_string(), 4 * MS)]);
    }

    #[test]
    fn a_holder_that_runs_in_its_waiters_place_runs() {
        let (waits, _) =
            seen(&[(0, Kind::Decision, 0, 1, 0), (1, Kind::LockWait, 0, 1, 3), (4, Kind::LockEnd, 0, 1, 0)]);
        let found = waits.found(9 * MS, name, lock);
        assert_eq!((found[0].longest_ns, found[0].holder_ran_ns), (3 * MS, 3 * MS));
    }

    #[test]
    fn ends_and_begins_that_were_lost() {
        let (waits, lengths) = seen(&[
            (1, Kind::LockEnd, 0, 1, 0),
            (2, Kind::LockWait, 0, 1, 0),
            (5, Kind::LockWait, 0, 1, 0),
            (6, Kind::LockEnd, 0, 1, 0),
        ]);
        assert_eq!(lengths, [MS], "of the first wait the end is not known");
        assert_eq!(waits.found(9 * MS, name, lock)[0].holder, None);
    }

    #[test]
    fn who_is_another_thread_waits_no_longer() {
        let begun = (1, Kind::LockWait, 0, 1, 3);
        assert!(seen(&[begun]).0.found(5 * MS, name, lock)[0].waits);
        let (waits, lengths) = seen(&[begun, (2, Kind::Name, 0, 1, 0), (3, Kind::LockEnd, 0, 1, 0)]);
        assert!(lengths.is_empty() && waits.found(5 * MS, name, lock).is_empty());
        let mut waits = seen(&[begun]).0;
        waits.are_gone(&[3]);
        assert_eq!(waits.found(5 * MS, name, lock).len(), 1);
        waits.are_gone(&[1]);
        assert!(waits.found(5 * MS, name, lock).is_empty());
        let mut waits = seen(&[begun]).0;
        waits.are_forgotten();
        assert!(waits.found(5 * MS, name, lock).is_empty());
    }

    #[test]
    fn kinds_equal_tierce_h() {
        let text = include_str!("../../../policy/tierce.h");
        let (_, text) = text.split_once("enum tierce_lock {").unwrap();
        let (text, _) = text.split_once('}').unwrap();
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("TIERCE_LOCK_")?.split_once(','));
        let names: Vec<_> = names.map(|(name, _)| name.to_lowercase().replace('_', "-")).collect();
        let ours = Lock::ALL.map(|lock| serde_json::to_value(lock).unwrap().as_str().unwrap().to_string());
        assert_eq!(names, ours);
        assert_eq!(Lock::of(Lock::of_plan(7)), (Lock::Plan, 7));
    }
}
