//! `tierce doctor` and `tierce run --dry-run` as a user calls them: here, and on kernels that are sound and defective.

use std::process::{Command, Output};

fn tierce(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Run lines of shell on a kernel: what they print, and the exit code.
fn on(kernel: &str, lines: &str) -> (String, Option<i32>) {
    let out = tierce(&["vm", "--no-kvm", "--cpus", "2", "--limit", "25m", "--kernel", kernel, "--", lines]);
    (text(&out.stdout) + &text(&out.stderr), out.status.code())
}

const PLAN: &str = r#"[node.top]
policy = "fixed-priority"
per_cpu = true

[node.rt]
policy = "reservation"
under.top = { cpu = 0, priority = 1 }

[node.rest]
policy = "fair"
default = true
under.top = { priority = 0 }

[task.audio]
under.rt = { budget = "2ms", period = "10ms" }
match = { comm = "audio" }

[tasks.shell]
under.rest = {}
match = { comm = "sh" }

[task.nobody]
under.rest = {}
match = { comm = "nobody" }
"#;

/// Two threads called `audio`, a third of a real-time class; then what the plan would do, and the plan itself for a while.
const LINES: &str = r#"
tierce doctor --json; echo "doctor $?"
printf '#!/bin/sh\nsleep 600; :\n' >audio; chmod +x audio
./audio & ./audio & meter cyclic --name audio --policy fifo:5 --period 100ms --time 600s >/dev/null &
for _ in $(seq 600); do
    cat /proc/[0-9]*/stat | awk '$2 == "(audio)" { n++; fifo += $41 == 1 } END { exit !(n >= 3 && fifo) }' && break
    sleep 0.1
done
cat >plan.toml <<'END'
PLAN
END
tierce run plan.toml --dry-run; echo "dry run $?"
tierce run plan.toml --for 1s >/dev/null 2>said; echo "run $?"
grep '^✗' said
cat /sys/kernel/sched_ext/state
"#;

fn json_of(output: &str) -> serde_json::Value {
    let begin = output.find('{').unwrap_or_else(|| panic!("no JSON: {output}"));
    serde_json::Deserializer::from_str(&output[begin..]).into_iter().next().unwrap().unwrap()
}

fn check<'a>(diagnosis: &'a serde_json::Value, what: &str) -> &'a serde_json::Value {
    let checks = diagnosis["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == what).unwrap_or_else(|| panic!("no {what}: {diagnosis:#}"))
}

/// What the systemd unit does after its loader ended: nothing if that was refused, else end what is left in force.
const AFTERWARDS: &str = r#"
tierce run plan.toml >/dev/null 2>said &
until [ "$(cd /sys/kernel/sched_ext && cat root/ops 2>/dev/null)" = tierce ]; do sleep 0.2; done
tierce run plan.toml; echo "second $?"
after() {
AFTER
}
(EXIT_STATUS=2; after); echo "still $(cat /sys/kernel/sched_ext/state)"
(EXIT_STATUS=KILL; after)
wait $!; echo "ended $?"; tail -n 1 said
cat /sys/kernel/sched_ext/state
"#;

fn after_stop() -> String {
    let unit = include_str!("../../../dist/tierce@.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStopPost=/bin/sh -c '")).unwrap();
    line.strip_suffix('\'').unwrap().replace("$$", "$")
}

/// A plan that is refused beside a manager must not depend on who is faster at boot.
#[test]
fn plans_come_after_the_manager() {
    let lines = |unit: &'static str, key: &str| -> Vec<&str> {
        let values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        values.flat_map(str::split_whitespace).collect()
    };
    let plan = include_str!("../../../dist/tierce@.service");
    let manager = include_str!("../../../dist/tierce-manager.service");
    assert!(lines(plan, "After").contains(&"tierce-manager.service"));
    for (unit, other) in [(plan, "tierce-manager"), (manager, "tierce@")] {
        for key in ["Wants", "Requires", "BindsTo", "PartOf"] {
            let starts = lines(unit, key).into_iter().any(|name| name.starts_with(other));
            assert!(!starts, "{key}: each works without the other");
        }
    }
    assert!(!lines(manager, "After").iter().any(|name| name.starts_with("tierce@")), "not both");
}

#[test]
fn a_sound_kernel() {
    let lines = LINES.replace("PLAN", PLAN) + &AFTERWARDS.replace("AFTER", &after_stop());
    let (said, code) = on("7.0", &lines);
    assert_eq!(code, Some(0), "{said}");
    let diagnosis = json_of(&said);
    assert_eq!(diagnosis["ready"], true, "{said}");
    assert_eq!(check(&diagnosis, "kernel functions")["state"], "found");
    for expected in [
        "doctor 0\n",
        "task audio  (plan.toml:",
        "  ✓ audio  (",
        ": thread ",
        " has it: a task is one thread, a set takes all\n",
        ": SCHED_FIFO runs before all threads of a plan, as stolen time",
        "set shell  (",
        "  ✓ sh  ",
        "task nobody",
        "  – no thread matches now\n",
        "default node rest: ",
        "not scheduled by Tierce: ",
        "dry run 1\n",
        "run 0\ndisabled\n",
        "✗ other scheduler   a plan is in force already\n",
        "second 2\nstill enabled\nended 1\ntierce: the kernel ended the plan: disabled by sysrq-S",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
}

#[test]
fn a_defective_kernel() {
    let (said, code) = on("7.2", &LINES.replace("PLAN", PLAN));
    assert_eq!(code, Some(0), "{said}");
    let diagnosis = json_of(&said);
    assert_eq!(diagnosis["ready"], false, "{said}");
    let functions = check(&diagnosis, "kernel functions");
    assert_eq!(functions["state"], "missing");
    let found = functions["found"].as_str().unwrap();
    assert!(found.contains("`scx_bpf_error_bstr` and `scx_bpf_kick_cpu` are defective"), "{found}");
    assert!(functions["help"].as_str().unwrap().contains("Debian's 6.18 and 7.0 are sound"), "{said}");
    for expected in ["doctor 1\n", "run 2\n", "✗ kernel functions", "disabled\n"] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
}

#[test]
fn here() {
    let (plain, json) = (tierce(&["doctor"]), tierce(&["doctor", "--json"]));
    assert_eq!(plain.status.code(), json.status.code());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["ready"].as_bool(), Some(plain.status.code() == Some(0)));
    let plain = text(&plain.stdout);
    for check in json["checks"].as_array().unwrap() {
        let what = check["check"].as_str().unwrap();
        assert!(plain.contains(what), "{what}:\n{plain}");
    }
}
