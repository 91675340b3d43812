//! The numbered rules of policy/time_sharing.c.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

mod common;

use common::{number, Dice, Leaf, World, MS, NONE, US};
use tierce_policy::{Cpus, Graph, NEVER, TASK};

const QUANTUM_MS: u64 = 10;

/// Quantum of 10 ms, starvation in ms, below a priority that can take the CPU; children by name, priority and boost.
fn levels(starvation_ms: u64, children: &[(&str, u64, u64)]) -> (World, u32, Vec<Leaf>, Leaf) {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("time-sharing", [QUANTUM_MS * MS, starvation_ms * MS, 0]);
    w.under(top, node, NONE);
    let leaf = |(name, priority, boost): &(&str, u64, u64)| w.task(node, name, [*priority, *boost, 0, 0]);
    let leaves = children.iter().map(leaf).collect();
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    (w, node, leaves, urgent)
}

/// 1023: lifted.
fn level(w: &World, leaf: Leaf) -> u64 {
    1023 - (w.edge(leaf).policy[0] >> 48)
}

/// The others wait, and this one has slept for 1 ms: it wakes, and rises.
fn sleeps(w: &mut World, leaf: Leaf) {
    w.sleep(leaf.task);
    w.run(w.now + MS);
    w.wake(leaf.task);
}

#[test]
fn time_sharing_example() {
    let children = [("a", 8, 2), ("b", 8, 2), ("c", 8, 2)];
    let (mut w, _, leaves, _) = levels(3000, &children);
    let [a, b, c] = leaves[..] else { unreachable!() };
    w.wake_all(&[a, b]);
    w.run(15 * MS);
    w.wake(c.task);
    assert_eq!(level(&w, c), 10);
    w.run(25 * MS);
    assert_eq!(level(&w, c), 9);
    w.run(35 * MS);
    assert_eq!(level(&w, c), 8);
    w.run(51 * MS);
    assert_eq!(w.schedule(), "0 a, 10 b, 15 c, 35 b, 40 a, 50 c");
    // having used a quantum it comes back as it left
    w.sleep(c.task);
    w.run(52 * MS);
    w.wake(c.task);
    assert_eq!(level(&w, c), 8);
    // had it slept again at 18
    let (mut w, _, leaves, _) = levels(3000, &children);
    let [a, b, c] = leaves[..] else { unreachable!() };
    w.wake_all(&[a, b]);
    w.run(15 * MS);
    w.wake(c.task);
    w.run(18 * MS);
    w.sleep(c.task);
    w.run(20 * MS);
    w.wake(c.task);
    assert_eq!((level(&w, c), w.runs(0)), (10, "c"));
    assert_eq!(w.schedule(), "0 a, 10 b, 15 c, 18 b, 20 c");
}

#[test]
fn time_sharing_rule_1_the_highest_level_at_once() {
    let (mut w, _, leaves, _) = levels(0, &[("low", 3, 0), ("high", 5, 0), ("middle", 4, 0)]);
    for (at, i) in [(0, 0), (1, 2), (2, 1)] {
        w.run(at * MS);
        w.wake(leaves[i].task);
    }
    w.run(40 * MS);
    w.sleep(leaves[1].task);
    w.run(50 * MS);
    w.sleep(leaves[2].task);
    assert_eq!(w.schedule(), "0 low, 1 middle, 2 high, 40 middle, 50 low");

    // on two CPUs the lowest of those that run gives way
    let (mut w, node) = two_cpus(0, 0);
    let low: Vec<_> = [4, 3, 5].map(|priority| w.task(node, "", [priority, 0, 0, 0])).into();
    w.wake_all(&low[..2]);
    w.wake(low[2].task);
    let mut run = [w.graph.cpu(0).task, w.graph.cpu(1).task];
    run.sort();
    assert_eq!(run, [low[0].task, low[2].task]);
}

