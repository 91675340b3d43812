//! Tasks with locks, played slot by slot with each protocol: no response is above its bound, and tasks wait for each other for ever
//! only where a circle is found.

use crate::player::{all_phases, keep_longest, rounds, Draw, Seen};
use tierce_analysis::locks::{blocking, deadlock, Blocking, CriticalSection, Held, Protocol, Request};
use tierce_analysis::{Edf, FixedPriority, Response, Supply, Task};

fn section(lock: usize, length_ns: u64, inner: Vec<CriticalSection>) -> CriticalSection {
    CriticalSection { lock, length_ns, inner }
}

fn blocked(tasks: &[Task], blocking: &[Blocking]) -> Option<Vec<Task>> {
    let with = |(task, blocking): (&Task, &Blocking)| Some(Task { blocking_ns: blocking.most_ns?, ..*task });
    tasks.iter().zip(blocking).map(with).collect()
}

/// The example at the head of the file.
#[test]
fn the_one_between_waits_too() {
    let sections = [vec![section(0, 1, vec![])], vec![], vec![section(0, 2, vec![])]];
    let held = Held { task: 2, lock: 0, length_ns: 2, times: 1 };
    for protocol in [Protocol::Inheritance, Protocol::Ceiling] {
        let found = blocking(&sections, &[0, 1, 2], &[protocol]);
        assert_eq!(found[0], Blocking { most_ns: Some(2), held: vec![held] });
        assert_eq!(found[1], found[0], "in place of the first");
        assert_eq!(found[2], Blocking { most_ns: Some(0), held: vec![] });
    }
    let found = blocking(&sections, &[0, 1, 2], &[Protocol::None]);
    assert_eq!(found[0], Blocking { most_ns: None, held: vec![held] });
    assert_eq!(found[2].most_ns, Some(0));
}

