//! The verdict on a plan.

use crate::errors::{faults, of_plan, refused, Fault, Kind};
use crate::json::to_python;
use crate::table::{preformatted, Columns, Table};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;
use tierce_admission::{Admission, Promise};
use tierce_analysis::Response;
use tierce_plan::{Load, Plan};

/// The verdict on a plan: true as a condition if it holds. In a notebook, the plan's tree with ticks and crosses.
#[pyclass(frozen, module = "tierce")]
pub struct Check {
    plan: Arc<Plan>,
    admission: Admission,
}

impl Check {
    pub fn new(plan: Arc<Plan>, admission: Admission) -> Self {
        Self { plan, admission }
    }

    /// As people read it.
    pub fn text(&self) -> String {
        self.admission.outline(&self.plan)
    }
}

/// The strongest guarantee.
fn strongest(promises: &[Promise]) -> Option<String> {
    promises.first().map(|promise| promise.guarantee.to_string())
}

#[pymethods]
impl Check {
    /// Every law holds, and every guarantee asked for is shown.
    #[getter]
    fn holds(&self) -> bool {
        self.admission.holds
    }

    /// The tree, then every failure in plain words with the smallest change that fixes it.
    #[getter(text)]
    fn shown(&self) -> String {
        self.text()
    }

    /// What does not hold, each with rule, place, value and bound: a list of `Fault`, empty if all holds.
    #[getter]
    fn faults<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        faults(py, &of_plan(&self.admission.faults(&self.plan)))
    }

    /// A row for each node: name, policy, holds (null: nothing is tested), guarantee (the strongest).
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Table> {
        let (nodes, verdicts) = (&self.plan.nodes, &self.admission.nodes);
        let policy = |number| tierce_plan::policies::by_number(number).map(|policy| policy.name);
        Columns::new()
            .text("name", nodes.iter().map(|node| Some(&node.name)))
            .text("policy", nodes.iter().map(|node| policy(node.policy)))
            .flag("holds", verdicts.iter().map(|verdict| verdict.law.map(|_| verdict.failures.is_empty())))
            .text("guarantee", verdicts.iter().map(|verdict| strongest(&verdict.promises)))
            .table(py)
    }

    /// A row for each task: name, deadline_ns, wcrt_ns (a bound on the response time, null without one), deadlines ("met", …), guarantee.
    #[getter]
    fn tasks(&self, py: Python<'_>) -> PyResult<Table> {
        let (tasks, verdicts) = (&self.plan.tasks, &self.admission.tasks);
        Columns::new()
            .text("name", tasks.iter().map(|task| Some(&task.name)))
            .whole("deadline_ns", tasks.iter().map(|task| task.load.as_ref().and_then(Load::deadline_ns)))
            .whole("wcrt_ns", verdicts.iter().map(|verdict| verdict.response.and_then(Response::ns)))
            .text("deadlines", verdicts.iter().map(|verdict| verdict.deadlines.name()))
            .text("guarantee", verdicts.iter().map(|verdict| strongest(&verdict.promises)))
            .table(py)
    }

    /// The guarantee of one node, task or set, step by step. Raises `ArgumentError` where there is none of that name.
    fn explain(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.admission.explain(&self.plan, name).map_err(|close| {
            let mut fault =
                Fault::new("name_must_be_known", "the plan has no node, chain, task or set of that name");
            fault.help = close.map(|close| format!("did you mean `{close}`?"));
            refused(py, Kind::Argument, fault.value(name))
        })
    }

    /// All of it, as `tierce check --json` (docs/plan-language.md).
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.admission.to_json(&self.plan))
    }

    fn __bool__(&self) -> bool {
        self.admission.holds
    }

    fn __repr__(&self) -> String {
        let holds = if self.admission.holds { "holds" } else { "does not hold" };
        format!("<tierce.Check: {} {holds}>", self.plan.name)
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn _repr_html_(&self) -> String {
        preformatted(&self.text())
    }
}
