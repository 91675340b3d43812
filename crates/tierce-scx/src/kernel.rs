//! The engine in the kernel: load it, build a graph in it, attach it, look at it.

mod control;
mod marks;
mod memory;
mod options;
mod sides;

pub use options::{Options, COUNTS, EVERYTHING, FLOOR_NS, LOCK_WAITS, MARKS, MEASURED, STATS};
pub use sides::{CpuSide, Exit, Leaf, LockSide, Pools, Side};

use crate::btf::Btf;
use crate::object::{call, Link, Object, Refused, Ring, Take};
use crate::topology;
use anyhow::{ensure, Context, Result};
use marks::Marks;
use options::has_one_cpu;
use std::ffi::c_int;
use std::ptr::{addr_of, read_volatile};
use std::time::{Duration, Instant};
use tierce_policy::{raw, Message, NodeParams, Params, Refusal, CPUS_MAX, KERNEL};

/// Of the ring that entries come through when they are recorded: a million of them, should the loader have to wait long.
const ENTRIES_BYTES: u32 = 1 << 26;

const NO_NICE: u32 = u32::MAX;

const OP_INIT: u32 = 1;
const OP_SET: u32 = 15;
const OP_TELL: u32 = 22;
const COMMAND_LEAF: u32 = 64;
const COMMAND_DEFAULT: u32 = 65;
const COMMAND_REAP: u32 = 66;
const COMMAND_NEAR: u32 = 67;
const COMMAND_FREE: u32 = 72;

/// Where the kernel begins and ends what no thread is to pay for.
const INTERRUPTS: [(&str, &str); 6] = [
    ("tierce_irq_begins", "local_timer_entry"),
    ("tierce_irq_ends", "local_timer_exit"),
    ("tierce_irq_begins", "irq_handler_entry"),
    ("tierce_irq_ends", "irq_handler_exit"),
    ("tierce_softirq_begins", "softirq_entry"),
    ("tierce_softirq_ends", "softirq_exit"),
];

/// Where waits for locks begin and end.
const WAITS: [&str; 6] = [
    "tierce_futex_wait",
    "tierce_futex_waited",
    "tierce_futex_lock",
    "tierce_futex_locked",
    "tierce_contention_begins",
    "tierce_contention_ends",
];

/// Where a lock of a program is released.
const RELEASES: [&str; 4] =
    ["tierce_futex_wakes", "tierce_futex_woke", "tierce_futex_unlocks", "tierce_futex_unlocked"];

const NO_TASK_WORK: &str = "[run] throttle = \"user\": this kernel has no bpf_task_work_schedule_resume, by which a scheduler learns \
                            that a thread goes back to user mode; 7.0 has";

const NO_FUTEX: &str =
    "--locks: this kernel has no function futex_wait or futex_lock_pi that a program could be attached to";

const NO_RELEASES: &str =
    "[run] locks = \"inheritance\": this kernel has no function futex_wait, futex_lock_pi, futex_wake or \
                           futex_unlock_pi that a program could be attached to";

/// Can it be seen who waits for a futex?
fn tells_of_futexes(kernel: &Btf) -> bool {
    ["futex_wait", "futex_lock_pi"].iter().all(|name| kernel.parameters(name).is_some())
}

/// And who releases it?
fn tells_of_releases(kernel: &Btf) -> bool {
    tells_of_futexes(kernel)
        && ["futex_wake", "futex_unlock_pi"].iter().all(|name| kernel.parameters(name).is_some())
}

/// Can a BPF program be called when a thread goes back to user mode?
fn tells_of_returns(kernel: &Btf) -> bool {
    kernel.parameters("bpf_task_work_schedule_resume").is_some()
}

/// `struct tierce_command` of bpf/control.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Command {
    op: u32,
    a: u32,
    b: u32,
    pid: u32,
    value: u64,
    param: NodeParams,
    /// Of a set of CPUs whose first word is `value`, the further ones.
    cpus: [u64; CPUS_MAX as usize / 64 - 1],
    result: u64,
}

/// A set of CPUs of a machine with more than 64.
type Words = [u64; CPUS_MAX as usize / 64];

/// An edge's parameters as a command has them.
fn wide(params: impl AsRef<[u64]>) -> NodeParams {
    let mut wide = NodeParams::default();
    wide[..params.as_ref().len()].copy_from_slice(params.as_ref());
    wide
}

