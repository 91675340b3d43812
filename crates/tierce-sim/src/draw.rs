//! Random draws, all in integers, so that they are the same everywhere.
//!
//! A [`Stream`] is SplitMix64 (Steele, Lea, Flood 2014): state += 0x9e3779b97f4a7c15, then the finaliser of
//! Stafford's mix 13. A stream begins where the seed of the run, the name of who draws, and what for, say: adding a task
//! to a plan changes nobody else's draws.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of draws; a copy draws the same again.
#[derive(Clone, Copy, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream of `who` for `what`, by the seed of the run.
    pub fn new(seed: u64, who: &str, what: u64) -> Stream {
        // FNV-1a over the name, then two rounds of mixing to keep streams apart.
        let name = who.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Stream(mix(mix(seed ^ GAMMA).wrapping_add(name).wrapping_add(what.wrapping_mul(GAMMA)) ^ mix(name)))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// Uniform from `least` to `most`, both included; biased by less than (most - least) / 2^64.
    #[inline]
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        let span = u128::from(most - least) + 1;
        least + ((u128::from(self.bits()) * span) >> 64) as u64
    }

    /// Exponential with this mean, at least 1: -ln(u) * mean for u uniform in (0, 1], with 32 fractional bits.
    ///
    /// -log2(u) comes from squaring: the leading zeros of u are its integer part, and each squaring of the rest, a
    /// number in [1, 2), gives one more bit.
    pub fn exponential(&mut self, mean_ns: u64) -> u64 {
        const LN_2: u128 = 0xb172_17f7; // ln 2 in 2^-32
        let u = self.bits().max(1);
        let zeros = u.leading_zeros();
        let (mut rest, mut log2) = (u128::from(u << zeros), 0u64); // rest in [1, 2), 2^-63
        for _ in 0..32 {
            rest = (rest * rest) >> 63;
            let bit = (rest >> 64) as u64 & 1; // 2 or more
            rest >>= bit;
            log2 = log2 << 1 | bit;
        }
        // u = 2^-(zeros + 1) * (1 + fraction), so -log2(u) = zeros + 1 - log2(1 + fraction)
        let minus_log2 = (u128::from(zeros + 1) << 32) - u128::from(log2);
        let minus_ln = (minus_log2 * LN_2) >> 32;
        (((minus_ln * u128::from(mean_ns)) >> 32) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned() {
        let mut stream = Stream::new(1, "audio", 0);
        let first: Vec<u64> = (0..3).map(|_| stream.between(0, 999)).collect();
        assert_eq!(first, PINNED);
        assert_ne!(Stream::new(1, "audio", 1).bits(), Stream::new(1, "audio", 0).bits());
        assert_ne!(Stream::new(2, "audio", 0).bits(), Stream::new(1, "audio", 0).bits());
        assert_ne!(Stream::new(1, "video", 0).bits(), Stream::new(1, "audio", 0).bits());
    }
    const PINNED: [u64; 3] = [301, 291, 528];

    #[test]
    fn between_reaches_both_ends() {
        let mut stream = Stream::new(7, "x", 0);
        let drawn: Vec<u64> = (0..1000).map(|_| stream.between(3, 6)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&6)));
        assert_eq!(stream.between(5, 5), 5);
        stream.between(0, u64::MAX);
    }

    #[test]
    fn exponential_has_its_mean_and_tail() {
        let mut stream = Stream::new(7, "irq", 0);
        let n = 100_000;
        let drawn: Vec<u64> = (0..n).map(|_| stream.exponential(1_000_000)).collect();
        let mean = drawn.iter().sum::<u64>() / n;
        assert!((990_000..1_010_000).contains(&mean), "{mean}");
        let beyond = drawn.iter().filter(|&&x| x > 2_000_000).count(); // e^-2 = 13.53 %
        assert!((13_200..13_900).contains(&beyond), "{beyond}");
        assert_eq!(stream.exponential(0), 1);
    }
}
