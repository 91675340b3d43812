//! Another kernel object for the plan in force: loaded beside the first one, whose graph it takes over as it is.
//!
//! Only one scheduler of sched_ext can be attached, so between the two the machine is on its default scheduler:
//!
//! 1. The second object is loaded and verified; the first one goes on.
//! 2. The loader becomes urgent, since a frozen graph does not end anybody's turn. The first one *freezes*: from here on all
//!    time of all CPUs is stolen, and no thread loses its leaf. Then it is detached.
//! 3. Its arrays are copied: nodes, edges, orders, budgets, deadlines, virtual times, leaves with their threads.
//! 4. The second one is attached. A thread that sleeps by then is released; each CPU *thaws* with its first decision.
//!
//! All that the engine sees of this are entries: `graph_outside` at both ends, releases and requests between. So the
//! recording goes on, and a replay across the gap is as exact as any other.

use crate::kernel::{CpuSide, Kernel, Leaf, Loaded, Options};
use crate::live::news::{News, NEWS_THREAD};
use crate::live::{now_ns, Live};
use crate::threads::{self, Proc};
use anyhow::{anyhow, bail, Context, Result};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tierce_plan::Plan;
use tierce_policy::TASK;

const LEAF_UNSEEN: u32 = 2;
const COMMAND_FREEZE: u32 = 68;
const COMMAND_ADOPT: u32 = 69;
const COMMAND_BURY: u32 = 70;
const COMMAND_KEEP: u32 = 71;

/// `enum tierce_own`.
const OWN_DEFAULT: u16 = 1;
const OWN_MEMBER: u16 = 2;

/// How often the first object is heard while the second one is loaded.
const WHILE_LOADING: Duration = Duration::from_millis(20);

/// How long CPUs are waited for that have not decided yet: one that a higher scheduling class keeps does not.
const PATIENCE: Duration = Duration::from_secs(1);

/// Priority in the gap, in SCHED_FIFO: that of the kernel's own thread which does the rest of it.
const URGENT: libc::c_int = 50;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The kernel verifies this program of the second object.
    Verifies(&'a str),
    /// The first object is detached.
    Detached,
    /// The second one could not be attached; the first one will be.
    Returns,
}

/// An object has taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// How it was loaded.
    pub loaded: Loaded,
    /// When the first one froze, CLOCK_MONOTONIC.
    pub begun_ns: u64,
    /// From the freeze until the last CPU decided again: the machine was on its default scheduler, but for its ends.
    pub gap: Duration,
    /// Of that: until the first object was detached.
    pub detaching: Duration,
    /// Then: until the second one had its state.
    pub carrying: Duration,
    /// Then: until it was attached. The rest is up to the first decisions.
    pub attaching: Duration,
}

/// What an object that takes over is told to, and what happens while it is loaded.
pub struct Hears<'a> {
    /// How far it has come.
    pub step: &'a mut dyn FnMut(Step),
    /// As [`Live::turn`] has it.
    pub keep: &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>,
}

// SAFETY: what its pointers lead to belongs to the object, which is not tied to a thread; the descriptors are process-wide.
unsafe impl Send for Kernel {}

impl Kernel {
    /// Threads that leave our class keep their leaves from here on, or no longer.
    fn keep_leaves(&self, keep: bool) -> Result<()> {
        self.command(COMMAND_KEEP, keep.into(), 0)?;
        Ok(())
    }

    /// From here on all time is stolen. Whoever has a CPU keeps it: the caller must be urgent.
    fn freeze(&self) -> Result<()> {
        self.command(COMMAND_FREEZE, 0, 0)?;
        Ok(())
    }

    /// The thread `tid` has this leaf; leaf 0: none. False: there is no such thread.
    fn adopt(&self, leaf: u32, tid: u32) -> Result<bool> {
        Ok(self.command(COMMAND_ADOPT, leaf, tid)? == 0)
    }

