//! Policies above and beside each other: joins, conditions, nesting, shared nodes, affinity.

mod common;

use common::{check_plan, parse, run, schedule, MS};
use expect_test::expect;

/// fixed-priority over reservation over fair.
#[test]
fn depth_three() {
    let plan = r#"
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 1 } }
        node.app = { policy = "fair", quantum = "2ms", under.rt = { budget = "6ms", period = "20ms" } }
        node.rest = { policy = "round-robin", quantum = "5ms", under.top = { priority = 0 } }
        task.a = { under.app = { weight = 100 }, load = "busy" }
        task.b = { under.app = { weight = 200 }, load = "busy" }
        task.c = { under.rest = {}, load = "busy" }
        task.d = { under.rest = {}, load = "busy" }
    "#;
    check_plan(plan, 60, expect!["0 a, 2 b, 6 c, 11 d, 16 c, 20 a, 22 b, 26 c, 27 d, 32 c, 37 d, 40 a, 42 b, 46 d, 48 c, 53 d, 58 c"]);
}

/// The worked example of the reservation's page: what is left at 11 may be used at 13, but not at 19.
#[test]
fn waking_rule() {
    let plan = |pause: &str| {
        format!(
            r#"
        node.top = {{ policy = "reservation", cpu = 0 }}
        [task.a]
        under.top = {{ budget = "2ms", period = "10ms" }}
        load = {{ phases = [{{ run = "3ms" }}, {{ suspend = "{pause}" }}, {{ run = "100ms" }}] }}
    "#
        )
    };
    check_plan(
        &plan("2ms"),
        42,
        expect!["0 a, 2 idle, 10 a, 11 idle, 13 a, 14 idle, 20 a, 22 idle, 30 a, 32 idle, 40 a"],
    );
    check_plan(
        &plan("8ms"),
        42,
        expect!["0 a, 2 idle, 10 a, 11 idle, 19 a, 21 idle, 29 a, 31 idle, 39 a, 41 idle"],
    );
}

/// A soft reservation: the second parent, below everything, gives what nobody else wants.
#[test]
fn soft_reservation_below_the_rest() {
    let plan = r#"
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 2 } }
        node.rest = { policy = "fair", under.top = { priority = 1 } }
        [task.greedy]
        under.rt = { budget = "2ms", period = "10ms" }
        under.top = { priority = 0 }
        load = "busy"
        [task.other]
        under.rest = {}
        load = { period = "20ms", work = "10ms" }
    "#;
    check_plan(
        plan,
        40,
        expect![
            "0 greedy, 2 other, 10 greedy, 12 other, 14 greedy, 22 other, 30 greedy, 32 other, 34 greedy"
        ],
    );
}

/// `firm`: a busy child gets its budget and nothing more while somebody else wants the CPU.
#[test]
fn firm_reservation_beside_a_busy_one() {
    let plan = r#"
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 2 } }
        node.rest = { policy = "fair", under.top = { priority = 1 } }
        task.greedy = { under.rt = { budget = "2ms", period = "10ms", firm = "top" }, load = "busy" }
        task.other = { under.rest = {}, load = "busy" }
    "#;
    check_plan(
        plan,
        40,
        expect!["0 greedy, 2 other, 10 greedy, 12 other, 20 greedy, 22 other, 30 greedy, 32 other"],
    );
}

/// The same beside the rest: a share of what is left.
#[test]
fn soft_reservation_beside_the_rest() {
    let plan = r#"
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 1 } }
        node.rest = { policy = "fair", quantum = "1ms", under.top = { priority = 0 } }
        task.a = { under.rt = { budget = "4ms", period = "10ms" }, under.rest = { weight = 100 }, load = "busy" }
        task.b = { under.rest = { weight = 200 }, load = "busy" }
    "#;
    let run = run(&parse(plan), 3000 * MS, 1);
    expect!["0 a, 5 b, 7 a, 8 b, 10 a, 15 b, 17 a, 18 b, 20 a, 25 b, 27 a, 28 b, 30 a, 35 b, 37 a, 38 b, 40 a, 45 b, 47 a, 48 b, 50 a"].assert_eq(&schedule(&run)[..120]);
    // 4 of 10, and a third of the other 6
    assert!(run.task("a").cpu_ns.abs_diff(1800 * MS) <= 2 * MS, "{}", run.task("a").cpu_ns);
}

