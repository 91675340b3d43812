//! A plan, enforced: its graph in the kernel, its threads bound to it.

use crate::dry_run;
use crate::host;
use crate::kernel::{Kernel, LockSide, Options, Pools};
use crate::object::Ring;
use crate::threads::{self, Proc};
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tierce_admission::PlanExt;
use tierce_plan::{Child, Edge, Glimpse, Ids, Members, Plan, Standing, Thread};
use tierce_policy::{raw, Control, Refusal, TASK};
use tierce_trace::report::{Contended, Contention, KickUse, LockUse};
use tierce_trace::{Event, Kind, Measure, Renumber, Report, Seen, Source, Stats, TraceHeader};

/// NEWS_THREAD of bpf/control.h: a thread is new, or may match something else.
pub(crate) const NEWS_THREAD: u32 = 1;
/// NEWS_EXEC: a thread has another program.
const NEWS_EXEC: u32 = 2;
/// NEWS_NAME: a thread has another name.
const NEWS_NAME: u32 = 3;
/// NEWS_CPU: a CPU came or went.
const NEWS_CPU: u32 = 4;
/// NEWS_LOST: a thread may not run where its place is.
const NEWS_LOST: u32 = 6;
/// NEWS_PROCESS: a process is in another cgroup.
const NEWS_PROCESS: u32 = 7;

/// How long events are read before news of threads are heard: where much happens the reading may never be done.
const READ_MAX: Duration = Duration::from_millis(10);

/// Why a thread that is dead has no place: nobody wants to know.
const GONE: &str = "it is gone";

/// What a thread was bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) entry: usize,
    pub(crate) leaf: u32,
    /// What its leaf had counted before: jobs, misses.
    before: (u32, u32),
}

/// Something the user should know about a thread: it matches, but is not where the plan wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// Task or set that it matches.
    pub target: String,
    /// Why it is not there.
    pub why: String,
}

/// What the kernel side holds: a node for each node and task of the plan, and one, with an edge or more, for each thread
/// that is no task of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Nodes and edges in use.
    pub used: Pools,
    /// Of these, the plan's.
    pub plan: Pools,
    /// Threads that have a node of their own.
    pub threads: u32,
}

/// Jobs of a thread, as the kernel side sees them: from a wake-up to the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// Jobs that began.
    pub begun: u32,
    /// Of these, ended after their deadline.
    pub misses: u32,
    /// Their relative deadline.
    pub deadline_ns: Option<u64>,
}

/// A `struct tierce_news` of bpf/control.h.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    pub(crate) kind: u32,
    /// A thread, process or CPU.
    pub(crate) id: u32,
    /// Of a thread: its process, whether it is a kernel thread, its name up to the first zero.
    pid: u32,
    is_kthread: bool,
    comm: [u8; 16],
}

impl News {
    fn from_bytes(bytes: &[u8]) -> Option<News> {
        let word = |at| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let comm = bytes.get(16..32)?.try_into().ok()?;
        Some(News { kind: word(0)?, id: word(4)?, pid: word(8)?, is_kthread: word(12)? != 0, comm })
    }
}

/// A running plan.
pub struct Live {
    plan: Rc<Plan>,
    ids: Ids,
    pub(crate) bound: HashMap<u32, Bound>,
    noticed: HashMap<(u32, usize), String>,
    /// Threads that have been sent away, and are to be looked at with the next plan.
    homeless: BTreeSet<u32>,
    /// Not all who found no place are known any more.
    forgotten: bool,
    /// A thread that was looked at since the last turn: what changes of it is news of the next.
    looked: Option<threads::Live>,
    notices: Vec<Notice>,
    stats: Stats,
    measure: Option<Measure>,
    renumber: Renumber,
    events: Rc<RefCell<Vec<u8>>>,
    entries: Rc<RefCell<Vec<u8>>>,
    pub(crate) news: Rc<RefCell<Vec<News>>>,
    /// Records, entries, news.
    rings: [Ring; 3],
    lost: u64,
    missed: u64,
    /// More is to be read.
    behind: bool,
    dead: u64,
    start_ns: u64,
    /// What threads outside the graph had run before, by their number.
    ran_before: HashMap<u32, u64>,
    pub(crate) kernel: Kernel,
}