    /// If its thread died while nobody heard of it, the leaf has none any more.
    fn bury(&self, leaf: u32, tid: u32) -> Result<()> {
        self.command(COMMAND_BURY, leaf, tid)?;
        Ok(())
    }

    /// The machine goes back to its default scheduler; what is heard of otherwise still is.
    fn detach_operations(&mut self) {
        self.links.remove(0);
    }

    /// Begin again with an empty graph, after another object has taken over: to take over from that.
    pub fn retire(&mut self) -> Result<()> {
        for tid in threads::all() {
            self.adopt(0, tid)?;
        }
        self.reset()
    }

    /// Leaves that have a thread.
    fn threads(&self) -> HashMap<u32, u32> {
        let all = (1..self.nodes_used()).map(|id| (id, self.leaf(id).pid));
        all.filter(|(_, tid)| *tid != 0).collect()
    }

    /// All that the other one has, which nobody enters any more. Of nodes and edges only those that were ever used: the others
    /// are zero in both.
    fn take_over(&mut self, first: &Kernel) {
        let layout = self.layout;
        let copy = |from: *const u8, to: *const u8, begin: u32, end: u32| {
            // SAFETY: both lie inside arenas of the same layout, which are writable memory of ours; nothing runs in either.
            unsafe {
                let at = begin as usize;
                std::ptr::copy_nonoverlapping(from.add(at), to.cast_mut().add(at), (end - begin) as usize);
            }
        };
        let (nodes, edges) = (first.nodes_used(), first.edges_used());
        let parts = [
            (0, layout.edge_at + edges * layout.edge_size),
            (layout.node_at, layout.node_at + nodes * layout.node_size),
            (layout.node_at + layout.nodes * layout.node_size, layout.state_size),
        ];
        for (begin, end) in parts {
            for (begin, end) in self.used_state(begin, end) {
                copy(first.state, self.state, begin, end);
            }
        }
        copy(first.side, self.side, 0, nodes * size_of::<Leaf>() as u32);
        let [(_, cpus_end), (rest, end)] = self.used_side();
        copy(first.side, self.side, layout.side_cpu_at, cpus_end);
        copy(first.side, self.side, rest, end);
    }

    /// Before it is attached with a graph that it has from before: nobody is in custody, nothing is under way on a CPU, each is
    /// frozen.
    fn hold(&mut self) -> Result<()> {
        for cpu in 0..self.options().cpus {
            let at = self.layout.side_cpu_at + cpu * self.layout.side_cpu_size;
            let mut held = self.cpu_side(cpu);
            for word in [
                &mut held.left,
                &mut held.strays,
                &mut held.awaits,
                &mut held.blocking,
                &mut held.overrun,
                &mut held.blocked,
                &mut held.idle,
            ] {
                *word = 0;
            }
            for time in [
                &mut held.irq_ns,
                &mut held.softirq_ns,
                &mut held.decided_ns,
                &mut held.fired_ns,
                &mut held.thawed_ns,
                &mut held.away_at_ns,
            ] {
                *time = 0;
            }
            (held.frozen, held.interrupted_ns) = (1, 1); // the first decision looks at the one because of the other
                                                         // SAFETY: inside the arena, which is writable memory of ours; nothing runs in it.
            unsafe { self.side.cast_mut().add(at as usize).cast::<CpuSide>().write_volatile(held) };
        }
        for id in 1..self.nodes_used() {
            let mut held = self.leaf(id);
            (held.custody, held.moving, held.overrun) = (0, LEAF_UNSEEN, 0);
            // SAFETY: as above.
            unsafe { self.side.cast_mut().cast::<Leaf>().add(id as usize).write_volatile(held) };
        }
        self.forget_exit()
    }

    /// CPUs that count as online have decided: when the last one did, if all have.
    fn thawed_ns(&self) -> Option<u64> {
        let here =
            (0..self.options().cpus).filter(|&cpu| self.cpu(cpu).online != 0 || self.cpu_side(cpu).away != 0);
        here.map(|cpu| self.cpu_side(cpu).thawed_ns).try_fold(0, |last, at| (at != 0).then_some(last.max(at)))
    }
}

