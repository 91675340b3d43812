//! All periods of a thread: the one that explains most, then that of the wake-ups which are left, and so on.

use crate::burst::Burst;
use crate::comb::{Clock, Comb, Fit};
use crate::logarithm::BIT;
use crate::poisson::Chance;
use crate::search::best_fit;
use std::collections::HashSet;

/// A period of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// What gives the time of the next release.
    pub clock: Clock,
    /// The bursts that begin a job, by their index.
    pub releases: Vec<usize>,
    /// Bursts that are in step with these releases: further wake-ups within the same jobs.
    pub in_step: Vec<usize>,
    /// Releases that were due and did not come.
    pub missed: u64,
    /// A wake-up is a release if it is not further from its time than that.
    pub tolerance_ns: u64,
    /// The probability that chance explains the releases as well, in percent, rounded up.
    pub chance_percent: u32,
}

/// Fewer jobs are no period.
const JOBS_MIN: usize = 8;

/// So many sequences of wake-ups are told apart in one thread.
const LINES_MAX: usize = 8;

/// The periods of a thread, and the probability in percent that chance explains the best fit, if there is any.
pub fn rhythms(bursts: &[Burst], chance: &mut Chance) -> (Vec<Rhythm>, Option<u32>) {
    let (mut found, mut first_percent): (Vec<Rhythm>, _) = (Vec::new(), None);
    let mut left: Vec<usize> = (0..bursts.len()).collect();
    for _ in 0..LINES_MAX {
        if left.len() < JOBS_MIN.max(bursts.len() / 32) {
            break;
        }
        let Some((of, fit)) = best_of(bursts, &left) else { break };
        let percent = chance.percent(of.len(), fit.gain);
        first_percent.get_or_insert(percent);
        let releases: Vec<usize> = fit.hits.iter().map(|hit| of[*hit]).collect();
        if !counts(&fit, &releases, &left, bursts) || !chance.is_exceeded(of.len(), fit.gain) {
            break;
        }
        left.retain(|at| releases.binary_search(at).is_err());
        let (clock, tolerance_ns, missed) = (fit.clock, fit.tolerance_ns, fit.missed);
        let new =
            Rhythm { clock, releases, in_step: Vec::new(), missed, tolerance_ns, chance_percent: percent };
        if let Some(rhythm) = found.iter_mut().find(|rhythm| goes_on(rhythm, &new, bursts)) {
            extend(rhythm, new, bursts);
        } else if let Some(rhythm) = found.iter_mut().find(|rhythm| is_in_step(rhythm, &new, bursts)) {
            join(rhythm, new, bursts);
        } else {
            found.push(new);
        }
    }
    let mut released = vec![false; bursts.len()];
    found.iter().flat_map(|rhythm| &rhythm.releases).for_each(|at| released[*at] = true);
    found.iter_mut().for_each(|rhythm| begin_after_longest_sleep(rhythm, bursts, &released));
    (found, first_percent)
}

fn slept_before(bursts: &[Burst], at: usize) -> u64 {
    at.checked_sub(1).map_or(0, |before| bursts[at].woke_ns.saturating_sub(bursts[before].slept_ns))
}

/// The best fit to these bursts, or to those of them that follow a long sleep: the others may be within jobs. With the bursts that it is of.
fn best_of(bursts: &[Burst], left: &[usize]) -> Option<(Vec<usize>, Fit)> {
    let mut sleeps: Vec<u64> = left.iter().map(|at| slept_before(bursts, *at)).collect();
    let long = left.len() * 9 / 10;
    let long_ns = *sleeps.select_nth_unstable(long).1 / 8;
    let after_long: Vec<usize> =
        left.iter().copied().filter(|at| slept_before(bursts, *at) >= long_ns).collect();
    let both = [left.to_vec(), after_long];
    let several = if both[0] == both[1] { 1 } else { 2 };
    let fit = |of: Vec<usize>| {
        let times: Vec<i64> = of.iter().map(|at| bursts[*at].woke_ns as i64).collect();
        Some((best_fit(&times, bursts)?, of))
    };
    let (fit, of) = both.into_iter().take(several).filter_map(fit).max_by_key(|(fit, _)| fit.gain)?;
    Some((of, fit))
}

/// A period that is more than an episode: it has enough jobs, most of those that are due, a time for each of them that says something, and
/// a good part of the wake-ups or of the time.
fn counts(fit: &Fit, releases: &[usize], left: &[usize], bursts: &[Burst]) -> bool {
    let due = releases.len() as u64 + fit.missed;
    if releases.len() < JOBS_MIN || fit.missed * 2 > due || fit.gain < due as i64 * BIT / 2 {
        return false;
    }
    let lasts = |list: &[usize]| bursts[list[list.len() - 1]].woke_ns - bursts[list[0]].woke_ns;
    releases.len() * 4 >= bursts.len() || lasts(releases) * 4 >= lasts(left)
}

