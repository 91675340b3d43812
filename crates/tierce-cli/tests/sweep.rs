//! The seed in a study's row draws its set again: `tierce gen` and `tierce analyse` say of it what the row says.

use serde_json::Value;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use tierce_sweep::{read, run, to_json, Folder, Part};

const ONE_CPU: &str = r#"
[study]
seed = 11
sets = 3

[generate]
method = ["uunifast-discard", "randfixedsum", "emberson"]
tasks = 7
utilisation = [0.7, 0.95]
periods = "2ms..40ms"

[[analyse]]
policy = "rm"
responses = true
"#;

const FOUR_CPUS: &str = r#"
[study]
seed = 12
sets = 3

[generate]
method = "paper"
cpus = 4
utilisation = ["0.4..0.41", "0.8..0.82"]
shares = "0.1..0.9"
periods = "2ms..40ms"

[[analyse]]
policy = "rm"
responses = true
"#;

fn tierce(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Of one row: whether its set is schedulable.
fn compare(row: &Value, set: &str) -> bool {
    let text = |name: &str| row[name].to_string().trim_matches('"').to_string();
    let range = |least: &str, most: &str| format!("{}..{}", text(least), text(most));
    let (method, cpus, seed, tasks) = (text("method"), text("cpus"), text("seed"), text("tasks"));
    let (shares, sums) = (range("share_least", "share_most"), range("utilisation", "utilisation_most"));
    let one = text("utilisation");
    let mut gen = vec!["gen", "--method", &method, "--cpus", &cpus, "--seed", &seed, "--shares", &shares];
    gen.extend(["--periods", "2ms..40ms", "-o", set, "--utilisation"]);
    match &*method {
        "paper" => gen.push(&sums),
        _ => gen.extend([&*one, "--tasks", &tasks]),
    }
    tierce(&gen);
    let found: Value =
        serde_json::from_str(&tierce(&["analyse", "--json", "--cpus", &cpus, "--policy", "rm", set]))
            .unwrap();
    assert_eq!(found["schedulable"], row["schedulable"], "{row}\n{found}");
    let tasks = found["tasks"].as_array().unwrap();
    let ratio = |task: &Value| Some(task["wcrt_ns"].as_u64()? as f64 / task["deadline_ns"].as_f64()?);
    let ratios: Option<Vec<f64>> = tasks.iter().map(ratio).collect();
    let largest = ratios.and_then(|ratios| ratios.into_iter().reduce(f64::max));
    assert_eq!(row["ratio"].as_f64(), largest, "{row}\n{found}");
    row["schedulable"] == true
}

#[test]
fn seeds_draw_the_sets_of_their_rows() {
    let scratch = std::env::temp_dir().join(format!("tierce-cli-sweep-{}", std::process::id()));
    let mut met = Vec::new();
    for (name, text) in [("one", ONE_CPU), ("four", FOUR_CPUS)] {
        let study = read(text, name).unwrap_or_else(|faults| panic!("{faults}"));
        let folder = Folder::open(&scratch.join(name), &study, text).unwrap();
        let all = Part { number: 1, of: 1 };
        run(&study, &folder, 2, all, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
        let set = scratch.join("set.csv").display().to_string();
        for row in (0..study.chunks()).flat_map(|chunk| folder.rows(&study, chunk).unwrap()) {
            met.push(compare(&to_json(&study, &row), &set));
        }
    }
    assert!(met.len() == 24 && met.contains(&true) && met.contains(&false), "{met:?}");
    std::fs::remove_dir_all(&scratch).unwrap();
}

/// A `tierce` alone says what it lacks, and where that belongs.
#[test]
fn a_program_that_is_not_installed() {
    let folder = std::env::temp_dir().join(format!("tierce-alone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let alone = folder.join("tierce");
    std::fs::copy(env!("CARGO_BIN_EXE_tierce"), &alone).unwrap();
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vm/split.csv");
    let picture = ["split", table, "--algorithm", "s-ekg", "--cpus", "2", "--picture", "slots.svg"];
    for (arguments, lacks) in
        [(&["sweep", "study.toml"][..], "tierce-sweep"), (&["top"], "tierce-top"), (&picture, "tierce-draw")]
    {
        let mut command = Command::new(&alone);
        let said = command.args(arguments).env("PATH", &folder).current_dir(&folder).output().unwrap();
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{text}");
        let message =
            format!("program_must_be_installed: {lacks}: it belongs beside tierce (docs/packages.md)");
        assert!(text.contains(&message), "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
