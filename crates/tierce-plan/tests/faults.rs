//! Every refusal, by example: tests/plans/NAME.toml has faults, NAME.expected the lines that report them.
//!
//! `UPDATE=1 cargo test -p tierce-plan --test faults` writes the expected files anew: read the difference before you
//! commit it. A first line `#! run N` asks for the rules of a live run on N CPUs as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tierce_admission::PlanExt;
use tierce_plan::{Faults, Plan};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/plans")
}

/// Plans with faults, by name.
fn plans() -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

fn faults(path: &Path) -> Faults {
    let text = std::fs::read_to_string(path).unwrap();
    let run =
        text.lines().next().and_then(|line| line.strip_prefix("#! run ")).map(|cpus| cpus.parse().unwrap());
    match (Plan::load(path), run) {
        (Err(faults), _) => faults,
        (Ok(plan), Some(cpus)) => match plan.check_runnable(cpus) {
            Err(faults) => faults,
            Ok(()) => panic!("{} can run", path.display()),
        },
        (Ok(_), None) => panic!("{} has no faults", path.display()),
    }
}

#[test]
fn every_fault_is_reported_with_its_place_and_rule() {
    let update = std::env::var_os("UPDATE").is_some();
    let prefix = format!("{}/", folder().display());
    let mut different = Vec::new();
    for path in plans() {
        let lines = format!("{}\n", faults(&path)).replace(&prefix, "");
        let expected = path.with_extension("expected");
        if update {
            std::fs::write(&expected, &lines).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != lines {
            different.push(format!("{}:\n{lines}", expected.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn reports_for_people_and_tools_say_the_same() {
    for path in plans() {
        let faults = faults(&path);
        let (report, json) = (faults.report_plain(), faults.to_json());
        assert_eq!(json.as_array().unwrap().len(), faults.faults.len());
        for (fault, json) in faults.faults.iter().zip(json.as_array().unwrap()) {
            assert!(report.contains(fault.rule), "{report}");
            assert_eq!(json["rule"], fault.rule);
            assert!(json["line"].as_u64() >= Some(1) && json["column"].as_u64() >= Some(1));
        }
    }
}

/// Names of rules in the sources: whatever is the first argument of `Fault::new`, or in a list of rules.
fn rules() -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = ["tierce-plan/src", "tierce-admission/src"].map(|folder| crates.join(folder)).to_vec();
    let mut files =
        ["guarantee.rs", "number.rs"].map(|file| crates.join("tierce-guarantee/src").join(file)).to_vec();
    while let Some(folder) = folders.pop() {
        let (inner, own): (Vec<_>, Vec<_>) = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .partition(|path| path.is_dir());
        folders.extend(inner);
        files.extend(own);
    }
    for path in files {
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for part in text.split('"').skip(1).step_by(2) {
            let words = part.split('_').count();
            let plain = part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            if plain && (3..12).contains(&words) && !["is_group_leader"].contains(&part) {
                rules.insert(part.to_string());
            }
        }
    }
    rules.extend(["redefined", "toml_syntax", "too_deep", "name_is_unique", "no_cycles"].map(String::from));
    assert!(rules.len() > 70, "{rules:?}");
    rules
}

/// Rules that no small plan can break, and those of `tierce check` that are no faults of the text.
const ELSEWHERE: [&str; 57] = [
    "task_may_starve", // tests/limits.rs, no fault but a warning
    "default_node_may_starve",
    "text_must_fit",         // 4 GiB
    "includes_must_be_few",  // 64 files
    "cpu_must_be_chosen",    // without a placer: src/any_cpu.rs
    "too_many_nodes",        // tests/limits.rs
    "too_many_edges",        // tests/limits.rs
    "too_many_shared",       // tests/limits.rs
    "too_many_cpus",         // tests/limits.rs
    "too_many_spread_nodes", // tests/limits.rs
    "cpus_cannot_change",    // of a running plan: crates/tierce-scx/tests/change.rs
    "topology_cannot_change",
    "root_cannot_change",
    "watchdog_cannot_change",
    "throttle_cannot_change",
    "inheritance_cannot_change",
    "marks_cannot_change",
    "policy_is_not_loaded",     // of a running plan: tests/vm/apply.sh
    "root_cpu_must_be_online",  // tests/limits.rs
    "budgets_must_fit_the_cpu", // of the proof: crates/tierce-admission/tests/check.rs, and so on
    "budgets_must_fit_the_cap",
    "budgets_must_fit_the_supply",
    "budgets_must_fit_every_window",
    "budget_must_pay_for_a_switch",
    "latency_is_not_proved",         // tests/verdicts
    "budgets_are_not_proved",        // tests/verdicts
    "budgets_must_fit_what_is_left", // tests/above.rs
    "shares_must_fit_the_cpu",       // tests/check.rs
    "shares_must_fit_the_supply",
    "reservation_is_much_larger", // warnings, in tests/check.rs
    "switches_are_many",
    "delay_grows_with_children",
    "round_is_long",
    "deadlines_of_usual_mode", // tests/criticality.rs of the simulator
    "interrupts_are_not_counted",
    "match_is_shadowed",
    "match_can_be_forged",
    "budget_on_every_cpu",
    "default_node_is_limited",
    "deadlines_must_fit_the_supply",
    "deadlines_must_fit_every_window",
    "deadlines_must_fit_what_is_promised",
    "windows_must_be_few",
    "needs_must_follow",
    "deadline_can_be_missed", // tests/verdicts
    "deadline_is_not_proved",
    "kept_budgets_must_fit",
    "match_must_come_first", // operations on a plan: tests/edit.rs
    "tasks_must_exist",
    "node_must_be_empty",
    "edge_must_be_clear",
    "outer_node_needs_one_budget",
    "edge_must_exist",
    "place_must_be_another",
    "name_must_exist",
    "part_must_be_a_node",
    "part_must_be_in_the_text", // it was read from there
];

#[test]
fn every_rule_has_a_plan_that_breaks_it() {
    let broken: BTreeSet<_> =
        plans().iter().flat_map(|path| faults(path).faults).map(|fault| fault.rule.to_string()).collect();
    let missing: Vec<_> = rules().into_iter().filter(|rule| !broken.contains(rule)).collect();
    let missing: Vec<_> = missing.iter().filter(|rule| !ELSEWHERE.contains(&rule.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let unknown: Vec<_> = broken.difference(&rules()).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The list of rules of a proof has each rule that a failure of `tierce check` can name, and no other.
#[test]
fn every_rule_of_a_proof_is_in_the_list() {
    let listed: BTreeSet<_> =
        tierce_admission::PROOF_RULES.iter().map(|rule| rule.name.to_string()).collect();
    assert_eq!(listed.len(), tierce_admission::PROOF_RULES.len());
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tierce-admission/src");
    let (mut found, mut folders) = (BTreeSet::new(), vec![crates]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // Those of a live run are faults of the text: tests/plans/run-*. Those of servers are of no plan.
            if ["rules.rs", "runnable.rs", "servers.rs"].iter().any(|name| path.ends_with(name)) {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            let mut before = "";
            for (at, part) in text.split('"').enumerate() {
                // `Fault::new` has the rules of warnings, and of faults of the text.
                if at % 2 == 1 && rules().contains(part) && !before.trim_end().ends_with("Fault::new(") {
                    found.insert(part.to_string());
                }
                before = part;
            }
        }
    }
    assert_eq!(found, listed);
}

#[test]
fn a_fault_far_to_the_right_is_reported_in_one_line() {
    let faults = Plan::parse(&format!("a = \"{}\" b", "x".repeat(100_000)), "long.toml").unwrap_err();
    assert!(faults.report().starts_with("long.toml:1:100"), "{}", faults.report());
    assert!(faults.report_plain().starts_with("long.toml:1:100"));
    let deep = Plan::parse(&format!("a={}", "[".repeat(100_000)), "deep.toml").unwrap_err();
    assert!(deep.report().contains("recursion"), "{}", deep.report());
}
