//! Plans: read, checked, simulated.

use crate::check::Check;
use crate::errors::{plan_error, refused, Fault, Kind};
use crate::interruptible::interruptible;
use crate::report::Report;
use crate::simulation::{simulate, Asked};
use crate::table::preformatted;
use crate::time::{duration_ns, time_ns};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::path::PathBuf;
use std::sync::Arc;
use tierce_admission::PlanExt as _;
use tierce_plan::Options;
use tierce_policy::CPUS_MAX;

/// A plan: how much CPU time each part of a system gets (docs/plan-language.md).
///
/// Made by `from_text`, `from_file` or `from_dict`; never changed. In a notebook it shows its tree with the verdict of `check`.
#[pyclass(frozen, module = "tierce")]
pub struct Plan(Arc<tierce_plan::Plan>);

/// Largest floor of timers.
const FLOOR_MAX_NS: u64 = 1_000_000;

fn options(py: Python<'_>, cpus: u32) -> PyResult<Options> {
    if (1..=CPUS_MAX).contains(&cpus) {
        return Ok(Options { cpus });
    }
    let fault = Fault::new("cpus_within_range", "`cpus` is the number of CPUs of the machine");
    Err(refused(py, Kind::Argument, fault.value(cpus).bound(format!("1 to {CPUS_MAX}"))))
}

fn text_fault(py: Python<'_>, text: &str) -> PyResult<()> {
    if u32::try_from(text.len()).is_ok() {
        return Ok(());
    }
    let fault = Fault::new("file_must_fit", "the text is too long");
    Err(refused(py, Kind::Plan, fault.value(text.len()).bound(u32::MAX)))
}

impl Plan {
    fn made(
        py: Python<'_>,
        read: impl FnOnce() -> Result<tierce_plan::Plan, tierce_plan::Faults> + Send + 'static,
    ) -> PyResult<Self> {
        let plan = interruptible(py, read)?.map_err(|faults| plan_error(py, &faults))?;
        Ok(Self(Arc::new(plan)))
    }
}

#[pymethods]
impl Plan {
    /// Read a plan from its text; `name` stands in messages, and files that it names are beside that path.
    ///
    /// `cpus` is the number of CPUs of the machine (1 to 512); a plan that names fewer has its default node on the others.
    /// Raises `PlanError` with every fault: rule, file, line, column, value, bound, help.
    #[staticmethod]
    #[pyo3(signature = (text, name = "plan.toml", *, cpus = 1))]
    pub fn from_text(py: Python<'_>, text: String, name: &str, cpus: u32) -> PyResult<Self> {
        let options = options(py, cpus)?;
        text_fault(py, &text)?;
        let name = name.to_string();
        Self::made(py, move || tierce_plan::Plan::parse_with(&text, &name, options))
    }

    /// Read the plan at `path`, and what it includes. Otherwise as `from_text`.
    #[staticmethod]
    #[pyo3(signature = (path, *, cpus = 1))]
    fn from_file(py: Python<'_>, path: PathBuf, cpus: u32) -> PyResult<Self> {
        let options = options(py, cpus)?;
        Self::made(py, move || tierce_plan::Plan::load_with(path, options))
    }

    /// Make a plan of nested dictionaries, one for each table of the plan language:
    ///
    /// ```text
    /// Plan.from_dict({"node": {"top": {"policy": "edf", "cpu": 0}},
    ///                 "task": {"a": {"under": {"top": {}}, "load": {"period": "10ms", "work": "2ms"}}}})
    /// ```
    ///
    /// Their order is that of the text, which breaks ties. What is `None` is left out. `plan.text` is the text. Raises `ArgumentError`
    /// for what no plan can have, and `PlanError`.
    #[classmethod]
    #[pyo3(signature = (parts, name = "plan.toml", *, cpus = 1))]
    fn from_dict(
        class: &Bound<'_, PyType>,
        parts: &Bound<'_, PyAny>,
        name: &str,
        cpus: u32,
    ) -> PyResult<Self> {
        let py = class.py();
        let text = py.import("tierce._toml")?.getattr("to_toml")?.call1((parts,))?.extract()?;
        Self::from_text(py, text, name, cpus)
    }

    /// As given, or its path.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The text that it was read from.
    #[getter]
    fn text(&self) -> &str {
        self.0.sources.0.first().map_or("", |source| &source.text)
    }

    /// Number of CPUs.
    #[getter]
    fn cpus(&self) -> u32 {
        self.0.machine.cpus
    }

    /// Names of the schedulers, in the order of the text.
    #[getter]
    fn nodes(&self) -> Vec<&str> {
        self.0.nodes.iter().map(|node| &*node.name).collect()
    }

    /// Names of the tasks, in the order of the text; `name[0]` is a member of a set.
    #[getter]
    fn tasks(&self) -> Vec<&str> {
        self.0.tasks.iter().map(|task| &*task.name).collect()
    }

    /// Is it schedulable, and do its guarantees hold? As `tierce check`. Releases the interpreter's lock; Ctrl-C ends it.
    fn check(&self, py: Python<'_>) -> PyResult<Check> {
        let plan = self.0.clone();
        let admission = interruptible(py, move || plan.admit())?;
        Ok(Check::new(self.0.clone(), admission))
    }

    /// Play the plan for `duration` (ns, or text such as "2s"): as `tierce sim`, and the same result everywhere.
    ///
    /// `seed`: of everything random. `floor`: shortest timer that is set, 0 to 1 ms. `trace`: keep the events, 32 bytes each. `check`:
    /// test every invariant of the engine after each step (slow). `progress`: called with (simulated ns, all ns); `None` draws a bar if
    /// standard error is a terminal, `False` never, `True` always. Releases the interpreter's lock; Ctrl-C ends it. Raises `PlanError`
    /// where the plan cannot be played, and `EngineError` for a bug of tierce.
    #[pyo3(signature = (duration, *, seed = 1, floor = None, trace = false, check = false, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of its own in Python")]
    fn simulate(
        &self,
        py: Python<'_>,
        duration: &Bound<'_, PyAny>,
        seed: u64,
        floor: Option<&Bound<'_, PyAny>>,
        trace: bool,
        check: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Report> {
        let floor_ns = floor.map_or(Ok(0), |floor| time_ns(floor, "floor"))?;
        if floor_ns > FLOOR_MAX_NS {
            let fault = Fault::new("floor_within_range", "`floor` is the shortest timer that is set");
            return Err(refused(py, Kind::Argument, fault.value(floor_ns).bound("0 to 1 ms")));
        }
        let duration_ns = duration_ns(duration, "duration")?;
        let options = tierce_sim::Options { seed, floor_ns, trace, check, ..Default::default() };
        simulate(py, &self.0, Asked { duration_ns, options, progress })
    }

    fn __repr__(&self) -> String {
        let (nodes, tasks) = (self.0.nodes.len(), self.0.tasks.len());
        format!("<tierce.Plan {}: {nodes} nodes, {tasks} tasks, {} CPUs>", self.0.name, self.0.machine.cpus)
    }

    fn __str__(&self) -> &str {
        self.text()
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(preformatted(&self.check(py)?.text()))
    }
}
