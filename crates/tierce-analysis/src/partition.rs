//! Tasks to CPUs: bin packing with an exact test for each CPU.
//!
//! Example: works 6, 5, 4, 3, 2 per 10 ms on two CPUs, first fit decreasing: 6 and 4 on one, 5, 3 and 2 on the other.
//!
//! Source: first, best, worst and next fit by decreasing utilisation (Lopez et al. 2000 and others). What it gives up: a
//! set that does not fit one way may fit another; nothing but trying all of them is exact.

use crate::task::Task;
use std::cmp::Ordering;

/// Which CPU is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The lowest.
    First,
    /// The fullest.
    Best,
    /// The emptiest.
    Worst,
    /// That of the task before, then the next one; none is tried again.
    Next,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// The CPU of each task.
    Fits(Vec<usize>),
    /// The first task that fitted nowhere.
    Fails(usize),
}

/// Put each of `tasks`, by decreasing utilisation, on one of `cpus` such that `holds` for what is there; it is told the
/// indices of the tasks in their order.
pub fn partition(
    tasks: &[Task],
    cpus: usize,
    fit: Fit,
    mut holds: impl FnMut(&[usize]) -> bool,
) -> Partition {
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by(|a, b| compare_shares(&tasks[*b], &tasks[*a]));
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); cpus];
    let mut load = vec![0.0f64; cpus]; // only to choose an order of trials
    let mut current = 0;
    for index in order {
        let mut trials: Vec<_> = (0..cpus).collect();
        match fit {
            Fit::First => {}
            Fit::Best => trials.sort_by(|a, b| load[*b].total_cmp(&load[*a])),
            Fit::Worst => trials.sort_by(|a, b| load[*a].total_cmp(&load[*b])),
            Fit::Next => trials.drain(..current).for_each(drop),
        }
        let found = trials.into_iter().find(|cpu| {
            let place = members[*cpu].partition_point(|other| *other < index);
            members[*cpu].insert(place, index);
            let fits = holds(&members[*cpu]);
            if !fits {
                members[*cpu].remove(place);
            }
            fits
        });
        let Some(cpu) = found else { return Partition::Fails(index) };
        load[cpu] += tasks[index].work_ns as f64 / tasks[index].period_ns as f64;
        current = cpu;
    }
    let mut cpu_of = vec![0; tasks.len()];
    for (cpu, members) in members.iter().enumerate() {
        members.iter().for_each(|index| cpu_of[*index] = cpu);
    }
    Partition::Fits(cpu_of)
}

/// By work/period, exactly.
fn compare_shares(a: &Task, b: &Task) -> Ordering {
    let left = u128::from(a.work_ns) * u128::from(b.period_ns);
    left.cmp(&(u128::from(b.work_ns) * u128::from(a.period_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_sum(works: &[u64], cpus: usize, fit: Fit) -> Partition {
        let tasks: Vec<_> = works.iter().map(|work| Task::new(*work, 10)).collect();
        partition(&tasks, cpus, fit, |members| members.iter().map(|index| works[*index]).sum::<u64>() <= 10)
    }

    #[test]
    fn each_fit_chooses_its_cpu() {
        let fits = |cpus: &[usize]| Partition::Fits(cpus.to_vec());
        assert_eq!(by_sum(&[6, 5, 4, 3, 2], 2, Fit::First), fits(&[0, 1, 0, 1, 1]));
        assert_eq!(by_sum(&[2, 3, 4, 5, 6], 2, Fit::First), fits(&[1, 1, 0, 1, 0]));
        assert_eq!(by_sum(&[5, 3, 2], 2, Fit::Worst), fits(&[0, 1, 1]));
        assert_eq!(by_sum(&[6, 5, 3, 2], 3, Fit::Best), fits(&[0, 1, 0, 1]));
        assert_eq!(by_sum(&[6, 5, 3, 2], 3, Fit::Next), fits(&[0, 1, 1, 1]));
        assert_eq!(by_sum(&[6, 5, 3, 3], 3, Fit::Next), fits(&[0, 1, 1, 2]));
        assert_eq!(by_sum(&[6, 6, 6], 2, Fit::First), Partition::Fails(2));
        assert_eq!(by_sum(&[6], 0, Fit::First), Partition::Fails(0));
    }
}
