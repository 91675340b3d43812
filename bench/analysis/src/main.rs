//! Task sets per second: exact response times under fixed priorities and EDF, also without preemption, and in order of arrival; the
//! demand test of EDF, global tests.
//!
//! Sets: n tasks, periods log-uniform from 1 ms to 1 s in whole ns, utilisations by UUniFast with a sum uniform from 0.7 to
//! 0.95, rate-monotonic order. Fixed priorities: deadline = period, all response times, also of sets that miss. EDF:
//! deadlines uniform from half a period to the period, and from the work to the period. Global: the same on four CPUs, with
//! 0.4 to 0.65 of them asked for. Each row is timed over the same
//! sets again and again for at least the given time; results are compared with the peer's.
//!
//! usage: bench-analysis [SECONDS per figure, default 2]

use response_time_analysis::{arrival, demand, edf, fifo as peer_fifo, fixed_priority, time, wcet};
use std::hint::black_box;
use std::time::Duration;
use tierce_analysis::{fifo, global, sections, Demand, Edf, FixedPriority, Response, Sections, Supply, Task};

const SEED: u64 = 2001;

/// SplitMix64.
struct Draw(u64);

impl Draw {
    /// From 0 up to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `from` is the share of the period at which deadlines begin; `None`: at the work.
    fn set(&mut self, count: usize, from: Option<f64>) -> Vec<Task> {
        let used = 0.7 + 0.25 * self.unit();
        self.set_of(count, from, used)
    }

    fn set_of(&mut self, count: usize, from: Option<f64>, mut left: f64) -> Vec<Task> {
        let mut tasks: Vec<_> = (0..count)
            .map(|index| {
                let rest = left * self.unit().powf(1.0 / (count - index) as f64);
                let share = if index + 1 == count { left } else { left - rest };
                left = rest;
                let period_ns = (1e6 * 1000f64.powf(self.unit())) as u64;
                let work_ns = ((share * period_ns as f64) as u64).max(1);
                let first = from.map_or(work_ns, |from| ((from * period_ns as f64) as u64).max(work_ns));
                let deadline_ns = first + (self.unit() * (period_ns.saturating_sub(first) + 1) as f64) as u64;
                Task { deadline_ns, ..Task::new(work_ns, period_ns) }
            })
            .collect();
        tasks.sort_by_key(|task| task.period_ns);
        tasks
    }
}

/// CPU time of this thread, so that neighbours do not count.
fn cpu_time() -> Duration {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the time of threads");
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("ns"))
}

/// Sets per second of CPU time.
fn rate(sets: &[Vec<Task>], least: Duration, mut analyse: impl FnMut(&[Task])) -> f64 {
    let begin = cpu_time();
    let mut done = 0;
    while done < sets.len() || cpu_time() - begin < least {
        for set in sets.iter().skip(done % sets.len()).take(50) {
            analyse(set);
            done += 1;
        }
    }
    done as f64 / (cpu_time() - begin).as_secs_f64()
}

/// Response times by the crate, 0 where it finds none below a minute.
fn peer(tasks: &[Task], by_deadline: bool, found: &mut Vec<u64>) {
    let arrivals: Vec<_> = tasks
        .iter()
        .map(|task| arrival::Sporadic::new_zero_jitter(time::Duration::from(task.period_ns)))
        .collect();
    let costs: Vec<_> =
        tasks.iter().map(|task| wcet::Scalar::new(time::Service::from(task.work_ns))).collect();
    let bounds: Vec<_> =
        costs.iter().zip(&arrivals).map(|(cost, arrival)| demand::RBF::new(arrival, cost)).collect();
    let limit = time::Duration::from(60_000_000_000);
    let with_deadline = |index: usize| edf::fully_preemptive::Task {
        rbf: &bounds[index],
        deadline: time::Duration::from(tasks[index].deadline_ns),
    };
    found.clear();
    for (index, bound) in bounds.iter().enumerate() {
        let response = if by_deadline {
            let others: Vec<_> =
                (0..tasks.len()).filter(|other| *other != index).map(with_deadline).collect();
            edf::fully_preemptive::dedicated_uniproc_rta(&with_deadline(index), &others, limit)
        } else {
            fixed_priority::fully_preemptive::dedicated_uniproc_rta(bound, &bounds[..index], limit)
        };
        found.push(response.map_or(0, u64::from));
    }
}

/// How jobs are kept from preemption, or that they run in order of arrival.
#[derive(Clone, Copy, PartialEq)]
enum How {
    FixedPriorityWhole,
    /// The last third of a job is a region.
    FixedPriorityLimited,
    EdfWhole,
    Arrival,
}

