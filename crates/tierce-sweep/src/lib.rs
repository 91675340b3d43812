//! Studies: random task sets at each point of a grid, each analysed and simulated in several ways ([page](../../../docs/sweep.md)).
//!
//! [`read`] makes a [`Study`] of a text, or a list of its faults. [`run`] does what is missing in a [`Folder`], on all CPUs. A folder's
//! rows follow from the study alone: they depend neither on the number of threads, nor on how often a run was killed, nor
//! on who did which part.
//!
//! ```text
//! STUDY.toml ──read──> Study ──run──> rows/chunk-*.parquet ──points──> figures
//! ```

mod analysis;
mod decimal;
mod drawing;
mod figures;
mod folder;
mod job;
mod output;
pub mod program;
mod read;
mod rows;
mod run;
mod seeds;
mod simulation;
mod study;

pub use figures::{points, Line, Spot, Table};
pub use folder::{Folder, Refused};
pub use output::{draw, figures_of};
pub use read::{read, read_with};
pub use rows::{cell, columns, to_json, types, Cell, Row, Type};
pub use run::{file_of, run, Ended, Part};
pub use seeds::{identity, seed};
pub use study::Study;
