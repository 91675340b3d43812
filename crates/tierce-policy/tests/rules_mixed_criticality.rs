//! The numbered rules of policy/mixed_criticality.c.

mod common;

use common::{Leaf, World, MS, NONE, US};

/// Priority, work, period, worst, the times in ms.
fn child(priority: u64, work: u64, period: u64, worst: u64) -> [u64; 4] {
    [priority, work * MS, period * MS, worst * MS]
}

fn below(children: &[(&str, [u64; 4])]) -> (World, u32, Vec<Leaf>) {
    let (mut w, node) = World::one("mixed-criticality", NONE);
    w.graph.trace(true);
    let leaves = children.iter().map(|(name, params)| w.task(node, name, *params)).collect();
    (w, node, leaves)
}

fn sleep_at(w: &mut World, leaf: Leaf, at_ms: u64) {
    w.run(at_ms * MS);
    w.sleep(leaf.task);
}

fn wake_at(w: &mut World, leaf: Leaf, at_ms: u64) {
    w.run(at_ms * MS);
    w.wake(leaf.task);
}

/// In whole microseconds: budgets are found used up 1 ns later.
fn schedule(w: &World) -> String {
    let round = |entry: &str| {
        let (at, name) = entry.split_once(' ').unwrap();
        format!("{} {name}", (at.parse::<f64>().unwrap() * 1000.0).floor() / 1000.0)
    };
    w.schedule().split(", ").map(round).collect::<Vec<_>>().join(", ")
}

#[test]
fn mixed_criticality_example() {
    let (mut w, _, leaves) = below(&[("video", child(2, 3, 7, 0)), ("brake", child(1, 2, 10, 5))]);
    let [video, brake] = [leaves[0], leaves[1]];
    w.wake_all(&leaves);
    sleep_at(&mut w, video, 3);
    wake_at(&mut w, video, 7);
    sleep_at(&mut w, brake, 8);
    wake_at(&mut w, brake, 10);
    sleep_at(&mut w, brake, 12);
    sleep_at(&mut w, video, 13);
    wake_at(&mut w, video, 14);
    sleep_at(&mut w, video, 17);
    w.run(20 * MS);
    assert_eq!(schedule(&w), "0 video, 3 brake, 8 video, 10 brake, 12 video, 13 idle, 14 video, 17 idle");
}

#[test]
fn mixed_criticality_rule_1_by_priority_and_by_request() {
    let (mut w, _, leaves) = below(&[
        ("a", child(1, 9, 90, 0)),
        ("b", child(2, 9, 90, 9)),
        ("c", child(2, 9, 90, 0)),
        ("d", child(3, 1, 90, 0)),
    ]);
    let [a, b, c, d] = [leaves[0], leaves[1], leaves[2], leaves[3]];
    w.wake_all(&[a, c, b]);
    wake_at(&mut w, d, 2);
    sleep_at(&mut w, d, 3);
    sleep_at(&mut w, c, 5);
    sleep_at(&mut w, b, 7);
    sleep_at(&mut w, a, 9);
    w.run(10 * MS);
    assert_eq!(schedule(&w), "0 c, 2 d, 3 c, 5 b, 7 a, 9 idle");
}

