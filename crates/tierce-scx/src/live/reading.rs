//! News, events and entries from the kernel side.

use super::news::{News, NEWS_BACK, NEWS_CPU, NEWS_EXEC, NEWS_LOST, NEWS_NAME, NEWS_PROCESS, NEWS_THREAD};
use super::rings::rings;
use super::{now_ns, Live};
use crate::kernel::Kernel;
use crate::threads;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tierce_trace::{Event, Seen};

/// How long events are read before news of threads are heard: where much happens the reading may never be done.
const READ_MAX: Duration = Duration::from_millis(10);

impl Live {
    /// Take in what happened: news of threads, events, entries. Call a few times a second at least. `keep` gets the
    /// events, 32 bytes each, then the recorded entries, 48 bytes each.
    pub fn turn(&mut self, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.looked = None;
        self.classes.turn(now_ns());
        self.read(READ_MAX, keep)?;
        let all = self.hear_all()?;
        self.read(READ_MAX, keep)?;
        self.behind |= !all;
        Ok(())
    }

    /// Another object's rings from now on, after all that the old one's have.
    pub(crate) fn hear_from(&mut self, kernel: Kernel) -> Result<Kernel> {
        let rings = rings(&kernel, [&self.events, &self.entries], &self.news)?;
        for ring in &mut self.rings {
            ring.drain(Duration::MAX)?;
        }
        self.rings = rings;
        self.stats.waits_are_forgotten(); // the new object is not told how they end
        Ok(std::mem::replace(&mut self.kernel, kernel))
    }

    /// Hear of threads, as long as that takes at most; whether that was all. What else has happened is taken in by the next turn.
    pub(crate) fn hear_all(&mut self) -> Result<bool> {
        let all = self.rings[2].drain(READ_MAX)?;
        let news = std::mem::take(&mut *self.news.borrow_mut());
        let side = self.kernel.side();
        if side.missed != self.missed {
            self.missed = side.missed;
            self.match_lost()?;
            self.match_all()?;
        } else {
            self.hear(&news)?;
        }
        if !self.left_out.is_empty() {
            self.fill_places()?;
        }
        self.reap()?;
        Ok(all)
    }

    /// News, in the order in which they were told. Of what changed of one thread the last counts.
    fn hear(&mut self, news: &[News]) -> Result<()> {
        self.hear_of_children(news);
        let (mut changed, mut born, mut other) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for item in news {
            match item.kind & 0xff {
                NEWS_THREAD | NEWS_EXEC | NEWS_NAME => {
                    changed.insert(item.id, item);
                    if item.kind >> 8 != 0 {
                        born.insert(item.id, item.kind >> 8);
                    }
                }
                _ => _ = other.insert((item.kind, item.id)),
            }
        }
        for (tid, seen) in changed {
            match born.get(&tid) {
                Some(&leaf) => self.match_born(tid, leaf)?,
                None if self.may_match(seen) => self.match_thread(tid)?,
                None => self.unbind(tid)?,
            }
        }
        let mut cpus = false;
        for (kind, id) in other {
            match kind & 0xff {
                NEWS_CPU => cpus = true,
                NEWS_PROCESS => threads::of(id).into_iter().try_for_each(|tid| self.match_thread(tid))?,
                NEWS_BACK if self.is_in_place(id) => {}
                NEWS_LOST if kind >> 8 != 0 => self.lost_place(id, tierce_policy::Error(kind >> 8)),
                _ => {
                    self.bound.remove(&id);
                    self.match_thread(id)?;
                }
            }
        }
        if cpus {
            self.cpus_changed()?;
        }
        Ok(())
    }

    /// More has happened than the last turn took in: it should not be long to the next.
    pub fn is_behind(&self) -> bool {
        self.behind
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

    /// Events of the loader itself, after what was collected so far.
    pub(crate) fn tell(&mut self, events: &[Event]) {
        let mut list = self.events.borrow_mut();
        events.iter().for_each(|event| list.extend_from_slice(&event.to_bytes()));
    }

    /// Take over what the kernel side has told, and free what dead threads left.
    pub(crate) fn collect(&mut self) -> Result<()> {
        self.rings[0].drain(Duration::MAX)?;
        self.rings[1].drain(Duration::MAX)?;
        self.reap()
    }

    /// Events and entries only, all that there are.
    pub fn drain(&mut self, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.read(Duration::MAX, keep)
    }

    fn read(&mut self, longest: Duration, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let records = self.rings[0].drain(longest)?;
        let entries = self.rings[1].drain(longest)?;
        self.behind = !records || !entries;
        let side = self.kernel.side();
        let mut bytes = std::mem::take(&mut *self.events.borrow_mut());
        if side.lost != self.lost {
            let value = side.lost - self.lost;
            self.lost = side.lost;
            let kind = tierce_trace::Kind::Lost as u16;
            let event = Event { now_ns: now_ns(), kind, cpu: 0, a: 0, b: 0, pad: 0, value };
            bytes.extend_from_slice(&event.to_bytes());
        }
        let mut entries = self.entries.borrow_mut();
        keep(&bytes, &entries)?;
        entries.clear();
        for chunk in bytes.chunks_exact(32) {
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
        bytes.clear();
        *self.events.borrow_mut() = bytes;
        Ok(())
    }

    /// Leaves whose threads are gone, and that were not freed at once.
    fn reap(&mut self) -> Result<()> {
        let dead = self.kernel.side().dead;
        if dead == self.dead {
            return Ok(());
        }
        self.dead = dead;
        for id in 1..self.kernel.nodes_used() {
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
