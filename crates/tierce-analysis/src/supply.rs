//! What a node is supplied with, as the analyses need it: how long until so much work is sure to be done?
//!
//! All three kinds have one shape that serves a whole busy period at once: some pattern gives the least in every window
//! that begins with the busy period. So a response time found with them is exact, not only a bound.
//!
//! Sources: the periodic resource model (Shin & Lee, RTSS 2003): RESBS; explicit deadlines (Easwaran, Anand & Lee, RTSS
//! 2007); continuous reservations and PSBE by their definitions (HLS 5.2.2).

use crate::task::{compare_utilisation, gcd, Response, Task, WINDOW_MAX_NS};
use num_bigint::BigInt;
use std::cmp::Ordering;
use tierce_guarantee::{Exact, Guarantee, Kind, Parameter};

/// The longest time until `work_ns` is done, in whole ns, rounded up. Since releases are at whole ns, rounding loses
/// nothing: no job is released between the exact and the rounded time.
pub trait TimeFor: Copy {
    /// 0 for no work; saturates.
    fn time_for(&self, work_ns: u64) -> u64;
    /// CPU time per time in the long run.
    fn rate(&self) -> (u64, u64);
    /// The longest time without any.
    fn first_wait_ns(&self) -> u64;
    /// By how much CPU time it stays behind its rate at least: `time_for(work)` is (work + that)/rate or longer.
    fn behind_ns(&self) -> f64;
}

/// A whole CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole;

/// `budget` in every `period`, after a first wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// CPU time per period, from 1 to the period.
    pub budget_ns: u64,
    /// Length of a period.
    pub period_ns: u64,
    /// The longest time without any.
    pub first_wait_ns: u64,
}

/// share·t − error in any window of t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// The share, a fraction above 0 and at most 1.
    pub share: (u64, u64),
    /// Rounded up.
    pub error_ns: u64,
}

/// Any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// A whole CPU.
    Whole(Whole),
    /// A reservation.
    Chunks(Chunks),
    /// Proportional share with bounded error.
    Linear(Linear),
}

/// Do the same for whichever kind of supply it is; the body is compiled once for each.
macro_rules! with_supply {
    ($supply:expr, $inner:ident => $body:expr) => {
        match $supply {
            $crate::Supply::Whole($inner) => $body,
            $crate::Supply::Chunks($inner) => $body,
            $crate::Supply::Linear($inner) => $body,
        }
    };
}
pub(crate) use with_supply;

impl TimeFor for Whole {
    #[inline(always)]
    fn time_for(&self, work_ns: u64) -> u64 {
        work_ns
    }

    fn rate(&self) -> (u64, u64) {
        (1, 1)
    }

    fn first_wait_ns(&self) -> u64 {
        0
    }

    fn behind_ns(&self) -> f64 {
        0.0
    }
}

impl TimeFor for Chunks {
    #[inline]
    fn time_for(&self, work_ns: u64) -> u64 {
        if work_ns == 0 {
            return 0;
        }
        let gaps = (work_ns - 1) / self.budget_ns;
        let waits = gaps.saturating_mul(self.period_ns - self.budget_ns);
        waits.saturating_add(self.first_wait_ns).saturating_add(work_ns)
    }

    fn rate(&self) -> (u64, u64) {
        (self.budget_ns, self.period_ns)
    }

    fn first_wait_ns(&self) -> u64 {
        self.first_wait_ns
    }

    fn behind_ns(&self) -> f64 {
        let late_ns = self.first_wait_ns.saturating_sub(self.period_ns - self.budget_ns);
        late_ns as f64 * (self.budget_ns as f64 / self.period_ns as f64)
    }
}

impl TimeFor for Linear {
    #[inline]
    fn time_for(&self, work_ns: u64) -> u64 {
        if work_ns == 0 {
            return 0;
        }
        let work = u128::from(work_ns) + u128::from(self.error_ns);
        let time = (work * u128::from(self.share.1)).div_ceil(u128::from(self.share.0));
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    fn rate(&self) -> (u64, u64) {
        self.share
    }

    fn first_wait_ns(&self) -> u64 {
        self.time_for(1).saturating_sub(1)
    }

    fn behind_ns(&self) -> f64 {
        self.error_ns as f64
    }
}

/// A common multiple of these periods and of that of the supply. Where the utilisation equals the rate, all repeats itself after it: in
/// a busy period everything that is requested or supplied up to t is requested or supplied once more between that and t + cycle.
pub(crate) fn cycle_of<S: TimeFor>(periods: impl Iterator<Item = u64>, supply: &S) -> Option<u64> {
    periods.chain([supply.rate().1]).try_fold(1u64, |cycle, period| {
        cycle.checked_mul(period / gcd(cycle, period)).filter(|cycle| *cycle <= WINDOW_MAX_NS)
    })
}

impl Supply {
    /// A whole CPU.
    pub const WHOLE: Self = Self::Whole(Whole);

