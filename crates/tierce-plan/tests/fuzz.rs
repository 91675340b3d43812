//! No text makes the parser panic, loop or lie: random mutations of the examples, and random order of their pieces.
//!
//! `TIERCE_SEED=7 TIERCE_ROUNDS=100000 cargo test -p tierce-plan --test fuzz` for other and longer runs.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

#[path = "../../../tests/draw.rs"]
mod draw;
mod engine;

use draw::Draw;
use std::path::PathBuf;
use tierce_admission::PlanExt;
use tierce_plan::{Child, Plan};

/// How many, printed.
fn rounds(otherwise: u64) -> u64 {
    let given = std::env::var("TIERCE_ROUNDS").ok();
    let rounds = given.and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    println!("TIERCE_ROUNDS={rounds}");
    rounds
}

/// Texts that are plans or nearly.
fn seeds() -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    for folder in ["examples", "tests/plans"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let plans = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
        texts.extend(plans.map(|path| std::fs::read_to_string(path).unwrap()));
    }
    assert!(texts.len() > 30);
    texts
}

/// Pieces that mean something to the language.
const PIECES: [&str; 37] = [
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\n",
    "#",
    "0",
    "-1",
    "99999999999999999999",
    "1.5",
    "true",
    "\"10ms\"",
    "\"0ns\"",
    "\"18446744073709551615ns\"",
    "\"\"",
    "[]",
    "{}",
    "cpu = 0",
    "cpu = \"any\"",
    "cpus = \"all\"",
    "per_cpu = true",
    "under.top = {}",
    "\"nice\"",
    "when = \"spent\"",
    "rank = -2147483648",
    "concurrency = 64",
    "[node.x]",
    "[tasks.y]",
    "count = 3",
    "é",
    "\u{0}",
    "policy = \"fair\"",
];

fn mutate(text: &str, draw: &mut Draw) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + draw.below(5) {
        let at = draw.below(chars.len() + 1);
        match draw.below(6) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 => drop(chars.splice(at..at, PIECES[draw.below(PIECES.len())].chars())),
            2 if at < chars.len() => chars[at] = char::from(32 + draw.below(95) as u8),
            3 => {
                let end = (at + draw.below(40)).min(chars.len());
                drop(chars.drain(at..end));
            }
            _ => {
                // Move, swap or repeat whole lines.
                let mut lines: Vec<String> =
                    chars.iter().collect::<String>().lines().map(String::from).collect();
                if lines.is_empty() {
                    continue;
                }
                let (a, b) = (draw.below(lines.len()), draw.below(lines.len()));
                match draw.below(3) {
                    0 => lines.swap(a, b),
                    1 => lines.insert(b, lines[a].clone()),
                    _ => drop(lines.remove(a)),
                }
                chars = lines.join("\n").chars().collect();
            }
        }
    }
    chars.into_iter().collect()
}

/// What the types do not say but consumers rely on.
fn consistent(plan: &Plan) {
    for (index, edge) in plan.edges.iter().enumerate() {
        assert!(edge.parent < plan.nodes.len(), "edge {index}");
        match edge.child {
            Child::Node(node) => assert!(node < plan.nodes.len()),
            Child::Task(task) => assert!(task < plan.tasks.len()),
            Child::Set(_) => panic!("a set among the edges"),
        }
    }
    let roots: usize = plan.nodes.iter().map(|node| node.roots.len()).sum();
    assert_eq!(plan.attach_order().len(), plan.edges.len() + roots);
    assert!(plan.sets.iter().all(|set| set.members.end <= plan.tasks.len()));
    assert!((1..=tierce_policy::CPUS_MAX).contains(&plan.machine.cpus));
}

#[test]
fn random_plans_are_taken_or_refused_but_never_panic() {
    let (mut draw, rounds) = (Draw::new(1), rounds(6_000));
    let seeds = seeds();
    let (mut taken, mut refused) = (0, 0);
    for round in 0..rounds {
        let text = mutate(&seeds[draw.below(seeds.len())], &mut draw);
        let outcome = std::panic::catch_unwind(|| match Plan::parse(&text, "fuzz.toml") {
            Ok(plan) => {
                consistent(&plan);
                let admission = plan.admit();
                assert!(!admission.outline(&plan).is_empty() && admission.to_json(&plan).is_object());
                let _ = plan.check_runnable(plan.machine.cpus);
                // The engine holds a plan's whole memory anew each time, so only now and then.
                if admission.holds && round % 16 == 0 {
                    engine::build(&plan).unwrap();
                }
                true
            }
            Err(faults) => {
                assert!(!faults.faults.is_empty());
                assert!(!faults.to_string().is_empty() && !faults.report_plain().is_empty());
                assert!(faults.to_json().is_array());
                false
            }
        });
        match outcome {
            Ok(true) => taken += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("round {round}: this text panics:\n{text}"),
        }
    }
    println!("{taken} taken, {refused} refused");
    assert!(taken > rounds / 40 && refused > rounds / 40);
}

