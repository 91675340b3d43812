//! A simulated trace as trace.dat: trace-cmd and we read the same from it.

mod common;

use common::Folder;
use std::process::Command;
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_recording::{write_trace_dat, Recording, Threads, What};
use tierce_sim::{Options, Simulation};
use tierce_trace::{Kind, Trace};

const PLAN: &str = r#"
[machine]
cpus = 2
[node.top]
policy = "fixed-priority"
per_cpu = true
[task.audio]
under.top = { cpu = 0, priority = 2 }
load = { period = "10ms", work = "2ms" }
[task.video]
under.top = { cpu = 0, priority = 1 }
load = { period = "40ms", work = "15ms" }
[task.rare]
under.top = { cpu = 1, priority = 1 }
load = { period = "1.5s", work = "1ms" }
"#;

fn trace() -> Trace {
    let plan = Plan::parse(PLAN, "plan").unwrap();
    let mut simulation = Simulation::new(&plan, Options { trace: true, ..Options::default() }).unwrap();
    simulation.run_until(4_000_000_000).unwrap();
    Trace { header: simulation.header(), events: simulation.take_events() }
}

#[test]
fn what_is_written_is_read_again() {
    let (trace, mut file) = (trace(), Vec::new());
    let records = write_trace_dat(&trace, &mut file).unwrap();
    let recording = Recording::of_bytes(file.clone()).unwrap();
    assert_eq!((recording.tool.as_str(), recording.cpus), ("trace-cmd 6", 2));
    let switches: Vec<_> = recording
        .filter_map(|event| match event.unwrap() {
            event if matches!(event.what, What::Switch { .. }) => {
                Some((event.time_ns, event.cpu, event.what))
            }
            _ => None,
        })
        .collect();
    let decisions: Vec<_> =
        trace.events.iter().filter(|event| event.kind() == Some(Kind::Decision)).collect();
    assert_eq!(switches.len(), decisions.len());
    for ((time_ns, cpu, what), decision) in switches.iter().zip(&decisions) {
        let What::Switch { from, to, .. } = what else { unreachable!() };
        assert_eq!((*time_ns, *cpu as u16, to.pid as u32), (decision.now_ns, decision.cpu, decision.a));
        assert_eq!(from.pid as u64, decision.value);
    }
    // A second and a half between two records does not fit into one entry.
    let mut recording = Recording::of_bytes(file).unwrap();
    let threads = Threads::of(recording.by_ref()).unwrap();
    assert_eq!((threads.records, threads.lost, threads.gaps), (records, 0, 0));
    let of = |name: &str| threads.all.iter().find(|thread| thread.comm.text() == name).unwrap();
    assert_eq!((of("audio").watched.ran_ns, of("video").watched.ran_ns), (800_000_000, 1_500_000_000));
    assert_eq!((of("rare").watched.bursts.len(), of("rare").watched.ran_ns), (3, 3_000_000));
    let video = of("video").response_ns.summary();
    assert_eq!((video.count, video.max), (100, 19_000_000));
}

#[test]
fn trace_cmd_opens_it() {
    let folder = Folder::new("write");
    let path = folder.0.join("trace.dat");
    let trace = trace();
    let records = write_trace_dat(&trace, &mut std::fs::File::create(&path).unwrap()).unwrap();
    let out = Command::new("trace-cmd").arg("report").arg(&path).output();
    let out = out.expect("trace-cmd is installed: scripts/setup test");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && text.contains("cpus=2"),
        "{text}{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
    let (switches, wakeups) = (count("sched_switch:"), count("sched_wakeup:"));
    assert_eq!((switches + wakeups) as u64, records, "{text}");
    let audio = trace.header.tasks.iter().find(|task| task.name == "audio").unwrap().id;
    assert!(text.contains(&format!("audio:{audio} [120]")), "{text}");
}
