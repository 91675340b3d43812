//! What `tierce check` says of nodes and tasks with budgets on several CPUs.

use tierce_admission::{Admission, Deadlines, PlanExt};
use tierce_plan::Plan;

/// Two CPUs, each with a reservation `rt`; `container` has 2 ms in 10 ms on CPU 0 and 4 ms in 20 ms on CPU 1.
const BASE: &str = r#"
machine.cpus = 2
[node.top]
policy = "fixed-priority"
per_cpu = true
[node.rt]
policy = "reservation"
per_cpu = true
under.top = { priority = 1 }
[node.container]
policy = "fixed-priority"
under.rt = [{ cpu = 0, budget = "2ms", period = "10ms" }, { cpu = 1, budget = "4ms", period = "20ms" }]
[task.first]
under.container = { priority = 2 }
load = { period = "100ms", work = "3ms" }
[task.second]
under.container = { priority = 1 }
load = { period = "100ms", work = "3ms" }
"#;

fn plan(text: &str) -> Plan {
    Plan::parse(text, "plan.toml").unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()))
}

fn admit(text: &str) -> (Plan, Admission) {
    let plan = plan(text);
    let admission = plan.admit();
    (plan, admission)
}

/// What is promised to a task, and its longest response.
fn task(text: &str, name: &str) -> (Vec<String>, Option<u64>, Deadlines) {
    let (plan, admission) = admit(text);
    let at = plan.tasks.iter().position(|task| task.name == name).unwrap();
    let verdict = &admission.tasks[at];
    let promises = verdict.promises.iter().map(|promise| promise.guarantee.to_string()).collect();
    (promises, verdict.response.and_then(|response| response.ns()), verdict.deadlines)
}

fn node(text: &str, name: &str) -> (Vec<String>, String) {
    let (plan, admission) = admit(text);
    let at = plan.nodes.iter().position(|node| node.name == name).unwrap();
    let promises = &admission.nodes[at].promises;
    (promises.iter().map(|promise| promise.guarantee.to_string()).collect(), promises[0].because.to_string())
}

const MS: u64 = 1_000_000;

#[test]
fn shares_and_responses() {
    let (promises, because) = node(BASE, "container");
    assert_eq!(promises, ["PSBE 1/3 4ms", "PSBE 1/5 1.6ms", "PSBE 1/5 3.2ms"]);
    assert_eq!(
        because,
        "budgets of 2ms in every 10ms on CPU 0, 4ms in every 20ms on CPU 1; together 40 % of a CPU, as long as it has a ready task for each of its CPUs"
    );
    let (promises, response, deadlines) = task(BASE, "first");
    assert_eq!(promises, ["PSBE 1/5 1.6ms", "PSBE 1/5 3.2ms"]);
    // Below 2 ms nothing is used up; of 3 ms the first 2 may be the budget on CPU 0, and on CPU 1 whoever is below runs meanwhile.
    assert_eq!((response, deadlines), (Some(19 * MS), Deadlines::Met));
    let (promises, response, deadlines) = task(BASE, "second");
    assert_eq!((promises, deadlines), (vec!["NULL".into()], Deadlines::Met));
    assert!(response.is_some_and(|ns| (20 * MS..60 * MS).contains(&ns)), "{response:?}");
    // One child alone gets what there is, whatever the policy.
    let single = BASE.split("[task.second]").next().unwrap();
    for policy in ["fixed-priority", "fair", "round-robin", "edf"] {
        let text = single
            .replace("policy = \"fixed-priority\"\nunder.rt", &format!("policy = \"{policy}\"\nunder.rt"));
        let text = if policy == "fixed-priority" {
            text
        } else {
            text.replace("container = { priority = 2 }", "container = {}")
        };
        let (promises, ..) = task(&text, "first");
        assert_eq!(promises[0], "PSBE 1/3 4ms", "{policy}");
    }
    // By deadlines, all or none.
    let edf = BASE.replace("policy = \"fixed-priority\"\nunder.rt", "policy = \"edf\"\nunder.rt");
    let edf = edf
        .replace("container = { priority = 2 }", "container = {}")
        .replace("container = { priority = 1 }", "container = {}");
    assert_eq!(task(&edf, "second").2, Deadlines::Met);
    assert_eq!(task(&edf.replace("work = \"3ms\"", "work = \"18ms\""), "second").2, Deadlines::NotShown);
}

