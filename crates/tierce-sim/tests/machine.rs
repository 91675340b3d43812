//! What the simulator adds to the engine: loads, costs, interrupts, draws.

mod common;

use common::{check_plan, parse, run, run_with, schedule, MS};
use expect_test::expect;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::{Event, Kind};

/// Jobs of a task: released, started, done, in ms, with the deadline.
fn jobs(plan: &str, for_ms: u64, task: &str) -> String {
    let run = run(&parse(plan), for_ms * MS, 1);
    let id = run.task(task).id;
    let of = |kind: Kind, number: u32| {
        let is = |event: &&Event| event.kind() == Some(kind) && event.a == id && event.b == number;
        run.events.iter().find(is).copied()
    };
    let at = |event: Option<Event>| event.map_or("-".into(), |event| (event.now_ns as f64 / 1e6).to_string());
    let line = |number| {
        let release = of(Kind::JobRelease, number)?;
        let due = match release.value {
            u64::MAX => "never".into(),
            due => (due as f64 / 1e6).to_string(),
        };
        let (start, done) = (at(of(Kind::JobStart, number)), at(of(Kind::JobComplete, number)));
        Some(format!("{number}: {} due {due}, {start} to {done}\n", release.now_ns as f64 / 1e6))
    };
    (1..).map_while(line).collect()
}

fn alone(load: &str) -> String {
    format!("node.top = {{ policy = \"edf\", cpu = 0 }}\ntask.a = {{ under.top = {{}}, load = {load} }}\n")
}

