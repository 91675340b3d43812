//! Sweeps that are killed, shared and stopped have the rows of one that was not, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// 20,000 analyses, in 40 files.
const STUDY: &str = r#"
[study]
seed = 7
sets = 400
chunk = 100

[generate]
method = ["uunifast-discard", "emberson"]
tasks = 6
utilisation = { from = 0.5, to = 0.9, step = 0.1 }
periods = "1ms..10ms"

[[analyse]]
policy = ["edf", "rm"]
preemption = ["full", "none"]

[[analyse]]
name = "in a server"
policy = "rm"
supply = "4.7ms/5ms"
responses = true

[[figure]]
file = "all.svg"

[[figure]]
file = "ratio.svg"
y = "ratio"
quantile = 0.9
line = "method"
where = { test = "in a server" }
"#;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tierce-sweep-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("study.toml"), STUDY).unwrap();
        Self(folder)
    }

    fn command(&self, output: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tierce-sweep"));
        command.current_dir(&self.0).args(["study.toml", "-o", output]).args(more);
        command
    }

    fn run(&self, output: &str, more: &[&str]) -> Output {
        self.command(output, more).output().unwrap()
    }

    fn done(&self, output: &str, more: &[&str]) {
        let found = self.run(output, more);
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    }

    fn files(&self, output: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.0.join(output), Path::new(""), &mut files);
        files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn collect(folder: &Path, name: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder.join(name)).unwrap() {
        let name = name.join(entry.unwrap().file_name());
        if folder.join(&name).is_dir() {
            collect(folder, &name, files);
        } else {
            files.insert(name.clone(), fs::read(folder.join(&name)).unwrap());
        }
    }
}

#[test]
fn killed_and_resumed_is_the_same() {
    let seed = std::env::var("TIERCE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let scratch = Scratch::new("killed");
    let begun = Instant::now();
    scratch.done("whole", &[]);
    let whole_ms = begun.elapsed().as_millis() as u64;
    let mut draw = tierce_analysis::generate::Draw::new(seed);
    for _ in 0..5 {
        let mut sweep = scratch.command("killed", &[]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(draw.between(0, whole_ms / 5)));
        let _ = sweep.kill();
        sweep.wait().unwrap();
    }
    scratch.done("killed", &[]);
    let (whole, killed) = (scratch.files("whole"), scratch.files("killed"));
    assert_eq!(whole.keys().collect::<Vec<_>>(), killed.keys().collect::<Vec<_>>());
    assert!(whole == killed, "some bytes differ");
    assert_eq!(whole.keys().filter(|name| name.starts_with("rows")).count(), 40);
}

#[test]
fn threads_and_parts_do_not_matter() {
    let scratch = Scratch::new("parts");
    scratch.done("one", &["--jobs", "1"]);
    for part in ["3/3", "1/3", "2/3"] {
        let found = scratch.run("parts", &["--part", part, "--jobs", "2"]);
        assert!(found.status.success());
    }
    assert!(scratch.files("one") == scratch.files("parts"));
    // A second time there is nothing to do; a file that is torn is done again.
    let torn = scratch.0.join("parts/rows/chunk-000007.parquet");
    let bytes = fs::read(&torn).unwrap();
    fs::write(&torn, &bytes[..bytes.len() / 2]).unwrap();
    fs::write(scratch.0.join("parts/rows/.chunk-000007.parquet.1"), "begun").unwrap();
    scratch.done("parts", &[]);
    assert!(scratch.files("one") == scratch.files("parts"));
}

#[test]
fn another_study_is_refused_and_other_figures_are_not() {
    let scratch = Scratch::new("other");
    fs::write(scratch.0.join("study.toml"), STUDY.replace("sets = 400", "sets = 2")).unwrap();
    scratch.done("out", &[]);
    let other = STUDY.replace("sets = 400", "sets = 2").replace("seed = 7", "seed = 8");
    fs::write(scratch.0.join("study.toml"), other).unwrap();
    let refused = scratch.run("out", &[]);
    assert_eq!(refused.status.code(), Some(2));
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("folder_is_of_one_study: out/rows/chunk-000000.parquet"), "{words}");
    let figure = STUDY
        .replace("sets = 400", "sets = 2")
        .replace("all.svg", "new.pdf")
        .replace("ratio.svg", "ratio.png");
    fs::write(scratch.0.join("study.toml"), figure).unwrap();
    scratch.done("out", &[]);
    for (name, begin) in [("new.pdf", &b"%PDF-"[..]), ("ratio.png", b"\x89PNG")] {
        assert!(fs::read(scratch.0.join("out").join(name)).unwrap().starts_with(begin), "{name}");
    }
}