/// What the gap is shorter with. To detach and to attach a scheduler, the kernel waits for grace periods of RCU: they are expedited.
/// The loader, and the kernel's threads that end grace periods, come before all that the machine's default scheduler has: behind
/// threads that compute they would wait for some ticks each time. The loader comes first and goes last.
struct Haste {
    _expedited: Option<Expedited>,
    _urgent: Vec<Urgent>,
}

impl Haste {
    fn begin() -> Result<Haste> {
        let _urgent = become_urgent()?;
        Ok(Haste { _expedited: Expedited::begin(), _urgent })
    }
}

/// As long as it is there, who waits for a grace period has it expedited.
struct Expedited;

/// Whether the kernel does that for everybody.
const EXPEDITED: &str = "/sys/kernel/rcu_expedited";

impl Expedited {
    /// `None`: the machine does so anyway, or cannot.
    fn begin() -> Option<Expedited> {
        let before = fs::read_to_string(EXPEDITED).ok()?;
        (before.trim() == "0" && fs::write(EXPEDITED, "1").is_ok()).then_some(Expedited)
    }
}

impl Drop for Expedited {
    fn drop(&mut self) {
        let _ = fs::write(EXPEDITED, "0");
    }
}

fn become_urgent() -> Result<Vec<Urgent>> {
    let is_rcu = |live: &threads::Live| {
        let names = ["rcu_preempt", "rcu_sched", "rcu_exp_"];
        live.thread.is_kthread && names.iter().any(|name| live.thread.comm.starts_with(name))
    };
    let rcu = Proc::default().all().into_iter().filter(is_rcu);
    let rcu: Vec<u32> = rcu.map(|live| live.thread.tid).collect();
    // SAFETY: no arguments.
    let own = unsafe { libc::gettid() } as u32;
    let own = Urgent::begin(own).context("the loader could not become urgent")?;
    let rcu = rcu.into_iter().filter_map(|tid| Urgent::begin(tid).ok().flatten());
    Ok(rcu.chain(own).collect())
}

/// As long as it is there, a thread is in SCHED_FIFO.
struct Urgent {
    tid: u32,
    policy: libc::c_long,
    priority: libc::c_int,
}

impl Urgent {
    /// `None`: it is in a higher class already.
    fn begin(tid: u32) -> std::io::Result<Option<Urgent>> {
        let mut priority = 0;
        // SAFETY: a sched_param is one int. libc's own functions are stubs with musl.
        let policy = unsafe {
            libc::syscall(libc::SYS_sched_getparam, tid, &raw mut priority);
            libc::syscall(libc::SYS_sched_getscheduler, tid)
        };
        let is_ordinary =
            [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&(policy as libc::c_int));
        let urgent = Urgent { tid, policy, priority };
        match is_ordinary && !urgent.set(libc::SCHED_FIFO.into(), URGENT) {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(is_ordinary.then_some(urgent)),
        }
    }

    fn set(&self, policy: libc::c_long, priority: libc::c_int) -> bool {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, self.tid, policy, &raw const priority) == 0 }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        self.set(self.policy, self.priority);
    }
}

impl Live {
    /// What an object is loaded with that both the plan in force and this one can have.
    pub fn options_for(&self, new: &Plan) -> Options {
        let old = self.plan();
        Options {
            policies: old.policies() | new.policies(),
            parts: old.parts() | new.parts(),
            ..self.kernel().options().clone()
        }
    }

    /// Load another object and have it take over. The inner error: the first one is in force as before. The outer one: neither is.
    pub fn reload(&mut self, options: Options, hears: &mut Hears) -> Result<Result<Reloaded, String>> {
        let second = match self.load_beside(options, hears) {
            Ok(second) => second,
            Err(why) => return Ok(Err(words(&why))),
        };
        Ok(self.hand_over(second, hears.step)?.map(|(reloaded, _)| reloaded))
    }

