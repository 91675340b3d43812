//! Suspension on several CPUs: worked sets, the condition of `la` from its definition, and what is shown against schedules played slot
//! by slot.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::global::{self, Test, Verdict};
use tierce_analysis::{global_suspension as suspending, suspension, tardiness, Task};

fn responses(verdict: &Verdict) -> Vec<u64> {
    verdict.tasks.iter().map(|shown| shown.response_ns.unwrap_or(0)).collect()
}

/// The example at the head of the file.
#[test]
fn only_the_own_suspension_is_added() {
    let tasks = [Task::new(2, 10), Task::new(2, 10), Task::new(4, 10)];
    let found = suspending::earliest_deadline(&tasks, &[6, 6, 0], 2).unwrap();
    assert_eq!(responses(&found), [10, 10, 6]);
    assert!(found.tasks.iter().all(|shown| shown.by.contains(&Test::Rta)));
    let working = suspension::as_work(&tasks, &[6, 6, 0]);
    assert!(!global::earliest_deadline(&working, 2).unwrap().schedulable);
    let fixed = suspending::fixed_priority(&tasks, &[6, 6, 0], &[0, 1, 2], 2).unwrap();
    // There two jobs of each of the others may come close together.
    assert_eq!(responses(&fixed), [8, 8, 8]);
    // No room: nothing is shown, whatever the others are.
    let found = suspending::earliest_deadline(&tasks, &[9, 0, 0], 2).unwrap();
    assert!(!found.schedulable && found.tasks.iter().all(|shown| shown.by.is_empty()));
}

/// The largest numbers: nothing overflows.
#[test]
fn large_times() {
    let most = tierce_analysis::TIME_MAX_NS;
    let tasks = [Task::new(1, most), Task::new(most / 2, most), Task { jitter_ns: 1, ..Task::new(1, most) }];
    for cpus in [1, 2, 1024] {
        for suspended in [[most - 1, most / 2, most - 2], [0, most / 2, most], [u64::MAX; 3]] {
            let edf = suspending::earliest_deadline(&tasks, &suspended, cpus).unwrap();
            let fixed = suspending::fixed_priority(&tasks, &suspended, &[0, 1, 2], cpus).unwrap();
            assert_eq!([edf.schedulable, fixed.schedulable], [cpus > 2 && suspended[2] == most - 2; 2]);
        }
    }
}

/// Without suspension nothing is shown that the other tests do not show, and LA is Baruah's test.
#[test]
fn without_suspension_nothing_is_new() {
    let mut draw = Draw::new(61);
    let mut by_baruah = 0;
    for _ in 0..2_000 {
        let cpus = 2 + draw.below(3) as u32;
        let (tasks, _) = set(&mut draw, cpus);
        let none = vec![0; tasks.len()];
        let (old, new) = (
            global::earliest_deadline(&tasks, cpus).unwrap(),
            suspending::earliest_deadline(&tasks, &none, cpus).unwrap(),
        );
        assert_eq!((old.schedulable, responses(&old)), (new.schedulable, responses(&new)), "{tasks:?}");
        for (old, new) in old.tasks.iter().zip(&new.tasks) {
            // Where `gfb` or `ff-dbf` alone shows the set, that is all that is said.
            let shown = [Test::La, Test::Baruah].iter().any(|test| new.by.contains(test));
            assert_eq!(old.by.contains(&Test::Baruah), shown, "{tasks:?}");
            by_baruah += u32::from(new.by.contains(&Test::La));
        }
        let levels: Vec<_> = (0..tasks.len() as u32).map(|at| at / 2).collect();
        let old = global::fixed_priority(&tasks, &levels, cpus).unwrap();
        assert_eq!(old, suspending::fixed_priority(&tasks, &none, &levels, cpus).unwrap(), "{tasks:?}");
    }
    assert!(by_baruah > 1_000, "{by_baruah}");
}

/// Tasks, and for how long they suspend themselves at most.
fn set(draw: &mut Draw, cpus: u32) -> (Vec<Task>, Vec<u64>) {
    const PERIODS: [u64; 8] = [4, 5, 6, 8, 10, 12, 15, 20];
    let light = 2 + draw.below(5) as u64;
    let count = cpus as usize + 1 + draw.below(4);
    let task = |_| {
        let period_ns = PERIODS[draw.below(8)];
        let work_ns = 1 + draw.below((period_ns / light).max(1) as usize) as u64;
        let suspended =
            if draw.below(2) == 0 { draw.below((period_ns - work_ns + 1) as usize) as u64 / 2 } else { 0 };
        let own = work_ns + suspended;
        let less = draw.below((period_ns - own + 1) as usize) as u64;
        let deadline_ns = period_ns - if draw.below(2) == 0 { 0 } else { less };
        let room = (deadline_ns - own) as usize;
        let jitter_ns = if draw.below(4) == 0 { draw.below(room + 1) as u64 } else { 0 };
        (Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns: 0 }, suspended)
    };
    (0..count).map(task).collect::<Vec<_>>().into_iter().unzip()
}