impl How {
    fn sections(self, tasks: &[Task]) -> Vec<Sections> {
        let part = if self == Self::FixedPriorityLimited { 3 } else { 1 };
        let region = |task: &Task| task.work_ns.div_ceil(part);
        let of = |task: &Task| Sections { longest_ns: region(task), last_ns: region(task) };
        tasks.iter().map(of).collect()
    }

    fn ours(self, tasks: &[Task]) -> Vec<Response> {
        if self == Self::Arrival {
            return fifo::responses(tasks, &Supply::WHOLE);
        }
        let of = self.sections(tasks);
        if self == Self::EdfWhole {
            return sections::earliest_deadline(tasks, &of, &Supply::WHOLE).1;
        }
        let levels: Vec<_> = (0..).take(tasks.len()).collect();
        sections::fixed_priority(tasks, &of, &levels, &Supply::WHOLE)
    }

    /// Response times by the crate, 0 where it finds none below a minute.
    fn peer(self, tasks: &[Task]) -> Vec<u64> {
        let arrivals: Vec<_> = tasks
            .iter()
            .map(|task| arrival::Sporadic::new_zero_jitter(time::Duration::from(task.period_ns)))
            .collect();
        let cost = |task: &Task| wcet::Scalar::new(time::Service::from(task.work_ns));
        let bounds: Vec<_> = tasks
            .iter()
            .zip(&arrivals)
            .map(|(task, arrival)| demand::RBF::new(arrival, cost(task)))
            .collect();
        let limit = time::Duration::from(60_000_000_000);
        if self == Self::Arrival {
            let response = peer_fifo::dedicated_uniproc_rta(&demand::Slice::of(&bounds), limit);
            return vec![response.map_or(0, u64::from); tasks.len()];
        }
        let of = self.sections(tasks);
        let with_deadline = |at: usize| edf::fully_nonpreemptive::Task {
            wcet: cost(&tasks[at]),
            arrivals: &arrivals[at],
            deadline: time::Duration::from(tasks[at].deadline_ns),
        };
        let one = |index: usize| {
            let longest = of[index + 1..].iter().map(|section| section.longest_ns - 1).max().unwrap_or(0);
            let (arrivals, blocking_bound) = (&arrivals[index], time::Service::from(longest));
            let (wcet, above) = (cost(&tasks[index]), &bounds[..index]);
            let response = match self {
                Self::EdfWhole => {
                    let others: Vec<_> =
                        (0..tasks.len()).filter(|other| *other != index).map(with_deadline).collect();
                    edf::fully_nonpreemptive::dedicated_uniproc_rta(&with_deadline(index), &others, limit)
                }
                Self::FixedPriorityLimited => {
                    let last_np_segment = time::Service::from(of[index].last_ns);
                    let task = fixed_priority::limited_preemptive::TaskUnderAnalysis {
                        wcet,
                        arrivals,
                        last_np_segment,
                        blocking_bound,
                    };
                    fixed_priority::limited_preemptive::dedicated_uniproc_rta(&task, above, limit)
                }
                _ => {
                    let task = fixed_priority::fully_nonpreemptive::TaskUnderAnalysis {
                        wcet,
                        arrivals,
                        blocking_bound,
                    };
                    fixed_priority::fully_nonpreemptive::dedicated_uniproc_rta(&task, above, limit)
                }
            };
            response.map_or(0, u64::from)
        };
        (0..tasks.len()).map(one).collect()
    }
}

/// The same result wherever the peer has one.
fn compare(ours: &[Response], peer: &[u64], set: &[Task]) {
    for (ours, peer) in ours.iter().zip(peer) {
        assert!(*peer == 0 || ours.ns() == Some(*peer), "{ours:?}, the peer says {peer}: {set:?}");
    }
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(2.0, |text| text.parse().expect("seconds"));
    let least = Duration::from_secs_f64(seconds);
    println!("seed {SEED}; sets per second of CPU time, one thread\n");
    fixed_priorities(least);
    for (from, text) in [(Some(0.5), "half the period to the period"), (None, "the work to the period")] {
        edf_demand(least, from, text);
    }
    edf_responses(least);
    without_preemption(least);
    global(least);
}

fn without_preemption(least: Duration) {
    println!("\nwithout preemption, all response times    n     tierce       peer   ratio   equal responses");
    for (how, name, counts) in [
        (How::FixedPriorityWhole, "fixed priorities, whole jobs", &[10, 50][..]),
        (How::FixedPriorityLimited, "fixed priorities, last third", &[10, 50]),
        (How::Arrival, "order of arrival", &[10, 50]),
        (How::EdfWhole, "EDF, whole jobs", &[5]),
    ] {
        for count in counts {
            let mut draw = Draw(SEED);
            let sets: Vec<_> = (0..200).map(|_| draw.set(*count, Some(0.5))).collect();
            let mut equal = 0;
            for set in &sets {
                let found = how.peer(set);
                compare(&how.ours(set), &found, set);
                equal += found.iter().filter(|found| **found > 0).count();
            }
            let ours = rate(&sets, least, |set| {
                black_box(how.ours(set));
            });
            let theirs = rate(&sets, least, |set| {
                black_box(how.peer(set));
            });
            println!("{name:>32} {count:>10} {ours:>10.0} {theirs:>10.0} {:>7.1} {equal:>17}", ours / theirs);
        }
    }
}

