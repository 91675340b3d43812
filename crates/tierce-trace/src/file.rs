//! Trace files: `TIERCE\0\1`, u32 length of the JSON header, the header, records of 32 bytes. All little endian.
//!
//! Both ends stream. A reader never panics and never allocates by what an unchecked length says; every fault is an
//! error with the byte it was found at. A recording cut off in the middle (its writer was killed) gives all its whole
//! records, then [`TraceError::Truncated`].

use crate::change::{Renumber, Seen};
use crate::event::{Event, HEADER_BYTES_MAX, RECORD_BYTES};
use crate::header::{TraceHeader, VERSION};
use std::io::{self, BufReader, BufWriter, Read, Write};

/// First bytes of every trace; the last one counts layouts.
pub const MAGIC: [u8; 8] = *b"TIERCE\0\x01";

/// Most CPUs a trace may have.
pub const CPUS_MAX: u32 = 4096;

/// Why a trace cannot be read (on).
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The first bytes are not ours.
    #[error("not a trace: it begins with {found:02x?} instead of {MAGIC:02x?}")]
    NotATrace {
        /// What is there, at most 8 bytes.
        found: Vec<u8>,
    },
    /// Ours, but of another layout or header version.
    #[error("byte {offset}: trace version {found}, this tierce reads version {expected}")]
    Version {
        /// Where the version is.
        offset: u64,
        /// Version of the file.
        found: u32,
        /// Version understood.
        expected: u32,
    },
    /// The header's length is out of bounds.
    #[error("byte 8: the header is said to have {length} bytes, at most {HEADER_BYTES_MAX} are allowed")]
    HeaderTooLong {
        /// The length claimed.
        length: u32,
    },
    /// The header is not the JSON it should be.
    #[error("byte {offset}: header: {reason}")]
    Header {
        /// Where the header begins.
        offset: u64,
        /// What is wrong, with line and column inside the header.
        reason: String,
    },
    /// The file ends inside something.
    #[error("byte {offset}: the file ends inside {what}")]
    Truncated {
        /// Where that something begins.
        offset: u64,
        /// The magic, the header, a record.
        what: &'static str,
    },
    /// A record says something impossible.
    #[error("byte {offset}: record {index}: {reason}")]
    Record {
        /// Where the record begins.
        offset: u64,
        /// Its number, from 0.
        index: u64,
        /// Field, value and bound.
        reason: String,
    },
    /// The file could not be read or written.
    #[error("byte {offset}: {source}")]
    Io {
        /// Where.
        offset: u64,
        /// Why.
        source: io::Error,
    },
}

/// Writes a trace, record by record. Call [`Writer::finish`]; dropping it loses errors of the last bytes.
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Begin a trace.
    pub fn new(out: W, header: &TraceHeader) -> io::Result<Writer<W>> {
        let json = serde_json::to_vec(&TraceHeader { version: VERSION, ..header.clone() })?;
        let length = u32::try_from(json.len()).ok().filter(|&length| length <= HEADER_BYTES_MAX);
        let length = length.ok_or_else(|| {
            let text = format!("the header has {} bytes, at most {HEADER_BYTES_MAX} are allowed", json.len());
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        let mut out = BufWriter::with_capacity(1 << 16, out);
        out.write_all(&MAGIC)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&json)?;
        Ok(Writer { out, records: 0 })
    }

    /// Append a record.
    #[inline]
    pub fn write(&mut self, event: &Event) -> io::Result<()> {
        self.records += 1;
        self.out.write_all(&event.to_bytes())
    }

    /// Records written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Hand everything to the file and return it.
    pub fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// Reads a trace: the header at once, then records as an iterator that ends after the first error.
pub struct Reader<R: Read> {
    input: BufReader<R>,
    header: TraceHeader,
    offset: u64,
    records: u64,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Check magic and version, read the header.
    pub fn new(input: R) -> Result<Reader<R>, TraceError> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        let mut magic = [0; 8];
        let length = fill(&mut input, &mut magic).map_err(|source| TraceError::Io { offset: 0, source })?;
        if magic[..length.min(7)] != MAGIC[..length.min(7)] || length == 0 {
            return Err(TraceError::NotATrace { found: magic[..length].to_vec() });
        }
        if length < MAGIC.len() {
            return Err(TraceError::Truncated { offset: 0, what: "the magic" });
        }
        if magic[7] != MAGIC[7] {
            let (found, expected) = (u32::from(magic[7]), u32::from(MAGIC[7]));
            return Err(TraceError::Version { offset: 7, found, expected });
        }
        let mut length = [0; 4];
        let got = fill(&mut input, &mut length).map_err(|source| TraceError::Io { offset: 8, source })?;
        if got < length.len() {
            return Err(TraceError::Truncated { offset: 8, what: "the header's length" });
        }
        let length = u32::from_le_bytes(length);
        if length > HEADER_BYTES_MAX {
            return Err(TraceError::HeaderTooLong { length });
        }
        let (offset, mut json) = (12, Vec::new());
        let read = input.by_ref().take(u64::from(length)).read_to_end(&mut json);
        read.map_err(|source| TraceError::Io { offset, source })?;
        if json.len() < length as usize {
            return Err(TraceError::Truncated { offset, what: "the header" });
        }
        let header = parse_header(&json, offset)?;
        Ok(Reader { input, header, offset: offset + u64::from(length), records: 0, ended: false })
    }

    /// The header.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Byte at which the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn read(&mut self) -> Result<Option<Event>, TraceError> {
        let (offset, mut bytes) = (self.offset, [0; RECORD_BYTES]);
        let got = fill(&mut self.input, &mut bytes).map_err(|source| TraceError::Io { offset, source })?;
        match got {
            0 => return Ok(None),
            RECORD_BYTES => {}
            _ => return Err(TraceError::Truncated { offset, what: "a record" }),
        }
        let event = Event::from_bytes(&bytes);
        if let Some(reason) = event.fault(self.header.cpus) {
            return Err(TraceError::Record { offset, index: self.records, reason });
        }
        self.offset += RECORD_BYTES as u64;
        self.records += 1;
        Ok(Some(event))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// A whole trace in memory, its records in the order of their times (equal times: of the file). If the plan changed, the
/// header has all that it ever named, each with a number of its own: see [`crate::change`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The header.
    pub header: TraceHeader,
    /// The records.
    pub events: Vec<Event>,
}

