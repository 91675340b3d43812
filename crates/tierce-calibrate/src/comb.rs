//! Times at equal distances, and how well wake-ups keep to them.

use crate::burst::{Awake, Burst};
use crate::logarithm::{log2_of, BIT};

/// Times at equal distances: `origin + k · span / count`. The distance is a fraction, so that nothing drifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comb {
    pub origin_ns: i64,
    pub span_ns: u64,
    pub count: u64,
}

/// `a · b / c`, rounded down; `c` is above 0.
fn multiplied_and_divided(a: i64, b: u64, c: u64) -> i64 {
    match (i64::try_from(b).ok().and_then(|b| a.checked_mul(b)), i64::try_from(c)) {
        (Some(product), Ok(c)) => product.div_euclid(c),
        _ => (i128::from(a) * i128::from(b)).div_euclid(i128::from(c)) as i64,
    }
}

impl Comb {
    /// The distance, to the nearest ns.
    pub fn period_ns(&self) -> u64 {
        (self.span_ns + self.count / 2) / self.count
    }

    /// The time with this number.
    pub fn time(&self, slot: i64) -> i64 {
        self.origin_ns + multiplied_and_divided(slot, self.span_ns, self.count)
    }

    /// The number of the last time that is not later.
    pub fn slot_before(&self, time: i64) -> i64 {
        // The last k with k · span / count < time + 1, since times are rounded down.
        -multiplied_and_divided(self.origin_ns - time - 1, self.count, self.span_ns) - 1
    }

    /// The number of the time that is nearest.
    pub fn slot(&self, time: i64) -> i64 {
        self.slot_before(time + self.period_ns() as i64 / 2)
    }

    /// How much later than the nearest time; before it: below 0.
    pub fn error(&self, time: i64) -> i64 {
        time - self.time(self.slot(time))
    }

    /// How much each time is later than the nearest one, in order.
    fn sorted_errors(&self, times: &[i64]) -> Vec<i64> {
        let mut errors: Vec<i64> = times.iter().map(|time| self.error(*time)).collect();
        errors.sort_unstable();
        errors
    }

    /// Moved to where most of these errors keep within `width` of each other: the middle of them.
    fn moved_to_densest(self, errors: &[i64], width: i64) -> Comb {
        let (count, period) = (errors.len(), self.period_ns() as i64);
        let around = |at: usize| if at < count { errors[at] } else { errors[at - count] + period };
        let (mut most, mut best, mut end) = (0, (0, 0), 0);
        for (begin, first) in errors.iter().enumerate() {
            end = end.max(begin);
            while end < begin + count && around(end) - first <= width {
                end += 1;
            }
            if end - begin > most {
                (most, best) = (end - begin, (*first, around(end - 1)));
            }
        }
        Comb { origin_ns: self.origin_ns + (best.0 + best.1) / 2, ..self }
    }

    /// Fitted to the times: the median of the slopes between times that are half of all apart, then the median of what is left.
    /// Single wake-ups that are early, late, missing or too many do not move a median.
    pub fn fitted(self, times: &[i64]) -> Option<Comb> {
        let mut comb = self.moved_to_densest(&self.sorted_errors(times), self.period_ns() as i64 / 4);
        for _ in 0..3 {
            let near = comb.nearest(times, comb.period_ns() as i64 / 4);
            let half = near.len() / 2;
            if half < 2 {
                return None;
            }
            let slope = |at: usize| {
                let ((from, begin), (to, end)) = (near[at], near[at + half]);
                ((end - begin).max(1) as u64, (to - from) as u64)
            };
            let mut slopes: Vec<(u64, u64)> = (0..near.len() - half).map(slope).collect();
            let middle = slopes.len() / 2;
            let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
            slopes.select_nth_unstable_by(middle, |a, b| product(a.0, b.1).cmp(&product(b.0, a.1)));
            (comb.span_ns, comb.count) = slopes[middle];
            comb.origin_ns = 0;
            let mut left: Vec<i64> = near.iter().map(|(slot, time)| time - comb.time(*slot)).collect();
            let middle = left.len() / 2;
            comb.origin_ns = *left.select_nth_unstable(middle).1;
        }
        Some(comb)
    }

