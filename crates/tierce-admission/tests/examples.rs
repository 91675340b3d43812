//! Every example is a plan without faults.

#[path = "../../tierce-plan/tests/engine/mod.rs"]
mod engine;

use engine::build;
use std::path::PathBuf;
use tierce_admission::PlanExt;
use tierce_plan::{Attach, Child, Load, Options, Plan};

/// The examples, by name.
fn examples() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() >= 20, "{files:?}");
    files
}

#[test]
fn every_example_parses() {
    for path in examples() {
        if let Err(faults) = Plan::load(&path) {
            panic!("{}", faults.report_plain());
        }
    }
}

#[test]
fn every_example_opens_with_its_idea() {
    for path in examples() {
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("# "), "{}", path.display());
    }
}

#[test]
fn the_attach_order_has_parents_first_and_everything_once() {
    for path in examples() {
        let plan = Plan::load(&path).unwrap();
        let (mut ready, mut edges) = (vec![false; plan.nodes.len()], vec![0; plan.edges.len()]);
        let order = plan.attach_order();
        for (at, step) in order.iter().enumerate() {
            match step {
                Attach::Root { node, .. } => ready[*node] = true,
                Attach::Edge(edge) => {
                    edges[*edge] += 1;
                    let edge = &plan.edges[*edge];
                    assert!(ready[edge.parent], "{}", path.display());
                    if let Child::Node(node) = edge.child {
                        let later = order[at + 1..].iter().any(
                            |step| matches!(step, Attach::Edge(other) if plan.edges[*other].child == edge.child),
                        );
                        ready[node] = !later;
                    }
                }
            }
        }
        assert!(edges.iter().all(|count| *count == 1), "{}", path.display());
        assert!(ready.iter().all(|ready| *ready), "{}", path.display());
    }
}

#[test]
fn the_engine_takes_every_example() {
    for path in examples() {
        if let Err(error) = build(&Plan::load(&path).unwrap()) {
            panic!("{}: {error}", path.display());
        }
    }
}

#[test]
fn siblings_are_attached_in_the_order_of_the_text() {
    for path in examples() {
        let plan = Plan::load(&path).unwrap();
        let mut last = vec![None; plan.nodes.len()];
        for step in plan.attach_order() {
            if let Attach::Edge(edge) = step {
                let before = last[plan.edges[edge].parent].replace(edge);
                assert!(before < Some(edge), "{}", path.display());
            }
        }
    }
}

#[test]
fn every_example_holds() {
    for path in examples() {
        let plan = Plan::load(&path).unwrap();
        let admission = plan.admit();
        assert!(admission.holds, "{}", admission.outline(&plan));
    }
}

/// Their bounds are those of whole CPUs, on which nothing is left for sure to the threads that a live run has beside the plan's.
const ONLY_SIMULATED: [&str; 3] = ["locks-cpus", "phases", "suspension"];

#[test]
fn every_other_example_can_run_live() {
    for path in examples() {
        let plan = Plan::load(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        match plan.check_runnable(plan.machine.cpus) {
            Ok(()) => assert!(!ONLY_SIMULATED.contains(&name), "{name}"),
            Err(faults) => assert!(ONLY_SIMULATED.contains(&name), "{}", faults.report_plain()),
        }
    }
}

#[test]
fn the_desktop_is_what_its_text_says() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let plan = Plan::load(folder.join("desktop.toml")).unwrap();
    let names: Vec<_> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["top", "rt", "desktop", "build"]);
    let names: Vec<_> = plan.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(
        names,
        ["audio", "video", "compiler[0]", "compiler[1]", "compiler[2]", "compiler[3]", "runaway"]
    );
    assert_eq!(plan.default_node, Some(2));
    assert_eq!(plan.nodes[0].roots, [0]);
    assert!(matches!(&plan.tasks[0].load, Some(Load::Periodic(load)) if load.deadline_ns == 10_000_000));
    let audio = plan.edges.iter().find(|edge| edge.child == Child::Task(0)).unwrap();
    assert_eq!((audio.parent, audio.params), (1, [2_000_000, 10_000_000, 10_000_000, 0, 0, 0]));
    assert!(plan.entries[0].any[0].comm.as_ref().unwrap().matches("audio-0"));
}