impl Trace {
    /// Read everything. A fault after the header does not lose what came before it: it is returned beside the trace.
    pub fn read(input: impl Read) -> Result<(Trace, Option<TraceError>), TraceError> {
        let mut reader = Reader::new(input)?;
        let (mut events, mut fault) = (Vec::new(), None);
        for event in reader.by_ref() {
            match event {
                Ok(event) => events.push(event),
                Err(error) => fault = Some(error),
            }
        }
        events.sort_by_key(|event| event.now_ns);
        let mut header = reader.header;
        let mut renumber = Renumber::new(&header);
        events.retain_mut(|event| match renumber.event(event) {
            Seen::Event(seen) => {
                *event = seen;
                true
            }
            Seen::Change(change) => {
                change.amend(&mut header);
                false
            }
            Seen::Nothing => false,
        });
        Ok((Trace { header, events }, fault))
    }

    /// When the recording ends: as the header says, else with its last record.
    pub fn end_ns(&self) -> u64 {
        let last = self.events.last().map_or(self.header.start_ns, |event| event.now_ns);
        self.header.end_ns.unwrap_or(last).max(last)
    }
}

fn parse_header(json: &[u8], offset: u64) -> Result<TraceHeader, TraceError> {
    /// Read before the rest, so that a later version is refused as such and not by its unknown shape.
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    let fault = |reason: String| TraceError::Header { offset, reason };
    let Versioned { version } = serde_json::from_slice(json).map_err(|error| fault(error.to_string()))?;
    if version != VERSION {
        return Err(TraceError::Version { offset, found: version, expected: VERSION });
    }
    let header: TraceHeader = serde_json::from_slice(json).map_err(|error| fault(error.to_string()))?;
    if !(1..=CPUS_MAX).contains(&header.cpus) {
        return Err(fault(format!("cpus is {}, allowed are 1 to {CPUS_MAX}", header.cpus)));
    }
    let nodes = header.nodes.iter().map(|node| ("node", node.id));
    let tasks = header.tasks.iter().map(|task| ("task", task.id));
    for (what, id) in nodes.chain(tasks).chain(header.edges.iter().map(|edge| ("edge", edge.id))) {
        if id > crate::event::ID_MAX {
            return Err(fault(format!("{what} id {id}, at most {}", crate::event::ID_MAX)));
        }
    }
    Ok(header)
}

