//! The numbered rules of policy/fair.c.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

mod common;

use common::{warped, weight, World, MS, NONE, US};

/// Where virtual time begins, and how many of its units are a µs per unit of weight.
const BEGIN: u64 = 1 << 60;
const UNIT: u64 = 1024 * US;

fn quantum(ns: u64) -> [u64; 4] {
    [ns, 0, 0, 0]
}

fn eevdf(ns: u64) -> [u64; 4] {
    [ns, 1, 0, 0]
}

fn stride(ns: u64) -> [u64; 4] {
    [ns, 2, 0, 0]
}

fn lottery(ns: u64, seed: u64) -> [u64; 4] {
    [ns, 3, seed, 0]
}

/// Virtual time of a node in µs per unit of weight, rounded.
fn clock(w: &World, node: u32) -> u64 {
    (w.graph.node(node).clock - BEGIN + UNIT / 2) / UNIT
}

/// Start tag in µs per unit of weight, rounded.
fn tag(w: &World, leaf: common::Leaf) -> u64 {
    (w.edge(leaf).policy[0] - BEGIN + UNIT / 2) / UNIT
}

/// How far a child that sleeps is beyond virtual time, with order = "stride".
fn asleep(w: &World, leaf: common::Leaf) -> i64 {
    (w.edge(leaf).policy[0] as i64 - BEGIN as i64).div_euclid(UNIT as i64)
}

#[test]
fn fair_example() {
    let (mut w, top) = World::one("fair", quantum(3 * MS));
    let [a, b, c] = [("a", 100), ("b", 200), ("c", 100)].map(|(name, of)| w.task(top, name, weight(of, 0)));
    w.wake_all(&[a, b]);
    for (at, tags) in [(3, [30, 0]), (6, [30, 15]), (9, [30, 30])] {
        w.run(at * MS);
        assert_eq!([a, b].map(|leaf| tag(&w, leaf)), tags);
    }
    assert_eq!(w.schedule(), "0 a, 3 b, 9 a");
    w.wake(c.task); // even with the others
    assert_eq!(tag(&w, c), 30);
    w.run(21 * MS);
    assert_eq!(w.schedule(), "0 a, 3 b, 9 a, 12 b, 15 c, 18 b, 21 a");
}

#[test]
fn fair_rule_1_least_tag_once_the_quantum_is_used() {
    // 1 : 2 : 5, each quantum whole
    let (mut w, top) = World::one("fair", quantum(MS));
    let leaves = [("a", 10), ("b", 20), ("c", 50)].map(|(name, of)| w.task(top, name, weight(of, 0)));
    w.wake_all(&leaves);
    w.run(8000 * MS);
    assert_eq!(leaves.map(|leaf| w.supply(leaf.edge) / MS), [1000, 2000, 5000]);
    // equal tags: the lower edge id
    let (mut w, top) = World::one("fair", quantum(MS));
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[b, a]);
    w.run(4 * MS);
    // b was requested first, but a's id is lower
    assert_eq!(w.schedule(), "0 a, 1 b, 2 a, 3 b, 4 a");
    // a child with warp is ordered as if it stood further behind
    let (mut w, top) = World::one("fair", quantum(MS));
    let [a, b] = [("a", 0), ("b", 3)].map(|(name, warp)| w.task(top, name, weight(100, warp * MS)));
    w.wake_all(&[a, b]);
    w.run(9 * MS);
    assert_eq!(w.schedule(), "0 b, 3 a, 4 b, 5 a, 6 b, 7 a, 8 b, 9 a");
    let ahead = w.supply(b.edge) - w.supply(a.edge);
    assert!(ahead <= 3 * MS + 2 * MS, "warp is ahead by {ahead}");
}

/// The timer asks for a decision, which takes a while to come and charges once more.
#[test]
fn fair_a_used_quantum_stays_used_until_the_decision() {
    let (mut w, top) = World::one("fair", quantum(3 * MS));
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[a, b]);
    assert_eq!(w.runs(0), "a");
    let at = w.graph.cpu(0).armed_ns;
    w.graph.event(0, at, 0);
    w.now = at + 5 * US;
    w.rest();
    assert_eq!(w.runs(0), "b");
}

#[test]
fn fair_rule_2_warp_preempts_within_a_quantum() {
    for (warp, at, expected) in [
        (5, 2, "0 b, 2 c, 3 b"),   // behind what b's quantum began with: at once
        (5, 6, "0 b, 10 c, 11 b"), // ahead of it: when the quantum is used
        (0, 2, "0 b, 10 c, 11 b"), // no warp: when the quantum is used
    ] {
        let (mut w, top) = World::one("fair", quantum(10 * MS));
        let b = w.task(top, "b", weight(100, 0));
        let c = w.task(top, "c", weight(100, warp * MS));
        w.wake(b.task);
        w.run(at * MS);
        w.wake(c.task);
        while w.supply(c.edge) < MS {
            w.run(w.now + MS);
        }
        w.sleep(c.task);
        w.run(20 * MS);
        assert_eq!(w.schedule(), expected);
    }
    // who has warp runs until it is ahead by as much, then in turns
    let (mut w, top) = World::one("fair", quantum(10 * MS));
    let b = w.task(top, "b", weight(100, 0));
    let c = w.task(top, "c", weight(100, 5 * MS));
    w.wake(b.task);
    w.run(2 * MS);
    w.wake(c.task);
    w.run(12 * MS);
    assert_eq!(w.schedule(), "0 b, 2 c, 12 b");
}