/// The condition of `la` for one task and window, D − J for D: works that are counted as such in `tasks`, and suspensions that are
/// not. All tasks with such bring work in, if `all_carry`, and m − 1 of the others; else m − 1 of all.
fn condition(
    (tasks, suspensions): (&[Task], &[u64]),
    own: usize,
    cpus: u64,
    window: u64,
    all_carry: bool,
) -> bool {
    let room = |task: &Task| task.deadline_ns - task.jitter_ns;
    let held_up = window - (tasks[own].work_ns + suspensions[own]) + 1;
    let (mut sum, mut more) = (0, Vec::new());
    for (at, task) in tasks.iter().enumerate() {
        let jobs = (window + task.period_ns - room(task)) / task.period_ns;
        let (due, cut) = match at == own {
            true => ((jobs - 1) * task.work_ns, window - room(task)),
            false => (jobs * task.work_ns, held_up),
        };
        let carried = (due + task.work_ns.min(window.saturating_sub(jobs * task.period_ns))).min(cut);
        if suspensions[at] > 0 && all_carry {
            sum += carried;
        } else {
            sum += due.min(cut);
            more.push(carried - due.min(cut));
        }
    }
    more.sort_unstable_by(|a, b| b.cmp(a));
    sum + more.iter().take(cpus as usize - 1).sum::<u64>() < cpus * held_up
}

/// In all windows, for some choice of suspensions that count as work: all but those of the tasks with the largest S/C.
fn by_definition(tasks: &[Task], suspensions: &[u64], own: usize, cpus: u64, all_carry: bool) -> bool {
    const WINDOWS: u64 = 1_500;
    let least = tasks[own].deadline_ns - tasks[own].jitter_ns;
    let mut order: Vec<_> = (0..tasks.len()).collect();
    // Works are at most 10 here.
    order.sort_by_key(|index| std::cmp::Reverse(suspensions[*index] * 2_520 / tasks[*index].work_ns));
    (0..=tasks.len()).any(|apart| {
        let (mut working, mut left) = (suspensions.to_vec(), vec![0; tasks.len()]);
        for index in &order[..apart] {
            (working[*index], left[*index]) = (0, suspensions[*index]);
        }
        let tasks = suspension::as_work(tasks, &working);
        (least..WINDOWS).all(|window| condition((&tasks, &left), own, cpus, window, all_carry))
    })
}

/// Not every window is looked at, and yet it is as if it were.
#[test]
fn the_condition_in_every_window() {
    let mut draw = Draw::new(63);
    let (mut sets, mut shown, mut refused) = (0, 0, 0);
    while sets < 300 {
        let cpus = 2 + draw.below(2) as u64;
        let (tasks, suspensions) = set(&mut draw, cpus as u32);
        let load = |task: &Task| task.work_ns * 1_000 / task.period_ns + 1;
        if tasks.iter().map(load).sum::<u64>() + 150 > cpus * 1_000 {
            continue; // there might be no room for it even in longer windows
        }
        sets += 1;
        let verdict = suspending::earliest_deadline(&tasks, &suspensions, cpus as u32).unwrap();
        let as_work = global::earliest_deadline(&suspension::as_work(&tasks, &suspensions), cpus as u32);
        if as_work.unwrap().schedulable && !verdict.tasks[0].by.contains(&Test::La) {
            continue; // it is shown as work alone, and then that is all that is said
        }
        for (own, task) in verdict.tasks.iter().enumerate() {
            let holds = by_definition(&tasks, &suspensions, own, cpus, true);
            assert_eq!(task.by.contains(&Test::La), holds, "{tasks:?} {suspensions:?}, task {own} on {cpus}");
            *(if holds { &mut shown } else { &mut refused }) += 1;
        }
    }
    println!("{shown} tasks shown, {refused} not");
    assert!(shown > 300 && refused > 100, "{shown}, {refused}");
}

