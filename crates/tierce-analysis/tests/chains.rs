//! Chains against systems of several CPUs that are played slot by slot: nothing takes longer than its bound.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use std::collections::VecDeque;
use tierce_analysis::chains::{
    bounds, by_fixed_priority, by_jitter_alone, propagate, Bounds, Placed, Release, Segment, Span, Times,
};
use tierce_analysis::Task;

/// What a task does beside what is known of it.
#[derive(Clone, Debug)]
struct Played {
    placed: Placed,
    /// First nominal release of a head, and how much later than a period the next may come.
    phase: u64,
    extra: u64,
}

/// Tasks from first to last; where it is sampled the next one reads what was written so much before.
#[derive(Clone, Debug)]
struct Path {
    tasks: Vec<usize>,
    /// Before each but the first: it reads the last value, so late, in place of being triggered.
    sampled: Vec<Option<u64>>,
}

#[derive(Clone, Debug)]
struct System {
    tasks: Vec<Played>,
    paths: Vec<Path>,
}

impl System {
    /// Heads with periods of their own, and tasks that follow one task or two of the same head.
    fn draw(draw: &mut Draw) -> Self {
        const PERIODS: [u64; 6] = [8, 10, 12, 15, 20, 30];
        let heads = 1 + draw.below(3);
        let cpus = 1 + draw.below(3);
        let count = heads + draw.below(5);
        let mut tasks: Vec<Played> = Vec::new();
        let mut head_of = Vec::new();
        for index in 0..count {
            let level = draw.below(2 * count) as u32;
            let mut extra = 0;
            let (period, head, release) = if index < heads {
                let period = PERIODS[draw.below(PERIODS.len())];
                extra = if draw.below(3) == 0 { draw.below(5) as u64 } else { 0 };
                let jitter_ns = if draw.below(3) == 0 { draw.below(period as usize) as u64 } else { 0 };
                (period, index, Release::Own { jitter_ns, sporadic: extra > 0 })
            } else {
                let first = draw.below(index);
                let delay = |draw: &mut Draw| if draw.below(3) == 0 { draw.below(6) as u64 } else { 0 };
                let mut before = vec![(first, delay(draw))];
                let second = draw.below(index);
                if draw.below(3) == 0 && second != first && head_of[second] == head_of[first] {
                    before.push((second, delay(draw)));
                }
                let head: usize = head_of[first];
                (tasks[head].placed.task.period_ns, head, Release::After(before))
            };
            head_of.push(head);
            let part = 3 + draw.below(5);
            let work = 1 + draw.below(1 + period as usize / part) as u64;
            let placed = Placed {
                task: Task::new(work, period),
                least_work_ns: 1 + draw.below(work as usize) as u64,
                cpu: draw.below(cpus),
                level,
                release,
            };
            tasks.push(Played { placed, phase: draw.below(period as usize) as u64, extra });
        }
        let paths = (0..3).filter_map(|_| Self::path(draw, &tasks)).collect();
        Self { tasks, paths }
    }

    /// From a head on, as the tasks follow each other; at its end another head may look.
    fn path(draw: &mut Draw, tasks: &[Played]) -> Option<Path> {
        let is_head = |task: usize| matches!(tasks[task].placed.release, Release::Own { .. });
        let follows = |task: usize, before: usize| match &tasks[task].placed.release {
            Release::Own { .. } => false,
            Release::After(all) => all.iter().any(|(other, _)| *other == before),
        };
        let heads: Vec<_> = (0..tasks.len()).filter(|task| is_head(*task)).collect();
        let mut path = Path { tasks: vec![heads[draw.below(heads.len())]], sampled: Vec::new() };
        while path.tasks.len() < 6 {
            let last = *path.tasks.last()?;
            let next: Vec<_> = (0..tasks.len()).filter(|task| follows(*task, last)).collect();
            if !next.is_empty() && draw.below(4) > 0 {
                path.tasks.push(next[draw.below(next.len())]);
                path.sampled.push(None);
                continue;
            }
            let others: Vec<_> = heads.iter().copied().filter(|head| !path.tasks.contains(head)).collect();
            if others.is_empty() || draw.below(4) == 0 {
                break;
            }
            path.tasks.push(others[draw.below(others.len())]);
            path.sampled.push(Some(if draw.below(2) == 0 { draw.below(6) as u64 } else { 0 }));
        }
        Some(path)
    }

