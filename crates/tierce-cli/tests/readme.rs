//! The plan that the README shows is one: it holds, it could run, its deadlines are met, and it is as short as it says. What it
//! says of a change that does not hold is what `tierce check` says.

use std::process::Command;

/// The plan in the README, and what follows it.
fn plan() -> (&'static str, &'static str) {
    let (_, rest) = include_str!("../../../README.md").split_once("```toml\n").expect("a plan in the README");
    rest.split_once("```").expect("its end")
}

#[test]
fn the_plan_of_the_readme_holds() {
    let (plan, _) = plan();
    assert!(plan.lines().count() <= 20, "the plan in twenty lines has more");

    let path = std::env::temp_dir().join(format!("tierce-readme-{}.toml", std::process::id()));
    std::fs::write(&path, plan).unwrap();
    let tierce = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).arg(&path).output().unwrap()
    };
    let outputs = [tierce(&["check", "--run"]), tierce(&["sim", "--for", "2s", "--expect-no-misses"])];
    std::fs::remove_file(&path).unwrap();
    for output in outputs {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_refusal_of_the_readme_is_what_check_says() {
    let (plan, rest) = plan();
    let longer = plan.replace("work = \"1.8ms\"", "work = \"2.5ms\"");
    assert_ne!(plan, longer);
    let folder = std::env::temp_dir().join(format!("tierce-readme-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("plan.toml"), longer).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["check", "plan.toml"])
        .current_dir(&folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let shown: Vec<_> = rest.lines().skip_while(|line| !line.starts_with("    ✗")).collect();
    let shown: Vec<_> = shown.into_iter().map_while(|line| line.strip_prefix("    ")).collect();
    let verdict = said.split_once("✗ audio").map(|(_, rest)| format!("✗ audio{rest}")).expect("a verdict");
    assert_eq!(shown.join("\n"), verdict.trim_end());
}