#[test]
fn fair_rule_3_a_waking_child_earns_no_credit() {
    // the others never stop: the smallest tag of those that want the CPU
    let (mut w, top) = World::one("fair", quantum(MS));
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[a, b]);
    w.run(11 * MS); // a: 6 ms, b: 5
    w.wake(c.task);
    assert_eq!([a, b, c].map(|leaf| tag(&w, leaf)), [60, 50, 50]);
    w.run(17 * MS);
    assert_eq!([a, b, c].map(|leaf| w.supply(leaf.edge) / MS), [7, 7, 3]);
    // it never falls: c sleeps while ahead and comes back with its own tag
    w.sleep(c.task);
    assert_eq!(tag(&w, c), 80);
    w.wake(c.task);
    assert_eq!(tag(&w, c), 80);

    // when nobody wants the CPU: the largest tag ever reached
    w.sleep(a.task);
    w.sleep(b.task);
    let d = w.task(top, "d", weight(100, 0));
    let largest = [a, b, c].map(|leaf| tag(&w, leaf)).into_iter().max().unwrap();
    w.sleep(c.task);
    w.wake(d.task);
    assert_eq!((tag(&w, d), largest), (80, 80));
    let (mut w, top) = World::one("fair", quantum(MS));
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake(a.task);
    w.run(50 * MS);
    w.sleep(a.task);
    w.run(60 * MS);
    w.wake(b.task);
    assert_eq!(tag(&w, b), 500);
    w.wake(a.task);
    w.run(70 * MS);
    assert_eq!([a, b].map(|leaf| w.supply(leaf.edge) / MS), [55, 5]);

    // two CPUs, and no timer since each had a child of its own: what they have run since counts
    for order in [0, SURPLUS] {
        let (mut w, node) = two_cpus(order);
        let [a, b, c] = ["a", "b", "c"].map(|name| w.task(node, name, weight(100, 0)));
        w.wake_all(&[a, b]);
        w.now = 9_000 * MS;
        w.wake(c.task);
        assert_eq!(tag(&w, c), 90_000);
        w.run(9_300 * MS);
        assert!(w.supply(c.edge).abs_diff(200 * MS) <= 3 * MS);
    }
    // below an inner node, which one of them serves at a time, the same
    let (mut w, node) = two_cpus(0);
    let inner = w.node("fair", quantum(3 * MS));
    w.under(node, inner, weight(100, 0));
    let [a, b] = ["a", "b"].map(|name| w.task(inner, name, weight(100, 0)));
    w.wake(a.task);
    w.now = 9_000 * MS;
    w.wake(b.task);
    assert_eq!(tag(&w, b), 90_000);
    // but not what was stolen, nor what ran beside
    let (mut w, node) = two_cpus(0);
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(node, name, weight(100, 0)));
    w.wake_all(&[a, b]);
    w.graph.outside(0, true, w.now);
    w.graph.taken(1, 4_000 * MS);
    w.now = 9_000 * MS;
    w.wake(c.task);
    assert_eq!(tag(&w, c), 0);
    w.graph.outside(0, false, w.now);
    w.rest();
    w.now = 14_000 * MS;
    w.sleep(c.task);
    w.wake(c.task);
    assert!(tag(&w, c).abs_diff(50_000) <= 60, "{}", tag(&w, c));
}

#[test]
fn fair_rule_4_outranked_keeps_tag_and_quantum() {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("fair", quantum(3 * MS));
    w.under(top, node, NONE);
    let [a, b] = ["a", "b"].map(|name| w.task(node, name, weight(100, 0)));
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    w.wake_all(&[a, b]);
    for at in [1, 3] {
        w.run(at * MS);
        w.wake(urgent.task);
        w.run((at + 1) * MS);
        w.sleep(urgent.task);
    }
    // a had 1 ms, then b, which stood further behind; both go on with the 2 ms they have left of their quanta
    assert_eq!((tag(&w, a), tag(&w, b)), (10, 10));
    w.run(11 * MS);
    assert_eq!(w.schedule(), "0 a, 1 urgent, 2 b, 3 urgent, 4 a, 6 b, 8 a, 11 b");

    // within the node, too: one that warp has outranked goes on with what is left of its quantum
    let (mut w, top) = World::one("fair", quantum(10 * MS));
    let [b, d] = ["b", "d"].map(|name| w.task(top, name, weight(100, 0)));
    let c = w.task(top, "c", weight(100, 8 * MS));
    w.wake_all(&[b, d]);
    w.run(4 * MS);
    w.wake(c.task);
    w.run(5 * MS);
    w.sleep(c.task);
    // d's tag is the smaller one now, so it comes first. b has 6 ms left of its quantum; then it is even with d and, with
    // the lower id, begins another. (Had it begun a whole one at 15, it would stand behind d at 25.)
    w.run(31 * MS);
    assert_eq!(w.schedule(), "0 b, 4 c, 5 d, 15 b, 31 d");
}