/// Two less urgent tasks with a lock each: both count with inheritance, one with ceilings. A third one with both locks adds nothing
/// to two locks.
#[test]
fn one_of_each_task_or_of_each_lock() {
    let one = |lock, length| vec![section(lock, length, vec![])];
    let mut sections = vec![[one(0, 1), one(1, 1)].concat(), one(0, 3), one(1, 5)];
    let most = |sections: &[Vec<CriticalSection>], protocol| {
        let levels: Vec<_> = (0..sections.len() as u32).collect();
        let found = blocking(sections, &levels, &[protocol; 2]);
        found.iter().map(|found| found.most_ns.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(most(&sections, Protocol::Inheritance), [8, 5, 0]);
    assert_eq!(most(&sections, Protocol::Ceiling), [5, 5, 0]);
    sections.push([one(0, 2), one(1, 4)].concat());
    assert_eq!(most(&sections, Protocol::Inheritance), [8, 7, 4, 0]);
    assert_eq!(most(&sections, Protocol::Ceiling), [5, 5, 4, 0]);
}

/// Of different tasks and different locks: no choice of sections has a larger sum, and one has this one.
#[test]
fn the_largest_sum_of_sections_apart() {
    fn largest(tasks: &[Vec<u64>], locks: &mut Vec<usize>) -> u64 {
        let Some((first, others)) = tasks.split_first() else { return 0 };
        let mut most = largest(others, locks);
        for (lock, length) in first.iter().enumerate() {
            if *length > 0 && !locks.contains(&lock) {
                locks.push(lock);
                most = most.max(length + largest(others, locks));
                locks.pop();
            }
        }
        most
    }
    let (mut draw, mut between) = (Draw::new(0x10C5), 0);
    for _ in 0..2_000 {
        let (tasks, locks) = (1 + draw.below(5), 1 + draw.below(5));
        let lengths: Vec<Vec<u64>> = (0..tasks)
            .map(|_| (0..locks).map(|_| draw.below(9).saturating_sub(2) as u64).collect())
            .collect();
        let users = (0..locks).map(|lock| section(lock, 1, vec![])).collect();
        let of = |lengths: &Vec<u64>| {
            let used = lengths.iter().enumerate().filter(|(_, length)| **length > 0);
            used.map(|(lock, length)| section(lock, *length, vec![])).collect()
        };
        let sections: Vec<Vec<_>> = std::iter::once(users).chain(lengths.iter().map(of)).collect();
        let levels: Vec<_> = (0..sections.len() as u32).collect();
        let found = blocking(&sections, &levels, &vec![Protocol::Inheritance; locks]).swap_remove(0);
        assert_eq!(found.most_ns, Some(largest(&lengths, &mut Vec::new())), "{lengths:?}");
        assert_eq!(found.held.iter().map(|held| held.length_ns).sum::<u64>(), found.most_ns.unwrap());
        let of_tasks: u64 = lengths.iter().flat_map(|lengths| lengths.iter().max()).sum();
        let of_locks: u64 = (0..locks).flat_map(|lock| lengths.iter().map(move |all| all[lock]).max()).sum();
        between += usize::from(found.most_ns < Some(of_tasks.min(of_locks)));
    }
    assert!(between > 200, "{between}");
}

/// The second waits for the first lock, whose holder waits for the second one, which nobody as urgent uses.
#[test]
fn waits_go_through_others() {
    let sections = [
        vec![section(0, 1, vec![])],
        vec![section(0, 3, vec![section(1, 1, vec![])])],
        vec![section(1, 7, vec![])],
    ];
    let found = blocking(&sections, &[0, 1, 2], &[Protocol::Inheritance; 2]);
    assert_eq!(found[0].most_ns, Some(10));
    let found = blocking(&sections, &[0, 1, 2], &[Protocol::Ceiling; 2]);
    assert_eq!(found[0].most_ns, Some(3), "who has a lock does not wait for another one");
}

#[test]
fn circles_are_named() {
    let nest = |outer, inner| vec![section(outer, 2, vec![section(inner, 1, vec![])])];
    let request = |task, held: &[usize], wants| Request { task, held: held.to_vec(), wants };
    assert_eq!(deadlock(&[nest(0, 1), nest(0, 1)]), None);
    let two = [nest(0, 1), vec![section(1, 1, vec![])], nest(1, 0)];
    assert_eq!(deadlock(&two), Some(vec![request(0, &[0], 1), request(2, &[1], 0)]));
    let three = [nest(0, 1), nest(1, 2), nest(2, 0)];
    assert_eq!(deadlock(&three).unwrap().len(), 3);
    assert_eq!(deadlock(&[nest(0, 0)]), Some(vec![request(0, &[0], 0)]), "for itself");
    assert_eq!(deadlock(&[[nest(0, 1), nest(1, 0)].concat(), nest(0, 1)]).unwrap().len(), 2);
    assert_eq!(deadlock(&[[nest(0, 1), nest(1, 0)].concat()]), None, "one task has one job at a time");
    let gate = |sections| vec![section(2, 3, sections)];
    assert_eq!(deadlock(&[gate(nest(0, 1)), gate(nest(1, 0))]), None, "never both within their sections");
}

/// Many tasks, many locks, all in any order: found at once, whatever there is.
#[test]
fn large_sets_are_decided_soon() {
    let mut draw = Draw::new(43);
    for round in 0..40 {
        let gate = round % 2 == 0;
        let one = |draw: &mut Draw| {
            let (outer, inner) = (draw.below(30), draw.below(29));
            let inner = if inner >= outer { inner + 1 } else { inner };
            let nested = section(outer, 2, vec![section(inner, 1, vec![])]);
            if gate {
                section(30, 3, vec![nested])
            } else {
                nested
            }
        };
        let sections: Vec<Vec<_>> = (0..300).map(|_| (0..3).map(|_| one(&mut draw)).collect()).collect();
        let found = deadlock(&sections);
        assert!(gate || found.is_some());
        for (at, request) in found.iter().flatten().enumerate() {
            let circle = found.as_ref().unwrap();
            assert!(circle[(at + 1) % circle.len()].held.contains(&request.wants));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Run,
    Lock(usize),
    Unlock(usize),
}

/// How a lock is given, and who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    None,
    Inheritance,
    Ceiling,
    Immediate,
    /// A job is begun only if its level is above all ceilings.
    Stack,
}

impl Rule {
    fn protocol(self) -> Protocol {
        match self {
            Self::None => Protocol::None,
            Self::Inheritance => Protocol::Inheritance,
            _ => Protocol::Ceiling,
        }
    }
}

#[derive(Clone, Debug)]
struct Job {
    ready: u64,
    release: i64,
    task: usize,
    ops: Vec<Op>,
}

/// Less is more urgent. The last is the task.
type Key = (i64, i64, usize);

struct Under {
    job: Job,
    at: usize,
    held: Vec<usize>,
    begun: bool,
}

struct Player<'a> {
    rule: Rule,
    /// By deadline, or by level.
    earliest: bool,
    deadlines: &'a [u64],
    levels: &'a [u32],
    /// Per lock.
    ceilings: Vec<u32>,
    under: Vec<Under>,
}

impl Player<'_> {
    fn own_key(&self, at: usize) -> Key {
        let (job, held) = (&self.under[at].job, &self.under[at].held);
        if self.earliest {
            return (job.release + self.deadlines[job.task] as i64, 1, job.task);
        }
        let own = (i64::from(self.levels[job.task]), 1, job.task);
        let raised = held.iter().filter(|_| self.rule == Rule::Immediate);
        // Who holds it is not preempted by an equal.
        raised
            .map(|lock| (i64::from(self.ceilings[*lock]), 0, job.task))
            .min()
            .map_or(own, |key| key.min(own))
    }

    /// Whom this job has to wait for, if it is to go on.
    fn waits_for(&self, at: usize) -> Option<usize> {
        let this = &self.under[at];
        let level = self.levels[this.job.task];
        let holder = |lock: usize| self.under.iter().position(|other| other.held.contains(&lock));
        // The ceiling of what others hold.
        let above = || {
            let others = self.under.iter().enumerate().filter(|(other, _)| *other != at);
            let held = others.flat_map(|(other, under)| under.held.iter().map(move |lock| (other, *lock)));
            held.min_by_key(|(_, lock)| self.ceilings[*lock])
                .filter(|(_, lock)| self.ceilings[*lock] <= level)
                .map(|(other, _)| other)
        };
        match this.job.ops[this.at] {
            _ if self.rule == Rule::Stack => above().filter(|_| !this.begun),
            Op::Lock(lock) if self.rule == Rule::Ceiling => holder(lock).or_else(above),
            Op::Lock(lock) => holder(lock),
            _ => None,
        }
    }

    /// Who runs in this slot; `Err`: all that is left waits.
    fn choose(&mut self) -> Result<Option<usize>, ()> {
        let first_of_task = |at: &usize| {
            let this = &self.under[*at].job;
            self.under.iter().all(|other| other.job.task != this.task || other.job.release >= this.release)
        };
        let ready: Vec<_> = (0..self.under.len()).filter(first_of_task).collect();
        let mut waits: Vec<Option<usize>> = vec![None; self.under.len()];
        loop {
            let mut keys: Vec<_> = (0..self.under.len()).map(|at| self.own_key(at)).collect();
            for _ in 0..if self.rule == Rule::None { 0 } else { keys.len() } {
                for at in 0..keys.len() {
                    if let Some(holder) = waits[at] {
                        keys[holder] = keys[holder].min(keys[at]);
                    }
                }
            }
            let can_run = ready.iter().filter(|at| waits[**at].is_none());
            let Some(chosen) = can_run.min_by_key(|at| keys[**at]).copied() else {
                return if ready.is_empty() { Ok(None) } else { Err(()) };
            };
            if let Some(holder) = self.waits_for(chosen) {
                waits[chosen] = Some(holder);
                continue;
            }
            self.under[chosen].begun = true;
            match self.under[chosen].job.ops[self.under[chosen].at] {
                Op::Run => return Ok(Some(chosen)),
                _ => {
                    self.go_on(chosen);
                    waits.fill(None); // a section without work may be over
                }
            }
        }
    }

    /// Past the locks that it leaves, or into the next one that it can have; others may come before a second one.
    fn go_on(&mut self, at: usize) {
        let mut changed = false;
        while let Some(op) = self.under[at].job.ops.get(self.under[at].at).copied() {
            match op {
                Op::Run => break,
                Op::Lock(_) if changed || self.waits_for(at).is_some() => break,
                Op::Lock(lock) => {
                    let free = self.under.iter().all(|other| !other.held.contains(&lock));
                    assert!(free, "nobody else has it");
                    self.under[at].held.push(lock);
                }
                Op::Unlock(lock) => {
                    assert_eq!(self.under[at].held.pop(), Some(lock));
                }
            }
            self.under[at].at += 1;
            changed = true;
        }
    }

    /// The longest response of each task; `Err`: some wait for each other for ever.
    fn play(&mut self, jobs: &[Job], slots: u64, given: impl Fn(u64) -> bool) -> Result<Vec<i64>, ()> {
        let mut jobs = jobs.to_vec();
        jobs.sort_by_key(|job| (job.ready, job.release));
        let mut jobs = jobs.into_iter().peekable();
        let mut longest = vec![0; self.levels.len()];
        for slot in 0..slots {
            while let Some(job) = jobs.next_if(|job| job.ready <= slot) {
                self.under.push(Under { job, at: 0, held: vec![], begun: false });
            }
            if !given(slot) {
                continue;
            }
            let Some(at) = self.choose()? else { continue };
            self.under[at].at += 1;
            self.go_on(at);
            let this = &self.under[at];
            if this.at == this.job.ops.len() {
                assert!(this.held.is_empty());
                longest[this.job.task] = longest[this.job.task].max(slot as i64 + 1 - this.job.release);
                self.under.remove(at);
            }
        }
        Ok(longest)
    }
}

/// A set of tasks, and what each does.
#[derive(Debug)]
struct Set {
    tasks: Vec<Task>,
    levels: Vec<u32>,
    locks: usize,
    ops: Vec<Vec<Op>>,
    sections: Vec<Vec<CriticalSection>>,
}

/// Work with sections anywhere; `ordered`: a lock only after those of lower numbers.
fn draw_ops(
    draw: &mut Draw,
    work: u64,
    locks: usize,
    held: &mut Vec<usize>,
    ordered: bool,
) -> (Vec<Op>, Vec<CriticalSection>) {
    let (mut ops, mut sections, mut left) = (vec![], vec![], work);
    while left > 0 {
        let lock = draw.below(locks);
        let after = |held: &usize| if ordered { lock > *held } else { lock != *held };
        if held.len() < 3 && held.iter().all(after) && draw.below(3) > 0 {
            let length = 1 + draw.upto(left - 1);
            held.push(lock);
            let (within, inner) = draw_ops(draw, length, locks, held, ordered);
            held.pop();
            ops.push(Op::Lock(lock));
            ops.extend(within);
            ops.push(Op::Unlock(lock));
            sections.push(section(lock, length, inner));
            left -= length;
        } else {
            ops.push(Op::Run);
            left -= 1;
        }
    }
    (ops, sections)
}

fn draw_set(draw: &mut Draw, periods: &[u64], count: u64, jitter: bool, ordered: bool) -> Set {
    let locks = 1 + draw.below(3);
    let mut set = Set { tasks: vec![], levels: vec![], locks, ops: vec![], sections: vec![] };
    for index in 0..count {
        let task = draw.task(periods, jitter);
        let work_ns = (2 * task.work_ns).div_ceil(count).min(task.period_ns);
        let task = Task { work_ns, deadline_ns: task.deadline_ns.max(work_ns), ..task };
        let (ops, sections) = draw_ops(draw, work_ns, locks, &mut vec![], ordered);
        set.tasks.push(task);
        set.ops.push(ops);
        set.sections.push(sections);
        set.levels.push(index as u32);
    }
    if draw.upto(4) == 0 && count > 2 {
        set.levels[1] = 0;
    }
    set
}

impl Set {
    /// Less work than most now and then, in some places.
    fn ops_of(&self, draw: &mut Draw, task: usize) -> Vec<Op> {
        let mut ops = self.ops[task].clone();
        if draw.upto(3) == 0 {
            let keep = ops.iter().rposition(|op| *op == Op::Run).unwrap();
            let mut at = 0;
            ops.retain(|op| {
                at += 1;
                *op != Op::Run || at == keep + 1 || draw.upto(2) > 0
            });
        }
        ops
    }

    fn random_jobs(&self, draw: &mut Draw, slots: u64) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            let (mut release, mut before) = (draw.upto(task.period_ns), 0);
            let gaps = draw.upto(2) == 0;
            while release < slots {
                let late = [0, task.jitter_ns, draw.upto(task.jitter_ns)][draw.below(3)];
                before = before.max(release + late);
                let ops = self.ops_of(draw, index);
                jobs.push(Job { ready: before, release: release as i64, task: index, ops });
                release += task.period_ns + if gaps { draw.upto(3) } else { 0 };
            }
        }
        jobs
    }

    fn jobs_with_phases(&self, phases: &[u64], slots: u64) -> Vec<Job> {
        let of = |(index, task): (usize, &Task)| {
            let releases = (0..).map(move |job| phases[index] + job * task.period_ns);
            let jobs = releases.take_while(|at| *at < slots).map(move |at| Job {
                ready: at,
                release: at as i64,
                task: index,
                ops: self.ops[index].clone(),
            });
            jobs.collect::<Vec<_>>()
        };
        self.tasks.iter().enumerate().flat_map(of).collect()
    }

    /// Levels of deadlines: the shorter the more urgent.
    fn deadline_levels(&self) -> Vec<u32> {
        self.tasks.iter().map(|task| task.deadline_ns as u32).collect()
    }

    fn levels(&self, earliest: bool) -> Vec<u32> {
        if earliest {
            self.deadline_levels()
        } else {
            self.levels.clone()
        }
    }

    fn play(
        &self,
        rule: Rule,
        earliest: bool,
        jobs: &[Job],
        slots: u64,
        given: impl Fn(u64) -> bool,
    ) -> Result<Vec<i64>, ()> {
        let deadlines: Vec<_> = self.tasks.iter().map(|task| task.deadline_ns).collect();
        let levels = self.levels(earliest);
        let mut ceilings = vec![u32::MAX; self.locks];
        for (ops, level) in self.ops.iter().zip(&levels) {
            for op in ops {
                if let Op::Lock(lock) = op {
                    ceilings[*lock] = ceilings[*lock].min(*level);
                }
            }
        }
        let (deadlines, levels) = (&deadlines, &levels);
        Player { rule, earliest, deadlines, levels, ceilings, under: vec![] }.play(jobs, slots, given)
    }

    /// Bounds of all responses, where there are any.
    fn bounds(&self, rule: Rule, earliest: bool, supply: &Supply) -> Option<Vec<Response>> {
        let levels = self.levels(earliest);
        let found = blocking(&self.sections, &levels, &vec![rule.protocol(); self.locks]);
        let tasks = blocked(&self.tasks, &found)?;
        Some(if earliest {
            Edf::new().responses(&tasks, supply).to_vec()
        } else {
            FixedPriority::new().responses_by_level(&tasks, &levels, supply).to_vec()
        })
    }
}

