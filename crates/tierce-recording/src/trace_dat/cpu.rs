//! The records of one CPU, page by page.

use super::how::{How, Part};
use super::sections::unpack;
use crate::bytes::{Cursor, Source};
use crate::refusal::{refused, Result};
use crate::ring::Walk;
use crate::sched::{Sched, What};

/// Pages that are read at once.
const PAGES_AT_ONCE: u64 = 64;

/// The records of one CPU.
pub struct CpuRecords {
    part: Part,
    /// Where the next bytes are to be read from, relative to the part.
    at: u64,
    /// Compressed chunks that are left; `None`: not known yet.
    chunks: Option<u32>,
    /// Pages in memory, and where they are in the file.
    pages: Vec<u8>,
    pages_offset: u64,
    page: usize,
    walk: Walk,
}

impl CpuRecords {
    /// At its begin.
    pub fn new(part: Part) -> CpuRecords {
        CpuRecords {
            part,
            at: 0,
            chunks: None,
            pages: Vec::new(),
            pages_offset: 0,
            page: 0,
            walk: Walk::default(),
        }
    }

    /// The next record of an event that is known.
    pub fn next(&mut self, source: &Source, how: &How) -> Result<Option<Sched>> {
        let (size, cpu) = (how.page_size as usize, self.part.cpu);
        loop {
            let page = self.pages.get(self.page..).map_or(&[][..], |rest| &rest[..size.min(rest.len())]);
            let place = self.pages_offset + self.page as u64;
            if let Some((time, record)) = self.walk.next(&how.entries, page, place)? {
                let at = place + record.start as u64;
                if let Some(what) = how.decoder.read(&page[record], at)? {
                    return Ok(Some(Sched { time_ns: how.clock.ns(time), cpu, what }));
                }
                continue;
            }
            self.page += size;
            if self.page >= self.pages.len() {
                self.page = 0;
                if !self.load(source, how)? {
                    return Ok(None);
                }
            }
            let page = &self.pages[self.page..];
            self.walk =
                Walk::begin(&how.page, &page[..size.min(page.len())], self.pages_offset + self.page as u64)?;
            if let Some(lost) = self.walk.lost.take() {
                let time_ns = how.clock.ns(self.walk.time());
                return Ok(Some(Sched { time_ns, cpu, what: What::Lost(lost) }));
            }
        }
    }

    /// More pages; `false`: there are none.
    fn load(&mut self, source: &Source, how: &How) -> Result<bool> {
        let offset = self.part.offset.saturating_add(self.at);
        let Some(packing) = self.part.packed else {
            let most = (how.at_once / how.page_size).min(PAGES_AT_ONCE) * how.page_size;
            let length = (self.part.size - self.at).min(most);
            (self.pages, self.pages_offset) = (source.part(offset, length, "a page")?, offset);
            self.at += length;
            return Ok(length > 0);
        };
        if self.part.size == 0 {
            return Ok(false);
        }
        let (left, offset) = match self.chunks {
            Some(left) => (left, offset),
            None => {
                let count = source.part(offset, 4, "the number of compressed parts")?;
                self.at += 4;
                (Cursor::new(&count, offset).u32("the number of compressed parts")?, offset + 4)
            }
        };
        if left == 0 {
            return Ok(false);
        }
        let head = source.part(offset, 8, "the head of a compressed part")?;
        let mut cursor = Cursor::new(&head, offset);
        let (size, becomes) = (cursor.u32("a size")?, cursor.u32("a size")?);
        if becomes == 0 || u64::from(becomes.max(size)) > how.at_once {
            let message = format!("{size} bytes are said to become {becomes}, bound 1 to {}", how.at_once);
            return refused("part_must_be_short", offset, message);
        }
        let packed = source.part(offset + 8, size.into(), "a compressed part")?;
        (self.pages, self.pages_offset) = (unpack(&packed, becomes, packing, offset)?, offset);
        self.at += 8 + u64::from(size);
        self.chunks = Some(left - 1);
        Ok(true)
    }
}
