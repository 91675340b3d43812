//! Guarantees of CPU time: what a scheduler promises to whom it schedules, and what follows from it.
//!
//! The twelve types of Regehr's thesis on hierarchical loadable schedulers (HLS, chapter 5) with exact numbers, the
//! conversions between them ([`convert()`], [`show`], [`cell`]), what is sure to arrive in a window ([`Supply`]), numbers
//! solved for ([`best`], [`weakest`]), and what schedulers make of a guarantee ([`schedulers`]). Nothing here does any I/O
//! or rounds.

mod best_number;
mod convert;
mod exact;
mod guarantee;
mod number;
pub mod schedulers;
mod solve;
mod supply;

pub use convert::{
    cell, convert, converted, follows, includes, show, Cell, Derivation, Free, Refusal, Rule, Step, RULES,
};
pub use exact::Exact;
pub use guarantee::{Fault, Faults, Guarantee, Kind, Parameter, Wanted};
pub use number::{noted_time, ratio, show_ns, show_share, show_time, whole, NumberError, TIME_MAX_NS, UNITS};
pub use solve::{best, derive, weakest};
pub use supply::Supply;
