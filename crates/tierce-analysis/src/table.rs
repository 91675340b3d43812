//! Tables of tasks as text: lines of cells, the first with the names of the columns.
//!
//! Columns: `name`, `work`, `period`, and optionally `deadline` (default: the period), `jitter`, `blocking`, `offset` (the
//! analyses take any phases unless told otherwise), `priority` (a whole number, larger is higher), `threshold` (the priority that others
//! must exceed to preempt a job that has begun; default: its priority), `criticality` (`lo`, the default, or
//! `hi`), `work_hi` (the worst of a task that usually needs `work`, its default), `span` (the longest chain of work that cannot run at
//! once; default: the work), `suspension` (longest time for which a job suspends itself, in all), `section` (its longest region without
//! preemption), `last_section` (that with which it ends). A cell of `work` may have several times, apart by spaces: jobs take them in turn;
//! one of `period`: the least time to the next job, to the second one after it, … ([`crate::requests`]). Times have a unit, a bare whole number is ns. Empty lines and lines that
//! begin with `#` are skipped; an empty cell is the default. A cell may stand in double quotes; what is between them is taken as it is,
//! `""` is one quote.

use crate::requests::{Requesting, Requests};
use crate::task::{Sections, Task};
use std::borrow::Cow;
use tierce_guarantee::{NumberError, Parameter};

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As given.
    pub name: String,
    /// Its numbers.
    pub task: Task,
    /// As given; 0 where it is not.
    pub offset_ns: u64,
    /// Larger is higher.
    pub priority: Option<i64>,
    /// Only tasks of higher priorities preempt a job that has begun; not below the priority.
    pub threshold: Option<i64>,
    /// Where the table has a column for one of them.
    pub criticality: Option<Criticality>,
    /// The longest chain of its work, where the table has a column for it.
    pub span_ns: Option<u64>,
    /// How long a job suspends itself, in all and at most.
    pub suspension_ns: u64,
    /// Its regions without preemption.
    pub sections: Sections,
    /// Where jobs differ, or come in bursts; the work of the task is then the longest, its period the shortest.
    pub requests: Option<Requests>,
}

impl Entry {
    /// A task that has only its numbers.
    pub fn new(name: String, task: Task) -> Self {
        Self {
            name,
            task,
            offset_ns: 0,
            priority: None,
            threshold: None,
            criticality: None,
            span_ns: None,
            suspension_ns: 0,
            sections: Sections::default(),
            requests: None,
        }
    }

    /// What its jobs request.
    pub fn requesting(&self) -> Option<Requesting> {
        let requests = self.requests.clone().or_else(|| Requests::of(&self.task))?;
        Some(Requesting { task: self.task, requests })
    }

    /// What a table refuses in a line, as column, rule and words. The entries of a table have nothing of that.
    pub fn fault(&self) -> Option<(&'static str, &'static str, String)> {
        let Task { work_ns, period_ns, deadline_ns, .. } = self.task;
        let work_hi_ns = self.criticality.map_or(1, |criticality| criticality.work_hi_ns);
        let span_ns = self.span_ns.unwrap_or(1);
        let positive = [
            ("work", work_ns),
            ("period", period_ns),
            ("deadline", deadline_ns),
            ("work_hi", work_hi_ns),
            ("span", span_ns),
        ];
        let zero = positive.into_iter().find(|(_, ns)| *ns == 0);
        let zero = zero.map(|(column, _)| (column, "time_must_be_positive", "at least 1 ns".to_string()));
        zero.or_else(|| sections_fault(work_ns, self.sections))
            .or_else(|| threshold_fault(self.priority, self.threshold))
    }
}

/// What a task may need at the worst, and whether it counts then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Criticality {
    /// `hi`: deadlines are to be met even then.
    pub hi: bool,
    /// The work of its jobs then.
    pub work_hi_ns: u64,
}

/// What is wrong with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the rule, snake_case.
    pub rule: &'static str,
    /// Line and column, in characters from 1.
    pub line: usize,
    /// See `line`.
    pub column: usize,
    /// What stands there.
    pub value: String,
    /// In plain words, with the bound.
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}:{}: {}: {} (\"{}\")", self.line, self.column, self.rule, self.message, self.value)
    }
}