#[test]
fn periodic_jobs() {
    let plan =
        alone(r#"{ period = "10ms", work = ["1ms", "12ms", "3ms"], phase = "2ms", deadline = "8ms" }"#);
    expect![[r#"
        1: 2 due 10, 2 to 3
        2: 12 due 20, 12 to 24
        3: 22 due 30, 24 to 27
        4: 32 due 40, 32 to 33
        5: 42 due 50, 42 to -
    "#]]
    .assert_eq(&jobs(&plan, 50, "a"));
    let plan = alone(r#"{ period = "10ms", work = { min = "1ms", max = "2ms" }, jitter = "4ms" }"#);
    expect![[r#"
        1: 0.150659 due 10, 0.150659 to 1.573891
        2: 11.764999 due 20, 11.764999 to 13.650962
        3: 22.817129 due 30, 22.817129 to 23.846434
        4: 33.28554 due 40, 33.28554 to 35.122792
    "#]]
    .assert_eq(&jobs(&plan, 40, "a"));
    let plan = alone(r#"{ separation = "10ms", extra = "5ms", work = "1ms", deadline = "2ms" }"#);
    expect![[r#"
        1: 0 due 2, 0 to 1
        2: 10.188323 due 12.188323, 10.188323 to 11.188323
        3: 22.394571 due 24.394571, 22.394571 to 23.394571
        4: 35.915982 due 37.915982, 35.915982 to 36.915982
    "#]]
    .assert_eq(&jobs(&plan, 40, "a"));
    let plan =
        format!("machine.epoch = \"5ms\"\n{}", alone(r#"{ period = "10ms", work = "1ms", phase = "1ms" }"#));
    expect![[r#"
        1: 6 due 16, 6 to 7
        2: 16 due 26, 16 to 17
    "#]]
    .assert_eq(&jobs(&plan, 20, "a"));
}

#[test]
fn phases() {
    // a job lasts from the first run after a sleep to the next sleep; a suspension is part of it
    let plan = alone(
        r#"{ phases = [{ run = "1ms" }, { suspend = "2ms" }, { run = "1ms" }, { sleep = "6ms" }], deadline = "5ms" }"#,
    );
    expect![[r#"
        1: 0 due 5, 0 to 4
        2: 10 due 15, 10 to 14
        3: 20 due 25, 20 to 24
    "#]]
    .assert_eq(&jobs(&plan, 25, "a"));
    check_plan(&plan, 12, expect!["0 a, 1 idle, 3 a, 4 idle, 10 a, 11 idle"]);
    // the end of the list ends the job, too
    let plan = alone(r#"{ phases = [{ run = "3ms" }], repeat = 3, phase = "1ms" }"#);
    expect![[r#"
        1: 1 due never, 1 to 4
        2: 4 due never, 4 to 7
        3: 7 due never, 7 to 10
    "#]]
    .assert_eq(&jobs(&plan, 25, "a"));
    check_plan(&plan, 25, expect!["0 idle, 1 a, 10 idle"]);
    // a timer that has expired does not wait: a relative one starts afresh, an absolute one catches up
    for absolute in [false, true] {
        let plan = alone(&format!(
            r#"{{ phases = [{{ run = ["1ms", "14ms", "1ms", "1ms"] }}, {{ timer = {{ period = "5ms", absolute = {absolute} }} }}] }}"#
        ));
        let want = if absolute {
            expect![[r#"
            1: 0 due never, 0 to 1
            2: 5 due never, 5 to 19
            3: 19 due never, 19 to 20
            4: 20 due never, 20 to 21
            5: 21 due never, 21 to 22
            6: 25 due never, 25 to 39
            7: 39 due never, 39 to -
        "#]]
        } else {
            expect![[r#"
            1: 0 due never, 0 to 1
            2: 5 due never, 5 to 19
            3: 19 due never, 19 to 20
            4: 24 due never, 24 to 25
            5: 29 due never, 29 to 30
            6: 34 due never, 34 to -
        "#]]
        };
        want.assert_eq(&jobs(&plan, 40, "a"));
    }
}

/// Two tasks that wake each 10 ms, the second at 1 ms. Costs are paid by who comes in.
#[test]
fn costs() {
    let plan = |costs: &str| {
        format!(
            r#"
        machine.costs = {costs}
        node.top = {{ policy = "fixed-priority", cpu = 0 }}
        node.low = {{ policy = "fixed-priority", under.top = {{ priority = 1 }} }}
        task.high = {{ under.top = {{ priority = 2 }}, load = {{ period = "10ms", work = "2ms", phase = "1ms" }} }}
        task.low_ = {{ under.low = {{ priority = 1 }}, load = {{ period = "20ms", work = "5ms" }} }}
    "#
        )
    };
    check_plan(&plan("{}"), 20, expect!["0 low_, 1 high, 3 low_, 7 idle, 11 high, 13 idle"]);
    check_plan(
        &plan(r#"{ switch = "100us" }"#),
        20,
        expect!["0 low_, 1 high, 3.1 low_, 7.3 idle, 11 high, 13.1 idle"],
    );
    check_plan(
        &plan(r#"{ level = "100us" }"#),
        20,
        expect!["0 low_, 1 high, 3.1 low_, 7.5 idle, 11 high, 13.1 idle"],
    );
    // a decision that the CPU's own timer asked for
    let server = r#"
        machine.costs = { timer = "100us" }
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 2 } }
        task.server = { under.rt = { budget = "2ms", period = "10ms" }, load = "busy" }
        task.worker = { under.top = { priority = 1 }, load = { period = "20ms", work = "5ms" } }
    "#;
    check_plan(server, 20, expect!["0 server, 2 worker, 7.1 idle, 10 server, 12 idle"]);
}

/// Who moves pays for it, and the place it leaves is free only when the switch is over.
#[test]
fn migration_costs() {
    let plan = r#"
        machine = { cpus = 2, costs = { switch = "1ms", migration = "500us" } }
        node.rt = { policy = "reservation", per_cpu = true }
        [task.a]
        under.rt = [{ cpu = 0, budget = "4ms", period = "20ms" }, { cpu = 1, budget = "4ms", period = "20ms" }]
        load = { phases = [{ run = "5ms" }, { sleep = "100ms" }] }
        [task.b]
        under.rt = { cpu = 0, budget = "4ms", period = "20ms" }
        load = "busy"
    "#;
    check_plan(
        plan,
        25,
        expect![[r#"
        0 a, 4 b, 8 idle, 20 b, 24 idle
        0 idle, 5 a, 8.5 idle"#]],
    );
}

/// Less than the floor is not worth a timer: it counts as spent, and comes on top of the next budget.
#[test]
fn floor() {
    let plan = parse(
        r#"
        node.top = { policy = "reservation", cpu = 0 }
        task.a = { under.top = { budget = "2003us", period = "20ms" }, load = "busy" }
        task.b = { under.top = { budget = "1ms", period = "5ms" }, load = { period = "20ms", work = "1ms", phase = "2ms" } }
    "#,
    );
    let play = |floor_ns| schedule(&run_with(&plan, 40 * MS, Options { floor_ns, ..Options::default() }));
    expect!["0 a, 2 b, 3 a, 3.003 idle, 20 a, 22 b, 23 a, 23.003 idle"].assert_eq(&play(0));
    expect!["0 a, 2 b, 3 idle, 20 a, 22 b, 23 a, 23.006 idle"].assert_eq(&play(5_000));
}

/// Stolen time is nobody's: budgets last through interrupts, work takes longer.
#[test]
fn interrupts() {
    let plan = r#"
        machine.interrupts = [{ every = "5ms", takes = "1ms", phase = "1ms" }]
        node.top = { policy = "fixed-priority", cpu = 0 }
        node.rt = { policy = "reservation", under.top = { priority = 2 } }
        task.server = { under.rt = { budget = "2ms", period = "10ms" }, load = "busy" }
        task.worker = { under.top = { priority = 1 }, load = { period = "20ms", work = "4ms" } }
    "#;
    check_plan(plan, 20, expect!["0 server, 3 worker, 8 idle, 10 server, 13 idle"]);
    let run = run(&parse(plan), 1000 * MS, 1);
    assert_eq!(run.task("server").cpu_ns, 200 * MS);
    assert_eq!((run.report.cpus[0].stolen_ns, run.report.cpus[0].idle_ns), (200 * MS, 400 * MS));
    let supply = run.task("server").under[0].supply_ns.unwrap();
    assert_eq!((supply.min, supply.max), (2 * MS, 2 * MS));
}

/// Interrupts that arrive while one is served wait for it; they take nearly all, and time goes on.
#[test]
fn interrupt_storm() {
    let plan = r#"
        machine.interrupts = [{ every = "1ms", takes = "900us", arrival = "poisson" }, { every = "2ms", takes = "150us" }]
        node.top = { policy = "edf", cpu = 0 }
        task.a = { under.top = {}, load = { period = "4ms", work = "1ms" } }
    "#;
    let run = run(&parse(plan), 1000 * MS, 1);
    let (a, cpu) = (run.task("a"), &run.report.cpus[0]);
    assert_eq!(cpu.used_ns + cpu.idle_ns + cpu.stolen_ns, 1000 * MS);
    assert!(cpu.stolen_ns > 850 * MS && a.cpu_ns / MS == a.jobs && a.misses > 100, "{a:?} {cpu:?}");
}

const DRAWING: &str = r#"
    machine.costs = { switch = "1us", timer = "700ns", migration = "2us", level = "100ns" }
    machine.cpus = 2
    machine.interrupts = [{ every = "300us", takes = { min = "1us", max = "9us" }, arrival = "poisson" }]
    node.pool = { policy = "edf", cpus = "all" }
    task.a = { under.pool = {}, load = { period = "3ms", work = { min = "500us", max = "2ms" }, jitter = "1ms" } }
    task.b = { under.pool = {}, load = { separation = "2ms", extra = "3ms", work = { min = "100us", max = "2ms" } } }
    task.c = { under.pool = {}, load = { phases = [{ run = { min = "1ms", max = "3ms" } }, { sleep = { min = "1ms", max = "5ms" } }] } }
"#;

fn events(plan: &Plan, seed: u64) -> Vec<Event> {
    let options = Options { seed, trace: true, ..Options::default() };
    let mut simulation = Simulation::new(plan, options).unwrap();
    simulation.run_until(500 * MS).unwrap();
    simulation.take_events()
}

/// The same in another thread, in steps of any size, and on any machine; another seed is another run.
#[test]
fn determinism() {
    let plan = parse(DRAWING);
    let here = events(&plan, 7);
    let there = std::thread::spawn({
        let plan = plan.clone();
        move || events(&plan, 7)
    });
    assert_eq!(there.join().unwrap(), here);
    assert_ne!(events(&plan, 8), here);

    let options = Options { seed: 7, trace: true, ..Options::default() };
    let mut stepped = Simulation::new(&plan, options).unwrap();
    for at in (0..=500 * MS).step_by(777_777) {
        stepped.run_until(at).unwrap();
        stepped.report();
    }
    stepped.run_until(500 * MS).unwrap();
    assert_eq!(stepped.take_events(), here);

    let told = [Kind::Decision, Kind::JobRelease, Kind::JobStart, Kind::JobComplete, Kind::Miss];
    let here: Vec<_> =
        here.iter().filter(|event| event.kind().is_some_and(|kind| told.contains(&kind))).collect();
    let bytes = here.iter().flat_map(|event| event.to_bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    expect!["2069 events, 26c2856f662471fd"].assert_eq(&format!("{} events, {hash:016x}", here.len()));
}

/// A task more changes when others run, but not what they draw.
#[test]
fn draws_are_each_tasks_own() {
    let releases = |plan: &str| {
        let run = run(&parse(plan), 100 * MS, 3);
        let (a, b) = (run.task("a").id, run.task("b").id);
        let of = |id| {
            let is = |event: &&Event| event.kind() == Some(Kind::JobRelease) && event.a == id;
            run.events.iter().filter(is).map(|event| event.now_ns).collect::<Vec<_>>()
        };
        (of(a), of(b))
    };
    let (before, after) = DRAWING.split_once("    task.a").unwrap();
    let more = format!("{before}    task.zero = {{ under.pool = {{}}, load = {{ period = \"7ms\", work = \"1ms\", jitter = \"2ms\" }} }}\n    task.a{after}");
    assert_eq!(releases(DRAWING), releases(&more));
}

/// What waits is counted and not kept: two of three jobs never begin, and nothing grows.
#[test]
fn backlog_is_counted() {
    let plan = r#"
        node.top = { policy = "reservation", cpu = 0 }
        task.a = { under.top = { budget = "1ms", period = "9ms" }, load = { period = "3ms", work = "1ms", jitter = "1ms" } }
    "#;
    let run = run(&parse(plan), 900 * MS, 1);
    let a = run.task("a");
    assert_eq!((a.released, a.jobs), (300, 100));
    assert_eq!(a.misses, 298, "all but the first and the one due at the end");
    assert!(schedule(&run).starts_with("0 "));
}
