//! Tasks to CPUs: bin packing with an exact test for each CPU.
//!
//! Example: works 6, 5, 4, 3, 2 per 10 ms on two CPUs, first fit decreasing: 6 and 4 on one, 5, 3 and 2 on the other.
//!
//! Source: first, best, worst and next fit by decreasing utilisation (Lopez et al. 2000 and others). By period: servers of
//! similar periods on one CPU switch less (HLS 6.3.1; ExSched, "categorized by period", where a mixed placement costs 1.42
//! times as much); how often is estimated, and made least by [`fewest_switches`]. What it gives up: a set that does not fit one way may fit another; nothing but trying all of them is exact.

use crate::task::Task;
use std::cmp::{Ordering, Reverse};

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
    /// By increasing period, each CPU as many as hold there, such that no CPU has periods further apart than must be: the
    /// largest ratio of two periods on one CPU is as small as it can be, to a millionth.
    Period,
    /// By increasing period, dealt out: each CPU gets periods of all lengths.
    Mixed,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// The CPU of each task.
    Fits(Vec<usize>),
    /// The first task that fitted nowhere.
    Fails(usize),
}

/// Put each of `tasks`, by decreasing utilisation or by period, on one of `cpus` such that `holds` for what is there; it is told
/// the indices of the tasks in their order, and holds for some of them if it does for all.
pub fn partition(
    tasks: &[Task],
    cpus: usize,
    fit: Fit,
    mut holds: impl FnMut(&[usize]) -> bool,
) -> Partition {
    if fit == Fit::Period {
        return by_period(tasks, cpus, &mut holds);
    }
    let mut order = by_utilisation(tasks);
    if fit == Fit::Mixed {
        order = (0..tasks.len()).collect();
        order.sort_by_key(|index| tasks[*index].period_ns);
    }
    let empty = Start { load: vec![0; cpus], preferred: vec![None; tasks.len()] };
    match place(tasks, &order, fit, empty, |_, members| holds(members)) {
        Ok(cpu_of) => Partition::Fits(cpu_of),
        Err(stuck) => Partition::Fails(stuck.task),
    }
}

/// By decreasing utilisation, equals in their order.
pub fn by_utilisation(tasks: &[Task]) -> Vec<usize> {
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by(|a, b| compare_shares(&tasks[*b], &tasks[*a]));
    order
}

/// A whole CPU in loads. Whatever divides it is no rounding, so sums of usual shares are equal if they should be.
const WHOLE: u128 = 720_720 * 1_000_000_000_000;

/// The utilisation of a task, for comparisons.
pub fn load(task: &Task) -> u128 {
    u128::from(task.work_ns) * WHOLE / u128::from(task.period_ns.max(1))
}

/// What is known before tasks are placed.
#[derive(Clone, Debug)]
pub struct Start {
    /// Of each CPU by what stays there: the sum of [`load`]. It only chooses which CPU is tried first.
    pub load: Vec<u128>,
    /// The CPU that each task is to have if it holds there. As long as the task has no other, it counts as a load of that one.
    pub preferred: Vec<Option<usize>>,
}

/// A task that fitted nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its index.
    pub task: usize,
    /// The tasks that had been placed on each CPU by then, in their order.
    pub members: Vec<Vec<usize>>,
}

/// Put one task after the other, in this order, on the first CPU where `holds`: the preferred one, then as `fit` says (not by
/// period). `holds` is told the CPU and the indices of the tasks there.
pub fn place(
    tasks: &[Task],
    order: &[usize],
    fit: Fit,
    start: Start,
    mut holds: impl FnMut(usize, &[usize]) -> bool,
) -> Result<Vec<usize>, Stuck> {
    let Start { mut load, preferred } = start;
    let cpus = load.len();
    let share = |index: usize| self::load(&tasks[index]);
    for (index, cpu) in preferred.iter().enumerate().filter_map(|(index, cpu)| Some((index, (*cpu)?))) {
        load[cpu] += share(index);
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); cpus];
    let mut cpu_of = vec![0; tasks.len()];
    let mut current = 0;
    for &index in order {
        let mut trials: Vec<_> = (0..cpus).collect();
        match fit {
            Fit::First | Fit::Period => {}
            Fit::Best => trials.sort_by_key(|cpu| Reverse(load[*cpu])),
            Fit::Worst => trials.sort_by_key(|cpu| load[*cpu]),
            Fit::Next => trials.drain(..current).for_each(drop),
            Fit::Mixed => trials.rotate_left(current),
        }
        let trials = preferred[index].into_iter().chain(trials);
        let found =
            trials.into_iter().find(|cpu| add(&mut members[*cpu], index, &mut |all| holds(*cpu, all)));
        let Some(cpu) = found else { return Err(Stuck { task: index, members }) };
        if preferred[index] != Some(cpu) {
            preferred[index].into_iter().for_each(|before| load[before] -= share(index));
            load[cpu] += share(index);
        }
        current = if fit == Fit::Mixed { (cpu + 1) % cpus } else { cpu };
        cpu_of[index] = cpu;
    }
    Ok(cpu_of)
}

