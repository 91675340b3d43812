//! Schedulability of sets of tasks: one, or many on all CPUs.

use crate::errors::{refused, Fault, Kind};
use crate::interruptible::{interruptible, Progress, SLICE};
use crate::table::{Columns, Table};
use crate::task_set::{entries, share};
use crate::time::time_ns;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use tierce_analysis::federated::Assigned;
use tierce_analysis::partition::Fit;
use tierce_analysis::question::{
    supply, Answer, Criticalities, Named, Offsets, Options, Outcome, Policy, Preemption, Question, Refused,
};
use tierce_analysis::{utilisation, Entry, Response};

/// Sets of more tasks, and questions that may take long, are analysed on a thread of their own, which Ctrl-C can leave.
const TASKS_AT_ONCE: usize = 64;

/// As in Python.
struct Given<'a, 'py> {
    policy: &'a str,
    supply: Option<&'a str>,
    cpus: Option<u32>,
    partition: Option<&'a str>,
    quantum: Option<&'a Bound<'py, PyAny>>,
    preemption: Option<&'a str>,
    offsets: &'a str,
    sensitivity: bool,
}

/// The value of a name.
pub fn named_or<T: Copy>(py: Python<'_>, what: &str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    all.iter().find(|(other, _)| *other == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        let fault = Fault::new("name_must_be_known", format!("there is no such `{what}`"));
        refused(py, Kind::Argument, fault.value(name).bound(names.join(", ")))
    })
}

pub fn named<T: Named>(py: Python<'_>, what: &str, name: &str) -> PyResult<T> {
    T::named(name).map_or_else(
        || {
            let all: Vec<_> = T::ALL.iter().map(|(value, name, _)| (*name, *value)).collect();
            named_or(py, what, name, &all)
        },
        Ok,
    )
}

impl Given<'_, '_> {
    fn options(&self, py: Python<'_>) -> PyResult<Options> {
        let given =
            |text: &str| supply(text).map_err(|text| refused(py, Kind::Argument, Fault::of_text(&text)));
        Ok(Options {
            policy: Some(named::<Policy>(py, "policy", self.policy)?),
            supply: self.supply.map(given).transpose()?,
            cpus: self.cpus,
            partition: self.partition.map(|name| named::<Fit>(py, "partition", name)).transpose()?,
            quantum: self.quantum.map(|time| time_ns(time, "quantum")).transpose()?,
            preemption: self
                .preemption
                .map(|name| named::<Preemption>(py, "preemption", name))
                .transpose()?,
            offsets: named::<Offsets>(py, "offsets", self.offsets)?,
            sensitivity: self.sensitivity,
        })
    }
}

fn answer(entries: &[Entry], options: &Options) -> Result<(Question, Answer), Refused> {
    let asked = Question::new(entries.to_vec(), options)?;
    let answer = asked.answer()?;
    Ok((asked, answer))
}

/// Do the tasks meet their deadlines under a policy, and what are their worst-case response times? As `tierce analyse`.
///
/// `tasks`: a `TaskSet`, or what makes one. `policy`: "fp", "rm", "dm", "dkc", "audsley", "edf", "fifo", "amc", "smc", "vestal",
/// "edf-vd", "pd2" or "federated" (methods and sources: docs/analysis.md#policies). `supply`: "1.5ms/6ms" (budget/period), with a
/// deadline "1.5ms/6ms/4ms", a guarantee such as "RESCS 2ms 8ms", or of several CPUs together "6ms/5ms@2". `cpus`: on more than
/// one, any CPU may run any task, unless `partition` ("first", "best", "worst", "next", "period", "mixed") puts each on one.
/// `quantum`: of pd2. `preemption`: "full", "none", "limited", "floating" or "thresholds". `offsets`: "unknown" (all phases) or "known".
/// `sensitivity`: also how far each number can change.
///
/// Releases the interpreter's lock. Raises `AnalysisError` and `ArgumentError`.
#[pyfunction]
#[pyo3(signature = (tasks, policy, *, supply = None, cpus = None, partition = None, quantum = None, preemption = None, offsets = "unknown", sensitivity = false))]
#[expect(clippy::too_many_arguments, reason = "each is an argument of its own in Python")]
pub fn analyse(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    policy: &str,
    supply: Option<&str>,
    cpus: Option<u32>,
    partition: Option<&str>,
    quantum: Option<&Bound<'_, PyAny>>,
    preemption: Option<&str>,
    offsets: &str,
    sensitivity: bool,
) -> PyResult<Analysis> {
    let given = Given { policy, supply, cpus, partition, quantum, preemption, offsets, sensitivity };
    let (entries, options) = (entries(tasks)?, given.options(py)?);
    let may_take_long = entries.len() > TASKS_AT_ONCE || sensitivity || options.offsets == Offsets::Known;
    let found = match may_take_long {
        true => interruptible(py, move || answer(&entries, &options))?,
        false => py.detach(|| answer(&entries, &options)),
    };
    let refuse = |found: Refused| refused(py, Kind::Analysis, Fault::of_text(&found.to_string()));
    let (asked, answer) = found.map_err(refuse)?;
    Ok(Analysis { asked, answer })
}

