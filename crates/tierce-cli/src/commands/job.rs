//! `tierce job`: a periodic thread whose jobs are real.

use super::time;
use anyhow::{ensure, Context, Result};
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;
use tierce_job::{cpu_time_ns, Clock, Monotonic, Periodic, Totals};
use tierce_scx::socket;
use tierce_trace::units;

/// Run periodic jobs in a real thread, and report misses and response times
///
/// A thread of the given name releases a job at epoch + offset + k × period, without drift. The job uses CPU time (--work), or
/// runs a command. If a job completes after the next release, the next one begins at once; no job is skipped. The thread's timer
/// slack is 1 ns. If a plan is in force and the thread belongs to a task of it, the misses that the kernel counted are shown, too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Time from one release to the next
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    period: u64,
    /// Time from the epoch to the first release
    #[arg(long, value_name = "TIME", value_parser = time::time, default_value = "0ns")]
    offset: u64,
    /// Time since boot at which releases begin; by default all jobs of a machine have the same epoch
    #[arg(long, value_name = "TIME", value_parser = time::time, default_value = "0ns")]
    epoch: u64,
    /// Time from a release until the job has to be complete [default: the period]
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    deadline: Option<u64>,
    /// CPU time of each job; several are used in turn: 3ms,12ms
    #[arg(long, value_name = "TIME", value_parser = time::time, value_delimiter = ',', default_value = "1ms")]
    work: Vec<u64>,
    /// Name of the thread, for `match` of a plan: at most 15 bytes
    #[arg(long, default_value = "job", value_parser = parse_name)]
    name: String,
    /// End after this number of jobs
    #[arg(long, value_name = "N")]
    jobs: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = time::duration)]
    duration_ns: Option<u64>,
    /// Write the result as a line of JSON
    #[arg(long)]
    json: bool,
    /// Socket of the plan in force [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Run this command once per job instead of --work, and wait for it
    #[arg(last = true, conflicts_with = "work")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  tierce job --period 10ms --work 3ms --for 5s
  tierce job --period 20ms --deadline 10ms --work 3ms,12ms --name t1 --jobs 100 --json
  tierce job --period 1s --jobs 3 -- date

Exit codes: 0 ended as asked (Ctrl-C, SIGTERM too), misses or not; 2 bad input or environment.";

/// How long a plan in force may take to find the thread, which begins later than that.
const FOUND_WITHIN: Duration = Duration::from_millis(300);