    /// Have a loaded object take over, whose graph is empty; also returned is the one that was in force. Errors as above.
    pub fn hand_over(
        &mut self,
        second: Kernel,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Result<(Reloaded, Kernel), String>> {
        let (second, adopted) = match self.prepare(second) {
            Ok(prepared) => prepared,
            Err(why) => return Ok(Err(words(&why))),
        };
        let (haste, begun_ns) = match self.freeze() {
            Ok(frozen) => frozen,
            Err(why) => return Ok(Err(words(&why))),
        };
        let changed = self.change_kernels(second, &adopted, tell)?;
        drop(haste);
        thread::yield_now(); // this CPU decides
        let (second, times) = match changed {
            Ok(changed) => changed,
            Err(why) => {
                self.thaw()?; // until then no thread moves to another leaf
                return Ok(Err(words(&why)));
            }
        };
        let first = self.hear_from(second)?;
        let thawed_ns = self.thaw()?;
        self.settle(&first)?;
        let since = |from_ns: u64, to_ns: u64| Duration::from_nanos(to_ns.saturating_sub(from_ns));
        let [detached_ns, carried_ns, attached_ns] = times;
        let reloaded = Reloaded {
            loaded: self.kernel.loaded(),
            begun_ns,
            gap: since(begun_ns, thawed_ns),
            detaching: since(begun_ns, detached_ns),
            carrying: since(detached_ns, carried_ns),
            attaching: since(carried_ns, attached_ns),
        };
        Ok(Ok((reloaded, first)))
    }

    /// Load a second object, in a thread of its own: this one goes on hearing of threads, and no record is lost.
    fn load_beside(&mut self, options: Options, hears: &mut Hears) -> Result<Kernel> {
        let (say, said) = mpsc::channel::<String>();
        let mut tell = move |program: &str| _ = say.send(program.to_string()); // who asked may be gone
        let load = move || Kernel::load_telling(options, &mut tell);
        let loading = thread::Builder::new().name("tierce-load".into()).spawn(load)?;
        while !loading.is_finished() {
            said.try_iter().for_each(|program| (hears.step)(Step::Verifies(&program)));
            self.turn(hears.keep)?;
            thread::sleep(self.rest().min(WHILE_LOADING));
        }
        loading.join().map_err(|_| anyhow!("loading the second kernel object failed"))?
    }

    /// All that can be done before the first object is detached, and which thread has which leaf by then.
    fn prepare(&mut self, mut second: Kernel) -> Result<(Kernel, HashMap<u32, u32>)> {
        if let Some(exit) = self.kernel.exit() {
            bail!("the kernel has ended the plan: {} {}", exit.reason, exit.message);
        }
        second.ring("entries", Box::new(|_, _| ()))?.drain(Duration::MAX)?; // how its graph began: it gets another
        second.attach_tracepoints()?;
        second.object.prepare_operations("tierce_ops").context("starting the second scheduler")?;
        let threads = self.kernel.threads();
        for (&leaf, &tid) in &threads {
            second.adopt(leaf, tid)?;
        }
        Ok((second, threads))
    }

    /// From here on the graph stands still: since when, and what the gap is short with.
    fn freeze(&self) -> Result<(Haste, u64)> {
        self.kernel.keep_leaves(true)?;
        let haste = Haste::begin();
        if haste.is_err() {
            self.kernel.keep_leaves(false)?;
        }
        let haste = haste?;
        let begun_ns = now_ns();
        self.kernel.freeze()?;
        Ok((haste, begun_ns))
    }

    /// The gap: the second object in the place of the first one, and when it was detached, when the other had its state, when that
    /// was attached. The inner error: the first one is attached again.
    fn change_kernels(
        &mut self,
        mut second: Kernel,
        adopted: &HashMap<u32, u32>,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Result<(Kernel, [u64; 3])>> {
        self.kernel.detach_operations();
        let detached_ns = now_ns();
        tell(Step::Detached);
        let carried = carry(&self.kernel, &mut second, adopted);
        let carried_ns = now_ns();
        let why = match carried.and_then(|()| second.attach_operations()) {
            Ok(()) => return Ok(Ok((second, [detached_ns, carried_ns, now_ns()]))),
            Err(why) => why,
        };
        drop(second);
        tell(Step::Returns);
        let first = &mut self.kernel;
        let again = first.hold().and_then(|()| first.attach_operations());
        if let Err(again) = again {
            let (why, again) = (words(&why), words(&again));
            bail!("the second kernel object could not take over ({why}), nor could the first one come back ({again}): the machine is on its default scheduler");
        }
        for (leaf, tid) in self.kernel.threads() {
            self.kernel.bury(leaf, tid)?;
        }
        Ok(Err(why))
    }

    /// Wait until CPUs decide again; when the last one did.
    fn thaw(&mut self) -> Result<u64> {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.kernel.thawed_ns() {
                return Ok(at);
            }
            if begun.elapsed() > PATIENCE || self.kernel.exit().is_some() {
                return Ok(now_ns());
            }
            self.collect()?;
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// What was on its way to a thread when the first object froze goes on: leaves that were given and not yet taken. Those that
    /// nobody will take go. What has changed hands since is left alone.
    fn settle(&mut self, first: &Kernel) -> Result<()> {
        for (leaf, tid) in first.threads() {
            self.kernel.bury(leaf, tid)?;
        }
        let given = |leaf: &Leaf| leaf.own == OWN_MEMBER && leaf.pid == 0 && leaf.dead == 0;
        let mut open: HashSet<u32> = (1..first.nodes_used())
            .filter(|id| first.node(*id).kind == TASK && given(&first.leaf(*id)))
            .collect();
        // Threads that began with one, of which nobody has heard yet.
        let told = |item: &News| (item.kind & 0xff == NEWS_THREAD).then_some((item.id, item.kind >> 8));
        let mut born: Vec<(u32, u32)> = self.waiting.born().collect();
        born.extend(self.news.borrow().iter().filter_map(told));
        for (tid, leaf) in born {
            if open.remove(&leaf) && !self.kernel.bind(tid, leaf, true)? {
                self.abandon(leaf);
            }
        }
        let bound: Vec<(u32, u32)> = self.bound.iter().map(|(tid, bound)| (*tid, bound.leaf)).collect();
        for (tid, leaf) in bound {
            if open.remove(&leaf) && !self.kernel.bind(tid, leaf, true)? {
                self.abandon(leaf);
            } else if self.ids().tasks.contains(&leaf) && first.leaf(leaf).pid == 0 {
                self.kernel.bind(tid, leaf, false)?;
            }
        }
        self.hear_all(Duration::MAX)?;
        // Threads that were sent to the default node and are not there.
        for (leaf, tid) in first.threads() {
            if first.leaf(leaf).own != OWN_DEFAULT && self.leaf_of(tid).is_none() {
                self.kernel.bind(tid, 0, false)?;
            }
        }
        for leaf in open {
            self.kernel.reap(leaf, true)?;
        }
        Ok(())
    }
}

fn words(why: &anyhow::Error) -> String {
    format!("{why:#}").trim_end().to_string()
}

/// The second object gets the state of the first one, which is detached.
fn carry(first: &Kernel, second: &mut Kernel, adopted: &HashMap<u32, u32>) -> Result<()> {
    if let Some(exit) = first.exit().filter(|exit| exit.kind >= 1024) {
        bail!("the kernel ended the plan meanwhile: {} {}", exit.reason, exit.message);
    }
    second.take_over(first);
    second.hold()?;
    let threads = first.threads();
    let is_new = |all: &HashMap<u32, u32>, leaf: &u32, tid: &u32| all.get(leaf) != Some(tid);
    for (leaf, tid) in adopted {
        if is_new(&threads, leaf, tid) {
            second.adopt(0, *tid)?;
        }
    }
    for (leaf, tid) in &threads {
        if is_new(adopted, leaf, tid) {
            second.adopt(*leaf, *tid)?;
        }
    }
    Ok(())
}
