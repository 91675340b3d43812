//! `trace.dat` of trace-cmd, versions 6 and 7.
//!
//! Both have descriptions and then, for each CPU, pages of the kernel's ring buffer. In version 6 all is in one order; version 7 has
//! sections that options point to, and may have compressed them. Records of all CPUs come out in the order of time.

mod cpu;
pub mod how;
mod sections;

use crate::bytes::{Cursor, Source};
use crate::metadata::{events, headers, initial, skip_ftrace};
use crate::refusal::{refused, Result};
use crate::sched::{Decoder, Sched};
use cpu::CpuRecords;
use how::{chosen, clock_of, option, How, Opened, Part, CPUS_MAX};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How much of a file of version 6 may come before its pages.
const HEAD_MAX: u64 = 1 << 26;

/// How much of the pages of all CPUs is in memory at once.
const PAGES_MAX: u64 = 1 << 30;

/// A `trace.dat`: all records in the order of time.
pub struct TraceDat {
    /// How many CPUs the machine had.
    pub cpus: u32,
    /// The clock by which it was recorded.
    pub clock: String,
    /// Its version.
    pub version: u32,
    source: Source,
    how: How,
    streams: Vec<CpuRecords>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
    heads: Vec<Option<Sched>>,
    ended: bool,
}

impl TraceDat {
    /// Read what comes before the pages.
    pub fn open(source: Source) -> Result<TraceDat> {
        let head = source.up_to(0, HEAD_MAX)?;
        let mut cursor = Cursor::new(&head, 0);
        let begin = initial(&mut cursor)?;
        let (version, opened) = match begin.version.as_str() {
            "6" => (6, version_6(&mut cursor, begin.page_size)?),
            "7" => (7, sections::version_7(&mut cursor, &source, begin.page_size)?),
            other => {
                let message =
                    format!("version {:?}, bound 6 or 7", other.chars().take(20).collect::<String>());
                return refused("version_must_be_known", 10, message);
            }
        };
        drop(head);
        let Opened { mut how, parts, cpus, clock } = opened;
        how.at_once = (PAGES_MAX / parts.len().max(1) as u64).min(sections::UNPACKED_MAX.into());
        if how.page_size > how.at_once {
            let message = format!(
                "a page of each of {} CPUs has {} bytes, bound {}",
                parts.len(),
                how.page_size,
                how.at_once
            );
            return refused("page_size_must_be_possible", 0, message);
        }
        let streams: Vec<_> = parts.into_iter().map(CpuRecords::new).collect();
        let heads = vec![None; streams.len()];
        let mut all = TraceDat {
            cpus,
            clock,
            version,
            source,
            how,
            streams,
            next: BinaryHeap::new(),
            heads,
            ended: false,
        };
        for number in 0..all.streams.len() {
            all.advance(number)?;
        }
        Ok(all)
    }

    fn advance(&mut self, number: usize) -> Result<()> {
        self.heads[number] = self.streams[number].next(&self.source, &self.how)?;
        if let Some(head) = &self.heads[number] {
            self.next.push(Reverse((head.time_ns, number)));
        }
        Ok(())
    }
}

impl Iterator for TraceDat {
    type Item = Result<Sched>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let Reverse((_, number)) = self.next.pop()?;
        let found = self.heads[number].take()?;
        if let Err(error) = self.advance(number) {
            self.ended = true;
            return Some(Err(error));
        }
        Some(Ok(found))
    }
}

/// Version 6, after its first words.
fn version_6(cursor: &mut Cursor, page_size: u32) -> Result<Opened> {
    let (page, entries) = headers(cursor)?;
    skip_ftrace(cursor)?;
    let at = cursor.offset();
    let layouts = events(cursor)?;
    let decoder = Decoder::new(&layouts, at)?;
    for what in ["kallsyms", "trace_printk formats"] {
        let length = cursor.u32(what)?;
        cursor.take(length.into(), what)?;
    }
    let length = cursor.u64("names of threads")?;
    cursor.take(length, "names of threads")?;
    let cpus = cpus(cursor)?;
    let (mut clock, mut tsc) = (String::new(), None);
    let mut kind = cursor.take(10, "the kind of the data")?;
    if kind == b"options  \0" {
        loop {
            let id = cursor.u16("the number of an option")?;
            if id == 0 {
                break;
            }
            let length = cursor.u32("an option")?;
            let offset = cursor.offset();
            option(
                id,
                &mut Cursor::new(cursor.take(length.into(), "an option")?, offset),
                &mut clock,
                &mut tsc,
            )?;
        }
        kind = cursor.take(10, "the kind of the data")?;
    }
    if kind != b"flyrecord\0" {
        let found = String::from_utf8_lossy(kind).trim_end_matches(['\0', ' ']).escape_default().to_string();
        let message = format!("the data are `{found}`, bound `flyrecord` (pages of the ring buffer)");
        return refused("data_must_be_pages", cursor.offset() - 10, message);
    }
    let mut parts = Vec::new();
    for cpu in 0..cpus {
        let (offset, size) = (cursor.u64("where pages are")?, cursor.u64("how long they are")?);
        parts.push(Part { cpu, offset, size, packed: None });
    }
    let clock_of = clock_of(&clock, tsc, cursor.offset())?;
    let how = How { page, entries, decoder, page_size: page_size.into(), at_once: 0, clock: clock_of };
    Ok(Opened { how, parts, cpus, clock: chosen(&clock).into() })
}

/// How many CPUs there are.
fn cpus(cursor: &mut Cursor) -> Result<u32> {
    let at = cursor.offset();
    let cpus = cursor.u32("the number of CPUs")?;
    if !(1..=CPUS_MAX).contains(&cpus) {
        return refused("cpus_must_be_few", at, format!("{cpus} CPUs, bound 1 to {CPUS_MAX}"));
    }
    Ok(cpus)
}
