//! Candidates for the period of a sequence of wake-ups, from its spectrum.
//!
//! The wake-ups are impulses. A periodic process concentrates their phases at its frequency, and the power there grows with the
//! number of wake-ups; a Poisson process has no such frequency. We take the spectrum rather than the autocorrelation for three
//! reasons. A peak gives the period to a fraction of (period / whole time), so that the first guess already keeps its phase over all of
//! it. Jitter, missed and doubled wake-ups lower a peak, but do not move it. And two periods in one thread have a peak each, where an
//! autocorrelation has all differences between the two as well.
//!
//! Floating point stays in here: what leaves are fractions of whole numbers, which are only where the search begins.

use std::f64::consts::PI;

/// A period to try: `span_ns / count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Numerator.
    pub span_ns: u64,
    /// Denominator.
    pub count: u64,
}

/// So many peaks by height, and as many by frequency.
const PEAKS: usize = 20;

/// Bins per wake-up. As many again are empty: they make the frequencies finer.
const BINS: usize = 16;

/// Periods at which the wake-ups, in order, have peaks of power.
pub fn candidates(times: &[i64]) -> Vec<Candidate> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let size = (2 * BINS * times.len()).next_power_of_two();
    let bin_ns = ((last - first) as u64 / (size as u64 / 2)) + 1;
    let mut real = vec![0.0; size];
    times.iter().for_each(|time| real[((time - first) as u64 / bin_ns) as usize] += 1.0);
    let power = power(real);
    let peak = |at: &usize| power[*at] >= power[at - 1] && power[*at] > power[at + 1];
    let mut peaks: Vec<usize> = (4..size / 4).filter(peak).collect();
    peaks.sort_by(|a, b| power[*b].total_cmp(&power[*a]));
    let strongest = peaks.first().map_or(0.0, |peak| power[*peak]);
    let mut chosen: Vec<usize> = peaks.iter().copied().take(PEAKS).collect();
    // All harmonics of a process without jitter are equally high: among the lower ones is the fundamental.
    let mut low: Vec<usize> = peaks.into_iter().filter(|peak| power[*peak] * 4.0 >= strongest).collect();
    low.sort_unstable();
    chosen.extend(low.into_iter().take(PEAKS));
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|at| Candidate { span_ns: bin_ns * size as u64, count: at as u64 }).collect()
}

/// The power at each frequency below half of the bins' own: a fast Fourier transform.
fn power(mut real: Vec<f64>) -> Vec<f64> {
    let size = real.len();
    let mut imaginary = vec![0.0; size];
    let shift = usize::BITS - size.trailing_zeros();
    for at in 0..size {
        let other = at.reverse_bits() >> shift;
        if at < other {
            real.swap(at, other);
        }
    }
    let turns: Vec<(f64, f64)> =
        (0..size / 2).map(|at| (-2.0 * PI * at as f64 / size as f64).sin_cos()).collect();
    let mut half = 1;
    while half < size {
        let step = size / (2 * half);
        for begin in (0..size).step_by(2 * half) {
            for at in 0..half {
                let (sin, cos) = turns[at * step];
                let (low, high) = (begin + at, begin + at + half);
                let (re, im) =
                    (real[high] * cos - imaginary[high] * sin, real[high] * sin + imaginary[high] * cos);
                (real[high], imaginary[high]) = (real[low] - re, imaginary[low] - im);
                (real[low], imaginary[low]) = (real[low] + re, imaginary[low] + im);
            }
        }
        half *= 2;
    }
    real.iter().zip(&imaginary).take(size / 2).map(|(re, im)| re * re + im * im).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_has_its_peaks() {
        let times: Vec<i64> = (0..500).map(|k| k * 10_000_000).collect();
        let found = candidates(&times);
        let near = |one: &Candidate| (one.span_ns / one.count).abs_diff(10_000_000) < 20_000;
        assert!(found.iter().any(near), "{found:?}");
        assert!(candidates(&[]).is_empty());
    }

    #[test]
    fn power_of_a_wave() {
        let wave = (0..64).map(|at| (2.0 * PI * 5.0 * f64::from(at) / 64.0).cos()).collect();
        let power = power(wave);
        assert!((power[5] - 1024.0).abs() < 1e-6 && power[6] < 1e-6, "{power:?}");
    }
}