    fn placed(&self) -> Vec<Placed> {
        self.tasks.iter().map(|task| task.placed.clone()).collect()
    }

    fn bounds(&self, path: &Path, times: &[Times]) -> Bounds {
        let mut segments: Vec<Segment> = Vec::new();
        let mut length = 0;
        for (at, &task) in path.tasks.iter().enumerate() {
            if at == 0 || path.sampled[at - 1].is_some() {
                let head = &self.tasks[task];
                let period_ns = head.placed.task.period_ns + head.extra;
                segments.push(Segment {
                    period_ns,
                    done: Span::default(),
                    delay_ns: 0,
                    goes_before_next: false,
                });
                length = 0;
            }
            length += 1;
            let segment = segments.last_mut().expect("one was begun");
            segment.done = times[task].done;
            let Some(Some(delay)) = path.sampled.get(at) else { continue };
            let (this, next) = (&self.tasks[task].placed, &self.tasks[path.tasks[at + 1]].placed);
            segment.delay_ns = *delay;
            segment.goes_before_next = length == 1
                && matches!(this.release, Release::Own { jitter_ns: 0, .. })
                && this.cpu == next.cpu
                && this.level < next.level;
        }
        bounds(&segments)
    }
}

#[derive(Clone, Debug)]
struct Job {
    task: usize,
    /// Nominal release at the head, and what of each path it knows: the index of the first task's job.
    nominal: u64,
    number: usize,
    knows: Vec<Option<usize>>,
    left: u64,
    started: bool,
}

/// A path while it is played.
#[derive(Clone, Default)]
struct Watched {
    /// At each place: what was written, and from when on it can be read.
    written: Vec<VecDeque<(u64, usize)>>,
    /// Of each job of the first task: nominal release, and when it looked.
    looked: Vec<(u64, u64)>,
    /// The next job of the first task of which the last is to tell.
    told: usize,
    response: u64,
    reaction: u64,
    age: u64,
    least: u64,
}

