//! The smallest reduction of one number with which the jobs or budgets of a node fit.

use crate::verdict::Mend;
use tierce_analysis::{Edf, Supply, Task};

/// Nodes with more jobs or budgets are not looked through for the one whose reduction mends them.
pub const MENDED_MAX: usize = 32;

/// The reduction of one task's work that takes least, by bisection; only for nodes of a readable size, in which a short
/// window fails. The tasks are what the edges ask for, `parameter` is what a person would reduce, to `least_ns` at least; of
/// their work `extra_ns` each is not his to reduce.
pub fn mend_by_bisection(
    edges: &[usize],
    tasks: &[Task],
    supply: &Supply,
    parameter: &'static str,
    least_ns: u64,
    extra_ns: u64,
) -> Option<Mend> {
    let mut edf = Edf::new();
    if tasks.len() > MENDED_MAX || edf.shortest_excess(tasks, supply).is_none() {
        return None;
    }
    let mut fits = |at: usize, work_ns: u64| {
        let mut tasks = tasks.to_vec();
        tasks[at].work_ns = work_ns;
        edf.schedulable(&tasks, supply)
    };
    let options = edges.iter().zip(tasks).enumerate().filter_map(|(at, (edge, task))| {
        let (mut good, mut bad) = (least_ns.saturating_add(extra_ns), task.work_ns);
        if good >= bad || !fits(at, good) {
            return None;
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            *(if fits(at, middle) { &mut good } else { &mut bad }) = middle;
        }
        Some(Mend { edge: *edge, parameter, from_ns: task.work_ns - extra_ns, to_ns: good - extra_ns })
    });
    options.min_by_key(|mend| (mend.from_ns - mend.to_ns, mend.edge))
}
