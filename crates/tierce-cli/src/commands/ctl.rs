//! `tierce ctl`: look at the plan in force, and change one thing of it.

mod owned;
mod parameters;
mod tree;

use super::progress;
use anyhow::{bail, Result};
use clap::builder::PossibleValuesParser;
use owned::Owned;
pub use parameters::who;
use parameters::{on, Params, ON};
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_manager::LISTEN;
use tierce_plan::{Below, Edit, Keys};
use tierce_policy::policies;
use tierce_scx::socket;
use tree::tree;

/// Show the plan in force, and change one thing of it while it runs (root; with --request the owner of a scheduler)
///
/// An operation changes the plan that `tierce run` enforces, not its file: it adds or removes a node, begins or ends the
/// reservation of a thread, or changes a budget. No thread is stopped, and everything else keeps its state. If admission control
/// refuses the change, nothing has changed. `tierce ctl plan` prints the current text; `tierce apply FILE` returns to a file.
///
/// With --request ID the same operations divide a scheduler that the resource manager has granted you (`tierce request --policy …`), and no
/// root is needed. Names are then those of its parts, and --under may be left out: the part is directly below the scheduler.
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
    /// Divide the scheduler of this request, as its owner
    #[arg(long, value_name = "ID", global = true)]
    request: Option<u64>,
    /// With --request: where the manager listens
    #[arg(long, value_name = "PATH", global = true, default_value = LISTEN)]
    listen: PathBuf,
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
  tierce ctl create db --inside web --policy fair --budget 1ms --period 20ms --match cgroup=system.slice/db.service
                                                               1 ms of the 2 ms that web has is for db
  tierce ctl create pod --policy fair --under rt --on 0:100ms/1s --on 1:20ms/500ms --match cgroup=pod
                                                               another budget on each of two CPUs
  tierce ctl destroy web --all                                 its threads go where else they match
  tierce ctl plan > changed.toml                               keep what has become of it

Example, as an ordinary user, with a resource manager:
  tierce request --policy reservation --budget 20ms --period 100ms
                                                               request 3: a scheduler of your own
  tierce ctl --request 3 create video --policy fair --budget 50ms --period 500ms --match comm=mpv
                                                               half of it for all your threads of this name
  tierce ctl --request 3 reserve 1234 --budget 25ms --period 500ms
                                                               a quarter of it for thread 1234
  tierce ctl --request 3 set video --budget 40ms               less of it
  tierce ctl --request 3 list                                  the parts, and what each has received
  tierce ctl --request 3 destroy video --all

Exit codes: 0 done (--dry-run: could be); 1 refused, and the plan in force goes on as before; 2 none is in force, the command line
is wrong, or with --request: no manager answers, or the request or the thread is not yours.";

