//! `tierce status`: the plan in force.

mod promises;

use super::run::metrics::{self, Form};
use anyhow::{bail, Context, Result};
use serde_json::{json, Value};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tierce_scx::socket;
use tierce_trace::{units, Report};

/// Show the plan in force: its name, since when, and the threads of each entry (root)
///
/// Asks the `tierce run` that enforces it. `--report` shows CPU time, jobs and misses so far, as at the end of the run. `--watch` shows
/// whether promises are kept: a line for each budget, with the periods in which its thread always wanted the CPU, what it was promised
/// and received in these, the least of one period, how often it was less than promised, missed deadlines, and how often the budget was
/// used up: since the plan is in force, and beside that since the line before.
#[derive(clap::Args)]
pub struct Args {
    /// Show CPU time, jobs and misses of each task, node and CPU so far
    #[arg(long)]
    report: bool,
    /// Show what is promised and whether it is kept, anew every second, until Ctrl-C
    #[arg(long, conflicts_with = "report")]
    watch: bool,
    /// With --watch: how often it is shown; then the end
    #[arg(long, value_name = "N", requires = "watch")]
    times: Option<u64>,
    /// Write metrics, as `tierce run --metrics-file` does, to this file; `-`: print them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["report", "watch", "json"])]
    metrics: Option<PathBuf>,
    /// Write it as JSON; with --watch as a line each time
    #[arg(long)]
    json: bool,
    /// Socket of the plan in force [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// How often promises are shown.
const EACH: Duration = Duration::from_secs(1);

/// On a terminal: to the top, all gone.
const CLEAR: &str = "\x1b[H\x1b[2J";

fn watch(args: &Args) -> Result<ExitCode> {
    let path = socket::path(args.socket.clone());
    let mut left = args.times.unwrap_or(u64::MAX);
    let mut before = Value::Null;
    while left > 0 {
        let mut answer = match socket::ask(&path, json!({ "request": "status" }))? {
            Ok(answer) => answer,
            Err((_, message)) => bail!("{message}"),
        };
        let now = answer["promises"].clone();
        promises::add_last(&before, &mut answer["promises"]);
        before = now;
        let mut out = std::io::stdout();
        if args.json {
            writeln!(out, "{}", answer["promises"])?;
        } else {
            let clear = if out.is_terminal() { CLEAR } else { "" };
            let (plan, since) =
                (answer["plan"].as_str().unwrap_or("?"), answer["elapsed_ns"].as_u64().unwrap_or(0));
            writeln!(out, "{clear}{plan} for {}\n\n{}", units::time(since), promises::table(&answer))?;
        }
        out.flush()?;
        left -= 1;
        if left > 0 {
            std::thread::sleep(EACH);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Run `tierce status`.
pub fn run(args: Args) -> Result<ExitCode> {
    if args.watch {
        return watch(&args);
    }
    if let Some(file) = &args.metrics {
        let text = metrics::fetch(&socket::path(args.socket), Form::Classic)?;
        match file.as_os_str() == "-" {
            true => print!("{text}"),
            false => metrics::write_file(file, &text)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let request = if args.report { "report" } else { "status" };
    let answer = match socket::ask(&socket::path(args.socket), json!({ "request": request }))? {
        Ok(answer) => answer,
        Err((_, message)) => bail!("{message}"),
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
    } else if args.report {
        let report: Report = serde_json::from_value(answer)
            .context("the report has an unknown format; are `tierce` and the run of the same version?")?;
        print!("{}", report.tables());
    } else {
        show(&answer);
    }
    Ok(ExitCode::SUCCESS)
}

/// Who has waited for whom, and who ran meanwhile.
fn lock_wait(waited: &Value) -> String {
    let text = |key: &str| waited[key].as_str().unwrap_or("a thread outside the plan");
    let time = |key: &str| units::time(waited[key].as_u64().unwrap_or(0));
    let now = if waited["waits"] == true { "waits" } else { "waited" };
    let times = match waited["count"].as_u64() {
        Some(1) => "once,".to_string(),
        count => format!("{} times, longest", count.unwrap_or(0)),
    };
    let others = waited["others_ran"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let others = others.map(|other| {
        let (name, ran_ns) = (other[0].as_str().unwrap_or("?"), other[1].as_u64().unwrap_or(0));
        format!(", {name} for {}", units::time(ran_ns))
    });
    format!(
        "{} {now} for locks of {}: {times} {}; meanwhile {} ran for {}{}",
        text("task"),
        text("holder"),
        time("longest_ns"),
        text("holder"),
        time("holder_ran_ns"),
        others.collect::<String>()
    )
}

/// For people: the plan, who is where, whose the copies are, and who was left out.
fn show(answer: &Value) {
    let text = |key: &str| answer[key].as_str().unwrap_or("?");
    let number = |key: &str| answer[key].as_u64().unwrap_or(0);
    let since = units::time(number("elapsed_ns"));
    let edited = if answer["edited"] == true { ", changed by tierce ctl," } else { "" };
    let cpus = match number("cpus") {
        1 => "1 CPU".to_string(),
        cpus => format!("{cpus} CPUs"),
    };
    println!("{}{edited} on {cpus} for {since}, by process {}", text("plan"), number("pid"));
    for thread in answer["threads"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let jobs = match (thread["jobs"].as_u64(), thread["deadline_ns"].as_u64()) {
            (Some(jobs), Some(_)) => format!(": {jobs} jobs, {} misses", thread["misses"]),
            _ => String::new(),
        };
        let by = thread["by"].as_str().map_or(String::new(), |by| format!("  {by}"));
        println!("  {} {}{by}{jobs}", thread["name"].as_str().unwrap_or("?"), thread["tid"]);
    }
    for copy in answer["copies"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let whose = ["uid", "cgroup"].into_iter().find_map(|by| Some((by, copy[by].as_str()?)));
        let (by, whose) = whose.unwrap_or(("?", "?"));
        println!("  {} is for {by} {whose}", copy["node"].as_str().unwrap_or("?"));
    }
    for out in answer["left_out"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let text = |key: &str| out[key].as_str().unwrap_or("?");
        println!(
            "  match_left_out: {} ({}) matches {}  {}: {}",
            out["tid"],
            text("comm"),
            text("name"),
            text("by"),
            text("why")
        );
    }
    for waited in answer["lock_waits"].as_array().map(Vec::as_slice).unwrap_or_default() {
        println!("  {}", lock_wait(waited));
    }
    match answer["match_left_out"].as_u64() {
        None | Some(0) => {}
        Some(times) => println!("match_left_out: {times} times since the plan is in force"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_locks_in_words() {
        let mut waited = json!({ "task": "high", "holder": "low", "count": 45, "longest_ns": 13_500_000, "holder_ran_ns": 1_000_000,
            "others_ran": [["middle", 7_700_000]] });
        let said = "high waited for locks of low: 45 times, longest 13.5 ms; meanwhile low ran for 1 ms, middle for 7.7 ms";
        assert_eq!(lock_wait(&waited), said);
        waited =
            json!({ "task": "high", "count": 1, "longest_ns": 2_000_000, "holder_ran_ns": 0, "waits": true });
        let said = "high waits for locks of a thread outside the plan: once, 2 ms; meanwhile a thread outside the plan ran for 0 ns";
        assert_eq!(lock_wait(&waited), said);
    }
}
