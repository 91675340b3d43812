//! Jitters and overheads of jobs, from the events of a schedule: how far practice is from a theory in which releases,
//! switches and the begin of a reserve take no time.
//!
//! Five numbers per job, each told where it ends:
//!
//! | | from | until |
//! |---|---|---|
//! | `ResJ` | a reserve begins (slots), a budget comes back, or ends | the task that is due then (re)starts |
//! | `RelJ` | the job should be released | its task is ready: the request |
//! | `CtswJ` | the task should run: it became ready, or who ran before completed or blocked | it (re)starts |
//! | `IntO` | | all that interrupts took while the job was current |
//! | `RelO` | | decisions meanwhile that left the job where it was |
//!
//! **Why did a task start?** A decision has one cause, the last of these: the task became ready; who ran there before
//! was done; a reserve opened or closed. It cannot lie before the decision that this one replaces, or that one would have
//! been for this task; where none is left (a turn is over, say) the start counts from its decision. A reserve is
//! exclusive: the first task that starts in it, if it was ready when it opened, waits from there on, whatever ran
//! meanwhile.
//!
//! Events are taken in the order in which they were written, which is one in which they happened. Work per event is
//! constant, memory is that of a histogram per task and number.

mod output;

pub use output::{remarks, rows, tables, to_json, Row, Worst};

use crate::change::{PlanChange, Renumber, Seen};
use crate::event::{Event, Kind, ID_MAX, NO_DEADLINE, SCHEDULER};
use crate::file::{Reader, TraceError, CPUS_MAX};
use crate::header::{EdgeInfo, Source, TaskInfo, TraceHeader};
use crate::histogram::Histogram;
use std::io::Read;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Reserve jitter.
    ResJ,
    /// Release jitter.
    RelJ,
    /// Context-switch jitter.
    CtswJ,
    /// Interrupt overhead.
    IntO,
    /// Release overhead.
    RelO,
}

impl Quantity {
    /// All, in the order of the tables.
    pub const ALL: [Quantity; 5] =
        [Quantity::ResJ, Quantity::RelJ, Quantity::CtswJ, Quantity::IntO, Quantity::RelO];

    /// As it is called in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::ResJ => "ResJ",
            Quantity::RelJ => "RelJ",
            Quantity::CtswJ => "CtswJ",
            Quantity::IntO => "IntO",
            Quantity::RelO => "RelO",
        }
    }

    /// In words.
    pub fn meaning(self) -> &'static str {
        match self {
            Quantity::ResJ => "reserve jitter",
            Quantity::RelJ => "release jitter",
            Quantity::CtswJ => "context-switch jitter",
            Quantity::IntO => "interrupt overhead per job",
            Quantity::RelO => "release overhead per job",
        }
    }
}

/// A histogram per quantity, in the order of [`Quantity::ALL`].
pub type Series = [Histogram; 5];

