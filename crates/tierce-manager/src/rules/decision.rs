//! What a rule decides, as data.

use crate::mode::Mode;
use crate::wrong::Wrong;
use serde::Deserialize;
use serde_json::{Map, Value};
use tierce_plan::{Below, Edit, Keys};

/// What a rule returns: a map with some of these keys. Nothing, `()`, is a decision with none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decision {
    /// The request is refused, for this reason.
    pub refuse: Option<String>,
    /// With `refuse`: what would be granted.
    pub nearest: Option<Mode>,
    /// The request stays pending, for this reason, also if its owner does not wait for it.
    pub defer: Option<String>,
    /// The request may be granted, whatever a rule before would have said that failed.
    pub grant: bool,
    /// Requests that lose their guarantees, in the same transition.
    pub revoke: Vec<u64>,
    /// Requests that get another mode, in the same transition.
    pub change: Vec<To>,
    /// Why, for those who lose something.
    pub reason: Option<String>,
    /// How long before they are told, ms.
    pub grace_ms: u64,
    /// Only these modes of the request; empty: all.
    pub modes: Vec<usize>,
    /// Only modes that take at most so much of a CPU, in parts per million.
    pub most_ppm: Option<u64>,
    /// The request goes below this node.
    pub under: Option<String>,
    /// On the first of these CPUs where it can be; empty: wherever there is room.
    pub cpus: Vec<u32>,
    /// The request gets a second parent, for time beyond its budget.
    pub soft: Option<String>,
    /// New nodes.
    pub create: Vec<Create>,
    /// Nodes that a rule has created go, with all that is below them.
    pub destroy: Vec<String>,
    /// Other parameters for nodes that a rule has created.
    pub set: Vec<SetKeys>,
    /// Events that are signalled next.
    pub signal: Vec<String>,
    /// Events that are signalled later.
    pub after: Vec<Timer>,
    /// Pending requests are looked at again.
    pub retry: bool,
    /// For the log.
    pub say: Option<String>,
}

/// Another mode for a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct To {
    /// The request.
    pub id: u64,
    /// Its mode, from 0, the most valuable.
    pub mode: usize,
}

/// A new node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Its name.
    pub name: String,
    /// Its policy.
    pub policy: String,
    /// The node above.
    pub under: String,
    /// Parameters.
    #[serde(default)]
    pub keys: Map<String, Value>,
    /// These threads share it.
    #[serde(default)]
    pub who: Vec<Map<String, Value>>,
}

/// Other parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetKeys {
    /// The node.
    pub name: String,
    /// Parameters.
    pub keys: Map<String, Value>,
}

/// An event, later.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timer {
    /// In so many ms.
    pub ms: u64,
    /// Its name.
    pub event: String,
}

/// Longest time that a rule may ask for, ms: a week.
const MS_MAX: u64 = 7 * 24 * 3600 * 1000;

/// Parts, requests and events that one decision may name.
const NAMED_MAX: usize = 256;

impl Decision {
    /// As a rule returns it.
    pub fn of(value: Value) -> Result<Self, String> {
        if value.is_null() {
            return Ok(Self::default());
        }
        if !value.is_object() {
            return Err("no decision: a map, or nothing".into());
        }
        let decision: Self =
            serde_json::from_value(value).map_err(|error| format!("no decision: {error}"))?;
        let lengths = [
            decision.revoke.len(),
            decision.change.len(),
            decision.create.len(),
            decision.destroy.len(),
            decision.set.len(),
            decision.signal.len(),
            decision.after.len(),
            decision.cpus.len(),
            decision.modes.len(),
        ];
        if lengths.iter().any(|length| *length > NAMED_MAX) {
            return Err(format!("a decision about more than {NAMED_MAX} things"));
        }
        let longest = decision.after.iter().map(|timer| timer.ms).chain([decision.grace_ms]).max();
        if longest > Some(MS_MAX) {
            return Err(format!("a time of more than {MS_MAX} ms"));
        }
        Ok(decision)
    }

