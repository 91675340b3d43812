//! What a task does: when its jobs arrive and what they need.
//!
//! A [`Program`] is asked for the next [`Step`] whenever what it asked for last (a time to wait for, CPU time to use) is
//! over. It keeps no backlog: when a job is done, the arrival of the next one is drawn, and if that lies in the past the
//! job begins at once. So its memory does not grow with simulated time.

use crate::draw::Stream;
use std::collections::VecDeque;
use std::sync::Arc;
use tierce_plan::{Load, Periodic, Phase, Phases, Plan, Sporadic, Stages, Work};

/// "No such time": later than everything.
const NEVER: u64 = u64::MAX;

/// Arrivals of jobs; a copy of it gives the same arrivals again.
#[derive(Clone, Debug)]
pub struct Arrivals {
    draws: Stream,
    /// Periodic: the next release without jitter. Sporadic: the next release.
    next_ns: u64,
    distance_ns: u64,
    relative_ns: u64,
    /// Drawn from 0 to this: after the release of periodic jobs, to the distance of sporadic ones.
    extra_ns: u64,
    sporadic: bool,
    bursts: Option<Box<Bursts>>,
    /// The next release belongs to another stage from here on.
    until_ns: u64,
    /// Stage of the next job, and of the last one.
    stage: usize,
    last_stage: usize,
    stages: Option<Arc<[StageTimes]>>,
}

/// Releases that are so close to each other that others have to wait.
#[derive(Clone, Debug)]
struct Bursts {
    /// The least time to the second, third, … job.
    further_ns: Vec<u64>,
    /// As many of the last releases, the latest first.
    last_ns: VecDeque<u64>,
}

impl Bursts {
    /// After a release, the earliest of the next one.
    fn next_ns(&mut self, release_ns: u64, distance_ns: u64) -> u64 {
        let due = |(before, further): (&u64, &u64)| before.saturating_add(*further);
        let earliest = self.last_ns.iter().zip(&self.further_ns).map(due).max();
        self.last_ns.truncate(self.further_ns.len() - 1);
        self.last_ns.push_front(release_ns);
        release_ns.saturating_add(distance_ns).max(earliest.unwrap_or(0))
    }
}

/// When a stage begins, and its jobs.
#[derive(Debug)]
struct StageTimes {
    from_ns: u64,
    distance_ns: u64,
    relative_ns: u64,
}

impl Arrivals {
    fn periodic(load: &Periodic, epoch_ns: u64, draws: Stream) -> Arrivals {
        Arrivals {
            draws,
            next_ns: epoch_ns.saturating_add(load.phase_ns),
            distance_ns: load.period_ns,
            relative_ns: load.deadline_ns,
            extra_ns: load.jitter_ns,
            sporadic: false,
            bursts: None,
            until_ns: NEVER,
            stage: 0,
            last_stage: 0,
            stages: None,
        }
    }

    fn sporadic(load: &Sporadic, epoch_ns: u64, draws: Stream) -> Arrivals {
        Arrivals {
            draws,
            next_ns: epoch_ns.saturating_add(load.phase_ns),
            distance_ns: load.separation_ns,
            relative_ns: load.deadline_ns,
            extra_ns: load.extra_ns,
            sporadic: true,
            bursts: (!load.further_ns.is_empty())
                .then(|| Box::new(Bursts { further_ns: load.further_ns.clone(), last_ns: VecDeque::new() })),
            until_ns: NEVER,
            stage: 0,
            last_stage: 0,
            stages: None,
        }
    }

    fn staged(load: &Stages, epoch_ns: u64, draws: Stream) -> Arrivals {
        let times = load.stages.iter().map(|stage| StageTimes {
            from_ns: epoch_ns.saturating_add(stage.from_ns),
            distance_ns: stage.jobs.as_ref().map_or(NEVER, |jobs| jobs.period_ns),
            relative_ns: stage.jobs.as_ref().map_or(NEVER, |jobs| jobs.deadline_ns),
        });
        let mut arrivals = Arrivals {
            draws,
            next_ns: NEVER,
            distance_ns: NEVER,
            relative_ns: NEVER,
            extra_ns: 0,
            sporadic: false,
            bursts: None,
            until_ns: NEVER,
            stage: 0,
            last_stage: 0,
            stages: Some(times.collect()),
        };
        arrivals.enter(0);
        arrivals
    }

