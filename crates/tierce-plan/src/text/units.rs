//! Times and whole numbers as people write them.

use std::borrow::Cow;
use tierce_guarantee::{TIME_MAX_NS, UNITS};

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// Not a number.
    NoNumber,
    /// A number without a unit.
    NoUnit,
    /// A number with something else behind it.
    UnknownUnit,
    /// More digits than nanoseconds have.
    FinerThanNs,
    /// Above [`TIME_MAX_NS`].
    TooLong,
}

impl TimeError {
    /// Name of the rule it breaks.
    pub fn rule(self) -> &'static str {
        match self {
            Self::NoNumber => "time_must_be_a_number",
            Self::NoUnit => "time_needs_a_unit",
            Self::UnknownUnit => "unit_must_exist",
            Self::FinerThanNs => "time_not_finer_than_1ns",
            Self::TooLong => "time_must_fit",
        }
    }

    /// In words.
    pub fn message(self) -> &'static str {
        match self {
            Self::NoNumber => "a time is a decimal number and a unit",
            Self::NoUnit => "a time needs a unit",
            Self::UnknownUnit => "there is no such unit of time",
            Self::FinerThanNs => "times are whole nanoseconds",
            Self::TooLong => "a time this long cannot be represented",
        }
    }
}

/// Parse `"1.8ms"`: an integer or decimal number, optional blanks, a unit. Exact; never rounds.
pub fn parse_time(text: &str) -> Result<u64, TimeError> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim_start());
    let number = if number.contains('_') { number.replace('_', "").into() } else { Cow::Borrowed(number) };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) || fraction.contains('.') {
        return Err(TimeError::NoNumber);
    }
    if unit.is_empty() {
        return Err(TimeError::NoUnit);
    }
    let unit_ns = UNITS.iter().find(|(name, _)| *name == unit).ok_or(TimeError::UnknownUnit)?.1;
    if fraction.len() > 11 {
        return Err(TimeError::FinerThanNs); // a minute has 11 digits of ns
    }
    let whole: u64 = whole.parse().map_err(|_| TimeError::TooLong)?;
    let scale = 10u64.pow(fraction.len() as u32);
    let parts: u128 = u128::from(fraction.parse::<u64>().unwrap_or(0)) * u128::from(unit_ns);
    if parts % u128::from(scale) != 0 {
        return Err(TimeError::FinerThanNs);
    }
    let ns = u128::from(whole) * u128::from(unit_ns) + parts / u128::from(scale);
    if ns > u128::from(TIME_MAX_NS) {
        return Err(TimeError::TooLong);
    }
    Ok(ns as u64)
}

/// The shortest exact form of a time: `1.8ms`, `33.333333ms`, `2s`.
///
/// ```
/// assert_eq!(tierce_plan::show_time(1_800_000), "1.8ms");
/// ```
pub fn show_time(ns: u64) -> String {
    tierce_guarantee::show_ns(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, ns) in [
            ("10ms", 10_000_000),
            ("1.8ms", 1_800_000),
            ("0.5 us", 500),
            ("1µs", 1_000),
            ("1μs", 1_000),
            ("1.000000001s", 1_000_000_001),
            ("0.10000000000000ms", 100_000),
            ("2min", 120_000_000_000),
            ("1_000ns", 1_000),
            ("33.333333ms", 33_333_333),
            ("0ns", 0),
        ] {
            assert_eq!(parse_time(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn bad_times_say_why() {
        for (text, error) in [
            ("10", TimeError::NoUnit),
            ("", TimeError::NoNumber),
            ("ms", TimeError::NoNumber),
            ("-1ms", TimeError::NoNumber),
            (".5ms", TimeError::NoNumber),
            ("1.2.3ms", TimeError::NoNumber),
            ("1h", TimeError::UnknownUnit),
            ("1 m s", TimeError::UnknownUnit),
            ("0.5ns", TimeError::FinerThanNs),
            ("1.0000000001s", TimeError::FinerThanNs),
            ("0.0000000000000001min", TimeError::FinerThanNs),
            ("99999999999999999999s", TimeError::TooLong),
            ("2000000000s", TimeError::TooLong),
        ] {
            assert_eq!(parse_time(text), Err(error), "{text}");
        }
    }

    #[test]
    fn what_is_shown_parses_to_the_same() {
        for ns in [
            0,
            1,
            999,
            1_000,
            1_001,
            123_456_789,
            33_333_333,
            2_000_000,
            10_000_000,
            60_000_000_000,
            TIME_MAX_NS,
        ] {
            assert_eq!(parse_time(&show_time(ns)), Ok(ns), "{}", show_time(ns));
        }
        assert_eq!(show_time(2_000_000), "2ms");
        assert_eq!(show_time(100), "100ns");
    }
}
