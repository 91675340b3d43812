//! Recordings of real tools: what is read is what the tools themselves print; the periods and works that rt-app had are found; the proposed
//! plan is checked and simulated.

mod common;

use common::{bytes, threads, Folder, ALL};
use std::process::Command;
use tierce_calibrate::Kind;
use tierce_recording::{
    header, propose, replay, write_stream, Leaves, Recording, RecordingError, What, Wishes,
};
use tierce_trace::{Kind as EventKind, Stats, Trace};

/// Switches as trace-cmd prints them: time in ns, CPU, from, to.
fn switches_by_trace_cmd(path: &std::path::Path) -> Vec<(u64, u32, i32, i32)> {
    let out = Command::new("trace-cmd").args(["report", "-t", "-R", "-F", "sched_switch"]).arg(path).output();
    let out = out.expect("trace-cmd is installed: scripts/setup test");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let value = |line: &str, key: &str| -> i64 {
        let rest = line.split_once(key).unwrap_or_else(|| panic!("{key} in {line}")).1;
        rest.split_whitespace().next().unwrap().trim_end_matches(',').parse().unwrap()
    };
    let lines = text.lines().filter(|line| line.contains("sched_switch:"));
    lines
        .map(|line| {
            let cpu = line.split_once('[').unwrap().1.split_once(']').unwrap().0.parse().unwrap();
            let time = line.split_once("sched_switch:").unwrap().0.trim().trim_end_matches(':');
            let time = time.rsplit(' ').next().unwrap().replace('.', "").parse().unwrap();
            (time, cpu, value(line, "prev_pid=") as i32, value(line, "next_pid=") as i32)
        })
        .collect()
}

fn switches(recording: Recording) -> Vec<(u64, u32, i32, i32)> {
    let switch = |event: tierce_recording::Sched| match event.what {
        What::Switch { from, to, .. } => Some((event.time_ns, event.cpu, from.pid, to.pid)),
        _ => None,
    };
    recording.filter_map(|event| switch(event.unwrap())).collect()
}

