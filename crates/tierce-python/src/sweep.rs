//! Studies: random task sets at each point of a grid, done here or chunk by chunk elsewhere (docs/sweep.md).

use crate::errors::{error, of_plan, refused, Fault, Kind};
use crate::interruptible::{watched, Progress};
use crate::table::{Columns, Table};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyBytes, PyCapsule, PyType};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use tierce_plan::{Faults, Source};
use tierce_sweep::{cell, types, Cell, Ended, Folder, Part, Refused, Row, Type};

/// A study: random task sets at each point of a grid, each analysed and simulated in several ways (docs/sweep.md#a-study).
///
/// Made by `from_text`, `from_file` or `from_dict`, done by `tierce.sweep`. It can be pickled, with the plans that it names.
#[pyclass(frozen, module = "tierce")]
pub struct Study {
    study: Arc<tierce_sweep::Study>,
    text: String,
    name: String,
}

/// Name and text of each plan's file.
type Files = Vec<(String, String)>;
/// What a study is made of: text, name, files.
type Parts = (String, String, Files);

fn refuse(py: Python<'_>, found: Refused) -> PyErr {
    refused(py, Kind::Study, Fault::new(found.rule, found.message))
}

fn sets_of(study: &tierce_sweep::Study, chunks: impl IntoIterator<Item = u64>) -> u64 {
    chunks.into_iter().map(|chunk| study.jobs_of(chunk).count() as u64).sum()
}

impl Study {
    fn made(py: Python<'_>, text: String, name: String, files: Files) -> PyResult<Self> {
        let read = || {
            let source = |(name, text): (String, String)| Arc::new(Source::new(name, text));
            let files: Vec<_> = files.into_iter().map(source).collect();
            tierce_sweep::read_with(&text, &name, &files)
        };
        let refuse = |faults: Faults| error(py, Kind::Study, &of_plan(&faults), Some(faults.report_plain()));
        let study = py.detach(read).map_err(refuse)?;
        Ok(Self { study: Arc::new(study), text, name })
    }

    fn within(&self, py: Python<'_>, chunk: u64) -> PyResult<u64> {
        if chunk < self.study.chunks() {
            return Ok(chunk);
        }
        let fault = Fault::new("chunk_must_exist", "the study has no such chunk");
        Err(refused(
            py,
            Kind::Argument,
            fault.value(chunk).bound(format!("0 to {}", self.study.chunks() - 1)),
        ))
    }
}

#[pymethods]
impl Study {
    /// Read a study from its text; `name` stands in messages, and plans that it names are beside that path.
    ///
    /// Raises `StudyError` with every fault: rule, file, line, column, value, bound, help.
    #[staticmethod]
    #[pyo3(signature = (text, name = "study.toml"))]
    fn from_text(py: Python<'_>, text: String, name: &str) -> PyResult<Self> {
        Self::made(py, text, name.to_string(), Vec::new())
    }

