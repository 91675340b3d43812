//! What check says of plans that do not hold: where they break first, which test refuses, by how much, and what would mend them,
//! each change tried. `UPDATE=1` writes what is expected anew.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use serde_json::json;
use std::path::{Path, PathBuf};
use tierce_admission::{Above, Admission, PlanExt, Remedy, Reserved};
use tierce_plan::{Child, Cpus, Load, Plan, Work};

fn plans() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/verdicts");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    files
}

fn load(path: &Path) -> (Plan, Admission) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let plan = Plan::parse(&text, name).unwrap_or_else(|faults| panic!("{}", faults.report_plain()));
    let admission = plan.admit();
    assert!(!admission.holds, "{name} holds");
    (plan, admission)
}

#[test]
fn verdicts_are_as_expected() {
    let mut different = Vec::new();
    for path in plans() {
        let (plan, admission) = load(&path);
        let outline = admission.outline(&plan);
        let verdict: Vec<_> = outline.split("\n\n").skip(2).collect();
        let (verdict, expected) = (verdict.join("\n\n"), path.with_extension("expected"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&expected, &verdict).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != verdict {
            different.push(format!("{}:\n{verdict}", expected.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Each change makes the plan hold there, and one smaller by the least step does not.
#[test]
fn each_remedy_is_the_smallest_that_mends() {
    let (mut tried, mut sections, mut thresholds) = (0, 0, 0);
    for path in plans() {
        let (plan, admission) = load(&path);
        for broken in admission.broken(&plan) {
            for remedy in &broken.remedies {
                let words = format!("{}: {}", path.display(), remedy.words(&plan));
                assert!(broken.is_mended_by(&plan, remedy), "{words}");
                let nearer = |from, to| if to > from { to - 1 } else { to + 1 };
                let less = match *remedy {
                    Remedy::Parameter { edge, at, from, to } => {
                        Some(Remedy::Parameter { edge, at, from, to: nearer(from, to) })
                    }
                    Remedy::Section { edge, lock, from, to } => {
                        Some(Remedy::Section { edge, lock, from, to: nearer(from, to) })
                    }
                    Remedy::Threshold { edge, from, to } => {
                        Some(Remedy::Threshold { edge, from, to: nearer(from, to) })
                    }
                    Remedy::Work { .. } | Remedy::Parent { .. } => None,
                };
                assert!(less.is_none_or(|less| !broken.is_mended_by(&plan, &less)), "{words}");
                sections += usize::from(matches!(remedy, Remedy::Section { .. }));
                thresholds += usize::from(matches!(remedy, Remedy::Threshold { .. }));
                tried += 1;
            }
        }
    }
    assert!(tried > 20 && sections >= 7 && thresholds >= 2, "{tried} {sections} {thresholds}");
}

/// The plan with the work or budget that a failure's smallest reduction says.
fn reduced(plan: &Plan, mend: &tierce_admission::Mend, to_ns: u64) -> Plan {
    let mut plan = plan.clone();
    match (mend.parameter, plan.edges[mend.edge].child) {
        ("work", Child::Task(task)) => match &mut plan.tasks[task].load {
            Some(Load::Periodic(load)) => load.work = Work::Constant(to_ns),
            _ => panic!("no jobs"),
        },
        ("budget", _) => {
            assert_eq!(plan.edges[mend.edge].params[0], mend.from_ns);
            plan.edges[mend.edge].params[0] = to_ns;
        }
        other => panic!("{other:?}"),
    }
    plan
}

#[test]
fn the_smallest_reduction_mends_its_node() {
    let mut tried = 0;
    for path in plans() {
        let (plan, admission) = load(&path);
        for (index, node) in admission.nodes.iter().enumerate() {
            for (rule, mend) in
                node.failures.iter().filter_map(|failure| Some((failure.rule, failure.mend.as_ref()?)))
            {
                let holds = |to_ns| {
                    let changed = reduced(&plan, mend, to_ns).admit();
                    changed.nodes[index].failures.iter().all(|failure| failure.rule != rule)
                };
                assert!(
                    holds(mend.to_ns) && !holds(mend.to_ns + 1),
                    "{}: {}",
                    path.display(),
                    mend.words(&plan)
                );
                tried += 1;
            }
        }
    }
    assert!(tried >= 6, "{tried}");
}

#[test]
fn the_json_names_the_edge_and_the_excess() {
    let (plan, admission) = load(&plans()[0]);
    let json = admission.to_json(&plan);
    let first = &json["broken"][0];
    assert_eq!((&first["name"], &first["rule"]), (&"top@0".into(), &"budgets_must_fit_the_cpu".into()));
    assert_eq!((&first["edge"]["child"], &first["edge"]["line"]), (&"c".into(), &12.into()));
    assert_eq!((&first["excess"], &first["excess_ns"]), (&"1/10".into(), &3_000_000.into()));
    let remedies = first["remedies"].as_array().unwrap();
    assert!(
        remedies.iter().any(|remedy| remedy["child"] == "c" && remedy["to_parent"] == "top@1"),
        "{first:#}"
    );
    assert!(
        remedies.iter().any(|remedy| remedy["parameter"] == "budget" && remedy["to"] == 6_000_000),
        "{first:#}"
    );
}

/// What others do while a task waits for them: with the number that is said the whole plan holds, and with one next to it it does not.
#[test]
fn what_a_task_waits_for_may_be_shorter() {
    for (file, parameter, lock, from, to) in [
        ("regions", "regions", None, 2_000_000, 1_500_001),
        ("no-slack", "longest_region", None, 4_000_000, 0),
        ("thresholds", "threshold", None, 1, 2),
        ("threshold-of-another", "threshold", None, 3, 2),
        ("locks", "sections", Some("bus"), 3_000_000, 1_700_000),
        ("spinning", "sections", Some("net"), 4_000_000, 3_000_000),
        ("suspended", "sections", Some("net"), 4_000_000, 3_000_000),
        ("paid", "sections", Some("bus"), 1_500_000, 1_200_000),
        ("chain-regions", "regions", None, 5_000_000, 1_500_001),
    ] {
        let path = plans().into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == file));
        let (plan, admission) = load(&path.unwrap());
        let broken = admission.broken(&plan);
        let same = |remedy: &&serde_json::Value| remedy["parameter"] == parameter;
        let json = broken[0].to_json(&plan);
        let said = json["remedies"].as_array().unwrap().iter().find(same).unwrap();
        let expected = (&json!(lock), &json!(from), &json!(to));
        assert_eq!((&said["lock"], &said["from"], &said["to"]), expected, "{file}: {json:#}");
        let remedy = broken[0].remedies.iter().find(|remedy| said["words"] == remedy.words(&plan)).unwrap();
        let holds = |remedy: &Remedy| remedy.apply(&plan).admit().holds;
        let nearer = match *remedy {
            Remedy::Section { edge, lock, from, to } => Remedy::Section { edge, lock, from, to: to + 1 },
            Remedy::Threshold { edge, from, .. } => Remedy::Threshold { edge, from, to: from },
            other => panic!("{file}: {other:?}"),
        };
        assert!(holds(remedy) && !holds(&nearer), "{file}: {}", remedy.words(&plan));
    }
}

/// A plan too large for a search: what is computed is the smallest for the test that fails, and it is said that nothing was tried.
#[test]
fn what_is_computed_mends_its_test() {
    let mut mended = 0;
    for path in plans() {
        let text = std::fs::read_to_string(&path).unwrap();
        let crowd = "\n[tasks.crowd]\ncount = 40\nunder.crowd-node = {}\n[node.crowd-node]\npolicy = \"round-robin\"\ncpu = 5\n";
        let text = match text.contains("[machine]") {
            true => text.replacen("[machine]", "[machine]\ncpus = 6", 1),
            false => format!("[machine]\ncpus = 6\n{text}"),
        };
        let text = text.replace("\ncpus = 1", "").replace("\ncpus = 2", "") + crowd;
        let text = text.replace("per_cpu = true", "per_cpu = [0, 1]");
        let plan =
            Plan::parse(&text, "large.toml").unwrap_or_else(|faults| panic!("{}: {faults}", path.display()));
        let admission = plan.admit();
        for broken in admission.broken(&plan) {
            let why = broken.untried.as_ref().unwrap();
            assert!(why.ends_with("edges, more than 32"), "{why}");
            let fails = |remedy: &Remedy| {
                let after = remedy.apply(&plan);
                let after = after.admit().broken(&after);
                after.iter().any(|other| {
                    (&other.name, other.rule, &other.need) == (&broken.name, broken.rule, &broken.need)
                })
            };
            for remedy in &broken.remedies {
                assert!(!fails(remedy), "{}: {}", path.display(), remedy.words(&plan));
                if let Remedy::Parameter { edge, at, from, to } = *remedy {
                    let less = if to > from { to - 1 } else { to + 1 };
                    let less = Remedy::Parameter { edge, at, from, to: less };
                    assert!(fails(&less), "{}: {}", path.display(), less.words(&plan));
                }
                mended += 1;
            }
        }
        let outline = admission.outline(&plan);
        assert!(outline.contains("  Nothing was tried on the whole plan: the plan has "), "{outline}");
    }
    assert!(mended >= 6, "{mended}");
}

/// Changes are tried for the first four, and at length the first sixteen are explained; the rest is a line and can be asked for.
#[test]
fn many_failures_are_told_shortly() {
    let mut text = "[node.top]\npolicy = \"reservation\"\ncpu = 0\n".to_string();
    for task in 0..18 {
        text += &format!("[task.t{task}]\nunder.top = {{ budget = \"10us\", period = \"1ms\" }}\nneeds = \"RESBS 20us 1ms\"\n");
    }
    let plan = Plan::parse(&text, "many.toml").unwrap();
    let admission = plan.admit();
    let broken = admission.broken(&plan);
    assert!(broken[..4].iter().all(|one| one.untried.is_none()) && broken.len() == 18);
    let why = "others that come first fail, too, and changes are tried for 4";
    assert!(broken[4..].iter().all(|one| one.untried.as_deref() == Some(why)));
    // they are the same here, tried or computed
    let words = |at: usize| broken[at].remedies.iter().map(|remedy| remedy.words(&plan)).collect::<Vec<_>>();
    assert!(words(0)[0].starts_with("raise the budget of `t0` in `top` from 10us to 20us"), "{:?}", words(0));
    assert!(words(9)[0].starts_with("raise the budget of `t9` in `top` from 10us to 20us"), "{:?}", words(9));
    let outline = admission.outline(&plan);
    assert_eq!(outline.matches("` needs at least 20us").count(), 16, "{outline}");
    assert!(
        outline.contains("Explained are the first 16; for the other 2: `--explain NAME`, or --json.\n"),
        "{outline}"
    );
    let [first, last] = [&broken[0], &broken[17]].map(|one| one.to_json(&plan));
    let said = last["explanation"].as_str().unwrap();
    assert!(said.starts_with("`t17` needs at least 20us in every period of 1ms"), "{said}");
    assert!(last["untried"].is_string() && first["untried"].is_null());
    let said = admission.explain(&plan, "t17").unwrap();
    assert!(
        said.contains("`t17` needs at least 20us") && said.contains("\n  overrun   it is throttled"),
        "{said}"
    );
}

/// Of a node with many children none is looked for, and it is said so.
#[test]
fn among_many_no_single_reduction_is_looked_for() {
    let mut text = "[node.top]\npolicy = \"reservation\"\ncpu = 0\n".to_string();
    for task in 0..40 {
        text += &format!(
            "[task.t{task}]\nunder.top = {{ budget = \"20us\", deadline = \"500us\", period = \"1ms\" }}\n"
        );
    }
    let plan = Plan::parse(&text, "crowded.toml").unwrap();
    let outline = plan.admit().outline(&plan);
    assert!(
        outline.contains("Among so many no single reduction was looked for: reduce several."),
        "{outline}"
    );
}

/// In plain words, for every rule: what is promised to whom in which units, what happens, what to do.
#[test]
fn every_failure_is_explained() {
    let servers = |costs: &str, list: &[&str]| {
        let mut text =
            format!("[machine]\ncpus = 1\n{costs}\n[node.top]\npolicy = \"reservation\"\ncpu = 0\n");
        for (task, edge) in list.iter().enumerate() {
            text += &format!("[task.t{task}]\nunder.top = {{ {edge} }}\n");
        }
        text
    };
    let jobs = |list: &[&str]| {
        let mut text = "[node.top]\npolicy = \"edf\"\ncpu = 0\n".to_string();
        for (task, load) in list.iter().enumerate() {
            text += &format!("[task.t{task}]\nunder.top = {{}}\nload = {{ {load} }}\n");
        }
        text
    };
    let half = "budget = \"6ms\", period = \"10ms\"";
    let short = "budget = \"2us\", period = \"10ms\"";
    let close = [
        "budget = \"500000000ns\", period = \"1s\", deadline = \"999ms\"",
        "budget = \"999999937ns\", period = \"3999999748ns\"",
        "budget = \"999999893ns\", period = \"3999999572ns\"",
    ];
    let early = "budget = \"3ms\", period = \"10ms\", deadline = \"4ms\"";
    let inner = servers("", &[half]).replace("task.t0", "node.in")
        + "policy = \"reservation\"\n[task.x]\nunder.in = { budget = \"7ms\", period = \"10ms\" }\n";
    let late = servers("", &[half]).replace("task.t0", "node.in")
        + "policy = \"reservation\"\n[task.x]\nunder.in = { budget = \"58ms\", period = \"100ms\" }\n";
    let inside = servers("", &[half]).replace("task.t0", "node.in")
        + "policy = \"edf\"\n[task.x]\nunder.in = {}\nload = { period = \"10ms\", work = \"5ms\" }\n";
    let cases = [
        (
            "budgets_must_fit_the_cpu",
            servers("", &[half, half]),
            "would take 120 % of one CPU's time, and there is 100 %",
        ),
        (
            "budgets_must_fit_the_cap",
            servers("", &[half])
                .replace("policy = \"reservation\"", "policy = \"reservation\"\ncap = \"0.55\""),
            "would take 60 % of one CPU's time, and the cap of `top` leaves them 55 %",
        ),
        ("budgets_must_fit_the_supply", inner, "take 70 % of a CPU, but `in` gets only 60 % itself"),
        ("budgets_are_not_proved", late, "in some window that is less than the demand"),
        (
            "budgets_must_fit_every_window",
            servers("", &[early, early]),
            "not in every window: when all begin at once",
        ),
        (
            "budget_must_pay_for_a_switch",
            servers("costs = { switch = \"5us\" }", &[short]),
            "A budget as short as this one leaves nothing for work",
        ),
        (
            "windows_must_be_few",
            servers("", &close),
            "it could not be decided whether they fit: leave a little room",
        ),
        (
            "deadlines_must_fit_the_supply",
            jobs(&["period = \"4ms\", work = \"3ms\""; 2]),
            "jobs are late, and ever more so",
        ),
        (
            "deadlines_must_fit_every_window",
            jobs(&["period = \"10ms\", work = \"3ms\", deadline = \"4ms\""; 2]),
            "more is due before the first deadlines than there is time until then",
        ),
        ("deadlines_must_fit_what_is_promised", inside, "Its guarantee is 6ms in every period of 10ms"),
    ];
    for (rule, text, words) in cases {
        let plan = Plan::parse(&text, "plain.toml").unwrap_or_else(|faults| panic!("{rule}: {faults}"));
        let admission = plan.admit();
        let broken = admission.broken(&plan);
        let found =
            broken.iter().find(|found| found.rule == rule).unwrap_or_else(|| panic!("{rule}: {broken:?}"));
        assert!(found.explanation.contains(words), "{rule}: {}", found.explanation);
        assert!(
            found.explanation.ends_with('.') && !found.explanation.contains("  "),
            "{rule}: {}",
            found.explanation
        );
        if rule == "windows_must_be_few" {
            continue; // each change tried takes its time
        }
        // The same for people, in lines.
        let lines = admission.outline(&plan).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(lines.contains(&found.explanation), "{rule}: {lines}");
    }
    // What stands above, on a machine.
    let thread = Reserved {
        name: "motor (9)".into(),
        cpus: Cpus::from(1),
        runtime_ns: 5_000_000,
        period_ns: 10_000_000,
    };
    let above = Above { online: vec![0], deadline: vec![thread], ..Above::default() };
    let plan = Plan::parse(&servers("", &["budget = \"4ms\", period = \"10ms\""]), "plain.toml")
        .unwrap()
        .on(&above)
        .unwrap();
    let broken = plan.admit().broken(&plan);
    let words = "others run before everything in the plan and leave too little: SCHED_DEADLINE stands above CPU 0: `motor (9)`";
    assert!(broken[0].explanation.contains(words), "{}", broken[0].explanation);
}

/// 2,500 nodes of which 2,000 fail: a fifth of a second when optimised.
#[test]
fn two_thousand_failures_are_told_soon() {
    let mut text = "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n".to_string();
    for group in 0..500 {
        text += &format!("[node.r{group}]\npolicy = \"reservation\"\nunder.top = {{ priority = {group} }}\n");
        for node in 0..4 {
            text += &format!("[node.r{group}-{node}]\npolicy = \"edf\"\nneeds = \"RESBS 1s 2s\"\n");
            let period = 500 + group;
            text += &format!("under.r{group} = {{ budget = \"10us\", period = \"{period}ms\" }}\n");
        }
    }
    let began = std::time::Instant::now();
    let plan = Plan::parse(&text, "large.toml").unwrap_or_else(|faults| panic!("{faults}"));
    let admission = plan.admit();
    let outline = admission.outline(&plan);
    assert!(
        outline.ends_with("Does not hold: 2000 needs not proved, first at `r0` → `r0-0`.\n"),
        "{}",
        &outline[outline.len() - 99..]
    );
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

/// What is asked about says which analysis bounds it: with offsets where a chain comes back to a CPU.
#[test]
fn each_bound_names_its_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/verdicts");
    let (plan, admission) = load(&folder.join("offsets.toml"));
    assert_eq!(admission.chains[0].bounds.response_ns, Some(9_000_000));
    let chain = admission.explain(&plan, "loop").unwrap();
    println!("{chain}");
    for row in [
        "filter: released by the one before: 4ms, by response times under fixed priorities (Lehoczky 1990)\n",
        "act: released by the one before: 2ms, by response times under fixed priorities with offsets",
    ] {
        assert!(chain.contains(row), "{chain}");
    }
    let task = admission.explain(&plan, "sense").unwrap();
    let row = "response at most 3ms, deadline 10ms\n            by response times under fixed priorities (Lehoczky 1990)\n";
    assert!(task.contains(row), "{task}");
}