#[test]
fn fair_rule_5_eevdf_earliest_eligible_deadline() {
    // who has run ahead of its share has to wait, however early its deadline
    let (mut w, top) = World::one("fair", eevdf(3 * MS));
    let [a, b, c] = [("a", 100), ("b", 200), ("c", 100)].map(|(name, of)| w.task(top, name, weight(of, 0)));
    w.wake_all(&[a, b]);
    for (at, now, tags) in [(3, 10, [0, 15]), (6, 20, [30, 15]), (9, 30, [30, 30])] {
        w.run(at * MS);
        assert_eq!((clock(&w, top), [a, b].map(|leaf| tag(&w, leaf))), (now, tags));
    }
    w.wake(c.task);
    assert_eq!(tag(&w, c), 30);
    w.run(21 * MS);
    // at 15 ms the deadlines of b and c are equal: the lower edge id
    assert_eq!(w.schedule(), "0 b, 3 a, 6 b, 12 a, 15 b, 18 c, 21 b");
    assert_eq!([a, b, c].map(|leaf| tag(&w, leaf)), [60, 60, 60]);

    // a quantum is served whole: an earlier deadline waits for its end
    let (mut w, top) = World::one("fair", eevdf(10 * MS));
    let [a, b] = [("a", 100), ("b", 1000)].map(|(name, of)| w.task(top, name, weight(of, 0)));
    w.wake(a.task);
    w.run(2 * MS);
    w.wake(b.task);
    w.run(12 * MS);
    assert_eq!(w.schedule(), "0 a, 10 b");

    // if nobody is eligible, the least tag, and virtual time moves on to it
    let (mut w, top) = World::one("fair", eevdf(MS));
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[a, b]);
    w.run(MS + MS / 2);
    assert_eq!((w.runs(0), clock(&w, top), tag(&w, a)), ("b", 8, 10));
    w.sleep(b.task);
    assert_eq!((w.runs(0), clock(&w, top)), ("a", 10));
}

#[test]
fn fair_rule_6_eevdf_debts_are_kept_and_credits_are_not() {
    let (mut w, top) = World::one("fair", eevdf(4 * MS));
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[a, b, c]);
    w.run(4 * MS);
    // a sleeps ahead of its share and counts until virtual time is where its tag is
    w.sleep(a.task);
    assert_eq!((clock(&w, top), tag(&w, a)), (13, 40));
    w.run(8 * MS);
    assert_eq!((clock(&w, top), w.graph.node(top).share.weight), (27, 300));
    w.wake(a.task);
    assert_eq!(tag(&w, a), 40);
    w.run(12 * MS);
    w.sleep(a.task);
    w.run(16 * MS);
    assert_eq!(w.schedule(), "0 a, 4 b, 8 c, 12 b, 16 c");
    assert_eq!((clock(&w, top), w.graph.node(top).share.weight), (60, 200));
    // c sleeps behind and comes back without a claim, as does who was gone for long
    w.sleep(c.task);
    assert_eq!(tag(&w, c), 40);
    w.wake_all(&[a, c]);
    assert_eq!([a, b, c].map(|leaf| tag(&w, leaf)), [80, 80, 80]);

    // a counts until virtual time is at its tag, 4 ms after it went to sleep, whether 20 ms are charged at once or bit by bit
    for steps in [1, 2, 20] {
        let (mut w, top) = World::one("fair", eevdf(4 * MS));
        let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
        w.wake_all(&[a, b]);
        w.run(4 * MS);
        w.sleep(a.task);
        assert_eq!((w.runs(0), clock(&w, top), tag(&w, a)), ("b", 20, 40));
        for step in 1..=steps {
            w.run(4 * MS + 20 * MS / steps * step);
        }
        assert_eq!((clock(&w, top), w.graph.node(top).share.weight), (200, 100), "{steps} steps");
    }

    // a new weight: what a child is owed stays the same
    let (mut w, top) = World::one("fair", eevdf(4 * MS));
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[a, b]);
    w.run(4 * MS);
    assert_eq!([a, b].map(|leaf| tag(&w, leaf)), [40, 0]);
    for (leaf, of) in [(a, 200), (b, 400)] {
        w.graph.set(leaf.edge, weight(of, 0), w.now).unwrap();
    }
    w.rest();
    // 2 ms ahead and behind
    assert_eq!((clock(&w, top), [a, b].map(|leaf| tag(&w, leaf))), (20, [30, 15]));
    w.run(400 * MS);
    let got = [a, b].map(|leaf| w.supply(leaf.edge) / MS);
    assert_eq!(got, [136, 264]);
}

#[test]
fn fair_rule_7_stride_least_pass() {
    let (mut w, top) = World::one("fair", stride(3 * MS));
    let [a, b] = [("a", 100), ("b", 200)].map(|(name, of)| w.task(top, name, weight(of, 0)));
    w.wake_all(&[a, b]);
    for (at, now, tags) in [(0, 0, [30, 15]), (3, 10, [30, 30]), (6, 20, [60, 30]), (9, 30, [60, 45])] {
        w.run(at * MS);
        assert_eq!((clock(&w, top), [a, b].map(|leaf| tag(&w, leaf))), (now, tags));
    }
    w.run(18 * MS);
    assert_eq!(w.schedule(), "0 b, 3 a, 6 b, 12 a, 15 b"); // equal at 3 and at 12: the lower edge id

    // virtual time is of those that want the CPU: without b, a's weight alone
    w.sleep(b.task);
    w.run(24 * MS);
    assert_eq!(clock(&w, top), 60 + 60);

    // 1 : 2 : 5, each quantum whole
    let (mut w, top) = World::one("fair", stride(MS));
    let leaves = [("a", 10), ("b", 20), ("c", 50)].map(|(name, of)| w.task(top, name, weight(of, 0)));
    w.wake_all(&leaves);
    w.run(8000 * MS);
    assert_eq!(leaves.map(|leaf| w.supply(leaf.edge) / MS), [1000, 2000, 5000]);
}

