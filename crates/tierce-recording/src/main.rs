//! The program `tierce-recording`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tierce_recording::program::main()
}
