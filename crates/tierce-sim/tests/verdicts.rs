//! No verdict of the analysis is contradicted by the simulator: 6,000 random sets, a third of them on several CPUs. The benchmark
//! plays 100,000.

#[allow(dead_code)]
#[path = "../examples/verdicts.rs"]
mod verdicts;

/// TIERCE_SEED plays others than the usual ones.
#[test]
fn no_verdict_is_contradicted() {
    let seed = std::env::var("TIERCE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2001);
    println!("TIERCE_SEED={seed}");
    println!("{}", verdicts::play(6_000, seed, 100, |_| ()));
}
