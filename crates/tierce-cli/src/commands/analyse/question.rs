//! What is asked: tasks of a table, a policy, a supply.

use anyhow::{anyhow, bail, Context, Result};
use clap::ValueEnum;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tierce_analysis::criticality::Scheme;
use tierce_analysis::retas::Row;
use tierce_analysis::{retas, Entry, Fault, Mpr, Sections, Supply, Task};
use tierce_guarantee::Guarantee;

/// Test whether the tasks of a table are schedulable, and compute their worst-case response times
///
/// The table has a line of column names and a line per task; its columns say what a task is (below). On one CPU, and with
/// --partition on each of several CPUs, the verdict is exact and response times are the worst case, from the nominal release,
/// unless a remark says that they are bounds. With --cpus and without --partition any CPU may run any task (global scheduling): the
/// tests are sufficient, and response times are upper bounds. Where global EDF is not shown to meet all deadlines, the table says by
/// how much they can be missed. Methods and sources: docs/analysis.md.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table (CSV)
    #[arg(value_name = "TASKS.csv")]
    pub tasks: PathBuf,
    /// Scheduling policy; a job set needs none
    #[arg(long)]
    pub policy: Option<Policy>,
    /// Supply of each CPU: BUDGET/PERIOD[/DEADLINE] (a periodic resource) or a guarantee; or of several CPUs together:
    /// BUDGET/PERIOD@CPUS (a multiprocessor periodic resource, for edf)
    #[arg(long, value_name = "SUPPLY", value_parser = supply, allow_hyphen_values = true)]
    pub supply: Option<Given>,
    /// Number of CPUs, 1 unless the supply is for more; global scheduling, unless --partition is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CPUS_MAX), allow_hyphen_values = true)]
    pub cpus: Option<u32>,
    /// Partitioned scheduling: each task on one CPU; in which order CPUs are tried
    #[arg(long, value_name = "FIT")]
    pub partition: Option<FitName>,
    /// With pd2: for how long a CPU is given at once
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub quantum: Option<u64>,
    /// Where jobs may be preempted; default: as the columns section and last_section say
    #[arg(long, value_name = "WHERE")]
    pub preemption: Option<Preemption>,
    /// Known: strictly periodic tasks, whose first jobs come at the offsets of the table
    #[arg(long, value_name = "WHICH", default_value = "unknown")]
    pub offsets: Offsets,
    /// Also show how far each work, period, deadline and the budget can change alone, and all works together
    #[arg(long)]
    pub sensitivity: bool,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    pub json: bool,
}

const CPUS_MAX: i64 = 1024;

/// Bytes of a table.
const TABLE_MAX: u64 = 64 << 20;

const EXAMPLES: &str = "\
A table:
  name,work,period,deadline
  audio,1ms,10ms,
  video,8ms,33ms,20ms

Columns (times have a unit; a bare whole number is ns; an empty cell is the default):
  name, work, period       needed
  deadline                 from the release [default: the period]
  jitter                   how late a job may become ready
  priority                 larger is higher [default: a shorter deadline is higher]
  blocking                 longest time for which less urgent tasks may block it
  section, last_section    longest region without preemption; the region with which a job ends
  suspension               longest time for which a job suspends itself
  offset                   of the first job; of effect with --offsets known
  criticality, work_hi     lo or hi; the work at the worst (amc, smc, vestal, edf-vd)
  span                     longest chain of a parallel job's work (federated)
Two other forms are known by their first line: task sets of ReTAS (eight numbers a line), and job sets of
np-schedulability-analysis (Task ID, Job ID, ...), for which the table says when each job is done at the earliest and the latest.

Examples:
  tierce analyse --policy fp tasks.csv
  tierce analyse --policy edf --supply 1.5ms/6ms tasks.csv       in a reservation
  tierce analyse --policy dm --supply 'RESCS 2ms 8ms' tasks.csv  within the supply of a guarantee
  tierce analyse --policy dm --sensitivity tasks.csv             how far numbers can change
  tierce analyse --policy fp --preemption none tasks.csv         whole jobs, as messages on a bus
  tierce analyse --policy edf --offsets known tasks.csv          the phases of the table, not all
  tierce analyse --policy edf --cpus 4 tasks.csv                 global: the four earliest deadlines run
  tierce analyse --policy edf --supply 6ms/5ms@2 tasks.csv       6 ms of two CPUs in each 5 ms
  tierce analyse --policy edf --cpus 4 --partition worst tasks.csv   each task on one of four CPUs
  tierce analyse --policy pd2 --quantum 1ms --cpus 4 tasks.csv   Pfair
  tierce analyse --policy federated --cpus 8 tasks.csv           column span: parallel tasks
  tierce analyse --policy amc tasks.csv                          columns criticality, work_hi
  tierce analyse --cpus 2 jobs.csv                               given jobs without preemption