#[test]
fn what_is_read_is_what_trace_cmd_prints() {
    let folder = Folder::new("report");
    for name in &ALL[..2] {
        let path = folder.0.join("trace.dat");
        std::fs::write(&path, bytes(name)).unwrap();
        let (mut ours, mut theirs) =
            (switches(Recording::open(&path).unwrap()), switches_by_trace_cmd(&path));
        assert!(ours.len() > 1000, "{name}: {}", ours.len());
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn what_is_read_is_what_perf_prints() {
    let folder = Folder::new("script");
    let path = folder.0.join("perf.data");
    std::fs::write(&path, bytes("perf.data.zst")).unwrap();
    let mut script = Command::new("perf");
    script.args(["script", "--ns", "-F", "cpu,time,event,trace", "-i"]).arg(&path);
    let out = script.output().expect("perf is installed: scripts/setup test");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let number = |line: &str, key: &str| -> i32 {
        line.split_once(key).unwrap().1.split_whitespace().next().unwrap().parse().unwrap()
    };
    let lines = text.lines().filter(|line| line.contains("sched:sched_switch:"));
    let mut theirs: Vec<(u64, u32, i32, i32)> = lines
        .map(|line| {
            let (cpu, rest) = line.trim().strip_prefix('[').unwrap().split_once(']').unwrap();
            let time = rest.split_once(':').unwrap().0.trim().replace('.', "").parse().unwrap();
            (time, cpu.parse().unwrap(), number(line, "prev_pid="), number(line, "next_pid="))
        })
        .collect();
    let mut ours = switches(Recording::open(&path).unwrap());
    assert!(ours.len() > 1000 && ours.is_sorted_by_key(|switch| switch.0), "{}", ours.len());
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs);
}

/// rt-app's threads: period in ns, and its work, which it measures by the clock on the wall.
#[test]
fn periods_are_found_within_one_percent() {
    for name in ALL {
        let (recording, threads) = threads(name);
        let proposal = propose(&threads, recording.cpus, name, &Wishes { seed: 1, ..Wishes::default() });
        for (thread, period_ns) in [("audio", 10_000_000u64), ("video", 33_333_000)] {
            let at = threads.all.iter().position(|one| one.comm.text() == thread).unwrap();
            let finding = proposal.findings[at].as_ref().unwrap();
            let Kind::Periodic { periods, .. } = &finding.kind else {
                panic!("{name}: {thread}: {finding:?}")
            };
            let found = periods[0].period_ns;
            println!("{name}: {thread}: {found} ns, 99 % of {:?}", periods[0].work);
            assert!(found.abs_diff(period_ns) * 100 < period_ns, "{name}: {thread}: {found}");
            let planned = proposal.planned.iter().find(|planned| planned.thread == thread).unwrap();
            assert!(planned.reservation.period_ns.abs_diff(period_ns) * 100 < period_ns, "{planned:?}");
            assert!(planned.reservation.budget_ns > periods[0].work.p99_ns, "{planned:?}");
        }
    }
}

#[test]
fn the_proposed_plan_meets_what_the_recording_met() {
    for name in ALL {
        let (recording, threads) = threads(name);
        let names = ["audio", "video"].map(|name| tierce_plan::Glob::new(name).unwrap()).into();
        let wishes = Wishes { names, seed: 1, ..Wishes::default() };
        let proposal = propose(&threads, recording.cpus, name, &wishes);
        let replayed = replay(&threads, &proposal).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(replayed.is_met(), "{name}: {}", replayed.faults);
        let reserved: Vec<_> = replayed.compared.iter().filter(|one| one.deadline_ns.is_some()).collect();
        assert_eq!(reserved.len(), 2, "{name}");
        for one in &replayed.compared {
            // Every whole burst is a job; those that were not complete at the end may be missing.
            let thread = &threads.all[one.thread];
            assert_eq!(one.had.jobs, thread.watched.bursts.len() as u64);
            assert!(
                one.gets.jobs <= one.had.jobs
                    && (one.gets.jobs + 2 >= one.had.jobs || one.deadline_ns.is_none())
            );
        }
        // They come first on their CPUs: they begin at once, where the recording made them wait.
        for one in reserved {
            let thread = &threads.all[one.thread];
            assert!(
                one.gets.latency_ns.summary().max < one.had.latency_ns.summary().max,
                "{name}: {}",
                thread.comm.text()
            );
        }
    }
}

/// A plan with too little: the comparison has to see it.
#[test]
fn a_plan_that_gives_too_little_does_not_meet_it() {
    let (recording, threads) = threads("trace-cmd-6.dat.zst");
    let names = vec![tierce_plan::Glob::new("video").unwrap()];
    let mut proposal = propose(&threads, recording.cpus, "", &Wishes { names, seed: 1, ..Wishes::default() });
    let begin = proposal.text.find("under.rt = { cpu = \"any\"").unwrap();
    let end = begin + proposal.text[begin..].find('\n').unwrap();
    let line = "under.rt = { cpu = \"any\", budget = \"1ms\", period = \"33.333ms\" }";
    proposal.text.replace_range(begin..end, line);
    let needs = proposal.text.find("needs = ").unwrap();
    let end = needs + proposal.text[needs..].find('\n').unwrap();
    proposal.text.replace_range(needs..end, "");
    let replayed = replay(&threads, &proposal).unwrap_or_else(|why| panic!("{why}"));
    let video = replayed.compared.iter().find(|one| one.deadline_ns.is_some()).unwrap();
    assert!(!video.is_met() && !replayed.is_met(), "{video:?}");
}

#[test]
fn the_stream_has_the_same_cpu_times() {
    for name in ALL {
        let (recording, threads) = threads(name);
        let header = header(name, &recording.clock, recording.cpus, &threads);
        let mut file = Vec::new();
        let again = Recording::of_bytes(bytes(name)).unwrap();
        let events = again.map(|event| event.map_err(|error: RecordingError| std::io::Error::other(error)));
        write_stream(&mut file, &header, events).unwrap();
        let (trace, fault) = Trace::read(&file[..]).unwrap();
        assert!(fault.is_none(), "{fault:?}");
        let mut stats = Stats::new(&trace.header);
        trace.events.iter().for_each(|event| stats.event(event));
        let completed =
            trace.events.iter().filter(|event| event.kind() == Some(EventKind::JobComplete)).count();
        let bursts: usize = threads.all.iter().map(|thread| thread.watched.bursts.len()).sum();
        assert_eq!(completed, bursts, "{name}");
        stats.finish(trace.end_ns());
        let report = stats.report();
        for cpu in &report.cpus {
            assert_eq!(
                cpu.used_ns + cpu.idle_ns + cpu.stolen_ns,
                report.elapsed_ns,
                "{name}: cpu {}",
                cpu.cpu
            );
        }
        for wanted in ["audio", "video"] {
            let thread = threads.all.iter().find(|thread| thread.comm.text() == wanted).unwrap();
            let task = report.tasks.iter().find(|task| task.name == wanted).unwrap();
            assert_eq!(task.cpu_ns, thread.watched.ran_ns, "{name}: {wanted}");
            assert_eq!(task.jobs, thread.watched.bursts.len() as u64, "{name}: {wanted}");
            assert_eq!(
                (task.switches, task.migrations),
                (thread.switches, thread.migrations),
                "{name}: {wanted}"
            );
        }
    }
}

#[test]
fn threads_that_sleep_and_end_are_told_apart() {
    let recording = Recording::of_bytes(bytes("trace-cmd-6.dat.zst")).unwrap();
    let mut counts = [0; 3];
    for event in recording {
        if let What::Switch { leaves, .. } = event.unwrap().what {
            counts[[Leaves::Ready, Leaves::Sleeps, Leaves::Ends]
                .iter()
                .position(|one| *one == leaves)
                .unwrap()] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
}
