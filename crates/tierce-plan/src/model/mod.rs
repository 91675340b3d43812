//! The resolved plan: what the parser hands to the checker, the simulator and the loader.
//!
//! Everything is expanded and in the order of the text, which fixes ids and ties: a `per_cpu` node is one [`Node`] per
//! replica (`rt@0`, `rt@1`), a set of tasks is one [`Task`] per member (`worker[3]`). Parameters are filled in with
//! their presets, so that `params` can be given to the engine as they are. Times are nanoseconds, names end in `_ns`.
//!
//! How a consumer builds the graph:
//!
//! 1. create every node and task, in order; create every edge of [`Plan::edges`], in order (ids decide ties);
//! 2. attach in the order of [`Plan::attach_order`]: CPU roots first, every parent of a node before its children.
//!
//! Tasks of sets exist in [`Plan::tasks`] for those who play them (check, sim). A live run binds threads as they come
//! and uses [`TaskSet::under`] for each new member instead.

pub mod any_cpu;
pub mod chain;
pub mod checksum;
pub mod for_each;
pub mod glob;
pub mod load;
pub mod lock;
pub mod realtime;
pub mod region;
pub mod shape;
pub mod topology;
mod triggers;
pub mod trust;

pub use chain::{Chain, Latency, Link, Within, MARK_BYTES};
pub use checksum::Checksum;
pub use for_each::{By, Copied, ForEach};
pub use load::*;
pub use lock::{Lock, Protocol, Section};
pub use realtime::{Class, MatchClass, RealTime};
pub use region::{Preemption, Region};

use crate::model::topology::{Distance, Topology};
use crate::text::source::{Sources, Spot};
use std::collections::BTreeMap;
use std::sync::Arc;
use tierce_guarantee::Guarantee;
use tierce_policy::Cpus;

/// Number of parameters a node or an edge has at most.
pub const PARAMS: usize = tierce_policy::raw::EDGE_PARAMS;
/// Parameters of a node, at most.
pub const NODE_PARAMS: usize = tierce_policy::raw::NODE_PARAMS;

/// What a plan does not say itself.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// CPUs of the machine. Where the plan says how many it speaks of (`[machine] cpus`), there are at least those.
    pub cpus: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { cpus: 1 }
    }
}

/// A plan, parsed, validated and expanded.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As given: a path or a name for text without one.
    pub name: String,
    /// The texts it was read from, for messages.
    pub sources: Sources,
    /// CPUs, costs and interrupts.
    pub machine: Machine,
    /// Options of a live run.
    pub run: RunOptions,
    /// Schedulers, in the order of the text, replicas together.
    pub nodes: Vec<Node>,
    /// Leaves, in the order of the text, members of a set together.
    pub tasks: Vec<Task>,
    /// Sets of tasks, in the order of the text.
    pub sets: Vec<TaskSet>,
    /// What sections of loads hold, in the order of the text.
    pub locks: Vec<Lock>,
    /// Tasks that follow each other, in the order of the text.
    pub chains: Vec<Chain>,
    /// Edges to nodes and tasks, in the order of the text. Edges from a CPU to its root are not among them: see
    /// [`Node::roots`].
    pub edges: Vec<Edge>,
    /// Which live threads belong to which task or set, in the order of the text; the first entry that matches wins.
    pub entries: Vec<MatchEntry>,
    /// Nodes of which there are copies, in the order of the text.
    pub for_each: Vec<ForEach>,
    /// Index of the node for threads that match nothing. The first replica when the node is replicated.
    pub default_node: Option<usize>,
    /// Parameters of the edge that each unmatched thread gets below the default node.
    pub each: Option<Each>,
    /// `[defaults.POLICY]`: values that stand in for presets.
    pub(crate) defaults: Defaults,
}

/// By policy and parameter.
pub(crate) type Defaults = BTreeMap<(&'static str, &'static str), u64>;

/// What remains of a CPU.
#[derive(Clone, Debug)]
pub struct Left {
    /// As a guarantee.
    pub guarantee: Guarantee,
    /// In words.
    pub because: String,
}

/// `[machine]`.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Number of CPUs, 1 to 512; they are 0 .. cpus-1.
    pub cpus: u32,
    /// CPUs that the plan speaks of (`[machine] cpus`): those of `per_cpu = true`, `cpus = "all"` and `spread = true`. There may
    /// be more.
    pub named: u32,
    /// Time to which releases (`phase`), interrupts and slots are relative.
    pub epoch_ns: u64,
    /// Periodic jobs come exactly at the phases of their loads, and check may rely on it.
    pub phases_known: bool,
    /// Which CPUs are near each other, where the plan says so.
    pub topology: Option<Topology>,
    /// What scheduling costs, in the simulator and in every test.
    pub costs: Costs,
    /// What steals time in the simulator.
    pub interrupts: Vec<Interrupt>,
    /// Switches per second on a CPU of which more are worth a warning.
    pub switches_max: u64,
    /// What is left of each CPU on the machine at hand; empty: all of it.
    pub left: Vec<Left>,
}

