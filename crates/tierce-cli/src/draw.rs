//! `tierce-draw`: a figure, described as JSON, into a file.

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_figure::{Figure, Format};

/// Draw a figure, described as JSON, as SVG, PDF or PNG, in the style of Tierce's figures
///
/// Commands that draw (`tierce design server --plot`, `tierce split --picture`, `tierce measure --plot`, `tierce hartstone --plot`) run it.
/// docs/figures.md shows a description.
#[derive(Parser)]
#[command(name = "tierce-draw", version, after_help = EXAMPLES)]
struct Args {
    /// Where to: .svg, .pdf or .png
    #[arg(value_name = "PICTURE")]
    picture: PathBuf,
    /// The description; `-` is standard input
    #[arg(value_name = "FIGURE.json", default_value = "-")]
    figure: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  tierce-draw figure.pdf figure.json
  python3 describe.py | tierce-draw figure.svg

Exit codes: 0 drawn; 2 it cannot be drawn or written.";

/// Its arguments.
pub fn command() -> clap::Command {
    Args::command()
}

/// The program.
pub fn main() -> ExitCode {
    match draw(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tierce-draw: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn draw(args: &Args) -> Result<()> {
    Format::of(&args.picture)?;
    let shown = args.figure.display().to_string();
    let input: Box<dyn Read> = match args.figure == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(&args.figure).with_context(|| shown.clone())?),
    };
    let figure: Figure = serde_json::from_reader(input)
        .with_context(|| format!("figure_is_json: {shown}: not the description of a figure"))?;
    figure.write(&args.picture)
}
