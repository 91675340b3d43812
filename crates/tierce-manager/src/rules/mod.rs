//! Rules: scripts that decide what admission control cannot, such as who counts more than whom. A rule gets what is known as data and returns
//! what it decides as data; the manager does it, as one transition.
//!
//! A rule is a text in Rhai with a function for each event it is about, `fn new_request(it) { … }`. It can compute and nothing
//! else, within [`bounds`]. A rule that fails or exceeds a bound has decided nothing; [`Rules::decide`] says so by name.

mod bounds;
mod convert;
mod decision;
mod engine;
mod known;
mod shipped;

pub use bounds::*;
#[cfg(test)]
pub use convert::of_rule;
pub use convert::{list, map, number, text, to_rule, Data, Record};
pub use decision::{keys, Create, Decision, SetKeys, Timer, To};
pub use engine::{cpu_time, Evaluated, Fits, Rules};
pub use known::Known;
pub use shipped::{shipped, SHIPPED};
