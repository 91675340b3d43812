//! `tierce trace`: traces as numbers and as text.

use anyhow::Context;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_terminal::{Reading, Stop};
use tierce_trace::promise::Unkept;
use tierce_trace::waits::Lock;
use tierce_trace::SCHEDULER;
use tierce_trace::{
    units, ChainReport, Chains, Event, Kind, Reader, Report, Seen, Stats, Trace, TraceHeader, NO_DEADLINE,
};

/// Read a trace: statistics, or every record as a line.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Show jobs, misses and response times of each task, supply per period and throttles of each node, and use of each CPU.
    Stats {
        /// A file of `tierce sim --trace` or `tierce run --trace`.
        trace: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print each record as a line: time, CPU, kind, and its content.
    Dump {
        /// A file of `tierce sim --trace` or `tierce run --trace`.
        trace: PathBuf,
        /// As JSON, one record per line, the header first.
        #[arg(long)]
        json: bool,
    },
}

/// Print what was asked for.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (stop, mut out) = (Stop::watch(), BufWriter::new(io::stdout().lock()));
    let done = match args.what {
        What::Stats { trace, json } => stats(&trace, json, &stop, &mut out),
        What::Dump { trace, json } => dump(&trace, json, &stop, &mut out),
    };
    match done.and_then(|()| Ok(out.flush()?)) {
        // The reader of a pipe may have seen enough.
        Err(error)
            if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe) => {}
        other => other?,
    }
    Ok(ExitCode::from(u8::from(stop.asked())))
}

/// A whole trace. One that is cut off or damaged is used up to that place, with a warning, and so is one whose reading `stop` ends.
pub fn load(path: &Path, stop: &Stop) -> anyhow::Result<Trace> {
    let input = Reading::file(open(path)?, stop);
    let (trace, fault) = Trace::read(input).with_context(|| path.display().to_string())?;
    if stop.asked() {
        eprintln!("tierce: {}: {ENDED_EARLY}", path.display());
    } else if let Some(fault) = fault {
        eprintln!("tierce: {}: {fault}; only the records before it are used", path.display());
    }
    Ok(trace)
}

/// What is said of a file that was not read to its end.
pub const ENDED_EARLY: &str = "ended early: only the records that were read by then are used";

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| path.display().to_string())
}

fn stats(path: &Path, json: bool, stop: &Stop, out: &mut impl Write) -> anyhow::Result<()> {
    let trace = load(path, stop)?;
    let mut stats = Stats::new(&trace.header);
    trace.events.iter().for_each(|event| stats.event(event));
    stats.finish(trace.end_ns());
    let chains = chains_of(&trace);
    let report = Report { chains, ..stats.report() };
    if json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", report.tables())?;
    }
    Ok(())
}

/// How long the chains of the plan took.
fn chains_of(trace: &Trace) -> Vec<ChainReport> {
    let mut chains = Chains::new(&trace.header, trace.header.chains.clone(), None);
    trace.events.iter().for_each(|event| chains.seen(&Seen::Event(*event)));
    chains.report()
}

