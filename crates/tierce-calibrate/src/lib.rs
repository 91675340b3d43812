//! Periods and work of threads, from their sleeping and waking; and profiles of programs.
//!
//! Others watch threads and say when each was woken, when it slept, and how long it ran ([`Watched`]). [`analyse`] finds its periods and
//! the CPU time of its jobs ([`Finding`]):
//!
//! 1. *Candidates* are peaks of the spectrum of its wake-ups, and the median interval between them.
//! 2. *Fit.* Each candidate becomes a comb of times at equal distances, fitted to the wake-ups by medians. What it explains is counted in
//!    bits: how much likelier the wake-ups are with this comb than at random. The best one wins.
//! 3. *Chance.* The same search on Poisson processes with as many wake-ups says what chance explains, by seed.
//! 4. *The next period* is that of the wake-ups which are left. One that stays in step with a period found before is no period of its
//!    own: the thread sleeps briefly within its jobs.
//! 5. *Jobs.* From one release to the next, all that the thread runs is one job.
//!
//! Example: a thread wakes at 0, 10, 20, 23, 30, 40 ms, and so on. A comb of 10 ms explains all but 23. A comb of 5 ms explains no more
//! and promises twice as many releases; one of 20 ms explains half.
//!
//! From the findings comes a [`Profile`] with a reservation for each period, and profiles are kept in a [`Store`].
//!
//! It does not know the program: a thread that waits for its work at irregular times but does it regularly on average has no period. Two
//! periods of one thread of which one is a multiple of the other are told as one.

mod burst;
mod comb;
mod finding;
mod identity;
mod jobs;
mod logarithm;
mod periods;
mod plan;
mod poisson;
mod profile;
mod proposal;
mod reading;
mod search;
mod spectrum;
mod store;

pub use burst::{Burst, Watched};
pub use finding::{analyse, Arrival, Finding, Kind, Period};
pub use identity::{mapped_files, of_machine, of_program, opened, Change, File, Machine, Program, Routine};
pub use jobs::Work;
pub use plan::{plan, plan_of, Planned, Watching};
pub use poisson::Chance;
pub use profile::{Calibration, Profile, Seen, Thread, Verdict};
pub use proposal::{propose, Importance, Margin, Reservation};
pub use reading::ProfileError;
pub use store::{Layer, Store, StoreError, Stored};