/// A task with budgets of its own on both CPUs.
#[test]
fn a_task_with_two_budgets() {
    let text = BASE.split("[node.container]").next().unwrap().to_string()
        + "[task.t]\nunder.rt = [{ cpu = 0, budget = \"2ms\", period = \"10ms\" }, { cpu = 1, budget = \"2ms\", period = \"10ms\" }]\n\
           load = { period = \"20ms\", work = \"3ms\" }\n";
    let (promises, response, deadlines) = task(&text, "t");
    assert_eq!(promises, ["PSBE 1/3 2.666667ms", "PSBE 1/5 1.6ms"]);
    assert_eq!((response, deadlines), (Some(11 * MS), Deadlines::Met));
}

/// What others may take of the CPUs counts: servers by deadline and by priority, those above the reservation.
#[test]
fn others_count() {
    let other = "[task.o]\nunder.rt = { cpu = 0, budget = \"5ms\", period = \"10ms\" }\nload = \"busy\"\n";
    let with = |text: &str| task(&format!("{text}{other}"), "first").0;
    // 1/5·1/2, 1/5·(2·5·(1 − 1/2) + 8).
    assert_eq!(with(BASE), ["PSBE 1/5 3.2ms", "PSBE 1/10 2.6ms"]);
    let by_priority =
        BASE.replace("policy = \"reservation\"", "policy = \"reservation\"\norder = \"fixed-priority\"");
    // Of equal priority the container comes first in the text; of larger priority others take U·t + Q·(1 − U).
    assert_eq!(with(&by_priority), ["PSBE 1/5 1.6ms", "PSBE 1/5 3.2ms"]);
    let before = other.replace("period = \"10ms\" }", "period = \"10ms\", priority = 1 }");
    assert_eq!(task(&format!("{by_priority}{before}"), "first").0, ["PSBE 1/5 3.2ms", "PSBE 1/10 2.1ms"]);
    let above =
        "[task.o]\nunder.top = { cpu = 0, priority = 2 }\nload = { period = \"10ms\", work = \"5ms\" }\n";
    assert_eq!(task(&format!("{BASE}{above}"), "first").0, ["PSBE 1/5 3.2ms", "PSBE 1/10 2.1ms"]);
    let (promises, because) =
        node(&format!("{BASE}{above}").replace("work = \"5ms\"", "work = \"10ms\""), "container");
    assert_eq!(promises, ["NULL"], "{because}");
}

