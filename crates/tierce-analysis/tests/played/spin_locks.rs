//! Locks between CPUs whose waiters spin, played slot by slot: no response is above its bound.

use crate::player::{keep_longest, rounds, Draw, Seen};
use std::collections::VecDeque;
use tierce_analysis::spin_locks::{alone_on_each_cpu, Spin, Spinner};
use tierce_analysis::{FixedPriority, Response, Supply, Task};

fn bounds(spinners: &[Spinner], spin: Spin) -> Vec<Response> {
    let alone = alone_on_each_cpu(spinners, spin);
    let mut found = vec![Response::Unbounded; spinners.len()];
    for cpu in 0..4 {
        let mut here: Vec<_> = (0..spinners.len()).filter(|at| spinners[*at].cpu == cpu).collect();
        here.sort_by_key(|at| spinners[*at].level);
        let tasks: Vec<_> = here.iter().map(|at| alone[*at]).collect();
        let responses = FixedPriority::new().responses(&tasks, &Supply::WHOLE).to_vec();
        here.into_iter().zip(responses).for_each(|(at, response)| found[at] = response);
    }
    found
}

/// The example at the head of the file, and one that blocks.
#[test]
fn one_section_of_each_other_cpu() {
    let one = |cpu, level, work, sections: &[(usize, u64)]| Spinner {
        task: Task::new(work, 40),
        cpu,
        level,
        sections: sections.to_vec(),
    };
    let two = [one(0, 0, 3, &[(0, 2)]), one(1, 0, 3, &[(0, 2)])];
    for spin in [Spin::NonPreemptive, Spin::Ceiling] {
        assert_eq!(bounds(&two, spin), [Response::Within(5); 2]);
    }
    let above = [&[one(0, 0, 1, &[])], &two.clone().map(|one| Spinner { level: 1, ..one })[..]].concat();
    assert_eq!(
        bounds(&above, Spin::NonPreemptive)[0],
        Response::Within(5),
        "2 of spinning, 2 of the section"
    );
    assert_eq!(bounds(&above, Spin::Ceiling)[0], Response::Within(1), "it does not use the lock");
}

/// Parts of a job: with which lock, and how long.
pub type Parts = Vec<(Option<usize>, u64)>;

struct Job {
    ready: u64,
    task: usize,
    parts: VecDeque<(Option<usize>, u64)>,
}

/// All locks' queues, of jobs by their numbers.
struct Player<'a> {
    spinners: &'a [Spinner],
    spin: Spin,
    queues: Vec<VecDeque<usize>>,
    jobs: Vec<Job>,
}

impl Player<'_> {
    /// Less goes first.
    fn key(&self, at: usize) -> (i64, u32, usize) {
        let job = &self.jobs[at];
        let spinner = &self.spinners[job.task];
        let own = (i64::from(spinner.level), 1, job.task);
        let Some(lock) =
            job.parts.front().and_then(|part| part.0).filter(|lock| self.queues[*lock].contains(&at))
        else {
            return own;
        };
        let uses = |other: &&Spinner| other.sections.iter().any(|section| section.0 == lock);
        let users = || self.spinners.iter().filter(uses);
        if self.spin == Spin::NonPreemptive && users().any(|other| other.cpu != spinner.cpu) {
            return (-1, 0, job.task);
        }
        let ceiling = users().filter(|other| other.cpu == spinner.cpu).map(|other| other.level).min();
        (ceiling.unwrap().into(), 0, job.task)
    }

    fn request(&mut self, at: usize) {
        let lock = self.jobs[at].parts.front().and_then(|part| part.0);
        if let Some(lock) = lock.filter(|lock| !self.queues[*lock].contains(&at)) {
            self.queues[lock].push_back(at);
        }
    }

    /// A slot of work for a job; whether its part is done.
    fn work(&mut self, at: usize, slot: u64, longest: &mut [i64]) {
        let job = &mut self.jobs[at];
        let part = job.parts.front_mut().unwrap();
        part.1 -= 1;
        if part.1 > 0 {
            return;
        }
        let (lock, _) = job.parts.pop_front().unwrap();
        if job.parts.is_empty() {
            longest[job.task] = longest[job.task].max((slot + 1 - job.ready) as i64);
        }
        match lock {
            Some(lock) => assert_eq!(self.queues[lock].pop_front(), Some(at)),
            None => self.request(at), // before anybody else comes
        }
    }

    fn play(&mut self, slots: u64, cpus: usize, draw: &mut Draw) -> Vec<i64> {
        let mut longest = vec![0; self.spinners.len()];
        for slot in 0..slots {
            let first = draw.below(cpus);
            let mut chosen = Vec::new();
            for cpu in (0..cpus).map(|cpu| (cpu + first) % cpus) {
                let here = (0..self.jobs.len()).filter(|at| {
                    let job = &self.jobs[*at];
                    let earlier = |other: &Job| {
                        other.task == job.task && other.ready < job.ready && !other.parts.is_empty()
                    };
                    self.spinners[job.task].cpu == cpu
                        && job.ready <= slot
                        && !job.parts.is_empty()
                        && !self.jobs.iter().any(earlier)
                });
                if let Some(at) = here.min_by_key(|at| self.key(*at)) {
                    self.request(at);
                    chosen.push(at);
                }
            }
            // Who is first in a queue works once, wherever that is.
            let mut worked = Vec::new();
            for at in chosen {
                let lock = self.jobs[at].parts.front().and_then(|part| part.0);
                let head = lock.map_or(at, |lock| self.queues[lock][0]);
                if (head == at || self.spin == Spin::Ceiling) && !worked.contains(&head) {
                    worked.push(head);
                }
            }
            worked.into_iter().for_each(|at| self.work(at, slot, &mut longest));
        }
        longest
    }
}

