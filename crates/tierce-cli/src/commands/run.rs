//! `tierce run`: enforce a plan on this machine.

mod changes;
mod forged;
mod kept;
pub mod metrics;
mod tell;
mod unkept;

use super::progress::Progress;
use super::time;
use crate::journal::{report, Level};
use anyhow::{bail, Result};
use changes::{edit, edits, end_reservations, is_made_for, put_into_force, written, Keep, Service};
use forged::refuse_beside_a_manager;
use kept::Kept;
use metrics::{Exporter, Totals};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_plan::{policies, By, Cpus, Plan, Refused, Source, Sources, ThrottleAt};
use tierce_policy::{Refusal, CPUS_MAX};
use tierce_scx::checksums::Checksums;
use tierce_scx::doctor::{self, Host};
use tierce_scx::dry_run::{self, Pools};
use tierce_scx::kernel::{Exit, Options, COUNTS, EVERYTHING, LOCK_WAITS, MARKS, MEASURED, STATS};
use tierce_scx::live::{LeftOut, Live};
use tierce_scx::notify::notify;
use tierce_scx::socket::{self, say, Asked, Manner, Said, Served, Server};
use tierce_scx::threads::Proc;
use tierce_trace::measure::{self, Measure};
use tierce_trace::{Report, TraceHeader};
use unkept::Unkept;

/// Enforce a plan on this machine (root)
///
/// Loads the plan's schedulers into the kernel (sched_ext), binds existing and new threads to its tasks, and reports the CPU
/// time of each. Ends with Ctrl-C, SIGTERM, SIGHUP or --for. However it ends, even by kill -9, the machine returns to its default
/// scheduler. While it runs, `tierce apply NEW` changes the plan without stopping a thread, and `tierce status` shows its state.
///
/// Exit codes: 0 ended as requested; 1 the kernel ended the plan (the last line has the reason), or with --dry-run: some
/// matching threads are refused, or this machine cannot enforce plans; 2 refused, and nothing was changed.
#[derive(clap::Args)]
pub struct Args {
    /// The plan
    plan: PathBuf,
    /// End after this time: 500ms, 10s, 10min
    #[arg(long = "for", value_name = "TIME", value_parser = time::duration)]
    duration_ns: Option<u64>,
    /// Change nothing: show to which task or set each existing thread would belong, and which threads are refused, with the reason
    #[arg(long, conflicts_with_all = ["duration_ns", "trace", "record"])]
    dry_run: bool,
    /// With --dry-run: assume this number of CPUs
    #[arg(long, value_name = "N", requires = "dry_run", value_parser = clap::value_parser!(u32).range(1..=i64::from(CPUS_MAX)))]
    cpus: Option<u32>,
    /// Write the result as JSON (with --stats-every: one line each time, and at the end)
    #[arg(long)]
    json: bool,
    /// Print the report so far at this interval: 1s, 500ms
    #[arg(long, value_name = "TIME", value_parser = parse_interval, conflicts_with = "dry_run")]
    stats_every: Option<u64>,
    /// Control socket, by which `tierce apply` and others reach this run [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Also load these policies, for a later `tierce apply`: NAME,NAME or all. Without it, only the policies of the plan and of its
    /// `[run] policies` are loaded
    #[arg(long, value_name = "LIST", value_parser = parse_policies)]
    policies: Option<u64>,
    /// What to count: `full`, or `counts`, which writes no record per switch and costs least
    #[arg(long, value_name = "WHAT", default_value = "full", conflicts_with_all = ["trace", "measure", "locks"])]
    stats: Statistics,
    /// Count how often locks are taken and CPUs are kicked, and for how long locks are waited for and held: shown at the end, and in
    /// --json under `kernel`. Costs two readings of the clock for each lock
    #[arg(long, conflicts_with = "dry_run")]
    contention: bool,
    /// Watch who waits for whose locks, those of programs (mutexes) and of the kernel, and who runs meanwhile: threads that the plan names.
    /// Shown at the end, by `tierce status`, and in --json under `lock_waits`. Costs two records for each wait
    #[arg(long, conflicts_with = "dry_run")]
    locks: bool,
    /// Write every event: for `tierce trace` and `tierce timeline`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Measure jitters and overheads of jobs; printed at the end, and before that by `tierce measure --live`
    #[arg(long, conflicts_with = "dry_run")]
    measure: bool,
    /// With --measure: time since boot at which the releases of periodic jobs begin (`tierce job --epoch`)
    #[arg(long, value_name = "TIME", value_parser = time::time, requires = "measure")]
    epoch: Option<u64>,
    /// Offer metrics for Prometheus at http://ADDRESS/metrics; a port alone is one of 127.0.0.1
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::parse_address, conflicts_with = "dry_run")]
    metrics: Option<SocketAddr>,
    /// Write metrics to this file every 5 s, for the textfile collector of node_exporter; its name should end in `.prom`
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    metrics_file: Option<PathBuf>,
    /// Threads without a name in the plan that have metrics of their own, beside those of their pool
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(metrics::THREADS_MAX)))]
    metrics_threads: u32,
    /// Record every call of the scheduler; `tierce sim --replay FILE` repeats its decisions, bit for bit
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// How much is known at the end.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Statistics {
    /// Everything
    Full,
    /// CPU time, switches, throttles, misses; not response times, nor the supply per period, nor threads that have ended
    Counts,
}

