//! `tierce measure --chain`: how long chains of tasks took, beside what is allowed.

use super::input;
use anyhow::{anyhow, bail, Context, Result};
use serde_json::{json, Value};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::{Latency, Options, Plan};
use tierce_terminal::Stop;
use tierce_trace::units::time;
use tierce_trace::{ChainInfo, Chains, Follows, Histogram, Passage, Reader, TraceHeader};

/// What was asked for.
pub struct Asked<'a> {
    /// The trace.
    pub trace: &'a Path,
    /// This chain alone.
    pub name: Option<&'a str>,
    /// The plan that has the chains, in place of those of the trace.
    pub plan: Option<&'a Path>,
    /// When the releases of periodic jobs begin.
    pub epoch_ns: Option<u64>,
    /// As JSON.
    pub json: bool,
}

/// Measure them, and say how long they took.
pub fn run(asked: &Asked) -> Result<ExitCode> {
    let (stop, shown) = (Stop::watch(), asked.trace.display());
    let mut reader = Reader::new(input::open(asked.trace, &stop)?).with_context(|| shown.to_string())?;
    let chains = known(asked, reader.header()).with_context(|| shown.to_string())?;
    let names: Vec<_> = chains.iter().map(|chain| format!("`{}`", chain.name)).collect();
    let chosen = |chain: &ChainInfo| asked.name.is_none_or(|name| *name == chain.name);
    let chains: Vec<_> = chains.into_iter().filter(chosen).collect();
    let follows = match (asked.plan, asked.name) {
        (Some(_), _) => Follows::Nothing,
        (None, Some(name)) => Follows::One(name.into()),
        (None, None) => Follows::All,
    };
    let mut measured = Chains::new(reader.header(), chains, asked.epoch_ns).following(follows);
    let fault = measured.read(&mut reader);
    input::tell(asked.trace, fault, &stop);
    // A change of the plan may have brought some.
    if measured.all().next().is_none() {
        return Err(unknown(asked, &names)).with_context(|| shown.to_string());
    }
    let holds = measured.all().all(|(about, passage)| holds(about, passage));
    if asked.json {
        println!("{}", serde_json::to_string_pretty(&to_json(reader.header(), &measured, holds))?);
    } else {
        print!("{}", tables(reader.header(), &measured));
    }
    Ok(ExitCode::from(u8::from(!holds || stop.asked())))
}

/// The chains of the plan that is asked for, or of that which the trace begins with.
fn known(asked: &Asked, header: &TraceHeader) -> Result<Vec<ChainInfo>> {
    let Some(path) = asked.plan else { return Ok(header.chains.clone()) };
    let plan = Plan::load_with(path, Options { cpus: header.cpus }).or_else(|faults| {
        eprint!("{}", faults.report());
        bail!("{}: the plan has faults", path.display());
    })?;
    Ok(tierce_scx::chains_of(&plan, &plan.admit()))
}

/// No chain, or none of that name. `names`: of those that there are.
fn unknown(asked: &Asked, names: &[String]) -> anyhow::Error {
    match asked.name.filter(|_| !names.is_empty()) {
        Some(name) => anyhow!("chain_must_be_known: no chain `{name}`; there are {}", names.join(", ")),
        None => anyhow!(
            "chain_must_be_known: there is no [chain.NAME] in the {}",
            if asked.plan.is_some() { "plan" } else { "plan of this trace; --plan PLAN names another one" }
        ),
    }
}

/// What one time of a chain is, how long it may take and how long it needs to be.
fn times<'a>(
    about: &'a ChainInfo,
    passage: &'a Passage,
) -> impl Iterator<Item = (Latency, &'a Histogram, Option<u64>, Option<u64>)> {
    let all = Latency::ALL.into_iter().zip(passage.times());
    all.zip(about.bounds.all().into_iter().zip(about.needs.all()))
        .map(|((latency, values), (bound_ns, within_ns))| (latency, values, bound_ns, within_ns))
}