#[test]
fn lines_of_json_are_the_rows() {
    let scratch = Scratch::new("json");
    let study = STUDY.replace("sets = 400", "sets = 2")
        + "[[simulate]]\npolicy = [\"edf\", \"rm\"]\nfor = \"100ms\"\n";
    fs::write(scratch.0.join("study.toml"), study).unwrap();
    let found = scratch.run("out", &["--json"]);
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let text = String::from_utf8(found.stdout).unwrap();
    let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2 * 5 * 2 * 7);
    assert_eq!(rows[0]["test"], "edf");
    assert_eq!((&rows[0]["utilisation"], &rows[0]["method"]), (&0.5.into(), &"uunifast-discard".into()));
    for row in rows.iter().filter(|row| row["test"] == "edf, simulated") {
        assert_eq!((&row["schedulable"], &row["misses"]), (&true.into(), &0.into()));
        assert!(row["jobs"].as_u64().unwrap() >= 60 && row["ratio"].as_f64().unwrap() <= 1.0);
    }
}

/// A server's budget against what is asked of it: `${budget}` in a plan, and the set below one of its nodes.
#[test]
fn plans_with_parameters() {
    let scratch = Scratch::new("plan");
    let plan = "[node.cpu]\npolicy = \"reservation\"\ncpu = 0\n\n[node.server]\npolicy = \"fixed-priority\"\nunder.cpu = { budget = \"${budget}\", period = \"1ms\" }\n";
    fs::write(scratch.0.join("plan.toml"), plan.replace("${budget}", "${size}us")).unwrap();
    let study = "[study]\nsets = 5\n[parameters]\nsize = [100, 900]\n[generate]\nmethod = \"emberson\"\ntasks = 3\nutilisation = 0.5\nperiods = \"20ms..50ms\"\n[[simulate]]\nname = \"server\"\nplan = \"plan.toml\"\nunder = \"server\"\nfor = \"500ms\"\n[[figure]]\nfile = \"size.svg\"\nx = \"size\"\n";
    fs::write(scratch.0.join("study.toml"), study).unwrap();
    scratch.done("out", &[]);
    let numbers = fs::read_to_string(scratch.0.join("out/size.csv")).unwrap();
    let shares: Vec<&str> = numbers.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    assert_eq!(shares, ["0", "1"], "{numbers}");
    // What a plan includes decides rows, too.
    let (top, server) = plan.split_once("\n\n").unwrap();
    fs::write(scratch.0.join("top.toml"), top).unwrap();
    let including = format!("include = \"top.toml\"\n{}", server.replace("${budget}", "${size}us"));
    fs::write(scratch.0.join("plan.toml"), including).unwrap();
    scratch.done("included", &[]);
    assert_eq!(fs::read_to_string(scratch.0.join("included/size.csv")).unwrap(), numbers);
    fs::write(scratch.0.join("top.toml"), format!("# Another text.\n{top}\n")).unwrap();
    let refused = scratch.run("included", &[]);
    assert_eq!(refused.status.code(), Some(2));
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("folder_is_of_one_study"), "{words}");
}
