//! One instance of the graph engine: its state, how it is called, and what can be read of it.

mod entries;
mod operations;
mod replay;

pub use replay::Difference;

use crate::codes::{Broken, Error};
use crate::cpus::Cpus;
use crate::raw::{self, Cpu, Edge, Entry, Node};
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ffi::{c_void, CStr};

/// Alignment of the state: a cache line.
const LINE: usize = 64;

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
        let layout = Layout::from_size_align(of(0) + LINE, 1).expect("size of the state");
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
            cpus,
            node_at: of(4),
            edge_at: of(5),
            cpu_at: of(6),
            quiet_at: of(17),
            floor_at: of(18),
            set_at: of(21),
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
        let words = unsafe { *(self.state.add(self.set_at) as *const [u64; raw::CPUS / 64]).add(number) };
        Cpus::from_words(words)
    }

    /// CPUs kicked since the last call.
    pub fn take_kicks(&mut self) -> Cpus {
        self.kicked = false;
        Cpus::from_words(std::mem::take(&mut self.kicks))
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
