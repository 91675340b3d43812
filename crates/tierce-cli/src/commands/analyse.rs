//! `tierce analyse`: do the tasks of a table meet their deadlines under one policy?

use anyhow::{anyhow, bail, Context, Result};
use clap::ValueEnum;
use serde_json::{json, Value};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_analysis::global::{self, Shown};
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::retas::Row;
use tierce_analysis::sensitivity::{limits, work_scale, Limits, SCALE_ONE};
use tierce_analysis::server::smallest_budget;
use tierce_analysis::{
    priorities, retas, utilisation, Demand, Edf, Entry, Fault, FixedPriority, Mpr, Response, Supply, Task,
};
use tierce_guarantee::Guarantee;
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Test whether the tasks of a table are schedulable, and compute their worst-case response times
///
/// The table has a line of column names and a line per task: name, work, period, and optionally deadline (default: the
/// period), jitter (how late a job may become ready), blocking (longest time it may be blocked by less urgent tasks), offset
/// (no effect: all phases are considered), priority (larger is higher; default: a shorter deadline is higher). Times have a
/// unit (1.5ms); a bare whole number is ns. Task sets of ReTAS (eight numbers a line) are read, too.
///
/// On one CPU, and with --partition on each of several CPUs, the verdict is exact, and response times are the worst case, from
/// the nominal release, own jitter included. With blocking they are upper bounds. With --cpus and without --partition any CPU may
/// run any task (global scheduling): the tests are sufficient only, and response times are upper bounds. Global scheduling needs
/// deadlines of at most the period, and no blocking.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table (CSV)
    #[arg(value_name = "TASKS.csv")]
    tasks: PathBuf,
    /// Scheduling policy
    #[arg(long)]
    policy: Policy,
    /// Supply of each CPU: BUDGET/PERIOD[/DEADLINE] (a periodic resource) or a guarantee; or of several CPUs together:
    /// BUDGET/PERIOD@CPUS (a multiprocessor periodic resource, for edf)
    #[arg(long, value_name = "SUPPLY", value_parser = supply, allow_hyphen_values = true)]
    supply: Option<Given>,
    /// Number of CPUs, 1 unless the supply is for more; global scheduling, unless --partition is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CPUS_MAX), allow_hyphen_values = true)]
    cpus: Option<u32>,
    /// Partitioned scheduling: each task on one CPU; in which order CPUs are tried
    #[arg(long, value_name = "FIT")]
    partition: Option<FitName>,
    /// Also show how far each work, period, deadline and the budget can change alone, and all works together
    #[arg(long)]
    sensitivity: bool,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    json: bool,
}

const CPUS_MAX: i64 = 1024;

/// Bytes of a table.
const TABLE_MAX: u64 = 64 << 20;

const EXAMPLES: &str = "\
A table:
  name,work,period,deadline
  audio,1ms,10ms,
  video,8ms,33ms,20ms

Examples:
  tierce analyse --policy fp tasks.csv
  tierce analyse --policy edf --supply 1.5ms/6ms tasks.csv       in a reservation
  tierce analyse --policy dm --supply 'RESCS 2ms 8ms' tasks.csv  within the supply of a guarantee
  tierce analyse --policy dm --sensitivity tasks.csv             how far numbers can change
  tierce analyse --policy edf --cpus 4 tasks.csv                 global: the four earliest deadlines run
  tierce analyse --policy edf --supply 6ms/5ms@2 tasks.csv       6 ms of two CPUs in each 5 ms
  tierce analyse --policy edf --cpus 4 --partition worst tasks.csv   each task on one of four CPUs

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
    /// The smaller deadline - k work, the higher; k depends on the number of CPUs, and is 0 for one
    Dkc,
    /// Fixed priorities in an order that meets all deadlines, if there is one (on several CPUs: if one is found)
    Audsley,
    /// Earliest deadline first
    Edf,
}

