//! Worked numbers of others about one CPU. Where a source counts a response from when the job is ready, its jitter is added here.

use tierce_analysis::offsets::{self, Order};
use tierce_analysis::requests::Requests;
use tierce_analysis::sections;
use tierce_analysis::{fifo, thresholds, Demand, Edf, FixedPriority, Response, Sections, Supply, Task};

fn due(work_ns: u64, deadline_ns: u64, period_ns: u64) -> Task {
    Task { deadline_ns, ..Task::new(work_ns, period_ns) }
}

fn set(list: &[(u64, u64)]) -> Vec<Task> {
    list.iter().map(|(work, period)| Task::new(*work, *period)).collect()
}

fn ns(responses: &[Response]) -> Vec<Option<u64>> {
    responses.iter().map(|response| response.ns()).collect()
}

/// The first has the highest priority.
fn fixed(tasks: &[Task]) -> Vec<Option<u64>> {
    ns(FixedPriority::new().responses(tasks, &Supply::WHOLE))
}

fn edf(tasks: &[Task]) -> Vec<Option<u64>> {
    ns(Edf::new().responses(tasks, &Supply::WHOLE))
}

fn some(list: &[u64]) -> Vec<Option<u64>> {
    list.iter().map(|ns| Some(*ns)).collect()
}

/// Joseph & Pandya, "Finding response times in a real-time system", The Computer Journal 29(5), 1986: examples 1 and 2. In example 2 they
/// say when the first job is done; the last three take longer than their periods, so for these only the others come again here.
#[test]
fn joseph_and_pandya() {
    let tasks = [due(1, 10, 10), due(2, 12, 12), due(20, 30, 600), due(8, 40, 30)];
    assert_eq!(fixed(&tasks), some(&[1, 3, 29, 40]));
    let tasks = set(&[(40, 100), (60, 140), (80, 500), (10, 1000), (1, 1000)]);
    for (count, expected) in (1..).zip([40, 100, 560, 2490, 6991]) {
        let mut first = tasks[..count].to_vec();
        first[count - 1].period_ns = 1_000_000;
        assert_eq!(fixed(&first)[count - 1], Some(expected));
    }
    assert_eq!(fixed(&tasks)[..2], some(&[40, 100]));
    assert!(!FixedPriority::new().schedulable(&tasks, &Supply::WHOLE));
}

/// Audsley, Burns, Richardson, Tindell & Wellings, "Applying new scheduling theory to static priority pre-emptive scheduling", Software
/// Engineering Journal 8(5), 1993, Table 3, in us: work, period, deadline, blocking, jitter, response.
#[test]
fn audsley_and_others() {
    let table = [
        (51, 1_000, 1_000, 0, 0, 51),
        (3_000, 2_000_000, 5_000, 300, 0, 3_504),
        (2_000, 25_000, 25_000, 600, 0, 5_906),
        (5_000, 25_000, 25_000, 900, 0, 11_512),
        (1_000, 40_000, 40_000, 1_350, 0, 13_064),
        (3_000, 50_000, 50_000, 1_350, 0, 16_217),
        (5_000, 50_000, 50_000, 750, 0, 20_821),
        (8_000, 59_000, 59_000, 750, 0, 36_637),
        (9_000, 80_000, 80_000, 1_350, 0, 47_798),
        (2_000, 80_000, 80_000, 450, 0, 48_949),
        (5_000, 100_000, 100_000, 1_050, 0, 99_150),
        (1_000, 200_000, 200_000, 450, 1_000, 99_550),
        (3_000, 200_000, 200_000, 450, 0, 140_641),
        (1_000, 200_000, 200_000, 450, 0, 141_692),
        (1_000, 200_000, 200_000, 1_350, 0, 143_694),
        (3_000, 1_000_000, 1_000_000, 0, 0, 145_446),
        (1_000, 1_000_000, 1_000_000, 0, 0, 146_497),
        (1_000, 1_000_000, 1_000_000, 0, 0, 147_548),
    ];
    let tasks = table.map(|(work_ns, period_ns, deadline_ns, blocking_ns, jitter_ns, _)| Task {
        work_ns,
        period_ns,
        deadline_ns,
        jitter_ns,
        blocking_ns,
    });
    assert_eq!(fixed(&tasks), table.map(|(.., jitter, response)| Some(response + jitter)));
}

/// Lehoczky, "Fixed priority scheduling of periodic task sets with arbitrary deadlines", RTSS 1990, Example 2: one order for each of
/// two deadlines.
#[test]
fn lehoczky() {
    assert_eq!(fixed(&set(&[(52, 100), (52, 140)])), some(&[52, 156]));
    assert_eq!(fixed(&set(&[(52, 140), (52, 100)])), some(&[52, 108]));
}

