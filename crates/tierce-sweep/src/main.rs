//! The program `tierce-sweep`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tierce_sweep::program::main()
}
