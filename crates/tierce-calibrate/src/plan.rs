//! A plan that gives each periodic thread of programs its reservation.

use crate::profile::{quoted, Calibration, Profile, Thread};
use crate::proposal::Reservation;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use tierce_plan::show_time;

/// Reservations come first on each CPU; all other threads share what is left, and have at least a twentieth of each CPU.
const TREE: &str = "
# What each CPU runs: reservations, then everything else.
[node.top]
policy = \"fixed-priority\"
per_cpu = true

[node.rt]
policy = \"reservation\"
per_cpu = true
under.top = { priority = 1 }

# All other threads: at least a twentieth of each CPU, and what is left.
[node.rest]
policy = \"fair\"
credit = \"6ms\"
default = true
each = { weight = \"nice\" }
under.rt = { budget = \"1ms\", period = \"20ms\" }
under.top = { priority = 0 }
";

/// Threads that were watched, for a plan.
pub struct Watching<'a> {
    /// What to say about them: lines of a comment.
    pub about: Vec<String>,
    /// How they were watched, and what was made of it.
    pub calibration: Calibration,
    /// The executable by which they are recognised, beside their names.
    pub executable: Option<&'a Path>,
    /// What a job needs beyond its budget comes from what is left for all others, instead of the next period.
    pub overruns_go_on: bool,
    /// The threads.
    pub threads: &'a [Thread],
}

/// A task or a set of a plan, for threads of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its name in the plan.
    pub name: String,
    /// The name of its threads.
    pub thread: String,
    /// What each of them gets.
    pub reservation: Reservation,
}

/// The text of a plan with a reservation for each periodic thread, for a machine with so many CPUs. `cpu = "any"` places them where
/// they fit.
pub fn plan(profiles: &[&Profile], cpus: u32) -> String {
    let watchings: Vec<Watching> = profiles.iter().map(|profile| of_profile(profile)).collect();
    plan_of("tierce calibrate --plan", &watchings, cpus).0
}

fn of_profile(profile: &Profile) -> Watching<'_> {
    let Profile { program, machine, calibration, threads } = profile;
    let path = program.executable.path.as_path();
    let about = vec![
        format!("{}, watched for {}", path.display(), show_time(calibration.watched_ns)),
        format!("on Linux {}, {}; {}.", machine.kernel, machine.cpu, machine.frequency),
    ];
    let calibration = *calibration;
    Watching { about, calibration, executable: Some(path), overruns_go_on: false, threads }
}

/// The same for threads that are of no profile, and what it has for which of them; `by` is the command that writes it.
pub fn plan_of(by: &str, watchings: &[Watching], cpus: u32) -> (String, Vec<Planned>) {
    let mut text = format!("# Written by `{by}`.\n#\n#   check:  tierce check FILE\n");
    text += "#   enforce (root): tierce run FILE\n\n";
    let _ = write!(text, "[machine]\ncpus = {cpus}\n{TREE}");
    let mut names: BTreeSet<String> = ["top", "rt", "rest"].map(String::from).into();
    let mut planned = Vec::new();
    for watching in watchings {
        text.push('\n');
        watching.about.iter().for_each(|about| _ = writeln!(text, "# {}", line(about)));
        let mut done: Vec<&str> = Vec::new();
        for thread in watching.threads {
            if !done.contains(&thread.name.as_str()) {
                done.push(&thread.name);
                let same: Vec<&Thread> =
                    watching.threads.iter().filter(|other| other.name == thread.name).collect();
                planned.extend(write_threads(&mut text, &mut names, watching, &same));
            }
        }
    }
    (text, planned)
}

