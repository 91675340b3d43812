//! Operations: what a job does, with the resources that it holds.

use super::notation::quoted;
use super::tree::Group;
use crate::decimal::{Decimal, Round};
use crate::draft::Section;
use crate::text::{LeftOut, Refusal, Text, Word};
use std::cell::Cell;
use std::collections::HashMap;
use tierce_plan::show_time;

/// Operations within operations, and pieces that all activities may have together.
const DEPTH_MAX: usize = 16;
const PIECES_MAX: usize = 1_000_000;

/// What a job does.
#[derive(Default)]
pub struct Job {
    pub work_ns: u64,
    /// `work_ns` where the file does not say it.
    pub least_ns: u64,
    /// The file says it.
    pub has_least: bool,
    pub sections: Vec<Section>,
    pub left_out: Vec<LeftOut>,
}

/// All operations and shared resources of a model, by their names in lower case.
pub struct Operations<'a> {
    pub text: &'a Text,
    pub all: HashMap<String, &'a Group>,
    /// Names of locks.
    pub locks: HashMap<String, String>,
    /// That were looked at so far.
    pub pieces: Cell<usize>,
}

/// A job while it is taken together.
struct Building {
    job: Job,
    /// Where each lock begins and ends.
    steps: Vec<(u64, bool, String)>,
}

impl Operations<'_> {
    /// What the operation `name` does, on a processor where one unit of its times is `unit`, and one bit of a message `bit`.
    pub fn job(&self, name: &Word, unit: Decimal, bit: Option<Decimal>) -> Result<Job, Refusal> {
        let mut building = Building { job: Job::default(), steps: Vec::new() };
        self.add(name, (unit, bit), 0, &mut building)?;
        let Building { mut job, steps, .. } = building;
        match nested(&steps) {
            Some(sections) => job.sections = sections,
            None => {
                let why = "they are not held one within the other: they hold no lock";
                job.left_out.push(self.text.left_out(
                    &name.at,
                    format!("resources of {}", quoted(name)),
                    why,
                ));
            }
        }
        if job.work_ns == 0 {
            job.work_ns = 1;
            let what = format!("operation {} without work", quoted(name));
            job.left_out.push(self.text.left_out(&name.at, what, "it works 1 ns"));
        }
        if job.least_ns > 0 && job.least_ns < job.work_ns && !job.sections.is_empty() {
            let what = format!("best case {} of {}", show_time(job.least_ns), quoted(name));
            job.left_out.push(self.text.left_out(
                &name.at,
                what,
                "each job that holds locks works the most that it may",
            ));
            job.least_ns = 0;
        }
        job.has_least = job.least_ns > 0;
        if job.least_ns == 0 || job.least_ns > job.work_ns {
            job.least_ns = job.work_ns;
        }
        Ok(job)
    }

    /// The most and the least time that an operation takes itself; of a message by its size.
    fn times(
        &self,
        operation: &Group,
        name: &Word,
        (unit, bit): (Decimal, Option<Decimal>),
    ) -> Result<(u64, u64), Refusal> {
        let (most, least, unit) = match (&operation.kind()[..], bit) {
            ("message_transmission", Some(bit)) => ("max_message_size", "min_message_size", bit),
            ("message_transmission", None) => {
                let words = "this message takes no time: it is on no network with a `Throughput`";
                let refusal = self.text.fault("message_must_take_time", name.at.clone(), words);
                return Err(refusal.value(&name.text));
            }
            _ => ("worst_case_execution_time", "best_case_execution_time", unit),
        };
        let time = |key: &str, round| match operation.get(key) {
            Some(word) => self.text.amount(word, unit, round),
            None => Ok(0),
        };
        Ok((time(most, Round::Up)?, time(least, Round::Down)?))
    }

    fn add(
        &self,
        name: &Word,
        units: (Decimal, Option<Decimal>),
        depth: usize,
        building: &mut Building,
    ) -> Result<(), Refusal> {
        let unknown =
            || self.text.fault("operation_must_exist", name.at.clone(), "there is no operation of this name");
        let operation =
            *self.all.get(&name.text.to_ascii_lowercase()).ok_or_else(|| unknown().value(&name.text))?;
        self.pieces.set(self.pieces.get() + 1);
        if depth > DEPTH_MAX || self.pieces.get() > PIECES_MAX {
            let fault = self.text.fault(
                "operations_must_be_few",
                name.at.clone(),
                "operations have too many others within",
            );
            return Err(fault.bound(format!("{PIECES_MAX} operations, {DEPTH_MAX} levels")));
        }
        for part in operation.parts("new_sched_parameters") {
            let why = "a task has one priority: that of its server";
            building.job.left_out.push(self.text.left_out(
                &part.at.at,
                format!("priority of {}", quoted(name)),
                why,
            ));
        }
        let (own_ns, best_ns) = self.times(operation, name, units)?;
        let began_ns = building.job.work_ns;
        match &operation.kind()[..] {
            "simple" | "message_transmission" | "" => {
                for key in ["shared_resources_list", "shared_resources_to_lock"] {
                    self.lock(operation, key, began_ns, true, building)?;
                }
                building.job.work_ns = began_ns.saturating_add(own_ns);
                building.job.least_ns = building.job.least_ns.saturating_add(best_ns);
                let now = building.job.work_ns;
                for key in ["shared_resources_to_unlock", "shared_resources_list"] {
                    self.lock(operation, key, now, false, building)?;
                }
            }
            kind @ ("composite" | "enclosing") => {
                for part in operation.words("composite_operation_list") {
                    self.add(part, units, depth + 1, building)?;
                }
                if kind == "enclosing" {
                    // Where in it the others are is not said: at its begin.
                    building.job.work_ns = building.job.work_ns.max(began_ns.saturating_add(own_ns));
                    building.job.least_ns = building.job.least_ns.max(best_ns);
                }
            }
            other => {
                let words = "there is no such operation";
                let fault = self.text.fault("operation_must_be_known", name.at.clone(), words);
                return Err(fault.value(other).bound("Simple, Composite, Enclosing or Message_Transmission"));
            }
        }
        if building.job.work_ns > tierce_plan::TIME_MAX_NS {
            return Err(self.text.fault("time_must_fit", name.at.clone(), "this operation works too long"));
        }
        Ok(())
    }

    fn lock(
        &self,
        operation: &Group,
        key: &str,
        at_ns: u64,
        begins: bool,
        building: &mut Building,
    ) -> Result<(), Refusal> {
        let mut steps = Vec::new();
        for word in operation.words(key) {
            let lock = self.locks.get(&word.text.to_ascii_lowercase()).ok_or_else(|| {
                let message = "there is no shared resource of this name";
                self.text.fault("resource_must_exist", word.at.clone(), message).value(&word.text)
            })?;
            steps.push((at_ns, begins, lock.clone()));
        }
        self.pieces.set(self.pieces.get() + steps.len());
        building.steps.extend(steps);
        Ok(())
    }
}

