//! `perf.data` of `perf sched record`, or of `perf record` with the same events.
//!
//! Samples carry the raw record of the tracepoint; the part "tracing data" has the descriptions. Samples of one CPU are in order;
//! where perf says that a round is over, all that is older than the round before can be put in order.

use crate::bytes::{Cursor, Source};
use crate::metadata::{events, headers, initial, skip_ftrace};
use crate::refusal::{refused, Result};
use crate::sched::{Comm, Decoder, Sched, What};
use crate::trace_dat::how::CPUS_MAX;
use std::collections::{HashMap, VecDeque};

/// First bytes.
pub const MAGIC: &[u8; 8] = b"PERFILE2";

const TRACING_DATA: u32 = 1;
const NRCPUS: u32 = 7;

const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const COMPRESSED: [u32; 2] = [81, 83];

/// More samples in one round are put in order as they are.
const ROUND_MAX: usize = 1 << 20;

/// Bytes that are read at once.
const AT_ONCE: u64 = 1 << 20;

/// Bits of `sample_type`, in the order in which a sample has them.
mod bit {
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const ID: u64 = 1 << 6;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const RAW: u64 = 1 << 10;
}

/// A `perf.data`: all records in the order of time.
pub struct PerfData {
    /// How many CPUs the machine had.
    pub cpus: u32,
    source: Source,
    decoder: Decoder,
    /// What samples have, by their id.
    by_id: HashMap<u64, u64>,
    sample_type: u64,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    /// Samples not yet in order, and those that are.
    round: Vec<Sched>,
    ready: VecDeque<Sched>,
    latest_ns: u64,
    limit_ns: u64,
    ended: bool,
}

impl PerfData {
    /// Read the head and the descriptions.
    pub fn open(source: Source) -> Result<PerfData> {
        let head = source.part(0, 16, "the head")?;
        let mut cursor = Cursor::new(&head, 0);
        cursor.expect(MAGIC)?;
        let size = cursor.u64("the size of the head")?;
        if size == 16 {
            let message = "the file was written to a pipe; record it with `-o FILE`";
            return refused("file_must_be_no_pipe", 8, message);
        }
        let head = source.part(0, 104, "the head")?;
        let mut cursor = Cursor::new(&head, 0);
        cursor.take(16, "the head")?;
        let attribute_size = cursor.u64("the size of an event")?;
        let attributes = (cursor.u64("where events are")?, cursor.u64("where events are")?);
        let data = (cursor.u64("where samples are")?, cursor.u64("where samples are")?);
        cursor.take(16, "the head")?;
        let features = cursor.u64("the parts")?;
        let end = match data.0.checked_add(data.1).filter(|end| *end <= source.len()) {
            Some(end) if data.1 > 0 => end,
            _ => {
                let message = format!("samples are said to be {} bytes from byte {} on, the file has {}; was `perf record` ended in the middle?", data.1, data.0, source.len());
                return refused("file_must_be_whole", 40, message);
            }
        };
        let Some((at, length)) = feature(&source, features, end, TRACING_DATA)? else {
            let message = "the file has no descriptions of tracepoints: record with `perf sched record`";
            return refused("events_must_be_described", 72, message);
        };
        let bytes = source.part(at, length, "tracing data")?;
        let mut cursor = Cursor::new(&bytes, at);
        initial(&mut cursor)?;
        headers(&mut cursor)?;
        skip_ftrace(&mut cursor)?;
        let decoder = Decoder::new(&events(&mut cursor)?, at)?;
        let cpus = match feature(&source, features, end, NRCPUS)? {
            Some((at, 8..)) => {
                Cursor::new(&source.part(at, 8, "the number of CPUs")?, at).u32("the number of CPUs")?
            }
            _ => 1,
        };
        let (sample_type, by_id) = attributes_of(&source, attribute_size, attributes)?;
        Ok(PerfData {
            cpus: cpus.clamp(1, CPUS_MAX),
            source,
            decoder,
            by_id,
            sample_type,
            at: data.0,
            end,
            buffer: Vec::new(),
            buffer_at: 0,
            round: Vec::new(),
            ready: VecDeque::new(),
            latest_ns: 0,
            limit_ns: 0,
            ended: false,
        })
    }

