//! One instance of the graph engine.

use crate::cpus::Cpus;
use crate::raw::{self, Cpu, Edge, Entry, Node};
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ffi::{c_void, CStr};
use std::fmt;

/// "No such time": later than everything.
pub const NEVER: u64 = u64::MAX;

/// Alignment of the state: a cache line.
const LINE: usize = 64;

/// Why an edge is requested, released or revoked (`enum tierce_why`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Why {
    /// The child was blocked or had nothing; waking rules apply.
    Woke,
    /// It never stopped wanting; keys stay as they were.
    Restored,
    /// A control operation moved or changed it.
    Moved,
    /// The child can use no CPU now.
    Blocked,
    /// The budget is used up until it is replenished.
    Spent,
    /// The shared child runs elsewhere.
    NoRoom,
    /// Slot or round over, or the condition of the edge ended.
    Closed,
    /// Another edge was picked.
    Outranked,
    /// The edge is being removed.
    Gone,
}

/// What kind of way an edge is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// It stays, and is always open.
    #[default]
    Plain,
    /// Enabled only while every other edge of the child is spent (`when = "spent"`).
    WhenSpent,
    /// The child, a task, moves between the replicas of the spread node that it is below.
    Spread,
}

impl Way {
    /// Flags of `graph_edge_new`.
    pub fn flags(self) -> u32 {
        match self {
            Way::Plain => 0,
            Way::WhenSpent => raw::EDGE_WHEN_SPENT,
            Way::Spread => raw::EDGE_SPREAD,
        }
    }
}

impl From<bool> for Way {
    fn from(when_spent: bool) -> Way {
        if when_spent {
            Way::WhenSpent
        } else {
            Way::Plain
        }
    }
}

/// Why a task migrates to another replica of a spread node (`enum tierce_migration`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Migration {
    /// It wakes up, and is placed on another CPU.
    WakeUp,
    /// A CPU that was idle takes it.
    Pull,
    /// The CPU where it waited gives it away.
    Balance,
    /// The port found it on another CPU: its affinity was changed, or a CPU goes offline.
    Affinity,
}

impl Migration {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Migration; 4] =
        [Migration::WakeUp, Migration::Pull, Migration::Balance, Migration::Affinity];

    /// The reason with this number.
    pub fn from_number(number: u64) -> Option<Migration> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// What reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Migration::WakeUp => "wake-up",
            Migration::Pull => "pull",
            Migration::Balance => "balance",
            Migration::Affinity => "affinity",
        }
    }
}

/// What a task may tell its parents (`enum tierce_message`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Message {
    /// It asks for so much work until an absolute deadline.
    ConstraintBegin = 1,
    /// It needs no more of that.
    ConstraintEnd,
}

/// A refused control operation, by name. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(pub u32);

impl Error {
    /// `no_such_node`, `budget_beyond_deadline`, …
    pub fn name(self) -> &'static str {
        self.text_of(1)
    }
    fn text_of(self, want_name: u32) -> &'static str {
        // SAFETY: returns a string literal or null.
        let p = unsafe { raw::tierce_error_text(self.0, want_name) };
        if p.is_null() {
            return "unknown_error";
        }
        // SAFETY: not null, so a literal of the C side.
        unsafe { CStr::from_ptr(p) }.to_str().unwrap_or("unknown_error")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.text_of(0))
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl std::error::Error for Error {}

/// A broken invariant found by the checker, by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Broken(pub u32);

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (want, end) in [(1, ": "), (0, "")] {
            // SAFETY: returns a string literal or null.
            let p = unsafe { raw::tierce_invariant_text(self.0, want) };
            if !p.is_null() {
                // SAFETY: not null, so a literal of the C side.
                write!(f, "{}{end}", unsafe { CStr::from_ptr(p) }.to_string_lossy())?;
            }
        }
        Ok(())
    }
}

/// `taken` of enum tierce_op: an input of the entry that follows it.
const OP_TAKEN: u32 = 20;
const OP_SEEN: u32 = 23;
const OP_MET: u32 = 27;
const OP_BALANCE: u32 = 28;

/// A replayed operation that did not do what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the other build did.
    pub recorded: Entry,
    /// What this one did; `None`: it refused the operation's ids.
    pub replayed: Option<Entry>,
}

