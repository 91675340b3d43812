//! What a person at the terminal sees while a kernel object is loaded and another takes over.

use serde_json::{json, Value};
use std::io::IsTerminal;
use std::time::Duration;
use tierce_scx::reload::{Reloaded, Step};
use tierce_scx::socket;
use tierce_trace::units;

/// One line, which the next one replaces; nothing if standard error is no terminal.
pub struct Progress {
    watched: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new() -> Progress {
        Progress { watched: std::io::stderr().is_terminal() }
    }

    /// The kernel verifies this program.
    pub fn verifies(&self, program: &str) {
        if self.watched {
            eprint!("\r\x1b[Ktierce: the kernel verifies {program}");
        }
    }

    /// A second object is loaded, and takes over.
    pub fn step(&self, step: Step) {
        match step {
            Step::Verifies(program) => self.verifies(program),
            Step::Detached => {} // whoever writes now makes the gap longer
            Step::Returns => eprintln!(
                "tierce: the second kernel object cannot take over; the first one is attached again"
            ),
        }
    }

    /// That is over.
    pub fn end(&self) {
        if self.watched {
            eprint!("\r\x1b[K");
        }
    }
}

/// How long an answer is waited for.
pub fn patience(reload: bool) -> Duration {
    if reload {
        socket::PATIENCE_RELOAD
    } else {
        socket::PATIENCE
    }
}

/// What taking over took, in words.
pub fn reloaded(it: &Reloaded) -> String {
    let time = |time: Duration| units::time(time.as_nanos() as u64);
    format!(
        "another kernel object has taken over (loaded in {}); the machine was on its default scheduler for {}, which counts as stolen",
        time(it.loaded.took),
        time(it.gap)
    )
}

/// What the run in force says of it.
pub fn print(answer: &Value) {
    let not_proved = answer["not_proved"].as_array().into_iter().flatten().filter_map(Value::as_str);
    not_proved.for_each(|fault| println!("warning: {fault}"));
    if let Some(text) = answer["reloaded"]["text"].as_str() {
        println!("{text}");
    } else if answer["needs_reload"] == true {
        println!("another kernel object would take over");
    }
}

/// The same for programs.
pub fn to_json(it: &Reloaded) -> Value {
    let ns = |time: Duration| time.as_nanos() as u64;
    json!({
        "begun_ns": it.begun_ns,
        "gap_ns": ns(it.gap),
        "detaching_ns": ns(it.detaching),
        "carrying_ns": ns(it.carrying),
        "attaching_ns": ns(it.attaching),
        "loaded_in_ns": ns(it.loaded.took),
        "verified_instructions": it.loaded.verified_instructions,
        "text": reloaded(it),
    })
}