    /// Of each slot the nearest time, as (slot, time), if that is not further than `most`.
    fn nearest(&self, times: &[i64], most: i64) -> Vec<(i64, i64)> {
        let mut near: Vec<(i64, i64)> = Vec::new();
        for &time in times {
            let slot = self.slot(time);
            let error = (time - self.time(slot)).abs();
            match near.last_mut() {
                _ if error > most => {}
                Some(last) if last.0 == slot => {
                    if error < (last.1 - self.time(slot)).abs() {
                        last.1 = time;
                    }
                }
                _ => near.push((slot, time)),
            }
        }
        near
    }
}

/// What gives the time of the next release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// A timer: releases are at multiples of the period, and errors do not add up.
    Absolute(Comb),
    /// The release before: the thread sleeps for a time, and errors add up.
    Relative {
        /// From one release to the next.
        period_ns: u64,
    },
}

impl Clock {
    /// The period, to the nearest ns.
    pub fn period_ns(&self) -> u64 {
        match self {
            Clock::Absolute(comb) => comb.period_ns(),
            Clock::Relative { period_ns } => *period_ns,
        }
    }
}

/// How well wake-ups keep to a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    pub clock: Clock,
    /// What the clock explains, in 1/[`BIT`] bits: the logarithm of how much likelier the wake-ups are with it than by chance.
    pub gain: i64,
    /// The wake-ups that are releases, by their index.
    pub hits: Vec<usize>,
    /// Releases that were due and did not come.
    pub missed: u64,
    /// A wake-up is a release if it is not further from its time than that.
    pub tolerance_ns: u64,
}

/// What became of one release that was due.
#[derive(Clone, Copy)]
enum Slot {
    Hit(usize),
    Missed,
    /// The thread was awake, so it could not be woken.
    Awake,
}

/// A process with a period has at least this part of its releases: the model by which slots are judged.
const KEPT: (u64, u64) = (7, 8);

/// No timer is more precise.
const TOLERANCE_MIN: i64 = 4_000;

/// So many slots per wake-up at most: with fewer releases there is no period to speak of.
const SLOTS_MAX: i64 = 16;

/// How far wake-ups may be from their times, as parts of the period. The widest has room for a jitter of 20 % either way.
const TOLERANCES: [i64; 9] = [5, 8, 16, 32, 128, 512, 2048, 8192, 32768];

fn tolerances(period: i64) -> impl Iterator<Item = i64> {
    TOLERANCES.into_iter().map(move |part| period / part).take_while(|tolerance| *tolerance >= TOLERANCE_MIN)
}

/// That a time chosen at random has a wake-up within the tolerance: a fraction. Wake-ups in clusters cover less.
fn chance(times: &[i64], tolerance: i64) -> (u64, u64) {
    let reach = 2 * tolerance;
    let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]).min(reach)).sum::<i64>();
    let all = times[times.len() - 1] - times[0] + reach;
    ((gaps + reach) as u64, all.max(1) as u64)
}

/// The run of slots that the clock explains best, and by how much.
fn best_run(slots: &[Slot], (covered, all): (u64, u64)) -> (i64, usize, usize) {
    let free = all.saturating_sub(covered).max(1);
    let log = |model: (u64, u64), covered: u64| log2_of(model.0, model.1) - log2_of(covered.max(1), all);
    let (hit, missed) = (log(KEPT, covered), log((KEPT.1 - KEPT.0, KEPT.1), free).min(0));
    let (mut best, mut sum, mut begin) = ((0, 0, 0), 0, 0);
    for (at, slot) in slots.iter().enumerate() {
        sum += match slot {
            Slot::Hit(_) => hit,
            Slot::Missed => missed,
            Slot::Awake => -BIT / 2,
        };
        if sum <= 0 {
            (sum, begin) = (0, at + 1);
        } else if sum > best.0 {
            best = (sum, begin, at + 1);
        }
    }
    best
}

fn fit(clock: Clock, slots: &[Slot], times: &[i64], tolerance: i64) -> Fit {
    let (gain, begin, end) = best_run(slots, chance(times, tolerance));
    let run = &slots[begin..end];
    let hits = run.iter().filter_map(|slot| match slot {
        Slot::Hit(at) => Some(*at),
        _ => None,
    });
    let missed = run.iter().filter(|slot| matches!(slot, Slot::Missed)).count() as u64;
    Fit { clock, gain, hits: hits.collect(), missed, tolerance_ns: tolerance as u64 }
}

