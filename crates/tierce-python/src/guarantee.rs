//! Guarantees converted into each other.

use crate::errors::{error, refused, Fault, Kind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tierce_guarantee::{derive, weakest, Exact, Faults, Free, Parameter, Wanted};

fn unreadable(py: Python<'_>, text: &str, found: &Faults) -> PyErr {
    let one = |fault: &tierce_guarantee::Fault| Fault {
        rule: fault.rule.into(),
        message: fault.message.clone(),
        file: Some(text.into()),
        line: Some(1),
        column: Some(fault.column),
        value: Some(fault.value.clone()),
        bound: fault.bound.clone(),
        help: fault.hint.clone(),
    };
    error(py, Kind::Guarantee, &found.0.iter().map(one).collect::<Vec<_>>(), None)
}

fn wanted(py: Python<'_>, text: &str) -> PyResult<Wanted> {
    Wanted::parse(text).map_err(|faults| unreadable(py, text, &faults))
}

/// Exact: `40/3ms` is a time here.
fn time(py: Python<'_>, text: Option<String>, what: &str) -> PyResult<Option<Exact>> {
    let Some(text) = text else { return Ok(None) };
    let found = Parameter::Period.parse(&text).map_err(|(rule, message)| {
        let fault = Fault::new(rule, format!("`{what}`: {message}"));
        refused(py, Kind::Argument, fault.value(&text).bound(Parameter::Period.bound(rule)))
    })?;
    if found == tierce_guarantee::whole(0) {
        let fault = Fault::new("number_must_be_positive", format!("`{what}` must be more"));
        return Err(refused(py, Kind::Argument, fault.value(&text).bound("above 0")));
    }
    Ok(Some(found))
}

/// `tierce.convert_guarantee` as a dictionary.
#[pyfunction]
#[pyo3(signature = (given, want, *, period = None, stretch = None, deadlines = None))]
pub fn convert_guarantee<'py>(
    py: Python<'py>,
    given: &str,
    want: &str,
    period: Option<String>,
    stretch: Option<String>,
    deadlines: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let (from, to) = (wanted(py, given)?, wanted(py, want)?);
    let free = Free {
        period: time(py, period, "period")?,
        stretch: time(py, stretch, "stretch")?,
        deadlines: time(py, deadlines, "deadlines")?,
    };
    let solves_left = from.full().is_none();
    let derived = match (from.full(), to.full()) {
        (Some(source), _) => derive(&source, &to, &free),
        (None, Some(goal)) => weakest(&from, &goal, &free),
        (None, None) => {
            let fault =
                Fault::new("one_side_has_all_numbers", "with a ? on the left, the right has all its numbers");
            return Err(refused(py, Kind::Guarantee, fault.value(want)));
        }
    };
    let result = PyDict::new(py);
    match derived {
        Err(refusal) => {
            result.set_item("follows", false)?;
            result.set_item("rule", refusal.rule)?;
            result.set_item("reason", refusal.reason.to_string())?;
        }
        Ok(derivation) => {
            let found = if solves_left { &derivation.source } else { derivation.result() };
            let steps = PyList::empty(py);
            for step in &derivation.steps {
                let one = PyDict::new(py);
                one.set_item("to", step.to.to_string())?;
                one.set_item("rule", step.rule.to_string())?;
                one.set_item("formula", step.formula.to_string())?;
                one.set_item("because", step.because.to_string())?;
                steps.append(one)?;
            }
            result.set_item("follows", true)?;
            result.set_item("result", found.to_string())?;
            result.set_item("steps", steps)?;
        }
    }
    Ok(result)
}
