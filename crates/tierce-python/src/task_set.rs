//! Sets of tasks: from Python's own values, from tables, drawn at random.

use crate::errors::{error, refused, Fault, Kind};
use crate::table::{Columns, Table};
use crate::time::time_ns;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use tierce_analysis::generate::{tasks as drawn, Draw, Periods, Shares};
use tierce_analysis::{utilisation, Criticality, Entry, Sections, Task};
use tierce_plan::show_time;

/// A set of tasks, read once and analysed often.
///
/// `tasks`: tuples (work, period) or (work, period, deadline), dictionaries with the columns of `tierce analyse` (docs/analysis.md;
/// `work` or `work_ns`), or objects of `Task`; also any table with `to_dicts` or `to_pylist`. Raises `AnalysisError`.
#[pyclass(frozen, module = "tierce")]
pub struct TaskSet(pub Arc<Vec<Entry>>);

/// Bytes of a table.
const TABLE_MAX: u64 = 64 << 20;

const COLUMNS: &str = "name, work, period, deadline, jitter, blocking, offset, priority, criticality, work_hi, span, suspension, \
                       section, last_section, threshold";

/// What is given of a task; what is `None` is the default.
#[derive(Default)]
struct Given {
    name: Option<String>,
    work: Option<u64>,
    period: Option<u64>,
    deadline: Option<u64>,
    jitter: Option<u64>,
    blocking: Option<u64>,
    offset: Option<u64>,
    priority: Option<i64>,
    hi: Option<bool>,
    work_hi: Option<u64>,
    span: Option<u64>,
    suspension: Option<u64>,
    section: Option<u64>,
    last_section: Option<u64>,
    threshold: Option<i64>,
}

impl Given {
    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let column = key.strip_suffix("_ns").unwrap_or(key);
        let time = || time_ns(value, key).map(Some);
        match column {
            "name" => self.name = Some(value.extract()?),
            "work" => self.work = time()?,
            "period" => self.period = time()?,
            "deadline" => self.deadline = time()?,
            "jitter" => self.jitter = time()?,
            "blocking" => self.blocking = time()?,
            "offset" => self.offset = time()?,
            "priority" => self.priority = Some(value.extract()?),
            "threshold" => self.threshold = Some(value.extract()?),
            "criticality" => {
                let text = value.cast::<PyString>()?.to_cow()?.into_owned();
                let fault =
                    || Fault::new("criticality_must_be_known", "a criticality is lo or hi").value(&text);
                self.hi = match &*text {
                    "hi" => Some(true),
                    "lo" => Some(false),
                    _ => return Err(refused(value.py(), Kind::Analysis, fault())),
                };
            }
            "work_hi" => self.work_hi = time()?,
            "span" => self.span = time()?,
            "suspension" => self.suspension = time()?,
            "section" => self.section = time()?,
            "last_section" => self.last_section = time()?,
            _ => {
                let fault =
                    Fault::new("column_must_be_known", format!("a task has no `{key}`, but {COLUMNS}"));
                return Err(refused(value.py(), Kind::Analysis, fault.value(key)));
            }
        }
        Ok(())
    }

    /// As a line of a table.
    fn entry(self, py: Python<'_>, number: usize) -> PyResult<Entry> {
        let missing = |column: &str| {
            let fault = Fault::new("cell_must_not_be_empty", format!("task {number} needs a {column}"));
            refused(py, Kind::Analysis, fault)
        };
        let work_ns = self.work.ok_or_else(|| missing("work"))?;
        let period_ns = self.period.ok_or_else(|| missing("period"))?;
        let task = Task {
            work_ns,
            period_ns,
            deadline_ns: self.deadline.unwrap_or(period_ns),
            jitter_ns: self.jitter.unwrap_or(0),
            blocking_ns: self.blocking.unwrap_or(0),
        };
        let has_criticality = self.hi.is_some() || self.work_hi.is_some();
        let last_ns = self.last_section.unwrap_or(0);
        let entry = Entry {
            name: self.name.unwrap_or_else(|| format!("t{number}")),
            task,
            offset_ns: self.offset.unwrap_or(0),
            priority: self.priority,
            threshold: self.threshold,
            criticality: has_criticality.then(|| Criticality {
                hi: self.hi.unwrap_or(false),
                work_hi_ns: self.work_hi.unwrap_or(work_ns),
            }),
            span_ns: self.span,
            suspension_ns: self.suspension.unwrap_or(0),
            sections: Sections { longest_ns: self.section.unwrap_or(last_ns), last_ns },
            requests: None,
        };
        match entry.fault() {
            None => Ok(entry),
            Some((column, rule, message)) => {
                let fault = Fault::new(rule, format!("{}: {column}: {message}", entry.name));
                Err(refused(py, Kind::Analysis, fault))
            }
        }
    }
}

