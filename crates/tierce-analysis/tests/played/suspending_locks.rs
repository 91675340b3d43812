//! Locks between CPUs whose waiters are suspended, played slot by slot: no response is above its bound.

use crate::player::{keep_longest, rounds, Draw, Seen};
use crate::spin_locks::{draw_set, Parts};
use std::collections::VecDeque;
use tierce_analysis::suspending_locks::{waits, Queue, Wait, Waiter};
use tierce_analysis::{Response, Task};

fn one(cpu: usize, urgency: u64, work: u64, sections: &[(usize, u64)]) -> Waiter {
    Waiter { task: Some(Task::new(work, 100)), cpu, urgency, sections: sections.to_vec() }
}

fn responses(waits: &[Wait]) -> Vec<Option<u64>> {
    waits.iter().map(|wait| wait.response_ns).collect()
}

/// The example at the head of the file, and one that is blocked.
#[test]
fn one_section_of_each_other_cpu() {
    let two = [one(0, 1, 3, &[(0, 2)]), one(1, 1, 3, &[(0, 2)])];
    let above = [&two[..], &[one(0, 0, 1, &[])]].concat();
    for queue in [Queue::Priority, Queue::Fifo] {
        assert_eq!(responses(&waits(&two, queue)), [Some(5); 2], "{queue:?}");
        // The third one waits for the section of the first, 1 + 2, and the first for it, 3 + 2 + 1.
        assert_eq!(responses(&waits(&above, queue)), [Some(6), Some(5), Some(3)], "{queue:?}");
    }
}

/// Three CPUs and one lock: the least urgent user is waited for once, the others whenever they may come; with FMLP+ each once.
#[test]
fn waits_by_priority_and_in_order() {
    let three = [one(0, 0, 4, &[(0, 1)]), one(1, 1, 4, &[(0, 2)]), one(2, 2, 9, &[(0, 5)])];
    // 4 + 5; 4 + 5 + 1; 9 + 1 + 2.
    let found = waits(&three, Queue::Priority);
    assert_eq!(responses(&found), [Some(9), Some(10), Some(12)]);
    assert_eq!(found[1].suspended_ns, 6);
    // 4 + 2 + 5; 4 + 1 + 5; 9 + 1 + 2.
    assert_eq!(responses(&waits(&three, Queue::Fifo)), [Some(11), Some(10), Some(12)]);
    // Beside the last user there is one with a lock that the first uses, too: on their CPU both locks have its priority for a ceiling.
    let more = [
        Waiter { sections: vec![(0, 1), (1, 1)], ..three[0].clone() },
        three[1].clone(),
        three[2].clone(),
        one(2, 1, 3, &[(1, 3)]),
    ];
    let found = waits(&more, Queue::Priority);
    // A section of either runs after one of the other: twice 5 + 3.
    assert_eq!(found[0].response_ns, Some(4 + 8 + 8));
}

#[test]
fn what_is_not_bounded() {
    let busy = Waiter { task: None, ..one(0, 0, 0, &[]) };
    let set = [busy, one(0, 1, 3, &[(0, 2)]), one(1, 0, 3, &[(0, 2)]), one(1, 2, 3, &[])];
    for queue in [Queue::Priority, Queue::Fifo] {
        // Whoever waits for the lock waits once for the second one, which may wait for ever for the CPU, but not with the lock.
        assert_eq!(responses(&waits(&set, queue)), [None, None, Some(5), Some(6)], "{queue:?}");
    }
    let full = [one(0, 0, 60, &[]), one(0, 1, 50, &[(0, 2)]), one(1, 1, 10, &[(0, 1)])];
    assert_eq!(responses(&waits(&full, Queue::Fifo)), [Some(62), None, Some(12)]);
}

/// A job that waits in a queue, or has a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// What decides, then the number of the request or of getting it.
    key: u64,
    number: u64,
    task: usize,
}

struct Player<'a> {
    waiters: &'a [Waiter],
    queue: Queue,
    /// Of each task: when its jobs come, and what is left of them.
    jobs: Vec<VecDeque<(u64, VecDeque<(Option<usize>, u64)>)>>,
    /// Of each lock.
    holders: Vec<Option<Place>>,
    queues: Vec<Vec<Place>>,
    number: u64,
}

