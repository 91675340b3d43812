//! Pfair scheduling by PD² on several CPUs: any of them may run any task, for a quantum at a time.
//!
//! All CPUs count the same quanta. A task that needs e of each p quanta is as many subtasks a job, the i-th of which is to have its quantum
//! from ⌊(i − 1)·p/e⌋ on and until ⌈i·p/e⌉. PD² meets all these deadlines if no task needs more than a CPU and all together no more than
//! there are: Anderson & Srinivasan, "Mixed Pfair/ERfair scheduling of asynchronous periodic tasks", ECRTS 2001; for jobs that come later and subtasks
//! that are left out Srinivasan & Anderson, "Optimal rate-based scheduling on multiprocessors", STOC 2002. Nothing better is possible.
//!
//! **Times that are no quanta.** Work is rounded up, e = ⌈C/q⌉. A job that is ready within a quantum waits for the next one, for up to q − 1
//! ns, and what is left of its deadline is rounded down: p = ⌊(D − J − (q − 1))/q⌋. The next job is ready p quanta later or
//! more, since D ≤ T. So the verdict holds for any phases, and costs a quantum of each period; where releases are known to be at the begin of
//! quanta, less would be enough.
//!
//! Example, two CPUs, q = 1 ms, three tasks of 2 ms in 4 ms: p = 3, e = 2, and 3·2/3 = 2: met. With q = 100 us p = 39 and e = 20: met, too.

use crate::global::{check, room, Shown, Test, Unsupported, Verdict};
use crate::task::{utilisation, Task};
use tierce_guarantee::whole;

/// Whether all deadlines are met with quanta of that length, above 0. If so each job is done within what is promised.
pub fn pd2(tasks: &[Task], cpus: u32, quantum_ns: u64) -> Result<Verdict, Unsupported> {
    check(tasks, cpus)?;
    if quantum_ns == 0 {
        return Err(Unsupported { task: 0, rule: "quantum_is_above_zero" });
    }
    let quanta: Vec<_> = tasks.iter().map(|task| in_quanta(task, quantum_ns)).collect();
    let fits: Option<Vec<_>> = quanta.iter().copied().collect();
    let schedulable = fits.is_some_and(|fits| utilisation(&fits) <= whole(cpus.into()));
    let shown = |(task, quanta): (&Task, &Option<Task>)| {
        let done = |quanta: &Task| task.jitter_ns + (quantum_ns - 1) + quanta.period_ns * quantum_ns;
        let response_ns = quanta.as_ref().map(done).filter(|_| schedulable);
        Shown { response_ns, by: if schedulable { vec![Test::Pd2] } else { Vec::new() } }
    };
    Ok(Verdict { schedulable, tasks: tasks.iter().zip(&quanta).map(shown).collect() })
}

/// A task in whole quanta, its deadline being its period; `None`: it does not fit into its deadline.
pub fn in_quanta(task: &Task, quantum_ns: u64) -> Option<Task> {
    let period = room(task)?.checked_sub(quantum_ns - 1)? / quantum_ns;
    let work = task.work_ns.div_ceil(quantum_ns);
    (work <= period).then(|| Task::new(work, period))
}
