//! What was measured, as rows, tables and JSON.

use super::{Measure, Quantity, Series};
use crate::header::Source;
use crate::histogram::Histogram;
use crate::units::time;
use serde_json::{json, Value};
use std::fmt::Write as _;

/// One number of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worst<'a> {
    /// Its plan and its name.
    pub task: (&'a str, &'a str),
    /// Its largest value (ns).
    pub max_ns: u64,
    /// Its average (ns), rounded down.
    pub avg_ns: u64,
}

/// A line of the tables: of all tasks the one with the largest maximum, and the one with the smallest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// Of what.
    pub quantity: Quantity,
    /// MAXmax and AVGM, then MINmax and AVGm; none without a value.
    pub worst: Option<(Worst<'a>, Worst<'a>)>,
    /// All values of all tasks.
    pub all: Histogram,
}

/// Over all tasks of all these measurements.
pub fn rows(of: &[Measure]) -> Vec<Row<'_>> {
    let row = |quantity: Quantity| {
        let (mut worst, mut all): (Option<(Worst, Worst)>, _) = (None, Histogram::default());
        for (plan, name, series) in
            of.iter().flat_map(|one| one.tasks().map(|(name, series)| (&one.plan, name, series)))
        {
            let series = &series[quantity as usize];
            let Some(avg_ns) = series.summary().avg() else { continue };
            let this = Worst { task: (plan, name), max_ns: series.summary().max, avg_ns };
            all.merge(series);
            worst = Some(worst.map_or((this, this), |(most, least)| {
                let most = if this.max_ns > most.max_ns { this } else { most };
                (most, if this.max_ns < least.max_ns { this } else { least })
            }));
        }
        Row { quantity, worst, all }
    };
    Quantity::ALL.into_iter().map(row).collect()
}

/// What these measurements cannot say, and why: sentences.
pub fn remarks(of: &[Measure]) -> Vec<String> {
    let live = |one: &Measure| one.source == Source::Run;
    let mut list = Vec::new();
    let mut say = |holds: bool, text: &str| {
        if holds && !of.is_empty() {
            list.push(text.to_string());
        }
    };
    say(true, "tick: a tick is an interrupt like the others here, its part of IntO is not known");
    say(
        of.iter().any(live),
        "RelO: on a machine, releases happen in interrupts; their part of IntO is not known",
    );
    say(
        of.iter().any(|one| live(one) && one.epoch_ns.is_none()),
        "RelJ: when jobs should be released is not in a measured trace: --epoch TIME says it for periodic tasks",
    );
    say(
        of.iter().any(|one| live(one) && !one.tells_starts),
        "ResJ and CtswJ end with the decision: the trace does not tell when threads came in",
    );
    let lost: u64 = of.iter().map(|one| one.lost).sum();
    say(lost > 0, &format!("{lost} records were lost: what they would have said is missing"));
    list
}

/// Tables for people, ending with a newline.
pub fn tables(of: &[Measure], tasks: bool) -> String {
    let mut text = String::new();
    let line = |text: &mut String, cells: [String; 6]| {
        let [name, rest @ ..] = cells;
        let _ = write!(text, "{name:<8}");
        rest.iter().for_each(|cell| {
            let _ = write!(text, "{cell:>12}");
        });
        text.push('\n');
    };
    line(&mut text, ["", "MAXmax", "AVGM", "MINmax", "AVGm", "values"].map(String::from));
    let dashes = || std::array::from_fn::<_, 5, _>(|_| "-".to_string());
    for row in rows(of) {
        let cells = row.worst.map_or(dashes(), |(most, least)| {
            let [a, b, c, d] = [most.max_ns, most.avg_ns, least.max_ns, least.avg_ns].map(time);
            [a, b, c, d, row.all.summary().count.to_string()]
        });
        let [a, b, c, d, e] = cells;
        line(&mut text, [row.quantity.name().into(), a, b, c, d, e]);
        if row.quantity == Quantity::IntO {
            let [a, b, c, d, e] = dashes();
            line(&mut text, ["  tick".into(), a, b, c, d, e]);
        }
    }
    if tasks {
        for one in of {
            let _ = writeln!(text, "\n{}", one.plan);
            for (name, series) in one.tasks() {
                let _ = writeln!(text, "  {name}");
                for (quantity, series) in Quantity::ALL.iter().zip(series) {
                    let summary = series.summary();
                    if let (Some(avg_ns), Some(p99_ns)) = (summary.avg(), series.percentile(99)) {
                        let [min, avg, p99, max] = [summary.min, avg_ns, p99_ns, summary.max].map(time);
                        let _ = writeln!(
                            text,
                            "    {:<6} min {min:>10} avg {avg:>10} p99 {p99:>10} max {max:>10}  {} values",
                            quantity.name(),
                            summary.count
                        );
                    }
                }
            }
        }
    }
    for remark in remarks(of) {
        let _ = writeln!(text, "{remark}");
    }
    text
}

/// The same for programs, with histograms.
pub fn to_json(of: &[Measure]) -> Value {
    let worst = |worst: &Worst| json!({ "plan": worst.task.0, "task": worst.task.1, "max_ns": worst.max_ns, "avg_ns": worst.avg_ns });
    let numbers = |series: &Histogram| -> Value {
        let summary = series.summary();
        let Some(avg_ns) = summary.avg() else { return Value::Null };
        json!({ "count": summary.count, "min_ns": summary.min, "avg_ns": avg_ns,
            "p99_ns": series.percentile(99), "max_ns": summary.max })
    };
    let row = |row: Row| {
        let (most, least) = row.worst.as_ref().map(|(most, least)| (worst(most), worst(least))).unzip();
        let histogram: Vec<_> = row.all.buckets().map(|(from, to, count)| json!([from, to, count])).collect();
        json!({ "quantity": row.quantity.name(), "meaning": row.quantity.meaning(), "most": most, "least": least,
            "all": numbers(&row.all), "histogram": histogram })
    };
    let task = |one: &Measure, (name, series): (&str, &Series)| {
        let mut task = json!({ "plan": one.plan, "task": name });
        for (quantity, series) in Quantity::ALL.iter().zip(series) {
            task[quantity.name()] = numbers(series);
        }
        task
    };
    let tasks: Vec<_> = of.iter().flat_map(|one| one.tasks().map(|named| task(one, named))).collect();
    json!({ "version": 1, "rows": rows(of).into_iter().map(row).collect::<Vec<_>>(), "tasks": tasks,
        "remarks": remarks(of) })
}
