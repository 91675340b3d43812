//! Drawing figures.

mod canvas;
mod layout;
mod legend;
mod letters;
mod notes;
mod output;
mod panel;
mod style;

pub use canvas::Rect;
pub use output::texts;
