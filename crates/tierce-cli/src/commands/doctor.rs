//! `tierce doctor`: can this machine enforce a plan?

use anyhow::{bail, Result};
use std::process::ExitCode;
use tierce_scx::doctor::{examine, Host, Needs};
use tierce_scx::topology;

/// Can this machine enforce a plan?
///
/// Looks at the kernel, its build, the rights of the caller, and at what would go on beside a plan. One line per check:
/// ✓ as it should be, ! a warning, ✗ missing, with what would help below it; · what is worth knowing (what runs before any
/// plan, which knobs a plan does not heed). `tierce run` refuses with the same words. Changes nothing; works without root,
/// but sees less.
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
        let Some(cpus) = Host::here().cpus().map(|cpus| cpus.min(64)) else {
            bail!("the CPUs that are online are not numbered 0 to n - 1")
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
