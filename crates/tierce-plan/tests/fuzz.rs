//! No text makes the parser panic, loop or lie: random mutations of the examples, and random order of their pieces.
//!
//! `FUZZ_SEED=7 FUZZ_ROUNDS=100000 cargo test -p tierce-plan --test fuzz` for other and longer runs.

mod engine;

use std::path::PathBuf;
use tierce_plan::{Child, Plan};

/// SplitMix64: a few lines that give the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % most as u64) as usize
    }
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
const PIECES: [&str; 36] = [
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

fn mutate(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(5) {
        let at = random.below(chars.len() + 1);
        match random.below(6) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 => drop(chars.splice(at..at, PIECES[random.below(PIECES.len())].chars())),
            2 if at < chars.len() => chars[at] = char::from(32 + random.below(95) as u8),
            3 => {
                let end = (at + random.below(40)).min(chars.len());
                drop(chars.drain(at..end));
            }
            _ => {
                // Move, swap or repeat whole lines.
                let mut lines: Vec<String> =
                    chars.iter().collect::<String>().lines().map(String::from).collect();
                if lines.is_empty() {
                    continue;
                }
                let (a, b) = (random.below(lines.len()), random.below(lines.len()));
                match random.below(3) {
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
    assert!((1..=64).contains(&plan.machine.cpus));
}

#[test]
fn random_plans_are_taken_or_refused_but_never_panic() {
    let number =
        |name, otherwise| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (seed, rounds): (u64, u64) = (number("FUZZ_SEED", 1), number("FUZZ_ROUNDS", 6_000));
    println!("FUZZ_SEED={seed} FUZZ_ROUNDS={rounds}");
    let mut random = Random(seed);
    let seeds = seeds();
    let (mut taken, mut refused) = (0, 0);
    for round in 0..rounds {
        let text = mutate(&seeds[random.below(seeds.len())], &mut random);
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
            Err(_) => panic!("seed {seed}, round {round}: this text panics:\n{text}"),
        }
    }
    println!("{taken} taken, {refused} refused");
    assert!(taken > rounds / 40 && refused > rounds / 40);
}
