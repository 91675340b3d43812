//! `--policy-dir`: policies of the user's, simulated, checked, tested, built, and refused. In the kernel: tests/vm.rs.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, and a cache beside it that stays for the next time.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-policy").join(name);
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/policies/shortest-first")
        .canonicalize()
        .unwrap()
}

fn tierce(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-policy-cache"));
    command.current_dir(folder);
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    tierce(folder).args(arguments).output().unwrap()
}

fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}{}", out(output), err(output));
    out(output)
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A folder with the example's policy, changed.
fn changed(name: &str, from: &str, to: &str) -> PathBuf {
    let folder = folder(name);
    let text = fs::read_to_string(example().join("shortest_first.c")).unwrap();
    assert!(text.contains(from), "the example has changed: it has no {from}");
    fs::write(folder.join("shortest_first.c"), text.replace(from, to)).unwrap();
    folder
}

#[test]
fn the_example_runs_the_job_with_least_work_left() {
    let folder = folder("example");
    let own = example().display().to_string();
    let plan = example().join("jobs.toml").display().to_string();
    let sim = ["sim", "--policy-dir", &own, &plan, "--for", "20ms", "--check", "--trace", "trace"];
    done(&run(&folder, &sim));
    // In a trace are the names of its policies.
    let dump = done(&run(&folder, &["trace", "dump", "trace"]));
    let decisions = dump.lines().filter(|line| line.contains("decision") && !line.contains("idle after"));
    let order: Vec<_> = decisions
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            (words[0], words[4])
        })
        .collect();
    assert_eq!(order, [("0.000000", "a"), ("3.000000", "b"), ("5.000000", "a"), ("10.000000", "c")]);

    // It was built before, and is found by the variable as by the option.
    let quiet = tierce(&folder).env("TIERCE_POLICY_DIR", &own).arg("schema").output().unwrap();
    assert!(done(&quiet).contains("shortest-first"));
    assert_eq!(err(&quiet), "");
    let embed = run(&folder, &["embed", "--policies", "--policy-dir", &own, &plan]);
    let options = done(&embed);
    assert!(options.starts_with("-DTIERCE_POLICIES=0x8000\n-DTIERCE_ADDED='\"/"), "{options}");
    let embed = run(&folder, &["embed", "--policy-dir", &own, &plan]);
    assert!(done(&embed).contains("#ifndef TIERCE_ADDED\n#error"), "{}", out(&embed));
    let without = run(&folder, &["sim", &plan]);
    assert!(err(&without).contains("there is no policy `shortest-first`"), "{}", err(&without));
}

/// Whatever its parameters are called: admission control knows the built-in policies by such names.
#[test]
fn nothing_is_promised_below_a_policy_without_laws() {
    let folder = changed(
        "promises",
        r#"V("work", TIME, 1000, TIERCE_PERIOD_MAX, TIERCE_PERIOD_MAX, "CPU time of a job of the child")"#,
        r#"V("budget", TIME, 1000, TIERCE_PERIOD_MAX, TIERCE_PERIOD_MAX, "CPU time of a job of the child")
           V("period", TIME, 0, TIERCE_PERIOD_MAX, 0, "nothing")
           V("deadline", TIME, 0, TIERCE_PERIOD_MAX, 0, "nothing")
           V("priority", COUNT, 0, 9, 0, "nothing")"#,
    );
    let path = folder.join("shortest_first.c");
    let text = fs::read_to_string(&path).unwrap();
    let record = text.replace("\"shortest-first\", 0,", "\"shortest-first\", TIERCE_HEEDS_DEADLINES,");
    let joined: Vec<_> = record.split("\n           V(").collect();
    fs::write(&path, joined.join(" \\\n\t  V(")).unwrap();
    let plan = r#"
        [machine]
        cpus = 2
        [node.all]
        policy = "shortest-first"
        cpus = [0, 1]
        default = true
        [task.a]
        under.all = { budget = "2ms", period = "10ms", deadline = "10ms", priority = 9 }
        load = { period = "10ms", work = "1ms" }
        needs = "RESBS 1ms 10ms"
        [task.b]
        under.all = { budget = "1ms", period = "20ms", deadline = "20ms" }
        load = { period = "20ms", work = "1ms" }
    "#;
    fs::write(folder.join("all.toml"), plan).unwrap();
    fs::write(
        folder.join("one.toml"),
        plan.replace("cpus = [0, 1]", "cpu = 0").replace("cpus = 2", "cpus = 1"),
    )
    .unwrap();
    for plan in ["all.toml", "one.toml"] {
        let output = run(&folder, &["check", "--policy-dir", ".", "--json", plan]);
        assert_eq!(output.status.code(), Some(1), "{}{}", out(&output), err(&output));
        let verdict: Value = serde_json::from_str(&out(&output)).unwrap();
        assert_eq!(verdict["holds"], false);
        for edge in verdict["edges"].as_array().unwrap() {
            let promised = &edge["guarantees"];
            assert_eq!((&promised[0]["text"], &promised[1]), (&"NULL".into(), &Value::Null), "{edge}");
        }
    }
    let explained = run(&folder, &["check", "--policy-dir", ".", "--explain", "a", "one.toml"]);
    let says = "nothing is known of what `all` guarantees: `shortest-first` is no policy of Tierce's";
    assert!(out(&explained).contains(says), "{}", out(&explained));
}

