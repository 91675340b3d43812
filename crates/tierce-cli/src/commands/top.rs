//! `tierce top`: a program of its own, which takes this one's place: who enforces plans needs no screen.

use super::beside;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

/// Show what each part of a plan receives, live: the plan in force, a simulation, a trace: runs `tierce-top`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What `tierce-top` is told; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// The program, beside this one or where programs are.
pub const PROGRAM: &str = "tierce-top";

/// Run `tierce top`.
pub fn run(args: Args) -> Result<ExitCode> {
    beside::run(PROGRAM, &args.arguments)
}
