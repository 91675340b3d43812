//! The machine around the engine.
//!
//! Time goes from instant to instant: the next job that arrives, run that ends, timer of a CPU, interrupt. At one
//! instant, in this order: interrupts end, due timers, runs that end (their tasks go on or block), then arrivals and
//! wake-ups in the order of the plan, then one decision after another on each CPU that was kicked, lowest first, until
//! no kick is left.
//!
//! Costs. After a decision the CPU is busy with itself for as long as timer, switch, migration and levels cost; only
//! then the task makes progress, but its path is charged from the decision on. Until then the CPU takes no other decision
//! and the task that left is not yet free to run elsewhere. An interrupt stops a CPU the same way, but its time is charged to
//! nobody (stolen). Idle CPUs switch for free.
//!
//! A job that arrives at the very instant at which the one before it is done finds its task asleep: it is woken.
//!
//! Here are the state and what others ask of it; `setup` makes it, `instant` and `decide` move it on, `events` and `statistics`
//! tell of it.

mod chains;
mod decide;
mod events;
mod instant;
mod locks;
mod setup;
mod statistics;

use crate::draw::Stream;
use crate::earliest::Earliest;
use crate::locks::{Locks, Script};
use crate::marks::Marks;
use crate::program::{Job, Program};
use crate::queue::Queue;
use crate::watch::Watch;
use chains::Chains;
use std::fmt;
use tierce_plan::{Costs, Ids, Topology, Work};
use tierce_policy::{Graph, NEVER};
use tierce_trace::{Event, Kind, Stats, TraceHeader};

/// How to simulate.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seed of all draws.
    pub seed: u64,
    /// What scheduling costs; `None`: as the plan says.
    pub costs: Option<Costs>,
    /// Shortest timer worth arming (ns): a budget with less left is spent, the rest carried over.
    pub floor_ns: u64,
    /// How late timers go off (ns), the engine's and those that end the waits of tasks.
    pub late_ns: u64,
    /// Keep the events for [`Simulation::take_events`].
    pub trace: bool,
    /// Check every invariant of the engine after every instant: slow.
    pub check: bool,
}

/// The engine broke one of its own rules: a bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {now_ns} ns: {rule}")]
pub struct Violation {
    /// After which instant.
    pub now_ns: u64,
    /// Which.
    pub rule: String,
}

#[derive(Debug)]
struct Task {
    program: Program,
    /// Rest of its current run.
    left_ns: u64,
    job: Job,
    /// Jobs begun; the number of the current one.
    begun: u32,
    /// Jobs done.
    done: u32,
    /// Deadline of the time constraint of its current run, 0: it has none.
    constrained_ns: u64,
    /// The current job has had a CPU.
    started: bool,
    announces: bool,
    last_cpu: u32,
    /// Where its jobs request and leave locks, and do not give way.
    script: Option<Box<Script>>,
    /// It waits for a lock.
    waits: bool,
}

#[derive(Debug)]
struct Cpu {
    /// Id of the task it runs, 0: none.
    task: u32,
    /// Id of the task that makes progress: that one, or who holds a lock for which it waits, or does not give way to it.
    worker: u32,
    /// Progress of the task is accounted for until here; when in the future, the CPU is busy with itself until then.
    from_ns: u64,
    /// When its task's run ends.
    end_ns: u64,
    /// When the engine wants to be entered.
    until_ns: u64,
    /// When the interrupt that it serves ends; NEVER: it serves none.
    interrupt_end_ns: u64,
    /// Its timer has fired since the last decision.
    timer: bool,
    /// What ran before is still to be returned.
    returning: bool,
    /// It is busy with itself, which the trace is to be told when it ends.
    scheduling: bool,
    /// Times it turned to a task.
    switches: u64,
}

impl Cpu {
    /// When something else happens on it at the earliest.
    fn next_ns(&self, kicked: bool) -> u64 {
        let wait_ns = if kicked || self.returning { self.from_ns } else { NEVER };
        let timer_ns = self.until_ns.max(self.from_ns);
        self.end_ns.min(timer_ns).min(wait_ns).min(self.interrupt_end_ns)
    }
}

