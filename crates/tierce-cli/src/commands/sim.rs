//! `tierce sim`: play a plan.

use super::{time, whole_file};
use anyhow::{bail, Context, Result};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::{show_time, Plan};
use tierce_policy::recording::{self, ReplayError, Replayed};
use tierce_policy::CPUS_MAX;
use tierce_sim::{Options, Simulation};
use tierce_terminal::{Progress, Stop, Unit};
use tierce_trace::{html, perfetto, Event, Report, Trace, Writer};

/// Simulated time between two looks at events and progress bar.
const SLICE_NS: u64 = 10_000_000;

/// Simulate a plan: CPU time of each task and node, response times, missed deadlines
///
/// Plays the loads of the plan's tasks under its schedulers, which are the same code that `run` loads into the kernel. It
/// measures nothing and reads no clock: the same plan, time and seed give the same result everywhere. Scheduling and interrupts
/// cost what the plan's `[machine]` says, and nothing without it.
///
/// A job arrives at its release (with its jitter); its response time counts from there, its deadline from the release
/// without jitter. A job that arrives while the one before it runs waits for it. A miss is a job that was not complete at
/// its deadline, whether it completed later or never.
///
/// Ctrl-C ends it early: all results are then of the time until there.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The plan
    #[arg(required_unless_present = "replay")]
    plan: Option<PathBuf>,
    /// Instead: make every decision of a recorded run (`tierce run --record FILE`) again and compare each, bit for bit
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    replay: Option<PathBuf>,
    /// How long: 500ms, 10s, 2min
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = time::duration)]
    duration_ns: u64,
    /// Seed of everything random: work, jitter, distances, interrupts
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// CPUs of the machine; a plan that names fewer has the default node on the others
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(CPUS_MAX)))]
    cpus: u32,
    /// Shortest timer that is set; a budget with less left counts as used up, and the rest is carried over (0 is exact; a live
    /// run has 2us)
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = parse_floor)]
    floor: u64,
    /// Write the result as JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Write every event: for `tierce trace` and `tierce timeline`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the timeline as a page that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the timeline for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Check every invariant of the scheduler after each step (slow); a broken one is a bug of tierce
    #[arg(long)]
    check: bool,
    /// End with exit code 1 when a deadline was missed
    #[arg(long)]
    expect_no_misses: bool,
}

const EXAMPLES: &str = "\
Examples:
  tierce sim examples/desktop.toml
  tierce sim examples/desktop.toml --for 2s --html desktop.html
  tierce sim examples/edf.toml --for 1min --seed 7 --json
  tierce sim examples/renderer-hard.toml --expect-no-misses
  tierce sim --replay run.rec

Exit codes: 0 simulated, whatever came out; 1 a deadline was missed and --expect-no-misses was
given, it was ended early, a replayed decision differs, or the scheduler broke one of its own rules
(a bug of tierce); 2 bad input or environment.";

/// Run `tierce sim`.
pub fn run(args: Args) -> Result<ExitCode> {
    let path = match (&args.replay, &args.plan) {
        (Some(recording), _) => return replay(recording, args.json),
        (None, Some(plan)) => plan,
        (None, None) => bail!("a plan is missing: tierce sim PLAN, or tierce sim --replay FILE"),
    };
    let plan = match Plan::load_with(path, tierce_plan::Options { cpus: args.cpus }) {
        Ok(plan) => plan,
        Err(faults) => {
            eprint!("{}", faults.report());
            bail!("{}: the plan has faults", path.display());
        }
    };
    let options = Options {
        seed: args.seed,
        floor_ns: args.floor,
        trace: args.trace.is_some() || args.html.is_some() || args.perfetto.is_some(),
        check: args.check,
        ..Options::default()
    };
    let mut simulation = Simulation::new(&plan, options)
        .inspect_err(|_| eprint!("{}", plan.admit().faults(&plan).report()))?;
    let mut recorder = Recorder::new(&args, &plan, &simulation)?;
    let stop = Stop::watch();
    let played = play(&args, &mut simulation, &mut recorder, &stop);
    recorder.take(&mut simulation.closing_events())?;
    // Whoever ended the simulation gets what was played.
    let whole = recorder.finish(&args, (!stop.asked()).then_some(&stop))?;
    let ended = match played? {
        Ok(ended) => ended,
        Err(broken) => {
            eprintln!("tierce sim: a bug of tierce: {broken}");
            return Ok(ExitCode::from(1));
        }
    };
    let report = simulation.report();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        if let Some(placement) = plan.placement() {
            println!("{placement}");
        }
        print!("{}", report.tables());
        print!("\n{}", verdict(&report));
    }
    if ended == Ended::Early {
        let (at, all) = (show_time(simulation.now_ns()), show_time(args.duration_ns));
        eprintln!("tierce sim: ended early: all results are of the first {at} of {all}");
        return Ok(ExitCode::from(1));
    }
    let missed = report.tasks.iter().any(|task| task.misses > 0);
    Ok(ExitCode::from(u8::from(!whole || (args.expect_no_misses && missed))))
}

