//! What is asked for: jobs, budgets, threads that nobody counted, the costs of scheduling.

pub mod jobs;
pub mod open_sets;
pub mod overheads;
