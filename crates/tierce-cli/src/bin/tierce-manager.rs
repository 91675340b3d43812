//! The program `tierce-manager`: what users send is never in the process that holds the plan in force.

use std::process::ExitCode;

/// Half of what a request takes in user mode is memory that comes and goes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tierce_cli::manager::main()
}