    /// The periodic resource model: `budget_ns` at any place within each period (RESBS). `None`: budget 0 or above the
    /// period.
    pub fn periodic(budget_ns: u64, period_ns: u64) -> Option<Self> {
        Self::edp(budget_ns, period_ns, period_ns)
    }

    /// Explicit deadlines: `budget_ns` within `deadline_ns` of the begin of each period. `None` unless 0 < budget ≤
    /// deadline ≤ period.
    pub fn edp(budget_ns: u64, period_ns: u64, deadline_ns: u64) -> Option<Self> {
        let fits = 0 < budget_ns && budget_ns <= deadline_ns && deadline_ns <= period_ns;
        // Given at once in one period, at the last moment in the next.
        let first_wait_ns =
            (period_ns.checked_sub(budget_ns)?).checked_add(deadline_ns.checked_sub(budget_ns)?)?;
        fits.then_some(Self::Chunks(Chunks { budget_ns, period_ns, first_wait_ns }))
    }

    /// What a guarantee is sure to give; amounts are rounded down to whole ns, errors up. `None`: nothing in any window
    /// (RESU, PS, NULL), an amount below 1 ns, or a period that is no whole number of ns.
    pub fn of(guarantee: &Guarantee) -> Option<Self> {
        let ns = |number: &Exact| u64::try_from(number.to_integer()).ok().filter(|_| number.is_integer());
        if guarantee.is_whole_cpu() {
            return Some(Self::WHOLE);
        }
        if let Some((amount, period)) = guarantee.amount_and_period() {
            let (budget_ns, period_ns) = (ns(&amount.floor()).filter(|budget| *budget > 0)?, ns(period)?);
            let waits = if guarantee.kind().is_basic() { 2 } else { 1 };
            let first_wait_ns = (period_ns - budget_ns).checked_mul(waits)?;
            return Some(Self::Chunks(Chunks { budget_ns, period_ns, first_wait_ns }));
        }
        if guarantee.kind() != Kind::Psbe {
            return None;
        }
        let part = |number: BigInt| u64::try_from(number).ok();
        let (share, error) = (guarantee.get(Parameter::Share)?, guarantee.get(Parameter::Error)?);
        let error_ns = u64::try_from(error.ceil().to_integer()).ok()?;
        Some(Self::Linear(Linear { share: (part(share.numer())?, part(share.denom())?), error_ns }))
    }

    /// The period, if the budget may come at any place within it ([`Self::periodic`]).
    pub fn period_of_resource(&self) -> Option<u64> {
        match self {
            Self::Chunks(chunks) if Self::periodic(chunks.budget_ns, chunks.period_ns) == Some(*self) => {
                Some(chunks.period_ns)
            }
            _ => None,
        }
    }

    /// The longest response of a task that has the supply alone, which is enough for it in the long run; else unbounded. The q-th
    /// job of a busy period is done at the least t with supply(t) = B + (q + 1)·C (HLS equations 6.1 and 6.2 without others). Of a
    /// line the first job is the worst, and of chunks none is worse than with the line below them, wait + (B + C)/rate: that is taken
    /// where busy periods are long. Where the task needs all of the supply, its responses repeat themselves.
    pub fn response_alone(&self, task: &Task) -> Response {
        const JOBS_MAX: u64 = 1_000;
        let (wait_ns, rate) = with_supply!(self, supply => (supply.first_wait_ns(), supply.rate()));
        let load = compare_utilisation(&[*task], rate);
        if !task.is_valid() || load == Ordering::Greater {
            return Response::Unbounded;
        }
        let within = |ns: u64| match ns.checked_add(task.jitter_ns) {
            Some(ns) if ns < WINDOW_MAX_NS => Response::Within(ns),
            _ => Response::TooLong,
        };
        let once_ns = task.blocking_ns.saturating_add(task.work_ns);
        if matches!(self, Self::Linear(_)) {
            return within(self.time_for(once_ns));
        }
        let cycle = || with_supply!(self, supply => cycle_of([task.period_ns].into_iter(), supply));
        let repeats_ns = Some(load).filter(|load| load.is_eq()).and_then(|_| cycle()).unwrap_or(u64::MAX);
        let (mut longest_ns, mut work_ns, mut release_ns) = (0, once_ns, 0u64);
        for _ in 0..JOBS_MAX {
            let done_ns = self.time_for(work_ns);
            longest_ns = done_ns.saturating_sub(release_ns).max(longest_ns);
            work_ns = work_ns.saturating_add(task.work_ns);
            release_ns = release_ns.saturating_add(task.period_ns);
            if done_ns.saturating_add(task.jitter_ns) <= release_ns || release_ns >= repeats_ns {
                return within(longest_ns);
            }
        }
        let line_ns = (u128::from(once_ns) * u128::from(rate.1)).div_ceil(u128::from(rate.0));
        within(u64::try_from(line_ns).unwrap_or(u64::MAX).saturating_add(wait_ns))
    }

    /// The longest time until `work_ns` is done.
    pub fn time_for(&self, work_ns: u64) -> u64 {
        with_supply!(self, supply => supply.time_for(work_ns))
    }
}
