//! What is asked, and what goes together.

use super::names::{Named as _, Offsets, Policy, Preemption};
use super::refused::{refuse, Refused};
use super::supplied::{is_together, Given, Supplied, CPUS_MAX};
use crate::partition::Fit;
use crate::{requests, utilisation, Entry, Sections, Supply, Task};
use tierce_guarantee::Exact;

/// Everything about a question but its tasks.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// By which policy; there has to be one.
    pub policy: Option<Policy>,
    /// Of each CPU or of several together; else whole CPUs.
    pub supply: Option<Given>,
    /// How many, if not as many as the supply says, or one.
    pub cpus: Option<u32>,
    /// Each task on one CPU; in which order CPUs are tried.
    pub partition: Option<Fit>,
    /// Of pd2, in ns.
    pub quantum: Option<u64>,
    /// Where jobs may be preempted, if not as their sections say.
    pub preemption: Option<Preemption>,
    /// Whether first jobs come at the offsets.
    pub offsets: Offsets,
    /// Also how far numbers can change.
    pub sensitivity: bool,
}

/// Tasks of two criticalities, and parallel ones, are analysed as such, and no others.
pub fn check_columns(entries: &[Entry], policy: Option<Policy>) -> Result<(), Refused> {
    let mixed = policy.is_some_and(|policy| policy.mixed().is_some());
    let has = entries.iter().any(|entry| entry.criticality.is_some());
    if has && !mixed {
        refuse!(
            "criticality_needs_its_policy",
            "the columns criticality and work_hi are for `tierce analyse` with --policy amc, smc, vestal or \
             edf-vd"
        );
    }
    if mixed && !has {
        refuse!(
            "criticality_must_be_given",
            "this policy needs a column criticality (lo or hi), and work_hi"
        );
    }
    if policy != Some(Policy::Federated) && entries.iter().any(|entry| entry.span_ns.is_some()) {
        refuse!("span_needs_its_policy", "the column span is for `tierce analyse` with --policy federated");
    }
    Ok(())
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// By which policy.
    pub policy: Policy,
    /// The tasks, with their regions as preemption has them.
    pub entries: Vec<Entry>,
    /// Of each entry its numbers.
    pub tasks: Vec<Task>,
    /// The supply.
    pub given: Given,
    /// How many.
    pub cpus: u32,
    /// `None`: any CPU may run any task, if there are several and no homes.
    pub partition: Option<Fit>,
    /// Of each task its CPU, where that is given.
    pub homes: Option<Vec<usize>>,
    /// Also how far numbers can change.
    pub sensitivity: bool,
    /// Of pd2, in ns.
    pub quantum: Option<u64>,
    /// First jobs come at the offsets.
    pub offsets_known: bool,
    /// Whether a job that has begun is preempted by tasks above its threshold only.
    pub thresholds: Thresholds,
}

/// Where thresholds come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// There are none.
    None,
    /// From the entries.
    Given,
    /// They are chosen.
    Chosen,
}

impl Question {
    /// `entries` are valid, as those of a table are. Refused: what does not go together.
    pub fn new(entries: Vec<Entry>, options: &Options) -> Result<Self, Refused> {
        Self::asked(entries, options, None)
    }

    /// The same with the CPU of each task, below [`CPUS_MAX`].
    ///
    /// # Panics
    /// When there is not one for each task.
    pub fn on_cpus(entries: Vec<Entry>, homes: Vec<usize>, options: &Options) -> Result<Self, Refused> {
        assert_eq!(entries.len(), homes.len(), "a CPU for each task");
        if options.cpus.is_some() || options.partition.is_some() {
            refuse!("tasks_have_their_cpus", "each task has its CPU; leave out --cpus and --partition");
        }
        if options.supply.as_ref().is_some_and(is_together) {
            refuse!("tasks_have_their_cpus", "each task has its CPU; give a supply of each CPU, without @");
        }
        let policy = options.policy;
        let elsewhere =
            |policy: Policy| policy.mixed().is_some() || matches!(policy, Policy::Pd2 | Policy::Federated);
        if let Some(policy) = policy.filter(|policy| elsewhere(*policy)) {
            let name = policy.name();
            refuse!(
                "tasks_have_their_cpus",
                "{name} does not analyse tasks on CPUs that are given; leave out `cpu`, locks and chains"
            );
        }
        Self::asked(entries, options, Some(homes))
    }