impl Machine {
    /// Which CPUs are near each other: as the plan says, or as if it made no difference.
    pub fn topology(&self) -> Topology {
        self.topology.clone().unwrap_or_else(|| Topology::flat(self.cpus))
    }

    /// The most that a migration can cost.
    pub fn worst_migration_ns(&self) -> u64 {
        self.costs.migration.of(self.topology().widest())
    }
}

impl Default for Machine {
    fn default() -> Self {
        let costs = Costs::default();
        Self {
            cpus: 0,
            named: 0,
            epoch_ns: 0,
            phases_known: false,
            topology: None,
            costs,
            interrupts: Vec::new(),
            switches_max: 5_000,
            left: Vec::new(),
        }
    }
}

/// `[machine] costs`: CPU time that the scheduler itself takes; all 0 unless given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A CPU changes from one task to another.
    pub switch_ns: u64,
    /// A timer fires.
    pub timer_ns: u64,
    /// Added to a switch when the task last ran on another CPU.
    pub migration: MigrationCosts,
    /// Added to a switch for every node on the path from the CPU to the task.
    pub level_ns: u64,
}

/// What a migration costs, by distance. Never less for a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MigrationCosts {
    /// To an SMT sibling.
    pub smt_ns: u64,
    /// To another core with the same last-level cache.
    pub cache_ns: u64,
    /// To another cache of the same NUMA node.
    pub node_ns: u64,
    /// To another NUMA node.
    pub other_ns: u64,
}

impl MigrationCosts {
    /// Of that distance.
    pub fn of(&self, distance: Distance) -> u64 {
        match distance {
            Distance::Smt => self.smt_ns,
            Distance::Cache => self.cache_ns,
            Distance::Node => self.node_ns,
            Distance::Other => self.other_ns,
        }
    }
}

/// The same for every distance.
impl From<u64> for MigrationCosts {
    fn from(ns: u64) -> Self {
        MigrationCosts { smt_ns: ns, cache_ns: ns, node_ns: ns, other_ns: ns }
    }
}

/// One source of interrupts.
#[derive(Clone, Debug)]
pub struct Interrupt {
    /// CPU that it hits; `None`: every CPU, each with its own draw.
    pub cpu: Option<u32>,
    /// Distance between two, on average when they are random.
    pub every_ns: u64,
    /// CPU time each takes.
    pub takes: Work,
    /// First one after the epoch (periodic arrivals only).
    pub phase_ns: u64,
    /// How they arrive.
    pub arrival: Arrival,
    /// Where the plan says so.
    pub spot: Spot,
}

/// How interrupts arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Exactly every `every_ns`.
    Periodic,
    /// As a Poisson process of that mean distance, drawn from the seed of the run.
    Poisson,
}

/// `[run]`: options of a live run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// A runnable thread that waits longer is an error of the plan (kernel watchdog), at most 30 s.
    pub watchdog_ns: u64,
    /// Where a thread whose budget is spent is stopped.
    pub throttle: ThrottleAt,
    /// `locks = "inheritance"`: who has a lock runs in the place of who waits for it.
    pub inherits: bool,
    /// Files whose programs write marks: libraries by name, or absolute paths.
    pub marks: Vec<String>,
    /// What runs on CPUs for which the plan names no root.
    pub other_cpus: OtherCpus,
    /// Policies that a later change may need, a bit each by number; the kernel object is loaded with those of the plan and these.
    pub policies: u64,
    /// `trust = "names"` for all matches.
    pub trusts_names: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            watchdog_ns: 30_000_000_000,
            throttle: ThrottleAt::Anywhere,
            inherits: false,
            marks: Vec::new(),
            other_cpus: OtherCpus::Default,
            policies: 0,
            trusts_names: false,
        }
    }
}

/// Where a live thread whose budget is spent is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThrottleAt {
    /// At once, in the kernel too: precise budgets, but the thread may hold kernel locks meanwhile.
    #[default]
    Anywhere,
    /// On its way back to user mode: never holds kernel locks, what it overruns is debt.
    User,
}

/// What runs on CPUs for which the plan names no root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherCpus {
    /// A replica of the default node on each, if that is spread.
    #[default]
    Default,
    /// Nothing: a live plan is refused.
    Refuse,
}

