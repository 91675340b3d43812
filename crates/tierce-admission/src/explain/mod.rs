//! The verdict for people and tools: as a tree, as JSON, step by step, with remedies.

mod chains;
mod computed;
pub mod derivation;
mod findings;
pub mod forged_matches;
pub mod json;
pub mod outline;
pub mod part;
pub mod remedies;
pub mod search;
mod usual_mode;
mod waits;
mod warnings;
pub mod words;
