//! How often a user may ask, over the socket and over D-Bus together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tierce_manager::Wrong;

/// Requests per second of one user, and how many may come at once.
const RATE: u32 = 10;
pub const BURST: u32 = 20;
/// The time in which a user gets one more.
const EACH: Duration = Duration::from_millis(1000 / RATE as u64);
/// Users whose rate is remembered, and for how long at least.
const USERS_MAX: usize = 4096;
const REMEMBERED: Duration = Duration::from_secs(60);

/// What all users have left.
#[derive(Clone, Default)]
pub struct Rates(Arc<Mutex<HashMap<u32, Rate>>>);

/// What is left of a user's requests, as the time in which so many come.
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
    /// Whether that user may ask once more by now. Root may.
    pub fn may_ask(&self, uid: u32) -> Result<(), Wrong> {
        if uid == 0 {
            return Ok(());
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= USERS_MAX {
            all.retain(|_, rate| rate.at.elapsed() < REMEMBERED);
        }
        let rate = all.entry(uid).or_insert(Rate { left: EACH * BURST, at: Instant::now() });
        match rate.take() {
            true => Ok(()),
            false => Err(Wrong::new("too_many_requests_per_second", format!("a user has {RATE} per second"))),
        }
    }
}
