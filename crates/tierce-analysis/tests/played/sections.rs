//! Regions without preemption: worked examples, all phases of small sets, random plays.

use crate::player::{
    all_phases, critical, due, keep_longest, periodic, play, random, rounds, Draw, Job, Seen, Shape,
};
use tierce_analysis::{fifo, sections, Demand, FixedPriority, Response, Sections, Supply, Task};

const MS: u64 = 1_000_000;

fn whole(tasks: &[Task]) -> Vec<Sections> {
    tasks.iter().map(|task| Sections { longest_ns: task.work_ns, last_ns: task.work_ns }).collect()
}

fn ranks(tasks: &[Task]) -> Vec<u32> {
    (0..).take(tasks.len()).collect()
}

fn within(responses: &[u64]) -> Vec<Response> {
    responses.iter().map(|ns| Response::Within(*ns)).collect()
}

/// Davis et al. 2007, Table 1: the second of C's jobs takes 3.5 ms, the first one only 3. Times are discrete here, so the blocking is
/// less by 1 ns than what they compute for A and B: 2 and 3 ms.
#[test]
fn can_messages() {
    let tasks = [(25, 25), (35, 33), (35, 33)].map(|(period, deadline)| Task {
        deadline_ns: deadline * MS / 10,
        ..Task::new(MS, period * MS / 10)
    });
    let found = sections::fixed_priority(&tasks, &whole(&tasks), &[0, 1, 2], &Supply::WHOLE);
    assert_eq!(found, within(&[2 * MS - 1, 3 * MS - 1, 7 * MS / 2]));
}

/// The example at the head of the file, and by earliest deadline.
#[test]
fn three_tasks() {
    let tasks = [Task::new(4, 10), Task::new(4, 12), Task::new(4, 25)];
    let found = sections::fixed_priority(&tasks, &whole(&tasks), &[0, 1, 2], &Supply::WHOLE);
    assert_eq!(found, within(&[7, 11, 12]));
    let (demand, _) = sections::earliest_deadline(&tasks, &whole(&tasks), &Supply::WHOLE);
    assert_eq!(demand, Demand::Met);
    let tight = Task { deadline_ns: 6, ..tasks[0] };
    let (demand, _) = sections::earliest_deadline(&[tight, tasks[1]], &whole(&tasks[..2]), &Supply::WHOLE);
    assert_eq!(demand, Demand::Exceeds { window_ns: 6, due_ns: 7 });
}

/// A last region makes a set schedulable that is not so with full preemption, nor with none: 2 in 5 due within 4, and 4 in 7.
#[test]
fn a_last_region_helps() {
    let tasks = [Task { deadline_ns: 4, ..Task::new(2, 5) }, Task::new(4, 7)];
    let responses = |longest: u64, last: u64| {
        let of = [Sections::default(), Sections { longest_ns: longest, last_ns: last }];
        sections::fixed_priority(&tasks, &of, &[0, 1], &Supply::WHOLE)
    };
    assert_eq!(responses(0, 0), within(&[2, 8]));
    assert_eq!(responses(4, 4), within(&[5, 6]));
    assert_eq!(responses(3, 3), within(&[4, 6]));
}

