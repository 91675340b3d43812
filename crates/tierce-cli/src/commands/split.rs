//! `tierce split`: tasks to CPUs, some of them split over two, as a plan.

mod drawing;
mod zero_laxity;

use super::analyse::{read_set, time};
use super::picture;
use anyhow::{bail, Context, Result};
use clap::ValueEnum;
use serde_json::{json, Value};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::{percent, percent_given};
use tierce_analysis::retas::Row;
use tierce_analysis::split::{
    assign, bound, remedy, slot_ns, Algorithm, Assignment, Costs, Interrupt, Piece, Question, Refusal,
    Remedy, Server,
};
use tierce_analysis::{short_fraction, utilisation, Entry};
use tierce_guarantee::{ratio, whole, Exact};
use tierce_plan::show_time;

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Place tasks on several CPUs, splitting some over two, and write the plan
///
/// Time is divided into slots; --delta is their number in the shortest period. In each slot a server (a split task, or the tasks of one
/// CPU or bin, by earliest deadline) has a reserve on one CPU, or at the end of one CPU's slot and the begin of the next one's. All
/// deadlines are met, with few migrations, even where no partition fits. Deadlines are periods; a shorter one counts as the
/// period, and a longer one is not used. The table is that of `tierce analyse`, or a task set of ReTAS.
///
/// Overheads are included: --switch, --timer, --migration and --level go into the plan's costs. Together they are one switch (with
/// three levels); a job pays for three switches, and a reserve's jitter is four, unless --reserve-jitter is given.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table (CSV), or eight numbers a line (ReTAS)
    #[arg(value_name = "TASKS.csv")]
    tasks: PathBuf,
    /// Algorithm: what is split
    #[arg(long)]
    algorithm: Name,
    /// CPUs
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=CPUS_MAX))]
    cpus: u32,
    /// Slots in the shortest period: with more slots more tasks fit, and there are more switches
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    delta: u32,
    /// With c-nps-f: CPUs per cluster, a divisor of the number of CPUs; servers stay within a cluster
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=CPUS_MAX))]
    cluster: Option<u32>,
    /// Write the plan
    #[arg(short, long, value_name = "PLAN.toml")]
    output: Option<PathBuf>,
    /// Draw two slots of each CPU: as .svg, .pdf or .png, by the ending of the name
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// A default node of that name for all other threads, as `tierce run` wants it: a reserve on each CPU, and what the others leave
    #[arg(long, value_name = "NAME")]
    rest: Option<String>,
    /// With --rest: length of this reserve on each CPU; preset: a hundredth of the slot, at least 1us
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, requires = "rest")]
    rest_time: Option<u64>,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    json: bool,
    /// CPU time of a switch to another task
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, allow_hyphen_values = true)]
    switch: u64,
    /// CPU time of a timer that expires
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, allow_hyphen_values = true)]
    timer: u64,
    /// Additional CPU time if the task last ran on another CPU
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, allow_hyphen_values = true)]
    migration: u64,
    /// Additional CPU time for each node on the path of the task
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, allow_hyphen_values = true)]
    level: u64,
    /// Longest time from the begin of a reserve until its task runs; preset: four switches
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    reserve_jitter: Option<u64>,
    /// Longest time from a release until the job is ready
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, allow_hyphen_values = true)]
    release_jitter: u64,
    /// Ticks and other interrupts of each CPU: duration and shortest distance
    #[arg(long, value_name = "TIME/TIME,…", value_delimiter = ',', value_parser = interrupt, allow_hyphen_values = true)]
    interrupts: Vec<Interrupt>,
}

impl Args {
    /// What C=D does not have.
    fn check_parts(&self) -> Result<()> {
        if self.output.is_some() || self.picture.is_some() || self.rest.is_some() || self.cluster.is_some() {
            bail!(
                "c_d_is_an_analysis: leave out --output, --picture, --rest and --cluster: in a plan a task can use the budgets of two \
                 parents, but not one after the other"
            );
        }
        let costs = [self.switch, self.timer, self.migration, self.level, self.release_jitter];
        if costs.iter().any(|cost| *cost > 0) || self.reserve_jitter.is_some() || !self.interrupts.is_empty()
        {
            bail!("c_d_has_no_costs: leave out costs, interrupts and jitters of the machine; the table may have a column jitter");
        }
        Ok(())
    }
}

