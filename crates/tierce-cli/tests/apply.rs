//! `tierce apply` on a plan in force: one boot of a throw-away machine (tests/vm/apply.sh), time counted in instructions.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use serde_json::{json, Value};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use tierce_trace::{Event, Kind, Report, Stats, Trace};

const US: i64 = 1_000;
const MS: u64 = 1_000_000;

fn tierce(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_tierce")).args(args).output().unwrap()
}

/// Replenishment to replenishment of the edge from `rt` to a task: end, supply.
fn periods(trace: &Trace, child: &str) -> Vec<(u64, i64)> {
    let edge = trace
        .header
        .edges
        .iter()
        .find(|edge| edge.child_name == child && edge.parent_name == "rt")
        .unwrap()
        .id;
    let (mut supply, mut since, mut before, mut list) = (0i64, None, None, Vec::new());
    for event in &trace.events {
        match event.kind() {
            Some(Kind::Lost) => panic!("{} records lost", event.value),
            Some(Kind::Stolen) if since.is_some() => supply -= event.value as i64,
            Some(Kind::Grant) if event.a == edge => since = Some(event.now_ns),
            Some(Kind::Revoke) if event.a == edge => {
                supply += since.take().map_or(0, |since| (event.now_ns - since) as i64);
            }
            Some(Kind::Replenish) if event.a == edge => {
                let total = supply + since.map_or(0, |since| (event.now_ns - since) as i64);
                list.extend(before.replace(total).map(|had| (event.now_ns, total - had)));
            }
            _ => {}
        }
    }
    list
}