#[test]
fn fair_rule_8_stride_what_is_beyond_comes_back() {
    let (mut w, top) = World::one("fair", stride(4 * MS));
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| w.task(top, name, weight(100, 0)));
    assert_eq!([a, b, c, d].map(|leaf| asleep(&w, leaf)), [40, 40, 40, 40]); // new: a quantum beyond

    // two at a time, the first has a quantum, which is 20 of virtual time: it gains as much, the other loses it
    for (at, pair, left) in [
        (0, [a, b], [40, 20]), // 60 beyond, of which a quantum is kept
        (1, [c, d], [40, 20]),
        (2, [a, c], [40, 20]),
        (3, [b, c], [40, 0]),
        (4, [a, b], [40, 20]),
        (5, [b, d], [40, 0]),
        (6, [c, d], [20, -20]),
        (7, [d, c], [0, 0]),
    ] {
        w.wake_all(&pair);
        w.run((at + 1) * 4 * MS);
        assert_eq!(w.supply(pair[1].edge) % (4 * MS), 0);
        pair.iter().for_each(|leaf| w.sleep(leaf.task));
        assert_eq!((clock(&w, top), pair.map(|leaf| asleep(&w, leaf))), ((at + 1) * 20, left));
    }
    w.run(100 * MS); // nobody wants the CPU: virtual time stands still
    assert_eq!(clock(&w, top), 160);

    // a new weight: what is kept stays the same in CPU time, of who sleeps and of who runs
    w.graph.set(a.edge, weight(200, 0), w.now).unwrap();
    assert_eq!(asleep(&w, a), 20);
    w.wake_all(&[a, b]);
    w.graph.set(b.edge, weight(400, 0), w.now).unwrap();
    w.rest();
    assert_eq!([a, b].map(|leaf| tag(&w, leaf)), [180, 170]);
    assert_eq!(w.graph.node(top).share.weight, 600);

    // one that waits for its turn and then gives it up, again and again, brings nobody else ahead
    let (mut w, top) = World::one("fair", stride(MS));
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[a, b]);
    for turn in 1..=100 {
        w.run(turn * MS);
        assert_eq!(w.runs(0), "b");
        w.sleep(b.task);
        w.wake(b.task);
    }
    assert_eq!(w.supply(a.edge), 100 * MS);
    w.run(110 * MS);
    assert!(w.schedule().ends_with(" 100 a, 101 b, 106 a, 107 b, 108 a, 109 b, 110 a"));
}

#[test]
fn fair_rule_9_lottery_chances_are_weights() {
    // 1 : 2 : 5, each quantum whole
    let drawings = |seed| {
        let (mut w, top) = World::one("fair", lottery(MS, seed));
        let leaves = [("a", 10), ("b", 20), ("c", 50)].map(|(name, of)| w.task(top, name, weight(of, 0)));
        w.wake_all(&leaves);
        w.run(8000 * MS);
        (leaves.map(|leaf| w.supply(leaf.edge) as i64 / MS as i64), w.schedule())
    };
    let (won, schedule) = drawings(1);
    for (won, (mean, variance)) in won.into_iter().zip([(1000, 875), (2000, 1500), (5000, 1875)]) {
        assert!((won - mean) * (won - mean) <= 16 * variance, "{won}, {mean} on the average");
    }
    // the same seed brings the same, another one something else
    assert_eq!(drawings(1).1, schedule);
    assert!([0, 2, 3].iter().all(|&seed| drawings(seed).1 != schedule));

    // what is drawn is distributed exponentially: of who comes anew again and again
    let (mut w, top) = World::one("fair", lottery(MS, 1));
    let [a, b] = [("a", 1), ("b", 16)].map(|(name, of)| w.task(top, name, weight(of, 0)));
    w.wake(a.task);
    w.run(MS / 2);
    let drawn: Vec<_> = (0..40_000)
        .map(|_| {
            w.sleep(b.task);
            w.wake(b.task);
            (w.edge(b).policy[0] - w.graph.node(top).clock) as f64 * 16.0 / (1024 * MS) as f64
        })
        .collect();
    for least in [0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 7.0] {
        let (n, p) = (drawn.len() as f64, f64::exp(-least));
        let more = drawn.iter().filter(|drawn| **drawn > least).count() as f64;
        assert!((more - n * p).powi(2) <= 16.0 * n * p * (1.0 - p), "{more} of {n} above {least}");
    }

    // a quantum is served whole: who comes waits for its end, and one that has lost the CPU above has the rest of it
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("fair", lottery(10 * MS, 1));
    w.under(top, node, NONE);
    let a = w.task(node, "a", weight(1, 0));
    let b = w.task(node, "b", weight(10_000, 0));
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    w.wake(a.task);
    w.run(2 * MS);
    w.wake(b.task);
    w.run(3 * MS);
    w.wake(urgent.task);
    w.run(4 * MS);
    w.sleep(urgent.task);
    w.run(12 * MS);
    assert_eq!(w.schedule(), "0 a, 3 urgent, 4 a, 11 b");
}

/// One uses a quarter of a quantum and sleeps for a moment, for which the other is given one: after that its chance is 4 to 1.
#[test]
fn fair_rule_10_lottery_compensates_who_leaves_early() {
    let (mut w, top) = World::one("fair", lottery(4 * MS, 1));
    let [brief, busy] = ["brief", "busy"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[brief, busy]);
    let mut turns = 0;
    while w.now < 20_000 * MS {
        w.run(w.now + MS);
        if w.supply(brief.edge) > turns as u64 * MS {
            turns += 1;
            w.sleep(brief.task);
            w.wake(brief.task);
        }
    }
    // within 4 sigma
    let n = (w.supply(busy.edge) / (4 * MS)) as i64;
    assert!((5 * turns - 4 * n) * (5 * turns - 4 * n) <= 16 * 4 * n, "{turns} of {n}");
    assert!(n > 4000);
}

