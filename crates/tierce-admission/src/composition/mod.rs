//! From the laws of single nodes to the verdict on a plan: rates and guarantees from the CPUs down, interference from the tasks up.

pub mod admission;
pub mod asked;
pub mod brief;
pub mod chains;
pub mod deadlines;
pub mod interference;
pub mod long_run_rates;
pub mod multiprocessor;
pub mod one_step;
pub mod placement;
pub mod promises;
pub mod response_times;
pub mod runnable;
pub mod several_budgets;
