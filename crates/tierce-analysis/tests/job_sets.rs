//! Jobs without preemption: the published examples, brute force over all times of small sets, random plays of larger ones.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::job_sets::{explore, is_job_set, parse, Explored, Job, TooLarge};

const MANY: u64 = 1_000_000;

fn job(id: u64, ready_ns: (u64, u64), work_ns: (u64, u64), deadline_ns: u64, priority: u64) -> Job {
    Job { task: 0, id, ready_ns, work_ns, deadline_ns, priority }
}

fn on(jobs: &[Job], cpus: usize) -> Explored {
    explore(jobs, cpus, MANY).unwrap()
}

fn late(jobs: &[Job], cpus: usize) -> bool {
    on(jobs, cpus).done_ns.iter().zip(jobs).any(|(done, job)| done.1 > job.deadline_ns)
}

/// Nasri & Brandenburg 2017, Figure 1: fig1a.csv and fig1c.csv of np-schedulability-analysis.
const FIGURE_1: &str = "   Task ID,     Job ID,   Arrival min,  Arrival max,  Cost min, Cost max, Deadline, Priority
1, 1,  0,  0, 1,  2, 10, 10\n1, 2, 10, 10, 1,  2, 20, 20\n1, 3, 20, 20, 1,  2, 30, 30\n1, 4, 30, 30, 1,  2, 40, 40
1, 5, 40, 40, 1,  2, 50, 50\n1, 6, 50, 50, 1,  2, 60, 60\n2, 7,  0,  0, 7,  8, 30, 30\n2, 8, 30, 30, 7,  7, 60, 60
3, 9,  0,  0, 3, 13, 60, 60\n";

#[test]
fn figure_1_on_one_and_two_cpus() {
    assert!(is_job_set(FIGURE_1));
    let jobs = parse(FIGURE_1).unwrap();
    assert_eq!(
        jobs[6],
        Job { task: 2, id: 7, ready_ns: (0, 0), work_ns: (7, 8), deadline_ns: 30, priority: 30 }
    );
    let found = on(&jobs, 1);
    // The long job runs from 8 or 9 on if the second one of the first task has not come: up to 22, and that one is late.
    assert_eq!(found.done_ns[..2], [(1, 2), (11, 24)]);
    assert_eq!((found.done_ns[6], found.done_ns[8]), ((8, 10), (11, 25)));
    assert!(late(&jobs, 1) && !late(&jobs, 2));
    // With the long job before the middle one all are in time.
    let priority = |id| [1, 2, 3, 4, 5, 6, 8, 9, 7][id as usize - 1];
    let jobs: Vec<_> = jobs.iter().map(|job| Job { priority: priority(job.id), ..*job }).collect();
    assert!(!late(&jobs, 1));
}

/// Unit tests of np-schedulability-analysis (src/tests/global.cpp) on one CPU.
#[test]
fn small_sets_of_the_tool() {
    for (jobs, done) in [
        (
            vec![
                job(1, (0, 0), (3, 8), 100, 1),
                job(2, (7, 7), (5, 5), 100, 2),
                job(3, (10, 10), (1, 11), 100, 3),
            ],
            vec![(3, 8), (12, 13), (13, 24)],
        ),
        (
            vec![
                job(1, (0, 0), (3, 10), 100, 3),
                job(2, (7, 7), (5, 5), 100, 2),
                job(3, (10, 10), (5, 5), 100, 1),
            ],
            vec![(3, 10), (12, 20), (15, 19)],
        ),
        (vec![job(1, (0, 0), (3, 10), 100, 2), job(2, (0, 0), (5, 5), 100, 1)], vec![(8, 15), (5, 5)]),
        (vec![job(1, (0, 1), (3, 10), 100, 2), job(2, (0, 1), (5, 5), 100, 1)], vec![(3, 16), (5, 15)]),
        (
            vec![
                job(1, (0, 0), (1, 5), 100, 2),
                job(2, (0, 0), (1, 20), 100, 3),
                job(3, (10, 10), (5, 5), 100, 1),
            ],
            vec![(1, 5), (2, 25), (15, 30)],
        ),
        (
            vec![
                job(1, (0, 0), (1, 5), 100, 2),
                job(2, (9, 9), (1, 15), 25, 3),
                job(3, (30, 30), (5, 5), 100, 1),
            ],
            vec![(1, 5), (10, 24), (35, 35)],
        ),
        (
            vec![
                job(1, (0, 10), (2, 50), 2000, 1),
                job(2, (0, 10), (50, 1200), 5000, 2),
                job(3, (1000, 1010), (2, 50), 3000, 1),
            ],
            vec![(2, 1259), (50, 1260), (1002, 1310)],
        ),
        (
            vec![job(1, (0, 10), (2, 50), 2000, 2000), job(2, (0, 10), (100, 150), 2000, 2000)],
            vec![(2, 209), (100, 210)],
        ),
        // The example at the head of the module.
        (vec![job(1, (0, 1), (1, 2), 100, 1), job(2, (0, 0), (3, 3), 100, 2)], vec![(1, 5), (3, 5)]),
    ] {
        assert_eq!(on(&jobs, 1).done_ns, done, "{jobs:?}");
    }
    // Nasri, Nelissen & Brandenburg 2018, Figure 1.
    let jobs = [
        Job { task: 1, ..job(1, (0, 0), (2, 4), 7, 1) },
        Job { task: 2, ..job(1, (0, 0), (10, 15), 20, 2) },
        Job { task: 3, ..job(1, (5, 5), (1, 7), 15, 3) },
        Job { task: 4, ..job(1, (8, 8), (2, 3), 20, 4) },
        Job { task: 5, ..job(1, (8, 8), (1, 1), 14, 5) },
    ];
    assert!(late(&jobs, 2) && !late(&jobs, 3));
}