#[derive(Clone)]
struct Job {
    ready: u64,
    release: u64,
    task: usize,
    /// Before each slot of work, for so long.
    suspended: Vec<u64>,
    done: usize,
    left: u64,
}

impl Job {
    fn new(task: usize, release: u64, ready: u64, suspended: Vec<u64>) -> Self {
        let left = suspended[0];
        Self { ready, release, task, suspended, done: 0, left }
    }
}

/// Random or common phases, jitter, works, gaps and suspensions; a task may suspend itself in some jobs alone.
fn jobs(draw: &mut Draw, tasks: &[Task], suspensions: &[u64], slots: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    let together = draw.below(4) == 0;
    for (index, task) in tasks.iter().enumerate() {
        let mut release = if together { 20 } else { draw.below(task.period_ns as usize) as u64 };
        let (gaps, less, how) = (draw.below(3) == 0, draw.below(4) == 0, draw.below(5));
        while release < slots {
            let late = [0, task.jitter_ns, draw.below(task.jitter_ns as usize + 1) as u64][draw.below(3)];
            let work = if less { 1 + draw.below(task.work_ns as usize) } else { task.work_ns as usize };
            let mut suspended = vec![0; work];
            match how {
                0 => suspended[0] = suspensions[index],
                1 => suspended[work - 1] = suspensions[index],
                2 => (0..suspensions[index]).for_each(|_| suspended[draw.below(work)] += 1),
                3 => suspended[0] = suspensions[index] * draw.below(2) as u64,
                _ => suspended[draw.below(work)] = draw.below(suspensions[index] as usize + 1) as u64,
            }
            jobs.push(Job::new(index, release, release + late, suspended));
            release += task.period_ns + if gaps { draw.below(3) as u64 } else { 0 };
        }
    }
    jobs
}

/// The longest response of each task, of jobs that are not done that until the last slot; ranks decide, the smallest first. Jobs of a
/// task keep their order.
fn play<K: Ord>(
    tasks: usize,
    mut jobs: Vec<Job>,
    slots: u64,
    cpus: usize,
    rank: impl Fn(&Job) -> K,
) -> Vec<u64> {
    let mut longest = vec![0; tasks];
    jobs.sort_by_key(|job| job.ready);
    let (mut coming, mut ready) = (jobs.into_iter().peekable(), Vec::<Job>::new());
    for slot in 0..slots {
        while let Some(job) = coming.next_if(|job| job.ready <= slot) {
            ready.push(job);
        }
        ready.sort_by_key(|job| (rank(job), job.release));
        let mut begun = 0u64; // tasks whose first job was seen: jobs of a task come in their order
        let mut running = 0;
        for job in &mut ready {
            if begun >> job.task & 1 == 1 {
                continue;
            }
            begun |= 1 << job.task;
            if job.left > 0 {
                job.left -= 1;
            } else if running < cpus {
                running += 1;
                job.done += 1;
                match job.suspended.get(job.done) {
                    Some(next) => job.left = *next,
                    None => longest[job.task] = longest[job.task].max(slot + 1 - job.release),
                }
            }
        }
        ready.retain(|job| job.done < job.suspended.len());
    }
    for job in ready {
        longest[job.task] = longest[job.task].max(slots - job.release);
    }
    longest
}

fn keep_longest(longest: &mut [u64], played: &[u64]) {
    longest.iter_mut().zip(played).for_each(|(longest, played)| *longest = *played.max(longest));
}

/// The longest response of each task in some plays by earliest deadline, or by levels.
fn longest(
    draw: &mut Draw,
    (tasks, suspensions): (&[Task], &[u64]),
    cpus: u32,
    levels: Option<&[u32]>,
    plays: u32,
) -> Vec<u64> {
    const SLOTS: u64 = 240;
    let mut longest = vec![0; tasks.len()];
    for _ in 0..plays {
        let jobs = jobs(draw, tasks, suspensions, SLOTS);
        let ties = draw.below(tasks.len());
        let rank = |job: &Job| {
            let due = job.release + tasks[job.task].deadline_ns;
            (levels.map_or(due, |levels| levels[job.task].into()), (job.task + ties) % tasks.len())
        };
        keep_longest(&mut longest, &play(tasks.len(), jobs, SLOTS, cpus as usize, rank));
    }
    longest
}

fn is_late(longest: &[u64], tasks: &[Task]) -> bool {
    longest.iter().zip(tasks).any(|(longest, task)| *longest > task.deadline_ns)
}

