//! Tables of tasks: `csv = "set.csv"`.
//!
//! The first line names the columns: `load.KEY` (`load.period`, `load.work`, …) and `under.PARENT.KEY`
//! (`under.rt.budget`). Every further line is a member: the set's `load` and `under` with these values. Cells are
//! written as in the plan, without quotes: times with a unit, whole numbers. Empty lines and lines that begin with `#`
//! are skipped, an empty cell leaves the set's value.

use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::tree::{Collector, Key, Kind, Table, Value};

/// Faults of one table of tasks after which no more are looked for: they tend to be the same.
pub const CSV_FAULTS_MAX: usize = 20;

/// One row of a `csv`.
#[derive(Clone)]
pub struct Row {
    pub load: Option<Value>,
    pub under: Option<Value>,
}

/// Members of the set, or `None` when the table cannot be used. `at` is the `csv` key's value, `base` the set's own.
pub fn rows(text: &str, source: u32, at: &Value, base: &Row, collector: &mut Collector) -> Option<Vec<Row>> {
    let mut lines = lines(text).map(|(start, line)| cells(line, start, source));
    let Some(header) = lines.next() else {
        collector.add(Fault::new(
            "csv_needs_a_header",
            at.spot,
            "the file has no line with the names of its columns",
        ));
        return None;
    };
    let faults = collector.faults.len();
    let columns: Vec<_> = header.iter().filter_map(|cell| column(cell, collector)).collect();
    if collector.faults.len() > faults {
        return None;
    }
    let most = crate::policies::limits().nodes as usize;
    let mut rows = Vec::new();
    for cells in lines {
        if collector.faults.len() > faults + CSV_FAULTS_MAX {
            break;
        }
        if cells.len() != columns.len() {
            let spot = cells.first().map_or(at.spot, |cell| cell.spot);
            let fault = Fault::new(
                "csv_rows_are_as_long_as_the_header",
                spot,
                "this line has not one cell per column",
            );
            collector.add(fault.value(cells.len()).bound(columns.len()));
            continue;
        }
        if rows.len() == most {
            let fault =
                Fault::new("too_many_nodes", at.spot, "the file has more lines than there can be tasks");
            collector.add(fault.bound(most));
            return None;
        }
        let mut row = base.clone();
        for (column, cell) in columns.iter().zip(cells) {
            if cell.text.is_empty() {
                continue;
            }
            let value = Value { spot: cell.spot, kind: kind(cell.text) };
            let slot = if column[0] == "load" { &mut row.load } else { &mut row.under };
            put(slot, &column[1..], cell.spot, value, collector);
        }
        rows.push(row);
    }
    Some(rows)
}

/// Lines that say something, with their first byte.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    let numbered = text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, line.trim_end())
    });
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

struct Cell<'t> {
    text: &'t str,
    spot: Spot,
}

fn cells(line: &str, start: usize, source: u32) -> Vec<Cell<'_>> {
    let mut at = start;
    line.split(',')
        .map(|raw| {
            let blank = raw.len() - raw.trim_start().len();
            let (text, begin) = (raw.trim(), at + blank);
            at += raw.len() + 1;
            Cell { text, spot: Spot { source, start: begin as u32, len: text.len() as u32 } }
        })
        .collect()
}

/// `load.KEY` or `under.PARENT.KEY`, split at the dots.
fn column<'t>(cell: &Cell<'t>, collector: &mut Collector) -> Option<Vec<&'t str>> {
    let parts: Vec<_> = cell.text.split('.').collect();
    if matches!((parts[0], parts.len()), ("load", 2) | ("under", 3)) {
        return Some(parts);
    }
    let fault = Fault::new("csv_column_must_be_known", cell.spot, "this is no column of a table of tasks");
    collector.add(
        fault
            .value(cell.text)
            .hint("load.KEY such as load.period, or under.PARENT.KEY such as under.rt.budget"),
    );
    None
}

fn kind(text: &str) -> Kind {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        Kind::Whole(text.parse().ok())
    } else {
        Kind::Text(text.to_string())
    }
}

/// Replace or add the value at `path` below `slot`.
fn put(slot: &mut Option<Value>, path: &[&str], spot: Spot, value: Value, collector: &mut Collector) {
    let table = slot.get_or_insert_with(|| Value { spot, kind: Kind::Table(Table::default()) });
    let Kind::Table(table) = &mut table.kind else {
        let message = "this column replaces a key of a table, and the set has a plain value there";
        let fault = Fault::new("csv_column_needs_a_table", spot, message);
        return collector
            .add(fault.hint("for example load = { period = \"10ms\" } instead of load = \"busy\""));
    };
    let at = table.entries.iter().position(|(key, _)| key.text == path[0]).unwrap_or_else(|| {
        let empty = Value { spot, kind: Kind::Table(Table::default()) };
        table.entries.push((Key { text: path[0].to_string(), spot }, empty));
        table.entries.len() - 1
    });
    let found = &mut table.entries[at].1;
    if path.len() == 1 {
        *found = value;
    } else {
        let mut inner = Some(found.clone());
        put(&mut inner, &path[1..], spot, value, collector);
        if let Some(inner) = inner {
            *found = inner;
        }
    }
}
