//! Recordings: every entry and control operation of a run, in an order in which they can be replayed one after another.
//!
//! A file is the 8 bytes `TIERCER\x01`, u64 floor_ns, u64 reserved (0), then entries of 48 bytes, little endian, in the
//! layout of [`Entry`]. The first entry is `init`. `pad` counts the entries that were lost before this one: what follows
//! cannot be replayed. A recording of the kernel's run, replayed on the native build, must
//! give the same results, bit for bit: that is the test that both run the same policy code.

use crate::raw::{self, Entry};
use crate::{Difference, Error, Graph};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fmt;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 8] = b"TIERCER\x01";
const ENTRY: usize = size_of::<Entry>();
const OP_INIT: u32 = 1;
const OP_DECIDE: u32 = 5;

/// Bytes of one entry as files hold it.
pub fn to_bytes(entry: &Entry) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    let words = [entry.now_ns, entry.value, entry.result, entry.drained];
    let halves = [entry.op, entry.a, entry.b, entry.pad];
    for (i, word) in words.iter().enumerate() {
        bytes[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
    }
    for (i, half) in halves.iter().enumerate() {
        bytes[32 + 4 * i..36 + 4 * i].copy_from_slice(&half.to_le_bytes());
    }
    bytes
}

/// An entry from its bytes.
pub fn from_bytes(bytes: &[u8; ENTRY]) -> Entry {
    let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("8 bytes"));
    let half = |i: usize| u32::from_le_bytes(bytes[32 + 4 * i..36 + 4 * i].try_into().expect("4 bytes"));
    Entry {
        now_ns: word(0),
        value: word(1),
        result: word(2),
        drained: word(3),
        op: half(0),
        a: half(1),
        b: half(2),
        pad: half(3),
    }
}

/// Writes a recording.
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begin a recording of a machine with this timer floor (ns).
    pub fn new(mut out: W, floor_ns: u64) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&floor_ns.to_le_bytes())?;
        out.write_all(&[0; 8])?;
        Ok(Writer { out })
    }

    /// Append one entry.
    pub fn write(&mut self, entry: &Entry) -> io::Result<()> {
        self.out.write_all(&to_bytes(entry))
    }

    /// Flush and hand back what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Entries and control operations.
    pub entries: u64,
    /// Decisions among them.
    pub decisions: u64,
    /// Nanoseconds from the first to the last entry.
    pub length_ns: u64,
    /// How many of each operation: `request`, `online`, …
    pub operations: BTreeMap<&'static str, u64>,
}

/// The name of an operation, as in the list of `policy/tierce.h`.
pub fn operation(number: u32) -> Option<&'static str> {
    // SAFETY: returns a string literal or null.
    let name = unsafe { raw::tierce_op_name(number) };
    // SAFETY: not null, so a literal of the C side.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().ok()).flatten()
}

/// Why a replay ended early.
#[derive(Debug)]
pub enum ReplayError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is no recording, or not of this version.
    NotARecording,
    /// It ends inside an entry, after this many whole ones.
    CutShort(u64),
    /// Entries were lost when it was made: how many, after how many.
    Lost {
        /// Entries that were lost.
        entries: u32,
        /// Entries before.
        after: u64,
    },
    /// It does not begin with `init`, or asks for more CPUs than this build has.
    Init(Option<Error>),
    /// Entry number `at` gave another result here. `state` is this build's state of the CPU concerned, in words.
    Differs {
        /// Its number, from 0.
        at: u64,
        /// Both results.
        difference: Box<Difference>,
        /// The replaying build's view.
        state: String,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Io(error) => write!(f, "the recording cannot be read: {error}"),
            ReplayError::NotARecording => write!(f, "this is not a recording of this version"),
            ReplayError::CutShort(entries) => write!(f, "the recording is cut short after {entries} entries"),
            ReplayError::Lost { entries, after } => {
                write!(f, "{entries} entries were lost when it was recorded, after {after}: what follows cannot be told")
            }
            ReplayError::Init(None) => {
                write!(f, "the recording does not begin with the making of its machine")
            }
            ReplayError::Init(Some(error)) => write!(f, "the recorded machine cannot be made here: {error}"),
            ReplayError::Differs { at, difference, state } => write!(
                f,
                "entry {at} differs\n  recorded {:?}\n  replayed {:?}\n{state}",
                difference.recorded, difference.replayed
            ),
        }
    }
}
impl std::error::Error for ReplayError {}

impl From<io::Error> for ReplayError {
    fn from(error: io::Error) -> Self {
        ReplayError::Io(error)
    }
}

