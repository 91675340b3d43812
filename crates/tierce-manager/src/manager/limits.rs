//! How much anybody may ask for, whatever rules say.

use crate::mode::{number, Mode, LEAST_BUDGET_NS, LEAST_PERIOD_NS};
use crate::wrong::Wrong;
use tierce_guarantee::{show_time, whole, Exact, Parameter};
use tierce_plan::Edit;

/// Parameters that say, as a budget does, how long a child runs before another may.
const LIKE_BUDGETS: [&str; 8] =
    ["quantum", "burst", "least_burst", "largest_burst", "length", "work", "work_hi", "warp_limit"];
/// Parameters that say, as a period does, how often all have their turns.
const LIKE_PERIODS: [&str; 2] = ["slot", "round"];

/// How much one principal and one person may have, and all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one principal, and of one person, the system apart.
    pub requests_each: usize,
    /// Requests.
    pub requests: usize,
    /// Operations by which a scheduler is divided.
    pub divisions: usize,
    /// Operations by which all schedulers of a principal, and of a person, are divided, the system apart.
    pub divisions_each: usize,
    /// The shortest budget that is asked for, the system apart. A thread runs for at least 2 us once it does, and what it has too much is
    /// debt only up to a budget: of shorter ones each period would give something away.
    pub least_budget_ns: u64,
    /// The shortest period (or error of a share), the same.
    pub least_period_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_each: 32,
            requests: 256,
            divisions: 64,
            divisions_each: 256,
            least_budget_ns: LEAST_BUDGET_NS,
            least_period_ns: LEAST_PERIOD_NS,
        }
    }
}

impl Limits {
    /// What is asked for is not too short.
    pub(super) fn allow(&self, mode: &Mode) -> Result<(), Wrong> {
        if let Some((budget, period)) = mode.guarantee.amount_and_period() {
            self.period(period)?;
            return self.budget(budget);
        }
        mode.guarantee.get(Parameter::Error).map_or(Ok(()), |error| self.period(error))
    }

    /// The same of an operation that divides a scheduler.
    pub(super) fn allow_edit(&self, edit: &Edit) -> Result<(), Wrong> {
        let keys = match edit {
            Edit::Create { keys, .. }
            | Edit::Set { keys, .. }
            | Edit::Move { keys, .. }
            | Edit::Link { keys, .. } => keys,
            Edit::Destroy { .. } | Edit::Enclose { .. } | Edit::Default { .. } => return Ok(()),
        };
        for (key, text) in keys {
            // What is no time is refused as a parameter.
            let Ok(time_ns) = tierce_plan::parse_time(text) else { continue };
            let time = whole(time_ns);
            let named = |wrong: Wrong| Wrong::new(wrong.rule, format!("{key}: {}", wrong.message));
            match &key[..] {
                "budget" => self.budget(&time)?,
                "period" => self.period(&time)?,
                // Where nothing is no time for it, that means something else: never, or no bound.
                _ if time_ns == 0 => {}
                key if LIKE_BUDGETS.contains(&key) => self.budget(&time).map_err(named)?,
                key if LIKE_PERIODS.contains(&key) => self.period(&time).map_err(named)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn budget(&self, budget: &Exact) -> Result<(), Wrong> {
        long(budget, self.least_budget_ns, "budget_must_be_long_enough")
    }

    fn period(&self, period: &Exact) -> Result<(), Wrong> {
        long(period, self.least_period_ns, "period_must_be_long_enough")
    }
}

fn long(time: &Exact, least_ns: u64, rule: &str) -> Result<(), Wrong> {
    // Most are whole, and those are compared at once.
    let is_short = number(time).map_or_else(|| *time < whole(least_ns), |ns| ns < least_ns);
    match is_short {
        true => Err(Wrong::new(rule, format!("{}, bound {}", show_time(time), show_time(&whole(least_ns))))),
        false => Ok(()),
    }
}
