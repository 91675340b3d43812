//! Statistics of a schedule, fed by events or directly.
//!
//! **By events** ([`Stats::event`]): from a trace or a live stream, in the order of time. Time is accounted per CPU as
//! the engine does it: whatever changes a CPU first charges the time since its last charge to the task it runs and to
//! every edge it runs it through; stolen time is charged to nobody. So for each CPU, always:
//! elapsed = used + idle + stolen.
//!
//! **Directly** ([`Stats::job_complete`], [`Stats::replenish`], ..., `set_*_usage` at the end): for a simulator that
//! keeps no trace and whose engine counts CPU time, switches and throttles anyway. One array access and a few
//! additions per job; nothing is allocated once response times have been seen.
//!
//! Both give the same [`Report`](crate::Report).

use crate::change::PlanChange;
use crate::event::{Event, Kind, ID_MAX};
use crate::header::{EdgeInfo, NodeInfo, TaskInfo, TraceHeader};
use crate::histogram::{Histogram, Summary};
use crate::modes::{CriticalModes, Modes};
use crate::promise::Promise;
use crate::waits::{Lock, Waited, Waits};
use crate::work_conservation::WorkConservation;
use std::collections::{BTreeMap, VecDeque};
use tierce_policy::Migration;

/// Edges of the longest path, twice: an entry may grant the new path before it revokes the old one.
const PATH_MAX: usize = 18;

/// The message [`Kind::Tell`] of a task that asks for a time constraint.
const ASKS: u32 = 1;

/// What is known about a task.
#[derive(Debug, Clone, Default)]
pub struct TaskStats {
    /// Jobs that arrived.
    pub released: u64,
    /// Jobs that were not done at their deadline.
    pub misses: u64,
    /// Response times of completed jobs (ns).
    pub response_ns: Histogram,
    /// By how much completed jobs were late in sum (ns).
    pub tardiness_sum_ns: u128,
    /// By how much the latest one was late (ns).
    pub tardiness_max_ns: u64,
    /// Time constraints asked for.
    pub asked: u64,
    /// Of them, those that were accepted.
    pub accepted: u64,
    /// Of those, the ones whose work was done by the deadline.
    pub met: u64,
    /// Times it waited for a lock.
    pub lock_waits: u64,
    /// The longest of these waits (ns).
    pub lock_wait_max_ns: u64,
    /// CPU time received (ns).
    pub cpu_ns: u64,
    /// Times it got a CPU.
    pub switches: u64,
    /// Times it got another CPU than the one before.
    pub migrations: u64,
    /// Times it went to another replica of a spread node, by reason ([`Migration`]).
    pub moves: [u64; Migration::ALL.len()],
}

impl TaskStats {
    /// Completed jobs.
    pub fn jobs(&self) -> u64 {
        self.response_ns.summary().count
    }

    fn merge(&mut self, other: &TaskStats) {
        self.released += other.released;
        self.misses += other.misses;
        self.response_ns.merge(&other.response_ns);
        self.tardiness_sum_ns += other.tardiness_sum_ns;
        self.tardiness_max_ns = self.tardiness_max_ns.max(other.tardiness_max_ns);
        self.asked += other.asked;
        self.accepted += other.accepted;
        self.met += other.met;
        self.lock_waits += other.lock_waits;
        self.lock_wait_max_ns = self.lock_wait_max_ns.max(other.lock_wait_max_ns);
        self.cpu_ns += other.cpu_ns;
        self.switches += other.switches;
        self.migrations += other.migrations;
        self.moves.iter_mut().zip(other.moves).for_each(|(all, one)| *all += one);
    }
}

/// What is known about an edge.
#[derive(Debug, Clone, Default)]
pub struct EdgeStats {
    /// Parent node; 0: a CPU.
    pub parent: u32,
    /// Child node or task.
    pub child: u32,
    /// CPU time that went through it (ns).
    pub cpu_ns: u64,
    /// Times it was granted a CPU.
    pub grants: u64,
    /// Times its budget was used up.
    pub throttles: u64,
    /// Times it got budget back.
    pub replenishments: u64,
    /// Debt and budget written off (ns).
    pub forgiven_ns: u64,
    /// CPU time per period, from replenishment to replenishment (ns).
    pub supply_ns: Summary,
    /// |CPU time per period - budget| (ns), where the budget is known.
    pub deviation_ns: Histogram,
    /// Its budget (ns).
    pub budget_ns: Option<u64>,
    /// What it is promised, as the engine counts it.
    pub promise: Option<Promise>,
    /// `cpu_ns` and budget at the last replenishment.
    period_began: Option<(u64, Option<u64>)>,
    /// CPU that runs its child through it.
    on_cpu: Option<u16>,
}