    /// Those bytes of the samples, through a buffer.
    fn bytes(&mut self, at: u64, length: u64) -> Result<&[u8]> {
        let there = at >= self.buffer_at && at + length <= self.buffer_at + self.buffer.len() as u64;
        if !there {
            let most = AT_ONCE.max(length).min(self.end.saturating_sub(at));
            if length > most {
                let message = format!("a record is said to have {length} bytes, of which {most} are there");
                return refused("file_must_be_whole", at, message);
            }
            (self.buffer, self.buffer_at) = (self.source.part(at, most, "samples")?, at);
        }
        Ok(&self.buffer[(at - self.buffer_at) as usize..][..length as usize])
    }

    /// The next record of perf; `false`: there is none.
    fn take_record(&mut self) -> Result<bool> {
        if self.at >= self.end {
            return Ok(false);
        }
        let at = self.at;
        let head = self.bytes(at, 8)?.to_vec();
        let mut cursor = Cursor::new(&head, at);
        let kind = cursor.u32("a record")?;
        cursor.u16("a record")?;
        let size = u64::from(cursor.u16("a record")?);
        if size < 8 {
            return refused(
                "record_must_have_a_length",
                at,
                format!("a record is said to have {size} bytes, bound 8"),
            );
        }
        self.at += size;
        match kind {
            SAMPLE => {
                let record = self.bytes(at, size)?.to_vec();
                self.sample(&record, at)?;
            }
            COMM => {
                let record = self.bytes(at, size)?.to_vec();
                let mut cursor = Cursor::new(&record, at);
                cursor.take(12, "a name")?;
                let tid = cursor.u32("a thread")?;
                let comm = Comm::new(cursor.text("a name")?.as_bytes());
                // It holds from the time that is reached: it has no time where no sample has its id.
                self.round.push(Sched {
                    time_ns: self.latest_ns,
                    cpu: 0,
                    what: What::Named(tid as i32, comm),
                });
            }
            LOST => {
                let record = self.bytes(at, size)?.to_vec();
                let mut cursor = Cursor::new(&record, at);
                cursor.take(16, "lost records")?;
                let lost = cursor.u64("lost records")?;
                self.round.push(Sched { time_ns: self.latest_ns, cpu: u32::MAX, what: What::Lost(lost) });
            }
            FINISHED_ROUND => self.finish_round(),
            AUXTRACE => {
                let record = self.bytes(at, size.max(16))?.to_vec();
                let more = Cursor::new(&record[8..], at + 8).u64("trace data")?;
                self.at = self.at.saturating_add(more);
            }
            kind if COMPRESSED.contains(&kind) => {
                let message = "samples are compressed; record without `-z`";
                return refused("samples_must_not_be_compressed", at, message);
            }
            _ => {}
        }
        if self.round.len() >= ROUND_MAX {
            self.limit_ns = self.latest_ns;
            self.finish_round();
        }
        Ok(true)
    }

    /// All that is not later than the round before.
    fn finish_round(&mut self) {
        self.round.sort_by_key(|sched| sched.time_ns);
        let old = self.round.partition_point(|sched| sched.time_ns <= self.limit_ns);
        self.ready.extend(self.round.drain(..old));
        self.limit_ns = self.latest_ns;
    }

