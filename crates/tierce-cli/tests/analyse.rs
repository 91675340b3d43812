//! `tierce analyse` as a user calls it: verdicts, JSON, exit codes, faults.

#[path = "common/file.rs"]
mod file;

use file::{text, File};
use std::process::Command;

fn column(value: &serde_json::Value, name: &str) -> Vec<i64> {
    value["tasks"].as_array().unwrap().iter().map(|task| task[name].as_i64().unwrap_or(-1)).collect()
}

const MEDIA_PLAYER: &str =
    "name,work,period\nt1,1ms,10ms\nt2,2ms,45ms\nt3,4ms,100ms\nt4,3ms,100ms\nt5,7ms,500ms\nt6,25ms,2s\n";

#[test]
fn media_player_in_a_reservation() {
    let table = File::new("media.csv", MEDIA_PLAYER);
    for supply in ["1.5ms/6ms", "RESBS 1.5ms 6ms", "1500000 / 6000000/6ms"] {
        let value = table.json(&["--policy", "fp", "--supply", supply], 0);
        let expected = [10_000_000, 27_500_000, 64_500_000, 87_500_000, 292_500_000, 1_384_500_000];
        assert_eq!(column(&value, "wcrt_ns"), expected);
        assert_eq!((&value["schedulable"], &value["utilisation"]), (&true.into(), &"4337/18000".into()));
        assert_eq!(column(&value, "slack_ns")[..2], [0, 17_500_000]);
    }
    let output = table.analyse(&["--policy", "rm", "--supply", "1.499999ms/6ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("\nNot schedulable: rm, utilisation 24.1 %"),
        "{}",
        text(&output.stdout)
    );
    let value = table.json(&["--policy", "fp", "--supply", "1.4ms/6ms"], 1);
    assert_eq!(value["tasks"][5]["wcrt_ns"], serde_json::Value::Null);
    assert_eq!(value["tasks"][5]["slack_ns"], serde_json::Value::Null);
    assert_eq!(table.json(&["--policy", "edf", "--supply", "PSBE 1/3 2ms"], 0)["schedulable"], true);
}

#[test]
fn priorities_of_the_table() {
    let rows = "a,2,10,5\nb,2,10,7\nc,3,20,7\n";
    let table = File::new("priorities.csv", format!("name,work,period,priority\n{rows}"));
    let value = table.json(&["--policy", "fp"], 0);
    assert_eq!(column(&value, "wcrt_ns"), [7, 5, 5]); // b and c wait for each other, a for both
    assert_eq!(column(&table.json(&["--policy", "dm"], 0), "wcrt_ns"), [2, 4, 7]);
    let table = File::new("deadlines.csv", "name,work,period,deadline,jitter\na,3,20,7,\nb,2,20,8,5\n");
    assert_eq!(table.analyse(&["--policy", "dm"]).status.code(), Some(1));
    assert_eq!(column(&table.json(&["--policy", "audsley"], 0), "wcrt_ns"), [5, 7]);
    let table = File::new("hopeless.csv", "name,work,period,deadline\na,3,20,5\nb,3,20,5\n");
    assert!(text(&table.analyse(&["--policy", "audsley"]).stdout).contains("No order of fixed priorities"));
    let value = table.json(&["--policy", "edf"], 1);
    assert_eq!(
        value["remarks"][0],
        "In a window of 5ns the demand can be 6ns, more than the guaranteed supply."
    );
    assert_eq!(column(&value, "slack_ns"), [-1, -1]);
}

#[test]
fn each_task_on_one_cpu() {
    let table = File::new("parts.csv", "name,work,period\na,6,10\nb,5,10\nc,4,10\nd,3,10\ne,2,10\n");
    let value = table.json(&["--policy", "edf", "--cpus", "2", "--partition", "first"], 0);
    assert_eq!(column(&value, "cpu"), [0, 1, 0, 1, 1]);
    assert_eq!((&value["scheduling"], &value["exact"]), (&"partitioned".into(), &true.into()));
    assert_eq!(table.analyse(&["--policy", "edf"]).status.code(), Some(1));
    let arguments = ["--policy", "edf", "--cpus", "2", "--partition", "first", "--supply", "9ms/10ms"];
    let output = table.analyse(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains(" fits on none of the 2 CPUs"), "{}", text(&output.stdout));
    let arguments = |fit| ["--policy", "edf", "--cpus", "2", "--partition", fit];
    assert_eq!(column(&table.json(&arguments("best"), 0), "cpu"), [0, 1, 0, 1, 1]);
    for fit in ["worst", "next"] {
        let value = table.json(&arguments(fit), 1);
        assert_eq!((&value["tasks"], &value["schedulable"]), (&serde_json::json!([]), &false.into()));
    }
}

/// ExSched's Tables 2 and 3: categorised by period, S0 to S7 on one core and the others on the other, in jiffies.
#[test]
fn servers_by_period() {
    let periods = [6, 7, 8, 9, 10, 11, 14, 18];
    let short = periods.iter().enumerate().map(|(server, period)| format!("s{server},1,{period}\n"));
    let rows: String = short.chain((8..16).map(|server| format!("s{server},15,125\n"))).collect();
    let table = File::new("exsched.csv", format!("name,work,period\n{rows}"));
    let value = table.json(&["--policy", "rm", "--cpus", "2", "--partition", "period"], 0);
    assert_eq!(column(&value, "cpu"), [[0; 8], [1; 8]].concat());
    assert_eq!(column(&value, "wcrt_ns"), [1, 2, 3, 4, 5, 6, 14, 18, 15, 30, 45, 60, 75, 90, 105, 120]);
    let said = text(&table.analyse(&["--policy", "rm", "--cpus", "2", "--partition", "period"]).stdout);
    assert!(said.contains("\ns7      0            18ns            18ns             0ns\n"), "{said}");
}

#[test]
fn any_cpu_for_any_task() {
    let table = File::new("global.csv", "name,work,period\nheavy,9,10\na,1,10\nb,1,10\nc,1,10\n");
    let value = table.json(&["--policy", "edf", "--cpus", "2"], 0);
    assert_eq!(column(&value, "wcrt_ns"), [10, 3, 3, 3]);
    assert_eq!(column(&value, "slack_ns"), [0, 7, 7, 7]);
    assert_eq!((&value["scheduling"], &value["exact"]), (&"global".into(), &false.into()));
    assert_eq!(value["tasks"][0]["shown_by"], serde_json::json!(["baruah", "bcl", "rta"]));
    let table = File::new("dhall.csv", "name,work,period,deadline\na,1,10,\nb,1,10,\nlong,11,11,\n");
    let output = table.analyse(&["--policy", "edf", "--cpus", "2"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("No test proves the deadlines of these tasks: long. "), "{said}");
    let value = table.json(&["--policy", "fp", "--cpus", "2"], 1);
    assert_eq!(column(&value, "wcrt_ns"), [1, 1, -1]);
    for policy in ["dkc", "audsley"] {
        let value = table.json(&["--policy", policy, "--cpus", "2"], 0);
        assert_eq!(column(&value, "wcrt_ns"), [1, 2, 11], "{policy}");
        assert_eq!(value["tasks"][2]["shown_by"], serde_json::json!(["rta", "rta-lc"]));
    }
    assert!(text(&table.analyse(&["--policy", "rm"]).stdout).contains("unbounded"));
    let table = File::new("priority.csv", "name,work,period,priority\na,1,10,1\nb,1,10,1\nlong,11,11,2\n");
    assert_eq!(column(&table.json(&["--policy", "fp", "--cpus", "2"], 0), "wcrt_ns"), [3, 3, 11]);
    let table = File::new("full.csv", "name,work,period\na,9,10\nb,9,10\nc,9,10\n");
    let said = text(&table.analyse(&["--policy", "audsley", "--cpus", "2"]).stdout);
    assert!(said.contains("The demand is larger than the supply") && said.contains("No order"), "{said}");
}

/// Where deadlines are not shown to be met, by how much they may be missed, for deadlines of any length.
#[test]
fn late_by_at_most() {
    let table = File::new("late.csv", "name,work,period\na,2ms,3ms\nb,2ms,3ms\nc,2ms,3ms\n");
    let value = table.json(&["--policy", "edf", "--cpus", "2"], 1);
    assert_eq!(column(&value, "tardiness_ns"), [2_000_000; 3]);
    let said = text(&table.analyse(&["--policy", "edf", "--cpus", "2"]).stdout);
    assert!(said.contains("late up to  shown by") && said.contains("             2ms\n"), "{said}");
    let table = File::new("in-time.csv", "name,work,period\na,1,10\nb,1,10\n");
    assert_eq!(column(&table.json(&["--policy", "edf", "--cpus", "2"], 0), "tardiness_ns"), [0, 0]);
    assert_eq!(table.json(&["--policy", "fp", "--cpus", "2"], 0)["tasks"][0].get("tardiness_ns"), None);
    let table = File::new("too-much.csv", "name,work,period\na,4,3\nb,1,10\n");
    let value = table.json(&["--policy", "edf", "--cpus", "2"], 1);
    assert!(value["tasks"][1]["tardiness_ns"].is_null(), "{value}");
    assert!(text(&table.analyse(&["--policy", "edf", "--cpus", "2"]).stdout).contains("no bound"));
    let table = File::new("beyond.csv", "name,work,period,deadline\na,2,3,4\nb,2,3,3\nc,2,3,9\n");
    let value = table.json(&["--policy", "edf", "--cpus", "2"], 1);
    assert!(column(&value, "tardiness_ns").iter().all(|late| *late >= 0), "{value}");
    assert!(
        value["remarks"][0].as_str().unwrap().ends_with("but how late jobs can be is bounded."),
        "{value}"
    );
    let table = File::new("beyond-full.csv", "name,work,period,deadline\na,3,3,4\nb,3,3,3\nc,1,3,9\n");
    let value = table.json(&["--policy", "edf", "--cpus", "2"], 1);
    assert!(value["remarks"][0].as_str().unwrap().contains("there is no bound"), "{value}");
}

#[test]
fn several_cpus_together() {
    let table = File::new("together.csv", "name,work,period\na,2ms,20ms\nb,3ms,20ms\nc,4ms,40ms\n");
    let value = table.json(&["--policy", "edf", "--supply", "6ms/5ms@2"], 0);
    assert_eq!((&value["cpus"], &value["supply"]), (&2.into(), &"6ms/5ms@2".into()));
    assert_eq!(column(&value, "wcrt_ns"), [20_000_000, 20_000_000, 40_000_000]);
    assert_eq!(value["tasks"][1]["shown_by"], serde_json::json!(["mpr"]));
    assert_eq!(table.json(&["--policy", "edf", "--supply", "6ms/5ms@2", "--cpus", "2"], 0), value);
    let output = table.analyse(&["--policy", "edf", "--supply", "2ms/5ms@2"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(
        said.contains("No test proves the deadlines of these tasks: ")
            && said.contains("supplied with 2ms/5ms@2 of 2 CPUs."),
        "{said}"
    );
    let said = text(&table.analyse(&["--policy", "edf", "--supply", "1ms/5ms@2"]).stdout);
    assert!(said.contains("The demand is larger than the supply"), "{said}");
    // On one CPU that is the periodic resource, for any policy.
    let value = table.json(&["--policy", "fp", "--supply", "4ms/5ms@1"], 0);
    assert_eq!(
        column(&value, "wcrt_ns"),
        column(&table.json(&["--policy", "fp", "--supply", "4ms/5ms"], 0), "wcrt_ns")
    );
}

/// What --sensitivity says holds when it is written into the table, and one ns further does not.
#[test]
fn sensitivity() {
    let table = File::new("sensitivity.csv", MEDIA_PLAYER);
    let value = table.json(&["--policy", "rm", "--supply", "1.5ms/6ms", "--sensitivity"], 0);
    assert_eq!(
        column(&value, "work_max_ns"),
        [1_000_000, 2_333_333, 4_750_000, 3_750_000, 10_750_000, 40_000_000]
    );
    assert_eq!(column(&value, "period_min_ns")[..2], [10_000_000, 38_269_231]);
    assert_eq!(column(&value, "deadline_min_ns"), column(&value, "wcrt_ns"));
    assert_eq!(
        (&value["work_scale_ppb"], &value["budget_min_ns"]),
        (&1_000_000_000.into(), &1_500_000.into())
    );
    for (work, code) in [(2_333_333, 0), (2_333_334, 1)] {
        let changed = File::new("changed.csv", MEDIA_PLAYER.replace("t2,2ms", &format!("t2,{work}")));
        let output = changed.analyse(&["--policy", "rm", "--supply", "1.5ms/6ms"]);
        assert_eq!(output.status.code(), Some(code), "{work}");
    }
    let said = text(&table.analyse(&["--policy", "edf", "--supply", "2ms/6ms", "--sensitivity"]).stdout);
    assert!(
        said.contains(
            "All works together can grow by a factor of 1.380457000.\nThe budget can shrink to 1.5ms.\n"
        ),
        "{said}"
    );
    let said = text(&table.analyse(&["--policy", "fp", "--supply", "1.4ms/6ms", "--sensitivity"]).stdout);
    let up_to = |name| said.lines().rfind(|line| line.starts_with(name)).unwrap().split_whitespace().nth(2);
    assert_eq!((up_to("t1 "), up_to("t6 ")), (Some("800us"), Some("-")), "{said}");
    // Tasks stay where they are, and each CPU has its own limits.
    let table = File::new("two.csv", "name,work,period\na,6,10\nb,5,10\nc,3,10\n");
    let value =
        table.json(&["--policy", "audsley", "--cpus", "2", "--partition", "first", "--sensitivity"], 0);
    assert_eq!((column(&value, "cpu"), column(&value, "work_max_ns")), (vec![0, 1, 0], vec![7, 10, 4]));
    assert_eq!(
        (&value["work_scale_ppb"], &value["budget_min_ns"]),
        (&1_000_000_000.into(), &serde_json::Value::Null)
    );
    let value = table.json(&["--policy", "edf", "--cpus", "2", "--partition", "next", "--sensitivity"], 0);
    assert_eq!(column(&value, "period_min_ns"), [6, 8, 6]);
}

/// The messages of Davis et al. 2007, without preemption and in other ways.
#[test]
fn jobs_without_preemption() {
    let rows = "a,1ms,2.5ms,\nb,1ms,3.5ms,3.25ms\nc,1ms,3.5ms,3.25ms\n";
    let table = File::new("can.csv", format!("name,work,period,deadline\n{rows}"));
    let value = table.json(&["--policy", "fp", "--preemption", "none"], 1);
    assert_eq!(
        (column(&value, "wcrt_ns"), &value["exact"]),
        (vec![1_999_999, 2_999_999, 3_500_000], &true.into())
    );
    let value = table.json(&["--policy", "edf", "--preemption", "none"], 0);
    assert_eq!(
        (column(&value, "wcrt_ns"), &value["exact"]),
        (vec![2_250_000, 3_000_000, 3_000_000], &true.into())
    );
    let value = table.json(&["--policy", "fifo"], 1);
    assert_eq!((column(&value, "wcrt_ns"), &value["exact"]), (vec![3_000_000; 3], &true.into()));
    assert_eq!(table.json(&["--policy", "fifo", "--preemption", "none"], 1)["tasks"], value["tasks"]);
    let value = table.json(&["--policy", "audsley", "--preemption", "none"], 1);
    assert!(value["remarks"][0].as_str().unwrap().starts_with("No order of fixed priorities"));
    // Two in 5 due within 4, and four in 7: preempted nowhere or anywhere one of them is late, but not if it may be before the last 3.
    let table =
        File::new("limited.csv", "name,work,period,deadline,section,last_section\na,2,5,4,,\nb,4,7,,3,3\n");
    for (how, code, responses) in
        [("full", 1, [2, 8]), ("none", 1, [5, 6]), ("limited", 0, [4, 6]), ("floating", 1, [4, 8])]
    {
        let value = table.json(&["--policy", "fp", "--preemption", how], code);
        assert_eq!((column(&value, "wcrt_ns"), &value["exact"]), (responses.to_vec(), &true.into()), "{how}");
    }
    assert_eq!(column(&table.json(&["--policy", "fp"], 0), "wcrt_ns"), [4, 6]);
    assert_eq!(table.json(&["--policy", "edf"], 0)["exact"], false);
    let arguments = ["--policy", "fp", "--cpus", "2", "--partition", "worst", "--preemption", "none"];
    assert_eq!(column(&table.json(&arguments, 0), "wcrt_ns"), [2, 4]);
}

#[test]
fn thresholds_are_given_or_chosen() {
    let rows = "name,work,period,deadline,priority,threshold\na,20ms,70ms,50ms,3,3\nb,20ms,80ms,,2,3\nc,35ms,200ms,100ms,1,2\n";
    let given = File::new("thresholds.csv", rows);
    let value = given.json(&["--policy", "fp"], 0);
    assert_eq!(column(&value, "wcrt_ns"), [39_999_999, 74_999_999, 95_000_000]);
    let of = |value: &serde_json::Value| -> Vec<String> {
        let tasks = value["tasks"].as_array().unwrap();
        tasks.iter().map(|task| task["threshold_of"].as_str().unwrap().into()).collect()
    };
    assert_eq!((of(&value), &value["exact"]), (["a", "a", "b"].map(String::from).to_vec(), &true.into()));
    let said = text(&given.analyse(&["--policy", "fp"]).stdout);
    assert!(said.contains("threshold of\n") && said.contains("5ms  b\n"), "{said}");
    assert_eq!(
        column(&given.json(&["--policy", "fp", "--preemption", "full"], 1), "wcrt_ns")[2],
        115_000_000
    );
    assert_eq!(column(&given.json(&["--policy", "fp", "--preemption", "none"], 1), "wcrt_ns")[0], 54_999_999);
    let free = File::new(
        "free-thresholds.csv",
        "name,work,period,deadline\na,20ms,70ms,50ms\nb,20ms,80ms,\nc,35ms,200ms,100ms\n",
    );
    for policy in ["fp", "dm", "rm"] {
        let value = free.json(&["--policy", policy, "--preemption", "thresholds"], 0);
        assert_eq!(column(&value, "wcrt_ns"), [39_999_999, 74_999_999, 95_000_000]);
        assert_eq!((of(&value), &value["exact"]), (["a", "a", "b"].map(String::from).to_vec(), &true.into()));
    }
    let never = File::new("no-thresholds.csv", "name,work,period\na,3,5\nb,3,6\n");
    let value = never.json(&["--policy", "dm", "--preemption", "thresholds"], 1);
    assert!(value["remarks"][0].as_str().unwrap().starts_with("No thresholds meet"), "{value}");
    let value = free.json(&["--policy", "dm", "--preemption", "thresholds", "--offsets", "known"], 0);
    assert!(value["remarks"].to_string().contains("no effect: with thresholds"), "{value}");
    let parted = ["--policy", "dm", "--preemption", "thresholds", "--cpus", "2", "--partition", "worst"];
    assert_eq!(of(&free.json(&parted, 0)).len(), 3);
}

#[test]
fn phases_that_are_known() {
    let table = File::new("known.csv", "name,work,period,deadline,offset,jitter\na,2,4,2,0,\nb,2,4,2,2,\n");
    for policy in ["fp", "rm", "audsley", "edf", "fifo"] {
        let value = table.json(&["--policy", policy, "--offsets", "known"], 0);
        assert_eq!((column(&value, "wcrt_ns"), &value["exact"]), (vec![2, 2], &true.into()));
        table.json(&["--policy", policy], 1);
    }
    for (arguments, why) in [
        (&["--supply", "9ms/9.1ms"][..], "when the supply comes is not known"),
        (&["--preemption", "none"], "a has a region without preemption"),
    ] {
        let value = table.json(&[&["--policy", "edf", "--offsets", "known"], arguments].concat(), 1);
        assert_eq!(value["exact"], false);
        assert!(value["remarks"].to_string().contains(&format!("no effect: {why}")), "{value}");
    }
    let late = File::new("late-job.csv", "name,work,period,offset,jitter\na,1,4,0,\nb,1,4,2,1\n");
    let value = late.json(&["--policy", "edf", "--offsets", "known"], 0);
    assert_eq!((column(&value, "wcrt_ns"), &value["exact"]), (vec![2, 2], &false.into()));
    let apart = File::new("apart.csv", "name,work,period\na,1,1000000007\nb,1,998244353\n");
    let said = text(&apart.analyse(&["--policy", "fp", "--offsets", "known"]).stdout);
    assert!(said.contains("too many jobs come until the schedule repeats itself"), "{said}");
}

/// The tasks of examples/bursts.toml, in their reservation and not, and what does not go with lists.
#[test]
fn works_in_turn_and_bursts() {
    let table = File::new(
        "bursts.csv",
        "name,work,period,deadline,priority\nalarms,1.5ms,1ms 2ms 50ms,5ms,3\nvideo,7ms 1ms 2ms 1ms,15ms,,2\ncontrol,14ms,50ms,35ms,1\n",
    );
    let value = table.json(&["--policy", "fp", "--supply", "4.5ms/5ms"], 0);
    assert_eq!(column(&value, "wcrt_ns"), [3_500_000, 13_500_000, 30_000_000]);
    assert_eq!((&value["utilisation"], &value["exact"]), (&"83/150".into(), &false.into()));
    let value = table.json(&["--policy", "edf"], 0);
    assert_eq!(value["schedulable"], true);
    let late = File::new("bursts-late.csv", "name,work,period,deadline\na,2 1,2 9,1\nb,3,9,\n");
    let value = late.json(&["--policy", "edf"], 1);
    assert!(value["remarks"][0].as_str().unwrap().starts_with("In a window of "), "{value}");
    let keeps = File::new("bursts-keep.csv", "name,work,period,section\na,2 1,9,\nb,3,9,2\n");
    for (table, arguments, rule) in [
        (&table, &["--policy", "fifo"][..], "lists_are_for_fp_and_edf: alarms "),
        (&table, &["--policy", "audsley"], "lists_are_for_fp_and_edf: alarms "),
        (&table, &["--policy", "edf", "--cpus", "2"], "lists_are_for_one_cpu: alarms "),
        (&table, &["--policy", "fp", "--offsets", "known"], "lists_need_full_preemption: alarms "),
        (&keeps, &["--policy", "edf"], "lists_need_full_preemption: a "),
    ] {
        let output = table.analyse(arguments);
        assert_eq!(output.status.code(), Some(2), "{rule}");
        assert!(text(&output.stderr).contains(rule), "{}", text(&output.stderr));
    }
}

#[test]
fn jobs_that_suspend_themselves() {
    let table = File::new("suspension.csv", "name,work,period,suspension\na,1,4,2\nb,2,8,\n");
    for policy in ["fp", "audsley", "edf"] {
        let value = table.json(&["--policy", policy], 0);
        assert_eq!((column(&value, "wcrt_ns"), &value["exact"]), (vec![3, 4], &false.into()), "{policy}");
        assert!(value["remarks"][0].as_str().unwrap().starts_with("With suspension the results are bounds"));
    }
    // On any of two CPUs, too; as work the set needs 2.0 of them.
    let several = File::new("suspension-2.csv", "name,work,period,suspension\na,2,10,6\nb,2,10,6\nc,4,10,\n");
    for (policy, expected) in [("edf", [10, 10, 6]), ("dm", [8, 8, 8])] {
        let value = several.json(&["--policy", policy, "--cpus", "2"], 0);
        assert_eq!(column(&value, "wcrt_ns"), expected, "{policy}");
        assert!(value["tasks"][0]["shown_by"].as_array().unwrap().contains(&"rta".into()), "{value}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["design", "server", "--policy", "rm"])
        .arg(&table.0)
        .output()
        .unwrap();
    assert!(text(&output.stderr).contains("jobs_are_preempted_anywhere: a has"), "{}", text(&output.stderr));
}

/// Every refusal, with exit code 2 and its words.
#[test]
fn bad_input_is_2() {
    let table = File::new("good.csv", MEDIA_PLAYER);
    let bad = File::new("bad.csv", "name,work,period,deadline\na,0ms,2ms,\nb,1,2x,1\n");
    let partly = File::new("partly.csv", "name,work,period,priority\na,1,2,1\nb,1,2,\n");
    let long = File::new("long.csv", "name,work,period,deadline,blocking\nshort,1,2,,\nlong,1,2,3,\n");
    let blocked = File::new("blocked.csv", "name,work,period,blocking\na,1,2,1\nb,1,2,\n");
    let both = File::new("both.csv", "name,work,period,deadline,blocking\nb,1,2,3,1\n");
    let bytes = File::new("bytes.csv", b"name,work,period\na,1ms,\xff2ms\n");
    let torn = File::new("torn.csv", "name,work,period\n\"a,1ms,2ms\n");
    for (table, arguments, expected) in [
        (&bytes, &["--policy", "edf"][..], ".csv:2:7: table_must_be_utf_8: this byte is not UTF-8"),
        (&torn, &["--policy", "edf"], ".csv:2:1: quotes_must_end_the_cell"),
        (&long, &["--policy", "dkc", "--cpus", "2"], "deadlines_are_at_most_periods: long "),
        (&long, &["--policy", "edf", "--supply", "6ms/5ms@2"], "deadlines_are_at_most_periods: long "),
        (&long, &["--policy", "audsley", "--cpus", "2"], "deadlines_are_at_most_periods: long "),
        (&blocked, &["--policy", "fp", "--cpus", "2"], "tasks_are_not_blocked: a "),
        (&both, &["--policy", "edf", "--cpus", "2"], "deadlines_are_at_most_periods: b "),
        (&table, &["--policy", "edf", "--cpus", "2", "--supply", "1ms/2ms"], "supply_is_of_one_cpu"),
        (&table, &["--policy", "edf", "--cpus", "2", "--partition", "tight"], "invalid value 'tight'"),
        (&table, &["--policy", "fp", "--cpus", "2", "--sensitivity"], "sensitivity_needs_an_exact_test"),
        (&table, &["--policy", "fp", "--supply", "6ms/5ms@2"], "supply_is_for_edf"),
        (
            &table,
            &["--policy", "edf", "--supply", "6ms/5ms@2", "--cpus", "3"],
            "cpus_are_those_of_the_supply",
        ),
        (
            &table,
            &["--policy", "edf", "--supply", "6ms/5ms@2", "--partition", "best"],
            "supply_is_of_several_cpus",
        ),
        (&table, &["--policy", "edf", "--supply", "11ms/5ms@2"], "supply_must_fit"),
        (&table, &["--policy", "edf", "--supply", "6ms/5ms/4ms@2"], "supply_must_have_its_numbers"),
        (&table, &["--policy", "edf", "--supply", "6ms/5ms@0"], "supply_must_have_its_cpus"),
        (&table, &["--policy", "edf", "--supply", "6ms/5ms@two"], "supply_must_have_its_cpus"),
        (&bad, &["--policy", "edf"], "2 faults in the table"),
        (&bad, &["--policy", "edf"], ".csv:2:3: time_must_be_positive"),
        (&bad, &["--policy", "edf"], ".csv:3:5: unit_must_exist"),
        (&partly, &["--policy", "fp"], "priorities_are_complete"),
        (&table, &["--policy", "edf", "--supply", "7ms/6ms"], "supply_must_fit"),
        (&table, &["--policy", "edf", "--supply", "7ms"], "supply_must_have_its_numbers"),
        (&table, &["--policy", "edf", "--supply", "1.5ns/6ms"], "time_not_finer_than_1ns"),
        (&table, &["--policy", "edf", "--supply", "-1ms/6ms"], ": -1ms, bound above 0"),
        (&table, &["--policy", "edf", "--supply", "1h/6ms"], ": 1h, bound a number and ns, us, ms, s or min"),
        (&table, &["--policy", "edf", "--cpus", "-3"], "-3 is not in 1..=1024"),
        (&table, &["--policy", "edf", "--supply", "PS 1/2"], "supply_must_be_bounded"),
        (&table, &["--policy", "edf", "--supply", "RESBS 3ms 2ms"], "amount_must_not_exceed_period"),
        (&table, &["--policy", "lifo"], "invalid value 'lifo'"),
        (&table, &["--policy", "edf", "--cpus", "0"], "0 is not in 1..=1024"),
    ] {
        let output = table.analyse(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// The same where columns, policies and options do not go together.
#[test]
fn what_does_not_go_together_is_2() {
    let table = File::new("plain.csv", MEDIA_PLAYER);
    let blocked = File::new("may-be-blocked.csv", "name,work,period,blocking\na,1,2,1\nb,1,2,\n");
    let suspended = File::new("suspended.csv", "name,work,period,suspension,section\na,1,4,2,\nb,2,8,,2\n");
    let limits = File::new("limits.csv", "name,work,period,priority,threshold\na,1,4,2,\nb,2,8,1,2\n");
    let regions =
        File::new("regions.csv", "name,work,period,priority,threshold,section\na,1,4,2,,\nb,2,8,1,2,2\n");
    let late =
        File::new("late.csv", "name,work,period,priority,threshold,suspension\na,1,4,2,,1\nb,2,8,1,2,\n");
    let waiting = File::new("waiting.csv", "name,work,period,suspension,blocking\na,1,4,2,\nb,2,8,,2\n");
    for (table, arguments, expected) in [
        (&table, &["--policy", "fifo", "--cpus", "2"][..], "order_of_arrival_is_for_one_cpu"),
        (&blocked, &["--policy", "fifo"], "fifo_has_no_blocking: a "),
        (&table, &["--policy", "edf", "--cpus", "2", "--offsets", "known"], "offsets_are_for_one_cpu"),
        (
            &table,
            &["--policy", "edf", "--cpus", "2", "--preemption", "none"],
            "jobs_are_preempted_anywhere: t1 ",
        ),
        (&suspended, &["--policy", "edf", "--cpus", "2"], "jobs_are_preempted_anywhere: b "),
        (
            &suspended,
            &["--policy", "pd2", "--cpus", "2", "--quantum", "1", "--preemption", "full"],
            "jobs_are_preempted_anywhere: a ",
        ),
        (&suspended, &["--policy", "fifo"], "suspension_is_not_for_fifo: a "),
        (&table, &["--policy", "edf", "--preemption", "thresholds"], "thresholds_need_priorities: "),
        (&limits, &["--policy", "dm"], "thresholds_need_priorities: the column"),
        (&limits, &["--policy", "fp", "--cpus", "2"], "jobs_are_preempted_anywhere: the global tests"),
        (&limits, &["--policy", "fp", "--sensitivity"], "sensitivity_needs_plain_tasks: "),
        (&regions, &["--policy", "fp"], "thresholds_and_regions_are_apart: b "),
        (
            &late,
            &["--policy", "fp"],
            "suspension_needs_full_preemption: a suspends itself, and there are thresholds",
        ),
        (&suspended, &["--policy", "fp"], "suspension_needs_full_preemption: a suspends itself, and b "),
        (
            &suspended,
            &["--policy", "fp", "--preemption", "full", "--supply", "1ms/2ms"],
            "suspension_needs_a_whole_cpu: a ",
        ),
        (&waiting, &["--policy", "edf"], "suspension_is_not_for_blocked_tasks: a suspends itself, and b "),
        (
            &suspended,
            &["--policy", "fp", "--preemption", "full", "--sensitivity"],
            "sensitivity_needs_plain_tasks",
        ),
        (
            &table,
            &["--policy", "fp", "--preemption", "none", "--sensitivity"],
            "sensitivity_needs_plain_tasks",
        ),
        (&table, &["--policy", "fp", "--offsets", "known", "--sensitivity"], "sensitivity_needs_plain_tasks"),
    ] {
        let output = table.analyse(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// What never ends is refused, not read.
#[test]
fn a_table_without_end_is_2() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
    let output = command.args(["analyse", "--policy", "edf", "/dev/zero"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("table_must_fit: the table is larger, bound 64 MiB"), "{said}");
}

/// Pfair: nearly all of the CPUs, for a quantum of each period.
#[test]
fn quantum_by_quantum() {
    let table = File::new("pfair.csv", "name,work,period\na,20ms,40ms\nb,20ms,40ms\nc,20ms,40ms\n");
    let pd2 = |quantum| ["--policy", "pd2", "--cpus", "2", "--quantum", quantum];
    let value = table.json(&pd2("10ms"), 0);
    assert_eq!(column(&value, "wcrt_ns"), [39_999_999; 3]);
    assert_eq!(value["tasks"][0]["shown_by"], serde_json::json!(["pd2"]));
    let said = text(&table.analyse(&pd2("20ms")).stdout);
    assert!(said.contains("In whole quanta the tasks need more than the CPUs have"), "{said}");
    for (arguments, rule) in [
        (&["--policy", "pd2", "--cpus", "2"][..], "quantum_must_be_given"),
        (&["--policy", "pd2", "--quantum", "1ms"], "pd2_is_for_several_cpus"),
        (&["--policy", "edf", "--quantum", "1ms"], "quantum_is_of_pd2"),
        (&pd2("0ms"), "quantum_is_above_zero"),
    ] {
        let output = table.analyse(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(rule), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// Parallel tasks: a column for the span, and CPUs of their own.
#[test]
fn parallel_tasks() {
    let rows = "heavy,20,10,6\na,2,4,1\nb,3,6,\nc,1,4,";
    let table = File::new("parallel.csv", format!("name,work,period,span\n{rows}\n"));
    let value = table.json(&["--policy", "federated", "--cpus", "6"], 0);
    assert_eq!(value["tasks"][0]["cpus"], serde_json::json!([0, 1, 2, 3]));
    assert_eq!((&value["tasks"][0]["own"], &value["tasks"][1]["own"]), (&true.into(), &false.into()));
    assert_eq!((column(&value, "wcrt_ns")[0], column(&value, "slack_ns")[0]), (10, 0));
    let said = text(&table.analyse(&["--policy", "federated", "--cpus", "6"]).stdout);
    assert!(said.contains("\nheavy        0 to 3            10ns            10ns\n"), "{said}");
    let said = text(&table.analyse(&["--policy", "federated", "--cpus", "5"]).stdout);
    assert!(said.starts_with("There is no room for c on the 5 CPUs"), "{said}");
    assert_eq!(table.json(&["--policy", "federated", "--cpus", "3"], 1)["tasks"], serde_json::json!([]));
    let long = File::new("long-span.csv", "name,work,period,span\na,2,4,3\n");
    for (table, arguments, rule) in [
        (&table, &["--policy", "edf", "--cpus", "8"][..], "span_needs_its_policy"),
        (
            &table,
            &["--policy", "federated", "--cpus", "8", "--partition", "best"],
            "federated_is_for_whole_cpus",
        ),
        (&long, &["--policy", "federated"], "span_is_at_most_work: a"),
    ] {
        let output = table.analyse(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(rule), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// Columns for two criticalities, and the policies for them.
#[test]
fn two_criticalities() {
    let rows = "a,1,2,lo,\nb,1,10,hi,5\nc,20,100,hi,\n";
    let table = File::new("mixed.csv", format!("name,work,period,criticality,work_hi\n{rows}"));
    let value = table.json(&["--policy", "amc"], 0);
    assert_eq!(column(&value, "wcrt_ns"), [1, 6, 90]);
    assert_eq!(column(&value, "wcrt_usual_ns"), [1, 2, 50]);
    assert_eq!((column(&value, "rank"), column(&value, "slack_ns")), (vec![0, 1, 2], vec![1, 4, 10]));
    let said = text(&table.analyse(&["--policy", "amc"]).stdout);
    assert!(
        said.contains("\nc       hi            50ns            90ns               2           100ns\n"),
        "{said}"
    );
    for policy in ["smc", "vestal"] {
        let value = table.json(&["--policy", policy], 1);
        assert!(value["remarks"][0].as_str().unwrap().starts_with("No order of priorities"), "{value}");
    }
    let table = File::new("virtual.csv", "name,work,period,criticality,work_hi\nl,3,5,lo,\nh,2,10,hi,5\n");
    let value = table.json(&["--policy", "edf-vd"], 0);
    assert_eq!((column(&value, "virtual_deadline_ns"), &value["virtual_part"]), (vec![5, 5], &"1/2".into()));
    assert!(text(&table.analyse(&["--policy", "edf-vd"]).stdout)
        .contains("hi jobs are due after 1/2 of their periods"));
    let full = File::new("full-mixed.csv", "name,work,period,criticality,work_hi\nl,3,5,lo,\nh,2,10,hi,8\n");
    assert_eq!(full.json(&["--policy", "edf-vd"], 1)["virtual_part"], serde_json::Value::Null);
    let given = "name,work,period,criticality,work_hi,priority\nl,3,5,lo,,1\nh,2,10,hi,5,2\n";
    let given = File::new("given.csv", given);
    assert_eq!(column(&given.json(&["--policy", "amc"], 0), "rank"), [1, 0]);
    let below = File::new("below.csv", "name,work,period,criticality,work_hi\nl,3,5,hi,2\n");
    let plain = File::new("plain-tasks.csv", MEDIA_PLAYER);
    let short = File::new("short.csv", "name,work,period,deadline,criticality\nl,3,5,4,hi\n");
    for (table, arguments, expected) in [
        (&table, &["--policy", "edf"][..], "criticality_needs_its_policy"),
        (&plain, &["--policy", "amc"], "criticality_must_be_given"),
        (&table, &["--policy", "amc", "--cpus", "2"], "criticality_is_for_one_cpu"),
        (&table, &["--policy", "smc", "--supply", "1ms/2ms"], "criticality_is_for_one_cpu"),
        (&below, &["--policy", "amc"], "work_hi_is_at_least_work: l has a work_hi below its work"),
        (&short, &["--policy", "edf-vd"], "deadlines_are_periods: l "),
    ] {
        let output = table.analyse(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// A job set is known by its header, and needs no policy.
#[test]
fn job_sets_without_preemption() {
    let header = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority";
    let rows = "1, 1, 0, 1, 1, 2, 5, 1\n2, 7, 0, 0, 3, 3, 4, 2";
    let table = File::new("jobs.csv", format!("{header}\n{rows}\n"));
    let value = table.json(&[], 1);
    assert_eq!((&value["exact"], &value["states"]), (&true.into(), &4.into()));
    let both = |name| [0, 1].map(|index| value["jobs"][index][name].as_i64().unwrap());
    assert_eq!((both("bcct_ns"), both("wcct_ns"), both("slack_ns")), ([1, 3], [5, 5], [0, -1]));
    assert_eq!((both("task"), both("job"), both("wcrt_ns")), ([1, 2], [1, 7], [5, 5]));
    assert_eq!(table.json(&["--policy", "fp"], 1), value);
    assert_eq!(table.json(&["--cpus", "2"], 0)["exact"], false);
    assert_eq!(table.json(&["--policy", "edf"], 0)["jobs"][0]["bcct_ns"], 4);
    let said = text(&table.analyse(&[]).stdout);
    assert!(
        said.contains("       2         7             3ns             5ns             4ns            -1ns"),
        "{said}"
    );
    assert!(
        said.ends_with(
            "Not schedulable: 2 jobs without preemption on a whole CPU, 1 may be late; 4 states.\n"
        ),
        "{said}"
    );
    let bad = File::new("bad-jobs.csv", format!("{header}\n1,1,2,1,1,1,1,1\n"));
    // Too many states take a while; too large times are refused alike.
    let row = |id| format!("0,{id},0,1000,1,{},1000000,{id}", 1_u64 << 59);
    let rows: Vec<_> = (0..40).map(row).collect();
    let wide = File::new("wide-jobs.csv", format!("{header}\n{}\n", rows.join("\n")));
    let tasks = File::new("tasks.csv", MEDIA_PLAYER);
    for (table, arguments, expected) in [
        (&table, &["--policy", "rm"][..], "job_sets_have_priorities"),
        (&table, &["--supply", "1ms/2ms"], "job_sets_run_on_whole_cpus"),
        (&table, &["--sensitivity"], "job_sets_run_on_whole_cpus"),
        (&bad, &[], "bad-jobs.csv:2:7: range_must_not_be_empty"),
        (&wide, &[], "states_must_fit"),
        (&tasks, &[], "policy_must_be_given"),
    ] {
        let output = table.analyse(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
}
