//! Times: whole nanoseconds, or text with a unit.

use crate::errors::{refused, Fault, Kind};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};
use tierce_plan::TIME_MAX_NS;

/// `10ms`, or a whole number of ns. `what` is the argument's name.
pub fn time_ns(given: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    let py = given.py();
    if given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>() {
        return given.extract::<u64>().ok().filter(|ns| *ns <= TIME_MAX_NS).ok_or_else(|| {
            let fault = Fault::new("time_must_fit", format!("`{what}` is a time in whole ns"));
            refused(py, Kind::Argument, fault.value(given).bound(format!("0 to {TIME_MAX_NS} ns")))
        });
    }
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_cow()?;
        return tierce_plan::parse_time(&text).map_err(|error| {
            let fault = Fault::new(error.rule(), format!("`{what}`: {}", error.message()));
            refused(py, Kind::Argument, fault.value(&text).bound("ns, us, ms, s or min"))
        });
    }
    let class = given.get_type();
    let fault = Fault::new(
        "time_is_a_number_or_text",
        format!("`{what}` is a whole number of ns, or text with a unit such as \"10ms\""),
    );
    Err(refused(py, Kind::Argument, fault.value(class)))
}

/// The same above 0.
pub fn duration_ns(given: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    match time_ns(given, what)? {
        0 => {
            let fault = Fault::new("time_must_be_positive", format!("`{what}` is longer than 0"));
            Err(refused(given.py(), Kind::Argument, fault.value("0").bound("1 ns or more")))
        }
        ns => Ok(ns),
    }
}

/// A time in ns: "1.8ms" is 1800000. A whole number is returned as it is. Raises `ArgumentError`.
#[pyfunction]
#[pyo3(signature = (time))]
pub fn parse_time(time: &Bound<'_, PyAny>) -> PyResult<u64> {
    time_ns(time, "time")
}

/// The shortest exact form of a time: 1800000 is "1.8ms".
#[pyfunction]
#[pyo3(signature = (time_ns))]
pub fn show_time(time_ns: u64) -> String {
    tierce_plan::show_time(time_ns)
}
