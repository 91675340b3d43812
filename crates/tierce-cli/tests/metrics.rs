//! Prometheus (Debian's) and the metrics of a plan in force: every query of the page, the dashboard and the alerts.

use serde_json::{json, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const MISSING: &str = "is missing: scripts/setup test installs it";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The queries of the page and of the dashboard.
fn queries() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let block = page.split("```promql\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut queries: Vec<String> = block.lines().map(str::to_string).collect();
    let board = std::fs::read_to_string(root().join("dist/grafana/tierce.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let targets = board["panels"].as_array().unwrap().iter().flat_map(|it| it["targets"].as_array().unwrap());
    queries.extend(targets.map(|target| {
        let expr = target["expr"].as_str().unwrap();
        expr.replace("$__rate_interval", "1m").replace("$instance", ".*")
    }));
    assert!(queries.len() > 12);
    queries
}

/// What the guest said, by scenario.
fn boot(queries: &[&str]) -> HashMap<String, Value> {
    let folder = root().join("tests/vm");
    let out = std::env::temp_dir().join(format!("tierce-scraped-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(&out).unwrap();
    let coded = |query: &&str| -> String { query.bytes().map(|byte| format!("%{byte:02x}")).collect() };
    let list: Vec<String> = queries.iter().map(coded).collect();
    std::fs::write(out.join("queries"), list.join("\n") + "\n").unwrap();
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args([
        "vm",
        "--deterministic",
        "--kernel",
        "7.0.13",
        "--cpus",
        "1",
        "--memory",
        "1G",
        "--limit",
        "25m",
    ]);
    vm.args(["--program", "prometheus", "--file", "lib.sh"]);
    for (folder, name) in [
        (root().join("examples"), "desktop.toml"),
        (root().join("dist/prometheus"), "tierce.rules.yml"),
        (out.clone(), "queries"),
    ] {
        vm.arg("--file").arg(format!("{}:/guest/{name}", folder.join(name).display()));
    }
    let done =
        vm.arg("--out").arg(&out).args(["--", "sh", "scraped.sh"]).current_dir(folder).output().unwrap();
    let [text, errors] = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(done.status.success(), "{text}\n{errors}");
    let said = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}\n{errors}"));
        (value["scenario"].as_str().unwrap().to_string(), value["got"].clone())
    };
    let said = text.lines().map(said).collect();
    let _ = std::fs::remove_dir_all(&out);
    said
}

/// Of all values that were scraped of a series, one is less than the one before it.
fn goes_back(series: &Value) -> bool {
    let value = |pair: &Value| -> f64 { pair[1].as_str().unwrap().parse().unwrap() };
    let values: Vec<f64> = series["values"].as_array().unwrap().iter().map(value).collect();
    values.windows(2).any(|two| two[1] < two[0])
}

/// A budget grows, a task goes and comes back, another kernel object takes over: no counter goes back, and every query finds something.
#[test]
fn prometheus_scrapes_a_plan_that_changes() {
    let pages = queries();
    let own = [
        r#"{__name__=~"tierce_.+_total"}[1h]"#,
        "tierce_budget_seconds[1h]",
        r#"tierce_budget_seconds{part="audio",kind="task",parent="rt"}"#,
        r#"increase(tierce_received_seconds_total{part="runaway"}[1h])"#,
        "up",
    ];
    let all: Vec<&str> = pages.iter().map(String::as_str).chain(own).collect();
    let said = boot(&all);
    assert_eq!(said["scraped-end"], json!({ "code": 0, "state": "disabled" }));
    for (change, again) in [("grown", false), ("less", false), ("again", false), ("more", true)] {
        let got = &said[change];
        assert_eq!((&got["code"], &got["said"]["applied"]), (&json!(0), &json!(true)), "{got}");
        assert_eq!(got["said"]["reloaded"].is_object(), again, "{got}");
    }
    let found = |number: usize| -> &Vec<Value> {
        let got = &said[&format!("query-{number}")];
        assert_eq!(got["status"], "success", "{}: {got}", all[number]);
        got["data"]["result"].as_array().unwrap()
    };
    for (number, query) in pages.iter().enumerate() {
        assert!(!found(number).is_empty(), "{query} finds nothing");
    }
    let [counters, budgets, audio, runaway, up] = std::array::from_fn(|at| found(pages.len() + at));
    let number = |found: &[Value]| -> f64 { found[0]["value"][1].as_str().unwrap().parse().unwrap() };
    let back: Vec<&Value> = counters.iter().filter(|series| goes_back(series)).collect();
    assert!(back.is_empty(), "{back:?}");
    let scrapes = |series: &Value| series["values"].as_array().unwrap().len();
    assert!(counters.len() > 30 && counters.iter().map(scrapes).max() > Some(15), "{counters:?}");
    assert!(budgets.iter().any(goes_back), "a budget grows and shrinks: {budgets:?}");
    assert_eq!((audio.len(), number(audio), number(up)), (1, 0.002, 1.0));
    assert!(number(runaway) > 0.0, "{runaway:?}");
    let rules = said["rules"]["data"]["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 5);
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

#[test]
fn promtool_accepts_the_alerts_and_they_fire() {
    for args in [["check", "rules", "tierce.rules.yml"], ["test", "rules", "tierce.rules.test.yml"]] {
        let said = Command::new("promtool").args(args).current_dir(root().join("dist/prometheus")).output();
        let said = said.unwrap_or_else(|why| panic!("promtool {MISSING}: {why}"));
        let text =
            [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(said.status.success(), "{text}");
    }
}
