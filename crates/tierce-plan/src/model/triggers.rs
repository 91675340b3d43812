//! Which tasks release the jobs of which.

use crate::model::{Load, Plan};

impl Plan {
    /// The tasks that have to end a job each before one of this task is released, each with the delay after it. None of a task that is
    /// not triggered.
    pub fn triggers(&self, task: usize) -> Vec<(usize, u64)> {
        let mut found = Vec::new();
        if !matches!(self.tasks[task].load, Some(Load::Triggered(_))) {
            return found;
        }
        for pair in self.chains.iter().flat_map(|chain| chain.links.windows(2)) {
            let trigger = (pair[0].task, pair[1].delay_ns);
            if pair[1].task == task && !found.contains(&trigger) {
                found.push(trigger);
            }
        }
        found
    }
}
