//! Plans whose servers are split over CPUs in slots, simulated for long while every event is looked at: nobody runs on two CPUs at
//! once, servers move at most twice per slot, tasks lose the CPU no more often than reserves end and jobs arrive.
//!
//! usage: split_runs PLAN SECONDS [SEED, default 1]; prints a line, fails at the first contradiction.

use std::path::Path;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::Kind;

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
    let ids = simulation.ids();
    let roots = ids.roots.iter().map(|(.., edge)| edge);
    let size = ids.edges.iter().chain(roots).max().map_or(0, |most| *most as usize + 1);
    // Engine's id of an edge of a server that is split: which one.
    let mut split_of: Vec<Option<usize>> = vec![None; size];
    let mut splits: Vec<Split> = Vec::new();
    let mut boundaries = vec![0u64; plan.machine.cpus as usize];
    let mut slot_ns = 1;
    for edge in &plan.edges {
        let parent = &plan.nodes[edge.parent];
        let [cpu] = parent.roots[..] else { continue };
        let others = plan.edges.iter().zip(&ids.edges).filter(|(other, _)| other.child == edge.child);
        boundaries[cpu as usize] += 1;
        slot_ns = slot_ns.max(parent.params[0]);
        let others: Vec<_> = others.map(|(_, id)| *id as usize).collect();
        if others.len() > 1 && split_of[others[0]].is_none() {
            others.iter().for_each(|id| split_of[*id] = Some(splits.len()));
            splits.push(Split::default());
        }
    }
    let mut awake = vec![false; ids.tasks.iter().max().map_or(0, |most| *most as usize) + 1];
    let mut current = vec![0u32; plan.machine.cpus as usize];
    let (mut preemptions, mut releases, mut switches) = (0u64, 0u64, 0u64);
    let mut now_ns = 0;
    while now_ns < end_ns {
        now_ns = (now_ns + CHUNK_NS).min(end_ns);
        simulation.run_until(now_ns).map_err(|violation| violation.to_string())?;
        for event in simulation.events_mut().drain(..) {
            match Kind::from_number(event.kind) {
                Some(Kind::Decision) => {
                    switches += 1;
                    preemptions += u64::from(awake[event.value as usize]);
                    current[event.cpu as usize] = event.a;
                    let twice = (0..current.len())
                        .find(|cpu| event.a != 0 && current[*cpu] == event.a && *cpu != event.cpu as usize);
                    if let Some(other) = twice {
                        return Err(format!(
                            "task {} runs on CPUs {other} and {} at {} ns",
                            event.a, event.cpu, event.now_ns
                        ));
                    }
                }
                Some(Kind::Grant) => {
                    let Some(split) = split_of[event.a as usize].map(|split| &mut splits[split]) else {
                        continue;
                    };
                    if split.on.replace(event.cpu).is_some_and(|on| on != event.cpu) {
                        split.moves += 1;
                        let slot = event.now_ns / slot_ns;
                        split.in_slot = if slot == split.slot { split.in_slot + 1 } else { 1 };
                        split.slot = slot;
                        split.worst = split.worst.max(split.in_slot);
                    }
                }
                Some(Kind::Request) => awake[event.a as usize] = true,
                Some(Kind::Release) => awake[event.a as usize] = false,
                Some(Kind::JobRelease) => releases += 1,
                Some(Kind::Miss) => return Err(format!("task {} is late at {} ns", event.a, event.now_ns)),
                _ => {}
            }
        }
    }
    let report = simulation.report();
    let misses: u64 = report.tasks.iter().map(|task| task.misses).sum();
    let jobs: u64 = report.tasks.iter().map(|task| task.jobs).sum();
    let slots = end_ns / slot_ns + 1;
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