/// The one boot: a reservation keeps its periods, a budget grows and shrinks, a node with a set comes and goes, the default
/// node is another; what is refused changes nothing; recording, trace and statistics are whole.
#[test]
fn a_plan_in_force_becomes_another() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vm");
    let out = std::env::temp_dir().join(format!("tierce-apply-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&out);
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args([
        "vm",
        "--deterministic",
        "--limit",
        "25m",
        "--kernel",
        "7.0.13",
        "--cpus",
        "1",
        "--file",
        "lib.sh",
    ]);
    for plan in ["apply-a.toml", "apply-b.toml", "apply-c.toml"] {
        vm.args(["--file", &format!("{plan}:/guest/{plan}")]);
    }
    let done =
        vm.arg("--out").arg(&out).args(["--", "sh", "apply.sh"]).current_dir(&folder).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}\n{errors}");
    let mut said: HashMap<String, Value> = HashMap::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}\n{errors}"));
        said.insert(value["scenario"].as_str().unwrap().to_string(), value["got"].clone());
    }
    let got = |scenario: &str| {
        said.get(scenario).unwrap_or_else(|| panic!("{scenario}: nothing\n{text}\n{errors}"))
    };
    let log = std::fs::read_to_string(out.join("apply.err")).unwrap();
    assert_eq!(got("apply-end"), &json!({ "code": 0, "state": "disabled" }), "{log}");
    assert_eq!(got("socket"), "", "the socket went with its run");

    // What was said, and with which exit code.
    let changes = |scenario: &str, applied: bool| -> Vec<String> {
        let Value::Array(list) = &got(scenario)["said"]["changes"] else {
            panic!("{scenario}: {}", got(scenario))
        };
        assert_eq!((&got(scenario)["code"], &got(scenario)["said"]["applied"]), (&json!(0), &json!(applied)));
        list.iter().map(|change| change["text"].as_str().unwrap().to_string()).collect()
    };
    let to_b = [
        "+ node batch: fair, below rest (weight 50)",
        "+ set extra: below batch",
        "~ edge from rt to grow: budget 2ms -> 3ms",
    ];
    assert_eq!(changes("dry", false), to_b);
    assert_eq!(changes("b", true), to_b);
    assert_eq!(changes("same", true), [""; 0]);
    assert_eq!(
        changes("c", true),
        [
            "- node rest",
            "- node batch",
            "- set extra",
            "+ node turns: round-robin, below top",
            "~ edge from rt to grow: budget 3ms -> 2ms",
            "~ default node: rest -> turns",
        ]
    );
    assert_eq!(changes("a", true)[..2], ["- node turns", "+ node rest: fair, below top"]);
    for (scenario, code) in [("nobody", 2), ("second", 2), ("faults", 2), ("root", 1), ("unloaded", 1)] {
        assert_eq!(got(scenario)["code"], code, "{scenario}: {}", got(scenario));
    }
    assert_eq!(got("root")["said"]["error"]["rule"], "root_cannot_change");
    assert_eq!(got("unloaded")["said"]["error"]["rule"], "policy_is_not_loaded");
    let refused = |name: &str| std::fs::read_to_string(out.join(format!("{name}.refused"))).unwrap();
    assert!(refused("nobody").contains("no plan is in force"), "{}", refused("nobody"));
    assert!(refused("faults").contains("parent_must_exist"), "{}", refused("faults"));

    // Who is where meanwhile.
    let bound = |scenario: &str| -> Vec<String> {
        let Value::Array(list) = &got(scenario)["threads"] else { panic!("{}", got(scenario)) };
        let mut names: Vec<_> =
            list.iter().map(|thread| thread["name"].as_str().unwrap().to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(bound("with-extra"), ["extra", "extra", "grow", "steady"]);
    assert_eq!(bound("without-extra"), ["grow", "steady"]);
    assert_eq!(got("with-extra")["plan"], "apply-b.toml");
    let so_far: Report = serde_json::from_value(got("so-far").clone()).unwrap();
    assert!(so_far.tasks.iter().any(|task| task.name == "steady" && task.under[0].supply_ns.is_some()));

    // The trace: every part by its name and for its time.
    let (trace, fault) = Trace::read(File::open(out.join("apply.trace")).unwrap()).unwrap();
    assert!(fault.is_none(), "{fault:?}");
    let resized: Vec<&Event> =
        trace.events.iter().filter(|event| event.kind() == Some(Kind::Resize)).collect();
    let [grown, shrunk] = resized[..] else { panic!("{resized:?}") };
    assert_eq!((grown.value, shrunk.value), (3 * MS, 2 * MS));
    let nodes: Vec<(&str, bool)> =
        trace.header.nodes.iter().map(|node| (node.name.as_str(), node.gone)).collect();
    let expected =
        [("top", false), ("rt", false), ("rest", true), ("batch", true), ("turns", true), ("rest", false)];
    assert_eq!(nodes, expected);

    // `steady` has its 2 ms in every period, through every change and refusal.
    let begun = got("steady")["origin_ns"].as_u64().unwrap() + 50 * MS;
    let ended = begun + 5_900 * MS;
    let steady: Vec<i64> = periods(&trace, "steady")
        .iter()
        .filter(|(end, _)| (begun..ended).contains(end))
        .map(|(_, supply)| supply - 2 * MS as i64)
        .collect();
    let within = |list: &[i64], ns: i64| list.iter().filter(|off| off.abs() <= ns).count();
    let drift = steady.iter().scan(0, |sum, off| {
        *sum += off;
        Some(*sum)
    });
    let (lowest, highest) = drift.fold((0, 0), |(low, high), sum: i64| (low.min(sum), high.max(sum)));
    println!(
        "steady: {} periods, {:+} to {:+} ns, {} within 5 us, drift {lowest:+} to {highest:+} ns",
        steady.len(),
        steady.iter().min().unwrap(),
        steady.iter().max().unwrap(),
        within(&steady, 5 * US)
    );
    assert!(steady.len() >= 585 && within(&steady, 20 * US) == steady.len(), "{steady:?}");
    assert!(within(&steady, 5 * US) * 100 >= steady.len() * 99, "{steady:?}");
    assert!(lowest >= -25 * US && highest <= 25 * US, "{lowest} to {highest}");

    // `grow` has 2 ms, 3 ms from the next period on, 2 ms again at once.
    let grow: Vec<(u64, i64)> =
        periods(&trace, "grow").into_iter().filter(|(end, _)| (begun..ended).contains(end)).collect();
    let period = 20 * MS;
    let (mut two, mut three) = (0, 0);
    for (end, supply) in &grow {
        let (from, to) = (end - period, *end);
        if to <= grown.now_ns || from >= shrunk.now_ns {
            assert!((supply - 2 * MS as i64).abs() <= 20 * US, "{supply} ns, period that ended at {end}");
            two += 1;
        } else if from >= grown.now_ns && to <= shrunk.now_ns {
            assert!((supply - 3 * MS as i64).abs() <= 20 * US, "{supply} ns, period that ended at {end}");
            three += 1;
        }
    }
    println!("grow: {two} periods of 2 ms, {three} of 3 ms");
    assert!(two >= 40 && three >= 40, "{two} and {three} of {}", grow.len());

    // Threads called `extra` were below `batch` while that was there, and in the default node before and after.
    let mut stats = Stats::new(&trace.header);
    trace.events.iter().for_each(|event| stats.event(event));
    stats.finish(trace.end_ns());
    let report = stats.report();
    let node = |name: &str, gone: bool| {
        report.nodes.iter().find(|node| node.name == name && node.gone == gone).unwrap().cpu_ns
    };
    let rest = report.nodes.iter().find(|node| node.name == "rest" && node.gone).unwrap();
    assert!(node("batch", true) > 40 * MS && node("batch", true) < rest.cpu_ns, "{}", node("batch", true));
    let (turns, again) = (node("turns", true), node("rest", false));
    assert!(turns > 100 * MS && again > 50 * MS, "{turns} and {again} ns");
    let rt = node("rt", false);
    let below: u64 = report.nodes.iter().filter(|node| node.level == 1).map(|node| node.cpu_ns).sum();
    let top = node("top", false);
    assert!(below <= top && top - below < MS, "what top had, its children had: {top} and {below}, rt {rt}");

    // The report of the run itself says the same; a line each second before it.
    let lines = std::fs::read_to_string(out.join("apply.json")).unwrap();
    let reports: Vec<Report> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(reports.len() >= 5, "{}", reports.len());
    assert!(reports.windows(2).all(|pair| pair[0].elapsed_ns < pair[1].elapsed_ns));
    let last = reports.last().unwrap();
    assert_eq!(last.lost, 0);
    let names =
        |report: &Report| report.nodes.iter().map(|node| (node.name.clone(), node.gone)).collect::<Vec<_>>();
    assert_eq!(names(last), names(&report));
    let cpu =
        |report: &Report, name: &str| report.nodes.iter().find(|node| node.name == name).unwrap().cpu_ns;
    assert_eq!(cpu(last, "batch"), cpu(&report, "batch"));

    // Every decision again.
    let replayed = tierce(&["sim", "--replay", out.join("apply.rec").to_str().unwrap(), "--json"]);
    let replayed: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(replayed["identical"], true);
    assert!(replayed["decisions"].as_u64().unwrap() > 2000, "{replayed}");
    let _ = std::fs::remove_dir_all(&out);
}

#[test]
fn plans_with_faults_and_nobody_to_apply_them_to() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let plan = folder.join("apply.toml");
    let socket = folder.join("nobody.sock");
    let apply = |text: &str| {
        std::fs::write(&plan, text).unwrap();
        let done = tierce(&["apply", plan.to_str().unwrap(), "--socket", socket.to_str().unwrap()]);
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let good = "[node.top]\npolicy = \"fair\"\ndefault = true\ncpus = \"all\"\n";
    let (code, text) = apply(good);
    assert!(code == Some(2) && text.contains("no plan is in force"), "{text}");
    let (code, text) = apply(&good.replace("default", "defualt"));
    assert!(code == Some(2) && text.contains("did you mean"), "{text}");
    let (code, text) = apply(&good.replace("default = true\n", ""));
    assert!(code == Some(2) && text.contains("default_node_must_exist"), "{text}");
}

#[test]
fn statistics_about_themselves_are_refused() {
    let done = tierce(&["run", "plan.toml", "--stats-every", "1ms"]);
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && text.contains("at least 10ms"), "{text}");
}

#[test]
fn policies_to_keep_room_for_are_known() {
    let done = tierce(&["run", "plan.toml", "--policies", "edf,fiar"]);
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && text.contains("no policy `fiar`; the policies are "), "{text}");
}

#[test]
fn nobody_to_ask_for_the_status() {
    let done = tierce(&["status", "--socket", "/nowhere/tierce.sock"]);
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && text.contains("no plan is in force"), "{text}");
}
