//! The plan language: parse, validate, resolve, schema, admission.
//!
//! [`Plan::load`] reads a file (and what it includes) and returns either a resolved [`Plan`] or all of its faults.
//!
//! ```
//! let plan = tierce_plan::Plan::parse(
//!     r#"
//!     [node.top]
//!     policy = "fair"
//!     cpu = 0
//!     [task.hog]
//!     under.top = { weight = 200 }
//!     load = "busy"
//!     "#,
//!     "example.toml",
//! )
//! .unwrap();
//! assert_eq!(plan.tasks[0].name, "hog");
//!
//! let faults = tierce_plan::Plan::parse("[task.hog]\nunder.tpo = {}\nlaod = 3", "bad.toml").unwrap_err();
//! assert_eq!(faults.faults.len(), 2);
//! ```

mod above;
mod adjust;
mod admission;
mod build;
mod change;
mod csv;
mod deadlines;
mod derivation;
mod edit;
mod exact;
mod faults;
mod given;
mod glob;
mod json;
mod kept;
mod laws;
mod load;
mod matching;
mod model;
mod orders;
mod outline;
mod overheads;
mod parse;
mod placement;
pub mod policies;
mod promises;
mod rates;
mod remedies;
mod reserves;
mod resolve;
mod responses;
mod rest;
mod rt_app;
mod runnable;
mod schema;
mod servers;
mod several;
mod several_budgets;
mod slower;
mod source;
mod spread;
mod stability;
mod structure;
mod topology;
mod tree;
mod units;
mod warnings;
mod words;

pub use above::{Above, Left, Reserved};
pub use admission::{
    Admission, EdgeVerdict, Excess, Failure, Law, Mend, NodeVerdict, TaskVerdict, CHECK_VERSION,
};
pub use build::{Ids, Members, Refused};
pub use change::{Change, Difference, Fixed, Host, Leaving, Transition, Verb};
pub use deadlines::Deadlines;
pub use derivation::{Derived, Origin, Part, Step};
pub use edit::{Below, Edit, Keys};
pub use exact::{percent, percent_given, Share};
pub use faults::{Fault, Faults};
pub use glob::Glob;
pub use json::Written;
pub use matching::Thread;
pub use model::*;
pub use parse::Options;
pub use placement::Standing;
pub use promises::{Promise, Proof, Shown};
pub use remedies::{Broken, Remedy};
pub use schema::schema;
pub use source::{Place, Source, Sources, Spot};
pub use tierce_guarantee::TIME_MAX_NS;
pub use topology::{Distance, Near, Topology};
pub use units::{parse_time, show_time, TimeError};

impl Plan {
    /// Read the plan at `path`; one CPU unless it says otherwise.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Plan, Faults> {
        Self::load_with(path, Options::default())
    }

    /// Read the plan at `path`; `options` say what it does not.
    pub fn load_with(path: impl AsRef<std::path::Path>, options: Options) -> Result<Plan, Faults> {
        parse::load(path.as_ref(), options)
    }

    /// Resolve a text; `name` is its path for messages and for files that it names.
    pub fn parse(text: &str, name: &str) -> Result<Plan, Faults> {
        Self::parse_with(text, name, Options::default())
    }

    /// Resolve a text; `options` say what it does not.
    pub fn parse_with(text: &str, name: &str, options: Options) -> Result<Plan, Faults> {
        parse::from_text(text, name, options)
    }

    /// Resolve texts that were read before, e.g. [`Plan::sources`] of a plan: itself first, then what it names.
    pub fn from_sources(sources: &Sources, options: Options) -> Result<Plan, Faults> {
        parse::from_sources(sources, options, &Default::default())
    }

    /// The same while another plan is in force: what has `cpu = "any"` keeps its CPU if that is possible.
    pub fn from_sources_after(
        sources: &Sources,
        options: Options,
        standing: &Standing,
    ) -> Result<Plan, Faults> {
        parse::from_sources(sources, options, standing)
    }
}
