//! `tierce ctl` on a plan in force: one boot of a throw-away machine (tests/vm/ctl.sh), time counted in instructions.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use serde_json::{json, Value};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

fn tierce(args: &[&str]) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_tierce")).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

/// CPU time from the node `parent` to a part, between two looks, in parts per million of the time between them.
fn share(before: &Value, after: &Value, parent: &str, is_part: impl Fn(&Value) -> bool) -> u64 {
    let supply = |graph: &Value| -> u64 {
        let parts = ["nodes", "tasks"].map(|key| graph[key].as_array().unwrap()).into_iter().flatten();
        let edges = parts.filter(|part| is_part(part)).flat_map(|part| part["under"].as_array().unwrap());
        let edges = edges.filter(|edge| edge["parent"] == parent);
        edges.map(|edge| edge["supply_ns"].as_u64().unwrap()).sum()
    };
    let elapsed = after["elapsed_ns"].as_u64().unwrap() - before["elapsed_ns"].as_u64().unwrap();
    supply(after).saturating_sub(supply(before)) * 1_000_000 / elapsed
}

/// The one boot: a thread has a reservation and loses it, a node follows a cgroup, a set moves, the default node is another;
/// what is refused changes nothing; the recording replays.
#[test]
fn threads_get_what_operations_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vm");
    let out = std::env::temp_dir().join(format!("tierce-ctl-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&out);
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args(["vm", "--deterministic", "--limit", "25m", "--kernel", "7.0.13", "--cpus", "1"]);
    vm.args(["--file", "lib.sh", "--file", "ctl.toml", "--out"]).arg(&out).args(["--", "sh", "ctl.sh"]);
    let done = vm.current_dir(&folder).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}\n{errors}");
    let mut said: HashMap<String, Value> = HashMap::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}\n{errors}"));
        said.insert(value["scenario"].as_str().unwrap().to_string(), value["got"].clone());
    }
    let got = |scenario: &str| {
        said.get(scenario).unwrap_or_else(|| panic!("{scenario}: nothing\n{text}\n{errors}"))
    };
    let log = std::fs::read_to_string(out.join("ctl.err")).unwrap();
    assert_eq!(got("ctl-end"), &json!({ "code": 0, "state": "disabled" }), "{log}");
    let tid = |name: &str| got("threads")[name].as_u64().unwrap();
    let one = format!("tid-{}", tid("one"));

    // What was said, and with which exit code.
    let changes = |scenario: &str| -> Vec<String> {
        let Value::Array(list) = &got(scenario)["said"]["changes"] else {
            panic!("{scenario}: {}", got(scenario))
        };
        assert_eq!(got(scenario)["code"], 0, "{scenario}");
        list.iter().map(|change| change["text"].as_str().unwrap().to_string()).collect()
    };
    let begun = format!("+ task {one}: below rt (budget 3ms, period 10ms)");
    assert_eq!(got("nobody")["code"], 2);
    assert_eq!((changes("reserve-dry"), changes("reserve")), (vec![begun.clone()], vec![begun]));
    assert_eq!(got("reserve-dry")["said"]["applied"], false);
    for (scenario, said) in [
        ("larger", &[&*format!("~ edge from rt to {one}: budget 3ms -> 4ms")][..]),
        (
            "create",
            &[
                "+ node group: round-robin, below rt (budget 1ms, period 10ms)",
                "+ set group-threads: below group",
            ],
        ),
        ("rematch", &["~ match of group-threads"]),
        ("destroy", &["- node group", "- set group-threads"]),
        ("move", &["> set pair: below rest -> below batch"]),
        (
            "carry",
            &[&*format!("> task {one}: below rt (budget 4ms, period 10ms) -> below batch (weight 300)")],
        ),
        ("end", &[&*format!("- task {one}")]),
        ("default", &["~ default node: rest -> turns"]),
        ("back", &["~ default node: turns -> rest"]),
        ("no-turns", &["- node turns"]),
        (
            "activity",
            &[
                "+ node activity: constraint, below rt (budget 1ms, period 10ms)",
                "+ set activity-threads: below activity",
            ],
        ),
    ] {
        assert_eq!(changes(scenario), said, "{scenario}");
    }
    for (scenario, rule, place) in [
        (
            "too-much",
            "utilisation_above_one",
            "add up to 115 % of a CPU, more than one CPU: 100 % (exactly 23/20, at most 1)",
        ),
        ("too-large", "utilisation_above_one", "edge from rt to"),
        ("no-key", "key_must_exist", "`under.rt` of task `tid-"),
        ("no-thread", "thread_must_be_there", "thread 4000000: it is gone"),
        ("twice", "name_is_unique", "is taken"),
        ("not-empty", "node_must_be_empty", "`group-threads`, bound nothing"),
        ("root", "plan_must_have_a_node", "ctl.toml:1:1"),
        ("default-node", "default_node_must_exist", "ctl.toml:1:1"),
        ("infeasible", "constraint_not_feasible", "is not guaranteed so much"),
        ("already", "constraint_already", "has a time constraint"),
        ("none", "no_constraint", "has no time constraint"),
        ("deaf", "not_understood", "no parent policy supports time constraints"),
        ("unbound", "thread_must_be_bound", "thread 4000000 belongs to no task"),
    ] {
        let error = &got(scenario)["said"]["error"];
        assert_eq!(
            (&got(scenario)["code"], &error["rule"]),
            (&json!(1), &json!(rule)),
            "{scenario}: {error}"
        );
        assert!(error["message"].as_str().unwrap().contains(place), "{scenario}: {error}");
    }
    let accepted = json!({ "code": 0, "said": { "version": 1, "accepted": true } });
    assert_eq!((got("yes"), got("over")), (&accepted, &accepted));
    let file = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(file("before.toml"), file("after.toml"), "what is refused changes nothing");
    assert!(file("before.toml").contains("# an operation leaves this comment where it is"));

    // Who got what meanwhile, in parts per million of a CPU.
    let of = |scenario: &str, parent: &str, is_part: &dyn Fn(&Value) -> bool| {
        let look = |when: &str| &got(&format!("{scenario}-{when}"))["said"];
        share(look("before"), look("after"), parent, is_part)
    };
    let near = |what: &str, is: u64, wanted: u64, off: u64| {
        println!("{what}: {is} ppm of {wanted}");
        assert!(is.abs_diff(wanted) <= off, "{what}: {is} ppm, not {wanted}");
    };
    let thread = |name: &str| {
        let tid = tid(name);
        move |part: &Value| part["tid"] == tid
    };
    let named = |name: &'static str| move |part: &Value| part["name"] == name;
    let (is_one, is_two) = (thread("one"), thread("two"));
    near("3 ms in 10", of("reserved", "rt", &is_one), 300_000, 10_000);
    near("4 ms in 10", of("larger", "rt", &is_one), 400_000, 10_000);
    near("in the cgroup", of("group", "group", &is_two), 100_000, 4_000);
    near("its node", of("group", "rt", &named("group")), 100_000, 4_000);
    near("not in the default node", of("group", "rest", &is_two), 0, 0);
    near("out of the cgroup", of("left", "group", &is_two), 0, 0);
    assert!(of("left", "rest", &is_two) > 20_000);
    near("those who come from it", of("forks", "rt", &named("group")), 100_000, 4_000);
    let pair = |part: &Value| part["set"] == "pair";
    let carried = (of("carried", "rt", &is_one), of("carried", "batch", &is_one));
    assert!(
        carried.0 == 0 && carried.1 > 10_000,
        "a thread that never sleeps moves with its task: {carried:?}"
    );
    assert!(file("carried.toml").contains("under.batch = { weight = 300 }"), "the text is as the plan is");
    let (moved, stayed) = (of("moved", "batch", &pair), of("moved", "rest", &is_two));
    assert!(of("moved", "rest", &pair) == 0 && moved > 10_000, "{moved}");
    assert!(
        moved * 10 > stayed * 4 && moved * 10 < stayed * 6,
        "half a share for both: {moved} and {stayed}"
    );
    let (one_turns, two_turns) = (of("turns", "turns", &is_one), of("turns", "turns", &is_two));
    near("turns", one_turns, two_turns, 10_000);
    assert!(one_turns > 50_000 && of("turns", "rest", &is_one) == 0, "{one_turns}");
    for scenario in ["reserved", "larger", "group", "left", "forks", "moved", "turns"] {
        near(scenario, of(scenario, "rt", &named("steady")), 200_000, 10_000);
    }
    let is_there = |scenario: &str, name: &str| {
        let tasks = got(scenario)["said"]["tasks"].as_array().unwrap();
        tasks.iter().any(|task| task["name"] == name || task["set"] == name)
    };
    assert!(is_there("joined", "group-threads") && !is_there("ended", &one));
    assert!(!is_there("gone", &format!("tid-{}", tid("two"))), "its thread has ended");
    let cpu = &got("ended")["said"]["cpus"][0];
    let by = &cpu["stolen_by"];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(number(&cpu["stolen_ns"]), number(&by["interrupts_ns"]) + number(&by["threads_ns"]));
    assert!(number(&by["interrupts_ns"]) > 1_000_000, "{cpu}");

    // The tree for people, and what the other commands say.
    let tree = file("list.txt");
    for part in [
        "CPU 0: used",
        "└─ top",
        "│  └─ steady (",
        "pair: 2 threads",
        "budget 2ms, period 10ms",
        "interrupts",
    ] {
        assert!(tree.contains(part), "{part}:\n{tree}");
    }
    assert_eq!(got("status")["edited"], true);
    let Value::Array(back) = &got("apply")["changes"] else { panic!("{}", got("apply")) };
    let back: Vec<&str> = back.iter().map(|change| change["text"].as_str().unwrap()).collect();
    assert_eq!(back, ["- node batch", "> set pair: below batch -> below rest"]);

    // Every decision again.
    let (_, replayed, _) = tierce(&["sim", "--replay", out.join("ctl.rec").to_str().unwrap(), "--json"]);
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!(replayed["identical"], true);
    let _ = std::fs::remove_dir_all(&out);
}

