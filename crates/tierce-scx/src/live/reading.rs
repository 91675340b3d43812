//! News, events and entries from the kernel side.

use super::news::News;
use super::queue::Told;
use super::rings::rings;
use super::{now_ns, Live};
use crate::kernel::Kernel;
use crate::threads::{self, Proc};
use anyhow::{Context, Result};
use std::time::{Duration, Instant};
use tierce_trace::{Event, Seen};

/// How long events are read before news of threads are heard, and how long these are heard before somebody is answered: where much
/// happens neither may ever be done.
pub(super) const READ_MAX: Duration = Duration::from_micros(500);
/// News that wait. Where there are more, all threads are looked at.
const WAITING_MAX: usize = 1 << 16;
/// From one look at all threads to the next.
const LOOKS_AT_ALL: Duration = Duration::from_millis(250);
/// How long news of threads and events wait, at most, before they are taken in.
const TURN: Duration = Duration::from_millis(20);

impl Live {
    /// Take in what happened: news of threads, events, entries. Call a few times a second at least. `keep` gets the
    /// events, 32 bytes each, then the recorded entries, 48 bytes each.
    pub fn turn(&mut self, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.looked = None;
        self.classes.turn(now_ns());
        self.read(READ_MAX, keep)?;
        self.hears_more = !self.hear_all(READ_MAX)?;
        self.read(READ_MAX, keep)
    }

    /// Another object's rings from now on, after all that the old one's have.
    pub(crate) fn hear_from(&mut self, kernel: Kernel) -> Result<Kernel> {
        let rings = rings(&kernel, (&self.events, &self.entries), &self.news)?;
        for ring in &mut self.rings {
            ring.drain_present()?;
        }
        self.events.borrow_mut().read_up_to(u64::MAX); // all that was told comes before what the new one writes
        self.rings = rings;
        self.stats.waits_are_forgotten(); // the new object is not told how they end
        let old = std::mem::replace(&mut self.kernel, kernel);
        let has_missed = (old.side().missed, old.skipped()) != (self.missed, self.skipped);
        // The new object counts from zero; what the old one has missed since the last look is looked for.
        self.missed = if has_missed { u64::MAX } else { 0 };
        self.skipped = 0;
        Ok(old)
    }

    /// Hear of threads, for about that long; whether that was all. What else has happened is taken in by the next turn.
    pub(crate) fn hear_all(&mut self, longest: Duration) -> Result<bool> {
        let all = self.rings[2].drain(longest)?;
        let news = std::mem::take(&mut *self.news.borrow_mut());
        self.hear_of_children(&news);
        news.iter().for_each(|item| self.waiting.add(item));
        if self.waiting.len() > WAITING_MAX {
            self.waiting.clear();
            self.kernel.forget_told();
            (self.missed, self.counts) = (u64::MAX, Instant::now());
        }
        if Instant::now() >= self.counts {
            self.look_for_missed();
        }
        let ready = self.checksums.ready();
        self.waiting.look(ready.tids);
        if ready.all {
            self.waiting.look(Proc::default().ids());
        }
        let all = self.hear(longest)? && all;
        let now = Instant::now();
        if !self.left_out.is_empty() && now >= self.fills {
            self.fills = now + TURN;
            self.fill_places()?;
        }
        self.reap()?;
        Ok(all)
    }

    /// Were there threads of which nobody was told? Then each is looked at, by its process, in the turn of its user.
    fn look_for_missed(&mut self) {
        let now = Instant::now();
        let (missed, skipped) = (self.kernel.side().missed, self.kernel.skipped());
        if (missed, skipped) == (self.missed, self.skipped) {
            self.counts = now + TURN;
            return;
        }
        if missed != self.missed {
            let lost = self.take_lost();
            self.waiting.look(lost);
        }
        (self.missed, self.skipped) = (missed, skipped);
        for pid in Proc::default().processes() {
            if let Some(user) = threads::user_of(pid) {
                self.waiting.look_at_process(user, pid);
            }
        }
        self.counts = now + LOOKS_AT_ALL; // whoever causes that may go on, and it takes long
    }

    /// What waits, for about that long; whether that was all.
    pub(super) fn hear(&mut self, longest: Duration) -> Result<bool> {
        let begun = Instant::now();
        while let Some((id, told)) = self.waiting.next() {
            match told {
                Told::Seen { news, leaf } => self.seen(&news, leaf)?,
                Told::Look => self.match_thread(id)?,
                Told::Process { user } => self.waiting.look_in_turn_of(user, threads::of(id)),
                Told::Lost(error) => self.lost_place(id, error),
                Told::Back if self.is_in_place(id) => {}
                Told::Back => {
                    self.bound.remove(&id);
                    self.match_thread(id)?;
                }
                Told::Cpus => self.cpus_changed()?,
            }
            if begun.elapsed() >= longest {
                return Ok(self.waiting.len() == 0);
            }
        }
        Ok(true)
    }