    fn asked(mut entries: Vec<Entry>, options: &Options, homes: Option<Vec<usize>>) -> Result<Self, Refused> {
        let Some(policy) = options.policy else {
            refuse!("policy_must_be_given", "say with --policy by which policy the tasks are scheduled");
        };
        if let Some(cpus) = options.cpus.filter(|cpus| !(1..=CPUS_MAX).contains(cpus)) {
            refuse!("cpus_within_range", "so many CPUs: {cpus}, bound 1 to {CPUS_MAX}");
        }
        check_columns(&entries, Some(policy))?;
        let thresholds = preempt(&mut entries, options.preemption, policy);
        check_options(options, policy)?;
        let whole = || Given { text: "a whole CPU".into(), supply: Supplied::Each(Supply::WHOLE) };
        let given = options.supply.clone().unwrap_or_else(whole);
        let with_priority = entries.iter().filter(|entry| entry.priority.is_some()).count();
        if policy == Policy::Fp && with_priority != 0 && with_priority != entries.len() {
            refuse!(
                "priorities_are_complete",
                "{with_priority} of {} tasks have a priority; give all of them one, or none",
                entries.len()
            );
        }
        let last = homes.iter().flatten().max();
        let cpus = match last {
            Some(last) => u32::try_from(last + 1).unwrap_or(CPUS_MAX),
            None => cpus_of(&given, options, policy)?,
        };
        let tasks = entries.iter().map(|entry| entry.task).collect();
        let Options { partition, sensitivity, quantum, .. } = *options;
        if cpus > 1 && partition.is_none() && homes.is_none() && sensitivity {
            refuse!("sensitivity_needs_an_exact_test", "on several CPUs --sensitivity needs --partition");
        }
        let offsets_known = options.offsets == Offsets::Known;
        let asked = Self {
            policy,
            entries,
            tasks,
            given,
            cpus,
            partition,
            homes,
            sensitivity,
            quantum,
            offsets_known,
            thresholds,
        };
        asked.check()?;
        Ok(asked)
    }

    /// What goes together with suspensions, regions without preemption, known offsets and arrival order.
    fn check(&self) -> Result<(), Refused> {
        let suspending = self.entries.iter().find(|entry| entry.suspension_ns > 0);
        let keeping = self.entries.iter().find(|entry| entry.sections != Sections::default());
        let is_special = self.policy.mixed().is_some() || self.policy == Policy::Federated;
        if is_special && (suspending.or(keeping).is_some() || self.offsets_known) {
            refuse!(
                "jobs_are_preempted_anywhere",
                "this policy is analysed without suspensions, regions without preemption and known offsets"
            );
        }
        if self.is_global() {
            self.check_global(suspending, keeping)?;
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.requests.is_some()) {
            self.check_lists(entry, suspending.or(keeping))?;
        }
        if self.thresholds != Thresholds::None {
            self.check_thresholds(suspending, keeping)?;
        }
        if let Some(entry) = suspending {
            self.check_suspension(entry, keeping)?;
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.task.blocking_ns > 0) {
            if self.policy == Policy::Fifo {
                refuse!(
                    "fifo_has_no_blocking",
                    "{} has a blocking time, but nothing is less urgent; bound 0",
                    entry.name
                );
            }
        }
        let keeps = keeping.is_some() || self.thresholds != Thresholds::None;
        if self.sensitivity && (suspending.is_some() || keeps || self.offsets_known) {
            refuse!(
                "sensitivity_needs_plain_tasks",
                "with suspensions, regions without preemption, thresholds or --offsets known there is no --sensitivity"
            );
        }
        Ok(())
    }

    /// What the tests for any CPU do not cover.
    fn check_global(&self, suspending: Option<&Entry>, keeping: Option<&Entry>) -> Result<(), Refused> {
        if self.policy == Policy::Fifo {
            refuse!(
                "order_of_arrival_is_for_one_cpu",
                "fifo on several CPUs needs --partition, so that each task is on one"
            );
        }
        if self.offsets_known {
            refuse!(
                "offsets_are_for_one_cpu",
                "--offsets known on several CPUs needs --partition, so that each task is on one"
            );
        }
        if let Some(entry) = keeping {
            refuse!(
                "jobs_are_preempted_anywhere",
                "{} has a region without preemption; the global tests for several CPUs do not cover that, but those with \
                 --partition do",
                entry.name
            );
        }
        if let Some(entry) = suspending.filter(|_| self.policy == Policy::Pd2) {
            refuse!(
                "jobs_are_preempted_anywhere",
                "{} has a suspension, and pd2 is analysed without",
                entry.name
            );
        }
        Ok(())
    }

