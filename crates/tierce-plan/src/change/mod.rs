//! A plan in force changes: one operation on its text, the differences between two plans, the way from one to the other.

mod adjust;
pub mod difference;
pub mod edit;
pub mod editor;
mod parents;
pub mod step;
mod toml;
pub mod transition;
pub mod upgrade;
mod written;

// Shared by the tests of several files here.
#[cfg(test)]
#[path = "../../../../tests/draw.rs"]
mod draw;
#[cfg(test)]
#[path = "../../../../tests/edits.rs"]
mod edits;
