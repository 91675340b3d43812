//! Parallel tasks.

use super::asked::Question;
use super::refused::Refused;
use crate::federated::{assign, Assigned, Parallel};

pub fn answer(asked: &Question) -> Result<Assigned, Refused> {
    let parallel = asked
        .entries
        .iter()
        .map(|entry| Parallel { task: entry.task, span_ns: entry.span_ns.unwrap_or(entry.task.work_ns) });
    assign(&parallel.collect::<Vec<_>>(), asked.cpus).map_err(|fault| {
        let name = &asked.entries[fault.task].name;
        let message = format!(
            "{name}; parallel tasks need deadlines of at most the period, spans of at most the work, and no blocking"
        );
        Refused::new(fault.rule, message)
    })
}
