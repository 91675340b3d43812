//! `tierce measure` and `tierce job` as a user calls them.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tierce-cli-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn tierce(folder: &Path, arguments: &[&str]) -> Output {
    let mut tierce = Command::new(env!("CARGO_BIN_EXE_tierce"));
    tierce
        .args(arguments)
        .env("TIERCE_SOCKET", folder.join("nobody.sock"))
        .current_dir(folder)
        .output()
        .unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// With exit code 2, and these words.
fn is_refused(folder: &Path, arguments: &[&str], words: &str) {
    let output = tierce(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(texts(&output).1.contains(words), "{arguments:?}: {}", texts(&output).1);
}

const PLAN: &str = r#"
machine.costs = { switch = "3us", timer = "1us", level = "500ns" }
[node.top]
policy = "edf"
cpu = 0
[task.a]
under.top = {}
load = { period = "10ms", work = "2ms" }
[task.b]
under.top = {}
load = { period = "25ms", work = "5ms", phase = "6ms" }
"#;

#[test]
fn tables_json_and_pictures() {
    let folder = folder("measure");
    fs::write(folder.join("plan.toml"), PLAN).unwrap();
    let output = tierce(&folder, &["sim", "plan.toml", "--for", "1s", "--trace", "sim.trace"]);
    assert_eq!(output.status.code(), Some(0), "{}", texts(&output).1);
    let arguments = ["measure", "--tasks", "--plot", "all.svg", "sim.trace", "sim.trace"];
    let (text, errors) = texts(&tierce(&folder, &arguments));
    let line = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {text}{errors}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("CtswJ"), "CtswJ 3.5 µs 3.5 µs 3.5 µs 3.5 µs 320", "of both traces");
    assert_eq!(line("RelJ"), "RelJ 0 ns 0 ns 0 ns 0 ns 280");
    assert_eq!((line("ResJ"), line("tick")), ("ResJ - - - - -".into(), "tick - - - - -".into()));
    assert_eq!(text.matches("\n  b\n").count(), 2, "{text}");
    let svg = fs::read_to_string(folder.join("all.svg")).unwrap();
    assert!(svg.contains("CtswJ: context-switch jitter") && !svg.contains("ResJ"));

    let (text, _) = texts(&tierce(&folder, &["measure", "--json", "sim.trace"]));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["version"], &json["rows"][2]["quantity"]), (&1.into(), &"CtswJ".into()));
    assert_eq!(json["rows"][2]["most"]["max_ns"], 3_500);
    assert_eq!(json["tasks"].as_array().unwrap().len(), 2);

    let (dump, _) = texts(&tierce(&folder, &["trace", "dump", "sim.trace"]));
    assert!(dump.contains("0.003500 ms cpu0 outside      the scheduler ends, for a"), "{}", &dump[..600]);

    for (arguments, part) in [
        (&["measure"][..], "required"),
        (&["measure", "missing.trace"], "missing.trace"),
        (&["measure", "plan.toml"], "not a trace"),
        (&["measure", "sim.trace", "--plot", "a.gif"], "picture_is_svg_pdf_or_png: a.gif, bound"),
        (&["measure", "sim.trace", "--epoch", "5"], "needs a unit"),
        (&["measure", "--live"], "no plan is in force"),
        (&["measure", "--live", "sim.trace"], "cannot be used with"),
    ] {
        is_refused(&folder, arguments, part);
    }
    fs::remove_dir_all(&folder).unwrap();
}

const CHAIN: &str = r#"
machine.cpus = 2
[node.top]
policy = "fixed-priority"
per_cpu = true
[task.first]
under.top = { cpu = 0 }
load = { period = "10ms", work = "2ms" }
[task.second]
under.top = { cpu = 1 }
load = { work = "3ms" }
[task.idle]
under.top = { cpu = 1, priority = 2 }
load = { period = "1s", work = "1ms", phase = "900ms" }
[chain.both]
tasks = ["first", "second"]
needs = "within 6ms"
[chain.never]
tasks = ["first", "idle"]
"#;

