//! Preemption thresholds: worked examples, all phases of small sets, random plays.

use crate::player::{all_phases, critical, keep_longest, periodic, random, rounds, Draw, Job, Seen, Shape};
use tierce_analysis::{sections, thresholds, FixedPriority, Response, Sections, Supply, Task};

fn ns(responses: &[Response]) -> Vec<u64> {
    responses.iter().map(|response| response.ns().unwrap()).collect()
}

/// The three tasks of Wang & Saksena 1999, from the highest priority down. Times are discrete here, so whoever is blocked waits for 1 less
/// than with continuous time, where it is 40, 75 and 95.
#[test]
fn three_tasks() {
    let tasks = [(20, 70, 50), (20, 80, 80), (35, 200, 100)]
        .map(|(work, period, deadline)| Task { deadline_ns: deadline, ..Task::new(work, period) });
    let levels = [0, 1, 2];
    let judged = |responses: Vec<Response>| {
        let met =
            responses.iter().zip(&tasks).map(|(response, task)| response.meets(task.deadline_ns)).collect();
        (ns(&responses), met)
    };
    let full = FixedPriority::new().responses(&tasks, &Supply::WHOLE).to_vec();
    assert_eq!(judged(full), (vec![20, 40, 115], vec![true, true, false]));
    let none = thresholds::fixed_priority(&tasks, &levels, &[0, 0, 0], &Supply::WHOLE);
    assert_eq!(judged(none), (vec![54, 74, 75], vec![false, true, true]));
    let found = thresholds::fixed_priority(&tasks, &levels, &[0, 0, 1], &Supply::WHOLE);
    assert_eq!(judged(found), (vec![39, 74, 95], vec![true, true, true]));
    // In ms the 1 is 1 ns.
    let scaled = tasks.map(|task| Task {
        deadline_ns: task.deadline_ns * 1000,
        ..Task::new(task.work_ns * 1000, task.period_ns * 1000)
    });
    let found = thresholds::fixed_priority(&scaled, &levels, &[0, 0, 1], &Supply::WHOLE);
    assert_eq!(ns(&found), [39_999, 74_999, 95_000]);
}

/// Thresholds at the own priorities are full preemption, at the highest one none.
#[test]
fn both_ends() {
    let mut draw = Draw::new(31);
    for round in 0..2_000 {
        let tasks: Vec<_> = (0..3).map(|_| draw.task(&[6, 8, 10, 12, 15, 20], true)).collect();
        let supply =
            [Supply::WHOLE, Supply::periodic(4, 5).unwrap(), Supply::edp(3, 5, 4).unwrap()][round % 3];
        let levels = [0, 1, 2];
        let full = FixedPriority::new().responses(&tasks, &supply).to_vec();
        assert_eq!(
            thresholds::fixed_priority(&tasks, &levels, &levels, &supply),
            full,
            "{tasks:?} {supply:?}"
        );
        let whole: Vec<_> =
            tasks.iter().map(|task| Sections { longest_ns: task.work_ns, last_ns: task.work_ns }).collect();
        let none = sections::fixed_priority(&tasks, &whole, &levels, &supply);
        assert_eq!(
            thresholds::fixed_priority(&tasks, &levels, &[0, 0, 0], &supply),
            none,
            "{tasks:?} {supply:?}"
        );
    }
}

/// Of all thresholds that there are, some meet all deadlines if the chosen ones do, and none of these is below the chosen ones.
#[test]
fn the_lowest_thresholds_are_chosen() {
    let mut draw = Draw::new(37);
    let (mut some, mut none, mut between) = (0, 0, 0);
    for round in 0..4_000 {
        let count = 2 + round % 3;
        let mut task = || {
            let period_ns = 12 + draw.upto(40);
            let work_ns = 1 + draw.upto(period_ns / count as u64);
            Task {
                deadline_ns: period_ns.max(work_ns) - draw.upto(period_ns / 3),
                ..Task::new(work_ns, period_ns)
            }
        };
        let mut tasks: Vec<_> = (0..count).map(|_| task()).collect();
        tasks.sort_by_key(|task| task.deadline_ns);
        let supply = [Supply::WHOLE, Supply::WHOLE, Supply::periodic(4, 5).unwrap()][round / 3 % 3];
        // With equal priorities, too.
        let levels: Vec<u32> = match round % 5 {
            0 => (0..count as u32).map(|level| level / 2).collect(),
            _ => (0..count as u32).collect(),
        };
        let chosen = thresholds::choose(&tasks, &levels, &supply);
        let meets = |limits: &[u32]| {
            let found = thresholds::fixed_priority(&tasks, &levels, limits, &supply);
            tasks.iter().zip(found).all(|(task, response)| response.meets(task.deadline_ns))
        };
        let all = levels.iter().fold(vec![vec![]], |begun: Vec<Vec<u32>>, most| {
            begun.iter().flat_map(|begun| (0..=*most).map(|limit| [&begun[..], &[limit]].concat())).collect()
        });
        let good: Vec<_> = all.into_iter().filter(|limits| meets(limits)).collect();
        let told = format!("round {round}: {tasks:?} {levels:?} {supply:?} {chosen:?} {good:?}");
        match chosen {
            None => assert!(good.is_empty(), "{told}"),
            Some(chosen) => {
                assert!(good.contains(&chosen), "{told}");
                let lowest =
                    |limits: &Vec<u32>| limits.iter().zip(&chosen).all(|(limit, least)| limit <= least);
                assert!(good.iter().all(lowest), "{told}");
                some += 1;
                between += u32::from(chosen != levels);
            }
        }
        none += u32::from(good.is_empty());
    }
    assert!(some > 1_000 && none > 500 && between > 50, "{some} {none} {between}");
}

