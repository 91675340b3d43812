//! `tierce sweep`: studies are done by a program of its own.

use super::beside;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

/// Analyse and simulate many random task sets, as a study says: runs `tierce-sweep`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What `tierce-sweep` is told; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Run `tierce sweep`.
pub fn run(args: Args) -> Result<ExitCode> {
    beside::run("tierce-sweep", &args.arguments)
}
