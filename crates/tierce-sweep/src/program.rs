//! `tierce-sweep`: a study, done on all CPUs, and again from where it was killed.

use crate::{read, run, Ended, Folder, Part, Study};
use anyhow::{bail, Context, Result};
use clap::{CommandFactory, Parser};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_policy::added;
use tierce_terminal::{Progress, Stop, Unit};

/// Do a study: random task sets at each point of a grid, each analysed and simulated in several ways
///
/// The study is a file (docs/sweep.md). Its rows are Parquet files in a folder, its figures SVG, PDF or PNG. A sweep that was ended, by Ctrl-C or a
/// crash, goes on where it was when it is started again, and the rows are the same as if it had not been ended. They do not depend on
/// the number of threads or parts, either.
#[derive(Parser)]
#[command(name = "tierce-sweep", bin_name = "tierce sweep", version, after_help = EXAMPLES)]
struct Args {
    /// The study (TOML)
    #[arg(value_name = "STUDY.toml")]
    study: PathBuf,
    /// Folder of the results [default: the study's name without .toml]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Number of threads [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Do only the K-th of N parts: others may do the other ones, in the same folder or in one of their own
    #[arg(long, value_name = "K/N", value_parser = part)]
    part: Option<Part>,
    /// Print the rows that are there, each as a line of JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tierce sweep examples/studies/policies.toml -o results      go on with the same command
  tierce sweep study.toml -o results --part 1/2               on one machine, and
  tierce sweep study.toml -o results --part 2/2               on another; then copy rows/ together, and
  tierce sweep study.toml -o results                          draw the figures

Then, in Python: polars.read_parquet(\"results/rows/*.parquet\").

Exit codes: 0 done; 1 ended before, and what is done is kept; 2 the study has faults, or the folder cannot be used.";

fn part(text: &str) -> Result<Part, String> {
    let numbers =
        text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((number, of)) if 1 <= number && number <= of => Ok(Part { number, of }),
        _ => Err(format!("part_is_one_of_some: write 1/4 for the first of four parts: {text}")),
    }
}

/// Its arguments.
pub fn command() -> clap::Command {
    Args::command()
}

/// The program.
pub fn main() -> ExitCode {
    // SAFETY: no other thread yet, and the default action is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    sweep(&Args::parse()).unwrap_or_else(|error| {
        eprintln!("tierce sweep: {error:#}");
        ExitCode::from(2)
    })
}

fn sweep(args: &Args) -> Result<ExitCode> {
    if let Some(folder) = std::env::var_os(added::VARIABLE).filter(|path| !path.is_empty()) {
        added::load(Path::new(&folder))?;
    }
    let shown = args.study.display().to_string();
    let text = std::fs::read_to_string(&args.study).with_context(|| shown.clone())?;
    let study = match read(&text, &shown) {
        Ok(study) => study,
        Err(faults) => {
            eprint!("{}", faults.report());
            bail!("{shown}: the study has faults");
        }
    };
    let path = args.output.clone().unwrap_or_else(|| args.study.with_extension(""));
    let folder = Folder::open(&path, &study, &text)?;
    let threads =
        args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let part = args.part.unwrap_or(Part { number: 1, of: 1 });
    let (stop, mut progress) = (Stop::watch(), None);
    let ended = run(&study, &folder, threads, part, stop.flag(), &mut |done, total| {
        progress.get_or_insert_with(|| Progress::from(done, total, Unit::Things("sets"))).at(done);
    })?;
    drop(progress);
    let there = (0..study.chunks()).filter(|chunk| folder.has(&study, *chunk)).collect::<Vec<_>>();
    if args.json {
        print_rows(&study, &folder, &there)?;
    }
    let rows: u64 = there.iter().map(|chunk| study.rows_of(*chunk)).sum();
    let whole = there.len() as u64 == study.chunks();
    let of = if whole { String::new() } else { format!(" of {}", study.jobs() * study.tests.len() as u64) };
    let say = |words: String| if args.json { eprintln!("{words}") } else { println!("{words}") };
    say(format!("{rows}{of} rows: {}/rows/*.parquet", path.display()));
    if ended == Ended::Stopped {
        say("Ended. The same command goes on from here.".into());
        return Ok(ExitCode::from(1));
    }
    if whole {
        for written in crate::draw(&study, &folder, &path)? {
            say(format!("figure: {}", written.display()));
        }
    } else {
        say("Figures are drawn when all parts are there.".into());
    }
    Ok(ExitCode::SUCCESS)
}

fn print_rows(study: &Study, folder: &Folder, chunks: &[u64]) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for chunk in chunks {
        for row in folder.rows(study, *chunk)? {
            writeln!(out, "{}", crate::to_json(study, &row))?;
        }
    }
    Ok(out.flush()?)
}
