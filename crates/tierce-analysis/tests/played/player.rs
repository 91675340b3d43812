//! Plays jobs slot by slot on one CPU: with regions without preemption, and suspensions.
use tierce_analysis::{Response, Sections, Task};

#[path = "../../../../tests/draw.rs"]
mod draw;
#[path = "../../../../tests/seen.rs"]
mod seen;

pub use draw::Draw;
pub use seen::{rounds, Seen};

impl Draw {
    /// From 0 to `most`.
    pub fn upto(&mut self, most: u64) -> u64 {
        self.below(most as usize + 1) as u64
    }

    /// Periods of which few have a common multiple, or short ones of which all have.
    pub fn task(&mut self, periods: &[u64], jitter: bool) -> Task {
        let period_ns = periods[self.below(periods.len())];
        let work_ns = 1 + self.upto(period_ns / 2);
        let deadline_ns = work_ns + self.upto(2 * period_ns - work_ns);
        let jitter_ns = if jitter && self.upto(1) == 0 { self.upto(period_ns + 3) } else { 0 };
        Task { deadline_ns, jitter_ns, ..Task::new(work_ns, period_ns) }
    }
}

/// What a job does in its slots of work.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Of each slot: nobody may run between the one before it and this one.
    pub kept: Vec<bool>,
    /// Before each slot: for so many slots it suspends itself.
    pub suspended: Vec<u64>,
}

impl Shape {
    pub fn new(work: u64) -> Self {
        Self { kept: vec![false; work as usize], suspended: vec![0; work as usize] }
    }

    /// With a region of that many slots from there on.
    pub fn with_region(mut self, from: u64, length: u64) -> Self {
        (from + 1..from + length).for_each(|slot| self.kept[slot as usize] = true);
        self
    }

    /// The longest work, with no region but the last one.
    pub fn preempted(task: &Task, sections: &Sections) -> Self {
        let last = sections.last_ns.min(task.work_ns);
        Self::new(task.work_ns).with_region(task.work_ns - last, last)
    }

    /// The longest work, with the longest region first and the last one last.
    pub fn longest(task: &Task, sections: &Sections) -> Self {
        let last = sections.last_ns.min(task.work_ns);
        let longest = sections.longest_ns.min(task.work_ns);
        let first = if longest > task.work_ns - last { 0 } else { longest }; // or it is the last one
        Self::new(task.work_ns).with_region(0, first).with_region(task.work_ns - last, last)
    }
}

#[derive(Clone, Debug)]
pub struct Job {
    pub ready: u64,
    /// Nominal release.
    pub release: i64,
    pub task: usize,
    pub shape: Shape,
}

/// A job under way.
struct Under {
    job: Job,
    done: usize,
    /// Suspended until then.
    until: u64,
}

/// The longest response of each task, from the nominal release, among jobs done within `slots`. `key`: who has less runs;
/// jobs of a task keep their order.
pub fn play<K: Ord>(
    tasks: usize,
    jobs: &[Job],
    slots: u64,
    given: impl Fn(u64) -> bool,
    key: impl Fn(&Job) -> K,
) -> Vec<i64> {
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|job| (job.ready, job.release));
    let mut jobs = jobs.into_iter().peekable();
    let mut longest = vec![0; tasks];
    let mut under = Vec::<Under>::new();
    let mut kept: Option<usize> = None; // the job in a region
    for slot in 0..slots {
        while let Some(job) = jobs.next_if(|job| job.ready <= slot) {
            let until = slot + job.shape.suspended[0];
            under.push(Under { job, done: 0, until });
        }
        if !given(slot) {
            continue;
        }
        let first_of_task = |at: &usize| {
            let this = &under[*at].job;
            under.iter().all(|other| other.job.task != this.task || other.job.release >= this.release)
        };
        let ready = (0..under.len()).filter(first_of_task).filter(|at| under[*at].until <= slot);
        let Some(at) = kept.or_else(|| ready.min_by_key(|at| key(&under[*at].job))) else { continue };
        kept = None;
        let this = &mut under[at];
        this.done += 1;
        if this.done == this.job.shape.kept.len() {
            let Under { job, .. } = under.remove(at);
            longest[job.task] = longest[job.task].max(slot as i64 + 1 - job.release);
            // The next one of the task may suspend itself before it begins.
            let next = under.iter_mut().filter(|other| other.job.task == job.task);
            if let Some(next) = next.min_by_key(|other| other.job.release) {
                next.until = next.until.max(slot + 1 + next.job.shape.suspended[0]);
            }
        } else {
            this.until = slot + 1 + this.job.shape.suspended[this.done];
            if this.job.shape.kept[this.done] {
                assert!(this.until == slot + 1, "no suspension in a region");
                kept = Some(at);
            }
        }
    }
    longest
}