/// CLOCK_MONOTONIC, the clock of the kernel side.
pub fn now_ns() -> u64 {
    // SAFETY: an all-zero timespec is valid, and the call fills it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Live {
    /// Load, build, attach, bind the threads there are; `tell` as in [`Kernel::load_telling`].
    pub fn start(plan: Plan, options: Options, tell: &mut dyn FnMut(&str)) -> Result<Live> {
        host::check_cpusets(&plan, Path::new("/"))?;
        Live::enforce(plan, Kernel::load_telling(options, tell)?)
    }

    /// Build in an empty kernel side, attach, bind the threads there are.
    pub fn enforce(plan: Plan, mut kernel: Kernel) -> Result<Live> {
        let ids = build(&plan, &kernel)?;
        let events = Rc::new(RefCell::new(Vec::new()));
        let entries = Rc::new(RefCell::new(Vec::new()));
        let news = Rc::new(RefCell::new(Vec::new()));
        let rings = rings(&kernel, [&events, &entries], &news)?;
        let outside = Proc::default().all().into_iter().filter(|live| live.is_outside());
        let ran_before =
            outside.filter_map(|live| Some((live.thread.tid, threads::ran_ns(live.thread.tid)?)));
        let ran_before = ran_before.collect();
        let start_ns = now_ns();
        let header = TraceHeader { start_ns, ..TraceHeader::of(&plan, &ids, Source::Run) };
        let stats = Stats::new(&header);
        kernel.attach()?;
        let renumber = Renumber::new(&header);
        let mut live = Live {
            plan: Rc::new(plan),
            ids,
            bound: HashMap::new(),
            noticed: HashMap::new(),
            homeless: BTreeSet::new(),
            forgotten: false,
            looked: None,
            notices: Vec::new(),
            stats,
            measure: None,
            renumber,
            events,
            entries,
            news,
            rings,
            lost: 0,
            missed: 0,
            behind: false,
            dead: 0,
            start_ns,
            ran_before,
            kernel,
        };
        live.match_all()?;
        Ok(live)
    }

    /// The plan.
    pub fn plan(&self) -> &Rc<Plan> {
        &self.plan
    }

    /// What a thread outside the graph had run before this plan was in force.
    pub(crate) fn ran_before(&self, tid: u32) -> u64 {
        self.ran_before.get(&tid).copied().unwrap_or(0)
    }

    /// Ids of its parts.
    pub(crate) fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The kernel side.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What a trace of this run says about itself.
    pub fn header(&self) -> &TraceHeader {
        self.stats.header()
    }

    /// What the user should know since last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Threads bound to entries of the plan: thread, name of the task or set.
    pub fn bound(&self) -> Vec<(u32, &str)> {
        let mut list: Vec<_> = self
            .bound
            .iter()
            .map(|(tid, bound)| (*tid, self.plan.child_name(self.plan.entries[bound.entry].target)))
            .collect();
        list.sort_unstable();
        list
    }

    /// Jobs of a bound thread, once it is where it was bound to.
    pub fn jobs(&self, tid: u32) -> Option<Jobs> {
        let bound = self.bound.get(&tid)?;
        let (leaf, before) = (self.kernel.leaf(bound.leaf), bound.before);
        let deadline_ns = Some(leaf.deadline_ns).filter(|&ns| ns != 0 && ns != u64::MAX);
        let (begun, misses) = (leaf.job.wrapping_sub(before.0), leaf.misses.wrapping_sub(before.1));
        (leaf.pid == tid).then_some(Jobs { begun, misses, deadline_ns })
    }

    /// Ask for a time constraint for a bound thread: so much work within so long. `None`: it is none.
    pub fn constrain(&self, tid: u32, work_ns: u64, within_ns: u64) -> Option<Result<(), Refusal>> {
        Some(self.kernel.constrain(self.leaf_of(tid)?, work_ns, within_ns))
    }

    /// End it.
    pub fn unconstrain(&self, tid: u32) -> Option<Result<(), Refusal>> {
        Some(self.kernel.unconstrain(self.leaf_of(tid)?))
    }

    /// Task or set and leaf of each bound thread.
    pub(crate) fn targets(&self) -> Vec<(Child, u32)> {
        self.bound.values().map(|bound| (self.plan.entries[bound.entry].target, bound.leaf)).collect()
    }

    /// The CPUs that were chosen for tasks and for threads of sets.
    pub fn standing(&self) -> Standing {
        let mut standing = Standing::of(&self.plan);
        for (target, leaf) in self.targets() {
            if let (Child::Set(set), Some(way)) = (target, self.way_of(leaf, target)) {
                standing.member(&self.plan, set, way);
            }
        }
        standing
    }

    /// Threads bound to tasks and sets of such names.
    pub(crate) fn bound_to(&self, wanted: impl Fn(&str) -> bool) -> Vec<u32> {
        self.bound().into_iter().filter(|(_, name)| wanted(name)).map(|(tid, _)| tid).collect()
    }

    pub(crate) fn leaf_of(&self, tid: u32) -> Option<u32> {
        self.bound.get(&tid).map(|bound| bound.leaf)
    }

    pub(crate) fn forget(&mut self, tid: u32) {
        self.bound.remove(&tid);
        self.homeless.insert(tid);
    }

    /// This plan is in force; returns threads that were bound and whose task or set has no entry any more.
    pub(crate) fn replace(&mut self, plan: Rc<Plan>, ids: Ids, entries: &HashMap<String, usize>) -> Vec<u32> {
        let old = std::mem::replace(&mut self.plan, plan);
        self.ids = ids;
        self.homeless.extend(self.noticed.drain().map(|((tid, _), _)| tid));
        let mut orphans = Vec::new();
        self.bound.retain(|tid, bound| {
            let entry = entries.get(old.child_name(old.entries[bound.entry].target));
            bound.entry = entry.copied().unwrap_or(0);
            orphans.extend(entry.is_none().then_some(*tid));
            entry.is_some()
        });
        orphans
    }

    /// Events of the loader itself, after what was collected so far.
    pub(crate) fn tell(&mut self, events: &[Event]) {
        let mut list = self.events.borrow_mut();
        events.iter().for_each(|event| list.extend_from_slice(&event.to_bytes()));
    }

    /// Take over what the kernel side has told, and free what dead threads left.
    pub(crate) fn collect(&mut self) -> Result<()> {
        self.rings[0].drain(Duration::MAX)?;
        self.rings[1].drain(Duration::MAX)?;
        self.reap()
    }

    /// Look at those whose place may be another than under the old plan: each look is some ten system calls.
    pub(crate) fn match_again(&mut self, old: &Plan) -> Result<()> {
        let mut again = std::mem::take(&mut self.homeless);
        let all = std::mem::take(&mut self.forgotten);
        let new = self.plan.new_entries(old).filter(|_| !all);
        let named = |new: &Vec<usize>| {
            let tids: Option<Vec<_>> = new.iter().map(|&entry| self.plan.entries[entry].tids()).collect();
            tids.map(|tids| tids.concat())
        };
        let (Some(named), Some(new)) = (new.as_ref().and_then(named), &new) else { return self.match_all() };
        again.extend(named);
        again.extend(self.bound.iter().filter(|(_, bound)| new.contains(&bound.entry)).map(|(tid, _)| *tid));
        again.into_iter().try_for_each(|tid| self.match_thread(tid))
    }

    pub(crate) fn match_all(&mut self) -> Result<()> {
        for tid in threads::all() {
            self.match_thread(tid)?;
        }
        Ok(())
    }

    /// The thread may not run where its place is. It is in the default node until that changes.
    fn lost_place(&mut self, tid: u32, error: tierce_policy::Error) {
        self.bound.remove(&tid);
        let live = Proc::default().look(tid);
        if let Some((entry, live)) = live.and_then(|live| Some((self.plan.entry_of(&live.thread)?, live))) {
            self.notice(&live.thread, entry, dry_run::may_run(&live, error));
        }
    }

    /// The user should know, once. (Threads are forgotten at times, so that this does not grow for ever.)
    fn notice(&mut self, thread: &Thread, entry: usize, why: String) {
        if self.noticed.len() >= 4096 {
            self.noticed.clear();
            self.forgotten = true;
        }
        if self.noticed.insert((thread.tid, entry), why.clone()).as_ref() != Some(&why) {
            let target = self.plan.child_name(self.plan.entries[entry].target).to_string();
            self.notices.push(Notice { tid: thread.tid, comm: thread.comm.clone(), target, why });
        }
    }

    /// Look at a thread again: it is new, or its name, program, class, … changed.
    fn match_thread(&mut self, tid: u32) -> Result<()> {
        let looked = self.looked.take().filter(|live| live.thread.tid == tid);
        let Some(live) = looked.or_else(|| Proc::default().look(tid)) else {
            self.bound.remove(&tid);
            return Ok(());
        };
        let Some(entry) = self.plan.entry_of(&live.thread) else { return self.unbind(tid) };
        if let Some(why) = dry_run::outside(&live) {
            self.bound.remove(&tid);
            self.notice(&live.thread, entry, why);
            return Ok(());
        }
        if self.bound.get(&tid).is_some_and(|bound| bound.entry == entry) {
            return Ok(());
        }
        let place = self.place(&live, entry)?;
        let thread = live.thread;
        match place {
            Ok(leaf) => {
                let before = self.kernel.leaf(leaf);
                self.bound.insert(tid, Bound { entry, leaf, before: (before.job, before.misses) });
                // A sleeping thread moves when it wakes, a waiting one now; one that cannot be requeued at its next block.
                let _ = threads::requeue(tid);
            }
            Err(why) if why == GONE => {}
            Err(why) => self.notice(&thread, entry, why),
        }
        Ok(())
    }

    /// A thread has begun with a leaf like its parent's: it stays there if that is what it matches.
    fn match_born(&mut self, tid: u32, leaf: u32) -> Result<()> {
        let Some(live) = Proc::default().look(tid) else { return Ok(()) };
        let Some(entry) = self.plan.entry_of(&live.thread) else {
            self.kernel.bind(tid, 0, false)?;
            let _ = threads::requeue(tid);
            return Ok(());
        };
        let has_it = [0, tid].contains(&self.kernel.leaf(leaf).pid);
        if has_it && self.way_of(leaf, self.plan.entries[entry].target).is_some() {
            self.bound.retain(|_, bound| bound.leaf != leaf); // of a thread that is gone
            self.bound.insert(tid, Bound { entry, leaf, before: (0, 0) });
            return Ok(());
        }
        self.match_thread(tid)
    }

    /// The edges of this set that the leaf has, if it has them.
    pub(crate) fn way_of(&self, leaf: u32, target: Child) -> Option<&[Edge]> {
        let Child::Set(set) = target else { return None };
        self.plan.sets[set].ways().find(|way| self.has_edges(leaf, way))
    }

    fn has_edges(&self, leaf: u32, under: &[Edge]) -> bool {
        let mut edge = self.kernel.node(leaf).first_parent;
        for wanted in under {
            let has = self.kernel.edge(edge);
            let (parent, family) = (self.ids.nodes[wanted.parent], |node| self.kernel.node(node).family);
            let moved =
                wanted.spread && has.flags & raw::EDGE_SPREAD != 0 && family(has.parent) == family(parent);
            let same = (has.parent == parent || moved)
                && has.param == wanted.params
                && has.rank == wanted.rank
                && (has.flags & raw::EDGE_WHEN_SPENT != 0) == wanted.when_spent;
            if edge == 0 || !same {
                return false;
            }
            edge = has.next_parent;
        }
        edge == 0
    }

    /// Give a thread the leaf that its entry says; why not, if it does not get one.
    fn place(&mut self, live: &threads::Live, entry: usize) -> Result<Result<u32, String>> {
        let gone = Ok(Err(GONE.to_string()));
        let thread = &live.thread;
        match self.plan.entries[entry].target {
            Child::Task(task) => {
                let leaf = self.ids.tasks[task];
                let holder = self.kernel.leaf(leaf).pid;
                let promised = self.bound.iter().find(|(_, bound)| bound.leaf == leaf).map(|(tid, _)| *tid);
                let taken = [holder, promised.unwrap_or(0)]
                    .into_iter()
                    .find(|tid| *tid != 0 && threads::look(*tid).is_some());
                if let Some(other) = taken.filter(|other| *other != thread.tid) {
                    return Ok(Err(format!("thread {other} has it: a task is one thread, a set takes all")));
                }
                self.bound.retain(|_, bound| bound.leaf != leaf);
                if !self.kernel.bind(thread.tid, leaf, false)? {
                    return gone;
                }
                Ok(Ok(leaf))
            }
            Child::Set(set) => {
                let leaf = match self.member(set, live.allowed)? {
                    Ok(leaf) => leaf,
                    Err(why) => return Ok(Err(why)),
                };
                self.kernel.follow_jobs(leaf, self.plan.job_deadline_ns(Child::Set(set)));
                if !self.kernel.bind(thread.tid, leaf, true)? {
                    self.abandon(leaf);
                    return gone;
                }
                self.bound.retain(|_, bound| bound.leaf != leaf); // of a thread that is gone
                Ok(Ok(leaf))
            }
            Child::Node(_) => Ok(Err("a node takes no threads".to_string())),
        }
    }

    /// A leaf with the edges of a set: of several ways that of which least is used, or the next one that admits it.
    fn member(&mut self, set: usize, allowed: u64) -> Result<Result<u32, String>> {
        let plan = self.plan.clone();
        let affinity = plan.sets[set].affinity.unwrap_or(u64::MAX);
        let below = |node: usize| {
            let (kernel, parent) = (&self.kernel, self.ids.nodes[node]);
            let edges = (1..kernel.edges_used()).map(|edge| kernel.edge(edge));
            edges.filter(move |edge| edge.parent == parent && edge.child != 0).map(|edge| edge.param)
        };
        let ways = dry_run::where_it_may_run(&plan, plan.ways(set, below), allowed);
        let mut refused = None;
        for under in ways {
            let leaf = match (&self.kernel).node_new(TASK, 1, affinity, Default::default()) {
                Ok(leaf) => leaf,
                Err(_) => return Ok(Err("the pool of nodes is used up".to_string())),
            };
            let mut why = None;
            for edge in under {
                why = self.attach(leaf, edge)?.err();
                if why.is_some() {
                    break;
                }
            }
            match why {
                None => return Ok(Ok(leaf)),
                Some(why) => drop(refused.get_or_insert(why)),
            }
            self.abandon(leaf);
        }
        Ok(Err(refused.unwrap_or_default()))
    }

    fn attach(&mut self, leaf: u32, edge: &tierce_plan::Edge) -> Result<Result<u32, String>> {
        let parent = self.ids.nodes[edge.parent];
        let mut kernel = &self.kernel;
        let Ok(id) = kernel.edge_new(parent, leaf, edge.rank, edge.way()) else {
            return Ok(Err("the pool of edges is used up".to_string()));
        };
        if let Err(refusal) = kernel.attach(id, edge.params) {
            let _ = kernel.detach(id);
            let parent = &self.plan.nodes[edge.parent];
            let name = if edge.spread { &parent.base } else { &parent.name };
            return Ok(Err(format!("below {name}: {refusal}")));
        }
        Ok(Ok(id))
    }

    pub(crate) fn abandon(&mut self, leaf: u32) {
        let mut kernel = &self.kernel;
        for _ in 0..64 {
            let edge = kernel.node(leaf).first_parent;
            if edge == 0 || kernel.detach(edge).is_err() {
                break;
            }
        }
        let _ = kernel.node_free(leaf);
    }

    /// Take in what happened: news of threads, events, entries. Call a few times a second at least. `keep` gets the
    /// events, 32 bytes each, then the recorded entries, 48 bytes each.
    pub fn turn(&mut self, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.looked = None;
        self.read(READ_MAX, keep)?;
        let all = self.hear_all()?;
        self.read(READ_MAX, keep)?;
        self.behind |= !all;
        Ok(())
    }

    /// Another object's rings from now on, after all that the old one's have.
    pub(crate) fn hear_from(&mut self, kernel: Kernel) -> Result<Kernel> {
        let rings = rings(&kernel, [&self.events, &self.entries], &self.news)?;
        for ring in &mut self.rings {
            ring.drain(Duration::MAX)?;
        }
        self.rings = rings;
        Ok(std::mem::replace(&mut self.kernel, kernel))
    }

    /// Hear of threads, as long as that takes at most; whether that was all. What else has happened is taken in by the next turn.
    pub(crate) fn hear_all(&mut self) -> Result<bool> {
        let all = self.rings[2].drain(READ_MAX)?;
        let news = std::mem::take(&mut *self.news.borrow_mut());
        let side = self.kernel.side();
        if side.missed != self.missed {
            self.missed = side.missed;
            self.match_lost()?;
            self.match_all()?;
        } else {
            self.hear(&news)?;
        }
        self.reap()?;
        Ok(all)
    }

    /// News, in the order in which they were told. Of what changed of one thread the last counts.
    fn hear(&mut self, news: &[News]) -> Result<()> {
        let (mut changed, mut born, mut other) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for item in news {
            match item.kind & 0xff {
                NEWS_THREAD | NEWS_EXEC | NEWS_NAME => {
                    changed.insert(item.id, item);
                    if item.kind >> 8 != 0 {
                        born.insert(item.id, item.kind >> 8);
                    }
                }
                _ => _ = other.insert((item.kind, item.id)),
            }
        }
        for (tid, seen) in changed {
            match born.get(&tid) {
                Some(&leaf) => self.match_born(tid, leaf)?,
                None if self.may_match(seen) => self.match_thread(tid)?,
                None => self.unbind(tid)?,
            }
        }
        let mut cpus = false;
        for (kind, id) in other {
            match kind & 0xff {
                NEWS_CPU => cpus = true,
                NEWS_PROCESS => threads::of(id).into_iter().try_for_each(|tid| self.match_thread(tid))?,
                NEWS_LOST if kind >> 8 != 0 => self.lost_place(id, tierce_policy::Error(kind >> 8)),
                _ => {
                    self.bound.remove(&id);
                    self.match_thread(id)?;
                }
            }
        }
        if cpus {
            self.cpus_changed()?;
        }
        Ok(())
    }

    /// Whether a thread may match something, with as little of /proc as it takes to know that it does not.
    fn may_match(&self, news: &News) -> bool {
        let end = news.comm.iter().position(|&byte| byte == 0).unwrap_or(news.comm.len());
        let comm = String::from_utf8_lossy(&news.comm[..end]);
        // Kernel threads have longer names in /proc.
        let comm = (!news.is_kthread).then_some(&*comm);
        let (tid, pid, is_kthread) = (news.id, news.pid, news.is_kthread);
        let pcomm = comm.filter(|_| pid == tid);
        let mut seen = Glimpse { comm, pcomm, exe: None, cgroup: None, tid, pid, is_kthread };
        if !self.plan.may_match(&seen) {
            return false;
        }
        if !self.plan.matchers().any(|matcher| matcher.cgroup.is_some() || matcher.unit.is_some()) {
            return true;
        }
        let cgroup = Proc::default().cgroup(tid);
        seen.cgroup = cgroup.as_deref();
        self.plan.may_match(&seen)
    }

    /// The thread matches nothing.
    fn unbind(&mut self, tid: u32) -> Result<()> {
        if self.bound.remove(&tid).is_some() && self.kernel.bind(tid, 0, false)? {
            let _ = threads::requeue(tid);
        }
        Ok(())
    }

    /// More has happened than the last turn took in: it should not be long to the next.
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// A CPU came or went. What waits on one that goes keeps it from going: every thread is queued anew. Threads of a
    /// task whose CPU is gone are in the default node meanwhile, and come back with it.
    fn cpus_changed(&mut self) -> Result<()> {
        for id in 1..self.kernel.nodes_used() {
            match self.kernel.leaf(id).pid {
                0 => {}
                tid => _ = threads::requeue(tid),
            }
        }
        self.match_lost()
    }

    /// Threads that are not where they were bound to.
    fn match_lost(&mut self) -> Result<()> {
        let lost: Vec<u32> = self
            .bound
            .iter()
            .filter(|(tid, bound)| self.kernel.leaf(bound.leaf).pid != **tid)
            .map(|(tid, _)| *tid)
            .collect();
        for tid in lost {
            self.bound.remove(&tid);
            self.match_thread(tid)?;
        }
        Ok(())
    }

    /// The CPUs where a thread may run, a bit each; or why a plan cannot rule it.
    pub fn can_rule(&mut self, tid: u32) -> Result<u64, String> {
        self.looked = Proc::default().look(tid);
        match &self.looked {
            Some(live) => dry_run::outside(live).map_or(Ok(live.allowed), Err),
            None => Err(GONE.into()),
        }
    }

    /// Events and entries only, all that there are.
    pub fn drain(&mut self, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.read(Duration::MAX, keep)
    }

    fn read(&mut self, longest: Duration, keep: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let records = self.rings[0].drain(longest)?;
        let entries = self.rings[1].drain(longest)?;
        self.behind = !records || !entries;
        let side = self.kernel.side();
        let mut bytes = std::mem::take(&mut *self.events.borrow_mut());
        if side.lost != self.lost {
            let value = side.lost - self.lost;
            self.lost = side.lost;
            let kind = tierce_trace::Kind::Lost as u16;
            let event = Event { now_ns: now_ns(), kind, cpu: 0, a: 0, b: 0, pad: 0, value };
            bytes.extend_from_slice(&event.to_bytes());
        }
        let mut entries = self.entries.borrow_mut();
        keep(&bytes, &entries)?;
        entries.clear();
        for chunk in bytes.chunks_exact(32) {
            let seen = self.renumber.event(&Event::from_bytes(chunk.try_into().context("an event")?));
            match &seen {
                Seen::Event(event) => self.stats.event(event),
                Seen::Change(change) => self.stats.change(change),
                Seen::Nothing => {}
            }
            if let Some(measure) = &mut self.measure {
                measure.seen(seen);
            }
        }
        bytes.clear();
        *self.events.borrow_mut() = bytes;
        Ok(())
    }

    /// Leaves whose threads are gone, and that were not freed at once.
    fn reap(&mut self) -> Result<()> {
        let dead = self.kernel.side().dead;
        if dead == self.dead {
            return Ok(());
        }
        self.dead = dead;
        for id in 1..self.kernel.nodes_used() {
            while self.kernel.leaf(id).dead != 0 && !self.kernel.reap(id, false)? {
                if self.kernel.node(id).first_parent == 0 {
                    self.dead = u64::MAX; // try again next time
                    break;
                }
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Measure jitters and overheads from now on; `epoch_ns` as in [`Measure::new`].
    pub fn measure(&mut self, epoch_ns: Option<u64>) {
        self.measure = Some(Measure::new(self.header(), epoch_ns));
    }

    /// What has been measured up to now, if something is.
    pub fn measured(&self) -> Option<Measure> {
        let mut measure = self.measure.clone()?;
        measure.finish(now_ns());
        Some(measure)
    }

    /// The statistics up to now.
    pub fn report(&self) -> Report {
        let mut stats = self.stats.clone(); // what runs is charged up to now in a copy: its events are yet to come
        for cpu in 0..self.kernel.options().cpus {
            let state = self.kernel.cpu(cpu);
            let switches = stats.cpu(cpu).map_or(0, |cpu| cpu.switches);
            // The kernel side counts from the making of the graph, when all was idle.
            let counted_ns = state.used_ns.saturating_add(state.idle_ns).saturating_add(state.stolen_ns);
            let began_ns = state.charged_ns.saturating_sub(counted_ns);
            let idle_ns = state.idle_ns.saturating_sub(self.start_ns.saturating_sub(began_ns));
            stats.set_cpu_usage(cpu, state.used_ns, idle_ns, state.stolen_ns, switches);
        }
        if self.kernel.options().trace_kinds >> Kind::Decision as u16 & 1 == 0 {
            self.count(&mut stats);
        }
        stats.finish(now_ns());
        Report { contention: self.contention(), ..stats.report() }
    }

    /// How CPUs got into each other's way, if that is counted.
    fn contention(&self) -> Option<Contention> {
        let options = self.kernel.options();
        let lock = |cpu: Option<u32>| {
            let LockSide { taken, taken_over, waited, wait_ns, held_ns, .. } = self.kernel.lock_side(cpu);
            let held_ns = cpu.is_none().then_some(held_ns);
            LockUse { cpu, taken, contended: Some(Contended { taken_over, waited, wait_ns, held_ns }) }
        };
        let kicks = |cpu| {
            let side = self.kernel.cpu_side(cpu);
            KickUse { cpu, decisions: side.kicks, vain: side.vain_kicks }
        };
        options.count_contention.then(|| Contention {
            locks: (0..options.cpus).map(Some).chain([None]).map(lock).collect(),
            kicks: (0..options.cpus).map(kicks).collect(),
        })
    }

    /// What the kernel side holds.
    pub fn held(&self) -> Held {
        let leaves = (1..self.kernel.nodes_used()).map(|id| self.kernel.leaf(id));
        let part = |ids: &[u32]| ids.iter().filter(|id| **id != 0).count() as u32;
        Held {
            used: self.kernel.pools(),
            plan: Pools {
                nodes: part(&self.ids.nodes) + part(&self.ids.tasks),
                edges: part(&self.ids.edges) + self.ids.roots.len() as u32,
            },
            threads: leaves.filter(|leaf| leaf.own != 0 && threads::exists(leaf.pid)).count() as u32,
        }
    }

    /// What the engine counted, where the records do not tell.
    fn count(&self, stats: &mut Stats) {
        for id in 1..self.kernel.nodes_used() {
            let node = self.kernel.node(id);
            if node.kind == TASK {
                let (switches, migrations) = (node.switches.into(), node.migrations.into());
                stats.set_task_usage(self.renumber.thing(id), node.ran_ns, switches, migrations);
            }
        }
        for id in 1..self.kernel.edges_used() {
            let edge = self.kernel.edge(id);
            if edge.child != 0 {
                let (grants, throttles) = (edge.grants.into(), edge.throttles.into());
                stats.set_edge_usage(
                    self.renumber.edge(id),
                    edge.supply_ns,
                    grants,
                    throttles,
                    edge.forgiven_ns,
                );
            }
        }
    }

    /// When it began, CLOCK_MONOTONIC.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Why the kernel ended it, if it did.
    pub fn ended(&self) -> Option<crate::kernel::Exit> {
        self.kernel.exit()
    }

    /// Back to the default scheduler; the kernel side is empty again, for another plan.
    pub fn release(mut self) -> Result<Kernel> {
        self.kernel.reset()?;
        Ok(self.kernel)
    }

    /// Back to the default scheduler; what was there is still to be looked at.
    pub fn stop(&mut self) {
        self.kernel.detach();
    }
}

/// Records, entries and news of an object, as they come.
fn rings(
    kernel: &Kernel,
    bytes: [&Rc<RefCell<Vec<u8>>>; 2],
    news: &Rc<RefCell<Vec<News>>>,
) -> Result<[Ring; 3]> {
    let into = |sink: &Rc<RefCell<Vec<u8>>>| {
        let sink = sink.clone();
        Box::new(move |bytes: &[u8]| sink.borrow_mut().extend_from_slice(bytes))
    };
    let sink = news.clone();
    let take = move |bytes: &[u8]| sink.borrow_mut().extend(News::from_bytes(bytes));
    Ok([
        kernel.ring("records", into(bytes[0]))?,
        kernel.ring("entries", into(bytes[1]))?,
        kernel.ring("news", Box::new(take))?,
    ])
}

/// The plan's graph, without members of sets.
fn build(plan: &Plan, kernel: &Kernel) -> Result<Ids> {
    let ids = plan.build(&mut &*kernel, Members::Live)?;
    for (task, &id) in ids.tasks.iter().enumerate().filter(|(_, id)| **id != 0) {
        kernel.follow_jobs(id, plan.job_deadline_ns(Child::Task(task)));
    }
    let default = plan.default_node.context("the plan has no default node")?;
    let (params, nice) = plan.default_params();
    kernel.set_default(ids.nodes[default], params, nice)?;
    Ok(ids)
}
