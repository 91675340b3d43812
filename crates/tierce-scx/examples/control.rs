//! What control operations on a live graph cost: the median time of each call, in ns, as JSON. Attaches a small graph to
//! CPU 0: for throw-away machines.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::time::Instant;
use tierce_policy::{policies, Control, Refusal, TASK};
use tierce_scx::kernel::{Kernel, Options};

const ROUNDS: usize = 101;

fn policy(name: &str) -> u32 {
    policies().iter().find(|policy| policy.name == name).map_or(0, |policy| policy.number)
}

fn ok<T>(result: Result<T, Refusal>) -> Result<T> {
    result.map_err(|refusal| anyhow::anyhow!("{refusal}"))
}

fn main() -> Result<()> {
    let mut kernel = Kernel::load(Options { exercise: true, ..Options::default() })?;
    let mut kernel_ops = &kernel;
    let (fixed_priority, reservation, fair) =
        (policy("fixed-priority"), policy("reservation"), policy("fair"));
    let ops = &mut kernel_ops;
    let top = ok(ops.node_new(fixed_priority, 0, u64::MAX, [0; 8]))?;
    ok(ops.root(0, top))?;
    let rt = ok(ops.node_new(reservation, 0, u64::MAX, [0; 8]))?;
    let rest = ok(ops.node_new(fair, 0, u64::MAX, [3_000_000, 0, 0, 0, 0, 0, 0, 0]))?;
    for (node, priority) in [(rt, 1), (rest, 0)] {
        let edge = ok(ops.edge_new(top, node, 0, false))?;
        ok(ops.attach(edge, [priority, 0, 0, 0]))?;
    }
    kernel.set_default(rest, [100, 0, 0, 0], None)?;
    kernel.attach()?;
    let mut ops = &kernel;

    let mut took: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut time = |name, begun: Instant| {
        took.entry(name).or_default().push(begun.elapsed().as_nanos() as u64);
    };
    let me = std::process::id();
    let ours = [ok(ops.node_new(TASK, 1, u64::MAX, [0; 8]))?, ok(ops.node_new(TASK, 1, u64::MAX, [0; 8]))?];
    for leaf in ours {
        let edge = ok(ops.edge_new(rest, leaf, 0, false))?;
        ok(ops.attach(edge, [100, 0, 0, 0]))?;
    }
    for round in 0..ROUNDS {
        let begun = Instant::now();
        kernel.exercise(0, 0, 0, 0)?;
        time("an empty syscall program", begun);
        let begun = Instant::now();
        let node = ok(ops.node_new(fair, 0, u64::MAX, [3_000_000, 0, 0, 0, 0, 0, 0, 0]))?;
        time("create a node", begun);
        let edge = ok(ops.edge_new(rt, node, 0, false))?;
        let begun = Instant::now();
        ok(ops.attach(edge, [2_000_000, 10_000_000, 10_000_000, 0]))?;
        time("begin a reservation", begun);
        let begun = Instant::now();
        ok(ops.set(edge, [3_000_000, 10_000_000, 10_000_000, 0]))?;
        time("change a reservation", begun);
        let begun = Instant::now();
        ok(ops.detach(edge))?;
        time("end a reservation", begun);
        let begun = Instant::now();
        ok(ops.node_free(node))?;
        time("remove a node", begun);
        let begun = Instant::now();
        kernel.bind(me, ours[round % 2], false)?;
        time("move a task", begun);
        std::thread::sleep(std::time::Duration::from_millis(1)); // it moves when it blocks
    }
    kernel.detach();
    let medians: BTreeMap<_, _> = took
        .into_iter()
        .map(|(name, mut list)| {
            list.sort_unstable();
            (name, list[list.len() / 2])
        })
        .collect();
    println!("{}", serde_json::to_string(&medians).context("numbers")?);
    Ok(())
}