const COLUMNS: [&str; 15] = [
    "name",
    "work",
    "period",
    "deadline",
    "jitter",
    "blocking",
    "offset",
    "priority",
    "criticality",
    "work_hi",
    "span",
    "suspension",
    "section",
    "last_section",
    "threshold",
];

/// The index of a column.
fn named(name: &str) -> usize {
    COLUMNS.iter().position(|column| *column == name).unwrap_or(COLUMNS.len())
}

/// Faults after which no more are looked for.
pub(crate) const FAULTS_MAX: usize = 100;

/// A cell and where it is.
pub(crate) struct Cell<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// It begins with a quote that nothing ends, or goes on after it.
    pub(crate) torn: bool,
}

impl Cell<'_> {
    pub(crate) fn fault(&self, rule: &'static str, message: impl Into<String>) -> Fault {
        let (value, message) = (self.text.to_string(), message.into());
        Fault { rule, line: self.line, column: self.column, value, message }
    }

    /// Times above 0, apart by spaces.
    fn times(&self) -> Result<Vec<u64>, Fault> {
        let time = |word: &str| match parse_time(word) {
            Ok(0) => Err(self.fault("time_must_be_positive", "at least 1 ns")),
            found => found.map_err(|(rule, message)| self.fault(rule, message)),
        };
        let several = self.text.split_whitespace().nth(1).is_some() && parse_time(&self.text).is_err();
        if several {
            return self.text.split_whitespace().map(time).collect();
        }
        time(&self.text).map(|ns| vec![ns])
    }

    /// A time of at least `least` ns.
    fn time(&self, least: u64) -> Result<u64, Fault> {
        let ns = parse_time(&self.text).map_err(|(rule, message)| self.fault(rule, message))?;
        if ns < least {
            return Err(self.fault("time_must_be_positive", format!("at least {least} ns")));
        }
        Ok(ns)
    }
}

/// A time in whole ns; a bare whole number is ns.
pub fn parse_time(text: &str) -> Result<u64, NumberError> {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let time = Parameter::Period.parse(&if bare { format!("{text}ns") } else { text.to_string() })?;
    if !time.is_integer() {
        return Err(("time_not_finer_than_1ns", "times are whole nanoseconds"));
    }
    u64::try_from(time.to_integer()).map_err(|_| ("time_must_fit", "this is too long"))
}

pub(crate) fn cells(line: &str, number: usize) -> Vec<Cell<'_>> {
    let (mut cells, mut rest, mut column) = (Vec::new(), line, 1);
    loop {
        // A comma between quotes does not end a cell.
        let quoted = rest.trim_start().starts_with('"');
        let mut inside = false;
        let end = rest.char_indices().find(|(_, c)| {
            inside ^= quoted && *c == '"';
            *c == ',' && !inside
        });
        let raw = &rest[..end.map_or(rest.len(), |(at, _)| at)];
        let blank = raw.chars().take_while(|c| c.is_whitespace()).count();
        let text = raw.trim();
        let within = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let within = within.filter(|text| quoted && !text.replace("\"\"", "").contains('"'));
        let torn = quoted && within.is_none();
        let text = within.map_or(Cow::Borrowed(text), |text| Cow::Owned(text.replace("\"\"", "\"")));
        cells.push(Cell { text, line: number, column: column + blank, torn });
        let Some((at, _)) = end else { return cells };
        column += raw.chars().count() + 1;
        rest = &rest[at + 1..];
    }
}

/// The lines that say something, with their numbers.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