/// One record of the event stream as the engine emits it (see policy/events.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Event {
    pub now_ns: u64,
    pub kind: u16,
    pub cpu: u16,
    pub a: u32,
    pub b: u32,
    pub value: u64,
}

/// A scheduler hierarchy at work: the engine and all policies, with the state of one machine.
///
/// Entries ([`request`](Self::request), [`release`](Self::release), [`decide`](Self::decide), …) take the time as an
/// argument. Unless [`quiet`](Self::set_quiet), each compares and kicks the CPUs whose decision would change; the kicked
/// CPUs are collected by [`take_kicks`](Self::take_kicks) and are to be decided soon.
pub struct Graph {
    state: *mut u8,
    /// Of the allocation that holds the state, a cache line larger than it.
    base: *mut u8,
    layout: Layout,
    /// What only machines with more than 64 CPUs have, behind the rest.
    far: *mut u8,
    cpus: u32,
    node_at: usize,
    edge_at: usize,
    cpu_at: usize,
    quiet_at: usize,
    floor_at: usize,
    set_at: usize,
    /// Where in the sets of CPUs those begin that reach nodes.
    reach_at: usize,
    kicks: [u64; raw::CPUS / 64],
    kicked: bool,
    /// Of `kicks` that the machine has CPUs for.
    words: usize,
    events: Vec<Event>,
    traced: u64,
    entries: Option<Vec<Entry>>,
    drain: Option<u64>,
}

// SAFETY: the state is owned and every call installs it in the calling thread first.
unsafe impl Send for Graph {}

extern "C" fn collect(sink: *mut c_void, kind: u32, cpu: u32, a: u32, b: u32, value: u64, now: u64) {
    // SAFETY: `sink` is the graph's own vector, installed for the time of one call.
    let events = unsafe { &mut *(sink as *mut Vec<Event>) };
    events.push(Event { now_ns: now, kind: kind as u16, cpu: cpu as u16, a, b, value });
}

extern "C" fn record(sink: *mut c_void, entry: *const Entry) {
    // SAFETY: `sink` is the graph's own vector, installed for the time of one call; `entry` lives in the caller.
    unsafe { (*(sink as *mut Vec<Entry>)).push(*entry) };
}

/// Not in huge pages, each of which would be cleared whole for the few nodes and edges that most graphs have.
fn small_pages(base: *mut u8, size: usize) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 1 << 16; // of any machine, or a multiple of it
        let skipped = base.align_offset(PAGE);
        if let Some(rest) = size.checked_sub(skipped) {
            // SAFETY: within the allocation; only advice, so that it may fail.
            unsafe { libc::madvise(base.add(skipped).cast(), rest, libc::MADV_NOHUGEPAGE) };
        }
    }
}

impl Graph {
    /// An empty graph of `cpus` CPUs whose time begins at `now`. Fails for 0 or more than 512 CPUs.
    pub fn new(cpus: u32, now: u64) -> Result<Graph, Error> {
        // SAFETY: a pure function of its argument.
        let of = |what| unsafe { raw::tierce_layout(what) } as usize;
        assert_eq!(
            (of(1), of(2), of(3)),
            (size_of::<Node>(), size_of::<Edge>(), size_of::<Cpu>()),
            "tierce-policy: the mirrored structs differ from policy/tierce.h"
        );
        assert_eq!(of(8), std::mem::offset_of!(Edge, supply_ns));
        assert_eq!(of(9), std::mem::offset_of!(Edge, policy));
        assert_eq!(of(10), std::mem::offset_of!(Node, ran_ns));
        assert_eq!(of(19), std::mem::offset_of!(Node, more));
        assert_eq!(of(11), std::mem::offset_of!(Cpu, until_ns));
        assert_eq!(of(12), std::mem::offset_of!(Cpu, decisions));
        // Asked for without alignment, memory comes zeroed from the kernel and is touched only where it is used.
        let near = of(0).next_multiple_of(LINE);
        let layout = Layout::from_size_align(near + of(21) + LINE, 1).expect("size of the state");
        // SAFETY: the size is not zero. Zeroed memory is what graph_init expects.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }
        small_pages(base, layout.size());
        // SAFETY: a line more than the state was allocated.
        let state = unsafe { base.add(base.align_offset(LINE)) };
        let mut graph = Graph {
            state,
            base,
            layout,
            // SAFETY: behind the state, in the same allocation.
            far: unsafe { state.add(near) },
            cpus,
            node_at: of(4),
            edge_at: of(5),
            cpu_at: of(6),
            quiet_at: of(17),
            floor_at: of(18),
            set_at: of(22),
            reach_at: of(13),
            kicks: Default::default(),
            kicked: false,
            words: cpus.div_ceil(64) as usize,
            events: Vec::new(),
            traced: 0,
            entries: None,
            drain: None,
        };
        // SAFETY: see `call`.
        graph.control(|| unsafe { raw::graph_init(cpus, now) })?;
        Ok(graph)
    }

