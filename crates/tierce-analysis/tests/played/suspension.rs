//! Jobs that suspend themselves: worked examples, random plays, and what each bound is better at.

use crate::player::{due, keep_longest, play, random, rounds, Draw, Seen, Shape};
use tierce_analysis::{suspension, FixedPriority, Response, Supply, Task};

/// The example at the head of the file.
#[test]
fn the_choice_of_the_least_bound() {
    let tasks = [Task::new(1, 4), Task::new(2, 8)];
    let bounds = |suspended: u64| suspension::fixed_priority(&tasks, &[suspended, 0], &[0, 1]);
    assert_eq!(bounds(2), [Response::Within(3), Response::Within(4)]);
    assert_eq!(bounds(0), [Response::Within(1), Response::Within(3)]);
    let working = suspension::as_work(&tasks, &[2, 0]);
    assert_eq!(FixedPriority::new().responses(&working, &Supply::WHOLE)[1], Response::Within(8));
}

/// A job with suspensions anywhere, together no longer than given.
fn random_shape(draw: &mut Draw, task: &Task, suspended: u64) -> Shape {
    let mut shape =
        Shape::new(if draw.upto(2) == 0 { 1 + draw.upto(task.work_ns - 1) } else { task.work_ns });
    let mut left = if draw.upto(2) == 0 { draw.upto(suspended) } else { suspended };
    let slots = shape.suspended.len();
    if draw.upto(1) == 0 {
        let at = [0, draw.below(slots), slots - 1][draw.below(3)];
        shape.suspended[at] = left;
    } else {
        while left > 0 {
            let at = draw.below(slots);
            let some = 1 + draw.upto(left - 1);
            shape.suspended[at] += some;
            left -= some;
        }
    }
    shape
}

/// Tasks and their suspensions.
fn draw_set(draw: &mut Draw, jitter: bool) -> (Vec<Task>, Vec<u64>) {
    let count = 2 + draw.upto(2);
    let one = |_| {
        let task = draw.task(&[5, 6, 8, 10, 12, 15, 20, 30], jitter);
        let longest = if draw.upto(2) > 0 { task.period_ns } else { 2 * task.period_ns };
        let deadline_ns = task.deadline_ns.min(longest);
        let suspended = if draw.upto(2) > 0 { draw.upto(task.period_ns / 2) } else { 0 };
        (Task { work_ns: task.work_ns.div_ceil(count).min(deadline_ns), deadline_ns, ..task }, suspended)
    };
    (0..count).map(one).unzip()
}

#[test]
fn responses_are_bounds() {
    let mut draw = Draw::new(30);
    let (mut fixed_seen, mut earliest_seen) = (Seen::default(), Seen::default());
    let (mut better, mut met, mut met_by_more) = (0, 0, 0);
    let rounds = rounds(6_000);
    for round in 0..rounds {
        let (tasks, suspended) = draw_set(&mut draw, round % 4 == 0);
        let levels = &[[0, 1, 2, 3], [0, 0, 1, 1]][usize::from(round % 5 == 0)][..tasks.len()];
        let fixed = suspension::fixed_priority(&tasks, &suspended, levels);
        let (holds, earliest) = suspension::earliest_deadline(&tasks, &suspended);
        let working = suspension::as_work(&tasks, &suspended);
        let as_work = FixedPriority::new().responses_by_level(&working, levels, &Supply::WHOLE).to_vec();
        better += u64::from(fixed != as_work);
        met += u32::from(holds);
        met_by_more += u64::from(holds && !tierce_analysis::Edf::new().schedulable(&working, &Supply::WHOLE));
        let mut longest = vec![vec![0; tasks.len()]; 2];
        for _ in 0..8 {
            let shape = |draw: &mut Draw, index: usize| random_shape(draw, &tasks[index], suspended[index]);
            let jobs = random(&tasks, 300, &mut draw, shape);
            let last = draw.below(tasks.len());
            let played = [
                play(tasks.len(), &jobs, 300, |_| true, |job| (levels[job.task], job.task == last)),
                play(tasks.len(), &jobs, 300, |_| true, |job| (due(&tasks, job), job.task == last)),
            ];
            longest.iter_mut().zip(&played).for_each(|(longest, played)| keep_longest(longest, played));
        }
        let what = (&tasks, &suspended, levels);
        fixed_seen.add_all(&longest[0], &fixed, &what);
        earliest_seen.add_all(&longest[1], &earliest, &what);
        let late = longest[1].iter().zip(&tasks).any(|(longest, task)| *longest as u64 > task.deadline_ns);
        assert!(!holds || !late, "{what:?}");
    }
    println!("{better} better than as work; {met} met by earliest deadline, {met_by_more} not as work");
    let equal =
        [fixed_seen.print("fixed priorities").equal(), earliest_seen.print("earliest deadline").equal()];
    assert!(equal.iter().all(|equal| *equal > rounds / 10), "{equal:?}");
    assert!(better > rounds / 20 && met_by_more > rounds / 300, "{better} {met_by_more}");
}

/// Many tasks that suspend themselves: not all choices are tried, and each is a bound.
#[test]
fn many_suspensions() {
    let tasks: Vec<_> = (1..=12).map(|at| Task::new(1, 20 + 5 * at)).collect();
    let levels: Vec<_> = (0..12).collect();
    let suspended: Vec<_> = (0..12).map(|at| at % 3).collect();
    let bounds = suspension::fixed_priority(&tasks, &suspended, &levels);
    let plain = FixedPriority::new().responses(&tasks, &Supply::WHOLE).to_vec();
    let working = suspension::as_work(&tasks, &suspended);
    let as_work = FixedPriority::new().responses(&working, &Supply::WHOLE).to_vec();
    let ns =
        |responses: &[Response]| responses.iter().map(|response| response.ns().unwrap()).collect::<Vec<_>>();
    assert!(ns(&plain).iter().zip(ns(&bounds)).all(|(plain, bound)| *plain <= bound));
    assert!(ns(&bounds).iter().zip(ns(&as_work)).all(|(bound, as_work)| *bound <= as_work));
    assert!(ns(&bounds)[11] < ns(&as_work)[11]);
}
