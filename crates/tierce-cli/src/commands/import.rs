//! `tierce import`: a plan from a file of another tool.

use anyhow::{anyhow, bail, Context, Result};
use clap::ValueEnum;
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_formats::{LeftOut, Translated};
use tierce_plan::{Faults, Plan};

/// Version of the JSON that this command and `tierce export` write.
const VERSION: u32 = 1;

/// Read a file of MAST, SimSo or pyCPA as a plan
///
/// Writes the plan to PLAN.toml, or to standard output. What the file says and a plan cannot is listed with its line and what stands
/// in its place: on standard error, and as a comment at the head of the plan. docs/formats.md has what becomes of what.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file
    file: PathBuf,
    /// What the file is; without it, its first words tell
    #[arg(long)]
    format: Option<Format>,
    /// What one unit of time is. SimSo's files say it, the others do not
    #[arg(long, default_value = "ms")]
    unit: Unit,
    /// Write the plan to this file
    #[arg(short, long, value_name = "PLAN.toml")]
    output: Option<PathBuf>,
    /// Exit with 1 if anything was left out
    #[arg(long)]
    strict: bool,
    /// Write JSON: what was left out, and the plan unless it is written to a file (documented in docs/formats.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tierce import model.xml -o plan.toml         import
  tierce check plan.toml                       which deadlines hold?
  tierce sim plan.toml --for 10s --trace run.trace
  tierce timeline run.trace --png run.png      draw it
  tierce import controller.txt --unit us       the times of this file are microseconds
  tierce export plan.toml --format simso       and back

Exit codes: 0 imported, 1 something was left out (--strict), 2 bad input.";

/// Formats of other tools.
#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// SimSo's XML
    Simso,
    /// MAST's text
    Mast,
    /// MAST's XML
    MastXml,
    /// SMFF's XML, which pyCPA reads
    Pycpa,
}

impl From<Format> for tierce_formats::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Simso => Self::Simso,
            Format::Mast => Self::Mast,
            Format::MastXml => Self::MastXml,
            Format::Pycpa => Self::Pycpa,
        }
    }
}

/// Units of time.
#[derive(Clone, Copy, ValueEnum)]
pub enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

impl From<Unit> for tierce_formats::Unit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Ns => Self::Ns,
            Unit::Us => Self::Us,
            Unit::Ms => Self::Ms,
            Unit::S => Self::S,
        }
    }
}

/// Run `tierce import`.
pub fn run(args: Args) -> Result<ExitCode> {
    let name = args.file.display().to_string();
    let bytes = std::fs::read(&args.file).with_context(|| format!("cannot read {name}"))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let help = "convert it first, for example: iconv -f ISO-8859-1 -t UTF-8";
        anyhow!("file_must_be_utf8: {name} is no UTF-8 text; {help}")
    })?;
    let imported = match args.format {
        Some(format) => Ok(format.into()),
        None => tierce_formats::Format::guess(&name, &text),
    };
    let imported = imported.and_then(|format| tierce_formats::import(&name, &text, format, args.unit.into()));
    let imported = match imported {
        Ok(imported) => imported,
        Err(faults) => return refused(&faults, args.json),
    };
    let plan = args.output.as_ref().map_or("PLAN.toml".into(), |path| path.display().to_string());
    deliver(&name, &imported, "plan", args.output.as_deref(), args.json)?;
    // The plan is there to be mended, where a task has no room for example.
    if let Err(faults) = Plan::parse(&imported.text, &plan) {
        eprint!("{}", faults.report());
        bail!("the plan has faults: mend them there, or in {name}");
    }
    Ok(ExitCode::from(u8::from(args.strict && !imported.left_out.is_empty())))
}

/// Say why nothing was translated.
pub fn refused(faults: &Faults, json: bool) -> Result<ExitCode> {
    if json {
        let value = json!({ "version": VERSION, "faults": faults.to_json() });
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        eprint!("{}", faults.report());
    }
    Ok(ExitCode::from(2))
}

/// Write a text where it is wanted, and what it does not have of `name`.
pub fn deliver(name: &str, found: &Translated, key: &str, output: Option<&Path>, json: bool) -> Result<()> {
    if let Some(path) = output {
        std::fs::write(path, &found.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if json {
        let left = |left: &LeftOut| json!({ "line": left.line, "what": left.what, "why": left.why });
        let left: Value = found.left_out.iter().map(left).collect();
        let mut value = json!({ "version": VERSION, "file": name, "left_out": left });
        if output.is_none() {
            value[key] = json!(found.text);
        }
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    if output.is_none() {
        print!("{}", found.text);
    }
    for LeftOut { line, what, why } in &found.left_out {
        eprintln!("{name}:{line}: left out: {what}: {why}");
    }
    Ok(())
}