    /// Operations on the plan, those that remove something first.
    pub fn edits(&self) -> Vec<Edit> {
        let gone = self.destroy.iter().map(|name| Edit::Destroy { name: name.clone(), below: Below::All });
        let set = self.set.iter().map(|set| Edit::Set {
            name: set.name.clone(),
            under: None,
            keys: keys(&set.keys),
            who: Vec::new(),
        });
        let create = self.create.iter().map(|new| Edit::Create {
            name: new.name.clone(),
            policy: Some(new.policy.clone()),
            under: new.under.clone(),
            keys: keys(&new.keys),
            who: new.who.iter().map(keys).collect(),
            cpus: None,
        });
        gone.chain(set).chain(create).collect()
    }

    /// In words, for a dry run.
    pub fn said(&self) -> String {
        let mut words = Vec::new();
        self.refuse.iter().for_each(|why| words.push(format!("refuses: {why}")));
        self.defer.iter().for_each(|why| words.push(format!("defers: {why}")));
        if self.grant {
            words.push("grants".into());
        }
        let list = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        if !self.revoke.is_empty() {
            words.push(format!("revokes {}", list(&self.revoke)));
        }
        self.change.iter().for_each(|to| words.push(format!("changes {} to mode {}", to.id, to.mode)));
        self.most_ppm.iter().for_each(|most| words.push(format!("allows {most} ppm of a CPU")));
        self.under.iter().for_each(|node| words.push(format!("below {node}")));
        if !self.cpus.is_empty() {
            let cpus: Vec<_> = self.cpus.iter().map(|cpu| u64::from(*cpu)).collect();
            words.push(format!("on CPU {}, in this order", list(&cpus)));
        }
        self.soft.iter().for_each(|node| words.push(format!("beyond its budget also below {node}")));
        self.create.iter().for_each(|new| words.push(format!("creates {}", new.name)));
        self.set.iter().for_each(|set| words.push(format!("sets {}", set.name)));
        self.destroy.iter().for_each(|name| words.push(format!("destroys {name}")));
        self.signal.iter().for_each(|event| words.push(format!("signals {event}")));
        self.say.iter().for_each(|text| words.push(text.clone()));
        if words.is_empty() {
            words.push("has no objection".into());
        }
        words.join("; ")
    }

    /// What is refused, under the rule's name.
    pub fn refusal(&self, rule: &str) -> Option<Wrong> {
        let why = self.refuse.as_ref()?;
        Some(Wrong::new(rule.replace('-', "_"), why.clone()))
    }
}

/// Keys of a plan; numbers and truth values as a plan has them.
pub fn keys(map: &Map<String, Value>) -> Keys {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    map.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_decision_is_some_of_its_keys() {
        assert_eq!(Decision::of(Value::Null).unwrap(), Decision::default());
        let decision = Decision::of(json!({ "revoke": [1, 2], "reason": "more important", "grace_ms": 10 }));
        assert_eq!(decision.unwrap().said(), "revokes 1, 2");
        let created = json!({ "create": [{ "name": "a", "policy": "fair", "under": "rest",
            "keys": { "weight": 100 }, "who": [{ "uid": 1000 }] }], "destroy": ["b"] });
        let edits = Decision::of(created).unwrap().edits();
        assert_eq!(edits[0], Edit::Destroy { name: "b".into(), below: Below::All });
        let Edit::Create { keys, who, .. } = &edits[1] else { panic!("{edits:?}") };
        assert_eq!((&keys[0].1[..], &who[0][0].1[..]), ("100", "1000"));
        for (value, why) in [
            (json!({ "refused": "x" }), "unknown field"),
            (json!({ "revoke": [-1] }), "no decision"),
            (json!([]), "no decision"),
            (json!(true), "no decision"),
            (json!({ "grace_ms": MS_MAX + 1 }), "a time of more"),
            (json!({ "revoke": vec![1; NAMED_MAX + 1] }), "more than 256 things"),
            (json!({ "nearest": { "budget": "2ms" } }), "mode_must_be_clear"),
        ] {
            let error = Decision::of(value).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
