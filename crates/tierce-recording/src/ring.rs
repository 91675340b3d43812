//! Pages of the kernel's ring buffer, by their descriptions: a time, how many bytes are used, entries. An entry begins with 32 bits: its
//! length in words (or what it is instead) and the time since the entry before.

use crate::bytes::number;
use crate::layout::{fields, Field};
use crate::refusal::{refused, Result};

/// Where the parts of a page are.
#[derive(Clone, Debug, Default)]
pub struct Page {
    timestamp: Option<Field>,
    commit: Option<Field>,
    data: Option<Field>,
}

impl Page {
    /// Of a text as in `events/header_page`.
    pub fn parse(text: &str, offset: u64) -> Result<Page> {
        let all = fields(text, offset)?;
        let find = |name: &str| match all.iter().find(|field| field.name == name) {
            Some(field) => Ok(Some(field.clone())),
            None => refused("field_must_be_described", offset, format!("header_page has no field `{name}`")),
        };
        Ok(Page { timestamp: find("timestamp")?, commit: find("commit")?, data: find("data")? })
    }
}

/// How entries are written.
#[derive(Clone, Debug)]
pub struct Entries {
    length_bits: u32,
    padding: u32,
    extend: u32,
    stamp: u32,
}

impl Default for Entries {
    fn default() -> Entries {
        Entries { length_bits: 5, padding: 29, extend: 30, stamp: 31 }
    }
}

impl Entries {
    /// Of a text as in `events/header_event`.
    pub fn parse(text: &str, offset: u64) -> Result<Entries> {
        let value = |key: &str, before: &str, after: &str| {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(key))?;
            let rest = line.split_once(before)?.1.trim_start();
            let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            rest.contains(after).then(|| number.parse::<u32>().ok()).flatten()
        };
        let bits = |key| value(key, ":", "bits");
        let kind = |key| value(key, "==", "");
        let found = (bits("type_len"), bits("time_delta"), bits("array"));
        let (Some(length_bits @ 1..=16), Some(delta_bits), Some(32)) = found else {
            let message = "header_event does not describe `type_len`, `time_delta` and `array` of 32 bits";
            return refused("entry_must_be_described", offset, message);
        };
        let (Some(padding), Some(extend), Some(stamp)) =
            (kind("padding"), kind("time_extend"), kind("time_stamp"))
        else {
            let message = "header_event does not describe `padding`, `time_extend` and `time_stamp`";
            return refused("entry_must_be_described", offset, message);
        };
        if length_bits.checked_add(delta_bits) != Some(32) {
            let message = format!("an entry begins with {length_bits} + {delta_bits} bits, bound 32");
            return refused("entry_must_be_described", offset, message);
        }
        Ok(Entries { length_bits, padding, extend, stamp })
    }
}

/// Bits of `commit` above the length: records were lost before this page, and how many stands behind the data.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 27) - 1;

/// A walk over the entries of one page.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    at: usize,
    end: usize,
    time: u64,
    /// Records that were lost before this page: how many, 0 for an unknown number.
    pub lost: Option<u64>,
}

impl Walk {
    /// The time so far.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Over this page, which is there in the file.
    pub fn begin(page: &Page, bytes: &[u8], offset: u64) -> Result<Walk> {
        let (Some(timestamp), Some(commit), Some(data)) = (&page.timestamp, &page.commit, &page.data) else {
            return refused("page_must_be_described", offset, "header_page is empty");
        };
        let (Some(time), Some(used)) = (timestamp.number(bytes), commit.number(bytes)) else {
            return refused("page_must_have_a_head", offset, format!("the page has {} bytes", bytes.len()));
        };
        let (time, used) = (time as u64, used as u64);
        let room = bytes.len().saturating_sub(data.offset) as u64;
        let length = used & LENGTH;
        if length > room {
            let message = format!("the page is said to use {length} bytes, bound {room}");
            return refused("page_must_not_use_more_than_it_has", offset, message);
        }
        let end = data.offset + length as usize;
        let stored = bytes.get(end..end + 8).filter(|_| used & MISSED_STORED != 0).map(number);
        let lost = (used & MISSED != 0).then(|| stored.unwrap_or(0));
        Ok(Walk { at: data.offset, end, time, lost })
    }

