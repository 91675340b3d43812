//! A question about a set of tasks, and the test that answers it: policy, supply, CPUs and partition choose it.
//!
//! ```
//! use tierce_analysis::question::{Answer, Options, Policy, Question};
//! let entries = tierce_analysis::parse("name,work,period\na,2ms,5ms\nb,4ms,10ms").unwrap();
//! let asked = Question::new(entries, &Options { policy: Some(Policy::Edf), ..Options::default() }).unwrap();
//! let Answer::Tasks(outcome) = asked.answer().unwrap() else { unreachable!("no task has two criticalities") };
//! assert!(outcome.schedulable && outcome.exact);
//! ```

mod asked;
mod federated;
mod names;
mod one_cpu;
mod refused;
mod several_cpus;
mod supplied;
mod two_criticalities;

pub use asked::{check_columns, Options, Question, Thresholds};
pub use names::{MixedPolicy, Named, Offsets, Policy, Preemption};
pub use one_cpu::levels_of;
pub(crate) use refused::refuse;
pub use refused::Refused;
pub use several_cpus::{Outcome, Sensitivity};
pub use supplied::{is_together, supply, time, time_within, Given, Supplied, CPUS_MAX};
pub use two_criticalities::Criticalities;

use crate::federated::Assigned;
use crate::Watch;

/// What comes of a question.
#[derive(Clone, Debug)]
pub enum Answer {
    /// On one CPU or several.
    Tasks(Outcome),
    /// Of tasks of two criticalities.
    Criticalities(Criticalities),
    /// Of parallel tasks: CPUs, or the task for which there is no room.
    Federated(Assigned),
}

impl Answer {
    /// That deadlines are not met is shown, too.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Tasks(outcome) if outcome.exact)
    }

    /// All deadlines are shown to be met.
    pub fn schedulable(&self) -> bool {
        match self {
            Self::Tasks(outcome) => outcome.schedulable,
            Self::Criticalities(found) => found.schedulable,
            Self::Federated(found) => found.is_ok(),
        }
    }
}

impl Question {
    /// All deadlines are shown to be met; and that they are not is shown, too. As [`Question::answer`] says, but without response
    /// times where they take longer than that.
    pub fn verdict(&self) -> Result<(bool, bool), Refused> {
        let is_special = self.policy.mixed().is_some() || self.policy == Policy::Federated;
        match self.is_global() {
            _ if is_special => {}
            true => return Ok((several_cpus::holds_anywhere(self)?, false)),
            false => return Ok(several_cpus::holds_in_parts(self)),
        }
        let answer = self.answer()?;
        Ok((answer.schedulable(), answer.is_exact()))
    }

    /// By the test for it.
    pub fn answer(&self) -> Result<Answer, Refused> {
        self.answer_while(&Watch::default())
    }

    /// The same. What is ended early has the response times that are known by then, if it can have a verdict; the others
    /// are [`crate::Response::TooLong`].
    pub fn answer_while(&self, watch: &Watch) -> Result<Answer, Refused> {
        if let Some(policy) = self.policy.mixed() {
            return two_criticalities::answer(self, policy).map(Answer::Criticalities);
        }
        if self.policy == Policy::Federated {
            return federated::answer(self).map(Answer::Federated);
        }
        if self.is_global() {
            return several_cpus::anywhere(self, watch).map(Answer::Tasks);
        }
        Ok(Answer::Tasks(several_cpus::in_parts(self, watch)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{tasks, Draw, Periods, Shares};
    use crate::partition::Fit;
    use crate::table::parse;

    /// Each waits for all that are more urgent, once: the supply is far from used up.
    #[test]
    fn very_many_tasks_are_decided() {
        let line = |at: u64| format!("t{at},50,{}", 10_000_000 + at * 900);
        let lines: Vec<_> = (0..20_000).map(line).collect();
        let entries = parse(&format!("name,work,period\n{}", lines.join("\n"))).unwrap();
        let options = Options { policy: Some(Policy::Dm), ..Options::default() };
        let Answer::Tasks(found) = Question::new(entries, &options).unwrap().answer().unwrap() else {
            panic!()
        };
        assert!(found.schedulable && found.exact && found.remarks.is_empty());
        let waits = |at: u64| crate::Response::Within(50 * (at + 1));
        assert!(found.responses.iter().zip(0..).all(|(response, at)| *response == waits(at)));
    }

    #[test]
    fn verdicts_without_response_times_are_those_with_them() {
        let mut draw = Draw::new(7);
        let mut seen = std::collections::HashSet::new();
        for round in 0..200 {
            let cpus = 1 + round % 3;
            let sum = f64::from(cpus) * (0.6 + 0.4 * f64::from(round) / 200.0);
            let shares = Shares::UUniFastDiscard { tasks: 8, sum };
            let set = tasks(&shares, &Periods::Uniform(10, 100), &mut draw).unwrap();
            let line = |(at, task): (usize, &crate::Task)| {
                let deadline = draw.between(task.work_ns, task.period_ns);
                format!("t{at},{},{},{deadline}", task.work_ns, task.period_ns)
            };
            let lines: Vec<_> = set.iter().enumerate().map(line).collect();
            let entries = parse(&format!("name,work,period,deadline\n{}", lines.join("\n"))).unwrap();
            for policy in [Policy::Edf, Policy::Dm, Policy::Dkc, Policy::Fifo, Policy::Audsley] {
                for (partition, preemption) in
                    [(Some(Fit::Worst), None), (Some(Fit::Worst), Some(Preemption::None)), (None, None)]
                {
                    let (policy, cpus) = (Some(policy), Some(cpus));
                    let options = Options { policy, cpus, partition, preemption, ..Options::default() };
                    let Ok(asked) = Question::new(entries.clone(), &options) else {
                        assert_eq!((policy, partition), (Some(Policy::Fifo), None));
                        continue;
                    };
                    let answer = asked.answer().unwrap();
                    let verdict = asked.verdict().unwrap();
                    assert_eq!(verdict.0, answer.schedulable(), "{options:?} {lines:?}");
                    if !verdict.0 || cpus == Some(1) {
                        assert_eq!(verdict.1, answer.is_exact(), "{options:?} {lines:?}");
                    }
                    seen.insert(verdict);
                }
            }
        }
        assert_eq!(seen.len(), 4, "{seen:?}");
    }
}
