//! What is asked of tasks on CPUs, what goes together, and what is found.

use super::chained::{cpu_of, Chained, Latencies};
use super::member::{Member, Path};
use super::waits::{self, Protocol, Waits};
use crate::chains::{Span, Times};
use crate::question::{refuse, Answer, Options, Outcome, Policy, Question, Refused, Supplied, Thresholds};
use crate::{Entry, Response, Sections, Supply, Watch};

/// What is asked of tasks on CPUs.
#[derive(Clone, Debug)]
pub struct System {
    members: Vec<Member>,
    chains: Vec<Path>,
    waits: Vec<Waits>,
    /// The less, the more urgent: among those of all CPUs.
    levels: Vec<u32>,
    locks: bool,
    /// Waits are part of its entries.
    asked: Question,
}

/// What is found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Of the tasks.
    pub outcome: Outcome,
    /// Of each chain.
    pub chains: Vec<Latencies>,
}

impl System {
    /// `cpus`: of each task. Tasks do not trigger each other in a circle, and all that one waits for have one head.
    pub fn new(
        members: Vec<Member>,
        cpus: Vec<usize>,
        protocols: &[Protocol],
        chains: Vec<Path>,
        options: &Options,
    ) -> Result<Self, Refused> {
        let plain: Vec<_> = members.iter().map(|member| member.entry.clone()).collect();
        // What does not go together says so before its locks are looked at.
        let asked = Question::on_cpus(plain, cpus.clone(), options)?;
        let locks = members.iter().any(|member| !member.sections.is_empty());
        let triggered = members.iter().any(|member| !member.after.is_empty());
        if locks {
            check_locks(&asked, options)?;
        }
        if triggered {
            check_triggered(&asked, options)?;
        }
        let levels = waits::levels(&asked);
        let waits = match locks {
            true => waits::found(&members, &cpus, &levels, protocols, (&asked, triggered))?,
            false => vec![Waits::default(); members.len()],
        };
        let entry = |(member, waits): (&Member, &Waits)| {
            let mut entry = member.entry.clone();
            entry.task.work_ns = entry.task.work_ns.saturating_add(waits.spin_ns);
            entry.task.blocking_ns = entry.task.blocking_ns.saturating_add(waits.blocking_ns.unwrap_or(0));
            entry
        };
        let entries = members.iter().zip(&waits).map(entry).collect();
        let asked = Question::on_cpus(entries, cpus, options)?;
        Ok(Self { members, chains, waits, levels, locks, asked })
    }

    /// The policy, the supply, the tasks with their waits.
    pub fn asked(&self) -> &Question {
        &self.asked
    }

    /// As they were given.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What locks are to each task; nothing where there are none.
    pub fn waits(&self) -> Option<&[Waits]> {
        self.locks.then_some(&self.waits)
    }

    /// The CPU of a task.
    pub fn cpu(&self, task: usize) -> usize {
        cpu_of(&self.asked, task)
    }

    /// By the tests for it; see [`Question::answer_while`].
    pub fn answer_while(&self, watch: &Watch) -> Result<Found, Refused> {
        if self.members.iter().any(|member| !member.after.is_empty()) {
            let chained = self.chained();
            let (times, by_jitter) = chained.times();
            let chains = chained.latencies(&times, &by_jitter);
            return Ok(Found { outcome: self.outcome_of(&times), chains });
        }
        let outcome = match self.waits.iter().any(|waits| waits.response_ns.is_some()) {
            true => self.outcome_of_suspended(),
            false => match self.asked.answer_while(watch)? {
                Answer::Tasks(outcome) => self.with_unbounded_waits(outcome),
                _ => Outcome::default(),
            },
        };
        let times: Vec<_> = outcome
            .responses
            .iter()
            .enumerate()
            .map(|(task, response)| self.alone(task, *response))
            .collect();
        let chains = self.chained().latencies(&times, &times);
        Ok(Found { outcome, chains })
    }

