//! Parameters of nodes and edges, as the records of the policies describe them.

use super::state::Resolver;
use crate::model::{Defaults, NODE_PARAMS};
use crate::policies::rounds::unstable;
use crate::policies::{self, Param, ParamKind, PolicyRecord};
use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::tree::{show_whole, wrong_kind};
use crate::text::tree::{Collector, Fields, Kind, Table, Value};
use crate::text::units::show_time;

/// Whose parameters are read.
pub struct Owner {
    pub policy: &'static PolicyRecord,
    pub params: &'static [Param],
    /// Where one that is missing is missed.
    pub spot: Spot,
}

impl Resolver {
    pub(super) fn params<const N: usize>(
        &mut self,
        owner: &Owner,
        fields: &mut Fields,
        of_thread: Option<OfThread>,
    ) -> Option<[u64; N]> {
        read(&self.plan.defaults, &mut self.collector, owner, fields, of_thread)
    }
}

/// Which of them a table has, a bit each.
pub fn given(params: &[Param], table: &Table) -> u8 {
    table.entries.iter().fold(0, |given, (key, _)| match policies::position(params, &key.text) {
        Some(at) => given | 1 << at,
        None => given,
    })
}

/// Parameters of which the one may not be larger than the other, and what says so.
const ORDERED: [(&str, &str, &str); 6] = [
    ("deadline", "period", "deadline_must_not_exceed_period"),
    ("budget", "deadline", "budget_must_not_exceed_deadline"),
    ("budget", "period", "budget_must_not_exceed_period"),
    ("least_burst", "burst", "burst_must_lie_within_its_limits"),
    ("burst", "largest_burst", "burst_must_lie_within_its_limits"),
    ("promised", "promise_period", "promise_must_fit_its_period"),
];

/// The first two parameters of which the one is larger than the other and may not be: their places and the rule. A deadline that
/// merely stands for the period is not what the budget exceeds.
fn disordered(
    params: &[Param],
    values: &[Option<u64>],
    given: impl Fn(usize) -> bool,
) -> Option<(usize, usize, &'static str)> {
    ORDERED.into_iter().find_map(|(small, large, rule)| {
        let (low, high) = (policies::position(params, small)?, policies::position(params, large)?);
        let too_large = values.get(low).copied()?? > values.get(high).copied()??;
        (too_large && (large != "deadline" || given(high))).then_some((low, high, rule))
    })
}

/// Parameters with these keys, of which `old` are those before and which of them were given; none: it is new. What is given
/// is returned with them. `None`: a fault, or a key that is no parameter.
pub fn with_keys<const N: usize>(
    defaults: &Defaults,
    policy: &PolicyRecord,
    params: &[Param],
    old: Option<(&[u64; N], u8)>,
    keys: &[(String, String)],
) -> Option<([u64; N], u8)> {
    let mut values = [None; N];
    let mut given = 0;
    if let Some((old, were)) = old {
        (0..N).filter(|at| were >> at & 1 == 1).for_each(|at| values[at] = Some(old[at]));
        given = were;
    }
    let mut collector = Collector::default();
    for (key, text) in keys {
        let at = policies::position(params, key).filter(|at| *at < N)?;
        let kind = match (text.parse::<i64>(), text.parse::<bool>()) {
            (Ok(number), _) => Kind::Whole(Some(number)),
            (_, Ok(yes)) => Kind::Bool(yes),
            _ => Kind::Text(text.clone()),
        };
        values[at] =
            Some(param_value("", &params[at], &Value { spot: Spot::default(), kind }, &mut collector)?);
        given |= 1 << at;
    }
    for (at, param) in params.iter().enumerate().take(N).filter(|(at, _)| given >> at & 1 == 0) {
        let preset = match param.kind {
            ParamKind::DurationOf(other) => values.get(other).copied().flatten(),
            _ => param.preset,
        };
        values[at] = Some(defaults.get(&(policy.name, param.name)).copied().or(preset)?);
    }
    let sound =
        collector.faults.is_empty() && disordered(params, &values, |at| given >> at & 1 == 1).is_none();
    sound.then(|| (values.map(Option::unwrap_or_default), given))
}

/// What a parameter may be instead of a number: as its thread has it.
pub struct OfThread<'a> {
    /// Which parameter.
    pub name: &'static str,
    /// The word that the text has for it.
    pub word: &'static str,
    /// Where there is no thread to ask.
    pub otherwise: Option<u64>,
    /// The place of the parameter, if the text has that word.
    pub at: &'a mut Option<usize>,
}

/// What can be said of no other parameters.
const OF_THREADS: [(&str, &str, &str); 2] = [
    ("nice", "nice_is_for_each_weight", "only the weight of unmatched threads can follow their nice value"),
    ("rt_priority", "rt_priority_is_for_sets", "only the priority of a set's threads can be their own"),
];