/// A soft reservation of a whole node: two tasks in it, their shares hold in both.
#[test]
fn join_of_a_node() {
    let plan = r#"
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 1 } }
        node.low = { policy = "fair", quantum = "1ms", under.top = { priority = 0 } }
        node.app = { policy = "fair", quantum = "1ms", under.rt = { budget = "4ms", period = "10ms" }, under.low = {} }
        task.a = { under.app = { weight = 100 }, load = "busy" }
        task.b = { under.app = { weight = 200 }, load = "busy" }
        task.c = { under.low = {}, load = "busy" }
    "#;
    check_plan(plan, 30, expect!["0 a, 1 b, 3 a, 4 b, 5 c, 6 b, 7 c, 8 a, 9 c, 10 b, 12 a, 13 b, 15 c, 16 a, 17 c, 18 b, 19 c, 20 b, 21 a, 22 b, 24 a, 25 c, 26 b, 27 c, 28 b, 29 c"]);
    let run = run(&parse(plan), 3000 * MS, 1);
    // 4 of 10 and half of the other 6; 1 : 2 in it
    for (name, cpu_ms) in [("a", 700), ("b", 1400), ("c", 900)] {
        assert!(run.task(name).cpu_ns.abs_diff(cpu_ms * MS) <= 3 * MS, "{name} {}", run.task(name).cpu_ns);
    }
}

/// The overrun partition is open only while a task's own budget is spent.
#[test]
fn when_spent() {
    let plan = r#"
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 1 } }
        node.over = { policy = "round-robin", quantum = "1ms", under.rt = { budget = "2ms", period = "20ms" } }
        node.rest = { policy = "fair", under.top = { priority = 0 } }
        [task.a]
        under.rt = { budget = "2ms", period = "10ms" }
        under.over = { when = "spent" }
        load = { period = "10ms", work = ["2ms", "3ms", "1ms"] }
        [task.hog]
        under.rest = {}
        load = "busy"
    "#;
    check_plan(plan, 40, expect!["0 a, 2 hog, 10 a, 13 hog, 20 a, 21 hog, 30 a, 32 hog"]);
}

/// A reservation inside a reservation: the inner one cannot give more than the outer one has.
#[test]
fn nested_reservations() {
    let plan = r#"
        node.outer = { policy = "reservation", cpu = 0 }
        node.inner = { policy = "reservation", under.outer = { budget = "4ms", period = "10ms" } }
        task.a = { under.inner = { budget = "2ms", period = "20ms" }, load = "busy" }
        task.b = { under.inner = { budget = "6ms", period = "20ms" }, load = "busy" }
    "#;
    check_plan(plan, 60, expect!["0 a, 2 b, 4 idle, 10 b, 14 idle, 20 a, 22 b, 24 idle, 30 b, 34 idle, 40 a, 42 b, 44 idle, 50 b, 54 idle"]);
}

/// Nodes below an edf node announce the earliest deadline below them.
#[test]
fn nested_edf() {
    let plan = r#"
        node.top = { policy = "edf", cpu = 0 }
        node.left = { policy = "edf", under.top = {} }
        node.right = { policy = "edf", under.top = {} }
        task.a = { under.left = {}, load = { period = "10ms", work = "3ms" } }
        task.b = { under.left = {}, load = { period = "30ms", work = "6ms" } }
        task.c = { under.right = {}, load = { period = "15ms", work = "5ms" } }
    "#;
    check_plan(plan, 30, expect!["0 a, 3 c, 8 b, 10 a, 13 b, 17 c, 20 a, 23 c, 25 idle"]);
}

