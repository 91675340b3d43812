//! What the loader and the manager report: an entry with fields where standard error is the system's journal (systemd-journald(8)), a line
//! on standard error elsewhere. The names of events and fields are documented in docs/metrics.md.

use log::kv::{Key, Value};
use log::Record;
use std::sync::OnceLock;
use systemd_journal_logger::{connected_to_journal, JournalLog};

pub use log::Level;

/// The journal, where standard error is connected to it.
fn journal() -> Option<&'static JournalLog> {
    static JOURNAL: OnceLock<Option<JournalLog>> = OnceLock::new();
    let open = || connected_to_journal().then(|| JournalLog::new().ok()).flatten();
    JOURNAL.get_or_init(open).as_ref()
}

/// Standard error is the journal.
pub fn is_connected() -> bool {
    journal().is_some()
}

/// Report an event. Fields are named as the labels and names of metrics are, without `tierce_`.
pub fn report(level: Level, event: &str, message: &str, fields: &[(&str, Value<'_>)]) {
    let sent = journal().is_some_and(|journal| send(journal, level, event, message, fields).is_ok());
    if !sent {
        eprintln!("tierce: {message}");
    }
}

/// Several events of one kind, in one write where they are lines.
pub fn report_all(level: Level, event: &str, messages: &[String]) {
    if is_connected() {
        return messages.iter().for_each(|message| report(level, event, message, &[]));
    }
    let lines: String = messages.iter().map(|message| format!("tierce: {message}\n")).collect();
    eprint!("{lines}");
}

fn send(
    journal: &JournalLog,
    level: Level,
    event: &str,
    message: &str,
    fields: &[(&str, Value<'_>)],
) -> std::io::Result<()> {
    let event = ("event", Value::from(event));
    let named: Vec<_> =
        [event].iter().chain(fields).map(|(name, value)| (format!("tierce_{name}"), value.clone())).collect();
    let pairs: Vec<_> = named.iter().map(|(name, value)| (Key::from(name.as_str()), value.clone())).collect();
    let mut record = Record::builder();
    let record = record.level(level).target("tierce").key_values(&pairs);
    journal.journal_send(&record.args(format_args!("{message}")).build())
}