/// By levels or by earliest deadline: what is shown, and what is shown of suspension as work.
fn verdicts(
    tasks: &[Task],
    suspensions: &[u64],
    working: &[Task],
    levels: Option<&[u32]>,
    cpus: u32,
) -> (Verdict, Verdict) {
    let both = match levels {
        None => (
            suspending::earliest_deadline(tasks, suspensions, cpus),
            global::earliest_deadline(working, cpus),
        ),
        Some(levels) => (
            suspending::fixed_priority(tasks, suspensions, levels, cpus),
            global::fixed_priority(working, levels, cpus),
        ),
    };
    (both.0.unwrap(), both.1.unwrap())
}

/// Nothing that is shown is contradicted, and the tests show sets that all tests of [`global`] refuse, with suspension as work.
#[test]
fn what_is_shown_holds() {
    let mut draw = Draw::new(62);
    let rounds = rounds(4_000);
    let (mut accepted, mut as_work) = ([0; 2], [0; 2]); // by policy
    let mut only = std::collections::BTreeMap::<Vec<Test>, u64>::new();
    let (mut seen, mut late, mut refused_late) = ([Seen::default(); 4], Seen::default(), 0);
    for round in 0..rounds {
        let cpus = 2 + draw.below(3) as u32;
        let (tasks, suspensions) = set(&mut draw, cpus);
        let levels: Vec<_> =
            (0..tasks.len() as u32).map(|at| if round % 8 == 1 { at / 2 } else { at }).collect();
        let levels = (round % 2 == 1).then_some(&levels[..]);
        let working = suspension::as_work(&tasks, &suspensions);
        let (found, worked) = verdicts(&tasks, &suspensions, &working, levels, cpus);
        let by_deadline = levels.is_none();
        accepted[usize::from(by_deadline)] += u64::from(found.schedulable);
        as_work[usize::from(by_deadline)] += u64::from(worked.schedulable);
        assert!(found.schedulable || !worked.schedulable);
        let more = found.schedulable && !worked.schedulable;
        if by_deadline && more {
            let all = |test: &Test| found.tasks.iter().all(|task| task.by.contains(test));
            *only.entry([Test::La, Test::Rta].into_iter().filter(all).collect()).or_default() += 1;
        }
        // What the new tests alone show is attacked more.
        let longest = longest(&mut draw, (&tasks, &suspensions), cpus, levels, if more { 16 } else { 4 });
        refused_late += u64::from(!found.schedulable && is_late(&longest, &tasks));
        let overdue = if by_deadline { tardiness(&working, cpus) } else { vec![None; tasks.len()] };
        for (index, longest) in longest.iter().enumerate() {
            let what = || format!("task {index} of {tasks:?} {suspensions:?} {levels:?} on {cpus}");
            let deadline = tasks[index].deadline_ns;
            if let Some(overdue) = overdue[index].filter(|_| *longest > deadline) {
                late.add(longest - deadline, overdue, what);
            }
            let Some(bound) = found.tasks[index].response_ns else { continue };
            assert!(bound <= deadline);
            let kind = match (by_deadline, more) {
                (false, _) => 0,
                (true, _) if found.tasks[index].by.contains(&Test::Rta) => 1,
                (true, true) => 2,
                (true, false) => 3,
            };
            seen[kind].add(*longest, bound, what);
        }
    }
    println!("priorities, EDF: {accepted:?} of {rounds} accepted, {as_work:?} as work; late of those refused: {refused_late}");
    println!("EDF, not as work, all tasks by: {only:?}");
    for (seen, name) in seen.iter().zip([
        "suspension, global fixed priorities",
        "suspension, global EDF, response by `rta`",
        "suspension, global EDF, `la` alone, of the deadline",
        "suspension, global EDF, as work, of the deadline",
    ]) {
        assert!(seen.print(name).near() > rounds / 1_000, "{name}");
    }
    assert!(late.print("suspension, global EDF, tardiness").all() > rounds / 100);
    assert!(
        (0..2).all(|policy| accepted[policy] > as_work[policy] + rounds / 100),
        "{accepted:?} {as_work:?}"
    );
    assert!(only.keys().any(|by| by == &[Test::La]) && only.keys().any(|by| by == &[Test::Rta]), "{only:?}");
}