fn dump(path: &Path, json: bool, stop: &Stop, out: &mut impl Write) -> anyhow::Result<()> {
    let reader =
        Reader::new(Reading::stream(open(path)?, stop)).with_context(|| path.display().to_string())?;
    let header = reader.header().clone();
    if json {
        writeln!(out, "{}", serde_json::to_string(&header)?)?;
    }
    for event in reader {
        let event = match event {
            Ok(event) => event,
            Err(_) if stop.asked() => break,
            Err(fault) => anyhow::bail!("{}: {fault}", path.display()),
        };
        let line = if json { json_line(&event) } else { text_line(&header, &event) };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn json_line(event: &Event) -> String {
    let Event { now_ns, cpu, a, b, value, .. } = *event;
    let kind = event.kind().map_or_else(|| event.kind.to_string(), |kind| kind.name().to_string());
    let mut line =
        serde_json::json!({ "now_ns": now_ns, "cpu": cpu, "kind": kind, "a": a, "b": b, "value": value });
    if event.kind() == Some(Kind::Name) {
        line["text"] = event.text().into();
    }
    if event.kind() == Some(Kind::Mark) {
        line["text"] = event.label().into();
    }
    line.to_string()
}

/// `enum tierce_why`.
const WHYS: [&str; 9] =
    ["woke", "restored", "moved", "blocked", "spent", "no room", "closed", "outranked", "gone"];

fn text_line(header: &TraceHeader, event: &Event) -> String {
    let Event { now_ns, cpu, a, b, value, .. } = *event;
    let thing = |id: u32| header.name(id).map_or_else(|| format!("#{id}"), str::to_string);
    let edge = |id: u32| match header.edges.iter().find(|edge| edge.id == id) {
        Some(edge) => format!("{} > {}", edge.parent_name, edge.child_name),
        None => format!("edge {id}"),
    };
    let why = |why: u32| WHYS.get(why as usize).map_or_else(|| why.to_string(), |why| why.to_string());
    let at = |ns: u64| {
        let ns = ns.saturating_sub(header.start_ns);
        format!("{}.{:06} ms", ns / 1_000_000, ns % 1_000_000)
    };
    let text = match event.kind() {
        None => format!("a {a}, b {b}, value {value}"),
        Some(Kind::Decision) if a == 0 => format!("idle after {}", thing(value as u32)),
        Some(Kind::Decision) if value == 0 => format!("{} through {}, after idle", thing(a), edge(b)),
        Some(Kind::Decision) => format!("{} through {}, after {}", thing(a), edge(b), thing(value as u32)),
        Some(Kind::Request | Kind::Release) => format!("{}, {}", thing(a), why(b)),
        Some(Kind::Grant | Kind::Detach) => edge(a),
        Some(Kind::Revoke) => format!("{}, {}", edge(a), why(b)),
        Some(Kind::Throttle) => format!("{} until {}", edge(a), at(value)),
        Some(Kind::Replenish) => format!("{} to {}", edge(a), signed(value)),
        Some(Kind::Budget) => format!("{} has {}", edge(a), signed(value)),
        Some(Kind::JobRelease) if value == NO_DEADLINE => format!("{} job {b}", thing(a)),
        Some(Kind::JobRelease | Kind::Miss) => format!("{} job {b}, deadline {}", thing(a), at(value)),
        Some(Kind::JobStart) => format!("{} job {b}", thing(a)),
        Some(Kind::JobComplete) => format!("{} job {b} after {}", thing(a), units::time(value)),
        Some(Kind::Stolen) => format!("{} while {} was current", units::time(value), thing(a)),
        Some(Kind::Lost) => format!("{value} records"),
        Some(Kind::Forgive) => format!("{} {}", edge(a), units::time(value)),
        Some(Kind::Outside) if value == SCHEDULER => {
            format!("the scheduler {}, for {}", if b == 1 { "begins" } else { "ends" }, thing(a))
        }
        Some(Kind::Outside) => format!("thread {a} {}", if b == 1 { "begins" } else { "ends" }),
        Some(Kind::Control) => format!("operation {a} on {b}, error {value}"),
        Some(Kind::Name) => format!("#{a} is {}", event.text()),
        Some(Kind::Change) => {
            format!("{a} bytes: {}", String::from_utf8_lossy(&event.bytes()).trim_end_matches('\0'))
        }
        Some(Kind::Tell) => format!("{} message {b}, error {value}", thing(a)),
        Some(Kind::Migrate) => match event.migration() {
            Some((reason, waits)) => {
                let state = if waits { "waiting" } else { "sleeping" };
                format!("{} from cpu{b}, {state}, {}", thing(a), reason.name())
            }
            None => format!("{} from cpu{b}, value {value}", thing(a)),
        },
        Some(Kind::Met) => format!("{} the time constraint until {}", thing(a), at(value)),
        Some(Kind::Unkept) => {
            let why = Unkept::of(b).map_or("?", Unkept::name);
            format!("{} {} is missing: {why}", edge(a), units::time(value))
        }
        Some(Kind::LockWait | Kind::LockEnd) => lock_text(header, event),
        Some(Kind::Mark) => format!("{} deals with {} {value}", thing(a), event.label()),
        Some(Kind::Mode) => format!("{} {}", thing(a), if b == 1 { "critical mode" } else { "usual mode" }),
        Some(Kind::Resize) => format!("{} to {}", edge(a), units::time(value)),
        Some(Kind::Attach) => format!("edge {a}: {} > {}", thing(value as u32), thing(b)),
    };
    let kind = event.kind().map_or_else(|| format!("kind {}", event.kind), |kind| kind.name().to_string());
    format!("{:>16} cpu{cpu} {kind:<12} {text}", at(now_ns))
}

/// Of a wait for a lock.
fn lock_text(header: &TraceHeader, event: &Event) -> String {
    let thing = |id: u32| header.name(id).map_or_else(|| format!("#{id}"), str::to_string);
    let Event { a, b, value, .. } = *event;
    if event.kind() == Some(Kind::LockEnd) {
        return format!("{}, {}", thing(a), if b == 0 { "it has the lock" } else { "without the lock" });
    }
    let (lock, which) = Lock::of(value);
    let which = match header.locks.get(usize::try_from(which).unwrap_or(usize::MAX)) {
        Some(name) if lock == Lock::Plan => name.clone(),
        _ => format!("{which:#x}"),
    };
    let holder = if b == 0 { "a thread outside the plan".into() } else { thing(b) };
    format!("{} for {holder}: {} {which}", thing(a), lock.name())
}

/// A budget: negative when there is debt.
fn signed(value: u64) -> String {
    let value = value as i64;
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", units::time(value.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_equal_tierce_h() {
        let text = include_str!("../../../../policy/tierce.h");
        let (_, text) = text.split_once("enum tierce_why {").unwrap();
        let (text, _) = text.split_once('}').unwrap();
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("TIERCE_")?.split_once(','));
        let names: Vec<_> = names.map(|(name, _)| name.to_lowercase().replace('_', " ")).collect();
        assert_eq!(names, WHYS);
    }

    #[test]
    fn every_kind_has_a_line() {
        let header = TraceHeader { cpus: 1, ..Default::default() };
        for kind in Kind::ALL {
            let event = Event::new(1_500_000, *kind, 0, 1, 2, u64::MAX);
            let line = text_line(&header, &event);
            assert!(line.starts_with("     1.500000 ms cpu0") && line.contains(kind.name()), "{line}");
            serde_json::from_str::<serde_json::Value>(&json_line(&event)).unwrap();
        }
        let budget = Event::new(0, Kind::Budget, 0, 3, 2, (-1500i64) as u64);
        assert!(text_line(&header, &budget).ends_with("edge 3 has -1.5 µs"));
        let later = Event { kind: 999, ..budget };
        assert!(text_line(&header, &later).contains("kind 999"));
    }
}