/// Longest times of all tasks from the nominal release at the head on, and what was seen on each path.
fn play(system: &System, draw: &mut Draw, longest_works: bool, slots: u64) -> (Vec<u64>, Vec<Watched>) {
    let tasks = &system.tasks;
    let mut seen = vec![0; tasks.len()];
    let fresh = |path: &Path| Watched {
        written: vec![VecDeque::new(); path.tasks.len()],
        least: u64::MAX,
        ..Watched::default()
    };
    let mut watched: Vec<_> = system.paths.iter().map(fresh).collect();
    // When jobs come: (time, job). Heads are drawn beforehand.
    let mut coming: Vec<(u64, Job)> = Vec::new();
    let mut nominals = vec![Vec::new(); tasks.len()];
    let job = |task: usize, nominal: u64, number: usize, work: u64| Job {
        task,
        nominal,
        number,
        knows: vec![None; system.paths.len()],
        left: work,
        started: false,
    };
    let work = |draw: &mut Draw, task: usize| {
        let placed = &tasks[task].placed;
        let less = (placed.task.work_ns - placed.least_work_ns) as usize;
        placed.task.work_ns - if longest_works { 0 } else { draw.below(less + 1) as u64 }
    };
    for (index, task) in tasks.iter().enumerate() {
        let Release::Own { jitter_ns, .. } = task.placed.release else { continue };
        let (mut nominal, mut number) = (task.phase, 0);
        while nominal < slots {
            let late = draw.below(jitter_ns as usize + 1) as u64;
            nominals[index].push(nominal);
            coming.push((nominal + late, job(index, nominal, number, work(draw, index))));
            nominal += task.placed.task.period_ns + draw.below(task.extra as usize + 1) as u64;
            number += 1;
        }
    }
    coming.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut ready: Vec<Job> = Vec::new();
    let mut done_of: Vec<Vec<(u64, Vec<Option<usize>>)>> = vec![Vec::new(); tasks.len()];
    let mut released = vec![0; tasks.len()];
    let cpus = tasks.iter().map(|task| task.placed.cpu).max().unwrap_or(0) + 1;
    for now in 0..slots {
        // Triggered jobs whose predecessors have all ended.
        for (index, task) in tasks.iter().enumerate() {
            let Release::After(before) = &task.placed.release else { continue };
            let number = released[index];
            let ends: Option<Vec<_>> =
                before.iter().map(|(of, delay)| done_of[*of].get(number).map(|done| (done, delay))).collect();
            if !ends.is_some_and(|ends| ends.iter().all(|((end, _), delay)| end + **delay <= now)) {
                continue;
            }
            let mut head = index;
            while let Release::After(before) = &tasks[head].placed.release {
                head = before[0].0;
            }
            let nominal = nominals[head][number];
            released[index] += 1;
            let mut next = job(index, nominal, number, work(draw, index));
            for (path, of_path) in system.paths.iter().enumerate() {
                let Some(at) = of_path.tasks.iter().position(|task| *task == index) else { continue };
                if at > 0 && of_path.sampled[at - 1].is_none() {
                    next.knows[path] = done_of[of_path.tasks[at - 1]][number].1[path];
                }
            }
            ready.push(next);
        }
        while coming.last().is_some_and(|(at, _)| *at <= now) {
            ready.extend(coming.pop().map(|(_, job)| job));
        }
        for cpu in 0..cpus {
            let urgent = (0..ready.len())
                .filter(|at| tasks[ready[*at].task].placed.cpu == cpu)
                .min_by_key(|at| (tasks[ready[*at].task].placed.level, ready[*at].task, ready[*at].number));
            let Some(at) = urgent else { continue };
            let job = &mut ready[at];
            if !job.started {
                job.started = true;
                for (path, (of_path, watched)) in system.paths.iter().zip(&mut watched).enumerate() {
                    let Some(place) = of_path.tasks.iter().position(|task| *task == job.task) else {
                        continue;
                    };
                    if place == 0 {
                        job.knows[path] = Some(watched.looked.len());
                        watched.looked.push((job.nominal, now));
                    } else if of_path.sampled[place - 1].is_some() {
                        let written = &mut watched.written[place - 1];
                        while written.len() > 1 && written[1].0 <= now {
                            written.pop_front();
                        }
                        job.knows[path] = written.front().filter(|front| front.0 <= now).map(|front| front.1);
                    }
                }
            }
            job.left -= 1;
            if job.left > 0 {
                continue;
            }
            let (job, end) = (ready.swap_remove(at), now + 1);
            seen[job.task] = seen[job.task].max(end - job.nominal);
            for (path, (of_path, watched)) in system.paths.iter().zip(&mut watched).enumerate() {
                let Some(place) = of_path.tasks.iter().position(|task| *task == job.task) else { continue };
                let Some(known) = job.knows[path] else { continue };
                if let Some(Some(delay)) = of_path.sampled.get(place) {
                    watched.written[place].push_back((end + delay, known));
                }
                if place + 1 < of_path.tasks.len() {
                    continue;
                }
                let nominal = watched.looked[known].0;
                watched.age = watched.age.max(end - nominal);
                watched.least = watched.least.min(end - nominal);
                while watched.told <= known {
                    let told = watched.told;
                    watched.response = watched.response.max(end - watched.looked[told].0);
                    if told > 0 {
                        // It came just after the job before had looked.
                        watched.reaction = watched.reaction.max(end - watched.looked[told - 1].1);
                    }
                    watched.told += 1;
                }
            }
            done_of[job.task].push((end, job.knows));
        }
    }
    (seen, watched)
}

