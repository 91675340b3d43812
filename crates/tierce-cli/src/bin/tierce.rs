//! The program `tierce`.

use std::process::ExitCode;

/// Simulations and plans are made of small pieces of memory that come and go.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tierce_cli::main()
}