/// What is known about a CPU.
#[derive(Debug, Clone, Default)]
pub struct CpuStats {
    /// Time given to tasks (ns).
    pub used_ns: u64,
    /// Time without a task (ns).
    pub idle_ns: u64,
    /// Time spent outside the graph (ns).
    pub stolen_ns: u64,
    /// Times it turned to a task.
    pub switches: u64,
    task: u32,
    path: Vec<u32>,
    charged_ns: u64,
}

/// State of a task that only the way by events needs.
#[derive(Debug, Clone, Default)]
struct Follow {
    last_cpu: Option<u16>,
    /// Jobs that missed and are not done: number, absolute deadline. Jobs of a task end in order.
    late: VecDeque<(u32, u64)>,
}

/// Statistics of one schedule. Ids are those of the header; ids unknown to it are taken up as they appear.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub(crate) header: TraceHeader,
    pub(crate) names: Vec<Option<String>>,
    pub(crate) tasks: Vec<TaskStats>,
    pub(crate) edges: Vec<EdgeStats>,
    pub(crate) cpus: Vec<CpuStats>,
    /// Threads whose id went to another one, by name.
    pub(crate) former: BTreeMap<String, TaskStats>,
    /// CPU time of edges that were removed, by child.
    pub(crate) former_edges_ns: BTreeMap<u32, u64>,
    /// Records lost.
    pub lost: u64,
    /// Events that could not be used: ids or CPUs out of bounds.
    pub unusable: u64,
    /// Begin of the recording (ns).
    pub start_ns: u64,
    /// Time of the latest event (ns).
    pub now_ns: u64,
    follow: Vec<Follow>,
    pub(crate) conservation: WorkConservation,
    waits: Waits,
    modes: Modes,
}

impl Stats {
    /// Statistics of a schedule of this graph, from `header.start_ns` on.
    pub fn new(header: &TraceHeader) -> Stats {
        let start_ns = header.start_ns;
        let conservation = WorkConservation::new(header);
        let mut stats =
            Stats { header: header.clone(), start_ns, now_ns: start_ns, conservation, ..Default::default() };
        let charged = CpuStats { charged_ns: start_ns, ..Default::default() };
        stats.cpus = vec![charged; header.cpus.min(crate::file::CPUS_MAX) as usize];
        stats.come(&header.nodes, &header.tasks, &header.edges);
        stats
    }

    fn come(&mut self, nodes: &[NodeInfo], tasks: &[TaskInfo], edges: &[EdgeInfo]) {
        for (id, name) in nodes.iter().map(|node| (node.id, &node.name)) {
            *at(&mut self.names, id.min(ID_MAX)) = Some(name.clone());
        }
        for (id, name) in tasks.iter().map(|task| (task.id, &task.name)) {
            *at(&mut self.names, id.min(ID_MAX)) = Some(name.clone());
            at(&mut self.tasks, id.min(ID_MAX));
        }
        for edge in edges {
            *at(&mut self.edges, edge.id.min(ID_MAX)) = EdgeStats {
                parent: edge.parent,
                child: edge.child,
                budget_ns: edge.budget_ns,
                ..Default::default()
            };
        }
    }

    /// The plan is another one from here on; numbers are those of [`crate::Renumber`].
    pub fn change(&mut self, change: &PlanChange) {
        change.amend(&mut self.header);
        self.conservation.change(change);
        self.waits.are_gone(&change.gone);
        self.come(&change.nodes, &change.tasks, &change.edges);
    }

    /// The header it was made with.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// A task's statistics, if it was ever heard of.
    pub fn task(&self, id: u32) -> Option<&TaskStats> {
        self.tasks.get(id as usize)
    }

    /// An edge's statistics, if it was ever heard of.
    pub fn edge(&self, id: u32) -> Option<&EdgeStats> {
        self.edges.get(id as usize)
    }

    /// A CPU's statistics.
    pub fn cpu(&self, cpu: u32) -> Option<&CpuStats> {
        self.cpus.get(cpu as usize)
    }

    /// The task that each CPU runs, as events say; 0: none.
    pub fn running(&self) -> Vec<u32> {
        self.cpus.iter().map(|cpu| cpu.task).collect()
    }

    // ---- directly --------------------------------------------------------------------------------------------------

    /// A job arrived.
    #[inline]
    pub fn job_release(&mut self, task: u32) {
        at(&mut self.tasks, task).released += 1;
    }

