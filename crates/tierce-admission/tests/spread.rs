//! Spread nodes in plans: where their replicas are, what is below them, what they are promised.

#[path = "../../tierce-plan/tests/engine/mod.rs"]
mod engine;

use engine::build;
use tierce_admission::PlanExt;
use tierce_guarantee::Kind;
use tierce_plan::{Options, Plan};

fn plan_on(text: &str, cpus: u32) -> Plan {
    Plan::parse_with(text, "plan.toml", Options { cpus }).unwrap_or_else(|faults| panic!("{faults}"))
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|node| &*node.name).collect()
}

/// "parent child", with ~ where the child moves.
fn edges(plan: &Plan) -> Vec<String> {
    let edge = |edge: &tierce_plan::Edge| {
        let sign = if edge.spread { " ~ " } else { " " };
        format!("{}{sign}{}", plan.nodes[edge.parent].name, plan.child_name(edge.child))
    };
    plan.edges.iter().map(edge).collect()
}

/// Reservations on CPU 0 and nothing said of others.
const ONE_CPU: &str = r#"
    node.top = { policy = "fixed-priority", cpu = 0 }
    node.rt = { policy = "reservation", under.top = { priority = 1 } }
    task.audio.under.rt = { budget = "2ms", period = "10ms", soft = "rest" }
    [node.rest]
    policy = "fair"
    default = true
    under.rt = { budget = "5ms", period = "20ms" }
    under.top = { priority = 0 }
    [tasks.hog]
    count = 3
    under.rest = {}
    load = "busy"
"#;

#[test]
fn cpus_that_the_plan_does_not_name_run_the_default_node() {
    let plan = plan_on(ONE_CPU, 1);
    assert_eq!(names(&plan), ["top", "rt", "rest"]);
    assert!(plan.nodes.iter().all(|node| node.replica.is_none() && node.family.is_none()));
    assert!(plan.edges.iter().all(|edge| !edge.spread));
    for cpus in [2, 3, 8, 64] {
        let plan = plan_on(ONE_CPU, cpus);
        assert_eq!(plan.nodes.len(), 2 + cpus as usize);
        plan.check_runnable(cpus).unwrap_or_else(|faults| panic!("{faults}"));
        build(&plan).unwrap();
        for (index, node) in plan.nodes.iter().enumerate().skip(2) {
            let cpu = index as u32 - 2;
            assert_eq!((node.replica, node.family, node.default), (Some(cpu), Some(2), true));
            assert_eq!(node.roots, if cpu == 0 { vec![] } else { vec![cpu] });
        }
        let all = ["top rt", "rt audio", "rest@0 audio", "rt rest@0", "top rest@0"];
        assert_eq!(edges(&plan)[..5], all);
    }
    let refuse = format!("run.other_cpus = \"refuse\"\n{ONE_CPU}");
    let plan = plan_on(&refuse, 2);
    assert_eq!(names(&plan), ["top", "rt", "rest"]);
    assert_eq!(plan.check_runnable(2).unwrap_err().faults[0].rule, "every_cpu_needs_a_root");
    // As many as it says, and no more than those are all it speaks of.
    let two = "machine.cpus = 2\nnode.top = { policy = \"fixed-priority\", per_cpu = true }\n\
               node.rest = { policy = \"fair\", default = true, under.top = {} }\n";
    let plan = plan_on(two, 4);
    assert_eq!(names(&plan), ["top@0", "top@1", "rest@0", "rest@1", "rest@2", "rest@3"]);
    assert_eq!(edges(&plan), ["top@0 rest@0", "top@1 rest@1"]);
    plan.check_runnable(4).unwrap();
    assert_eq!(plan_on(two, 1).nodes.len(), 4, "the machine of the simulator has both");
}

