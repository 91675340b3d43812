//! What is asked: tasks of a table, a policy, a supply.

use anyhow::{anyhow, bail, Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tierce_analysis::partition::Fit;
use tierce_analysis::question::{
    check_columns, supply, time, Given, Named, Offsets, Options, Policy, Preemption, CPUS_MAX,
};
use tierce_analysis::retas::Row;
use tierce_analysis::{retas, Entry, Fault, Sections};

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
    /// The table (CSV), or a TOML file of tasks, locks and chains
    #[arg(value_name = "TASKS")]
    pub tasks: PathBuf,
    /// Scheduling policy; a job set needs none
    #[arg(long, value_parser = one_of::<Policy>())]
    pub policy: Option<Policy>,
    /// Supply of each CPU: BUDGET/PERIOD[/DEADLINE] (a periodic resource) or a guarantee; or of several CPUs together:
    /// BUDGET/PERIOD@CPUS (a multiprocessor periodic resource, for edf)
    #[arg(long, value_name = "SUPPLY", value_parser = supply, allow_hyphen_values = true)]
    pub supply: Option<Given>,
    /// Number of CPUs, 1 unless the supply is for more; global scheduling, unless --partition is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(CPUS_MAX)), allow_hyphen_values = true)]
    pub cpus: Option<u32>,
    /// Partitioned scheduling: each task on one CPU; in which order CPUs are tried
    #[arg(long, value_name = "FIT", value_parser = one_of::<Fit>())]
    pub partition: Option<Fit>,
    /// With pd2: for how long a CPU is given at once
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub quantum: Option<u64>,
    /// Where jobs may be preempted; default: as the columns section, last_section and threshold say
    #[arg(long, value_name = "WHERE", value_parser = one_of::<Preemption>())]
    pub preemption: Option<Preemption>,
    /// Known: strictly periodic tasks, whose first jobs come at the offsets of the table
    #[arg(long, value_name = "WHICH", default_value = "unknown", value_parser = one_of::<Offsets>())]
    pub offsets: Offsets,
    /// Also show how far each work, period, deadline and the budget can change alone, and all works together
    #[arg(long)]
    pub sensitivity: bool,
    /// Write JSON (documented in docs/analysis.md)
    #[arg(long)]
    pub json: bool,
}

/// Bytes of a table.
const TABLE_MAX: u64 = 64 << 20;

const EXAMPLES: &str = "\
A table:
  name,work,period,deadline
  audio,1ms,10ms,
  video,8ms,33ms,20ms

Columns (times have a unit; a bare whole number is ns; an empty cell is the default):
  name, work, period       needed; jobs take several works, apart by spaces, in turn; several periods are the least
                           time to the next job, to the second one after it, … (bursts)
  deadline                 from the release [default: the period]
  jitter                   how late a job may become ready
  priority                 larger is higher [default: a shorter deadline is higher]
  blocking                 longest time for which less urgent tasks may block it
  section, last_section    longest region without preemption; the region with which a job ends
  threshold                priority that others must exceed to preempt a job that has begun
  suspension               longest time for which a job suspends itself
  offset                   of the first job; of effect with --offsets known
  criticality, work_hi     lo or hi; the work at the worst (amc, smc, vestal, edf-vd)
  span                     longest chain of a parallel job's work (federated)
A file NAME.toml has the same as [task.NAME] tables, and `cpu`, `sections` with [lock.NAME], [chain.NAME].
Two other forms are known by their first line: task sets of ReTAS (eight numbers a line), and job sets of
np-schedulability-analysis (Task ID, Job ID, ...), for which the table says when each job is done at the earliest and the latest.

Examples:
  tierce analyse --policy fp tasks.csv
  tierce analyse --policy edf --supply 1.5ms/6ms tasks.csv       in a reservation
  tierce analyse --policy dm --supply 'RESCS 2ms 8ms' tasks.csv  within the supply of a guarantee
  tierce analyse --policy dm --sensitivity tasks.csv             how far numbers can change
  tierce analyse --policy fp --preemption none tasks.csv         whole jobs, as messages on a bus
  tierce analyse --policy dm --preemption thresholds tasks.csv   chooses preemption thresholds
  tierce analyse --policy edf --offsets known tasks.csv          the phases of the table, not all
  tierce analyse --policy edf --cpus 4 tasks.csv                 global: the four earliest deadlines run
  tierce analyse --policy edf --supply 6ms/5ms@2 tasks.csv       6 ms of two CPUs in each 5 ms
  tierce analyse --policy edf --cpus 4 --partition worst tasks.csv   each task on one of four CPUs
  tierce analyse --policy pd2 --quantum 1ms --cpus 4 tasks.csv   Pfair
  tierce analyse --policy federated --cpus 8 tasks.csv           column span: parallel tasks
  tierce analyse --policy amc tasks.csv                          columns criticality, work_hi
  tierce analyse --policy fp set.toml                            CPUs, locks, chains
  tierce analyse --cpus 2 jobs.csv                               given jobs without preemption

Ctrl-C ends it with the response times that are known by then.

Exit codes: 0 schedulable; 1 not, or ended early; 2 bad input.";

/// Long names of some policies.
const ALIASES: [(&str, &str); 3] =
    [("fp", "fixed-priority"), ("rm", "rate-monotonic"), ("dm", "deadline-monotonic")];

/// By name, as help lists them.
pub fn one_of<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let alias = |name: &str| ALIASES.iter().find(|(short, _)| *short == name).map(|(_, long)| *long);
    let value = move |(_, name, help): &(T, &'static str, &'static str)| {
        PossibleValue::new(*name).help(*help).aliases(alias(name))
    };
    let short = |text: &str| ALIASES.iter().find(|(_, long)| *long == text).map(|(short, _)| *short);
    PossibleValuesParser::new(T::ALL.iter().map(value)).try_map(move |text| {
        let other = || short(&text).and_then(T::named);
        T::named(&text).or_else(other).ok_or("there is no such name")
    })
}

impl Args {
    /// All but the table.
    pub fn options(&self) -> Options {
        let Args { policy, cpus, partition, quantum, preemption, offsets, sensitivity, .. } = *self;
        let supply = self.supply.clone();
        Options { policy, supply, cpus, partition, quantum, preemption, offsets, sensitivity }
    }
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
    let is_plain = |entry: &Entry| {
        entry.suspension_ns == 0
            && entry.sections == Sections::default()
            && entry.threshold.is_none()
            && entry.requests.is_none()
    };
    if let Some(entry) = set.0.iter().find(|entry| !is_plain(entry)) {
        bail!(
            "jobs_are_preempted_anywhere: {} has a suspension, a region without preemption, a threshold, or a list of works or periods, \
             which only tierce analyse includes; leave the columns suspension, section, last_section and threshold out, and give one \
             work and one period",
            entry.name
        );
    }
    Ok(set)
}

/// The tasks of a table as they are.
pub fn parse_set(path: &Path, text: &str) -> Result<(Vec<Entry>, Option<Vec<Row>>)> {
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
