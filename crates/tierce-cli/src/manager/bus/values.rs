//! Values of D-Bus as JSON, and the other way round: requests and answers are the same over the bus and over the socket.

use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{Map, Number, Value as Json};
use std::collections::HashMap;
use tierce_manager::Wrong;
use zbus::zvariant::{OwnedValue, Value};

/// A table, `a{sv}`.
pub type Table = HashMap<String, OwnedValue>;

/// What was sent as what is expected.
pub fn read<T: DeserializeOwned>(table: &Table) -> Result<T, Wrong> {
    let json = json_table(table)?;
    serde_json::from_value(json.into())
        .map_err(|error| Wrong::new("request_must_be_known", error.to_string()))
}

fn json_table(table: &Table) -> Result<Map<String, Json>, Wrong> {
    table.iter().map(|(key, value)| Ok((key.clone(), json(value)?))).collect()
}

fn json(value: &Value) -> Result<Json, Wrong> {
    Ok(match value {
        Value::Bool(is) => Json::Bool(*is),
        Value::U8(number) => Json::Number((*number).into()),
        Value::I16(number) => Json::Number((*number).into()),
        Value::U16(number) => Json::Number((*number).into()),
        Value::I32(number) => Json::Number((*number).into()),
        Value::U32(number) => Json::Number((*number).into()),
        Value::I64(number) => Json::Number((*number).into()),
        Value::U64(number) => Json::Number((*number).into()),
        Value::Str(text) => Json::String(text.as_str().into()),
        Value::Array(list) => Json::Array(list.iter().map(json).collect::<Result<_, _>>()?),
        Value::Value(inner) => json(inner)?,
        Value::Dict(table) => {
            let mut map = Map::new();
            for (key, value) in table.iter() {
                let Value::Str(key) = key else { return Err(not_plain(key)) };
                map.insert(key.as_str().into(), json(value)?);
            }
            Json::Object(map)
        }
        other => return Err(not_plain(other)),
    })
}

fn not_plain(value: &Value) -> Wrong {
    let is = value.value_signature();
    Wrong::new("value_must_be_plain", format!("a value of type {is}; expected text, numbers, lists, tables"))
}

/// An answer as a table.
pub fn table(of: &impl Serialize) -> Table {
    let Ok(Json::Object(map)) = serde_json::to_value(of) else { return Table::new() };
    let pairs = map.iter().filter_map(|(key, json)| Some((key.clone(), value(json).try_into().ok()?)));
    pairs.collect()
}

/// Lists of tables are `aa{sv}`, of texts `as`, others `av`.
fn value(json: &Json) -> Value<'static> {
    match json {
        Json::Null => Value::from(""),
        Json::Bool(is) => Value::from(*is),
        Json::Number(number) => self::number(number),
        Json::String(text) => Value::from(text.clone()),
        Json::Array(list) if list.iter().all(Json::is_object) => {
            Value::from(list.iter().filter_map(Json::as_object).map(values).collect::<Vec<_>>())
        }
        Json::Array(list) if list.iter().all(Json::is_string) => {
            Value::from(list.iter().filter_map(Json::as_str).map(String::from).collect::<Vec<_>>())
        }
        Json::Array(list) => Value::from(list.iter().map(value).collect::<Vec<_>>()),
        Json::Object(map) => Value::from(values(map)),
    }
}

fn values(map: &Map<String, Json>) -> HashMap<String, Value<'static>> {
    map.iter().map(|(key, json)| (key.clone(), value(json))).collect()
}

fn number(number: &Number) -> Value<'static> {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => Value::from(number),
        (_, Some(number)) => Value::from(number),
        _ => Value::from(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tierce_manager::{Mode, State, Wish};
    use tierce_plan::Edit;

    #[test]
    fn a_wish_is_the_same_over_the_bus() {
        let mode = HashMap::from([("budget", Value::from("2ms")), ("period", Value::from("10ms"))]);
        let table: Table = [
            ("thread", Value::from(7u32)),
            ("modes", Value::from(vec![mode])),
            ("wait", Value::from(true)),
            ("about", Value::from(HashMap::from([("n", Value::from(-3i32))]))),
        ]
        .map(|(key, value)| (key.to_string(), value.try_into().unwrap()))
        .into();
        let wish: Wish = read(&table).unwrap();
        assert_eq!((wish.thread, wish.wait, &wish.about["n"]), (Some(7), true, &json!(-3)));
        assert_eq!(wish.modes, [Mode::parse("2ms/10ms", 0).unwrap()]);
        for (key, bad, rule) in [
            ("thread", Value::from(0.5f64), "value_must_be_plain"),
            ("threat", Value::from(1u32), "request_must_be_known"),
            ("about", Value::from(HashMap::from([(1u32, "x")])), "value_must_be_plain"),
        ] {
            let table = Table::from([(key.to_string(), bad.try_into().unwrap())]);
            assert_eq!(read::<Wish>(&table).unwrap_err().rule, rule, "{key}");
        }
    }

    #[test]
    fn an_operation_is_the_same_over_the_bus() {
        let keys = vec![vec!["weight", "3"]];
        let create = [
            ("name", Value::from("video")),
            ("policy", Value::from("fair")),
            ("under", Value::from("")),
            ("keys", Value::from(keys)),
        ];
        let edit = |create: HashMap<&str, Value<'static>>| {
            Table::from([("create".to_string(), Value::from(create).try_into().unwrap())])
        };
        let read: Edit = super::read(&edit(create.clone().into())).unwrap();
        let (name, policy, under) = ("video".into(), Some("fair".into()), "".into());
        let keys = vec![("weight".into(), "3".into())];
        assert_eq!(read, Edit::Create { name, policy, under, keys, who: Vec::new(), cpus: None });
        let wrong = super::read::<Edit>(&edit(create[1..].iter().cloned().collect())).unwrap_err();
        assert!(wrong.rule == "request_must_be_known" && wrong.message.contains("name"), "{wrong}");
    }

    #[test]
    fn an_answer_comes_back_as_it_was() {
        let mut answer = tierce_manager::Answer::new(State::Refused);
        answer.reason = Some(Wrong::new("no", "because"));
        answer.nearest = Some(Mode::parse("1ms/10ms", -5).unwrap());
        answer.changes = vec!["one".into(), "two".into()];
        let again: tierce_manager::Answer = read(&table(&answer)).unwrap();
        assert_eq!(again, answer);
    }
}
