//! The verdict for people and tools: as a tree, as JSON, step by step, with remedies.

pub mod derivation;
pub mod json;
pub mod outline;
pub mod remedies;
pub mod search;
pub mod warnings;
pub mod words;
