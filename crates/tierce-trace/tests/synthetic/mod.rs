//! A small schedule to test with: two CPUs, hard reservations under EDF, a shared fair rest. It knows nothing of the
//! engine; it only has to be a realistic stream of events whose totals it knows itself.

use std::collections::VecDeque;
use tierce_trace::{EdgeInfo, Event, Kind, NodeInfo, Source, TaskInfo, Trace, TraceHeader, NO_DEADLINE};

const MS: u64 = 1_000_000;
const QUANTUM_NS: u64 = 3 * MS;
const NEVER: u64 = u64::MAX;

/// What to generate.
pub struct Options {
    pub seed: u64,
    pub end_ns: u64,
    /// Interrupts steal time, as on a real machine.
    pub stolen: bool,
    pub source: Source,
}

/// What the generator counted itself, to compare statistics with.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    pub cpu_ns: u64,
    pub jobs: u64,
    pub misses: u64,
    pub response_max_ns: u64,
    pub response_sum_ns: u64,
    pub tardiness_max_ns: u64,
    pub throttles: u64,
    pub switches: u64,
    pub migrations: u64,
}

#[derive(Clone, Copy)]
enum Load {
    Periodic { period_ns: u64, deadline_ns: u64, least_ns: u64, most_ns: u64 },
    Busy,
}

struct Job {
    number: u32,
    release_ns: u64,
    deadline_ns: u64,
    left_ns: u64,
    started: bool,
    missed: bool,
}

struct Task {
    name: &'static str,
    load: Load,
    /// CPU of its reservation and (budget, period), or none: it is in the fair rest.
    reserved: Option<(usize, u64, u64)>,
    weight: u64,
    jobs: VecDeque<Job>,
    next_release_ns: u64,
    numbers: u32,
    remaining_ns: u64,
    server_deadline_ns: u64,
    throttled: bool,
    virtual_ns: u64,
    on_cpu: Option<usize>,
    last_cpu: Option<usize>,
    truth: Truth,
}

impl Task {
    fn ready(&self) -> bool {
        !self.throttled && (matches!(self.load, Load::Busy) || !self.jobs.is_empty())
    }
    fn left_ns(&self) -> u64 {
        self.jobs.front().map_or(NEVER, |job| job.left_ns)
    }
}

// Ids: nodes top@0 1, top@1 2, rt@0 3, rt@1 4, desktop 5; tasks from 6. Edges: roots 1, 2; rt@c 3, 4; desktop 5, 6;
// tasks from 7.
const FIRST_TASK: u32 = 6;
const FIRST_TASK_EDGE: u32 = 7;

struct Generator {
    now_ns: u64,
    rng: u64,
    tasks: Vec<Task>,
    running: [Option<usize>; 2],
    slice_ns: [u64; 2],
    events: Vec<Event>,
}

