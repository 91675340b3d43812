//! Exact sums and the demand test of earliest-deadline-first.

use num_bigint::BigInt;
use num_rational::BigRational;
use std::collections::BTreeMap;

/// A fraction of a CPU.
pub type Share = BigRational;

pub fn zero() -> Share {
    ratio(0, 1)
}

pub fn one() -> Share {
    ratio(1, 1)
}

/// `over / under`; `under` is not 0.
pub fn ratio(over: u64, under: u64) -> Share {
    Share::new(over.into(), under.into())
}

/// Distinct periods up to which sums are kept as one fraction; more give a fraction that no one could read.
const PERIODS_EXACT: usize = 256;

/// Σ over/under. Exact up to 256 distinct denominators; beyond, rounded up by less than 2^-80, so that a sum found not
/// to exceed a bound does not.
pub fn sum(terms: impl Iterator<Item = (u64, u64)>) -> Share {
    let mut by_period: BTreeMap<u64, u128> = BTreeMap::new();
    for (over, under) in terms {
        *by_period.entry(under).or_default() += u128::from(over);
    }
    let parts = by_period.into_iter().map(|(under, over)| (BigInt::from(over), BigInt::from(under)));
    if parts.len() <= PERIODS_EXACT {
        return parts.fold(zero(), |sum, (over, under)| sum + Share::new(over, under));
    }
    let scale: BigInt = BigInt::from(1u8) << 96;
    let up = |(over, under): (BigInt, BigInt)| (over * &scale + &under - BigInt::from(1u8)) / under;
    let sum: BigInt = parts.map(up).sum();
    Share::new(sum, scale)
}

/// a + b, rounded up by less than 2^-96 when the exact sum has grown beyond use.
pub fn add(a: &Share, b: &Share) -> Share {
    let sum = a + b;
    if sum.denom().bits() <= 256 {
        return sum;
    }
    let scale: BigInt = BigInt::from(1u8) << 96;
    Share::new((sum * &scale).ceil().to_integer(), scale)
}

/// "75 %", "33.33 %": rounded up to a hundredth, so that what exceeds a bound is never shown as the bound.
pub fn percent(share: &Share) -> String {
    let text = decimal(&(share * BigInt::from(100)), 2);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// "3/4"; what is too long for a reader as a decimal, marked as such.
pub fn fraction(share: &Share) -> String {
    let text = share.to_string();
    if text.len() <= 40 {
        return text;
    }
    format!("~{}", decimal(share, 9))
}

/// With that many digits, rounded up.
fn decimal(share: &Share, digits: usize) -> String {
    let scale = BigInt::from(10u64.pow(digits as u32));
    let scaled = (share * &scale).ceil().to_integer();
    let (whole, rest) = (&scaled / &scale, (&scaled % &scale).to_string());
    format!("{whole}.{rest:0>digits$}")
}

/// One source of demand: at most `work` of CPU time is due within any `deadline + k * period`, k + 1 times.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    pub work_ns: u64,
    pub period_ns: u64,
    pub deadline_ns: u64,
}

/// What the demand test found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fits {
    Yes,
    /// Within `window_ns` more is due than there is time.
    No {
        window_ns: u64,
        due_ns: u128,
    },
    /// The utilisation is 1 or nearly, and the windows to look at are too many.
    TooLong,
}

/// Steps of the demand test.
const STEPS_MAX: usize = 200_000;

/// Whether a whole CPU serves all of `demands` by earliest deadline: in every window of length t at most t is due
/// (Baruah, Rosier & Howell 1990), looked at from the longest window down (Zhang & Burns 2009). `utilisation` is the
/// sum of work/period and at most 1.
pub fn demand_fits(demands: &[Demand], utilisation: &Share) -> Fits {
    let Some(limit) = longest_window(demands, utilisation) else { return Fits::TooLong };
    let shortest = demands.iter().map(|demand| demand.deadline_ns).min().unwrap_or(0);
    let Some(mut window) = last_deadline_before(demands, limit.saturating_add(1)) else { return Fits::Yes };
    for _ in 0..STEPS_MAX {
        let due = due_within(demands, window);
        if due > u128::from(window) {
            return Fits::No { window_ns: window, due_ns: due };
        }
        if due <= u128::from(shortest) {
            return Fits::Yes;
        }
        let next =
            if due < u128::from(window) { Some(due as u64) } else { last_deadline_before(demands, window) };
        match next {
            Some(next) => window = next,
            None => return Fits::Yes,
        }
    }
    Fits::TooLong
}

/// Work due within a window of that length.
fn due_within(demands: &[Demand], window_ns: u64) -> u128 {
    let due = |demand: &Demand| match window_ns.checked_sub(demand.deadline_ns) {
        Some(rest) => (u128::from(rest / demand.period_ns) + 1) * u128::from(demand.work_ns),
        None => 0,
    };
    demands.iter().map(due).sum()
}

