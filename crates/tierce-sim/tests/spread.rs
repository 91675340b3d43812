//! Spread nodes: shares over several CPUs, work conservation, where tasks wake up, what is counted.

mod common;

use common::{check_plan, parse, run, run_with, Maker, Run, MS};
use expect_test::expect;
use tierce_plan::Plan;
use tierce_policy::Migration;
use tierce_sim::{Options, Simulation};
use tierce_trace::{Event, Kind};

fn spread(cpus: u32, policy: &str, tasks: &str) -> String {
    format!("machine.cpus = {cpus}\n[node.all]\npolicy = \"{policy}\"\nspread = true\n{tasks}")
}

fn hogs(weights: &[u64]) -> String {
    let task =
        |(index, weight)| format!("[task.h{index}]\nunder.all = {{ weight = {weight} }}\nload = \"busy\"\n");
    weights.iter().enumerate().map(task).collect()
}

fn report(plan: &Plan, for_ms: u64) -> tierce_trace::Report {
    let mut simulation = Simulation::new(plan, Options::default()).unwrap();
    simulation.run_until(for_ms * MS).unwrap();
    simulation.report()
}

/// What each task would get of `cpus` CPUs by weight, no task more than one: in ns of `for_ns`.
fn ideal(weights: &[u64], cpus: u64, for_ns: u64) -> Vec<u64> {
    let mut shares = vec![None; weights.len()];
    loop {
        let left = cpus * for_ns - shares.iter().flatten().sum::<u64>();
        let open = || (0..weights.len()).filter(|&task| shares[task].is_none());
        let sum: u64 = open().map(|task| weights[task]).sum();
        let capped: Vec<usize> = open().filter(|&task| weights[task] * left >= sum * for_ns).collect();
        if capped.is_empty() {
            let share = |task: usize| shares[task].unwrap_or(weights[task] * left / sum.max(1));
            return (0..weights.len()).map(share).collect();
        }
        capped.into_iter().for_each(|task| shares[task] = Some(for_ns));
    }
}

/// Busy tasks of these weights get their ideal shares over 10 s, within so many per cent of a CPU.
fn shares_are_ideal(cpus: u64, weights: &[u64], percent: u64) {
    let for_ns = 10_000 * MS;
    let report = report(&parse(&spread(cpus as u32, "fair", &hogs(weights))), 10_000);
    let got: Vec<u64> = report.tasks.iter().map(|task| task.cpu_ns).collect();
    let ideal = ideal(weights, cpus, for_ns);
    let far = |(got, ideal): (&u64, &u64)| got.abs_diff(*ideal) > for_ns / 100 * percent;
    assert!(!got.iter().zip(&ideal).any(far), "{weights:?} on {cpus} CPUs: {got:?}, not {ideal:?}");
    assert_eq!(got.iter().sum::<u64>(), cpus * for_ns, "no CPU idles");
    assert_eq!(report.idle_while_waiting.unwrap().total_ns, 0);
}

#[test]
fn equal_tasks_get_equal_shares() {
    shares_are_ideal(2, &[1, 1, 1], 2);
    shares_are_ideal(4, &[1; 5], 2);
    shares_are_ideal(4, &[1; 7], 2);
    shares_are_ideal(3, &[1; 10], 2);
}

#[test]
fn shares_follow_weights_up_to_one_cpu() {
    shares_are_ideal(2, &[1, 2, 3], 3);
    shares_are_ideal(4, &[1, 2, 3, 1, 2, 3], 3);
    shares_are_ideal(4, &[1, 2, 3, 1, 2, 3, 1, 2, 3], 3);
    shares_are_ideal(4, &[1, 1, 1, 1, 1, 20], 3);
}

/// Random tasks that run and sleep, some of them bound to a few CPUs.
fn random(seed: u64) -> String {
    let mut maker = Maker::new(seed, "spread");
    let cpus = maker.between(2, 8);
    let policy = ["fair", "fixed-priority", "round-robin", "time-sharing"][maker.between(0, 3) as usize];
    let mut tasks = String::new();
    for index in 0..maker.between(2, 4 * cpus) {
        let load = match maker.between(0, 2) {
            0 => "\"busy\"".into(),
            1 => {
                let period = maker.between(3, 40);
                format!("{{ period = \"{period}ms\", work = \"{}us\" }}", maker.between(100, period * 1_000))
            }
            _ => {
                let [run, sleep] = [maker.between(50, 9_000), maker.between(50, 9_000)];
                format!("{{ phases = [{{ run = \"{run}us\" }}, {{ sleep = \"{sleep}us\" }}] }}")
            }
        };
        let affinity = match maker.between(0, 4) {
            0 => format!("affinity = [{}]\n", maker.between(0, cpus - 1)),
            1 => format!("affinity = [0, {}]\n", maker.between(1, cpus - 1)),
            _ => String::new(),
        };
        tasks += &format!("[task.t{index}]\nunder.all = {{}}\n{affinity}load = {load}\n");
    }
    spread(cpus as u32, policy, &tasks)
}