const CPUS_MAX: i64 = tierce_policy::CPUS_MAX as i64;
/// What the policy takes.
const SLOT_MIN_NS: u64 = 10_000;
const SLOT_MAX_NS: u64 = 1_000_000_000;
const PIECE_MIN_NS: u64 = 1_000;
/// Nodes above a task: slots and edf, and the task's own level.
const LEVELS: u64 = 3;
/// What the kernel keeps of a thread's name.
const COMM_MAX: usize = 15;

const EXAMPLES: &str = "\
Examples:
  tierce split --algorithm s-ekg --cpus 4 tasks.csv -o plan.toml --picture plan.png
  tierce sim plan.toml --for 10s
  tierce split --algorithm nps-f --cpus 4 --delta 8 --switch 2us --timer 1us --interrupts 1us/1ms tasks.csv
  tierce split --algorithm c-nps-f --cpus 24 --cluster 6 tasks.csv -o plan.toml
  tierce split --algorithm c=d --cpus 2 tasks.csv
  tierce split --algorithm s-ekg --cpus 2 --rest others --reserve-jitter 50us tasks.csv -o plan.toml   for tierce run

Exit codes: 0 assigned, 1 it cannot be (with the bound, and the nearest N or M that works), 2 bad input.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Single tasks; each CPU's own tasks also use what these leave (Andersson & Bletsas 2008)
    SEkg,
    /// Bins of tasks (Bletsas & Andersson 2009)
    NpsF,
    /// The same within clusters of CPUs
    CNpsF,
    /// Single tasks, by EDF: a part without laxity on one CPU, then the rest on another (Burns et al. 2012); no plan is written
    #[value(name = "c=d")]
    CEqualsD,
}

/// `1us/1ms`.
fn interrupt(text: &str) -> Result<Interrupt, String> {
    let Some((takes, every)) = text.split_once('/') else {
        return Err(format!("interrupt_must_have_its_times: TAKES/EVERY, such as 1us/1ms: {text}"));
    };
    let (takes_ns, every_ns) = (time(takes)?, time(every)?);
    if takes_ns == 0 || takes_ns >= every_ns {
        return Err(format!("interrupts_must_leave_time: {text}, bound 0 < TAKES < EVERY"));
    }
    Ok(Interrupt { every_ns, takes_ns })
}

/// What is asked, and what came of it.
struct Outcome {
    args: Args,
    entries: Vec<Entry>,
    rows: Option<Vec<Row>>,
    question: Question,
    found: Result<Assignment, Refusal>,
    remedy: Remedy,
}