    /// Read the study at `path`, and the plans that it names. Otherwise as `from_text`.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|why| {
            let fault = Fault::new("file_must_be_readable", format!("cannot read the study: {why}"));
            refused(py, Kind::Study, fault.value(&name))
        })?;
        Self::made(py, text, name, Vec::new())
    }

    /// Make a study of nested dictionaries, one for each table; `analyse`, `simulate` and `figure` are lists of them:
    ///
    /// ```text
    /// Study.from_dict({"study": {"sets": 100},
    ///                  "generate": {"method": "emberson", "tasks": 10, "utilisation": [0.7, 0.8], "periods": "1ms..1s"},
    ///                  "analyse": [{"policy": ["edf", "rm"]}]})
    /// ```
    ///
    /// `study.text` is the text of it. Raises `ArgumentError` for what no study can have, and `StudyError`.
    #[classmethod]
    #[pyo3(signature = (parts, name = "study.toml"))]
    fn from_dict(class: &Bound<'_, PyType>, parts: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let py = class.py();
        let text = py.import("tierce._toml")?.getattr("to_toml")?.call1((parts, "a study"))?.extract()?;
        Self::made(py, text, name.to_string(), Vec::new())
    }

    /// As given, or its path.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The text that it was read from.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Sets of tasks, at all points of the grid.
    #[getter]
    fn sets(&self) -> u64 {
        self.study.jobs()
    }

    /// Points of the grid.
    #[getter]
    fn points(&self) -> usize {
        self.study.points.len()
    }

    /// Names of the tests, in their order: each gives a row for each set.
    #[getter]
    fn tests(&self) -> Vec<&str> {
        self.study.tests.iter().map(|test| &*test.name).collect()
    }

    /// Files of rows.
    #[getter]
    fn chunks(&self) -> u64 {
        self.study.chunks()
    }

    /// Names of the columns of its rows.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        tierce_sweep::columns(&self.study)
    }

    /// Do one chunk, from 0, on this thread: the bytes of its Parquet file, which are the same everywhere.
    ///
    /// For schedulers that `tierce.sweep` does not know. Releases the interpreter's lock. Raises `ArgumentError` and `StudyError`.
    fn chunk<'py>(&self, py: Python<'py>, chunk: u64) -> PyResult<Bound<'py, PyBytes>> {
        let chunk = self.within(py, chunk)?;
        let bytes = py.detach(|| tierce_sweep::file_of(&self.study, chunk));
        bytes.map(|bytes| PyBytes::new(py, &bytes)).map_err(|found| refuse(py, found))
    }

    /// Sets whose rows are in these chunks.
    fn _sets_of(&self, chunks: Vec<u64>) -> u64 {
        sets_of(&self.study, chunks)
    }

    fn _parts(&self) -> Parts {
        let files = self.study.files.iter().map(|file| (file.name.clone(), file.text.clone()));
        (self.text.clone(), self.name.clone(), files.collect())
    }

    #[staticmethod]
    fn _from_parts(py: Python<'_>, text: String, name: String, files: Files) -> PyResult<Self> {
        Self::made(py, text, name, files)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        Ok((slf.get_type().getattr("_from_parts")?, slf.get()._parts()))
    }

    fn __repr__(&self) -> String {
        let (points, sets) = (self.study.points.len(), self.study.jobs());
        let tests = self.study.tests.len();
        format!("<tierce.Study {}: {points} points, {sets} sets, {tests} tests>", self.name)
    }

    fn __str__(&self) -> &str {
        &self.text
    }
}

/// What a study has given: rows in a folder, as Parquet, and figures. As an Arrow table it is `table`.
///
/// `len(results)` is the number of rows that are there. Made by `tierce.sweep`.
#[pyclass(frozen, module = "tierce")]
pub struct Results {
    study: Arc<tierce_sweep::Study>,
    folder: Arc<Folder>,
    path: PathBuf,
}

impl Results {
    fn there(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.study.chunks()).filter(|chunk| self.folder.has(&self.study, *chunk))
    }

    fn columns(&self, rows: &[Row]) -> Columns {
        let study = &*self.study;
        let mut columns = Columns::new();
        for (name, kind, _) in types(study) {
            let cells = rows.iter().map(|row| cell(study, row, name));
            columns = match kind {
                Type::Whole => columns.whole(name, cells.map(whole)),
                Type::Seed => columns.unsigned(name, cells.map(whole)),
                Type::Real => columns.float(
                    name,
                    cells.map(|cell| if let Cell::Real(number) = cell { Some(number) } else { None }),
                ),
                Type::Bool => columns
                    .flag(name, cells.map(|cell| if let Cell::Bool(yes) = cell { Some(yes) } else { None })),
                Type::Text => columns.text(name, cells.map(text)),
            };
        }
        columns
    }
}

fn whole(cell: Cell) -> Option<u64> {
    if let Cell::Whole(number) = cell {
        Some(number)
    } else {
        None
    }
}

/// A parameter is a text everywhere if it is one somewhere.
fn text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text),
        Cell::Real(number) => Some(number.to_string()),
        _ => None,
    }
}

/// How far a run has come, and whether it is wanted.
struct Run {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

#[pymethods]
impl Results {
    #[staticmethod]
    fn _open(py: Python<'_>, study: &Study, path: PathBuf) -> PyResult<Self> {
        let folder = Folder::open(&path, &study.study, &study.text).map_err(|found| refuse(py, found))?;
        Ok(Self { study: study.study.clone(), folder: Arc::new(folder), path })
    }

