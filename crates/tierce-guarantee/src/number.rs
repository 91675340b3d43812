//! Exact numbers: times in nanoseconds and shares of a CPU, as people write them.

use crate::exact::Exact;
use num_bigint::BigInt;

/// The longest time that can be written: 2^60 ns, about 36 years, as in the engine.
pub const TIME_MAX_NS: u64 = 1 << 60;

/// Characters of a number; more is no number a person wrote.
pub(crate) const NUMBER_CHARACTERS_MAX: usize = 40;

/// Units of time and their length in ns.
pub const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5, the micro sign
    ("μs", 1_000), // U+03BC, the Greek letter
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];

/// `over / under`; `under` is not 0.
pub fn ratio(over: u64, under: u64) -> Exact {
    Exact::of(over, under)
}

/// A whole number, for times one of nanoseconds.
pub fn whole(number: u64) -> Exact {
    ratio(number, 1)
}

/// The largest whole number not above; `None` outside u64.
pub(crate) fn floor_u64(number: &Exact) -> Option<u64> {
    u64::try_from(number.floor().to_integer()).ok()
}

/// Why a text is no number, time or share: the rule and what it says.
pub type NumberError = (&'static str, &'static str);

/// A decimal (`0.25`, `1_000`) or a fraction of whole numbers (`1/4`), not negative.
fn parse_number(text: &str) -> Result<Exact, NumberError> {
    const NO_NUMBER: NumberError = ("number_must_be_a_number", "this is no number: write 12, 0.25 or 1/4");
    if text.starts_with('-') {
        return Err(("number_must_not_be_negative", "times and shares are not negative"));
    }
    if text.len() > NUMBER_CHARACTERS_MAX {
        return Err(("number_must_fit", "this number has too many digits"));
    }
    let digits = |text: &str| -> Option<BigInt> {
        let plain = text.replace('_', "");
        (!plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit())).then(|| plain.parse().ok())?
    };
    if let Some((over, under)) = text.split_once('/') {
        let (over, under) = (digits(over).ok_or(NO_NUMBER)?, digits(under).ok_or(NO_NUMBER)?);
        if under == BigInt::ZERO {
            return Err(("number_must_not_divide_by_0", "a fraction has no 0 below its bar"));
        }
        return Ok(Exact::new(over, under));
    }
    let (before, after) = text.split_once('.').unwrap_or((text, "0"));
    let places = after.bytes().filter(|b| *b != b'_').count() as u32;
    let scale = BigInt::from(10u8).pow(places);
    let (before, after) = (digits(before).ok_or(NO_NUMBER)?, digits(after).ok_or(NO_NUMBER)?);
    Ok(Exact::new(before * &scale + after, scale))
}

/// A share of a CPU: `0.25` or `1/4`. Its range is looked at elsewhere.
pub(crate) fn parse_share(text: &str) -> Result<Exact, NumberError> {
    if text.ends_with('%') {
        return Err(("share_must_be_a_fraction", "a share is a fraction of 1, such as 0.25 or 1/4"));
    }
    if text.ends_with(|c: char| c.is_alphabetic()) {
        return Err(("share_has_no_unit", "a share has no unit: write 0.25 or 1/4"));
    }
    parse_number(text)
}

/// A time in ns: a decimal or a fraction, and a unit: `10ms`, `0.5us`, `40/3ms`. Exact; never rounds.
pub(crate) fn parse_time(text: &str) -> Result<Exact, NumberError> {
    let digits = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number = parse_number(number)?;
    if unit.is_empty() {
        return Err(("time_needs_a_unit", "a time needs a unit"));
    }
    let unit_ns = UNITS.iter().find(|(name, _)| *name == unit);
    let unit_ns = unit_ns.ok_or(("unit_must_exist", "there is no such unit of time"))?.1;
    let time = number * whole(unit_ns);
    if time > whole(TIME_MAX_NS) {
        return Err(("time_must_fit", "a time this long cannot be represented"));
    }
    Ok(time)
}

