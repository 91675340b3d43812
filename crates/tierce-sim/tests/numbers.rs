//! Numbers that are known: from the papers, from the plans' own comments.

mod common;

use common::{parse, run, Run, MS};
use std::path::PathBuf;
use tierce_admission::PlanExt;
use tierce_plan::{Options, Plan};

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An example with some of its text replaced.
fn changed(name: &str, changes: &[(&str, &str)]) -> Plan {
    let mut text = example(name);
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no {from}");
        text = text.replace(from, to);
    }
    parse(&text)
}

fn percent(run: &Run, task: &str) -> f64 {
    run.task(task).cpu_ns as f64 * 100.0 / run.report.elapsed_ns as f64
}

/// Every example runs on machines of any size, with every invariant checked, and keeps the deadlines that it says it keeps. One that
/// names more CPUs is simulated with those.
#[test]
fn examples() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut played = Vec::new();
        for cpus in [1, 2, 4, 8] {
            let plan = Plan::load_with(&path, Options { cpus });
            let plan = plan.unwrap_or_else(|faults| panic!("{}", faults.report_plain()));
            if played.contains(&plan.machine.cpus) {
                continue;
            }
            played.push(plan.machine.cpus);
            let run = run(&plan, 400 * MS, 1);
            if !["renderer-none.toml", "probabilistic.toml"].contains(&name) {
                assert_eq!(run.misses(), 0, "{name} on {cpus} CPUs");
            }
            if cpus == 1 {
                assert!(run.report.cpus.iter().all(|cpu| cpu.used_ns > 0), "{name}");
            }
        }
    }
}

/// Regehr, table 10.4: one thread against many.
#[test]
fn isolation() {
    for many in [1, 4, 16, 64, 256] {
        let count = format!("count = {many}");
        let with = run_for(&changed("isolation.toml", &[("count = 16", &count)]), 1000);
        assert!((percent(&with, "one") - 50.0).abs() < 0.5, "{many}: {}", percent(&with, "one"));
        let flat = [("count = 16", count.as_str()), ("under.bob", "under.top"), ("under.alice", "under.top")];
        let without = run_for(&changed("isolation.toml", &flat), 10_000);
        let ideal = 100.0 / (many as f64 + 1.0); // 50, 20, 5.88, 1.54, 0.39
        assert!((percent(&without, "one") - ideal).abs() < 0.03, "{many}: {}", percent(&without, "one"));
    }
}

/// Without the checker: these are long.
fn run_for(plan: &Plan, for_ms: u64) -> Run {
    let mut simulation = tierce_sim::Simulation::new(plan, Default::default()).unwrap();
    simulation.run_until(for_ms * MS).unwrap();
    Run { header: simulation.header(), report: simulation.report(), events: Vec::new(), closing: Vec::new() }
}

/// Regehr, table 10.5: the CPU-bound frame renderer.
#[test]
fn renderer() {
    let play = |name: &str, hogs: u32, quantum: &str| {
        let (count, quantum) = (format!("count = {hogs}"), format!("quantum = \"{quantum}\""));
        let mut text = example(name).replace("count = 10", &count).replace("quantum = \"3ms\"", &quantum);
        if hogs == 0 {
            text.truncate(text.find("[tasks.hog]").unwrap());
        }
        let run = run_for(&parse(&text), 30_000);
        (run.task("renderer").jobs, run.task("renderer").misses)
    };
    for hogs in [0, 1, 10] {
        let (hard, soft) = (play("renderer-hard.toml", hogs, "3ms"), play("renderer-soft.toml", hogs, "3ms"));
        assert_eq!((hard.1, soft.1), (0, 0), "{hogs} hogs");
        assert!((900..=922).contains(&hard.0), "{hogs} hogs: 30 frames per second and a few: {}", hard.0);
        assert!(soft.0 > hard.0, "{hogs} hogs: the soft one takes what is left: {} frames", soft.0);
    }
    assert_eq!(play("renderer-none.toml", 0, "3ms"), (3030, 0));
    let (frames, misses) = play("renderer-none.toml", 10, "3ms");
    assert!(misses + 1 >= frames && frames > 200, "beside ten hogs: {misses} of {frames}");
    assert_eq!(play("renderer-none.toml", 1, "3ms").1, 0, "short turns");
    let (frames, misses) = play("renderer-none.toml", 1, "30ms");
    assert!(misses * 4 > frames, "long turns: {misses} of {frames}");
}