#[test]
fn what_the_default_node_says_against_being_spread() {
    let rest = |more: &str| {
        let text = format!(
            "node.top = {{ policy = \"fixed-priority\", per_cpu = true }}\n\
             node.all = {{ policy = \"fair\", under.top = {{}} }}\n[node.rest]\ndefault = true\n{more}\n"
        );
        plan_on(&text, 2)
            .nodes
            .iter()
            .filter(|node| node.base == "rest")
            .map(|node| node.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(rest("policy = \"fair\"\nunder.top = {}"), ["rest@0", "rest@1"]);
    for more in [
        "policy = \"fair\"\nspread = false\nunder.top = {}",
        "policy = \"fair\"\nconcurrency = 1\nunder.top = {}",
        "policy = \"fair\"\nunder.top = { rank = 1 }",
        "policy = \"fair\"\nunder.all = {}", // several CPUs share that
        "policy = \"fair\"\nunder.top = { cpu = 1 }",
        "policy = \"edf\"\nunder.top = {}",
    ] {
        assert_eq!(rest(more), ["rest"], "{more}");
    }
}

#[test]
fn what_is_below_a_spread_node() {
    let text = r#"
        node.top = { policy = "fixed-priority", per_cpu = true }
        node.rt = { policy = "reservation", under.top = { cpu = 0, priority = 1 } }
        node.desk = { policy = "fair", spread = true, under.top = {} }
        node.build = { policy = "fair", under.desk = { weight = 7 } }
        node.one = { policy = "fair", spread = false, under.desk = {} }
        node.budgets = { policy = "reservation", under.desk = {} }
        node.there = { policy = "fair", under.desk = { cpu = 1 } }
        [task]
        moves.under.desk = {}
        stays.under.desk = { cpu = 1 }
        two = { affinity = [1, 2], under.build = {} }
        soft.under.rt = { budget = "1ms", period = "10ms", soft = "desk" }
        deep.under.there = {}
    "#;
    let plan = plan_on(text, 3);
    build(&plan).unwrap();
    let all = [
        "top@0 rt",
        "top@0 desk@0",
        "top@1 desk@1",
        "top@2 desk@2",
        "desk@0 build@0",
        "desk@1 build@1",
        "desk@2 build@2",
        "desk@0 one",
        "desk@1 one",
        "desk@2 one",
        "desk@0 budgets",
        "desk@1 budgets",
        "desk@2 budgets",
        "desk@1 there",
        "desk@0 ~ moves",
        "desk@1 stays",
        "build@1 ~ two",
        "rt soft",
        "desk@0 soft",
        "there deep",
    ];
    assert_eq!(edges(&plan), all);
    assert!(plan.edges[4..7].iter().all(|edge| edge.params[0] == 7));
}

#[test]
fn tasks_begin_where_the_weights_are_smallest() {
    let text = |tasks: &str| {
        format!("node.rest = {{ policy = \"fair\", spread = true }}\nnode.inner = {{ policy = \"fair\", under.rest = {{}} }}\n{tasks}")
    };
    let begins = |tasks: &str| -> Vec<String> {
        edges(&plan_on(&text(tasks), 3)).into_iter().filter(|edge| edge.contains('~')).collect()
    };
    assert_eq!(
        begins("[tasks.t]\ncount = 4\nunder.rest = {}\n"),
        ["rest@0 ~ t[0]", "rest@1 ~ t[1]", "rest@2 ~ t[2]", "rest@0 ~ t[3]"]
    );
    let heavy = "task.a.under.rest = { weight = 300 }\ntask.b.under.rest = {}\ntask.c.under.rest = {}\n\
                 task.d.under.rest = {}\ntask.e.under.rest = {}\ntask.f = { affinity = [0], under.rest = {} }\n\
                 task.g.under.inner = {}\n";
    let where_ =
        ["rest@0 ~ a", "rest@1 ~ b", "rest@2 ~ c", "rest@1 ~ d", "rest@2 ~ e", "rest@0 ~ f", "inner@0 ~ g"];
    assert_eq!(begins(heavy), where_);
}

/// Of all that want the CPU all the time: per cent of a CPU on average, and the kind of the strongest promise.
fn verdicts(text: &str, cpus: u32) -> Vec<(String, u64, Kind)> {
    let plan = plan_on(text, cpus);
    let admission = plan.admit();
    let verdict = |(task, verdict): (&tierce_plan::Task, &tierce_admission::TaskVerdict)| {
        let supply = verdict.available.clone().expect("it is known") * tierce_guarantee::whole(100);
        let percent = u64::try_from(supply.floor().to_integer()).unwrap();
        (task.name.clone(), percent, verdict.promises[0].guarantee.kind())
    };
    plan.tasks.iter().zip(&admission.tasks).map(verdict).collect()
}

#[test]
fn what_moves_is_promised_nothing_and_gets_its_share_on_average() {
    let hogs = "node.rest = { policy = \"fair\", spread = true }\ntasks.hog = { count = 3, load = \"busy\", under.rest = {} }\n";
    assert!(verdicts(hogs, 2).iter().all(|(_, percent, kind)| (*percent, *kind) == (66, Kind::Null)));
    assert!(verdicts(hogs, 1).iter().all(|(_, percent, kind)| (*percent, *kind) == (33, Kind::Psbe)));
    assert!(verdicts(hogs, 4).iter().all(|(_, percent, _)| *percent == 100), "not more than a CPU each");
    // Who stays has a share among all that may come.
    let more = format!("{hogs}task.stays = {{ load = \"busy\", under.rest = {{ cpu = 1 }} }}\n\
                        task.bound = {{ load = \"busy\", affinity = [0], under.rest = {{ weight = 300 }} }}\n");
    let found = verdicts(&more, 2);
    assert_eq!(found[3], ("stays".into(), 28, Kind::Ps)); // 200 % among 700
    assert_eq!(found[4], ("bound".into(), 85, Kind::Ps));
    let plan = plan_on(&more, 2);
    let promised: Vec<_> =
        plan.admit().tasks.iter().map(|task| task.promises[0].guarantee.to_string()).collect();
    assert_eq!(promised[3..], ["PS 1/4", "PS 1/2"]); // of one CPU, among 400 and 600
    let turns = more.replace("\"fair\"", "\"round-robin\"").replace("{ weight = 300 }", "{}");
    let promised: Vec<_> =
        plan_on(&turns, 2).admit().tasks.iter().map(|task| task.promises[0].guarantee.to_string()).collect();
    assert_eq!(promised[3..], ["RESCS 3ms 12ms", "RESCS 3ms 12ms"]);
}

#[test]
fn one_warning_for_all_replicas() {
    let text = "node.rest = { policy = \"fair\", spread = true }\ntasks.hog = { count = 3, load = \"busy\", under.rest = {} }\n\
                task.job = { load = { period = \"10ms\", work = \"1ms\", soft = true }, under.rest = {} }\n";
    let plan = plan_on(text, 8);
    let warnings = plan.admit().warnings(&plan);
    let rules: Vec<_> = warnings.iter().map(|warning| warning.rule).collect();
    assert_eq!(rules, ["delay_grows_with_children"]);
    assert!(
        warnings[0].message.contains("below `rest`: it may wait for 3 others"),
        "{}",
        warnings[0].message
    );
}

#[test]
fn jobs_that_may_come_late_bound_nobody() {
    let text = r#"
        [node.rest]
        policy = "fixed-priority"
        spread = true
        [task]
        first = { load = { period = "10ms", work = "1ms" }, under.rest = { cpu = 0, priority = 9 } }
        moves = { load = { period = "10ms", work = "1ms", soft = true }, under.rest = { priority = 5 } }
        last = { load = { period = "10ms", work = "1ms", soft = true }, under.rest = { cpu = 0, priority = 1 } }
    "#;
    let bounds: Vec<_> = plan_on(text, 2).admit().tasks.iter().map(|task| task.response.is_some()).collect();
    assert_eq!(bounds, [true, false, false]);
    assert_eq!(plan_on(text, 1).admit().tasks.iter().filter(|task| task.response.is_some()).count(), 3);
}

#[test]
fn equal_cpus_are_drawn_once() {
    let plan = plan_on(ONE_CPU, 8);
    let text = plan.admit().outline(&plan);
    assert!(text.lines().count() < 17, "{text}");
    for line in ["CPU 1..7\n", "└─ rest@1..7 ", "rest, spread over CPU 0..7\n", "└─ hog[0..2] "] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
}