#[test]
fn fair_rule_11_warp_ends_at_its_limit() {
    // b, a quantum of 10 ms; c wakes at 2 ms with a warp of 50 ms and takes the CPU at once
    let late = |limit, unwarp| {
        let (mut w, top) = World::one("fair", quantum(10 * MS));
        let b = w.task(top, "b", weight(100, 0));
        let c = w.task(top, "c", warped(100, 50 * MS, limit, unwarp));
        w.wake(b.task);
        w.run(2 * MS);
        w.wake(c.task);
        (w, b, c)
    };
    for (limit, expected) in [
        (0, "0 b, 2 c"),                  // 50 ms ahead
        (3, "0 b, 2 c, 5 b, 13 c, 23 b"), // 3 of them: b has the rest of its quantum, then they take turns
        (13, "0 b, 2 c, 15 b"),           // beyond its quantum
        (4000, "0 b, 2 c"),
    ] {
        let (mut w, _, c) = late(limit * MS, 0);
        w.run(32 * MS);
        assert_eq!(w.schedule(), expected);
        assert_eq!(w.edge(c).policy[3] == 0, (1..32).contains(&limit));
    }

    // with the next wake-up it begins anew, and counts anew when it was not used up
    let (mut w, _, c) = late(3 * MS, 0);
    w.run(4 * MS);
    w.sleep(c.task);
    w.run(5 * MS);
    w.wake(c.task);
    w.run(9 * MS); // 3 ms from 5 on
    assert_eq!(w.schedule(), "0 b, 2 c, 4 b, 5 c, 8 b");
    w.sleep(c.task);
    w.wake(c.task);
    assert_eq!(w.runs(0), "c");
    // what its CPU does for others in between does not count
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("fair", quantum(10 * MS));
    w.under(top, node, NONE);
    let d = w.task(node, "d", weight(100, 0));
    let e = w.task(node, "e", warped(100, 50 * MS, 4 * MS, 0));
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    w.wake_all(&[d, e]);
    w.run(2 * MS);
    w.wake(urgent.task);
    w.run(9 * MS);
    w.sleep(urgent.task);
    w.run(12 * MS);
    assert_eq!(w.schedule(), "0 e, 2 urgent, 9 e, 11 d");
    // late by 30 us: so much more
    let (mut w, ..) = late(3 * MS, 0);
    w.late_ns = 30 * US;
    w.run(10 * MS);
    assert_eq!(w.schedule(), "0 b, 2 c, 5.03 b");

    // a child alone begins another quantum with the end of its warp, of which a newcomer waits for the rest
    let (mut w, top) = World::one("fair", quantum(10 * MS));
    let b = w.task(top, "b", weight(100, 0));
    let c = w.task(top, "c", warped(100, 50 * MS, 3 * MS, 0));
    w.wake(c.task);
    w.run(4 * MS);
    assert_eq!(w.edge(c).policy[3], 0);
    w.wake(b.task);
    w.run(21 * MS);
    assert_eq!(w.schedule(), "0 c, 13 b");

    // a new limit counts anew; who is without its warp stays so, and has it when there is no limit any more
    let (mut w, b, c) = late(3 * MS, 0);
    w.run(4 * MS);
    w.graph.set(b.edge, weight(100, 0), w.now).unwrap();
    w.graph.set(c.edge, warped(100, 50 * MS, 5 * MS, 0), w.now).unwrap();
    w.run(10 * MS);
    assert_eq!(w.schedule(), "0 b, 2 c, 9 b");
    w.graph.set(c.edge, warped(100, 50 * MS, 4 * MS, 0), w.now).unwrap();
    w.rest();
    assert_eq!(w.runs(0), "b");
    w.graph.set(c.edge, weight(100, 50 * MS), w.now).unwrap();
    w.rest();
    assert_eq!(w.runs(0), "c");
    // another weight or warp changes nothing in what is left of it
    let (mut w, _, c) = late(3 * MS, 0);
    w.run(4 * MS);
    w.graph.set(c.edge, warped(200, 40 * MS, 3 * MS, 0), w.now).unwrap();
    w.run(6 * MS);
    assert_eq!(w.schedule(), "0 b, 2 c, 5 b");
}