/// The tasks of a table, or all of its faults.
pub fn parse(text: &str) -> Result<Vec<Entry>, Vec<Fault>> {
    let mut lines = rows(text);
    let Some((number, header)) = lines.next() else {
        let nothing = Cell { text: "".into(), line: 1, column: 1, torn: false };
        return Err(vec![
            nothing.fault("table_needs_a_header", "the first line names the columns: name,work,period")
        ]);
    };
    let header = cells(header, number);
    let columns = columns(&header)?;
    let (mut entries, mut faults) = (Vec::<Entry>::new(), Vec::new());
    let mut names = std::collections::HashSet::new();
    for (number, line) in lines {
        if faults.len() >= FAULTS_MAX {
            break;
        }
        let cells = cells(line, number);
        if let Some(torn) = cells.iter().find(|cell| cell.torn) {
            faults.push(
                torn.fault("quotes_must_end_the_cell", "a cell that begins with a quote ends with one"),
            );
            continue;
        }
        if cells.len() != columns.len() {
            let message = format!("this line has {} cells, the header {}", cells.len(), columns.len());
            faults.push(cells[0].fault("lines_are_as_long_as_the_header", message));
            continue;
        }
        match entry(&columns, &cells) {
            Ok(entry) if !names.insert(entry.name.clone()) => {
                faults.push(cells[0].fault("names_are_unique", format!("a second task {}", entry.name)));
            }
            Ok(entry) => entries.push(entry),
            Err(mut found) => faults.append(&mut found),
        }
    }
    if entries.is_empty() && faults.is_empty() {
        faults.push(header[0].fault("table_needs_tasks", "there is no task below the names of the columns"));
    }
    if faults.is_empty() {
        Ok(entries)
    } else {
        Err(faults)
    }
}

/// For each cell of the header the index of its column.
fn columns(header: &[Cell]) -> Result<Vec<usize>, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for cell in header {
        match COLUMNS.iter().position(|column| *column == cell.text) {
            _ if cell.torn => {
                faults.push(
                    cell.fault("quotes_must_end_the_cell", "a cell that begins with a quote ends with one"),
                );
            }
            None => {
                let message = format!("there is no such column, but {}", COLUMNS.join(", "));
                faults.push(cell.fault("column_must_be_known", message));
            }
            Some(column) if found.contains(&column) => {
                faults.push(cell.fault("columns_are_unique", "a second column of this name"));
            }
            Some(column) => found.push(column),
        }
    }
    for (needed, column) in COLUMNS.iter().enumerate().take(3) {
        if faults.is_empty() && !found.contains(&needed) {
            let message = format!("there is no column {column}");
            faults.push(header[0].fault("column_must_be_there", message));
        }
    }
    if faults.is_empty() {
        Ok(found)
    } else {
        Err(faults)
    }
}

/// The cells that a line needs and does not have.
fn missing(columns: &[usize], cells: &[Cell]) -> Vec<Fault> {
    let needed = COLUMNS.iter().enumerate().take(3).map(|(needed, name)| {
        let at = columns.iter().position(|column| *column == needed).unwrap_or(0);
        (&cells[at], name)
    });
    let empty = needed.filter(|(cell, _)| cell.text.is_empty());
    empty.map(|(cell, name)| cell.fault("cell_must_not_be_empty", format!("a task needs a {name}"))).collect()
}

fn entry(columns: &[usize], cells: &[Cell]) -> Result<Entry, Vec<Fault>> {
    let mut faults = Vec::new();
    let cell = |wanted: usize| {
        let at = columns.iter().position(|column| *column == wanted);
        at.map(|at| &cells[at]).filter(|cell| !cell.text.is_empty())
    };
    let Jobs { work_ns, period_ns, last_ns, requests } = jobs(cell(1), cell(2), &mut faults);
    let mut time = |wanted: usize, least: u64, default: u64| match cell(wanted) {
        None => default,
        Some(cell) => cell.time(least).unwrap_or_else(|fault| {
            faults.push(fault);
            default
        }),
    };
    let deadline_ns = time(3, 1, last_ns);
    let task = Task { work_ns, period_ns, deadline_ns, jitter_ns: time(4, 0, 0), blocking_ns: time(5, 0, 0) };
    let (offset_ns, suspension_ns) = (time(6, 0, 0), time(named("suspension"), 0, 0));
    let work_hi_ns = time(named("work_hi"), 1, work_ns);
    let span_ns = time(named("span"), 1, work_ns);
    let last_ns = time(named("last_section"), 0, 0);
    let sections = Sections { longest_ns: time(named("section"), 0, last_ns), last_ns };
    faults.extend(missing(columns, cells));
    let mut priority = |wanted: &str| {
        let cell = cell(named(wanted))?;
        let fault = || cell.fault("priority_must_be_whole", "a priority is a whole number, larger is higher");
        cell.text.parse().map_err(|_| faults.push(fault())).ok()
    };
    let (priority, threshold) = (priority("priority"), priority("threshold"));
    let hi = cell(named("criticality")).is_some_and(|cell| match &*cell.text {
        "hi" => true,
        text => {
            let message = "a criticality is lo or hi";
            faults.extend((text != "lo").then(|| cell.fault("criticality_must_be_known", message)));
            false
        }
    });
    let has = |name: &str| columns.contains(&named(name));
    let criticality = (has("criticality") || has("work_hi")).then_some(Criticality { hi, work_hi_ns });
    let span_ns = has("span").then_some(span_ns);
    let name = cell(0).map_or(String::new(), |cell| cell.text.to_string());
    let plain = Entry { suspension_ns, sections, requests, ..Entry::new(name, task) };
    let entry = Entry { offset_ns, priority, threshold, criticality, span_ns, ..plain };
    if faults.is_empty() {
        faults.extend(entry.fault().map(|(wanted, rule, message)| {
            let at = cell(named(wanted)).unwrap_or(&cells[0]);
            at.fault(rule, message)
        }));
    }
    if faults.is_empty() {
        Ok(entry)
    } else {
        faults.sort_by_key(|fault| fault.column);
        Err(faults)
    }
}

