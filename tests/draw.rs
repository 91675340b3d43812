//! Random numbers for tests: SplitMix64, which gives the same everywhere. Taken in by `#[path]`.

pub struct Draw(u64);

impl Draw {
    /// Seeded by TIERCE_SEED, which is printed; `salt` keeps tests apart.
    pub fn new(salt: u64) -> Self {
        let seed = std::env::var("TIERCE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2001);
        println!("TIERCE_SEED={seed}");
        Self(seed ^ salt << 32)
    }

    /// 0 or more, less than `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}
