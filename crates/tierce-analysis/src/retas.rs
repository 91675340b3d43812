//! The task sets of ReTAS as text (appendix A, Listing 15): a line per task of eight whole numbers, in ns, a comma after each.
//!
//! ```text
//! task_id, min_exec_time, max_exec_time, min_inter_arrival_time, max_inter_arrival_time, deadline, min_offset_time, max_offset_time,
//! 1,2049267,2049267,15989152,15989152,15989152,2500000000,2500000000,
//! ```
//!
//! The last comma may be missing; empty lines and lines that begin with `#` are skipped. Offsets are taken as they are: the
//! paper's text has one second for each task of the set, its example half of one.

use crate::table::{cells, rows, Cell, Entry, Fault, FAULTS_MAX};
use crate::task::Task;
use std::fmt::Write as _;
use tierce_guarantee::TIME_MAX_NS;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The task's number.
    pub id: u64,
    /// Of a job, least and most.
    pub work_ns: (u64, u64),
    /// From release to release, least and most.
    pub period_ns: (u64, u64),
    /// From each release.
    pub deadline_ns: u64,
    /// Of the first release, least and most.
    pub offset_ns: (u64, u64),
}

const COLUMNS: [&str; 8] = [
    "task_id",
    "min_exec_time",
    "max_exec_time",
    "min_inter_arrival_time",
    "max_inter_arrival_time",
    "deadline",
    "min_offset_time",
    "max_offset_time",
];

impl Row {
    /// As the paper's generator has it: works down to work/factor, distances and offsets up to factor times the least. A factor
    /// below 1, or none, counts as 1.
    pub fn new(id: u64, task: &Task, offset_ns: u64, factor: f64) -> Self {
        let factor = factor.max(1.0);
        let longer = |ns: u64| ((ns as f64 * factor) as u64).clamp(ns, TIME_MAX_NS.max(ns));
        let shortest = ((task.work_ns as f64 / factor) as u64).clamp(1, task.work_ns.max(1));
        let (period_ns, offset_ns) =
            ((task.period_ns, longer(task.period_ns)), (offset_ns, longer(offset_ns)));
        Self { id, work_ns: (shortest, task.work_ns), period_ns, deadline_ns: task.deadline_ns, offset_ns }
    }

    /// At its most: the longest work, the shortest period.
    pub fn entry(&self) -> Entry {
        let task = Task { deadline_ns: self.deadline_ns, ..Task::new(self.work_ns.1, self.period_ns.0) };
        Entry { offset_ns: self.offset_ns.0, ..Entry::new(format!("t{}", self.id), task) }
    }
}

/// The text is of this form: its first line begins with a number, where a table has the name of a column.
pub fn is_retas(text: &str) -> bool {
    let first = rows(text).next().map_or("", |(_, line)| line);
    first.split(',').next().is_some_and(|cell| cell.trim().parse::<u64>().is_ok())
}

/// Rows as text.
pub fn write(rows: &[Row]) -> String {
    rows.iter().fold(String::new(), |mut text, row| {
        let Row { id, work_ns: (c, c_max), period_ns: (t, t_max), deadline_ns, offset_ns: (o, o_max) } = row;
        let _ = writeln!(text, "{id},{c},{c_max},{t},{t_max},{deadline_ns},{o},{o_max},");
        text
    })
}

/// The rows of a text, or all of its faults.
pub fn parse(text: &str) -> Result<Vec<Row>, Vec<Fault>> {
    let (mut found, mut faults) = (Vec::<Row>::new(), Vec::new());
    let mut ids = std::collections::HashSet::new();
    for (number, line) in rows(text) {
        if faults.len() >= FAULTS_MAX {
            break;
        }
        let mut cells = cells(line, number);
        if cells.len() == COLUMNS.len() + 1 && cells[COLUMNS.len()].text.is_empty() {
            cells.pop();
        }
        if cells.len() != COLUMNS.len() {
            let message = format!(
                "this line has {} columns, bound {}: {}",
                cells.len(),
                COLUMNS.len(),
                COLUMNS.join(", ")
            );
            faults.push(cells[0].fault("lines_have_eight_columns", message));
            continue;
        }
        match row(&cells) {
            Ok(row) if !ids.insert(row.id) => {
                faults.push(cells[0].fault("names_are_unique", format!("a second task {}", row.id)));
            }
            Ok(row) => found.push(row),
            Err(mut wrong) => faults.append(&mut wrong),
        }
    }
    if found.is_empty() && faults.is_empty() {
        let nothing = Cell { text: "".into(), line: 1, column: 1, torn: false };
        faults.push(nothing.fault("table_needs_tasks", "there is no task"));
    }
    if faults.is_empty() {
        Ok(found)
    } else {
        Err(faults)
    }
}

fn row(cells: &[Cell]) -> Result<Row, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut number = |column: usize, least: u64, most: u64| {
        let (cell, name) = (&cells[column], COLUMNS[column]);
        let rule = match cell.text.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => return number,
            Ok(number) if number < least => "time_must_be_positive",
            Ok(_) => "time_must_fit",
            Err(_) if !cell.text.is_empty() && cell.text.bytes().all(|byte| byte.is_ascii_digit()) => {
                "time_must_fit"
            }
            Err(_) => "number_must_be_whole",
        };
        let unit = if column == 0 { "" } else { " ns" };
        faults.push(cell.fault(rule, format!("{name} is a whole number, bound {least} to {most}{unit}")));
        least
    };
    let id = number(0, 0, u64::MAX);
    let mut time = |column, least| number(column, least, TIME_MAX_NS);
    let row = Row {
        id,
        work_ns: (time(1, 1), time(2, 1)),
        period_ns: (time(3, 1), time(4, 1)),
        deadline_ns: time(5, 1),
        offset_ns: (time(6, 0), time(7, 0)),
    };
    for (column, (least, most)) in [(1, row.work_ns), (3, row.period_ns), (6, row.offset_ns)] {
        if faults.is_empty() && least > most {
            let message = format!("{} is at most {}, bound {most}", COLUMNS[column], COLUMNS[column + 1]);
            faults.push(cells[column].fault("min_must_not_exceed_max", message));
        }
    }
    if faults.is_empty() {
        Ok(row)
    } else {
        Err(faults)
    }
}
