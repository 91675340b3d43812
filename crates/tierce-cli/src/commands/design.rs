//! `tierce design`: numbers for a plan that are not there yet.

use super::analyse::{read, time};
use anyhow::{bail, Context, Result};
use clap::{Subcommand, ValueEnum};
use serde_json::{json, Value};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_analysis::server::{frontier, usual_periods, Frontier, Server};
use tierce_analysis::{priorities, utilisation, Edf, FixedPriority, Supply, Task};
use tierce_guarantee::Exact;
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Find numbers for a plan
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Server(ServerArgs),
}

const EXAMPLES: &str = "\
Examples:
  tierce design server --policy rm tasks.csv
  tierce design server --policy edf --periods 1ms,2ms,5ms --switch-cost 20us tasks.csv
  tierce design server --policy rm --plot frontier.svg tasks.csv

Exit codes: 0 found, 1 the tasks do not meet their deadlines on a whole CPU either, 2 bad input.";

/// Find the smallest reservation in which a set of tasks meets its deadlines
///
/// For each period the smallest budget in whole ns that the exact test accepts, wherever in the period it comes. Short
/// periods need little more than the tasks' utilisation but switch often; long ones eat the slack of the shortest deadline.
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
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', value_parser = period)]
    periods: Vec<u64>,
    /// What it costs to begin a budget
    #[arg(long, value_name = "TIME", default_value = "5us", value_parser = time)]
    switch_cost: u64,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    json: bool,
    /// Draw the frontier
    #[arg(long, value_name = "FILE.svg")]
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

/// A time above 0.
fn period(text: &str) -> Result<u64, String> {
    let ns = time(text)?;
    if ns == 0 {
        return Err("time_must_be_positive: a period is above 0".to_string());
    }
    Ok(ns)
}

