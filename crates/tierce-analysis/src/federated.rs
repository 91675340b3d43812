//! Parallel tasks on several CPUs, each of which has CPUs of its own or shares one: federated scheduling (Li, Chen, Agrawal, Lu, Gill &
//! Saifullah, "Analysis of federated and global scheduling for parallel real-time tasks", ECRTS 2014).
//!
//! A job is a graph of pieces of work that wait for each other: all together C, the longest chain L (its *span*). On n CPUs of its own, none of
//! which idles while a piece is ready, it is done within
//!
//! ```text
//! L + (C − L)/n      (Graham 1969: while a CPU idles the longest chain goes on, and at other times n pieces do)
//! ```
//!
//! A task whose C is more than its deadline D gets the fewest CPUs with which that is at most D, ⌈(C − L)/(D − L)⌉. All others run piece after
//! piece, each on one of the CPUs that are left, by earliest deadline, first fit by decreasing utilisation. With jitter D − J stands for D.
//!
//! Example: C = 20, L = 6, D = 10 needs ⌈14/4⌉ = 4 CPUs, where a job is done within 6 + 14/4 = 9.5.

use crate::edf::Edf;
use crate::global::Unsupported;
use crate::partition::by_utilisation;
use crate::supply::Supply;
use crate::task::{Response, Task};

/// A task whose jobs may run on several CPUs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// Its work is that of all pieces.
    pub task: Task,
    /// The longest chain of pieces that wait for each other; at most the work.
    pub span_ns: u64,
}

/// Where a task runs, and how long a job takes at most, from its nominal release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first of its CPUs.
    pub cpu: usize,
    /// How many it has for itself; 0: it shares one.
    pub own: usize,
    /// At most its deadline.
    pub response_ns: u64,
}

/// Of each task; or the first task for which there is no room.
pub type Assigned = Result<Vec<Place>, usize>;

/// Assign `tasks` to so many CPUs. Deadlines are at most periods, nobody is blocked, spans are at most the work.
pub fn assign(tasks: &[Parallel], cpus: u32) -> Result<Assigned, Unsupported> {
    let plain: Vec<_> = tasks.iter().map(|parallel| parallel.task).collect();
    crate::global::check(&plain, cpus)?;
    if let Some(task) = tasks.iter().position(|parallel| parallel.span_ns > parallel.task.work_ns) {
        return Err(Unsupported { task, rule: "span_is_at_most_work" });
    }
    let mut places = vec![None; tasks.len()];
    let mut cpu = 0;
    for (index, parallel) in tasks.iter().enumerate().filter(|(_, parallel)| is_heavy(&parallel.task)) {
        let Some((own, response_ns)) = alone(parallel).filter(|(own, _)| *own <= cpus as usize - cpu) else {
            return Ok(Err(index));
        };
        places[index] = Some(Place { cpu, own, response_ns });
        cpu += own;
    }
    if let Err(index) = share(&plain, cpu..cpus as usize, &mut places) {
        return Ok(Err(index));
    }
    Ok(Ok(places.into_iter().flatten().collect()))
}

/// It does not fit on one CPU.
fn is_heavy(task: &Task) -> bool {
    u128::from(task.work_ns) + u128::from(task.jitter_ns) > task.deadline_ns.into()
}

/// How many CPUs it needs, and the response on these.
fn alone(parallel: &Parallel) -> Option<(usize, u64)> {
    let Parallel { task, span_ns } = parallel;
    let room =
        task.deadline_ns.checked_sub(task.jitter_ns)?.checked_sub(*span_ns).filter(|room| *room > 0)?;
    let beside = task.work_ns - span_ns;
    let own = beside.div_ceil(room);
    Some((usize::try_from(own).ok()?, task.jitter_ns + span_ns + beside.div_ceil(own)))
}

/// Those that fit on one CPU, first fit; the one that does not.
fn share(tasks: &[Task], cpus: std::ops::Range<usize>, places: &mut [Option<Place>]) -> Result<(), usize> {
    let mut on = vec![Vec::<usize>::new(); cpus.len()];
    let mut edf = Edf::new();
    let set = |members: &[usize]| members.iter().map(|member| tasks[*member]).collect::<Vec<_>>();
    for index in by_utilisation(tasks).into_iter().filter(|index| !is_heavy(&tasks[*index])) {
        let fits = |members: &&mut Vec<usize>| {
            edf.schedulable_quickly(&set(&[&members[..], &[index]].concat()), &Supply::WHOLE)
        };
        on.iter_mut().find(fits).ok_or(index)?.push(index);
    }
    for (members, cpu) in on.iter().zip(cpus) {
        let responses = edf.responses(&set(members), &Supply::WHOLE);
        for (index, response) in members.iter().zip(responses) {
            // Where a busy period is too long to be looked at, the test of the demand holds all the same.
            let response_ns = Response::ns(*response).unwrap_or(tasks[*index].deadline_ns);
            places[*index] = Some(Place { cpu, own: 0, response_ns });
        }
    }
    Ok(())
}