Exit codes: 0 schedulable, 1 not, 2 bad input.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// Fixed priorities as in the table, or deadline monotonic; equal priorities wait for each other
    #[value(alias = "fixed-priority")]
    Fp,
    /// Rate monotonic: the shorter the period, the higher the priority
    #[value(alias = "rate-monotonic")]
    Rm,
    /// Deadline monotonic
    #[value(alias = "deadline-monotonic")]
    Dm,
    /// The smaller deadline - k work, the higher; k depends on the number of CPUs, and is 0 for one
    Dkc,
    /// Fixed priorities in an order that meets all deadlines, if there is one (on several CPUs: if one is found)
    Audsley,
    /// Earliest deadline first
    Edf,
    /// First in, first out: in the order in which jobs become ready, each to its end
    Fifo,
    /// Two criticalities, fixed priorities: as soon as a job works longer than its work, only `hi` tasks are released (AMC-rtb)
    Amc,
    /// The same, but all tasks are released for ever, and only `lo` ones are held to their work
    Smc,
    /// The same, but nothing is held to its work: at the worst all tasks need their work_hi (Vestal)
    Vestal,
    /// Two criticalities, earliest deadline first: `hi` tasks are due earlier until a job works longer than its work
    EdfVd,
    /// Pfair on several CPUs (PD²): in each --quantum the subtasks that are due first, a fair share for each task at any time
    Pd2,
    /// Parallel tasks (column span) on several CPUs: each that needs more than one has some of its own, the others share one by EDF
    Federated,
}

impl Policy {
    /// How tasks of two criticalities are scheduled by it.
    pub fn mixed(self) -> Option<MixedPolicy> {
        match self {
            Self::Amc => Some(MixedPolicy::Fixed(Scheme::Amc)),
            Self::Smc => Some(MixedPolicy::Fixed(Scheme::Smc)),
            Self::Vestal => Some(MixedPolicy::Fixed(Scheme::Vestal)),
            Self::EdfVd => Some(MixedPolicy::VirtualDeadlines),
            _ => None,
        }
    }
}

