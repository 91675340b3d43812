//! From what a thread needs to what it should be promised.

use crate::finding::Period;
use crate::jobs::Work;

/// How much it matters that the program meets its deadlines. The default margin goes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Importance {
    /// The work of 90 % of the jobs, and 5 %.
    Low,
    /// The work of 99 % of the jobs, and 10 %.
    #[default]
    Normal,
    /// The most work of any job, and 20 %.
    High,
}

impl Importance {
    /// All, from the least.
    pub const ALL: [Importance; 3] = [Importance::Low, Importance::Normal, Importance::High];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Importance::Low => "low",
            Importance::Normal => "normal",
            Importance::High => "high",
        }
    }

    /// The work that a budget has to cover, and of which jobs it is.
    pub fn work_of(self, work: &Work) -> (u64, &'static str) {
        match self {
            Importance::Low => (work.p90_ns, "90 %"),
            Importance::Normal => (work.p99_ns, "99 %"),
            Importance::High => (work.max_ns, "all"),
        }
    }
}

/// What is added to the work, in percent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margin(pub u32);

impl From<Importance> for Margin {
    fn from(importance: Importance) -> Margin {
        Margin(match importance {
            Importance::Low => 5,
            Importance::Normal => 10,
            Importance::High => 20,
        })
    }
}

/// A budget in every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// CPU time.
    pub budget_ns: u64,
    /// Length of the period, and the deadline of each job.
    pub period_ns: u64,
}

/// Budgets and periods are whole µs: finer ones mean nothing.
const GRAIN_NS: u64 = 1_000;

/// Smaller budgets are used up by a switch.
const BUDGET_MIN_NS: u64 = 10_000;

/// The reservation for a thread with these periods; without any there is none.
///
/// A job has until the next release, so the period is that of the releases, to the nearest µs. With several periods the thread does one job
/// after the other in the order of their releases, and a short job may have to wait for a long one. So the budget covers a job of each in
/// the shortest period. That is more than `tierce design server` would need, which may run the most urgent job first.
pub fn propose(periods: &[Period], importance: Importance, margin: Margin) -> Option<Reservation> {
    let shortest_ns = periods.iter().map(|period| period.period_ns).min()?;
    let period_ns = ((shortest_ns + GRAIN_NS / 2) / GRAIN_NS * GRAIN_NS).max(GRAIN_NS);
    let at_once = |one: &Period| {
        let beside =
            periods.iter().filter(|other| other.first_ns <= one.last_ns && one.first_ns <= other.last_ns);
        beside.map(|period| importance.work_of(&period.work).0).sum::<u64>()
    };
    let work_ns = periods.iter().map(at_once).max()?;
    let with_margin = u128::from(work_ns) * u128::from(100 + margin.0);
    let budget_ns = with_margin.div_ceil(u128::from(100 * GRAIN_NS)) as u64 * GRAIN_NS;
    Some(Reservation { budget_ns: budget_ns.max(BUDGET_MIN_NS).min(period_ns), period_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(period_ns: u64, works: &[u64]) -> Period {
        Period {
            period_ns,
            is_absolute: true,
            jitter_p99_ns: 0,
            jitter_max_ns: 0,
            kept: 1000,
            chance_percent: 1,
            work: Work::of(works.to_vec()),
            overruns: 0,
            resumed: 0,
            first_ns: 0,
            last_ns: 0,
        }
    }

    #[test]
    fn budgets_by_importance() {
        let works: Vec<u64> = (1..=1000).map(|at| at * 2_000).collect(); // up to 2 ms
        let audio = [period(9_999_500, &works)];
        let budget = |importance: Importance| propose(&audio, importance, importance.into()).unwrap();
        assert_eq!(budget(Importance::Low), Reservation { budget_ns: 1_890_000, period_ns: 10_000_000 });
        assert_eq!(budget(Importance::Normal).budget_ns, 2_178_000);
        assert_eq!(budget(Importance::High).budget_ns, 2_400_000);
        assert_eq!(propose(&audio, Importance::High, Margin(0)).unwrap().budget_ns, 2_000_000);
    }

    #[test]
    fn several_periods_and_bounds() {
        let two = [period(25_000_000, &[3_000_000]), period(10_000_000, &[1_000_001])];
        let found = propose(&two, Importance::High, Margin(0)).unwrap();
        assert_eq!(found, Reservation { budget_ns: 4_001_000, period_ns: 10_000_000 });
        let [mut early, mut late] = two.clone();
        (early.last_ns, late.first_ns, late.last_ns) = (5, 6, 9);
        let found = propose(&[early, late], Importance::High, Margin(0)).unwrap();
        assert_eq!(found, Reservation { budget_ns: 3_000_000, period_ns: 10_000_000 });
        let full = propose(&[period(1_000_000, &[990_000])], Importance::Normal, Margin(50)).unwrap();
        assert_eq!(full.budget_ns, full.period_ns);
        let tiny = propose(&[period(1_000_000, &[50])], Importance::Normal, Margin(10)).unwrap();
        assert_eq!(tiny.budget_ns, BUDGET_MIN_NS);
        assert_eq!(propose(&[], Importance::Normal, Margin(10)), None);
    }
}