/// Whether it holds with one more, which then is a member.
fn add(members: &mut Vec<usize>, index: usize, holds: &mut impl FnMut(&[usize]) -> bool) -> bool {
    let place = members.partition_point(|other| *other < index);
    members.insert(place, index);
    let fits = holds(members);
    if !fits {
        members.remove(place);
    }
    fits
}

/// How often servers on one CPU begin or go on, in millionths per second, if phases are anyhow: each begins once per period,
/// and interrupts what is below it if that runs just then,
///
/// ```text
/// Σ 1/Tᵢ · (1 + Σ Cⱼ/Tⱼ over those below)
/// ```
///
/// `levels` has one number per task of all, the smaller the higher its priority; equals do not interrupt each other.
pub fn switches(tasks: &[Task], levels: &[u32], members: &[usize]) -> u128 {
    const SECOND: u128 = 1_000_000_000 * MILLION;
    let each = |index: &usize| {
        let begins = SECOND / u128::from(tasks[*index].period_ns);
        let below = members.iter().filter(|other| levels[**other] > levels[*index]);
        let share =
            |other: &usize| begins * u128::from(tasks[*other].work_ns) / u128::from(tasks[*other].period_ns);
        begins + below.map(share).sum::<u128>()
    };
    members.iter().map(each).sum()
}

/// Placements that are looked at on the way to fewer switches.
const PLACEMENTS_MAX: u32 = 200_000;

/// A placement near `cpu_of`, which holds, with fewer [`switches`] on all CPUs together: one task moves, or two change places, as
/// long as that helps. It is least among these steps, not among all.
pub fn fewest_switches(
    tasks: &[Task],
    levels: &[u32],
    cpus: usize,
    mut cpu_of: Vec<usize>,
    mut holds: impl FnMut(&[usize]) -> bool,
) -> Vec<usize> {
    let on = |cpu_of: &[usize], cpu| -> Vec<usize> {
        (0..cpu_of.len()).filter(|index| cpu_of[*index] == cpu).collect()
    };
    let mut looks = 0;
    // Change the CPUs of some tasks, if that holds and is better.
    let mut change = |cpu_of: &mut Vec<usize>, changes: &[(usize, usize)]| {
        let mut changed = cpu_of.clone();
        changes.iter().for_each(|(index, cpu)| changed[*index] = *cpu);
        let mut touched: Vec<_> =
            changes.iter().flat_map(|(index, _)| [cpu_of[*index], changed[*index]]).collect();
        touched.sort_unstable();
        touched.dedup();
        looks += 1;
        if touched.len() < 2 || looks > PLACEMENTS_MAX {
            return false;
        }
        let count = |cpu_of: &[usize]| -> u128 {
            touched.iter().map(|cpu| switches(tasks, levels, &on(cpu_of, *cpu))).sum()
        };
        let found = count(&changed) < count(cpu_of) && touched.iter().all(|cpu| holds(&on(&changed, *cpu)));
        if found {
            *cpu_of = changed;
        }
        found
    };
    loop {
        let mut changed = false;
        for a in 0..tasks.len() {
            for cpu in 0..cpus {
                changed |= change(&mut cpu_of, &[(a, cpu)]);
            }
            for b in a + 1..tasks.len() {
                let swapped = [(a, cpu_of[b]), (b, cpu_of[a])];
                changed |= change(&mut cpu_of, &swapped);
            }
        }
        if !changed {
            return cpu_of;
        }
    }
}

/// The unit of ratios of periods.
const MILLION: u128 = 1_000_000;

