//! Modes of a request: each is a guarantee that its owner could do with, and what that is worth to him.

use crate::wrong::Wrong;
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use tierce_guarantee::{show_time, whole, Exact, Guarantee, Kind, Parameter};
use tierce_plan::{parse_time, TIME_MAX_NS};

/// Modes of a request, at most.
pub const MODES_MAX: usize = 8;

/// Values are numbers up to this, and from its opposite.
pub const VALUE_MAX: i64 = 1_000_000_000;

/// The shortest budget and period that are asked for, unless the manager is configured otherwise. An audio program wakes every 667 us
/// (32 frames, 48 kHz).
pub const LEAST_BUDGET_NS: u64 = 50_000;
pub const LEAST_PERIOD_NS: u64 = 500_000;

/// A guarantee and its value.
///
/// In JSON `{"budget": "2ms", "period": "10ms", "value": 5}`, which is `RESBS 2ms 10ms`, or with another `guarantee`; with a `deadline` of
/// its jobs or without.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// What is asked for.
    pub guarantee: Guarantee,
    /// To the owner; larger is better.
    pub value: i64,
    /// Each job of its threads, from a wake-up to the next sleep, should end within that time: otherwise the owner and rules are told.
    pub deadline_ns: Option<u64>,
}

/// As it is written.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    value: i64,
}

impl Mode {
    /// `budget` in every `period`.
    pub fn budget(budget_ns: u64, period_ns: u64, value: i64) -> Result<Self, Wrong> {
        let shown = |ns| show_time(&whole(ns));
        if budget_ns == 0 || budget_ns > period_ns {
            let message = format!("a budget of {} in a period of {}", shown(budget_ns), shown(period_ns));
            return Err(Wrong::new("budget_must_fit_its_period", message));
        }
        let guarantee = Guarantee::reservation(Kind::Resbs, whole(budget_ns), whole(period_ns));
        let guarantee =
            guarantee.ok_or_else(|| Wrong::new("times_must_be_possible", "no such reservation"))?;
        Self::of(guarantee, value)
    }

    /// The same as it was measured: one that is shorter than what may be asked for is as long as that.
    pub fn measured(budget_ns: u64, period_ns: u64, value: i64) -> Result<Self, Wrong> {
        Self::budget(budget_ns.max(LEAST_BUDGET_NS.min(period_ns)), period_ns, value)
    }

    /// As people write it: `2ms/10ms`, or a guarantee.
    pub fn parse(text: &str, value: i64) -> Result<Self, Wrong> {
        match text.split_once('/') {
            Some((budget, period)) if !text.trim_start().starts_with(|c: char| c.is_ascii_alphabetic()) => {
                Self::of_times(budget, period, value)
            }
            _ => Self::of_guarantee(text, value),
        }
    }

    fn of_times(budget: &str, period: &str, value: i64) -> Result<Self, Wrong> {
        let time = |text: &str| {
            parse_time(text).map_err(|why| Wrong::new(why.rule(), format!("{text:?}: {}", why.message())))
        };
        Self::budget(time(budget)?, time(period)?, value)
    }

    fn of_guarantee(text: &str, value: i64) -> Result<Self, Wrong> {
        let guarantee = Guarantee::parse(text)
            .map_err(|why| Wrong::new("guarantee_must_be_known", format!("{text:?}: {why}")))?;
        Self::of(guarantee, value)
    }

    fn of(guarantee: Guarantee, value: i64) -> Result<Self, Wrong> {
        if !(-VALUE_MAX..=VALUE_MAX).contains(&value) {
            let message = format!("a value of {value}, bound {VALUE_MAX} either way");
            return Err(Wrong::new("value_must_fit", message));
        }
        Ok(Self { guarantee, value, deadline_ns: None })
    }

    /// The same with a deadline of its jobs: a time as a plan has it.
    pub fn with_deadline(self, text: &str) -> Result<Self, Wrong> {
        let bound = format!("bound 1ns to {}", show_time(&whole(TIME_MAX_NS)));
        let wrong = |rule: &str, why: &str| Wrong::new(rule, format!("deadline {text:.64?}: {why}, {bound}"));
        match parse_time(text) {
            Ok(0) => Err(wrong("time_must_not_be_zero", "no job can end at once")),
            Ok(ns) => Ok(Self { deadline_ns: Some(ns), ..self }),
            Err(why) => Err(wrong(why.rule(), why.message())),
        }
    }

