//! Global scheduling: worked sets, refusals, and what is shown against schedules played slot by slot.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::global::{self, Test, Verdict};
use tierce_analysis::{Mpr, Task};

fn responses(verdict: &Verdict) -> Vec<u64> {
    verdict.tasks.iter().map(|shown| shown.response_ns.unwrap_or(0)).collect()
}

fn edf(tasks: &[Task], cpus: u32) -> Verdict {
    global::earliest_deadline(tasks, cpus).unwrap()
}

/// The first has the highest priority.
fn fixed(tasks: &[Task], cpus: u32) -> Verdict {
    let levels: Vec<_> = (0..tasks.len() as u32).collect();
    global::fixed_priority(tasks, &levels, cpus).unwrap()
}

fn constrained(work_ns: u64, deadline_ns: u64, period_ns: u64) -> Task {
    Task { deadline_ns, ..Task::new(work_ns, period_ns) }
}

/// The example at the head of the file.
#[test]
fn a_heavy_task_beside_light_ones() {
    let tasks = [Task::new(9, 10), Task::new(1, 10), Task::new(1, 10), Task::new(1, 10)];
    let found = edf(&tasks, 2);
    assert_eq!(responses(&found), [10, 3, 3, 3]);
    assert!(found.schedulable && found.tasks.iter().all(|shown| shown.by.ends_with(&[Test::Bcl, Test::Rta])));
    // GFB is met with equality by 9/10 and two of 1/10, and by any number of light tasks.
    assert!(edf(&tasks[..3], 2).tasks[0].by.contains(&Test::Gfb));
    let light = vec![Task::new(1, 10); 20];
    assert!(edf(&light[..19], 2).tasks[18].by.contains(&Test::Gfb));
    assert!(!edf(&light, 2).tasks[19].by.contains(&Test::Gfb));
}

/// The density shows what no test of single tasks does; then there is no response but the deadline.
#[test]
fn only_the_density() {
    let tasks =
        [Task::new(6, 12), constrained(4, 18, 20), Task::new(2, 4), Task::new(5, 20), Task::new(2, 4)];
    let found = edf(&tasks, 3);
    assert!(found.schedulable && found.tasks[0].by == [Test::Gfb]);
    assert_eq!(responses(&found), [12, 12, 2, 15, 2]);
}

/// Dhall's effect: little work that is due, or ranks, before one long job makes it late on any number of CPUs.
#[test]
fn dhall() {
    let tasks = [constrained(1, 10, 10), constrained(1, 10, 10), Task::new(11, 11)];
    for found in [edf(&tasks, 2), fixed(&tasks, 2)] {
        assert!(!found.schedulable);
    }
    assert_eq!(responses(&edf(&tasks, 2)), [0, 0, 0]);
    assert_eq!(responses(&fixed(&tasks, 2)), [1, 1, 0]);
    let order = global::audsley(&tasks, 2).unwrap().unwrap();
    assert_eq!(order[0], 2);
    assert_eq!(global::d_minus_kc(&tasks, 2)[0], 2);
    assert_eq!(global::d_minus_kc(&tasks, 1)[0], 0);
    let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    assert_eq!(responses(&fixed(&ordered, 2)), [11, 1, 2]);
    let overloaded = |tasks: &[Task], cpus| global::overloaded(tasks, &Mpr::whole(cpus).unwrap().rate());
    assert!(!overloaded(&tasks, 2) && overloaded(&tasks, 1) && overloaded(&[constrained(3, 2, 5)], 4));
}