/// When each job is done, with these times.
fn play(jobs: &[Job], ready: &[u64], work: &[u64], cpus: usize) -> Vec<u64> {
    let mut free = vec![0; cpus];
    let mut done = vec![0; jobs.len()];
    for _ in 0..jobs.len() {
        let cpu = (0..cpus).min_by_key(|cpu| free[*cpu]).unwrap();
        let left = || (0..jobs.len()).filter(|index| done[*index] == 0);
        let time = left().map(|index| ready[index]).min().unwrap().max(free[cpu]);
        let waiting = left().filter(|index| ready[*index] <= time);
        let next =
            waiting.min_by_key(|index| (jobs[*index].priority, jobs[*index].task, jobs[*index].id)).unwrap();
        free[cpu] = time + work[next];
        done[next] = free[cpu];
    }
    done
}

fn draw_jobs(draw: &mut Draw, count: usize, spread: usize, jitter: usize, work: usize) -> Vec<Job> {
    (0..count as u64)
        .map(|id| {
            let ready = draw.below(spread) as u64;
            let least = 1 + draw.below(work) as u64;
            let ready_ns = (ready, ready + draw.below(jitter) as u64);
            let work_ns = (least, least + draw.below(4) as u64);
            Job {
                task: draw.below(3) as u64,
                id,
                ready_ns,
                work_ns,
                deadline_ns: 1_000,
                priority: draw.below(count) as u64,
            }
        })
        .collect()
}

/// Every time within every range: on one CPU what is found is exact, on several nothing is outside.
#[test]
fn all_times_of_small_sets() {
    let mut draw = Draw::new(51);
    let (mut exact, mut tight, mut all) = (0, 0, 0);
    for round in 0..1_500 {
        let count = 2 + draw.below(3);
        let jobs = draw_jobs(&mut draw, count, 8, 4, 5);
        let cpus = [1, 1, 2, 3][round % 4];
        let ranges: Vec<_> =
            jobs.iter().map(|job| job.ready_ns).chain(jobs.iter().map(|job| job.work_ns)).collect();
        let mut times: Vec<_> = ranges.iter().map(|range| range.0).collect();
        let mut seen = vec![(u64::MAX, 0); count];
        loop {
            for (seen, done) in seen.iter_mut().zip(play(&jobs, &times[..count], &times[count..], cpus)) {
                *seen = (done.min(seen.0), done.max(seen.1));
            }
            let Some(at) = (0..times.len()).find(|at| times[*at] < ranges[*at].1) else { break };
            times[at] += 1;
            (0..at).for_each(|at| times[at] = ranges[at].0);
        }
        let found = on(&jobs, cpus).done_ns;
        if cpus == 1 {
            assert_eq!(found, seen, "{jobs:?}");
            exact += 1;
        } else {
            for (found, seen) in found.iter().zip(&seen) {
                assert!(found.0 <= seen.0 && seen.1 <= found.1, "{found:?} {seen:?} {jobs:?} on {cpus}");
                tight += u32::from(found == seen);
                all += 1;
            }
        }
    }
    println!("{exact} sets exact on one CPU; on several {tight} of {all} jobs");
    assert!(tight * 2 > all);
}