/// `(work, period)`, `(work, period, deadline)`, a dictionary, or an object with such attributes (`tierce.Task`).
fn entry(given: &Bound<'_, PyAny>, number: usize) -> PyResult<Entry> {
    let (py, mut found) = (given.py(), Given::default());
    if let Ok(times) = given.cast::<PyTuple>() {
        let names = ["work", "period", "deadline"];
        if !(2..=3).contains(&times.len()) {
            let fault = Fault::new(
                "task_has_its_numbers",
                "a task as a tuple is (work, period) or (work, period, deadline)",
            );
            return Err(refused(py, Kind::Analysis, fault.value(times).bound("2 or 3 times")));
        }
        for (name, value) in names.iter().zip(times.iter()) {
            found.set(name, &value)?;
        }
        return found.entry(py, number);
    }
    let fields = match given.cast::<PyDict>() {
        Ok(dict) => dict.clone(),
        Err(_) => {
            let fields = given.getattr("__dict__").ok().and_then(|fields| fields.cast_into::<PyDict>().ok());
            fields.ok_or_else(|| {
                let fault =
                    Fault::new("task_must_be_one", "a task is a tuple, a dictionary or a tierce.Task");
                refused(py, Kind::Analysis, fault.value(given.get_type()))
            })?
        }
    };
    for (key, value) in fields.iter() {
        if !value.is_none() {
            found.set(&key.cast::<PyString>()?.to_cow()?, &value)?;
        }
    }
    found.entry(py, number)
}

/// What `tasks` of an analysis may be.
pub fn entries(given: &Bound<'_, PyAny>) -> PyResult<Arc<Vec<Entry>>> {
    let py = given.py();
    if let Ok(set) = given.cast::<TaskSet>() {
        return Ok(set.get().0.clone());
    }
    if let Ok(list) = given.cast::<PyList>() {
        return listed(py, list.iter().map(Ok));
    }
    if given.is_instance_of::<PyString>() {
        let mut fault = Fault::new("tasks_are_a_list", "tasks are a list or a TaskSet, not text");
        fault.help = Some("TaskSet.from_csv(text) or TaskSet.from_file(path)".into());
        return Err(refused(py, Kind::Analysis, fault));
    }
    for rows in ["to_dicts", "to_pylist"] {
        if let Ok(method) = given.getattr(rows) {
            return entries(&method.call0()?);
        }
    }
    listed(py, given.try_iter()?)
}

fn listed<'py>(
    py: Python<'py>,
    tasks: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Arc<Vec<Entry>>> {
    let mut entries = Vec::new();
    for (number, task) in (1..).zip(tasks) {
        entries.push(entry(&task?, number)?);
    }
    if entries.is_empty() {
        let fault = Fault::new("table_needs_tasks", "there is no task");
        return Err(refused(py, Kind::Analysis, fault));
    }
    let mut names = HashSet::with_capacity(entries.len());
    if let Some(second) = entries.iter().find(|entry| !names.insert(&*entry.name)) {
        let fault = Fault::new("names_are_unique", "a second task of this name");
        return Err(refused(py, Kind::Analysis, fault.value(&second.name)));
    }
    Ok(Arc::new(entries))
}

#[pymethods]
impl TaskSet {
    #[new]
    #[pyo3(signature = (tasks))]
    fn new(tasks: &Bound<'_, PyAny>) -> PyResult<Self> {
        entries(tasks).map(Self)
    }

    /// Read a table of `tierce analyse`; `name` stands in messages. Raises `AnalysisError` with all faults and their places.
    #[staticmethod]
    #[pyo3(signature = (text, name = "tasks.csv"))]
    fn from_csv(py: Python<'_>, text: &str, name: &str) -> PyResult<Self> {
        let entries = tierce_analysis::parse(text).map_err(|faults| {
            let one = |fault: &tierce_analysis::Fault| Fault {
                file: Some(name.into()),
                line: Some(fault.line),
                column: Some(fault.column),
                value: Some(fault.value.clone()),
                ..Fault::new(fault.rule, &fault.message)
            };
            error(py, Kind::Analysis, &faults.iter().map(one).collect::<Vec<_>>(), None)
        })?;
        Ok(Self(Arc::new(entries)))
    }

