//! What a file says about its records: the descriptions of pages, of entries in pages, and of events. `trace.dat` of version 6 and
//! `perf.data` have them one after the other, `trace.dat` of version 7 in sections.

use crate::bytes::Cursor;
use crate::layout::Layout;
use crate::refusal::{refused, Result};
use crate::ring::{Entries, Page};

/// First bytes of `trace.dat`, and of the part of `perf.data` that has descriptions.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// The begin of a file.
pub struct Initial {
    /// Its version.
    pub version: String,
    /// Bytes of one page of the ring buffer.
    pub page_size: u32,
}

/// The magic bytes, the version, how numbers are written.
pub fn initial(cursor: &mut Cursor) -> Result<Initial> {
    cursor.expect(MAGIC)?;
    let version = cursor.text("the version")?;
    let at = cursor.offset();
    let endian = cursor.take(1, "the order of bytes")?[0];
    if endian != 0 {
        let message = format!("numbers are big endian: {endian}, bound 0 (little endian)");
        return refused("byte_order_must_be_little", at, message);
    }
    cursor.take(1, "the size of a long")?;
    let at = cursor.offset();
    let page_size = cursor.u32("the size of a page")?;
    if !(512..=1 << 20).contains(&page_size) {
        let message = format!("a page has {page_size} bytes, bound 512 to {}", 1 << 20);
        return refused("page_size_must_be_possible", at, message);
    }
    Ok(Initial { version, page_size })
}

fn long_text(cursor: &mut Cursor, what: &str) -> Result<(String, u64)> {
    let length = cursor.u64(what)?;
    let offset = cursor.offset();
    Ok((String::from_utf8_lossy(cursor.take(length, what)?).into_owned(), offset))
}

/// `header_page` and `header_event`.
pub fn headers(cursor: &mut Cursor) -> Result<(Page, Entries)> {
    cursor.expect(b"header_page\0")?;
    let (text, offset) = long_text(cursor, "header_page")?;
    // perf leaves it empty where it did not read it: its records are in no pages.
    let page = if text.is_empty() { Page::default() } else { Page::parse(&text, offset)? };
    cursor.expect(b"header_event\0")?;
    let (text, offset) = long_text(cursor, "header_event")?;
    let entries = if text.is_empty() { Entries::default() } else { Entries::parse(&text, offset)? };
    Ok((page, entries))
}

/// Descriptions of ftrace's own events, which are not needed.
pub fn skip_ftrace(cursor: &mut Cursor) -> Result<()> {
    for _ in 0..cursor.u32("the number of ftrace's events")? {
        long_text(cursor, "the description of an event")?;
    }
    Ok(())
}

/// Descriptions of the events of `sched`.
pub fn events(cursor: &mut Cursor) -> Result<Vec<Layout>> {
    let mut found = Vec::new();
    for _ in 0..cursor.u32("the number of systems")? {
        let system = cursor.text("the name of a system")?;
        for _ in 0..cursor.u32("the number of events")? {
            let (text, offset) = long_text(cursor, "the description of an event")?;
            if system == "sched" {
                found.push(Layout::parse(&text, offset)?);
            }
        }
    }
    Ok(found)
}
