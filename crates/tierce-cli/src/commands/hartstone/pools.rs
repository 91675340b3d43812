//! What Hartstone's PH series runs: the tasks of each experiment at each step, in exact numbers.
//!
//! Weiderman and Kamenoff 1992, with the baseline and the steps of Golchin 2017, table 4.1 and sections 4.2 and 4.3. Step 0 is the
//! baseline. Deadlines are periods, all tasks begin together, and a late job runs on.

use tierce_guarantee::{ratio, Exact};

/// A thousand whetstones: CPU time.
pub const KILO_WHET_NS: u64 = 1_250_000;

/// The extended version changes the load at these times, and ends at the last.
pub const STAGES_NS: [u64; 3] = [30_000_000_000, 45_000_000_000, 120_000_000_000];

pub const EXPERIMENTS: [u32; 4] = [1, 2, 3, 4];

/// More than any scheduler can pass: the load of each experiment is above 1 there.
pub const STEPS_MAX: u32 = 40;

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Name in plans; `t1` is the slowest.
    pub name: String,
    /// In hundredths of 1 Hz, of which every frequency here is a whole number.
    pub centihertz: u64,
    /// Work of each job.
    pub kilo_whets: u64,
}

impl Task {
    fn new(name: String, centihertz: u64, kilo_whets: u64) -> Self {
        Self { name, centihertz, kilo_whets }
    }

    /// Rounded up to whole nanoseconds, so that the load is never above the nominal one.
    pub fn period_ns(&self) -> u64 {
        100_000_000_000u64.div_ceil(self.centihertz)
    }

    pub fn work_ns(&self) -> u64 {
        self.kilo_whets * KILO_WHET_NS
    }

    /// Of one CPU, exactly.
    pub fn load(&self) -> Exact {
        ratio(self.centihertz * self.work_ns(), 100_000_000_000)
    }
}

/// The tasks of an experiment at a step.
pub fn pool(experiment: u32, step: u32) -> Vec<Task> {
    let step = u64::from(step);
    let mut tasks: Vec<_> = (1..=5).map(|n| Task::new(format!("t{n}"), 100 << n, 64 >> n)).collect();
    match experiment {
        1 => tasks[4].centihertz += 800 * step,
        2 => tasks.iter_mut().for_each(|task| task.centihertz = task.centihertz / 10 * (10 + step)),
        3 => tasks.iter_mut().for_each(|task| task.kilo_whets += step),
        _ => {
            let third = tasks[2].clone();
            let more = (1..=step).map(|n| Task::new(format!("x{n}"), third.centihertz, third.kilo_whets));
            tasks.extend(more);
        }
    }
    tasks
}

/// The steps of the extended version's three stages: about 48 %, 120 % and 48 % of a CPU.
pub fn stages(experiment: u32) -> [u32; 3] {
    match experiment {
        1 => [4, 40, 4],
        2 => [2, 20, 2],
        _ => [1, 10, 1],
    }
}

/// Of one CPU, exactly.
pub fn load(tasks: &[Task]) -> Exact {
    tasks.iter().map(Task::load).fold(ratio(0, 1), |sum, one| sum + one)
}

/// What a step of an experiment adds.
pub fn title(experiment: u32) -> &'static str {
    match experiment {
        1 => "task 5 is 8 Hz faster with each step",
        2 => "all tasks are faster by a tenth of the baseline with each step",
        3 => "a kilo-whet more for every task with each step",
        _ => "another task like task 3 with each step",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 4.1, and the loads that the readings of the thesis have.
    #[test]
    fn loads_are_those_of_the_thesis() {
        let at = |experiment, step| load(&pool(experiment, step));
        let baseline: Vec<_> = pool(1, 0).iter().map(|task| (task.centihertz, task.kilo_whets)).collect();
        assert_eq!(baseline, [(200, 32), (400, 16), (800, 8), (1600, 4), (3200, 2)]);
        let last =
            [(1, 30, ratio(1, 1)), (2, 15, ratio(1, 1)), (3, 7, ratio(9425, 10_000)), (4, 7, ratio(96, 100))];
        for (experiment, step, expected) in last {
            assert_eq!(at(experiment, 0), ratio(2, 5));
            assert_eq!(at(experiment, step), expected);
            assert!(at(experiment, step + 1) > ratio(1, 1) && at(experiment, STEPS_MAX) > ratio(1, 1));
        }
        for (experiment, low, high) in
            [(1, 4800, 12_000), (2, 4800, 12_000), (3, 4775, 11_750), (4, 4800, 12_000)]
        {
            let [first, second, third] = stages(experiment).map(|step| at(experiment, step));
            assert_eq!((first.clone(), second), (ratio(low, 10_000), ratio(high, 10_000)));
            assert_eq!(first, third);
        }
    }

    #[test]
    fn periods_are_rounded_up() {
        assert_eq!(pool(1, 30)[4].period_ns(), 3_676_471);
        assert_eq!(pool(2, 15)[0].period_ns(), 200_000_000);
    }
}
