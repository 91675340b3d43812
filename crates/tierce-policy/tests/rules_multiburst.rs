//! The numbered rules of policy/multiburst.c.

mod common;

use common::{Rounds, MS, US};

const IMMEDIATE: u64 = 0;
const AFTER_BURST: u64 = 1;
const END_OF_ROUND: u64 = 2;

/// Set point 6 ms, bursts of 0.2 to 20 ms.
const LIMITS: [u64; 4] = [6000, 2000, 200, 20_000];

fn multiburst(children: &[(&str, u64, u64)]) -> Rounds {
    Rounds::new("multiburst", LIMITS, children)
}

/// Equal importance, all at the end of the round but the last.
fn abc(last: u64) -> Rounds {
    multiburst(&[("a", 100, END_OF_ROUND), ("b", 100, END_OF_ROUND), ("c", 100, last)])
}

#[test]
fn multiburst_example() {
    let mut r = abc(AFTER_BURST);
    r.wake(&[0, 1, 2]).run(1000).sleep(2);
    // 5 + 2 * 1 ms, then 7 - 1 ms, of which 1 ms has passed when c wakes
    r.run(12_000 + 1000).wake(&[2]);
    r.run(18_000 + 1);
    let begin = "0 c, 1 a, 3 b, 5 a, 8.5 b, 12 a";
    assert_eq!(r.world.schedule(), format!("{begin}, 14.333333 c, 15.999999 b, 17.999998 a"));
}

#[test]
fn multiburst_rule_1_a_burst_for_each_in_the_order_of_the_round_before() {
    let mut r = multiburst(&[("a", 100, 2), ("b", 200, 2), ("c", 300, 2)]);
    r.wake(&[1, 0, 2]).run(12_000);
    assert_eq!(r.world.schedule(), "0 b, 2 a, 3 c, 6 b, 8 a, 9 c, 12 b");

    // the round ends when nobody has anything left, whoever sleeps with a rest; and when nobody wants the CPU
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0, 1]).run(1000).sleep(0).run(4000);
    assert_eq!(r.world.schedule(), "0 a, 1 b");
    let first = r.world.graph.node(r.node).clock;
    r.run(4000 + 1);
    r.sleep(1).run(50_000).wake(&[1, 0]).run(56_001);
    assert!(r.world.graph.node(r.node).clock > first);
    assert_eq!(r.world.schedule(), "0 a, 1 b, 4.001 idle, 50 b, 53 a, 56 b");

    // limits: no burst is shorter, none longer
    let mut r = Rounds::new("multiburst", [6000, 2000, 1000, 3000], &[("a", 1, 2), ("b", 1000, 2)]);
    r.wake(&[0, 1]).run(8000);
    assert_eq!(r.world.schedule(), "0 a, 1 b, 4 a, 5 b, 8 a");
}

#[test]
fn multiburst_rule_2_who_blocks_keeps_its_rest_in_the_round() {
    let mut r = abc(IMMEDIATE);
    r.wake(&[0, 1, 2]).run(3000); // c runs first, then a until 4
    assert_eq!(r.world.schedule(), "0 c, 2 a");
    r.sleep(0).run(3500).wake(&[0]);
    // b from 3 to 5, the rest of a, then the next round
    r.run(6001);
    assert_eq!(r.world.schedule(), "0 c, 2 a, 3 b, 5 a, 6 c");
    assert_eq!(r.world.supply(r.leaves[0].edge), 2 * MS);

    // who waits has its burst, too: it is not given another when it comes back
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0, 1, 2]).run(500).sleep(1).run(1000).wake(&[1]).run(6001);
    assert_eq!(r.world.schedule(), "0 a, 2 c, 4 b, 6 a");

    // a rest of an earlier round is gone
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0, 1, 2]).run(1000).sleep(0).run(5001).wake(&[0]);
    assert!(r.world.edge(r.leaves[0]).policy[3] > MS);
}

