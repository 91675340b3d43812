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

pub use asked::{check_columns, Options, Question};
pub use names::{MixedPolicy, Named, Offsets, Policy, Preemption};
pub use one_cpu::levels_of;
pub use refused::Refused;
pub use several_cpus::{Outcome, Sensitivity};
pub use supplied::{is_together, supply, time, time_within, Given, Supplied, CPUS_MAX};
pub use two_criticalities::Criticalities;

use crate::federated::Assigned;

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
    /// By the test for it.
    pub fn answer(&self) -> Result<Answer, Refused> {
        if let Some(policy) = self.policy.mixed() {
            return two_criticalities::answer(self, policy).map(Answer::Criticalities);
        }
        if self.policy == Policy::Federated {
            return federated::answer(self).map(Answer::Federated);
        }
        if self.is_global() {
            return several_cpus::anywhere(self).map(Answer::Tasks);
        }
        Ok(Answer::Tasks(several_cpus::in_parts(self)))
    }
}
