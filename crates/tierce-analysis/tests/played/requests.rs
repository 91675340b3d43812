//! Works in turn and bursts: nothing that is played takes longer than its bound, and jobs that are all alike are as in the other analyses.

use crate::player::{due, keep_longest, play, rounds, Draw, Job, Seen, Shape};
use tierce_analysis::requests::{self, Requesting, Requests};
use tierce_analysis::{Demand, Edf, FixedPriority, Supply, Task};

const SLOTS: u64 = 400;

/// Lists of a task.
#[derive(Clone, Debug)]
struct Lists {
    works: Vec<u64>,
    distances: Vec<u64>,
}

fn lists(draw: &mut Draw) -> Lists {
    let works = (0..=draw.upto(3)).map(|_| 1 + draw.upto(4)).collect();
    let mut distances = vec![1 + draw.upto(14)];
    for _ in 0..draw.upto(3) {
        distances.push(distances[distances.len() - 1] + draw.upto(20));
    }
    if distances.len() > 1 {
        *distances.last_mut().unwrap() += 10;
    }
    Lists { works, distances }
}

fn task(draw: &mut Draw, lists: &Lists) -> Requesting {
    let requests = Requests::new(&lists.works, &lists.distances).unwrap();
    let jitter_ns = if draw.upto(2) == 0 { draw.upto(8) } else { 0 };
    let longest = *lists.works.iter().max().unwrap();
    let deadline_ns = longest + draw.upto(30);
    Requesting { task: Task { deadline_ns, jitter_ns, ..Task::new(longest, lists.distances[0]) }, requests }
}

/// Jobs of all tasks. `early`: the first ones together, late by their jitter, and then as soon as the lists allow, beginning with the
/// works that are most; else with random gaps, from any of the works on.
fn jobs(draw: &mut Draw, all: &[Lists], tasks: &[Requesting], early: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (index, lists) in all.iter().enumerate() {
        let jitter = tasks[index].task.jitter_ns;
        let turn = if early { heaviest(&lists.works) } else { draw.below(lists.works.len()) };
        let begin = if early { jitter.max(40) as i64 } else { draw.upto(40) as i64 };
        let (mut releases, mut before) = (Vec::<i64>::new(), 0);
        loop {
            let least = lists.distances.iter().enumerate().filter_map(|(at, distance)| {
                let other = releases.len().checked_sub(at + 1)?;
                Some(releases[other] + *distance as i64)
            });
            let gap = if early || draw.upto(3) > 0 { 0 } else { draw.upto(9) as i64 };
            let release =
                least.max().map_or(begin - if early { jitter as i64 } else { 0 }, |least| least + gap);
            if release >= SLOTS as i64 {
                break;
            }
            let late = if early { 0 } else { draw.upto(jitter) as i64 };
            let ready = (release + late).max(before).max(if early { begin } else { 0 });
            before = ready;
            let work = lists.works[(turn + releases.len()) % lists.works.len()];
            jobs.push(Job { ready: ready as u64, release, task: index, shape: Shape::new(work) });
            releases.push(release);
        }
    }
    jobs
}

/// From where on the first, the first two, … are most.
fn heaviest(works: &[u64]) -> usize {
    let from = |at: &usize| (0..works.len()).map(|job| works[(at + job) % works.len()]).collect::<Vec<_>>();
    (0..works.len()).max_by_key(from).unwrap()
}

/// A budget in every period of which the first ones come late.
fn given(supply: Option<(u64, u64)>, slot: u64) -> bool {
    supply.is_none_or(|(budget, period)| {
        // As late as it can be after the begin at 40: served early, and then at the ends of the periods.
        let at = (slot + 4 * period - 40 % period) % period;
        if slot < 40 {
            at < budget
        } else {
            at >= period - budget
        }
    })
}