/// Regions of at most 1 ns change nothing.
#[test]
fn no_regions_are_full_preemption() {
    let mut draw = Draw::new(20);
    let mut edf = tierce_analysis::Edf::new();
    for round in 0..3_000 {
        let count = 1 + draw.upto(3);
        let mut tasks: Vec<_> = (0..count).map(|_| draw.task(&[4, 5, 6, 8, 10, 12, 15, 20], true)).collect();
        tasks.iter_mut().for_each(|task| task.blocking_ns = if draw.upto(2) == 0 { draw.upto(4) } else { 0 });
        let none: Vec<_> =
            tasks.iter().map(|_| Sections { longest_ns: draw.upto(1), last_ns: draw.upto(1) }).collect();
        let supply =
            [Supply::WHOLE, Supply::periodic(3, 4).unwrap(), Supply::edp(2, 5, 3).unwrap()][round % 3];
        let levels: Vec<_> =
            [[0, 1, 2, 3], [0, 0, 1, 2], [0, 1, 1, 1]][round / 3 % 3][..tasks.len()].to_vec();
        let plain = FixedPriority::new().responses_by_level(&tasks, &levels, &supply).to_vec();
        let with = sections::fixed_priority(&tasks, &none, &levels, &supply);
        for ((plain, with), level) in plain.iter().zip(&with).zip(&levels) {
            // A level is bounded as a whole, and only what is blocked makes a full CPU unbounded.
            let alone = levels.iter().filter(|other| *other == level).count() == 1;
            assert!(
                plain == with || !alone && plain.ns().is_none(),
                "{tasks:?} {levels:?} {supply:?}: {plain:?} {with:?}"
            );
        }
        let (demand, with) = sections::earliest_deadline(&tasks, &none, &supply);
        assert_eq!(demand, edf.demand(&tasks, &supply));
        for (plain, with) in edf.responses(&tasks, &supply).iter().zip(&with) {
            assert!(plain == with || plain.ns().is_none(), "{tasks:?} {supply:?}: {plain:?} {with:?}");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Regions {
    Whole,
    Limited,
    Floating,
}

fn draw_sections(draw: &mut Draw, regions: Regions, work_ns: u64) -> Sections {
    match regions {
        Regions::Whole => Sections { longest_ns: work_ns, last_ns: work_ns },
        Regions::Floating => Sections { longest_ns: draw.upto(work_ns), last_ns: 0 },
        Regions::Limited => {
            let last_ns = draw.upto(work_ns);
            let longest_ns =
                if draw.upto(1) == 0 { last_ns } else { last_ns.max(draw.upto(work_ns - last_ns)) };
            Sections { longest_ns, last_ns }
        }
    }
}

/// A job that works for as long as it may or less, with random regions that are allowed.
fn random_shape(draw: &mut Draw, regions: Regions, task: &Task, of: &Sections) -> Shape {
    let shorter = if draw.upto(1) == 0 { draw.upto(task.work_ns - 1) } else { 0 };
    let work = task.work_ns - shorter;
    match regions {
        Regions::Whole => Shape::new(work).with_region(0, work),
        Regions::Limited => {
            // Before the last region no more than it says; that is as long as it says, or the whole of a short job.
            let last = of.last_ns.min(work);
            let mut shape = Shape::new(work).with_region(work - last, last);
            let before = work - last;
            if before > 0 && of.longest_ns > 0 {
                let length = draw.upto(of.longest_ns.min(before));
                let from = draw.upto(before - length);
                shape = shape.with_region(from, length);
            }
            shape
        }
        Regions::Floating => {
            let (mut shape, mut at) = (Shape::new(work), 0);
            while at < work {
                let length = draw.upto(of.longest_ns.min(work - at));
                shape = shape.with_region(at, length);
                at += length + 1 + draw.upto(1);
            }
            shape
        }
    }
}

/// By fixed priorities, earliest deadline and in order of arrival: the longest of all phases of small sets is what is computed.
#[test]
fn all_phases_of_small_sets() {
    let mut draw = Draw::new(21);
    let mut counts = [0; 3];
    while counts.iter().any(|count| *count < 25) {
        let tasks: Vec<_> = (0..3).map(|_| draw.task(&[3, 4, 5, 6], false)).collect();
        let regions = [Regions::Whole, Regions::Limited, Regions::Floating][draw.below(3)];
        let of: Vec<_> = tasks.iter().map(|task| draw_sections(&mut draw, regions, task.work_ns)).collect();
        let fixed = sections::fixed_priority(&tasks, &of, &[0, 1, 2], &Supply::WHOLE);
        let (demand, earliest) = sections::earliest_deadline(&tasks, &of, &Supply::WHOLE);
        let queue = fifo::responses(&tasks, &Supply::WHOLE);
        let all = [&fixed, &earliest, &queue]
            .map(|found| found.iter().map(|one| one.ns()).collect::<Option<Vec<_>>>());
        let [Some(fixed), Some(earliest), Some(queue)] = all else { continue };
        let mut longest = [[0; 3]; 3];
        let periods: Vec<_> = tasks.iter().map(|task| task.period_ns).collect();
        // Where one has to come 1 before all others, phases of a whole period and one more are needed.
        let ranges: Vec<_> = periods.iter().map(|period| period + 1).collect();
        for phases in all_phases(&ranges) {
            let jobs = periodic(&tasks, &phases, 70, |index| Shape::longest(&tasks[index], &of[index]));
            let plain = periodic(&tasks, &phases, 70, |index| Shape::new(tasks[index].work_ns));
            let mut see = |policy: usize, index: usize, played: &[i64]| {
                longest[policy][index] = longest[policy][index].max(played[index] as u64);
            };
            for last in 0..3 {
                let mut jobs = jobs.clone();
                // The one that is looked at need not have its longest region.
                let shape = Shape::preempted(&tasks[last], &of[last]);
                jobs.iter_mut().filter(|job| job.task == last).for_each(|job| job.shape = shape.clone());
                let played = play(3, &jobs, 70, |_| true, |job| job.task);
                see(0, last, &played);
                let played = play(3, &jobs, 70, |_| true, |job| (due(&tasks, job), job.task == last));
                see(1, last, &played);
                let played = play(3, &plain, 70, |_| true, |job| (job.release, job.task == last));
                see(2, last, &played);
            }
        }
        assert_eq!(longest[0][..], fixed, "fixed priorities, {tasks:?} {of:?}");
        assert_eq!(longest[2][..], queue, "in order of arrival, {tasks:?}");
        let late = longest[1].iter().zip(&tasks).any(|(longest, task)| *longest > task.deadline_ns);
        if !sections::earliest_deadline_is_exact(&tasks, &of) {
            assert!(
                longest[1].iter().zip(&earliest).all(|(longest, bound)| longest <= bound),
                "{tasks:?} {of:?}"
            );
            assert!(!late || demand != Demand::Met, "{tasks:?} {of:?}");
        } else {
            assert_eq!(longest[1][..], earliest, "earliest deadline, {tasks:?} {of:?}");
            assert_eq!(late, demand != Demand::Met, "{tasks:?} {of:?}");
        }
        counts[regions as usize] += 1;
    }
}

/// Jobs of a task from `begin` on, the first one late by its jitter; all of them, or the next ones as soon as possible.
fn late_jobs(task: &Task, index: usize, begin: u64, all: bool, shape: &Shape) -> Vec<Job> {
    let job = |job: u64| {
        let release = (begin + job * task.period_ns) as i64 - task.jitter_ns as i64;
        let ready = if all { begin + job * task.period_ns } else { release.max(begin as i64) as u64 };
        Job { ready, release, task: index, shape: shape.clone() }
    };
    (0..200 / task.period_ns).map(job).collect()
}

/// With jitter and supplies: what the theory says is the worst takes as long as computed. Regions: one begins in the last slot that is
/// supplied before a wait. Arrival: each task comes at all places of its period.
#[test]
fn the_worst_with_jitter_and_supplies() {
    let mut draw = Draw::new(23);
    let (mut regions, mut arrivals) = (0, 0);
    while regions < 600 || arrivals < 600 {
        let tasks: Vec<_> = (0..3).map(|_| draw.task(&[6, 8, 10, 12, 15, 20], true)).collect();
        let tasks: Vec<_> =
            tasks.into_iter().map(|task| Task { work_ns: task.work_ns.div_ceil(3), ..task }).collect();
        let kind = [Regions::Whole, Regions::Limited][draw.below(2)];
        let of: Vec<_> = tasks.iter().map(|task| draw_sections(&mut draw, kind, task.work_ns)).collect();
        let supply =
            [Supply::WHOLE, Supply::periodic(4, 5).unwrap(), Supply::edp(3, 5, 4).unwrap()][draw.below(3)];
        let given = |slot: u64| match supply {
            Supply::Chunks(chunks) => {
                let since = slot.checked_sub(1 + chunks.first_wait_ns);
                slot == 0 || since.is_some_and(|since| since % chunks.period_ns < chunks.budget_ns)
            }
            _ => true,
        };
        let fixed = sections::fixed_priority(&tasks, &of, &[0, 1, 2], &supply);
        let queue = fifo::responses(&tasks, &supply);
        let shape = |index: usize| Shape::longest(&tasks[index], &of[index]);
        let together = |members: &mut dyn Iterator<Item = usize>| -> Vec<Job> {
            members.flat_map(|at| late_jobs(&tasks[at], at, 1, false, &shape(at))).collect()
        };
        for index in 0..3 {
            if let Some(bound) = fixed[index].ns().filter(|ns| *ns < 80) {
                let own = Shape::preempted(&tasks[index], &of[index]);
                let mut jobs = together(&mut (0..index));
                jobs.extend(late_jobs(&tasks[index], index, 1, false, &own));
                let blocker = (index + 1..3).max_by_key(|at| of[*at].longest_ns);
                let blocker = blocker.filter(|at| of[*at].longest_ns > 1);
                jobs.extend(blocker.map(|at| {
                    let length = of[at].longest_ns;
                    Job { ready: 0, release: 0, task: at, shape: Shape::new(length).with_region(0, length) }
                }));
                let played = play(3, &jobs, 200, given, |job| job.task);
                assert_eq!(played[index] as u64, bound, "{index} of {tasks:?} {of:?} {supply:?}");
                regions += 1;
            }
            if let Some(bound) = queue[index].ns().filter(|ns| *ns < 80) {
                let others = together(&mut (0..3).filter(|at| *at != index));
                let plain = |job: Job| Job { shape: Shape::new(tasks[job.task].work_ns), ..job };
                let at_place = |place: u64| {
                    let own = late_jobs(&tasks[index], index, 1 + place, true, &shape(index));
                    let jobs: Vec<_> = others.iter().cloned().chain(own).map(plain).collect();
                    play(3, &jobs, 200, given, |job| (job.ready, job.task == index))[index] as u64
                };
                let longest = (0..tasks[index].period_ns).map(at_place).max();
                assert_eq!(longest, Some(bound), "arrival, {index} of {tasks:?} {supply:?}");
                arrivals += 1;
            }
        }
    }
}

fn random_pattern(supply: &Supply, slots: u64, draw: &mut Draw) -> Vec<bool> {
    let Supply::Chunks(chunks) = supply else { return vec![true; slots as usize] };
    let deadline = chunks.first_wait_ns + 2 * chunks.budget_ns - chunks.period_ns;
    let mut pattern = Vec::new();
    let mut first = true;
    let worst = draw.upto(1) == 0;
    while (pattern.len() as u64) < slots + chunks.period_ns {
        let mut period = vec![false; chunks.period_ns as usize];
        let mut left = chunks.budget_ns;
        let latest = if worst { !first } else { draw.upto(1) == 0 };
        for slot in (0..deadline).rev() {
            if left > 0 && (latest || slot < left || !worst && draw.upto(1) == 0) {
                period[slot as usize] = true;
                left -= 1;
            }
        }
        first = false;
        pattern.append(&mut period);
    }
    pattern.drain(..draw.upto(chunks.period_ns - 1) as usize);
    pattern
}

/// Tasks with regions, and a supply.
fn draw_set(draw: &mut Draw, jitter: bool) -> (Vec<Task>, Regions, Vec<Sections>, Supply) {
    let count = 2 + draw.upto(2);
    let one = |_| {
        let task = draw.task(&[5, 6, 8, 10, 12, 15, 20, 30], jitter);
        Task { work_ns: task.work_ns.div_ceil(count / 2).min(task.deadline_ns), ..task }
    };
    let tasks: Vec<_> = (0..count).map(one).collect();
    let regions = [Regions::Whole, Regions::Limited, Regions::Floating][draw.below(3)];
    let of = tasks.iter().map(|task| draw_sections(draw, regions, task.work_ns)).collect();
    let supply =
        [Supply::WHOLE, Supply::periodic(4, 5).unwrap(), Supply::edp(3, 5, 4).unwrap()][draw.below(3)];
    (tasks, regions, of, supply)
}

/// Nothing takes longer, whatever the phases, jitter, gaps, regions, works and pattern of the supply.
#[test]
fn responses_are_bounds() {
    const SLOTS: u64 = 300;
    let mut draw = Draw::new(22);
    let rounds = rounds(2_500);
    let mut seen = [Seen::default(), Seen::default(), Seen::default()];
    for round in 0..rounds {
        let (tasks, regions, of, supply) = draw_set(&mut draw, round % 2 == 0);
        let fixed = sections::fixed_priority(&tasks, &of, &ranks(&tasks), &supply);
        let (demand, earliest) = sections::earliest_deadline(&tasks, &of, &supply);
        let queue = fifo::responses(&tasks, &supply);
        let mut longest = vec![vec![0; tasks.len()]; 3];
        for _ in 0..6 {
            let shape =
                |draw: &mut Draw, index: usize| random_shape(draw, regions, &tasks[index], &of[index]);
            let jobs = match draw.upto(1) {
                0 => random(&tasks, SLOTS, &mut draw, shape),
                _ => critical(&tasks, SLOTS, draw.below(tasks.len()), |index| {
                    Shape::longest(&tasks[index], &of[index])
                }),
            };
            let without_regions =
                |job: &Job| Job { shape: Shape::new(job.shape.kept.len() as u64), ..job.clone() };
            let plain: Vec<_> = jobs.iter().map(without_regions).collect();
            let pattern = random_pattern(&supply, SLOTS, &mut draw);
            let given = |slot: u64| pattern[slot as usize];
            let last = draw.below(tasks.len());
            let played = [
                play(tasks.len(), &jobs, SLOTS, given, |job| job.task),
                play(tasks.len(), &jobs, SLOTS, given, |job| (due(&tasks, job), job.task == last)),
                play(tasks.len(), &plain, SLOTS, given, |job| (job.ready, job.task == last)),
            ];
            longest.iter_mut().zip(&played).for_each(|(longest, played)| keep_longest(longest, played));
        }
        let what = (&tasks, &of, regions, &supply);
        for ((seen, longest), bounds) in seen.iter_mut().zip(&longest).zip([&fixed, &earliest, &queue]) {
            seen.add_all(longest, bounds, &what);
        }
        let late = longest[1].iter().zip(&tasks).any(|(longest, task)| *longest as u64 > task.deadline_ns);
        assert!(!late || demand != Demand::Met, "{what:?}");
    }
    let [fixed, earliest, queue] = &seen;
    let equal = [
        fixed.print("fixed priorities").equal(),
        earliest.print("earliest deadline").equal(),
        queue.print("arrival").equal(),
    ];
    assert!(equal.iter().all(|equal| *equal > rounds / 10), "{equal:?}");
}