/// A job whose task may be asleep until it is released.
#[derive(Debug, Clone, Copy)]
struct Job {
    number: u32,
    /// When it should be released, if that is known.
    due_ns: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Task {
    name: String,
    deadline_ns: Option<u64>,
    period_ns: Option<u64>,
    phase_ns: u64,
    /// It has had a job with a deadline, or has a period.
    has_jobs: bool,
    awake: bool,
    /// Ready since then.
    request_ns: u64,
    /// Ready and not on a CPU since then.
    left_ns: u64,
    on_cpu: Option<u16>,
    done: u32,
    /// When its last job should have been released.
    due_ns: Option<u64>,
    /// Jobs that were released and not done: the first, and the last of several.
    jobs: [Option<Job>; 2],
    /// Its job is done; what its CPU still has to tell of it may come.
    closing: bool,
    interrupted_ns: u64,
    stopped_ns: u64,
    series: Option<Box<Series>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Edge {
    /// Its parent gives exclusive reserves.
    slots: bool,
    /// Length of its reserve there.
    length_ns: Option<u64>,
    granted_on: Option<u16>,
    /// It is closed, until then.
    opens_ns: Option<u64>,
    closes_ns: Option<u64>,
    /// It closed then, and who ran through it has not been taken off since.
    closed_ns: Option<u64>,
    /// It opened then, and nobody has started through it since.
    fresh_ns: Option<u64>,
}

/// A task that was decided for and is yet to come in.
#[derive(Debug, Clone, Copy)]
struct Pending {
    task: u32,
    quantity: Quantity,
    should_ns: u64,
    decided_ns: u64,
}

#[derive(Debug, Clone, Default)]
struct Cpu {
    /// The last decision that something runs; or that nothing does, if not for the reason in `freed`.
    decided_ns: u64,
    /// When and how what runs there stopped being able to.
    freed: Option<(u64, Quantity)>,
    /// Reserve that opened and was entered since the last decision; is it exclusive?
    opened: Option<(u64, bool)>,
    pending: Option<Pending>,
    /// A decision that left the task there is under way since then; stolen time in it.
    stopped: Option<(u64, u64)>,
}

/// Takes events, gives numbers.
#[derive(Debug, Clone, Default)]
pub struct Measure {
    source: Source,
    plan: String,
    epoch_ns: Option<u64>,
    tasks: Vec<Task>,
    edges: Vec<Edge>,
    slots_nodes: Vec<bool>,
    cpus: Vec<Cpu>,
    former: Vec<Task>,
    /// The trace says when threads come in after a decision.
    tells_starts: bool,
    now_ns: u64,
    lost: u64,
}

fn at<T: Default>(list: &mut Vec<T>, id: u32) -> &mut T {
    let id = id.min(ID_MAX) as usize;
    if id >= list.len() {
        list.resize_with(id + 1, T::default);
    }
    &mut list[id]
}

fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

impl Measure {
    /// Of a schedule of this graph. `epoch_ns`: in a measured trace, jobs of a periodic task should be released that
    /// long after the clock's begin, plus the phase of the task, plus whole periods.
    pub fn new(header: &TraceHeader, epoch_ns: Option<u64>) -> Measure {
        let mut measure = Measure {
            source: header.source,
            plan: header.plan.clone(),
            epoch_ns,
            cpus: vec![Cpu::default(); header.cpus.min(CPUS_MAX) as usize],
            now_ns: header.start_ns,
            ..Default::default()
        };
        let change = PlanChange {
            nodes: header.nodes.clone(),
            tasks: header.tasks.clone(),
            edges: header.edges.clone(),
            ..PlanChange::default()
        };
        measure.change(&change);
        measure
    }

    /// What a file tells, up to its end or to what is wrong with it.
    pub fn read(
        input: impl Read,
        epoch_ns: Option<u64>,
    ) -> Result<(Measure, Option<TraceError>), TraceError> {
        let mut reader = Reader::new(input)?;
        let mut measure = Measure::new(reader.header(), epoch_ns);
        let mut renumber = Renumber::new(reader.header());
        let end_ns = reader.header().end_ns;
        let mut fault = None;
        for event in &mut reader {
            match event {
                Ok(event) => measure.seen(renumber.event(&event)),
                Err(error) => fault = Some(error),
            }
        }
        measure.finish(end_ns.unwrap_or(0));
        Ok((measure, fault))
    }

    /// What [`Renumber`] makes of a record.
    pub fn seen(&mut self, seen: Seen) {
        match seen {
            Seen::Event(event) => self.event(&event),
            Seen::Change(change) => self.change(&change),
            Seen::Nothing => {}
        }
    }

    /// The plan is another one from here on.
    pub fn change(&mut self, change: &PlanChange) {
        for node in &change.nodes {
            *at(&mut self.slots_nodes, node.id) = node.policy == "slots";
        }
        for TaskInfo { id, name, deadline_ns, period_ns, phase_ns, .. } in &change.tasks {
            *at(&mut self.tasks, *id) = Task {
                name: name.clone(),
                deadline_ns: *deadline_ns,
                period_ns: *period_ns,
                phase_ns: phase_ns.unwrap_or(0),
                has_jobs: period_ns.is_some(),
                ..Default::default()
            };
        }
        for EdgeInfo { id, parent, length_ns, .. } in &change.edges {
            *at(&mut self.edges, *id) = Edge { length_ns: *length_ns, ..self.edge_below(*parent) };
        }
    }

    fn edge_below(&self, parent: u32) -> Edge {
        Edge { slots: self.slots_nodes.get(parent as usize) == Some(&true), ..Default::default() }
    }

    /// Take in one event.
    pub fn event(&mut self, event: &Event) {
        let Some(kind) = event.kind() else { return };
        if event.fault(self.cpus.len() as u32).is_some() {
            return;
        }
        let Event { now_ns, cpu, a, b, value, .. } = *event;
        self.now_ns = self.now_ns.max(now_ns);
        match kind {
            Kind::Decision => self.decision(cpu, a, value as u32, now_ns),
            Kind::Outside if value == SCHEDULER => self.scheduler(cpu, a, b == 1, now_ns),
            Kind::Request => self.request(a, now_ns),
            Kind::Release => {
                at(&mut self.tasks, a).awake = false;
                if !self.tasks[a as usize].closing {
                    self.stops(a, now_ns);
                }
            }
            Kind::JobRelease => self.job_release(a, b, value, now_ns),
            Kind::JobStart => self.job_start(a),
            Kind::JobComplete => self.job_complete(a, b, now_ns),
            Kind::Stolen => {
                add(&mut at(&mut self.tasks, a).interrupted_ns, value);
                if let Some((_, stolen_ns)) = &mut self.cpus[usize::from(cpu)].stopped {
                    add(stolen_ns, value);
                }
            }
            Kind::Grant => self.grant(cpu, a),
            Kind::Revoke => self.revoke(a),
            Kind::Throttle => self.throttle(a, value, now_ns),
            Kind::Replenish => self.replenish(a, value, now_ns),
            Kind::Attach => *at(&mut self.edges, a) = self.edge_below(value as u32),
            Kind::Name => {
                let task = Task { name: event.text(), awake: false, ..Default::default() };
                let gone = std::mem::replace(at(&mut self.tasks, a), task);
                self.keep(gone);
            }
            Kind::Lost => self.lost = self.lost.saturating_add(value),
            Kind::Outside
            | Kind::Budget
            | Kind::Miss
            | Kind::Forgive
            | Kind::Control
            | Kind::Detach
            | Kind::Change
            | Kind::Resize
            | Kind::Tell
            | Kind::Migrate
            | Kind::Unkept
            | Kind::Met
            | Kind::LockWait
            | Kind::LockEnd
            | Kind::Mark
            | Kind::Mode => {}
        }
    }

    fn grant(&mut self, cpu: u16, edge: u32) {
        let edge = at(&mut self.edges, edge);
        edge.granted_on = Some(cpu);
        if let Some(opened_ns) = edge.fresh_ns.take() {
            let cpu = &mut self.cpus[usize::from(cpu)];
            cpu.opened = cpu.opened.max(Some((opened_ns, edge.slots)));
        }
    }

    fn revoke(&mut self, edge: u32) {
        let edge = at(&mut self.edges, edge);
        let (cpu, closed_ns) = (edge.granted_on.take(), edge.closed_ns.take());
        if let Some((cpu, closed_ns)) = cpu.zip(closed_ns) {
            self.cpus[usize::from(cpu)].freed = Some((closed_ns, Quantity::ResJ));
        }
    }

    fn throttle(&mut self, edge: u32, until_ns: u64, now_ns: u64) {
        let edge = at(&mut self.edges, edge);
        let closed_ns = edge.closes_ns.take().filter(|&ns| ns <= now_ns).unwrap_or(now_ns);
        (edge.opens_ns, edge.closed_ns, edge.fresh_ns) = (Some(until_ns), Some(closed_ns), None);
    }

    fn replenish(&mut self, edge: u32, budget_ns: u64, now_ns: u64) {
        let edge = at(&mut self.edges, edge);
        let mut opened_ns = edge.opens_ns.take().map(|ns| ns.min(now_ns));
        edge.closed_ns = None;
        if edge.slots {
            edge.closes_ns = now_ns.checked_add(budget_ns);
            let begin_ns = edge.closes_ns.and_then(|ns| ns.checked_sub(edge.length_ns?));
            opened_ns = begin_ns.or(opened_ns);
        }
        if edge.granted_on.is_none() {
            edge.fresh_ns = opened_ns;
        }
    }

    /// Of a thread that is gone.
    fn keep(&mut self, task: Task) {
        if task.series.is_none() {
            return;
        }
        match self.former.iter_mut().find(|other| other.name == task.name) {
            Some(other) => {
                let series = other
                    .series
                    .iter_mut()
                    .flat_map(|all| all.iter_mut())
                    .zip(task.series.iter().flat_map(|one| one.iter()));
                series.for_each(|(all, one)| all.merge(one));
            }
            None => self.former.push(task),
        }
    }

    /// The schedule goes until here.
    pub fn finish(&mut self, end_ns: u64) {
        self.now_ns = self.now_ns.max(end_ns);
        for cpu in 0..self.cpus.len() {
            self.came_in(cpu, self.now_ns.saturating_add(1));
        }
        for id in 0..self.tasks.len() {
            self.close(id as u32);
        }
    }

    fn record(&mut self, task: u32, quantity: Quantity, ns: u64) {
        let task = at(&mut self.tasks, task);
        if task.has_jobs {
            task.series.get_or_insert_default()[quantity as usize].record(ns);
        }
    }

    // ---- releases ----------------------------------------------------------------------------------------------------

    fn job_release(&mut self, id: u32, number: u32, deadline_ns: u64, now_ns: u64) {
        let (source, epoch_ns) = (self.source, self.epoch_ns);
        let task = at(&mut self.tasks, id);
        task.has_jobs |= deadline_ns != NO_DEADLINE;
        let due_ns = match source {
            Source::Sim => Some(match task.deadline_ns {
                Some(relative_ns) if deadline_ns != NO_DEADLINE => deadline_ns.saturating_sub(relative_ns),
                _ => now_ns,
            }),
            Source::Run => epoch_ns
                .zip(task.period_ns)
                .and_then(|(epoch_ns, period_ns)| {
                    let since_ns = now_ns.checked_sub(epoch_ns.checked_add(task.phase_ns)?)?;
                    Some(now_ns - since_ns.checked_rem(period_ns)?)
                })
                // A thread that comes was not released, and who wakes twice in a period was so once.
                .filter(|due_ns| task.due_ns.replace(*due_ns) != Some(*due_ns) && number > 1),
        };
        let first = task.jobs[0].is_none_or(|job| job.number <= task.done);
        task.jobs[usize::from(!first)] = Some(Job { number, due_ns });
    }

    fn request(&mut self, id: u32, now_ns: u64) {
        let task = at(&mut self.tasks, id);
        task.request_ns = now_ns;
        task.left_ns = now_ns;
        if std::mem::replace(&mut task.awake, true) {
            return;
        }
        // A job that suspends itself asks again: it has been released before.
        let job = task.jobs[0].as_mut().filter(|job| job.number > task.done);
        if let Some(due_ns) = job.and_then(|job| job.due_ns.take()) {
            self.record(id, Quantity::RelJ, now_ns.saturating_sub(due_ns));
        }
    }

    fn job_start(&mut self, id: u32) {
        if at(&mut self.tasks, id).closing {
            self.close(id);
        }
        if let Some(cpu) = self.tasks[id as usize].on_cpu {
            self.cpus[usize::from(cpu)].freed = None; // the job before was done, but the task goes on
        }
    }

    fn job_complete(&mut self, id: u32, number: u32, now_ns: u64) {
        let task = at(&mut self.tasks, id);
        task.done = number;
        if task.jobs[0].is_none_or(|job| job.number <= number) {
            task.jobs = [task.jobs[1].filter(|job| job.number > number), None];
        }
        task.closing = true;
        self.stops(id, now_ns);
    }

    /// Its job is done, or it blocks: whoever runs next could do so from here on.
    fn stops(&mut self, id: u32, now_ns: u64) {
        if let Some(cpu) = at(&mut self.tasks, id).on_cpu {
            self.cpus[usize::from(cpu)].freed = Some((now_ns, Quantity::CtswJ));
        }
    }

    /// What interrupts and decisions took of its job is known.
    fn close(&mut self, id: u32) {
        let simulated = self.source == Source::Sim;
        let task = at(&mut self.tasks, id);
        if !std::mem::take(&mut task.closing) {
            return;
        }
        let (interrupted_ns, stopped_ns) = (task.interrupted_ns, task.stopped_ns);
        (task.interrupted_ns, task.stopped_ns) = (0, 0);
        self.record(id, Quantity::IntO, interrupted_ns);
        if simulated {
            self.record(id, Quantity::RelO, stopped_ns);
        }
    }

    // ---- decisions ---------------------------------------------------------------------------------------------------

    fn decision(&mut self, number: u16, id: u32, before: u32, now_ns: u64) {
        let cpu = usize::from(number);
        self.came_in(cpu, now_ns);
        if id == before {
            self.cpus[cpu].opened = None;
            return;
        }
        if let Some(task) = self.tasks.get_mut(before as usize).filter(|_| before != 0) {
            task.left_ns = now_ns;
            task.on_cpu = task.on_cpu.filter(|&on| on != number);
            self.close(before);
        }
        let cpu = &mut self.cpus[cpu];
        let (decided_ns, opened) = (cpu.decided_ns, cpu.opened.take());
        cpu.stopped = None;
        if id == 0 {
            if cpu.freed.is_none() {
                cpu.decided_ns = now_ns;
            }
            return;
        }
        cpu.decided_ns = now_ns;
        let freed = cpu.freed.take();
        let task = at(&mut self.tasks, id);
        task.on_cpu = Some(number);
        let ready = |&(opened_ns, exclusive): &(u64, bool)| {
            task.request_ns <= opened_ns && (exclusive || freed.is_none_or(|(ns, _)| ns <= opened_ns))
        };
        let (should_ns, quantity) = match (opened.filter(ready), freed) {
            (Some((opened_ns, _)), _) => (opened_ns, Quantity::ResJ),
            (None, Some((ns, why))) if ns >= task.left_ns && ns >= decided_ns => (ns, why),
            _ if task.left_ns.saturating_add((before == 0).into()) > decided_ns => {
                (task.left_ns, Quantity::CtswJ)
            }
            _ => (now_ns, Quantity::CtswJ),
        };
        cpu.pending = Some(Pending { task: id, quantity, should_ns, decided_ns: now_ns });
    }

    /// Another decision comes: if nobody told when the thread came in, it did so at once.
    fn came_in(&mut self, cpu: usize, now_ns: u64) {
        let Some(start) = self.cpus[cpu].pending.take() else { return };
        let tells = self.tells_starts && self.source == Source::Run;
        if !tells && start.decided_ns < now_ns {
            let took_ns = start.decided_ns.saturating_sub(start.should_ns);
            self.record(start.task, start.quantity, took_ns);
        }
    }

    /// The scheduler itself takes the CPU, or gives it to the task.
    fn scheduler(&mut self, cpu: u16, id: u32, begins: bool, now_ns: u64) {
        let cpu = &mut self.cpus[usize::from(cpu)];
        if begins {
            cpu.stopped = cpu.pending.is_none().then_some((now_ns, 0));
            return;
        }
        self.tells_starts = true;
        match (cpu.pending.take(), cpu.stopped.take()) {
            (Some(start), _) if start.task == id => {
                self.record(id, start.quantity, now_ns.saturating_sub(start.should_ns));
            }
            (None, Some((since_ns, stolen_ns))) => {
                let took_ns = now_ns.saturating_sub(since_ns).saturating_sub(stolen_ns);
                add(&mut at(&mut self.tasks, id).stopped_ns, took_ns);
            }
            _ => {}
        }
    }

    // ---- what came of it ---------------------------------------------------------------------------------------------

    /// Name and numbers of every task that has any: of the plan, then threads that are gone.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, &Series)> {
        let all = self.tasks.iter().chain(&self.former);
        all.filter_map(|task| Some((task.name.as_str(), task.series.as_deref()?)))
    }
}
