//! `tierce recording` and `tierce design plan`: recordings of other tools are read by a program of its own.

use super::beside;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

/// Read recordings of trace-cmd and perf, and propose plans for them: runs `tierce-recording`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What `tierce-recording` is told; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Propose a plan for what trace-cmd or perf has recorded, and simulate it: runs `tierce-recording plan`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct PlanArgs {
    /// What `tierce-recording plan` is told: `--from trace.dat`; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Run `tierce recording`.
pub fn run(args: Args) -> Result<ExitCode> {
    beside::run("tierce-recording", &args.arguments)
}

/// Run `tierce design plan`.
pub fn plan(args: PlanArgs) -> Result<ExitCode> {
    let mut arguments = vec![OsString::from("plan")];
    arguments.extend(args.arguments);
    beside::run_as("tierce-recording", "tierce design", &arguments)
}
