//! A plan, enforced: its graph in the kernel, its threads bound to it.

mod contained;
mod matching;
pub(crate) mod news;
mod placing;
mod queue;
mod reading;
mod report;
mod rings;
mod step;
mod unmatched;
mod unwritten;

use crate::chains::bounded;
use crate::checksums::Checksums;
use crate::classes::Classes;
pub use crate::classes::Guardian;
use crate::copies::Copies;
use crate::host;
use crate::kernel::{Kernel, Options, Pools};
use crate::moment::Moment;
use crate::object::Ring;
use crate::threads::{self, Proc};
use anyhow::{Context, Result};
use news::News;
use queue::Queue;
use rings::Backlog;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;
use tierce_plan::{By, Child, Edge, Fit, Ids, Matcher, Members, Plan, Standing};
use tierce_policy::Refusal;
use tierce_trace::{Chains, Kind, Measure, Renumber, Source, Stats, Tally, TraceHeader};

/// What a thread was bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    entry: usize,
    /// By which of its matches.
    by: usize,
    pub(crate) leaf: u32,
    /// What its leaf had counted before: jobs, misses.
    before: (u32, u32),
}

/// The event `match_left_out`: a thread matches, but is not where the plan wants it. And `match_ended`: it does not match any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// Task or set that it matches, or matched.
    pub target: String,
    /// By which keys and values of the plan.
    pub by: String,
    /// Why it is not there.
    pub why: String,
}

/// A thread that is left out.
#[derive(Clone, Debug)]
struct Out {
    entry: usize,
    about: LeftOut,
    /// Another thread has the place: it gets it when that goes. How it fits, and when it began.
    waits: Option<(Fit, u64)>,
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

/// A running plan.
pub struct Live {
    plan: Rc<Plan>,
    /// One more with each change of the plan in force; another number than any of another run.
    revision: u64,
    ids: Ids,
    pub(crate) bound: HashMap<u32, Bound>,
    /// By thread.
    left_out: HashMap<u32, Out>,
    /// How often a thread was left out.
    times_left_out: u64,
    /// Threads that have been sent away, and are to be looked at with the next plan.
    homeless: BTreeSet<u32>,
    /// Not all who found no place are known any more.
    forgotten: bool,
    /// Threads that have left their real-time class for their place.
    classes: Classes,
    /// Who has which copy of what the plan has for each user or cgroup.
    copies: Copies,
    /// Of executables by which the plan matches.
    checksums: Checksums,
    /// A thread that was looked at since the last turn: what changes of it is news of the next.
    looked: Option<threads::Live>,
    /// What was done to the plan and is not in its text yet.
    unwritten: Option<unwritten::Unwritten>,
    notices: Vec<LeftOut>,
    unmatched: unmatched::Unmatched<LeftOut>,
    stats: Stats,
    measure: Option<Measure>,
    /// How long the chains of the plan take.
    chains: Option<Chains>,
    renumber: Renumber,
    events: Rc<RefCell<Backlog>>,
    entries: Rc<RefCell<Vec<u8>>>,
    pub(crate) news: Rc<RefCell<Vec<News>>>,
    /// News that are not taken in yet.
    pub(crate) waiting: Queue,
    /// Some of them are left of the last turn.
    hears_more: bool,
    /// From when on those who wait for a place are thought of again.
    fills: Instant,
    /// Records, entries, news.
    rings: [Ring; 3],
    lost: u64,
    missed: u64,
    /// Threads of which the kernel side was not run to tell.
    skipped: u64,
    /// When these two are looked up again.
    counts: Instant,
    /// More records are to be read.
    behind: bool,
    dead: u64,
    /// The leaf with which the search for dead threads begins.
    reaped: u32,
    start_ns: u64,
    /// What threads outside the graph had run before, by their number.
    ran_before: HashMap<u32, u64>,
    /// Of the snapshots.
    pub(crate) tally: Tally,
    /// The last snapshot's, for its memory.
    pub(crate) moment: Moment,
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
        let events = Rc::new(RefCell::new(Backlog::default()));
        let entries = Rc::new(RefCell::new(Vec::new()));
        let news = Rc::new(RefCell::new(Vec::new()));
        let rings = rings::rings(&kernel, (&events, &entries), &news)?;
        let outside = Proc::default().all().into_iter().filter(|live| live.is_outside());
        let ran_before =
            outside.filter_map(|live| Some((live.thread.tid, threads::ran_ns(live.thread.tid)?)));
        let ran_before = ran_before.collect();
        let start_ns = now_ns();
        let header = TraceHeader { start_ns, ..TraceHeader::of(&plan, &ids, Source::Run) };
        let stats = Stats::new(&header);
        let told = kernel.options().trace_kinds >> Kind::Decision as u16 & 1 == 1;
        let chains = told.then(|| Chains::new(&header, bounded(&plan), None));
        kernel.attach()?;
        let renumber = Renumber::new(&header);
        let mut live = Live {
            plan: Rc::new(plan),
            revision: start_ns,
            ids,
            bound: HashMap::new(),
            left_out: HashMap::new(),
            times_left_out: 0,
            homeless: BTreeSet::new(),
            forgotten: false,
            classes: Classes::default(),
            copies: Copies::default(),
            checksums: Checksums::default(),
            looked: None,
            unwritten: None,
            notices: Vec::new(),
            unmatched: unmatched::Unmatched::default(),
            stats,
            measure: None,
            chains,
            renumber,
            events,
            entries,
            news,
            waiting: Queue::default(),
            hears_more: false,
            fills: Instant::now(),
            rings,
            lost: 0,
            missed: 0,
            skipped: 0,
            counts: Instant::now(),
            behind: false,
            dead: 0,
            reaped: 1,
            start_ns,
            ran_before,
            tally: Tally::default(),
            moment: Moment::default(),
            kernel,
        };
        live.guard_classes()?;
        live.kernel.forget_told(); // by a loader that has ended meanwhile
        live.match_all()?;
        Ok(live)
    }

