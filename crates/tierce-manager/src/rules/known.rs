//! What a rule's function is given, `it`: what is known, each under its name.

use super::convert::Data;
use rhai::{Dynamic, Engine};
use std::cell::OnceCell;
use std::rc::Rc;

/// What is known when something happens. What a rule asks for is found then, once for all rules: most ask for little of it.
#[derive(Clone)]
pub struct Known(Rc<Found>);

struct Found {
    find: Box<dyn Fn(&str) -> Data>,
    found: [OnceCell<Data>; Known::FIELDS.len()],
}

impl Known {
    /// Names of all that there is.
    pub const FIELDS: [&'static str; 13] = [
        "request",
        "theirs",
        "theirs_ppm",
        "requests",
        "users",
        "cpus",
        "capacity_ppm",
        "granted_ppm",
        "cpu",
        "nodes",
        "made",
        "data",
        "now_ms",
    ];

    /// `find` finds what has the name.
    pub fn new(find: impl Fn(&str) -> Data + 'static) -> Self {
        Self(Rc::new(Found { find: Box::new(find), found: Default::default() }))
    }

    fn get(&self, at: usize) -> Data {
        self.0.found[at].get_or_init(|| (self.0.find)(Self::FIELDS[at])).clone()
    }
}

/// The same for one rule.
#[derive(Clone)]
pub(super) struct It {
    known: Known,
    event: Data,
    parameters: Data,
}

impl It {
    pub(super) fn new(known: &Known, event: Data, parameters: &Data) -> Self {
        Self { known: known.clone(), event, parameters: parameters.clone() }
    }

    /// Engines know of it from here on.
    pub(super) fn register(engine: &mut Engine) {
        engine.register_type_with_name::<It>("it");
        for (at, name) in Known::FIELDS.into_iter().enumerate() {
            engine.register_get(name, move |it: &mut It| it.known.get(at));
        }
        engine.register_get("event", |it: &mut It| it.event.clone());
        engine.register_get("parameters", |it: &mut It| it.parameters.clone());
        // As of a map: what is not there is nothing.
        engine.register_indexer_get(|it: &mut It, name: &str| match name {
            "event" => it.event.clone(),
            "parameters" => it.parameters.clone(),
            name => {
                let at = Known::FIELDS.iter().position(|field| *field == name);
                at.map_or(Dynamic::UNIT, |at| it.known.get(at))
            }
        });
    }
}