const RULES: [(Rule, bool); 6] = [
    (Rule::None, false),
    (Rule::Inheritance, false),
    (Rule::Ceiling, false),
    (Rule::Immediate, false),
    (Rule::Inheritance, true),
    (Rule::Stack, true),
];

#[test]
fn responses_are_bounds() {
    let mut draw = Draw::new(40);
    let mut seen: Vec<_> = RULES.iter().map(|_| Seen::default()).collect();
    for round in 0..rounds(3_000) {
        let (count, jitter) = (2 + draw.upto(3), round % 4 == 0);
        let mut set = draw_set(&mut draw, &[5, 6, 8, 10, 12, 15, 20, 30], count, jitter, true);
        if let (0, [.., last]) = (round % 3, &mut set.levels[..]) {
            *last += 1; // the same order
        }
        let (budget, period) = (3 + draw.upto(3), 6);
        let supply = if round % 5 == 0 { Supply::periodic(budget, period).unwrap() } else { Supply::WHOLE };
        let whole = matches!(supply, Supply::Whole(_));
        for ((rule, earliest), seen) in RULES.iter().zip(&mut seen) {
            if *earliest && jitter {
                continue;
            }
            let Some(bounds) = set.bounds(*rule, *earliest, &supply) else { continue };
            let mut longest = vec![0; set.tasks.len()];
            for _ in 0..6 {
                let jobs = set.random_jobs(&mut draw, 300);
                let early = draw.upto(period);
                // The budget first in one period, and last in all others.
                let given = |slot: u64| {
                    let first = (slot + early) / period == 0;
                    let at = (slot + early) % period;
                    whole || if first { at < budget } else { at >= period - budget }
                };
                let played = set.play(*rule, *earliest, &jobs, 300, given);
                keep_longest(&mut longest, &played.expect("in order there is no deadlock"));
            }
            seen.add_all(&longest, &bounds, &(rule, &set, &supply));
        }
    }
    for ((rule, earliest), seen) in RULES.iter().zip(&seen) {
        let equal =
            seen.print(&format!("{rule:?}, {}", if *earliest { "deadlines" } else { "priorities" })).equal();
        assert!(equal > 500, "{rule:?} {equal}");
    }
}