impl Generator {
    fn draw(&mut self, below: u64) -> u64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        self.rng % below.max(1)
    }

    fn tell(&mut self, kind: Kind, cpu: usize, a: u32, b: u32, value: u64) {
        self.events.push(Event::new(self.now_ns, kind, cpu as u16, a, b, value));
    }

    fn path(&self, cpu: usize, task: usize) -> Vec<(u32, u32)> {
        let (edge, id) = (FIRST_TASK_EDGE + task as u32, FIRST_TASK + task as u32);
        let cpu = cpu as u32;
        match self.tasks[task].reserved {
            Some(_) => vec![(1 + cpu, 1 + cpu), (3 + cpu, 3 + cpu), (edge, id)],
            None => vec![(1 + cpu, 1 + cpu), (5 + cpu, 5), (edge, id)],
        }
    }

    fn next_ns(&self, end_ns: u64) -> u64 {
        let mut next = end_ns;
        for task in &self.tasks {
            next = next.min(task.next_release_ns);
            if task.throttled {
                next = next.min(task.server_deadline_ns);
            }
            for job in task.jobs.iter().filter(|job| !job.missed) {
                next = next.min(job.deadline_ns);
            }
        }
        for (cpu, running) in self.running.iter().enumerate() {
            let Some(task) = running.map(|at| &self.tasks[at]) else { continue };
            let budget = if task.reserved.is_some() { task.remaining_ns } else { self.slice_ns[cpu] };
            next = next.min(self.now_ns.saturating_add(budget.min(task.left_ns())));
        }
        next
    }

    fn run_to(&mut self, next_ns: u64, stolen: bool) {
        let elapsed = next_ns - self.now_ns;
        self.now_ns = next_ns;
        for cpu in 0..2 {
            let steal = if stolen && self.draw(12) == 0 { self.draw(elapsed.min(60_000)) } else { 0 };
            if steal > 0 {
                let id = self.running[cpu].map_or(0, |at| FIRST_TASK + at as u32);
                self.tell(Kind::Stolen, cpu, id, 0, steal);
            }
            let Some(at) = self.running[cpu] else { continue };
            let ran = elapsed - steal;
            let (edge, id) = (FIRST_TASK_EDGE + at as u32, FIRST_TASK + at as u32);
            let task = &mut self.tasks[at];
            task.truth.cpu_ns += ran;
            if let Some(job) = task.jobs.front_mut() {
                job.left_ns -= ran;
            }
            if task.reserved.is_none() {
                task.virtual_ns += ran * 100 / task.weight;
                self.slice_ns[cpu] = self.slice_ns[cpu].saturating_sub(ran);
                continue;
            }
            task.remaining_ns -= ran;
            let (remaining, until) = (task.remaining_ns, task.server_deadline_ns);
            let spent = remaining == 0;
            if spent {
                task.throttled = true;
                task.truth.throttles += 1;
            }
            self.tell(Kind::Budget, cpu, edge, id, remaining);
            if spent {
                self.tell(Kind::Throttle, cpu, edge, id, until);
            }
        }
    }

    fn task_events(&mut self) {
        let now = self.now_ns;
        for at in 0..self.tasks.len() {
            let (edge, id) = (FIRST_TASK_EDGE + at as u32, FIRST_TASK + at as u32);
            let cpu = self.tasks[at].on_cpu.or(self.tasks[at].reserved.map(|r| r.0)).unwrap_or(0);
            let task = &mut self.tasks[at];
            if task.jobs.front().is_some_and(|job| job.left_ns == 0) {
                let job = task.jobs.pop_front().unwrap();
                let response = now - job.release_ns;
                task.truth.jobs += 1;
                task.truth.response_sum_ns += response;
                task.truth.response_max_ns = task.truth.response_max_ns.max(response);
                if job.missed {
                    let late = now - job.deadline_ns;
                    task.truth.tardiness_max_ns = task.truth.tardiness_max_ns.max(late);
                }
                let idle = task.jobs.is_empty();
                self.tell(Kind::JobComplete, cpu, id, job.number, response);
                if idle {
                    self.tell(Kind::Release, cpu, id, 3, 0);
                }
            }
            let task = &mut self.tasks[at];
            let late = task.jobs.iter_mut().filter(|job| !job.missed && job.deadline_ns <= now);
            let late: Vec<_> = late
                .map(|job| (std::mem::replace(&mut job.missed, true), job.number, job.deadline_ns))
                .collect();
            task.truth.misses += late.len() as u64;
            for (_, number, deadline_ns) in late {
                self.tell(Kind::Miss, cpu, id, number, deadline_ns);
            }
            if let (true, Some((_, budget_ns, period_ns))) =
                (self.tasks[at].throttled, self.tasks[at].reserved)
            {
                if self.tasks[at].server_deadline_ns <= now {
                    let task = &mut self.tasks[at];
                    task.throttled = false;
                    task.remaining_ns = budget_ns;
                    task.server_deadline_ns += period_ns;
                    self.tell(Kind::Replenish, cpu, edge, id, budget_ns);
                }
            }
            if self.tasks[at].next_release_ns <= now {
                self.release_job(at, cpu);
            }
        }
    }

    fn release_job(&mut self, at: usize, cpu: usize) {
        let (edge, id, now) = (FIRST_TASK_EDGE + at as u32, FIRST_TASK + at as u32, self.now_ns);
        let Load::Periodic { period_ns, deadline_ns, least_ns, most_ns } = self.tasks[at].load else {
            self.tasks[at].next_release_ns = NEVER;
            self.tell(Kind::Request, cpu, id, 0, 0);
            return;
        };
        let left_ns = least_ns + self.draw(most_ns - least_ns + 1);
        let task = &mut self.tasks[at];
        let woke = task.jobs.is_empty();
        task.numbers += 1;
        let number = task.numbers;
        task.next_release_ns = now + period_ns;
        let deadline_ns = now + deadline_ns;
        task.jobs.push_back(Job {
            number,
            release_ns: now,
            deadline_ns,
            left_ns,
            started: false,
            missed: false,
        });
        self.tell(Kind::JobRelease, cpu, id, number, deadline_ns);
        if !woke {
            return;
        }
        self.tell(Kind::Request, cpu, id, 0, 0);
        let task = &mut self.tasks[at];
        if let Some((_, budget_ns, period_ns)) = task.reserved {
            let rest = task.server_deadline_ns.saturating_sub(now);
            if !task.throttled && task.remaining_ns * period_ns >= rest * budget_ns {
                task.remaining_ns = budget_ns;
                task.server_deadline_ns = now + period_ns;
                self.tell(Kind::Replenish, cpu, edge, id, budget_ns);
            }
        }
    }

    fn pick(&self, cpu: usize) -> Option<usize> {
        let reserved = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, t)| t.reserved.is_some_and(|r| r.0 == cpu) && t.ready());
        if let Some((at, _)) = reserved.min_by_key(|(at, t)| (t.server_deadline_ns, *at)) {
            return Some(at);
        }
        if let Some(at) = self.running[cpu] {
            if self.tasks[at].reserved.is_none() && self.tasks[at].ready() && self.slice_ns[cpu] > 0 {
                return Some(at);
            }
        }
        let free = |t: &Task| t.reserved.is_none() && t.ready() && t.on_cpu.is_none_or(|on| on == cpu);
        let fair = self.tasks.iter().enumerate().filter(|(_, t)| free(t));
        fair.min_by_key(|(at, t)| (t.virtual_ns, *at)).map(|(at, _)| at)
    }

    fn decide(&mut self, cpu: usize) {
        let (old, new) = (self.running[cpu], self.pick(cpu));
        if self.slice_ns[cpu] == 0 {
            self.slice_ns[cpu] = QUANTUM_NS;
        }
        if old == new {
            return;
        }
        let (old_path, new_path) =
            (old.map_or(vec![], |at| self.path(cpu, at)), new.map_or(vec![], |at| self.path(cpu, at)));
        let common = old_path.iter().zip(&new_path).take_while(|(a, b)| a == b).count();
        let blocked = old.is_some_and(|at| !self.tasks[at].ready());
        for &(edge, _) in old_path[common..].iter().rev() {
            self.tell(Kind::Revoke, cpu, edge, if blocked { 3 } else { 7 }, 0);
        }
        for &(edge, child) in &new_path[common..] {
            self.tell(Kind::Grant, cpu, edge, child, 0);
        }
        let id = |task: Option<usize>| task.map_or(0, |at| FIRST_TASK + at as u32);
        self.tell(Kind::Decision, cpu, id(new), new_path.last().map_or(0, |p| p.0), u64::from(id(old)));
        if let Some(at) = old {
            self.tasks[at].on_cpu = None;
        }
        self.running[cpu] = new;
        let Some(at) = new else { return };
        let task = &mut self.tasks[at];
        if task.reserved.is_none() {
            self.slice_ns[cpu] = QUANTUM_NS;
        }
        task.truth.switches += 1;
        task.truth.migrations += u64::from(task.last_cpu.is_some_and(|last| last != cpu));
        (task.on_cpu, task.last_cpu) = (Some(cpu), Some(cpu));
        if let Some(job) = task.jobs.front_mut().filter(|job| !job.started) {
            job.started = true;
            let number = job.number;
            self.tell(Kind::JobStart, cpu, id(new), number, 0);
        }
    }
}

