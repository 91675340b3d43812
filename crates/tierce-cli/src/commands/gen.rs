//! `tierce gen`: random task sets.

use super::analyse::time;
use anyhow::{anyhow, bail, Context, Result};
use clap::ValueEnum;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::percent;
use tierce_analysis::generate::{tasks, Draw, Periods, Shares, TASKS_MAX};
use tierce_analysis::retas::{self, Row};
use tierce_analysis::{utilisation, Task};
use tierce_plan::show_time;

/// Generate a random set of tasks
///
/// The same arguments and seed give the same set on every machine. Works are rounded to whole ns, so the utilisation differs
/// from the requested one by less than one ns per period of each task. Deadlines are periods.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How utilisations (and with emberson, periods) are drawn
    #[arg(long)]
    method: Method,
    /// Number of CPUs
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cpus: u32,
    /// Number of tasks; not with --method paper, which draws as many as it needs
    #[arg(long, value_name = "N")]
    tasks: Option<usize>,
    /// Utilisation of each CPU: 0.88, or with --method paper a range: 0.88..0.885
    #[arg(long, value_name = "U", value_parser = range)]
    utilisation: (f64, f64),
    /// Smallest and largest utilisation of a task (paper, randfixedsum, emberson)
    #[arg(long, value_name = "U..U", value_parser = range, default_value = "0..1")]
    shares: (f64, f64),
    /// Shortest and longest period
    #[arg(long, value_name = "TIME..TIME", value_parser = times, allow_hyphen_values = true)]
    periods: (u64, u64),
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Format of the set
    #[arg(long, default_value = "csv")]
    format: Format,
    /// With --format retas: works vary down to work/F, distances of releases up to F periods, offsets up to F times the least
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    factor: f64,
    /// Common offset of all tasks, as this time multiplied by the number of tasks; preset 500ms with retas, else 0
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    offset: Option<u64>,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tierce gen --method paper --cpus 4 --utilisation 0.88..0.885 --shares 0.1..1 --periods 5ms..50ms -o set.csv
  tierce gen --method uunifast-discard --cpus 4 --tasks 20 --utilisation 0.8 --periods 5ms..50ms --seed 7
  tierce gen --method emberson --cpus 4 --tasks 40 --utilisation 0.8 --periods 1ms..1s
  tierce gen --method randfixedsum --cpus 24 --tasks 191 --utilisation 0.88 --shares 0.05..0.2 --periods 5ms..50ms \\
             --format retas -o set.txt

Then: tierce analyse, tierce split, tierce design server.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Uniform utilisations until their sum is in the range, uniform periods (ReTAS, appendix A)
    Paper,
    /// All vectors with that sum equally likely, none above 1 (Davis & Burns 2009); uniform periods
    UunifastDiscard,
    /// All vectors with that sum and within --shares equally likely (Stafford 2006); uniform periods
    Randfixedsum,
    /// The same with log-uniform periods (Emberson, Stafford & Davis 2010)
    Emberson,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table with the names of its columns
    Csv,
    /// Eight numbers a line, in ns (ReTAS, appendix A)
    Retas,
}

/// `a..b`, or `a` for both.
fn both<T: Copy>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<(T, T), String> {
    match text.split_once("..") {
        None => one(text).map(|value| (value, value)),
        Some((least, most)) => Ok((one(least)?, one(most)?)),
    }
}

fn range(text: &str) -> Result<(f64, f64), String> {
    both(text, |text| {
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| format!("number_must_be_a_number: write 0.88 or 0.88..0.885: {text}"))
    })
}

fn times(text: &str) -> Result<(u64, u64), String> {
    both(text, time)
}

/// Run `tierce gen`.
pub fn run(args: Args) -> Result<ExitCode> {
    let ((least, most), cpus) = (args.utilisation, f64::from(args.cpus));
    let sum = least * cpus;
    let count = match (args.method, args.tasks) {
        (Method::Paper, Some(_)) => bail!(
            "tasks_are_as_many_as_needed: --method paper draws as many tasks as it needs; leave out --tasks"
        ),
        (Method::Paper, None) => 0,
        (_, None) => bail!("tasks_are_some: --tasks N is missing or out of range, bound 1 to {TASKS_MAX}"),
        (_, Some(_)) if least != most => {
            bail!("sum_is_one: only --method paper takes a range of --utilisation; give one number")
        }
        (_, Some(count)) => count,
    };
    if !(args.factor >= 1.0 && args.factor.is_finite()) {
        bail!("factor_is_at_least_1: --factor is {}, bound 1 or more", args.factor);
    }
    let shares = match args.method {
        Method::Paper => Shares::UntilInRange { each: args.shares, sum: (sum, most * cpus) },
        Method::UunifastDiscard => Shares::UUniFastDiscard { tasks: count, sum },
        _ => Shares::RandFixedSum { tasks: count, sum, each: args.shares },
    };
    let (shortest, longest) = args.periods;
    let periods = match args.method {
        Method::Emberson => Periods::LogUniform(shortest, longest),
        _ => Periods::Uniform(shortest, longest),
    };
    let set = tasks(&shares, &periods, &mut Draw::new(args.seed))
        .map_err(|refusal| anyhow!("{}: {}", refusal.rule, refusal.message))?;
    let text = match args.format {
        Format::Csv => table(&args, &set),
        Format::Retas => {
            let offset = args.offset.unwrap_or(500_000_000).saturating_mul(set.len() as u64);
            let row = |(id, task)| Row::new(id, task, offset, args.factor);
            retas::write(&(1..).zip(&set).map(row).collect::<Vec<_>>())
        }
    };
    match &args.output {
        None => print!("{text}"),
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(args: &Args, set: &[Task]) -> String {
    let method = args.method.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
    let load = percent(&(utilisation(set) / tierce_guarantee::whole(args.cpus.into())));
    let (tasks, cpus, seed) = (set.len(), args.cpus, args.seed);
    let offset = args.offset.map(|each| show_time(each.saturating_mul(set.len() as u64)));
    let mut text =
        format!("# {method}, seed {seed}: {tasks} tasks, {load} of each of {cpus} CPUs\nname,work,period");
    text += if offset.is_some() { ",offset\n" } else { "\n" };
    for (id, task) in (1..).zip(set) {
        let _ = write!(text, "t{id},{},{}", show_time(task.work_ns), show_time(task.period_ns));
        let _ = writeln!(text, "{}", offset.as_ref().map_or(String::new(), |offset| format!(",{offset}")));
    }
    text
}