#[derive(Clone, Copy, ValueEnum)]
enum FitName {
    /// The lowest CPU first, tasks by decreasing utilisation
    First,
    /// The fullest CPU first, tasks by decreasing utilisation
    Best,
    /// The emptiest CPU first, tasks by decreasing utilisation
    Worst,
    /// The CPU of the task before, then the next one, by decreasing utilisation
    Next,
    /// By period, so that the periods on one CPU are as similar as possible: fewer switches
    Period,
    /// By period, dealt out: each CPU gets periods of all lengths
    Mixed,
}

/// A supply and how it was written.
#[derive(Clone)]
struct Given {
    text: String,
    supply: Supplied,
}

#[derive(Clone, Copy)]
enum Supplied {
    /// Each CPU gives that.
    Each(Supply),
    /// Several CPUs give that together.
    Together(Mpr),
}

/// `1.5ms/6ms`, `1.5ms/6ms/4ms`, `6ms/5ms@2`, or a guarantee.
fn supply(text: &str) -> Result<Given, String> {
    let given = |supply| Given { text: text.trim().to_string(), supply };
    let each = |supply| given(Supplied::Each(supply));
    if !text.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let guarantee = Guarantee::parse(text).map_err(|faults| faults.to_string())?;
        let nothing =
            "supply_must_be_bounded: this supply guarantees nothing in any window, or less than 1 ns";
        return Supply::of(&guarantee).map(each).ok_or_else(|| nothing.to_string());
    }
    let (times, cpus) = match text.split_once('@') {
        None => (text, None),
        Some((times, cpus)) => {
            let count = cpus.trim().parse().ok().filter(|cpus| (1..=CPUS_MAX).contains(&i64::from(*cpus)));
            let fault = || format!("supply_must_have_its_cpus: from 1 to {CPUS_MAX} after @ (\"{cpus}\")");
            (times, Some(count.ok_or_else(fault)?))
        }
    };
    let times = times.split('/').map(|text| time_within(text, "above 0")).collect::<Result<Vec<_>, _>>()?;
    let supply = match (&times[..], cpus) {
        ([budget, period], None | Some(1)) => Supply::periodic(*budget, *period).map(each),
        ([budget, period, deadline], None) => Supply::edp(*budget, *period, *deadline).map(each),
        ([budget, period], Some(cpus)) => {
            Mpr::new(*budget, *period, cpus).map(|supply| given(Supplied::Together(supply)))
        }
        _ => {
            let forms = "BUDGET/PERIOD, BUDGET/PERIOD/DEADLINE or BUDGET/PERIOD@CPUS";
            return Err(format!("supply_must_have_its_numbers: {forms}"));
        }
    };
    supply.ok_or_else(|| {
        "supply_must_fit: 0 < budget <= deadline <= period, the deadline being the period where not given; with @ \
         0 < budget <= CPUs times period"
            .to_string()
    })
}

/// A time in whole ns; a bare number is ns.
pub fn time(text: &str) -> Result<u64, String> {
    time_within(text, "0 or more")
}

/// The same with other words for what may not be negative.
pub fn time_within(text: &str, least: &str) -> Result<u64, String> {
    tierce_analysis::parse_time(text.trim()).map_err(|(rule, message)| {
        let bound = match rule {
            "number_must_not_be_negative" => least.into(),
            "time_not_finer_than_1ns" => "1ns".into(),
            _ => tierce_guarantee::Parameter::Period.bound(rule),
        };
        format!("{rule}: {message}: {text}, bound {bound}")
    })
}

/// The tasks of a table, or all of its faults with their places.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    Ok(read_set(path)?.0)
}

/// The same, and where the file is of ReTAS its rows.
pub fn read_set(path: &Path) -> Result<(Vec<Entry>, Option<Vec<Row>>)> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(|| format!("{}", path.display()))?;
    file.take(TABLE_MAX + 1).read_to_end(&mut bytes).with_context(|| format!("{}", path.display()))?;
    if bytes.len() as u64 > TABLE_MAX {
        bail!("{}: table_must_fit: the table is larger, bound {} MiB", path.display(), TABLE_MAX >> 20);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let (line, column) =
            (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or("").chars().count() + 1);
        anyhow!("{}:{line}:{column}: table_must_be_utf_8: this byte is not UTF-8", path.display())
    })?;
    let shown = |faults: Vec<Fault>| {
        let lines: Vec<_> = faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect();
        let s = if faults.len() == 1 { "" } else { "s" };
        anyhow!("{} fault{s} in the table\n{}", faults.len(), lines.join("\n"))
    };
    if !retas::is_retas(&text) {
        return Ok((tierce_analysis::parse(&text).map_err(shown)?, None));
    }
    let rows = retas::parse(&text).map_err(shown)?;
    Ok((rows.iter().map(Row::entry).collect(), Some(rows)))
}

