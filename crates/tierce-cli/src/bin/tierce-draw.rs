//! The program `tierce-draw`: what draws figures is as large as all the rest, and few commands need it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tierce_cli::draw::main()
}
