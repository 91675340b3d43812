//! A kernel's verifier takes the object that is made for the plan of each example, and has not much to look at.

use std::path::Path;
use std::time::Duration;
use tierce_vm::{Copy, End, Vm};

/// Most instructions that the verifier may examine for one program. It gives up at a million.
const MOST: u32 = 300_000;

/// What `verify` says of plans, on a machine with this kernel.
fn verify(kernel: &str, command: &str) -> String {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // cargo builds a crate's examples before its tests.
    let verify = std::env::current_exe().unwrap().parent().unwrap().join("../examples/verify");
    assert!(verify.exists(), "{}: `cargo build -p tierce-scx --example verify`", verify.display());
    let vm = Vm {
        kernel: kernel.parse().unwrap(),
        memory_mib: 1024,
        programs: vec![verify.to_str().unwrap().into()],
        copies: vec![Copy { from: project.join("examples"), to: "examples".into() }],
        limit: Duration::from_secs(25 * 60),
        ..Vm::default()
    };
    let done = vm.run_captured(&["sh", "-c", &format!("cd examples && verify {command} 2>&1")]).unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.end, End::Exit(0), "{said}\n{}", done.console);
    said
}

/// As many plans are taken, each as what is left for it, and are not much to look at. What is left is the same for some.
fn assert_taken(said: &str, plans: usize) {
    let taken = |line: &&str| line.contains(" loaded in ") || line.contains(" is loaded as ");
    assert_eq!(said.lines().filter(taken).count(), plans, "{said}");
    assert!(!said.contains("the whole object") && !said.contains("refused"), "{said}");
    let count = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_string(), words.next()?.to_string(), words.next()?.parse::<u32>().ok()?))
    };
    let (plan, program, most) = said.lines().filter_map(count).max_by_key(|(_, _, count)| *count).unwrap();
    println!("at most {most} instructions, for {program} of {plan}");
    assert!(most <= MOST, "{program} of {plan}: {most} instructions, bound {MOST}");
}

#[test]
fn every_example_is_taken() {
    let examples = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples")).unwrap();
    let plans =
        examples.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "toml"));
    assert_taken(&verify("7.0.13", "2 *.toml"), plans.count());
}

/// There sets of CPUs are longer than a word.
#[test]
fn a_machine_of_65_cpus_is_taken() {
    assert_taken(&verify("7.0.13", "65 laptop.toml shared.toml slots.toml"), 3);
}

/// 6.18 follows precision through registers that are dead, in some code ("backtracking call unexpected regs"), and refuses what is
/// left for these plans at times. It takes them with other code left out.
#[test]
fn an_older_verifier_takes_what_it_once_refused() {
    for command in ["1 hls-7.1.toml", "2 hyper.toml"] {
        let said = verify("6.18", command);
        println!("{said}");
        assert!(said.contains(" loaded in "), "{said}");
    }
}