/// A node below two edf nodes tells both, and they tell theirs.
#[test]
fn deadlines_go_up_every_way() {
    let plan = r#"
        node.top = { policy = "edf", cpu = 0 }
        node.upper = { policy = "edf", under.top = {} }
        node.lower = { policy = "edf", under.upper = {}, under.top = {} }
        task.a = { under.lower = {}, load = { period = "20ms", work = "5ms", deadline = "10ms" } }
        task.b = { under.lower = {}, load = { period = "40ms", work = "10ms", deadline = "18ms", phase = "1ms" } }
        task.c = { under.upper = {}, load = { period = "40ms", work = "3ms", deadline = "16ms", phase = "2ms" } }
    "#;
    check_plan(plan, 40, expect!["0 a, 5 c, 8 b, 18 idle, 20 a, 25 idle"]);
}

/// A node on two CPUs announces the deadline of what it runs, not only of what waits.
#[test]
fn shared_nodes_announce_what_they_run() {
    let plan = r#"
        machine.cpus = 2
        node.top = { policy = "edf", cpus = "all" }
        node.rt = { policy = "reservation", under.top = {} }
        node.inner = { policy = "edf", under.top = {}, under.rt = { budget = "4ms", period = "15ms" } }
        node.box = { policy = "fixed-priority", under.inner = {}, under.top = { deadline = "19ms" } }
        task.a = { under.box = { priority = 2 }, load = { period = "20ms", work = "2ms" } }
        task.b = { under.inner = {}, load = { period = "6ms", work = "3ms" } }
        task.c = { under.top = {}, load = "busy" }
    "#;
    check_plan(
        plan,
        20,
        expect![[r#"
        0 b, 3 idle, 6 b, 9 idle, 12 b, 15 idle, 18 b
        0 a, 2 c"#]],
    );
}

/// Time sharing on two CPUs, and three hogs that move.
#[test]
fn shared_root() {
    let plan = r#"
        machine.cpus = 2
        node.pool = { policy = "round-robin", quantum = "2ms", cpus = [0, 1] }
        task.a = { under.pool = {}, load = "busy" }
        task.b = { under.pool = {}, load = "busy" }
        task.c = { under.pool = {}, load = "busy" }
    "#;
    check_plan(
        plan,
        12,
        expect![[r#"
        0 a, 2 c, 4 b, 6 a, 8 c, 10 b
        0 b, 2 a, 4 c, 6 b, 8 a, 10 c"#]],
    );
}

/// Global EDF: two of three run, a waking one takes the CPU of the latest deadline.
#[test]
fn global_edf() {
    let plan = r#"
        machine.cpus = 2
        node.pool = { policy = "edf", cpus = "all" }
        task.a = { under.pool = {}, load = { period = "10ms", work = "6ms" } }
        task.b = { under.pool = {}, load = { period = "20ms", work = "12ms" } }
        task.c = { under.pool = {}, load = { period = "20ms", work = "4ms", deadline = "8ms", phase = "2ms" } }
    "#;
    check_plan(
        plan,
        20,
        expect![[r#"
        0 a, 6 b, 16 idle
        0 b, 2 c, 6 idle, 10 a, 16 idle"#]],
    );
}

/// One node below two CPUs, of which the first serves a reservation before it.
#[test]
fn shared_node() {
    let plan = r#"
        machine.cpus = 2
        node.top = { policy = "fixed-priority", per_cpu = true }
        node.rt = { policy = "reservation", under.top = { cpu = 0, priority = 1 } }
        node.pool = { policy = "fair", quantum = "5ms", under.top = { priority = 0 } }
        task.reserved = { under.rt = { budget = "3ms", period = "10ms" }, load = "busy" }
        task.a = { under.pool = {}, load = "busy" }
        task.b = { under.pool = {}, load = "busy" }
    "#;
    check_plan(
        plan,
        20,
        expect![[r#"
        0 reserved, 3 b, 10 reserved, 13 a
        0 a, 10 b"#]],
    );
}

/// A container with a budget on each of two CPUs: where one is spent, it goes on with the other.
#[test]
fn hyper_node() {
    let plan = r#"
        machine.cpus = 2
        node.rt = { policy = "reservation", per_cpu = true }
        node.box = { policy = "fixed-priority", under.rt = [{ cpu = 0, budget = "4ms", period = "10ms" }, { cpu = 1, budget = "2ms", period = "10ms" }] }
        task.a = { under.box = { priority = 1 }, load = "busy" }
    "#;
    check_plan(
        plan,
        30,
        expect![[r#"
        0 a, 4 idle, 10 a, 14 idle, 20 a, 24 idle
        0 idle, 4 a, 6 idle, 14 a, 16 idle, 24 a, 26 idle"#]],
    );
    let two = plan.to_string() + "task.b = { under.box = { priority = 0 }, load = \"busy\" }\n";
    check_plan(
        &two,
        20,
        expect![[r#"
        0 a, 4 idle, 10 a, 14 idle
        0 b, 2 idle, 10 b, 12 idle"#]],
    );
}

/// A notional processor: two CPUs, one at a time.
#[test]
fn concurrency_one() {
    let plan = r#"
        machine.cpus = 2
        node.top = { policy = "fixed-priority", per_cpu = true }
        node.one = { policy = "edf", concurrency = 1, under.top = { priority = 1 } }
        task.a = { under.one = {}, load = { period = "10ms", work = "4ms" } }
        task.b = { under.one = {}, load = { period = "20ms", work = "4ms" } }
        task.x = { under.top = { cpu = 0, priority = 2 }, load = { period = "20ms", work = "3ms", phase = "2ms" } }
    "#;
    check_plan(
        plan,
        20,
        expect![[r#"
        0 a, 2 x, 5 idle, 10 a, 14 idle
        0 idle, 2 a, 4 b, 8 idle"#]],
    );
}

/// rank: which CPU keeps a shared task.
#[test]
fn rank() {
    let plan = r#"
        machine.cpus = 2
        node.top = { policy = "reservation", per_cpu = true }
        [task.a]
        under.top = [{ cpu = 0, budget = "2ms", period = "10ms" }, { cpu = 1, budget = "4ms", period = "10ms", rank = 1 }]
        load = "busy"
    "#;
    check_plan(
        plan,
        30,
        expect![[r#"
        0 idle, 4 a, 6 idle, 14 a, 16 idle, 24 a, 26 idle
        0 a, 4 idle, 10 a, 14 idle, 20 a, 24 idle"#]],
    );
}

/// A task bound to one CPU of a shared node stays there, the others go around it.
#[test]
fn affinity() {
    let plan = r#"
        machine.cpus = 2
        node.pool = { policy = "round-robin", quantum = "2ms", cpus = "all" }
        task.bound = { under.pool = {}, affinity = [1], load = "busy" }
        task.b = { under.pool = {}, load = "busy" }
        task.c = { under.pool = {}, load = "busy" }
    "#;
    let run = run(&parse(plan), 300 * MS, 1);
    assert_eq!((run.task("bound").migrations, run.report.cpus[0].idle_ns), (0, 0));
    for name in ["bound", "b", "c"] {
        let cpu_ns = run.task(name).cpu_ns;
        assert!(cpu_ns.abs_diff(200 * MS) <= 60 * MS, "{name} {cpu_ns}");
    }
    check_plan(
        plan,
        14,
        expect![[r#"
        0 b, 2 c, 6 b, 10 c
        0 bound, 2 b, 4 bound, 6 c, 8 bound, 10 b, 12 bound"#]],
    );
}