/// Every entry of a recording again, on this build.
fn replay(path: &Path, json: bool) -> Result<ExitCode> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let entries = file.metadata()?.len().saturating_sub(24) / 48;
    let progress = Progress::new(entries, Unit::Things("entries"));
    let replayed = recording::replay(BufReader::new(file), |entry| {
        if entry % 65_536 == 0 {
            progress.at(entry);
        }
    });
    drop(progress);
    match replayed {
        Ok(Replayed { entries, decisions, length_ns, operations }) if json => println!(
            "{}",
            serde_json::json!({
                "entries": entries, "decisions": decisions, "length_ns": length_ns, "identical": true, "operations": operations
            })
        ),
        Ok(Replayed { entries, decisions, length_ns, .. }) => println!(
            "{}: {entries} entries over {}, {decisions} decisions among them: all identical",
            path.display(),
            show_time(length_ns)
        ),
        Err(error @ ReplayError::Differs { .. }) => {
            if json {
                println!("{}", serde_json::json!({ "identical": false, "difference": error.to_string() }));
            }
            eprintln!("tierce sim: {}: {error}", path.display());
            return Ok(ExitCode::from(1));
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(PartialEq, Eq)]
enum Ended {
    AtTheEnd,
    Early,
}

/// The whole time, or until Ctrl-C, in slices; the inner error is a bug of the engine.
fn play(
    args: &Args,
    simulation: &mut Simulation,
    recorder: &mut Recorder,
    stop: &Stop,
) -> Result<Result<Ended, tierce_sim::Violation>> {
    let progress = Progress::new(args.duration_ns, Unit::Share);
    while simulation.now_ns() < args.duration_ns {
        let until_ns = (simulation.now_ns() + SLICE_NS).min(args.duration_ns);
        let played = simulation.run_until(until_ns);
        recorder.take(simulation.events_mut())?;
        if let Err(broken) = played {
            return Ok(Err(broken));
        }
        if stop.asked() {
            return Ok(Ok(Ended::Early));
        }
        progress.at(until_ns);
    }
    Ok(Ok(Ended::AtTheEnd))
}

fn verdict(report: &Report) -> String {
    let missed: Vec<_> = report.tasks.iter().filter(|task| task.misses > 0).collect();
    let jobs: u64 = report.tasks.iter().map(|task| task.released).sum();
    match (jobs, &missed[..]) {
        (0, _) => String::new(),
        (jobs, []) => format!("{jobs} jobs, no deadline missed\n"),
        (jobs, missed) => {
            let misses: u64 = missed.iter().map(|task| task.misses).sum();
            let worst = missed.iter().max_by_key(|task| task.misses).map_or("", |task| &task.name);
            format!("{jobs} jobs, {misses} missed their deadline, most of them of {worst}\n")
        }
    }
}

/// Where events go.
struct Recorder {
    writer: Option<Writer<File>>,
    kept: Option<Trace>,
}

impl Recorder {
    fn new(args: &Args, plan: &Plan, simulation: &Simulation) -> Result<Recorder> {
        let mut header = simulation.header();
        if args.trace.is_some() && !plan.chains.is_empty() {
            header.chains = tierce_scx::chains_of(plan, &plan.admit());
        }
        header.end_ns = Some(args.duration_ns);
        let writer = match &args.trace {
            Some(path) => {
                Some(Writer::new(create(path)?, &header).with_context(|| path.display().to_string())?)
            }
            None => None,
        };
        let keep = args.html.is_some() || args.perfetto.is_some();
        Ok(Recorder { writer, kept: keep.then(|| Trace { header, events: Vec::new() }) })
    }

    fn take(&mut self, events: &mut Vec<Event>) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            for event in events.iter() {
                writer.write(event).context("writing the trace")?;
            }
        }
        match &mut self.kept {
            Some(trace) => trace.events.append(events),
            None => events.clear(),
        }
        Ok(())
    }

    /// All pictures that were asked for are there; after Ctrl-C they are not.
    fn finish(self, args: &Args, stop: Option<&Stop>) -> Result<bool> {
        if let (Some(writer), Some(path)) = (self.writer, &args.trace) {
            writer.finish().with_context(|| path.display().to_string())?;
        }
        let Some(trace) = self.kept else { return Ok(true) };
        let mut whole = true;
        if let Some(path) = &args.html {
            whole &= told(whole_file::write(path, stop, |out| html::write(&[&trace], out))?, path);
        }
        if let Some(path) = &args.perfetto {
            let written = whole && whole_file::write(path, stop, |out| perfetto::write(&trace, out))?;
            whole &= told(written, path);
        }
        Ok(whole)
    }
}

fn told(written: bool, path: &Path) -> bool {
    if !written {
        eprintln!("tierce sim: ended early; {} is not written", path.display());
    }
    written
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| path.display().to_string())
}

fn parse_floor(text: &str) -> Result<u64, String> {
    match time::time(text)? {
        ns @ 0..=1_000_000 => Ok(ns),
        _ => Err("at most 1ms".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors() {
        assert_eq!((parse_floor("5us"), parse_floor("0ns")), (Ok(5_000), Ok(0)));
        assert!(parse_floor("2ms").is_err() && parse_floor("5").is_err());
    }
}
