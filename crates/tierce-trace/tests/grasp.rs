//! What is written for Grasp, read line by line: everything is named before it is used, jobs run on one processor at a time and
//! only between arrival and completion, servers while they have a budget, and times add up to those of the statistics.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

mod synthetic;

use std::collections::{HashMap, HashSet};
use synthetic::{generate, Options};
use tierce_trace::{grasp, Kind, Source, Trace};

#[derive(Default)]
struct Seen {
    names: HashSet<String>,
    /// Job to task; not yet completed.
    open: HashMap<String, String>,
    completed: usize,
    /// Job to processor and since when, in ns.
    running: HashMap<String, (String, u64)>,
    ran_ns: HashMap<String, u64>,
    depleted: usize,
    replenished: usize,
}

fn ns(text: &str) -> u64 {
    let (us, rest) = text.split_once('.').unwrap_or((text, "0"));
    us.parse::<u64>().unwrap() * 1000 + format!("{rest:0<3}").parse::<u64>().unwrap()
}

fn read(trace: &Trace) -> Seen {
    let mut text = Vec::new();
    grasp::write(trace, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (mut seen, mut last) = (Seen::default(), 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split(' ').collect();
        let [command, first, ..] = words[..] else { panic!("{line}") };
        if command != "plot" {
            assert!(["newProcessor", "newTask", "newServer"].contains(&command), "{line}");
            assert!(line.ends_with('"') && line.contains(" -name \""), "{line}");
            assert!(seen.names.insert(first.into()), "named twice: {line}");
            continue;
        }
        let at = ns(first);
        assert!(at >= last, "time goes back: {line}");
        last = at;
        let (what, who) = (words[2], words[3]);
        let stops = |seen: &mut Seen, job: &str| {
            let (_, since) = seen.running.remove(job).unwrap_or_else(|| panic!("it does not run: {line}"));
            *seen.ran_ns.entry(seen.open[job].clone()).or_default() += at - since;
        };
        match what {
            "jobArrived" => {
                assert!(seen.names.contains(words[4]) && words[4].starts_with("task"), "{line}");
                assert!(seen.open.insert(who.into(), words[4].into()).is_none(), "arrived twice: {line}");
            }
            "jobResumed" => {
                assert_eq!(words[4], "-processor");
                assert!(seen.open.contains_key(who), "{line}");
                assert!(seen.names.contains(words[5]), "{line}");
                assert!(seen.running.values().all(|(cpu, _)| cpu != words[5]), "two at once: {line}");
                assert!(
                    seen.running.insert(who.into(), (words[5].into(), at)).is_none(),
                    "runs twice: {line}"
                );
            }
            "jobPreempted" => {
                stops(&mut seen, who);
                assert!(
                    words.len() == 4 || (words[4] == "-target" && seen.open.contains_key(words[5])),
                    "{line}"
                );
            }
            "jobCompleted" => {
                if seen.running.contains_key(who) {
                    stops(&mut seen, who);
                }
                assert!(seen.open.remove(who).is_some(), "completed and not there: {line}");
                seen.completed += 1;
            }
            "serverReplenished" | "serverDepleted" | "serverResumed" | "serverPreempted" => {
                assert!(seen.names.contains(who) && who.starts_with("server"), "{line}");
                seen.depleted += usize::from(what == "serverDepleted");
                seen.replenished += usize::from(what == "serverReplenished");
            }
            _ => panic!("unknown: {line}"),
        }
    }
    let end = trace.end_ns();
    for (job, (_, since)) in std::mem::take(&mut seen.running) {
        *seen.ran_ns.entry(seen.open[&job].clone()).or_default() += end - since;
    }
    seen
}

#[test]
fn a_trace_is_a_script_that_adds_up() {
    for seed in 0..20 {
        println!("seed {seed}");
        let (trace, _) =
            generate(&Options { seed, end_ns: 300_000_000, stolen: seed % 2 == 1, source: Source::Sim });
        let seen = read(&trace);
        let count = |kind: Kind| trace.events.iter().filter(|event| event.kind() == Some(kind)).count();
        assert_eq!(seen.completed, count(Kind::JobComplete));
        assert_eq!(seen.depleted, count(Kind::Throttle));
        assert_eq!(seen.replenished, count(Kind::Replenish));
        let mut ran: HashMap<u32, u64> = HashMap::new();
        let mut on = vec![(0, 0); trace.header.cpus as usize];
        for event in trace.events.iter().filter(|event| event.kind() == Some(Kind::Decision)) {
            let (task, since) = std::mem::replace(&mut on[usize::from(event.cpu)], (event.a, event.now_ns));
            *ran.entry(task).or_default() += event.now_ns - since;
        }
        for (task, since) in on {
            *ran.entry(task).or_default() += trace.end_ns() - since;
        }
        for task in &trace.header.tasks {
            let of = |map: Option<&u64>| map.copied().unwrap_or(0);
            assert_eq!(
                of(seen.ran_ns.get(&format!("task{}", task.id))),
                of(ran.get(&task.id)),
                "{}",
                task.name
            );
        }
    }
}
