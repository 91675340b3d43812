//! The program `tierce-top`: whoever enforces plans needs no screen.

use std::process::ExitCode;

fn main() -> ExitCode {
    tierce_cli::top::main()
}