pub enum MixedPolicy {
    Fixed(Scheme),
    VirtualDeadlines,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preemption {
    /// At any time; section and last_section have no effect
    Full,
    /// Not at all: a job that has begun goes on to its end
    None,
    /// Not in regions of up to section, nor in the last one of last_section
    Limited,
    /// Not in regions of up to section, at any place or at none
    Floating,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Offsets {
    /// All phases are considered
    Unknown,
    /// The first job of each task comes at its offset, the others exactly a period apart
    Known,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum FitName {
    /// The lowest CPU first, tasks by decreasing utilisation
    First,
    /// The fullest CPU first, tasks by decreasing utilisation
    Best,
    /// The emptiest CPU first, tasks by decreasing utilisation
    Worst,
    /// The CPU of the task before, then the next one, by decreasing utilisation
    Next,
    /// By period, so that the periods on one CPU are as similar as possible: fewer switches
    Period,
    /// By period, dealt out: each CPU gets periods of all lengths
    Mixed,
}

/// A supply and how it was written.
#[derive(Clone)]
pub struct Given {
    pub text: String,
    pub supply: Supplied,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Supplied {
    /// Each CPU gives that.
    Each(Supply),
    /// Several CPUs give that together.
    Together(Mpr),
}

/// `1.5ms/6ms`, `1.5ms/6ms/4ms`, `6ms/5ms@2`, or a guarantee.
fn supply(text: &str) -> Result<Given, String> {
    let given = |supply| Given { text: text.trim().to_string(), supply };
    let each = |supply| given(Supplied::Each(supply));
    if !text.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let guarantee = Guarantee::parse(text).map_err(|faults| faults.to_string())?;
        let nothing =
            "supply_must_be_bounded: this supply guarantees nothing in any window, or less than 1 ns";
        return Supply::of(&guarantee).map(each).ok_or_else(|| nothing.to_string());
    }
    let (times, cpus) = match text.split_once('@') {
        None => (text, None),
        Some((times, cpus)) => {
            let count = cpus.trim().parse().ok().filter(|cpus| (1..=CPUS_MAX).contains(&i64::from(*cpus)));
            let fault = || format!("supply_must_have_its_cpus: from 1 to {CPUS_MAX} after @ (\"{cpus}\")");
            (times, Some(count.ok_or_else(fault)?))
        }
    };
    let times = times.split('/').map(|text| time_within(text, "above 0")).collect::<Result<Vec<_>, _>>()?;
    let supply = match (&times[..], cpus) {
        ([budget, period], None | Some(1)) => Supply::periodic(*budget, *period).map(each),
        ([budget, period, deadline], None) => Supply::edp(*budget, *period, *deadline).map(each),
        ([budget, period], Some(cpus)) => {
            Mpr::new(*budget, *period, cpus).map(|supply| given(Supplied::Together(supply)))
        }
        _ => {
            let forms = "BUDGET/PERIOD, BUDGET/PERIOD/DEADLINE or BUDGET/PERIOD@CPUS";
            return Err(format!("supply_must_have_its_numbers: {forms}"));
        }
    };
    supply.ok_or_else(|| {
        "supply_must_fit: 0 < budget <= deadline <= period, the deadline being the period where not given; with @ \
         0 < budget <= CPUs times period"
            .to_string()
    })
}

/// A time in whole ns; a bare number is ns.
pub fn time(text: &str) -> Result<u64, String> {
    time_within(text, "0 or more")
}

/// The same with other words for what may not be negative.
pub fn time_within(text: &str, least: &str) -> Result<u64, String> {
    tierce_analysis::parse_time(text.trim()).map_err(|(rule, message)| {
        let bound = match rule {
            "number_must_not_be_negative" => least.into(),
            "time_not_finer_than_1ns" => "1ns".into(),
            _ => tierce_guarantee::Parameter::Period.bound(rule),
        };
        format!("{rule}: {message}: {text}, bound {bound}")
    })
}

/// The tasks of a table, or all of its faults with their places: for what assumes that jobs can be preempted anywhere and do not
/// suspend themselves.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    Ok(read_set(path)?.0)
}

/// The same, and where the file is of ReTAS its rows.
pub fn read_set(path: &Path) -> Result<(Vec<Entry>, Option<Vec<Row>>)> {
    let set = parse_set(path, &read_text(path)?)?;
    check_columns(&set.0, None)?;
    let is_plain = |entry: &Entry| entry.suspension_ns == 0 && entry.sections == Sections::default();
    if let Some(entry) = set.0.iter().find(|entry| !is_plain(entry)) {
        bail!(
            "jobs_are_preempted_anywhere: {} has a suspension or a region without preemption, which only tierce analyse \
             includes; leave the columns suspension, section and last_section out",
            entry.name
        );
    }
    Ok(set)
}

/// Tasks of two criticalities, and parallel ones, are analysed as such, and no others.
fn check_columns(entries: &[Entry], policy: Option<Policy>) -> Result<()> {
    let mixed = policy.is_some_and(|policy| policy.mixed().is_some());
    let has = entries.iter().any(|entry| entry.criticality.is_some());
    if has && !mixed {
        bail!(
            "criticality_needs_its_policy: the columns criticality and work_hi are for `tierce analyse` with --policy amc, smc, vestal or \
             edf-vd"
        );
    }
    if mixed && !has {
        bail!("criticality_must_be_given: this policy needs a column criticality (lo or hi), and work_hi");
    }
    if policy != Some(Policy::Federated) && entries.iter().any(|entry| entry.span_ns.is_some()) {
        bail!("span_needs_its_policy: the column span is for `tierce analyse` with --policy federated");
    }
    Ok(())
}

fn parse_set(path: &Path, text: &str) -> Result<(Vec<Entry>, Option<Vec<Row>>)> {
    if !retas::is_retas(text) {
        return Ok((tierce_analysis::parse(text).map_err(|faults| in_file(path, &faults))?, None));
    }
    let rows = retas::parse(text).map_err(|faults| in_file(path, &faults))?;
    Ok((rows.iter().map(Row::entry).collect(), Some(rows)))
}

/// A table's faults, each with its place.
pub fn in_file(path: &Path, faults: &[Fault]) -> anyhow::Error {
    let lines: Vec<_> = faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect();
    let s = if faults.len() == 1 { "" } else { "s" };
    anyhow!("{} fault{s} in the table\n{}", faults.len(), lines.join("\n"))
}

/// A table.
pub fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(|| format!("{}", path.display()))?;
    file.take(TABLE_MAX + 1).read_to_end(&mut bytes).with_context(|| format!("{}", path.display()))?;
    if bytes.len() as u64 > TABLE_MAX {
        bail!("{}: table_must_fit: the table is larger, bound {} MiB", path.display(), TABLE_MAX >> 20);
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let (line, column) =
            (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or("").chars().count() + 1);
        anyhow!("{}:{line}:{column}: table_must_be_utf_8: this byte is not UTF-8", path.display())
    })
}