    /// Install the state, call, take what the hooks left.
    #[inline]
    fn call<R>(&mut self, entry: impl FnOnce() -> R) -> R {
        // SAFETY: the hooks are this thread's own; the state outlives the call.
        unsafe {
            let hooks = &mut *raw::tierce_hooks();
            hooks.state = self.state;
            hooks.far = self.far;
            hooks.failed = std::ptr::null();
            hooks.traced = self.traced;
            if self.traced != 0 {
                hooks.trace = Some(collect);
                hooks.sink = &raw mut self.events as *mut c_void;
            }
            hooks.record = None;
            if let Some(entries) = &mut self.entries {
                hooks.record = Some(record);
                hooks.record_sink = &raw mut *entries as *mut c_void;
            }
            hooks.replaying = self.drain.is_some() as u64;
            hooks.drain = self.drain.unwrap_or(0);
            let result = entry();
            if hooks.kicked != 0 {
                self.take_kicks_of(hooks);
            }
            if !hooks.failed.is_null() {
                panic!("{}", CStr::from_ptr(hooks.failed).to_string_lossy());
            }
            result
        }
    }

    #[inline]
    fn take_kicks_of(&mut self, hooks: &mut raw::Native) {
        hooks.kicked = 0;
        self.kicked = true;
        for (own, kicked) in self.kicks.iter_mut().zip(&mut hooks.kicks).take(self.words) {
            *own |= std::mem::take(kicked);
        }
    }

    fn control(&mut self, entry: impl FnOnce() -> i32) -> Result<(), Error> {
        match self.call(entry) {
            0 => Ok(()),
            error => Err(Error(error as u32)),
        }
    }

    /// The CPUs from 64 on, for the next operation; what that is given itself of the set.
    fn stage_cpus(&mut self, cpus: Cpus) -> u64 {
        let words = self.cpus.div_ceil(64) as usize;
        for (word, bits) in cpus.words().iter().enumerate().take(words).skip(1) {
            // SAFETY: see `call`; the engine checks the index.
            self.call(|| unsafe { raw::graph_stage((raw::NODE_PARAMS + word) as u32, *bits) });
        }
        cpus.first_word()
    }

    /// Parameters for the next operation, the rest 0.
    fn stage(&mut self, params: &[u64]) {
        // SAFETY: see `call`; the indices are in range.
        self.call(|| unsafe {
            for i in 0..raw::NODE_PARAMS {
                raw::graph_stage(i as u32, params.get(i).copied().unwrap_or(0));
            }
        })
    }

    /// CPUs of the machine.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Leave comparisons out: every touched CPU is kicked, and the caller decides it at the same time.
    pub fn set_quiet(&mut self, quiet: bool) {
        // SAFETY: the offset is that of a u32 inside the state.
        unsafe { *(self.state.add(self.quiet_at) as *mut u32) = quiet as u32 }
    }

    /// Shortest timer worth arming: a budget with less left (ns) is spent and the rest carried over.
    pub fn set_floor_ns(&mut self, floor_ns: u64) {
        // SAFETY: the offset is that of a u64 inside the state.
        unsafe { *(self.state.add(self.floor_at) as *mut u64) = floor_ns }
    }

    /// Collect events of all kinds from now on, or of none.
    pub fn trace(&mut self, on: bool) {
        self.trace_kinds(if on { u64::MAX } else { 0 });
    }