#[test]
fn multiburst_rule_3_who_wakes_gets_its_part_of_what_is_left() {
    // 1 ms into the round of a and b: a third of 5 ms; their rests of 2 and 3 shrink by as much
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0, 1]).run(1000).wake(&[2]).run(6001);
    assert_eq!(r.world.schedule(), "0 a, 2.333333 b, 4.333332 c, 5.999998 a");

    // two who wake: by importance, as if they had come together
    let mut r = multiburst(&[("a", 100, 2), ("b", 300, 2), ("c", 200, 2)]);
    r.wake(&[0]).run(2000).wake(&[1, 2]).run(6001);
    assert_eq!(r.world.schedule(), "0 a, 2.666666 b, 4.666665 c, 5.999998 a");

    // nothing is left of the round: the least burst, and nothing is divided by it
    let mut r = Rounds::new("multiburst", [1000, 2000, 200, 20_000], &[("a", 1, 2), ("b", 1, 2)]);
    r.wake(&[0]).run(500);
    r.world.overrun(2999 * US);
    r.wake(&[1]);
    r.world.run(4 * MS);
    assert!(r.world.supply(r.leaves[1].edge) >= 200 * US, "{}", r.world.schedule());

    // what is left to the others shrinks to the least burst at most
    let mut r =
        Rounds::new("multiburst", [6000, 2000, 1000, 20_000], &[("a", 1, 2), ("b", 1, 2), ("c", 9998, 0)]);
    r.wake(&[0, 1]).run(1000).wake(&[2]).run(9000);
    assert_eq!(
        r.world.schedule().split(", ").take(4).collect::<Vec<_>>().join(", "),
        "0 a, 1 c, 5.999 a, 6.999 b"
    );

    // who has used its burst waits for the next round
    let mut r = abc(IMMEDIATE);
    r.wake(&[2, 0, 1]).run(2000).run(2500);
    assert_eq!(r.world.schedule(), "0 c, 2 a");
    let mut r = abc(IMMEDIATE);
    r.wake(&[2, 0, 1]).run(2000 - 1);
    r.world.late_ns = 1500; // it blocks with nothing left
    r.run(2001).sleep(2).run(3000).wake(&[2]).run(5900);
    assert_eq!(r.world.runs(0), "b");
    r.run(6100);
    assert_eq!(r.world.runs(0), "c");
}

#[test]
fn multiburst_rule_4_immediate_after_burst_end_of_round() {
    let five = |x, y| {
        let all = [("a", 100, 2), ("b", 100, 2), ("c", 100, 2), ("x", 100, x), ("y", 100, y)];
        let mut r = Rounds::new("multiburst", [50_000, 2000, 200, 20_000], &all);
        r.wake(&[0, 1, 2]).run(1000).wake(&[3]).run(1500).wake(&[4]).run(50_000 - 100);
        let text = r.world.schedule();
        text.split(", ").map(|turn| turn.split_once(' ').unwrap().1).collect::<String>()
    };
    // who ran is next; several of one kind in the order in which they came
    assert_eq!(five(IMMEDIATE, IMMEDIATE), "axyabc");
    assert_eq!(five(IMMEDIATE, AFTER_BURST), "axaybc");
    assert_eq!(five(AFTER_BURST, IMMEDIATE), "ayaxbc");
    assert_eq!(five(AFTER_BURST, AFTER_BURST), "axybc");
    assert_eq!(five(AFTER_BURST, END_OF_ROUND), "axbcy");
    assert_eq!(five(END_OF_ROUND, END_OF_ROUND), "abcxy");
    assert_eq!(five(END_OF_ROUND, AFTER_BURST), "aybcx");

    // from idle, in one instant: no current child there
    let mut r = multiburst(&[("a", 100, END_OF_ROUND), ("b", 100, AFTER_BURST), ("c", 100, IMMEDIATE)]);
    r.run(1000).wake(&[0, 1, 2]).run(7001);
    assert_eq!(r.world.schedule(), "1 c, 3 b, 5 a, 7 c");

    // an order is not lost when the child that it began with sleeps, and comes back
    let mut r = multiburst(&[("a", 100, END_OF_ROUND), ("b", 100, AFTER_BURST), ("c", 100, IMMEDIATE)]);
    r.wake(&[0, 1]).run(3500).sleep(0).wake(&[2]).run(4500).wake(&[0]).run(7000);
    assert_eq!(r.world.schedule().split(", ").take(3).collect::<Vec<_>>().join(", "), "0 b, 3 a, 3.5 c");
}

