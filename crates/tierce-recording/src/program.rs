//! `tierce-recording`: what recordings of trace-cmd and perf say, and plans that suit them.

mod plan;
mod reading;
mod table;

use crate::{header, write_stream, write_trace_dat, Recording, RecordingError};
use anyhow::{Context, Result};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use reading::{read, Read};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_trace::Trace;

/// Read recordings of trace-cmd and perf: who ran when, what each thread needs, a plan for it
///
/// A recording is a trace.dat of trace-cmd or a perf.data of `perf sched record`, of any machine, with or without Tierce.
#[derive(Parser)]
#[command(name = "tierce-recording", bin_name = "tierce recording", version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  trace-cmd record -e sched:sched_switch -e sched:sched_waking -e sched:sched_wakeup_new -- player film.mkv
  tierce recording threads trace.dat                   CPU time and wake-up latencies of each thread
  tierce recording trace trace.dat -o player.trace     then: tierce timeline player.trace, tierce trace stats player.trace
  tierce recording plan --from trace.dat -o plan.toml  which plan gives each thread what it needs (also: tierce design plan)
  tierce recording write run.trace -o trace.dat        a trace of Tierce for trace-cmd report and KernelShark

Exit codes: 0 done; 1 ended by Ctrl-C, with what was read by then; plan: no thread has a period, the plan does not hold, or it does not meet
what the recording met; 2 bad input.";

#[derive(Subcommand)]
enum What {
    Threads(ThreadsArgs),
    Trace(TraceArgs),
    Plan(plan::Args),
    Write(WriteArgs),
}

/// Show CPU time, migrations and wake-up latencies of each thread
#[derive(clap::Args)]
struct ThreadsArgs {
    /// The recording
    #[arg(value_name = "trace.dat|perf.data")]
    recording: PathBuf,
    /// Show this many, those with the most CPU time; 0: all
    #[arg(long, value_name = "N", default_value_t = 30)]
    most: usize,
    /// Write JSON, of all threads (documented in docs/recordings.md)
    #[arg(long)]
    json: bool,
}

/// Write a recording as a trace of Tierce, for `tierce timeline`, `tierce trace` and Perfetto
#[derive(clap::Args)]
struct TraceArgs {
    /// The recording
    #[arg(value_name = "trace.dat|perf.data")]
    recording: PathBuf,
    /// Where to write it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Write a trace of Tierce as trace.dat, for trace-cmd and KernelShark
#[derive(clap::Args)]
struct WriteArgs {
    /// A file of `tierce sim --trace` or `tierce run --trace`
    trace: PathBuf,
    /// Where to write it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Its arguments.
pub fn command() -> clap::Command {
    Args::command()
}

/// With usage as it was typed: `tierce design plan` is `plan` of this program.
fn arguments() -> Args {
    let is_design = std::env::args_os().next().is_some_and(|name| name == "tierce design");
    let command = if is_design { command().bin_name("tierce design") } else { command() };
    Args::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

/// The program.
pub fn main() -> ExitCode {
    // SAFETY: no other thread yet, and the default action is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let done = match arguments().what {
        What::Threads(args) => threads(&args),
        What::Trace(args) => trace(&args),
        What::Plan(args) => plan::run(&args),
        What::Write(args) => write(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("tierce recording: {error:#}");
        ExitCode::from(2)
    })
}

fn threads(args: &ThreadsArgs) -> Result<ExitCode> {
    let Read { recording, threads, early } = read(&args.recording)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&table::json(&recording, &threads))?);
    } else {
        print!("{}", table::text(&recording, &threads, args.most));
    }
    Ok(ExitCode::from(u8::from(early)))
}

/// Twice through the recording: the head of a trace names all threads.
fn trace(args: &TraceArgs) -> Result<ExitCode> {
    let Read { recording, threads, early } = read(&args.recording)?;
    let name =
        args.recording.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let header = header(&name, &recording.clock, recording.cpus, &threads);
    let again = Recording::open(&args.recording)?.take(threads.records as usize);
    let events = again.map(|event| event.map_err(|error: RecordingError| anyhow::Error::from(error)));
    let shown = args.output.display().to_string();
    let out = File::create(&args.output).with_context(|| shown.clone())?;
    let records = write_stream(out, &header, events).with_context(|| shown.clone())?;
    println!("{shown}: {records} records of {} threads", threads.all.len());
    Ok(ExitCode::from(u8::from(early)))
}

fn write(args: &WriteArgs) -> Result<ExitCode> {
    let shown = args.trace.display().to_string();
    let file = File::open(&args.trace).with_context(|| shown.clone())?;
    let (trace, fault) = Trace::read(file).with_context(|| shown.clone())?;
    if let Some(fault) = fault {
        eprintln!("tierce recording: {shown}: {fault}; what comes before it is written");
    }
    let output = args.output.display().to_string();
    let mut out = BufWriter::new(File::create(&args.output).with_context(|| output.clone())?);
    let records = write_trace_dat(&trace, &mut out).with_context(|| output.clone())?;
    println!("{output}: {records} records; trace-cmd report {output}");
    Ok(ExitCode::SUCCESS)
}
