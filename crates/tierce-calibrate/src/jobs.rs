//! Jobs: what a thread does from one release to the next, and how much CPU time that takes.

use crate::burst::Burst;
use crate::comb::Clock;
use crate::periods::Rhythm;

/// CPU time of jobs, by order statistics: a quantile is the time of a job that there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How many jobs.
    pub jobs: u64,
    /// The least time that half of the jobs do not exceed.
    pub median_ns: u64,
    /// That 90 % do not exceed.
    pub p90_ns: u64,
    /// That 99 % do not exceed.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Work {
    /// Of these jobs.
    pub fn of(mut times_ns: Vec<u64>) -> Work {
        times_ns.sort_unstable();
        let count = times_ns.len();
        let quantile = |percent: usize| match count {
            0 => 0,
            _ => times_ns[(count * percent).div_ceil(100) - 1],
        };
        Work {
            jobs: count as u64,
            median_ns: quantile(50),
            p90_ns: quantile(90),
            p99_ns: quantile(99),
            max_ns: quantile(100),
        }
    }
}

/// The jobs of one period of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// CPU time of each.
    pub work_ns: Vec<u64>,
    /// Of these, how many began without a wake-up, because the one before was not complete.
    pub overruns: u64,
    /// Bursts within jobs, after their first one.
    pub resumed: u64,
}

/// With fewer jobs that are one period's alone, all jobs count.
const PURE_MIN: usize = 8;

struct Job {
    rhythm: usize,
    release: usize,
    ran_ns: u64,
    /// Releases of its own period that came while it ran.
    overruns: u64,
    /// A release of another period came while it ran: what it used may be that one's.
    is_mixed: bool,
    resumed: u64,
}

/// The jobs of each period. A burst that no clock has released is part of the job before it, unless that one's period is over.
pub fn jobs(bursts: &[Burst], rhythms: &[Rhythm], to_ns: u64) -> Vec<Jobs> {
    let mut released = vec![None; bursts.len()];
    for (number, rhythm) in rhythms.iter().enumerate() {
        rhythm.releases.iter().for_each(|at| released[*at] = Some(number));
    }
    let (mut all, mut current): (Vec<Job>, Option<Job>) = (Vec::new(), None);
    for (at, burst) in bursts.iter().enumerate() {
        if let Some(rhythm) = released[at] {
            all.extend(current.take());
            let mut job = Job { rhythm, release: at, ran_ns: 0, overruns: 0, is_mixed: false, resumed: 0 };
            add(&mut job, bursts, burst, rhythms);
            current = Some(job);
        } else if let Some(job) = &mut current {
            let lasts_ns = rhythms[job.rhythm].clock.period_ns() * (1 + job.overruns);
            if burst.woke_ns < bursts[job.release].woke_ns + lasts_ns {
                job.resumed += 1;
                add(job, bursts, burst, rhythms);
            }
        }
    }
    let is_over = |job: &Job| bursts[job.release].woke_ns + rhythms[job.rhythm].clock.period_ns() <= to_ns;
    all.extend(current.filter(is_over));
    (0..rhythms.len()).map(|rhythm| of_rhythm(all.iter().filter(|job| job.rhythm == rhythm))).collect()
}

fn add(job: &mut Job, bursts: &[Burst], burst: &Burst, rhythms: &[Rhythm]) {
    job.ran_ns += burst.ran_ns;
    for (number, rhythm) in rhythms.iter().enumerate() {
        let Clock::Absolute(comb) = rhythm.clock else { continue };
        let tolerance = rhythm.tolerance_ns as i64;
        // The last release that came well before it slept.
        let last = comb.slot_before(burst.slept_ns as i64 - tolerance);
        let first = comb.slot_before(burst.woke_ns as i64 + tolerance);
        if number == job.rhythm {
            let own = comb.slot(bursts[job.release].woke_ns as i64);
            job.overruns += (last - first.max(own)).max(0) as u64;
        } else {
            job.is_mixed |= last > first;
        }
    }
}

/// Of these jobs those that are not mixed, if there are some.
fn of_rhythm<'a>(jobs: impl Iterator<Item = &'a Job>) -> Jobs {
    let list: Vec<&Job> = jobs.collect();
    let has_pure = list.iter().filter(|job| !job.is_mixed).count() >= PURE_MIN;
    let mut all = Jobs::default();
    for job in list.iter().filter(|job| !job.is_mixed || !has_pure) {
        let count = job.overruns + 1;
        all.work_ns.extend((0..count).map(|_| job.ran_ns.div_ceil(count)));
        all.overruns += job.overruns;
        all.resumed += job.resumed;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_jobs() {
        assert_eq!(Work::of(Vec::new()), Work::default());
        let hundred = Work::of((1..=100).rev().collect());
        assert_eq!(hundred, Work { jobs: 100, median_ns: 50, p90_ns: 90, p99_ns: 99, max_ns: 100 });
        let three = Work::of(vec![7, 5, 6]);
        assert_eq!(three, Work { jobs: 3, median_ns: 6, p90_ns: 7, p99_ns: 7, max_ns: 7 });
    }
}