    /// Share of one CPU in parts per million, rounded up.
    pub fn ppm(&self) -> u64 {
        ppm(&self.guarantee.share())
    }

    /// It asks for no more than `has` gives, in any respect: of the same kind, no larger a share, no shorter a period (or error), and worth
    /// no more. A deadline takes nothing from anybody.
    pub fn is_no_more_than(&self, has: &Mode) -> bool {
        let is_as_long = |of| match (self.guarantee.get(of), has.guarantee.get(of)) {
            (Some(new), Some(old)) => new >= old,
            (new, old) => new.is_none() && old.is_none(),
        };
        self.guarantee.kind() == has.guarantee.kind()
            && self.value <= has.value
            && self.guarantee.share() <= has.guarantee.share()
            && [Parameter::Period, Parameter::Error].into_iter().all(is_as_long)
    }

    /// In so many equal steps [`Mode::part`] comes to the whole budget or share. Nothing: it has neither.
    pub fn parts(&self) -> Option<u64> {
        match self.budget_and_period_ns() {
            Some((budget_ns, _)) => Some(budget_ns.div_ceil(step_ns(budget_ns))),
            None => self.guarantee.get(Parameter::Share).map(|_| PARTS),
        }
    }

    /// The same with less: so many steps of its budget, in the same period, or of its share, in whole millionths of a CPU.
    pub fn part(&self, steps: u64) -> Option<Self> {
        if let Some((budget_ns, period_ns)) = self.budget_and_period_ns() {
            let less_ns = (steps * step_ns(budget_ns)).min(budget_ns);
            let less = Self::budget(less_ns, period_ns, self.value).ok()?;
            return Some(Self { deadline_ns: self.deadline_ns, ..less });
        }
        let millionths =
            (self.guarantee.get(Parameter::Share)? * &whole(steps * (1_000_000 / PARTS))).floor();
        let kind = self.guarantee.kind();
        let values = kind.parameters().iter().map(|of| match of {
            Parameter::Share => Some(&millionths / &whole(1_000_000)),
            of => self.guarantee.get(*of).cloned(),
        });
        Some(Self { guarantee: Guarantee::new(kind, values.collect::<Option<_>>()?)?, ..self.clone() })
    }

    /// Budget and period, where they are numbers of ns.
    pub fn budget_and_period_ns(&self) -> Option<(u64, u64)> {
        let (budget, period) = self.guarantee.amount_and_period()?;
        Some((number(budget)?, number(period)?))
    }
}

/// Steps from nothing to the whole, where they can be as short.
const PARTS: u64 = 1000;

fn step_ns(budget_ns: u64) -> u64 {
    (budget_ns / PARTS).max(1)
}

/// Parts per million, rounded up.
pub fn ppm(share: &Exact) -> u64 {
    number(&(share * &whole(1_000_000)).ceil()).unwrap_or(u64::MAX)
}

