//! `tierce place` as a user calls it: ExSched's table 2, what is refused, and its plans.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tierce(arguments: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
    command.args(arguments.split_whitespace()).args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn table_2() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/exsched/table-2.csv");
    path.to_str().unwrap().to_string()
}

/// A file of this test's own.
fn file(name: &str, content: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("place-{name}"));
    std::fs::write(&path, content).unwrap();
    path
}

/// Åsberg, Nolte & Kato 2013, table 2: S0 to S7 on one CPU and S8 to S15 on the other ("categorized"), or every other one
/// ("mixed"). With a jiffy of 4 ms the responses of the first CPU are 1, 2, 3, 4, 5, 6, 14 and 18, the last two their periods.
#[test]
fn the_paper_s_servers_are_placed_as_in_the_paper() {
    let place =
        |strategy| json(&tierce(&format!("place --cpus 2 --json --strategy {strategy}"), &[&table_2()]));
    let of = |placed: &serde_json::Value, key: &str| -> Vec<u64> {
        placed["servers"].as_array().unwrap().iter().map(|server| server[key].as_u64().unwrap()).collect()
    };
    let period = place("period");
    assert_eq!(of(&period, "cpu"), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    let jiffies: Vec<_> = of(&period, "response_ns").iter().map(|ns| ns / 4_000_000).collect();
    assert_eq!(jiffies, [1, 2, 3, 4, 5, 6, 14, 18, 15, 30, 45, 60, 75, 90, 105, 120]);
    let mixed = place("mixed");
    assert_eq!(of(&mixed, "cpu"), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    let switches = |placed: &serde_json::Value| placed["micro_switches_per_second"].as_u64().unwrap();
    assert!(switches(&mixed) > switches(&period));
    for strategy in ["first", "best", "worst", "period", "mixed"] {
        assert!(switches(&place("switches")) <= switches(&place(strategy)), "{strategy}");
    }
}

/// What it writes is a plan that holds, and in which every server has its budget in each period.
#[test]
fn a_plan_comes_out_that_holds() {
    for (order, rest) in
        [("fixed-priority", ""), ("edf", ""), ("fixed-priority", "--rest others"), ("edf", "--rest others")]
    {
        let plan = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("place-{order}-{}.toml", rest.len()));
        let plan = plan.to_str().unwrap();
        let placed = tierce(
            &format!("place --cpus 2 --strategy mixed --order {order} {rest} -o"),
            &[plan, &table_2()],
        );
        assert_eq!(placed.status.code(), Some(0), "{}", text(&placed.stderr));
        let checked = tierce("check", &[plan]);
        assert_eq!(checked.status.code(), Some(0), "{}{}", text(&checked.stdout), text(&checked.stderr));
        let report = json(&tierce("sim --for 9s --json", &[plan]));
        for task in report["tasks"].as_array().unwrap() {
            let name = task["name"].as_str().unwrap();
            let number: usize = name[1..].parse().unwrap();
            let (budget, period) = match number {
                0..8 => (4, [6, 7, 8, 9, 10, 11, 14, 18][number] * 4),
                _ => (60, 500),
            };
            let ran = task["cpu_ns"].as_u64().unwrap();
            assert!(ran >= 9000 / period * budget * 1_000_000, "{order} {rest}: {name} ran {ran} ns");
        }
    }
}

#[test]
fn what_cannot_be_placed_is_refused_by_name() {
    let servers = "name,work,period\na,6ms,10ms\nb,6ms,10ms\nc,6ms,10ms\n";
    let path = file("full.csv", servers);
    for strategy in ["first", "best", "worst", "period", "mixed", "switches"] {
        let refused = tierce(&format!("place --cpus 2 --strategy {strategy}"), &[path.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(1));
        let said = text(&refused.stdout);
        assert!(said.contains("server_fits_nowhere: c (6ms per 10ms) fits on none of the 2 CPUs"), "{said}");
        let refused =
            tierce(&format!("place --cpus 2 --json --strategy {strategy}"), &[path.to_str().unwrap()]);
        assert!(text(&refused.stdout).contains("\"rule\": \"server_fits_nowhere\""));
    }
    for (name, table, rest, rule) in [
        (
            "order.csv",
            "name,work,period\na,12ms,10ms\n",
            "",
            "budget_within_deadline_within_period: a has 12ms, 10ms, 10ms",
        ),
        (
            "late.csv",
            "name,work,period,deadline\na,1ms,10ms,11ms\n",
            "",
            "budget_within_deadline_within_period",
        ),
        ("jitter.csv", "name,work,period,jitter\na,1ms,10ms,1ms\n", "", "servers_have_no_jitter: a has"),
        (
            "half.csv",
            "name,work,period,priority\na,1ms,10ms,1\nb,1ms,10ms,\n",
            "",
            "priorities_are_complete: 1 of 2",
        ),
        ("plain.csv", "name,work,period\n1a,1ms,10ms\n", "", "name_must_be_plain: \"1a\""),
        ("taken.csv", "name,work,period\nservers,1ms,10ms\n", "", "name_is_unique: servers"),
        ("rest.csv", "name,work,period\na,1ms,10ms\n", "--rest a", "name_is_unique: a"),
        ("none.csv", "name,work,period\na,0ms,10ms\n", "", "time_must_be_positive"),
    ] {
        let path = file(name, table);
        let refused = tierce(&format!("place --cpus 2 --strategy first {rest}"), &[path.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        let said = text(&refused.stderr);
        assert!(said.contains(rule), "{name}: {said}");
    }
}