    /// Works in turn and bursts are analysed where jobs give way at any time; `special` is one that suspends itself or keeps the CPU.
    fn check_lists(&self, entry: &Entry, special: Option<&Entry>) -> Result<(), Refused> {
        let name = &entry.name;
        if !matches!(self.policy, Policy::Fp | Policy::Rm | Policy::Dm | Policy::Edf) {
            refuse!(
                "lists_are_for_fp_and_edf",
                "{name} has a list of works or periods, which is for --policy fp, rm, dm and edf"
            );
        }
        if self.cpus > 1 && self.homes.is_none() {
            refuse!("lists_are_for_one_cpu", "{name} has a list of works or periods, which is for one CPU");
        }
        if let Some(other) = special {
            refuse!(
                "lists_need_full_preemption",
                "{name} has a list of works or periods, and {} suspends itself or has a region without preemption",
                other.name
            );
        }
        if self.offsets_known || self.sensitivity || self.thresholds != Thresholds::None {
            refuse!(
                "lists_need_full_preemption",
                "{name} has a list of works or periods; leave out --offsets known, --sensitivity and thresholds"
            );
        }
        Ok(())
    }

    /// Thresholds are of fixed priorities on one CPU, and the only reason why a job is not preempted.
    fn check_thresholds(&self, suspending: Option<&Entry>, keeping: Option<&Entry>) -> Result<(), Refused> {
        if !matches!(self.policy, Policy::Fp | Policy::Rm | Policy::Dm) {
            refuse!("thresholds_need_priorities", "thresholds are for --policy fp, rm and dm");
        }
        if self.thresholds == Thresholds::Given && self.policy != Policy::Fp {
            refuse!(
                "thresholds_need_priorities",
                "the column threshold is for --policy fp; --preemption full leaves it out"
            );
        }
        if self.is_global() {
            refuse!(
                "jobs_are_preempted_anywhere",
                "the global tests for several CPUs do not cover thresholds, but those with --partition do"
            );
        }
        if let Some(entry) = suspending {
            refuse!(
                "suspension_needs_full_preemption",
                "{} suspends itself, and there are thresholds; use --preemption full",
                entry.name
            );
        }
        if let Some(entry) = keeping {
            refuse!(
                "thresholds_and_regions_are_apart",
                "{} has a region without preemption, and there are thresholds; --preemption thresholds leaves the regions out, \
                 --preemption full both",
                entry.name
            );
        }
        Ok(())
    }

    /// Of a task that suspends itself; `keeping` is one with a region without preemption.
    fn check_suspension(&self, entry: &Entry, keeping: Option<&Entry>) -> Result<(), Refused> {
        let name = &entry.name;
        if self.policy == Policy::Fifo {
            refuse!(
                "suspension_is_not_for_fifo",
                "{name} suspends itself, and then others overtake it; use another policy"
            );
        }
        if let Some(other) = keeping {
            refuse!(
                "suspension_needs_full_preemption",
                "{name} suspends itself, and {} has a region without preemption, which may \
                 begin each time; use --preemption full",
                other.name
            );
        }
        if let Some(other) = self.entries.iter().find(|entry| entry.task.blocking_ns > 0) {
            refuse!(
                "suspension_is_not_for_blocked_tasks",
                "{name} suspends itself, and {} may be blocked, each time",
                other.name
            );
        }
        if self.given.supply != Supplied::Each(Supply::WHOLE) {
            refuse!(
                "suspension_needs_a_whole_cpu",
                "{name} suspends itself, and a supply is sure only while it is asked for"
            );
        }
        Ok(())
    }

    /// Σ work/period, of works in turn and bursts in the long run.
    pub fn utilisation(&self) -> Exact {
        let all = self.entries.iter().filter(|entry| entry.requests.is_some()).map(Entry::requesting);
        let varied = requests::rate(&all.flatten().collect::<Vec<_>>());
        let alike = self.entries.iter().filter(|entry| entry.requests.is_none()).map(|entry| entry.task);
        utilisation(&alike.collect::<Vec<_>>()) + varied
    }