#[test]
fn chains_beside_their_bounds() {
    let folder = folder("measure-chain");
    fs::write(folder.join("plan.toml"), CHAIN).unwrap();
    fs::write(folder.join("none.toml"), PLAN).unwrap();
    // Less is allowed than what was played, and it is thought to need less.
    let tight = CHAIN.replace("within 6ms", "within 4ms").replace("work = \"3ms\"", "work = \"2ms\"");
    fs::write(folder.join("tight.toml"), tight).unwrap();
    let sim = |plan: &str, trace: &str| {
        let output = tierce(&folder, &["sim", plan, "--for", "509ms", "--trace", trace]);
        assert_eq!(output.status.code(), Some(0), "{}", texts(&output).1);
    };
    sim("plan.toml", "sim.trace");
    sim("none.toml", "none.trace");

    let output = tierce(&folder, &["measure", "sim.trace", "--chain", "both"]);
    let text = texts(&output).0;
    let words = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or(&text);
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(words("both"), "both (simulated): first, second");
    assert_eq!(words("response"), "response 51 5 ms 5 ms 5 ms 5 ms 6 ms 6 ms");
    assert_eq!(words("reaction"), "reaction 50 15 ms 15 ms 15 ms 15 ms 16 ms -");

    // All of them: through one comes nothing.
    let output = tierce(&folder, &["measure", "sim.trace", "--chain", "--json"]);
    let json: Value = serde_json::from_str(&texts(&output).0).unwrap();
    assert_eq!((output.status.code(), &json["holds"]), (Some(1), &false.into()));
    let [both, never] = [0, 1].map(|chain| &json["chains"][chain]);
    assert_eq!((&both["holds"], &never["holds"]), (&true.into(), &false.into()));
    assert_eq!((&both["times"][2]["of"], &both["times"][2]["max_ns"]), (&"age".into(), &5_000_000.into()));
    assert_eq!(never["times"][0]["max_ns"], Value::Null);
    assert_eq!(json["remarks"], serde_json::json!(["never: the trace has no job of `idle`"]));

    let output = tierce(&folder, &["measure", "sim.trace", "--chain", "both", "--plan", "tight.toml"]);
    let text = texts(&output).0;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("both: a response of 5 ms is above what the plan needs, 4 ms\n"), "{text}");

    for (arguments, part) in [
        (&["measure", "none.trace", "--chain"][..], "no [chain.NAME] in the plan of this trace"),
        (&["measure", "sim.trace", "--chain", "--plan", "none.toml"], "no [chain.NAME] in the plan"),
        (&["measure", "sim.trace", "--chain", "boht"], "no chain `boht`; there are `both`, `never`"),
        (&["measure", "sim.trace", "--chain", "both", "--plan", "missing.toml"], "missing.toml"),
        (&["measure", "sim.trace", "none.trace", "--chain"], "chain_is_of_one_trace: 2 traces, bound 1"),
        (&["measure", "plan.toml", "--chain"], "not a trace"),
        (&["measure", "sim.trace", "--plan", "plan.toml"], "--chain"),
        (&["measure", "sim.trace", "--chain", "both", "--tasks"], "cannot be used with"),
    ] {
        is_refused(&folder, arguments, part);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn arrivals_become_loads_of_a_plan() {
    let folder = folder("measure-arrivals");
    let example =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bursts.toml")).unwrap();
    fs::write(folder.join("bursts.toml"), &example).unwrap();
    let sim = |plan: &str, trace: &str| {
        let output = tierce(&folder, &["sim", plan, "--for", "4s", "--trace", trace]);
        assert_eq!(output.status.code(), Some(0), "{}", texts(&output).1);
    };
    sim("bursts.toml", "bursts.trace");
    let measured = |arguments: &[&str]| -> Value {
        let all = [&["measure", "bursts.trace", "--json"], arguments].concat();
        let output = tierce(&folder, &all);
        assert_eq!(output.status.code(), Some(0), "{}", texts(&output).1);
        serde_json::from_str(&texts(&output).0).unwrap()
    };
    let json = measured(&["--arrivals"]);
    let load = |name: &str| {
        let mut tasks = json["tasks"].as_array().unwrap().iter();
        tasks.find(|task| task["name"] == name).unwrap_or_else(|| panic!("{json}"))["load"].as_str().unwrap()
    };
    assert_eq!(load("alarms"), r#"load = { separation = ["1ms", "2ms", "50ms"], work = "1.5ms" }"#);
    assert_eq!(load("video"), r#"load = { separation = "15ms", work = ["7ms", "1.5ms", "1.5ms", "1ms"] }"#);
    assert_eq!(load("control"), r#"load = { separation = "50ms", work = "14ms" }"#);
    let alone = measured(&["--arrivals", "video", "--jobs", "3"]);
    assert_eq!(alone["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(alone["tasks"][0]["work_ns"], serde_json::json!([7_000_000, 8_000_000, 10_000_000]));

    // What was measured is a plan, and says what the other one says.
    let mut again = String::new();
    let mut task = String::new();
    for line in example.lines() {
        task = line.strip_prefix("[task.").map_or(task, |rest| rest.trim_end_matches(']').to_string());
        let deadline = ["5ms", "15ms", "35ms"]
            [["alarms", "video", "control"].iter().position(|it| *it == task).unwrap_or(0)];
        match line.starts_with("load = ") {
            true => again += &load(&task).replace(" }", &format!(", deadline = \"{deadline}\" }}\n")),
            false => again += &format!("{line}\n"),
        }
    }
    fs::write(folder.join("again.toml"), &again).unwrap();
    for plan in ["bursts.toml", "again.toml"] {
        let output = tierce(&folder, &["check", plan]);
        assert_eq!(output.status.code(), Some(0), "{again}{}", texts(&output).0);
    }

    let output = tierce(&folder, &["measure", "bursts.trace", "--arrivals", "alarms"]);
    let (text, _) = texts(&output);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        (rows[0].join(" ").starts_with("alarms (simulated): "), &rows[4][..]),
        (true, &["3", "50", "ms", "4.5", "ms"][..]),
        "{text}"
    );

    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn arrivals_that_cannot_be_measured() {
    let folder = folder("measure-no-arrivals");
    fs::write(folder.join("plan.toml"), PLAN).unwrap();
    let output = tierce(&folder, &["sim", "plan.toml", "--for", "100ms", "--trace", "plan.trace"]);
    assert_eq!(output.status.code(), Some(0), "{}", texts(&output).1);
    for (arguments, part) in [
        (&["measure", "plan.trace", "--arrivals", "c"][..], "those with two jobs or more are `a`, `b`"),
        (
            &["measure", "plan.trace", "plan.trace", "--arrivals"],
            "arrivals_are_of_one_trace: 2 traces, bound 1",
        ),
        (&["measure", "plan.trace", "--jobs", "3"], "--arrivals"),
        (&["measure", "plan.trace", "--arrivals", "--jobs", "0"], "0 is not in 1..=256"),
        (&["measure", "plan.trace", "--arrivals", "--chain"], "cannot be used with"),
        (&["measure", "plan.toml", "--arrivals"], "not a trace"),
    ] {
        is_refused(&folder, arguments, part);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn jobs_of_a_real_thread() {
    let folder = folder("job");
    let arguments =
        ["job", "--period", "5ms", "--deadline", "1h", "--work", "10us,20us", "--jobs", "4", "--json"];
    let arguments = arguments.map(|word| if word == "1h" { "60min" } else { word });
    let (text, errors) = texts(&tierce(&folder, &arguments));
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}"));
    assert_eq!((&json["jobs"], &json["misses"], &json["kernel"]), (&4.into(), &0.into(), &Value::Null));
    assert!(json["response_ns"]["min"].as_u64() >= Some(10_000));
    // Its own command per job; a deadline that nothing can meet is missed each time.
    let arguments = ["job", "--period", "5ms", "--deadline", "1ns", "--jobs", "3", "--", "touch", "done"];
    let (text, errors) = texts(&tierce(&folder, &arguments));
    assert!(text.starts_with("job: 3 jobs, 3 misses"), "{text}{errors}");
    assert!(folder.join("done").exists());

    for (arguments, part) in [
        (&["job"][..], "--period"),
        (&["job", "--period", "0ms"], "longer than 0"),
        (&["job", "--period", "5ms", "--name", "sixteen bytes and"], "1 to 15"),
        (&["job", "--period", "5ms", "--name", ""], "1 to 15"),
        (&["job", "--period", "5ms", "--work", "3"], "needs a unit"),
        (&["job", "--period", "5ms", "--work", "1ms", "--", "true"], "cannot be used with"),
        (&["job", "--period", "5ms", "--jobs", "2", "--", "false"], "false: job 1: exit status: 1"),
        (&["job", "--period", "5ms", "--jobs", "2", "--", "./missing"], "./missing"),
    ] {
        is_refused(&folder, arguments, part);
    }
    fs::remove_dir_all(&folder).unwrap();
}
