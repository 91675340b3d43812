//! The `tierce` command: one plan, checked, simulated, enforced.

mod commands;
mod picture;

use clap::Parser;
use std::process::ExitCode;

/// Hierarchical real-time CPU scheduling from one plan file.
#[derive(Parser)]
#[command(name = "tierce", version, propagate_version = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

const AFTER_HELP: &str = "\
Start with an example:
  tierce check examples/desktop.toml                   which promises hold, and why not
  tierce check --explain audio examples/desktop.toml   what one part is promised, and why
  tierce sim examples/desktop.toml --for 2s            what it does, simulated
  tierce vm -- tierce run examples/desktop.toml        enforced, on a throw-away machine
  tierce doctor                                        can this machine enforce a plan?
  tierce run examples/desktop.toml                     enforce it here (root), until Ctrl-C
  tierce apply changed.toml                            change it while it runs
  tierce ctl reserve 1234 --under rt --budget 2ms --period 10ms
                                                       one thing at a time, by name: no file is changed
  tierce measure run.trace                             jitters and overheads of its jobs
  tierce job --period 10ms --work 3ms                  a periodic thread to try it with

Before there is a plan:
  tierce guarantee convert 'RESCS 10ms 20ms' PSBE      what follows from a promise of CPU time
  tierce analyse --policy edf tasks.csv                do these tasks meet their deadlines?
  tierce design server --policy rm tasks.csv           the smallest reservation in which they do
  tierce split --algorithm s-ekg --cpus 4 tasks.csv    on several CPUs, some tasks split over two: as a plan
  tierce place --cpus 2 --strategy period servers.csv  servers to CPUs, each on one: as a plan
  tierce gen --method emberson --help                  random task sets
  tierce hartstone --extended                          five schedulers, harmonic tasks, an overload

Exit codes: 0 holds / done, 1 does not hold, 2 bad input or environment.";

fn main() -> ExitCode {
    // `tierce sim PLAN | head` ends when head has seen enough, like every other command.
    // SAFETY: no other thread yet, and the default action is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    commands::run(Cli::parse().command)
}
