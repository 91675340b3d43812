//! Deterministic event-driven simulator of a plan.
//!
//! The decisions come from the scheduling core (policy/*.c through [`tierce_policy::Graph`]); the simulator plays the
//! rest of the machine: time, tasks, interrupts, and what scheduling costs. It never reads a clock, draws only from
//! seeded streams and decides in integers, so a run is the same on every machine and in every build mode.
//!
//! ```
//! use tierce_admission::PlanExt;
//! use tierce_plan::Plan;
//! let plan = Plan::parse(
//!     r#"
//!     [node.top]
//!     policy = "edf"
//!     cpu = 0
//!     [task.a]
//!     under.top = {}
//!     load = { period = "10ms", work = "2ms" }
//!     "#,
//!     "example.toml",
//! )
//! .unwrap();
//! let mut simulation = tierce_sim::Simulation::new(&plan, Default::default()).unwrap();
//! simulation.run_until(1_000_000_000).unwrap();
//! let report = simulation.report();
//! assert_eq!((report.tasks[0].jobs, report.tasks[0].cpu_ns), (100, 200_000_000));
//! ```

mod draw;
mod earliest;
mod locks;
mod marks;
mod program;
mod queue;
mod simulation;
mod watch;

pub use draw::Stream;
pub use program::{Job, Next, Program, Step};
pub use simulation::{Options, Simulation, Violation};