/// Nothing is outside of what is found.
#[test]
fn random_times_of_larger_sets() {
    let rounds = rounds(2_000);
    let mut draw = Draw::new(52);
    let (mut refused, mut latest) = (0, [Seen::default(); 2]);
    for _ in 0..rounds {
        let count = 5 + draw.below(100);
        let (jitter, cpus) = (1 + draw.below(12), 1 + draw.below(4));
        let jobs = draw_jobs(&mut draw, count, 12 * count / cpus, jitter, 12);
        let Ok(found) = explore(&jobs, cpus, 20_000) else {
            refused += 1;
            continue;
        };
        assert!(found.states > count as u64 && found.starts + 1 >= found.states);
        let mut seen = vec![(u64::MAX, 0); count];
        for kind in 0..20 {
            let mut times = |range: (u64, u64)| match kind {
                0 => range.0,
                1 => range.1,
                2..10 => [range.0, range.1][draw.below(2)],
                _ => range.0 + draw.below((range.1 - range.0) as usize + 1) as u64,
            };
            let (ready, work): (Vec<_>, Vec<_>) =
                jobs.iter().map(|job| (times(job.ready_ns), times(job.work_ns))).unzip();
            for (seen, done) in seen.iter_mut().zip(play(&jobs, &ready, &work, cpus)) {
                *seen = (done.min(seen.0), done.max(seen.1));
            }
        }
        for ((found, seen), job) in found.done_ns.iter().zip(&seen).zip(&jobs) {
            let about = || format!("{found:?} {seen:?} {jobs:?} on {cpus}");
            assert!(found.0 <= seen.0, "{}", about());
            let from = job.ready_ns.0;
            latest[usize::from(cpus > 1)].add(seen.1 - from, found.1 - from, about);
        }
    }
    println!("{rounds} sets, {refused} with too many states");
    let equal =
        [latest[0].print("job sets, one CPU").equal(), latest[1].print("job sets, several CPUs").equal()];
    assert!(refused * 4 < rounds && equal.iter().all(|equal| *equal > rounds));
}

#[test]
fn too_many_states_and_large_times() {
    let jobs: Vec<_> = (0..24).map(|id| job(id, (0, 100), (1, 1 + id), 1_000, id)).collect();
    let TooLarge { started } = explore(&jobs, 1, 1_000).unwrap_err();
    assert!(started > 0);
    let most = tierce_analysis::TIME_MAX_NS;
    let long: Vec<_> = (0..15).map(|id| job(id, (0, most / 2), (1, most), most, 0)).collect();
    assert!(explore(&long[..2], 3, MANY).is_ok());
    assert_eq!(explore(&[&long[..], &long[..]].concat(), 1, MANY), Err(TooLarge { started: 0 }));
    assert_eq!(on(&[], 2).done_ns, []);
}

/// One row per refusal: text, and line, column and rule of all its faults.
#[test]
fn refusals() {
    let header = "Task ID,Job ID,Release min,Release max,Cost min,Cost max,Deadline,Priority";
    for (rows, faults) in [
        ("", &[(1, 1, "table_needs_tasks")][..]),
        ("1,1,0,0,1,2,3", &[(2, 1, "lines_are_as_long_as_the_header")]),
        ("1,1,0,0,1,2,3,4\n1,1,0,0,1,2,3,4", &[(3, 3, "names_are_unique")]),
        (
            "a,1,0,0,1,2x,3,-4",
            &[(2, 1, "number_must_be_whole"), (2, 11, "unit_must_exist"), (2, 16, "number_must_be_whole")],
        ),
        ("1,1,3,2,2,1,3,4", &[(2, 7, "range_must_not_be_empty"), (2, 11, "range_must_not_be_empty")]),
    ] {
        let found = parse(&format!("{header}\n{rows}")).unwrap_err();
        let found: Vec<_> = found.iter().map(|fault| (fault.line, fault.column, fault.rule)).collect();
        assert_eq!(found, faults, "{rows}");
    }
    let found = parse("Task ID,Job ID,Deadline\n1,1,1").unwrap_err();
    assert_eq!(found[0].rule, "job_set_has_its_columns");
    assert!(
        !is_job_set("name,work,period")
            && !is_job_set("")
            && parse(&format!("{header}\n1,1,1us,2us,1ns,1ms,1s,0")).is_ok()
    );
}
