//! Numbers for plans: the smallest reservation of a set of tasks, and tasks split over CPUs.

use crate::analysis::named_or;
use crate::errors::{refused, Fault, Kind};
use crate::interruptible::interruptible;
use crate::table::{Columns, Table};
use crate::task_set::entries;
use crate::time::{duration_ns, time_ns};
use pyo3::prelude::*;
use std::sync::Arc;
use tierce_analysis::server::{frontier_of, usual_periods, Order};
use tierce_analysis::split::{assign, Algorithm, Costs, Question, Refusal};
use tierce_analysis::{Entry, Task};

/// Whole jobs with preemption, without what only an analysis includes.
pub fn plain_entries(given: &Bound<'_, PyAny>) -> PyResult<Arc<Vec<Entry>>> {
    let entries = entries(given)?;
    let is_plain = |entry: &Entry| {
        entry.suspension_ns == 0
            && entry.sections == Default::default()
            && entry.threshold.is_none()
            && entry.requests.is_none()
            && entry.criticality.is_none()
            && entry.span_ns.is_none()
    };
    if let Some(entry) = entries.iter().find(|entry| !is_plain(entry)) {
        let message =
            "suspension, regions without preemption, thresholds, criticality and span are for `analyse`";
        return Err(refused(
            given.py(),
            Kind::Analysis,
            Fault::new("jobs_are_preempted_anywhere", message).value(&entry.name),
        ));
    }
    Ok(entries)
}

fn plain(given: &Bound<'_, PyAny>) -> PyResult<(Vec<String>, Vec<Task>)> {
    let entries = plain_entries(given)?;
    let names = entries.iter().map(|entry| entry.name.clone());
    Ok((names.collect(), entries.iter().map(|entry| entry.task).collect()))
}

/// The smallest reservation in which the tasks meet their deadlines, for each of some periods: as `tierce design server`.
///
/// `policy`: "rm", "dm" or "edf" inside. `periods`: times; without them a hundred, up to the shortest deadline. `switch_cost`: CPU
/// time to begin a budget, 5 us. Columns: period_ns, budget_ns, bandwidth, bandwidth_with_switches, best, knee. `None`: the tasks
/// are not schedulable on a whole CPU either. Source: docs/analysis.md#servers.
#[pyfunction]
#[pyo3(signature = (tasks, policy, *, periods = None, switch_cost = None))]
pub fn design_server(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    policy: &str,
    periods: Option<&Bound<'_, PyAny>>,
    switch_cost: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Table>> {
    let (_, tasks) = plain(tasks)?;
    let order = named_or(
        py,
        "policy",
        policy,
        &[("rm", Order::RateMonotonic), ("dm", Order::DeadlineMonotonic), ("edf", Order::EarliestDeadline)],
    )?;
    let switch_cost_ns = switch_cost.map_or(Ok(5_000), |time| time_ns(time, "switch_cost"))?;
    let mut periods = match periods {
        None => usual_periods(&tasks),
        Some(periods) => {
            periods.try_iter()?.map(|time| duration_ns(&time?, "periods")).collect::<PyResult<_>>()?
        }
    };
    periods.sort_unstable();
    periods.dedup();
    let found = interruptible(py, move || frontier_of(order, &tasks, &periods, switch_cost_ns))?;
    let Some(found) = found else { return Ok(None) };
    let servers = &found.servers;
    let float = |share: tierce_guarantee::Exact| {
        let billionths = (share * tierce_guarantee::whole(1_000_000_000)).round().to_integer();
        billionths.to_string().parse::<f64>().ok().map(|share| share / 1e9)
    };
    let table = Columns::new()
        .whole("period_ns", servers.iter().map(|server| Some(server.period_ns)))
        .whole("budget_ns", servers.iter().map(|server| Some(server.budget_ns)))
        .float("bandwidth", servers.iter().map(|server| float(server.bandwidth())))
        .float(
            "bandwidth_with_switches",
            servers.iter().map(|server| float(server.bandwidth_with(switch_cost_ns))),
        )
        .flag("best", (0..servers.len()).map(|at| Some(at == found.best)))
        .flag("knee", (0..servers.len()).map(|at| Some(Some(at) == found.knee)));
    table.table(py).map(Some)
}

/// Tasks to CPUs, some of them split over two: as `tierce split` without costs.
///
/// `algorithm`: "s-ekg" (Andersson & Bletsas 2008), "nps-f" (Bletsas & Andersson 2009) or "c-nps-f" with `cluster`. `delta`: slots in
/// the shortest period. A row for each piece of a server: server, cpu, offset_ns and length_ns in each slot of slot_ns, split, tasks
/// (names). Raises `AnalysisError` where they cannot be assigned.
#[pyfunction]
#[pyo3(signature = (tasks, algorithm, *, cpus, delta = 4, cluster = None))]
pub fn split(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    algorithm: &str,
    cpus: u32,
    delta: u32,
    cluster: Option<u32>,
) -> PyResult<Table> {
    let (names, tasks) = plain(tasks)?;
    let clustered = Algorithm::Clustered(cluster.unwrap_or(0));
    let ways = [("s-ekg", Algorithm::SEkg), ("nps-f", Algorithm::NpsF), ("c-nps-f", clustered)];
    let algorithm = named_or(py, "algorithm", algorithm, &ways)?;
    let refuse = |rule, message: String| refused(py, Kind::Analysis, Fault::new(rule, message));
    if cpus > tierce_policy::CPUS_MAX {
        return Err(refuse(
            "cpus_within_range",
            format!("so many CPUs: {cpus}, bound 1 to {}", tierce_policy::CPUS_MAX),
        ));
    }
    if cluster.is_some() != matches!(algorithm, Algorithm::Clustered(_)) {
        return Err(refuse(
            "cluster_is_of_c_nps_f",
            "`cluster` goes with c-nps-f, and c-nps-f with it".into(),
        ));
    }
    let question =
        Question { algorithm, cpus, delta, costs: Costs::default(), piece_min_ns: 1_000, rest_ns: 0 };
    let found = interruptible(py, move || assign(&tasks, &question))?.map_err(|refusal| {
        let about = match &refusal {
            Refusal::NoRoom { asked, bound } => {
                format!("each CPU is asked for {asked}; up to {bound} always fits")
            }
            Refusal::MoreThanACpu(at) | Refusal::TimesAreInRange(at) | Refusal::TasksAreNotBlocked(at) => {
                names[*at].clone()
            }
            _ => {
                "bound: at least one task, CPU and slot in the shortest period, clusters of equal size".into()
            }
        };
        refuse(refusal.rule(), about)
    })?;
    let rows: Vec<_> = found
        .servers
        .iter()
        .enumerate()
        .flat_map(|(server, each)| each.pieces.iter().map(move |piece| (server, each, piece)))
        .collect();
    let members = |tasks: &[usize]| tasks.iter().map(|at| &*names[*at]).collect::<Vec<_>>().join(" ");
    Columns::new()
        .whole("server", rows.iter().map(|(server, ..)| Some(*server as u64)))
        .whole("cpu", rows.iter().map(|(_, _, piece)| Some(piece.cpu.into())))
        .whole("offset_ns", rows.iter().map(|(_, _, piece)| Some(piece.offset_ns)))
        .whole("length_ns", rows.iter().map(|(_, _, piece)| Some(piece.length_ns)))
        .whole("slot_ns", rows.iter().map(|_| Some(found.slot_ns)))
        .flag("split", rows.iter().map(|(_, each, _)| Some(each.pieces.len() > 1)))
        .text("tasks", rows.iter().map(|(_, each, _)| Some(members(&each.tasks))))
        .table(py)
}
