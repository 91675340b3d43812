//! `tierce measure --arrivals`: how close the jobs of each task come and how much they work, and the `load` that says so in a plan.

use super::input;
use anyhow::{bail, Context, Result};
use serde_json::{json, Value};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use tierce_plan::show_time;
use tierce_terminal::Stop;
use tierce_trace::arrivals::Curves;
use tierce_trace::units::time;
use tierce_trace::{Arrivals, Reader, TraceHeader};

/// What was asked for.
pub struct Asked<'a> {
    /// The trace.
    pub trace: &'a Path,
    /// This task alone.
    pub name: Option<&'a str>,
    /// As many jobs in a row.
    pub jobs: usize,
    /// As JSON.
    pub json: bool,
}

/// Read the trace, and say it.
pub fn run(asked: &Asked) -> Result<ExitCode> {
    let (stop, shown) = (Stop::watch(), asked.trace.display());
    let mut reader = Reader::new(input::open(asked.trace, &stop)?).with_context(|| shown.to_string())?;
    let (arrivals, fault) = Arrivals::read(&mut reader, asked.jobs);
    input::tell(asked.trace, fault, &stop);
    let tasks = arrivals.tasks();
    let names: Vec<_> = tasks.iter().map(|(name, _)| format!("`{name}`")).collect();
    let chosen = |(name, _): &(String, Curves)| asked.name.is_none_or(|chosen| chosen == name);
    let tasks: Vec<_> = tasks.into_iter().filter(chosen).collect();
    if tasks.is_empty() {
        let there = match &names[..] {
            [] => "no task had two jobs".into(),
            names => format!("those with two jobs or more are {}", names.join(", ")),
        };
        bail!("{shown}: task_must_have_jobs: nothing to measure; {there}");
    }
    if asked.json {
        println!("{}", serde_json::to_string_pretty(&to_json(reader.header(), &tasks, arrivals.lost()))?);
    } else {
        print!("{}", tables(reader.header(), &tasks, arrivals.lost()));
    }
    Ok(ExitCode::from(u8::from(stop.asked())))
}

/// A `load` for a plan; `None`: two jobs came at the same time, or none was done.
fn load(curves: &Curves) -> Option<String> {
    let (separations, works) = (curves.separations(), curves.works());
    let list = |times: &[u64]| match times {
        [] => None,
        [one] => Some(format!("\"{}\"", show_time(*one))),
        more => Some(format!(
            "[{}]",
            more.iter().map(|ns| format!("\"{}\"", show_time(*ns))).collect::<Vec<_>>().join(", ")
        )),
    };
    let is_a_load = !separations.contains(&0) && !works.contains(&0);
    Some(format!("{{ separation = {}, work = {} }}", list(&separations)?, list(&works)?))
        .filter(|_| is_a_load)
}

fn tables(header: &TraceHeader, tasks: &[(String, Curves)], lost: u64) -> String {
    let mut text = String::new();
    for (name, curves) in tasks {
        let _ = writeln!(text, "{name} ({}): {} jobs", header.source, curves.jobs);
        let rows = curves.separation_ns.len().max(curves.work_ns.len());
        let _ = writeln!(text, "  {:>4}  {:>14}  {:>14}", "jobs", "least distance", "most work");
        for row in 0..rows {
            let cell = |times: &[u64]| times.get(row).map_or("-".into(), |ns| time(*ns));
            let (distance, work) = (cell(&curves.separation_ns), cell(&curves.work_ns));
            let _ = writeln!(text, "  {:>4}  {distance:>14}  {work:>14}", row + 1);
        }
        match load(curves) {
            Some(load) => _ = writeln!(text, "  load = {load}"),
            None => text += "  no load: jobs came at the same time, or none was done\n",
        }
    }
    if lost > 0 {
        let _ = writeln!(
            text,
            "{lost} records were lost; jobs before and after such a gap are not taken as jobs in a row"
        );
    }
    text
}

fn to_json(header: &TraceHeader, tasks: &[(String, Curves)], lost: u64) -> Value {
    let one = |(name, curves): &(String, Curves)| {
        json!({
            "name": name, "jobs": curves.jobs, "separation_ns": curves.separation_ns, "work_ns": curves.work_ns,
            "load": load(curves).map(|load| format!("load = {load}")),
        })
    };
    json!({
        "version": 1, "source": header.source, "plan": header.plan, "lost": lost,
        "tasks": tasks.iter().map(one).collect::<Vec<_>>(),
    })
}