#[test]
fn no_cpu_idles_while_a_task_that_may_run_there_waits() {
    for seed in 0..60 {
        let plan = random(seed);
        let report = run(&parse(&plan), 300 * MS, seed).report; // the same twice, too
        let found = report.idle_while_waiting.unwrap();
        assert_eq!((found.total_ns, found.longest), (0, None), "seed {seed}\n{plan}");
    }
}

#[test]
fn another_seed_is_another_run() {
    let task =
        "[task.a]\nunder.all = {}\nload = { period = \"5ms\", work = { min = \"1ms\", max = \"4ms\" } }\n";
    let plan = parse(&spread(
        2,
        "fair",
        &(0..4).map(|n| task.replace("task.a", &format!("task.a{n}"))).collect::<String>(),
    ));
    let [one, other] = [1, 2].map(|seed| run(&plan, 200 * MS, seed));
    assert_ne!(one.events, other.events);
}

/// What moved: when, from and to which CPU, and why.
fn moves(run: &Run) -> String {
    let moves = run.events.iter().filter(|event| event.kind() == Some(Kind::Migrate));
    let line = |event: &Event| {
        let (why, waits) = event.migration().unwrap();
        let name = run.header.name(event.a).unwrap();
        let state = if waits { "waiting" } else { "sleeping" };
        format!("{} {name} {}>{} {state}, {}\n", event.now_ns / 1_000, event.b, event.cpu, why.name())
    };
    moves.map(line).collect()
}