/// 2 ms in every 10 ms against four hogs: 1,000 periods without a nanosecond more or less, nor drift.
#[test]
fn exact_supply() {
    let run = run_for(&changed("reservation.toml", &[]), 10_000);
    let edge = &run.task("reserved").under[0];
    let supply = edge.supply_ns.unwrap();
    assert_eq!((supply.periods, supply.min, supply.max), (999, 2 * MS, 2 * MS));
    assert_eq!((run.task("reserved").cpu_ns, edge.throttles), (2000 * MS, 1000));
    let promise = edge.promise.unwrap();
    assert_eq!((promise.windows, promise.not_kept, promise.least_ns), (1000, 0, Some(2 * MS)));
    assert_eq!((promise.promised_ns, promise.received_ns), (2000 * MS, 2000 * MS));
    for hog in 0..4 {
        assert!(run.task(&format!("hog[{hog}]")).cpu_ns.abs_diff(2000 * MS) <= 3 * MS);
    }
}

/// Shares of fair children, of what they got together, within 0.5 % over 10 s; the reservation above to the nanosecond.
#[test]
fn depth_four() {
    let run = run_for(&changed("depth4.toml", &[]), 10_000);
    let group = run.node("app").cpu_ns;
    assert_eq!(group, 3000 * MS, "6 ms in every 20 ms");
    for (name, eighths) in [("one", 1.0), ("two", 2.0), ("three-quarters", 3.75), ("one-quarter", 1.25)] {
        let share = run.task(name).cpu_ns as f64 / group as f64;
        assert!((share / (eighths / 8.0) - 1.0).abs() < 0.005, "{name} {share}");
    }
}

/// Stages: each begins with a release, jobs of the last one run on, and a stage without jobs is a pause.
#[test]
fn stages() {
    let text = "
        [node.top]
        policy = \"edf\"
        cpu = 0
        [task.a]
        under.top = {}
        load = { stages = [
            { until = \"95ms\", period = \"10ms\", work = \"4ms\" },
            { until = \"115ms\", period = \"5ms\", work = [\"5ms\", \"15ms\"], deadline = \"4ms\" },
            { until = \"200ms\" },
            { period = \"20ms\", work = \"1ms\" },
        ], soft = true }";
    let plan = parse(text);
    // Ten jobs of 4 ms; four of 5, 15, 5, 15 ms, released at 95, 100, 105 and 110 ms, done at 100, 115, 120 and 135 ms; then five.
    let all = run(&plan, 300 * MS, 1);
    let a = all.task("a");
    assert_eq!((a.released, a.jobs, a.misses, a.cpu_ns), (19, 19, 4, 85 * MS));
    assert_eq!(a.response_ns.as_ref().unwrap().max, 25 * MS);
    // Late ones that are not done count, too: at 111 ms one of the four is done, one runs, one waits, all three late.
    let cut = run(&plan, 111 * MS, 1);
    assert_eq!((cut.task("a").released, cut.task("a").jobs, cut.task("a").misses), (14, 11, 3));
    let ended =
        parse(&text.replace("{ period = \"20ms\", work = \"1ms\" }", "{}").replace("\"200ms\"", "\"150ms\""));
    assert_eq!(run(&ended, 10_000 * MS, 1).task("a").released, 14);
    assert_eq!(run(&parse(&text.replace("soft = true", "soft = false")), 300 * MS, 1).task("a").misses, 4);
}
