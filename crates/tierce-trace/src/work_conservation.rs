//! Work conservation: does a CPU idle while a task that may run there waits elsewhere?
//!
//! A scheduler that spreads tasks over CPUs must not leave one of them idle while tasks wait on others. Lozi et al. (EuroSys
//! 2016) found that Linux did, for seconds. This checker finds every such interval in any trace, simulated or measured.
//!
//! **Waiting.** A task waits from its `request` on, and again whenever another decision takes it off its CPU, until it is
//! decided for or released. **Idle.** A CPU is idle from a decision for nobody on until the next decision for a task; it is not
//! idle while a thread outside the graph runs there (`outside`). **May run.** A task that several CPUs can reach (below a
//! spread node, or below nodes with several parents) may run on a CPU if its affinity allows it and a path from the CPU to it is
//! open. An edge is closed from `throttle` until it is replenished or granted; a `when = "spent"` edge while another edge of its
//! child is open; a node while its concurrency is used up.
//!
//! Each idle CPU is set against another waiting task, lowest CPU first: with one task waiting, one CPU counts. A spread task
//! that waits on the idle CPU itself does not count (that is the time of a wake-up, not of a migration). What interrupts stole
//! from the idle CPU is taken off.
//!
//! **What it cannot know.** The affinity that a program gave its threads (a trace has that of the plan's tasks); whether the
//! kernel forbids a thread to migrate just now; whether a CPU is offline (it counts as idle); which edges were closed before
//! the recording began; what lost records said. The first four make intervals appear that were none, in measured traces only.
//! A budget that is given back while its child sleeps is seen when the child is next granted a CPU, so an interval before that
//! may be missed.

mod graph;

use crate::change::PlanChange;
use crate::event::SCHEDULER;
use crate::event::{Event, Kind, ID_MAX};
use crate::header::{Source, TraceHeader};
use std::collections::HashMap;
use tierce_policy::Cpus;

/// More nodes above each other than any plan has.
const DEPTH: u32 = 10;
const NO_CPU: u16 = u16::MAX;
/// Of what cannot run on a second CPU: it is not followed.
const NO_GROUP: u32 = u32::MAX;
/// Intervals of one CPU that time stolen later may still shorten.
const OVER_MAX: usize = 64;

/// One interval in which a CPU idled while a task that may run there waited elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The CPU that idled.
    pub cpu: u32,
    /// From when on.
    pub begin_ns: u64,
    /// For how long.
    pub length_ns: u64,
    /// Where a task waited: the replica of a spread node; else the task itself.
    pub waited: u32,
}

/// A node or a task.
#[derive(Debug, Clone)]
struct Thing {
    /// Task: it wants the CPU.
    wants: bool,
    /// Task: it is one of those that wait in its group.
    waits: bool,
    is_node: bool,
    /// Task: where it runs.
    on_cpu: u16,
    /// Task: index into the groups. Replica: that of tasks without affinity, once there was one.
    group: u32,
    /// Replica: id of the first one of its spread node; else 0.
    family: u32,
    /// Node: CPUs that may run it at once, 0: all; how many do.
    concurrency: u32,
    runs: u32,
    /// Task: CPUs that the plan allows, where they are limited.
    affinity: Option<Box<Cpus>>,
    /// Edges above it.
    above: Vec<u32>,
}

