//! From bytes to trees, with the place of everything in the texts.

pub mod faults;
pub mod files;
pub mod source;
pub mod tree;
pub mod units;