#[test]
fn fair_rule_12_warp_comes_back_after_its_time() {
    let (mut w, top) = World::one("fair", quantum(10 * MS));
    let b = w.task(top, "b", weight(100, 0));
    let c = w.task(top, "c", warped(10, 50 * MS, 3 * MS, 9 * MS));
    w.wake_all(&[b, c]);
    w.run(30 * MS);
    assert_eq!(w.schedule(), "0 c, 3 b, 12 c, 15 b, 24 c, 27 b");
    // a wake-up does not bring it back before; it comes back to who sleeps, and waits, and runs
    w.sleep(c.task);
    w.run(30 * MS + MS / 2);
    w.wake(c.task);
    w.run(35 * MS);
    assert_eq!((w.runs(0), w.edge(c).policy[3]), ("b", 0));
    w.sleep(c.task);
    w.run(36 * MS);
    assert_ne!(w.edge(c).policy[3], 0);
    w.wake(c.task);
    w.run(38 * MS);
    assert_eq!(w.runs(0), "c");
    w.run(39 * MS);
    w.sleep(b.task);
    w.run(50 * MS); // alone: at 48 it has its warp again, for 3 ms of which 2 are used
    w.wake(b.task);
    w.run(51 * MS);
    assert_eq!(w.edge(c).policy[3], 0);

    // the time that has begun stays what it was; a child that is removed takes nothing along
    let (mut w, top) = World::one("fair", quantum(10 * MS));
    let b = w.task(top, "b", weight(100, 0));
    let c = w.task(top, "c", warped(10, 50 * MS, 3 * MS, 9 * MS));
    w.wake_all(&[b, c]);
    w.run(3 * MS);
    w.graph.set(c.edge, warped(10, 50 * MS, 3 * MS, 0), w.now).unwrap();
    w.sleep(c.task);
    w.wake(c.task);
    assert_eq!(w.runs(0), "b");
    w.run(20 * MS);
    assert_eq!(w.schedule(), "0 c, 3 b, 12 c, 15 b");
    w.graph.set(c.edge, warped(10, 50 * MS, 3 * MS, 9 * MS), w.now).unwrap();
    w.sleep(c.task); // without its warp until it wakes, as was said when that ended
    w.wake(c.task);
    w.run(24 * MS);
    assert_eq!(w.schedule(), "0 c, 3 b, 12 c, 15 b, 20 c, 23 b");
    w.sleep(c.task);
    w.graph.detach(c.edge, w.now).unwrap();
    w.run(50 * MS);
    assert_eq!(w.runs(0), "b");
}

/// A limit of a child that several CPUs may run: its warp ends and comes back on whichever it is.
#[test]
fn fair_a_warp_limit_on_several_cpus() {
    let mut w = World::new(2);
    let node = w.node("fair", quantum(10 * MS));
    for cpu in 0..2 {
        w.graph.root(cpu, node, 0).unwrap();
    }
    let others = ["b", "d"].map(|name| w.task(node, name, weight(100, 0)));
    let c = w.task(node, "c", warped(100, 50 * MS, 3 * MS, 9 * MS));
    w.wake_all(&others);
    w.run(2 * MS);
    for (from, to) in [(2, 3), (5, 0), (14, 3), (17, 0)] {
        if from == 2 {
            w.wake(c.task);
        }
        w.run(from * MS + MS / 2);
        let runs = (0..2).any(|cpu| w.runs(cpu) == "c");
        assert_eq!((runs, w.edge(c).policy[3] != 0), (to != 0, to != 0), "at {from} ms");
    }
}

#[test]
fn many_become_eligible_at_once() {
    let (mut w, top) = World::one("fair", eevdf(MS));
    let leaves: Vec<_> = (0..500).map(|i| w.task(top, &format!("t{i}"), weight(100, 0))).collect();
    w.wake_all(&leaves);
    w.run(2000 * MS);
    for leaf in leaves {
        assert_eq!(w.supply(leaf.edge), 4 * MS);
    }
}

/// A node that two CPUs run.
fn two_cpus(order: u64) -> (World, u32) {
    let mut w = World::new(2);
    let node = w.node("fair", [3 * MS, order]);
    for cpu in 0..2 {
        w.graph.root(cpu, node, 0).unwrap();
    }
    (w, node)
}

/// Number of that order.
const SURPLUS: u64 = 4;

