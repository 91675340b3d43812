//! `tierce status --watch`: what is promised, and whether it is kept.

use serde_json::Value;
use tierce_plan::show_time;
use tierce_trace::promise::{Promise, Unkept};
use tierce_trace::units;

const HEADER: [&str; 10] =
    ["part", "under", "promised", "windows", "promised", "received", "least", "not kept", "throttled", "why"];
/// Columns of text: to the left.
const TEXTS: [usize; 3] = [0, 1, 9];

/// A line for each promise, of the answer to the request `status`.
pub fn table(status: &Value) -> String {
    let mut rows = vec![HEADER.map(String::from)];
    rows.extend(status["promises"].as_array().into_iter().flatten().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; HEADER.len()] = std::array::from_fn(width);
    let mut text = String::new();
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

fn row(edge: &Value) -> [String; HEADER.len()] {
    let name = edge["name"].as_str().unwrap_or("?");
    let name = edge["tid"].as_u64().map_or(name.into(), |tid| format!("{name} ({tid})"));
    let (budget_ns, period_ns) = (edge["budget_ns"].as_u64(), edge["period_ns"].as_u64());
    let each = budget_ns
        .zip(period_ns)
        .map(|(budget, period)| format!("{} in {}", show_time(budget), show_time(period)));
    let promise: Option<Promise> = serde_json::from_value(edge["promise"].clone()).ok().flatten();
    let of = |text: fn(&Promise) -> String| promise.as_ref().map_or("-".into(), text);
    [
        name,
        edge["parent"].as_str().unwrap_or("?").into(),
        each.unwrap_or("-".into()),
        of(|it| it.windows.to_string()),
        of(|it| units::time(it.promised_ns)),
        of(|it| units::time(it.received_ns)),
        of(|it| it.least_ns.map_or("-".into(), units::time)),
        of(|it| it.not_kept.to_string()),
        edge["throttles"].to_string(),
        of(|it| it.why.map_or("", Unkept::name).into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_for_each_promise() {
        let promise = json!({ "windows": 4, "promised_ns": 8_000_000, "received_ns": 7_000_000,
            "least_ns": 1_000_000, "not_kept": 1, "missing_ns": 1_000_000, "why": "stolen" });
        let edge = |name: &str, tid: Value, promise: Value| {
            json!({ "name": name, "tid": tid, "parent": "rt", "budget_ns": 2_000_000, "period_ns": 10_000_000,
                "supply_ns": 9_000_000, "throttles": 3, "promise": promise })
        };
        let status = json!({ "promises": [edge("audio", json!(811), promise), edge("video", Value::Null, Value::Null)] });
        let expected = "\
part         under     promised  windows  promised  received  least  not kept  throttled  why
audio (811)  rt     2ms in 10ms        4      8 ms      7 ms   1 ms         1          3  stolen
video        rt     2ms in 10ms        -         -         -      -         -          3  -
";
        assert_eq!(table(&status), expected);
        assert_eq!(table(&json!({})).lines().count(), 1);
    }
}
