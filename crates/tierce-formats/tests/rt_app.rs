//! Tasks of a plan as a file of rt-app: Tierce reads the same loads from it, and the real rt-app runs it.

use std::process::Command;
use tierce_admission::PlanExt;
use tierce_formats::export_rt_app;
use tierce_plan::{Load, Phase, Plan, Work};

const PLAN: &str = r#"
[machine]
cpus = 1
[node.top]
policy = "fair"
cpu = 0
[task.audio]
under.top = {}
load = { period = "10ms", work = "500us", phase = "1ms" }
affinity = [0]
[task.video]
under.top = {}
load = { period = "33.3335ms", work = ["2ms", "1.5ms"] }
[task.steps]
under.top = {}
load = { phases = [{ run = "300us" }, { sleep = "2ms" }, { run = "100us" }, { timer = { period = "20ms", absolute = true } }] }
[tasks.hog]
count = 2
under.top = {}
load = "busy"
[task.drawn]
under.top = {}
load = { separation = "50ms", extra = "5ms", work = { min = "1us", max = "1.2us" } }
[task.late]
under.top = {}
load = { stages = [{ period = "10ms", work = "1ms" }] }
"#;

#[test]
fn what_is_written_is_what_the_loads_say() {
    let plan = Plan::parse(PLAN, "plan.toml").unwrap();
    let written = export_rt_app(&plan).unwrap();
    let left: Vec<String> =
        written.left_out.iter().map(|left| format!("{}: {}: {}", left.line, left.what, left.why)).collect();
    assert_eq!(
        left,
        [
            "11: parts of a µs in `period` of `video`: rounded down",
            "21: `extra` of `drawn`: its jobs come as early as they may",
            "21: `work` of `drawn`: each job works the most that it may",
            "21: parts of a µs in the work of `drawn`: rounded up",
            "24: task `late`: its numbers change at given times",
        ]
    );
    let folder = std::env::temp_dir().join(format!("tierce-rt-app-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("threads.json"), &written.text).unwrap();
    let head = "[machine]\ncpus = 1\n[node.top]\npolicy = \"fair\"\ncpu = 0\n";
    let load = |thread: &str| {
        let text = format!("{head}[task.a]\nunder.top = {{}}\nload = {{ rt_app = \"threads.json\", thread = \"{thread}\" }}\n");
        std::fs::write(folder.join("plan.toml"), text).unwrap();
        let plan = Plan::load(folder.join("plan.toml")).unwrap_or_else(|faults| panic!("{thread}: {faults}"));
        let Some(Load::Phases(load)) = plan.tasks[0].load.clone() else { panic!("{thread}") };
        load
    };
    let run = |us: u64| Phase::Run { work: Work::Constant(us * 1000), within_ns: None };
    let timer = |us: u64| Phase::Timer { timer: 0, period_ns: us * 1000, absolute: true };
    let audio = load("audio");
    assert_eq!((audio.phase_ns, audio.phases), (1_000_000, vec![run(500), timer(10_000)]));
    assert_eq!(load("video").phases, [run(2000), timer(33_333), run(1500), timer(33_333)]);
    let sleep = Phase::Sleep(Work::Constant(2_000_000));
    assert_eq!(load("steps").phases, [run(300), sleep, run(100), timer(20_000)]);
    assert_eq!(load("hog-1").phases, [run(100_000)]);
    assert_eq!(load("drawn").phases, [run(2), timer(50_000)]);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn nothing_to_play_is_refused() {
    let text = PLAN.split("[task.audio]").next().unwrap().to_string() + "[task.a]\nunder.top = {}\n";
    let plan = Plan::parse(&text, "plan.toml").unwrap();
    let faults = export_rt_app(&plan).unwrap_err().to_string();
    assert!(faults.contains("format_must_have_it: no task has a load that rt-app can play"), "{faults}");
}

/// All threads of the file run, and end after its duration; no calibration, which takes seconds.
#[test]
fn rt_app_runs_it() {
    let plan = Plan::parse(PLAN, "plan.toml").unwrap();
    let text = export_rt_app(&plan).unwrap().text;
    let text =
        text.replace("\"duration\": 10, \"calibration\": \"CPU0\"", "\"duration\": 1, \"calibration\": 50");
    let folder = std::env::temp_dir().join(format!("tierce-rt-app-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("threads.json"), text).unwrap();
    let out = Command::new("rt-app").arg("threads.json").current_dir(&folder).output();
    let out = out.expect("rt-app is installed: scripts/setup test");
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}");
    for name in ["audio", "video", "steps", "hog-0", "hog-1", "drawn"] {
        let logs = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let prefix = format!("rt-app-{name}-");
        let log =
            logs.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&prefix)).count();
        assert_eq!(log, 1, "{name}: {said}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
