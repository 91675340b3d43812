//! `tierce analyse`: do the tasks of a table meet their deadlines under one policy?

use anyhow::{anyhow, bail, Context, Result};
use clap::ValueEnum;
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::{priorities, utilisation, Demand, Edf, Entry, FixedPriority, Response, Supply, Task};
use tierce_guarantee::Guarantee;
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Do the tasks of a table meet their deadlines, and how long can each take?
///
/// The table has a line of column names and a line per task: name, work, period, and optionally deadline (default: the
/// period), jitter (how late a job may become ready), blocking (longest wait for work that should come later), offset (of
/// no effect: any phases are considered), priority (larger is higher; default: the shorter the deadline, the higher). Times
/// have a unit (1.5ms); a bare whole number is ns.
///
/// Times are exact and as long as they say in the worst case, from the nominal release, own jitter included. With blocking
/// they are upper bounds.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table (CSV)
    #[arg(value_name = "TASKS.csv")]
    tasks: PathBuf,
    /// How the tasks are ordered
    #[arg(long)]
    policy: Policy,
    /// What they are given, on each CPU: BUDGET/PERIOD[/DEADLINE] (a periodic resource) or a guarantee
    #[arg(long, value_name = "SUPPLY", value_parser = supply)]
    supply: Option<Given>,
    /// CPUs; with several each task is put on one of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cpus: u32,
    /// On which CPU a task is tried first, in the order of decreasing utilisation
    #[arg(long, default_value = "first")]
    fit: FitName,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A table:
  name,work,period,deadline
  audio,1ms,10ms,
  video,8ms,33ms,20ms

Examples:
  tierce analyse --policy fp tasks.csv
  tierce analyse --policy edf --supply 1.5ms/6ms tasks.csv       in a reservation
  tierce analyse --policy dm --supply 'RESCS 2ms 8ms' tasks.csv  in what a guarantee is sure to give
  tierce analyse --policy edf --cpus 4 --fit worst tasks.csv     each task on one of four CPUs

Exit codes: 0 schedulable, 1 not, 2 bad input.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Fixed priorities as in the table, or deadline monotonic; equal priorities wait for each other
    #[value(alias = "fixed-priority")]
    Fp,
    /// Rate monotonic: the shorter the period, the higher the priority
    #[value(alias = "rate-monotonic")]
    Rm,
    /// Deadline monotonic
    #[value(alias = "deadline-monotonic")]
    Dm,
    /// Fixed priorities in an order that meets all deadlines, if there is one
    Audsley,
    /// Earliest deadline first
    Edf,
}

#[derive(Clone, Copy, ValueEnum)]
enum FitName {
    /// The lowest
    First,
    /// The fullest
    Best,
    /// The emptiest
    Worst,
    /// That of the task before, then the next one
    Next,
}

/// A supply and how it was written.
#[derive(Clone)]
pub struct Given {
    text: String,
    pub supply: Supply,
}

/// `1.5ms/6ms`, `1.5ms/6ms/4ms`, or a guarantee.
pub fn supply(text: &str) -> Result<Given, String> {
    let given = |supply| Given { text: text.trim().to_string(), supply };
    if text.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        let times = text.split('/').map(time).collect::<Result<Vec<_>, _>>()?;
        let supply = match times[..] {
            [budget, period] => Supply::periodic(budget, period),
            [budget, period, deadline] => Supply::edp(budget, period, deadline),
            _ => {
                return Err(
                    "supply_must_have_its_numbers: BUDGET/PERIOD or BUDGET/PERIOD/DEADLINE".to_string()
                )
            }
        };
        let bounds = "supply_must_fit: 0 < budget <= deadline <= period, the deadline being the period where not given";
        return supply.map(given).ok_or_else(|| bounds.to_string());
    }
    let guarantee = Guarantee::parse(text).map_err(|faults| faults.to_string())?;
    let nothing = "supply_must_be_bounded: this promises nothing for any window, or less than 1 ns of it";
    Supply::of(&guarantee).map(given).ok_or_else(|| nothing.to_string())
}

/// A time in whole ns; a bare number is ns.
pub fn time(text: &str) -> Result<u64, String> {
    tierce_analysis::parse_time(text.trim())
        .map_err(|(rule, message)| format!("{rule}: {message} (\"{text}\")"))
}

/// The tasks of a table, or all of its faults with their places.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    tierce_analysis::parse(&text).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect();
        let s = if faults.len() == 1 { "" } else { "s" };
        anyhow!("{} fault{s} in the table\n{}", faults.len(), lines.join("\n"))
    })
}