    /// A job was not done at its deadline; to be told before its completion, if that ever comes.
    #[inline]
    pub fn miss(&mut self, task: u32) {
        at(&mut self.tasks, task).misses += 1;
    }

    /// A job is done; `tardiness_ns` is by how much it is late, 0 when it is not.
    #[inline]
    pub fn job_complete(&mut self, task: u32, response_ns: u64, tardiness_ns: u64) {
        let task = at(&mut self.tasks, task);
        task.response_ns.record(response_ns);
        if tardiness_ns > 0 {
            task.tardiness_sum_ns += u128::from(tardiness_ns);
            task.tardiness_max_ns = task.tardiness_max_ns.max(tardiness_ns);
        }
    }

    /// A task has asked for a time constraint.
    pub fn asked(&mut self, task: u32, accepted: bool) {
        let task = at(&mut self.tasks, task);
        task.asked += 1;
        task.accepted += u64::from(accepted);
    }

    /// The work of one that was accepted is done by its deadline.
    pub fn met(&mut self, task: u32) {
        at(&mut self.tasks, task).met += 1;
    }

    /// An edge is replenished when `supply_ns` of CPU time has gone through it in its life. The supply of a period
    /// is the difference to the replenishment before.
    #[inline]
    pub fn replenish(&mut self, edge: u32, supply_ns: u64) {
        let edge = at(&mut self.edges, edge);
        edge.replenishments += 1;
        if let Some((before, budget_ns)) = edge.period_began.replace((supply_ns, edge.budget_ns)) {
            let supply = supply_ns.saturating_sub(before);
            edge.supply_ns.record(supply);
            if let Some(budget) = budget_ns {
                edge.deviation_ns.record(supply.abs_diff(budget));
            }
        }
    }

    /// What the engine counted for a task.
    pub fn set_task_usage(&mut self, task: u32, cpu_ns: u64, switches: u64, migrations: u64) {
        let task = at(&mut self.tasks, task);
        (task.cpu_ns, task.switches, task.migrations) = (cpu_ns, switches, migrations);
    }

    /// What the engine counted for an edge. Replenishments count themselves.
    pub fn set_edge_usage(&mut self, edge: u32, cpu_ns: u64, grants: u64, throttles: u64, forgiven_ns: u64) {
        let edge = at(&mut self.edges, edge);
        (edge.cpu_ns, edge.grants, edge.throttles, edge.forgiven_ns) =
            (cpu_ns, grants, throttles, forgiven_ns);
    }

    /// What the engine counted of the promise to an edge.
    pub fn set_promise(&mut self, edge: u32, promise: Option<Promise>) {
        at(&mut self.edges, edge).promise = promise;
    }

