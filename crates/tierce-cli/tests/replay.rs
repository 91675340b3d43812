//! `tierce sim --replay`: the same decisions or the first that differs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tierce_policy::{policies, recording, Cpus, Graph, TASK};

fn recorded() -> Vec<u8> {
    let fair = policies().iter().find(|policy| policy.name == "fair").expect("the fair policy").number;
    let mut graph = Graph::recorded(1, 0).unwrap();
    let node = graph.node_new(fair, 0, Cpus::from(0), [3_000_000, 0, 0, 0]).unwrap();
    graph.root(0, node, 0).unwrap();
    for weight in [100, 200] {
        let task = graph.node_new(TASK, 0, Cpus::from(1), [0; 4]).unwrap();
        graph.attach(node, task, [weight, 0, 0, 0], 0, false, 0).unwrap();
        graph.request(task, 0);
    }
    let mut now = 0;
    for _ in 0..100 {
        graph.decide(0, now, 0);
        now = graph.until(0);
    }
    let mut writer = recording::Writer::new(vec![], 0).unwrap();
    graph.take_entries().iter().for_each(|entry| writer.write(entry).unwrap());
    writer.finish().unwrap()
}

fn replay(name: &str, bytes: &[u8]) -> Output {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, bytes).unwrap();
    Command::new(env!("CARGO_BIN_EXE_tierce")).args(["sim", "--replay"]).arg(file).output().unwrap()
}

#[test]
fn the_same_decisions() {
    let output = replay("same.rec", &recorded());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("100 decisions among them: all identical"), "{text}");
}

#[test]
fn the_first_that_differs_is_shown_with_both_states() {
    let mut bytes = recorded();
    let at = bytes.len() - 48 + 36 + 4; // the task of the last decision
    bytes[at] ^= 1;
    let output = replay("differs.rec", &bytes);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("differs") && text.contains("recorded") && text.contains("replayed"), "{text}");
    assert!(text.contains("cpu 0: runs task"), "{text}");
}

#[test]
fn what_is_no_recording_is_refused() {
    let output = replay("no.rec", b"something else");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("not a recording"));
    let missing = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["sim", "--replay", "/nowhere.rec"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

/// A run on two CPUs (bench/replay): a fork storm, reservations, a container on both CPUs, a plan that changes, a CPU that
/// goes and comes back. What the kernel decided is decided again, all of it.
#[test]
fn a_busy_run_on_two_cpus() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = std::env::temp_dir().join(format!("tierce-replay-{}", std::process::id()));
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args(["vm", "--deterministic", "--cpus", "2", "--memory", "1G", "--limit", "25m", "--out"]).arg(&out);
    vm.args(["--file", "guest.sh", "--file", "plan.toml", "--file", "../../tests/vm/lib.sh:/guest/lib.sh"]);
    let done = vm
        .args(["--", "sh", "guest.sh", "1", "50", "8000", "300ms"])
        .current_dir(project.join("bench/replay"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    println!("{said}");
    assert!(done.status.success(), "{said}");
    for line in [
        r#""applied-1","got":5"#,
        r#""offline-1","got":"0""#,
        r#""online-1","got":"0-1""#,
        r#""back-1","got":5"#,
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }

    let done = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["sim", "--json", "--replay"])
        .arg(out.join("run.rec"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    println!("{said}");
    assert!(done.status.success(), "{said}");
    let replayed: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(replayed["identical"], true);
    assert!(replayed["decisions"].as_u64().unwrap() >= 50_000, "{said}");
    for (operation, least) in [
        ("request", 1_000),
        ("release", 1_000),
        ("event", 1_000),
        ("returned", 10), // of the container: the default node is spread
        ("leave", 100),
        ("enter", 100),
        ("balance", 100),
        ("node_new", 50),
        ("node_free", 50),
        ("attach", 50),
        ("detach", 50),
        ("set", 2),
        ("online", 2),
        ("taken", 1_000),
    ] {
        assert!(replayed["operations"][operation].as_u64() >= Some(least), "{operation}: {said}");
    }
    std::fs::remove_dir_all(&out).unwrap();
}