/// Why nothing is known, each reason by itself.
#[test]
fn reasons() {
    let change = |from: &str, to: &str| {
        assert!(BASE.contains(from), "{from}");
        BASE.replace(from, to)
    };
    let second = "period = \"20ms\" }";
    let cases = [
        (
            change(
                "under.rt = [{ cpu = 0, budget = \"2ms\", period = \"10ms\" }, { cpu = 1, budget = \"4ms\", period = \"20ms\" }]",
                "under.top = [{ cpu = 0, priority = 2 }, { cpu = 1, priority = 2 }]",
            ),
            "`top@0` gives no budgets",
        ),
        (change("machine.cpus = 2", "machine = { cpus = 2, costs = { switch = \"10us\" } }"), "what it costs to move between budgets is not known"),
        (change(second, "period = \"20ms\", rank = 1 }"), "its edges have different ranks"),
        (change(second, "period = \"20ms\", deadline = \"10ms\" }"), "its budget in `rt@1` has a deadline below its period"),
        (
            change("policy = \"reservation\"", "policy = \"reservation\"\nreplenishment = \"soft\""),
            "budgets of `rt@0` are neither hard nor periodic",
        ),
        (
            change("policy = \"reservation\"", "policy = \"reservation\"\nreplenishment = \"sporadic\""),
            "budgets of `rt@0` are neither hard nor periodic",
        ),
        (
            change("policy = \"reservation\"", "policy = \"reservation\"\ncharge = \"wall\"")
                .replace("machine.cpus = 2", "machine = { cpus = 2, interrupts = [{ cpu = 1, every = \"1ms\", takes = \"10us\" }] }"),
            "interrupts come off the budgets of `rt@1`",
        ),
        (change("[task.first]", "[task.x]\nunder.top = { cpu = 1, priority = 1 }\nload = \"busy\"\n[task.first]"), "the budgets of `rt@1` do not fit"),
        (
            change("[task.first]", "[tasks.x]\nunder.rt = { cpu = 0, budget = \"1ms\", period = \"100ms\" }\nmatch = { comm = \"x\" }\n[task.first]"),
            "any number of threads may match the set `x` below `rt@0`",
        ),
        (
            change("policy = \"fixed-priority\"\nper_cpu = true", "policy = \"fair\"\nper_cpu = true").replace("under.top = { priority = 1 }", "under.top = {}"),
            "`rt@0` has neither a whole CPU nor what bounded higher priorities leave of one",
        ),
        (change("load = { period = \"100ms\", work = \"3ms\" }\n[task.second]", "load = \"busy\"\naffinity = [0]\n[task.second]"), "`first` may not run on all of them, or runs elsewhere, too"),
        (
            change("{ cpu = 1, budget = \"4ms\", period = \"20ms\" }", "{ cpu = 1, budget = \"4ms\", period = \"20ms\" }]\nunder.top = [{ cpu = 0, priority = 0 }"),
            "it has more than one way to a CPU",
        ),
    ];
    for (text, why) in cases {
        let (promises, because) = node(&text, "container");
        assert_eq!(promises, ["NULL"], "{why}\n{text}");
        let expected = format!("several CPUs reach `container`: {why}");
        assert!(because.starts_with(&expected), "{because}\n{why}");
    }
}

/// Why a deadline is not shown, and which budget would have to be larger.
#[test]
fn what_would_mend_it() {
    let text = BASE
        .replace("work = \"3ms\" }\n[task.second]", "work = \"15ms\", deadline = \"40ms\" }\n[task.second]");
    let (plan, admission) = admit(&text);
    assert!(!admission.holds);
    let outline = admission.outline(&plan).to_string();
    for part in [
        "budgets of 2ms in every 10ms on CPU 0, 4ms in every 20ms on CPU 1 are not proved to be enough beside those of higher priority",
        "The plan would hold (tried): raise the budget of `container` in `rt@0` from 2ms to 3.75ms (by 1.75ms).",
        "The plan would hold (tried): raise the budget of `container` in `rt@1` from 4ms to 7.5ms (by 3.5ms).",
    ] {
        assert!(outline.contains(part), "{part}\n{outline}");
    }
}

/// A need is shown by what follows from the promise, not by a sum of what each CPU is sure to supply.
#[test]
fn needs() {
    let need = |need: &str| {
        let text = BASE.replace("[task.first]", &format!("needs = \"{need}\"\n[task.first]"));
        let (plan, admission) = admit(&text);
        let at = plan.nodes.iter().position(|node| node.name == "container").unwrap();
        admission.nodes[at].needs[0].is_ok()
    };
    assert!(need("PSBE 1/5 1.6ms") && need("PSBE 1/3 4ms") && need("RESCS 2ms 18ms"));
    // Two periodic resources would have 4 in 26 ms and more together.
    assert!(!need("RESCS 9ms 36ms") && !need("PSBE 2/5 100ms"));
}
