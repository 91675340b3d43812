//! The numbered rules of policy/slots.c.

mod common;

use common::{number, Dice, Leaf, World, MS};
use tierce_policy::{Cpus, Error};

/// parameter_out_of_range
const OUTSIDE: Error = Error(7);

/// Offset and length in us.
fn reserve(offset_us: u64, length_us: u64, fill: u64) -> [u64; 4] {
    [offset_us * 1000, length_us * 1000, fill, 0]
}

/// One CPU, slots of 5 ms, and these children with offset, length (us), fill.
fn slots(children: &[(&str, u64, u64, u64)]) -> (World, u32, Vec<Leaf>) {
    let (mut w, node) = World::one("slots", [5 * MS, 0, 0, 0]);
    let leaf = |(name, offset, length, fill): &(&str, u64, u64, u64)| {
        w.task(node, name, reserve(*offset, *length, *fill))
    };
    let leaves = children.iter().map(leaf).collect();
    (w, node, leaves)
}

const ABC: [(&str, u64, u64, u64); 3] = [("a", 0, 1000, 0), ("b", 1000, 3000, 1), ("c", 4000, 1000, 0)];

#[test]
fn slots_example() {
    let (mut w, _, leaves) = slots(&ABC);
    w.wake_all(&leaves);
    w.run(6 * MS);
    w.sleep(leaves[2].task);
    w.run(11 * MS);
    w.sleep(leaves[1].task);
    w.run(15 * MS);
    assert_eq!(w.schedule(), "0 a, 1 b, 4 c, 5 a, 6 b, 10 a, 11 idle, 15 a");
}

#[test]
fn slots_rule_1_the_owner_of_a_reserve_runs() {
    // who wakes in its reserve takes the CPU from one who fills, at once
    let (mut w, _, leaves) = slots(&ABC);
    w.wake(leaves[1].task);
    w.run(4 * MS + MS / 2);
    w.wake(leaves[2].task);
    w.run(5 * MS + MS / 4);
    w.wake(leaves[0].task);
    w.run(7 * MS);
    assert_eq!(w.schedule(), "0 b, 4.5 c, 5 b, 5.25 a, 6 b");

    // overlapping reserves: the lower edge id, whoever wakes first
    let (mut w, _, leaves) = slots(&[("a", 0, 2000, 0), ("b", 1000, 3000, 0)]);
    w.wake(leaves[1].task);
    w.run(MS + MS / 2);
    w.wake(leaves[0].task);
    w.run(7 * MS);
    assert_eq!(w.schedule(), "1 b, 1.5 a, 2 b, 4 idle, 5 a, 7 b");

    // a reserve as long as the slot never closes
    let (mut w, _, leaves) = slots(&[("a", 0, 5000, 0)]);
    w.wake(leaves[0].task);
    w.run(23 * MS);
    assert_eq!(w.schedule(), "0 a");
}

#[test]
fn slots_rule_2_outside_of_it_only_who_fills() {
    let (mut w, _, leaves) = slots(&[("a", 0, 1000, 0), ("b", 1000, 1000, 1), ("c", 2000, 1000, 1)]);
    w.wake_all(&leaves[..1]);
    w.run(MS);
    assert!(w.spent(leaves[0].edge));
    assert_eq!(w.graph.until(0), 5 * MS); // its timer is the next begin
    w.wake_all(&leaves[1..]);
    w.run(10 * MS);
    // after 3 ms nobody owns the time: b, the lower of the two who fill
    assert_eq!(w.schedule(), "0 a, 1 b, 2 c, 3 b, 5 a, 6 b, 7 c, 8 b, 10 a");
    w.sleep(leaves[1].task);
    w.sleep(leaves[0].task);
    w.run(12 * MS);
    assert_eq!(w.schedule(), "0 a, 1 b, 2 c, 3 b, 5 a, 6 b, 7 c, 8 b, 10 c");
    // without anybody who wants the CPU there is no timer
    w.sleep(leaves[2].task);
    assert_eq!(w.graph.until(0), tierce_policy::NEVER);
    assert!(!w.spent(leaves[0].edge));
    // who comes back much later finds his place
    w.run(1003 * MS + MS / 2);
    w.wake(leaves[0].task);
    w.run(1007 * MS);
    assert!(w.schedule().ends_with("12 idle, 1005 a, 1006 idle"), "{}", w.schedule());
}

#[test]
fn slots_rule_2_who_waits_may_be_told_to_fill() {
    let (mut w, _, leaves) = slots(&[("a", 0, 1000, 0)]);
    w.wake(leaves[0].task);
    w.run(2 * MS);
    assert!(w.spent(leaves[0].edge));
    w.graph.set(leaves[0].edge, reserve(0, 1000, 1), w.now).unwrap();
    w.rest();
    w.run(20 * MS);
    assert!(!w.spent(leaves[0].edge));
    assert_eq!(w.schedule(), "0 a, 1 idle, 5 a");
}

