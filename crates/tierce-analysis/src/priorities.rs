//! Orders of fixed priorities. Each gives indices of tasks, the highest priority first; equals stay in their order.

use crate::fixed_priority::FixedPriority;
use crate::supply::Supply;
use crate::task::Task;
use crate::watch::Watch;

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
    audsley_while(tasks, supply, &Watch::default())
}

/// The same; none, too, where it is ended early.
pub(crate) fn audsley_while(tasks: &[Task], supply: &Supply, watch: &Watch) -> Option<Vec<usize>> {
    let mut analysis = FixedPriority::new();
    let mut set = Vec::with_capacity(tasks.len());
    let mut placed = 0;
    let order = lowest_first(tasks, |index, above, _| {
        if watch.is_ended() {
            return None;
        }
        set.clear();
        set.extend(above.iter().map(|index| tasks[*index]));
        set.push(tasks[index]);
        let last = analysis.last_response(&set, supply).meets(tasks[index].deadline_ns);
        watch.are_done(last.into());
        placed += usize::from(last);
        Some(last)
    });
    watch.begins_again(placed);
    order
}

/// The same with any test of a task, those above it and those below it that does not depend on their orders; `None` of the test: there
/// is no order.
pub(crate) fn lowest_first(
    tasks: &[Task],
    mut can_be_there: impl FnMut(usize, &[usize], &[usize]) -> Option<bool>,
) -> Option<Vec<usize>> {
    // The longest deadline first has the best chance to be last.
    let mut left = deadline_monotonic(tasks);
    let mut below = Vec::with_capacity(tasks.len()); // the lowest first
    let mut above = Vec::with_capacity(tasks.len());
    while !left.is_empty() {
        let mut last = None;
        for at in (0..left.len()).rev() {
            above.clear();
            above.extend(left.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, index)| *index));
            if can_be_there(left[at], &above, &below)? {
                last = Some(at);
                break;
            }
        }
        below.push(left.remove(last?));
    }
    below.reverse();
    Some(below)
}