/// What was read once is enough to have the plan again elsewhere: includes, tables of tasks, rt-app files.
#[test]
fn the_texts_of_a_plan_are_enough() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("texts");
    std::fs::create_dir_all(folder.join("parts")).unwrap();
    let rt_app = include_str!("../../../examples/media.json");
    for (name, text) in [
        (
            "plan.toml",
            "include = \"parts/nodes.toml\"\n[tasks.many]\ncsv = \"parts/many.csv\"\nunder.top = {}\n\
             [task.player]\nunder.top = {}\nload = { rt_app = \"parts/media.json\", thread = \"video\" }\n",
        ),
        ("parts/nodes.toml", "[node.top]\npolicy = \"fair\"\ndefault = true\ncpu = 0\n"),
        ("parts/many.csv", "under.top.weight\n10\n20\n"),
        ("parts/media.json", rt_app),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let mut paths = examples();
    paths.push(folder.join("plan.toml"));
    for path in &paths {
        let plan = Plan::load(path).unwrap_or_else(|faults| panic!("{faults}"));
        let again = Plan::from_sources(&plan.sources, Default::default());
        let again = again.unwrap_or_else(|faults| panic!("{}: {faults}", path.display()));
        let show = |plan: &Plan| {
            format!("{:?}", (&plan.nodes, &plan.tasks, &plan.edges, &plan.entries, &plan.sources))
        };
        assert_eq!(show(&plan), show(&again), "{}", path.display());
    }
    // Without the files on disk, too; and what was not sent along is a fault with its place.
    let mut sources = Plan::load(&paths[paths.len() - 1]).unwrap().sources;
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(sources.0.len(), 4);
    assert!(Plan::from_sources(&sources, Default::default()).is_ok());
    sources.0.retain(|source| !source.name.ends_with("many.csv"));
    let faults = Plan::from_sources(&sources, Default::default()).unwrap_err().to_string();
    assert!(
        faults.contains("file_must_be_readable") && faults.contains("many.csv was not sent along"),
        "{faults}"
    );
}

/// Examples for which a machine of 1, 2, 4 or 8 CPUs does not do, and why.
const NOT_EVERYWHERE: [(&str, &[u32], &str); 14] = [
    // Its tasks are on two CPUs.
    ("chain", &[1], "root_cpu_must_be_online"),
    // Deadlines order all threads: none of the policies that can be spread.
    ("edf", &[2, 4, 8], "other_cpus_need_a_spread_default"),
    // They are about two CPUs. The first has one root for all that it names, and the default node is below that.
    ("hls-7.1", &[1], "root_cpu_must_be_online"),
    ("hls-7.1", &[4, 8], "other_cpus_need_a_spread_default"),
    ("hls-7.3", &[1], "root_cpu_must_be_online"),
    ("hyper", &[1], "root_cpu_must_be_online"),
    // ONLY_SIMULATED, as `phases` and `suspension`.
    ("locks-cpus", &[1, 2, 4, 8], "default_node_must_exist"),
    ("nested", &[1], "root_cpu_must_be_online"),
    ("phases", &[1, 2, 4, 8], "default_node_must_exist"),
    // Its default node is one node, as an example of that.
    ("shared", &[1], "root_cpu_must_be_online"),
    ("shared", &[4, 8], "other_cpus_need_a_spread_default"),
    ("slots", &[1], "root_cpu_must_be_online"),
    ("suspension", &[1, 2, 4, 8], "default_node_must_exist"),
    ("two-cpus", &[1], "root_cpu_must_be_online"),
];

/// On a machine with more CPUs than the plan names the others run its default node.
#[test]
fn examples_run_on_machines_of_any_size() {
    let mut refused = Vec::new();
    for path in examples() {
        for cpus in [1, 2, 4, 8] {
            let plan = Plan::load_with(&path, Options { cpus }).unwrap_or_else(|faults| panic!("{faults}"));
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            if let Err(faults) = plan.check_runnable(cpus) {
                refused.push((name, cpus, faults.faults[0].rule));
                continue;
            }
            if let Err(error) = build(&plan) {
                panic!("{name} on {cpus} CPUs: {error}");
            }
            let admission = plan.admit();
            assert!(admission.holds, "{cpus} CPUs: {}", admission.outline(&plan));
            let roots: usize = plan.nodes.iter().map(|node| node.roots.len()).sum();
            assert_eq!(roots, cpus as usize, "{name}");
        }
    }
    let expected =
        NOT_EVERYWHERE.iter().flat_map(|(name, cpus, rule)| cpus.iter().map(|cpus| (*name, *cpus, *rule)));
    let refused: Vec<_> = refused.iter().map(|(name, cpus, rule)| (name.as_str(), *cpus, *rule)).collect();
    assert_eq!(refused, expected.collect::<Vec<_>>());
}
