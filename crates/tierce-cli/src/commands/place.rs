//! `tierce place`: servers to CPUs, as a plan.

use super::analyse::{one_of, read};
use anyhow::{Context, Result};
use serde_json::{json, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::percent;
use tierce_admission::servers::{check_server_names, per_second, plan_of_servers};
use tierce_analysis::placement::{Order, Placement, Question, Strategy};
use tierce_analysis::question::Named as _;
use tierce_analysis::{utilisation, Entry, Response};
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Place servers on several CPUs, each on one, and write the plan
///
/// A server is a budget in each period: a line of the table, as for `tierce analyse`, whose work is the budget. Each CPU schedules its
/// servers by fixed priorities (those of the table; larger is higher; without them a shorter period is higher) or by earliest
/// deadline. A placement is valid if every server gets its budget within its deadline, by the exact test.
///
/// Compare strategies by their switches to servers per second, an estimate for arbitrary phases: each switch costs CPU time.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table (CSV)
    #[arg(value_name = "SERVERS.csv")]
    servers: PathBuf,
    /// CPUs
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=i64::from(tierce_policy::CPUS_MAX)))]
    cpus: u32,
    /// Which CPU a server goes to
    #[arg(long, value_parser = one_of::<Strategy>())]
    strategy: Strategy,
    /// Scheduling of the servers of a CPU
    #[arg(long, default_value = "fixed-priority", value_parser = one_of::<Order>())]
    order: Order,
    /// Write the plan
    #[arg(short, long, value_name = "PLAN.toml")]
    output: Option<PathBuf>,
    /// A default node of that name below the servers of each CPU, as `tierce run` wants it
    #[arg(long, value_name = "NAME")]
    rest: Option<String>,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tierce place --cpus 2 --strategy period servers.csv
  tierce place --cpus 2 --strategy switches servers.csv -o plan.toml
  tierce sim plan.toml --for 10s                            count the switches in a simulation
  tierce place --cpus 4 --strategy worst --order edf servers.csv --json

Exit codes: 0 placed, 1 a server fits nowhere, 2 bad input.";

/// Run `tierce place`.
pub fn run(args: Args) -> Result<ExitCode> {
    let asked = Question::new(read(&args.servers)?, args.cpus, args.strategy, args.order)?;
    check_server_names(&asked, args.rest.as_deref())?;
    let found = asked.place();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&in_json(&asked, &found))?);
    } else {
        print(&asked, &found);
    }
    let Ok(found) = found else { return Ok(ExitCode::from(1)) };
    if let Some(path) = &args.output {
        let text = plan_of_servers(&asked, &found, args.rest.as_deref())?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(asked: &Question, found: &Result<Placement, usize>) {
    let found = match found {
        Ok(found) => found,
        Err(index) => return println!("Cannot be placed: {}", asked.refusal(*index)),
    };
    println!(
        "{:>3}  {:<15}  {:>10}  {:>10}  {:>10}  {:>10}",
        "cpu", "server", "budget", "period", "deadline", "response"
    );
    for cpu in 0..asked.cpus as usize {
        for index in asked.on(&found.cpu_of, cpu) {
            let Entry { name, task, .. } = &asked.entries[index];
            let response = found.responses[index].and_then(Response::ns).map_or("-".into(), show_time);
            let times = [task.work_ns, task.period_ns, task.deadline_ns].map(show_time);
            let [budget, period, deadline] = times;
            println!("{cpu:>3}  {name:<15}  {budget:>10}  {period:>10}  {deadline:>10}  {response:>10}");
        }
    }
    println!();
    for cpu in 0..asked.cpus as usize {
        let members = asked.on(&found.cpu_of, cpu);
        let tasks: Vec<_> = members.iter().map(|index| asked.tasks[*index]).collect();
        println!(
            "cpu {cpu}: {} servers, {}, about {} switches per second",
            members.len(),
            percent(&utilisation(&tasks)),
            per_second(asked.switches_on(&found.cpu_of, cpu))
        );
    }
    println!("Placed: about {} switches per second.", per_second(asked.switches(&found.cpu_of)));
}

fn in_json(asked: &Question, found: &Result<Placement, usize>) -> Value {
    let mut value = json!({
        "version": VERSION, "strategy": asked.strategy.name(),
        "order": asked.order.name(), "cpus": asked.cpus, "placed": found.is_ok(),
    });
    match found {
        Ok(found) => {
            let server = |(index, entry): (usize, &Entry)| {
                json!({
                    "name": entry.name, "cpu": found.cpu_of[index], "budget_ns": entry.task.work_ns,
                    "period_ns": entry.task.period_ns, "deadline_ns": entry.task.deadline_ns,
                    "response_ns": found.responses[index].and_then(Response::ns),
                })
            };
            value["servers"] = asked.entries.iter().enumerate().map(server).collect();
            value["micro_switches_per_second"] = json!(asked.switches(&found.cpu_of) as u64);
        }
        Err(index) => {
            let refusal = asked.refusal(*index);
            value["refusal"] = json!({
                "rule": refusal.rule, "server": asked.entries[*index].name, "message": refusal.to_string(),
            });
        }
    }
    value
}
