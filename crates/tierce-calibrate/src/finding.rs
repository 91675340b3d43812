//! What was found out about a thread.

use crate::burst::Watched;
use crate::comb::Clock;
use crate::jobs::{jobs, Work};
use crate::periods::{rhythms, Rhythm};
use crate::poisson::Chance;

/// What a thread is, and its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its complete bursts.
    pub wakeups: u64,
    /// How long it was watched.
    pub watched_ns: u64,
    /// CPU time that it used.
    pub ran_ns: u64,
    /// Time that it was ready and waited for a CPU.
    pub waited_ns: u64,
    /// What it is.
    pub kind: Kind,
}

/// What a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has releases at regular times.
    Periodic {
        /// Each of its periods, that which explains most first.
        periods: Vec<Period>,
        /// Wake-ups that are releases, or in step with them, in 1/1000 of all.
        explained: u32,
    },
    /// No period explains its wake-ups.
    Aperiodic {
        /// How they come.
        arrival: Arrival,
        /// The probability, in percent and rounded up, that a Poisson process of the same rate seems as periodic; `None`: it was not to be
        /// told.
        chance_percent: Option<u32>,
        /// CPU time from a wake-up until the thread sleeps.
        work: Work,
    },
    /// Too few wake-ups to say anything.
    Rare,
    /// It computes and hardly ever sleeps.
    Busy,
}

/// How wake-ups without a period come, by the spread of the intervals between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// More even than at random.
    Even,
    /// As those of a Poisson process.
    Random,
    /// In clusters.
    Clustered,
}

impl Arrival {
    /// All.
    pub const ALL: [Arrival; 3] = [Arrival::Even, Arrival::Random, Arrival::Clustered];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Arrival::Even => "even",
            Arrival::Random => "random",
            Arrival::Clustered => "clustered",
        }
    }
}

/// One period of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The period.
    pub period_ns: u64,
    /// Releases keep to a timer; else each is that long after the one before, and errors add up.
    pub is_absolute: bool,
    /// How far 99 % of the releases are from their times.
    pub jitter_p99_ns: u64,
    /// And the farthest.
    pub jitter_max_ns: u64,
    /// Releases that came, in 1/1000 of those due.
    pub kept: u32,
    /// The probability, in percent and rounded up, that chance explains the releases as well.
    pub chance_percent: u32,
    /// CPU time of its jobs.
    pub work: Work,
    /// Jobs that began late, because the one before was not complete.
    pub overruns: u64,
    /// Wake-ups within jobs.
    pub resumed: u64,
    /// The first release, since the thread is watched.
    pub first_ns: u64,
    /// The last one.
    pub last_ns: u64,
}

/// Fewer wake-ups say nothing.
const WAKEUPS_MIN: usize = 8;

/// Find out what a thread is.
pub fn analyse(watched: &Watched, chance: &mut Chance) -> Finding {
    let bursts = &watched.bursts;
    let watched_ns = watched.to_ns.saturating_sub(watched.from_ns);
    let kind = if bursts.len() < WAKEUPS_MIN {
        if watched.ran_ns > watched_ns / 2 {
            Kind::Busy
        } else {
            Kind::Rare
        }
    } else {
        regular_or_not(watched, chance)
    };
    Finding {
        wakeups: bursts.len() as u64,
        watched_ns,
        ran_ns: watched.ran_ns,
        waited_ns: bursts.iter().map(|burst| burst.waited_ns()).sum(),
        kind,
    }
}

fn regular_or_not(watched: &Watched, chance: &mut Chance) -> Kind {
    let bursts = &watched.bursts;
    let (rhythms, chance_percent) = rhythms(bursts, chance);
    if rhythms.is_empty() {
        let work = Work::of(bursts.iter().map(|burst| burst.ran_ns).collect());
        return Kind::Aperiodic { arrival: arrival(watched), chance_percent, work };
    }
    let explained = rhythms.iter().map(|rhythm| rhythm.releases.len() + rhythm.in_step.len()).sum::<usize>();
    let jobs = jobs(bursts, &rhythms, watched.to_ns);
    let periods = rhythms.iter().zip(jobs).map(|(rhythm, jobs)| {
        let (jitter_p99_ns, jitter_max_ns) = jitter(watched, rhythm);
        let came = rhythm.releases.len() as u64;
        let at = |index: usize| bursts[index].woke_ns.saturating_sub(watched.from_ns);
        Period {
            period_ns: rhythm.clock.period_ns(),
            is_absolute: matches!(rhythm.clock, Clock::Absolute(_)),
            jitter_p99_ns,
            jitter_max_ns,
            kept: (came * 1000 / (came + rhythm.missed)) as u32,
            chance_percent: rhythm.chance_percent,
            work: Work::of(jobs.work_ns),
            overruns: jobs.overruns,
            resumed: jobs.resumed,
            first_ns: at(rhythm.releases[0]),
            last_ns: at(rhythm.releases[rhythm.releases.len() - 1]),
        }
    });
    Kind::Periodic { periods: periods.collect(), explained: (explained * 1000 / bursts.len()) as u32 }
}

/// How far releases are from their times: 99 % of them, and all.
fn jitter(watched: &Watched, rhythm: &Rhythm) -> (u64, u64) {
    let woke = |index: usize| watched.bursts[index].woke_ns;
    let errors: Vec<u64> = match rhythm.clock {
        Clock::Absolute(comb) => {
            rhythm.releases.iter().map(|at| comb.error(woke(*at) as i64).unsigned_abs()).collect()
        }
        Clock::Relative { period_ns } => {
            let pairs = rhythm.releases.windows(2).map(|pair| woke(pair[1]) - woke(pair[0]));
            pairs.map(|interval| interval % period_ns).map(|error| error.min(period_ns - error)).collect()
        }
    };
    let errors = Work::of(errors);
    (errors.p99_ns, errors.max_ns)
}

/// The variance of the intervals, as a multiple of the square of their mean: 1 for a Poisson process.
fn arrival(watched: &Watched) -> Arrival {
    let us = |pair: &[crate::Burst]| u128::from((pair[1].woke_ns - pair[0].woke_ns) / 1000);
    let intervals: Vec<u128> = watched.bursts.windows(2).map(us).collect();
    let count = intervals.len() as u128;
    let (sum, squares) = (intervals.iter().sum::<u128>(), intervals.iter().map(|us| us * us).sum::<u128>());
    let variance = count * squares - sum * sum;
    match () {
        () if variance * 2 < sum * sum => Arrival::Even,
        () if variance > 2 * sum * sum => Arrival::Clustered,
        () => Arrival::Random,
    }
}