/// `struct tierce_layout`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) nodes: u32,
    pub(crate) node_size: u32,
    edges: u32,
    pub(crate) edge_size: u32,
    pub(crate) node_at: u32,
    pub(crate) edge_at: u32,
    cpu_at: u32,
    cpu_size: u32,
    fresh_node_at: u32,
    fresh_edge_at: u32,
    spare_nodes_at: u32,
    spare_edges_at: u32,
    pub(crate) side_cpu_at: u32,
    pub(crate) side_cpu_size: u32,
    side_lock_at: u32,
    nice_weight_at: u32,
    pub(crate) side_rest_at: u32,
    pub(crate) side_size: u32,
    pub(crate) state_size: u32,
    domain_at: u32,
    domain_size: u32,
    row_at: u32,
    set_at: u32,
}

impl Layout {
    /// Sizes are those that this program knows.
    fn check(&self) -> Result<()> {
        let sizes = [
            (self.nodes as usize, KERNEL.nodes as usize + 1),
            (self.edges as usize, KERNEL.edges as usize + 1),
            (self.node_size as usize, size_of::<raw::Node>()),
            (self.edge_size as usize, size_of::<raw::Edge>()),
            (self.cpu_size as usize, size_of::<raw::Cpu>()),
            (self.side_cpu_size as usize, size_of::<CpuSide>()),
            ((self.side_size - self.side_rest_at) as usize, size_of::<Side>()),
        ];
        for (theirs, ours) in sizes {
            ensure!(theirs == ours, "kernel side and loader do not fit together: {theirs} and {ours}");
        }
        Ok(())
    }
}

/// Open the object, set its constants, have it loaded.
fn load_object(options: &Options, pruned: bool, tell: &mut dyn FnMut(&str)) -> Result<Object> {
    let mut object = Object::open()?;
    object.set_constant("cpus_here", &options.cpus.to_ne_bytes())?;
    object.set_constant("policies", &options.policies.to_ne_bytes())?;
    object.set_constant("parts", &options.parts.to_ne_bytes())?;
    object.set_constant("trace_kinds", &options.trace_kinds.to_ne_bytes())?;
    for (name, wanted) in [
        ("several_cpus", options.cpus > 1 || !has_one_cpu()),
        ("many_cpus", options.has_many_cpus()),
        ("overheads_stolen", options.overheads_stolen),
        ("throttle_at_user", options.throttle_at_user),
        ("locks_fair", options.locks_fair),
        ("count_contention", options.count_contention),
        ("watch_locks", options.hears_of_locks()),
        ("inherits", options.inherits),
        ("record_entries", options.record),
    ] {
        object.set_constant(name, &u64::from(wanted).to_ne_bytes())?;
    }
    object.set_array_length("timers", options.cpus)?;
    let ring = |wanted: bool, bytes| if wanted { bytes } else { 4096 };
    object.set_ring_size("records", ring(options.trace_kinds != 0, options.ring_bytes))?;
    object.set_ring_size("entries", ring(options.record, ENTRIES_BYTES))?;
    object.set_watchdog("tierce_ops", options.watchdog_ms)?;
    if !options.exercise {
        object.omit("exercise")?;
    }
    for program in WAITS.iter().filter(|_| !options.hears_of_locks()) {
        object.omit(program)?;
    }
    for program in RELEASES.iter().filter(|_| !options.inherits) {
        object.omit(program)?;
    }
    object.load(pruned, tell)?;
    Ok(object)
}

/// Verifiers have defects that only some code meets. What a verifier refuses is therefore tried again with all parts of the engine,
/// then with all policies, then as the whole object. What has been loaded in addition may be used by later plans: it is added to
/// `options`. Also whether the object is pruned, and how often the kernel refused.
fn load_with_fallbacks(options: &mut Options, tell: &mut dyn FnMut(&str)) -> Result<(Object, bool, usize)> {
    let Options { policies, parts, .. } = *options;
    let mut ways = vec![
        (policies, parts, true),
        (policies, u64::MAX, true),
        (u64::MAX, parts, true),
        (u64::MAX, u64::MAX, false),
    ];
    ways.dedup();
    let is_verifiers =
        |why: &anyhow::Error| why.downcast_ref().is_some_and(|refused: &Refused| !refused.is_shortage());
    let mut refusals = 0;
    loop {
        let (policies, parts, pruned) = ways[refusals];
        (options.policies, options.parts) = (policies, parts);
        match load_object(options, pruned, tell) {
            Err(why) if refusals + 1 < ways.len() && is_verifiers(&why) => refusals += 1,
            last => return Ok((last?, pruned, refusals)),
        }
    }
}

