//! `tierce doctor`: can this machine enforce a plan?

use anyhow::{bail, Result};
use std::process::ExitCode;
use tierce_scx::doctor::{examine, Host, Needs};
use tierce_scx::topology;

/// Can this machine enforce a plan?
///
/// Checks the kernel, its configuration, the rights of the caller, and what would run beside a plan. One line per check: ✓ found,
/// ! a warning, ✗ missing, with what would help on the next line, · a note (what runs before any plan, which settings a plan
/// ignores). `tierce run` refuses with the same messages. It changes nothing, and works without root, but sees less then.
///
/// Exit codes: 0 ready, 1 not ready.
#[derive(clap::Args)]
pub struct Args {
    /// Write the checks as JSON: version, ready, checks[] with check, state (found, note, warning, missing), found, help
    #[arg(long)]
    json: bool,
    /// Instead: print which CPUs share a core, a last-level cache and a NUMA node, as the `[machine]` of a plan
    #[arg(long, conflicts_with = "json")]
    topology: bool,
}

/// Run `tierce doctor`.
pub fn run(args: Args) -> Result<ExitCode> {
    if args.topology {
        let Some(cpus) = Host::here().cpus().map(|cpus| cpus.min(tierce_policy::CPUS_MAX)) else {
            bail!("cpus_must_be_numbered_from_0: the online CPUs of this machine are not 0 to n - 1; bring the missing ones online")
        };
        println!("[machine]\ncpus = {cpus}\ntopology = {}", topology::read(cpus).to_toml());
        return Ok(ExitCode::SUCCESS);
    }
    let diagnosis = examine(&Host::here(), &Needs::of_the_object()?);
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&diagnosis.to_json())?),
        false => print!("{diagnosis}"),
    }
    Ok(ExitCode::from(u8::from(!diagnosis.ready())))
}
