//! Times on the command line: as in plans. A minute may be short, too: `10m`.

use tierce_plan::{parse_time, TimeError};

/// Any time, in ns.
pub fn time(text: &str) -> Result<u64, String> {
    let minutes = text.strip_suffix('m').map(|number| format!("{number}min"));
    parse_time(minutes.as_deref().unwrap_or(text)).map_err(|error| match error {
        TimeError::NoUnit | TimeError::UnknownUnit => format!("{}: ns, us, ms, s or min", error.message()),
        _ => error.message().into(),
    })
}

/// A time above 0.
pub fn duration(text: &str) -> Result<u64, String> {
    match time(text)? {
        0 => Err("it has to be longer than 0".into()),
        ns => Ok(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let minutes = 60_000_000_000;
        for (text, ns) in [("1.5s", 1_500_000_000), ("90s", minutes * 3 / 2), ("100us", 100_000)] {
            assert_eq!(duration(text), Ok(ns), "{text}");
        }
        assert_eq!((duration("5m"), duration("10min")), (Ok(5 * minutes), Ok(10 * minutes)));
        assert_eq!((time("0ns"), time("µs").is_err()), (Ok(0), true));
        for (text, part) in [
            ("0s", "longer than 0"),
            ("5", "needs a unit: ns, us, ms, s or min"),
            ("5h", "no such unit of time: ns, us, ms, s or min"),
            ("", "a decimal number and a unit"),
            ("-3s", "a decimal number and a unit"),
            ("99999999999999999m", "this long"),
            ("0.5ns", "whole nanoseconds"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
