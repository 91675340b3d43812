//! Admission control: which guarantees of a plan hold, why, and what would fix those that do not.
//!
//! In layers; each uses those above it only:
//!
//! - [`share`](Share), `verdict`, `rules`: exact fractions; what is said of nodes, edges and tasks; the rules of a proof;
//! - `demand`: what is asked for: jobs, budgets, threads that nobody counted, the costs of scheduling;
//! - `bounds`: what no single policy owns: left-over supply, higher scheduling classes, reserves on several CPUs;
//! - `laws`: one file a policy, as in `policy/`: what it tests, guarantees, passes on and takes;
//! - `composition`: from the laws of single nodes to the verdict on a plan; where `cpu = "any"` fits;
//! - `explain`: the verdict for people and tools, and remedies;
//! - [`servers`]: the plan of servers that were placed.
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

mod bounds;
mod composition;
mod demand;
mod explain;
mod laws;
mod plan;
mod rules;
pub mod servers;
mod share;
mod verdict;

pub use bounds::higher_classes::{Above, Reserved};
pub use composition::brief::Brief;
pub use composition::placement::place;
pub use demand::regions::{Blocker, Keeps, Kept};
pub use explain::derivation::Derived;
pub use explain::json::Written;
pub use explain::remedies::{Broken, Remedy};
pub use plan::PlanExt;
pub use rules::{ProofRule, PROOF_RULES};
pub use share::{percent, percent_given, Share};
pub use verdict::{
    Admission, ChainVerdict, Deadlines, EdgeVerdict, Excess, Failure, Law, LinkVerdict, Mend, NodeVerdict,
    Origin, Part, Promise, Proof, Shown, Step, TaskVerdict, CHECK_VERSION,
};