    /// Any CPU may run any task.
    pub fn is_global(&self) -> bool {
        self.cpus > 1 && self.partition.is_none() && self.homes.is_none()
    }
}

/// As many as were asked for, or as the supply has.
fn cpus_of(given: &Given, options: &Options, policy: Policy) -> Result<u32, Refused> {
    let cpus = match given.supply {
        Supplied::Each(_) => options.cpus.unwrap_or(1),
        Supplied::Together(supply) => {
            let cpus = supply.cpus();
            if options.cpus.is_some_and(|asked| asked != cpus) {
                refuse!(
                    "cpus_are_those_of_the_supply",
                    "the supply {} is for {cpus} CPUs; leave out --cpus, or give the same number",
                    given.text
                );
            }
            if options.partition.is_some() {
                refuse!(
                    "supply_is_of_several_cpus",
                    "with --partition each CPU has a supply of its own; give a supply without @"
                );
            }
            if policy != Policy::Edf {
                refuse!(
                    "supply_is_for_edf",
                    "a supply of several CPUs (@) can be tested with --policy edf only"
                );
            }
            cpus
        }
    };
    if cpus > 1 && options.partition.is_none() && options.supply.is_some() && !is_together(given) {
        refuse!(
            "supply_is_of_one_cpu",
            "several CPUs with a supply each need --partition, so that each task is on one; \
             what they give together is BUDGET/PERIOD@CPUS"
        );
    }
    Ok(cpus)
}

/// Options that the policy cannot have.
fn check_options(options: &Options, policy: Policy) -> Result<(), Refused> {
    let plain = options.supply.is_none() && !options.sensitivity;
    if policy.mixed().is_some() && !(plain && options.cpus.unwrap_or(1) == 1) {
        refuse!(
            "criticality_is_for_one_cpu",
            "leave out --supply and --sensitivity, and --cpus unless it is 1"
        );
    }
    if policy == Policy::Federated && !(plain && options.partition.is_none()) {
        refuse!("federated_is_for_whole_cpus", "leave out --partition, --supply and --sensitivity");
    }
    check_quantum(options, policy)
}

/// PD² has a quantum and several CPUs, and nothing else has.
fn check_quantum(options: &Options, policy: Policy) -> Result<(), Refused> {
    let is_pd2 = policy == Policy::Pd2;
    if is_pd2 && (options.cpus.unwrap_or(1) < 2 || options.partition.is_some() || options.supply.is_some()) {
        refuse!(
            "pd2_is_for_several_cpus",
            "give --cpus of at least 2, and leave out --partition and --supply"
        );
    }
    match options.quantum {
        None if is_pd2 => refuse!("quantum_must_be_given", "pd2 needs --quantum"),
        Some(0) => refuse!("quantum_is_above_zero", "--quantum 0ns, bound 1ns"),
        Some(_) if !is_pd2 => refuse!("quantum_is_of_pd2", "--quantum is an option of --policy pd2 only"),
        _ => Ok(()),
    }
}

/// Regions of jobs as was asked for, or as the columns say: with `last_section` those at fixed places, else floating ones. And where
/// their thresholds come from.
fn preempt(entries: &mut [Entry], asked: Option<Preemption>, policy: Policy) -> Thresholds {
    for entry in &mut *entries {
        let Sections { longest_ns, last_ns } = entry.sections;
        entry.sections = match asked {
            _ if policy == Policy::Fifo => Sections::default(), // it never preempts
            Some(Preemption::Full | Preemption::Thresholds) => Sections::default(),
            Some(Preemption::None) => {
                Sections { longest_ns: entry.task.work_ns, last_ns: entry.task.work_ns }
            }
            Some(Preemption::Floating) => Sections { longest_ns, last_ns: 0 },
            Some(Preemption::Limited) | None => Sections { longest_ns, last_ns },
        };
    }
    let has = entries.iter().any(|entry| entry.threshold.is_some());
    match asked {
        _ if policy == Policy::Fifo => Thresholds::None,
        Some(Preemption::Thresholds) | None if has => Thresholds::Given,
        Some(Preemption::Thresholds) => Thresholds::Chosen,
        _ => Thresholds::None,
    }
}