/// A scheduler instance.
#[derive(Clone, Debug)]
pub struct Node {
    /// Unique; replicas are `name@cpu`.
    pub name: String,
    /// The name in the text, the same for all replicas.
    pub base: String,
    /// CPU of this replica when the node is `per_cpu` or spread.
    pub replica: Option<u32>,
    /// Of a replica of a spread node: index of its first replica into [`Plan::nodes`]. Tasks below the node move
    /// between its replicas.
    pub family: Option<usize>,
    /// Number of the policy (`tierce_policy::policies()`).
    pub policy: u32,
    /// Node parameters in the order of the policy's record, presets filled in.
    pub params: [u64; NODE_PARAMS],
    /// CPUs that may run it at once; 0: all that can reach it.
    pub concurrency: u32,
    /// CPUs whose root it is, ascending.
    pub roots: Vec<u32>,
    /// Whether unmatched threads belong here.
    pub default: bool,
    /// Guarantees that the node itself asks for.
    pub needs: Vec<Need>,
    /// Where it is defined.
    pub spot: Spot,
}

/// A leaf.
#[derive(Clone, Debug)]
pub struct Task {
    /// Unique; members of a set are `name[index]`.
    pub name: String,
    /// Index into [`Plan::sets`] when it is a member.
    pub set: Option<usize>,
    /// What it does in the simulator; `None`: it never asks for a CPU there.
    pub load: Option<Load>,
    /// CPUs it may run on, a bit each; `None`: all.
    pub affinity: Option<Cpus>,
    /// `job_deadline`: relative deadline of the jobs of its thread, in a live run. A load has its own.
    pub job_deadline_ns: Option<u64>,
    /// Guarantees that the task asks for; their form is known to be right.
    pub needs: Vec<Need>,
    /// Where it is defined.
    pub spot: Spot,
}

/// `[tasks.NAME]`: many tasks of one kind.
#[derive(Clone, Debug)]
pub struct TaskSet {
    /// Unique over nodes, tasks and sets.
    pub name: String,
    /// Its members in [`Plan::tasks`].
    pub members: std::ops::Range<usize>,
    /// The edges of a new member; their `child` is [`Child::Set`]. Columns of a `csv` apply to members only.
    pub under: Vec<Edge>,
    /// `cpu = "any"`: what `under` is on each other CPU where a member may be.
    pub elsewhere: Vec<Vec<Edge>>,
    /// Its load, where no `csv` says otherwise.
    pub load: Option<Load>,
    /// CPUs the members may run on, a bit each; `None`: all.
    pub affinity: Option<Cpus>,
    /// `job_deadline`: relative deadline of the jobs of each member, in a live run.
    pub job_deadline_ns: Option<u64>,
    /// Guarantees of each member.
    pub needs: Vec<Need>,
    /// Where it is defined.
    pub spot: Spot,
}

impl TaskSet {
    /// The edges that a new member may have: one of these ways.
    pub fn ways(&self) -> impl Iterator<Item = &[Edge]> {
        std::iter::once(&self.under).chain(&self.elsewhere).map(Vec::as_slice)
    }
}

/// A guarantee asked for: `needs = "RESBS 2ms 10ms"`.
#[derive(Clone, Debug)]
pub struct Need {
    /// As written.
    pub text: String,
    /// Where.
    pub spot: Spot,
}

/// What is below an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Child {
    /// Index into [`Plan::nodes`].
    Node(usize),
    /// Index into [`Plan::tasks`].
    Task(usize),
    /// Index into [`Plan::sets`]: a member not yet known (only in [`TaskSet::under`] and [`MatchEntry`]).
    Set(usize),
}

/// A virtual processor: parent to child.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Index into [`Plan::nodes`].
    pub parent: usize,
    /// What it leads to.
    pub child: Child,
    /// Edge parameters in the order of the parent policy's record, presets filled in.
    pub params: [u64; PARAMS],
    /// Which CPU gets a shared child; larger wins, between CPUs only.
    pub rank: i32,
    /// Enabled only while every unconditional parent edge of the child is spent.
    pub when_spent: bool,
    /// The child, a task, moves between the replicas of the spread node that it is below; `parent` is where it begins.
    pub spread: bool,
    /// `cpu = "any"`: which replica is the parent was chosen when the plan was resolved.
    pub placed: bool,
    /// `cpu = "all"`: one of several edges, each with a budget of its own, and that is meant.
    pub on_each: bool,
    /// `priority = "rt_priority"`: this parameter is that of the thread, see [`Plan::params_for`]. Only of sets.
    pub priority_of_thread: Option<usize>,
    /// It comes from `firm`: no other child of the parent may have its priority, the lowest.
    pub firm: bool,
    /// Which parameters the text gives, a bit each; the others are presets, some of them by the value of another one.
    pub given: u8,
    /// Where it is written.
    pub spot: Spot,
}

