//! Requests as rules get to see them.

use crate::books::{Request, Target};
use crate::mode::Mode;
use crate::rules::{list, map, number, text, to_rule, Data, Record};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const US: u64 = 1_000;

/// What rules were last given of each request, by its number: most are what they were when rules are asked again.
#[derive(Default)]
pub struct Seen(RefCell<BTreeMap<u64, (Rc<Request>, Option<u32>, Record)>>);

impl Seen {
    /// A request, as rules see it.
    pub fn shown(&self, request: &Rc<Request>, person: Option<u32>) -> Record {
        let mut seen = self.0.borrow_mut();
        let known = seen.get(&request.id).filter(|(is, of, _)| *of == person && Rc::ptr_eq(is, request));
        if let Some((_, _, data)) = known {
            return data.clone();
        }
        let data = shown(request, person);
        seen.insert(request.id, (request.clone(), person, data.clone()));
        data
    }

    /// Those that are over are forgotten, once there are more of them than requests.
    pub fn forget(&self, requests: &BTreeMap<u64, Rc<Request>>) {
        let mut seen = self.0.borrow_mut();
        if seen.len() > requests.len() {
            seen.retain(|id, _| requests.contains_key(id));
        }
    }
}

/// A request, as rules see it.
fn shown(request: &Rc<Request>, person: Option<u32>) -> Record {
    let request = request.clone();
    Record::new(move |name| value(&request, person, name))
}

fn value(request: &Request, person: Option<u32>, name: &str) -> Data {
    let best = request.mode().or(request.modes.first());
    let held = request.held.as_ref();
    match name {
        "id" => number(request.id),
        "owner" => text(&request.owner),
        "user" => person.filter(|_| request.owner.user().is_some()).map_or(number(-1), number),
        "state" => text(if held.is_some() { "granted" } else { "pending" }),
        "value" => number(request.value()),
        "ppm" => number(best.map_or(0, Mode::ppm)),
        "least_ppm" => number(request.modes.iter().map(Mode::ppm).min().unwrap_or(0)),
        "period_us" => {
            let times = best.and_then(Mode::budget_and_period_ns);
            number(times.map_or(0, |(_, period)| period / US))
        }
        "modes" => list(request.modes.iter().map(mode)),
        "mode" => held.map_or(Data::UNIT, |held| number(held.mode as u64)),
        "under" => held.map_or(Data::UNIT, |held| text(&held.under)),
        "cpu" => held.and_then(|held| held.cpu).map_or(Data::UNIT, number),
        "scheduler" => (request.target == Target::Scheduler).into(),
        "ending" => request.ending.is_some().into(),
        "label" => request.label.as_ref().map_or(Data::UNIT, text),
        "about" => map(request.about.iter().map(|(key, value)| (key.as_str(), to_rule(value)))),
        _ => Data::UNIT,
    }
}

fn mode(mode: &Mode) -> Data {
    let (budget, period) = mode.budget_and_period_ns().unwrap_or_default();
    map([
        ("guarantee", text(&mode.guarantee)),
        ("value", number(mode.value)),
        ("ppm", number(mode.ppm())),
        ("budget_us", number(budget / US)),
        ("period_us", number(period / US)),
        ("deadline_us", mode.deadline_ns.map_or(Data::UNIT, |ns| number(ns / US))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::{Held, Taken};
    use crate::principal::Principal;
    use crate::rules::of_rule;
    use serde_json::{json, Value};

    #[test]
    fn what_was_seen_of_a_request_is_what_it_is_now() {
        let mut request = Rc::new(Request {
            id: 7,
            owner: Principal::User(1000),
            by: None,
            label: None,
            about: serde_json::Map::new(),
            target: Target::Scheduler,
            policy: Some("fair".into()),
            modes: vec![Mode::budget(1_000_000, 10_000_000, 1).unwrap()],
            under: None,
            waits: false,
            held: None,
            reason: None,
            ending: None,
            divided: Vec::new(),
        });
        let changes: [fn(&mut Request); 8] = [
            |_| {},
            |request| request.label = Some("a".into()),
            |request| request.modes.push(Mode::budget(2_000_000, 10_000_000, 2).unwrap()),
            |request| {
                request.held = Some(Held { under: "rt".into(), ..Held::default() });
            },
            |request| request.held.iter_mut().for_each(|held| (held.mode, held.cpu) = (1, Some(3))),
            |request| {
                let reason = String::new();
                request.ending = Some(Taken { due_ns: 1, reason, for_id: None, event: None });
            },
            |request| _ = request.about.insert("priority".into(), json!(3)),
            |request| (request.target, request.held) = (Target::Thread { tid: 5, began: 1 }, None),
        ];
        let seen = Seen::default();
        let json = |record: Record| of_rule(record.into()).unwrap();
        let mut before = Value::Null;
        for (number, change) in changes.iter().enumerate() {
            change(Rc::make_mut(&mut request));
            for person in [Some(1000), Some(1000), None] {
                let now = json(seen.shown(&request, person));
                assert_eq!(now, json(shown(&request, person)), "after change {number}");
                assert!(person.is_some() || now != before, "another person");
                before = now;
            }
        }
        assert_eq!(json(seen.shown(&request, None)), before);
        seen.forget(&BTreeMap::new());
        assert!(seen.0.borrow().is_empty());
    }
}
