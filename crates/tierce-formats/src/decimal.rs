//! Decimal numbers as files have them, exact, and times in a file's unit.

use tierce_plan::TIME_MAX_NS;

/// Digits that a number may have, and places by which an exponent may move its point.
const DIGITS_MAX: usize = 24;

/// A fraction, not negative: a number as written, or what one unit of a file is in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    over: u128,
    under: u128,
}

/// Which whole number is taken for one between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Work and jitter: never less than the file says.
    Up,
    /// Periods and deadlines: never more than the file says.
    Down,
}

impl Decimal {
    /// `over / under`; `under` is not 0.
    pub const fn new(over: u128, under: u128) -> Self {
        Self { over, under }
    }

    /// A number of 0 or more: `12`, `0.25`, `1.5E3`. `None`: another text, or too many digits.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('+').unwrap_or(text);
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits: String = whole.chars().chain(fraction.chars()).filter(|c| *c != '_').collect();
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let kept = digits.trim_end_matches('0');
        let places = fraction.bytes().filter(|byte| *byte != b'_').count();
        let moved = i64::from(exponent) - places as i64 + (digits.len() - kept.len()) as i64;
        let kept = kept.trim_start_matches('0');
        if kept.is_empty() {
            return Some(Self::new(0, 1));
        }
        if kept.len() > DIGITS_MAX || moved.unsigned_abs() > DIGITS_MAX as u64 {
            return None;
        }
        let (number, power) = (kept.parse().ok()?, 10u128.pow(moved.unsigned_abs() as u32));
        match moved < 0 {
            true => Some(Self::new(number, power)),
            false => Some(Self::new(power.checked_mul(number)?, 1)),
        }
    }

    /// It is 0.
    pub fn is_zero(self) -> bool {
        self.over == 0
    }

    /// `self · other`; `None`: too large.
    pub fn times(self, other: Self) -> Option<Self> {
        let (over, under) = (self.over.checked_mul(other.over)?, self.under.checked_mul(other.under)?);
        let shared = gcd(over, under);
        Some(Self::new(over / shared, under / shared))
    }

    /// `self / other`; `None`: too large, or by 0.
    pub fn by(self, other: Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        self.times(Self::new(other.under, other.over))
    }

    /// As a whole number that plans can have.
    pub fn whole(self, round: Round) -> Option<u64> {
        let whole = match round {
            Round::Up => self.over.div_ceil(self.under),
            Round::Down => self.over / self.under,
        };
        u64::try_from(whole).ok().filter(|whole| *whole <= TIME_MAX_NS)
    }
}

/// The largest number that divides both; 1 for 0 and 0.
pub fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// A time in units of `unit_ns`, a power of ten: exact, and without an exponent.
pub fn show(ns: u64, unit_ns: u64) -> String {
    let digits = unit_ns.ilog10() as usize;
    let (whole, rest) = (ns / unit_ns, ns % unit_ns);
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        let ms = Decimal::new(1_000_000, 1);
        for (text, up) in [
            ("7", 7_000_000),
            ("7.", 7_000_000),
            (".5", 500_000),
            ("1.5E3", 1_500_000_000),
            ("1e-3", 1_000),
            ("0.0000001", 1),
            ("1_000.0", 1_000_000_000),
            ("729.6148045516737", 729_614_805),
            ("0.000", 0),
        ] {
            assert_eq!(Decimal::parse(text).unwrap().times(ms).unwrap().whole(Round::Up), Some(up), "{text}");
        }
        for text in ["", ".", "-1", "1.2.3", "NaN", "1e", "1e99", "12a", "9999999999999999999999999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        let large = Decimal::parse("1e24").unwrap();
        assert_eq!(large.whole(Round::Down), None);
        assert_eq!(large.times(large), None);
    }

    #[test]
    fn times_are_shown_in_a_unit() {
        for (ns, unit, text) in
            [(7_000_000, 1_000_000, "7"), (1, 1_000_000, "0.000001"), (5, 1, "5"), (0, 1000, "0")]
        {
            assert_eq!(show(ns, unit), text);
        }
    }
}