#[derive(clap::Subcommand)]
enum Operation {
    List(List),
    Plan(PlanText),
    Create(Create),
    Destroy(Destroy),
    Set(Set),
    Link(Link),
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

#[derive(clap::Args, Default)]
struct Editing {
    /// Show what would change, and whether it is possible; change nothing
    #[arg(long)]
    dry_run: bool,
    /// If this needs a policy that is not loaded, have another kernel object take over, with a short gap (`tierce apply --help`)
    #[arg(long)]
    reload: bool,
}

/// Create a node below another; with --match, these threads share it
///
/// With --inside, the budget of the new node is taken from that of another node. The other node (WEB) keeps its threads, and its budget
/// becomes that of a node WEB-budget, which first serves the reservation WEB-inner, with all nodes created inside of it, and then WEB.
#[derive(clap::Args)]
struct Create {
    /// Its name
    name: String,
    /// Its policy
    #[arg(long, value_parser = policy_names())]
    policy: String,
    /// The node above it [needed, except with --request]
    #[arg(long, value_name = "NODE")]
    under: Option<String>,
    /// The node from whose budget its budget is taken
    #[arg(long, value_name = "NODE", conflicts_with = "under")]
    inside: Option<String>,
    /// A budget on one CPU, below a `per_cpu` node [several: one on each of these CPUs]
    #[arg(long, value_name = "CPU:BUDGET/PERIOD[/DEADLINE]", value_parser = on)]
    on: Vec<Keys>,
    /// Threads: KEY=VALUE[,KEY=VALUE] as in `match` of a plan; a cgroup includes all cgroups below it [several: any of them]
    #[arg(long = "match", value_name = "WHO", value_parser = who)]
    who: Vec<Keys>,
    #[command(flatten)]
    keys: Params,
    #[command(flatten)]
    editing: Editing,
}

/// Add an edge: another parent for a node, task or set, or another replica of the same parent
///
/// A second parent gives time beyond a budget (`tierce ctl link web --under rest --weight 50`).
#[derive(clap::Args)]
struct Link {
    /// The node, task or set
    name: String,
    /// The node above [needed, except with --request]
    #[arg(long, value_name = "NODE")]
    under: Option<String>,
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
    /// The node above, usually a `reservation` [needed, except with --request]
    #[arg(long, value_name = "NODE")]
    under: Option<String>,
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
    /// The new node above [needed, except with --request]
    #[arg(long, value_name = "NODE")]
    under: Option<String>,
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

/// Request a time constraint for a thread: an amount of CPU time within a time from now
///
/// A node with the policy `constraint` above the thread answers: yes (exit code 0), or no with the name of the reason (1). A
/// time constraint ends when the work is done, the time is over, or the thread blocks. A thread that sleeps has it from its wake-up on.
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
    let (socket, json) = (socket::path(args.socket), args.json);
    let owned = args.request.map(|id| Owned { listen: args.listen, id });
    let operation = match (args.operation, &owned) {
        (Operation::List(_), Some(owned)) => return owned.show(json),
        (Operation::Plan(_) | Operation::Constrain(_) | Operation::Unconstrain(_), Some(_)) => {
            bail!(
                "--request does not go with this operation, which is about the whole plan or a single thread"
            )
        }
        (Operation::List(list), None) => return show(&socket, &list, json),
        (Operation::Plan(_), None) => return print_plan(&socket, json),
        (Operation::Constrain(Constrain { tid, work, within }), None) => {
            let request = json!({ "request": "constrain", "tid": tid, "work_ns": work, "within_ns": within });
            return tell(&socket, request, json);
        }
        (Operation::Unconstrain(Unconstrain { tid }), None) => {
            return tell(&socket, json!({ "request": "unconstrain", "tid": tid }), json);
        }
        (operation, _) => operation,
    };
    let (edits, editing) = operation.edits(owned.is_some())?;
    match owned {
        Some(_) if editing.reload => {
            bail!("--reload does not go with --request: only root has other policies loaded")
        }
        Some(owned) => owned.divide(edits, editing.dry_run, json),
        None => change(&socket, &edits, &editing, json),
    }
}

/// The node above: of an owner's part, his scheduler, unless he says another one.
fn above(under: Option<String>, is_owned: bool) -> Result<String> {
    match under {
        Some(under) => Ok(under),
        None if is_owned => Ok(String::new()),
        None => bail!("--under <NODE> is missing: the node above"),
    }
}

impl Operation {
    /// What changes the plan. `is_owned`: within the scheduler of a request.
    fn edits(self, is_owned: bool) -> Result<(Vec<Edit>, Editing)> {
        let (edit, editing) = match self {
            Self::Create(mut create) => {
                let editing = std::mem::take(&mut create.editing);
                return Ok((create.edits(is_owned)?, editing));
            }
            Self::Link(Link { name, under, keys, editing }) => {
                (Edit::Link { name, under: above(under, is_owned)?, keys: keys.0 }, editing)
            }
            Self::Destroy(Destroy { name, all, editing }) => {
                (Edit::Destroy { name, below: if all { Below::All } else { Below::Nothing } }, editing)
            }
            Self::Set(set) => set.edit()?,
            Self::Reserve(reserve) => reserve.edit(is_owned)?,
            Self::End(End { name, editing }) => (Edit::Destroy { name, below: Below::Threads }, editing),
            Self::Move(to) => to.edit(is_owned)?,
            Self::Default(DefaultNode { node, keys, editing }) => {
                (Edit::Default { name: node, keys: keys.0 }, editing)
            }
            Self::List(_) | Self::Plan(_) | Self::Constrain(_) | Self::Unconstrain(_) => {
                return Ok((Vec::new(), Editing::default()));
            }
        };
        Ok((vec![edit], editing))
    }
}

impl Create {
    /// The node, with its first edge; before it, what makes room for it inside of another; then its other edges.
    fn edits(self, is_owned: bool) -> Result<Vec<Edit>> {
        let Self { name, policy, under, inside, on, who, keys: Params(mut keys), editing: _ } = self;
        if let Some((key, _)) = keys.iter().find(|(key, _)| !on.is_empty() && ON.contains(&key.as_str())) {
            bail!("--{key} beside --on: --on CPU:BUDGET/PERIOD says it for each CPU");
        }
        let enclosed = inside.map(|outer| (Edit::Enclose { name: outer.clone() }, format!("{outer}-inner")));
        let (enclose, inner) = enclosed.unzip();
        let under = above(under.or(inner), is_owned)?;
        let mut on = on.into_iter();
        keys.extend(on.next().into_iter().flatten());
        let links: Vec<Edit> =
            on.map(|keys| Edit::Link { name: name.clone(), under: under.clone(), keys }).collect();
        let create = Edit::Create { name, policy: Some(policy), under, keys, who, cpus: None };
        Ok(enclose.into_iter().chain([create]).chain(links).collect())
    }
}

impl Set {
    fn edit(self) -> Result<(Edit, Editing)> {
        let Self { name, under, who, keys, editing } = self;
        if keys.0.is_empty() && who.is_empty() {
            bail!("nothing to set: give parameters (for example --budget 3ms), or --match");
        }
        Ok((Edit::Set { name, under, keys: keys.0, who }, editing))
    }
}

impl Reserve {
    fn edit(self, is_owned: bool) -> Result<(Edit, Editing)> {
        let Self { who, under, name, policy, each, keys, editing } = self;
        let alone = matches!(&who[..], [one] if one.len() == 1 && one[0].0 == "tid");
        let name = name.unwrap_or_else(|| name_of(&who));
        let policy = (!each && !alone).then_some(policy);
        let under = above(under, is_owned)?;
        Ok((Edit::Create { name, policy, under, keys: keys.0, who, cpus: Some(Vec::new()) }, editing))
    }
}

impl Move {
    fn edit(self, is_owned: bool) -> Result<(Edit, Editing)> {
        let Self { name, under, from, tasks, keys, editing } = self;
        let under = above(under, is_owned)?;
        if !is_number(&name) {
            return Ok((Edit::Move { name, tasks, from, under, keys: keys.0 }, editing));
        }
        if from.is_some() || tasks {
            bail!("--from and --tasks need the name of a task, set or node, not the number of a thread");
        }
        let who = vec![vec![("tid".to_string(), name)]];
        let (name, cpus) = (name_of(&who), Some(Vec::new()));
        Ok((Edit::Create { name, policy: None, under, keys: keys.0, who, cpus }, editing))
    }
}

/// Have the plan in force changed, and print what that changes.
fn change(socket: &Path, edits: &[Edit], editing: &Editing, json: bool) -> Result<ExitCode> {
    let mut request = json!({ "dry_run": editing.dry_run, "reload": editing.reload, "prove": true });
    match edits {
        [edit] => (request["request"], request["edit"]) = ("edit".into(), json!(edit)),
        edits => (request["request"], request["edits"]) = ("edits".into(), json!(edits)),
    }
    match socket::ask_within(socket, request, progress::patience(editing.reload))? {
        Ok(answer) if json => println!("{}", serde_json::to_string_pretty(&answer)?),
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
            if json {
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
fn tell(socket: &Path, request: Value, json: bool) -> Result<ExitCode> {
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

fn print_plan(socket: &Path, json: bool) -> Result<ExitCode> {
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

fn asked(socket: &Path, request: &str) -> Result<Value> {
    match socket::ask(socket, json!({ "request": request }))? {
        Ok(answer) => Ok(answer),
        Err((_, message)) => bail!("{message}"),
    }
}

fn show(socket: &Path, list: &List, json: bool) -> Result<ExitCode> {
    let answer = asked(socket, "graph")?;
    match json {
        true => println!("{}", serde_json::to_string_pretty(&answer)?),
        false => print!("{}", tree(&answer, list.threads)),
    }
    Ok(ExitCode::SUCCESS)
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
}