/// Sections one within the other; `None`: they are not.
fn nested(steps: &[(u64, bool, String)]) -> Option<Vec<Section>> {
    const DEEPEST: usize = 8;
    let whole = |lock: &str, at_ns| Section { lock: lock.into(), at_ns, length_ns: 0, sections: Vec::new() };
    // Of each that is open where it begins, and what is within; the first is the job itself.
    let mut open = vec![whole("", 0)];
    let mut ending: Vec<&str> = Vec::new();
    for (number, (at_ns, begins, lock)) in steps.iter().enumerate() {
        if *begins {
            if open.len() > DEEPEST || open.iter().any(|section| section.lock == *lock) {
                return None;
            }
            open.push(whole(lock, *at_ns));
            continue;
        }
        ending.push(lock);
        // What ends at the same time ends in any order.
        if steps.get(number + 1).is_some_and(|(next_ns, begins, _)| next_ns == at_ns && !begins) {
            continue;
        }
        for _ in 0..ending.len() {
            let mut ended =
                open.pop().filter(|ended| ending.contains(&&ended.lock[..]) && !open.is_empty())?;
            let around = open.last_mut()?;
            ended.length_ns = at_ns - ended.at_ns;
            if ended.length_ns > 0 {
                ended.at_ns -= around.at_ns;
                around.sections.push(ended);
            }
        }
        ending.clear();
    }
    let whole = open.pop()?;
    open.is_empty().then_some(whole.sections)
}
