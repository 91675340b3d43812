//! Results as columns, which Arrow takes without copies (the PyCapsule interface of Arrow).

use crate::errors::{refused, Fault, Kind};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use pyo3::IntoPyObjectExt;
use std::fmt::Write as _;
use std::sync::Arc;

/// Rows that a table shows of itself.
const SHOWN: usize = 20;

/// Results as columns.
///
/// `polars.DataFrame(table)`, `pyarrow.table(table)` and `pandas.DataFrame.from_arrow(table)` take them without copies, by Arrow's
/// PyCapsule interface. `table["name"]` is a column as a list, `len(table)` the number of rows. Whole numbers are int64 (seeds uint64), text is
/// utf8; any of them may be null.
#[pyclass(frozen, module = "tierce")]
pub struct Table(RecordBatch);

/// The columns of a table, one after the other.
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub fn new() -> Self {
        Self { fields: Vec::new(), arrays: Vec::new() }
    }

    fn with(mut self, name: &str, array: ArrayRef) -> Self {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
        self
    }

    /// Times and numbers; none is above 2^60 but what wraps around on purpose.
    pub fn whole(self, name: &str, values: impl IntoIterator<Item = Option<u64>>) -> Self {
        self.signed(name, values.into_iter().map(|value| value.map(|value| value as i64)))
    }

    pub fn signed(self, name: &str, values: impl IntoIterator<Item = Option<i64>>) -> Self {
        self.with(name, Arc::new(Int64Array::from_iter(values)))
    }

    /// Of 64 bits.
    pub fn unsigned(self, name: &str, values: impl IntoIterator<Item = Option<u64>>) -> Self {
        self.with(name, Arc::new(UInt64Array::from_iter(values)))
    }

    pub fn float(self, name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Self {
        self.with(name, Arc::new(Float64Array::from_iter(values)))
    }

    pub fn flag(self, name: &str, values: impl IntoIterator<Item = Option<bool>>) -> Self {
        self.with(name, Arc::new(BooleanArray::from_iter(values)))
    }

    pub fn text<T: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = Option<T>>) -> Self {
        self.with(name, Arc::new(StringArray::from_iter(values)))
    }

    pub fn table(self, py: Python<'_>) -> PyResult<Table> {
        let rows = RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays);
        let bug = |error: arrow_schema::ArrowError| {
            refused(
                py,
                Kind::Engine,
                Fault::new("columns_are_of_one_length", format!("a bug of tierce: {error}")),
            )
        };
        rows.map(Table).map_err(bug)
    }
}

/// One cell as an object of Python.
fn cell<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let any = column.as_any();
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Int64 => any.downcast_ref::<Int64Array>().map(|all| all.value(row)).into_bound_py_any(py),
        DataType::UInt64 => any.downcast_ref::<UInt64Array>().map(|all| all.value(row)).into_bound_py_any(py),
        DataType::Float64 => {
            any.downcast_ref::<Float64Array>().map(|all| all.value(row)).into_bound_py_any(py)
        }
        DataType::Boolean => {
            any.downcast_ref::<BooleanArray>().map(|all| all.value(row)).into_bound_py_any(py)
        }
        _ => any.downcast_ref::<StringArray>().map(|all| all.value(row)).into_bound_py_any(py),
    }
}

/// The same as text; times are shown with their unit.
fn shown(column: &dyn Array, name: &str, row: usize) -> String {
    let any = column.as_any();
    if column.is_null(row) {
        return String::new();
    }
    if let Some(all) = any.downcast_ref::<Int64Array>() {
        let value = all.value(row);
        if name.ends_with("_ns") {
            let sign = if value < 0 { "-" } else { "" };
            return format!("{sign}{}", tierce_plan::show_time(value.unsigned_abs()));
        }
        return value.to_string();
    }
    if let Some(all) = any.downcast_ref::<UInt64Array>() {
        return all.value(row).to_string();
    }
    if let Some(all) = any.downcast_ref::<Float64Array>() {
        return format!("{:.6}", all.value(row));
    }
    if let Some(all) = any.downcast_ref::<BooleanArray>() {
        return if all.value(row) { "yes".into() } else { "no".into() };
    }
    any.downcast_ref::<StringArray>().map_or(String::new(), |all| all.value(row).to_string())
}

/// Text within HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Table {
    fn cells(&self) -> Vec<Vec<String>> {
        let schema = self.0.schema();
        let columns = schema.fields().iter().zip(self.0.columns());
        let head = |(field, column): (&Arc<Field>, &ArrayRef)| {
            (0..self.0.num_rows().min(SHOWN)).map(|row| shown(column, field.name(), row)).collect()
        };
        columns.map(head).collect()
    }

    fn more(&self) -> Option<String> {
        let more = self.0.num_rows().saturating_sub(SHOWN);
        (more > 0).then(|| format!("… {more} more"))
    }

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<&ArrayRef> {
        self.0.column_by_name(name).ok_or_else(|| {
            let names = self.columns().join(", ");
            let fault = Fault::new("column_must_be_known", format!("there is no such column, but {names}"));
            refused(py, Kind::Argument, fault.value(name))
        })
    }
}

/// Text in columns as HTML, whatever the notebook makes of such text.
pub fn preformatted(text: &str) -> String {
    let style = "font-family: monospace; white-space: pre; overflow-x: auto";
    format!("<pre style=\"{style}\">{}</pre>", escape(text))
}

impl Table {
    /// Any schema may be asked for; what comes is the table's own, as the interface allows.
    pub fn stream<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c_str!("arrow_array_stream"))
    }

    pub fn html(&self) -> String {
        let (names, cells) = (self.columns(), self.cells());
        let row = |tag: &str, texts: &mut dyn Iterator<Item = &String>| {
            let texts: String = texts.map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect();
            format!("<tr>{texts}</tr>")
        };
        let head = row("th", &mut names.iter());
        let rows = cells.first().map_or(0, Vec::len);
        let body: String =
            (0..rows).map(|at| row("td", &mut cells.iter().map(|column| &column[at]))).collect();
        let more = self.more().map_or(String::new(), |more| format!("<p>{more}</p>"));
        format!("<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}")
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.find(py, name)?;
        let list = PyList::empty(py);
        (0..column.len()).try_for_each(|row| list.append(cell(py, column, row)?))?;
        Ok(list)
    }

    /// A dictionary for each row.
    pub fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (list, names) = (PyList::empty(py), self.columns());
        for row in 0..self.0.num_rows() {
            let dict = PyDict::new(py);
            for (name, column) in names.iter().zip(self.0.columns()) {
                dict.set_item(name, cell(py, column, row)?)?;
            }
            list.append(dict)?;
        }
        Ok(list)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.stream(py, requested_schema)
    }

    fn __repr__(&self) -> String {
        let (names, cells) = (self.columns(), self.cells());
        let rows = cells.first().map_or(0, Vec::len);
        let mut lines = vec![String::new(); rows + 1];
        for (name, column) in names.iter().zip(&cells) {
            let width = column.iter().chain([name]).map(|text| text.chars().count()).max().unwrap_or(0);
            for (line, text) in lines.iter_mut().zip([name].into_iter().chain(column)) {
                let _ = write!(line, "{text:<width$}  ");
            }
        }
        let lines: Vec<_> = lines.iter().map(|line| line.trim_end().to_string()).chain(self.more()).collect();
        lines.join("\n")
    }

    fn _repr_html_(&self) -> String {
        self.html()
    }
}