/// Less than a CPU for each is no interference; jitter counts once; equal priorities hold each other up.
#[test]
fn few_tasks_jitter_and_equals() {
    let late = Task { jitter_ns: 3, ..Task::new(5, 10) };
    for found in [edf(&[late, late, late], 3), fixed(&[late, late, late], 3)] {
        assert_eq!(responses(&found), [8, 8, 8]);
    }
    // Both ready at 0, 2 late, and at 2, in time: the last runs at 1 and 3.
    let jittery = Task { jitter_ns: 2, ..Task::new(1, 4) };
    assert_eq!(responses(&fixed(&[jittery, jittery, Task::new(2, 20)], 2)), [3, 3, 4]);
    assert_eq!(responses(&fixed(&[Task::new(4, 10), Task::new(4, 10), Task::new(2, 10)], 2)), [4, 4, 6]);
    let tasks = [Task::new(2, 10); 3];
    assert_eq!(responses(&fixed(&tasks, 2)), [2, 2, 4]);
    let equal = global::fixed_priority(&tasks, &[0, 0, 0], 2).unwrap();
    assert_eq!(responses(&equal), [6, 6, 6]);
    assert!(edf(&[], 2).schedulable && fixed(&[], 2).schedulable);
}

/// Only one of the tasks above can bring work into the window of the last: RTA, which lets all do so, does not show it.
#[test]
fn limited_carry_in() {
    let tasks = [Task::new(1, 8), Task::new(2, 12), constrained(6, 11, 20)];
    let tasks = [&tasks[..], &[Task::new(3, 10), Task::new(6, 20), Task::new(5, 20)]].concat();
    let found = fixed(&tasks, 2);
    assert_eq!(responses(&found), [1, 2, 7, 6, 15, 20]);
    assert_eq!(found.tasks[5].by, [Test::RtaLc]);
    // Who shares a priority has an earlier job that may occupy that CPU.
    let levels = [0, 1, 2, 3, 4, 4];
    let equal = global::fixed_priority(&tasks, &levels, 2).unwrap();
    assert!(!equal.schedulable && equal.tasks[4].by.is_empty());
}

#[test]
fn refusals() {
    let none = [
        global::earliest_deadline(&[], 0).unwrap_err(),
        global::fixed_priority(&[], &[], 0).unwrap_err(),
        global::audsley(&[], 0).unwrap_err(),
    ];
    assert_eq!(none.map(|found| found.rule), ["cpus_are_at_least_one"; 3]);
    let long = Task { deadline_ns: 11, ..Task::new(1, 10) };
    let blocked = Task { blocking_ns: 1, ..Task::new(1, 10) };
    let tasks = |bad| [Task::new(1, 10), bad];
    for (bad, rule) in [
        (long, "deadlines_are_at_most_periods"),
        (blocked, "tasks_are_not_blocked"),
        (Task::new(0, 10), "times_are_in_range"),
        (Task::new(1, u64::MAX), "times_are_in_range"),
    ] {
        for found in [
            global::earliest_deadline(&tasks(bad), 2).unwrap_err(),
            global::fixed_priority(&tasks(bad), &[0, 1], 2).unwrap_err(),
            global::audsley(&tasks(bad), 2).unwrap_err(),
        ] {
            assert_eq!((found.task, found.rule), (1, rule));
        }
    }
}

/// The largest numbers: nothing overflows.
#[test]
fn large_times() {
    let most = tierce_analysis::TIME_MAX_NS;
    let short = constrained(most, 1, 1 << 59);
    let tasks = [Task::new(1, 1), Task::new(most, most), Task { jitter_ns: most, ..Task::new(1, most) }];
    let tasks = [tasks[0], tasks[1], tasks[2], Task { period_ns: 1, deadline_ns: 1, ..short }];
    for cpus in [1, 2, 1024] {
        assert!(!edf(&tasks, cpus).schedulable && !fixed(&tasks, cpus).schedulable);
        assert!(!global::fixed_priority(&tasks, &[0; 4], cpus).unwrap().schedulable);
        assert_eq!(global::audsley(&tasks, cpus).unwrap(), None);
        assert_eq!(edf(&tasks[..2], cpus).schedulable, cpus > 1);
        for (budget, period) in [(1, most), (most, most), (1, 1)] {
            let supply = Mpr::new(budget, period, cpus).unwrap();
            assert!(!global::earliest_deadline_in(&tasks, &supply).unwrap().schedulable);
            assert!(supply.supply(u64::MAX) > 0 && supply.time_for(u128::MAX) == u64::MAX);
        }
    }
}

