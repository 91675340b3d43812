//! What tasks do in the simulator: `load = …`.

use super::locks;
use super::regions;
use super::rt_app::{self, timer_id};
use crate::model::{
    Load, Lock, Periodic, Phase, Phases, Preemption, Sporadic, Stage, StageJobs, Stages, Triggered, Work,
    SEPARATIONS_MAX,
};
use crate::text::faults::Fault;
use crate::text::tree::{Collector, Fields, Kind, Table, Value};

/// Reads a file named by the plan, relative to the file that names it; the fault is already reported.
pub type ReadFile<'a> = &'a mut dyn FnMut(&mut Collector, &Value, &str) -> Option<String>;

/// `load` of `owner` ("task `audio`").
pub fn read(
    owner: &str,
    value: &Value,
    locks: &[Lock],
    collector: &mut Collector,
    read_file: ReadFile,
) -> Option<Load> {
    match &value.kind {
        Kind::Text(text) if text == "busy" => Some(Load::Busy),
        Kind::Table(table) => {
            let mut fields = Fields::new(format!("`load` of {owner}"), table);
            let load = shape(&mut fields, table, value, locks, collector, read_file);
            fields.finish(collector);
            load
        }
        _ => {
            collector.add(
                Fault::new(
                    "load_must_be_known",
                    value.spot,
                    format!("`load` of {owner} is not one there is"),
                )
                .value(if let Kind::Text(text) = &value.kind { text } else { value.kind.describe() })
                .hint(SHAPES),
            );
            None
        }
    }
}

const SHAPES: &str =
    "\"busy\", { period = …, work = … }, { separation = …, work = … }, { work = … } in a chain, { phases = [ … ] }, \
     { stages = [ … ] } or { rt_app = \"file.json\", thread = \"name\" }";

/// Which of the shapes it is, told by the key that only it has.
fn shape(
    fields: &mut Fields,
    table: &Table,
    value: &Value,
    locks: &[Lock],
    collector: &mut Collector,
    read_file: ReadFile,
) -> Option<Load> {
    let has = |name: &str| table.entries.iter().any(|(key, _)| key.text == name);
    if has("rt_app") {
        from_rt_app(fields, collector, read_file)
    } else if has("phases") {
        phases(fields, collector)
    } else if has("stages") {
        stages(fields, collector)
    } else if has("separation") {
        sporadic(fields, value, locks, collector)
    } else if has("period") {
        periodic(fields, value, locks, collector)
    } else if has("work") && table.entries.iter().all(|(key, _)| TRIGGERED.contains(&key.text.as_str())) {
        let (work, ..) = job(fields, value, collector);
        let sections = locks::sections(fields, least(work.as_ref()), locks, collector);
        let preemption = regions::preemption(fields, work.as_ref(), collector);
        let (work, sections, preemption) = (work?, sections?, preemption?);
        let (period_ns, sporadic, jitter_ns) = (1, false, None); // its chains tell
        Some(Load::Triggered(Triggered { work, period_ns, sporadic, jitter_ns, sections, preemption }))
    } else {
        for name in KEYS {
            fields.key(name);
        }
        collector.add(
            Fault::new("load_must_be_known", value.spot, "this `load` is not one there is".to_string())
                .hint(SHAPES),
        );
        None
    }
}

/// Of jobs that others release.
const TRIGGERED: [&str; 6] = ["work", "sections", "preemption", "regions", "longest_region", "threshold"];

/// Of all shapes.
const KEYS: [&str; 15] = [
    "period",
    "separation",
    "phases",
    "stages",
    "rt_app",
    "work",
    "deadline",
    "phase",
    "jitter",
    "soft",
    "sections",
    "preemption",
    "regions",
    "longest_region",
    "threshold",
];

fn from_rt_app(fields: &mut Fields, collector: &mut Collector, read_file: ReadFile) -> Option<Load> {
    let (file, thread) = (fields.take("rt_app")?, fields.text("thread", collector));
    let (phase_ns, deadline_ns) = (fields.time("phase", collector), fields.duration("deadline", collector));
    let soft = soft(fields, deadline_ns, collector);
    let path = collector.text("`rt_app`", file)?;
    let json = read_file(collector, file, path)?;
    match rt_app::phases(&json, thread) {
        Ok((phases, repeat, delay_ns)) => {
            let phase_ns = phase_ns.unwrap_or(delay_ns);
            Some(Load::Phases(Phases { phases, repeat, phase_ns, deadline_ns, soft }))
        }
        Err(message) => {
            collector.add(Fault::new("rt_app_file_must_be_understood", file.spot, message).value(path));
            None
        }
    }
}