/// The shortest exact form of a time, in the largest unit of which it holds at least one: `5ms`, `0.5ns`, `40/3ms`.
///
/// ```
/// use tierce_guarantee::{ratio, show_time};
/// assert_eq!(show_time(&ratio(40_000_000, 3)), "40/3ms");
/// ```
pub fn show_time(time: &Exact) -> String {
    time.to_word().map_or_else(|| show_fraction(time), show_ns) // most are whole
}

/// The same of whole nanoseconds.
pub fn show_ns(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let (unit, unit_ns) = units.into_iter().find(|(_, unit_ns)| ns >= *unit_ns).unwrap_or(("ns", 1));
    let (before, rest_ns) = ((ns / unit_ns).to_string(), ns % unit_ns);
    if rest_ns == 0 {
        return before + unit;
    }
    let after = (unit_ns + rest_ns).to_string(); // with a 1 before all its digits
    [&before, ".", after[1..].trim_end_matches('0'), unit].concat()
}

fn show_fraction(time: &Exact) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let (unit, unit_ns) = units.into_iter().find(|(_, ns)| *time >= whole(*ns)).unwrap_or(units[3]);
    format!("{}{unit}", show_number(&(time / whole(unit_ns))))
}

/// A time for people: where it is shown as a fraction, a decimal stands beside it, rounded to the side that `up` says.
///
/// ```
/// use tierce_guarantee::{noted_time, ratio};
/// assert_eq!(noted_time(&ratio(200_000_000, 3), true), "200/3ms (≈66.667ms)");
/// assert_eq!(noted_time(&ratio(200_000_000, 3), false), "200/3ms (≈66.666ms)");
/// assert_eq!(noted_time(&ratio(5_000_000, 2), true), "2.5ms");
/// ```
pub fn noted_time(time: &Exact, up: bool) -> String {
    const FRACTION_MAX: usize = 16; // longer ones nobody reads
    let text = show_time(time);
    let Some((_, unit)) = text.split_once('/') else { return text };
    let unit = unit.trim_start_matches(|c: char| c.is_ascii_digit());
    let unit_ns = UNITS.iter().find(|(name, _)| *name == unit).map_or(1, |(_, ns)| *ns);
    let thousandths = time * whole(1000) / whole(unit_ns);
    let rounded = if up { thousandths.ceil() } else { thousandths.floor() };
    let rounded = show_number(&(rounded / whole(1000)));
    match text.len() > FRACTION_MAX {
        true => format!("≈{rounded}{unit}"),
        false => format!("{text} (≈{rounded}{unit})"),
    }
}

/// A share as a fraction: `1/2`.
pub fn show_share(share: &Exact) -> String {
    share.to_string()
}

/// As a decimal where that is exact and short, otherwise as a fraction.
fn show_number(number: &Exact) -> String {
    const PLACES_MAX: usize = 12;
    let scaled = number * whole(10u64.pow(PLACES_MAX as u32));
    if !scaled.is_integer() {
        return number.to_string();
    }
    let text = format!("{:0>1$}", scaled.to_integer().to_string(), PLACES_MAX + 1);
    let (before, after) = text.split_at(text.len() - PLACES_MAX);
    let after = after.trim_end_matches('0');
    if after.is_empty() {
        before.to_string()
    } else {
        format!("{before}.{after}")
    }
}

/// A number for people: a decimal of at most three places, marked when it is not exact.
pub(crate) fn show_about(number: &Exact) -> String {
    let rounded = (number * whole(1000)).round() / whole(1000);
    let mark = if rounded == *number { "" } else { "~" };
    format!("{mark}{}", show_number(&rounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_times_are_shown_like_all() {
        for ns in [
            1,
            999,
            1_000,
            1_001,
            999_999,
            1_000_000,
            33_333_333,
            999_999_999,
            1_000_000_001,
            90_000_000_000,
            u64::MAX,
        ] {
            assert_eq!(show_ns(ns), show_fraction(&whole(ns)), "{ns}");
        }
        assert_eq!((show_time(&whole(0)), show_time(&ratio(1, 3))), ("0ns".into(), "1/3ns".into()));
    }
}