/// Policies by name, a bit each.
fn parse_policies(text: &str) -> Result<u64, String> {
    let one = |name: &str| match policies::by_name(name.trim()) {
        Some(policy) => Ok(1 << policy.number),
        None => Err(format!(
            "no policy `{name}`; the policies are {}",
            policies::names(policies::all()).join(", ")
        )),
    };
    match text {
        "all" => Ok(policies::all()),
        _ => text.split(',').try_fold(0, |mask, name| Ok(mask | one(name)?)),
    }
}

/// At least 10 ms: more would be about itself.
fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = time::time(text)?;
    if ns < 10_000_000 {
        return Err("at least 10ms".into());
    }
    Ok(ns)
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

impl Args {
    /// The plan, as it can be enforced on so many CPUs.
    fn plan(&self, cpus: u32) -> Result<Plan> {
        let plan = Plan::load_with(&self.plan, tierce_plan::Options { cpus });
        match plan.and_then(|plan| plan.check_runnable(cpus).map(|()| plan)) {
            Ok(mut plan) => {
                if let Err(faults) = refuse_beside_a_manager(&plan) {
                    eprint!("{}", faults.report());
                    if !self.dry_run {
                        bail!(
                            "{}: a manager answers, and any user could take what the plan promises",
                            self.plan.display()
                        );
                    }
                }
                plan.run.policies |= self.policies.unwrap_or(0);
                Ok(plan)
            }
            Err(faults) => {
                eprint!("{}", faults.report());
                bail!("{}: the plan has faults", self.plan.display());
            }
        }
    }

    /// How the kernel object is loaded.
    fn options(&self, plan: &Plan, cpus: u32) -> Options {
        let measured = if self.measure { MEASURED } else { 0 };
        let locks = if self.locks { LOCK_WAITS } else { 0 };
        let marks = if plan.run.marks.is_empty() { 0 } else { MARKS };
        let trace_kinds = match (&self.trace, self.stats) {
            (Some(_), _) => EVERYTHING,
            (None, Statistics::Full) => STATS | measured | locks | marks,
            (None, Statistics::Counts) => COUNTS | measured,
        };
        Options {
            cpus,
            topology: plan.machine.topology.clone(),
            policies: plan.policies(),
            parts: plan.parts(),
            trace_kinds,
            record: self.record.is_some(),
            watchdog_ms: (plan.run.watchdog_ns / 1_000_000) as u32,
            throttle_at_user: plan.run.throttle == ThrottleAt::User,
            count_contention: self.contention,
            watch_locks: self.locks,
            inherits: plan.run.inherits,
            marks: plan.run.marks.clone(),
            ..Default::default()
        }
    }
}