struct Job {
    ready: u64,
    release: u64,
    task: usize,
    left: u64,
}

fn set(draw: &mut Draw, cpus: u32) -> Vec<Task> {
    const PERIODS: [u64; 8] = [4, 5, 6, 8, 10, 12, 15, 20];
    let light = 2 + draw.below(5) as u64;
    (0..cpus as usize + 1 + draw.below(5))
        .map(|_| {
            let period_ns = PERIODS[draw.below(8)];
            let work_ns = 1 + draw.below((period_ns / light).max(1) as usize) as u64;
            let deadline_ns = match draw.below(2) {
                0 => period_ns,
                _ => work_ns + draw.below((period_ns - work_ns + 1) as usize) as u64,
            };
            let room = (deadline_ns - work_ns) as usize;
            let jitter_ns = if draw.below(3) == 0 { draw.below(room + 1) as u64 } else { 0 };
            Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 }
        })
        .collect()
}

/// Random phases, jitter, works, gaps longer than the period.
fn jobs(draw: &mut Draw, tasks: &[Task], slots: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let mut release = draw.below(task.period_ns as usize) as u64;
        let (gaps, less) = (draw.below(3) == 0, draw.below(4) == 0);
        while release < slots {
            let late = [0, task.jitter_ns, draw.below(task.jitter_ns as usize + 1) as u64][draw.below(3)];
            let left = if less { 1 + draw.below(task.work_ns as usize) as u64 } else { task.work_ns };
            jobs.push(Job { ready: release + late, release, task: index, left });
            release += task.period_ns + if gaps { draw.below(3) as u64 } else { 0 };
        }
    }
    jobs.sort_by_key(|job| job.ready);
    jobs
}

/// The longest response of each task; `cpus` are there in a slot, ranks decide, the smallest first.
fn play<K: Ord>(
    tasks: &[Task],
    jobs: Vec<Job>,
    slots: u64,
    cpus: impl Fn(u64) -> usize,
    rank: impl Fn(&Job) -> K,
) -> Vec<u64> {
    let mut longest = vec![0; tasks.len()];
    let (mut coming, mut ready) = (jobs.into_iter().peekable(), Vec::<Job>::new());
    for slot in 0..slots {
        while let Some(job) = coming.next_if(|job| job.ready <= slot) {
            ready.push(job);
        }
        ready.sort_by_key(|job| (rank(job), job.release));
        let mut running = Vec::new();
        for job in &mut ready {
            if running.len() < cpus(slot) && !running.contains(&job.task) {
                running.push(job.task);
                job.left -= 1;
                if job.left == 0 {
                    longest[job.task] = longest[job.task].max(slot + 1 - job.release);
                }
            }
        }
        ready.retain(|job| job.left > 0);
    }
    longest
}

/// The longest response of each task in four plays.
fn longest(draw: &mut Draw, tasks: &[Task], cpus: u32, by_deadline: bool) -> Vec<u64> {
    const SLOTS: u64 = 240;
    let mut longest = vec![0; tasks.len()];
    for _ in 0..4 {
        let jobs = jobs(draw, tasks, SLOTS);
        let ties = draw.below(tasks.len());
        let rank = |job: &Job| match by_deadline {
            true => (job.release + tasks[job.task].deadline_ns, (job.task + ties) % tasks.len()),
            false => (0, job.task),
        };
        keep_longest(&mut longest, &play(tasks, jobs, SLOTS, |_| cpus as usize, rank));
    }
    longest
}

fn keep_longest(longest: &mut [u64], played: &[u64]) {
    longest.iter_mut().zip(played).for_each(|(longest, played)| *longest = *played.max(longest));
}

