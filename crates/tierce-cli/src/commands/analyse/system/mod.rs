//! `tierce analyse FILE.toml`: tasks with what a table has no columns for, locks and chains.

mod chains;
mod draft;
mod judged;
mod locks;
mod output;
mod read;

pub use read::read;

use super::early::{beside, ended_with_nothing};
use super::question::Args;
use anyhow::Result;
use draft::Draft;
use judged::Judged;
use output::{in_json, print};
use read::Set;
use std::process::ExitCode;
use std::sync::Arc;
use tierce_analysis::system::{Found, Member, Path, System};
use tierce_terminal::Watched;

/// Run `tierce analyse` on a set with locks, chains or CPUs.
pub fn run(args: &Args, set: Set) -> Result<ExitCode> {
    let Set { tasks, locks, chains } = set;
    let cpus = tasks.iter().map(|task| task.cpu.unwrap_or(0)).collect();
    let member = |task: Draft| Member {
        entry: task.entry,
        sections: task.sections,
        least_work_ns: task.least_work_ns,
        extra_ns: task.extra_ns,
        after: task.after,
    };
    let members = tasks.into_iter().map(member).collect();
    let used: Vec<_> = locks.iter().map(locks::protocol).collect();
    let paths = chains.iter().map(|chain| Path { links: chain.links.clone() }).collect();
    let system = Arc::new(System::new(members, cpus, &used, paths, &args.options())?);
    let worker = Arc::clone(&system);
    let (found, early) = match beside("tasks", move |watch| worker.answer_while(watch)) {
        Watched::Done(found) => (found?, false),
        Watched::Early(found) => (found?, true),
        Watched::Nothing => return Ok(ended_with_nothing()),
    };
    let Found { outcome, chains: latencies } = found;
    let judged = |(chain, latencies)| Judged { chain, latencies };
    let judged: Vec<_> = chains.iter().zip(latencies).map(judged).collect();
    let met = judged.iter().all(|judged| judged.chain.needs.iter().all(|need| judged.meets(need)));
    let holds = outcome.schedulable && met && judged.len() == chains.len();
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&in_json(&system, &outcome, &judged, holds))?),
        false => print(&system, &outcome, &judged, holds),
    }
    Ok(ExitCode::from(u8::from(early || !holds)))
}