/// Run `tierce run`.
pub fn run(args: Args) -> Result<ExitCode> {
    if !args.dry_run {
        for warning in doctor::refuse()? {
            eprintln!("{warning}");
        }
    }
    let here = Host::here().cpus().unwrap_or(1); // has no holes, else refused above
    let cpus = args.cpus.unwrap_or(here);
    let plan = args.plan(cpus)?;
    let admission = plan.admit();
    let unfit = admission.faults(&plan);
    for line in plan.is_so_only_in_simulation() {
        report(Level::Warn, "remark", &line, &[]);
    }
    let chains = tierce_scx::chains_of(&plan, &admission);
    let explain = |error: &anyhow::Error| {
        if error.is::<Refused>() {
            eprint!("{}", unfit.report());
        }
    };
    if args.dry_run {
        return dry_run(&plan, here, args.json).inspect_err(explain);
    }
    let options = args.options(&plan, cpus);
    let floor_ns = options.floor_ns;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    let path = socket::path(args.socket.clone());
    let server = Server::bind(&path)?;
    let mut exporter = Exporter::open(args.metrics, args.metrics_file.clone())?;
    let progress = Progress::new();
    let live = Live::start(plan, options, &mut |program| progress.verifies(program));
    progress.end();
    let mut live = live.inspect_err(explain)?;
    if args.measure {
        live.measure(args.epoch);
    }
    let header = TraceHeader { chains, ..live.header().clone() };
    let mut kept = Kept::create(args.trace.as_deref(), &header, args.record.as_deref(), floor_ns)?;
    tell::in_force(&args.plan.display().to_string());
    notify("READY=1");
    exporter.start(&path)?;
    let ended = watch(&mut live, server, &args, &mut |events, entries| kept.write(events, entries))?;
    for line in remarks(&live) {
        report(Level::Warn, "remark", &line, &[]);
    }
    let last = so_far(&live);
    drop(exporter);
    notify("STOPPING=1");
    live.stop();
    live.drain(&mut |events: &[u8], entries: &[u8]| kept.write(events, entries))?;
    kept.finish()?;
    print(&last, args.json, args.stats_every.is_some())?;
    if let Some(exit) = ended {
        let message = format!("the kernel ended the plan: {} {} ({})", exit.reason, exit.message, exit.code);
        report(Level::Error, "plan_ended_by_kernel", &message, &[("reason", (&*exit.reason).into())]);
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// Until somebody ends the run, or the kernel does, which is returned.
fn watch(live: &mut Live, mut server: Server, args: &Args, keep: Keep) -> Result<Option<Exit>> {
    let begun = Instant::now();
    let mut service = Service::new(begun, args.policies.unwrap_or(0));
    if args.metrics.is_some() || args.metrics_file.is_some() {
        service.totals = Some(Totals::new(args.metrics_threads as usize));
    }
    let interval = args.stats_every.map(Duration::from_nanos);
    let (mut left_out, mut unmatched) = (tell::Threads::left_out(), tell::Threads::unmatched());
    let (mut shown, mut beside, mut unkept) = (begun, false, Unkept::new(begun));
    loop {
        live.turn(keep)?;
        service.rest(live);
        service.look(live);
        unkept.look(live);
        left_out.tell(&live.take_left_out());
        unmatched.tell(&live.take_unmatched());
        tell::guardian(&live.take_guardian());
        if !beside && live.kernel().side().overflows > 0 {
            beside = true;
            let used_up = match live.kernel().side().crowded {
                0 => "the pool of nodes and threads is used up",
                _ => "a user has as many threads as there is room for others",
            };
            report(Level::Warn, "pool_used_up", &format!("{used_up}; {BESIDE}"), &[]);
        }
        let ended = live.ended();
        let over = args.duration_ns.is_some_and(|limit| begun.elapsed() >= Duration::from_nanos(limit));
        if ended.is_some() || STOP.load(Ordering::Relaxed) || over {
            service.flush();
            return Ok(ended);
        }
        end_reservations(live, &mut service);
        std::mem::replace(&mut service.broken, Ok(()))?;
        if let Some(interval) = interval.filter(|interval| shown.elapsed() >= *interval) {
            shown +=
                interval * (shown.elapsed().as_nanos() / interval.as_nanos()).min(u32::MAX.into()) as u32;
            print(&so_far(live), args.json, true)?;
        }
        // Whoever asks is served at once, and news wait for that, but not for long.
        let until = Instant::now() + live.rest();
        loop {
            server.turn(&mut |asked, out| serve(live, asked, &mut service, keep, out));
            if service.broken.is_err() || !server.wait(until.saturating_duration_since(Instant::now())) {
                break;
            }
        }
    }
}

struct SoFar {
    /// What each has got up to now.
    report: Report,
    /// What the kernel side holds.
    kernel: Value,
    /// With --measure.
    measured: Option<Measure>,
}

fn so_far(live: &Live) -> SoFar {
    SoFar { report: live.report(), kernel: kernel_side(live), measured: live.measured() }
}

fn to_json(so_far: &SoFar) -> serde_json::Result<Value> {
    let mut json = serde_json::to_value(&so_far.report)?;
    json["kernel"] = so_far.kernel.clone();
    if let Some(measured) = &so_far.measured {
        json["measure"] = measure::to_json(slice::from_ref(measured));
    }
    Ok(json)
}

/// That on standard output; as one line of JSON where there are several.
fn print(so_far: &SoFar, json: bool, several: bool) -> Result<()> {
    match (json, several) {
        (true, true) => println!("{}", to_json(so_far)?),
        (true, false) => println!("{}", serde_json::to_string_pretty(&to_json(so_far)?)?),
        (false, _) => {
            print!("{}", so_far.report.tables());
            if let Some(measured) = &so_far.measured {
                print!("\n{}", measure::tables(slice::from_ref(measured), true));
            }
        }
    }
    Ok(std::io::stdout().flush()?)
}

/// Answer a request of the control socket.
fn serve(live: &mut Live, asked: Asked, service: &mut Service, keep: Keep, out: &mut Vec<u8>) -> Said {
    let changes = matches!(&*asked.request, "edit" | "edits" | "apply");
    if changes {
        service.observe(live);
    }
    let said = answer(live, asked, service, keep, out);
    if changes {
        service.observe(live);
    }
    said
}

fn answer(live: &mut Live, asked: Asked, service: &mut Service, keep: Keep, out: &mut Vec<u8>) -> Said {
    let answer = match &*asked.request {
        "edit" => return edit(live, asked, service, keep, out),
        "edits" => return edits(live, asked, service, keep, out),
        "apply" => apply(live, &asked.value(), service, keep),
        "constrain" | "unconstrain" => constrain(live, &asked.value()),
        "graph" => Ok(live.graph()),
        "jobs" => jobs(live, &asked.value()),
        "match_ended" => Ok(unmatched(live, &asked.value())),
        "measure" => measured(live),
        "metrics" => Ok(metrics(live, &asked.value(), service)),
        "plan" => plan(live, &asked.value(), service),
        "report" => to_json(&so_far(live)).map_err(|error| ("report".into(), error.to_string())),
        "snapshot" => {
            let request = asked.value();
            let mut snapshot = live.snapshot(request["threads"].as_u64().unwrap_or(0) as usize);
            if let Some(begin) = request["names_begin"].as_str() {
                snapshot.keep_named(begin);
            }
            return say(&snapshot, out);
        }
        "status" => {
            let request = asked.value();
            let (begin, all_edges) = (request["names_begin"].as_str(), request["all_edges"] == true);
            Ok(status(live, service, begin.unwrap_or(""), all_edges))
        }
        other => Err((
            "request_must_be_known".into(),
            format!("{other:?} is none of apply, constrain, edit, edits, graph, jobs, match_ended, measure, metrics, plan, report, snapshot, status, unconstrain"),
        )),
    };
    say(&answer?, out)
}

/// The text of the plan in force; only its revision, if that is the one that the asker knows.
fn plan(live: &mut Live, request: &Value, service: &Service) -> Served {
    let revision = live.revision();
    if request["unless"] == revision {
        return Ok(json!({ "revision": revision }));
    }
    written(live)?;
    let source = |source: &Arc<Source>| json!({ "name": source.name, "text": source.text });
    let sources: Vec<Value> = live.plan().sources.0.iter().map(source).collect();
    let placed: BTreeMap<&str, u32> = live.plan().placed().into_iter().collect();
    Ok(json!({ "revision": revision, "edited": service.edited, "sources": sources, "placed": placed }))
}

/// Threads that no longer match, after the one of this number.
fn unmatched(live: &Live, request: &Value) -> Value {
    let (last, list) = live.unmatched_after(request["after"].as_u64().unwrap_or(0));
    json!({ "last": last, "threads": list.into_iter().map(matched).collect::<Vec<_>>() })
}

/// A thread, what it matches or matched, and why it is not there.
fn matched(LeftOut { tid, comm, target, by, why }: &LeftOut) -> Value {
    json!({ "tid": tid, "comm": comm, "name": target, "by": by, "why": why })
}

/// `names_begin`: of parts, threads and promises with such names only. There may be thousands of others. `all_edges`: of these also the
/// edges to which nothing was promised.
fn status(live: &Live, service: &Service, names_begin: &str, all_edges: bool) -> Value {
    let (left_out, times) = live.left_out();
    let copy = |(node, by, whose): (String, By, String)| json!({ "node": node, by.name(): whose });
    json!({
        "plan": live.plan().name,
        "edited": service.edited,
        "pid": std::process::id(),
        "cpus": live.kernel().options().cpus,
        "elapsed_ns": service.begun.elapsed().as_nanos() as u64,
        "threads": live.threads(names_begin),
        "promises": live.promises(names_begin, all_edges),
        "copies": live.copies().into_iter().map(copy).collect::<Vec<_>>(),
        "left_out": left_out.into_iter().map(matched).collect::<Vec<_>>(),
        "match_left_out": times,
        "lock_waits": live.lock_waits(),
    })
}

/// The number of the thread that is asked for.
fn tid_of(request: &Value) -> Result<u32, (String, String)> {
    let tid = request["tid"].as_u64().and_then(|tid| u32::try_from(tid).ok());
    tid.ok_or_else(|| ("tid_must_be_given".to_string(), "`tid` has to be the number of a thread".to_string()))
}

fn unbound(tid: u32) -> (String, String) {
    ("thread_must_be_bound".into(), format!("thread {tid} belongs to no task or set of the plan (yet)"))
}

/// Those of the thread that is asked for.
fn jobs(live: &Live, request: &Value) -> Served {
    let tid = tid_of(request)?;
    let bound = live.bound().into_iter().find(|(bound, _)| *bound == tid && live.jobs(tid).is_some());
    let (_, name) = bound.ok_or_else(|| unbound(tid))?;
    let by = live.matched_by(tid).map(ToString::to_string);
    Ok(live.bound_thread(tid, name, by.as_deref()))
}

/// A time constraint for that thread, or its end; what refuses it is the engine.
fn constrain(live: &Live, request: &Value) -> Served {
    let tid = tid_of(request)?;
    let ns = |key: &str| {
        let missing = || (format!("{key}_must_be_given"), format!("{key}: nanoseconds"));
        request[key].as_u64().ok_or_else(missing)
    };
    let done = match request["request"] == "constrain" {
        true => live.constrain(tid, ns("work_ns")?, ns("within_ns")?),
        false => live.unconstrain(tid),
    };
    match done.ok_or_else(|| unbound(tid))? {
        Ok(()) => Ok(json!({ "tid": tid })),
        Err(Refusal::Engine(error)) => Err((error.name().into(), error.to_string())),
        Err(other) => Err(("kernel".into(), other.to_string())),
    }
}

/// As of now; without `--metrics` of this plan alone, however it was before.
fn metrics(live: &mut Live, request: &Value, service: &mut Service) -> Value {
    service.observe(live);
    if let Some(totals) = &service.totals {
        return metrics::answer(totals, request);
    }
    let mut fresh = Totals::new(0);
    fresh.observe(live.snapshot(0));
    metrics::answer(&fresh, request)
}

fn measured(live: &Live) -> Served {
    let refused = "this run does not measure: start it with `tierce run --measure`";
    let measured = live.measured().ok_or_else(|| ("run_must_measure".to_string(), refused.to_string()))?;
    let of = slice::from_ref(&measured);
    Ok(json!({ "measure": measure::to_json(of), "text": measure::tables(of, true) }))
}

fn apply(live: &mut Live, request: &Value, service: &mut Service, keep: Keep) -> Served {
    let cpus = live.kernel().options().cpus;
    let text = |source: &Value, key: &str| source[key].as_str().map(str::to_string);
    let sources = request["sources"].as_array().and_then(|list| {
        let source = |source| Some(Arc::new(Source::new(text(source, "name")?, text(source, "text")?)));
        list.iter().map(source).collect::<Option<Vec<_>>>().filter(|list| !list.is_empty())
    });
    let missing = || {
        (
            "sources_must_be_given".to_string(),
            "`sources` has to be [{ name, text }, …], the plan first".to_string(),
        )
    };
    let sources = Sources(sources.ok_or_else(missing)?);
    written(live)?;
    let plan = Plan::from_sources_after(&sources, tierce_plan::Options { cpus }, &live.standing());
    let plan = plan.and_then(|plan| plan.check_runnable(cpus).map(|()| plan));
    let plan = plan.map_err(|faults| ("plan_has_faults".to_string(), faults.to_string()))?;
    refuse_beside_a_manager(&plan)
        .map_err(|faults| ("match_can_be_forged".to_string(), faults.to_string()))?;
    let manner = Manner::of(request);
    let answer = put_into_force(live, plan, manner, service, keep)?;
    if !manner.dry_run {
        tell::in_force(&live.plan().name);
        service.edited = false;
        service.reserved.retain(|made| is_made_for(live.plan(), made));
    }
    Ok(answer)
}

/// What the plan would do with the threads there are now; 1 if some are refused what they match, or this machine cannot
/// enforce a plan.
/// `here`: CPUs of this machine.
fn dry_run(plan: &Plan, here: u32, json: bool) -> Result<ExitCode> {
    let mut threads = Proc::default().all();
    // Who may run on all CPUs here would on all of another machine.
    let free = threads.iter_mut().filter(|live| live.allowed_count >= here && !live.is_bound);
    free.for_each(|live| live.allowed = Cpus::ALL);
    let mut checksums = Checksums::default();
    for live in threads.iter_mut().filter(|live| plan.wants_checksum(&live.thread)) {
        live.thread.checksum = checksums.now(live.thread.tid);
    }
    let result = dry_run::dry_run(plan, &threads, Pools::default())?;
    match json {
        true => println!("{}", serde_json::to_string_pretty(&result.to_json())?),
        false => print!("{result}"),
    }
    let refusal = doctor::refuse().err();
    if let Some(refusal) = &refusal {
        eprintln!("{refusal}");
    }
    Ok(ExitCode::from(u8::from(refusal.is_some() || result.refused() > 0)))
}

/// What becomes of threads for which no node is left.
const BESIDE: &str = "further threads wait in a queue of their CPU and get only time that the plan leaves";

/// For programs: what the kernel side holds and has met.
fn kernel_side(live: &Live) -> Value {
    let (held, side) = (live.held(), live.kernel().side());
    let pool = |pool: tierce_scx::kernel::Pools| json!({ "nodes": pool.nodes, "edges": pool.edges });
    let cpu = |cpu: u32| {
        let (side, engine) = (live.kernel().cpu_side(cpu), live.kernel().cpu(cpu));
        json!({ "dispatches": side.dispatches, "wakes": side.wakes, "keeps": side.keeps, "misses": side.misses, "timers_set": side.arms,
            "timers_fired": side.fires, "timers_early": side.early, "forgotten": side.forgotten, "aways": side.aways,
            "pulls": engine.pulls, "pushes": engine.pushes })
    };
    let loaded = live.kernel().loaded();
    json!({
        "loaded_in_ns": loaded.took.as_nanos() as u64,
        "verified_instructions": loaded.verified_instructions,
        "pruned": loaded.pruned,
        "load_refusals": loaded.refusals,
        "used": pool(held.used),
        "plan": pool(held.plan),
        "threads": held.threads,
        "overflows": side.overflows,
        "crowded": side.crowded,
        "match_left_out": live.left_out().1,
        "displaced": side.displaced,
        "cpus": (0..live.kernel().options().cpus).map(cpu).collect::<Vec<_>>(),
    })
}

/// What the user should know at the end, beside the statistics.
fn remarks(live: &Live) -> Vec<String> {
    let side = live.kernel().side();
    let mut list = Vec::new();
    if side.overflows > 0 {
        list.push(format!(
            "{} threads found the pool of nodes and threads used up, or their user's share of it ({}); {BESIDE}",
            side.overflows, side.crowded
        ));
    }
    if let times @ 1.. = live.left_out().1 {
        list.push(format!("match_left_out: {times} times a thread that matches did not get its place"));
    }
    if side.displaced > 0 {
        let text =
            "threads could not stay in their task or set because of their affinity, or because a CPU went offline";
        list.push(format!("{} {text}: they are in the default node", side.displaced));
    }
    if side.lost > 0 {
        list.push(format!(
            "{} events were lost: statistics and trace are incomplete (--stats counts writes fewer events)",
            side.lost
        ));
    }
    if side.lost_entries > 0 {
        list.push(format!(
            "{} recorded entries were lost: the record cannot be replayed beyond",
            side.lost_entries
        ));
    }
    if std::env::var_os("TIERCE_DEBUG").is_some() {
        list.push(format!("{:?}", live.bound()));
        list.extend(
            (0..live.plan().machine.cpus).map(|cpu| format!("cpu {cpu}: {:?}", live.kernel().cpu_side(cpu))),
        );
        list.push(format!("{side:?} {:?}", live.kernel().pools()));
    }
    list
}
