//! How near to its bound the longest is that was seen: the classes of all attacks on bounds. Taken in by `#[path]`.
#![allow(dead_code)]

/// Below 0.1, 0.2, … 0.9 and 1 of the bound, and equal to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen([u64; 11]);

impl Seen {
    /// Nothing may be above its bound; `about` says what was.
    #[track_caller]
    pub fn add(&mut self, longest: u64, bound: u64, about: impl FnOnce() -> String) {
        assert!(longest <= bound, "{longest} seen, bound {bound}: {}", about());
        let class = if longest == bound { 10 } else { u128::from(longest) * 10 / u128::from(bound) };
        self.0[class as usize] += 1;
    }

    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// At least 0.9 of the bound.
    pub fn near(&self) -> u64 {
        self.at_least_tenths(9)
    }

    /// At least so many tenths of the bound.
    pub fn at_least_tenths(&self, tenths: usize) -> u64 {
        self.0[tenths..].iter().sum()
    }

    pub fn equal(&self) -> u64 {
        self.0[10]
    }

    /// Prints the row of a table in a page: how many, and how many per cent of them in each class.
    pub fn print(&self, name: &str) -> &Self {
        let all = self.all().max(1) as f64;
        let share = |count: &u64| match *count as f64 * 100.0 / all {
            0.0 => " 0 |".into(),
            share if share < 0.05 => " < 0.05 |".into(),
            share => format!(" {share:.1} |"),
        };
        println!("| {name} | {} |{}", self.all(), self.0.iter().map(share).collect::<String>());
        self
    }
}

/// Sets that are tried: TIERCE_ROUNDS, or so many.
pub fn rounds(preset: u64) -> u64 {
    std::env::var("TIERCE_ROUNDS").map_or(preset, |rounds| rounds.parse().expect("TIERCE_ROUNDS is a number"))
}