    /// Collect events of these kinds from now on, a bit each.
    pub fn trace_kinds(&mut self, kinds: u64) {
        self.traced = kinds;
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The events collected so far. The caller may add its own among them, and clears what it has read.
    #[inline]
    pub fn events_mut(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    /// Record entries and control operations from now on. A whole recording begins with the graph: see [`Self::recorded`].
    pub fn record(&mut self, on: bool) {
        self.entries = on.then(Vec::new);
    }

    /// The entries recorded since the last call.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        self.entries.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// An empty graph that records from the first operation on.
    pub fn recorded(cpus: u32, now: u64) -> Result<Graph, Error> {
        let mut graph = Graph::new(cpus, now)?;
        graph.record(true);
        // SAFETY: see `call`; initialising an untouched state again changes nothing.
        graph.control(|| unsafe { raw::graph_init(cpus, now) })?;
        Ok(graph)
    }

    /// Run one recorded operation again. The state afterwards is that of the recorded machine if every operation before
    /// was replayed; the difference is reported with what this build got.
    pub fn replay(&mut self, entry: &Entry) -> Result<(), Difference> {
        let Entry { now_ns: now, value, a, b, .. } = *entry;
        if (entry.op == OP_TAKEN || entry.op == OP_SEEN) && a < self.cpus {
            let cpu = self.cpu_mut(a);
            cpu.taken_ns = value + if entry.op == OP_TAKEN { cpu.told_ns } else { cpu.paid_ns };
            return Ok(());
        }
        if entry.op == OP_BALANCE && a < self.cpus {
            self.cpu_mut(a).balance_ns = value;
            return Ok(());
        }
        if entry.op == OP_MET {
            // SAFETY: see `call`; the engine checks the number.
            self.call(|| unsafe { raw::tierce_met(a, value) });
            return Ok(());
        }
        let own = self.entries.take();
        self.record(true);
        self.drain = Some(entry.drained);
        // SAFETY: see `call`; every function checks the ids it is given.
        self.call(|| unsafe {
            match entry.op {
                1 => _ = raw::graph_init(a, now),
                2 => _ = raw::graph_request(a, b, now),
                3 => _ = raw::graph_release(a, b, now),
                4 => _ = raw::graph_announce(a, value, now),
                5 => _ = raw::graph_decide(a, 0, now, value),
                6 => _ = raw::graph_event(a, now, value),
                7 => _ = raw::graph_returned(a, now),
                8 => _ = raw::graph_outside(a, b, now),
                9 => _ = raw::graph_stage(a, value),
                10 => _ = raw::graph_node_new(a, b, value),
                11 => _ = raw::graph_node_set(a, now),
                12 => _ = raw::graph_node_free(a),
                13 => _ = raw::graph_edge_new(a, b, value as i32, (value >> 32) as u32),
                14 => _ = raw::graph_attach(a, now),
                15 => _ = raw::graph_set(a, now),
                16 => _ = raw::graph_detach(a, now),
                17 => _ = raw::graph_root(a, b, now),
                18 => _ = raw::graph_allow(a, value, now),
                19 => _ = raw::graph_online(a, b, now),
                21 => _ = raw::graph_yield(a, now),
                22 => _ = raw::graph_tell(a, b, now),
                24 => _ = raw::graph_replica(a, b),
                25 => _ = raw::graph_leave(a, b, now),
                26 => _ = raw::graph_enter(a, b, value as u32, now),
                _ => {}
            }
        });
        self.drain = None;
        let mut got = self.take_entries();
        got.retain(|entry| ![OP_TAKEN, OP_SEEN, OP_MET].contains(&entry.op));
        self.entries = own;
        match got.as_slice() {
            [one] if one == entry => Ok(()),
            got => Err(Difference { recorded: *entry, replayed: got.last().copied() }),
        }
    }

    /// So much was stolen from `cpu` since its last entry, or is before the next: what a port finds out between entries.
    pub fn taken(&mut self, cpu: u32, stolen_ns: u64) {
        if cpu < self.cpus {
            self.cpu_mut(cpu).taken_ns += stolen_ns;
        }
    }

    fn cpu_mut(&mut self, cpu: u32) -> &mut Cpu {
        // SAFETY: as in `cpu`, and nobody else looks.
        unsafe { &mut *(self.state.add(self.cpu_at) as *mut Cpu).add(cpu as usize) }
    }

    /// The state of a CPU in words: what it runs and through which edges. Empty when there is no such CPU.
    pub fn describe(&self, cpu: u32) -> String {
        let mut text = String::new();
        if cpu >= self.cpus {
            return text;
        }
        let c = self.cpu(cpu);
        text += &format!(
            "cpu {cpu}: runs task {}, charged up to {} ns, due at {} ns, {} decisions\n",
            c.task, c.charged_ns, c.until_ns, c.decisions
        );
        for &id in &c.path[..c.path_length as usize] {
            let edge = self.edge(id);
            text += &format!(
                "  edge {id}: node {} -> {}, flags {:#x}, supply {} ns, parameters {:?}, state {:?}\n",
                edge.parent, edge.child, edge.flags, edge.supply_ns, edge.param, edge.policy
            );
        }
        text
    }

    /// CPUs kicked since the last call, if there are any: 64 to a word, a bit each. The caller clears what it has seen.
    #[inline]
    pub fn kicked_words(&mut self) -> Option<&mut [u64]> {
        std::mem::take(&mut self.kicked).then(|| &mut self.kicks[..self.words])
    }

    /// CPUs that lead to a node.
    pub fn reach(&self, node: u32) -> Cpus {
        self.set_of(self.node(node).cpus, self.reach_at + node as usize)
    }

    /// CPUs that a task may run on.
    pub fn allowed(&self, task: u32) -> Cpus {
        self.set_of(self.node(task).allowed, task as usize)
    }

    /// A set of CPUs: its bits, or on a machine with more than 64 its number.
    fn set_of(&self, bits: u64, number: usize) -> Cpus {
        if self.cpus <= 64 {
            return bits.into();
        }
        // SAFETY: inside the array, as long as the node is.
        let words = unsafe { *(self.far.add(self.set_at) as *const [u64; raw::CPUS / 64]).add(number) };
        Cpus::from_words(words)
    }

    /// CPUs kicked since the last call.
    pub fn take_kicks(&mut self) -> Cpus {
        self.kicked = false;
        Cpus::from_words(std::mem::take(&mut self.kicks))
    }

    /// A new node (`kind`: a policy's number) or task ([`crate::TASK`]); `concurrency` 0: its CPUs, for a task 1.
    /// `allowed`: CPUs a task may run on. `None`: the pool is used up or a parameter is out of range.
    pub fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: impl AsRef<[u64]>,
    ) -> Option<u32> {
        self.stage(params.as_ref());
        let allowed = if kind == crate::TASK { self.stage_cpus(allowed) } else { allowed.first_word() };
        // SAFETY: see `call`.
        let id = self.call(|| unsafe { raw::graph_node_new(kind, concurrency, allowed) });
        (id != 0).then_some(id)
    }

    /// Make `node` what `cpu` runs. Roots first, then parents before children.
    pub fn root(&mut self, cpu: u32, node: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_root(cpu, node, now) })
    }

    /// A new edge, attached: its id.
    pub fn attach(
        &mut self,
        parent: u32,
        child: u32,
        params: [u64; 4],
        rank: i32,
        way: impl Into<Way>,
        now: u64,
    ) -> Result<u32, Error> {
        let edge = self.edge_new(parent, child, rank, way).ok_or_else(|| self.edge_refusal(parent, child))?;
        match self.edge_attach(edge, params, now) {
            Ok(()) => Ok(edge),
            Err(error) => {
                let _ = self.detach(edge, now);
                Err(error)
            }
        }
    }

    /// A new edge that is not attached yet: its id, which decides ties. `None`: no such node, or the pool is used up.
    pub fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: impl Into<Way>) -> Option<u32> {
        let flags = way.into().flags();
        // SAFETY: see `call`.
        let edge = self.call(|| unsafe { raw::graph_edge_new(parent, child, rank, flags) });
        (edge != 0).then_some(edge)
    }

    /// A node without children becomes a replica of the spread node whose first replica is `first`.
    pub fn replica(&mut self, node: u32, first: u32) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_replica(node, first) })
    }

    /// Why [`Self::edge_new`] made no edge, by name.
    fn edge_refusal(&self, parent: u32, child: u32) -> Error {
        let kind = |id: u32| if id <= crate::limits().nodes { self.node(id).kind } else { 0 };
        Error(match (kind(parent), kind(child)) {
            (0, _) | (_, 0) => 1,       // no_such_node
            (crate::TASK, _) => 14,     // task_cannot_be_parent
            _ if parent == child => 21, // cycle
            _ => 5,                     // out_of_edges
        })
    }

    /// Attach an edge of [`Self::edge_new`].
    pub fn edge_attach(&mut self, edge: u32, params: [u64; raw::PARAMS], now: u64) -> Result<(), Error> {
        self.stage(&params);
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_attach(edge, now) })
    }

    /// New parameters of an attached edge: all or nothing.
    pub fn set(&mut self, edge: u32, params: [u64; 4], now: u64) -> Result<(), Error> {
        self.stage(&params);
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_set(edge, now) })
    }

    /// Take the edge out and free it; `still_running` asks to try again after the next decision.
    pub fn detach(&mut self, edge: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_detach(edge, now) })
    }

    /// New parameters of a node.
    pub fn node_set(&mut self, node: u32, params: impl AsRef<[u64]>, now: u64) -> Result<(), Error> {
        self.stage(params.as_ref());
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_node_set(node, now) })
    }

    /// Free a node or task without parents and children.
    pub fn node_free(&mut self, node: u32) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_node_free(node) })
    }

    /// Change a task's affinity.
    pub fn allow(&mut self, task: u32, cpus: Cpus, now: u64) -> Result<(), Error> {
        let cpus = self.stage_cpus(cpus);
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_allow(task, cpus, now) })
    }

    /// A CPU comes or goes.
    pub fn online(&mut self, cpu: u32, online: bool, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_online(cpu, online as u32, now) })
    }

    /// The task became able to use a CPU.
    #[inline]
    pub fn request(&mut self, task: u32, now: u64) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_request(task, Why::Woke as u32, now) });
    }

    /// The task can no longer use a CPU.
    #[inline]
    pub fn release(&mut self, task: u32, now: u64) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_release(task, Why::Blocked as u32, now) });
    }

    /// The task's turn ends: others of its parent's that are its equals go first.
    #[inline]
    pub fn yields(&mut self, task: u32, now: u64) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_yield(task, now) });
    }

    /// The absolute deadline of the task's current job, [`NEVER`] for none.
    #[inline]
    pub fn announce(&mut self, task: u32, deadline_ns: u64, now: u64) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_announce(task, deadline_ns, now) });
    }

    /// The task asks its parents for `work_ns` of CPU time until an absolute deadline; refused by name.
    pub fn constrain(&mut self, task: u32, work_ns: u64, deadline_ns: u64, now: u64) -> Result<(), Error> {
        self.stage(&[work_ns, deadline_ns]);
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_tell(task, Message::ConstraintBegin as u32, now) })
    }

    /// It needs no more of that.
    pub fn unconstrain(&mut self, task: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_tell(task, Message::ConstraintEnd as u32, now) })
    }

    /// What `cpu` runs from `now` on: a task, or 0.
    #[inline]
    pub fn decide(&mut self, cpu: u32, now: u64, stolen_ns: u64) -> u32 {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_decide(cpu, 0, now, stolen_ns) })
    }

    /// Charge, handle due events, kick `cpu` if its decision would change.
    #[inline]
    pub fn event(&mut self, cpu: u32, now: u64, stolen_ns: u64) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_event(cpu, now, stolen_ns) });
    }

    /// What ran on `cpu` before its last decision is off the CPU. To be called before the next decision there.
    #[inline]
    pub fn returned(&mut self, cpu: u32, now: u64) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_returned(cpu, now) });
    }

    /// `cpu` begins or ends to run something outside the graph; that time is stolen.
    pub fn outside(&mut self, cpu: u32, begins: bool, now: u64) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_outside(cpu, begins as u32, now) });
    }

    /// Which CPUs share a core, a last-level cache and a NUMA node with `cpu`. Preset: no core, all the rest.
    pub fn near(&mut self, cpu: u32, core: Cpus, cache: Cpus, memory: Cpus) -> Result<(), Error> {
        for word in 0..self.cpus.div_ceil(64) {
            let [core, cache, memory] = [core, cache, memory].map(|set| set.words()[word as usize]);
            // SAFETY: see `call`.
            self.control(|| unsafe { raw::graph_near(cpu, word, core, cache, memory) })?;
        }
        Ok(())
    }

    /// Does this task move between the replicas of a spread node?
    pub fn is_spread(&self, task: u32) -> bool {
        self.edge(self.node(task).first_parent).flags & raw::EDGE_SPREAD != 0
    }

    /// A task below a spread node, which does not run, leaves its replica for that on `to`; until it has entered one
    /// nothing else may be asked of it.
    pub fn leave(&mut self, task: u32, to: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_leave(task, to, now) })
    }

    /// A task that has left its replica enters the one on `cpu`.
    pub fn enter(&mut self, task: u32, cpu: u32, why: Migration, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_enter(task, cpu, why as u32, now) })
    }

    /// [`Self::leave`] and [`Self::enter`]: a wake-up if the task sleeps.
    pub fn home(&mut self, task: u32, cpu: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_home(task, cpu, now) })
    }

    /// A task wakes: below a spread node it first moves to where it should wait.
    #[inline]
    pub fn wake(&mut self, task: u32, now: u64) {
        if !self.is_spread(task) {
            self.request(task, now);
            return;
        }
        let home = self.node(task).domain;
        // SAFETY: see `call`.
        let cpu = self.call(|| unsafe { raw::tierce_place(task) });
        if cpu != home {
            let moved = self.home(task, cpu, now);
            debug_assert!(moved.is_ok(), "{moved:?}");
        }
        self.request(task, now);
        self.offer(task);
    }

    /// A task waits on a busy CPU: an idle one that could take it is kicked.
    #[inline]
    pub fn offer(&mut self, task: u32) {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_offer(task) });
    }

    /// `cpu`, which has decided for nothing, takes a task that waits elsewhere: that task, or 0.
    #[inline]
    pub fn pull(&mut self, cpu: u32, now: u64) -> u32 {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_pull(cpu, now) })
    }

    /// If it is time, `cpu` gives a task that waits to a CPU where it is served earlier: that task, or 0.
    #[inline]
    pub fn balance(&mut self, cpu: u32, now: u64) -> u32 {
        // SAFETY: see `call`.
        self.call(|| unsafe { raw::graph_balance(cpu, now) })
    }

    /// Look at every invariant; `rest`: also those that hold only when no kick is pending and nobody is leaving.
    pub fn check(&mut self, rest: bool) -> Result<(), Broken> {
        // SAFETY: see `call`.
        match self.call(|| unsafe { raw::graph_check(rest as u32) }) {
            0 => Ok(()),
            broken => Err(Broken(broken)),
        }
    }

    /// When `cpu` has to be entered again at the latest (after [`decide`](Self::decide)).
    #[inline]
    pub fn until(&self, cpu: u32) -> u64 {
        self.cpu(cpu).until_ns
    }

    /// A node's or task's state. Panics when the id is beyond the pool.
    pub fn node(&self, id: u32) -> &Node {
        assert!(id <= crate::limits().nodes);
        // SAFETY: inside the array, layout checked in `new`; &self excludes a running call.
        unsafe { &*(self.state.add(self.node_at) as *const Node).add(id as usize) }
    }

    /// An edge's state. Panics when the id is beyond the pool.
    pub fn edge(&self, id: u32) -> &Edge {
        assert!(id <= crate::limits().edges);
        // SAFETY: as in `node`.
        unsafe { &*(self.state.add(self.edge_at) as *const Edge).add(id as usize) }
    }

    /// A CPU's state. Panics when there is no such CPU.
    #[inline]
    pub fn cpu(&self, cpu: u32) -> &Cpu {
        assert!(cpu < self.cpus);
        // SAFETY: as in `node`.
        unsafe { &*(self.state.add(self.cpu_at) as *const Cpu).add(cpu as usize) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base, self.layout) }
    }
}
