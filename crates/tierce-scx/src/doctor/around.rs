//! How the machine behaves while a plan is in force: what runs before it, and which knobs it does not heed. Nothing here
//! keeps a plan from being enforced.

use super::check::{Check, State};
use super::machine::Host;
use crate::threads::{Class, Live, Proc};
use std::path::Path;

/// Look around.
pub fn look(host: &Host) -> Vec<Check> {
    let threads = Proc::at(host.path("/proc")).all();
    let mut checks = vec![above(&threads), servers(host), watchdog()];
    checks.extend(ignored(host, &threads));
    checks
}

fn note(what: &'static str, found: impl Into<String>) -> Check {
    Check::new(what, State::Note, found)
}

fn above(threads: &[Live]) -> Check {
    const WHAT: &str = "above the plan";
    let with_class = |live: &Live| {
        let class = live.class.name().trim_start_matches("SCHED_");
        format!("{} ({}, {class})", live.thread.comm, live.thread.tid)
    };
    match who(threads, |live| live.class.above(), with_class) {
        None => note(WHAT, "no thread of SCHED_FIFO, SCHED_RR or SCHED_DEADLINE now"),
        Some(who) => note(
            WHAT,
            format!("threads of SCHED_FIFO, SCHED_RR, SCHED_DEADLINE run first, which is stolen time: {who}"),
        ),
    }
}

/// Who keeps real-time threads from taking everything.
fn servers(host: &Host) -> Check {
    const WHAT: &str = "real-time limit";
    const FOLDER: &str = "/sys/kernel/debug/sched";
    if !host.exists(FOLDER) {
        return note(WHAT, format!("not known: {FOLDER} is only there for root, with debugfs mounted"));
    }
    let number = |name: &str| host.number(&format!("{FOLDER}/ext_server/cpu0/{name}"));
    match (number("runtime"), number("period")) {
        (Some(runtime), Some(period)) if runtime > 0 => note(
            WHAT,
            format!(
                "the kernel keeps {} in {} for the plan when real-time threads would take everything (ext_server)",
                tierce_plan::show_time(runtime),
                tierce_plan::show_time(period)
            ),
        ),
        _ => note(
            WHAT,
            "none (no ext_server): a real-time thread that never sleeps starves the plan, until the watchdog ends it",
        ),
    }
}

fn watchdog() -> Check {
    note(
        "watchdog",
        "the kernel ends a plan that keeps a runnable thread waiting for 30 s; `[run] watchdog` in a plan makes it less",
    )
}

/// Most folders of cgroups looked at.
const FOLDERS: usize = 10_000;

/// Knobs in use now that a plan does not heed.
fn ignored(host: &Host, threads: &[Live]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut ignored = |found: String| checks.push(note("ignored", found));
    for (file, preset) in [
        ("cpu.weight", "100"),
        ("cpu.idle", "0"),
        ("cpu.max", "max"),
        ("cpu.uclamp.min", "0.00"),
        ("cpu.uclamp.max", "max"),
        ("cpu.shares", "1024"),
        ("cpu.cfs_quota_us", "-1"),
    ] {
        let set = groups_with(host, file, preset);
        if !set.is_empty() {
            ignored(format!("{file}, set in {}", some(set.into_iter())));
        }
    }
    let name = |live: &Live| format!("{} ({})", live.thread.comm, live.thread.tid);
    for class in [Class::Batch, Class::Idle] {
        if let Some(who) = who(threads, |live| live.class == class, name) {
            ignored(format!("{}, of {who}", class.name()));
        }
    }
    // Kernel threads of one CPU are not scheduled by Tierce.
    if let Some(who) = who(threads, |live| live.thread.nice != 0 && !live.is_pinned(), name) {
        ignored(format!("nice, of {who}; unless the default node has `each = {{ weight = \"nice\" }}`"));
    }
    if host.number("/proc/sys/kernel/sched_autogroup_enabled") == Some(1) {
        ignored(
            "autogroup (kernel.sched_autogroup_enabled = 1): sessions are no groups, threads of a set are"
                .into(),
        );
    }
    for (name, preset) in [("sched_util_clamp_min", 1024), ("sched_util_clamp_max", 1024)] {
        let path = format!("/proc/sys/kernel/{name}");
        if host.number(&path).is_some_and(|value| value != preset) {
            ignored(format!("uclamp (kernel.{name})"));
        }
    }
    checks
}

/// Those that fit: kernel threads are counted, others named.
fn who(threads: &[Live], fits: impl Fn(&Live) -> bool, name: impl Fn(&Live) -> String) -> Option<String> {
    let (kernel, users): (Vec<&Live>, Vec<&Live>) =
        threads.iter().filter(|live| fits(live)).partition(|live| live.thread.is_kthread);
    let kernel = match kernel.len() {
        0 => None,
        1 => Some("1 kernel thread".to_string()),
        count => Some(format!("{count} kernel threads")),
    };
    let users = (!users.is_empty()).then(|| some(users.into_iter().map(name)));
    match (users, kernel) {
        (Some(users), Some(kernel)) => Some(format!("{users}, {kernel}")),
        (users, kernel) => users.or(kernel),
    }
}

/// Three of them by name, and how many more.
fn some(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let first = names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(3) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Cgroups whose `file` does not begin with `preset`.
fn groups_with(host: &Host, file: &str, preset: &str) -> Vec<String> {
    let base = host.path("/sys/fs/cgroup");
    let mut groups = Vec::new();
    let mut folders = vec![base.clone()];
    let mut looked = 0;
    while let Some(folder) = folders.pop() {
        looked += 1;
        if looked > FOLDERS {
            break;
        }
        if let Ok(text) = std::fs::read_to_string(folder.join(file)) {
            if text.split_whitespace().next().is_some_and(|value| value != preset) {
                groups.push(name_below(&base, &folder));
            }
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    groups.sort();
    groups
}

fn name_below(base: &Path, folder: &Path) -> String {
    let below = folder.strip_prefix(base).unwrap_or(folder).display().to_string();
    if below.is_empty() {
        "/".into()
    } else {
        below
    }
}
