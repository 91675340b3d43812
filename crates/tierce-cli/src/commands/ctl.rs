//! `tierce ctl`: look at the plan in force, and change one thing of it.

use super::progress;
use super::run::socket_path;
use anyhow::{bail, Result};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_plan::{show_time, Below, Edit, Keys};
use tierce_policy::{policies, Param, ParamKind, PolicyRecord};
use tierce_scx::socket;
use tierce_trace::units;

/// Show the plan in force, and change one thing of it while it runs (root)
///
/// An operation changes the plan that `tierce run` enforces, not its file: it adds or removes a node, begins or ends the
/// reservation of a thread, or changes a budget. No thread is stopped, and everything else keeps its state. If admission control
/// refuses the change, nothing has changed. `tierce ctl plan` prints the current text; `tierce apply FILE` returns to a file.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    operation: Operation,
    /// Write the result as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Socket of the plan in force [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Example, with examples/desktop.toml in force:
  tierce ctl list                                              what there is, and what each has got
  tierce ctl reserve 1234 --under rt --budget 2ms --period 10ms
                                                               2 ms in every 10 for thread 1234
  tierce ctl set tid-1234 --budget 1ms                         less of it
  tierce ctl end tid-1234                                      it is where it was before
  tierce ctl create web --policy fair --under rt --budget 2ms --period 20ms --match cgroup=system.slice/web.service
                                                               all that is in this cgroup or below, now or later, shares 2 ms
  tierce ctl destroy web --all                                 its threads go where else they match
  tierce ctl plan > changed.toml                               keep what has become of it

Exit codes: 0 done (--dry-run: could be); 1 refused, and the plan in force goes on as before; 2 none is in force, or the
command line is wrong.";

#[derive(clap::Subcommand)]
enum Operation {
    List(List),
    Plan(PlanText),
    Create(Create),
    Destroy(Destroy),
    Set(Set),
    Reserve(Reserve),
    End(End),
    Move(Move),
    Default(DefaultNode),
    Constrain(Constrain),
    Unconstrain(Unconstrain),
}

/// Show the nodes, tasks and threads in force as a tree, with the CPU time of each
///
/// The numbers count from the moment a part was added: CPU time, grants, throttles (its budget was used up), replenishments,
/// switches, migrations.
#[derive(clap::Args)]
#[command(visible_alias = "show")]
struct List {
    /// A line for each thread of a set and of the default node, instead of one for all
    #[arg(long)]
    threads: bool,
}

/// Print the text of the plan in force, with all changes
#[derive(clap::Args)]
struct PlanText {}

#[derive(clap::Args)]
struct Editing {
    /// Show what would change, and whether it is possible; change nothing
    #[arg(long)]
    dry_run: bool,
    /// If this needs a policy that is not loaded, have another kernel object take over, with a short gap (`tierce apply --help`)
    #[arg(long)]
    reload: bool,
}

/// Create a node below another; with --match, these threads share it
#[derive(clap::Args)]
struct Create {
    /// Its name
    name: String,
    /// Its policy
    #[arg(long, value_parser = policy_names())]
    policy: String,
    /// The node above it
    #[arg(long, value_name = "NODE")]
    under: String,
    /// Threads: KEY=VALUE[,KEY=VALUE] as in `match` of a plan; a cgroup includes all cgroups below it [several: any of them]
    #[arg(long = "match", value_name = "WHO", value_parser = who)]
    who: Vec<Keys>,
    #[command(flatten)]
    keys: Params,
    #[command(flatten)]
    editing: Editing,
}

/// Remove a node, task or set
#[derive(clap::Args)]
struct Destroy {
    /// Its name
    name: String,
    /// Remove everything below it, too; its threads go to another entry that they match, or to the default node
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    editing: Editing,
}

/// Set parameters of a node, or of the edge above a node, task or set
///
/// Parameters of the node's policy are set on the node, all others on the edge above it.
#[derive(clap::Args)]
struct Set {
    /// The node, task or set
    name: String,
    /// The parent of that edge; needed if there are several
    #[arg(long, value_name = "NODE")]
    under: Option<String>,
    /// Match other threads than before [several: any of them]
    #[arg(long = "match", value_name = "WHO", value_parser = who)]
    who: Vec<Keys>,
    #[command(flatten)]
    keys: Params,
    #[command(flatten)]
    editing: Editing,
}