impl Player<'_> {
    fn ceiling(&self, lock: usize, cpu: usize) -> u64 {
        let uses =
            |other: &&Waiter| other.cpu != cpu && other.sections.iter().any(|section| section.0 == lock);
        self.waiters.iter().filter(uses).map(|other| other.urgency).min().unwrap_or(u64::MAX)
    }

    fn give(&mut self, lock: usize, task: usize, request: u64) {
        self.number += 1;
        let key = match self.queue {
            Queue::Priority => self.ceiling(lock, self.waiters[task].cpu),
            Queue::Fifo => request,
        };
        self.holders[lock] = Some(Place { key, number: self.number, task });
    }

    /// Who runs on a CPU in a slot.
    fn choose(&mut self, cpu: usize, slot: u64) -> Option<usize> {
        loop {
            let boosted = self.holders.iter().flatten().filter(|place| self.waiters[place.task].cpu == cpu);
            if let Some(place) = boosted.min() {
                return Some(place.task);
            }
            let waits = |task: usize| self.queues.iter().flatten().any(|place| place.task == task);
            let ready = (0..self.waiters.len()).filter(|task| {
                self.waiters[*task].cpu == cpu
                    && self.jobs[*task].front().is_some_and(|job| job.0 <= slot)
                    && !waits(*task)
            });
            let task = ready.min_by_key(|task| (self.waiters[*task].urgency, *task))?;
            let Some(lock) = self.jobs[task][0].1[0].0 else { return Some(task) };
            self.number += 1;
            if self.holders[lock].is_none() {
                self.give(lock, task, self.number);
                continue;
            }
            let key = if self.queue == Queue::Priority { self.waiters[task].urgency } else { 0 };
            self.queues[lock].push(Place { key, number: self.number, task });
        }
    }

    fn work(&mut self, task: usize, slot: u64, longest: &mut [i64]) {
        let job = &mut self.jobs[task][0];
        job.1[0].1 -= 1;
        if job.1[0].1 > 0 {
            return;
        }
        let lock = job.1.pop_front().unwrap().0;
        if job.1.is_empty() {
            longest[task] = longest[task].max((slot + 1 - job.0) as i64);
            self.jobs[task].pop_front();
        }
        let Some(lock) = lock else { return };
        self.holders[lock] = None;
        if let Some(next) = self.queues[lock].iter().copied().min() {
            self.queues[lock].retain(|place| *place != next);
            self.give(lock, next.task, next.number);
        }
    }

    fn play(&mut self, slots: u64, cpus: usize, draw: &mut Draw) -> Vec<i64> {
        let mut longest = vec![0; self.waiters.len()];
        for slot in 0..slots {
            let first = draw.below(cpus);
            let order = (0..cpus).map(|cpu| (cpu + first) % cpus);
            let chosen: Vec<_> = order.filter_map(|cpu| self.choose(cpu, slot)).collect();
            chosen.into_iter().for_each(|task| self.work(task, slot, &mut longest));
        }
        longest
    }
}

#[test]
fn responses_are_bounds() {
    let mut draw = Draw::new(45);
    let mut seen = [Seen::default(), Seen::default()];
    for _ in 0..rounds(2_000) {
        let cpus = 2 + draw.below(2);
        let (spinners, parts): (_, Vec<Parts>) = draw_set(&mut draw, cpus);
        let waiters = spinners.into_iter().map(|one| Waiter {
            task: Some(one.task),
            cpu: one.cpu,
            urgency: 2 * u64::from(one.level) + draw.upto(1),
            sections: one.sections,
        });
        let waiters: Vec<_> = waiters.collect();
        for (queue, seen) in [Queue::Priority, Queue::Fifo].into_iter().zip(&mut seen) {
            let found = responses(&waits(&waiters, queue)).into_iter();
            let bounds: Vec<_> =
                found.map(|found| found.map_or(Response::Unbounded, Response::Within)).collect();
            let mut longest = vec![0; waiters.len()];
            for _ in 0..6 {
                let jobs = parts.iter().zip(&waiters).map(|(parts, waiter)| {
                    let (mut ready, period) = (draw.upto(12), waiter.task.unwrap().period_ns);
                    let mut jobs = VecDeque::new();
                    while ready < 120 {
                        jobs.push_back((ready, parts.iter().copied().collect()));
                        ready += period + if draw.upto(3) == 0 { draw.upto(3) } else { 0 };
                    }
                    jobs
                });
                let jobs = jobs.collect();
                let (holders, queues) = (vec![None; 3], vec![Vec::new(); 3]);
                let mut player = Player { waiters: &waiters, queue, jobs, holders, queues, number: 0 };
                keep_longest(&mut longest, &player.play(150, cpus, &mut draw));
            }
            seen.add_all(&longest, &bounds, &(queue, &waiters, &parts));
        }
    }
    let equal = [seen[0].print("MPCP").equal(), seen[1].print("FMLP+").equal()];
    assert!(equal.iter().all(|equal| *equal > 100), "{equal:?}");
}
