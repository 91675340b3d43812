//! Known phases: what is computed is what a schedule played slot by slot shows, and shorter works change nothing.

use crate::player::{due, periodic, play, Draw, Job, Shape};
use tierce_analysis::offsets::{self, Order};
use tierce_analysis::{FixedPriority, Response, Supply, Task};

/// The example at the head of the file; together they need 4 within 2.
#[test]
fn two_that_never_meet() {
    let tasks = [Task { deadline_ns: 2, ..Task::new(2, 4) }; 2];
    for order in [Order::FixedPriority(&[0, 1]), Order::EarliestDeadline, Order::FirstComeFirst] {
        assert_eq!(offsets::responses(&tasks, &[0, 2], order), [Response::Within(2); 2]);
    }
    assert_eq!(FixedPriority::new().responses(&tasks, &Supply::WHOLE)[1], Response::Within(4));
}

/// Leung & Merrill's point: the first cycle after the last offset may still be without a miss.
#[test]
fn schedules_are_exact() {
    let mut draw = Draw::new(40);
    let (mut sets, mut less) = (0, 0);
    while sets < 1_500 {
        let count = 2 + draw.upto(2);
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let task = draw.task(&[4, 5, 6, 8, 10, 12], false);
                Task { work_ns: task.work_ns.div_ceil(count - 1), ..task }
            })
            .collect();
        let phases: Vec<_> = tasks.iter().map(|task| draw.upto(2 * task.period_ns)).collect();
        let levels: Vec<_> =
            if draw.upto(3) == 0 { vec![0, 0, 1, 1] } else { vec![0, 1, 2, 3] }[..tasks.len()].to_vec();
        let found = [
            offsets::responses(&tasks, &phases, Order::FixedPriority(&levels)),
            offsets::responses(&tasks, &phases, Order::EarliestDeadline),
            offsets::responses(&tasks, &phases, Order::FirstComeFirst),
        ];
        if found.iter().flatten().any(|response| response.ns().is_none()) {
            continue;
        }
        sets += 1;
        let any = FixedPriority::new().responses_by_level(&tasks, &levels, &Supply::WHOLE).to_vec();
        less += u32::from(any != found[0]);
        // 24 is the last offset at most, 120 a common multiple.
        let slots = 24 + 3 * 120 + 60;
        let longest = |shape: &mut dyn FnMut(usize) -> Shape| {
            let shapes = std::cell::RefCell::new(shape);
            let jobs = periodic(&tasks, &phases, slots, |index| (shapes.borrow_mut())(index));
            let mut longest = vec![vec![0; tasks.len()]; 3];
            for last in 0..tasks.len() {
                let key = |policy: usize, job: &Job| match policy {
                    0 => (i64::from(levels[job.task]), job.release, job.task == last),
                    1 => (due(&tasks, job), 0, job.task == last),
                    _ => (job.release, 0, job.task == last),
                };
                for (policy, longest) in longest.iter_mut().enumerate() {
                    longest[last] =
                        play(tasks.len(), &jobs, slots, |_| true, |job| key(policy, job))[last] as u64;
                }
            }
            longest
        };
        let all = longest(&mut |index| Shape::new(tasks[index].work_ns));
        for (found, played) in found.iter().zip(&all) {
            let found: Vec<_> = found.iter().map(|response| response.ns().unwrap()).collect();
            assert_eq!(found, *played, "{tasks:?} {phases:?} {levels:?}");
        }
        let shorter = longest(&mut |index| Shape::new(1 + draw.upto(tasks[index].work_ns - 1)));
        assert!(
            all.iter().flatten().zip(shorter.iter().flatten()).all(|(all, shorter)| shorter <= all),
            "{tasks:?} {phases:?}"
        );
    }
    println!("{less} of {sets} sets have shorter responses than for all phases");
    assert!(less > 300);
}

/// The order that Audsley's search finds, against all orders.
#[test]
fn audsley_is_optimal() {
    let mut draw = Draw::new(41);
    let (mut found, mut none) = (0, 0);
    for _ in 0..1_000 {
        let tasks: Vec<_> = (0..3).map(|_| draw.task(&[4, 6, 8, 12], false)).collect();
        let tasks: Vec<_> =
            tasks.into_iter().map(|task| Task { work_ns: task.work_ns.div_ceil(2), ..task }).collect();
        let phases: Vec<_> = tasks.iter().map(|task| draw.upto(task.period_ns)).collect();
        let holds = |levels: &[u32]| {
            let responses = offsets::responses(&tasks, &phases, Order::FixedPriority(levels));
            responses.iter().zip(&tasks).all(|(response, task)| response.meets(task.deadline_ns))
        };
        let all = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        match offsets::audsley(&tasks, &phases) {
            Some(order) => {
                let mut levels = [0; 3];
                (0..).zip(&order).for_each(|(level, index)| levels[*index] = level);
                assert!(holds(&levels), "{order:?} of {tasks:?} {phases:?}");
                found += 1;
            }
            None => {
                assert!(!all.iter().any(|levels| holds(levels)), "{tasks:?} {phases:?}");
                none += 1;
            }
        }
    }
    assert!(found > 50 && none > 50, "{found} {none}");
}

/// Periods without a common multiple in reach are not decided, and more work than time has no bound.
#[test]
fn what_is_not_decided() {
    let apart = [Task::new(1, 1_000_000_007), Task::new(1, 998_244_353)];
    assert_eq!(offsets::responses(&apart, &[0, 5], Order::EarliestDeadline), [Response::TooLong; 2]);
    let over = [Task::new(2, 4), Task::new(3, 5)];
    assert_eq!(offsets::responses(&over, &[0, 5], Order::EarliestDeadline), [Response::Unbounded; 2]);
    let fixed = offsets::responses(&over, &[0, 5], Order::FixedPriority(&[0, 1]));
    assert_eq!(fixed, [Response::Within(2), Response::Unbounded]);
}

/// Why only preemptive schedules are played: without preemption a job that is done early makes another one late.
#[test]
fn without_preemption_less_work_may_take_longer() {
    let tasks = [Task { deadline_ns: 2, ..Task::new(1, 12) }, Task::new(5, 12), Task::new(2, 12)];
    let played = |second: u64| {
        let works = [1, second, 5];
        let jobs =
            periodic(&tasks, &[6, 0, 3], 24, |index| Shape::new(works[index]).with_region(0, works[index]));
        play(3, &jobs, 24, |_| true, |job| [0, 1, 2][job.task])[0]
    };
    assert_eq!((played(6), played(3)), (1, 3));
}