/// How the object was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// How long it took, nearly all of it in the verifier.
    pub took: Duration,
    /// Instructions that the verifier examined, of all programs.
    pub verified_instructions: u64,
    /// The object lacks what its options do not ask for; else the kernel refused that, and has the whole one.
    pub pruned: bool,
    /// How often the kernel refused the object before it took it, each time with other code left out.
    pub refusals: usize,
}

/// What tells of threads that may match something else (bpf/matching.c).
const TELLERS: [&str; 5] =
    ["tierce_newtask", "tierce_exec", "tierce_rename", "tierce_class", "tierce_cgroup"];

/// The loaded kernel side. Fields are dropped in order: links first.
pub struct Kernel {
    pub(crate) links: Vec<Link>,
    marks: Option<Marks>,
    pub(crate) object: Object,
    control: c_int,
    exercise: Option<c_int>,
    /// Programs that tell of threads.
    tellers: Vec<c_int>,
    pub(crate) state: *const u8,
    pub(crate) side: *const u8,
    exit: *const u8,
    pub(crate) layout: Layout,
    options: Options,
    loaded: Loaded,
}

impl Kernel {
    /// Load the object; nothing is scheduled by it yet.
    pub fn load(options: Options) -> Result<Kernel> {
        Kernel::load_telling(options, &mut |_| ())
    }

    /// Load the object, which may take seconds; `tell` hears the name of each program that the kernel verifies.
    pub fn load_telling(mut options: Options, tell: &mut dyn FnMut(&str)) -> Result<Kernel> {
        let begun = Instant::now();
        ensure!(
            (1..=KERNEL.cpus).contains(&options.cpus),
            "{} CPUs, 1 to {} are supported",
            options.cpus,
            KERNEL.cpus
        );
        if options.throttle_at_user || options.hears_of_locks() {
            let types = std::fs::read("/sys/kernel/btf/vmlinux").context("/sys/kernel/btf/vmlinux")?;
            let kernel = Btf::parse(&types).map_err(anyhow::Error::msg)?;
            ensure!(!options.throttle_at_user || tells_of_returns(&kernel), "{NO_TASK_WORK}");
            ensure!(!options.inherits || tells_of_releases(&kernel), "{NO_RELEASES}");
            ensure!(!options.watch_locks || tells_of_futexes(&kernel), "{NO_FUTEX}");
        }
        let (object, pruned, refusals) = load_with_fallbacks(&mut options, tell)?;
        let verified = object.programs().iter().map(|(_, count)| u64::from(*count)).sum();
        let loaded = Loaded { took: begun.elapsed(), verified_instructions: verified, pruned, refusals };
        let layout: Layout = object.constant("layout")?;
        layout.check()?;
        let state = object.arena_variable("tierce_state")?;
        let side = object.arena_variable("tierce_side")?;
        let (exit, _) = object.variable_address("exit_info")?;
        let control = object.program("control")?;
        let exercise = if options.exercise { Some(object.program("exercise")?) } else { None };
        let tellers = TELLERS.iter().filter_map(|name| object.program(name).ok()).collect();
        let links = Vec::new();
        let marks = Marks::of(&options, &object)?;
        let kernel = Kernel {
            links,
            marks,
            object,
            control,
            exercise,
            tellers,
            state,
            side,
            exit,
            layout,
            options,
            loaded,
        };
        kernel.begin()?;
        Ok(kernel)
    }

    /// Of the engine's state, what no machine of so few CPUs uses: begins and ends, in their order.
    fn unused_state(&self) -> Vec<(u32, u32)> {
        let (layout, cpus) = (&self.layout, self.options.cpus);
        let rest = |at, size| (at + cpus * size, at + CPUS_MAX * size);
        let row_words = (layout.set_at - layout.row_at) / (CPUS_MAX / 64);
        let sets = if self.options.has_many_cpus() { layout.state_size } else { layout.set_at };
        let mut parts = vec![
            rest(layout.cpu_at, layout.cpu_size),
            rest(layout.domain_at, layout.domain_size),
            rest(layout.domain_at + CPUS_MAX * layout.domain_size, layout.domain_size),
            (layout.row_at + cpus.div_ceil(64) * row_words, layout.set_at),
            (sets, layout.state_size),
        ];
        parts.sort_unstable();
        parts
    }

