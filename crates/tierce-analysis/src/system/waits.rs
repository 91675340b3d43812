//! What locks are to tasks, by their protocols.

use super::member::Member;
use crate::locks;
use crate::question::{levels_of, refuse, Policy, Question, Refused, Supplied};
use crate::spin_locks::{self, Spin, Spinner};
use crate::suspending_locks::{self, Queue, Waiter};
use crate::Supply;

/// What happens when a job requests a lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// All users are on one CPU.
    OneCpu(locks::Protocol),
    /// Users are on any CPUs, and spin.
    Spin(Spin),
    /// Users are on any CPUs, and suspend themselves.
    Suspend(Queue),
}

/// How long a task waits for locks, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// For less urgent tasks of its CPU; `None`: that has no bound.
    pub blocking_ns: Option<u64>,
    /// Spinning: in all.
    pub spin_ns: u64,
    /// Suspended: in all.
    pub suspended_ns: u64,
    /// Where waiters suspend themselves: the bound on its response, if there is one.
    pub response_ns: Option<Option<u64>>,
}

impl Default for Waits {
    fn default() -> Self {
        Self { blocking_ns: Some(0), spin_ns: 0, suspended_ns: 0, response_ns: None }
    }
}

/// The level of each task among those of all CPUs: by priority, or by deadline.
pub fn levels(asked: &Question) -> Vec<u32> {
    if asked.policy != Policy::Edf {
        return levels_of(asked.policy, &asked.entries, 1);
    }
    let mut all: Vec<_> = asked.entries.iter().map(|entry| entry.task.deadline_ns).collect();
    all.sort_unstable();
    all.dedup();
    let level = |ns: u64| all.partition_point(|other| *other < ns);
    asked
        .entries
        .iter()
        .map(|entry| u32::try_from(level(entry.task.deadline_ns)).unwrap_or(u32::MAX))
        .collect()
}

/// Of each task. `protocols`: of all locks, by their number. Locks between CPUs are of one kind, and go with no others.
pub fn found(
    members: &[Member],
    cpus: &[usize],
    levels: &[u32],
    protocols: &[Protocol],
    (asked, triggered): (&Question, bool),
) -> Result<Vec<Waits>, Refused> {
    let between = protocols.iter().copied().find(|protocol| !matches!(protocol, Protocol::OneCpu(_)));
    let Some(between) = between else { return Ok(on_each_cpu(members, cpus, levels, protocols)) };
    if asked.policy == Policy::Edf {
        refuse!(
            "locks_between_cpus_need_priorities",
            "msrp, mrsp, mpcp and fmlp+ are analysed with --policy fp, rm and dm"
        );
    }
    if asked.given.supply != Supplied::Each(Supply::WHOLE) {
        refuse!(
            "locks_between_cpus_need_whole_cpus",
            "msrp, mrsp, mpcp and fmlp+ are analysed on whole CPUs; leave out --supply"
        );
    }
    match between {
        Protocol::Spin(spin) => Ok(spinning(members, cpus, levels, spin)),
        Protocol::Suspend(queue) => {
            if triggered {
                refuse!(
                    "triggered_tasks_do_not_suspend",
                    "with mpcp and fmlp+ a wait depends on when other jobs are done, so triggered tasks have no bound there; use msrp or mrsp"
                );
            }
            if let Some(member) = members.iter().find(|member| member.entry.task.blocking_ns > 0) {
                refuse!(
                    "suspension_is_not_for_blocked_tasks",
                    "{} may be blocked, and users of mpcp and fmlp+ suspend themselves; leave its blocking out",
                    member.entry.name
                );
            }
            Ok(suspending(members, cpus, levels, queue))
        }
        Protocol::OneCpu(_) => Ok(Vec::new()),
    }
}

fn on_each_cpu(members: &[Member], cpus: &[usize], levels: &[u32], protocols: &[Protocol]) -> Vec<Waits> {
    let protocol = |protocol: &Protocol| match protocol {
        Protocol::OneCpu(protocol) => *protocol,
        _ => locks::Protocol::None,
    };
    let protocols: Vec<_> = protocols.iter().map(protocol).collect();
    let mut waits = vec![Waits::default(); members.len()];
    for cpu in 0..=cpus.iter().copied().max().unwrap_or(0) {
        let here: Vec<_> = (0..members.len()).filter(|task| cpus[*task] == cpu).collect();
        let sections: Vec<_> = here.iter().map(|task| members[*task].sections.clone()).collect();
        let levels: Vec<_> = here.iter().map(|task| levels[*task]).collect();
        for (task, found) in here.iter().zip(locks::blocking(&sections, &levels, &protocols)) {
            waits[*task].blocking_ns = found.most_ns;
        }
    }
    waits
}

/// Their locks and lengths, one after the other: none is within another.
fn flat(member: &Member) -> Vec<(usize, u64)> {
    member.sections.iter().map(|section| (section.lock, section.length_ns)).collect()
}

fn spinning(members: &[Member], cpus: &[usize], levels: &[u32], spin: Spin) -> Vec<Waits> {
    let spinner = |task: usize| {
        let member = &members[task];
        Spinner { task: member.entry.task, cpu: cpus[task], level: levels[task], sections: flat(member) }
    };
    let spinners: Vec<_> = (0..members.len()).map(spinner).collect();
    let waits = spin_locks::waits(&spinners, spin).into_iter().map(|wait| Waits {
        blocking_ns: Some(wait.behind.map_or(0, |held| held.length_ns)),
        spin_ns: wait.spin_ns,
        ..Waits::default()
    });
    waits.collect()
}

fn suspending(members: &[Member], cpus: &[usize], levels: &[u32], queue: Queue) -> Vec<Waits> {
    let waiter = |task: usize| {
        let member = &members[task];
        let (cpu, urgency) = (cpus[task], u64::from(levels[task]));
        Waiter { task: Some(member.entry.task), cpu, urgency, sections: flat(member) }
    };
    let waiters: Vec<_> = (0..members.len()).map(waiter).collect();
    let waits = suspending_locks::waits(&waiters, queue).into_iter().map(|wait| Waits {
        blocking_ns: Some(wait.blocking_ns),
        suspended_ns: wait.suspended_ns,
        response_ns: Some(wait.response_ns),
        ..Waits::default()
    });
    waits.collect()
}
