//! `tierce._native`: what the Python package `tierce` is made of. `tierce/__init__.py` says what is public, `tierce/_native.pyi`
//! what each of it takes and gives.
//!
//! A refusal is an exception of `tierce/_errors.py`. Long work runs without the interpreter's lock, in slices, and looks for
//! Ctrl-C between them ([`interruptible`]).

mod analysis;
mod check;
mod errors;
mod guarantee;
mod interruptible;
mod json;
mod place;
mod plan;
mod report;
mod servers;
mod simulation;
mod sweep;
mod table;
mod task_set;
mod time;
mod trace;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::analysis::{analyse, analyse_many, Analysis};
    #[pymodule_export]
    use crate::check::Check;
    #[pymodule_export]
    use crate::guarantee::convert_guarantee;
    #[pymodule_export]
    use crate::place::{place, Placement};
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::report::Report;
    #[pymodule_export]
    use crate::servers::{design_server, split};
    #[pymodule_export]
    use crate::sweep::{Results, Study};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::task_set::{generate, TaskSet};
    #[pymodule_export]
    use crate::time::{parse_time, show_time};
    #[pymodule_export]
    use crate::trace::Trace;
}