/// The verdict on some tasks, on one CPU or several.
struct Verdict {
    schedulable: bool,
    /// Where it could not be decided, or why it fails beyond single tasks.
    remark: Option<String>,
    /// As the tasks were given.
    responses: Vec<Response>,
}

/// The verdict on all.
#[derive(Default)]
struct Outcome {
    schedulable: bool,
    remarks: Vec<String>,
    /// Of each task, or of none where one fits on no CPU.
    responses: Vec<Response>,
    /// Of each task, if it has one.
    cpus: Vec<usize>,
    /// Of each task: what shows that it meets its deadlines where any CPU may run it.
    shown: Vec<Shown>,
    sensitivity: Option<Sensitivity>,
}

/// How far numbers can change, tasks staying on their CPUs and priorities as they are.
struct Sensitivity {
    /// Of each task.
    limits: Vec<Limits>,
    /// The factor common to all works, in billionths.
    work_scale: Option<u64>,
    /// The smallest budget of a periodic resource, if the supply is one.
    budget_min_ns: Option<u64>,
}

/// What is asked.
struct Question {
    policy: Policy,
    entries: Vec<Entry>,
    tasks: Vec<Task>,
    given: Given,
    cpus: u32,
    /// `None`: any CPU may run any task, if there are several.
    partition: Option<FitName>,
    sensitivity: bool,
}

impl Question {
    fn new(args: &Args) -> Result<Self> {
        let entries = read(&args.tasks)?;
        let whole = || Given { text: "a whole CPU".into(), supply: Supplied::Each(Supply::WHOLE) };
        let given = args.supply.clone().unwrap_or_else(whole);
        let with_priority = entries.iter().filter(|entry| entry.priority.is_some()).count();
        if args.policy == Policy::Fp && with_priority != 0 && with_priority != entries.len() {
            let rule = "priorities_are_complete";
            bail!(
                "{rule}: {with_priority} of {} tasks have a priority; give all of them one, or none",
                entries.len()
            );
        }
        let cpus = match given.supply {
            Supplied::Each(_) => args.cpus.unwrap_or(1),
            Supplied::Together(supply) => {
                let cpus = supply.cpus();
                if args.cpus.is_some_and(|asked| asked != cpus) {
                    bail!("cpus_are_those_of_the_supply: the supply {} is for {cpus} CPUs; leave out --cpus, or give the same number", given.text);
                }
                if args.partition.is_some() {
                    bail!("supply_is_of_several_cpus: with --partition each CPU has a supply of its own; give a supply without @");
                }
                if args.policy != Policy::Edf {
                    bail!(
                        "supply_is_for_edf: a supply of several CPUs (@) can be tested with --policy edf only"
                    );
                }
                cpus
            }
        };
        if cpus > 1 && args.partition.is_none() && args.supply.is_some() && !is_together(&given) {
            bail!(
                "supply_is_of_one_cpu: several CPUs with a supply each need --partition, so that each task is on one; \
                 what they give together is BUDGET/PERIOD@CPUS"
            );
        }
        let tasks = entries.iter().map(|entry| entry.task).collect();
        let Args { policy, partition, sensitivity, .. } = *args;
        if cpus > 1 && partition.is_none() && sensitivity {
            bail!("sensitivity_needs_an_exact_test: on several CPUs --sensitivity needs --partition");
        }
        Ok(Self { policy, entries, tasks, given, cpus, partition, sensitivity })
    }

    fn is_global(&self) -> bool {
        self.cpus > 1 && self.partition.is_none()
    }
}

fn is_together(given: &Given) -> bool {
    matches!(given.supply, Supplied::Together(_))
}