/// Begin a reservation for running threads
///
/// WHO is the number of one thread, or KEY=VALUE as in `match` of a plan (pid=1234, comm=make*, cgroup=user.slice). Several
/// threads share one reservation: a node with a set of them is created. `tierce ctl end NAME` ends a reservation; that of one thread
/// ends with the thread. Below a node that exists once per CPU (`per_cpu`), a CPU with enough room is chosen, unless --cpu names one.
#[derive(clap::Args)]
struct Reserve {
    /// Number of a thread, or KEY=VALUE[,KEY=VALUE] [several: any of them]
    #[arg(required = true, value_parser = who)]
    who: Vec<Keys>,
    /// The node above, usually a `reservation`
    #[arg(long, value_name = "NODE")]
    under: String,
    /// Name of the new task or node [default: made from WHO, such as tid-1234]
    #[arg(long)]
    name: Option<String>,
    /// Policy by which several threads share it
    #[arg(long, value_parser = policy_names(), default_value = "fair")]
    policy: String,
    /// Not shared: each thread gets a reservation of its own
    #[arg(long, conflicts_with = "policy")]
    each: bool,
    #[command(flatten)]
    keys: Params,
    #[command(flatten)]
    editing: Editing,
}

/// End a reservation: its threads return to where they were
#[derive(clap::Args)]
struct End {
    /// The name that `tierce ctl reserve` gave it
    name: String,
    #[command(flatten)]
    editing: Editing,
}

/// Move a task, set or node below another node
///
/// Without parameters its edge keeps its parameters, if the policy above is the same.
#[derive(clap::Args)]
struct Move {
    /// Its name, or the number of a thread, which gets a task of its own there
    name: String,
    /// The new node above
    #[arg(long, value_name = "NODE")]
    under: String,
    /// Move it away from this parent only; its other parents stay
    #[arg(long, value_name = "NODE")]
    from: Option<String>,
    /// Move not the node itself, but all tasks and sets directly below it
    #[arg(long, conflicts_with = "from")]
    tasks: bool,
    #[command(flatten)]
    keys: Params,
    #[command(flatten)]
    editing: Editing,
}

/// Choose another default node: all threads that match nothing go there
///
/// The parameters hold for each of these threads; `--weight nice` follows its nice value.
#[derive(clap::Args)]
struct DefaultNode {
    /// Its name
    node: String,
    #[command(flatten)]
    keys: Params,
    #[command(flatten)]
    editing: Editing,
}

/// Request a time constraint for a runnable thread: an amount of CPU time within a time from now
///
/// A node with the policy `constraint` above the thread answers: yes (exit code 0), or no with the name of the reason (1). A
/// time constraint ends when the work is done, the time is over, or the thread blocks.
#[derive(clap::Args)]
struct Constrain {
    /// Number of the thread
    tid: u32,
    /// CPU time that it needs
    #[arg(long, value_name = "TIME", value_parser = super::time::time)]
    work: u64,
    /// Time from now until the deadline
    #[arg(long, value_name = "TIME", value_parser = super::time::time)]
    within: u64,
}

/// End the time constraint of a thread
#[derive(clap::Args)]
struct Unconstrain {
    /// Number of the thread
    tid: u32,
}

fn policy_names() -> PossibleValuesParser {
    PossibleValuesParser::new(policies().iter().map(|policy| policy.name))
}

/// `1234`, or `KEY=VALUE,KEY=VALUE`.
fn who(text: &str) -> Result<Keys, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return Ok(vec![("tid".into(), text.into())]);
    }
    let pair =
        |pair: &str| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.into(), value.into())),
            _ => Err("the number of a thread, or KEY=VALUE as in `match` of a plan: pid=1234, comm=make*"
                .to_string()),
        };
    text.split(',').map(pair).collect()
}

// ---- parameters: whatever the policies have ----------------------------------------------------------------------------