    /// The next entry with a record: its time, and where in the page it is.
    pub fn next(
        &mut self,
        how: &Entries,
        bytes: &[u8],
        offset: u64,
    ) -> Result<Option<(u64, std::ops::Range<usize>)>> {
        while self.at < self.end {
            let (begin, place) = (self.at, offset + self.at as u64);
            let word = |at: usize| {
                let found = bytes.get(at..at + 4).filter(|_| at + 4 <= self.end);
                match found {
                    Some(found) => Ok(number(found) as u32),
                    None => refused(
                        "entry_must_be_in_its_page",
                        place,
                        format!("an entry ends after byte {} of its page", self.end),
                    ),
                }
            };
            let head = word(begin)?;
            let (kind, delta) = (head & ((1 << how.length_bits) - 1), u64::from(head >> how.length_bits));
            let body = begin + 4;
            let long = |upper: u32| u64::from(upper) << (32 - how.length_bits) | delta;
            let (from, length) = if kind == how.padding {
                if delta == 0 {
                    self.at = self.end;
                    return Ok(None);
                }
                // An entry that was taken back: its length follows.
                self.time = self.time.wrapping_add(delta);
                self.at = self.after(body, u64::from(word(body)?), place)?;
                continue;
            } else if kind == how.extend {
                self.time = self.time.wrapping_add(long(word(body)?));
                self.at = body + 4;
                continue;
            } else if kind == how.stamp {
                // It has no room for the highest bits: they stay as they are.
                let bits = 64 - how.length_bits;
                self.time = self.time >> bits << bits | long(word(body)?);
                self.at = body + 4;
                continue;
            } else if kind == 0 {
                let length = word(body)?;
                if length < 4 {
                    let message = format!("an entry is said to have {length} bytes, bound 4");
                    return refused("entry_must_have_a_length", place, message);
                }
                (body + 4, u64::from(length) - 4)
            } else {
                (body, u64::from(kind) * 4)
            };
            self.at = self.after(from, length, place)?;
            self.time = self.time.wrapping_add(delta);
            return Ok(Some((self.time, from..self.at)));
        }
        Ok(None)
    }

    fn after(&self, from: usize, length: u64, place: u64) -> Result<usize> {
        match (from as u64).checked_add(length).filter(|end| *end <= self.end as u64) {
            Some(end) => Ok(end as usize),
            None => {
                let message = format!(
                    "an entry is said to have {length} bytes, bound {}",
                    self.end - from.min(self.end)
                );
                refused("entry_must_be_in_its_page", place, message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

    /// A page with these words as its data.
    fn page(time: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut page = time.to_le_bytes().to_vec();
        page.extend(((words.len() as u64 * 4) | flags).to_le_bytes());
        words.iter().for_each(|word| page.extend(word.to_le_bytes()));
        page
    }

    #[test]
    fn every_kind_of_entry() {
        let head = |kind: u32, delta: u32| kind | delta << 5;
        let words = [
            head(1, 5), // a record of one word, at 105
            11,
            head(30, 2), // 3 · 2^27 + 2 later
            3,
            head(29, 4), // taken back: 8 bytes follow its head
            8,
            0,
            head(0, 1), // a record with its length in front
            12,
            21,
            22,
            head(31, 9), // from here on it is 2^27 + 9
            1,
            head(2, 0),
            31,
            32,
            head(29, 0), // nothing more
            99,
        ];
        let bytes = page(100, 0, &words);
        let (page, how) = (Page::parse(HEADER_PAGE, 0).unwrap(), Entries::default());
        let mut walk = Walk::begin(&page, &bytes, 0).unwrap();
        let mut found = Vec::new();
        while let Some((time, record)) = walk.next(&how, &bytes, 0).unwrap() {
            found.push((time, record.len() / 4, number(&bytes[record.start..][..4])));
        }
        let later = 105 + (3 << 27) + 2 + 4 + 1;
        assert_eq!(found, [(105, 1, 11), (later, 2, 21), ((1 << 27) + 9, 2, 31)]);
        assert_eq!(walk.lost, None);
    }

    #[test]
    fn what_was_lost_before_a_page() {
        let page_of = Page::parse(HEADER_PAGE, 0).unwrap();
        let lost = |flags: u64, behind: &[u8]| {
            let bytes = [page(1, flags, &[]), behind.to_vec()].concat();
            Walk::begin(&page_of, &bytes, 0).unwrap().lost
        };
        assert_eq!(lost(0, &[]), None);
        assert_eq!(lost(MISSED, &[]), Some(0));
        assert_eq!(lost(MISSED | MISSED_STORED, &7u64.to_le_bytes()), Some(7));
        assert_eq!(lost(MISSED | MISSED_STORED, &[1]), Some(0));
    }
}
