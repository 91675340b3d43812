//! `tierce export`: a plan as a file of another tool.

use super::import::{deliver, refused, Format, Unit};
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::Plan;

/// Write a plan as a file of MAST, SimSo or pyCPA
///
/// These tools have schedulers of whole CPUs, by priority or by deadline, with tasks directly below. All else of the plan is listed
/// on standard error with its line: budgets, groups of tasks, other policies. docs/formats.md has what becomes of what.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The plan
    plan: PathBuf,
    /// What to write
    #[arg(long)]
    format: Format,
    /// What one unit of time is in the file. SimSo has milliseconds
    #[arg(long, default_value = "ms")]
    unit: Unit,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit with 1 if anything was left out
    #[arg(long)]
    strict: bool,
    /// Write JSON: what was left out, and the text unless it is written to a file (documented in docs/formats.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tierce export plan.toml --format simso -o simulation.xml
  tierce export plan.toml --format simso --strict --json

Exit codes: 0 exported, 1 something was left out (--strict), 2 bad input, or nothing of the plan can be said.";

/// Run `tierce export`.
pub fn run(args: Args) -> Result<ExitCode> {
    let name = args.plan.display().to_string();
    let plan = Plan::load(&args.plan);
    let found = plan.and_then(|plan| tierce_formats::export(&plan, args.format.into(), args.unit.into()));
    match found {
        Ok(found) => {
            deliver(&name, &found, "text", args.output.as_deref(), args.json)?;
            Ok(ExitCode::from(u8::from(args.strict && !found.left_out.is_empty())))
        }
        Err(faults) => refused(&faults, args.json),
    }
}