/// Keys of nodes and edges that belong to no policy.
const OTHER_KEYS: [(&str, &str, &str); 5] = [
    ("concurrency", "NUMBER", "CPUs that may run the node at once"),
    ("spread", "true|false", "of the node: a replica on each CPU, between which the tasks below it move"),
    ("rank", "NUMBER", "of the edge: which CPU gets a child that several want to run; larger wins"),
    ("when", "spent", "of the edge: used only while every other edge of the child has no budget left"),
    ("cpu", "NUMBER|any", "of the edge: which replica of the parent; any: one where there is room"),
];

/// What was given of them.
struct Params(Keys);

/// An option for each of them.
fn options(mut command: Command) -> Command {
    let mut known: BTreeMap<&str, (&str, Vec<String>)> = BTreeMap::new();
    for policy in policies() {
        for param in policy.edge_params.iter().chain(&policy.node_params) {
            let value = match param.kind {
                ParamKind::Time | ParamKind::DurationOf(_) => "TIME",
                ParamKind::Choice => "CHOICE",
                ParamKind::Count | ParamKind::Ratio => "NUMBER",
            };
            let meaning = format!("{}: {} ({})", policy.name, param.meaning, param.range(show_time));
            known.entry(param.name).or_insert((value, Vec::new())).1.push(meaning);
        }
    }
    for (key, value, meaning) in OTHER_KEYS {
        known.insert(key, (value, vec![meaning.to_string()]));
    }
    for (name, (value, meanings)) in known {
        let arg = Arg::new(name).long(name).value_name(value).allow_negative_numbers(true);
        command = command.arg(arg.help(meanings.join("; ")).help_heading("Parameters"));
    }
    command
}