/// Threads of one name, which a plan cannot tell apart: each gets what the most demanding of them needs.
fn write_threads(
    text: &mut String,
    names: &mut BTreeSet<String>,
    watching: &Watching,
    same: &[&Thread],
) -> Option<Planned> {
    text.push('\n');
    let mut needs: Option<Reservation> = None;
    for thread in same {
        write_findings(text, watching.calibration, thread);
        needs = match (needs, thread.reservation) {
            (Some(one), Some(other)) => Some(Reservation {
                budget_ns: one.budget_ns.max(other.budget_ns).min(one.period_ns.min(other.period_ns)),
                period_ns: one.period_ns.min(other.period_ns),
            }),
            (one, other) => one.or(other),
        };
    }
    let reservation @ Reservation { budget_ns, period_ns } = needs?;
    if same.len() > 1 {
        *text += "# They have one name: each gets what the most demanding of them needs.\n";
    }
    let (name, [budget, period]) = (free_name(names, &same[0].name), [budget_ns, period_ns].map(show_time));
    let _ = match same.iter().map(|thread| thread.count).sum() {
        1 => writeln!(text, "[task.{name}]"),
        count => writeln!(text, "[tasks.{name}]\ncount = {count}"),
    };
    let soft = if watching.overruns_go_on { ", soft = \"rest\"" } else { "" };
    let _ =
        writeln!(text, "under.rt = {{ cpu = \"any\", budget = \"{budget}\", period = \"{period}\"{soft} }}");
    let _ = writeln!(text, "needs = \"RESBS {budget} {period}\"");
    // What the simulator plays; of several periods it could not play one beside the other.
    if let [Thread { periods, .. }] = same {
        if let [one] = &periods[..] {
            let work = watching.calibration.importance.work_of(&one.work).0.clamp(1, budget_ns);
            let _ = writeln!(text, "load = {{ period = \"{period}\", work = \"{}\" }}", show_time(work));
        }
    }
    let comm = glob(&same[0].name);
    let _ = match watching.executable {
        Some(path) => writeln!(text, "match = {{ comm = {comm}, exe = {} }}", glob(&path.to_string_lossy())),
        None => writeln!(text, "match = {{ comm = {comm} }}"),
    };
    Some(Planned { name, thread: same[0].name.clone(), reservation })
}

/// What was found out, as comments.
fn write_findings(text: &mut String, calibration: Calibration, thread: &Thread) {
    let importance = calibration.importance;
    for period in &thread.periods {
        let (work_ns, jobs) = importance.work_of(&period.work);
        let (every, work) = (show_time(period.period_ns), show_time(work_ns));
        let _ = writeln!(text, "# Every {every}: {work} ({jobs} of {} jobs).", period.work.jobs);
    }
    if thread.periods.len() > 1 {
        *text += "# The budget covers a job of each period, since the thread does one after the other.\n";
    }
    if thread.periods.is_empty() {
        let arrival = thread.arrival.map_or(String::new(), |arrival| format!(" ({})", arrival.name()));
        let (name, verdict, load) = (line(&thread.name), thread.verdict.name(), per_mille(thread.load));
        let _ = writeln!(
            text,
            "# {name} is {verdict}{arrival}: no reservation, it belongs to `rest`. It used {load} of a CPU."
        );
    } else {
        let (margin, explained) = (calibration.margin.0, per_mille(thread.explained));
        let _ = writeln!(text, "# Margin: {margin} %. Wake-ups explained: {explained}.");
    }
}

/// A name of the plan language that is not taken: the thread's, as far as it can be one.
fn free_name(names: &mut BTreeSet<String>, thread: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let mut base: String = thread.chars().map(plain).collect();
    if !base.starts_with(|c: char| c.is_ascii_alphabetic()) {
        base.insert_str(0, "thread-");
    }
    let all = std::iter::once(base.clone()).chain((2u64..).map(|number| format!("{base}-{number}")));
    let name = all.into_iter().find(|name| !names.contains(name)).unwrap_or(base);
    names.insert(name.clone());
    name
}

/// A pattern that matches this text only.
fn glob(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if "*?[\\".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    quoted(&pattern)
}

/// One line of a comment.
fn line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// As percent.
fn per_mille(number: u32) -> String {
    format!("{}.{} %", number / 10, number % 10)
}
