//! Worked numbers of others about several CPUs, chains and criticalities.

use tierce_analysis::chains::{by_fixed_priority, Placed, Release};
use tierce_analysis::criticality::{audsley, responses, schedulable, Mixed, Scheme};
use tierce_analysis::global::{self, Test, Verdict};
use tierce_analysis::{pfair, tardiness, zero_laxity, Edf, Mpr, Supply, Task};

fn due(work_ns: u64, deadline_ns: u64, period_ns: u64) -> Task {
    Task { deadline_ns, ..Task::new(work_ns, period_ns) }
}

fn late(jitter_ns: u64, task: Task) -> Task {
    Task { jitter_ns, ..task }
}

fn edf(tasks: &[Task], cpus: u32) -> Verdict {
    global::earliest_deadline(tasks, cpus).unwrap()
}

/// The first has the highest priority.
fn fixed(tasks: &[Task], cpus: u32) -> Vec<Option<u64>> {
    let levels: Vec<_> = (0..tasks.len() as u32).collect();
    let verdict = global::fixed_priority(tasks, &levels, cpus).unwrap();
    verdict.tasks.iter().map(|shown| shown.response_ns).collect()
}

fn shown_by(verdict: &Verdict, test: Test) -> Vec<bool> {
    verdict.tasks.iter().map(|shown| shown.by.contains(&test)).collect()
}

/// Bertogna, Cirinei & Lipari, ECRTS 2005, section 3.3: GFB accepts it (Baker's test, which is not here, does not). The same, IEEE TPDS 20(4),
/// 2009, Example 1: GFB does not accept it, BCL does.
#[test]
fn densities_and_interference() {
    let verdict = edf(&[due(49, 100, 100), due(49, 100, 100), due(2, 50, 100)], 2);
    assert_eq!(shown_by(&verdict, Test::Gfb), [true; 3]);
    let verdict = edf(&[Task::new(20, 30), Task::new(20, 30), Task::new(5, 30)], 2);
    assert_eq!(shown_by(&verdict, Test::Gfb), [false; 3]);
    assert_eq!(shown_by(&verdict, Test::Bcl), [true; 3]);
}

/// Prosa's `bertogna_edf_example.v` and `bertogna_fp_example.v`, with and without jitter, on two CPUs: all accepted; the responses by
/// fixed priorities are 2, 4, 5 from when a job is ready.
#[test]
fn responses_of_prosa() {
    let tasks = [due(2, 3, 5), due(4, 5, 6), due(3, 11, 12)];
    assert_eq!(shown_by(&edf(&tasks, 2), Test::Rta), [true; 3]);
    assert_eq!(fixed(&tasks, 2), [Some(2), Some(4), Some(5)]);
    let with_jitter = [late(1, tasks[0]), tasks[1], late(2, due(2, 11, 12))];
    assert_eq!(shown_by(&edf(&with_jitter, 2), Test::Rta), [true; 3]);
    let with_jitter = [tasks[0], late(1, tasks[1]), late(2, tasks[2])];
    assert_eq!(fixed(&with_jitter, 2), [Some(2), Some(4 + 1), Some(5 + 2)]);
}

/// SchedCAT's `tests/fp.py`, `MultiprocessorRTA` (Guan et al. 2009).
#[test]
fn responses_of_schedcat() {
    let tasks = [(1, 4), (1, 5), (3, 9), (9, 18)].map(|(work, period)| Task::new(work, period));
    assert_eq!(fixed(&tasks, 2), [1, 1, 4, 15].map(Some));
    assert_eq!(fixed(&tasks, 3), [1, 1, 3, 12].map(Some));
    assert_eq!(fixed(&tasks, 1)[3], None);
}

