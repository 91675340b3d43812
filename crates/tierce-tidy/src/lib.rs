//! Circles between the modules of a crate: modules that import each other, directly or through others.
//!
//! A module is a file. It *uses* another one when its text names something that the other one defines: in a `use`, or by a path
//! such as `crate::units::show_time`, in macros as well. What a module re-exports counts as a use of where it is defined. So a
//! parent that declares its children, or re-exports their items, is in no circle with a child, unless the child uses what the
//! parent's own file defines and the parent's own code uses the child.
//!
//! Example: `parse.rs` has `use crate::resolve::Resolver` and `resolve.rs` has `use crate::parse::Options`: a circle of two.
//!
//! The same holds between the folders of a crate ([`at_the_top`]): they are its layers.
//!
//! Not seen: methods, since they are found by their type (`impl Plan` in one file, `plan.admit()` in another), and what macros
//! make. Code under `#[cfg(test)]` is left out: tests may use everything.

mod graph;
mod names;

pub use graph::{at_the_top, circles, Circle, Uses};

use std::path::Path;

/// Who uses what of whom in the crate whose root is that file.
pub fn uses(root: &Path) -> Result<Uses, String> {
    uses_by(root, &|path| std::fs::read_to_string(path).ok())
}

/// The same; `read` gives the text of a file, if there is one.
pub fn uses_by(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Result<Uses, String> {
    names::Crate::read(root, read).map(|it| it.uses())
}
