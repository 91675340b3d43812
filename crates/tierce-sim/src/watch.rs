//! What a trace tells beside the schedule: jobs that arrive while others run, and deadlines that pass.
//!
//! The schedule itself needs neither, so only traced runs pay for them.

use crate::program::{Arrivals, Job};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrives { task: usize },
    Due { task: usize, job: u32 },
}

/// Something that happened meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// A job arrived.
    Arrival(usize, u32, Job),
    /// The deadline of a job has passed (at this time, which everything else of that instant came before).
    Due(usize, u32, u64),
}

/// Arrivals and deadlines to come, in the order of time; at one instant arrivals first.
#[derive(Default, Debug)]
pub struct Watch {
    heap: BinaryHeap<Reverse<(u64, What)>>,
    tasks: Vec<Option<(Job, Arrivals, u32)>>,
}

impl Watch {
    /// Watch these tasks, by index; `None`: its jobs are told as they begin.
    pub fn new(tasks: impl Iterator<Item = Option<(Job, Arrivals)>>) -> Watch {
        let tasks: Vec<_> = tasks.map(|task| task.map(|(job, arrivals)| (job, arrivals, 0))).collect();
        let first = |(task, of): (usize, &Option<(Job, Arrivals, u32)>)| {
            Some(Reverse((of.as_ref()?.0.release_ns, What::Arrives { task })))
        };
        Watch { heap: tasks.iter().enumerate().filter_map(first).collect(), tasks }
    }

    /// Does it tell when this task's jobs arrive?
    pub fn tells_arrivals(&self, task: usize) -> bool {
        self.tasks[task].is_some()
    }

    /// A job has begun whose arrival nobody else tells.
    pub fn begun(&mut self, task: usize, job: u32, deadline_ns: u64) {
        if deadline_ns != u64::MAX {
            self.heap.push(Reverse((deadline_ns, What::Due { task, job })));
        }
    }

    /// The next arrival until `arrived_ns` (included) or deadline before `now_ns`.
    pub fn next(&mut self, now_ns: u64, arrived_ns: u64) -> Option<Seen> {
        let &Reverse((at_ns, what)) = self.heap.peek()?;
        let happened = match what {
            What::Arrives { .. } => at_ns <= arrived_ns,
            What::Due { .. } => at_ns < now_ns,
        };
        if !happened {
            return None;
        }
        self.heap.pop();
        match what {
            What::Due { task, job } => Some(Seen::Due(task, job, at_ns)),
            What::Arrives { task } => {
                let (job, arrivals, number) = self.tasks[task].as_mut()?;
                let arrived = *job;
                *job = arrivals.next();
                *number += 1;
                let number = *number;
                self.heap.push(Reverse((job.release_ns, What::Arrives { task })));
                self.begun(task, number, arrived.deadline_ns);
                Some(Seen::Arrival(task, number, arrived))
            }
        }
    }
}