impl Edge {
    /// An edge that the text does not have.
    pub fn plain(parent: usize, child: Child, params: [u64; PARAMS], spread: bool) -> Self {
        let spot = Spot::default();
        Self {
            parent,
            child,
            params,
            rank: 0,
            when_spent: false,
            spread,
            placed: false,
            on_each: false,
            priority_of_thread: None,
            firm: false,
            given: 0,
            spot,
        }
    }

    /// What kind of way it is.
    pub fn way(&self) -> tierce_policy::Way {
        match (self.spread, self.when_spent) {
            (true, _) => tierce_policy::Way::Spread,
            (false, true) => tierce_policy::Way::WhenSpent,
            (false, false) => tierce_policy::Way::Plain,
        }
    }
}

/// The edge of every unmatched thread.
#[derive(Clone, Debug)]
pub struct Each {
    /// Edge parameters in the order of the default node's policy, presets filled in.
    pub params: [u64; PARAMS],
    /// Index of the parameter that follows the thread's nice value (`weight = "nice"`); see [`nice_weight`].
    pub nice: Option<usize>,
    /// Where it is written; the default node when it is not.
    pub spot: Spot,
}

/// Weight of a thread of that nice value relative to 100 at nice 0: 1.25 for each step, as in Linux. Always 1 to 8700.
///
/// ```
/// assert_eq!((tierce_plan::nice_weight(0), tierce_plan::nice_weight(-20), tierce_plan::nice_weight(19)), (100, 8674, 1));
/// ```
pub fn nice_weight(nice: i32) -> u64 {
    // 100 * 1.25^-nice, rounded to nearest: 5^n / 4^n in integers.
    let steps = nice.clamp(-20, 19);
    let (five, four) = (5u128.pow(steps.unsigned_abs()), 4u128.pow(steps.unsigned_abs()));
    let (over, under) = if steps <= 0 { (five, four) } else { (four, five) };
    ((200 * over + under) / (2 * under)).max(1) as u64
}

/// One `match` of a task or set.
#[derive(Clone, Debug)]
pub struct MatchEntry {
    /// [`Child::Task`]: the first thread is bound, others are reported. [`Child::Set`]: every thread.
    pub target: Child,
    /// Any of these suffices.
    pub any: Arc<[Matcher]>,
    /// `trust = "names"`: what the owner of a thread can choose may decide who it is.
    pub trusts_names: bool,
    /// Of a set that there is once for each copy of a node: which copy. All have the same match; the first stands for all of them.
    pub copy: Option<Copied>,
    /// Where it is written.
    pub spot: Spot,
}

/// All that is given must hold. Texts are globs: `*` any characters but `/`, `**` any characters, `?` one character,
/// `[a-c]` one of them; see [`crate::Glob`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matcher {
    /// Name of the thread.
    pub comm: Option<crate::Glob>,
    /// Name of its process, i.e. of the first thread.
    pub pcomm: Option<crate::Glob>,
    /// Path of the executable.
    pub exe: Option<crate::Glob>,
    /// User who owns the executable.
    pub exe_owner: Option<u32>,
    /// What is in the executable.
    pub checksum: Option<Checksum>,
    /// Path of its cgroup, without the leading `/`.
    pub cgroup: Option<crate::Glob>,
    /// Its systemd unit: the last component of the cgroup path that names one.
    pub unit: Option<crate::Glob>,
    /// The service or scope that the system's manager (not a user's) has made for it: no user can choose that.
    pub system_unit: Option<crate::Glob>,
    /// User id, real and effective: from the first to the last of these.
    pub uid: Option<std::ops::RangeInclusive<u32>>,
    /// Group id, real and effective.
    pub gid: Option<std::ops::RangeInclusive<u32>>,
    /// Process id (thread group id).
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: Option<u32>,
    /// Process id of the parent.
    pub ppid: Option<u32>,
    /// Nice value, both ends included.
    pub nice: Option<std::ops::RangeInclusive<i32>>,
    /// Its scheduling class is a real-time one. Fits no kernel thread.
    pub class: Option<MatchClass>,
    /// Whether it is a kernel thread.
    pub is_kthread: Option<bool>,
    /// Whether it is the first thread of its process.
    pub is_group_leader: Option<bool>,
}

/// One step of [`Plan::attach_order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// `node` becomes what `cpu` runs.
    Root {
        /// The CPU.
        cpu: u32,
        /// Index into [`Plan::nodes`].
        node: usize,
    },
    /// Index into [`Plan::edges`].
    Edge(usize),
}
