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

mod adjust;
mod any_cpu;
mod build;
mod change;
mod csv;
mod edit;
mod faults;
mod glob;
mod load;
mod matching;
mod model;
mod parse;
pub mod policies;
mod resolve;
mod rt_app;
mod schema;
mod shape;
mod source;
mod structure;
mod topology;
mod tree;
mod units;

pub use any_cpu::{unplaced, Placed, Placer, Standing, Unit};
pub use build::{Ids, Members, Refused};
pub use change::{Change, Difference, Fixed, Host, Leaving, Transition, Verb};
pub use edit::{Below, Edit, Keys};
pub use faults::{Fault, Faults};
pub use glob::Glob;
pub use matching::Thread;
pub use model::*;
pub use parse::Options;
pub use schema::schema;
pub use shape::{cpus, several, Shape};
pub use source::{Place, Source, Sources, Spot};
pub use tierce_guarantee::TIME_MAX_NS;
pub use topology::{Distance, Near, Topology};
pub use tree::closest;
pub use units::{parse_time, show_time, TimeError};

impl Plan {
    /// Read the plan at `path`; `options` say what it does not.
    pub fn read(path: impl AsRef<std::path::Path>, options: Options, placer: Placer) -> Result<Plan, Faults> {
        parse::load(path.as_ref(), options, placer)
    }

    /// Resolve a text; `name` is its path for messages and for files that it names.
    pub fn of_text(text: &str, name: &str, options: Options, placer: Placer) -> Result<Plan, Faults> {
        parse::from_text(text, name, options, placer)
    }

    /// Resolve texts that were read before, e.g. [`Plan::sources`] of a plan: itself first, then what it names. While another
    /// plan is in force, which is `standing`, what has `cpu = "any"` keeps its CPU if that is possible.
    pub fn of_sources(
        sources: &Sources,
        options: Options,
        standing: &Standing,
        placer: Placer,
    ) -> Result<Plan, Faults> {
        parse::from_sources(sources, options, standing, placer)
    }
}
