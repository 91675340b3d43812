//! What a simulation or a trace says of CPUs, nodes and tasks.

use crate::errors::{refused, Fault, Kind};
use crate::interruptible::interruptible;
use crate::json::to_python;
use crate::table::{preformatted, Columns, Table};
use crate::trace::Trace;
use pyo3::prelude::*;
use std::sync::Arc;
use tierce_trace::report::EdgeReport;
use tierce_trace::{Spread, Stats};

/// What was simulated or recorded, by CPU, node and task. As an Arrow table it is `tasks`. In a notebook, its tables.
#[pyclass(frozen, module = "tierce")]
pub struct Report {
    report: tierce_trace::Report,
    trace: Option<Arc<tierce_trace::Trace>>,
}

impl Report {
    pub fn new(report: tierce_trace::Report, trace: Option<tierce_trace::Trace>) -> Self {
        Self { report, trace: trace.map(Arc::new) }
    }
}

#[pymethods]
impl Report {
    /// The statistics of a trace, as `tierce trace stats`.
    #[staticmethod]
    #[pyo3(signature = (trace))]
    fn from_trace(py: Python<'_>, trace: &Trace) -> PyResult<Self> {
        let kept = trace.trace.clone();
        let report = interruptible(py, move || {
            let mut stats = Stats::new(&kept.header);
            kept.events.iter().for_each(|event| stats.event(event));
            stats.finish(kept.end_ns());
            stats.report()
        })?;
        Ok(Self { report, trace: Some(trace.trace.clone()) })
    }

    /// Name of the plan.
    #[getter]
    fn plan(&self) -> &str {
        &self.report.plan
    }

    /// Length of the simulation or recording.
    #[getter]
    fn elapsed_ns(&self) -> u64 {
        self.report.elapsed_ns
    }

    /// Jobs that were not done at their deadline, of all tasks.
    #[getter]
    fn misses(&self) -> u64 {
        self.report.tasks.iter().map(|task| task.misses).sum()
    }

    /// A row for each task: name, cpu_ns, released, jobs (completed ones), misses, response_min_ns, _avg_ns, _p99_ns (relative error
    /// at most 1/128) and _max_ns (null without jobs), tardiness_max_ns, switches, migrations.
    #[getter]
    fn tasks(&self, py: Python<'_>) -> PyResult<Table> {
        let tasks = &self.report.tasks;
        let response =
            |of: fn(&Spread) -> u64| tasks.iter().map(move |task| task.response_ns.as_ref().map(of));
        Columns::new()
            .text("name", tasks.iter().map(|task| Some(&task.name)))
            .whole("cpu_ns", tasks.iter().map(|task| Some(task.cpu_ns)))
            .whole("released", tasks.iter().map(|task| Some(task.released)))
            .whole("jobs", tasks.iter().map(|task| Some(task.jobs)))
            .whole("misses", tasks.iter().map(|task| Some(task.misses)))
            .whole("response_min_ns", response(|spread| spread.min))
            .whole("response_avg_ns", response(|spread| spread.avg))
            .whole("response_p99_ns", response(|spread| spread.p99))
            .whole("response_max_ns", response(|spread| spread.max))
            .whole("tardiness_max_ns", tasks.iter().map(|task| Some(task.tardiness_ns.max)))
            .whole("switches", tasks.iter().map(|task| Some(task.switches)))
            .whole("migrations", tasks.iter().map(|task| Some(task.migrations)))
            .table(py)
    }

