//! `tierce status --watch`: what is promised, and whether it is kept, since the plan is in force and since the table before.

use serde_json::{json, Value};
use tierce_plan::show_time;
use tierce_trace::promise::{Promise, Unkept};
use tierce_trace::units;

/// A row: what it is about, numbers since the plan is in force, numbers since the table before, why the last promise was not kept.
type Row = [String; HEADER.len()];

const HEADER: [&str; 17] = [
    "part",
    "under",
    "budget", // of the part
    "windows",
    "promised",
    "received",
    "least",
    "not kept",
    "misses",
    "throttles", // since the plan is in force
    "windows",
    "promised",
    "received",
    "not kept",
    "misses",
    "throttles", // since the table before
    "why",
];
/// Columns of text: to the left.
const TEXTS: [usize; 3] = [0, 1, 16];
/// Where the groups of columns begin, and what stands above them.
const GROUPS: [(usize, &str); 2] = [(3, "since the plan is in force"), (10, "since the table before")];

/// Adds to each row of `promises` what has come since those `before`: `last`, null where the row is new.
pub fn add_last(before: &Value, promises: &mut Value) {
    let key = |row: &Value| ["name", "tid", "parent"].map(|key| row[key].clone());
    let before: Vec<&Value> = before.as_array().into_iter().flatten().collect();
    for row in promises.as_array_mut().into_iter().flatten() {
        let same = before.iter().find(|before| key(before) == key(row));
        row["last"] = same.map_or(Value::Null, |before| since(before, row));
    }
}

fn promise(row: &Value) -> Option<Promise> {
    serde_json::from_value(row["promise"].clone()).ok().flatten()
}

fn since(before: &Value, row: &Value) -> Value {
    let grown = |key: &str| Some(row[key].as_u64()?.saturating_sub(before[key].as_u64().unwrap_or(0)));
    let promise = promise(row).map(|now| now.since(promise(before)));
    let of = |number: fn(&Promise) -> u64| promise.as_ref().map(number);
    json!({
        "windows": of(|it| it.windows),
        "promised_ns": of(|it| it.promised_ns),
        "received_ns": of(|it| it.received_ns),
        "not_kept": of(|it| it.not_kept),
        "missing_ns": of(|it| it.missing_ns),
        "misses": grown("misses"),
        "throttles": grown("throttles"),
        "supply_ns": grown("supply_ns"),
    })
}

/// A line for each promise, of the answer to the request `status`.
pub fn table(status: &Value) -> String {
    let mut rows = vec![HEADER.map(String::from)];
    rows.extend(status["promises"].as_array().into_iter().flatten().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; HEADER.len()] = std::array::from_fn(width);
    let mut text = groups(&widths);
    for row in &rows {
        let cells =
            row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match TEXTS.contains(&column) {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// The line above the header: what each group of columns is about, over its first column.
fn groups(widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, name) in GROUPS {
        let at: usize = widths[..column].iter().map(|width| width + 2).sum();
        line += &" ".repeat(at.saturating_sub(line.chars().count()));
        line += name;
    }
    line + "\n"
}

fn row(edge: &Value) -> Row {
    let name = edge["name"].as_str().unwrap_or("?");
    let name = edge["tid"].as_u64().map_or(name.into(), |tid| format!("{name} ({tid})"));
    let (budget_ns, period_ns) = (edge["budget_ns"].as_u64(), edge["period_ns"].as_u64());
    let each = budget_ns
        .zip(period_ns)
        .map(|(budget, period)| format!("{} in {}", show_time(budget), show_time(period)));
    let promise = promise(edge);
    let of = |text: fn(&Promise) -> String| promise.as_ref().map_or("-".into(), text);
    let last = &edge["last"];
    let count = |of: &Value, key: &str| of[key].as_u64().map_or("-".into(), |count| count.to_string());
    let time = |key: &str| last[key].as_u64().map_or("-".into(), units::time);
    [
        name,
        edge["parent"].as_str().unwrap_or("?").into(),
        each.unwrap_or("-".into()),
        of(|it| it.windows.to_string()),
        of(|it| units::time(it.promised_ns)),
        of(|it| units::time(it.received_ns)),
        of(|it| it.least_ns.map_or("-".into(), units::time)),
        of(|it| it.not_kept.to_string()),
        count(edge, "misses"),
        count(edge, "throttles"),
        count(last, "windows"),
        time("promised_ns"),
        time("received_ns"),
        count(last, "not_kept"),
        count(last, "misses"),
        count(last, "throttles"),
        promise.and_then(|it| it.why).map_or("", Unkept::name).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audio(windows: u64, not_kept: u64, misses: u64, throttles: u64) -> Value {
        let promise = json!({ "windows": windows, "promised_ns": windows * 2_000_000, "received_ns": windows * 2_000_000 - not_kept * 1_000_000,
            "least_ns": 1_000_000, "not_kept": not_kept, "missing_ns": not_kept * 1_000_000, "why": "stolen" });
        json!({ "name": "audio", "tid": 811, "parent": "rt", "budget_ns": 2_000_000, "period_ns": 10_000_000,
            "supply_ns": 9_000_000, "throttles": throttles, "misses": misses, "promise": promise })
    }

    fn video() -> Value {
        json!({ "name": "video", "tid": null, "parent": "rt", "budget_ns": 2_000_000, "period_ns": 10_000_000,
            "supply_ns": 9_000_000, "throttles": 3, "misses": null, "promise": null })
    }

    #[test]
    fn a_line_for_each_promise() {
        let before = json!([audio(4, 1, 2, 3), video()]);
        let mut status = json!({ "promises": [audio(104, 1, 5, 103), video()] });
        add_last(&before, &mut status["promises"]);
        let expected = "                                 since the plan is in force                                       since the table before
part         under       budget  windows  promised  received  least  not kept  misses  throttles  windows  promised  received  not kept  misses  throttles  why
audio (811)  rt     2ms in 10ms      104    208 ms    207 ms   1 ms         1       5        103      100    200 ms    200 ms         0       3        100  stolen
video        rt     2ms in 10ms        -         -         -      -         -       -          3        -         -         -         -       -          0
";
        assert_eq!(table(&status), expected);
        assert_eq!(table(&json!({})).lines().count(), 2);
    }

    #[test]
    fn what_has_come_since_the_table_before() {
        let mut promises = json!([audio(104, 2, 5, 103), video()]);
        add_last(&Value::Null, &mut promises);
        assert_eq!([&promises[0]["last"], &promises[1]["last"]], [&Value::Null; 2]);
        add_last(&json!([audio(4, 1, 2, 3), video()]), &mut promises);
        assert_eq!(
            promises[0]["last"],
            json!({ "windows": 100, "promised_ns": 200_000_000, "received_ns": 199_000_000, "not_kept": 1,
                "missing_ns": 1_000_000, "misses": 3, "throttles": 100, "supply_ns": 0 })
        );
        assert_eq!(promises[1]["last"]["windows"], Value::Null);
        assert_eq!(promises[1]["last"]["throttles"], 0);
        // Another thread has the place: its counts are its own.
        let mut other = audio(5, 0, 1, 4);
        other["tid"] = json!(812);
        let mut promises = json!([other]);
        add_last(&json!([audio(4, 1, 2, 3)]), &mut promises);
        assert_eq!(promises[0]["last"], Value::Null);
    }
}
