//! `tierce measure`: how far a schedule is from theory.

use super::time;
use super::trace::ENDED_EARLY;
use crate::picture::{self, Anchor, Colour, Part, Picture, Text};
use anyhow::{bail, Context, Result};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_scx::socket;
use tierce_terminal::{Reading, Stop};
use tierce_trace::measure::{rows, tables, to_json, Measure, Row};
use tierce_trace::units;

/// Measure jitters and overheads of jobs, from traces
///
/// Per job: reserve jitter (ResJ), release jitter (RelJ), context-switch jitter (CtswJ), and the time of interrupts (IntO) and of
/// decisions that changed nothing (RelO). MAXmax is the largest value of all tasks, AVGM the average of the task
/// that had it; MINmax is the smallest of the tasks' largest values, AVGm the average of its task.
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
    /// Draw the histograms, as .svg or .png
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

Ctrl-C ends the reading: what was read by then is measured.

Exit codes: 0 measured; 1 ended early; 2 bad input or environment.";

/// Run `tierce measure`.
pub fn run(args: Args) -> Result<ExitCode> {
    if let Some(path) = args.plot.as_ref().filter(|path| !picture::is_known(path)) {
        bail!("{}: a picture is .svg or .png", path.display());
    }
    if args.live {
        return live(args);
    }
    let stop = Stop::watch();
    let of: Vec<_> = args.traces.iter().map(|path| read(path, args.epoch, &stop)).collect::<Result<_>>()?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&to_json(&of))?);
    } else {
        print!("{}", tables(&of, args.tasks));
    }
    if let Some(path) = &args.plot {
        drawn(&rows(&of)).write(path)?;
    }
    Ok(ExitCode::from(u8::from(stop.asked())))
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
    let shown = path.display();
    let input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(Reading::stream(io::stdin().lock(), stop)),
        false => Box::new(Reading::file(File::open(path).with_context(|| shown.to_string())?, stop)),
    };
    let (measure, fault) = Measure::read(input, epoch_ns).with_context(|| shown.to_string())?;
    if stop.asked() {
        eprintln!("tierce: {shown}: {ENDED_EARLY}");
    } else if let Some(fault) = fault {
        eprintln!("tierce: {shown}: {fault}; only the records before it are used");
    }
    Ok(measure)
}

// ---- histograms as a picture ---------------------------------------------------------------------------------------

const WIDTH: f32 = 720.0;
const PANEL: f32 = 150.0;
const LEFT: f32 = 70.0;
const RIGHT: f32 = 24.0;
const INK: Colour = [0x2b, 0x32, 0x3d];
const GRID: Colour = [0xe2, 0xe6, 0xec];
const BAR: Colour = [0x2f, 0x6f, 0xb5];

/// Bars per doubling.
const BARS: f32 = 8.0;

/// Where a time is on the axis, in doublings; 0 ns is beside 1 ns.
fn doublings(ns: u64) -> f32 {
    if ns == 0 {
        -1.0
    } else {
        (ns as f64).log2() as f32
    }
}

/// A panel per quantity that has values: time to the right, how many upwards, both logarithmic.
fn drawn(rows: &[Row]) -> Picture {
    let rows: Vec<_> = rows.iter().filter(|row| row.all.summary().count > 0).collect();
    let text = |at: (f32, f32), size: f32, anchor: Anchor, words: String| {
        Part::Text(Text { at, size, anchor, colour: INK, turned: false, words })
    };
    let line = |from: (f32, f32), to: (f32, f32)| Part::Line {
        points: vec![from, to],
        width: 1.0,
        colour: GRID,
        dashed: false,
    };
    let least = rows.iter().map(|row| doublings(row.all.summary().min).floor()).fold(f32::MAX, f32::min);
    let most = rows.iter().map(|row| doublings(row.all.summary().max).floor() + 1.0).fold(0.0, f32::max);
    let x = |at: f32| LEFT + (at - least) / (most - least).max(1.0) * (WIDTH - LEFT - RIGHT);
    let mut parts = Vec::new();
    for (panel, row) in rows.iter().enumerate() {
        let (top, floor) = (panel as f32 * PANEL + 34.0, panel as f32 * PANEL + PANEL - 22.0);
        let mut bars: Vec<(f32, u64)> = Vec::new();
        for (from, _, count) in row.all.buckets() {
            let at = (doublings(from) * BARS).floor() / BARS;
            match bars.last_mut().filter(|bar| bar.0 == at) {
                Some(bar) => bar.1 += count,
                None => bars.push((at, count)),
            }
        }
        let highest = bars.iter().map(|bar| bar.1).max().unwrap_or(1) as f32;
        let y = |count: f32| floor - (1.0 + count.log10()) / (1.0 + highest.log10()) * (floor - top);
        for (power, count) in (0..=highest.log10() as u32).map(|power| (power, 10f32.powi(power as i32))) {
            parts.push(line((LEFT, y(count)), (WIDTH - RIGHT, y(count))));
            if power % 2 == 0 {
                parts.push(text((LEFT - 6.0, y(count) + 3.0), 10.0, Anchor::End, format!("{count}")));
            }
        }
        for (begin, ns) in [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
            .map(|ns| (doublings(ns), ns))
            .into_iter()
            .filter(|(begin, _)| (least..=most).contains(begin))
        {
            parts.push(line((x(begin), top), (x(begin), floor)));
            parts.push(text((x(begin), floor + 13.0), 10.0, Anchor::Middle, units::time(ns)));
        }
        for (begin, count) in bars {
            let (left, right, high) = (x(begin), x(begin + 1.0 / BARS), y(count as f32));
            let points = vec![(left, floor), (left, high), (right - 0.5, high), (right - 0.5, floor)];
            parts.push(Part::Area { points, colour: BAR });
        }
        let words = format!("{}: {}", row.quantity.name(), row.quantity.meaning());
        parts.push(text((LEFT, top - 10.0), 13.0, Anchor::Start, words));
    }
    Picture { width: WIDTH, height: (rows.len() as f32 * PANEL).max(PANEL), parts }
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
        assert_eq!(picture.height, 2.0 * PANEL);
        let svg = picture.to_svg();
        assert!(
            svg.contains("RelJ: release jitter") && svg.contains("IntO") && !svg.contains("ResJ"),
            "{svg}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!drawn(&[]).to_svg().contains("NaN"));
    }
}
