//! How a `trace.dat` is to be read: what both versions say, in their own ways.

use crate::bytes::Cursor;
use crate::refusal::{refused, Result};
use crate::ring::{Entries, Page};
use crate::sched::Decoder;

/// Most CPUs that a recording may have: as many as a trace of Tierce.
pub const CPUS_MAX: u32 = tierce_trace::file::CPUS_MAX;

/// How to read pages, and what is in their records.
pub struct How {
    pub page: Page,
    pub entries: Entries,
    pub decoder: Decoder,
    pub page_size: u64,
    /// Bytes of one CPU's pages in memory at once, at most.
    pub at_once: u64,
    pub clock: Clock,
}

/// From the file's times to ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Ns,
    /// ns = time · mult / 2^shift + offset.
    Cycles {
        mult: u32,
        shift: u32,
        offset: u64,
    },
}

impl Clock {
    /// In ns.
    pub fn ns(self, time: u64) -> u64 {
        match self {
            Clock::Ns => time,
            Clock::Cycles { mult, shift, offset } => {
                ((u128::from(time) * u128::from(mult)) >> shift).wrapping_add(offset.into()) as u64
            }
        }
    }
}

/// Where the pages of a CPU are.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub cpu: u32,
    pub offset: u64,
    pub size: u64,
    /// How it is compressed.
    pub packed: Option<Packing>,
}

/// How sections are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Zstd,
    Zlib,
}

/// What comes before the pages.
pub struct Opened {
    pub how: How,
    pub parts: Vec<Part>,
    pub cpus: u32,
    pub clock: String,
}

/// The option that names the clock.
pub const TRACECLOCK: u16 = 4;
const TSC2NSEC: u16 = 14;

/// An option that says how to read times; all others are left alone.
pub fn option(id: u16, cursor: &mut Cursor, clock: &mut String, tsc: &mut Option<Clock>) -> Result<()> {
    match id {
        TRACECLOCK => {
            *clock = String::from_utf8_lossy(cursor.take(cursor.left() as u64, "the clocks")?).into_owned();
        }
        TSC2NSEC => {
            let (mult, shift) = (cursor.u32("a factor")?, cursor.u32("a shift")?);
            let at = cursor.offset();
            if shift > 63 {
                return refused(
                    "shift_must_be_possible",
                    at,
                    format!("times are shifted by {shift} bits, bound 63"),
                );
            }
            *tsc = Some(Clock::Cycles { mult, shift, offset: cursor.u64("an offset")? });
        }
        _ => {}
    }
    Ok(())
}

/// The one in brackets of `[local] global counter`, or the only one.
pub fn chosen(clocks: &str) -> &str {
    let inside = clocks.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(clocks, |(name, _)| name).trim_matches(['\0', ' ', '\n'])
}

/// How the times of that clock become ns.
pub fn clock_of(clocks: &str, tsc: Option<Clock>, offset: u64) -> Result<Clock> {
    match (chosen(clocks), tsc) {
        ("x86-tsc", Some(cycles)) => Ok(cycles),
        (name @ ("x86-tsc" | "counter" | "uptime" | "ppc-tb"), _) => {
            let message =
                format!("times are of the clock `{name}`, bound one of ns: local, global, mono, boot, perf");
            refused("clock_must_be_of_ns", offset, message)
        }
        _ => Ok(Clock::Ns),
    }
}
