//! What is analysed: periodic or sporadic tasks.

use tierce_guarantee::{ratio, whole, Exact, TIME_MAX_NS};

/// No window longer than this is looked at.
pub(crate) const WINDOW_MAX_NS: u64 = 1 << 62;

/// A periodic or sporadic task. A job is nominally released once per period or later, becomes ready up to `jitter_ns`
/// after that, works for up to `work_ns`, and is to be done `deadline_ns` after the nominal release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Longest work of a job, above 0.
    pub work_ns: u64,
    /// Shortest distance of nominal releases, above 0.
    pub period_ns: u64,
    /// From the nominal release; may be shorter or longer than the period.
    pub deadline_ns: u64,
    /// How late a job may become ready.
    pub jitter_ns: u64,
    /// How long a job may have to wait for work that should come after it: critical sections, what cannot be preempted.
    pub blocking_ns: u64,
}

impl Task {
    /// With a deadline equal to the period, no jitter, no blocking.
    pub fn new(work_ns: u64, period_ns: u64) -> Self {
        Self { work_ns, period_ns, deadline_ns: period_ns, jitter_ns: 0, blocking_ns: 0 }
    }

    /// All times are within [`TIME_MAX_NS`], work and period above 0.
    pub(crate) fn is_valid(&self) -> bool {
        let times = [self.work_ns, self.period_ns, self.deadline_ns, self.jitter_ns, self.blocking_ns];
        self.work_ns > 0 && self.period_ns > 0 && times.into_iter().all(|time| time <= TIME_MAX_NS)
    }
}

/// Regions of a job without preemption by other tasks; in whole ns, so a region of 1 is as preemptive as none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    /// The longest, anywhere in a job: how long a more urgent one may have to wait, less the ns in which it began.
    pub longest_ns: u64,
    /// That with which each job ends: no more than the work less this comes before it. 0: it need not end with one.
    pub last_ns: u64,
}

/// With what each job of a task ends, and who preempts it there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastRegion {
    /// CPU time; 0: there is none.
    pub length_ns: u64,
    /// Tasks of smaller levels than that preempt it.
    pub level: u32,
}

/// The longest response of any job of a task: from its nominal release to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// This many ns, and some job needs them.
    Within(u64),
    /// There is no bound: more is asked for than supplied.
    Unbounded,
    /// There may be a bound, but the window to look at is too long: utilisation and supply are equal or nearly, or times
    /// are far apart. Nothing is promised.
    TooLong,
}

impl Response {
    /// In ns, where there is a bound.
    pub fn ns(self) -> Option<u64> {
        match self {
            Self::Within(ns) => Some(ns),
            _ => None,
        }
    }

    /// It is shown to be at most that.
    pub fn meets(self, deadline_ns: u64) -> bool {
        self.ns().is_some_and(|ns| ns <= deadline_ns)
    }
}

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// Σ work/period compared with `rate`, exactly.
pub(crate) fn compare_utilisation(tasks: &[Task], rate: (u64, u64)) -> std::cmp::Ordering {
    let rough = |task: &Task| task.work_ns as f64 / task.period_ns as f64;
    let (sum, bound) = (tasks.iter().map(rough).sum::<f64>(), rate.0 as f64 / rate.1 as f64);
    // Each quotient and each sum is wrong by 2^-53 of it at most.
    let error = (tasks.len() as f64 + 4.0) * 1e-15 * (sum + bound);
    if (sum - bound).abs() > error {
        return sum.total_cmp(&bound);
    }
    utilisation(tasks).cmp(&ratio(rate.0, rate.1))
}

/// Σ work/period, exactly; summed in pairs, so that the common denominator grows late. Periods are above 0.
pub fn utilisation(tasks: &[Task]) -> Exact {
    match tasks {
        [] => whole(0),
        [task] => ratio(task.work_ns, task.period_ns),
        _ => {
            let (left, right) = tasks.split_at(tasks.len() / 2);
            utilisation(left) + utilisation(right)
        }
    }
}

/// Two numbers between which the [`utilisation`] is, less than n/2⁶³ apart. The exact one of many periods is a fraction of very many
/// digits.
pub(crate) fn utilisation_bounds(tasks: &[Task]) -> (Exact, Exact) {
    const BITS: u32 = 63;
    let exact = |parts: u128| {
        let rest = parts as u64 & ((1 << BITS) - 1);
        Some(whole(u64::try_from(parts >> BITS).ok()?) + ratio(rest, 1 << BITS))
    };
    let share = |task: &Task| (u128::from(task.work_ns) << BITS) / u128::from(task.period_ns);
    let least = tasks.iter().map(share).try_fold(0u128, u128::checked_add);
    let bounds = least.and_then(|least| exact(least).zip(exact(least.checked_add(tasks.len() as u128)?)));
    bounds.unwrap_or_else(|| (utilisation(tasks), utilisation(tasks)))
}

/// The [`utilisation`] is at most `bound`.
pub(crate) fn utilisation_is_at_most(tasks: &[Task], bound: &Exact) -> bool {
    let (least, most) = utilisation_bounds(tasks);
    most <= *bound || (least <= *bound && utilisation(tasks) <= *bound)
}

/// A fraction, or where nobody could read that, a decimal marked with ~.
pub fn short_fraction(share: &Exact) -> String {
    let text = share.to_string();
    if text.len() <= 40 {
        text
    } else {
        format!("~{:.9}", float(share))
    }
}

/// For the eye only.
fn float(share: &Exact) -> f64 {
    let scaled = (share * whole(1_000_000_000)).round().to_integer();
    scaled.to_string().parse::<f64>().unwrap_or(f64::NAN) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_the_utilisation() {
        let tasks: Vec<_> = (1..300).map(|at| Task::new(at % 7 + 1, 1_000 + 13 * at)).collect();
        let (exact, (least, most)) = (utilisation(&tasks), utilisation_bounds(&tasks));
        assert!(least <= exact && exact < most && most.clone() - least.clone() < ratio(1, 1 << 54));
        let step = ratio(1, u64::MAX);
        for (bound, holds) in [
            (exact.clone(), true),
            (exact.clone() + step.clone() * step.clone(), true),
            (exact - step.clone() * step, false),
            (least, false),
            (most, true),
        ] {
            assert_eq!(utilisation_is_at_most(&tasks, &bound), holds, "{bound}");
        }
        let large = [Task::new(u64::MAX, 1); 3];
        assert!(utilisation_is_at_most(&large, &(whole(3) * whole(u64::MAX))));
        assert!(!utilisation_is_at_most(&large, &(whole(2) * whole(u64::MAX))));
    }
}
