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
mod deadlines;
mod derivation;
mod exact;
mod given;
mod json;
mod kept;
mod laws;
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
mod slower;
mod spread;
mod warnings;
mod words;

pub use above::{Above, Reserved};
pub use admission::{
    Admission, EdgeVerdict, Excess, Failure, Law, Mend, NodeVerdict, TaskVerdict, CHECK_VERSION,
};
pub use deadlines::Deadlines;
pub use derivation::{Derived, Origin, Part, Step};
pub use exact::{percent, percent_given, Share};
pub use json::Written;
pub use placement::place;
pub use plan::PlanExt;
pub use promises::{Promise, Proof, Shown};
pub use remedies::{Broken, Remedy};