    fn chained(&self) -> Chained<'_> {
        let Self { members, chains, waits, levels, locks, asked } = self;
        Chained { members, chains, waits, levels, locks: *locks, asked }
    }

    /// When a task is done that nothing triggers.
    fn alone(&self, task: usize, response: Response) -> Times {
        let member = &self.members[task];
        let ready = Span { least_ns: 0, most_ns: member.entry.task.jitter_ns };
        let done = Span { least_ns: member.least_work_ns, most_ns: response.ns().unwrap_or(u64::MAX) };
        Times { ready, done }
    }

    fn outcome_of(&self, times: &[Times]) -> Outcome {
        let response = |times: &Times| match times.done.most_ns {
            u64::MAX => Response::Unbounded,
            ns => Response::Within(ns),
        };
        let outcome = self.bounds(times.iter().map(response).collect());
        self.with_unbounded_waits(outcome)
    }

    fn outcome_of_suspended(&self) -> Outcome {
        let response =
            |waits: &Waits| waits.response_ns.flatten().map_or(Response::Unbounded, Response::Within);
        self.bounds(self.waits.iter().map(response).collect())
    }

    /// Responses that are bounds.
    fn bounds(&self, responses: Vec<Response>) -> Outcome {
        let meets = |(member, response): (&Member, &Response)| match member.after.is_empty() {
            true => response.meets(member.entry.task.deadline_ns),
            false => response.ns().is_some(),
        };
        Outcome {
            schedulable: self.members.iter().zip(&responses).all(meets),
            exact: false,
            remarks: vec![
                "The results are bounds: what they do not show to be met may be met all the same.".into()
            ],
            cpus: self.asked.homes.clone().unwrap_or_default(),
            responses,
            ..Outcome::default()
        }
    }

    /// A task whose wait has no bound has no response time, and under EDF nor have the others of its CPU.
    fn with_unbounded_waits(&self, mut outcome: Outcome) -> Outcome {
        let unbounded: Vec<_> =
            (0..self.waits.len()).filter(|task| self.waits[*task].blocking_ns.is_none()).collect();
        for task in &unbounded {
            let with = |other: &usize| {
                *other == *task || (self.asked.policy == Policy::Edf && self.cpu(*other) == self.cpu(*task))
            };
            (0..self.waits.len())
                .filter(with)
                .for_each(|other| outcome.responses[other] = Response::Unbounded);
        }
        if !unbounded.is_empty() {
            (outcome.schedulable, outcome.exact) = (false, false);
            let names: Vec<_> =
                unbounded.iter().map(|task| self.members[*task].entry.name.as_str()).collect();
            outcome.remarks.push(format!(
                "Nothing bounds how long these wait for locks of the protocol none: {}; with inheritance something does.",
                names.join(", ")
            ));
        }
        if self.locks && outcome.exact {
            outcome.exact = false;
            outcome.remarks.push(
                "With locks the results are bounds: seldom are all sections found at their begin.".into(),
            );
        }
        outcome
    }
}

/// Jobs that do nothing but work, with locks.
fn check_locks(asked: &Question, options: &Options) -> Result<(), Refused> {
    let policy = asked.policy;
    if !matches!(policy, Policy::Fp | Policy::Rm | Policy::Dm | Policy::Edf) {
        refuse!("locks_need_priorities", "locks are analysed with --policy fp, rm, dm and edf");
    }
    if let Some(entry) = not_plain(asked) {
        refuse!(
            "locks_are_of_plain_jobs",
            "{} suspends itself, or has a region without preemption, a threshold, or a list of works or periods, and there are locks: \
             there is no analysis of both",
            entry.name
        );
    }
    if options.sensitivity || asked.offsets_known || asked.thresholds != Thresholds::None {
        refuse!(
            "locks_are_of_plain_jobs",
            "with locks there is no --sensitivity, --offsets known or --preemption"
        );
    }
    let late = asked.entries.iter().find(|entry| entry.task.jitter_ns > 0);
    if let Some(entry) = late.filter(|_| policy == Policy::Edf) {
        refuse!(
            "locks_with_jitter_need_priorities",
            "{} is released late (jitter), and then is more urgent than its deadline says: edf with locks needs jitter 0",
            entry.name
        );
    }
    Ok(())
}

/// Jobs that do nothing but work, in whole CPUs with fixed priorities.
fn check_triggered(asked: &Question, options: &Options) -> Result<(), Refused> {
    if !matches!(asked.policy, Policy::Fp | Policy::Rm | Policy::Dm) {
        refuse!(
            "triggered_tasks_need_priorities",
            "triggered tasks are analysed with --policy fp, rm and dm"
        );
    }
    if asked.given.supply != Supplied::Each(Supply::WHOLE) {
        refuse!(
            "triggered_tasks_need_whole_cpus",
            "triggered tasks are analysed on whole CPUs; leave out --supply"
        );
    }
    if let Some(entry) = not_plain(asked) {
        refuse!(
            "triggered_tasks_are_among_plain_jobs",
            "{} suspends itself, or has a region without preemption, a threshold, or a list of works or periods, and tasks trigger each \
             other: there is no analysis of both",
            entry.name
        );
    }
    if options.sensitivity || asked.offsets_known || asked.thresholds != Thresholds::None {
        refuse!(
            "triggered_tasks_are_among_plain_jobs",
            "with triggered tasks there is no --sensitivity, --offsets known or --preemption"
        );
    }
    Ok(())
}

fn not_plain(asked: &Question) -> Option<&Entry> {
    let plain = |entry: &Entry| {
        entry.suspension_ns == 0
            && entry.sections == Sections::default()
            && entry.threshold.is_none()
            && entry.requests.is_none()
    };
    asked.entries.iter().find(|entry| !plain(entry))
}
