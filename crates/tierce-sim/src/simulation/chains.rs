//! Chains: the end of a job releases those that it triggers, and what is passed on is followed to the end of the chain.

use std::collections::VecDeque;
use tierce_plan::{Load, Plan};
use tierce_trace::{ChainInfo, ChainReport, Passage, Source};

/// All chains of a plan.
#[derive(Debug)]
pub struct Chains {
    /// By task: the tasks whose jobs it may release, each with the place among what that waits for.
    followers: Vec<Vec<(usize, usize)>>,
    /// By task: what it waits for.
    waits: Vec<Vec<Waits>>,
    /// Each chain's name, and what passes through it.
    chains: Vec<(String, Passage)>,
    /// By task: the chains that it is in, and its places there.
    places: Vec<Vec<(usize, usize)>>,
    /// By task: its jobs' deadlines are so much after their nominal release.
    relative_ns: Vec<u64>,
}

/// One of the tasks that have to end a job each before one is released.
#[derive(Debug)]
struct Waits {
    delay_ns: u64,
    /// When jobs that have ended count, and no job was released for them.
    ended_ns: VecDeque<u64>,
}

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
        let passage = |info: ChainInfo| {
            let passage = Passage::new(&info, Source::Sim);
            (info.name, passage)
        };
        let chains = plan.chains.iter().map(|chain| passage(ChainInfo::of(plan, chain))).collect();
        let relative = |load: Option<&Load>| load.and_then(Load::deadline_ns).unwrap_or(0);
        let relative_ns = plan.tasks.iter().map(|task| relative(task.load.as_ref())).collect();
        Some(Box::new(Self { followers, waits, chains, places, relative_ns }))
    }

    /// A job of that task has its first CPU; its deadline.
    pub fn begun(&mut self, task: usize, deadline_ns: u64, now_ns: u64) {
        let nominal_ns = deadline_ns.saturating_sub(self.relative_ns[task]);
        for (chain, at) in &self.places[task] {
            self.chains[*chain].1.begun(*at, nominal_ns, now_ns);
        }
    }

    /// A job of that task is done. Returns the jobs that it releases: task and time.
    pub fn ended(&mut self, task: usize, now_ns: u64) -> Vec<(usize, u64)> {
        for (chain, at) in &self.places[task] {
            self.chains[*chain].1.ended(*at, now_ns);
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
        self.chains.iter().map(|(name, passage)| passage.report(name)).collect()
    }
}
