//! The numbered rules of policy/briefly_blocked.c.

mod common;

use common::{Leaf, World, MS, NONE, US};

/// Half of the time blocked, at most so many ms.
fn half(most_ms: u64) -> [u64; 4] {
    [1 << 19, most_ms * MS, 0, 0]
}

/// Priorities; below them a node of second chances at priority 1. Tasks run at priority 2 (`first`), and by credit.
fn second_chance(names: &[&str]) -> (World, u32, u32, Vec<Leaf>) {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("briefly-blocked", NONE);
    w.under(top, node, [1, 0, 0, 0]);
    let leaves = names.iter().map(|name| w.task(node, name, half(10))).collect();
    (w, top, node, leaves)
}

fn credit(w: &World, leaf: Leaf) -> i64 {
    w.edge(leaf).policy[1] as i64 / US as i64
}

fn block(w: &mut World, leaf: Leaf, from_ms: u64, to_ms: u64) {
    w.run(from_ms * MS);
    w.sleep(leaf.task);
    w.run(to_ms * MS);
    w.wake(leaf.task);
}

#[test]
fn briefly_blocked_example() {
    let (mut w, _, _, leaves) = second_chance(&["a", "b"]);
    let [a, b] = [leaves[0], leaves[1]];
    w.wake_all(&leaves);
    w.run(4 * MS);
    assert_eq!((w.runs(0), w.spent(a.edge)), ("idle", true));
    block(&mut w, a, 4, 10);
    assert_eq!(credit(&w, a), 3_000);
    w.run(20 * MS);
    block(&mut w, b, 20, 120);
    assert_eq!(credit(&w, b), 10_000);
    w.run(140 * MS);
    assert_eq!(w.schedule(), "10 a, 13 idle, 120 b, 130 idle");
}

#[test]
fn briefly_blocked_rule_1_credit_for_time_blocked() {
    let (mut w, _, node, leaves) = second_chance(&["a"]);
    let a = leaves[0];
    // never wanted the CPU before
    w.run(8 * MS);
    w.wake(a.task);
    assert_eq!(credit(&w, a), 0);
    // what is left is kept, and more of it built up
    block(&mut w, a, 10, 14);
    assert_eq!(credit(&w, a), 2_000);
    block(&mut w, a, 15, 17);
    assert_eq!(credit(&w, a), 2_000);
    // no more than the most, however long, nor after that was made smaller
    w.sleep(a.task);
    w.run(10_000_000 * MS);
    w.wake(a.task);
    assert_eq!(credit(&w, a), 10_000);
    w.graph.set(a.edge, half(4), w.now).unwrap();
    w.rest();
    assert_eq!(credit(&w, a), 4_000);
    // waiting for others is no blocking
    let b = w.task(node, "b", half(10));
    w.wake(b.task);
    w.run(w.now + 8 * MS);
    assert_eq!((credit(&w, a), credit(&w, b), w.runs(0)), (0, 0, "idle"));
}

#[test]
fn briefly_blocked_rule_2_spent_until_it_has_blocked() {
    let (mut w, top, _, leaves) = second_chance(&["a"]);
    let a = leaves[0];
    w.wake(a.task);
    block(&mut w, a, 0, 4);
    w.run(100 * MS);
    assert_eq!((w.supply(a.edge), w.spent(a.edge), w.edge(a).throttles), (2 * MS, true, 2));
    block(&mut w, a, 100, 104);
    w.run(200 * MS);
    assert_eq!(w.supply(a.edge), 4 * MS);

    // what it runs elsewhere uses up nothing: 2 ms there, then those that it has
    block(&mut w, a, 200, 204);
    let other = w.under(top, a.task, [2, 0, 0, 0]);
    w.run(206 * MS);
    assert_eq!((credit(&w, a), w.supply(other)), (2_000, 2 * MS));
    w.graph.detach(other, w.now).unwrap_or_default();
    w.rest();
    w.run(300 * MS);

    // what is no more than the floor is kept
    let (mut w, _, _, leaves) = second_chance(&["a"]);
    w.graph.set_floor_ns(100 * US);
    let a = leaves[0];
    w.wake(a.task);
    block(&mut w, a, 0, 4);
    w.overrun(6 * MS - 50 * US);
    assert_eq!((credit(&w, a), w.spent(a.edge)), (50, true));
    block(&mut w, a, 6, 7);
    assert_eq!(credit(&w, a), 550);
}

#[test]
fn briefly_blocked_rule_3_in_the_order_of_coming_back() {
    let (mut w, _, _, leaves) = second_chance(&["a", "b", "c"]);
    w.wake_all(&leaves);
    for leaf in &leaves {
        w.sleep(leaf.task);
    }
    for (at, i) in [(4, 1), (5, 2), (6, 0)] {
        w.run(at * MS);
        w.wake(leaves[i].task);
    }
    w.run(20 * MS);
    assert_eq!(w.schedule(), "4 b, 6 c, 8.5 a, 11.5 idle");
}

#[test]
fn briefly_blocked_rule_4_an_overrun_is_debt() {
    let (mut w, _, _, leaves) = second_chance(&["a"]);
    let a = leaves[0];
    w.wake(a.task);
    block(&mut w, a, 0, 4);
    w.overrun(7 * MS);
    assert_eq!((credit(&w, a), w.spent(a.edge)), (-1_000, true));
    block(&mut w, a, 7, 11);
    assert_eq!(credit(&w, a), 1_000);
    w.overrun(40 * MS);
    assert_eq!((credit(&w, a), w.edge(a).forgiven_ns), (-10_000, 18 * MS));
}

/// Over any time: no more than what was built up in it, and the most.
#[test]
fn briefly_blocked_conservation() {
    let mut dice = common::Dice::new(11);
    for _ in 0..50 {
        let (mut w, _, _, leaves) = second_chance(&["a", "b", "c"]);
        w.late_ns = dice.below(20) * US;
        let mut awake = [false; 3];
        let (mut blocked, mut since) = ([0u64; 3], [None::<u64>; 3]);
        for _ in 0..200 {
            w.run(w.now + dice.below(3_000) * US);
            let i = dice.below(3) as usize;
            if awake[i] {
                w.sleep(leaves[i].task);
                since[i] = Some(w.now);
            } else {
                w.wake(leaves[i].task);
                blocked[i] += since[i].map_or(0, |since| w.now - since);
            }
            awake[i] = !awake[i];
        }
        for (i, leaf) in leaves.iter().enumerate() {
            let (supply, edge) = (w.supply(leaf.edge) as i64, w.edge(*leaf));
            let built = blocked[i] as i64 / 2;
            assert!(supply + edge.policy[1] as i64 <= built + edge.forgiven_ns as i64 + 1);
            assert!(supply > 0);
        }
    }
}
