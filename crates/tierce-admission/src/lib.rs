//! Admission: which promises of a plan hold, why, and what would mend those that do not.
//!
//! ```
//! use tierce_admission::PlanExt;
//! use tierce_plan::Plan;
//! let plan = Plan::parse(
//!     r#"
//!     [node.rt]
//!     policy = "reservation"
//!     cpu = 0
//!     [task.video]
//!     under.rt = { budget = "5ms", period = "20ms" }
//!     load = "busy"
//!     "#,
//!     "example.toml",
//! )
//! .unwrap();
//! let verdict = plan.admit();
//! assert!(verdict.holds);
//! assert_eq!(verdict.tasks[0].promises[0].guarantee.to_string(), "RESBH 5ms 20ms");
//! ```

mod above;
mod admission;
mod bound;
mod deadlines;
mod derivation;
mod given;
mod jobs;
mod json;
mod kept;
mod laws;
mod mend;
mod node;
mod open_sets;
mod outline;
mod overheads;
mod placement;
mod plan;
mod promises;
mod rates;
mod remedies;
mod reserves;
mod responses;
mod rest;
mod runnable;
mod servers;
mod several;
mod share;
mod slower;
mod spread;
mod verdict;
mod warnings;
mod words;

pub use above::{Above, Reserved};
pub use derivation::Derived;
pub use json::Written;
pub use placement::place;
pub use plan::PlanExt;
pub use remedies::{Broken, Remedy};
pub use share::{percent, percent_given, Share};
pub use verdict::{
    Admission, Deadlines, EdgeVerdict, Excess, Failure, Law, Mend, NodeVerdict, Origin, Part, Promise, Proof,
    Shown, Step, TaskVerdict, CHECK_VERSION,
};