#[test]
fn fair_rule_13_a_weight_counts_for_one_cpu_at_most() {
    // a asks for 5/6 of two CPUs and has one, as it would with a weight of 20
    let (mut w, node) = two_cpus(SURPLUS);
    let leaves = [("a", 100), ("b", 10), ("c", 10)].map(|(name, of)| w.task(node, name, weight(of, 0)));
    w.wake_all(&leaves);
    w.run(9_000 * MS);
    assert_eq!(leaves.map(|leaf| w.supply(leaf.edge) / MS), [9000, 4500, 4500]);
    // within a quantum at a weight of 10
    assert!(leaves.iter().all(|&leaf| tag(&w, leaf).abs_diff(450_000) <= 300));
    // so nobody owes it anything when one CPU is left, of which all have what their weights say: 10 to 1 and 1
    let had = leaves.map(|leaf| w.supply(leaf.edge));
    w.graph.online(1, false, w.now).unwrap();
    w.run(9_360 * MS);
    for (i, expected) in [300, 30, 30].into_iter().enumerate() {
        assert!((w.supply(leaves[i].edge) - had[i]).abs_diff(expected * MS) <= 4 * MS);
    }
    // nor when there are more of them: 100 of 300 on two CPUs
    w.graph.online(1, true, w.now).unwrap();
    w.run(12_000 * MS);
    let crowd: Vec<_> = (0..18).map(|i| w.task(node, &format!("{i}"), weight(10, 0))).collect();
    let had = leaves.map(|leaf| w.supply(leaf.edge));
    w.wake_all(&crowd);
    w.run(21_000 * MS);
    // behind by up to a quantum of one of the others
    assert!((w.supply(leaves[0].edge) - had[0]).abs_diff(6_000 * MS) <= 10 * 3 * MS + 3 * MS);
    assert!(crowd.iter().all(|leaf| w.supply(leaf.edge).abs_diff(600 * MS) <= 3 * MS));

    // as many CPUs as children: all have one, and go on as equals when another comes
    let (mut w, node) = two_cpus(SURPLUS);
    let [a, b] = [("a", 1), ("b", 10)].map(|(name, of)| w.task(node, name, weight(of, 0)));
    w.wake_all(&[a, b]);
    w.run(9_000 * MS);
    assert_eq!(tag(&w, a), tag(&w, b));
    let c = w.task(node, "c", weight(1, 0));
    w.wake(c.task);
    w.run(9_300 * MS);
    assert_eq!([a, b, c].map(|leaf| w.supply(leaf.edge) / MS), [9150, 9300, 150]);
    // a weight that changes while the child runs, waits and sleeps
    for (leaf, of) in [(a, 30), (b, 30), (c, 30)] {
        w.graph.set(leaf.edge, weight(of, 0), w.now).unwrap();
        w.rest();
    }
    w.sleep(c.task);
    w.graph.set(c.edge, weight(20, 0), w.now).unwrap();
    assert_eq!(w.graph.node(node).share.weight, 60);
    w.wake(c.task);
    assert_eq!(w.graph.node(node).share.weight, 80);

    // who is cut leaves the rest to the others: 1000 is worth more than 400 of 1600 on four CPUs, 300 than 200 of the other 600
    let mut w = World::new(4);
    let node = w.node("fair", [3 * MS, SURPLUS]);
    (0..4).for_each(|cpu| w.graph.root(cpu, node, 0).unwrap());
    let heavy = [1000, 300, 100, 100].map(|of| w.task(node, &format!("{of}"), weight(of, 0)));
    let light: Vec<_> = (0..10).map(|i| w.task(node, &format!("{i}"), weight(10, 0))).collect();
    w.wake_all(&heavy);
    w.wake_all(&light);
    w.run(3_000 * MS);
    for (leaf, expected) in heavy.iter().zip([3000, 3000, 2000, 2000]).chain(light.iter().zip([200; 10])) {
        // a quantum of each of the light ones, which at the beginning all have less surplus than a heavy one that has had its own
        assert!(w.supply(leaf.edge).abs_diff(expected * MS) <= 10 * 3 * MS / 4 + 3 * MS);
        assert!(tag(&w, *leaf).abs_diff(20_000) <= 450);
    }
}

/// What a thread of weight 20, 20 of weight 1, and jobs of weight 5 and 300 ms, each a child of its own that comes when the one before
/// it is done, have of two CPUs in 90 s, in ms.
fn short_jobs(order: u64) -> [u64; 3] {
    let mut w = World::new(2);
    let node = w.node("fair", [200 * MS, order]);
    (0..2).for_each(|cpu| w.graph.root(cpu, node, 0).unwrap());
    let heavy = w.task(node, "heavy", weight(20, 0));
    let light: Vec<_> = (0..20).map(|i| w.task(node, &format!("{i}"), weight(1, 0))).collect();
    w.wake(heavy.task);
    w.wake_all(&light);
    let mut short = 0;
    let mut job = w.task(node, "job", weight(5, 0));
    w.wake(job.task);
    for tick in 1..=9_000 {
        w.run(tick * 10 * MS);
        if w.supply(job.edge) >= 300 * MS {
            short += w.supply(job.edge);
            w.sleep(job.task);
            w.graph.detach(job.edge, w.now).unwrap();
            w.graph.node_free(job.task).unwrap();
            job = w.task(node, "job", weight(5, 0));
            w.wake(job.task);
        }
    }
    let light = light.iter().map(|leaf| w.supply(leaf.edge)).sum::<u64>();
    [w.supply(heavy.edge), light, short + w.supply(job.edge)].map(|ns| ns / MS)
}

#[test]
fn fair_rule_14_the_least_surplus_is_picked() {
    // at 9 h, l and r stand at 200, s, which runs, at 133: l has had 0.7 ms more than it was owed, h and r 2 ms
    for (order, ninth) in [(0, "h"), (SURPLUS, "l")] {
        let (mut w, node) = two_cpus(order);
        let [h, l, r, s] =
            [("h", 30), ("l", 10), ("r", 30), ("s", 30)].map(|(name, of)| w.task(node, name, weight(of, 0)));
        for leaf in [r, s, h, l] {
            w.wake(leaf.task);
        }
        w.run(5 * MS);
        w.sleep(l.task);
        w.run(7 * MS);
        w.wake(l.task);
        w.run(9 * MS);
        assert_eq!([h, l, r, s].map(|leaf| tag(&w, leaf)), [200, 200, 200, 133]);
        assert_eq!((w.runs(0), w.runs(1)), (ninth, "s"));
    }

    // the short jobs of Chandra et al. 2000, whose weights say 80, 80 and 20 s: each comes at virtual time, and has its first quantum
    // at once by either order, but the rest not by surplus
    let ([heavy, light, short], [more, heavier, shorter]) = (short_jobs(0), short_jobs(SURPLUS));
    assert_eq!((heavy + light + short, more + heavier + shorter), (180_000, 180_000));
    assert!(shorter + 6_000 < short && more > heavy && heavier > light, "{short} and {shorter} ms");
}

fn credit(quantum_ns: u64, credit_ns: u64) -> [u64; 4] {
    [quantum_ns, 0, 0, credit_ns]
}

