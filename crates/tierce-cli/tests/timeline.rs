//! `tierce timeline` and `tierce trace` as a user calls them.

#[allow(dead_code)]
#[path = "../../tierce-trace/tests/synthetic/mod.rs"]
mod synthetic;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use synthetic::{generate, Options};
use tierce_trace::{Report, Source, Writer};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tierce-cli-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write_trace(path: &Path, source: Source) {
    let (trace, _) =
        generate(&Options { seed: 3, end_ns: 200_000_000, stolen: source == Source::Run, source });
    let mut writer = Writer::new(File::create(path).unwrap(), &trace.header).unwrap();
    trace.events.iter().for_each(|event| writer.write(event).unwrap());
    writer.finish().unwrap();
}

fn tierce(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).current_dir(folder).output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn pages_perfetto_traces_and_numbers() {
    let folder = folder("timeline");
    write_trace(&folder.join("sim.trace"), Source::Sim);
    write_trace(&folder.join("run.trace"), Source::Run);

    let output = tierce(&folder, &["timeline", "sim.trace"]);
    assert_eq!((output.status.code(), texts(&output).0.as_str()), (Some(0), "sim.html\n"));
    let output = tierce(&folder, &["timeline", "sim.trace", "run.trace", "--html", "both.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", texts(&output).1);
    let both = fs::read_to_string(folder.join("both.html")).unwrap();
    assert!(both.contains("id=\"events0\"") && both.contains("id=\"events1\""));
    let output = tierce(&folder, &["timeline", "run.trace", "--perfetto", "run.pftrace"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::metadata(folder.join("run.pftrace")).unwrap().len() > 10_000);
    let output = tierce(&folder, &["timeline", "run.trace", "--grasp", "run.grasp"]);
    assert_eq!((output.status.code(), texts(&output).0.as_str()), (Some(0), "run.grasp\n"));
    assert!(fs::read_to_string(folder.join("run.grasp"))
        .unwrap()
        .contains("\nnewTask task6 -priority 0 -name \"audio\"\n"));
    assert!(!folder.join("run.html").exists(), "a page nobody asked for");

    let output = tierce(&folder, &["trace", "stats", "run.trace", "--json"]);
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report.tasks.len(), report.source, report.elapsed_ns), (7, Source::Run, 200_000_000));
    let (tables, _) = texts(&tierce(&folder, &["trace", "stats", "run.trace"]));
    assert!(tables.starts_with("desktop: 200 ms measured, seed 3\n"), "{tables}");
    let (dump, _) = texts(&tierce(&folder, &["trace", "dump", "sim.trace"]));
    let first = dump.lines().next().unwrap();
    assert_eq!(first, "     0.000000 ms cpu0 job_release  audio job 1, deadline 10.000000 ms");
    let (json, _) = texts(&tierce(&folder, &["trace", "dump", "sim.trace", "--json"]));
    assert_eq!(json.lines().count(), dump.lines().count() + 1);

    // Cut off in the middle of a record: used as far as it goes, and said.
    let bytes = fs::read(folder.join("run.trace")).unwrap();
    fs::write(folder.join("cut.trace"), &bytes[..bytes.len() - 5]).unwrap();
    let output = tierce(&folder, &["trace", "stats", "cut.trace"]);
    assert_eq!(output.status.code(), Some(0));
    let (_, warning) = texts(&output);
    let place = format!(
        "cut.trace: byte {}: the file ends inside a record; only the records before it are used",
        bytes.len() - 32
    );
    assert!(warning.contains(&place), "{warning}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn refusals() {
    let folder = folder("refusals");
    write_trace(&folder.join("t.trace"), Source::Sim);
    fs::write(folder.join("text"), "this is no trace").unwrap();
    let cases: [(&[&str], &str); 10] = [
        (&["timeline", "missing.trace"], "tierce: missing.trace: No such file"),
        (&["trace", "t.trace"], "  tierce trace stats t.trace      CPU time, response times, misses\n"),
        (
            &["t.trace"],
            "tierce: command_must_be_given: `t.trace` is a file, and `tierce` needs a command before it:\n",
        ),
        (&["trace", "stat", "t.trace"], "a similar subcommand exists: 'stats'"),
        (&["timeline", "text"], "tierce: text: not a trace: it begins with [74"),
        (
            &["timeline", "t.trace", "t.trace", "--grasp", "x"],
            "tierce: --grasp takes one trace, but 2 were given",
        ),
        (
            &["timeline", "t.trace", "t.trace", "--perfetto", "x"],
            "tierce: --perfetto takes one trace, but 2 were given",
        ),
        (
            &["timeline", "t.trace", "--html", "no/such/folder.html"],
            "tierce: no/such/folder.html: No such file",
        ),
        (
            &["timeline", "t.trace", "--png", "p.png", "--span", "9ms..3ms"],
            "it ends (3ms) before it begins (9ms)",
        ),
        (&["trace", "dump", "text"], "tierce: text: not a trace"),
    ];
    for (arguments, expected) in cases {
        let output = tierce(&folder, arguments);
        let (_, message) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Two ways to one result: what the simulator counts itself, and what is counted from its trace.
#[test]
fn a_trace_says_what_the_simulator_says() {
    let folder = folder("agree");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut compared = 0;
    for entry in fs::read_dir(&examples).unwrap() {
        let plan = entry.unwrap().path();
        if plan.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = plan.to_str().unwrap();
        let output =
            tierce(&folder, &["sim", name, "--for", "700ms", "--seed", "5", "--json", "--trace", "t.trace"]);
        let (simulated, message) = texts(&output);
        assert_eq!(output.status.code(), Some(0), "{name}: {message}");
        let (traced, _) = texts(&tierce(&folder, &["trace", "stats", "t.trace", "--json"]));
        // Promises are counted by the engine, not from records.
        let parse = |text: &str| {
            let mut report = serde_json::from_str::<Report>(text).expect(name);
            let nodes = report.nodes.iter_mut().flat_map(|node| &mut node.under);
            let tasks = report.tasks.iter_mut().flat_map(|task| &mut task.under);
            nodes.chain(tasks).for_each(|edge| edge.promise = None);
            report
        };
        assert_eq!(parse(&simulated), parse(&traced), "{name}: simulator (left), trace (right)");
        compared += 1;
    }
    assert!(compared >= 10, "{compared} examples");
    fs::remove_dir_all(folder).unwrap();
}
