//! What is found holds, and one ns more or less does not.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use tierce_analysis::sensitivity::{limits, scaled, work_scale, Limits, SCALE_ONE};
use tierce_analysis::{Edf, FixedPriority, Supply, Task, TIME_MAX_NS};

const MS: u64 = 1_000_000;

/// The example at the head of the file, in ms.
#[test]
fn two_tasks() {
    let tasks = [Task::new(2 * MS, 8 * MS), Task::new(3 * MS, 12 * MS)];
    let holds = |tasks: &[Task]| FixedPriority::new().schedulable(tasks, &Supply::WHOLE);
    let ms = |value: u64| Some(value * MS);
    let first = limits(&tasks, 0, holds);
    // In 11 ms, four times 2.75, are four times 2 and 3 done.
    let period_min_ns = Some(2_750_000);
    assert_eq!(first, Limits { work_max_ns: ms(5), period_min_ns, deadline_min_ns: ms(2) });
    let second = limits(&tasks, 1, holds);
    assert_eq!(second, Limits { work_max_ns: ms(8), period_min_ns: ms(5), deadline_min_ns: ms(5) });
    let scale = work_scale(&tasks, holds).unwrap();
    assert!((12 * SCALE_ONE / 7 - scale) < 1_000, "{scale}");
    // As it is it does not hold; the work has to shrink, or the period and deadline to grow.
    let late = [tasks[0], Task { deadline_ns: 4 * MS, ..tasks[1] }];
    let second = limits(&late, 1, holds);
    assert_eq!(second, Limits { work_max_ns: ms(2), period_min_ns: None, deadline_min_ns: ms(5) });
    assert_eq!(limits(&late, 0, holds).work_max_ns, ms(1));
    // However seldom the first comes, it comes once.
    assert_eq!(limits(&late, 0, holds).period_min_ns, None);
    assert!(work_scale(&late, holds).is_some_and(|scale| scale < SCALE_ONE));
}

#[test]
fn what_never_holds() {
    let tasks = [Task::new(2, 8), Task::new(3, 12)];
    let none = Limits { work_max_ns: None, period_min_ns: None, deadline_min_ns: None };
    assert_eq!(limits(&tasks, 0, |_| false), none);
    assert_eq!(work_scale(&tasks, |_| false), None);
    assert_eq!(work_scale(&[], |_| true), None);
    let least = Limits { work_max_ns: Some(8), period_min_ns: Some(1), deadline_min_ns: Some(1) };
    assert_eq!(limits(&tasks, 0, |_| true), least);
    assert_eq!(limits(&[Task { jitter_ns: 9, ..tasks[0] }], 0, |_| true).work_max_ns, None);
    let huge = [Task { deadline_ns: u64::MAX, ..Task::new(u64::MAX, u64::MAX) }];
    assert_eq!(limits(&huge, 0, |_| true).work_max_ns, Some(TIME_MAX_NS));
    assert_eq!(scaled(&huge, u64::MAX)[0].work_ns, u64::MAX);
}

fn set(draw: &mut Draw) -> Vec<Task> {
    (0..2 + draw.below(4))
        .map(|_| {
            let period_ns = 1_000_000 + draw.below(30_000_000) as u64;
            let work_ns = 1 + draw.below(period_ns as usize / 4) as u64;
            let deadline_ns = match draw.below(3) {
                0 => work_ns + draw.below((period_ns - work_ns) as usize) as u64,
                1 => period_ns + draw.below(period_ns as usize) as u64,
                _ => period_ns,
            };
            let jitter_ns = if draw.below(3) == 0 { draw.below(deadline_ns as usize / 4) as u64 } else { 0 };
            Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 }
        })
        .collect()
}

/// Fixed priorities and EDF, on a CPU and in reservations.
#[test]
fn limits_are_exact() {
    let mut draw = Draw::new(31);
    let (mut found, mut shrunk, mut none) = (0, 0, 0);
    for round in 0..80 {
        let tasks = set(&mut draw);
        let period = 500_000 + draw.below(2_000_000) as u64;
        let supply = match draw.below(2) {
            0 => Supply::WHOLE,
            _ => Supply::periodic(period / 10 * (5 + draw.below(5) as u64), period).unwrap(),
        };
        let (mut fixed, mut edf) = (FixedPriority::new(), Edf::new());
        let mut holds = |tasks: &[Task]| match round % 2 {
            0 => fixed.schedulable(tasks, &supply),
            _ => edf.schedulable_quickly(tasks, &supply),
        };
        let index = draw.below(tasks.len());
        let task = tasks[index];
        let limits = limits(&tasks, index, &mut holds);
        let mut with = |changed: Task| {
            let mut set = tasks.clone();
            set[index] = changed;
            holds(&set)
        };
        let at_period = |period_ns| {
            let deadline_ns = if task.deadline_ns == task.period_ns { period_ns } else { task.deadline_ns };
            Task { period_ns, deadline_ns, ..task }
        };
        let now = with(task);
        let mut check = |limit: Option<u64>, now_ns: u64, grows: bool, at: &dyn Fn(u64) -> Task| {
            let Some(limit) = limit else {
                none += 1;
                return assert!(!now);
            };
            found += 1;
            shrunk += u32::from(!now);
            let beyond = |by: u64| if grows { limit + by } else { limit.saturating_sub(by) };
            assert!(with(at(limit)), "{limit}: {:?} of {tasks:?} in {supply:?}", at(limit));
            for by in [1, 2, 1_000, limit / 10] {
                assert!(
                    !with(at(beyond(by.max(1)))),
                    "{limit} and {by}: {:?} of {tasks:?} in {supply:?}",
                    at(limit)
                );
            }
            assert_eq!(now, if grows { now_ns <= limit } else { now_ns >= limit });
        };
        check(limits.work_max_ns, task.work_ns, true, &|work_ns| Task { work_ns, ..task });
        check(limits.period_min_ns, task.period_ns, false, &at_period);
        check(limits.deadline_min_ns, task.deadline_ns, false, &|deadline_ns| Task { deadline_ns, ..task });
        match work_scale(&tasks, &mut holds) {
            Some(scale) => {
                assert!(
                    holds(&scaled(&tasks, scale)) && !holds(&scaled(&tasks, scale + 1)),
                    "{scale}: {tasks:?}"
                );
                assert_eq!(scale >= SCALE_ONE, now);
            }
            None => assert!(!now),
        }
    }
    println!("{found} limits, {shrunk} of sets that do not hold, {none} times none");
    assert!(found > 150 && shrunk > 5 && none > 10, "{found} {shrunk} {none}");
}
