//! Two criticalities: worked sets, and verdicts against schedules played slot by slot, with changes of mode.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::criticality::{audsley, responses, schedulable, virtual_deadlines, Mixed, Scheme};
use tierce_analysis::Task;
use tierce_guarantee::ratio;

fn lo(work: u64, period: u64) -> Mixed {
    Mixed { task: Task::new(work, period), hi: false, work_hi_ns: work }
}

fn hi(work: u64, work_hi_ns: u64, period: u64) -> Mixed {
    Mixed { task: Task::new(work, period), hi: true, work_hi_ns }
}

fn found(tasks: &[Mixed], scheme: Scheme) -> Vec<(Option<u64>, Option<u64>)> {
    let levels: Vec<_> = (0..tasks.len() as u32).collect();
    let found = responses(tasks, &levels, scheme).unwrap();
    found.iter().map(|found| (found.usual_ns, found.worst_ns)).collect()
}

/// By hand: with AMC the last task gets 20 + 25·1 until it is done in the usual case, 50 = 20 + 25·1 + 5·1, and at the worst 90 = 20 +
/// 25·1 + 9·5. If `lo` jobs are released for ever, all is full with 1/2 + 5/10 and nothing is left for it.
#[test]
fn what_each_scheme_gives() {
    let tasks = [lo(1, 2), hi(1, 5, 10), hi(20, 20, 100)];
    assert_eq!(found(&tasks, Scheme::Amc), [(Some(1), None), (Some(2), Some(6)), (Some(50), Some(90))]);
    assert_eq!(found(&tasks, Scheme::Smc), [(Some(1), None), (Some(2), Some(10)), (Some(50), None)]);
    let longer = [Mixed { work_hi_ns: 2, ..lo(1, 2) }, tasks[1], tasks[2]];
    assert_eq!(found(&longer, Scheme::Smc), found(&tasks, Scheme::Smc));
    assert_eq!(found(&longer, Scheme::Vestal), [(Some(1), None), (Some(2), None), (Some(50), None)]);
    for (scheme, order) in [(Scheme::Amc, Some(vec![0, 1, 2])), (Scheme::Smc, None), (Scheme::Vestal, None)] {
        assert_eq!(audsley(&tasks, scheme).unwrap(), order, "{scheme:?}");
    }
    // Criticality is no priority: here the `lo` task has to come first, and there the `hi` one.
    assert_eq!(audsley(&[hi(2, 4, 20), lo(1, 2)], Scheme::Amc).unwrap(), Some(vec![1, 0]));
    let tight = Mixed { task: Task { deadline_ns: 4, ..Task::new(2, 20) }, ..hi(2, 4, 20) };
    assert_eq!(audsley(&[lo(1, 4), tight], Scheme::Vestal).unwrap(), Some(vec![1, 0]));
    // Equal priorities wait for each other.
    let equal = responses(&[lo(1, 5), lo(2, 5)], &[3, 3], Scheme::Amc).unwrap();
    assert_eq!((equal[0].usual_ns, equal[1].usual_ns), (Some(3), Some(3)));
}

/// The examples at the head of the module.
#[test]
fn virtual_deadlines_of_edf() {
    assert_eq!(virtual_deadlines(&[lo(2, 5), hi(2, 5, 10)]), Ok(Some(ratio(1, 1))));
    assert_eq!(virtual_deadlines(&[lo(3, 5), hi(2, 5, 10)]), Ok(Some(ratio(1, 2))));
    assert_eq!(virtual_deadlines(&[lo(3, 5), hi(2, 8, 10)]), Ok(None)); // 1/2·3/5 + 4/5
    assert_eq!(virtual_deadlines(&[lo(5, 5), hi(2, 8, 10)]), Ok(None));
    assert_eq!(virtual_deadlines(&[]), Ok(Some(ratio(1, 1))));
}

#[test]
fn refusals() {
    let short = Mixed { task: Task { deadline_ns: 4, ..Task::new(1, 5) }, ..lo(1, 5) };
    for (bad, rule) in [
        (
            Mixed { task: Task { deadline_ns: 6, ..Task::new(1, 5) }, ..lo(1, 5) },
            "deadlines_are_at_most_periods",
        ),
        (Mixed { task: Task { jitter_ns: 1, ..Task::new(1, 5) }, ..lo(1, 5) }, "tasks_have_no_jitter"),
        (Mixed { task: Task { blocking_ns: 1, ..Task::new(1, 5) }, ..lo(1, 5) }, "tasks_are_not_blocked"),
        (hi(2, 1, 5), "work_hi_is_at_least_work"),
        (lo(0, 5), "times_are_in_range"),
        (hi(1, u64::MAX, 5), "times_are_in_range"),
    ] {
        let tasks = [lo(1, 5), bad];
        assert_eq!(responses(&tasks, &[0, 1], Scheme::Amc), Err((1, rule)));
        assert_eq!(audsley(&tasks, Scheme::Smc), Err((1, rule)));
        assert_eq!(virtual_deadlines(&tasks), Err((1, rule)));
    }
    assert_eq!(virtual_deadlines(&[short]), Err((0, "deadlines_are_periods")));
}

