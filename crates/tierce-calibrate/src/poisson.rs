//! What chance alone explains: the same search on Poisson processes, by seed.

use crate::logarithm::BIT;
use crate::search::best_fit;
use std::collections::HashMap;
use tierce_analysis::generate::Draw;

/// So many processes are drawn: no probability below 1 % can be told from 0.
const PROCESSES: usize = 99;

/// More wake-ups than that change little: what chance explains grows with the logarithm of their number.
const WAKEUPS_MAX: usize = 512;

/// How many bits more than the best of these processes a period has to explain.
const BITS_BEYOND: i64 = 8;

/// Gains of the best fits to Poisson processes. Where a process has so many wake-ups, their times are uniform and independent. The
/// rate does not matter, it is only the unit of time; so there is one table for each number of wake-ups, rounded up to a power of two.
pub struct Chance {
    seed: u64,
    gains: HashMap<usize, Vec<i64>>,
}

impl Chance {
    /// The same seed gives the same processes.
    pub fn new(seed: u64) -> Chance {
        Chance { seed, gains: HashMap::new() }
    }

    /// The probability, in percent and rounded up, that a Poisson process with so many wake-ups has a fit with this gain.
    pub fn percent(&mut self, wakeups: usize, gain: i64) -> u32 {
        let above = self.gains(wakeups).iter().filter(|one| **one >= gain).count();
        (above as u32 + 1) * 100 / (PROCESSES as u32 + 1)
    }

    /// Is a gain far beyond that of all these processes? Each further bit halves the probability, so one thread in some thousands without
    /// a period has such a gain.
    pub fn is_exceeded(&mut self, wakeups: usize, gain: i64) -> bool {
        self.gains(wakeups).iter().all(|one| one + BITS_BEYOND * BIT < gain)
    }

    fn gains(&mut self, wakeups: usize) -> &[i64] {
        let class = wakeups.next_power_of_two().clamp(16, WAKEUPS_MAX);
        let seed = self.seed;
        self.gains.entry(class).or_insert_with(|| {
            let mut draw = Draw::new(seed ^ class as u64);
            let gain = |_| best_fit(&process(class, &mut draw), &[]).map_or(0, |fit| fit.gain);
            (0..PROCESSES).map(gain).collect()
        })
    }
}

/// Times of so many wake-ups, 10 ms apart on average.
fn process(wakeups: usize, draw: &mut Draw) -> Vec<i64> {
    let all_ns = wakeups as u64 * 10_000_000;
    let mut times: Vec<i64> = (0..wakeups).map(|_| draw.between(0, all_ns) as i64).collect();
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_processes_are_within_what_is_expected() {
        let (mut chance, mut draw) = (Chance::new(1), Draw::new(2));
        let mut rare = 0;
        for _ in 0..20 {
            let fit = best_fit(&process(200, &mut draw), &[]);
            rare += u32::from(chance.percent(200, fit.map_or(0, |fit| fit.gain)) <= 5);
        }
        assert!(rare <= 4, "{rare} of 20 are as good as the best 5 %");
    }
}
