//! `tierce manager`: the manager is a program of its own.

use super::beside;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

/// Answer requests for CPU time, beside a plan in force (root): runs `tierce-manager`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What `tierce-manager` is told; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Its name.
pub const PROGRAM: &str = "tierce-manager";

/// Run `tierce manager`.
pub fn run(args: Args) -> Result<ExitCode> {
    beside::run(PROGRAM, &args.arguments)
}
