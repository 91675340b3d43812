//! `tierce hartstone` as a user calls it.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn tierce(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments.split_whitespace()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn done(arguments: &str) -> String {
    let output = tierce(arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&done(&format!("hartstone --json {arguments}"))).unwrap()
}

/// What all runs of a scheduler have there, in the order of experiments.
fn of<'a>(all: &'a Value, scheduler: &'a str, what: &'a str) -> Vec<u64> {
    let runs = all["runs"].as_array().unwrap().iter().filter(|run| run["scheduler"] == scheduler);
    runs.map(|run| run[what].as_u64().unwrap()).collect()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tierce-hartstone-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Where nothing costs anything, EDF and (harmonic periods) rate-monotonic priorities pass whatever does not ask for more than the CPU.
#[test]
fn steps_without_a_miss() {
    let all = json("--for 5s");
    assert_eq!(of(&all, "edf", "iterations_to_first_miss"), [30, 15, 7, 7]);
    assert_eq!(of(&all, "priority", "iterations_to_first_miss"), [30, 15, 7, 7]);
    assert_eq!(of(&all, "multiburst", "iterations_to_first_miss"), [30, 15, 7, 7]);
    assert_eq!(of(&all, "i-plus-pi", "iterations_to_first_miss"), [7, 15, 7, 7]);
    assert_eq!(of(&all, "round-robin", "iterations_to_first_miss"), [4, 11, 2, 5]);
    for run in all["runs"].as_array().unwrap() {
        let steps = run["steps"].as_array().unwrap();
        let last = steps.last().unwrap();
        assert!(steps[..steps.len() - 1].iter().all(|step| step["misses"] == 0), "{run}");
        assert!(last["misses"] == run["misses"] && run["misses"].as_u64() > Some(0), "{run}");
        assert_eq!(steps[0]["load"], 0.4);
        assert!(run["switches_per_second"].as_f64().unwrap() > 50.0);
        let misses: u64 =
            last["misses_of_tasks"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(misses, run["misses"].as_u64().unwrap());
    }
    // What a switch costs, 160 switches and more per second cannot pay at 100 %.
    let costs = json("--scheduler edf --for 5s --switch 10us --timer 2us");
    assert_eq!(of(&costs, "edf", "iterations_to_first_miss"), [29, 14, 7, 7]);
    assert_eq!(costs["settings"]["costs"]["switch_ns"], 10_000);
}

/// The overload: nobody misses before it; EDF's backlog makes it miss nearly all in it, and multiburst misses the fewest but for priorities.
#[test]
fn extended() {
    let all = json("--extended");
    let misses = |scheduler| of(&all, scheduler, "misses");
    assert_eq!(misses("edf"), EDF_MISSES);
    assert_eq!(misses("multiburst"), MULTIBURST_MISSES);
    for other in ["edf", "round-robin", "i-plus-pi"] {
        let fewest = misses("multiburst").into_iter().zip(misses(other)).all(|(mine, theirs)| mine <= theirs);
        assert!(fewest, "{other}: {:?}", misses(other));
    }
    for run in all["runs"].as_array().unwrap() {
        let stages = run["steps"].as_array().unwrap();
        assert_eq!((stages.len(), &stages[0]["misses"]), (3, &Value::from(0)), "{run}");
        let ns: Vec<_> = stages.iter().map(|stage| stage["ns"].as_u64().unwrap() / 1_000_000_000).collect();
        assert_eq!(ns, [30, 15, 75]);
        assert!(run["iterations_to_first_miss"].is_null());
    }
}
const EDF_MISSES: [u64; 4] = [6196, 3183, 1213, 2473];
const MULTIBURST_MISSES: [u64; 4] = [1925, 283, 109, 878];

#[test]
fn the_same_every_time() {
    for more in ["--for 1s --steps --switch 3us", "--extended --experiment 4 --steps"] {
        let first = done(&format!("hartstone {more}"));
        assert_eq!(first, done(&format!("hartstone {more}")));
    }
}

/// What it has played anybody can play; the numbers are the same.
#[test]
fn plans_can_be_played() {
    let folder = Folder::new("plans");
    let all = json(&format!("--experiment 3 --for 2s --plans {}", folder.at("")));
    let extended =
        json(&format!("--experiment 2 --extended --scheduler edf,multiburst --plans {}", folder.at("")));
    for (runs, name, time) in [(&all, "experiment-3-step-0", "2s"), (&extended, "extended-2", "120s")] {
        for run in runs["runs"].as_array().unwrap() {
            let path = folder.at(&format!("{name}-{}.toml", run["scheduler"].as_str().unwrap()));
            let played: Value =
                serde_json::from_str(&done(&format!("sim {path} --for {time} --json --check"))).unwrap();
            let steps = run["steps"].as_array().unwrap();
            let steps = if time == "2s" { &steps[..1] } else { &steps[..] };
            let sum = |what: &str| steps.iter().map(|step| step[what].as_u64().unwrap()).sum::<u64>();
            let tasks = played["tasks"].as_array().unwrap();
            assert_eq!(
                tasks.iter().map(|task| task["misses"].as_u64().unwrap()).sum::<u64>(),
                sum("misses"),
                "{path}"
            );
            assert_eq!(played["cpus"][0]["switches"].as_u64(), Some(sum("switches")), "{path}");
        }
    }
}

/// What a board prints comes out as what was simulated does.
#[test]
fn results_of_a_board() {
    let folder = Folder::new("results");
    let all = json("--experiment 4 --scheduler edf,priority --for 1s");
    let mut lines = "a board begins\n{\"other\": 1}\n".to_string();
    for run in all["runs"].as_array().unwrap() {
        for step in run["steps"].as_array().unwrap().iter().rev() {
            let mut line = step.clone();
            line["experiment"] = run["experiment"].clone();
            line["scheduler"] = run["scheduler"].clone();
            lines += &format!("{line}\n");
        }
    }
    std::fs::write(folder.at("board"), &lines).unwrap();
    let shown = json(&format!("--results {} --plot {}", folder.at("board"), folder.at("figures")));
    for scheduler in ["edf", "priority"] {
        for what in ["iterations_to_first_miss", "misses"] {
            assert_eq!(of(&shown, scheduler, what), of(&all, scheduler, what));
        }
    }
    assert!(of(&shown, "round-robin", "misses").is_empty());
    let png = std::fs::read(folder.at("figures/hartstone-test-4.png")).unwrap();
    assert!(
        png.starts_with(b"\x89PNG") && !PathBuf::from(folder.at("figures/hartstone-test-1.png")).exists()
    );
    json(&format!("--results {} --plot {} --format svg", folder.at("board"), folder.at("figures")));
    let svg = std::fs::read_to_string(folder.at("figures/hartstone-test-4.svg")).unwrap();
    assert!(svg.contains("<svg") && svg.contains("</svg>"), "{svg}");
    for (line, rule) in [
        ("{\"experiment\": 5, \"step\": 0}", "result_must_be_a_step"),
        ("{\"experiment\": 1, \"step\": 0, \"scheduler\": \"fifo\"}", "no such `scheduler`"),
        ("{\"experiment\": 1, \"step\": 41, \"scheduler\": \"edf\"}", "step 41, bound 40"),
        (
            "{\"experiment\": 1, \"step\": 1, \"scheduler\": \"edf\", \"ns\": 1, \"misses\": 0}",
            "`switches` is missing",
        ),
        ("nothing", "results_have_a_step"),
    ] {
        std::fs::write(folder.at("bad"), line).unwrap();
        let output = tierce(&format!("hartstone --results {}", folder.at("bad")));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(text(&output.stderr).contains(rule), "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn refusals() {
    for (arguments, part) in [
        ("--experiment 5", "possible values: 1, 2, 3, 4, all"),
        ("--scheduler fifo", "possible values: round-robin, priority, edf, i-plus-pi, multiburst, all"),
        ("--for 0s", "longer than 0"),
        ("--for 1s --extended", "cannot be used with"),
        ("--steps --json", "cannot be used with"),
        ("--importance 1,2,3", "five numbers from 1 to 10000"),
        ("--importance 0,1,1,1,1", "five numbers from 1 to 10000"),
        ("--wake soon", "one or five of immediate, after-burst, end-of-round"),
        ("--wake immediate,immediate", "one or five of"),
        ("--inner-gain 1e9", "a decimal number"),
        ("--inner-gain 2 --scheduler i-plus-pi", "`inner_gain` of node `cpu0` is out of range: 2"),
        ("--outer-gain 4.1 --scheduler i-plus-pi", "loops_must_be_stable"),
        ("--quantum 1ns --scheduler round-robin", "settings_make_a_plan"),
        ("--burst 1us --scheduler multiburst", "settings_make_a_plan"),
        ("--results /nowhere", "cannot read"),
        ("--results x --plans y", "cannot be used with"),
        ("--switch 1", "needs a unit"),
    ] {
        let output = tierce(&format!("hartstone {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        let said = text(&output.stderr);
        assert!(said.contains(part), "{arguments}: {said}");
    }
}