/// The verdict on the tasks of one CPU.
struct Verdict {
    schedulable: bool,
    /// Where it could not be decided, or why it fails beyond single tasks.
    remark: Option<String>,
    /// As the tasks were given.
    responses: Vec<Response>,
}

/// Run `tierce analyse`.
pub fn run(args: Args) -> Result<ExitCode> {
    let entries = read(&args.tasks)?;
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    let given = args.supply.clone().unwrap_or(Given { text: "a whole CPU".into(), supply: Supply::WHOLE });
    let with_priority = entries.iter().filter(|entry| entry.priority.is_some()).count();
    if args.policy == Policy::Fp && with_priority != 0 && with_priority != entries.len() {
        let rule = "priorities_are_complete";
        bail!("{rule}: {with_priority} of {} tasks have a priority; all have one, or none", entries.len());
    }
    let some = |members: &[usize]| members.iter().map(|index| entries[*index].clone()).collect::<Vec<_>>();
    let fit = match args.fit {
        FitName::First => Fit::First,
        FitName::Best => Fit::Best,
        FitName::Worst => Fit::Worst,
        FitName::Next => Fit::Next,
    };
    let cpus = if args.cpus == 1 {
        vec![0; tasks.len()]
    } else {
        let holds = |members: &[usize]| verdict(args.policy, &some(members), &given.supply).schedulable;
        match partition(&tasks, args.cpus as usize, fit, holds) {
            Partition::Fits(cpus) => cpus,
            Partition::Fails(index) => return does_not_fit(&args, &given, &entries, index),
        }
    };
    let mut responses = vec![Response::Unbounded; tasks.len()];
    let (mut schedulable, mut remarks) = (true, Vec::new());
    for cpu in 0..args.cpus as usize {
        let members: Vec<_> = (0..tasks.len()).filter(|index| cpus[*index] == cpu).collect();
        let found = verdict(args.policy, &some(&members), &given.supply);
        schedulable &= found.schedulable;
        remarks.extend(found.remark);
        for (index, response) in members.iter().zip(found.responses) {
            responses[*index] = response;
        }
    }
    if args.json {
        let each = entries.iter().zip(&responses).zip(&cpus);
        let each: Vec<_> = each.map(|((entry, response), cpu)| in_json(entry, *response, *cpu)).collect();
        let mut value = head(&args, &given, &tasks, schedulable);
        value["remarks"] = json!(remarks);
        value["tasks"] = json!(each);
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        print_table(&args, &entries, &responses, &cpus);
        for remark in remarks {
            println!("{remark}");
        }
        print_end(&args, &given, &tasks, schedulable);
    }
    Ok(ExitCode::from(u8::from(!schedulable)))
}

