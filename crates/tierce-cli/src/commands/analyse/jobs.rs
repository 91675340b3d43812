//! `tierce analyse` for given jobs without preemption: when is each done, at the earliest and at the latest?

use super::early::{beside, ended_with_nothing};
use super::question::{in_file, Args};
use anyhow::{bail, Result};
use serde_json::{json, Value};
use std::process::ExitCode;
use std::sync::Arc;
use tierce_analysis::job_sets::{explore_while, parse, Explored, Job};
use tierce_analysis::question::Policy;
use tierce_plan::show_time;
use tierce_terminal::Watched;

/// Version of the JSON that is written for job sets.
const VERSION: u32 = 1;

/// Starts of jobs, each from another state, after which it is given up.
const STARTS_MAX: u64 = 10_000_000;

pub fn run(args: &Args, text: &str) -> Result<ExitCode> {
    let mut jobs = parse(text).map_err(|faults| in_file(&args.tasks, &faults))?;
    if args.supply.is_some() || args.partition.is_some() || args.sensitivity {
        bail!("job_sets_run_on_whole_cpus: a table of jobs is analysed without --supply, --partition and --sensitivity");
    }
    match args.policy {
        None | Some(Policy::Fp) => {}
        Some(Policy::Edf) => jobs.iter_mut().for_each(|job| job.priority = job.deadline_ns),
        Some(_) => bail!(
            "job_sets_have_priorities: a table of jobs is analysed by its priorities (no --policy, or fp) or by deadlines (edf)"
        ),
    }
    let cpus = args.cpus.unwrap_or(1);
    let jobs = Arc::new(jobs);
    let worker = Arc::clone(&jobs);
    let found = beside("jobs", move |watch| explore_while(&worker, cpus as usize, STARTS_MAX, watch));
    let found = match found {
        Watched::Done(found) => found,
        Watched::Early(_) | Watched::Nothing => return Ok(ended_with_nothing()),
    };
    let Ok(found) = found else {
        bail!(
            "states_must_fit: the states to look at are too many, bound {STARTS_MAX} starts of jobs in them, or times are too large; narrower \
             ranges or fewer jobs at once have fewer states"
        );
    };
    let late = late(&jobs, &found);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&in_json(&jobs, &found, cpus, late == 0))?);
    } else {
        print(&jobs, &found, cpus, late);
    }
    Ok(ExitCode::from(u8::from(late > 0)))
}

fn late(jobs: &[Job], found: &Explored) -> usize {
    jobs.iter().zip(&found.done_ns).filter(|(job, done)| done.1 > job.deadline_ns).count()
}

/// Time left until the deadline, less than 0 where it is missed.
fn slack(job: &Job, done_ns: u64) -> i128 {
    i128::from(job.deadline_ns) - i128::from(done_ns)
}

fn in_json(jobs: &[Job], found: &Explored, cpus: u32, schedulable: bool) -> Value {
    let job = |(job, done): (&Job, &(u64, u64))| {
        let response = |done: u64| done - job.ready_ns.0;
        json!({
            "task": job.task, "job": job.id, "bcct_ns": done.0, "wcct_ns": done.1, "bcrt_ns": response(done.0),
            "wcrt_ns": response(done.1), "deadline_ns": job.deadline_ns, "slack_ns": i64::try_from(slack(job, done.1)).ok()
        })
    };
    json!({
        "version": VERSION, "scheduling": "without preemption", "cpus": cpus, "exact": cpus == 1, "schedulable": schedulable,
        "states": found.states, "starts": found.starts, "jobs": jobs.iter().zip(&found.done_ns).map(job).collect::<Vec<_>>()
    })
}

fn print(jobs: &[Job], found: &Explored, cpus: u32, late: usize) {
    let line = |cells: [&str; 6]| {
        let [task, job, rest @ ..] = cells;
        let rest: String = rest.iter().map(|cell| format!("  {cell:>14}")).collect();
        println!("{task:>8}  {job:>8}{rest}");
    };
    line(["task", "job", "done from", "done until", "deadline", "slack"]);
    for (job, done) in jobs.iter().zip(&found.done_ns) {
        let slack = slack(job, done.1);
        let sign = if slack < 0 { "-" } else { "" };
        let slack = u64::try_from(slack.unsigned_abs()).map_or(String::new(), show_time);
        let [from, until, deadline] = [done.0, done.1, job.deadline_ns].map(show_time);
        line([
            &job.task.to_string(),
            &job.id.to_string(),
            &from,
            &until,
            &deadline,
            &format!("{sign}{slack}"),
        ]);
    }
    let verdict = if late == 0 { "Schedulable" } else { "Not schedulable" };
    let places =
        if cpus == 1 { "a whole CPU".to_string() } else { format!("{cpus} CPUs (times are bounds)") };
    println!(
        "\n{verdict}: {} jobs without preemption on {places}, {late} may be late; {} states.",
        jobs.len(),
        found.states
    );
}
