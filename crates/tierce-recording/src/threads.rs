//! What each thread did: who ran when, from wake-up to wake-up.
//!
//! Example: a thread is woken at 10.0 ms, runs from 10.1 to 10.6 ms, is preempted, runs from 10.9 to 11.3 ms and sleeps. This is one
//! [`Burst`], of 0.9 ms within 1.3 ms, and its wake-up latency is 0.1 ms.
//!
//! A thread that wakes is first told by `sched_waking`, on the CPU of who wakes it, then by `sched_wakeup`, perhaps later on its own CPU.
//! The earlier one counts. What was going on when the recording began or where records were lost is no complete burst: it counts
//! for CPU time, but not for latencies and periods.

use crate::sched::{Comm, Leaves, Sched, What, Who};
use std::collections::HashMap;
use tierce_calibrate::{Burst, Watched};
use tierce_trace::Histogram;

/// What is known of a thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its thread id.
    pub pid: i32,
    /// Its last name.
    pub comm: Comm,
    /// Its last priority, as the kernel counts.
    pub prio: i32,
    /// Its bursts and its CPU time.
    pub watched: Watched,
    /// From waking up to running.
    pub latency_ns: Histogram,
    /// From waking up to sleeping again.
    pub response_ns: Histogram,
    /// Times it got a CPU.
    pub switches: u64,
    /// Times it got another CPU than the one before.
    pub migrations: u64,
    /// Burst at its begin or end that is not whole: since when it was awake or seen, and its CPU time.
    pub parts: Vec<Burst>,
    state: State,
    pending_ns: Option<u64>,
    woke_ns: u64,
    ran_ns: u64,
    whole: bool,
    has_run: bool,
    last_cpu: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Sleeps,
    Ready,
    Runs {
        cpu: u32,
        since_ns: u64,
    },
}

/// All threads, from all that happened.
#[derive(Debug, Default)]
pub struct Threads {
    /// In the order in which they appeared.
    pub all: Vec<Thread>,
    /// When the recording begins.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
    /// Records that are said to be lost.
    pub lost: u64,
    /// Times that the recording contradicted itself: a thread ran that had not been switched to.
    pub gaps: u64,
    /// What was read.
    pub records: u64,
    by_pid: HashMap<i32, usize>,
    on_cpus: Vec<OnCpu>,
    began: bool,
}

/// Whose turn it is on a CPU.
#[derive(Clone, Copy, Debug)]
enum OnCpu {
    /// This thread's.
    Known(i32),
    /// It is not known, since then.
    Unknown(u64),
}

/// What [`Threads::take`] has changed, for who draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that is drawn.
    None,
    /// The thread woke up.
    Woke(usize),
    /// The CPU turns from one thread to another; `slept` with the response time: the first one has slept or ended.
    Switch {
        /// From that one, if it is known and not the idle thread.
        from: Option<usize>,
        /// It sleeps now; how long after its wake-up, if that is known.
        slept: Option<Option<u64>>,
        /// To that one.
        to: Option<usize>,
        /// It runs for the first time since its wake-up.
        first: bool,
    },
}

impl Threads {
    /// Of all that happened.
    pub fn of<E>(events: impl Iterator<Item = Result<Sched, E>>) -> Result<Threads, E> {
        let mut threads = Threads::default();
        for event in events {
            threads.take(&event?);
        }
        threads.finish();
        Ok(threads)
    }

    /// One more thing that happened.
    pub fn take(&mut self, event: &Sched) -> Change {
        self.records += 1;
        let names = matches!(event.what, What::Named(..));
        if !names && !self.began {
            (self.began, self.from_ns, self.to_ns) = (true, event.time_ns, event.time_ns);
        }
        // Clocks of CPUs may differ by a little: time never goes back here.
        let now = if names { self.to_ns } else { event.time_ns.max(self.to_ns) };
        self.to_ns = now;
        match event.what {
            What::Switch { from, leaves, to } => self.switch(now, event.cpu, from, leaves, to),
            What::Waking(who) => {
                if let Some(index) = self.thread(who) {
                    let thread = &mut self.all[index];
                    if matches!(thread.state, State::Sleeps | State::Unknown) {
                        thread.pending_ns.get_or_insert(now);
                    }
                }
                Change::None
            }
            What::Woken(who) => self.thread(who).map_or(Change::None, |index| self.woken(now, index)),
            What::Migrate(who, _) => {
                self.thread(who);
                Change::None
            }
            What::Named(pid, comm) => {
                if let Some(index) = self.index(pid) {
                    self.all[index].comm = comm;
                }
                Change::None
            }
            What::Exit(_) => Change::None,
            What::Lost(count) => {
                self.lost += count.max(1);
                self.forget(now, event.cpu);
                Change::None
            }
        }
    }

    /// Nothing more happens: who runs has run until now.
    pub fn finish(&mut self) {
        let now = self.to_ns;
        for thread in &mut self.all {
            if let State::Runs { .. } = thread.state {
                thread.stop(now);
            }
            if thread.ran_ns > 0 {
                thread.part(now);
            }
            (thread.watched.from_ns, thread.watched.to_ns) = (self.from_ns, now);
        }
    }

