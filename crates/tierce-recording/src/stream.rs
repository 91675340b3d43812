//! A recording as Tierce's own event stream, so that everything which reads that (timeline, statistics, Perfetto) shows it.
//!
//! All CPUs run one shared node, `linux`, with every thread below it. From waking up to sleeping is a job.

use crate::sched::Sched;
use crate::threads::{Change, Threads};
use std::io::Write;
use tierce_trace::event::ID_MAX;
use tierce_trace::{EdgeInfo, Event, Kind, NodeInfo, Source, TaskInfo, TraceHeader, Writer, NO_DEADLINE};

/// Id of the node; threads follow it.
const LINUX: u32 = 1;
/// Why a thread wants a CPU, or no longer (`enum tierce_why`).
const WOKE: u32 = 0;
const BLOCKED: u32 = 3;
const OUTRANKED: u32 = 7;

/// What a trace of these threads says about itself. `name` is the name of the recording.
pub fn header(name: &str, clock: &str, cpus: u32, threads: &Threads) -> TraceHeader {
    let roots = (0..cpus).map(|cpu| EdgeInfo {
        id: cpu + 1,
        child: LINUX,
        parent_name: format!("cpu{cpu}"),
        child_name: "linux".into(),
        cpu: Some(cpu),
        ..EdgeInfo::default()
    });
    let names = names(threads);
    let edges = names.iter().zip(0..).map(|(name, index)| EdgeInfo {
        id: cpus + 1 + index,
        parent: LINUX,
        child: LINUX + 1 + index,
        parent_name: "linux".into(),
        child_name: name.clone(),
        ..EdgeInfo::default()
    });
    TraceHeader {
        source: Source::Run,
        plan: name.into(),
        cpus,
        start_ns: threads.from_ns,
        end_ns: Some(threads.to_ns),
        clock: if clock.is_empty() { "perf".into() } else { clock.into() },
        nodes: vec![NodeInfo {
            id: LINUX,
            name: "linux".into(),
            policy: "fair".into(),
            ..NodeInfo::default()
        }],
        edges: roots.chain(edges).collect(),
        tasks: names
            .into_iter()
            .zip(0..)
            .map(|(name, index)| TaskInfo { id: LINUX + 1 + index, name, ..TaskInfo::default() })
            .collect(),
        ..TraceHeader::default()
    }
}

/// A name for each thread: its own, with its number where several have it.
pub fn names(threads: &Threads) -> Vec<String> {
    let mut counts = std::collections::HashMap::new();
    threads.all.iter().for_each(|thread| *counts.entry(thread.comm).or_insert(0) += 1);
    let name = |thread: &crate::threads::Thread| match counts[&thread.comm] {
        1 if !thread.comm.text().is_empty() => thread.comm.text(),
        _ => format!("{}-{}", thread.comm.text(), thread.pid),
    };
    threads.all.iter().map(name).collect()
}

/// Write the records of a second pass over the recording: `threads` is what the first one found.
pub fn write<E: From<std::io::Error>>(
    out: impl Write,
    header: &TraceHeader,
    events: impl Iterator<Item = Result<Sched, E>>,
) -> Result<u64, E> {
    let mut writer = Writer::new(out, header)?;
    let mut stream = Stream::new(header.cpus);
    let mut threads = Threads::default();
    for event in events {
        let event = event?;
        let lost = threads.lost;
        let change = threads.take(&event);
        if threads.lost > lost {
            let cpu = event.cpu.min(header.cpus - 1) as u16;
            writer.write(&Event::new(threads.to_ns, Kind::Lost, cpu, 0, 0, threads.lost - lost))?;
        }
        for event in stream.events(threads.to_ns, event.cpu, change) {
            writer.write(&event)?;
        }
    }
    let records = writer.records();
    writer.finish()?.flush()?;
    Ok(records)
}

/// Id of a thread.
fn task(index: usize) -> u32 {
    LINUX + 1 + (index as u32).min(ID_MAX - LINUX - 1)
}

/// Makes events of changes.
struct Stream {
    cpus: u32,
    /// What each CPU runs; 0: nothing.
    running: Vec<u32>,
    /// Jobs of each thread, and whether the last one was told to be released.
    jobs: Vec<(u32, bool)>,
}

impl Stream {
    fn new(cpus: u32) -> Stream {
        Stream { cpus, running: vec![0; cpus as usize], jobs: Vec::new() }
    }

    fn job(&mut self, index: usize) -> &mut (u32, bool) {
        if self.jobs.len() <= index {
            self.jobs.resize(index + 1, (0, false));
        }
        &mut self.jobs[index]
    }

    /// A job of that thread begins.
    fn release(&mut self, now: u64, cpu: u16, index: usize) -> [Event; 2] {
        let job = self.job(index);
        *job = (job.0 + 1, true);
        let job = job.0;
        [
            Event::new(now, Kind::Request, cpu, task(index), WOKE, 0),
            Event::new(now, Kind::JobRelease, cpu, task(index), job, NO_DEADLINE),
        ]
    }

    fn events(&mut self, now: u64, cpu: u32, change: Change) -> Vec<Event> {
        let cpu_number = cpu.min(self.cpus - 1) as u16;
        let event = |kind, a, b, value| Event::new(now, kind, cpu_number, a, b, value);
        match change {
            Change::None => Vec::new(),
            Change::Woke(index) => self.release(now, cpu_number, index).into(),
            Change::Switch { from, slept, to, first } => {
                let mut all = Vec::new();
                if let (true, Some(index)) = (first, to) {
                    // Where only `sched_waking` was recorded, it was not told before.
                    if !self.job(index).1 {
                        all.extend(self.release(now, cpu_number, index));
                    }
                }
                let (before, after) = (self.running[cpu_number as usize], to.map_or(0, task));
                if let (Some(index), Some(response)) = (from, slept) {
                    if let Some(response_ns) = response {
                        let job = self.job(index);
                        job.1 = false;
                        all.push(event(Kind::JobComplete, task(index), job.0, response_ns));
                    }
                    all.push(event(Kind::Release, task(index), BLOCKED, 0));
                }
                let root = u32::from(cpu_number) + 1;
                let cpus = self.cpus;
                let edge = |task: u32| cpus + task - LINUX;
                if before != 0 {
                    let why = if slept.is_some() { BLOCKED } else { OUTRANKED };
                    all.push(event(Kind::Revoke, edge(before), why, 0));
                }
                match (before, after) {
                    (0, 1..) => all.push(event(Kind::Grant, root, LINUX, 0)),
                    (1.., 0) => all.push(event(Kind::Revoke, root, BLOCKED, 0)),
                    _ => {}
                }
                if after != 0 {
                    all.push(event(Kind::Grant, edge(after), after, 0));
                }
                let through = if after == 0 { 0 } else { edge(after) };
                all.push(event(Kind::Decision, after, through, before.into()));
                if let (true, Some(index)) = (first, to) {
                    let job = self.job(index).0;
                    all.push(event(Kind::JobStart, after, job, 0));
                }
                self.running[cpu_number as usize] = after;
                all
            }
        }
    }
}