impl clap::Args for Params {
    /// Only those of the operation that is asked for: there are many, and they are half of the work of a short request.
    fn augment_args(command: Command) -> Command {
        command.defer(options)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Params {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = policies().iter().flat_map(|policy| policy.node_params.iter().chain(&policy.edge_params));
        let mut names: Vec<&str> =
            names.map(|param| param.name).chain(OTHER_KEYS.map(|(key, ..)| key)).collect();
        names.sort_unstable();
        names.dedup();
        let given = |name: &str| Some((name.to_string(), matches.get_one::<String>(name)?.clone()));
        Ok(Params(names.into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = Self::from_arg_matches(matches)?.0;
        Ok(())
    }
}

// ---- what they do ------------------------------------------------------------------------------------------------------

/// A name for who has none.
fn name_of(who: &[Keys]) -> String {
    let words: Vec<String> = who.iter().flatten().map(|(key, value)| format!("{key}-{value}")).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = words.join("-").chars().map(plain).collect();
    let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Run `tierce ctl`.
pub fn run(args: Args) -> Result<ExitCode> {
    let socket = socket_path(args.socket);
    let (edit, editing) = match args.operation {
        Operation::List(list) => return show(&socket, &list, args.json),
        Operation::Plan(_) => return print_plan(&socket, args.json),
        Operation::Create(Create { name, policy, under, who, keys, editing }) => {
            (Edit::Create { name, policy: Some(policy), under, keys: keys.0, who, cpus: None }, editing)
        }
        Operation::Destroy(Destroy { name, all, editing }) => {
            (Edit::Destroy { name, below: if all { Below::All } else { Below::Nothing } }, editing)
        }
        Operation::Set(Set { name, under, who, keys, editing }) => {
            if keys.0.is_empty() && who.is_empty() {
                bail!("nothing to set: give parameters (for example --budget 3ms), or --match");
            }
            (Edit::Set { name, under, keys: keys.0, who }, editing)
        }
        Operation::Reserve(Reserve { who, under, name, policy, each, keys, editing }) => {
            let alone = matches!(&who[..], [one] if one.len() == 1 && one[0].0 == "tid");
            let name = name.unwrap_or_else(|| name_of(&who));
            let policy = (!each && !alone).then_some(policy);
            (Edit::Create { name, policy, under, keys: keys.0, who, cpus: Some(Vec::new()) }, editing)
        }
        Operation::End(End { name, editing }) => (Edit::Destroy { name, below: Below::Threads }, editing),
        Operation::Move(Move { name, under, from, tasks, keys, editing }) if is_number(&name) => {
            if from.is_some() || tasks {
                bail!("--from and --tasks need the name of a task, set or node, not the number of a thread");
            }
            let who = vec![vec![("tid".to_string(), name)]];
            let (name, cpus) = (name_of(&who), Some(Vec::new()));
            (Edit::Create { name, policy: None, under, keys: keys.0, who, cpus }, editing)
        }
        Operation::Move(Move { name, under, from, tasks, keys, editing }) => {
            (Edit::Move { name, tasks, from, under, keys: keys.0 }, editing)
        }
        Operation::Default(DefaultNode { node, keys, editing }) => {
            (Edit::Default { name: node, keys: keys.0 }, editing)
        }
        Operation::Constrain(Constrain { tid, work, within }) => {
            let request = json!({ "request": "constrain", "tid": tid, "work_ns": work, "within_ns": within });
            return tell(&socket, request, args.json);
        }
        Operation::Unconstrain(Unconstrain { tid }) => {
            return tell(&socket, json!({ "request": "unconstrain", "tid": tid }), args.json);
        }
    };
    let request =
        json!({ "request": "edit", "dry_run": editing.dry_run, "reload": editing.reload, "edit": edit });
    match socket::ask_within(&socket, request, progress::patience(editing.reload))? {
        Ok(answer) if args.json => println!("{}", serde_json::to_string_pretty(&answer)?),
        Ok(answer) => {
            let changes = answer["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
            changes.iter().for_each(|change| println!("{}", change["text"].as_str().unwrap_or_default()));
            progress::print(&answer);
            match (changes.is_empty(), editing.dry_run) {
                (true, _) => println!("nothing differs from the plan in force"),
                (_, true) => println!("can be done; nothing was changed"),
                _ => {}
            }
        }
        Err((rule, message)) => {
            if args.json {
                let error = json!({ "rule": rule, "message": message });
                println!(
                    "{}",
                    serde_json::to_string_pretty(&json!({ "version": 1, "applied": false, "error": error }))?
                );
            } else {
                eprintln!("tierce: refused, the plan in force goes on as before: {message}");
            }
            return Ok(ExitCode::from(1));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A message to the nodes above a thread, and what they say.
fn tell(socket: &std::path::Path, request: Value, json: bool) -> Result<ExitCode> {
    let (code, said) = match socket::ask(socket, request)? {
        Ok(_) => (0, json!({ "version": 1, "accepted": true })),
        Err((rule, message)) => {
            if !json {
                eprintln!("tierce: refused: {message}");
            }
            (1, json!({ "version": 1, "accepted": false, "error": { "rule": rule, "message": message } }))
        }
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&said)?);
    } else if code == 0 {
        println!("yes");
    }
    Ok(ExitCode::from(code))
}

fn print_plan(socket: &std::path::Path, json: bool) -> Result<ExitCode> {
    let answer = asked(socket, "plan")?;
    if json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
        return Ok(ExitCode::SUCCESS);
    }
    let sources = answer["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    for source in sources {
        let text = |key: &str| source[key].as_str().unwrap_or_default();
        if sources.len() > 1 {
            println!("# ---- {}", text("name"));
        }
        print!("{}", text("text"));
    }
    Ok(ExitCode::SUCCESS)
}

fn asked(socket: &std::path::Path, request: &str) -> Result<Value> {
    match socket::ask(socket, json!({ "request": request }))? {
        Ok(answer) => Ok(answer),
        Err((_, message)) => bail!("{message}"),
    }
}

// ---- the tree ----------------------------------------------------------------------------------------------------------

fn show(socket: &std::path::Path, list: &List, json: bool) -> Result<ExitCode> {
    let answer = asked(socket, "graph")?;
    match json {
        true => println!("{}", serde_json::to_string_pretty(&answer)?),
        false => print!("{}", tree(&answer, list.threads)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The graph as a tree, a line per part, and whoever ran outside of it.
fn tree(graph: &Value, each_thread: bool) -> String {
    let elapsed_ns = number(graph, "elapsed_ns");
    let mut text = format!("{}, in force for {}\n\n", word(graph, "plan"), units::time(elapsed_ns));
    let mut tree = Tree { graph, each_thread, elapsed_ns, drawn: Vec::new(), rows: Vec::new() };
    tree.rows.push(
        ["", "", "cpu", "share", "grants", "throttles", "replenished", "switches", "migrations"]
            .map(String::from),
    );
    for cpu in list(graph, "cpus") {
        tree.cpu(cpu);
    }
    tree.write(&mut text);
    let outside = list(graph, "outside");
    if !outside.is_empty() {
        text += "\noutside the graph (not scheduled by the plan):\n";
    }
    for thread in outside {
        let (ran, share) = (number(thread, "ran_ns"), units::percent(number(thread, "ran_ns"), elapsed_ns));
        let who = format!("{} ({}, {})", word(thread, "comm"), thread["tid"], word(thread, "class"));
        text += &format!("  {who}: {}, {share} of a CPU\n", units::time(ran));
    }
    text
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or(0)
}

fn word<'v>(of: &'v Value, key: &str) -> &'v str {
    of[key].as_str().unwrap_or("?")
}

fn list<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// `budget 2ms, period 10ms`: what is not its preset.
fn params(of: &Value, records: &[Param]) -> Vec<String> {
    let value = |param: &Param| match param.is_time() {
        true => of["params"][format!("{}_ns", param.name)].as_u64().map(show_time),
        false => of["params"].get(param.name).map(|is| is.to_string().trim_matches('"').to_string()),
    };
    let one = |param: &Param| {
        let is = value(param)?;
        let preset = match param.kind {
            ParamKind::DurationOf(other) => value(&records[other]),
            _ => param.preset.map(|preset| param.show(preset, show_time)),
        };
        (preset.as_ref() != Some(&is)).then(|| format!("{} {is}", param.name))
    };
    records.iter().filter_map(one).collect()
}

fn policy(name: &str) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.name == name)
}

const COLUMNS: usize = 9;

struct Tree<'g> {
    graph: &'g Value,
    each_thread: bool,
    elapsed_ns: u64,
    drawn: Vec<&'g str>,
    rows: Vec<[String; COLUMNS]>,
}

/// What several tasks, or one, have below a node.
#[derive(Default)]
struct Sum {
    supply_ns: u64,
    grants: u64,
    throttles: u64,
    replenishments: u64,
    task: Option<(u64, u64)>,
}

impl Sum {
    fn add(&mut self, edge: &Value, task: Option<&Value>) {
        self.supply_ns += number(edge, "supply_ns");
        self.grants += number(edge, "grants");
        self.throttles += number(edge, "throttles");
        self.replenishments += number(edge, "replenishments");
        if let Some(task) = task {
            let (switches, migrations) = self.task.unwrap_or_default();
            self.task = Some((switches + number(task, "switches"), migrations + number(task, "migrations")));
        }
    }
}

impl<'g> Tree<'g> {
    fn line(&mut self, name: String, what: String, sum: &Sum) {
        let count = |count: u64| if count == 0 { "-".into() } else { count.to_string() };
        let (switches, migrations) =
            sum.task.map_or(("".into(), "".into()), |task| (count(task.0), count(task.1)));
        let (cpu, share) = (units::time(sum.supply_ns), units::percent(sum.supply_ns, self.elapsed_ns));
        let [grants, throttles, replenished] = [sum.grants, sum.throttles, sum.replenishments].map(count);
        self.rows.push([name, what, cpu, share, grants, throttles, replenished, switches, migrations]);
    }

    fn cpu(&mut self, cpu: &'g Value) {
        let share = |ns: u64| units::percent(ns, self.elapsed_ns);
        let by = &cpu["stolen_by"];
        let what = format!(
            "used {}, idle {}, stolen {} (interrupts {}, threads {})",
            share(number(cpu, "used_ns")),
            share(number(cpu, "idle_ns")),
            share(number(cpu, "stolen_ns")),
            share(number(by, "interrupts_ns")),
            share(number(by, "threads_ns"))
        );
        let mut title: [String; COLUMNS] = Default::default();
        title[0] = format!("CPU {}: {what}", cpu["cpu"]);
        self.rows.push(title);
        let nodes = list(self.graph, "nodes");
        if let Some(root) = nodes.iter().find(|node| node["name"] == cpu["root"]) {
            let parent = format!("cpu{}", cpu["cpu"]);
            self.node("", "└─ ", "   ", root, &parent);
        }
    }

    fn node(&mut self, above: &str, branch: &str, below: &str, node: &'g Value, parent: &str) {
        let name = word(node, "name");
        let mut what = vec![word(node, "policy").to_string()];
        let mut sum = Sum::default();
        for edge in list(node, "under").iter().filter(|edge| edge["parent"] == parent) {
            what.extend(params(edge, self.below(parent)));
            sum.add(edge, None);
        }
        let seen = self.drawn.contains(&name);
        if seen {
            what.push("see above".into());
        } else {
            what.extend(params(node, policy(word(node, "policy")).map_or(&[], |policy| &policy.node_params)));
            what.extend((node["default"] == true).then(|| "default".to_string()));
        }
        self.line(format!("{above}{branch}{name}"), what.join(", "), &sum);
        if seen {
            return;
        }
        self.drawn.push(name);
        let above = format!("{above}{below}");
        let is_below = |part: &&Value| list(part, "under").iter().any(|edge| edge["parent"] == name);
        let nodes: Vec<&Value> = list(self.graph, "nodes").iter().filter(is_below).collect();
        let leaves = self.leaves(name);
        let count = nodes.len() + leaves.len();
        for (at, child) in nodes.into_iter().enumerate() {
            let (branch, below) = if at + 1 == count { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.node(&above, branch, below, child, name);
        }
        let last = leaves.len();
        for (at, (name, what, sum)) in leaves.into_iter().enumerate() {
            let branch = if at + 1 == last { "└─ " } else { "├─ " };
            self.line(format!("{above}{branch}{name}"), what, &sum);
        }
    }

    /// Parameters of edges below a node.
    fn below(&self, node: &str) -> &'static [Param] {
        let node = list(self.graph, "nodes").iter().find(|other| other["name"] == node);
        node.and_then(|node| policy(word(node, "policy"))).map_or(&[], |policy| &policy.edge_params)
    }

    /// Tasks, sets and threads directly below a node: name, parameters, numbers.
    fn leaves(&self, node: &str) -> Vec<(String, String, Sum)> {
        let (mut leaves, records) = (Vec::new(), self.below(node));
        let edges = |part: &'g Value| list(part, "under").iter().filter(move |edge| edge["parent"] == node);
        let all = list(self.graph, "tasks");
        let single = |task: &'g Value, name: &str| {
            let mut sum = Sum::default();
            edges(task).for_each(|edge| sum.add(edge, Some(task)));
            let mut what: Vec<String> = edges(task).flat_map(|edge| params(edge, records)).collect();
            what.extend(
                task["misses"].as_u64().map(|misses| format!("{} jobs, {misses} late", task["jobs"])),
            );
            let who = match (task["comm"].as_str(), task["tid"].as_u64()) {
                (Some(comm), Some(tid)) if comm == name => format!("{name} ({tid})"),
                (Some(comm), Some(tid)) => format!("{name} ({tid} {comm})"),
                _ => format!("{name} (no thread)"),
            };
            (who, what.join(", "), sum)
        };
        for task in all.iter().filter(|task| task["name"].is_string() && edges(task).next().is_some()) {
            leaves.push(single(task, word(task, "name")));
        }
        let sets = list(self.graph, "sets").iter().filter(|set| edges(set).next().is_some());
        let mut group = |set: &Value, title: &str, what: Vec<String>| {
            let of = |task: &&'g Value| {
                task["name"].is_null() && task["set"] == *set && edges(task).next().is_some()
            };
            let members: Vec<&'g Value> = all.iter().filter(of).collect();
            if self.each_thread && !members.is_empty() {
                leaves.extend(
                    members
                        .iter()
                        .map(|task| single(task, if title.is_empty() { word(task, "comm") } else { title })),
                );
                return;
            }
            let mut sum = Sum { task: Some((0, 0)), ..Sum::default() };
            members.iter().for_each(|task| edges(task).for_each(|edge| sum.add(edge, Some(task))));
            let s = if members.len() == 1 { "" } else { "s" };
            let threads = format!("{} thread{s}", members.len());
            if !title.is_empty() {
                leaves.push((format!("{title}: {threads}"), what.join(", "), sum));
            } else if !members.is_empty() {
                leaves.push((threads, String::new(), sum));
            }
        };
        for set in sets {
            group(
                &set["name"],
                word(set, "name"),
                edges(set).flat_map(|edge| params(edge, records)).collect(),
            );
        }
        group(&Value::Null, "", Vec::new());
        leaves
    }

    fn write(&self, text: &mut String) {
        let is_title = |row: &&[String; COLUMNS]| row[2..].iter().all(String::is_empty);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter(|row| !is_title(row))
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                let end = if column + 1 < COLUMNS { "  " } else { "" };
                line += &if column < 2 { format!("{cell}{pad}{end}") } else { format!("{pad}{cell}{end}") };
            }
            *text += line.trim_end();
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_who_has_none() {
        for (given, name) in [
            (&["1234"][..], "tid-1234"),
            (&["pid=7,comm=make*"], "pid-7-comm-make"),
            (&["cgroup=/system.slice/web.service", "9"], "cgroup-system-slice-web-service-tid-9"),
        ] {
            let given: Vec<Keys> = given.iter().map(|text| who(text).unwrap()).collect();
            assert_eq!(name_of(&given), name);
        }
        for text in ["", "audio", "comm=", "=x", "comm=a,b"] {
            assert!(who(text).is_err(), "{text}");
        }
    }

    fn edge(parent: &str, params: Value) -> Value {
        json!({ "parent": parent, "params": params, "supply_ns": 250_000_000, "grants": 4, "throttles": 3, "replenishments": 2 })
    }

    #[test]
    fn a_tree_of_what_is_in_force() {
        let thread = |set: Value, tid: u32| {
            let under = [edge("rest", json!({ "weight": 100, "warp_ns": 0 }))];
            json!({ "name": null, "set": set, "tid": tid, "comm": "make", "switches": 5, "migrations": 1, "misses": null, "under": under })
        };
        let budget = json!({ "budget_ns": 2_000_000, "period_ns": 10_000_000, "deadline_ns": 10_000_000 });
        let graph = json!({
            "plan": "p.toml",
            "elapsed_ns": 1_000_000_000u64,
            "cpus": (0..2).map(|cpu| json!({ "cpu": cpu, "root": "top", "used_ns": 500_000_000, "idle_ns": 400_000_000,
                "stolen_ns": 100_000_000, "stolen_by": { "interrupts_ns": 90_000_000, "threads_ns": 10_000_000 } })).collect::<Vec<_>>(),
            "outside": [{ "tid": 15, "comm": "irq/9", "class": "SCHED_FIFO", "ran_ns": 10_000_000 }],
            "nodes": [
                { "name": "top", "policy": "reservation", "params": {}, "default": false, "under": [edge("cpu0", json!({})), edge("cpu1", json!({}))] },
                { "name": "rest", "policy": "fair", "params": { "quantum_ns": 1_000_000 }, "default": true, "under": [edge("top", budget.clone())] },
            ],
            "sets": [{ "name": "build", "under": [{ "parent": "rest", "params": { "weight": 50, "warp_ns": 0 } }] }],
            "tasks": [
                { "name": "audio", "set": null, "tid": 7, "comm": "audio", "jobs": 9, "misses": 1, "switches": 5, "migrations": 0, "under": [edge("top", budget)] },
                thread(json!("build"), 8), thread(json!("build"), 9), thread(Value::Null, 10),
            ],
        });
        let text = tree(&graph, false);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in [
            "CPU 0: used 50.00 %, idle 40.00 %, stolen 10.00 % (interrupts 9.00 %, threads 1.00 %)",
            "└─ top reservation 250 ms 25.00 % 4 3 2",
            "├─ rest fair, budget 2ms, period 10ms, quantum 1ms, default 250 ms 25.00 % 4 3 2",
            "│ ├─ build: 2 threads weight 50 500 ms 50.00 % 8 6 4 10 2",
            "│ └─ 1 thread 250 ms 25.00 % 4 3 2 5 1",
            "└─ audio (7) budget 2ms, period 10ms, 9 jobs, 1 late 250 ms 25.00 % 4 3 2 5 -",
            "└─ top reservation, see above 250 ms 25.00 % 4 3 2",
            "irq/9 (15, SCHED_FIFO): 10 ms, 1.00 % of a CPU",
        ] {
            assert!(lines.iter().any(|other| other == line), "{line}\n{text}");
        }
        assert!(tree(&graph, true).contains("build (8 make)"));
    }
}
