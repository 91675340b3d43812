//! Programs of their own, most of which take this one's place.

use anyhow::{anyhow, Context, Result};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where it is.
pub fn program(name: &str) -> Result<PathBuf> {
    let beside = std::env::current_exe().context("where is this program")?.with_file_name(name);
    Ok(if beside.is_file() { beside } else { name.into() })
}

/// Run the program of that name: the one beside this one, or where programs are.
pub fn run(name: &str, arguments: &[OsString]) -> Result<ExitCode> {
    run_as(name, name, arguments)
}

/// The same, where help and messages say what was typed.
pub fn run_as(name: &str, typed: &str, arguments: &[OsString]) -> Result<ExitCode> {
    let program = program(name)?;
    let mut command = Command::new(&program);
    command.arg0(typed).args(arguments);
    if let Some(folder) = super::policy::folder() {
        command.env(tierce_policy::added::VARIABLE, folder);
    }
    // This returns only if it fails.
    Err(refused(&program, command.exec()))
}

/// Why it does not run.
pub fn refused(program: &Path, why: io::Error) -> anyhow::Error {
    let name = program.display();
    match why.kind() {
        io::ErrorKind::NotFound => {
            anyhow!("program_must_be_installed: {name}: it belongs beside tierce (docs/packages.md)")
        }
        _ => anyhow!("{name} cannot be run: {why}"),
    }
}
