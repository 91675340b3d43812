//! Jobs with regions without preemption, preemption thresholds, in order of arrival, with suspensions, locks, works in turn, bursts, and with known phases, against schedules that
//! are played slot by slot.

mod locks;
mod offsets;
mod player;
mod requests;
mod sections;
mod spin_locks;
mod suspending_locks;
mod suspension;
mod thresholds;
