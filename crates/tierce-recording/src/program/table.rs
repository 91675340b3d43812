//! What threads did, for people and as JSON.

use crate::{names, Recording, Thread, Threads};
use serde_json::{json, Value};
use std::fmt::Write;
use tierce_trace::{units, Histogram};

/// Version of the JSON.
pub const VERSION: u32 = 1;

/// The threads with the most CPU time.
pub fn text(recording: &Recording, threads: &Threads, most: usize) -> String {
    let length_ns = threads.to_ns - threads.from_ns;
    let mut text = format!(
        "{}, {} CPUs, {} long, {} records, {} threads\n",
        recording.tool,
        recording.cpus,
        units::time(length_ns),
        threads.records,
        threads.all.len()
    );
    text += &remarks(threads);
    let mut order: Vec<(String, &Thread)> = names(threads).into_iter().zip(&threads.all).collect();
    order.sort_by_key(|(_, thread)| std::cmp::Reverse(thread.watched.ran_ns));
    let shown = if most == 0 { order.len() } else { most.min(order.len()) };
    let mut rows = vec![[
        "thread",
        "pid",
        "CPU time",
        "of a CPU",
        "wake-ups",
        "latency: mean",
        "99 %",
        "max",
        "switches",
        "migrations",
    ]
    .map(String::from)];
    for (name, thread) in &order[..shown] {
        let latency = &thread.latency_ns;
        let time = |ns: Option<u64>| ns.map_or("-".into(), units::time);
        rows.push([
            name.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
            thread.pid.to_string(),
            units::time(thread.watched.ran_ns),
            share(thread.watched.ran_ns, length_ns),
            latency.summary().count.to_string(),
            time(latency.summary().avg()),
            time(latency.percentile(99)),
            time((latency.summary().count > 0).then_some(latency.summary().max)),
            thread.switches.to_string(),
            thread.migrations.to_string(),
        ]);
    }
    text += "\n";
    text += &aligned(&rows);
    if shown < order.len() {
        let _ = writeln!(text, "\n{} threads more: --most 0", order.len() - shown);
    }
    text
}

/// What makes the numbers less than they seem.
pub fn remarks(threads: &Threads) -> String {
    let mut text = String::new();
    if threads.lost > 0 {
        let _ = writeln!(text, "{} records were lost: times around them are missing", threads.lost);
    }
    if threads.gaps > 0 {
        let _ = writeln!(text, "{} times a thread ran that no record had switched to", threads.gaps);
    }
    text
}

/// In percent, with one decimal.
pub fn share(part: u64, of: u64) -> String {
    let per_mille = u128::from(part) * 1000 / u128::from(of.max(1));
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// Columns: the first to the left, all others to the right.
pub fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let _ = write!(text, "{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

fn times(histogram: &Histogram) -> Value {
    let summary = histogram.summary();
    match summary.count {
        0 => Value::Null,
        count => {
            json!({ "count": count, "mean": summary.avg(), "p99": histogram.percentile(99), "max": summary.max })
        }
    }
}

/// All of it.
pub fn json(recording: &Recording, threads: &Threads) -> Value {
    let all = threads.all.iter().map(|thread| {
        json!({
            "name": thread.comm.text(), "pid": thread.pid, "prio": thread.prio, "cpu_ns": thread.watched.ran_ns,
            "latency_ns": times(&thread.latency_ns), "response_ns": times(&thread.response_ns),
            "switches": thread.switches, "migrations": thread.migrations,
        })
    });
    json!({
        "version": VERSION, "tool": recording.tool, "cpus": recording.cpus, "clock": recording.clock,
        "from_ns": threads.from_ns, "length_ns": threads.to_ns - threads.from_ns, "records": threads.records,
        "lost": threads.lost, "gaps": threads.gaps, "threads": all.collect::<Vec<_>>(),
    })
}