/// Are the new releases at the times of the same clock? The thread paused in between, or many of its jobs were missing.
fn goes_on(rhythm: &Rhythm, new: &Rhythm, bursts: &[Burst]) -> bool {
    let Clock::Absolute(comb) = rhythm.clock else { return false };
    let period_ns = comb.period_ns();
    let mut errors: Vec<u64> =
        new.releases.iter().map(|at| comb.error(bursts[*at].woke_ns as i64).unsigned_abs()).collect();
    let middle = errors.len() / 2;
    let error_ns = *errors.select_nth_unstable(middle).1;
    error_ns <= rhythm.tolerance_ns.max(new.tolerance_ns)
        && new.clock.period_ns().abs_diff(period_ns) < period_ns / 50
}

/// The new ones are releases, too, but where a release is already: those are within its job.
fn extend(rhythm: &mut Rhythm, new: Rhythm, bursts: &[Burst]) {
    let Clock::Absolute(comb) = rhythm.clock else { return };
    let slot = |at: &usize| comb.slot(bursts[*at].woke_ns as i64);
    let taken: HashSet<i64> = rhythm.releases.iter().map(slot).collect();
    let (within, releases) = new.releases.into_iter().partition::<Vec<_>, _>(|at| taken.contains(&slot(at)));
    // Where it filled slots that were counted as missed, they did come.
    let is_between =
        |at: &&usize| rhythm.releases[0] < **at && **at < rhythm.releases[rhythm.releases.len() - 1];
    let filled = releases.iter().filter(is_between).count() as u64;
    rhythm.missed = (rhythm.missed + new.missed).saturating_sub(filled);
    rhythm.tolerance_ns = rhythm.tolerance_ns.max(new.tolerance_ns);
    rhythm.releases.extend(releases);
    rhythm.releases.sort_unstable();
    rhythm.in_step.extend(within);
    rhythm.in_step.sort_unstable();
}

/// Do both periods stay in step? One is a multiple of the other, so nearly that over the time of both they drift by less than a
/// quarter of the shorter one.
fn is_in_step(one: &Rhythm, other: &Rhythm, bursts: &[Burst]) -> bool {
    let (a, b) = (one.clock.period_ns(), other.clock.period_ns());
    let (short, long) = (a.min(b), a.max(b));
    let factor = (long + short / 2) / short;
    let apart = long.abs_diff(factor * short);
    let woke = |index: Option<&usize>| index.map_or(0, |index| bursts[*index].woke_ns);
    let begin = woke(one.releases.first()).max(woke(other.releases.first()));
    let end = woke(one.releases.last()).min(woke(other.releases.last()));
    let both = end.saturating_sub(begin) / long;
    if both == 0 {
        return false;
    }
    let are_absolute = matches!((one.clock, other.clock), (Clock::Absolute(_), Clock::Absolute(_)));
    let most = if are_absolute { short / 4 / both } else { short / 50 };
    apart <= most.max(1)
}

/// Of two sequences in step that one releases jobs whose wake-ups follow the longer sleep; the other ones are within the jobs.
fn join(rhythm: &mut Rhythm, new: Rhythm, bursts: &[Burst]) {
    let slept = |rhythm: &Rhythm| {
        let mut slept: Vec<u64> = rhythm.releases.iter().map(|at| slept_before(bursts, *at)).collect();
        slept.sort_unstable();
        slept[slept.len() / 2]
    };
    let same = rhythm.clock.period_ns().abs_diff(new.clock.period_ns()) < rhythm.clock.period_ns() / 50;
    let takes_over = same && new.missed <= rhythm.missed && slept(&new) > slept(rhythm);
    let mut in_step = std::mem::take(&mut rhythm.in_step);
    let other = if takes_over { std::mem::replace(rhythm, new) } else { new };
    in_step.extend(other.releases);
    in_step.sort_unstable();
    rhythm.in_step = in_step;
}

/// Where wake-ups that are no releases come shortly before one, the job began with that one of them which follows the longest sleep.
fn begin_after_longest_sleep(rhythm: &mut Rhythm, bursts: &[Burst], released: &[bool]) {
    let most_ns = rhythm.clock.period_ns() / 4;
    for release in &mut rhythm.releases {
        let own = *release;
        let is_in_job = |at: &usize| !released[*at] && bursts[own].woke_ns - bursts[*at].woke_ns < most_ns;
        let before = (0..own).rev().take_while(is_in_job).max_by_key(|at| slept_before(bursts, *at));
        if let Some(first) = before.filter(|first| slept_before(bursts, *first) > slept_before(bursts, own)) {
            *release = first;
            rhythm.in_step.retain(|at| *at != first);
            rhythm.in_step.insert(rhythm.in_step.partition_point(|at| *at < own), own);
        }
    }
    let Clock::Absolute(comb) = rhythm.clock else { return };
    let mut late: Vec<i64> =
        rhythm.releases.iter().map(|at| comb.error(bursts[*at].woke_ns as i64)).collect();
    let middle = late.len() / 2;
    let late = *late.select_nth_unstable(middle).1;
    rhythm.clock = Clock::Absolute(Comb { origin_ns: comb.origin_ns + late, ..comb });
}
