//! Answers and notices, for people.

use crate::ask::{Answer, Notice, Part, Received, Shown, State};
use crate::wrong::Wrong;
use serde_json::Value;

/// A text of somebody's, in a line for people: no control character, which could move what a terminal shows.
pub fn plain(text: &str) -> String {
    match text.contains(char::is_control) {
        true => text
            .chars()
            .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() })
            .collect(),
        false => text.into(),
    }
}

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
        (State::Done, Some(about)) if answer.dry_run => {
            lines.push(format!("request {} can be divided so; nothing was changed", about.id));
        }
        (State::Done, Some(about)) => lines.push(one(about)),
        (State::Ended, Some(about)) => lines.push(format!("request {} has ended", about.id)),
        _ => {}
    }
    answer.nearest.iter().for_each(|mode| lines.push(format!("{mode} would be granted")));
    answer.changes.iter().for_each(|change| lines.push(format!("  {change}")));
    lines.extend(answer.requests.iter().map(one));
    lines.extend(answer.news.iter().map(told));
    // Parts have lines of their own.
    lines.iter().flat_map(|line| line.split('\n')).map(|line| plain(line) + "\n").collect()
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
    let mut text = format!("request {}{label} of {} for {for_whom}: {has}{ends}", about.id, about.owner);
    below(about, "", 1, &mut text);
    text
}

/// The parts below this one of a scheduler, a line each.
fn below(about: &Shown, under: &str, depth: usize, text: &mut String) {
    // Whatever an answer says: nothing is deeper than there are parts.
    for part in about.divided.iter().filter(|part| part.under == under && depth <= about.divided.len()) {
        let name = &part.name;
        *text += &format!("\n{}{name}: {}", "  ".repeat(depth), about_part(part));
        below(about, name, depth + 1, text);
    }
}

fn about_part(part: &Part) -> String {
    let mut what: Vec<String> = part.policy.iter().cloned().collect();
    what.extend(part.params.iter().map(|(key, value)| format!("{key} {value}")));
    if !part.cpus.is_empty() {
        let cpus: Vec<String> = part.cpus.iter().map(u32::to_string).collect();
        what.push(format!("CPU {}", cpus.join(" ")));
    }
    if let Some(Received { cpu_ns, threads, windows, not_kept }) = part.received {
        if part.policy.is_none() {
            what.push(format!("{threads} thread{}", if threads == 1 { "" } else { "s" }));
        }
        what.push(format!("received {} ms", cpu_ns / 1_000_000));
        if windows > 0 {
            what.push(format!("promise kept in {} of {windows} periods", windows.saturating_sub(not_kept)));
        }
    }
    what.join(", ")
}

/// A notice, for people.
pub fn told(notice: &Notice) -> String {
    let what = serde_json::to_value(notice.what).ok().and_then(|what| what.as_str().map(str::to_string));
    let what = what.unwrap_or_default().replace('_', " ");
    let id = notice.id.map(|id| format!("request {id} ")).unwrap_or_default();
    let within = notice.within_ms.map(|ms| format!(" (in {ms} ms)")).unwrap_or_default();
    format!("{id}{what}{within}: {}", plain(&notice.text))
}
