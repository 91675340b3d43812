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

use crate::draw::Stream;
use crate::marks::Marks;
use crate::program::{Job, Next, Program, Step};
use crate::queue::Queue;
use crate::watch::{Seen, Watch};
use std::fmt;
use tierce_plan::{Arrival, Child, Costs, Ids, Members, Plan, Refused, Topology, Work};
use tierce_policy::{policies, Graph, NEVER};
use tierce_trace::SCHEDULER;
use tierce_trace::{Event, Kind, Report, Source, Stats, TraceHeader};

/// Decisions at one instant before it is a livelock: 64 CPUs, each as often as it has crossing edges, and more.
const ROUNDS_MAX: u32 = 10_000;

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
}

#[derive(Debug)]
struct Cpu {
    /// Id of the task it runs, 0: none.
    task: u32,
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
    cpus_next_ns: Vec<u64>,
    touched: Marks,
    /// Tasks move between the replicas of spread nodes.
    spreads: bool,
    interrupts: Vec<Interrupts>,
    /// Tasks by index, then interrupts.
    queue: Queue,
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

/// Do tasks below this node have to announce their deadlines?
fn heeds_deadlines(plan: &Plan, node: usize) -> bool {
    policies().iter().any(|policy| policy.number == plan.nodes[node].policy && policy.heeds_deadlines)
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
    /// The plan at time 0, nobody running yet.
    pub fn new(plan: &Plan, options: Options) -> Result<Simulation, Refused> {
        let mut graph = Graph::new(plan.machine.cpus, 0).map_err(|error| Refused {
            place: None,
            what: "machine".into(),
            why: error.into(),
        })?;
        let ids = plan.build(&mut graph.at(0), Members::Played)?;
        let topology = plan.machine.topology();
        for (cpu, near) in topology.near.iter().enumerate() {
            let told = graph.near(cpu as u32, near.core, near.cache, near.memory);
            told.map_err(|error| Refused { place: None, what: "machine".into(), why: error.into() })?;
        }
        graph.set_quiet(true);
        graph.set_floor_ns(options.floor_ns);
        let mut header = TraceHeader::of(plan, &ids, Source::Sim);
        header.seed = Some(options.seed);
        let stats = Stats::new(&header);
        if options.trace {
            graph.trace(true);
        } else {
            graph.trace_kinds(stats.observed_kinds() | 1 << Kind::Replenish as u64);
        }

        let mut queue = Queue::default();
        let mut tasks: Vec<Task> = (0..plan.tasks.len())
            .map(|index| {
                let (program, begin_ns) = Program::new(plan, index, options.seed);
                if begin_ns != NEVER {
                    queue.push(begin_ns.saturating_add(options.late_ns), index as u32);
                }
                Task {
                    program,
                    left_ns: 0,
                    job: Job { release_ns: 0, deadline_ns: NEVER },
                    begun: 0,
                    done: 0,
                    constrained_ns: 0,
                    started: true,
                    announces: false,
                    last_cpu: u32::MAX,
                }
            })
            .collect();
        for edge in &plan.edges {
            if let Child::Task(task) = edge.child {
                tasks[task].announces |= heeds_deadlines(plan, edge.parent);
            }
        }
        let mut interrupts = Vec::new();
        for (number, source) in plan.machine.interrupts.iter().enumerate() {
            for cpu in (0..plan.machine.cpus).filter(|&cpu| source.cpu.is_none_or(|only| only == cpu)) {
                let mut draws =
                    Stream::new(options.seed, "interrupt", (number as u64) << 32 | u64::from(cpu));
                let poisson = source.arrival == Arrival::Poisson;
                let wait_ns = if poisson { draws.exponential(source.every_ns) } else { source.phase_ns };
                let at_ns = plan.machine.epoch_ns.saturating_add(wait_ns);
                queue.push(at_ns, (tasks.len() + interrupts.len()) as u32);
                let (every_ns, takes) = (source.every_ns, source.takes.clone());
                interrupts.push(Interrupts { cpu, every_ns, takes, at: 0, poisson, draws });
            }
        }
        let watch = options.trace.then(|| Watch::new(tasks.iter().map(|task| task.program.arrivals())));
        let cpus = (0..plan.machine.cpus).map(|_| Cpu {
            task: 0,
            from_ns: 0,
            end_ns: NEVER,
            until_ns: NEVER,
            interrupt_end_ns: NEVER,
            timer: false,
            switches: 0,
            returning: false,
            scheduling: false,
        });
        Ok(Simulation {
            first_task: ids.tasks.first().copied().unwrap_or(u32::MAX),
            cpus: cpus.collect(),
            cpus_next_ns: vec![NEVER; plan.machine.cpus as usize],
            touched: Marks::new(plan.machine.cpus),
            spreads: plan.nodes.iter().any(|node| node.family.is_some()),
            kicked: Marks::new(plan.machine.cpus),
            costs: options.costs.unwrap_or(plan.machine.costs),
            topology,
            late_ns: options.late_ns,
            events: Vec::new(),
            check: options.check,
            now_ns: 0,
            instants: 0,
            graph,
            ids,
            tasks,
            interrupts,
            queue,
            header,
            stats,
            watch,
        })
    }

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
        self.cpus_next_ns.iter().fold(self.queue.first_ns(), |next, &cpu| next.min(cpu))
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
            self.cpus_next_ns[cpu as usize] = self.cpus[cpu as usize].next_ns(self.kicked.has(cpu));
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

    // ---- one instant -----------------------------------------------------------------------------------------------

    fn instant(&mut self, now: u64) -> Result<(), Violation> {
        self.now_ns = now;
        self.instants += 1;
        self.look_around(now, now);
        for cpu in 0..self.cpus.len() as u32 {
            if self.cpus_next_ns[cpu as usize] <= now {
                self.cpu_due(cpu, now);
            }
        }
        while let Some(who) = self.queue.pop(now) {
            match self.tasks.get_mut(who as usize) {
                Some(_) => self.wake(who, now),
                None => self.interrupt(who as usize - self.tasks.len(), now),
            }
        }
        self.settle(now)
    }

    /// Decide until no CPU is kicked any more, and look at what came of it.
    fn settle(&mut self, now: u64) -> Result<(), Violation> {
        let settled = self.decide_all(now);
        self.take_in();
        settled?;
        if self.check {
            self.verify(now)?;
        }
        Ok(())
    }

    /// What is due on this CPU itself.
    fn cpu_due(&mut self, cpu: u32, now: u64) {
        let many = self.cpus.len() > 1;
        self.touched.mark(cpu);
        let c = &mut self.cpus[cpu as usize];
        if c.interrupt_end_ns <= now {
            c.interrupt_end_ns = NEVER;
            self.graph.outside(cpu, false, now);
        }
        if c.from_ns > now {
            return;
        }
        if c.returning {
            c.returning = false;
            self.graph.returned(cpu, now);
        }
        if c.until_ns <= now {
            c.until_ns = NEVER;
            c.timer = true;
            self.kicked.mark(cpu);
            if many {
                self.graph.event(cpu, now, 0); // shared events come before requests
            }
        }
        if c.end_ns <= now {
            self.progress(cpu, now);
            self.run_over(cpu, now);
        }
    }

    /// Account for the progress of what the CPU runs.
    #[inline]
    fn progress(&mut self, cpu: u32, now: u64) {
        let c = &mut self.cpus[cpu as usize];
        if c.from_ns < now {
            if c.task != 0 {
                self.tasks[(c.task - self.first_task) as usize].left_ns -= now - c.from_ns;
            }
            c.from_ns = now;
        }
    }

    /// The run of the task on this CPU is over: it goes on with the next one, or blocks.
    fn run_over(&mut self, cpu: u32, now: u64) {
        let id = self.cpus[cpu as usize].task;
        let index = id - self.first_task;
        let task = &mut self.tasks[index as usize];
        let deadline_ns = std::mem::take(&mut task.constrained_ns);
        if deadline_ns > 0 && now <= deadline_ns {
            self.stats.met(id);
            if self.watch.is_some() {
                self.tell(now, Kind::Met, cpu, id, 0, deadline_ns);
            }
        }
        let Step { completes, next } = self.tasks[index as usize].program.step(now);
        let task = &mut self.tasks[index as usize];
        if completes {
            task.done += 1;
            let response_ns = now - task.job.release_ns;
            let late_ns = now.saturating_sub(task.job.deadline_ns);
            if late_ns > 0 {
                self.stats.miss(id);
            }
            self.stats.job_complete(id, response_ns, late_ns);
            if self.watch.is_some() {
                let number = self.tasks[index as usize].done;
                self.tell(now, Kind::JobComplete, cpu, id, number, response_ns);
            }
        }
        match next {
            Next::Run { work_ns, begins, within_ns } => {
                self.begin(index, work_ns, begins, now);
                self.constrain(index, work_ns, within_ns, now);
                let c = &mut self.cpus[cpu as usize];
                c.end_ns = c.from_ns.saturating_add(work_ns);
                self.start(cpu, index, now);
                return;
            }
            Next::Wait(at_ns) => self.queue.push(at_ns.saturating_add(self.late_ns), index),
            Next::End => {}
        }
        self.graph.release(id, now);
        let c = &mut self.cpus[cpu as usize];
        c.task = 0;
        c.end_ns = NEVER;
    }

    /// The wait of a task is over.
    #[inline]
    fn wake(&mut self, index: u32, now: u64) {
        let Step { next, .. } = self.tasks[index as usize].program.step(now);
        match next {
            Next::Run { work_ns, begins, within_ns } => {
                self.begin(index, work_ns, begins, now);
                self.graph.wake(self.first_task + index, now);
                self.constrain(index, work_ns, within_ns, now);
            }
            Next::Wait(at_ns) => self.queue.push(at_ns.saturating_add(self.late_ns), index),
            Next::End => {}
        }
    }

    /// A run begins, and perhaps a job with it.
    #[inline]
    fn begin(&mut self, index: u32, work_ns: u64, begins: Option<Job>, now: u64) {
        let id = self.first_task + index;
        let task = &mut self.tasks[index as usize];
        task.left_ns = work_ns;
        let Some(job) = begins else { return };
        task.job = job;
        task.begun += 1;
        task.started = false;
        self.stats.job_release(id);
        if task.announces {
            self.graph.announce(id, job.deadline_ns, now);
        }
        let number = self.tasks[index as usize].begun;
        if let Some(watch) = self.watch.as_mut().filter(|watch| !watch.tells_arrivals(index as usize)) {
            watch.begun(index as usize, number, job.deadline_ns);
            self.tell(now, Kind::JobRelease, self.cpu_of(id), id, number, job.deadline_ns);
        }
    }

    /// The task, which wants the CPU, asks for a time constraint; whatever the answer is, it runs.
    #[inline]
    fn constrain(&mut self, index: u32, work_ns: u64, within_ns: Option<u64>, now: u64) {
        let Some(within_ns) = within_ns else { return };
        let (id, deadline_ns) = (self.first_task + index, now.saturating_add(within_ns));
        let accepted = self.graph.constrain(id, work_ns, deadline_ns, now).is_ok();
        self.stats.asked(id, accepted);
        if accepted {
            self.tasks[index as usize].constrained_ns = deadline_ns;
        }
    }

    /// The task has a CPU: its job, if it is a new one, has started.
    #[inline]
    fn start(&mut self, cpu: u32, index: u32, now: u64) {
        let task = &mut self.tasks[index as usize];
        if !task.started {
            task.started = true;
            if self.watch.is_some() {
                let number = task.begun;
                self.tell(now, Kind::JobStart, cpu, self.first_task + index, number, 0);
            }
        }
    }

    fn interrupt(&mut self, number: usize, now: u64) {
        let source = &mut self.interrupts[number];
        let cpu = source.cpu;
        let takes_ns = match &source.takes {
            Work::Constant(ns) => *ns,
            Work::Uniform { min_ns, max_ns } => source.draws.between(*min_ns, *max_ns),
            Work::List(list) => {
                source.at += 1;
                list[(source.at - 1) % list.len()]
            }
        };
        let wait_ns =
            if source.poisson { source.draws.exponential(source.every_ns) } else { source.every_ns };
        self.queue.push(now.saturating_add(wait_ns), (self.tasks.len() + number) as u32);
        self.take_away(cpu, takes_ns, now);
    }

    fn take_away(&mut self, cpu: u32, takes_ns: u64, now: u64) {
        self.progress(cpu, now);
        self.touched.mark(cpu);
        let c = &mut self.cpus[cpu as usize];
        c.from_ns = c.from_ns.max(now).saturating_add(takes_ns);
        c.end_ns = if c.task == 0 { NEVER } else { c.end_ns.saturating_add(takes_ns) };
        if c.interrupt_end_ns == NEVER {
            c.interrupt_end_ns = now.saturating_add(takes_ns);
            self.graph.outside(cpu, true, now);
        } else {
            c.interrupt_end_ns = c.interrupt_end_ns.saturating_add(takes_ns);
        }
    }

    // ---- decisions -------------------------------------------------------------------------------------------------

    fn decide_all(&mut self, now_ns: u64) -> Result<(), Violation> {
        let (mut rounds, now) = (0, now_ns);
        loop {
            if let Some(words) = self.graph.kicked_words() {
                self.kicked.take(words);
            }
            let mut due = self.kicked.first_from(0);
            while let Some(cpu) = due.filter(|cpu| self.cpus[*cpu as usize].from_ns > now) {
                due = self.kicked.first_from(cpu + 1); // busy with itself
            }
            let Some(cpu) = due else { break };
            self.kicked.clear(cpu);
            self.decide(cpu, now);
            rounds += 1;
            if rounds == ROUNDS_MAX {
                return Err(Violation {
                    now_ns,
                    rule: "livelock: the CPUs kick each other without end".into(),
                });
            }
        }
        self.plan_cpus();
        Ok(())
    }

    #[inline]
    fn decide(&mut self, cpu: u32, now: u64) {
        self.progress(cpu, now);
        self.touched.mark(cpu);
        let c = &mut self.cpus[cpu as usize];
        if std::mem::take(&mut c.returning) {
            self.graph.returned(cpu, now);
        }
        let ran = self.graph.cpu(cpu).task;
        let task = self.choose(cpu, now);
        if ran != 0 && ran != task && self.graph.is_spread(ran) {
            self.graph.offer(ran);
        }
        let c = &mut self.cpus[cpu as usize];
        let engine = self.graph.cpu(cpu);
        c.until_ns = engine.until_ns.saturating_add(self.late_ns);
        let (leaves, levels) = (engine.leaves > 0, u64::from(engine.path_length.saturating_sub(1)));
        let changed = task != c.task;
        c.switches += u64::from(task != ran && task != 0);
        c.task = task;
        c.from_ns = now;
        if task == 0 {
            c.end_ns = NEVER;
        } else {
            let index = task - self.first_task;
            let t = &mut self.tasks[index as usize];
            let mut cost_ns = if c.timer { self.costs.timer_ns } else { 0 };
            if changed {
                cost_ns += self.costs.switch_ns + self.costs.level_ns * levels;
                if t.last_cpu != cpu {
                    if t.last_cpu != u32::MAX {
                        cost_ns += self.costs.migration.of(self.topology.distance(t.last_cpu, cpu));
                    }
                    t.last_cpu = cpu;
                }
            }
            c.from_ns = now.saturating_add(cost_ns);
            c.end_ns = c.from_ns.saturating_add(t.left_ns);
            if changed && !t.started {
                self.start(cpu, index, now);
            }
            if cost_ns > 0 && self.watch.is_some() {
                self.cpus[cpu as usize].scheduling = true;
                self.tell(now, Kind::Outside, cpu, task, 1, SCHEDULER);
            }
        }
        let c = &mut self.cpus[cpu as usize];
        c.timer = false;
        if leaves {
            if c.from_ns == now {
                self.graph.returned(cpu, now);
            } else {
                c.returning = true;
            }
        }
        if c.until_ns <= now {
            self.kicked.mark(cpu); // more was due than one entry takes
        }
    }

    /// A decision; a CPU that finds nothing takes a task that waits elsewhere, and one where tasks wait may give one away.
    #[inline]
    fn choose(&mut self, cpu: u32, now: u64) -> u32 {
        let task = self.graph.decide(cpu, now, 0);
        if !self.spreads {
            return task;
        }
        if task == 0 && self.graph.cpu(cpu).leaves == 0 && self.graph.pull(cpu, now) != 0 {
            return self.graph.decide(cpu, now, 0);
        }
        if task != 0 {
            self.graph.balance(cpu, now);
        }
        task
    }

    // ---- events, statistics, checks ----------------------------------------------------------------------------------

    /// Tell of jobs that have arrived, of costs that are paid, and of deadlines that have passed before `now`.
    fn look_around(&mut self, now: u64, arrived: u64) {
        let Some(mut watch) = self.watch.take() else { return };
        let mut started = false;
        for cpu in 0..self.cpus.len() {
            let c = &mut self.cpus[cpu];
            if c.scheduling && c.from_ns <= arrived {
                c.scheduling = false;
                started = true;
                let (from_ns, task) = (c.from_ns, c.task);
                self.tell(from_ns, Kind::Outside, cpu as u32, task, 0, SCHEDULER);
            }
        }
        while let Some(seen) = watch.next(now, arrived) {
            match seen {
                Seen::Arrival(task, number, job) => {
                    let id = self.first_task + task as u32;
                    self.tell(job.release_ns, Kind::JobRelease, self.cpu_of(id), id, number, job.deadline_ns);
                }
                Seen::Due(task, number, at_ns) if self.tasks[task].done < number => {
                    let id = self.first_task + task as u32;
                    self.tell(at_ns, Kind::Miss, self.cpu_of(id), id, number, at_ns);
                }
                Seen::Due(..) => {}
            }
        }
        self.watch = Some(watch);
        if started {
            self.graph.events_mut().sort_by_key(|event| event.now_ns);
        }
    }

    fn tell(&mut self, now_ns: u64, kind: Kind, cpu: u32, a: u32, b: u32, value: u64) {
        let (kind, cpu) = (kind as u16, cpu as u16);
        self.graph.events_mut().push(tierce_policy::Event { now_ns, kind, cpu, a, b, value });
    }

    /// The CPU a task runs on or belongs to, 0 when it belongs to several.
    fn cpu_of(&self, task: u32) -> u32 {
        let node = self.graph.node(task);
        let cpus = self.cpus.len() as u32;
        [node.on_cpu, node.domain].into_iter().find(|&cpu| cpu < cpus).unwrap_or(0)
    }

    /// Take in what the engine has told.
    #[inline]
    fn take_in(&mut self) {
        if self.graph.events_mut().is_empty() {
            return;
        }
        let mut told = std::mem::take(self.graph.events_mut());
        for event in &told {
            if event.kind == Kind::Replenish as u16 {
                self.stats.replenish(event.a, self.graph.edge(event.a).supply_ns);
            }
            if self.spreads {
                let tierce_policy::Event { now_ns, kind, cpu, a, b, value } = *event;
                self.stats.observe(&Event { now_ns, kind, cpu, a, b, pad: 0, value });
            }
        }
        if self.watch.is_some() {
            for event in &told {
                let tierce_policy::Event { now_ns, kind, mut cpu, a, b, value } = *event;
                if usize::from(cpu) >= self.cpus.len() {
                    cpu = self.home(kind, a) as u16;
                }
                self.events.push(Event { now_ns, kind, cpu, a, b, pad: 0, value });
            }
        }
        told.clear();
        *self.graph.events_mut() = told;
    }

    /// A CPU for a record of something that several CPUs share: where it runs, or the first.
    fn home(&self, kind: u16, id: u32) -> u32 {
        let on = match Kind::from_number(kind) {
            Some(Kind::Request | Kind::Release | Kind::Tell) => self.graph.node(id).on_cpu,
            _ => self.graph.edge(id).on_cpu,
        };
        if on < self.cpus.len() as u32 {
            on
        } else {
            0
        }
    }

    fn verify(&mut self, now_ns: u64) -> Result<(), Violation> {
        let rest = self.kicked.first_from(0).is_none() && self.cpus.iter().all(|cpu| !cpu.returning);
        self.graph.check(rest).map_err(|broken| Violation { now_ns, rule: format!("{broken:?}") })
    }

    /// Statistics as of now. The simulation can go on afterwards.
    pub fn report(&self) -> Report {
        self.stats().report()
    }

    /// Statistics as of now; see [`Self::report`].
    pub fn stats(&self) -> Stats {
        let now = self.now_ns;
        let mut stats = self.stats.clone();
        self.closing_events().iter().for_each(|event| stats.observe(event));
        let mut extra_edges: Vec<(u32, u64)> = Vec::new();
        let mut extra_tasks: Vec<(u32, u64)> = Vec::new();
        for (number, c) in self.cpus.iter().enumerate() {
            // What the engine will charge for the time since its last entry.
            let engine = self.graph.cpu(number as u32);
            let pending = now.saturating_sub(engine.charged_ns);
            let (mut used, mut idle, mut stolen) = (engine.used_ns, engine.idle_ns, engine.stolen_ns);
            if c.interrupt_end_ns != NEVER {
                stolen += pending;
            } else if engine.path_length == 0 {
                idle += pending;
            } else {
                used += pending;
                extra_tasks.push((engine.task, pending));
                let path = &engine.path[..engine.path_length as usize];
                extra_edges.extend(path.iter().map(|&edge| (edge, pending)));
            }
            stats.set_cpu_usage(number as u32, used, idle, stolen, c.switches);
        }
        let extra = |list: &[(u32, u64)], id| list.iter().filter(|e| e.0 == id).map(|e| e.1).sum::<u64>();
        for (index, task) in self.tasks.iter().enumerate() {
            let id = self.first_task + index as u32;
            let node = self.graph.node(id);
            stats.set_task_usage(
                id,
                node.ran_ns + extra(&extra_tasks, id),
                u64::from(node.switches),
                u64::from(node.migrations),
            );
            let (arrived, late) = task.program.backlog(now);
            (0..arrived).for_each(|_| stats.job_release(id));
            let misses = late + u64::from(task.begun > task.done && task.job.deadline_ns < now);
            (0..misses).for_each(|_| stats.miss(id));
        }
        for id in self.ids.edges.iter().copied().chain(self.ids.roots.iter().map(|root| root.2)) {
            let edge = self.graph.edge(id);
            let cpu_ns = edge.supply_ns + extra(&extra_edges, id);
            stats.set_edge_usage(
                id,
                cpu_ns,
                u64::from(edge.grants),
                u64::from(edge.throttles),
                edge.forgiven_ns,
            );
        }
        stats.finish(now);
        stats
    }
}