/// The verdict on one set of many.
struct Line {
    tasks: usize,
    utilisation: f64,
    found: Result<(bool, bool), Refused>,
}

/// Analyse many sets on all CPUs: a row for each set, in their order.
///
/// Columns: set (its index), tasks (how many), utilisation, schedulable, exact, refused (null, or the rule by which this set has
/// no answer; then schedulable is null). Arguments as of `analyse`; `threads` is how many work at once (all CPUs); `progress` as of
/// `Plan.simulate`, called with (sets done, all sets). Releases the interpreter's lock; Ctrl-C ends it.
#[pyfunction]
#[pyo3(signature = (sets, policy, *, supply = None, cpus = None, partition = None, quantum = None, preemption = None, offsets = "unknown", threads = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument of its own in Python")]
pub fn analyse_many(
    py: Python<'_>,
    sets: &Bound<'_, PyAny>,
    policy: &str,
    supply: Option<&str>,
    cpus: Option<u32>,
    partition: Option<&str>,
    quantum: Option<&Bound<'_, PyAny>>,
    preemption: Option<&str>,
    offsets: &str,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let given = Given { policy, supply, cpus, partition, quantum, preemption, offsets, sensitivity: false };
    let options = given.options(py)?;
    let sets = sets.try_iter()?.map(|set| entries(&set?)).collect::<PyResult<Vec<_>>>()?;
    let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if threads == Some(0) {
        let fault = Fault::new("threads_are_some", "`threads` is how many work at once");
        return Err(refused(py, Kind::Argument, fault.value(0).bound("1 or more")));
    }
    let threads = threads.unwrap_or(available).min(sets.len().max(1)).min(1024);
    let work = Work { sets, options, next: AtomicUsize::new(0), stopped: AtomicBool::new(false) };
    let lines = on_threads(py, work, threads, Progress::new(progress))?;
    let found =
        |of: fn(&(bool, bool)) -> bool| lines.iter().map(move |line| line.found.as_ref().ok().map(of));
    Columns::new()
        .whole("set", (0..lines.len()).map(|at| Some(at as u64)))
        .whole("tasks", lines.iter().map(|line| Some(line.tasks as u64)))
        .float("utilisation", lines.iter().map(|line| Some(line.utilisation)))
        .flag("schedulable", found(|found| found.0))
        .flag("exact", found(|found| found.1))
        .text("refused", lines.iter().map(|line| line.found.as_ref().err().map(|refused| refused.rule)))
        .table(py)
}

/// Sets to analyse, and how far that has come.
struct Work {
    sets: Vec<Arc<Vec<Entry>>>,
    options: Options,
    next: AtomicUsize,
    stopped: AtomicBool,
}