    fn index(&mut self, pid: i32) -> Option<usize> {
        if pid == 0 {
            return None;
        }
        let next = self.all.len();
        let index = *self.by_pid.entry(pid).or_insert(next);
        if index == next {
            self.all.push(Thread { pid, prio: 120, ..Thread::default() });
        }
        Some(index)
    }

    fn thread(&mut self, who: Who) -> Option<usize> {
        let index = self.index(who.pid)?;
        let thread = &mut self.all[index];
        (thread.comm, thread.prio) = (who.comm, who.prio);
        Some(index)
    }

    fn woken(&mut self, now: u64, index: usize) -> Change {
        let thread = &mut self.all[index];
        if !matches!(thread.state, State::Sleeps | State::Unknown) {
            return Change::None;
        }
        thread.wake(now);
        Change::Woke(index)
    }

    fn switch(&mut self, now: u64, cpu: u32, from: Who, leaves: Leaves, to: Who) -> Change {
        let number = cpu as usize;
        if self.on_cpus.len() <= number {
            self.on_cpus.resize(number + 1, OnCpu::Unknown(self.from_ns));
        }
        if matches!(self.on_cpus[number], OnCpu::Known(pid) if pid != from.pid) {
            self.gaps += 1;
            self.forget(now, cpu);
        }
        let before = std::mem::replace(&mut self.on_cpus[number], OnCpu::Known(to.pid));
        let from_index = self.thread(from);
        let mut slept = None;
        if let Some(index) = from_index {
            let thread = &mut self.all[index];
            if !matches!(thread.state, State::Runs { cpu: on, .. } if on == cpu) {
                // It ran when the recording began, or since records were lost.
                let since_ns = if let OnCpu::Unknown(since_ns) = before { since_ns } else { now };
                thread.begin_in_the_middle(since_ns);
                thread.state = State::Runs { cpu, since_ns };
            }
            thread.stop(now);
            if leaves != Leaves::Ready {
                slept = Some(thread.sleep(now));
            }
            if leaves == Leaves::Ends {
                // The number may be given to another thread.
                self.by_pid.remove(&from.pid);
            }
        }
        let (mut first, to_index) = (false, self.thread(to));
        if let Some(index) = to_index {
            first = self.all[index].run(now, cpu);
        }
        Change::Switch { from: from_index, slept, to: to_index, first }
    }

    /// What goes on there is not known any more; a CPU that there is not: anywhere.
    fn forget(&mut self, now: u64, cpu: u32) {
        let cpus = if cpu == u32::MAX { 0..self.on_cpus.len() } else { cpu as usize..cpu as usize + 1 };
        for number in cpus {
            let Some(on_cpu) = self.on_cpus.get_mut(number) else { continue };
            let OnCpu::Known(pid) = std::mem::replace(on_cpu, OnCpu::Unknown(now)) else { continue };
            let Some(index) = self.by_pid.get(&pid) else { continue };
            let thread = &mut self.all[*index];
            if let State::Runs { cpu, .. } = thread.state {
                if cpu as usize == number {
                    thread.stop(now);
                    thread.part(now);
                    thread.state = State::Unknown;
                }
            }
        }
    }
}

impl Thread {
    fn wake(&mut self, now: u64) {
        let woke_ns = self.pending_ns.take().unwrap_or(now);
        // It may have slept after it was told that it is about to wake.
        let slept_ns = self.watched.bursts.last().map_or(0, |burst| burst.slept_ns);
        (self.woke_ns, self.ran_ns, self.whole, self.has_run) = (woke_ns.max(slept_ns), 0, true, false);
        self.state = State::Ready;
    }

    fn begin_in_the_middle(&mut self, now: u64) {
        if self.state != State::Ready {
            (self.woke_ns, self.ran_ns, self.whole) = (now, 0, false);
        }
        self.has_run = true;
    }

    /// It gets the CPU; whether for the first time since it woke up.
    fn run(&mut self, now: u64, cpu: u32) -> bool {
        match (self.state, self.pending_ns) {
            // Only `sched_waking` was recorded.
            (State::Sleeps | State::Unknown, Some(_)) => self.wake(now),
            (State::Ready, _) => {}
            _ => {
                self.begin_in_the_middle(now);
            }
        }
        self.pending_ns = None;
        let first = self.whole && !self.has_run;
        if first {
            self.latency_ns.record(now.saturating_sub(self.woke_ns));
        }
        self.has_run = true;
        self.switches += 1;
        self.migrations += u64::from(self.last_cpu.is_some_and(|last| last != cpu));
        self.last_cpu = Some(cpu);
        self.state = State::Runs { cpu, since_ns: now };
        first
    }

    /// It leaves the CPU.
    fn stop(&mut self, now: u64) {
        let State::Runs { since_ns, .. } = self.state else { return };
        let ran_ns = now.saturating_sub(since_ns);
        self.ran_ns += ran_ns;
        self.watched.ran_ns += ran_ns;
        self.state = State::Ready;
    }

