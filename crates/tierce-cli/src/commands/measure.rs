//! `tierce measure`: how far a schedule is from theory, how long chains take, and how jobs arrive.

mod arrivals;
mod chains;
mod input;

use super::{picture, time};
use anyhow::{bail, Context, Result};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_figure::{Axis, Block, Figure, Look, Panel, Scale, Shape, Tick};
use tierce_scx::socket;
use tierce_terminal::Stop;
use tierce_trace::measure::{rows, tables, to_json, Measure, Row};
use tierce_trace::units;

/// Measure jitters and overheads of jobs, how long chains take, or how jobs arrive, from traces
///
/// Per job: reserve jitter (ResJ), release jitter (RelJ), context-switch jitter (CtswJ), and the time of interrupts (IntO) and of
/// decisions that changed nothing (RelO). MAXmax is the largest value of all tasks, AVGM the average of the task
/// that had it; MINmax is the smallest of the tasks' largest values, AVGm the average of its task.
///
/// With --chain instead: response, reaction time and data age of chains of tasks, beside their bounds and needs (docs/chains.md).
///
/// With --arrivals instead: the least distances and the most work of jobs in a row, and a `load` of a plan with them (docs/bursts.md).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files of `tierce sim --trace` or `tierce run --trace`; `-` is standard input
    #[arg(required_unless_present = "live")]
    traces: Vec<PathBuf>,
    /// Ask the plan in force instead, which was started with `tierce run --measure`
    #[arg(long, conflicts_with_all = ["traces", "plot", "epoch", "tasks"])]
    live: bool,
    /// For a measured trace: time since boot at which the releases of periodic jobs begin (`tierce job --epoch`)
    #[arg(long, value_name = "TIME", value_parser = time::time)]
    epoch: Option<u64>,
    /// Also show the numbers of each task
    #[arg(long)]
    tasks: bool,
    /// Write the result as JSON, with histograms
    #[arg(long)]
    json: bool,
    /// Instead, measure the chains of the plan, or this one
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with_all = ["live", "tasks", "plot"])]
    chain: Option<Option<String>>,
    /// With --chain: take the chains and their bounds from this plan, if the trace has none or others
    #[arg(long, value_name = "PLAN", requires = "chain")]
    plan: Option<PathBuf>,
    /// Instead, measure how the jobs of all tasks arrive, or of this one
    #[arg(long, value_name = "TASK", num_args = 0..=1, conflicts_with_all = ["live", "tasks", "plot", "chain", "epoch"])]
    arrivals: Option<Option<String>>,
    /// With --arrivals: up to so many jobs in a row
    #[arg(long, value_name = "COUNT", requires = "arrivals", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Draw the histograms, as .svg, .pdf or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Socket of the plan in force [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH", requires = "live")]
    socket: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tierce sim examples/edf.toml --for 10s --trace edf.trace && tierce measure edf.trace
  tierce run plan.toml --for 10s --trace run.trace && tierce measure --epoch 0ns run.trace
  tierce measure --tasks --plot jitter.png a.trace b.trace
  tierce measure --live
  tierce measure run.trace --chain
  tierce measure run.trace --chain see --plan plan.toml
  tierce measure run.trace --arrivals --jobs 16

Ctrl-C ends the reading: what was read by then is measured.

Exit codes: 0 measured; 1 ended early, or a chain took longer than its bound or needs, or nothing came through it; 2 bad input or environment.";

/// Run `tierce measure`.
pub fn run(args: Args) -> Result<ExitCode> {
    picture::check(args.plot.as_deref())?;
    if args.live {
        return live(args);
    }
    if let Some(name) = &args.arrivals {
        let trace = only(&args.traces, "arrivals_are_of_one_trace")?;
        let (name, jobs) = (name.as_deref(), usize::from(args.jobs));
        return arrivals::run(&arrivals::Asked { trace, name, jobs, json: args.json });
    }
    if let Some(name) = &args.chain {
        let trace = only(&args.traces, "chain_is_of_one_trace")?;
        let (name, plan) = (name.as_deref(), args.plan.as_deref());
        return chains::run(&chains::Asked { trace, name, plan, epoch_ns: args.epoch, json: args.json });
    }
    let stop = Stop::watch();
    let of: Vec<_> = args.traces.iter().map(|path| read(path, args.epoch, &stop)).collect::<Result<_>>()?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&to_json(&of))?);
    } else {
        print!("{}", tables(&of, args.tasks));
    }
    if let Some(path) = &args.plot {
        picture::write(&drawn(&rows(&of)), path)?;
    }
    Ok(ExitCode::from(u8::from(stop.asked())))
}

/// The only trace; `rule`: of what there is no more than one.
fn only<'a>(traces: &'a [PathBuf], rule: &str) -> Result<&'a Path> {
    match traces {
        [trace] => Ok(trace),
        _ => bail!("{rule}: {} traces, bound 1", traces.len()),
    }
}

