//! Bounds that no single policy owns: on what is left, on what several supply together, on responses.

pub mod adjacent_reserves;
pub mod higher_classes;
pub mod leftover_supply;
pub mod max_min_shares;
pub mod response;
pub mod smallest_reduction;
