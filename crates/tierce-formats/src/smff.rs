//! SMFF's XML, which pyCPA (<https://github.com/IDA-TUBS/pycpa>) reads: resources that serve by priority, and applications of tasks
//! that follow each other. Times have no unit.

mod read;
mod write;

pub use read::read;
pub use write::write;
