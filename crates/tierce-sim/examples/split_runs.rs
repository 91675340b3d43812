//! Plans whose servers are split over CPUs in slots, simulated for long while every event is looked at: nobody runs on two CPUs at
//! once, servers move at most twice per slot, tasks lose the CPU no more often than reserves end and jobs arrive.
//!
//! usage: split_runs PLAN SECONDS [SEED, default 1]; prints a line, fails at the first contradiction.

use std::path::Path;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::{Ids, Plan};
use tierce_sim::{Options, Simulation};
use tierce_trace::{Event, Kind};

const S: u64 = 1_000_000_000;
/// Of simulated time between two looks: what has to be remembered stays small.
const CHUNK_NS: u64 = 5_000_000;

/// A server with reserves on two CPUs.
#[derive(Default)]
struct Split {
    on: Option<u16>,
    moves: u64,
    in_slot: u64,
    slot: u64,
    worst: u64,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(Ok(seconds))) =
        (arguments.next(), arguments.next().map(|text| text.parse::<u64>()))
    else {
        eprintln!("usage: split_runs PLAN SECONDS [SEED]");
        return ExitCode::from(2);
    };
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    match run(Path::new(&path), seconds * S, seed) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{path}, seed {seed}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &Path, end_ns: u64, seed: u64) -> Result<String, String> {
    let plan = Plan::load(path).map_err(|faults| faults.report_plain())?;
    let admission = plan.admit();
    let options = Options { seed, trace: true, ..Options::default() };
    let mut simulation = Simulation::new(&plan, options).map_err(|refused| refused.to_string())?;
    let mut watch = Watch::new(&plan, simulation.ids());
    let mut now_ns = 0;
    while now_ns < end_ns {
        now_ns = (now_ns + CHUNK_NS).min(end_ns);
        simulation.run_until(now_ns).map_err(|violation| violation.to_string())?;
        for event in simulation.events_mut().drain(..) {
            watch.event(&event)?;
        }
    }
    let report = simulation.report();
    let misses: u64 = report.tasks.iter().map(|task| task.misses).sum();
    let jobs: u64 = report.tasks.iter().map(|task| task.jobs).sum();
    let slots = end_ns / watch.slot_ns + 1;
    let Watch { splits, boundaries, preemptions, releases, switches, .. } = watch;
    let worst = splits.iter().map(|split| split.worst).max().unwrap_or(0);
    let moves: u64 = splits.iter().map(|split| split.moves).sum();
    // A reserve ends somebody's turn once per slot, and a job that arrives may take the CPU from one.
    let most: u64 = boundaries.iter().map(|count| count * slots).sum::<u64>() + releases;
    if misses > 0 || worst > 2 || preemptions > most {
        return Err(format!("{misses} misses, {worst} moves of a server in a slot, {preemptions} preemptions (at most {most})"));
    }
    let rate = |count: u64| count as f64 * S as f64 / end_ns as f64;
    Ok(format!(
        "{} tasks, {} split, {jobs} jobs, 0 late; moves {:.0}/s of {:.0}, preemptions {:.0}/s of {:.0}, switches {:.0}/s{}",
        plan.tasks.len(),
        splits.len(),
        rate(moves),
        rate(2 * splits.len() as u64 * slots),
        rate(preemptions),
        rate(most),
        rate(switches),
        if admission.holds { ", check holds" } else { "" }
    ))
}

/// What is seen of a run.
struct Watch {
    splits: Vec<Split>,
    /// Engine's id of an edge of a server that is split: which one.
    split_of: Vec<Option<usize>>,
    /// By CPU: its reserves.
    boundaries: Vec<u64>,
    slot_ns: u64,
    /// By task.
    awake: Vec<bool>,
    /// By CPU.
    current: Vec<u32>,
    preemptions: u64,
    releases: u64,
    switches: u64,
}

impl Watch {
    fn new(plan: &Plan, ids: &Ids) -> Self {
        let roots = ids.roots.iter().map(|(.., edge)| edge);
        let edges = ids.edges.iter().chain(roots).max().map_or(0, |most| *most as usize + 1);
        let tasks = ids.tasks.iter().max().map_or(0, |most| *most as usize) + 1;
        let cpus = plan.machine.cpus as usize;
        let mut watch = Self {
            splits: Vec::new(),
            split_of: vec![None; edges],
            boundaries: vec![0; cpus],
            slot_ns: 1,
            awake: vec![false; tasks],
            current: vec![0; cpus],
            preemptions: 0,
            releases: 0,
            switches: 0,
        };
        for edge in &plan.edges {
            let parent = &plan.nodes[edge.parent];
            let [cpu] = parent.roots[..] else { continue };
            let others = plan.edges.iter().zip(&ids.edges).filter(|(other, _)| other.child == edge.child);
            watch.boundaries[cpu as usize] += 1;
            watch.slot_ns = watch.slot_ns.max(parent.params[0]);
            let others: Vec<_> = others.map(|(_, id)| *id as usize).collect();
            if others.len() > 1 && watch.split_of[others[0]].is_none() {
                others.iter().for_each(|id| watch.split_of[*id] = Some(watch.splits.len()));
                watch.splits.push(Split::default());
            }
        }
        watch
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        match Kind::from_number(event.kind) {
            Some(Kind::Decision) => return self.decision(event),
            Some(Kind::Grant) => self.grant(event),
            Some(Kind::Request) => self.awake[event.a as usize] = true,
            Some(Kind::Release) => self.awake[event.a as usize] = false,
            Some(Kind::JobRelease) => self.releases += 1,
            Some(Kind::Miss) => return Err(format!("task {} is late at {} ns", event.a, event.now_ns)),
            _ => {}
        }
        Ok(())
    }

    fn decision(&mut self, event: &Event) -> Result<(), String> {
        self.switches += 1;
        self.preemptions += u64::from(self.awake[event.value as usize]);
        self.current[event.cpu as usize] = event.a;
        let mut others = (0..self.current.len()).filter(|cpu| *cpu != event.cpu as usize);
        match others.find(|cpu| event.a != 0 && self.current[*cpu] == event.a) {
            Some(other) => {
                Err(format!("task {} runs on CPUs {other} and {} at {} ns", event.a, event.cpu, event.now_ns))
            }
            None => Ok(()),
        }
    }

    fn grant(&mut self, event: &Event) {
        let Some(split) = self.split_of[event.a as usize].map(|split| &mut self.splits[split]) else {
            return;
        };
        if split.on.replace(event.cpu).is_some_and(|on| on != event.cpu) {
            split.moves += 1;
            let slot = event.now_ns / self.slot_ns;
            split.in_slot = if slot == split.slot { split.in_slot + 1 } else { 1 };
            split.slot = slot;
            split.worst = split.worst.max(split.in_slot);
        }
    }
}