    /// Likewise, of what is kept beside it.
    fn unused_side(&self) -> (u32, u32) {
        let (at, size) = (self.layout.side_cpu_at, self.layout.side_cpu_size);
        (at + self.options.cpus * size, at + CPUS_MAX * size)
    }

    /// Between these, what is used of the state, in the order of places.
    pub(crate) fn used_state(&self, begin: u32, end: u32) -> Vec<(u32, u32)> {
        let (mut used, mut at) = (Vec::new(), begin);
        for (from, to) in self.unused_state() {
            if to > at && from < end {
                used.push((at, from.max(at)));
                at = to;
            }
        }
        used.push((at, end.max(at)));
        used
    }

    /// Likewise, of what is kept beside it.
    pub(crate) fn used_side(&self) -> [(u32, u32); 2] {
        let (from, to) = self.unused_side();
        [(0, from), (to, self.layout.side_size)]
    }

    /// The arena's data are there for the most CPUs: what this machine does not need of them goes back to the kernel.
    fn free_unused(&self) -> Result<()> {
        // SAFETY: no arguments that could be wrong.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let state = self.unused_state().into_iter().map(|part| (self.state, part));
        for (base, (begin, end)) in state.chain([(self.side, self.unused_side())]) {
            let begin = (base as usize + begin as usize).next_multiple_of(page);
            let pages = (base as usize + end as usize).saturating_sub(begin) / page;
            if pages > 0 {
                self.run(Command {
                    op: COMMAND_FREE,
                    a: pages as u32,
                    value: begin as u64,
                    ..Default::default()
                })?;
            }
        }
        Ok(())
    }

    /// An empty graph in a zeroed state.
    fn begin(&self) -> Result<()> {
        self.free_unused()?;
        for (index, nice) in (-20..20).enumerate() {
            // SAFETY: the table lies inside the arena, which is writable memory of ours; nothing runs yet.
            unsafe {
                let table = self.side.cast_mut().add(self.layout.nice_weight_at as usize).cast::<u64>();
                table.add(index).write_volatile(tierce_plan::nice_weight(nice));
            }
        }
        let code = self.run(Command {
            op: OP_INIT,
            a: self.options.cpus,
            value: self.options.floor_ns,
            ..Default::default()
        })?;
        ensure!(
            code == 0,
            "the engine refuses {} CPUs: {}",
            self.options.cpus,
            tierce_policy::Error(code as u32)
        );
        let topology = self.options.topology.clone().unwrap_or_else(|| topology::read(self.options.cpus));
        for (cpu, near) in topology.near.into_iter().enumerate() {
            for word in 0..self.options.cpus.div_ceil(64) {
                let mut param = NodeParams::default();
                let sets = [near.core, near.cache, near.memory];
                param.iter_mut().zip(sets).for_each(|(param, set)| *param = set.words()[word as usize]);
                self.run(Command { op: COMMAND_NEAR, a: cpu as u32, b: word, param, ..Default::default() })?;
            }
        }
        Ok(())
    }

    /// Detach, and begin again with an empty graph: what loading anew would give, without the verifier's seconds.
    pub fn reset(&mut self) -> Result<()> {
        self.detach();
        self.forget_exit()?;
        // SAFETY: the structs lie inside the arena, which is writable memory of ours; nothing runs any more.
        unsafe {
            for (begin, end) in self.used_state(0, self.layout.state_size) {
                self.state.cast_mut().add(begin as usize).write_bytes(0, (end - begin) as usize);
            }
            for (begin, end) in self.used_side() {
                self.side.cast_mut().add(begin as usize).write_bytes(0, (end - begin) as usize);
            }
        }
        self.begin()
    }

    /// It has ended, and is to begin again.
    pub(crate) fn forget_exit(&self) -> Result<()> {
        let (exit, size) = self.object.variable_address("exit_info")?;
        // SAFETY: the struct lies inside .bss, which is writable memory of ours; nothing runs any more.
        unsafe { exit.write_bytes(0, size) };
        Ok(())
    }

    /// How it was loaded.
    pub fn loaded(&self) -> Loaded {
        self.loaded
    }

    /// What was loaded.
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn run(&self, mut command: Command) -> Result<u64> {
        call(self.control, &mut command)?;
        Ok(command.result)
    }