/// Something was measured, and nothing is above.
fn holds(about: &ChainInfo, passage: &Passage) -> bool {
    times(about, passage).all(|(_, values, bound_ns, within_ns)| {
        let max_ns = values.summary().max;
        values.summary().count > 0
            && [bound_ns, within_ns].into_iter().flatten().all(|most_ns| max_ns <= most_ns)
    })
}

/// What is above what it may be: sentences.
fn above(measured: &Chains) -> Vec<String> {
    let mut list = Vec::new();
    for (about, passage) in measured.all() {
        for (latency, values, bound_ns, within_ns) in times(about, passage) {
            let max_ns = values.summary().max;
            for (what, most_ns) in [("its bound", bound_ns), ("what the plan needs", within_ns)] {
                if let Some(most_ns) = most_ns.filter(|most_ns| max_ns > *most_ns) {
                    let (name, max, most) = (&about.name, time(max_ns), time(most_ns));
                    list.push(format!("{name}: a {latency} of {max} is above {what}, {most}"));
                }
            }
        }
    }
    list
}

fn tables(header: &TraceHeader, measured: &Chains) -> String {
    let mut text = String::new();
    let line = |text: &mut String, first: &str, cells: [String; 7]| {
        let _ = write!(text, "  {first:<10}");
        cells.iter().for_each(|cell| {
            let _ = write!(text, "{cell:>12}");
        });
        text.push('\n');
    };
    for ((about, passage), ended) in measured.all().zip(measured.which_ended()) {
        let tasks: Vec<_> = about.links.iter().map(|link| link.task.as_str()).collect();
        let until = if ended { ", until the plan changed" } else { "" };
        let _ = writeln!(text, "{} ({}{until}): {}", about.name, header.source, tasks.join(", "));
        line(&mut text, "", ["n", "min", "median", "99 %", "max", "bound", "needs"].map(String::from));
        for (latency, values, bound_ns, within_ns) in times(about, passage) {
            let some = |ns: Option<u64>| ns.map_or("-".into(), time);
            let summary = values.summary();
            let [min, max] = [summary.min, summary.max].map(|ns| Some(ns).filter(|_| summary.count > 0));
            let [median, most] = [50, 99].map(|percent| values.percentile(percent));
            let [min, median, most, max, bound, within] =
                [min, median, most, max, bound_ns, within_ns].map(some);
            let cells = [summary.count.to_string(), min, median, most, max, bound, within];
            line(&mut text, latency.name(), cells);
        }
    }
    for remark in above(measured).into_iter().chain(measured.remarks()) {
        let _ = writeln!(text, "{remark}");
    }
    text
}

fn to_json(header: &TraceHeader, measured: &Chains, all_hold: bool) -> Value {
    let one = |(latency, values, bound_ns, within_ns): (Latency, &Histogram, Option<u64>, Option<u64>)| {
        let summary = values.summary();
        let some = |ns: u64| Some(ns).filter(|_| summary.count > 0);
        let histogram: Vec<_> = values.buckets().map(|(from, to, count)| json!([from, to, count])).collect();
        json!({
            "of": latency.name(), "count": summary.count, "min_ns": some(summary.min), "avg_ns": summary.avg(),
            "median_ns": values.percentile(50), "p99_ns": values.percentile(99), "max_ns": some(summary.max),
            "bound_ns": bound_ns, "within_ns": within_ns, "histogram": histogram,
        })
    };
    let chain = |((about, passage), ended): ((&ChainInfo, &Passage), bool)| {
        let tasks: Vec<_> = about.links.iter().map(|link| &link.task).collect();
        json!({
            "name": about.name, "ended": ended, "tasks": tasks, "holds": holds(about, passage),
            "times": times(about, passage).map(one).collect::<Vec<_>>(),
        })
    };
    json!({
        "version": 1, "source": header.source, "plan": header.plan, "holds": all_hold,
        "chains": measured.all().zip(measured.which_ended()).map(chain).collect::<Vec<_>>(),
        "above": above(measured), "remarks": measured.remarks(),
    })
}