/// Where there is a bound.
#[track_caller]
fn see(near: &mut Seen, seen: u64, bound: Option<u64>, system: &System) {
    if let Some(bound) = bound.filter(|bound| *bound < u64::MAX) {
        near.add(seen, bound, || format!("{system:?}"));
    }
}

/// A task of whose jobs little is sure to be worked.
fn task(work: u64, period: u64, cpu: usize, level: u32, release: Release) -> Placed {
    Placed { task: Task::new(work, period), least_work_ns: 1, cpu, level, release }
}

/// The example at the head of the module.
#[test]
fn two_on_two_cpus() {
    let own = Release::Own { jitter_ns: 0, sporadic: false };
    let tasks = [
        task(2, 10, 0, 0, own.clone()),
        task(3, 10, 1, 1, Release::After(vec![(0, 0)])),
        task(1, 4, 1, 0, own),
    ];
    let times = by_fixed_priority(&tasks);
    assert_eq!(times[1].ready, Span { least_ns: 1, most_ns: 2 });
    assert_eq!(times[1].done, Span { least_ns: 2, most_ns: 6 });
}

/// The system of `examples/spp_test.py` of pyCPA 1.x, two streams over two CPUs, worked out by hand. pyCPA counts responses from when a
/// task is triggered; here they count from the head's nominal release, so those of the heads are longer by their jitter.
#[test]
fn streams_of_pycpa() {
    let task = |least_work_ns, work, period, cpu, level, release| Placed {
        task: Task::new(work, period),
        least_work_ns,
        cpu,
        level,
        release,
    };
    let tasks = [
        task(5, 10, 30, 0, 1, Release::Own { jitter_ns: 5, sporadic: false }),
        task(1, 3, 15, 0, 2, Release::Own { jitter_ns: 6, sporadic: false }),
        task(2, 2, 30, 1, 1, Release::After(vec![(0, 0)])),
        task(4, 9, 15, 1, 2, Release::After(vec![(1, 0)])),
    ];
    let done: Vec<_> = by_fixed_priority(&tasks).iter().map(|times| times.done.most_ns).collect();
    // The last one is ready 1 to 19 after its nominal release, and has 2 of the third before it.
    assert_eq!(done, [10 + 5, 13 + 6, 10 + 5 + 2, 19 + 2 + 9]);
}

/// `examples/sampling_test.py` of pyCPA 1.x: 59 from when the first task is ready, which is up to 15 late.
#[test]
fn sampling_of_pycpa() {
    let tasks = [
        Placed {
            task: Task::new(3, 30),
            least_work_ns: 1,
            cpu: 0,
            level: 1,
            release: Release::Own { jitter_ns: 15, sporadic: false },
        },
        Placed {
            task: Task::new(3, 50),
            least_work_ns: 2,
            cpu: 0,
            level: 2,
            release: Release::Own { jitter_ns: 0, sporadic: false },
        },
    ];
    let times = by_fixed_priority(&tasks);
    let segment = |at: usize| Segment {
        period_ns: tasks[at].task.period_ns,
        done: times[at].done,
        delay_ns: 0,
        goes_before_next: false,
    };
    let bounds = bounds(&[segment(0), segment(1)]);
    assert_eq!(bounds.response_ns, Some(59 + 15));
    assert_eq!(bounds.reaction_ns, Some(59 + 15 + 30));
    assert_eq!(bounds.age_ns, Some(3 + 15 + 30 + 6));
}