fn sporadic(fields: &mut Fields, value: &Value, locks: &[Lock], collector: &mut Collector) -> Option<Load> {
    let bursty = fields.take("separation")?;
    let separations = separations(&fields.what("separation"), bursty, collector);
    let extra_ns = fields.time("extra", collector).unwrap_or(0);
    let (work, deadline_ns, phase_ns) = job(fields, value, collector);
    let sections = locks::sections(fields, least(work.as_ref()), locks, collector);
    let preemption = regions::preemption(fields, work.as_ref(), collector);
    let (separation_ns, further_ns) = separations?;
    let deadline_ns = deadline_ns.unwrap_or(*further_ns.last().unwrap_or(&separation_ns));
    let plain =
        sections.as_ref().is_none_or(Vec::is_empty) && preemption.as_ref().is_none_or(Preemption::is_full);
    if !further_ns.is_empty() && !plain {
        let message = "jobs with locks, regions without preemption or a threshold do not come in bursts";
        let fault = Fault::new("bursts_are_of_plain_jobs", bursty.spot, message);
        collector.add(fault.hint("give one separation, the shortest"));
    }
    let soft = soft(fields, Some(deadline_ns), collector);
    let (work, sections, preemption) = (work?, sections?, preemption?);
    Some(Load::Sporadic(Sporadic {
        separation_ns,
        further_ns,
        extra_ns,
        work,
        deadline_ns,
        phase_ns,
        soft,
        sections,
        preemption,
    }))
}

/// The least time to the next job, and to those after it where a list says so.
fn separations(what: &str, value: &Value, collector: &mut Collector) -> Option<(u64, Vec<u64>)> {
    let Kind::List(items) = &value.kind else {
        return collector.duration(what, value).map(|separation_ns| (separation_ns, Vec::new()));
    };
    let times: Vec<_> = items.iter().map(|item| collector.duration(what, item)).collect();
    let times: Vec<_> = times.into_iter().collect::<Option<_>>()?;
    let Some((separation_ns, further)) = times.split_first() else {
        let message = format!("{what} is an empty list");
        collector.add(Fault::new("list_must_not_be_empty", value.spot, message));
        return None;
    };
    if times.len() > SEPARATIONS_MAX {
        let fault = Fault::new("separations_must_be_few", value.spot, format!("{what} is a long list"));
        collector.add(fault.value(times.len()).bound(SEPARATIONS_MAX));
        return None;
    }
    if let Some(at) = times.windows(2).position(|pair| pair[0] > pair[1]) {
        let message = format!("{what}: a job cannot come before the one before it");
        let fault = Fault::new("separations_must_ascend", items[at + 1].spot, message);
        let bound = format!("{} or more", crate::show_time(times[at]));
        let hint = "each counts from the same job: to the next one, to the second after it, …";
        collector.add(fault.value(crate::show_time(times[at + 1])).bound(bound).hint(hint));
        return None;
    }
    Some((*separation_ns, further.to_vec()))
}

fn periodic(fields: &mut Fields, value: &Value, locks: &[Lock], collector: &mut Collector) -> Option<Load> {
    let period_ns = fields.duration("period", collector);
    let jitter = fields.take("jitter");
    let jitter_ns = jitter.and_then(|value| collector.time("`jitter`", value)).unwrap_or(0);
    let (work, deadline_ns, phase_ns) = job(fields, value, collector);
    let sections = locks::sections(fields, least(work.as_ref()), locks, collector);
    let preemption = regions::preemption(fields, work.as_ref(), collector);
    let period_ns = period_ns?;
    if let Some(jitter) = jitter.filter(|_| jitter_ns >= period_ns) {
        let message = "a release later than the next one would change their order";
        let fault = Fault::new("jitter_must_be_below_period", jitter.spot, message);
        collector.add(fault.value(crate::show_time(jitter_ns)).bound(crate::show_time(period_ns)));
    }
    let deadline_ns = deadline_ns.unwrap_or(period_ns);
    let soft = soft(fields, Some(deadline_ns), collector);
    let (work, sections, preemption) = (work?, sections?, preemption?);
    Some(Load::Periodic(Periodic {
        period_ns,
        work,
        deadline_ns,
        phase_ns,
        jitter_ns,
        soft,
        sections,
        preemption,
    }))
}

/// Keys that periodic and sporadic jobs share: work, deadline, phase.
fn job(fields: &mut Fields, value: &Value, collector: &mut Collector) -> (Option<Work>, Option<u64>, u64) {
    let what = fields.what("work");
    let work = match fields.take("work") {
        Some(given) => work(&what, given, collector),
        None if fields.is_misspelt("work") => None,
        None => {
            let fault =
                Fault::new("work_must_be_given", value.spot, "how much CPU time each job takes is missing");
            collector
                .add(fault.hint("work = \"2ms\", { min = \"1ms\", max = \"3ms\" } or [\"1ms\", \"4ms\"]"));
            None
        }
    };
    let deadline_ns = fields.duration("deadline", collector);
    (work, deadline_ns, fields.time("phase", collector).unwrap_or(0))
}