    /// Read such a table from a file of at most 64 MiB.
    #[staticmethod]
    #[pyo3(signature = (path))]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let unreadable = |why: String| {
            let mut fault = Fault::new("file_must_be_readable", why);
            fault.file = Some(path.display().to_string());
            refused(py, Kind::Analysis, fault)
        };
        let length = std::fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?.len();
        if length > TABLE_MAX {
            return Err(unreadable(format!("the table has {length} bytes, bound {TABLE_MAX}")));
        }
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?;
        Self::from_csv(py, &text, &path.display().to_string())
    }

    /// A row for each task: name, work_ns, period_ns, deadline_ns, and the other columns that some task has.
    #[getter]
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        let all = &*self.0;
        let time = |of: fn(&Entry) -> u64| all.iter().map(move |entry| Some(of(entry)));
        let mut columns = Columns::new()
            .text("name", all.iter().map(|entry| Some(&entry.name)))
            .whole("work_ns", time(|entry| entry.task.work_ns))
            .whole("period_ns", time(|entry| entry.task.period_ns))
            .whole("deadline_ns", time(|entry| entry.task.deadline_ns));
        let rare: [(&str, fn(&Entry) -> u64); 6] = [
            ("jitter_ns", |entry| entry.task.jitter_ns),
            ("blocking_ns", |entry| entry.task.blocking_ns),
            ("offset_ns", |entry| entry.offset_ns),
            ("suspension_ns", |entry| entry.suspension_ns),
            ("section_ns", |entry| entry.sections.longest_ns),
            ("last_section_ns", |entry| entry.sections.last_ns),
        ];
        for (name, of) in rare {
            if all.iter().any(|entry| of(entry) > 0) {
                columns = columns.whole(name, time(of));
            }
        }
        let ranks: [(&str, fn(&Entry) -> Option<i64>); 2] =
            [("priority", |entry| entry.priority), ("threshold", |entry| entry.threshold)];
        for (name, of) in ranks {
            if all.iter().any(|entry| of(entry).is_some()) {
                columns = columns.signed(name, all.iter().map(of));
            }
        }
        if all.iter().any(|entry| entry.criticality.is_some()) {
            let given = || all.iter().map(|entry| entry.criticality);
            columns = columns
                .text(
                    "criticality",
                    given().map(|given| given.map(|given| if given.hi { "hi" } else { "lo" })),
                )
                .whole("work_hi_ns", given().map(|given| given.map(|given| given.work_hi_ns)));
        }
        if all.iter().any(|entry| entry.span_ns.is_some()) {
            columns = columns.whole("span_ns", all.iter().map(|entry| entry.span_ns));
        }
        columns.table(py)
    }

    /// Sum of work / period, rounded.
    #[getter]
    fn utilisation(&self) -> f64 {
        share(&self.0)
    }

    /// The same exactly, as a fraction: "3/4".
    #[getter]
    fn utilisation_exact(&self) -> String {
        utilisation(&self.0.iter().map(|entry| entry.task).collect::<Vec<_>>()).to_string()
    }

    /// A table for `tierce analyse` with name, work, period, deadline.
    fn to_csv(&self) -> String {
        let mut text = "name,work,period,deadline\n".to_string();
        for entry in &*self.0 {
            let Task { work_ns, period_ns, deadline_ns, .. } = entry.task;
            let times = [work_ns, period_ns, deadline_ns].map(show_time).join(",");
            let _ = match entry.name.contains([',', '"', '\n']) {
                true => writeln!(text, "\"{}\",{times}", entry.name.replace('"', "\"\"")),
                false => writeln!(text, "{},{times}", entry.name),
            };
        }
        text
    }

    /// A dictionary for each task.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.table(py)?.to_dicts(py)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, pyo3::types::PyCapsule>> {
        self.table(py)?.stream(py, requested_schema)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<tierce.TaskSet: {} tasks, utilisation {:.6}>", self.0.len(), self.utilisation())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.table(py)?.html())
    }
}

