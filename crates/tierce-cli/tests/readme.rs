//! The plan that the README shows is one: it holds, it could run on a machine with any number of CPUs, its deadlines are met, and it
//! is as short as it says.

use std::process::Command;

/// The plan in the README.
fn plan() -> &'static str {
    let (_, rest) = include_str!("../../../README.md").split_once("```toml\n").expect("a plan in the README");
    rest.split_once("```").expect("its end").0
}

#[test]
fn the_plan_of_the_readme_holds() {
    let plan = plan();
    assert!(plan.lines().count() <= 20, "the plan in twenty lines has more");

    let path = std::env::temp_dir().join(format!("tierce-readme-{}.toml", std::process::id()));
    std::fs::write(&path, plan).unwrap();
    let tierce = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).arg(&path).output().unwrap()
    };
    let runs = |cpus| tierce(&["check", "--run", "--cpus", cpus]);
    let simulated = tierce(&["sim", "--for", "2s", "--expect-no-misses"]);
    let outputs = [runs("1"), runs("2"), runs("7"), runs("64"), simulated];
    std::fs::remove_file(&path).unwrap();
    for output in outputs {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
}