    /// It sleeps; how long after it woke, if that is known.
    fn sleep(&mut self, now: u64) -> Option<u64> {
        let response_ns = now.saturating_sub(self.woke_ns);
        let whole = self.whole;
        if whole {
            self.watched.bursts.push(self.burst(now));
            self.response_ns.record(response_ns);
        } else {
            self.part(now);
        }
        (self.state, self.whole, self.ran_ns, self.pending_ns) = (State::Sleeps, false, 0, None);
        whole.then_some(response_ns)
    }

    fn burst(&self, now: u64) -> Burst {
        Burst { woke_ns: self.woke_ns, slept_ns: now, ran_ns: self.ran_ns, interrupted_ns: 0 }
    }

    /// What it did since it woke or was seen is not all of it.
    fn part(&mut self, now: u64) {
        self.parts.push(self.burst(now));
        (self.whole, self.ran_ns) = (false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(pid: i32) -> Who {
        Who { pid, comm: Comm::new(format!("t{pid}").as_bytes()), prio: 120 }
    }

    fn switch(time_ns: u64, cpu: u32, from: i32, leaves: Leaves, to: i32) -> Sched {
        Sched { time_ns, cpu, what: What::Switch { from: who(from), leaves, to: who(to) } }
    }

    fn threads(events: &[Sched]) -> Threads {
        Threads::of(events.iter().map(|event| Ok::<_, ()>(*event))).unwrap()
    }

    fn bursts(threads: &Threads, pid: i32) -> Vec<(u64, u64, u64)> {
        let thread = threads.all.iter().find(|thread| thread.pid == pid).unwrap();
        thread.watched.bursts.iter().map(|burst| (burst.woke_ns, burst.slept_ns, burst.ran_ns)).collect()
    }

    use Leaves::{Ends, Ready, Sleeps};

    #[test]
    fn a_burst_with_a_preemption_and_a_migration() {
        let at = |time_ns, what| Sched { time_ns, cpu: 1, what };
        let found = threads(&[
            switch(0, 0, 0, Ready, 9),
            at(100, What::Waking(who(5))),
            at(110, What::Woken(who(5))),
            switch(130, 0, 9, Ready, 5),
            switch(200, 0, 5, Ready, 9),
            // It was woken while it waited: that is nothing new.
            at(210, What::Woken(who(5))),
            switch(250, 1, 0, Ready, 5),
            switch(300, 1, 5, Sleeps, 0),
            switch(400, 0, 9, Ends, 0),
        ]);
        assert_eq!(bursts(&found, 5), [(100, 300, 120)]);
        let thread = &found.all[1];
        assert_eq!((thread.switches, thread.migrations, thread.latency_ns.summary().max), (2, 1, 30));
        assert_eq!(thread.response_ns.summary().max, 200);
        // The other one was awake when the recording began: no burst, but CPU time.
        assert_eq!((bursts(&found, 9), found.all[0].watched.ran_ns), (vec![], 330));
        assert_eq!((found.gaps, found.lost), (0, 0));
    }

    #[test]
    fn without_sched_wakeup_the_waking_counts() {
        let found = threads(&[
            Sched { time_ns: 10, cpu: 0, what: What::Waking(who(5)) },
            switch(15, 0, 0, Ready, 5),
            switch(20, 0, 5, Sleeps, 0),
            // It runs again without any word of a wake-up: not a whole burst.
            switch(30, 0, 0, Ready, 5),
            switch(40, 0, 5, Sleeps, 0),
        ]);
        assert_eq!(bursts(&found, 5), [(10, 20, 5)]);
        assert_eq!((found.all[0].watched.ran_ns, found.all[0].parts.len()), (15, 1));
    }

    #[test]
    fn lost_records_and_gaps_make_no_bursts() {
        let found = threads(&[
            Sched { time_ns: 10, cpu: 0, what: What::Woken(who(5)) },
            switch(15, 0, 0, Ready, 5),
            Sched { time_ns: 20, cpu: 0, what: What::Lost(3) },
            switch(50, 0, 5, Sleeps, 6),
            // Who leaves is not who came.
            switch(60, 0, 7, Sleeps, 0),
        ]);
        assert_eq!((found.lost, found.gaps), (3, 1));
        assert!(found.all.iter().all(|thread| thread.watched.bursts.is_empty()), "{found:?}");
        // Until records were lost, and from then on, as far as is known.
        assert_eq!(found.all[0].watched.ran_ns, 5 + 30);
    }

    #[test]
    fn a_number_that_is_given_again_is_another_thread() {
        let found = threads(&[
            switch(0, 0, 0, Ready, 5),
            switch(10, 0, 5, Ends, 0),
            Sched { time_ns: 20, cpu: 0, what: What::Named(5, Comm::new(b"new")) },
            switch(30, 0, 0, Ready, 5),
        ]);
        assert_eq!(found.all.iter().filter(|thread| thread.pid == 5).count(), 2);
    }
}