fn task(
    name: &'static str,
    load: Load,
    reserved: Option<(usize, u64, u64)>,
    weight: u64,
    offset_ns: u64,
) -> Task {
    Task {
        name,
        load,
        reserved,
        weight,
        jobs: VecDeque::new(),
        next_release_ns: offset_ns,
        numbers: 0,
        remaining_ns: reserved.map_or(0, |r| r.1),
        server_deadline_ns: 0,
        throttled: false,
        virtual_ns: 0,
        on_cpu: None,
        last_cpu: None,
        truth: Truth::default(),
    }
}

fn tasks() -> Vec<Task> {
    let periodic = |period: u64, deadline: u64, least: u64, most: u64| Load::Periodic {
        period_ns: period * MS,
        deadline_ns: deadline * MS,
        least_ns: least * 1000,
        most_ns: most * 1000,
    };
    vec![
        task("audio", periodic(10, 10, 1_500, 1_900), Some((0, 2 * MS, 10 * MS)), 0, 0),
        task("video", periodic(33, 33, 6_000, 11_500), Some((0, 10 * MS, 33 * MS)), 0, 2 * MS),
        task("control", periodic(5, 4, 500, 1_150), Some((1, MS, 5 * MS)), 0, MS / 2),
        task("runaway", Load::Busy, Some((1, 6 * MS, 20 * MS)), 0, 3 * MS),
        task("build", Load::Busy, None, 300, 0),
        task("browser", periodic(40, 40, 4_000, 16_000), None, 100, 5 * MS),
        task("indexer", Load::Busy, None, 50, 0),
    ]
}

