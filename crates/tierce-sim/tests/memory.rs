//! In a process of its own, where nobody else allocates.

use tierce_admission::PlanExt;
use tierce_plan::Plan;

const MS: u64 = 1_000_000;

/// Memory is flat: ten times the time, the same heap.
#[test]
fn memory_is_flat() {
    let plan = Plan::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/desktop.toml")).unwrap();
    let mut simulation = tierce_sim::Simulation::new(&plan, Default::default()).unwrap();
    simulation.run_until(20_000 * MS).unwrap();
    let before = resident_kib();
    simulation.run_until(200_000 * MS).unwrap();
    let after = resident_kib();
    assert!(after <= before + 1024, "{before} KiB, then {after} KiB");
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
