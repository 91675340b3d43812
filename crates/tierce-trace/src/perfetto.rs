//! Traces for [ui.perfetto.dev](https://ui.perfetto.dev): the protobuf `Trace` of Perfetto, as far as it is needed.
//!
//! Tracks: one per CPU (slices: the task it runs), one per node (slices: it is served, and by which edge; a counter per
//! budget kept for it), one per task (jobs as slices from release to completion, stretches it ran as slices of a child
//! track, deadlines and misses as instants, a counter per budget). The messages below are the subset of the public
//! schema that says this; numbers are those of `perfetto_trace.proto`.

use crate::event::{Kind, NO_DEADLINE};
use crate::file::Trace;
use crate::header::TraceHeader;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};

/// The few messages of Perfetto's schema that are written.
pub mod proto {
    #![allow(missing_docs)]

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub packet: Vec<TracePacket>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        pub trusted_packet_sequence_id: Option<u32>,
        #[prost(message, optional, tag = "11")]
        pub track_event: Option<TrackEvent>,
        #[prost(uint32, optional, tag = "13")]
        pub sequence_flags: Option<u32>,
        #[prost(message, optional, tag = "60")]
        pub track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TrackDescriptor {
        #[prost(uint64, optional, tag = "1")]
        pub uuid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
        #[prost(uint64, optional, tag = "5")]
        pub parent_uuid: Option<u64>,
        #[prost(message, optional, tag = "8")]
        pub counter: Option<CounterDescriptor>,
        /// 3: by `sibling_order_rank` of the children.
        #[prost(int32, optional, tag = "11")]
        pub child_ordering: Option<i32>,
        #[prost(int32, optional, tag = "12")]
        pub sibling_order_rank: Option<i32>,
        /// 2: siblings of one name stay apart.
        #[prost(int32, optional, tag = "15")]
        pub sibling_merge_behavior: Option<i32>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct CounterDescriptor {
        /// 1: nanoseconds.
        #[prost(int32, optional, tag = "3")]
        pub unit: Option<i32>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TrackEvent {
        #[prost(message, repeated, tag = "4")]
        pub debug_annotations: Vec<DebugAnnotation>,
        /// 1: slice begins, 2: slice ends, 3: instant, 4: counter.
        #[prost(int32, optional, tag = "9")]
        pub r#type: Option<i32>,
        #[prost(uint64, optional, tag = "11")]
        pub track_uuid: Option<u64>,
        #[prost(string, optional, tag = "23")]
        pub name: Option<String>,
        #[prost(int64, optional, tag = "30")]
        pub counter_value: Option<i64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct DebugAnnotation {
        #[prost(int64, optional, tag = "4")]
        pub int_value: Option<i64>,
        #[prost(string, optional, tag = "6")]
        pub string_value: Option<String>,
        #[prost(string, optional, tag = "10")]
        pub name: Option<String>,
    }
}

use proto::{CounterDescriptor, DebugAnnotation, TrackDescriptor, TrackEvent};

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
const UNIT_TIME_NS: i32 = 1;
const CHILDREN_BY_RANK: i32 = 3;
const NEVER_MERGED: i32 = 2;
/// All packets are of one sequence; its first one says that nothing precedes it.
const SEQUENCE: u32 = 1;
const INCREMENTAL_STATE_CLEARED: u32 = 1;

// Track ids: one range per kind of track, the id inside it below.
const GROUP: u64 = 1 << 40;
const CPU: u64 = 2 << 40;
const THING: u64 = 3 << 40; // nodes and tasks
const RUNNING: u64 = 4 << 40; // of a task
const BUDGET: u64 = 5 << 40; // of an edge
const SERVED: u64 = 6 << 40; // of an edge above a node
const JOBS: u64 = 7 << 40; // of a task: jobs beyond the first that is open, by how many are open

/// Write a trace for Perfetto.
pub fn write(trace: &Trace, out: impl Write) -> io::Result<()> {
    let mut writer = Writer::new(&trace.header, out);
    writer.describe(&trace.header)?;
    for event in &trace.events {
        writer.event(event)?;
    }
    writer.finish(trace.end_ns())
}

#[derive(Default)]
struct Edge {
    parent_name: String,
    has_track: bool,
    served: bool,
}

struct Writer<'a, W: Write> {
    out: W,
    header: &'a TraceHeader,
    names: HashMap<u32, String>,
    edges: HashMap<u32, Edge>,
    nodes: Vec<u32>,
    /// What each CPU runs.
    running: Vec<u32>,
    /// Open jobs of a task: number and the lane it is drawn in.
    jobs: HashMap<u32, Vec<(u32, u64)>>,
    described: std::collections::HashSet<u64>,
    buffer: Vec<u8>,
    first: bool,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(header: &'a TraceHeader, out: W) -> Self {
        let nodes = header.nodes.iter().map(|node| (node.id, node.name.clone()));
        let tasks = header.tasks.iter().map(|task| (task.id, task.name.clone()));
        Writer {
            out,
            header,
            names: nodes.chain(tasks).collect(),
            edges: HashMap::new(),
            nodes: header.nodes.iter().map(|node| node.id).collect(),
            running: vec![0; header.cpus as usize],
            jobs: HashMap::new(),
            described: Default::default(),
            buffer: Vec::new(),
            first: true,
        }
    }

    // ---- packets ---------------------------------------------------------------------------------------------------

    fn packet(&mut self, packet: proto::TracePacket) -> io::Result<()> {
        let flags = std::mem::take(&mut self.first).then_some(INCREMENTAL_STATE_CLEARED);
        let packet = proto::TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: flags,
            ..packet
        };
        self.buffer.clear();
        // A packet at a time: the bytes of `Trace { packet: [...] }` are those of its parts.
        proto::Trace { packet: vec![packet] }.encode(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn track(
        &mut self,
        uuid: u64,
        parent: Option<u64>,
        name: &str,
        rank: i32,
        counter: bool,
    ) -> io::Result<()> {
        if !self.described.insert(uuid) {
            return Ok(());
        }
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.into()),
            parent_uuid: parent,
            counter: counter.then_some(CounterDescriptor { unit: Some(UNIT_TIME_NS) }),
            child_ordering: Some(CHILDREN_BY_RANK),
            sibling_order_rank: Some(rank),
            sibling_merge_behavior: Some(NEVER_MERGED),
        };
        self.packet(proto::TracePacket { track_descriptor: Some(descriptor), ..Default::default() })
    }

    fn tell(
        &mut self,
        now_ns: u64,
        track: u64,
        r#type: i32,
        name: Option<&str>,
        notes: &[(&str, i64)],
    ) -> io::Result<()> {
        let note = |&(name, value): &(&str, i64)| DebugAnnotation {
            name: Some(name.into()),
            int_value: Some(value),
            string_value: None,
        };
        let event = TrackEvent {
            debug_annotations: notes.iter().map(note).collect(),
            r#type: Some(r#type),
            track_uuid: Some(track),
            name: name.map(str::to_string),
            counter_value: None,
        };
        self.packet(proto::TracePacket {
            timestamp: Some(now_ns),
            track_event: Some(event),
            ..Default::default()
        })
    }

    // ---- tracks ----------------------------------------------------------------------------------------------------

    fn describe(&mut self, header: &TraceHeader) -> io::Result<()> {
        let title =
            format!("{} ({})", if header.plan.is_empty() { "plan" } else { &header.plan }, header.source);
        self.track(GROUP, None, &title, 0, false)?;
        for (rank, group) in ["CPUs", "Nodes", "Tasks"].iter().enumerate() {
            self.track(GROUP + 1 + rank as u64, Some(GROUP), group, rank as i32, false)?;
        }
        for cpu in 0..header.cpus {
            self.track(CPU + u64::from(cpu), Some(GROUP + 1), &format!("CPU {cpu}"), cpu as i32, false)?;
        }
        let mut nodes: Vec<_> = header.nodes.iter().collect();
        nodes.sort_by_key(|node| node.level);
        for (rank, node) in nodes.into_iter().enumerate() {
            let name = format!("{} ({})", node.name, node.policy);
            self.track(THING + u64::from(node.id), Some(GROUP + 2), &name, rank as i32, false)?;
        }
        for task in &header.tasks {
            self.task(task.id)?;
        }
        for edge in &header.edges {
            self.attach(edge.id, edge.parent_name.clone());
        }
        Ok(())
    }

    fn name(&self, id: u32) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| format!("#{id}"))
    }

    fn task(&mut self, id: u32) -> io::Result<()> {
        if self.nodes.contains(&id) {
            return Ok(());
        }
        let (thing, name) = (THING + u64::from(id), self.name(id));
        self.track(thing, Some(GROUP + 3), &name, id as i32, false)?;
        self.track(RUNNING + u64::from(id), Some(thing), "running", -1, false)
    }

    fn attach(&mut self, id: u32, parent_name: String) {
        self.edges.insert(id, Edge { parent_name, ..Default::default() });
    }

    fn budget(&mut self, now_ns: u64, id: u32, child: u32, value: i64) -> io::Result<()> {
        let parent_name = self.edges.get(&id).map_or("?".into(), |edge| edge.parent_name.clone());
        self.task(child)?;
        let track = BUDGET + u64::from(id);
        let parent = Some(THING + u64::from(child));
        self.track(track, parent, &format!("budget under {parent_name}"), 100, true)?;
        let event = TrackEvent {
            r#type: Some(COUNTER),
            track_uuid: Some(track),
            counter_value: Some(value),
            ..Default::default()
        };
        self.packet(proto::TracePacket {
            timestamp: Some(now_ns),
            track_event: Some(event),
            ..Default::default()
        })
    }

    // ---- records ---------------------------------------------------------------------------------------------------

    fn event(&mut self, event: &crate::Event) -> io::Result<()> {
        let Some(kind) = event.kind() else { return Ok(()) };
        if event.fault(self.header.cpus).is_some() {
            return Ok(());
        }
        let (now, a, b, value) = (event.now_ns, event.a, event.b, event.value);
        match kind {
            Kind::Decision => self.decision(now, event.cpu, a, b),
            Kind::Grant => self.grant(now, a, b, event.cpu),
            Kind::Revoke | Kind::Detach => self.revoke(now, a),
            Kind::Replenish | Kind::Budget => self.budget(now, a, b, value as i64),
            Kind::Throttle => {
                self.budget(now, a, b, 0)?;
                self.tell(now, THING + u64::from(b), INSTANT, Some("throttled"), &[("until_ns", note(value))])
            }
            Kind::JobRelease => self.job_release(now, a, b, value),
            Kind::JobComplete => self.job_complete(now, a, b),
            Kind::Miss => {
                let at = value.clamp(self.header.start_ns.min(now), now); // told at or after the deadline
                self.tell_task(at, a, "missed", &[("job", b.into())])
            }
            Kind::Stolen => {
                let cpu = CPU + u64::from(event.cpu);
                self.tell(now, cpu, INSTANT, Some("stolen"), &[("stolen_ns", note(value))])
            }
            Kind::Lost => self.tell(now, GROUP, INSTANT, Some("records lost"), &[("records", note(value))]),
            Kind::Forgive => self.tell_task(now, b, "forgiven", &[("ns", note(value))]),
            Kind::Control => {
                let notes = [("operation", a.into()), ("on", b.into()), ("error", value as i64)];
                self.tell(now, GROUP, INSTANT, Some("control"), &notes)
            }
            Kind::Name => {
                self.names.insert(a, event.text());
                // The track keeps its first name (descriptors are not amended); the moment is marked.
                self.tell_task(now, a, &format!("now {}", event.text()), &[])
            }
            Kind::Attach => self.attached(event),
            Kind::Migrate => {
                let why = event.migration().map_or("", |(why, _)| why.name());
                let notes = [("from_cpu", i64::from(b)), ("to_cpu", i64::from(event.cpu))];
                self.tell_task(now, a, &format!("migrates to CPU {}: {why}", event.cpu), &notes)
            }
            Kind::LockWait | Kind::LockEnd => self.lock(event),
            Kind::Mark => self.tell_task(now, a, &format!("{} {value}", event.label()), &[]),
            Kind::Mode => {
                let name = if b == 1 { "critical mode" } else { "usual mode" };
                self.tell(now, GROUP, INSTANT, Some(name), &[("node", a.into())])
            }
            Kind::Request
            | Kind::Release
            | Kind::JobStart
            | Kind::Outside
            | Kind::Change
            | Kind::Resize
            | Kind::Tell
            | Kind::Unkept
            | Kind::Met => Ok(()),
        }
    }

    fn attached(&mut self, event: &crate::Event) -> io::Result<()> {
        let parent = event.value as u32;
        let name = if parent == 0 { format!("cpu{}", event.cpu) } else { self.name(parent) };
        self.revoke(event.now_ns, event.a)?;
        self.attach(event.a, name);
        Ok(())
    }

    fn lock(&mut self, event: &crate::Event) -> io::Result<()> {
        let (what, note) = match (event.kind(), event.b) {
            (Some(Kind::LockWait), 0) => {
                ("waits for a lock of a thread outside the plan".into(), event.value)
            }
            (Some(Kind::LockWait), holder) => {
                (format!("waits for a lock of {}", self.name(holder)), event.value)
            }
            (_, without) => ("waits no longer for a lock".to_string(), without.into()),
        };
        let key = if event.kind() == Some(Kind::LockWait) { "lock" } else { "without_it" };
        self.tell_task(event.now_ns, event.a, &what, &[(key, note as i64)])
    }

    fn tell_task(&mut self, now_ns: u64, task: u32, what: &str, notes: &[(&str, i64)]) -> io::Result<()> {
        self.task(task)?;
        self.tell(now_ns, THING + u64::from(task), INSTANT, Some(what), notes)
    }

    fn job_release(&mut self, now_ns: u64, task: u32, job: u32, deadline_ns: u64) -> io::Result<()> {
        self.task(task)?;
        let open = self.jobs.entry(task).or_default();
        // Jobs may overlap, slices of one track may not: each open job has a lane of its own.
        let lane = (0..).find(|lane| open.iter().all(|(_, used)| used != lane)).unwrap_or(0);
        open.push((job, lane));
        let track = self.job_track(task, lane)?;
        let deadline = (deadline_ns != NO_DEADLINE).then_some(("deadline_ns", deadline_ns as i64));
        let notes: Vec<_> = [("job", i64::from(job))].into_iter().chain(deadline).collect();
        self.tell(now_ns, track, SLICE_BEGIN, Some(&format!("job {job}")), &notes)
    }

    fn job_complete(&mut self, now_ns: u64, task: u32, job: u32) -> io::Result<()> {
        let open = self.jobs.entry(task).or_default();
        let Some(at) = open.iter().position(|&(other, _)| other == job) else { return Ok(()) };
        let (_, lane) = open.remove(at);
        let track = self.job_track(task, lane)?;
        self.tell(now_ns, track, SLICE_END, None, &[])
    }

    fn job_track(&mut self, task: u32, lane: u64) -> io::Result<u64> {
        let thing = THING + u64::from(task);
        if lane == 0 {
            return Ok(thing);
        }
        let lane = lane.min(1 << 16);
        let track = JOBS + (lane << 23) + u64::from(task);
        self.track(track, Some(thing), "waiting jobs", lane as i32, false)?;
        Ok(track)
    }

    fn decision(&mut self, now_ns: u64, cpu: u16, task: u32, edge: u32) -> io::Result<()> {
        let track = CPU + u64::from(cpu);
        let before = std::mem::replace(&mut self.running[usize::from(cpu)], task);
        if before == task {
            return Ok(());
        }
        if before != 0 {
            self.tell(now_ns, track, SLICE_END, None, &[])?;
            self.tell(now_ns, RUNNING + u64::from(before), SLICE_END, None, &[])?;
        }
        if task != 0 {
            self.task(task)?;
            let name = self.name(task);
            let under = self.edges.get(&edge).map_or("?".into(), |edge| edge.parent_name.clone());
            self.tell(
                now_ns,
                track,
                SLICE_BEGIN,
                Some(&name),
                &[("task", task.into()), ("edge", edge.into())],
            )?;
            let title = format!("CPU {cpu} under {under}");
            self.tell(now_ns, RUNNING + u64::from(task), SLICE_BEGIN, Some(&title), &[("cpu", cpu.into())])?;
        }
        Ok(())
    }

    fn grant(&mut self, now_ns: u64, id: u32, child: u32, cpu: u16) -> io::Result<()> {
        if !self.nodes.contains(&child) {
            return Ok(());
        }
        if self.edges.get(&id).is_some_and(|edge| edge.served) {
            self.revoke(now_ns, id)?;
        }
        let unknown = || Edge { parent_name: "?".into(), ..Default::default() };
        let edge = self.edges.entry(id).or_insert_with(unknown);
        edge.served = true;
        let (described, parent_name) =
            (std::mem::replace(&mut edge.has_track, true), edge.parent_name.clone());
        let track = SERVED + u64::from(id);
        if !described {
            let parent = Some(THING + u64::from(child));
            self.track(track, parent, &format!("served by {parent_name}"), id as i32, false)?;
        }
        self.tell(now_ns, track, SLICE_BEGIN, Some(&format!("CPU {cpu}")), &[("cpu", cpu.into())])
    }

    fn revoke(&mut self, now_ns: u64, id: u32) -> io::Result<()> {
        match self.edges.get_mut(&id) {
            Some(edge) if edge.served => edge.served = false,
            _ => return Ok(()),
        }
        self.tell(now_ns, SERVED + u64::from(id), SLICE_END, None, &[])
    }

    /// End what is still open, so that nothing reaches beyond the recording.
    fn finish(mut self, end_ns: u64) -> io::Result<()> {
        for cpu in 0..self.running.len() as u16 {
            self.decision(end_ns, cpu, 0, 0)?;
        }
        let mut served: Vec<u32> =
            self.edges.iter().filter(|(_, edge)| edge.served).map(|(&id, _)| id).collect();
        served.sort_unstable();
        served.into_iter().try_for_each(|id| self.revoke(end_ns, id))?;
        let mut open: Vec<_> = self
            .jobs
            .drain()
            .flat_map(|(task, jobs)| jobs.into_iter().map(move |(_, lane)| (task, lane)))
            .collect();
        open.sort_unstable();
        for (task, lane) in open {
            let track = self.job_track(task, lane)?;
            self.tell(end_ns, track, SLICE_END, None, &[])?;
        }
        self.out.flush()
    }
}

/// A number as notes have it.
fn note(value: u64) -> i64 {
    value.min(i64::MAX as u64) as i64
}