    /// The next job is the first of this stage, or of the next that has jobs.
    #[cold]
    fn enter(&mut self, stage: usize) {
        let Some(stages) = &self.stages else { return };
        let found = (stage..stages.len()).find(|&at| stages[at].distance_ns != NEVER);
        (self.next_ns, self.until_ns) = (NEVER, NEVER);
        if let Some(at) = found {
            self.stage = at;
            (self.next_ns, self.distance_ns) = (stages[at].from_ns, stages[at].distance_ns);
            self.relative_ns = stages[at].relative_ns;
            self.until_ns = stages.get(at + 1).map_or(NEVER, |next| next.from_ns);
        }
    }

    /// The next job.
    #[inline]
    pub fn next(&mut self) -> Job {
        let at_ns = self.next_ns;
        let extra_ns = if self.extra_ns == 0 { 0 } else { self.draws.between(0, self.extra_ns) };
        self.next_ns = match &mut self.bursts {
            Some(bursts) => bursts.next_ns(at_ns, self.distance_ns),
            None => at_ns.saturating_add(self.distance_ns),
        };
        let release_ns = if self.sporadic {
            self.next_ns = self.next_ns.saturating_add(extra_ns);
            at_ns
        } else {
            at_ns.saturating_add(extra_ns)
        };
        let job = Job { release_ns, deadline_ns: at_ns.saturating_add(self.relative_ns) };
        self.last_stage = self.stage;
        if self.next_ns >= self.until_ns {
            self.enter(self.stage + 1);
        }
        job
    }
}

/// One job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// When it was released.
    pub release_ns: u64,
    /// Its absolute deadline, [`NEVER`] for none.
    pub deadline_ns: u64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Use that much CPU time; in a new job, if there is one.
    Run {
        /// CPU time.
        work_ns: u64,
        /// The job that begins with it.
        begins: Option<Job>,
        /// It asks for a time constraint: all of it within that long.
        within_ns: Option<u64>,
    },
    /// Wait until then.
    Wait(u64),
    /// Nothing until it is released, or for ever.
    End,
}

/// What an end of running or waiting leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The current job is done.
    pub completes: bool,
    /// What comes next.
    pub next: Next,
}

/// Amounts of time, in order.
#[derive(Clone, Debug)]
struct Amounts {
    work: Work,
    at: usize,
}