#[test]
fn time_sharing_rule_2_turns_in_a_level() {
    let (mut w, node, leaves, urgent) = levels(0, &[("a", 1, 0), ("b", 1, 0), ("c", 1, 0)]);
    w.wake(leaves[0].task);
    assert_eq!(w.graph.until(0), NEVER); // alone: no turns, no timer
    w.run(24 * MS);
    w.wake_all(&leaves[1..]); // 6 ms are left of the quantum under way
    w.run(34 * MS);
    w.wake(urgent.task);
    w.run(35 * MS);
    w.sleep(urgent.task); // b goes on with 6 ms, before the others
    w.run(52 * MS);
    assert_eq!(w.schedule(), "0 a, 30 b, 34 urgent, 35 b, 41 c, 51 a");
    // a child above the level takes the CPU, and the turn goes on behind it
    let above = w.task(node, "above", [2, 0, 0, 0]);
    w.run(53 * MS);
    w.wake(above.task);
    w.run(55 * MS);
    w.sleep(above.task);
    w.run(64 * MS);
    assert!(w.schedule().ends_with("51 a, 53 above, 55 a, 63 b"), "{}", w.schedule());
    // what a CPU needs to decide after a quantum is no part of another turn
    let (mut v, _, leaves, _) = levels(0, &[("a", 1, 0), ("b", 1, 0)]);
    v.wake_all(&leaves);
    v.graph.event(0, 10 * MS, 0);
    v.now = 10 * MS + 5 * US;
    v.rest();
    v.run(45 * MS);
    assert_eq!(v.schedule(), "0 a, 10.005 b, 20.005 a, 30 b, 40 a");
    // an overrun is one turn
    w.overrun(100 * MS);
    w.run(101 * MS);
    assert!(w.schedule().ends_with("63 b, 100 c"), "{}", w.schedule());
}

#[test]
fn time_sharing_rule_3_a_used_quantum_sinks_to_the_priority() {
    let (mut w, _, leaves, _) = levels(0, &[("a", 5, 3), ("b", 6, 0)]);
    let [a, b] = leaves[..] else { unreachable!() };
    w.wake(a.task);
    assert_eq!(level(&w, a), 5); // it has not waited for any time yet
    sleeps(&mut w, a);
    w.wake(b.task);
    let (begin, mut seen) = (w.now, vec![]);
    for quantum in 1..5 {
        w.run(begin + quantum * QUANTUM_MS * MS);
        seen.push((level(&w, a), w.runs(0).to_string()));
    }
    let expected = [(7, "a"), (6, "b"), (6, "a"), (5, "b")];
    assert_eq!(seen, expected.map(|(level, name)| (level, name.to_string())));

    // alone, where nobody looks: what it sank is found when somebody comes
    let (mut w, _, leaves, _) = levels(0, &[("a", 5, 3), ("b", 6, 0)]);
    let [a, b] = leaves[..] else { unreachable!() };
    w.wake(a.task);
    sleeps(&mut w, a);
    assert_eq!(level(&w, a), 8);
    w.now += 25 * MS; // two quanta and a half: 6, where b comes to the end
    w.wake(b.task);
    assert_eq!((level(&w, a), w.runs(0)), (6, "a"));
    w.run(31 * MS);
    assert_eq!((level(&w, a), w.schedule().as_str()), (5, "0 idle, 1 a, 31 b"));

    // a new priority is the level from there on
    w.graph.set(a.edge, [9, 3, 0, 0], w.now).unwrap();
    w.rest();
    assert_eq!((level(&w, a), w.runs(0)), (9, "a"));
    w.graph.set(a.edge, [2, 3, 0, 0], w.now).unwrap();
    w.rest();
    assert_eq!((level(&w, a), w.runs(0)), (2, "b"));
}

#[test]
fn time_sharing_rule_4_who_blocks_within_a_quantum_rises() {
    let (mut w, _, leaves, urgent) = levels(0, &[("a", 5, 3), ("b", 5, 0)]);
    let [a, b] = leaves[..] else { unreachable!() };
    w.wake_all(&[a, b]);
    w.run(4 * MS);
    sleeps(&mut w, a);
    assert_eq!((level(&w, a), w.runs(0)), (8, "a"));
    // by as much, once: it is there already
    sleeps(&mut w, a);
    assert_eq!(level(&w, a), 8);
    // after a used quantum: as it left, 7, and the next time again at 8
    w.run(w.now + 11 * MS);
    sleeps(&mut w, a);
    assert_eq!(level(&w, a), 7);
    sleeps(&mut w, a);
    assert_eq!(level(&w, a), 8);
    // giving way is no sleep, losing the CPU is none
    w.run(w.now + 31 * MS);
    assert_eq!(level(&w, a), 5);
    sleeps(&mut w, a); // a fresh quantum
    assert_eq!(level(&w, a), 5);
    while w.runs(0) != "a" {
        w.run(w.now + MS);
    }
    w.wake(urgent.task);
    w.run(w.now + MS);
    w.sleep(urgent.task);
    assert_eq!((level(&w, a), w.runs(0)), (5, "a"));
    w.yields(a.task);
    assert_eq!((level(&w, a), w.runs(0)), (5, "b"));
}

