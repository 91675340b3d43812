//! `tierce import` and `tierce export` as a user calls them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tierce(arguments: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments = arguments.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_tierce")).current_dir(root).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What it printed, which went well.
fn done(arguments: &str) -> String {
    let output = tierce(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn json(arguments: &str) -> serde_json::Value {
    serde_json::from_str(&done(arguments)).unwrap()
}

/// A file of this test's own.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("formats-{name}"))
}

/// From the file of another tool to a picture, and back. `responses` are bounds in ms, by task or chain.
fn all_the_way(name: &str, format: &str, responses: &[(&str, u64)]) {
    let [plan, trace, page, back] =
        ["toml", "trace", "html", "back"].map(|end| file(&format!("{name}.{end}")).display().to_string());
    done(&format!("import tests/formats/{name} -o {plan}"));
    let checked = json(&format!("check --json {plan}"));
    let parts = |kind: &str| checked[kind].as_array().unwrap().clone();
    let parts = [parts("tasks"), parts("chains")].concat();
    for (name, ms) in responses {
        let found = parts.iter().find(|found| found["name"] == *name).unwrap();
        let bound = found["wcrt_ns"].as_u64().or(found["response_ns"].as_u64());
        // Where a file has a least work of 0, a plan has 1 ns.
        assert_eq!(bound.unwrap().div_ceil(1_000), ms * 1_000, "{name}");
    }
    // Streams of pyCPA have no deadlines: their jobs may take longer than their periods.
    let misses = if format == "pycpa" { "" } else { "--expect-no-misses" };
    let report = done(&format!("sim {plan} --for 1s {misses} --trace {trace}"));
    assert!(report.contains("simulated"), "{report}");
    done(&format!("timeline {trace} --html {page}"));
    assert!(std::fs::metadata(&page).unwrap().len() > 10_000);
    done(&format!("export {plan} --format {format} -o {back}"));
    let again = done(&format!("import {back} --format {format}"));
    let said = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split(" # ").next().unwrap().to_string()).collect()
    };
    assert_eq!(said(&again), said(&std::fs::read_to_string(&plan).unwrap()));
}

/// The three tasks of SimSo's own script (misc/script.py): 3, 6 and 20 ms are what rate monotonic analysis has for them.
#[test]
fn a_file_of_simso_is_checked_simulated_and_drawn() {
    all_the_way("simso-rm.xml", "simso", &[("T1", 3), ("T2", 6), ("T3", 20)]);
}

/// The numbers of a system with which public tests compare tools with MAST: its holistic analysis has 42 and 30 for the two flows.
#[test]
fn a_model_of_mast_is_checked_simulated_and_drawn() {
    all_the_way("mast-two-flows.txt", "mast", &[("a1", 5), ("flow1", 42), ("flow2", 30)]);
}

/// The same through XML.
#[test]
fn models_of_mast_are_the_same_in_both_notations() {
    let plan = file("two-flows.toml").display().to_string();
    let model = file("two-flows.xml").display().to_string();
    done(&format!("import tests/formats/mast-two-flows.txt -o {plan}"));
    done(&format!("export {plan} --format mast-xml -o {model}"));
    let again = json(&format!("import {model} --json"));
    let said =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(String::from).collect::<Vec<_>>();
    assert_eq!(said(again["plan"].as_str().unwrap()), said(&std::fs::read_to_string(&plan).unwrap()));
}

/// Blocking in a model of MAST: `control` waits for the longest section of a lock with its ceiling, 2.5 ms, after 1 ms of jitter.
#[test]
fn locks_of_mast_are_bounded_and_played() {
    all_the_way("mast-locks.txt", "mast", &[]);
    let plan = file("mast-locks.txt.toml").display().to_string();
    let checked = json(&format!("check --json {plan}"));
    let control = &checked["tasks"][0];
    assert_eq!((&control["name"], &control["wcrt_ns"]), (&"control".into(), &11_000_000.into()));
    assert_eq!(control["blocking"]["most_ns"], 2_500_000);
}

/// pyCPA's examples/spp_test.py: its documentation prints 10, 13, 2 and 21 ms, from when a job is ready. A plan counts from the release
/// that has no jitter, which adds 5 and 6 to those of the heads. T21 is ready 5 to 15 after that release and takes 2, T22 1 to 19 and
/// takes 11: pyCPA has 21 for this one alone, and 34 from the release that has jitter; the plan has 30 from the one that has none.
#[test]
fn a_system_of_pycpa_is_checked_simulated_and_drawn() {
    all_the_way(
        "pycpa-spp.xml",
        "pycpa",
        &[("T11", 10 + 5), ("T12", 13 + 6), ("T21", 2 + 10), ("T22", 11 + 18)],
    );
}

#[test]
fn what_is_left_out_is_said_and_strict_refuses_it() {
    let output = tierce("import tests/formats/simso-rm.xml --strict");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("tests/formats/simso-rm.xml:10: left out: `abort_on_miss` of 3 tasks"),
        "{said}"
    );
    let said = json("import tests/formats/simso-rm.xml --json");
    assert_eq!((&said["version"], &said["left_out"][0]["line"]), (&1.into(), &10.into()));
    assert!(said["plan"].as_str().unwrap().contains("[task.T3]"));
    let said = json("export examples/edf.toml --format simso --json");
    assert!(said["left_out"].as_array().unwrap().len() > 1, "{said}");
}

#[test]
fn bad_files_are_refused_with_their_place() {
    for (arguments, words) in [
        ("import README.md", "format_must_be_known"),
        ("import README.md --format pycpa", "xml_syntax"),
        ("import nowhere.xml", "cannot read nowhere.xml"),
        ("import tests/formats/simso-rm.toml --format mast", "mast_syntax"),
        ("export examples/hls-6.3.toml --format simso", "format_must_have_it"),
    ] {
        let output = tierce(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text(&output.stderr).contains(words), "{arguments}: {}", text(&output.stderr));
    }
    let latin = file("latin.txt");
    std::fs::write(&latin, b"-- Descripci\xf3n").unwrap();
    let said = tierce(&format!("import {}", latin.display()));
    assert!(text(&said.stderr).contains("file_must_be_utf8"), "{}", text(&said.stderr));
    let said = tierce("export README.md --format simso --json");
    assert_eq!(said.status.code(), Some(2));
    let refused: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert!(refused["faults"][0]["line"].is_u64() && said.stderr.is_empty(), "{refused}");
    let said = tierce("import README.md --format simso --json");
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stdout).contains("\"rule\": \"xml_syntax\""), "{}", text(&said.stdout));
}