/// As many bytes as there are, up to the buffer's length.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < buffer.len() {
        match input.read(&mut buffer[at..]) {
            Ok(0) => break,
            Ok(n) => at += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;
    use crate::header::{Source, TaskInfo};
    use proptest::prelude::*;

    fn header() -> TraceHeader {
        let tasks = vec![TaskInfo { id: 3, name: "audio".into(), ..Default::default() }];
        TraceHeader { plan: "p".into(), source: Source::Run, cpus: 2, tasks, ..Default::default() }
    }

    fn bytes_of(events: &[Event]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        events.iter().for_each(|event| writer.write(event).unwrap());
        assert_eq!(writer.records(), events.len() as u64);
        writer.finish().unwrap()
    }

    fn two() -> Vec<u8> {
        bytes_of(&[Event::new(1, Kind::Request, 0, 3, 0, 0), Event::new(2, Kind::Decision, 1, 3, 1, 0)])
    }

    #[test]
    fn what_was_written_is_read() {
        let (trace, fault) = Trace::read(&two()[..]).unwrap();
        assert!(fault.is_none());
        assert_eq!(trace.header, TraceHeader { version: VERSION, ..header() });
        assert_eq!(trace.events.len(), 2);
        assert_eq!((trace.events[1].kind(), trace.end_ns()), (Some(Kind::Decision), 2));
    }

    #[test]
    fn every_refusal_has_its_place() {
        let good = two();
        let json = serde_json::to_string(&TraceHeader { version: VERSION, ..header() }).unwrap();
        let with_header = |json: &str| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend((json.len() as u32).to_le_bytes());
            bytes.extend(json.as_bytes());
            bytes
        };
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        let record = good.len() - 32;
        let cases: Vec<(Vec<u8>, String)> = vec![
            (vec![], "not a trace: it begins with [] instead of".into()),
            (b"#!/bin/sh\n".to_vec(), "not a trace: it begins with [23, 21".into()),
            (good[..5].to_vec(), "byte 0: the file ends inside the magic".into()),
            (changed(7, 9), "byte 7: trace version 9, this tierce reads version 1".into()),
            (good[..10].to_vec(), "byte 8: the file ends inside the header's length".into()),
            (good[..40].to_vec(), "byte 12: the file ends inside the header".into()),
            (changed(11, 0xff), "byte 8: the header is said to have 42".into()),
            (with_header("{"), "byte 12: header: EOF while parsing".into()),
            (with_header("{}"), "byte 12: header: missing field `version`".into()),
            (
                with_header(r#"{"version":2,"new":[]}"#),
                "byte 12: trace version 2, this tierce reads version 1".into(),
            ),
            (
                with_header(&json.replace("\"cpus\":2", "\"cpus\":0")),
                "byte 12: header: cpus is 0, allowed are 1".into(),
            ),
            (
                with_header(&json.replace("\"id\":3", "\"id\":4294967295")),
                "byte 12: header: task id 4294967295, at".into(),
            ),
            (good[..good.len() - 1].to_vec(), format!("byte {record}: the file ends inside a record")),
            (changed(record + 10, 9), format!("byte {record}: record 1: cpu is 9, the trace has 2")),
        ];
        for (bytes, expected) in cases {
            let message = match Trace::read(&bytes[..]) {
                Err(error) => error.to_string(),
                Ok((_, fault)) => fault.expect(&expected).to_string(),
            };
            assert!(message.starts_with(&expected), "{message}\nshould begin with\n{expected}");
        }
    }

    #[test]
    fn what_precedes_a_fault_is_kept() {
        let good = two();
        let (trace, fault) = Trace::read(&good[..good.len() - 7]).unwrap();
        assert_eq!(trace.events.len(), 1);
        assert!(matches!(fault, Some(TraceError::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..300), ours in 0usize..4) {
            let prefix = &two()[..[0, 8, 12, two().len() - 64][ours]];
            bytes.splice(0..0, prefix.iter().copied());
            let _ = Trace::read(&bytes[..]);
        }

        #[test]
        fn any_flipped_byte_is_survived(at in 0usize..400, byte in any::<u8>()) {
            let mut bytes = two();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Trace::read(&bytes[..]);
        }

        #[test]
        fn events_round_trip(fields in prop::collection::vec((any::<u64>(), 1u16..21, 0u16..2, 0u32..99, 0u32..99, 0u64..99), 0..50)) {
            let mut events: Vec<_> = fields.into_iter()
                .map(|(now_ns, kind, cpu, a, b, value)| Event { now_ns, kind, cpu, a, b, pad: 0, value }).collect();
            let bytes = bytes_of(&events);
            let (trace, fault) = Trace::read(&bytes[..]).unwrap();
            events.sort_by_key(|event| event.now_ns);
            prop_assert!(fault.is_none());
            prop_assert_eq!(trace.events, events);
        }
    }
}
