//! A study's rows say what `tierce gen` and `tierce analyse` say of the same sets.

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
policy = ["fp", "rm", "dm", "dkc", "audsley", "edf", "fifo"]
responses = true

[[analyse]]
policy = ["rm", "audsley", "edf"]
preemption = "none"
responses = true

[[analyse]]
policy = ["rm", "edf"]
supply = ["4.5ms/5ms", "RESCS 9ms 10ms"]
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
periods = "5ms..50ms"

[[analyse]]
policy = ["rm", "dkc", "audsley", "edf"]
responses = true

[[analyse]]
policy = ["rm", "edf", "fifo"]
partition = ["first", "best", "worst", "next", "period", "mixed"]
responses = true

[[analyse]]
policy = "pd2"
quantum = "100us"
"#;

fn tierce(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Options of `tierce analyse` for a test by its name.
fn options(test: &str) -> Vec<String> {
    let mut words = test.split(", ");
    let mut options = vec!["--policy".to_string(), words.next().unwrap().to_string()];
    for word in words {
        match word.split_once(' ').unwrap() {
            ("not", _) => options.extend(["--preemption".into(), "none".into()]),
            (name, value) => options.extend([format!("--{name}"), value.to_string()]),
        }
    }
    options
}

fn compare(name: &str, text: &str) {
    let study = read(text, name).unwrap_or_else(|faults| panic!("{faults}"));
    let scratch = std::env::temp_dir().join(format!("tierce-cli-sweep-{name}-{}", std::process::id()));
    let folder = Folder::open(&scratch, &study, text).unwrap();
    run(&study, &folder, 2, Part { number: 1, of: 1 }, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
    let rows = (0..study.chunks()).flat_map(|chunk| folder.rows(&study, chunk).unwrap());
    let (mut met, mut missed) = (0, 0);
    for row in rows {
        let row = to_json(&study, &row);
        let text = |name: &str| row[name].to_string().trim_matches('"').to_string();
        let (cpus, periods) = (text("cpus"), if cpus_are_one(&row) { "2ms..40ms" } else { "5ms..50ms" });
        let range = |least: &str, most: &str| format!("{}..{}", text(least), text(most));
        let set = scratch.join("set.csv").display().to_string();
        let mut gen =
            vec!["gen".to_string(), "--method".into(), text("method"), "--cpus".into(), cpus.clone()];
        gen.extend([
            "--periods".into(),
            periods.into(),
            "--seed".into(),
            text("seed"),
            "-o".into(),
            set.clone(),
        ]);
        gen.extend(["--shares".into(), range("share_least", "share_most")]);
        match text("method").as_str() {
            "paper" => gen.extend(["--utilisation".into(), range("utilisation", "utilisation_most")]),
            _ => gen.extend(["--utilisation".into(), text("utilisation"), "--tasks".into(), text("tasks")]),
        }
        tierce(&gen.iter().map(String::as_str).collect::<Vec<_>>());
        let mut analyse = vec!["analyse".to_string(), "--json".into(), "--cpus".into(), cpus, set];
        analyse.extend(options(&text("test")));
        if text("test") == "pd2" {
            analyse.extend(["--quantum".into(), "100us".into()]);
        }
        let found = tierce(&analyse.iter().map(String::as_str).collect::<Vec<_>>());
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["schedulable"], row["schedulable"], "{row}\n{found}");
        if found["schedulable"] == true {
            met += 1
        } else {
            missed += 1
        };
        let tasks = found["tasks"].as_array().unwrap();
        let ratio =
            |task: &serde_json::Value| Some(task["wcrt_ns"].as_u64()? as f64 / task["deadline_ns"].as_f64()?);
        let ratios: Option<Vec<f64>> = tasks.iter().map(ratio).collect();
        // None where a task fits on no CPU: then none has a response.
        let largest = ratios.and_then(|ratios| ratios.into_iter().reduce(f64::max));
        if text("test") != "pd2" {
            assert_eq!(row["ratio"].as_f64(), largest, "{row}\n{found}");
        }
    }
    assert!(met > 10 && missed > 10, "{met} {missed}");
    std::fs::remove_dir_all(&scratch).unwrap();
}

fn cpus_are_one(row: &serde_json::Value) -> bool {
    row["cpus"] == 1
}

#[test]
fn rows_are_what_analyse_says() {
    compare("one", ONE_CPU);
    compare("four", FOUR_CPUS);
}