/// Buttazzo, "Hard real-time computing systems", third edition, exercise 4.3; SchedCAT's `tests/fp.py`; Prosa's `fp_rta_example.v`, whose
/// second and third have equal priorities, and the same with jitter, where it is the first two.
#[test]
fn plain_sets() {
    assert_eq!(fixed(&set(&[(1, 4), (2, 6), (3, 10)])), some(&[1, 3, 10]));
    assert_eq!(fixed(&set(&[(1, 4), (1, 5), (3, 9), (3, 18)])), some(&[1, 2, 7, 18]));
    let by_level = |tasks: &[Task], levels: &[u32]| {
        ns(FixedPriority::new().responses_by_level(tasks, levels, &Supply::WHOLE))
    };
    assert_eq!(by_level(&set(&[(1, 4), (1, 6), (1, 6)]), &[0, 1, 1]), some(&[1, 3, 3]));
    let late = |task| Task { jitter_ns: 1, ..task };
    let tasks = [late(due(1, 6, 5)), due(1, 6, 5), late(due(1, 6, 6))];
    assert_eq!(by_level(&tasks, &[0, 0, 1]), some(&[2 + 1, 2, 3 + 1]));
}

/// Spuri, "Analysis of deadline scheduled real-time systems", INRIA report 2772, 1996: the set that pyCPA's `examples/edf_example.py` takes
/// from there. That has no numbers; these are the longest of all phases.
#[test]
fn spuri() {
    let tasks = [due(1, 4, 4), due(2, 9, 6), due(2, 6, 8), due(2, 12, 16)];
    let mut longest = [0u64; 4];
    for phase in 0..6 * 8 * 16 {
        let phases = [0, phase % 6, phase / 6 % 8, phase / 48];
        let found = offsets::responses(&tasks, &phases, Order::EarliestDeadline);
        for (longest, found) in longest.iter_mut().zip(found) {
            *longest = found.ns().unwrap().max(*longest);
        }
    }
    assert_eq!(edf(&tasks), longest.map(Some));
    assert_eq!(longest, [2, 7, 4, 10]);
}

/// The tests of the crate response-time-analysis 0.3, `edf/tests.rs`.
#[test]
fn edf_of_response_time_analysis() {
    let tasks = [due(79, 50, 120), due(11, 100, 34), due(1, 120, 190)];
    assert_eq!(edf(&tasks), some(&[79, 101, 121]));
    let tasks = [due(1, 5, 5), due(100, 1000, 1000), due(2, 10, 10), due(5, 45, 20), due(10, 50, 50)];
    assert_eq!(edf(&tasks), some(&[1, 694, 3, 22, 27]));
}

/// SchedCAT's `tests/edf.py`, for QPA (Zhang & Burns 2009).
#[test]
fn demand_of_schedcat() {
    let mut tasks = vec![
        due(6000, 18000, 31000),
        due(2000, 9000, 9800),
        due(1000, 12000, 17000),
        due(90, 3000, 4200),
        due(8, 78, 96),
        due(2, 16, 12),
        due(10, 120, 280),
        due(26, 160, 660),
    ];
    assert_eq!(Edf::new().demand(&tasks, &Supply::WHOLE), Demand::Met);
    tasks.push(due(10, 15, 100));
    assert!(!Edf::new().schedulable(&tasks, &Supply::WHOLE));
}

/// The same crate's `fifo/tests.rs`; one bound for all there, the longest here.
#[test]
fn first_in_first_out() {
    let found = |list: &[(u64, u64)]| ns(&fifo::responses(&set(list), &Supply::WHOLE));
    assert_eq!(found(&[(79, 120), (11, 34), (1, 190)]), some(&[91; 3]));
    assert_eq!(found(&[(2, 4), (2, 8), (4, 12)]), [None; 3]);
}

fn regions(list: &[(u64, u64)]) -> Vec<Sections> {
    list.iter().map(|(longest_ns, last_ns)| Sections { longest_ns: *longest_ns, last_ns: *last_ns }).collect()
}

fn by_regions(tasks: &[Task], list: &[(u64, u64)]) -> Vec<Option<u64>> {
    let levels: Vec<_> = (0..tasks.len() as u32).collect();
    ns(&sections::fixed_priority(tasks, &regions(list), &levels, &Supply::WHOLE))
}