/// Run `tierce design`.
pub fn run(args: Args) -> Result<ExitCode> {
    let What::Server(args) = args.what;
    if let Some(path) = &args.plot {
        if path.extension().is_none_or(|extension| extension != "svg") {
            bail!("plot_is_svg: {} does not end in .svg", path.display());
        }
    }
    let tasks: Vec<_> = read(&args.tasks)?.iter().map(|entry| entry.task).collect();
    let mut periods = if args.periods.is_empty() { usual_periods(&tasks) } else { args.periods.clone() };
    periods.sort_unstable();
    periods.dedup();
    let Some(found) = design(args.policy, &tasks, &periods, args.switch_cost) else {
        if args.json {
            println!(
                "{}",
                serde_json::to_string_pretty(&json!({ "version": VERSION, "frontier": [], "best": null }))?
            );
        } else {
            println!("The tasks do not meet their deadlines on a whole CPU either: see `tierce analyse`.");
        }
        return Ok(ExitCode::from(1));
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&in_json(&args, &tasks, &found))?);
    } else {
        print_frontier(&args, &tasks, &found);
    }
    if let Some(path) = &args.plot {
        let text = picture(&args, &tasks, &found);
        std::fs::write(path, text).with_context(|| format!("{}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn design(policy: Policy, tasks: &[Task], periods: &[u64], switch_cost_ns: u64) -> Option<Frontier> {
    let order = match policy {
        Policy::Rm => priorities::rate_monotonic(tasks),
        _ => priorities::deadline_monotonic(tasks),
    };
    let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    let (mut fixed, mut edf) = (FixedPriority::new(), Edf::new());
    let holds = |supply: &Supply| match policy {
        Policy::Edf => edf.schedulable(&ordered, supply),
        _ => fixed.schedulable(&ordered, supply),
    };
    frontier(tasks, periods, switch_cost_ns, holds)
}

/// For the eye only.
fn float(share: &Exact) -> f64 {
    let scaled = (share * num_bigint::BigInt::from(1_000_000_000)).round().to_integer();
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
        let percent = |share: Exact| format!("{:.3} %", float(&share) * 100.0);
        let marks = [(Some(index) == found.knee, "  knee"), (index == found.best, "  best")];
        let marks: String = marks.iter().filter(|(marked, _)| *marked).map(|(_, mark)| *mark).collect();
        let (period, budget) = (show_time(server.period_ns), show_time(server.budget_ns));
        let with = percent(server.bandwidth_with(args.switch_cost));
        println!("{period:>12}  {budget:>12}  {:>10}  {with:>13}{marks}", percent(server.bandwidth()));
    }
    let (best, cost) = (&found.servers[found.best], show_time(args.switch_cost));
    let load = float(&utilisation(tasks)) * 100.0;
    let best = format!("{} every {}", show_time(best.budget_ns), show_time(best.period_ns));
    println!("\nThe tasks need {load:.3} %. Best at {cost} per switch: {best}.");
}

// The picture.

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 54.0;

/// About five round steps up to `most`.
fn steps(most: f64) -> (f64, u32) {
    let rough = most / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    (step, (most / step * 1.000001) as u32)
}

/// Period to the right, budget upwards; shaded where the budget is not enough.
fn picture(args: &ServerArgs, tasks: &[Task], found: &Frontier) -> String {
    let last = found.servers.iter().map(|server| server.period_ns).max().unwrap_or(1) as f64 / 1e6;
    let most = found.servers.iter().map(|server| server.budget_ns).max().unwrap_or(1) as f64 / 1e6 * 1.08;
    let x = |ms: f64| LEFT + ms / last * (WIDTH - LEFT - RIGHT);
    let y = |ms: f64| HEIGHT - BOTTOM - ms / most * (HEIGHT - TOP - BOTTOM);
    let at = |server: &Server| (x(server.period_ns as f64 / 1e6), y(server.budget_ns as f64 / 1e6));
    let points: String = found.servers.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
    let points = points.trim_end();
    let load = float(&utilisation(tasks));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    let policy =
        args.policy.to_possible_value().map_or(String::new(), |value| value.get_name().to_uppercase());
    let title = format!(
        "Smallest reservation for {} tasks under {policy}, {:.2} % of a CPU",
        tasks.len(),
        load * 100.0
    );
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"26\" font-size=\"15\">{title}</text>");
    let (step, count) = steps(last);
    for tick in 0..=count {
        let (at, value) = (x(step * f64::from(tick)), trimmed(step * f64::from(tick)));
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#e4e4e4\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0
        );
    }
    let (step, count) = steps(most);
    for tick in 0..=count {
        let (at, value) = (y(step * f64::from(tick)), trimmed(step * f64::from(tick)));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#e4e4e4\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        );
    }
    let (first, end) = (found.servers.first().map_or(0.0, |server| at(server).0), x(last));
    let floor = y(0.0);
    let _ = writeln!(
        svg,
        "<polygon points=\"{first:.1},{floor:.1} {points} {end:.1},{floor:.1}\" fill=\"#d9dee8\" fill-opacity=\"0.8\"/>"
    );
    let _ =
        writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"#1f4e9c\" stroke-width=\"2\"/>");
    let line = (x(last.min(most / load)), y(load * last.min(most / load)));
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {floor:.1}L{:.1} {:.1}\" stroke=\"#b3541e\" stroke-dasharray=\"5 4\"/>",
        x(0.0),
        line.0,
        line.1
    );
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#b3541e\">the tasks' utilisation</text>",
        line.0 - 4.0,
        line.1 - 10.0
    );
    let knee = found.knee.filter(|knee| *knee != found.best);
    let marks = [(Some(found.best), "best", -34.0), (knee, "knee", -12.0)];
    for (name, server, up) in
        marks.iter().filter_map(|(index, name, up)| Some((name, &found.servers[(*index)?], up)))
    {
        let (cx, cy) = at(server);
        let text = format!("{name}: {} / {}", show_time(server.budget_ns), show_time(server.period_ns));
        let (anchor, beside) = if cx < LEFT + 200.0 { ("start", LEFT + 12.0) } else { ("end", cx - 8.0) };
        let _ = writeln!(
            svg,
            "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4.5\" fill=\"#1f4e9c\"/>\
             <text x=\"{beside:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>",
            cy + up
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">period (ms)</text>\
         <text transform=\"translate(20 {:.1}) rotate(-90)\" text-anchor=\"middle\">budget (ms)</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 14.0,
        (TOP + HEIGHT - BOTTOM) / 2.0
    );
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5a6475\">not enough</text>\n</svg>",
        x(last) - 10.0,
        floor - 10.0
    );
    svg
}

/// Without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
