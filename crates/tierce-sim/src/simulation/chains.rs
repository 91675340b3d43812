//! Chains: the end of a job releases those that it triggers, and what is passed on is followed to the end of the chain.
//!
//! A job looks at what it reads when it first gets a CPU, and has written it when it is done.

use std::collections::VecDeque;
use tierce_plan::{Chain, Load, Plan};
use tierce_trace::{ChainReport, Histogram, Spread};

/// All chains of a plan.
#[derive(Debug)]
pub struct Chains {
    /// By task: the tasks whose jobs it may release, each with the place among what that waits for.
    followers: Vec<Vec<(usize, usize)>>,
    /// By task: what it waits for.
    waits: Vec<Vec<Waits>>,
    watched: Vec<Watched>,
    /// By task: the chains that it is in, and its places there.
    places: Vec<Vec<(usize, usize)>>,
}

/// One of the tasks that have to end a job each before one is released.
#[derive(Debug)]
struct Waits {
    delay_ns: u64,
    /// When jobs that have ended count, and no job was released for them.
    ended_ns: VecDeque<u64>,
}

/// A chain, and what was measured.
#[derive(Debug)]
struct Watched {
    name: String,
    links: Vec<LinkState>,
    /// All its tasks with periods have begun; what was released before may have waited for that.
    from_ns: u64,
    /// Jobs of the first task since the last one that was told of: when each was nominally released and when it looked.
    looked: VecDeque<(u64, u64)>,
    /// The number of the first of them, from 0.
    told: u64,
    /// When the one before them looked.
    before_ns: Option<u64>,
    response_ns: Histogram,
    reaction_ns: Histogram,
    age_ns: Histogram,
}

/// A task of a chain. What it knows is the number of the first task's job, and when that was nominally released.
#[derive(Debug)]
struct LinkState {
    /// It reads what the one before it wrote; otherwise it gets that with its job.
    reads: bool,
    delay_ns: u64,
    /// The deadlines of the first task's jobs are so much after their nominal release.
    relative_ns: u64,
    /// From when on what came to it is there, and what; `None`: a job of the one before it knew nothing.
    came: VecDeque<(u64, Option<Known>)>,
    /// What its current job knows.
    known: Option<Known>,
}

type Known = (u64, u64);

impl Chains {
    /// `None`: the plan has none.
    pub fn of(plan: &Plan) -> Option<Box<Self>> {
        if plan.chains.is_empty() {
            return None;
        }
        let tasks = plan.tasks.len();
        let mut followers = vec![Vec::new(); tasks];
        let mut waits: Vec<Vec<Waits>> = Vec::new();
        for task in 0..tasks {
            let triggers = plan.triggers(task);
            for (at, (before, _)) in triggers.iter().enumerate() {
                followers[*before].push((task, at));
            }
            let wait =
                |(_, delay_ns): &(usize, u64)| Waits { delay_ns: *delay_ns, ended_ns: VecDeque::new() };
            waits.push(triggers.iter().map(wait).collect());
        }
        let mut places = vec![Vec::new(); tasks];
        for (chain, about) in plan.chains.iter().enumerate() {
            about.links.iter().enumerate().for_each(|(at, link)| places[link.task].push((chain, at)));
        }
        let watched = plan.chains.iter().map(|chain| Watched::new(plan, chain)).collect();
        Some(Box::new(Self { followers, waits, watched, places }))
    }

    /// A job of that task has its first CPU; its deadline.
    pub fn begun(&mut self, task: usize, deadline_ns: u64, now_ns: u64) {
        for (chain, at) in &self.places[task] {
            self.watched[*chain].begun(*at, deadline_ns, now_ns);
        }
    }

    /// A job of that task is done. Returns the jobs that it releases: task and time.
    pub fn ended(&mut self, task: usize, now_ns: u64) -> Vec<(usize, u64)> {
        for (chain, at) in &self.places[task] {
            self.watched[*chain].ended(*at, now_ns);
        }
        let mut released = Vec::new();
        for (follower, at) in &self.followers[task] {
            let waits = &mut self.waits[*follower];
            let counts_ns = now_ns.saturating_add(waits[*at].delay_ns);
            waits[*at].ended_ns.push_back(counts_ns);
            if waits.iter().all(|waits| !waits.ended_ns.is_empty()) {
                let last = waits.iter_mut().filter_map(|waits| waits.ended_ns.pop_front()).max();
                released.extend(last.map(|at_ns| (*follower, at_ns)));
            }
        }
        released
    }

    /// What was measured so far.
    pub fn report(&self) -> Vec<ChainReport> {
        let report = |watched: &Watched| ChainReport {
            name: watched.name.clone(),
            response_ns: Spread::of(&watched.response_ns),
            reaction_ns: Spread::of(&watched.reaction_ns),
            age_ns: Spread::of(&watched.age_ns),
        };
        self.watched.iter().map(report).collect()
    }
}

impl Watched {
    fn new(plan: &Plan, chain: &Chain) -> Self {
        let links = chain.links.iter().enumerate().map(|(at, link)| {
            let load = plan.tasks[link.task].load.as_ref();
            LinkState {
                reads: at > 0 && !matches!(load, Some(Load::Triggered(_))),
                delay_ns: link.delay_ns,
                relative_ns: load.and_then(Load::deadline_ns).unwrap_or(0),
                came: VecDeque::new(),
                known: None,
            }
        });
        let phases = chain.links.iter().filter_map(|link| match &plan.tasks[link.task].load {
            Some(Load::Periodic(load)) => Some(load.phase_ns),
            Some(Load::Sporadic(load)) => Some(load.phase_ns),
            _ => None,
        });
        Self {
            name: chain.name.clone(),
            links: links.collect(),
            from_ns: plan.machine.epoch_ns.saturating_add(phases.max().unwrap_or(0)),
            looked: VecDeque::new(),
            told: 0,
            before_ns: None,
            response_ns: Histogram::default(),
            reaction_ns: Histogram::default(),
            age_ns: Histogram::default(),
        }
    }

    fn begun(&mut self, at: usize, deadline_ns: u64, now_ns: u64) {
        let link = &mut self.links[at];
        if at == 0 {
            let nominal_ns = deadline_ns.saturating_sub(link.relative_ns);
            link.known = Some((self.told + self.looked.len() as u64, nominal_ns));
            self.looked.push_back((nominal_ns, now_ns));
        } else if link.reads {
            while link.came.get(1).is_some_and(|(from_ns, _)| *from_ns <= now_ns) {
                link.came.pop_front();
            }
            link.known =
                link.came.front().filter(|(from_ns, _)| *from_ns <= now_ns).and_then(|(_, known)| *known);
        } else {
            link.known = link.came.pop_front().and_then(|(_, known)| known);
        }
    }

    fn ended(&mut self, at: usize, now_ns: u64) {
        let known = self.links[at].known;
        if let Some(next) = self.links.get_mut(at + 1) {
            next.came.push_back((now_ns.saturating_add(next.delay_ns), known));
            return;
        }
        let Some((number, nominal_ns)) = known else { return };
        self.age_ns.record(now_ns.saturating_sub(nominal_ns));
        while self.told <= number {
            let Some((nominal_ns, looked_ns)) = self.looked.pop_front() else { break };
            self.told += 1;
            let before_ns = self.before_ns.replace(looked_ns);
            if nominal_ns < self.from_ns {
                continue;
            }
            self.response_ns.record(now_ns.saturating_sub(nominal_ns));
            // An event may have come just after the job before had looked.
            before_ns.into_iter().for_each(|ns| self.reaction_ns.record(now_ns.saturating_sub(ns)));
        }
    }
}
