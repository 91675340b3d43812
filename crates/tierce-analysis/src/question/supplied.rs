//! A supply as people write it.

use crate::{Mpr, Supply};
use tierce_guarantee::Guarantee;

/// Most CPUs of a question.
pub const CPUS_MAX: u32 = 1024;

/// A supply and how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// As it was written.
    pub text: String,
    /// What it means.
    pub supply: Supplied,
}

/// Whose supply it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supplied {
    /// Each CPU gives that.
    Each(Supply),
    /// Several CPUs give that together.
    Together(Mpr),
}

/// `1.5ms/6ms`, `1.5ms/6ms/4ms`, `6ms/5ms@2`, or a guarantee; or rule and words of what is wrong with it.
pub fn supply(text: &str) -> Result<Given, String> {
    let given = |supply| Given { text: text.trim().to_string(), supply };
    let each = |supply| given(Supplied::Each(supply));
    if !text.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let guarantee = Guarantee::parse(text).map_err(|faults| faults.to_string())?;
        let nothing =
            "supply_must_be_bounded: this supply guarantees nothing in any window, or less than 1 ns";
        return Supply::of(&guarantee).map(each).ok_or_else(|| nothing.to_string());
    }
    let (times, cpus) = match text.split_once('@') {
        None => (text, None),
        Some((times, cpus)) => {
            let count = cpus.trim().parse().ok().filter(|cpus| (1..=CPUS_MAX).contains(cpus));
            let fault = || format!("supply_must_have_its_cpus: from 1 to {CPUS_MAX} after @ (\"{cpus}\")");
            (times, Some(count.ok_or_else(fault)?))
        }
    };
    let times = times.split('/').map(|text| time_within(text, "above 0")).collect::<Result<Vec<_>, _>>()?;
    let supply = match (&times[..], cpus) {
        ([budget, period], None | Some(1)) => Supply::periodic(*budget, *period).map(each),
        ([budget, period, deadline], None) => Supply::edp(*budget, *period, *deadline).map(each),
        ([budget, period], Some(cpus)) => {
            Mpr::new(*budget, *period, cpus).map(|supply| given(Supplied::Together(supply)))
        }
        _ => {
            let forms = "BUDGET/PERIOD, BUDGET/PERIOD/DEADLINE or BUDGET/PERIOD@CPUS";
            return Err(format!("supply_must_have_its_numbers: {forms}"));
        }
    };
    supply.ok_or_else(|| {
        "supply_must_fit: 0 < budget <= deadline <= period, the deadline being the period where not given; with @ \
         0 < budget <= CPUs times period"
            .to_string()
    })
}

/// A time in whole ns; a bare number is ns.
pub fn time(text: &str) -> Result<u64, String> {
    time_within(text, "0 or more")
}

/// The same with other words for what may not be negative.
pub fn time_within(text: &str, least: &str) -> Result<u64, String> {
    crate::parse_time(text.trim()).map_err(|(rule, message)| {
        let bound = match rule {
            "number_must_not_be_negative" => least.into(),
            "time_not_finer_than_1ns" => "1ns".into(),
            _ => tierce_guarantee::Parameter::Period.bound(rule),
        };
        format!("{rule}: {message}: {text}, bound {bound}")
    })
}

/// Several CPUs give it together.
pub fn is_together(given: &Given) -> bool {
    matches!(given.supply, Supplied::Together(_))
}
