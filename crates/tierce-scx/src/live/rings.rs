//! What the kernel side writes, into the buffers of a running plan.

use super::news::News;
use crate::kernel::Kernel;
use crate::object::Ring;
use anyhow::Result;
use std::cell::RefCell;
use std::rc::Rc;

/// Records that have been read and are not taken in yet. Before each change of the plan all are read that there are, and somebody
/// may ask for changes as fast as records come.
#[derive(Default)]
pub struct Backlog {
    /// 32 each.
    pub bytes: Vec<u8>,
    /// So many of them are taken in.
    taken: usize,
    /// Records for which there was no room.
    pub dropped: u64,
}

/// Bytes of records that may wait.
const BACKLOG_MAX: usize = 1 << 26;
/// Bytes of records that are taken in between two looks at the clock.
const AT_ONCE: usize = 1 << 13;

impl Backlog {
    fn add(&mut self, record: &[u8]) {
        match self.bytes.len() < BACKLOG_MAX {
            true => self.bytes.extend_from_slice(record),
            false => self.dropped += 1,
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
    let take = move |bytes: &[u8]| sink.borrow_mut().extend(News::from_bytes(bytes));
    Ok([
        kernel.ring("records", Box::new(move |bytes| records.borrow_mut().add(bytes)))?,
        kernel.ring("entries", Box::new(move |bytes| entries.borrow_mut().extend_from_slice(bytes)))?,
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
            backlog.add(&record(number));
        }
        while !backlog.is_empty() {
            assert!(backlog.some().len() <= AT_ONCE);
            seen.extend_from_slice(backlog.some());
            assert_eq!(backlog.taken(), seen.len() == 2500 * 32);
        }
        assert_eq!(seen, (0..2500).flat_map(record).collect::<Vec<_>>());
        let room = (BACKLOG_MAX / 32) as u32;
        (0..room + 3).for_each(|number| backlog.add(&record(number)));
        assert_eq!((backlog.dropped, backlog.bytes.len()), (3, BACKLOG_MAX));
        // Before the last is taken nothing has room; then everything has.
        backlog.taken();
        backlog.add(&record(0));
        assert_eq!(backlog.dropped, 4);
        while !backlog.taken() {}
        backlog.add(&record(7));
        assert_eq!((backlog.some(), backlog.dropped), (&record(7)[..], 4));
    }
}