fn by_period(tasks: &[Task], cpus: usize, holds: &mut impl FnMut(&[usize]) -> bool) -> Partition {
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| tasks[*index].period_ns);
    let mut fill = |ratio: u128| {
        let mut cpu_of = vec![0; tasks.len()];
        let (mut cpu, mut members, mut shortest) = (0, Vec::new(), u128::MAX);
        for index in &order {
            let period = u128::from(tasks[*index].period_ns);
            let near = members.is_empty() || period * MILLION <= shortest.saturating_mul(ratio);
            if !(near && add(&mut members, *index, holds)) {
                members.clear();
                cpu += 1;
                if cpu >= cpus || !add(&mut members, *index, holds) {
                    return Err(*index);
                }
            }
            if members.len() == 1 {
                shortest = period;
            }
            cpu_of[*index] = cpu;
        }
        Ok(cpu_of)
    };
    let period = |index: Option<&usize>| index.map_or(1, |index| u128::from(tasks[*index].period_ns));
    let (mut low, mut high) = (MILLION, (period(order.last()) * MILLION).div_ceil(period(order.first())));
    let mut found = match fill(high) {
        _ if cpus == 0 => {
            return order.first().map_or(Partition::Fits(Vec::new()), |index| Partition::Fails(*index))
        }
        Ok(found) => found,
        Err(index) => return Partition::Fails(index),
    };
    while low < high {
        let middle = low + (high - low) / 2;
        match fill(middle) {
            Ok(better) => (found, high) = (better, middle),
            Err(_) => low = middle + 1,
        }
    }
    Partition::Fits(found)
}

