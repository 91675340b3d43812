//! Loads from rt-app's JSON files: what a thread of such a file does, as phases.
//!
//! Understood: `run` and `runtime` (CPU time), `sleep`, `timer` with `ref`, `period` and `mode`, `phases` with `loop`,
//! `loop` and `delay` of the thread; times there are whole microseconds. rt-app measures `runtime` by the clock on the
//! wall, here it is CPU time like `run`: the same unless the thread is preempted. Scheduling attributes (policy, priority,
//! cpus, …) are ignored: the plan decides those. Events in which threads wait for each other, memory and I/O loads
//! are refused by name.

use crate::model::{Phase, Work};
use crate::text::tree::listed;
use serde_json::{Map, Value};

/// Steps a thread may unfold into.
const STEPS_MAX: usize = 100_000;

/// Keys of threads and phases that are not events.
const ATTRIBUTES: [&str; 18] = [
    "instance",
    "delay",
    "loop",
    "phases",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "period",
    "deadline",
    "cpus",
    "util_min",
    "util_max",
    "nodes_membind",
    "membind_nodes",
    "taskgroup",
    "comment",
];

/// Phases, passes (0: for ever) and delay of `thread`, or of the only one there is.
pub fn phases(json: &str, thread: Option<&str>) -> Result<(Vec<Phase>, u64, u64), String> {
    let file: Value =
        serde_json::from_str(&without_comments(json)).map_err(|error| format!("no JSON: {error}"))?;
    let threads = file.get("tasks").and_then(Value::as_object).ok_or("it has no `tasks` object")?;
    let names: Vec<_> = threads.keys().collect();
    let name = match (thread, &names[..]) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, _) => return Err(format!("say which with `thread`: it has {}", listed(&names))),
    };
    let missing = || format!("it has no thread `{name}`; it has {}", listed(&names));
    let thread = threads.get(name).ok_or_else(missing)?;
    let thread = thread.as_object().ok_or_else(|| format!("thread `{name}` is no object"))?;
    let (mut steps, mut timers) = (Vec::new(), Vec::new());
    match thread.get("phases").map(|phases| phases.as_object().ok_or("`phases` is no object")) {
        None => events(thread, &mut steps, &mut timers)?,
        Some(phases) => {
            for (number, (name, phase)) in phases?.iter().enumerate() {
                let phase = phase.as_object().ok_or_else(|| format!("phase `{name}` is no object"))?;
                let mut pass = Vec::new();
                events(phase, &mut pass, &mut timers)?;
                match whole(phase, "loop")? {
                    None => steps.extend(pass),
                    Some(-1) if number == 0 => return Ok((some(pass)?, 0, delay(thread)?)),
                    Some(-1) => return Err(format!("phase `{name}` repeats for ever, but is not the first")),
                    Some(passes) => {
                        let passes = usize::try_from(passes).unwrap_or(0);
                        if pass.len().saturating_mul(passes).saturating_add(steps.len()) > STEPS_MAX {
                            return Err(format!("it unfolds into more than {STEPS_MAX} steps"));
                        }
                        for _ in 0..passes {
                            steps.extend(pass.iter().cloned());
                        }
                    }
                }
            }
        }
    }
    let passes = match whole(thread, "loop")? {
        None | Some(-1) => 0,
        Some(passes) => u64::try_from(passes).ok().filter(|n| *n > 0).ok_or("`loop` is -1 or at least 1")?,
    };
    Ok((some(steps)?, passes, delay(thread)?))
}

fn some(steps: Vec<Phase>) -> Result<Vec<Phase>, String> {
    if steps.is_empty() {
        return Err("the thread does nothing that takes time".into());
    }
    Ok(steps)
}

fn delay(thread: &Map<String, Value>) -> Result<u64, String> {
    whole(thread, "delay")?.map_or(Ok(0), microseconds)
}

fn whole(object: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match object.get(name) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| format!("`{name}` is not a whole number")),
    }
}

fn microseconds(number: i64) -> Result<u64, String> {
    let ns = u64::try_from(number).ok().and_then(|us| us.checked_mul(1_000));
    ns.filter(|ns| *ns <= tierce_guarantee::TIME_MAX_NS)
        .ok_or_else(|| format!("{number} us is not a possible time"))
}

