//! `tierce design`: numbers for a plan that are not there yet.

mod drawing;

use super::analyse::{read, time, time_within};
use super::{picture, recording};
use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use drawing::drawn;
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_analysis::server::{frontier_of, usual_periods, Frontier, Order, Server};
use tierce_analysis::{utilisation, Task};
use tierce_figure::Figure;
use tierce_guarantee::{whole, Exact};
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Design a server (reservation) for a set of tasks, or a plan for what was recorded
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Server(ServerArgs),
    Plan(recording::PlanArgs),
}

const EXAMPLES: &str = "\
Examples:
  tierce design server --policy rm tasks.csv
  tierce design server --policy edf --periods 1ms,2ms,5ms --switch-cost 20us tasks.csv
  tierce design server --policy rm --plot frontier.png tasks.csv

Exit codes: 0 found, 1 the tasks do not meet their deadlines on a whole CPU either, 2 bad input.";

/// Find the smallest reservation in which a set of tasks meets its deadlines
///
/// For each period, computes the smallest budget in whole ns with which the exact test accepts the tasks, wherever in the period the
/// budget arrives. Short periods need little more than the tasks' utilisation but switch often; long ones use up the slack of the
/// shortest deadline.
/// The best point has the least (budget + switch cost)/period; the knee is the longest period that needs at most 5 % more
/// than the utilisation. The table is that of `tierce analyse`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct ServerArgs {
    /// The table (CSV)
    #[arg(value_name = "TASKS.csv")]
    tasks: PathBuf,
    /// How the tasks are ordered inside
    #[arg(long)]
    policy: Policy,
    /// Periods of the reservation; default: a hundred, up to the shortest deadline
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', value_parser = period, allow_hyphen_values = true)]
    periods: Vec<u64>,
    /// What it costs to begin a budget
    #[arg(long, value_name = "TIME", default_value = "5us", value_parser = time, allow_hyphen_values = true)]
    switch_cost: u64,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    json: bool,
    /// Draw the frontier: as .svg, .pdf or .png, by the ending of the name
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Rate monotonic
    #[value(alias = "rate-monotonic")]
    Rm,
    /// Deadline monotonic
    #[value(alias = "deadline-monotonic")]
    Dm,
    /// Earliest deadline first
    Edf,
}

impl Policy {
    fn order(self) -> Order {
        match self {
            Self::Rm => Order::RateMonotonic,
            Self::Dm => Order::DeadlineMonotonic,
            Self::Edf => Order::EarliestDeadline,
        }
    }
}

/// A time above 0.
fn period(text: &str) -> Result<u64, String> {
    let ns = time_within(text, "above 0")?;
    if ns == 0 {
        return Err(format!("time_must_be_positive: a period is a time: {text}, bound above 0"));
    }
    Ok(ns)
}

/// Run `tierce design`.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::Server(args) => server(args),
        What::Plan(args) => recording::plan(args),
    }
}

