//! Locks between CPUs, whose waiters are suspended: one plan with each protocol, and random plans, which never take longer than `tierce
//! check` says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{
    everybody_goes_on, parse, report_of, seeds, seen::Seen, two_cpus, within_bounds, Maker, MS, NET,
};
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;

const PROTOCOLS: [&str; 2] = ["mpcp", "fmlp+"];

/// Longest responses in us.
fn played(plan: &Plan) -> Vec<u64> {
    let report = report_of(plan, 1, 30 * MS);
    report.tasks.iter().map(|task| task.response_ns.as_ref().unwrap().max / 1000).collect()
}

#[test]
fn who_waits_leaves_its_cpu() {
    for protocol in PROTOCOLS {
        let plan = two_cpus(protocol, "", NET);
        // The logger leaves the lock at 4.5 ms, and `urgent` waits for that; the sender has it from then to 6.5 ms, and `control` has run meanwhile.
        assert_eq!(played(&plan), [1_000, 8_500, 6_500, 9_000], "{protocol}");
        let report = report_of(&plan, 1, 30 * MS);
        let waits = report.lock_waits.iter().map(|waited| {
            format!("{} {} {}", waited.task, waited.holder.as_deref().unwrap(), waited.longest_ns / 1000)
        });
        assert_eq!(waits.collect::<Vec<_>>(), ["sender logger 3500", "urgent logger 3500"], "{protocol}");
    }
}

#[test]
fn check_says_how_long_each_waits() {
    for protocol in PROTOCOLS {
        let plan = two_cpus(protocol, "", NET);
        let verdict = plan.admit();
        assert!(verdict.holds, "{}", verdict.faults(&plan));
        let found = verdict.tasks.iter().map(|task| task.response.and_then(|found| found.ns()).unwrap() / MS);
        // 1 + 2 of the sender. 5 + 4 of the logger + 1 of control. 3 + 4 of the logger. 6 + 2 of the sender + 3 of `urgent`.
        assert_eq!(found.collect::<Vec<_>>(), [3, 10, 7, 11], "{protocol}");
        let json = verdict.to_json(&plan);
        let blocking = &json["tasks"][1]["blocking"];
        assert_eq!((&blocking["most_ns"], &blocking["waiting"]["most_ns"]), (&0.into(), &(4 * MS).into()));
        assert_eq!(blocking["waiting"]["held"][0]["task"], "logger");
        assert_eq!(json["tasks"][0]["blocking"]["most_ns"], 2 * MS);
        let text = verdict.explain(&plan, "sender").unwrap();
        assert!(text.contains("it is suspended up to 4ms: `net`, which `logger` has for 4ms"), "{text}");
        let text = verdict.explain(&plan, "control").unwrap();
        assert!(text.contains("it waits up to 2ms: `net`, which `sender` has for 2ms"), "{text}");
    }
}

/// `high` requests the lock of `first` before `other` does, and `middle` has another one when they get it.
#[test]
fn by_priority_or_first_come_first_served() {
    let tasks = r#"
        [task.high]
        under.left = { priority = 5 }
        load = { period = "40ms", phase = "1ms", work = "1ms", sections = [{ lock = "net", length = "1ms" }] }
        [task.middle]
        under.left = { priority = 4 }
        load = { period = "40ms", phase = "3ms", work = "4ms", sections = [{ lock = "own", length = "2ms" }] }
        [task.first]
        under.right = { priority = 2 }
        load = { period = "40ms", work = "5ms", sections = [{ lock = "net", length = "4ms" }] }
        [task.low]
        under.right = { priority = 3 }
        load = { period = "40ms", phase = "4ms", work = "3ms", sections = [{ lock = "own", length = "3ms" }] }
        [task.other]
        under.left = { priority = 6 }
        load = { period = "40ms", phase = "2ms", work = "1ms", sections = [{ lock = "net", at = "500us", length = "500us" }] }
    "#;
    // At 4 ms `other` is next, but on the left `own` has the higher ceiling, `low`: `middle` has it to 5 ms, `other` runs to 5.5, `high` to 6.5 and
    // `middle` to 8.5; `low` from 5 to 8.
    assert_eq!(played(&two_cpus("mpcp", "", tasks)), [5_500, 5_500, 5_000, 4_000, 3_500]);
    // At 4 ms `high` is next, whose request is older than that of `middle`, as is that of `other`: until 5 and 5.5. So `middle` leaves its lock at
    // 6.5, and is done at 8.5; `low` at 9.5.
    assert_eq!(played(&two_cpus("fmlp+", "", tasks)), [4_000, 5_500, 5_000, 5_500, 3_500]);
}

