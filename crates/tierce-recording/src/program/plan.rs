//! `plan`: a plan that would have given each thread what it needs, simulated against the recording.

use super::reading::{read, Read};
use super::table::{aligned, remarks, VERSION};
use crate::replay::Impossible;
use crate::{propose, replay, Compared, Proposal, Replayed, Threads, Wishes};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tierce_calibrate::{Importance, Margin};
use tierce_plan::{show_time, Glob};
use tierce_terminal::{watched, Watched};
use tierce_trace::{units, Histogram};

/// Propose a plan that gives each periodic thread what it needs, and simulate it against the recording
///
/// Periods and work are found by when threads wake up and sleep, as `tierce calibrate` does. The plan is checked, and simulated with the
/// recorded wake-ups and work of all threads: per thread it is shown what the recording had and what the plan gives. The plan goes to
/// standard output, or with -o to a file; the comparison to standard error, or with -o to standard output.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording: a trace.dat of trace-cmd or a perf.data of perf
    #[arg(long, value_name = "trace.dat|perf.data")]
    from: PathBuf,
    /// Write the plan to this file
    #[arg(short, long, value_name = "PLAN.toml")]
    output: Option<PathBuf>,
    /// Reservations only for threads with such a name, for example 'audio*'; may be given several times
    #[arg(long = "thread", value_name = "NAME", value_parser = glob)]
    threads: Vec<Glob>,
    /// How much the deadlines matter. low: the work of 90 % of the jobs and 5 %; normal: of 99 % and 10 %; high: of all and 20 %
    #[arg(long, default_value = "normal")]
    importance: Matters,
    /// What a budget has beyond the work, instead of that of the importance: 20%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    margin: Option<u32>,
    /// Seed of the Poisson processes with which wake-ups are compared
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write JSON: the plan and the comparison (documented in docs/recordings.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  trace-cmd record -e sched:sched_switch -e sched:sched_waking -e sched:sched_wakeup_new -- player film.mkv
  tierce design plan --from trace.dat -o plan.toml
  tierce design plan --from perf.data --thread 'audio*' --importance high -o plan.toml
  tierce check plan.toml

Exit codes: 0 the plan holds and meets what the recording met; 1 it does not, no thread has a period, or Ctrl-C
ended it, with what was read by then; 2 bad input.";

#[derive(Clone, Copy, ValueEnum)]
enum Matters {
    Low,
    Normal,
    High,
}

/// A pattern of names.
fn glob(text: &str) -> Result<Glob, String> {
    Glob::new(text).map_err(|why| format!("name_must_be_a_pattern: {text}: {why}"))
}

/// Whole percent, of which more than 1000 are a mistake.
fn percent(text: &str) -> Result<u32, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse() {
        Ok(percent @ 0..=1000) => Ok(percent),
        _ => Err("whole percent, bound 0% to 1000%".into()),
    }
}

/// Propose a plan, check and simulate it.
pub fn run(args: &Args) -> Result<ExitCode> {
    let Read { recording, threads, early } = read(&args.from)?;
    let threads = Arc::new(threads);
    let importance = match args.importance {
        Matters::Low => Importance::Low,
        Matters::Normal => Importance::Normal,
        Matters::High => Importance::High,
    };
    let wishes =
        Wishes { importance, margin: args.margin.map(Margin), names: args.threads.clone(), seed: args.seed };
    let about = format!("{}, recorded by {}", args.from.display(), recording.tool);
    let Some(proposal) = proposed(&threads, recording.cpus, about, wishes) else {
        eprintln!("tierce recording: ended early: no plan was found by then");
        return Ok(ExitCode::FAILURE);
    };
    let replayed = replayed(&threads, &proposal)?;
    if let Some(path) = &args.output {
        std::fs::write(path, &proposal.text).with_context(|| path.display().to_string())?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&in_json(args, &threads, &proposal, replayed.as_ref()))?);
    } else {
        let mut said = remarks(&threads);
        said += &verdict(&threads, &proposal, replayed.as_ref());
        match &args.output {
            Some(path) => println!("{said}Plan: {}", path.display()),
            None => {
                print!("{}", proposal.text);
                eprint!("{said}");
            }
        }
    }
    let is_met = |replayed: Result<Replayed, String>| replayed.is_ok_and(|replayed| replayed.is_met());
    let met = !early && !proposal.planned.is_empty() && replayed.is_some_and(is_met);
    Ok(ExitCode::from(u8::from(!met)))
}

/// `None`: Ctrl-C ended it.
fn proposed(threads: &Arc<Threads>, cpus: u32, about: String, wishes: Wishes) -> Option<Arc<Proposal>> {
    let threads = threads.clone();
    let work = move || propose(&threads, cpus, &about, &wishes);
    match watched("looking for periods", "", || None, || (), work) {
        Watched::Done(proposal) | Watched::Early(proposal) => Some(Arc::new(proposal)),
        Watched::Nothing => None,
    }
}