#[test]
fn time_sharing_rule_5_who_starves_is_lifted_for_a_quantum() {
    let (mut w, _, leaves, _) = levels(35, &[("a", 9, 5), ("b", 3, 0), ("c", 2, 0)]);
    let [a, b, c] = leaves[..] else { unreachable!() };
    w.wake_all(&[a]);
    w.run(MS);
    w.wake(c.task);
    w.run(2 * MS);
    w.wake(b.task);
    w.run(36 * MS);
    assert_eq!((level(&w, c), w.runs(0)), (1023, "c"));
    w.run(37 * MS); // b is lifted, too: after c
    assert_eq!((level(&w, b), w.runs(0)), (1023, "c"));
    // nobody gets above them, whatever its boost
    sleeps(&mut w, a);
    assert_eq!(w.runs(0), "c");
    w.run(46 * MS);
    assert_eq!((level(&w, c), w.runs(0)), (2, "b"));
    w.run(90 * MS);
    assert_eq!(w.schedule(), "0 a, 36 c, 46 b, 56 a, 81 c");
    // a lifted child that sleeps is lifted no more
    assert_eq!(level(&w, c), 1023);
    w.sleep(c.task);
    assert_eq!(level(&w, c), 2);

    // it is quanta that count: pieces of one do not put off the rest of it
    let (mut w, _, leaves, _) = levels(35, &[("a", 9, 0), ("b", 3, 0)]);
    let [a, b] = leaves[..] else { unreachable!() };
    w.wake_all(&[a, b]);
    for at in [10, 20, 30] {
        w.run(at * MS);
        w.sleep(a.task);
        w.run((at + 1) * MS);
        w.wake(a.task);
    }
    w.run(43 * MS);
    assert_eq!(w.schedule(), "0 a, 10 b, 11 a, 20 b, 21 a, 30 b, 31 a, 35 b, 42 a");

    // 0: never; and who runs alone is not woken up for it
    let (mut w, _, leaves, _) = levels(0, &[("a", 9, 0), ("b", 3, 0)]);
    w.wake_all(&leaves);
    w.run(100_000 * MS);
    assert_eq!(w.supply(leaves[1].edge), 0);
    let (mut w, _, leaves, _) = levels(35, &[("a", 9, 0), ("b", 3, 0)]);
    w.wake(leaves[0].task);
    w.run(200 * MS);
    assert_eq!(w.graph.until(0), NEVER);
}

/// A node over two CPUs, its own root on each.
fn two_cpus(starvation_ns: u64, affinity: u64) -> (World, u32) {
    let mut w = World::new(2);
    let node = w.node("time-sharing", [QUANTUM_MS * MS, starvation_ns, affinity]);
    for cpu in 0..2 {
        let top = w.node("fixed-priority", NONE);
        w.graph.root(cpu, top, 0).unwrap();
        w.under(top, node, NONE);
    }
    (w, node)
}

