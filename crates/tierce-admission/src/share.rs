//! Shares of a CPU: exact sums, and how they are shown.

use num_bigint::BigInt;
pub use tierce_guarantee::ratio;

/// A fraction of a CPU.
pub type Share = tierce_guarantee::Exact;

pub fn zero() -> Share {
    ratio(0, 1)
}

pub fn one() -> Share {
    ratio(1, 1)
}

/// Distinct periods up to which sums are kept as one fraction; more give a fraction that no one could read.
const PERIODS_EXACT: usize = 256;

/// Σ over/under. Exact up to 256 distinct denominators; beyond, rounded up by less than 2^-80, so that a sum found not
/// to exceed a bound does not.
pub fn sum(terms: impl Iterator<Item = (u64, u64)>) -> Share {
    let mut terms: Vec<_> = terms.collect();
    terms.sort_unstable_by_key(|(_, under)| *under);
    let alike = terms.chunk_by(|a, b| a.1 == b.1);
    let sum_of = |alike: &[(u64, u64)]| (alike[0].1, alike.iter().map(|(over, _)| u128::from(*over)).sum());
    let by_period: Vec<(u64, u128)> = alike.map(sum_of).collect();
    if by_period.len() <= PERIODS_EXACT {
        let part = |(under, over): (u64, u128)| match u64::try_from(over) {
            Ok(over) => ratio(over, under),
            Err(_) => Share::new(over.into(), under.into()),
        };
        return by_period.into_iter().map(part).fold(zero(), |sum, part| sum + part);
    }
    let parts = by_period.into_iter().map(|(under, over)| (BigInt::from(over), BigInt::from(under)));
    let scale: BigInt = BigInt::from(1u8) << 96;
    let up = |(over, under): (BigInt, BigInt)| (over * &scale + &under - BigInt::from(1u8)) / under;
    let sum: BigInt = parts.map(up).sum();
    Share::new(sum, scale)
}

/// a + b, rounded up by less than 2^-96 when the exact sum has grown beyond use.
pub fn add(a: &Share, b: &Share) -> Share {
    let sum = a + b;
    if sum.denom_bits() <= 256 {
        return sum;
    }
    let scale: BigInt = BigInt::from(1u8) << 96;
    let scale = Share::from_integer(scale);
    (sum * &scale).ceil() / scale
}

/// What is asked for: "75 %", "33.34 %": rounded up to a hundredth, so that what exceeds a bound is never shown as the bound;
/// what is less than a CPU is never shown as one: "99.996 %".
pub fn percent(share: &Share) -> String {
    let whole = share >= &one();
    let enough = |digits: &u32| whole == (scaled(share, *digits, true) >= power(*digits + 2));
    let digits = (2..DIGITS_MAX).find(enough).unwrap_or(DIGITS_MAX);
    show(scaled(share, digits, true), digits)
}

/// What is given: "33.33 %": rounded down; what is more than nothing is never shown as nothing.
pub fn percent_given(share: &Share) -> String {
    let none = share <= &zero();
    let enough = |digits: &u32| none == (scaled(share, *digits, false) <= BigInt::from(0u8));
    let digits = (2..DIGITS_MAX).find(enough).unwrap_or(DIGITS_MAX);
    show(scaled(share, digits, false), digits)
}

/// What is asked for beside what is given; what fits is never shown as if it did not.
pub fn percents(asked: &Share, given: &Share) -> (String, String) {
    if asked == given && scaled(asked, 2, true) != scaled(asked, 2, false) {
        let text = show(scaled(asked, 2, false), 2).replace(" %", "… %");
        return (text.clone(), text);
    }
    let fits = |digits: &u32| scaled(asked, *digits, true) <= scaled(given, *digits, false);
    match (2..DIGITS_MAX).find(fits).filter(|digits| *digits > 2 && asked < given) {
        Some(digits) => {
            (show(scaled(asked, digits, true), digits), show(scaled(given, digits, false), digits))
        }
        None => (percent(asked), percent_given(given)),
    }
}

/// Digits after the point of a per cent, at most.
const DIGITS_MAX: u32 = 9;

