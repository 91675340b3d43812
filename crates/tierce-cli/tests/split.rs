//! `tierce gen` and `tierce split` as a user calls them, and their plans in the simulator.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tierce-split-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }

    fn with(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.at(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Arguments at blanks, then paths.
fn tierce(arguments: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
    command.args(arguments.split_whitespace()).args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

const COSTS: &str = "--switch 1us --timer 300ns --migration 2us --level 100ns --interrupts 1us/1ms,20us/30ms";

/// Whatever is assigned meets its deadlines, with what the machine takes, whatever it takes within that; and check proves it where
/// nothing is taken.
#[test]
fn random_plans_miss_nothing() {
    let folder = Folder::new("random");
    let (set, plan) = (folder.at("set"), folder.at("plan.toml"));
    let (mut jobs, mut split, mut plans) = (0, 0, 0);
    println!("seeds 1 to 36");
    for seed in 1..=36 {
        let form = ["csv", "retas --factor 1.3"][seed % 2];
        let cpus = [2, 4, 6][seed % 3];
        let shares = ["0.1..1", "0.05..0.3"][seed / 2 % 2];
        let drawn = format!(
            "gen --method paper --cpus {cpus} --utilisation 0.8..0.86 --shares {shares} --periods 5ms..50ms --offset 1ms \
             --seed {seed} --format {form} -o"
        );
        done(&tierce(&drawn, &[&set]));
        for (at, algorithm) in ["s-ekg", "nps-f", "c-nps-f --cluster 2"].iter().enumerate() {
            let more = ["", COSTS, "--rest others --release-jitter 10us"][(seed + at) % 3];
            let asked = format!("split --algorithm {algorithm} --cpus {cpus} --delta 6 {more} --json -o");
            let output = tierce(&asked, &[&plan, &set]);
            if output.status.code() == Some(1) {
                continue; // clusters have a lower bound
            }
            done(&output);
            split += json(&output)["split"].as_u64().unwrap();
            // Costs of several CPUs no test of check knows.
            if more != COSTS {
                let run = if more.is_empty() { "" } else { "--run" };
                let short = tierce(&format!("check --short {run}"), &[&plan]);
                assert_eq!(short.status.code(), Some(0), "seed {seed}, {asked}: {}", text(&short.stdout));
            }
            let played = done(&tierce(&format!("sim --for 500ms --check --json --seed {seed}"), &[&plan]));
            let played: serde_json::Value = serde_json::from_str(&played).unwrap();
            for task in played["tasks"].as_array().unwrap() {
                jobs += task["jobs"].as_u64().unwrap();
                assert_eq!(task["misses"].as_u64(), Some(0), "seed {seed}, {asked}: {task}");
            }
            plans += 1;
        }
    }
    println!("{plans} plans, {jobs} jobs, {split} servers on two CPUs");
    assert!(plans >= 80 && jobs > 15_000 && split > 100, "{plans} {jobs} {split}");
}

/// What the payment is worth: the same costs, not paid for, make jobs late.
#[test]
fn unpaid_costs_are_missed() {
    let folder = Folder::new("unpaid");
    let (set, plan) = (folder.at("set.csv"), folder.at("plan.toml"));
    let costs = "costs = { switch = \"5us\", timer = \"1us\", migration = \"7us\", level = \"500ns\" }";
    let mut late = 0;
    for seed in 1..=8 {
        let drawn =
            "gen --method paper --cpus 4 --utilisation 0.86..0.88 --shares 0.05..0.4 --periods 5ms..50ms";
        done(&tierce(&format!("{drawn} --seed {seed} -o"), &[&set]));
        done(&tierce("split --algorithm nps-f --cpus 4 -o", &[&plan, &set]));
        let written = std::fs::read_to_string(&plan).unwrap();
        std::fs::write(&plan, written.replacen("cpus = 4\n", &format!("cpus = 4\n{costs}\n"), 1)).unwrap();
        late += u32::from(!done(&tierce("sim --for 1s", &[&plan])).contains("no deadline missed"));
    }
    assert!(late > 0);
}

const SET: &str = "name,work,period\na,6ms,10ms\nb,6ms,10ms\nc,6ms,11ms\n";

/// The whole of a small plan; and that a live run has what it wants.
#[test]
fn a_plan() {
    let folder = Folder::new("plan");
    let (set, plan) = (folder.with("set.csv", SET), folder.at("plan.toml"));
    let shown = done(&tierce("split --algorithm s-ekg --cpus 2 --delta 8 --rest others -o", &[&plan, &set]));
    assert!(shown.contains("Slots of 1.25ms, 1 server on two CPUs."), "{shown}");
    let written = std::fs::read_to_string(&plan).unwrap();
    for part in [
        "[node.cpu1]\npolicy = \"slots\"\ncpu = 1\nslot = \"1.25ms\"\n",
        "[node.local0]\npolicy = \"edf\"\nunder.cpu0 = { offset = \"12.5us\", length = ",
        ", fill = 1 }\n\n[task.a] # 60 %\nunder.local0 = { deadline = \"10ms\" }\nload = { period = \"10ms\", work = \"6ms\" }\n\
         match = { comm = \"a\" }\n",
        "[task.b] # 60 %\nunder.cpu0 = { offset = ",
        "[node.others]\npolicy = \"fair\"\ndefault = true\nunder.cpu0 = { offset = \"0ns\", length = \"12.5us\", fill = 1 }\n",
    ] {
        assert!(written.contains(part), "{part}\nis not in\n{written}");
    }
    assert_eq!(done(&tierce("check --run --short", &[&plan])), "");
    // A bin on two CPUs runs on one at a time; who owns a CPU is its root.
    done(&tierce("split --algorithm nps-f --cpus 2 --delta 8 --switch 500ns -o", &[&plan, &set]));
    let written = std::fs::read_to_string(&plan).unwrap();
    let [np2, others] = ["[node.np2]\npolicy = \"edf\"\nunder.cpu0", "concurrency = 1\n"];
    assert!(written.contains(np2) && written.contains(others), "{written}");
    assert!(written.contains("costs = { switch = \"500ns\" }\n") && !written.contains("fill"), "{written}");
    let full = folder.with("full.csv", "name,work,period\na,10ms,10ms\nb,6ms,10ms\n");
    done(&tierce("split --algorithm nps-f --cpus 2 -o", &[&plan, &full]));
    let written = std::fs::read_to_string(&plan).unwrap();
    assert!(written.contains("[node.np1]\npolicy = \"edf\"\ncpu = 0\n") && !written.contains("[node.cpu0]"));
    assert!(done(&tierce("sim --for 1s", &[&plan])).contains("no deadline missed"));
}

#[test]
fn pictures() {
    let folder = Folder::new("pictures");
    let set = folder.with("set.csv", SET);
    for (name, begin) in [("p.svg", &b"<svg "[..]), ("p.PNG", b"\x89PNG"), ("p.pdf", b"%PDF-")] {
        done(&tierce("split --algorithm s-ekg --cpus 2 --delta 8 --picture", &[&folder.at(name), &set]));
        assert!(std::fs::read(folder.at(name)).unwrap().starts_with(begin));
    }
    let svg = std::fs::read_to_string(folder.at("p.svg")).unwrap();
    for words in [">local0: N = ", ">b: y = ", ">b: x = ", ">1.25ms<", ">CPU 1<"] {
        assert!(svg.contains(words), "{words}: {svg}");
    }
}

#[test]
fn what_cannot_be_assigned() {
    let folder = Folder::new("refused");
    let set = folder.with("set.csv", SET);
    let output = tierce("split --algorithm s-ekg --cpus 2 --delta 1 --json", &[&set]);
    assert_eq!(output.status.code(), Some(1));
    let value = json(&output);
    assert_eq!(value["assigned"], false);
    assert_eq!(
        (&value["refusal"]["rule"], &value["refusal"]["delta"], &value["refusal"]["cpus"]),
        (&"servers_fit_the_cpus".into(), &4.into(), &3.into())
    );
    let shown = text(&tierce("split --algorithm s-ekg --cpus 2 --delta 1", &[&set]).stdout);
    assert!(
        shown.contains("the tasks need 87.28 % of each CPU, but only up to 65.68 % always fits"),
        "{shown}"
    );
    assert!(shown.contains("with --delta 4, or with --cpus 3."), "{shown}");
    let heavy = folder.with("heavy.csv", "name,work,period\na,11ms,10ms\n");
    let output = tierce("split --algorithm nps-f --cpus 2 --json", &[&heavy]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["refusal"]["task"], "a");
    let full = folder.with("full.csv", "name,work,period\na,10ms,10ms\n");
    assert_eq!(tierce("split --algorithm nps-f --cpus 2 --rest others", &[&full]).status.code(), Some(1));
    assert_eq!(
        tierce("split --algorithm nps-f --cpus 2 --release-jitter 1us", &[&full]).status.code(),
        Some(1)
    );
}

/// Rule by rule: what is bad input, and what it says.
/// What is proved is that jobs are done within their periods.
#[test]
fn a_deadline_beyond_the_period_counts_as_the_period() {
    let folder = Folder::new("late");
    let table = folder.with("tasks.csv", "name,work,period,deadline\na,1ms,4ms,8ms\nb,1ms,5ms,3ms\n");
    for algorithm in ["s-ekg", "nps-f"] {
        let plan = folder.at("plan.toml");
        let split = format!("split --cpus 2 --algorithm {algorithm} --output");
        done(&tierce(&split, &[&plan, &table]));
        done(&tierce("check", &[&plan]));
        let plan = std::fs::read_to_string(&plan).unwrap();
        assert!(plan.contains("load = { period = \"4ms\", work"), "{plan}");
    }
}

#[test]
fn refusals() {
    let folder = Folder::new("bad");
    let set = folder.with("set.csv", SET);
    let said = |arguments: &str, file: &str| {
        let output = tierce(arguments, &[file]);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    let split = "split --algorithm s-ekg --cpus 2";
    for (arguments, file, rule) in [
        ("split --algorithm c-nps-f --cpus 4", &set, "cluster_must_be_given"),
        ("split --algorithm c-nps-f --cpus 4 --cluster 3", &set, "cluster_divides_cpus"),
        ("split --algorithm nps-f --cpus 4 --cluster 2", &set, "cluster_is_of_c_nps_f"),
        ("split --algorithm s-ekg --cpus 0", &set, "--cpus"),
        ("split --algorithm s-ekg --cpus 2 --delta 0", &set, "--delta"),
        ("split --algorithm s-ekg --cpus 2 --picture p.gif", &set, "picture_is_svg_pdf_or_png"),
        ("split --algorithm s-ekg --cpus 2 --delta 1001", &set, "slot_within_range"),
        ("split --algorithm s-ekg --cpus 2 --delta 100000000", &set, "slot_within_range"),
        ("split --algorithm s-ekg --cpus 2 --interrupts 1us", &set, "interrupt_must_have_its_times"),
        ("split --algorithm s-ekg --cpus 2 --interrupts 1us/1us", &set, "interrupts_must_leave_time"),
        ("split --algorithm s-ekg --cpus 2 --rest-time 1us", &set, "--rest"),
        ("split --algorithm s-ekg --cpus 2 --rest a", &set, "name_is_unique"),
        (split, &folder.with("1.csv", "name,work,period\na b,1ms,10ms\n"), "name_must_be_plain"),
        (split, &folder.with("2.csv", "name,work,period\ncpu1,1ms,10ms\n"), "name_is_unique"),
        (
            split,
            &folder.with("3.csv", "name,work,period\nabcdefghijklmnop,1ms,10ms\n"),
            "comm_is_at_most_15_bytes",
        ),
        (
            split,
            &folder.with("4.csv", "name,work,period,blocking\na,1ms,10ms,1us\n"),
            "tasks_are_not_blocked",
        ),
        (split, &folder.with("5.csv", "name,work,period\na,1s,10s\n"), "--delta 10"),
        (
            split,
            &folder.with("6.txt", "1,5,4,9,9,9,0,0,\n"),
            "min_exec_time is at most max_exec_time, bound 4 (\"5\")",
        ),
        (
            "gen --method paper --utilisation 0.5..0.6 --periods 1ms..9ms --tasks 3",
            &String::new(),
            "tasks_are_as_many",
        ),
        ("gen --method emberson --utilisation 0.5 --periods 1ms..9ms", &String::new(), "tasks_are_some"),
        (
            "gen --method emberson --utilisation 0.5..0.6 --periods 1ms --tasks 3",
            &String::new(),
            "sum_is_one",
        ),
        (
            "gen --method emberson --utilisation nan --periods 1ms --tasks 3",
            &String::new(),
            "number_must_be_a_number",
        ),
        (
            "gen --method emberson --utilisation 0.5 --periods 9ms..1ms --tasks 3",
            &String::new(),
            "periods_are_a_range",
        ),
        (
            "gen --method emberson --utilisation 0.5 --periods 1ms --tasks 3 --factor 0.5",
            &String::new(),
            "factor_is_at_least_1",
        ),
        (
            "gen --method randfixedsum --utilisation 4 --periods 1ms --tasks 3",
            &String::new(),
            "sum_is_in_reach",
        ),
    ] {
        let stderr = if file.is_empty() {
            let output = tierce(arguments, &[]);
            assert_eq!(output.status.code(), Some(2), "{arguments}");
            text(&output.stderr)
        } else {
            said(arguments, file)
        };
        assert!(stderr.contains(rule), "{arguments}: {stderr}");
    }
    assert!(!Path::new("p.gif").exists());
}

/// The same seed, the same text; what is written is read by the other commands.
#[test]
fn sets() {
    let folder = Folder::new("sets");
    let asked = "gen --method randfixedsum --cpus 2 --tasks 6 --utilisation 0.7 --periods 5ms..50ms --shares 0.1..0.5 --seed 5";
    let first = done(&tierce(asked, &[]));
    assert_eq!(first, done(&tierce(asked, &[])));
    assert_ne!(first, done(&tierce(&asked.replace("seed 5", "seed 6"), &[])));
    assert!(first.starts_with("# randfixedsum, seed 5: 6 tasks, 70.0"), "{first}");
    let table = folder.with("set.csv", &first);
    let retas = folder.at("set.txt");
    done(&tierce(&format!("{asked} --format retas -o"), &[&retas]));
    assert_eq!(std::fs::read_to_string(&retas).unwrap().lines().count(), 6);
    let analysed =
        |file: &str| json(&tierce("analyse --policy edf --cpus 2 --partition first --json", &[file]));
    assert_eq!(analysed(&table), analysed(&retas));
    assert_eq!(analysed(&table)["tasks"][5]["name"], "t6");
    let late = done(&tierce(&format!("{asked} --offset 1ms"), &[]));
    assert!(
        late.contains("name,work,period,offset\n") && late.lines().nth(2).unwrap().ends_with(",6ms"),
        "{late}"
    );
}

/// Parts that run one after the other, as a table and as JSON, and every refusal.
#[test]
fn parts_without_laxity() {
    let folder = Folder::new("parts");
    let set = folder.with("set.csv", "name,work,period\na,2ms,3ms\nb,2ms,3ms\nc,2ms,3ms\n");
    let shown = done(&tierce("split --algorithm c=d --cpus 2", &[&set]));
    assert!(
        shown.contains("\n  0  c                           0ns             1ms             1ms\n"),
        "{shown}"
    );
    assert!(
        shown.contains("\n  1  c                           1ms             1ms             2ms\n"),
        "{shown}"
    );
    assert!(shown.ends_with("\nAssigned: utilisation 100 % of each CPU, 1 task in parts.\n"), "{shown}");
    let value = json(&tierce("split --algorithm c=d --cpus 2 --json", &[&set]));
    assert_eq!((&value["assigned"], &value["utilisation_per_cpu"]), (&true.into(), &"1".into()));
    let last = serde_json::json!({ "task": "c", "cpu": 1, "after_ns": 1_000_000, "work_ns": 1_000_000, "deadline_ns": 2_000_000 });
    assert_eq!(value["parts"][3], last);
    let one = tierce("split --algorithm c=d --cpus 1 --json", &[&set]);
    assert_eq!((one.status.code(), &json(&one)["refusal"]["task"]), (Some(1), &"b".into()));
    assert!(text(&tierce("split --algorithm c=d --cpus 1", &[&set]).stdout)
        .starts_with("Cannot be assigned: tasks_fit_on_the_cpus: b "));
    let long = folder.with("long.csv", "name,work,period,deadline\na,2ms,3ms,4ms\n");
    for (arguments, set, rule) in [
        ("-o x.toml", &set, "c_d_is_an_analysis"),
        ("--cluster 2", &set, "c_d_is_an_analysis"),
        ("--switch 1us", &set, "c_d_has_no_costs"),
        ("--interrupts 1us/1ms", &set, "c_d_has_no_costs"),
        ("", &long, "deadlines_are_at_most_periods: a"),
    ] {
        let refused = tierce(&format!("split --algorithm c=d --cpus 2 {arguments}"), &[set]);
        assert_eq!(refused.status.code(), Some(2), "{arguments}");
        assert!(text(&refused.stderr).contains(rule), "{arguments}: {}", text(&refused.stderr));
    }
}