/// All phases of small sets: what is seen is near the bound, and with ceilings often equal for all tasks.
#[test]
fn all_phases_of_small_sets() {
    let mut draw = Draw::new(41);
    let mut seen: Vec<_> = RULES.iter().map(|_| Seen::default()).collect();
    for _ in 0..rounds(60) {
        let count = 2 + draw.upto(1);
        let set = draw_set(&mut draw, &[4, 6, 8, 12], count, false, true);
        let periods: Vec<_> = set.tasks.iter().map(|task| task.period_ns).collect();
        for ((rule, earliest), seen) in RULES.iter().zip(&mut seen) {
            let Some(bounds) = set.bounds(*rule, *earliest, &Supply::WHOLE) else { continue };
            let mut longest = vec![0; set.tasks.len()];
            for phases in all_phases(&periods) {
                let jobs = set.jobs_with_phases(&phases, 60);
                keep_longest(&mut longest, &set.play(*rule, *earliest, &jobs, 60, |_| true).unwrap());
            }
            seen.add_all(&longest, &bounds, &(rule, &set));
        }
    }
    for ((rule, earliest), seen) in RULES.iter().zip(&seen) {
        let equal =
            seen.print(&format!("{rule:?}, {}", if *earliest { "deadlines" } else { "priorities" })).equal();
        assert!(equal > 20, "{rule:?} {equal}");
    }
}

