//! `libtierce`: what it makes of a manager that says anything, and one boot of a throw-away machine with the manager and programs in C that
//! ask it (tests/vm/libtierce.sh), time counted in instructions.

use serde_json::{json, Value};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with an example program.
fn built(name: &str, options: &[&str]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tierce-libtierce-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for program in ["player", "exsched"] {
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", "libtierce"]).args(options);
        gcc.arg(format!("examples/libtierce/{program}.c")).arg("libtierce/libtierce.c");
        assert!(gcc.arg("-o").arg(folder.join(program)).current_dir(root()).status().unwrap().success());
    }
    folder
}

#[test]
fn whatever_a_manager_says_is_an_answer_or_an_error() {
    let folder = built("says", &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"]);
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let watching = r#"{"version":1,"ok":true,"answer":{"state":"done"}}"#;
    let long = format!("{{\"error\":\"{}\"}}", "x".repeat(1 << 17));
    let deep = "[".repeat(1 << 15);
    for (first, second, why) in [
        ("", "", "no manager answers"), // it hangs up
        (watching, "", "manager_must_run"),
        (
            watching,
            r#"{"ok":false,"error":{"rule":"a_rule","message":"a \"word\" \u00e9 \\ \n"}}"#,
            r"a_rule: a ",
        ),
        (
            watching,
            r#"{"ok":true,"answer":{"state":"refused","reason":{"rule":"full","message":"no"}}}"#,
            "full: no",
        ),
        (watching, "garbage", ": "),
        (watching, r#"{"ok":false,"error":{"rule":"#, ": "),
        (watching, r#"{"error":{"rule":"\"#, ": "),
        (watching, r#"{"error":{"rule":"\u12","message":7}}"#, "?: "),
        (watching, r#"{"error" : 1}"#, ": "),
        (watching, &deep, ": "),
        (watching, &long, "answer_too_long"),
    ] {
        let mut player = Command::new(folder.join("player"));
        let player = player.arg("1").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for answer in [first, second] {
            let Some(Ok(asked)) = lines.next() else { break };
            assert!(serde_json::from_str::<Value>(&asked).is_ok(), "{asked}");
            if answer.is_empty() || writeln!(stream, "{answer}").is_err() {
                break;
            }
        }
        drop((stream, lines));
        let done = player.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.code() == Some(1) && said.contains(why), "{second:.99}: {said}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Of several modes, the library has the one that the manager says, and another one once it is told so.
#[test]
fn the_mode_is_the_one_that_the_manager_says() {
    let folder = built("modes", &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"]);
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let done = r#"{"version":1,"ok":true,"answer":{"state":"done"}}"#;
    let granted = |budget: &str| {
        let mode = json!({ "budget": budget, "period": "2.5ms", "value": 3 });
        let about = json!({ "id": 7, "granted": { "name": "grant-7", "mode": mode } });
        json!({ "version": 1, "ok": true, "answer": { "state": "granted", "about": about } }).to_string()
    };
    let event = |what: &str, budget: &str| {
        let mode = json!({ "budget": budget, "period": "20ms", "value": 1 });
        json!({ "event": { "number": 2, "id": 7, "what": what, "text": "so", "mode": mode } }).to_string()
    };
    for (event, what, left_us) in [
        (event("changed", "0.25ms"), "changed", 250),
        (event("changed", "1s"), "changed", 1_000_000),
        (event("promise_not_kept", "much"), "promise_not_kept", 750), // the longest of these words
        (event("changed", "much"), "changed", 750),                   // no time: what it had
        (event("changed", "1.m"), "changed", 750),
        (event("changed", "99999999999999999999s"), "changed", 750),
        (event("changed", "1.99999999999999999999999999999999999ms"), "changed", 750),
        (json!({ "event": { "id": 7, "what": "revoked", "text": "so" } }).to_string(), "revoked", 0),
    ] {
        let player =
            Command::new(folder.join("player")).arg("2").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let less = format!("{}\n{event}", granted("750us"));
        let mut asked = Vec::new();
        for (line, answer) in lines.zip([done, &granted("1500us"), done, &less, done]) {
            asked.push(serde_json::from_str::<Value>(&line.unwrap()).unwrap());
            writeln!(stream, "{answer}").unwrap();
        }
        let said = player.wait_with_output().unwrap().stdout;
        let said: Value = serde_json::from_slice(&said).unwrap();
        let wishes: Vec<&Value> =
            asked[1]["modes"].as_array().unwrap().iter().map(|it| &it["budget"]).collect();
        assert_eq!(wishes, ["9800000ns", "2000000ns"]);
        let found = (&said["what"], said["granted_us"].as_u64(), said["left_us"].as_u64());
        assert_eq!(found, (&what.into(), Some(1500), Some(left_us)), "{event}: {said}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// A deadline is asked for with the mode, and jobs go by the one of the mode that the manager says; without one, by the next release.
#[test]
fn jobs_have_the_deadline_that_was_asked_for() {
    const PROGRAM: &str = r#"
        #include <libtierce.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(int count, char **words) {
            struct tierce *own = tierce_open(words[count - 1]);
            tierce_deadline(own, 2000000);
            tierce_reserve(own, 1000000, 1000000000, 0, 0);
            tierce_wait(own);
            usleep(3000);
            int late = tierce_done(own);
            tierce_deadline(own, 0);
            tierce_change(own, 1000000, 1000000000, 0);
            tierce_wait(own);
            usleep(3000);
            printf("%d %d %s\n", late, tierce_done(own), tierce_why(own));
            tierce_close(own);
        }
    "#;
    let folder = std::env::temp_dir().join(format!("tierce-libtierce-deadline-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("late.c"), PROGRAM).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsanitize=address,undefined",
        "-I",
        "libtierce",
    ]);
    gcc.arg(folder.join("late.c")).arg("libtierce/libtierce.c").arg("-o").arg(folder.join("late"));
    assert!(gcc.current_dir(root()).status().unwrap().success());
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let late = Command::new(folder.join("late")).arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut asked = Vec::new();
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let mode = line["modes"][0].clone();
        let answer = match mode.is_null() {
            true => json!({ "state": "done" }),
            // As the manager writes what it was asked for.
            false => {
                json!({ "state": "granted", "about": { "id": 7, "granted": { "name": "grant-7", "mode": mode } } })
            }
        };
        writeln!(stream, "{}", json!({ "version": 1, "ok": true, "answer": answer })).unwrap();
        asked.push(line);
    }
    let said = late.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&said), "1 0 \n");
    let mode = |at: usize| asked[at]["modes"][0].clone();
    let plain = json!({ "budget": "1000000ns", "period": "1000000000ns", "value": 0 });
    let mut within = plain.clone();
    within["deadline"] = "2000000ns".into();
    assert_eq!((mode(1), mode(2)), (within, plain));
    fs::remove_dir_all(&folder).unwrap();
}

/// The one boot: a program has what it asks for beside busy processes, keeps it when more is refused, and is told when it ends. A task of
/// ExSched's calls likewise.
#[test]
fn programs_in_c_ask_and_are_told() {
    let folder = built("vm", &["-static"]);
    let out = folder.join("out");
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args(["vm", "--deterministic", "--limit", "25m", "--kernel", "7.0.13", "--cpus", "1"]);
    for file in ["lib.sh", "pipewire.toml"] {
        vm.args(["--file", file]);
    }
    vm.arg("--file").arg(folder.join("player")).arg("--file").arg(folder.join("exsched"));
    vm.arg("--out").arg(&out).args(["--", "sh", "libtierce.sh"]).current_dir(root().join("tests/vm"));
    let done = vm.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    let log =
        format!("{said}\n{errors}\n{}", fs::read_to_string(out.join("manager.err")).unwrap_or_default());
    assert!(done.status.success(), "{log}");
    let mut got: HashMap<String, Value> = HashMap::new();
    for line in said.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}\n{log}"));
        got.insert(value["scenario"].as_str().unwrap().to_string(), value["got"].clone());
    }
    assert_eq!(got["nobody"], json!({ "why": "no manager answers" }), "{log}");
    let during = &got["during"]["answer"]["requests"][0];
    assert_eq!(
        (&during["owner"], &during["granted"]["mode"]["budget"]),
        (&"user:1001".into(), &"1.5ms".into())
    );
    assert_eq!(
        got["player"],
        json!({ "jobs": 100, "misses": 0, "granted_us": 2000, "left_us": 0, "more": -1, "less": 0, "told": 1, "what": "ended",
            "text": "it was ended by the system", "cancel": -1 }),
        "{log}"
    );
    assert_eq!(got["exsched"], json!({ "jobs": 50, "misses": 0 }), "{log}");
    assert_eq!(got["after"]["answer"]["requests"], Value::Null, "{log}");
    fs::remove_dir_all(&folder).unwrap();
}