/// When a job is to be done.
pub fn due(tasks: &[Task], job: &Job) -> i64 {
    job.release + tasks[job.task].deadline_ns as i64
}

/// The longest of each, also of what was played now.
pub fn keep_longest(longest: &mut [i64], played: &[i64]) {
    longest.iter_mut().zip(played).for_each(|(longest, played)| *longest = *played.max(longest));
}

impl Seen {
    /// The longest responses of one set.
    #[track_caller]
    pub fn add_all(&mut self, longest: &[i64], bounds: &[Response], what: &dyn std::fmt::Debug) {
        for (longest, bound) in longest.iter().zip(bounds) {
            let Some(bound) = bound.ns() else { continue };
            self.add(*longest as u64, bound, || format!("{what:?}"));
        }
    }
}

/// A phase for each of these periods, one after the other.
pub fn all_phases(periods: &[u64]) -> impl Iterator<Item = Vec<u64>> + '_ {
    let count: u64 = periods.iter().product();
    (0..count).map(|mut rest| {
        let digit = |period: &u64| {
            let phase = rest % period;
            rest /= period;
            phase
        };
        periods.iter().map(digit).collect()
    })
}

/// Strictly periodic jobs from these phases on, each as `shape` of its task says.
pub fn periodic(tasks: &[Task], phases: &[u64], slots: u64, shape: impl Fn(usize) -> Shape) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let releases = (0..).map(|job| phases[index] + job * task.period_ns).take_while(|at| *at < slots);
        jobs.extend(releases.map(|at| Job {
            ready: at,
            release: at as i64,
            task: index,
            shape: shape(index),
        }));
    }
    jobs
}

/// Jobs that all come together, as late as jitter allows, but those of `early`, which come 1 before; then as soon as possible.
pub fn critical(tasks: &[Task], slots: u64, early: usize, shape: impl Fn(usize) -> Shape) -> Vec<Job> {
    let jobs = |(index, task): (usize, &Task)| {
        let shape = shape(index);
        let (begin, late) = if index == early { (40, 0) } else { (41, task.jitter_ns) };
        let period = task.period_ns;
        (0..slots / period).map(move |job| {
            let release = (begin + job * period) as i64 - late as i64;
            Job { ready: release.max(begin as i64) as u64, release, task: index, shape: shape.clone() }
        })
    };
    tasks.iter().enumerate().flat_map(jobs).collect()
}

/// Random phases, gaps, jitter such that jobs of a task become ready in their order.
pub fn random(
    tasks: &[Task],
    slots: u64,
    draw: &mut Draw,
    mut shape: impl FnMut(&mut Draw, usize) -> Shape,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let (mut release, mut before) = (draw.upto(task.period_ns), 0);
        let (gaps, early) = (draw.upto(2) == 0, draw.upto(1) == 0);
        let mut first = true;
        while release < slots {
            // The first one late and the others not: a burst.
            let late = match draw.upto(2) {
                0 => 0,
                1 => draw.upto(task.jitter_ns),
                _ => task.jitter_ns,
            };
            let late = if early {
                if first {
                    task.jitter_ns
                } else {
                    0
                }
            } else {
                late
            };
            before = before.max(release + late);
            let shape = shape(draw, index);
            jobs.push(Job { ready: before, release: release as i64, task: index, shape });
            release += task.period_ns + if gaps { draw.upto(3) } else { 0 };
            first = false;
        }
    }
    jobs
}