#[test]
fn slots_rule_3_one_clock_for_all_cpus() {
    let mut w = World::new(2);
    w.run(13 * MS + 7); // the graph grows at any time; slots count from 0
    let split = w.free_task("split");
    let mut edges = Vec::new();
    let mut nodes = Vec::new();
    for cpu in 0..2 {
        let node = w.node("slots", [5 * MS, 0, 0, 0]);
        w.graph.root(cpu, node, w.now).unwrap();
        nodes.push(node);
    }
    edges.push(w.under(nodes[0], split, reserve(4000, 1000, 0)));
    edges.push(w.under(nodes[1], split, reserve(0, 1500, 0)));
    let local = w.task(nodes[1], "local", reserve(1500, 3500, 1));
    w.wake(split);
    w.wake(local.task);
    let mut on = Vec::new();
    for at in 14 * 4..20 * 4 {
        w.run(at * MS / 4);
        let runs = [w.runs(0).to_string(), w.runs(1).to_string()];
        assert!(runs.iter().filter(|name| *name == "split").count() <= 1, "{at}");
        on.push(runs.iter().position(|name| name == "split"));
    }
    // 14 to 15 on CPU 0, 15 to 16.5 on CPU 1, and again
    let expected: Vec<_> = (14 * 4..20 * 4)
        .map(|at| match at % 20 {
            16..=19 => Some(0),
            0..=5 => Some(1),
            _ => None,
        })
        .collect();
    assert_eq!(on, expected);
    let before: Vec<_> = edges.iter().map(|edge| w.supply(*edge)).collect();
    w.run(1020 * MS);
    let supplied: Vec<_> = edges.iter().zip(before).map(|(edge, before)| w.supply(*edge) - before).collect();
    assert_eq!(supplied, [200 * MS + MS / 4, 300 * MS]); // the last quarter of the slot before is in the first
}

#[test]
fn slots_rule_4_nothing_is_kept() {
    let (mut w, _, leaves) = slots(&[("a", 1000, 2000, 0), ("b", 3000, 2000, 0)]);
    w.wake(leaves[1].task);
    w.run(12 * MS + MS / 2);
    w.wake(leaves[0].task); // half a millisecond of its third reserve is left
    w.run(20 * MS);
    assert_eq!(w.supply(leaves[0].edge), MS / 2 + 2 * MS);
    // a late timer takes from the next one: in each slot b begins when a stops
    w.late_ns = MS / 5;
    w.run(120 * MS);
    let (a, b) = (w.supply(leaves[0].edge), w.supply(leaves[1].edge));
    assert!(a.abs_diff(2 * MS + MS / 2 + 20 * 2 * MS) <= MS && b.abs_diff(24 * 2 * MS) <= MS, "{a} {b}");
}

#[test]
fn slots_rule_5_a_reserve_lies_within_the_slot() {
    let (mut w, node, leaves) = slots(&ABC);
    let beyond = w.free_task("beyond");
    for params in [reserve(4500, 501, 0), reserve(5000, 1, 0), reserve(0, 5001, 0), [u64::MAX, 1000, 0, 0]] {
        assert_eq!(w.try_under(node, beyond, params), Err(OUTSIDE), "{params:?}");
    }
    assert_eq!(w.try_under(node, beyond, reserve(0, 1000, 2)), Err(OUTSIDE));
    assert_eq!(w.graph.set(leaves[0].edge, reserve(4500, 501, 0), w.now), Err(OUTSIDE));
    assert_eq!(w.graph.node_new(number("slots"), 0, Cpus::from(0), [9_999, 0, 0, 0]), None);
    w.wake_all(&leaves);
    w.run(5 * MS);
    // a longer slot: each goes by it from the end of its reserve on, c from that at 9 on
    w.graph.node_set(node, [10 * MS, 0, 0, 0], w.now).unwrap();
    w.rest();
    w.run(30 * MS);
    assert_eq!(
        w.schedule(),
        "0 a, 1 b, 4 c, 5 a, 6 b, 9 c, 10 a, 11 b, 14 c, 15 b, 20 a, 21 b, 24 c, 25 b, 30 a"
    );
}

/// Whatever children do: nobody without `fill` runs outside of its reserve, and owners are never kept waiting.
#[test]
fn slots_run_in_their_reserves() {
    let mut dice = Dice::new(7);
    for _ in 0..40 {
        let slot_us = dice.within(20, 60) * 100;
        let (mut w, node) = World::one("slots", [slot_us * 1000, 0, 0, 0]);
        let mut at_us = 0;
        let mut children = Vec::new();
        while at_us + 300 < slot_us {
            let (gap_us, fill) = (dice.below(4) * 100, dice.below(3) / 2);
            let length_us = dice.within(1, 12) * 100;
            let length_us = length_us.min(slot_us - at_us - gap_us);
            let leaf = w.task(node, &format!("t{at_us}"), reserve(at_us + gap_us, length_us, fill));
            children.push((leaf, at_us + gap_us, length_us, fill, false));
            at_us += gap_us + length_us;
        }
        for _ in 0..200 {
            let child = dice.below(children.len() as u64) as usize;
            let (leaf, .., awake) = &mut children[child];
            *awake = !*awake;
            let task = leaf.task;
            if *awake {
                w.wake(task);
            } else {
                w.sleep(task);
            }
            w.run(w.now + dice.below(3 * slot_us) * 1000 + 1);
            let place_us = w.now / 1000 % slot_us;
            let owner = children
                .iter()
                .find(|(_, offset, length, ..)| (*offset..offset + length).contains(&place_us));
            let runs = w.graph.cpu(0).task;
            let by = children.iter().find(|(leaf, ..)| leaf.task == runs);
            match owner {
                Some((leaf, .., true)) => assert_eq!(runs, leaf.task, "at {}", w.now),
                _ => assert!(by.is_none_or(|(.., fill, _)| *fill == 1), "at {}", w.now),
            }
            let fills = children.iter().any(|(.., fill, awake)| *fill == 1 && *awake);
            assert!(runs != 0 || !fills, "at {}", w.now);
        }
    }
}