fn server(args: ServerArgs) -> Result<ExitCode> {
    picture::check(args.plot.as_deref())?;
    let tasks: Vec<_> = read(&args.tasks)?.iter().map(|entry| entry.task).collect();
    let mut periods = if args.periods.is_empty() { usual_periods(&tasks) } else { args.periods.clone() };
    periods.sort_unstable();
    periods.dedup();
    let Some(found) = frontier_of(args.policy.order(), &tasks, &periods, args.switch_cost) else {
        if args.json {
            println!(
                "{}",
                serde_json::to_string_pretty(&json!({ "version": VERSION, "frontier": [], "best": null }))?
            );
        } else {
            println!("The tasks are not schedulable on a whole CPU either: see `tierce analyse`.");
        }
        return Ok(ExitCode::from(1));
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&in_json(&args, &tasks, &found))?);
    } else {
        print_frontier(&args, &tasks, &found);
    }
    if let Some(path) = &args.plot {
        picture::write(&figure(&args, &tasks, &found), path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is asked for, rounded up.
fn percent(share: Exact) -> String {
    let thousandths = (share * whole(100_000)).ceil().to_integer().to_string();
    let digits = format!("{thousandths:0>4}");
    let (whole, rest) = digits.split_at(digits.len() - 3);
    format!("{whole}.{rest} %")
}

/// For the eye only.
fn float(share: &Exact) -> f64 {
    let scaled = (share * whole(1_000_000_000)).round().to_integer();
    scaled.to_string().parse::<f64>().unwrap_or(f64::NAN) / 1e9
}

fn point(server: &Server, switch_cost_ns: u64) -> Value {
    json!({
        "period_ns": server.period_ns, "budget_ns": server.budget_ns, "bandwidth": server.bandwidth().to_string(),
        "bandwidth_with_switches": server.bandwidth_with(switch_cost_ns).to_string(),
    })
}

fn in_json(args: &ServerArgs, tasks: &[Task], found: &Frontier) -> Value {
    let points = found.servers.iter().map(|server| point(server, args.switch_cost));
    json!({
        "version": VERSION, "policy": args.policy.to_possible_value().map(|value| value.get_name().to_string()),
        "utilisation": utilisation(tasks).to_string(), "switch_cost_ns": args.switch_cost,
        "frontier": points.collect::<Vec<_>>(), "best": point(&found.servers[found.best], args.switch_cost),
        "knee": found.knee.map(|knee| point(&found.servers[knee], args.switch_cost)),
    })
}

fn print_frontier(args: &ServerArgs, tasks: &[Task], found: &Frontier) {
    println!("{:>12}  {:>12}  {:>10}  {:>13}", "period", "budget", "bandwidth", "with switches");
    for (index, server) in found.servers.iter().enumerate() {
        let marks = [(Some(index) == found.knee, "  knee"), (index == found.best, "  best")];
        let marks: String = marks.iter().filter(|(marked, _)| *marked).map(|(_, mark)| *mark).collect();
        let (period, budget) = (show_time(server.period_ns), show_time(server.budget_ns));
        let with = percent(server.bandwidth_with(args.switch_cost));
        println!("{period:>12}  {budget:>12}  {:>10}  {with:>13}{marks}", percent(server.bandwidth()));
    }
    let (best, cost) = (&found.servers[found.best], show_time(args.switch_cost));
    let load = percent(utilisation(tasks));
    let best = format!("{} every {}", show_time(best.budget_ns), show_time(best.period_ns));
    println!("\nThe tasks need {load}. Best at {cost} per switch: {best}.");
}

fn figure(args: &ServerArgs, tasks: &[Task], found: &Frontier) -> Figure {
    let policy =
        args.policy.to_possible_value().map_or(String::new(), |value| value.get_name().to_uppercase());
    let load = utilisation(tasks);
    let title = format!(
        "Smallest reservation for {} tasks under {policy}, which need {} of a CPU",
        tasks.len(),
        percent(load.clone())
    );
    drawn(title, float(&load), found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_figure::draw::texts;
    use tierce_figure::Shape;

    #[test]
    fn words_do_not_stand_on_each_other() {
        let ms = 1_000_000;
        let player = [(1, 10), (2, 45), (4, 100), (3, 100), (7, 500), (25, 2000)];
        let player: Vec<_> = player.iter().map(|(work, period)| Task::new(work * ms, period * ms)).collect();
        let two =
            vec![Task { deadline_ns: 4 * ms, ..Task::new(3 * ms, 10 * ms) }, Task::new(2 * ms, 20 * ms)];
        for (tasks, policy) in
            [(&player, Policy::Rm), (&player, Policy::Edf), (&two, Policy::Dm), (&two, Policy::Edf)]
        {
            for periods in [usual_periods(tasks), vec![ms, 2 * ms, 4 * ms], vec![ms]] {
                let (plot, switch_cost) = (None, 5_000);
                let args =
                    ServerArgs { tasks: PathBuf::new(), policy, periods, switch_cost, json: false, plot };
                let found = frontier_of(policy.order(), tasks, &args.periods, switch_cost).unwrap();
                let drawn = figure(&args, tasks, &found);
                let computed: Vec<_> = found.servers.iter().map(drawing::point).collect();
                let curves = drawn.rows[0][0].series.iter().map(|series| &series.shape);
                assert!(curves.into_iter().any(|shape| *shape == Shape::Plain(computed.clone())));
                let texts = texts(&drawn.svg().unwrap()).unwrap();
                assert!(texts.iter().any(|(words, _)| words.starts_with("best")));
                for (at, (words, place)) in texts.iter().enumerate() {
                    for (other, there) in &texts[..at] {
                        assert!(!place.meets(there), "{words} and {other}");
                    }
                }
            }
        }
    }
}
