//! The values of rules, made directly and from JSON, and back to it.

use rhai::{Array, Dynamic, Engine, Map};
use serde_json::{Number, Value};
use std::cell::OnceCell;
use std::rc::Rc;

/// A value of a rule.
pub type Data = Dynamic;

/// What is known of a request: values with the names of [`Record::FIELDS`]. It is given to rules as it is: they can read it, and nothing of it
/// can be changed. A value is found when somebody asks for it.
#[derive(Clone)]
pub struct Record(Rc<Found>);

struct Found {
    find: Box<dyn Fn(&str) -> Data>,
    found: [OnceCell<Data>; Record::FIELDS.len()],
}

impl Record {
    /// Names of the values, in their order.
    pub const FIELDS: [&'static str; 16] = [
        "id",
        "owner",
        "user",
        "state",
        "value",
        "ppm",
        "least_ppm",
        "period_us",
        "modes",
        "mode",
        "under",
        "cpu",
        "scheduler",
        "ending",
        "label",
        "about",
    ];

    /// `find` finds the value of that name.
    pub fn new(find: impl Fn(&str) -> Data + 'static) -> Self {
        Self(Rc::new(Found { find: Box::new(find), found: Default::default() }))
    }

    fn value(&self, at: usize) -> &Data {
        self.0.found[at].get_or_init(|| (self.0.find)(Self::FIELDS[at]))
    }

    /// The number of the request.
    pub fn id(&self) -> &Data {
        self.value(0)
    }

    /// A value, if it is a number.
    pub fn number(&self, name: &str) -> Option<i64> {
        let at = Self::FIELDS.iter().position(|field| *field == name)?;
        self.value(at).as_int().ok()
    }

    /// Engines know of it from here on.
    pub(super) fn register(engine: &mut Engine) {
        engine.register_type_with_name::<Record>("request");
        for (at, name) in Self::FIELDS.into_iter().enumerate() {
            engine.register_get(name, move |record: &mut Record| record.value(at).clone());
        }
        engine.register_fn("==", |one: Record, other: Record| one.id().as_int() == other.id().as_int());
        engine.register_fn("!=", |one: Record, other: Record| one.id().as_int() != other.id().as_int());
    }
}

impl From<Record> for Data {
    fn from(record: Record) -> Data {
        Dynamic::from(record)
    }
}

/// A table.
pub fn map<'k>(pairs: impl IntoIterator<Item = (&'k str, Data)>) -> Data {
    pairs.into_iter().map(|(key, value)| (key.into(), value)).collect::<Map>().into()
}

/// A list.
pub fn list(values: impl IntoIterator<Item = Data>) -> Data {
    values.into_iter().collect::<Array>().into()
}

/// A text.
pub fn text(text: impl ToString) -> Data {
    text.to_string().into()
}

/// A whole number; one that is too large is the largest.
pub fn number(number: impl TryInto<i64>) -> Data {
    number.try_into().unwrap_or(i64::MAX).into()
}

/// Levels of values within values that a decision may have.
const LEVELS: u32 = 8;

/// For a rule. Numbers that are not whole are texts: rules have none.
pub fn to_rule(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => of_number(number),
        Value::String(text) => text.clone().into(),
        Value::Array(values) => list(values.iter().map(to_rule)),
        Value::Object(pairs) => map(pairs.iter().map(|(key, value)| (key.as_str(), to_rule(value)))),
    }
}

fn of_number(number: &Number) -> Dynamic {
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => number.into(),
        (_, Some(_)) => i64::MAX.into(),
        _ => number.to_string().into(),
    }
}

/// Of a rule. What is no data is an error.
pub fn of_rule(value: Dynamic) -> Result<Value, String> {
    of_level(value, LEVELS)
}

fn of_level(value: Dynamic, levels: u32) -> Result<Value, String> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(format!("values within values, more than {LEVELS} levels deep"));
    };
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(yes) = value.as_bool() {
        return Ok(yes.into());
    }
    if let Ok(number) = value.as_int() {
        return Ok(number.into());
    }
    if value.is_string() {
        return value.into_string().map(Value::String).map_err(str::to_string);
    }
    if value.is_array() {
        let list = value.into_array().map_err(str::to_string)?;
        return list.into_iter().map(|one| of_level(one, levels)).collect::<Result<_, _>>().map(Value::Array);
    }
    if let Some(record) = value.read_lock::<Record>().as_deref() {
        let pairs = Record::FIELDS.into_iter().enumerate();
        let pairs =
            pairs.map(|(at, name)| Ok((name.to_string(), of_level(record.value(at).clone(), levels)?)));
        return pairs.collect::<Result<_, _>>().map(Value::Object);
    }
    match value.type_name() {
        "map" => {
            let map = value.try_cast::<Map>().unwrap_or_default();
            let pairs = map.into_iter().map(|(key, one)| Ok((key.to_string(), of_level(one, levels)?)));
            pairs.collect::<Result<_, _>>().map(Value::Object)
        }
        other => Err(format!("a value of type {other}, which is no data")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_comes_back_as_it_went() {
        let value = json!({ "a": [1, -2, true, null, "é"], "b": { "c": {} } });
        assert_eq!(of_rule(to_rule(&value)), Ok(value));
        assert_eq!(of_rule(to_rule(&json!(u64::MAX))), Ok(json!(i64::MAX)));
        assert_eq!(of_rule(to_rule(&json!(1.5))), Ok(json!("1.5")));
    }

    #[test]
    fn a_record_is_read_and_not_changed() {
        let mut engine = Engine::new();
        Record::register(&mut engine);
        let about = map([("a", number(1))]);
        let record = || {
            let about = about.clone();
            Record::new(move |name| match Record::FIELDS.iter().position(|field| *field == name) {
                Some(at) if name != "about" => (at as i64 + 1).into(),
                _ => about.clone(),
            })
        };
        let said = |text: &str| {
            let mut scope = rhai::Scope::new();
            scope.push("r", record());
            scope.push("all", vec![Dynamic::from(record())]);
            engine.eval_with_scope::<Dynamic>(&mut scope, text).map_err(|error| error.to_string())
        };
        assert_eq!(of_rule(said("r.value + r.about.a").unwrap()), Ok(json!(6)));
        assert_eq!(of_rule(said("[r == all[0], r != all[0]]").unwrap()), Ok(json!([true, false])));
        assert_eq!(of_rule(said("r").unwrap()), of_rule(record().into()));
        assert_eq!(
            of_rule(said("let a = r.about; a.a = 2; a.b = 3; [a.a, r.about.a]").unwrap()),
            Ok(json!([2, 1]))
        );
        for text in ["r.value = 3", "r.other = 3", "all[0].state = 1", "r[\"value\"] = 3"] {
            assert!(said(text).is_err(), "{text}");
        }
        for text in ["r.about.a = 2; r.about.a", "all[0].about.a = 2; all[0].about.a"] {
            assert!(said(text).is_err() || of_rule(said(text).unwrap()) == Ok(json!(1)), "{text}");
        }
    }

    #[test]
    fn what_is_no_data_is_refused() {
        assert!(of_rule(Dynamic::from('c')).unwrap_err().contains("char"));
        let mut deep = Dynamic::from(1_i64);
        for _ in 0..LEVELS {
            deep = vec![deep].into();
        }
        assert!(of_rule(deep).unwrap_err().contains("levels deep"));
    }
}