/// `c` runs for 1 ms and sleeps until `wakes_ms`, while `b` computes; `c` computes from then on. Quantum 10 ms.
fn slept_until(credit_ns: u64, wakes_ms: u64) -> (World, u64) {
    let (mut w, top) = World::one("fair", credit(10 * MS, credit_ns));
    let [b, c] = ["b", "c"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake(c.task);
    w.run(MS);
    w.sleep(c.task);
    w.wake(b.task);
    w.run(wakes_ms * MS);
    w.wake(c.task);
    let behind = w.graph.node(top).clock - w.edge(c).policy[0];
    w.run(40 * MS);
    (w, behind * 100 / 1024)
}

#[test]
fn fair_rule_16_of_two_alone_the_one_behind_replaces_the_other() {
    // b has had 2 ms more, which is not the whole credit: c has a quantum at once.
    let (w, behind) = slept_until(3 * MS, 3);
    assert!(behind.abs_diff(2 * MS) < US, "{behind}");
    assert_eq!(w.schedule(), "0 c, 1 b, 3 c, 13 b, 31 c");
    // Only a wake-up does that: what the CPU decides meanwhile changes nothing.
    let (mut w, top) = World::one("fair", credit(10 * MS, 3 * MS));
    let [b, c] = ["b", "c"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake(b.task);
    w.wake(c.task);
    for ms in 1..35 {
        w.run(ms * MS); // which makes the CPU decide
    }
    assert_eq!(w.schedule(), "0 b, 10 c, 20 b, 30 c");
    // Who has had more waits, as without a credit.
    let (mut w, top) = World::one("fair", credit(10 * MS, 3 * MS));
    let [b, c] = ["b", "c"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake(c.task);
    w.wake(b.task);
    w.run(8 * MS);
    w.sleep(c.task);
    w.run(10 * MS);
    w.wake(c.task);
    w.run(40 * MS);
    assert_eq!(w.schedule(), "0 c, 8 b, 18 c, 28 b, 38 c");
    // A warp counts: b has had more, and comes first by its warp all the same.
    let (mut w, top) = World::one("fair", credit(10 * MS, 3 * MS));
    let [b, c] = [("b", 5 * MS), ("c", 0)].map(|(name, warp)| w.task(top, name, weight(100, warp)));
    w.wake(c.task);
    w.run(MS);
    w.sleep(c.task);
    w.wake(b.task);
    w.run(3 * MS);
    w.sleep(b.task);
    w.run(4 * MS);
    w.wake(b.task);
    w.wake(c.task);
    w.run(20 * MS);
    assert_eq!(w.schedule(), "0 c, 1 b, 3 idle, 4 b, 14 c");
}

#[test]
fn fair_rule_15_who_slept_has_a_credit_and_is_served_first() {
    // Without: it waits for the rest of the quantum, and begins even.
    let (w, behind) = slept_until(0, 8);
    assert_eq!((w.schedule().as_str(), behind), ("0 c, 1 b, 11 c, 21 b, 31 c", 0));
    // It is owed more than the credit: it has that, at once, and then its quantum.
    let (w, behind) = slept_until(3 * MS, 8);
    assert!(behind.abs_diff(3 * MS) < US, "{behind}");
    assert!(w.schedule().starts_with("0 c, 1 b, 8 c, 18.09"), "{}", w.schedule());
    // It is owed less, and d waits, too: it waits for the rest of the quantum.
    let (mut w, top) = World::one("fair", credit(10 * MS, 3 * MS));
    let [b, c, d] = ["b", "c", "d"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake(c.task);
    w.run(MS);
    w.sleep(c.task);
    w.wake(b.task);
    w.run(3 * MS);
    w.wake(d.task);
    w.wake(c.task);
    w.run(40 * MS);
    assert!(w.schedule().starts_with("0 c, 1 b, 11 c, 21 d"), "{}", w.schedule());
    // Served first for as long as it is owed the last 32nd: two that wake together, each for 1/32 of the credit.
    let (mut w, top) = World::one("fair", credit(10 * MS, 32 * MS));
    let [b, c, d] = ["b", "c", "d"].map(|name| w.task(top, name, weight(100, 0)));
    for leaf in [c, d] {
        w.wake(leaf.task);
    }
    w.run(20 * MS);
    w.sleep(c.task);
    w.sleep(d.task);
    w.wake(b.task);
    w.run(100 * MS);
    w.wake(c.task);
    w.wake(d.task);
    w.run(115 * MS);
    assert!(
        w.schedule().ends_with("20 b, 100 c, 100.999999 d, 101.999998 c, 111.999998 d"),
        "{}",
        w.schedule()
    );
    // One that is served first is not replaced by another one, though that is owed more: c slept for 31.5 ms, d for longer.
    let (mut w, top) = World::one("fair", credit(10 * MS, 32 * MS));
    let [b, c, d] = ["b", "c", "d"].map(|name| w.task(top, name, weight(100, 0)));
    for (leaf, until_ns) in [(d, 2 * MS), (c, 10 * MS)] {
        w.wake(leaf.task);
        w.run(until_ns);
        w.sleep(leaf.task);
    }
    w.wake(b.task);
    w.run(10 * MS + 31_500 * US);
    w.wake(c.task);
    w.run(10 * MS + 31_700 * US);
    w.wake(d.task);
    w.run(45 * MS);
    let schedule = w.schedule();
    assert!(schedule.ends_with("10 b, 41.5 c, 41.999999 d, 42.999998 c"), "{schedule}");
    // A child that comes for the first time has none.
    let (mut w, top) = World::one("fair", credit(10 * MS, 3 * MS));
    let [b, new] = ["b", "new"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake(b.task);
    w.run(5 * MS);
    w.wake(new.task);
    w.run(12 * MS);
    assert_eq!(w.schedule(), "0 b, 10 new");
}
