//! The generated schema takes every example and refuses what the parser refuses by kind and key.

use serde_json::Value;
use std::path::PathBuf;
use tierce_admission::PlanExt;

/// TOML as JSON, the way editors validate it.
fn json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap()
}

#[test]
fn the_schema_is_one() {
    assert!(jsonschema::meta::is_valid(&tierce_plan::schema()));
}

#[test]
fn every_example_is_valid() {
    let validator = jsonschema::validator_for(&tierce_plan::schema()).unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let plan = json(&std::fs::read_to_string(&path).unwrap());
            let errors: Vec<_> =
                validator.iter_errors(&plan).map(|e| format!("{}: {e}", e.instance_path)).collect();
            assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        }
    }
}

#[test]
fn what_is_wrong_by_kind_or_key_is_invalid() {
    let validator = jsonschema::validator_for(&tierce_plan::schema()).unwrap();
    let top = "[node.top]\npolicy = \"fair\"\ncpu = 0\n";
    for wrong in [
        "nodes = 1",
        "[machine]\ncpus = 0",
        "[node.top]\npolicy = \"fare\"",
        "[node.top]\ncpu = 0",
        "[node.top]\npolicy = \"fair\"\nquantum = 3",
        "[node.top]\npolicy = \"reservation\"\nquantum = \"3ms\"",
        "[node.\"a b\"]\npolicy = \"fair\"",
        "[task.a]\nunder.top = { weight = 0.5 }",
        "[task.a]\nunder.top = { wieght = 5 }",
        "[task.a]\nload = \"lazy\"",
        "[task.a]\nload = { period = \"10\", work = \"1ms\" }",
        "[task.a]\nmatch = {}",
        "[task.a]\ncount = 3",
        "[tasks.a]\ncount = -3",
        "[run]\nthrottle = \"never\"",
        "[run]\nlocks = \"always\"",
    ] {
        let text = if wrong.contains("[node") { wrong.to_string() } else { format!("{wrong}\n{top}") };
        assert!(!validator.is_valid(&json(&text)), "{text}");
        assert!(tierce_plan::Plan::parse(&text, "wrong.toml").is_err(), "{text}");
    }
}

#[test]
fn every_parameter_of_every_policy_is_described() {
    let schema = tierce_plan::schema().to_string();
    for policy in tierce_policy::policies() {
        assert!(schema.contains(&format!("\"const\":\"{}\"", policy.name)));
        for param in policy.node_params.iter().chain(&policy.edge_params) {
            assert!(
                schema.contains(&format!("\"{}\"", param.name)) && schema.contains(param.meaning),
                "{}",
                param.name
            );
        }
    }
}