/// What is asked.
pub struct Question {
    pub policy: Policy,
    pub entries: Vec<Entry>,
    pub tasks: Vec<Task>,
    pub given: Given,
    pub cpus: u32,
    /// `None`: any CPU may run any task, if there are several.
    pub partition: Option<FitName>,
    pub sensitivity: bool,
    /// Of pd2, in ns.
    pub quantum: Option<u64>,
    pub offsets_known: bool,
}

impl Question {
    pub fn new(args: &Args, text: &str) -> Result<Self> {
        let Some(policy) = args.policy else {
            bail!("policy_must_be_given: say with --policy by which policy the tasks are scheduled");
        };
        let mut entries = parse_set(&args.tasks, text)?.0;
        check_columns(&entries, Some(policy))?;
        preempt(&mut entries, args.preemption, policy);
        check_options(args, policy)?;
        let whole = || Given { text: "a whole CPU".into(), supply: Supplied::Each(Supply::WHOLE) };
        let given = args.supply.clone().unwrap_or_else(whole);
        let with_priority = entries.iter().filter(|entry| entry.priority.is_some()).count();
        if policy == Policy::Fp && with_priority != 0 && with_priority != entries.len() {
            let rule = "priorities_are_complete";
            bail!(
                "{rule}: {with_priority} of {} tasks have a priority; give all of them one, or none",
                entries.len()
            );
        }
        let cpus = match given.supply {
            Supplied::Each(_) => args.cpus.unwrap_or(1),
            Supplied::Together(supply) => {
                let cpus = supply.cpus();
                if args.cpus.is_some_and(|asked| asked != cpus) {
                    bail!("cpus_are_those_of_the_supply: the supply {} is for {cpus} CPUs; leave out --cpus, or give the same number", given.text);
                }
                if args.partition.is_some() {
                    bail!("supply_is_of_several_cpus: with --partition each CPU has a supply of its own; give a supply without @");
                }
                if policy != Policy::Edf {
                    bail!(
                        "supply_is_for_edf: a supply of several CPUs (@) can be tested with --policy edf only"
                    );
                }
                cpus
            }
        };
        if cpus > 1 && args.partition.is_none() && args.supply.is_some() && !is_together(&given) {
            bail!(
                "supply_is_of_one_cpu: several CPUs with a supply each need --partition, so that each task is on one; \
                 what they give together is BUDGET/PERIOD@CPUS"
            );
        }
        let tasks = entries.iter().map(|entry| entry.task).collect();
        let Args { partition, sensitivity, quantum, .. } = *args;
        if cpus > 1 && partition.is_none() && sensitivity {
            bail!("sensitivity_needs_an_exact_test: on several CPUs --sensitivity needs --partition");
        }
        let offsets_known = args.offsets == Offsets::Known;
        let asked =
            Self { policy, entries, tasks, given, cpus, partition, sensitivity, quantum, offsets_known };
        asked.check()?;
        Ok(asked)
    }