/// The pages and tests of RealTimeScheduling.jl: Devi & Anderson give 2, 2, 2; then 3, 3, 5 on two CPUs and 2⅔, 2⅔, 4⅔ on three, the compliant
/// vector 3, 3, 4 and 2⅔, 2⅔, 4. The smaller one of each counts here. Times are three times as long. On three CPUs the compliant vector of
/// deadlines that are all earlier by one time, which that program does not try, is smaller.
#[test]
fn tardiness_of_real_time_scheduling() {
    let thirds = |list: [(u64, u64); 3]| list.map(|(work, period)| Task::new(3 * work, 3 * period));
    assert_eq!(tardiness(&thirds([(2, 3); 3]), 2), [Some(6); 3]);
    let tasks = thirds([(2, 3), (2, 3), (4, 6)]);
    assert_eq!(tardiness(&tasks, 2), [9, 9, 12].map(Some));
    assert_eq!(tardiness(&tasks, 3), [5, 5, 9].map(Some));
}

/// SchedCAT's `tests/apa.py`, `CEqualDHeuristic`: three tasks of 66 in 100 on two CPUs, one of them as 34 and 32; beside them no CPU has room for
/// another of 31. The most that a first part can have beside other sets.
#[test]
fn first_parts_of_schedcat() {
    let mut tasks = vec![Task::new(66, 100); 3];
    let parts = zero_laxity::assign(&tasks, 2).unwrap().unwrap();
    let works: Vec<_> = parts.iter().map(|part| (part.cpu, part.as_task.work_ns)).collect();
    assert_eq!(works, [(0, 66), (1, 66), (0, 34), (1, 32)]);
    tasks.push(Task::new(31, 100));
    assert_eq!(zero_laxity::assign(&tasks, 2), Ok(Err(3)));
    let most = |others: &[Task], work: u64, period: u64| {
        let fits = |part: &u64| {
            let tasks = [others, &[due(*part, *part, period)]].concat();
            Edf::new().schedulable(&tasks, &Supply::WHOLE)
        };
        (1..=work).take_while(fits).last()
    };
    assert_eq!(most(&[Task::new(66, 100)], 66, 100), Some(34));
    assert_eq!(most(&[Task::new(14, 40), Task::new(16, 48)], 6, 16), Some(5));
    assert_eq!(most(&[due(1, 11, 16), Task::new(6, 15), Task::new(9, 20)], 6, 12), Some(1));
    assert_eq!(most(&[Task::new(10, 100), Task::new(30, 100)], 21, 30), Some(16));
}

/// SchedCAT's `tests/pfair.py`: full CPUs. With a deadline of 50 for the second there is more work than two CPUs have.
#[test]
fn pfair_of_schedcat() {
    let mut tasks = [Task::new(80, 100), Task::new(33, 66), Task::new(7, 10)];
    assert!(pfair::pd2(&tasks, 2, 1).unwrap().schedulable);
    assert!(!pfair::pd2(&tasks, 1, 1).unwrap().schedulable);
    tasks[1].deadline_ns = 50;
    assert!(!pfair::pd2(&tasks, 2, 1).unwrap().schedulable);
}

/// The tests of the crate eva-engine for the multiprocessor periodic resource (Easwaran, Shin & Lee 2009) accept this set. Here it is not
/// accepted, and rightly: the resource may give all of its 75 by the middle of its first period, on both CPUs at once, and as late as it can in the
/// next, so for 25 of a window of 50 there is no CPU, and the third needs 30 of it.
#[test]
fn periodic_resource_of_eva() {
    let tasks = [due(35, 90, 160), due(70, 115, 160), due(30, 50, 75)];
    let supply = Mpr::new(75, 50, 2).unwrap();
    assert_eq!(supply.supply(50), 2 * 25);
    let verdict = global::earliest_deadline_in(&tasks, &supply).unwrap();
    assert!(!verdict.schedulable && verdict.tasks[2].by.is_empty());
}

fn mixed(hi: bool, work: u64, work_hi_ns: u64, deadline: u64, period: u64) -> Mixed {
    Mixed { task: due(work, deadline, period), hi, work_hi_ns }
}

