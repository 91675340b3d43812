//! The numbered rules of policy/round_robin.c.

mod common;

use common::{World, MS, NONE};

/// A round-robin node of 3 ms below a priority that can take the CPU from it, and its children.
fn turns(names: &[&str]) -> (World, u32, Vec<common::Leaf>, common::Leaf) {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("round-robin", [3 * MS, 0, 0, 0]);
    w.under(top, node, NONE);
    let leaves = names.iter().map(|name| w.task(node, name, NONE)).collect();
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    (w, node, leaves, urgent)
}

#[test]
fn round_robin_example() {
    let (mut w, _, leaves, urgent) = turns(&["a", "b", "c"]);
    w.wake_all(&leaves);
    w.run(4 * MS);
    w.wake(urgent.task);
    w.run(6 * MS);
    w.sleep(urgent.task);
    w.run(15 * MS);
    assert_eq!(w.schedule(), "0 a, 3 b, 4 urgent, 6 b, 8 c, 11 a, 14 b");

    // b blocks at 7 instead: the rest is gone, later it queues at the end
    let (mut w, _, leaves, urgent) = turns(&["a", "b", "c"]);
    w.wake_all(&leaves);
    w.run(4 * MS);
    w.wake(urgent.task);
    w.run(6 * MS);
    w.sleep(urgent.task);
    w.run(7 * MS);
    w.sleep(leaves[1].task);
    w.run(8 * MS);
    w.wake(leaves[1].task);
    w.run(20 * MS);
    assert_eq!(w.schedule(), "0 a, 3 b, 4 urgent, 6 b, 7 c, 10 a, 13 b, 16 c, 19 a");
}

#[test]
fn round_robin_rule_1_oldest_turn_until_its_quantum_is_used() {
    let (mut w, node, leaves, _) = turns(&["a", "b", "c"]);
    for (at, i) in [(0, 1), (1, 2), (2, 0)] {
        w.run(at * MS);
        w.wake(leaves[i].task);
    }
    w.run(12 * MS - 1);
    // newcomers do not cut the turn: b has had 1 ms when c comes
    assert_eq!(w.schedule(), "0 b, 3 c, 6 a, 9 b");
    // a new quantum counts for each child once the one it has is used
    w.graph.node_set(node, [MS, 0, 0, 0], w.now).unwrap();
    w.rest();
    w.run(21 * MS);
    assert_eq!(w.schedule(), "0 b, 3 c, 6 a, 9 b, 12 c, 15 a, 18 b, 19 c, 20 a, 21 b");
    // a running child is not disturbed when its parameters, of which it has none, are set
    w.run(21 * MS + MS / 2);
    let before = w.graph.until(0);
    assert_eq!((w.runs(0), before), ("b", 22 * MS));
    w.graph.set(leaves[1].edge, NONE, w.now).unwrap();
    w.rest();
    assert_eq!((w.runs(0), w.graph.until(0)), ("b", before));
}

#[test]
fn round_robin_rule_2_a_used_quantum_queues_at_the_end() {
    let (mut w, _, leaves, _) = turns(&["a", "b"]);
    w.wake(leaves[0].task);
    assert_eq!(w.graph.until(0), tierce_policy::NEVER); // alone: no turns, no timer
    w.run(100 * MS);
    assert_eq!(w.schedule(), "0 a");
    w.wake(leaves[1].task);
    w.run(104 * MS);
    assert_eq!(w.schedule(), "0 a, 102 b");
    // an overrun of several quanta is one turn
    w.overrun(120 * MS);
    w.run(124 * MS);
    assert_eq!(w.schedule(), "0 a, 102 b, 120 a, 123 b");
}

#[test]
fn round_robin_rule_3_outranked_keeps_turn_and_quantum() {
    let (mut w, _, leaves, urgent) = turns(&["a", "b"]);
    w.wake_all(&leaves);
    for at in [1, 3] {
        w.run(at * MS);
        w.wake(urgent.task);
        w.run((at + 1) * MS);
        w.sleep(urgent.task);
    }
    w.run(6 * MS);
    // a had 1, 1 and 1 ms: one quantum in pieces
    assert_eq!(w.schedule(), "0 a, 1 urgent, 2 a, 3 urgent, 4 a, 5 b");
}
