//! `tierce analyse FILE.toml`: the same as of tables, locks, chains, faults with their places.

#[path = "common/file.rs"]
mod file;

use file::{text, File};

/// Without the breaks and bars of a report.
fn in_one_line(report: &[u8]) -> String {
    text(report).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number of each task, in us; -1 for null.
fn us(value: &serde_json::Value, name: &str) -> Vec<i64> {
    let us = |task: &serde_json::Value| task[name].as_i64().map_or(-1, |ns| ns / 1_000);
    value["tasks"].as_array().unwrap().iter().map(us).collect()
}

/// A table as TOML.
fn as_toml(table: &str) -> String {
    let mut lines = table.lines();
    let columns: Vec<_> = lines.next().unwrap().split(',').collect();
    let mut toml = String::new();
    for line in lines {
        let cells: Vec<_> = line.split(',').collect();
        toml += &format!("[task.{}]\n", cells[0]);
        for (column, cell) in columns.iter().zip(&cells).skip(1).filter(|(_, cell)| !cell.is_empty()) {
            let list: Vec<_> = cell.split(' ').map(|time| format!("\"{time}\"")).collect();
            let name = if *column == "period" && list.len() > 1 { "separation" } else { column };
            let value = match (*column, list.len()) {
                ("priority" | "threshold", _) => cell.to_string(),
                (_, 1) => list[0].clone(),
                _ => format!("[{}]", list.join(", ")),
            };
            toml += &format!("{name} = {value}\n");
        }
    }
    toml
}

#[test]
fn sets_are_the_same_as_tables_and_as_toml() {
    let plain = "name,work,period,deadline,jitter,blocking,priority\na,1ms,10ms,,200us,,30\nb,8ms,33ms,20ms,,500us,20\nc,3ms,50ms,,,,10";
    let kept = "name,work,period,section,last_section\na,2ms,7ms,,\nb,4ms,20ms,2ms,1ms";
    let suspended = "name,work,period,suspension\na,2ms,7ms,1ms\nb,4ms,20ms,";
    let lists = "name,work,period\na,1ms 4ms 1ms,8ms\nb,2ms,1ms 2ms 40ms";
    let limits = "name,work,period,priority,threshold\na,2ms,7ms,2,2\nb,4ms,20ms,1,2";
    let mixed = "name,work,period,criticality,work_hi\na,1ms,4ms,lo,\nb,2ms,10ms,hi,5ms";
    let late = "name,work,period,offset\na,2ms,5ms,\nb,2ms,5ms,2ms";
    let spans = "name,work,period,span\na,20ms,10ms,6ms\nb,2ms,10ms,";
    let cases: [(&str, &[&str]); 12] = [
        (plain, &["--policy", "fp"]),
        (plain, &["--policy", "edf", "--supply", "6ms/8ms"]),
        (plain, &["--policy", "rm", "--cpus", "2", "--partition", "worst"]),
        (plain, &["--policy", "fp", "--sensitivity"]),
        (kept, &["--policy", "fp"]),
        (kept, &["--policy", "edf", "--cpus", "2", "--partition", "first"]),
        (suspended, &["--policy", "fp"]),
        (lists, &["--policy", "edf"]),
        (limits, &["--policy", "fp"]),
        (mixed, &["--policy", "amc"]),
        (late, &["--policy", "edf", "--offsets", "known"]),
        (spans, &["--policy", "federated", "--cpus", "8"]),
    ];
    for (table, arguments) in cases {
        let (csv, toml) = (File::new("same.csv", table), File::new("same.toml", as_toml(table)));
        for json in [&["--json"][..], &[]] {
            let arguments = [arguments, json].concat();
            let (of_table, of_toml) = (csv.analyse(&arguments), toml.analyse(&arguments));
            assert_eq!(
                text(&of_table.stdout),
                text(&of_toml.stdout),
                "{arguments:?} {}",
                text(&of_toml.stderr)
            );
            assert_eq!(of_table.status.code(), of_toml.status.code());
            assert!(!of_table.stdout.is_empty(), "{}", text(&of_table.stderr));
        }
    }
}

/// Tasks on given CPUs are as those of each CPU alone.
#[test]
fn tasks_have_their_cpus() {
    let task = |name: &str, cpu: u32, work: u32, period: u32| {
        format!("[task.{name}]\ncpu = {cpu}\nwork = \"{work}ms\"\nperiod = \"{period}ms\"\n")
    };
    let all = [task("a", 0, 2, 5), task("b", 1, 3, 7), task("c", 0, 4, 10), task("d", 1, 3, 14)].concat();
    let file = File::new("cpus.toml", &all);
    let alone = |name: &str, lines: &str| File::new(name, format!("name,work,period\n{lines}"));
    for policy in ["dm", "edf"] {
        let found = file.json(&["--policy", policy], 0);
        let (first, second) =
            (alone("first.csv", "a,2ms,5ms\nc,4ms,10ms"), alone("second.csv", "b,3ms,7ms\nd,3ms,14ms"));
        let [first, second] =
            [first, second].map(|table| us(&table.json(&["--policy", policy], 0), "wcrt_ns"));
        assert_eq!(us(&found, "wcrt_ns"), [first[0], second[0], first[1], second[1]]);
        assert_eq!((found["cpus"].as_u64(), &found["exact"]), (Some(2), &true.into()));
    }
}

/// Sha, Rajkumar & Lehoczky's inversion: docs/locks.md has these tasks.
fn three(protocol: &str) -> String {
    format!(
        "[lock.bus]\nprotocol = \"{protocol}\"\n\
        [task.high]\npriority = 3\nperiod = \"10ms\"\nwork = \"2ms\"\nsections = [{{ lock = \"bus\", at = \"500us\", length = \"1ms\" }}]\n\
        [task.middle]\npriority = 2\nperiod = \"20ms\"\nwork = \"5ms\"\n\
        [task.low]\npriority = 1\nperiod = \"40ms\"\nwork = \"4ms\"\nsections = [{{ lock = \"bus\", length = \"2ms\" }}]\n"
    )
}

#[test]
fn locks_of_one_cpu() {
    for (protocol, policy) in [("inheritance", "fp"), ("ceiling", "fp"), ("immediate-ceiling", "dm")] {
        let found = File::new("three.toml", three(protocol)).json(&["--policy", policy], 0);
        assert_eq!(us(&found, "wcrt_ns"), [4_000, 9_000, 13_000], "{protocol}");
        assert_eq!(us(&found, "blocking_ns"), [2_000, 2_000, 0]);
        assert_eq!(found["exact"], false);
    }
    let found = File::new("srp.toml", three("srp")).json(&["--policy", "edf"], 0);
    assert_eq!(us(&found, "blocking_ns"), [2_000, 2_000, 0]);
    let none = File::new("none.toml", three("none"));
    let found = none.json(&["--policy", "fp"], 1);
    assert_eq!(us(&found, "wcrt_ns"), [-1, -1, 13_000]);
    let shown = text(&none.analyse(&["--policy", "fp"]).stdout);
    assert!(
        shown.contains("Nothing bounds how long these wait for locks of the protocol none: high, middle"),
        "{shown}"
    );
    // In a table the blocking is a number of the user.
    let table = File::new(
        "three.csv",
        "name,work,period,priority,blocking\nhigh,2ms,10ms,3,2ms\nmiddle,5ms,20ms,2,2ms\nlow,4ms,40ms,1,",
    );
    let toml = File::new("supplied.toml", three("inheritance"));
    let arguments = ["--policy", "fp", "--supply", "8ms/10ms"];
    assert_eq!(us(&table.json(&arguments, 0), "wcrt_ns"), us(&toml.json(&arguments, 0), "wcrt_ns"));
}

/// The examples at the heads of spin_locks.rs and suspending_locks.rs: work 3 with a section of 2 on each of two CPUs is done within 5.
#[test]
fn locks_between_cpus() {
    let user = |cpu: u32| {
        format!("[task.t{cpu}]\ncpu = {cpu}\nperiod = \"10ms\"\nwork = \"3ms\"\nsections = [{{ lock = \"l\", length = \"2ms\" }}]\n")
    };
    let below = "[task.below]\ncpu = 0\nperiod = \"20ms\"\nwork = \"4ms\"\n";
    for (protocol, waits) in
        [("msrp", "spin_ns"), ("mrsp", "spin_ns"), ("mpcp", "suspended_ns"), ("fmlp+", "suspended_ns")]
    {
        let all = format!("[lock.l]\nprotocol = \"{protocol}\"\n{}{}{below}", user(0), user(1));
        let file = File::new("between.toml", &all);
        let found = file.json(&["--policy", "dm"], 0);
        assert_eq!(us(&found, "wcrt_ns")[..2], [5_000, 5_000], "{protocol}");
        assert_eq!(us(&found, waits), [2_000, 2_000, 0], "{protocol}");
        // Who spins takes the CPU; who is suspended does not.
        let below = us(&found, "wcrt_ns")[2];
        assert!(
            if waits == "spin_ns" { below == 9_000 } else { (7_000..=9_000).contains(&below) },
            "{below}"
        );
        let title = if waits == "spin_ns" { "spins" } else { "suspended" };
        let shown = text(&file.analyse(&["--policy", "dm"]).stdout);
        assert!(shown.contains(title) && shown.contains("utilisation 80 %"), "{shown}");
    }
}

/// `a` triggers `b` on another CPU (head of chains/mod.rs); pyCPA's sampling_test.py.
#[test]
fn chains_by_jitter() {
    let two = "[task.a]\ncpu = 0\nperiod = \"10ms\"\nwork = { min = \"1ms\", max = \"2ms\" }\npriority = 1\n\
        [task.b]\ncpu = 1\nwork = { min = \"1ms\", max = \"3ms\" }\npriority = 1\n\
        [task.c]\ncpu = 1\nperiod = \"4ms\"\nwork = \"1ms\"\npriority = 2\n\
        [chain.all]\ntasks = [\"a\", \"b\"]\nneeds = \"within 6ms\"\n";
    let found = File::new("two.toml", two).json(&["--policy", "fp"], 0);
    assert_eq!(
        (us(&found, "wcrt_ns"), us(&found, "deadline_ns")),
        (vec![2_000, 6_000, 1_000], vec![10_000, -1, 4_000])
    );
    let chain = &found["chains"][0];
    let of = |name: &str| chain[name].as_u64().unwrap() / 1_000_000;
    assert_eq!([of("least_ns"), of("response_ns"), of("reaction_ns"), of("age_ns")], [2, 6, 16, 6]);
    assert_eq!((&chain["analysis"], &chain["needs"][0]["met"]), (&"by jitter".into(), &true.into()));
    let late = File::new("late.toml", two.replace("within 6ms", "within 5.9ms"));
    assert_eq!(late.json(&["--policy", "fp"], 1)["schedulable"], false);
    let shown = text(&late.analyse(&["--policy", "fp"]).stdout);
    assert!(
        shown.contains("all needs within 5.9ms: the bound is 6ms.") && shown.contains("triggered"),
        "{shown}"
    );
    let sampled = "[task.T11]\nperiod = \"30ms\"\njitter = \"15ms\"\nwork = { min = \"1ms\", max = \"3ms\" }\npriority = 2\n\
        [task.T12]\nperiod = \"50ms\"\nwork = { min = \"2ms\", max = \"3ms\" }\npriority = 1\n\
        [chain.S1]\ntasks = [\"T11\", \"T12\"]\n";
    let found = File::new("sampled.toml", sampled).json(&["--policy", "fp"], 0);
    let of = |name: &str| found["chains"][0][name].as_u64().unwrap() / 1_000_000;
    // pyCPA: 59, from when the first task is ready, which is up to 15 late.
    assert_eq!(
        [of("response_ns"), of("reaction_ns"), of("age_ns")],
        [59 + 15, 59 + 15 + 30, 3 + 15 + 30 + 6]
    );
}

/// pyCPA's spp_offset_test.py, the experiment of Palencia & González Harbour: offsets make the bound less.
#[test]
fn chains_with_offsets() {
    let task = |name: &str, cpu: u32, priority: u32, work: u32, period: u32| {
        let period = if period > 0 { format!("period = \"{period}ms\"\n") } else { String::new() };
        format!("[task.{name}]\ncpu = {cpu}\npriority = {priority}\nwork = {{ min = \"{work}ms\", max = \"{work}ms\" }}\n{period}")
    };
    let all = [
        task("T11", 0, 3, 4, 20),
        task("T21", 0, 1, 20, 150),
        task("T22", 2, 1, 25, 0),
        task("T23", 1, 2, 15, 0),
        task("T24", 2, 1, 34, 0),
        task("T25", 0, 1, 30, 0),
        task("T31", 1, 3, 5, 30),
        task("T51", 1, 1, 100, 200),
        "[chain.S1]\ntasks = [\"T21\", \"T22\", \"T23\", \"T24\", \"T25\"]\n".into(),
    ];
    let file = File::new("offsets.toml", all.concat());
    let found = file.json(&["--policy", "fp"], 0);
    let chain = &found["chains"][0];
    assert_eq!(chain["analysis"], "with offsets");
    let (least, response) = (chain["least_ns"].as_u64().unwrap(), chain["response_ns"].as_u64().unwrap());
    let by_jitter = chain["by_jitter"]["response_ns"].as_u64().unwrap();
    assert!(least == 124_000_000 && least <= response && response < by_jitter, "{chain}");
    // Where the next release may come later, only jitter counts.
    let sporadic = all.concat().replace("period = \"150ms\"", "separation = \"150ms\"\nextra = \"1ms\"");
    let found = File::new("sporadic.toml", &sporadic).json(&["--policy", "fp"], 0);
    assert_eq!(found["chains"][0]["analysis"], "by jitter");
    assert_eq!(found["chains"][0]["response_ns"].as_u64(), Some(by_jitter));
}

const BASE: &str = "[task.a]\nperiod = \"10ms\"\nwork = \"1ms\"\n";

/// What is wrong is said with its rule, place, value and what to do.
#[test]
fn faults_have_their_place() {
    let with = |more: &str| format!("{BASE}{more}");
    let cases: [(String, &str, &str); 38] = [
        ("[task.a\n".into(), "fp", "toml_syntax"),
        ("[node.a]\npolicy = \"edf\"\n".into(), "fp", "that is of plans"),
        ("[taks.a]\nperiod = \"1ms\"\n".into(), "fp", "did you mean `task`?"),
        ("[lock.l]\nprotocol = \"msrp\"\n".into(), "fp", "table_needs_tasks"),
        (with("peroid = \"1ms\"\n"), "fp", "did you mean `period`?"),
        ("[task.a]\nperiod = \"10ms\"\nwcet = \"1ms\"\n".into(), "fp", "here it is called `work`"),
        (with("phase = \"1ms\"\n"), "fp", "here it is called `offset`"),
        ("[task.a]\nperiod = 10\nwork = \"1ms\"\n".into(), "fp", "time_needs_a_unit"),
        ("[task.a]\nperiod = \"10ms\"\n".into(), "fp", "work_must_be_given"),
        ("[task.a]\nperiod = \"10ms\"\nwork = { min = \"2ms\", max = \"1ms\" }\n".into(), "fp", "min_must_not_exceed_max"),
        ("[task.a]\nperiod = \"10ms\"\nwork = { max = \"1ms\" }\n".into(), "fp", "value_must_be_of_its_kind"),
        (with("separation = \"10ms\"\n"), "fp", "period_or_separation"),
        ("[task.a]\nseparation = [\"2ms\", \"1ms\"]\nwork = \"1ms\"\n".into(), "fp", "separations_must_ascend"),
        (with("threshold = 1\n"), "fp", "threshold_needs_a_priority"),
        (with("section = \"2ms\"\n"), "fp", "sections_are_within_the_work"),
        (with("criticality = \"high\"\n"), "amc", "criticality_must_be_known"),
        (with("cpu = 0\n[task.b]\nperiod = \"10ms\"\nwork = \"1ms\"\n"), "fp", "cpus_are_complete"),
        (with("cpu = 1024\n"), "fp", "number_within_range"),
        ("[task.a]\nwork = \"1ms\"\n".into(), "fp", "triggered_task_needs_a_chain"),
        ("[task.a]\nwork = \"1ms\"\njitter = \"1ms\"\n".into(), "fp", "triggered_task_has_no_times"),
        (with("[lock.l]\nprotocol = \"pip\"\n"), "fp", "protocol_must_be_known"),
        (with("[lock.l]\n"), "fp", "protocol_must_be_given"),
        (with("sections = [{ lock = \"l\", length = \"1ms\" }]\n"), "fp", "lock_must_exist"),
        (with("sections = [{ lock = \"l\" }]\n[lock.l]\nprotocol = \"msrp\"\n"), "fp", "section_needs_lock_and_length"),
        (with("sections = [{ lock = \"l\", length = \"2ms\" }]\n[lock.l]\nprotocol = \"msrp\"\n"), "fp", "section_must_fit_the_work"),
        (with("sections = [{ lock = \"l\", length = \"1ms\" }]\n[lock.l]\nprotocol = \"srp\"\n"), "fp", "protocol_must_fit_the_policy"),
        (with("sections = [{ lock = \"l\", length = \"1ms\", sections = [{ lock = \"l\", length = \"1us\" }] }]\n[lock.l]\nprotocol = \"none\"\n"), "fp", "lock_is_held_already"),
        (with("sections = [{ lock = \"l\", length = \"1ms\", sections = [{ lock = \"m\", length = \"1us\" }] }]\n[lock.l]\nprotocol = \"msrp\"\n[lock.m]\nprotocol = \"msrp\"\n"), "fp", "spinning_sections_are_not_nested"),
        (with("[chain.c]\ntasks = [\"a\"]\n"), "fp", "chain_needs_two_tasks"),
        (with("[chain.c]\ntasks = [\"a\", \"b\"]\n"), "fp", "chain_consists_of_tasks"),
        (with("[chain.c]\ntasks = [\"a\", \"a\"]\n"), "fp", "chain_names_a_task_once"),
        (with("[task.b]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"b\", \"a\"]\n"), "fp", "chain_begins_with_a_period"),
        (with("[task.b]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\"]\nneeds = \"soon\"\n"), "fp", "latency_must_be_known"),
        (with("[task.b]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\"]\ndelay = { a = \"1ms\" }\n"), "fp", "delay_must_name_a_follower"),
        (with("[task.b]\nseparation = [\"1ms\", \"9ms\"]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\"]\n"), "fp", "chain_needs_jobs"),
        (with("[task.b]\nwork = \"1ms\"\n[task.d]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\"]\n[chain.e]\ntasks = [\"a\", \"b\", \"d\"]\ndelay = { b = \"1ms\" }\n"), "fp", "delays_must_agree"),
        (with("[task.x]\nperiod = \"9ms\"\nwork = \"1ms\"\n[task.b]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\"]\n[chain.e]\ntasks = [\"x\", \"b\"]\n"), "fp", "join_needs_one_beginning"),
        (with("[task.b]\nwork = \"1ms\"\n[task.d]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\", \"d\"]\n[chain.e]\ntasks = [\"a\", \"d\", \"b\"]\n"), "fp", "triggers_have_no_circle"),
    ];
    for (set, policy, expected) in cases {
        let file = File::new("fault.toml", &set);
        let output = file.analyse(&["--policy", policy]);
        let said = in_one_line(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{set}: {said}{}", text(&output.stdout));
        assert!(said.contains(expected), "{set}: {said}");
        assert!(said.contains("fault.toml:"), "{said}");
    }
}

/// Locks, chains and CPUs that the rest of the question does not go with.
#[test]
fn what_does_not_go_together() {
    let lock = |protocol: &str, more: &str| {
        format!("{BASE}sections = [{{ lock = \"l\", length = \"1ms\" }}]\n{more}[lock.l]\nprotocol = \"{protocol}\"\n")
    };
    let chain =
        |more: &str| format!("{BASE}{more}[task.b]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\"]\n");
    let elsewhere = "[task.b]\ncpu = 1\nperiod = \"10ms\"\nwork = \"1ms\"\nsections = [{ lock = \"l\", length = \"1ms\" }]\n";
    let cases: [(String, &[&str], &str); 20] = [
        (lock("inheritance", "cpu = 0\n") + elsewhere, &["--policy", "fp"], "lock_is_for_one_cpu"),
        (
            lock("msrp", "") + "[lock.m]\nprotocol = \"mpcp\"\n[task.b]\nperiod = \"10ms\"\nwork = \"1ms\"\nsections = [{ lock = \"m\", length = \"1ms\" }]\n",
            &["--policy", "fp"],
            "locks_between_cpus_are_alike",
        ),
        (
            "[task.a]\nperiod = \"10ms\"\nwork = \"1ms\"\nsections = [{ lock = \"l\", length = \"1us\" }, { lock = \"m\", length = \"1us\" }]\n[lock.l]\nprotocol = \"none\"\n[lock.m]\nprotocol = \"inheritance\"\n".into(),
            &["--policy", "fp"],
            "locks_of_a_task_have_one_protocol",
        ),
        (
            "[task.a]\nperiod = \"10ms\"\nwork = \"1ms\"\nsections = [{ lock = \"l\", length = \"9us\", sections = [{ lock = \"m\", length = \"1us\" }] }]\n\
             [task.b]\nperiod = \"10ms\"\nwork = \"1ms\"\nsections = [{ lock = \"m\", length = \"9us\", sections = [{ lock = \"l\", length = \"1us\" }] }]\n\
             [lock.l]\nprotocol = \"inheritance\"\n[lock.m]\nprotocol = \"inheritance\"\n".into(),
            &["--policy", "fp"],
            "locks_must_not_close_a_circle",
        ),
        (lock("inheritance", ""), &["--policy", "fifo"], "locks_need_priorities"),
        (lock("inheritance", "suspension = \"1ms\"\n"), &["--policy", "fp"], "locks_are_of_plain_jobs"),
        (lock("inheritance", ""), &["--policy", "fp", "--sensitivity"], "locks_are_of_plain_jobs"),
        (lock("inheritance", "jitter = \"1ms\"\n"), &["--policy", "edf"], "locks_with_jitter_need_priorities"),
        (lock("msrp", ""), &["--policy", "edf"], "locks_between_cpus_need_priorities"),
        (lock("mpcp", ""), &["--policy", "fp", "--supply", "5ms/10ms"], "locks_between_cpus_need_whole_cpus"),
        (lock("mpcp", "blocking = \"1ms\"\n"), &["--policy", "fp"], "suspension_is_not_for_blocked_tasks"),
        (lock("mpcp", "[task.b]\nwork = \"1ms\"\n[chain.c]\ntasks = [\"a\", \"b\"]\n"), &["--policy", "fp"], "triggered_tasks_do_not_suspend"),
        (chain(""), &["--policy", "edf"], "triggered_tasks_need_priorities"),
        (chain(""), &["--policy", "fp", "--supply", "5ms/10ms"], "triggered_tasks_need_whole_cpus"),
        (chain("suspension = \"1ms\"\n"), &["--policy", "fp"], "triggered_tasks_are_among_plain_jobs"),
        (chain(""), &["--policy", "fp", "--offsets", "known"], "triggered_tasks_are_among_plain_jobs"),
        (chain(""), &["--policy", "fp", "--cpus", "2"], "tasks_have_their_cpus"),
        (chain(""), &["--policy", "edf", "--supply", "6ms/5ms@2"], "tasks_have_their_cpus"),
        (chain(""), &["--policy", "pd2"], "tasks_have_their_cpus"),
        (chain(""), &[], "policy_must_be_given"),
    ];
    for (set, arguments, expected) in cases {
        let output = File::new("apart.toml", &set).analyse(arguments);
        let said = in_one_line(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{set}: {said}{}", text(&output.stdout));
        assert!(said.contains(expected), "{set}: {said}");
    }
}
