//! Tasks of two criticalities.

use super::asked::Question;
use super::names::{MixedPolicy, Policy};
use super::one_cpu::{levels_of, ranks};
use super::refused::Refused;
use crate::criticality::{
    audsley, responses, schedulable, virtual_deadlines, Mixed, Responses, Scheme, Unsupported,
};
use crate::short_fraction;
use tierce_guarantee::{whole, Exact};

/// The verdict, and what it is made of.
#[derive(Clone, Debug)]
pub struct Criticalities {
    /// All deadlines are shown to be met that count.
    pub schedulable: bool,
    /// In plain words.
    pub remarks: Vec<String>,
    /// What was analysed.
    pub tasks: Vec<Mixed>,
    /// Of each task, with fixed priorities.
    pub levels: Vec<u32>,
    /// Of each task.
    pub responses: Vec<Responses>,
    /// The part of their periods after which `hi` jobs are due at first, with virtual deadlines.
    pub part: Option<Exact>,
}

pub fn answer(asked: &Question, policy: MixedPolicy) -> Result<Criticalities, Refused> {
    let mixed = |(index, task): (usize, &crate::Task)| {
        let criticality = asked.entries[index].criticality;
        let (hi, work_hi_ns) =
            criticality.map_or((false, task.work_ns), |given| (given.hi, given.work_hi_ns));
        Mixed { task: *task, hi, work_hi_ns }
    };
    let tasks: Vec<_> = asked.tasks.iter().enumerate().map(mixed).collect();
    let found = match policy {
        MixedPolicy::Fixed(scheme) => by_priority(asked, tasks, scheme),
        MixedPolicy::VirtualDeadlines => by_deadline(tasks),
    };
    found.map_err(|(index, rule)| unsupported(&asked.entries[index].name, rule))
}

fn unsupported(name: &str, rule: &'static str) -> Refused {
    let why = match rule {
        "deadlines_are_at_most_periods" => "has a deadline beyond its period",
        "deadlines_are_periods" => "has a deadline that is not its period",
        "tasks_are_not_blocked" => "may be blocked",
        "tasks_have_no_jitter" => "has a jitter",
        "work_hi_is_at_least_work" => "has a work_hi below its work",
        _ => "has a time out of range",
    };
    Refused::new(rule, format!("{name} {why}; the analyses of two criticalities do not cover that"))
}

/// In the order of the table's priorities, or in one that works.
fn by_priority(asked: &Question, tasks: Vec<Mixed>, scheme: Scheme) -> Result<Criticalities, Unsupported> {
    let mut remarks = Vec::new();
    let levels = if asked.entries.iter().all(|entry| entry.priority.is_some()) {
        levels_of(Policy::Fp, &asked.entries, 1)
    } else if let Some(order) = audsley(&tasks, scheme)? {
        ranks(&order)
    } else {
        remarks.push(
            "No order of priorities meets all deadlines; the results are for deadline-monotonic priorities."
                .to_string(),
        );
        levels_of(Policy::Dm, &asked.entries, 1)
    };
    let responses = responses(&tasks, &levels, scheme)?;
    let schedulable = schedulable(&tasks, &responses);
    Ok(Criticalities { schedulable, remarks, tasks, levels, responses, part: None })
}

fn by_deadline(tasks: Vec<Mixed>) -> Result<Criticalities, Unsupported> {
    let part = virtual_deadlines(&tasks)?;
    let remark = match &part {
        None => "No virtual deadlines are shown to be enough; the test is sufficient only.".to_string(),
        Some(part) if *part == whole(1) => "All deadlines are met without virtual ones.".to_string(),
        Some(part) => format!(
            "Until a job works longer than its work, hi jobs are due after {} of their periods.",
            short_fraction(part)
        ),
    };
    let responses = vec![Responses::default(); tasks.len()];
    Ok(Criticalities {
        schedulable: part.is_some(),
        remarks: vec![remark],
        tasks,
        levels: Vec::new(),
        responses,
        part,
    })
}

impl Criticalities {
    /// When a job is due at first, with virtual deadlines; rounded up to whole ns.
    pub fn first_due(&self, index: usize) -> Option<u64> {
        let task = &self.tasks[index];
        let part = if task.hi { self.part.clone()? } else { whole(1) };
        u64::try_from((part * whole(task.task.period_ns)).ceil().to_integer()).ok()
    }

    /// The response that counts.
    pub fn response(&self, index: usize) -> Option<u64> {
        let (task, found) = (&self.tasks[index], &self.responses[index]);
        if task.hi {
            found.worst_ns
        } else {
            found.usual_ns
        }
    }
}
