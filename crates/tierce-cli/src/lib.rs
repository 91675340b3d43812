//! The programs `tierce` (one plan, checked, simulated, enforced), `tierce-manager`, `tierce-top` and `tierce-draw`: src/bin has a file for each.

mod commands;
pub mod draw;
mod journal;
pub mod manager;
pub mod top;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Hierarchical real-time CPU scheduling from one plan file.
#[derive(Parser)]
#[command(name = "tierce", version, propagate_version = true, after_help = AFTER_HELP)]
struct Cli {
    /// A folder with policies of yours (docs/own-policy.md). Otherwise the one that TIERCE_POLICY_DIR names.
    #[arg(long, global = true, value_name = "DIR")]
    policy_dir: Option<PathBuf>,
    #[command(subcommand)]
    command: commands::Command,
}

const AFTER_HELP: &str = "\
Start with an example:
  tierce check examples/desktop.toml                   which guarantees hold, and why others do not
  tierce check --explain audio examples/desktop.toml   the guarantee of one part, and why
  tierce sim examples/desktop.toml --for 2s            simulate the plan
  tierce vm -- tierce run examples/desktop.toml        enforce it in a virtual machine
  tierce doctor                                        can this machine enforce a plan?
  tierce run examples/desktop.toml                     enforce it here (root), until Ctrl-C
  tierce apply changed.toml                            change the plan in force
  tierce ctl reserve 1234 --under rt --budget 2ms --period 10ms
                                                       change one thing of it, without a file
  tierce request --thread 1234 --budget 2ms --period 10ms
                                                       ask `tierce manager` for it, as an ordinary user
  tierce top                                           what each part receives, live
  tierce measure run.trace                             jitters and overheads of jobs
  tierce job --period 10ms --work 3ms                  a periodic thread, to try a plan with
  tierce calibrate -- player film.mkv                  periods and work of a program's threads (root)
  tierce policy new mine/lucky.c                       a scheduling policy of your own
  tierce import model.xml -o plan.toml                 a plan from a file of MAST, SimSo or pyCPA

Without a plan:
  tierce guarantee convert 'RESCS 10ms 20ms' PSBE      convert a guarantee of CPU time
  tierce analyse --policy edf tasks.csv                are these tasks schedulable?
  tierce design server --policy rm tasks.csv           the smallest reservation in which they are
  tierce design plan --from trace.dat                  a plan for what trace-cmd or perf has recorded
  tierce split --algorithm s-ekg --cpus 4 tasks.csv    assign tasks to CPUs, some split over two
  tierce place --cpus 2 --strategy period servers.csv  assign servers to CPUs
  tierce gen --method emberson --help                  random task sets
  tierce sweep study.toml                              analyse and simulate very many of them
  tierce hartstone --extended                          the Hartstone benchmark under five schedulers

Exit codes: 0 schedulable / done, 1 not schedulable / refused, 2 bad input or environment.

Tutorials and reference: README.md and docs/ of the sources (make docs).";

/// The arguments of `tierce`, with those of its commands.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The program `tierce`.
pub fn main() -> ExitCode {
    // `tierce sim PLAN | head` ends when head has seen enough, like every other command.
    // SAFETY: no other thread yet, and the default action is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // Before the arguments are parsed: some of them are the policies' parameters.
    if let Err(error) = commands::policy::load() {
        eprintln!("tierce: {error:#}");
        return ExitCode::from(2);
    }
    match Cli::try_parse() {
        Ok(cli) => commands::run(cli.command),
        Err(error) => match file_for_a_command(&error) {
            Some(words) => {
                eprintln!("tierce: {words}");
                ExitCode::from(2)
            }
            None => error.exit(),
        },
    }
}

/// A file where a command is expected: which commands read it.
fn file_for_a_command(error: &clap::Error) -> Option<String> {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(file))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    else {
        return None;
    };
    if !Path::new(file).is_file() {
        return None;
    }
    Some(match std::env::args().nth(1) {
        Some(command) if command == "trace" => format!(
            "command_must_be_given: `{file}` is a file, and `tierce trace` needs a command before it:
  tierce trace stats {file}      CPU time, response times, misses
  tierce trace dump {file}       every record as a line
To draw it: tierce timeline {file} --html FILE; jitters and overheads: tierce measure {file}"
        ),
        Some(first) if first == *file => format!(
            "command_must_be_given: `{file}` is a file, and `tierce` needs a command before it:
  tierce check {file}      is it schedulable?
  tierce sim {file}        simulate it
  tierce run {file}        enforce it (root)
All commands: tierce --help"
        ),
        _ => return None,
    })
}