fn policy_name(policy: Policy) -> String {
    policy.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

fn head(args: &Args, given: &Given, tasks: &[Task], schedulable: bool) -> Value {
    json!({
        "version": VERSION, "policy": policy_name(args.policy), "supply": given.text, "cpus": args.cpus,
        "utilisation": short(&utilisation(tasks)), "schedulable": schedulable,
    })
}

/// A fraction, or where nobody could read that, a decimal marked with ~.
fn short(share: &tierce_guarantee::Exact) -> String {
    let text = share.to_string();
    if text.len() <= 40 {
        text
    } else {
        format!("~{:.9}", float(share))
    }
}

/// For the eye only.
fn float(share: &tierce_guarantee::Exact) -> f64 {
    let scaled = (share * num_bigint::BigInt::from(1_000_000_000)).round().to_integer();
    scaled.to_string().parse::<f64>().unwrap_or(f64::NAN) / 1e9
}

fn does_not_fit(args: &Args, given: &Given, entries: &[Entry], index: usize) -> Result<ExitCode> {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    let name = &entries[index].name;
    let remark = format!("{name} fits on none of {} CPUs, after the tasks of larger utilisation", args.cpus);
    if args.json {
        let mut value = head(args, given, &tasks, false);
        value["remarks"] = json!([remark]);
        value["tasks"] = json!([]);
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        println!("{remark}.");
        print_end(args, given, &tasks, false);
    }
    Ok(ExitCode::from(1))
}

fn verdict(policy: Policy, entries: &[Entry], supply: &Supply) -> Verdict {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    if policy == Policy::Edf {
        return earliest_deadline(&tasks, supply);
    }
    let mut levels = None;
    let order = match policy {
        Policy::Rm => priorities::rate_monotonic(&tasks),
        Policy::Audsley => match priorities::audsley(&tasks, supply) {
            Some(order) => order,
            None => {
                let mut found = by_priority(&tasks, &priorities::deadline_monotonic(&tasks), None, supply);
                let remark =
                    "No order of fixed priorities meets all deadlines; these are deadline monotonic.";
                found.remark = Some(remark.to_string());
                return found;
            }
        },
        Policy::Fp if entries.iter().any(|entry| entry.priority.is_some()) => {
            let mut order: Vec<_> = (0..entries.len()).collect();
            order.sort_by_key(|index| std::cmp::Reverse(entries[*index].priority));
            let changes = |pair: &[usize]| u32::from(entries[pair[0]].priority != entries[pair[1]].priority);
            let mut level = 0;
            let rest = order.windows(2).map(|pair| {
                level += changes(pair);
                level
            });
            levels = Some([0].into_iter().chain(rest).collect::<Vec<_>>());
            order
        }
        _ => priorities::deadline_monotonic(&tasks),
    };
    by_priority(&tasks, &order, levels.as_deref(), supply)
}

fn by_priority(tasks: &[Task], order: &[usize], levels: Option<&[u32]>, supply: &Supply) -> Verdict {
    let mut analysis = FixedPriority::new();
    let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    let found = match levels {
        Some(levels) if !ordered.is_empty() => analysis.responses_by_level(&ordered, levels, supply),
        _ => analysis.responses(&ordered, supply),
    };
    let mut responses = vec![Response::Unbounded; tasks.len()];
    for (index, response) in order.iter().zip(found) {
        responses[*index] = *response;
    }
    let schedulable = tasks.iter().zip(&responses).all(|(task, response)| response.meets(task.deadline_ns));
    let undecided = responses.contains(&Response::TooLong);
    Verdict { schedulable, remark: undecided.then(|| too_long("a busy period")), responses }
}

fn too_long(what: &str) -> String {
    format!("Not decided: {what} is too long to look at, since utilisation and supply are nearly equal.")
}

fn earliest_deadline(tasks: &[Task], supply: &Supply) -> Verdict {
    let mut edf = Edf::new();
    let demand = edf.demand(tasks, supply);
    let responses = edf.responses(tasks, supply).to_vec();
    let remark = match demand {
        Demand::Met => None,
        Demand::Exceeds { window_ns, due_ns } => {
            let (window_ns, due_ns) = edf.shortest_excess(tasks, supply).unwrap_or((window_ns, due_ns));
            let (due, window) = (show_time(due_ns), show_time(window_ns));
            Some(format!("Within {window} work of {due} can be due, more than is sure to be supplied."))
        }
        Demand::Overload => Some("More is asked for than supplied in the long run.".to_string()),
        Demand::TooLong => Some(too_long("a window")),
    };
    Verdict { schedulable: demand == Demand::Met, remark, responses }
}

fn in_json(entry: &Entry, response: Response, cpu: usize) -> Value {
    let deadline = entry.task.deadline_ns;
    let slack = response.ns().map(|ns| i128::from(deadline) - i128::from(ns));
    let slack = slack.and_then(|slack| i64::try_from(slack).ok());
    json!({ "name": entry.name, "cpu": cpu, "wcrt_ns": response.ns(), "deadline_ns": deadline, "slack_ns": slack })
}

fn print_table(args: &Args, entries: &[Entry], responses: &[Response], cpus: &[usize]) {
    let names = entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    let cpu = |text: String| if args.cpus > 1 { format!("  {text:>3}") } else { String::new() };
    let line = |name: &str, on: String, cells: [String; 3]| {
        let text = format!("{name:<names$}{}  {:>14}  {:>14}  {:>14}", cpu(on), cells[0], cells[1], cells[2]);
        println!("{}", text.trim_end());
    };
    line("task", "cpu".into(), ["response".into(), "deadline".into(), "slack".into()]);
    for ((entry, response), on) in entries.iter().zip(responses).zip(cpus) {
        let deadline = entry.task.deadline_ns;
        let (took, slack) = match response {
            Response::Within(ns) if *ns <= deadline => (show_time(*ns), show_time(deadline - ns)),
            Response::Within(ns) => (show_time(*ns), format!("-{}", show_time(ns - deadline))),
            Response::Unbounded => ("unbounded".to_string(), String::new()),
            Response::TooLong => ("not decided".to_string(), String::new()),
        };
        line(&entry.name, on.to_string(), [took, show_time(deadline), slack]);
    }
}

fn print_end(args: &Args, given: &Given, tasks: &[Task], schedulable: bool) {
    let load = format!("{:.2} %", float(&utilisation(tasks)) * 100.0);
    let verdict = if schedulable { "Schedulable" } else { "Not schedulable" };
    let places =
        if args.cpus > 1 { format!("{} CPUs, each {}", args.cpus, given.text) } else { given.text.clone() };
    println!("\n{verdict}: {}, utilisation {load}, supplied with {places}.", policy_name(args.policy));
}
