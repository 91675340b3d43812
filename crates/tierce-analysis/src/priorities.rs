//! Orders of fixed priorities. Each gives indices of tasks, the highest priority first; equals stay in their order.

use crate::fixed_priority::FixedPriority;
use crate::supply::Supply;
use crate::task::Task;

/// The shorter the period, the higher the priority (Liu & Layland 1973); optimal for deadlines equal to periods.
pub fn rate_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| task.period_ns)
}

/// The shorter the deadline, the higher the priority (Leung & Whitehead 1982); optimal for deadlines up to periods without
/// jitter and blocking.
pub fn deadline_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| task.deadline_ns)
}

fn by_key(tasks: &[Task], key: impl Fn(&Task) -> u64) -> Vec<usize> {
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| key(&tasks[*index]));
    order
}

/// An order in which all deadlines are met, if there is one (Audsley 1991): whoever can be last, is. Optimal for any
/// deadlines, jitter and blocking, as long as a task's blocking does not depend on the order.
pub fn audsley(tasks: &[Task], supply: &Supply) -> Option<Vec<usize>> {
    let mut analysis = FixedPriority::new();
    let mut set = Vec::with_capacity(tasks.len());
    lowest_first(tasks, |index, above, _| {
        set.clear();
        set.extend(above.iter().map(|index| tasks[*index]));
        set.push(tasks[index]);
        analysis.last_response(&set, supply).meets(tasks[index].deadline_ns)
    })
}

/// The same with any test of a task, those above it and those below it that does not depend on their orders.
pub(crate) fn lowest_first(
    tasks: &[Task],
    mut can_be_there: impl FnMut(usize, &[usize], &[usize]) -> bool,
) -> Option<Vec<usize>> {
    // The longest deadline first has the best chance to be last.
    let mut left = deadline_monotonic(tasks);
    let mut below = Vec::with_capacity(tasks.len()); // the lowest first
    let mut above = Vec::with_capacity(tasks.len());
    while !left.is_empty() {
        let last = (0..left.len()).rev().find(|at| {
            above.clear();
            above.extend(left.iter().enumerate().filter(|(other, _)| other != at).map(|(_, index)| *index));
            can_be_there(left[*at], &above, &below)
        })?;
        below.push(left.remove(last));
    }
    below.reverse();
    Some(below)
}