/// The parameters of a node or edge: given, default or preset. `of_thread`: what the text may leave to the thread. Returns `None` when
/// one is missing or wrong.
pub fn read<const N: usize>(
    defaults: &Defaults,
    collector: &mut Collector,
    owner: &Owner,
    fields: &mut Fields,
    mut of_thread: Option<OfThread>,
) -> Option<[u64; N]> {
    let mut values = [None; N];
    let mut given: [Option<Spot>; N] = [None; N];
    let mut wrong = false;
    for (at, param) in owner.params.iter().enumerate().take(N) {
        let written = fields.take(param.name);
        given[at] = written.map(|value| value.spot);
        let preset = match param.kind {
            ParamKind::DurationOf(other) => values.get(other).copied().flatten(),
            _ => param.preset,
        };
        values[at] = match written {
            Some(Value { kind: Kind::Text(text), spot })
                if param.kind == ParamKind::Count && OF_THREADS.iter().any(|(word, ..)| word == text) =>
            {
                let mut otherwise = None;
                match &mut of_thread {
                    Some(own) if own.name == param.name && own.word == text => {
                        *own.at = Some(at);
                        otherwise = own.otherwise;
                    }
                    _ => {
                        let about = OF_THREADS.iter().find(|(word, ..)| word == text);
                        collector.add(about.map_or_else(
                            || Fault::new("value_must_be_of_its_kind", *spot, "a word"),
                            |(_, rule, message)| Fault::new(rule, *spot, *message),
                        ));
                    }
                }
                otherwise.or(preset).or(Some(param.least))
            }
            Some(value) => param_value(&fields.what(param.name), param, value, collector),
            None => defaults.get(&(owner.policy.name, param.name)).copied().or(preset),
        };
        let missing =
            written.is_none() && values[at].is_none() && !matches!(param.kind, ParamKind::DurationOf(_));
        if missing && !fields.is_misspelt(param.name) {
            let message = format!("{} is missing: {}", fields.what(param.name), param.meaning);
            let message = message.trim_end_matches([':', ' ']);
            let fault = Fault::new("parameter_must_be_given", owner.spot, message);
            collector.add(fault.hint(format!("{} = …, {}", param.name, range(param))));
        }
        wrong |= values[at].is_none();
    }
    if wrong {
        return None;
    }
    let fault = out_of_order(owner, fields, &values, &given);
    let values = values.map(Option::unwrap_or_default);
    if let Some(fault) = fault.or_else(|| unstable_loop(owner, &values, &given)) {
        collector.add(fault);
        return None;
    }
    Some(values)
}

/// A parameter that is larger than another which bounds it.
fn out_of_order(
    owner: &Owner,
    fields: &Fields,
    values: &[Option<u64>],
    given: &[Option<Spot>],
) -> Option<Fault> {
    let (small, large, rule) = disordered(owner.params, values, |at| given[at].is_some())?;
    let spot = given[small].unwrap_or(owner.spot);
    let (what, bound) = (fields.what(owner.params[small].name), owner.params[large].name);
    let fault = Fault::new(rule, spot, format!("{what} is larger than its `{bound}`"));
    let fault = match rule {
        "budget_must_not_exceed_period" | "budget_must_not_exceed_deadline" => {
            fault.hint(format!("a budget is CPU time until the {bound}; were the two exchanged?"))
        }
        "deadline_must_not_exceed_period" => fault.hint("at most the period, which is the default"),
        _ => fault,
    };
    let [low, high] = [small, large].map(|at| show_time(values[at].unwrap_or_default()));
    let fault = fault.value(low).bound(high);
    Some(match given[large].filter(|other| *other != spot) {
        Some(other) => fault.other(other, format!("`{bound}`")),
        None => fault,
    })
}

/// Parameters of a node whose feedback would swing ever more.
fn unstable_loop<const N: usize>(
    owner: &Owner,
    values: &[u64; N],
    given: &[Option<Spot>; N],
) -> Option<Fault> {
    let broken = (N == NODE_PARAMS).then(|| unstable(owner.policy, values)).flatten()?;
    let fault = Fault::new("loops_must_be_stable", given[broken.at].unwrap_or(owner.spot), broken.message);
    Some(fault.value(broken.value).bound(broken.bound))
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
            Kind::Float(number) => {
                let message = format!("{what} must be a whole number");
                let fault =
                    Fault::new("float_not_allowed", value.spot, message).value(number).bound(range(param));
                collector.add(match param.name {
                    "weight" | "importance" => fault.hint("only ratios matter: 5 and 2 instead of 2.5 and 1"),
                    _ => fault,
                });
                return None;
            }
            Kind::Whole(Some(number)) => *number as u64,
            _ => {
                let fault = wrong_kind(what, value, "a whole number").bound(range(param));
                collector.add(fault.hint(param.meaning));
                return None;
            }
        },
        ParamKind::Ratio => {
            let text = match &value.kind {
                Kind::Text(text) | Kind::Float(text) => text.clone(),
                Kind::Whole(number) => show_whole(*number),
                _ => collector.text(what, value)?.to_owned(),
            };
            let Some(number) = param.read(&text) else {
                let message = format!("{what} must be a decimal number of at most six places");
                let fault = Fault::new("decimal_must_be_clear", value.spot, message);
                collector.add(fault.value(text).bound(range(param)));
                return None;
            };
            number
        }
        ParamKind::Choice => {
            let text = collector.text(what, value)?;
            let Some(number) = param.read(text) else {
                let fault = Fault::new(
                    "choice_must_be_known",
                    value.spot,
                    format!("{what}: there is no such choice"),
                );
                collector.add(fault.value(text).bound(range(param)));
                return None;
            };
            number
        }
    };
    if !(param.least..=param.most).contains(&number) {
        out_of_range(what, param, param.show(number, show_time), value.spot, collector);
        return None;
    }
    Some(number)
}

fn out_of_range(what: &str, param: &Param, value: String, spot: Spot, collector: &mut Collector) {
    let fault = Fault::new("parameter_within_range", spot, format!("{what} is out of range"));
    collector.add(fault.value(value).bound(range(param)));
}

/// "1us to 3600s".
fn range(param: &Param) -> String {
    param.range(show_time)
}