/// The largest `deadline + k * period` below `window_ns`.
fn last_deadline_before(demands: &[Demand], window_ns: u64) -> Option<u64> {
    let last = |demand: &Demand| {
        let rest = window_ns.checked_sub(demand.deadline_ns + 1)?;
        Some(demand.deadline_ns + rest / demand.period_ns * demand.period_ns)
    };
    demands.iter().filter_map(last).max()
}

/// No window longer than this needs to be looked at: the busy period that begins with everything at once, or the bound
/// that follows from the utilisation, whichever is known and shorter.
fn longest_window(demands: &[Demand], utilisation: &Share) -> Option<u64> {
    let by_slack = (*utilisation < one()).then(|| {
        let slack = one() - utilisation;
        let early = demands.iter().map(|demand| {
            let lead = demand.period_ns.saturating_sub(demand.deadline_ns);
            Share::new(BigInt::from(u128::from(lead) * u128::from(demand.work_ns)), demand.period_ns.into())
        });
        let bound = early.fold(zero(), |sum, term| sum + term) / slack;
        let longest = demands.iter().map(|demand| demand.deadline_ns).max().unwrap_or(0);
        u64::try_from(bound.ceil().to_integer()).ok().map(|bound| bound.max(longest))
    });
    let mut busy: u128 = demands.iter().map(|demand| u128::from(demand.work_ns)).sum();
    let by_busy = (0..STEPS_MAX).find_map(|_| {
        let next: u128 = demands
            .iter()
            .map(|demand| busy.div_ceil(u128::from(demand.period_ns)) * u128::from(demand.work_ns))
            .sum();
        let done = next == busy;
        busy = next;
        done.then_some(busy)
    });
    let by_busy = by_busy.and_then(|busy| u64::try_from(busy).ok());
    by_slack.flatten().into_iter().chain(by_busy).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &[(u64, u64, u64)]) -> (Vec<Demand>, Share) {
        let demands = list.iter().map(|(work_ns, period_ns, deadline_ns)| Demand {
            work_ns: *work_ns,
            period_ns: *period_ns,
            deadline_ns: *deadline_ns,
        });
        (demands.collect(), sum(list.iter().map(|(work, period, _)| (*work, *period))))
    }

    /// Every window up to two hyperperiods.
    fn by_hand(demands: &[Demand]) -> bool {
        (1..=2 * 2 * 2 * 2 * 3 * 3 * 5 * 7 * 2)
            .all(|window| due_within(demands, window) <= u128::from(window))
    }

    #[test]
    fn the_demand_test_agrees_with_every_window() {
        let seed = 4711u64;
        println!("seed {seed}");
        let mut state = seed;
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % most
        };
        let (mut yes, mut no) = (0, 0);
        let periods = [4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18];
        while yes < 500 || no < 200 {
            let list: Vec<_> = (0..1 + draw(4))
                .map(|_| {
                    let period = periods[draw(12) as usize];
                    let deadline = 1 + draw(period);
                    (1 + draw(deadline.min(4)), period, deadline)
                })
                .collect();
            let (demands, utilisation) = set(&list);
            if utilisation > one() {
                continue;
            }
            let fits = demand_fits(&demands, &utilisation);
            assert_eq!(fits == Fits::Yes, by_hand(&demands), "{list:?} {fits:?}");
            if let Fits::No { window_ns, due_ns } = fits {
                assert!(due_within(&demands, window_ns) == due_ns && due_ns > u128::from(window_ns));
                no += 1;
            } else {
                yes += 1;
            }
        }
    }

    #[test]
    fn sums_are_exact_or_rounded_up() {
        assert_eq!(sum([(1, 3), (1, 6), (1, 2)].into_iter()), one());
        assert_eq!(fraction(&sum([(2, 10), (3, 20)].into_iter())), "7/20");
        // 1000 distinct periods whose sum is just above or just below 1.
        let many =
            |last: u64| sum((0..1000).map(|i| (1_000_000, 1_000_000_000 + i)).chain([(last, 1_000_000_000)]));
        let exact: f64 = (0..1000).map(|i| 1e6 / (1e9 + f64::from(i))).sum();
        assert!(many(0) < one() && exact < 1.0);
        assert!(many(1_000) > one());
    }

    #[test]
    fn percents_round_up() {
        assert_eq!(percent(&ratio(3, 4)), "75 %");
        assert_eq!(percent(&ratio(1, 3)), "33.34 %");
        assert_eq!(percent(&(one() + ratio(1, 1_000_000_000))), "100.01 %");
        assert_eq!(percent(&zero()), "0 %");
        assert_eq!(percent(&ratio(1, 20)), "5 %");
        assert_eq!(percent(&ratio(1001, 10000)), "10.01 %");
    }
}