/// Plays jobs slot by slot; `last`: of its level it comes last. The longest response of each task among jobs done within `slots`.
fn play(
    jobs: &[Job],
    [levels, thresholds]: [&[u32]; 2],
    slots: u64,
    given: impl Fn(u64) -> bool,
    last: usize,
) -> Vec<i64> {
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|job| (job.ready, job.release));
    let mut jobs = jobs.into_iter().peekable();
    let mut longest = vec![0; levels.len()];
    let mut under = Vec::<(Job, usize)>::new(); // and the slots done
    for slot in 0..slots {
        while let Some(job) = jobs.next_if(|job| job.ready <= slot) {
            under.push((job, 0));
        }
        if !given(slot) {
            continue;
        }
        // Who has begun has its threshold, and comes before others of that level.
        let key = |(job, done): &(Job, usize)| match done {
            0 => (levels[job.task], 1, job.task == last, job.release),
            _ => (thresholds[job.task], 0, false, job.release),
        };
        let first_of_task = |at: &usize| {
            let (this, done) = &under[*at];
            *done > 0
                || under.iter().all(|(other, done)| {
                    other.task != this.task || *done == 0 && other.release >= this.release
                })
        };
        let ready = (0..under.len()).filter(first_of_task);
        let Some(at) = ready.min_by_key(|at| key(&under[*at])) else { continue };
        under[at].1 += 1;
        if under[at].1 == under[at].0.shape.kept.len() {
            let (job, _) = under.remove(at);
            longest[job.task] = longest[job.task].max(slot as i64 + 1 - job.release);
        }
    }
    longest
}

/// The longest of all phases of small sets is what is computed.
#[test]
fn all_phases_of_small_sets() {
    let mut draw = Draw::new(32);
    let (mut sets, mut between) = (0, 0);
    while sets < 150 {
        let tasks: Vec<_> = (0..3).map(|_| draw.task(&[3, 4, 5, 6, 7], false)).collect();
        let levels = [0, 1, 2];
        let thresholds: Vec<_> = (0..3).map(|level| draw.upto(level) as u32).collect();
        let found = thresholds::fixed_priority(&tasks, &levels, &thresholds, &Supply::WHOLE);
        let Some(found) = found.iter().map(|one| one.ns()).collect::<Option<Vec<_>>>() else { continue };
        let mut longest = vec![0; 3];
        let ranges: Vec<_> = tasks.iter().map(|task| task.period_ns + 1).collect();
        for phases in all_phases(&ranges) {
            let jobs = periodic(&tasks, &phases, 120, |index| Shape::new(tasks[index].work_ns));
            keep_longest(&mut longest, &play(&jobs, [&levels, &thresholds], 120, |_| true, 3));
        }
        let longest: Vec<_> = longest.iter().map(|longest| *longest as u64).collect();
        assert_eq!(longest, found, "{tasks:?} {thresholds:?}");
        sets += 1;
        between += u32::from(thresholds[2] == 1 && tasks[2].work_ns > 1);
    }
    assert!(between > 5, "{between}");
}

/// Nothing takes longer, whatever the phases, jitter, gaps, works, equal levels and the pattern of the supply.
#[test]
fn responses_are_bounds() {
    const SLOTS: u64 = 300;
    let mut draw = Draw::new(33);
    let rounds = rounds(2_500);
    let mut seen = Seen::default();
    for round in 0..rounds {
        let count = 2 + draw.upto(2);
        let one = |draw: &mut Draw| {
            let task = draw.task(&[5, 6, 8, 10, 12, 15, 20, 30], round % 2 == 0);
            Task { work_ns: task.work_ns.div_ceil(count / 2).min(task.deadline_ns), ..task }
        };
        let tasks: Vec<_> = (0..count).map(|_| one(&mut draw)).collect();
        let mut levels: Vec<_> = (0..count as u32).collect();
        if draw.upto(3) == 0 {
            levels[1] = 0;
        }
        let thresholds: Vec<_> = levels.iter().map(|level| draw.upto(u64::from(*level)) as u32).collect();
        let (budget, period) = [(1, 1), (4, 5), (3, 5)][draw.below(3)];
        let supply = if budget == period { Supply::WHOLE } else { Supply::periodic(budget, period).unwrap() };
        let bounds = thresholds::fixed_priority(&tasks, &levels, &thresholds, &supply);
        let mut longest = vec![0; tasks.len()];
        for _ in 0..6 {
            let shape = |draw: &mut Draw, index: usize| {
                let work = tasks[index].work_ns;
                Shape::new(if draw.upto(1) == 0 { work } else { 1 + draw.upto(work - 1) })
            };
            let jobs = match draw.upto(1) {
                0 => random(&tasks, SLOTS, &mut draw, shape),
                _ => {
                    critical(&tasks, SLOTS, draw.below(tasks.len()), |index| Shape::new(tasks[index].work_ns))
                }
            };
            let from = draw.upto(period - 1);
            let given = |slot: u64| (slot + from) % period < budget;
            let last = draw.below(tasks.len());
            keep_longest(&mut longest, &play(&jobs, [&levels, &thresholds], SLOTS, given, last));
        }
        seen.add_all(&longest, &bounds, &(&tasks, &levels, &thresholds, &supply));
    }
    let equal = seen.print("thresholds").equal();
    assert!(equal > rounds / 10, "{equal}");
}
