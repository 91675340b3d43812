//! Single values of a study, each with its faults.

use crate::decimal::Decimal;
use std::sync::Arc;
use tierce_plan::reading::{listed, wrong_kind, Collector, Fields, Kind, Table, Value};
use tierce_plan::{closest, parse_time, Fault, Source};

/// Points of the grid.
pub const POINTS_MAX: u64 = 1_000_000;
/// Values of one axis.
const VALUES_MAX: u64 = 10_000;

/// A study being read.
pub struct Reader<'t> {
    pub collector: Collector,
    /// Path of the study.
    pub name: &'t str,
    /// Texts of plans that are not to be read from files.
    pub given: &'t [Arc<Source>],
    /// Plans that were read, and what they include.
    pub files: Vec<Arc<Source>>,
}

impl Reader<'_> {
    pub fn fault(&mut self, rule: &'static str, value: &Value, message: impl Into<String>) {
        self.collector.add(Fault::new(rule, value.spot, message));
    }

    /// A list of tables: `[[NAME]]`.
    pub fn tables<'v>(&mut self, what: &str, value: &'v Value) -> &'v [Value] {
        match &value.kind {
            Kind::List(list) => list,
            _ => {
                let fault = wrong_kind(&format!("`{what}`"), value, "a list of tables");
                self.collector.add(fault.hint(format!("write [[{what}]]")));
                &[]
            }
        }
    }

    /// The value or values of a key, each once.
    pub fn values<T: PartialEq>(
        &mut self,
        what: &str,
        value: &Value,
        mut one: impl FnMut(&mut Self, &str, &Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let list = self.collector.one_or_more(value);
        if list.is_empty() {
            self.fault("list_must_not_be_empty", value, format!("{what} has no value"));
            return None;
        }
        let mut found: Vec<T> = Vec::new();
        for item in list {
            let new = one(self, what, item)?;
            if found.contains(&new) {
                self.fault("values_must_differ", item, format!("{what} has this value twice"));
                return None;
            }
            found.push(new);
        }
        Some(found)
    }

    /// One of some names.
    pub fn choice<T: Copy>(&mut self, what: &str, value: &Value, names: &[(&'static str, T)]) -> Option<T> {
        let text = self.collector.text(what, value)?;
        let found = names.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let all: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            let near = closest(text, all.iter().copied());
            let hint = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let fault = Fault::new("choice_must_exist", value.spot, format!("{what} has no such value"));
            self.collector
                .add(fault.value(format!("\"{text}\"")).hint(format!("{hint}there are {}", listed(&all))));
        }
        found.map(|(_, value)| *value)
    }

    pub fn decimal(&mut self, what: &str, value: &Value) -> Option<Decimal> {
        let text = match &value.kind {
            Kind::Float(text) | Kind::Text(text) => text.clone(),
            Kind::Whole(Some(number)) => number.to_string(),
            _ => {
                self.collector.add(wrong_kind(what, value, "a number such as 0.8"));
                return None;
            }
        };
        let decimal = Decimal::parse(&text);
        if decimal.is_none() {
            let fault = Fault::new("number_must_be_decimal", value.spot, format!("{what} is no such number"));
            self.collector
                .add(fault.value(text).bound("0 or more, nine digits after the point, no exponent"));
        }
        decimal
    }

    /// Numbers: one, a list, or `{ from = 0.05, to = 1, step = 0.05 }`; each may be a range `"0.8..0.9"`.
    pub fn numbers(&mut self, what: &str, value: &Value) -> Option<Vec<(Decimal, Decimal)>> {
        let Kind::Table(table) = &value.kind else {
            return self.values(what, value, |reader, what, value| reader.range(what, value));
        };
        let steps = self.steps(what, value, table)?;
        Some(steps.into_iter().map(|number| (number, number)).collect())
    }

    pub fn steps(&mut self, what: &str, value: &Value, table: &Table) -> Option<Vec<Decimal>> {
        let mut fields = Fields::new(what, table);
        let keys = ["from", "to", "step"].map(|name| (name, fields.take(name)));
        fields.finish(&mut self.collector);
        let mut numbers = [Decimal(0); 3];
        for ((name, given), number) in keys.into_iter().zip(&mut numbers) {
            let Some(given) = given else {
                self.fault("steps_need_their_numbers", value, format!("{what} lacks `{name}`"));
                return None;
            };
            *number = self.decimal(&format!("`{name}` of {what}"), given)?;
        }
        let [Decimal(from), Decimal(to), Decimal(step)] = numbers;
        if step == 0 || from > to || (to - from) / step >= VALUES_MAX {
            let message = format!("{what} steps from `from` up to `to`, both included");
            let fault = Fault::new("steps_must_be_some", value.spot, message);
            let [from, to, step] = numbers;
            self.collector.add(
                fault.value(format!("{from} to {to} by {step}")).bound(format!("1 to {VALUES_MAX} values")),
            );
            return None;
        }
        Some((0..=(to - from) / step).map(|at| Decimal(from + at * step)).collect())
    }

    /// `0.8`, or `"0.8..0.9"`.
    pub fn range(&mut self, what: &str, value: &Value) -> Option<(Decimal, Decimal)> {
        if let Kind::Text(text) = &value.kind {
            if let Some((least, most)) = text.split_once("..") {
                let ends =
                    Decimal::parse(least).zip(Decimal::parse(most)).filter(|(least, most)| least <= most);
                if ends.is_none() {
                    let fault = Fault::new("range_must_be_one", value.spot, format!("{what} is no range"));
                    self.collector.add(fault.value(format!("\"{text}\"")).hint("for example \"0.1..0.5\""));
                }
                return ends;
            }
        }
        self.decimal(what, value).map(|number| (number, number))
    }

    /// `"5ms..50ms"`.
    pub fn times(&mut self, what: &str, value: &Value) -> Option<(u64, u64)> {
        let text = self.collector.text(what, value)?;
        let (shortest, longest) = text.split_once("..").unwrap_or((text, text));
        let ends = parse_time(shortest).and_then(|shortest| Ok((shortest, parse_time(longest)?)));
        match ends {
            Ok((shortest, longest)) if 0 < shortest && shortest <= longest => {
                return Some((shortest, longest))
            }
            Ok(_) => {
                let fault =
                    Fault::new("periods_are_a_range", value.spot, format!("{what} is no range of times"));
                self.collector.add(fault.value(format!("\"{text}\"")).bound("0 < shortest <= longest"));
            }
            Err(error) => {
                let fault = Fault::new(error.rule(), value.spot, format!("{what}: {}", error.message()));
                self.collector.add(fault.value(format!("\"{text}\"")).hint("for example \"5ms..50ms\""));
            }
        }
        None
    }
}