#[test]
fn mixed_criticality_rule_2_a_budget_in_each_period() {
    // `a` goes on wanting the CPU: 2 ms in each period before `b`, which has a period of its own
    let (mut w, _, leaves) = below(&[("a", child(2, 2, 10, 0)), ("b", child(1, 30, 30, 0))]);
    w.wake_all(&leaves);
    w.run(31 * MS);
    assert_eq!(schedule(&w), "0 a, 2 b, 10 a, 12 b, 20 a, 22 b, 30 a");

    // who blocks within a period goes on with what is left of it, and the next one begins when it comes back
    let (mut w, _, leaves) = below(&[("a", child(2, 3, 10, 0)), ("b", child(1, 60, 60, 0))]);
    let [a, b] = [leaves[0], leaves[1]];
    w.wake_all(&leaves);
    sleep_at(&mut w, a, 2);
    wake_at(&mut w, a, 8);
    w.run(12 * MS);
    sleep_at(&mut w, a, 13);
    wake_at(&mut w, a, 25);
    w.run(36 * MS);
    assert_eq!(schedule(&w), "0 a, 2 b, 8 a, 9 b, 10 a, 13 b, 25 a, 28 b, 35 a");
    assert!(w.supply(b.edge).abs_diff((6 + 1 + 12 + 7) * MS) < 10);

    // a critical one has `work_hi` in critical mode
    let (mut w, _, leaves) = below(&[("a", child(2, 2, 10, 4)), ("b", child(1, 10, 10, 10))]);
    w.wake_all(&leaves);
    w.run(9 * MS);
    assert_eq!(schedule(&w), "0 a, 4 b");
}

#[test]
fn mixed_criticality_rule_3_more_than_work_begins_critical_mode() {
    // exactly its work does not
    let set = [("lo", child(1, 9, 90, 0)), ("hi", child(2, 2, 10, 5))];
    let (mut w, _, leaves) = below(&set);
    let hi = leaves[1];
    w.wake_all(&leaves);
    sleep_at(&mut w, hi, 2);
    wake_at(&mut w, hi, 10);
    w.run(11 * MS);
    assert_eq!(modes(&mut w), (0, 0));
    // nor what a late timer lets it run beyond `work_hi`: it is behind then
    w.overrun(16 * MS);
    assert_eq!((modes(&mut w), w.runs(0)), ((0, 0), "lo"));
    sleep_at(&mut w, hi, 17);
    wake_at(&mut w, hi, 20);
    w.run(22 * MS);
    assert_eq!(modes(&mut w), (0, 0));
    w.run(22 * MS + 1);
    assert_eq!(modes(&mut w), (1, 0));
    // one whose worst is its work is behind at once
    let (mut w, _, leaves) = below(&[("lo", child(1, 9, 90, 0)), ("hi", child(2, 2, 10, 2))]);
    w.wake_all(&leaves);
    w.run(9 * MS);
    assert_eq!((modes(&mut w), schedule(&w).as_str()), ((0, 0), "0 hi, 2 lo"));
}

/// How often critical mode has begun and ended since this was asked last.
fn modes(w: &mut World) -> (usize, usize) {
    let events = w.events("mode");
    let of = |begins| events.iter().filter(|event| event.b == begins).count();
    (of(1), of(0))
}

#[test]
fn mixed_criticality_rule_4_others_are_behind_until_a_period_after_it() {
    let (mut w, _, leaves) = below(&[
        ("x", child(4, 1, 4, 0)),
        ("y", child(3, 1, 30, 0)),
        ("hi", child(2, 2, 40, 10)),
        ("z", child(1, 1, 5, 0)),
    ]);
    let [x, y, hi, z] = [leaves[0], leaves[1], leaves[2], leaves[3]];
    w.wake_all(&[hi, z]);
    // from 2 on: those that come, and those that wait already
    wake_at(&mut w, x, 3);
    wake_at(&mut w, y, 4);
    sleep_at(&mut w, hi, 6);
    // x has the larger priority among those behind; a period of it begins at 7, and z, which is before all, at 10
    w.run(6 * MS + 500 * US);
    assert_eq!(w.runs(0), "x");
    w.run(7 * MS + 500 * US);
    assert_eq!(w.runs(0), "x");
    sleep_at(&mut w, x, 8);
    assert_eq!(w.runs(0), "y"); // still behind, as is z
    w.run(10 * MS + 500 * US);
    assert_eq!(w.runs(0), "z");
    sleep_at(&mut w, z, 11);
    sleep_at(&mut w, y, 12);
    w.run(20 * MS);
    assert_eq!(schedule(&w), "0 hi, 6 x, 8 y, 10 z, 11 y, 12 idle");
}

