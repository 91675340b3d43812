//! `tierce calibrate`: what is refused before anything is watched, profiles in their folders, and, in a throw-away machine whose time is
//! counted in instructions, rt-app with periods and works that are known. The machine has one CPU.

use serde_json::{json, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that goes when the test is done.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tierce-cli-calibrate-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn calibrate(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
    command.arg("calibrate").args(arguments).env("XDG_CONFIG_HOME", home);
    command.output().unwrap()
}

#[test]
fn what_is_refused() {
    let folder = Folder::new("refused");
    for (arguments, expected) in [
        (vec![], "program_must_be_given: what to watch?"),
        (vec!["--pid", "1", "--", "true"], "cannot be used with"),
        (vec!["--tid", "1", "--pid", "1"], "cannot be used with"),
        (vec!["--alone", "--tid", "1"], "cannot be used with"),
        (vec!["--alone"], "required arguments were not provided"),
        (vec!["--under-plan", "--", "true"], "cannot be used with"),
        (vec!["--for", "0s", "--", "true"], "longer than 0"),
        (vec!["--for", "3", "--", "true"], "needs a unit"),
        (vec!["--margin", "half", "--", "true"], "whole percent, bound 0% to 1000%"),
        (vec!["--margin", "1001%", "--", "true"], "whole percent, bound 0% to 1000%"),
        (vec!["--importance", "utmost", "--", "true"], "low, normal, high"),
        (vec!["--layer", "moon", "--", "true"], "vendor, system, machine, user"),
        (vec!["--dry-run", "--out", "x", "--", "true"], "cannot be used with"),
        (vec!["--json", "--plan", "--", "true"], "cannot be used with"),
        (vec!["--show", "no-such-program"], "program_must_exist: no-such-program: no such program"),
        (vec!["--show", "/no/such/program"], "profile_must_exist: there is no profile of /no/such/program"),
        (vec!["--check", "sh"], "`tierce calibrate -- /"),
    ] {
        let out = calibrate(&folder.0, &arguments);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
    }
}

const PROFILE: &str = "\
version = 1
program = { path = \"PROGRAM\", sha256 = \"SUM\" }
machine = { kernel = \"0.1\", cpu = \"none\", frequency = \"none\" }
calibration = { watched = \"10s\", lost = 0, importance = \"normal\", margin_percent = 10 }

[[thread]]
name = \"audio\"
process = \"player\"
count = 1
verdict = \"periodic\"
wakeups = 1000
load = 200
waited = 0
explained = 1000
chance_percent = 1
reservation = { budget = \"2.2ms\", period = \"10ms\" }

[[thread.period]]
period = \"10ms\"
clock = \"timer\"
jitter = { p99 = \"20us\", max = \"50us\" }
kept = 1000
chance_percent = 1
work = { jobs = 999, median = \"1.9ms\", p90 = \"1.95ms\", p99 = \"2ms\", max = \"2.5ms\" }
overruns = 0
resumed = 0
releases = { first = \"1ms\", last = \"9.991s\" }
";

#[test]
fn profiles_of_the_user() {
    let folder = Folder::new("profiles");
    let text = |out: &Output| String::from_utf8_lossy(&out.stdout).into_owned();
    let program = folder.0.join("player");
    std::fs::write(&program, "abc").unwrap();
    let program = program.canonicalize().unwrap();
    let shown = program.display().to_string();
    let below = format!("tierce/profiles{}.toml", program.display());
    let file = folder.0.join(below);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    std::fs::write(&file, PROFILE.replace("PROGRAM", &shown).replace("SUM", sum)).unwrap();

    let list = calibrate(&folder.0, &["--list"]);
    let line = text(&list).lines().find(|line| line.starts_with(&shown)).map(String::from);
    let line = line.unwrap_or_else(|| panic!("{}", text(&list)));
    assert!(line.contains(" user ") && line.contains("no, changed: kernel, processor"), "{line}");
    let check = calibrate(&folder.0, &["--check", &shown]);
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    assert!(
        text(&check).contains("kernel: was 0.1, is ") && !text(&check).contains("executable"),
        "{check:?}"
    );
    std::fs::write(&program, "abd").unwrap();
    let check = calibrate(&folder.0, &["--check", &shown, "--json"]);
    let said: Value = serde_json::from_str(&text(&check)).unwrap();
    assert_eq!(
        (&said["fits"], &said["changes"][0]["what"]),
        (&json!(false), &json!(format!("executable {shown}")))
    );

    let show = calibrate(&folder.0, &["--show", &shown]);
    assert_eq!(show.status.code(), Some(0));
    assert!(text(&show).contains("2.2ms every 10ms") && text(&show).contains("100.0 %"), "{}", text(&show));
    let high = calibrate(&folder.0, &["--show", &shown, "--importance", "high", "--json"]);
    let said: Value = serde_json::from_str(&text(&high)).unwrap();
    let thread = &said["profiles"][0]["threads"][0];
    assert_eq!((&thread["name"], &thread["reservation"]["budget_ns"]), (&json!("audio"), &json!(3_000_000)));

    // A plan, which holds.
    let plan = calibrate(&folder.0, &["--show", &shown, "--plan"]);
    assert_eq!(plan.status.code(), Some(0), "{plan:?}");
    std::fs::write(folder.0.join("plan.toml"), &plan.stdout).unwrap();
    let mut verdict = Command::new(env!("CARGO_BIN_EXE_tierce"));
    let verdict = verdict.args(["check", "--run"]).arg(folder.0.join("plan.toml")).output().unwrap();
    assert_eq!(verdict.status.code(), Some(0), "{}{verdict:?}", text(&plan));
    let too_much = calibrate(&folder.0, &["--show", &shown, "--plan", "--margin", "1000%"]);
    assert_eq!(too_much.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&too_much.stderr).contains("the plan does not hold on this machine"));

    std::fs::write(&file, "version = 2\n").unwrap();
    let list = calibrate(&folder.0, &["--list"]);
    let said = String::from_utf8_lossy(&list.stderr);
    assert!(
        said.contains("version_must_be_known: version: 2, bound 1") && list.status.code() == Some(2),
        "{said}"
    );
}

// ---- in a machine ----------------------------------------------------------------------------------------------------

/// Numbers of a linear congruential generator (Knuth's MMIX), the upper half: the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A thread of rt-app: it works, and then waits until so long after the release before; in turn. In µs.
fn thread(name: &str, steps: &[(u64, u64)]) -> String {
    let mut phases = String::new();
    for (at, (work, wait)) in steps.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let timer = format!("{{ \"ref\": \"timer-{name}\", \"period\": {wait}, \"mode\": \"absolute\" }}");
        let _ = write!(phases, "{comma}\n\"p{at}\": {{ \"loop\": 1, \"run\": {work}, \"timer\": {timer} }}");
    }
    format!("\"{name}\": {{ \"loop\": -1, \"phases\": {{ {phases} }} }}")
}

fn rt_app(name: &str, seconds: i32, threads: &[String]) -> String {
    format!(
        "{{ \"global\": {{ \"duration\": {seconds}, \"calibration\": 376, \"default_policy\": \"SCHED_OTHER\", \"pi_enabled\": false,
        \"lock_pages\": false, \"logdir\": \"/out\", \"log_basename\": \"{name}\", \"ftrace\": false, \"gnuplot\": false }},
        \"tasks\": {{ {} }} }}\n",
        threads.join(",\n")
    )
}

/// Releases at these times, in µs, again and again with this period.
fn at_times(times: &[(u64, u64)], all: u64) -> Vec<(u64, u64)> {
    let next = times.iter().skip(1).map(|(time, _)| *time).chain([times[0].0 + all]);
    times.iter().zip(next).map(|((time, work), next)| (*work, next - time)).collect()
}

/// Threads that preempt each other, with their work and period in µs; and the cases in which each of them is alone.
const SEVERAL: [(&str, u64, u64); 3] =
    [("audio", 2_000, 10_000), ("video", 5_000, 33_333), ("sensor", 3_000, 25_000)];
const ALONE: [&str; 3] = ["alone-audio", "alone-video", "alone-sensor"];

fn cases() -> Vec<(&'static str, String)> {
    let mut numbers = Numbers(20_261);
    let single = [(3_000, 10_000), (3_300, 10_000), (3_150, 10_000), (3_600, 10_000)];
    let jitter: Vec<(u64, u64)> =
        (0..100).map(|k| (2_000 + k * 20_000 + numbers.next(4_001), 4_000 + numbers.next(800))).collect();
    let two = [
        (0, 2_000),
        (6_000, 3_000),
        (20_000, 2_000),
        (40_000, 2_000),
        (56_000, 3_000),
        (60_000, 2_000),
        (80_000, 2_000),
    ];
    // 4 ms at least, and an exponential time of 16 ms on average.
    let waits = (0..500).map(|_| {
        let uniform = (numbers.next(1 << 20) + 1) as f64 / f64::from(1 << 20);
        (1_500 + numbers.next(500), 4_000 + (-uniform.ln() * 16_000.0) as u64)
    });
    let aperiodic: Vec<(u64, u64)> = waits.collect();
    let several = SEVERAL.map(|(name, work, period)| thread(name, &[(work, period)]));
    let alone = SEVERAL
        .iter()
        .zip(ALONE)
        .map(|((name, work, period), case)| (case, rt_app(case, 4, &[thread(name, &[(*work, *period)])])));
    let running = [thread("steady", &[(2_000, 12_500)]), thread("other", &[(2_000, 17_000)])];
    let mut all = vec![
        ("single", rt_app("single", 6, &[thread("single", &single)])),
        ("jitter", rt_app("jitter", 8, &[thread("jitter", &at_times(&jitter, 2_000_000))])),
        ("two-periods", rt_app("two-periods", 8, &[thread("two", &at_times(&two, 100_000))])),
        ("aperiodic", rt_app("aperiodic", 8, &[thread("aperiodic", &aperiodic)])),
        ("several", rt_app("several", 8, &several)),
        ("running", rt_app("running", -1, &running)),
    ];
    all.extend(alone);
    all
}

/// How long rt-app says that each job of a thread took, in ns, one after the other. That is by the clock on the wall.
fn ran(out: &Path, case: &str, thread: &str) -> Vec<u64> {
    let starts = format!("{case}-{thread}-");
    let mut logs = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.find(|path| path.file_name().unwrap().to_string_lossy().starts_with(&starts));
    let text =
        std::fs::read_to_string(log.unwrap_or_else(|| panic!("rt-app left no log of {thread}"))).unwrap();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.map(|line| line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap() * 1000).collect()
}

/// The same without interrupts and other threads, sorted: a job does what each does that comes `turn` later or earlier, and what most of
/// these take at most is its time.
fn worked(out: &Path, case: &str, thread: &str, turn: usize) -> Vec<u64> {
    let ran = ran(out, case, thread);
    let usual = |job: usize| {
        let mut alike: Vec<u64> = ran.iter().copied().skip(job % turn).step_by(turn).collect();
        alike.sort_unstable();
        alike[(alike.len() - 1) / 2]
    };
    let mut worked: Vec<u64> = (0..ran.len()).map(usual).collect();
    worked.sort_unstable();
    worked
}

struct Boot {
    out: PathBuf,
    said: Vec<Value>,
    all: String,
}

impl Boot {
    fn json(&self, case: &str) -> Value {
        let path = self.out.join(format!("{case}.json"));
        let text = std::fs::read_to_string(&path).unwrap();
        let error = std::fs::read_to_string(path.with_extension("err")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{case}: {why}: {text}{error}"))
    }

    fn code(&self, scenario: &str) -> i64 {
        let said = self.said.iter().find(|value| value["scenario"] == scenario);
        said.and_then(|value| value["got"]["code"].as_i64())
            .unwrap_or_else(|| panic!("{scenario}: {}", self.all))
    }

    /// The thread of that name, and its periods, shortest first.
    fn thread(&self, case: &str, name: &str) -> (Value, Vec<Value>) {
        let json = self.json(case);
        let threads = json["profiles"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|profile| profile["threads"].as_array().unwrap());
        let found = threads.clone().find(|thread| thread["name"].as_str().unwrap().starts_with(name));
        let thread = found.unwrap_or_else(|| panic!("{case}: no thread {name}: {json:#}")).clone();
        let mut periods = thread["periods"].as_array().unwrap().clone();
        periods.sort_by_key(|period| period["period_ns"].as_u64());
        (thread, periods)
    }

    /// The period within 1 %, and the work of 99 % of the jobs within 3 % of what the thread really ran.
    fn assert_near(&self, case: &str, period: &Value, expected_ns: u64, p99_ns: u64) {
        let off = |value: u64, expected: u64| (value as f64 / expected as f64 - 1.0) * 100.0;
        let (found_ns, work) = (period["period_ns"].as_u64().unwrap(), &period["work_ns"]);
        let (period_off, work_off) = (off(found_ns, expected_ns), off(work["p99"].as_u64().unwrap(), p99_ns));
        println!("{case}: period {found_ns} ({period_off:+.4} %), 99 % {} of {p99_ns} ({work_off:+.2} %), {period}", work["p99"]);
        assert!(period_off.abs() < 1.0, "{case}: {period_off} %: {period}");
        assert!(work_off.abs() < 3.0, "{case}: {work_off} %: {period}");
    }
}

fn p99(sorted: &[u64]) -> u64 {
    sorted[(sorted.len() * 99).div_ceil(100) - 1]
}

fn boot(kernel: &str, wanted: &[&str]) -> (Boot, Folder) {
    let folder = Folder::new(&format!("vm-{kernel}"));
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vm");
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args(["vm", "--deterministic", "--limit", "25m", "--kernel", kernel, "--program", "rt-app"]);
    vm.args(["--file", "lib.sh", "--file", "calibrate.sh", "--out"]).arg(folder.0.join("out"));
    for (case, text) in cases() {
        let path = folder.0.join(format!("{case}.json"));
        std::fs::write(&path, text).unwrap();
        vm.args(["--file", &format!("{}:/guest/{case}.json", path.display())]);
    }
    let done = vm.args(["--", "sh", "calibrate.sh"]).args(wanted).current_dir(scripts).output().unwrap();
    let all = format!("{}\n{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let _ = std::fs::write(folder.0.join("said"), &all); // for who looks at a failure
    let said = String::from_utf8_lossy(&done.stdout);
    let said = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect();
    assert!(done.status.success(), "{all}");
    (Boot { out: folder.0.join("out"), said, all }, folder)
}

/// One thread; its work varies.
fn judge_single(boot: &Boot) {
    let (thread, periods) = boot.thread("single", "single");
    assert_eq!((boot.code("single"), periods.len()), (0, 1), "{thread:#}");
    boot.assert_near("single", &periods[0], 10_000_000, p99(&worked(&boot.out, "single", "single", 4)));
    assert!(thread["explained"].as_u64() >= Some(980) && periods[0]["clock"] == "timer", "{thread:#}");
    assert_eq!(thread["reservation"]["period_ns"], 10_000_000, "{thread:#}");
}

fn judge_others(boot: &Boot) {
    // Releases up to 10 % early or late.
    let (thread, periods) = boot.thread("jitter", "jitter");
    assert_eq!((boot.code("jitter"), periods.len()), (0, 1), "{thread:#}");
    boot.assert_near("jitter", &periods[0], 20_000_000, p99(&worked(&boot.out, "jitter", "jitter", 100)));
    let jitter = periods[0]["jitter_ns"]["max"].as_u64().unwrap();
    assert!((1_500_000..2_500_000).contains(&jitter), "{thread:#}");

    // Two periods in one thread: 2 ms of work every 20 ms, 3 ms every 50 ms.
    let (thread, periods) = boot.thread("two-periods", "two");
    assert_eq!((boot.code("two-periods"), periods.len()), (0, 2), "{thread:#}");
    let all = worked(&boot.out, "two-periods", "two", 7);
    let short: Vec<u64> = all.iter().copied().filter(|ns| *ns < 2_500_000).collect();
    boot.assert_near("two-periods", &periods[0], 20_000_000, p99(&short));
    boot.assert_near("two-periods", &periods[1], 50_000_000, p99(&all[short.len()..]));

    // None.
    let (thread, _) = boot.thread("aperiodic", "aperiodic");
    assert_eq!((boot.code("aperiodic"), &thread["verdict"]), (1, &json!("aperiodic")), "{thread:#}");
    assert_eq!(thread["reservation"], Value::Null);
    println!("aperiodic: {thread}");
}

/// Several threads that preempt each other, beside each of them alone. How long a job of theirs took by the clock on the wall says nothing of
/// its work; of a thread that is alone it does.
fn judge_several(boot: &Boot) {
    assert_eq!(boot.code("several"), 0);
    for ((name, _, period_us), case) in SEVERAL.into_iter().zip(ALONE) {
        let (alone, alone_periods) = boot.thread(case, name);
        let (thread, periods) = boot.thread("several", name);
        assert_eq!((boot.code(case), alone_periods.len(), periods.len()), (0, 1, 1), "{alone:#} {thread:#}");
        let said = p99(&worked(&boot.out, case, name, 1));
        boot.assert_near(case, &alone_periods[0], period_us * 1000, said);
        boot.assert_near(name, &periods[0], period_us * 1000, said);
        let found_alone = alone_periods[0]["work_ns"]["p99"].as_u64().unwrap();
        boot.assert_near(name, &periods[0], alone_periods[0]["period_ns"].as_u64().unwrap(), found_alone);
        let mut took = ran(&boot.out, "several", name);
        took.sort_unstable();
        let took = p99(&took);
        println!(
            "{name}: 99 % of its jobs took {took} among the others by the clock on the wall, {said} alone"
        );
        assert!(name != "video" || took > said * 5 / 4, "video is preempted: {took}, {said}");
    }
}

/// A program that runs already, profiles, and what is refused.
fn judge_rest(boot: &Boot, last: &str) {
    let periods =
        ["steady", "other"].map(|name| boot.thread("process", name).1[0]["period_ns"].as_u64().unwrap());
    println!("a running program: {periods:?}");
    assert!(
        periods[0].abs_diff(12_500_000) < 125_000 && periods[1].abs_diff(17_000_000) < 170_000,
        "{periods:?}"
    );
    let json = boot.json("thread");
    let threads = json["profiles"][0]["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 1, "{json:#}");
    let period_ns = threads[0]["periods"][0]["period_ns"].as_u64().unwrap();
    assert!(period_ns.abs_diff(12_500_000) < 125_000, "{json:#}");

    // What is kept of the last program, and a plan from it.
    let read = |name: &str| std::fs::read_to_string(boot.out.join(name)).unwrap();
    assert_eq!((boot.code("list"), boot.code("check")), (0, 0), "{}{}", read("list"), read("check"));
    assert!(read("list").contains("machine") && read("check").contains("the profile fits"));
    assert_eq!(boot.code("no-plan"), 2);
    assert_eq!((boot.code("plan"), boot.code("verdict")), (0, 0), "{}{}", read("plan.toml"), read("verdict"));
    let task = read("plan.toml").lines().any(|line| line.starts_with(&format!("[task.{last}")));
    assert!(task, "{}", read("plan.toml"));
    assert_eq!(boot.code("refused"), 2);
    assert!(read("force.said").contains("no_plan_may_be_in_force"), "{}", read("force.said"));
}

#[test]
fn known_threads_on_7_0() {
    let wanted = [&["single", "jitter", "two-periods", "aperiodic"][..], &ALONE, &["several"]].concat();
    let (boot, _folder) = boot("7.0.13", &wanted);
    judge_single(&boot);
    judge_others(&boot);
    judge_several(&boot);
    judge_rest(&boot, "video");
}

#[test]
fn a_known_thread_on_6_18() {
    let (boot, _folder) = boot("6.18", &["single"]);
    judge_single(&boot);
    judge_rest(&boot, "single");
}