/// Run `tierce analyse`.
pub fn run(args: Args) -> Result<ExitCode> {
    let asked = Question::new(&args)?;
    let outcome = if asked.is_global() { anywhere(&asked)? } else { in_parts(&asked) };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&in_json(&asked, &outcome))?);
    } else {
        print(&asked, &outcome);
    }
    Ok(ExitCode::from(u8::from(!outcome.schedulable)))
}

/// Each task on one CPU; no responses if one fits on none.
fn in_parts(asked: &Question) -> Outcome {
    let Question { policy, entries, tasks, .. } = asked;
    let Supplied::Each(supply) = asked.given.supply else { return Outcome::default() };
    let some = |members: &[usize]| members.iter().map(|index| entries[*index].clone()).collect::<Vec<_>>();
    let fit = match asked.partition {
        Some(FitName::First) | None => Fit::First,
        Some(FitName::Best) => Fit::Best,
        Some(FitName::Worst) => Fit::Worst,
        Some(FitName::Next) => Fit::Next,
        Some(FitName::Period) => Fit::Period,
        Some(FitName::Mixed) => Fit::Mixed,
    };
    let cpus = if asked.cpus == 1 {
        vec![0; tasks.len()]
    } else {
        let holds = |members: &[usize]| verdict(*policy, &some(members), &supply).schedulable;
        match partition(tasks, asked.cpus as usize, fit, holds) {
            Partition::Fits(cpus) => cpus,
            Partition::Fails(index) => {
                let (name, cpus) = (&entries[index].name, asked.cpus);
                let remark = format!(
                    "{name} fits on none of the {cpus} CPUs, after the tasks that were placed before it."
                );
                return Outcome { remarks: vec![remark], ..Outcome::default() };
            }
        }
    };
    let mut responses = vec![Response::Unbounded; tasks.len()];
    let (mut schedulable, mut remarks) = (true, Vec::new());
    for cpu in 0..asked.cpus as usize {
        let members: Vec<_> = (0..tasks.len()).filter(|index| cpus[*index] == cpu).collect();
        let found = verdict(*policy, &some(&members), &supply);
        schedulable &= found.schedulable;
        remarks.extend(found.remark);
        for (index, response) in members.iter().zip(found.responses) {
            responses[*index] = response;
        }
    }
    let sensitivity = asked.sensitivity.then(|| sensitivity(asked, &cpus, &supply));
    Outcome { schedulable, remarks, responses, cpus, sensitivity, ..Outcome::default() }
}

fn sensitivity(asked: &Question, cpus: &[usize], supply: &Supply) -> Sensitivity {
    let none = Limits { work_max_ns: None, period_min_ns: None, deadline_min_ns: None };
    let mut found = Sensitivity { limits: vec![none; cpus.len()], work_scale: None, budget_min_ns: None };
    let (mut scales, mut budgets) = (Vec::new(), Vec::new());
    for cpu in 0..asked.cpus as usize {
        let members: Vec<_> = (0..cpus.len()).filter(|index| cpus[*index] == cpu).collect();
        if members.is_empty() {
            continue;
        }
        let entries: Vec<_> = members.iter().map(|index| asked.entries[*index].clone()).collect();
        let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
        let levels = match asked.policy {
            Policy::Audsley => priorities::audsley(&tasks, supply).map(|order| ranks(&order)),
            _ => None,
        };
        let levels = levels.unwrap_or_else(|| levels_of(asked.policy, &entries, 1));
        let mut order: Vec<_> = (0..tasks.len()).collect();
        order.sort_by_key(|index| levels[*index]);
        let sorted: Vec<_> = order.iter().map(|index| levels[*index]).collect();
        let (mut fixed, mut edf) = (FixedPriority::new(), Edf::new());
        let mut holds = |changed: &[Task], supply: &Supply| {
            if asked.policy == Policy::Edf {
                return edf.schedulable_quickly(changed, supply);
            }
            let ordered: Vec<_> = order.iter().map(|index| changed[*index]).collect();
            fixed.schedulable_by_level(&ordered, &sorted, supply)
        };
        for (at, index) in members.iter().enumerate() {
            found.limits[*index] = limits(&tasks, at, |changed| holds(changed, supply));
        }
        scales.push(work_scale(&tasks, |changed| holds(changed, supply)));
        if let Some(period_ns) = supply.period_of_resource() {
            budgets.push(smallest_budget(period_ns, |supply| holds(&tasks, supply)));
        }
    }
    found.work_scale = scales.into_iter().min().flatten();
    found.budget_min_ns = if budgets.contains(&None) { None } else { budgets.into_iter().flatten().max() };
    found
}