/// By work/period, exactly.
pub(crate) fn compare_shares(a: &Task, b: &Task) -> Ordering {
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
        for fit in [Fit::First, Fit::Best, Fit::Worst, Fit::Next, Fit::Period, Fit::Mixed] {
            assert_eq!(by_sum(&[6], 0, fit), Partition::Fails(0));
            assert_eq!(by_sum(&[], 0, fit), fits(&[]));
            assert_eq!(by_sum(&[6, 11], 3, fit), Partition::Fails(1));
        }
        assert_eq!(by_sum(&[6, 3, 2, 5], 2, Fit::Period), fits(&[0, 0, 1, 1]));
        assert_eq!(by_sum(&[4, 3, 2, 5], 2, Fit::Mixed), fits(&[0, 1, 0, 1]));
        assert_eq!(by_sum(&[6, 3, 5, 2], 2, Fit::Mixed), fits(&[0, 1, 1, 0]));
    }

    #[test]
    fn placing_goes_on_from_what_is_there() {
        let works = [5, 3, 2];
        let tasks = works.map(|work| Task::new(work, 10));
        let place = |fit, room: [u64; 2], preferred: [Option<usize>; 3]| {
            let load = room.map(|room| super::load(&Task::new(10 - room, 10))).to_vec();
            let start = Start { load, preferred: preferred.to_vec() };
            let holds = |cpu: usize, all: &[usize]| all.iter().map(|at| works[*at]).sum::<u64>() <= room[cpu];
            super::place(&tasks, &by_utilisation(&tasks), fit, start, holds)
        };
        assert_eq!(place(Fit::Worst, [10, 10], [None; 3]), Ok(vec![0, 1, 1]));
        assert_eq!(place(Fit::Worst, [4, 9], [None; 3]), Ok(vec![1, 0, 1]), "less is left of the first");
        assert_eq!(place(Fit::Best, [10, 9], [None; 3]), Ok(vec![1, 1, 0]));
        assert_eq!(place(Fit::Worst, [10, 10], [Some(1), Some(1), None]), Ok(vec![1, 1, 0]));
        assert_eq!(place(Fit::Worst, [5, 5], [Some(1), Some(1), None]), Ok(vec![1, 0, 0]), "no room there");
        let stuck = Stuck { task: 2, members: vec![vec![1], vec![0]] };
        assert_eq!(place(Fit::Worst, [4, 6], [None; 3]), Err(stuck));
    }

    #[test]
    fn switches_are_counted_and_made_fewer() {
        // 1 ms per 4 ms above 2 ms per 10 ms: 250 begin, 100 begin, and of the 250 a fifth interrupts.
        let tasks = [Task::new(1_000_000, 4_000_000), Task::new(2_000_000, 10_000_000)];
        assert_eq!(switches(&tasks, &[0, 1], &[0, 1]), 400 * MILLION);
        assert_eq!(switches(&tasks, &[0, 0], &[0, 1]), 350 * MILLION);
        assert_eq!(switches(&tasks, &[0, 1], &[0]), 250 * MILLION);
        // Against all placements of six tasks on two CPUs, from every start that holds: never more than the start, and where
        // the least is one step away, the least.
        let mut state = 11u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..40 {
            let tasks: Vec<_> = (0..6).map(|_| Task::new(1 + draw(20), 60 + draw(200))).collect();
            let mut levels = [0; 6];
            (0..)
                .zip(crate::priorities::rate_monotonic(&tasks))
                .for_each(|(rank, index)| levels[index] = rank);
            let holds = |members: &[usize]| {
                members.iter().map(|i| tasks[*i].work_ns * 100 / tasks[*i].period_ns).sum::<u64>() <= 60
            };
            let all = |cpu_of: &[usize]| -> u128 {
                let on = |cpu| (0..6).filter(|index| cpu_of[*index] == cpu).collect::<Vec<_>>();
                (0..2).map(|cpu| switches(&tasks, &levels, &on(cpu))).sum()
            };
            for start in 0..64usize {
                let cpu_of: Vec<_> = (0..6).map(|bit| start >> bit & 1).collect();
                let on = |cpu_of: &[usize], cpu| (0..6).filter(|i| cpu_of[*i] == cpu).collect::<Vec<_>>();
                if !(holds(&on(&cpu_of, 0)) && holds(&on(&cpu_of, 1))) {
                    continue;
                }
                let found = fewest_switches(&tasks, &levels, 2, cpu_of.clone(), holds);
                assert!(all(&found) <= all(&cpu_of));
                assert!(holds(&on(&found, 0)) && holds(&on(&found, 1)));
                for a in 0..6 {
                    for b in 0..6 {
                        let mut near = found.clone();
                        near.swap(a, b);
                        if a == b {
                            near[a] = 1 - near[a];
                        }
                        let fits = holds(&on(&near, 0)) && holds(&on(&near, 1));
                        assert!(!fits || all(&near) >= all(&found), "{tasks:?} {found:?} {near:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn near_periods_share_a_cpu() {
        let on = |periods: &[u64], cpus| {
            let tasks: Vec<_> = periods.iter().map(|period| Task::new(1, *period)).collect();
            partition(&tasks, cpus, Fit::Period, |members| members.len() <= 4)
        };
        let fits = |cpus: &[usize]| Partition::Fits(cpus.to_vec());
        assert_eq!(on(&[30, 4, 28, 3, 5], 2), fits(&[1, 0, 1, 0, 0]));
        assert_eq!(on(&[30, 4, 28, 3, 5], 1), Partition::Fails(0));
        assert_eq!(on(&[1, 2, 4, 8], 1), fits(&[0, 0, 0, 0]));
        assert_eq!(on(&[1, 2, 4, 8], 2), fits(&[0, 0, 1, 1]));
        assert_eq!(on(&[1, 2, 4, 8], 9), fits(&[0, 1, 2, 3]));
        assert_eq!(on(&[1, 1, 1, 1, 1 << 60, 1 << 60], 2), fits(&[0, 0, 0, 0, 1, 1]));
        // The least ratio for which there is a way, against all ways to cut the row of periods.
        let mut state = 5u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..300 {
            let mut periods: Vec<_> = (0..7).map(|_| 1 + draw(40)).collect();
            periods.sort_unstable();
            let Partition::Fits(cpu_of) = on(&periods, 3) else { panic!("3 times 4 is enough") };
            let worst = |cpu_of: &[usize]| {
                let on_one = |cpu: usize| periods.iter().zip(cpu_of).filter(move |(_, on)| **on == cpu);
                let ends =
                    |cpu| Some((*on_one(cpu).map(|(period, _)| period).max()?, *on_one(cpu).next()?.0));
                (0..3).filter_map(ends).map(|(most, least)| most * 1_000_000 / least).max().unwrap()
            };
            let cuts = (0..=7).flat_map(|a| (a..=7).map(move |b| (a, b)));
            let ways = cuts.filter(|(a, b)| *a <= 4 && b - a <= 4 && 7 - b <= 4);
            let best = ways.map(|(a, b)| {
                worst(&(0..7).map(|at| usize::from(at >= a) + usize::from(at >= b)).collect::<Vec<_>>())
            });
            assert_eq!(worst(&cpu_of), best.min().unwrap(), "{periods:?}: {cpu_of:?}");
        }
    }
}