fn fixed_priorities(least: Duration) {
    println!("fixed priorities, all response times      n     tierce       peer   ratio   schedulable");
    for count in [10, 20, 50, 100] {
        let mut draw = Draw(SEED);
        let sets: Vec<_> = (0..2000)
            .map(|_| {
                let mut set = draw.set(count, None);
                set.iter_mut().for_each(|task| task.deadline_ns = task.period_ns);
                set
            })
            .collect();
        let mut analysis = FixedPriority::new();
        let mut found = Vec::new();
        let mut schedulable = 0;
        for set in sets.iter().take(400) {
            peer(set, false, &mut found);
            compare(analysis.responses(set, &Supply::WHOLE), &found, set);
            schedulable += u32::from(analysis.schedulable(set, &Supply::WHOLE));
        }
        let ours = rate(&sets, least, |set| {
            black_box(analysis.responses(set, &Supply::WHOLE));
        });
        let theirs = rate(&sets[..400], least, |set| peer(black_box(set), false, &mut found));
        let share = f64::from(schedulable) / 4.0;
        println!("{count:>43} {ours:>10.0} {theirs:>10.0} {:>7.1} {share:>11.1} %", ours / theirs);
    }
}

fn edf_demand(least: Duration, from: Option<f64>, text: &str) {
    println!("\nEDF demand test, deadlines from {text}");
    println!("                                          n     tierce   schedulable");
    for count in [10, 20, 50, 100] {
        let mut draw = Draw(SEED);
        let sets: Vec<_> = (0..2000).map(|_| draw.set(count, from)).collect();
        let mut edf = Edf::new();
        let met = sets.iter().filter(|set| edf.demand(set, &Supply::WHOLE) == Demand::Met).count();
        let ours = rate(&sets, least, |set| {
            black_box(edf.demand(set, &Supply::WHOLE));
        });
        println!("{count:>43} {ours:>10.0} {:>11.1} %", met as f64 / 20.0);
    }
}

fn edf_responses(least: Duration) {
    println!("\nEDF, all response times, deadlines from half the period to the period");
    println!("                                          n     tierce       peer   ratio");
    for (count, sets) in [(5, 200), (10, 40)] {
        let mut draw = Draw(SEED);
        let sets: Vec<_> = (0..sets).map(|_| draw.set(count, Some(0.5))).collect();
        let (mut edf, mut found) = (Edf::new(), Vec::new());
        for set in &sets {
            peer(set, true, &mut found);
            compare(edf.responses(set, &Supply::WHOLE), &found, set);
        }
        let ours = rate(&sets, least, |set| {
            black_box(edf.responses(set, &Supply::WHOLE));
        });
        let theirs = rate(&sets, least, |set| peer(black_box(set), true, &mut found));
        println!("{count:>43} {ours:>10.1} {theirs:>10.1} {:>7.1}", ours / theirs);
    }
}

fn global(least: Duration) {
    println!("\nglobal, four CPUs                         n        EDF   accepted   fixed pr.   accepted");
    for count in [10, 20, 50] {
        let mut draw = Draw(SEED);
        let sets: Vec<_> = (0..100)
            .map(|_| {
                let used = 1.6 + draw.unit();
                let mut set = draw.set_of(count, None, used);
                for task in &mut set {
                    task.work_ns = task.work_ns.min(task.period_ns);
                    task.deadline_ns = task.period_ns;
                }
                set
            })
            .collect();
        let levels: Vec<_> = (0..count as u32).collect();
        let edf = |set: &[Task]| global::earliest_deadline(set, 4).expect("supported").schedulable;
        let fixed = |set: &[Task]| global::fixed_priority(set, &levels, 4).expect("supported").schedulable;
        let accepted = |test: &dyn Fn(&[Task]) -> bool| sets.iter().filter(|set| test(set)).count();
        let rates = [&edf as &dyn Fn(&[Task]) -> bool, &fixed].map(|test| {
            let rate = rate(&sets, least, |set| {
                black_box(test(set));
            });
            (rate, accepted(test))
        });
        let [(by_deadline, met), (by_priority, fit)] = rates;
        println!("{count:>43} {by_deadline:>10.0} {met:>8} % {by_priority:>11.0} {fit:>8} %");
    }
}