/// What the cells of work and period say of jobs.
struct Jobs {
    /// The longest work, the shortest and the last distance; 0 where that is a fault, or missing.
    work_ns: u64,
    period_ns: u64,
    last_ns: u64,
    /// Where a cell is a list.
    requests: Option<Requests>,
}

fn jobs(work: Option<&Cell>, period: Option<&Cell>, faults: &mut Vec<Fault>) -> Jobs {
    let mut times = |cell: Option<&Cell>| match cell.map_or(Ok(Vec::new()), Cell::times) {
        Ok(times) => times,
        Err(fault) => {
            faults.push(fault);
            Vec::new()
        }
    };
    let (works, distances) = (times(work), times(period));
    let mut requests = None;
    if works.len() > 1 || distances.len() > 1 {
        requests = Requests::new(&works, &distances);
        let falls = distances.windows(2).any(|pair| pair[0] > pair[1]);
        let known = !works.is_empty() && !distances.is_empty();
        if requests.is_none() && known {
            let ascend = "each counts from the same job: to the next one, to the second after it";
            let short = "at most 4096 times in a cell, which add up to less than 584 years";
            let of_period = falls || distances.len() > works.len();
            let rule = if falls { "separations_must_ascend" } else { "lists_must_be_short" };
            let cell = if of_period { period } else { work };
            faults.extend(cell.map(|cell| cell.fault(rule, if falls { ascend } else { short })));
        }
    }
    let first = |times: &[u64]| times.first().copied().unwrap_or(0);
    Jobs {
        work_ns: works.iter().copied().max().unwrap_or(0),
        period_ns: first(&distances),
        last_ns: distances.last().copied().unwrap_or(0),
        requests,
    }
}

/// The same where a threshold does not fit the priority.
fn threshold_fault(
    priority: Option<i64>,
    threshold: Option<i64>,
) -> Option<(&'static str, &'static str, String)> {
    let (threshold, column) = (threshold?, "threshold");
    match priority {
        None => Some((column, "threshold_needs_a_priority", "a task with a threshold has a priority".into())),
        Some(priority) => (threshold < priority)
            .then(|| (column, "threshold_not_below_priority", format!("at least the priority, {priority}"))),
    }
}

/// The column, rule and words where regions without preemption do not fit a job.
fn sections_fault(work_ns: u64, sections: Sections) -> Option<(&'static str, &'static str, String)> {
    let Sections { longest_ns, last_ns } = sections;
    if last_ns > work_ns {
        let message = format!("at most the work, {work_ns} ns");
        return Some(("last_section", "sections_are_within_the_work", message));
    }
    if longest_ns < last_ns {
        let message = format!("the longest region is no shorter than the last, {last_ns} ns");
        return Some(("section", "section_is_the_longest", message));
    }
    let room_ns = if longest_ns > last_ns { work_ns - last_ns } else { work_ns };
    let message = format!("at most {room_ns} ns, the work without the last region");
    (longest_ns > room_ns).then_some(("section", "sections_are_within_the_work", message))
}
