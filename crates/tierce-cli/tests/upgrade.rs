//! `tierce upgrade-plan` as a user calls it.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("upgrade-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Exit code, standard output, standard error.
fn tierce(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tierce")).current_dir(folder).args(arguments).output();
    let Output { status, stdout, stderr } = output.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

const OLD: &str = "[node.top] # mine\npolicy = \"cbs\"\ncpu = 0\n\n[task.audio]\nunder.top = { runtime = \"2ms\", period = \"10ms\" }\nload = \"busy\"\n";
const NEW: &str = "[node.top] # mine\npolicy = \"reservation\"\ncpu = 0\n\n[task.audio]\nunder.top = { budget = \"2ms\", period = \"10ms\" }\nload = \"busy\"\n";

#[test]
fn it_says_what_it_would_do_and_does_it() {
    let folder = folder("done");
    let plan = folder.join("plan.toml");
    std::fs::write(&plan, OLD).unwrap();
    std::fs::set_permissions(&plan, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("plan.toml", folder.join("link.toml")).unwrap();
    let lines = "link.toml:2:10: \"cbs\" -> \"reservation\"\nlink.toml:6:15: runtime -> budget\n";
    let said = tierce(&folder, &["upgrade-plan", "link.toml"]);
    assert_eq!(said, (1, format!("{lines}link.toml: 2 names to replace; --write does it\n"), String::new()));
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), OLD);
    let done = tierce(&folder, &["upgrade-plan", "link.toml", "--write"]);
    assert_eq!(done, (0, format!("{lines}link.toml: 2 names replaced\n"), String::new()));
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), NEW);
    assert_eq!(std::fs::metadata(&plan).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(folder.join("link.toml").is_symlink());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing is left beside it");
    let again = tierce(&folder, &["upgrade-plan", "link.toml", "--write"]);
    assert_eq!(again, (0, "link.toml: nothing to replace\n".into(), String::new()));
}

#[test]
fn what_no_renaming_mends_is_listed_and_the_rest_is_done() {
    let folder = folder("rest");
    let text = OLD.replace("\"busy\"", "\"lazy\"");
    std::fs::write(folder.join("plan.toml"), &text).unwrap();
    let (code, out, err) = tierce(&folder, &["upgrade-plan", "plan.toml", "--write"]);
    assert_eq!(code, 2);
    assert!(out.ends_with("plan.toml: 2 names replaced\n"), "{out}");
    assert!(err.contains("load_must_be_known"), "{err}");
    assert!(err.ends_with("plan.toml: 1 fault that no renaming mends\n"), "{err}");
    let now = std::fs::read_to_string(folder.join("plan.toml")).unwrap();
    assert_eq!(now, NEW.replace("\"busy\"", "\"lazy\""));
}

#[test]
fn the_same_as_json() {
    let folder = folder("json");
    std::fs::write(folder.join("plan.toml"), OLD).unwrap();
    let (code, out, _) = tierce(&folder, &["upgrade-plan", "plan.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let renaming = serde_json::json!({
        "file": "plan.toml", "line": 6, "column": 15, "old": "runtime", "new": "budget",
    });
    assert_eq!((code, &json["renamings"][1], &json["written"]), (1, &renaming, &false.into()));
    assert_eq!(json["faults"], serde_json::json!([]));
    let (_, _, err) = tierce(&folder, &["check", "plan.toml"]);
    assert!(err.ends_with("1 fault\n`tierce upgrade-plan` mends 1 by renaming\n"), "{err}");
    let (_, out, _) = tierce(&folder, &["check", "plan.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["faults"][0]["fix"], "\"reservation\"");
}

#[test]
fn what_cannot_be_read_or_written_is_refused() {
    let folder = folder("refused");
    let (code, _, err) = tierce(&folder, &["upgrade-plan", "none.toml", "--write"]);
    assert!(code == 2 && err.contains("file_must_be_readable"), "{code} {err}");
    assert!(!folder.join("none.toml").exists());
    symlink("/proc/version", folder.join("version.toml")).unwrap();
    let (code, _, err) = tierce(&folder, &["upgrade-plan", "version.toml", "--write"]);
    assert!(code == 2 && err.contains("toml_syntax"), "{code} {err}");
    // What was deleted can be read as long as somebody has it open, but there is no file to replace.
    let gone = folder.join("gone.toml");
    std::fs::write(&gone, OLD).unwrap();
    let open = std::fs::File::open(&gone).unwrap();
    std::fs::remove_file(&gone).unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
    let (code, out, err) = tierce(&folder, &["upgrade-plan", &path, "--write"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.starts_with(&format!("tierce: cannot replace {path}: ")), "{err}");
}
