//! `tierce sim` as a user calls it.

use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output};
use tierce_trace::{Reader, Stats};

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn tierce(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tierce")).arg("sim").args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = tierce(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tierce-sim-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Where tasks with `cpu = "any"` are.
#[test]
fn placed_tasks_are_named_with_their_cpus() {
    let folder = folder("placed");
    let path = folder.join("placed.toml").display().to_string();
    let text = r#"
        node.rt = { policy = "reservation", per_cpu = true }
        task.a = { under.rt = { cpu = "any", budget = "3ms", period = "10ms" }, load = "busy" }
        task.b = { under.rt = { cpu = "any", budget = "8ms", period = "10ms" }, load = "busy" }
    "#;
    fs::write(&path, text).unwrap();
    let said = out(&tierce(&[&path, "--for", "100ms", "--cpus", "2"]));
    assert!(said.starts_with("placed on CPU 0: b\nplaced on CPU 1: a\n\n"), "{said}");
    let report = json(&[&path, "--for", "100ms", "--cpus", "2", "--json"]);
    let parents: Vec<_> =
        report["tasks"].as_array().unwrap().iter().map(|task| &task["under"][0]["parent"]).collect();
    assert_eq!(parents, ["rt@1", "rt@0"]);
    let refused = tierce(&[&path, "--for", "100ms", "--cpus", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("no CPU has room for `a` below `rt`"), "{}", err(&refused));
    let _ = fs::remove_dir_all(&folder);
}

/// The JSON has what others build on.
#[test]
fn json_of_a_plan() {
    let report = json(&[&example("desktop.toml"), "--for", "1s", "--json", "--check"]);
    assert_eq!(report["elapsed_ns"], 1_000_000_000);
    let audio = &report["tasks"][0];
    assert_eq!((&audio["name"], &audio["cpu_ns"]), (&"audio".into(), &180_000_000.into()));
    assert_eq!((&audio["jobs"], &audio["misses"], &audio["migrations"]), (&100.into(), &0.into(), &0.into()));
    let response = &audio["response_ns"];
    for field in ["min", "avg", "p99", "max"] {
        assert_eq!(response[field], 1_800_000, "{response}");
    }
    let names: Vec<_> = report["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
    assert_eq!(names, ["top", "rt", "desktop", "build"]);
    let supply = &report["nodes"][2]["under"][0]["supply_ns"];
    assert_eq!(
        (&supply["min"], &supply["avg"], &supply["max"]),
        (&5_000_000.into(), &5_000_000.into(), &5_000_000.into())
    );
    let again = json(&[&example("desktop.toml"), "--for", "1s", "--json"]);
    assert_eq!(again, report);
    let other = json(&[&example("desktop.toml"), "--for", "1s", "--json", "--seed", "2"]);
    assert_ne!(other["tasks"], report["tasks"]);
}

#[test]
fn tables_of_a_plan() {
    let output = tierce(&[&example("edf.toml"), "--for", "1s"]);
    let text = out(&output);
    for word in ["1 s simulated, seed 1", "sporadic", "resp. min", "40.00 %", "no deadline missed"] {
        assert!(text.contains(word), "{word}\n{text}");
    }
    assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
}

/// A trace says the same as the run that wrote it, and the pictures are there.
#[test]
fn trace_and_pictures() {
    let folder = folder("trace");
    let path = |name: &str| folder.join(name).display().to_string();
    let (trace, page, perfetto) = (path("t"), path("t.html"), path("t.pftrace"));
    let arguments = [
        &example("rt-app.toml"),
        "--for",
        "300ms",
        "--json",
        "--trace",
        &trace,
        "--html",
        &page,
        "--perfetto",
        &perfetto,
    ];
    let report = json(&arguments);
    let reader = Reader::new(File::open(&trace).unwrap()).unwrap();
    let mut stats = Stats::new(reader.header());
    let end_ns = reader.header().end_ns.unwrap();
    reader.for_each(|event| stats.event(&event.unwrap()));
    stats.finish(end_ns);
    assert_eq!(serde_json::to_value(stats.report()).unwrap()["tasks"], report["tasks"]);
    assert!(fs::read_to_string(&page).unwrap().contains("audio"));
    assert!(fs::metadata(&perfetto).unwrap().len() > 1000);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn misses_decide_the_exit_code_only_when_asked() {
    let (bad, good) = (example("renderer-none.toml"), example("renderer-hard.toml"));
    let output = tierce(&[&bad, "--for", "2s"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(out(&output).contains("missed their deadline, most of them of renderer"), "{}", out(&output));
    assert_eq!(tierce(&[&bad, "--for", "2s", "--expect-no-misses"]).status.code(), Some(1));
    assert_eq!(tierce(&[&good, "--for", "2s", "--expect-no-misses"]).status.code(), Some(0));
}

/// One row per refusal.
#[test]
fn refusals() {
    let folder = folder("refusals");
    let plan = folder.join("bad.toml").display().to_string();
    fs::write(&plan, "[node.top]\npolicy = \"fair\"\ncpu = 0\n[task.a]\nunder.tpo = {}\n").unwrap();
    let nowhere = folder.join("no/such/folder").display().to_string();
    let good = example("edf.toml");
    let cases: [(&[&str], &str); 7] = [
        (&[&plan], "tpo"),
        (&["no-such-plan.toml"], "no-such-plan.toml"),
        (&[&good, "--for", "0s"], "longer than 0"),
        (&[&good, "--for", "10"], "unit"),
        (&[&good, "--trace", &nowhere], &nowhere),
        (&[&good, "--html", &nowhere, "--for", "1ms"], &nowhere),
        (&[&good, "--cpus", "513"], "513"),
    ];
    for (arguments, word) in cases {
        let output = tierce(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(word), "{arguments:?}: {}", err(&output));
        assert_eq!(out(&output), "", "{arguments:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
