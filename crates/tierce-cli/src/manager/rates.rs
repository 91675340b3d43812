//! How often a person may ask, over the socket and over D-Bus together.

use crate::manager::people::People;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tierce_manager::Wrong;

/// Requests per second of one person, and how many may come at once.
const RATE: u32 = 10;
pub const BURST: u32 = 20;
/// The time in which one gets one more.
const EACH: Duration = Duration::from_millis(1000 / RATE as u64);
/// Persons whose rate is remembered, and for how long at least.
const PERSONS_MAX: usize = 4096;
const REMEMBERED: Duration = Duration::from_secs(60);

/// What each person has left.
#[derive(Clone)]
pub struct Rates {
    pub people: People,
    left: Arc<Mutex<HashMap<u32, Rate>>>,
}

/// What is left of somebody's requests, as the time in which so many come.
struct Rate {
    left: Duration,
    at: Instant,
}

impl Rate {
    fn take(&mut self) -> bool {
        let now = Instant::now();
        let left = (self.left + now.duration_since(self.at)).min(EACH * BURST);
        self.at = now;
        let has = left >= EACH;
        self.left = if has { left - EACH } else { left };
        has
    }
}

impl Rates {
    pub fn new(people: People) -> Self {
        Self { people, left: Arc::default() }
    }

    /// Whether that person may ask once more by now. Root may.
    pub fn may_ask(&self, person: u32) -> Result<(), Wrong> {
        if person == 0 {
            return Ok(());
        }
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= PERSONS_MAX {
            all.retain(|_, rate| rate.at.elapsed() < REMEMBERED);
        }
        let rate = all.entry(person).or_insert(Rate { left: EACH * BURST, at: Instant::now() });
        match rate.take() {
            true => Ok(()),
            false => {
                Err(Wrong::new("too_many_requests_per_second", format!("a person has {RATE} per second")))
            }
        }
    }
}
