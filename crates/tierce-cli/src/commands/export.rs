//! `tierce export`: a plan as a file of another tool.

use super::import::{deliver, refused, Format, Unit};
use anyhow::Result;
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::Plan;

/// Write a plan as a file of MAST, SimSo, pyCPA or rt-app
///
/// With `--format rt-app` the tasks become threads of rt-app, which real machines run: what their loads say, and nothing of how they are
/// scheduled. The other tools have schedulers of whole CPUs, by priority or by deadline, with tasks directly below. All else of the plan is listed
/// on standard error with its line: budgets, groups of tasks, other policies. docs/formats.md has what becomes of what.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The plan
    plan: PathBuf,
    /// What to write
    #[arg(long)]
    format: Target,
    /// What one unit of time is in the file. SimSo has milliseconds, rt-app microseconds
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

/// Formats that are written.
#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// SimSo's XML
    Simso,
    /// MAST's text
    Mast,
    /// MAST's XML
    MastXml,
    /// SMFF's XML, which pyCPA reads
    Pycpa,
    /// rt-app's JSON
    RtApp,
}

impl Target {
    /// A format that is read, too.
    fn model(self) -> Option<Format> {
        match self {
            Target::Simso => Some(Format::Simso),
            Target::Mast => Some(Format::Mast),
            Target::MastXml => Some(Format::MastXml),
            Target::Pycpa => Some(Format::Pycpa),
            Target::RtApp => None,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  tierce export plan.toml --format simso -o simulation.xml
  tierce export plan.toml --format simso --strict --json
  tierce export plan.toml --format rt-app -o threads.json && rt-app threads.json

Exit codes: 0 exported, 1 something was left out (--strict), 2 bad input, or nothing of the plan can be said.";

/// Run `tierce export`.
pub fn run(args: Args) -> Result<ExitCode> {
    let name = args.plan.display().to_string();
    let plan = Plan::load(&args.plan);
    let found = plan.and_then(|plan| match args.format.model() {
        Some(format) => tierce_formats::export(&plan, format.into(), args.unit.into()),
        None => tierce_formats::export_rt_app(&plan),
    });
    match found {
        Ok(found) => {
            deliver(&name, &found, "text", args.output.as_deref(), args.json)?;
            Ok(ExitCode::from(u8::from(args.strict && !found.left_out.is_empty())))
        }
        Err(faults) => refused(&faults, args.json),
    }
}