/// The events of a thread or phase, in order. Names may carry a suffix (`run0`), as rt-app allows.
fn events(
    object: &Map<String, Value>,
    steps: &mut Vec<Phase>,
    timers: &mut Vec<String>,
) -> Result<(), String> {
    for (name, value) in object.iter().filter(|(name, _)| !ATTRIBUTES.contains(&name.as_str())) {
        let time = |value: &Value| {
            let number = value.as_i64().ok_or_else(|| format!("`{name}` is not a whole number of us"))?;
            microseconds(number).map_err(|why| format!("`{name}`: {why}"))
        };
        if name.starts_with("run") {
            push(steps, |work| Phase::Run { work, within_ns: None }, time(value)?);
        } else if name.starts_with("sleep") {
            push(steps, Phase::Sleep, time(value)?);
        } else if name.starts_with("timer") {
            let period_ns = time(value.get("period").unwrap_or(&Value::Null))?;
            let absolute = match value.get("mode").map(|mode| mode.as_str().unwrap_or("?")) {
                None | Some("relative") => false,
                Some("absolute") => true,
                Some(mode) => return Err(format!("`{name}` has the unknown mode `{mode}`")),
            };
            let timer = timer_id(timers, value.get("ref").and_then(Value::as_str).unwrap_or(name));
            if period_ns > 0 {
                steps.push(Phase::Timer { timer, period_ns, absolute });
            }
        } else {
            return Err(format!("the event `{name}` is not understood; run, runtime, sleep and timer are"));
        }
    }
    Ok(())
}

fn push(steps: &mut Vec<Phase>, make: fn(Work) -> Phase, ns: u64) {
    if ns > 0 {
        steps.push(make(Work::Constant(ns)));
    }
}

/// rt-app's reader allows C comments; blank them.
fn without_comments(json: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find(['"', '/']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("/*") {
            out.push(' ');
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with('"') {
            let end = string_end(rest);
            out.push_str(&rest[..end]);
            end
        } else {
            out.push('/');
            1
        };
        rest = &rest[length..];
    }
    out + rest
}

/// Bytes of the string literal at the start of `text`.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Number of the timer of that name.
pub fn timer_id(timers: &mut Vec<String>, name: &str) -> u32 {
    let at = timers.iter().position(|known| known == name).unwrap_or_else(|| {
        timers.push(name.to_string());
        timers.len() - 1
    });
    at as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_becomes_phases() {
        let json = r#"{ /* a "comment" */ "tasks": { "audio": { "delay": 5, "loop": 7, "cpus": [0], // one
            "phases": {
                "light": { "loop": 2, "run": 1000, "timer": { "ref": "unique", "period": 10000 } },
                "rest": { "sleep0": 3, "run1": 0, "runtime": 4, "timer": { "ref": "b", "period": 9, "mode": "absolute" } }
        } } } }"#;
        let light = [
            Phase::Run { work: Work::Constant(1_000_000), within_ns: None },
            Phase::Timer { timer: 0, period_ns: 10_000_000, absolute: false },
        ];
        let rest = [
            Phase::Sleep(Work::Constant(3_000)),
            Phase::Run { work: Work::Constant(4_000), within_ns: None },
            Phase::Timer { timer: 1, period_ns: 9_000, absolute: true },
        ];
        let steps: Vec<_> = light.iter().chain(&light).chain(&rest).cloned().collect();
        assert_eq!(phases(json, Some("audio")), Ok((steps.clone(), 7, 5_000)));
        assert_eq!(phases(json, None), Ok((steps, 7, 5_000)));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (json, words) in [
            ("{", "no JSON"),
            ("{}", "no `tasks`"),
            (r#"{"tasks":{"a":{"run":1},"b":{"run":1}}}"#, "`a`, `b`"),
            (r#"{"tasks":{"a":{"lock":"m"}}}"#, "`lock`"),
            (r#"{"tasks":{"a":{"run":"x"}}}"#, "`run`"),
            (r#"{"tasks":{"a":{"run":-1}}}"#, "-1 us"),
            (r#"{"tasks":{"a":{"run":0}}}"#, "nothing"),
            (r#"{"tasks":{"a":{"phases":{"p":{"loop":99999999,"run":1}}}}}"#, "100000 steps"),
            (r#"{"tasks":{"a":{"timer":{"ref":"x"}}}}"#, "`timer`"),
            (r#"{"tasks":{}}"#, "say which"),
        ] {
            let error = phases(json, None).unwrap_err();
            assert!(error.contains(words), "{json}: {error}");
        }
    }
}
