//! `tierce manager`: the manager is a program of its own, which takes this one's place.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Answer requests for CPU time, beside a plan in force (root): runs `tierce-manager`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What `tierce-manager` is told; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// The program, beside this one or where programs are.
pub const PROGRAM: &str = "tierce-manager";

/// Run `tierce manager`.
pub fn run(args: Args) -> Result<ExitCode> {
    become_program(PROGRAM, args.arguments)
}

/// Another program of this project takes this one's place: the one beside it, else the one where programs are.
pub fn become_program(name: &str, arguments: Vec<OsString>) -> Result<ExitCode> {
    let beside = std::env::current_exe().context("where is this program")?.with_file_name(name);
    let program = if beside.is_file() { beside } else { name.into() };
    let mut command = Command::new(&program);
    command.args(arguments);
    if let Some(folder) = super::policy::folder() {
        command.env(tierce_policy::added::VARIABLE, folder);
    }
    // This returns only if it fails.
    Err(command.exec()).with_context(|| format!("{} cannot be run", program.display()))
}
