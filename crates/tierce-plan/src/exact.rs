//! Shares of a CPU: exact sums, and how they are shown.

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

#[cfg(test)]
mod tests {
    use super::*;

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
