//! How long tasks are suspended until they get locks that others have, and wait for less urgent ones of their own CPU that are boosted
//! ([`tierce_analysis::suspending_locks`]).
//!
//! As with locks whose waiters spin (`spin_locks.rs`), each wait rests on the holders of all other CPUs, and nothing is said unless every user has its
//! CPU as the analysis has it. In the analysis tasks without a load do not run. What is found of a task that uses no such lock counts only tasks directly below
//! its node as more urgent: its law (`laws/fixed_priority.rs`) says whether there are others.

use crate::demand::jobs::densest;
use crate::demand::spin_locks::{beside_users, sections, Member};
use tierce_analysis::locks::{Blocking, Held};
use tierce_analysis::suspending_locks::{waits, Queue, Wait, Waiter};
use tierce_analysis::Response;
use tierce_plan::{show_time, Plan, Protocol, Shape};

/// How long a job waits, and takes.
#[derive(Clone, Debug)]
pub struct Suspended {
    /// For how long it is suspended, in all.
    pub most_ns: u64,
    /// The sections that its requests may wait for.
    pub held: Vec<Held>,
    /// How many of its requests may.
    pub requests: u64,
    /// By less urgent tasks of its CPU, by each of these sections up to once more than so often.
    pub blocking: Blocking,
    /// From its nominal release.
    pub response_ns: u64,
}

/// Of each task directly below a node with users of locks whose waiters are suspended: how long it waits, or why nothing is known.
pub fn found(plan: &Plan, shape: &Shape) -> Vec<(usize, Result<Suspended, String>)> {
    let mut found = Vec::new();
    for (protocol, queue) in [(Protocol::Mpcp, Queue::Priority), (Protocol::Fmlp, Queue::Fifo)] {
        let (mut tasks, why) = beside_users(plan, shape, protocol);
        if let Some(why) = why {
            found.extend(tasks.into_iter().map(|Member { task, .. }| (task, Err(why.clone()))));
            continue;
        }
        tasks.retain(|member| plan.tasks[member.task].load.is_some());
        let waiter = |member: &Member| Waiter {
            task: plan.tasks[member.task].load.as_ref().and_then(|load| Some(densest(load, 0)?.0)),
            cpu: member.node,
            urgency: member.urgency,
            sections: sections(plan, member.task),
        };
        let waiters: Vec<_> = tasks.iter().map(waiter).collect();
        let named = |held: Held| Held { task: tasks[held.task].task, ..held };
        let known = waits(&waiters, queue).into_iter().zip(&waiters).map(|(wait, waiter)| {
            let Wait { response_ns, requests, suspended_ns, awaited, blocking_ns, behind } = wait;
            let response_ns = response_ns.ok_or_else(|| unbounded(waiter))?;
            let held: Vec<_> = behind.into_iter().map(named).collect();
            let blocking = Blocking { most_ns: Some(blocking_ns), held };
            let held = awaited.into_iter().map(named).collect();
            Ok(Suspended { most_ns: suspended_ns, held, requests, blocking, response_ns })
        });
        found.extend(tasks.iter().map(|member| member.task).zip(known));
    }
    found
}

fn unbounded(waiter: &Waiter) -> String {
    match waiter.task {
        None => "how often its jobs come is not bounded by its load".into(),
        Some(task) => format!(
            "with its waits for locks, and with more urgent tasks that wait for locks, it is not shown to be done within its period, {}",
            show_time(task.period_ns)
        ),
    }
}

impl Suspended {
    /// ", up to 3 times each", of sections of less urgent ones.
    pub fn times(&self) -> String {
        match self.requests {
            0 => String::new(),
            requests => format!(", up to {} times each", requests + 1),
        }
    }

    /// What the law of the node says.
    pub fn response(&self) -> Response {
        Response::Within(self.response_ns)
    }
}
