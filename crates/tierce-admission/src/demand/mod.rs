//! What is asked for: jobs, their waits for locks and regions, budgets, threads that nobody counted, the costs of scheduling.

pub mod bandwidth_inheritance;
pub mod budget_locks;
pub mod jobs;
pub mod locks;
pub mod overheads;
pub mod regions;
pub mod spin_locks;
pub mod suspending_locks;
pub mod uncounted_threads;
