//! The plan that the README shows is one: it holds, it could run, its deadlines are met, and it is as short as it says.

use std::process::Command;

#[test]
fn the_plan_of_the_readme_holds() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = std::fs::read_to_string(format!("{root}/README.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").expect("a plan in the README");
    let (plan, _) = rest.split_once("```").expect("its end");
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
