//! Entries: what happens on the machine while the graph stays as it is. Tasks wake, sleep and ask for time, CPUs decide, and
//! tasks move between the replicas of spread nodes.

use super::Graph;
use crate::codes::{Error, Message, Migration, Why};
use crate::raw;

impl Graph {
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

    /// The task, which has the CPU, is to have a lock with that ceiling, a priority, for so much CPU time at most, 0: any; refused by name. Until it has left
    /// that, the budget above it is ordered by the ceiling, and may be overrun.
    pub fn begin_section(&mut self, task: u32, ceiling: u64, length_ns: u64, now: u64) -> Result<(), Error> {
        self.stage(&[ceiling, length_ns]);
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_tell(task, Message::SectionBegin as u32, now) })
    }

    /// The task has left its lock.
    pub fn end_section(&mut self, task: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_tell(task, Message::SectionEnd as u32, now) })
    }

    /// The task waits for the next budget above it, in which it is to have a lock: the rest of this one is given up.
    pub fn skip_to_next_budget(&mut self, task: u32, now: u64) -> Result<(), Error> {
        // SAFETY: see `call`.
        self.control(|| unsafe { raw::graph_tell(task, Message::SectionSkip as u32, now) })
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
}