/// Which tasks bring work in matters: with m − 1 of all, as where nobody suspends itself, sets would be accepted that are late.
#[test]
fn all_that_suspend_themselves_bring_work_in() {
    let mut draw = Draw::new(64);
    let (mut wrong, mut late) = (0, 0);
    for _ in 0..6_000 {
        let (tasks, suspensions) = tight(&mut draw);
        let load = |task: &Task| task.work_ns * 1_000 / task.period_ns + 1;
        let all = |all_carry: bool| {
            (0..tasks.len()).all(|own| by_definition(&tasks, &suspensions, own, 2, all_carry))
        };
        if tasks.iter().map(load).sum::<u64>() + 50 > 2_000 || !all(false) || all(true) {
            continue;
        }
        wrong += 1;
        late += u32::from(is_late(&longest(&mut draw, (&tasks, &suspensions), 2, None, 60), &tasks));
    }
    println!("{wrong} sets accepted wrongly, {late} of these seen late");
    assert!(late > 0, "{wrong}");
}

/// Three tasks or four for two CPUs, near the limit, suspended for long.
fn tight(draw: &mut Draw) -> (Vec<Task>, Vec<u64>) {
    let count = 3 + draw.below(2);
    let task = |_| {
        let period_ns = 4 + draw.below(9) as u64;
        let work_ns = 1 + draw.below(period_ns as usize / 2) as u64;
        let suspended = draw.below((period_ns - work_ns + 1) as usize) as u64;
        let less = draw.below((period_ns - work_ns - suspended + 1) as usize) as u64;
        (Task { deadline_ns: period_ns - less, ..Task::new(work_ns, period_ns) }, suspended)
    };
    (0..count).map(task).collect::<Vec<_>>().into_iter().unzip()
}

/// All phases, all places of the whole suspension, all orders of ties, for periodic releases: accepted sets meet all deadlines.
#[test]
fn all_phases_of_small_sets() {
    let mut draw = Draw::new(65);
    let (mut accepted, mut refused, mut met, mut seen) = (0, 0, 0, Seen::default());
    while accepted < 40 || refused < 40 {
        let (mut tasks, mut suspensions) = tight(&mut draw);
        tasks.truncate(3);
        suspensions.truncate(3);
        let short = tasks.iter().all(|task| task.period_ns <= 7 && task.work_ns <= 3);
        let work: u64 = suspension::as_work(&tasks, &suspensions).iter().map(|task| task.work_ns).sum();
        if !short || suspensions.iter().filter(|length| **length > 0).count() < 2 || work < 8 {
            continue;
        }
        let found = suspending::earliest_deadline(&tasks, &suspensions, 2).unwrap();
        let counted = if found.schedulable { &mut accepted } else { &mut refused };
        if *counted == 40 {
            continue;
        }
        *counted += 1;
        let longest = all_plays(&tasks, &suspensions);
        met += u32::from(!found.schedulable && !is_late(&longest, &tasks));
        for (index, longest) in longest.iter().enumerate() {
            let Some(bound) = found.tasks[index].response_ns else { continue };
            seen.add(*longest, bound, || format!("task {index} of {tasks:?} {suspensions:?}"));
        }
    }
    println!("{met} of {refused} refused sets were never late");
    assert!(seen.print("suspension, all phases of three tasks").equal() > 5);
}

/// The longest responses in all plays of three tasks on two CPUs.
fn all_plays(tasks: &[Task], suspensions: &[u64]) -> Vec<u64> {
    const SLOTS: u64 = 90;
    let mut longest = vec![0; 3];
    let mut choices = vec![vec![]];
    // The first one's phase may be 0: the others have all of theirs.
    for (index, task) in tasks.iter().enumerate() {
        let phases = if index == 0 { 1 } else { task.period_ns };
        let places = if suspensions[index] == 0 { 1 } else { task.work_ns };
        let each = (0..phases).flat_map(|phase| (0..places).map(move |place| (phase, place as usize)));
        let each: Vec<_> = each.collect();
        choices = choices
            .into_iter()
            .flat_map(|begun: Vec<(u64, usize)>| {
                each.iter().map(move |one| [&begun[..], &[*one]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    for choice in choices {
        let mut jobs = Vec::new();
        for (index, (phase, place)) in choice.iter().enumerate() {
            let mut suspended = vec![0; tasks[index].work_ns as usize];
            suspended[*place] = suspensions[index];
            let releases =
                (0..).map(|job| phase + job * tasks[index].period_ns).take_while(|at| *at < SLOTS - 10);
            jobs.extend(releases.map(|at| Job::new(index, at, at, suspended.clone())));
        }
        for ties in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
            let rank = |job: &Job| (job.release + tasks[job.task].deadline_ns, ties[job.task]);
            keep_longest(&mut longest, &play(3, jobs.clone(), SLOTS, 2, rank));
        }
    }
    longest
}
