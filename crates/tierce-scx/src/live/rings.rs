//! What the kernel side writes, into the buffers of a running plan.

use super::news::News;
use crate::kernel::Kernel;
use crate::object::Ring;
use anyhow::Result;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tierce_trace::Event;

/// Records that have been read and are not taken in yet, with what the loader has to tell in between.
#[derive(Default)]
pub struct Backlog {
    /// 32 each.
    pub bytes: Vec<u8>,
    /// So many of them are taken in.
    taken: usize,
    /// Records for which there was no room.
    pub dropped: u64,
    /// What comes before the records that begin there or later, and is not in `bytes` yet.
    inserted: VecDeque<(u64, Vec<Event>)>,
}

/// Bytes of records that may wait.
const BACKLOG_MAX: usize = 1 << 26;
/// Bytes of records that are taken in between two looks at the clock.
const AT_ONCE: usize = 1 << 13;

impl Backlog {
    fn add(&mut self, at: u64, record: &[u8]) {
        self.read_up_to(at);
        match self.bytes.len() < BACKLOG_MAX {
            true => self.bytes.extend_from_slice(record),
            false => self.dropped += 1,
        }
    }

    /// Before records that begin there, or later.
    pub fn insert(&mut self, at: u64, events: &[Event]) {
        self.inserted.push_back((at, events.to_vec()));
    }

    /// What begins before this has been read.
    pub fn read_up_to(&mut self, to: u64) {
        while self.inserted.front().is_some_and(|(at, _)| *at <= to) {
            let (_, events) = self.inserted.pop_front().unwrap_or_default();
            events.iter().for_each(|event| self.bytes.extend_from_slice(&event.to_bytes()));
        }
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next ones.
    pub fn some(&self) -> &[u8] {
        let end = self.bytes.len().min(self.taken + AT_ONCE);
        &self.bytes[self.taken..end]
    }

    /// These have been taken in; whether they were the last.
    pub fn taken(&mut self) -> bool {
        self.taken += self.some().len();
        let all = self.taken == self.bytes.len();
        if all {
            self.bytes.clear();
            self.taken = 0;
        }
        all
    }
}

/// Records, entries and news of an object, as they come.
pub(super) fn rings(
    kernel: &Kernel,
    (records, entries): (&Rc<RefCell<Backlog>>, &Rc<RefCell<Vec<u8>>>),
    news: &Rc<RefCell<Vec<News>>>,
) -> Result<[Ring; 3]> {
    let (records, entries) = (records.clone(), entries.clone());
    let sink = news.clone();
    let take = move |_: u64, bytes: &[u8]| sink.borrow_mut().extend(News::from_bytes(bytes));
    Ok([
        kernel.ring("records", Box::new(move |at, bytes| records.borrow_mut().add(at, bytes)))?,
        kernel.ring("entries", Box::new(move |_, bytes| entries.borrow_mut().extend_from_slice(bytes)))?,
        kernel.ring("news", Box::new(take))?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_in_part_by_part_and_no_more_wait_than_there_is_room() {
        let (mut backlog, mut seen) = (Backlog::default(), Vec::new());
        let record = |number: u32| [number.to_le_bytes(); 8].concat();
        for number in 0..2500 {
            backlog.add(0, &record(number));
        }
        while !backlog.is_empty() {
            assert!(backlog.some().len() <= AT_ONCE);
            seen.extend_from_slice(backlog.some());
            assert_eq!(backlog.taken(), seen.len() == 2500 * 32);
        }
        assert_eq!(seen, (0..2500).flat_map(record).collect::<Vec<_>>());
        let room = (BACKLOG_MAX / 32) as u32;
        (0..room + 3).for_each(|number| backlog.add(0, &record(number)));
        assert_eq!((backlog.dropped, backlog.bytes.len()), (3, BACKLOG_MAX));
        // Before the last is taken nothing has room; then everything has.
        backlog.taken();
        backlog.add(0, &record(0));
        assert_eq!(backlog.dropped, 4);
        while !backlog.taken() {}
        backlog.add(0, &record(7));
        assert_eq!((backlog.some(), backlog.dropped), (&record(7)[..], 4));
    }

    #[test]
    fn what_is_told_comes_after_the_records_that_were_there() {
        let event = |now_ns: u64| Event::new(now_ns, tierce_trace::Kind::Resize, 0, 0, 0, 0);
        let mut backlog = Backlog::default();
        backlog.insert(80, &[event(3), event(4)]);
        backlog.insert(80, &[event(5)]);
        backlog.insert(200, &[event(7)]);
        for (at, now_ns) in [(0, 1), (40, 2), (80, 6)] {
            backlog.add(at, &event(now_ns).to_bytes());
        }
        let read = |backlog: &Backlog| -> Vec<u64> {
            backlog.bytes.chunks(32).map(|one| Event::from_bytes(one.try_into().unwrap()).now_ns).collect()
        };
        assert_eq!(read(&backlog), [1, 2, 3, 4, 5, 6]);
        backlog.read_up_to(199);
        assert_eq!(read(&backlog).len(), 6);
        backlog.read_up_to(200);
        assert_eq!(read(&backlog), [1, 2, 3, 4, 5, 6, 7]);
    }
}