    fn sample(&mut self, record: &[u8], at: u64) -> Result<()> {
        let mut cursor = Cursor::new(record, at);
        cursor.take(8, "a sample")?;
        let mut has = self.sample_type;
        if has & bit::IDENTIFIER != 0 {
            let id = cursor.u64("the id of a sample")?;
            has = self.by_id.get(&id).copied().unwrap_or(has);
        }
        for (what, bytes) in [(bit::IP, 8), (bit::TID, 8)] {
            cursor.take(if has & what != 0 { bytes } else { 0 }, "a sample")?;
        }
        let time_ns = cursor.u64("the time of a sample")?;
        for (what, bytes) in [(bit::ADDR, 8), (bit::ID, 8), (bit::STREAM_ID, 8)] {
            cursor.take(if has & what != 0 { bytes } else { 0 }, "a sample")?;
        }
        let cpu_at = cursor.offset();
        let cpu = cursor.u32("the CPU of a sample")?;
        cursor.u32("the CPU of a sample")?;
        if cpu >= CPUS_MAX {
            return refused("cpus_must_be_few", cpu_at, format!("CPU {cpu}, bound 0 to {}", CPUS_MAX - 1));
        }
        cursor.take(if has & bit::PERIOD != 0 { 8 } else { 0 }, "a sample")?;
        if has & bit::CALLCHAIN != 0 {
            let count = cursor.u64("callers")?;
            cursor.take(count.saturating_mul(8), "callers")?;
        }
        let length = cursor.u32("the raw part of a sample")?;
        let offset = cursor.offset();
        let raw = cursor.take(length.into(), "the raw part of a sample")?;
        self.latest_ns = self.latest_ns.max(time_ns);
        if let Some(what) = self.decoder.read(raw, offset)? {
            self.round.push(Sched { time_ns, cpu, what });
        }
        Ok(())
    }
}

impl Iterator for PerfData {
    type Item = Result<Sched>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(sched) = self.ready.pop_front() {
                return Some(Ok(sched));
            }
            if self.ended {
                return None;
            }
            match self.take_record() {
                Ok(true) => {}
                Ok(false) => {
                    self.ended = true;
                    self.limit_ns = u64::MAX;
                    self.finish_round();
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Where a part is that comes after the samples.
fn feature(source: &Source, features: u64, end: u64, number: u32) -> Result<Option<(u64, u64)>> {
    if features >> number & 1 == 0 {
        return Ok(None);
    }
    let before = (features & ((1 << number) - 1)).count_ones();
    let at = end.saturating_add(u64::from(before) * 16);
    let place = source.part(at, 16, "the place of a part")?;
    let mut cursor = Cursor::new(&place, at);
    Ok(Some((cursor.u64("a place")?, cursor.u64("a length")?)))
}

/// What samples have, in all and by id.
fn attributes_of(source: &Source, size: u64, (at, length): (u64, u64)) -> Result<(u64, HashMap<u64, u64>)> {
    if !(48 + 16..=4096).contains(&size) {
        return refused(
            "event_must_have_a_length",
            16,
            format!("an event has {size} bytes, bound 64 to 4096"),
        );
    }
    let bytes = source.part(at, length, "events")?;
    let (mut by_id, mut all) = (HashMap::new(), None);
    for (number, event) in bytes.chunks_exact(size as usize).enumerate() {
        let base = at + number as u64 * size;
        let mut cursor = Cursor::new(event, base);
        cursor.take(24, "an event")?;
        let has = cursor.u64("what a sample has")?;
        let mut cursor = Cursor::new(&event[size as usize - 16..], base + size - 16);
        let (ids_at, ids_length) = (cursor.u64("ids")?, cursor.u64("ids")?);
        for id in source.part(ids_at, ids_length, "ids")?.chunks_exact(8) {
            by_id.insert(crate::bytes::number(id), has);
        }
        // Further events, such as perf's dummy, have no samples that count.
        if has & bit::RAW == 0 {
            continue;
        }
        let needed = bit::TIME | bit::CPU;
        if has & needed != needed || has & bit::READ != 0 {
            let message = format!("samples have {has:#x}, bound: with time and CPU, without counters");
            return refused("samples_must_have_time_and_cpu", base + 24, message);
        }
        // Where they differ, each sample has to begin with its id.
        let differs = |all: u64| all != has && all & has & bit::IDENTIFIER == 0;
        if all.is_some_and(differs) {
            return refused(
                "samples_must_be_alike",
                base + 24,
                format!("samples have {has:#x}, others {:#x}", all.unwrap_or(0)),
            );
        }
        all = Some(has);
    }
    match all {
        Some(all) => Ok((all, by_id)),
        None => refused("samples_must_be_raw", at, "no event has the raw records of a tracepoint"),
    }
}
