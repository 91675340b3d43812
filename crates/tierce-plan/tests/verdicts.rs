//! What check says of plans that do not hold: where they break first, which test refuses, by how much, and what would mend them,
//! each change tried. `UPDATE=1` writes what is expected anew.

use std::path::{Path, PathBuf};
use tierce_plan::{Admission, Child, Load, Plan, Remedy, Work};

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
    let mut tried = 0;
    for path in plans() {
        let (plan, admission) = load(&path);
        for broken in admission.broken(&plan) {
            for remedy in &broken.remedies {
                let words = format!("{}: {}", path.display(), remedy.words(&plan));
                assert!(broken.is_mended_by(&plan, remedy), "{words}");
                if let Remedy::Parameter { edge, at, from, to } = *remedy {
                    let less = if to > from { to - 1 } else { to + 1 };
                    assert!(
                        !broken.is_mended_by(&plan, &Remedy::Parameter { edge, at, from, to: less }),
                        "{words}"
                    );
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "{tried}");
}

/// The plan with the work or budget that a failure's smallest reduction says.
fn reduced(plan: &Plan, mend: &tierce_plan::Mend, to_ns: u64) -> Plan {
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
            for mend in node.failures.iter().filter_map(|failure| failure.mend.as_ref()) {
                let holds = |to_ns| reduced(&plan, mend, to_ns).admit().nodes[index].failures.is_empty();
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
