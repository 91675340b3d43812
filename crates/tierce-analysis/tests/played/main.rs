//! Jobs with regions without preemption, in order of arrival, with suspensions, and with known phases, against schedules that
//! are played slot by slot.

mod offsets;
mod player;
mod sections;
mod suspension;