impl Default for Thing {
    fn default() -> Self {
        Thing {
            wants: false,
            waits: false,
            is_node: false,
            on_cpu: NO_CPU,
            group: NO_GROUP,
            family: 0,
            concurrency: 0,
            runs: 0,
            affinity: None,
            above: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Edge {
    parent: u32,
    child: u32,
    /// Of a root: which CPU.
    cpu: Option<u32>,
    when_spent: bool,
    spread: bool,
    /// Its budget is used up, or its slot is over.
    closed: bool,
    granted: bool,
}

/// Tasks that may run on the same CPUs and wait in the same place.
#[derive(Debug, Clone)]
struct Group {
    /// A replica, or a task that several CPUs share.
    place: u32,
    affinity: Cpus,
    waiting: u32,
    /// Index into the groups where somebody waits.
    at: u32,
    /// CPUs where they may run, as of `epoch`.
    target: Cpus,
    epoch: u64,
}

#[derive(Debug, Clone, Default)]
struct Family {
    /// CPU and replica.
    replicas: Vec<(u32, u32)>,
    /// Replica by CPU, 0: none there.
    on: Vec<u32>,
    /// CPUs whose replica can be run, as of `epoch`.
    open: Cpus,
    epoch: u64,
}

#[derive(Debug, Clone, Default)]
struct Cpu {
    /// What it runs; `None`: not known yet.
    task: Option<u32>,
    outside: bool,
    open: Option<Gap>,
    /// Intervals that time stolen later may still shorten: those since the CPU's last decision.
    over: Vec<Gap>,
    total_ns: u64,
}

/// The checker; see above.
#[derive(Debug, Clone, Default)]
pub struct WorkConservation {
    /// There are spread nodes; nodes with a limit on concurrency.
    spread: bool,
    limited: bool,
    /// Requests and releases are recorded.
    recorded: bool,
    now_ns: u64,
    cpus: Vec<Cpu>,
    /// CPUs that are idle; those with an open interval.
    idle: Cpus,
    open: Cpus,
    things: Vec<Thing>,
    edges: Vec<Edge>,
    families: HashMap<u32, Family>,
    groups: Vec<Group>,
    by_place: HashMap<(u32, Cpus), u32>,
    /// Groups where somebody waits.
    waiting: Vec<u32>,
    /// Something has changed since idle CPUs were last set against waiting tasks.
    changed: bool,
    /// Another one whenever a path may have opened or closed.
    epoch: u64,
    intervals: u64,
    longest: Option<Gap>,
}

impl WorkConservation {
    /// For a trace with this header.
    pub fn new(header: &TraceHeader) -> Self {
        let task = (header.source == Source::Sim).then_some(0); // a live CPU may run something already
        let cpus = header.cpus.min(Cpus::ALL.count());
        let mut this = WorkConservation {
            now_ns: header.start_ns,
            cpus: vec![Cpu { task, ..Default::default() }; cpus as usize],
            recorded: header.source == Source::Sim,
            epoch: 1,
            ..Default::default()
        };
        (0..cpus as usize).for_each(|cpu| this.idles(cpu));
        this.come(&header.nodes, &header.tasks, &header.edges);
        this
    }

    /// The plan is another one from here on.
    pub fn change(&mut self, change: &PlanChange) {
        self.come(&change.nodes, &change.tasks, &change.edges);
    }

    /// Are there spread nodes? Without them nothing is followed. A live run that keeps no trace does not record who waits.
    pub fn applies(&self) -> bool {
        self.spread && self.recorded
    }

    /// Kinds of records that matter, a bit each.
    pub fn kinds(&self) -> u64 {
        let always = [
            Kind::Decision,
            Kind::Request,
            Kind::Release,
            Kind::Throttle,
            Kind::Replenish,
            Kind::Stolen,
            Kind::Migrate,
        ];
        let limits = [Kind::Grant, Kind::Revoke];
        let kinds = always.iter().chain(limits.iter().filter(|_| self.limited));
        kinds.fold(0, |set, &kind| set | 1 << kind as u64)
    }

    /// Time that CPUs idled while a task that may run there waited elsewhere (ns).
    pub fn total_ns(&self) -> u64 {
        (0..self.cpus.len()).map(|cpu| self.cpu_ns(cpu as u32)).sum()
    }

    /// The same of one CPU.
    pub fn cpu_ns(&self, cpu: u32) -> u64 {
        let Some(of) = self.cpus.get(cpu as usize) else { return 0 };
        of.total_ns + self.pending(of).map(|gap| gap.length_ns).sum::<u64>()
    }

    /// Number of such intervals.
    pub fn intervals(&self) -> u64 {
        self.intervals + self.cpus.iter().map(|cpu| self.pending(cpu).count() as u64).sum::<u64>()
    }

    /// The longest of them.
    pub fn longest(&self) -> Option<Gap> {
        let pending = self.cpus.iter().flat_map(|cpu| self.pending(cpu));
        // Of equals the first.
        self.longest.into_iter().chain(pending).reduce(|a, b| if b.length_ns > a.length_ns { b } else { a })
    }

    /// Intervals of this CPU that are not counted yet.
    fn pending<'a>(&self, cpu: &'a Cpu) -> impl Iterator<Item = Gap> + 'a {
        let now_ns = self.now_ns;
        let open = cpu.open.map(|gap| Gap { length_ns: now_ns.saturating_sub(gap.begin_ns), ..gap });
        cpu.over.iter().copied().chain(open).filter(|gap| gap.length_ns > 0)
    }

    // ---- the graph -------------------------------------------------------------------------------------------------

    /// Take in one event, in the order of time.
    #[inline]
    pub fn event(&mut self, event: &Event) {
        let Some(kind) = event.kind().filter(|_| self.spread) else { return };
        if event.fault(self.cpus.len() as u32).is_some() {
            return;
        }
        self.advance(event.now_ns);
        let Event { cpu, a, b, value, .. } = *event;
        let cpu = usize::from(cpu);
        match kind {
            Kind::Decision => self.decision(cpu, a),
            Kind::Request | Kind::Release => {
                self.recorded = true;
                at(&mut self.things, a).wants = kind == Kind::Request;
                self.look_at(a);
            }
            Kind::Throttle | Kind::Replenish | Kind::Grant => {
                let granted = kind == Kind::Grant;
                // What is in debt after a replenishment stays throttled.
                let closed = kind == Kind::Throttle || (kind == Kind::Replenish && value as i64 <= 0);
                let edge = at(&mut self.edges, a);
                if std::mem::replace(&mut edge.closed, closed) != closed {
                    (self.epoch, self.changed) = (self.epoch + 1, true);
                }
                if granted {
                    self.granted(a, true);
                }
            }
            Kind::Revoke => self.granted(a, false),
            Kind::Stolen => self.stolen(cpu, value),
            Kind::Outside if value < SCHEDULER => {
                self.cpus[cpu].outside = b == 1;
                self.idles(cpu);
            }
            Kind::Name => {
                let task = at(&mut self.things, a);
                (task.wants, task.on_cpu, task.affinity) = (false, NO_CPU, None);
                self.look_at(a);
                self.regroup(a);
            }
            Kind::Attach => {
                let parent = value as u32;
                let below_family = self.things.get(parent as usize).is_some_and(|node| node.family != 0);
                let spread = below_family && !at(&mut self.things, b).is_node;
                let cpu = (parent == 0).then_some(cpu as u32);
                self.link(a, Edge { parent, child: b, cpu, spread, ..Default::default() });
                self.regroup(b);
            }
            Kind::Detach => {
                let child = at(&mut self.edges, a).child;
                self.unlink(a);
                self.regroup(child);
            }
            Kind::Migrate => self.migrate(a, cpu as u32),
            _ => {}
        }
    }

    /// The recording goes until here, or numbers are wanted as of this time.
    pub fn finish(&mut self, end_ns: u64) {
        self.advance(end_ns);
    }

    #[inline]
    fn decision(&mut self, cpu: usize, task: u32) {
        let before = self.cpus[cpu].task.replace(task);
        self.count(cpu);
        if let Some(before) = before.filter(|&before| before != task && before != 0) {
            if self.things[before as usize].on_cpu == cpu as u16 {
                self.things[before as usize].on_cpu = NO_CPU;
                self.look_at(before);
            }
        }
        self.idles(cpu);
        if task != 0 {
            let thing = at(&mut self.things, task);
            (thing.wants, thing.on_cpu) = (true, cpu as u16);
            self.look_at(task);
        }
    }

    fn granted(&mut self, id: u32, granted: bool) {
        let edge = at(&mut self.edges, id);
        if std::mem::replace(&mut edge.granted, granted) == granted {
            return;
        }
        let child = edge.child;
        let runs = &mut at(&mut self.things, child).runs;
        *runs = if granted { *runs + 1 } else { *runs - 1 };
        if self.things[child as usize].concurrency != 0 {
            (self.epoch, self.changed) = (self.epoch + 1, true);
        }
    }

    fn migrate(&mut self, task: u32, cpu: u32) {
        let Some(&edge) = at(&mut self.things, task).above.first() else { return };
        let family = self.things.get(self.edges[edge as usize].parent as usize).map_or(0, |node| node.family);
        let Some(family) = self.families.get(&family) else { return };
        let Some(&replica) = family.on.get(cpu as usize).filter(|&&replica| replica != 0) else { return };
        self.edges[edge as usize].parent = replica;
        let group = self.things[replica as usize].group;
        if group == NO_GROUP || self.things[task as usize].affinity.is_some() {
            self.regroup(task);
        } else {
            self.enter_group(task, group);
        }
    }

    /// Does it wait now?
    #[inline]
    fn look_at(&mut self, task: u32) {
        let thing = &self.things[task as usize];
        self.counted(task, thing.wants && thing.on_cpu == NO_CPU);
    }

    #[inline]
    fn counted(&mut self, task: u32, waits: bool) {
        let thing = &mut self.things[task as usize];
        let waits = waits && thing.group != NO_GROUP;
        if std::mem::replace(&mut thing.waits, waits) == waits {
            return;
        }
        self.changed = true;
        let number = thing.group;
        let group = &mut self.groups[number as usize];
        if waits {
            group.waiting += 1;
            if group.waiting == 1 {
                group.at = self.waiting.len() as u32;
                self.waiting.push(number);
            }
        } else {
            group.waiting -= 1;
            if group.waiting == 0 {
                let at = group.at;
                self.waiting.swap_remove(at as usize);
                if let Some(&moved) = self.waiting.get(at as usize) {
                    self.groups[moved as usize].at = at;
                }
            }
        }
    }

    #[inline]
    fn idles(&mut self, cpu: usize) {
        let of = &self.cpus[cpu];
        let idle = of.task == Some(0) && !of.outside;
        let cpu = cpu as u32;
        if idle != self.idle.has(cpu) {
            self.changed = true;
            if idle {
                self.idle.add(cpu);
            } else {
                self.idle.remove(cpu);
            }
        }
    }

    // ---- intervals -------------------------------------------------------------------------------------------------

    /// What is known now has held since the last event's time.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        if now_ns <= self.now_ns {
            return;
        }
        if std::mem::take(&mut self.changed) {
            let matched = if self.waiting.is_empty() { Cpus::NONE } else { self.set_against() };
            let closed = self.open & !matched;
            if !closed.is_empty() {
                self.close(closed);
            }
        }
        self.now_ns = now_ns;
    }

    /// Each idle CPU against another task that waits: the CPUs that find one.
    fn set_against(&mut self) -> Cpus {
        let mut free = self.idle;
        for at in 0..self.waiting.len() {
            if free.is_empty() {
                break;
            }
            let number = self.waiting[at];
            if self.groups[number as usize].epoch != self.epoch {
                self.groups[number as usize].target = self.target(number);
                self.groups[number as usize].epoch = self.epoch;
            }
            let group = &self.groups[number as usize];
            let (cpus, waited) = (group.target & free, group.place);
            for cpu in cpus.iter().take(group.waiting as usize) {
                free.remove(cpu);
                let begin_ns = self.now_ns;
                let gap = Gap { cpu, begin_ns, length_ns: 0, waited };
                self.cpus[cpu as usize].open.get_or_insert(gap);
            }
        }
        let matched = self.idle & !free;
        self.open |= matched;
        matched
    }

    /// CPUs other than where they wait on which these may run now.
    fn target(&mut self, group: u32) -> Cpus {
        let Group { place, affinity, .. } = self.groups[group as usize];
        let family = self.things[place as usize].family;
        let Some(of) = self.families.get(&family) else {
            return self.reach(place, true, 0) & affinity;
        };
        let mut open = of.open;
        if of.epoch != self.epoch {
            let served = of.replicas.iter().filter(|&&(_, replica)| !self.reach(replica, true, 0).is_empty());
            open = served.map(|(cpu, _)| cpu).collect();
        }
        let home = of
            .replicas
            .iter()
            .find(|&&(_, replica)| replica == place)
            .map_or(Cpus::NONE, |&(cpu, _)| Cpus::only(cpu));
        if let Some(of) = self.families.get_mut(&family) {
            (of.open, of.epoch) = (open, self.epoch);
        }
        open & affinity & !home
    }

    fn close(&mut self, cpus: Cpus) {
        self.open &= !cpus;
        for cpu in cpus.iter().map(|cpu| cpu as usize) {
            let Some(gap) = self.cpus[cpu].open.take() else { continue };
            let length_ns = self.now_ns.saturating_sub(gap.begin_ns);
            self.cpus[cpu].over.push(Gap { length_ns, ..gap });
            if self.cpus[cpu].over.len() > OVER_MAX {
                self.count(cpu);
            }
        }
    }

    /// Nothing shortens these any more.
    #[inline]
    fn count(&mut self, cpu: usize) {
        if self.cpus[cpu].over.is_empty() {
            return;
        }
        for gap in std::mem::take(&mut self.cpus[cpu].over) {
            if gap.length_ns > 0 {
                self.intervals += 1;
                self.cpus[cpu].total_ns += gap.length_ns;
                if self.longest.is_none_or(|longest| gap.length_ns > longest.length_ns) {
                    self.longest = Some(gap);
                }
            }
        }
    }

    /// So much of the time since the CPU's last entry was not idle.
    fn stolen(&mut self, cpu: usize, mut ns: u64) {
        let of = &mut self.cpus[cpu];
        if let Some(gap) = &mut of.open {
            let took = ns.min(self.now_ns.saturating_sub(gap.begin_ns));
            (gap.begin_ns, ns) = (gap.begin_ns + took, ns - took);
        }
        for gap in of.over.iter_mut().rev() {
            let took = ns.min(gap.length_ns);
            (gap.length_ns, ns) = (gap.length_ns - took, ns - took);
        }
        self.count(cpu);
    }
}

/// The element at `id`, made if it is not there. Ids are bounded by [`ID_MAX`] where they come from outside.
#[inline]
fn at<T: Default + Clone>(list: &mut Vec<T>, id: u32) -> &mut T {
    let at = id.min(ID_MAX) as usize;
    if at >= list.len() {
        list.resize(at + 1, T::default());
    }
    &mut list[at]
}