fn node(id: u32, name: &str, policy: &str, level: u32) -> NodeInfo {
    NodeInfo { id, name: name.into(), policy: policy.into(), level, ..Default::default() }
}

fn header(options: &Options, tasks: &[Task]) -> TraceHeader {
    let nodes = vec![
        node(1, "top@0", "fixed-priority", 0),
        node(2, "top@1", "fixed-priority", 0),
        node(3, "rt@0", "reservation", 1),
        node(4, "rt@1", "reservation", 1),
        node(5, "desktop", "fair", 1),
    ];
    let edge = |id, parent: u32, child: u32, parent_name: &str, child_name: &str| EdgeInfo {
        id,
        parent,
        child,
        parent_name: parent_name.into(),
        child_name: child_name.into(),
        ..Default::default()
    };
    let mut edges = vec![
        EdgeInfo { cpu: Some(0), ..edge(1, 0, 1, "cpu0", "top@0") },
        EdgeInfo { cpu: Some(1), ..edge(2, 0, 2, "cpu1", "top@1") },
        EdgeInfo { priority: Some(1), ..edge(3, 1, 3, "top@0", "rt@0") },
        EdgeInfo { priority: Some(1), ..edge(4, 2, 4, "top@1", "rt@1") },
        EdgeInfo { priority: Some(0), ..edge(5, 1, 5, "top@0", "desktop") },
        EdgeInfo { priority: Some(0), ..edge(6, 2, 5, "top@1", "desktop") },
    ];
    let mut infos = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        let (id, edge_id) = (FIRST_TASK + at as u32, FIRST_TASK_EDGE + at as u32);
        let (period_ns, deadline_ns) = match task.load {
            Load::Periodic { period_ns, deadline_ns, .. } => (Some(period_ns), Some(deadline_ns)),
            Load::Busy => (None, None),
        };
        infos.push(TaskInfo { id, name: task.name.into(), period_ns, deadline_ns, ..Default::default() });
        edges.push(match task.reserved {
            Some((cpu, budget, period)) => EdgeInfo {
                budget_ns: Some(budget),
                period_ns: Some(period),
                deadline_ns: Some(period),
                ..edge(edge_id, 3 + cpu as u32, id, ["rt@0", "rt@1"][cpu], task.name)
            },
            None => EdgeInfo { weight: Some(task.weight), ..edge(edge_id, 5, id, "desktop", task.name) },
        });
    }
    TraceHeader {
        version: 1,
        source: options.source,
        plan: "desktop".into(),
        seed: Some(options.seed),
        cpus: 2,
        start_ns: 0,
        end_ns: Some(options.end_ns),
        clock: "simulated".into(),
        nodes,
        tasks: infos,
        edges,
        ..Default::default()
    }
}

/// A trace, and per task (ids from 6) what the generator counted itself.
pub fn generate(options: &Options) -> (Trace, Vec<(u32, Truth)>) {
    let tasks = tasks();
    let header = header(options, &tasks);
    let mut generator = Generator {
        now_ns: 0,
        rng: options.seed | 1,
        tasks,
        running: [None; 2],
        slice_ns: [QUANTUM_NS; 2],
        events: Vec::new(),
    };
    loop {
        generator.task_events();
        (0..2).for_each(|cpu| generator.decide(cpu));
        if generator.now_ns >= options.end_ns {
            break;
        }
        let next = generator.next_ns(options.end_ns);
        generator.run_to(next, options.stolen);
    }
    let truth =
        generator.tasks.iter().enumerate().map(|(at, task)| (FIRST_TASK + at as u32, task.truth.clone()));
    let truth = truth.collect();
    assert!(generator.events.iter().all(|event| event.value != NO_DEADLINE));
    (Trace { header, events: generator.events }, truth)
}
