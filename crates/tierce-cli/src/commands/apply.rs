//! `tierce apply`: another plan for the one in force.

use super::progress;
use anyhow::{bail, Result};
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::{Options, Plan};
use tierce_scx::doctor::Host;
use tierce_scx::socket;

/// Change the plan in force, while it runs (root)
///
/// Compares the plan that `tierce run` enforces with this one, by the names of nodes, tasks and sets, and changes only what
/// differs. No thread is stopped, and what is the same in both plans keeps its state (budgets, shares, deadlines). The change is
/// done as a whole or not at all: where a step may be refused, all are tried on a copy of the scheduler first.
///
/// A node is the same if its name, policy, concurrency and parents are the same. Otherwise it is a new node, with everything below
/// it, and its threads are in the default node for a moment. A larger budget holds from the next period on, a smaller one at
/// once. Threads that match another entry now move there. The roots of the CPUs, `[machine] cpus` and `[run]` cannot change:
/// for those, end `tierce run` and start it again.
///
/// The kernel object has the policies and parts that the plan needed when it was loaded. A plan that needs others is refused with
/// `policy_is_not_loaded`, or with --reload: a second object is loaded and verified while the first one goes on, and takes over with
/// all budgets, deadlines and threads. In between the machine is on its default scheduler for some milliseconds, which are printed,
/// and counted as stolen.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The new plan
    plan: PathBuf,
    /// Show what would change, and whether it is possible; change nothing
    #[arg(long)]
    dry_run: bool,
    /// If the new plan needs policies that are not loaded, have another kernel object take over, with a short gap
    #[arg(long)]
    reload: bool,
    /// Write what changed as JSON
    #[arg(long)]
    json: bool,
    /// Socket of the plan in force [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tierce apply desktop.toml --dry-run     + node batch: fair, below rest (weight 50)
  tierce apply desktop.toml               ~ edge from rt to audio: budget 2ms -> 3ms
  systemctl reload tierce@desktop         the same, for the service
  tierce apply turns.toml --reload        + node turns: round-robin, below rest (weight 50)

  +  comes    -  goes    >  is replaced: another place or kind    ~  stays, with other parameters

Exit codes: 0 in force (--dry-run: could be); 1 refused, and the plan in force goes on as before;
2 the plan has faults, or none is in force.";

/// Run `tierce apply`.
pub fn run(args: Args) -> Result<ExitCode> {
    let cpus = Host::here().cpus().unwrap_or(1);
    let plan = Plan::load_with(&args.plan, Options { cpus });
    let found = plan.and_then(|plan| {
        plan.check_runnable(plan.machine.cpus)?;
        for line in plan.is_so_only_in_simulation() {
            eprintln!("tierce: {line}");
        }
        Ok(plan.sources)
    });
    let sources = match found {
        Ok(sources) => sources,
        // Where tasks are now there may be room for all.
        Err(faults) if faults.faults.iter().all(|fault| fault.rule == "cpu_must_have_room") => faults.sources,
        Err(faults) => {
            eprint!("{}", faults.report());
            bail!("{}: the plan has faults", args.plan.display());
        }
    };
    // The texts, not the path: what was checked here is what is applied, wherever the plan in force looks for files.
    let texts: Vec<Value> =
        sources.0.iter().map(|source| json!({ "name": source.name, "text": source.text })).collect();
    let request = json!({ "request": "apply", "dry_run": args.dry_run, "reload": args.reload, "prove": true, "sources": texts });
    let patience = progress::patience(args.reload);
    match socket::ask_within(&socket::path(args.socket.clone()), request, patience)? {
        Ok(answer) => {
            if args.json {
                println!("{}", serde_json::to_string_pretty(&answer)?);
            } else {
                print(&args, &answer);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err((rule, message)) => {
            if args.json {
                let error =
                    json!({ "version": 1, "applied": false, "error": { "rule": rule, "message": message } });
                println!("{}", serde_json::to_string_pretty(&error)?);
            } else {
                eprintln!("tierce: refused, the plan in force goes on as before: {message}");
            }
            Ok(ExitCode::from(1))
        }
    }
}

fn print(args: &Args, answer: &Value) {
    let changes = answer["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    for change in changes {
        println!("{}", change["text"].as_str().unwrap_or_default());
    }
    progress::print(answer);
    let plan = args.plan.display();
    match (changes.is_empty(), args.dry_run) {
        (true, _) => println!("{plan}: nothing differs from the plan in force"),
        (_, true) => println!("{plan}: can be applied; nothing was changed"),
        (_, false) => println!("{plan} is in force"),
    }
}
