//! A plan played.

use crate::errors::{error, of_plan, refused, Fault, Kind};
use crate::interruptible::{Progress, SLICE};
use crate::report::Report;
use pyo3::prelude::*;
use std::time::Instant;
use tierce_admission::PlanExt as _;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::Trace;

/// Simulated time between two looks at the clock.
const STEP_NS: u64 = 1_000_000;

/// What is asked of a simulation.
pub struct Asked {
    pub duration_ns: u64,
    pub options: Options,
    pub progress: Option<Py<PyAny>>,
}

pub fn simulate(py: Python<'_>, plan: &Plan, asked: Asked) -> PyResult<Report> {
    let Asked { duration_ns, options, progress } = asked;
    let traced = options.trace;
    let simulation = py.detach(|| Simulation::new(plan, options)).map_err(|why| {
        let found = plan.admit().faults(plan);
        match found.faults.is_empty() {
            true => refused(py, Kind::Plan, Fault::new("graph_must_be_built", why.to_string())),
            false => {
                error(py, Kind::Plan, &of_plan(&found), Some(format!("{why}\n{}", found.report_plain())))
            }
        }
    });
    let (mut simulation, mut progress) = (simulation?, Progress::new(progress));
    while simulation.now_ns() < duration_ns {
        let played = py.detach(|| {
            let began = Instant::now();
            while simulation.now_ns() < duration_ns && began.elapsed() < SLICE {
                simulation.run_until(duration_ns.min(simulation.now_ns().saturating_add(STEP_NS)))?;
            }
            Ok::<_, tierce_sim::Violation>(())
        });
        played.map_err(|broken| {
            let fault = Fault::new("engine_keeps_its_rules", format!("a bug of tierce: {broken}"));
            refused(py, Kind::Engine, fault)
        })?;
        progress.at(py, simulation.now_ns(), duration_ns)?;
    }
    let (report, trace) = py.detach(|| {
        let trace = traced.then(|| {
            let mut header = simulation.header();
            header.end_ns = Some(duration_ns);
            let mut events = simulation.take_events();
            events.append(&mut simulation.closing_events());
            Trace { header, events }
        });
        (simulation.report(), trace)
    });
    Ok(Report::new(report, trace))
}