pub fn draw_set(draw: &mut Draw, cpus: usize) -> (Vec<Spinner>, Vec<Parts>) {
    const PERIODS: [u64; 6] = [8, 10, 12, 15, 20, 30];
    let (mut spinners, mut jobs) = (Vec::new(), Vec::new());
    for cpu in 0..cpus {
        for level in 0..1 + draw.upto(2) {
            let period_ns = PERIODS[draw.below(6)];
            let (mut parts, mut sections, mut work) = (Parts::new(), Vec::new(), 0);
            for _ in 0..1 + draw.upto(2) {
                let length = 1 + draw.upto(period_ns / 8);
                let lock = Some(draw.below(3)).filter(|_| parts.last().is_some() || draw.upto(1) == 0);
                let lock = lock.filter(|_| draw.upto(2) > 0);
                sections.extend(lock.map(|lock| (lock, length)));
                parts.push((lock, length));
                work += length;
            }
            let task = Task::new(work, period_ns);
            spinners.push(Spinner { task, cpu, level: level as u32, sections });
            jobs.push(parts);
        }
    }
    (spinners, jobs)
}

#[test]
fn responses_are_bounds() {
    let mut draw = Draw::new(44);
    let mut seen = [Seen::default(), Seen::default()];
    for _ in 0..rounds(2_000) {
        let cpus = 2 + draw.below(2);
        let (spinners, parts) = draw_set(&mut draw, cpus);
        for (spin, seen) in [Spin::NonPreemptive, Spin::Ceiling].into_iter().zip(&mut seen) {
            let bounds = bounds(&spinners, spin);
            let mut longest = vec![0; spinners.len()];
            for _ in 0..6 {
                let mut jobs = Vec::new();
                for (task, parts) in parts.iter().enumerate() {
                    let (mut ready, period) = (draw.upto(12), spinners[task].task.period_ns);
                    while ready < 120 {
                        jobs.push(Job { ready, task, parts: parts.iter().copied().collect() });
                        ready += period + if draw.upto(3) == 0 { draw.upto(3) } else { 0 };
                    }
                }
                let queues = vec![VecDeque::new(); 3];
                let mut player = Player { spinners: &spinners, spin, queues, jobs };
                keep_longest(&mut longest, &player.play(150, cpus, &mut draw));
            }
            seen.add_all(&longest, &bounds, &(spin, &spinners, &parts));
        }
    }
    let equal = [
        seen[0].print("spinning without preemption").equal(),
        seen[1].print("spinning at the ceiling").equal(),
    ];
    assert!(equal.iter().all(|equal| *equal > 300), "{equal:?}");
}
