//! `tierce schema`: what an editor needs to know about plans.

use anyhow::Result;
use std::process::ExitCode;

/// Print the JSON Schema of plans, for editors
///
/// It is generated from the policies of this build, so keys, units, ranges and meanings are always those of the plan
/// language. With the Even Better TOML extension of VS Code, for example: save it and put
/// `#:schema ./plan.schema.json` into the first line of a plan.
#[derive(clap::Args)]
pub struct Args {}

/// Run `tierce schema`.
pub fn run(_: Args) -> Result<ExitCode> {
    println!("{}", serde_json::to_string_pretty(&tierce_plan::schema())?);
    Ok(ExitCode::SUCCESS)
}