    /// A row for each node: name, policy, level, cpu_ns.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Table> {
        let nodes = &self.report.nodes;
        Columns::new()
            .text("name", nodes.iter().map(|node| Some(&node.name)))
            .text("policy", nodes.iter().map(|node| Some(&node.policy)))
            .whole("level", nodes.iter().map(|node| Some(node.level.into())))
            .whole("cpu_ns", nodes.iter().map(|node| Some(node.cpu_ns)))
            .table(py)
    }

    /// A row for each edge: child, parent (`cpu0` above a root), cpu_ns, grants, throttles, replenishments, budget_ns (null without one).
    #[getter]
    fn edges(&self, py: Python<'_>) -> PyResult<Table> {
        let nodes =
            self.report.nodes.iter().flat_map(|node| node.under.iter().map(|edge| (&node.name, edge)));
        let tasks =
            self.report.tasks.iter().flat_map(|task| task.under.iter().map(|edge| (&task.name, edge)));
        let edges: Vec<(&String, &EdgeReport)> = nodes.chain(tasks).collect();
        Columns::new()
            .text("child", edges.iter().map(|(child, _)| Some(child)))
            .text("parent", edges.iter().map(|(_, edge)| Some(&edge.parent)))
            .whole("cpu_ns", edges.iter().map(|(_, edge)| Some(edge.cpu_ns)))
            .whole("grants", edges.iter().map(|(_, edge)| Some(edge.grants)))
            .whole("throttles", edges.iter().map(|(_, edge)| Some(edge.throttles)))
            .whole("replenishments", edges.iter().map(|(_, edge)| Some(edge.replenishments)))
            .whole("budget_ns", edges.iter().map(|(_, edge)| edge.budget_ns))
            .table(py)
    }

    /// A row for each CPU: cpu, used_ns, idle_ns, stolen_ns, switches; used + idle + stolen = elapsed.
    #[getter]
    fn cpus(&self, py: Python<'_>) -> PyResult<Table> {
        let cpus = &self.report.cpus;
        Columns::new()
            .whole("cpu", cpus.iter().map(|cpu| Some(cpu.cpu.into())))
            .whole("used_ns", cpus.iter().map(|cpu| Some(cpu.used_ns)))
            .whole("idle_ns", cpus.iter().map(|cpu| Some(cpu.idle_ns)))
            .whole("stolen_ns", cpus.iter().map(|cpu| Some(cpu.stolen_ns)))
            .whole("switches", cpus.iter().map(|cpu| Some(cpu.switches)))
            .table(py)
    }

    /// A row for each chain of the plan: name, response_max_ns, reaction_max_ns, age_max_ns (null where nothing came through).
    #[getter]
    fn chains(&self, py: Python<'_>) -> PyResult<Table> {
        let chains = &self.report.chains;
        let max = |spread: &Option<Spread>| spread.as_ref().map(|spread| spread.max);
        Columns::new()
            .text("name", chains.iter().map(|chain| Some(&chain.name)))
            .whole("response_max_ns", chains.iter().map(|chain| max(&chain.response_ns)))
            .whole("reaction_max_ns", chains.iter().map(|chain| max(&chain.reaction_ns)))
            .whole("age_max_ns", chains.iter().map(|chain| max(&chain.age_ns)))
            .table(py)
    }

    /// The events. Raises `TraceError` unless `simulate` was told to keep them.
    #[getter]
    fn trace(&self, py: Python<'_>) -> PyResult<Trace> {
        self.trace.clone().map(Trace::of).ok_or_else(|| {
            let mut fault = Fault::new("trace_must_be_kept", "this report has no trace");
            fault.help = Some("simulate with trace=True".into());
            refused(py, Kind::Trace, fault)
        })
    }

    /// The tables of `tierce sim`.
    #[getter]
    fn text(&self) -> String {
        self.report.tables().to_string()
    }

    /// All of it, as `tierce sim --json` (docs/simulator.md).
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = serde_json::to_value(&self.report).map_err(|error| {
            refused(py, Kind::Engine, Fault::new("report_must_be_written", error.to_string()))
        })?;
        to_python(py, &json)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, pyo3::types::PyCapsule>> {
        self.tasks(py)?.stream(py, requested_schema)
    }

    fn __repr__(&self) -> String {
        let elapsed = tierce_plan::show_time(self.report.elapsed_ns);
        format!("<tierce.Report: {} for {elapsed}, {} misses>", self.report.plan, self.misses())
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn _repr_html_(&self) -> String {
        preformatted(&self.text())
    }
}
