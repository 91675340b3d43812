//! `tierce-top`: what each part of a plan receives, live.

mod feed;
mod model;
mod screen;
#[cfg(test)]
mod tests;

use crate::commands::time;
use anyhow::Result;
use clap::{CommandFactory, Parser};
use feed::{Feed, Live, Recorded, Simulated};
use model::{Model, Press, View};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use screen::Look;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tierce_policy::{added, CPUS_MAX};
use tierce_scx::socket;
use tierce_trace::Snapshot;

/// Show what each part of a plan receives, anew every second: the plan in force (root), a simulation, or a trace
///
/// A row for each node, task and set, as the tree of the plan is: what it received in the last window, in % of a CPU and as a bar of its
/// budget; how often a promise was not kept, a budget was used up, a deadline was missed; and which CPU runs it. Threads without a
/// name in the plan are one row, or one each (`t`). `?` shows the keys.
#[derive(Parser)]
#[command(name = "tierce-top", bin_name = "tierce top", version, after_help = EXAMPLES)]
struct Args {
    /// A trace that is played back
    trace: Option<PathBuf>,
    /// A plan that is simulated, in slow motion
    #[arg(long, value_name = "PLAN", conflicts_with = "trace")]
    sim: Option<PathBuf>,
    /// How fast a simulation or a trace is shown [default: 0.1 of a simulation, 1 of a trace]
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed)]
    speed: Option<f64>,
    /// Time from one window to the next, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: u64,
    /// Write a line of JSON for each window instead. Simulations and traces then go as fast as they can
    #[arg(long)]
    json: bool,
    /// End after so many windows
    #[arg(long, value_name = "N")]
    times: Option<u64>,
    /// Threads that have no name in the plan are shown one by one, up to 1,000
    #[arg(long)]
    threads: bool,
    /// With --sim: how long
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = time::duration)]
    duration: u64,
    /// With --sim: seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// With --sim: CPUs of the machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(CPUS_MAX)))]
    cpus: u32,
    /// Socket of the plan in force [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tierce top                                          the plan in force
  tierce top --json --times 10 | jq .cpus             numbers for programs
  tierce top --sim examples/desktop.toml              a simulation at a tenth of the speed
  tierce top run.trace --speed 0.01                   a recorded run at a hundredth

Exit codes: 0 ended as requested; 2 no plan is in force, or bad input.";

fn parse_interval(text: &str) -> Result<u64, String> {
    match time::time(text)? {
        ns @ 100_000_000.. => Ok(ns),
        _ => Err("at least 100ms".into()),
    }
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    (1e-6..=1e3).contains(&speed).then_some(speed).ok_or_else(|| "from 0.000001 to 1000".into())
}

/// Its arguments.
pub fn command() -> clap::Command {
    Args::command()
}

/// The program `tierce-top`.
pub fn main() -> ExitCode {
    // `tierce top --json | head` ends when head has seen enough.
    // SAFETY: no other thread yet, and the default action is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let args = Args::parse();
    run(&args).unwrap_or_else(|error| {
        eprintln!("tierce: {error:#}");
        ExitCode::from(2)
    })
}

fn run(args: &Args) -> Result<ExitCode> {
    if let Some(folder) = std::env::var_os(added::VARIABLE).filter(|path| !path.is_empty()) {
        added::load(Path::new(&folder))?;
    }
    let step = |speed: f64| (args.interval as f64 * args.speed.unwrap_or(speed)).max(1.0) as u64;
    let mut feed: Box<dyn Feed> = match (&args.sim, &args.trace) {
        (Some(plan), _) => Box::new(Simulated::new(plan, args.cpus, args.seed, step(0.1), args.duration)?),
        (None, Some(trace)) => Box::new(Recorded::new(trace, step(1.0))?),
        (None, None) => Box::new(Live::open(&socket::path(args.socket.clone()))?),
    };
    let is_live = args.sim.is_none() && args.trace.is_none();
    match args.json {
        true => lines(args, feed.as_mut(), is_live)?,
        false => show(args, feed.as_mut())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A line of JSON for each window.
fn lines(args: &Args, feed: &mut dyn Feed, is_live: bool) -> Result<()> {
    let (mut last, mut left) = (Snapshot::default(), args.times.unwrap_or(u64::MAX));
    let interval = Duration::from_nanos(args.interval);
    let mut due = Instant::now();
    if is_live {
        last = feed.next(args.threads)?.unwrap_or_default();
    }
    while left > 0 {
        if is_live {
            due += interval;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let Some(now) = feed.next(args.threads)? else { break };
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &View::between(&last, &now))?;
        writeln!(out)?;
        out.flush()?;
        (last, left) = (now, left - 1);
    }
    Ok(())
}

/// On a terminal.
fn show(args: &Args, feed: &mut dyn Feed) -> Result<()> {
    let look = Look { color: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) };
    let mut model = Model::default();
    model.threads = args.threads;
    model.take(feed.next(model.threads)?.unwrap_or_default());
    let mut terminal = ratatui::try_init()?;
    let interval = Duration::from_nanos(args.interval);
    let (mut due, mut left) = (Instant::now() + interval, args.times.unwrap_or(u64::MAX));
    let done = loop {
        if let Err(error) = terminal.draw(|frame| screen::draw(frame, &model, look)) {
            break Err(error.into());
        }
        let pressed = match event::poll(due.saturating_duration_since(Instant::now())) {
            Ok(true) => event::read().map(|event| press(&event)),
            other => other.map(|_| None),
        };
        match pressed {
            Ok(Some(key)) => model.key(key),
            Ok(None) => {}
            Err(error) => break Err(error.into()),
        }
        if Instant::now() >= due {
            due = Instant::now() + interval;
            if !model.paused && !model.ended {
                match feed.next(model.threads) {
                    Ok(Some(snapshot)) => model.take(snapshot),
                    Ok(None) => model.ended = true,
                    Err(error) => break Err(error),
                }
                left -= 1;
            }
        }
        if model.quit || left == 0 {
            break Ok(());
        }
    };
    ratatui::restore();
    done
}

fn press(event: &Event) -> Option<Press> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else { return None };
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Press::Char('q'),
        KeyCode::Char(c) => Press::Char(*c),
        KeyCode::Enter => Press::Enter,
        KeyCode::Esc => Press::Esc,
        KeyCode::Backspace => Press::Back,
        KeyCode::Up => Press::Move(-1),
        KeyCode::Down => Press::Move(1),
        KeyCode::PageUp => Press::Move(-10),
        KeyCode::PageDown => Press::Move(10),
        KeyCode::Home => Press::Move(-100_000),
        KeyCode::End => Press::Move(100_000),
        _ => return None,
    })
}