#[test]
fn migrations_are_counted_by_reason() {
    let plan = spread(
        2,
        "fair",
        "[task.a]\nunder.all = {}\nload = { phases = [{ run = \"3ms\" }, { sleep = \"20ms\" }] }
         [task.b]\nunder.all = {}\nload = \"busy\"
         [task.c]\nunder.all = {}\nload = { phases = [{ run = \"6ms\" }, { sleep = \"4ms\" }] }
         [task.d]\nunder.all = {}\nload = \"busy\"
        ",
    );
    let run = run(&parse(&plan), 60 * MS, 1);
    expect![[r#"
        9000 d 1>0 waiting, pull
        23000 a 0>1 waiting, balance
        33000 c 0>1 waiting, balance
    "#]]
    .assert_eq(&moves(&run));
    let counted = |why: Migration| {
        let of = |event: &&Event| event.migration().is_some_and(|(other, _)| other == why);
        run.events.iter().filter(|event| event.kind() == Some(Kind::Migrate)).filter(of).count() as u64
    };
    let all = run.report.moves.unwrap();
    assert_eq!([all.wake_up, all.pull, all.balance, all.affinity], Migration::ALL.map(counted));
    let each: u64 = run.report.tasks.iter().filter_map(|task| task.moves).map(|moves| moves.total()).sum();
    assert_eq!(each, all.total());
}

/// Where a task whose home is CPU 0 wakes at 10 ms, when these CPUs are busy.
fn wakes_on(topology: &str, busy: &[u32]) -> u16 {
    let mut tasks = "[task.w]\nunder.all = {}\nload = { period = \"10ms\", work = \"1ms\" }\n".to_string();
    for cpu in busy {
        tasks += &format!(
            "[task.h{cpu}]\nunder.all = {{}}\naffinity = [{cpu}]\nload = {{ phases = [{{ run = \"1s\" }}], phase = \"5ms\" }}\n"
        );
    }
    let plan = spread(8, "fair", &tasks)
        .replace("machine.cpus = 8", &format!("machine = {{ cpus = 8, topology = {topology} }}"));
    let run = run(&parse(&plan), 15 * MS, 1);
    let w = run.task("w").id;
    let decisions = || run.events.iter().filter(|event| event.kind() == Some(Kind::Decision) && event.a == w);
    assert_eq!(decisions().next().unwrap().cpu, 0, "its home");
    decisions().find(|event| event.now_ns == 10 * MS).unwrap().cpu
}

#[test]
fn a_task_wakes_near_its_home() {
    let smt = "{ smt = 2, cache = 4, node = 8 }";
    for (topology, busy, cpu) in [
        (smt, &[1, 2][..], 0), // its home, though another core is idle as a whole: the home comes first
        (smt, &[0], 2),        // an idle core with the same cache before the idle SMT sibling
        (smt, &[0, 2], 1),     // no idle core there: any idle CPU with the same cache
        (smt, &[0, 1, 2], 3),  // the same cache before an idle core elsewhere
        (smt, &[0, 1, 2, 3], 4), // the same node
        ("{ cache = 2, node = 4 }", &[0], 1),
        ("{ cache = 2, node = 4 }", &[0, 1], 2),
        ("{ cache = 2, node = 4 }", &[0, 1, 2, 3], 4),
        ("{ cache = [[0, 7]], node = [[0, 7, 6]] }", &[0], 7),
        ("{ cache = [[0, 7]], node = [[0, 7, 6]] }", &[0, 7], 6),
        ("{ cache = [[0, 7]], node = [[0, 7, 6]] }", &[0, 6, 7], 1),
    ] {
        assert_eq!(wakes_on(topology, busy), cpu, "{topology}, {busy:?} busy");
    }
}

/// Two tasks wait, on CPU 1 (another cache) and CPU 2 (the same one); CPU 3 becomes idle.
#[test]
fn an_idle_cpu_pulls_from_the_nearest_cache() {
    let waits = |name: &str, cpu: u32| {
        let load = "load = { phases = [{ run = \"1s\" }], phase = \"1ms\" }";
        format!(
            "[task.{name}-2]\nunder.all = {{}}\naffinity = [{cpu}, 3]\n{load}
             [task.{name}]\nunder.all = {{}}\naffinity = [{cpu}]\n{load}\n"
        )
    };
    let x = "[task.x]\nunder.all = {}\naffinity = [3]\nload = { phases = [{ run = \"3ms\" }, { sleep = \"1s\" }] }\n";
    let tasks = format!("{}{}{x}", waits("far", 1), waits("near", 2));
    let plan = spread(4, "fair", &tasks)
        .replace("machine.cpus = 4", "machine = { cpus = 4, topology = { cache = 2 } }");
    let run = run(&parse(&plan), 7 * MS, 1);
    expect![[r#"
        4000 near-2 2>3 waiting, pull
    "#]]
    .assert_eq(&moves(&run));
}

#[test]
fn a_migration_costs_by_its_distance() {
    // Alone at home at 0; woken at 10 ms on another CPU, where it pays for switch and migration.
    let response = |busy: &str, wakes: u16| {
        let mut tasks =
            "[task.w]\nunder.all = {}\nload = { period = \"10ms\", work = \"1ms\" }\n".to_string();
        let hogs = busy
            .split(' ')
            .map(|cpu| format!("[task.h{cpu}]\nunder.all = {{}}\naffinity = [{cpu}]\nload = {{ phases = [{{ run = \"1s\" }}], phase = \"5ms\" }}\n"));
        tasks.extend(hogs);
        let machine = "machine = { cpus = 8, topology = { smt = 2, cache = [[0, 1, 2, 3], [4, 5], [6, 7]], node = [[0, 1, 2, 3, 4, 5], [6, 7]] }, \
                       costs = { switch = \"1us\", migration = { smt = \"2us\", cache = \"4us\", other = \"16us\" } } }";
        let run = run(&parse(&spread(8, "fair", &tasks).replace("machine.cpus = 8", machine)), 19 * MS, 1);
        let w = run.task("w").id;
        let of =
            |kind: Kind| run.events.iter().filter(move |event| event.kind() == Some(kind) && event.a == w);
        assert_eq!(of(Kind::Decision).find(|event| event.now_ns >= 10 * MS).unwrap().cpu, wakes);
        of(Kind::JobComplete).find(|event| event.b == 2).unwrap().value - MS
    };
    assert_eq!(response("7", 0), 1_000);
    assert_eq!(response("0 2 3", 1), 3_000, "to the SMT sibling");
    assert_eq!(response("0", 2), 5_000, "within the cache");
    assert_eq!(response("0 1 2 3", 4), 5_000, "within the node: as much as the next nearer");
    assert_eq!(response("0 1 2 3 4 5", 6), 17_000, "to another node");
}

/// Replicas with 4 ms in 10 ms on each CPU: a task moves away when its replica is throttled, and waits when all are.
#[test]
fn a_throttled_replica_keeps_nobody() {
    let plan = |tasks: &str| {
        format!(
            "machine.cpus = 2\n[node.top]\npolicy = \"reservation\"\nper_cpu = true\n[node.all]\npolicy = \"fair\"\nspread = true
             under.top = {{ budget = \"4ms\", period = \"10ms\" }}\n{tasks}"
        )
    };
    let text = plan("[task.a]\nunder.all = {}\nload = \"busy\"\n");
    check_plan(
        &text,
        20,
        expect![[r#"
        0 a, 4 idle, 10 a, 14 idle
        0 idle, 4 a, 8 idle, 14 a, 18 idle"#]],
    );
    let run = run(&parse(&text), 100 * MS, 1);
    assert_eq!(run.task("a").cpu_ns, 80 * MS, "4 ms of each CPU in 10 ms");
    assert_eq!(run.report.idle_while_waiting.as_ref().unwrap().total_ns, 0);
}

/// A task bound to a CPU whose replica is throttled waits there.
#[test]
fn who_may_not_move_waits_for_the_budget() {
    let text = "machine.cpus = 2\n[node.top]\npolicy = \"reservation\"\nper_cpu = true\n[node.all]\npolicy = \"fair\"\nspread = true
         under.top = { budget = \"4ms\", period = \"10ms\" }
         [task.a]\nunder.all = {}\naffinity = [0]\nload = \"busy\"\n";
    let run = run_with(&parse(text), 100 * MS, Options { floor_ns: 2_000, ..Options::default() });
    assert_eq!(run.task("a").cpu_ns, 40 * MS);
    assert_eq!(run.report.idle_while_waiting.unwrap().total_ns, 0);
}

/// Two tasks begin on one of two CPUs that are never idle, since tasks of a lower priority are busy there. Below a budget of 38 ms in
/// 50 ms on each CPU one of them goes to the other CPU, and each has the 30 ms that it wants.
#[test]
fn a_budget_that_nobody_uses_on_another_cpu_is_used() {
    let plan = parse(
        "machine.cpus = 2\n[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n\
         [node.system]\npolicy = \"reservation\"\nper_cpu = true\nunder.top = { priority = 2 }\n\
         [node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = { priority = 0 }\n\
         under.system = { cpu = \"all\", budget = \"38ms\", period = \"50ms\" }\n\
         [task.user-0]\nunder.top = { cpu = 0, priority = 1 }\nload = \"busy\"\n\
         [task.user-1]\nunder.top = { cpu = 1, priority = 1 }\nload = \"busy\"\n\
         [task.a]\nunder.rest = {}\nload = { period = \"50ms\", work = \"30ms\" }\n\
         [task.once]\nunder.rest = {}\nload = { phases = [{ run = \"1ms\" }, { sleep = \"100s\" }] }\n\
         [task.b]\nunder.rest = {}\nload = { period = \"50ms\", work = \"30ms\" }\n",
    );
    let run = run(&plan, 10_000 * MS, 1);
    println!("{}", moves(&run));
    for name in ["a", "b"] {
        let task = run.task(name);
        assert!(task.cpu_ns >= 5_900 * MS, "{name}: {} ms", task.cpu_ns / MS);
    }
    // They stay there.
    assert!(run.report.moves.unwrap().total() <= 2, "{}", moves(&run));
}

/// Two threads of one user beside four of another, with a copy of a node for each; one budget on each CPU has the period in which tasks
/// are given to other CPUs. Sources of other tasks make CPUs idle at times.
#[test]
fn users_share_equally_whatever_their_threads() {
    const PLAN: &str = "machine.cpus = 2\n[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n\
        [node.rt]\npolicy = \"reservation\"\nper_cpu = true\nunder.top = { priority = 1 }\n\
        [node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = { priority = 0 }\n\
        [node.alice]\npolicy = \"fair\"\nunder.rest = { weight = 400 }\n\
        [node.bob]\npolicy = \"fair\"\nunder.rest = { weight = 400 }\n\
        [task.sure]\nunder.rt = { cpu = 0, budget = \"2ms\", period = \"10ms\" }\nload = \"busy\"\n\
        [task.service]\nunder.rt = { cpu = 1, budget = \"1ms\", period = \"10ms\" }\nload = \"busy\"\n";
    let thread = |user: &str, at_ms: u64| {
        let load = format!("{{ phases = [{{ run = \"100s\" }}], phase = \"{at_ms}ms\" }}");
        format!("[task.{user}-{at_ms}]\nunder.{user} = {{}}\nload = {load}\n")
    };
    let threads: String = [10, 20].map(|at| thread("alice", at)).concat()
        + &[130, 140, 150, 160].map(|at| thread("bob", at)).concat();
    for noise in ["", "[tasks.noise]\ncount = 4\nunder.rest = {}\nload = { separation = \"7ms\", extra = \"9ms\", work = \"200us\" }\n"] {
        let report = report(&parse(&format!("{PLAN}{threads}{noise}")), 10_000);
        let of = |user: &str| -> u64 {
            report.tasks.iter().filter(|task| task.name.starts_with(user)).map(|task| task.cpu_ns).sum()
        };
        let (alice, bob) = (of("alice"), of("bob"));
        assert!(alice * 100 > (alice + bob) * 47, "{alice} {bob}");
        assert!(alice * 100 < (alice + bob) * 53, "{alice} {bob}");
    }
}
