//! Global EDF by demand that is forced forward: Baruah, Bonifaci, Marchetti-Spaccamela & Stiller, "Improved multiprocessor global
//! schedulability analysis", Real-Time Systems 46(1), 2010, Theorem 1 (the test FF-DBF).
//!
//! Choose a speed σ, at least the largest density C/D. In a window of t, work must be done that is due in it; of a job that is released
//! before the window, that is what a CPU of speed σ could not have done before. If a job is the first to miss its deadline, then
//! there is a window that ends with it, in which more is due than m CPUs are sure to do while a job runs at less than σ. So all
//! deadlines are met if for some σ and every t
//!
//! ```text
//! Σ (q·C + max(0, C − σ·(D − r)₀)) ≤ (m − (m − 1)·σ)·t,   q = ⌊t/T⌋, r = t mod T
//! ```
//!
//! The left side grows continuously from q·C to (q + 1)·C until r = D, so only windows of a period's multiple and a deadline count, which are
//! whole ns, and those below Σ U·(T − D)/(m − (m − 1)·σ − ΣU). With deadlines equal to periods there are none: then this is GFB. With jitter
//! D − J stands for every D: as much as this is sure to be left of a job when it is ready.
//!
//! Example, two CPUs: 3 in 12 due within 3, and twice 1 in 4. σ = 1 is the least; then the right side is t, and U = 3/4. In 3 the first has
//! 3 to do, the others C − (4 − 3) = 0 each: 3 ≤ 3. In 4 it is 3 + 1 + 1 = 5 > 4: not shown.

use crate::task::{utilisation, Task, WINDOW_MAX_NS};
use tierce_guarantee::{ratio, whole};

/// Speeds are so many parts of 1.
const SPEED_ONE: u64 = 1 << 20;

/// Speeds that are tried, and windows in all.
const SPEEDS: u128 = 16;
const WINDOWS_MAX: u32 = 20_000;

/// Whether all deadlines are shown to be met. They are at most periods, each task has room for its work, nobody is blocked.
pub(crate) fn shown(tasks: &[Task], cpus: u32) -> bool {
    let due = |task: &Task| Task { deadline_ns: task.deadline_ns - task.jitter_ns, jitter_ns: 0, ..*task };
    let tasks: Vec<_> = tasks.iter().map(due).collect();
    let density =
        |task: &Task| (u128::from(task.work_ns) * u128::from(SPEED_ONE)).div_ceil(task.deadline_ns.into());
    let Some(least) = tasks.iter().map(density).max() else { return true };
    let others = u128::from(cpus.max(1) - 1);
    let all = (others + 1) * u128::from(SPEED_ONE);
    let load = utilisation(&tasks);
    let early = |task: &Task| ratio(task.work_ns, task.period_ns) * whole(task.period_ns - task.deadline_ns);
    let early = tasks.iter().map(early).fold(whole(0), |sum, part| sum + part);
    let mut windows = WINDOWS_MAX;
    let step = (u128::from(SPEED_ONE).saturating_sub(least) / SPEEDS).max(1);
    (0..SPEEDS).map(|index| least + index * step).take_while(|speed| *speed <= SPEED_ONE.into()).any(
        |speed| {
            let Ok(rate) = u64::try_from(all - others * speed) else { return false };
            let slack = ratio(rate, SPEED_ONE) - &load;
            if slack <= whole(0) {
                return false;
            }
            let longest = (&early / &slack).ceil().to_integer();
            u64::try_from(longest).is_ok_and(|longest| {
                longest < WINDOW_MAX_NS && fits(&tasks, speed, rate, longest, &mut windows)
            })
        },
    )
}

/// Windows from the longest one down: where the demand of t is covered within t' ≤ t, so it is in those from t' to t.
fn fits(tasks: &[Task], speed: u128, rate: u64, longest: u64, windows: &mut u32) -> bool {
    let mut next = before(tasks, longest.saturating_add(1));
    while let Some(window) = next {
        if *windows == 0 {
            return false;
        }
        *windows -= 1;
        let demand: u128 = tasks.iter().map(|task| forced(task, speed, window)).sum();
        let enough = demand.div_ceil(rate.into());
        if enough > window.into() {
            return false;
        }
        next = before(tasks, u64::try_from(enough).unwrap_or(window));
    }
    true
}

/// The longest window below `end` that ends with a deadline.
fn before(tasks: &[Task], end: u64) -> Option<u64> {
    let last = |task: &Task| {
        let room = end.checked_sub(task.deadline_ns + 1)?;
        Some(room - room % task.period_ns + task.deadline_ns)
    };
    tasks.iter().filter_map(last).max()
}

/// What is to be done of a task within a window, times [`SPEED_ONE`].
fn forced(task: &Task, speed: u128, window: u64) -> u128 {
    let work = u128::from(task.work_ns) * u128::from(SPEED_ONE);
    let outside = task.deadline_ns.saturating_sub(window % task.period_ns);
    u128::from(window / task.period_ns) * work + work.saturating_sub(speed * u128::from(outside))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every window and every speed, from the definition.
    #[test]
    fn no_window_is_left_out() {
        let mut draw = crate::generate::Draw::new(7);
        let (mut yes, mut no) = (0, 0);
        for _ in 0..6_000 {
            let cpus = draw.between(1, 4) as u32;
            let task = |draw: &mut crate::generate::Draw| {
                let period = draw.between(3, 12);
                let work = draw.between(1, period / 2);
                Task { deadline_ns: draw.between(work, period), ..Task::new(work, period) }
            };
            let tasks: Vec<_> = (0..draw.between(2, 6)).map(|_| task(&mut draw)).collect();
            let speed = u128::from(SPEED_ONE) * u128::from(draw.between(8, 16)) / 16;
            let all = u128::from(cpus) * u128::from(SPEED_ONE);
            let rate = u64::try_from(all - u128::from(cpus - 1) * speed).unwrap();
            let dense =
                |task: &Task| u128::from(task.work_ns * SPEED_ONE) > speed * u128::from(task.deadline_ns);
            if utilisation(&tasks) >= ratio(rate, SPEED_ONE) || tasks.iter().any(dense) {
                continue;
            }
            let in_all = (0..3_000).all(|window| {
                let demand: u128 = tasks.iter().map(|task| forced(task, speed, window)).sum();
                demand <= u128::from(rate) * u128::from(window)
            });
            assert_eq!(
                fits(&tasks, speed, rate, 3_000, &mut 100_000),
                in_all,
                "{tasks:?} on {cpus} at {speed}"
            );
            if in_all {
                yes += 1
            } else {
                no += 1
            }
        }
        assert!(yes > 200 && no > 200, "{yes} {no}");
    }

    #[test]
    fn the_example() {
        let tasks = [Task { deadline_ns: 3, ..Task::new(3, 12) }, Task::new(1, 4), Task::new(1, 4)];
        assert_eq!(forced(&tasks[0], SPEED_ONE.into(), 3), 3 * u128::from(SPEED_ONE));
        assert_eq!(forced(&tasks[1], SPEED_ONE.into(), 3), 0);
        assert!(!shown(&tasks, 2) && shown(&tasks[..2], 2));
    }
}