    /// A thread may match something else; it may have begun with this leaf.
    fn seen(&mut self, news: &News, born: u32) -> Result<()> {
        let has_more = self.kernel.is_looked_at(news.id, news.leaf);
        match born {
            0 if has_more || self.may_match(news) => self.match_thread(news.id),
            0 => self.unbind(news.id),
            leaf => self.match_born(news.id, leaf),
        }
    }

    /// How long the next turn may wait, for requests. Records are lost if nobody reads them. News are not: whoever causes them without
    /// end gets a quarter of the time.
    pub fn rest(&self) -> Duration {
        match (self.behind, self.hears_more) {
            (true, _) => Duration::ZERO,
            (false, true) => 3 * READ_MAX,
            (false, false) => TURN,
        }
    }

    /// A CPU came or went. What waits on one that goes keeps it from going: every thread is queued anew. Threads of a
    /// task whose CPU is gone are in the default node meanwhile, and come back with it.
    fn cpus_changed(&mut self) -> Result<()> {
        for id in 1..self.kernel.nodes_used() {
            match self.kernel.leaf(id).pid {
                0 => {}
                tid => _ = threads::requeue(tid),
            }
        }
        self.match_lost()
    }

    /// Between the records that there are and those that come.
    pub(crate) fn here(&self) -> u64 {
        self.rings[0].written()
    }

    /// Events of the loader itself, there.
    pub(crate) fn tell(&mut self, at: u64, events: &[Event]) {
        self.events.borrow_mut().insert(at, events);
    }

    /// Take over what the kernel side has told, and free what dead threads left.
    pub(crate) fn collect(&mut self) -> Result<()> {
        self.rings[0].drain_present()?;
        self.rings[1].drain_present()?;
        self.reap()
    }

    /// Events and entries only, all that there are.
    pub fn drain(&mut self, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.read(Duration::MAX, keep)
    }

    /// For about that long: to take them in takes longer than to read them.
    fn read(&mut self, longest: Duration, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let begun = Instant::now();
        loop {
            let mut all = true;
            if self.events.borrow().is_empty() {
                all = self.rings[0].drain(Duration::ZERO)? & self.rings[1].drain(Duration::ZERO)?;
                self.events.borrow_mut().read_up_to(self.rings[0].read());
            }
            self.behind = !(self.take_in(keep)? && all);
            if !self.behind || begun.elapsed() >= longest {
                return Ok(());
            }
        }
    }

    /// Some of what has been read; whether that was all.
    fn take_in(&mut self, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<bool> {
        let lost = self.kernel.side().lost + self.kernel.marks_lost()[0] + self.events.borrow().dropped;
        let mut events = std::mem::take(&mut *self.events.borrow_mut());
        if lost != self.lost {
            let value = lost - self.lost;
            self.lost = lost;
            let kind = tierce_trace::Kind::Lost as u16;
            let event = Event { now_ns: now_ns(), kind, cpu: 0, a: 0, b: 0, pad: 0, value };
            events.bytes.extend_from_slice(&event.to_bytes());
        }
        let some = events.some();
        let mut entries = self.entries.borrow_mut();
        keep(some, &entries)?;
        entries.clear();
        for chunk in some.chunks_exact(32) {
            let seen = self.renumber.event(&Event::from_bytes(chunk.try_into().context("an event")?));
            match &seen {
                Seen::Event(event) => self.stats.event(event),
                Seen::Change(change) => self.stats.change(change),
                Seen::Nothing => {}
            }
            if let Some(chains) = &mut self.chains {
                chains.seen(&seen);
            }
            if let Some(measure) = &mut self.measure {
                measure.seen(seen);
            }
        }
        let all = events.taken();
        *self.events.borrow_mut() = events;
        Ok(all)
    }

    /// Leaves whose threads are gone, and that were not freed at once. Where many end, the rest waits for the next time.
    fn reap(&mut self) -> Result<()> {
        let dead = self.kernel.side().dead;
        if dead == self.dead {
            return Ok(());
        }
        self.dead = dead;
        let (begun, used) = (Instant::now(), self.kernel.nodes_used());
        for id in (self.reaped..used).chain(1..self.reaped.min(used)) {
            if self.kernel.leaf(id).dead == 0 {
                continue;
            }
            if begun.elapsed() >= READ_MAX {
                (self.reaped, self.dead) = (id, u64::MAX); // go on from there next time
                break;
            }
            while self.kernel.leaf(id).dead != 0 && !self.kernel.reap(id, false)? {
                if self.kernel.node(id).first_parent == 0 {
                    self.dead = u64::MAX; // try again next time
                    break;
                }
                std::thread::yield_now();
            }
        }
        Ok(())
    }
}
