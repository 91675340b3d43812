//! `tierce guarantee` as a user calls it: first lines, exit codes, faults.

use std::process::{Command, Output};

fn tierce(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tierce")).arg("guarantee").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What is printed, and that it follows.
fn follows(arguments: &[&str]) -> String {
    let output = tierce(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn first(arguments: &[&str]) -> String {
    follows(arguments).lines().next().unwrap_or("").to_string()
}

fn json(arguments: &[&str], code: i32) -> serde_json::Value {
    let output = tierce(arguments);
    assert_eq!(output.status.code(), Some(code));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn conversions() {
    let all = follows(&["convert", "RESCS 10ms 20ms", "PSBE"]);
    let lines: Vec<_> = all.lines().collect();
    assert_eq!(lines[0], "PSBE 1/2 5ms");
    assert_eq!(lines[2], "given  RESCS 10ms 20ms");
    assert!(lines[3].starts_with("so     PSBE 1/2 5ms  Theorem 5.4: PSBE x/y (x/y)(y − x)"), "{}", lines[3]);
    assert_eq!(first(&["convert", "PSBE 0.25 75ms", "RESCS", "--period", "400ms"]), "RESCS 25ms 400ms");
    assert_eq!(first(&["convert", "RESBS 10ms 20ms", "RESCS", "-c", "5ms"]), "RESCS 10ms 35ms");
    assert_eq!(first(&["convert", "RESBH 10ms 20ms", "RESCS 8ms 35ms"]), "RESCS 8ms 35ms");
    assert_eq!(first(&["convert", "RESU 1/4", "RESCS", "--deadlines", "20ms"]), "RESCS 5ms 35ms");
}

#[test]
fn numbers_solved_for() {
    assert_eq!(first(&["convert", "--best", "PSBE ? 10ms", "RESCS 5ms 33ms"]), "PSBE 5/11 10ms");
    assert_eq!(first(&["convert", "--best", "PSBE 1/6 ?", "RESCS 5ms 33ms"]), "PSBE 1/6 500us");
    assert_eq!(first(&["convert", "RESBS 10ms 20ms", "RESCS ? 50ms"]), "RESCS 20ms 50ms");
}

#[test]
fn what_does_not_follow_is_1_and_says_why() {
    let output = tierce(&["convert", "RESBS 10ms 20ms", "RESCH"]);
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output.stdout);
    assert!(
        text.starts_with("It does not follow: RESBS x y as a continuous") && text.contains("Theorem 5.3"),
        "{text}"
    );
    let refused = json(&["convert", "--json", "RESBH 10ms 20ms", "RESCS 12ms 35ms"], 1);
    assert_eq!(refused["follows"], false);
    assert_eq!(refused["reason"], "of RESBH 10ms 20ms follows at most 10ms in 35ms, 2ms less than 12ms");
    assert_eq!(tierce(&["convert", "PSBE 1/4 75ms", "RESCS", "--period", "300ms"]).status.code(), Some(1));
    let refused = json(&["sfq", "--supply", "NULL", "--quantum", "1ms", "--weights", "1", "--json"], 1);
    assert_eq!(refused["rule"], "no guarantee");
    assert_eq!(tierce(&["join", "PS 0.7", "PS 0.7"]).status.code(), Some(1));
    assert_eq!(
        tierce(&["eevdf", "--supply", "ALL", "--quantum", "1ms", "--shares", "1/2,0.6"]).status.code(),
        Some(1)
    );
    assert_eq!(tierce(&["schedulers", "rez", "--supply", "PS 1/2"]).status.code(), Some(1));
}

/// Every refusal of what was typed, and where it points.
#[test]
fn bad_input_is_2() {
    for (arguments, expected) in [
        (
            &["convert", "RESBS 30ms 20ms", "PSBE"][..],
            "  RESBS 30ms 20ms\n        ^^^^ amount_must_not_exceed_period",
        ),
        (&["convert", "RESBS 3ms 20ms", "PSBX"], "guarantee_must_be_known"),
        (&["convert", "--best", "RESBS 3ms 20ms", "PSBE"], "--best solves for one number"),
        (&["convert", "RESBS ? 20ms", "PSBE"], "the right has all its numbers"),
        (&["convert", "PSBE 1/4 75ms", "RESCS", "--period", "400"], "time_needs_a_unit"),
        (
            &["convert", "PSBE 1/4 75ms", "RESCS", "--period", "0ms"],
            "number_must_be_positive: this must be more: 0ms, bound above 0",
        ),
        (
            &["convert", "PSBE 1/4 75ms", "RESCS", "--period", "-5ms"],
            "number_must_not_be_negative: times and shares are not negative: -5ms, bound above 0",
        ),
        (
            &["convert", "RESBS 1ms 99999999999999s", "PS"],
            "time_must_fit: a time this long cannot be represented; allowed: at most 1152921504.606846976s",
        ),
        (&["convert", "PS -1/2", "PS"], "times and shares are not negative; allowed: above 0 and at most 1"),
        (&["sfq", "--supply", "-1", "--quantum", "1ms", "--weights", "1"], "guarantee_must_be_known"),
        (&["sfq", "--supply", "ALL", "--quantum", "-1ms", "--weights", "1"], ": -1ms, bound above 0"),
        (&["sfq", "--supply", "ALL", "--quantum", "1ms", "--weights", "-1,2"], ": -1, bound above 0"),
        (
            &["sfq", "--supply", "PSBE 1/2 ?", "--quantum", "1ms", "--weights", "1"],
            "guarantee_must_have_its_numbers",
        ),
        (&["sfq", "--supply", "ALL", "--quantum", "1ms", "--weights", "1,x"], "share_has_no_unit"),
        (&["sfq", "--supply", "ALL", "--quantum", "1ms", "--weights", "1,0"], "number_must_be_positive"),
        (&["schedulers", "cfs"], "scheduler_must_be_known"),
        (&["schedulers", "join", "--supply", "ALL"], "tierce guarantee join"),
        (&["matrix", "XX"], "guarantee_must_be_known"),
    ] {
        let output = tierce(arguments);
        let text = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn one_line_per_child() {
    let arguments = ["sfq", "--supply", "PSBE 1/2 5ms", "--quantum", "10ms", "--weights", "5,1,1,1,1,1"];
    let all = follows(&arguments);
    assert_eq!(all, "PSBE 1/4 75ms\n".to_string() + &"PSBE 1/20 23ms\n".repeat(5));
    let tight = follows(&[&arguments[..], &["--tight"]].concat());
    assert!(tight.starts_with("PSBE 1/4 42.5ms\n"));
    let explained = follows(&[&arguments[..], &["--explain"]].concat());
    assert!(
        explained.contains("child 6\ngiven  PSBE 1/2 5ms\nso     PSBE 1/20 23ms  equation 5.2:"),
        "{explained}"
    );
    assert_eq!(
        follows(&["eevdf", "--supply", "ALL", "--quantum", "10ms", "--shares", "15/33"]),
        "PSBE 5/11 10ms\n"
    );
    let joined = follows(&["join", "RESBH 10ms 20ms", "NULL"]);
    assert!(joined.starts_with("RESBS 10ms 20ms  "), "{joined}");
}

#[test]
fn tables() {
    let table = follows(&["matrix"]);
    assert!(table.contains(
        "\nRESBS  f      f      f      t      f 5.3  t 5.2  t      f      f      t 5.5  t 5.6  t\n"
    ));
    assert!(table.contains("\n  t RESCS x (2y − x + c)       Theorem 5.2:"));
    assert_eq!(
        table.lines().filter(|line| line.starts_with("  t ") || line.starts_with("  f ")).count(),
        144
    );
    assert_eq!(json(&["matrix", "RESCS", "--json"], 0)["cells"].as_array().unwrap().len(), 12);
    assert_eq!(follows(&["schedulers"]).lines().count(), 21);
    let accepted = follows(&["schedulers", "sfq", "--supply", "RESCH 5ms 10ms", "--quantum", "10ms"]);
    assert!(accepted.contains("RESCH -> PSBE+\n"));
}

/// The form that docs/guarantees.md describes.
#[test]
fn json_of_a_conversion() {
    let value = json(&["convert", "--json", "RESBS 10ms 30ms", "PSBE"], 0);
    let result = serde_json::json!({
        "text": "PSBE 1/3 40/3ms", "type": "PSBE", "share": "1/3", "error_ns": "40000000/3",
    });
    assert_eq!((&value["version"], &value["follows"], &value["result"]), (&1.into(), &true.into(), &result));
    assert_eq!(value["derivation"][0]["from"]["period_ns"], 30_000_000);
    assert_eq!(value["derivation"][0]["rule"], "Theorem 5.5");
}
