//! A timeline as one HTML page that needs nothing else: no server, no network, no other file.
//!
//! The page carries the records themselves (columns of variable-length integers, deflated, base64: about 4 bytes per
//! record) and follows them in the browser; the statistics below it are the [`Report`] made here. Its
//! parts lie in `html/`: `data.js` (decode and follow), `view.js` (rows, time, drawing), `input.js` (mouse and keys),
//! `page.js` (title, legend, tables), `selftest.js` (runs at `#selftest`).

use crate::event::{Event, Kind, NO_DEADLINE};
use crate::file::Trace;
use crate::report::Report;
use crate::stats::Stats;
use crate::TraceHeader;
use base64::{engine::general_purpose::STANDARD, Engine};
use flate2::{write::DeflateEncoder, Compression};
use serde::Serialize;
use std::io::{self, Write};

const PAGE: &str = include_str!("html/page.html");
const CSS: &str = include_str!("html/page.css");
const SCRIPTS: [&str; 5] = [
    include_str!("html/data.js"),
    include_str!("html/view.js"),
    include_str!("html/input.js"),
    include_str!("html/page.js"),
    include_str!("html/selftest.js"),
];

#[derive(Serialize)]
struct Meta<'a> {
    header: &'a TraceHeader,
    report: Report,
    /// Texts of the [`Kind::Name`] records, in their order.
    names: Vec<String>,
    count: usize,
    length_ns: u64,
}

/// Write the page: one trace, or several that are laid one above the other row by row (simulated and measured).
pub fn write(traces: &[&Trace], mut out: impl Write) -> io::Result<()> {
    let plan = traces.first().map_or("", |trace| trace.header.plan.rsplit('/').next().unwrap_or_default());
    let title = format!("{} – Tierce timeline", plan.strip_suffix(".toml").unwrap_or(plan));
    let mut rest = PAGE;
    while let Some((before, marker, after)) = next_marker(rest) {
        out.write_all(before.as_bytes())?;
        match marker {
            "TITLE" => out.write_all(escape(&title).as_bytes())?,
            "CSS" => out.write_all(CSS.trim_end().as_bytes())?,
            "SCRIPT" => SCRIPTS.iter().try_for_each(|script| out.write_all(script.as_bytes()))?,
            _ => traces.iter().enumerate().try_for_each(|(at, trace)| write_trace(at, trace, &mut out))?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// The text before the first `@MARKER@`, its name, the text behind it.
fn next_marker(text: &str) -> Option<(&str, &str, &str)> {
    ["TITLE", "CSS", "DATA", "SCRIPT"]
        .iter()
        .filter_map(|name| Some((text.find(&format!("@{name}@"))?, *name)))
        .min()
        .map(|(at, name)| (&text[..at], name, &text[at + name.len() + 2..]))
}

fn write_trace(at: usize, trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let mut stats = Stats::new(&trace.header);
    trace.events.iter().for_each(|event| stats.event(event));
    stats.finish(trace.end_ns());
    let names = trace.events.iter().filter(|event| event.kind() == Some(Kind::Name)).map(Event::text);
    let meta = Meta {
        header: &trace.header,
        report: stats.report(),
        names: names.collect(),
        count: trace.events.len(),
        length_ns: trace.end_ns().saturating_sub(trace.header.start_ns),
    };
    // Inside <script> only "</" and "<!--" could end or change it: no "<" at all is simpler.
    let json = serde_json::to_string(&meta)?.replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" id=\"meta{at}\">{json}</script>")?;
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&columns(trace))?;
    let packed = STANDARD.encode(packer.finish()?);
    writeln!(out, "<script type=\"application/octet-stream\" id=\"events{at}\">{packed}</script>")
}

/// The records as columns: time deltas, kinds, CPUs, a, b as LEB128, values as zigzag LEB128. Absolute times count
/// from the begin of the trace; no deadline is the smallest integer.
fn columns(trace: &Trace) -> Vec<u8> {
    let start_ns = trace.header.start_ns;
    let mut bytes = Vec::with_capacity(trace.events.len() * 10);
    let mut before_ns = start_ns;
    for event in &trace.events {
        number(&mut bytes, event.now_ns.saturating_sub(before_ns));
        before_ns = before_ns.max(event.now_ns);
    }
    trace.events.iter().for_each(|event| number(&mut bytes, event.kind().map_or(0, |kind| kind as u64)));
    trace.events.iter().for_each(|event| number(&mut bytes, event.cpu.into()));
    trace.events.iter().for_each(|event| number(&mut bytes, event.a.into()));
    trace.events.iter().for_each(|event| number(&mut bytes, event.b.into()));
    for event in &trace.events {
        let value = match event.kind() {
            Some(Kind::JobRelease) if event.value == NO_DEADLINE => i64::MIN,
            Some(Kind::Throttle | Kind::JobRelease | Kind::Miss) => event.value.wrapping_sub(start_ns) as i64,
            Some(Kind::Name) => 0,
            _ => event.value as i64,
        };
        number(&mut bytes, ((value << 1) ^ (value >> 63)) as u64);
    }
    bytes
}

/// LEB128: 7 bits a byte, the lowest first, the top bit says that more follow.
fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_leb128() {
        for (value, expected) in [(0, vec![0]), (127, vec![127]), (128, vec![128, 1]), (300, vec![0xac, 2])] {
            let mut bytes = Vec::new();
            number(&mut bytes, value);
            assert_eq!(bytes, expected);
        }
        let mut bytes = Vec::new();
        number(&mut bytes, u64::MAX);
        assert_eq!(bytes.len(), 10);
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let evil = "</script><script>alert(1)</script>@DATA@".to_string();
        let header = TraceHeader { plan: evil.clone(), cpus: 1, ..Default::default() };
        let events = vec![Event::naming(1, 0, 3, "</script>")];
        let mut page = Vec::new();
        write(&[&Trace { header, events }], &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("alert(1)</script>"), "the plan's name reached the page unescaped");
        assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
        assert_eq!(page.matches("id=\"meta0\"").count(), 1);
    }

    #[test]
    fn the_page_asks_for_nothing_else() {
        let mut page = Vec::new();
        write(&[&Trace { header: TraceHeader { cpus: 1, ..Default::default() }, events: vec![] }], &mut page)
            .unwrap();
        let page = String::from_utf8(page).unwrap();
        for word in ["http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!page.contains(word), "the page contains {word}");
        }
    }
}
