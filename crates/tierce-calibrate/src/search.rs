//! The period that explains most of a sequence of wake-ups.

use crate::burst::Burst;
use crate::comb::{measure, measure_relative, Clock, Comb, Fit};
use crate::spectrum::candidates;
use std::ops::Range;

/// So many wake-ups are looked at together for candidates; what is found is extended to all others.
const WINDOW: usize = 2048;

/// The best fit of any period to the times, which are sorted; with fewer than four there is none.
pub fn best_fit(times: &[i64], bursts: &[Burst]) -> Option<Fit> {
    let Some(rest) = times.len().checked_sub(WINDOW).filter(|rest| *rest > 0) else {
        return best_in(times, bursts, 0..times.len());
    };
    let windows = [0, rest / 2, rest].map(|begin| begin..begin + WINDOW);
    windows.into_iter().filter_map(|window| best_in(times, bursts, window)).reduce(better)
}

/// The one with more gain. One that explains about as much with a longer period says more: it promises fewer releases.
fn better(one: Fit, other: Fit) -> Fit {
    let (short, long) =
        if one.clock.period_ns() < other.clock.period_ns() { (one, other) } else { (other, one) };
    if long.gain >= short.gain - short.gain / 16 {
        long
    } else {
        short
    }
}

fn best_in(times: &[i64], bursts: &[Burst], window: Range<usize>) -> Option<Fit> {
    let (part, begin) = (&times[window.clone()], window.start);
    let timer = absolute(part, bursts).reduce(better);
    let sleep = relative(part).reduce(better);
    // One with a timer keeps to the time between two releases, too, so the other has to explain clearly more.
    let gain = |fit: &Option<Fit>| fit.as_ref().map_or(0, |fit| fit.gain);
    let mut best = if gain(&sleep) * 4 > gain(&timer) * 5 { sleep? } else { timer.or(sleep)? };
    best.hits.iter_mut().for_each(|hit| *hit += begin);
    if window.len() == times.len() || best.hits.is_empty() {
        return Some(best);
    }
    Some(match best.clock {
        Clock::Absolute(comb) => extend(comb, &best, times, bursts).unwrap_or(best),
        Clock::Relative { period_ns } => measure_relative(times, period_ns).unwrap_or(best),
    })
}

fn absolute<'a>(times: &'a [i64], bursts: &'a [Burst]) -> impl Iterator<Item = Fit> + 'a {
    candidates(times).into_iter().filter_map(move |candidate| {
        let origin_ns = *times.first()?;
        let comb = Comb { origin_ns, span_ns: candidate.span_ns, count: candidate.count };
        measure(times, bursts, comb.fitted(times)?)
    })
}

/// Threads that sleep for a time have a period of about the median interval, or of the median of the long ones.
fn relative(times: &[i64]) -> impl Iterator<Item = Fit> + '_ {
    let mut intervals: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect();
    intervals.sort_unstable();
    let long = intervals.get(intervals.len() * 9 / 10).map_or(0, |long| long / 2);
    let longer = &intervals[intervals.partition_point(|interval| *interval < long)..];
    let middle = |sorted: &[u64]| sorted.get(sorted.len() / 2).copied();
    let starts = [middle(&intervals), middle(longer)];
    starts.into_iter().flatten().filter_map(move |start_ns| {
        let first = measure_relative(times, start_ns)?;
        let mut single: Vec<u64> =
            first.hits.windows(2).map(|pair| (times[pair[1]] - times[pair[0]]) as u64).collect();
        single.retain(|interval| interval.abs_diff(start_ns) < start_ns / 2);
        single.sort_unstable();
        let again = measure_relative(times, middle(&single)?)?;
        Some(if again.gain > first.gain { again } else { first })
    })
}

/// A comb that fits a part of the times, fitted to as many as keep to it: each time to twice as many as before.
fn extend(mut comb: Comb, part: &Fit, times: &[i64], bursts: &[Burst]) -> Option<Fit> {
    let (mut begin, mut end) = (*part.hits.first()?, part.hits.last()? + 1);
    let mut gain = 0;
    loop {
        let more = (end - begin).max(8);
        let wider = begin.saturating_sub(more)..(end + more).min(times.len());
        let Some(fitted) = comb.fitted(&times[wider.clone()]) else { break };
        let Some(fit) = measure(&times[wider.clone()], bursts, fitted) else { break };
        if fit.gain <= gain {
            break;
        }
        let Clock::Absolute(found) = fit.clock else { break };
        (comb, gain) = (found, fit.gain);
        let hits = wider.start + fit.hits[0]..wider.start + fit.hits[fit.hits.len() - 1] + 1;
        let is_whole = hits.start <= begin && hits.end >= end && hits.start == 0 && hits.end == times.len();
        (begin, end) = (hits.start.min(begin), hits.end.max(end));
        if is_whole || wider.len() == times.len() {
            break;
        }
    }
    measure(times, bursts, comb)
}
