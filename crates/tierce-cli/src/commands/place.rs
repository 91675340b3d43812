//! `tierce place`: servers to CPUs, as a plan.

use super::analyse::read;
use anyhow::{bail, Context, Result};
use clap::ValueEnum;
use serde_json::{json, Value};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::percent;
use tierce_analysis::partition::{fewest_switches, partition, switches, Fit, Partition};
use tierce_analysis::{priorities, utilisation, Edf, Entry, FixedPriority, Response, Supply, Task};
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
    #[arg(long)]
    strategy: Strategy,
    /// Scheduling of the servers of a CPU
    #[arg(long, default_value = "fixed-priority")]
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// The lowest CPU on which all servers are schedulable, by decreasing utilisation
    First,
    /// The fullest CPU, by decreasing utilisation
    Best,
    /// The emptiest CPU, by decreasing utilisation
    Worst,
    /// By period, so that the periods on one CPU are as similar as possible
    Period,
    /// By period, dealt out: each CPU gets periods of all lengths
    Mixed,
    /// The best of the others by switches, then improved step by step while switches become fewer
    Switches,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// The larger priority
    FixedPriority,
    /// The earlier deadline
    Edf,
}

const FITS: [(Strategy, Fit); 5] = [
    (Strategy::First, Fit::First),
    (Strategy::Best, Fit::Best),
    (Strategy::Worst, Fit::Worst),
    (Strategy::Period, Fit::Period),
    (Strategy::Mixed, Fit::Mixed),
];

/// What is asked.
struct Question {
    args: Args,
    entries: Vec<Entry>,
    tasks: Vec<Task>,
    /// Of each server: the smaller, the higher its priority.
    levels: Vec<u32>,
}

/// What came of it.
struct Placement {
    /// Of each server.
    cpu_of: Vec<usize>,
    /// Of each server; `None` with EDF.
    responses: Vec<Option<Response>>,
}

