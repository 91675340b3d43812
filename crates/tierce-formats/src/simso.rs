//! SimSo's XML (<https://github.com/MaximeCheramy/simso>): one scheduler for all processors, and tasks. Times of tasks are
//! milliseconds, overheads are cycles.

mod read;
mod write;

pub use read::read;
pub use write::write;
