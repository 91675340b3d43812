//! `tierce check` and `tierce schema` as a user calls them: output, and exit codes 0, 1, 2.

use std::path::PathBuf;
use std::process::{Command, Output};

fn tierce(arguments: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).current_dir(root).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A plan in a file that is removed again.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, plan: impl AsRef<[u8]>) -> Self {
        let path = std::env::temp_dir().join(format!("tierce-{}-{name}.toml", std::process::id()));
        std::fs::write(&path, plan).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn what_holds_is_0() {
    let output = tierce(&["check", "--run", "examples/desktop.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Holds: 1 node tested, 2 tasks meet their deadlines."));
}

#[test]
fn what_does_not_hold_is_1() {
    let plan = "[node.top]\npolicy = \"reservation\"\ncpu = 0\n\
        [task.a]\nunder.top = { budget = \"6ms\", period = \"10ms\" }\n\
        [task.b]\nunder.top = { budget = \"5ms\", period = \"10ms\" }\n";
    let plan = Temporary::new("overload", plan);
    let output = tierce(&["check", plan.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("reduce the budget of `a` in `top` from 6ms to 5ms (by 1ms)"));
    // its place, value, bound and what helps: for editors, and where the engine refuses it
    let place = plan.0.display();
    let line = format!("{place}:1:7: budgets_must_fit_the_cpu: `top`: The budgets add up to 110 % of a CPU, more than one CPU: 100 %: 11/10, bound 1 (hint: reduce the budget of `a` in `top` from 6ms to 5ms (by 1ms)); {place}:5:13: the edge to change\n");
    let output = tierce(&["check", "--short", plan.0.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), line));
    let output = tierce(&["sim", plan.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("budgets_must_fit_the_cpu") && said.contains("from 6ms to 5ms"), "{said}");
    assert!(said.contains(&format!("{place}:7:13: edge from top to b: utilisation_above_one")), "{said}");
    let output = tierce(&["check", "--json", plan.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["version"], &json["holds"]), (&4.into(), &false.into()));
    assert_eq!(json["nodes"][0]["failures"][0]["line"], 1);
}

/// What is unwise is said, and nothing more: it holds.
#[test]
fn warnings_leave_the_exit_code_alone() {
    let plan = "[node.top]\npolicy = \"reservation\"\ncpu = 0\n\
        [task.a]\nunder.top = { budget = \"6ms\", period = \"10ms\" }\nload = { period = \"10ms\", work = \"3ms\" }\n";
    let plan = Temporary::new("unwise", plan);
    let output = tierce(&["check", plan.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let line = format!("! {}:5:13: reservation_is_much_larger: the reservation of `a` is 100 % larger than its jobs need: 6ms, more than 3ms and a fifth (budget = \"3.3ms\" leaves a tenth to spare).\n", plan.0.display());
    assert!(text(&output.stdout).contains(&line), "{}", text(&output.stdout));
    let output = tierce(&["check", "--json", plan.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["holds"], &json["warnings"][0]["line"]), (&true.into(), &5.into()));
}

/// What cannot be in the graph is explained before anything happens, on any machine.
#[test]
fn a_dry_run_explains_budgets_that_do_not_fit() {
    let plan = "[node.top]\npolicy = \"reservation\"\nper_cpu = true\n\
        [node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = { budget = \"5ms\", period = \"20ms\" }\n\
        [node.rt]\npolicy = \"fair\"\nunder.top = { cpu = 0, budget = \"9ms\", period = \"10ms\" }\n";
    let plan = Temporary::new("too-much", plan);
    let output = tierce(&["run", "--dry-run", plan.0.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("budgets_must_fit_the_cpu") && said.contains("`rt` in `top@0` from 9ms to 7.5ms"),
        "{said}"
    );
    let place = format!("{}:10:13: edge from top@0 to rt: utilisation_above_one", plan.0.display());
    assert!(said.contains(&place), "{said}");
}

/// The kernel preempts whoever it is, which is said before anything happens.
#[test]
fn a_dry_run_says_that_jobs_give_way() {
    for own in ["regions = [{ length = \"1ms\" }]", "longest_region = \"1ms\"", "threshold = 2"] {
        let plan = format!("[node.top]\npolicy = \"reservation\"\nper_cpu = true\n\
            [node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = {{ budget = \"5ms\", period = \"20ms\" }}\n\
            [node.rt]\npolicy = \"fixed-priority\"\nunder.top = {{ cpu = 0, budget = \"2ms\", period = \"10ms\" }}\n\
            [tasks.a]\ncount = 3\nunder.rt = {{ priority = 1 }}\n\
            load = {{ period = \"50ms\", work = \"2ms\", {own} }}\n");
        let plan = Temporary::new("regions", plan);
        let output = tierce(&["run", "--dry-run", plan.0.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert!(said.contains("jobs of `a[0]` and 2 others give way at any time here"), "{own}: {said}");
    }
}

#[test]
fn a_plan_that_is_no_text_is_2_with_its_place() {
    let plan = Temporary::new("bytes", b"[node.top]\npolicy = \"f\xffir\"\n");
    let output = tierce(&["check", "--short", plan.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let place = plan.0.display();
    let line = format!("{place}:2:12: file_must_be_readable: cannot read {place}: line 2 is not UTF-8\n");
    assert_eq!(text(&output.stdout), line);
}

#[test]
fn faults_are_2_in_every_form() {
    let output = tierce(&["check", "tests/plans/edges.toml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(text(&output.stderr).contains("budget_must_not_exceed_period"));
    let output = tierce(&["check", "--short", "tests/plans/edges.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let line = "tests/plans/edges.toml:26:24: budget_must_not_exceed_period: ";
    assert!(text(&output.stdout).lines().any(|other| other.starts_with(line)));
    let output = tierce(&["check", "--json", "tests/plans/edges.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["faults"].as_array().unwrap().len() > 10);
    assert_eq!(tierce(&["check", "no-such-plan.toml"]).status.code(), Some(2));
}

#[test]
fn a_plan_that_cannot_run_live_is_2_only_when_asked() {
    let plan = "tests/plans/run-starved.toml";
    assert_eq!(tierce(&["check", plan]).status.code(), Some(0));
    assert_eq!(tierce(&["check", "--run", plan]).status.code(), Some(2));
}

#[test]
fn the_schema_is_printed() {
    let output = tierce(&["schema"]);
    assert_eq!(output.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(schema["properties"]["node"].is_object());
}

/// What one part is promised, in words, up to its CPU; and needs that do not follow.
#[test]
fn explanations_and_needs() {
    let output = tierce(&["check", "--explain", "audio", "examples/desktop.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let begin = "audio: task below `rt`\n  receives  RESBH 2ms 10ms: 2ms in every period of 10ms, at any place in it, and no more: \
                 further work waits for the next period\n            because admitted by `rt`, which has a whole CPU\n              \
                 ALL             `top`, by root\n              ALL             `top` → `rt`, by highest priority\n              \
                 RESBH 2ms 10ms  `rt` → `audio`, by constant bandwidth server, hard (HLS Table 5.1): RESBH budget period\n  \
                 assumes   that it needs at most 2ms of CPU time in any 10ms; what it does not ask for in a period is not kept for \
                 the next\n  overrun   it is throttled until its next period begins, so its work is done a period later or more; others \
                 do not notice\n  needs     RESBS 2ms 10ms ✓ from RESBH 2ms 10ms, admitted by `rt`";
    assert!(said.starts_with(begin), "{said}");
    assert!(said.contains("\n\ntop: fixed-priority\n  receives  ALL: all of a CPU\n"), "{said}");
    let output = tierce(&["check", "--explain", "nobody", "examples/desktop.toml"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("name_must_be_known"));
    let output = tierce(&["check", "--explain", "adio", "examples/desktop.toml"]);
    assert!(
        text(&output.stderr).ends_with("set `adio`; did you mean `audio`?\n"),
        "{}",
        text(&output.stderr)
    );
    // for tools: that part alone
    let output = tierce(&["check", "--json", "--explain", "audio", "examples/desktop.toml"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &json["version"], &json["name"]),
        (Some(0), &4.into(), &"audio".into())
    );
    let steps = &json["tasks"][0]["guarantees"][0]["derivation"];
    assert_eq!((&steps[2]["to"], &steps[2]["where"]["parent"]), (&"RESBH 2ms 10ms".into(), &"rt".into()));
    let output = tierce(&["check", "--json", "--explain", "adio", "examples/desktop.toml"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("did you mean `audio`"));
    let output = tierce(&["check", "--short", "--explain", "audio", "examples/desktop.toml"]);
    assert_eq!(output.status.code(), Some(2));
    // a set is explained by its members, a replicated node by its replicas
    let said = text(&tierce(&["check", "--explain", "compiler", "examples/desktop.toml"]).stdout);
    assert!(said.starts_with("compiler: each of 4 tasks below `build`\n"), "{said}");
    let said = text(&tierce(&["check", "--explain", "top", "examples/two-cpus.toml"]).stdout);
    assert!(said.starts_with("top@0: ") && said.contains("\n\ntop@1: "), "{said}");

    let plan = "[node.top]\npolicy = \"reservation\"\ncpu = 0\n\
        [task.a]\nunder.top = { budget = \"6ms\", period = \"10ms\" }\nneeds = \"RESCS 6ms 13ms\"\n";
    let plan = Temporary::new("needs", plan);
    let output = tierce(&["check", plan.0.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let reason = "of RESBH 6ms 10ms follows at most 5ms in 13ms, 1ms less than 6ms (not enough)";
    let place = format!("{}:6:9", plan.0.display());
    let line = format!("✗ a ({place}): needs_must_follow: RESCS 6ms 13ms is not proved: {reason}.");
    assert!(text(&output.stdout).contains(&line), "{}", text(&output.stdout));
    let output = tierce(&["check", "--short", plan.0.to_str().unwrap()]);
    assert_eq!(
        text(&output.stdout),
        format!(
            "{place}: needs_must_follow: not proved: {reason}: RESCS 6ms 13ms, bound RESBH 6ms 10ms (hint: a larger budget or a \
             shorter period above it, or a reservation of its own)\n"
        )
    );
    let output = tierce(&["check", "--json", plan.0.to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["tasks"][0]["guarantees"][0]["text"], "RESBH 6ms 10ms");
    assert_eq!(
        (&json["holds"], &json["tasks"][0]["needs"][0]["proved_by"]),
        (&false.into(), &serde_json::Value::Null)
    );
}

/// `--host`: of this machine, and of one that was recorded.
#[test]
fn the_machine_at_hand_is_subtracted() {
    let output = tierce(&["check", "--host", "--json", "examples/desktop.toml"]);
    let said = text(&output.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(json["host"]["cpus"][0]["cpu"], 0);

    let root = std::env::temp_dir().join(format!("tierce-{}-host", std::process::id()));
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let zeros = "0 ".repeat(18);
    write("sys/devices/system/cpu/online", "0-1\n");
    write(
        "proc/9/task/9/stat",
        &format!("9 (motor) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 55 {zeros}6 0\n"),
    );
    write(
        "proc/9/task/9/status",
        "Tgid:\t9\nPPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCpus_allowed:\t3\n",
    );
    write("proc/9/task/9/comm", "motor");
    let host = format!("--host={}", root.display());
    let refused = tierce(&["check", &host, "examples/desktop.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("deadline_thread_must_be_readable"), "{}", text(&refused.stderr));
    write("proc/9/sched", "dl.runtime : 3000000\ndl.deadline : 10000000\n");
    let output = tierce(&["check", &host, "examples/desktop.toml"]);
    let said = text(&output.stdout);
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("SCHED_DEADLINE stands above CPU 0: `motor (9)` (3ms in 10ms): PSBE 7/10 6ms\n"),
        "{said}"
    );
    assert!(said.contains("audio"), "{said}");
    assert_eq!(tierce(&["check", "--host", "--cpus", "2", "examples/desktop.toml"]).status.code(), Some(2));
}

/// What each task of a chain takes, for people and for tools, and the exit code.
#[test]
fn chains() {
    let said = text(&tierce(&["check", "examples/chain.toml"]).stdout);
    assert!(said.contains("✓ response ≤ 51.5ms, reaction ≤ 84.5ms, age ≤ 64.5ms\n"), "{said}");
    let output = tierce(&["check", "--explain", "see", "examples/chain.toml"]);
    let said = text(&output.stdout);
    let plan = "\n├─ plan: reads what the one before wrote: 20ms until it looks + 8.5ms, by response times under fixed priorities \
                (Lehoczky 1990)\n";
    assert!(said.contains(plan), "{said}");
    let output = tierce(&["check", "--json", "tests/verdicts/chain.toml"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["holds"]), (Some(1), &false.into()));
    let act = &json["chains"][0];
    let times = ["least_ns", "response_ns", "reaction_ns", "age_ns"]
        .map(|time| act[time].as_u64().unwrap() / 1_000_000);
    // The sensor comes before the controller, so what is read is at most the rest of a period of that old.
    assert_eq!(times, [6, 21, 26, 16]);
    let links = act["links"].as_array().unwrap();
    let sum = |link: &serde_json::Value| -> u64 {
        ["delay_ns", "wait_ns", "takes_ns"].iter().filter_map(|part| link[part].as_u64()).sum()
    };
    assert_eq!(links.iter().map(sum).sum::<u64>(), 21_000_000);
    assert_eq!((&links[1]["by"], &links[2]["by"]), (&"sample".into(), &"trigger".into()));
    let said = text(&tierce(&["check", "--short", "tests/verdicts/chain.toml"]).stdout);
    assert!(said.contains(": latency_is_not_proved: `act`: "), "{said}");
}