/// Without preemption: Buttazzo, exercises 8.1 and 8.2 with their solutions, and the crate's `fixed_priority/tests.rs`. In the solution of 8.2
/// the second task takes 7, because there its work counts as 2; in the exercise, and in all other steps, it is 3.
#[test]
fn whole_jobs() {
    let whole = |tasks: &[Task]| {
        let all: Vec<_> = tasks.iter().map(|task| (task.work_ns, task.work_ns)).collect();
        by_regions(tasks, &all)
    };
    assert_eq!(whole(&[due(2, 5, 6), due(2, 6, 8), due(4, 12, 15)])[..2], some(&[5, 7]));
    let tasks = [due(3, 6, 8), due(3, 8, 9), due(3, 12, 14), due(2, 80, 80)];
    assert_eq!(whole(&tasks)[..3], some(&[5, 8, 11]));
    assert_eq!(whole(&set(&[(20, 70), (20, 80), (35, 200)])), some(&[54, 74, 75]));
    assert_eq!(whole(&set(&[(10, 20), (20, 50), (30, 200)])), [Some(39), Some(79), None]);
}

/// Regions: the same tests. Buttazzo's exercise 8.5: its first task takes 13, with 7 + 1 of a region below it.
#[test]
fn parts_of_jobs() {
    let tasks = set(&[(4, 12), (6, 20), (8, 40)]);
    assert_eq!(by_regions(&tasks, &[(2, 2), (3, 3), (4, 3)]), some(&[7, 13, 22]));
    assert_eq!(by_regions(&tasks, &[(2, 0), (3, 0), (4, 0)]), some(&[7, 17, 32]));
    let tasks = set(&[(6, 24), (10, 40), (18, 120), (15, 150)]);
    assert_eq!(by_regions(&tasks, &[(3, 0), (4, 4), (8, 5), (6, 6)])[0], Some(13));
    let by_deadline = |deadlines: [u64; 3], list: &[(u64, u64)]| {
        let of = |(deadline, (work, period)): (u64, (u64, u64))| due(work, deadline, period);
        let tasks: Vec<_> = deadlines.into_iter().zip([(4, 12), (6, 20), (8, 40)]).map(of).collect();
        ns(&sections::earliest_deadline(&tasks, &regions(list), &Supply::WHOLE).1)
    };
    assert_eq!(by_deadline([25, 30, 40], &[(2, 0), (3, 0), (4, 0)]), some(&[8, 13, 22]));
    assert_eq!(by_deadline([24, 35, 40], &[(2, 2), (3, 3), (4, 4)]), some(&[7, 17, 22]));
}

/// The same tests, earliest deadline without preemption.
#[test]
fn whole_jobs_by_deadline() {
    let whole = |list: &[(u64, u64, u64)]| {
        let tasks: Vec<_> =
            list.iter().map(|(work, deadline, period)| due(*work, *deadline, *period)).collect();
        let all: Vec<_> = tasks.iter().map(|task| (task.work_ns, task.work_ns)).collect();
        ns(&sections::earliest_deadline(&tasks, &regions(&all), &Supply::WHOLE).1)
    };
    assert_eq!(whole(&[(79, 100, 120), (11, 100, 34), (1, 100, 190)]), some(&[91; 3]));
    assert_eq!(whole(&[(79, 50, 120), (11, 100, 34), (1, 120, 190)]), some(&[89, 90, 121]));
    assert_eq!(whole(&[(5, 29, 20), (10, 30, 20)]), some(&[14, 15]));
}

/// Buttazzo, Tables 8.1 and 8.2 with Figure 8.8: with full preemption the third misses its deadline, in the figure none does with thresholds 3, 3, 2
/// for priorities 3, 2, 1. That is one schedule: by equations 8.10 and 8.13 the second waits for 5 of the third and twice for the first, and takes 10.
#[test]
fn preemption_thresholds() {
    let tasks = [due(1, 4, 6), due(3, 8, 10), due(6, 12, 18)];
    assert_eq!(fixed(&tasks), some(&[1, 4, 15]));
    let found = thresholds::fixed_priority(&tasks, &[0, 1, 2], &[0, 0, 1], &Supply::WHOLE);
    assert_eq!(ns(&found), some(&[3, 10, 11]));
}

/// What so many jobs request: `wcet/tests.rs` of the crate, a task of three frames (Mok & Chen, RTSS 1996).
#[test]
fn frames() {
    let requests = Requests::new(&[3, 2, 1], &[10]).unwrap();
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|jobs| requests.work_ns(jobs)), [0, 3, 5, 6, 9, 11, 12]);
}
