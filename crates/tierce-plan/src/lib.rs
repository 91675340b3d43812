//! The plan language: parse, validate, resolve, schema, admission.
//!
//! [`Plan::load`] reads a file (and what it includes) and returns either a resolved [`Plan`] or all of its faults.

mod faults;
mod glob;
mod model;
mod source;

pub use faults::{Fault, Faults};
pub use glob::Glob;
pub use model::*;
pub use source::{Place, Source, Sources, Spot};