/// Why nothing is known of those whose waiters are suspended.
#[test]
fn where_check_says_nothing() {
    let lone = |lock: &str| {
        format!("load = {{ period = \"10ms\", work = \"2ms\", sections = [{{ lock = \"{lock}\", length = \"1ms\" }}] }}\n")
    };
    let users = format!(
        "[task.a]\nunder.left = {{ priority = 1 }}\n{}[task.b]\nunder.right = {{ priority = 1 }}\n{}",
        lone("net"),
        lone("net")
    );
    for protocol in PROTOCOLS {
        let why = |machine: &str, more: &str, words: &str| {
            let plan = two_cpus(protocol, machine, &format!("{users}{more}"));
            let verdict = plan.admit();
            let found: Vec<_> = verdict.tasks[..2].iter().map(|task| task.deadlines).collect();
            assert_eq!(found, [Deadlines::NotShown; 2], "{more}");
            let found = verdict.faults(&plan).to_string();
            assert!(found.contains(words), "{found}");
        };
        why(
            "machine.costs = { switch = \"1us\" }",
            "",
            "how `[machine] costs` add to waits for locks is not known",
        );
        why(
            "",
            "[node.above]\npolicy = \"edf\"\nunder.right = { priority = 1 }\n",
            "`above` may run below `right` while others there have locks",
        );
        why(
            "",
            "[task.c]\nunder.left = { priority = 2 }\nload = { phases = [{ run = \"1ms\" }, { suspend = \"1ms\" }, \
             { run = \"1ms\" }, { timer = \"30ms\" }], deadline = \"30ms\" }\n",
            "`c` suspends itself: less urgent ones may get locks meanwhile",
        );
        why(
            "",
            &format!(
                "[lock.other]\nprotocol = \"inheritance\"\n[task.c]\nunder.left = {{ priority = 2 }}\n{}",
                lone("other")
            ),
            "below `left` there is also lock `other` with protocol \"inheritance\"",
        );
        why(
            "",
            &format!(
                "[tasks.c]\ncount = 0\nunder.left = {{ priority = 0 }}\nmatch = {{ comm = \"c\" }}\n{}",
                lone("net")
            ),
            "any number of threads may match the set `c`, which uses lock `net`",
        );
        why(
            "",
            "[task.c]\nunder.left = { priority = 2 }\nload = { period = \"10ms\", work = \"9ms\" }\n             [task.d]\nunder.right = { priority = 2 }\nload = { period = \"10ms\", work = \"9ms\" }\n",
            "it is not shown to be done within its period, 10ms",
        );
    }
}

/// Of each task that locks concern.
#[test]
fn nothing_takes_longer_than_check_says() {
    let (mut near, mut met) = ([Seen::default(); 2], 0);
    for seed in seeds() {
        let plan = Maker::new(seed, "suspending").between_cpus(&PROTOCOLS, 1);
        let verdict = plan.admit();
        let fifo = usize::from(plan.locks[0].protocol.name() == "fmlp+");
        met += within_bounds(&plan, &verdict, seed, |task, verdict, longest, bound| {
            let suspended = verdict.suspended.as_ref();
            let concerned =
                suspended.is_some_and(|found| found.most_ns > 0 || found.blocking.most_ns > Some(0));
            if concerned {
                near[fifo].add(longest, bound, || task.name.clone());
            }
        });
    }
    println!("{met} shown");
    for (near, name) in near.iter().zip(["`mpcp`", "`fmlp+`"]) {
        assert!(near.print(name).near() > 0 && near.all() > 300 && met > 300, "{met}");
    }
}

/// One that has another parent, too, counts with its priority here.
#[test]
fn who_has_other_parents_counts() {
    let load =
        "load = { period = \"20ms\", work = \"2ms\", sections = [{ lock = \"net\", length = \"1ms\" }] }";
    for protocol in PROTOCOLS {
        let tasks = format!(
            "[task.a]\nunder.left = {{ priority = 3 }}\n{load}\n[task.b]\nunder.right = {{ priority = 3 }}\n{load}\n\
             [task.both]\nunder.left = {{ priority = 2 }}\nunder.right = {{ priority = 2 }}\n\
             load = {{ period = \"20ms\", work = \"3ms\" }}\n\
             [task.last]\nunder.left = {{ priority = 1 }}\nload = {{ period = \"20ms\", work = \"1ms\" }}\n"
        );
        let plan = two_cpus(protocol, "", &tasks);
        let verdict = plan.admit();
        let bound = verdict.tasks[3].response.and_then(|found| found.ns()).unwrap();
        assert_eq!(bound, 6 * MS, "its work, 3 of `both` and 2 of `a`, {}", verdict.faults(&plan));
    }
}

/// A task in what is left to a node below the users takes no longer than is promised to that.
#[test]
fn what_is_left_is_enough() {
    let (mut near, mut missed) = (Seen::default(), 0);
    for seed in seeds() {
        let mut maker = Maker::new(seed, "left");
        maker.between_cpus(&PROTOCOLS, 1);
        let (work, period) = (maker.between(1, 6), maker.between(20, 60));
        let plan = parse(&format!(
            "{}[node.rest]\npolicy = \"fixed-priority\"\nunder.n0 = {{ priority = 0 }}\n[task.late]\n\
             under.rest = {{ priority = 1 }}\nload = {{ period = \"{period}ms\", work = \"{work}ms\" }}\n",
            maker.text
        ));
        let verdict = plan.admit();
        missed += u32::from(!verdict.holds);
        within_bounds(&plan, &verdict, seed, |task, _, longest, bound| {
            if task.name == "late" {
                near.add(longest, bound, || task.name.clone());
            }
        });
    }
    println!("{missed} not shown");
    assert!(near.print("in what is left").all() > 100, "{missed}");
}

/// More work than time: no lock is held for ever.
#[test]
fn overload_is_no_deadlock() {
    for seed in 0..100 {
        let plan = Maker::new(seed, "overload").between_cpus(&PROTOCOLS, 4);
        let report = report_of(&plan, seed, 400 * MS);
        everybody_goes_on(&plan, &report, seed);
    }
}
