//! Marks that programs write (bpf/marks.bpf.c): probes in files, whose records go where those of the kernel side go.

use super::options::{Options, MARKS};
use crate::object::{Link, Object};
use anyhow::{Context, Result};
use std::ptr::read_volatile;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/marks.bpf.o.zst"));

/// As [`tierce:mark`](../../../../libtierce/libtierce.h) names it.
const PROVIDER: &str = "tierce";
const PROBE: &str = "mark";

pub(super) struct Marks(Object);

impl Marks {
    /// Loaded, if marks are wanted; it writes into the rings of that object.
    pub(super) fn of(options: &Options, other: &Object) -> Result<Option<Marks>> {
        if options.marks.is_empty() || options.trace_kinds & MARKS == 0 {
            return Ok(None);
        }
        let image = zstd::decode_all(PACKED).context("the embedded BPF object")?;
        let mut object = Object::open_image(image, c"tierce_marks")?;
        for map in ["records", "threads"] {
            object.share_map(map, other)?;
        }
        object.load(false, &mut |_| ()).context("marks of programs")?;
        Ok(Some(Marks(object)))
    }

    /// Hear of the marks in these files.
    pub(super) fn attach(&mut self, files: &[String]) -> Result<Vec<Link>> {
        let attach = |file: &String| {
            let link = self.0.attach_usdt("tierce_mark", file, PROVIDER, PROBE);
            link.with_context(|| {
                format!("[run] marks: {file} has no probe {PROVIDER}:{PROBE} that can be attached to")
            })
        };
        files.iter().map(attach).collect()
    }

    /// Marks that found no room, and marks whose label could not be read.
    pub(super) fn lost(&self) -> [u64; 2] {
        ["lost", "unlabelled"].map(|name| {
            let place = self.0.variable_address(name);
            // SAFETY: a u64 in the section's memory, which the kernel side changes.
            place.map_or(0, |(at, _)| unsafe { read_volatile(at.cast::<u64>()) })
        })
    }
}
