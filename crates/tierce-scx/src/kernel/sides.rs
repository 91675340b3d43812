//! What the kernel side keeps beside the engine's state, as it lies in its memory.

use tierce_policy::raw;

/// `struct tierce_leaf`: what the kernel side keeps for a task of the graph.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    /// Its thread waits with us.
    pub custody: u32,
    /// Its thread, 0: none.
    pub pid: u32,
    /// 0: part of the plan, 1: of the default node, 2: member of a set.
    pub own: u16,
    user: u16,
    /// Its thread is dead, but the leaf could not be freed.
    pub dead: u32,
    /// Relative deadline of its jobs; never: none, 0: its jobs are not followed.
    pub deadline_ns: u64,
    /// Begin of its current job.
    pub woke_ns: u64,
    /// Number of its current job.
    pub job: u32,
    /// Jobs that ended after their deadline.
    pub misses: u32,
    pub(crate) moving: u32,
    pub(crate) overrun: u32,
    overrun_ns: u64,
    held: u32,
    pub(crate) told: u32,
}

/// `struct tierce_cpu_side`: what the kernel side counts per CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSide {
    /// What the timer is set to: no later than `due_ns`.
    pub timer_ns: u64,
    /// When the CPU has to be entered.
    pub due_ns: u64,
    /// Leaf whose thread has yet to come off the CPU.
    pub left: u32,
    /// A thread that was not decided for ran.
    pub strays: u32,
    /// Calls of dispatch.
    pub dispatches: u64,
    /// Of these, the running thread went on.
    pub keeps: u64,
    /// Of these, the thread decided for could not come.
    pub misses: u64,
    /// Times a timer was set.
    pub arms: u64,
    /// Times a timer fired when something was due.
    pub fires: u64,
    /// Times a timer fired before anything was due.
    pub early: u64,
    /// Threads that came in at once when a thread of the same CPU woke them.
    pub wakes: u64,
    /// Kicks that led to no decision and were repeated.
    pub forgotten: u64,
    pub(crate) away_at_ns: u64,
    /// Taken by a higher class for so long that the graph counts it as offline.
    pub away: u32,
    going: u32,
    /// How often that was so.
    pub aways: u64,
    pub(crate) irq_ns: u64,
    pub(crate) softirq_ns: u64,
    softirq_taken_ns: u64,
    pub(crate) interrupted_ns: u64,
    pub(crate) decided_ns: u64,
    /// From a decision for another thread until that runs, on average.
    pub switch_ns: u64,
    switches: u32,
    pub(crate) awaits: u32,
    pub(crate) fired_ns: u64,
    way_out_ns: u64,
    pub(crate) blocking: u32,
    from_user: u32,
    beside_ns: u64,
    pub(crate) overrun: u32,
    /// Budgets that ended in the kernel, whose threads ran on from there to user mode.
    pub overruns: u32,
    pub(crate) blocked: u32,
    pub(crate) idle: u32,
    pub(crate) frozen: u32,
    /// With [`Options::count_contention`]: decisions that it was kicked for.
    pub kicks: u64,
    /// Of these, what it did before went on.
    pub vain_kicks: u64,
    pub(crate) thawed_ns: u64,
}

/// `struct tierce_lock_side`: with [`Options::count_contention`], how the lock of a domain was used.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockSide {
    /// Acquisitions.
    pub taken: u64,
    /// Of these, another CPU had it before.
    pub taken_over: u64,
    /// Of these, it was not free.
    pub waited: u64,
    /// Time waited for it, added up.
    pub wait_ns: u64,
    /// Of a shared domain: time it was held, added up.
    pub held_ns: u64,
    since_ns: u64,
    last: u32,
    pad: u32,
}

/// The end of `struct tierce_side`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    ticket: u32,
    serving: u32,
    /// Attached.
    pub ready: u32,
    /// Node for threads that match nothing.
    pub default_node: u32,
    default_param: [u64; raw::PARAMS],
    default_nice: u32,
    lock_lost: u32,
    default_jobs: u64,
    /// Records that did not fit the ring.
    pub lost: u64,
    /// Threads that found no leaf.
    pub overflows: u64,
    /// Threads that could not be where they were to be because of their affinity.
    pub displaced: u64,
    /// Leaves that could not be freed with their thread at once.
    pub dead: u64,
    /// News that did not fit.
    pub missed: u64,
    /// Recorded entries that did not fit: the recording is of no use then.
    pub lost_entries: u64,
    /// Of the threads that found no leaf: their user had as many as were left for all others.
    pub crowded: u64,
}

/// Why the kernel side ended, as the kernel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Kind of exit (the kernel's enum scx_exit_kind): 64 unregistered, 1024 and above: an error.
    pub kind: u32,
    /// Exit code.
    pub code: i64,
    /// Kind in words.
    pub reason: String,
    /// Details.
    pub message: String,
}

/// Pools in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pools {
    /// Nodes and tasks.
    pub nodes: u32,
    /// Edges.
    pub edges: u32,
}
