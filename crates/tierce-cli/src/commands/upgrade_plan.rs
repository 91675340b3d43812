//! `tierce upgrade-plan`: a plan with the names that keys and policies have now.

use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::{Options, Plan, Source, Upgraded};
use tierce_policy::CPUS_MAX;

/// Version of the JSON.
const VERSION: u32 = 1;

/// Rename what a plan calls otherwise than Tierce does
///
/// Replaces names of keys and policies that other systems have (`runtime` for `budget`, `wcet` for `work`), and those that a version of Tierce
/// renames, where the value means the same. All else stays as it is, comments and blanks, too. Without --write it only says what
/// it would replace. What cannot be renamed is listed as by `tierce check`; a plan that includes others is upgraded with them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The plan
    plan: PathBuf,
    /// Replace the names in the file, and in those that it includes
    #[arg(long)]
    write: bool,
    /// CPUs of the machine, as for `tierce check`
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(CPUS_MAX)))]
    cpus: u32,
    /// Write what is replaced and what is still wrong as JSON (documented in docs/stability.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tierce upgrade-plan plan.toml              what would be replaced?
  tierce upgrade-plan plan.toml --write      replace it

Exit codes: 0 nothing to replace, or written; 1 there is something to replace; 2 the plan has faults that no renaming mends.";

/// Run `tierce upgrade-plan`.
pub fn run(args: Args) -> Result<ExitCode> {
    let upgraded = Plan::upgrade(&args.plan, Options { cpus: args.cpus });
    if args.write {
        for text in changed(&upgraded) {
            replace(Path::new(&text.name), &text.text)?;
        }
    }
    if args.json {
        print_json(&args, &upgraded)?;
    } else {
        print(&args, &upgraded);
    }
    Ok(match (&upgraded.faults, upgraded.renamings.is_empty() || args.write) {
        (Some(_), _) => ExitCode::from(2),
        (None, true) => ExitCode::SUCCESS,
        (None, false) => ExitCode::from(1),
    })
}

/// The texts in which something was replaced.
fn changed(upgraded: &Upgraded) -> impl Iterator<Item = &Source> {
    let has = |text: &&Source| upgraded.renamings.iter().any(|renaming| renaming.place.file == text.name);
    upgraded.sources.0.iter().map(|text| &**text).filter(has)
}

/// As a whole or not at all. The file keeps its permissions; where it is a link, what it leads to is replaced.
fn replace(path: &Path, text: &str) -> Result<()> {
    let failed = || format!("cannot replace {}", path.display());
    let file = fs::canonicalize(path).with_context(failed)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    new.write_all(text.as_bytes()).with_context(failed)?;
    new.as_file()
        .set_permissions(fs::metadata(&file).with_context(failed)?.permissions())
        .with_context(failed)?;
    new.persist(&file).with_context(failed)?;
    Ok(())
}

fn print(args: &Args, upgraded: &Upgraded) {
    for renaming in &upgraded.renamings {
        let place = &renaming.place;
        println!("{}:{}:{}: {} -> {}", place.file, place.line, place.column, renaming.old, renaming.new);
    }
    if let Some(faults) = &upgraded.faults {
        eprint!("{}", faults.report());
    }
    let plan = args.plan.display();
    let names = match upgraded.renamings.len() {
        0 => None,
        1 => Some("1 name".to_string()),
        n => Some(format!("{n} names")),
    };
    match (names, args.write) {
        (Some(names), true) => println!("{plan}: {names} replaced"),
        (Some(names), false) => println!("{plan}: {names} to replace; --write does it"),
        (None, _) if upgraded.faults.is_none() => println!("{plan}: nothing to replace"),
        (None, _) => {}
    }
    if let Some(faults) = &upgraded.faults {
        let n = faults.faults.len();
        eprintln!("{plan}: {n} fault{} that no renaming mends", if n == 1 { "" } else { "s" });
    }
}

fn print_json(args: &Args, upgraded: &Upgraded) -> Result<()> {
    let renamings = upgraded.renamings.iter().map(|renaming| {
        let place = &renaming.place;
        json!({
            "file": place.file, "line": place.line, "column": place.column,
            "old": renaming.old, "new": renaming.new,
        })
    });
    let json = json!({
        "version": VERSION,
        "plan": args.plan.display().to_string(),
        "renamings": renamings.collect::<Vec<_>>(),
        "written": args.write && !upgraded.renamings.is_empty(),
        "faults": upgraded.faults.as_ref().map_or_else(|| json!([]), |faults| faults.to_json()),
    });
    println!("{}", serde_json::to_string_pretty(&json)?);
    Ok(())
}
