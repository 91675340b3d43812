//! Worked numbers of others about locks and suspension.

use tierce_analysis::locks::{blocking, CriticalSection, Protocol};
use tierce_analysis::spin_locks::{alone_on_each_cpu, Spin, Spinner};
use tierce_analysis::suspending_locks::{waits, Queue, Waiter};
use tierce_analysis::suspension::{as_work, fixed_priority};
use tierce_analysis::{FixedPriority, Response, Supply, Task};

/// The blocking of each task, the most urgent first; `longest` has of each the longest section of each lock, 0 for none.
fn blocked<const N: usize>(longest: &[[u64; N]], protocol: Protocol) -> Vec<u64> {
    let of = |longest: &[u64; N]| {
        let sections = longest.iter().enumerate().filter(|(_, length_ns)| **length_ns > 0);
        sections
            .map(|(lock, length_ns)| CriticalSection { lock, length_ns: *length_ns, inner: vec![] })
            .collect()
    };
    let sections: Vec<Vec<_>> = longest.iter().map(of).collect();
    let levels: Vec<_> = (0..longest.len() as u32).collect();
    blocking(&sections, &levels, &[protocol; N]).iter().map(|found| found.most_ns.unwrap()).collect()
}

/// Buttazzo, "Hard real-time computing systems", third edition, exercises 7.5 and 7.6 with their solutions: 26, 21, 10 and 13, 13, 10. There each
/// section was entered one unit before, which is left out here, so it is 3, 2, 1 and 1, 1, 1 more.
#[test]
fn inheritance_and_ceilings_of_buttazzo() {
    let longest = [[3, 6, 10, 0, 7], [0, 0, 8, 0, 0], [0, 4, 0, 8, 14], [7, 0, 9, 0, 11]];
    assert_eq!(blocked(&longest, Protocol::Inheritance), [26 + 3, 21 + 2, 10 + 1, 0]);
    assert_eq!(blocked(&longest, Protocol::Ceiling), [13 + 1, 13 + 1, 10 + 1, 0]);
}

/// Burns & Wellings, "Real-time systems and programming languages", fourth edition, Tables 11.24 and 11.25 (ms): five tasks, six locks,
/// ceilings. The exercise has no solution there; by its rule it is the longest section below whose lock somebody as urgent uses.
#[test]
fn ceilings_of_burns_and_wellings() {
    let uses = [
        [0, 0, 75, 0, 0, 0],
        [50, 150, 0, 0, 0, 0],
        [0, 0, 75, 300, 250, 0],
        [50, 0, 0, 0, 250, 175],
        [0, 150, 0, 0, 0, 175],
    ];
    assert_eq!(blocked(&uses, Protocol::Ceiling), [75, 150, 250, 175, 0]);
}

/// MSRP: SchedCAT's `tests/fp_blocking.py`, `PFPSpinlockInflationVsILP1`. Spinning as work, as here, gives 2000, 6800, 4600; the linear
/// program of Wieder & Brandenburg, "On spin locks in AUTOSAR", RTSS 2013, which is not here, 1900, 6800, 4500.
#[test]
fn spinning_of_schedcat() {
    let of = |work, period, cpu, level| Spinner {
        task: Task::new(work, period),
        cpu,
        level,
        sections: vec![(0, 100)],
    };
    let spinners = [of(1700, 10_000, 0, 0), of(6700, 34_000, 1, 0), of(2700, 15_000, 0, 1)];
    let tasks = alone_on_each_cpu(&spinners, Spin::NonPreemptive);
    let responses = |tasks: &[Task]| FixedPriority::new().responses(tasks, &Supply::WHOLE).to_vec();
    assert_eq!(responses(&[tasks[0], tasks[2]]), [Response::Within(2000), Response::Within(4600)]);
    assert_eq!(responses(&tasks[1..2]), [Response::Within(6800)]);
}

fn three_of_schedcat(scale: u64) -> Vec<Waiter> {
    let of = |(at, (section, period)): (usize, (u64, u64))| Waiter {
        task: Some(Task::new(section, period * scale)),
        cpu: at,
        urgency: at as u64,
        sections: vec![(0, section)],
    };
    [(3, 10), (5, 25), (7, 50)].into_iter().enumerate().map(of).collect()
}

/// SchedCAT's `tests/locking.py`, `Test_mpcp_terms` and `Test_part_fmlp_terms`: a task on each of three CPUs, one lock. There the responses
/// are given, here they follow; so the periods are ten times as long for FMLP+, whose waits do not depend on them.
#[test]
fn waits_of_schedcat() {
    let suspended = |waiters: &[Waiter], queue| -> Vec<_> {
        waits(waiters, queue).iter().map(|wait| (wait.suspended_ns, wait.blocking_ns)).collect()
    };
    let found = suspended(&three_of_schedcat(1), Queue::Priority);
    assert_eq!(found, [(7, 0), (7 + 3 * 3, 0), (3 * 3 + 2 * 5, 0)]);
    let found = suspended(&three_of_schedcat(10), Queue::Fifo);
    assert_eq!(found, [(5 + 7, 0), (3 + 7, 0), (3 + 5, 0)]);
}

/// SchedCAT's `tests/fp.py`, `UniprocessorSelfSuspensions`: 1, 10, 12 without suspension, 1, 20 with 5 of the second; the third misses
/// its deadline of 20. With one that is longer it takes 22.
#[test]
fn suspension_of_schedcat() {
    let found = |suspension| fixed_priority(&three(), &[0, suspension, 0], &[0, 1, 2]);
    assert_eq!(found(0), [1, 10, 12].map(Response::Within));
    assert_eq!(found(5), [1, 20, 22].map(Response::Within));
}

fn three() -> [Task; 3] {
    [Task::new(1, 2), Task::new(5, 20), Task::new(1, 1000)]
}

/// Prosa's `susp/dynamic/oblivious/fp_rta_example.v`, where the first two have equal priorities: suspension as work.
#[test]
fn suspension_of_prosa() {
    let tasks = as_work(&[Task::new(1, 5), Task::new(1, 5), Task::new(1, 6)], &[1, 0, 1]);
    let mut analysis = FixedPriority::new();
    let found = analysis.responses_by_level(&tasks, &[0, 0, 1], &Supply::WHOLE);
    assert_eq!(found, [3, 3, 5].map(Response::Within));
}
