//! `tierce vm` without the rest of tierce: `cargo run -p tierce-vm --example vm -- uname -r`.

use clap::Parser;

#[path = "../../tierce-cli/src/commands/vm.rs"]
mod vm;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: vm::Args,
}

fn main() -> std::process::ExitCode {
    vm::run(Cli::parse().args).unwrap_or_else(|error| {
        eprintln!("vm: {error:#}");
        2.into()
    })
}