    /// The plan.
    pub fn plan(&self) -> &Rc<Plan> {
        &self.plan
    }

    /// Another number means that the plan in force has changed.
    pub fn revision(&self) -> u64 {
        self.revision
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

    /// Who was left out since last asked.
    pub fn take_left_out(&mut self) -> Vec<LeftOut> {
        std::mem::take(&mut self.notices)
    }

    /// Who no longer matches, since last asked.
    pub fn take_unmatched(&mut self) -> Vec<LeftOut> {
        self.unmatched.take()
    }

    /// The number of the last one, and those after `number`, of which the last 256 are known.
    pub fn unmatched_after(&self, number: u64) -> (u64, Vec<&LeftOut>) {
        self.unmatched.after(number)
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

    /// By which keys and values of the plan a bound thread matches.
    pub fn matched_by(&self, tid: u32) -> Option<&Matcher> {
        let bound = self.bound.get(&tid)?;
        self.plan.entries[bound.entry].any.get(bound.by)
    }

    /// Copies of nodes that belong to a user or a cgroup that is there: the name, what it is for, and whose it is.
    pub fn copies(&self) -> Vec<(String, By, String)> {
        let mut list = self.copies.owned(&self.plan);
        list.retain(|(_, by, whose)| *by != By::Cgroup || host::is_cgroup(whose, Path::new("/")));
        list
    }

    /// Threads that match and are not where the plan wants them; and how often that has happened to any.
    pub fn left_out(&self) -> (Vec<&LeftOut>, u64) {
        let there = self.left_out.values().map(|out| &out.about).filter(|about| threads::exists(about.tid));
        let mut there: Vec<_> = there.collect();
        there.sort_by_key(|about| about.tid);
        (there, self.times_left_out)
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
        let leaf = self.leaf_of(tid)?;
        let answer = self.kernel.constrain(leaf, work_ns, within_ns);
        if answer.is_ok() && self.lost_constraint(leaf) {
            return Some(self.kernel.constrain(leaf, work_ns, within_ns));
        }
        Some(answer)
    }

    /// Did the thread fall asleep just after it was given one, to wait for the answer?
    fn lost_constraint(&self, leaf: u32) -> bool {
        const PARENTS_MAX: usize = 64;
        const ASLEEP: usize = 4; // of what the policy keeps: it has asked while it slept
        let node = self.kernel.node(leaf);
        let above = |id: u32| Some(self.kernel.edge(id)).filter(|_| id != 0);
        let parents = std::iter::successors(above(node.first_parent), |edge| above(edge.next_parent));
        node.servable == 0 && parents.take(PARENTS_MAX).all(|edge| edge.policy[ASLEEP] as u32 == 0)
    }

    /// End it.
    pub fn unconstrain(&self, tid: u32) -> Option<Result<(), Refusal>> {
        Some(self.kernel.unconstrain(self.leaf_of(tid)?))
    }

    /// Task or set and leaf of each bound thread.
    pub(crate) fn targets(&self) -> Vec<(Child, u32)> {
        self.bound.values().map(|bound| (self.plan.entries[bound.entry].target, bound.leaf)).collect()
    }

    /// The CPUs that were chosen for tasks and for threads of sets. Only threads below `per_cpu` nodes take room from what is placed
    /// there; of others there may be any number.
    pub fn standing(&self) -> Standing {
        let mut standing = Standing::of(&self.plan);
        let node = |edge: &Edge| &self.plan.nodes[edge.parent];
        let is_per_cpu = |edge: &Edge| node(edge).replica.is_some() && node(edge).family.is_none();
        let takes_room = self.plan.sets.iter().map(|set| set.ways().flatten().any(is_per_cpu));
        let takes_room: Vec<bool> = takes_room.collect();
        if !takes_room.contains(&true) {
            return standing;
        }
        for (target, leaf) in self.targets() {
            let Child::Set(set) = target else { continue };
            if let (true, Some(way)) = (takes_room[set], self.way_of(leaf, target)) {
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
        self.unwritten = None;
        let old = std::mem::replace(&mut self.plan, plan);
        self.revision += 1;
        self.ids = ids;
        self.copies.keep(&self.plan);
        let stays = |entry: &mut usize| {
            let new = entries.get(old.child_name(old.entries[*entry].target));
            *entry = new.copied().unwrap_or(0);
            new.is_some()
        };
        let mut orphans = Vec::new();
        self.bound.retain(|tid, bound| {
            let stays = stays(&mut bound.entry);
            orphans.extend((!stays).then_some(*tid));
            stays
        });
        let homeless = &mut self.homeless;
        self.left_out.retain(|tid, out| {
            let stays = stays(&mut out.entry);
            homeless.extend((!stays).then_some(*tid));
            stays
        });
        orphans
    }

    /// When it began, CLOCK_MONOTONIC.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Why the kernel ended it, if it did.
    pub fn ended(&self) -> Option<crate::kernel::Exit> {
        self.kernel.exit()
    }

    /// Back to the default scheduler; the kernel side is empty again, for another plan.
    pub fn release(mut self) -> Result<Kernel> {
        self.kernel.reset()?;
        self.classes.give_all_back();
        Ok(self.kernel)
    }

    /// Back to the default scheduler; what was there is still to be looked at.
    pub fn stop(&mut self) {
        self.kernel.detach();
        self.classes.give_all_back();
    }
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
