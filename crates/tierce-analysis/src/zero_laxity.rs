//! Partitioned EDF in which some tasks are split over several CPUs: C=D (Burns, Davis, Wang & Zhang, "Partitioned EDF scheduling for
//! multiprocessors using a C=D task splitting scheme", Real-Time Systems 48(1), 2012).
//!
//! A task that fits on no CPU has a first part of C′ of its work, due C′ after the job is ready: it has no time to lose, so where the
//! set meets its deadlines by EDF, it runs at once, to its end. The rest, released C′ later and due D − C′ after that, goes to another CPU,
//! as a whole or split again. So a job never runs on two CPUs at once, and each CPU has a set of sporadic tasks that the processor-demand
//! test decides exactly. If a first part of C′ fits, a shorter one does: it is the begin of the same piece. The largest one that fits is
//! found by bisection.
//!
//! Tasks come by decreasing utilisation, each to the first CPU where it fits; a task that must be split has its first part where the
//! largest one fits. With jitter J the part is due J + C′ after the nominal release, and the rest has the same jitter.
//!
//! Example, two CPUs, three tasks of 2 in 3: two have a CPU each. Of the third 1 fits as C=D beside the first; the rest, 1 due within 2, fits
//! beside the second one, and both CPUs are full.

use crate::edf::Edf;
use crate::global::Unsupported;
use crate::partition::by_utilisation;
use crate::supply::Supply;
use crate::task::Task;
use std::cmp::Reverse;

/// A task, or one of its parts, on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose it is: an index.
    pub task: usize,
    /// Where it runs.
    pub cpu: usize,
    /// When it is released after the job is: when the part before it is done.
    pub after_ns: u64,
    /// As a task of that CPU.
    pub as_task: Task,
}

/// Each task on one CPU, or in parts on several, those of a task in their order; or the task for which there is no room.
pub type Assigned = Result<Vec<Part>, usize>;

/// Assign `tasks` to so many CPUs. Deadlines are at most periods, and nobody is blocked.
pub fn assign(tasks: &[Task], cpus: u32) -> Result<Assigned, Unsupported> {
    crate::global::check(tasks, cpus)?;
    let mut places = Places { on: vec![Vec::new(); cpus as usize], edf: Edf::new() };
    let mut parts = Vec::with_capacity(tasks.len());
    for index in by_utilisation(tasks) {
        let Some(found) = places.place(&tasks[index]) else { return Ok(Err(index)) };
        parts.extend(found.into_iter().map(|(cpu, after_ns, as_task)| Part {
            task: index,
            cpu,
            after_ns,
            as_task,
        }));
    }
    parts.sort_by_key(|part| part.task);
    Ok(Ok(parts))
}

struct Places {
    /// The tasks of each CPU.
    on: Vec<Vec<Task>>,
    edf: Edf,
}

impl Places {
    /// The CPUs of a task, with when each part is released after the first and as what.
    fn place(&mut self, task: &Task) -> Option<Vec<(usize, u64, Task)>> {
        let (mut rest, mut parts) = (*task, Vec::<(usize, u64, Task)>::new());
        loop {
            let after = task.deadline_ns - rest.deadline_ns;
            let free: Vec<_> =
                (0..self.on.len()).filter(|cpu| parts.iter().all(|part| part.0 != *cpu)).collect();
            if let Some(cpu) = free.iter().find(|cpu| self.fits(**cpu, rest)) {
                self.on[*cpu].push(rest);
                parts.push((*cpu, after, rest));
                return Some(parts);
            }
            // What is left after it has to go to another one.
            let others = if free.len() > 1 { &free[..] } else { &[] };
            let longest = |cpu: &usize| (self.longest_first(*cpu, &rest), Reverse(*cpu));
            let (work, Reverse(cpu)) = others.iter().map(longest).max().filter(|(work, _)| *work > 0)?;
            let first = first_part(&rest, work);
            self.on[cpu].push(first);
            parts.push((cpu, after, first));
            rest.work_ns -= work;
            rest.deadline_ns -= work;
        }
    }

    fn fits(&mut self, cpu: usize, task: Task) -> bool {
        self.on[cpu].push(task);
        let fits = self.edf.schedulable_quickly(&self.on[cpu], &Supply::WHOLE);
        self.on[cpu].pop();
        fits
    }

    /// The most work that a first part of a task can have there; 0: none.
    fn longest_first(&mut self, cpu: usize, task: &Task) -> u64 {
        let (mut low, mut high) = (0, task.work_ns - 1);
        while low < high {
            let middle = high - (high - low) / 2;
            if self.fits(cpu, first_part(task, middle)) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

fn first_part(task: &Task, work_ns: u64) -> Task {
    Task { work_ns, deadline_ns: work_ns + task.jitter_ns, ..*task }
}