/// On CPUs with too much work what comes last has no bound, nor has what follows it or is below that. The others are not concerned.
#[test]
fn what_has_no_bound() {
    let own = || Release::Own { jitter_ns: 0, sporadic: true };
    let tasks = [
        task(51, 100, 0, 1, own()),
        task(51, 100, 1, 0, Release::After(vec![(0, 0)])),
        task(51, 100, 1, 1, own()),
        task(51, 100, 0, 0, Release::After(vec![(2, 0)])),
        task(1, 100, 2, 0, own()),
        task(1, 100, 2, 1, Release::After(vec![(4, 0), (1, 0)])),
    ];
    const BOUNDED: [bool; 6] = [false, false, false, false, true, false];
    let times = by_fixed_priority(&tasks);
    for (index, bounded) in BOUNDED.into_iter().enumerate() {
        let segment =
            Segment { period_ns: 100, done: times[index].done, delay_ns: 3, goes_before_next: false };
        let bounds = bounds(&[segment, segment]);
        assert_eq!(times[index].done.most_ns < u64::MAX, bounded, "{index}: {times:?}");
        assert_eq!(bounds.age_ns.is_some(), bounded);
    }
}

/// Where tasks make each other later and later nothing is promised; the head that nothing makes late keeps its bound.
#[test]
fn circles_of_jitter_end() {
    let after = |task| Release::After(vec![(task, 0)]);
    let releases = [Release::Own { jitter_ns: 0, sporadic: false }, after(0), after(1)];
    let times = propagate(&releases, &[1, 1, 1], |ready| {
        vec![5, ready[2].jitter_ns().saturating_add(2), ready[2].jitter_ns().saturating_add(1)]
    });
    let most: Vec<_> = times.iter().map(|times| times.done.most_ns).collect();
    assert_eq!(most, [5, u64::MAX, u64::MAX]);
}

/// Random systems: nothing that is played exceeds its bound, and some comes near.
#[test]
fn nothing_exceeds_its_bound() {
    let mut draw = Draw::new(70);
    let [mut tasks, mut responses, mut reactions, mut ages] = [Seen::default(); 4];
    let mut lesser = 0;
    for _ in 0..rounds(600) {
        let mut system = System::draw(&mut draw);
        let times = by_fixed_priority(&system.placed());
        for (times, by_jitter) in times.iter().zip(by_jitter_alone(&system.placed())) {
            assert!(times.done.most_ns <= by_jitter.done.most_ns, "{system:?}");
            lesser += u32::from(times.done.most_ns < by_jitter.done.most_ns);
        }
        for round in 0..4 {
            system.tasks.iter_mut().for_each(|task| {
                task.phase = draw.below(task.placed.task.period_ns as usize) as u64;
            });
            let (seen, watched) = play(&system, &mut draw, round % 2 == 0, 400);
            for (seen, times) in seen.iter().zip(&times) {
                see(&mut tasks, *seen, Some(times.done.most_ns), &system);
            }
            for (path, watched) in system.paths.iter().zip(&watched) {
                let bounds = system.bounds(path, &times);
                assert!(watched.least >= bounds.least_ns, "{path:?} {bounds:?} {system:?}");
                see(&mut responses, watched.response, bounds.response_ns, &system);
                see(&mut reactions, watched.reaction, bounds.reaction_ns, &system);
                see(&mut ages, watched.age, bounds.age_ns, &system);
            }
        }
    }
    assert!(lesser > 0, "offsets make no bound less");
    for (name, seen) in [("tasks", tasks), ("responses", responses), ("reactions", reactions), ("ages", ages)]
    {
        assert!(seen.print(name).all() > 1_000 && seen.near() * 50 > seen.all(), "{name}");
    }
}

/// A head has no bound beside a triggered task that may come at any time, and a bound without one.
#[test]
fn responses_that_get_shorter_by_jitter_end() {
    let releases = [Release::Own { jitter_ns: 0, sporadic: false }, Release::After(vec![(0, 0)])];
    let mut rounds = 0;
    let times = propagate(&releases, &[1, 1], |ready| {
        rounds += 1;
        assert!(rounds < 1_000, "it does not end");
        let head_ns = if ready[1].jitter_ns() == u64::MAX { 5 } else { u64::MAX };
        vec![head_ns, 7]
    });
    let done: Vec<_> = times.iter().map(|times| times.done.most_ns).collect();
    assert_eq!(done, [5, u64::MAX]);
    assert_eq!(times[1].ready, Span { least_ns: 1, most_ns: u64::MAX });
}
