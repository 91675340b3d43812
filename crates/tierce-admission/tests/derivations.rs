//! Derivations as data: every step follows from those before, begins at a CPU, ends at what is promised, and names its place.

use std::path::PathBuf;
use tierce_admission::{Derived, Part, PlanExt};
use tierce_guarantee::{show, Free, Guarantee, Kind};
use tierce_plan::Plan;

fn plans() -> Vec<Plan> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["examples", "tests/verdicts"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files.iter().map(|path| Plan::load(path).unwrap_or_else(|faults| panic!("{faults}"))).collect()
}

/// The steps lead from nothing to `goal`.
fn follow(plan: &Plan, steps: &[Derived], goal: &Guarantee) {
    let name = &plan.name;
    let mut known: Vec<&Guarantee> = Vec::new();
    for derived in steps {
        let step = &derived.step;
        for from in &step.from {
            assert!(known.contains(&from), "{name}: {} of {from}, which is not shown: {steps:#?}", step.to);
        }
        let of_cpus = derived.parent.is_none() || step.rule.contains("several CPUs");
        assert!(!step.from.is_empty() || of_cpus, "{name}: {derived:?}");
        // A theorem about types can be tried again.
        if let (true, [from]) = (step.rule.starts_with("Theorem"), step.from.as_slice()) {
            assert!(show(from, &step.to, &Free::default()).is_ok(), "{name}: {derived:?}");
        }
        let place = plan.sources.place(derived.spot);
        assert!(place.line > 1 && !derived.child.is_empty(), "{name}: {derived:?}");
        known.push(&step.to);
    }
    assert_eq!(known.last(), Some(&goal), "{name}: {steps:#?}");
}

#[test]
fn every_promise_follows_from_the_cpus() {
    let (mut promises, mut needs) = (0, 0);
    for plan in plans() {
        let admission = plan.admit();
        let nodes = admission.nodes.iter().enumerate().map(|(at, found)| (Part::Node(at), &found.promises));
        let edges = admission.edges.iter().enumerate().map(|(at, found)| (Part::Edge(at), &found.promises));
        let tasks = admission.tasks.iter().enumerate().map(|(at, found)| (Part::Task(at), &found.promises));
        for (part, found) in nodes.chain(edges).chain(tasks) {
            for (at, promise) in found.iter().enumerate() {
                let steps = admission.derivation(&plan, part, at);
                if promise.guarantee.kind() == Kind::Null {
                    assert!(steps.is_empty(), "{}: {steps:?}", plan.name);
                    continue;
                }
                follow(&plan, &steps, &promise.guarantee);
                promises += 1;
            }
        }
        let of_nodes = plan.nodes.iter().zip(&admission.nodes).enumerate();
        let of_nodes = of_nodes.map(|(at, (node, found))| (Part::Node(at), &node.needs, &found.needs));
        let of_tasks = plan.tasks.iter().zip(&admission.tasks).enumerate();
        let of_tasks = of_tasks.map(|(at, (task, found))| (Part::Task(at), &task.needs, &found.needs));
        for (part, asked, proofs) in of_nodes.chain(of_tasks) {
            for (need, proof) in asked.iter().zip(proofs) {
                let Ok(shown) = proof else { continue };
                let steps = admission.derivation_of_need(&plan, part, need.spot, shown);
                follow(&plan, &steps, &Guarantee::parse(&need.text).unwrap());
                needs += 1;
            }
        }
    }
    assert!(promises > 200 && needs > 10, "{promises} {needs}");
}

#[test]
fn the_json_has_the_steps() {
    let text = "[node.top]\npolicy = \"reservation\"\ncpu = 0\n\
        [task.a]\nunder.top = { budget = \"2ms\", period = \"10ms\" }\nneeds = \"RESCS 2ms 18ms\"\n\
        [tasks.b]\ncount = 2\nunder.top = { budget = \"1ms\", period = \"10ms\" }\nneeds = \"RESBS 9ms 10ms\"\n";
    let plan = Plan::parse(text, "steps.toml").unwrap();
    let admission = plan.admit();
    let json = admission.to_json(&plan);
    assert_eq!(json["version"], 4);
    let steps = json["tasks"][0]["needs"][0]["derivation"].as_array().unwrap();
    let words: Vec<_> =
        steps.iter().map(|step| format!("{} {} {}", step["from"], step["to"], step["rule"])).collect();
    let expected = [
        "[] \"ALL\" \"root\"",
        "[\"ALL\"] \"RESBH 2ms 10ms\" \"constant bandwidth server, hard (HLS Table 5.1)\"",
        "[\"RESBH 2ms 10ms\"] \"RESCS 2ms 18ms\" \"Theorem 5.2\"",
    ];
    assert_eq!(words, expected);
    assert_eq!(
        steps[1]["where"],
        serde_json::json!({ "parent": "top", "child": "a", "file": "steps.toml", "line": 5, "column": 13 })
    );
    assert_eq!(
        (&steps[2]["where"]["line"], &steps[2]["where"]["parent"]),
        (&6.into(), &serde_json::Value::Null)
    );
    assert_eq!(json["tasks"][1]["needs"][0]["derivation"], serde_json::Value::Null);
    assert_eq!(json["tasks"][0]["guarantees"][0]["derivation"].as_array().unwrap().len(), 2);

    // one part alone: a task, a set, a node; nobody
    let part = |name: &str| serde_json::to_value(admission.explain_json(&plan, name).unwrap()).unwrap();
    let names = |json: &serde_json::Value| -> Vec<String> {
        json.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_string()).collect()
    };
    let a = part("a");
    assert_eq!(
        (&a["holds"], names(&a["tasks"]), &a["tasks"][0]),
        (&true.into(), vec!["a".to_string()], &json["tasks"][0])
    );
    assert_eq!((a["nodes"].as_array().unwrap().len(), a["edges"].as_array().unwrap().len()), (0, 1));
    let b = part("b");
    assert_eq!(
        (&b["holds"], names(&b["tasks"])),
        (&false.into(), vec!["b[0]".to_string(), "b[1]".to_string()])
    );
    assert_eq!(names(&b["broken"]), ["b[0]", "b[1]"]);
    let top = part("top");
    assert_eq!((names(&top["nodes"]), top["edges"].as_array().unwrap().len()), (vec!["top".to_string()], 3));
    assert_eq!(admission.explain_json(&plan, "topp").err(), Some(Some("top")));
}