/// Whether misses are by design, which says something only where there is a deadline.
fn soft(fields: &mut Fields, deadline_ns: Option<u64>, collector: &mut Collector) -> bool {
    let what = fields.what("soft");
    let Some(value) = fields.take("soft") else { return false };
    if deadline_ns.is_none() {
        let message = format!("{what}: it has no deadline that could be missed");
        collector.add(Fault::new("soft_needs_a_deadline", value.spot, message).hint("deadline = \"10ms\""));
    }
    collector.bool(&what, value).unwrap_or(false)
}

/// An amount of time above 0: a constant, a range, or a list.
pub fn work(what: &str, value: &Value, collector: &mut Collector) -> Option<Work> {
    match &value.kind {
        Kind::Table(table) => {
            let mut fields = Fields::new(what, table);
            let (min, max) = (fields.duration("min", collector), fields.duration("max", collector));
            let (no_min, no_max) =
                ["min", "max"].map(|name| !table.entries.iter().any(|(key, _)| key.text == name)).into();
            fields.finish(collector);
            if no_min || no_max {
                let fault =
                    Fault::new("range_needs_min_and_max", value.spot, format!("{what} is half a range"));
                collector.add(fault.hint("{ min = \"1ms\", max = \"3ms\" }, both included"));
            }
            let (min_ns, max_ns) = (min?, max?);
            if min_ns > max_ns {
                let fault =
                    Fault::new("min_must_not_exceed_max", value.spot, format!("{what} is an empty range"));
                collector.add(fault.value(crate::show_time(min_ns)).bound(crate::show_time(max_ns)));
                return None;
            }
            Some(Work::Uniform { min_ns, max_ns })
        }
        Kind::List(items) => {
            let times: Vec<_> = items.iter().map(|item| collector.duration(what, item)).collect();
            if items.is_empty() {
                collector.add(Fault::new(
                    "list_must_not_be_empty",
                    value.spot,
                    format!("{what} is an empty list"),
                ));
                return None;
            }
            Some(Work::List(times.into_iter().collect::<Option<_>>()?))
        }
        _ => collector.duration(what, value).map(Work::Constant),
    }
}

/// `{ phases = [ { run = … }, { run = …, within = … }, { sleep = … }, … ], repeat, deadline, phase }`.
fn phases(fields: &mut Fields, collector: &mut Collector) -> Option<Load> {
    let value = fields.take("phases")?;
    let repeat = fields.whole("repeat", 1, i64::MAX, collector).unwrap_or(0) as u64;
    let phase_ns = fields.time("phase", collector).unwrap_or(0);
    let deadline_ns = fields.duration("deadline", collector);
    let soft = soft(fields, deadline_ns, collector);
    let items = collector.list("`phases`", value)?;
    if items.is_empty() {
        collector.add(Fault::new("list_must_not_be_empty", value.spot, "`phases` is an empty list"));
        return None;
    }
    let mut timers = Vec::new();
    let phases: Vec<_> = items.iter().map(|item| phase(item, &mut timers, collector)).collect();
    Some(Load::Phases(Phases {
        phases: phases.into_iter().collect::<Option<_>>()?,
        repeat,
        phase_ns,
        deadline_ns,
        soft,
    }))
}

/// `{ stages = [ { until = …, period = …, work = … }, …, { period = …, work = … } ], soft }`.
fn stages(fields: &mut Fields, collector: &mut Collector) -> Option<Load> {
    let value = fields.take("stages")?;
    let items = collector.list("`stages`", value)?;
    if items.is_empty() {
        collector.add(Fault::new("list_must_not_be_empty", value.spot, "`stages` is an empty list"));
        return None;
    }
    let (mut from_ns, mut stages) = (0, Some(Vec::new()));
    for (at, item) in items.iter().enumerate() {
        let last = at + 1 == items.len();
        let read = stage(item, last, &mut from_ns, collector);
        stages = stages.zip(read).map(|(mut stages, read)| {
            stages.push(read);
            stages
        });
    }
    let load = Stages { stages: stages?, soft: false };
    let soft = soft(fields, load.jobs().map(|jobs| jobs.deadline_ns).min(), collector);
    Some(Load::Stages(Stages { soft, ..load }))
}

