//! `tierce scenario`: scripted tasks and control operations, played by the kernel and predicted by the simulator. For the
//! tests (tests/scenarios/) and for whoever changes a policy or a port.
//!
//! `play` runs in a throw-away machine: real processes follow the loads of the plan, control operations go through the
//! loader, every entry is recorded. `judge` replays the recording, which gives the kernel's state at any time, bit for
//! bit, and compares its decisions with those of a simulation that knows only the scenario.

mod judge;
mod play;
mod script;

use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Play scripted scenarios in the kernel, and compare what it decided with what the simulator predicts
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Play scenarios on this machine: one to throw away
    Play {
        /// Folder for NAME.rec, the recording, and NAME.json, when it began and what control operations returned
        #[arg(long)]
        out: PathBuf,
        /// The scenarios
        files: Vec<PathBuf>,
    },
    /// Is the order of what the simulator predicts certain, whatever a switch costs? 1: no
    Certain {
        /// The scenarios
        files: Vec<PathBuf>,
    },
    /// Compare what was played with the simulator's prediction; 1: they differ
    Judge {
        /// Folder that `play` has written
        #[arg(long)]
        out: PathBuf,
        /// The scenarios
        files: Vec<PathBuf>,
    },
}

/// Run `tierce scenario`.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Play { out, files } => play::play(&out, &files).map(|()| ExitCode::SUCCESS),
        Command::Certain { files } => judge::certain(&files),
        Command::Judge { out, files } => judge::judge(&out, &files),
    }
}
