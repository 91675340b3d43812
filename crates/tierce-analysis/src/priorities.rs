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
    // The longest deadline first has the best chance to be last.
    let mut left = deadline_monotonic(tasks);
    let (mut order, mut set) = (Vec::with_capacity(tasks.len()), Vec::with_capacity(tasks.len()));
    while !left.is_empty() {
        let mut can_be_last = |at: &usize| {
            let task = tasks[left[*at]];
            set.clear();
            set.extend(
                left.iter().enumerate().filter(|(other, _)| other != at).map(|(_, index)| tasks[*index]),
            );
            set.push(task);
            analysis.last_response(&set, supply).meets(task.deadline_ns)
        };
        let last = (0..left.len()).rev().find(|at| can_be_last(at))?;
        order.push(left.remove(last));
    }
    order.reverse();
    Some(order)
}