/// Any CPU may run any task.
fn anywhere(asked: &Question) -> Result<Outcome> {
    let Question { policy, entries, tasks, cpus, .. } = asked;
    let unsupported = |fault: global::Unsupported| {
        let why = match fault.rule {
            "deadlines_are_at_most_periods" => "has a deadline beyond its period",
            "tasks_are_not_blocked" => "may be blocked",
            _ => "has a time out of range",
        };
        let name = &entries[fault.task].name;
        anyhow!(
            "{}: {name} {why}; the global tests for several CPUs do not cover that, but those with --partition do",
            fault.rule
        )
    };
    let mut remarks = Vec::new();
    let found = match (policy, asked.given.supply) {
        (Policy::Edf, Supplied::Together(supply)) => global::earliest_deadline_in(tasks, &supply),
        (Policy::Edf, _) => global::earliest_deadline(tasks, *cpus),
        _ => {
            let mut order = None;
            if *policy == Policy::Audsley {
                order = global::audsley(tasks, *cpus).map_err(unsupported)?;
                if order.is_none() {
                    remarks.push(
                        "No order of priorities was found in which all deadlines are met; the results are for the order by deadline - k work.".to_string(),
                    );
                }
            }
            let levels = match order {
                Some(order) => ranks(&order),
                None => levels_of(*policy, entries, *cpus),
            };
            global::fixed_priority(tasks, &levels, *cpus)
        }
    };
    let found = found.map_err(unsupported)?;
    if !found.schedulable {
        let rate = match asked.given.supply {
            Supplied::Together(supply) => supply.rate(),
            Supplied::Each(_) => tierce_guarantee::whole((*cpus).into()),
        };
        remarks.push(if global::overloaded(tasks, &rate) {
            "The demand is larger than the supply: in the long run, or of one task until its deadline.".to_string()
        } else {
            let missing = found.tasks.iter().zip(entries).filter(|(shown, _)| shown.by.is_empty());
            let missing: Vec<_> = missing.map(|(_, entry)| entry.name.as_str()).collect();
            let missing = missing.join(", ");
            format!("No test proves the deadlines of these tasks: {missing}. The tests are sufficient only: they may be met all the same.")
        });
    }
    let response = |shown: &Shown| shown.response_ns.map_or(Response::TooLong, Response::Within);
    let responses = found.tasks.iter().map(response).collect();
    let (schedulable, shown) = (found.schedulable, found.tasks);
    Ok(Outcome { schedulable, remarks, responses, shown, ..Outcome::default() })
}

/// The rank of each task, the smallest first.
fn ranks(order: &[usize]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    (0..).zip(order).for_each(|(rank, index)| ranks[*index] = rank);
    ranks
}

/// The level of each task: the smaller, the higher its priority.
fn levels_of(policy: Policy, entries: &[Entry], cpus: u32) -> Vec<u32> {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    match policy {
        Policy::Rm => ranks(&priorities::rate_monotonic(&tasks)),
        Policy::Dkc | Policy::Audsley => ranks(&global::d_minus_kc(&tasks, cpus)),
        Policy::Fp if entries.iter().any(|entry| entry.priority.is_some()) => {
            let mut all: Vec<_> = entries.iter().map(|entry| std::cmp::Reverse(entry.priority)).collect();
            all.sort();
            all.dedup();
            let level = |entry: &Entry| all.partition_point(|other| other.0 > entry.priority);
            entries.iter().map(|entry| u32::try_from(level(entry)).unwrap_or(u32::MAX)).collect()
        }
        _ => ranks(&priorities::deadline_monotonic(&tasks)),
    }
}

