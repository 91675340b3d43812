//! Locks between CPUs, whose waiters spin, with fixed priorities and tasks that stay on their CPUs.
//!
//! Each lock has one queue, first come, first served, and each CPU at most one job in it: who waits or holds is not preempted by
//! other users there. So a request waits for at most one section of each other CPU, its longest:
//!
//! ```text
//! spin(lock, CPU) = Σ over other CPUs of the longest section there
//! C' = C + Σ over the task's sections of spin,    R as usual with C' of all tasks of the CPU and
//! B  = the longest spin + section of a less urgent task of the CPU that can be in the way
//! ```
//!
//! - *Without preemption* (MSRP: Gai, Lipari & Di Natale, "Minimizing memory utilization of real-time task sets in single and
//!   multi-processor systems-on-a-chip", RTSS 2001): who spins or holds a lock between CPUs is not preempted. Each of these sections can
//!   be in the way.
//! - *At the ceiling* (MrsP: Burns & Wellings, "A schedulability compatible multiprocessor resource sharing protocol", ECRTS 2013): who spins or
//!   holds has the priority of the most urgent user on its CPU. Whoever spins executes the section of the first in the queue if that
//!   one is preempted, so spinning never takes longer than the sections before it. Sections can be in the way whose lock has a user on the
//!   CPU at least as urgent as the task.
//!
//! A lock of one CPU alone has an immediate ceiling. Sections are not nested. What migrating and helping cost is not counted.
//!
//! Of waiters that suspend themselves: [`crate::suspending_locks`].
//!
//! Example: on each of two CPUs one task with a section of 2: each spins for up to 2, so a task of work 3 is done within 5.

use crate::locks::Held;
use crate::task::Task;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// What keeps who spins or holds from being preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// Nobody preempts it.
    NonPreemptive,
    /// It has the ceiling of its CPU, and waiters help.
    Ceiling,
}

/// A task with its sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spinner {
    /// Its work includes all sections.
    pub task: Task,
    /// Where it is.
    pub cpu: usize,
    /// The smaller the more urgent, among those of its CPU.
    pub level: u32,
    /// Number of the lock and length, one after the other.
    pub sections: Vec<(usize, u64)>,
}

/// How long the jobs of a task wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// For locks that jobs of other CPUs have, spinning; in all.
    pub spin_ns: u64,
    /// The sections that each of its own may wait for: the longest one of each other CPU.
    pub spun: Vec<Held>,
    /// For one section of a less urgent task of its CPU, together with the spinning before it: whose, which lock, how long.
    pub behind: Option<Held>,
}

/// Of each task.
pub fn waits(spinners: &[Spinner], spin: Spin) -> Vec<Wait> {
    let known = Known::of(spinners);
    let mut order: Vec<_> = (0..spinners.len()).collect();
    order.sort_by_key(|at| (spinners[*at].cpu, Reverse(spinners[*at].level)));
    let mut found = vec![Wait::default(); spinners.len()];
    for here in order.chunk_by(|a, b| spinners[*a].cpu == spinners[*b].cpu) {
        // Sections of those below, the longest first, each with the least urgent level that it is in the way of.
        let mut below: BinaryHeap<(u64, Reverse<usize>, usize, u32)> = BinaryHeap::new();
        for equals in here.chunk_by(|a, b| spinners[*a].level == spinners[*b].level) {
            let level = spinners[equals[0]].level;
            // What is not in the way of these is not in the way of more urgent ones either.
            while below.peek().is_some_and(|(.., ceiling)| *ceiling > level) {
                below.pop();
            }
            let longest = below.peek();
            let behind = longest.map(|(length_ns, task, lock, _)| Held {
                task: task.0,
                lock: *lock,
                length_ns: *length_ns,
                times: 1,
            });
            for at in equals {
                let Spinner { cpu, sections, .. } = &spinners[*at];
                let spin_ns = sections.iter().map(|(lock, _)| known.spin_ns(*lock, *cpu));
                let spin_ns = spin_ns.fold(0, u64::saturating_add);
                let locks: BTreeSet<_> = sections.iter().map(|(lock, _)| *lock).collect();
                let spun = locks.into_iter().flat_map(|lock| known.elsewhere(lock, *cpu)).collect();
                found[*at] = Wait { spin_ns, spun, behind };
            }
            for at in equals {
                for (lock, length_ns) in &spinners[*at].sections {
                    let length_ns = length_ns.saturating_add(known.spin_ns(*lock, spinners[*at].cpu));
                    below.push((
                        length_ns,
                        Reverse(*at),
                        *lock,
                        known.ceiling(*lock, spinners[*at].cpu, spin),
                    ));
                }
            }
        }
    }
    found
}

/// The tasks with all spinning as work, and how long less urgent ones of their CPUs may block them: each CPU's can then be analysed
/// alone.
pub fn alone_on_each_cpu(spinners: &[Spinner], spin: Spin) -> Vec<Task> {
    let of = |(one, wait): (&Spinner, Wait)| Task {
        work_ns: one.task.work_ns.saturating_add(wait.spin_ns),
        blocking_ns: one.task.blocking_ns.saturating_add(wait.behind.map_or(0, |held| held.length_ns)),
        ..one.task
    };
    spinners.iter().zip(waits(spinners, spin)).map(of).collect()
}

/// Of each lock and each CPU that uses it.
struct Known(BTreeMap<usize, BTreeMap<usize, Use>>);

/// Of a lock on one CPU: its longest section, and the most urgent user.
struct Use {
    longest: Held,
    urgent: u32,
}

impl Known {
    fn of(spinners: &[Spinner]) -> Self {
        let mut locks = BTreeMap::<_, BTreeMap<_, Use>>::new();
        for (task, one) in spinners.iter().enumerate() {
            for (lock, length_ns) in &one.sections {
                let held = Held { task, lock: *lock, length_ns: *length_ns, times: 1 };
                let first = || Use { longest: held, urgent: one.level };
                let here = locks.entry(*lock).or_default().entry(one.cpu).or_insert_with(first);
                if held.length_ns > here.longest.length_ns {
                    here.longest = held;
                }
                here.urgent = here.urgent.min(one.level);
            }
        }
        Self(locks)
    }

    /// The longest section of each other CPU.
    fn elsewhere(&self, lock: usize, cpu: usize) -> impl Iterator<Item = Held> + '_ {
        self.0[&lock].iter().filter(move |(other, _)| **other != cpu).map(|(_, here)| here.longest)
    }

    /// The longest wait for a lock on that CPU.
    fn spin_ns(&self, lock: usize, cpu: usize) -> u64 {
        self.elsewhere(lock, cpu).fold(0, |sum, held| sum.saturating_add(held.length_ns))
    }

    /// The most urgent level that a section of that lock keeps from running on that CPU.
    fn ceiling(&self, lock: usize, cpu: usize, spin: Spin) -> u32 {
        let users = &self.0[&lock];
        if spin == Spin::NonPreemptive && users.len() > 1 {
            return 0;
        }
        users[&cpu].urgent
    }
}
