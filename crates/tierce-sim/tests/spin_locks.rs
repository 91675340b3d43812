//! Locks between CPUs, whose waiters spin: one plan with each protocol, and random plans, which never take longer than `tierce check`
//! says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{
    everybody_goes_on, parse, report_of, seeds, seen::Seen, two_cpus, within_bounds, Maker, MS, NET,
};
use tierce_admission::{Deadlines, PlanExt};

/// Longest responses in us, and how long the sender waited.
fn played(protocol: &str) -> [u64; 5] {
    let report = report_of(&two_cpus(protocol, "", NET), 1, 30 * MS);
    let worst = |task: usize| report.tasks[task].response_ns.as_ref().unwrap().max / 1000;
    let waited = report.tasks[1].lock_waits.map_or(0, |waits| waits.max_ns / 1000);
    [worst(0), worst(1), worst(2), worst(3), waited]
}

#[test]
fn who_spins_is_not_preempted_or_helps() {
    // The logger leaves the lock at 4.5 ms, the sender at 6.5 ms; the others wait for that.
    assert_eq!(played("msrp"), [6_000, 9_500, 6_500, 9_000, 3_500]);
    // The logger is preempted at 1 ms: the sender runs its section, but from 1.5 to 2.5 ms, until 4 ms, and the logger itself to 5.5 ms.
    assert_eq!(played("mrsp"), [1_000, 9_500, 3_000, 7_000, 4_500]);
}

#[test]
fn it_is_known_who_runs_meanwhile() {
    let report = report_of(&two_cpus("msrp", "", NET), 1, 30 * MS);
    let waits = report.lock_waits.iter().map(|waited| {
        let holder = waited.holder.as_deref().unwrap();
        assert!(waited.others_ran.is_empty() && waited.holder_ran_ns == waited.longest_ns, "{waited:?}");
        format!("{} {holder} {}", waited.task, waited.longest_ns / 1000)
    });
    assert_eq!(
        waits.collect::<Vec<_>>(),
        ["control sender 5000", "sender logger 3500", "urgent logger 3500"]
    );
}

#[test]
fn check_says_how_long_each_spins() {
    let bounds = |protocol: &str| {
        let plan = two_cpus(protocol, "", NET);
        let verdict = plan.admit();
        assert!(verdict.holds, "{}", verdict.faults(&plan));
        let spins = verdict
            .tasks
            .iter()
            .map(|task| task.spinning.as_ref().map_or(0, |found| found.most_ns / MS))
            .collect::<Vec<_>>();
        assert_eq!(spins, [0, 4, 0, 2]);
        let held = verdict.to_json(&plan)["tasks"][0]["blocking"]["most_ns"].as_u64();
        let text = verdict.explain(&plan, "sender").unwrap();
        assert!(text.contains("it spins up to 4ms: `net`, which `logger` has for 4ms"), "{text}");
        let found = verdict.tasks.iter().map(|task| task.response.and_then(|found| found.ns()));
        (found.map(|ns| ns.unwrap() / MS).collect::<Vec<_>>(), held.map(|ns| ns / MS))
    };
    assert_eq!(bounds("msrp"), (vec![7, 10, 9, 11], Some(6)));
    assert_eq!(bounds("mrsp"), (vec![1, 10, 3, 11], Some(0)));
}

/// Spinning counts in what is left in the long run, also of works in turn.
#[test]
fn what_is_left_is_without_spinning() {
    for (work, holds) in [("\"2ms\"", false), ("[\"2ms\", \"1ms\"]", false), ("\"100us\"", true)] {
        let sections = if holds { "" } else { ", sections = [{ lock = \"net\", length = \"1ms\" }]" };
        let tasks = format!(
            r#"
            [task.a]
            under.left = {{ priority = 2 }}
            load = {{ period = "10ms", work = {work}{sections} }}
            [task.b]
            under.right = {{ priority = 1 }}
            load = {{ period = "10ms", work = "8ms", sections = [{{ lock = "net", length = "8ms" }}] }}
            [node.x]
            policy = "uniform"
            under.left = {{ priority = 1 }}
            [task.y]
            under.x = {{ share = "0.5" }}
            load = "busy"
            "#
        );
        let plan = two_cpus("msrp", "", &tasks);
        assert_eq!(plan.admit().holds, holds, "{work}");
    }
}

