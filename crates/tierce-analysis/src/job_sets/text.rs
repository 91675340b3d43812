//! Job sets as text: the CSV of np-schedulability-analysis. The header names the columns, which are in this order: `Task ID`, `Job ID`,
//! `Arrival min`, `Arrival max`, `Cost min`, `Cost max`, `Deadline`, `Priority`. Times are whole numbers of any unit, taken for ns,
//! or have a unit.

use super::Job;
use crate::table::{cells, parse_time, rows, Cell, Fault, FAULTS_MAX};

const COLUMNS: [&str; 8] =
    ["task id", "job id", "arrival min", "arrival max", "cost min", "cost max", "deadline", "priority"];

/// Whether the first line names a job set's columns.
pub fn is_job_set(text: &str) -> bool {
    rows(text).next().is_some_and(|(number, line)| {
        let header = cells(line, number);
        header.len() > 1 && header.iter().zip(COLUMNS).take(2).all(|(cell, name)| is_named(cell, name))
    })
}

fn is_named(cell: &Cell, name: &str) -> bool {
    let text = cell.text.to_lowercase().replace("release", "arrival");
    text.split_whitespace().eq(name.split_whitespace())
}

/// The jobs of a table, or all of its faults.
pub fn parse(text: &str) -> Result<Vec<Job>, Vec<Fault>> {
    let mut lines = rows(text);
    let Some((number, header)) = lines.next() else { return Ok(Vec::new()) };
    let header = cells(header, number);
    let matches =
        header.len() == COLUMNS.len() && header.iter().zip(COLUMNS).all(|(cell, name)| is_named(cell, name));
    if !matches {
        let message = format!("the columns of a job set are {}", COLUMNS.join(", "));
        return Err(vec![header[0].fault("job_set_has_its_columns", message)]);
    }
    let (mut jobs, mut faults) = (Vec::new(), Vec::new());
    let mut names = std::collections::HashSet::new();
    for (number, line) in lines {
        if faults.len() >= FAULTS_MAX {
            break;
        }
        let cells = cells(line, number);
        if cells.len() != COLUMNS.len() {
            let message = format!("this line has {} cells, the header {}", cells.len(), COLUMNS.len());
            faults.push(cells[0].fault("lines_are_as_long_as_the_header", message));
            continue;
        }
        match job(&cells) {
            Ok(job) if !names.insert((job.task, job.id)) => {
                let message = format!("a second job {} of task {}", job.id, job.task);
                faults.push(cells[1].fault("names_are_unique", message));
            }
            Ok(job) => jobs.push(job),
            Err(mut found) => faults.append(&mut found),
        }
    }
    if jobs.is_empty() && faults.is_empty() {
        faults.push(header[0].fault("table_needs_tasks", "there is no job below the names of the columns"));
    }
    if faults.is_empty() {
        Ok(jobs)
    } else {
        Err(faults)
    }
}

fn job(cells: &[Cell]) -> Result<Job, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut number = |at: usize| {
        let cell: &Cell = &cells[at];
        cell.text.parse::<u64>().unwrap_or_else(|_| {
            faults.push(
                cell.fault("number_must_be_whole", format!("{} is a whole number, 0 or more", COLUMNS[at])),
            );
            0
        })
    };
    let (task, id, priority) = (number(0), number(1), number(7));
    let mut time = |at: usize| {
        let cell: &Cell = &cells[at];
        parse_time(&cell.text).unwrap_or_else(|(rule, message)| {
            faults.push(cell.fault(rule, message));
            0
        })
    };
    let ready_ns = (time(2), time(3));
    let work_ns = (time(4), time(5));
    let deadline_ns = time(6);
    let understood = faults.is_empty();
    for (at, (least, most)) in [(3, ready_ns), (5, work_ns)] {
        if least > most && understood {
            let message = format!("{} is at least {}", COLUMNS[at], COLUMNS[at - 1]);
            faults.push(cells[at].fault("range_must_not_be_empty", message));
        }
    }
    if faults.is_empty() {
        Ok(Job { task, id, ready_ns, work_ns, deadline_ns, priority })
    } else {
        faults.sort_by_key(|fault| fault.column);
        Err(faults)
    }
}