fn whole(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < into.len() {
        match from.read(&mut into[have..]) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

/// All of a recording: the floor (ns) and the entries, the first of which is `init`.
pub fn read(mut from: impl Read) -> Result<(u64, Vec<Entry>), ReplayError> {
    let floor_ns = head(&mut from)?;
    let mut entries = Vec::new();
    while let Some(entry) = next(&mut from, entries.len() as u64)? {
        entries.push(entry);
    }
    match entries.first() {
        Some(entry) if entry.op == OP_INIT => Ok((floor_ns, entries)),
        _ => Err(ReplayError::Init(None)),
    }
}

fn head(from: &mut impl Read) -> Result<u64, ReplayError> {
    let mut head = [0; 24];
    if whole(from, &mut head)? < head.len() || &head[..8] != MAGIC {
        return Err(ReplayError::NotARecording);
    }
    Ok(u64::from_le_bytes(head[8..16].try_into().expect("8 bytes")))
}

fn next(from: &mut impl Read, before: u64) -> Result<Option<Entry>, ReplayError> {
    let mut bytes = [0; ENTRY];
    match whole(from, &mut bytes)? {
        0 => Ok(None),
        ENTRY => match from_bytes(&bytes) {
            entry if entry.pad > 0 => Err(ReplayError::Lost { entries: entry.pad, after: before }),
            entry => Ok(Some(entry)),
        },
        _ => Err(ReplayError::CutShort(before)),
    }
}

/// Run a recording again on this build, entry by entry, and compare every result. `progress` sees each entry's number.
pub fn replay(mut from: impl Read, mut progress: impl FnMut(u64)) -> Result<Replayed, ReplayError> {
    let floor_ns = head(&mut from)?;
    let mut graph: Option<Graph> = None;
    let mut sum = Replayed::default();
    let mut begin_ns = 0;
    while let Some(entry) = next(&mut from, sum.entries)? {
        match &mut graph {
            None if entry.op == OP_INIT => {
                let mut fresh =
                    Graph::new(entry.a, entry.now_ns).map_err(|error| ReplayError::Init(Some(error)))?;
                fresh.set_floor_ns(floor_ns);
                begin_ns = entry.now_ns;
                graph = Some(fresh);
            }
            None => return Err(ReplayError::Init(None)),
            Some(graph) => graph.replay(&entry).map_err(|difference| ReplayError::Differs {
                at: sum.entries,
                state: graph.describe(entry.a),
                difference: Box::new(difference),
            })?,
        }
        progress(sum.entries);
        sum.entries += 1;
        sum.decisions += (entry.op == OP_DECIDE) as u64;
        if let Some(name) = operation(entry.op) {
            *sum.operations.entry(name).or_default() += 1;
        }
        sum.length_ns = sum.length_ns.max(entry.now_ns.saturating_sub(begin_ns));
    }
    match graph {
        Some(_) => Ok(sum),
        None => Err(ReplayError::Init(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpus;

    fn recorded() -> Vec<u8> {
        let mut graph = Graph::recorded(1, 5).unwrap();
        let node = graph.node_new(2, 0, Cpus::NONE, [0; 4]).unwrap();
        graph.root(0, node, 5).unwrap();
        let task = graph.node_new(crate::TASK, 0, Cpus::only(0), [0; 4]).unwrap();
        graph.attach(node, task, [7, 0, 0, 0], 0, false, 5).unwrap();
        graph.request(task, 10);
        assert_eq!(graph.decide(0, 10, 0), task);
        graph.release(task, 2_010);
        assert_eq!(graph.decide(0, 2_010, 0), 0);
        let mut writer = Writer::new(vec![], 0).unwrap();
        graph.take_entries().iter().for_each(|entry| writer.write(entry).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn a_recording_replays() {
        let sum = replay(recorded().as_slice(), |_| ()).unwrap();
        assert_eq!((sum.decisions, sum.length_ns), (2, 2_005));
        assert_eq!((sum.operations["decide"], sum.operations["request"]), (2, 1));
    }

    #[test]
    fn bad_recordings_are_refused() {
        let file = recorded();
        assert!(matches!(replay(&b""[..], |_| ()), Err(ReplayError::NotARecording)));
        assert!(matches!(
            replay(&b"TIERCER\x02 and sixteen bytes"[..], |_| ()),
            Err(ReplayError::NotARecording)
        ));
        assert!(matches!(replay(&file[..file.len() - 1], |_| ()), Err(ReplayError::CutShort(_))));
        assert!(matches!(replay(&file[..24], |_| ()), Err(ReplayError::Init(None))));
        assert!(matches!(
            replay(&[&file[..24], &file[72..]].concat()[..], |_| ()),
            Err(ReplayError::Init(None))
        ));
        let mut with_loss = file.clone();
        with_loss[file.len() - 4] = 7;
        let error = replay(with_loss.as_slice(), |_| ()).unwrap_err();
        assert!(matches!(error, ReplayError::Lost { entries: 7, .. }), "{error}");
        assert!(error.to_string().contains("7 entries were lost"), "{error}");
        assert!(read(with_loss.as_slice()).is_err());
        let mut other = file.clone();
        let last = other.len() - ENTRY + 16; // the last decision's until_ns
        other[last] ^= 1;
        let error = replay(other.as_slice(), |_| ()).unwrap_err();
        assert!(matches!(error, ReplayError::Differs { .. }), "{error}");
        assert!(error.to_string().contains("cpu 0"), "{error}");
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let file = recorded();
        let mut seed = 1u64;
        for _ in 0..200 {
            let mut other = file.clone();
            for _ in 0..4 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = 24 + (seed >> 33) as usize % (other.len() - 24);
                other[at] = (seed >> 20) as u8;
            }
            let _ = std::panic::catch_unwind(|| replay(other.as_slice(), |_| ())).map_err(|cause| {
                // the engine's own assertions may stop a run that no port could have made; memory stays safe
                assert!(
                    cause.downcast_ref::<String>().is_some_and(|text| text.starts_with("graph:")),
                    "seed {seed}"
                );
            });
        }
    }
}