#[test]
fn multiburst_rule_5_the_round_after_a_wake_up_is_as_long_as_the_set_point() {
    // a waker in every round, of which one blocks early: the rounds do not shrink
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0, 1]);
    let mut at = 0;
    for _ in 0..20 {
        let round = r.world.graph.node(r.node).clock;
        r.run(at + 300).wake(&[2]);
        while r.world.graph.node(r.node).clock == round {
            at += 50;
            r.run(at.max(300));
            if r.world.runs(0) == "c" {
                r.run(at + 100).sleep(2);
            }
        }
    }
    assert_eq!(r.state().set_ns, 6 * MS);
    assert!(r.state().target_ns >= 5 * MS as i64, "{:?}", r.state());

    // a new set point counts from the next round on, at once
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0, 1, 2]).run(6001);
    r.world.graph.node_set(r.node, [12 * MS, 2 * MS, 200 * US, 20 * MS], r.world.now).unwrap();
    r.world.rest();
    r.run(24_001);
    assert_eq!(r.world.schedule(), "0 a, 2 b, 4 c, 6 a, 8 b, 10 c, 12 a, 16 b, 20 c, 24 a");

    // and so does importance; of round 0, that is the nominal burst for each who wants the CPU
    let mut r = Rounds::new("multiburst", [0, 2000, 200, 20_000], &[("a", 100, 2), ("b", 100, 2)]);
    r.wake(&[0, 1]).run(4001);
    r.world.graph.set(r.leaves[1].edge, [300, 2, 0, 0], r.world.now).unwrap();
    r.world.rest();
    r.run(12_001);
    assert_eq!(r.world.schedule(), "0 a, 2 b, 4 a, 6 b, 8 a, 9 b, 12 a");
}

#[test]
fn multiburst_rule_6_no_correction_grows_while_all_are_full() {
    // 1 ms is missing to every round, and nobody can have it
    let mut r = Rounds::new("multiburst", [9000, 2000, 200, 4000], &[("a", 100, 2), ("b", 100, 2)]);
    r.wake(&[0, 1]);
    for round in 1..50 {
        r.run(8000 * round + 1);
        assert_eq!(r.state().correction_ns, 2 * MS as i64, "{round}");
    }
    // one of them is not full: it is given more
    let mut r = Rounds::new("multiburst", [9000, 2000, 200, 4000], &[("a", 300, 2), ("b", 100, 2)]);
    r.wake(&[0, 1]).run(500_000);
    let (one, other) = (r.world.graph.node(r.node).clock, r.world.supply(r.leaves[1].edge));
    r.run(1_000_000);
    let rounds = r.world.graph.node(r.node).clock - one;
    assert_eq!((r.world.supply(r.leaves[1].edge) - other) / rounds / MS, 3, "{:?}", r.state());
}

#[test]
fn multiburst_rule_7_a_lost_cpu_costs_no_burst() {
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0, 1, 2]).run(3000);
    r.world.wake(r.urgent.task);
    r.run(5000);
    r.world.sleep(r.urgent.task);
    r.run(8001);
    assert_eq!(r.world.schedule(), "0 a, 2 b, 3 urgent, 5 b, 6 c, 8 a");

    // alone: no timer, and rounds follow each other; who comes gets its part of what is left of the one under way
    let mut r = abc(END_OF_ROUND);
    r.wake(&[0]);
    assert_eq!(r.world.graph.until(0), tierce_policy::NEVER);
    r.run(6000 * 1000 + 4000).wake(&[1]).run(6_006_001);
    assert_eq!(r.world.schedule(), "0 a, 6005 b, 6006 a");
}