#[test]
fn large_times() {
    let most = tierce_analysis::TIME_MAX_NS;
    let tasks = [lo(most / 4, most), hi(most / 4, most / 2, most), lo(1, 1)];
    for scheme in [Scheme::Vestal, Scheme::Smc, Scheme::Amc] {
        assert_eq!(found(&tasks, scheme)[1], (Some(most / 2), Some(most / 4 * 3)));
        assert_eq!(found(&tasks, scheme)[2].0, None);
    }
}

fn set(draw: &mut Draw, implicit: bool) -> Vec<Mixed> {
    const PERIODS: [u64; 8] = [3, 4, 5, 6, 8, 10, 12, 16];
    let part = 2 + draw.below(4) as u64;
    (0..2 + draw.below(4))
        .map(|_| {
            let period_ns = PERIODS[draw.below(8)];
            let work_ns = 1 + draw.below((period_ns / part).max(1) as usize) as u64;
            let work_hi_ns =
                work_ns + draw.below((period_ns - work_ns + 1) as usize).min(draw.below(6)) as u64;
            let deadline_ns = match implicit || draw.below(2) == 0 {
                true => period_ns,
                false => work_hi_ns + draw.below((period_ns - work_hi_ns + 1) as usize) as u64,
            };
            let task = Task { work_ns, period_ns, deadline_ns, jitter_ns: 0, blocking_ns: 0 };
            Mixed { task, hi: draw.below(2) == 0, work_hi_ns }
        })
        .collect()
}

#[derive(Clone)]
struct Job {
    release: u64,
    task: usize,
    work: u64,
    done: u64,
}

/// How jobs are played.
struct Rules<'r> {
    /// `lo` jobs end at their work.
    stops: bool,
    /// From the first long job on no `lo` job comes, and if true those that wait are dropped, too.
    leaves: Option<bool>,
    /// Smallest first, of the job and whether a job has been longer than usual since the CPU was idle.
    rank: &'r dyn Fn(&Job, bool) -> u64,
}

/// The longest response of each task: of jobs before the first long one since the CPU was idle, and of any.
fn play(draw: &mut Draw, tasks: &[Mixed], rules: &Rules, slots: u64) -> Vec<[u64; 2]> {
    let mut jobs = Vec::new();
    let (together, gaps) = (draw.below(3) > 0, draw.below(4) == 0);
    let long_ones = [0, 1, 3, 10][draw.below(4)];
    for (index, task) in tasks.iter().enumerate() {
        let mut release = if together { 0 } else { draw.below(task.task.period_ns as usize) as u64 };
        while release < slots {
            let worst = task.work_hi_ns - if draw.below(3) == 0 { draw.below(2) as u64 } else { 0 };
            let is_long = draw.below(10) < long_ones && (task.hi || !rules.stops);
            let work = if is_long { worst.max(1) } else { task.task.work_ns };
            jobs.push(Job { release, task: index, work, done: 0 });
            release += task.task.period_ns + if gaps { draw.below(3) as u64 } else { 0 };
        }
    }
    jobs.sort_by_key(|job| job.release);
    let (mut coming, mut ready) = (jobs.into_iter().peekable(), Vec::<Job>::new());
    let mut longest = vec![[0; 2]; tasks.len()];
    let (mut long, mut changed, mut slot) = (false, false, 0);
    while coming.peek().is_some() || !ready.is_empty() {
        while let Some(job) = coming.next_if(|job| job.release <= slot) {
            if !(long && rules.leaves.is_some() && !tasks[job.task].hi) {
                ready.push(job);
            }
        }
        if ready.is_empty() {
            long = false;
        }
        ready.sort_by_key(|job| ((rules.rank)(job, long), job.task, job.release));
        if let Some(job) = ready.first_mut() {
            job.done += 1;
            let task = &tasks[job.task];
            if job.done == job.work {
                let response = slot + 1 - job.release;
                let [usual, worst] = &mut longest[job.task];
                *worst = response.max(*worst);
                if !long && !changed {
                    *usual = response.max(*usual);
                }
                ready.remove(0);
            } else if job.done >= task.task.work_ns && !long {
                long = true;
                changed = true;
                if rules.leaves == Some(true) {
                    ready.retain(|job| tasks[job.task].hi);
                }
            }
        }
        slot += 1;
        if rules.leaves.is_some() && ready.is_empty() {
            changed = false; // all is as usual again
        }
    }
    longest
}

