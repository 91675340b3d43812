//! Answers and notices, for people.

use crate::ask::{Answer, Notice, Shown, State};
use crate::wrong::Wrong;
use serde_json::Value;

/// An answer, for people.
pub fn words(answer: &Answer) -> String {
    let mut lines = Vec::new();
    let would = if answer.dry_run { "would be " } else { "" };
    for said in &answer.rules {
        lines.push(format!("rule {}: {}", said.rule, said.said));
    }
    match (answer.state, &answer.about) {
        (State::Granted | State::Pending, Some(about)) => lines.push(format!("{would}{}", one(about))),
        (State::Refused, _) => {
            let why = answer.reason.as_ref().map(Wrong::to_string).unwrap_or_default();
            lines.push(format!("{would}refused: {why}"));
        }
        (State::Ended, Some(about)) => lines.push(format!("request {} has ended", about.id)),
        _ => {}
    }
    answer.nearest.iter().for_each(|mode| lines.push(format!("{mode} would be granted")));
    answer.changes.iter().for_each(|change| lines.push(format!("  {change}")));
    lines.extend(answer.requests.iter().map(one));
    lines.extend(answer.news.iter().map(told));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn one(about: &Shown) -> String {
    let for_whom = match (about.thread, &about.matches[..]) {
        (Some(tid), _) => format!("thread {tid}"),
        (None, [_, ..]) => format!(
            "match {}",
            Value::from(about.matches.clone().into_iter().map(Value::Object).collect::<Vec<_>>())
        ),
        (None, []) => "a scheduler".to_string(),
    };
    let label = about.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    let has = match (&about.granted, &about.reason) {
        (Some(granted), _) => {
            let cpu = granted.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
            format!("granted: {} as {} below {}{cpu}", granted.mode, granted.name, granted.under)
        }
        (None, Some(why)) => format!("pending: {why}"),
        (None, None) => "pending".into(),
    };
    let ends =
        about.ending.as_ref().map(|ending| format!(", and ends: {}", ending.reason)).unwrap_or_default();
    format!("request {}{label} of {} for {for_whom}: {has}{ends}", about.id, about.owner)
}

/// A notice, for people.
pub fn told(notice: &Notice) -> String {
    let what = serde_json::to_value(notice.what).ok().and_then(|what| what.as_str().map(str::to_string));
    let what = what.unwrap_or_default().replace('_', " ");
    let id = notice.id.map(|id| format!("request {id} ")).unwrap_or_default();
    let within = notice.within_ms.map(|ms| format!(" (in {ms} ms)")).unwrap_or_default();
    format!("{id}{what}{within}: {}", notice.text)
}