#[test]
fn time_sharing_rule_6_affinity() {
    // three on two CPUs: with affinity one of them stays where it is
    let migrations = |affinity| {
        let (mut w, node) = two_cpus(0, affinity);
        let leaves: Vec<_> = (0..3).map(|_| w.task(node, "", [5, 0, 0, 0])).collect();
        for (at, leaf) in leaves.iter().enumerate() {
            w.run(at as u64 * MS);
            w.wake(leaf.task);
        }
        w.run(10_000 * MS);
        let supply: Vec<_> = leaves.iter().map(|leaf| w.supply(leaf.edge) / MS).collect();
        (leaves.iter().map(|leaf| w.graph.node(leaf.task).migrations).sum::<u32>(), supply)
    };
    let (moved, supply) = migrations(0);
    assert!(moved > 900 && supply.iter().all(|ms| (6600..6700).contains(ms)), "{moved} {supply:?}");
    let (moved, supply) = migrations(1);
    assert!(moved < 10 && supply.iter().max().unwrap() > &9900, "{moved} {supply:?}");
    let (moved, supply) = migrations(2);
    assert!(moved < 700 && supply.iter().all(|ms| (6600..6700).contains(ms)), "{moved} {supply:?}");

    // a child that waits is taken where it ran last, as long as it is not more than `affinity` turns behind the first
    for (affinity, taken) in [(0, "b"), (1, "c"), (9, "c")] {
        let (mut w, node) = two_cpus(0, affinity);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| w.task(node, name, [5, 0, 0, 0]));
        // c runs on CPU 0, b and d on CPU 1; a is to hold CPU 1
        w.wake_all(&[c]);
        assert_eq!(w.runs(0), "c");
        w.wake(b.task);
        assert_eq!(w.runs(1), "b");
        w.sleep(c.task);
        w.wake(d.task);
        w.sleep(b.task);
        w.wake(a.task);
        assert_eq!((w.runs(0), w.runs(1)), ("d", "a"));
        w.wake_all(&[b, c]);
        w.run(MS);
        w.sleep(d.task);
        assert_eq!(w.runs(0), taken, "affinity {affinity}");
    }

    // a level above goes before, wherever it ran
    let (mut w, node) = two_cpus(0, 1000);
    let leaves = [5, 5, 5, 6].map(|priority| w.task(node, "", [priority, 0, 0, 0]));
    w.wake_all(&leaves);
    w.run(100 * MS);
    let run = [w.graph.cpu(0).task, w.graph.cpu(1).task];
    assert!(run.contains(&leaves[3].task));
}

/// With n children on one CPU, each that always wants it uses a quantum in every starvation + n quanta, whatever the others do.
#[test]
fn nobody_starves() {
    let mut dice = Dice::new(12);
    let mut lifted = 0;
    for case in 0..40 {
        let n = dice.within(2, 7) as usize;
        let starvation_ms = dice.within(1, 120);
        let children: Vec<_> = (0..n).map(|_| ("", dice.below(8), dice.below(6))).collect();
        let (mut w, _, leaves, _) = levels(starvation_ms, &children);
        let busy = dice.within(1, n as u64 - 1) as usize;
        w.wake_all(&leaves[..busy]);
        let bound = (starvation_ms + n as u64 * QUANTUM_MS) * MS;
        // supply and time when the quantum under way began, as its child sees it
        let mut last = vec![(0, 0); busy];
        for _ in 0..600 {
            let next = (w.now + dice.within(1, 9 * MS)).min(w.graph.until(0).max(w.now + 1));
            w.run(next);
            for (leaf, last) in leaves.iter().zip(&mut last) {
                lifted += u64::from(level(&w, *leaf) == 1023);
                while w.supply(leaf.edge) - last.0 >= QUANTUM_MS * MS {
                    *last =
                        (last.0 + QUANTUM_MS * MS, w.now - (w.supply(leaf.edge) - last.0 - QUANTUM_MS * MS));
                }
                let waits = w.now - last.1;
                assert!(waits <= bound, "case {case}: {} ms of {} ms", waits / MS, bound / MS);
            }
            if busy < n {
                let other = busy + dice.below((n - busy) as u64) as usize;
                if dice.below(2) == 0 {
                    w.wake(leaves[other].task);
                } else {
                    w.sleep(leaves[other].task);
                }
            }
        }
    }
    assert!(lifted > 1000, "{lifted}");
}

