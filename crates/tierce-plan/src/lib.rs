//! The plan language: parse, validate, resolve, edit, compare, schema; a plan's graph by control operations.
//!
//! [`Plan::read`] reads a file (and what it includes) and returns either a resolved [`Plan`] or all of its faults. What a plan
//! guarantees is proved elsewhere (`tierce-admission`), and so is where what has `cpu = "any"` fits: readers are given a
//! [`Placer`].
//!
//! ```
//! use tierce_plan::{unplaced, Options, Plan};
//! let plan = Plan::of_text(
//!     r#"
//!     [node.top]
//!     policy = "fair"
//!     cpu = 0
//!     [task.hog]
//!     under.top = { weight = 200 }
//!     load = "busy"
//!     "#,
//!     "example.toml",
//!     Options::default(),
//!     unplaced,
//! )
//! .unwrap();
//! assert_eq!(plan.tasks[0].name, "hog");
//!
//! let text = "[task.hog]\nunder.tpo = {}\nlaod = 3";
//! let faults = Plan::of_text(text, "bad.toml", Options::default(), unplaced).unwrap_err();
//! assert_eq!(faults.faults.len(), 2);
//! ```

mod build;
mod change;
mod model;
pub mod policies;
mod resolve;
mod schema;
mod text;

pub use build::{Ids, Members, Refused};
pub use change::difference::{Change, Difference, Fixed, Verb};
pub use change::edit::{Below, Edit, Keys};
pub use change::editor::{JOB_DEADLINE, NO_DEADLINE};
pub use change::step::Step;
pub use change::transition::{Host, Leaving, Transition};
pub use change::upgrade::{upgrade, Renaming, Upgraded};
pub use model::any_cpu::{unplaced, Placed, Placer, Standing, Unit};
pub use model::glob::Glob;
pub use model::shape::{cpus, several, Shape};
pub use model::topology::{Distance, Near, Topology};
pub use model::trust::{runs_programs_of_users, system_unit};
pub use model::*;
pub use resolve::matching::{Fit, Glimpse, Thread};
pub use schema::schema;
pub use text::faults::{Fault, Faults};
pub use text::source::{Place, Source, Sources, Spot};
pub use text::units::{parse_time, show_time, TimeError};
pub use tierce_guarantee::TIME_MAX_NS;
pub use tierce_policy::Cpus;

/// Reading TOML with all of its faults, each with its place: as plans are read, for other texts in their style.
pub mod reading {
    pub use crate::resolve::locks::sections;
    pub use crate::text::tree::{listed, parse, wrong_kind, Collector, Fields, Key, Kind, Table, Value};
}

pub use text::tree::closest;

use resolve::documents;

impl Plan {
    /// Read the plan at `path`; `options` say what it does not.
    pub fn read(path: impl AsRef<std::path::Path>, options: Options, placer: Placer) -> Result<Plan, Faults> {
        documents::load(path.as_ref(), options, placer)
    }

    /// Resolve a text; `name` is its path for messages and for files that it names.
    pub fn of_text(text: &str, name: &str, options: Options, placer: Placer) -> Result<Plan, Faults> {
        documents::from_text(text, name, options, placer)
    }

    /// Resolve texts that were read before, e.g. [`Plan::sources`] of a plan: itself first, then what it names. While another
    /// plan is in force, which is `standing`, what has `cpu = "any"` keeps its CPU if that is possible.
    pub fn of_sources(
        sources: &Sources,
        options: Options,
        standing: &Standing,
        placer: Placer,
    ) -> Result<Plan, Faults> {
        documents::from_sources(sources, options, standing, placer)
    }
}