/// Run `tierce split`.
pub fn run(args: Args) -> Result<ExitCode> {
    picture::check(args.picture.as_deref())?;
    if args.algorithm == Name::CEqualsD {
        args.check_parts()?;
        return zero_laxity::run(&args.tasks, args.cpus, args.json);
    }
    let outcome = Outcome::new(args)?;
    if outcome.args.json {
        println!("{}", serde_json::to_string_pretty(&outcome.in_json())?);
    } else {
        outcome.print();
    }
    let Ok(found) = &outcome.found else { return Ok(ExitCode::from(1)) };
    if let Some(path) = &outcome.args.output {
        std::fs::write(path, outcome.plan(found))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &outcome.args.picture {
        picture::write(&outcome.drawn(found), path)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Outcome {
    fn new(args: Args) -> Result<Self> {
        let (entries, rows) = read_set(&args.tasks)?;
        let algorithm = match (args.algorithm, args.cluster) {
            (Name::SEkg, None) => Algorithm::SEkg,
            (Name::NpsF, None) => Algorithm::NpsF,
            (Name::CNpsF, Some(cluster)) => Algorithm::Clustered(cluster),
            (Name::CNpsF, None) => bail!("cluster_must_be_given: c-nps-f needs --cluster"),
            _ => bail!("cluster_is_of_c_nps_f: --cluster is an option of --algorithm c-nps-f only"),
        };
        names_are_plain(&args, &entries)?;
        let one = [args.timer, args.migration, args.level.saturating_mul(LEVELS)];
        let switch_ns = one.into_iter().fold(args.switch, u64::saturating_add);
        let costs = Costs {
            reserve_jitter_ns: args.reserve_jitter.unwrap_or(switch_ns.saturating_mul(4)),
            release_jitter_ns: args.release_jitter,
            switch_ns,
            interrupts: args.interrupts.clone(),
        };
        let (cpus, delta) = (args.cpus, args.delta);
        let mut question = Question { algorithm, cpus, delta, costs, piece_min_ns: PIECE_MIN_NS, rest_ns: 0 };
        let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
        if let Ok(slot_ns) = slot_ns(&tasks, &question) {
            let slots = u128::from(slot_ns) * u128::from(delta);
            let hint = match slot_ns {
                ..SLOT_MIN_NS => "a smaller --delta".into(),
                SLOT_MIN_NS..=SLOT_MAX_NS => String::new(),
                _ => format!("--delta {}", slots.div_ceil(SLOT_MAX_NS.into())),
            };
            if !hint.is_empty() {
                let (slot, least, most) =
                    (show_time(slot_ns), show_time(SLOT_MIN_NS), show_time(SLOT_MAX_NS));
                bail!("slot_within_range: a slot would be {slot}, bound {least} to {most}: {hint}");
            }
            if args.rest.is_some() {
                question.rest_ns = args.rest_time.unwrap_or(slot_ns / 100).max(PIECE_MIN_NS);
            }
        }
        let found = assign(&tasks, &question);
        let remedy = match found {
            Err(Refusal::NoRoom { .. }) => remedy(&tasks, &question),
            _ => Remedy::default(),
        };
        match found {
            Err(Refusal::ClusterMustDivide) => {
                bail!("cluster_divides_cpus: clusters are of equal size: {}", args.cluster.unwrap_or(0))
            }
            Err(Refusal::TasksAreNotBlocked(index)) => {
                bail!("tasks_are_not_blocked: {} has a blocking time, bound 0", entries[index].name)
            }
            Err(Refusal::SlotIsZero) => {
                bail!(
                    "slot_within_range: the shortest period has no {delta} ns, bound {}",
                    show_time(SLOT_MIN_NS)
                )
            }
            _ => Ok(Self { args, entries, rows, question, found, remedy }),
        }
    }

    /// What each CPU is asked for, and the bound, both with what the machine takes where a task can have that.
    fn asked(&self) -> (Exact, Option<Exact>) {
        let tasks: Vec<_> = self.entries.iter().map(|entry| entry.task).collect();
        let cpus = whole(self.args.cpus.into());
        match &self.found {
            Ok(found) => (utilisation(&found.sized) / cpus, bound(&tasks, &self.question).ok()),
            Err(Refusal::NoRoom { asked, bound }) => (asked.clone(), Some(bound.clone())),
            Err(_) => (utilisation(&tasks) / cpus, bound(&tasks, &self.question).ok()),
        }
    }

    fn title(&self) -> String {
        let name = match self.args.algorithm {
            Name::SEkg => "S-EKG".into(),
            Name::NpsF => "NPS-F".into(),
            Name::CEqualsD => "C=D".into(),
            Name::CNpsF => format!("NPS-F in clusters of {}", self.args.cluster.unwrap_or(0)),
        };
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let (tasks, cpus) = (self.entries.len(), self.args.cpus);
        format!("{name}: {tasks} task{} on {cpus} CPU{}, δ = {}", s(tasks), s(cpus as usize), self.args.delta)
    }

    /// Names of the servers as the plan has them: of a split task its own.
    fn names(&self, found: &Assignment) -> Vec<String> {
        let name = |(index, server): (usize, &Server)| match &server.tasks[..] {
            [task] if server.pieces.len() > 1 && self.args.algorithm == Name::SEkg => {
                self.entries[*task].name.clone()
            }
            _ if self.args.algorithm == Name::SEkg => format!("local{}", server.pieces[0].cpu),
            _ => format!("np{}", index + 1),
        };
        found.servers.iter().enumerate().map(name).collect()
    }

    fn members(&self, server: &Server) -> String {
        let names: Vec<_> = server.tasks.iter().map(|task| &self.entries[*task].name[..]).collect();
        names.join(" ")
    }

    /// Some of its tasks, at most that many letters.
    fn some_members(&self, server: &Server, most: usize) -> String {
        let all = self.members(server);
        if all.chars().count() <= most {
            return all;
        }
        let (mut text, mut count) = (String::new(), 0);
        for task in &server.tasks {
            let name = &self.entries[*task].name;
            if text.chars().count() + name.chars().count() + 9 > most {
                break;
            }
            text += name;
            text.push(' ');
            count += 1;
        }
        format!("{text}… {} more", server.tasks.len() - count)
    }

    fn used(&self, found: &Assignment, server: &Server) -> Exact {
        let tasks: Vec<_> = server.tasks.iter().map(|task| found.sized[*task]).collect();
        utilisation(&tasks)
    }

    fn print(&self) {
        println!("{}", self.title());
        let (asked, bound) = self.asked();
        let given = bound.as_ref().map_or("not known".into(), percent_given);
        let found = match &self.found {
            Ok(found) => found,
            Err(refusal) => return println!("Cannot be assigned: {}", self.reason(refusal)),
        };
        println!("\ncpu  {:<15}  {:>12}  {:>12}  {:>8}  tasks", "server", "offset", "length", "");
        let names = self.names(found);
        let mut lines = Vec::new();
        for (server, name) in found.servers.iter().zip(&names) {
            for (at, piece) in server.pieces.iter().enumerate() {
                let part = if server.pieces.len() == 1 { "" } else { ["first", "then"][at] };
                lines.push((piece, name.clone(), part, self.some_members(server, 60)));
            }
        }
        let rest = self.args.rest.iter().flat_map(|name| found.rest.iter().map(move |piece| (piece, name)));
        lines.extend(rest.map(|(piece, name)| (piece, name.clone(), "", "all other threads".into())));
        lines.sort_by_key(|(piece, ..)| (piece.cpu, piece.offset_ns));
        for (piece, name, part, members) in lines {
            let (offset, length) = (show_time(piece.offset_ns), show_time(piece.length_ns));
            println!("{:>3}  {name:<15}  {offset:>12}  {length:>12}  {part:>8}  {members}", piece.cpu);
        }
        let tasks: Vec<_> = self.entries.iter().map(|entry| entry.task).collect();
        let plain = utilisation(&tasks) / whole(self.args.cpus.into());
        let with = if plain == asked {
            String::new()
        } else {
            format!(", {} with costs and jitters", percent(&asked))
        };
        let split = found.split();
        println!(
            "\nAssigned: utilisation {} of each CPU{with}; up to {given} always fits. Slots of {}, {split} server{} on two CPUs.",
            percent(&plain),
            show_time(found.slot_ns),
            if split == 1 { "" } else { "s" },
        );
    }

    fn reason(&self, refusal: &Refusal) -> String {
        let rule = refusal.rule();
        match refusal {
            Refusal::MoreThanACpu(index) => {
                let Entry { name, task, .. } = &self.entries[*index];
                let (work, within) =
                    (show_time(task.work_ns), show_time(task.deadline_ns.min(task.period_ns)));
                let rest = if self.args.rest.is_some() { ", and the rest has a part" } else { "" };
                format!(
                    "{rule}: {name} needs {work} within {within}, and the time of costs and jitters{rest}."
                )
            }
            Refusal::NoRoom { asked, bound } => {
                let Remedy { delta, cpus } = self.remedy;
                let helps = match (delta, cpus) {
                    (Some(delta), Some(cpus)) => {
                        format!("It could be assigned with --delta {delta}, or with --cpus {cpus}.")
                    }
                    (Some(delta), None) => format!("It could be assigned with --delta {delta}."),
                    (None, Some(cpus)) => {
                        format!("It could be assigned with --cpus {cpus}; no other --delta nearby helps.")
                    }
                    (None, None) => "Neither another --delta nor a few more CPUs help.".into(),
                };
                let (asked, given, over) = (percent(asked), percent_given(bound), percent(&(asked - bound)));
                format!("{rule}: the tasks need {asked} of each CPU, but only up to {given} always fits ({over} less). {helps}")
            }
            _ => rule.into(),
        }
    }

    fn in_json(&self) -> Value {
        let (asked, bound) = self.asked();
        let algorithm = self.args.algorithm.to_possible_value().map(|value| value.get_name().to_string());
        let piece = |piece: &Piece| json!({ "cpu": piece.cpu, "offset_ns": piece.offset_ns, "length_ns": piece.length_ns });
        let mut value = json!({
            "version": VERSION, "algorithm": algorithm, "cpus": self.args.cpus, "delta": self.args.delta,
            "cluster": self.args.cluster, "utilisation_per_cpu": short_fraction(&asked),
            "bound_per_cpu": bound.as_ref().map(short_fraction), "assigned": self.found.is_ok(),
        });
        match &self.found {
            Ok(found) => {
                let names = self.names(found);
                let server = |(server, name): (&Server, &String)| {
                    let tasks: Vec<_> = server.tasks.iter().map(|task| &self.entries[*task].name).collect();
                    json!({
                        "name": name, "tasks": tasks, "utilisation": short_fraction(&self.used(found, server)),
                        "needs_ns": server.needs_ns, "fills": server.fills,
                        "pieces": server.pieces.iter().map(piece).collect::<Vec<_>>(),
                    })
                };
                value["slot_ns"] = json!(found.slot_ns);
                value["split"] = json!(found.split());
                value["servers"] = found.servers.iter().zip(&names).map(server).collect();
                value["rest"] = found.rest.iter().map(piece).collect();
            }
            Err(refusal) => {
                let task = match refusal {
                    Refusal::MoreThanACpu(index) => Some(&self.entries[*index].name),
                    _ => None,
                };
                value["refusal"] = json!({
                    "rule": refusal.rule(), "task": task, "message": self.reason(refusal),
                    "delta": self.remedy.delta, "cpus": self.remedy.cpus,
                });
            }
        }
        value
    }

    /// The plan's text. Who owns a CPU is its root; all others are below the `slots` nodes, which go by one epoch.
    fn plan(&self, found: &Assignment) -> String {
        let names = self.names(found);
        let (asked, _) = self.asked();
        let mut text = format!("# {}: {} of each CPU, ", self.title(), percent(&asked));
        let _ = writeln!(text, "slots of {}. Written by tierce split.", show_time(found.slot_ns));
        let _ = writeln!(text, "\n[machine]\ncpus = {}", self.args.cpus);
        let Args { switch, timer, migration, level, .. } = self.args;
        let costs = [("switch", switch), ("timer", timer), ("migration", migration), ("level", level)];
        let costs: Vec<_> = costs.iter().filter(|(_, ns)| *ns > 0).map(|(key, ns)| given(key, *ns)).collect();
        if !costs.is_empty() {
            let _ = writeln!(text, "costs = {{ {} }}", costs.join(", "));
        }
        let each = |one: &Interrupt| {
            format!("{{ {}, {} }}", given("every", one.every_ns), given("takes", one.takes_ns))
        };
        let interrupts: Vec<_> = self.args.interrupts.iter().map(each).collect();
        if !interrupts.is_empty() {
            let _ = writeln!(text, "interrupts = [{}]", interrupts.join(", "));
        }
        let owned = |server: &Server| server.pieces[0].length_ns == found.slot_ns;
        let pieces = found.servers.iter().filter(|server| !owned(server)).flat_map(|server| &server.pieces);
        let mut cpus: Vec<_> = pieces.chain(&found.rest).map(|piece| piece.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            let slot = given("slot", found.slot_ns);
            let _ = writeln!(text, "\n[node.cpu{cpu}]\npolicy = \"slots\"\ncpu = {cpu}\n{slot}");
        }
        for (server, name) in found.servers.iter().zip(&names) {
            if server.pieces.len() > 1 && self.args.algorithm == Name::SEkg {
                self.task(&mut text, found, server.tasks[0], &reserves(server));
                continue;
            }
            let _ = writeln!(text, "\n# {} of a CPU", percent(&self.used(found, server)));
            let _ = writeln!(text, "[node.{name}]\npolicy = \"edf\"");
            if owned(server) {
                let _ = writeln!(text, "cpu = {}", server.pieces[0].cpu);
            } else {
                let several = if server.pieces.len() > 1 { "concurrency = 1\n" } else { "" };
                let _ = write!(text, "{}{several}", reserves(server));
            }
            for task in &server.tasks {
                let deadline = given("deadline", found.sized[*task].period_ns);
                self.task(&mut text, found, *task, &format!("under.{name} = {{ {deadline} }}\n"));
            }
        }
        if let Some(name) = &self.args.rest {
            let _ = writeln!(
                text,
                "\n# All other threads: a reserve on each CPU, and the time that the others leave."
            );
            let _ = writeln!(text, "[node.{name}]\npolicy = \"fair\"\ndefault = true");
            found.rest.iter().for_each(|piece| text += &reserve(piece, true));
        }
        text
    }

    fn task(&self, text: &mut String, found: &Assignment, index: usize, under: &str) {
        let Entry { name, task, offset_ns, .. } = &self.entries[index];
        let deadline_ns = task.deadline_ns.min(task.period_ns); // what is proved
        let mut load = Vec::new();
        match self.rows.as_ref().map(|rows| &rows[index]) {
            Some(row) if row.period_ns.0 < row.period_ns.1 => {
                load.push(given("separation", row.period_ns.0));
                load.push(given("extra", row.period_ns.1 - row.period_ns.0));
                load.push(given("deadline", deadline_ns));
            }
            _ => {
                load.push(given("period", task.period_ns));
                if deadline_ns != task.period_ns {
                    load.push(given("deadline", deadline_ns));
                }
            }
        }
        load.push(match self.rows.as_ref().map(|rows| rows[index].work_ns) {
            Some((least, most)) if least < most => {
                format!("work = {{ {}, {} }}", given("min", least), given("max", most))
            }
            _ => given("work", task.work_ns),
        });
        if task.jitter_ns > 0 {
            load.push(given("jitter", task.jitter_ns));
        }
        if *offset_ns > 0 {
            load.push(given("phase", *offset_ns));
        }
        let share = ratio(found.sized[index].work_ns, found.sized[index].period_ns);
        let _ =
            writeln!(text, "\n[task.{name}] # {}\n{under}load = {{ {} }}", percent(&share), load.join(", "));
        let _ = writeln!(text, "match = {{ comm = \"{name}\" }}");
    }
}

fn given(key: &str, ns: u64) -> String {
    format!("{key} = \"{}\"", show_time(ns))
}

fn reserve(piece: &Piece, fill: bool) -> String {
    let (offset, length) = (given("offset", piece.offset_ns), given("length", piece.length_ns));
    let fill = if fill { ", fill = 1" } else { "" };
    format!("under.cpu{} = {{ {offset}, {length}{fill} }}\n", piece.cpu)
}

fn reserves(server: &Server) -> String {
    server.pieces.iter().map(|piece| reserve(piece, server.fills)).collect()
}

/// Names become those of the plan's tasks and of threads.
fn names_are_plain(args: &Args, entries: &[Entry]) -> Result<()> {
    let is_plain = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
    };
    // What the plan's nodes are called.
    let of_nodes = |name: &str| {
        let number = ["cpu", "np", "local"].iter().find_map(|word| name.strip_prefix(word));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let names = entries.iter().map(|entry| &entry.name).chain(&args.rest);
    for (index, name) in names.enumerate() {
        if !is_plain(name) {
            bail!("name_must_be_plain: {name:?} would be a name in the plan, bound [A-Za-z][A-Za-z0-9_-]*");
        }
        if of_nodes(name) || index == entries.len() && entries.iter().any(|entry| entry.name == *name) {
            bail!("name_is_unique: {name} is the name of another part of the plan");
        }
        if index < entries.len() && name.len() > COMM_MAX {
            bail!("comm_is_at_most_15_bytes: the kernel cuts names of threads off: {name}, bound {COMM_MAX}");
        }
    }
    Ok(())
}