/// One of the list, which begins at `from_ns` and sets that to where it ends.
fn stage(value: &Value, last: bool, from_ns: &mut u64, collector: &mut Collector) -> Option<Stage> {
    let table = collector.table("a stage", value)?;
    let has = |name: &str| table.entries.iter().any(|(key, _)| key.text == name);
    let mut fields = Fields::new("a stage", table);
    let begins_ns = *from_ns;
    let until = fields.take("until");
    match until {
        Some(until) => {
            let until_ns = collector.duration("`until`", until);
            if last {
                let message = "the last stage lasts for ever";
                collector.add(Fault::new("last_stage_has_no_end", until.spot, message));
            } else if let Some(until_ns) = until_ns {
                if until_ns <= begins_ns {
                    let message = "a stage ends before it begins";
                    let fault = Fault::new("stages_follow_each_other", until.spot, message);
                    let bound = format!("more than {}", crate::show_time(begins_ns));
                    collector.add(fault.value(crate::show_time(until_ns)).bound(bound));
                }
                *from_ns = until_ns.max(begins_ns);
            }
        }
        None if !last => {
            let message = "all stages but the last say when they end";
            collector.add(Fault::new("stage_needs_an_end", value.spot, message).hint("until = \"30s\""));
        }
        None => {}
    }
    let jobs = if has("period") || has("work") || has("deadline") {
        if !has("period") {
            let message = "the jobs of a stage have no period";
            collector.add(Fault::new("stage_needs_a_period", value.spot, message).hint("period = \"10ms\""));
        }
        let period_ns = fields.duration("period", collector);
        let deadline_ns = fields.duration("deadline", collector);
        let what = fields.what("work");
        let work = match fields.take("work") {
            Some(given) => work(&what, given, collector),
            None => {
                let message = "how much CPU time each job takes is missing";
                let fault = Fault::new("work_must_be_given", value.spot, message);
                collector.add(fault.hint("work = \"2ms\""));
                None
            }
        };
        let period_ns = period_ns?;
        let deadline_ns = deadline_ns.unwrap_or(period_ns);
        Some(StageJobs { period_ns, work: work?, deadline_ns })
    } else {
        None
    };
    fields.finish(collector);
    Some(Stage { from_ns: begins_ns, jobs })
}

/// One of the list; `timers` are the names of timers met so far.
fn phase(value: &Value, timers: &mut Vec<String>, collector: &mut Collector) -> Option<Phase> {
    let table = collector.table("a phase", value)?;
    let has = |name: &str| table.entries.iter().any(|(key, _)| key.text == name);
    if table.entries.len() != 1 + usize::from(has("run") && has("within")) {
        let fault = Fault::new("phase_does_one_thing", value.spot, "a phase does exactly one thing");
        collector.add(fault.hint("[ { run = \"2ms\" }, { sleep = \"8ms\" } ]"));
        return None;
    }
    let mut fields = Fields::new("a phase", table);
    let mut found = None;
    if let Some(value) = fields.take("run") {
        let work = work("`run`", value, collector);
        let within = fields.take("within");
        let within_ns = within.and_then(|value| collector.duration("`within`", value));
        if let (Some(value), Some(within_ns), Some(work)) = (within, within_ns, &work) {
            if work.max_ns() > within_ns {
                let message = "the time constraint leaves less time than there is work";
                let fault = Fault::new("work_must_fit_within", value.spot, message);
                collector
                    .add(fault.value(crate::show_time(work.max_ns())).bound(crate::show_time(within_ns)));
            }
        }
        found = work.map(|work| Phase::Run { work, within_ns });
    }
    for (name, make) in [("sleep", Phase::Sleep as fn(Work) -> Phase), ("suspend", Phase::Suspend)] {
        if let Some(value) = fields.take(name) {
            found = work(&format!("`{name}`"), value, collector).map(make);
        }
    }
    if let Some(value) = fields.take("timer") {
        let (mut name, mut absolute, mut period_ns) = (String::new(), false, None);
        if let Kind::Table(table) = &value.kind {
            let mut fields = Fields::new("`timer`", table);
            name = fields.text("name", collector).unwrap_or_default().to_string();
            absolute = fields.bool("absolute", collector).unwrap_or(false);
            period_ns = fields.duration("period", collector);
            if !table.entries.iter().any(|(key, _)| key.text == "period") {
                collector.add(Fault::new("timer_needs_a_period", value.spot, "the timer has no period"));
            }
            fields.finish(collector);
        } else {
            period_ns = collector.duration("`timer`", value).or(period_ns);
        }
        found =
            period_ns.map(|period_ns| Phase::Timer { timer: timer_id(timers, &name), period_ns, absolute });
    }
    fields.finish(collector);
    found
}

/// What sections of a job have to fit, as far as that is known.
fn least(work: Option<&Work>) -> (u64, &'static str) {
    (work.map_or(u64::MAX, Work::min_ns), "the least work of a job")
}
