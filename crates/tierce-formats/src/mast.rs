//! MAST's models (<https://mast.unican.es>), as text and as XML: processors, schedulers, servers, shared resources, operations and
//! transactions. Times have no unit.

mod flows;
mod locks;
mod notation;
mod operations;
mod platform;
mod read;
mod tree;
mod write;
mod xml;

pub use read::{read_text, read_xml};
pub use write::{write_text, write_xml};