/// Nothing that is shown is contradicted, and every test shows something that no other does.
#[test]
fn what_is_shown_holds() {
    let mut draw = Draw::new(21);
    let mut shown = [[0; 2]; 2]; // by policy: sets refused, accepted
    let mut only = std::collections::BTreeMap::<Vec<Test>, u32>::new();
    let mut seen = [Seen::default(); 3];
    for round in 0..rounds(4_000) {
        let cpus = 2 + draw.below(2) as u32;
        let tasks = set(&mut draw, cpus);
        let by_deadline = round % 2 == 0;
        let found = if by_deadline { edf(&tasks, cpus) } else { fixed(&tasks, cpus) };
        shown[usize::from(by_deadline)][usize::from(found.schedulable)] += 1;
        for task in &found.tasks {
            *only.entry(task.by.clone()).or_default() += 1;
        }
        if found.tasks.iter().all(|shown| shown.response_ns.is_none()) {
            continue;
        }
        let longest = longest(&mut draw, &tasks, cpus, by_deadline);
        for ((longest, shown), task) in longest.iter().zip(&found.tasks).zip(&tasks) {
            let Some(bound) = shown.response_ns else { continue };
            assert!(bound <= task.deadline_ns);
            let kind = match (by_deadline, shown.by.contains(&Test::Rta)) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => 2,
            };
            seen[kind].add(*longest, bound, || format!("{tasks:?} on {cpus}, {:?}", shown.by));
        }
    }
    println!("refused, accepted: fixed priorities {:?}, EDF {:?}", shown[0], shown[1]);
    println!("{only:?}");
    for (seen, name) in seen.iter().zip([
        "global fixed priorities",
        "global EDF, response by `rta`",
        "global EDF, only other tests, of the deadline",
    ]) {
        assert!(seen.print(name).equal() > 10, "{name}");
    }
    assert!(shown.iter().flatten().all(|count| *count > 300), "{shown:?}");
    for (expected, least) in [(Test::Baruah, 100), (Test::Rta, 100), (Test::FfDbf, 10)] {
        assert!(only.get(&vec![expected]).is_some_and(|count| *count > least), "{expected:?}: {only:?}");
    }
    let dominated = |by: &Vec<Test>| by.contains(&Test::Bcl) && !by.contains(&Test::Rta);
    assert!(!only.keys().any(dominated)); // RTA shows what BCL does
}

/// Audsley's choice is shown by the response times, and is found where deadline monotonic is not enough.
#[test]
fn an_order_of_priorities() {
    let mut draw = Draw::new(22);
    let (mut found, mut better) = (0, 0);
    for _ in 0..2_000 {
        let tasks = set(&mut draw, 2);
        let ordered = |order: &[usize]| order.iter().map(|index| tasks[*index]).collect::<Vec<_>>();
        let Some(order) = global::audsley(&tasks, 2).unwrap() else { continue };
        assert!(fixed(&ordered(&order), 2).schedulable, "{order:?} of {tasks:?}");
        found += 1;
        let monotonic = tierce_analysis::priorities::deadline_monotonic(&tasks);
        better += u32::from(!fixed(&ordered(&monotonic), 2).schedulable);
    }
    println!("{found} orders found, {better} of them where deadline monotonic is not shown to hold");
    assert!(found > 200 && better > 20);
}

/// The least of all windows, each with its budgets outside where that is possible.
fn least_supply(budget: u64, period: u64, cpus: u64, window: u64) -> u64 {
    let from = |start: u64| -> u64 {
        (0..(start + window).div_ceil(period))
            .map(|number| {
                let inside = |slot: &u64| (start..start + window).contains(slot);
                let outside = (number * period..(number + 1) * period).filter(|slot| !inside(slot)).count();
                budget.saturating_sub(cpus * outside as u64)
            })
            .sum()
    };
    (0..period).map(from).min().unwrap()
}