fn power(digits: u32) -> BigInt {
    BigInt::from(10u64.pow(digits))
}

/// As a whole number of the last of so many digits of a per cent.
fn scaled(share: &Share, digits: u32, up: bool) -> BigInt {
    let (over, under) = (share.numer() * power(digits + 2), share.denom());
    if up {
        (over + &under - BigInt::from(1u8)) / under
    } else {
        over / under
    }
}

fn show(scaled: BigInt, digits: u32) -> String {
    let text = format!("{scaled:0>0$}", digits as usize + 1);
    let (whole, rest) = text.split_at(text.len() - digits as usize);
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    format!("{whole}{point}{rest} %")
}

/// What is asked for: "3/4"; what is too long for a reader as a decimal, rounded up and marked as such.
pub fn fraction(share: &Share) -> String {
    written(share, true)
}

/// What is given: "3/4"; what is too long for a reader as a decimal, rounded down and marked as such.
pub fn fraction_given(share: &Share) -> String {
    written(share, false)
}

fn written(share: &Share, up: bool) -> String {
    let text = share.to_string();
    if text.len() <= 40 {
        return text;
    }
    // As a per cent of it would be, two digits later.
    let digits = DIGITS_MAX as usize;
    let text = format!("{:0>1$}", scaled(share, DIGITS_MAX - 2, up).to_string(), digits + 1);
    let (whole, rest) = text.split_at(text.len() - digits);
    format!("~{whole}.{rest}")
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
    fn what_is_asked_is_rounded_up() {
        assert_eq!(percent(&ratio(3, 4)), "75 %");
        assert_eq!(percent(&ratio(1, 3)), "33.34 %");
        assert_eq!(percent(&(one() + ratio(1, 1_000_000_000))), "100.01 %");
        assert_eq!(percent(&zero()), "0 %");
        assert_eq!(percent(&ratio(1, 20)), "5 %");
        assert_eq!(percent(&ratio(1001, 10000)), "10.01 %");
        // not yet a whole CPU
        assert_eq!(percent(&ratio(99_996, 100_000)), "99.996 %");
        assert_eq!(percent(&ratio(999_999, 1_000_000)), "99.9999 %");
    }

    #[test]
    fn what_is_given_is_rounded_down() {
        assert_eq!(percent_given(&ratio(1, 3)), "33.33 %");
        assert_eq!(percent_given(&ratio(99_996, 100_000)), "99.99 %");
        assert_eq!(percent_given(&one()), "100 %");
        assert_eq!(percent_given(&ratio(1, 1_000_000)), "0.0001 %");
        assert_eq!(percent_given(&zero()), "0 %");
    }

    #[test]
    fn long_fractions_are_rounded_to_their_side() {
        let long = Share::new(BigInt::from(10u8).pow(50), BigInt::from(3u8) * BigInt::from(10u8).pow(50) + 1);
        assert_eq!(fraction(&long), "~0.333333334");
        assert_eq!(fraction_given(&long), "~0.333333333");
        assert_eq!((fraction(&ratio(6, 8)), fraction_given(&ratio(6, 8))), ("3/4".into(), "3/4".into()));
    }

    #[test]
    fn what_fits_is_shown_to_fit() {
        let shown = |asked: (u64, u64), given: (u64, u64)| {
            let (asked, given) = percents(&ratio(asked.0, asked.1), &ratio(given.0, given.1));
            format!("{asked} of {given}")
        };
        assert_eq!(shown((1, 3), (1, 2)), "33.34 % of 50 %");
        assert_eq!(shown((1, 3), (1, 3)), "33.33… % of 33.33… %");
        assert_eq!(shown((1, 4), (1, 4)), "25 % of 25 %");
        assert_eq!(shown((333_331, 1_000_000), (333_335, 1_000_000)), "33.3331 % of 33.3335 %");
        assert_eq!(shown((333_335, 1_000_000), (333_331, 1_000_000)), "33.34 % of 33.33 %");
        assert_eq!(shown((99_996, 100_000), (1, 1)), "99.996 % of 100 %");
    }
}
