//! Times for people.

/// A duration with a sensible unit and about four digits: `1.5 ms`, `250 ns`, `12.34 s`.
pub fn time(ns: u64) -> String {
    let (unit, name) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let digits = match ns / unit {
        0..10 => 3,
        10..100 => 2,
        100..1000 => 1,
        _ => 0,
    };
    let scale = 10u64.pow(digits);
    // Rounded to the nearest digit shown; u128, for the largest durations times scale.
    let parts = ((u128::from(ns) * u128::from(scale) + u128::from(unit) / 2) / u128::from(unit)) as u64;
    if parts >= 1000 * scale && unit < 1_000_000_000 {
        return time(unit * 1000);
    }
    let mut text = format!("{}", parts / scale);
    let rest = format!("{:0width$}", parts % scale, width = digits as usize);
    let rest = rest.trim_end_matches('0');
    if digits > 0 && !rest.is_empty() {
        text = format!("{text}.{rest}");
    }
    format!("{text} {name}")
}

/// `part` of `whole` in percent with two digits: `12.34 %`; `-` when there is no whole.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let hundredths = (u128::from(part) * 10_000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (1_500_000, "1.5 ms"),
            (1_234_567, "1.235 ms"),
            (12_345_678, "12.35 ms"),
            (999_999, "1 ms"),
            (999_999_999, "1 s"),
            (100_040_000, "100 ms"),
            (12_340_000_000, "12.34 s"),
            (u64::MAX, "18446744074 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text, "{ns}");
        }
        assert_eq!(
            (percent(1, 3), percent(5, 0), percent(2, 2)),
            ("33.33 %".into(), "-".into(), "100.00 %".into())
        );
    }
}