#[test]
fn a_policy_to_begin_with_does_what_round_robin_does() {
    let folder = folder("new");
    let new = done(&run(&folder, &["policy", "new", "mine/in_turn.c"]));
    assert_eq!(new, "mine/in_turn.c\nmine/in_turn.toml\n");
    let text = fs::read_to_string(folder.join("mine/in_turn.c")).unwrap();
    assert!(text.contains("P(NUMBER_in_turn, in_turn, \"in-turn\","), "{text}");
    assert!(text.contains("u32  NAME_pick(node, first, running, now)"), "the contract goes with it:\n{text}");
    let plan = fs::read_to_string(folder.join("mine/in_turn.toml")).unwrap();
    fs::write(folder.join("turns.toml"), plan.replace("in-turn", "round-robin")).unwrap();
    let json = |plan| {
        let output = run(&folder, &["sim", "--policy-dir", "mine", "--check", "--json", "--for", "1s", plan]);
        let mut found: Value = serde_json::from_str(&done(&output)).unwrap();
        assert!(found["tasks"][0]["name"] == "a", "{found}");
        found["tasks"].take()
    };
    assert_eq!(json("mine/in_turn.toml"), json("turns.toml"));

    for (file, why) in [
        ("mine/in_turn.c", "file_exists: mine/in_turn.c"),
        ("mine/In-turn.c", "policy_file_name: mine/In-turn.c: expected NAME.c"),
        ("mine", "policy_file_name: mine: expected NAME.c"),
    ] {
        let output = run(&folder, &["policy", "new", file]);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains(why), "{}", err(&output));
    }
}

#[test]
fn random_operations_find_what_is_wrong_with_a_policy() {
    let test = |folder: &Path| {
        run(folder, &["policy", "test", "--policy-dir", ".", "--no-vm", "--operations", "30000"])
    };
    let said = done(&test(&example()));
    assert!(said.contains("no invariant broken") && said.contains("jobs.toml: simulated: ok"), "{said}");
    let output = test(&changed("broken", "work_ns - (ran_ns - left_ns) % work_ns", "0"));
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).contains("work_is_left: a child has some of its work left"), "{}", out(&output));
    assert!(err(&output).contains("policy_breaks_an_invariant"), "{}", err(&output));
}

/// What was built needs no compiler; that of another version is refused.
#[test]
fn what_was_built_is_used_without_a_compiler() {
    let folder = folder("built");
    let own = example().display().to_string();
    let plan = example().join("jobs.toml").display().to_string();
    done(&run(&folder, &["policy", "build", "--policy-dir", &own, "out"]));
    let sim =
        || tierce(&folder).env("CC", "no-such-compiler").args(["sim", "--policy-dir=out", &plan]).output();
    let output = sim().unwrap();
    assert!(done(&output).contains("shortest-first"));
    assert_eq!(err(&output), "");
    fs::write(folder.join("out/made-for"), "0123456789abcdef").unwrap();
    let output = sim().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("policy_build_is_of_another_version: out"), "{}", err(&output));
}

#[test]
fn folders_that_are_refused() {
    let refused = |folder: &Path, words: &[&str]| {
        let output = run(folder, &["--policy-dir", ".", "schema"]);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        for word in words {
            assert!(err(&output).contains(word), "no \"{word}\" in:\n{}", err(&output));
        }
    };
    let empty = folder("empty");
    refused(&empty, &["policy_folder_empty", "tierce policy new"]);
    let output = run(&empty, &["--policy-dir", "gone", "schema"]);
    assert!(err(&output).contains("policy_folder_missing: gone"), "{}", err(&output));
    let output = run(&empty, &["policy", "test"]);
    assert!(err(&output).contains("policy_folder_not_given"), "{}", err(&output));
    let output = tierce(&changed("no-compiler", "", ""))
        .env("CC", "no-such-compiler")
        .args(["--policy-dir", ".", "schema"])
        .output()
        .unwrap();
    assert!(err(&output).contains("compiler_missing: no-such-compiler"), "{}", err(&output));

    refused(
        &changed("prefix", "POLICY_shortest_first(", "POLICY_edf("),
        &["policy_name_taken", "shortest_first.c", "edf"],
    );
    let twice = changed("twice", "", "");
    fs::copy(twice.join("shortest_first.c"), twice.join("again.c")).unwrap();
    refused(&twice, &["policy_name_taken", "shortest_first.c"]);
    let many = folder("many");
    let records: String = (0..19).map(|i| format!("#define POLICY_p{i}(P, V)\n")).collect();
    fs::write(many.join("many.c"), records).unwrap();
    refused(&many, &["too_many_policies", "17 fit"]);
    refused(
        &changed(
            "error",
            "edge_at(edge)->shortest_first.left_ns = work_ns;",
            "edge_at(edge)->shortest_first.left = work_ns;",
        ),
        &["error/shortest_first.c:42:", "no member named", "policies_not_built"],
    );
    refused(
        &changed("number", "P(NUMBER_shortest_first, ", "P(3, "),
        &["the record of shortest_first begins with P(NUMBER_shortest_first,"],
    );
    refused(
        &changed("large", "u64 left_ns;", "u64 left_ns, more[6];"),
        &["struct shortest_first_edge has at most 48 bytes"],
    );
}

#[test]
fn a_name_in_plans_is_there_once() {
    let folder = changed("name", "\"shortest-first\"", "\"edf\"");
    let output = run(&folder, &["--policy-dir", ".", "schema"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("policy_name_taken: .: there are two policies `edf`"), "{}", err(&output));
}
