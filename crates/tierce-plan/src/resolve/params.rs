//! Parameters of nodes and edges, as the records of the policies describe them.

use super::Resolver;
use crate::faults::Fault;
use crate::model::PARAMS;
use crate::policies::{self, Param, ParamKind, PolicyRecord};
use crate::source::Spot;
use crate::tree::show_whole;
use crate::tree::{Collector, Fields, Kind, Value};
use crate::units::show_time;

/// Whose parameters are read.
pub struct Owner {
    pub policy: &'static PolicyRecord,
    pub params: &'static [Param],
    /// Where one that is missing is missed.
    pub spot: Spot,
}

impl Resolver {
    /// The parameters of a node or edge: given, default or preset. `nice`: where to note `weight = "nice"`; `None`
    /// where that is not possible. Returns `None` when one is missing or wrong.
    pub(super) fn params(
        &mut self,
        owner: &Owner,
        fields: &mut Fields,
        mut nice: Option<&mut Option<usize>>,
    ) -> Option<[u64; PARAMS]> {
        let mut values = [None; PARAMS];
        let mut given: [Option<Spot>; PARAMS] = [None; PARAMS];
        let mut wrong = false;
        for (at, param) in owner.params.iter().enumerate().take(PARAMS) {
            let written = fields.take(param.name);
            given[at] = written.map(|value| value.spot);
            let preset = match param.kind {
                ParamKind::DurationOf(other) => values.get(other).copied().flatten(),
                _ => param.preset,
            };
            values[at] = match written {
                Some(Value { kind: Kind::Text(text), spot })
                    if text == "nice" && param.kind == ParamKind::Count =>
                {
                    match nice.as_deref_mut() {
                        Some(nice) if param.name == "weight" => *nice = Some(at),
                        _ => {
                            let message = "only the weight of unmatched threads can follow their nice value";
                            self.collector.add(Fault::new("nice_is_for_each_weight", *spot, message));
                        }
                    }
                    preset.or(Some(param.least))
                }
                Some(value) => param_value(&fields.what(param.name), param, value, &mut self.collector),
                None => self.defaults.get(&(owner.policy.name, param.name)).copied().or(preset),
            };
            if written.is_none() && values[at].is_none() && !matches!(param.kind, ParamKind::DurationOf(_)) {
                let message = format!("`{}` is missing: {}", param.name, param.meaning);
                let message = message.trim_end_matches([':', ' ']);
                let fault = Fault::new("parameter_must_be_given", owner.spot, message);
                self.collector.add(fault.hint(format!("{} = …, {}", param.name, range(param))));
            }
            wrong |= values[at].is_none();
        }
        if wrong {
            return None;
        }
        for (small, large, rule) in [
            ("deadline", "period", "deadline_must_not_exceed_period"),
            ("budget", "deadline", "budget_must_not_exceed_deadline"),
            ("budget", "period", "budget_must_not_exceed_period"),
        ] {
            let find = |name| policies::position(owner.params, name);
            let (Some(small_at), Some(large_at)) = (find(small), find(large)) else { continue };
            let (Some(low), Some(high)) = (values[small_at], values[large_at]) else { continue };
            // A deadline that merely stands for the period is not what the budget exceeds.
            if low > high && !(large == "deadline" && given[large_at].is_none()) {
                let spot = given[small_at].unwrap_or(owner.spot);
                let fault = Fault::new(rule, spot, format!("the {small} is larger than the {large}"));
                let fault = fault.value(show_time(low)).bound(show_time(high));
                let other = given[large_at].filter(|other| *other != spot);
                self.collector.add(match other {
                    Some(other) => fault.other(other, format!("the {large}")),
                    None => fault,
                });
                return None;
            }
        }
        Some(values.map(Option::unwrap_or_default))
    }
}

/// Value of one parameter, within its range.
pub fn param_value(what: &str, param: &Param, value: &Value, collector: &mut Collector) -> Option<u64> {
    let number = match param.kind {
        ParamKind::Time | ParamKind::DurationOf(_) => collector.time(what, value)?,
        ParamKind::Count => match &value.kind {
            Kind::Whole(number) if number.is_none_or(|number| number < 0) => {
                out_of_range(what, param, show_whole(*number), value.spot, collector);
                return None;
            }
            _ => collector.whole(what, value, 0, i64::MAX)? as u64,
        },
    };
    if !(param.least..=param.most).contains(&number) {
        out_of_range(what, param, show(param, number), value.spot, collector);
        return None;
    }
    Some(number)
}

fn out_of_range(what: &str, param: &Param, value: String, spot: Spot, collector: &mut Collector) {
    let fault = Fault::new("parameter_within_range", spot, format!("{what} is out of range"));
    collector.add(fault.value(value).bound(range(param)));
}

/// The value of a parameter in its unit.
fn show(param: &Param, value: u64) -> String {
    match param.kind {
        ParamKind::Count => value.to_string(),
        _ => show_time(value),
    }
}

/// "1us to 3600s".
fn range(param: &Param) -> String {
    format!("{} to {}", show(param, param.least), show(param, param.most))
}