#[derive(Debug)]
struct Interrupts {
    cpu: u32,
    every_ns: u64,
    takes: Work,
    at: usize,
    poisson: bool,
    draws: Stream,
}

/// A plan being simulated.
pub struct Simulation {
    graph: Graph,
    ids: Ids,
    tasks: Vec<Task>,
    /// Id of task 0; the others follow.
    first_task: u32,
    cpus: Vec<Cpu>,
    /// When something else happens on each of them at the earliest, and those for which that may have changed.
    cpus_next_ns: Earliest,
    touched: Marks,
    /// Tasks move between the replicas of spread nodes.
    spreads: bool,
    /// Statistics want to see events.
    observes: bool,
    interrupts: Vec<Interrupts>,
    locks: Option<Locks>,
    /// Tasks by index, then interrupts.
    queue: Queue,
    chains: Option<Box<Chains>>,
    costs: Costs,
    topology: Topology,
    late_ns: u64,
    header: TraceHeader,
    stats: Stats,
    watch: Option<Watch>,
    events: Vec<Event>,
    kicked: Marks,
    check: bool,
    now_ns: u64,
    instants: u64,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("now_ns", &self.now_ns)
            .field("cpus", &self.cpus)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// What a trace of this run says about itself.
    pub fn header(&self) -> TraceHeader {
        self.header.clone()
    }

    /// Which ids stand for which parts of the plan.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The engine.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Everything before this time has happened.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Instants so far at which something happened.
    pub fn instants(&self) -> u64 {
        self.instants
    }

    /// When the next thing happens, never for nothing.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.queue.first_ns().min(self.cpus_next_ns.first_ns())
    }

    /// Everything that happens before `end_ns`; what happens at that very time comes with the next call.
    pub fn run_until(&mut self, end_ns: u64) -> Result<(), Violation> {
        loop {
            let next_ns = self.next_ns();
            if next_ns >= end_ns {
                break;
            }
            self.instant(next_ns)?;
        }
        self.now_ns = self.now_ns.max(end_ns);
        self.look_around(end_ns, end_ns.saturating_sub(1));
        self.take_in();
        Ok(())
    }

    /// All that happens at the next time at which something does; `false`: nothing ever will.
    pub fn step(&mut self) -> Result<bool, Violation> {
        let next_ns = self.next_ns();
        if next_ns == NEVER {
            return Ok(false);
        }
        self.instant(next_ns)?;
        Ok(true)
    }

    /// Something outside of the graph takes so much time from a CPU, from the present time on.
    pub fn steal(&mut self, cpu: u32, takes_ns: u64) {
        self.take_away(cpu, takes_ns, self.now_ns);
        self.plan_cpus();
    }

    /// When something happens next on the CPUs that something has happened on.
    fn plan_cpus(&mut self) {
        self.touched.join(&self.kicked);
        let mut from = 0;
        while let Some(cpu) = self.touched.first_from(from) {
            self.touched.clear(cpu);
            self.cpus_next_ns.set(cpu, self.cpus[cpu as usize].next_ns(self.kicked.has(cpu)));
            from = cpu + 1;
        }
    }

    /// Change the graph at the present time, as control operations do, and decide anew where that matters.
    pub fn control<R>(&mut self, operate: impl FnOnce(&mut Graph, u64) -> R) -> Result<R, Violation> {
        let now = self.now_ns;
        let result = operate(&mut self.graph, now);
        self.settle(now)?;
        Ok(result)
    }

    /// The events since the last call, in the order of time, when they are kept.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The events since the last call, to be read and cleared by the caller.
    pub fn events_mut(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    /// What a trace that ends here has to tell at its end: time that is being stolen.
    pub fn closing_events(&self) -> Vec<Event> {
        let stolen = |(number, cpu): (usize, &Cpu)| {
            let engine = self.graph.cpu(number as u32);
            let ns = self.now_ns.saturating_sub(engine.charged_ns);
            let tell = cpu.interrupt_end_ns != NEVER && ns > 0;
            tell.then(|| Event::new(self.now_ns, Kind::Stolen, number as u16, engine.task, 0, ns))
        };
        self.cpus.iter().enumerate().filter_map(stolen).collect()
    }
}