#[test]
fn every_parameter_of_every_policy_is_an_option() {
    let (code, help, _) = tierce(&["ctl", "set", "--help"]);
    assert_eq!(code, Some(0));
    for policy in tierce_policy::policies() {
        for param in policy.node_params.iter().chain(&policy.edge_params) {
            assert!(help.contains(&format!("--{} ", param.name)), "{}: {}", policy.name, param.name);
        }
    }
    let (_, help, _) = tierce(&["ctl", "--help"]);
    assert!(help.contains("tierce ctl reserve 1234 --under rt --budget 2ms --period 10ms"), "{help}");
}

#[test]
fn what_is_no_operation_never_asks() {
    for (args, why) in [
        (&["ctl", "set", "audio"][..], "nothing to set"),
        (&["ctl", "set", "audio", "--bugdet", "2ms"], "--budget"),
        (&["ctl", "reserve", "--under", "rt"], "<WHO>"),
        (&["ctl", "reserve", "audio", "--under", "rt"], "KEY=VALUE"),
        (&["ctl", "create", "x", "--policy", "fare", "--under", "rt"], "possible values"),
        (&["ctl", "create", "x", "--policy", "fair"], "--under <NODE>"),
        (&["ctl", "create", "x", "--policy", "fair", "--under", "a", "--inside", "b"], "cannot be used with"),
        (&["ctl", "create", "x", "--policy", "fair", "--under", "a", "--on", "1:2ms"], "0:2ms/10ms"),
        (
            &[
                "ctl",
                "create",
                "x",
                "--policy",
                "fair",
                "--under",
                "a",
                "--on",
                "0:1ms/9ms",
                "--budget",
                "1ms",
            ],
            "--budget beside --on",
        ),
        (&["ctl", "move", "7", "--from", "a", "--under", "b"], "not the number of a thread"),
        (&["ctl", "list", "--socket", "/nowhere/tierce.sock"], "no plan is in force"),
        (&["ctl", "end", "x", "--socket", "/nowhere/tierce.sock"], "no plan is in force"),
    ] {
        let (code, _, errors) = tierce(args);
        assert!(code == Some(2) && errors.contains(why), "{args:?}: {code:?} {errors}");
    }
}