#[test]
fn supply_of_several_cpus() {
    let supply = Mpr::new(6, 5, 2).unwrap();
    let given: Vec<_> = (0..12).map(|window| supply.supply(window)).collect();
    assert_eq!(given, [0, 0, 0, 0, 0, 2, 4, 6, 6, 6, 8, 10]);
    for (period, cpus) in [(1, 1), (4, 2), (5, 2), (5, 3), (6, 4)] {
        for budget in 1..=period * cpus {
            let supply = Mpr::new(budget, period, cpus as u32).unwrap();
            for window in 0..5 * period {
                let (least, found) =
                    (least_supply(budget, period, cpus, window), supply.supply(window) as u64);
                let rounded = if budget % cpus == 0 { 0 } else { cpus - 1 };
                assert!(found <= least && least <= found + rounded, "{supply:?}: {window}");
            }
            for work in 0..4 * budget {
                let time = supply.time_for(work.into());
                assert!(
                    supply.supply(time) >= work.into()
                        && (time == 0 || supply.supply(time - 1) < work.into())
                );
            }
        }
    }
    assert_eq!(Mpr::new(0, 5, 2), None);
    assert_eq!(Mpr::new(11, 5, 2), None);
    assert_eq!(Mpr::new(1, u64::MAX, 2), None);
    assert_eq!(Mpr::whole(0), None);
}

/// Why work is cut and compared as it is.
#[test]
fn three_within_two() {
    let tasks = [constrained(1, 2, 100), constrained(2, 2, 100)];
    let in_one = |tasks: &[Task]| global::earliest_deadline_in(tasks, &Mpr::whole(1).unwrap()).unwrap();
    assert!(!in_one(&tasks).schedulable && in_one(&tasks[1..]).schedulable);
    assert!(in_one(&[constrained(1, 3, 100), tasks[1]]).schedulable);
    let long = Task { deadline_ns: 11, ..Task::new(1, 10) };
    let refused = global::earliest_deadline_in(&[long], &Mpr::whole(2).unwrap()).unwrap_err();
    assert_eq!(refused.rule, "deadlines_are_at_most_periods");
}

/// How many CPUs are there in each slot: budgets early at first and then late, or anywhere in their periods.
fn supplied(draw: &mut Draw, [budget, period, cpus]: [u64; 3], slots: u64, worst: bool) -> Vec<usize> {
    let mut pattern = vec![0; slots as usize];
    for (number, slots) in pattern.chunks_mut(period as usize).enumerate() {
        let mut left = budget;
        let order = if worst { usize::from(number > 0) } else { draw.below(3) };
        while left > 0 {
            let open: Vec<_> = (0..slots.len()).filter(|slot| slots[*slot] < cpus as usize).collect();
            let Some(last) = open.len().checked_sub(1) else { break };
            slots[open[[0, last, draw.below(last + 1)][order]]] += 1;
            left -= 1;
        }
    }
    pattern
}

