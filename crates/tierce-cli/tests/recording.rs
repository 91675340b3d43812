//! `tierce recording` and `tierce design plan`, as a user calls them: on files that the real trace-cmd and perf have recorded, and on
//! what is refused.

mod common;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Folder(PathBuf);

impl Folder {
    /// With the recordings, and the program beside `tierce`.
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tierce-cli-recording-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        // `cargo test --workspace` has built it, `cargo test -p tierce-cli` has not.
        let program = Path::new(env!("CARGO_BIN_EXE_tierce")).with_file_name("tierce-recording");
        assert!(program.is_file(), "it is missing: cargo build -p tierce-recording");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tierce-recording/tests/data");
        std::fs::copy(data.join("trace-cmd-7.dat"), path.join("trace.dat")).unwrap();
        Folder(path)
    }

    fn tierce(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tierce")).args(words).current_dir(&self.0).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

#[test]
fn a_recording_becomes_a_plan_a_timeline_and_statistics() {
    let folder = Folder::new("whole");
    let json = folder.tierce(&["recording", "threads", "trace.dat", "--json"]);
    let said: Value =
        serde_json::from_slice(&json.stdout).unwrap_or_else(|why| panic!("{why}: {}", text(&json)));
    assert_eq!(
        (&said["version"], &said["tool"], &said["cpus"]),
        (&1.into(), &"trace-cmd 7".into(), &2.into())
    );
    let audio = said["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == "audio").unwrap();
    assert_eq!(audio["latency_ns"]["count"], 303);
    let shown = folder.tierce(&["recording", "threads", "trace.dat", "--most", "100"]);
    assert!(text(&shown).contains("latency: mean") && text(&shown).contains("audio"), "{}", text(&shown));

    let words = ["--from", "trace.dat", "--thread", "audio", "--thread", "video", "-o", "plan.toml"];
    let plan = folder.tierce(&[&["design", "plan"], &words[..]].concat());
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));
    assert!(
        text(&plan).contains("The proposed plan, simulated, meets what the recording met."),
        "{}",
        text(&plan)
    );
    let check = folder.tierce(&["check", "--run", "plan.toml"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
    let sim = folder.tierce(&["sim", "plan.toml", "--for", "1s", "--json"]);
    assert_eq!(sim.status.code(), Some(0), "{}", text(&sim));
    let help = text(&folder.tierce(&["design", "plan", "--help"]));
    assert!(help.contains("Usage: tierce design plan ["), "{help}");
    let help = text(&folder.tierce(&["recording", "plan", "--help"]));
    assert!(help.contains("Usage: tierce recording plan ["), "{help}");
    let json = folder.tierce(&["design", "plan", "--from", "trace.dat", "--thread", "audio", "--json"]);
    let said: Value =
        serde_json::from_slice(&json.stdout).unwrap_or_else(|why| panic!("{why}: {}", text(&json)));
    assert_eq!((&said["met"], &said["planned"][0]["period_ns"]), (&true.into(), &10_000_000.into()));
    let none = folder.tierce(&["design", "plan", "--from", "trace.dat", "--thread", "nobody"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none).contains("No thread has a period: nothing is reserved."), "{}", text(&none));

    let trace = folder.tierce(&["recording", "trace", "trace.dat", "-o", "run.trace"]);
    assert_eq!(trace.status.code(), Some(0), "{}", text(&trace));
    let stats = folder.tierce(&["trace", "stats", "run.trace", "--json"]);
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    let task = stats["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "audio").unwrap();
    assert_eq!(task["cpu_ns"], audio["cpu_ns"]);
    let drawn =
        folder.tierce(&["timeline", "run.trace", "--html", "page.html", "--perfetto", "trace.pftrace"]);
    assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn));
    let back = folder.tierce(&["recording", "write", "run.trace", "-o", "again.dat"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back));
    let again = folder.tierce(&["recording", "threads", "again.dat", "--json"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    let same = again["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == "audio").unwrap();
    assert_eq!(same["cpu_ns"], audio["cpu_ns"]);
}

#[test]
fn what_is_refused() {
    let folder = Folder::new("refused");
    let whole = std::fs::read(folder.0.join("trace.dat")).unwrap();
    std::fs::write(folder.0.join("cut.dat"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(folder.0.join("text"), "audio-123 [000] 1.0: sched_switch").unwrap();
    for (words, expected) in [
        (&["design", "plan"][..], "--from"),
        (&["design", "plan", "--from", "none.dat"], "none.dat"),
        (&["design", "plan", "--from", "text"], "text: byte 0: tool_must_be_known"),
        (&["design", "plan", "--from", "cut.dat"], "file_must_be_whole"),
        (&["design", "plan", "--from", "trace.dat", "--margin", "1001%"], "whole percent, bound 0% to 1000%"),
        (&["design", "plan", "--from", "trace.dat", "--thread", "[a"], "name_must_be_a_pattern: [a"),
        (&["recording", "threads", "cut.dat"], "cut.dat: byte "),
        (&["recording", "trace", "text", "-o", "x"], "tool_must_be_known"),
        (&["recording", "write", "trace.dat", "-o", "x"], "not a trace"),
    ] {
        let out = folder.tierce(words);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {}", text(&out));
        assert!(text(&out).contains(expected), "{words:?}: {}", text(&out));
    }
}

#[test]
fn ctrl_c_ends_the_reading_with_what_was_read() {
    let folder = Folder::new("early");
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/desktop.toml");
    let made = folder.tierce(&["sim", plan.to_str().unwrap(), "--for", "1000s", "--trace", "long.trace"]);
    assert!(made.status.success(), "{}", text(&made));
    let written = folder.tierce(&["recording", "write", "long.trace", "-o", "long.dat"]);
    assert!(written.status.success(), "{}", text(&written));
    // It may be ended before it has read anything, and says so; or, on a busy machine, when it has read all.
    let is_early = |out: &Output| text(out).contains("ended early: only the ");
    let out = (0..50).map(|_| ended_while_it_reads(&folder)).find(is_early);
    let out = out.expect("it is ended while it reads, once");
    let said = text(&out);
    let found = serde_json::from_slice::<Value>(&out.stdout).unwrap_or_else(|why| panic!("{why}: {said}"));
    assert_eq!(out.status.code(), Some(1), "{said}");
    let length_ns = found["length_ns"].as_u64().unwrap();
    assert!(length_ns < 900_000_000_000, "{length_ns} ns");
}

/// `recording threads` of the long recording, with a Ctrl-C as soon as it hears of one.
fn ended_while_it_reads(folder: &Folder) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["recording", "threads", "long.dat", "--json"])
        .current_dir(&folder.0)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    common::ctrl_c(&child);
    child.wait_with_output().unwrap()
}
