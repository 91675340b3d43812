//! Decimal numbers, exactly: steps of a grid are added without rounding.

use std::fmt;

/// Billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(pub u64);

/// Digits after the point.
const DIGITS: usize = 9;

impl Decimal {
    /// `0.05`, `12`, `1_000.5`; nothing below 0, no exponent, at most nine digits after the point.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().replace('_', "");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let fraction = if fraction.len() > 1 { fraction.trim_end_matches('0') } else { fraction };
        if !digits(whole) || fraction.len() > DIGITS || !(fraction.is_empty() || digits(fraction)) {
            return None;
        }
        let parts: u64 = format!("{fraction:0<DIGITS$}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(parts).map(Self)
    }

    /// The double nearest to it, as `parse::<f64>` of the same text gives: both numbers that are divided are exact below 2^53.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = format!("{}.{:0DIGITS$}", self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (text, shown) in [("0.05", "0.05"), ("1", "1"), ("1.50", "1.5"), ("0.000000001", "0.000000001")] {
            let decimal = Decimal::parse(text).unwrap();
            assert_eq!(decimal.to_string(), shown);
            assert_eq!(decimal.to_f64(), text.parse::<f64>().unwrap());
        }
        for hundredth in 0..=1_000 {
            let decimal = Decimal(hundredth * 10_000_000);
            assert_eq!(decimal.to_f64(), decimal.to_string().parse::<f64>().unwrap());
        }
        for text in
            ["", ".", ".5", "-1", "1e3", "inf", "nan", "0.0000000001", "1.2.3", "99999999999999999999"]
        {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
