//! Profiles as tables and as JSON.

use super::watching::Watching;
use serde_json::{json, Value};
use std::fmt::Write;
use std::path::PathBuf;
use tierce_calibrate::{Machine, Period, Profile, Stored, Thread, Work};
use tierce_plan::show_time;
use tierce_trace::units;

/// Version of the JSON that this command writes.
pub const VERSION: u32 = 1;

/// What to know of what was seen, beside the numbers.
pub fn remarks(watching: &Watching, nameless: usize) -> Vec<String> {
    let mut list = Vec::new();
    if watching.lost > 0 {
        list.push(format!("{} wake-ups were lost: they came faster than they could be read", watching.lost));
    }
    if !watching.tells_interrupts {
        list.push("this kernel does not tell of all interrupts: their time is part of the work".into());
    }
    if nameless > 0 {
        let s = if nameless == 1 { "" } else { "s" };
        list.push(format!(
            "{nameless} thread{s} left out: the process ended before its program could be looked at"
        ));
    }
    if let Some(ended) = &watching.ended {
        list.push(format!("the program did not end well: {ended}"));
    }
    list
}

/// Columns, each as wide as its widest cell; numbers to the right.
fn columns(rows: &[Vec<String>], left: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < left {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn per_mille(number: u32) -> String {
    format!("{}.{} %", number / 10, number % 10)
}

/// Each profile as a table.
pub fn tables(kept: &[(Profile, Option<PathBuf>)], remarks: &[String]) -> String {
    let mut text = String::new();
    for (profile, file) in kept {
        let (path, calibration) = (profile.program.executable.path.display(), profile.calibration);
        let _ = writeln!(text, "{path}, watched for {}", units::time(calibration.watched_ns));
        let _ = writeln!(
            text,
            "on Linux {}, {}; {}\n",
            profile.machine.kernel, profile.machine.cpu, profile.machine.frequency
        );
        let head = [
            "thread",
            "kind",
            "period",
            "jitter",
            "jobs",
            "work: 50 %",
            "90 %",
            "99 %",
            "max",
            "explained",
            "by chance",
            "reservation",
        ];
        let mut rows = vec![head.map(String::from).to_vec()];
        profile.threads.iter().for_each(|thread| rows.extend(rows_of(thread)));
        text += &columns(&rows, 2);
        let about =
            format!("importance {}, margin {} %", calibration.importance.name(), calibration.margin.0);
        let _ = writeln!(text, "\nReservations: {about}. Jitter: of 99 % of the releases.");
        if let Some(file) = file {
            let _ = writeln!(text, "Profile: {}", file.display());
        }
        text += &warnings(profile);
        text.push('\n');
    }
    remarks.iter().for_each(|remark| _ = writeln!(text, "! {remark}."));
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The name of a thread, and its start routine where that matters.
fn name(thread: &Thread) -> String {
    let routine = thread.routine.as_ref().map(|routine| routine.function.as_ref().unwrap_or(&routine.place));
    routine.map_or(thread.name.clone(), |routine| format!("{} ({routine})", thread.name))
}

fn rows_of(thread: &Thread) -> Vec<Vec<String>> {
    let count = if thread.count == 1 { String::new() } else { format!(" ×{}", thread.count) };
    let name = format!("{}{count}", name(thread));
    let chance = thread.chance_percent.map_or("-".into(), |percent| format!("≤ {percent} %"));
    let reservation = thread
        .reservation
        .map_or("-".into(), |it| format!("{} every {}", show_time(it.budget_ns), show_time(it.period_ns)));
    let work = |work: &Work| [work.median_ns, work.p90_ns, work.p99_ns, work.max_ns].map(units::time);
    if thread.periods.is_empty() {
        let arrival = thread.arrival.map_or(String::new(), |arrival| format!(", {}", arrival.name()));
        let mut row = vec![name, format!("{}{arrival}", thread.verdict.name()), "-".into(), "-".into()];
        match &thread.burst {
            Some(burst) => {
                row.push(burst.jobs.to_string());
                row.extend(work(burst));
            }
            None => row.extend([thread.wakeups.to_string(), "-".into(), "-".into(), "-".into(), "-".into()]),
        }
        row.extend(["-".into(), chance, reservation]);
        return vec![row];
    }
    let of = |(at, period): (usize, &Period)| {
        let clock = if period.is_absolute { "periodic" } else { "periodic, by sleep" };
        let mut row = vec![if at == 0 { name.clone() } else { String::new() }, clock.into()];
        row.extend([
            units::time(period.period_ns),
            units::time(period.jitter_p99_ns),
            period.work.jobs.to_string(),
        ]);
        row.extend(work(&period.work));
        if at == 0 {
            row.extend([per_mille(thread.explained), chance.clone(), reservation.clone()]);
        }
        row
    };
    thread.periods.iter().enumerate().map(of).collect()
}

/// What may make the numbers wrong.
fn warnings(profile: &Profile) -> String {
    let mut text = String::new();
    for thread in &profile.threads {
        let (name, waited, ran) = (name(thread), per_mille(thread.waited), per_mille(thread.load));
        if thread.waited * 2 > thread.load {
            let why = "the machine was not idle, or the program's threads wait for each other";
            let _ = writeln!(
                text,
                "! {name} waited for a CPU for {waited} of the time and ran for {ran}: {why}."
            );
        }
        let overruns: u64 = thread.periods.iter().map(|period| period.overruns).sum();
        let jobs: u64 = thread.periods.iter().map(|period| period.work.jobs).sum();
        if overruns * 100 > jobs {
            let why = "because the one before was not complete: their work is an average";
            let _ = writeln!(text, "! {name}: {overruns} of {jobs} jobs began late, {why}.");
        }
    }
    text
}

/// Profiles as a list.
pub fn list(stored: &[Stored], machine: &Machine) -> String {
    if stored.is_empty() {
        return "No profiles. `tierce calibrate -- PROGRAM` makes one.\n".into();
    }
    let mut rows = vec![["program", "from", "periodic threads", "fits"].map(String::from).to_vec()];
    for Stored { layer, profile, .. } in stored {
        let periodic =
            profile.threads.iter().filter(|thread| !thread.periods.is_empty()).map(|thread| thread.count);
        let changes: Vec<String> = profile.changes(machine).into_iter().map(|change| change.what).collect();
        let fits =
            if changes.is_empty() { "yes".into() } else { format!("no, changed: {}", changes.join(", ")) };
        let path = profile.program.executable.path.display().to_string();
        rows.push(vec![path, layer.name().into(), periodic.sum::<u32>().to_string(), fits]);
    }
    columns(&rows, 4)
}

/// The same for programs.
pub fn to_json(kept: &[(Profile, Option<PathBuf>)], remarks: &[String]) -> Value {
    let profile = |(profile, file): &(Profile, Option<PathBuf>)| {
        let file_of = |file: &tierce_calibrate::File| json!({ "path": file.path, "sha256": file.sha256 });
        let (program, machine, calibration) = (&profile.program, &profile.machine, profile.calibration);
        json!({
            "program": file_of(&program.executable),
            "libraries": program.libraries.iter().map(file_of).collect::<Vec<_>>(),
            "machine": { "kernel": machine.kernel, "cpu": machine.cpu, "frequency": machine.frequency },
            "watched_ns": calibration.watched_ns, "lost": calibration.lost,
            "importance": calibration.importance.name(), "margin_percent": calibration.margin.0,
            "threads": profile.threads.iter().map(thread).collect::<Vec<_>>(),
            "file": file,
        })
    };
    json!({ "version": VERSION, "profiles": kept.iter().map(profile).collect::<Vec<_>>(), "remarks": remarks })
}

fn thread(thread: &Thread) -> Value {
    json!({
        "name": thread.name, "routine": thread.routine.as_ref().map(|routine| &routine.place),
        "function": thread.routine.as_ref().and_then(|routine| routine.function.as_ref()),
        "process": thread.process, "count": thread.count, "verdict": thread.verdict.name(),
        "arrival": thread.arrival.map(|arrival| arrival.name()), "wakeups": thread.wakeups,
        "load": thread.load, "waited": thread.waited, "explained": thread.explained, "chance_percent": thread.chance_percent,
        "periods": thread.periods.iter().map(period).collect::<Vec<_>>(),
        "burst": thread.burst.as_ref().map(work),
        "reservation": thread.reservation.map(|it| {
            json!({ "budget_ns": it.budget_ns, "period_ns": it.period_ns, "deadline_ns": it.period_ns })
        }),
    })
}

fn period(period: &Period) -> Value {
    json!({
        "period_ns": period.period_ns, "clock": if period.is_absolute { "timer" } else { "sleep" },
        "jitter_ns": { "p99": period.jitter_p99_ns, "max": period.jitter_max_ns },
        "kept": period.kept, "chance_percent": period.chance_percent, "work_ns": work(&period.work),
        "overruns": period.overruns, "resumed": period.resumed, "first_ns": period.first_ns, "last_ns": period.last_ns,
    })
}

fn work(work: &Work) -> Value {
    json!({ "jobs": work.jobs, "median": work.median_ns, "p90": work.p90_ns, "p99": work.p99_ns, "max": work.max_ns })
}
