//! `tierce check`: is the plan right, and do its promises hold?

use anyhow::{anyhow, Result};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::{Admission, PlanExt, Written, CHECK_VERSION};
use tierce_plan::{Faults, Options, Plan};
use tierce_policy::CPUS_MAX;

/// Names that are listed where one is not known.
const NAMES_MAX: usize = 20;

/// Check a plan: its text, and whether it is schedulable
///
/// Reports all faults of the text at once, with their places and what would help. Shows a plan without faults as a tree: the
/// demand of each part, what is available to it in the long run if all others that the plan counts demand as much as they may, and the guarantee
/// that it receives from above; a tick where a guarantee or deadline was proved, a cross where it was not, with the smallest
/// change that fixes it. Budgets and deadlines are decided with exact fractions. `tierce guarantee --help` has the types of guarantees. What a part `needs` is derived from its guarantee, or the
/// missing step is named.
///
/// Exit codes: 0 schedulable, and all needs are met; 1 not; 2 the plan has faults.
#[derive(clap::Args)]
pub struct Args {
    /// The plan
    plan: PathBuf,
    /// Also check what a live run needs: a root on every CPU, a default node with a guaranteed share, bounded waits
    #[arg(long)]
    run: bool,
    /// CPUs of the machine; a plan that names fewer has the default node on the others
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(CPUS_MAX)))]
    cpus: u32,
    /// Check for this machine: use its number of CPUs, and subtract what its higher scheduling classes (SCHED_DEADLINE,
    /// SCHED_FIFO, SCHED_RR) may take; with ROOT, for the machine whose /proc and /sys were recorded there
    #[arg(long, value_name = "ROOT", num_args = 0..=1, require_equals = true, default_missing_value = "/", conflicts_with = "cpus")]
    host: Option<PathBuf>,
    /// Write the verdict as JSON (documented in docs/plan-language.md)
    #[arg(long)]
    json: bool,
    /// Explain the guarantee of one node, task or set, step by step from its CPUs, or what a chain's tasks take; with --json, only its part of the verdict
    #[arg(long, value_name = "NAME")]
    explain: Option<String>,
    /// Write each fault and each failed guarantee as one line, for editors: FILE:LINE:COLUMN: RULE: MESSAGE
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    short: bool,
}

/// Run `tierce check`.
pub fn run(args: Args) -> Result<ExitCode> {
    let host = args.host.as_deref().map(tierce_scx::host::read).transpose()?;
    let online = host.as_ref().and_then(|host| host.above.online.last()).map(|last| (last + 1).min(CPUS_MAX));
    let plan = Plan::load_with(&args.plan, Options { cpus: online.unwrap_or(args.cpus) });
    let plan = plan.and_then(|plan| match &host {
        Some(host) => plan.on(&host.above),
        None => Ok(plan),
    });
    let plan = plan.and_then(|plan| {
        if args.run {
            plan.check_runnable(plan.machine.cpus)?;
        }
        Ok(plan)
    });
    let plan = match plan {
        Ok(plan) => plan,
        Err(faults) => {
            report(&args, &faults)?;
            return Ok(ExitCode::from(2));
        }
    };
    let admission = plan.admit();
    if args.short {
        let faults = admission.faults(&plan);
        if !faults.faults.is_empty() {
            println!("{faults}");
        }
    } else if let Some(name) = &args.explain {
        explain(&plan, &admission, name, args.json)?;
    } else if args.json {
        let host = host.map(|host| {
            let left = plan.machine.left.iter().enumerate();
            let cpus = left.map(|(cpu, left)| {
                serde_json::json!({ "cpu": cpu, "guarantee": left.guarantee.to_string(), "because": left.because })
            });
            serde_json::json!({ "cpus": cpus.collect::<Vec<_>>(), "notes": host.notes })
        });
        print_json(&Json { verdict: admission.json(&plan), host })?;
    } else {
        if let Some(host) = &host {
            for left in &plan.machine.left {
                println!("{}: {}", left.because, left.guarantee);
            }
            host.notes.iter().for_each(|note| println!("note: {note}"));
            println!();
        }
        print!("{}", admission.outline(&plan));
        if args.run {
            warn(&plan);
        }
    }
    Ok(ExitCode::from(u8::from(!admission.holds)))
}

/// One part of the verdict.
fn explain(plan: &Plan, admission: &Admission, name: &str, json: bool) -> Result<()> {
    let unknown = |close: Option<&str>| {
        let nodes = plan.nodes.iter().map(|node| &node.base);
        let tasks = plan.tasks.iter().filter(|task| task.set.is_none()).map(|task| &task.name);
        let mut names: Vec<_> = nodes.chain(tasks).chain(plan.sets.iter().map(|set| &set.name)).collect();
        names.extend(plan.chains.iter().map(|chain| &chain.name));
        names.dedup();
        names.truncate(NAMES_MAX);
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let hint = match close {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        anyhow!("name_must_be_known: the plan has no node, chain, task or set `{name}`; {hint}")
    };
    if json {
        print_json(&admission.explain_json(plan, name).map_err(unknown)?)?;
    } else {
        print!("{}", admission.explain(plan, name).map_err(unknown)?);
    }
    Ok(())
}

#[derive(serde::Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    verdict: Written<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<serde_json::Value>,
}

/// Of a large plan there is much: it is not held as text.
fn print_json(json: &impl serde::Serialize) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, json)?;
    Ok(writeln!(out)?)
}

/// What a live run allows but may come to regret.
fn warn(plan: &Plan) {
    for fault in plan.may_starve() {
        let hint = fault.hint.as_deref().unwrap_or_default();
        println!("! {}: {}: {} ({hint}).", plan.sources.place(fault.spot), fault.rule, fault.message);
    }
}

fn report(args: &Args, faults: &Faults) -> Result<()> {
    if args.json {
        let json = serde_json::json!({
            "version": CHECK_VERSION, "plan": args.plan.display().to_string(), "faults": faults.to_json(),
        });
        print_json(&json)?;
    } else if args.short {
        println!("{faults}");
    } else {
        eprint!("{}", faults.report());
        let s = if faults.faults.len() == 1 { "" } else { "s" };
        eprintln!("{}: {} fault{s}", args.plan.display(), faults.faults.len());
        let renamed = faults.faults.iter().filter(|fault| fault.fix.is_some()).count();
        if renamed > 0 {
            eprintln!("`tierce upgrade-plan` mends {renamed} by renaming");
        }
    }
    Ok(())
}