#[test]
fn mixed_criticality_rule_5_behind_only_while_nobody_else_wants_the_cpu() {
    let (mut w, _, leaves) =
        below(&[("a", child(3, 1, 20, 0)), ("b", child(2, 1, 20, 0)), ("c", child(1, 1, 20, 0))]);
    let [a, b, c] = [leaves[0], leaves[1], leaves[2]];
    w.wake_all(&[a, b]);
    w.run(5 * MS);
    assert_eq!(schedule(&w), "0 a, 1 b, 2 a");
    wake_at(&mut w, c, 6);
    w.run(8 * MS);
    sleep_at(&mut w, a, 9);
    sleep_at(&mut w, b, 11);
    w.run(12 * MS);
    assert_eq!(schedule(&w), "0 a, 1 b, 2 a, 6 c, 7 a, 9 b, 11 c");
}

#[test]
fn mixed_criticality_rule_6_it_ends_when_no_critical_child_wants_the_cpu() {
    let (mut w, _, leaves) =
        below(&[("lo", child(3, 5, 20, 0)), ("hi", child(2, 1, 50, 5)), ("other", child(1, 2, 50, 3))]);
    let [lo, hi, other] = [leaves[0], leaves[1], leaves[2]];
    w.wake_all(&[hi, other]);
    wake_at(&mut w, lo, 2);
    sleep_at(&mut w, hi, 3);
    assert_eq!(modes(&mut w), (1, 0)); // the other one wants it
    w.run(5 * MS + 999 * US);
    assert_eq!((modes(&mut w), w.runs(0)), ((0, 0), "other"));
    w.run(6 * MS + 1);
    assert_eq!((modes(&mut w), w.runs(0)), ((0, 1), "lo")); // which has used up its worst
                                                            // one that is made critical counts, one that is made another does not
    wake_at(&mut w, hi, 60);
    w.run(62 * MS);
    assert_eq!(modes(&mut w), (2, 1)); // the other one was in its next period, too
    w.graph.set(other.edge, child(1, 2, 50, 0), w.now).unwrap();
    w.rest();
    w.graph.set(hi.edge, child(2, 1, 50, 0), w.now).unwrap();
    w.rest();
    assert_eq!(modes(&mut w), (0, 1));
}

/// Beside what it runs behind others, no child gets more than its budget in a period.
#[test]
fn mixed_criticality_conservation() {
    let mut dice = common::Dice::new(29);
    let mut seen = [0u64; 2];
    for round in 0..60 {
        let critical = round % 2;
        let params = |dice: &mut common::Dice| {
            let (work, period) = (1 + dice.below(4), 10 + dice.below(30));
            child(dice.below(4), work, period, critical * (work + dice.below(4)))
        };
        let set: Vec<_> = ["a", "b", "c", "d"].map(|name| (name, params(&mut dice))).to_vec();
        let (mut w, node, leaves) = below(&set);
        let hog = w.task(node, "hog", child(0, 3_000_000, 3_000_000, critical * 3_000_000)); // nobody runs behind it
        w.wake(hog.task);
        let mut awake = [false; 4];
        let mut periods = [(0, 0); 4]; // its begin, and the supply until then
        for _ in 0..300 {
            let now = w.now;
            w.run(now + dice.below(3_000) * US);
            let i = dice.below(4) as usize;
            if awake[i] {
                w.sleep(leaves[i].task);
            } else {
                w.wake(leaves[i].task);
            }
            awake[i] = !awake[i];
            for (i, leaf) in leaves.iter().enumerate() {
                let [_, work, _, worst] = set[i].1;
                let [_, begin, used, ..] = w.edge(*leaf).policy;
                if periods[i].0 != begin {
                    periods[i] = (begin, w.supply(leaf.edge) - used);
                }
                let received = w.supply(leaf.edge) - periods[i].1;
                assert!(received <= work.max(worst) + 1, "{received}: {:?}", set[i]);
                seen[0] += 1;
                seen[1] += u64::from(received >= work);
            }
        }
    }
    assert!(seen[1] * 100 > seen[0], "{seen:?}");
}