/// Locks in any order: a deadlock comes only where a circle is found, and with ceilings never.
#[test]
fn deadlocks_are_circles() {
    let mut draw = Draw::new(42);
    let (mut circles, mut come, mut none) = (0, 0, 0);
    for _ in 0..rounds(400) {
        let count = 2 + draw.upto(1);
        let set = draw_set(&mut draw, &[9, 11, 13], count, false, false);
        let circle = deadlock(&set.sections);
        let mut dead = false;
        for _ in 0..150 {
            let jobs = set.random_jobs(&mut draw, 200);
            let stands = |rule, earliest| set.play(rule, earliest, &jobs, 200, |_| true).is_err();
            dead |= stands(Rule::None, false) || stands(Rule::Inheritance, draw.upto(1) == 0);
            let ceilings =
                stands(Rule::Ceiling, false) || stands(Rule::Immediate, false) || stands(Rule::Stack, true);
            assert!(!ceilings, "{set:?}");
        }
        assert!(circle.is_some() || !dead, "{set:?}");
        circles += u32::from(circle.is_some());
        come += u32::from(dead);
        none += u32::from(circle.is_none());
    }
    println!("{circles} sets with a circle, {come} of them with a deadlock; {none} without");
    // Where a job begins with both locks, or the two are equals, no slot lies between.
    assert!(come * 10 > circles * 4 && circles > 30 && none > 30, "{come} {circles} {none}");
}