    /// What goes together with suspensions, regions without preemption, known offsets and arrival order.
    fn check(&self) -> Result<()> {
        let suspending = self.entries.iter().find(|entry| entry.suspension_ns > 0);
        let keeping = self.entries.iter().find(|entry| entry.sections != Sections::default());
        let is_special = self.policy.mixed().is_some() || self.policy == Policy::Federated;
        if is_special && (suspending.or(keeping).is_some() || self.offsets_known) {
            bail!(
                "jobs_are_preempted_anywhere: this policy is analysed without suspensions, regions without preemption and known offsets"
            );
        }
        if self.is_global() {
            if self.policy == Policy::Fifo {
                bail!("order_of_arrival_is_for_one_cpu: fifo on several CPUs needs --partition, so that each task is on one");
            }
            if self.offsets_known {
                bail!("offsets_are_for_one_cpu: --offsets known on several CPUs needs --partition, so that each task is on one");
            }
            if let Some(entry) = suspending.or(keeping) {
                bail!(
                    "jobs_are_preempted_anywhere: {} has a suspension or a region without preemption; the global tests for \
                     several CPUs do not cover that, but those with --partition do",
                    entry.name
                );
            }
        }
        if let Some(entry) = suspending {
            let name = &entry.name;
            if self.policy == Policy::Fifo {
                bail!("suspension_is_not_for_fifo: {name} suspends itself, and then others overtake it; use another policy");
            }
            if let Some(other) = keeping {
                bail!(
                    "suspension_needs_full_preemption: {name} suspends itself, and {} has a region without preemption, which may \
                     begin each time; use --preemption full",
                    other.name
                );
            }
            if let Some(other) = self.entries.iter().find(|entry| entry.task.blocking_ns > 0) {
                bail!("suspension_is_not_for_blocked_tasks: {name} suspends itself, and {} may be blocked, each time", other.name);
            }
            if self.given.supply != Supplied::Each(Supply::WHOLE) {
                bail!("suspension_needs_a_whole_cpu: {name} suspends itself, and a supply is sure only while it is asked for");
            }
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.task.blocking_ns > 0) {
            if self.policy == Policy::Fifo {
                bail!(
                    "fifo_has_no_blocking: {} has a blocking time, but nothing is less urgent; bound 0",
                    entry.name
                );
            }
        }
        if self.sensitivity && (suspending.or(keeping).is_some() || self.offsets_known) {
            bail!(
                "sensitivity_needs_plain_tasks: with suspensions, regions without preemption or --offsets known there is no --sensitivity"
            );
        }
        Ok(())
    }

    pub fn is_global(&self) -> bool {
        self.cpus > 1 && self.partition.is_none()
    }
}

/// Options that the policy cannot have.
fn check_options(args: &Args, policy: Policy) -> Result<()> {
    let plain = args.supply.is_none() && !args.sensitivity;
    if policy.mixed().is_some() && !(plain && args.cpus.unwrap_or(1) == 1) {
        bail!("criticality_is_for_one_cpu: leave out --supply and --sensitivity, and --cpus unless it is 1");
    }
    if policy == Policy::Federated && !(plain && args.partition.is_none()) {
        bail!("federated_is_for_whole_cpus: leave out --partition, --supply and --sensitivity");
    }
    check_quantum(args, policy)
}

/// PD² has a quantum and several CPUs, and nothing else has.
fn check_quantum(args: &Args, policy: Policy) -> Result<()> {
    let is_pd2 = policy == Policy::Pd2;
    if is_pd2 && (args.cpus.unwrap_or(1) < 2 || args.partition.is_some() || args.supply.is_some()) {
        bail!("pd2_is_for_several_cpus: give --cpus of at least 2, and leave out --partition and --supply");
    }
    match args.quantum {
        None if is_pd2 => bail!("quantum_must_be_given: pd2 needs --quantum"),
        Some(0) => bail!("quantum_is_above_zero: --quantum 0ns, bound 1ns"),
        Some(_) if !is_pd2 => bail!("quantum_is_of_pd2: --quantum is an option of --policy pd2 only"),
        _ => Ok(()),
    }
}

/// Regions of jobs as was asked for, or as the columns say: with `last_section` those at fixed places, else floating ones.
fn preempt(entries: &mut [Entry], asked: Option<Preemption>, policy: Policy) {
    for entry in entries {
        let Sections { longest_ns, last_ns } = entry.sections;
        entry.sections = match asked {
            _ if policy == Policy::Fifo => Sections::default(), // it never preempts
            Some(Preemption::Full) => Sections::default(),
            Some(Preemption::None) => {
                Sections { longest_ns: entry.task.work_ns, last_ns: entry.task.work_ns }
            }
            Some(Preemption::Floating) => Sections { longest_ns, last_ns: 0 },
            Some(Preemption::Limited) | None => Sections { longest_ns, last_ns },
        };
    }
}

pub fn is_together(given: &Given) -> bool {
    matches!(given.supply, Supplied::Together(_))
}