/// Budgets anywhere in their periods, up to all CPUs at once: no accepted set is late.
#[test]
fn what_is_shown_inside_a_supply_holds() {
    const SLOTS: u64 = 240;
    let mut draw = Draw::new(23);
    let (mut accepted, mut refused, mut missed, mut seen) = (0, 0, 0, Seen::default());
    while accepted < rounds(300) {
        let cpus = 2 + draw.below(2) as u64;
        let tasks = set(&mut draw, cpus as u32);
        let period = 2 + draw.below(5) as u64;
        let budget = cpus * period - draw.below((cpus * period / 2) as usize) as u64;
        let found =
            global::earliest_deadline_in(&tasks, &Mpr::new(budget, period, cpus as u32).unwrap()).unwrap();
        let mut longest = vec![0; tasks.len()];
        for round in 0..4 {
            let pattern = supplied(&mut draw, [budget, period, cpus], SLOTS + 2 * period, round == 0);
            let first = if round == 0 { (budget / cpus) as usize } else { draw.below(period as usize) };
            let mut jobs = jobs(&mut draw, &tasks, SLOTS);
            if round == 0 {
                // All at once, as the supply ends.
                let phases: Vec<_> = (0..tasks.len())
                    .map(|task| jobs.iter().find(|job| job.task == task).map_or(0, |job| job.release))
                    .collect();
                jobs.iter_mut().for_each(|job| {
                    job.release -= phases[job.task];
                    job.ready -= phases[job.task];
                });
                jobs.sort_by_key(|job| job.ready);
            }
            let played = play(
                &tasks,
                jobs,
                SLOTS,
                |slot| pattern[first + slot as usize],
                |job| (job.release + tasks[job.task].deadline_ns, job.task),
            );
            keep_longest(&mut longest, &played);
        }
        let late = longest.iter().zip(&tasks).any(|(longest, task)| *longest > task.deadline_ns);
        if found.schedulable {
            for (longest, task) in longest.iter().zip(&tasks) {
                seen.add(*longest, task.deadline_ns, || format!("{tasks:?} in {budget}/{period} on {cpus}"));
            }
            accepted += 1;
        } else {
            refused += 1;
            missed += u32::from(late);
        }
    }
    println!("{accepted} accepted, {refused} refused, {missed} of these seen late");
    seen.print("global EDF inside a supply, of the deadline");
}

/// The condition at the head of `mpr.rs`, with D − J for D.
fn condition(tasks: &[Task], own: usize, supply: &Mpr, window: u64) -> bool {
    let room = |task: &Task| task.deadline_ns - task.jitter_ns;
    let cost = tasks[own].work_ns;
    let (mut sum, mut more) = (u128::from(supply.cpus()) * u128::from(cost - 1), Vec::new());
    for (at, task) in tasks.iter().enumerate() {
        let jobs = (window + task.period_ns - room(task)) / task.period_ns;
        let (due, cut) = match at == own {
            true => ((jobs - 1) * task.work_ns, window - room(task)),
            false => (jobs * task.work_ns, window - cost + 1),
        };
        let carried = task.work_ns.min(window.saturating_sub(jobs * task.period_ns));
        sum += u128::from(due.min(cut));
        more.push((due + carried).min(cut) - due.min(cut));
    }
    more.sort_unstable_by(|a, b| b.cmp(a));
    sum += more.iter().take(supply.cpus() as usize - 1).map(|more| u128::from(*more)).sum::<u128>();
    sum < supply.supply(window)
}

/// Not every window is looked at, and yet it is as if it were.
#[test]
fn the_condition_in_every_window() {
    const WINDOWS: u64 = 1_500;
    let mut draw = Draw::new(29);
    let (mut sets, mut shown, mut refused) = (0, 0, 0);
    while sets < 400 {
        let cpus = 1 + draw.below(3) as u64;
        let tasks = set(&mut draw, cpus as u32);
        let period = 1 + draw.below(5) as u64;
        let budget = cpus * period - draw.below((cpus * period).div_ceil(2) as usize) as u64;
        let supply = Mpr::new(budget, period, cpus as u32).unwrap();
        let load: u64 = tasks.iter().map(|task| task.work_ns * 1_000 / task.period_ns + 1).sum();
        if load + 150 > budget * 1_000 / period {
            continue; // there might be no room for it even in longer windows
        }
        sets += 1;
        let verdict = global::earliest_deadline_in(&tasks, &supply).unwrap();
        for (own, task) in tasks.iter().enumerate() {
            let least = task.deadline_ns - task.jitter_ns;
            let holds = (least..WINDOWS).all(|window| condition(&tasks, own, &supply, window));
            assert_eq!(!verdict.tasks[own].by.is_empty(), holds, "{tasks:?}, task {own}, {supply:?}");
            *(if holds { &mut shown } else { &mut refused }) += 1;
        }
    }
    println!("{shown} tasks shown, {refused} not");
    assert!(shown > 300 && refused > 300, "{shown}, {refused}");
}
