//! Servers to CPUs, and the plan of that.

use crate::analysis::named;
use crate::errors::{refused, Fault, Kind};
use crate::interruptible::interruptible;
use crate::plan::Plan;
use crate::servers::plain_entries;
use crate::table::{Columns, Table};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tierce_admission::servers::plan_of_servers;
use tierce_analysis::placement::{Order, Question, Strategy};
use tierce_analysis::question::Refused;
use tierce_analysis::Response;
use tierce_policy::CPUS_MAX;

/// Put servers on CPUs, each on one: as `tierce place`.
///
/// `servers`: as tasks of `analyse`; a work is the budget in each period. `strategy`: "first", "best", "worst", "period", "mixed", or
/// "switches" (the best of these, then improved while switches between servers become fewer). `order`: of the servers of a CPU,
/// "fixed-priority" (without priorities a shorter period is higher) or "edf". Every server gets its budget within its deadline, by
/// the exact test. Releases the interpreter's lock; Ctrl-C ends it. Raises `AnalysisError`, also where a server fits on no CPU
/// (`server_fits_nowhere`), and `ArgumentError`.
#[pyfunction]
#[pyo3(signature = (servers, strategy, *, cpus, order = "fixed-priority"))]
pub fn place(
    py: Python<'_>,
    servers: &Bound<'_, PyAny>,
    strategy: &str,
    cpus: u32,
    order: &str,
) -> PyResult<Placement> {
    let strategy = named::<Strategy>(py, "strategy", strategy)?;
    let order = named::<Order>(py, "order", order)?;
    if !(1..=CPUS_MAX).contains(&cpus) {
        let fault = Fault::new("cpus_within_range", "`cpus` is the number of CPUs of the machine");
        return Err(refused(py, Kind::Argument, fault.value(cpus).bound(format!("1 to {CPUS_MAX}"))));
    }
    let entries = plain_entries(servers)?;
    let refuse = |found: Refused| refused(py, Kind::Analysis, Fault::new(found.rule, found.message));
    let asked = Question::new(entries.to_vec(), cpus, strategy, order).map_err(refuse)?;
    let (asked, found) = interruptible(py, move || {
        let found = asked.place();
        (asked, found)
    })?;
    match found {
        Ok(found) => Ok(Placement { asked, found }),
        Err(index) => Err(refuse(asked.refusal(index))),
    }
}

/// Where servers are. As an Arrow table it is `servers`.
#[pyclass(frozen, module = "tierce")]
pub struct Placement {
    asked: Question,
    found: tierce_analysis::placement::Placement,
}

#[pymethods]
impl Placement {
    /// A row for each: name, cpu, budget_ns, period_ns, deadline_ns, and response_ns, null with "edf".
    #[getter]
    fn servers(&self, py: Python<'_>) -> PyResult<Table> {
        let (tasks, found) = (&self.asked.tasks, &self.found);
        Columns::new()
            .text("name", self.asked.entries.iter().map(|entry| Some(&entry.name)))
            .whole("cpu", found.cpu_of.iter().map(|cpu| Some(*cpu as u64)))
            .whole("budget_ns", tasks.iter().map(|task| Some(task.work_ns)))
            .whole("period_ns", tasks.iter().map(|task| Some(task.period_ns)))
            .whole("deadline_ns", tasks.iter().map(|task| Some(task.deadline_ns)))
            .whole("response_ns", found.responses.iter().map(|response| response.and_then(Response::ns)))
            .table(py)
    }

    /// How often servers begin or go on, on all CPUs: an estimate for arbitrary phases.
    #[getter]
    fn switches_per_second(&self) -> f64 {
        self.asked.switches(&self.found.cpu_of) as f64 / 1e6
    }

    /// The plan of it; `rest` is the name of a default node for the time that is left. Raises `AnalysisError` where a server's name
    /// cannot be one in a plan.
    #[pyo3(signature = (rest = None))]
    fn plan(&self, py: Python<'_>, rest: Option<&str>) -> PyResult<Plan> {
        let text = plan_of_servers(&self.asked, &self.found, rest);
        let text =
            text.map_err(|found| refused(py, Kind::Analysis, Fault::new(found.rule, found.message)))?;
        Plan::from_text(py, text, "plan.toml", self.asked.cpus)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.servers(py)?.stream(py, requested_schema)
    }

    fn __repr__(&self) -> String {
        let servers = self.asked.entries.len();
        let switches = self.switches_per_second();
        format!("<tierce.Placement: {servers} servers on {} CPUs, {switches:.1} switches/s>", self.asked.cpus)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.servers(py)?.html())
    }
}