/// Rounded.
pub fn share(entries: &[Entry]) -> f64 {
    entries.iter().map(|entry| entry.task.work_ns as f64 / entry.task.period_ns as f64).sum()
}

/// One number, or the least and the most.
fn range<'py, T>(
    given: &Bound<'py, PyAny>,
    one: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<(T, T)>
where
    T: Copy,
{
    match given.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => Ok((one(&pair.get_item(0)?)?, one(&pair.get_item(1)?)?)),
        Ok(pair) => {
            let fault = Fault::new("range_is_a_pair", "a range is (least, most)");
            Err(refused(given.py(), Kind::Argument, fault.value(pair).bound("2 numbers")))
        }
        Err(_) => one(given).map(|value| (value, value)),
    }
}

/// Draw a random set of tasks: the same arguments and seed give the same set everywhere (docs/analysis.md#random-task-sets).
///
/// `method`: "uunifast-discard" (Bini & Buttazzo 2005, Davis & Burns 2009), "randfixedsum" (Stafford 2006), "emberson" (the same
/// with log-uniform periods; Emberson, Stafford & Davis 2010) or "paper" (uniform utilisations until their sum is within a
/// range). `utilisation`: of each CPU; with "paper" a pair (least, most). `periods`: (shortest, longest). `shares`: (least, most)
/// utilisation of a task. Deadlines are periods. Raises `ArgumentError`.
#[pyfunction]
#[pyo3(signature = (method, *, tasks = None, utilisation, periods, cpus = 1, shares = None, seed = 1))]
#[expect(clippy::too_many_arguments, reason = "each is an argument of its own in Python")]
pub fn generate(
    py: Python<'_>,
    method: &str,
    tasks: Option<&Bound<'_, PyInt>>,
    utilisation: &Bound<'_, PyAny>,
    periods: &Bound<'_, PyAny>,
    cpus: u32,
    shares: Option<&Bound<'_, PyAny>>,
    seed: u64,
) -> PyResult<TaskSet> {
    let number = |value: &Bound<'_, PyAny>| value.extract::<f64>();
    let refuse = |fault: Fault| refused(py, Kind::Argument, fault);
    let (least, most) = range(utilisation, number)?;
    let each = shares.map_or(Ok((0.0, 1.0)), |shares| range(shares, number))?;
    let (shortest, longest) = range(periods, |time| time_ns(time, "periods"))?;
    if !(1..=1024).contains(&cpus) {
        let fault = Fault::new("cpus_within_range", "`cpus` is the number of CPUs");
        return Err(refuse(fault.value(cpus).bound("1 to 1024")));
    }
    let (sum, is_paper) = (least * f64::from(cpus), method == "paper");
    if is_paper && tasks.is_some() {
        let message = "the method paper draws as many tasks as it needs; leave out `tasks`";
        return Err(refuse(Fault::new("tasks_are_as_many_as_needed", message)));
    }
    if !is_paper && least != most {
        return Err(refuse(Fault::new("sum_is_one", "only the method paper takes a range of `utilisation`")));
    }
    let count = match tasks {
        None if !is_paper => {
            return Err(refuse(Fault::new("tasks_are_some", "`tasks` is missing").bound("1 to 1024")))
        }
        None => 0,
        Some(tasks) => tasks.extract::<usize>().unwrap_or(usize::MAX),
    };
    let shares = match method {
        "paper" => Shares::UntilInRange { each, sum: (sum, most * f64::from(cpus)) },
        "uunifast-discard" => Shares::UUniFastDiscard { tasks: count, sum },
        "randfixedsum" | "emberson" => Shares::RandFixedSum { tasks: count, sum, each },
        _ => {
            let fault = Fault::new("method_must_be_known", "there is no such method");
            return Err(refuse(
                fault.value(method).bound("paper, uunifast-discard, randfixedsum or emberson"),
            ));
        }
    };
    let periods = match method {
        "emberson" => Periods::LogUniform(shortest, longest),
        _ => Periods::Uniform(shortest, longest),
    };
    let set = py.detach(|| drawn(&shares, &periods, &mut Draw::new(seed)));
    let set = set.map_err(|refusal| refuse(Fault::new(refusal.rule, refusal.message)))?;
    let entry = |(number, task): (usize, Task)| Entry::new(format!("t{number}"), task);
    Ok(TaskSet(Arc::new((1..).zip(set).map(entry).collect())))
}
