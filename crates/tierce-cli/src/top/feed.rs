//! Where snapshots come from: a plan in force, a simulation, a trace.

use anyhow::{bail, Context, Result};
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use tierce_admission::PlanExt;
use tierce_plan::{Options, Plan};
use tierce_scx::socket::Connection;
use tierce_sim::Simulation;
use tierce_trace::{Event, Snapshot, Stats, Tally, Trace};

/// Threads that are asked for, where each has a row.
pub const THREADS_MAX: usize = 1000;

/// Gives one snapshot after another.
pub trait Feed {
    /// The next one; `None`: there is nothing more. With `threads`, with those that have no name in the plan.
    fn next(&mut self, threads: bool) -> Result<Option<Snapshot>>;
}

/// The plan in force.
pub struct Live {
    connection: Connection,
    heard: bool,
}

impl Live {
    /// That listens there.
    pub fn open(socket: &Path) -> Result<Live> {
        Ok(Live { connection: Connection::open(socket)?, heard: false })
    }
}

impl Feed for Live {
    fn next(&mut self, threads: bool) -> Result<Option<Snapshot>> {
        let threads = if threads { THREADS_MAX } else { 0 };
        match self.connection.ask(&json!({ "request": "snapshot", "threads": threads })) {
            Ok(Ok(snapshot)) => {
                self.heard = true;
                Ok(Some(snapshot))
            }
            Ok(Err((_, message))) => bail!("{message}"),
            Err(_) if self.heard => Ok(None), // the run has ended
            Err(error) => Err(error),
        }
    }
}

/// A plan that is simulated.
pub struct Simulated {
    simulation: Simulation,
    step_ns: u64,
    end_ns: u64,
    tally: Tally,
}

impl Simulated {
    /// This plan, so much of it each time.
    pub fn new(path: &Path, cpus: u32, seed: u64, step_ns: u64, end_ns: u64) -> Result<Simulated> {
        let plan = Plan::load_with(path, Options { cpus }).map_err(|faults| {
            eprint!("{}", faults.report());
            anyhow::anyhow!("{}: the plan has faults", path.display())
        })?;
        let simulation = Simulation::new(&plan, tierce_sim::Options { seed, ..Default::default() })?;
        Ok(Simulated { simulation, step_ns, end_ns, tally: Tally::default() })
    }
}

impl Feed for Simulated {
    fn next(&mut self, _threads: bool) -> Result<Option<Snapshot>> {
        let now_ns = self.simulation.now_ns();
        if now_ns >= self.end_ns {
            return Ok(None);
        }
        self.simulation.run_until((now_ns + self.step_ns).min(self.end_ns)).context("a bug of tierce")?;
        let graph = self.simulation.graph();
        let running: Vec<u32> = (0..graph.cpus()).map(|cpu| graph.cpu(cpu).task).collect();
        Ok(Some(Snapshot::of(&self.simulation.stats(), &running, &mut self.tally)))
    }
}

/// A trace that is played back.
pub struct Recorded {
    stats: Stats,
    events: std::vec::IntoIter<Event>,
    next: Option<Event>,
    until_ns: u64,
    step_ns: u64,
    end_ns: u64,
    tally: Tally,
}

impl Recorded {
    /// This trace, so much of it each time.
    pub fn new(path: &Path, step_ns: u64) -> Result<Recorded> {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        let (trace, fault) = Trace::read(BufReader::new(file)).with_context(|| path.display().to_string())?;
        if let Some(fault) = fault {
            eprintln!("tierce: {}: {fault}; what comes before it is shown", path.display());
        }
        let last_ns = trace.events.last().map_or(trace.header.start_ns, |event| event.now_ns);
        let stats = Stats::new(&trace.header);
        let end_ns = trace.header.end_ns.unwrap_or(last_ns).max(last_ns);
        let (until_ns, mut events) = (trace.header.start_ns, trace.events.into_iter());
        let next = events.next();
        Ok(Recorded { stats, events, next, until_ns, step_ns, end_ns, tally: Tally::default() })
    }
}

impl Feed for Recorded {
    fn next(&mut self, _threads: bool) -> Result<Option<Snapshot>> {
        if self.until_ns >= self.end_ns {
            return Ok(None);
        }
        self.until_ns = (self.until_ns + self.step_ns).min(self.end_ns);
        while let Some(event) = self.next.filter(|event| event.now_ns <= self.until_ns) {
            self.stats.event(&event);
            self.next = self.events.next();
        }
        self.stats.finish(self.until_ns);
        let running = self.stats.running();
        Ok(Some(Snapshot::of(&self.stats, &running, &mut self.tally)))
    }
}