fn policy_name(policy: Policy) -> String {
    policy.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

/// A fraction, or where nobody could read that, a decimal marked with ~.
pub fn short(share: &tierce_guarantee::Exact) -> String {
    let text = share.to_string();
    if text.len() <= 40 {
        text
    } else {
        format!("~{:.9}", float(share))
    }
}

/// For the eye only.
fn float(share: &tierce_guarantee::Exact) -> f64 {
    let scaled = (share * tierce_guarantee::whole(1_000_000_000)).round().to_integer();
    scaled.to_string().parse::<f64>().unwrap_or(f64::NAN) / 1e9
}

fn verdict(policy: Policy, entries: &[Entry], supply: &Supply) -> Verdict {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    if policy == Policy::Edf {
        return earliest_deadline(&tasks, supply);
    }
    let levels = match policy {
        Policy::Audsley => match priorities::audsley(&tasks, supply) {
            Some(order) => ranks(&order),
            None => {
                let mut found = by_priority(&tasks, &levels_of(Policy::Dm, entries, 1), supply);
                let remark =
                    "No order of fixed priorities meets all deadlines; the results are for deadline-monotonic priorities.";
                found.remark = Some(remark.to_string());
                return found;
            }
        },
        _ => levels_of(policy, entries, 1),
    };
    by_priority(&tasks, &levels, supply)
}

fn by_priority(tasks: &[Task], levels: &[u32], supply: &Supply) -> Verdict {
    let mut analysis = FixedPriority::new();
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    let sorted: Vec<_> = order.iter().map(|index| levels[*index]).collect();
    let found = analysis.responses_by_level(&ordered, &sorted, supply);
    let mut responses = vec![Response::Unbounded; tasks.len()];
    for (index, response) in order.iter().zip(found) {
        responses[*index] = *response;
    }
    let schedulable = tasks.iter().zip(&responses).all(|(task, response)| response.meets(task.deadline_ns));
    let undecided = responses.contains(&Response::TooLong);
    Verdict { schedulable, remark: undecided.then(|| too_long("a busy period")), responses }
}

fn too_long(what: &str) -> String {
    format!("Not decided: {what} is too long to examine, because utilisation and supply are nearly equal.")
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
            Some(format!("In a window of {window} the demand can be {due}, more than the guaranteed supply."))
        }
        Demand::Overload => Some("The demand is larger than the supply in the long run.".to_string()),
        Demand::TooLong => Some(too_long("a window")),
    };
    Verdict { schedulable: demand == Demand::Met, remark, responses }
}

fn in_json(asked: &Question, outcome: &Outcome) -> Value {
    let is_global = asked.is_global();
    let task = |index: usize| {
        let (entry, response) = (&asked.entries[index], outcome.responses[index]);
        let deadline = entry.task.deadline_ns;
        let slack = response.ns().map(|ns| i128::from(deadline) - i128::from(ns));
        let slack = slack.and_then(|slack| i64::try_from(slack).ok());
        let mut value = json!({
            "name": entry.name, "wcrt_ns": response.ns(), "deadline_ns": deadline, "slack_ns": slack
        });
        if is_global {
            value["shown_by"] = json!(names(&outcome.shown[index]));
        } else {
            value["cpu"] = json!(outcome.cpus[index]);
        }
        if let Some(found) = &outcome.sensitivity {
            let limits = found.limits[index];
            value["work_max_ns"] = json!(limits.work_max_ns);
            value["period_min_ns"] = json!(limits.period_min_ns);
            value["deadline_min_ns"] = json!(limits.deadline_min_ns);
        }
        value
    };
    let mut value = json!({
        "version": VERSION, "policy": policy_name(asked.policy), "supply": asked.given.text, "cpus": asked.cpus,
        "scheduling": if is_global { "global" } else { "partitioned" }, "exact": !is_global,
        "utilisation": short(&utilisation(&asked.tasks)), "schedulable": outcome.schedulable,
        "remarks": outcome.remarks, "tasks": (0..outcome.responses.len()).map(task).collect::<Vec<_>>(),
    });
    if let Some(found) = &outcome.sensitivity {
        value["work_scale_ppb"] = json!(found.work_scale);
        value["budget_min_ns"] = json!(found.budget_min_ns);
    }
    value
}