impl Work {
    /// On one thread: one set after another, until none is left.
    fn some(&self) -> Vec<(usize, Line)> {
        let mut lines = Vec::new();
        while !self.stopped.load(Ordering::Relaxed) {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(entries) = self.sets.get(at) else { break };
            let found = Question::new(entries.to_vec(), &self.options).and_then(|asked| asked.verdict());
            lines.push((at, Line { tasks: entries.len(), utilisation: share(entries), found }));
        }
        lines
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Every set, in the order in which they are given.
fn on_threads(py: Python<'_>, work: Work, threads: usize, mut progress: Progress) -> PyResult<Vec<Line>> {
    let work = Arc::new(work);
    let (sender, mut receiver) = mpsc::channel();
    for _ in 0..threads {
        let (sender, mine) = (sender.clone(), work.clone());
        let run = move || {
            // Nobody waits any more after Ctrl-C.
            let _ = sender.send(mine.some());
        };
        if let Err(error) = std::thread::Builder::new().name("tierce".into()).spawn(run) {
            work.stop();
            return Err(refused(py, Kind::Engine, Fault::new("thread_must_start", error.to_string())));
        }
    }
    drop(sender);
    let count = work.sets.len();
    let mut lines = Vec::with_capacity(count);
    loop {
        let (back, found) = py.detach(move || {
            let found = receiver.recv_timeout(SLICE);
            (receiver, found)
        });
        receiver = back;
        match found {
            Ok(mut some) => lines.append(&mut some),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let done = work.next.load(Ordering::Relaxed).min(count);
                progress.at(py, done as u64, count as u64).inspect_err(|_| work.stop())?;
            }
        }
    }
    if lines.len() < count {
        let fault = Fault::new("work_must_end", "a bug of tierce: a set has no verdict");
        return Err(refused(py, Kind::Engine, fault));
    }
    lines.sort_unstable_by_key(|(at, _)| *at);
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

/// The answer of `analyse`: true as a condition if all deadlines are met. As an Arrow table it is `tasks`.
#[pyclass(frozen, module = "tierce")]
pub struct Analysis {
    asked: Question,
    answer: Answer,
}

impl Analysis {
    fn names(&self) -> impl Iterator<Item = Option<&String>> {
        self.asked.entries.iter().map(|entry| Some(&entry.name))
    }

    fn deadlines(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        self.asked.tasks.iter().map(|task| Some(task.deadline_ns))
    }

    fn slacks(&self, responses: &[Option<u64>]) -> Vec<Option<i64>> {
        let slack = |(deadline, response): (Option<u64>, &Option<u64>)| {
            i64::try_from(i128::from(deadline?) - i128::from((*response)?)).ok()
        };
        self.deadlines().zip(responses).map(slack).collect()
    }

    /// What every answer has.
    fn usual(&self, responses: &[Option<u64>]) -> Columns {
        Columns::new()
            .text("name", self.names())
            .whole("wcrt_ns", responses.iter().copied())
            .whole("deadline_ns", self.deadlines())
            .signed("slack_ns", self.slacks(responses))
    }

    fn of_tasks(&self, outcome: &Outcome) -> Columns {
        if outcome.responses.is_empty() {
            return self.usual(&vec![None; self.asked.entries.len()]);
        }
        let responses: Vec<_> = outcome.responses.iter().map(|response: &Response| response.ns()).collect();
        let mut columns = self.usual(&responses);
        if let Some(tardiness) = &outcome.tardiness {
            columns = columns.whole("tardiness_ns", tardiness.iter().copied());
        }
        if let Some(thresholds) = &outcome.thresholds {
            let name = |index: &usize| Some(&self.asked.entries[*index].name);
            columns = columns.text("threshold_of", thresholds.iter().map(name));
        }
        columns = if self.asked.is_global() {
            let by = |shown: &tierce_analysis::global::Shown| {
                shown.by.iter().map(|test| test.name()).collect::<Vec<_>>().join(", ")
            };
            columns.text("shown_by", outcome.shown.iter().map(|shown| Some(by(shown))))
        } else {
            columns.whole("cpu", outcome.cpus.iter().map(|cpu| Some(*cpu as u64)))
        };
        if let Some(found) = &outcome.sensitivity {
            columns = columns
                .whole("work_max_ns", found.limits.iter().map(|limits| limits.work_max_ns))
                .whole("period_min_ns", found.limits.iter().map(|limits| limits.period_min_ns))
                .whole("deadline_min_ns", found.limits.iter().map(|limits| limits.deadline_min_ns));
        }
        columns
    }

    fn of_criticalities(&self, found: &Criticalities) -> Columns {
        let all = 0..found.tasks.len();
        let responses: Vec<_> = all.clone().map(|at| found.response(at)).collect();
        let mut columns = self
            .usual(&responses)
            .text("criticality", found.tasks.iter().map(|task| Some(if task.hi { "hi" } else { "lo" })))
            .whole("wcrt_usual_ns", found.responses.iter().map(|responses| responses.usual_ns));
        if !found.levels.is_empty() {
            columns = columns.whole("rank", found.levels.iter().map(|level| Some((*level).into())));
        }
        if found.part.is_some() {
            columns = columns.whole("virtual_deadline_ns", all.map(|at| found.first_due(at)));
        }
        columns
    }

    fn of_parallel(&self, found: &Assigned) -> Columns {
        let places: Vec<_> = match found {
            Ok(places) => places.iter().map(|place| Some(*place)).collect(),
            Err(_) => vec![None; self.asked.entries.len()],
        };
        let responses: Vec<_> = places.iter().map(|place| place.map(|place| place.response_ns)).collect();
        self.usual(&responses)
            .whole("cpu", places.iter().map(|place| place.map(|place| place.cpu as u64)))
            .whole("own_cpus", places.iter().map(|place| place.map(|place| place.own as u64)))
    }
}

#[pymethods]
impl Analysis {
    /// All deadlines are shown to be met.
    #[getter]
    fn schedulable(&self) -> bool {
        self.answer.schedulable()
    }

    /// If not schedulable, that is shown, too; and response times are the worst case, not bounds.
    #[getter]
    fn exact(&self) -> bool {
        self.answer.is_exact()
    }

    /// By which policy.
    #[getter]
    fn policy(&self) -> &'static str {
        self.asked.policy.name()
    }

    /// On how many CPUs.
    #[getter]
    fn cpus(&self) -> u32 {
        self.asked.cpus
    }

    /// What is supplied, as it was written.
    #[getter]
    fn supply(&self) -> &str {
        &self.asked.given.text
    }

    /// Sum of work / period, rounded.
    #[getter]
    fn utilisation(&self) -> f64 {
        share(&self.asked.entries)
    }

    /// The same exactly, as a fraction.
    #[getter]
    fn utilisation_exact(&self) -> String {
        utilisation(&self.asked.tasks).to_string()
    }

    /// What else is to be known, in plain words.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        let remarks = match &self.answer {
            Answer::Tasks(outcome) => outcome.remarks.clone(),
            Answer::Criticalities(found) => found.remarks.clone(),
            Answer::Federated(Ok(_)) => Vec::new(),
            Answer::Federated(Err(at)) => {
                let (name, cpus) = (&self.asked.entries[*at].name, self.asked.cpus);
                vec![format!(
                    "There is no room for {name} on the {cpus} CPUs, after the tasks that were placed before it."
                )]
            }
        };
        remarks.iter().map(|remark| remark.replace("--", "")).collect()
    }

    /// With `sensitivity`: by which factor all works can grow together.
    #[getter]
    fn work_scale(&self) -> Option<f64> {
        let scale = match &self.answer {
            Answer::Tasks(outcome) => outcome.sensitivity.as_ref()?.work_scale?,
            _ => return None,
        };
        Some(scale as f64 / tierce_analysis::sensitivity::SCALE_ONE as f64)
    }

    /// With `sensitivity`: the smallest budget, where the supply is a periodic resource.
    #[getter]
    fn budget_min_ns(&self) -> Option<u64> {
        match &self.answer {
            Answer::Tasks(outcome) => outcome.sensitivity.as_ref()?.budget_min_ns,
            _ => None,
        }
    }

    /// A row for each task: name, wcrt_ns (null: no bound is shown), deadline_ns, slack_ns, and by policy cpu, shown_by,
    /// threshold_of, tardiness_ns, criticality, wcrt_usual_ns, rank, virtual_deadline_ns, own_cpus, work_max_ns, period_min_ns, deadline_min_ns.
    #[getter]
    fn tasks(&self, py: Python<'_>) -> PyResult<Table> {
        let columns = match &self.answer {
            Answer::Tasks(outcome) => self.of_tasks(outcome),
            Answer::Criticalities(found) => self.of_criticalities(found),
            Answer::Federated(found) => self.of_parallel(found),
        };
        columns.table(py)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, pyo3::types::PyCapsule>> {
        self.tasks(py)?.stream(py, requested_schema)
    }

    fn __bool__(&self) -> bool {
        self.answer.schedulable()
    }

    fn __repr__(&self) -> String {
        let verdict = if self.schedulable() { "schedulable" } else { "not schedulable" };
        format!("<tierce.Analysis: {}, {verdict}>", self.asked.policy.name())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let table = self.tasks(py)?.html();
        let verdict = if self.schedulable() { "Schedulable" } else { "Not schedulable" };
        let remarks: String =
            self.remarks().iter().map(|text| format!("<p>{}</p>", crate::table::escape(text))).collect();
        Ok(format!("{table}{remarks}<p><b>{verdict}</b>: {}</p>", self.asked.policy.name()))
    }
}