impl Amounts {
    #[inline]
    fn next(&mut self, draws: &mut Stream) -> u64 {
        match &self.work {
            Work::Constant(work_ns) => *work_ns,
            Work::Uniform { min_ns, max_ns } => draws.between(*min_ns, *max_ns),
            Work::List(list) => {
                let work_ns = list[self.at];
                self.at = (self.at + 1) % list.len();
                work_ns
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Idle,
    Busy,
    /// The work of each stage; without stages there is one.
    Jobs {
        arrivals: Arrivals,
        due: Job,
        work: Box<[Amounts]>,
    },
    /// Jobs that others release: when, from the current one on or the one that is waited for.
    Triggered {
        due: VecDeque<u64>,
        waits: bool,
        work: Amounts,
    },
    Phases(Box<PhaseList>),
}

#[derive(Clone, Debug)]
struct PhaseList {
    phases: Vec<(Phase, Option<Amounts>)>,
    at: usize,
    passes_left: Option<u64>,
    relative_ns: Option<u64>,
    /// Last expiry of each timer.
    timers_ns: Vec<u64>,
}

/// A task's behaviour.
#[derive(Clone, Debug)]
pub struct Program {
    kind: Kind,
    draws: Stream,
    in_job: bool,
}

impl Program {
    /// What task `index` of the plan does, and when it begins.
    pub fn new(plan: &Plan, index: usize, seed: u64) -> (Program, u64) {
        let (task, epoch_ns) = (&plan.tasks[index], plan.machine.epoch_ns);
        let stream = |what| Stream::new(seed, &task.name, what);
        let amounts = |work: &Work| Amounts { work: work.clone(), at: 0 };
        let jobs = |mut arrivals: Arrivals, work: Box<[Amounts]>| {
            let due = arrivals.next();
            (Kind::Jobs { arrivals, due, work }, due.release_ns)
        };
        let one = |work: &Work| -> Box<[Amounts]> { Box::new([amounts(work)]) };
        let (kind, begin_ns) = match &task.load {
            None => (Kind::Idle, NEVER),
            Some(Load::Busy) => (Kind::Busy, epoch_ns),
            Some(Load::Periodic(load)) => {
                jobs(Arrivals::periodic(load, epoch_ns, stream(1)), one(&load.work))
            }
            Some(Load::Sporadic(load)) => {
                jobs(Arrivals::sporadic(load, epoch_ns, stream(1)), one(&load.work))
            }
            Some(Load::Triggered(load)) => {
                let due = VecDeque::new();
                (Kind::Triggered { due, waits: false, work: amounts(&load.work) }, NEVER)
            }
            Some(Load::Phases(load)) => {
                let begin_ns = epoch_ns.saturating_add(load.phase_ns);
                (Kind::Phases(Box::new(PhaseList::new(load, begin_ns))), begin_ns)
            }
            Some(Load::Stages(load)) => {
                let nothing = Work::Constant(0);
                let works =
                    load.stages.iter().map(|stage| stage.jobs.as_ref().map_or(&nothing, |jobs| &jobs.work));
                jobs(Arrivals::staged(load, epoch_ns, stream(1)), works.map(amounts).collect())
            }
        };
        (Program { kind, draws: stream(0), in_job: false }, begin_ns)
    }

    /// The arrivals still to come, the one waited for included: for those who need them ahead of time.
    pub fn arrivals(&self) -> Option<(Job, Arrivals)> {
        match &self.kind {
            Kind::Jobs { arrivals, due, .. } => Some((*due, arrivals.clone())),
            _ => None,
        }
    }

    /// Jobs that have arrived until `now_ns` and did not begin: how many, and how many are past their deadline.
    pub fn backlog(&self, now_ns: u64) -> (u64, u64) {
        let Some((mut job, mut arrivals)) = self.arrivals() else { return (0, 0) };
        if self.in_job {
            job = arrivals.next();
        }
        let (mut arrived, mut late) = (0, 0);
        while job.release_ns < now_ns {
            arrived += 1;
            late += u64::from(job.deadline_ns < now_ns);
            job = arrivals.next();
        }
        (arrived, late)
    }

    /// A job is released at that time; whether the task, which waits for nothing else, is to be woken then.
    pub fn released(&mut self, at_ns: u64) -> bool {
        let Kind::Triggered { due, waits, .. } = &mut self.kind else { return false };
        due.push_back(at_ns);
        let sleeps = !self.in_job && !*waits;
        *waits |= sleeps;
        sleeps
    }

    /// The wait or the run is over.
    #[inline]
    pub fn step(&mut self, now_ns: u64) -> Step {
        match &mut self.kind {
            Kind::Idle => Step { completes: false, next: Next::End },
            Kind::Busy => {
                Step { completes: false, next: Next::Run { work_ns: NEVER, begins: None, within_ns: None } }
            }
            Kind::Jobs { arrivals, due, work } => {
                let completes = self.in_job;
                if completes {
                    *due = arrivals.next();
                    if due.release_ns == NEVER {
                        self.in_job = false;
                        return Step { completes, next: Next::End };
                    }
                    if due.release_ns >= now_ns {
                        self.in_job = false;
                        return Step { completes, next: Next::Wait(due.release_ns) };
                    }
                }
                self.in_job = true;
                let work_ns = work[arrivals.last_stage].next(&mut self.draws);
                Step { completes, next: Next::Run { work_ns, begins: Some(*due), within_ns: None } }
            }
            Kind::Triggered { due, waits, work } => {
                let completes = std::mem::take(&mut self.in_job);
                if completes {
                    due.pop_front();
                }
                let woken = std::mem::take(waits);
                match due.front() {
                    None => Step { completes, next: Next::End },
                    Some(at_ns) if !woken && *at_ns >= now_ns => {
                        *waits = true;
                        Step { completes, next: Next::Wait(*at_ns) }
                    }
                    Some(at_ns) => {
                        self.in_job = true;
                        let begins = Some(Job { release_ns: *at_ns, deadline_ns: NEVER });
                        let work_ns = work.next(&mut self.draws);
                        Step { completes, next: Next::Run { work_ns, begins, within_ns: None } }
                    }
                }
            }
            Kind::Phases(list) => list.step(now_ns, &mut self.in_job, &mut self.draws),
        }
    }
}

impl PhaseList {
    fn new(load: &Phases, begin_ns: u64) -> PhaseList {
        let timers = load.phases.iter().map(|phase| match phase {
            Phase::Timer { timer, .. } => *timer as usize + 1,
            _ => 0,
        });
        let amounts = |phase: &Phase| match phase {
            Phase::Run { work, .. } | Phase::Sleep(work) | Phase::Suspend(work) => {
                Some(Amounts { work: work.clone(), at: 0 })
            }
            Phase::Timer { .. } => None,
        };
        PhaseList {
            timers_ns: vec![begin_ns; timers.max().unwrap_or(0)],
            phases: load.phases.iter().map(|phase| (phase.clone(), amounts(phase))).collect(),
            at: 0,
            passes_left: (load.repeat > 0).then_some(load.repeat),
            relative_ns: load.deadline_ns,
        }
    }

    fn step(&mut self, now_ns: u64, in_job: &mut bool, draws: &mut Stream) -> Step {
        let mut completes = false;
        loop {
            if self.at == self.phases.len() {
                completes |= std::mem::take(in_job);
                self.at = 0;
                self.passes_left = self.passes_left.map(|left| left - 1);
            }
            if self.passes_left == Some(0) {
                return Step { completes, next: Next::End };
            }
            let (phase, amounts) = &mut self.phases[self.at];
            self.at += 1;
            let amount_ns = amounts.as_mut().map_or(0, |amounts| amounts.next(draws));
            match phase {
                Phase::Run { within_ns, .. } => {
                    let begins = (!std::mem::replace(in_job, true)).then(|| Job {
                        release_ns: now_ns,
                        deadline_ns: self.relative_ns.map_or(NEVER, |ns| now_ns.saturating_add(ns)),
                    });
                    return Step {
                        completes,
                        next: Next::Run { work_ns: amount_ns, begins, within_ns: *within_ns },
                    };
                }
                Phase::Sleep(_) => {
                    completes |= std::mem::take(in_job);
                    return Step { completes, next: Next::Wait(now_ns.saturating_add(amount_ns)) };
                }
                Phase::Suspend(_) => {
                    return Step { completes, next: Next::Wait(now_ns.saturating_add(amount_ns)) };
                }
                Phase::Timer { timer, period_ns, absolute } => {
                    completes |= std::mem::take(in_job);
                    let last_ns = &mut self.timers_ns[*timer as usize];
                    let expiry_ns = last_ns.saturating_add(*period_ns);
                    if expiry_ns >= now_ns {
                        *last_ns = expiry_ns;
                        return Step { completes, next: Next::Wait(expiry_ns) };
                    }
                    *last_ns = if *absolute { expiry_ns } else { now_ns };
                }
            }
        }
    }
}