fn names(shown: &Shown) -> Vec<&'static str> {
    shown.by.iter().map(|test| test.name()).collect()
}

fn print(asked: &Question, outcome: &Outcome) {
    if !outcome.responses.is_empty() {
        print_table(asked, outcome);
    }
    for remark in &outcome.remarks {
        println!("{remark}");
    }
    if let Some(found) = &outcome.sensitivity {
        print_sensitivity(asked, found);
    }
    let verdict = if outcome.schedulable { "Schedulable" } else { "Not schedulable" };
    let places = match asked.cpus {
        cpus if is_together(&asked.given) => format!("{} of {cpus} CPUs", asked.given.text),
        1 => asked.given.text.clone(),
        cpus if asked.is_global() => format!("{cpus} CPUs (global scheduling)"),
        cpus => format!("{cpus} CPUs, each {}", asked.given.text),
    };
    let load = tierce_admission::percent(&utilisation(&asked.tasks));
    println!("\n{verdict}: {}, utilisation {load}, supplied with {places}.", policy_name(asked.policy));
}

fn print_table(asked: &Question, outcome: &Outcome) {
    let name_width =
        asked.entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    let is_global = asked.is_global();
    let several = asked.cpus > 1 && !is_global;
    let cpu = |text: String| if several { format!("  {text:>3}") } else { String::new() };
    let line = |name: &str, on: String, cells: [String; 3], by: String| {
        let [response, deadline, slack] = cells;
        let text =
            format!("{name:<name_width$}{}  {response:>14}  {deadline:>14}  {slack:>14}  {by}", cpu(on));
        println!("{}", text.trim_end());
    };
    let (response, by) = if is_global { ("response up to", "shown by") } else { ("response", "") };
    line("task", "cpu".into(), [response.into(), "deadline".into(), "slack".into()], by.into());
    for (index, entry) in asked.entries.iter().enumerate() {
        let deadline = entry.task.deadline_ns;
        let (took, slack) = match outcome.responses[index] {
            Response::Within(ns) if ns <= deadline => (show_time(ns), show_time(deadline - ns)),
            Response::Within(ns) => (show_time(ns), format!("-{}", show_time(ns - deadline))),
            Response::Unbounded => ("unbounded".to_string(), String::new()),
            Response::TooLong if is_global => ("not shown".to_string(), String::new()),
            Response::TooLong => ("not decided".to_string(), String::new()),
        };
        let on = outcome.cpus.get(index).map_or(String::new(), usize::to_string);
        let by = outcome.shown.get(index).map_or(String::new(), |shown| names(shown).join(", "));
        line(&entry.name, on, [took, show_time(deadline), slack], by);
    }
}

fn print_sensitivity(asked: &Question, found: &Sensitivity) {
    let name_width =
        asked.entries.iter().map(|entry| entry.name.chars().count()).chain([4]).max().unwrap_or(4);
    let line = |name: &str, cells: [String; 6]| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>13}")).collect();
        println!("{name:<name_width$}{cells}");
    };
    println!("\nHow far each number can change alone before a deadline is missed:");
    line("task", ["work", "up to", "period", "down to", "deadline", "down to"].map(String::from));
    let limit = |limit: Option<u64>| limit.map_or("-".to_string(), show_time);
    for (entry, limits) in asked.entries.iter().zip(&found.limits) {
        let task = &entry.task;
        let now = [task.work_ns, task.period_ns, task.deadline_ns].map(show_time);
        let [work, period, deadline] = now;
        let at = [limits.work_max_ns, limits.period_min_ns, limits.deadline_min_ns].map(limit);
        let [work_max, period_min, deadline_min] = at;
        line(&entry.name, [work, work_max, period, period_min, deadline, deadline_min]);
    }
    match found.work_scale {
        Some(scale) => {
            println!(
                "All works together can grow by a factor of {}.{:09}.",
                scale / SCALE_ONE,
                scale % SCALE_ONE
            );
        }
        None => println!("No common factor of all works makes the set schedulable."),
    }
    if let Some(budget) = found.budget_min_ns {
        println!("The budget can shrink to {}.", show_time(budget));
    }
}