    /// A command about a leaf and a thread.
    pub(crate) fn command(&self, op: u32, leaf: u32, tid: u32) -> Result<u64> {
        self.run(Command { op, a: leaf, pid: tid, ..Default::default() })
    }

    /// An operation of the engine that says error or 0.
    fn refuse(&self, command: Command) -> Result<(), Refusal> {
        match self.run(command).map_err(|error| Refusal::Call(format!("{error:#}")))? {
            0 => Ok(()),
            code => Err(tierce_policy::Error(code as u32).into()),
        }
    }

    /// One that gives an id.
    fn make(&self, command: Command) -> Result<u32, Refusal> {
        match self.run(command).map_err(|error| Refusal::Call(format!("{error:#}")))? {
            0 => Err(Refusal::Pool),
            id => Ok(id as u32),
        }
    }

    /// Threads that match nothing go below `node`; the parameter `nice`, if any, follows their nice value.
    pub fn set_default(&self, node: u32, param: Params, nice: Option<usize>) -> Result<()> {
        let b = nice.map_or(NO_NICE, |index| index as u32);
        self.run(Command { op: COMMAND_DEFAULT, a: node, b, param: wide(param), ..Default::default() })?;
        Ok(())
    }

    /// The thread `tid` becomes the task `leaf` as soon as it is off the CPU; `own`: the leaf goes when the thread goes.
    /// Leaf 0: it goes to the default node. False: there is no such thread.
    pub fn bind(&self, tid: u32, leaf: u32, own: bool) -> Result<bool> {
        let code =
            self.run(Command { op: COMMAND_LEAF, a: leaf, b: own.into(), pid: tid, ..Default::default() })?;
        Ok(code == 0)
    }

    /// Ask for a time constraint on behalf of a task: so much work within so long from now.
    pub fn constrain(&self, task: u32, work_ns: u64, within_ns: u64) -> Result<(), Refusal> {
        let param = wide([work_ns, within_ns]);
        self.refuse(Command {
            op: OP_TELL,
            a: task,
            b: Message::ConstraintBegin as u32,
            param,
            ..Default::default()
        })
    }