/// HLS 9.3.1, on one to four CPUs, with tasks bound to some of them: after every operation no child waits while one of a lower
/// level has a CPU that it could use; no CPU idles that a waiting child may use; nobody runs where it may not. The levels are
/// kept in a model of their own, from what ran alone.
#[test]
fn no_child_waits_below_a_lower_level() {
    let mut dice = Dice::new(13);
    let (mut looked, mut boosted) = (0_u64, 0_u64);
    for case in 0..60 {
        let cpus = dice.within(1, 4) as u32;
        let mut w = World::new(cpus);
        let starvation = if case % 2 == 0 { 0 } else { dice.within(20, 200) * MS };
        let node = w.node("time-sharing", [QUANTUM_MS * MS, starvation, dice.below(4)]);
        for cpu in 0..cpus {
            w.graph.root(cpu, node, 0).unwrap();
        }
        w.rest();
        let n = dice.within(2, 9) as usize;
        let mut tasks = vec![];
        for _ in 0..n {
            let allowed = if dice.below(3) == 0 { 1 << dice.below(cpus.into()) } else { u64::MAX };
            let task = w.graph.node_new(TASK, 0, Cpus::from(allowed), NONE).unwrap();
            let params = [dice.below(4), dice.below(4), 0, 0];
            let edge = w.under(node, task, params);
            tasks.push((Leaf { task, edge }, allowed, params));
        }
        let mut awake = vec![false; n];
        for step in 0..400 {
            let one = dice.below(n as u64) as usize;
            match dice.below(4) {
                0 if !awake[one] => {
                    w.wake(tasks[one].0.task);
                    awake[one] = true;
                }
                1 if awake[one] => {
                    w.sleep(tasks[one].0.task);
                    awake[one] = false;
                }
                _ => {
                    let to = w.now + dice.within(1, 8000) * US;
                    w.run(to);
                }
            }
            let running: Vec<_> = (0..cpus).map(|cpu| w.graph.cpu(cpu).task).collect();
            let of = |task: u32| tasks.iter().position(|(leaf, ..)| leaf.task == task);
            for (at, (leaf, allowed, [priority, boost, ..])) in tasks.iter().enumerate() {
                let own = level(&w, *leaf);
                assert!(
                    own == 1023 || (*priority..=priority + boost).contains(&own),
                    "case {case}.{step}: {own}"
                );
                boosted += u64::from(own > *priority);
                if let Some(cpu) = running.iter().position(|task| *task == leaf.task) {
                    assert!(awake[at] && allowed >> cpu & 1 == 1, "case {case}.{step}");
                    continue;
                }
                for (cpu, other) in
                    running.iter().enumerate().filter(|(cpu, _)| awake[at] && allowed >> cpu & 1 == 1)
                {
                    let other = of(*other).unwrap_or_else(|| panic!("case {case}.{step}: CPU {cpu} idles"));
                    assert!(level(&w, tasks[other].0) >= own, "case {case}.{step}: CPU {cpu}");
                    looked += 1;
                }
            }
        }
    }
    assert!(looked > 10_000 && boosted > 1000, "{looked} {boosted}");
}

/// Children of one level that always want the CPU have equal turns, and with affinity at most `affinity` turns of others more.
#[test]
fn who_waits_is_passed_over_by_few() {
    let mut dice = Dice::new(14);
    let mut most_passed = 0;
    for _ in 0..30 {
        let affinity = dice.within(0, 5);
        let n = dice.within(3, 9) as usize;
        let (mut w, node) = two_cpus(0, affinity);
        let leaves: Vec<_> = (0..n).map(|_| w.task(node, "", [1, 0, 0, 0])).collect();
        for leaf in &leaves {
            w.wake(leaf.task);
            w.run(w.now + dice.within(1, 3000) * US);
        }
        w.run(500 * MS); // turns are given for used quanta alone from here on
        for _ in 0..400 {
            let next = (0..2).map(|cpu| w.graph.cpu(cpu).armed_ns).min().unwrap();
            w.run(next);
            for leaf in leaves.iter().filter(|leaf| w.edge(**leaf).state == 1) {
                let turn = w.edge(*leaf).policy[0] & ((1 << 47) - 1);
                let passed = w.graph.node(node).clock - turn;
                assert!(passed < n as u64 + affinity, "{passed} with {n} and affinity {affinity}");
                most_passed = most_passed.max(passed as i64 - n as i64);
            }
        }
    }
    assert!(most_passed >= 2, "{most_passed}");
}

#[test]
fn time_sharing_parameters_have_ranges() {
    let mut graph = Graph::new(1, 0).unwrap();
    let node = |graph: &mut Graph, params: [u64; 3]| {
        graph.node_new(number("time-sharing"), 0, Cpus::from(0), params)
    };
    assert!(node(&mut graph, [9_999, 0, 0]).is_none() && node(&mut graph, [10_000, 0, 1001]).is_none());
    let id = node(&mut graph, [10_000, 0, 1000]).unwrap();
    graph.root(0, id, 0).unwrap();
    let task = graph.node_new(TASK, 0, Cpus::ALL, NONE).unwrap();
    for params in [[256, 0, 0, 0], [0, 256, 0, 0]] {
        assert_eq!(graph.attach(id, task, params, 0, false, 0).unwrap_err().name(), "parameter_out_of_range");
    }
    graph.attach(id, task, [255, 255, 0, 0], 0, false, 0).unwrap();
}