/// Run `tierce place`.
pub fn run(args: Args) -> Result<ExitCode> {
    let asked = Question::new(args)?;
    let found = asked.place();
    if asked.args.json {
        println!("{}", serde_json::to_string_pretty(&asked.in_json(&found))?);
    } else {
        asked.print(&found);
    }
    let Ok(found) = found else { return Ok(ExitCode::from(1)) };
    if let Some(path) = &asked.args.output {
        let text = asked.plan(&found);
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Question {
    fn new(args: Args) -> Result<Self> {
        let entries = read(&args.servers)?;
        let given = entries.iter().filter(|entry| entry.priority.is_some()).count();
        if given != 0 && given != entries.len() {
            let all = entries.len();
            bail!("priorities_are_complete: {given} of {all} servers have a priority; give all of them one, or none");
        }
        for entry in &entries {
            let Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns } = entry.task;
            let name = &entry.name;
            if work_ns > deadline_ns || deadline_ns > period_ns {
                let (budget, deadline) = (show_time(work_ns), show_time(deadline_ns));
                let period = show_time(period_ns);
                bail!("budget_within_deadline_within_period: {name} has {budget}, {deadline}, {period}");
            }
            if jitter_ns + blocking_ns > 0 {
                bail!("servers_have_no_jitter: {name} has a jitter or a blocking time, bound 0");
            }
            let is_plain = |name: &str| {
                name.starts_with(|letter: char| letter.is_ascii_alphabetic())
                    && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
            };
            if !is_plain(name) || args.rest.as_ref().is_some_and(|rest| !is_plain(rest)) {
                bail!(
                    "name_must_be_plain: {name:?} would be a name in the plan, bound [A-Za-z][A-Za-z0-9_-]*"
                );
            }
            if args.rest.as_ref() == Some(name) || ["cpu", "servers"].contains(&&name[..]) {
                bail!("name_is_unique: {name} is the name of another part of the plan");
            }
        }
        let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
        let mut levels = vec![0; tasks.len()];
        if given > 0 {
            let mut all: Vec<_> = entries.iter().map(|entry| std::cmp::Reverse(entry.priority)).collect();
            all.sort();
            all.dedup();
            for (level, entry) in levels.iter_mut().zip(&entries) {
                *level = u32::try_from(all.partition_point(|other| other.0 > entry.priority))?;
            }
        } else {
            let order = priorities::rate_monotonic(&tasks);
            (0..).zip(order).for_each(|(rank, index)| levels[index] = rank);
        }
        Ok(Self { args, entries, tasks, levels })
    }

    /// Of the servers on one CPU, as they are listed.
    fn responses(&self, members: &[usize]) -> Vec<Response> {
        let mut order: Vec<_> = (0..members.len()).collect();
        order.sort_by_key(|at| self.levels[members[*at]]);
        let tasks: Vec<_> = order.iter().map(|at| self.tasks[members[*at]]).collect();
        let levels: Vec<_> = order.iter().map(|at| self.levels[members[*at]]).collect();
        let mut fixed = FixedPriority::new();
        let mut responses = vec![Response::Unbounded; members.len()];
        let found = fixed.responses_by_level(&tasks, &levels, &Supply::WHOLE);
        order.iter().zip(found).for_each(|(at, response)| responses[*at] = *response);
        responses
    }

    fn holds(&self, members: &[usize]) -> bool {
        match self.args.order {
            Order::FixedPriority => {
                let responses = self.responses(members);
                members
                    .iter()
                    .zip(responses)
                    .all(|(index, response)| response.meets(self.tasks[*index].deadline_ns))
            }
            Order::Edf => {
                let tasks: Vec<_> = members.iter().map(|index| self.tasks[*index]).collect();
                Edf::new().schedulable_quickly(&tasks, &Supply::WHOLE)
            }
        }
    }

    fn on(&self, cpu_of: &[usize], cpu: usize) -> Vec<usize> {
        (0..cpu_of.len()).filter(|index| cpu_of[*index] == cpu).collect()
    }

    /// Millionths per second, on all CPUs.
    fn switches(&self, cpu_of: &[usize]) -> u128 {
        let on = |cpu: u32| self.on(cpu_of, cpu as usize);
        (0..self.args.cpus).map(|cpu| switches(&self.tasks, &self.levels, &on(cpu))).sum()
    }

    /// The placement, or the server that fits nowhere.
    fn place(&self) -> Result<Placement, usize> {
        let cpus = self.args.cpus as usize;
        let by = |fit| match partition(&self.tasks, cpus, fit, |members| self.holds(members)) {
            Partition::Fits(cpu_of) => Ok(cpu_of),
            Partition::Fails(index) => Err(index),
        };
        let cpu_of = match FITS.iter().find(|(strategy, _)| *strategy == self.args.strategy) {
            Some((_, fit)) => by(*fit)?,
            None => {
                let all: Vec<_> = FITS.iter().map(|(_, fit)| by(*fit)).collect();
                let least = all.iter().flatten().min_by_key(|cpu_of| self.switches(cpu_of)).cloned();
                let start = match least {
                    Some(start) => start,
                    None => return Err(all.into_iter().find_map(Result::err).unwrap_or(0)),
                };
                fewest_switches(&self.tasks, &self.levels, cpus, start, |members| self.holds(members))
            }
        };
        let mut responses = vec![None; cpu_of.len()];
        if self.args.order == Order::FixedPriority {
            for cpu in 0..cpus {
                let members = self.on(&cpu_of, cpu);
                let found = self.responses(&members);
                members.iter().zip(found).for_each(|(index, found)| responses[*index] = Some(found));
            }
        }
        Ok(Placement { cpu_of, responses })
    }

    fn refusal(&self, index: usize) -> String {
        let Entry { name, task, .. } = &self.entries[index];
        format!(
            "server_fits_nowhere: {name} ({} per {}) fits on none of the {} CPUs, after the servers that were placed before it.",
            show_time(task.work_ns),
            show_time(task.period_ns),
            self.args.cpus
        )
    }

    fn print(&self, found: &Result<Placement, usize>) {
        let found = match found {
            Ok(found) => found,
            Err(index) => return println!("Cannot be placed: {}", self.refusal(*index)),
        };
        println!(
            "{:>3}  {:<15}  {:>10}  {:>10}  {:>10}  {:>10}",
            "cpu", "server", "budget", "period", "deadline", "response"
        );
        for cpu in 0..self.args.cpus as usize {
            for index in self.on(&found.cpu_of, cpu) {
                let Entry { name, task, .. } = &self.entries[index];
                let response = found.responses[index].and_then(Response::ns).map_or("-".into(), show_time);
                let times = [task.work_ns, task.period_ns, task.deadline_ns].map(show_time);
                let [budget, period, deadline] = times;
                println!("{cpu:>3}  {name:<15}  {budget:>10}  {period:>10}  {deadline:>10}  {response:>10}");
            }
        }
        println!();
        for cpu in 0..self.args.cpus as usize {
            let members = self.on(&found.cpu_of, cpu);
            let tasks: Vec<_> = members.iter().map(|index| self.tasks[*index]).collect();
            println!(
                "cpu {cpu}: {} servers, {}, about {} switches per second",
                members.len(),
                percent(&utilisation(&tasks)),
                per_second(switches(&self.tasks, &self.levels, &members))
            );
        }
        println!("Placed: about {} switches per second.", per_second(self.switches(&found.cpu_of)));
    }

    fn in_json(&self, found: &Result<Placement, usize>) -> Value {
        let name =
            |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_string());
        let mut value = json!({
            "version": VERSION, "strategy": name(self.args.strategy.to_possible_value()),
            "order": name(self.args.order.to_possible_value()), "cpus": self.args.cpus, "placed": found.is_ok(),
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
                value["servers"] = self.entries.iter().enumerate().map(server).collect();
                value["micro_switches_per_second"] = json!(self.switches(&found.cpu_of) as u64);
            }
            Err(index) => {
                let (name, message) = (&self.entries[*index].name, self.refusal(*index));
                value["refusal"] =
                    json!({ "rule": "server_fits_nowhere", "server": name, "message": message });
            }
        }
        value
    }

    /// The plan's text: a scheduler of servers per CPU, and where asked for what is below them.
    fn plan(&self, found: &Placement) -> String {
        let mut text = format!(
            "# {} servers on {} CPUs, about {} switches per second. Written by tierce place.\n\n[machine]\ncpus = {}\n",
            self.entries.len(),
            self.args.cpus,
            per_second(self.switches(&found.cpu_of)),
            self.args.cpus
        );
        let rest = self.args.rest.as_ref();
        if rest.is_some() {
            text += "\n[node.cpu]\npolicy = \"fixed-priority\"\nper_cpu = true\n";
        }
        text += "\n[node.servers]\npolicy = \"reservation\"\nper_cpu = true\n";
        if self.args.order == Order::FixedPriority {
            text += "order = \"fixed-priority\"\nreplenishment = \"periodic\"\n";
        }
        if rest.is_some() {
            text += "under.cpu = { priority = 1 }\n";
        }
        let lowest = self.levels.iter().max().copied().unwrap_or(0);
        for (index, Entry { name, task, .. }) in self.entries.iter().enumerate() {
            let mut edge = format!("cpu = {}, {}", found.cpu_of[index], given("budget", task.work_ns));
            let _ = write!(edge, ", {}", given("period", task.period_ns));
            if task.deadline_ns != task.period_ns {
                let _ = write!(edge, ", {}", given("deadline", task.deadline_ns));
            }
            if self.args.order == Order::FixedPriority {
                let _ = write!(edge, ", priority = {}", lowest - self.levels[index]);
            }
            let _ = write!(text, "\n[task.{name}]\nunder.servers = {{ {edge} }}\n");
            let _ = write!(text, "load = \"busy\"\nmatch = {{ comm = \"{name}\" }}\n");
        }
        if let Some(name) = rest {
            let each = |cpu| format!("{{ cpu = {cpu}, priority = 0 }}");
            let under = (0..self.args.cpus).map(each).collect::<Vec<_>>().join(", ");
            let _ = write!(
                text,
                "\n# All other threads: the time that the servers leave.\n[node.{name}]\npolicy = \"fair\"\n"
            );
            let _ = write!(text, "default = true\nunder.cpu = [{under}]\n");
        }
        text
    }
}

fn given(key: &str, ns: u64) -> String {
    format!("{key} = \"{}\"", show_time(ns))
}

fn per_second(millionths: u128) -> String {
    format!("{}.{}", millionths / 1_000_000, millionths / 100_000 % 10)
}