    /// End it.
    pub fn unconstrain(&self, task: u32) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_TELL, a: task, b: Message::ConstraintEnd as u32, ..Default::default() })
    }

    /// New parameters of the edge to a leaf made for a thread; refused if that leaf is gone.
    pub fn set_member(&self, edge: u32, leaf: u32, param: Params) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_SET, a: edge, b: leaf, param: wide(param), ..Default::default() })
    }

    /// Decisions of all CPUs so far.
    pub fn decisions(&self) -> u64 {
        (0..self.options.cpus).map(|cpu| self.cpu(cpu).decisions).sum()
    }

    /// Follow the jobs of the task `leaf`: from a wake-up to the next block; their relative deadline, if they have one.
    pub fn follow_jobs(&self, leaf: u32, deadline_ns: Option<u64>) {
        let id = leaf.min(self.layout.nodes - 1);
        // SAFETY: inside the arena, which is writable memory of ours; one aligned word that the kernel side only reads.
        unsafe {
            let at = self.side.cast_mut().cast::<Leaf>().add(id as usize);
            std::ptr::addr_of_mut!((*at).deadline_ns).write_volatile(deadline_ns.unwrap_or(u64::MAX));
        }
    }

    /// Try again to free a dead thread's leaf; true when it is gone. `orphan`: also one that was never taken.
    pub fn reap(&self, leaf: u32, orphan: bool) -> Result<bool> {
        Ok(self.run(Command { op: COMMAND_REAP, a: leaf, b: orphan.into(), ..Default::default() })? == 0)
    }

    /// From here on the kernel schedules with it.
    pub fn attach(&mut self) -> Result<()> {
        self.attach_tracepoints()?;
        self.attach_operations()
    }

    /// What it hears of beside the scheduler's operations.
    pub(crate) fn attach_tracepoints(&mut self) -> Result<()> {
        let traced = ["switch", "newtask", "exec", "rename", "class", "cgroup", "cpu_steps", "cpu_stays"];
        for program in traced.map(|name| format!("tierce_{name}")) {
            let link = self.object.attach(&program)?;
            self.links.push(link);
        }
        let waits = WAITS.iter().filter(|_| self.options.hears_of_locks());
        for program in waits.chain(RELEASES.iter().filter(|_| self.options.inherits)) {
            let link = self.object.attach(program).context("waits for locks")?;
            self.links.push(link);
        }
        for (program, tracepoint) in INTERRUPTS.into_iter().filter(|_| self.options.overheads_stolen) {
            // not every architecture has all
            self.links.extend(self.object.attach_raw(program, tracepoint));
        }
        if let Some(marks) = &mut self.marks {
            self.links.extend(marks.attach(&self.options.marks)?);
        }
        Ok(())
    }

    pub(crate) fn attach_operations(&mut self) -> Result<()> {
        let operations = self.object.attach_operations("tierce_ops").context("starting the scheduler")?;
        self.links.insert(0, operations);
        Ok(())
    }

    /// The machine goes back to its default scheduler.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// One of the rings: `records`, `entries` or `news`.
    pub fn ring(&self, name: &str, take: Take) -> Result<Ring> {
        self.object.ring(name, take)
    }

    /// Marks that found no room so far, and marks whose label could not be read.
    pub fn marks_lost(&self) -> [u64; 2] {
        self.marks.as_ref().map_or([0; 2], Marks::lost)
    }

    /// How often nobody was told of a thread, because another one was preempted on that CPU while the same was told of it. A user
    /// can have that happen.
    pub(crate) fn skipped(&self) -> u64 {
        self.tellers.iter().map(|program| Object::skipped(*program)).sum()
    }

    /// Name and number of verified instructions of each program.
    pub fn programs(&self) -> Vec<(String, u32)> {
        self.object.programs()
    }

    /// Why it ended, if it did.
    pub fn exit(&self) -> Option<Exit> {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Raw {
            code: i64,
            kind: u32,
            pad: u32,
            reason: [u8; 128],
            message: [u8; 1024],
        }
        // SAFETY: exit_info in .bss has this layout (bpf/control.h) and stays mapped.
        let kind = unsafe { read_volatile(addr_of!((*self.exit.cast::<Raw>()).kind)) };
        if kind == 0 {
            return None;
        }
        let raw: Raw = self.read(self.exit, 0);
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Some(Exit { kind, code: raw.code, reason: text(&raw.reason), message: text(&raw.message) })
    }

    /// An entry on the caller's clock, while nothing is attached: for tests of the loaded engine. `op` as in enum
    /// tierce_op.
    pub fn exercise(&self, op: u32, a: u32, b: u32, now_ns: u64) -> Result<u64> {
        let mut command = Command { op, a, b, value: now_ns, ..Default::default() };
        call(self.exercise.context("it was not asked for")?, &mut command)?;
        Ok(command.result)
    }
}

#[cfg(test)]
mod tests {
    use super::options::says_hypervisor;
    use super::*;
    use crate::btf::make;

    #[test]
    fn a_virtual_machine_is_known_by_its_processor() {
        assert!(says_hypervisor("processor\t: 0\nflags\t\t: fpu sse2 hypervisor lahf_lm\nbugs\t\t:\n"));
        assert!(!says_hypervisor("processor\t: 0\nflags\t\t: fpu sse2 lahf_lm\nmodel name\t: hypervisor\n"));
        assert!(!says_hypervisor(""));
    }

    #[test]
    fn throttling_at_user_mode_needs_task_work() {
        let has = |name: &str| {
            let types = make(&[(name, &["task", "tw", "map__map", "callback"]), ("bpf_kick", &[])], &[]);
            tells_of_returns(&Btf::parse(&types).unwrap())
        };
        assert!(has("bpf_task_work_schedule_resume"));
        assert!(!has("bpf_task_work_schedule_resume_impl")); // 6.18
    }

    #[test]
    fn waits_for_locks_need_two_functions() {
        let has = |names: &[&str]| {
            let functions: Vec<(&str, &[&str])> = names.iter().map(|name| (*name, &["uaddr"][..])).collect();
            tells_of_futexes(&Btf::parse(&make(&functions, &[])).unwrap())
        };
        assert!(has(&["futex_wait", "futex_lock_pi"]));
        assert!(!has(&["futex_wait", "futex_wake"]));
        let releases = |names: &[&str]| {
            let functions: Vec<(&str, &[&str])> = names.iter().map(|name| (*name, &["uaddr"][..])).collect();
            tells_of_releases(&Btf::parse(&make(&functions, &[])).unwrap())
        };
        assert!(releases(&["futex_wait", "futex_lock_pi", "futex_wake", "futex_unlock_pi"]));
        assert!(!releases(&["futex_wait", "futex_lock_pi", "futex_wake"]));
    }
}
