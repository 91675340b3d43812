//! First in, first out: jobs run one after the other, in the order in which they become ready.
//!
//! A job that becomes ready at a, in a busy period that begins at 0, is done when the supply has done all that has become ready up to
//! a, a included, since equals may go first. Most of another task comes by then if its first job comes at 0, as late as jitter
//! allows, and the next ones as soon as possible; of the task itself, if all of its jobs are as late as that, so that the last one comes at a:
//!
//! ```text
//! R = max over a of  (when the supply has done (⌊a/T⌋ + 1)·C + Σ (⌊(a + Jⱼ)/Tⱼ⌋ + 1)·Cⱼ) − a + J      over the others
//! ```
//!
//! Both can happen at once, so this is exact for sporadic tasks. Between two places at which some count grows the response
//! only falls, so these places are all there is to look at, up to the end of the longest busy period, or to a common multiple of
//! all periods, after which everything repeats itself. What comes up to a is no more than a line, so a response that is above that line
//! where it has come down to it is the longest: without jitter that of a = 0, the sum of all works.
//!
//! Example: 1 in 4, 2 in 6, 3 in 12: each may come just before the others have gone: response 6 for all.
//!
//! Source: George & Minet, "A FIFO worst case analysis for a hard real-time distributed problem with consistency constraints",
//! ICDCS 1997, without jitter. Jobs of a task become ready in their order. `blocking` has no meaning: nothing is less urgent.

use crate::edf::{busy_window, STEPS_MAX};
use crate::supply::{with_supply, Supply, TimeFor};
use crate::task::{compare_utilisation, gcd, Response, Task, WINDOW_MAX_NS};
use std::cmp::Ordering;

/// Longest responses.
pub fn responses(tasks: &[Task], supply: &Supply) -> Vec<Response> {
    with_supply!(supply, supply => responses_in(tasks, supply))
}

/// Whether all of `tasks` meet their deadlines; `false` as well where that could not be decided.
pub fn schedulable(tasks: &[Task], supply: &Supply) -> bool {
    responses(tasks, supply).iter().zip(tasks).all(|(response, task)| response.meets(task.deadline_ns))
}

fn responses_in<S: TimeFor>(tasks: &[Task], supply: &S) -> Vec<Response> {
    let all = |response| vec![response; tasks.len()];
    if !tasks.iter().all(Task::is_valid) {
        return all(Response::Unbounded);
    }
    let window = match compare_utilisation(tasks, supply.rate()) {
        Ordering::Greater => return all(Response::Unbounded),
        Ordering::Equal => one_cycle(tasks, supply),
        Ordering::Less => busy_window(tasks, supply, 0, &mut { STEPS_MAX }),
    };
    let longest = window.and_then(|window| longest_in(tasks, supply, window));
    longest.map_or(all(Response::TooLong), |longest| longest.into_iter().map(Response::Within).collect())
}

/// After that demand and supply repeat themselves, if they are equal.
fn one_cycle<S: TimeFor>(tasks: &[Task], supply: &S) -> Option<u64> {
    let periods = tasks.iter().map(|task| task.period_ns).chain([supply.rate().1]);
    let cycle = periods.into_iter().try_fold(1u64, |cycle, period| {
        cycle.checked_mul(period / gcd(cycle, period)).filter(|cycle| *cycle <= WINDOW_MAX_NS)
    });
    // Every job of a task has become ready once by then.
    let latest = tasks.iter().map(|task| task.jitter_ns + task.period_ns).max()?;
    cycle?.checked_add(latest).filter(|window| *window <= WINDOW_MAX_NS)
}

/// What is known of a task at a place of the busy period.
struct Counted {
    /// Jobs that have become ready by then, the first one as late as jitter allows.
    come: u64,
    /// When the next one does.
    next_ns: u64,
    /// The same of its own jobs, all of which are as late as jitter allows.
    own: u64,
    own_next_ns: u64,
    /// The longest time from when one of its jobs became ready.
    longest_ns: u64,
}

fn longest_in<S: TimeFor>(tasks: &[Task], supply: &S, window: u64) -> Option<Vec<u64>> {
    let first = |task: &Task| {
        let come = task.jitter_ns / task.period_ns + 1;
        let next_ns = come * task.period_ns - task.jitter_ns;
        Counted { come, next_ns, own: 1, own_next_ns: task.period_ns, longest_ns: 0 }
    };
    let mut counted: Vec<_> = tasks.iter().map(first).collect();
    let mut work: u64 = tasks
        .iter()
        .zip(&counted)
        .try_fold(0u64, |sum, (task, counted)| sum.checked_add(counted.come.checked_mul(task.work_ns)?))?;
    let (mut place, mut steps) = (0, STEPS_MAX);
    let line = line_above(tasks, supply);
    // Of each task more than its jitter.
    let mut shortest = 0;
    while place < window && line(place) > shortest as f64 {
        steps = steps.checked_sub(1)?;
        if supply.time_for(work).saturating_sub(place) > shortest {
            shortest = u64::MAX;
            for (task, counted) in tasks.iter().zip(&mut counted) {
                // Its own early jobs cannot have come as late as this one.
                let own_work = work - (counted.come - counted.own) * task.work_ns;
                let took = supply.time_for(own_work).saturating_sub(place);
                counted.longest_ns = counted.longest_ns.max(took);
                shortest = shortest.min(counted.longest_ns);
            }
        }
        place = counted.iter().map(|counted| counted.next_ns.min(counted.own_next_ns)).min()?;
        for (task, counted) in tasks.iter().zip(&mut counted) {
            if counted.next_ns == place {
                counted.come += 1;
                counted.next_ns = place + task.period_ns;
                work = work.checked_add(task.work_ns)?;
            }
            if counted.own_next_ns == place {
                counted.own += 1;
                counted.own_next_ns = place + task.period_ns;
            }
        }
    }
    let response = |(task, counted): (&Task, &Counted)| counted.longest_ns.saturating_add(task.jitter_ns);
    Some(tasks.iter().zip(&counted).map(response).collect())
}

/// More than the time from a place until all that has come up to it is done, whatever is rounded; infinite where the supply has nothing
/// to spare.
fn line_above<S: TimeFor>(tasks: &[Task], supply: &S) -> impl Fn(u64) -> f64 {
    let rate = supply.rate().0 as f64 / supply.rate().1 as f64;
    let (mut used, mut first) = (0.0, 0.0);
    for task in tasks {
        let share = task.work_ns as f64 / task.period_ns as f64;
        used += share;
        first += task.work_ns as f64 + share * task.jitter_ns as f64;
    }
    let slack = (1.0 - used / rate) * (1.0 - 1e-6);
    let first = (first / rate + supply.first_wait_ns() as f64) * (1.0 + 1e-9) + 3.0;
    move |place| if slack > 1e-6 { first - slack * place as f64 } else { f64::INFINITY }
}
