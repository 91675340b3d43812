//! Traces: events of a simulation or of a live run.

use crate::errors::{refused, Fault, Kind};
use crate::interruptible::interruptible;
use crate::table::{escape, Columns, Table};
use pyo3::prelude::*;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use tierce_trace::{html, perfetto, Kind as EventKind, TraceError, Writer, NO_DEADLINE};

/// Events of a simulation or of a live run (docs/events.md). In a notebook, the timeline.
#[pyclass(frozen, module = "tierce")]
pub struct Trace {
    pub trace: Arc<tierce_trace::Trace>,
    /// Why reading ended before the end.
    cut: Option<String>,
}

fn unreadable(py: Python<'_>, path: &std::path::Path, why: impl ToString) -> PyErr {
    let mut fault = Fault::new("trace_must_be_readable", why.to_string());
    fault.file = Some(path.display().to_string());
    refused(py, Kind::Trace, fault)
}

impl Trace {
    pub fn of(trace: Arc<tierce_trace::Trace>) -> Self {
        Self { trace, cut: None }
    }

    fn page(&self, py: Python<'_>) -> PyResult<String> {
        let trace = self.trace.clone();
        let page = interruptible(py, move || {
            let mut page = Vec::new();
            html::write(&[&trace], &mut page).map(|()| page)
        })?;
        let page = page.map_err(|error| unreadable(py, std::path::Path::new(""), error))?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }
}

#[pymethods]
impl Trace {
    /// Read a file of `tierce sim --trace`, `tierce run --trace` or `save`. Raises `TraceError` where it is none.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let name = path.clone();
        let read = interruptible(py, move || -> Result<_, TraceError> {
            let file = File::open(&name).map_err(|source| TraceError::Io { offset: 0, source })?;
            tierce_trace::Trace::read(file)
        })?;
        let (trace, cut) = read.map_err(|error| unreadable(py, &path, error))?;
        Ok(Self { trace: Arc::new(trace), cut: cut.map(|error| error.to_string()) })
    }

    /// Why reading ended before the end of the file; `None`: it is whole.
    #[getter]
    fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Name of the plan.
    #[getter]
    fn plan(&self) -> &str {
        &self.trace.header.plan
    }

    /// Number of CPUs.
    #[getter]
    fn cpus(&self) -> u32 {
        self.trace.header.cpus
    }

    /// From its begin to its end.
    #[getter]
    fn length_ns(&self) -> u64 {
        self.trace.end_ns().saturating_sub(self.trace.header.start_ns)
    }

    /// A row for each event: time_ns (from the begin), cpu, kind, task (its name, where it is about one), a, b, value (what these
    /// are depends on the kind: docs/events.md; value is null for a job without deadline).
    #[getter]
    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        let (events, header) = (&self.trace.events, &self.trace.header);
        let is_task = |kind| {
            use EventKind::*;
            matches!(
                kind,
                Decision | Request | Release | JobRelease | JobStart | JobComplete | Miss | Migrate
            )
        };
        let task = |event: &tierce_trace::Event| {
            event.kind().filter(|kind| is_task(*kind)).and_then(|_| header.name(event.a))
        };
        let value = |event: &tierce_trace::Event| (event.value != NO_DEADLINE).then_some(event.value);
        Columns::new()
            .whole("time_ns", events.iter().map(|event| Some(event.now_ns.saturating_sub(header.start_ns))))
            .whole("cpu", events.iter().map(|event| Some(event.cpu.into())))
            .text("kind", events.iter().map(|event| event.kind().map(EventKind::name)))
            .text("task", events.iter().map(task))
            .whole("a", events.iter().map(|event| Some(event.a.into())))
            .whole("b", events.iter().map(|event| Some(event.b.into())))
            .whole("value", events.iter().map(value))
            .table(py)
    }

    /// Write a file for `tierce trace`, `tierce timeline` and `from_file`.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let trace = self.trace.clone();
        let name = path.clone();
        let written = interruptible(py, move || {
            let mut writer = Writer::new(File::create(&name)?, &trace.header)?;
            trace.events.iter().try_for_each(|event| writer.write(event))?;
            writer.finish().map(drop)
        })?;
        written.map_err(|error| unreadable(py, &path, error))
    }

    /// The timeline as a page that needs no network.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        self.page(py)
    }

    /// The timeline for ui.perfetto.dev.
    fn to_perfetto(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let trace = self.trace.clone();
        let bytes = interruptible(py, move || {
            let mut bytes = Vec::new();
            perfetto::write(&trace, &mut bytes).map(|_| bytes)
        })?;
        bytes.map_err(|error| unreadable(py, std::path::Path::new(""), error))
    }

    fn __len__(&self) -> usize {
        self.trace.events.len()
    }

    fn __repr__(&self) -> String {
        let length = tierce_plan::show_time(self.length_ns());
        format!(
            "<tierce.Trace: {} events of {} for {length}>",
            self.trace.events.len(),
            self.trace.header.plan
        )
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let page = escape(&self.page(py)?);
        Ok(format!("<iframe srcdoc=\"{page}\" style=\"width: 100%; height: 600px; border: 0\"></iframe>"))
    }
}