/// The tests of AMC's reproduction in Python (Xingchuan000 on GitHub; Baruah, Burns & Davis, RTSS 2011), deadline monotonic: AMC-rtb
/// accepts the first set, SMC does not; of the others it accepts what SMC does.
#[test]
fn adaptive_mixed_criticality() {
    let found = |tasks: &[Mixed], scheme| {
        let levels: Vec<_> = (0..tasks.len() as u32).collect();
        schedulable(tasks, &responses(tasks, &levels, scheme).unwrap())
    };
    let tasks = [mixed(false, 2, 2, 5, 5), mixed(true, 1, 4, 7, 7), mixed(true, 2, 4, 25, 30)];
    assert!(found(&tasks, Scheme::Amc) && !found(&tasks, Scheme::Smc));
    assert!(audsley(&tasks, Scheme::Amc).unwrap().is_some());
    for tasks in [
        vec![mixed(false, 1, 1, 5, 5), mixed(true, 2, 3, 10, 10)],
        vec![mixed(false, 1, 2, 4, 4), mixed(true, 2, 3, 8, 8), mixed(true, 2, 4, 12, 12)],
        vec![mixed(false, 1, 1, 3, 3), mixed(true, 1, 2, 6, 6), mixed(true, 2, 4, 14, 15)],
    ] {
        assert!(found(&tasks, Scheme::Amc) || !found(&tasks, Scheme::Smc));
    }
}

/// A task that works for exactly that long.
fn step(work: u64, period: u64, cpu: usize, level: u32, release: Release) -> Placed {
    Placed { task: Task::new(work, period), least_work_ns: work, cpu, level, release }
}

fn own(sporadic: bool) -> Release {
    Release::Own { jitter_ns: 0, sporadic }
}

fn after(task: usize) -> Release {
    Release::After(vec![(task, 0)])
}

fn done(tasks: &[Placed]) -> Vec<u64> {
    by_fixed_priority(tasks).iter().map(|times| times.done.most_ns).collect()
}

/// The example named after Palencia in the tests of gdpa (J. M. Rivas, github.com/rivasjm), compared with MAST there: two flows over two CPUs and a
/// network take 42 and 30 by holistic analysis, with least works of 0.
#[test]
fn flows_of_palencia() {
    let tasks = |sporadic| {
        let mut tasks = vec![
            step(5, 30, 0, 0, own(sporadic)),
            step(2, 30, 2, 1, after(0)),
            step(20, 30, 1, 1, after(1)),
            step(5, 40, 1, 0, own(sporadic)),
            step(10, 40, 2, 0, after(3)),
            step(10, 40, 0, 1, after(4)),
        ];
        tasks.iter_mut().for_each(|task| task.least_work_ns = 0);
        tasks
    };
    let found = done(&tasks(true));
    assert_eq!((found[2], found[5]), (42, 30));
    assert_eq!(done(&tasks(false)), found, "offsets change nothing where least works are 0");
}

/// Palencia & González Harbour, RTSS 1998, as pyCPA's `examples/spp_offset_test.py` has it, which has no numbers. With offsets each step takes what it
/// would take alone with those above it: 20 + 2·4, 25, 15 + 5, 34 and 30 + 2·4, since the chain does not meet itself; and the last 100 + 5·5
/// + 15. By jitter alone the chain takes 338.
#[test]
fn offsets_of_palencia() {
    let tasks = |sporadic| {
        [
            step(4, 20, 0, 0, own(sporadic)),
            step(20, 150, 0, 1, own(sporadic)),
            step(25, 150, 2, 0, after(1)),
            step(15, 150, 1, 1, after(2)),
            step(34, 150, 2, 0, after(3)),
            step(30, 150, 0, 1, after(4)),
            step(5, 30, 1, 0, own(sporadic)),
            step(100, 200, 1, 2, own(sporadic)),
        ]
    };
    assert_eq!(done(&tasks(false)), [4, 28, 53, 73, 107, 145, 5, 140]);
    assert_eq!(done(&tasks(true))[5], 338);
}