    /// What the engine counted for a CPU.
    pub fn set_cpu_usage(&mut self, cpu: u32, used_ns: u64, idle_ns: u64, stolen_ns: u64, switches: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            (cpu.used_ns, cpu.idle_ns, cpu.stolen_ns, cpu.switches) = (used_ns, idle_ns, stolen_ns, switches);
            cpu.charged_ns = u64::MAX; // nothing is left for `finish` to charge
        }
    }

    /// The schedule goes until here, or a report is wanted at this time: what runs is charged. May be called again.
    pub fn finish(&mut self, end_ns: u64) {
        self.now_ns = self.now_ns.max(end_ns);
        self.conservation.finish(end_ns);
        (0..self.cpus.len() as u16).for_each(|cpu| self.charge(cpu, end_ns, 0));
    }

    /// Kinds of records that [`Stats::observe`] takes, a bit each.
    pub fn observed_kinds(&self) -> u64 {
        let conservation = if self.conservation.applies() { self.conservation.kinds() } else { 0 };
        let waits = if self.header.locks.is_empty() { 0 } else { Waits::KINDS };
        conservation | waits | Modes::KINDS
    }

    /// A record, for what no engine counts: work conservation, waits for locks, critical modes, and why tasks migrate. `set_*_usage` says the rest.
    #[inline]
    pub fn observe(&mut self, event: &Event) {
        self.conservation.event(event);
        self.waits_for_locks(event);
        self.modes_change(event);
        if event.kind() == Some(Kind::Migrate) {
            self.moved(event);
        }
    }

    #[inline]
    fn waits_for_locks(&mut self, event: &Event) {
        let Stats { waits, names, header, .. } = self;
        let waited = waits.event(event, |id| name_of(names, id), |lock| lock_name(header, lock));
        if let Some(waited_ns) = waited {
            let task = at(&mut self.tasks, event.a);
            task.lock_waits += 1;
            task.lock_wait_max_ns = task.lock_wait_max_ns.max(waited_ns);
        }
    }

    #[inline]
    fn modes_change(&mut self, event: &Event) {
        let Stats { modes, edges, .. } = self;
        modes.event(event, |edge| edges.get(edge as usize).map_or(0, |edge| edge.child));
    }

    /// Nobody will tell how the waits for locks end that are under way, nor the critical modes.
    pub fn waits_are_forgotten(&mut self) {
        self.waits.are_forgotten();
        self.modes.are_forgotten();
    }

    /// Critical modes up to this time, by node.
    pub fn critical_modes(&self, now_ns: u64) -> Vec<CriticalModes> {
        self.modes.found(now_ns, |id| self.name(id))
    }

    /// Who has waited for whose locks up to this time, the longest waits first.
    pub fn lock_waits(&self, now_ns: u64) -> Vec<Waited> {
        self.waits.found(now_ns, |id| self.name(id), |lock| lock_name(&self.header, lock))
    }

    fn moved(&mut self, event: &Event) {
        if let Some((why, _)) = event.migration() {
            at(&mut self.tasks, event.a).moves[why as usize] += 1;
        }
    }

    /// Did CPUs idle while tasks that may run there waited elsewhere?
    pub fn work_conservation(&self) -> &WorkConservation {
        &self.conservation
    }

    // ---- by events -------------------------------------------------------------------------------------------------

    /// Take in one event.
    pub fn event(&mut self, event: &Event) {
        let Some(kind) = event.kind() else { return };
        if event.fault(self.cpus.len() as u32).is_some() {
            self.unusable += 1;
            return;
        }
        let Event { now_ns, cpu, a, b, value, .. } = *event;
        self.now_ns = self.now_ns.max(now_ns);
        self.conservation.event(event);
        self.waits_for_locks(event);
        self.modes_change(event);
        match kind {
            Kind::Decision => self.decision(cpu, a, now_ns),
            Kind::Grant => self.grant(cpu, a, b, now_ns),
            Kind::Revoke => self.revoke(a, now_ns),
            Kind::Throttle => at(&mut self.edges, a).throttles += 1,
            Kind::Replenish => {
                if let Some(cpu) = at(&mut self.edges, a).on_cpu {
                    self.charge(cpu, now_ns, 0);
                }
                self.replenish(a, self.edges[a as usize].cpu_ns);
            }
            Kind::Forgive => {
                let edge = at(&mut self.edges, a);
                edge.forgiven_ns = edge.forgiven_ns.saturating_add(value);
            }
            Kind::JobRelease => self.job_release(a),
            Kind::Miss => {
                self.miss(a);
                at(&mut self.follow, a).late.push_back((b, value));
            }
            Kind::JobComplete => {
                let late = &mut at(&mut self.follow, a).late;
                let tardiness_ns = match late.front() {
                    Some(&(job, deadline_ns)) if job == b => {
                        late.pop_front();
                        now_ns.saturating_sub(deadline_ns)
                    }
                    _ => 0,
                };
                self.job_complete(a, value, tardiness_ns);
            }
            Kind::Stolen => self.charge(cpu, now_ns, value),
            Kind::Lost => self.lost = self.lost.saturating_add(value),
            Kind::Name => self.rename(a, event.text()),
            Kind::Attach => {
                self.forget_edge(a, now_ns);
                let edge = at(&mut self.edges, a);
                *edge = EdgeStats { parent: value as u32, child: b, ..Default::default() };
            }
            Kind::Detach => self.forget_edge(a, now_ns),
            Kind::Resize => at(&mut self.edges, a).budget_ns = Some(value),
            Kind::Tell if b == ASKS => self.asked(a, value == 0),
            Kind::Met => self.met(a),
            Kind::Migrate => self.moved(event),
            // changes are taken in by Renumber
            Kind::Request | Kind::Release | Kind::Budget | Kind::JobStart => {}
            Kind::Outside | Kind::Control | Kind::Tell | Kind::Change | Kind::Unkept => {}
            Kind::LockWait | Kind::LockEnd | Kind::Mode | Kind::Mark => {}
        }
    }

    fn decision(&mut self, cpu: u16, task: u32, now_ns: u64) {
        self.charge(cpu, now_ns, 0);
        let on = &mut self.cpus[usize::from(cpu)];
        let before = std::mem::replace(&mut on.task, task);
        if before == task || task == 0 {
            return;
        }
        self.cpus[usize::from(cpu)].switches += 1;
        let stats = at(&mut self.tasks, task);
        stats.switches += 1;
        let last_cpu = at(&mut self.follow, task).last_cpu.replace(cpu);
        stats.migrations += u64::from(last_cpu.is_some_and(|last| last != cpu));
    }

    fn grant(&mut self, cpu: u16, edge: u32, child: u32, now_ns: u64) {
        self.charge(cpu, now_ns, 0);
        let stats = at(&mut self.edges, edge);
        stats.grants += 1;
        stats.child = child;
        if let Some(before) = stats.on_cpu.replace(cpu) {
            self.cpus[usize::from(before)].path.retain(|&granted| granted != edge);
        }
        self.cpus[usize::from(cpu)].path.push(edge);
        self.trim_path(cpu);
    }

    fn revoke(&mut self, edge: u32, now_ns: u64) {
        if let Some(cpu) = at(&mut self.edges, edge).on_cpu.take() {
            self.charge(cpu, now_ns, 0);
            self.cpus[usize::from(cpu)].path.retain(|&granted| granted != edge);
        }
    }

    /// A CPU's path has at most this many edges: more are leftovers of lost records.
    fn trim_path(&mut self, cpu: u16) {
        let path = &mut self.cpus[usize::from(cpu)].path;
        for edge in path.drain(..path.len().saturating_sub(PATH_MAX)) {
            self.edges[edge as usize].on_cpu = None;
        }
    }

    /// Give the time since the CPU's last charge, less `stolen_ns`, to what it runs.
    fn charge(&mut self, cpu: u16, now_ns: u64, stolen_ns: u64) {
        let cpu = &mut self.cpus[usize::from(cpu)];
        let elapsed = now_ns.saturating_sub(cpu.charged_ns);
        cpu.charged_ns = cpu.charged_ns.max(now_ns);
        // An event of another CPU may have charged some of it already: that is taken back.
        let (ran, back) = (elapsed.saturating_sub(stolen_ns), stolen_ns.saturating_sub(elapsed));
        let apply = |sum: &mut u64| *sum = (*sum + ran).saturating_sub(back);
        let before = cpu.used_ns + cpu.idle_ns;
        apply(if cpu.task == 0 { &mut cpu.idle_ns } else { &mut cpu.used_ns });
        cpu.stolen_ns += (before + elapsed).saturating_sub(cpu.used_ns + cpu.idle_ns);
        if cpu.task != 0 {
            apply(&mut at(&mut self.tasks, cpu.task).cpu_ns);
        }
        for &edge in &cpu.path {
            apply(&mut at(&mut self.edges, edge).cpu_ns);
        }
    }

    /// `task` is another thread from now on; the one before is kept under its name, with its namesakes.
    fn rename(&mut self, task: u32, name: String) {
        let before = at(&mut self.names, task).replace(name);
        let follow = std::mem::take(at(&mut self.follow, task));
        let stats = std::mem::take(at(&mut self.tasks, task));
        let used = stats.cpu_ns > 0 || stats.released > 0 || stats.switches > 0 || follow.last_cpu.is_some();
        if let (Some(before), true) = (before, used) {
            self.former.entry(before).or_default().merge(&stats);
        }
    }

    fn forget_edge(&mut self, edge: u32, now_ns: u64) {
        self.revoke(edge, now_ns);
        let EdgeStats { child, cpu_ns, .. } = std::mem::take(at(&mut self.edges, edge));
        if cpu_ns > 0 {
            *self.former_edges_ns.entry(child).or_default() += cpu_ns;
        }
    }
}

/// The name of a node or task, `#17` when nobody told.
pub(crate) fn name_of(names: &[Option<String>], id: u32) -> String {
    names.get(id as usize).and_then(Clone::clone).unwrap_or_else(|| format!("#{id}"))
}

/// The name of a lock of the plan, the address of another.
fn lock_name(header: &TraceHeader, lock: u64) -> String {
    match Lock::of(lock) {
        (Lock::Plan, number) => {
            let name = usize::try_from(number).ok().and_then(|number| header.locks.get(number));
            name.cloned().unwrap_or_else(|| format!("#{number}"))
        }
        (_, address) => format!("{address:#x}"),
    }
}

/// The element at `id`, made if it is not there. Ids are bounded by [`ID_MAX`] where they come from outside.
#[inline]
fn at<T: Default + Clone>(list: &mut Vec<T>, id: u32) -> &mut T {
    let at = id as usize;
    if at >= list.len() {
        list.resize(at + 1, T::default());
    }
    &mut list[at]
}
