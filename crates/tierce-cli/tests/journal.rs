//! What the loader reports to systemd's journal, in a virtual machine with a real journald (tests/vm/journal.sh).

use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PLAN: &str = r#"
[node.top]
policy = "fixed-priority"
cpu = 0

[node.rt]
policy = "reservation"
under.top = { priority = 2 }

[task.audio]
under.rt = { budget = "2ms", period = "10ms" }
match = { comm = "audio" }

[node.rest]
policy = "fair"
default = true
under.rt = { budget = "7ms", period = "10ms" }
"#;

/// Together with `audio` more than a CPU.
const MORE: &str = r#"
[task.video]
under.rt = { budget = "9ms", period = "10ms" }
match = { comm = "video" }
"#;

#[test]
fn events_are_entries_with_fields() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("journal");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("plan.toml"), PLAN).unwrap();
    std::fs::write(folder.join("too-much.toml"), format!("{PLAN}{MORE}")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vm/journal.sh");
    let done = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["vm", "--kernel", "7.0.13", "--memory", "1G", "--limit", "10m"])
        .args(["--program", "/usr/lib/systemd/systemd-journald", "--program", "/usr/bin/journalctl"])
        .args(["--program", "/usr/bin/systemd-cat", "--file"])
        .arg(format!("{}:/guest/journal.sh", script.display()))
        .args(["--file", "plan.toml:/guest/plan.toml", "--file", "too-much.toml:/guest/too-much.toml"])
        .args(["--", "sh", "journal.sh", "plan.toml", "too-much.toml"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}\n{errors}");
    let entries: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let one = |event: &str| {
        let mut found = entries.iter().filter(|entry| entry["TIERCE_EVENT"] == event);
        found.next().unwrap_or_else(|| panic!("{event} is not among\n{said}\n{errors}"))
    };
    let begun = one("plan_in_force");
    assert_eq!(begun["MESSAGE"], "plan.toml is in force");
    assert_eq!((&begun["TIERCE_PLAN"], &begun["PRIORITY"]), (&"plan.toml".into(), &"5".into()), "{begun}");
    assert_eq!(begun["SYSLOG_IDENTIFIER"], "tierce", "{begun}");
    let refused = one("plan_refused");
    assert_eq!(refused["PRIORITY"], "4", "{refused}");
    assert!(refused["TIERCE_RULE"].as_str().is_some_and(|rule| rule.contains('_')), "{refused}");
    assert!(
        refused["MESSAGE"].as_str().unwrap().starts_with("refused, the plan in force goes on"),
        "{refused}"
    );
    // Not a line of text beside it.
    let lines = entries.iter().filter(|entry| entry["MESSAGE"] == begun["MESSAGE"]).count();
    assert_eq!(lines, 1, "{said}");
}
