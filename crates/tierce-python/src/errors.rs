//! Refusals as exceptions of `tierce/_errors.py`: rule, place, value, bound, help.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyModule};
use tierce_plan::Faults;

/// What is wrong, once.
#[derive(Default)]
pub struct Fault {
    pub rule: String,
    pub message: String,
    pub file: Option<String>,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub value: Option<String>,
    pub bound: Option<String>,
    pub help: Option<String>,
}

impl Fault {
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: message.into(), ..Self::default() }
    }

    /// Of a text `rule: message`, as refusals of options are written; `--option` is `option` here.
    pub fn of_text(text: &str) -> Self {
        let text = text.replace("--", "");
        let is_rule = |rule: &&str| {
            !rule.is_empty() && rule.bytes().all(|b| b.is_ascii_lowercase() || b"_0123456789".contains(&b))
        };
        match text.split_once(": ").filter(|(rule, _)| is_rule(rule)) {
            Some((rule, message)) => Self::new(rule, message),
            None => Self::new("argument_must_be_valid", text),
        }
    }

    pub fn value(mut self, value: impl ToString) -> Self {
        self.value = Some(value.to_string());
        self
    }

    pub fn bound(mut self, bound: impl ToString) -> Self {
        self.bound = Some(bound.to_string());
        self
    }
}

/// The exceptions, by the names that they have in Python.
#[derive(Clone, Copy)]
pub enum Kind {
    Argument,
    Plan,
    Analysis,
    Guarantee,
    Trace,
    Study,
    Engine,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Argument => "ArgumentError",
            Self::Plan => "PlanError",
            Self::Analysis => "AnalysisError",
            Self::Guarantee => "GuaranteeError",
            Self::Trace => "TraceError",
            Self::Study => "StudyError",
            Self::Engine => "EngineError",
        }
    }
}

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = MODULE.get_or_try_init(py, || py.import("tierce._errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// As a list of `tierce.Fault`.
pub fn faults<'py>(py: Python<'py>, faults: &[Fault]) -> PyResult<Bound<'py, PyList>> {
    let class = module(py)?.getattr("Fault")?;
    let list = PyList::empty(py);
    for fault in faults {
        let Fault { rule, message, file, line, column, value, bound, help } = fault;
        list.append(class.call1((rule, message, file, line, column, value, bound, help))?)?;
    }
    Ok(list)
}

/// An exception with these faults; `report` is what it says as text, if that is not a line for each.
pub fn error(py: Python<'_>, kind: Kind, found: &[Fault], report: Option<String>) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        module(py)?.getattr(kind.name())?.call1((faults(py, found)?, report))
    };
    made().map_or_else(|error| error, PyErr::from_value)
}

/// An exception with one fault.
pub fn refused(py: Python<'_>, kind: Kind, fault: Fault) -> PyErr {
    error(py, kind, &[fault], None)
}

/// Faults of a plan.
pub fn of_plan(found: &Faults) -> Vec<Fault> {
    let one = |fault: &tierce_plan::Fault| {
        let place = found.sources.place(fault.spot);
        Fault {
            rule: fault.rule.into(),
            message: fault.message.clone(),
            file: Some(place.file),
            line: Some(place.line),
            column: Some(place.column),
            value: fault.value.clone(),
            bound: fault.bound.clone(),
            help: fault.hint.clone(),
        }
    };
    found.faults.iter().map(one).collect()
}

/// The exception for them.
pub fn plan_error(py: Python<'_>, found: &Faults) -> PyErr {
    error(py, Kind::Plan, &of_plan(found), Some(found.report_plain()))
}
