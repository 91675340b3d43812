//! A set in the simulator, below one scheduler or in a plan of the user's.

use crate::study::{Parameter, Simulation, Template, Under};
use std::fmt::Write as _;
use std::sync::Arc;
use tierce_admission::PlanExt as _;
use tierce_analysis::{priorities, Task};
use tierce_plan::{show_time, Plan, Source, Sources};
use tierce_sim::Options;

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Played {
    /// Jobs that arrived.
    pub jobs: u64,
    /// Those that were not done at their deadline.
    pub misses: u64,
    /// The largest response over deadline of a completed job of the set.
    pub ratio: Option<f64>,
}

/// Simulate a set. `parameters`: names and values.
pub fn play(
    asked: &Simulation,
    tasks: &[Task],
    parameters: &[(&str, &Parameter)],
    seed: u64,
) -> Result<Played, String> {
    let (text, name) = text(&asked.plan, tasks, parameters);
    let mut sources = vec![Arc::new(Source::new(&*name, text))];
    if let Template::Text { others, .. } = &asked.plan {
        sources.extend(others.iter().cloned());
    }
    let plan = Plan::from_sources(&Sources(sources), tierce_plan::Options::default());
    let plan = plan.map_err(|faults| faults.to_string())?;
    let options = Options { seed, ..Options::default() };
    let mut simulation =
        tierce_sim::Simulation::new(&plan, options).map_err(|error| format!("{name}: {error}"))?;
    simulation.run_until(asked.for_ns).map_err(|broken| format!("a bug of tierce: {broken}"))?;
    let report = simulation.report();
    let mut ratio: Option<f64> = None;
    for (task, number) in tasks.iter().zip(1..) {
        let found = report.tasks.iter().find(|found| found.name == task_name(number));
        if let Some(longest) = found.and_then(|found| found.response_ns) {
            let each = longest.max as f64 / task.deadline_ns as f64;
            ratio = Some(ratio.map_or(each, |ratio| ratio.max(each)));
        }
    }
    let sum = |count: fn(&tierce_trace::report::TaskReport) -> u64| report.tasks.iter().map(count).sum();
    Ok(Played { jobs: sum(|task| task.released), misses: sum(|task| task.misses), ratio })
}

/// As `tierce gen` names them.
fn task_name(number: usize) -> String {
    format!("t{number}")
}

/// A plan's text, and its name in messages.
pub fn text(template: &Template, tasks: &[Task], parameters: &[(&str, &Parameter)]) -> (String, String) {
    let alone = |policy: &str, by_priority: bool| {
        let head = format!("[machine]\ncpus = 1\n\n[node.cpu]\npolicy = \"{policy}\"\ncpu = 0\n");
        let under = Under { node: "cpu".into(), by_priority };
        (head + &below(&under, tasks), "the plan of a set".to_string())
    };
    match template {
        Template::Edf => alone("edf", false),
        Template::FixedPriority => alone("fixed-priority", true),
        Template::Text { text, name, under, .. } => {
            let text = parameters.iter().fold(text.clone(), |text, (name, value)| {
                text.replace(&format!("${{{name}}}"), &value.to_string())
            });
            (text + &under.as_ref().map_or(String::new(), |under| below(under, tasks)), name.clone())
        }
    }
}

fn below(under: &Under, tasks: &[Task]) -> String {
    let mut priorities = vec![0; tasks.len()];
    let lowest_first = priorities::deadline_monotonic(tasks).into_iter().rev();
    lowest_first.zip(1..).for_each(|(index, priority)| priorities[index] = priority);
    let mut text = String::new();
    for ((task, priority), number) in tasks.iter().zip(priorities).zip(1..) {
        let edge = if under.by_priority { format!("{{ priority = {priority} }}") } else { "{}".into() };
        let (period, work) = (show_time(task.period_ns), show_time(task.work_ns));
        let _ = write!(
            text,
            "\n[task.{}]\nunder.{} = {edge}\nload = {{ period = \"{period}\", work = \"{work}\" }}\n",
            task_name(number),
            under.node
        );
    }
    text
}