/// What the plan gives, or its faults. `None`: Ctrl-C ended it.
fn replayed(threads: &Arc<Threads>, proposal: &Arc<Proposal>) -> Result<Option<Result<Replayed, String>>> {
    let (threads, proposal) = (threads.clone(), proposal.clone());
    let work = move || replay(&threads, &proposal);
    match watched("simulating", "", || None, || (), work) {
        Watched::Done(Ok(replayed)) | Watched::Early(Ok(replayed)) => Ok(Some(Ok(replayed))),
        Watched::Done(Err(Impossible::Faults(faults))) | Watched::Early(Err(Impossible::Faults(faults))) => {
            Ok(Some(Err(faults.to_string())))
        }
        Watched::Done(Err(other)) | Watched::Early(Err(other)) => Err(other.into()),
        Watched::Nothing => Ok(None),
    }
}

fn verdict(threads: &Threads, proposal: &Proposal, replayed: Option<&Result<Replayed, String>>) -> String {
    let replayed = match replayed {
        None => return "Ended early: the plan was not simulated.\n".to_string(),
        Some(Err(faults)) => return format!("The plan does not hold: {faults}\n"),
        Some(Ok(replayed)) => replayed,
    };
    let mut text = comparison(threads, replayed);
    if !replayed.holds {
        text += &format!("The plan does not hold: {}\n", replayed.faults);
    }
    let (count, ns) = replayed.left_out;
    if count > 0 {
        text += &format!("{count} threads with {} of CPU time were not simulated.\n", units::time(ns));
    }
    text += match () {
        () if proposal.planned.is_empty() => "No thread has a period: nothing is reserved.\n",
        () if replayed.is_met() => "The proposed plan, simulated, meets what the recording met.\n",
        () => "The proposed plan, simulated, does not meet what the recording met.\n",
    };
    text
}

/// Threads without a reservation that are shown, those that ran most.
const OTHERS_SHOWN: usize = 5;

fn comparison(threads: &Threads, replayed: &Replayed) -> String {
    let mut rows = vec![[
        "thread",
        "deadline",
        "jobs",
        "late: had",
        "gets",
        "latency max: had",
        "gets",
        "response max: had",
        "gets",
    ]
    .map(String::from)];
    let (reserved, mut others): (Vec<_>, Vec<_>) =
        replayed.compared.iter().partition(|one| one.deadline_ns.is_some());
    others.sort_by_key(|one| std::cmp::Reverse(threads.all[one.thread].watched.ran_ns));
    let max = |histogram: &Histogram| match histogram.summary().count {
        0 => "-".to_string(),
        _ => units::time(histogram.summary().max),
    };
    for one in reserved.into_iter().chain(others.into_iter().take(OTHERS_SHOWN)) {
        let late = |count: u64| one.deadline_ns.map_or("-".to_string(), |_| count.to_string());
        rows.push([
            threads.all[one.thread].comm.text(),
            one.deadline_ns.map_or("-".into(), show_time),
            one.had.jobs.to_string(),
            late(one.had.late),
            late(one.gets.late),
            max(&one.had.latency_ns),
            max(&one.gets.latency_ns),
            max(&one.had.response_ns),
            max(&one.gets.response_ns),
        ]);
    }
    aligned(&rows)
}

fn in_json(
    args: &Args,
    threads: &Threads,
    proposal: &Proposal,
    replayed: Option<&Result<Replayed, String>>,
) -> Value {
    let max = |histogram: &Histogram| (histogram.summary().count > 0).then_some(histogram.summary().max);
    let times = |times: &crate::replay::Times| {
        json!({ "jobs": times.jobs, "late": times.late, "latency_max_ns": max(&times.latency_ns),
            "response_max_ns": max(&times.response_ns) })
    };
    let one = |one: &Compared| {
        let thread = &threads.all[one.thread];
        json!({ "name": thread.comm.text(), "pid": thread.pid, "task": one.task, "deadline_ns": one.deadline_ns,
            "had": times(&one.had), "gets": times(&one.gets), "met": one.is_met() })
    };
    let planned = proposal.planned.iter().map(|planned| {
        json!({ "task": planned.name, "thread": planned.thread, "budget_ns": planned.reservation.budget_ns,
            "period_ns": planned.reservation.period_ns })
    });
    let mut all = json!({
        "version": VERSION, "recording": args.from.display().to_string(), "planned": planned.collect::<Vec<_>>(),
        "plan": proposal.text, "lost": threads.lost, "gaps": threads.gaps,
    });
    match replayed {
        None => (all["holds"], all["met"]) = (Value::Null, Value::Null),
        Some(Ok(replayed)) => {
            all["holds"] = json!(replayed.holds);
            all["met"] = json!(replayed.is_met());
            all["left_out"] = json!({ "threads": replayed.left_out.0, "cpu_ns": replayed.left_out.1 });
            all["threads"] = replayed.compared.iter().map(one).collect();
        }
        Some(Err(faults)) => {
            all["holds"] = json!(false);
            all["met"] = json!(false);
            all["faults"] = json!(faults);
        }
    }
    all
}