    /// Do what is missing of a part, in this process. At Ctrl-C the sets that are being done are waited for; a second time not.
    #[pyo3(signature = (threads, part, progress))]
    fn _run(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        part: (u64, u64),
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = threads.unwrap_or_else(available).min(1024);
        let part = Part { number: part.0, of: part.1 };
        let total = AtomicU64::new(sets_of(&self.study, part.chunks(&self.study)));
        let run = Arc::new(Run { stop: AtomicBool::new(false), done: AtomicU64::new(0), total });
        let (study, folder, theirs) = (self.study.clone(), self.folder.clone(), run.clone());
        let work = move || {
            let Run { stop, done, total } = &*theirs;
            let mut watch = |sets, all| {
                done.store(sets, Ordering::Relaxed);
                total.store(all, Ordering::Relaxed);
            };
            tierce_sweep::run(&study, &folder, threads, part, stop, &mut watch)
        };
        let (mut progress, mut ends) = (Progress::new(progress), None);
        let mut look = |py: Python<'_>| {
            if ends.is_some() {
                return py.check_signals();
            }
            let (done, total) = (run.done.load(Ordering::Relaxed), run.total.load(Ordering::Relaxed));
            if let Err(error) = progress.at(py, done, total) {
                run.stop.store(true, Ordering::Relaxed);
                ends = Some(error);
            }
            Ok(())
        };
        let found = watched(py, work, &mut look)?.map_err(|found| refuse(py, found))?;
        if found == Ended::Done {
            look(py)?;
        }
        ends.map_or(Ok(()), Err)
    }

    fn _chunks(&self, part: (u64, u64)) -> Vec<u64> {
        Part { number: part.0, of: part.1 }.chunks(&self.study).collect()
    }

    fn _has(&self, chunk: u64) -> bool {
        self.folder.has(&self.study, chunk)
    }

    fn _keep(&self, py: Python<'_>, chunk: u64, bytes: &[u8]) -> PyResult<()> {
        let kept = py.detach(|| self.folder.keep_file(&self.study, chunk, bytes));
        kept.map_err(|found| refuse(py, found))
    }

    fn _draw(&self, py: Python<'_>) -> PyResult<()> {
        let drawn = py.detach(|| tierce_sweep::draw(&self.study, &self.folder, &self.path));
        drawn.map(drop).map_err(|found| refuse(py, found))
    }

    /// Where they are.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.path.clone()
    }

    /// All chunks are there. Only then are there figures.
    #[getter]
    fn complete(&self) -> bool {
        self.there().count() as u64 == self.study.chunks()
    }

    /// Files of the figures that are there; the numbers are beside each, as CSV.
    #[getter]
    fn figures(&self) -> Vec<PathBuf> {
        let file = |figure: &str| self.path.join(figure);
        tierce_sweep::figures_of(&self.study).map(file).filter(|path| path.exists()).collect()
    }

    /// All rows that are there, in the order of points, sets, tests (docs/sweep.md#results). Raises `StudyError`.
    #[getter]
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        let read = || {
            let mut rows = Vec::new();
            for chunk in self.there() {
                rows.append(&mut self.folder.rows(&self.study, chunk)?);
            }
            Ok(self.columns(&rows))
        };
        py.detach(read).map_err(|found| refuse(py, found))?.table(py)
    }

    /// The rows as a data set of pyarrow, which reads only what is asked of it. Needs pyarrow.
    fn dataset<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let arguments = [("format", "parquet")].into_py_dict(py)?;
        let dataset = py.import("pyarrow.dataset")?.getattr("dataset")?;
        let rows = self.path.join("rows").into_os_string().into_string();
        let rows = rows.unwrap_or_else(|path| path.to_string_lossy().into_owned());
        dataset.call((rows,), Some(&arguments))
    }

    fn __len__(&self) -> usize {
        self.there().map(|chunk| self.study.rows_of(chunk) as usize).sum()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.table(py)?.stream(py, requested_schema)
    }

    fn __repr__(&self) -> String {
        let all: u64 = (0..self.study.chunks()).map(|chunk| self.study.rows_of(chunk)).sum();
        format!("<tierce.Results {}: {} of {all} rows>", self.path.display(), self.__len__())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.table(py)?.html())
    }
}