/// Whole and not negative.
pub fn number(exact: &Exact) -> Option<u64> {
    exact.to_word()
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (self.guarantee.kind(), self.guarantee.amount_and_period()) {
            (Kind::Resbs, Some((budget, period))) => {
                write!(f, "{} in {}", show_time(budget), show_time(period))
            }
            _ => write!(f, "{}", self.guarantee),
        }?;
        match self.deadline_ns {
            Some(ns) => write!(f, ", jobs within {}", show_time(&whole(ns))),
            None => Ok(()),
        }
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let deadline = self.deadline_ns.map(|ns| show_time(&whole(ns)));
        let mut written = Written { value: self.value, deadline, ..Written::default() };
        match (self.guarantee.kind(), self.guarantee.amount_and_period()) {
            (Kind::Resbs, Some((budget, period))) if budget.is_integer() && period.is_integer() => {
                (written.budget, written.period) = (Some(show_time(budget)), Some(show_time(period)));
            }
            _ => written.guarantee = Some(self.guarantee.to_string()),
        }
        written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Written { guarantee, budget, period, deadline, value } = Written::deserialize(from)?;
        let mode = match (guarantee, budget, period) {
            (Some(guarantee), None, None) => Self::of_guarantee(&guarantee, value),
            (None, Some(budget), Some(period)) => Self::of_times(&budget, &period, value),
            _ => Err(Wrong::new("mode_must_be_clear", "a mode is `budget` and `period`, or `guarantee`")),
        };
        let mode = mode.and_then(|mode| match deadline {
            Some(text) => mode.with_deadline(&text),
            None => Ok(mode),
        });
        mode.map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for text in [
            r#"{"budget":"2ms","period":"10ms","value":5}"#,
            r#"{"guarantee":"PS 1/4","value":0}"#,
            r#"{"guarantee":"RESCS 2ms 10ms","value":-1}"#,
        ] {
            let mode: Mode = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&mode).unwrap(), text);
        }
        let mode = Mode::parse("2ms/10ms", 0).unwrap();
        assert_eq!((mode.ppm(), mode.to_string()), (200_000, "2ms in 10ms".into()));
        assert_eq!(Mode::parse("PS 1/3", 0).unwrap().ppm(), 333_334);
        assert_eq!(mode.budget_and_period_ns(), Some((2_000_000, 10_000_000)));
    }

    #[test]
    fn less_is_less_in_every_respect() {
        let has = Mode::parse("2ms/10ms", 5).unwrap();
        for (text, value, is) in [
            ("2ms/10ms", 5, true),
            ("1ms/10ms", -5, true),
            ("4ms/20ms", 5, true),
            ("2ms/10ms", 6, false),
            ("2001us/10ms", 5, false),
            ("1ms/5ms", 5, false),
            ("1us/100us", 0, false),
            ("RESBH 1ms 10ms", 0, false),
            ("PS 1/10", 0, false),
        ] {
            assert_eq!(Mode::parse(text, value).unwrap().is_no_more_than(&has), is, "{text} {value}");
        }
        let mode = |text: &str| Mode::parse(text, 0).unwrap();
        assert!(mode("PS 1/5").is_no_more_than(&mode("PS 1/4")));
        assert!(mode("PSBE 1/4 20ms").is_no_more_than(&mode("PSBE 1/4 15ms")));
        assert!(!mode("PSBE 1/5 10ms").is_no_more_than(&mode("PSBE 1/4 15ms")));
    }

    #[test]
    fn a_part_of_a_mode_has_the_same_period_or_error() {
        for (text, steps, part) in [
            ("9ms/10ms", 500, "4.5ms/10ms"),
            ("300ns/10ms", 7, "7ns/10ms"),
            ("7499500ns/10ms", 1001, "7499500ns/10ms"),
            ("RESCS 9ms 10ms", 500, "4.5ms/10ms"),
            ("PS 9/10", 500, "PS 9/20"),
            ("PS 1/3", 999, "PS 333/1000"),
            ("PSBE 9/10 20ms", 100, "PSBE 9/100 20ms"),
            ("RESU 1/2", 1, "RESU 1/2000"),
        ] {
            let mode = Mode::parse(text, 3).unwrap();
            assert!(steps <= mode.parts().unwrap());
            let less = mode.part(steps).unwrap();
            assert_eq!(
                (less.to_string(), less.value),
                (Mode::parse(part, 3).unwrap().to_string(), 3),
                "{text}"
            );
        }
        assert_eq!(Mode::parse("PS 1/1000000", 0).unwrap().part(999), None, "nothing is left");
        assert_eq!(Mode::parse("NULL", 0).unwrap().parts(), None);
    }

    #[test]
    fn what_is_no_mode_is_refused_by_name() {
        for (text, rule) in [
            (r#"{"value":5}"#, "mode_must_be_clear"),
            (r#"{"budget":"2ms"}"#, "mode_must_be_clear"),
            (r#"{"budget":"11ms","period":"10ms"}"#, "budget_must_fit_its_period"),
            (r#"{"budget":"0ms","period":"10ms"}"#, "budget_must_fit_its_period"),
            (r#"{"budget":"2","period":"10ms"}"#, "time_needs_a_unit"),
            (r#"{"budget":"-2ms","period":"10ms"}"#, "time_must_be_a_number"),
            (r#"{"guarantee":"RESBX 1ms 2ms"}"#, "guarantee_must_be_known"),
            (r#"{"guarantee":"PS 11/10"}"#, "guarantee_must_be_known"),
            (r#"{"guarantee":"PS 1/4","value":1000000001}"#, "value_must_fit"),
            (r#"{"guarantee":"PS 1/4","values":1}"#, "unknown field"),
        ] {
            let error = serde_json::from_str::<Mode>(text).unwrap_err().to_string();
            assert!(error.contains(rule), "{text}: {error}");
        }
    }
}
