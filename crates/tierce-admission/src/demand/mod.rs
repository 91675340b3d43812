//! What is asked for: jobs, budgets, threads that nobody counted, the costs of scheduling.

pub mod jobs;
pub mod overheads;
pub mod uncounted_threads;