/// Why nothing is known of those whose waiters spin.
#[test]
fn where_check_says_nothing() {
    let why = |machine: &str, right: &str, more: &str| {
        let plan = parse(&format!(
            "machine.cpus = 2\n{machine}\n[lock.net]\nprotocol = \"mrsp\"\n[lock.own]\nprotocol = \"inheritance\"\n\
             [node.left]\npolicy = \"fixed-priority\"\ncpu = 0\n[node.right]\npolicy = \"fixed-priority\"\ncpu = 1{right}\n\
             [task.a]\nunder.left = {{ priority = 1 }}\n\
             load = {{ period = \"10ms\", work = \"2ms\", sections = [{{ lock = \"net\", length = \"1ms\" }}] }}\n\
             [task.b]\nunder.right = {{ priority = 1 }}\n\
             load = {{ period = \"10ms\", work = \"2ms\", sections = [{{ lock = \"net\", length = \"1ms\" }}] }}\n{more}"
        ));
        let verdict = plan.admit();
        let found: Vec<_> = verdict.tasks[..2].iter().map(|task| task.deadlines).collect();
        assert_eq!(found, [Deadlines::NotShown; 2], "{machine}{right}{more}");
        verdict.faults(&plan).to_string()
    };
    let found = why("machine.costs = { switch = \"1us\" }", "", "");
    assert!(found.contains("how `[machine] costs` add to spinning is not known"), "{found}");
    let found = why("machine.interrupts = [{ cpu = 1, every = \"1ms\", takes = \"10us\" }]", "", "");
    assert!(found.contains("interrupts may keep others from leaving their locks"), "{found}");
    let node = "[node.above]\npolicy = \"edf\"\nunder.right = { priority = 1 }\n";
    let found = why("", "", node);
    assert!(found.contains("`above` may run below `right` while others there spin or have locks"), "{found}");
    let found = why("", "\ndefault = true\neach = { priority = 1 }", "");
    assert!(found.contains("threads that match nothing may run below `right`"), "{found}");
    let suspends = "[task.c]\nunder.left = { priority = 2 }\nload = { phases = [{ run = \"1ms\" }, { suspend = \"1ms\" }, \
                    { run = \"1ms\" }, { timer = \"30ms\" }], deadline = \"30ms\" }\n";
    let found = why("", "", suspends);
    assert!(found.contains("`c` suspends itself: less urgent ones may get locks meanwhile"), "{found}");
    let other = "[task.c]\nunder.left = { priority = 2 }\nload = { period = \"10ms\", work = \"1ms\", \
                 sections = [{ lock = \"own\", length = \"500us\" }] }\n";
    let found = why("", "", other);
    assert!(found.contains("below `left` there is also lock `own` with protocol \"inheritance\""), "{found}");
}

/// Of each task that locks concern.
#[test]
fn nothing_takes_longer_than_check_says() {
    let (mut near, mut met) = ([Seen::default(); 2], 0);
    for seed in seeds() {
        let plan = Maker::new(seed, "spinning").between_cpus(&["msrp", "mrsp"], 1);
        let verdict = plan.admit();
        let helps = usize::from(plan.locks[0].protocol.name() == "mrsp");
        met += within_bounds(&plan, &verdict, seed, |task, verdict, longest, bound| {
            let concerned = verdict.spinning.is_some()
                || verdict.blocking.as_ref().is_some_and(|it| it.most_ns > Some(0));
            if concerned {
                near[helps].add(longest, bound, || task.name.clone());
            }
        });
    }
    println!("{met} shown");
    for (near, name) in near.iter().zip(["`msrp`", "`mrsp`"]) {
        assert!(near.print(name).equal() > 0 && near.near() > 50 && near.all() > 500 && met > 500, "{met}");
    }
}

/// More work than time: jobs of all CPUs go on being done, no lock is held for ever.
#[test]
fn overload_is_no_deadlock() {
    for seed in 0..100 {
        let plan = Maker::new(seed, "overload").between_cpus(&["msrp", "mrsp"], 4);
        let report = report_of(&plan, seed, 400 * MS);
        everybody_goes_on(&plan, &report, seed);
    }
}