fn live(args: Args) -> Result<ExitCode> {
    match socket::ask(&socket::path(args.socket), json!({ "request": "measure" }))? {
        Ok(answer) if args.json => println!("{}", serde_json::to_string_pretty(&answer["measure"])?),
        Ok(answer) => print!(
            "{}",
            answer["text"]
                .as_str()
                .context("the answer has an unknown format; are `tierce` and the run of the same version?")?
        ),
        Err((_, message)) => bail!("{message}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path, epoch_ns: Option<u64>, stop: &Stop) -> Result<Measure> {
    let shown = || path.display().to_string();
    let (measure, fault) = Measure::read(input::open(path, stop)?, epoch_ns).with_context(shown)?;
    input::tell(path, fault, stop);
    Ok(measure)
}

// ---- histograms as a figure -----------------------------------------------------------------------------------------

/// Bars per doubling.
const BARS: f64 = 8.0;

/// Where a time is on the axis, in doublings; 0 ns is beside 1 ns.
fn doublings(ns: u64) -> f64 {
    if ns == 0 {
        -1.0
    } else {
        (ns as f64).log2()
    }
}

/// A panel per quantity that has values: time to the right, how many upwards, both logarithmic.
fn drawn(rows: &[Row]) -> Figure {
    let rows: Vec<_> = rows.iter().filter(|row| row.all.summary().count > 0).collect();
    let least = rows.iter().map(|row| doublings(row.all.summary().min).floor()).fold(63.0, f64::min);
    let most =
        rows.iter().map(|row| doublings(row.all.summary().max).floor() + 1.0).fold(least + 1.0, f64::max);
    let ticks = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000]
        .map(|ns| Tick { at: doublings(ns), words: units::time(ns) });
    let ticks: Vec<_> = ticks.into_iter().filter(|tick| (least..=most).contains(&tick.at)).collect();
    let x = Axis { label: String::new(), scale: Scale::Linear, from: least, to: most, ticks, grid: true };
    let mut panels: Vec<_> = rows.iter().map(|row| panel(row, &x)).collect();
    if panels.is_empty() {
        panels.push(Panel::new(100.0, x, Axis::log("count", &[1.0, 10.0])).titled("no values"));
    }
    Figure::stack("", panels)
}

fn panel(row: &Row, x: &Axis) -> Panel {
    let mut bars: Vec<(f64, u64)> = Vec::new();
    for (from, _, count) in row.all.buckets() {
        let at = (doublings(from) * BARS).floor() / BARS;
        match bars.last_mut().filter(|bar| bar.0 == at) {
            Some(bar) => bar.1 += count,
            None => bars.push((at, count)),
        }
    }
    let highest = bars.iter().map(|bar| bar.1).max().unwrap_or(1) as f64;
    let powers = (0..=19).map(|power| 10f64.powi(power)).take_while(|count| *count <= highest);
    let ticks = powers.step_by(if highest > 1e4 { 2 } else { 1 }).map(Tick::number).collect();
    // One of a kind is seen, too: the axis begins below 1.
    let y =
        Axis { label: "count".into(), scale: Scale::Log, from: 0.5, to: highest * 1.2, ticks, grid: true };
    let blocks =
        bars.into_iter().map(|(begin, count)| Block::new([begin, begin + 1.0 / BARS], [0.5, count as f64]));
    let words = format!("{}: {}", row.quantity.name(), row.quantity.meaning());
    Panel::new(100.0, x.clone(), y).titled(words).with("", Look::Number(0), Shape::Boxes(blocks.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_trace::measure::Quantity;
    use tierce_trace::Histogram;

    #[test]
    fn a_panel_for_each_that_has_values() {
        let mut all = Histogram::default();
        [0, 1, 900, 1_000, 1_001, u64::MAX].into_iter().for_each(|ns| all.record(ns));
        let row = |quantity, all: &Histogram| Row { quantity, worst: None, all: all.clone() };
        let picture = drawn(&[
            row(Quantity::ResJ, &Histogram::default()),
            row(Quantity::RelJ, &all),
            row(Quantity::IntO, &all),
        ]);
        assert_eq!(picture.rows.len(), 2);
        let svg = picture.svg().unwrap();
        assert!(
            svg.contains("RelJ: release jitter") && svg.contains("IntO") && !svg.contains("ResJ"),
            "{svg}"
        );
        // Six values: one, one, three that are close to each other, one.
        let Shape::Boxes(bars) = &picture.rows[0][0].series[0].shape else { panic!("bars") };
        assert_eq!(bars.iter().map(|bar| bar.y[1]).collect::<Vec<_>>(), [1.0, 1.0, 1.0, 2.0, 1.0]);
        assert!(drawn(&[]).svg().unwrap().contains("no values"));
    }
}