/// Of fits with different tolerances that which explains most. Then the narrowest one in which hardly a release is left out, as long as it
/// explains half as much.
fn best_tolerance(fits: Vec<Fit>) -> Option<Fit> {
    let gain = fits.iter().map(|fit| fit.gain).max()?;
    let mut good: Vec<Fit> = fits.into_iter().filter(|fit| fit.gain * 2 >= gain).collect();
    let most = good.iter().map(|fit| fit.hits.len()).max()?;
    good.retain(|fit| fit.hits.len() * 256 >= most * 255);
    let fit = good.into_iter().min_by_key(|fit| fit.tolerance_ns)?;
    Some(Fit { gain, ..fit })
}

/// How well the times keep to a comb of this period, with the phase that explains most.
pub fn measure(times: &[i64], bursts: &[Burst], comb: Comb) -> Option<Fit> {
    let (first, last) = (*times.first()?, *times.last()?);
    let period = comb.period_ns() as i64;
    if period == 0 || (last - first) / period > SLOTS_MAX * times.len() as i64 {
        return None;
    }
    let errors = comb.sorted_errors(times);
    let fits = tolerances(period).map(|tolerance| {
        let comb = comb.moved_to_densest(&errors, 2 * tolerance);
        let near = comb.nearest(times, tolerance);
        let (mut next, mut slots) = (0, Vec::new());
        let (mut index, mut awake) = (0, Awake::new(bursts));
        for slot in comb.slot(first)..=comb.slot(last) {
            slots.push(match near.get(next) {
                Some((at, hit)) if *at == slot => {
                    next += 1;
                    index += times[index..].iter().take_while(|time| *time < hit).count();
                    Slot::Hit(index)
                }
                _ if awake.at(comb.time(slot).max(0) as u64) => Slot::Awake,
                _ => Slot::Missed,
            });
        }
        fit(Clock::Absolute(comb), &slots, times, tolerance)
    });
    best_tolerance(fits.collect())
}

/// How well the times keep to this distance from one to the next.
pub fn measure_relative(times: &[i64], period_ns: u64) -> Option<Fit> {
    let period = period_ns as i64;
    if times.len() < 2 || period < TOLERANCE_MIN {
        return None;
    }
    let fits = tolerances(period).skip(1).map(|tolerance| {
        let (mut slots, mut last) = (vec![Slot::Hit(0)], times[0]);
        for (at, &time) in times.iter().enumerate().skip(1) {
            let distance = time - last;
            let count = (distance + period / 2) / period;
            let hit = count > 0 && (distance - count * period).abs() <= tolerance;
            if hit || count > 4 {
                slots.extend((1..count.min(64)).map(|_| Slot::Missed));
                slots.push(Slot::Hit(at));
                last = time;
            }
        }
        fit(Clock::Relative { period_ns }, &slots, times, tolerance)
    });
    best_tolerance(fits.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_times_agree() {
        for (span_ns, count) in [(100_000_000u64, 3u64), (1 << 40, (1 << 20) - 7), (10, 10), (7, 2)] {
            let comb = Comb { origin_ns: -5, span_ns, count };
            for slot in (-3000..3000).step_by(7) {
                let (time, next) = (comb.time(slot), comb.time(slot + 1));
                assert_eq!(comb.slot_before(time), slot, "{comb:?}");
                assert_eq!(comb.slot_before(next - 1), slot, "{comb:?}");
                assert_eq!(comb.error(time), 0);
            }
        }
    }

    #[test]
    fn a_fit_is_not_moved_by_what_is_wrong() {
        let mut times: Vec<i64> = (0..100).map(|k| k * 100_000_000 / 3).collect();
        times[10] += 4_000_000; // late
        times.remove(50);
        times.push(50 * 100_000_000 / 3 + 9_000_000); // at a wrong time
        times.sort_unstable();
        let guess = Comb { origin_ns: 20_000_000, span_ns: 33_340_000, count: 1 };
        let comb = guess.fitted(&times).unwrap();
        assert_eq!((comb.period_ns(), comb.error(0).abs() < 3), (33_333_333, true), "{comb:?}");
    }
}