/// A random graph: nodes below earlier nodes, on one to four CPUs, with joins, replicas, spread nodes, conditions, affinities.
fn graph(draw: &mut Draw) -> String {
    let cpus = 1 + draw.below(4);
    let mut text = format!("[machine]\ncpus = {cpus}\n");
    let policies: Vec<_> = tierce_policy::policies().iter().map(|policy| policy.name).collect();
    let mut nodes: Vec<(String, &str, bool)> = Vec::new(); // name, policy, per_cpu
    let edge = |parent: &(String, &str, bool), draw: &mut Draw, child_replicated: bool| {
        let mut keys = Vec::new();
        match parent.1 {
            "reservation" => keys.push(format!("budget = \"{}us\", period = \"10ms\"", 1 + draw.below(50))),
            "fixed-priority" => keys.push(format!("priority = {}", draw.below(4))),
            _ => {}
        }
        if parent.2 && !child_replicated && draw.below(2) == 0 {
            keys.push(format!("cpu = {}", draw.below(cpus)));
        }
        if draw.below(12) == 0 {
            keys.push("when = \"spent\"".into());
        }
        if draw.below(6) == 0 {
            keys.push(format!("rank = {}", draw.below(3)));
        }
        format!("{{ {} }}", keys.join(", "))
    };
    let mut default = None;
    for index in 0..1 + draw.below(9) {
        let (name, policy) = (format!("n{index}"), policies[draw.below(policies.len())]);
        let per_cpu = draw.below(3) == 0;
        text += &format!("[node.{name}]\npolicy = \"{policy}\"\n");
        if per_cpu {
            text += "per_cpu = true\n";
        }
        let spread = !per_cpu && draw.below(3) == 0;
        if spread {
            text +=
                ["spread = true\n", "spread = true\n", "spread = false\n", "spread = [0]\n"][draw.below(4)];
        }
        if default.is_none() && draw.below(4) == 0 {
            text += "default = true\n";
            default = Some(index);
        }
        if draw.below(10) == 0 && !spread {
            text += &format!("concurrency = {}\n", 1 + draw.below(cpus));
        }
        let candidates: Vec<_> = nodes.iter().filter(|parent| !per_cpu || parent.2).collect();
        if candidates.is_empty() || draw.below(5) == 0 {
            match (per_cpu, draw.below(2)) {
                _ if spread && draw.below(2) == 0 => {}
                (true, _) => {}
                (false, 0) => text += &format!("cpu = {}\n", draw.below(cpus)),
                (false, _) => text += "cpus = \"all\"\n",
            }
        } else {
            for _ in 0..1 + draw.below(5) / 4 {
                let parent = candidates[draw.below(candidates.len())];
                if !text
                    .rsplit("[node.")
                    .next()
                    .is_some_and(|item| item.contains(&format!("under.{} ", parent.0)))
                {
                    text += &format!("under.{} = {}\n", parent.0, edge(parent, draw, per_cpu));
                }
            }
        }
        nodes.push((name, policy, per_cpu));
    }
    for index in 0..draw.below(6) {
        text += &format!("[task.t{index}]\n");
        if draw.below(4) == 0 {
            text += &format!("affinity = [{}]\n", draw.below(cpus));
        }
        let first = draw.below(nodes.len());
        text += &format!("under.{} = {}\n", nodes[first].0, edge(&nodes[first], draw, false));
        let second = draw.below(nodes.len());
        if second != first && draw.below(3) == 0 {
            text += &format!("under.{} = {}\n", nodes[second].0, edge(&nodes[second], draw, false));
        }
    }
    text
}

#[test]
fn the_engine_takes_every_graph_that_the_parser_takes() {
    let (mut draw, rounds) = (Draw::new(2), rounds(400));
    let mut taken = 0;
    for round in 0..rounds {
        let text = graph(&mut draw);
        let Ok(plan) = Plan::parse(&text, "graph.toml") else { continue };
        consistent(&plan);
        if plan
            .admit()
            .nodes
            .iter()
            .flat_map(|node| &node.failures)
            .any(|f| f.rule == "budgets_must_fit_the_cpu")
        {
            continue;
        }
        taken += 1;
        if let Err(error) = engine::build(&plan) {
            panic!("round {round}: {error}\n{text}");
        }
    }
    println!("{taken} of {rounds} taken");
    assert!(taken > rounds / 20);
}
