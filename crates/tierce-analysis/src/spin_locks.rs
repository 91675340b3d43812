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
//! Not here: MPCP and others whose waiters suspend themselves. Their analyses have been corrected several times (Chen et al., "Many
//! suspensions, many problems", Real-Time Systems 55, 2019), and none is played here.
//!
//! Example: on each of two CPUs one task with a section of 2: each spins for up to 2, so a task of work 3 is done within 5.

use crate::task::Task;

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

/// The tasks with all spinning as work, and how long less urgent ones of their CPUs may block them: each CPU's can then be analysed
/// alone.
pub fn alone_on_each_cpu(spinners: &[Spinner], spin: Spin) -> Vec<Task> {
    let users =
        |lock: usize| spinners.iter().filter(move |one| one.sections.iter().any(|section| section.0 == lock));
    let between = |lock: usize, cpu: usize| users(lock).any(|one| one.cpu != cpu);
    let spins = |lock: usize, cpu: usize| {
        let mut longest = std::collections::BTreeMap::<usize, u64>::new();
        for one in users(lock).filter(|one| one.cpu != cpu) {
            let own = one.sections.iter().filter(|section| section.0 == lock).map(|section| section.1).max();
            let most = longest.entry(one.cpu).or_default();
            *most = own.unwrap_or(0).max(*most);
        }
        longest.values().fold(0u64, |sum, length| sum.saturating_add(*length))
    };
    let in_the_way = |one: &Spinner, lock: usize| {
        if spin == Spin::NonPreemptive && between(lock, one.cpu) {
            return true;
        }
        users(lock).any(|user| user.cpu == one.cpu && user.level <= one.level)
    };
    let of = |one: &Spinner| {
        let spun = one.sections.iter().map(|(lock, _)| spins(*lock, one.cpu));
        let work_ns = spun.fold(one.task.work_ns, u64::saturating_add);
        let below = spinners.iter().filter(|other| other.cpu == one.cpu && other.level > one.level);
        let sections = below.flat_map(|other| &other.sections).filter(|(lock, _)| in_the_way(one, *lock));
        let longest = sections.map(|(lock, length)| length.saturating_add(spins(*lock, one.cpu))).max();
        let blocking_ns = one.task.blocking_ns.saturating_add(longest.unwrap_or(0));
        Task { work_ns, blocking_ns, ..one.task }
    };
    spinners.iter().map(of).collect()
}
