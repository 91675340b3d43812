//! The program `tierce-manager`: what users send is never in the process that holds the plan in force.

use mimalloc::MiMalloc;
use std::process::ExitCode;
use tierce_manager::memory::Counted;

/// Half of what a request takes in user mode is memory that comes and goes. It is counted, so that rules have a bound on theirs.
#[global_allocator]
static ALLOCATOR: Counted<MiMalloc> = Counted(MiMalloc);

fn main() -> ExitCode {
    tierce_cli::manager::main()
}