fn parse_name(name: &str) -> Result<String, String> {
    match name.len() {
        1..=15 if !name.contains('\0') => Ok(name.into()),
        length => Err(format!("{length} bytes, a thread's name has 1 to 15")),
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

/// The job that is under way is the last; another signal ends it, too.
extern "C" fn stop(signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
    // SAFETY: allowed in a handler, and the default action is no handler of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Run `tierce job`.
pub fn run(args: Args) -> Result<ExitCode> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler stores to an atomic and takes itself away.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    let socket = socket::path(args.socket.clone());
    let in_force = socket::ask(&socket, json!({ "request": "status" })).is_ok();
    let (says, hears) = mpsc::channel();
    let (ends, ended) = mpsc::channel::<()>();
    // A thread of its own, so that asking about it is no part of its jobs.
    let (totals, tid, kernel) = thread::scope(|scope| {
        let args = &args;
        let worker = thread::Builder::new().name(args.name.clone()).spawn_scoped(scope, move || {
            // SAFETY: no arguments, cannot fail.
            let _ = says.send(unsafe { libc::gettid() });
            let mut jobs = work(args, if in_force { FOUND_WITHIN } else { Duration::ZERO })?;
            let totals = jobs.totals();
            let _ = says.send(0);
            // It wakes for releases only, up to its end.
            while in_force && ended.try_recv() == Err(TryRecvError::Empty) {
                jobs.wait();
            }
            anyhow::Ok(totals)
        });
        let worker = worker.context("a thread for the jobs")?;
        let tid = hears.recv().context("the thread of the jobs has ended")?;
        let _ = hears.recv();
        let kernel = in_force.then(|| {
            thread::sleep(Duration::from_millis(10)); // it is about to wait
            asked(&socket, tid)
        });
        drop(ends);
        let totals = worker.join().map_err(|_| anyhow::anyhow!("the thread of the jobs has failed"))??;
        anyhow::Ok((totals, tid, kernel.flatten()))
    })?;
    let deadline_ns = args.deadline.unwrap_or(args.period);
    if args.json {
        let json = json!({
            "version": 1, "name": args.name, "tid": tid, "period_ns": args.period, "deadline_ns": deadline_ns,
            "jobs": totals.jobs, "misses": totals.misses, "overruns": totals.overruns,
            "late_ns": { "avg": totals.late_avg_ns(), "max": totals.late_max_ns },
            "response_ns": { "min": totals.response_min_ns, "avg": totals.response_avg_ns(), "max": totals.response_max_ns },
            "kernel": kernel,
        });
        println!("{json}");
    } else {
        print!("{}", told(&args.name, &totals, kernel.as_ref()));
    }
    Ok(ExitCode::SUCCESS)
}

/// All jobs, the first of them after that long.
fn work(args: &Args, wait: Duration) -> Result<Periodic> {
    let ns = Duration::from_nanos;
    let mut jobs = Periodic::new(ns(args.period), ns(args.offset))
        .epoch(ns(args.epoch))
        .after(ns(Monotonic.now_ns()) + wait)
        .deadline(ns(args.deadline.unwrap_or(args.period)));
    let until_ns = args.duration_ns.map(|for_ns| Monotonic.now_ns().saturating_add(for_ns));
    let over = |done: u64| {
        STOP.load(Ordering::Relaxed)
            || args.jobs.is_some_and(|all| done >= all)
            || until_ns.is_some_and(|until_ns| Monotonic.now_ns() >= until_ns)
    };
    while !over(jobs.totals().jobs) {
        let number = jobs.wait().number;
        match args.command.split_first() {
            Some((program, arguments)) => {
                let status = Command::new(program).args(arguments).status();
                let status = status.with_context(|| program.clone())?;
                ensure!(
                    status.success() || STOP.load(Ordering::Relaxed),
                    "{program}: job {number}: {status}"
                );
            }
            None => {
                let end_ns = cpu_time_ns() + args.work[(number - 1) as usize % args.work.len()];
                while cpu_time_ns() < end_ns {}
            }
        }
        jobs.done();
    }
    Ok(jobs)
}

/// What the plan in force has counted for a thread, if that is at a task of it.
fn asked(socket: &Path, tid: i32) -> Option<Value> {
    let counted = socket::ask(socket, json!({ "request": "jobs", "tid": tid })).ok()?.ok()?;
    Some(json!({ "task": counted["name"], "jobs": counted["jobs"], "misses": counted["misses"],
        "deadline_ns": counted["deadline_ns"] }))
}

fn told(name: &str, totals: &Totals, kernel: Option<&Value>) -> String {
    let time = units::time;
    let mut text =
        format!("{name}: {} jobs, {} misses, {} overruns\n", totals.jobs, totals.misses, totals.overruns);
    text += &format!("  begins late  avg {}, max {}\n", time(totals.late_avg_ns()), time(totals.late_max_ns));
    let [min, avg, max] =
        [totals.response_min_ns, totals.response_avg_ns(), totals.response_max_ns].map(time);
    text += &format!("  response     min {min}, avg {avg}, max {max}\n");
    if let Some(kernel) = kernel {
        let task = kernel["task"].as_str().unwrap_or("?");
        text += &format!("  kernel       {} misses of task {task}", kernel["misses"]);
        text += &match kernel["deadline_ns"].as_u64() {
            Some(ns) => format!(", deadline {}\n", time(ns)),
            None => ", which has no deadline in the plan\n".to_string(),
        };
    }
    text
}