#[test]
fn nothing_takes_longer_than_its_bound() {
    let mut draw = Draw::new(71);
    let mut seen = [Seen::default(), Seen::default(), Seen::default()];
    let (mut met, mut exceeded, mut missed) = (0, 0, 0);
    for _ in 0..rounds(1_500) {
        let all: Vec<_> = (0..=draw.upto(2)).map(|_| lists(&mut draw)).collect();
        let tasks: Vec<_> = all.iter().map(|lists| task(&mut draw, lists)).collect();
        let supply = (draw.upto(2) == 0).then(|| (3 + draw.upto(3), 6 + draw.upto(3)));
        let known =
            supply.map_or(Supply::WHOLE, |(budget, period)| Supply::periodic(budget, period).unwrap());
        let levels: Vec<_> = (0..tasks.len() as u32).collect();
        let equals = vec![0; tasks.len()];
        let by_priority = requests::fixed_priority(&tasks, &levels, &known);
        let among_equals = requests::fixed_priority(&tasks, &equals, &known);
        let by_deadline = requests::earliest_deadline(&tasks, &known);
        let until_done = requests::earliest_deadline_responses(&tasks, &known);
        let plain: Vec<_> = tasks.iter().map(|task| task.task).collect();
        let (mut longest, mut equal) = (vec![0; tasks.len()], vec![0; tasks.len()]);
        let (mut late, mut last) = (false, vec![0; tasks.len()]);
        for round in 0..6 {
            let jobs = jobs(&mut draw, &all, &tasks, round == 0);
            let given = |slot| given(supply, slot);
            keep_longest(&mut longest, &play(tasks.len(), &jobs, SLOTS, given, |job| job.task));
            keep_longest(&mut equal, &play(tasks.len(), &jobs, SLOTS, given, |job| (job.ready, job.task)));
            let played = play(tasks.len(), &jobs, SLOTS, given, |job| (due(&plain, job), job.task));
            keep_longest(&mut last, &played);
            late |= played.iter().zip(&plain).any(|(longest, task)| *longest > task.deadline_ns as i64);
        }
        let what = (&all, &tasks, supply);
        seen[0].add_all(&longest, &by_priority, &what);
        seen[1].add_all(&equal, &among_equals, &what);
        seen[2].add_all(&last, &until_done, &what);
        match by_deadline {
            Demand::Met => {
                met += 1;
                assert!(!late, "{what:?}");
            }
            Demand::Exceeds { .. } | Demand::Overload => {
                exceeded += 1;
                missed += u32::from(late);
            }
            Demand::TooLong => {}
        }
    }
    println!("deadlines: {met} sets meet theirs; of {exceeded} others {missed} miss one in what was played");
    assert!(seen[0].print("priorities").equal() > 500 && seen[1].print("equals").equal() > 100);
    assert!(seen[2].print("deadlines").equal() > 200);
    assert!(met > 100 && missed > 100, "{met} {missed}");
}

/// Of those alike the responses and tests are those of the exact analyses.
#[test]
fn jobs_that_are_alike() {
    let mut draw = Draw::new(72);
    let (mut bounded, mut met) = (0, 0);
    for round in 0..rounds(3_000) {
        let set: Vec<_> = (0..=draw.upto(3)).map(|_| draw.task(&[5, 8, 12, 20], true)).collect();
        let blocking_ns = draw.upto(3) * draw.upto(1);
        let set: Vec<_> = set.into_iter().map(|task| Task { blocking_ns, ..task }).collect();
        let tasks: Vec<_> = set
            .iter()
            .map(|task| Requesting { task: *task, requests: Requests::of(task).unwrap() })
            .collect();
        let supplies = [Supply::WHOLE, Supply::periodic(5, 7).unwrap(), Supply::edp(3, 5, 4).unwrap()];
        let supply = &supplies[round as usize % 3];
        let levels: Vec<_> = (0..set.len() as u32).map(|at| at / 2).collect();
        let exact = FixedPriority::new().responses_by_level(&set, &levels, supply).to_vec();
        for (found, exact) in requests::fixed_priority(&tasks, &levels, supply).into_iter().zip(exact) {
            assert_eq!(found, exact, "{set:?} {supply:?}");
            bounded += u32::from(found.ns().is_some());
        }
        let exact = Edf::new().responses(&set, supply).to_vec();
        for (found, exact) in requests::earliest_deadline_responses(&tasks, supply).into_iter().zip(exact) {
            assert_eq!(found, exact, "{set:?} {supply:?}");
        }
        let (found, exact) = (requests::earliest_deadline(&tasks, supply), Edf::new().demand(&set, supply));
        if found != Demand::TooLong && exact != Demand::TooLong {
            assert_eq!(found == Demand::Met, exact == Demand::Met, "{found:?} {exact:?} {set:?} {supply:?}");
            met += u32::from(exact == Demand::Met);
        }
    }
    assert!(bounded > 1_000 && met > 100, "{bounded} {met}");
}
