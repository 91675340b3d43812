//! `tierce design`: numbers for a plan that are not there yet.

use super::analyse::{read, time, time_within};
use crate::picture::{self, Anchor, Colour, Part, Picture, Rect, Text};
use anyhow::{bail, Result};
use clap::{Subcommand, ValueEnum};
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_analysis::server::{frontier, usual_periods, Frontier, Server};
use tierce_analysis::{priorities, utilisation, Edf, FixedPriority, Supply, Task};
use tierce_guarantee::{whole, Exact};
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Design a server (reservation) for a set of tasks
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
    /// Draw the frontier: as SVG or PNG, by the ending of the name
    #[arg(long, value_name = "FILE.svg|FILE.png")]
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
    let ns = time_within(text, "above 0")?;
    if ns == 0 {
        return Err(format!("time_must_be_positive: a period is a time: {text}, bound above 0"));
    }
    Ok(ns)
}

/// Run `tierce design`.
pub fn run(args: Args) -> Result<ExitCode> {
    let What::Server(args) = args.what;
    if let Some(path) = &args.plot {
        if !picture::is_known(path) {
            bail!("plot_is_svg_or_png: a picture is SVG or PNG: {}, bound .svg or .png", path.display());
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
        drawn(&args, &tasks, &found).write(path)?;
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

// The picture.

const WIDTH: f32 = 720.0;
const HEIGHT: f32 = 440.0;
const LEFT: f32 = 74.0;
const RIGHT: f32 = 24.0;
const TOP: f32 = 46.0;
const BOTTOM: f32 = 54.0;

const INK: Colour = [0x33, 0x33, 0x33];
const GRID: Colour = [0xe4, 0xe4, 0xe4];
const CURVE: Colour = [0x1f, 0x4e, 0x9c];
const SHADE: Colour = [0xe1, 0xe5, 0xed];
const LOAD: Colour = [0xb3, 0x54, 0x1e];

/// About five round steps up to `most`.
fn steps(most: f64) -> (f64, u32) {
    let rough = most / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    (step, (most / step * 1.000001) as u32)
}

/// Period to the right, budget upwards; shaded where the budget is not enough.
fn drawn(args: &ServerArgs, tasks: &[Task], found: &Frontier) -> Picture {
    let ms = |ns: u64| ns as f64 / 1e6;
    let last = found.servers.iter().map(|server| server.period_ns).max().map_or(1.0, ms);
    let most = found.servers.iter().map(|server| server.budget_ns).max().map_or(1.0, ms) * 1.08;
    let x = |ms: f64| LEFT + (ms / last) as f32 * (WIDTH - LEFT - RIGHT);
    let y = |ms: f64| HEIGHT - BOTTOM - (ms / most) as f32 * (HEIGHT - TOP - BOTTOM);
    let at = |server: &Server| (x(ms(server.period_ns)), y(ms(server.budget_ns)));
    let text = |at: (f32, f32), size: f32, anchor: Anchor, colour: Colour, words: String| Text {
        at,
        size,
        anchor,
        colour,
        turned: false,
        words,
    };
    let line = |points: Vec<(f32, f32)>, width: f32, colour: Colour, dashed: bool| Part::Line {
        points,
        width,
        colour,
        dashed,
    };
    let mut parts = Vec::new();

    let (floor, right) = (y(0.0), WIDTH - RIGHT);
    let curve: Vec<_> = found.servers.iter().map(at).collect();
    let (first, end) =
        (curve.first().map_or(LEFT, |point| point.0), curve.last().map_or(right, |point| point.0));
    let shade = [(first, floor)].into_iter().chain(curve.iter().copied()).chain([(end, floor)]).collect();
    parts.push(Part::Area { points: shade, colour: SHADE });
    let (step, count) = steps(last);
    for tick in 0..=count {
        let value = step * f64::from(tick);
        parts.push(line(vec![(x(value), TOP), (x(value), floor)], 1.0, GRID, false));
        let words = trimmed(value);
        parts.push(Part::Text(text((x(value), floor + 18.0), 12.0, Anchor::Middle, INK, words)));
    }
    let (step, count) = steps(most);
    for tick in 0..=count {
        let value = step * f64::from(tick);
        parts.push(line(vec![(LEFT, y(value)), (right, y(value))], 1.0, GRID, false));
        parts.push(Part::Text(text((LEFT - 8.0, y(value) + 4.0), 12.0, Anchor::End, INK, trimmed(value))));
    }
    let load = float(&utilisation(tasks));
    let until = last.min(most / load);
    let (begin, tip) = ((x(0.0), floor), (x(until), y(load * until)));
    parts.push(line(vec![begin, tip], 1.0, LOAD, true));
    parts.push(line(curve.clone(), 2.0, CURVE, false));

    let policy =
        args.policy.to_possible_value().map_or(String::new(), |value| value.get_name().to_uppercase());
    let title = format!(
        "Smallest reservation for {} tasks under {policy}, which need {} of a CPU",
        tasks.len(),
        percent(utilisation(tasks))
    );
    parts.push(Part::Text(text((LEFT, 26.0), 15.0, Anchor::Start, INK, title)));
    let middle = ((LEFT + right) / 2.0, HEIGHT - 14.0);
    parts.push(Part::Text(text(middle, 12.0, Anchor::Middle, INK, "period (ms)".into())));
    let budget = text((22.0, (TOP + floor) / 2.0), 12.0, Anchor::Middle, INK, "budget (ms)".into());
    parts.push(Part::Text(Text { turned: true, ..budget }));

    // Words within the plot go where nothing else is.
    let mut free = Free { inside: Rect { left: LEFT, top: TOP, right, bottom: floor }, taken: Vec::new() };
    free.line(&curve);
    free.line(&[begin, tip]);
    let same = found.knee == Some(found.best);
    let knee = found.knee.filter(|_| !same);
    let marks = [(if same { "best and knee" } else { "best" }, Some(found.best)), ("knee", knee)];
    let marks: Vec<_> =
        marks.iter().filter_map(|(name, index)| Some((*name, &found.servers[(*index)?]))).collect();
    for (_, server) in &marks {
        let (at, radius) = (at(server), 4.5);
        let (left, right, top, bottom) = (at.0 - 6.0, at.0 + 6.0, at.1 - 6.0, at.1 + 6.0);
        free.taken.push(Rect { left, top, right, bottom });
        parts.push(Part::Dot { at, radius, colour: CURVE });
    }
    for (name, server) in marks {
        let words = format!("{name}: {} / {}", show_time(server.budget_ns), show_time(server.period_ns));
        let label = free.place(text(at(server), 12.0, Anchor::Start, INK, words), true);
        // From the words to their dot, where they are not beside it.
        let (place, dot) = (label.place(), at(server));
        let near = (dot.0.clamp(place.left, place.right), dot.1.clamp(place.top, place.bottom));
        if (near.0 - dot.0).hypot(near.1 - dot.1) > 14.0 {
            parts.push(line(vec![near, dot], 0.8, CURVE, false));
        }
        parts.push(Part::Text(label));
    }
    let along = (x(until * 0.8), y(load * until * 0.8));
    let load = text(along, 12.0, Anchor::Start, LOAD, "the tasks' utilisation".into());
    parts.push(Part::Text(free.place(load, false)));
    let corner =
        text((right - 10.0, floor - 10.0), 12.0, Anchor::End, [0x5a, 0x64, 0x75], "not enough".into());
    if !free.taken.iter().any(|taken| taken.meets(&corner.place())) {
        parts.push(Part::Text(corner));
    }
    Picture { width: WIDTH, height: HEIGHT, parts }
}

/// Where there is room for words.
struct Free {
    inside: Rect,
    taken: Vec<Rect>,
}

impl Free {
    /// Nothing may stand on a line: small pieces of it are taken.
    fn line(&mut self, points: &[(f32, f32)]) {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let pieces = ((x2 - x1).hypot(y2 - y1) / 4.0).ceil().max(1.0);
            for piece in 0..=(pieces as u32) {
                let part = piece as f32 / pieces;
                let (x, y) = (x1 + (x2 - x1) * part, y1 + (y2 - y1) * part);
                self.taken.push(Rect { left: x - 2.0, top: y - 2.0, right: x + 2.0, bottom: y + 2.0 });
            }
        }
    }

    /// The text around its place, on that side (above and left, or below and right) and as near as there is room; where there is
    /// none, on as little as possible.
    fn place(&mut self, text: Text, above: bool) -> Text {
        const TURNS: u32 = 24;
        // From above to the left and on; or from below to the right and on.
        let begin = if above { 0.25 } else { 0.75 };
        let ring = |turns: std::ops::Range<u32>| {
            (1..=12).flat_map(move |ring| turns.clone().map(move |turn| (ring, turn)))
        };
        let moved = ring(0..TURNS / 2).chain(ring(TURNS / 2..TURNS)).map(|(ring, turn)| {
            let angle = (turn as f32 / TURNS as f32 + begin) * std::f32::consts::TAU;
            let reach = 6.0 + ring as f32 * 12.0;
            let (right, up) = (angle.cos() * reach, angle.sin() * reach);
            let anchor = match right {
                right if right > 4.0 => Anchor::Start,
                right if right < -4.0 => Anchor::End,
                _ => Anchor::Middle,
            };
            let at = (text.at.0 + right, text.at.1 - up + text.size * 0.3);
            Text { at, anchor, ..text.clone() }
        });
        let inside: Vec<_> = moved.filter(|text| self.inside.holds(&text.place())).collect();
        let covered = |text: &Text| {
            let place = text.place();
            self.taken.iter().filter(|taken| taken.meets(&place)).count()
        };
        let found = inside.iter().min_by_key(|text| covered(text)).cloned().unwrap_or(text);
        let Rect { left, top, right, bottom } = found.place();
        self.taken.push(Rect { left: left - 4.0, top: top - 4.0, right: right + 4.0, bottom: bottom + 4.0 });
        found
    }
}

/// Without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
                let found = design(policy, tasks, &args.periods, switch_cost).unwrap();
                let parts = drawn(&args, tasks, &found).parts;
                let texts: Vec<_> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Part::Text(text) if !text.turned => Some(text),
                        _ => None,
                    })
                    .collect();
                assert!(texts.iter().any(|text| text.words.starts_with("best")));
                for (at, text) in texts.iter().enumerate() {
                    for other in &texts[..at] {
                        assert!(!text.place().meets(&other.place()), "{} and {}", text.words, other.words);
                    }
                }
            }
        }
    }
}