/// Whether a job is later than is promised of its task: usual ones, and those of `hi` tasks at any time.
fn late(tasks: &[Mixed], longest: &[[u64; 2]]) -> bool {
    let after = |(task, [usual, worst]): (&Mixed, &[u64; 2])| {
        let due = task.task.deadline_ns;
        *usual > due || task.hi && *worst > due
    };
    tasks.iter().zip(longest).any(after)
}

/// The longest of both.
fn keep_longest(longest: &mut [[u64; 2]], played: &[[u64; 2]]) {
    for (longest, played) in longest.iter_mut().zip(played) {
        *longest = [0, 1].map(|at| longest[at].max(played[at]));
    }
}

/// No job is late that is promised not to be; some sets that are not accepted are.
#[test]
fn fixed_priorities_hold() {
    let mut draw = Draw::new(61);
    for scheme in [Scheme::Vestal, Scheme::Smc, Scheme::Amc] {
        let (mut accepted, mut refused, mut seen_late) = (0, 0, 0);
        let mut seen = [Seen::default(); 2];
        for _ in 0..rounds(3_000) {
            let tasks = set(&mut draw, false);
            let order = audsley(&tasks, scheme).unwrap();
            let accepts = order.is_some();
            let order = order.unwrap_or_else(|| {
                let mut order: Vec<_> = (0..tasks.len()).collect();
                order.sort_by_key(|index| tasks[*index].task.deadline_ns);
                order
            });
            let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
            let levels: Vec<_> = (0..tasks.len() as u32).collect();
            let found = responses(&ordered, &levels, scheme).unwrap();
            assert!(!accepts || schedulable(&ordered, &found));
            let mut longest = vec![[0; 2]; ordered.len()];
            for round in 0..6 {
                let rules = Rules {
                    stops: scheme != Scheme::Vestal,
                    leaves: (scheme == Scheme::Amc).then_some(round % 2 == 0),
                    rank: &|job: &Job, _| job.task as u64,
                };
                keep_longest(&mut longest, &play(&mut draw, &ordered, &rules, 200));
            }
            if !accepts {
                refused += 1;
                seen_late += u64::from(late(&ordered, &longest));
                continue;
            }
            accepted += 1;
            assert!(!late(&ordered, &longest), "{scheme:?} {ordered:?}");
            for (longest, found) in longest.iter().zip(&found) {
                for ((seen, longest), bound) in
                    seen.iter_mut().zip(longest).zip([found.usual_ns, found.worst_ns])
                {
                    let about = || format!("{scheme:?} {ordered:?}");
                    // Where a job was seen at all.
                    if let (Some(bound), 1..) = (bound, *longest) {
                        seen.add(*longest, bound, about);
                    }
                }
            }
        }
        println!("{scheme:?}: {accepted} accepted, {refused} refused, {seen_late} of these seen late");
        let near = ["usual", "`hi`, at the worst"].map(|name| format!("{scheme:?}, {name}"));
        let near = [0, 1].map(|at| seen[at].print(&near[at]).near());
        assert!(
            accepted * 5 > rounds(3_000) && seen_late * 5 > refused && near.iter().all(|near| *near > 500)
        );
    }
}

/// The same for EDF with virtual deadlines.
#[test]
fn virtual_deadlines_hold() {
    let mut draw = Draw::new(62);
    let (mut plain, mut shortened, mut refused) = (0, 0, 0);
    let mut seen = [Seen::default(); 2];
    for _ in 0..rounds(3_000) {
        let tasks = set(&mut draw, true);
        let Some(part) = virtual_deadlines(&tasks).unwrap() else {
            refused += 1;
            continue;
        };
        let (over, under) = (u64::try_from(part.numer()).unwrap(), u64::try_from(part.denom()).unwrap());
        if over == under {
            plain += 1;
        } else {
            shortened += 1;
        }
        let due = |job: &Job, long: bool| {
            let (task, period) = (&tasks[job.task], tasks[job.task].task.period_ns);
            job.release * under + period * if task.hi && !long { over } else { under }
        };
        let mut longest = vec![[0; 2]; tasks.len()];
        for round in 0..6 {
            // Without virtual deadlines nothing needs to be dropped.
            let leaves = if over == under && round % 2 == 0 { None } else { Some(true) };
            let rules = Rules { stops: true, leaves, rank: &due };
            keep_longest(&mut longest, &play(&mut draw, &tasks, &rules, 200));
        }
        for ([usual, worst], task) in longest.into_iter().zip(&tasks) {
            let (due, about) = (task.task.deadline_ns, || format!("{part} {tasks:?}"));
            if usual > 0 {
                seen[0].add(usual, due, about);
            }
            if task.hi {
                seen[1].add(worst, due, about);
            }
        }
    }
    println!("EDF-VD: {plain} accepted as they are, {shortened} with virtual deadlines, {refused} refused");
    seen[0].print("EDF-VD, usual, of the deadline");
    seen[1].print("EDF-VD, `hi`, at the worst, of the deadline");
    assert!(plain > 100 && shortened > 50 && refused > 100);
}
